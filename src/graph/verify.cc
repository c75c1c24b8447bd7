// What must hold of any graph, at any point between two passes.
//
// The rules are in the order in which they lean on each other: ids are in range, values are defined
// before they are used, names are unique where they count, dims are made of the graph's symbols,
// constants have as many bytes as their type says. Then every node is asked again what its
// operator's type rule makes of its operands, and that has to be the type that the value has, but
// for the layout, which is a pass's choice, and the place. A pass that swaps the operands of
//
//   %7: f32[1, 64] = matmul(%0, %1) {trans_b: true}
//
// is named by the next look at the graph, with the node, what was expected, and what is there.

#include "graph/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "graph/dims.h"
#include "graph/edit.h"
#include "graph/infer.h"
#include "ir/visit.h"

namespace tenon::graph {
namespace {

constexpr size_t kMostErrors = 20;

// One look at a graph. A rule runs only when those that it leans on found nothing: with ids out of
// range, no other rule follows them.
class Verifier {
 public:
  Verifier(const Graph& g, int depth) : g_(g), depth_(depth) {}

  Diagnostics Run() {
    if (depth_ > Limits::kRegionDepth) {
      Report("graph", fmt::format("regions nested deeper than {}", Limits::kRegionDepth));
      return std::move(errors_);
    }
    CheckIds();
    if (!errors_.empty()) return std::move(errors_);  // the other rules rely on ids
    CheckOrder();
    CheckNames();
    CheckDims();
    CheckPayloads();
    for (NodeId n = 0; n < static_cast<NodeId>(g_.nodes.size()) && errors_.size() < kMostErrors;
         ++n)
      CheckNode(n);
    return std::move(errors_);
  }

 private:
  void Report(std::string item, std::string message) {
    if (errors_.size() < kMostErrors)
      errors_.push_back(MakeError(std::move(message), {.item = std::move(item)}));
  }
  void Report(const std::string& item, const Diagnostics& errors) {
    for (const Diagnostic& d : errors)
      Report(d.loc.item.empty() ? item : item + ": " + d.loc.item, d.message);
  }
  bool InRange(ValueId v) const { return v >= 0 && static_cast<size_t>(v) < g_.values.size(); }
  std::string Item(ValueId v) const {
    return fmt::format("value {} {}", v, Quoted(g_.value(v).name));
  }

  void CheckIds() {
    if (g_.nodes.size() > Limits::kNodes)
      Report("graph", fmt::format("expected at most {} nodes", Limits::kNodes));
    std::vector<int> defined(g_.values.size(), 0);
    auto check = [&](const std::string& item, const std::vector<ValueId>& list, bool optional) {
      for (ValueId v : list) {
        if (!InRange(v) && !(optional && v == kNoValue))
          Report(item, fmt::format("value id {} is out of range", v));
      }
    };
    check("inputs", g_.inputs, false);
    check("outputs", g_.outputs, false);
    for (size_t n = 0; n < g_.nodes.size(); ++n) {
      const std::string item = Describe(g_, static_cast<NodeId>(n));
      check(item, g_.nodes[n].inputs, true);
      check(item, g_.nodes[n].outputs, false);
      for (size_t i = 0; i < g_.nodes[n].outputs.size(); ++i) {
        const ValueId v = g_.nodes[n].outputs[i];
        if (!InRange(v)) continue;
        ++defined[static_cast<size_t>(v)];
        const Value& value = g_.value(v);
        if (value.producer != static_cast<NodeId>(n) || value.output != static_cast<int32_t>(i)) {
          Report(item, fmt::format("output {} names another producer", i));
        }
      }
    }
    for (ValueId v : g_.inputs) {
      if (InRange(v)) ++defined[static_cast<size_t>(v)];
    }
    for (size_t v = 0; v < g_.values.size(); ++v) {
      const int count = defined[v] + (g_.values[v].IsConstant() ? 1 : 0);
      if (count != 1)
        Report(Item(static_cast<ValueId>(v)),
               fmt::format("expected one definition, but got {}", count));
    }
  }

