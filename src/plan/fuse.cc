// Groups that become one kernel.
//
// A group grows from a seed along the values' users: first from every anchor, which is an operator
// that is no expression of one element (a product, a reduction), then from what is left. What works
// elementwise on the seed's shape joins, as long as one value leaves in the end: growing goes on
// behind a place where two would, and the longest prefix that has one is kept. Then views of the
// anchor's operands are copied inside, and scalars that are constants. So
//
//   %5: f32[5, 3] = matmul(%0, %2) "mm"
//   %6: f32[5, 3] = add(%5, %3)
//   %7: f32[5, 3] = gelu(%6)
//
// becomes
//
//   %4: f32[5, 3] = fused(%0, %2, %3) "mm" region(%0: f32[5, 4], %1: f32[4, 3], %2: f32[3]) {
//     %3 "mm": f32[5, 3] = matmul(%0, %1)
//     %4: f32[5, 3] = add(%3, %2)
//     %5: f32[5, 3] = gelu(%4)
//     return %5 "" }
//
// Where measurements say that a group is faster in parts (plan::Cuts) it ends earlier, at a place
// that one value leaves too; what is behind grows into a group of its own.
//
// What is computed from constants alone stays apart from what is not: it is computed once. But what
// weights and open dims alone decide (positions, what is picked by them) a group without an anchor
// computes again where it reads it. With `table` a weight and n open,
//
//   %4: i64[n] = range(%zero, %one) {size: [n]}
//   %5: f32[n, 8] = gather(%table, %4) {axis: 0}
//   %6: f32[n, 8] = add(%x, %5)
//
// becomes one kernel, which has range, gather and add in its region. So does a group compute again
// what bytes stand for, a product and a sum of their own: to load the bytes is a quarter of loading
// the numbers. With %q: u8[8, 4] read by another kernel too,
//
//   %6: f32[8, 4] = cast(%q)
//   %7: f32[8, 4] = mul(%6, %scale)
//   %8: f32[8, 4] = add(%mm, %7)
//
// is, behind the product %mm, an epilogue that reads %q. Where a launch takes longer than small
// work that is done again, so do reductions and products of a few rows (plan/small_values.h), which
// make others' sums for themselves as well where these are few (plan/small_sums.h). And a reduction
// computes what it reduces, and gives it out where others read it (plan/join_results.h).
#include "plan/fuse.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "graph/dims.h"
#include "graph/edit.h"
#include "graph/pass/constants.h"
#include "ops/algorithm.h"
#include "ops/fusing.h"
#include "ops/kernel.h"
#include "plan/join_results.h"
#include "plan/prices.h"
#include "plan/region.h"
#include "plan/small_sums.h"
#include "plan/small_values.h"
#include "support/hash.h"

namespace tenon::graph {

namespace {

// A group never grows beyond this: expressions are composed, and a kernel should stay readable.
constexpr size_t kMaxGroup = 48;
// Nor does its expression, written out as a tree: where values are read several times it would grow
// exponentially, and not everything that looks at expressions knows shared parts.
constexpr size_t kMaxTree = 1024;
// What is known but for dims is computed again where it is read up to this size, written out.
constexpr size_t kMaxKnownTree = 64;
// So is what numbers of few bits stand for.
constexpr size_t kMaxWidenedTree = 8;
// Nor do nodes this far behind its seed join it, so that growing all groups takes linear time.
constexpr size_t kMaxReach = 4096;

// Every node is in at most one group, and once all have grown in exactly one. One value leaves each
// group, beside those of a seed that has several, so that groups cannot wait for each other.
class Fuser {
 public:
  Fuser(const Graph& g, const GraphPassContext* context, const plan::Cuts& cuts)
      : g_(g),
        context_(context),
        cuts_(cuts),
        users_(Users(g)),
        group_of_(g.nodes.size(), -1),
        constant_(ConstantValues(g)) {
    is_output_.resize(g.values.size());
    for (ValueId v : g.outputs) is_output_[static_cast<size_t>(v)] = true;
    FindKnown();
    FindWidened();
  }

