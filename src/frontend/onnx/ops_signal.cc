// Signals: Fourier transforms, windows, mel filters.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/fourier.h"
#include "frontend/onnx/index_checks.h"
#include "frontend/onnx/ops.h"

namespace tenon::onnx {
namespace {

constexpr DType kF64 = DType::Float(64);

// [..., 1 or 2] as a signal along `axis`, which is not the last.
Expected<Complex> ReadComplex(const OpContext& c, const Val& x, int64_t axis) {
  const std::optional<int64_t> parts = AsInt(x.dim(-1));
  if (!parts && x.rank() > 1) {  // where there is one, the other is 0
    c.b.Require(Or(Eq(x.dim(-1), IndexConst(1)), Eq(x.dim(-1), IndexConst(2))));
    const Val wide = Widened(x), count = Size(x, -1);
    const Val last = Swap(Gather(wide, count - 1, -1), axis, -1);
    return Complex{Swap(Gather(wide, x.formula().Number(DType::Int(64), 0), -1), axis, -1),
                   Where(Equal(count, 2), last, 0)};
  }
  if (parts != 1 && parts != 2) {
    return c.Error("expected real or complex numbers, of 1 or 2 parts, but got {}",
                   c.Type(0).ToString());
  }
  const Val wide = Widened(x);
  const auto part = [&](int64_t k) { return Swap(Element(wide, -1, k), axis, -1); };
  return Complex{part(0), parts == 2 ? part(1) : Val()};
}

// Cut, or filled up with zeroes, to `length` elements.
Val Resized(const Val& x, const Expr& length) {
  const Expr have = x.dim(-1);
  if (graph::ProveEqual(have, length)) return x;
  const std::optional<int64_t> more = AsInt(graph::DimSub(length, have));
  if (!more) return Cut(x, -1, x.formula().Number(DType::Int(64), 0), length);
  return *more > 0 ? Pad(x, -1, 0, *more) : Slice(x, -1, IndexConst(0), length);
}

// Both parts as a last axis, the signal's axis being `axis` again.
Val Joined(const Complex& x, int64_t axis) {
  return Stack({Swap(x.re, axis, -1), Swap(x.im, axis, -1)}, -1);
}

Status CheckLength(const OpContext& c, const Expr& length) {
  const std::optional<int64_t> n = AsInt(length);
  if (!n || (*n >= 1 && *n <= kLongestTransform)) return Ok();
  return c.Error("expected a transform of 1 to {} elements, but got {}", kLongestTransform, *n);
}

/// What a node says of its transform.
struct Dft {
  bool inverse, onesided;
  std::optional<Expr> length;
};

// Of a signal along `axis`, which is not the last.
Expected<Val> Transformed(const OpContext& c, const Formula& f, const Val& signal, int64_t axis,
                          const Dft& dft) {
  TN_ASSIGN_OR_RETURN(Complex x, ReadComplex(c, signal, axis));
  const Expr have = x.re.dim(-1), one = IndexConst(1), two = IndexConst(2);
  const bool to_real = dft.inverse && dft.onesided;
  const Expr natural = to_real ? graph::DimMul(two, graph::DimSub(have, one)) : have;
  const Expr length = dft.length.value_or(natural);
  TN_RETURN_IF_ERROR(CheckLength(c, length));
  const Expr half = graph::DimAdd(graph::DimFloorDiv(length, two), one);
  const Expr read = to_real ? half : length;
  x.re = Resized(x.re, read);
  if (x.im) x.im = Resized(x.im, read);
  const Expr others = graph::DimSub(length, half);
  if (to_real && !(AsInt(others) && *AsInt(others) <= 0)) {
    // The other half is conjugate: elements length - half, …, 1.
    const auto rest = [&](const Val& v) { return Flip(Slice(v, -1, one, others), -1); };
    x.re = Concat({x.re, rest(x.re)}, -1);
    if (x.im) x.im = Concat({x.im, -rest(x.im)}, -1);
  }
  const bool halved = dft.onesided && !dft.inverse;
  Complex y = FourierTransform(f, x, length, halved ? half : length, dft.inverse ? 1 : -1);
  if (dft.inverse) {
    const Val size = Cast(Size(f.Iota(length), 0), y.re.dtype());
    y.re = y.re / size;
    y.im = y.im / size;
  }
  return Cast(to_real ? Unsqueeze(Swap(y.re, axis, -1), -1) : Joined(y, axis), signal.dtype());
}

// Along each axis that it may be: all these passes are less work than one product with a matrix of
// n², which a length that is found would need.
Expected<Val> TransformedAlongEach(const OpContext& c, const Formula& f, const Val& at,
                                   const Dft& dft) {
  const Val x = f.In(0);
  Val y;
  for (int64_t axis = 0; axis + 1 < x.rank(); ++axis) {
    TN_ASSIGN_OR_RETURN(const Val one, Transformed(c, f, x, axis, dft));
    y = y ? Where(Equal(at, static_cast<double>(axis)), one, y) : one;
  }
  return y;
}

// An axis that comes with the call: the signal as [before, axis, behind, parts], whose sizes are
// found.
Expected<Val> TransformedByCall(const OpContext& c, const Formula& f, const Val& axis,
                                const Dft& dft) {
  const Val x = f.In(0);
  const DType i64 = DType::Int(64);
  const Val raw = Cast(Reshape(AxesOf(c, 2, axis, x.rank()), {}), i64);
  const Val counted = Where(raw < 0, raw + static_cast<double>(x.rank()), raw);
  const Val at = InRange(c, 2, counted, IndexConst(x.rank() - 1));  // the last has the parts
  Dims lengths = x.dims();
  lengths.pop_back();
  // What is as large as the signal, along whatever axis.
  if (!dft.onesided && !dft.length && std::all_of(lengths.begin(), lengths.end(), HasPasses))
    return TransformedAlongEach(c, f, at, dft);
  const Val shape = ShapeOf(x), place = f.Iota(IndexConst(x.rank()));
  const auto product = [&](const Val& of) {
    return SizeOf(Reduce("prod", Where(of, shape, 1), {0}, false));
  };
  const Val is_parts = Equal(place, static_cast<double>(x.rank() - 1));
  const Dims dims = {product(place < at), product(Equal(place, at)),
                     product((place > at) & Not(is_parts)), x.dim(-1)};
  TN_ASSIGN_OR_RETURN(const Val y, Transformed(c, f, Reshape(x, dims), 1, dft));
  const Val sizes = Where(Equal(place, at), Size(y, 1), Where(is_parts, Size(y, -1), shape));
  Dims out = SizesIn(sizes);
  if (!out.empty()) out.back() = y.dim(-1);
  return Reshape(y, out);
}

Status ImportDft(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, c.opset < 20 ? 2 : 3));
  Dft dft{};
  TN_ASSIGN_OR_RETURN(dft.inverse, c.Bool("inverse", false));
  TN_ASSIGN_OR_RETURN(dft.onesided, c.Bool("onesided", false));
  const Formula f(c);
  if (c.Has(1)) {
    TN_ASSIGN_OR_RETURN(const Elements length, SizesOf(c, 1, "a length", 1));
    if (length.size() != 1) return c.Error("expected one length, but got {}", length.size());
    dft.length = length[0];
  }
  const int64_t rank = c.Rank(0);
  int64_t axis = c.opset < 20 ? 1 : -2;
  if (c.opset < 20) {
    TN_ASSIGN_OR_RETURN(axis, c.Int("axis", axis));
  } else if (c.Has(2) && !c.b.Known(c.In(2)) && rank > 1) {
    TN_ASSIGN_OR_RETURN(const Val y, TransformedByCall(c, f, f.In(2), dft));
    return f.Result(y);
  } else if (c.Has(2)) {
    TN_ASSIGN_OR_RETURN(axis, c.KnownInt(2, "an axis"));
  }
  TN_ASSIGN_OR_RETURN(axis, c.NormalizeAxis(axis, rank, "axis"));
  if (axis == rank - 1)
    return c.Error("expected an axis other than that of real and imaginary parts, but got {}",
                   axis);
  TN_ASSIGN_OR_RETURN(const Val y, Transformed(c, f, f.In(0), axis, dft));
  return f.Result(y);
}

