// Every tile intrinsic becomes the instruction that it is named after, for a CPU that has it.
#include <gtest/gtest.h>

#include "codegen/codegen.h"
#include "intrin/tile_intrinsic.h"
#include "loop/parse.h"
#include "loop/pass/pass.h"
#include "support/strings.h"

namespace tenon::codegen {
namespace {

// A function that calls the row on its own parameters.
Func Caller(const Func& meaning) {
  PrimFunc fields;
  fields.name = "caller";
  fields.attrs.Set("exported", true);
  std::vector<Region> regions;
  for (const Buffer& b : meaning->buffers) {
    fields.buffers.push_back(BufferNode::Make(b->name, b->dtype, b->shape));
    std::vector<Range> whole;
    for (const Expr& e : b->shape) whole.push_back(RangeNode::Make(IndexConst(0), e));
    regions.push_back(RegionNode::Make(fields.buffers.back(), whole));
  }
  fields.num_outputs = 1;
  fields.body = CallFunc::Make(meaning->name, regions, {});
  return PrimFunc::Make(std::move(fields));
}

TEST(IntrinsicsAssembly, AreInstructions) {
  const Target target = Target::Parse("llvm -mcpu=sapphirerapids").value();
  PassContext context;
  context.target = &target;
  for (const TileIntrinsic& row : BuiltinTileIntrinsics().rows()) {
    if (!row.state.empty() || !row.EmissionOf(Emission::Kind::kLlvm)) continue;
    Module module;
    module.Add(MeaningOf(row).value());
    module.Add(Caller(module.Find(row.name)));
    for (const char* pass : {"select_intrinsics", "lower_blocks", "flatten_storage", "simplify"}) {
      module = FindLoopPass(pass)->run(module, context);
    }
    auto assembly = EmitAssembly(module, target, {});
    ASSERT_TRUE(assembly) << ToString(assembly.errors());
    const std::string instruction = Split(row.name, '.')[1];
    EXPECT_NE(assembly->find("\t" + instruction), std::string::npos) << *assembly;
    EXPECT_EQ(assembly->find("\tcallq"), std::string::npos) << *assembly;
  }
}

// Tiles are named by number, configured once, given back, and never spilled.
TEST(IntrinsicsAssembly, TilesStayInTheirRegisters) {
  Module module = ParseModule(R"(
func @f(A: u8[32, 64], B: i8[16, 16, 4], out C: i32[32, 16]) {exported: true} {
  alloc T: i32[2, 16, 16] in tile
  alloc X: u8[2, 16, 64] in tile
  alloc Y: i8[16, 16, 4] in tile
  for i in 0..2 unrolled {
    call @x86.tilezero.i32(T[i, 0..16, 0..16])
  }
  for k in 0..10 {
    call @x86.tileloadd.i8.groups(B, Y; 64)
    for i in 0..2 unrolled {
      call @x86.tileloadd.u8(A[i * 16..+16, 0..64], X[i, 0..16, 0..64]; 64)
      call @x86.tdpbusd(X[i, 0..16, 0..64], Y, T[i, 0..16, 0..16])
    }
  }
  for i in 0..2 unrolled {
    call @x86.tilestored.i32(T[i, 0..16, 0..16], C[i * 16..+16, 0..16]; 16)
  }
}
)")
                      .value();
  for (const char* row : {"x86.tilezero.i32", "x86.tileloadd.i8.groups", "x86.tileloadd.u8",
                          "x86.tdpbusd", "x86.tilestored.i32"}) {
    module.Add(MeaningOf(*BuiltinTileIntrinsics().Find(row)).value());
  }
  const Target target = Target::Parse("llvm -mcpu=sapphirerapids").value();
  PassContext context;
  context.target = &target;
  for (const char* pass : {"select_intrinsics", "lower_blocks", "unroll", "plan_storage",
                           "flatten_storage", "simplify"}) {
    module = FindLoopPass(pass)->run(module, context);
  }
  auto assembly = EmitAssembly(module, target, {});
  ASSERT_TRUE(assembly) << ToString(assembly.errors());
  auto count = [&](const std::string& word) {
    int n = 0;
    for (size_t at = 0; (at = assembly->find("\t" + word, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  EXPECT_EQ(count("ldtilecfg"), 1) << *assembly;
  EXPECT_EQ(count("tilerelease"), 1) << *assembly;
  EXPECT_EQ(count("tilezero"), 2) << *assembly;
  EXPECT_EQ(count("tileloadd"), 3) << *assembly;
  EXPECT_EQ(count("tdpbusd"), 2) << *assembly;
  EXPECT_EQ(count("tilestored"), 2) << *assembly;
  EXPECT_EQ(assembly->find("rsp"), std::string::npos) << *assembly;
}

TEST(IntrinsicsAssembly, TilesThatCannotBeAreErrors) {
  const Target target = Target::Parse("llvm -mcpu=sapphirerapids").value();
  auto error = [&](const std::string& body) -> std::string {
    Module module =
        ParseModule("func @f(out C: i32[16, 16]) {exported: true} {\n" + body + "\n}").value();
    for (const char* row : {"x86.tilezero.i32", "x86.tilestored.i32"}) {
      module.Add(MeaningOf(*BuiltinTileIntrinsics().Find(row)).value());
    }
    PassContext context;
    context.target = &target;
    for (const char* pass : {"select_intrinsics", "lower_blocks", "flatten_storage", "simplify"}) {
      module = FindLoopPass(pass)->run(module, context);
    }
    auto assembly = EmitAssembly(module, target, {});
    return assembly ? "" : ToString(assembly.errors());
  };
  auto expect = [&](const std::string& body, const std::string& message) {
    const std::string got = error(body);
    EXPECT_NE(got.find(message), std::string::npos) << got;
  };
  expect("alloc T: i32[9, 16, 16] in tile\ncall @x86.tilezero.i32(T[8, 0..16, 0..16])",
         "more than 8 tiles at a time (T needs 9 and 0 are taken)");
  expect(
      "alloc T: i32[4, 16, 16] in tile\nfor i in 0..4 { call @x86.tilezero.i32(T[i, 0..16, 0..16]) "
      "}",
      "unroll the loops around it");
  expect("alloc T: i32[16, 16] in tile\ncall @x86.tilezero.i32(T)\nC[0, 0] = T[0, 0]",
         "elements of T, which is in tiles");
  expect("call @x86.tilezero.i32(C)", "memory (C) in the place of a tile");
}

}  // namespace
}  // namespace tenon::codegen
