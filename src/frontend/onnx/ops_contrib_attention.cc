// Attention of the domain com.microsoft, as exporters and optimisers of ONNX Runtime write it.
//
// All of it is the formula of attention.h. What differs is how queries, keys and values come: as
// one product with merged weights (Attention, QAttention), side by side or one after the other in
// one tensor, with a bias of theirs, with or without a cache. And what a mask says: here padding
// adds a finite number to a score, so a query that sees padding alone takes the mean of it; what is
// in the future of a query is left out altogether.
//
//   mask [B]        the keys of a sequence end there       [2 · B]      ends, then where they begin
//   mask [B, T]     0: a key is padding                    [3 · B + 2]  ends, and what kernels of
//   GPUs need mask [B, S, T]  likewise of each query                 [B, 1, M, M] likewise of all
//   there may ever be
//
// A cache of GroupQueryAttention is as long as there is room, and each sequence has its own length
// in it: new keys go where the old ones of the sequence end, and queries see what lies before them.
#include "frontend/onnx/attention.h"
#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/index_checks.h"
#include "frontend/onnx/ops.h"

namespace tenon::onnx {
namespace {

constexpr DType kI64 = DType::Int(64);

Status CheckRanks(const OpContext& c, std::initializer_list<std::pair<size_t, int>> ranks) {
  for (const auto& [input, rank] : ranks) {
    if (c.Has(input) && c.Rank(input) != rank) {
      return c.Error("expected input {} of rank {}, but got {}", input, rank,
                     c.Type(input).ToString());
    }
  }
  return Ok();
}

Expected<int64_t> ReadHeadCount(OpContext& c, const char* name) {
  TN_ASSIGN_OR_RETURN(const int64_t heads, c.Int(name, std::nullopt));
  if (heads >= 1 && heads <= INT32_MAX) return heads;
  return c.Error("expected {} of at least 1, but got {}", name, heads);
}

// One number for each sequence beside [B, N, S, T].
Val PerSequence(const Val& list, const Expr& batch) {
  const Expr one = IndexConst(1);
  return Reshape(Cast(list, kI64), {batch, one, one, one});
}

// Numbers of the queries of a sequence beside [B, N, S, T]: 0, 1, …
Val QueryNumbers(const Formula& f, const Expr& queries) { return Unsqueeze(f.Iota(queries), 1); }

// ---- Attention over sequences that have one length of cache: Attention, QAttention,
// MultiHeadAttention ----

struct Projected {
  Val q, k, v;               // [B, N, S, D], [B, N, L, D], [B, N, L, E]
  Val past_key, past_value;  // [B, N, P, …], or left out
  Val mask;                  // of padding, or left out
  Val bias;                  // added to the scores, or left out
  // The keys and values with those before, as the node gives them, and those that queries see.
  Val keys, values, seen_keys, seen_values;
  Attended attended;
};

// Where a key is no padding: broadcasts to [B, N, S, T].
Expected<Val> NotPadding(const OpContext& c, const Formula& f, const Projected& p, size_t input) {
  const Val& mask = p.mask;
  const Expr batch = p.q.dim(0), queries = p.q.dim(2), keys = p.seen_keys.dim(2);
  const auto wrong = [&] {
    return c.Error("expected a mask for {} sequences of {} queries and {} keys, but got {}",
                   graph::DimText(batch), graph::DimText(queries), graph::DimText(keys),
                   c.Type(input).ToString());
  };
  const auto fits = [&](int64_t axis, const Expr& size) {
    const auto have = AsInt(mask.dim(axis)), want = AsInt(size);
    return !have || !want || *have == *want;
  };
  switch (mask.rank()) {
    case 1: {
      const Expr all = mask.dim(0), two = IndexConst(2);
      const bool starts = graph::ProveEqual(all, graph::DimMul(batch, two));
      const bool offsets =
          graph::ProveEqual(all, graph::DimAdd(graph::DimMul(batch, IndexConst(3)), two));
      if (!starts && !offsets && !fits(0, batch)) return wrong();
      const Val key = f.Iota(keys);
      const auto part = [&](const Expr& from) {
        return starts || offsets ? Slice(mask, 0, from, batch) : mask;
      };
      const Val before_end = key < PerSequence(part(IndexConst(0)), batch);
      return starts ? before_end & (key >= PerSequence(part(batch), batch)) : before_end;
    }
    case 2:
      if (!fits(0, batch) || !fits(1, keys)) return wrong();
      return Unsqueeze(Unsqueeze(mask > 0, 1), 1);
    case 3:
      if (!fits(0, batch) || !fits(1, queries) || !fits(2, keys)) return wrong();
      return Unsqueeze(mask > 0, 1);
    case 4: {
      const Expr past = graph::DimSub(keys, queries);
      return Slice(Slice(mask, 2, past, queries), 3, IndexConst(0), keys) > 0;
    }
    default: return wrong();
  }
}

// New keys and values follow those of the past, of which all are in use.
Status Append(const OpContext& c, Projected* p) {
  if (static_cast<bool>(p->past_key) != static_cast<bool>(p->past_value))
    return c.Error("expected the keys and the values of the past, or neither");
  p->keys = p->seen_keys = p->past_key ? Concat({p->past_key, p->k}, 2) : p->k;
  p->values = p->seen_values = p->past_value ? Concat({p->past_value, p->v}, 2) : p->v;
  return Ok();
}

// Reads the attributes that all three have.
Status AttendProjected(OpContext& c, const Formula& f, size_t mask_input, Projected* p) {
  TN_ASSIGN_OR_RETURN(const Scale scale, ReadScale(c, p->q, true));
  TN_ASSIGN_OR_RETURN(const double filter, c.Float("mask_filter_value", -10000));
  TN_ASSIGN_OR_RETURN(const bool causal, c.Bool("unidirectional", false));
  if (!scale.IsValid()) return c.Error("expected scale of at least 0, but got {}", *scale.number);
  TN_RETURN_IF_ERROR(f.Done());
  Mask mask;
  if (p->mask) {
    TN_ASSIGN_OR_RETURN(const Val is_key, NotPadding(c, f, *p, mask_input));
    mask.Add(Where(is_key, 0, f.Number(p->q.dtype(), filter)));
  }
  if (p->bias) mask.Add(p->bias);
  if (causal) {
    const Val before = Size(p->seen_keys, 2) - Size(p->k, 2);
    mask.Allow(f.Iota(p->seen_keys.dim(2)) <= QueryNumbers(f, p->q.dim(2)) + before);
  }
  p->attended = Attend(p->q, p->seen_keys, p->seen_values, mask,
                       {.scale = scale, .softcap = 0, .precision = {}, .sink = {}});
  return f.Done();
}

// Q, K and V side by side in the last axis of [B, S, …], as the sizes say, or in equal parts.
Status TakeMerged(const OpContext& c, const Val& merged, const std::optional<Axes>& sizes,
                  int64_t heads, Projected* p) {
  const std::optional<int64_t> all = AsInt(merged.dim(-1));
  if (!all) return c.Error("expected weights of known size, but got {}", c.Type(1).ToString());
  const Axes parts = sizes.value_or(Axes(3, *all / 3));
  if (parts.size() != 3 || parts[0] < 1 || parts[2] < 1 || parts[0] != parts[1] ||
      parts[0] % heads != 0 || parts[2] % heads != 0 || parts[0] + parts[1] + parts[2] != *all) {
    return c.Error("expected weights for queries, keys and values of {} heads, but got {}", heads,
                   c.Type(1).ToString());
  }
  Val* const to[] = {&p->q, &p->k, &p->v};
  int64_t from = 0;
  for (size_t i = 0; i < 3; ++i) {
    *to[i] = SplitHeads(Slice(merged, 2, IndexConst(from), IndexConst(parts[i])), heads);
    from += parts[i];
  }
  return Ok();
}

// The past is one tensor [2, B, N, P, D], as the present is.
Status FinishMerged(OpContext& c, const Formula& f, size_t mask_input, size_t past_input,
                    Projected* p) {
  if (const Val past = f.In(past_input)) {
    p->past_key = Element(past, 0, 0);
    p->past_value = Element(past, 0, 1);
  }
  p->mask = f.In(mask_input);
  TN_RETURN_IF_ERROR(Append(c, p));
  TN_RETURN_IF_ERROR(AttendProjected(c, f, mask_input, p));
  const Val y = JoinHeads(p->attended.y);
  return c.Wants(1) ? f.Result({y, Stack({p->keys, p->values}, 0)}) : f.Result(y);
}

Status RefuseFlag(OpContext& c, const char* name) {
  TN_ASSIGN_OR_RETURN(const bool set, c.Bool(name, false));
  return set ? Status(c.Error("{} is not supported", name)) : Ok();
}

Status ImportContribAttention(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 7));
  TN_RETURN_IF_ERROR(CheckRanks(c, {{0, 3}, {1, 2}, {2, 1}, {4, 5}, {5, 4}}));
  for (const char* flag : {"do_rotary", "past_present_share_buffer"})
    TN_RETURN_IF_ERROR(RefuseFlag(c, flag));
  TN_RETURN_IF_ERROR(c.Int("rotary_embedding_dim", 0));
  TN_ASSIGN_OR_RETURN(const int64_t heads, ReadHeadCount(c, "num_heads"));
  TN_ASSIGN_OR_RETURN(const std::optional<Axes> sizes, c.Ints("qkv_hidden_sizes"));
  const Formula f(c);
  const Val product = MatMul(f.In(0), f.In(1));
  Projected p;
  TN_RETURN_IF_ERROR(TakeMerged(c, f.In(2) ? product + f.In(2) : product, sizes, heads, &p));
  p.bias = f.In(5);
  return FinishMerged(c, f, 3, 4, &p);
}

