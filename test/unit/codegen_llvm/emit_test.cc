// What is asked of the emitted code as a whole: registers, determinism, parts, data, errors,
// messages.
#include <bit>
#include <regex>
#include <sstream>

#include "differential.h"
#include "loop/parse.h"
#include "loop/pass/math/expand_math.h"
#include "not_lowered.h"
#include "support/gemm_ir.h"
#include "tenon/kernel_abi.h"

namespace tenon {
namespace {

using codegen::EmitAssembly;
using codegen::EmitObject;
using codegen::EmitOptions;
using test::Compiled;
using test::Kernel;

const DType kF32 = DType::Float(32);
using Kernel3 = void(const float*, const float*, float*);

Module One(Func f) {
  Module m;
  m.Add(std::move(f));
  return m;
}

// The lines of the innermost loop that holds FMAs: from its label to the backward jump.
std::vector<std::string> FmaLoop(const std::string& assembly) {
  std::vector<std::string> lines, loop;
  std::istringstream in(assembly);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  for (size_t end = 0; end < lines.size(); ++end) {
    std::smatch m;
    if (!std::regex_search(lines[end], m, std::regex(R"(\tj\w+\t(\.LBB\w+))"))) continue;
    for (size_t start = 0; start < end; ++start) {
      if (lines[start].find(m[1].str() + ":") != 0) continue;
      std::vector<std::string> body(lines.begin() + static_cast<int64_t>(start),
                                    lines.begin() + static_cast<int64_t>(end));
      const bool fma = std::any_of(body.begin(), body.end(), [](const std::string& s) {
        return s.find("vfmadd") != std::string::npos;
      });
      if (fma && (loop.empty() || body.size() < loop.size())) loop = body;
    }
  }
  return loop;
}

TEST(MicroKernel, KLoopKeepsEverythingInRegisters) {
  struct {
    const char* target;
    int32_t lanes;
    int64_t mr, nr;
  } cases[] = {{"llvm -mcpu=x86-64-v4", 16, 12, 32}, {"llvm -mcpu=x86-64-v4", 16, 14, 32},
               {"llvm -mcpu=x86-64-v4", 16, 6, 64},  {"llvm -mcpu=x86-64-v4", 16, 9, 48},
               {"llvm -mcpu=x86-64-v3", 8, 6, 16},   {"llvm -mcpu=x86-64-v3", 8, 4, 24}};
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("{} {}x{}", c.target, c.mr, c.nr));
    auto target = Target::Parse(c.target);
    ASSERT_TRUE(target) << ToString(target.errors());
    auto text =
        EmitAssembly(One(test::GemmMicroKernel("kernel", c.mr, c.nr, c.lanes)), *target, {});
    ASSERT_TRUE(text) << ToString(text.errors());
    const auto loop = FmaLoop(*text);
    int64_t fmas = 0, loads = 0;
    for (const std::string& line : loop) {
      EXPECT_EQ(line.find("%rsp"), std::string::npos) << line;
      EXPECT_EQ(line.find("%rbp"), std::string::npos) << line;
      fmas += line.find("vfmadd") != std::string::npos;
      loads += line.find('(') != std::string::npos;
    }
    EXPECT_EQ(fmas, c.mr * c.nr / c.lanes);
    // One load per vector of B, one broadcast per row of A (and an address or two).
    EXPECT_LE(loads, c.mr + c.nr / c.lanes + 4);
    EXPECT_LE(static_cast<int64_t>(loop.size()), fmas + c.mr + c.nr / c.lanes + 12);
  }
}

// What follows a product may read its sums under a condition, beside memory that must not be read
// where the condition fails: the sums stay in registers all the same.
TEST(MicroKernel, SumsThatAConditionReadsStayInRegisters) {
  auto module = ParseModule(R"(func @kernel(x: f32[64], r: f32[16], out y: f32[16]) {
  alloc t: f32[16] in register
  t[ramp(0, 1, 16)] = broadcast(0f32, 16)
  for k in 0..4 {
    t[ramp(0, 1, 16)] = t[ramp(0, 1, 16)] + x[ramp(k * 16, 1, 16)]
  }
  y[ramp(0, 1, 16)] = select(t[ramp(0, 1, 16)] < broadcast(0f32, 16), broadcast(0f32, 16), t[ramp(0, 1, 16)] + r[ramp(0, 1, 16)])
})");
  ASSERT_TRUE(module) << ToString(module.errors());
  const Target target = *Target::Parse("llvm -mcpu=x86-64-v4");
  auto text = codegen::EmitLlvm(*module, target, {});
  ASSERT_TRUE(text) << ToString(text.errors());
  EXPECT_EQ(text->find("alloca"), std::string::npos) << *text;
  // Memory is guarded still.
  EXPECT_NE(text->find("masked.load"), std::string::npos) << *text;
}

