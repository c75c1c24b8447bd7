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

#include "frontend/onnx/formula.h"
#include "frontend/onnx/ops.h"

namespace tenon::onnx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// [B, S, H · D] as [B, H, S, D], and back.
Val SplitHeads(const Val& x, int64_t heads) {
  const Expr h = IndexConst(heads);
  return Swap(Reshape(x, {x.dim(0), x.dim(1), h, graph::DimFloorDiv(x.dim(2), h)}), 1, 2);
}
Val JoinHeads(const Val& x) {
  return Reshape(Swap(x, 1, 2), {x.dim(0), x.dim(2), graph::DimMul(x.dim(1), x.dim(3))});
}

// Keys or values for as many heads as the queries have, each shared by neighbours.
Expected<Val> ShareHeads(const OpContext& c, const Val& x, const Expr& heads) {
  if (graph::ProveEqual(x.dim(1), heads)) return x;
  const auto have = AsInt(x.dim(1)), want = AsInt(heads);
  if (!have || !want) {  // Reshape asks that nothing be left over
    const Expr times = graph::DimFloorDiv(heads, x.dim(1));
    return Reshape(Repeat(x, 1, times), {x.dim(0), heads, x.dim(2), x.dim(3)});
  }
  if (*have < 1 || *want % *have != 0) {
    return c.Error("expected as many heads of queries as of keys, or a multiple, but got {} and {}",
                   graph::DimText(heads), graph::DimText(x.dim(1)));
  }
  return Repeat(x, 1, IndexConst(*want / *have));
}

// The attribute, a float type, or nullopt.
Expected<std::optional<DType>> ReadPrecision(OpContext& c) {
  if (!c.HasAttr("softmax_precision")) return std::optional<DType>();
  TN_ASSIGN_OR_RETURN(const int64_t code, c.Int("softmax_precision", std::nullopt));
  TN_ASSIGN_OR_RETURN(const DType type, ToDType(static_cast<int32_t>(code)));
  if (!type.IsFloat())
    return c.Error("expected softmax_precision to be a float type, but got {}", type.ToString());
  return std::optional(type);
}

// A factor that is a number, or comes with the call.
struct Scale {
  std::optional<double> number;
  Val by_call;  // a scalar of f32

  Val Times(const Val& x) const { return number ? x * *number : x * Cast(by_call, x.dtype()); }
  Scale Root() const {
    return number ? Scale{std::sqrt(*number), {}} : Scale{std::nullopt, Sqrt(by_call)};
  }
};

// 1 / √(size of a head).
Expected<Scale> DefaultScale(const OpContext& c, const Val& q) {
  const std::optional<int64_t> size = AsInt(q.dim(-1));
  if (!size) return Scale{std::nullopt, 1 / Sqrt(Cast(Size(q, -1), DType::Float(32)))};
  if (*size < 1)
    return c.Error("expected heads of at least one element, but got {}", graph::DimText(q.dim(-1)));
  return Scale{1 / std::sqrt(static_cast<double>(*size)), {}};
}