Status ImportQAttention(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(5, 9));
  TN_RETURN_IF_ERROR(CheckRanks(c, {{0, 3}, {1, 2}, {2, 1}, {8, 5}}));
  for (const char* flag : {"do_rotary", "past_present_share_buffer"})
    TN_RETURN_IF_ERROR(RefuseFlag(c, flag));
  TN_ASSIGN_OR_RETURN(const int64_t heads, ReadHeadCount(c, "num_heads"));
  TN_ASSIGN_OR_RETURN(const Matrices m, AsMatrices(c));
  TN_ASSIGN_OR_RETURN(const ValueId sum, IntegerProduct(c, m, {0, 1, 6, 7}));
  const Formula f(c);
  const DType type = c.Type(2).dtype;
  const Val product = Cast(f.Of(sum), type) * (Reshape(f.In(3), {}) * f.In(4)) + f.In(2);
  Projected p;
  TN_RETURN_IF_ERROR(TakeMerged(c, product, std::nullopt, heads, &p));
  return FinishMerged(c, f, 5, 8, &p);
}

// Queries, keys and values as [B, N, S, D]: of [B, S, N · D] each; of [B, S, N, 3, D]; or keys and
// values of [B, S, N, 2, D]. Keys of [B, N, L, D] are a cache already.
Status TakeSeparate(OpContext& c, const Formula& f, int64_t heads, Projected* p) {
  const auto packed = [&](const Val& x, int64_t at) { return Swap(Element(x, 3, at), 1, 2); };
  const Val query = f.In(0), key = f.In(1), value = f.In(2);
  Val bias = f.In(3);
  const auto with_bias = [&](const Val& x, int64_t from) -> Val {  // x is [B, N, S, D]
    if (!bias) return x;
    const Val part = Slice(bias, 0, IndexConst(from), graph::DimMul(x.dim(1), x.dim(3)));
    return x + Reshape(part, {x.dim(1), IndexConst(1), x.dim(3)});
  };
  const bool all_in_one = query.rank() == 5, pairs = key && key.rank() == 5;
  const auto heads_fit = [&](const Val& x) {
    const std::optional<int64_t> size = AsInt(x.dim(2));
    return x.rank() != 3 || (size && *size >= heads && *size % heads == 0);
  };
  if (all_in_one ? key || value
                 : query.rank() != 3 || !key || (pairs ? static_cast<bool>(value) : !value)) {
    return c.Error("expected a query, a key and a value, or those packed in one, but got {}",
                   c.Type(0).ToString());
  }
  for (const Val& x : {query, key, value}) {
    if (x && !heads_fit(x)) {
      return c.Error("expected {} heads of known size, but got {}", heads,
                     c.b.type(x.id()).ToString());
    }
  }
  if (all_in_one) {
    p->q = packed(query, 0);
    p->k = packed(query, 1);
    p->v = packed(query, 2);
  } else {
    p->q = SplitHeads(query, heads);
    p->k = pairs ? packed(key, 0) : key.rank() == 3 ? SplitHeads(key, heads) : key;
    p->v = pairs ? packed(key, 1) : value.rank() == 3 ? SplitHeads(value, heads) : value;
  }
  const std::optional<int64_t> size = AsInt(p->q.dim(3));
  if (!size) return c.Error("expected heads of known size, but got {}", c.Type(0).ToString());
  const int64_t hidden = heads * *size;
  p->q = with_bias(p->q, 0);
  if (!key || key.rank() != 4) {  // a cache has its bias
    p->k = with_bias(p->k, hidden);
    p->v = with_bias(p->v, 2 * hidden);
  }
  return f.Done();
}

