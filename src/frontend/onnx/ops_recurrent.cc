// RNN, GRU and LSTM: one loop over time for each direction.
//
// What the inputs add to the gates does not depend on the state, so it is one product in front of
// the loop, X · Wᵀ + bias, of all times: [T, B, gates · H]. An iteration takes its row, adds
// h · Rᵀ, and makes the next state. A cell is a function from (row, states) to the next states, of
// which the first is the output:
//
//   RNN   h' = f(x + h Rᵀ)
//   GRU   z, r = f(x_zr + h R_zrᵀ);  n = g(x_n + r ∘ (h R_nᵀ + b), or (r ∘ h) R_nᵀ + b)
//         h' = (1 - z) ∘ n + z ∘ h
//   LSTM  i, o, f = f(x_iof + h R_iofᵀ + p ∘ c);  c' = f ∘ c + i ∘ g(x_c + h R_cᵀ);  h' = o ∘ h(c')
//
// Of f16 and bf16 all of this is f32 but for what products read, the inputs, weights and outputs,
// and so is the LSTM's c on its way through time: an output is rounded once.
//
// Of DynamicQuantizeLSTM both products are of bytes: the input and each state become bytes over the
// range that their values take, and the scales of both operands follow behind the product.
//
// Backwards in time is the same on a reversed sequence. Where sequences are shorter than T, each is
// reversed within its own length, states stay as they are beyond it, and outputs are zero.
#include <algorithm>

#include "frontend/onnx/formula.h"
#include "frontend/onnx/index_checks.h"
#include "frontend/onnx/ops.h"
#include "graph/dims.h"

