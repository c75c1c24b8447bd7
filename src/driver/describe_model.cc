#include "driver/describe_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "driver/dims_json.h"
#include "driver/source.h"
#include "frontend/onnx/narrow.h"
#include "frontend/onnx/proto.h"
#include "graph/graph.h"
#include "ir/print.h"
#include "support/file.h"
#include "support/strings.h"

namespace tenon::driver {

namespace {

using Json = nlohmann::ordered_json;

std::string ElementName(int32_t type) {
  static const std::map<int32_t, const char*> kNames = {
      {1, "float32"},  {2, "uint8"},   {3, "int8"},    {4, "uint16"},   {5, "int16"},
      {6, "int32"},    {7, "int64"},   {8, "string"},  {9, "bool"},     {10, "float16"},
      {11, "float64"}, {12, "uint32"}, {13, "uint64"}, {16, "bfloat16"}};
  if (const onnx::NarrowType* narrow = onnx::NarrowTypeOf(type)) return narrow->name;
  auto found = kNames.find(type);
  return found == kNames.end() ? fmt::format("type {}", type) : found->second;
}

// "float32", "sequence(float32)", "map(int64, float32)"; nests as deep as the reader lets it.
std::string TypeName(const onnx::ValueInfoProto& value) {
  using Kind = onnx::ValueInfoProto::Kind;
  const std::string inner = value.inner.empty() ? "" : TypeName(value.inner[0]);
  switch (value.kind) {
    case Kind::kSequence: return fmt::format("sequence({})", inner);
    case Kind::kOptional: return fmt::format("optional({})", inner);
    case Kind::kMap: return fmt::format("map({}, {})", ElementName(value.key_type), inner);
    case Kind::kNone:
    case Kind::kTensor:
    case Kind::kOther: break;
  }
  return ElementName(value.elem_type);
}

Json Describe(const onnx::ValueInfoProto& value) {
  Json shape = Json::array();
  for (const onnx::DimProto& d : value.shape) {
    switch (d.kind) {
      case onnx::DimProto::Kind::kValue: shape.push_back(d.value); break;
      case onnx::DimProto::Kind::kParam: shape.push_back(std::string(d.param)); break;
      case onnx::DimProto::Kind::kUnknown: shape.push_back("?"); break;
    }
  }
  Json json{{"name", std::string(value.name)}, {"dtype", TypeName(value)}};
  if (value.has_shape) json["shape"] = std::move(shape);
  if (std::any_of(value.shape.begin(), value.shape.end(),
                  [](const onnx::DimProto& d) { return !d.denotation.empty(); })) {
    Json denotations = Json::array();
    for (const onnx::DimProto& d : value.shape) denotations.push_back(std::string(d.denotation));
    json["denotations"] = std::move(denotations);
  }
  return json;
}

Json Describe(const std::string& name, const graph::TensorType& type) {
  Json shape = Json::array();
  for (const Expr& d : type.dims) {
    if (auto n = AsInt(d)) {
      shape.push_back(*n);
    } else {
      shape.push_back(ToString(d));
    }
  }
  return {{"name", name}, {"dtype", LongName(type.dtype)}, {"shape", std::move(shape)}};
}

// Inputs and outputs as the file declares them; initializers that are listed as inputs too are
// none.
void AddSignature(const onnx::GraphProto& g, Json* json) {
  std::set<std::string_view> held;
  for (const onnx::TensorProto& t : g.initializers) held.insert(t.name);
  for (const char* key : {"inputs", "outputs", "overridable"}) (*json)[key] = Json::array();
  for (const onnx::ValueInfoProto& v : g.inputs)
    (*json)[held.count(v.name) ? "overridable" : "inputs"].push_back(Describe(v));
  for (const onnx::ValueInfoProto& v : g.outputs) (*json)["outputs"].push_back(Describe(v));
}

// The same from the imported graph, whose shapes are inferred.
void AddInferred(const graph::Graph& g, Json* json) {
  Json inputs = Json::array(), outputs = Json::array();
  for (graph::ValueId v : g.inputs) inputs.push_back(Describe(g.value(v).name, g.type(v)));
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    outputs.push_back(Describe(g.output_names[i], g.type(g.outputs[i])));
  }
  (*json)["inputs"] = std::move(inputs);
  (*json)["outputs"] = std::move(outputs);
  if (!g.dims.empty()) (*json)["dims"] = DimsJson(g);
}

Json CountOperators(const onnx::GraphProto& g) {
  std::map<std::string, int64_t> counts;
  for (const onnx::NodeProto& node : g.nodes) {
    std::string domain(node.domain == "ai.onnx" ? "" : node.domain);
    ++counts[(domain.empty() ? "" : domain + "::") + std::string(node.op_type)];
  }
  return counts;
}

Json UnsupportedJson(const std::vector<onnx::Obstacle>& obstacles) {
  Json all = Json::array();
  for (const onnx::Obstacle& o : obstacles) {
    all.push_back({{"operator", o.op_type},
                   {"domain", o.domain.empty() ? "ai.onnx" : o.domain},
                   {"version", o.version ? Json(o.version) : Json(nullptr)},
                   {"reason", o.reason},
                   {"nodes", o.nodes}});
  }
  return all;
}

}  // namespace

Expected<Json> DescribeDeclared(const CompileOptions& options) {
  TN_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(options.model));
  TN_ASSIGN_OR_RETURN(onnx::ModelProto model, onnx::ReadModel(file.text(), options.model));
  Json json{{"kind", "model"}, {"ir_version", model.ir_version}};
  for (const onnx::OpsetId& id : model.opset_imports) {
    json["opset"][id.domain.empty() ? "ai.onnx" : std::string(id.domain)] = id.version;
  }
  json["producer"] =
      std::string(Trim(fmt::format("{} {}", model.producer_name, model.producer_version)));
  json["producer_name"] = std::string(model.producer_name);
  json["domain"] = std::string(model.domain);
  json["model_version"] = model.model_version;
  json["doc"] = std::string(model.doc);
  json["graph"] = std::string(model.graph.name);
  json["graph_doc"] = std::string(model.graph.doc);
  AddSignature(model.graph, &json);
  json["operators"] = CountOperators(model.graph);
  json["weights"] = model.graph.initializers.size();
  if (!model.metadata.empty()) json["metadata"] = Json::object();
  for (const auto& [key, value] : model.metadata)
    json["metadata"][std::string(key)] = std::string(value);
  return json;
}

Expected<Json> DescribeModel(const CompileOptions& options, Diagnostics* problems) {
  TN_ASSIGN_OR_RETURN(Json json, DescribeDeclared(options));
  std::vector<onnx::Obstacle> obstacles;
  Expected<graph::Program> imported = ImportModel(options, &obstacles);
  if (imported) {
    if (imported->IsPlain()) AddInferred(imported->parts[0], &json);
    uint64_t bytes = 0;
    for (const graph::Graph& g : imported->parts) {
      for (const graph::Value& v : g.values) bytes += v.IsConstant() ? v.payload.bytes().size() : 0;
    }
    json["weights_bytes"] = bytes;
  } else {
    *problems = std::move(imported.errors());
  }
  json["unsupported"] = UnsupportedJson(obstacles);
  return json;
}

}  // namespace tenon::driver
