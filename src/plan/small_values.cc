// A network's step by step small work, such as one token of a decoder, is launches that take longer
// than what they do. A group of element operators is left to those that read it,
//
//   %4 = mul(%x, %scale)                     %x: f32[1, 768]
//   %5 = mul(%4, %norm)
//   %6: f32[1, 3072] = matmul(%5, %w)
//
// if all of them can take it in and what all of them do more is less than a launch. Groups are
// asked in their order, so a group that takes in others is weighed with them.
//
// Where launches cost little a reduction takes in what it alone reads, since that takes the work
// that it did and is neither stored nor loaded,
//
//   %4 = mul(%x, %y)                         %x, %y: f32[4096, 4096]
//   %5: f32[4096] = reduce(%4) {kind: "sum", axes: [1]}
//
// in the order in which it lies in memory, or in rows that are gathered.
#include "plan/small_values.h"

#include <algorithm>

#include "graph/dims.h"
#include "graph/edit.h"
#include "graph/pass/constants.h"
#include "ops/fusing.h"
#include "ops/operations.h"

namespace tenon::graph {

namespace {

// Written out as a tree, what one group leaves to others, and what a kernel has in all: not all
// that looks at expressions knows shared parts.
constexpr size_t kMostLeft = 64, kMostTree = 512;
// Of a launch's time, what work may take that is done again.
constexpr double kShareOfLaunch = 0.25;
// What is larger is a matter of memory, and so is sooner what is read in another order.
constexpr double kMostElements = 1 << 18, kMostTurned = 1 << 12;

class Chooser {
 public:
  Chooser(const Graph& g, const std::vector<NodeGroup>& groups, const std::vector<int>& group_of,
          const Machine& machine)
      : g_(g),
        groups_(groups),
        group_of_(group_of),
        users_(Users(g)),
        constant_(ConstantValues(g)),
        small_(g.values.size()),
        is_output_(g.values.size()) {
    for (ValueId v : g.outputs) is_output_[static_cast<size_t>(v)] = true;
    budget_ = kShareOfLaunch * machine.launch_seconds * machine.cycles_per_second *
              static_cast<double>(machine.workers * machine.VectorUnit(DType::Float(32)).n);
  }

  std::vector<bool> RunReduced() {
    for (const NodeGroup& group : groups_) {
      if (!IsElements(g_, group)) continue;
      const ValueId v = g_.node(group.nodes.back()).outputs[0];
      small_[static_cast<size_t>(v)] = IsReducedOnly(group, v);
    }
    return small_;
  }

  std::vector<bool> Run() {
    std::vector<size_t> order(groups_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return groups_[a].nodes.back() < groups_[b].nodes.back();
    });
    for (size_t i : order) {
      if (!IsElements(g_, groups_[i])) continue;
      const ValueId v = g_.node(groups_[i].nodes.back()).outputs[0];
      small_[static_cast<size_t>(v)] = IsLeft(groups_[i], v);
    }
    return small_;
  }

 private:
  bool Turns(const NodeGroup& group) const {
    return std::any_of(group.nodes.begin(), group.nodes.end(), [&](NodeId n) {
      const OpKind op = g_.node(n).op;
      return op == OpKind::kTranspose || op == OpKind::kGather || op == OpKind::kGatherNd;
    });
  }

  double Elements(ValueId v) const {
    double count = 1;
    for (const Expr& d : g_.type(v).dims) count *= static_cast<double>(TypicalSize(g_, d));
    return count;
  }

  // Whether all that is computed of v's elements is a reduction of each once, at its place.
  bool IsReducedOnly(const NodeGroup& group, ValueId v) const {
    const std::vector<NodeId>& users = users_[static_cast<size_t>(v)];
    if (is_output_[static_cast<size_t>(v)] || constant_[static_cast<size_t>(v)] ||
        users.size() != 1 || TreeOf(group) > kMostLeft) {
      return false;
    }
    const int number = group_of_[static_cast<size_t>(users[0])];
    const Node& reduction = g_.node(users[0]);
    if (number < 0 || groups_[static_cast<size_t>(number)].seed != users[0] ||
        reduction.op != OpKind::kReduce || LooksTwice(reduction)) {
      return false;
    }
    return std::all_of(group.nodes.begin(), group.nodes.end(), [&](NodeId n) {
      const IndexMapClass map = Info(g_.node(n).op).map;
      return map == IndexMapClass::kElementwise || map == IndexMapClass::kBroadcast ||
             GathersRows(g_.node(n));
    });
  }

  // What is gathered has the last axis of what it is gathered from.
  bool GathersRows(const Node& n) const {
    const auto rank = static_cast<int64_t>(g_.type(n.inputs[0]).dims.size());
    if (n.op == OpKind::kGather) return n.attrs.GetInt("axis") + 1 < rank;
    if (n.op != OpKind::kGatherNd) return false;
    const std::optional<int64_t> depth = AsInt(g_.type(n.inputs[1]).dims.back());
    return depth && n.attrs.GetInt("batch_dims") + *depth < rank;
  }

  // The largest and least of floats are looked for once and NaNs once more.
  bool LooksTwice(const Node& reduction) const {
    const std::string kind = reduction.attrs.GetString("kind");
    return (kind == "max" || kind == "min") && g_.type(reduction.inputs[0]).dtype.IsFloat();
  }

