#include "graph/pass/raise_softmax.h"

#include "graph/pass/reduction.h"
#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

enum Slot { kX, kMax, kMaxReduce, kCentered, kExp, kSum, kSumReduce };

Pattern Exponentials() {
  static const Pattern p = As(
      kExp,
      Op(OpKind::kExp,
         {As(kCentered, Op(OpKind::kSub, {Any(kX), As(kMax, Reduction(kMaxReduce, Any(kX)))}))}));
  return p;
}

Pattern Softmax() {
  static const Pattern p =
      Product({Exponentials(), Inverse(As(kSum, Reduction(kSumReduce, Any(kExp))))});
  return p;
}

Pattern LogSoftmax() {
  static const Pattern p =
      Op(OpKind::kSub,
         {Any(kCentered), Op(OpKind::kLog, {As(kSum, Reduction(kSumReduce, Exponentials()))})});
  return p;
}

}  // namespace

Graph RaiseSoftmax(const Graph& g, const GraphPassContext& context) {
  return Rewrite(g, [](Builder& b, NodeId id) -> Expected<ValueId> {
    const Graph& now = b.graph();
    const Node& n = now.node(id);
    for (OpKind op : {OpKind::kSoftmax, OpKind::kLogSoftmax}) {
      std::optional<Match> m =
          FindMatch(now, n.outputs[0], op == OpKind::kSoftmax ? Softmax() : LogSoftmax());
      if (!m) continue;
      std::vector<int64_t> axes = ReducedAxes(now, m->value(kMaxReduce), "max", m->value(kMax));
      if (axes.size() != 1 || axes != ReducedAxes(now, m->value(kSumReduce), "sum", m->value(kSum)))
        continue;
      return b.Add(op, {m->value(kX)}, n.name, {{"axis", axes[0]}});
    }
    return kNoValue;
  });
}

}  // namespace tenon::graph