  Graph Run() {
    const Machine& machine = *context_->machine;
    GrowAll();
    small_ = SmallValues(g_, groups_, group_of_, machine);
    JoinResults(g_, small_, machine, &groups_, &group_of_);
    const SecondsOfGroup seconds = [this](const NodeGroup& group) { return SecondsOf(group); };
    LeaveSmallSums(g_, groups_, group_of_, machine, seconds, &small_);
    return Rebuild();
  }

  std::vector<GrownGroup> Groups() {
    GrowAll();
    std::vector<GrownGroup> out;
    for (const NodeGroup& group : groups_) {
      if (group.nodes.size() == 1) continue;
      const std::vector<size_t>& ends = ends_[static_cast<size_t>(&group - groups_.data())];
      out.push_back({KeyOf(group.nodes), g_.value(Results(group.nodes).back()).name, ends});
    }
    return out;
  }

 private:
  void GrowAll() {
    for (size_t n = 0; n < g_.nodes.size(); ++n) {
      if (!ops::HasElementDefinition(g_.nodes[n].op)) Grow(static_cast<NodeId>(n));
    }
    for (size_t n = 0; n < g_.nodes.size(); ++n) {
      if (group_of_[n] < 0) Grow(static_cast<NodeId>(n));
    }
  }

  ValueId Out(NodeId n) const { return g_.node(n).outputs[0]; }

  // Values that depend on constants and open dims alone and cost no more to compute than to load:
  // positions, and what is picked by them. With sizes that are numbers they would be constants.
  void FindKnown() {
    known_tree_.resize(g_.values.size());
    for (const Node& n : g_.nodes) {
      if (IsControl(n.op) || n.outputs.size() != 1 || !ops::HasElementDefinition(n.op)) continue;
      const IndexMapClass map = Info(n.op).map;
      const DType dtype = g_.type(n.outputs[0]).dtype;
      const bool picks = map == IndexMapClass::kInjective;
      const bool counts =
          (map == IndexMapClass::kElementwise || map == IndexMapClass::kBroadcast) &&
          (dtype.IsInt() || dtype.IsBool());
      bool known = picks || counts, open = UsesDims(g_, n);
      size_t tree = 1;
      for (ValueId v : n.inputs) {
        if (v == kNoValue || constant_[static_cast<size_t>(v)]) continue;
        const size_t inside = known_tree_[static_cast<size_t>(v)];
        known &= inside > 0;
        open = true;
        tree += inside;
      }
      if (known && open && tree <= kMaxKnownTree)
        known_tree_[static_cast<size_t>(n.outputs[0])] = tree;
    }
  }

  // Casts from bytes to more bits, and sums and products of such and one number.
  void FindWidened() {
    widened_tree_.resize(g_.values.size());
    bytes_of_.assign(g_.values.size(), kNoValue);
    for (const Node& n : g_.nodes) {
      if (n.outputs.size() != 1 || constant_[static_cast<size_t>(n.outputs[0])]) continue;
      const bool casts = n.op == OpKind::kCast;
      if (!casts && n.op != OpKind::kSub && n.op != OpKind::kAdd && n.op != OpKind::kMul) continue;
      size_t tree = 1, values = 0;
      ValueId of = kNoValue;
      for (ValueId v : n.inputs) {
        if (constant_[static_cast<size_t>(v)] && StaticCount(g_.type(v).dims) == 1) continue;
        const DType from = g_.type(v).dtype;
        const bool bytes = casts && from.IsInt() && from.bits == 8;
        const size_t inside = widened_tree_[static_cast<size_t>(v)];
        const bool fits = (bytes || inside > 0) && SameDims(g_.type(v), g_.type(n.outputs[0])) &&
                          g_.type(n.outputs[0]).dtype.bits > 8;
        values += fits ? 1 : 2;
        tree += inside;
        of = inside > 0 ? bytes_of_[static_cast<size_t>(v)] : v;
      }
      if (values != 1 || tree > kMaxWidenedTree) continue;
      widened_tree_[static_cast<size_t>(n.outputs[0])] = tree;
      bytes_of_[static_cast<size_t>(n.outputs[0])] = of;
    }
  }

