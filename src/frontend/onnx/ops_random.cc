// Numbers drawn at random: RandomUniform and its kin, Bernoulli, Multinomial, Dropout.
//
// A compiled function has no state, so what is drawn follows from the place in the result and from
// a key alone: the model's seed, or, where it gives none, the node's name. Every call draws the
// same numbers, on any number of threads. A place's number is stirred twice with halves of the key,
// by multiplications and shifts of 32 bits (the finalizer of MurmurHash3), whose upper bits are
// even:
//
//   uniform   bits / 2^24 (of f64: 53 bits of two draws)
//   normal    √(-2 log(1 - u)) · cos(2π v)      (Box and Muller)
//
// Tests of the specification's examples compare with NumPy's generator, which this is not.
#include <bit>
#include <cmath>
#include <numbers>

#include "frontend/onnx/formula.h"
#include "frontend/onnx/ops.h"
#include "support/hash.h"

namespace tenon::onnx {
namespace {

constexpr DType kF32 = DType::Float(32), kF64 = DType::Float(64);
constexpr DType kU32 = DType::UInt(32), kI64 = DType::Int(64);

Val Bitwise(OpKind op, const Val& x, double operand) {
  return x ? x.formula().Emit(op, {x, x.formula().Number(x.dtype(), operand)}) : x;
}

Val Xor(const Val& a, const Val& b) {
  return a && b ? a.formula().Emit(OpKind::kBitXor, {a, b}) : a;
}

// Every bit of the result depends on every bit of x.
Val Stirred(Val x) {
  x = Xor(x, Bitwise(OpKind::kShr, x, 16)) * 0x85ebca6b;
  x = Xor(x, Bitwise(OpKind::kShr, x, 13)) * 0xc2b2ae35;
  return Xor(x, Bitwise(OpKind::kShr, x, 16));
}

/// A source of numbers; each draw has a stream of its own.
class Generator {
 public:
  Generator(const Formula& f, uint64_t key) : f_(f), key_(key) {}

  /// In [0, 1), in f32, or f64 where `type` is that.
  Val Uniform(const Dims& dims, DType type) {
    if (type != kF64) return Cast(Bitwise(OpKind::kShr, Bits(dims), 8), kF32) * 0x1p-24;
    const Val high = Cast(Bitwise(OpKind::kShr, Bits(dims), 5), kF64);
    const Val low = Cast(Bitwise(OpKind::kShr, Bits(dims), 6), kF64);
    return (high * 0x1p26 + low) * 0x1p-53;
  }

  Val Normal(const Dims& dims, DType type) {
    const Val size = Sqrt(Log(1 - Uniform(dims, type)) * -2);
    return size * Cos(Uniform(dims, type) * (2 * std::numbers::pi));
  }

 private:
  // 32 bits for each element.
  Val Bits(const Dims& dims) {
    const Hash128 stream = Hasher(key_).Int(draws_++).Finish();
    const Val place = f_.Iota(graph::DimProduct(dims), kI64);
    const Val low = Cast(Mod(place, 0x1p32), kU32);
    const Val high = Cast(Bitwise(OpKind::kShr, place, 32), kU32);
    Val x = Stirred(Bitwise(OpKind::kBitXor, low, static_cast<double>(stream.low & 0xffffffff)));
    x = Xor(x, high * 0x9e3779b1);
    x = Stirred(x + static_cast<double>(stream.high & 0xffffffff));
    return Reshape(x, dims);
  }

