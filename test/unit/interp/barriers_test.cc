// Barriers, copies that complete on them, and roles: what they order, and each report.
#include "copies.h"

namespace tenon {
namespace {

using test::Has;

constexpr char kFetch[] = R"(
func @fetch(M: f32[4], out T: f32[4] in shared, out done: u64[1] in barrier, row: index, column: index) kind device {async: "bulk"} {
  for i in 0..4 { T[i] = M[i] }
}
func @ready(out b: u64[1] in barrier, arrivals: index) kind device {async: "init"} { }
)";

// Two warps: the body, or the report. C gets what A holds in the order that the body makes of it.
std::string ResultOf(const std::string& body, const char* ready = "1", const char* turns = "32") {
  const std::string start =
      "alloc S: f32[2, 4] in shared\nalloc full: u64[2] in barrier\nalloc empty: u64[2] in "
      "barrier\n"
      "if t == 0 {\nfor s in 0..2 {\ncall @ready(full[s..+1]; " +
      std::string(ready) + ")\ncall @ready(empty[s..+1]; " + turns + ")\n}\n}\nsync cta\n";
  return test::ResultOf(kFetch, 64, start + body);
}

// Four pieces of four elements through a ring of two; the last but one and the last stay.
std::string Ring(const std::string& wait_empty, const std::string& wait_full,
                 const std::string& arrive) {
  return "roles {\nrole consume size 1 {\nfor k in 0..4 {\n" + wait_full +
         "\nif t < 4 { C[k % 2 * 4 + t] = S[k % 2, 3 - t] }\n" + arrive +
         "\n}\n}\nrole produce size 1 {\nif t == 32 {\nfor k in 0..4 {\n" + wait_empty +
         "\nexpect full[k % 2], 16\n" +
         "call @fetch(A[k * 4..+4], S[k % 2, 0..4], full[k % 2..+1]; 0, k * 4)\n}\n}\n}\n}\n";
}
constexpr char kWaitEmpty[] = "wait empty[k % 2], (k / 2 + 1) % 2";
constexpr char kWaitFull[] = "wait full[k % 2], k / 2 % 2";
constexpr char kArrive[] = "arrive empty[k % 2]";

TEST(Barriers, ARingBetweenRoles) {
  EXPECT_EQ(ResultOf(Ring(kWaitEmpty, kWaitFull, kArrive)), "11 10 9 8 15 14 13 12 ");
}

TEST(Barriers, ReadsBeforeTheWaitAreReported) {
  const std::string report = ResultOf(Ring(kWaitEmpty, "", kArrive));
  EXPECT_TRUE(Has(report, "is read while a copy to it is under way") || Has(report, "race: S[") ||
              Has(report, "is read before it is written"))
      << report;
}

// The wait is for the phase before.
TEST(Barriers, ReadsBehindTheWrongPhaseAreReported) {
  const std::string report =
      ResultOf(Ring(kWaitEmpty, "wait full[k % 2], (k / 2 + 1) % 2", kArrive));
  EXPECT_TRUE(Has(report, "under way") || Has(report, "before it is written") ||
              Has(report, "race: S[") || Has(report, "deadlock"))
      << report;
}

TEST(Barriers, TilesThatAreStillReadAreNotCopiedTo) {
  const std::string report = ResultOf(Ring("", kWaitFull, kArrive));
  EXPECT_TRUE(Has(report, "full[0]: more threads arrive in a phase than end it")) << report;
}

// Only one thread says that it is done, for all.
TEST(Barriers, WhoArrivesSpeaksForItself) {
  const std::string body = Ring(kWaitEmpty, kWaitFull, "if t == 0 { arrive empty[k % 2] }");
  const std::string report = ResultOf(body, "1", "1");
  EXPECT_TRUE(Has(report, "race: T[0] is written by thread 32 of block 0 and was read by"))
      << report;
}

TEST(Barriers, DeadlocksAreReported) {
  const std::string report = ResultOf(Ring(kWaitEmpty, kWaitFull, ""));
  EXPECT_TRUE(Has(report, "deadlock: thread 0 of block 0 waits for full[0] to end its phase"))
      << report;
  EXPECT_TRUE(Has(report, "1 arrivals and 0 bytes are missing")) << report;
}

TEST(Barriers, MoreArrivalsThanAnnounced) {
  const std::string report = ResultOf("if t < 3 { arrive full[0] }\n", "1", "1");
  // Each ends a phase: nothing is wrong with that.
  EXPECT_EQ(report, "-1 -1 -1 -1 -1 -1 -1 -1 ");
  const std::string bytes = ResultOf("if t < 2 { expect full[0], 16 }\n", "1", "1");
  EXPECT_TRUE(Has(bytes, "more threads arrive in a phase than end it")) << bytes;
}

TEST(Barriers, BlocksDoNotEndBeforeTheirCopies) {
  const std::string body =
      "if t == 0 {\nexpect full[0], 16\ncall @fetch(A[0..4], S[0, 0..4], full[0..1]; 0, 0)\n}\n";
  EXPECT_TRUE(Has(ResultOf(body), "is still copied to when its block of threads ends"))
      << ResultOf(body);
}

TEST(Barriers, MustBeReady) {
  const std::string text =
      "func @f(out C: f32[1]) target \"cuda\" {bound: 1} {\nfor t in 0..1 thread threadIdx.x {\n"
      "alloc full: u64[1] in barrier\narrive full[0]\n}\n}\n";
  auto module = ParseModule(text, "test");
  ASSERT_TRUE(module);
  std::vector<InterpArg> args{InterpArg::Output(DType::Float(32), {1})};
  Status status = InterpretOrders(*module, "f", args);
  ASSERT_FALSE(status);
  EXPECT_TRUE(Has(ToString(status.errors()), "full[0] is used before it is made ready"));
}

}  // namespace
}  // namespace tenon
