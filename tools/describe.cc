#include "describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "artifact/checksum.h"
#include "artifact/symbols.h"
#include "driver/dims_json.h"
#include "driver/source.h"
#include "frontend/onnx/proto.h"
#include "graph/graph.h"
#include "ir/print.h"
#include "support/file.h"
#include "support/json.h"
#include "support/strings.h"
#include "target/target.h"

namespace tenon::tools {

namespace {

std::string ElementName(int32_t type) {
  static const std::map<int32_t, const char*> kNames = {
      {1, "float32"},  {2, "uint8"},   {3, "int8"},    {4, "uint16"},   {5, "int16"},
      {6, "int32"},    {7, "int64"},   {8, "string"},  {9, "bool"},     {10, "float16"},
      {11, "float64"}, {12, "uint32"}, {13, "uint64"}, {16, "bfloat16"}};
  auto found = kNames.find(type);
  return found == kNames.end() ? fmt::format("type {}", type) : found->second;
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
  Json json{{"name", std::string(value.name)}, {"dtype", ElementName(value.elem_type)}};
  if (value.has_shape) json["shape"] = std::move(shape);
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
void DescribeDeclared(const onnx::GraphProto& g, Json* json) {
  std::map<std::string_view, bool> held;
  for (const onnx::TensorProto& t : g.initializers) held[t.name] = true;
  (*json)["inputs"] = Json::array();
  (*json)["outputs"] = Json::array();
  for (const onnx::ValueInfoProto& v : g.inputs) {
    if (!held.count(v.name)) (*json)["inputs"].push_back(Describe(v));
  }
  for (const onnx::ValueInfoProto& v : g.outputs) (*json)["outputs"].push_back(Describe(v));
}

// The same from the imported graph, whose shapes are inferred.
void DescribeInferred(const graph::Graph& g, Json* json) {
  Json inputs = Json::array(), outputs = Json::array();
  for (graph::ValueId v : g.inputs) inputs.push_back(Describe(g.value(v).name, g.type(v)));
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    outputs.push_back(Describe(g.output_names[i], g.type(g.outputs[i])));
  }
  (*json)["inputs"] = std::move(inputs);
  (*json)["outputs"] = std::move(outputs);
  if (!g.dims.empty()) (*json)["dims"] = driver::DimsJson(g);
}

Json CountOperators(const onnx::GraphProto& g) {
  std::map<std::string, int64_t> counts;
  for (const onnx::NodeProto& node : g.nodes) {
    std::string domain(node.domain == "ai.onnx" ? "" : node.domain);
    ++counts[(domain.empty() ? "" : domain + "::") + std::string(node.op_type)];
  }
  return counts;
}

}  // namespace

Expected<Json> DescribeModel(const driver::CompileOptions& options, Diagnostics* problems) {
  TN_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(options.model));
  TN_ASSIGN_OR_RETURN(onnx::ModelProto model, onnx::ReadModel(file.text(), options.model));
  Json json{{"kind", "model"}, {"ir_version", model.ir_version}};
  for (const onnx::OpsetId& id : model.opset_imports) {
    json["opset"][id.domain.empty() ? "ai.onnx" : std::string(id.domain)] = id.version;
  }
  json["producer"] = fmt::format("{} {}", model.producer_name, model.producer_version);
  DescribeDeclared(model.graph, &json);
  json["operators"] = CountOperators(model.graph);
  json["weights"] = model.graph.initializers.size();
  Expected<graph::Program> imported = driver::ImportModel(options);
  if (imported) {
    if (imported->IsPlain()) DescribeInferred(imported->parts[0], &json);
    uint64_t bytes = 0;
    for (const graph::Graph& g : imported->parts) {
      for (const graph::Value& v : g.values) bytes += v.IsConstant() ? v.payload.bytes().size() : 0;
    }
    json["weights_bytes"] = bytes;
  } else {
    *problems = std::move(imported.errors());
  }
  if (!model.metadata.empty()) json["metadata"] = Json::object();
  for (const auto& [key, value] : model.metadata)
    json["metadata"][std::string(key)] = std::string(value);
  return json;
}

// The same reasons as those of the loader, which is not asked.
static void CheckRunsHere(const Json& library, const std::string& path, Diagnostics* problems) {
  const Target host = Target::Host();
  auto arch = [](const std::string& triple) { return triple.substr(0, triple.find('-')); };
  const std::string triple = library["triple"].get<std::string>();
  if (arch(triple) != arch(host.triple())) {
    problems->push_back(
        MakeError(fmt::format("it is for {}, which this machine is not", arch(triple)), {path}));
    return;
  }
  const auto needed = library["features"].get<std::vector<std::string>>();
  const std::vector<std::string> present = host.FeatureList();
  std::vector<std::string> lacking;
  for (const std::string& feature : needed) {
    if (std::find(present.begin(), present.end(), feature) == present.end())
      lacking.push_back(feature);
  }
  if (lacking.empty()) return;
  problems->push_back(MakeError(
      fmt::format("this library was compiled for another CPU: it lacks {}\n  the code needs: {}\n  "
                  "this CPU has: {}",
                  Join(lacking, " "), Join(needed, " "), Join(present, " ")),
      {path}));
}

Expected<Json> DescribeArtifact(const std::string& path, Diagnostics* problems) {
  TN_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (const std::string fault = artifact::LibraryFault(file.text()); !fault.empty())
    return MakeError("cannot load it: " + fault, {path});
  const std::string text(artifact::SectionContents(file.text(), artifact::kInfoSection));
  if (text.empty()) return MakeError("it is not a library that Tenon compiled", {path});
  TN_RETURN_IF_ERROR(artifact::CheckFile(path, artifact::Checked::kCode));
  TN_RETURN_IF_ERROR(ParseJson(text, path));  // well-formed, and not too deep
  Json json{{"kind", "artifact"}, {"file_bytes", file.size()}};
  json.update(Json::parse(text));
  CheckRunsHere(json, path, problems);
  return json;
}

Status VerifyArtifact(const std::string& path, const Json& description) {
  TN_RETURN_IF_ERROR(artifact::CheckFile(path, artifact::Checked::kAll));
  const std::string params = description.value("params", "");
  if (params.empty()) return Ok();
  // The name comes from the library: a part of a path, and no way out of its folder.
  const std::filesystem::path beside = std::filesystem::path(path).parent_path();
  return artifact::CheckFile(beside / std::filesystem::path(params).filename(),
                             artifact::Checked::kAll);
}

}  // namespace tenon::tools
