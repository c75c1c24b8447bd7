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
// Two values leave it. Groups wait for each other then if what reads %4 elsewhere comes before the
// reduction in some way, which is asked.
#include "plan/join_results.h"

#include <algorithm>

#include "graph/dims.h"
#include "graph/edit.h"
#include "graph/pass/constants.h"
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
    for (NodeId n : members) {
      for (ValueId v : g_.node(n).inputs) {
        if (v == kNoValue || g_.value(v).producer == kNoNode) continue;
        const int e = group_of_[static_cast<size_t>(g_.value(v).producer)];
        if (e < 0 || static_cast<size_t>(e) == r || small_[static_cast<size_t>(v)]) continue;
        if (!IsMade(static_cast<size_t>(e), v) || !IsReducedInPlace(v, groups_[r].seed, members) ||
            IsAwaited(v, r)) {
          continue;
        }
        Merge(static_cast<size_t>(e), r);
        return;
      }
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
