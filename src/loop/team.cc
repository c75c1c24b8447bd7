#include "loop/team.h"

namespace tenon {

Expr IsFirstWorker() {
  return Eq(Call::Make(Intrinsic::kTeamRank, {}, DType::Index()), IndexConst(0));
}

bool IsFirstWorkers(const If& branch) {
  const auto* equal = As<Binary>(branch.condition);
  const auto* rank = equal && equal->op == BinaryOp::kEq ? As<Call>(equal->lhs) : nullptr;
  return rank && rank->intrinsic == Intrinsic::kTeamRank && IsZero(equal->rhs);
}

}  // namespace tenon
