// A selective scan, say, with a state of [c, 16] and t iterations,
//
//   %4: f32[t, c, 16] = fused(%delta, %a) region(…) { mul, exp }
//   %5: f32[c, 16] = loop(%zero, %4) {count: [t]} region(%0: i64[], %1: f32[c, 16], %2: f32[t, c,
//   16]) {
//     … gather(%2, %0) … }
//
// captures %delta: f32[t, c, 1] and %a: f32[c, 16] instead, and computes all of %2 in its body: as
// a kernel has only elements, each iteration computes the row that it reads. The group goes in as
// it is, casts included, so numbers do not change.
#include "plan/feed_loops.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/dims.h"
#include "graph/edit.h"
#include "graph/pass/captures.h"
#include "graph/pass/constants.h"
#include "ops/fusing.h"
#include "ops/loop_kernel.h"
#include "plan/region.h"
#include "support/check.h"

namespace tenon::graph {
namespace {

bool IsElements(const Node& n) {
  const auto of_elements = [](const Node& inner) {
    return ops::HasElementDefinition(inner.op) && !RunsOnHost(inner.op) && !IsControl(inner.op);
  };
  if (n.outputs.size() != 1 || n.op == OpKind::kRequire) return false;
  if (n.op != OpKind::kFused) return of_elements(n);
  return std::all_of(n.regions[0]->nodes.begin(), n.regions[0]->nodes.end(), of_elements);
}

/// The nodes, in order, that compute a value for a loop alone, and what they are computed of.
struct Feed {
  std::set<NodeId> nodes;
  std::set<ValueId> leaves;
};

class Feeder {
 public:
  explicit Feeder(const Graph& g)
      : g_(g), users_(Users(g)), constant_(ConstantValues(g)), is_output_(g.values.size()) {
    for (ValueId v : g.outputs) is_output_[static_cast<size_t>(v)] = true;
  }

  /// The loop with fed captures; the same where there are none, or where it would be no kernel.
  Node Fed(NodeId id) const {
    const Node& loop = g_.node(id);
    Node out = loop;
    auto body = std::make_shared<Graph>(*loop.regions[0]);
    AddDims(body.get());
    std::map<ValueId, ValueId> inside;  // of leaves
    bool any = false;
    for (size_t k = OwnInputs(loop); k < loop.inputs.size(); ++k) {
      const Feed feed = FeedOf(id, loop.inputs[k]);
      if (feed.nodes.empty() || !Pays(loop, loop.inputs[k], feed)) continue;
      Move(feed, loop.inputs[k], CapturedInput(loop, *loop.regions[0], k - OwnInputs(loop)),
           body.get(), &out, &inside);
      any = true;
    }
    if (!any) return loop;
    const bool sorted = TopologicalSort(*body);
    TN_CHECK(sorted, "a loop's body with what it reads has a cycle");
    out.regions[0] = body;
    DropUnreadCaptures(out);
    return Fits(id, out) ? out : loop;
  }

 private:
  bool Fits(NodeId id, const Node& fed) const {
    Graph with = g_;
    with.node(id) = fed;
    std::vector<ValueId> operands;
    return ops::FitsOneKernel(RegionOf(with, id, &operands));
  }

  void AddDims(Graph* body) const {
    for (const Dim& d : g_.dims) {
      const bool there = std::any_of(body->dims.begin(), body->dims.end(),
                                     [&](const Dim& other) { return other.var == d.var; });
      if (!there) body->dims.push_back(d);
    }
  }

  Feed FeedOf(NodeId loop, ValueId v) const {
    Feed feed;
    std::set<NodeId> readers = {loop};
    for (std::vector<ValueId> open = {v}; !open.empty();) {
      const ValueId next = open.back();
      open.pop_back();
      if (next == kNoValue) continue;
      const NodeId p = g_.value(next).producer;
      if (p == kNoNode || !MayMove(p, next, readers)) {
        feed.leaves.insert(next);
        continue;
      }
      feed.nodes.insert(p);
      readers.insert(p);
      open.insert(open.end(), g_.node(p).inputs.begin(), g_.node(p).inputs.end());
    }
    return feed;
  }

