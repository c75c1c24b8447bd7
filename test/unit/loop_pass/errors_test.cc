// What a pass reports ends its run: nothing behind it sees the function.
#include "pass_test.h"
#include "support/check.h"

namespace tenon {
namespace {

constexpr char kCrossing[] = R"(
func @a(A: f32[8], out C: f32[8]) target "cuda" {
  alloc P: f32[8]
  for b in 0..8 thread blockIdx.x { P[b] = A[b] }
  for c in 0..8 thread blockIdx.x { C[c] = P[7 - c] }
}
func @b(A: f32[8], out C: f32[8]) target "cuda" {
  for t in 0..8 thread threadIdx.x { C[0] = A[t] + C[0] }
}
func @fine(A: f32[8], out C: f32[8]) target "cuda" {
  for t in 0..8 thread threadIdx.x { C[t] = A[t] }
}
)";

TEST(PassErrors, AreOfEveryFunctionAndLocated) {
  const Expected<Module> after = RunPass(*FindLoopPass("bind_threads"), Parse(kCrossing), {});
  ASSERT_FALSE(after);
  ASSERT_EQ(after.errors().size(), 2U) << ToString(after.errors());
  EXPECT_EQ(after.errors()[0].loc.item, "@a");
  EXPECT_NE(after.errors()[0].message.find("buffer P is written by one block"), std::string::npos);
  EXPECT_EQ(after.errors()[1].loc.item, "@b");
  EXPECT_NE(after.errors()[1].message.find("loop 't' over threadIdx.x"), std::string::npos);
}

TEST(PassErrors, AreSaidOnceForAFunction) {
  const Module module = Parse(kCrossing);
  Diagnostics errors;
  PassContext context;
  context.errors = &errors;
  context.Error(*module.Find("a"), "loop 'b' is too long");
  context.Error(*module.Find("a"), "loop 'b' is too long");
  context.Error(*module.Find("b"), "loop 'b' is too long");
  EXPECT_EQ(ToString(errors), "@a: error: loop 'b' is too long\n@b: error: loop 'b' is too long\n");
}

TEST(PassErrors, WithoutAPlaceAreABugOfTheCaller) {
  EXPECT_THROW(FindLoopPass("bind_threads")->run(Parse(kCrossing), {}), InternalError);
}

}  // namespace
}  // namespace tenon
