// Graphs made node by node, with types, known elements and conditions inferred on the way.
//
// A node is checked, its attributes are completed, and its operator's rules say three things: the
// results' types; the elements of the first result, where they are few and follow from known ones;
// and what must hold of sizes. A node that would give its first input back is not added, and one
// whose elements are all numbers is a constant. That is what makes the way by which exporters
// compute shapes disappear while a model is read:
//
//   %1 = shape(%0) ; %2 = slice(%1) ; %3 = concat(%2, [-1]) ; reshape(%0, %3)   of f32[batch, 3, 4]
//
// becomes, since %1 is known to be [batch, 3, 4] though batch is no number,
//
//   %1 "y": f32[batch, 12] = reshape(%0) {shape: [batch, 12]}
//
// and the nodes that nobody reads go in Finish. A condition with one bound on a single dim narrows
// the dim's range; others are kept with the graph. How many elements are followed is bounded for
// each tensor and for the whole graph (Limits), so that large tables cost nothing.
#include "graph/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/dims.h"
#include "graph/edit.h"
#include "ir/visit.h"
#include "support/check.h"

namespace tenon::graph {
namespace {

Diagnostics Located(Diagnostics errors, const std::string& item) {
  for (Diagnostic& d : errors) {
    if (d.loc.item.empty()) d.loc.item = item;
  }
  return errors;
}

Status CheckArity(OpKind op, const std::vector<ValueId>& inputs) {
  const OpInfo& info = Info(op);
  const int count = static_cast<int>(inputs.size());
  const bool enough = count >= info.min_inputs && (info.max_inputs < 0 || count <= info.max_inputs);
  if (!enough || inputs.size() > Limits::kInputs) {
    return MakeError(
        fmt::format("expected {} to have {}{} inputs, but got {}", info.name, info.min_inputs,
                    info.max_inputs < 0                  ? " or more"
                    : info.max_inputs == info.min_inputs ? ""
                                                         : fmt::format(" to {}", info.max_inputs),
                    count));
  }
  for (int i = 0; i < count; ++i) {
    const bool optional = i >= info.min_inputs && info.max_inputs >= 0;
    if (inputs[static_cast<size_t>(i)] == kNoValue && !optional) {
      return MakeError(fmt::format("expected input {} of {}, but it is left out", i, info.name));
    }
  }
  return Ok();
}

// Where an operator gives its first input back: the same elements in the same places.
struct IdentityRule {
  OpKind op;
  bool (*holds)(const OpView& v, const TensorType& out);
};

bool SameType(const OpView& v, const TensorType& out) { return out == v.in(0); }

bool AllOf(const std::vector<int64_t>& list, int64_t value) {
  return std::all_of(list.begin(), list.end(), [&](int64_t x) { return x == value; });
}

const std::vector<Expr>& ExprsOf(const OpView& v, const char* name) {
  return v.exprs.find(name)->second;
}

constexpr IdentityRule kIdentities[] = {
    {OpKind::kReshape, SameType},
    {OpKind::kExpand, SameType},
    {OpKind::kCast, SameType},
    {OpKind::kConcat, [](const OpView& v, const TensorType&) { return v.inputs.size() == 1; }},
    {OpKind::kPad,
     [](const OpView& v, const TensorType&) {
       const std::vector<Expr>& pads = ExprsOf(v, "pads");
       return std::all_of(pads.begin(), pads.end(), IsZero);
     }},
    {OpKind::kTranspose,
     [](const OpView& v, const TensorType&) {
       const std::vector<int64_t> perm = v.attrs.GetInts("perm");
       return std::is_sorted(perm.begin(), perm.end());
     }},
    {OpKind::kSlice,
     [](const OpView& v, const TensorType& out) {
       const std::vector<Expr>& starts = ExprsOf(v, "starts");
       return out == v.in(0) && std::all_of(starts.begin(), starts.end(), IsZero) &&
              AllOf(v.attrs.GetInts("steps"), 1);
     }},
    // Over no axes, what these kinds compute from one element is that element.
    {OpKind::kReduce,
     [](const OpView& v, const TensorType&) {
       const std::string kind = v.attrs.GetString("kind");
       return v.attrs.GetInts("axes").empty() &&
              (kind == "sum" || kind == "mean" || kind == "max" || kind == "min" || kind == "prod");
     }},
};

bool IsIdentity(const OpView& v, const TensorType& out) {
  for (const IdentityRule& rule : kIdentities) {
    if (rule.op == v.op) return rule.holds(v, out);
  }
  return false;
}

}  // namespace

Builder::Builder(std::string name) { graph_.name = std::move(name); }

Builder::Builder(Graph g) : graph_(std::move(g)) {
  for (size_t i = 0; i < graph_.values.size(); ++i) {
    if (std::optional<Elements> e = ElementsOf(graph_.values[i]))
      Remember(static_cast<ValueId>(i), std::move(*e));
  }
  for (const Node& n : graph_.nodes) {
    if (DefinedDim(n) && !IsFoundEarly(n)) late_.insert(DefinedDim(n).get());
  }
}

Graph Builder::Finish() && {
  Compact(graph_);
  return std::move(graph_);
}

namespace {

bool SameExprs(const ExprAttrs& a, const ExprAttrs& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first &&
           std::ranges::equal(x.second, y.second, [](const Expr& l, const Expr& r) {
             return tenon::StructuralEqual(l, r);
           });
  });
}

