// Sums of the rows of a matrix on a GPU: a block of 256 threads makes a row.
//
//   reduction_gpu [--rows 32768] [--columns 4096] [--target TARGET] [--save FILE] [--show]
//
// Each thread adds up its columns; then 16 threads add 16 of these each, then one the 16 that are
// left. RFactor makes a stage of each step, and ComputeAt puts it into the block. reduction.py is
// this program in Python.
#include "reductions.h"

#include <cmath>

#include "measure.h"

namespace te = tenon::te;
using tenon::DataType;
using tenon::Tensor;

namespace {

tenon::Library Sums(int64_t rows, int64_t columns, const Options& options) {
  te::Tensor a = te::Placeholder({rows, columns}, DataType::kFloat32, "A");
  te::IterVar k = te::ReduceAxis(0, columns);
  te::Tensor total = te::Compute({rows}, [&](te::Var i) { return te::Sum(a(i, k), {k}); }, "total");
  tenon::Schedule s = tenon::CreateSchedule({total});
  const Partial partial = PartialResults(s, total);
  te::IterVar row = total.op().axis()[0];
  s[total].Bind(row, te::ThreadAxis("blockIdx.x"));
  for (const te::Tensor& stage : {partial.thread, partial.group}) {
    s[stage].SetScope("shared");
    s[stage].ComputeAt(s[total], row);
    s[stage].Bind(s[stage].op().axis()[0], te::ThreadAxis("threadIdx.x"));
  }
  return Built(s, {a, total}, options, "row_sums");
}

double Error(const std::vector<float>& x, const std::vector<float>& got, int64_t columns) {
  double worst = 0;
  for (size_t row = 0; row < got.size(); ++row) {
    double sum = 0;
    for (int64_t j = 0; j < columns; ++j)
      sum += x[row * static_cast<size_t>(columns) + static_cast<size_t>(j)];
    worst = std::max(worst, std::abs(got[row] - sum));
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = Arguments(argc, argv, {{"rows", 32768}, {"columns", 4096}});
  const int64_t rows = options.sizes.at("rows"), columns = options.sizes.at("columns");
  tenon::Library library = Sums(rows, columns, options);
  const tenon::Device device = DeviceOf(options);
  if (!device.exists()) return 0;
  tenon::Function sums = library.GetFunction("row_sums");
  const std::vector<float> x = Numbers(rows * columns, 1);
  Tensor in = On(device, {rows, columns}, x),
         out = On(device, {rows}, std::vector<float>(static_cast<size_t>(rows)));
  sums(in, out);
  if (!IsWithin(Error(x, ToHost(out), columns), 1e-2)) return 1;
  const double rate =
      static_cast<double>(in.bytes()) / Seconds(device, options.repeat, [&] { sums(in, out); });
  std::printf("row sums of %lld x %lld: %.0f GB/s, %.0f %% of a copy's\n",
              static_cast<long long>(rows), static_cast<long long>(columns), rate / 1e9,
              100 * rate / CopyBandwidth(device, options.repeat));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "reduction_gpu: %s\n", error.what());
  return 1;
}
