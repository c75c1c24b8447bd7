// A packed fp32 GEMM micro-kernel as lowered loop IR, written by hand: for tests of code generation
// and its benchmark.
#pragma once

#include "loop/func.h"

namespace tenon::test {

/// void name(A, B, C, k, ldc, …): C[mr × nr, row stride ldc] = sum over k of A[k × mr panel] × B[k
/// × nr panel]. nr is a multiple of `lanes`.
inline Func GemmMicroKernel(const std::string& name, int64_t mr, int64_t nr, int32_t lanes) {
  Var k_size = VarNode::Make("k"), ldc = VarNode::Make("ldc");
  const DType f32 = DType::Float(32);
  Buffer a = BufferNode::Make("A", f32, {k_size * mr}, Scope::kGlobal, nullptr, {}, 64);
  Buffer b = BufferNode::Make("B", f32, {k_size * nr}, Scope::kGlobal, nullptr, {}, 64);
  Buffer c = BufferNode::Make("C", f32, {ldc * mr});
  Buffer acc =
      BufferNode::Make("acc", f32, {IndexConst(mr * nr)}, Scope::kRegister, nullptr, {}, 64);
  const int64_t nv = nr / lanes;
  auto vec = [&](Expr base) { return Ramp::Make(std::move(base), IndexConst(1), lanes); };
  auto acc_at = [&](int64_t m, int64_t v) { return vec(IndexConst(m * nr + v * lanes)); };

  std::vector<Stmt> init, step, out;
  Var k = VarNode::Make("kk");
  std::vector<Var> b_vars;
  for (int64_t v = 0; v < nv; ++v) {
    b_vars.push_back(VarNode::Make("b" + std::to_string(v), f32.WithLanes(lanes)));
  }
  for (int64_t m = 0; m < mr; ++m) {
    Expr a_lane = Broadcast::Make(Load::Make(a, {k * mr + m}), lanes);
    for (int64_t v = 0; v < nv; ++v) {
      init.push_back(Store::Make(acc, {acc_at(m, v)}, MakeConst(f32.WithLanes(lanes), 0)));
      Expr sum = Call::Make(Intrinsic::kFma, {a_lane, b_vars[static_cast<size_t>(v)],
                                              Load::Make(acc, {acc_at(m, v)})});
      step.push_back(Store::Make(acc, {acc_at(m, v)}, sum));
      out.push_back(Store::Make(c, {vec(ldc * m + v * lanes)}, Load::Make(acc, {acc_at(m, v)})));
    }
  }
  Stmt body = Seq::Make(step);
  for (int64_t v = nv; v-- > 0;) {
    body =
        Let::Make(b_vars[static_cast<size_t>(v)], Load::Make(b, {vec(k * nr + v * lanes)}), body);
  }
  std::vector<Stmt> all = init;
  all.push_back(For::Make(k, IndexConst(0), k_size, ForKind::kSerial, body));
  all.insert(all.end(), out.begin(), out.end());

  PrimFunc f;
  f.name = name;
  f.func_kind = FuncKind::kKernel;
  f.dims = {k_size, ldc};
  f.dim_lo = {0, 0};
  f.dim_hi = {-1, -1};
  f.dim_step = {1, 1};
  f.buffers = {a, b, c};
  f.num_outputs = 1;
  f.attrs.Set("exported", true);
  f.attrs.Set("noalias", true);
  f.body = Alloc::Make(acc, Seq::Make(all));
  return PrimFunc::Make(std::move(f));
}

}  // namespace tenon::test
