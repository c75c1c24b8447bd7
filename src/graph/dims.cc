#include "graph/dims.h"

#include <algorithm>
#include <limits>

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
  return Make(BinaryOp::kDiv, a, b, [](int64_t x, int64_t y) { return FloorDiv(x, y); });
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
      analyzer->BindInterval(Cast<VarNode>(n),
                             {var->counts ? 0 : 1, std::numeric_limits<int32_t>::max()});
    }
    return true;
  });
}

}  // namespace

Expr SimplifyDim(const Expr& e) {
  if (IsA<IntConst>(e) || IsA<VarNode>(e)) return e;
  Analyzer analyzer;
  BindDims(e, &analyzer);
  return analyzer.Simplify(e);
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
  Analyzer analyzer;
  BindDims(e, &analyzer);
  return analyzer.ConstBounds(analyzer.Simplify(e));
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