namespace tenon::onnx {
namespace {

// ---- Activations ----

struct Activation {
  std::string name;
  double alpha, beta;
};

struct ActivationRow {
  const char* name;
  bool has_alpha, has_beta;
  double alpha, beta;  // where they are left out
  Val (*apply)(const Val& x, double alpha, double beta);
};

constexpr ActivationRow kActivations[] = {
    {"Relu", false, false, 0, 0,
     [](const Val& x, double, double) { return Apply(OpKind::kRelu, x); }},
    {"Tanh", false, false, 0, 0, [](const Val& x, double, double) { return Tanh(x); }},
    {"Sigmoid", false, false, 0, 0, [](const Val& x, double, double) { return Sigmoid(x); }},
    {"Softsign", false, false, 0, 0, [](const Val& x, double, double) { return x / (Abs(x) + 1); }},
    {"Softplus", false, false, 0, 0,
     [](const Val& x, double, double) { return Apply(OpKind::kSoftplus, x); }},
    {"Affine", true, true, 1, 0, [](const Val& x, double a, double b) { return x * a + b; }},
    {"LeakyRelu", true, false, 0.01, 0,
     [](const Val& x, double a, double) { return Where(x < 0, x * a, x); }},
    {"ThresholdedRelu", true, false, 1, 0,
     [](const Val& x, double a, double) { return Where(x > a, x, 0); }},
    {"ScaledTanh", true, true, 1, 1,
     [](const Val& x, double a, double b) { return Tanh(x * b) * a; }},
    {"HardSigmoid", true, true, 0.2, 0.5,
     [](const Val& x, double a, double b) {
       return x ? x.formula().Emit(OpKind::kHardSigmoid, {x}, {{"alpha", a}, {"beta", b}}) : x;
     }},
    {"Elu", true, false, 1, 0,
     [](const Val& x, double a, double) { return Where(x > 0, x, (Exp(x) - 1) * a); }},
};

const ActivationRow* FindActivation(std::string_view name) {
  for (const ActivationRow& row : kActivations) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

Val Apply(const Activation& a, const Val& x) {
  return FindActivation(a.name)->apply(x, a.alpha, a.beta);
}

// ---- What the three have in common ----

// A matrix [gates · H, K], of each direction or of one. Of a quantised one the bytes, the scale,
// what their zero points are (i32, left out where they are zeros), and the sums of its rows less
// these (i32): the last three [1, 1 or gates · H].
struct Weights {
  Val matrix, scale, zero, sums;
};

struct Recurrent {
  size_t gates;      // matrices in W and R
  size_t states;     // h, or h and c
  size_t functions;  // activations of a direction
  std::vector<std::string> defaults;

  size_t directions = 1;
  bool forward = true, backward = false, batch_first = false;
  double clip = 0;  // 0: none
  int64_t hidden = 0;
  std::vector<Activation> activations;  // those of the directions, one after the other
  Weights input, state;                 // of all directions: [D, …]
};

Status ReadActivations(OpContext& c, Recurrent* r) {
  std::vector<std::string> names;
  if (c.HasAttr("activations")) {
    TN_ASSIGN_OR_RETURN(names, c.Strings("activations"));
  } else {
    for (size_t d = 0; d < r->directions; ++d)
      names.insert(names.end(), r->defaults.begin(), r->defaults.end());
  }
  if (names.size() != r->functions * r->directions) {
    return c.Error("expected {} activations, but got {}", r->functions * r->directions,
                   names.size());
  }
  // Each list holds what those that have such a number take, in order.
  TN_ASSIGN_OR_RETURN(const auto alphas, c.Floats("activation_alpha"));
  TN_ASSIGN_OR_RETURN(const auto betas, c.Floats("activation_beta"));
  size_t alpha = 0, beta = 0;
  const auto next = [](const auto& list, bool has, size_t* at, double fallback) {
    return has && list && *at < list->size() ? (*list)[(*at)++] : fallback;
  };
  for (const std::string& name : names) {
    const ActivationRow* row = FindActivation(name);
    if (!row) return c.Error("unknown activation {}", graph::Quoted(name));
    r->activations.push_back({name, next(alphas, row->has_alpha, &alpha, row->alpha),
                              next(betas, row->has_beta, &beta, row->beta)});
  }
  return Ok();
}

// One for each direction, or for each of its rows, [D, 1, 1 or gates · H].
Val Beside(const Val& v) { return v.rank() == 1 ? Unsqueeze(Unsqueeze(v, 1), 1) : Unsqueeze(v, 1); }

// The weights of input `i`. Quantised ones, [D, K, gates · H], have a scale and zero points in
// inputs `scale` and the next.
Weights WeightsAt(const Formula& f, size_t i, size_t scale, bool quantised) {
  Weights w{.matrix = f.In(i)};
  if (!quantised) return w;
  const DType i32 = DType::Int(32);
  const Val zero = Cast(Beside(f.In(scale + 1)), i32);
  w.scale = Beside(f.In(scale));
  w.sums = Sum(Cast(w.matrix, i32) - zero, {1});
  w.matrix = Swap(w.matrix, 1, 2);
  const auto known = f.builder().KnownInts(f.In(scale + 1).id());
  const bool zeros =
      known && std::all_of(known->begin(), known->end(), [](int64_t z) { return z == 0; });
  if (!zeros) w.zero = zero;
  return w;
}

// x · Wᵀ. Where the weights have a scale, x becomes bytes first, in steps of a 255th of the range
// that its values take, which is made to hold 0, and the product is one of whole numbers:
//   Σ (q - zq)(w - zw) = Σ q w - zw Σ q - zq Σ (w - zw)
Val Product(const Val& x, const Weights& w) {
  if (!w.scale) return WideMatMul(x, w.matrix, false, true);
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
  const DType i32 = DType::Int(32);
  const Val least = Min(Reduce("min", x, axes, false), 0);
  const Val range = Max(Reduce("max", x, axes, false), 0) - least;
  const Val step = Where(Equal(range, 0), 1, range / 255);
  const Val zero = Round((0 - least) / step);
  const Val q = Cast(Max(Min(Round(x / step) + zero, 255), 0), DType::UInt(8));
  Val sum = MatMul(q, w.matrix, false, true) - Cast(zero, i32) * w.sums;
  if (w.zero) sum = sum - Sum(Cast(q, i32), {x.rank() - 1}) * w.zero;
  return Cast(sum, x.dtype()) * (step * w.scale);
}

Status Read(OpContext& c, Recurrent* r, bool quantised = false) {
  TN_ASSIGN_OR_RETURN(const std::string direction, c.String("direction", "forward"));
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return c.Error("expected direction forward, reverse or bidirectional, but got {}",
                   graph::Quoted(direction));
  }
  r->forward = direction != "reverse";
  r->backward = direction != "forward";
  r->directions = direction == "bidirectional" ? 2 : 1;
  TN_ASSIGN_OR_RETURN(r->clip, c.Float("clip", 0));
  // Whether there is an output of all times, which the node's outputs say.
  if (c.opset < 7) TN_RETURN_IF_ERROR(c.Bool("output_sequence", false));
  if (c.opset >= 14) {
    TN_ASSIGN_OR_RETURN(r->batch_first, c.Bool("layout", false));
  }
  for (size_t i = 0; i < 3; ++i) {
    if (c.Rank(i) != 3)
      return c.Error("expected an input and weights of rank 3, but got {}", c.Type(i).ToString());
  }
  std::optional<int64_t> known = AsInt(c.Dims(2)[2]);
  if (c.HasAttr("hidden_size")) {
    TN_ASSIGN_OR_RETURN(known, c.Int("hidden_size", std::nullopt));
  }
  if (!quantised && known) {
    const int64_t size = *known;
    const int64_t rows = static_cast<int64_t>(r->gates) * size;
    for (size_t weight : {1, 2}) {
      TN_RETURN_IF_ERROR(c.Fix(weight, 0, static_cast<int64_t>(r->directions)));
      TN_RETURN_IF_ERROR(c.Fix(weight, 1, rows));
    }
    TN_RETURN_IF_ERROR(c.Fix(2, 2, size));
    if (c.Has(3)) TN_RETURN_IF_ERROR(c.Fix(3, 0, static_cast<int64_t>(r->directions)));
    if (c.Has(3)) TN_RETURN_IF_ERROR(c.Fix(3, 1, 2 * rows));
  }
  const Formula f(c);
  r->input = WeightsAt(f, 1, 8, quantised);
  r->state = WeightsAt(f, 2, 10, quantised);
  TN_RETURN_IF_ERROR(f.Done());
  const Dims w = r->input.matrix.dims(), s = r->state.matrix.dims();
  const std::optional<int64_t> hidden = AsInt(s[2]);
  if (!hidden || *hidden < 1)
    return c.Error("expected weights of known size, but got {}", c.Type(2).ToString());
  r->hidden = *hidden;
  TN_ASSIGN_OR_RETURN(const int64_t stated, c.Int("hidden_size", r->hidden));
  const int64_t rows = static_cast<int64_t>(r->gates) * r->hidden,
                directions = static_cast<int64_t>(r->directions);
  if (stated != r->hidden || AsInt(w[1]) != rows || AsInt(s[1]) != rows ||
      AsInt(w[0]) != directions || AsInt(s[0]) != directions) {
    return c.Error(
        "expected weights of {} directions and {} gates of hidden_size {}, but got {} "
        "and {}",
        directions, r->gates, stated, c.Type(1).ToString(), c.Type(2).ToString());
  }
  return ReadActivations(c, r);
}

// What one direction's cell is made of. `x` is [B, gates · H], of one time; weights and biases are
// this direction's.
struct CellInput {
  Val x, bias;              // [1, gates · H] or left out
  Weights weights;          // [gates · H, H]
  Val peephole;             // [1, 3 · H], of an LSTM, or left out
  std::vector<Val> states;  // [B, H]; h is of the input's type, all else wide
};
using Cell = std::function<std::vector<Val>(const CellInput& in, std::span<const Activation> act)>;

// Columns of gates `from` to `to`.
Val Gates(const Val& x, int64_t hidden, int64_t from, int64_t to, int64_t axis = -1) {
  return Slice(x, axis, IndexConst(from * hidden), IndexConst((to - from) * hidden));
}

Val Clipped(const Val& x, double clip) { return clip > 0 ? Max(Min(x, clip), -clip) : x; }

// One direction: Y [T, B, H], then the last states. Of `initial` all but h are wide.
std::vector<Val> RunDirection(const Formula& f, const Recurrent& r, int64_t d, bool backward,
                              const Val& x, const Val& lengths, const std::vector<Val>& initial,
                              const Val& peephole, const Cell& cell) {
  const auto reversed = [&](const Val& v) {
    return lengths ? ReverseRows(v, lengths) : Flip(v, 0);
  };
  const auto act =
      std::span(r.activations).subspan(static_cast<size_t>(d) * r.functions, r.functions);
  const auto own = [&](const Val& all) { return all ? Element(all, 0, d) : all; };
  const auto of_direction = [&](const Weights& all) {
    return Weights{own(all.matrix), own(all.scale), own(all.zero), own(all.sums)};
  };
  const Weights weights = of_direction(r.state);
  Val rows = Product(backward ? reversed(x) : x, of_direction(r.input));
  Val bias;
  if (f.In(3)) {
    const int64_t gates = static_cast<int64_t>(r.gates);
    const Val both = Widened(Slice(f.In(3), 0, IndexConst(d), IndexConst(1)));
    rows = rows + Gates(both, r.hidden, 0, gates);
    bias = Gates(both, r.hidden, gates, 2 * gates);
  }
  std::vector<Val> captured = {rows, weights.matrix};
  for (const Val& v : {weights.scale, weights.zero, weights.sums, bias, peephole, lengths}) {
    if (v) captured.push_back(v);
  }
  const auto step = [&](const Val& i, const std::vector<Val>& states,
                        const std::vector<Val>& inside) {
    size_t at = 2;
    const auto next = [&](const Val& outside) { return outside ? inside[at++] : Val(); };
    CellInput in{.x = Gather(inside[0], i, 0), .weights = {inside[1]}, .states = states};
    in.weights.scale = next(weights.scale);
    in.weights.zero = next(weights.zero);
    in.weights.sums = next(weights.sums);
    in.bias = next(bias);
    in.peephole = next(peephole);
    const Val lasts = next(lengths);
    std::vector<Val> out = cell(in, act);
    out[0] = Cast(out[0], x.dtype());
    Val y = out[0];
    if (lasts) {
      const Val runs = Unsqueeze(Cast(i, lasts.dtype()) < lasts, 1);
      y = Where(runs, y, 0);
      for (size_t k = 0; k < out.size(); ++k) out[k] = Where(runs, out[k], states[k]);
    }
    out.push_back(y);
    return out;
  };
  std::vector<Val> out = Loop(f, x.dim(0), initial, captured, step);
  for (Val& state : out) state = Cast(state, x.dtype());
  std::rotate(out.begin(), out.end() - 1, out.end());
  if (backward) out[0] = reversed(out[0]);
  return out;
}

// States that are given are of as many sequences as the input.
Val Initial(const Formula& f, const Val& state, const Expr& batch) {
  if (!state || graph::ProveEqual(state.dim(0), batch)) return state;
  f.builder().Require(Eq(state.dim(0), batch));
  return Expand(state, {batch, state.dim(1)});
}

Status Run(OpContext& c, const Recurrent& r, const Cell& cell) {
  const Formula f(c);
  const Val x = r.batch_first ? Swap(f.In(0), 0, 1) : f.In(0);
  if (c.Has(4) && c.Rank(4) != 1)
    return c.Error("expected one length per sequence, but got {}", c.Type(4).ToString());
  const Val lengths = InRange(c, 4, f.In(4), graph::DimAdd(x.dim(0), IndexConst(1)));
  std::vector<std::vector<Val>> results(1 + r.states);  // Y, then each state; by direction
  for (size_t d = 0; d < r.directions; ++d) {
    const bool backward = r.backward && (d == 1 || !r.forward);
    const auto at = static_cast<int64_t>(d);
    std::vector<Val> initial;
    for (size_t k = 0; k < r.states; ++k) {
      const Val given = f.In(5 + k);
      const Val all = given && r.batch_first ? Swap(given, 0, 1) : given;
      const Val state = all ? Initial(f, Element(all, 0, at), x.dim(1))
                            : Expand(f.Number(x.dtype(), 0), {x.dim(1), IndexConst(r.hidden)});
      initial.push_back(k == 0 ? state : Widened(state));
    }
    const Val peephole =
        f.In(7) ? Widened(Slice(f.In(7), 0, IndexConst(at), IndexConst(1))) : Val();
    const std::vector<Val> out =
        RunDirection(f, r, at, backward, x, lengths, initial, peephole, cell);
    TN_RETURN_IF_ERROR(f.Done());
    for (size_t k = 0; k < results.size(); ++k) results[k].push_back(out[k]);
  }
  std::vector<Val> out;
  for (size_t k = 0; k < results.size(); ++k) {
    const Val all = Stack(results[k], k == 0 ? 1 : 0);  // [T, D, B, H] and [D, B, H]
    out.push_back(!r.batch_first ? all : k == 0 ? Transpose(all, {2, 0, 1, 3}) : Swap(all, 0, 1));
    TN_RETURN_IF_ERROR(f.Done());
    TN_RETURN_IF_ERROR(c.SetOutput(k, out[k].id()));
  }
  return Ok();
}

// x + h Rᵀ + bias
Val GateSums(const CellInput& in, const Weights& weights, const Val& x, const Val& bias) {
  const Val sum = x + Product(in.states[0], weights);
  return bias ? sum + bias : sum;
}

Status ImportRnn(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 6));
  Recurrent r{.gates = 1, .states = 1, .functions = 1, .defaults = {"Tanh"}};
  TN_RETURN_IF_ERROR(Read(c, &r));
  return Run(c, r, [&](const CellInput& in, std::span<const Activation> act) -> std::vector<Val> {
    return {Apply(act[0], Clipped(GateSums(in, in.weights, in.x, in.bias), r.clip))};
  });
}

