#include "ops/algorithm/conv_windows.h"

#include "ops/algorithm/warp_steps.h"

namespace tenon::ops {

using te::Indices;

namespace {

std::vector<Expr> SpaceOf(const std::vector<int64_t>& dims) {
  std::vector<Expr> out;
  for (size_t i = 2; i < dims.size(); ++i) out.push_back(IndexConst(dims[i]));
  return out;
}

}  // namespace

Indices ConvWindows::Tap(const Expr& step, const Expr& k, int64_t depth) const {
  const int64_t channels = c_.w[1];
  Expr tap, channel;
  if (channels % depth == 0) {
    const int64_t steps = channels / depth;
    tap = step / steps;
    channel = step % steps * depth + k;
  } else {
    const Expr kk = step * depth + k;
    tap = kk / channels;
    channel = kk % channels;
  }
  Indices out = Delinearize(tap, SpaceOf(c_.w));
  out.insert(out.begin(), channel);
  return out;
}

Indices ConvWindows::Place(const Expr& column, const Indices& tap, Expr* inside) const {
  const Indices at = Delinearize(column, SpaceOf(c_.y));
  Indices out;
  for (size_t i = 0; i < c_.rank(); ++i) {
    const Expr x = at[i] * c_.strides[i] + tap[i + 1] * c_.dilations[i] - c_.pads[i];
    const int64_t last = (c_.y[i + 2] - 1) * c_.strides[i] + (c_.w[i + 2] - 1) * c_.dilations[i];
    if (c_.pads[i] > 0) AddCondition(inside, Le(IndexConst(0), x));
    if (last - c_.pads[i] >= c_.x[i + 2]) AddCondition(inside, Lt(x, IndexConst(c_.x[i + 2])));
    out.push_back(x);
  }
  return out;
}

bool ConvWindows::IsPointwise() const {
  for (int64_t s : c_.strides) {
    if (s != 1) return false;
  }
  for (int64_t p : c_.pads) {
    if (p != 0) return false;
  }
  return c_.Window() == 1;
}

int64_t ConvWindows::Columns() const {
  int64_t columns = 1;
  for (size_t i = 2; i < c_.y.size(); ++i) columns *= c_.y[i];
  return columns;
}

bool IsWarpConv(const Site& site) {
  if (site.region.outputs.size() != 1 || !AreNumbers(site.input(0))) return false;
  const auto c = ReadConv(site);
  const DType type = site.input(0).dtype;
  return c && c->group == 1 && c->pad_value == 0 && type.StorageBits() == 16 &&
         site.input(1).dtype == type && c->types.accumulator == DType::Float(32) && c->y[0] > 0 &&
         c->w[0] > 1 && c->w[1] > 0 && ConvWindows(*c).Columns() > 1 &&
         WarpUnit(site.machine, type);
}

void AddCondition(Expr* all, const Expr& one) { *all = *all ? And(*all, one) : one; }

Expr OrZero(const Expr& condition, const Expr& value) {
  return condition ? Select::Make(condition, value, MakeConst(value->dtype, 0)) : value;
}

}  // namespace tenon::ops