// What is read next is asked into the nearest cache, what is read later into the second.
TEST(Prefetch, SaysWhereTo) {
  auto module = ParseModule(R"(func @kernel(x: f32[64], out y: f32[16]) {
  prefetch<i32>(x[0], 0)
  prefetch<i32>(y[0], 1)
  prefetch<i32>(x[32], 2)
})");
  ASSERT_TRUE(module) << ToString(module.errors());
  auto text = codegen::EmitLlvm(*module, *Target::Parse("llvm -mcpu=x86-64-v3"), {});
  ASSERT_TRUE(text) << ToString(text.errors());
  for (const char* hint : {"i32 0, i32 3, i32 1)", "i32 1, i32 3, i32 1)", "i32 0, i32 2, i32 1)"})
    EXPECT_NE(text->find(hint), std::string::npos) << hint << "\n" << *text;
}

// Lanes at small known distances are picked from vectors; what is far apart, or apart by a
// remainder that is not known, is gathered.
TEST(Emit, LanesNearEachOtherAreNotGathered) {
  const std::pair<const char*, bool> cases[] = {
      {"ramp(i * 32, 2, 16)", false},
      {"ramp(i * 48 + 1, 3, 16)", false},
      {"ramp(i * 16, 1, 16) / broadcast(2, 16)", false},
      {"broadcast(i * 3, 16) + ramp(0, 1, 16) % broadcast(5, 16)", false},
      {"ramp(i, 1, 16) / broadcast(2, 16)", true},
      {"ramp(i * 144, 9, 16)", true},
  };
  for (const auto& [index, gathers] : cases) {
    auto module =
        ParseModule(fmt::format("func @kernel(x: f32[n], out y: f32[16], n: index, i: index) {{\n  "
                                "y[ramp(0, 1, 16)] = x[{}]\n}}",
                                index));
    ASSERT_TRUE(module) << ToString(module.errors());
    auto text = codegen::EmitLlvm(*module, *Target::Parse("llvm -mcpu=x86-64-v4"), {});
    ASSERT_TRUE(text) << ToString(text.errors());
    EXPECT_EQ(text->find("masked.gather") != std::string::npos, gathers) << index << "\n" << *text;
  }
}

// Several selects in each other say the same load and the same branch again and again (what is
// rounded, and rounded again): each is there once, without a mask where no mask is around it.
TEST(Emit, WhatAConditionHasReadIsNotReadAgain) {
  const std::string x = "select(which < 3, f32(a[ramp(0, 1, 16)]), f32(b[ramp(0, 1, 16)]))";
  const std::string low = "select(" + x + " < broadcast(0f32, 16), broadcast(0f32, 16), " + x + ")";
  const std::string high =
      "select(" + low + " > broadcast(9f32, 16), broadcast(9f32, 16), " + low + ")";
  auto module = ParseModule(
      "func @kernel(a: i8[16], b: i8[16], out y: f32[16], which: index) {\n  y[ramp(0, 1, 16)] = " +
      high + "\n}");
  ASSERT_TRUE(module) << ToString(module.errors());
  auto text = codegen::EmitLlvm(*module, *Target::Parse("llvm -mcpu=x86-64-v4"), {});
  ASSERT_TRUE(text) << ToString(text.errors());
  EXPECT_EQ(text->find("masked.load"), std::string::npos) << *text;
  size_t branches = 0;
  for (size_t at = 0; (at = text->find("br i1", at)) != std::string::npos; ++at) ++branches;
  EXPECT_LE(branches, 1u) << *text;
}

