#include <cstdio>

#include "verbs.h"

namespace tenon::tools {

int Report(const Diagnostics& diagnostics, const Common& common) {
  int status = kInputAtFault;
  for (const Diagnostic& d : diagnostics) {
    std::string text = common.error_format == "json" ? d.ToJson() : "tenon: " + d.ToString();
    std::fprintf(stderr, "%s\n", text.c_str());
    if (d.kind == ErrorKind::kLimit) status = kLimitHit;
  }
  return status;
}

}  // namespace tenon::tools
