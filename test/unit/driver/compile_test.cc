// Whole compilations: the same bytes again, names, exported kernels, folders, verification.
#include "driver/compile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "driver/pipeline.h"
#include "graph/pass/pass.h"
#include "loop/parse.h"
#include "support/atomic_file.h"
#include "support/file.h"
#include "support/json.h"
#include "tenon/c_api.h"
#include "unit/driver/folder.h"
#include "unit/onnx/model_builder.h"

namespace tenon::driver::test {
namespace {

namespace fs = std::filesystem;
using onnx::test::kFloat;
using onnx::test::Raw;

// Two layers of 4 → 4, each weight k times the unit matrix: y = 2 relu(3 x).
std::string TwoLayers() {
  onnx::test::Model m;
  std::vector<float> w(16), v(16);
  for (size_t i = 0; i < 4; ++i) w[i * 5] = 3, v[i * 5] = 2;
  m.Input("x", {2, 4}).Init("w", kFloat, {4, 4}, Raw(w)).Init("v", kFloat, {4, 4}, Raw(v));
  m.Node("MatMul", {"x", "w"}, {"a"}).Node("Relu", {"a"}, {"b"});
  m.Node("MatMul", {"b", "v"}, {"y"}).Output("y");
  return m.Bytes();
}

// Convolutions with a bias, which share nothing: several kernels, several prepared weights.
std::string Convolutions() {
  onnx::test::Model m;
  m.Input("x", {1, 3, 6, 6});
  std::string from = "x";
  int64_t channels = 3;
  for (int i = 0; i < 5; ++i) {
    const std::string n = std::to_string(i);
    const int64_t to = 8 + 8 * (i % 2);
    std::vector<float> w(static_cast<size_t>(to * channels * 9), 0.01F * static_cast<float>(i + 1));
    m.Init("w" + n, kFloat, {to, channels, 3, 3}, Raw(w));
    m.Init("b" + n, kFloat, {to}, Raw(std::vector<float>(static_cast<size_t>(to), 1)));
    m.Node("Conv", {from, "w" + n, "b" + n}, {"c" + n}, {onnx::test::Ints("pads", {1, 1, 1, 1})});
    m.Node("Relu", {"c" + n}, {"r" + n});
    from = "r" + n;
    channels = to;
  }
  m.Node("GlobalAveragePool", {from}, {"y"}).Output("y");
  return m.Bytes();
}

class Compiling : public ::testing::Test {
 protected:
  CompileOptions Options(const std::string& model, const char* output = "m.so") {
    CompileOptions options;
    options.model = folder_ / "m.onnx";
    options.output = folder_ / output;
    options.verify_each = true;
    EXPECT_TRUE(WriteFile(options.model, model));
    return options;
  }
  static CompileReport MustCompile(const CompileOptions& options) {
    Expected<CompileReport> report = Compile(options);
    EXPECT_TRUE(report) << (report ? "" : ToString(report.errors()));
    return report ? std::move(*report) : CompileReport{};
  }
  static std::string Bytes(const std::string& path) { return ReadFile(path).value(); }

