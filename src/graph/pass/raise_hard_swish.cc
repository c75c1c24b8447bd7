#include "graph/pass/raise_hard_swish.h"

#include "graph/pass/pattern.h"
#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

enum Slot { kX, kHardSigmoid, kClip };

Pattern Form() {
  static const Pattern p = [] {
    Pattern clip = As(kClip, Op(OpKind::kClip, {Sum({Any(kX), Number(3)})}));
    return OneOf({Product({Any(kX), As(kHardSigmoid, Op(OpKind::kHardSigmoid, {Any(kX)}))}),
                  Product({Any(kX), clip, Number(1.0 / 6)})});
  }();
  return p;
}

bool Fits(const Graph& g, const Match& m) {
  auto attrs = [&](Slot slot) -> const Attrs& {
    return g.node(g.value(m.value(slot)).producer).attrs;
  };
  if (m.Has(kClip)) return attrs(kClip).GetFloat("lo") == 0 && attrs(kClip).GetFloat("hi") == 6;
  return Close(attrs(kHardSigmoid).GetFloat("alpha"), 1.0 / 6) &&
         Close(attrs(kHardSigmoid).GetFloat("beta"), 0.5);
}

}  // namespace

Graph RaiseHardSwish(const Graph& g, const GraphPassContext& context) {
  return Rewrite(g, [](Builder& b, NodeId id) -> Expected<ValueId> {
    const Node n = b.graph().node(id);
    std::optional<Match> m = FindMatch(b.graph(), n.outputs[0], Form());
    if (!m || !Fits(b.graph(), *m)) return kNoValue;
    return b.Add(OpKind::kHardSwish, {m->value(kX)}, n.name);
  });
}

}  // namespace tenon::graph