// Frames [B, F, L] of a signal [B, T, 1 or 2], each by the window, transformed.
Status ImportStft(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 4));
  TN_ASSIGN_OR_RETURN(const bool onesided, c.Bool("onesided", true));
  TN_ASSIGN_OR_RETURN(const Elements steps, SizesOf(c, 1, "a step"));
  // Real signals without a last axis are what ONNX Runtime takes and exporters for it write.
  const bool flat = c.Rank(0) == 2;
  if (c.Rank(0) != 3 && !flat) {
    return c.Error("expected a signal [B, T] or [B, T, 1 or 2], but got {}", c.Type(0).ToString());
  }
  if (c.Has(2) && c.Rank(2) != 1)
    return c.Error("expected a window of rank 1, but got {}", c.Type(2).ToString());
  Expr length = c.Has(2) ? c.Dims(2)[0] : c.Dims(0)[1];
  if (c.Has(3)) {
    TN_ASSIGN_OR_RETURN(const Elements given, SizesOf(c, 3, "a length of frames"));
    if (given.size() != 1)
      return c.Error("expected one length of frames, but got {}", given.size());
    length = given[0];
  }
  if (steps.size() != 1 || (AsInt(steps[0]) && *AsInt(steps[0]) < 1))
    return c.Error("expected one step of at least 1, but got {}", graph::DimsText(steps));
  TN_RETURN_IF_ERROR(CheckLength(c, length));
  const Expr& step = steps[0];
  c.b.Require(Ge(step, IndexConst(1)));
  const Formula f(c);
  const Val signal = flat ? Unsqueeze(f.In(0), 2) : f.In(0);
  TN_ASSIGN_OR_RETURN(Complex x, ReadComplex(c, signal, 1));
  const Expr room = graph::DimSub(x.re.dim(1), length), one = IndexConst(1);
  Val at;
  if (AsInt(step)) {
    const Expr frames = graph::DimAdd(graph::DimFloorDiv(room, step), one);
    at = f.Iota(frames) * static_cast<double>(*AsInt(step));
  } else {
    const Val given = Cast(Reshape(f.In(1), {}), DType::Int(64));
    const Val by = Max(NoneOf(c, 1, given, given < 1, "steps below 1"), 1);
    const Val most = Size(x.re, 1) - Size(f.Iota(length), 0);
    at = f.Iota(SizeOf(most / by + 1)) * by;
  }
  at = Unsqueeze(at, 1) + f.Iota(length);
  const auto framed = [&](const Val& v) {
    const Val all = Gather(v, at, 1);
    return f.In(2) ? all * Cast(f.In(2), v.dtype()) : all;
  };
  x.re = framed(x.re);
  if (x.im) x.im = framed(x.im);
  const Expr half = graph::DimAdd(graph::DimFloorDiv(length, IndexConst(2)), one);
  const Complex y = FourierTransform(f, x, length, onesided ? half : length, -1);
  return f.Result(Cast(Stack({y.re, y.im}, -1), c.Type(0).dtype));
}