  bool IsLeft(const NodeGroup& group, ValueId v) {
    const std::vector<NodeId>& users = users_[static_cast<size_t>(v)];
    if (is_output_[static_cast<size_t>(v)] || constant_[static_cast<size_t>(v)] || users.empty() ||
        Elements(v) > (Turns(group) ? kMostTurned : kMostElements)) {
      return false;
    }
    const size_t tree = TreeOf(group);
    if (tree > kMostLeft) return false;
    double again = 0;
    for (NodeId u : users) {
      const double times = TimesRead(u, v);
      if (times < 0) return false;
      again += times;
    }
    if (again * static_cast<double>(tree) > budget_) return false;
    small_[static_cast<size_t>(v)] = true;  // as it would be: what its readers become of it
    return std::all_of(users.begin(), users.end(), [&](NodeId u) {
      return TreeOf(groups_[static_cast<size_t>(group_of_[static_cast<size_t>(u)])]) <= kMostTree;
    });
  }

  // How often the kernel of node `u` computes an element of `v`, all of them counted; negative
  // where it wants to find it in memory.
  double TimesRead(NodeId u, ValueId v) const {
    const Node& node = g_.node(u);
    const int number = group_of_[static_cast<size_t>(u)];
    if (number < 0) return -1;
    const NodeGroup& group = groups_[static_cast<size_t>(number)];
    const bool by_elements = IsElements(g_, group);
    const Node& seed = g_.node(group.seed);
    if (!by_elements && !TakesIn(group.seed)) return -1;
    double times = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != v) continue;
      if (u != group.seed || by_elements) {
        times += Elements(node.outputs[0]);
      } else if (ComputesOperand(g_, u, i)) {
        times += seed.op == OpKind::kMatMul ? ops::OperationsOf(g_, seed) / 2 : Elements(v);
      } else {
        return -1;
      }
    }
    return times == 0 ? -1 : times;  // read by a body
  }

  bool TakesIn(NodeId seed) const {
    for (size_t i = 0; i < g_.node(seed).inputs.size(); ++i) {
      if (ComputesOperand(g_, seed, i)) return true;
    }
    return false;
  }

  // Of the largest value of the group, with what it takes in.
  size_t TreeOf(const NodeGroup& group) const {
    size_t largest = 1;
    std::vector<std::pair<ValueId, size_t>> sizes;
    for (NodeId n : group.nodes) largest = std::max(largest, TreeOf(group, n, &sizes));
    return largest;
  }

  size_t TreeOf(const NodeGroup& group, NodeId n,
                std::vector<std::pair<ValueId, size_t>>* sizes) const {
    size_t tree = 1;
    for (ValueId v : g_.node(n).inputs) {
      ++tree;
      if (v == kNoValue || tree > kMostTree) continue;
      const auto known = std::find_if(sizes->begin(), sizes->end(),
                                      [&](const auto& size) { return size.first == v; });
      if (known != sizes->end()) {
        tree += known->second;
      } else if (small_[static_cast<size_t>(v)]) {
        const NodeId made = g_.value(v).producer;
        const NodeGroup& other = groups_[static_cast<size_t>(group_of_[static_cast<size_t>(made)])];
        if (&other == &group) continue;
        const size_t inside = TreeOf(other);
        sizes->emplace_back(v, inside);
        tree += inside;
      }
    }
    for (ValueId v : g_.node(n).outputs) sizes->emplace_back(v, tree);
    return tree;
  }

  const Graph& g_;
  const std::vector<NodeGroup>& groups_;
  const std::vector<int>& group_of_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> constant_;
  std::vector<bool> small_, is_output_;
  double budget_ = 0;  // elements' operations
};

}  // namespace

bool IsElements(const Graph& g, const NodeGroup& group) {
  return std::all_of(group.nodes.begin(), group.nodes.end(), [&](NodeId n) {
    const Node& node = g.node(n);
    return ops::HasElementDefinition(node.op) && node.op != OpKind::kResize &&
           node.op != OpKind::kRequire && !RunsOnHost(node.op) && !IsControl(node.op) &&
           node.outputs.size() == 1 && g.IsTensor(node.outputs[0]);
  });
}

void AddSmallValues(const Graph& g, const std::vector<bool>& small,
                    const std::vector<NodeGroup>& groups, const std::vector<int>& group_of,
                    std::vector<NodeId>* nodes) {
  for (size_t i = 0; i < nodes->size(); ++i) {
    for (ValueId v : g.node((*nodes)[i]).inputs) {
      if (v == kNoValue || !small[static_cast<size_t>(v)]) continue;
      const NodeId made = g.value(v).producer;
      if (std::find(nodes->begin(), nodes->end(), made) != nodes->end()) continue;
      const auto& whole = groups[static_cast<size_t>(group_of[static_cast<size_t>(made)])];
      nodes->insert(nodes->end(), whole.nodes.begin(), whole.nodes.end());
    }
  }
  std::sort(nodes->begin(), nodes->end());
}

bool ComputesOperand(const Graph& g, NodeId seed, size_t input) {
  constexpr int64_t kMostRows = 8;
  const Node& node = g.node(seed);
  if (input != 0) return false;
  if (node.op == OpKind::kReduce) return true;
  if (node.op != OpKind::kMatMul || node.attrs.Get<bool>("trans_a", false) ||
      g.type(node.inputs[1]).dims.size() != 2) {
    return false;
  }
  const std::vector<Expr>& dims = g.type(node.inputs[0]).dims;
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < dims.size(); ++d) {
    const auto size = AsInt(dims[d]);
    if (!size) return false;
    rows *= *size;
  }
  return rows <= kMostRows;
}

std::vector<bool> SmallValues(const Graph& g, const std::vector<NodeGroup>& groups,
                              const std::vector<int>& group_of, const Machine& machine) {
  Chooser chooser(g, groups, group_of, machine);
  return machine.warp == 0 ? chooser.RunReduced() : chooser.Run();
}

}  // namespace tenon::graph
