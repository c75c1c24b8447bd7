// Broken graph texts: the parser ends in a verified graph or diagnostics.
#include <gtest/gtest.h>

#include "fuzz/mutate.h"
#include "graph/text.h"

namespace tenon::graph {
namespace {

const std::vector<std::string>& Samples() {
  static const auto* samples = new std::vector<std::string>{
      R"(graph @g<n: 1..=64 step 2, m>(%0 "x": f32[n, 16, 8, 8], %1 "z": f32[m, n * 2]) {
  metadata "k" "v"
  require [n * 2 <= 64, m == n]
  %2 "w": f32[1] = const hex "0000c07f"
  %3: i64[2] = const [1, -2]
  %4: f32[n, 16, 8, 8] layout (a, b, c, d) -> (a, b / 8, c, d, b % 8) = relu(%0) "node 1"
  %5 "p": f32[n, 16, 10, 8] = pad(%4, _) {pads: [0, 0, 1, 0, 0, 0, 1, 0], mode: "reflect"}
  return %5 "y"
})",
      R"(graph @g(%0 "x": f32[2, 8]) {
  %1: f32[8] = const [1, 2.5, -3, inf, 5, 6, 7, 1e-3]
  %2: f32[2, 8] on device 0, %3: f32[2, 1] = fused(%0, %1) region(%0: f32[2, 8], %1: f32[8]) {
    %2: f32[2, 8] on device 0 = add(%0, %1)
    %3: f32[2, 8] = softmax(%2) {axis: 1}
    %4: f32[2, 1] = reduce(%3) {kind: "max", axes: [1], keepdims: true}
    return %2 "a", %4 "b"
  }
  %4: f32[4, 4] = reshape(%2) {shape: [4, 4]}
  return %4 "y", %3 "z"
})"};
  return *samples;
}

TEST(GraphFuzz, MutatedTextsEndInAGraphOrDiagnostics) {
  const uint64_t seed = fuzz::Seed();
  printf("TENON_FUZZ_SEED=%llu\n", static_cast<unsigned long long>(seed));
  for (const std::string& sample : Samples())
    ASSERT_TRUE(Parse(sample)) << ToString(Parse(sample).errors());
  fuzz::Mutator mutator(seed, Samples());
  int parsed = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::string text = mutator.Next();
    Expected<Graph> g = Parse(text);
    if (!g) {
      EXPECT_FALSE(g.errors().empty());
      continue;
    }
    ++parsed;
    Expected<Graph> again = Parse(Print(*g));
    ASSERT_TRUE(again) << ToString(again.errors()) << text << "\n" << Print(*g);
    EXPECT_TRUE(StructuralEqual(*g, *again)) << text;
  }
  printf("%d of 10000 parsed\n", parsed);
}

}  // namespace
}  // namespace tenon::graph
