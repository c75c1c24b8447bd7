// Blocks that wait for each other, of a cluster and of a cooperative launch, and launches that
// begin before those that they depend on have ended: right ones under every order, and each report.
#include <gtest/gtest.h>

#include "interp/interp.h"
#include "support/has.h"
#include "unit/interp/support.h"

namespace tenon {
namespace {

using test::Has;

std::string Kernel(const std::string& attrs, const std::string& body) {
  return "func @f(A: f32[8], out C: f32[8]) target \"cuda\" {bound: 1" + attrs + "} {\n" + body +
         "}\n";
}

/// What is wrong in some order of threads and blocks; "" where C is A backwards.
std::string ReportOf(const std::string& text) {
  std::vector<InterpArg> args{
      InterpArg::Tensor(DType::Float(32), {8}, std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}),
      InterpArg::Output(DType::Float(32), {8})};
  Status status = InterpretOrders(Parse(text), "f", args);
  if (!status) return ToString(status.errors());
  for (int64_t i = 0; i < 8; ++i) {
    if (args[1].Get(i) != static_cast<double>(7 - i)) return "C is another";
  }
  return "";
}

constexpr char kCooperative[] = ", cooperative: true";

// 4 blocks of 2 threads hand over through global memory, before and behind `sync`.
std::string Backwards(const std::string& sync) {
  return R"(
  for b in 0..4 thread blockIdx.x {
    for t in 0..2 thread threadIdx.x {
      alloc G: f32[8] in global
      G[b * 2 + t] = A[b * 2 + t]
      )" +
         sync +
         R"(
      C[b * 2 + t] = G[7 - (b * 2 + t)]
    }
  }
)";
}

// The same in 2 clusters of 2, which have the halves of A.
std::string InClusters(const std::string& sync, const std::string& from) {
  return R"(
  for g in 0..2 thread blockIdx.x {
    for c in 0..2 thread clusterCtaIdx.x {
      for t in 0..2 thread threadIdx.x {
        alloc G: f32[8] in global
        G[g * 4 + c * 2 + t] = A[4 - g * 4 + c * 2 + t]
        )" +
         sync +
         R"(
        C[g * 4 + c * 2 + t] = G[)" +
         from + R"( + 3 - (c * 2 + t)]
      }
    }
  }
)";
}

TEST(Meeting, AllBlocksOfACooperativeLaunch) {
  EXPECT_EQ(ReportOf(Kernel(kCooperative, Backwards("sync grid"))), "");
  EXPECT_EQ(ReportOf(Kernel(kCooperative, InClusters("sync grid", "g * 4"))), "");
}

TEST(Meeting, BlocksOfACluster) {
  EXPECT_EQ(ReportOf(Kernel("", InClusters("sync cluster", "g * 4"))), "");
}

