// Every sketch of every rule means what the function meant: points of each, drawn at random, give
// the interpreter's results of the plain loops, at sizes about the tiles' edges and primes. And
// sketches are what they are said to be: the same from run to run, their traces replay, what users
// add comes first, what fits no machine has no price.
#include "sketch/sketch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "loop/parse.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "sketch/work.h"
#include "support/interp_check.h"

namespace tenon::sketch {
namespace {

constexpr const char* kCpu = "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3 -num-cores=4";
constexpr const char* kGpu = "cuda -arch=sm_80";

Machine MachineOf(const char* target) { return Machine::Of(*Target::Parse(target)); }

struct Subject {
  const char* name;
  std::string (*text)(int64_t m, int64_t n, int64_t k);
};

std::string Product(int64_t m, int64_t n, int64_t k, bool with_relu) {
  const std::string sums = with_relu ? "T" : "C";
  std::string text = fmt::format(
      "func @f(A: f32[{0}, {2}], B: f32[{2}, {1}], out C: f32[{0}, {1}]) {{\n", m, n, k);
  if (with_relu) text += fmt::format("  alloc T: f32[{}, {}]\n", m, n);
  text += fmt::format(
      "  for i in 0..{0}, j in 0..{1}, k in 0..{2} {{\n"
      "    block {3}(vi: spatial = i, vj: spatial = j, vk: reduce = k) fp: contract {{\n"
      "      reads A[vi, vk], B[vk, vj]; writes {3}[vi, vj]\n"
      "      init {{ {3}[vi, vj] = 0f32 }}\n"
      "      {3}[vi, vj] = {3}[vi, vj] + A[vi, vk] * B[vk, vj]\n"
      "    }}\n  }}\n",
      m, n, k, sums);
  if (with_relu) {
    text += fmt::format(
        "  for i2 in 0..{0}, j2 in 0..{1} {{\n"
        "    block C(vi: spatial = i2, vj: spatial = j2) {{\n"
        "      reads T[vi, vj]; writes C[vi, vj]\n"
        "      C[vi, vj] = max(T[vi, vj], 0f32)\n"
        "    }}\n  }}\n",
        m, n);
  }
  return text + "}\n";
}

std::string RowSum(int64_t m, int64_t n, int64_t) {
  return fmt::format(
      "func @f(A: f32[{0}, {1}], out C: f32[{0}]) {{\n"
      "  for i in 0..{0}, j in 0..{1} {{\n"
      "    block C(vi: spatial = i, vj: reduce = j) {{\n"
      "      reads A[vi, vj]; writes C[vi]\n"
      "      init {{ C[vi] = 0f32 }}\n"
      "      C[vi] = C[vi] + A[vi, vj]\n"
      "    }}\n  }}\n}}\n",
      m, n * 5);
}

std::string Normalised(int64_t m, int64_t n, int64_t) {
  return fmt::format(
      "func @f(A: f32[{0}, {1}], out C: f32[{0}, {1}]) {{\n"
      "  alloc M: f32[{0}]\n  alloc D: f32[{0}, {1}]\n  alloc S: f32[{0}]\n"
      "  for i in 0..{0}, j in 0..{1} {{\n"
      "    block M(vi: spatial = i, vj: reduce = j) {{\n"
      "      reads A[vi, vj]; writes M[vi]\n"
      "      init {{ M[vi] = -1000f32 }}\n"
      "      M[vi] = max(M[vi], A[vi, vj])\n"
      "    }}\n  }}\n"
      "  for i1 in 0..{0}, j1 in 0..{1} {{\n"
      "    block D(vi: spatial = i1, vj: spatial = j1) {{\n"
      "      reads A[vi, vj], M[vi]; writes D[vi, vj]\n"
      "      D[vi, vj] = A[vi, vj] - M[vi]\n"
      "    }}\n  }}\n"
      "  for i2 in 0..{0}, j2 in 0..{1} {{\n"
      "    block S(vi: spatial = i2, vj: reduce = j2) {{\n"
      "      reads D[vi, vj]; writes S[vi]\n"
      "      init {{ S[vi] = 0f32 }}\n"
      "      S[vi] = S[vi] + D[vi, vj]\n"
      "    }}\n  }}\n"
      "  for i3 in 0..{0}, j3 in 0..{1} {{\n"
      "    block C(vi: spatial = i3, vj: spatial = j3) {{\n"
      "      reads D[vi, vj], S[vi]; writes C[vi, vj]\n"
      "      C[vi, vj] = D[vi, vj] + S[vi]\n"
      "    }}\n  }}\n}}\n",
      m, n);
}

std::string Window(int64_t m, int64_t n, int64_t k) {
  return fmt::format(
      "func @f(A: f32[{0}, {3}], W: f32[{1}, {0}, {2}], out C: f32[{1}, {4}]) {{\n"
      "  for c in 0..{1}, x in 0..{4}, r in 0..{0}, s in 0..{2} {{\n"
      "    block C(vc: spatial = c, vx: spatial = x, vr: reduce = r, vs: reduce = s) {{\n"
      "      reads A[vr, vx + vs], W[vc, vr, vs]; writes C[vc, vx]\n"
      "      init {{ C[vc, vx] = 0f32 }}\n"
      "      C[vc, vx] = C[vc, vx] + A[vr, vx + vs] * W[vc, vr, vs]\n"
      "    }}\n  }}\n}}\n",
      std::min<int64_t>(m, 5), n, std::min<int64_t>(k, 3), m + std::min<int64_t>(k, 3) - 1, m);
}

std::string Turned(int64_t m, int64_t n, int64_t) {
  return fmt::format(
      "func @f(A: f32[{0}, {1}], B: f32[{1}, {0}], out C: f32[{1}, {0}]) {{\n"
      "  for i in 0..{1}, j in 0..{0} {{\n"
      "    block C(vi: spatial = i, vj: spatial = j) {{\n"
      "      reads A[vj, vi], B[vi, vj]; writes C[vi, vj]\n"
      "      C[vi, vj] = A[vj, vi] * 2f32 + B[vi, vj]\n"
      "    }}\n  }}\n}}\n",
      m, n);
}

std::string Total(int64_t m, int64_t n, int64_t) {
  return fmt::format(
      "func @f(A: f32[{0}], out C: f32[1]) {{\n"
      "  for i in 0..1, j in 0..{0} {{\n"
      "    block C(vi: spatial = i, vj: reduce = j) {{\n"
      "      reads A[vj]; writes C[vi]\n"
      "      init {{ C[vi] = 0f32 }}\n"
      "      C[vi] = C[vi] + A[vj]\n"
      "    }}\n  }}\n}}\n",
      n > 8 ? m * n * 50 : m * n);
}

const Subject kSubjects[] = {
    {"product", [](int64_t m, int64_t n, int64_t k) { return Product(m, n, k, false); }},
    {"product and relu", [](int64_t m, int64_t n, int64_t k) { return Product(m, n, k, true); }},
    {"sums of rows", RowSum},
    {"normalised", Normalised},
    {"window", Window},
    {"turned", Turned},
    {"total", Total}};

// Of the tiles' edges, and primes.
constexpr int64_t kSizes[][3] = {{1, 1, 1},  {3, 8, 5},   {7, 16, 17}, {8, 7, 16},
                                 {9, 17, 8}, {13, 31, 2}, {16, 15, 9}};

Module Read(const std::string& text) {
  Expected<Module> module = ParseModule(text);
  EXPECT_TRUE(module) << text << (module ? "" : ToString(module.errors()));
  return *module;
}

void CheckPoints(const Module& module, const Sketches& sketches, int points,
                 std::set<std::string>* rules) {
  std::mt19937_64 random(7);
  const auto want = testing::RunRandom(module, "f", {});
  ASSERT_EQ(want.error, "");
  for (size_t i = 0; i < sketches.all().size(); ++i) {
    const Sketch& sketch = sketches.all()[i];
    for (const Step& step : sketch.steps)
      rules->insert(RulesFor(sketches.machine())[step.rule].name);
    int legal = 0;
    for (int p = 0; p < points; ++p) {
      const std::optional<ops::Point> drawn =
          p == 0 ? std::optional(sketch.guess) : sketch.space.Sample(&random);
      ASSERT_TRUE(drawn) << sketch.name << "\n" << sketch.space.ToString();
      const std::string where = sketch.name + " " + graph::ChoicesText(*drawn);
      const Expected<Schedule> schedule = sketches.At(i, *drawn);
      if (!schedule) continue;
      ++legal;
      const Status valid = Verify(schedule->module(), Stage::kSchedulable);
      ASSERT_TRUE(valid) << where << ToString(valid.errors());
      const auto got = testing::RunRandom(schedule->module(), "f", {});
      ASSERT_EQ(got.error, "") << where << "\n" << Print(schedule->module());
      ASSERT_TRUE(testing::SameTensors(want.args, got.args, module.Find("f")))
          << where << "\n"
          << Print(schedule->module());
      Schedule again(module, "f");
      ASSERT_TRUE(again.Replay(schedule->trace())) << where;
      ASSERT_EQ(Print(again.module()), Print(schedule->module())) << where;
    }
    EXPECT_GT(legal, 0) << sketch.name;
  }
}

class SketchTest : public ::testing::TestWithParam<Subject> {};

TEST_P(SketchTest, PointsMeanTheFunctionOnCpus) {
  const Machine machine = MachineOf(kCpu);
  std::set<std::string> rules;
  for (const auto& [m, n, k] : kSizes) {
    const Module module = Read(GetParam().text(m, n, k));
    const Expected<Sketches> sketches = Sketches::Of(module, "f", machine);
    ASSERT_TRUE(sketches) << ToString(sketches.errors());
    CheckPoints(module, *sketches, 6, &rules);
    if (HasFatalFailure()) FAIL() << "at " << m << ", " << n << ", " << k;
  }
}

TEST_P(SketchTest, PointsMeanTheFunctionOnGpus) {
  const Machine machine = MachineOf(kGpu);
  std::set<std::string> rules;
  for (const auto& [m, n, k] : kSizes) {
    const Module module = Read(GetParam().text(m, n, k));
    const Expected<Sketches> sketches = Sketches::Of(module, "f", machine);
    ASSERT_TRUE(sketches) << ToString(sketches.errors());
    CheckPoints(module, *sketches, 4, &rules);
    if (HasFatalFailure()) FAIL() << "at " << m << ", " << n << ", " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SketchTest, ::testing::ValuesIn(kSubjects), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name) c = c == ' ' ? '_' : c;
  return name;
});

std::string Bytes(int64_t m, int64_t n, int64_t k, bool turned) {
  return fmt::format(
      "func @f(A: u8[{0}, {2}], B: i8[{3}], out C: i32[{0}, {1}]) {{\n"
      "  for i in 0..{0}, j in 0..{1}, k in 0..{2} {{\n"
      "    block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) {{\n"
      "      reads A[vi, vk], B[{4}]; writes C[vi, vj]\n"
      "      init {{ C[vi, vj] = 0i32 }}\n"
      "      C[vi, vj] = C[vi, vj] + i32(A[vi, vk]) * i32(B[{4}])\n"
      "    }}\n  }}\n}}\n",
      m, n, k, turned ? fmt::format("{}, {}", n, k) : fmt::format("{}, {}", k, n),
      turned ? "vj, vk" : "vk, vj");
}

constexpr const char* kVnni = "llvm -mtriple=x86_64-linux-gnu -mcpu=cascadelake -num-cores=2";

// Guesses are what doing the schedule gives, wherever that is legal, and need no schedule.
void ExpectRightGuesses(const Module& module, const Machine& machine, const char* name) {
  Expected<Sketches> sketches = Sketches::Of(module, "f", machine);
  ASSERT_TRUE(sketches);
  std::mt19937_64 random(5);
  for (size_t i = 0; i < sketches->all().size(); ++i) {
    for (int draw = 0; draw < 12; ++draw) {
      const auto point = sketches->all()[i].space.Sample(&random);
      const auto exact = point ? sketches->WorkAt(i, *point) : std::nullopt;
      if (!exact) continue;
      const std::string what =
          fmt::format("{}: {} {}", name, sketches->all()[i].name, graph::ChoicesText(*point));
      const auto guess = sketches->GuessAt(i, *point);
      ASSERT_TRUE(guess) << what;
      EXPECT_TRUE(sketches->IsNumeric(i, *point)) << what;
      const double seconds = EstimateSeconds(*exact, machine);
      EXPECT_NEAR(EstimateSeconds(*guess, machine), seconds, 0.02 * seconds) << what;
    }
  }
}

TEST_P(SketchTest, GuessesAreThePricesOnCpus) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{64, 96, 128}, {60, 77, 100}})
    ExpectRightGuesses(Read(GetParam().text(m, n, k)), MachineOf(kCpu), GetParam().name);
}