  void CheckOrder() {
    const DimUses dims(g_);
    for (size_t n = 0; n < g_.nodes.size(); ++n) {
      for (NodeId definer : dims.DefinersFor(static_cast<NodeId>(n))) {
        if (definer < static_cast<NodeId>(n)) continue;
        Report(Describe(g_, static_cast<NodeId>(n)),
               fmt::format("its sizes are used before {} defines them", Describe(g_, definer)));
      }
      for (ValueId v : g_.nodes[n].inputs) {
        if (v == kNoValue || g_.value(v).producer < static_cast<NodeId>(n)) continue;
        Report(Describe(g_, static_cast<NodeId>(n)),
               fmt::format("{} is used before it is produced", Item(v)));
      }
    }
  }

  void CheckNames() {
    std::set<std::string> seen;
    for (ValueId v : g_.inputs) {
      if (depth_ == 0 && !seen.insert(g_.value(v).name).second)
        Report(Item(v), "another input has this name");
    }
    if (g_.output_names.size() != g_.outputs.size()) {
      Report("outputs", fmt::format("expected {} output names, but got {}", g_.outputs.size(),
                                    g_.output_names.size()));
    }
  }

  void CheckDims() {
    if (g_.dims.size() > Limits::kDims || g_.constraints.size() > Limits::kConstraints) {
      return Report(
          "graph",
          fmt::format("expected at most {} dims and {} constraints, but got {} and {}",
                      Limits::kDims, Limits::kConstraints, g_.dims.size(), g_.constraints.size()));
    }
    std::set<std::string> names;
    for (const Dim& d : g_.dims) {
      if (!d.var->dtype.IsIndex()) Report("dim " + d.var->name, "expected the type index");
      if (!names.insert(d.var->name).second)
        Report("dim " + d.var->name, "another dim has this name");
      const int64_t least = d.var->counts ? 0 : 1;
      if (d.min < least || d.max < d.min || d.max > kLargestSize || d.step < 1) {
        Report("dim " + d.var->name,
               fmt::format("expected {} ≤ min ≤ max < 2^47 and a step, but got {}..={} step {}",
                           least, d.min, d.max, d.step));
      }
      declared_.insert(d.var.get());
    }
    for (size_t v = 0; v < g_.values.size(); ++v) {
      const std::string item = Item(static_cast<ValueId>(v));
      if (Status s = CheckType(g_.values[v].type); !s) Report(item, s.errors());
      CheckExprs(item, g_.values[v].type.leaf().dims, DType::Index());
    }
    CheckExprs("constraints", Conditions(g_), DType::Bool());
    for (ValueId v : g_.inputs) MarkShown(g_.value(v).type.leaf());
    for (const Node& n : g_.nodes) {
      if (const Var dim = DefinedDim(n)) shown_.insert(dim.get());
    }
    for (const Dim& d : g_.dims) {
      if (depth_ == 0 && !shown_.contains(d.var.get()))
        Report("dim " + d.var->name,
               "no input has it as a dim and no node defines it, so its size cannot be known");
    }
  }

  void MarkShown(const TensorType& type) {
    for (const Expr& d : type.dims) {
      if (IsA<VarNode>(d)) shown_.insert(As<VarNode>(d));
    }
  }

  void CheckExprs(const std::string& item, const std::vector<Expr>& list, DType dtype) {
    for (const Expr& e : list) {
      if (!e) {
        Report(item, "a null expression");
        continue;
      }
      if (e->dtype != dtype)
        Report(item, fmt::format("expected {} expressions, but got {}", dtype.ToString(),
                                 e->dtype.ToString()));
      if (AsInt(e)) continue;
      PreOrder(e, [&](const NodeRef& n) {
        if (const VarNode* var = As<VarNode>(n); var && !declared_.contains(var)) {
          Report(item, fmt::format("dim {} is not declared", Quoted(var->name)));
        }
        return true;
      });
    }
  }

  void CheckPayloads() {
    for (size_t v = 0; v < g_.values.size(); ++v) {
      const Value& value = g_.values[v];
      if (!value.IsConstant()) continue;
      const TensorType& type = value.type.leaf();
      if (!value.type.IsTensor() || type.dtype.IsString()) {
        Report(Item(static_cast<ValueId>(v)),
               fmt::format("expected a constant of numbers or bools, but got {}",
                           value.type.ToString()));
        continue;
      }
      std::optional<int64_t> count = StaticCount(type.dims);
      const size_t got = value.payload.bytes().size();
      if (!count ||
          static_cast<uint64_t>(*count) * static_cast<uint64_t>(type.dtype.Bytes()) != got) {
        Report(Item(static_cast<ValueId>(v)),
               fmt::format("expected the bytes of {}, but got {}", value.type.ToString(), got));
      }
    }
  }

