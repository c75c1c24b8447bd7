// The kernel of a norm's sum, and that of a few factors which a step multiplies rows by, take less
// than their launch. With threads that run together those who read them make them again:
//
//   %4 = mul(%x, %x)                          %x: f32[1, 768]
//   %5: f32[1, 1] = reduce(%4) {kind: "mean", axes: [1]}
//   (small_values) %6 = mul(%x, rsqrt(%5))
//   %7: f32[1, 3072] = matmul(%6, %w)
//
// becomes one group, of whose blocks each adds up the squares before it multiplies. Two kinds of
// kernels take such sums in:
//
// - products of a few rows (thread_row_matmul), sums of these rows;
// - reductions that hold their rows (ops/held_rows.h), a sum or a product's element for each row.
//
// Groups are asked from the last to the first, so that a sum which other sums read is left to those
// that these were left to. Prices decide, of the kernels with and without.
#include "plan/small_sums.h"

#include <algorithm>
#include <optional>

#include "graph/dims.h"
#include "graph/edit.h"
#include "graph/pass/constants.h"
#include "ops/fusing.h"

namespace tenon::graph {

namespace {

// Sums of one product that a thread has: several norms' and no more.
constexpr int64_t kMostSums = 16;

class Leaver {
 public:
  Leaver(const Graph& g, const std::vector<NodeGroup>& groups, const std::vector<int>& group_of,
         const SecondsOfGroup& seconds, std::vector<bool>* small)
      : g_(g),
        groups_(groups),
        group_of_(group_of),
        seconds_(seconds),
        users_(Users(g)),
        constant_(ConstantValues(g)),
        small_(*small) {}

  void Run() {
    std::vector<size_t> order;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (!groups_[i].nodes.empty() && AddsUp(groups_[i])) order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return groups_[a].nodes.back() > groups_[b].nodes.back();
    });
    for (size_t i : order) Leave(i);
  }

 private:
  ValueId ResultOf(const NodeGroup& group) const { return g_.node(group.nodes.back()).outputs[0]; }

  bool IsOutput(ValueId v) const {
    return std::find(g_.outputs.begin(), g_.outputs.end(), v) != g_.outputs.end();
  }

  bool Leaves(ValueId v, const NodeGroup& group) const {
    const auto is_outside = [&](NodeId u) {
      return std::find(group.nodes.begin(), group.nodes.end(), u) == group.nodes.end();
    };
    const std::vector<NodeId>& users = users_[static_cast<size_t>(v)];
    return IsOutput(v) || std::any_of(users.begin(), users.end(), is_outside);
  }

  std::optional<int64_t> CountOf(ValueId v) const {
    const auto dims = g_.type(v).StaticDims();
    if (!dims) return std::nullopt;
    int64_t count = 1;
    for (int64_t d : *dims) count *= d;
    return count;
  }

  // How many sums a group makes; 0: it is none that can be left.
  int64_t SumsOf(const NodeGroup& group) const {
    const Node& seed = g_.node(group.seed);
    const auto result = CountOf(seed.outputs[0]), operand = CountOf(seed.inputs[0]);
    if (!result || !operand) return 0;
    if (seed.op == OpKind::kReduce || seed.op == OpKind::kMatMul) return *result;
    if (seed.op != OpKind::kLayerNorm) return 0;
    int64_t rows = 1;
    for (int64_t a = 0; a < seed.attrs.GetInt("axis"); ++a)
      rows *= *AsInt(g_.type(seed.inputs[0]).dims[static_cast<size_t>(a)]);
    return rows;
  }

  // One result leaves, that others read.
  bool AddsUp(const NodeGroup& group) const {
    const ValueId v = ResultOf(group);
    if (SumsOf(group) == 0 || constant_[static_cast<size_t>(v)] || IsOutput(v)) return false;
    for (NodeId n : group.nodes) {
      for (ValueId out : g_.node(n).outputs) {
        if (out != v && Leaves(out, group)) return false;
      }
    }
    return !users_[static_cast<size_t>(v)].empty();
  }

  // The kernels that read v, themselves or by what is left to them.
  std::vector<size_t> ReadersOf(ValueId v) const {
    std::vector<size_t> readers;
    std::vector<ValueId> pending = {v};
    while (!pending.empty()) {
      const ValueId from = pending.back();
      pending.pop_back();
      for (NodeId u : users_[static_cast<size_t>(from)]) {
        const int at = group_of_[static_cast<size_t>(u)];
        if (at < 0) return {};
        const auto r = static_cast<size_t>(at);
        const ValueId result = ResultOf(groups_[r]);
        if (small_[static_cast<size_t>(result)]) {
          pending.push_back(result);
        } else if (std::find(readers.begin(), readers.end(), r) == readers.end()) {
          readers.push_back(r);
        }
      }
    }
    return readers;
  }

  // With the reader's anchor behind all that it would have.
  bool TakesIn(const NodeGroup& reader, const NodeGroup& sums) const {
    const NodeId seed = reader.seed;
    std::vector<NodeId> members = reader.nodes;
    AddSmallValues(g_, small_, groups_, group_of_, &members);
    const bool is_last = std::all_of(members.begin(), members.end(), [&](NodeId n) {
      const Node& node = g_.node(n);
      return n <= seed || ops::HasElementDefinition(node.op) || ops::IsShortSum(g_, node);
    });
    if (!is_last) return false;
    const OpKind op = g_.node(sums.seed).op;
    if (g_.node(seed).op == OpKind::kMatMul)
      return op != OpKind::kMatMul && ComputesOperand(g_, seed, 0) && SumsOf(sums) <= kMostSums;
    return op != OpKind::kLayerNorm && HoldsRows(reader, members) &&
           SumsOf(sums) == CountOf(g_.node(seed).outputs[0]);
  }

  // It gives out what it reduces (plan/join_results.h).
  bool HoldsRows(const NodeGroup& group, const std::vector<NodeId>& members) const {
    if (g_.node(group.seed).op != OpKind::kReduce) return false;
    return std::any_of(group.nodes.begin(), group.nodes.end(), [&](NodeId n) {
      const ValueId v = g_.node(n).outputs[0];
      return n < group.seed && Leaves(v, group) &&
             std::any_of(
                 members.begin(), members.end(),
                 [&](NodeId m) {
                   const std::vector<ValueId>& in = g_.node(m).inputs;
                   return std::find(in.begin(), in.end(), v) != in.end();
                 });
    });
  }

  void Leave(size_t s) {
    const ValueId v = ResultOf(groups_[s]);
    const auto at = static_cast<size_t>(v);
    const std::vector<size_t> readers = ReadersOf(v);
    if (readers.empty()) return;
    double alone = seconds_(groups_[s]), together = 0;
    for (size_t r : readers) alone += seconds_(groups_[r]);
    small_[at] = true;
    bool fits = true;
    for (size_t r : readers) {
      fits = fits && r != s && TakesIn(groups_[r], groups_[s]);
      if (fits) together += seconds_(groups_[r]);
    }
    small_[at] = fits && together < alone;
  }

  const Graph& g_;
  const std::vector<NodeGroup>& groups_;
  const std::vector<int>& group_of_;
  const SecondsOfGroup& seconds_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> constant_;
  std::vector<bool>& small_;
};

}  // namespace

void LeaveSmallSums(const Graph& g, const std::vector<NodeGroup>& groups,
                    const std::vector<int>& group_of, const Machine& machine,
                    const SecondsOfGroup& seconds, std::vector<bool>* small) {
  if (machine.warp > 0) Leaver(g, groups, group_of, seconds, small).Run();
}

}  // namespace tenon::graph