  Folder folder_;
};

// Calls an export on 2×4 tensors; "" or the thread's error.
struct Answer {
  std::string error;
  std::vector<float> y = std::vector<float>(8);
};
// Data lie at `offset` floats behind a boundary of 64 bytes, which is what kernels count on.
Answer CallExport(tn_module_t* module, const std::string& name,
                  std::vector<std::vector<float>> inputs, size_t offset = 0) {
  struct alignas(64) Line {
    float values[16];
  };
  Answer out;
  tn_packed_fn function = nullptr;
  if (tn_module_get_function(module, name.c_str(), &function) != 0) {
    out.error = tn_last_error(nullptr);
    return out;
  }
  std::vector<tn_ffi_any> args;
  std::vector<tn_tensor_t*> tensors;
  std::vector<std::vector<Line>> lines;
  inputs.push_back(out.y);
  for (const std::vector<float>& values : inputs) {
    lines.emplace_back((values.size() + offset) / 16 + 1);
    float* data = lines.back()[0].values + offset;
    std::copy(values.begin(), values.end(), data);
    const int64_t shape[] = {static_cast<int64_t>(values.size()) / 4, 4};
    tensors.push_back(nullptr);
    EXPECT_EQ(tn_tensor_wrap(data, {TN_DL_FLOAT, 32, 1}, 2, shape, {TN_DL_CPU, 0}, &tensors.back()),
              0);
    tn_ffi_any any{};
    any.type_index = TN_FFI_TENSOR;
    any.u.v_obj = reinterpret_cast<tn_ffi_object*>(tensors.back());
    args.push_back(any);
  }
  tn_ffi_any result{};
  if (tn_call(function, nullptr, args.data(), static_cast<int32_t>(args.size()), &result) != 0)
    out.error = tn_last_error(nullptr);
  const float* y = lines.back()[0].values + offset;
  out.y.assign(y, y + out.y.size());
  for (tn_tensor_t* t : tensors) tn_tensor_free(t);
  return out;
}

struct Loaded {
  explicit Loaded(const std::string& path) {
    EXPECT_EQ(tn_module_load(path.c_str(), &module), 0) << tn_last_error(nullptr);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() { tn_module_free(module); }
  tn_module_t* module = nullptr;
};

const std::vector<float> kX = {1, -1, 2, -2, 0.5, 3, -3, 4};
const std::vector<float> kY = {6, 0, 12, 0, 3, 18, 0, 24};

// Also for the first compilation of a process and those after it, which find LLVM as the linker
// left it.
TEST_F(Compiling, SameInputSameBytesForAnyNumberOfJobs) {
  for (int level : {0, 1, 2}) {
    std::set<std::string> libraries;
    for (int jobs : {1, 3, 8}) {
      CompileOptions options = Options(Convolutions());
      options.jobs = jobs;
      options.opt_level = level;
      MustCompile(options);
      libraries.insert(Bytes(options.output));
    }
    EXPECT_EQ(libraries.size(), 1u) << "level " << level;
  }
}

// Names of data that the code of exports has for itself.
TEST_F(Compiling, NamesAreTheUsers) {
  for (const char* name : {"parts", "text", "zero"}) {
    CompileOptions options = Options(Convolutions());
    options.name = name;
    MustCompile(options);
    Loaded loaded(options.output);
    tn_packed_fn function = nullptr;
    EXPECT_EQ(tn_module_get_function(loaded.module, name, &function), 0) << name;
  }
}

// The second time out of the cache, and equal; what is damaged in there is made again.
TEST_F(Compiling, CodeOfKernelsIsMadeOnce) {
  CompileOptions options = Options(Convolutions());
  MustCompile(options);
  const std::string anew = Bytes(options.output);
  options.cache = folder_ / "cache";
  const auto generated = [](const CompileReport& report) {
    int64_t runs = 0;
    for (const PassTime& pass : report.passes)
      runs += pass.name == "code generation (LLVM)" ? pass.runs : 0;
    return runs;
  };
  const auto compile = [&] {
    const CompileReport report = Compile(options).value();
    EXPECT_EQ(Bytes(options.output), anew);
    return generated(report);
  };
  EXPECT_GT(compile(), 0);
  EXPECT_EQ(compile(), 0);
  for (const auto& file : fs::recursive_directory_iterator(folder_ / "cache/kernels")) {
    if (file.is_regular_file()) ASSERT_TRUE(WriteFile(file.path(), "not what it was"));
  }
  EXPECT_GT(compile(), 0);
  EXPECT_EQ(compile(), 0);
  options.target = "llvm -mcpu=x86-64-v2";
  EXPECT_GT(generated(Compile(options).value()), 0);
}

TEST_F(Compiling, SeparateWeightsAreTheSameBytesToo) {
  std::set<std::string> files;
  for (int jobs : {1, 4}) {
    CompileOptions options = Options(Convolutions());
    options.jobs = jobs;
    options.params = ParamsMode::kSeparate;
    MustCompile(options);
    files.insert(Bytes(folder_ / "m.params"));
  }
  EXPECT_EQ(files.size(), 1u);
}

TEST_F(Compiling, AnotherNameIsTheOnlyExport) {
  CompileOptions options = Options(TwoLayers());
  options.name = "scores";
  MustCompile(options);
  const Loaded library(options.output);
  const char* name = nullptr;
  ASSERT_EQ(tn_module_get_name(library.module, &name), 0);
  EXPECT_STREQ(name, "scores");
  EXPECT_EQ(CallExport(library.module, "scores", {kX}).y, kY);
  EXPECT_EQ(CallExport(library.module, "main", {kX}).error,
            "the module has no function 'main'; it has scores");
  EXPECT_TRUE(fs::exists(folder_ / "scores.h"));
}

TEST_F(Compiling, ExportedKernelsCheckTheirArguments) {
  CompileOptions options = Options(TwoLayers());
  options.opt_level = 1;
  const CompileReport first = MustCompile(options);
  ASSERT_EQ(first.kernels.size(), 2u);
  for (const KernelReport& k : first.kernels) options.export_kernels.push_back(k.name);
  MustCompile(options);
  const Loaded library(options.output);
  EXPECT_EQ(CallExport(library.module, "main", {kX}).y, kY);
  const std::string relu = options.export_kernels[0];
  std::vector<float> w(16);
  for (size_t i = 0; i < 4; ++i) w[i * 5] = -1;
  EXPECT_EQ(CallExport(library.module, relu, {kX, w}).y,
            (std::vector<float>{0, 1, 0, 2, 0, 0, 3, 0}));
  EXPECT_NE(CallExport(library.module, relu, {kX, w}, 1)
                .error.find("expects data aligned to 64 bytes but its address modulo 64 is 4"),
            std::string::npos);
  const std::string error = CallExport(library.module, relu, {kX, kX}).error;
  EXPECT_NE(error.find("expects shape[0]=4 but got shape[0]=2"), std::string::npos) << error;
  EXPECT_NE(error.find("when calling: `" + relu + "("), std::string::npos) << error;
  EXPECT_NE(CallExport(library.module, relu, {}).error.find("Expected 2 arguments"),
            std::string::npos);
}

TEST_F(Compiling, KernelsThatAreNotThereAreListed) {
  CompileOptions options = Options(TwoLayers());
  options.export_kernels = {"nothing"};
  Expected<CompileReport> report = Compile(options);
  ASSERT_FALSE(report);
  EXPECT_NE(ToString(report.errors()).find("the kernels are main_k0"), std::string::npos)
      << ToString(report.errors());
  EXPECT_FALSE(fs::exists(options.output));
}

TEST_F(Compiling, AFolderHoldsTheLibraryAndWhatExplainsIt) {
  CompileOptions options = Options(TwoLayers(), "dir/");
  EXPECT_EQ(MustCompile(options).artifact, folder_ / "dir/model.so");
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_ / "dir"))
    names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"model.so", "metadata.json", "inference_example.cpp"}));
  const Loaded library(folder_ / "dir/model.so");
  EXPECT_EQ(CallExport(library.module, "main", {kX}).y, kY);
  const Expected<nlohmann::json> metadata = ParseJson(Bytes(folder_ / "dir/metadata.json"), "it");
  ASSERT_TRUE(metadata);
  EXPECT_EQ((*metadata)["functions"][0]["inputs"][0]["name"], "x");
}

