#include "support/schedule_functions.h"

namespace tenon::test {

const char kMatmul[] = R"(
func @f(A: f32[$M, $K], B: f32[$K, $N], out C: f32[$M, $N]) {
  for i in 0..$M, j in 0..$N, k in 0..$K {
    block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) fp: contract {
      reads A[vi, vk], B[vk, vj]; writes C[vi, vj]
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    }
  }
})";

const char kChain[] = R"(
func @f(A: f32[$M, $N], out D: f32[$M, $N]) {
  alloc T: f32[$M, $N] in global
  for i in 0..$M, j in 0..$N {
    block T(vi: spatial = i, vj: spatial = j) {
      reads A[vi, vj]; writes T[vi, vj]
      T[vi, vj] = A[vi, vj] * 2f32
    }
  }
  for x in 0..$M, y in 0..$N {
    block D(vx: spatial = x, vy: spatial = y) {
      reads T[vx, vy]; writes D[vx, vy]
      D[vx, vy] = T[vx, vy] + 1f32
    }
  }
})";

const char kBlur[] = R"(
func @f(A: f32[$M + 2], out D: f32[$M]) {
  alloc T: f32[$M + 2] in global
  for t in 0..$M + 2 {
    block T(vt: spatial = t) {
      reads A[vt]; writes T[vt]
      T[vt] = A[vt] * 2f32
    }
  }
  for i in 0..$M {
    block D(vi: spatial = i) {
      reads T[vi..+3]; writes D[vi]
      D[vi] = T[vi] + T[vi + 1] + T[vi + 2]
    }
  }
})";

const char kConv[] = R"(
func @f(X: f32[$C, $H, $W], K: f32[$O, $C, 3, 3], out Z: f32[$O, $H, $W]) {
  alloc P: f32[$C, $H + 2, $W + 2] in global
  alloc Y: f32[$O, $H, $W] in global
  for pc in 0..$C, ph in 0..$H + 2, pw in 0..$W + 2 {
    block P(vc: spatial = pc, vh: spatial = ph, vw: spatial = pw) {
      reads X[vc, max(vh - 1, 0)..min(vh, $H), max(vw - 1, 0)..min(vw, $W)]; writes P[vc, vh, vw]
      P[vc, vh, vw] = select(vh >= 1 && vh < $H + 1 && vw >= 1 && vw < $W + 1, X[vc, vh - 1, vw - 1], 0f32)
    }
  }
  for o in 0..$O, h in 0..$H, w in 0..$W, c in 0..$C, r in 0..3, s in 0..3 {
    block Y(vo: spatial = o, vy: spatial = h, vx: spatial = w, rc: reduce = c, rr: reduce = r, rs: reduce = s) fp: contract {
      reads P[rc, vy + rr, vx + rs], K[vo, rc, rr, rs]; writes Y[vo, vy, vx]
      init { Y[vo, vy, vx] = 0f32 }
      Y[vo, vy, vx] = Y[vo, vy, vx] + P[rc, vy + rr, vx + rs] * K[vo, rc, rr, rs]
    }
  }
  for zo in 0..$O, zh in 0..$H, zw in 0..$W {
    block Z(uo: spatial = zo, uh: spatial = zh, uw: spatial = zw) {
      reads Y[uo, uh, uw]; writes Z[uo, uh, uw]
      Z[uo, uh, uw] = max(Y[uo, uh, uw], 0f32)
    }
  }
})";

