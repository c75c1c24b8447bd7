// Cells that run over time, and what carries a state from call to call.
//
// Weights are small, so that a cell stretches what came before it by little more than one.
#include "fuzz/graph/rules.h"

namespace tenon::fuzz {

namespace {

// The sizes of a cell and what they make of its operands.
struct Cell {
  int64_t gates, hidden, inputs, ways;
  Size time, batch;
  bool batch_first;
  Dims state() const { return batch_first ? Dims{batch, ways, hidden} : Dims{ways, batch, hidden}; }
  Dims all() const {
    return batch_first ? Dims{batch, time, ways, hidden} : Dims{time, ways, batch, hidden};
  }
};

Cell AnyCell(Maker& m, std::string_view op, Elem t, int64_t ways) {
  Cell c{op == "LSTM" ? 4 : op == "GRU" ? 3 : 1,
         m.Between(1, 5),
         m.Between(1, 9),
         ways,
         1,
         1,
         m.Chance(4)};
  c.time = Within(m.AnyOpenSize(), 1, t == kBF16 ? 2 : 5);
  c.batch = Within(m.AnyOpenSize(), 1, 9);
  return c;
}

// Of a cell's results at the end of its time; cells themselves (of LSTM) are up to the length.
double CellError(const Cell& c, const Value& x, Elem t) {
  const auto steps = static_cast<double>(c.time.most());
  return (x.error * static_cast<double>(c.inputs) * 0.25 + InfoOf(t).unit) * (1 + 2 * steps);
}

bool Recurrent(Maker& m, const Rule& rule, Elem t) {
  const std::string_view op = rule.op;
  const std::string direction =
      m.Of<std::string>({"forward", "forward", "reverse", "bidirectional"});
  const Cell c = AnyCell(m, op, t, direction == "bidirectional" ? 2 : 1);
  const auto weight = [&](const Ints64& dims) {
    return m.Data(t, {dims.begin(), dims.end()}, -0.25, 0.25, false).name;
  };
  const Value x =
      m.Like(t, c.batch_first ? Dims{c.batch, c.time, c.inputs} : Dims{c.time, c.batch, c.inputs},
             {.lo = -2, .hi = 2});
  std::vector<std::string> inputs = {x.name, weight({c.ways, c.gates * c.hidden, c.inputs}),
                                     weight({c.ways, c.gates * c.hidden, c.hidden})};
  inputs.push_back(m.Chance(2) ? weight({c.ways, 2 * c.gates * c.hidden}) : "");
  inputs.push_back(
      m.Chance(3) ? m.Data(kI32, {c.batch}, 1, static_cast<double>(c.time.least())).name : "");
  inputs.push_back(m.Chance(2) ? m.Data(t, c.state(), -1, 1, false).name : "");
  std::vector<std::string> attributes = {Int("hidden_size", c.hidden), Str("direction", direction)};
  if (c.batch_first) attributes.push_back(Int("layout", 1));
  if (op == "GRU" && m.Chance(2)) attributes.push_back(Int("linear_before_reset", 1));
  if (m.Chance(6)) attributes.push_back(Float("clip", 3));
  if (op == "LSTM") {
    inputs.push_back(m.Chance(2) ? m.Data(t, c.state(), -1, 1, false).name : "");
    if (m.Chance(4)) inputs.push_back(weight({c.ways, 3 * c.hidden}));
  }
  const double error = CellError(c, x, t);
  std::vector<Value> results = {Computed(t, c.all(), 1, error), Computed(t, c.state(), 1, error)};
  if (op == "LSTM") {
    const auto most = static_cast<double>(c.time.most() + 1);
    results.push_back(Computed(t, c.state(), most, 2 * error));
  }
  return m.AddAll(rule.op, inputs, results, attributes);
}

// Weights of 8 bits. The data is rounded to 255 steps, all but the same in all that is right.
bool QuantizedLstm(Maker& m, const Rule& rule, Elem t) {
  Cell c = AnyCell(m, "LSTM", t, 1);
  c.batch_first = false;
  const int64_t wide = 4 * c.hidden;
  const Value x = m.Like(t, {c.time, c.batch, c.inputs}, {.lo = -2, .hi = 2, .exact = true});
  const std::string scale = m.Tensor(kF32, {1}, {1.0 / 512}).name,
                    zero = m.Tensor(kU8, {1}, {128}).name;
  const std::string w = m.Constant(kU8, {1, c.inputs, wide}, 0, 255).name,
                    r = m.Constant(kU8, {1, c.hidden, wide}, 0, 255).name;
  const double most = 1, steps = static_cast<double>(c.time.most());
  // A step of the data more or less is 1/60 of it.
  const double error = 0.01 * steps;
  return m.AddAll(rule.op, {x.name, w, r, "", "", "", "", "", scale, zero, scale, zero},
                  {Computed(t, c.all(), most, error), Computed(t, c.state(), most, error)},
                  {Int("hidden_size", c.hidden)}, rule.domain);
}

bool CausalConv(Maker& m, const Rule& rule, Elem t) {
  const Size batch = Within(m.AnyOpenSize(), 1, 5), length = Within(m.AnyOpenSize(), 1, 17);
  const int64_t channels = m.Between(1, 9), k = m.Between(1, 4);
  const bool silu = m.Chance(2);
  const Value x = m.Like(t, {batch, channels, length}, {.lo = -4, .hi = 4});
  std::vector<std::string> inputs = {x.name, m.Data(t, {channels, 1, k}, -1, 1).name};
  inputs.push_back(m.Chance(2) ? m.Data(t, {channels}, -2, 2).name : "");
  if (m.Chance(2) && k > 1) inputs.push_back(m.Data(t, {batch, channels, k - 1}, -4, 4).name);
  const double most = 4.0 * static_cast<double>(k) + 2;
  Value y = Computed(t, x.dims, most, x.error * static_cast<double>(k) * 1.1);
  y.error += Rounded(t, most, silu ? kFormula : kArithmetic);
  Value state = Computed(t, {batch, channels, k - 1}, 4, x.error);
  return m.AddAll(rule.op, inputs, {y, state},
                  {Str("activation", silu ? m.Of<std::string>({"silu", "swish"}) : "none")});
}

bool LinearAttention(Maker& m, const Rule& rule, Elem t) {
  const Size batch = Within(m.AnyOpenSize(), 1, 3),
             time = Within(m.AnyOpenSize(), 1, t == kBF16 ? 3 : 7);
  const int64_t heads = m.Between(1, 2), queries = heads * m.Between(1, 2), dk = m.Between(1, 4),
                dv = m.Between(1, 5);
  const std::string kind = m.Of<std::string>({"linear", "gated", "delta", "gated_delta"});
  const bool decays = kind.starts_with("gated"), updates = kind.ends_with("delta");
  const auto data = [&](int64_t width, double lo, double hi) {
    return m.Data(t, {batch, time, width}, lo, hi, false).name;
  };
  // Keys so short that an update never overshoots.
  std::vector<std::string> inputs = {data(queries * dk, -1, 1), data(heads * dk, -0.5, 0.5),
                                     data(heads * dv, -1, 1)};
  inputs.push_back(m.Chance(2) ? m.Data(t, {batch, heads, dk, dv}, -1, 1, false).name : "");
  inputs.push_back(decays ? data(m.Chance(2) ? heads : heads * dk, -1, 0) : "");
  if (updates) inputs.push_back(data(m.Chance(2) ? heads : 1, 0, 1));
  const double most = 1 + static_cast<double>(time.most()) * 0.75;
  const double error = Rounded(t, most, 1 + static_cast<double>(time.most()) / 4);
  return m.AddAll(
      rule.op, inputs,
      {Computed(t, {batch, time, queries * dv}, most * static_cast<double>(dk), error * 2),
       Computed(t, {batch, heads, dk, dv}, most, error)},
      {Int("q_num_heads", queries), Int("kv_num_heads", heads), Str("update_rule", kind),
       Float("scale", 0.5f)});
}

// New rows in a cache, each sequence from its own place on.
bool TensorScatter(Maker& m, const Rule& rule, Elem t) {
  const Size batch = Within(m.AnyOpenSize(), 1, 5), rows = Within(m.AnyOpenSize(), 1, 4);
  const int64_t room = m.Between(rows.most(), rows.most() + 9), width = m.Between(1, 9);
  const bool heads = m.Chance(2), circular = m.Chance(3);
  Dims cache = {batch, room, width}, update = {batch, rows, width};
  if (heads) cache.insert(cache.begin() + 1, 2), update.insert(update.begin() + 1, 2);
  const Value x = m.Like(t, cache), u = m.Like(t, update);
  Value y = x;
  y.lo = std::min(x.lo, u.lo), y.hi = std::max(x.hi, u.hi);
  y.error = std::max(x.error, u.error), y.whole = x.whole && u.whole;
  const int64_t last = circular ? room - 1 : room - rows.most();
  const Value at = m.Data(kI64, {batch}, 0, static_cast<double>(last));
  return m
      .Add(rule.op, {x.name, u.name, at.name}, y,
           {Str("mode", circular ? "circular" : "linear"), Int("axis", heads ? 2 : -2)})
      .has_value();
}

bool Rotary(Maker& m, const Rule& rule, Elem t) {
  const bool contrib = *rule.domain != 0, flat = m.Chance(2);
  const Size batch = Within(m.AnyOpenSize(), 1, 3), length = Within(m.AnyOpenSize(), 1, 17);
  const int64_t heads = m.Between(1, 3), half = m.Between(1, 5), places = 17;
  const Dims dims =
      flat ? Dims{batch, length, heads * half * 2} : Dims{batch, heads, length, half * 2};
  const Value x = m.Like(t, dims, {.lo = -4, .hi = 4});
  const std::string cos = m.Data(t, {places, half}, -1, 1, false).name,
                    sin = m.Data(t, {places, half}, -1, 1, false).name;
  const std::string at = m.Data(kI64, {batch, length}, 0, places - 1).name;
  const Value y = Computed(t, dims, 8, 2 * x.error + Rounded(t, 4, kArithmetic));
  std::vector<std::string> attributes = {Int("interleaved", m.Chance(2))};
  if (flat) attributes.push_back(Int("num_heads", heads));
  if (flat && contrib) attributes.push_back(Int("rotary_embedding_dim", half * 2));
  const std::vector<std::string> inputs =
      contrib ? std::vector{x.name, at, cos, sin} : std::vector{x.name, cos, sin, at};
  return m.Add(rule.op, inputs, y, attributes, rule.domain).has_value();
}

constexpr Types kState = Only(kF32) | Only(kF16) | Only(kBF16);

constexpr Rule kRules[] = {
    {"LSTM", 22, kFloats, Recurrent},
    {"GRU", 22, kFloats, Recurrent},
    {"RNN", 22, kFloats, Recurrent},
    {"DynamicQuantizeLSTM", 14, Only(kF32), QuantizedLstm, "com.microsoft"},
    {"CausalConvWithState", 27, kState, CausalConv},
    {"LinearAttention", 27, kState, LinearAttention},
    {"TensorScatter", 24, kAny & ~Only(kI2) & ~Only(kU2), TensorScatter},
    {"RotaryEmbedding", 23, kState, Rotary},
    {"RotaryEmbedding", 18, kState, Rotary, "com.microsoft"},
};

}  // namespace

std::span<const Rule> RecurrentRules() { return kRules; }

}  // namespace tenon::fuzz
