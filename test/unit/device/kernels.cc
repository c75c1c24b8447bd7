#include "kernels.h"

#include <dlfcn.h>

#include <cstring>
#include <map>
#include <mutex>
#include <random>

#include "codegen/cuda/nvrtc.h"
#include "codegen/gpu/aligned.h"
#include "driver/compile.h"
#include "interp/arguments.h"
#include "loop/parse.h"
#include "support/atomic_file.h"
#include "support/file.h"
#include "unit/onnx/model_builder.h"

namespace tenon::device::test {
namespace {

// Before anything asks for a device or for NVRTC.
const int fake_driver = setenv("TENON_CUDA_DRIVER", FAKE_CUDA, 1);
const int fake_nvrtc = setenv("TENON_NVRTC", FAKE_NVRTC, 1);

/// The lowered kernels of all networks, by name. Read under the driver's lock alone.
std::map<std::string, Module> kernels;
std::string breaking;
int breaking_code = 0;

int SizesOf(const char* kernel, unsigned* sizes, unsigned most) {
  const auto it = kernels.find(kernel);
  if (it == kernels.end()) return 0;
  const Func func = it->second.Find(kernel);
  unsigned count = 0;
  auto add = [&](int64_t bytes) {
    if (count < most) sizes[count++] = static_cast<unsigned>(bytes);
  };
  for (size_t i = 0; i < func->buffers.size() + func->dims.size(); ++i) add(8);
  for (const Var& v : func->scalars) add(v->dtype.IsHandle() ? 8 : v->dtype.Bytes());
  return static_cast<int>(count);
}

// Errors of the interpreter are those of a device that reads where nothing is.
int Run(const char* kernel, const unsigned*, const unsigned*, void* const* args) {
  constexpr int kIllegalAddress = 700;
  if (!breaking.empty() && strncmp(kernel, breaking.c_str(), breaking.size()) == 0)
    return breaking_code;
  const auto it = kernels.find(kernel);
  if (it == kernels.end()) return kIllegalAddress;
  const Func func = it->second.Find(kernel);
  const size_t buffers = func->buffers.size();
  InterpOptions options;
  for (size_t i = 0; i < func->dims.size(); ++i)
    options.dims[func->dims[i]->name] = *static_cast<int64_t*>(args[buffers + i]);
  std::vector<InterpArg> values;
  for (size_t i = 0; i < buffers; ++i) {
    const Buffer& b = func->buffers[i];
    const auto extents = ExtentsOf(*func, b, options.dims);
    if (!extents) return kIllegalAddress;
    int64_t bytes = b->dtype.Bytes();
    for (int64_t extent : *extents) bytes *= extent;
    const auto* memory = *static_cast<uint8_t**>(args[i]);
    values.push_back(
        InterpArg::Tensor(b->dtype, *extents, std::vector<uint8_t>(memory, memory + bytes)));
  }
  const Status status = Interpret(it->second, kernel, values, options);
  if (!status) fprintf(stderr, "%s\n", ToString(status.errors()).c_str());
  for (size_t i = 0; i < buffers; ++i) {
    memcpy(*static_cast<void**>(args[i]), values[i].bytes.data(), values[i].bytes.size());
  }
  return status ? 0 : kIllegalAddress;
}

void SetRunner() {
  void* library = dlopen(FAKE_CUDA, RTLD_NOW);
  auto set = reinterpret_cast<void (*)(decltype(&SizesOf), decltype(&Run))>(
      dlsym(library, "FakeSetRunner"));
  set(SizesOf, Run);
}

// y from what the layers give: two products in one order or the other.
void AddBranches(const std::string& from, onnx::test::Model* m) {
  onnx::test::Model above, below;
  above.Node("MatMul", {from, "w0"}, {"a0"}).Node("Relu", {"a0"}, {"a1"});
  above.Node("MatMul", {"a1", "w1"}, {"a2"}).Output("a2");
  below.Node("MatMul", {from, "w1"}, {"b0"}).Node("Tanh", {"b0"}, {"b1"});
  below.Node("MatMul", {"b1", "w0"}, {"b2"}).Output("b2");
  m->Init("one", onnx::test::kFloat, {}, onnx::test::Raw(std::vector<float>{1}));
  m->Node("ReduceMax", {"x"}, {"most"}, {onnx::test::Int("keepdims", 0)});
  m->Node("Greater", {"most", "one"}, {"is_above"});
  m->Node(
      "If", {"is_above"}, {"chosen"},
      {onnx::test::GraphAttr("then_branch", above), onnx::test::GraphAttr("else_branch", below)});
  m->Node("Add", {"chosen", from}, {"y"});
}

onnx::test::Model LayersOf(const std::string& batch, int layers, Kind kind) {
  onnx::test::Model m;
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  auto weight = [&](const std::string& name, std::vector<int64_t> dims) {
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    std::vector<float> values(static_cast<size_t>(count));
    for (float& v : values) v = normal(random) / 3;
    m.Init(name, onnx::test::kFloat, dims, onnx::test::Raw(values));
  };
  if (isdigit(batch[0]) != 0) {
    m.Input("x", {std::stoi(batch), 8});
  } else {
    m.Input("x", {batch.c_str(), 8});
  }
  std::string from = "x";
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    const auto width = [&](int layer) {
      return kind == Kind::kWide && layer % layers != 0 ? int64_t{8} + layer : 8;
    };
    weight("w" + n, {width(i), width(i + 1)});
    weight("b" + n, {width(i + 1)});
    m.Node("MatMul", {from, "w" + n}, {"p" + n});
    m.Node("Add", {"p" + n, kind == Kind::kResidual ? "x" : "b" + n}, {"s" + n});
    const bool last = i == layers - 1;
    m.Node(last ? "Softmax" : "Relu", {"s" + n}, {last && kind != Kind::kWaits ? "y" : "r" + n});
    from = "r" + n;
  }
  if (kind == Kind::kWaits) AddBranches(from, &m);
  m.Output("y");
  return m;
}

}  // namespace

std::string CompileLayers(const std::string& name, const std::string& batch,
                          const std::string& target, const std::string& path, int layers, Kind kind,
                          const std::string& cache) {
  driver::CompileOptions options;
  options.cache = cache;
  options.model = path + ".onnx";
  options.output = path;
  options.name = name;
  options.target = target;
  options.emit = {"loop"};
  options.jobs = 1;
  if (!WriteFile(options.model, LayersOf(batch, layers, kind).Bytes()))
    return "cannot write " + options.model;
  const auto report = driver::Compile(options);
  if (!report) return ToString(report.errors());
  if (!target.starts_with("cuda")) return "";
  const auto text = ReadFile(path + ".loop.txt");
  if (!text) return ToString(text.errors());
  const auto module = ParseModule(*text);
  if (!module) return ToString(module.errors());
  const Module forms = codegen::WithAlignedForms(*module);
  for (const auto& [function, f] : forms.funcs) {
    if (f->func_kind == FuncKind::kKernel) kernels[function] = forms;
  }
  SetRunner();
  return "";
}

void BreakKernels(const std::string& prefix, int code) {
  breaking = prefix;
  breaking_code = code;
}

std::string LogOfCompiling(const std::string& arch) {
  const auto code = codegen::CompileCudaBoth("__global__ void f() {}", "f.cu", arch, nullptr);
  return code ? code->log : ToString(code.errors());
}

}  // namespace tenon::device::test
