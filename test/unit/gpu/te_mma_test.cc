// Products on tensor cores by schedules of tensors: what is lowered computes the product before and
// after the passes, under several orders of threads, and a size that is no multiple of the tile
// says so, or is rounded up.
#include <gtest/gtest.h>

#include <regex>

#include "driver/pipeline.h"
#include "interp/interp.h"
#include "loop/parse.h"
#include "unit/gpu/numbers.h"
#include "unit/gpu/te_product.h"

namespace tenon {
namespace {

using test::kColumns;
using test::kDepth;
using test::kRows;
using test::Sizes;
using test::Way;

Module LoweredTo(const std::string& arch, const std::string& product) {
  // Callers of a kernel with such copies pass aligned tensors.
  const std::regex factors(R"(\b[AB]: f16\[\d+, \d+\](?=,))");
  auto module = ParseModule(std::regex_replace(product, factors, "$& align 16"), "schedule");
  EXPECT_TRUE(module) << (module ? "" : ToString(module.errors()));
  PrimFunc func = *module->Find("f");
  func.target = Target::Parse("cuda -arch=" + arch).value();
  module->Add(PrimFunc::Make(std::move(func)));
  return *module;
}

void CheckProduct(const Sizes& size, const Module& module, const std::string& after, bool orders) {
  const bool flat = module.Find("f")->buffers[0]->rank() == 1;
  std::vector<InterpArg> args{Numbers(DType::Float(16), Shape(flat, size.m, size.k), 0),
                              Numbers(DType::Float(16), Shape(flat, size.k, size.n), 3),
                              InterpArg::Output(DType::Float(16), Shape(flat, size.m, size.n))};
  InterpOptions options;
  options.max_steps = int64_t{1} << 32;
  Status status =
      orders ? InterpretOrders(module, "f", args, options) : Interpret(module, "f", args, options);
  ASSERT_TRUE(status) << "after " << after << ": " << ToString(status.errors());
  for (int64_t i = 0; i < size.m; ++i) {
    for (int64_t j = 0; j < size.n; ++j) {
      int64_t want = 0;
      for (int64_t n = 0; n < size.k; ++n)
        want += Number(i * size.k + n) * Number(n * size.n + j + 3);
      ASSERT_EQ(args[2].Get(i * size.n + j), want) << i << ", " << j << " after " << after;
    }
  }
}

Module ThroughPasses(const Module& module, const std::string& arch) {
  driver::PassHooks hooks;
  hooks.verify = true;
  const Target target = Target::Parse("cuda -arch=" + arch).value();
  auto lowered =
      driver::RunPipeline(driver::DevicePipeline(), module, driver::ContextOf(target), hooks);
  EXPECT_TRUE(lowered) << ToString(lowered.errors());
  return lowered ? *lowered : module;
}

// `closely`: before the passes too, and in several orders of threads.
void CheckAll(const Sizes& size, Way way, bool closely) {
  SCOPED_TRACE(std::to_string(size.m) + "x" + std::to_string(size.n) + "x" +
               std::to_string(size.k));
  const Module module = LoweredTo("sm_80", test::ProductOfTensors(size, way));
  if (closely) CheckProduct(size, module, "nothing", false);
  CheckProduct(size, ThroughPasses(module, "sm_80"), "everything", closely);
}

TEST(TensorCoresOfTensors, OneTile) {
  for (Way way : {Way::kPlain, Way::kPipelined})
    CheckAll({kRows, kColumns, kDepth}, way, way == Way::kPipelined);
}

TEST(TensorCoresOfTensors, TwoTilesEachWay) {
  for (Way way : {Way::kPlain, Way::kPipelined})
    CheckAll({2 * kRows, 2 * kColumns, 2 * kDepth}, way, false);
}

TEST(TensorCoresOfTensors, ByAWarpgroup) {
  const Sizes size = {64, 64, 128};
  const Module module = LoweredTo("sm_90a", test::ProductOfWarpgroups(size));
  CheckProduct(size, ThroughPasses(module, "sm_90a"), "everything", false);
}

TEST(TensorCoresOfTensors, SizesAreRoundedUp) {
  CheckAll({kRows + 5, kColumns + 3, kDepth + 10}, Way::kPadded, false);
}

TEST(TensorCoresOfTensors, SizesThatAreNoMultiples) {
  for (const Sizes& size : {Sizes{kRows + 8, kColumns, kDepth}, Sizes{kRows, kColumns + 8, kDepth},
                            Sizes{kRows, kColumns, kDepth + 8}}) {
    for (Way way : {Way::kPlain, Way::kPipelined}) {
      try {
        test::ProductOfTensors(size, way);
        FAIL() << "expected an error";
      } catch (const std::exception& error) {
        EXPECT_NE(std::string(error.what()).find("pad_einsum rounds sizes up"), std::string::npos)
            << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace tenon
