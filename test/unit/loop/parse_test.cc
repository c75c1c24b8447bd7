#include "loop/parse.h"

#include <gtest/gtest.h>

#include <random>

#include "round_trip.h"
#include "support/check.h"

namespace tenon {
namespace {

// Every construct of the language, as it is printed.
constexpr const char* kEverything = R"(module {version: 1}

func @a<m: 1..=4096 step 8, n, p: 2..>(A: f32[m, n], B: bf16[n] in shared align 64, out C: f32[m], s: i32, q: handle) kind device target "llvm -mcpu=core-avx2" {exported: true, role: "x"} {
  for i in 0..m, j in 2..8, k in m..+n {
    block C(vi: spatial = i, vk: reduce in 0..n = k - m, vo: ordered = j) where vi < m fp: contract at: warp async opaque conservative reducer: argmax {tag: "t"} {
      reads A[vi, 0..4], B; writes C[vi]
      init { C[vi] = 0f32 }
      C[vi] = C[vi] + A[vi, vk]
    }
  }
  for i in 0..m parallel {
    for l in 0..16 vectorized {
      C[i] = 1f32
    }
    for l: i32 in 0i32..4i32 unrolled {pragma: 3} {
      C[index(l)] = select(l < 2i32, nan.f32, -inf.f32)
    }
  }
  for t in 0..32 thread threadIdx.x {
    sync cta
  }
}

func @b() kind host {
  alloc t: f32[16, 8] layout (i, j) -> (i / 4 size 4 on threadIdx.x, i % 4 size _, j size 8 + 8) replicas 2 strides (1, 2, 3) in local align 64
  let x = 3 {
    t[x, 0] = -0f32
  }
  if team_rank<index>() == 0 {
    t[0, 0] = 1e-45f32
  } else if true {
    return
  } else {
    while false {
      return 0i32
    }
  }
  let p = weights_base<handle>()
  bind w: i4[64] strides (1) = ptr_offset(p, p)
  w[ramp(0, 1, 8) where broadcast(true, 8)] = broadcast(7i4, 8)
  w[ramp(0, 2, vscale * 4)] = w[ramp(0, 1, vscale * 4)]
  call @a(t, t[0, 0..4], w; 1, -2i64)
  launch @a(t; 3) on "device 0" {grid: [4, 2, 1]}
  launch @a() on host
  copy t[0..8, 0] from t[8..16, 0]
  assert p == p, "ValueError", "expected ", 3, " got \"x\""
  extern<i32>("f", data<handle>(t[0, 0]), 18446744073709551615u64)
  alloc bar: u64[2] in barrier
  arrive bar[0]
  expect bar[0], 4
  wait bar[1], true
  roles {
    role load size 1 registers 40 {
      sync warp
    }
    role compute size 2 {
    }
  }
  atomic + t[0, 0], 1f32 relaxed at grid
  atomic max t[0, 1], 1f32 acq_rel at cta
}
)";

TEST(LoopParse, EveryConstruct) { ExpectPrintsAs(kEverything); }

TEST(LoopParse, LongerWaysToWrite) {
  auto text = [](const char* body) {
    auto f = ParseFunc(std::string("func @f<n>(out A: f32[8]) {\n") + body + "\n}");
    return f ? Print((*f)->body) : ToString(f.errors());
  };
  EXPECT_EQ(text("for i in 2..n { A[i] = 0 }"), "for i in 2..+n - 2 {\n  A[i] = 0f32\n}");
  EXPECT_EQ(text("for i: i32 in 0..4 { }"), "for i: i32 in 0i32..4i32 {\n}");
  EXPECT_EQ(text("A[0] = 1; A[1] = 2"), "A[0] = 1f32\nA[1] = 2f32");
  EXPECT_EQ(text("copy A from A[0..8]"), "copy A from A");
  EXPECT_EQ(text("if true { return }; else[0] = 1"),
            "<text>:2:21: error: 'else' is not defined here\n");
  EXPECT_EQ(text("A[ramp(0, 1, 4)] = 1"), "A[ramp(0, 1, 4)] = broadcast(1f32, 4)");
}

TEST(LoopParse, NamesThatAreWords) {
  ExpectPrintsAs(
      R"(func @for(`true`: f32[2], reads: f32[2], out return: f32[2], `a b`: index, in: index) {
  block "a \"b\""(bf16: spatial in 0..2 = in) {
    reads[0] = `true`[bf16]
    return[`a b`] = 1f32
  }
}
)");
}

TEST(LoopParse, WhatIsDeclaredByAFailedStatementIsNoFurtherError) {
  auto m = ParseModule(R"(func @f(A: f32[8], out C: i32[8]) {
  for i in 0..8 {
    C[i] = A[i]
    let y = 1 + true
    C[i] = y + unknown
    alloc t: f31[3]
    t[i] = t[0]
    for j in 0..unknown2 {
      C[i] = C[j]
    }
    foo bar
    C[i, 3] = 1
  }
  return (
}
)",
                       "f.tn");
  ASSERT_FALSE(m);
  EXPECT_EQ(ToString(m.errors()), R"(f.tn:3:12: error: store to 'C': expected i32 but got f32
f.tn:4:15: error: operands of + differ: index and bool
f.tn:6:14: error: expected the element type of a buffer but got 'f31'
f.tn:8:17: error: 'unknown2' is not defined here
f.tn:11:5: error: expected a statement but got 'foo'
f.tn:12:5: error: 'C' has 1 dimensions but got 2 indices
f.tn:15:1: error: expected an expression but got '}'
)");
}

