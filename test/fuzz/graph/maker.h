// A network under construction: an ONNX model whose every value is known by type, sizes at two
// calls, range, and error.
//
// Nothing undefined can happen in it, since rules ask for operands by what they need: a range
// (divisors that are not 0, indices inside), whole numbers, sizes above 0. An operand that exists
// but is out of range is clipped; where none fits, a new input or constant is made.
#pragma once

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "fuzz/graph/element.h"
#include "unit/onnx/model_builder.h"

namespace tenon::fuzz {

using onnx::test::Float;
using onnx::test::FloatList;
using onnx::test::Int;
using onnx::test::Ints;
using onnx::test::Str;
using onnx::test::StrList;
using Ints64 = std::vector<int64_t>;

/// A size at the first and at the second call; equal ones are part of the model's type.
struct Size {
  int64_t a = 0, b = 0;
  Size(int64_t same = 0) : a(same), b(same) {}  // NOLINT: numbers are sizes
  Size(int64_t first, int64_t second) : a(first), b(second) {}
  bool fixed() const { return a == b; }
  int64_t least() const { return std::min(a, b); }
  int64_t most() const { return std::max(a, b); }
  friend bool operator==(const Size&, const Size&) = default;
  template <class F>
  static Size Of(F f, Size x, Size y = 0) {
    return {f(x.a, y.a), f(x.b, y.b)};
  }
};
inline Size operator+(Size x, Size y) { return {x.a + y.a, x.b + y.b}; }
inline Size operator-(Size x, Size y) { return {x.a - y.a, x.b - y.b}; }
inline Size operator*(Size x, Size y) { return {x.a * y.a, x.b * y.b}; }

using Dims = std::vector<Size>;
Size Count(const Dims& dims);
bool AllFixed(const Dims& dims);
Ints64 Fixed(const Dims& dims);
/// As NumPy broadcasts, at each of the calls by itself, or nothing.
std::optional<Dims> Broadcast(const Dims& x, const Dims& y);

struct Value {
  std::string name;
  Elem elem = kF32;
  Dims dims;
  double lo = 0, hi = 0;  // of its elements
  double error = 0;       // how far apart right computations of an element may be; 0: not at all
  bool whole = true;      // elements are integers

  size_t rank() const { return dims.size(); }
  double bound() const { return std::max(std::abs(lo), std::abs(hi)); }
};

/// An element within the value's range.
double AnyElement(std::mt19937_64& random, const Value& v);

/// Elements as the bytes of a tensor.
std::string BytesOf(Elem elem, const std::vector<double>& values);

/// What a rule asks of an operand.
struct Need {
  size_t min_rank = 0, max_rank = 4;
  double lo = -1e18, hi = 1e18;
  bool exact = false;   // whole and without error: what is compared, rounded, or taken for an index
  bool filled = false;  // no size is 0
  bool fixed = false;   // no size is open
  int64_t most = 600;   // elements
};

/// A network as it goes to be checked. Names of values stand for the same in all that is made of
/// it.
struct Network {
  std::string model;                                    // the file
  std::map<std::string, Value> values;                  // by name
  std::map<std::string, std::array<int64_t, 2>> sizes;  // of open sizes, by name
  std::map<std::pair<std::string, Elem>, int> counts;   // how often a row is there, by type
  bool open() const { return !sizes.empty(); }
};

class Maker {
 public:
  struct Options {
    bool open = false, empty = false, infos = false;
    int64_t opset = 21;
  };
  Maker(uint64_t seed, Options options) : random(seed), options_(options) {}

