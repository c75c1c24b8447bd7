#include "unit/gpu/te_product.h"

#include "tenon/compiler.hpp"

namespace tenon::test {

namespace {

constexpr int64_t kWarps = 2, kStages = 3;

struct Product {
  te::Tensor a, b, total, c;
};

Product Define(const Sizes& size) {
  Product p;
  p.a = te::Placeholder({size.m, size.k}, DataType::kFloat16, "A");
  p.b = te::Placeholder({size.k, size.n}, DataType::kFloat16, "B");
  te::IterVar k = te::ReduceAxis(0, size.k);
  auto wide = [](const te::Expr& e) { return te::Cast(e, DataType::kFloat32); };
  p.total = te::Compute(
      {size.m, size.n},
      [&](te::Var i, te::Var j) { return te::Sum(wide(p.a(i, k)) * wide(p.b(k, j)), {k}); },
      "total");
  p.c = te::Compute(
      {size.m, size.n},
      [&](te::Var i, te::Var j) { return te::Cast(p.total(i, j), DataType::kFloat16); }, "C");
  return p;
}

// The tensor's loops over the block's threads; the one over 8 elements each.
te::IterVar Across(Stage stage, const te::IterVar& i, const te::IterVar& j) {
  auto parts = stage.SplitFactors(stage.Fuse({i, j}), {-1, kWarps, 32, 8});
  stage.Unroll(parts[0]);
  stage.Bind(parts[1], te::ThreadAxis("threadIdx.y"));
  stage.Bind(parts[2], te::ThreadAxis("threadIdx.x"));
  return parts[3];
}

void LoadFragments(Stage stage, const std::string& intrinsic) {
  auto [io, jo, i, j] = stage.Tile(stage.op().axis()[0], stage.op().axis()[1], 16, 16);
  stage.Unroll(io);
  stage.Unroll(jo);
  stage.Tensorize(i, intrinsic);
}

// Blocks of the result, and of what fills it the loop over warps.
te::IterVar Divide(Stage c, Stage shared) {
  auto [by, bx, i, j] = c.Tile(c.op().axis()[0], c.op().axis()[1], kRows, kColumns);
  c.Bind(by, te::ThreadAxis("blockIdx.y"));
  c.Bind(bx, te::ThreadAxis("blockIdx.x"));
  c.Vectorize(Across(c, i, j));
  shared.ComputeAt(c, bx);
  auto [wy, wi] = shared.SplitParts(shared.op().axis()[0], kWarps);
  shared.Bind(wy, te::ThreadAxis("threadIdx.y"));
  shared.Vectorize(shared.op().axis()[1]);
  return wy;
}

// The schedule; of kPadded the tiles are copies with zeros around.
Schedule ScheduleOf(const Product& p, Way way) {
  Schedule s = CreateSchedule({p.c});
  te::Tensor total = p.total, tiles[2];
  if (way == Way::kPadded) {
    const std::vector<te::Tensor> made = s.PadEinsum(total, {kRows, kColumns, kDepth});
    s[total].ComputeInline();
    total = made.at(0);
    for (size_t i = 0; i < 2; ++i) s[tiles[i] = made.at(1 + i)].SetScope("shared");
  } else {
    tiles[0] = s.CacheRead(p.a, "shared", {total.op()});
    tiles[1] = s.CacheRead(p.b, "shared", {total.op()});
  }
  s[total].SetScope("fragment");
  te::Tensor left = s.CacheRead(tiles[0], "fragment", {total.op()});
  te::Tensor right = s.CacheRead(tiles[1], "fragment", {total.op()});
  te::Tensor out = s.CacheWrite(p.c, "shared");

  Stage sums = s[total];
  sums.ComputeAt(s[out], Divide(s[p.c], s[out]));
  auto [io, i] = sums.Split(total.op().axis()[0], 16);
  auto [jo, j] = sums.Split(total.op().axis()[1], 8);
  auto k = sums.SplitFactors(total.op().reduce_axis()[0], {-1, kDepth / 16, 16});
  sums.Reorder({k[0], k[1], io, jo, i, j, k[2]});
  for (const te::IterVar& loop : {k[1], io, jo}) sums.Unroll(loop);
  sums.Tensorize(i, "ptx.mma.m16n8k16.f16");
  for (const te::Tensor& fragments : {left, right}) s[fragments].ComputeAt(sums, k[1]);
  LoadFragments(s[left], "ptx.ldmatrix.a.f16");
  LoadFragments(s[right], "ptx.ldmatrix.b.trans.f16");
  for (const te::Tensor& tile : tiles) {
    s[tile].ComputeAt(sums, k[0]);
    const te::IterVar part = Across(s[tile], tile.op().axis()[0], tile.op().axis()[1]);
    if (way != Way::kPadded) s[tile].Tensorize(part, "ptx.cp.async.copy.f16");
    s[tile].StorageAlign(tile.op().axis()[0], 16, 8);
  }
  if (way == Way::kPlain) return s;
  sums.SoftwarePipeline(k[1], {0, 0, 1}, {0, 1, 2});
  sums.Partition(k[1], {1, kDepth / 16});
  sums.SoftwarePipeline(k[0], {0, 0, kStages - 2, kStages - 1, kStages - 1}, {0, 1, 3, 2, 4});
  return s;
}

Schedule ScheduleOfWarpgroups(const Product& p) {
  Schedule s = CreateSchedule({p.c});
  s[p.total].SetScope("fragment");
  te::Tensor tiles[] = {s.CacheRead(p.a, "shared", {p.total.op()}),
                        s.CacheRead(p.b, "shared", {p.total.op()})};
  Stage result = s[p.c], sums = s[p.total];
  auto [by, bx, i, j] = result.Tile(p.c.op().axis()[0], p.c.op().axis()[1], 64, 64);
  result.Bind(by, te::ThreadAxis("blockIdx.y"));
  result.Bind(bx, te::ThreadAxis("blockIdx.x"));
  result.Vectorize(j);
  sums.ComputeAt(result, bx);
  auto [ko, k] = sums.Split(p.total.op().reduce_axis()[0], 64);
  sums.Reorder({ko, p.total.op().axis()[0], p.total.op().axis()[1], k});
  sums.Tensorize(p.total.op().axis()[0], "ptx.wgmma.m64n64k64.f16");
  sums.Pragma(ko, "producer_stages", 2);
  for (const te::Tensor& tile : tiles) {
    s[tile].ComputeAt(sums, ko);
    s[tile].Tensorize(tile.op().axis()[0], "ptx.tma.copy.64x64.f16");
  }
  return s;
}

}  // namespace

std::string ProductOfWarpgroups(const Sizes& size) {
  const Product p = Define(size);
  return Lower(ScheduleOfWarpgroups(p), {p.a, p.b, p.c}, "f").str();
}

std::string ProductOfTensors(const Sizes& size, Way way) {
  const Product p = Define(size);
  return Lower(ScheduleOf(p, way), {p.a, p.b, p.c}, "f").str();
}

}  // namespace tenon::test