// Whether two values are computed alike from the same values. Says no where that would take long.
class SameComputation {
 public:
  explicit SameComputation(const Graph& g) : g_(g) {}
  bool operator()(ValueId a, ValueId b) {
    if (a == b) return true;
    if (a == kNoValue || b == kNoValue || left_-- <= 0) return false;
    const Value &x = g_.value(a), &y = g_.value(b);
    if (x.IsConstant() && y.IsConstant()) return SameConstants(x, y);
    if (x.producer == kNoNode || y.producer == kNoNode || x.output != y.output) return false;
    const Node &n = g_.node(x.producer), &m = g_.node(y.producer);
    return n.op == m.op && n.regions.empty() && m.regions.empty() &&
           n.attrs.ToString() == m.attrs.ToString() && SameExprs(n.exprs, m.exprs) &&
           std::ranges::equal(n.inputs, m.inputs, std::ref(*this));
  }

 private:
  static bool SameConstants(const Value& x, const Value& y) {
    constexpr size_t kFew = 4096;  // bytes that are compared
    const auto p = x.payload.bytes(), q = y.payload.bytes();
    return x.type.ToString() == y.type.ToString() && p.size() <= kFew && std::ranges::equal(p, q);
  }

  const Graph& g_;
  int left_ = 200;  // values that are still looked at
};

// The dim that the like of `count` defines, or null. Two nodes that find the same elements (torch
// writes one for each tensor that a mask picks from) find as many, and what they pick fits
// together.
Expr KnownDim(const Graph& g, ValueId count, const Expr& most) {
  for (const Node& n : g.nodes) {
    const Var dim = DefinedDim(n);
    if (!dim) continue;
    const std::vector<Expr>& bound = n.exprs.at("most");
    const bool alike = bound.empty() ? !most : most && tenon::StructuralEqual(bound[0], most);
    if (alike && SameComputation(g)(n.inputs[0], count)) return dim;
  }
  return nullptr;
}

}  // namespace

Expected<Expr> Builder::DefineDim(const std::string& dim_name, ValueId count, const Expr& most) {
  if (const auto number = KnownInts(count); number && number->size() == 1 && number->at(0) >= 0)
    return IndexConst(number->at(0));
  if (Expr known = KnownDim(graph_, count, most)) return known;
  std::string name = dim_name;
  auto taken = [&] {
    return std::any_of(graph_.dims.begin(), graph_.dims.end(),
                       [&](const Dim& d) { return d.var->name == name; });
  };
  for (int i = 1; taken(); ++i) name = fmt::format("{}_{}", dim_name, i);
  const Var dim = VarNode::MakeCount(name);
  const int64_t max = most ? std::clamp<int64_t>(DimRange(most).max, 0, Dim::kNoMax) : Dim::kNoMax;
  graph_.dims.push_back({.var = dim, .min = 0, .max = max, .asker = asker_});
  if (most) late_.insert(dim.get());
  std::vector<Expr> bound;
  if (most) bound.push_back(most);
  TN_RETURN_IF_ERROR(
      Add(OpKind::kDim, {count}, name, {}, {{"size", {dim}}, {"most", std::move(bound)}}));
  return Expr(dim);
}

void Builder::ShareDims(const Builder& outer) {
  graph_.dims = outer.graph_.dims;
  late_ = outer.late_;
}