TEST(Meeting, SeveralTimes) {
  EXPECT_EQ(ReportOf(Kernel(kCooperative, R"(
  for b in 0..8 thread blockIdx.x {
    alloc G: f32[8] in global
    alloc H: f32[8] in global
    H[b] = A[7 - b]
    for i in 0..7 {
      sync grid
      G[b] = H[(b + 1) % 8]
      sync grid
      H[b] = G[(b + 7) % 8]
    }
    sync grid
    C[(b + 3) % 8] = H[(b + 3) % 8]
  }
)")),
            "");
}

// Reports of what the barrier does not reach.
TEST(Meeting, BlocksRaceWithoutABarrierOfAll) {
  for (const char* sync : {"", "sync cta"}) {
    const std::string report = ReportOf(Kernel(kCooperative, Backwards(sync)));
    EXPECT_TRUE(Has(report, "race: G[") || Has(report, "is read before it is written")) << report;
  }
}

TEST(Meeting, ClustersRaceWithEachOther) {
  const std::string report =
      ReportOf(Kernel(kCooperative, InClusters("sync cluster", "(4 - g * 4)")));
  EXPECT_TRUE(Has(report, "race: G[") || Has(report, "is read before it is written")) << report;
}

// Two blocks have read; the one that writes has met only one of them since.
TEST(Meeting, AReaderOfAnotherClusterIsNotForgotten) {
  const std::string report = ReportOf(Kernel("", R"(
  for g in 0..2 thread blockIdx.x {
    for c in 0..2 thread clusterCtaIdx.x {
      alloc G: f32[1] in global
      C[g * 2 + c] = A[0]
      if g == 1 || c == 1 { C[4 + g * 2 + c] = C[0] }
      sync cluster
      if g == 0 && c == 0 { C[0] = A[1] }
    }
  }
)"));
  EXPECT_TRUE(Has(report, "race: C[0]")) << report;
}

TEST(Meeting, OnlyACooperativeLaunchMeetsAsAWhole) {
  EXPECT_TRUE(Has(ReportOf(Kernel("", Backwards("sync grid"))),
                  "kernel f: sync grid in a launch that is not cooperative"));
}

TEST(Meeting, ABarrierThatSomeNeverReach) {
  auto body = [](const std::string& sync) {
    return "  for g in 0..2 thread blockIdx.x {\n    for c in 0..2 thread clusterCtaIdx.x {\n"
           "      for t in 0..2 thread threadIdx.x { " +
           sync + " }\n    }\n  }\n";
  };
  EXPECT_TRUE(Has(ReportOf(Kernel(kCooperative, body("if g + c < 2 { sync grid }"))),
                  "sync grid: 6 of the 8 threads of the launch wait at a barrier that thread"));
  EXPECT_TRUE(Has(ReportOf(Kernel("", body("if t == 1 || c == 0 { sync cluster }"))),
                  "sync cluster: 3 of the 4 threads of the cluster of block"));
}

TEST(Meeting, AtDifferentBarriers) {
  const std::string report = ReportOf(
      Kernel(kCooperative, Backwards("if b == 2 && t == 0 { sync cta } else { sync grid }")));
  EXPECT_TRUE(Has(report, "sync cta: 2 of the 2 threads of block 2 wait at different barriers"))
      << report;
  const std::string launch =
      ReportOf(Kernel(kCooperative, Backwards("if b == 2 { sync grid } else { sync grid }")));
  EXPECT_TRUE(Has(launch, "sync grid: 8 of the 8 threads of the launch wait at different barriers"))
      << launch;
}

TEST(Meeting, MoreThreadsThanRunSideBySide) {
  EXPECT_TRUE(Has(ReportOf(Kernel(kCooperative, R"(
  for b in 0..1000 thread blockIdx.x {
    for t in 0..1024 thread threadIdx.x { sync grid }
  }
)")),
                  "1000 blocks of 1024 threads that wait for each other, at most"));
}

// ---- dependent launches ----

constexpr char kWait[] = "func @wait() kind device {launch_order: \"wait\"} { }\n";

TEST(DependentLaunch, TouchesWhatItAwaitsBehindItsWait) {
  const std::string body = R"(
  for b in 0..8 thread blockIdx.x {
    call @wait()
    C[b] = A[7 - b]
  }
)";
  EXPECT_EQ(ReportOf(kWait + Kernel(", awaits: [\"A\", \"C\"]", body)), "");
}

TEST(DependentLaunch, WhoIsTooEarlyIsReported) {
  const std::string body = R"(
  for b in 0..8 thread blockIdx.x {
    alloc L: f32[1] in local
    L[0] = A[7 - b]
    call @wait()
    C[b] = L[0]
  }
)";
  EXPECT_EQ(ReportOf(kWait + Kernel(", awaits: [\"C\"]", body)), "");
  EXPECT_TRUE(Has(ReportOf(kWait + Kernel(", awaits: [\"A\"]", body)),
                  "is touched before the launch before this one is waited for"));
}

}  // namespace
}  // namespace tenon