Status ImportGru(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 6));
  Recurrent r{.gates = 3, .states = 1, .functions = 2, .defaults = {"Sigmoid", "Tanh"}};
  TN_RETURN_IF_ERROR(Read(c, &r));
  TN_ASSIGN_OR_RETURN(const bool before, c.Bool("linear_before_reset", false));
  return Run(c, r, [&](const CellInput& in, std::span<const Activation> act) -> std::vector<Val> {
    const int64_t n = r.hidden;
    const Val narrow = in.states[0], h = Widened(narrow);
    const auto part = [&](const Val& v, int64_t from, int64_t to, int64_t axis) {
      return v ? Gates(v, n, from, to, axis) : v;
    };
    const Val zr = Apply(act[0], Clipped(GateSums(in, {part(in.weights.matrix, 0, 2, 0)},
                                                  part(in.x, 0, 2, 1), part(in.bias, 0, 2, 1)),
                                         r.clip));
    const Val z = Gates(zr, n, 0, 1), reset = Gates(zr, n, 1, 2);
    const Val weight = part(in.weights.matrix, 2, 3, 0), bias = part(in.bias, 2, 3, 1);
    Val recurrent =
        WideMatMul(before ? narrow : Cast(reset * h, narrow.dtype()), weight, false, true);
    if (bias) recurrent = recurrent + bias;
    if (before) recurrent = reset * recurrent;
    const Val fresh = Apply(act[1], Clipped(part(in.x, 2, 3, 1) + recurrent, r.clip));
    return {(1 - z) * fresh + z * h};
  });
}

