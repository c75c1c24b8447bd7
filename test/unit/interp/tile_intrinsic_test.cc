// Every row of the table parses, says for each back end what it takes, and runs.
#include "intrin/tile_intrinsic.h"

#include <gtest/gtest.h>

#include <cmath>

#include "interp/interp.h"
#include "loop/verify.h"
#include "support/check.h"

namespace tenon {
namespace {

int64_t BytesOf(const BufferNode& operand) {
  int64_t bytes = operand.dtype.Bytes();
  for (const Expr& d : operand.shape) bytes *= AsInt(d).value_or(0);
  return bytes;
}

TEST(TileIntrinsic, RowsAreWellFormed) {
  for (const TileIntrinsic& row : BuiltinTileIntrinsics().rows()) {
    auto meaning = MeaningOf(row), pattern = PatternOf(row);
    ASSERT_TRUE(meaning) << ToString(meaning.errors());
    ASSERT_TRUE(pattern) << ToString(pattern.errors());
    EXPECT_EQ((*meaning)->name, row.name);
    EXPECT_EQ((*meaning)->func_kind, FuncKind::kDevice);
    ASSERT_EQ((*meaning)->buffers.size(), (*pattern)->buffers.size());
    for (size_t i = 0; i < (*meaning)->buffers.size(); ++i) {
      EXPECT_TRUE(StructuralEqual((*meaning)->buffers[i], (*pattern)->buffers[i], true))
          << row.name;
    }
    Module module;
    module.Add(*meaning);
    Status verified = Verify(module, Stage::kSchedulable);
    EXPECT_TRUE(verified) << ToString(verified.errors());
    ASSERT_FALSE(row.emissions.empty());
    for (const Emission& e : row.emissions) {
      for (const EmissionArg& arg : e.args) {
        const int64_t bytes = BytesOf(*(*meaning)->buffers.at(static_cast<size_t>(arg.operand)));
        if (arg.kind == ArgKind::kValue) EXPECT_EQ(bytes, arg.type.Bytes()) << row.name;
        if (arg.kind == ArgKind::kSplat) EXPECT_EQ(arg.type.Bytes() % bytes, 0) << row.name;
      }
    }
  }
}

std::vector<InterpArg> RunRow(const char* name, std::vector<InterpArg> args) {
  const TileIntrinsic* row = BuiltinTileIntrinsics().Find(name);
  TN_CHECK(row, "no {}", name);
  Module module;
  module.Add(*MeaningOf(*row));
  Status status = Interpret(module, name, args);
  EXPECT_TRUE(status) << ToString(status.errors());
  return args;
}

TEST(TileIntrinsic, VnniAddsFourProducts) {
  std::vector<double> a(64, 255), b(64, -128), c(16);
  for (int i = 0; i < 16; ++i) c[static_cast<size_t>(i)] = i;
  auto args = RunRow("x86.vpdpbusd.512", {InterpArg::Tensor(DType::UInt(8), {16, 4}, a),
                                          InterpArg::Tensor(DType::Int(8), {16, 4}, b),
                                          InterpArg::Tensor(DType::Int(32), {16}, c)});
  for (int i = 0; i < 16; ++i) EXPECT_EQ(args[2].Get(i), i - 4 * 255 * 128);
}

// The odd product goes first, what is below the smallest normal number is zero.
TEST(TileIntrinsic, Bf16RoundsTwiceAndFlushes) {
  std::vector<double> a(32), b(32, 1), c(16);
  a[0] = -1, a[1] = 0x1p30, c[0] = 1;         // (1 + 2^30) - 1: the 1 is lost first
  a[2] = 0x1p-130, c[1] = 0x1p-130;           // denormals
  a[4] = -0x1p-126, c[2] = 0x1.8p-126;        // a denormal difference
  a[6] = -0x1p-126, b[6] = 0x1p-1, a[7] = 0;  // a denormal product
  auto args = RunRow("x86.vdpbf16ps.512", {InterpArg::Tensor(DType::BFloat16(), {16, 2}, a),
                                           InterpArg::Tensor(DType::BFloat16(), {16, 2}, b),
                                           InterpArg::Tensor(DType::Float(32), {16}, c)});
  EXPECT_EQ(args[2].Get(0), 0x1p30);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(args[2].Get(i), 0) << i;
  EXPECT_TRUE(std::signbit(args[2].Get(3)));
}

}  // namespace
}  // namespace tenon
