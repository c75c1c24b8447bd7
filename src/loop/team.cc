#include "loop/team.h"

#include <unordered_set>

#include "ir/visit.h"

namespace tenon {

Expr IsFirstWorker() {
  return Eq(Call::Make(Intrinsic::kTeamRank, {}, DType::Index()), IndexConst(0));
}

bool IsFirstWorkers(const If& branch) {
  const auto* equal = As<Binary>(branch.condition);
  const auto* rank = equal && equal->op == BinaryOp::kEq ? As<Call>(equal->lhs) : nullptr;
  return rank && rank->intrinsic == Intrinsic::kTeamRank && IsZero(equal->rhs);
}

namespace {

// `seen`: functions that were asked already, so that one that calls itself ends.
bool MentionsTeam(const Module& module, const Func& func,
                  std::unordered_set<const PrimFunc*>& seen) {
  if (!func || !seen.insert(func.get()).second) return false;
  bool found = false;
  PreOrder(func->body, [&](const NodeRef& n) {
    if (const auto* call = As<Call>(n)) {
      found |= call->intrinsic == Intrinsic::kTeamRank || call->intrinsic == Intrinsic::kTeamSize;
    } else if (const auto* sync = As<Sync>(n)) {
      found |= sync->level == Level::kTeam;
    } else if (const auto* inner = As<CallFunc>(n)) {
      found |= MentionsTeam(module, module.Find(inner->callee), seen);
    }
    return !found;
  });
  return found;
}

}  // namespace

bool MentionsTeam(const Module& module, const Func& func) {
  std::unordered_set<const PrimFunc*> seen;
  return MentionsTeam(module, func, seen);
}

}  // namespace tenon
