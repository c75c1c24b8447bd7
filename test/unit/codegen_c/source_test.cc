// What is asked of emitted C as a whole: determinism, names, guards, errors, what only C can do.
#include <cmath>

#include "differential.h"
#include "not_lowered.h"

namespace tenon {
namespace {

using codegen::EmitC;
using test::Compiled;
using test::Elementwise;
using test::ExpectSame;
using test::Kernel;

const DType kF32 = DType::Float(32);

Module One(Func f) {
  Module m;
  m.Add(std::move(f));
  return m;
}

std::string TextOf(const Module& m) { return EmitC(m, test::TargetC(), {}).value(); }

std::string ErrorOf(const Module& m) {
  auto text = EmitC(m, test::TargetC(), {});
  return text ? "" : ToString(text.errors());
}

TEST(Source, EqualInputsGiveEqualBytes) {
  auto make = [] {
    return TextOf(
        One(Elementwise("f", {kF32}, kF32, 4, [](const auto& a) { return a[0] * a[0]; })));
  };
  EXPECT_EQ(make(), make());
}

// The text itself, behind what every file begins with: lanes, a tail under a mask, a shared value.
TEST(Source, ReadsLikeC) {
  const std::string text = TextOf(One(Elementwise("f", {kF32}, kF32, 4, [](const auto& a) {
    Expr square = a[0] * a[0];
    return Max(square, square + MakeConst(a[0]->dtype, 1.5));
  })));
  EXPECT_EQ(text.substr(text.find("static inline")),
            R"(static inline float tn_max_f32(float a, float b) {
  return a > b || b != b ? a : b;
}

TN_EXPORT void f(const float* b0, float* b1, int64_t n) {
  const int64_t t0 = (n + 3) / 4;
  for (int64_t i = 0; i < t0; ++i) {
    float v1[4];
    for (int64_t lane = 0; lane < 4; ++lane) {
      const int64_t t2 = i * 4 + lane;
      const bool t3 = t2 < n;
      const float t4 = t3 ? b0[t2] : 0.0f;
      const float t5 = t4 * t4;
      v1[lane] = tn_max_f32(t5, t5 + 1.5f);
    }
    for (int64_t lane = 0; lane < 4; ++lane) {
      const int64_t t6 = i * 4 + lane;
      const bool t7 = t6 < n;
      if (t7) b1[t6] = v1[lane];
    }
  }
}
)");
}

// Names that C has taken, names of nothing that C allows, and one name in several places.
TEST(Source, NamesDoNotClash) {
  Module m;
  PrimFunc f;
  f.name = "f";
  f.attrs.Set("exported", true);
  Var n = VarNode::Make("int");
  f.dims = {n}, f.dim_lo = {0}, f.dim_hi = {-1}, f.dim_step = {1};
  Buffer in = BufferNode::Make("x.0", kF32, {n}), out = BufferNode::Make("t0", kF32, {n});
  f.buffers = {in, out};
  f.num_outputs = 1;
  auto loop = [&](const char* name, auto value) {
    Var i = VarNode::Make(name), twice = VarNode::Make("t1", kF32);
    Expr x = Load::Make(in, {i});
    Expr shared = x * x;
    return For::Make(i, IndexConst(0), n, ForKind::kSerial,
                     Let::Make(twice, shared + shared, Store::Make(out, {i}, value(twice, i))));
  };
  f.body = Seq::Make({loop("memcpy", [](Expr v, Expr) { return v; }),
                      loop("tn_i", [&](Expr v, Expr i) { return v + Load::Make(out, {i}); })});
  m.Add(PrimFunc::Make(f));
  Compiled code(m);
  ExpectSame(m, code, "f",
             {InterpArg::Tensor(kF32, {5}, std::vector<double>{1, 2, 3, 4, 5}),
              InterpArg::Output(kF32, {5})},
             1, {5});
}

// A lane must not read what a lane before it has written.
TEST(Source, VectorsAreReadBeforeTheyAreWritten) {
  constexpr int32_t kLanes = 4;
  Module m = One(Kernel("f", {kF32, kF32}, [](const auto& b, Expr) {
    Expr low = Ramp::Make(IndexConst(0), IndexConst(1), kLanes);
    Expr next = Ramp::Make(IndexConst(1), IndexConst(1), kLanes);
    return Store::Make(b[1], {next}, Load::Make(b[1], {low}));
  }));
  Compiled code(m);
  auto sequence = InterpArg::Tensor(kF32, {5}, std::vector<double>{1, 2, 3, 4, 5});
  ExpectSame(m, code, "f", {sequence, sequence}, 1, {5});
  // The same through two names of one place.
  std::vector<float> x = {1, 2, 3, 4, 5};
  Module two = One(Kernel("g", {kF32, kF32}, [](const auto& b, Expr) {
    Expr at = Ramp::Make(IndexConst(0), IndexConst(1), kLanes);
    return Store::Make(b[1], {at}, Load::Make(b[0], {at}));
  }));
  Compiled(two).Get<void(float*, float*, int64_t)>("g")(x.data(), x.data() + 1, 4);
  EXPECT_EQ(x, (std::vector<float>{1, 1, 2, 3, 4}));
}

TEST(Source, RemaindersOfFloatsAndIntegerPowers) {
  const DType f64 = DType::Float(64), i16 = DType::Int(16), u8 = DType::UInt(8);
  Module m;
  auto remainder = [](const auto& a) { return a[0] % a[1]; };
  auto power = [](const auto& a) { return Call::Make(Intrinsic::kPow, {a[0], a[1]}); };
  for (DType t : {kF32, f64}) m.Add(Elementwise("rem_" + t.ToString(), {t, t}, t, 3, remainder));
  for (DType t : {i16, u8, DType::Int(64)}) {
    m.Add(Elementwise("power_" + t.ToString(), {t, t}, t, 1, power));
  }
  Compiled code(m);
  constexpr int64_t kCount = 97;
  for (const auto& [name, func] : m.funcs) {
    const DType t = func->buffers[0]->dtype;
    ExpectSame(m, code, name,
               {InterpArg::Tensor(t, {kCount}, test::EdgeValues(t, kCount, 1)),
                InterpArg::Tensor(t, {kCount}, test::EdgeValues(t, kCount, 2)),
                InterpArg::Output(t, {kCount})},
               2, {kCount});
  }
}

// Where nothing says otherwise, a product is rounded before it is added; `contract` lets it be
// fused.
TEST(Source, ContractionIsAsked) {
  auto kernel = [](FpMode mode) {
    return One(Kernel("f", {kF32, kF32}, [&](const auto& b, Expr n) {
      Var i = VarNode::Make("i");
      Expr x = Load::Make(b[0], {i});
      Block block;
      block.name = "sum";
      block.fp = mode;
      block.body = Store::Make(b[1], {i}, x * x - Load::Make(b[1], {i}));
      return For::Make(i, IndexConst(0), n, ForKind::kSerial, Block::Make(block));
    }));
  };
  EXPECT_EQ(TextOf(kernel(FpMode::kStrict)).find("muladd"), std::string::npos);
  EXPECT_NE(TextOf(kernel(FpMode::kContract)).find("tn_muladd_f32"), std::string::npos);
  // (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 exactly, and 0 once the square is rounded.
  const float x = 1 + 0x1p-12f;
  for (size_t turn = 0; turn < test::Compilers().size(); ++turn) {
    float in[1] = {x}, out[1] = {1 + 0x1p-11f};
    Compiled(kernel(FpMode::kStrict)).Get<void(float*, float*, int64_t)>("f")(in, out, 1);
    EXPECT_EQ(out[0], 0);
    out[0] = 1 + 0x1p-11f;
    Compiled(kernel(FpMode::kContract)).Get<void(float*, float*, int64_t)>("f")(in, out, 1);
    EXPECT_TRUE(out[0] == 0 || out[0] == 0x1p-24f);
  }
}

// One worker: rank 0 of 1, barriers do nothing, atomics are plain.
TEST(Source, PrefetchesSayWhereTo) {
  const std::string text = TextOf(One(Kernel("f", {kF32, kF32}, [&](const auto& b, Expr) {
    std::vector<Stmt> hints;
    for (const int64_t purpose : {0, 1, 2}) {
      hints.push_back(Evaluate::Make(
          Call::Make(Intrinsic::kPrefetch,
                     {Load::Make(b[0], {IndexConst(0)}), MakeIntConst(DType::Int(32), purpose)},
                     DType::Int(32))));
    }
    return Seq::Make(hints);
  })));
  for (const char* hint : {", 0, 3);", ", 1, 3);", ", 0, 2);"})
    EXPECT_NE(text.find(hint), std::string::npos) << hint << "\n" << text;
}

TEST(Source, ATeamOfOne) {
  Module m = One(Kernel("f", {kF32}, [](const auto& b, Expr n) {
    Expr rank = Call::Make(Intrinsic::kTeamRank, {}, DType::Index());
    Expr size = Call::Make(Intrinsic::kTeamSize, {}, DType::Index());
    Expr one = CastExpr::Make(kF32, rank + size);
    return Seq::Make(
        {Sync::Make(Level::kTeam),
         Atomic::Make(BinaryOp::kAdd, b[0], {n - 1}, one, MemoryOrder::kRelaxed, Level::kGrid),
         Atomic::Make(BinaryOp::kMax, b[0], {IndexConst(0)}, one, MemoryOrder::kRelaxed,
                      Level::kGrid)});
  }));
  std::vector<float> x = {-4, 5, 6};
  Compiled(m).Get<void(float*, int64_t)>("f")(x.data(), 3);
  EXPECT_EQ(x, (std::vector<float>{1, 5, 7}));
}

TEST(Source, WhatIsNotLoweredIsADiagnostic) {
  test::ExpectNotLowered([](const auto& body) { return ErrorOf(One(Kernel("f", {kF32}, body))); });
  const std::string error = ErrorOf(One(Kernel("main", {kF32}, [](const auto& b, Expr) {
    return Store::Make(b[0], {IndexConst(0)}, MakeConst(kF32, 1));
  })));
  EXPECT_NE(error.find("identifier that C does not use"), std::string::npos) << error;
}

// A host function over a closure: an assertion becomes the thread's error and the status; C is
// called by name, the core is in the text.
TEST(Host, AssertsRaiseAndStatusesTravel) {
  PrimFunc body;
  body.name = "body";
  body.func_kind = FuncKind::kHost;
  Var closure = VarNode::Make("closure", DType::Handle());
  body.scalars = {closure};
  body.attrs.Set("exported", true);
  Expr value = Call::Make(Intrinsic::kPtrLoad, {closure, IndexConst(8)}, DType::Int(64));
  Expr status = Call::Make(Intrinsic::kPtrLoad, {closure, IndexConst(0)}, DType::Int(32));
  Stmt check = Assert::Make(
      Lt(value, MakeIntConst(DType::Int(64), 100)), "IndexError",
      {StringConst::Make("value \"?\" "), value, StringConst::Make(" of "), MakeConst(kF32, 2.5)});
  Stmt mark = Evaluate::Make(
      Call::Make(Intrinsic::kPtrStore, {closure, IndexConst(16), value + 1}, DType::Int(32)));
  body.body = Seq::Make({check, mark, Return::Make(status)});
  PrimFunc outer;
  outer.name = "outer";
  outer.func_kind = FuncKind::kHost;
  Var c2 = VarNode::Make("c", DType::Handle());
  outer.scalars = {c2};
  outer.attrs.Set("exported", true);
  std::vector<Expr> run = {StringConst::Make("tn_core_run_team"), StringConst::Make("@body"), c2,
                           MakeIntConst(DType::Int(32), 1)};
  outer.body = Evaluate::Make(Call::Make(Intrinsic::kExtern, run, DType::Int(32)));
  Module m = One(PrimFunc::Make(body));
  m.Add(PrimFunc::Make(outer));
  Compiled code(m);
  auto* call = code.Get<int32_t(void*)>("outer");
  int64_t good[3] = {0, 41, 0}, failing[3] = {5, 1, 0}, bad[3] = {0, 123, 0};
  EXPECT_EQ(call(good), 0);
  EXPECT_EQ(good[2], 42);
  EXPECT_EQ(call(failing), 5);
  EXPECT_EQ(call(bad), -1);
  EXPECT_EQ(bad[2], 0);
}

}  // namespace
}  // namespace tenon
