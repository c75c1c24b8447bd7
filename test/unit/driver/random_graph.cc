#include "unit/driver/random_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "unit/onnx/model_builder.h"

namespace tenon::driver::test {

namespace {

using namespace onnx::test;  // NOLINT(google-build-using-namespace): its makers of messages
using Dims = std::vector<int64_t>;

constexpr int64_t kMostElements = 20000;
constexpr double kMostExact = 1 << 22;  // sums of such integers are exact in floats
constexpr double kMostBound = 1e5;      // beyond it differences of roundings become large

// Around the lanes of vectors and the tiles of registers, and primes.
constexpr int64_t kSizes[] = {1, 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 23, 31, 32, 33};

struct Value {
  std::string name;
  Dims dims;
  bool exact = true;
  double bound = 4;
  size_t rank() const { return dims.size(); }
};

int64_t Count(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  RandomGraph Make(int steps) {
    const int inputs = 1 + static_cast<int>(Below(2));
    const bool images = Below(2) == 0;
    for (int i = 0; i < inputs; ++i) AddInput("x" + std::to_string(i), images);
    for (int done = 0, tries = 0; done < steps && tries < 20 * steps; ++tries) done += Step();
    return Finish();
  }

 private:
  using Move = bool (Generator::*)();

  size_t Below(size_t n) { return n == 0 ? 0 : random_() % n; }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<size_t>(high - low + 1)));
  }
  bool Chance(size_t one_in) { return Below(one_in) == 0; }
  template <class T>
  const T& Of(const std::vector<T>& list) {
    return list[Below(list.size())];
  }
  int64_t Size() { return kSizes[Below(std::size(kSizes))]; }

  void AddInput(const std::string& name, bool image) {
    Value v{name, {}, true, 4};
    const size_t rank = image ? 4 : 1 + Below(4);
    do {
      v.dims.clear();
      for (size_t i = 0; i < rank; ++i) v.dims.push_back(image && i == 0 ? Between(1, 2) : Size());
    } while (Count(v.dims) > kMostElements / 4);
    std::vector<DimText> dims(v.dims.begin(), v.dims.end());
    model_.Input(name, dims);
    values_.push_back(v);
    used_.push_back(true);
  }

  // A value, a late one more likely than an early one.
  Value Pick() {
    const size_t at = std::max(Below(values_.size()), Below(values_.size()));
    picked_.push_back(at);
    return values_[at];
  }

  std::string NewName() { return "v" + std::to_string(serial_++); }

  // Integers in low..high.
  std::string Constant(const Dims& dims, int64_t low, int64_t high) {
    std::vector<float> data(static_cast<size_t>(Count(dims)));
    for (float& x : data) x = static_cast<float>(Between(low, high));
    const std::string name = NewName();
    model_.Init(name, kFloat, dims, Raw(data));
    return name;
  }
  std::string Ints64(const Dims& values, bool scalar = false) {
    const std::string name = NewName();
    model_.Init(name, kInt64, scalar ? Dims{} : Dims{static_cast<int64_t>(values.size())},
                Raw(values));
    return name;
  }
  // One float.
  std::string Number(float value) {
    const std::string name = NewName();
    model_.Init(name, kFloat, {}, Raw<float>({value}));
    return name;
  }

  // A node with one output that is not a value of its own.
  std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& attributes = {}) {
    const std::string name = NewName();
    model_.Node(op, inputs, {name}, attributes);
    return name;
  }

  static bool Allowed(const Dims& dims, double bound) {
    return Count(dims) <= kMostElements && dims.size() <= 5 && bound <= kMostExact;
  }
  // Makes the result of a step a value.
  bool Push(std::string name, Dims dims, bool exact, double bound) {
    for (size_t at : picked_) used_[at] = true;
    values_.push_back({std::move(name), std::move(dims), exact && bound <= kMostExact, bound});
    used_.push_back(false);
    return true;
  }
  // A node with its result, unless that would be too large.
  bool Add(const std::string& op, const std::vector<std::string>& inputs, const Dims& dims,
           bool exact, double bound, const std::vector<std::string>& attributes = {}) {
    if (!Allowed(dims, bound) || (!exact && bound > kMostBound)) return false;
    return Push(Node(op, inputs, attributes), dims, exact, bound);
  }

  bool Step();

  // --- elementwise

  bool Unary() {
    const Value x = Pick();
    if (x.exact && Chance(3))
      return Add(Of<std::string>({"Sign", "Floor", "Ceil", "Round"}), {x.name}, x.dims, true,
                 x.bound);
    return Add(Of<std::string>({"Relu", "Neg", "Abs", "Identity"}), {x.name}, x.dims, x.exact,
               x.bound);
  }
  bool Smooth() {
    const Value x = Pick();
    if (Chance(4) && x.bound <= 4) return Add("Exp", {x.name}, x.dims, false, 55);
    if (Chance(4)) {
      const std::string op = Of<std::string>({"HardSwish", "Softplus", "LeakyRelu", "Elu"});
      return Add(op, {x.name}, x.dims, false, x.bound + 1);
    }
    if (x.bound > 500) return false;
    const std::string op =
        Of<std::string>({"Sigmoid", "Tanh", "Erf", "Softsign", "HardSigmoid", "Sin", "Cos"});
    return Add(op, {x.name}, x.dims, false, 1);
  }
  bool Clip() {
    const Value x = Pick();
    return Add("Clip", {x.name, Number(-3), Chance(3) ? "" : Number(5)}, x.dims, x.exact,
               std::max(x.bound, 5.0));
  }
  bool Gelu() {
    const Value x = Pick();
    const std::string e = Node("Erf", {Node("Div", {x.name, Number(std::sqrt(2.0f))})});
    const std::string s = Node("Mul", {x.name, Node("Add", {e, Number(1)})});
    return Add("Mul", {s, Number(0.5f)}, x.dims, false, x.bound);
  }

  // An operand that broadcasts against x: another value where one fits, else a constant.
  Value Operand(const Value& x, bool constant = false) {
    for (int tries = 0; tries < 4 && !constant; ++tries) {
      const Value y = Pick();
      if (Broadcast(x.dims, y.dims)) return y;
      picked_.pop_back();
    }
    Dims dims(x.dims.begin() + static_cast<long>(Below(x.rank() + 1)), x.dims.end());
    for (int64_t& d : dims) d = Chance(3) ? 1 : d;
    return {Constant(dims, -3, 3), dims, true, 3};
  }
  static bool Broadcast(const Dims& a, const Dims& b, Dims* out = nullptr) {
    Dims dims(std::max(a.size(), b.size()));
    for (size_t i = 0; i < dims.size(); ++i) {
      const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1,
                    y = i < b.size() ? b[b.size() - 1 - i] : 1;
      if (x != y && x != 1 && y != 1) return false;
      dims[dims.size() - 1 - i] = std::max(x, y);
    }
    if (out) *out = dims;
    return true;
  }
  bool Binary() {
    const Value x = Pick(), y = Operand(x);
    Dims dims;
    Broadcast(x.dims, y.dims, &dims);
    const std::string op = Of<std::string>({"Add", "Sub", "Mul", "Max", "Min", "Add"});
    const double bound = op == "Mul" ? x.bound * y.bound : x.bound + y.bound;
    return Chance(2) ? Add(op, {x.name, y.name}, dims, x.exact && y.exact, bound)
                     : Add(op, {y.name, x.name}, dims, x.exact && y.exact, bound);
  }
  bool Divide() {
    const Value x = Pick();
    return Add("Div", {x.name, Constant({x.rank() ? x.dims.back() : 1}, 1, 9)},
               x.rank() ? x.dims : Dims{1}, false, x.bound);
  }
  bool Select() {
    const Value x = Pick(), y = Operand(x, true);
    if (!x.exact) return false;
    const std::string op = Of<std::string>({"Less", "Greater", "Equal", "LessOrEqual"});
    std::string c = Node(op, {x.name, y.name});
    if (Chance(3)) c = Node("Not", {c});
    if (Chance(3)) c = Node("Or", {c, Node("Greater", {x.name, Number(2)})});
    if (Chance(3)) return Add("Cast", {c}, x.dims, true, 1, {Int("to", kFloat)});
    const Value z = Operand(x);
    Dims dims;
    Broadcast(x.dims, z.dims, &dims);
    return Add("Where", {c, x.name, z.name}, dims, z.exact, x.bound + z.bound);
  }
  // Through another type and back.
  bool Types() {
    const Value x = Pick();
    constexpr int kInt8 = 3, kDouble = 11;
    if (!x.exact) return false;
    const int to = x.bound <= 40 && Chance(2) ? kInt8 : Of<int>({kInt32, kInt64, kDouble});
    const std::string c = Node("Cast", {x.name}, {Int("to", to)});
    const std::string op = Of<std::string>({"Add", "Mul", "Max"});
    const std::string two = Node("Cast", {Number(2)}, {Int("to", to)});
    return Add("Cast", {Node(op, {c, two})}, x.dims, true, 2 * x.bound + 2, {Int("to", kFloat)});
  }

  // --- reductions

  bool Reduce() {
    const Value x = Pick();
    if (x.rank() == 0) return false;
    Dims axes;
    for (size_t i = 0; i < x.rank(); ++i) {
      if (Chance(2)) axes.push_back(static_cast<int64_t>(i));
    }
    if (axes.empty()) axes.push_back(Between(0, static_cast<int64_t>(x.rank()) - 1));
    const bool keep = Chance(2);
    Dims dims;
    int64_t count = 1;
    for (size_t i = 0; i < x.rank(); ++i) {
      const bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
      if (gone) count *= x.dims[i];
      if (!gone || keep) dims.push_back(gone ? 1 : x.dims[i]);
    }
    const double n = static_cast<double>(count);
    switch (Below(4)) {
      case 0:
        return Add("ReduceSum", {x.name, Ints64(axes)}, dims, x.exact, x.bound * n,
                   {Int("keepdims", keep)});
      case 1:
        return Add(Of<std::string>({"ReduceMax", "ReduceMin"}), {x.name}, dims, x.exact, x.bound,
                   {Int("keepdims", keep), Ints("axes", axes)});
      case 2:
        return Add("ReduceMean", {x.name}, dims, false, x.bound,
                   {Int("keepdims", keep), Ints("axes", axes)});
      default:
        return Add("ReduceSumSquare", {x.name}, dims, x.exact, x.bound * x.bound * n,
                   {Int("keepdims", keep), Ints("axes", axes)});
    }
  }
  bool Cumulate() {
    const Value x = Pick();
    if (x.rank() == 0) return false;
    const size_t axis = Below(x.rank());
    return Add("CumSum", {x.name, Ints64({static_cast<int64_t>(axis)}, true)}, x.dims, x.exact,
               x.bound * static_cast<double>(x.dims[axis]),
               {Int("exclusive", Chance(2)), Int("reverse", Chance(2))});
  }
  bool Softmax() {
    const Value x = Pick();
    if (x.rank() == 0) return false;
    const bool log = Chance(3);
    return Add(log ? "LogSoftmax" : "Softmax", {x.name}, x.dims, false, log ? 2 * x.bound + 10 : 1,
               {Int("axis", Between(0, static_cast<int64_t>(x.rank()) - 1))});
  }
  // The index of the largest, as a number or as the index of a row.
  bool ArgMax() {
    const Value x = Pick();
    if (x.rank() == 0 || !x.exact) return false;
    const size_t axis = Below(x.rank());
    Dims dims = x.dims;
    dims.erase(dims.begin() + static_cast<long>(axis));
    const std::string index = Node(Of<std::string>({"ArgMax", "ArgMin"}), {x.name},
                                   {Int("axis", static_cast<int64_t>(axis)), Int("keepdims", 0)});
    const int64_t n = x.dims[axis];
    if (Chance(2))
      return Add("Cast", {index}, dims, true, static_cast<double>(n), {Int("to", kFloat)});
    const int64_t width = Size();
    dims.push_back(width);
    return Add("Gather", {Constant({n, width}, -4, 4), index}, dims, true, 4, {Int("axis", 0)});
  }
  bool Normalize() {
    const Value x = Pick();
    if (x.rank() == 0 || x.bound > (x.exact ? 64 : 4)) return false;
    const Dims last = {x.dims.back()};
    if (Chance(2))
      return Add("LayerNormalization",
                 {x.name, Constant(last, 1, 3), Chance(2) ? "" : Constant(last, -2, 2)}, x.dims,
                 false, 30, {Int("axis", -1), Float("epsilon", 1e-3f)});
    const std::vector<std::string> axis = {Ints("axes", {-1})};
    const std::string d = Node("Sub", {x.name, Node("ReduceMean", {x.name}, axis)});
    const std::string var = Node("ReduceMean", {Node("Mul", {d, d})}, axis);
    const std::string s = Node("Sqrt", {Node("Add", {var, Number(1e-3f)})});
    return Add("Mul", {Node("Div", {d, s}), Constant(last, 1, 3)}, x.dims, false, 30);
  }

  // --- contractions and windows

  bool MatMul() {
    const Value x = Pick();
    if (x.rank() < 2) return false;
    Dims dims = x.dims;
    const int64_t k = dims.back(), n = Size();
    dims.back() = n;
    Dims w = {k, n};
    if (Chance(3)) w.insert(w.begin(), x.dims.begin(), x.dims.end() - 2);
    return Add("MatMul", {x.name, Constant(w, -2, 2)}, dims, x.exact,
               x.bound * 2 * static_cast<double>(k));
  }
  bool MatMulOfValues() {
    const Value x = Pick();
    if (x.rank() < 2) return false;
    Dims perm(x.rank());
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[x.rank() - 1], perm[x.rank() - 2]);
    Dims dims = x.dims;
    const double k = static_cast<double>(dims.back());
    dims.back() = dims[x.rank() - 2];
    const std::string y = Node("Add", {x.name, Number(1)});
    const std::string t = Node("Transpose", {y}, {Ints("perm", perm)});
    return Add("MatMul", {x.name, t}, dims, x.exact, x.bound * (x.bound + 1) * k);
  }
  bool Gemm() {
    const Value x = Pick();
    if (x.rank() != 2) return false;
    const bool ta = Chance(2), tb = Chance(2);
    const int64_t m = x.dims[ta ? 1 : 0], k = x.dims[ta ? 0 : 1], n = Size();
    std::vector<std::string> inputs = {x.name, Constant(tb ? Dims{n, k} : Dims{k, n}, -2, 2)};
    if (Chance(2)) inputs.push_back(Constant(Chance(2) ? Dims{n} : Dims{m, 1}, -3, 3));
    return Add("Gemm", inputs, {m, n}, x.exact, x.bound * 2 * static_cast<double>(k) + 3,
               {Int("transA", ta), Int("transB", tb)});
  }
  bool Attention() {
    const Value x = Pick();
    if (x.rank() < 3 || x.bound > 64) return false;
    Dims perm(x.rank());
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[x.rank() - 1], perm[x.rank() - 2]);
    const std::string k = Node("Add", {x.name, Constant({x.dims.back()}, -1, 1)});
    const std::string t = Node("Transpose", {k}, {Ints("perm", perm)});
    std::string scores = Node("Mul", {Node("MatMul", {x.name, t}), Number(0.0625f)});
    if (Chance(2)) {
      const int64_t m = x.dims[x.rank() - 2];
      scores = Node("Add", {scores, Constant({m, m}, -2, 0)});
    }
    const std::string p = Node("Softmax", {scores}, {Int("axis", -1)});
    return Add("MatMul", {p, x.name}, x.dims, false, x.bound);
  }
  bool Conv() {
    const Value x = Pick();
    if (x.rank() != 4 && x.rank() != 3) return false;
    const int64_t c = x.dims[1];
    int64_t group = Chance(2) ? 1 : Chance(2) ? c : Between(1, c);
    while (c % group != 0) --group;
    const int64_t m = group * (group > 1 ? Between(1, 2) : Size());
    Dims w = {m, c / group}, dims = {x.dims[0], m}, strides, dilations, pads;
    double taps = static_cast<double>(c / group);
    for (size_t i = 2; i < x.rank(); ++i) {
      const int64_t k = Between(1, 3), s = Between(1, 2), d = Chance(4) ? 2 : 1,
                    p = Between(0, k - 1);
      const int64_t room = x.dims[i] + 2 * p - ((k - 1) * d + 1);
      if (room < 0) return false;
      w.push_back(k), strides.push_back(s), dilations.push_back(d), pads.push_back(p);
      dims.push_back(room / s + 1);
      taps *= static_cast<double>(k);
    }
    for (size_t i = 2; i < x.rank(); ++i) pads.push_back(pads[i - 2]);
    std::vector<std::string> inputs = {x.name, Constant(w, -2, 2)};
    if (Chance(2)) inputs.push_back(Constant({m}, -4, 4));
    return Add("Conv", inputs, dims, x.exact, x.bound * 2 * taps + 4,
               {Ints("strides", strides), Ints("dilations", dilations), Ints("pads", pads),
                Int("group", group)});
  }
  bool Pool() {
    const Value x = Pick();
    if (x.rank() != 4 && x.rank() != 3) return false;
    Dims dims = {x.dims[0], x.dims[1]}, kernel, strides, pads;
    for (size_t i = 2; i < x.rank(); ++i) {
      const int64_t k = Between(1, 3), s = Between(1, 2), p = Between(0, k - 1) / 2;
      if (x.dims[i] + 2 * p < k) return false;
      kernel.push_back(k), strides.push_back(s), pads.push_back(p);
      dims.push_back((x.dims[i] + 2 * p - k) / s + 1);
    }
    for (size_t i = 2; i < x.rank(); ++i) pads.push_back(pads[i - 2]);
    const bool max = Chance(2);
    return Add(max ? "MaxPool" : "AveragePool", {x.name}, dims, max && x.exact, x.bound,
               {Ints("kernel_shape", kernel), Ints("strides", strides), Ints("pads", pads)});
  }
  bool GlobalPool() {
    const Value x = Pick();
    if (x.rank() != 4) return false;
    const bool max = Chance(2);
    return Add(max ? "GlobalMaxPool" : "GlobalAveragePool", {x.name}, {x.dims[0], x.dims[1], 1, 1},
               max && x.exact, x.bound);
  }
  bool BatchNorm() {
    const Value x = Pick();
    if (x.rank() < 2) return false;
    const Dims c = {x.dims[1]};
    return Add(
        "BatchNormalization",
        {x.name, Constant(c, 1, 3), Constant(c, -2, 2), Constant(c, -2, 2), Constant(c, 1, 4)},
        x.dims, false, 3 * (x.bound + 2) + 2);
  }

  // --- movement

  bool Transpose() {
    const Value x = Pick();
    Dims perm(x.rank()), dims(x.rank());
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), random_);
    for (size_t i = 0; i < perm.size(); ++i) dims[i] = x.dims[static_cast<size_t>(perm[i])];
    if (x.rank() == 0) return false;
    return Add("Transpose", {x.name}, dims, x.exact, x.bound, {Ints("perm", perm)});
  }
  bool Reshape() {
    const Value x = Pick();
    Dims dims = x.dims;
    if (Chance(2) && dims.size() >= 2) {
      const size_t at = Below(dims.size() - 1);
      dims[at] *= dims[at + 1];
      dims.erase(dims.begin() + static_cast<long>(at) + 1);
    } else if (!dims.empty()) {
      const size_t at = Below(dims.size());
      int64_t part = Between(1, std::min<int64_t>(dims[at], 8));
      while (dims[at] % part != 0) --part;
      dims[at] /= part;
      dims.insert(dims.begin() + static_cast<long>(at + Below(2)), part);
    }
    return Add("Reshape", {x.name, Ints64(dims)}, dims, x.exact, x.bound);
  }
  bool Slice() {
    const Value x = Pick();
    if (x.rank() == 0) return false;
    const size_t axis = Below(x.rank());
    const int64_t d = x.dims[axis], first = Between(0, d - 1), last = Between(first, d - 1);
    const int64_t step = Between(1, 3);
    const bool back = Chance(3);
    Dims dims = x.dims;
    dims[axis] = (last - first) / step + 1;
    const int64_t begin = back ? last : first,
                  end = back ? (first == 0 ? INT64_MIN : first - 1) : last + 1;
    return Add("Slice",
               {x.name, Ints64({begin}), Ints64({end}), Ints64({static_cast<int64_t>(axis)}),
                Ints64({back ? -step : step})},
               dims, x.exact, x.bound);
  }
  bool Concat() {
    const Value x = Pick();
    if (x.rank() == 0) return false;
    const size_t axis = Below(x.rank());
    std::vector<std::string> inputs = {x.name};
    Dims dims = x.dims;
    double bound = x.bound;
    bool exact = x.exact;
    for (size_t n = 1 + Below(2); n > 0; --n) {
      const Value y = Pick();
      Dims part = y.dims;
      if (part.size() == x.rank()) part[axis] = x.dims[axis];
      if (part == x.dims) {
        inputs.push_back(y.name);
        dims[axis] += y.dims[axis];
        bound = std::max(bound, y.bound);
        exact &= y.exact;
      } else {
        picked_.pop_back();
        part = x.dims;
        part[axis] = Between(1, 3);
        inputs.insert(inputs.begin() + static_cast<long>(Below(2)), Constant(part, -3, 3));
        dims[axis] += part[axis];
      }
    }
    return Add("Concat", inputs, dims, exact, std::max(bound, 3.0),
               {Int("axis", static_cast<int64_t>(axis))});
  }
  bool Split() {
    const Value x = Pick();
    if (x.rank() == 0) return false;
    const size_t axis = Below(x.rank());
    if (x.dims[axis] < 2) return false;
    const int64_t first = Between(1, x.dims[axis] - 1);
    Dims a = x.dims, b = x.dims;
    a[axis] = first, b[axis] -= first;
    const std::string left = NewName(), right = NewName();
    model_.Node("Split", {x.name, Ints64({a[axis], b[axis]})}, {left, right},
                {Int("axis", static_cast<int64_t>(axis))});
    return Push(left, a, x.exact, x.bound) && Push(right, b, x.exact, x.bound);
  }
  bool Pad() {
    const Value x = Pick();
    if (x.rank() == 0) return false;
    const std::string mode = Of<std::string>({"constant", "constant", "reflect", "edge"});
    Dims pads(2 * x.rank()), dims = x.dims;
    for (size_t i = 0; i < x.rank(); ++i) {
      const int64_t most = mode == "reflect" ? std::min<int64_t>(2, x.dims[i] - 1) : 2;
      pads[i] = Chance(2) ? Between(0, most) : 0;
      pads[x.rank() + i] = Chance(2) ? Between(0, most) : 0;
      dims[i] += pads[i] + pads[x.rank() + i];
    }
    std::vector<std::string> inputs = {x.name, Ints64(pads)};
    if (mode == "constant" && Chance(2)) inputs.push_back(Number(-2));
    return Add("Pad", inputs, dims, x.exact, std::max(x.bound, 2.0), {Str("mode", mode)});
  }
  bool Expand() {
    const Value x = Pick();
    Dims dims = x.dims;
    for (int64_t& d : dims) d = d == 1 ? Size() : d;
    if (Chance(3)) dims.insert(dims.begin(), Between(1, 3));
    return Add("Expand", {x.name, Ints64(dims)}, dims, x.exact, x.bound);
  }
  bool Tile() {
    const Value x = Pick();
    if (x.rank() == 0) return false;
    Dims repeats(x.rank(), 1), dims = x.dims;
    const size_t axis = Below(x.rank());
    repeats[axis] = Between(1, 3);
    dims[axis] *= repeats[axis];
    return Add("Tile", {x.name, Ints64(repeats)}, dims, x.exact, x.bound);
  }
  bool Gather() {
    const Value x = Pick();
    if (x.rank() == 0) return false;
    const size_t axis = Below(x.rank());
    Dims indices(static_cast<size_t>(Size())), dims = x.dims;
    for (int64_t& i : indices) i = Between(-x.dims[axis], x.dims[axis] - 1);
    dims[axis] = static_cast<int64_t>(indices.size());
    return Add("Gather", {x.name, Ints64(indices)}, dims, x.exact, x.bound,
               {Int("axis", static_cast<int64_t>(axis))});
  }
  bool Resize() {
    const Value x = Pick();
    if (x.rank() != 4) return false;
    const float s = Of<float>({2, 1.5f, 0.5f});
    Dims dims = x.dims;
    for (size_t i = 2; i < 4; ++i)
      dims[i] = static_cast<int64_t>(std::floor(static_cast<float>(dims[i]) * s));
    if (Count(dims) == 0) return false;
    const std::string scales = NewName();
    model_.Init(scales, kFloat, {4}, Raw<float>({1, 1, s, s}));
    const bool nearest = Chance(2);
    return Add("Resize", {x.name, "", scales}, dims, nearest && x.exact, x.bound,
               {Str("mode", nearest ? "nearest" : "linear"),
                Str("coordinate_transformation_mode", nearest ? "asymmetric" : "half_pixel"),
                Str("nearest_mode", "floor")});
  }
  bool DepthToSpace() {
    const Value x = Pick();
    if (x.rank() != 4) return false;
    const Dims& d = x.dims;
    if (d[1] % 4 == 0)
      return Add("DepthToSpace", {x.name}, {d[0], d[1] / 4, 2 * d[2], 2 * d[3]}, x.exact, x.bound,
                 {Int("blocksize", 2), Str("mode", Chance(2) ? "DCR" : "CRD")});
    if (d[2] % 2 != 0 || d[3] % 2 != 0) return false;
    return Add("SpaceToDepth", {x.name}, {d[0], 4 * d[1], d[2] / 2, d[3] / 2}, x.exact, x.bound,
               {Int("blocksize", 2)});
  }

  RandomGraph Finish() {
    RandomGraph result;
    constexpr size_t kMostOutputs = 4;
    for (size_t i = values_.size(); i-- > 0 && result.outputs.size() < kMostOutputs;) {
      if (used_[i] && !Chance(8)) continue;
      const Value& v = values_[i];
      model_.Output(v.name);
      result.outputs.push_back({v.name, v.exact, v.bound});
    }
    if (result.outputs.empty()) {
      model_.Output(values_.back().name);
      result.outputs.push_back({values_.back().name, true, values_.back().bound});
    }
    result.model = model_.Bytes();
    return result;
  }

  std::mt19937_64 random_;
  Model model_;
  std::vector<Value> values_;
  std::vector<bool> used_;
  std::vector<size_t> picked_;
  int serial_ = 0;
};

