// Structural equality of graphs.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "graph/dims.h"
#include "graph/text.h"
#include "ir/visit.h"

namespace tenon::graph {
namespace {

// Walks two graphs in step. What corresponds to each other so far is in renamed_ (dims) and, for
// each pair of bodies, in their pairs (values); where_ keeps the first difference.
class Comparison {
 public:
  explicit Comparison(std::string* where) : where_(where) {}

  bool Graphs(const Graph& a, const Graph& b) {
    if (a.dims.size() != b.dims.size()) return Differ("dims");
    for (size_t i = 0; i < a.dims.size(); ++i) {
      const Dim &x = a.dims[i], &y = b.dims[i];
      if (x.min != y.min || x.max != y.max || x.step != y.step || x.asker != y.asker)
        return Differ(fmt::format("dim {}", i));
      renamed_[x.var.get()] = y.var;
    }
    if (a.metadata != b.metadata) return Differ("metadata");
    if (!Exprs(Conditions(a), Conditions(b)) ||
        !std::ranges::equal(a.constraints, b.constraints, {}, &Constraint::asker,
                            &Constraint::asker))
      return Differ("constraints");
    return Bodies(a, b);
  }

 private:
  using Pairs = std::unordered_map<ValueId, ValueId>;

  bool Differ(const std::string& what) {
    if (where_ && where_->empty()) *where_ = what;
    return false;
  }

  bool Exprs(const std::vector<Expr>& a, const std::vector<Expr>& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const Expr& x, const Expr& y) {
      return tenon::StructuralEqual(Substitute(x, renamed_), y);
    });
  }

  bool SameTypes(const Type& a, const Type& b) const {
    const Type *x = &a, *y = &b;
    for (; !x->IsTensor() && x->kind() == y->kind(); x = &x->element(), y = &y->element()) {
    }
    return x->IsTensor() && y->IsTensor() && SameTensors(x->tensor(), y->tensor());
  }

  bool SameTensors(const TensorType& a, const TensorType& b) const {
    if (a.dtype != b.dtype || a.place != b.place || !Exprs(a.dims, b.dims) ||
        !a.layout != !b.layout)
      return false;
    return !a.layout || tenon::StructuralEqual(Substitute(a.layout, renamed_), b.layout);
  }

  bool Constants(const Value& a, const Value& b) const {
    const std::span<const std::byte> x = a.payload.bytes(), y = b.payload.bytes();
    return x.size() == y.size() &&
           (x.data() == y.data() || std::equal(x.begin(), x.end(), y.begin()));
  }

  // Values correspond where they are defined by corresponding things. Constants pair up when first
  // met.
  bool Values(const Graph& a, const Graph& b, const std::vector<ValueId>& x,
              const std::vector<ValueId>& y, Pairs* pairs) const {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](ValueId v, ValueId w) {
      if (v == kNoValue || w == kNoValue) return v == w;
      if (auto it = pairs->find(v); it != pairs->end()) return it->second == w;
      const Value &p = a.value(v), &q = b.value(w);
      if (!p.IsConstant() || !q.IsConstant() || !SameTypes(p.type, q.type) || !Constants(p, q))
        return false;
      pairs->emplace(v, w);
      return true;
    });
  }

  bool Bodies(const Graph& a, const Graph& b) {
    Pairs pairs;
    if (a.inputs.size() != b.inputs.size()) return Differ("inputs");
    for (size_t i = 0; i < a.inputs.size(); ++i) {
      if (!SameTypes(a.value(a.inputs[i]).type, b.value(b.inputs[i]).type))
        return Differ(fmt::format("input {}", i));
      pairs[a.inputs[i]] = b.inputs[i];
    }
    if (a.nodes.size() != b.nodes.size())
      return Differ(fmt::format("{} and {} nodes", a.nodes.size(), b.nodes.size()));
    for (size_t n = 0; n < a.nodes.size(); ++n) {
      const Node &x = a.nodes[n], &y = b.nodes[n];
      if (!Nodes(a, b, x, y, &pairs))
        return Differ(fmt::format("node {}: {} and {}", n, Name(x.op), Name(y.op)));
      for (size_t i = 0; i < x.outputs.size(); ++i) pairs[x.outputs[i]] = y.outputs[i];
    }
    if (a.output_names != b.output_names) return Differ("output names");
    if (!Values(a, b, a.outputs, b.outputs, &pairs)) return Differ("outputs");
    return true;
  }

  bool Plans(const Plan& a, const Plan& b) const {
    auto same = [&](const Variant& x, const Variant& y) {
      return Exprs({x.when}, {y.when}) && x.schedule == y.schedule;
    };
    return a.algorithm == b.algorithm && a.layout == b.layout && a.seconds == b.seconds &&
           std::equal(a.variants.begin(), a.variants.end(), b.variants.begin(), b.variants.end(),
                      same);
  }

  bool Nodes(const Graph& a, const Graph& b, const Node& x, const Node& y, Pairs* pairs) {
    if (x.op != y.op || !(x.attrs == y.attrs) || x.outputs.size() != y.outputs.size() ||
        x.regions.size() != y.regions.size())
      return false;
    if (!std::equal(x.exprs.begin(), x.exprs.end(), y.exprs.begin(), y.exprs.end(),
                    [&](const auto& p, const auto& q) {
                      return p.first == q.first && Exprs(p.second, q.second);
                    })) {
      return false;
    }
    if (!Values(a, b, x.inputs, y.inputs, pairs)) return false;
    if (!x.plan != !y.plan || (x.plan && !Plans(*x.plan, *y.plan))) return false;
    for (size_t i = 0; i < x.outputs.size(); ++i) {
      if (!SameTypes(a.value(x.outputs[i]).type, b.value(y.outputs[i]).type)) return false;
    }
    for (size_t i = 0; i < x.regions.size(); ++i) {  // no deeper than Limits::kRegionDepth
      if (!Bodies(*x.regions[i], *y.regions[i])) return false;
    }
    return true;
  }

  std::string* where_;
  VarMap renamed_;
};

}  // namespace

bool StructuralEqual(const Graph& a, const Graph& b, std::string* where) {
  if (where) where->clear();
  return Comparison(where).Graphs(a, b);
}

}  // namespace tenon::graph
