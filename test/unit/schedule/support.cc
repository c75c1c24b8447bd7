#include "unit/schedule/support.h"

#include <random>

#include "arith/analyzer.h"
#include "ir/visit.h"

namespace tenon::test {

std::string Fill(std::string text, const std::map<std::string, int64_t>& values) {
  for (const auto& [name, value] : values) {
    std::string key = "$" + name;
    for (size_t at; (at = text.find(key)) != std::string::npos;) {
      text.replace(at, key.size(), std::to_string(value));
    }
  }
  return text;
}

Module Parse(const std::string& text) {
  Expected<Module> m = ParseModule(text, "test");
  EXPECT_TRUE(m) << (m ? "" : ToString(m.errors())) << "\n" << text;
  return m ? *m : Module();
}

namespace {

int64_t SizeOf(const Expr& e, const PrimFunc& func, const Dims& dims) {
  VarMap values;
  for (const Var& d : func.dims) {
    auto it = dims.find(d->name);
    if (it != dims.end()) values[d.get()] = IndexConst(it->second);
  }
  std::optional<int64_t> n = AsInt(Simplify(Substitute(e, values)));
  EXPECT_TRUE(n) << ToString(NodeRef(e));
  return n.value_or(0);
}

}  // namespace

std::vector<double> RunFunc(const Module& module, const std::string& name, const Dims& dims,
                            uint64_t seed, int team_size, std::string* error) {
  const Func& func = module.Find(name);
  std::mt19937 random(7);  // the same inputs whatever the seed of the run
  std::vector<InterpArg> args;
  for (size_t i = 0; i < func->buffers.size(); ++i) {
    const Buffer& b = func->buffers[i];
    std::vector<int64_t> shape;
    int64_t n = 1;
    for (const Expr& e : b->shape) {
      shape.push_back(SizeOf(e, *func, dims));
      n *= shape.back();
    }
    bool output = i + static_cast<size_t>(func->num_outputs) >= func->buffers.size();
    std::vector<double> values(static_cast<size_t>(n));
    for (double& v : values) v = static_cast<double>(random() % 9) - 4;
    args.push_back(output ? InterpArg::Output(b->dtype, shape)
                          : InterpArg::Tensor(b->dtype, shape, values));
  }
  InterpOptions options;
  options.seed = seed;
  options.team_size = team_size;
  options.dims = dims;
  Status status = Interpret(module, name, args, options);
  if (!status) {
    *error = ToString(status.errors());
    return {};
  }
  std::vector<double> out;
  for (size_t i = args.size() - static_cast<size_t>(func->num_outputs); i < args.size(); ++i) {
    for (int64_t k = 0; k < args[i].num_elements(); ++k) out.push_back(args[i].Get(k));
  }
  return out;
}

void ExpectSame(const Module& before, const Schedule& after, const Dims& dims) {
  ASSERT_TRUE(after.ok()) << ToString(after.status().errors()) << after.trace().ToString();
  std::string name = after.func()->name;
  std::string text = after.trace().ToString() + Print(after.module());
  Status valid = Verify(after.module(), Stage::kSchedulable);
  ASSERT_TRUE(valid) << ToString(valid.errors()) << text;

  Expected<Module> again = ParseModule(Print(after.module()));
  ASSERT_TRUE(again) << ToString(again.errors()) << text;
  EXPECT_TRUE(StructuralEqual(again->Find(name), after.func())) << text;

  std::string error;
  std::vector<double> want = RunFunc(before, name, dims, 0, 1, &error);
  ASSERT_EQ(error, "") << text;
  for (uint64_t seed : {0, 1, 2}) {
    std::vector<double> got = RunFunc(after.module(), name, dims, seed, 1, &error);
    ASSERT_EQ(error, "") << text;
    ASSERT_EQ(got, want) << "seed " << seed << "\n" << text;
  }

  Expected<Trace> trace = Trace::Parse(after.trace().ToString());
  ASSERT_TRUE(trace) << ToString(trace.errors()) << text;
  EXPECT_EQ(*trace, after.trace()) << text;
  Schedule replayed(before, name);
  Status status = replayed.Replay(*trace);
  ASSERT_TRUE(status) << ToString(status.errors()) << text;
  EXPECT_EQ(Print(replayed.module()), Print(after.module()));
}

void ExpectError(const Schedule& s, const std::string& part) {
  ASSERT_FALSE(s.ok()) << "expected an error that says: " << part << "\n" << Print(s.func());
  std::string all = ToString(s.status().errors());
  EXPECT_NE(all.find(part), std::string::npos) << all;
}

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

}  // namespace tenon::test