// `before` keys of the past [B, N, M, D] are in use, which has room for more: new ones are put
// behind them, and the room stays.
Val PutBehind(const Val& past, const Val& fresh, const Expr& before) {
  const Formula& f = fresh.formula();
  const Val from = f.Iota(past.dim(2)) - NumberOf(f, before);  // [M]
  // What is beside the new rows is not taken below, but an index even so.
  const Val rows = Gather(fresh, Max(Min(from, Size(fresh, 2) - 1), 0), 2);
  return Where(Unsqueeze((from >= 0) & (from < Size(fresh, 2)), 1), rows, past);
}

// Of the past each sequence sees what `beams` [G, W, M] says: the row of a place is that of one of
// the W sequences of its group. Rows from `before` on are its own. Sequences [B = G · W, T].
Expected<Val> BeamsOfRows(const OpContext& c, const Formula& f, const Expr& batch,
                          const Expr& before, const Expr& seen) {
  const Val beams = f.In(9);
  const Expr width = beams.dim(1);
  if (const auto all = AsInt(graph::DimMul(beams.dim(0), width)), have = AsInt(batch);
      all && have && *all != *have) {
    return c.Error("expected beams of {} sequences, but got {}", *have, c.Type(9).ToString());
  }
  c.b.Require(Eq(graph::DimMul(beams.dim(0), width), batch));
  c.b.Require(Le(seen, beams.dim(2)));
  const Val row = f.Iota(seen), own = Unsqueeze(f.Iota(batch), 1);
  const Val given =
      Cast(Slice(Reshape(beams, {batch, beams.dim(2)}), 1, IndexConst(0), seen), kI64);
  const Val past = row < NumberOf(f, before), beam = Where(past, given, 0);
  const Val first = own - Mod(own, Max(Size(beams, 1), 1));
  return Where(past, first + InRange(c, 9, beam, width), own);
}

