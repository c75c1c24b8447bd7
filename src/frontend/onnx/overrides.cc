#include "frontend/onnx/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "graph/graph.h"
#include "support/strings.h"

namespace tenon::onnx {

using graph::Quoted;

namespace {

Status PlaceGiven(const std::string& name, const GivenInitializer& given, GraphProto* graph) {
  const auto has_name = [&](const auto& tensor) { return tensor.name == name; };
  std::vector<TensorProto>& all = graph->initializers;
  const auto found = std::find_if(all.begin(), all.end(), has_name);
  if (found == all.end()) {
    if (std::none_of(graph->inputs.begin(), graph->inputs.end(), has_name)) {
      if (given.is_spare) return Ok();
      return MakeError(fmt::format(
          "a value is given for {}, but the model has no such initializer or input", Quoted(name)));
    }
    all.push_back({.name = name, .dims = given.dims, .data_type = given.elem_type});
    return Ok();
  }
  if (found->data_type == given.elem_type && found->dims == given.dims) return Ok();
  return MakeError(
      fmt::format("expected a value of data type {} and shape [{}] for the initializer {}, but got "
                  "data type {} and shape [{}]",
                  found->data_type, fmt::join(found->dims, ", "), Quoted(name), given.elem_type,
                  fmt::join(given.dims, ", ")));
}

Status MakeInput(GraphProto* graph, const std::string& name) {
  const auto has_name = [&](const auto& tensor) { return tensor.name == name; };
  const bool listed = std::any_of(graph->inputs.begin(), graph->inputs.end(), has_name);
  if (listed && std::erase_if(graph->initializers, has_name) != 0) return Ok();
  return MakeError(fmt::format("expected {} to be an initializer that is listed as an input, too",
                               Quoted(name)));
}

void SettleDim(const Overrides& overrides, DimProto* dim) {
  if (dim->kind == DimProto::Kind::kValue && dim->value >= 0) return;
  std::string denotation(dim->denotation);
  for (char& ch : denotation) ch = static_cast<char>(std::tolower(static_cast<unsigned char>(ch)));
  if (const auto size = overrides.denoted_dims.find(denotation);
      size != overrides.denoted_dims.end()) {
    *dim = {.kind = DimProto::Kind::kValue, .value = size->second};
  }
  if (dim->kind != DimProto::Kind::kParam) return;
  if (const auto size = overrides.dims.find(std::string(dim->param));
      size != overrides.dims.end()) {
    *dim = {.kind = DimProto::Kind::kValue, .value = size->second};
  } else if (overrides.independent_dims) {
    *dim = {};
  }
}

}  // namespace

void Overrides::AddTo(Hasher* hasher) const {
  for (const auto* sizes : {&dims, &denoted_dims}) {
    hasher->Int(sizes->size());
    for (const auto& [name, size] : *sizes) hasher->Text(name).Int(static_cast<uint64_t>(size));
  }
  hasher->Int(independent_dims).Int(inputs.size());
  for (const std::string& name : inputs) hasher->Text(name);
  hasher->Int(initializers.size());
  for (const auto& [name, given] : initializers) {
    hasher->Text(name).Int(static_cast<uint64_t>(given.elem_type)).Int(given.dims.size());
    for (int64_t d : given.dims) hasher->Int(static_cast<uint64_t>(d));
    hasher->Int(given.bytes.size()).Add(given.bytes).Int(given.is_spare);
  }
}

Status Apply(const Overrides& overrides, GraphProto* graph) {
  for (const auto& [name, given] : overrides.initializers)
    TN_RETURN_IF_ERROR(PlaceGiven(name, given, graph));
  for (const std::string& name : overrides.inputs) TN_RETURN_IF_ERROR(MakeInput(graph, name));
  for (ValueInfoProto& input : graph->inputs) {
    for (DimProto& dim : input.shape) SettleDim(overrides, &dim);
  }
  return Ok();
}

}  // namespace tenon::onnx
