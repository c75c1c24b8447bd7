#include "schedule/analysis/state.h"

namespace tenon::primitive {

void State::SetBody(Stmt body) {
  PrimFunc copy = *func;
  copy.body = body ? std::move(body) : Seq::Make({});
  func = PrimFunc::Make(std::move(copy));
}

}  // namespace tenon::primitive
