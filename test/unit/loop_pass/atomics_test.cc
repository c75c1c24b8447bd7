// Kernels whose threads update elements that they share, after barriers were put: in any order of
// threads they give what counting gives.
#include <algorithm>
#include <cstring>

#include "pass_test.h"

namespace tenon {
namespace {

std::vector<int32_t> Numbers(const InterpArg& arg) {
  std::vector<int32_t> out(static_cast<size_t>(arg.num_elements()));
  std::memcpy(out.data(), arg.bytes.data(), out.size() * sizeof(int32_t));
  return out;
}

// The buffers after a run; the first is `in`.
std::vector<std::vector<int32_t>> RunPassed(const std::string& text,
                                            const std::vector<int32_t>& in) {
  const Module module = RunPasses(Parse(text), {"bind_threads", "simplify"});
  const Func f = module.Find("f");
  EXPECT_TRUE(f);
  if (!f) return {};
  Expected<std::vector<InterpArg>> args = SmallIntegerArgs(*f, {}, 1);
  EXPECT_TRUE(args);
  std::memcpy((*args)[0].bytes.data(), in.data(), in.size() * sizeof(int32_t));
  const Status ran = InterpretOrders(module, "f", *args, {});
  EXPECT_TRUE(ran) << ToString(ran.errors()) << Print(module);
  std::vector<std::vector<int32_t>> out;
  for (const InterpArg& arg : *args) out.push_back(Numbers(arg));
  return out;
}

TEST(Atomics, AreApartFromPlainAccessesOfTheSameLoop) {
  std::vector<int32_t> in(37);
  std::vector<int32_t> want(37, 0);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int32_t>(i * i % 5);
  for (int32_t i : in) ++want[static_cast<size_t>(i)];
  const auto out = RunPassed(R"(
func @f(D: i32[37], out H: i32[37], out G: i32[37]) target "cuda" {
  for t in 0..37 thread threadIdx.x {
    H[t] = 0
    atomic + H[index(D[t])], 1 relaxed at grid
    G[t] = H[t]
  }
}
)",
                             in);
  EXPECT_EQ(out[1], want);
  EXPECT_EQ(out[2], want);
}

TEST(Atomics, InSharedMemoryAreReadWhenAllHaveBeen) {
  std::vector<int32_t> in(74);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int32_t>(i % 11);
  const auto out = RunPassed(R"(
func @f(D: i32[74], out G: i32[74]) target "cuda" {
  for b in 0..2 thread blockIdx.x {
    alloc S: i32[1] in shared
    S[0] = 0
    for t in 0..37 thread threadIdx.x {
      atomic + S[0], D[b * 37 + t] relaxed at cta
      G[b * 37 + t] = S[0]
    }
  }
}
)",
                             in);
  for (size_t b = 0; b < 2; ++b) {
    int32_t sum = 0;
    for (size_t t = 0; t < 37; ++t) sum += in[b * 37 + t];
    for (size_t t = 0; t < 37; ++t) EXPECT_EQ(out[1][b * 37 + t], sum);
  }
}

TEST(Crossings, InGlobalMemoryGetABarrierAsInShared) {
  std::vector<int32_t> in(37);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int32_t>(3 * i);
  const auto out = RunPassed(R"(
func @f(D: i32[37], out H: i32[37], out G: i32[37]) target "cuda" {
  for t in 0..37 thread threadIdx.x {
    H[t] = D[t]
    G[t] = H[36 - t]
  }
}
)",
                             in);
  std::reverse(in.begin(), in.end());
  EXPECT_EQ(out[2], in);
}

// What is not shown to differ stays the author's promise.
TEST(Crossings, OfTheSameValueOrOfUnknownElementsAreNoMatter) {
  for (const char* body : {"G[b] = D[b]\n G[b + 1] = D[b + 1]", "G[D[b]] = b\n G[b] = 1",
                           "if b == 3 { G[0] = D[b] }", "for k in b..b + 1 { G[k] = D[b] }"}) {
    RunPasses(Parse("func @f(D: index[5], out G: index[5]) target \"cuda\" {\n"
                    "  for b in 0..4 thread blockIdx.x {\n " +
                    std::string(body) + "\n  }\n}\n"),
              {"bind_threads"});
  }
}

}  // namespace
}  // namespace tenon
