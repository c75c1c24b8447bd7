#include "arith/analyzer.h"

#include "arith/analyzer_impl.h"
#include "arith/interval.h"
#include "arith/modular.h"
#include "support/check.h"

namespace tenon {

namespace {
// Conditions of selects that one call of Simplify may assume around their branches.
constexpr int kSelectBudget = 64;
// Steps of all proofs that one call wants. A proof of 48 steps may want others of 24, and so on,
// and an expression may want hundreds, which for indices of many open sizes is seconds; what is
// provable takes some hundreds.
constexpr int kProofWork = 2048;
}  // namespace

Analyzer::Analyzer() : impl_(new Impl) {}
Analyzer::~Analyzer() { delete impl_; }

void Analyzer::Bind(const Var& var, const Expr& min, const Expr& extent) {
  impl_->Bind(var, min, extent);
}

void Analyzer::BindInterval(const Var& var, Interval range) {
  VarFacts& facts = impl_->FactsOf(var);
  facts.range = range;
  facts.min = facts.max = facts.value = nullptr;
  impl_->ForgetResults();
}

void Analyzer::BindModular(const Var& var, ModularSet set) {
  impl_->FactsOf(var).modular = Residue(set.coefficient, set.base);
  impl_->ForgetResults();
}

void Analyzer::BindValue(const Var& var, const Expr& value) {
  Expr simple = Simplify(value);
  VarFacts& facts = impl_->FactsOf(var);
  facts = VarFacts{.order = facts.order};
  // A value that mentions the variable itself says nothing.
  if (!impl_->Mentions(simple, var.get())) facts.value = simple;
  impl_->ForgetResults();
}

size_t Analyzer::Assume(const Expr& condition) {
  impl_->select_budget = kSelectBudget;
  impl_->proof_work = kProofWork;
  return impl_->Assume(condition);
}
void Analyzer::Retract(size_t token) { impl_->Retract(token); }

Expr Analyzer::Simplify(const Expr& e) {
  impl_->Trim();
  impl_->select_budget = kSelectBudget;
  impl_->proof_work = kProofWork;
  return impl_->Simplify(e);
}

bool Analyzer::CanProve(const Expr& condition) {
  Expr simple = Simplify(condition);
  auto value = AsInt(simple);
  return value && *value != 0;
}

bool Analyzer::CanProveEqual(const Expr& a, const Expr& b) {
  if (a->dtype != b->dtype) return false;
  if (impl_->ids.Same(a, b)) return true;
  Expr x = Simplify(a), y = Simplify(b);
  if (impl_->ids.Same(x, y)) return true;
  if (!a->dtype.IsIndex()) return false;
  auto difference = AsInt(Simplify(Binary::Make(BinaryOp::kSub, x, y)));
  return difference && *difference == 0;
}

Interval Analyzer::ConstBounds(const Expr& e) { return impl_->Bounds(Simplify(e)); }
ModularSet Analyzer::Modular(const Expr& e) { return impl_->ModularOf(Simplify(e)); }

Expr Simplify(const Expr& e) { return Analyzer().Simplify(e); }

}  // namespace tenon
