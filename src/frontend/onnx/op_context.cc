// What the importer of one node asks of it, with the errors that it would have to write itself.
//
// Everything that a node says is asked for through its context: inputs by number, attributes by
// name and type. So the context knows in the end what nobody asked for, and an attribute that the
// operator's version does not have is an error without a list of those that it has. The node
//
//   node "sq" Squeeze(x, axes)      with x f32[1, 3, 1] and axes the constant [-1]
//
// is asked for KnownInts(1, "axes"), which are numbers from [-1] or from what the graph knows of a
// computed value, and NormalizeAxes makes [2] of them; what is emitted takes the name of the node,
// and the last value that of the tensor:
//
//   %1 "y": f32[1, 3] = reshape(%0) {shape: [1, 3]} "sq"
//
// Errors say what was expected and what came; the importer's main line adds the node and its
// inputs.
#include "frontend/onnx/op_context.h"

#include <algorithm>

#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/narrow.h"

namespace tenon::onnx {

using graph::Quoted;

ValueId ImportedRegion::CaptureValue(const Builder& outside, ValueId outer) {
  if (auto it = inner_of.find(outer); it != inner_of.end()) return it->second;
  const graph::Value& value = outside.graph().value(outer);
  if (value.IsConstant()) return builder->Constant(value.name, value.type.tensor(), value.payload);
  const ValueId inner = builder->Input(value.name, value.type);
  if (const Elements* known = outside.Known(outer)) builder->Assume(inner, *known);
  captures.push_back({outer, inner});
  inner_of.emplace(outer, inner);
  return inner;
}

graph::Graph ImportedRegion::Finish(const Builder& outside, std::span<const ValueId> inputs,
                                    std::span<const ValueId> captured) && {
  std::vector<ValueId> all(inputs.begin(), inputs.end());
  for (ValueId v : captured) all.push_back(CaptureValue(outside, v));
  graph::Graph& g = builder->graph();
  g.inputs = std::move(all);
  for (ValueId v : outputs) g.AddOutput(g.value(v).name, v);
  return std::move(*builder).Finish();
}

OpContext::OpContext(Builder& builder, const NodeProto& node_proto, const OpRow& op_row,
                     int64_t opset_version, std::string node_name, std::vector<ValueId> inputs,
                     const std::shared_ptr<const graph::WeightFile>& file, ExternalData* external,
                     RegionImporter* regions, NarrowValues* narrow)
    : b(builder),
      node(node_proto),
      row(op_row),
      opset(opset_version),
      name_(std::move(node_name)),
      inputs_(std::move(inputs)),
      outputs_(node_proto.outputs.size(), kNoValue),
      file_(file),
      external_(external),
      regions_(regions),
      narrow_(narrow) {}

const NarrowType* OpContext::Narrow(size_t i) {
  asked_for_narrow_ = true;
  return Has(i) ? narrow_->Of(In(i)) : nullptr;
}

Status OpContext::Fix(size_t i, int64_t axis, int64_t size) {
  if (!Has(i)) return Ok();
  std::vector<Expr> dims = Dims(i);
  if (axis < 0) axis += Rank(i);
  if (axis < 0 || axis >= Rank(i) || AsInt(dims[static_cast<size_t>(axis)])) return Ok();
  Expr& dim = dims[static_cast<size_t>(axis)];
  b.Require(Eq(dim, IndexConst(size)));
  dim = IndexConst(size);
  TN_ASSIGN_OR_RETURN(const ValueId fixed, Reshape(In(i), std::move(dims)));
  narrow_->Set(fixed, narrow_->Of(In(i)));
  inputs_[i] = fixed;
  return Ok();
}

Status OpContext::FixOne(size_t i) {
  for (int64_t axis = 0; Has(i) && axis < Rank(i); ++axis) TN_RETURN_IF_ERROR(Fix(i, axis, 1));
  return Ok();
}

Expected<ValueId> OpContext::Conform(ValueId v, std::vector<Expr> dims) {
  return onnx::Conform(b, v, std::move(dims), name_);
}

std::optional<int64_t> OpContext::DeclaredRank(size_t output) const {
  if (!Wants(output)) return std::nullopt;
  return regions_->DeclaredRank(node.outputs[output]);
}

void OpContext::SetNarrow(size_t output, const NarrowType* type) {
  if (output < outputs_.size()) narrow_->Set(outputs_[output], type);
}

Status OpContext::Arity(size_t least, int most, std::initializer_list<size_t> optional) const {
  size_t present = inputs_.size();
  while (present > 0 && inputs_[present - 1] == kNoValue) --present;
  if (present < least || (most >= 0 && present > static_cast<size_t>(most))) {
    return Error("expected {} inputs, but got {}",
                 most < 0                             ? fmt::format("{} or more", least)
                 : static_cast<size_t>(most) == least ? fmt::format("{}", least)
                                                      : fmt::format("{} to {}", least, most),
                 present);
  }
  for (size_t i = 0; i < (most < 0 ? present : least); ++i) {
    const bool may_lack = std::find(optional.begin(), optional.end(), i) != optional.end();
    if (!Has(i) && !may_lack) return Error("expected input {}, but it is left out", i);
  }
  return Ok();
}

Expected<Elements> OpContext::Known(size_t i, const char* what) const {
  if (const Elements* e = b.Known(In(i))) return *e;
  return Error(
      "expected {} that is known when the model is compiled, but input {} ({}) depends on run-time "
      "data",
      what, Quoted(node.inputs[i]), Type(i).ToString());
}

Expected<std::vector<int64_t>> OpContext::KnownInts(size_t i, const char* what) const {
  if (std::optional<std::vector<int64_t>> ints = b.KnownInts(In(i))) return *ints;
  TN_ASSIGN_OR_RETURN(Elements elements, Known(i, what));
  return Error("expected {} that is a number, but input {} depends on symbolic dims", what,
               Quoted(node.inputs[i]));
}

Expected<int64_t> OpContext::KnownInt(size_t i, const char* what) const {
  TN_ASSIGN_OR_RETURN(std::vector<int64_t> ints, KnownInts(i, what));
  if (ints.size() != 1) return Error("expected one element in {}, but got {}", what, ints.size());
  return ints[0];
}

Expected<std::vector<double>> OpContext::KnownFloats(size_t i, const char* what) const {
  if (std::optional<std::vector<double>> floats = graph::ReadFloats(b.graph().value(In(i))))
    return *floats;
  return Error("expected {} that is a float constant, but input {} is {}", what,
               Quoted(node.inputs[i]),
               b.graph().value(In(i)).IsConstant() ? Type(i).ToString() : "not constant");
}

bool OpContext::HasAttr(const char* name) const {
  return std::any_of(node.attributes.begin(), node.attributes.end(),
                     [&](const AttributeProto& a) { return a.name == name; });
}

const AttributeProto* OpContext::Find(const char* name) {
  read_.insert(name);
  for (const AttributeProto& a : node.attributes) {
    if (a.name == name) return &a;
  }
  return nullptr;
}

namespace {

const char* Name(AttrProtoType type) {
  switch (type) {
    case AttrProtoType::kUndefined: return "undefined";
    case AttrProtoType::kFloat: return "a float";
    case AttrProtoType::kInt: return "an int";
    case AttrProtoType::kString: return "a string";
    case AttrProtoType::kTensor: return "a tensor";
    case AttrProtoType::kGraph: return "a graph";
    case AttrProtoType::kFloats: return "floats";
    case AttrProtoType::kInts: return "ints";
    case AttrProtoType::kStrings: return "strings";
    case AttrProtoType::kTensors: return "tensors";
    case AttrProtoType::kGraphs: return "graphs";
    case AttrProtoType::kSparseTensor: return "a sparse tensor";
    case AttrProtoType::kSparseTensors: return "sparse tensors";
    case AttrProtoType::kTypeProto: return "a type";
    case AttrProtoType::kTypeProtos: return "types";
  }
  return "something unknown";
}

}  // namespace

template <class T>
Expected<std::optional<T>> OpContext::Get(const char* name, AttrProtoType type,
                                          T (*get)(const AttributeProto&)) {
  const AttributeProto* a = Find(name);
  if (!a) return std::optional<T>();
  if (!a->ref_attr_name.empty())
    return Error("attribute {} refers to a function's attribute outside a function", name);
  // An empty list may have been written with no type at all.
  if (a->type != type && a->type != AttrProtoType::kUndefined) {
    return Error("expected attribute {} to be {}, but got {}", name, Name(type), Name(a->type));
  }
  return std::optional<T>(get(*a));
}

Expected<int64_t> OpContext::Int(const char* name, std::optional<int64_t> fallback) {
  TN_ASSIGN_OR_RETURN(
      std::optional<int64_t> v,
      Get<int64_t>(name, AttrProtoType::kInt, [](const AttributeProto& a) { return a.i; }));
  if (v) return *v;
  if (fallback) return *fallback;
  return Error("expected the attribute {}, but it is missing", name);
}

Expected<bool> OpContext::Bool(const char* name, bool fallback) {
  TN_ASSIGN_OR_RETURN(int64_t v, Int(name, fallback ? 1 : 0));
  if (v != 0 && v != 1) return Error("expected attribute {} to be 0 or 1, but got {}", name, v);
  return v == 1;
}

Expected<double> OpContext::Float(const char* name, double fallback) {
  TN_ASSIGN_OR_RETURN(
      std::optional<float> v,
      Get<float>(name, AttrProtoType::kFloat, [](const AttributeProto& a) { return a.f; }));
  return v ? static_cast<double>(*v) : static_cast<double>(static_cast<float>(fallback));
}

Expected<std::string> OpContext::String(const char* name, const char* fallback) {
  TN_ASSIGN_OR_RETURN(std::optional<std::string> v,
                      Get<std::string>(name, AttrProtoType::kString,
                                       [](const AttributeProto& a) { return std::string(a.s); }));
  return v ? *v : std::string(fallback);
}

Expected<std::optional<std::vector<int64_t>>> OpContext::Ints(const char* name) {
  return Get<std::vector<int64_t>>(name, AttrProtoType::kInts,
                                   [](const AttributeProto& a) { return a.ints; });
}

Expected<std::optional<std::vector<double>>> OpContext::Floats(const char* name) {
  return Get<std::vector<double>>(name, AttrProtoType::kFloats, [](const AttributeProto& a) {
    return std::vector<double>(a.floats.begin(), a.floats.end());
  });
}

Expected<std::vector<std::string>> OpContext::Strings(const char* name) {
  using List = std::vector<std::string>;
  TN_ASSIGN_OR_RETURN(std::optional<List> v,
                      Get<List>(name, AttrProtoType::kStrings, [](const AttributeProto& a) {
                        return List(a.strings.begin(), a.strings.end());
                      }));
  return v.value_or(List());
}

Expected<std::optional<Tensor>> OpContext::TensorAttr(const char* name, AttrProtoType type) {
  TN_ASSIGN_OR_RETURN(std::optional<const TensorProto*> t,
                      Get<const TensorProto*>(name, type, [](const AttributeProto& a) {
                        return a.tensor.empty() ? nullptr : &a.tensor[0];
                      }));
  if (!t) return std::optional<Tensor>();
  if (!*t) return Error("expected a tensor in attribute {}, but it is empty", name);
  TN_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(**t, file_, external_));
  return std::optional<Tensor>(std::move(tensor));
}