// Keys [B, N, T, D] of which row t of sequence b is that of sequence `sequences`[b, t].
Val OfSequences(const Val& keys, const Val& sequences) {
  const Val rows = Expand(keys.formula().Iota(keys.dim(2)), sequences.dims());
  return Swap(GatherNd(Swap(keys, 1, 2), Stack({sequences, rows}, 2)), 1, 2);
}

// The past is a buffer that the call shares with what comes after it: past_sequence_length keys of
// it are in use. (ONNX Runtime looks at cache_indirection where a sequence has one query; here it
// holds for all.)
Status Share(OpContext& c, const Formula& f, Projected* p) {
  TN_ASSIGN_OR_RETURN(const Elements list, SizesOf(c, 8, "past_sequence_length", 1));
  if (list.size() != 1)
    return c.Error("expected one past_sequence_length, but got {}", c.Type(8).ToString());
  const Expr& before = list[0];
  const Expr seen = graph::DimAdd(before, p->k.dim(2));
  const Expr room = p->past_key.dim(2);
  if (const auto used = AsInt(seen), have = AsInt(room); used && have && *used > *have) {
    return c.Error("expected room for {} keys, but got {}", *used, c.Type(6).ToString());
  }
  c.b.Require(Le(seen, room));
  p->keys = PutBehind(p->past_key, p->k, before);
  p->values = PutBehind(p->past_value, p->v, before);
  p->seen_keys = Slice(p->keys, 2, IndexConst(0), seen);
  p->seen_values = Slice(p->values, 2, IndexConst(0), seen);
  if (!c.Has(9)) return f.Done();
  TN_ASSIGN_OR_RETURN(const Val sequences, BeamsOfRows(c, f, p->q.dim(0), before, seen));
  p->seen_keys = OfSequences(p->seen_keys, sequences);
  p->seen_values = OfSequences(p->seen_values, sequences);
  return f.Done();
}

