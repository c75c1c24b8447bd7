// A long sum, which is one chain of additions until rfactor makes several of it.
//
//   reduction [SIZE [REPEAT]]
//
// prints the time of each step and the rate at which it reads. docs/tutorial.md says why each step
// helps; reduction.py is this program in Python.
#include <cmath>
#include <cstdio>

#include "measure.h"
#include "tenon/compiler.hpp"

namespace te = tenon::te;
using tenon::DataType;
using tenon::Tensor;

constexpr int64_t kLanes = 128;  // sums side by side: eight vectors of AVX-512
constexpr int64_t kParts = 64;   // pieces that the cores share

// B = the sum of A.
struct Total {
  tenon::Schedule s;
  te::Tensor a, b;
};
Total Naive(int64_t n) {
  te::Tensor a = te::Placeholder({n}, DataType::kFloat32, "A");
  te::IterVar k = te::ReduceAxis(0, n);
  te::Tensor b = te::Compute({1}, [&](te::Var) { return te::Sum(a(k), {k}); }, "B");
  return {tenon::CreateSchedule({b}), a, b};
}

// Each element of the tensor from sums of its own, in registers.
void AddInVectors(tenon::Schedule& s, const te::Tensor& tensor) {
  te::IterVar lane = s[tensor].Split(s[tensor].op().reduce_axis()[0], kLanes).second;
  te::Tensor partial = s.RFactor(tensor, lane, /*factor_axis=*/-1);
  tenon::Stage sums = s[partial];
  sums.ComputeAt(s[tensor], s[tensor].op().axis().back());
  sums.SetScope("register");
  lane = sums.op().axis().back();
  sums.Reorder({sums.op().reduce_axis()[0], lane});
  sums.Vectorize(lane);
}

// Sums of every 128th element, then their sum: vectors, whose additions do not wait for each other.
Total Lanes(int64_t n) {
  Total t = Naive(n);
  AddInVectors(t.s, t.b);
  return t;
}

// Pieces of the tensor, each summed by one core as before, then the sum of the pieces' sums.
Total Parallel(int64_t n) {
  Total t = Naive(n);
  te::IterVar part = t.s[t.b].SplitParts(t.b.op().reduce_axis()[0], kParts).first;
  te::Tensor pieces = t.s.RFactor(t.b, part, /*factor_axis=*/-1);
  AddInVectors(t.s, pieces);
  t.s[pieces].Parallel(t.s[pieces].op().axis().back());
  return t;
}

struct Step {
  const char* name;
  Total (*make)(int64_t n);
  double tolerance;
};
constexpr Step kSteps[] = {
    {"naive", Naive, 1e-2}, {"lanes", Lanes, 1e-4}, {"parallel", Parallel, 1e-4}};

int main(int argc, char** argv) try {
  const int64_t n = argc > 1 ? std::atoll(argv[1]) : int64_t{1} << 22;
  const int repeat = argc > 2 ? std::atoi(argv[2]) : 20;
  if (n <= 0 || n % (kLanes * kParts) != 0) {
    std::fprintf(stderr, "usage: reduction [SIZE [REPEAT]], SIZE a multiple of %d\n",
                 int{kLanes * kParts});
    return 2;
  }
  Tensor x = Tensor::Empty({n}, DataType::kFloat32), z = Tensor::Empty({1}, DataType::kFloat32);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    x.data_as<float>()[i] = static_cast<float>(i * 7919 % 1000) / 1000;
    sum += x.data_as<float>()[i];
  }
  std::printf("%d elements\n\n%-12s%9s%9s\n", int(n), "step", "ms", "GB/s");
  for (const Step& step : kSteps) {
    Total t = step.make(n);
    tenon::Library library = tenon::Build(t.s, {t.a, t.b});
    tenon::Function f = library.GetFunction("main");
    f(x, z);
    if (std::abs(*z.data_as<float>() - sum) > step.tolerance * sum) {
      std::printf("%s: wrong\n", step.name);
      return 1;
    }
    std::vector<double> seconds;
    for (int i = 0; i < repeat; ++i) seconds.push_back(SecondsOf([&] { f(x, z); }));
    std::printf("%-12s%9.3f%9.1f\n", step.name, Median(seconds) * 1e3,
                4.0 * n / Median(seconds) / 1e9);
  }
  return 0;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "reduction: %s\n", error.what());
  return 1;
}
