// Two questions. Which values that kernels hand to each other may be kept in 16 bits? Those that
// are activations: results of products, norms and pools, what is computed of such by elements, and
// all factors of products. Not those that are added up next and may be far from 1 (squares, powers,
// exponentials), nor what nobody multiplies (masks, positions). Large constants that kernels look
// rows up in (embeddings) are activations, too, where what is made of them by elements is kept in
// 16 bits. Then each group is rewritten for its border:
//
//   %2: f32[8, 4] = fused(%0, %w, %b) region(%0: f32[8, 6], %1: f32[6, 4], %2: f32[4]) {
//     %3: f32[8, 4] = matmul(%0, %1)
//     %4: f32[8, 4] = add(%3, %2) … }
//
// becomes, with %0 an activation and %2 one,
//
//   %w16: f16[6, 4] = cast(%w)
//   %2: f16[8, 4] = fused(%0, %w16, %b) region(%0: f16[8, 6], %1: f16[6, 4], %2: f32[4]) {
//     %3: f32[8, 4] = matmul(%0, %1) {result: "f32"}
//     %4: f32[8, 4] = add(%3, %2)
//     %5: f16[8, 4] = cast(%4) … }
#include "plan/narrow.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <span>

#include "graph/dims.h"
#include "graph/edit.h"
#include "graph/pass/constants.h"
#include "graph/pass/pattern.h"
#include "ops/algorithm.h"
#include "ops/fusing.h"
#include "ops/kernel.h"
#include "plan/region.h"

namespace tenon::graph {

namespace {

const DType kF32 = DType::Float(32);

// Products along one element add nothing up: a multiplication of elements, such as positions by
// frequencies, which lose too much in 16 bits.
bool IsContraction(const Graph& g, const Node& n) {
  if (n.op != OpKind::kMatMul) return n.op == OpKind::kConv || n.op == OpKind::kAttention;
  const std::vector<Expr>& dims = g.type(n.inputs[0]).dims;
  const bool turned = n.attrs.Get<bool>("trans_a", false) && dims.size() > 1;
  return dims.empty() || !IsOne(turned ? dims[dims.size() - 2] : dims.back());
}
size_t FactorsOf(const Graph& g, const Node& n) {
  if (!IsContraction(g, n)) return 0;
  return n.op == OpKind::kAttention ? 3 : 2;
}
bool IsMove(OpKind op) {
  return Info(op).map == IndexMapClass::kInjective || op == OpKind::kExpand;
}
// The operands of a move that its result has elements of.
bool IsMovedOperand(const Node& n, size_t i) {
  if (n.op == OpKind::kConcat || n.op == OpKind::kPad) return true;
  return n.op != OpKind::kOneHot && n.op != OpKind::kRange && i == 0;
}

std::string KindOf(const Node& n) { return n.attrs.GetString("kind"); }

// What a row of a table may take part in: sums, scaling, norms and products, which take 16 bits of
// it for as good as all. Not what tells numbers near each other apart, or is steep: angles are
// rounded by more than a turn, and numbers of things to others.
bool IsForgiving(const Graph& g, const Node& n) {
  const bool of_floats = std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) {
    return v != kNoValue && g.IsTensor(v) && g.type(v).dtype.IsFloat();
  });
  if (!of_floats) return true;
  switch (n.op) {
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kDiv:
    case OpKind::kSqrt:
    case OpKind::kReciprocal:
    case OpKind::kLayerNorm:
    case OpKind::kMatMul: return true;
    case OpKind::kPow: {
      const std::optional<double> exponent = ScalarOf(g, n.inputs[1]);
      return exponent && std::abs(*exponent) <= 2;
    }
    case OpKind::kReduce: return KindOf(n) == "mean" || KindOf(n) == "sum";
    default: return IsMove(n.op);
  }
}

// Tables below that are not worth a conversion.
constexpr size_t kLargeTable = size_t{1} << 20;

// Whether no element of f32 is too large for the type, infinite or no number.
bool FitInto(DType type, std::span<const std::byte> bytes) {
  const float most = type == DType::Float(16) ? 65504.F : 0x1.fep127F;
  constexpr size_t kBlock = 4096;
  for (size_t at = 0; at < bytes.size(); at += kBlock) {
    float values[kBlock / sizeof(float)] = {};
    std::memcpy(values, bytes.data() + at, std::min(kBlock, bytes.size() - at));
    bool fit = true;
    for (const float value : values) fit &= std::abs(value) <= most;
    if (!fit) return false;
  }
  return true;
}

