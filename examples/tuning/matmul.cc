// A matrix product tuned in both ways: by a template, which says what is open, and by sketches,
// which ask for nothing but what is computed. Prints what was found, and checks an element.
//
//   matmul [trials]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tenon/tuning.hpp"

using namespace tenon;

namespace {

constexpr int64_t kSize = 256;

struct Product {
  te::Tensor a = te::Placeholder({kSize, kSize}, DataType::kFloat32, "A");
  te::Tensor b = te::Placeholder({kSize, kSize}, DataType::kFloat32, "B");
  te::IterVar k = te::ReduceAxis(0, kSize, "k");
  te::Tensor c = te::Compute(
      {kSize, kSize}, [&](te::Var i, te::Var j) { return te::Sum(a(i, k) * b(k, j), {k}); }, "C");
};

IrModule Tiled(const Product& p, tuning::Config& config) {
  Schedule s = CreateSchedule({p.c});
  const auto axes = p.c.op().axis();
  const std::vector<int64_t> rows = config.DefineSplit("rows", kSize, 2, {.max_factor = 8});
  const std::vector<int64_t> columns = config.DefineSplit("columns", kSize, 2, {.max_factor = 64});
  auto [io, ii] = s[p.c].Split(axes[0], rows[1]);
  auto [jo, ji] = s[p.c].Split(axes[1], columns[1]);
  s[p.c].Reorder({io, jo, p.k, ii, ji});
  s[p.c].Vectorize(ji);
  s[p.c].Parallel(io);
  return Lower(s, {p.a, p.b, p.c});
}

void Check(const Library& library) {
  Tensor x = Tensor::Empty({kSize, kSize}, DataType::kFloat32);
  Tensor y = Tensor::Empty({kSize, kSize}, DataType::kFloat32);
  const std::vector<float> twos(kSize * kSize, 2.0F), threes(kSize * kSize, 3.0F);
  x.CopyFromBytes(twos.data(), x.bytes());
  y.CopyFromBytes(threes.data(), y.bytes());
  const Tensor z = library.GetFunction("main")(x, y);
  std::vector<float> product(kSize * kSize);
  z.CopyToBytes(product.data(), z.bytes());
  if (product.back() != 6.0F * kSize) throw Error("ValueError", "the product is wrong");
}

}  // namespace

int main(int argc, char** argv) {
  const Product p;
  const IrModule definition = CreateFunc({p.a, p.b, p.c});
  const tuning::Options options{.trials = argc > 1 ? std::atoi(argv[1]) : 32,
                                .candidate_seconds = 0.2};
  try {
    const tuning::Task tasks[] = {
        tuning::Task::FromTemplate("matmul", definition,
                                   [&](tuning::Config& config) { return Tiled(p, config); }),
        tuning::Task::FromSketches(definition)};
    for (const tuning::Task& task : tasks) {
      const tuning::Result result = task.Tune(options);
      if (result.best_seconds <= 0) throw Error("ValueError", "nothing worked");
      Check(Build(task.At(result.best)));
      std::printf("%s: %.1f us after %d trials, %d of which failed\n",
                  task.algorithms()[static_cast<size_t>(result.best.space)].c_str(),
                  1e6 * result.best_seconds, static_cast<int>(result.trials),
                  static_cast<int>(result.failures));
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