  // Whether the node makes bytes wider for none but readers that do so themselves.
  bool IsLeftToReaders(NodeId n) const {
    const ValueId v = Out(n);
    if (widened_tree_[static_cast<size_t>(v)] == 0 || is_output_[static_cast<size_t>(v)])
      return false;
    const std::vector<NodeId>& users = users_[static_cast<size_t>(v)];
    return std::all_of(users.begin(), users.end(), [&](NodeId u) {
      return ops::HasElementDefinition(g_.node(u).op) && !RunsOnHost(g_.node(u).op);
    });
  }

  // Whether bytes are made wider that leave the group which made them, so that others may read
  // them.
  bool IsWidenedApart(ValueId v) const {
    if (widened_tree_[static_cast<size_t>(v)] == 0) return false;
    const NodeId made = g_.value(bytes_of_[static_cast<size_t>(v)]).producer;
    return made == kNoNode || group_of_[static_cast<size_t>(made)] !=
                                  group_of_[static_cast<size_t>(g_.value(v).producer)];
  }

  static bool SameDims(const TensorType& a, const TensorType& b) {
    if (a.dims.size() != b.dims.size()) return false;
    for (size_t i = 0; i < a.dims.size(); ++i) {
      if (!StructuralEqual(a.dims[i], b.dims[i])) return false;
    }
    return true;
  }

  // May `n` follow `seed`'s elements in the same kernel? Elementwise work on the seed's shape may.
  bool Fits(NodeId n, NodeId seed) const {
    const Node& node = g_.node(n);
    if (RunsOnHost(g_.node(seed).op) || g_.node(seed).op == OpKind::kCall) return false;
    if (group_of_[static_cast<size_t>(n)] >= 0 || node.outputs.size() != 1) return false;
    if (constant_[static_cast<size_t>(Out(n))] != constant_[static_cast<size_t>(Out(seed))])
      return false;
    IndexMapClass map = Info(node.op).map;
    bool elementwise = map == IndexMapClass::kElementwise || map == IndexMapClass::kBroadcast;
    return elementwise && SameDims(g_.type(Out(n)), g_.type(Out(seed)));
  }

  // Behind the last node that reads n's results.
  size_t EndOfReaders(NodeId n) const {
    size_t end = 0;
    for (ValueId v : g_.node(n).outputs) {
      const std::vector<NodeId>& users = users_[static_cast<size_t>(v)];
      if (!users.empty()) end = std::max(end, static_cast<size_t>(users.back()) + 1);
    }
    return end;
  }

  // Grows a group from its seed along users and keeps the longest prefix that one value leaves, or
  // the shorter one that a cut asks for. A
  // node that reads the group through a node outside it may not join: that would be a cycle. Two
  // groups cannot form one either: all of a group leads to its one result; and a group whose seed
  // has several results reads nothing that is produced after the seed, so it can run in its place.
  void Grow(NodeId seed) {
    std::vector<NodeId> grown = {seed};
    const size_t first = static_cast<size_t>(seed);
    const bool several = g_.node(seed).outputs.size() > 1;
    // Of the nodes from `first` on: the size of its tree, 0 outside the group; reads the group.
    std::vector<size_t> tree = {1};
    std::vector<bool> after = {false};
    size_t end = EndOfReaders(seed);
    std::vector<size_t> ends = {1};
    for (size_t n = first + 1; n < std::min(end, first + kMaxReach) && grown.size() < kMaxGroup;
         ++n) {
      size_t size = 0;
      bool reads_after = false;
      for (ValueId v : g_.nodes[n].inputs) {
        const NodeId p = v == kNoValue ? kNoNode : g_.value(v).producer;
        if (p < seed) continue;
        const size_t inside = tree[static_cast<size_t>(p - seed)];
        size += inside;
        reads_after |= after[static_cast<size_t>(p - seed)] || (several && inside == 0);
      }
      const bool reads_group = size > 0;
      const bool joins =
          reads_group && !reads_after && size < kMaxTree && Fits(static_cast<NodeId>(n), seed);
      tree.push_back(joins ? size + 1 : 0);
      after.push_back(!joins && (reads_group || reads_after));
      if (!joins) continue;
      grown.push_back(static_cast<NodeId>(n));
      end = std::max(end, EndOfReaders(static_cast<NodeId>(n)));
      if (OneValueLeaves(grown) && !IsLeftToReaders(grown.back())) ends.push_back(grown.size());
    }
    grown.resize(ends.back());
    ends.pop_back();
    if (!cuts_.empty() && grown.size() > 1) {
      const auto cut = cuts_.find(KeyOf(grown));
      if (cut != cuts_.end() && std::find(ends.begin(), ends.end(), cut->second) != ends.end())
        grown.resize(cut->second);
    }
    for (NodeId n : grown) group_of_[static_cast<size_t>(n)] = static_cast<int>(groups_.size());
    groups_.push_back({seed, std::move(grown)});
    ends_.push_back(std::move(ends));
  }