  bool MayMove(NodeId n, ValueId v, const std::set<NodeId>& readers) const {
    if (!IsElements(g_.node(n)) || constant_[static_cast<size_t>(v)] ||
        is_output_[static_cast<size_t>(v)])
      return false;
    const std::vector<NodeId>& users = users_[static_cast<size_t>(v)];
    return std::all_of(users.begin(), users.end(), [&](NodeId u) { return readers.count(u) != 0; });
  }

  bool Moves(NodeId id) const {
    const auto moves = [](const Node& n) { return ops::IsView(n.op) || n.op == OpKind::kCast; };
    const Node& n = g_.node(id);
    if (n.op != OpKind::kFused) return moves(n);
    return std::all_of(n.regions[0]->nodes.begin(), n.regions[0]->nodes.end(), moves);
  }

  double Elements(ValueId v) const {
    double count = 1;
    for (const Expr& d : g_.type(v).dims) count *= static_cast<double>(TypicalSize(g_, d));
    return count;
  }

  // Views and conversions cost nothing. Others are computed once for each element if there is one
  // for each of the state and each iteration.
  bool Pays(const Node& loop, ValueId v, const Feed& feed) const {
    if (std::all_of(feed.nodes.begin(), feed.nodes.end(), [&](NodeId n) { return Moves(n); }))
      return true;
    double state = 0, leaves = 0;
    for (size_t k = 0; k < OwnInputs(loop); ++k) state = std::max(state, Elements(loop.inputs[k]));
    for (const ValueId leaf : feed.leaves) leaves += Elements(leaf);
    const Expr& count = loop.exprs.find("count")->second[0];
    return Elements(v) >= state * static_cast<double>(TypicalSize(g_, count)) &&
           leaves < Elements(v);
  }

  void Move(const Feed& feed, ValueId v, ValueId captured, Graph* body, Node* loop,
            std::map<ValueId, ValueId>* leaves) const {
    std::map<ValueId, ValueId> inside;
    const auto find = [&](ValueId outer) {
      if (outer == kNoValue) return kNoValue;
      if (auto at = inside.find(outer); at != inside.end()) return at->second;
      const auto [at, is_new] = leaves->try_emplace(outer, kNoValue);
      if (!is_new) return at->second;
      const Value& value = g_.value(outer);
      if (value.IsConstant() && StaticCount(g_.type(outer).dims) == 1)
        return at->second = body->AddConstant(value.name, value.type.tensor(), value.payload);
      loop->inputs.push_back(outer);
      return at->second = body->AddInput(value.name, value.type);
    };
    for (const NodeId n : feed.nodes) {
      Node copy = g_.node(n);
      for (ValueId& operand : copy.inputs) operand = find(operand);
      const ValueId result = g_.node(n).outputs[0];
      const NodeId made = body->AddNode(std::move(copy), {g_.value(result).type});
      inside[result] = body->node(made).outputs[0];
    }
    ReplaceAllUses(*body, captured, inside.at(v));
  }

  const Graph& g_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> constant_;
  std::vector<bool> is_output_;
};

}  // namespace

Graph FeedLoops(const Graph& g, const GraphPassContext& context) {
  if (context.machine->warp == 0) return g;
  Graph out = g;
  for (NodeId id = 0; id < static_cast<NodeId>(g.nodes.size()); ++id) {
    std::vector<ValueId> operands;
    if (g.node(id).op != OpKind::kLoop || !ops::FitsOneKernel(RegionOf(g, id, &operands))) continue;
    out.node(id) = Feeder(g).Fed(id);
  }
  Compact(out);
  return out;
}

}  // namespace tenon::graph
