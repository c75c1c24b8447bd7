// Every tile intrinsic becomes the instruction that it is named after, for a CPU that has it.
#include <gtest/gtest.h>

#include "codegen/codegen.h"
#include "intrin/tile_intrinsic.h"
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
    if (!row.state.empty()) continue;
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

}  // namespace
}  // namespace tenon::codegen