ValueId Builder::Input(std::string value_name, Type type) {
  return graph_.AddInput(std::move(value_name), std::move(type));
}

ValueId Builder::Constant(std::string value_name, TensorType type, Payload payload) {
  const ValueId v = graph_.AddConstant(std::move(value_name), std::move(type), std::move(payload));
  if (known_left_ <= 0) return v;
  if (std::optional<Elements> e = ElementsOf(graph_.value(v))) Remember(v, std::move(*e));
  return v;
}

ValueId Builder::Scalar(DType dtype, double value) {
  return Constant("", {dtype, {}}, MakePayload(dtype, std::span<const double>(&value, 1)));
}

void Builder::Remember(ValueId v, Elements elements) {
  known_left_ -= static_cast<int64_t>(elements.size()) + 1;
  known_[v] = std::move(elements);
}

const Elements* Builder::Known(ValueId v) const {
  auto it = known_.find(v);
  return it == known_.end() ? nullptr : &it->second;
}

std::optional<std::vector<int64_t>> Builder::KnownInts(ValueId v) const {
  const Elements* elements = Known(v);
  if (!elements) return std::nullopt;
  std::vector<int64_t> out;
  for (const Expr& e : *elements) {
    std::optional<int64_t> n = AsInt(e);
    if (!n) return std::nullopt;
    out.push_back(*n);
  }
  return out;
}

namespace {

// a == min(a, b) says no more than a <= b; likewise max.
Expr Unfold(const Expr& c) {
  const Binary* eq = As<Binary>(c);
  if (!eq || eq->op != BinaryOp::kEq) return c;
  for (const auto& [a, other] : {std::pair(eq->lhs, eq->rhs), std::pair(eq->rhs, eq->lhs)}) {
    const Binary* m = As<Binary>(other);
    if (!m || (m->op != BinaryOp::kMin && m->op != BinaryOp::kMax)) continue;
    for (const auto& [same, bound] : {std::pair(m->lhs, m->rhs), std::pair(m->rhs, m->lhs)}) {
      if (ProveEqual(a, same))
        return SimplifyDim(m->op == BinaryOp::kMin ? Le(a, bound) : Ge(a, bound));
    }
  }
  return c;
}

// Takes `size` >= least into the range of the one dim that the size grows with, through what
// windows make of sizes: (n + 1) / 2 * 3 - 4. False where the size is another expression, or no
// size is left.
bool RaiseLeast(std::vector<Dim>* dims, Expr size, int64_t least, const std::string& asker) {
  while (const Binary* b = As<Binary>(size)) {
    const std::optional<int64_t> k = AsInt(b->rhs);
    if (!k) return false;
    switch (b->op) {
      case BinaryOp::kAdd: least -= *k; break;
      case BinaryOp::kSub: least += *k; break;
      case BinaryOp::kDiv: least *= *k; break;
      case BinaryOp::kMul:
        least = least > 0 ? (least + *k - 1) / std::max<int64_t>(*k, 1) : 0;
        break;
      default: return false;
    }
    if ((b->op == BinaryOp::kDiv || b->op == BinaryOp::kMul) && *k < 1) return false;
    size = b->lhs;
  }
  auto it = std::find_if(dims->begin(), dims->end(), [&](const Dim& d) { return d.var == size; });
  if (it == dims->end()) return false;
  const int64_t steps = (std::max(least, it->min) - it->min + it->step - 1) / it->step;
  if (it->min + steps * it->step > it->max) return false;
  if (steps > 0) it->asker = asker;
  it->min += steps * it->step;
  return true;
}

// Takes a bound on a single dim into the dim's range; false where `c` is no such bound, or leaves
// no size.
bool TightenRange(std::vector<Dim>* dims, const Expr& c, const std::string& asker) {
  const Binary* b = As<Binary>(c);
  if (b && b->op == BinaryOp::kLe && AsInt(b->lhs))
    return RaiseLeast(dims, b->rhs, *AsInt(b->lhs), asker);
  if (b && b->op == BinaryOp::kGe && AsInt(b->rhs))
    return RaiseLeast(dims, b->lhs, *AsInt(b->rhs), asker);
  const VarNode* var = b ? As<VarNode>(b->lhs) : nullptr;
  std::optional<int64_t> n = b ? AsInt(b->rhs) : std::nullopt;
  if (!var || !n) return false;
  auto it =
      std::find_if(dims->begin(), dims->end(), [&](const Dim& d) { return d.var.get() == var; });
  if (it == dims->end() || (b->op != BinaryOp::kLe && b->op != BinaryOp::kLt)) return false;
  const int64_t max = std::min(it->max, b->op == BinaryOp::kLt ? *n - 1 : *n);
  if (max < it->min) return false;
  if (max < it->max) it->asker = asker;
  it->max = max;
  return true;
}

}  // namespace

