// Attention and what stands around it: rotary embeddings, linear attention, causal convolutions.
//
// Attention is written as its published body: products with the root of the scale on both sides, a
// soft cap, a bias, softmax, and the product with the values. raise_attention finds it again where
// nothing stands in between, and then scores are never stored.
//
//   Y = softmax(softcap(√s Q · (√s K)ᵀ) + bias) · V
//
// All that excludes a key from a query (the mask, causality, a window, what is padding of a cache)
// is one bool, so that the bias is built once: the mask's number or 0 where allowed, else -inf. A
// query without any key gets zeroes. Heads of inputs of rank 3 lie side by side in the last axis,
// and are taken apart: [B, S, H · D] to [B, H, S, D].
#include <cmath>
#include <limits>

#include "frontend/onnx/attention.h"
#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/index_checks.h"
#include "frontend/onnx/ops.h"

namespace tenon::onnx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The attribute, a float type, or nullopt.
Expected<std::optional<DType>> ReadPrecision(OpContext& c) {
  if (!c.HasAttr("softmax_precision")) return std::optional<DType>();
  TN_ASSIGN_OR_RETURN(const int64_t code, c.Int("softmax_precision", std::nullopt));
  TN_ASSIGN_OR_RETURN(const DType type, ToDType(static_cast<int32_t>(code)));
  if (!type.IsFloat())
    return c.Error("expected softmax_precision to be a float type, but got {}", type.ToString());
  return std::optional(type);
}

// ---- Attention ----

struct Heads {
  Val q, k, v;
  bool joined;  // the inputs are of rank 3
};

Expected<Heads> ReadHeads(OpContext& c, const Formula& f) {
  Heads h{f.In(0), f.In(1), f.In(2), c.Rank(0) == 3};
  int64_t q_heads = 0, kv_heads = 0;
  TN_ASSIGN_OR_RETURN(q_heads, c.Int("q_num_heads", 0));
  TN_ASSIGN_OR_RETURN(kv_heads, c.Int("kv_num_heads", 0));
  for (size_t i = 0; i < 3; ++i) {
    if (c.Rank(i) == (h.joined ? 3 : 4)) continue;
    return c.Error("expected queries, keys and values of rank 3 or 4, but got {}, {} and {}",
                   c.Type(0).ToString(), c.Type(1).ToString(), c.Type(2).ToString());
  }
  if (!h.joined) return h;
  if (q_heads < 1 || kv_heads < 1) {
    return c.Error("expected q_num_heads and kv_num_heads for inputs of rank 3, but got {} and {}",
                   q_heads, kv_heads);
  }
  h.q = SplitHeads(h.q, q_heads);
  h.k = SplitHeads(h.k, kv_heads);
  h.v = SplitHeads(h.v, kv_heads);
  TN_RETURN_IF_ERROR(f.Done());
  return h;
}

Status AddInputMask(const OpContext& c, const Formula& f, const Expr& keys, Mask* mask) {
  Val given = f.In(3);
  if (!given) return Ok();
  mask->may_be_empty = true;
  const bool is_bool = given.dtype().IsBool();
  // A shorter one leaves out the last keys, but one of 1 is for all of them.
  if (given.rank() > 0 && !graph::ProveEqual(given.dim(-1), keys) && !IsOne(given.dim(-1))) {
    const Expr more = graph::DimSub(keys, given.dim(-1));
    if (graph::DimRange(more).max < 0) {
      return c.Error("expected a mask of {} keys or fewer, but got {}", graph::DimText(keys),
                     c.Type(3).ToString());
    }
    const Val none = f.Number(given.dtype(), is_bool ? 0 : -kInfinity);
    if (const std::optional<int64_t> missing = AsInt(more)) {
      given = Pad(given, -1, 0, *missing, none);
    } else {
      c.b.Require(Le(given.dim(-1), keys));
      const Val key = f.Iota(keys), size = Size(given, -1), for_all = Equal(size, 1);
      const Val there = Gather(given, Where(for_all, 0, Max(Min(key, size - 1), 0)), -1);
      given = Where((key < size) | for_all, there, none);
    }
  }
  if (is_bool) {
    mask->Allow(given);
  } else {
    mask->number = given;
  }
  return Ok();
}

struct Window {
  bool causal = false;
  int64_t left = -1, right = -1;  // -1: no bound
};