// Nobody reads what is in y before it is written over; z is elsewhere.
TEST(Emit, WhatIsWrittenOverIsNotWritten) {
  auto module =
      ParseModule(R"(func @kernel(x: f32[3], out y: f32[1], out z: f32[1]) {noalias: true} {
  y[0] = x[0]
  z[0] = x[1]
  y[0] = x[2]
})");
  ASSERT_TRUE(module) << ToString(module.errors());
  auto text = codegen::EmitLlvm(*module, *Target::Parse("llvm -mcpu=x86-64-v3"), {});
  ASSERT_TRUE(text) << ToString(text.errors());
  size_t stores = 0;
  for (size_t at = 0; (at = text->find("store float", at)) != std::string::npos; ++at) ++stores;
  EXPECT_EQ(stores, 2u) << *text;
}

// The running maximum that starts from a number is one, whatever it meets: the machine's
// instruction does. One that starts from what somebody gave may be none.
TEST(Emit, TheMaximumOfANumberAsksForNoNan) {
  const char* const text = R"(
func @f(A: f32[640], B: f32[16], out C: f32[1]) {{exported: true}} {{
  alloc m: f32[16] in register
  m[ramp(0, 1, 16)] = {}
  for k in 0..40 {{
    m[ramp(0, 1, 16)] = max(m[ramp(0, 1, 16)], A[ramp(k * 16, 1, 16)])
  }}
  C[0] = reduce_max<f32>(m[ramp(0, 1, 16)])
}}
)";
  const auto assembly = [&](const char* first) {
    return EmitAssembly(ParseModule(fmt::format(fmt::runtime(text), first)).value(),
                        Target::Parse("llvm -mcpu=x86-64-v4").value(), {})
        .value();
  };
  const std::string number = assembly("broadcast(-inf.f32, 16)");
  EXPECT_EQ(number.find("unord"), std::string::npos) << number;
  EXPECT_NE(number.find("vmaxps"), std::string::npos) << number;
  const std::string given = assembly("B[ramp(0, 1, 16)]");
  EXPECT_NE(given.find("unord"), std::string::npos) << given;

  std::vector<float> a(640, -3), b(16, std::nanf("")), c(1);
  a[17] = a[600] = std::nanf("");
  a[333] = 5;
  for (const char* first : {"broadcast(-inf.f32, 16)", "B[ramp(0, 1, 16)]"}) {
    const Module m = ParseModule(fmt::format(fmt::runtime(text), first)).value();
    Compiled(m).Get<Kernel3>("f")(a.data(), b.data(), c.data());
    EXPECT_EQ(c[0], 5) << first;
  }
  const std::vector<float> none(640, std::nanf(""));
  const Module m = ParseModule(fmt::format(fmt::runtime(text), "broadcast(-inf.f32, 16)")).value();
  Compiled(m).Get<Kernel3>("f")(none.data(), b.data(), c.data());
  EXPECT_EQ(c[0], -std::numeric_limits<float>::infinity());
}

// Where a condition says where its argument lies, an exponential has no ends, and scales once.
TEST(Emit, AnExponentialInBoundsHasNoEnds) {
  const Target target = Target::Parse("llvm -mcpu=x86-64-v4").value();
  PassContext context;
  context.target = &target;
  const auto assembly = [&](const char* value) {
    const std::string text = fmt::format(
        "func @f(A: f32[16], out C: f32[16]) {{exported: true}} {{\n  C[ramp(0, 1, 16)] = {}\n}}\n",
        value);
    const Module m = ExpandMath(ParseModule(text).value(), context);
    return EmitAssembly(m, target, {}).value();
  };
  const std::string bounded = assembly(
      "select(-abs(A[ramp(0, 1, 16)]) < broadcast(-87f32, 16), broadcast(0f32, 16), "
      "exp(-abs(A[ramp(0, 1, 16)])))");
  const std::string any = assembly("exp(A[ramp(0, 1, 16)])");
  for (const char* instruction : {"\tvmaxps", "\tvminps", "\tvpsrld"}) {
    EXPECT_EQ(bounded.find(instruction), std::string::npos) << bounded;
    EXPECT_NE(any.find(instruction), std::string::npos) << any;
  }
}

