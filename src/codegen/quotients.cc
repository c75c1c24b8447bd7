#include "codegen/quotients.h"

#include <optional>
#include <unordered_set>

#include "arith/expr_ids.h"
#include "ir/visit.h"
#include "loop/stmt.h"

namespace tenon::codegen {

namespace {

const Binary* AsDivision(const NodeRef& n) {
  const auto* b = As<Binary>(n);
  const bool divides = b && (b->op == BinaryOp::kDiv || b->op == BinaryOp::kMod);
  return divides && b->dtype.IsIndex() && b->dtype.lanes == 1 ? b : nullptr;
}

// (v / scale) / by or (v / scale) % by; scale is 1 where v itself is divided.
struct Division {
  int64_t scale = 1;
  Expr by;
  bool is_remainder = false;
};

std::optional<Division> ReadDivision(const NodeRef& n, const VarNode* v) {
  const Binary* b = AsDivision(n);
  if (!b || AsInt(b->rhs)) return std::nullopt;
  Division d{1, b->rhs, b->op == BinaryOp::kMod};
  const Node* divided = b->lhs.get();
  if (const Binary* before = AsDivision(b->lhs); before && before->op == BinaryOp::kDiv) {
    d.scale = AsInt(before->rhs).value_or(0);
    divided = before->lhs.get();
  }
  if (divided != v || d.scale < 1) return std::nullopt;
  return d;
}

// Made of numbers and of variables that have one value all over the loop.
bool IsSteady(const Expr& e, const std::unordered_set<const VarNode*>& changing) {
  bool steady = true;
  PreOrder(e, [&](const NodeRef& n) {
    const auto* v = As<VarNode>(n);
    steady &= IsA<IntConst>(n) || IsA<Binary>(n) || (v && changing.count(v) == 0);
    return steady;
  });
  return steady;
}

class Splitter {
 public:
  Splitter(const For& loop, Analyzer* facts) : loop_(loop), facts_(facts) {
    changing_.insert(loop.var.get());
    PreOrder(loop.body, [&](const NodeRef& n) {
      if (const auto* inner = As<For>(n)) changing_.insert(inner->var.get());
      if (const auto* let = As<Let>(n)) changing_.insert(let->var.get());
      if (const auto* block = As<Block>(n)) {
        for (const IterVar& i : block->iters) changing_.insert(i->var.get());
      }
      return true;
    });
  }

  Stmt Split(const Var& first, const Var& end) {
    FindPeriod();
    if (!period_) return nullptr;
    const std::string& name = loop_.var->name;
    quotient_ = VarNode::Make(name + ".q", DType::Index());
    remainder_ = VarNode::Make(name + ".r", DType::Index());
    const Stmt body = PostOrderRewrite(loop_.body, [this](const NodeRef& n) { return Put(n); });
    // A loop that runs no more may divide by nothing.
    const Expr one = IndexConst(1);
    const Expr by = facts_->ConstBounds(period_).min >= 1 ? period_ : Max(period_, one);
    const Expr start = Expr(quotient_) * by;
    const Expr from = Max(Expr(first) - start, IndexConst(0)), to = Min(Expr(end) - start, by);
    const Stmt inner = For::Make(remainder_, from, to - from, ForKind::kSerial,
                                 Let::Make(loop_.var, start + remainder_, body));
    const Expr begin = Expr(first) / by;
    return For::Make(quotient_, begin, (Expr(end) - one) / by - begin + one, ForKind::kSerial,
                     inner);
  }

 private:
  // How often the period fits what a division divides the loop's variable by; null where it is not
  // known to fit.
  Expr Multiple(const Division& d, const Expr& period) {
    const Expr all = facts_->Simplify(d.by * d.scale);
    if (ids_.Same(all, period)) return IndexConst(1);
    const Expr times = facts_->Simplify(all / period);
    const bool is_whole = IsSteady(times, changing_) && facts_->CanProveEqual(times * period, all);
    return is_whole ? times : nullptr;
  }

  void FindPeriod() {
    std::vector<Division> found;
    PreOrder(loop_.body, [&](const NodeRef& n) {
      if (auto d = ReadDivision(n, loop_.var.get()); d && IsSteady(d->by, changing_))
        found.push_back(*d);
      return true;
    });
    size_t most = 0;
    std::unordered_set<ExprIds::Id> tried;
    for (const Division& d : found) {
      const Expr period = facts_->Simplify(d.by * d.scale);
      if (AsInt(period) || !tried.insert(ids_.Of(period)).second) continue;
      size_t served = 0;
      for (const Division& other : found) served += Multiple(other, period) != nullptr;
      if (served <= most) continue;
      most = served;
      period_ = period;
    }
  }

  NodeRef Put(const NodeRef& n) {
    const auto d = ReadDivision(n, loop_.var.get());
    if (!d || !IsSteady(d->by, changing_)) return n;
    const Expr times = Multiple(*d, period_);
    if (!times) return n;
    const bool once = AsInt(times) == 1;
    if (!d->is_remainder) return once ? Expr(quotient_) : Expr(quotient_) / times;
    const Expr rest = once ? Expr(remainder_) : Expr(quotient_) % times * period_ + remainder_;
    return d->scale == 1 ? rest : rest / d->scale;
  }

  const For& loop_;
  Analyzer* facts_;
  ExprIds ids_;
  std::unordered_set<const VarNode*> changing_;
  Expr period_;
  Var quotient_, remainder_;
};

}  // namespace

Stmt SplitAtQuotients(const For& loop, const Var& first, const Var& end, Analyzer* facts) {
  return Splitter(loop, facts).Split(first, end);
}

}  // namespace tenon::codegen
