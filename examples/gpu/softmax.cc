// Row softmax of a matrix on a GPU: a block of 256 threads makes a row, which is read and written
// once.
//
//   softmax_gpu [--rows 32768] [--columns 4096] [--target TARGET] [--save FILE] [--show]
//
// Each thread holds its columns in registers. A reduction across threads is one along each thread's
// columns, then one over the block's partial results in shared memory, in two steps of 16.
// softmax.py is this program in Python.
#include <cmath>

#include "measure.h"
#include "reductions.h"

namespace te = tenon::te;
using tenon::DataType;
using tenon::Tensor;

namespace {

// Columns over the block's threads, in vectors.
void Across(tenon::Stage stage, const te::IterVar& column, const te::IterVar& thread) {
  auto [rest, lanes] = stage.Split(column, kLanes);
  auto [steps, x] = stage.Split(rest, kThreads);
  stage.Bind(x, thread);
  stage.Unroll(steps);
  stage.Vectorize(lanes);
}

tenon::Library Softmax(int64_t rows, int64_t columns, const Options& options) {
  te::Tensor a = te::Placeholder({rows, columns}, DataType::kFloat32, "A");
  te::IterVar k = te::ReduceAxis(0, columns), r = te::ReduceAxis(0, columns, "r");
  te::Tensor most = te::Compute({rows}, [&](te::Var i) { return te::Max(a(i, k), {k}); }, "most");
  te::Tensor grown = te::Compute(
      {rows, columns},
      [&](te::Var i, te::Var j) { return te::CallIntrinsic("exp", {a(i, j) - most(i)}); }, "grown");
  te::Tensor total =
      te::Compute({rows}, [&](te::Var i) { return te::Sum(grown(i, r), {r}); }, "total");
  te::Tensor out = te::Compute(
      {rows, columns}, [&](te::Var i, te::Var j) { return grown(i, j) / total(i); }, "out");
  tenon::Schedule s = tenon::CreateSchedule({out});

  te::Tensor held = s.CacheRead(a, "local", {most.op(), grown.op()});
  s[grown].SetScope("local");
  te::IterVar thread = te::ThreadAxis("threadIdx.x"), row = out.op().axis()[0];
  s[out].Bind(row, te::ThreadAxis("blockIdx.x"));
  Across(s[out], out.op().axis()[1], thread);
  for (const te::Tensor& reduction : {total, most}) {
    const Partial partial = PartialResults(s, reduction);
    for (const te::Tensor& stage : {partial.thread, partial.group, reduction}) {
      s[stage].SetScope("shared");
      s[stage].ComputeAt(s[out], row);
    }
    for (const te::Tensor& stage : {partial.thread, partial.group})
      s[stage].Bind(s[stage].op().axis()[0], thread);
  }
  for (const te::Tensor& stage : {grown, held}) {
    s[stage].ComputeAt(s[out], row);
    Across(s[stage], s[stage].op().axis()[1], thread);
  }
  return Built(s, {a, out}, options, "softmax");
}

double Error(const std::vector<float>& x, const std::vector<float>& got, int64_t columns) {
  double worst = 0;
  for (auto row = x.begin(), own = got.begin(); row != x.end(); row += columns, own += columns) {
    const double most = *std::max_element(row, row + columns);
    double sum = 0;
    for (int64_t j = 0; j < columns; ++j) sum += std::exp(row[j] - most);
    for (int64_t j = 0; j < columns; ++j)
      worst = std::max(worst, std::abs(own[j] - std::exp(row[j] - most) / sum));
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = Arguments(argc, argv, {{"rows", 32768}, {"columns", 4096}});
  const int64_t rows = options.sizes.at("rows"), columns = options.sizes.at("columns");
  tenon::Library library = Softmax(rows, columns, options);
  const tenon::Device device = DeviceOf(options);
  if (!device.exists()) return 0;
  tenon::Function softmax = library.GetFunction("softmax");
  std::vector<float> x = Numbers(rows * columns, 1);
  for (float& v : x) v *= 20;
  Tensor in = On(device, {rows, columns}, x);
  Tensor out = Tensor::Empty({rows, columns}, DataType::kFloat32, device);
  softmax(in, out);
  if (!IsWithin(Error(x, ToHost(out), columns), 1e-5)) return 1;
  const double seconds = Seconds(device, options.repeat, [&] { softmax(in, out); });
  const double rate = 2.0 * static_cast<double>(in.bytes()) / seconds;
  std::printf("softmax of %lld x %lld: %.0f GB/s, %.0f %% of a copy's\n",
              static_cast<long long>(rows), static_cast<long long>(columns), rate / 1e9,
              100 * rate / CopyBandwidth(device, options.repeat));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "softmax_gpu: %s\n", error.what());
  return 1;
}