TEST_P(SketchTest, GuessesAreThePricesOnGpus) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{64, 96, 128}, {60, 77, 100}})
    ExpectRightGuesses(Read(GetParam().text(m, n, k)), MachineOf(kGpu), GetParam().name);
}

TEST(Sketches, OperationsOfTheTableTakeProductsOfBytes) {
  const Machine machine = MachineOf(kVnni);
  for (const bool turned : {false, true}) {
    for (const auto& [m, n, k] :
         {std::array<int64_t, 3>{1, 16, 4}, {7, 48, 8}, {6, 32, 64}, {13, 16, 12}}) {
      const Module module = Read(Bytes(m, n, k, turned));
      const Expected<Sketches> sketches = Sketches::Of(module, "f", machine);
      ASSERT_TRUE(sketches);
      std::set<std::string> rules;
      CheckPoints(module, *sketches, 6, &rules);
      EXPECT_TRUE(rules.contains("tensorize")) << m << ", " << n << ", " << k;
      const Expected<Schedule> at = sketches->At(0, sketches->all()[0].guess);
      ASSERT_TRUE(at) << ToString(at.errors());
      EXPECT_NE(at->trace().ToString().find("x86.vpdpbusd.512.row"), std::string::npos);
    }
  }
}

TEST(Sketches, GuessesAreThePricesOfProductsOfBytes) {
  for (const bool turned : {false, true})
    ExpectRightGuesses(Read(Bytes(24, 48, 64, turned)), MachineOf(kVnni), "product of bytes");
}