// The place of a query among the keys is `offset` on from its number: what is in the cache before.
void AddWindow(const Formula& f, const Heads& h, const Window& window, Mask* mask) {
  if (!window.causal && window.left < 0 && window.right < 0) return;
  const Val past = f.In(4), lengths = f.In(6);
  Val query = Unsqueeze(f.Iota(h.q.dim(2)), 1);
  if (past) {
    query = query + Size(past, 2);
  } else if (lengths) {
    const Val offset = lengths - Size(h.q, 2);
    query = query + Reshape(offset, {offset.dim(0), IndexConst(1), IndexConst(1), IndexConst(1)});
    mask->may_be_empty = true;
  }
  const Val key = f.Iota(h.k.dim(2));
  if (window.causal) mask->Allow(key <= query);
  if (window.left >= 0) mask->Allow(key >= query - static_cast<double>(window.left));
  if (window.right >= 0) mask->Allow(key <= query + static_cast<double>(window.right));
  mask->may_be_empty |= window.left >= 0 || window.right >= 0;
}

Status ImportAttention(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, c.opset < 24 ? 6 : 7));
  const Formula f(c);
  TN_ASSIGN_OR_RETURN(Heads h, ReadHeads(c, f));
  TN_ASSIGN_OR_RETURN(const Scale scale, ReadScale(c, h.q));
  TN_ASSIGN_OR_RETURN(const double softcap, c.Float("softcap", 0));
  TN_ASSIGN_OR_RETURN(const std::optional<DType> precision, ReadPrecision(c));
  TN_ASSIGN_OR_RETURN(const int64_t mode, c.Int("qk_matmul_output_mode", 0));
  Window window;
  TN_ASSIGN_OR_RETURN(window.causal, c.Bool("is_causal", false));
  if (c.opset >= 25) {
    TN_ASSIGN_OR_RETURN(window.left, c.Int("left_window_size", -1));
    TN_ASSIGN_OR_RETURN(window.right, c.Int("right_window_size", -1));
  }
  if (c.Has(4) != c.Has(5)) return c.Error("expected past_key and past_value, or neither");
  if (c.Has(4) && c.Has(6)) return c.Error("expected past keys or nonpad_kv_seqlen, but got both");
  if (mode < 0 || mode > 3)
    return c.Error("expected qk_matmul_output_mode in 0..3, but got {}", mode);
  if (!scale.IsValid() || !(softcap >= 0))
    return c.Error("expected scale and softcap of at least 0, but got {} and {}",
                   scale.number.value_or(0), softcap);
  if (c.Has(4)) {
    h.k = Concat({f.In(4), h.k}, 2);
    h.v = Concat({f.In(5), h.v}, 2);
  }
  TN_RETURN_IF_ERROR(f.Done());
  TN_ASSIGN_OR_RETURN(const Val k, ShareHeads(c, h.k, h.q.dim(1)));
  TN_ASSIGN_OR_RETURN(const Val v, ShareHeads(c, h.v, h.q.dim(1)));

  Mask mask;
  TN_RETURN_IF_ERROR(AddInputMask(c, f, k.dim(2), &mask));
  AddWindow(f, h, window, &mask);
  if (const Val given = f.In(6)) {
    const Val lengths = InRange(c, 6, given, graph::DimAdd(k.dim(2), IndexConst(1)));
    const Expr one = IndexConst(1);
    mask.Allow(f.Iota(k.dim(2)) < Reshape(lengths, {lengths.dim(0), one, one, one}));
    mask.may_be_empty = true;
  }

  const Attended a = Attend(h.q, k, v, mask, {scale, softcap, precision, {}});
  const Val said[] = {a.raw, a.capped, a.scores, a.weights};
  const DType type = c.Type(0).dtype;
  return f.Result({h.joined ? JoinHeads(a.y) : a.y, h.k, h.v, Cast(said[mode], type)});
}

// ---- FlexAttention: what happens to scores and to probabilities is said by graphs. ----

Expected<Val> Modified(OpContext& c, const Formula& f, const char* name, const Val& x) {
  if (!c.HasAttr(name)) return x;
  TN_ASSIGN_OR_RETURN(const GraphProto* graph, c.GraphAttr(name));
  TN_RETURN_IF_ERROR(f.Done());
  const ValueId input = x.id();
  TN_ASSIGN_OR_RETURN(const std::vector<ValueId> out, c.regions().Inline(*graph, {&input, 1}));
  if (out.size() != 1 || !(c.b.type(out[0]) == c.b.type(input))) {
    return c.Error("expected {} to give one tensor of {}, but got {}", name,
                   c.b.type(input).ToString(),
                   out.size() == 1 ? c.b.type(out[0]).ToString() : fmt::format("{}", out.size()));
  }
  return f.Of(out[0]);
}

