#include "unit/gpu/product_templates.h"

#include <tuple>
#include <vector>

#include "tenon/compiler.hpp"

namespace tenon::test {

namespace {

// A tile's elements over the block's threads.
void Load(Stage tile, const ProductTemplate& t) {
  te::IterVar rest = tile.Fuse({tile.op().axis()[0], tile.op().axis()[1]});
  te::IterVar y, x;
  if (t.sharing == Sharing::kParts) {
    std::tie(y, rest) = tile.SplitParts(rest, t.threads_y);
    std::tie(x, rest) = tile.SplitParts(rest, t.threads_x);
  } else {
    if (t.sharing == Sharing::kVectors) {
      te::IterVar lanes;
      std::tie(rest, lanes) = tile.Split(rest, 4);
      tile.Vectorize(lanes);
    }
    std::tie(rest, x) = tile.Split(rest, t.threads_x);
    std::tie(rest, y) = tile.Split(rest, t.threads_y);
  }
  tile.Bind(y, te::ThreadAxis(t.threads_y, "threadIdx.y"));
  tile.Bind(x, te::ThreadAxis(t.threads_x, "threadIdx.x"));
}

}  // namespace

std::string LowerProduct(const ProductTemplate& t) {
  te::Tensor a = te::Placeholder({t.m, t.k}, DataType::kFloat32, "A");
  te::Tensor b = te::Placeholder({t.k, t.n}, DataType::kFloat32, "B");
  te::IterVar k = te::ReduceAxis(0, t.k);
  te::Tensor c = te::Compute(
      {t.m, t.n}, [&](te::Var i, te::Var j) { return te::Sum(a(i, k) * b(k, j), {k}); }, "C");

  Schedule s = CreateSchedule({c});
  te::Tensor tiles[] = {s.CacheRead(a, "shared", {c.op()}), s.CacheRead(b, "shared", {c.op()})};
  te::Tensor sums = s.CacheWrite(c, "local");
  Stage result = s[c];
  auto [by, i] = result.Split(c.op().axis()[0], t.rows);
  auto [bx, j] = result.Split(c.op().axis()[1], t.columns);
  std::vector<te::IterVar> order{by, bx};
  if (t.sharing == Sharing::kVirtual) {
    for (te::IterVar* loop : {&i, &j}) {
      auto [piece, inside] = result.SplitParts(*loop, 2);
      result.Bind(piece, te::ThreadAxis("vthread"));
      order.push_back(piece);
      *loop = inside;
    }
  }
  auto [ty, own_i] = result.SplitParts(i, t.threads_y);
  auto [tx, own_j] = result.SplitParts(j, t.threads_x);
  for (const te::IterVar& loop : {ty, tx, own_i, own_j}) order.push_back(loop);
  result.Reorder(order);
  result.Bind(by, te::ThreadAxis("blockIdx.y"));
  result.Bind(bx, te::ThreadAxis("blockIdx.x"));
  result.Bind(ty, te::ThreadAxis(t.threads_y, "threadIdx.y"));
  result.Bind(tx, te::ThreadAxis(t.threads_x, "threadIdx.x"));

  s[sums].ComputeAt(result, tx);
  auto [ko, ki] = s[sums].Split(sums.op().reduce_axis()[0], t.depth);
  s[sums].Reorder({ko, ki, sums.op().axis()[0], sums.op().axis()[1]});
  for (const te::Tensor& tile : tiles) {
    s[tile].ComputeAt(s[sums], ko);
    Load(s[tile], t);
  }
  return Lower(s, {a, b, c}, "f").str();
}

}  // namespace tenon::test
