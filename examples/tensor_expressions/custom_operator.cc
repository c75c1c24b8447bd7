// An operator of one's own, called with tensors that another framework made: y = x / sqrt(mean(x^2)
// + 1e-6) * g for each row.
//
// A framework hands its tensors out as DLPack's DLTensor; a pointer to one is an argument, and
// nothing is copied. custom_operator.py is this program in Python.
#include <cmath>
#include <cstdio>
#include <vector>

#include "tenon/compiler.hpp"

namespace te = tenon::te;
using tenon::DataType;

constexpr int64_t kColumns = 512;

tenon::Library RmsNorm() {
  te::Var n("n");
  te::Tensor x = te::Placeholder({n, kColumns}, DataType::kFloat32, "x");
  te::Tensor g = te::Placeholder({kColumns}, DataType::kFloat32, "g");
  te::IterVar k = te::ReduceAxis(0, kColumns);
  te::Tensor squares =
      te::Compute({n}, [&](te::Var i) { return te::Sum(x(i, k) * x(i, k), {k}); }, "squares");
  te::Tensor y = te::Compute(
      {n, kColumns},
      [&](te::Var i, te::Var j) {
        te::Expr mean = squares(i) / static_cast<double>(kColumns);
        return x(i, j) * te::CallIntrinsic("rsqrt", {mean + 1e-6}) * g(j);
      },
      "y");

  tenon::Schedule s = tenon::CreateSchedule({y});
  te::IterVar row = y.op().axis()[0];
  s[y].Parallel(row);
  s[y].Vectorize(s[y].Split(y.op().axis()[1], 64).second);
  // The sum of squares of a row while the row is at hand, on vectors.
  te::IterVar lane = s[squares].Split(squares.op().reduce_axis()[0], 64).second;
  te::Tensor lanes = s.RFactor(squares, lane, /*factor_axis=*/-1);
  s[squares].ComputeAt(s[y], row);
  s[lanes].ComputeAt(s[y], row);
  s[lanes].SetScope("register");
  lane = s[lanes].op().axis().back();
  s[lanes].Reorder({s[lanes].op().reduce_axis()[0], lane});
  s[lanes].Vectorize(lane);
  return tenon::Build(s, {x, g, y}, tenon::Target(), "rms_norm");
}

// Stands for a framework: memory of its own, described as DLPack does.
struct ForeignTensor {
  std::vector<float> data;
  std::vector<int64_t> shape;
  tn_dl_tensor dl{};  // DLTensor of dlpack.h is the same
  explicit ForeignTensor(std::vector<int64_t> dims) : shape(std::move(dims)) {
    int64_t count = 1;
    for (int64_t d : shape) count *= d;
    data.resize(static_cast<size_t>(count));
    dl.data = data.data();
    dl.device = tenon::Device::Cpu();
    dl.ndim = static_cast<int32_t>(shape.size());
    dl.dtype = DataType::kFloat32;
    dl.shape = shape.data();
  }
};

bool IsRight(const ForeignTensor& x, const ForeignTensor& g, const ForeignTensor& y) {
  for (size_t row = 0; row < x.data.size(); row += kColumns) {
    double squares = 0;
    for (size_t j = 0; j < kColumns; ++j) squares += double{x.data[row + j]} * x.data[row + j];
    const double scale = 1 / std::sqrt(squares / kColumns + 1e-6);
    for (size_t j = 0; j < kColumns; ++j) {
      const double want = x.data[row + j] * scale * g.data[j];
      if (std::abs(y.data[row + j] - want) > 1e-5 * (1 + std::abs(want))) return false;
    }
  }
  return true;
}

int main(int argc, char** argv) try {
  const char* path = argc > 1 ? argv[1] : "rms_norm.so";
  RmsNorm().ExportLibrary(path);
  tenon::Function rms_norm = tenon::Module::LoadFromFile(path).GetFunction("rms_norm");

  ForeignTensor g({kColumns});
  for (size_t j = 0; j < g.data.size(); ++j) g.data[j] = 0.5f + static_cast<float>(j) / kColumns;
  for (int64_t rows : {1, 7, 1000}) {
    ForeignTensor x({rows, kColumns}), y({rows, kColumns});
    for (size_t i = 0; i < x.data.size(); ++i)
      x.data[i] = static_cast<float>(i * 7919 % 2001) / 1000 - 1;
    rms_norm(&x.dl, &g.dl, &y.dl);
    if (!IsRight(x, g, y)) {
      std::printf("%d rows: wrong\n", int(rows));
      return 1;
    }
  }
  std::puts("the results agree");
  try {
    ForeignTensor x({7, 100}), y({7, 100});
    rms_norm(&x.dl, &g.dl, &y.dl);
    return 1;
  } catch (const tenon::Error& error) {
    std::printf("a wrong call says: %s\n", error.what());
  }
  return 0;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "custom_operator: %s\n", error.what());
  return 1;
}