Status ImportLstm(OpContext& c) {
  const bool quantised = std::string_view(c.row.name) == "DynamicQuantizeLSTM";
  TN_RETURN_IF_ERROR(quantised ? c.Arity(12, 12, {3, 4, 5, 6, 7}) : c.Arity(3, 8));
  Recurrent r{.gates = 4, .states = 2, .functions = 3, .defaults = {"Sigmoid", "Tanh", "Tanh"}};
  TN_RETURN_IF_ERROR(Read(c, &r, quantised));
  TN_ASSIGN_OR_RETURN(const bool coupled, c.Bool("input_forget", false));
  return Run(c, r, [&](const CellInput& in, std::span<const Activation> act) -> std::vector<Val> {
    const int64_t n = r.hidden;
    const Val sums = GateSums(in, in.weights, in.x, in.bias), before = in.states[1];
    // Gates lie in the order input, output, forget, cell.
    const auto gate = [&](int64_t k, const Val& seen) {
      const Val sum = Gates(sums, n, k, k + 1);
      return Apply(act[0], Clipped(in.peephole ? sum + Gates(in.peephole, n, k, k + 1) * seen : sum,
                                   r.clip));
    };
    const Val input = gate(0, before), forget = coupled ? 1 - input : gate(2, before);
    const Val fresh = Apply(act[1], Clipped(Gates(sums, n, 3, 4), r.clip));
    const Val cell = forget * before + input * fresh;
    const Val output = gate(1, cell);
    return {output * Apply(act[2], Clipped(cell, r.clip)), cell};
  });
}

constexpr OpRow kRows[] = {
    {"RNN", 1, ImportRnn},
    {"GRU", 3, ImportGru},
    {"LSTM", 1, ImportLstm},
    {.name = "DynamicQuantizeLSTM", .since = 1, .import = ImportLstm, .domain = "com.microsoft"},
};

}  // namespace

std::span<const OpRow> RecurrentRows() { return kRows; }

}  // namespace tenon::onnx
