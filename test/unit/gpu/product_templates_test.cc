// Ninety ordinary product kernels: tiles that threads divide and tiles that they do not, on blocks
// of several shapes, by the three ways in which authors share out the loads. All are accepted, and
// compute the product through all passes, without a race.
#include <gtest/gtest.h>

#include "driver/pipeline.h"
#include "interp/interp.h"
#include "loop/parse.h"
#include "unit/gpu/numbers.h"
#include "unit/gpu/product_templates.h"

namespace tenon {
namespace {

using test::ProductTemplate;
using test::Sharing;

Module Lowered(const ProductTemplate& t) {
  auto module = ParseModule(test::LowerProduct(t), "schedule");
  EXPECT_TRUE(module) << (module ? "" : ToString(module.errors()));
  PrimFunc func = *module->Find("f");
  const Target target = Target::Parse("cuda -arch=sm_80").value();
  func.target = target;
  module->Add(PrimFunc::Make(std::move(func)));
  driver::PassHooks hooks;
  hooks.verify = true;
  auto lowered =
      driver::RunPipeline(driver::DevicePipeline(), *module, driver::ContextOf(target), hooks);
  EXPECT_TRUE(lowered) << ToString(lowered.errors());
  return lowered ? *lowered : *module;
}

void CheckProduct(const ProductTemplate& t) {
  SCOPED_TRACE(testing::Message() << "tile " << t.rows << "x" << t.columns << "x" << t.depth
                                  << ", threads " << t.threads_y << "x" << t.threads_x
                                  << ", sharing " << static_cast<int>(t.sharing));
  Module module;
  try {
    module = Lowered(t);
  } catch (const std::exception& error) {
    FAIL() << error.what();
  }
  const DType f32 = DType::Float(32);
  const bool flat = module.Find("f")->buffers[0]->rank() == 1;
  std::vector<InterpArg> args{Numbers(f32, Shape(flat, t.m, t.k), 0),
                              Numbers(f32, Shape(flat, t.k, t.n), 3),
                              InterpArg::Output(f32, Shape(flat, t.m, t.n))};
  InterpOptions options;
  options.max_steps = int64_t{1} << 32;
  const Status status = Interpret(module, "f", args, options);
  ASSERT_TRUE(status) << ToString(status.errors());
  for (int64_t i = 0; i < t.m; ++i) {
    for (int64_t j = 0; j < t.n; ++j) {
      int64_t want = 0;
      for (int64_t n = 0; n < t.k; ++n) want += Number(i * t.k + n) * Number(n * t.n + j + 3);
      ASSERT_EQ(args[2].Get(i * t.n + j), want) << i << ", " << j;
    }
  }
}

class ProductTemplates : public testing::TestWithParam<Sharing> {};

TEST_P(ProductTemplates, AreAcceptedAndEqual) {
  const int64_t tiles[][3] = {{8, 4, 8},   {8, 12, 4},  {16, 16, 5},
                              {24, 40, 6}, {32, 32, 8}, {20, 12, 7}};
  const int64_t threads[][2] = {{4, 16}, {8, 8}, {2, 4}, {4, 4}, {16, 16}};
  for (const auto& [rows, columns, depth] : tiles) {
    for (const auto& [y, x] : threads) {
      // One tile and a part of one each way.
      CheckProduct({rows + 3, columns + 5, depth * 2 + 1, rows, columns, depth, y, x, GetParam()});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sharing, ProductTemplates,
                         testing::Values(Sharing::kParts, Sharing::kVectors, Sharing::kVirtual));

}  // namespace
}  // namespace tenon