  std::string KeyOf(const std::vector<NodeId>& nodes) const {
    std::vector<ValueId> operands;
    return HashText(RegionKey(ExtractRegion(g_, nodes, Results(nodes), &operands))).ToHex();
  }

  // What leaves the nodes.
  std::vector<ValueId> Results(const std::vector<NodeId>& nodes) const {
    std::vector<ValueId> results;
    for (NodeId n : nodes) {
      for (ValueId v : g_.node(n).outputs) {
        if (Leaves(v, nodes)) results.push_back(v);
      }
    }
    if (results.empty()) results = {Out(nodes.back())};  // nobody reads it
    return results;
  }

  // The results of a seed that has several are there in any case, so each may leave beside the one.
  bool OneValueLeaves(const std::vector<NodeId>& nodes) const {
    int leaving = 0;
    for (NodeId n : nodes) {
      if (n == nodes.front() && g_.node(n).outputs.size() > 1) continue;
      for (ValueId v : g_.node(n).outputs) leaving += Leaves(v, nodes);
    }
    return leaving == 1;
  }

  // Is v read outside the group, or a result of the graph?
  bool Leaves(ValueId v, const std::vector<NodeId>& nodes) const {
    const std::vector<NodeId>& users = users_[static_cast<size_t>(v)];
    if (is_output_[static_cast<size_t>(v)] || users.size() > nodes.size()) return true;
    return std::any_of(users.begin(), users.end(), [&](NodeId u) {
      return std::find(nodes.begin(), nodes.end(), u) == nodes.end();
    });
  }

  // Views read by the anchor through operands that absorb them; copies join the region, the
  // originals die when nothing else reads them.
  void AddViews(NodeId anchor, std::vector<NodeId>* nodes) const {
    const Node& a = g_.node(anchor);
    std::vector<ValueId> pending;
    for (size_t i = 0; i < a.inputs.size(); ++i) {
      if (a.inputs[i] != kNoValue && ops::AbsorbsViews(a.op, i)) pending.push_back(a.inputs[i]);
    }
    while (!pending.empty()) {
      NodeId p = g_.value(pending.back()).producer;
      pending.pop_back();
      if (p == kNoNode || !ops::IsView(g_.node(p).op) || constant_[static_cast<size_t>(Out(p))])
        continue;
      if (std::find(nodes->begin(), nodes->end(), p) != nodes->end()) continue;
      nodes->push_back(p);
      pending.push_back(g_.node(p).inputs[0]);
    }
    std::sort(nodes->begin(), nodes->end());
  }

  // Likewise what costs little to compute and is read by elements: not by the anchor, whose
  // algorithms want values as they lie. kNoNode: there is none.
  void AddCheap(const std::function<bool(ValueId)>& is_cheap, NodeId anchor,
                std::vector<NodeId>* nodes) const {
    std::vector<NodeId> pending = *nodes;
    std::vector<ValueId> of_anchor;
    if (anchor != kNoNode) of_anchor = g_.node(anchor).inputs;
    while (!pending.empty()) {
      const NodeId reader = pending.back();
      pending.pop_back();
      if (reader == anchor) continue;
      for (ValueId v : g_.node(reader).inputs) {
        if (v == kNoValue || !is_cheap(v)) continue;
        if (std::find(of_anchor.begin(), of_anchor.end(), v) != of_anchor.end()) continue;
        const NodeId p = g_.value(v).producer;
        if (std::find(nodes->begin(), nodes->end(), p) != nodes->end()) continue;
        nodes->push_back(p);
        pending.push_back(p);
      }
    }
    std::sort(nodes->begin(), nodes->end());
  }

