// Mixtures of experts of the domain com.microsoft: MoE, and QMoE with weights of few bits.
//
// A router gives each token [T] a score for each expert [E]; the k best compute, and their results
// are summed by weights made of the scores. All experts compute all tokens here, as one product of
// stacks of matrices, and the weights of those that a token did not choose are 0.
#include "frontend/onnx/blocks.h"
#include "frontend/onnx/ops.h"

namespace tenon::onnx {
namespace {

struct Layer {
  Val weight;  // [E, out, in], or left out
  Val bias;    // [E, out], or left out
};

struct Experts {
  int64_t k = 1, fusion = 0;
  bool normalised = false;
  std::string activation;
  double alpha = 1, beta = 0;
  std::optional<double> limit;
  Layer first, second, gate;
  Val choice;  // another tensor [T, E] whose entries weigh the chosen, or left out
};

Status ReadExperts(OpContext& c, Experts* e) {
  TN_ASSIGN_OR_RETURN(e->k, c.Int("k", 1));
  TN_ASSIGN_OR_RETURN(e->fusion, c.Int("swiglu_fusion", 0));
  TN_ASSIGN_OR_RETURN(e->normalised, c.Bool("normalize_routing_weights", false));
  TN_ASSIGN_OR_RETURN(e->activation, c.String("activation_type", "relu"));
  TN_ASSIGN_OR_RETURN(e->alpha, c.Float("activation_alpha", 1));
  TN_ASSIGN_OR_RETURN(e->beta, c.Float("activation_beta", 0));
  TN_ASSIGN_OR_RETURN(const bool sparse, c.Bool("use_sparse_mixer", false));
  if (sparse) return c.Error("use_sparse_mixer is not supported");
  if (c.HasAttr("swiglu_limit")) {
    TN_ASSIGN_OR_RETURN(e->limit, c.Float("swiglu_limit", 0));
  }
  if (e->fusion < 0 || e->fusion > 2)
    return c.Error("expected swiglu_fusion in 0..2, but got {}", e->fusion);
  const std::optional<int64_t> experts = AsInt(c.Dims(1).back());
  if (c.Rank(1) != 2 || !experts || e->k < 1 || e->k > *experts ||
      (c.Rank(0) != 2 && c.Rank(0) != 3)) {
    return c.Error(
        "expected tokens and a score of each for at least k = {} experts, but got {} and {}", e->k,
        c.Type(0).ToString(), c.Type(1).ToString());
  }
  return Ok();
}

// [E, T, out] of x [1 or E, T, in].
Val Run(const Layer& layer, const Val& x) {
  const Val y = MatMul(x, Cast(layer.weight, x.dtype()), false, true);
  return layer.bias ? y + Unsqueeze(Cast(layer.bias, x.dtype()), 1) : y;
}

Val SwiGlu(const Experts& e, const Val& gate, const Val& linear) {
  const Val g = e.limit ? Min(gate, *e.limit) : gate;
  const Val l = e.limit ? Max(Min(linear, *e.limit), -*e.limit) : linear;
  return g * Sigmoid(g * e.alpha) * (l + e.beta);
}

Expected<Val> Activated(const OpContext& c, const Experts& e, const Val& hidden, const Val& gate) {
  if (e.activation == "swiglu") {
    if (gate) return SwiGlu(e, hidden, gate);
    const std::optional<int64_t> width = AsInt(hidden.dim(2));
    if (e.fusion == 0 || !width || *width % 2 != 0)
      return c.Error("expected fc3, or swiglu_fusion and an even fc1, for the activation swiglu");
    const Expr half = IndexConst(*width / 2);
    if (e.fusion == 1)
      return SwiGlu(e, Slice(hidden, 2, IndexConst(0), half, 2),
                    Slice(hidden, 2, IndexConst(1), half, 2));
    return SwiGlu(e, Slice(hidden, 2, IndexConst(0), half), Slice(hidden, 2, half, half));
  }
  Val y;
  if (e.activation == "relu") {
    y = Apply(OpKind::kRelu, hidden);
  } else if (e.activation == "gelu") {
    y = hidden.formula().Emit(OpKind::kGelu, {hidden}, {{"approximate", std::string("tanh")}});
  } else if (e.activation == "silu") {
    y = hidden * Sigmoid(hidden);
  } else if (e.activation == "identity") {
    y = hidden;
  } else {
    return c.Error("expected activation_type relu, gelu, silu, swiglu or identity, but got {}",
                   graph::Quoted(e.activation));
  }
  return gate ? y * gate : y;
}

// [E, T, 1]: what an expert's result for a token counts.
Val RoutingWeights(const Formula& f, const Experts& e) {
  const Val scores = Widened(f.In(1));
  const auto [best, who] = TopK(scores, 1, IndexConst(e.k));
  Val weights;
  if (e.choice) {
    weights = GatherElements(Widened(e.choice), who, 1);
    if (e.normalised) weights = weights / Sum(weights, {1});
  } else {
    weights = e.normalised ? Softmax(best, 1) : GatherElements(Softmax(scores, 1), who, 1);
  }
  const Val chosen = Equal(Unsqueeze(who, 2), f.Iota(scores.dim(1)));  // [T, k, E]
  const Val dense = Sum(Where(chosen, Unsqueeze(weights, 2), 0), {1}, false);
  return Unsqueeze(Swap(dense, 0, 1), 2);
}

Status FinishExperts(OpContext& c, const Formula& f, const Experts& e) {
  const Dims dims = c.Dims(0);
  const Expr tokens = graph::DimProduct(std::span(dims).first(dims.size() - 1));
  const Val x = Reshape(Widened(f.In(0)), {IndexConst(1), tokens, dims.back()});
  const Val hidden = Run(e.first, x);
  TN_ASSIGN_OR_RETURN(const Val active,
                      Activated(c, e, hidden, e.gate.weight ? Run(e.gate, x) : Val()));
  const Val each = Run(e.second, active) * RoutingWeights(f, e);
  return f.Result(Cast(Reshape(Sum(each, {0}, false), dims), c.Type(0).dtype));
}

// Older models say that weights are [E, in, out]; what lies in memory is [E, out, in] all the same,
// and ONNX Runtime reads it so. `axis` should be as long as a token.
Val AsStored(const Val& weight, int64_t axis, const Expr& token) {
  if (!weight || weight.rank() != 3) return weight;
  const bool is_old = graph::ProveDifferent(weight.dim(axis), token) &&
                      graph::ProveEqual(weight.dim(3 - axis), token);
  return is_old ? Reshape(weight, {weight.dim(0), weight.dim(2), weight.dim(1)}) : weight;
}

Status ImportMoe(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(5, 8, {3}));
  Experts e;
  TN_RETURN_IF_ERROR(ReadExperts(c, &e));
  const Formula f(c);
  const Expr token = c.Dims(0).back();
  e.first = {AsStored(f.In(2), 2, token), f.In(3)};
  e.second = {AsStored(f.In(4), 1, token), f.In(5)};
  e.gate = {AsStored(f.In(6), 2, token), f.In(7)};
  return FinishExperts(c, f, e);
}

Status ImportQMoe(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(6, 15, {3, 4}));
  Experts e;
  TN_RETURN_IF_ERROR(ReadExperts(c, &e));
  TN_ASSIGN_OR_RETURN(const std::string type, c.String("quant_type", "int"));
  if (type != "int") return c.Error("expected quant_type int, but got {}", graph::Quoted(type));
  TN_ASSIGN_OR_RETURN(const int64_t block, c.Int("block_size", 0));
  TN_ASSIGN_OR_RETURN(const int64_t bits, ReadBits(c, "expert_weight_bits", 4));
  TN_ASSIGN_OR_RETURN(const int64_t prepacked, c.Int("weights_prepacked", -1));
  TN_RETURN_IF_ERROR(c.Int("accuracy_level", 0));  // the least
  if (prepacked > 0) return c.Error("weights that are packed for a device are not supported");
  if (block < 0 || block > 1 << 20)
    return c.Error("expected a sensible block_size, but got {}", block);
  const Formula f(c);
  // Inputs of layer i: weights, scales, a bias; its zero points stand behind all of these.
  Layer* const layers[] = {&e.first, &e.second, &e.gate};
  constexpr const char* kBits[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits",
                                   "fc3_expert_weight_bits"};
  for (size_t i = 0; i < 3; ++i) {
    const size_t at = 2 + 3 * i;
    TN_ASSIGN_OR_RETURN(const int64_t own, ReadBits(c, kBits[i], bits));
    if (!c.Has(at)) continue;
    if (!c.Has(at + 1) || c.Rank(at) != 3 || c.Rank(at + 1) != (block > 0 ? 3 : 2)) {
      return c.Error("expected weights [experts, rows, bytes] with scales, but got {}",
                     c.Type(at).ToString());
    }
    Val scales = f.In(at + 1), zeros = f.In(11 + i);
    if (zeros) zeros = Unpacked(zeros, own, scales.dim(-1));
    if (block == 0) {  // one for each row
      scales = Unsqueeze(scales, 2);
      zeros = zeros ? Unsqueeze(zeros, 2) : zeros;
    }
    const double half = static_cast<double>(int64_t{1} << (own - 1));
    *layers[i] = {OfBlocks(Unpacked(f.In(at), own), scales, zeros, half, 2, block), f.In(at + 2)};
  }
  e.choice = f.In(14);
  e.normalised |= !e.choice;  // ONNX Runtime's are so always
  return FinishExperts(c, f, e);
}

constexpr char kContrib[] = "com.microsoft";
constexpr OpRow kRows[] = {
    {.name = "MoE", .since = 1, .import = ImportMoe, .domain = kContrib},
    {.name = "QMoE", .since = 1, .import = ImportQMoe, .domain = kContrib},
};

}  // namespace

std::span<const OpRow> ContribExpertRows() { return kRows; }

}  // namespace tenon::onnx
