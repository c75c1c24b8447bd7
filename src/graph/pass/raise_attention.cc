#include "graph/pass/raise_attention.h"

#include <numeric>

#include "graph/edit.h"
#include "graph/pass/pattern.h"
#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

enum Slot {
  kQ,
  kK,
  kV,
  kMask,
  kScores,
  kScaled,
  kProbabilities,
  kCleaned,
  kEmptied,
  kEmpty,
  kScaleQ,
  kScaleK,
  kScale
};

Pattern Form() {
  static const Pattern p = [] {
    auto scaled = [](Pattern x, Slot scale) { return OneOf({Product({x, AnyNumber(scale)}), x}); };
    Pattern scores =
        As(kScores, Op(OpKind::kMatMul, {scaled(Any(kQ), kScaleQ), scaled(Any(kK), kScaleK)}));
    Pattern masked =
        OneOf({Sum({As(kScaled, scaled(scores, kScale)), Any(kMask)}), scaled(scores, kScale)});
    Pattern probabilities = As(kProbabilities, Op(OpKind::kSoftmax, {masked}));
    Pattern cleaned = As(kCleaned, Op(OpKind::kWhere, {Op(OpKind::kIsNan, {Any(kProbabilities)}),
                                                       Number(0), probabilities}));
    Pattern emptied = As(kEmptied, Op(OpKind::kWhere, {Any(kEmpty), Number(0), probabilities}));
    return Op(OpKind::kMatMul, {OneOf({cleaned, emptied, probabilities}), Any(kV)});
  }();
  return p;
}

Expected<ValueId> SwapLastTwo(Builder& b, ValueId v) {
  std::vector<int64_t> perm(static_cast<size_t>(b.type(v).rank()));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  const std::string name = b.graph().value(v).name;
  return b.Add(OpKind::kTranspose, {v}, name, {{"perm", perm}});
}

// uses_ are those of the graph when the pass began, and only its values are asked about
// (rewrite.h).
class Raiser {
 public:
  explicit Raiser(const Graph& g) : uses_(UseCounts(g)) {}

  Expected<ValueId> Raise(Builder& b, NodeId id) const {
    const Node n = b.graph().node(id);
    if (n.op != OpKind::kMatMul || n.attrs.Get<bool>("trans_a", false)) return kNoValue;
    std::optional<Match> m = FindMatch(b.graph(), n.outputs[0], Form());
    if (!m || !Fits(b.graph(), *m)) return kNoValue;
    const Attrs scores = b.graph().node(b.graph().value(m->value(kScores)).producer).attrs;
    ValueId q = m->value(kQ), k = m->value(kK), v = m->value(kV);
    if (scores.Get<bool>("trans_a", false)) {
      TN_ASSIGN_OR_RETURN(q, SwapLastTwo(b, q));
    }
    if (!scores.Get<bool>("trans_b", false)) {
      TN_ASSIGN_OR_RETURN(k, SwapLastTwo(b, k));
    }
    if (n.attrs.Get<bool>("trans_b", false)) {
      TN_ASSIGN_OR_RETURN(v, SwapLastTwo(b, v));
    }
    std::vector<ValueId> inputs = {q, k, v};
    if (m->Has(kMask)) inputs.push_back(m->value(kMask));
    const double scale = m->Number(kScaleQ, 1) * m->Number(kScaleK, 1) * m->Number(kScale, 1);
    const Attrs attrs = {{"scale", scale}, {"nan_to_zero", m->Has(kCleaned)}};
    TN_ASSIGN_OR_RETURN(const ValueId y,
                        b.Add(OpKind::kAttention, std::move(inputs), n.name, attrs));
    if (!m->Has(kEmptied)) return y;
    const ValueId zero = b.Scalar(b.type(y).dtype, 0);
    return b.Add(OpKind::kWhere, {m->value(kEmpty), zero, y}, n.name);
  }

 private:
  bool Fits(const Graph& g, const Match& m) const {
    const Node& softmax = g.node(g.value(m.value(kProbabilities)).producer);
    const TensorType& scores = g.type(m.value(kScores));
    if (softmax.attrs.GetInt("axis") != scores.rank() - 1) return false;
    // The mask broadcasts to the scores, not the scores to the mask.
    if (!(g.type(softmax.inputs[0]) == scores)) return false;
    // Rows without a key, whose result is 0 like their weights.
    if (m.Has(kEmptied)) {
      const TensorType& empty = g.type(m.value(kEmpty));
      if (empty.rank() > scores.rank() || (empty.rank() > 0 && !IsOne(empty.dims.back())))
        return false;
    }
    const int32_t readers = m.Has(kCleaned) ? 2 : 1;
    return uses_[static_cast<size_t>(m.value(kScores))] == 1 &&
           uses_[static_cast<size_t>(m.value(kProbabilities))] == readers;
  }

  std::vector<int32_t> uses_;
};

}  // namespace

Graph RaiseAttention(const Graph& g, const GraphPassContext& context) {
  const Raiser raiser(g);
  return Rewrite(g, [&](Builder& b, NodeId id) { return raiser.Raise(b, id); });
}

}  // namespace tenon::graph