Status ImportFlexAttention(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 3));
  for (size_t i = 0; i < 3; ++i) {
    if (c.Rank(i) != 4)
      return c.Error("expected inputs of rank 4, but got {}", c.Type(i).ToString());
  }
  const Formula f(c);
  const Val q = f.In(0);
  TN_ASSIGN_OR_RETURN(const Scale scale, ReadScale(c, q));
  TN_ASSIGN_OR_RETURN(const std::optional<DType> precision, ReadPrecision(c));
  TN_ASSIGN_OR_RETURN(const Val k, ShareHeads(c, f.In(1), q.dim(1)));
  TN_ASSIGN_OR_RETURN(const Val v, ShareHeads(c, f.In(2), q.dim(1)));
  const DType wide = precision.value_or(graph::AccumulatorOf(q.dtype()));
  const Val raw = scale.Times(MatMul(Cast(q, wide), Swap(Cast(k, wide), 2, 3)));
  TN_ASSIGN_OR_RETURN(const Val scores, Modified(c, f, "score_mod", raw));
  TN_ASSIGN_OR_RETURN(const Val weights, Modified(c, f, "prob_mod", Softmax(scores, -1)));
  return f.Result(Cast(MatMul(weights, Cast(v, wide)), c.Type(0).dtype));
}

// ---- Rotary embedding: pairs of numbers turned by the angle of their place. ----

Status ImportRotaryEmbedding(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 4));
  TN_ASSIGN_OR_RETURN(const bool interleaved, c.Bool("interleaved", false));
  TN_ASSIGN_OR_RETURN(const int64_t heads, c.Int("num_heads", 0));
  TN_ASSIGN_OR_RETURN(const int64_t part, c.Int("rotary_embedding_dim", 0));
  const bool joined = c.Rank(0) == 3;
  if (!joined && c.Rank(0) != 4)
    return c.Error("expected an input of rank 3 or 4, but got {}", c.Type(0).ToString());
  if (joined && heads < 1)
    return c.Error("expected num_heads for an input of rank 3, but got {}", heads);
  for (size_t i = 1; i < 3; ++i) {
    if (c.Rank(i) == (c.Has(3) ? 2 : 3)) continue;
    return c.Error("expected cosines and sines of rank {}, but got {}", c.Has(3) ? 2 : 3,
                   c.Type(i).ToString());
  }
  const Formula f(c);
  const Val x = joined ? SplitHeads(f.In(0), heads) : f.In(0);
  TN_ASSIGN_OR_RETURN(const Expr turned, TurnedPart(c, part, x));
  const auto cache = [&](size_t i) {  // [B, 1, S, turned / 2]
    const Val all = f.In(i);
    return Unsqueeze(c.Has(3) ? Gather(all, IndicesInto(c, 3, f.In(3), i, 0), 0) : all, 1);
  };
  const Val cos = cache(1), sin = cache(2);
  const Val y = Rotated(x, cos, sin, turned, interleaved);
  return f.Result(joined ? JoinHeads(y) : y);
}

// ---- Linear attention: a state of [B, H, D, E] that every token changes. ----

Status ImportLinearAttention(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 6));
  TN_RETURN_IF_ERROR(c.Int("chunk_size", 64));  // says how, not what
  TN_ASSIGN_OR_RETURN(const int64_t kv_heads, c.Int("kv_num_heads", std::nullopt));
  TN_ASSIGN_OR_RETURN(const int64_t q_heads, c.Int("q_num_heads", std::nullopt));
  TN_ASSIGN_OR_RETURN(const double given_scale, c.Float("scale", 0));
  TN_ASSIGN_OR_RETURN(const std::string rule, c.String("update_rule", "gated_delta"));
  const bool gated = rule == "gated" || rule == "gated_delta",
             delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") {
    return c.Error("expected update_rule linear, gated, delta or gated_delta, but got {}",
                   graph::Quoted(rule));
  }
  if (gated != c.Has(4) || delta != c.Has(5)) {
    return c.Error("expected decay {} and beta {} for update_rule {}", gated ? "given" : "left out",
                   delta ? "given" : "left out", rule);
  }
  if (kv_heads < 1 || q_heads < 1 || q_heads % kv_heads != 0) {
    return c.Error("expected q_num_heads to be a multiple of kv_num_heads, but got {} and {}",
                   q_heads, kv_heads);
  }
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    if (c.Has(i) && c.Rank(i) != (i == 3 ? 4 : 3))
      return c.Error("expected input {} of rank {}, but got {}", i, i == 3 ? 4 : 3,
                     c.Type(i).ToString());
  }
  const Formula f(c);
  // Tokens first, [T, B, H, D]: an iteration takes one.
  const auto tokens = [&](size_t i, int64_t heads) {
    return Transpose(SplitHeads(Widened(f.In(i)), heads), {2, 0, 1, 3});
  };
  const Val q = tokens(0, q_heads);
  // All are of as many tokens and sequences, and keys as long as queries.
  const auto beside = [&](const Val& x, const Expr& size) {
    return Conformed(x, {q.dim(0), q.dim(1), x.dim(2), size});
  };
  const Val k = beside(tokens(1, kv_heads), q.dim(3)), each = tokens(2, kv_heads);
  const Val v = beside(each, each.dim(3));
  Scale scale{given_scale, {}};
  if (given_scale == 0) {
    TN_ASSIGN_OR_RETURN(scale, DefaultScale(c, q));
  }
  std::vector<Val> read = {q, k, v};
  if (gated) read.push_back(tokens(4, kv_heads));
  if (delta) read.push_back(Unsqueeze(Transpose(Widened(f.In(5)), {1, 0, 2}), 3));
  const Val zero = f.Number(q.dtype(), 0);
  const Dims state_dims = {q.dim(1), k.dim(2), k.dim(3), v.dim(3)};
  const Val before =
      f.In(3) ? Conformed(Cast(f.In(3), q.dtype()), state_dims) : Expand(zero, state_dims);
  const auto step = [&](const Val& i, const std::vector<Val>& carried,
                        const std::vector<Val>& captured) -> std::vector<Val> {
    std::vector<Val> now;  // [B, H, D]
    for (const Val& x : captured) now.push_back(Gather(x, i, 0));
    Val state = carried[0], value = Unsqueeze(now[2], 2);  // [B, H, 1, E]
    const Val key = Unsqueeze(now[1], 3);
    if (gated) state = state * Exp(Unsqueeze(now[3], 3));
    if (delta) value = Unsqueeze(now.back(), 3) * (value - MatMul(key, state, true));
    state = state + key * value;
    const Val shared = Repeat(state, 1, IndexConst(q_heads / kv_heads));
    return {state, Squeeze(MatMul(Unsqueeze(now[0], 2), shared), 2)};
  };
  const std::vector<Val> out = Loop(f, q.dim(0), {before}, read, step);
  const Val y = JoinHeads(Transpose(scale.Times(out[1]), {1, 2, 0, 3}));
  return f.Result({Cast(y, c.Type(0).dtype), Cast(out[0], c.Type(c.Has(3) ? 3 : 0).dtype)});
}

