// Tensor expressions to functions: blocks, order, parameters, errors.
#include "te/te.h"

#include <gtest/gtest.h>

#include "loop/print.h"
#include "support/interp_check.h"

namespace tenon::te {
namespace {

TEST(Te, MatMulComputesProducts) {
  Tensor a = Placeholder("A", {IndexConst(3), IndexConst(5)}, DType::Float(32));
  Tensor b = Placeholder("B", {IndexConst(5), IndexConst(2)}, DType::Float(32));
  Tensor c = Compute("C", {IndexConst(3), IndexConst(2)}, [&](const Indices& i) {
    Axis k = ReduceAxis("k", IndexConst(5));
    return Sum(a(i[0], k.var) * b(k.var, i[1]), {k});
  });
  Expected<Func> f = MakeFunc("matmul", {a, b}, {c});
  ASSERT_TRUE(f) << ToString(f.errors());
  EXPECT_EQ((*f)->num_outputs, 1);
  Module m;
  m.Add(*f);
  testing::RunResult run = testing::RunRandom(m, "matmul", {});
  ASSERT_EQ(run.error, "");
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 2; ++j) {
      double want = 0;
      for (int64_t k = 0; k < 5; ++k)
        want += run.args[0].Get(i * 5 + k) * run.args[1].Get(k * 2 + j);
      EXPECT_EQ(run.args[2].Get(i * 2 + j), want);
    }
  }
}

TEST(Te, ProducersComeFirstAndOnlyWhatIsNeeded) {
  Tensor x = Placeholder("x", {IndexConst(4)}, DType::Int(32));
  Tensor unused = Compute("unused", {IndexConst(4)}, [&](const Indices& i) { return x.At(i); });
  Tensor twice =
      Compute("twice", {IndexConst(4)}, [&](const Indices& i) { return x.At(i) + x.At(i); });
  Tensor square = Compute("square", {IndexConst(4)},
                          [&](const Indices& i) { return twice.At(i) * twice.At(i); });
  Expected<Func> f = MakeFunc("f", {x}, {square});
  ASSERT_TRUE(f);
  std::string text = Print(*f);
  EXPECT_LT(text.find("block twice"), text.find("block square"));
  EXPECT_EQ(text.find("unused"), std::string::npos);
}

TEST(Te, SeveralTensorsWritePartsOfOneBuffer) {
  Tensor x = Placeholder("x", {IndexConst(3)}, DType::Float(32));
  Buffer whole = BufferNode::Make("whole", DType::Float(32), {IndexConst(6)});
  auto part = [&](const char* name, int64_t at, double factor) {
    Storage storage;
    storage.buffer = whole;
    storage.place = [at](const Indices& i) { return Indices{i[0] + at}; };
    return Compute(
        name, {IndexConst(3)},
        [&](const Indices& i) { return x.At(i) * MakeConst(DType::Float(32), factor); }, storage);
  };
  Expected<Func> f = MakeFunc("f", {x}, {part("low", 0, 1), part("high", 3, 2)});
  ASSERT_TRUE(f);
  EXPECT_EQ((*f)->num_outputs, 1);
  Module m;
  m.Add(*f);
  testing::RunResult run = testing::RunRandom(m, "f", {});
  ASSERT_EQ(run.error, "");
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(run.args[1].Get(3 + i), 2 * run.args[0].Get(i));
}

TEST(Te, AnInputThatIsNotListedIsAnError) {
  Tensor x = Placeholder("x", {IndexConst(3)}, DType::Float(32));
  Tensor y = Compute("y", {IndexConst(3)}, [&](const Indices& i) { return x.At(i); });
  Expected<Func> f = MakeFunc("f", {}, {y});
  ASSERT_FALSE(f);
  EXPECT_EQ(f.errors()[0].message, "function 'f': 'x' is read but is not an input");
}

TEST(Te, ATensorThatIsInputAndOutputIsAnError) {
  Tensor x = Placeholder("x", {IndexConst(3)}, DType::Float(32));
  EXPECT_FALSE(MakeFunc("f", {x}, {x}));
}

TEST(Te, EmptyTensors) {
  Tensor x = Placeholder("x", {IndexConst(0)}, DType::Float(32));
  Tensor s = Compute("s", {}, [&](const Indices&) {
    Axis r = ReduceAxis("r", IndexConst(0));
    return Sum(x(r.var), {r});
  });
  Expected<Func> f = MakeFunc("f", {x}, {s});
  ASSERT_TRUE(f);
  EXPECT_EQ((*f)->buffers.size(), 2u);
}

