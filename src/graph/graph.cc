// Types and values of graphs, and the bytes of small constants.
//
// Nothing here looks at what operators mean: a node is added with the types that somebody inferred
// (builder.h) or read (text.h), and its results are named after it:
//
//   AddNode({topk, "best"}, two types)      makes   %1 "best", %2 "best:1" = topk(%0)
//
// A type is a tensor's, or a tower of sequences and optionals above one, which is walked in a loop.
// Constants made here are encoded as a model file holds them, little-endian and packed:
//
//   1.5 of f16      00 3e         1.5 of bf16      c0 3f
//   2^-24 of f16    01 00         the least of all: below 2^-14 the bits count multiples of it
//
// Reading has a limit of elements, since a constant may be a table of gigabytes in a mapped file.
#include "graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "graph/dims.h"
#include "ir/visit.h"
#include "support/check.h"
#include "support/half.h"

namespace tenon::graph {

std::optional<std::vector<int64_t>> TensorType::StaticDims() const {
  std::vector<int64_t> out;
  for (const Expr& d : dims) {
    std::optional<int64_t> n = AsInt(d);
    if (!n) return std::nullopt;
    out.push_back(*n);
  }
  return out;
}

std::string TensorType::ToString() const {
  std::string out = dtype.ToString() + DimsText(dims);
  if (!place.IsHost()) out += " @" + place.ToString();
  return out;
}

bool operator==(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || a.place != b.place || a.dims.size() != b.dims.size()) return false;
  for (size_t i = 0; i < a.dims.size(); ++i) {
    if (!ProveEqual(a.dims[i], b.dims[i])) return false;
  }
  return a.layout == b.layout ||
         (a.layout && b.layout && tenon::StructuralEqual(a.layout, b.layout));
}

const TensorType& Type::tensor() const {
  TN_CHECK(IsTensor(), "{} is no tensor", ToString());
  return tensor_;
}

TensorType& Type::tensor() {
  TN_CHECK(IsTensor(), "{} is no tensor", ToString());
  return tensor_;
}

const TensorType& Type::leaf() const {
  const Type* t = this;
  while (!t->IsTensor()) t = t->element_.get();
  return t->tensor_;
}

Type Type::WithLeaf(TensorType leaf) const {
  if (IsTensor()) return leaf;
  return {kind_, element_->WithLeaf(std::move(leaf))};  // no deeper than Limits::kTypeDepth
}

std::string Type::ToString() const {
  std::string out, end;
  const Type* t = this;
  for (; !t->IsTensor(); t = t->element_.get()) {
    out += t->kind_ == TypeKind::kSequence ? "sequence(" : "optional(";
    end += ")";
  }
  return out + t->tensor_.ToString() + end;
}

bool operator==(const Type& a, const Type& b) {
  const Type *x = &a, *y = &b;
  for (; !x->IsTensor() && x->kind() == y->kind(); x = &x->element(), y = &y->element()) {
  }
  return x->IsTensor() && y->IsTensor() && x->tensor() == y->tensor();
}

int64_t Dim::Typical() const {
  constexpr int64_t kMost = 128;
  return min >= kMost ? min : min + (std::min(max, kMost) - min) / step * step;
}

// At the sizes that are asked for, a formula may come to less than nothing: frames of more samples
// than there are. No call has such sizes, and 1 is as few as say something.
static int64_t SizeAt(const Graph& g, const Expr& size, int64_t (*of_dim)(const Dim&)) {
  std::optional<int64_t> n = AsInt(size);
  if (!n) {
    VarMap values;
    for (const Dim& d : g.dims) values[d.var.get()] = IndexConst(of_dim(d));
    n = AsInt(SimplifyDim(Substitute(size, values)));
  }
  return n && *n >= 0 ? *n : 1;
}

int64_t TypicalSize(const Graph& g, const Expr& size) {
  return SizeAt(g, size, [](const Dim& d) { return d.Typical(); });
}