const char kSoftmax[] = R"(
func @f(A: f32[$M, $N], out D: f32[$M, $N]) {
  alloc mx: f32[$M] in global
  alloc ex: f32[$M, $N] in global
  alloc sm: f32[$M] in global
  for i in 0..$M, j in 0..$N {
    block mx(vi: spatial = i, vj: reduce = j) {
      reads A[vi, vj]; writes mx[vi]
      init { mx[vi] = -inf.f32 }
      mx[vi] = max(mx[vi], A[vi, vj])
    }
  }
  for ei in 0..$M, ej in 0..$N {
    block ex(ui: spatial = ei, uj: spatial = ej) {
      reads A[ui, uj], mx[ui]; writes ex[ui, uj]
      ex[ui, uj] = A[ui, uj] - mx[ui]
    }
  }
  for si in 0..$M, sj in 0..$N {
    block sm(wi: spatial = si, wj: reduce = sj) {
      reads ex[wi, wj]; writes sm[wi]
      init { sm[wi] = 0f32 }
      sm[wi] = sm[wi] + ex[wi, wj]
    }
  }
  for di in 0..$M, dj in 0..$N {
    block D(xi: spatial = di, xj: spatial = dj) {
      reads ex[xi, xj], sm[xi]; writes D[xi, xj]
      D[xi, xj] = ex[xi, xj] * sm[xi]
    }
  }
})";

const char kRowSum[] = R"(
func @f(A: f32[$M, $N], out S: f32[$M]) {
  for i in 0..$M, j in 0..$N {
    block S(vi: spatial = i, vj: reduce = j) {
      reads A[vi, vj]; writes S[vi]
      init { S[vi] = 3f32 }
      S[vi] = S[vi] + A[vi, vj]
    }
  }
})";

const char kScan[] = R"(
func @f(A: f32[$M, $N], out P: f32[$M, $N]) {
  for t in 0..$M, i in 0..$N {
    block P(vt: ordered = t, vi: spatial = i) {
      reads A[vt, vi], P[max(vt - 1, 0), vi]; writes P[vt, vi]
      P[vt, vi] = A[vt, vi] + select(vt > 0, P[vt - 1, vi], 0f32)
    }
  }
})";

const char kStencil[] = R"(
func @f(A: f32[$M + 2, $N + 2], out D: f32[$M, $N]) {
  alloc T: f32[$M + 2, $N + 2] in global
  for p in 0..$M + 2, q in 0..$N + 2 {
    block T(vp: spatial = p, vq: spatial = q) {
      reads A[vp, vq]; writes T[vp, vq]
      T[vp, vq] = A[vp, vq] * A[vp, vq]
    }
  }
  for i in 0..$M, j in 0..$N {
    block D(vi: spatial = i, vj: spatial = j) {
      reads T[vi..+3, vj..+3]; writes D[vi, vj]
      D[vi, vj] = T[vi, vj + 1] + T[vi + 1, vj] + T[vi + 1, vj + 1] + T[vi + 1, vj + 2] + T[vi + 2, vj + 1]
    }
  }
})";

const char kIntSum[] = R"(
func @f(A: i32[$M, $N], out S: i32[$M], out X: i32[$M]) {
  for i in 0..$M, j in 0..$N {
    block S(vi: spatial = i, vj: reduce = j) {
      reads A[vi, vj]; writes S[vi]
      init { S[vi] = 0i32 }
      S[vi] = S[vi] + A[vi, vj]
    }
  }
  for x in 0..$M, y in 0..$N {
    block X(vx: spatial = x, vy: reduce = y) {
      reads A[vx, vy]; writes X[vx]
      init { X[vx] = -100i32 }
      X[vx] = max(X[vx], A[vx, vy])
    }
  }
})";

const char kPipe[] = R"(
func @f(A: f32[$M * 4], out D: f32[$M * 4]) {
  alloc B: f32[$M * 4] in global
  alloc C: f32[$M * 4] in global
  for t in 0..$M {
    for b in 0..4 {
      block B(vb: spatial in 0..$M * 4 = t * 4 + b) {
        reads A[vb]; writes B[vb]
        B[vb] = A[vb] * 2f32
      }
    }
    for c in 0..4 {
      block C(vc: spatial in 0..$M * 4 = t * 4 + c) {
        reads B[vc]; writes C[vc]
        C[vc] = B[vc] + 1f32
      }
    }
    for d in 0..4 {
      block D(vd: spatial in 0..$M * 4 = t * 4 + d) {
        reads C[vd]; writes D[vd]
        D[vd] = C[vd] * C[vd]
      }
    }
  }
})";