Expected<int64_t> OpContext::NormalizeAxis(int64_t axis, int64_t rank, const char* what) const {
  if (axis < -rank || axis >= rank)
    return Error("expected {} in {}..{}, but got {}", what, -rank, rank - 1, axis);
  return axis < 0 ? axis + rank : axis;
}

Expected<int64_t> OpContext::AxisAttr(const char* name, std::optional<int64_t> fallback,
                                      int64_t rank, bool one_past) {
  TN_ASSIGN_OR_RETURN(int64_t axis, Int(name, fallback));
  if (one_past && axis == rank) return rank;
  return NormalizeAxis(axis, rank, name);
}

Expected<std::vector<int64_t>> OpContext::NormalizeAxes(const std::vector<int64_t>& axes,
                                                        int64_t rank, const char* what) const {
  std::vector<int64_t> out;
  for (int64_t axis : axes) {
    TN_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, rank, what));
    out.push_back(axis);
  }
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end())
    return Error("expected distinct {}, but one is repeated", what);
  return out;
}

Expected<const GraphProto*> OpContext::GraphAttr(const char* name) {
  TN_ASSIGN_OR_RETURN(
      std::optional<const GraphProto*> g,
      Get<const GraphProto*>(name, AttrProtoType::kGraph, [](const AttributeProto& a) {
        return a.graph.empty() ? nullptr : &a.graph[0];
      }));
  if (!g || !*g) return Error("expected a graph in attribute {}, but there is none", name);
  return *g;
}

