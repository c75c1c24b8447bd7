// Equality and hashing where it is easy to get wrong.
#include "ir/node.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/buffer.h"
#include "ir/visit.h"

namespace tenon {
namespace {

TEST(StructuralEqual, FloatsAreComparedByValueNotByOrder) {
  const DType f32 = DType::Float(32);
  auto c = [&](double v) { return FloatConst::Make(f32, v); };
  EXPECT_TRUE(StructuralEqual(c(NAN), c(-NAN)));
  EXPECT_EQ(StructuralHash(c(NAN)), StructuralHash(c(-NAN)));
  EXPECT_FALSE(StructuralEqual(c(0.0), c(-0.0)));
  EXPECT_TRUE(StructuralEqual(c(1.5), c(1.5)));
}

Layout MakeLayout() {
  Var i = VarNode::Make("i");
  return LayoutNode::Make({i}, {i / 16, i % 16}, {nullptr, IndexConst(16)});
}

Layout TwoBuffers(const Layout& a, const Layout& b) {
  // A node that holds both: the shapes of the buffers, loaded from.
  auto load = [](const Layout& layout) {
    return Load::Make(
        BufferNode::Make("b", DType::Index(), {IndexConst(32)}, Scope::kGlobal, layout),
        {IndexConst(0)});
  };
  Var k = VarNode::Make("k");
  return LayoutNode::Make({k}, {load(a) + load(b)});
}

TEST(StructuralEqual, ALayoutSharedByTwoBuffersIsAsGoodAsTwo) {
  const Layout shared = MakeLayout();
  const Layout one = TwoBuffers(shared, shared), two = TwoBuffers(MakeLayout(), MakeLayout());
  EXPECT_TRUE(StructuralEqual(one, two, /*map_free=*/true));
  EXPECT_TRUE(StructuralEqual(two, one, /*map_free=*/true));
  EXPECT_EQ(StructuralHash(one), StructuralHash(two));
}

TEST(Visit, PassesOverNullEntriesOfLists) {
  int nodes = 0;
  PreOrder(MakeLayout(), [&](const NodeRef&) { return ++nodes > 0; });
  EXPECT_GT(nodes, 4);
  Layout doubled = PostOrderRewrite(
      MakeLayout(),
      [](const NodeRef& n) -> NodeRef {
        const auto* c = As<IntConst>(n);
        return c && c->value == 16 ? NodeRef(IndexConst(32)) : n;
      },
      /*into_buffers=*/true);
  EXPECT_EQ(doubled->extents[0], nullptr);
  EXPECT_EQ(AsInt(doubled->extents[1]), 32);
}

}  // namespace
}  // namespace tenon
