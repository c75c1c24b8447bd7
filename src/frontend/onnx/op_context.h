// What the importer of one node works with, and the table of importers.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/onnx/proto.h"
#include "frontend/onnx/tensor.h"
#include "graph/builder.h"
#include "graph/dims.h"

namespace tenon::onnx {

using graph::Builder;
using graph::Elements;
using graph::ExprAttrs;
using graph::kNoValue;
using graph::OpKind;
using graph::TensorType;
using graph::ValueId;

class OpContext;
class NarrowValues;
struct NarrowType;

/// A value outside of a region and what stands for it inside.
struct Capture {
  ValueId outer, inner;
};

struct ImportedRegion;

/// An input of a graph in an attribute: its type; or what it is, where its node knows that: a
/// constant, or made inside of the region, by what is no input of the graph. `narrow`: what its
/// bytes are, if not numbers.
struct Formal {
  graph::Type type;
  std::optional<bool> constant;
  std::function<Expected<ValueId>(ImportedRegion&)> make;
  const NarrowType* narrow = nullptr;
};

/// A graph of an attribute, imported but not yet a region: its node may add to it.
struct ImportedRegion {
  std::unique_ptr<Builder> builder;
  std::vector<ValueId> formals;  // one per input
  std::vector<ValueId> outputs;
  std::vector<Capture> captures;
  std::unordered_map<ValueId, ValueId> inner_of;  // captured, by the value outside
  std::vector<const NarrowType*> narrow = {};     // what the bytes of outputs are, if not numbers

  const graph::Type& TypeOf(size_t output) const {
    return builder->graph().value(outputs[output]).type;
  }
  /// What stands for a value of the graph outside; a constant becomes one of the region.
  ValueId CaptureValue(const Builder& outside, ValueId outer);
  /// The region with these inputs: `inputs`, then one for each captured value of the graph outside.
  graph::Graph Finish(const Builder& outside, std::span<const ValueId> inputs,
                      std::span<const ValueId> captured) &&;
};

/// Imports graphs of attributes, in the scope of the node that is being imported. Errors inside are
/// reported at their nodes; what is answered then is an empty list.
class RegionImporter {
 public:
  virtual ~RegionImporter() = default;
  virtual Expected<ImportedRegion> Import(const GraphProto& graph,
                                          std::span<const Formal> formals) = 0;
  /// The nodes of a graph as part of the graph around it, its inputs being these values; answers
  /// its outputs.
  virtual Expected<std::vector<ValueId>> Inline(const GraphProto& graph,
                                                std::span<const ValueId> inputs) = 0;
  /// The rank that the model declares for a value of its graph.
  virtual std::optional<int64_t> DeclaredRank(std::string_view name) const = 0;
  /// Notes that a result has one of several ranks, by sizes that are open, and that the graph is
  /// for one of them.
  virtual void AssumeRank() = 0;
};

/// One row: how nodes of operator `name` are imported from opset `since` on, until a row of a later
/// version. `op` is for importers that serve several operators.
struct OpRow {
  const char* name;
  int64_t since;
  Status (*import)(OpContext&);
  OpKind op = OpKind::kFused;
  const char* domain = "";  // of the default one
};

/// All rows, and the row for an operator in an opset, or null. Of domains other than the default
/// one there is one version.
std::span<const std::span<const OpRow>> AllRows();
const OpRow* FindRow(std::string_view domain, std::string_view op_type, int64_t opset);

/// One node being imported. Importers read all attributes of the operator's version (what is left
/// unread is reported as an attribute the operator does not have), emit graph nodes, and set
/// outputs.
class OpContext {
 public:
  OpContext(Builder& builder, const NodeProto& node, const OpRow& row, int64_t opset_version,
            std::string node_name, std::vector<ValueId> inputs,
            const std::shared_ptr<const graph::WeightFile>& file, ExternalData* external,
            RegionImporter* regions, NarrowValues* narrow);

  Builder& b;
  const NodeProto& node;
  const OpRow& row;
  const int64_t opset;

  /// Whether the node is in a graph that becomes a region, where no sizes are found before a call.
  bool in_region = false;

  /// What the nodes made are called.
  const std::string& name() const { return name_; }

