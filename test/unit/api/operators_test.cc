// Operators of one's own, through the public headers alone.
#include "tenon/operators.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tenon/compiler.hpp"

namespace {

using tenon::DataType;
using tenon::Error;
using tenon::OperatorNode;
namespace te = tenon::te;

constexpr const char* kModel = TENON_SOURCE_DIR "/test/models/mlp-4-2.onnx";

// The folder of the model's weights, which the test writes.
std::string Weights() {
  const std::filesystem::path folder = std::filesystem::current_path() / "operators_test_weights";
  std::filesystem::create_directories(folder);
  std::ofstream file(folder / "mlp-4-2.weights", std::ios::binary);
  for (int i = 0; i < 20480 / 4; ++i) {
    const float weight = 0.05F * static_cast<float>(i % 13 - 6);
    file.write(reinterpret_cast<const char*>(&weight), sizeof weight);
  }
  return folder.string();
}

// Answers of a network of three linear layers with Relu between them.
std::vector<float> Answers(const std::string& output) {
  tenon::ModelOptions options;
  options.external_data_dir = Weights();
  tenon::CompileModel(kModel, output, options);
  std::vector<float> x = {0.5F, -1, 2, 0.25F}, y(2);
  tenon::Module::LoadFromFile(output).GetFunction("main")(
      tenon::Tensor::Wrap(x.data(), {1, 4}, DataType::kFloat32),
      tenon::Tensor::Wrap(y.data(), {1, 2}, DataType::kFloat32));
  std::remove(output.c_str());
  return y;
}

TEST(OperatorsOfOnesOwn, ComeBeforeThoseThatThereAre) {
  const std::vector<float> expected = Answers("operators_test_own.so");
  int asked = 0;
  tenon::RegisterOperator("", "Relu", [&](const OperatorNode& node) {
    ++asked;
    te::Tensor x = node.inputs().at(0);
    EXPECT_EQ(node.num_outputs(), 1);
    EXPECT_TRUE(node.attributes().empty());
    EXPECT_EQ(node.Int("slope", 3), 3);
    EXPECT_EQ(node.Float("slope", 0.5), 0.5);
    EXPECT_EQ(node.String("mode", "none"), "none");
    EXPECT_THROW(node.Int("slope"), Error);
    EXPECT_THROW(node.Ints("slopes"), Error);
    te::Tensor y = te::Compute(
        x.shape(), [&](te::Var i, te::Var j) { return te::Maximum(x(i, j), 0.0); }, "y");
    return tenon::CreateFunc({x, y});
  });
  const std::vector<float> got = Answers("operators_test_other.so");
  EXPECT_TRUE(tenon::RemoveOperator("", "Relu"));
  EXPECT_FALSE(tenon::RemoveOperator("", "Relu"));
  EXPECT_EQ(asked, 2);
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(got[i], expected[i], 1e-5);
}

TEST(OperatorsOfOnesOwn, AreFunctions) {
  const std::vector<float> expected = Answers("operators_test_own.so");
  tenon::RegisterOperator("ai.onnx", "Relu", tenon::IrModule::Parse(R"(
func @relu<n, m>(x: f32[n, m], out y: f32[n, m]) kind device {
  for i in 0..n {
    for j in 0..m {
      y[i, j] = max(x[i, j], 0f32)
    }
  }
}
)"));
  const std::vector<float> got = Answers("operators_test_function.so");
  tenon::RemoveOperator("ai.onnx", "Relu");
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(got[i], expected[i], 1e-5);
}

TEST(OperatorsOfOnesOwn, AreRefusedByName) {
  EXPECT_THROW(tenon::RegisterOperator("", "Relu", tenon::OperatorDefinition()), Error);
  EXPECT_THROW(tenon::RegisterOperator("", "",
                                       [](const OperatorNode&) -> tenon::IrModule {
                                         throw Error("ValueError", "never asked");
                                       }),
               Error);
  EXPECT_THROW(tenon::RegisterOperator("", "Relu", tenon::IrModule::Parse("")), Error);
  tenon::RegisterOperator("", "Relu", [](const OperatorNode&) -> tenon::IrModule {
    throw Error("ValueError", "not today");
  });
  try {
    Answers("operators_test_none.so");
    ADD_FAILURE() << "it was compiled";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("(Relu): not today"), std::string::npos)
        << error.what();
  }
  tenon::RemoveOperator("", "Relu");
}

}  // namespace