// ---- Windows: a - b·cos(2πn / N) + c·cos(4πn / N) ----

struct CosineWindow {
  const char* name;
  double a, b, c;
};
constexpr CosineWindow kWindows[] = {{"HannWindow", 0.5, 0.5, 0},
                                     {"HammingWindow", 25.0 / 46, 1 - 25.0 / 46, 0},
                                     {"BlackmanWindow", 0.42, 0.5, 0.08}};

Expected<DType> ReadOutputType(OpContext& c) {
  TN_ASSIGN_OR_RETURN(const int64_t code, c.Int("output_datatype", 1));
  if (code < 0 || code > INT32_MAX) return c.Error("unknown data type {}", code);
  return ToDType(static_cast<int32_t>(code));
}

Status ImportWindow(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const bool periodic, c.Bool("periodic", true));
  TN_ASSIGN_OR_RETURN(const DType type, ReadOutputType(c));
  TN_ASSIGN_OR_RETURN(const Elements size, SizesOf(c, 0, "a size"));
  if (size.size() != 1) return c.Error("expected one size, but got {}", size.size());
  const CosineWindow* window = kWindows;
  while (std::string_view(window->name) != c.row.name) ++window;
  const Formula f(c);
  const Val count = Cast(Reshape(f.In(0), {}), kF64);
  const Val angle =
      f.Iota(size[0], kF64) * (2 * std::numbers::pi) / Max(periodic ? count : count - 1, 1);
  Val y = window->a - Cos(angle) * window->b;
  if (window->c != 0) y = y + Cos(angle * 2) * window->c;
  return f.Result(Cast(y, type));
}