// The value converted, by a new node with the value's name.
ValueId AddCast(Graph* g, ValueId v, DType to) {
  TensorType type = g->type(v);
  type.dtype = to;
  Node n;
  n.op = OpKind::kCast;
  n.name = g->value(v).name;
  n.inputs = {v};
  n.attrs = Attrs{{"to", to.ToString()}};
  const ValueId cast = g->node(g->AddNode(std::move(n), {type})).outputs[0];
  g->value(cast).name = g->value(v).name;
  return cast;
}

// Rewrites one group's region, whose inputs' types have been set already.
class RegionNarrower {
 public:
  RegionNarrower(Graph region, DType narrow, bool narrow_factors)
      : out_(std::move(region)), narrow_(narrow), narrow_factors_(narrow_factors) {}

  Graph Run(const std::vector<bool>& narrow_results) {
    std::vector<Node> nodes;
    std::swap(nodes, out_.nodes);
    for (Value& v : out_.values) v.producer = kNoNode;
    for (Node& n : nodes) Put(std::move(n));
    for (size_t k = 0; k < out_.outputs.size(); ++k) {
      ValueId& v = out_.outputs[k];
      if (narrow_results[k] && out_.type(v).dtype == kF32) {
        v = Cast(v, narrow_);
      } else if (!narrow_results[k]) {
        v = Wide(v);
      }
    }
    Compact(out_);
    return std::move(out_);
  }

 private:
  bool IsNarrow(ValueId v) const { return v != kNoValue && out_.type(v).dtype == narrow_; }

  ValueId Cast(ValueId v, DType to) {
    auto [it, is_new] = casts_.emplace(v, kNoValue);
    if (!is_new) return it->second;
    it->second = AddCast(&out_, v, to);
    return it->second;
  }
  // What was narrow before this pass stays what it is: only values of ours are widened.
  ValueId Wide(ValueId v) { return ours_.contains(v) ? Cast(v, kF32) : v; }

  // Appends a node of the region with operands of the types that it takes.
  void Put(Node n) {
    const bool moves = IsMove(n.op) || (n.op == OpKind::kMaxPool && n.outputs.size() == 1);
    const size_t factors = narrow_factors_ ? FactorsOf(out_, n) : 0;
    // What moves only values of ours; ranges and such move none.
    size_t moved = 0, wide = 0;
    for (size_t i = 0; i < n.inputs.size() && moves; ++i) {
      if (n.inputs[i] == kNoValue || !IsMovedOperand(n, i)) continue;
      ++moved;
      wide += !ours_.contains(n.inputs[i]);
    }
    bool narrow = moved > 0 && wide == 0;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      ValueId& v = n.inputs[i];
      if (v == kNoValue) continue;
      if (i < factors) {
        if (!IsNarrow(v)) v = Cast(v, narrow_);
      } else if (!narrow || !IsMovedOperand(n, i)) {
        v = Wide(v);
      }
    }
    if (factors > 0 && n.op != OpKind::kAttention) n.attrs.Set("result", kF32.ToString());
    if (factors > 0 && n.op == OpKind::kAttention) narrow = true;
    const auto id = static_cast<NodeId>(out_.nodes.size());
    for (size_t k = 0; k < n.outputs.size(); ++k) {
      Value& v = out_.value(n.outputs[k]);
      v.producer = id;
      v.output = static_cast<int32_t>(k);
      if (!narrow) continue;
      v.type.tensor().dtype = narrow_;
      ours_.emplace(n.outputs[k], true);
    }
    out_.nodes.push_back(std::move(n));
  }

 public:
  /// Inputs of the region that have become narrow.
  void SetNarrow(ValueId v) {
    out_.value(v).type.tensor().dtype = narrow_;
    ours_.emplace(v, true);
  }

 private:
  Graph out_;
  const DType narrow_;
  const bool narrow_factors_;
  std::map<ValueId, ValueId> casts_;
  std::map<ValueId, bool> ours_;
};

class Narrower {
 public:
  Narrower(const Graph& g, const GraphPassContext& context, DType narrow)
      : g_(g), machine_(*context.machine), to_(narrow), constant_(ConstantValues(g)) {}

