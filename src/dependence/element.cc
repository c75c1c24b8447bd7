#include "dependence/element.h"

#include "arith/injective.h"
#include "dependence/strides.h"
#include "ir/visit.h"

namespace tenon {

namespace {

// A number as a quotient and a remainder.
struct Split {
  Iteration quotient, remainder;
  std::vector<Expr> indices;
};

Split SplitBy(int64_t part, int64_t extent, const Iteration& x, const std::vector<Expr>& indices,
              Analyzer* analyzer) {
  Split out{{VarNode::Make(x.var->name + ".outer", DType::Index()), IndexConst(extent / part)},
            {VarNode::Make(x.var->name + ".inner", DType::Index()), IndexConst(part)},
            {}};
  for (const Iteration* i : {&out.quotient, &out.remainder})
    analyzer->Bind(i->var, IndexConst(0), i->extent);
  const VarMap parts{{x.var.get(), Expr(out.quotient.var) * part + Expr(out.remainder.var)}};
  for (const Expr& e : indices) out.indices.push_back(analyzer->Simplify(Substitute(e, parts)));
  return out;
}

// As ElementTells, by parts of the numbers that the indices tell one by one.
bool PartsTell(const BufferNode& buffer, const std::vector<Expr>& a, const Iteration& x,
               const std::vector<Expr>& b, const Iteration& y, Analyzer* analyzer) {
  const auto n = AsInt(analyzer->Simplify(x.extent)), m = AsInt(analyzer->Simplify(y.extent));
  const int64_t part = SmallestPart(a, x.var.get());
  if (!n || n != m || part == 0 || *n <= part || *n % part != 0) return false;
  const Split p = SplitBy(part, *n, x, a, analyzer), q = SplitBy(part, *n, y, b, analyzer);
  return ElementTells(buffer, p.indices, p.quotient, q.indices, q.quotient, analyzer) &&
         ElementTells(buffer, p.indices, p.remainder, q.indices, q.remainder, analyzer);
}

}  // namespace

bool ElementTells(const BufferNode& buffer, const std::vector<Expr>& a, const Iteration& x,
                  const std::vector<Expr>& b, const Iteration& y, Analyzer* analyzer) {
  if (a.empty() || a.size() != b.size()) return false;
  std::vector<std::pair<Expr, Expr>> pairs;
  for (size_t i = 0; i < a.size(); ++i) pairs.emplace_back(a[i], b[i]);
  pairs.emplace_back(FlatIndex(buffer, a, analyzer), FlatIndex(buffer, b, analyzer));
  for (const auto& [i, j] : pairs) {
    auto affine = DetectAffine(i, {x.var});
    auto step = affine ? AsInt(analyzer->Simplify(affine->coefficients[0])) : std::nullopt;
    if (!step || *step <= 0) continue;
    auto tell = [&](const Expr& p, const Expr& q) {
      return analyzer->CanProveEqual(p, x.var) && analyzer->CanProveEqual(q, y.var);
    };
    const Expr p = i / *step, q = j / *step;
    if (tell(p, q)) return true;
    auto n = AsInt(analyzer->Simplify(x.extent));
    if (n && *n > 0 && tell(p % *n, q % *n)) return true;
  }
  return PartsTell(buffer, a, x, b, y, analyzer);
}

}  // namespace tenon
