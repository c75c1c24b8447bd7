// A matrix product made fast step by step. Each step is the one before with one thing changed.
//
//   matmul [SIZE [REPEAT]]
//
// prints the rate of each step, the median of the repeats, and its share of what the cores it uses
// could do at most, which is measured with a loop of multiply-adds on registers. The last two steps
// use all cores. docs/tutorial.md says why each step helps; matmul.py is this program in Python.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "measure.h"
#include "tenon/compiler.hpp"

namespace te = tenon::te;
using tenon::DataType;
using tenon::Schedule;
using tenon::Tensor;

constexpr int64_t kWidth = 64;  // columns of a block of C, and of a panel of B
constexpr int64_t kRows = 6;    // rows of C whose sums are kept in registers: 24 of the 32

// A schedule, and the parameters of its function.
struct Kernel {
  Schedule s;
  te::Tensor a, b, c;
};

te::Tensor Input(int64_t n, const char* name) {
  return te::Placeholder({n, n}, DataType::kFloat32, name);
}

// C = A B, and its schedule with nothing said.
Kernel Product(int64_t n) {
  te::Tensor a = Input(n, "A"), b = Input(n, "B");
  te::IterVar k = te::ReduceAxis(0, n);
  te::Tensor c = te::Compute(
      {n, n}, [&](te::Var i, te::Var j) { return te::Sum(a(i, k) * b(k, j), {k}); }, "C");
  return {tenon::CreateSchedule({c}), a, b, c};
}

Kernel Naive(int64_t n) { return Product(n); }

// The loops of a block of C.
struct Loops {
  te::IterVar io, jo, ko, ki, ii, ji;
};
Loops Tile(Kernel& p) {
  auto [io, jo, ii, ji] = p.s[p.c].Tile(p.c.op().axis()[0], p.c.op().axis()[1], kWidth, kWidth);
  auto [ko, ki] = p.s[p.c].Split(p.c.op().reduce_axis()[0], 4);
  return {io, jo, ko, ki, ii, ji};
}

// A block of C at a time, so that what it needs of A and B stays in the caches.
Kernel Blocked(int64_t n) {
  Kernel p = Product(n);
  auto [io, jo, ko, ki, ii, ji] = Tile(p);
  p.s[p.c].Reorder({io, jo, ko, ki, ii, ji});
  return p;
}

// The innermost loop runs along rows: vector operations for its elements.
Kernel Vectorized(int64_t n) {
  Kernel p = Product(n);
  auto [io, jo, ko, ki, ii, ji] = Tile(p);
  p.s[p.c].Reorder({io, jo, ko, ki, ii, ji});
  p.s[p.c].Vectorize(ji);
  return p;
}

// ki inside ii: four steps of the sums of a row while they are at hand.
void OrderForRows(Kernel& p) {
  auto [io, jo, ko, ki, ii, ji] = Tile(p);
  p.s[p.c].Reorder({io, jo, ko, ii, ki, ji});
  p.s[p.c].Vectorize(ji);
}
Kernel Reordered(int64_t n) {
  Kernel p = Product(n);
  OrderForRows(p);
  return p;
}

te::Tensor ProductWithPanels(int64_t n, const te::Tensor& a, const te::Tensor& panels) {
  te::IterVar k = te::ReduceAxis(0, n);
  return te::Compute(
      {n, n},
      [&](te::Var i, te::Var j) {
        return te::Sum(a(i, k) * panels(j / kWidth, k, j % kWidth), {k});
      },
      "C");
}

// C = A B, with B copied into panels that are read in order; `share`: by all cores.
Kernel PackedProduct(int64_t n, bool share = false) {
  te::Tensor a = Input(n, "A"), b = Input(n, "B");
  te::Tensor panels = te::Compute(
      {n / kWidth, n, kWidth},
      [&](te::Var p, te::Var x, te::Var y) { return b(x, p * kWidth + y); }, "panels");
  te::Tensor c = ProductWithPanels(n, a, panels);
  Kernel out{tenon::CreateSchedule({c}), a, b, c};
  std::vector<te::IterVar> axis = panels.op().axis();
  out.s[panels].Reorder({axis[1], axis[0], axis[2]});  // reads rows of B as they lie
  out.s[panels].Vectorize(axis[2]);
  if (share) out.s[panels].Parallel(axis[1]);
  return out;
}
Kernel Packed(int64_t n) {
  Kernel p = PackedProduct(n);
  OrderForRows(p);
  return p;
}