// ---- A convolution along time that sees the past only, and hands on what the next call needs.
// ----

// x: [B, C, T + k - 1], weight: [C, 1, k] to [B, C, T]: a convolution of each channel, which has as
// many groups as there are channels; where their number is open, a sum over gathered windows.
Val AlongTime(const Val& x, const Val& weight, const Val& bias, const Expr& length) {
  const Formula& f = x.formula();
  if (const std::optional<int64_t> channels = AsInt(weight.dim(0))) {
    std::vector<Val> operands = {x, weight};
    if (bias) operands.push_back(bias);
    return f.Emit(OpKind::kConv, operands, {{"group", *channels}});
  }
  const Val at = Unsqueeze(f.Iota(length), 1) + f.Iota(weight.dim(2));
  const Val y = Sum(Gather(x, at, 2) * weight, {3}, false);
  return bias ? y + Unsqueeze(bias, 1) : y;
}

Status ImportCausalConv(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 4));
  TN_ASSIGN_OR_RETURN(const std::string activation, c.String("activation", "none"));
  const bool swish = activation == "silu" || activation == "swish";
  if (!swish && activation != "none") {
    return c.Error("expected activation none, silu or swish, but got {}",
                   graph::Quoted(activation));
  }
  if (c.Rank(0) != 3 || c.Rank(1) != 3 || (c.Has(3) && c.Rank(3) != 3)) {
    return c.Error("expected an input, a weight and a state of rank 3, but got {} and {}",
                   c.Type(0).ToString(), c.Type(1).ToString());
  }
  const Formula f(c);
  const Val x = f.In(0), weight = f.In(1), past = f.In(3);
  const Expr before = graph::DimSub(weight.dim(2), IndexConst(1));
  const Val whole =
      Concat({past ? past : Expand(f.Number(x.dtype(), 0), {x.dim(0), x.dim(1), before}), x}, 2);
  Val y = AlongTime(Widened(whole), Widened(weight), Widened(f.In(2)), x.dim(2));
  if (swish) {
    y = Cast(y, x.dtype());
    y = Widened(y) * Sigmoid(Widened(y));
  }
  const Val last = Slice(whole, 2, x.dim(2), before);
  return f.Result({Cast(y, x.dtype()), last});
}

constexpr OpRow kRows[] = {
    {"Attention", 23, ImportAttention},
    {"RotaryEmbedding", 23, ImportRotaryEmbedding},
    {"LinearAttention", 27, ImportLinearAttention},
    {"CausalConvWithState", 27, ImportCausalConv},
    {.name = "FlexAttention",
     .since = 1,
     .import = ImportFlexAttention,
     .domain = "ai.onnx.preview"},
};

}  // namespace

std::span<const OpRow> AttentionRows() { return kRows; }

}  // namespace tenon::onnx
