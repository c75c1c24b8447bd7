// A state that is stored and summed up in the same step is two launches, of which the second reads
// what the first has written:
//
//   %4: f32[1, 64, 16] = mul(%state, %decay)                       a result of the network
//   %5: f32[1, 64, 16] = mul(%4, %c)                               left to its reader
//   (small_values) %6: f32[1, 64] = reduce(%5) {kind: "sum", axes: [2]}
//
// The reduction needs every element of %4 once, at the place that it is at then, so one kernel has
// both results:
//
//   %4, %6 = fused(%state, %decay, %c) region(…) {
//     %3: f32[1, 64, 16] = mul(%0, %1)
//     %4: f32[1, 64, 16] = mul(%3, %2)
//     %5: f32[1, 64] = reduce(%4) {kind: "sum", axes: [2]}
//     return %5, %3 }
//
// Two values leave it. So do several where a short sum has terms that a product of one row makes,
// column for column: a step's window, of what it shifts in and a state. What a block of the product
// has added up it goes on with,
//
//   %5: f32[1, 128] = matmul(%x, %w)
//   %6 = concat(%window, reshape(slice(%5)))       f32[1, 64, 4], a result of the network
//   %7: f32[1, 64] = reduce(mul(%6, %taps)) {kind: "sum", axes: [2]}
//
// as one kernel with three results. Groups wait for each other then if what reads %4 elsewhere
// comes before the reduction in some way, which is asked.
#include "plan/join_results.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "graph/dims.h"
#include "graph/edit.h"
#include "graph/pass/constants.h"
#include "ops/fusing.h"
#include "ops/operations.h"

namespace tenon::graph {

namespace {

// Every node is in at most one group of nodes all along.
class Joiner {
 public:
  Joiner(const Graph& g, const std::vector<bool>& small, std::vector<NodeGroup>* groups,
         std::vector<int>* group_of)
      : g_(g),
        small_(small),
        groups_(*groups),
        group_of_(*group_of),
        users_(Users(g)),
        constant_(ConstantValues(g)) {}

  void Run() {
    for (size_t r = 0; r < groups_.size(); ++r) {
      if (!groups_[r].nodes.empty() && Reduces(groups_[r].seed)) JoinInto(r);
    }
    for (size_t r = 0; r < groups_.size(); ++r) {
      const NodeGroup& group = groups_[r];
      if (!group.nodes.empty() && Reduces(group.seed) && ops::IsShortSum(g_, g_.node(group.seed)))
        JoinProduct(r);
    }
  }

 private:
  ValueId Out(NodeId n) const { return g_.node(n).outputs[0]; }

  // By threads of known numbers, several elements to one.
  bool Reduces(NodeId seed) const {
    const Node& n = g_.node(seed);
    if (n.op != OpKind::kReduce || constant_[static_cast<size_t>(n.outputs[0])]) return false;
    const auto dims = g_.type(n.inputs[0]).StaticDims(), kept = g_.type(n.outputs[0]).StaticDims();
    return dims && kept && CountOf(*kept) > 0 && CountOf(*dims) > CountOf(*kept);
  }

  static int64_t CountOf(const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    return count;
  }

  // The nodes that the group's kernel has: its own, and what is left to it.
  std::vector<NodeId> MembersOf(const NodeGroup& group) const {
    std::vector<NodeId> members = group.nodes;
    AddSmallValues(g_, small_, groups_, group_of_, &members);
    std::sort(members.begin(), members.end());
    return members;
  }

  void JoinInto(size_t r) {
    const std::vector<NodeId> members = MembersOf(groups_[r]);
    JoinFirst(r, members, [&](size_t e, ValueId v) {
      if (!IsMade(e, v) || !IsReducedInPlace(v, groups_[r].seed, members) || IsAwaited(v, r))
        return false;
      Merge(e, r);
      return true;
    });
  }

  // A short sum whose terms a product of one row has column for column follows it.
  void JoinProduct(size_t r) {
    const std::vector<NodeId> members = MembersOf(groups_[r]);
    JoinFirst(r, members, [&](size_t p, ValueId v) {
      if (!IsRow(groups_[p], v) || !FollowsColumns(v, r, members) || IsAwaited(v, r)) return false;
      Merge(r, p);
      return true;
    });
  }

