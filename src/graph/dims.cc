#include "graph/dims.h"

#include <algorithm>

#include "arith/expr_ids.h"
#include "graph/verify.h"
#include "ir/print.h"
#include "ir/visit.h"

namespace tenon::graph {
namespace {

constexpr int64_t kMost = int64_t{1} << 62;

int64_t Saturate(__int128 v) {
  return static_cast<int64_t>(std::clamp<__int128>(v, -kMost, kMost));
}

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

// Folds where both are numbers, else builds and simplifies.
template <class Fold>
Expr Make(BinaryOp op, const Expr& a, const Expr& b, Fold fold) {
  std::optional<int64_t> x = AsInt(a), y = AsInt(b);
  if (x && y) return IndexConst(Saturate(fold(*x, *y)));
  return SimplifyDim(Binary::Make(op, a, b));
}

}  // namespace

namespace {

// Whether there are sizes at which something in here is divided by 0.
bool DividesByZero(const Expr& e) {
  bool found = false;
  PreOrder(e, [&](const NodeRef& n) {
    const auto* b = As<Binary>(n);
    found |= b && b->op == BinaryOp::kDiv && DimRange(b->rhs).min < 1;
    return !found;
  });
  return found;
}

}  // namespace

Expr DimAdd(const Expr& a, const Expr& b) {
  if (IsZero(a)) return b;
  if (IsZero(b)) return a;
  return Make(BinaryOp::kAdd, a, b, [](__int128 x, __int128 y) { return x + y; });
}

Expr DimSub(const Expr& a, const Expr& b) {
  if (IsZero(b)) return a;
  if (ProveEqual(a, b)) return IndexConst(0);
  return Make(BinaryOp::kSub, a, b, [](__int128 x, __int128 y) { return x - y; });
}

Expr DimMul(const Expr& a, const Expr& b) {
  if (IsOne(a) || IsZero(b)) return b;
  if (IsOne(b) || IsZero(a)) return a;
  return Make(BinaryOp::kMul, a, b, [](__int128 x, __int128 y) { return x * y; });
}

Expr DimFloorDiv(const Expr& a, const Expr& b) {
  if (IsOne(b) || IsZero(a)) return a;
  auto fold = [](int64_t x, int64_t y) { return FloorDiv(x, std::max<int64_t>(y, 1)); };
  const Expr quotient = Make(BinaryOp::kDiv, a, b, fold);
  // What b has in common with a may go; what is left of it must not be 0.
  return DividesByZero(quotient) ? Make(BinaryOp::kDiv, a, DimMax(b, IndexConst(1)), fold)
                                 : quotient;
}

Expr DimCeilDiv(const Expr& a, const Expr& b) {
  return DimFloorDiv(DimAdd(a, DimSub(b, IndexConst(1))), b);
}

Expr DimMin(const Expr& a, const Expr& b) {
  if (ProveEqual(a, b)) return a;
  return Make(BinaryOp::kMin, a, b, [](int64_t x, int64_t y) { return std::min(x, y); });
}

Expr DimMax(const Expr& a, const Expr& b) {
  if (ProveEqual(a, b)) return a;
  return Make(BinaryOp::kMax, a, b, [](int64_t x, int64_t y) { return std::max(x, y); });
}

Expr DimProduct(std::span<const Expr> dims) {
  Expr out = IndexConst(1);
  for (const Expr& d : dims) out = DimMul(out, d);
  return out;
}

std::optional<int64_t> StaticCount(std::span<const Expr> dims) { return AsInt(DimProduct(dims)); }

namespace {

// Tells the analyzer what is true of every symbolic dim (graph.h, Dim).
void BindDims(const Expr& e, Analyzer* analyzer) {
  PreOrder(e, [&](const NodeRef& n) {
    if (const auto* var = As<VarNode>(n)) {
      analyzer->BindInterval(Cast<VarNode>(n), {var->counts ? 0 : 1, kLargestSize});
    }
    return true;
  });
}

// What was found of sizes. It follows from an expression alone, since what is true of a dim is part
// of its node; and the same few hundred sizes are asked about by every rule, pass and price of a
// network, some of them hundreds of times.
class Findings {
 public:
  struct Finding {
    Expr simplified;                // null: nobody asked
    std::optional<Interval> range;  // likewise
  };
  static Findings& OfThread() {
    thread_local Findings findings;
    return findings;
  }
  // Until the next question.
  Finding& About(const Expr& e) {
    constexpr size_t kManyNodes = 50'000;
    if (ids_.size() > kManyNodes) {
      ids_.Clear();
      found_.clear();
    }
    const ExprIds::Id id = ids_.Of(e);
    if (found_.size() < id) found_.resize(id);
    return found_[id - 1];
  }

