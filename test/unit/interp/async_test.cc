// Asynchronous copies: withheld until their wait, and each report.
#include "copies.h"

namespace tenon {
namespace {

using test::Has;

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
  return test::ResultOf(kOperations, 2, "alloc S: f32[2, 8] in shared\n" + body);
}

constexpr char kFirst[] = "call @fetch(A[t * 4..+4], S[0, t * 4..+4])\ncall @commit()\n";
constexpr char kSecond[] = "call @fetch(A[t * 4 + 8..+4], S[1, t * 4..+4])\ncall @commit()\n";
// Each thread reads what the other one copied.
constexpr char kReadFirst[] = "for i in 0..4 { C[t * 4 + i] = S[0, 4 - t * 4 + i] }\n";

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