TEST(Sketches, EveryRuleIsUsed) {
  for (const char* target : {kCpu, kGpu}) {
    const Machine machine = MachineOf(target);
    std::set<std::string> used;
    for (const Subject& subject : kSubjects) {
      const Module module = Read(subject.text(64, 64, 64));
      const Expected<Sketches> sketches = Sketches::Of(module, "f", machine);
      ASSERT_TRUE(sketches);
      for (const Sketch& s : sketches->all())
        for (const Step& step : s.steps) used.insert(RulesFor(machine)[step.rule].name);
    }
    used.insert("tensorize");  // of bytes alone, above
    for (const Rule& rule : RulesFor(machine)) EXPECT_TRUE(used.contains(rule.name)) << rule.name;
  }
}

TEST(Sketches, AreTheSameEachTimeAndDiffer) {
  const Module module = Read(Product(64, 64, 64, true));
  const Expected<Sketches> a = Sketches::Of(module, "f", MachineOf(kCpu));
  const Expected<Sketches> b = Sketches::Of(module, "f", MachineOf(kCpu));
  ASSERT_TRUE(a && b);
  std::set<std::string> names;
  ASSERT_EQ(a->all().size(), b->all().size());
  for (size_t i = 0; i < a->all().size(); ++i) {
    EXPECT_EQ(a->all()[i].name, b->all()[i].name);
    EXPECT_EQ(a->all()[i].space.ToString(), b->all()[i].space.ToString());
    names.insert(a->all()[i].name);
  }
  EXPECT_EQ(names.size(), a->all().size());
}

