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

}  // namespace
}  // namespace tenon::te
