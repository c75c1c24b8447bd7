// The interpreter, construct by construct, on programs in their text form.
#include "interp/interp.h"

#include <gtest/gtest.h>

#include "support/interp_check.h"
#include "unit/interp/support.h"

namespace tenon {
namespace {

std::vector<double> Values(const InterpArg& arg) {
  std::vector<double> out;
  for (int64_t i = 0; i < arg.num_elements(); ++i) out.push_back(arg.Get(i));
  return out;
}

std::string ErrorOf(const std::string& text, std::vector<InterpArg> args,
                    InterpOptions options = {}) {
  Status status = Interpret(Parse(text), "f", args, options);
  return status ? "" : ToString(status.errors());
}

InterpArg F32(std::vector<int64_t> shape, std::vector<double> values) {
  return InterpArg::Tensor(DType::Float(32), std::move(shape), values);
}
InterpArg Out(std::vector<int64_t> shape, DType type = DType::Float(32)) {
  return InterpArg::Output(type, std::move(shape));
}

constexpr char kMatmul[] = R"(
func @f<m>(A: f32[m, 3], B: f32[3, 2], out C: f32[m, 2]) {
  for i in 0..m, j in 0..2, k in 0..3 {
    block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) {
      reads A[vi, vk], B[vk, vj], C[vi, vj]; writes C[vi, vj]
      init { C[vi, vj] = 0f32 }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    }
  }
}
)";

TEST(Interp, BlocksWithInit) {
  std::vector<InterpArg> args{F32({2, 3}, {1, 2, 3, 4, 5, 6}), F32({3, 2}, {1, 0, 0, 1, 1, 1}),
                              Out({2, 2})};
  Status status = Interpret(Parse(kMatmul), "f", args);
  ASSERT_TRUE(status) << ToString(status.errors());
  EXPECT_EQ(Values(args[2]), (std::vector<double>{4, 5, 10, 11}));
}

TEST(Interp, ZeroRows) {
  std::vector<InterpArg> args{F32({0, 3}, {}), F32({3, 2}, {1, 0, 0, 1, 1, 1}), Out({0, 2})};
  EXPECT_TRUE(Interpret(Parse(kMatmul), "f", args));
}

TEST(Interp, LayoutsHoldLogicalValues) {
  Module m = Parse(R"(
func @f(A: f32[5], out C: f32[5] layout (i) -> (i % 2, i / 2)) {
  for i in 0..5 { C[i] = A[i] * 2f32 }
})");
  std::vector<InterpArg> args{F32({5}, {1, 2, 3, 4, 5}), Out({5})};
  Status status = Interpret(m, "f", args);
  ASSERT_TRUE(status) << ToString(status.errors());
  EXPECT_EQ(Values(args[1]), (std::vector<double>{2, 4, 6, 8, 10}));
}

TEST(Interp, VectorsMasksAndSelect) {
  Module m = Parse(R"(
func @f<n>(A: f32[n], out C: f32[n]) {
  for i in 0..(n + 3) / 4 {
    C[ramp(i * 4, 1, 4) where ramp(i * 4, 1, 4) < broadcast(n, 4)] =
      A[ramp(i * 4, 1, 4) where ramp(i * 4, 1, 4) < broadcast(n, 4)] + broadcast(1f32, 4)
  }
})");
  for (int64_t n : {0, 1, 3, 4, 5, 7}) {
    std::vector<double> in, want;
    for (int64_t i = 0; i < n; ++i)
      in.push_back(static_cast<double>(i)), want.push_back(static_cast<double>(i + 1));
    std::vector<InterpArg> args{F32({n}, in), Out({n})};
    Status status = Interpret(m, "f", args);
    ASSERT_TRUE(status) << ToString(status.errors());
    EXPECT_EQ(Values(args[1]), want);
  }
}