// The attribute, or the default.
Expected<Scale> ReadScale(OpContext& c, const Val& q) {
  if (!c.HasAttr("scale")) return DefaultScale(c, q);
  TN_ASSIGN_OR_RETURN(const double given, c.Float("scale", 0));
  return Scale{given, {}};
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

// What a query may see of the keys. Without either, everything.
struct Mask {
  Val allowed;                // bool
  Val number;                 // added
  bool may_be_empty = false;  // some query may see nothing
};

void Allow(Mask* mask, const Val& more) {
  mask->allowed = mask->allowed ? mask->allowed & more : more;
}

Status AddInputMask(const OpContext& c, const Formula& f, const Expr& keys, Mask* mask) {
  Val given = f.In(3);
  if (!given) return Ok();
  mask->may_be_empty = true;
  const bool is_bool = given.dtype().IsBool();
  // A shorter one leaves out the last keys.
  if (given.rank() > 0 && !graph::ProveEqual(given.dim(-1), keys) && !IsOne(given.dim(-1))) {
    const std::optional<int64_t> missing = AsInt(graph::DimSub(keys, given.dim(-1)));
    if (!missing || *missing < 0) {
      return c.Error("expected a mask of {} keys or fewer, but got {}", graph::DimText(keys),
                     c.Type(3).ToString());
    }
    given = Pad(given, -1, 0, *missing, f.Number(given.dtype(), is_bool ? 0 : -kInfinity));
  }
  if (is_bool) {
    Allow(mask, given);
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
  if (window.causal) Allow(mask, key <= query);
  if (window.left >= 0) Allow(mask, key >= query - static_cast<double>(window.left));
  if (window.right >= 0) Allow(mask, key <= query + static_cast<double>(window.right));
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
  if (!(scale.number.value_or(0) >= 0) || !(softcap >= 0))
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
  if (const Val lengths = f.In(6)) {
    const Expr one = IndexConst(1);
    Allow(&mask, f.Iota(k.dim(2)) < Reshape(lengths, {lengths.dim(0), one, one, one}));
    mask.may_be_empty = true;
  }

  const Scale root = scale.Root();
  const Val raw = MatMul(root.Times(h.q), Swap(root.Times(k), 2, 3));
  const Val capped = softcap > 0 ? Tanh(raw / softcap) * softcap : raw;
  Val bias = mask.number;
  if (mask.allowed) {
    const Val number = bias ? bias : f.Number(raw.dtype(), 0);
    bias = Where(mask.allowed, number, -kInfinity);
  }
  const Val scores = bias ? capped + bias : capped;
  const Val weights = Cast(Softmax(precision ? Cast(scores, *precision) : scores, -1), v.dtype());
  Val y = MatMul(weights, v), shown = weights;
  if (mask.may_be_empty) {  // said of the results, so that nothing stands between softmax and
                            // product
    const Val empty = Equal(Reduce("max", bias, {-1}), -kInfinity);
    y = Where(empty, 0, y);
    shown = Where(empty, 0, weights);
  }
  const Val said[] = {raw, capped, scores, Cast(shown, raw.dtype())};
  return f.Result({h.joined ? JoinHeads(y) : y, h.k, h.v, said[mode]});
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
  const Expr size = x.dim(3), turned = part == 0 ? size : IndexConst(part);
  const Expr half = graph::DimFloorDiv(turned, IndexConst(2)), rest = graph::DimSub(size, turned);
  const Expr even = graph::DimMul(half, IndexConst(2));
  if (part < 0 || graph::ProveDifferent(even, turned) || graph::DimRange(rest).max < 0 ||
      graph::DimRange(half).max < 1) {
    return c.Error("expected an even part of heads to turn, but got {} of {}",
                   graph::DimText(turned), graph::DimText(size));
  }
  c.b.Require(And(Eq(even, turned), Le(turned, size)));
  const auto cache = [&](size_t i) {  // [B, 1, S, turned / 2]
    const Val all = f.In(i);
    return Unsqueeze(c.Has(3) ? Gather(all, f.In(3), 0) : all, 1);
  };
  const Val cos = cache(1), sin = cache(2);
  const Expr zero = IndexConst(0), one = IndexConst(1);
  const int64_t step = interleaved ? 2 : 1;
  const Val a = Slice(x, 3, zero, half, step);
  const Val b = Slice(x, 3, interleaved ? one : half, half, step);
  const Val real = cos * a - sin * b, imaginary = sin * a + cos * b;
  Dims whole = real.dims();
  if (!whole.empty()) whole.back() = turned;
  Val y = interleaved ? Reshape(Stack({real, imaginary}, -1), whole) : Concat({real, imaginary}, 3);
  if (!graph::ProveEqual(turned, size)) y = Concat({y, Slice(x, 3, turned, rest)}, 3);
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
  const Val q = tokens(0, q_heads), k = tokens(1, kv_heads), v = tokens(2, kv_heads);
  Scale scale{given_scale, {}};
  if (given_scale == 0) {
    TN_ASSIGN_OR_RETURN(scale, DefaultScale(c, q));
  }
  std::vector<Val> read = {q, k, v};
  if (gated) read.push_back(tokens(4, kv_heads));
  if (delta) read.push_back(tokens(5, IsOne(c.Dims(5)[2]) ? 1 : kv_heads));
  const Val zero = f.Number(q.dtype(), 0);
  const Val before =
      f.In(3) ? Cast(f.In(3), q.dtype()) : Expand(zero, {q.dim(1), k.dim(2), k.dim(3), v.dim(3)});
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