int64_t LeastSize(const Graph& g, const Expr& size) {
  return SizeAt(g, size, [](const Dim& d) { return d.LeastSome(); });
}

bool MayBeEmpty(const Graph& g, const Expr& size) {
  return SizeAt(g, size, [](const Dim& d) { return d.min; }) == 0;
}

Payload Payload::InFile(std::shared_ptr<const WeightFile> file, uint64_t offset, uint64_t size) {
  TN_CHECK(file && offset <= file->map.size() && size <= file->map.size() - offset);
  Payload p;
  p.file_ = std::move(file);
  p.offset_ = offset;
  p.size_ = size;
  return p;
}

Payload Payload::Owned(std::vector<std::byte> bytes) {
  Payload p;
  p.size_ = bytes.size();
  p.owned_ = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return p;
}

std::span<const std::byte> Payload::bytes() const {
  if (owned_) return *owned_;
  if (!file_) return {};
  return file_->map.bytes().subspan(offset_, size_);
}

ValueId Graph::AddInput(std::string value_name, Type type) {
  values.push_back({.name = std::move(value_name), .type = std::move(type)});
  inputs.push_back(static_cast<ValueId>(values.size() - 1));
  return inputs.back();
}

void Graph::AddOutput(std::string output_name, ValueId v) {
  outputs.push_back(v);
  output_names.push_back(std::move(output_name));
}

ValueId Graph::AddConstant(std::string value_name, TensorType type, Payload payload) {
  values.push_back(
      {.name = std::move(value_name), .type = std::move(type), .payload = std::move(payload)});
  return static_cast<ValueId>(values.size() - 1);
}

NodeId Graph::AddNode(Node node, Types types) {
  const NodeId id = static_cast<NodeId>(nodes.size());
  node.outputs.clear();
  for (size_t i = 0; i < types.size(); ++i) {
    node.outputs.push_back(static_cast<ValueId>(values.size()));
    values.push_back(
        {.name = i == 0 || node.name.empty() ? node.name : fmt::format("{}:{}", node.name, i),
         .type = std::move(types[i]),
         .producer = id,
         .output = static_cast<int32_t>(i)});
  }
  nodes.push_back(std::move(node));
  return id;
}

std::vector<Expr> Conditions(const Graph& g) {
  std::vector<Expr> out;
  for (const Constraint& c : g.constraints) out.push_back(c.holds);
  return out;
}

int RankOfFirst(const Graph& g, const Node& n) {
  const bool tensor = !n.inputs.empty() && n.inputs[0] != kNoValue && g.IsTensor(n.inputs[0]);
  return tensor ? g.type(n.inputs[0]).rank() : 0;
}

std::string Describe(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  if (n.name.empty()) return fmt::format("node {} ({})", id, Name(n.op));
  return fmt::format("node {} ({})", Quoted(n.name), Name(n.op));
}

std::string Quoted(std::string_view text) {
  constexpr size_t kMost = 120;
  std::string out = "'";
  for (char c : text.substr(0, kMost)) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || c == '\\') {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  // A cut in the middle of a UTF-8 sequence drops the sequence.
  if (text.size() > kMost) {
    while (out.size() > 1 && (static_cast<unsigned char>(out.back()) & 0xC0) == 0x80)
      out.pop_back();
    if (static_cast<unsigned char>(out.back()) >= 0xC0) out.pop_back();
    out += "…";
  }
  return out + "'";
}

namespace {

template <class T, class From>
void Put(std::vector<std::byte>* out, From value) {
  T typed = static_cast<T>(value);
  const std::byte* p = reinterpret_cast<const std::byte*>(&typed);
  out->insert(out->end(), p, p + sizeof(T));
}

// bf16 is the upper half of an IEEE single after rounding.
uint16_t BitsOf16(DType type, double value) {
  const double rounded = RoundToType(type, value);
  if (type.code == TypeCode::kBFloat)
    return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(rounded)) >> 16);
  return HalfBits(rounded);
}