  Formula f_;
  uint64_t key_;
  uint64_t draws_ = 0;
};

// The attribute `seed`, a float as far back as there is one, or the node's name.
Expected<uint64_t> ReadKey(OpContext& c, bool is_int = false) {
  if (!c.HasAttr("seed")) return HashText(c.name()).low;
  if (is_int) {
    TN_ASSIGN_OR_RETURN(const int64_t seed, c.Int("seed", 0));
    return static_cast<uint64_t>(seed);
  }
  TN_ASSIGN_OR_RETURN(const double seed, c.Float("seed", 0));
  return std::bit_cast<uint64_t>(seed);
}

// The attribute `dtype`, or the fallback.
Expected<DType> ReadType(OpContext& c, DType fallback, bool is_float) {
  if (!c.HasAttr("dtype")) return fallback;
  TN_ASSIGN_OR_RETURN(const int64_t code, c.Int("dtype", 0));
  if (code < 0 || code > INT32_MAX) return c.Error("unknown data type {}", code);
  TN_ASSIGN_OR_RETURN(const DType type, ToDType(static_cast<int32_t>(code)));
  if (is_float && !type.IsFloat())
    return c.Error("expected dtype to be a float type, but got {}", type.ToString());
  return type;
}

// The dims of the input, or the attribute `shape`.
Expected<Dims> ReadShape(OpContext& c) {
  if (c.num_inputs() > 0) return c.Dims(0);
  TN_ASSIGN_OR_RETURN(const std::optional<Axes> shape, c.Ints("shape"));
  if (!shape) return c.Error("expected the attribute shape, but it is missing");
  Dims dims;
  for (int64_t size : *shape) {
    if (size < 0) return c.Error("expected sizes of at least 0 in shape, but got {}", size);
    dims.push_back(IndexConst(size));
  }
  return dims;
}

// RandomUniform, RandomNormal, and those with the shape of an input.
Status ImportRandom(OpContext& c) {
  const std::string_view name = c.row.name;
  const size_t inputs = name.ends_with("Like") ? 1 : 0;
  TN_RETURN_IF_ERROR(c.Arity(inputs, inputs));
  const bool normal = name.starts_with("RandomNormal");
  TN_ASSIGN_OR_RETURN(const uint64_t key, ReadKey(c));
  const DType own = inputs > 0 ? c.Type(0).dtype : kF32;
  TN_ASSIGN_OR_RETURN(const DType type, ReadType(c, own, true));
  TN_ASSIGN_OR_RETURN(const double from, c.Float(normal ? "mean" : "low", 0));
  TN_ASSIGN_OR_RETURN(const double to, c.Float(normal ? "scale" : "high", 1));
  TN_ASSIGN_OR_RETURN(const Dims dims, ReadShape(c));
  const Formula f(c);
  Generator draw(f, key);
  const Val x = normal ? draw.Normal(dims, type) : draw.Uniform(dims, type);
  return f.Result(Cast(x * (normal ? to : to - from) + from, type));
}

Status ImportBernoulli(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const uint64_t key, ReadKey(c));
  TN_ASSIGN_OR_RETURN(const DType type, ReadType(c, c.Type(0).dtype, false));
  const Formula f(c);
  const Val p = Widened(f.In(0));
  return f.Result(Cast(Generator(f, key).Uniform(p.dims(), p.dtype()) < p, type));
}

// Classes by their logarithms: how many of the running sums of their shares lie below a draw.
Status ImportMultinomial(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const uint64_t key, ReadKey(c));
  TN_ASSIGN_OR_RETURN(const int64_t samples, c.Int("sample_size", 1));
  TN_ASSIGN_OR_RETURN(const DType type, ReadType(c, DType::Int(32), false));
  if (c.Rank(0) != 2 || samples < 0 || !type.IsInt()) {
    return c.Error("expected logarithms of rank 2, samples and an integer type, but got {}, {}, {}",
                   c.Type(0).ToString(), samples, type.ToString());
  }
  const Formula f(c);
  const Val below = CumSum(Softmax(Widened(f.In(0)), 1), 1);
  const Val draw =
      Generator(f, key).Uniform({below.dim(0), IndexConst(samples), IndexConst(1)}, below.dtype());
  const Val count = Sum(Cast(draw >= Unsqueeze(below, 1), kI64), {2}, false);
  return f.Result(Cast(Min(count, Size(below, 1) - 1), type));
}

// Until opset 9 a mask is ones and zeros of the input's type.
DType MaskType(const OpContext& c) { return c.opset < 10 ? c.Type(0).dtype : DType::Bool(); }

// What is kept is scaled so that the mean stays; without training everything is.
Status Dropped(OpContext& c, const Formula& f, const Val& kept, const Val& ratio) {
  const Val x = f.In(0);
  const Val wide = Widened(x);
  const Val scaled = Where(kept, wide / Cast(1 - ratio, wide.dtype()), 0);
  const Val y = Cast(scaled, x.dtype());
  return c.Wants(1) ? f.Result({y, Cast(kept, MaskType(c))}) : f.Result(y);
}

Status PassedOn(OpContext& c, const Formula& f) {
  const Val x = f.In(0);
  if (!c.Wants(1)) return f.Result(x);
  return f.Result({x, Expand(f.Number(MaskType(c), 1), x.dims())});
}

Status ImportDropout7(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const double ratio, c.Float("ratio", 0.5));
  const Formula f(c);
  if (c.opset >= 7) return PassedOn(c, f);
  TN_ASSIGN_OR_RETURN(const bool test, c.Bool("is_test", false));
  if (test) return PassedOn(c, f);
  TN_ASSIGN_OR_RETURN(const uint64_t key, ReadKey(c));
  const Val dropped = f.Number(kF32, ratio);
  return Dropped(c, f, Generator(f, key).Uniform(f.In(0).dims(), kF32) >= dropped, dropped);
}

Status ImportDropout(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 3));
  TN_ASSIGN_OR_RETURN(const uint64_t key, ReadKey(c, true));
  const Formula f(c);
  if (!c.Has(2)) return PassedOn(c, f);
  if (const Elements* training = c.b.Known(c.In(2)); training && training->size() == 1) {
    if (AsInt((*training)[0]) == 0) return PassedOn(c, f);
  }
  const Val training = Reshape(f.In(2), {});
  const Val given = c.Has(1) ? Widened(Reshape(f.In(1), {})) : f.Number(kF32, 0.5);
  const Val ratio = Where(training, given, 0);
  const Val draw = Generator(f, key).Uniform(f.In(0).dims(), ratio.dtype());
  return Dropped(c, f, draw >= ratio, ratio);
}

constexpr OpRow kRows[] = {
    {"RandomUniform", 1, ImportRandom}, {"RandomUniformLike", 1, ImportRandom},
    {"RandomNormal", 1, ImportRandom},  {"RandomNormalLike", 1, ImportRandom},
    {"Bernoulli", 15, ImportBernoulli}, {"Multinomial", 7, ImportMultinomial},
    {"Dropout", 1, ImportDropout7},     {"Dropout", 12, ImportDropout},
};

}  // namespace

std::span<const OpRow> RandomRows() { return kRows; }

}  // namespace tenon::onnx
