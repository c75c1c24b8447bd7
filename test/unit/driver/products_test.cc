// Products of bytes and of halves, from the model's file to the instruction that is made for them.
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "support/atomic_file.h"
#include "support/file.h"
#include "unit/driver/folder.h"
#include "unit/onnx/model_builder.h"

namespace tenon::driver::test {
namespace {

constexpr int kInt8 = 3, kBFloat16 = 16;

// What `emit` says of a model for a CPU.
std::string EmittedOf(const onnx::test::Model& model, const std::string& cpu,
                      const std::string& emit, const std::string& precision = "fp32") {
  const Folder folder;
  CompileOptions options;
  options.model = folder / "m.onnx";
  options.output = folder / "m.so";
  options.jobs = 1;
  options.emit = {emit};
  options.precision = precision;
  options.target = "llvm -mtriple=x86_64-linux-gnu -mcpu=" + cpu;
  EXPECT_TRUE(WriteFile(options.model, model.Bytes()));
  const Expected<CompileReport> report = Compile(options);
  EXPECT_TRUE(report) << ToString(report.errors());
  const Expected<std::string> text =
      ReadFile(options.output + (emit == "asm" ? ".s" : "." + emit + ".txt"));
  EXPECT_TRUE(text) << ToString(text.errors());
  return text ? *text : "";
}

// The same of y = x · w, x of 64 x 128 elements, w of 128 x 48.
std::string Emitted(const char* op, int x, int w, const std::string& cpu, const std::string& emit) {
  const size_t bytes = w == kBFloat16 ? 2 : 1;
  onnx::test::Model model;
  model.Input("x", {64, 128}, x);
  model.Init("w", w, {128, 48}, std::string(128 * 48 * bytes, '\1'));
  model.Node(op, {"x", "w"}, {"y"}).Output("y", w == kBFloat16 ? kBFloat16 : onnx::test::kInt32);
  return EmittedOf(model, cpu, emit);
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Whether a kernel with this instruction keeps vectors on the stack.
bool Spills(const std::string& code, const std::string& instruction) {
  for (size_t begin = 0; begin != std::string::npos;) {
    const size_t end = code.find("\t.file\t", begin + 1);
    const std::string kernel = code.substr(begin, end - begin);
    if (Has(kernel, instruction) && Has(kernel, "(%rsp), %zmm")) return true;
    begin = end;
  }
  return false;
}

TEST(Products, OfBytesByVnni) {
  const std::string code =
      Emitted("MatMulInteger", onnx::test::kUint8, kInt8, "cascadelake", "asm");
  EXPECT_TRUE(Has(code, "\tvpdpbusd\t")) << code;
  // The sums stay in registers: nothing is spilled, one panel of weights is read as it lies.
  EXPECT_FALSE(Spills(code, "\tvpdpbusd\t")) << code;
  const std::string loops =
      Emitted("MatMulInteger", onnx::test::kUint8, kInt8, "cascadelake", "loop");
  EXPECT_TRUE(Has(loops, "{intrinsic: \"x86.vpdpbusd.512.row\"}")) << loops;
}

// No unit of a CPU rounds factors to tf32: what is asked for may not be slower than the default.
TEST(Products, OfRoundedFactorsWhereNothingRounds) {
  onnx::test::Model model;
  model.Input("x", {64, 128}).Init("w", 1, {128, 48}, std::string(128 * 48 * 4, '\1'));
  model.Node("MatMul", {"x", "w"}, {"y"}).Output("y");
  const auto planned = [&](const char* precision) {
    return EmittedOf(model, "sapphirerapids", "loop", precision);
  };
  EXPECT_EQ(planned("tf32"), planned("fp32"));
  EXPECT_NE(planned("exact"), planned("fp32"));
}

TEST(Products, OfWindowsOfBytes) {
  onnx::test::Model model;
  model.Input("x", {1, 32, 8, 8}, onnx::test::kUint8).Input("zero", {}, onnx::test::kUint8);
  model.Init("w", kInt8, {48, 32, 3, 3}, std::string(48 * 32 * 9, '\1'));
  model.Node("ConvInteger", {"x", "w", "zero"}, {"y"}).Output("y", onnx::test::kInt32);
  const std::string code = EmittedOf(model, "cascadelake", "asm");
  EXPECT_TRUE(Has(code, "\tvpdpbusd\t")) << code;
  EXPECT_FALSE(Spills(code, "\tvpdpbusd\t")) << code;
}

TEST(Products, OfBytesInTiles) {
  const std::string code =
      Emitted("MatMulInteger", onnx::test::kUint8, kInt8, "sapphirerapids", "asm");
  for (const char* part : {"\tldtilecfg\t", "\ttilezero\t", "\ttileloadd\t", "\ttdpbusd\t",
                           "\ttilestored\t", "\ttilerelease"}) {
    EXPECT_TRUE(Has(code, part)) << part << code;
  }
  EXPECT_TRUE(Has(Emitted("MatMulInteger", kInt8, kInt8, "sapphirerapids", "asm"), "\ttdpbssd\t"));
}

TEST(Products, OfHalves) {
  EXPECT_TRUE(Has(Emitted("MatMul", kBFloat16, kBFloat16, "cooperlake", "asm"), "\tvdpbf16ps\t"));
  EXPECT_TRUE(
      Has(Emitted("MatMul", kBFloat16, kBFloat16, "sapphirerapids", "asm"), "\ttdpbf16ps\t"));
}

// Numbers of f32 as two of bf16 each, where tiles multiply these; `exact` takes multiply-adds.
TEST(Products, OfFloatsInParts) {
  onnx::test::Model model;
  model.Input("x", {128, 256}, onnx::test::kFloat);
  model.Init("w", onnx::test::kFloat, {256, 96}, std::string(256 * 96 * 4, '\x3f'));
  model.Node("MatMul", {"x", "w"}, {"y"}).Output("y", onnx::test::kFloat);
  const std::string code = EmittedOf(model, "sapphirerapids", "asm");
  EXPECT_TRUE(Has(code, "\ttdpbf16ps\t")) << code;
  EXPECT_FALSE(Spills(code, "\ttdpbf16ps\t")) << code;
  EXPECT_FALSE(Has(EmittedOf(model, "sapphirerapids", "asm", "exact"), "\ttdpbf16ps\t"));
  EXPECT_FALSE(Has(EmittedOf(model, "cooperlake", "asm"), "\tvdpbf16ps\t"));
}

// Without the unit: vectors of the sums' type, and no call of the operation's meaning.
TEST(Products, OfBytesOnPlainVectors) {
  for (const char* cpu : {"x86-64-v3", "x86-64"}) {
    const std::string code = Emitted("MatMulInteger", onnx::test::kUint8, kInt8, cpu, "loop");
    EXPECT_FALSE(Has(code, "intrinsic")) << code;
    EXPECT_TRUE(Has(code, "in1[ramp(")) << code;
  }
}

}  // namespace
}  // namespace tenon::driver::test