TEST(Interp, SelectGuardsLoads) {
  Module m = Parse(R"(
func @f(A: f32[4], out C: f32[6]) {
  for i in 0..6 { C[i] = select(i < 4, A[i], 9f32) }
})");
  std::vector<InterpArg> args{F32({4}, {1, 2, 3, 4}), Out({6})};
  ASSERT_TRUE(Interpret(m, "f", args));
  EXPECT_EQ(Values(args[1]), (std::vector<double>{1, 2, 3, 4, 9, 9}));
}

TEST(Interp, CallsPassRegions) {
  Module m = Parse(R"(
func @g(A: f32[2, 2] strides (4, 1), out C: f32[2, 2] strides (4, 1)) kind device {
  for i in 0..2, j in 0..2 { C[i, j] = A[i, j] + 1f32 }
}
func @f(A: f32[4, 4], out C: f32[4, 4]) {
  for i in 0..2, j in 0..2 {
    call @g(A[i * 2..+2, j * 2..+2], C[i * 2..+2, j * 2..+2])
  }
})");
  std::vector<double> in, want;
  for (int i = 0; i < 16; ++i) in.push_back(i), want.push_back(i + 1);
  std::vector<InterpArg> args{F32({4, 4}, in), Out({4, 4})};
  Status status = Interpret(m, "f", args);
  ASSERT_TRUE(status) << ToString(status.errors());
  EXPECT_EQ(Values(args[1]), want);
}

constexpr char kTeam[] = R"(
func @k<n>(A: f32[n], out T: f32[n], out C: f32[n]) {
  for i in n * team_rank<index>() / team_size<index>()..n * (team_rank<index>() + 1) / team_size<index>() { T[i] = A[i] * 2f32 }
  sync team
  for i in n * team_rank<index>() / team_size<index>()..n * (team_rank<index>() + 1) / team_size<index>() { C[i] = T[n - 1 - i] }
}
func @f<n>(A: f32[n], out T: f32[n], out C: f32[n]) kind host {
  launch @k(A, T, C; n) on host
  return 0i32
}
)";

TEST(Interp, TeamsMeetAtBarriers) {
  Module m = Parse(kTeam);
  for (int team : {1, 2, 3, 8}) {
    for (uint64_t seed : {0, 1, 2}) {
      InterpOptions options;
      options.team_size = team;
      options.seed = seed;
      std::vector<InterpArg> args{F32({5}, {1, 2, 3, 4, 5}), Out({5}), Out({5})};
      Status status = Interpret(m, "f", args, options);
      ASSERT_TRUE(status) << ToString(status.errors());
      EXPECT_EQ(Values(args[2]), (std::vector<double>{10, 8, 6, 4, 2}));
    }
  }
}

TEST(Interp, MissingBarrierIsReported) {
  std::string text = kTeam;
  text.erase(text.find("  sync team\n"), 12);
  InterpOptions options;
  options.team_size = 2;
  std::string error = ErrorOf(text, {F32({5}, {1, 2, 3, 4, 5}), Out({5}), Out({5})}, options);
  EXPECT_TRUE(error.find("before it is written") != std::string::npos ||
              error.find("race") != std::string::npos)
      << error;
}

TEST(Interp, UnmetBarrierIsReported) {
  InterpOptions options;
  options.team_size = 2;
  std::string error =
      ErrorOf("func @f(out C: f32[1]) { if team_rank<index>() == 0 { sync team\n C[0] = 1f32 } }",
              {Out({1})}, options);
  EXPECT_NE(error.find("1 of 2 workers wait"), std::string::npos) << error;
}