Status ImportMultiHeadAttention(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 10));
  TN_RETURN_IF_ERROR(CheckRanks(c, {{3, 1}, {5, 4}, {6, 4}, {7, 4}, {9, 3}}));
  TN_ASSIGN_OR_RETURN(const int64_t heads, ReadHeadCount(c, "num_heads"));
  const Formula f(c);
  Projected p;
  TN_RETURN_IF_ERROR(TakeSeparate(c, f, heads, &p));
  p.mask = f.In(4);
  p.bias = f.In(5);
  p.past_key = f.In(6);
  p.past_value = f.In(7);
  // Without a past there is nothing to share, and without a length all of it is in use.
  const bool shares = p.past_key && p.past_value && c.Has(8);
  TN_RETURN_IF_ERROR(shares ? Share(c, f, &p) : Append(c, &p));
  TN_RETURN_IF_ERROR(AttendProjected(c, f, 4, &p));
  return f.Result({JoinHeads(p.attended.y), p.keys, p.values, p.attended.scores});
}

// ---- GroupQueryAttention: a cache in which each sequence has its own length ----

// Cosines or sines [B, 1, S, half] of the places [B, S] of tokens, out of a table of all places.
Val AtPlaces(const Val& table, const Val& places) { return Unsqueeze(Gather(table, places, 0), 1); }

struct Cache {
  Val before;  // [B, 1, 1, 1]: how many keys each sequence has in the cache
  Expr room;   // how many fit
};

// The cache with new rows [B, S, G, D] behind the old ones of [B, G, P, D]; else zeroes.
Val Continued(const Val& past, const Val& fresh, const Cache& cache) {
  const Formula& f = fresh.formula();
  const Val place = f.Iota(cache.room);
  const Val from = place - Reshape(cache.before, {cache.before.dim(0), IndexConst(1)});  // [B, M]
  // What is beside the new rows is not taken below, but an index even so.
  const Val inside = Max(Min(from, Size(fresh, 1) - 1), 0);
  const Val rows = Swap(GatherNd(fresh, Unsqueeze(inside, 2), 1), 1, 2);
  const auto beside = [&](const Val& x) { return Unsqueeze(Unsqueeze(x, 1), 3); };
  const bool has_past = past && AsInt(past.dim(2)) != 0;
  const Val row = has_past ? Min(place, Size(past, 2) - 1) : Val();
  const Val old =
      has_past ? Where(beside(from < 0), Gather(past, row, 2), 0) : f.Number(fresh.dtype(), 0);
  return Where(beside((from >= 0) & (from < Size(fresh, 1))), rows, old);
}

struct Grouped {
  int64_t heads = 0, kv_heads = 0;
  bool causal = true, rotary = false, interleaved = false, smooth = false;
  int64_t window = -1, output = 0;  // -1: all that is before; 0: no scores
  double softcap = 0;
};