// ---- Mel filters: triangles over the bins of a spectrum, between points that lie evenly in mel
// ----

Status ImportMelWeights(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(5, 5));
  TN_ASSIGN_OR_RETURN(const DType type, ReadOutputType(c));
  TN_ASSIGN_OR_RETURN(const Elements filters, SizesOf(c, 0, "num_mel_bins"));
  TN_ASSIGN_OR_RETURN(const Elements length, SizesOf(c, 1, "dft_length"));
  constexpr int64_t kMost = 1 << 16;
  const auto is_sensible = [](const Elements& size) {
    const std::optional<int64_t> n = size.size() == 1 ? AsInt(size[0]) : std::nullopt;
    return size.size() == 1 && (!n || (*n >= 1 && *n <= kMost));
  };
  if (!is_sensible(filters) || !is_sensible(length)) {
    return c.Error("expected num_mel_bins and dft_length of 1 to {}, but got {} and {}", kMost,
                   graph::DimsText(filters), graph::DimsText(length));
  }
  const Formula f(c);
  const auto number = [&](size_t i) { return Cast(Reshape(f.In(i), {}), kF64); };
  const auto mel = [](const Val& hertz) {
    return Log(1 + hertz / 700) * (2595 / std::numbers::ln10);
  };
  const Val bins = number(0), begin = mel(number(3));
  const Val step = (mel(number(4)) - begin) / (bins + 2);
  const Val place = f.Iota(graph::DimAdd(filters[0], IndexConst(2)), kF64);
  const Val hertz = 700 * (Pow(10, (begin + place * step) / 2595) - 1);
  const Val points = Floor((number(1) + 1) * hertz / number(2));
  // Row: bin; column: filter. It rises from its first point to 1 at the second, and falls to 0 at
  // the third.
  const auto column = [&](int64_t first) {
    return Slice(points, 0, IndexConst(first), filters[0]);
  };
  const Val left = column(0), center = column(1), right = column(2);
  const Val bin = Unsqueeze(
      f.Iota(graph::DimAdd(graph::DimFloorDiv(length[0], IndexConst(2)), IndexConst(1)), kF64), 1);
  const Val rise = Where(Equal(center, left), Cast(Equal(bin, center), kF64),
                         (bin - left) / Max(center - left, 1));
  const Val fall = (right - bin) / Max(right - center, 1);
  const Val rises = (bin >= left) & (bin <= center), falls = (bin > center) & (bin < right);
  // With no room to fall, or none to rise, the point itself is all there is.
  const Val y = Where(rises, rise, Where(falls, fall, 0));
  return f.Result(Cast(y, type));
}

constexpr OpRow kRows[] = {
    {"DFT", 17, ImportDft},
    {"STFT", 17, ImportStft},
    {"HannWindow", 17, ImportWindow},
    {"HammingWindow", 17, ImportWindow},
    {"BlackmanWindow", 17, ImportWindow},
    {"MelWeightMatrix", 17, ImportMelWeights},
};

}  // namespace

std::span<const OpRow> SignalRows() { return kRows; }

}  // namespace tenon::onnx
