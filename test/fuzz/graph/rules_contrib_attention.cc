// Attention as exporters fuse it (com.microsoft), and with functions of its scores.
#include "fuzz/graph/rules.h"

namespace tenon::fuzz {

namespace {

constexpr const char* kContrib = "com.microsoft";
constexpr Types kMost = Only(kF32) | Only(kF16);

// A mask adds -10,000 to scores: where it hides all of them they have three digits left, and in
// halves none.
constexpr double kHidden = 5e-3;

// Of a softmax over values up to `most`.
Value Weighted(Elem t, Dims dims, double most, double error) {
  return Computed(t, std::move(dims), most, error + Rounded(t, most, 2 * kFunction));
}

bool Packed(Maker& m, const Rule& rule, Elem t) {
  const bool quantized = rule.op == std::string_view("QAttention");
  const Size batch = Within(m.AnyOpenSize(), 1, 3), length = Within(m.AnyOpenSize(), 1, 9);
  const int64_t heads = m.Between(1, 3), size = m.Between(1, 5), width = m.Between(1, 7),
                h = heads * size, past = m.Chance(3) ? m.Between(1, 5) : 0;
  const bool masked = t == kF32 && m.Chance(2);
  const Size all = length + Size(past);
  std::vector<std::string> inputs;
  const double most = static_cast<double>(width) * (quantized ? 127.0 * 8 / 128 : 1) + 1;
  if (quantized) {
    const std::string small = m.Number(kF32, 1.0 / 128).name, step = m.Number(kF32, 1.0 / 16).name;
    inputs = {m.Data(kU8, {batch, length, width}, 0, 255).name,
              m.Constant(kI8, {width, 3 * h}, -127, 127).name,
              m.Data(kF32, {3 * h}, -1, 1, false).name, small, step};
  } else {
    inputs = {m.Like(t, {batch, length, width}, {.lo = -2, .hi = 2, .exact = true}).name,
              m.Data(t, {width, 3 * h}, -0.5, 0.5, false).name,
              m.Data(t, {3 * h}, -1, 1, false).name};
  }
  inputs.push_back(masked ? m.Data(kI32, {batch, all}, 0, 1).name : "");
  if (quantized) inputs.insert(inputs.end(), {m.Number(kU8, 128).name, m.Number(kI8, 0).name});
  std::vector<Value> results = {Weighted(t, {batch, length, h}, most, 0)};
  if (past > 0) {
    inputs.push_back(m.Data(t, {2, batch, heads, past, size}, -2, 2).name);
    results.push_back(Weighted(t, {2, batch, heads, all, size}, most, 0));
  }
  // Scores that differ much leave one key: how much of a second is a matter of their last bits.
  for (Value& v : results) v.error = v.error * most + (masked ? kHidden : 0);
  return m.AddAll(rule.op, inputs, results,
                  {Int("num_heads", heads), Int("unidirectional", m.Chance(2))}, kContrib);
}

bool SharedBuffer(Maker& m, const Rule& rule, Elem t);

bool MultiHead(Maker& m, const Rule& rule, Elem t) {
  if (m.Chance(3)) return SharedBuffer(m, rule, t);
  const Size batch = Within(m.AnyOpenSize(), 1, 3), rows = Within(m.AnyOpenSize(), 1, 9),
             keys = Within(m.AnyOpenSize(), 1, 9);
  const int64_t heads = m.Between(1, 3), size = m.Between(1, 5), h = heads * size,
                past = m.Chance(3) ? m.Between(1, 5) : 0;
  const auto of = [&](Size length) {
    return m.Like(t, {batch, length, h}, {.lo = -2, .hi = 2, .exact = true}).name;
  };
  std::vector<std::string> inputs = {of(rows), of(keys), of(keys)};
  inputs.push_back(m.Chance(2) ? m.Data(t, {3 * h}, -1, 1, false).name : "");
  const bool masked = t == kF32 && m.Chance(3);
  inputs.push_back(masked ? m.Data(kI32, {batch, keys + Size(past)}, 0, 1).name : "");
  inputs.push_back(m.Chance(3) ? m.Data(t, {1, heads, rows, keys + Size(past)}, -2, 2, false).name
                               : "");
  std::vector<Value> results = {Weighted(t, {batch, rows, h}, 3, masked ? kHidden : 0)};
  if (past > 0) {
    for (int i = 0; i < 2; ++i) {
      inputs.push_back(m.Data(t, {batch, heads, past, size}, -2, 2).name);
      results.push_back(
          Computed(t, {batch, heads, keys + Size(past), size}, 3, Rounded(t, 3, kArithmetic)));
    }
  }
  return m.AddAll(rule.op, inputs, results, {Int("num_heads", heads)}, kContrib);
}

// Past keys in a buffer with room for new ones; with beams, a sequence sees those of its group's.
bool SharedBuffer(Maker& m, const Rule& rule, Elem t) {
  const int64_t width = m.Between(1, 3), batch = width * m.Between(1, 2), heads = m.Between(1, 3),
                size = m.Between(1, 5), h = heads * size, past = m.Between(0, 5);
  const bool beams = m.Chance(2);
  const int64_t rows = beams ? 1 : m.Between(1, 4), all = past + rows;
  const Size room = all + m.Between(0, 4);
  const auto of = [&] {
    return m.Like(t, {batch, rows, h}, {.lo = -2, .hi = 2, .exact = true}).name;
  };
  const bool masked = t == kF32 && m.Chance(3);
  std::vector<std::string> inputs = {of(), of(), of()};
  inputs.push_back(m.Chance(2) ? m.Data(t, {3 * h}, -1, 1, false).name : "");
  inputs.push_back(masked ? m.Data(kI32, {batch, all}, 0, 1).name : "");
  inputs.push_back("");
  for (int i = 0; i < 2; ++i) inputs.push_back(m.Data(t, {batch, heads, room, size}, -2, 2).name);
  const auto used = static_cast<double>(past);
  inputs.push_back(m.Data(kI32, {1}, used, used).name);
  if (beams) {
    const auto last = static_cast<double>(width - 1);
    inputs.push_back(m.Data(kI32, {batch / width, width, room}, 0, last).name);
  }
  const Value cache = Computed(t, {batch, heads, room, size}, 3, Rounded(t, 3, kArithmetic));
  return m.AddAll(rule.op, inputs,
                  {Weighted(t, {batch, rows, h}, 3, masked ? kHidden : 0), cache, cache},
                  {Int("num_heads", heads), Int("unidirectional", m.Chance(2))}, kContrib);
}

// A prompt, or steps after a cache of which each sequence has used its part.
bool Grouped(Maker& m, const Rule& rule, Elem t) {
  const int64_t batch = m.Between(1, 3), groups = m.Between(1, 2), heads = groups * m.Between(1, 2),
                size = 8 * m.Between(1, 2);
  const bool prompt = m.Chance(2), turns = m.Chance(2);
  const int64_t length = prompt ? m.Between(1, 9) : 1, past = prompt ? 0 : m.Between(1, 9),
                all = length + past;
  const auto of = [&](int64_t n) {
    return m.Data(t, {batch, length, n * size}, -1, 1, false).name;
  };
  std::vector<std::string> inputs = {of(heads), of(groups), of(groups)};
  for (int i = 0; i < 2; ++i) {
    inputs.push_back(prompt ? "" : m.Data(t, {batch, groups, past, size}, -1, 1, false).name);
  }
  // How many keys each has, less one.
  const auto most = static_cast<double>(all - 1);
  inputs.push_back(m.Data(kI32, {batch}, prompt ? most : 0, most).name);
  inputs.push_back(m.Tensor(kI32, {}, {static_cast<double>(all)}).name);
  std::vector<std::string> attributes = {Int("num_heads", heads), Int("kv_num_heads", groups)};
  if (turns) {
    for (int i = 0; i < 2; ++i) inputs.push_back(m.Data(t, {17, size / 2}, -1, 1, false).name);
    attributes.insert(attributes.end(),
                      {Int("do_rotary", 1), Int("rotary_interleaved", m.Chance(2))});
  }
  if (m.Chance(4)) attributes.push_back(Int("local_window_size", m.Between(1, 4)));
  const Value y = Weighted(t, {batch, length, heads * size}, 1, 0);
  const Value cache = Computed(t, {batch, groups, all, size}, 2, Rounded(t, 2, kArithmetic));
  return m.AddAll(rule.op, inputs, {y, cache, cache}, attributes, kContrib);
}

// A function of the scores, and one of what softmax makes of them.
bool Flexible(Maker& m, const Rule& rule, Elem t) {
  const int64_t groups = m.Between(1, 2), heads = groups * m.Between(1, 2), d = m.Between(1, 5),
                e = m.Between(1, 5);
  const Size batch = Within(m.AnyOpenSize(), 1, 3), rows = Within(m.AnyOpenSize(), 1, 9),
             keys = Within(m.AnyOpenSize(), 1, 9);
  const auto of = [&](int64_t n, Size length, int64_t width) {
    return m.Like(t, {batch, n, length, width}, {.lo = -2, .hi = 2, .exact = true}).name;
  };
  const std::vector<std::string> inputs = {of(heads, rows, d), of(groups, keys, d),
                                           of(groups, keys, e)};
  const Elem inner = t == kF64 ? kF64 : kF32;
  std::vector<std::string> attributes;
  for (const char* what : {"score_mod", "prob_mod"}) {
    if (m.Chance(2)) continue;
    m.Enter();
    const Value in = m.Formal(inner, {batch, heads, rows, keys}, -40, 40, false);
    const std::string out = m.NewName();
    m.Plain("Mul", {in.name, m.Number(inner, 0.5).name}, out);
    attributes.push_back(m.Leave(what, {{out, inner}}));
  }
  return m.Add(rule.op, inputs, Weighted(t, {batch, heads, rows, e}, 2, 0), attributes, rule.domain)
      .has_value();
}

constexpr Rule kRules[] = {
    {"Attention", 18, kMost, Packed, kContrib},
    {"QAttention", 18, Only(kF32), Packed, kContrib},
    {"MultiHeadAttention", 18, kMost, MultiHead, kContrib},
    {"GroupQueryAttention", 18, kMost, Grouped, kContrib},
    {"FlexAttention", 26, kFloats, Flexible, "ai.onnx.preview"},
};

}  // namespace

std::span<const Rule> ContribAttentionRules() { return kRules; }

}  // namespace tenon::fuzz