Expected<Grouped> ReadGrouped(OpContext& c) {
  Grouped g;
  TN_ASSIGN_OR_RETURN(g.heads, ReadHeadCount(c, "num_heads"));
  TN_ASSIGN_OR_RETURN(g.kv_heads, ReadHeadCount(c, "kv_num_heads"));
  TN_ASSIGN_OR_RETURN(g.causal, c.Bool("causal", true));
  TN_ASSIGN_OR_RETURN(g.rotary, c.Bool("do_rotary", false));
  TN_ASSIGN_OR_RETURN(g.interleaved, c.Bool("rotary_interleaved", false));
  TN_ASSIGN_OR_RETURN(g.window, c.Int("local_window_size", -1));
  TN_ASSIGN_OR_RETURN(g.softcap, c.Float("softcap", 0));
  TN_ASSIGN_OR_RETURN(const int64_t smooth, c.Int("smooth_softmax", -1));
  TN_ASSIGN_OR_RETURN(g.output, c.Int("qk_output", 0));
  g.smooth = smooth == 1;
  if (g.heads % g.kv_heads != 0) {
    return c.Error("expected num_heads to be a multiple of kv_num_heads, but got {} and {}",
                   g.heads, g.kv_heads);
  }
  if (g.output < 0 || g.output > 2)
    return c.Error("expected qk_output in 0..2, but got {}", g.output);
  if (!g.causal && g.window >= 0)
    return c.Error("expected no local_window_size where causal is 0, but got {}", g.window);
  TN_RETURN_IF_ERROR(RefuseFlag(c, "sliding_window_cache"));
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    TN_ASSIGN_OR_RETURN(const std::string type, c.String(name, "NONE"));
    if (type != "NONE") return c.Error("a quantised cache ({} {}) is not supported", name, type);
  }
  TN_RETURN_IF_ERROR(c.Int("kv_cache_bit_width", 0));
  return g;
}

// [B, S, H, D] of queries, keys and values, each of which may be a part of the first input.
struct Tokens {
  Val q, k, v;
};
Expected<Tokens> TakeTokens(const OpContext& c, const Formula& f, const Grouped& g) {
  const std::optional<int64_t> width = AsInt(c.Dims(0)[2]);
  const int64_t parts = c.Has(1) ? g.heads : g.heads + 2 * g.kv_heads;
  if (c.Has(1) != c.Has(2) || !width || *width < parts || *width % parts != 0) {
    return c.Error(
        "expected a query of {} heads of known size, a key and a value, or those side "
        "by side, but got {}",
        g.heads, c.Type(0).ToString());
  }
  const int64_t size = *width / parts;
  const auto part = [&](const Val& x, int64_t from, int64_t heads) {
    const Val mine = c.Has(1) ? x : Slice(x, 2, IndexConst(from * size), IndexConst(heads * size));
    return Reshape(mine, {x.dim(0), x.dim(1), IndexConst(heads), IndexConst(size)});
  };
  const Val q = f.In(0);
  if (c.Has(1))
    return Tokens{part(q, 0, g.heads), part(f.In(1), 0, g.kv_heads), part(f.In(2), 0, g.kv_heads)};
  return Tokens{part(q, 0, g.heads), part(q, g.heads, g.kv_heads),
                part(q, g.heads + g.kv_heads, g.kv_heads)};
}

// Each head by the root of its mean square, times a weight.
Val HeadNormalized(const Val& x, const Val& weight, double epsilon) {
  if (!weight) return x;
  const Val wide = Widened(x);
  return Cast(wide / Sqrt(Mean(wide * wide, {-1}) + epsilon) * Cast(weight, wide.dtype()),
              x.dtype());
}

// How many keys each sequence has, these tokens' included: 1 to `total`.
Val LengthsIn(const OpContext& c, const Formula& f, const Expr& batch, const Expr& total) {
  return PerSequence(InRange(c, 5, f.In(5), total), batch) + 1;
}

