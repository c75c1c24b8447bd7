#include "codegen/abi.h"

#include "ir/visit.h"

namespace tenon::codegen {

bool TeamUse::Takes(const PrimFunc& func) {
  switch (func.func_kind) {
    case FuncKind::kKernel:
    case FuncKind::kHost: return true;
    case FuncKind::kPacked: return false;
    case FuncKind::kDevice: break;
  }
  // A function on a cycle of calls does not take the team because of the cycle alone.
  auto [it, fresh] = known_.emplace(func.name, false);
  if (!fresh) return it->second;
  bool takes = false;
  PreOrder(func.body, [&](const NodeRef& n) {
    if (const auto* call = As<Call>(n)) {
      takes |= call->intrinsic == Intrinsic::kTeamRank || call->intrinsic == Intrinsic::kTeamSize;
    } else if (const auto* sync = As<Sync>(n)) {
      takes |= sync->level == Level::kTeam;
    } else if (const auto* callee = As<CallFunc>(n)) {
      Func f = module_.Find(callee->callee);
      takes |= f && Takes(*f);
    }
    return !takes;
  });
  known_[func.name] = takes;
  return takes;
}

bool IsExported(const PrimFunc& func) {
  return func.func_kind == FuncKind::kPacked || func.attrs.Get<bool>("exported", false);
}

bool ReturnsStatus(const PrimFunc& func) {
  return func.func_kind == FuncKind::kHost || func.func_kind == FuncKind::kPacked;
}

}  // namespace tenon::codegen