TEST(MicroKernel, ComputesTheProduct) {
  const Target host = Target::Host();
  const int32_t lanes = host.VectorLanes(32);
  for (int64_t k : {0, 1, 2, 17}) {
    const int64_t mr = 3, nr = 2 * lanes;
    const Compiled code(One(test::GemmMicroKernel("kernel", mr, nr, lanes)));
    // Panels are aligned to 64 bytes by contract; their sizes are multiples of it or their ends
    // unguarded.
    auto* a = static_cast<float*>(
        std::aligned_alloc(64, static_cast<size_t>(k * mr * 4 / 64 * 64 + 128)));
    auto* b = static_cast<float*>(std::aligned_alloc(64, static_cast<size_t>(k * nr * 4 + 64)));
    for (int64_t i = 0; i < k * mr; ++i) a[i] = static_cast<float>(i % 5 - 2);
    for (int64_t i = 0; i < k * nr; ++i) b[i] = static_cast<float>(i % 7 - 3);
    test::GuardedBuffer<float> c(static_cast<size_t>(mr * nr));
    code.Get<void(const float*, const float*, float*, int64_t, int64_t)>("kernel")(a, b, c.data(),
                                                                                   k, nr);
    for (int64_t m = 0; m < mr; ++m) {
      for (int64_t n = 0; n < nr; ++n) {
        float want = 0;
        for (int64_t x = 0; x < k; ++x) want += a[x * mr + m] * b[x * nr + n];
        ASSERT_EQ(c[static_cast<size_t>(m * nr + n)], want) << m << ", " << n;
      }
    }
    std::free(a);
    std::free(b);
  }
}

TEST(Emit, EqualInputsGiveEqualBytes) {
  const Target host = Target::Host();
  auto make = [&] {
    return *EmitObject(One(test::GemmMicroKernel("kernel", 6, 32, 16)), host, {});
  };
  EXPECT_EQ(make(), make());
}

TEST(Emit, PartsLinkTogether) {
  PrimFunc d;
  d.name = "twice";
  d.func_kind = FuncKind::kDevice;
  Buffer x = test::FlatBuffer("x", kF32, IndexConst(1));
  d.buffers = {x};
  d.num_outputs = 1;
  d.body = Store::Make(x, {IndexConst(0)}, Load::Make(x, {IndexConst(0)}) * MakeConst(kF32, 2));
  Module m = One(PrimFunc::Make(d));
  m.Add(Kernel("f", {kF32}, [](const auto& b, Expr) {
    return CallFunc::Make(
        "twice", {RegionNode::Make(b[0], {RangeNode::Make(IndexConst(1), IndexConst(1))})}, {});
  }));
  EmitOptions first, second;
  first.functions = {"f"};
  second.functions = {"twice"};
  second.blobs.push_back({"tn_cpu_required", std::string("\0", 1), 1, false, false});
  auto a = EmitObject(m, Target::Host(), first), b = EmitObject(m, Target::Host(), second);
  ASSERT_TRUE(a && b);
  auto library =
      artifact::LoadTemporaryLibrary({{"a.o", *a}, {"b.o", *b}}, {"f"}, Target::Host().triple());
  ASSERT_TRUE(library) << ToString(library.errors());
  float v[2] = {3, 4};
  reinterpret_cast<void (*)(float*, int64_t)>(library->Find("f"))(v, 2);
  EXPECT_EQ(v[0], 3);
  EXPECT_EQ(v[1], 8);
}

std::string ErrorOf(const Module& m) {
  auto object = EmitObject(m, Target::Host(), {});
  return object ? "" : ToString(object.errors());
}

TEST(Emit, WhatIsNotLoweredIsADiagnostic) {
  auto kernel = [](auto f) { return One(Kernel("f", {kF32}, f)); };
  test::ExpectNotLowered([&](const auto& body) { return ErrorOf(kernel(body)); });
  auto store = [](const auto& b, Expr v) {
    return Store::Make(b[0], {IndexConst(0)}, std::move(v));
  };
  auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(ErrorOf(
          kernel([&](const auto&, Expr n) { return Assert::Make(Lt(n, n), "ValueError", {}); })),
      "assert in a function that cannot fail");
  has(ErrorOf(kernel([&](const auto& b, Expr) {
        return store(b, Load::Make(b[0], {IndexConst(0)}) % MakeConst(kF32, 2));
      })),
      "remainder of floats");
  const auto all =
      EmitObject(kernel([&](const auto& b, Expr) {
                   return Seq::Make({store(b, Call::Make(Intrinsic::kExp, {MakeConst(kF32, 1)})),
                                     store(b, Call::Make(Intrinsic::kTanh, {MakeConst(kF32, 1)}))});
                 }),
                 Target::Host(), {});
  EXPECT_EQ(all.errors().size(), 2u);  // several per run
}

