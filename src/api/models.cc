// Models: from a file to a library, and what a file says of itself.
#include <nlohmann/json.hpp>

#include "api/bridge.h"
#include "api/operators.h"
#include "driver/cache.h"
#include "driver/describe_model.h"
#include "frontend/onnx/shape_text.h"
#include "support/stop.h"
#include "tenon/compiler.hpp"

namespace tenon::inline v0 {

namespace {

// The number that ONNX has for a type that DLPack has.
int32_t NumberOf(DataType t) {
  static constexpr std::pair<DataType, int32_t> kNumbers[] = {
      {{TN_DL_FLOAT, 32, 1}, 1},  {{TN_DL_UINT, 8, 1}, 2},   {{TN_DL_INT, 8, 1}, 3},
      {{TN_DL_UINT, 16, 1}, 4},   {{TN_DL_INT, 16, 1}, 5},   {{TN_DL_INT, 32, 1}, 6},
      {{TN_DL_INT, 64, 1}, 7},    {{TN_DL_BOOL, 8, 1}, 9},   {{TN_DL_FLOAT, 16, 1}, 10},
      {{TN_DL_FLOAT, 64, 1}, 11}, {{TN_DL_UINT, 32, 1}, 12}, {{TN_DL_UINT, 64, 1}, 13},
      {{TN_DL_BFLOAT, 16, 1}, 16}};
  for (const auto& [type, number] : kNumbers) {
    if (type.code == t.code && type.bits == t.bits && type.lanes == t.lanes) return number;
  }
  return 0;
}

onnx::GivenInitializer Given(const Tensor& value) {
  onnx::GivenInitializer given{NumberOf(value.dtype()), value.shape(), {}};
  given.bytes.resize(static_cast<size_t>(value.bytes()));
  value.CopyToBytes(given.bytes.data(), value.bytes());
  return given;
}

}  // namespace

driver::CompileOptions CompileOptionsOf(const std::string& model, const ModelOptions& options) {
  driver::CompileOptions compile;
  compile.model = model;
  compile.name = options.name;
  compile.target = options.target.str();
  compile.precision = options.precision;
  compile.opt_level = options.opt_level;
  compile.jobs = options.jobs;
  compile.time_kernels = options.time_kernels;
  compile.log = options.log;
  compile.external_data_dir = options.external_data_dir;
  compile.progress = options.progress;
  for (const auto& [input, dims] : options.shapes) {
    std::vector<onnx::DimSpec>& shape = compile.shapes[input];
    for (const Size& size : dims) shape.push_back(Take(onnx::ParseSize(size.text)));
  }
  compile.empty_sizes = options.empty_sizes;
  compile.operators = RegisteredOperators();
  compile.open = !compile.operators.empty();
  compile.overrides.dims = options.dims;
  compile.overrides.denoted_dims = options.denoted_dims;
  compile.overrides.independent_dims = options.independent_dims;
  compile.overrides.inputs = {options.inputs.begin(), options.inputs.end()};
  for (const auto& [name, value] : options.initializers)
    compile.overrides.initializers.emplace(name, Given(value));
  for (const std::string& name : options.spare_initializers) {
    const auto given = compile.overrides.initializers.find(name);
    if (given != compile.overrides.initializers.end()) given->second.is_spare = true;
  }
  return compile;
}

namespace {

std::string TextOfJson(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

// `work`, which options.stop may end.
template <class Work>
static auto Stoppable(const ModelOptions& options, const Work& work) {
  if (!options.stop) return work();
  StopRequest request(options.stop);
  const StopScope scope(&request);
  try {
    return work();
  } catch (const Stopped&) {
    throw Error("RuntimeError", "compiling was stopped");
  }
}

void CompileModel(const std::string& model, const std::string& output,
                  const ModelOptions& options) {
  driver::CompileOptions compile = CompileOptionsOf(model, options);
  compile.output = output;
  compile.cache = driver::CacheDirectoryIfAny(nullptr);
  Stoppable(options, [&] { return Take(driver::Compile(compile)); });
}

std::string CacheDirectory() { return Take(driver::CacheDirectory()); }

std::string CompileCached(const std::string& model, const std::string& directory,
                          const ModelOptions& options) {
  const driver::CompileOptions compile = CompileOptionsOf(model, options);
  auto made =
      Stoppable(options, [&] { return driver::CompileCached(compile, directory, [](auto) {}); });
  if (!made && driver::IsFull(made.errors(), directory))
    throw Error("OSError", inner::Text(made.errors()));
  return Take(std::move(made)).path;
}

std::string DescribeModel(const std::string& model) {
  return TextOfJson(Take(driver::DescribeDeclared({.model = model})));
}

std::string DescribeModel(const std::string& model, const ModelOptions& options) {
  Diagnostics problems;
  return TextOfJson(Take(driver::DescribeModel(CompileOptionsOf(model, options), &problems)));
}

}  // namespace tenon::inline v0
