// Layout descriptions survive the way through layouts.
#include "graph/storage_desc.h"

#include <gtest/gtest.h>

namespace tenon::graph {
namespace {

void RoundTrip(const StorageDesc& d, const std::vector<int64_t>& dims) {
  std::optional<StorageDesc> read = ReadLayout(MakeLayout(d, dims), dims);
  ASSERT_TRUE(read);
  EXPECT_TRUE(*read == d);
}

TEST(StorageDesc, RoundTrips) {
  RoundTrip({}, {1, 3, 5, 7});
  StorageDesc blocked;
  blocked.blocks = {{1, 16}};
  RoundTrip(blocked, {1, 24, 7, 7});
  RoundTrip(blocked, {1, 32, 7, 7});
  StorageDesc halo = blocked;
  halo.begin = {0, 0, 1, 2};
  halo.size = {1, 24, 9, 11};
  RoundTrip(halo, {1, 24, 7, 7});
  StorageDesc panels;
  panels.order = {1, 0};
  panels.blocks = {{1, 32}};
  RoundTrip(panels, {7, 40});
  StorageDesc weights;
  weights.blocks = {{1, 16}, {0, 32}};
  RoundTrip(weights, {40, 24, 3, 3});
}

TEST(StorageDesc, OtherLayoutsAreRefused) {
  Var x = VarNode::Make("x");
  Layout mirrored = LayoutNode::Make({x}, {IndexConst(7) - Expr(x)}, {IndexConst(8)});
  EXPECT_FALSE(ReadLayout(mirrored, {8}));
  Layout no_extents = LayoutNode::Make({x}, {x});
  EXPECT_FALSE(ReadLayout(no_extents, {8}));
}

}  // namespace
}  // namespace tenon::graph
