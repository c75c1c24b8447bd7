#include <algorithm>

#include "arith/analyzer_impl.h"
#include "arith/interval.h"
#include "ir/buffer.h"
#include "ir/visit.h"

namespace tenon {

std::optional<AffineForm> DetectAffine(const Expr& e, const std::vector<Var>& vars) {
  if (!e->dtype.IsIndex() || !e->dtype.IsScalar()) return std::nullopt;
  Analyzer::Impl impl;
  impl.select_budget = 16;
  Linear sum = impl.LinearOf(e);
  impl.Recombine(&sum);
  std::unordered_set<const VarNode*> wanted;
  for (const Var& v : vars) wanted.insert(v.get());
  std::vector<Linear> coefficients(vars.size());
  Linear base = ConstantSum(sum.constant);
  for (const Term& t : sum.terms) {
    if (!UsesAnyVar(t.product, wanted)) {
      base.terms.push_back(t);
      continue;
    }
    std::vector<Expr> atoms = Factors(t.product);
    auto is_wanted = [&](const Expr& a) {
      return As<VarNode>(a) && wanted.count(As<VarNode>(a)) != 0;
    };
    auto it = std::find_if(atoms.begin(), atoms.end(), is_wanted);
    if (it == atoms.end()) return std::nullopt;
    auto index =
        std::find_if(vars.begin(), vars.end(), [&](const Var& v) { return v.get() == it->get(); });
    atoms.erase(it);
    Linear& coefficient = coefficients[static_cast<size_t>(index - vars.begin())];
    if (atoms.empty()) {
      coefficient.constant = t.coefficient;
      continue;
    }
    for (const Expr& a : atoms) {
      if (UsesAnyVar(a, wanted)) return std::nullopt;
    }
    coefficient.terms.push_back({ProductOf(std::move(atoms)), t.coefficient});
  }
  AffineForm out;
  for (Linear& c : coefficients) {
    auto normal = Normalize(impl.ids, std::move(c));
    if (!normal) return std::nullopt;
    out.coefficients.push_back(ToExpr(*normal));
  }
  out.base = ToExpr(base);
  return out;
}

std::vector<Expr> StorageExtents(const std::vector<Expr>& shape,
                                 const Ref<const LayoutNode>& layout) {
  if (!layout) return shape;
  Analyzer analyzer;
  IntervalMap domain;
  for (size_t i = 0; i < layout->coords.size(); ++i) {
    domain[layout->coords[i].get()] = {IndexConst(0), analyzer.Simplify(shape[i] - 1)};
    analyzer.Bind(layout->coords[i], IndexConst(0), shape[i]);
  }
  std::vector<Expr> out;
  for (size_t i = 0; i < layout->storage.size(); ++i) {
    if (i < layout->extents.size() && layout->extents[i]) {
      out.push_back(analyzer.Simplify(layout->extents[i]));
      continue;
    }
    ExprInterval range = EvalInterval(layout->storage[i], domain, &analyzer);
    TN_CHECK(range.max, "storage dimension {} of a layout has no bound", i);
    out.push_back(analyzer.Simplify(range.max + 1));
  }
  return out;
}

}  // namespace tenon