Status ImportGroupQueryAttention(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(7, 16, {1, 2, 3, 4}));
  TN_RETURN_IF_ERROR(CheckRanks(c, {{0, 3},
                                    {1, 3},
                                    {2, 3},
                                    {3, 4},
                                    {4, 4},
                                    {7, 2},
                                    {8, 2},
                                    {9, 2},
                                    {10, 4},
                                    {11, 1},
                                    {14, 1},
                                    {15, 1}}));
  TN_ASSIGN_OR_RETURN(const Grouped g, ReadGrouped(c));
  if (c.Has(3) != c.Has(4)) return c.Error("expected past_key and past_value, or neither");
  if (c.Has(12) || c.Has(13))
    return c.Error("a quantised cache (k_scale, v_scale) is not supported");
  if (c.Has(14) != c.Has(15))
    return c.Error("expected q_norm_weight and k_norm_weight, or neither");
  if (g.rotary && !(c.Has(7) && c.Has(8)))
    return c.Error("expected cos_cache and sin_cache where do_rotary is set");
  TN_ASSIGN_OR_RETURN(const double epsilon, c.Float("qk_norm_epsilon", 1e-6));
  TN_ASSIGN_OR_RETURN(const Elements total_list, SizesOf(c, 6, "total_sequence_length"));
  if (total_list.size() != 1)
    return c.Error("expected one total_sequence_length, but got {}", c.Type(6).ToString());
  const Expr& total = total_list[0];
  const Formula f(c);
  TN_ASSIGN_OR_RETURN(Tokens t, TakeTokens(c, f, g));
  TN_ASSIGN_OR_RETURN(const Scale scale, ReadScale(c, t.q, true));
  if (!scale.IsValid() || !(g.softcap >= 0)) {
    return c.Error("expected scale and softcap of at least 0, but got {} and {}",
                   scale.number.value_or(0), g.softcap);
  }
  const Expr batch = t.q.dim(0), queries = t.q.dim(1);

  // What is in the cache before: nothing yet where all tokens are new, though some are padding.
  const Val past_key = f.In(3), past_value = f.In(4);
  const Val length = LengthsIn(c, f, batch, total);
  const Cache cache{Max(length - Size(t.q, 1), 0),
                    past_key ? graph::DimMax(total, past_key.dim(2)) : total};
  const Val place = QueryNumbers(f, queries) + cache.before;  // [B, 1, S, 1]
  Val q = Swap(HeadNormalized(t.q, f.In(14), epsilon), 1, 2);
  Val k = HeadNormalized(t.k, f.In(15), epsilon);
  if (g.rotary) {
    const Val places =
        c.Has(9) ? IndicesInto(c, 9, f.In(9), 7, 0) : Reshape(place, {batch, queries});
    if (!c.Has(9)) TN_RETURN_IF_ERROR(RequireRows(c, 7, total));
    const Val cos = AtPlaces(f.In(7), places), sin = AtPlaces(f.In(8), places);
    const std::optional<int64_t> half = AsInt(f.In(7).dim(1));
    TN_ASSIGN_OR_RETURN(const Expr turned, TurnedPart(c, 2 * half.value_or(-1), q));
    q = Rotated(q, cos, sin, turned, g.interleaved);
    k = Swap(Rotated(Swap(k, 1, 2), cos, sin, turned, g.interleaved), 1, 2);
  }
  const Val keys = Continued(past_key, k, cache), values = Continued(past_value, t.v, cache);
  TN_RETURN_IF_ERROR(f.Done());
  const auto in_use = [&](const Val& x) {
    return graph::ProveEqual(cache.room, total) ? x : Slice(x, 2, IndexConst(0), total);
  };
  TN_ASSIGN_OR_RETURN(const Val all_keys, ShareHeads(c, in_use(keys), q.dim(1)));
  TN_ASSIGN_OR_RETURN(const Val all_values, ShareHeads(c, in_use(values), q.dim(1)));
  Mask mask;
  const Val key = f.Iota(total);
  mask.Allow(g.causal ? key <= place : key < length);
  if (g.window >= 0) mask.Allow(key > place - static_cast<double>(g.window));
  if (const Val bias = f.In(10)) mask.Add(bias);
  const Val sink = c.Has(11)  ? f.In(11)
                   : g.smooth ? Expand(f.Number(q.dtype(), 0), {IndexConst(g.heads)})
                              : Val();
  const Attended a = Attend(q, all_keys, all_values, mask,
                            {.scale = scale, .softcap = g.softcap, .precision = {}, .sink = sink});
  const Val said = g.output == 1   ? Cast(a.scores, q.dtype())
                   : g.output == 2 ? Cast(a.weights, q.dtype())
                                   : Val();
  return f.Result({JoinHeads(a.y), keys, values, said});
}

