// From tensor expressions to running code, through the public headers alone.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tenon/compiler.hpp"

namespace {

using tenon::DataType;
using tenon::Error;
namespace te = tenon::te;

std::vector<float> Ramp(size_t n, float scale) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = scale * static_cast<float>(i % 17) - 3;
  return v;
}

tenon::Tensor View(std::vector<float>& v, const std::vector<int64_t>& shape) {
  return tenon::Tensor::Wrap(v.data(), shape, DataType::kFloat32);
}

struct VectorAdd {
  te::Var n{"n"};
  te::Tensor a = te::Placeholder({n}, DataType::kFloat32, "A");
  te::Tensor b = te::Placeholder({n}, DataType::kFloat32, "B");
  te::Tensor c = te::Compute({n}, [&](te::Var i) { return a(i) + b(i); }, "C");
};

void ExpectAdds(const tenon::Function& add, size_t n) {
  std::vector<float> x = Ramp(n, 1), y = Ramp(n, 2), z(n, -1);
  auto dim = static_cast<int64_t>(n);
  add(View(x, {dim}), View(y, {dim}), View(z, {dim}));
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(z[i], x[i] + y[i]) << i << " of " << n;
}

TEST(Build, VectorAddServesEverySize) {
  VectorAdd v;
  tenon::Schedule s = tenon::CreateSchedule({v.c});
  auto [outer, inner] = s[v.c].Split(v.c.op().axis()[0], 64);
  s[v.c].Parallel(outer);
  s[v.c].Vectorize(inner);
  tenon::Library add = tenon::Build(s, {v.a, v.b, v.c}, tenon::Target(), "add");
  for (size_t n : {0U, 1U, 63U, 64U, 65U, 1000U}) {
    ExpectAdds(add.GetFunction("add"), n);
    ExpectAdds(add.GetFunction("main"), n);
  }
}

TEST(Build, AnExportedLibraryIsLoaded) {
  VectorAdd v;
  tenon::Schedule s = tenon::CreateSchedule({v.c});
  std::string path = testing::TempDir() + "tenon_add.so";
  tenon::Build(s, {v.a, v.b, v.c}, tenon::Target(), "add").ExportLibrary(path);
  tenon::Module module = tenon::Module::LoadFromFile(path);
  ExpectAdds(module.GetFunction("add"), 10);
  ASSERT_EQ(module.Inputs().size(), 2U);
  EXPECT_EQ(module.Inputs()[1].name, "B");
  EXPECT_EQ(module.Inputs()[1].dims[0], "n");
  EXPECT_EQ(module.Outputs()[0].name, "C");
  std::filesystem::remove(path);
}

bool IsMapped(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(path) != std::string::npos) return true;
  }
  return false;
}

// Its code is gone, and what frees its results is not.
TEST(Build, ResultsOutliveTheirLibrary) {
  VectorAdd v;
  const tenon::Schedule s = tenon::CreateSchedule({v.c});
  for (const char* target : {"llvm", "c"}) {
    const std::string path = testing::TempDir() + "tenon_going_" + target + ".so";
    tenon::Build(s, {v.a, v.b, v.c}, tenon::Target(target), "add").ExportLibrary(path);
    tenon::Tensor a = tenon::Tensor::Empty({2}, tenon::DataType::kFloat32), sum;
    a.data_as<float>()[0] = a.data_as<float>()[1] = 1;
    {
      tenon::Function add = tenon::Module::LoadFromFile(path).GetFunction("add");
      sum = add(a, a);
      EXPECT_TRUE(IsMapped(path)) << target;
    }
    EXPECT_FALSE(IsMapped(path)) << target;
    EXPECT_EQ(sum.data_as<float>()[1], 2) << target;
    sum = tenon::Tensor();
    std::filesystem::remove(path);
  }
}

TEST(Build, ArgumentsAreChecked) {
  VectorAdd v;
  tenon::Schedule s = tenon::CreateSchedule({v.c});
  tenon::Library add = tenon::Build(s, {v.a, v.b, v.c}, tenon::Target(), "add");
  std::vector<float> x = Ramp(4, 1), y = Ramp(5, 1);
  try {
    add.GetFunction("add")(View(x, {4}), View(y, {5}));
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "Shape mismatch: n=4 (from A.shape[0]) but B.shape[0]=5\nwhen calling: "
                 "`add(A: Tensor([n], float32), B: Tensor([n], float32))`");
  }
}

