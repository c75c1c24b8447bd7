// Operators that move elements.
#include <numeric>

#include "fuzz/graph/rules.h"

namespace tenon::fuzz {

namespace {

bool Transpose(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1});
  Ints64 perm(x.rank());
  std::iota(perm.begin(), perm.end(), 0);
  std::shuffle(perm.begin(), perm.end(), m.random);
  Value y = x;
  for (size_t i = 0; i < perm.size(); ++i) y.dims[i] = x.dims[static_cast<size_t>(perm[i])];
  return m.Add(rule.op, {x.name}, y, {Ints("perm", perm)}).has_value();
}

// Two axes become one, or one two; an open size is what is left (-1), or stays (0).
bool Reshape(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.filled = true});
  Value y = x;
  if (m.Chance(2) && y.dims.size() >= 2) {
    const size_t at = m.Below(y.dims.size() - 1);
    y.dims[at] = y.dims[at] * y.dims[at + 1];
    y.dims.erase(y.dims.begin() + static_cast<long>(at) + 1);
  } else if (!y.dims.empty()) {
    const size_t at = m.Below(y.dims.size());
    int64_t part = m.Between(1, 8);
    while (y.dims[at].a % part != 0 || y.dims[at].b % part != 0) --part;
    y.dims[at] = Size::Of([&](int64_t a, int64_t) { return a / part; }, y.dims[at]);
    y.dims.insert(y.dims.begin() + static_cast<long>(at + m.Below(2)), part);
  }
  Ints64 shape;
  bool rest = false;
  for (size_t i = 0; i < y.dims.size(); ++i) {
    const bool kept = i < x.rank() && x.dims[i] == y.dims[i];
    if (kept && (!y.dims[i].fixed() || m.Chance(4)))
      shape.push_back(0);
    else if (y.dims[i].fixed() && (rest || !m.Chance(4)))
      shape.push_back(y.dims[i].a);
    else if (!rest)
      shape.push_back(-1), rest = true;
    else
      return false;
  }
  return m.Add(rule.op, {x.name, m.List(shape).name}, y).has_value();
}

bool Flatten(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t);
  const int64_t axis = m.Between(0, Rank(x));
  const auto at = x.dims.begin() + axis;
  Value y = x;
  y.dims = {Count({x.dims.begin(), at}), Count({at, x.dims.end()})};
  return m.Add(rule.op, {x.name}, y, {Int("axis", axis)}).has_value();
}

bool Unsqueeze(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.max_rank = 3});
  const int64_t axis = m.Between(0, Rank(x));
  Value y = x;
  y.dims.insert(y.dims.begin() + axis, 1);
  return m.Add(rule.op, {x.name, m.List({m.Chance(2) ? axis : axis - Rank(x) - 1}).name}, y)
      .has_value();
}

bool ExpandDims(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.max_rank = 3});
  const int64_t axis = m.Between(0, Rank(x)), from_end = axis - Rank(x) - 1;
  Value y = x;
  y.dims.insert(y.dims.begin() + axis, 1);
  const Value at = m.Number(kI32, static_cast<double>(m.Chance(2) ? axis : from_end));
  return m.Add(rule.op, {x.name, at.name}, y, {}, rule.domain).has_value();
}

bool Squeeze(Maker& m, const Rule& rule, Elem t) {
  const auto [x, y, axis] = DrawSqueezed(m, t);
  return m.Add(rule.op, {x.name, m.List({axis}).name}, y).has_value();
}

// How many elements of an axis of n a slice takes, as the specification has it.
int64_t Taken(int64_t n, int64_t begin, int64_t end, int64_t step) {
  if (n == 0) return 0;
  const bool back = step < 0;
  const auto place = [&](int64_t at, int64_t least, int64_t most) {
    return std::clamp(at < 0 && at >= -n ? at + n : at, least, most);
  };
  const int64_t from = place(begin, 0, back ? n - 1 : n), to = place(end, back ? -1 : 0, n);
  const int64_t length = back ? from - to : to - from, stride = std::abs(step);
  return std::max<int64_t>(0, (length + stride - 1) / stride);
}

