#include "loop/print.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

Func Matmul() {
  Var m = VarNode::Make("m"), i = VarNode::Make("i"), j = VarNode::Make("j"),
      k = VarNode::Make("k");
  Var vi = VarNode::Make("vi"), vj = VarNode::Make("vj"), vk = VarNode::Make("vk");
  const Expr n = IndexConst(1024), zero = IndexConst(0), one = IndexConst(1);
  Buffer a = BufferNode::Make("A", DType::Float(32), {m, n});
  Buffer b = BufferNode::Make("B", DType::Float(32), {n, n});
  Buffer c = BufferNode::Make("C", DType::Float(32), {m, n});
  auto point = [&](const Buffer& buffer, Expr x, Expr y) {
    return RegionNode::Make(buffer, {RangeNode::Make(x, one), RangeNode::Make(y, one)});
  };
  Block block;
  block.name = "C";
  block.fp = FpMode::kContract;
  block.iters = {IterVarNode::Make(vi, IterKind::kSpatial, zero, m, i),
                 IterVarNode::Make(vj, IterKind::kSpatial, zero, n, j),
                 IterVarNode::Make(vk, IterKind::kReduce, zero, n, k)};
  block.reads = {point(a, vi, vk), point(b, vk, vj)};
  block.writes = {point(c, vi, vj)};
  block.init = Store::Make(c, {vi, vj}, FloatConst::Make(DType::Float(32), 0));
  block.body = Store::Make(
      c, {vi, vj}, Load::Make(c, {vi, vj}) + Load::Make(a, {vi, vk}) * Load::Make(b, {vk, vj}));
  Stmt body = For::Make(k, zero, n, ForKind::kSerial, Block::Make(block));
  body = For::Make(j, zero, n, ForKind::kSerial, body);
  body = For::Make(i, zero, m, ForKind::kSerial, body);
  PrimFunc f;
  f.name = "matmul";
  f.dims = {m};
  f.dim_lo = {1};
  f.dim_hi = {4096};
  f.dim_step = {1};
  f.buffers = {a, b, c};
  f.num_outputs = 1;
  f.target = TargetRef::Parse("llvm").value();
  f.body = body;
  return PrimFunc::Make(f);
}

TEST(LoopPrint, Matmul) {
  EXPECT_EQ(
      Print(Matmul()),
      R"(func @matmul<m: 1..=4096>(A: f32[m, 1024], B: f32[1024, 1024], out C: f32[m, 1024]) target "llvm" {
  for i in 0..m, j in 0..1024, k in 0..1024 {
    block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) fp: contract {
      reads A[vi, vk], B[vk, vj]; writes C[vi, vj]
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    }
  }
}
)");
}

TEST(LoopPrint, EqualNamesInOneScopeGetSuffixes) {
  Var outer = VarNode::Make("i"), inner = VarNode::Make("i"), later = VarNode::Make("i");
  Buffer a = BufferNode::Make("A", DType::Index(), {IndexConst(8)});
  auto loop = [](const Var& v, Stmt body) {
    return For::Make(v, IndexConst(0), IndexConst(8), ForKind::kSerial, body);
  };
  Stmt nest = loop(outer, loop(inner, Store::Make(a, {outer}, inner)));
  EXPECT_EQ(Print(Seq::Make({nest, loop(later, Store::Make(a, {later}, later))})),
            R"(for i in 0..8, i_1 in 0..8 {
  A[i] = i_1
}
for i in 0..8 {
  A[i] = i
})");
}

}  // namespace
}  // namespace tenon
