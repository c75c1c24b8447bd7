// What was measured of an algorithm is about its schedules as they were. This test fails where an
// algorithm's schedules have changed and its epoch has not: count Algorithm::epoch up in its row,
// and put the line that the test prints into test/hashes/traces.json.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "graph/text.h"
#include "loop/print.h"
#include "plan/region.h"
#include "support/file.h"
#include "support/hash.h"
#include "tune/task.h"

namespace tenon::tune {
namespace {

// Points of a space that are looked at, evenly.
constexpr size_t kPoints = 24;

struct Site {
  const char* target;
  const char* graph;
};

constexpr const char* kV3 = "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3";
constexpr const char* kAmx = "llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids";

// With a host of its own: this machine's is part of what is printed.
constexpr const char* kGpu =
    "cuda -arch=sm_80 -host=llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3";
constexpr const char* kHopper =
    "cuda -arch=sm_90a -host=llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3";

constexpr Site kSites[] = {
    {kV3, R"(graph @g(%0 "x": f32[17, 40], %1 "w": f32[40, 70]) {
  %2: f32[17, 70] = matmul(%0, %1) "k"
  return %2 "y"
})"},
    // Panels that are larger than the nearest level.
    {kV3, R"(graph @g(%0 "x": f32[64, 640], %1 "w": f32[640, 64]) {
  %2: f32[64, 64] = matmul(%0, %1) "k"
  return %2 "y"
})"},
    {kV3, R"(graph @g(%0 "x": f32[1, 96, 12, 12], %1 "w": f32[32, 96, 3, 3]) {
  %2: f32[1, 32, 12, 12] = conv(%0, %1) {pads: [1, 1, 1, 1]} "k"
  return %2 "y"
})"},
    {kAmx, R"(graph @g(%0 "x": u8[64, 128], %1 "w": i8[128, 64]) {
  %2: i32[64, 64] = matmul(%0, %1) "k"
  return %2 "y"
})"},
    {kAmx, R"(graph @g(%0 "x": f32[64, 128], %1 "w": bf16[2, 128, 64]) {
  %2: f32[64, 64] = split_matmul(%0, %1) "k"
  return %2 "y"
})"},
    {kAmx, R"(graph @g(%0 "x": bf16[1, 64, 12, 12], %1 "w": bf16[64, 64, 3, 3]) {
  %2: bf16[1, 64, 12, 12] = conv(%0, %1) {pads: [1, 1, 1, 1]} "k"
  return %2 "y"
})"},
    {kV3, R"(graph @g(%0 "x": f32[1, 32, 12, 12], %1 "w": f32[32, 32, 3, 3]) {
  %2: f32[1, 32, 12, 12] = conv(%0, %1) {pads: [1, 1, 1, 1]} "k"
  return %2 "y"
})"},
    {kV3, R"(graph @g(%0 "x": f32[1, 32, 12, 12], %1 "w": f32[32, 32, 6, 6]) {
  %2: f32[1, 32, 12, 12] = winograd_conv(%0, %1) {pads: [1, 1, 1, 1]} "k"
  return %2 "y"
})"},
    {kV3, R"(graph @g(%0 "x": f32[1, 32, 12, 12], %1 "w": f32[32, 1, 3, 3]) {
  %2: f32[1, 32, 12, 12] = conv(%0, %1) {group: 32, pads: [1, 1, 1, 1]} "k"
  return %2 "y"
})"},
    {kV3, R"(graph @g(%0 "x": f32[1, 8, 50], %1 "w": f32[16, 8, 3]) {
  %2: f32[1, 16, 50] = conv(%0, %1) {pads: [1, 1]} "k"
  return %2 "y"
})"},
    {kV3, R"(graph @g(%0 "x": f32[1, 16, 12, 12]) {
  %1: f32[1, 16, 6, 6] = max_pool(%0) {kernel: [2, 2], strides: [2, 2]} "k"
  return %1 "y"
})"},
    {kV3, R"(graph @g(%0 "x": f32[1, 64, 28, 28]) {
  %1: f32[1, 64, 1, 1] = reduce(%0) {kind: "mean", axes: [2, 3], keepdims: true} "k"
  return %1 "y"
})"},
    {kV3,
     R"(graph @g(%0 "x": f32[5, 64], %1 "c": u8[24, 32], %2 "s": f32[24, 2], %3 "o": f32[24, 2]) {
  %4: f32[5, 24] = block_matmul(%0, %1, %2, %3) {bits: 4, block: 32} "k"
  return %4 "y"
})"},
    {kV3, R"(graph @g(%0 "x": f32[6, 100]) {
  %1: f32[6, 100] = softmax(%0) {axis: 1} "k"
  return %1 "y"
})"},
    {kV3, R"(graph @g(%0 "q": f32[2, 9, 16], %1 "k": f32[2, 20, 16], %2 "v": f32[2, 20, 16]) {
  %3: f32[2, 9, 16] = attention(%0, %1, %2) {scale: 0.25} "k"
  return %3 "y"
})"},
    {kAmx,
     R"(graph @g(%0 "q": bf16[2, 9, 16], %1 "k": bf16[2, 20, 16], %2 "v": bf16[2, 20, 16]) {
  %3: bf16[2, 9, 16] = attention(%0, %1, %2) {scale: 0.25} "k"
  return %3 "y"
})"},
    {kGpu, R"(graph @g(%0 "x": f16[3, 512], %1 "w": f16[512, 90]) {
  %2: f32[3, 90] = matmul(%0, %1) {result: "f32"} "k"
  return %2 "y"
})"},
    {kGpu, R"(graph @g(%0 "x": f32[64, 128], %1 "w": f32[128, 64]) {
  %2: f32[64, 64] = matmul(%0, %1) "k"
  return %2 "y"
})"},
    {kGpu, R"(graph @g(%0 "x": f32[1, 32, 12, 12], %1 "w": f32[32, 32, 3, 3]) {
  %2: f32[1, 32, 12, 12] = conv(%0, %1) {pads: [1, 1, 1, 1]} "k"
  return %2 "y"
})"},
    {kGpu, R"(graph @g(%0 "x": f32[1, 32, 12, 12], %1 "w": f32[32, 32, 6, 6]) {
  %2: f32[1, 32, 12, 12] = winograd_conv(%0, %1) {pads: [1, 1, 1, 1]} "k"
  return %2 "y"
})"},
    {kGpu, R"(graph @g(%0 "x": f16[64, 128], %1 "w": f16[128, 64]) {
  %2: f16[64, 64] = matmul(%0, %1) "k"
  return %2 "y"
})"},
    {kGpu, R"(graph @g(%0 "x": f16[1, 32, 12, 12], %1 "w": f16[32, 32, 3, 3]) {
  %2: f16[1, 32, 12, 12] = conv(%0, %1) {pads: [1, 1, 1, 1]} "k"
  return %2 "y"
})"},
    {kHopper, R"(graph @g(%0 "x": f16[128, 128], %1 "w": f16[128, 64]) {
  %2: f16[128, 64] = matmul(%0, %1) "k"
  return %2 "y"
})"},
    {kHopper, R"(graph @g(%0 "x": f16[1, 64, 12, 12], %1 "w": f16[32, 64, 3, 3]) {
  %2: f16[1, 32, 12, 12] = conv(%0, %1) {pads: [1, 1, 1, 1]} "k"
  return %2 "y"
})"},
    {kHopper, R"(graph @g(%0 "x": f16[1, 64, 12, 12], %1 "w": f16[32, 64, 1, 1]) {
  %2: f16[1, 32, 12, 12] = conv(%0, %1) "k"
  return %2 "y"
})"},
    {kGpu,
     R"(graph @g(%0 "q": f16[2, 19, 32], %1 "k": f16[2, 20, 32], %2 "v": f16[2, 20, 16], %3 "m": f32[20]) {
  %4: f16[2, 19, 16] = attention(%0, %1, %2, %3) {scale: 0.25} "k"
  return %4 "y"
})"},
    {kGpu, R"(graph @g(%0 "q": f16[2, 19, 32], %1 "k": f16[2, 300, 32], %2 "v": f16[2, 300, 16]) {
  %3: f16[2, 19, 16] = attention(%0, %1, %2) {scale: 0.25} "k"
  return %3 "y"
})"},
    {kGpu, R"(graph @g(%0 "x": f16[1, 16, 12, 12]) {
  %1: f16[1, 16, 6, 6] = max_pool(%0) {kernel: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1]} "k"
  return %1 "y"
})"},
    {kGpu, R"(graph @g(%0 "x": f32[6, 100]) {
  %1: f32[6, 100] = softmax(%0) {axis: 1} "k"
  return %1 "y"
})"},
    {kGpu, R"(graph @g(%0 "x": f32[6, 100]) {
  %1: f32[6, 100] = cumsum(%0) {axis: 1, kind: "sum"} "k"
  return %1 "y"
})"},
    {kGpu, R"(graph @g(%0 "q": f32[2, 9, 16], %1 "k": f32[2, 20, 16], %2 "v": f32[2, 20, 16]) {
  %3: f32[2, 9, 16] = attention(%0, %1, %2) {scale: 0.25} "k"
  return %3 "y"
})"},
    {kV3, R"(graph @g(%0 "x": f32[4, 1000]) {
  %1: f32[4, 300], %2: i64[4, 300] = topk(%0) {axis: 1, k: [300]} "k"
  return %1 "y", %2 "at"
})"},
    {kV3, R"(graph @g(%0 "x": f32[50, 100]) {
  %1: f32[50, 3], %2: i64[50, 3] = topk(%0) {axis: 1, k: [3]} "k"
  return %1 "y", %2 "at"
})"},
    {kV3, R"(graph @g(%0 "x": f32[60, 40], %1 "i": i64[99, 1], %2 "u": f32[99, 40]) {
  %3: f32[60, 40] = scatter(%0, %1, %2) {axis: 0} "k"
  return %3 "y"
})"},
    {kV3, R"(graph @g(%0 "x": f32[60, 40], %1 "i": i64[99, 40], %2 "u": f32[99, 40]) {
  %3: f32[60, 40] = scatter(%0, %1, %2) {axis: 0, reduction: "add"} "k"
  return %3 "y"
})"},
    {kGpu, R"(graph @g(%0 "x": f32[4, 5000]) {
  %1: f32[4, 300], %2: i64[4, 300] = topk(%0) {axis: 1, k: [300]} "k"
  return %1 "y", %2 "at"
})"},
    {kGpu, R"(graph @g(%0 "x": f32[9000, 40], %1 "i": i64[9000, 1], %2 "u": f32[9000, 40]) {
  %3: f32[9000, 40] = scatter(%0, %1, %2) {axis: 0, reduction: "add"} "k"
  return %3 "y"
})"}};