// A host function over a closure: an assertion becomes the thread's error and the status; C is
// called by name.
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
      {StringConst::Make("value "), value, StringConst::Make(" of "), MakeConst(kF32, 2.5)});
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
  outer.body =
      Seq::Make({Evaluate::Make(Call::Make(Intrinsic::kExtern, run, DType::Int(32))),
                 Evaluate::Make(Call::Make(Intrinsic::kPtrStore,
                                           {c2, IndexConst(24), MakeIntConst(DType::Int(64), 7)},
                                           DType::Int(32)))});
  Module m = One(PrimFunc::Make(body));
  m.Add(PrimFunc::Make(outer));
  auto object = EmitObject(m, Target::Host(), {});
  ASSERT_TRUE(object) << ToString(object.errors());
  auto library = artifact::LoadTemporaryLibrary(
      {{"t.o", *object}}, {"body", "outer", TN_QUERY_SYMBOL}, Target::Host().triple());
  ASSERT_TRUE(library) << ToString(library.errors());
  const auto* info = reinterpret_cast<tn_query_fn>(library->Find(TN_QUERY_SYMBOL))();
  auto call = [&](const char* name, int64_t* data) {
    return reinterpret_cast<int32_t (*)(void*, int32_t, int32_t, void*)>(library->Find(name))(
        data, 0, 1, nullptr);
  };
  int64_t good[4] = {0, 41, 0, 0};
  EXPECT_EQ(call("outer", good), 0);
  EXPECT_EQ(good[2], 42);
  EXPECT_EQ(good[3], 7);
  int64_t failing[4] = {5, 1, 0, 0};
  EXPECT_EQ(call("outer", failing), 5);
  EXPECT_EQ(failing[3], 0);
  int64_t bad[4] = {0, 123, 0, 0};
  EXPECT_EQ(call("body", bad), -1);
  EXPECT_EQ(bad[2], 0);
  const char* kind = nullptr;
  EXPECT_STREQ(info->last_error(&kind), "value 123 of 2.5");
  EXPECT_STREQ(kind, "IndexError");
}

// A message of few values goes out by one call, one of many by a copy of its parts.
TEST(Host, MessagesHaveTheirValues) {
  for (const int64_t values : {0, 1, 3, 4, 6}) {
    PrimFunc f;
    f.name = "f";
    f.func_kind = FuncKind::kHost;
    const Var closure = VarNode::Make("closure", DType::Handle());
    f.scalars = {closure};
    f.attrs.Set("exported", true);
    std::vector<Expr> parts = {StringConst::Make("of "), IndexConst(values)};
    std::string want = "of " + std::to_string(values);
    for (int64_t i = 0; i < values; ++i) {
      parts.push_back(StringConst::Make(i % 2 == 0 ? ", " : "; "));
      const bool is_float = i == 2;
      parts.push_back(Call::Make(Intrinsic::kPtrLoad, {closure, IndexConst(8 * i)},
                                 is_float ? DType::Float(64) : DType::Int(64)));
      want += (i % 2 == 0 ? ", " : "; ") + (is_float ? "2.5" : std::to_string(10 * i - 3));
    }
    const Expr first = Call::Make(Intrinsic::kPtrLoad, {closure, IndexConst(0)}, DType::Int(64));
    f.body =
        Seq::Make({Assert::Make(Lt(MakeIntConst(DType::Int(64), 100), first), "ValueError", parts),
                   Return::Make(MakeIntConst(DType::Int(32), 0))});
    auto object = EmitObject(One(PrimFunc::Make(f)), Target::Host(), {});
    ASSERT_TRUE(object) << ToString(object.errors());
    auto library = artifact::LoadTemporaryLibrary({{"t.o", *object}}, {"f", TN_QUERY_SYMBOL},
                                                  Target::Host().triple());
    ASSERT_TRUE(library) << ToString(library.errors());
    const auto* info = reinterpret_cast<tn_query_fn>(library->Find(TN_QUERY_SYMBOL))();
    int64_t data[6] = {-3, 7, std::bit_cast<int64_t>(2.5), 27, 37, 47};
    const auto call =
        reinterpret_cast<int32_t (*)(void*, int32_t, int32_t, void*)>(library->Find("f"));
    EXPECT_EQ(call(data, 0, 1, nullptr), -1);
    const char* kind = nullptr;
    EXPECT_EQ(info->last_error(&kind), want);
    EXPECT_STREQ(kind, "ValueError");
  }
}

