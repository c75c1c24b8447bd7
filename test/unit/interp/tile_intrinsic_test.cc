// Every row of the table parses, is the reduction that it says, and runs.
#include "intrin/tile_intrinsic.h"

#include <gtest/gtest.h>

#include "interp/interp.h"

namespace tenon {
namespace {

TEST(TileIntrinsic, RowsAreWellFormed) {
  for (const TileIntrinsic& row : BuiltinTileIntrinsics().rows()) {
    auto meaning = MeaningOf(row);
    ASSERT_TRUE(meaning) << ToString(meaning.errors());
    EXPECT_EQ((*meaning)->name, row.name);
    EXPECT_EQ((*meaning)->func_kind, FuncKind::kDevice);
    for (const Emission& e : row.emissions) {
      for (const RegisterArg& arg : e.args) {
        const Buffer& operand = (*meaning)->buffers.at(static_cast<size_t>(arg.operand));
        int64_t bytes = operand->dtype.Bytes();
        for (const Expr& d : operand->shape) bytes *= AsInt(d).value_or(0);
        EXPECT_EQ(bytes, arg.type.Bytes()) << row.name << " " << operand->name;
      }
    }
  }
}

TEST(TileIntrinsic, VnniAddsFourProducts) {
  const TileIntrinsic* row = BuiltinTileIntrinsics().Find("x86.vpdpbusd.512");
  ASSERT_NE(row, nullptr);
  Module module;
  module.Add(*MeaningOf(*row));
  std::vector<double> a(64, 255), b(64, -128), c(16);
  for (int i = 0; i < 16; ++i) c[static_cast<size_t>(i)] = i;
  std::vector<InterpArg> args{InterpArg::Tensor(DType::UInt(8), {16, 4}, a),
                              InterpArg::Tensor(DType::Int(8), {16, 4}, b),
                              InterpArg::Tensor(DType::Int(32), {16}, c)};
  Status status = Interpret(module, row->name, args);
  ASSERT_TRUE(status) << ToString(status.errors());
  for (int i = 0; i < 16; ++i) EXPECT_EQ(args[2].Get(i), i - 4 * 255 * 128);
}

}  // namespace
}  // namespace tenon