// Between any two, inside or not, of an axis that may be empty.
bool AnySlice(Maker& m, const Rule& rule, Elem t) {
  Dims dims = m.AnyDims(1, 3, 200);
  const size_t axis = m.Below(dims.size());
  if (m.Chance(2)) dims[axis] = m.Of<Size>({0, {0, m.AnySize()}, {m.AnySize(), 0}});
  const Value x = m.Like(t, dims);
  const Size n = x.dims[axis];
  const int64_t step = m.Of<int64_t>({-1, -1, -2, -3, 1, 2});
  const auto any = [&] {
    return m.Of<int64_t>({INT64_MAX, INT64_MIN, 0, -1, m.Between(-4, 4), n.a, n.b});
  };
  int64_t begin = any();
  const int64_t end = any();
  // Backwards from before the beginning: NumPy takes nothing, and others the first element.
  if (step < 0 && begin < -std::min(n.a, n.b)) begin = INT64_MAX;
  Value y = x;
  y.dims[axis] = Size::Of([&](int64_t k, int64_t) { return Taken(k, begin, end, step); }, n);
  return m
      .Add(rule.op,
           {x.name, m.List({begin}).name, m.List({end}).name,
            m.List({static_cast<int64_t>(axis)}).name, m.List({step}).name},
           y)
      .has_value();
}

bool Slice(Maker& m, const Rule& rule, Elem t) {
  if (m.Chance(3)) return AnySlice(m, rule, t);
  const Value x = m.Take(t, {.min_rank = 1, .filled = true});
  const size_t axis = m.Below(x.rank());
  const int64_t d = x.dims[axis].least(), step = m.Between(1, 3);
  const bool back = m.Chance(3), ends = !x.dims[axis].fixed() && m.Chance(2);
  const int64_t first = m.Between(0, d - 1), last = m.Between(first, d - 1);
  Value y = x;
  // From `first` to the end, or between two that are inside at both calls.
  const Size to = ends ? x.dims[axis] : Size(last + 1);
  y.dims[axis] = Size::Of([&](int64_t a, int64_t) { return (a - first + step - 1) / step; }, to);
  int64_t begin = first, end = ends ? INT64_MAX : last + 1;
  if (back) {
    begin = ends ? INT64_MAX : last;
    end = first == 0 ? INT64_MIN : first - 1;
  }
  const auto at = static_cast<int64_t>(axis);
  return m
      .Add(rule.op,
           {x.name, m.List({begin}).name, m.List({end}).name,
            m.List({m.Chance(2) ? at : at - Rank(x)}).name, m.List({back ? -step : step}).name},
           y)
      .has_value();
}

bool Concat(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1});
  const size_t axis = m.Below(x.rank());
  std::vector<std::string> names = {x.name};
  Value y = x;
  for (size_t n = m.Below(3); n > 0; --n) {
    Dims dims = x.dims;
    if (m.Chance(2)) dims[axis] = m.AnyOpenSize();
    const Value part = m.Like(t, dims);
    names.push_back(part.name);
    y.dims[axis] = y.dims[axis] + part.dims[axis];
    y.lo = std::min(y.lo, part.lo), y.hi = std::max(y.hi, part.hi);
    y.error = std::max(y.error, part.error), y.whole = y.whole && part.whole;
  }
  return m.Add(rule.op, names, y, {Int("axis", static_cast<int64_t>(axis))}).has_value();
}

bool Split(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .filled = true});
  const size_t axis = m.Below(x.rank());
  if (!x.dims[axis].fixed()) return false;
  const int64_t first = m.Between(0, x.dims[axis].a);
  Value a = x, b = x;
  a.name = b.name = "";
  a.dims[axis] = first, b.dims[axis] = x.dims[axis].a - first;
  return m.AddAll(rule.op, {x.name, m.List({first, x.dims[axis].a - first}).name}, {a, b},
                  {Int("axis", static_cast<int64_t>(axis))});
}

bool Pad(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .filled = true});
  const std::string mode =
      m.opset() >= 19 && !*rule.domain
          ? m.Of<std::string>({"constant", "constant", "reflect", "edge", "wrap"})
          : m.Of<std::string>({"constant", "constant", "reflect", "edge"});
  Ints64 pads(2 * x.rank());
  Value y = x;
  for (size_t i = 0; i < x.rank(); ++i) {
    const int64_t most = mode == "reflect" ? std::min<int64_t>(2, x.dims[i].least() - 1)
                         : mode == "wrap"  ? std::min<int64_t>(2, x.dims[i].least())
                                           : 2;
    pads[i] = m.Chance(2) ? m.Between(0, most) : 0;
    pads[x.rank() + i] = m.Chance(2) ? m.Between(0, most) : 0;
    y.dims[i] = x.dims[i] + Size(pads[i] + pads[x.rank() + i]);
  }
  std::vector<std::string> inputs = {x.name, m.List(pads).name};
  if (mode == "constant") {
    y.lo = std::min(y.lo, 0.0), y.hi = std::max(y.hi, 1.0);
    if (m.Chance(2)) inputs.push_back(m.Number(t, 1).name);
  }
  return m.Add(rule.op, inputs, y, {Str("mode", mode)}, rule.domain).has_value();
}

