// Stages in shared memory whose loops are bound to no threads, at sizes around the number of
// threads: what they mean before and after threads share their work.
#include "pass_test.h"

namespace tenon {
namespace {

constexpr int64_t kSizes[] = {0, 1, 2, 5, 7, 8, 9, 13, 16, 17};

// READERS stands for the loops of 8 threads, of number TT, that read what was filled; CLOSE for
// their ends.
constexpr const char* kReaders[] = {
    "for t in 0..8 thread threadIdx.x {",
    "for y in 0..2 thread threadIdx.y { for x in 0..4 thread threadIdx.x {",
    ("for z in 0..2 thread threadIdx.z { for y in 0..2 thread threadIdx.y { "
     "for x in 0..2 thread threadIdx.x {"),
};
constexpr const char* kEnds[] = {"}", "} }", "} } }"};
constexpr const char* kNumbers[] = {"t", "(y * 4 + x)", "(z * 4 + y * 2 + x)"};

std::string Replaced(std::string text, const std::string& word, const std::string& value) {
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += value.size())
    text.replace(at, word.size(), value);
  return text;
}

// A kernel over N elements: fixed, or the dim n.
std::string Kernel(std::string text, size_t readers, int64_t size) {
  text = Replaced(text, "READERS", kReaders[readers]);
  text = Replaced(text, "CLOSE", kEnds[readers]);
  text = Replaced(text, "TT", kNumbers[readers]);
  text = Replaced(text, "DIMS", size < 0 ? "<n: 0..=17>" : "");
  return Replaced(text, "NN", size < 0 ? "n" : std::to_string(size));
}

void ExpectSameInAnyOrder(const Module& before, const Module& after, int64_t n, bool is_dim) {
  InterpOptions options;
  if (is_dim) options.dims["n"] = n;
  Expected<std::vector<InterpArg>> args = SmallIntegerArgs(*before.Find("f"), options.dims, 1);
  ASSERT_TRUE(args);
  std::vector<InterpArg> want = *args, got = *args;
  Status ran = Interpret(before, "f", want, options);
  ASSERT_TRUE(ran) << ToString(ran.errors()) << Print(before);
  ran = InterpretOrders(after, "f", got, options);
  ASSERT_TRUE(ran) << n << ": " << ToString(ran.errors()) << Print(after);
  EXPECT_EQ(got.back().bytes, want.back().bytes) << n << Print(after);
}

// Of each kernel: with sizes that are constant and with one that is not; `fills` buffers are
// filled by all threads, and none by one.
void ExpectShared(const std::string& text, size_t fills) {
  auto check = [&](size_t readers, int64_t size, int64_t n) {
    const Module before = Parse(Kernel(text, readers, size));
    std::vector<std::string> remarks;
    PassContext context;
    context.remarks = &remarks;
    const Module after =
        RunPasses(before, {"compact_buffers", "lower_blocks", "simplify", "bind_threads"}, context);
    ExpectSameInAnyOrder(before, after, n, size < 0);
    if (size >= 0 && size <= 1) return;  // nothing to share
    EXPECT_EQ(remarks.size(), fills) << Print(after);
    for (const std::string& remark : remarks)
      EXPECT_NE(remark.find("by all threads"), std::string::npos) << remark;
  };
  for (size_t readers = 0; readers < std::size(kReaders); ++readers) {
    for (int64_t n : kSizes) check(readers, -1, n);
  }
  for (int64_t n : kSizes) {
    if (n > 0) check(static_cast<size_t>(n) % std::size(kReaders), n, n);
  }
}

TEST(SharedStages, AreLoadedByAllThreads) {
  ExpectShared(R"(
func @fDIMS(A: f32[3, NN], out C: f32[3, NN]) target "cuda" {
  for b in 0..3 thread blockIdx.x {
    alloc S: f32[17] in shared
    for i in 0..NN { S[i] = A[b, i] + 1f32 }
    for j in 0..3 { READERS
      if j * 8 + TT < NN { C[b, j * 8 + TT] = S[NN - 1 - (j * 8 + TT)] * 2f32 }
    CLOSE }
  }
}
)",
               1);
}

