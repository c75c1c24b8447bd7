// Operations that the lanes of a warp do together: what they mean, and each report.
#include <gtest/gtest.h>

#include "interp/interp.h"
#include "loop/parse.h"
#include "support/has.h"

namespace tenon {
namespace {

using test::Has;

// Two rows of 32 from shared memory, and the sum of each lane's pair; a lane has a column.
constexpr char kOperations[] = R"(
func @fetch(M: f32[2, 32] in shared align 16, out T: f32[2, 32] layout (i, j) -> (j on threadIdx.x, i) in fragment) kind device {
  for i in 0..2, j in 0..32 { T[i, j] = M[i, j] }
}
func @twice(out T: f32[2, 32] layout (i, j) -> (j on threadIdx.x, i) in fragment) kind device {
  for i in 0..2, j in 0..32 { T[i, j] = T[i, j] + T[1 - i, 31 - j] }
}
)";

std::string ReportOf(const std::string& body, int threads = 32) {
  const std::string text = std::string(kOperations) +
                           "func @f(out C: f32[64]) target \"cuda\" {bound: 1} {\n  for t in 0.." +
                           std::to_string(threads) + " thread threadIdx.x {\n" + body + "}\n}\n";
  auto module = ParseModule(text, "test");
  EXPECT_TRUE(module) << (module ? "" : ToString(module.errors()));
  std::vector<InterpArg> args{
      InterpArg::Tensor(DType::Float(32), {64}, std::vector<double>(64, 0))};
  Status status = InterpretOrders(*module, "f", args);
  if (!status) return ToString(status.errors());
  std::string out;
  for (int64_t i : {0, 1, 31, 32, 63}) out += std::to_string(int64_t(args[0].Get(i))) + " ";
  return out;
}

constexpr char kShared[] =
    "alloc S: f32[2, 32] in shared\nS[0, t] = f32(t)\nS[1, t] = f32(t * 100)\n";
constexpr char kFragment[] =
    "alloc F: f32[2, 32] layout (i, j) -> (j on threadIdx.x, i) in fragment\n";
constexpr char kResult[] = "C[t] = F[0, t]\nC[t + 32] = F[1, t]\n";

// Its own elements come from every lane; written in order, so that the second row sees the first.
TEST(Warp, LanesDoItTogether) {
  const std::string body = std::string(kShared) + "sync cta\n" + kFragment + "call @fetch(S, F)\n";
  EXPECT_EQ(ReportOf(body + kResult), "0 1 31 0 3100 ");
  EXPECT_EQ(ReportOf(body + "call @twice(F)\n" + kResult), "3100 3001 31 31 6200 ");
}

// After flatten_storage each lane has its registers in a buffer of its own.
TEST(Warp, RegistersAreInTheOrderOfTheParameter) {
  const std::string body = std::string(kShared) +
                           "sync cta\nalloc F: f32[4] in register\ncall @fetch(S, F[2..4])\n"
                           "C[t] = F[2]\nC[t + 32] = F[3]\n";
  EXPECT_EQ(ReportOf(body), "0 1 31 0 3100 ");
}

TEST(Warp, ReadsForAllLanes) {
  const std::string report =
      ReportOf(std::string(kShared) + kFragment + "call @fetch(S, F)\n" + kResult);
  EXPECT_TRUE(Has(report, "race: M[")) << report;
}

TEST(Warp, ElementsLieInTheirLane) {
  const std::string report =
      ReportOf(std::string(kFragment) + "F[0, 31 - t] = 1f32\nC[t] = F[0, 31 - t]\n");
  EXPECT_TRUE(Has(report, "F[0, 31] lies in lane 31 and is touched by lane 0")) << report;
}

TEST(Warp, AllLanesMustCome) {
  std::string report = ReportOf(std::string(kShared) + "sync cta\n" + kFragment +
                                "if t < 16 { call @fetch(S, F) }\n");
  EXPECT_TRUE(Has(report, "call of fetch: 16 of the 32 threads of block 0 wait")) << report;
  report = ReportOf(
      std::string(kShared) + "sync cta\n" + kFragment + "call @fetch(S, F)\n" + kResult, 16);
  EXPECT_TRUE(Has(report, "call of fetch in a warp of 16 threads, expected 32")) << report;
}

TEST(Warp, AllLanesPassTheSame) {
  const std::string report =
      ReportOf("alloc S: f32[64, 32] in shared\nfor i in 0..64 { S[i, t] = 1f32 }\nsync cta\n" +
               std::string(kFragment) + "call @fetch(S[t..+2, 0..32], F)\n" + kResult);
  EXPECT_TRUE(Has(report, "the lanes of a warp pass different parts of M")) << report;
}

TEST(Warp, OperandsAreAligned) {
  const std::string report = ReportOf(
      "alloc S: f32[4, 31] in shared\nfor i in 0..4 { if t < 31 { S[i, t] = 1f32 } }\n"
      "sync cta\n" +
      std::string(kFragment) + "call @fetch(S[1..+2, 0..32], F)\n" + kResult);
  EXPECT_TRUE(Has(report, "M is at an address that is no multiple of 16")) << report;
}

}  // namespace
}  // namespace tenon
