// The graph IR: a network as operators on values, which are tensors but for a few.
//
// Semantics. A Graph is a list of nodes in an order in which every value is produced before it is
// used (SSA). A value is a graph input, a constant, or a result of one node; a node may have
// several. Operators are pure; what they mean stands in ops.def. Types are stored on values and
// always equal what the operators' type rules infer (the verifier checks it). Dims are index
// expressions over the graph's `dims`; a dim that appears in no input's type and that no node
// defines is an error. Execution order is free but for data dependence.
//
// Regions. A node may hold graphs of its own: the body of a fused group, the branches of `if`, the
// body of `loop`. A region sees nothing of the graph around it but its inputs: what it captures are
// trailing inputs of the region and, in the same order, of the node, so whoever asks for a value's
// uses sees them. Constants are not captured: a region has its own, which share the bytes. Control
// flow (`if`, `loop`) is at its borders as plain as a graph: row-major, on the host.
//
// Graphs are plain values: flat vectors, integer ids, cheap to copy but for names (payloads are
// shared). A pass edits a copy with the helpers of edit.h or builds anew with builder.h. Ids are
// dense; erased nodes and values vanish in Compact (edit.h). Several threads may read one graph.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/op.h"
#include "graph/plan.h"
#include "ir/buffer.h"
#include "ir/dtype.h"
#include "ir/place.h"
#include "support/file.h"

namespace tenon::graph {

using ValueId = int32_t;
using NodeId = int32_t;
inline constexpr ValueId kNoValue = -1;
inline constexpr NodeId kNoNode = -1;

/// Bounds on what a graph may say, checked by makers, parsers and the verifier.
struct Limits {
  static constexpr size_t kNodes = size_t{1} << 20;
  static constexpr size_t kInputs = size_t{1} << 16;  // of one node
  static constexpr size_t kDims = 1024;               // symbolic
  static constexpr size_t kConstraints = 1024;
  static constexpr int kRank = 64;                        // of one tensor
  static constexpr int64_t kElements = int64_t{1} << 40;  // of one tensor, where known
  static constexpr int64_t kKnownElements = int64_t{1}
                                            << 12;  // of one tensor followed by value rules
  static constexpr int64_t kKnownTotal = int64_t{1}
                                         << 22;  // of all such tensors while a graph is built
  static constexpr int kExprSize = 256;          // operators in one dim
  static constexpr int kRegionDepth = 16;
  static constexpr int kTypeDepth = 8;  // of sequences and optionals in each other
};

struct TensorType {
  DType dtype;
  std::vector<Expr> dims;  // logical, index
  Layout layout;           // null: row-major
  Place place;

  int rank() const { return static_cast<int>(dims.size()); }
  /// The dims as numbers; empty optional where one is symbolic.
  std::optional<std::vector<int64_t>> StaticDims() const;
  /// "f32[1, n * 4]", with " @device 0" and the layout where they are not the default.
  std::string ToString() const;
};
/// Same dtype, place, layout and dims (structurally; dims are kept simplified).
bool operator==(const TensorType& a, const TensorType& b);

enum class TypeKind : uint8_t { kTensor, kSequence, kOptional };

/// What a value is: a tensor, a sequence of any number of values of one type, or an optional value
/// of a type. There are no other kinds. Tensors of strings have the dtype `string`.
class Type {
 public:
  Type() = default;
  Type(TensorType tensor) : tensor_(std::move(tensor)) {}  // NOLINT(google-explicit-constructor)
  static Type Sequence(Type element) { return {TypeKind::kSequence, std::move(element)}; }
  static Type Optional(Type element) { return {TypeKind::kOptional, std::move(element)}; }

  TypeKind kind() const { return kind_; }
  bool IsTensor() const { return kind_ == TypeKind::kTensor; }
  /// The type of a tensor; what is none is the caller's error.
  const TensorType& tensor() const;
  TensorType& tensor();
  /// Of a sequence or an optional; never null.
  const Type& element() const { return *element_; }
  /// The tensor's type; or that of the tensors which a sequence or an optional is made of.
  const TensorType& leaf() const;

  /// The type with its leaf changed.
  Type WithLeaf(TensorType leaf) const;
  /// The tensor's text, or "sequence(f32[3])", "optional(sequence(f32[3]))".
  std::string ToString() const;

 private:
  Type(TypeKind kind, Type element)
      : kind_(kind), element_(std::make_shared<const Type>(std::move(element))) {}

  TypeKind kind_ = TypeKind::kTensor;
  TensorType tensor_;
  std::shared_ptr<const Type> element_;
};
bool operator==(const Type& a, const Type& b);
/// The types of a node's results.
using Types = std::vector<Type>;

/// A file that constants lie in, mapped as long as one of them is alive. `path` is what the text
/// form prints.
struct WeightFile {
  std::string path;
  MappedFile map;
};

/// The bytes of a constant: a range of a mapped file, or a few bytes of its own. Copies share them.
/// Row-major, little-endian, packed, NOT aligned to the element. Bools are bytes 0 and 1.
class Payload {
 public:
  Payload() = default;
  static Payload InFile(std::shared_ptr<const WeightFile> file, uint64_t offset, uint64_t size);
  static Payload Owned(std::vector<std::byte> bytes);