const char kTileMatmul[] = R"(
func @mma2<a, b, c>(A: f32[2, 2] strides (a, 1), B: f32[2, 2] strides (b, 1), out C: f32[2, 2] strides (c, 1)) kind device {
  for i in 0..2, j in 0..2, k in 0..2 {
    block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) {
      reads A[vi, vk], B[vk, vj], C[vi, vj]; writes C[vi, vj]
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    }
  }
}
func @f(A: f32[$M, $K], B: f32[$K, $N], out C: f32[$M, $N]) {
  for i in 0..$M, j in 0..$N, k in 0..$K {
    block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) fp: contract {
      reads A[vi, vk], B[vk, vj]; writes C[vi, vj]
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    }
  }
})";

const char kTileChain[] = R"(
func @twice2(X: f32[2], out Y: f32[2]) kind device {
  for i in 0..2 {
    block Y(vi: spatial = i) {
      reads X[vi]; writes Y[vi]
      Y[vi] = X[vi] * 2f32
    }
  }
}
func @f(A: f32[$M, $N], out D: f32[$M, $N]) {
  alloc T: f32[$M, $N] in global
  for i in 0..$M, j in 0..$N {
    block T(vi: spatial = i, vj: spatial = j) {
      reads A[vi, vj]; writes T[vi, vj]
      T[vi, vj] = A[vi, vj] * 2f32
    }
  }
  for x in 0..$M, y in 0..$N {
    block D(vx: spatial = x, vy: spatial = y) {
      reads T[vx, vy], A[vx, vy]; writes D[vx, vy]
      D[vx, vy] = T[vx, vy] + A[vx, vy]
    }
  }
})";

const char kMatmulRelu[] = R"(
func @f(A: f32[$M, $K], B: f32[$K, $N], bias: f32[$N], out D: f32[$M, $N]) {
  alloc C: f32[$M, $N] in global
  for i in 0..$M, j in 0..$N, k in 0..$K {
    block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) fp: contract {
      reads A[vi, vk], B[vk, vj], bias[vj]; writes C[vi, vj]
      init { C[vi, vj] = bias[vj] }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    }
  }
  for x in 0..$M, y in 0..$N {
    block D(vx: spatial = x, vy: spatial = y) {
      reads C[vx, vy]; writes D[vx, vy]
      D[vx, vy] = max(C[vx, vy], 0f32)
    }
  }
})";

const char kBatchMatmul[] = R"(
func @f(A: f32[$B, $M, $K], W: f32[$B, $N, $K], out C: f32[$B, $M, $N]) {
  for b in 0..$B, i in 0..$M, j in 0..$N, k in 0..$K {
    block C(vb: spatial = b, vi: spatial = i, vj: spatial = j, vk: reduce = k) fp: reassoc {
      reads A[vb, vi, vk], W[vb, vj, vk]; writes C[vb, vi, vj]
      init { C[vb, vi, vj] = 0f32 }
      C[vb, vi, vj] = C[vb, vi, vj] + A[vb, vi, vk] * W[vb, vj, vk]
    }
  }
})";

const char kArgMax[] = R"(
func @f(A: f32[$M, $N], out I: i32[$M], out V: f32[$M]) {
  for i in 0..$M, j in 0..$N {
    block V(vi: spatial = i, vj: reduce = j) reducer: argmax {
      reads A[vi, vj]; writes I[vi], V[vi]
      init {
        I[vi] = 2147483647i32
        V[vi] = -inf.f32
      }
      I[vi] = select(A[vi, vj] > V[vi], i32(vj), select(A[vi, vj] == V[vi], min(I[vi], i32(vj)), I[vi]))
      V[vi] = max(V[vi], A[vi, vj])
    }
  }
})";

