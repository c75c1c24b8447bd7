// Asynchronous copies: withheld until their wait, and each report.
#include <gtest/gtest.h>

#include "interp/interp.h"
#include "loop/parse.h"

namespace tenon {
namespace {

constexpr char kOperations[] = R"(
func @fetch(M: f32[4], out T: f32[4] in shared) kind device {async: "copy"} {
  for i in 0..4 { T[i] = M[i] }
}
func @commit() kind device {async: "commit"} { }
func @wait0() kind device {async: "wait"} { }
func @wait1() kind device {async: "wait"} { }
)";

// What comes of two threads that copy four elements each to S, or the report.
std::string ResultOf(const std::string& body) {
  const std::string text = std::string(kOperations) +
                           "func @f(A: f32[16], out C: f32[8]) target \"cuda\" {bound: 1} {\n"
                           "  for t in 0..2 thread threadIdx.x {\n"
                           "    alloc S: f32[2, 8] in shared\n" +
                           body + "}\n}\n";
  auto module = ParseModule(text, "test");
  EXPECT_TRUE(module) << (module ? "" : ToString(module.errors()));
  std::vector<double> a;
  for (int i = 0; i < 16; ++i) a.push_back(i);
  std::vector<InterpArg> args{InterpArg::Tensor(DType::Float(32), {16}, a),
                              InterpArg::Tensor(DType::Float(32), {8}, std::vector<double>(8, -1))};
  Status status = InterpretOrders(*module, "f", args);
  if (!status) return ToString(status.errors());
  std::string out;
  for (int64_t i = 0; i < 8; ++i) out += std::to_string(static_cast<int>(args[1].Get(i))) + " ";
  return out;
}

constexpr char kFirst[] = "call @fetch(A[t * 4..+4], S[0, t * 4..+4])\ncall @commit()\n";
constexpr char kSecond[] = "call @fetch(A[t * 4 + 8..+4], S[1, t * 4..+4])\ncall @commit()\n";
// Each thread reads what the other one copied.
constexpr char kReadFirst[] = "for i in 0..4 { C[t * 4 + i] = S[0, 4 - t * 4 + i] }\n";

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Async, ArrivesByGroups) {
  const std::string one = std::string(kFirst) + "call @wait0()\nsync cta\n" + kReadFirst;
  EXPECT_EQ(ResultOf(one), "4 5 6 7 0 1 2 3 ");
  const std::string two =
      std::string(kFirst) + kSecond + "call @wait1()\nsync cta\n" + kReadFirst + "call @wait0()\n";
  EXPECT_EQ(ResultOf(two), "4 5 6 7 0 1 2 3 ");
}

TEST(Async, EarlyReadsAreReported) {
  const std::string none = std::string(kFirst) + "sync cta\n" + kReadFirst;
  EXPECT_TRUE(Has(ResultOf(none), "is read while a copy to it is under way")) << ResultOf(none);
  const std::string open = "call @fetch(A[t * 4..+4], S[0, t * 4..+4])\ncall @wait0()\nsync cta\n" +
                           std::string(kReadFirst);
  EXPECT_TRUE(Has(ResultOf(open), "is read while a copy to it is under way")) << ResultOf(open);
  // The second group may still be on its way.
  const std::string later = std::string(kFirst) + kSecond + "call @wait1()\nsync cta\n" +
                            "for i in 0..4 { C[t * 4 + i] = S[1, 4 - t * 4 + i] }\n";
  EXPECT_TRUE(Has(ResultOf(later), "is read while a copy to it is under way")) << ResultOf(later);
}

// A thread waits for its own copies; others' are there behind a barrier after their waits.
TEST(Async, OthersCopiesTakeABarrier) {
  const std::string before = std::string(kFirst) + "sync cta\ncall @wait0()\n" + kReadFirst;
  const std::string report = ResultOf(before);
  EXPECT_TRUE(Has(report, "race: S[") || Has(report, "under way")) << report;
}

TEST(Async, NobodyWritesWhereACopyGoes) {
  const std::string body = std::string(kFirst) + "S[0, t * 4] = 1f32\ncall @wait0()\n";
  EXPECT_TRUE(Has(ResultOf(body), "is written while a copy to it is under way")) << ResultOf(body);
}

}  // namespace
}  // namespace tenon