  Graph Run() {
    for (NodeId n : KernelNodes(g_)) {
      const Node& node = g_.node(n);
      const bool is_own = !node.plan && !IsControl(node.op) && !CallsFunction(node);
      if (is_own) groups_.push_back(GroupOf(g_, n));
    }
    users_ = Users(g_);
    group_of_.assign(g_.nodes.size(), nullptr);
    for (const Group& group : groups_) group_of_[static_cast<size_t>(group.node)] = &group;
    for (size_t v = 0; v < g_.values.size(); ++v)
      table_.push_back(IsTable(static_cast<ValueId>(v)));
    do Choose();
    while (LeaveOutTables());
    for (const Group& group : groups_) Change(group);
    for (size_t v = 0; v < narrow_.size(); ++v) {
      if (narrow_[v]) g_.values[v].type.tensor().dtype = to_;
    }
    TopologicalSort(g_);
    Compact(g_);
    return std::move(g_);
  }

 private:
  // ---- Which values ----

  void Choose() {
    narrow_.assign(g_.values.size(), false);
    for (const Group& group : groups_) {
      const bool activation = IsActivation(group);
      for (ValueId v : g_.node(group.node).outputs) {
        narrow_[static_cast<size_t>(v)] =
            CanBe(v) && (activation || IsFactor(v)) && !IsAddedUp(v, group);
      }
    }
    // What is only moved to a place where it is wide is wide.
    for (size_t i = groups_.size(); i-- > 0;) {
      for (ValueId v : g_.node(groups_[i].node).outputs) {
        if (narrow_[static_cast<size_t>(v)] && IsOnlyMovedWide(v))
          narrow_[static_cast<size_t>(v)] = false;
      }
    }
  }

  // A large constant that nobody does anything with but look up its rows for what forgives 16 bits,
  // or multiply it.
  bool IsTable(ValueId v) const {
    const Value& value = g_.value(v);
    if (!value.IsConstant() || g_.type(v).dtype != kF32 || g_.type(v).layout) return false;
    if (g_.type(v).dims.size() != 2 || value.payload.bytes().size() < kLargeTable) return false;
    bool looked_up = false;
    for (NodeId u : users_[static_cast<size_t>(v)]) {
      if (IsKnown(u)) continue;
      const Group* group = group_of_[static_cast<size_t>(u)];
      if (!group) return false;
      if (IsFactorOf(*group, v)) continue;
      if (!IsLookedUp(*group, v) || !Forgives(u)) return false;
      looked_up = true;
    }
    return looked_up && FitInto(to_, value.payload.bytes());
  }

  // Whether all of a group is forgiving, and of those that read what it makes by elements.
  bool Forgives(NodeId n) const {
    const Group* group = group_of_[static_cast<size_t>(n)];
    if (!group) return false;
    for (const Node& own : group->region.nodes) {
      if (!IsForgiving(group->region, own)) return false;
    }
    if (group->anchor != kNoNode) return true;
    const std::vector<ValueId>& results = g_.node(n).outputs;
    return std::all_of(results.begin(), results.end(), [&](ValueId v) {
      const std::vector<NodeId>& users = users_[static_cast<size_t>(v)];
      return std::all_of(users.begin(), users.end(), [&](NodeId u) { return Forgives(u); });
    });
  }

  // Whether the group takes rows of it, and does nothing else with it.
  static bool IsLookedUp(const Group& group, ValueId v) {
    for (size_t i = 0; i < group.operands.size(); ++i) {
      if (group.operands[i] != v) continue;
      for (const Node& n : group.region.nodes) {
        for (size_t k = 0; k < n.inputs.size(); ++k) {
          if (n.inputs[k] != group.region.inputs[i]) continue;
          if (n.op != OpKind::kGather || k != 0 || n.attrs.GetInt("axis", 0) != 0) return false;
        }
      }
    }
    return true;
  }

  // Tables whose rows are handed on as they are, or computed by elements, and stay wide there are
  // none; whether there were such. What a kernel adds up of them is wide and may be.
  bool LeaveOutTables() {
    bool found = false;
    for (size_t v = 0; v < table_.size(); ++v) {
      if (!table_[v]) continue;
      for (NodeId u : users_[v]) {
        if (!IsKnown(u) && HandsOnWide(*group_of_[static_cast<size_t>(u)])) table_[v] = false;
      }
      found |= !table_[v];
    }
    return found;
  }

