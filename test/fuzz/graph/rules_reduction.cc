// Operators along axes: reductions, running sums, softmax, the largest.
#include <cmath>

#include "fuzz/graph/rules.h"

namespace tenon::fuzz {

namespace {

double UnitAlong(const Value& v) { return InfoOf(v.elem).unit * std::max(1.0, v.bound()); }

// What is left of dims without some axes.
Dims Reduced(const Dims& dims, const Ints64& axes, bool keep) {
  Dims out;
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (!gone || keep) out.push_back(gone ? Size(1) : dims[i]);
  }
  return out;
}

bool Reduce(Maker& m, const Rule& rule, Elem t) {
  const std::string_view op = rule.op;
  const bool picks = op == "ReduceMax" || op == "ReduceMin";
  const bool logs = op == "ReduceLogSum", exponents = op == "ReduceLogSumExp";
  // Of no elements there is no mean and no largest.
  Need need{.min_rank = 1, .filled = op != "ReduceSum" && op != "ReduceProd"};
  if (logs || op == "ReduceL2") need.lo = 1;
  if (exponents) need.lo = -8, need.hi = 8;
  if (op == "ReduceProd") need.lo = t == kBool || In(kUnsigned, t) ? 0.0 : -1.0, need.hi = 1;
  if (!IsFloat(t) && (logs || exponents || op == "ReduceL2"))
    return false;  // rounded by nobody's rule
  const Value x = m.Take(t, need);
  Ints64 axes;
  Size along = 1;
  for (size_t i = 0; i < x.rank(); ++i) {
    if (m.Chance(2)) axes.push_back(static_cast<int64_t>(i)), along = along * x.dims[i];
  }
  if (axes.empty()) axes = {0}, along = x.dims[0];
  const bool keep = m.Chance(2);
  const auto n = static_cast<double>(std::max<int64_t>(1, along.most()));
  Value y = x;
  y.dims = Reduced(x.dims, axes, keep);
  if (op == "ReduceSum" || op == "ReduceL1" || op == "ReduceSumSquare") {
    const double each = op == "ReduceSumSquare" ? x.bound() * x.bound() : x.bound();
    y.lo = op == "ReduceSum" && x.lo < 0 ? -each * n : 0, y.hi = each * n;
    y.error = x.error * n * (op == "ReduceSumSquare" ? 2 * x.bound() : 1);
  } else if (op == "ReduceProd") {
    y.lo = -1, y.hi = 1, y.error = x.error * n;
    if (In(kUnsigned, t)) y.lo = 0;
  } else if (op == "ReduceL2") {
    y.lo = 0, y.hi = x.bound() * n, y.error = x.error * n, y.whole = false;
  } else if (logs || exponents) {
    y.lo = -8, y.hi = 8 + std::log(n * x.bound() + 1), y.error = x.error * n, y.whole = false;
  } else if (op == "ReduceMean") {
    if (!IsFloat(t)) return false;  // how it is rounded differs
    y.whole = false;
  }
  if (IsFloat(t) && (!y.whole || op == "ReduceProd"))
    y.error += picks ? 0 : UnitAlong(y) * (kFunction + std::sqrt(n));
  if (!keep && y.dims.empty() && m.inside()) return false;
  // Since version 18, and of sums since 13, axes are an input.
  std::vector<std::string> attributes = {Int("keepdims", keep)};
  std::vector<std::string> inputs = {x.name};
  for (int64_t& axis : axes) {
    if (m.opset() >= 11 && m.Chance(3)) axis -= static_cast<int64_t>(x.rank());
  }
  if (m.opset() >= (op == "ReduceSum" ? 13 : 18))
    inputs.push_back(m.List(axes).name);
  else
    attributes.push_back(Ints("axes", axes));
  return m.Add(rule.op, inputs, y, attributes).has_value();
}

bool ArgReduce(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .exact = true, .filled = true});
  const size_t axis = m.Below(x.rank());
  const bool keep = m.Chance(2);
  Value y = x;
  y.elem = kI64, y.lo = 0, y.hi = static_cast<double>(x.dims[axis].most());
  y.dims = Reduced(x.dims, {static_cast<int64_t>(axis)}, keep);
  std::vector<std::string> attributes = {Int("axis", static_cast<int64_t>(axis)),
                                         Int("keepdims", keep)};
  if (m.opset() >= 12) attributes.push_back(Int("select_last_index", m.Chance(2)));
  return m.Add(rule.op, {x.name}, y, attributes).has_value();
}

