#include "graph/named_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "graph/dims.h"

namespace tenon::graph {

namespace {

// Calls `visit` with every expression for a size that the region has.
template <class F>
void ForEachSize(Graph& region, F&& visit) {
  for (Value& v : region.values) {
    TensorType leaf = v.type.leaf();
    for (Expr& size : leaf.dims) visit(size);
    v.type = v.type.WithLeaf(std::move(leaf));
  }
  for (Node& n : region.nodes) {
    for (auto& [name, list] : n.exprs) {
      for (Expr& e : list) visit(e);
    }
  }
  for (Constraint& c : region.constraints) visit(c.holds);
}

// Whether a size has many terms of which some are subtracted, as where four paddings come with the
// call: products of such are written out, and nobody sees that they are not negative. What is cut
// or padded by numbers is no such size; its windows are proved to lie inside by what it is made of.
bool IsTangled(const Expr& size) {
  constexpr size_t kMany = 3;
  std::set<const VarNode*> vars;
  PreOrder(size, [&](const NodeRef& n) {
    if (const auto* var = As<VarNode>(n)) vars.insert(var);
    return vars.size() < kMany;
  });
  return vars.size() >= kMany && DimRange(size).min < 0;
}

void AddOnce(const Expr& e, std::vector<Expr>* out) {
  const auto is_it = [&](const Expr& known) { return StructuralEqual(known, e); };
  if (std::none_of(out->begin(), out->end(), is_it)) out->push_back(e);
}

bool IsChoice(const NodeRef& n) {
  const auto* choice = As<Select>(n);
  return choice && choice->dtype == DType::Index();
}

bool HasChoice(const Expr& size) {
  bool has = false;
  PreOrder(size, [&](const NodeRef& n) { return !(has |= IsChoice(n)); });
  return has;
}

// What is at least 0, since it is a size or is seen to be: the largest first. A choice within a
// size may be negative, as the difference of two is that a part begins at.
std::vector<Expr> ToBeNamed(Graph& region) {
  constexpr int kLimit = 1000;
  std::vector<Expr> out;
  for (const Value& v : region.values) {
    for (const Expr& size : v.type.leaf().dims) {
      if (HasChoice(size) || IsTangled(size)) AddOnce(size, &out);
    }
  }
  ForEachSize(region, [&](const Expr& size) {
    PreOrder(size, [&](const NodeRef& n) {
      const Expr e(As<ExprNode>(n));
      if (IsChoice(n) && DimRange(e).min >= 0) AddOnce(e, &out);
      return true;
    });
  });
  std::stable_sort(out.begin(), out.end(), [](const Expr& a, const Expr& b) {
    return ExprSize(a, kLimit) > ExprSize(b, kLimit);
  });
  return out;
}

bool MayBeNamed(const Graph& region) {
  const bool has_regions = std::any_of(region.nodes.begin(), region.nodes.end(),
                                       [](const Node& n) { return !n.regions.empty(); });
  return !has_regions && std::none_of(region.values.begin(), region.values.end(),
                                      [](const Value& v) { return v.type.leaf().layout; });
}

std::string NewName(const Graph& region, size_t number) {
  std::string name = fmt::format("size{}", number);
  const auto is_taken = [&](const Dim& d) { return d.var->name == name; };
  while (std::any_of(region.dims.begin(), region.dims.end(), is_taken)) name += '_';
  return name;
}

}  // namespace

std::optional<NamedSizes> NameSizes(const Graph& region) {
  if (!MayBeNamed(region)) return std::nullopt;
  NamedSizes out{region, {}};
  for (const Expr& formula : ToBeNamed(out.region)) {
    const Interval range = DimRange(formula);
    const std::string name = NewName(out.region, out.values.size());
    Dim dim;
    dim.var = range.min > 0 ? VarNode::Make(name) : VarNode::MakeCount(name);
    dim.min = std::max<int64_t>(range.min, 0);
    dim.max = std::min(range.max, Dim::kNoMax);
    bool is_used = false;
    ForEachSize(out.region, [&](Expr& size) {
      size = PostOrderRewrite(size, [&](const NodeRef& n) -> NodeRef {
        if (n->kind != formula->kind || !StructuralEqual(n, formula)) return n;
        is_used = true;
        return dim.var;
      });
    });
    if (!is_used) continue;  // it stood in others alone
    out.values[dim.var.get()] = formula;
    out.region.dims.push_back(std::move(dim));
  }
  if (out.values.empty()) return std::nullopt;
  return out;
}

}  // namespace tenon::graph