void Builder::Require(const Expr& condition, const std::string& asker) {
  Expr c = Unfold(SimplifyDim(condition));
  if (AsInt(c) && *AsInt(c)) return;
  if (MentionsLate(c)) {
    if (!required_late_) required_late_ = std::move(c);
    return;
  }
  if (TightenRange(&graph_.dims, c, asker)) return;
  if (graph_.constraints.size() > Limits::kConstraints) return;  // the verifier refuses the graph
  for (const Constraint& known : graph_.constraints) {
    if (tenon::StructuralEqual(known.holds, c)) return;
  }
  graph_.constraints.push_back({std::move(c), asker});
}

Status Builder::CheckRequired() {
  const Expr late = std::exchange(required_late_, nullptr);
  if (!late) return Ok();
  return MakeError(fmt::format(
      "needs {}, but that depends on values and is not known when a call begins", DimText(late)));
}

bool Builder::MentionsLate(const Expr& e) const {
  bool found = false;
  PreOrder(e, [&](const NodeRef& n) {
    const auto* var = As<VarNode>(n);
    found |= var && late_.contains(var);
    return true;
  });
  return found;
}

static bool MentionsCount(const Expr& e) {
  bool found = false;
  PreOrder(e, [&](const NodeRef& n) {
    const auto* var = As<VarNode>(n);
    found |= var && var->counts;
    return true;
  });
  return found;
}

Expected<Builder::Inferred> Builder::Infer(Node node) {
  const std::string item = fmt::format("node {} ({})", Quoted(node.name), Name(node.op));
  auto fail = [&](Status s) { return Located(std::move(s.errors()), item); };
  if (graph_.nodes.size() >= Limits::kNodes)
    return fail(MakeLimitError(fmt::format("expected at most {} nodes", Limits::kNodes)));
  if (Status s = CheckArity(node.op, node.inputs); !s) return fail(std::move(s));
  std::vector<const TensorType*> types;
  std::vector<const Elements*> elements;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    if (v != kNoValue && !graph_.IsTensor(v)) {
      return fail(MakeError(fmt::format("expected input {} to be a tensor, but got {}", i,
                                        graph_.value(v).type.ToString())));
    }
    types.push_back(v == kNoValue ? nullptr : &type(v));
    elements.push_back(v == kNoValue ? nullptr : Known(v));
  }
  if (Status s = CompleteAttrs(node.op, RankOfFirst(graph_, node), &node.attrs, node.exprs); !s)
    return fail(std::move(s));
  std::vector<Expr> constraints;
  const OpView view{node.op, node.attrs, node.exprs, types, elements, &constraints};
  Expected<Types> out = InferTypes(view);
  if (!out) return Located(std::move(out.errors()), item);
  Inferred inferred{.types = std::move(*out)};
  const TensorType& first = inferred.types[0].tensor();
  const size_t of_types = constraints.size();
  if (known_left_ > 0) inferred.elements = InferElements(view, first);
  // Elements that are what they are only where something holds that nobody can check before the
  // call are not known.
  const auto is_late = [&](const Expr& c) { return MentionsLate(SimplifyDim(c)); };
  if (std::any_of(constraints.begin() + static_cast<long>(of_types), constraints.end(), is_late)) {
    constraints.resize(of_types);
    inferred.elements.reset();
  }
  // All of its elements are known, whatever they would have been computed from.
  if (StaticCount(first.dims) == 0 && !first.layout) inferred.elements = Elements();
  for (const Expr& c : constraints) Require(c);
  if (Status s = CheckRequired(); !s) return fail(std::move(s));
  // What windows and slices leave of a size must be some of it: no call may be of a size for which
  // something in between has none, or a negative one.
  for (const Type& type : inferred.types) {
    for (const Expr& size : type.leaf().dims) {
      if (IsA<IntConst>(size) || IsA<VarNode>(size) || MentionsLate(size)) continue;
      const int64_t least = MentionsCount(size) ? 0 : 1;
      if (DimRange(size).min < least) Require(Ge(size, IndexConst(least)));
    }
  }
  inferred.identity = IsIdentity(view, first);
  inferred.node = std::move(node);
  return inferred;
}

