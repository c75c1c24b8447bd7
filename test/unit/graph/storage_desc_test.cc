// Layout descriptions survive the way through layouts.
#include "graph/storage_desc.h"

#include <gtest/gtest.h>

#include "graph/dims.h"

namespace tenon::graph {
namespace {

std::vector<Expr> ConstDims(const std::vector<int64_t>& sizes) {
  std::vector<Expr> out;
  for (int64_t n : sizes) out.push_back(IndexConst(n));
  return out;
}

void RoundTrip(const StorageDesc& d, const std::vector<Expr>& dims) {
  const std::optional<StorageDesc> read = ReadLayout(MakeLayout(d, dims), dims);
  ASSERT_TRUE(read);
  EXPECT_TRUE(*read == d);
}
void RoundTrip(const StorageDesc& d, const std::vector<int64_t>& dims) {
  RoundTrip(d, ConstDims(dims));
}

TEST(StorageDesc, RoundTrips) {
  RoundTrip({}, std::vector<int64_t>{1, 3, 5, 7});
  StorageDesc blocked;
  blocked.blocks = {{1, 16}};
  RoundTrip(blocked, {1, 24, 7, 7});
  RoundTrip(blocked, {1, 32, 7, 7});
  StorageDesc halo = blocked;
  halo.begin = {0, 0, 1, 2};
  halo.size = ConstDims({1, 24, 9, 11});
  RoundTrip(halo, {1, 24, 7, 7});
  StorageDesc panels;
  panels.order = {1, 0};
  panels.blocks = {{1, 32}};
  RoundTrip(panels, {7, 40});
  StorageDesc weights;
  weights.blocks = {{1, 16}, {0, 32}};
  RoundTrip(weights, {40, 24, 3, 3});
}

// Sizes that the dims decide are read back as equal for all of them; what an axis is padded to is
// no size of its own.
TEST(StorageDesc, RoundTripsOverSymbolicDims) {
  const Expr n = VarNode::Make("n"), rows = VarNode::Make("rows");
  StorageDesc halo;
  halo.blocks = {{1, 16}};
  halo.begin = {0, 0, 1, 2};
  halo.size = {n, IndexConst(24), DimAdd(rows, IndexConst(2)), DimAdd(rows, IndexConst(4))};
  RoundTrip(halo, {n, IndexConst(24), rows, rows});
  StorageDesc panels;
  panels.order = {1, 0};
  panels.blocks = {{1, 32}};
  RoundTrip(panels, {rows, n});
  const auto read = ReadLayout(MakeLayout(panels, {rows, n}), {rows, n});
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->size.empty());
  EXPECT_TRUE(ProveEqual(panels.Cells({rows, n}, 1), InBlocks(n, 32)));
  EXPECT_FALSE(ProveEqual(panels.Cells({rows, n}, 1), n));
}

TEST(StorageDesc, OtherLayoutsAreRefused) {
  Var x = VarNode::Make("x");
  Layout mirrored = LayoutNode::Make({x}, {IndexConst(7) - Expr(x)}, {IndexConst(8)});
  EXPECT_FALSE(ReadLayout(mirrored, {IndexConst(8)}));
  Layout no_extents = LayoutNode::Make({x}, {x});
  EXPECT_FALSE(ReadLayout(no_extents, {IndexConst(8)}));
}

}  // namespace
}  // namespace tenon::graph