bool Generator::Step() {
  static const std::vector<Move> moves = {&Generator::Unary,     &Generator::Smooth,
                                          &Generator::Clip,      &Generator::Gelu,
                                          &Generator::Binary,    &Generator::Binary,
                                          &Generator::Binary,    &Generator::Divide,
                                          &Generator::Select,    &Generator::Types,
                                          &Generator::Reduce,    &Generator::Reduce,
                                          &Generator::Cumulate,  &Generator::Softmax,
                                          &Generator::ArgMax,    &Generator::Normalize,
                                          &Generator::MatMul,    &Generator::MatMul,
                                          &Generator::Gemm,      &Generator::MatMulOfValues,
                                          &Generator::Attention, &Generator::Conv,
                                          &Generator::Conv,      &Generator::Conv,
                                          &Generator::Pool,      &Generator::GlobalPool,
                                          &Generator::BatchNorm, &Generator::Transpose,
                                          &Generator::Transpose, &Generator::Reshape,
                                          &Generator::Reshape,   &Generator::Slice,
                                          &Generator::Concat,    &Generator::Split,
                                          &Generator::Pad,       &Generator::Expand,
                                          &Generator::Tile,      &Generator::Gather,
                                          &Generator::Resize,    &Generator::DepthToSpace};
  picked_.clear();
  return (this->*Of(moves))();
}

}  // namespace

RandomGraph MakeRandomGraph(uint64_t seed, int steps) { return Generator(seed).Make(steps); }

}  // namespace tenon::driver::test