// The sums of a few rows stay in registers and are written once. The loop over groups of rows.
te::IterVar KeepSums(Kernel& p) {
  te::Tensor sums = p.s.CacheWrite(p.c, "register");
  auto [io, jo, ii, ji] = p.s[p.c].Tile(p.c.op().axis()[0], p.c.op().axis()[1], kRows, kWidth);
  tenon::Stage inner = p.s[sums];
  inner.ComputeAt(p.s[p.c], jo);
  std::vector<te::IterVar> axis = inner.op().axis();
  inner.Reorder({inner.op().reduce_axis()[0], axis[0], axis[1]});
  inner.Unroll(axis[0]);
  inner.Vectorize(axis[1]);
  p.s[p.c].Vectorize(ji);
  return io;
}
Kernel Cached(int64_t n) {
  Kernel p = PackedProduct(n);
  KeepSums(p);
  return p;
}

// Rows of C are divided over the cores, and so are those of B that are packed.
Kernel Parallel(int64_t n) {
  Kernel p = PackedProduct(n, /*share=*/true);
  p.s[p.c].Parallel(KeepSums(p));
  return p;
}

// B comes as panels: what a network does with its weights.
Kernel Prepacked(int64_t n) {
  te::Tensor a = Input(n, "A");
  te::Tensor panels = te::Placeholder({n / kWidth, n, kWidth}, DataType::kFloat32, "panels");
  te::Tensor c = ProductWithPanels(n, a, panels);
  Kernel p{tenon::CreateSchedule({c}), a, panels, c};
  p.s[p.c].Parallel(KeepSums(p));
  return p;
}

struct Step {
  const char* name;
  Kernel (*make)(int64_t n);
  bool all_cores = false, panels = false;
};
constexpr Step kSteps[] = {{"naive", Naive},
                           {"blocked", Blocked},
                           {"vectorized", Vectorized},
                           {"reordered", Reordered},
                           {"packed", Packed},
                           {"cached", Cached},
                           {"parallel", Parallel, true},
                           {"prepacked", Prepacked, true, true}};

// Of a few rows, against sums in double precision.
bool IsProduct(const float* x, const float* y, const float* z, int64_t n) {
  for (int64_t i = 0; i < n; i += 17) {
    for (int64_t j = 0; j < n; j += 13) {
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += double{x[i * n + k]} * y[k * n + j];
      if (std::abs(z[i * n + j] - sum) > 1e-4 * sum) return false;
    }
  }
  return true;
}

int main(int argc, char** argv) try {
  const int64_t n = argc > 1 ? std::atoll(argv[1]) : 1024;
  const int repeat = argc > 2 ? std::atoi(argv[2]) : 5;
  if (n <= 0 || n % kWidth != 0) {
    std::fprintf(stderr, "usage: matmul [SIZE [REPEAT]], SIZE a multiple of %d\n", int{kWidth});
    return 2;
  }
  Tensor x = Tensor::Empty({n, n}, DataType::kFloat32),
         y = Tensor::Empty({n, n}, DataType::kFloat32);
  Tensor z = Tensor::Empty({n, n}, DataType::kFloat32);
  Tensor panels = Tensor::Empty({n / kWidth, n, kWidth}, DataType::kFloat32);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> between(0, 1);
  for (int64_t i = 0; i < n * n; ++i) {
    x.data_as<float>()[i] = between(random);
    const float value = between(random);
    y.data_as<float>()[i] = value;
    panels.data_as<float>()[(i % n / kWidth * n + i / n) * kWidth + i % kWidth] = value;
  }
  const int cores = Cores();
  const Probe one(1), all(cores);
  std::printf("%d x %d, peak %.1f GFLOP/s on one core, %.1f on %d\n\n", int(n), int(n), one(),
              all(), cores);
  std::printf("%-12s%9s%10s%9s\n", "step", "ms", "GFLOP/s", "of peak");
  for (const Step& step : kSteps) {
    Kernel kernel = step.make(n);
    tenon::Library library = tenon::Build(kernel.s, {kernel.a, kernel.b, kernel.c});
    tenon::Function f = library.GetFunction("main");
    const Tensor& second = step.panels ? panels : y;
    f(x, second, z);
    if (!IsProduct(x.data_as<float>(), y.data_as<float>(), z.data_as<float>(), n)) {
      std::printf("%s: wrong\n", step.name);
      return 1;
    }
    // Clocks change, so the peak is measured in turn.
    const double flops = 2.0 * n * n * n;
    std::vector<double> seconds, shares;
    for (int i = 0; i < repeat; ++i) {
      const Probe& probe = step.all_cores ? all : one;
      const double before = probe();
      seconds.push_back(SecondsOf([&] { f(x, second, z); }));
      shares.push_back(flops / seconds.back() / 1e9 / std::max(before, probe()));
      if (seconds.back() > 1) break;
    }
    std::printf("%-12s%9.2f%10.1f%8.0f%%\n", step.name, Median(seconds) * 1e3,
                flops / Median(seconds) / 1e9, 100 * Median(shares));
  }
  return 0;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "matmul: %s\n", error.what());
  return 1;
}