uint8_t BitsOf8(DType type, double value) {
  return static_cast<uint8_t>(FormatOf(type.float8).CodeOf(RoundToType(type, value)));
}

double ValueOf16(DType type, uint16_t bits) {
  if (type.code == TypeCode::kBFloat)
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  return HalfValue(bits);
}

template <class From>
std::vector<std::byte> Encode(DType dtype, std::span<const From> values) {
  std::vector<std::byte> out;
  for (From v : values) {
    if (dtype.IsBool()) {
      Put<uint8_t>(&out, v != 0);
    } else if (dtype.IsFloat() && dtype.bits == 64) {
      Put<double>(&out, v);
    } else if (dtype.IsFloat() && dtype.bits == 32) {
      Put<float>(&out, v);
    } else if (dtype.IsFloat8()) {
      Put<uint8_t>(&out, BitsOf8(dtype, static_cast<double>(v)));
    } else if (dtype.IsFloat()) {
      Put<uint16_t>(&out, BitsOf16(dtype, static_cast<double>(v)));
    } else {
      const int64_t whole = static_cast<int64_t>(v);
      const std::byte* p = reinterpret_cast<const std::byte*>(&whole);
      out.insert(out.end(), p, p + dtype.Bytes());
    }
  }
  return out;
}

// Calls f(i, pointer to element i) for each element; false where the value is no constant of at
// most `limit` elements.
template <class F>
bool ForEachElement(const Value& v, int64_t limit, F f) {
  if (!v.IsConstant() || v.type.tensor().dtype.StorageBits() % 8 != 0) return false;
  std::span<const std::byte> bytes = v.payload.bytes();
  const size_t width = static_cast<size_t>(v.type.tensor().dtype.Bytes());
  if (bytes.size() / width > static_cast<size_t>(limit)) return false;
  for (size_t i = 0; i + width <= bytes.size(); i += width) f(bytes.data() + i);
  return true;
}

}  // namespace

Payload MakePayload(DType dtype, std::span<const double> values) {
  return Payload::Owned(Encode(dtype, values));
}
Payload MakePayload(DType dtype, std::span<const int64_t> values) {
  return Payload::Owned(Encode(dtype, values));
}

std::optional<std::vector<int64_t>> ReadInts(const Value& v, int64_t limit) {
  const DType dtype = v.type.tensor().dtype;
  if (!dtype.IsInt() && !dtype.IsBool()) return std::nullopt;
  std::vector<int64_t> out;
  const size_t width = static_cast<size_t>(dtype.Bytes());
  const bool whole = ForEachElement(v, limit, [&](const std::byte* p) {
    uint64_t raw = 0;
    memcpy(&raw, p, width);
    const int shift = 64 - 8 * static_cast<int>(width);
    const int64_t high = static_cast<int64_t>(raw << shift);
    out.push_back(dtype.IsSigned() ? high >> shift : static_cast<int64_t>(raw));
  });
  if (!whole) return std::nullopt;
  return out;
}

std::optional<std::vector<double>> ReadFloats(const Value& v, int64_t limit) {
  const DType dtype = v.type.tensor().dtype;
  if (!dtype.IsFloat()) return std::nullopt;
  std::vector<double> out;
  const bool whole = ForEachElement(v, limit, [&](const std::byte* p) {
    if (dtype.bits == 64) {
      double d;
      memcpy(&d, p, 8);
      out.push_back(d);
    } else if (dtype.bits == 32) {
      float f;
      memcpy(&f, p, 4);
      out.push_back(f);
    } else if (dtype.IsFloat8()) {
      out.push_back(FormatOf(dtype.float8).NumberOf(std::to_integer<int64_t>(*p)));
    } else {
      uint16_t h;
      memcpy(&h, p, 2);
      out.push_back(ValueOf16(dtype, h));
    }
  });
  if (!whole) return std::nullopt;
  return out;
}

}  // namespace tenon::graph