TEST(Kernels, TeamsMeetAtBarriers) {
  // Each worker writes its element; after the barrier rank 0 adds up what the others wrote.
  PrimFunc f;
  f.name = "body";
  f.func_kind = FuncKind::kHost;
  Var closure = VarNode::Make("closure", DType::Handle());
  f.scalars = {closure};
  f.attrs.Set("exported", true);
  const DType i64 = DType::Int(64);
  Buffer slots = BufferNode::Make("slots", i64, {IndexConst(64)});
  Expr rank = Call::Make(Intrinsic::kTeamRank, {}, DType::Index());
  Expr size = Call::Make(Intrinsic::kTeamSize, {}, DType::Index());
  Var i = VarNode::Make("i");
  Expr total = Load::Make(slots, {IndexConst(63)});
  Stmt add = For::Make(i, IndexConst(0), size, ForKind::kSerial,
                       Store::Make(slots, {IndexConst(63)}, total + Load::Make(slots, {i})));
  f.body = Bind::Make(
      slots, closure,
      Seq::Make({Store::Make(slots, {rank}, CastExpr::Make(i64, rank + 1)),
                 Sync::Make(Level::kTeam),
                 If::Make(Eq(rank, IndexConst(0)),
                          Seq::Make({add, CallFunc::Make("alone", {Whole(slots)}, {})}))}));
  // What worker 0 calls there sees no team.
  PrimFunc alone;
  alone.name = "alone";
  alone.func_kind = FuncKind::kKernel;
  Buffer out = BufferNode::Make("out", i64, {IndexConst(64)});
  alone.buffers = {out};
  alone.num_outputs = 1;
  alone.body = Seq::Make(
      {Sync::Make(Level::kTeam), Store::Make(out, {IndexConst(62)}, CastExpr::Make(i64, size))});
  PrimFunc run;
  run.name = "run";
  run.func_kind = FuncKind::kHost;
  Var c = VarNode::Make("c", DType::Handle());
  run.scalars = {c};
  run.attrs.Set("exported", true);
  std::vector<Expr> args = {StringConst::Make("tn_core_run_team"), StringConst::Make("@body"), c,
                            MakeIntConst(DType::Int(32), 2)};
  run.body = Evaluate::Make(Call::Make(Intrinsic::kExtern, args, DType::Int(32)));
  Module m = One(PrimFunc::Make(f));
  m.Add(PrimFunc::Make(run));
  m.Add(PrimFunc::Make(alone));
  Compiled code(m);
  auto* go = code.Get<int32_t(void*, int32_t, int32_t, void*)>("run");
  for (int repeat = 0; repeat < 100; ++repeat) {
    int64_t data[64] = {};
    ASSERT_EQ(go(data, 0, 1, nullptr), 0);
    const int64_t workers = data[1] == 0 ? 1 : 2;
    ASSERT_EQ(data[63], workers == 1 ? 1 : 3);
    ASSERT_EQ(data[62], 1);
  }
}

TEST(Emit, OtherMachines) {
  for (const char* name : {"llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72",
                           "llvm -mtriple=wasm32-unknown-unknown"}) {
    auto target = Target::Parse(name);
    ASSERT_TRUE(target) << ToString(target.errors());
    auto object = EmitObject(
        One(test::Elementwise("f", {kF32}, kF32, 4,
                              [](const auto& a) { return Max(a[0], MakeConst(a[0]->dtype, 0)); })),
        *target, {});
    EXPECT_TRUE(object) << name << ": " << ToString(object.errors());
  }
}

}  // namespace
}  // namespace tenon
