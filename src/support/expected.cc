#include "support/expected.h"

#include "support/check.h"

namespace tenon {

void NoValue(const Diagnostics& errors) {
  CheckFailed(__FILE__, __LINE__, "a value", ToString(errors));
}

}  // namespace tenon