bool Expand(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.max_rank = 3});
  Value y = x;
  Ints64 shape;
  for (Size& d : y.dims) {
    if (d == Size(1)) d = m.AnySize();
    shape.push_back(d.fixed() ? d.a : 1);
  }
  if (m.Chance(3)) {
    y.dims.insert(y.dims.begin(), m.Between(1, 3));
    shape.insert(shape.begin(), y.dims[0].a);
  }
  return m.Add(rule.op, {x.name, m.List(shape).name}, y).has_value();
}

bool Tile(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1});
  Ints64 repeats(x.rank(), 1);
  Value y = x;
  const size_t axis = m.Below(x.rank());
  repeats[axis] = m.Between(m.Chance(8) ? 0 : 1, 3);
  y.dims[axis] = y.dims[axis] * Size(repeats[axis]);
  return m.Add(rule.op, {x.name, m.List(repeats).name}, y).has_value();
}

bool DepthToSpace(Maker& m, const Rule& rule, Elem t) {
  const int64_t s = 2, c = m.Between(1, 4);
  const bool to_space = rule.op == std::string_view("DepthToSpace");
  const Size h = m.AnyOpenSize(), w = m.Between(1, 5);
  const Value x =
      m.Like(t, to_space ? Dims{1, c * s * s, h, w} : Dims{1, c, h * Size(s), w * Size(s)});
  Value y = x;
  y.dims = to_space ? Dims{1, c, h * Size(s), w * Size(s)} : Dims{1, c * s * s, h, w};
  std::vector<std::string> attributes = {Int("blocksize", s)};
  if (to_space && m.opset() >= 11) attributes.push_back(Str("mode", m.Chance(2) ? "DCR" : "CRD"));
  return m.Add(rule.op, {x.name}, y, attributes).has_value();
}

bool Trilu(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 2});
  Value y = x;
  y.lo = std::min(0.0, y.lo), y.hi = std::max(0.0, y.hi);
  std::vector<std::string> inputs = {x.name};
  if (!m.Chance(4)) inputs.push_back(m.Scalar64(m.Between(-2, 2)).name);
  std::vector<std::string> attributes;
  if (!m.Chance(4)) attributes.push_back(Int("upper", m.Chance(2)));
  return m.Add(rule.op, inputs, y, attributes, rule.domain).has_value();
}

bool CenterCropPad(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .max_rank = 3, .filled = true});
  const size_t axis = m.Below(x.rank());
  Value y = x;
  y.dims[axis] = m.Between(1, 9);
  y.lo = std::min(0.0, y.lo), y.hi = std::max(0.0, y.hi);
  return m
      .Add(rule.op, {x.name, m.List({y.dims[axis].a}).name}, y,
           {Ints("axes", {static_cast<int64_t>(axis)})})
      .has_value();
}

bool ReverseSequence(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 2, .filled = true});
  const bool time_first = m.Chance(2);
  const Size batch = x.dims[time_first ? 1 : 0], time = x.dims[time_first ? 0 : 1];
  const Value lengths = m.Data(kI64, {batch}, 1, static_cast<double>(time.least()));
  return m
      .Add(rule.op, {x.name, lengths.name}, x,
           {Int("batch_axis", time_first ? 1 : 0), Int("time_axis", time_first ? 0 : 1)})
      .has_value();
}

bool ShapeOf(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t);
  const bool size = rule.op == std::string_view("Size");
  Value y{"", kI64, size ? Dims{} : Dims{Rank(x)}, 0, 1e4};
  return m.Add(rule.op, {x.name}, y).has_value();
}

