// Layout descriptions survive the way through layouts.
#include "graph/storage_desc.h"

#include <gtest/gtest.h>

#include <limits>

#include "graph/dims.h"
#include "ir/print.h"

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

// A matrix [k, n] for a unit that multiplies tiles of 64 by 16 bytes, two of them side by side.
StorageDesc Tiles() {
  StorageDesc d;
  d.order = {1, 0};
  d.blocks = {{1, 32}, {0, 64}, {1, 16}, {0, 4}};
  return d;
}

TEST(StorageDesc, BlocksNest) {
  RoundTrip(Tiles(), {100, 40});
  RoundTrip(Tiles(), {1, 1});
  EXPECT_EQ(ToString(MakeLayout(Tiles(), ConstDims(std::vector<int64_t>{100, 40}))),
            "(d0, d1) -> (d1 / 32 size 2, d0 / 64 size 2, d1 % 32 / 16 size 2, d0 % 64 / 4 size "
            "16, d1 % 16 size 16, d0 % 4 size 4)");
  EXPECT_EQ(Tiles().BlockOf(0), 64);
  EXPECT_EQ(Tiles().BlockOf(1), 32);
}

// What fills blocks and borders; where there are no such cells it says nothing.
TEST(StorageDesc, PaddingHoldsAValue) {
  StorageDesc halo;
  halo.begin = {0, 0, 1, 1};
  halo.size = ConstDims(std::vector<int64_t>{1, 16, 9, 9});
  halo.padding = 128;
  RoundTrip(halo, {1, 16, 7, 7});
  halo.padding = -std::numeric_limits<double>::infinity();
  RoundTrip(halo, {1, 16, 7, 7});
  StorageDesc blocked;
  blocked.blocks = {{1, 16}};
  blocked.padding = 3;
  RoundTrip(blocked, {1, 24, 7, 7});
  const std::vector<Expr> whole = ConstDims(std::vector<int64_t>{1, 32, 7, 7});
  EXPECT_FALSE(HasPadding(blocked, whole));
  EXPECT_EQ(ReadLayout(MakeLayout(blocked, whole), whole)->padding, 0);
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
  // Blocks that skip a size, or do not end.
  auto layout = [&](std::vector<Expr> storage, const std::vector<int64_t>& extents) {
    return ReadLayout(LayoutNode::Make({x}, std::move(storage), ConstDims(extents)),
                      {IndexConst(64)});
  };
  const Expr e = x;
  EXPECT_TRUE(layout({e / 16, e % 16 / 4, e % 4}, {4, 4, 4}));
  EXPECT_FALSE(layout({e / 16, e % 8}, {4, 8}));
  EXPECT_FALSE(layout({e / 16, e % 16 / 4}, {4, 4}));
  EXPECT_FALSE(layout({e / 16, e % 16 / 3, e % 3}, {4, 5, 3}));
  EXPECT_FALSE(layout({e / 4, e % 16 / 4, e % 4}, {16, 4, 4}));
  EXPECT_FALSE(layout({e / 16, e % 16}, {4, 32}));
}

}  // namespace
}  // namespace tenon::graph