Expected<ValueId> Builder::Add(OpKind op, std::vector<ValueId> inputs, std::string name,
                               Attrs attrs, ExprAttrs exprs) {
  TN_ASSIGN_OR_RETURN(Inferred made, Infer({.op = op,
                                            .name = std::move(name),
                                            .inputs = std::move(inputs),
                                            .attrs = std::move(attrs),
                                            .exprs = std::move(exprs)}));
  if (made.identity) return made.node.inputs[0];
  std::optional<Elements>& result = made.elements;
  const auto are_numbers = [](const std::vector<Expr>& list) {
    return std::ranges::all_of(list, [](const Expr& e) { return AsInt(e).has_value(); });
  };
  // One without elements may have sizes that are the call's, which no constant has.
  if (result && are_numbers(*result) && are_numbers(made.types[0].tensor().dims)) {
    std::vector<int64_t> numbers;
    for (const Expr& e : *result) numbers.push_back(*AsInt(e));
    const DType dtype = made.types[0].tensor().dtype;
    return Constant(std::move(made.node.name), std::move(made.types[0].tensor()),
                    MakePayload(dtype, std::span<const int64_t>(numbers)));
  }
  const NodeId id = graph_.AddNode(std::move(made.node), {std::move(made.types[0])});
  const ValueId v = graph_.node(id).outputs[0];
  if (result) Remember(v, std::move(*result));
  return v;
}

Expected<std::vector<ValueId>> Builder::AddAll(OpKind op, size_t results,
                                               std::vector<ValueId> inputs, std::string name,
                                               Attrs attrs, ExprAttrs exprs) {
  TN_ASSIGN_OR_RETURN(Inferred made, Infer({.op = op,
                                            .name = std::move(name),
                                            .inputs = std::move(inputs),
                                            .attrs = std::move(attrs),
                                            .exprs = std::move(exprs)}));
  TN_CHECK(results >= 1 && results <= made.types.size(), "{} has {} results", Name(op),
           made.types.size());
  made.types.resize(results);
  return graph_.node(graph_.AddNode(std::move(made.node), std::move(made.types))).outputs;
}

Expected<std::vector<ValueId>> Builder::AddRegions(OpKind op, std::vector<ValueId> inputs,
                                                   std::vector<Graph> regions, std::string name,
                                                   Attrs attrs, ExprAttrs exprs) {
  Node node{.op = op,
            .name = std::move(name),
            .inputs = std::move(inputs),
            .attrs = std::move(attrs),
            .exprs = std::move(exprs)};
  const std::string item = fmt::format("node {} ({})", Quoted(node.name), Name(op));
  if (Status s = CompleteAttrs(op, RankOfFirst(graph_, node), &node.attrs, node.exprs); !s)
    return Located(std::move(s.errors()), item);
  for (Graph& region : regions) {
    for (const Node& n : region.nodes) {
      if (!DefinedDim(n)) continue;
      return Located(Diagnostics{MakeError(fmt::format(
                         "{}: sizes that depend on values cannot be found out inside control flow "
                         "yet",
                         Quoted(n.name)))},
                     item);
    }
    for (const Constraint& c : region.constraints) Require(c.holds, c.asker);
    // What the region itself asks of its sizes; the rest it has from here, also of those that are
    // found while a call runs, of which nothing can be asked.
    for (const Dim& d : region.dims) {
      const auto known = std::find_if(graph_.dims.begin(), graph_.dims.end(),
                                      [&](const Dim& outer) { return outer.var == d.var; });
      const bool is_own = known == graph_.dims.end();
      if (is_own || d.max < known->max) Require(Le(d.var, IndexConst(d.max)), d.asker);
      if (is_own || d.min > known->min) Require(Ge(d.var, IndexConst(d.min)), d.asker);
    }
    region.constraints.clear();
    region.dims = graph_.dims;
    node.regions.push_back(std::make_shared<const Graph>(std::move(region)));
  }
  Expected<Types> types = InferRegionTypes(graph_, node);
  if (!types) return Located(std::move(types.errors()), item);
  return graph_.node(graph_.AddNode(std::move(node), std::move(*types))).outputs;
}

}  // namespace tenon::graph