 private:
  ExprIds ids_;
  std::vector<Finding> found_;  // by number - 1
};

}  // namespace

Expr SimplifyDim(const Expr& e) {
  if (IsA<IntConst>(e) || IsA<VarNode>(e)) return e;
  Expr& known = Findings::OfThread().About(e).simplified;
  if (!known) {
    Analyzer analyzer;
    BindDims(e, &analyzer);
    known = analyzer.Simplify(e);
  }
  return known;
}

bool ProveEqual(const Expr& a, const Expr& b) {
  if (a == b) return true;
  if (AsInt(a) && AsInt(b)) return *AsInt(a) == *AsInt(b);
  return IsZero(SimplifyDim(Binary::Make(BinaryOp::kSub, a, b)));
}

bool ProveDifferent(const Expr& a, const Expr& b) {
  if (a == b) return false;
  if (AsInt(a) && AsInt(b)) return *AsInt(a) != *AsInt(b);
  Interval range = DimRange(Binary::Make(BinaryOp::kSub, a, b));
  return range.min > 0 || range.max < 0;
}

Interval DimRange(const Expr& e) {
  std::optional<Interval>& known = Findings::OfThread().About(e).range;
  if (!known) {
    Analyzer analyzer;
    BindDims(e, &analyzer);
    known = analyzer.ConstBounds(analyzer.Simplify(e));
  }
  return *known;
}

bool MayBroadcast(const Expr& size, const Expr& other) {
  const Interval range = DimRange(size);
  if (range.min > 1 || range.max < 1) return false;
  // min(n, 512) is 1 where n is.
  Expr at = size;
  for (const auto* m = As<Binary>(at);
       m && m->op == BinaryOp::kMin && AsInt(m->rhs).value_or(0) > 1; m = As<Binary>(at))
    at = m->lhs;
  if (!IsA<VarNode>(at)) return true;
  const VarMap one = {{As<VarNode>(at), IndexConst(1)}};
  return !ProveEqual(Substitute(other, one), IndexConst(1));
}

namespace {

// select(b == 1, a, b): how BroadcastSizes writes a size, and nothing else does.
bool IsSizeOfTwo(const Select* choice) {
  const auto* is_one = choice ? As<Binary>(choice->condition) : nullptr;
  return is_one && is_one->op == BinaryOp::kEq && IsOne(is_one->rhs) &&
         StructuralEqual(is_one->lhs, choice->on_false);
}

// The sizes of which `size` is the first that is not 1, or else the last (BroadcastSizes).
void CollectSizes(Expr size, std::vector<Expr>* sizes) {
  auto add = [&](const Expr& e) {
    const auto known =
        std::find_if(sizes->begin(), sizes->end(), [&](const Expr& s) { return ProveEqual(s, e); });
    if (known == sizes->end()) sizes->push_back(e);
  };
  while (IsSizeOfTwo(As<Select>(size))) {
    const auto* choice = As<Select>(size);
    add(choice->on_false);
    size = choice->on_true;
  }
  add(size);
}

}  // namespace

// Of sizes that broadcast together all are one number but for those that are 1. The size of the
// result is written as the first of them that is not 1, in the order of their texts, so that
// equal sizes are equal expressions however they came about, and chains do not grow.
BroadcastAxis BroadcastSizes(const Expr& a, const Expr& b) {
  if (ProveEqual(a, b) || IsOne(b)) return {a, nullptr};
  if (IsOne(a)) return {b, nullptr};
  const Expr one = IndexConst(1);
  const bool a_may = MayBroadcast(a, b), b_may = MayBroadcast(b, a);
  Expr condition = ProveDifferent(a, b) ? BoolConst(false) : Eq(a, b);
  if (a_may) condition = Or(condition, Eq(a, one));
  if (b_may) condition = Or(condition, Eq(b, one));
  condition = SimplifyDim(condition);
  if (IsZero(condition)) return {nullptr, condition};
  if (!a_may && !b_may) return {AsInt(b) ? b : a, condition};
  if (!a_may || !b_may) return {a_may ? b : a, condition};
  std::vector<Expr> sizes;
  CollectSizes(a, &sizes);
  CollectSizes(b, &sizes);
  std::sort(sizes.begin(), sizes.end(),
            [](const Expr& x, const Expr& y) { return DimText(x) < DimText(y); });
  Expr size = sizes.back();
  for (size_t i = sizes.size() - 1; i-- > 0;)
    size = Select::Make(Eq(sizes[i], one), size, sizes[i]);
  return {size, condition};
}

Expr DimChoice(const Expr& condition, const Expr& on_true, const Expr& on_false) {
  if (ProveEqual(on_true, on_false)) return on_true;
  Expr choice = SimplifyDim(Select::Make(condition, on_true, on_false));
  const auto* made = As<Select>(choice);
  if (!IsSizeOfTwo(made)) return choice;
  return Select::Make(Ne(made->on_false, IndexConst(1)), made->on_false, made->on_true);
}

std::string DimText(const Expr& e) { return ToString(e); }

std::string DimsText(std::span<const Expr> dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) out += (i ? ", " : "") + DimText(dims[i]);
  return out + "]";
}

int ExprSize(const Expr& e, int limit) {
  int size = 0;
  std::vector<const tenon::Node*> stack = {e.get()};
  struct Pusher : ChildVisitor {
    std::vector<const tenon::Node*>* stack;
    void VisitChild(const NodeRef& child, FieldRole) override { stack->push_back(child.get()); }
  } pusher;
  pusher.stack = &stack;
  while (!stack.empty() && size <= limit) {
    const tenon::Node* n = stack.back();
    stack.pop_back();
    ++size;
    n->VisitChildren(pusher);
  }
  return size;
}

}  // namespace tenon::graph
