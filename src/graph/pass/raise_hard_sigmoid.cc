#include "graph/pass/raise_hard_sigmoid.h"

#include "graph/pass/pattern.h"
#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

enum Slot { kX, kClip, kAlpha, kBeta, kOver };

Pattern Form() {
  static const Pattern p = [] {
    Pattern beta = AnyNumber(kBeta);
    Pattern line =
        OneOf({Sum({Product({Any(kX), AnyNumber(kAlpha)}), beta}), Sum({Any(kX), beta})});
    Pattern clip = As(kClip, Op(OpKind::kClip, {line}));
    return OneOf({Product({clip, AnyNumber(kOver)}), clip});
  }();
  return p;
}

}  // namespace

Graph RaiseHardSigmoid(const Graph& g, const GraphPassContext& context) {
  return Rewrite(g, [](Builder& b, NodeId id) -> Expected<ValueId> {
    const Node n = b.graph().node(id);
    std::optional<Match> m = FindMatch(b.graph(), n.outputs[0], Form());
    if (!m) return kNoValue;
    const Attrs clip = b.graph().node(b.graph().value(m->value(kClip)).producer).attrs;
    const double over = m->Number(kOver, 1);
    if (clip.GetFloat("lo") != 0 || !Close(clip.GetFloat("hi") * over, 1)) return kNoValue;
    const double alpha = m->Number(kAlpha, 1) * over, beta = m->Number(kBeta, 0) * over;
    return b.Add(OpKind::kHardSigmoid, {m->value(kX)}, n.name, {{"alpha", alpha}, {"beta", beta}});
  });
}

}  // namespace tenon::graph