TEST(Interp, ReportsWhatAMachineWouldNot) {
  auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(ErrorOf("func @f(out C: f32[2]) { C[2] = 1f32 }", {Out({2})}),
      "access of C[2] is out of bounds: its shape is [2]");
  has(ErrorOf("func @f(out C: f32[2]) { C[0] = 1f32 }", {Out({2})}),
      "element 1 of C is never written");
  has(ErrorOf("func @f(out C: f32[1]) { alloc t: f32[3] in local\n C[0] = t[1] }", {Out({1})}),
      "t[1] is read before it is written");
  has(ErrorOf("func @f(out C: f32[1]) { C[4 / (3 - 3)] = 1f32 }", {Out({1})}),
      "index division by zero");
  has(ErrorOf("func @f(out C: f32[1]) { for i in 0..2 { block b(v: spatial in 0..1 = i) { writes "
              "C[v]\n C[v] = 1f32 } } }",
              {Out({1})}),
      "block b: v = 1 is outside its domain 0..1");
  InterpOptions short_run;
  short_run.max_steps = 1000;
  has(ErrorOf("func @f(out C: f32[1]) { while true { C[0] = 1f32 } }", {Out({1})}, short_run),
      "more than 1000 steps");
  InterpOptions small;
  small.max_bytes = 100;
  has(ErrorOf("func @f(out C: f32[1]) { alloc t: f32[26] in local\n C[0] = 1f32 }", {Out({1})},
              small),
      "more than 100 bytes for t");
  has(ErrorOf(
          "func @f<n>(A: f32[n], out C: f32[1]) { assert n == 2, \"ValueError\", \"got n=\", n\n "
          "C[0] = 1f32 }",
          {F32({3}, {1, 2, 3}), Out({1})}),
      "ValueError: got n=3");
  has(ErrorOf("func @f(out C: f32[1]) { for i in 0..1 thread threadIdx.x { sync cta } }",
              {Out({1})}),
      "unsupported: sync cta");
}

// Without a sync inside, threads are independent iterations: another order, the same result.
TEST(Interp, ThreadAxes) {
  Module m = Parse(R"(
func @f(A: f32[8], out C: f32[8]) {
  for b in 0..2 thread blockIdx.x {
    for t in 0..4 thread threadIdx.x { C[b * 4 + t] = A[b * 4 + t] + 1f32 }
  }
})");
  for (uint64_t seed : {0, 1, 2}) {
    InterpOptions options;
    options.seed = seed;
    std::vector<InterpArg> args{F32({8}, {0, 1, 2, 3, 4, 5, 6, 7}), Out({8})};
    Status status = Interpret(m, "f", args, options);
    ASSERT_TRUE(status) << ToString(status.errors());
    EXPECT_EQ(Values(args[1]), (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}));
  }
}

TEST(Interp, BindsAndPointers) {
  Module m = Parse(R"(
func @f(A: f32[4], out C: f32[4], workspace: handle) {
  bind w: f32[4] = ptr_offset(workspace, 16)
  for i in 0..4 { w[i] = A[i] }
  for i in 0..4 { C[i] = ptr_load<f32>(workspace, 16 + i * 4) }
})");
  std::vector<InterpArg> args{F32({4}, {1, 2, 3, 4}), Out({4}), InterpArg::Memory(32)};
  Status status = Interpret(m, "f", args);
  ASSERT_TRUE(status) << ToString(status.errors());
  EXPECT_EQ(Values(args[1]), (std::vector<double>{1, 2, 3, 4}));
  args[2] = InterpArg::Memory(31);
  args[1] = Out({4});
  EXPECT_FALSE(Interpret(m, "f", args));
}

TEST(Interp, ExternFunctionsComeFromATable) {
  Module m = Parse(R"(
func @f(out C: i64[1], x: i64) {
  extern<i32>("note", "hello", x)
  C[0] = x
})");
  std::vector<int64_t> seen;
  InterpOptions options;
  options.functions["note"] = [&](std::span<const InterpScalar> args) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): scalars carry pointers as numbers
    EXPECT_STREQ(reinterpret_cast<const char*>(args[0].i), "hello");
    seen.push_back(args[1].i);
    return InterpScalar{seen.size() == 1 ? 0 : -1, 0};
  };
  std::vector<InterpArg> args{Out({1}, DType::Int(64)), InterpArg::Int(7)};
  Status status = Interpret(m, "f", args, options);
  EXPECT_TRUE(status) << ToString(status.errors());
  EXPECT_EQ(seen, std::vector<int64_t>{7});
  EXPECT_FALSE(Interpret(m, "f", args, options));
}