struct MatMul {
  te::Tensor a, b, c;
  explicit MatMul(int64_t size) {
    te::Expr n(static_cast<long long>(size));
    a = te::Placeholder({n, n}, DataType::kFloat32, "A");
    b = te::Placeholder({n, n}, DataType::kFloat32, "B");
    te::IterVar k = te::ReduceAxis(0, n, "k");
    c = te::Compute(
        {n, n}, [&](te::Var i, te::Var j) { return te::Sum(a(i, k) * b(k, j), {k}); }, "C");
  }
};

void ExpectProduct(const tenon::Library& library, size_t n) {
  std::vector<float> x = Ramp(n * n, 1), y = Ramp(n * n, 0.5F), z(n * n, -1);
  auto dim = static_cast<int64_t>(n);
  library.GetFunction("main")(View(x, {dim, dim}), View(y, {dim, dim}), View(z, {dim, dim}));
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      double want = 0;
      for (size_t k = 0; k < n; ++k) want += double{x[i * n + k]} * y[k * n + j];
      ASSERT_NEAR(z[i * n + j], want, 1e-2) << i << ", " << j << " of " << n;
    }
  }
}

TEST(Build, MatMulTiledAndReordered) {
  for (int64_t n : {64, 50}) {
    MatMul m(n);
    tenon::Schedule s = tenon::CreateSchedule({m.c});
    tenon::Stage c = s[m.c];
    auto [io, jo, ii, ji] = c.Tile(m.c.op().axis()[0], m.c.op().axis()[1], 16, 16);
    auto [ko, ki] = c.Split(c.op().reduce_axis()[0], 4);
    c.Reorder({io, jo, ko, ki, ii, ji});
    c.Vectorize(ji);
    c.Parallel(io);
    ExpectProduct(tenon::Build(s, {m.a, m.b, m.c}), static_cast<size_t>(n));
  }
}

TEST(Build, MatMulThroughAWriteCacheWhicheverStageComesFirst) {
  for (bool cache_first : {false, true}) {
    MatMul m(64);
    tenon::Schedule s = tenon::CreateSchedule({m.c});
    te::Tensor cache = s.CacheWrite(m.c, "local");
    tenon::Stage c = s[m.c], cc = s[cache];
    auto shape_cache = [&] {
      auto [ko, ki] = cc.Split(cc.op().reduce_axis()[0], 4);
      te::IterVar y = cc.op().axis()[0], x = cc.op().axis()[1];
      cc.Reorder({ko, ki, y, x});
      cc.Vectorize(x);
      cc.Unroll(ki);
    };
    if (cache_first) shape_cache();
    auto [io, jo, ii, ji] = c.Tile(m.c.op().axis()[0], m.c.op().axis()[1], 8, 16);
    cc.ComputeAt(c, jo);
    if (!cache_first) shape_cache();
    c.Vectorize(ji);
    ExpectProduct(tenon::Build(s, {m.a, m.b, m.c}), 64);
  }
}

TEST(Build, PartialSumsByRFactor) {
  te::Tensor a = te::Placeholder({8, 100}, DataType::kFloat32, "A");
  te::IterVar k = te::ReduceAxis(0, 100, "k");
  te::Tensor b = te::Compute({8}, [&](te::Var i) { return te::Sum(a(i, k), {k}); }, "B");
  tenon::Schedule s = tenon::CreateSchedule({b});
  auto [ko, ki] = s[b].Split(k, 16);
  te::Tensor part = s.RFactor(b, ki);
  s[part].ComputeAt(s[b], s[b].op().axis()[0]);
  s[part].Vectorize(part.op().axis()[0]);
  tenon::Library sum = tenon::Build(s, {a, b});
  std::vector<float> x = Ramp(800, 1), y(8);
  sum.GetFunction("main")(View(x, {8, 100}), View(y, {8}));
  for (size_t i = 0; i < 8; ++i) {
    double want = 0;
    for (size_t j = 0; j < 100; ++j) want += x[i * 100 + j];
    EXPECT_NEAR(y[i], want, 1e-3);
  }
}

// y = (x * alpha + y0) for the first n elements of a longer y.
struct Axpy {
  te::Var n{"n"}, alpha{"alpha", DataType::kFloat32}, negate{"negate", DataType::kBool};
  te::Tensor x = te::Placeholder({100}, DataType::kFloat32, "X");
  te::Tensor y = te::Compute(
      {100},
      [&](te::Var i) {
        te::Expr v = te::Select(i < n, x(i) * alpha, x(i));
        return te::Select(negate, 0 - v, v);
      },
      "Y");