TEST(LoopParse, ATargetIsReadAndPrintsAsItWasWritten) {
  const std::string text =
      "func @f(out A: f32[8]) target \"cuda -arch=sm_80\" {\n  A[0] = 1f32\n}\n";
  auto m = ParseModule(text, "f.tn");
  ASSERT_TRUE(m);
  const Func f = m->Find("f");
  EXPECT_TRUE(f->IsForDevice());
  EXPECT_EQ(f->target->gpu().arch, "sm_80");
  EXPECT_EQ(Print(*m), text);
  // Equal is what means the same here, however it is written.
  EXPECT_EQ(f->target, TargetRef(*f->target));

  auto wrong = ParseModule("func @f(out A: f32[8]) target \"cude\" {\n  A[0] = 1f32\n}\n", "f.tn");
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(ToString(wrong.errors())
                  .starts_with("f.tn:1:31: error: unknown kind or preset 'cude' in target 'cude'"));
}

TEST(LoopParse, AFunctionThatFailsDoesNotHideTheNext) {
  auto m = ParseModule(
      "func @a(x: f32[]) -> i32 {\n}\nfunc @b(x: f32[]) {\n  x[] = 1i32\n}\nfunc @b() {}\nfunc "
      "@b() {}\n");
  ASSERT_FALSE(m);
  EXPECT_EQ(ToString(m.errors()),
            R"(<text>:1:19: error: expected '{' before the body of a function but got '->'
<text>:4:9: error: store to 'x': expected f32 but got i32
<text>:6:1: error: the function 'b' is defined twice
<text>:7:1: error: the function 'b' is defined twice
)");
}

TEST(LoopParse, LimitsAreDiagnostics) {
  auto repeat = [](const std::string& s, int n) {
    std::string out;
    for (int k = 0; k < n; ++k) out += s;
    return out;
  };
  auto first = [](const std::string& text) {
    auto m = ParseModule(text);
    return m ? "no error" : m.errors()[0].message;
  };
  const std::string head = "func @f() {";
  EXPECT_EQ(first(head + repeat("if true {", 100000)), "expected nesting of at most 512");
  EXPECT_EQ(first(head + repeat("let x = 1 {\n", 100000)), "'x' is already defined here");
  EXPECT_EQ(first(head + "if true {} " + repeat("else if true {} ", 100000)),
            "expected nesting of at most 512");
  EXPECT_EQ(first(head + repeat("roles { role r size 1 {", 100000)),
            "expected nesting of at most 512");
  std::string lets = head, loops = head + "for ";
  for (int k = 0; k < 3000; ++k) lets += "\nlet x" + std::to_string(k) + " = 1";
  for (int k = 0; k < 3000; ++k) loops += "i" + std::to_string(k) + " in 0..1, ";
  EXPECT_EQ(first(lets), "expected at most 2048 names nested");
  EXPECT_EQ(first(loops), "expected nesting of at most 512");
  EXPECT_EQ(first(std::string((64 << 20) + 1, ' ')),
            "expected a text of at most 67108864 bytes but got 67108865");
}

// Any text gives a module that round-trips, or diagnostics: never a crash, never a check of ours.
TEST(LoopParse, MutationsNeverTripAnything) {
  const std::string original = kEverything;
  // Pieces of the language, so that mutations get past the lexer.
  std::vector<std::string> pieces;
  for (size_t at = 0; at < original.size(); at += 7)
    pieces.push_back(original.substr(at, 3 + at % 11));
  for (const char* word : {"A",
                           "t",
                           "i",
                           "s",
                           "x",
                           "(",
                           ")",
                           "[",
                           "]",
                           "{",
                           "}",
                           ",",
                           "..",
                           "1",
                           "0f32",
                           "true",
                           "\"\"",
                           "-",
                           "*",
                           "i32(",
                           "ramp(0, 1, 4)",
                           "where",
                           "layout (i) -> (i)",
                           "\n",
                           "``",
                           "broadcast(",
                           "index"}) {
    pieces.emplace_back(word);
  }
  std::mt19937_64 random(11);
  int parsed = 0;
  for (int n = 0; n < 5000; ++n) {
    std::string text = original;
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text.erase(at, 1 + random() % 20); break;
        case 1: text.insert(at, pieces[random() % pieces.size()]); break;
        case 2: text[at] = static_cast<char>(random()); break;
        default: text.replace(at, 1 + random() % 6, pieces[random() % pieces.size()]); break;
      }
    }
    try {
      auto m = ParseModule(text);
      if (!m) {
        ASSERT_FALSE(m.errors().empty()) << text;
        continue;
      }
      ++parsed;
      ExpectRoundTrip(*m);
    } catch (const InternalError& e) {
      FAIL() << e.what() << "\n" << text;
    }
    if (testing::Test::HasFailure()) FAIL() << text;
  }
  EXPECT_GT(parsed, 50);
}

}  // namespace
}  // namespace tenon
