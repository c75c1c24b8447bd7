// What functions need of their sizes: each case is a function, and what is asked of a call.
#include "loop/requirements.h"

#include <gtest/gtest.h>

#include "loop/parse.h"

namespace tenon {
namespace {

// The requirements of @f, a line each; of an error its message.
std::string Of(const std::string& text) {
  auto module = ParseModule(text);
  if (!module) return "not read: " + module.errors()[0].message;
  auto needs = RequirementsOf(*module->Find("f"), *module);
  if (!needs) return needs.errors()[0].message;
  std::string out;
  for (const Requirement& r : *needs) out += r.ToString() + "\n";
  return out;
}

// @f<n, m>(A, B, I) that runs `body` for i in 0..m.
std::string Loop(const std::string& body) {
  return Of("func @f<n, m>(A: f32[n], I: i64[n], out B: f32[m]) {\n  for i in 0..m {\n    " + body +
            "\n  }\n}\n");
}

TEST(Requirements, WhatIsInsideNeedsNothing) {
  EXPECT_EQ(Loop("B[i] = 0f32"), "");
  EXPECT_EQ(Loop("B[m - 1 - i] = 0f32"), "");
  EXPECT_EQ(Loop("B[i / 2] = 0f32"), "");
}

TEST(Requirements, EndsOfLoopsAreComparedWithOtherSizes) {
  EXPECT_EQ(Loop("B[i] = A[i]"), "m - 1 < n if 1 <= m: A[i] along dim 0\n");
  EXPECT_EQ(Loop("B[i] = A[i + 3]"), "m + 2 < n if 1 <= m: A[i + 3] along dim 0\n");
  EXPECT_EQ(Loop("B[i] = A[n - 1 - i]"), "0 <= n - m if 1 <= m: A[n - 1 - i] along dim 0\n");
  EXPECT_EQ(Loop("B[i] = A[i / 4]"), "(m + 3) / 4 - 1 < n if 1 <= m: A[i / 4] along dim 0\n");
}

TEST(Requirements, WhatRunsNowhereElseIsNotAsked) {
  EXPECT_EQ(Loop("B[i] = select(i < n, A[i], 0f32)"), "");
  EXPECT_EQ(Loop("B[i] = select(i >= 3, A[i - 3], 0f32)"),
            "m - 4 < n if 1 <= m && 4 <= m: A[i - 3] along dim 0\n");
  EXPECT_EQ(Loop("if i + 2 < n { B[i] = A[i + 2] }"), "");
}

TEST(Requirements, WhatDependsOnDataIsNotAsked) {
  EXPECT_EQ(Loop("B[i] = select(A[0] < 1f32, A[i + 5], 0f32)"),
            "0 < n if 1 <= m: A[0] along dim 0\n");
  EXPECT_EQ(Loop("if i < n { B[i] = A[index(I[i])] }"), "");
}

TEST(Requirements, IndicesThatWrapReachTheirEnd) {
  const std::string text = Loop("B[i] = A[i % 8]");
  EXPECT_NE(text.find("7 < n if 1 <= m && 8 <= m: A[i % 8]"), std::string::npos) << text;
}

TEST(Requirements, IndicesThatNeitherRiseNorFallAreAskedEverywhere) {
  EXPECT_EQ(Loop("B[i] = A[i * i % 8]"), "i * i % 8 < n for i in 0..m: A[i * i % 8] along dim 0\n");
  EXPECT_EQ(Loop("B[i] = A[max(i - 4, 4 - i)]"),
            "max(4 - i, i - 4) < n for i in 0..m: A[max(i - 4, 4 - i)] along dim 0\n");
  EXPECT_EQ(Loop("B[i] = A[abs(i - 4)]"),
            "abs(i - 4) < n for i in 0..m: A[abs(i - 4)] along dim 0\n");
  EXPECT_EQ(Loop("B[i] = A[(i - 4) * (i - 9)]"),
            "0 <= i * i - i * 13 + 36 for i in 0..m: A[(i - 4) * (i - 9)] along dim 0\n"
            "i * i - i * 13 + 36 < n for i in 0..m: A[(i - 4) * (i - 9)] along dim 0\n");
  EXPECT_EQ(Loop("B[i * i % m] = 0f32"), "");
}

TEST(Requirements, ConditionsThatLeaveTheEndsOutDoNotHideWhatIsBetween) {
  EXPECT_EQ(Loop("B[i] = select(i > 0, A[n - i], 0f32)"),
            "0 <= n - m + 1 if 1 <= m && 2 <= m: A[n - i] along dim 0\n");
  EXPECT_EQ(Loop("if i > 0 { B[i] = A[n + 3 - i] }"),
            "0 <= n - m + 4 if 1 <= m && 2 <= m: A[n + 3 - i] along dim 0\n"
            "n - i + 3 < n for i in 0..m if 1 <= i: A[n + 3 - i] along dim 0\n");
  EXPECT_EQ(Of("func @f<n, m>(A: f32[n], out B: f32[m]) {\n  for i in 0..m, j in 0..i {\n"
               "    B[i] = A[n + 1 - i]\n  }\n}\n"),
            "0 <= n - m + 2 if 2 <= m: A[n + 1 - i] along dim 0\n"
            "n - i + 1 < n for i in 0..m if 1 <= i: A[n + 1 - i] along dim 0\n");
}

TEST(Requirements, SelectedIndicesAreAskedWhereTheyAreTaken) {
  EXPECT_EQ(Loop("B[select(i < 4, i, m - 1 - i)] = 0f32"), "");
  EXPECT_EQ(Loop("B[i] = A[select(i < 4, 7 - i, 0)]"),
            "7 < n if 1 <= m: A[select(i < 4, 7 - i, 0)] along dim 0\n"
            "0 < n if 1 <= m && 5 <= m: A[select(i < 4, 7 - i, 0)] along dim 0\n");
}

TEST(Requirements, DivisorsThatMoveAreAskedEverywhere) {
  EXPECT_EQ(Loop("B[0] = A[7 % (i - 3) * 0]"),
            "i - 3 != 0 for i in 0..m: 7 % (i - 3)\n"
            "0 < n if 1 <= m: A[7 % (i - 3) * 0] along dim 0\n");
}

TEST(Requirements, FewIterationsAreTriedAtOnce) {
  EXPECT_EQ(Of("func @f(A: f32[5], out B: f32[8]) {\n  for i in 0..8 {\n    B[i] = A[i * i % 7]\n"
               "  }\n}\n"),
            "");
  EXPECT_EQ(
      Of("func @f(A: f32[4], out B: f32[8]) {\n  for i in 0..8 {\n    B[i] = A[i * i % 7]\n"
         "  }\n}\n"),
      "function 'f': A[i * i % 7] along dim 0: the index takes the value 4, but the dim has 4 "
      "elements");
}

TEST(Requirements, DivisorsAreNotZeroWhereTheyDivide) {
  const std::string text = Loop("B[i / n] = 0f32");
  EXPECT_NE(text.find("n != 0 if 1 <= m: i / n\n"), std::string::npos) << text;
  EXPECT_EQ(Of("func @f<n>(out B: f32[n]) {\n  for i in 0..n {\n    B[i * 7 % n] = 0f32\n  }\n}\n"),
            "");
}

TEST(Requirements, TrianglesAreTakenAtTheirWidest) {
  EXPECT_EQ(Of("func @f<n, m>(A: f32[n], out B: f32[m]) {\n  for i in 0..m, j in 0..i {\n"
               "    B[i] = A[j]\n  }\n}\n"),
            "m - 2 < n if 2 <= m: A[j] along dim 0\n");
}

TEST(Requirements, CalledFunctionsNeedTheirs) {
  EXPECT_EQ(Of(R"(
func @g<a, b>(P: f32[a], out Q: f32[b]) kind device {
  for i in 0..b {
    Q[i] = P[i + 1]
  }
}
func @f<n>(A: f32[n], out B: f32[n]) {
  call @g(A, B; n, n - 1)
}
)"),
            "");
  EXPECT_EQ(Of(R"(
func @g<a, b>(P: f32[a], out Q: f32[b]) kind device {
  for i in 0..b {
    Q[i] = P[i + 1]
  }
}
func @f<n, m>(A: f32[n], out B: f32[m]) {
  call @g(A, B; n, m)
}
)"),
            "m < n if 1 <= m: P[i + 1] along dim 0 in @g\n");
}

TEST(Requirements, WhatNoSizesMendIsAnError) {
  EXPECT_EQ(Loop("B[i + m] = 0f32"),
            "function 'f': B[i + m] along dim 0: the index takes the value m * 2 - 1, but the dim "
            "has m elements");
  EXPECT_EQ(Loop("B[i - 1] = 0f32"),
            "function 'f': B[i - 1] along dim 0: the index takes the value -1");
  EXPECT_EQ(Loop("B[m % i] = 0f32"), "function 'f': m % i: it divides by zero");
}

TEST(Requirements, TheAttributeIsReadBack) {
  auto module = ParseModule(
      "func @f<n, m>(A: f32[n], out B: f32[m]) {exported: true} {\n  for i in 0..m {\n"
      "    B[i] = select(i >= 3, A[i - 3], 0f32)\n  }\n}\n");
  ASSERT_TRUE(module);
  auto f = WithRequirements(module->Find("f"), *module);
  ASSERT_TRUE(f);
  const std::vector<Requirement> read = Requirement::Parse(**f);
  auto found = RequirementsOf(**f, *module);
  ASSERT_TRUE(found);
  ASSERT_EQ(read.size(), found->size());
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].ToString(), (*found)[0].ToString());
  EXPECT_TRUE(StructuralEqual(read[0].holds, (*found)[0].holds));
  EXPECT_TRUE(StructuralEqual(read[0].when, (*found)[0].when));
}

TEST(Requirements, LoopsAreReadBack) {
  auto module = ParseModule(
      "func @f<n, m>(A: f32[n], out B: f32[m]) {exported: true} {\n  for i in 0..m, j in 0..n {\n"
      "    if i > j + 2 { B[i] = A[(i * i + j) % 9] }\n  }\n}\n");
  ASSERT_TRUE(module);
  auto f = WithRequirements(module->Find("f"), *module);
  ASSERT_TRUE(f);
  const std::vector<Requirement> read = Requirement::Parse(**f);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(
      read[0].ToString(),
      "(i * i + j) % 9 < n for i in 0..m for j in 0..n if j < i - 2: A[(i * i + j) % 9] along "
      "dim 0");
}

}  // namespace
}  // namespace tenon