  explicit operator bool() const { return file_ != nullptr || owned_ != nullptr; }
  std::span<const std::byte> bytes() const;
  /// Null for owned bytes.
  const std::shared_ptr<const WeightFile>& file() const { return file_; }
  uint64_t offset() const { return offset_; }

 private:
  std::shared_ptr<const WeightFile> file_;
  std::shared_ptr<const std::vector<std::byte>> owned_;
  uint64_t offset_ = 0;
  uint64_t size_ = 0;
};

struct Value {
  std::string
      name;  // for people and exports; any UTF-8; unique only among graph inputs and outputs
  Type type;
  NodeId producer = kNoNode;  // kNoNode: input or constant
  int32_t output = 0;         // which of the producer's outputs
  Payload payload;            // of a constant

  bool IsConstant() const { return static_cast<bool>(payload); }
};

struct Graph;

struct Node {
  OpKind op{};
  std::string name;             // from the model; for messages and kernel names
  std::vector<ValueId> inputs;  // kNoValue where an optional one is left out
  std::vector<ValueId> outputs;
  Attrs attrs;  // complete: every attribute of the row
  ExprAttrs exprs;
  std::vector<std::shared_ptr<const Graph>> regions;
  std::shared_ptr<const Plan> plan;  // null: not planned; its definition lowers it
};

/// A symbolic dimension and the sizes it may take, checked at entry: min ≤ n ≤ max, n ≡ min (mod
/// step).
struct Dim {
  Var var;
  int64_t min = 1;
  int64_t max = kNoMax;
  int64_t step = 1;
  std::string asker;  // who made the range narrower than the model's, as of a Constraint

  /// No end that anybody chose: a call may have sizes of up to kLargestSize (verify.h).
  static constexpr int64_t kNoMax = std::numeric_limits<int32_t>::max();
  /// The size that stands for all where one number is wanted, for prices and reports: the largest
  /// one up to 128, or else the smallest.
  int64_t Typical() const;
  /// The smallest size of which there is something to compute, for the same.
  int64_t LeastSome() const { return min > 0 ? min : std::min(step, max); }
};
// A dim is told by the shapes of inputs, or a node defines it (the operator `dim`); everything that
// mentions the latter comes after that node, and they may be 0 always. Those of inputs may where
// their range says so: what is known to be at least 1 makes simpler code.

/// What must hold of the sizes of every call, checked at entry.
struct Constraint {
  Expr holds;         // bool, over the dims
  std::string asker;  // for messages: "node 'add' (Add) needs of 'x' and 'y'"; or ""
};

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;           // may repeat, and may be inputs and constants
  std::vector<std::string> output_names;  // one per output, distinct
  std::vector<Dim> dims;
  std::vector<Constraint> constraints;
  std::map<std::string, std::string> metadata;

  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  Value& value(ValueId id) { return values[static_cast<size_t>(id)]; }
  const Node& node(NodeId id) const { return nodes[static_cast<size_t>(id)]; }
  Node& node(NodeId id) { return nodes[static_cast<size_t>(id)]; }
  /// Of a tensor; what may be something else has `value(id).type`.
  const TensorType& type(ValueId id) const { return value(id).type.tensor(); }
  bool IsTensor(ValueId id) const { return value(id).type.IsTensor(); }

  ValueId AddInput(std::string value_name, Type type);
  void AddOutput(std::string output_name, ValueId v);
  ValueId AddConstant(std::string value_name, TensorType type, Payload payload);
  /// Appends a node whose outputs have the given types; no checks, no inference (builder.h does
  /// both).
  NodeId AddNode(Node node, Types types);
};

/// What the graph's constraints say.
std::vector<Expr> Conditions(const Graph& g);

/// The rank of the node's first input, which defaults of attributes go by; 0 where it has none or
/// is no tensor.
int RankOfFirst(const Graph& g, const Node& n);

/// `size` at the typical sizes of the graph's dims, and at their smallest.
int64_t TypicalSize(const Graph& g, const Expr& size);
int64_t LeastSize(const Graph& g, const Expr& size);
/// Whether it is 0 where the graph's dims are smallest.
bool MayBeEmpty(const Graph& g, const Expr& size);

/// "%12 'conv1' (conv)", for messages.
std::string Describe(const Graph& g, NodeId id);

/// `text` in single quotes with control characters escaped, cut at 120 bytes: names come from
/// untrusted files.
std::string Quoted(std::string_view text);

/// A scalar or vector constant of the given elements (floats rounded, integers wrapped to `dtype`).
Payload MakePayload(DType dtype, std::span<const double> values);
Payload MakePayload(DType dtype, std::span<const int64_t> values);
/// The elements of a constant of an integer or bool type (of a float type for the second), or
/// nullopt where it is not one or has more than `limit` elements.
std::optional<std::vector<int64_t>> ReadInts(const Value& v,
                                             int64_t limit = Limits::kKnownElements);
std::optional<std::vector<double>> ReadFloats(const Value& v,
                                              int64_t limit = Limits::kKnownElements);

}  // namespace tenon::graph