Expected<ValueId> OpContext::Emit(OpKind op, std::vector<ValueId> inputs, Attrs attrs,
                                  ExprAttrs exprs) {
  return b.Add(op, std::move(inputs), name_, std::move(attrs), std::move(exprs));
}

Expected<std::vector<ValueId>> OpContext::EmitAll(OpKind op, size_t results,
                                                  std::vector<ValueId> inputs, Attrs attrs,
                                                  ExprAttrs exprs) {
  return b.AddAll(op, results, std::move(inputs), name_, std::move(attrs), std::move(exprs));
}

Expected<std::vector<ValueId>> OpContext::EmitRegions(OpKind op, std::vector<ValueId> inputs,
                                                      std::vector<graph::Graph> regions,
                                                      Attrs attrs, ExprAttrs exprs) {
  return b.AddRegions(op, std::move(inputs), std::move(regions), name_, std::move(attrs),
                      std::move(exprs));
}

Status OpContext::Result(OpKind op, std::vector<ValueId> inputs, Attrs attrs, ExprAttrs exprs) {
  TN_ASSIGN_OR_RETURN(ValueId v, Emit(op, std::move(inputs), std::move(attrs), std::move(exprs)));
  return SetOutput(0, v);
}

Status OpContext::SetOutput(size_t i, ValueId v) {
  if (i >= outputs_.size()) return Ok();
  outputs_[i] = v;
  // The value of the last node takes the tensor's name; inputs and constants keep theirs.
  graph::Value& value = b.graph().value(v);
  if (value.producer != graph::kNoNode || value.name.empty())
    value.name = std::string(node.outputs[i]);
  return Ok();
}

Status OpContext::CheckDone() const {
  for (const AttributeProto& a : node.attributes) {
    // Which inputs an operator may write into; nothing that it computes.
    if (opset < 6 && a.name == "consumed_inputs") continue;
    if (!read_.contains(a.name))
      return Error("unknown attribute {} for {} in opset {}", Quoted(a.name), row.name, opset);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (Wants(i) && outputs_[i] == kNoValue)
      return Error("output {} ({}) of {} is not supported", i, Quoted(node.outputs[i]), row.name);
  }
  return Ok();
}

}  // namespace tenon::onnx
