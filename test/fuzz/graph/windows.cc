#include "fuzz/graph/windows.h"

#include <cmath>

namespace tenon::fuzz {

Value SumOfProducts(const Value& x, const Value& w, double n, Elem result) {
  Value y;
  y.elem = result;
  const double most = x.bound() * w.bound() * std::max(1.0, n);
  y.hi = most, y.lo = In(kUnsigned, result) ? 0 : -most;
  y.whole = x.whole && w.whole;
  y.error = (x.error * w.bound() + w.error * x.bound()) * n;
  if (IsFloat(result) && !y.whole)
    y.error += InfoOf(result).unit * std::max(1.0, most / std::sqrt(std::max(1.0, n)));
  return y;
}

std::optional<Window> AnyWindow(Maker& m, const Value& x, bool dilate, bool transposed) {
  Window w;
  Ints64 ends;
  w.dims = {x.dims[0], x.dims[1]};
  for (size_t i = 2; i < x.rank(); ++i) {
    const int64_t k = m.Between(1, 3), s = m.Between(1, 2), d = dilate && m.Chance(4) ? 2 : 1;
    const int64_t begin = m.Between(0, (k - 1) / 1), end = m.Between(0, k - 1);
    const int64_t extent = (k - 1) * d + 1;
    const Size size = x.dims[i];
    if (size.least() == 0) return std::nullopt;
    if (transposed) {
      w.dims.push_back((size - Size(1)) * Size(s) + Size(extent - begin - end));
      if (w.dims.back().least() < 1) return std::nullopt;
    } else {
      if (size.least() + begin + end < extent) return std::nullopt;
      w.dims.push_back(
          Size::Of([&](int64_t a, int64_t) { return (a + begin + end - extent) / s + 1; }, size));
    }
    w.kernel.push_back(k), w.strides.push_back(s), w.dilations.push_back(d);
    w.pads.push_back(begin), ends.push_back(end);
    w.taps *= static_cast<double>(k);
  }
  w.pads.insert(w.pads.end(), ends.begin(), ends.end());
  return w;
}

Value Image(Maker& m, Elem t, double lo, double hi, size_t max_rank) {
  Need need{.min_rank = 3, .max_rank = max_rank, .lo = lo, .hi = hi, .filled = true};
  for (int tries = 0; tries < 3; ++tries) {
    const Value x = m.Take(t, need);
    if (x.dims[1].fixed() && x.dims[1].a <= 16) return x;
  }
  Dims dims = {m.AnyOpenSize(), m.Between(1, 9)};
  for (size_t n = 1 + m.Below(max_rank - 2); n > 0; --n) dims.push_back(m.AnyOpenSize());
  for (Size& d : dims) d = {std::clamp<int64_t>(d.a, 1, 9), std::clamp<int64_t>(d.b, 1, 9)};
  return m.Data(t, dims, std::max(lo, In(kUnsigned, t) ? 0.0 : -4.0), std::min(hi, 4.0),
                m.Chance(2));
}

}  // namespace tenon::fuzz