TEST(Interp, DataTypes) {
  Module m = Parse(R"(
func @f(A: i8[4], out B: i8[4], out C: u8[4], out D: f16[4], out E: bf16[4], out G: bool[4], out H: i8[4]) {
  for i in 0..4 {
    B[i] = A[i] / 3i8
    C[i] = u8(A[i]) + 250u8
    D[i] = f16(f32(A[i]) / 3f32)
    E[i] = bf16(f32(A[i]) / 3f32)
    G[i] = bool(A[i])
    H[i] = A[i] % 3i8
  }
})");
  std::vector<InterpArg> args{
      InterpArg::Tensor(DType::Int(8), {4}, std::vector<double>{-7, 0, 7, 100})};
  for (DType t : {DType::Int(8), DType::UInt(8), DType::Float(16), DType::BFloat16(), DType::Bool(),
                  DType::Int(8)}) {
    args.push_back(Out({4}, t));
  }
  Status status = Interpret(m, "f", args);
  ASSERT_TRUE(status) << ToString(status.errors());
  EXPECT_EQ(Values(args[1]), (std::vector<double>{-2, 0, 2, 33}));
  EXPECT_EQ(Values(args[2]), (std::vector<double>{243, 250, 1, 94}));
  EXPECT_EQ(Values(args[3]), (std::vector<double>{-2.333984375, 0, 2.333984375, 33.34375}));
  EXPECT_EQ(Values(args[4]), (std::vector<double>{-2.328125, 0, 2.328125, 33.25}));
  EXPECT_EQ(Values(args[5]), (std::vector<double>{1, 0, 1, 1}));
  EXPECT_EQ(Values(args[6]), (std::vector<double>{-1, 0, 1, 1}));
}

TEST(Interp, CopiesRegions) {
  Module m = Parse(R"(
func @f(A: f32[3, 4], out C: f32[2, 2]) { copy C[0..2, 0..2] from A[1..3, 2..4] })");
  std::vector<double> in;
  for (int i = 0; i < 12; ++i) in.push_back(i);
  std::vector<InterpArg> args{F32({3, 4}, in), Out({2, 2})};
  Status status = Interpret(m, "f", args);
  ASSERT_TRUE(status) << ToString(status.errors());
  EXPECT_EQ(Values(args[1]), (std::vector<double>{6, 7, 10, 11}));
}

TEST(InterpCheck, ComparesFunctions) {
  Module tiled = Parse(R"(
func @f<m>(A: f32[m, 3], B: f32[3, 2], out C: f32[m, 2]) {
  for j in 0..2 parallel {
    for io in 0..(m + 3) / 4, ii in 0..4 {
      if io * 4 + ii < m { C[io * 4 + ii, j] = 0f32 }
      for k in 0..3 {
        block C(vi: spatial in 0..m = io * 4 + ii, vj: spatial in 0..2 = j, vk: reduce in 0..3 = k) where io * 4 + ii < m {
          reads A[vi, vk], B[vk, vj], C[vi, vj]; writes C[vi, vj]
          C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
        }
      }
    }
  }
})");
  Module plain = Parse(kMatmul);
  std::vector<testing::Dims> sizes{{{"m", 0}}, {{"m", 1}}, {{"m", 3}},
                                   {{"m", 4}}, {{"m", 5}}, {{"m", 13}}};
  EXPECT_TRUE(testing::SameResultsAt(plain, tiled, "f", sizes));
  Module wrong = Parse(std::string(kMatmul).replace(std::string(kMatmul).find("0f32"), 4, "1f32"));
  EXPECT_FALSE(testing::SameResults(plain, wrong, "f", {{"m", 3}}));
}

}  // namespace
}  // namespace tenon