TEST_F(Compiling, ASharedWeightIsStoredOnce) {
  onnx::test::Model m;
  std::vector<float> w(16 * 8 * 9, 0.25F);
  m.Input("x", {1, 8, 4, 4}).Input("z", {1, 8, 4, 4});
  m.Init("w", kFloat, {16, 8, 3, 3}, Raw(w));
  const std::string pads = onnx::test::Ints("pads", {1, 1, 1, 1});
  m.Node("Conv", {"x", "w"}, {"a"}, {pads}).Node("Conv", {"z", "w"}, {"b"}, {pads});
  m.Node("Add", {"a", "b"}, {"y"}).Output("y");
  EXPECT_EQ(MustCompile(Options(m.Bytes())).weights_bytes, static_cast<int64_t>(w.size() * 4));
}

// The hooks see every pass with what it made, and a pass that breaks the code is named as a bug.
TEST(Pipeline, AFaultyResultIsABugOfItsPass) {
  Expected<Module> module = ParseModule(
      "func @f(out A: f32[4]) { for i in 0..4 { A[i] = 0 }; for i in 0..4 { A[i] = 1 } }");
  ASSERT_TRUE(module);
  PassHooks hooks;
  hooks.verify = true;
  try {
    (void)RunPipeline({{"simplify", "a test"}}, *module, {}, hooks);
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("after simplify the code is faulty"),
              std::string::npos)
        << error.what();
  }
  hooks.verify = false;
  EXPECT_TRUE(RunPipeline({{"simplify", "a test"}}, *module, {}, hooks));
}

// Nothing runs behind a pass that reports.
TEST(Pipeline, EndsWithWhatAPassReports) {
  Expected<Module> module = ParseModule(R"(
func @f(D: i32[64], out G: i32[1]) target "cuda" {
  for t in 0..64 thread threadIdx.x { G[0] = G[0] + D[t] }
}
)");
  ASSERT_TRUE(module);
  std::vector<std::string> ran;
  PassHooks hooks;
  hooks.after_pass = [&](const char* pass, const Module&, const Module&, double) {
    ran.push_back(pass);
  };
  Expected<Module> lowered =
      RunPipeline({{"simplify", "a test"}, {"bind_threads", "a test"}, {"unroll", "a test"}},
                  *module, {}, hooks);
  ASSERT_FALSE(lowered);
  EXPECT_NE(ToString(lowered.errors()).find("@f: error: buffer G: one element is written by all"),
            std::string::npos);
  EXPECT_EQ(ran, std::vector<std::string>{"simplify"});
}

TEST(Pipeline, WhatNoPassLowersIsNamed) {
  Expected<Module> module =
      ParseModule("func @f(out A: f32[4]) { roles { role a size 1 { A[0] = 0 } } }");
  ASSERT_TRUE(module);
  PassHooks hooks;
  hooks.verify = true;
  Expected<Module> lowered = RunPipeline({{"simplify", "a test"}}, *module, {}, hooks);
  ASSERT_FALSE(lowered);
  EXPECT_NE(ToString(lowered.errors()).find("unsupported: roles"), std::string::npos);
}

}  // namespace
}  // namespace tenon::driver::test
