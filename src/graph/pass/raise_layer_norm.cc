#include "graph/pass/raise_layer_norm.h"

#include "graph/pass/reduction.h"
#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

enum Slot {
  kX,
  kMean,
  kMeanReduce,
  kCentered,
  kVariance,
  kVarianceReduce,
  kEpsilon,
  kScale,
  kBias
};

struct Form {
  Pattern pattern;
  bool scaled, biased;
};

// The longest first.
const std::vector<Form>& Forms() {
  static const std::vector<Form> kForms = [] {
    Pattern centered =
        As(kCentered, Op(OpKind::kSub, {Any(kX), As(kMean, Reduction(kMeanReduce, Any(kX)))}));
    Pattern squares = OneOf({Op(OpKind::kPow, {Any(kCentered), Number(2)}),
                             Op(OpKind::kMul, {Any(kCentered), Any(kCentered)})});
    Pattern variance = As(kVariance, Reduction(kVarianceReduce, squares));
    Pattern inverse = Inverse(Op(OpKind::kSqrt, {Sum({variance, AnyNumber(kEpsilon)})}));
    Pattern plain = Product({centered, inverse}),
            scaled = Product({centered, inverse, Any(kScale)});
    return std::vector<Form>{{Sum({scaled, Any(kBias)}), true, true},
                             {Sum({plain, Any(kBias)}), false, true},
                             {scaled, true, false},
                             {plain, false, false}};
  }();
  return kForms;
}

// Does v vary along x's last axes only, from `axis` on?
bool IsParameter(const Graph& g, ValueId v, int rank, int64_t axis) {
  const std::vector<Expr>& dims = g.type(v).dims;
  const int64_t outer = static_cast<int64_t>(dims.size()) - (rank - axis);
  for (int64_t i = 0; i < outer; ++i) {
    if (!IsOne(dims[static_cast<size_t>(i)])) return false;
  }
  return true;
}

// The first of the normalised axes, which are the last ones; -1 where the reductions do not fit.
int64_t NormalisedFrom(const Graph& g, const Match& m) {
  const std::vector<int64_t> axes = ReducedAxes(g, m.value(kMeanReduce), "mean", m.value(kMean));
  const int64_t rank = g.type(m.value(kX)).rank();
  if (axes.empty() || axes.back() != rank - 1 ||
      axes.front() != rank - static_cast<int64_t>(axes.size()))
    return -1;
  return axes == ReducedAxes(g, m.value(kVarianceReduce), "mean", m.value(kVariance)) ? axes.front()
                                                                                      : -1;
}

Expected<ValueId> Raise(Builder& b, NodeId id) {
  const Node n = b.graph().node(id);
  for (const Form& form : Forms()) {
    std::optional<Match> m = FindMatch(b.graph(), n.outputs[0], form.pattern);
    if (!m) continue;
    const TensorType x = b.type(m->value(kX));
    const int64_t axis = NormalisedFrom(b.graph(), *m);
    if (axis < 0) continue;
    if (form.scaled && !IsParameter(b.graph(), m->value(kScale), x.rank(), axis)) continue;
    if (form.biased && !IsParameter(b.graph(), m->value(kBias), x.rank(), axis)) continue;
    std::vector<ValueId> inputs = {m->value(kX),
                                   form.scaled ? m->value(kScale) : b.Scalar(x.dtype, 1)};
    if (form.biased) inputs.push_back(m->value(kBias));
    return b.Add(OpKind::kLayerNorm, std::move(inputs), n.name,
                 {{"axis", axis}, {"epsilon", m->Number(kEpsilon, 0)}});
  }
  return kNoValue;
}

}  // namespace

Graph RaiseLayerNorm(const Graph& g, const GraphPassContext& context) { return Rewrite(g, Raise); }

}  // namespace tenon::graph
