#include "frontend/onnx/fourier.h"

#include <cmath>
#include <numbers>

#include "graph/dims.h"

namespace tenon::onnx {
namespace {

constexpr DType kF64 = DType::Float(64);

// ---- Passes, over numbers whose real and imaginary parts are along the first axis ----

constexpr int64_t kLargestFactor = 13;

bool HasSmallFactors(int64_t n) {
  for (int64_t p = 2; p <= kLargestFactor; ++p) {
    while (n % p == 0) n /= p;
  }
  return n == 1;
}

// 4 as often as it goes, 2, and odd primes.
std::vector<int64_t> FactorsOf(int64_t n) {
  std::vector<int64_t> factors;
  for (; n % 4 == 0; n /= 4) factors.push_back(4);
  if (n % 2 == 0) {
    n /= 2;
    factors.insert(factors.begin(), 2);
  }
  for (int64_t p = 3; p <= kLargestFactor; p += 2) {
    for (; n % p == 0; n /= p) factors.push_back(p);
  }
  return factors;
}

// Constants that are as exact as what they meet.
Val Factors(const Val& x, const std::vector<double>& list) {
  if (x.dtype() == kF64) return x.formula().Floats(list, kF64);
  return Cast(x.formula().Floats(list), x.dtype());
}

// Real and imaginary parts by factors of their own.
Val Scaled(const Val& x, double re, double im) {
  Dims shape(static_cast<size_t>(x.rank()), IndexConst(1));
  shape[0] = IndexConst(2);
  return x * Reshape(Factors(x, {re, im}), shape);
}

Val Conjugate(const Val& x) { return Scaled(x, 1, -1); }

// Times i, or -i.
Val Turned(const Val& x, int sign) { return Scaled(Flip(x, 0), -sign, sign); }

constexpr int64_t kParts = 2;  // the axis of a pass's numbers: [2, done, p, left, …]

// A list along that axis.
Val AlongParts(const Val& x, const std::vector<double>& list) {
  Dims shape(static_cast<size_t>(x.rank() - kParts), IndexConst(1));
  shape[0] = IndexConst(static_cast<int64_t>(list.size()));
  return Reshape(Factors(x, list), shape);
}

Val Some(const Val& x, int64_t from, int64_t count) {
  return Slice(x, kParts, IndexConst(from), IndexConst(count));
}

// The transform of p numbers, an odd count. Those that lie opposite meet first: x[j] and x[p - j]
// are multiplied by conjugates, so that half of the products are enough.
Val OddButterfly(const Val& x, int64_t p, int sign) {
  const int64_t half = p / 2;
  const Val first = Some(x, 0, 1);
  const Val near = Some(x, 1, half), far = Flip(Some(x, half + 1, half), kParts);
  const Val sums = near + far, differences = near - far;
  // For all results u up to the half: cos and sin of 2π·u·j / p.
  const auto factors = [&](int64_t j, double (*of)(double), double scale) {
    std::vector<double> list;
    for (int64_t u = 1; u <= half; ++u) {
      list.push_back(scale * of(2 * std::numbers::pi * static_cast<double>(u * j % p) /
                                static_cast<double>(p)));
    }
    return AlongParts(x, list);
  };
  Val total = first, even = first, odd;
  for (int64_t j = 1; j <= half; ++j) {
    const Val sum = Some(sums, j - 1, 1);
    total = total + sum;
    even = even + sum * factors(j, std::cos, 1);
    const Val term = Some(differences, j - 1, 1) * factors(j, std::sin, sign);
    odd = odd ? odd + term : term;
  }
  odd = Turned(odd, 1);
  return Concat({total, even + odd, Flip(even - odd, kParts)}, kParts);
}

Val Butterfly(const Val& x, int64_t p, int sign) {
  if (p % 2 == 1) return OddButterfly(x, p, sign);
  const Val near = Some(x, 0, p / 2), far = Some(x, p / 2, p / 2);
  const Val sums = near + far, differences = near - far;
  if (p == 2) return Concat({sums, differences}, kParts);
  const Val a = Some(sums, 0, 1), b = Some(sums, 1, 1);
  const Val c = Some(differences, 0, 1), d = Turned(Some(differences, 1, 1), sign);
  return Concat({a + b, c + d, a - b, c - d}, kParts);
}

// x times exp(±2πi·turns / n); the last axes of x are those of `turns`, and `more` behind them.
Val Twisted(const Val& x, const Val& turns, int64_t n, int64_t more, int sign) {
  Val angle = Cast(turns, kF64) * (2 * std::numbers::pi) / static_cast<double>(n);
  for (int64_t i = 0; i < more; ++i) angle = Unsqueeze(angle, angle.rank());
  const Val cos = Cast(Cos(angle), x.dtype()), sin = Cast(Sin(angle), x.dtype());
  return x * cos + Turned(x, sign) * sin;
}

// Of signals [2, n, rows], or of one, [2, n]. Before a pass of p the numbers lie as
// [2, done, p, left, rows], where `done` is the product of the factors before; after it as
// [2, p, done, left, rows].
Val Passes(const Formula& f, Val x, const std::vector<int64_t>& factors, int sign) {
  const Dims whole = x.dims();
  const int64_t n = AsInt(whole[1]).value_or(1), more = x.rank() - 2;
  int64_t done = 1;
  for (const int64_t p : factors) {
    const int64_t left = n / (done * p);
    Dims grid = {whole[0], IndexConst(done), IndexConst(p), IndexConst(left)};
    grid.insert(grid.end(), whole.begin() + 2, whole.end());
    x = Butterfly(Reshape(x, grid), p, sign);
    if (left > 1) {
      const Val step = f.Iota(IndexConst(p)) * static_cast<double>(done);
      const Val turns = Mod(Unsqueeze(step, 1) * f.Iota(IndexConst(left)), static_cast<double>(n));
      x = Twisted(x, turns, n, more, sign);
    }
    x = Swap(x, 1, kParts);
    done *= p;
  }
  return Reshape(x, whole);
}

// Of real signals [n, rows] or [n], n even, the results 0 to n / 2, the others' conjugates. Numbers
// of even and odd place are the parts of half as many complex ones; their transforms are the even
// and the odd part of what comes out.
Val OfReal(const Formula& f, const Val& x, int64_t n, const std::vector<int64_t>& factors,
           int sign) {
  const int64_t half = n / 2;
  const Dims dims = x.dims();
  Dims pairs = {IndexConst(half), IndexConst(2)};
  pairs.insert(pairs.end(), dims.begin() + 1, dims.end());
  const Val y = Passes(f, Swap(Reshape(x, pairs), 0, 1), factors, sign);
  const Val forth = Concat({y, Slice(y, 1, IndexConst(0), IndexConst(1))}, 1);
  const Val back = Conjugate(Flip(forth, 1));
  const Val even = (forth + back) * 0.5, odd = Turned((forth - back) * 0.5, -1);
  return even + Twisted(odd, f.Iota(IndexConst(half + 1)), n, x.rank() - 1, sign);
}

Complex ByMatrix(const Formula& f, const Complex& x, const Expr& length, const Expr& bins,
                 int sign) {
  // j·k is taken modulo the length first, in integers, so that angles are small and cosines exact
  // for any length.
  const Val row = f.Iota(length), size = Size(row, 0);
  const Val turns = Mod(Unsqueeze(row, 1) * f.Iota(bins), size);
  const Val angle = Cast(turns, kF64) * (2 * std::numbers::pi / Cast(size, kF64));
  const DType type = x.re.dtype();
  const Val cos = Cast(Cos(angle), type), sin = Cast(Sin(angle), type) * sign;
  if (!x.im) return {MatMul(x.re, cos), MatMul(x.re, sin)};
  return {MatMul(x.re, cos) - MatMul(x.im, sin), MatMul(x.re, sin) + MatMul(x.im, cos)};
}

// Of signals along the first axis, the first `bins` results.
Val ByPasses(const Formula& f, const Complex& x, int64_t n, const Expr& bins, int sign) {
  const auto first = [&](const Val& v) { return Slice(v, 1, IndexConst(0), bins); };
  if (!x.im && n % 2 == 0) {
    const Val y = OfReal(f, x.re, n, FactorsOf(n / 2), sign);
    if (AsInt(bins).value_or(n) <= n / 2 + 1) return first(y);
    const Val inner = Slice(y, 1, IndexConst(1), IndexConst(n / 2 - 1));
    return first(Concat({y, Conjugate(Flip(inner, 1))}, 1));
  }
  return first(Passes(f, Stack({x.re, x.im ? x.im : x.re * 0}, 0), FactorsOf(n), sign));
}

}  // namespace

bool HasPasses(const Expr& length) {
  const std::optional<int64_t> n = AsInt(length);
  return n && *n >= 1 && *n <= kLongestTransform && HasSmallFactors(*n);
}

Complex FourierTransform(const Formula& f, const Complex& x, const Expr& length, const Expr& bins,
                         int sign) {
  Dims out = x.re.dims();
  const Expr rows =
      out.empty() ? IndexConst(1) : graph::DimProduct(std::span(out).first(out.size() - 1));
  if (!out.empty()) out.back() = bins;
  const auto each = [](const Complex& v, const auto& move) {
    return Complex{move(v.re), v.im ? move(v.im) : v.im};
  };
  const Complex signals = each(x, [&](const Val& v) { return Reshape(v, {rows, length}); });
  Complex y;
  if (!HasPasses(length)) {
    y = ByMatrix(f, signals, length, bins, sign);
  } else {
    // What is opposite stays so: of real signals the imaginary parts that are 0 are not the error
    // of one product that was rounded beside one that was not.
    f.RoundEach();
    // Neighbours are elements of different signals, of which all that is done is the same; of one
    // signal, its own.
    const bool one = AsInt(rows) == 1;
    const auto across = [&](const Val& v) {
      return one ? Reshape(v, {length}) : Transpose(v, {1, 0});
    };
    const Val all = ByPasses(f, each(signals, across), *AsInt(length), bins, sign);
    const auto part = [&](int64_t k) {
      const Val v = Element(all, 0, k);
      return one ? v : Transpose(v, {1, 0});
    };
    y = {part(0), part(1)};
  }
  return each(y, [&](const Val& v) { return Reshape(v, out); });
}

}  // namespace tenon::onnx