  // --- chance
  size_t Below(size_t n) { return n == 0 ? 0 : random() % n; }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<size_t>(high - low + 1)));
  }
  bool Chance(size_t one_in) { return Below(one_in) == 0; }
  template <class T>
  T Of(std::initializer_list<T> list) {
    return list.begin()[Below(list.size())];
  }
  /// Around vectors and tiles, and primes.
  int64_t AnySize();
  Size AnyOpenSize();
  Dims AnyDims(size_t min_rank, size_t max_rank, int64_t most = 600);

  // --- operands
  Value Input(Elem elem, const Dims& dims, double lo, double hi, bool whole = true);
  Value Constant(Elem elem, const Ints64& dims, double lo, double hi, bool whole = true);
  /// A constant where sizes are fixed, sometimes; else an input.
  Value Data(Elem elem, const Dims& dims, double lo, double hi, bool whole = true);
  Value List(const Ints64& values);
  Value Scalar64(int64_t value);
  Value Number(Elem elem, double value);
  /// A constant of these elements.
  Value Tensor(Elem elem, const Ints64& dims, const std::vector<double>& values);
  /// A list of float32, by name.
  std::string Floats(const std::vector<float>& values);
  /// A value that is there, or a new one.
  Value Take(Elem elem, const Need& need = {});
  /// One of these dims.
  Value Like(Elem elem, const Dims& dims, const Need& need = {});
  /// One that broadcasts against x.
  Value Against(const Value& x, Elem elem, const Need& need = {});

  // --- nodes
  int64_t opset() const { return options_.opset; }
  std::string NewName() { return "v" + std::to_string(serial_++); }
  /// A node whose result other rules may use. Nothing where it would be too large or too inexact.
  std::optional<Value> Add(const std::string& op, const std::vector<std::string>& inputs,
                           Value result, const std::vector<std::string>& attributes = {},
                           const std::string& domain = "");
  bool AddAll(const std::string& op, const std::vector<std::string>& inputs,
              std::vector<Value> results, const std::vector<std::string>& attributes = {},
              const std::string& domain = "");

  /// A node whose results no rule but its own knows.
  void PlainAll(const std::string& op, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs,
                const std::vector<std::string>& attributes = {}, const std::string& domain = "");
  void Plain(const std::string& op, const std::vector<std::string>& inputs,
             const std::string& output, const std::vector<std::string>& attributes = {},
             const std::string& domain = "") {
    PlainAll(op, inputs, {output}, attributes, domain);
  }

  /// Values made inside of a graph of an attribute; those outside can be used there.
  /// `Leave` gives the graph as the attribute.
  void Enter();
  std::string Leave(const std::string& attribute,
                    const std::vector<std::pair<std::string, Elem>>& outputs);
  /// An input of the graph that was entered.
  Value Formal(Elem elem, const Dims& dims, double lo, double hi, bool whole);
  /// One of any shape, which no rule but its own knows.
  std::string FormalOfType(Elem elem);
  bool inside() const { return frames_.size() > 1; }

  Network Finish(std::map<std::pair<std::string, Elem>, int> counts);

  std::mt19937_64 random;

 private:
  struct Frame {
    onnx::test::Model model;
    size_t first = 0;  // of its values
  };

  std::vector<onnx::test::DimText> Names(const Dims& dims, bool open);
  const std::string& NameOf(Size size);
  bool Fits(const Value& v, const Need& need) const;
  Value Clipped(const Value& v, const Need& need);
  Value Fresh(Elem elem, const Dims& dims, const Need& need);
  void Know(const Value& v);

  Options options_;
  std::vector<Frame> frames_{1};
  std::vector<Value> values_;
  std::vector<std::string> made_;  // by nodes of the main graph
  std::map<std::string, Value> known_;
  std::map<std::string, std::array<int64_t, 2>> sizes_;
  std::vector<std::string> used_;
  std::set<std::string> domains_;  // of nodes, the default one aside
  int serial_ = 0;
};

/// A row: how nodes of an operator are made, of which element types. Returns false where it found
/// nothing to do.
struct Rule {
  const char* op;
  int64_t since;
  Types types;
  bool (*make)(Maker& m, const Rule& rule, Elem t);
  const char* domain = "";
  int64_t before = INT64_MAX;  // the set that defines it anew
  bool IsOf(int64_t opset) const { return since <= opset && opset < before; }
  /// With its domain, as operators without a rule are told.
  std::string name() const { return *domain ? std::string(domain) + "." + op : op; }
  /// The same with the sets that it is of, where another row has later ones.
  std::string row() const {
    const bool ends = before != INT64_MAX;
    return name() + (ends ? fmt::format(" ({} to {})", since, before - 1) : "");
  }
};

}  // namespace tenon::fuzz