// Numbers in a tensor of a given shape, that of another value if it is open.
bool ConstantOfShape(Maker& m, const Rule& rule, Elem t) {
  const Value like = m.Take(kF32, {.min_rank = 1, .max_rank = 3});
  Value shape{"", kI64, {Rank(like)}, 0, 1e4};
  const std::optional<Value> dims = m.Add("Shape", {like.name}, shape);
  if (!dims) return false;
  Value y{"", t, like.dims, 1, 1};
  return m
      .Add(rule.op, {dims->name}, y,
           {onnx::test::TensorAttr("value", onnx::test::Tensor("", t, {1}, BytesOf(t, {1})))})
      .has_value();
}

bool Range(Maker& m, const Rule& rule, Elem t) {
  const int64_t n = m.Between(0, 17), start = m.Between(0, 5), delta = m.Between(1, 3);
  Value y{"", t, {n}, static_cast<double>(start), static_cast<double>(start + n * delta)};
  return m
      .Add(rule.op,
           {m.Number(t, static_cast<double>(start)).name,
            m.Number(t, static_cast<double>(start + n * delta)).name,
            m.Number(t, static_cast<double>(delta)).name},
           y)
      .has_value();
}

bool EyeLike(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 2, .max_rank = 2});
  Value y = x;
  y.lo = 0, y.hi = 1, y.error = 0, y.whole = true;
  return m.Add(rule.op, {x.name}, y, {Int("k", m.Between(-2, 2))}).has_value();
}

constexpr Rule kRules[] = {
    {"Transpose", 21, kAny, Transpose},
    {"Reshape", 21, kAny, Reshape},
    {"Flatten", 21, kAny, Flatten},
    {"Unsqueeze", 21, kAny, Unsqueeze},
    {"Squeeze", 21, kAny, Squeeze},
    {"Slice", 13, kAll, Slice},
    {"Concat", 13, kAll, Concat},
    {"Split", 13, kAll, Split},
    {"Pad", 21, kAny & ~Only(kF8E8M0), Pad},
    {"Expand", 13, kAll, Expand},
    {"Tile", 13, kAll, Tile},
    {"DepthToSpace", 13, kAll, DepthToSpace},
    {"SpaceToDepth", 13, kAll, DepthToSpace},
    {"Trilu", 14, kAll, Trilu},
    {"CenterCropPad", 18, kAll, CenterCropPad},
    {"ReverseSequence", 10, kOldAll, ReverseSequence},
    {"ReverseSequence", 28, Only(kBF16), ReverseSequence},
    {"Shape", 21, kAny, ShapeOf},
    {"Size", 21, kAny, ShapeOf},
    {"ConstantOfShape", 20, kAny, ConstantOfShape},
    {"Range", 27, Only(kF16) | Only(kBF16), Range},
    {"Range", 11, Only(kF32) | Only(kF64) | Only(kI16) | Only(kI32) | Only(kI64), Range},
    {"EyeLike", 22, kAll, EyeLike},
    {"Pad", 18, kAll, Pad, "com.microsoft"},
    {"Trilu", 18, kAll, Trilu, "com.microsoft"},
    {"ExpandDims", 18, kAll, ExpandDims, "com.microsoft"},
    // As sets before defined them, of the types that they knew.
    {"Transpose", 1, kOldAll, Transpose, "", 13},
    {"Transpose", 13, kAll, Transpose, "", 21},
    {"Reshape", 5, kOldAll, Reshape, "", 13},
    {"Flatten", 9, kOldAll, Flatten, "", 13},
    {"Unsqueeze", 13, kAll, Unsqueeze, "", 21},
    {"Squeeze", 13, kAll, Squeeze, "", 21},
    {"Slice", 10, kOldAll, Slice, "", 13},
    {"Concat", 4, kOldAll, Concat, "", 13},
    {"Pad", 11, kIeee | kInts, Pad, "", 13},
    {"Pad", 13, kAll, Pad, "", 21},
    {"Expand", 8, kOldAll, Expand, "", 13},
    {"Tile", 6, kOldAll, Tile, "", 13},
    {"DepthToSpace", 1, kOldAll, DepthToSpace, "", 13},
    {"SpaceToDepth", 1, kOldAll, DepthToSpace, "", 13},
    {"Shape", 1, kOldAll, ShapeOf, "", 13},
    {"Size", 1, kOldAll, ShapeOf, "", 13},
    {"ConstantOfShape", 9, kOldAll, ConstantOfShape, "", 20},
    {"EyeLike", 9, kOldAll, EyeLike, "", 22},
};

}  // namespace

std::span<const Rule> MovementRules() { return kRules; }

}  // namespace tenon::fuzz