  // ---- Inputs. Index out of range and "" both mean left out. ----
  size_t num_inputs() const { return inputs_.size(); }
  size_t num_outputs() const { return node.outputs.size(); }
  bool Has(size_t i) const { return i < inputs_.size() && inputs_[i] != kNoValue; }
  bool Wants(size_t output) const {
    return output < node.outputs.size() && !node.outputs[output].empty();
  }
  /// Present inputs only; checked by Arity.
  ValueId In(size_t i) const { return inputs_[i]; }
  ValueId InOr(size_t i) const { return Has(i) ? inputs_[i] : kNoValue; }
  const TensorType& Type(size_t i) const { return b.type(In(i)); }
  int Rank(size_t i) const { return Type(i).rank(); }
  const std::vector<Expr>& Dims(size_t i) const { return Type(i).dims; }
  /// The narrow type whose bytes an input is (narrow.h), or null. Who asks answers for it: sets the
  /// types of outputs, and computes with no bytes as if they were numbers.
  const NarrowType* Narrow(size_t i);
  void SetNarrow(size_t output, const NarrowType* type);
  bool asked_for_narrow() const { return asked_for_narrow_; }
  /// Takes it as a fact, checked at the call, that an open axis of an input that is there has this
  /// size; from here on In(i) has it. An axis of a known size stays what it is.
  Status Fix(size_t i, int64_t axis, int64_t size);
  /// The same of all axes of an input that is one element.
  Status FixOne(size_t i);
  /// The value with these dims: taken as facts where its own are open, kNoValue where they differ.
  Expected<ValueId> Conform(ValueId v, std::vector<Expr> dims);
  /// The rank that the model declares for an output; for where nothing else tells it.
  std::optional<int64_t> DeclaredRank(size_t output) const;
  /// Requires `least` leading inputs, of which those at `optional` may be left out, and allows up
  /// to `most` (-1: any number).
  Status Arity(size_t least, int most, std::initializer_list<size_t> optional = {}) const;
  /// Elements that must be known at compile time. `what` names the input, as in the specification.
  Expected<Elements> Known(size_t i, const char* what) const;
  Expected<std::vector<int64_t>> KnownInts(size_t i, const char* what) const;
  Expected<std::vector<double>> KnownFloats(size_t i, const char* what) const;
  Expected<int64_t> KnownInt(size_t i, const char* what) const;

  // ---- Attributes. A present attribute of another type is an error. ----
  Expected<int64_t> Int(const char* name, std::optional<int64_t> fallback);
  Expected<bool> Bool(const char* name, bool fallback);
  Expected<double> Float(const char* name, double fallback);
  Expected<std::string> String(const char* name, const char* fallback);
  Expected<std::optional<std::vector<int64_t>>> Ints(const char* name);
  Expected<std::optional<std::vector<double>>> Floats(const char* name);
  /// Empty where it is left out.
  Expected<std::vector<std::string>> Strings(const char* name);
  Expected<std::optional<Tensor>> TensorAttr(const char* name,
                                             AttrProtoType type = AttrProtoType::kTensor);
  /// Required.
  Expected<const GraphProto*> GraphAttr(const char* name);
  bool HasAttr(const char* name) const;
  /// The attribute is one that the operator has.
  void NoteRead(const AttributeProto& attribute) { read_.emplace(attribute.name); }
  /// The attribute as an axis of a tensor of `rank`, in 0..rank-1 (or to rank, `one_past`).
  Expected<int64_t> AxisAttr(const char* name, std::optional<int64_t> fallback, int64_t rank,
                             bool one_past = false);
  Expected<int64_t> NormalizeAxis(int64_t axis, int64_t rank, const char* what) const;
  /// Sorted and distinct.
  Expected<std::vector<int64_t>> NormalizeAxes(const std::vector<int64_t>& axes, int64_t rank,
                                               const char* what) const;

  // ---- Results. ----
  Expected<ValueId> Emit(OpKind op, std::vector<ValueId> inputs, Attrs attrs = {},
                         ExprAttrs exprs = {});
  Expected<std::vector<ValueId>> EmitAll(OpKind op, size_t results, std::vector<ValueId> inputs,
                                         Attrs attrs = {}, ExprAttrs exprs = {});
  Expected<std::vector<ValueId>> EmitRegions(OpKind op, std::vector<ValueId> inputs,
                                             std::vector<graph::Graph> regions, Attrs attrs = {},
                                             ExprAttrs exprs = {});
  RegionImporter& regions() { return *regions_; }
  /// Emits and sets output 0.
  Status Result(OpKind op, std::vector<ValueId> inputs, Attrs attrs = {}, ExprAttrs exprs = {});
  Status SetOutput(size_t i, ValueId v);
  ValueId Scalar(DType dtype, double value) { return b.Scalar(dtype, value); }
  Expected<ValueId> Reshape(ValueId v, std::vector<Expr> shape) {
    return Emit(OpKind::kReshape, {v}, {}, {{"shape", std::move(shape)}});
  }

  template <class... Args>
  Diagnostic Error(fmt::format_string<Args...> format, Args&&... args) const {
    return MakeError(fmt::format(format, std::forward<Args>(args)...));
  }

  const std::vector<ValueId>& outputs() const { return outputs_; }
  /// Attributes that no importer asked for, and outputs that were wanted but not set.
  Status CheckDone() const;

 private:
  const AttributeProto* Find(const char* name);
  template <class T>
  Expected<std::optional<T>> Get(const char* name, AttrProtoType type,
                                 T (*get)(const AttributeProto&));

  const std::string name_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::set<std::string, std::less<>> read_;
  const std::shared_ptr<const graph::WeightFile>& file_;
  ExternalData* external_;
  RegionImporter* regions_;
  NarrowValues* narrow_;
  bool asked_for_narrow_ = false;
};

}  // namespace tenon::onnx