  // Whether a result stays wide that the group's anchor has no part in.
  bool HandsOnWide(const Group& group) const {
    const Graph& r = group.region;
    std::vector<bool> adds_up(r.values.size());
    for (size_t n = 0; n < r.nodes.size(); ++n) {
      const Node& node = r.nodes[n];
      const bool behind = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
        return v != kNoValue && adds_up[static_cast<size_t>(v)];
      });
      for (ValueId v : node.outputs)
        adds_up[static_cast<size_t>(v)] = behind || static_cast<NodeId>(n) == group.anchor;
    }
    for (size_t k = 0; k < r.outputs.size(); ++k) {
      const auto result = static_cast<size_t>(g_.node(group.node).outputs[k]);
      if (!narrow_[result] && !adds_up[static_cast<size_t>(r.outputs[k])]) return true;
    }
    return false;
  }

  // Whether its results are computed while compiling.
  bool IsKnown(NodeId n) const {
    const std::vector<ValueId>& results = g_.node(n).outputs;
    return std::all_of(results.begin(), results.end(),
                       [&](ValueId v) { return constant_[static_cast<size_t>(v)]; });
  }

  bool IsKeptNarrow(ValueId v) const {
    return narrow_[static_cast<size_t>(v)] || table_[static_cast<size_t>(v)];
  }

  // f32, handed from kernel to kernel and to nobody else.
  bool CanBe(ValueId v) const {
    if (!g_.IsTensor(v) || g_.type(v).dtype != kF32 || g_.type(v).layout) return false;
    if (std::find(g_.outputs.begin(), g_.outputs.end(), v) != g_.outputs.end()) return false;
    const std::vector<NodeId>& users = users_[static_cast<size_t>(v)];
    return std::all_of(users.begin(), users.end(),
                       [&](NodeId u) { return group_of_[static_cast<size_t>(u)] != nullptr; });
  }

  bool IsActivation(const Group& group) const {
    const auto is_narrow = [&](ValueId v) { return v != kNoValue && IsKeptNarrow(v); };
    const bool follows = std::any_of(group.operands.begin(), group.operands.end(), is_narrow);
    if (group.anchor == kNoNode) return follows;
    const Node& anchor = group.region.node(group.anchor);
    switch (anchor.op) {
      case OpKind::kMatMul: return follows || IsContraction(group.region, anchor);
      case OpKind::kConv:
      case OpKind::kWinogradConv:
      case OpKind::kAttention:
      case OpKind::kLayerNorm:
      case OpKind::kSoftmax:
      case OpKind::kAvgPool: return true;
      case OpKind::kMaxPool: return anchor.outputs.size() == 1;
      case OpKind::kReduce: {
        // Of activations themselves: squares that the kernel makes of them are none.
        const std::string kind = KindOf(anchor);
        return follows && (kind == "mean" || kind == "max" || kind == "min") &&
               OperandBehind(group, anchor.inputs[0]) != kNoValue;
      }
      default: return false;
    }
  }

  // Whether a product multiplies it, perhaps behind views.
  bool IsFactor(ValueId v) const {
    for (NodeId u : users_[static_cast<size_t>(v)]) {
      const Group* group = group_of_[static_cast<size_t>(u)];
      if (group && IsFactorOf(*group, v)) return true;
    }
    return false;
  }

  // The outer value that a value of the region is a view of; kNoValue for what is computed there.
  static ValueId OperandBehind(const Group& group, ValueId inner) {
    const Graph& r = group.region;
    while (r.value(inner).producer != kNoNode) {
      const Node& n = r.node(r.value(inner).producer);
      if (!IsMove(n.op)) return kNoValue;
      inner = n.inputs[0];
    }
    for (size_t i = 0; i < r.inputs.size(); ++i) {
      if (r.inputs[i] == inner) return group.operands[i];
    }
    return kNoValue;
  }

  // What a kernel computes, but for what it adds up before its anchor.
  static std::vector<NodeId> WithoutSums(const Group& group) {
    const Graph& r = group.region;
    std::vector<bool> seen(r.nodes.size());
    std::vector<ValueId> pending = r.outputs;
    std::vector<NodeId> nodes;
    while (!pending.empty()) {
      const NodeId n = r.value(pending.back()).producer;
      pending.pop_back();
      if (n == kNoNode || seen[static_cast<size_t>(n)]) continue;
      seen[static_cast<size_t>(n)] = true;
      if (n != group.anchor && !ops::HasElementDefinition(r.node(n).op)) continue;
      nodes.push_back(n);
      for (ValueId v : r.node(n).inputs) {
        if (v != kNoValue) pending.push_back(v);
      }
    }
    return nodes;
  }

  // Whether it goes into a sum and may be much larger than an activation.
  bool IsAddedUp(ValueId v, const Group& made) const {
    const std::vector<NodeId> nodes = WithoutSums(made);
    const bool steep = std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
      const Node& n = made.region.node(id);
      return n.op == OpKind::kPow || n.op == OpKind::kExp ||
             (n.op == OpKind::kMul && n.inputs[0] == n.inputs[1]);
    });
    if (!steep && made.anchor != kNoNode) return false;
    for (NodeId u : users_[static_cast<size_t>(v)]) {
      const Group* group = group_of_[static_cast<size_t>(u)];
      if (!group || group->anchor == kNoNode) continue;
      const Node& anchor = group->region.node(group->anchor);
      const bool adds =
          anchor.op == OpKind::kCumSum || anchor.op == OpKind::kLogSoftmax ||
          (anchor.op == OpKind::kReduce && KindOf(anchor) != "max" && KindOf(anchor) != "min");
      if (adds) return true;
    }
    return false;
  }

  bool IsOnlyMovedWide(ValueId v) const {
    const std::vector<NodeId>& users = users_[static_cast<size_t>(v)];
    return !users.empty() && std::all_of(users.begin(), users.end(), [&](NodeId u) {
      const Group* group = group_of_[static_cast<size_t>(u)];
      if (!group) return false;
      const std::vector<Node>& nodes = group->region.nodes;
      const bool moves =
          std::all_of(nodes.begin(), nodes.end(), [](const Node& n) { return IsMove(n.op); });
      const std::vector<ValueId>& results = g_.node(u).outputs;
      return moves && std::none_of(results.begin(), results.end(),
                                   [&](ValueId r) { return narrow_[static_cast<size_t>(r)]; });
    });
  }

  // ---- The groups ----

  void Change(const Group& group) {
    const bool factors = MultipliesFactors(group);
    const bool touched = factors || std::any_of(group.operands.begin(), group.operands.end(),
                                                [&](ValueId v) { return IsKeptNarrow(v); });
    const std::vector<ValueId>& results = g_.node(group.node).outputs;
    std::vector<bool> narrow_results;
    for (ValueId v : results) narrow_results.push_back(narrow_[static_cast<size_t>(v)]);
    if (!touched && std::none_of(narrow_results.begin(), narrow_results.end(),
                                 [](bool narrow) { return narrow; })) {
      return;
    }
    std::vector<ValueId> operands;
    Graph region = Changed(group, factors, narrow_results, &operands);
    if (factors && !IsServed(region) && IsServed(group.region))
      region = Changed(group, false, narrow_results, &operands);
    // Constants are converted while compiling, values that stayed wide in a kernel of their own.
    for (size_t i = 0; i < operands.size(); ++i) {
      const ValueId v = operands[i];
      const bool here = region.type(region.inputs[i]).dtype == to_ && g_.type(v).dtype == kF32;
      if (here && !narrow_[static_cast<size_t>(v)]) operands[i] = Converted(v);
    }
    Put(group, std::move(region), operands);
  }

  // Whether it has products, all of two values of f32, none of them built into the kernel: one that
  // is computed there is converted there.
  static bool MultipliesFactors(const Group& group) {
    bool multiplies = false;
    for (const Node& n : group.region.nodes) {
      for (size_t i = 0; i < FactorsOf(group.region, n); ++i) {
        if (group.region.type(n.inputs[i]).dtype != kF32 ||
            (OperandBehind(group, n.inputs[i]) == kNoValue &&
             group.region.value(n.inputs[i]).producer == kNoNode)) {
          return false;
        }
        multiplies = true;
      }
    }
    return multiplies;
  }

  Graph Changed(const Group& group, bool factors, const std::vector<bool>& narrow_results,
                std::vector<ValueId>* operands) const {
    *operands = group.operands;
    RegionNarrower narrower(group.region, to_, factors);
    for (size_t i = 0; i < operands->size(); ++i) {
      const ValueId v = (*operands)[i];
      const bool is_factor = factors && IsFactorOf(group, v);
      // A table that this group multiplies, but not in 16 bits, is read as it is.
      const bool narrow = narrow_[static_cast<size_t>(v)] ||
                          (table_[static_cast<size_t>(v)] && !IsFactorOf(group, v));
      if (narrow || is_factor) narrower.SetNarrow(group.region.inputs[i]);
    }
    return narrower.Run(narrow_results);
  }

  static bool IsFactorOf(const Group& group, ValueId v) {
    for (const Node& n : group.region.nodes) {
      for (size_t i = 0; i < FactorsOf(group.region, n); ++i) {
        if (OperandBehind(group, n.inputs[i]) == v) return true;
      }
    }
    return false;
  }

  // Whether an algorithm other than the definition computes it here.
  bool IsServed(const Graph& region) const {
    const ops::Site site{region, ops::AnchorOf(region), machine_};
    const auto all = ops::Algorithms();
    return std::any_of(all.begin(), all.end() - 1,
                       [&](const ops::Algorithm* a) { return ops::Applies(*a, site); });
  }

  ValueId Converted(ValueId v) {
    auto [it, is_new] = converted_.emplace(v, kNoValue);
    if (!is_new) return it->second;
    const NodeId producer = g_.value(v).producer;
    ValueId made = kNoValue;
    if (producer != kNoNode && g_.node(producer).op == OpKind::kTranspose &&
        table_[static_cast<size_t>(g_.node(producer).inputs[0])]) {
      // Of the narrow table, whose memory it may be.
      Node n = g_.node(producer);
      n.inputs = {Converted(n.inputs[0])};
      TensorType type = g_.type(v);
      type.dtype = to_;
      made = g_.node(g_.AddNode(std::move(n), {type})).outputs[0];
      g_.value(made).name = g_.value(v).name;
    } else {
      made = AddCast(&g_, v, to_);
    }
    narrow_.resize(g_.values.size(), false);
    table_.resize(g_.values.size(), false);
    return converted_[v] = made;
  }

  void Put(const Group& group, Graph region, const std::vector<ValueId>& operands) {
    Node& node = g_.node(group.node);
    if (node.op != OpKind::kFused && region.nodes.size() == 1) {
      node.attrs = region.nodes[0].attrs;
      for (ValueId& v : node.inputs) {
        const auto at = std::find(group.operands.begin(), group.operands.end(), v);
        if (at != group.operands.end())
          v = operands[static_cast<size_t>(at - group.operands.begin())];
      }
      return;
    }
    Node fused;
    fused.op = OpKind::kFused;
    fused.name = node.name;
    fused.inputs = operands;
    fused.outputs = node.outputs;
    fused.regions = {std::make_shared<const Graph>(std::move(region))};
    node = std::move(fused);
  }

  Graph g_;
  const Machine& machine_;
  const DType to_;
  const std::vector<bool> constant_;
  std::vector<Group> groups_;
  std::vector<const Group*> group_of_;  // by node
  std::vector<std::vector<NodeId>> users_;
  std::vector<bool> narrow_;  // by value: is kept in 16 bits
  std::vector<bool> table_;   // by value: a constant that is, for its rows are
  std::map<ValueId, ValueId> converted_;
};

}  // namespace

Graph NarrowF16(const Graph& g, const GraphPassContext& context) {
  return Narrower(g, context, DType::Float(16)).Run();
}

Graph NarrowBf16(const Graph& g, const GraphPassContext& context) {
  return Narrower(g, context, DType::BFloat16()).Run();
}

StoredFloats StoredFloatsOf(const Graph& g) {
  StoredFloats out;
  for (NodeId n : KernelNodes(g)) {
    for (ValueId v : g.node(n).outputs) {
      const DType type = g.type(v).dtype;
      if (!type.IsFloat()) continue;
      if (type.bits < 32) {
        ++out.narrow;
      } else if (type == kF32) {
        out.wide.push_back(g.value(v).name.empty() ? g.node(n).name : g.value(v).name);
      }
    }
  }
  return out;
}

}  // namespace tenon::graph