void AddSite(const Site& site, std::map<std::string, Hasher>* hashers) {
  const Machine machine = Machine::Of(Target::Parse(site.target).value());
  const Expected<graph::Graph> g = graph::Parse(site.graph, "test");
  ASSERT_TRUE(g) << ToString(g.errors());
  const Expected<Task> task = TaskOf(*g, graph::KernelNodes(*g).at(0), machine);
  if (!task) return;  // it leaves nothing open
  std::map<std::string, std::vector<const Candidate*>> by_name;
  for (const Candidate& c : task->candidates) by_name[c.algorithm->name].push_back(&c);
  for (auto& [name, candidates] : by_name) {
    // Prices are no part of a schedule, so their order is none either.
    std::sort(candidates.begin(), candidates.end(),
              [](const auto* a, const auto* b) { return a->Trace() < b->Trace(); });
    const size_t step = (candidates.size() + kPoints - 1) / kPoints;
    for (size_t i = 0; i < candidates.size(); i += step) {
      const Expected<LoweredCandidate> lowered =
          LowerCandidate(*task, *candidates[i], machine, false);
      ASSERT_TRUE(lowered) << candidates[i]->Trace() << ": " << ToString(lowered.errors());
      (*hashers)[name].Text(candidates[i]->Trace()).Text(Print(lowered->module));
    }
  }
}