const char kTuple[] = R"(
func @f(A: f32[$M, $N], out D: f32[$M]) {
  alloc S: f32[$M] in global
  alloc X: f32[$M] in global
  for i in 0..$M, j in 0..$N {
    block SX(vi: spatial = i, vj: reduce = j) {
      reads A[vi, vj]; writes S[vi], X[vi]
      init {
        S[vi] = 0f32
        X[vi] = -inf.f32
      }
      S[vi] = S[vi] + A[vi, vj]
      X[vi] = max(X[vi], A[vi, vj])
    }
  }
  for d in 0..$M {
    block D(vd: spatial = d) {
      reads S[vd], X[vd]; writes D[vd]
      D[vd] = S[vd] + X[vd]
    }
  }
})";

const char kProduct[] = R"(
func @f(A: f32[$M, $N], out D: f32[$M]) {
  alloc P: f32[$M] in global
  alloc Q: f32[$M] in global
  for i in 0..$M, j in 0..$N {
    block P(vi: spatial = i, vj: reduce = j) fp: reassoc {
      reads A[vi, vj]; writes P[vi]
      init { P[vi] = 1f32 }
      P[vi] = P[vi] * A[vi, vj]
    }
  }
  for x in 0..$M, y in 0..$N {
    block Q(vx: spatial = x, vy: reduce = y) {
      reads A[vx, vy]; writes Q[vx]
      init { Q[vx] = inf.f32 }
      Q[vx] = min(Q[vx], A[vx, vy])
    }
  }
  for d in 0..$M {
    block D(vd: spatial = d) {
      reads P[vd], Q[vd]; writes D[vd]
      D[vd] = select(Q[vd] < P[vd], Q[vd], P[vd])
    }
  }
})";

const char kTranspose[] = R"(
func @f(A: f32[$M, $N], out D: f32[$N, $M]) {
  alloc T: f32[$N, $M] in global
  for i in 0..$M, j in 0..$N {
    block T(vi: spatial = i, vj: spatial = j) {
      reads A[vi, vj]; writes T[vj, vi]
      T[vj, vi] = A[vi, vj]
    }
  }
  for x in 0..$N, y in 0..$M {
    block D(vx: spatial = x, vy: spatial = y) {
      reads T[vx, vy], A[vy, vx]; writes D[vx, vy]
      D[vx, vy] = T[vx, vy] * 2f32 + A[vy, vx]
    }
  }
})";

const char kScanAndUse[] = R"(
func @f(A: f32[$M, $N], out D: f32[$M, $N]) {
  alloc P: f32[$M, $N] in global
  for t in 0..$M, i in 0..$N {
    block P(vt: ordered = t, vi: spatial = i) {
      reads A[vt, vi], P[max(vt - 1, 0), vi]; writes P[vt, vi]
      P[vt, vi] = A[vt, vi] + select(vt > 0, P[vt - 1, vi], 0f32)
    }
  }
  for x in 0..$M, y in 0..$N {
    block D(vx: spatial = x, vy: spatial = y) {
      reads P[vx, vy], P[$M - 1, vy]; writes D[vx, vy]
      D[vx, vy] = P[vx, vy] * 2f32 + P[$M - 1, vy]
    }
  }
})";

const char kTriangle[] = R"(
func @f(A: f32[$M, $M], out S: f32[$M]) {
  for i in 0..$M, j in 0..i + 1 {
    block S(vi: spatial = i, vj: reduce in 0..$M = j) {
      reads A[vi, vj]; writes S[vi]
      init { S[vi] = 0f32 }
      S[vi] = S[vi] + A[vi, vj]
    }
  }
})";

const char kPool[] = R"(
func @f(A: f32[2 * $M + 1, 2 * $N + 1], out D: f32[$M, $N]) {
  for i in 0..$M, j in 0..$N, r in 0..3, s in 0..3 {
    block D(vi: spatial = i, vj: spatial = j, vr: reduce = r, vs: reduce = s) {
      reads A[vi * 2 + vr, vj * 2 + vs]; writes D[vi, vj]
      init { D[vi, vj] = -inf.f32 }
      D[vi, vj] = max(D[vi, vj], A[vi * 2 + vr, vj * 2 + vs])
    }
  }
})";