  tenon::Library Build(const char* target) const {
    tenon::Schedule s = tenon::CreateSchedule({y});
    auto [outer, inner] = s[y].Split(y.op().axis()[0], 32);
    s[y].Vectorize(inner);
    s[y].Parallel(outer);
    return tenon::Build(s, {n, x, alpha, negate, y}, tenon::Target(target), "axpy");
  }
};

TEST(Build, NumbersArePassedByValue) {
  for (const char* target : {"llvm", "c"}) {
    tenon::Library axpy = Axpy().Build(target);
    std::vector<float> x = Ramp(100, 1), y(100);
    axpy.GetFunction("axpy")(40, View(x, {100}), 2.5, true, View(y, {100}));
    for (size_t i = 0; i < 100; ++i) ASSERT_EQ(y[i], -(i < 40 ? 2.5F * x[i] : x[i])) << target;
    std::vector<tenon::Parameter> inputs = axpy.module().Inputs();
    ASSERT_EQ(inputs.size(), 4U);
    EXPECT_TRUE(inputs[0].is_number && inputs[2].is_number && !inputs[1].is_number);
    EXPECT_EQ(inputs[2].name, "alpha");
  }
}

TEST(Build, NumbersMustBeArguments) {
  Axpy f;
  auto message = [&](const te::Arguments& args) -> std::string {
    try {
      tenon::Lower(tenon::CreateSchedule({f.y}), args);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message({f.x, f.alpha, f.negate, f.y}),
            "the size 'n' follows from the shape of no argument; pass 'n' itself as an argument");
  EXPECT_EQ(message({f.x, f.n, f.negate, f.y}), "'alpha' is read but is not among the arguments");
  EXPECT_EQ(message({f.x, f.n, f.n, f.alpha, f.negate, f.y}), "'n' is twice among the arguments");
  EXPECT_EQ(message({f.x, f.n, f.alpha, f.y, f.negate}),
            "'negate' comes after an output; inputs come first");
  te::Var other("X", DataType::kFloat32);
  EXPECT_EQ(message({f.x, f.n, f.alpha, f.negate, other, f.y}),
            "two arguments are called 'X'; give them names of their own");
}

TEST(Build, MistakesAreErrorsThatNameThem) {
  VectorAdd v;
  auto message = [](auto&& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  tenon::Schedule s = tenon::CreateSchedule({v.c});
  te::IterVar i = v.c.op().axis()[0];
  s[v.c].Split(i, 4);
  EXPECT_EQ(message([&] { s[v.c].Vectorize(i); }),
            "vectorize of 'C': 'i0' is no loop of it now; its loops are i0.outer, i0.inner");
  tenon::Schedule fresh = tenon::CreateSchedule({v.c});
  EXPECT_EQ(message([&] { fresh[v.c].Split(i, -5); }),
            "split of 'C': the factor of 'i0' is at least 1 but is -5");
  EXPECT_EQ(message([&] { fresh[v.c].SplitFactors(i, {2, 0}); }),
            "split of 'C': the factors of 'i0' are at least 1 but one is 0");
  EXPECT_EQ(message([&] { fresh[v.c].Vectorize(te::IterVar()); }),
            "vectorize of 'C': an empty loop is no loop of it now; its loops are i0");
  EXPECT_EQ(message([&] { te::Operation().axis(); }), "the operation is empty");
  EXPECT_EQ(message([&] { v.a(1, 2); }), "'A' has 1 dims but got 2 indices");
  EXPECT_EQ(message([&] { tenon::Build(s, {v.a, v.c}); }),
            "'B' is read but is not among the arguments");
  EXPECT_EQ(message([&] { tenon::Target("llvm -mcpu=none-such"); }).substr(0, 7), "unknown");
  te::Tensor d = te::Compute({v.n}, [&](te::Var j) { return v.c(j) * 2; }, "D");
  tenon::Schedule two = tenon::CreateSchedule({d});
  EXPECT_EQ(
      message([&] { two[d].Vectorize(i); }),
      "vectorize of 'D': 'i0' is no loop of it now, but one of another tensor or schedule; its "
      "loops are i0");
  two[d].Vectorize(d.op().axis()[0]);
  EXPECT_EQ(message([&] { tenon::Lower(two, {v.a, v.b, d}); }).substr(0, 15), "vectorize(D.i0)");
}

}  // namespace