TEST(Epochs, ChangeWithSchedules) {
  std::map<std::string, Hasher> hashers;
  for (const Site& site : kSites) AddSite(site, &hashers);
  const auto known = nlohmann::json::parse(ReadFile(TENON_SCHEDULE_HASHES).value());
  for (const ops::Algorithm* a : ops::Algorithms().first(ops::Algorithms().size() - 1)) {
    const auto hasher = hashers.find(a->name);
    if (hasher == hashers.end()) {
      ADD_FAILURE() << a->name << " is the algorithm of none of these sites";
      continue;
    }
    const std::string hash = hasher->second.Finish().ToHex();
    const std::string line =
        fmt::format("\"{}\": {{\"epoch\": {}, \"hash\": \"{}\"}}", a->name, a->epoch, hash);
    if (!known.contains(a->name)) {
      ADD_FAILURE() << "new: " << line;
      continue;
    }
    const int epoch = known[a->name]["epoch"];
    const bool same = known[a->name]["hash"] == hash;
    if (epoch == a->epoch) {
      EXPECT_TRUE(same) << "schedules of " << a->name
                        << " have changed: count its epoch up, and put " << line;
    } else {
      ADD_FAILURE() << "another epoch: " << line;
    }
  }
}

}  // namespace
}  // namespace tenon::tune