const char kTwoWriters[] = R"(
func @f(A: f32[$M, $N], out D: f32[$M]) {
  alloc X: f32[$M] in global
  for a in 0..$M {
    block X0(va: spatial = a) {
      writes X[va]
      X[va] = 1f32
    }
  }
  for i in 0..$M, j in 0..$N {
    block X1(vi: spatial = i, vj: reduce = j) {
      reads A[vi, vj], X[vi]; writes X[vi]
      X[vi] = X[vi] + A[vi, vj] * A[vi, vj]
    }
  }
  for d in 0..$M {
    block D(vd: spatial = d) {
      reads X[vd]; writes D[vd]
      D[vd] = X[vd] * 2f32
    }
  }
})";

const char kGather[] = R"(
func @f(A: f32[$M], I: i32[$N], out D: f32[$N]) {
  alloc T: f32[$M] in global
  for t in 0..$M {
    block T(vt: spatial = t) {
      reads A[vt]; writes T[vt]
      T[vt] = A[vt] * 2f32
    }
  }
  for i in 0..$N {
    block D(vi: spatial = i) conservative {
      reads T, I[vi]; writes D[vi]
      D[vi] = T[max(min(index(I[vi]), $M - 1), 0)]
    }
  }
})";

const char kTwoConsumers[] = R"(
func @f(A: f32[$M, $N], out D: f32[$M, $N], out E: f32[$M]) {
  alloc T: f32[$M, $N] in global
  for i in 0..$M, j in 0..$N {
    block T(vi: spatial = i, vj: spatial = j) {
      reads A[vi, vj]; writes T[vi, vj]
      T[vi, vj] = A[vi, vj] + 1f32
    }
  }
  for x in 0..$M, y in 0..$N {
    block D(vx: spatial = x, vy: spatial = y) {
      reads T[vx, vy]; writes D[vx, vy]
      D[vx, vy] = T[vx, vy] * 2f32
    }
  }
  for p in 0..$M, q in 0..$N {
    block E(vp: spatial = p, vq: reduce = q) {
      reads T[vp, vq]; writes E[vp]
      init { E[vp] = 0f32 }
      E[vp] = E[vp] + T[vp, vq]
    }
  }
})";

const char kDilated[] = R"(
func @f(A: f32[$M + 3], out D: f32[$M]) {
  alloc T: f32[$M + 3] in global
  for t in 0..$M + 3 {
    block T(vt: spatial = t) {
      reads A[vt]; writes T[vt]
      T[vt] = A[vt] * 2f32
    }
  }
  for i in 0..$M {
    block D(vi: spatial = i) {
      reads T[vi], T[vi + 3]; writes D[vi]
      D[vi] = T[vi] + T[vi + 3]
    }
  }
})";

const char kDepthwise[] = R"(
func @f(X: f32[$C, 2 * $M + 1], K: f32[$C, 3], out D: f32[$C, $M]) {
  alloc Y: f32[$C, $M] in global
  for c in 0..$C, i in 0..$M, r in 0..3 {
    block Y(vc: spatial = c, vi: spatial = i, vr: reduce = r) fp: contract {
      reads X[vc, vi * 2 + vr], K[vc, vr]; writes Y[vc, vi]
      init { Y[vc, vi] = 0f32 }
      Y[vc, vi] = Y[vc, vi] + X[vc, vi * 2 + vr] * K[vc, vr]
    }
  }
  for d in 0..$C, e in 0..$M {
    block D(vd: spatial = d, ve: spatial = e) {
      reads Y[vd, ve]; writes D[vd, ve]
      D[vd, ve] = max(Y[vd, ve], 0f32)
    }
  }
})";

const char kGuarded[] = R"(
func @f(A: f32[$M], out D: f32[$M]) {
  for i in 0..($M + 2) / 3, j in 0..3 {
    block D(vi: spatial in 0..$M = i * 3 + j) where i * 3 + j < $M {
      reads A[vi]; writes D[vi]
      D[vi] = A[vi] * 2f32 + 1f32
    }
  }
})";

}  // namespace tenon::test