TEST(Sketches, RulesOfUsersComeFirst) {
  const Module module = Read(Product(8, 8, 8, false));
  const Rule own = {"own", Then::kSkipOthers, [](const Draft&, const std::string&) { return 1; },
                    [](Draft* d, const std::string& block, int) {
                      const Names loops = d->schedule.GetLoops(block);
                      d->Choose("mine", {1, 2, 4}, 2);
                      d->schedule.SplitBy(loops[0], {"-1", Draft::Ref("mine")});
                    }};
  const Expected<Sketches> sketches = Sketches::Of(module, "f", MachineOf(kCpu), {own});
  ASSERT_TRUE(sketches);
  ASSERT_EQ(sketches->all().size(), 1U);
  EXPECT_EQ(sketches->all()[0].name, "own(C)");
  const Expected<Schedule> at = sketches->At(0, {{"mine", 4}});
  ASSERT_TRUE(at);
  Schedule s = *at;
  EXPECT_EQ(s.GetExtent("i.1"), 4);
}

TEST(Work, WhatFitsNoMachineHasNoPrice) {
  const Machine gpu = MachineOf(kGpu);
  const Module module = Read(Product(64, 2048, 64, false));
  Schedule s(module, "f");
  s.Bind("i", ThreadAxis::kBlockIdxX);
  s.Bind("j", ThreadAxis::kThreadIdxX);
  ASSERT_TRUE(s.ok());
  EXPECT_FALSE(WorkOf(*s.func(), gpu));
}

TEST(Work, PricesOrderWhatIsClear) {
  const Machine cpu = MachineOf(kCpu);
  const Module module = Read(Product(512, 512, 512, false));
  const double plain = EstimateSeconds(*WorkOf(*module.Find("f"), cpu), cpu);
  const Expected<Sketches> sketches = Sketches::Of(module, "f", cpu);
  ASSERT_TRUE(sketches);
  double best = plain;
  for (size_t i = 0; i < sketches->all().size(); ++i) {
    const auto work = sketches->WorkAt(i, sketches->all()[i].guess);
    ASSERT_TRUE(work) << sketches->all()[i].name;
    best = std::min(best, EstimateSeconds(*work, cpu));
  }
  // Vectors and cores.
  EXPECT_LT(best * 16, plain);
  // No more than the machine has.
  const double flops = 2.0 * 512 * 512 * 512;
  EXPECT_GT(best, flops / (4 * cpu.VectorUnit(DType::Float(32)).FlopsPerSecond()));
}

}  // namespace
}  // namespace tenon::sketch