TEST(Te, TuplesAreReducedTogether) {
  Tensor x = Placeholder("x", {IndexConst(3), IndexConst(7)}, DType::Int(32));
  auto element = [&](const Indices& i) {
    Axis k = ReduceAxis("k", IndexConst(7));
    TupleBody body;
    body.axes = {k};
    body.values = {CastExpr::Make(DType::Int(32), k.var), x(i[0], k.var)};
    body.identity = {IntConst::Make(DType::Int(32), -1), IntConst::Make(DType::Int(32), -100)};
    body.combine = [](const std::vector<Expr>& old, const std::vector<Expr>& value) {
      Expr keep = Ge(old[1], value[1]);
      return std::vector<Expr>{Select::Make(keep, old[0], value[0]),
                               Select::Make(keep, old[1], value[1])};
    };
    return body;
  };
  std::vector<Tensor> best = ComputeTuple("best", {IndexConst(3)}, element);
  Expected<Func> f = MakeFunc("f", {x}, {best[0], best[1]});
  ASSERT_TRUE(f) << ToString(f.errors());
  Module m;
  m.Add(*f);
  testing::RunResult run = testing::RunRandom(m, "f", {});
  ASSERT_EQ(run.error, "");
  for (int64_t i = 0; i < 3; ++i) {
    int64_t at = 0;
    for (int64_t k = 1; k < 7; ++k) {
      if (run.args[0].Get(i * 7 + k) > run.args[0].Get(i * 7 + at)) at = k;
    }
    EXPECT_EQ(run.args[1].Get(i), static_cast<double>(at));
    EXPECT_EQ(run.args[2].Get(i), run.args[0].Get(i * 7 + at));
  }
}

TEST(Te, AScanReadsEarlierRows) {
  Tensor x = Placeholder("x", {IndexConst(6)}, DType::Int(32));
  Tensor state = Placeholder("state", {IndexConst(6)}, DType::Int(32));
  Tensor init = Compute("init", {IndexConst(2)}, [&](const Indices& i) { return x.At(i); });
  Tensor update = Compute("update", {IndexConst(6)}, [&](const Indices& i) {
    return state(i[0] - 1) + state(i[0] - 2) + x.At(i);
  });
  Expected<std::vector<Tensor>> sums = Scan("sums", {init}, {update}, {state});
  ASSERT_TRUE(sums) << ToString(sums.errors());
  Expected<Func> f = MakeFunc("f", {x}, *sums);
  ASSERT_TRUE(f) << ToString(f.errors());
  Module m;
  m.Add(*f);
  testing::RunResult run = testing::RunRandom(m, "f", {});
  ASSERT_EQ(run.error, "");
  for (int64_t i = 0; i < 6; ++i) {
    double want = run.args[0].Get(i);
    if (i >= 2) want += run.args[1].Get(i - 1) + run.args[1].Get(i - 2);
    EXPECT_EQ(run.args[1].Get(i), want);
  }
}

TEST(Te, ScansOfSeveralStatesTakeTheirRowsTogether) {
  const std::vector<Expr> shape = {IndexConst(3), IndexConst(6)};  // rows are of dim 1
  const std::vector<Expr> begin = {IndexConst(3), IndexConst(1)};
  Tensor x = Placeholder("x", shape, DType::Int(32));
  Tensor a = Placeholder("a", shape, DType::Int(32)), b = Placeholder("b", shape, DType::Int(32));
  auto first = [&](const Indices& i) { return x.At(i); };
  auto before = [](const Tensor& t, const Indices& i) { return t(i[0], i[1] - 1); };
  Tensor a0 = Compute("a0", begin, first), b0 = Compute("b0", begin, first);
  Tensor sum = Compute("sum", shape, [&](const Indices& i) { return before(a, i) + before(b, i); });
  Tensor b1 = Compute("b1", shape, [&](const Indices& i) { return sum.At(i) - x.At(i); });
  Tensor a1 = Compute("a1", shape, [&](const Indices& i) { return before(a, i) + b1.At(i); });
  Expected<std::vector<Tensor>> both = Scan("both", {a0, b0}, {a1, b1}, {a, b}, 1);
  ASSERT_TRUE(both) << ToString(both.errors());
  Expected<Func> f = MakeFunc("f", {x}, *both);
  ASSERT_TRUE(f) << ToString(f.errors());
  Module m;
  m.Add(*f);
  testing::RunResult run = testing::RunRandom(m, "f", {});
  ASSERT_EQ(run.error, "");
  for (int64_t i = 0; i < 18; ++i) {
    const bool start = i % 6 == 0;
    const double in = run.args[0].Get(i);
    const double want_b = start ? in : run.args[1].Get(i - 1) + run.args[2].Get(i - 1) - in;
    EXPECT_EQ(run.args[2].Get(i), want_b);
    EXPECT_EQ(run.args[1].Get(i), start ? in : run.args[1].Get(i - 1) + want_b);
  }
}