  Graph Rebuild() {
    Graph out = g_;
    out.nodes.clear();
    for (Value& v : out.values) v.producer = kNoNode;
    // Groups run where their last node ran: everything they read is produced before it.
    std::vector<size_t> order;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (!groups_[i].nodes.empty()) order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return groups_[a].nodes.back() < groups_[b].nodes.back();
    });
    for (size_t i : order) out.nodes.push_back(MakeNode(groups_[i].seed, groups_[i].nodes));
    for (size_t n = 0; n < out.nodes.size(); ++n) {
      for (size_t k = 0; k < out.nodes[n].outputs.size(); ++k) {
        Value& v = out.value(out.nodes[n].outputs[k]);
        v.producer = static_cast<NodeId>(n);
        v.output = static_cast<int32_t>(k);
      }
    }
    TopologicalSort(out);
    Compact(out);
    return out;
  }

  Node MakeNode(NodeId seed, std::vector<NodeId> nodes) const {
    bool anchored = !ops::HasElementDefinition(g_.node(seed).op);
    std::vector<ValueId> results = Results(nodes);
    // What the seed leads to comes first: a kernel is known by that.
    std::stable_partition(results.begin(), results.end(),
                          [&](ValueId v) { return g_.value(v).producer >= seed; });
    std::vector<NodeId> members = nodes;
    AddSmallValues(g_, small_, groups_, group_of_, &members);
    if (!constant_[static_cast<size_t>(Out(seed))])
      AddCheap([this](ValueId v) { return IsWidenedApart(v); }, anchored ? seed : kNoNode,
               &members);
    if (anchored) {
      AddViews(seed, &members);
    } else {
      AddCheap([this](ValueId v) { return known_tree_[static_cast<size_t>(v)] > 0; }, kNoNode,
               &members);
    }
    if (members.size() == 1) return g_.node(members[0]);
    Node fused;
    fused.op = OpKind::kFused;
    fused.name = g_.node(seed).name;
    auto region = std::make_shared<Graph>(ExtractRegion(g_, members, results, &fused.inputs));
    EmbedScalars(g_, region.get(), &fused.inputs);
    fused.outputs = results;
    fused.regions = {region};
    return fused;
  }

  // Of the kernel that the group is now, by its cheapest algorithm. Networks repeat themselves.
  double SecondsOf(const NodeGroup& group) {
    const Node node = MakeNode(group.seed, group.nodes);
    std::vector<ValueId> operands;
    const Graph region = node.op == OpKind::kFused
                             ? *node.regions[0]
                             : RegionOf(g_, g_.value(node.outputs[0]).producer, &operands);
    const auto [it, is_new] =
        seconds_.emplace(RegionKey(region), std::numeric_limits<double>::infinity());
    if (!is_new) return it->second;
    const ops::Site site{region, ops::AnchorOf(region), *context_->machine};
    for (const ops::Algorithm* a : ops::Algorithms()) {
      if (!ops::Applies(*a, site)) continue;
      a->space(site).ForEach([&](const ops::Point& point) {
        it->second = std::min(it->second, plan::PriceOf(context_->prices, *a, site, point));
      });
    }
    return it->second;
  }

  const Graph& g_;
  const GraphPassContext* context_;  // null: groups are only grown
  const plan::Cuts& cuts_;
  std::vector<std::vector<NodeId>> users_;
  std::vector<int> group_of_;
  std::vector<bool> constant_, is_output_;
  // By value: its tree where only dims are unknown, and where bytes are made wider; else 0.
  std::vector<size_t> known_tree_, widened_tree_;
  std::vector<ValueId> bytes_of_;  // what is made wider
  std::vector<NodeGroup> groups_;
  std::vector<std::vector<size_t>> ends_;  // by group: where else it could end
  std::vector<bool> small_;                // by value (plan/small_values.h)
  std::map<std::string, double> seconds_;  // by what a kernel computes
};

}  // namespace

Graph Fuse(const Graph& g, const GraphPassContext& context) {
  static const plan::Cuts kNone;
  return Fuser(g, &context, context.prices ? context.prices->FusionCuts() : kNone).Run();
}

std::vector<GrownGroup> GrownGroups(const Graph& g) {
  static const plan::Cuts kNone;
  return Fuser(g, nullptr, kNone).Groups();
}

}  // namespace tenon::graph