bool Cumulate(Maker& m, const Rule& rule, Elem t) {
  const bool product = rule.op == std::string_view("CumProd");
  const Value x = m.Take(t, {.min_rank = 1,
                             .lo = product ? (In(kUnsigned, t) ? 0.0 : -1.0) : -1e18,
                             .hi = product ? 1 : 1e18});
  const size_t axis = m.Below(x.rank());
  const double n = product ? 1 : static_cast<double>(std::max<int64_t>(1, x.dims[axis].most()));
  Value y = x;
  y.lo = std::min(0.0, x.lo * n), y.hi = std::max(x.hi * n, product ? 1.0 : 0.0);
  if (product && !In(kUnsigned, t)) y.lo = -1;
  y.error = x.error * static_cast<double>(x.dims[axis].most());
  if (IsFloat(t) && !y.whole) y.error += UnitAlong(y) * (1 + std::sqrt(n) * 4);
  return m
      .Add(rule.op, {x.name, m.Scalar64(static_cast<int64_t>(axis)).name}, y,
           {Int("exclusive", m.Chance(2)), Int("reverse", m.Chance(2))})
      .has_value();
}

bool TopK(Maker& m, const Rule& rule, Elem t) {
  const auto [x, values, indices, axis, k] = DrawLargest(m, t);
  return m.AddAll(rule.op, {x.name, m.List({k}).name}, {values, indices},
                  {Int("axis", axis), Int("largest", m.Chance(2))});
}

bool Softmax(Maker& m, const Rule& rule, Elem t) {
  const bool log = rule.op == std::string_view("LogSoftmax");
  const bool hard = rule.op == std::string_view("Hardmax");
  const Value x = m.Take(t, {.min_rank = 1, .lo = -16, .hi = 16, .exact = hard, .filled = true});
  Value y = x;
  y.lo = log ? -48 : 0, y.hi = log ? 0 : 1;
  if (!hard) y.whole = false, y.error = 2 * x.error + UnitAlong(y) * 2 * kFunction;
  const auto axis = m.Between(-static_cast<int64_t>(x.rank()), static_cast<int64_t>(x.rank()) - 1);
  return m.Add(rule.op, {x.name}, y, {Int("axis", axis)}).has_value();
}

constexpr Types kSummed = kFloats | kWide;

constexpr Rule kRules[] = {
    {"ReduceSum", 13, kSummed, Reduce},
    {"ReduceMean", 13, kFloats, Reduce},
    {"ReduceMax", 20, kSummed | kBytes | Only(kBool), Reduce},
    {"ReduceMin", 20, kSummed | kBytes | Only(kBool), Reduce},
    {"ReduceProd", 13, kSummed, Reduce},
    {"ReduceL1", 13, kSummed, Reduce},
    {"ReduceL2", 13, kFloats, Reduce},
    {"ReduceLogSum", 13, kFloats, Reduce},
    {"ReduceLogSumExp", 13, kFloats, Reduce},
    {"ReduceSumSquare", 13, kSummed, Reduce},
    {"ArgMax", 13, kNumbers, ArgReduce},
    {"ArgMin", 13, kNumbers, ArgReduce},
    {"CumSum", 14, kSummed, Cumulate},
    {"CumProd", 26, kSummed, Cumulate},
    {"TopK", 24, kNumbers, TopK},
    {"Softmax", 13, kFloats, Softmax},
    {"LogSoftmax", 13, kFloats, Softmax},
    {"Hardmax", 13, kFloats, Softmax},
    // As sets before defined them, of the types that they knew.
    {"ReduceSum", 1, kOldNumbers, Reduce, "", 13},
    {"ReduceMax", 1, kOldNumbers, Reduce, "", 13},
    {"ReduceMin", 1, kOldNumbers, Reduce, "", 13},
    {"ReduceProd", 1, kOldNumbers, Reduce, "", 13},
    {"ReduceL1", 1, kOldNumbers, Reduce, "", 13},
    {"ReduceSumSquare", 1, kOldNumbers, Reduce, "", 13},
    {"ReduceMean", 1, kIeee, Reduce, "", 13},
    {"ReduceL2", 1, kIeee, Reduce, "", 13},
    {"ReduceLogSum", 1, kIeee, Reduce, "", 13},
    {"ReduceLogSumExp", 1, kIeee, Reduce, "", 13},
    {"ArgMax", 1, kIeee | kInts, ArgReduce, "", 13},
    {"ArgMin", 1, kIeee | kInts, ArgReduce, "", 13},
    {"CumSum", 11, Only(kF32) | Only(kF64) | kWide, Cumulate, "", 14},
    {"TopK", 11, kIeee | kInts, TopK, "", 24},
};

}  // namespace

std::span<const Rule> ReductionRules() { return kRules; }

}  // namespace tenon::fuzz