TEST(Te, WhatAScanRefuses) {
  auto number = [](const Indices&) { return IntConst::Make(DType::Int(32), 1); };
  auto vector = [](int64_t n) { return std::vector<Expr>{IndexConst(n)}; };
  Tensor state = Placeholder("state", vector(6), DType::Int(32));
  Tensor other = Placeholder("other", vector(6), DType::Int(32));
  Tensor init = Compute("init", vector(1), number), more = Compute("more", vector(2), number);
  auto reading = [&](const std::string& name, const Tensor& t, int64_t before) {
    return Compute(name, vector(6), [&](const Indices& i) {
      return t(before == 0 ? i[0] : i[0] - IndexConst(before));
    });
  };
  Tensor twice = reading("twice", state, 1), early = reading("early", state, 1);
  auto error = [](Expected<std::vector<Tensor>> scan) {
    return scan ? std::string() : scan.errors()[0].message;
  };
  constexpr const char* kRows =
      ": of a state an earlier row is there, of a tensor between a state and an update this one";
  EXPECT_EQ(error(Scan("s", {init}, {reading("u", twice, 0)}, {state})), "");
  EXPECT_EQ(
      error(Scan("s", {init}, {reading("u", twice, 1)}, {state})),
      std::string("scan 's': 'u' reads row i0 - 1 of 'twice' while it computes row i0") + kRows);
  EXPECT_EQ(error(Scan("s", {init}, {reading("u", state, 0)}, {state})),
            std::string("scan 's': 'u' reads row i0 of 'state' while it computes row i0") + kRows);
  Tensor late =
      Compute("late", vector(1), [&](const Indices& i) { return early(i[0] + IndexConst(1)); });
  EXPECT_EQ(error(Scan("s", {late}, {reading("u", state, 1)}, {state})),
            "scan 's': 'late' needs a state, which is not there before the first rows");
  EXPECT_EQ(error(Scan("s", {init, more}, {reading("u", state, 1), reading("v", other, 1)},
                       {state, other})),
            "scan 's': the states differ in their number of rows, or of first rows");
  EXPECT_EQ(error(Scan("s", {init}, {reading("u", state, 1)}, {state, other})),
            "scan 's': expected one init and one update for each state, got 1 and 1 for 2");
  EXPECT_EQ(error(Scan("s", {init}, {reading("u", state, 1)}, {state}, 1)),
            "scan 's': 'state' has 1 dims, so there is no axis 1");
}

// How many elements have a value, for each row; and how many had it before.
TEST(Te, StepsChangeElementsOfAnother) {
  constexpr int64_t kRows = 2, kSteps = 9, kValues = 4;
  const DType i32 = DType::Int(32);
  const Expr rows = IndexConst(kRows), values = IndexConst(kValues);
  const Tensor x = Placeholder("x", {rows, IndexConst(kSteps)}, i32);
  const auto value_of = [&](const Indices& row, const Axis& j) {
    return CastExpr::Make(DType::Index(), Binary::Make(BinaryOp::kBitAnd, x(row[0], Expr(j.var)),
                                                       MakeIntConst(i32, kValues - 1)));
  };
  const Tensor none =
      Compute("none", {rows, values}, [&](const Indices&) { return MakeIntConst(i32, 10); });
  const Axis j = ReduceAxis("j", IndexConst(kSteps));
  const auto count = [&](const Indices& row) -> ScatterBody {
    return {{row[0], value_of(row, j)}, nullptr, [&](const Expr& before) {
              return before + MakeIntConst(i32, 1);
            }};
  };
  const Scattered counts = ScatterKeeping("counts", none, {rows}, j, count);
  // Every other step, from there on.
  const Axis k = ReduceAxis("k", IndexConst(kSteps));
  const Tensor halved =
      Scatter("halved", counts.after, {rows}, k, [&](const Indices& row) -> ScatterBody {
        const Expr even = Eq(Binary::Make(BinaryOp::kBitAnd, k.var, IndexConst(1)), IndexConst(0));
        return {{row[0], value_of(row, k)}, even, [&](const Expr& before) {
                  return before - MakeIntConst(i32, 3);
                }};
      });
  const Expected<Func> f = MakeFunc("f", {x}, {counts.before, halved});
  ASSERT_TRUE(f) << ToString(f.errors());
  Module m;
  m.Add(*f);
  const testing::RunResult run = testing::RunRandom(m, "f", {});
  ASSERT_EQ(run.error, "");
  for (int64_t row = 0; row < kRows; ++row) {
    int64_t want[kValues] = {10, 10, 10, 10};
    const auto value = [&](int64_t step) {
      return static_cast<int64_t>(run.args[0].Get(row * kSteps + step)) & (kValues - 1);
    };
    for (int64_t step = 0; step < kSteps; ++step)
      EXPECT_EQ(run.args[1].Get(row * kSteps + step), want[value(step)]++);
    for (int64_t step = 0; step < kSteps; step += 2) want[value(step)] -= 3;
    for (int64_t v = 0; v < kValues; ++v) EXPECT_EQ(run.args[2].Get(row * kValues + v), want[v]);
  }
}

}  // namespace
}  // namespace tenon::te