  // Asks of the groups that make what the members read, until one has been joined.
  void JoinFirst(size_t r, const std::vector<NodeId>& members,
                 const std::function<bool(size_t, ValueId)>& join) {
    for (NodeId n : members) {
      for (ValueId v : g_.node(n).inputs) {
        if (v == kNoValue || g_.value(v).producer == kNoNode) continue;
        const int maker = group_of_[static_cast<size_t>(g_.value(v).producer)];
        if (maker < 0 || static_cast<size_t>(maker) == r || small_[static_cast<size_t>(v)])
          continue;
        if (join(static_cast<size_t>(maker), v)) return;
      }
    }
  }

  // The one result of a product of one row.
  bool IsRow(const NodeGroup& group, ValueId v) const {
    const Node& seed = g_.node(group.seed);
    const auto dims = g_.type(v).StaticDims();
    if (seed.op != OpKind::kMatMul || Out(group.nodes.back()) != v || !dims || dims->empty() ||
        CountOf(*dims) != dims->back() || constant_[static_cast<size_t>(v)]) {
      return false;
    }
    return ComputesOperand(g_, group.seed, 0) &&
           std::all_of(group.nodes.begin(), group.nodes.end(),
                       [&](NodeId n) { return Out(n) == v || !IsReadOutside(Out(n), group); });
  }

  bool IsReadOutside(ValueId v, const NodeGroup& group) const {
    const std::vector<NodeId>& users = users_[static_cast<size_t>(v)];
    return std::find(g_.outputs.begin(), g_.outputs.end(), v) != g_.outputs.end() ||
           std::any_of(users.begin(), users.end(), [&](NodeId u) {
             return std::find(group.nodes.begin(), group.nodes.end(), u) == group.nodes.end();
           });
  }

  // Whether all that is made of v has an axis that is v's last one, or a part of it, and all
  // results of the group are made of it.
  bool FollowsColumns(ValueId v, size_t r, const std::vector<NodeId>& members) const {
    std::map<ValueId, size_t> axis = {{v, g_.type(v).dims.size() - 1}};
    for (NodeId n : members) {
      const Node& node = g_.node(n);
      std::optional<size_t> made;
      for (ValueId in : node.inputs) {
        const auto it = axis.find(in);
        if (it == axis.end()) continue;
        const std::optional<size_t> at = AxisIn(node, in, it->second);
        if (!at || (made && *made != *at)) return false;
        made = at;
      }
      if (made) axis[Out(n)] = *made;
    }
    const NodeGroup& group = groups_[r];
    return std::all_of(group.nodes.begin(), group.nodes.end(), [&](NodeId n) {
      return !IsReadOutside(Out(n), group) || axis.count(Out(n)) != 0;
    });
  }

  // Where the axis of an operand is in the node's result, if each element needs its own place of it
  // alone.
  std::optional<size_t> AxisIn(const Node& node, ValueId operand, size_t axis) const {
    if (node.outputs.size() != 1) return std::nullopt;
    const auto from = g_.type(operand).StaticDims(), to = g_.type(node.outputs[0]).StaticDims();
    if (!from || !to) return std::nullopt;
    const IndexMapClass map = Info(node.op).map;
    if (map == IndexMapClass::kElementwise || map == IndexMapClass::kBroadcast) {
      const size_t at = axis + to->size() - from->size();
      if (to->size() < from->size() || (*to)[at] != (*from)[axis]) return std::nullopt;
      return at;
    }
    switch (node.op) {
      case OpKind::kSlice: return axis;  // of what lies next to each other, or of some of it
      case OpKind::kConcat:
        return node.attrs.GetInt("axis") == static_cast<int64_t>(axis) ? std::nullopt
                                                                       : std::optional(axis);
      case OpKind::kReshape: {
        const int64_t count = (*from)[axis];
        const auto at = std::find(to->begin(), to->end(), count);
        if (count < 2 || CountOf(*from) != count || at == to->end()) return std::nullopt;
        return static_cast<size_t>(at - to->begin());
      }
      case OpKind::kReduce: {
        const int64_t reduced = node.attrs.GetInts("axes")[0];
        if (!ops::IsShortSum(g_, node) || reduced == static_cast<int64_t>(axis))
          return std::nullopt;
        const bool moves =
            !node.attrs.Get<bool>("keepdims", false) && reduced < static_cast<int64_t>(axis);
        return axis - (moves ? 1 : 0);
      }
      default: return std::nullopt;
    }
  }

