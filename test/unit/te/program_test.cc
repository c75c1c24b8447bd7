// Programs: what is known of a function besides its loops.
#include "te/program.h"

#include <gtest/gtest.h>

#include "loop/verify.h"

namespace tenon {
namespace {

TEST(Program, NamesAreItsOwnAndVariablesParameters) {
  const Var n = VarNode::Make("n"), m = VarNode::Make("m");
  const Var scale = VarNode::Make("scale", DType::Float(32));
  const te::Tensor a = te::Placeholder("X", {n}, DType::Float(32));
  const te::Tensor b =
      te::Compute("X", {n}, [&](const te::Indices& i) { return te::Body(a(i[0]) * scale); });
  const te::Tensor c =
      te::Compute("X", {n, m}, [&](const te::Indices& i) { return te::Body(b(i[0]) + a(i[0])); });
  te::FuncOptions options;
  options.dims = {n};
  options.ranges = {DimRange()};
  const Expected<te::Program> program = te::MakeProgram("f", {a}, {c}, options);
  ASSERT_TRUE(program) << ToString(program.errors());
  const PrimFunc& f = *program->func;
  ASSERT_EQ(f.dims.size(), 2U);
  EXPECT_EQ(f.dims[1], m);
  ASSERT_EQ(f.scalars.size(), 1U);
  EXPECT_EQ(f.scalars[0], scale);
  EXPECT_EQ(program->blocks.at(b.node().get()), "X");
  EXPECT_EQ(program->blocks.at(c.node().get()), "X_1");
  EXPECT_EQ(program->buffers.at(a.buffer().get())->name, "X");
  EXPECT_EQ(program->buffers.at(c.buffer().get())->name, "X_1");
  EXPECT_EQ(program->buffers.at(b.buffer().get())->name, "X_2");
  Module module;
  module.Add(program->func);
  EXPECT_TRUE(Verify(module, Stage::kSchedulable));
}

TEST(Program, TensorsThatAreComputedTogetherHaveOneBlock) {
  const te::Tensor a = te::Placeholder("a", {IndexConst(4)}, DType::Float(32));
  const std::vector<te::Tensor> both =
      te::ComputeTuple("both", {IndexConst(4)}, [&](const te::Indices& i) {
        return te::TupleBody{{a(i[0]), a(i[0]) + a(i[0])}, {}, {}, nullptr};
      });
  const Expected<te::Program> program = te::MakeProgram("f", {a}, both);
  ASSERT_TRUE(program) << ToString(program.errors());
  for (const te::Tensor& t : both) EXPECT_EQ(program->blocks.at(t.node().get()), "both");
}

TEST(Program, ReadsThatAreCertainToBeOutside) {
  const te::Tensor a = te::Placeholder("a", {IndexConst(4)}, DType::Float(32));
  auto of = [&](int64_t size, int64_t shift) {
    return te::CheckReads({te::Compute(
        "c", {IndexConst(size)}, [&](const te::Indices& i) { return te::Body(a(i[0] + shift)); })});
  };
  EXPECT_TRUE(of(4, 0));
  EXPECT_TRUE(of(3, 1));
  EXPECT_FALSE(of(4, 1));
  EXPECT_FALSE(of(4, -1));
  EXPECT_TRUE(of(0, 7));
}

}  // namespace
}  // namespace tenon