// ---- Rotary embedding by places of tokens ----

Status ImportContribRotaryEmbedding(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(4, 4));
  TN_RETURN_IF_ERROR(CheckRanks(c, {{2, 2}, {3, 2}}));
  TN_ASSIGN_OR_RETURN(const bool interleaved, c.Bool("interleaved", false));
  TN_ASSIGN_OR_RETURN(int64_t heads, c.Int("num_heads", 0));
  TN_ASSIGN_OR_RETURN(int64_t turned, c.Int("rotary_embedding_dim", 0));
  TN_RETURN_IF_ERROR(c.Float("scale", 1));  // has no effect in ONNX Runtime
  TN_RETURN_IF_ERROR(c.Bool("is_packed_batching", false));
  const bool joined = c.Rank(0) == 3;
  if (!joined && c.Rank(0) != 4)
    return c.Error("expected an input of rank 3 or 4, but got {}", c.Type(0).ToString());
  const std::optional<int64_t> half = AsInt(c.Dims(2)[1]), width = AsInt(c.Dims(0)[2]);
  if (!half || *half < 1 || (turned != 0 && turned != 2 * *half) ||
      (turned != 0 && heads < 1 && joined)) {
    return c.Error(
        "expected cosines of half of what is turned of each of num_heads heads, but got {}",
        c.Type(2).ToString());
  }
  turned = 2 * *half;
  if (joined && heads < 1 && width) heads = *width / turned;
  if (joined && (!width || heads < 1 || *width % heads != 0))
    return c.Error("expected heads of known size, but got {}", c.Type(0).ToString());
  const Formula f(c);
  const Val x = joined ? SplitHeads(f.In(0), heads) : f.In(0);
  TN_ASSIGN_OR_RETURN(const Expr part, TurnedPart(c, turned, x));
  // Of each token, or of the first.
  const bool each = c.Rank(1) == 2;
  const Expr firsts = graph::DimAdd(graph::DimSub(f.In(2).dim(0), x.dim(2)), IndexConst(1));
  const Val given = InRange(c, 1, f.In(1), each ? f.In(2).dim(0) : firsts);
  const Val places = each ? given : Unsqueeze(f.Iota(x.dim(2)) + given, 0);
  const Val y = Rotated(x, AtPlaces(f.In(2), places), AtPlaces(f.In(3), places), part, interleaved);
  return f.Result(joined ? JoinHeads(y) : y);
}

constexpr char kContrib[] = "com.microsoft";
constexpr OpRow kRows[] = {
    {.name = "Attention", .since = 1, .import = ImportContribAttention, .domain = kContrib},
    {.name = "QAttention", .since = 1, .import = ImportQAttention, .domain = kContrib},
    {.name = "MultiHeadAttention",
     .since = 1,
     .import = ImportMultiHeadAttention,
     .domain = kContrib},
    {.name = "GroupQueryAttention",
     .since = 1,
     .import = ImportGroupQueryAttention,
     .domain = kContrib},
    {.name = "RotaryEmbedding",
     .since = 1,
     .import = ImportContribRotaryEmbedding,
     .domain = kContrib},
};

}  // namespace

std::span<const OpRow> ContribAttentionRows() { return kRows; }

}  // namespace tenon::onnx