  // By elements, and alone.
  bool IsMade(size_t e, ValueId v) const {
    const NodeGroup& group = groups_[e];
    return IsElements(g_, group) && Out(group.nodes.back()) == v &&
           !constant_[static_cast<size_t>(v)];
  }

  // Whether the kernel reads v where it reduces, and there at the element that it reduces.
  bool IsReducedInPlace(ValueId v, NodeId seed, const std::vector<NodeId>& members) const {
    if (!SameDims(v, g_.node(seed).inputs[0])) return false;
    std::vector<ValueId> follow = {v};
    bool reduced = false;
    for (NodeId n : members) {
      const Node& node = g_.node(n);
      const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) {
        return std::find(follow.begin(), follow.end(), in) != follow.end();
      });
      if (!reads) continue;
      if (n == seed) {
        reduced = true;
        continue;
      }
      const IndexMapClass map = Info(node.op).map;
      if (map != IndexMapClass::kElementwise && map != IndexMapClass::kBroadcast) return false;
      if (node.outputs.size() != 1 || !SameDims(node.outputs[0], v)) return false;
      follow.push_back(node.outputs[0]);
    }
    return reduced;
  }

  bool SameDims(ValueId a, ValueId b) const {
    const std::vector<Expr>&x = g_.type(a).dims, &y = g_.type(b).dims;
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), ProveEqual);
  }

  // Whether group r waits for another kernel that reads v: all of these are between the two.
  bool IsAwaited(ValueId v, size_t r) const {
    const NodeId end = groups_[r].nodes.back();
    std::vector<bool> seen[2] = {std::vector<bool>(groups_.size()),
                                 std::vector<bool>(groups_.size())};
    std::vector<std::pair<ValueId, bool>> pending = {{v, false}};  // made by another kernel?
    while (!pending.empty()) {
      const auto [from, by_kernel] = pending.back();
      pending.pop_back();
      for (NodeId u : users_[static_cast<size_t>(from)]) {
        const int at = group_of_[static_cast<size_t>(u)];
        if (u > end || at < 0) continue;
        const auto group = static_cast<size_t>(at);
        if (group == r && by_kernel) return true;
        if (group == r) continue;
        // A small group is no kernel: its readers are asked in its place.
        const ValueId result = Out(groups_[group].nodes.back());
        const bool kernel = by_kernel || !small_[static_cast<size_t>(result)];
        if (seen[kernel ? 1 : 0][group]) continue;
        seen[kernel ? 1 : 0][group] = true;
        for (NodeId n : groups_[group].nodes) {
          for (ValueId next : g_.node(n).outputs) pending.emplace_back(next, kernel);
        }
      }
    }
    return false;
  }

  void Merge(size_t e, size_t r) {
    for (NodeId n : groups_[e].nodes) group_of_[static_cast<size_t>(n)] = static_cast<int>(r);
    std::vector<NodeId>& nodes = groups_[r].nodes;
    nodes.insert(nodes.end(), groups_[e].nodes.begin(), groups_[e].nodes.end());
    std::sort(nodes.begin(), nodes.end());
    groups_[e].nodes.clear();
  }

  const Graph& g_;
  const std::vector<bool>& small_;
  std::vector<NodeGroup>& groups_;
  std::vector<int>& group_of_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> constant_;
};

}  // namespace

void JoinResults(const Graph& g, const std::vector<bool>& small, const Machine& machine,
                 std::vector<NodeGroup>* groups, std::vector<int>* group_of) {
  if (machine.warp > 0) Joiner(g, small, groups, group_of).Run();
}

}  // namespace tenon::graph