// A row less its largest element, divided by its sum: what one element holds is left to one thread.
TEST(SharedStages, AreComputedByAllThreads) {
  ExpectShared(R"(
func @fDIMS(A: f32[2, NN], out C: f32[2, NN]) target "cuda" {
  for b in 0..2 thread blockIdx.x {
    alloc M: f32[1] in shared
    alloc E: f32[17] in shared
    alloc Z: f32[1] in shared
    M[0] = -100f32
    for k in 0..NN { M[0] = max(M[0], A[b, k]) }
    for i in 0..NN { E[i] = A[b, i] - M[0] }
    Z[0] = 1f32
    for k.1 in 0..NN { Z[0] = Z[0] + E[k.1] }
    READERS
      for j in 0..3 { if j * 8 + TT < NN { C[b, j * 8 + TT] = E[j * 8 + TT] / Z[0] } }
    CLOSE
  }
}
)",
               1);
}

// Sums with their loop inside and outside, in a thread's own memory, and in two buffers at once.
TEST(SharedStages, KeepReductionsWithTheirElement) {
  ExpectShared(R"(
func @fDIMS(A: f32[NN, 5], out C: f32[NN]) target "cuda" {
  alloc S: f32[17] in shared
  alloc R: f32[17] in shared
  alloc L: f32[17] in shared
  alloc P: f32[17, 2] in shared
  for i in 0..NN {
    S[i] = 0f32
    for k in 0..5 { S[i] = S[i] + A[i, k] }
  }
  for k.1 in 0..5, i.1 in 0..NN {
    if k.1 == 0 { R[i.1] = 1f32 }
    R[i.1] = R[i.1] * 2f32 + A[i.1, k.1]
  }
  for i.2 in 0..NN {
    alloc sum: f32[1] in local
    sum[0] = S[i.2]
    for k.2 in 0..i.2 { sum[0] = sum[0] + R[k.2] }
    L[i.2] = sum[0]
    for c in 0..2 { P[i.2, c] = sum[0] + f32(c) }
  }
  for j in 0..3 { READERS
    if j * 8 + TT < NN {
      C[j * 8 + TT] = L[NN - 1 - (j * 8 + TT)] + P[NN - 1 - (j * 8 + TT), 1] + R[j * 8 + TT] + S[0]
    }
  CLOSE }
}
)",
               4);
}

// In steps of a loop around, two stages of one row after the other.
TEST(SharedStages, AreFilledAnewInEachStep) {
  ExpectShared(R"(
func @fDIMS(A: f32[4, NN], out C: f32[4, NN]) target "cuda" {
  alloc S: f32[17] in shared
  alloc T: f32[17] in shared
  for s in 0..4 {
    for i in 0..NN { S[i] = A[s, NN - 1 - i] }
    for i.1 in 0..NN { T[NN - 1 - i.1] = S[NN - 1 - i.1] + S[0] }
    for j in 0..3 { READERS if j * 8 + TT < NN { C[s, j * 8 + TT] = T[j * 8 + TT] } CLOSE }
  }
}
)",
               2);
}

// What is read of other elements, elements that two iterations write, and numbers that memory
// tells: none of it can be dealt out.
TEST(SharedStages, ThatCannotBeSharedAreLeftToOneThread) {
  for (const char* fill :
       {"for i in 0..8 { S[i + 1] = S[i] + A[i] }", "for i in 0..8 { S[i % 5] = S[i % 5] + A[i] }",
        "for i in 0..4 { S[i * 2] = A[i]\n S[i * 2 + 2] = A[i + 4] }",
        "for i in 0..8 { let p = i / 2\n S[p] = A[i] }",
        "for i in 0..8 { S[i] = A[i]\n S[8 - i] = A[i] }"}) {
    const Module before =
        Parse(std::string("func @f(A: f32[8], out C: f32[9]) target \"cuda\" {\n"
                          "  alloc S: f32[9] in shared\n"
                          "  for z in 0..9 { S[z] = 1f32 }\n  ") +
              fill + "\n  for t in 0..9 thread threadIdx.x { C[t] = S[8 - t] }\n}\n");
    std::vector<std::string> remarks;
    PassContext context;
    context.remarks = &remarks;
    const Module after = RunPasses(before, {"lower_blocks", "simplify", "bind_threads"}, context);
    ExpectSameInAnyOrder(before, after, 0, false);
    ASSERT_EQ(remarks.size(), 2u) << Print(after);
    EXPECT_NE(remarks[1].find("'S' in shared is written by loops of one thread"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace tenon
