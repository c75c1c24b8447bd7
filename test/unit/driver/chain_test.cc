// Models as deep as files can make them: no stage recurses as deep, and none takes a square of
// time. TENON_CHAIN=n sets their length.
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "support/atomic_file.h"
#include "unit/driver/folder.h"
#include "unit/onnx/model_builder.h"

namespace tenon::driver::test {
namespace {

int Length() {
  const char* text = getenv("TENON_CHAIN");
  return text ? atoi(text) : kSanitized ? 200 : 5000;
}

void ExpectCompiles(const onnx::test::Model& model) {
  const Folder folder;
  CompileOptions options;
  options.model = folder / "m.onnx";
  options.output = folder / "m.so";
  options.jobs = 1;
  ASSERT_TRUE(WriteFile(options.model, model.Bytes()));
  const Expected<CompileReport> report = Compile(options);
  EXPECT_TRUE(report) << ToString(report.errors());
}

// Every `kind` reads the one before it; the last is y.
onnx::test::Model Chain(const char* first, const char* second, const std::string& operand) {
  onnx::test::Model m;
  m.Input("x", {4, 4}).Init("w", onnx::test::kFloat, {4}, std::string(16, '\0'));
  const int n = Length();
  for (int i = 0; i < n; ++i) {
    const std::string from = i == 0 ? "x" : "t" + std::to_string(i - 1);
    const std::string to = i == n - 1 ? "y" : "t" + std::to_string(i);
    std::vector<std::string> inputs = {from};
    if (!operand.empty()) inputs.push_back(operand);
    m.Node(i % 2 == 0 ? first : second, inputs, {to});
  }
  m.Output("y");
  return m;
}

TEST(Chains, OfElementwiseOperators) { ExpectCompiles(Chain("Relu", "Neg", "")); }

TEST(Chains, WithAWeight) { ExpectCompiles(Chain("Add", "Mul", "w")); }

TEST(Chains, WithAWeightEach) {
  onnx::test::Model m;
  m.Input("t0", {4});
  const int n = Length();
  for (int i = 1; i <= n; ++i) {
    const std::string to = i == n ? "y" : "t" + std::to_string(i), w = "w" + std::to_string(i);
    m.Init(w, onnx::test::kFloat, {4}, std::string(16, '\0'));
    m.Node(i % 2 == 0 ? "Add" : "Mul", {"t" + std::to_string(i - 1), w}, {to});
  }
  m.Output("y");
  ExpectCompiles(m);
}

TEST(Chains, ThatReadTheInputAgain) { ExpectCompiles(Chain("Max", "Sub", "x")); }

TEST(Chains, OfConstants) {
  onnx::test::Model m;
  m.Input("x", {4}).Init("t0", onnx::test::kFloat, {4}, std::string(16, '\0'));
  const int n = Length();
  for (int i = 1; i < n; ++i)
    m.Node(i % 2 == 0 ? "Sin" : "Neg", {"t" + std::to_string(i - 1)}, {"t" + std::to_string(i)});
  m.Node("Add", {"x", "t" + std::to_string(n - 1)}, {"y"}).Output("y");
  ExpectCompiles(m);
}

}  // namespace
}  // namespace tenon::driver::test