  void CheckNode(NodeId id) {
    const Node& n = g_.node(id);
    const OpInfo& info = Info(n.op);
    const std::string item = Describe(g_, id);
    const int count = static_cast<int>(n.inputs.size());
    if (count < info.min_inputs || (info.max_inputs >= 0 && count > info.max_inputs)) {
      return Report(item, fmt::format("expected {} to {} inputs, but got {}", info.min_inputs,
                                      info.max_inputs, count));
    }
    for (int i = 0; i < count; ++i) {
      const bool optional = i >= info.min_inputs && info.max_inputs >= 0;
      if (n.inputs[static_cast<size_t>(i)] == kNoValue && !optional)
        return Report(item, fmt::format("input {} is left out", i));
    }
    for (const auto& [name, list] : n.exprs) CheckExprs(item, list, DType::Index());
    Attrs complete = n.attrs;
    if (Status s = CompleteAttrs(n.op, RankOfFirst(g_, n), &complete, n.exprs); !s)
      return Report(item, s.errors());
    if (!(complete == n.attrs)) return Report(item, "expected all attributes of the operator");
    if (n.regions.size() != static_cast<size_t>(info.num_regions)) {
      return Report(item, fmt::format("expected {} region{}, but got {}", info.num_regions,
                                      info.num_regions == 1 ? "" : "s", n.regions.size()));
    }
    CheckTypes(id);
    if (n.op == OpKind::kFused) CheckFused(id);
  }

  Expected<Types> TypesOf(const Node& n) const {
    if (Info(n.op).num_regions > 0) return InferRegionTypes(g_, n);
    std::vector<const TensorType*> types;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const ValueId v = n.inputs[i];
      if (v != kNoValue && !g_.IsTensor(v))
        return MakeError(fmt::format("expected input {} to be a tensor, but got {}", i,
                                     g_.value(v).type.ToString()));
      types.push_back(v == kNoValue ? nullptr : &g_.type(v));
    }
    return InferTypes({n.op, n.attrs, n.exprs, types, {}, nullptr});
  }

  void CheckTypes(NodeId id) {
    const Node& n = g_.node(id);
    const std::string item = Describe(g_, id);
    for (const std::shared_ptr<const Graph>& region : n.regions) {
      if (!region) return Report(item, "expected regions, but one is missing");
      const Diagnostics inside = Verifier(*region, depth_ + 1).Run();
      Report(item, inside);
      if (!inside.empty()) return;
    }
    Expected<Types> want = TypesOf(n);
    if (!want) return Report(item, want.errors());
    const bool all = Info(n.op).num_regions > 0;
    if (n.outputs.size() > want->size() || (n.outputs.empty() && !all) ||
        (all && n.outputs.size() != want->size())) {
      return Report(item, fmt::format("expected {}{} result{}, but got {}",
                                      all || want->size() == 1 ? "" : "1 to ", want->size(),
                                      want->size() == 1 ? "" : "s", n.outputs.size()));
    }
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      const Type& got = g_.value(n.outputs[i]).type;
      Type& expected = (*want)[i];
      if (!all && got.IsTensor()) {  // where a value lies is the passes' choice
        expected.tensor().layout = got.tensor().layout;
        expected.tensor().place = got.tensor().place;
      }
      if (expected == got) continue;
      Report(item, fmt::format("expected its {} to be {}, but got {}",
                               i == 0 ? "output" : fmt::format("result {}", i), expected.ToString(),
                               got.ToString()));
    }
  }

  void CheckFused(NodeId id) {
    const Node& n = g_.node(id);
    const std::string item = Describe(g_, id);
    const Graph& region = *n.regions[0];
    for (const Node& inner : region.nodes) {
      if (Info(inner.op).num_regions > 0)
        Report(item, "expected a group of operators without regions");
    }
  }

  const Graph& g_;
  const int depth_;
  Diagnostics errors_;
  std::unordered_set<const VarNode*> declared_, shown_;
};

}  // namespace

Status Verify(const Graph& g) {
  Diagnostics errors = Verifier(g, 0).Run();
  if (!errors.empty()) return errors;
  return Ok();
}

}  // namespace tenon::graph
