// C = A B in fp32 on a GPU's CUDA cores.
//
//   matmul_gpu [--size 4096] [--target TARGET] [--save FILE] [--show]
//
// A block of 256 threads makes 128 x 128 elements of C. Tiles of A and B, 8 steps of k at a time,
// go through shared memory, which holds two of each: one is filled while the other is used, with
// one barrier between. Each thread keeps 8 x 8 sums in registers, as 2 x 2 pieces of 4 x 4 (virtual
// threads), so that neighbouring threads read neighbouring vectors of shared memory. The tile of A
// stands transposed, so that its columns are read as vectors too. matmul.py is this program in
// Python.
#include <cmath>

#include "measure.h"

namespace te = tenon::te;
using tenon::DataType;
using tenon::Tensor;

namespace {

constexpr int64_t kTile = 128, kDepth = 8, kThreads = 16, kPiece = 4;

struct Axes {
  te::IterVar block_x = te::ThreadAxis("blockIdx.x"), block_y = te::ThreadAxis("blockIdx.y");
  te::IterVar thread_x = te::ThreadAxis("threadIdx.x"), thread_y = te::ThreadAxis("threadIdx.y");
};

// The result over blocks and threads; the loop over the threads along x.
te::IterVar Divide(tenon::Stage c, const Axes& axes) {
  auto [by, i0] = c.Split(c.op().axis()[0], kTile);
  auto [bx, j0] = c.Split(c.op().axis()[1], kTile);
  auto [vy, i1] = c.Split(i0, kTile / 2);
  auto [vx, j1] = c.Split(j0, kTile / 2);
  auto [ty, i] = c.Split(i1, kPiece);
  auto [tx, j] = c.Split(j1, kPiece);
  c.Reorder({by, bx, vy, vx, ty, tx, i, j});
  c.Bind(by, axes.block_y);
  c.Bind(bx, axes.block_x);
  c.Bind(vy, te::ThreadAxis("vthread"));
  c.Bind(vx, te::ThreadAxis("vthread"));
  c.Bind(ty, axes.thread_y);
  c.Bind(tx, axes.thread_x);
  c.Unroll(i);
  c.Vectorize(j);
  return tx;
}

// The block's threads load the tiles, four neighbouring elements of A and of B each.
void LoadTransposed(tenon::Stage tile, const Axes& axes) {
  auto [xo, xi] = tile.Split(tile.op().axis()[0], 4);
  auto [ty, i] = tile.Split(tile.op().axis()[1], kTile / kThreads);
  tile.Reorder({ty, i, xo, xi});
  tile.Bind(ty, axes.thread_y);
  tile.Bind(tile.Fuse({i, xo}), axes.thread_x);
  tile.Vectorize(xi);
}
void Load(tenon::Stage tile, const Axes& axes) {
  te::IterVar k = tile.op().axis()[0];
  auto [half, rest] = tile.Split(tile.op().axis()[1], kTile / 2);
  auto [tx, j] = tile.Split(rest, 4);
  tile.Reorder({k, half, tx, j});
  tile.Bind(tile.Fuse({k, half}), axes.thread_y);
  tile.Bind(tx, axes.thread_x);
  tile.Vectorize(j);
}

tenon::Library Matmul(int64_t n, const Options& options) {
  te::Tensor a = te::Placeholder({n, n}, DataType::kFloat32, "A");
  te::Tensor b = te::Placeholder({n, n}, DataType::kFloat32, "B");
  te::IterVar k = te::ReduceAxis(0, n);
  te::Tensor at = te::Compute({n, n}, [&](te::Var x, te::Var i) { return a(i, x); }, "AT");
  te::Tensor c = te::Compute(
      {n, n}, [&](te::Var i, te::Var j) { return te::Sum(at(k, i) * b(k, j), {k}); }, "C");
  tenon::Schedule s = tenon::CreateSchedule({c});
  s[at].SetScope("shared");
  te::Tensor bs = s.CacheRead(b, "shared", {c.op()});
  te::Tensor al = s.CacheRead(at, "local", {c.op()});
  te::Tensor bl = s.CacheRead(bs, "local", {c.op()});
  te::Tensor cl = s.CacheWrite(c, "local");

  const Axes axes;
  tenon::Stage sums = s[cl];
  sums.ComputeAt(s[c], Divide(s[c], axes));
  te::IterVar i = sums.op().axis()[0], j = sums.op().axis()[1];
  auto [ko, ki] = sums.Split(sums.op().reduce_axis()[0], kDepth);
  sums.Reorder({ko, ki, i, j});
  for (const te::IterVar& loop : {ki, i, j}) sums.Unroll(loop);
  for (const te::Tensor& stage : {al, bl}) {
    s[stage].ComputeAt(sums, ki);
    s[stage].Vectorize(s[stage].op().axis()[1]);
  }
  for (const te::Tensor& stage : {at, bs}) s[stage].ComputeAt(sums, ko);
  LoadTransposed(s[at], axes);
  Load(s[bs], axes);
  // The tiles of a step are loaded behind the products of the one before.
  sums.SoftwarePipeline(ko, {0, 0, 1}, {1, 2, 0});
  return Built(s, {a, b, c}, options, "matmul");
}

// Of some rows.
double Error(const std::vector<float>& x, const std::vector<float>& y,
             const std::vector<float>& got, int64_t n) {
  double worst = 0;
  std::vector<double> sum(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; i += std::max<int64_t>(1, n / 16)) {
    std::fill(sum.begin(), sum.end(), 0);
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t j = 0; j < n; ++j)
        sum[static_cast<size_t>(j)] +=
            double{x[static_cast<size_t>(i * n + k)]} * y[static_cast<size_t>(k * n + j)];
    }
    for (int64_t j = 0; j < n; ++j)
      worst = std::max(worst,
                       std::abs(got[static_cast<size_t>(i * n + j)] - sum[static_cast<size_t>(j)]));
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = Arguments(argc, argv, {{"size", 4096}});
  const int64_t n = options.sizes.at("size");
  tenon::Library library = Matmul(n, options);
  const tenon::Device device = DeviceOf(options);
  if (!device.exists()) return 0;
  tenon::Function matmul = library.GetFunction("matmul");
  const std::vector<float> x = Numbers(n * n, 1), y = Numbers(n * n, 2);
  Tensor a = On(device, {n, n}, x), b = On(device, {n, n}, y);
  Tensor c = Tensor::Empty({n, n}, DataType::kFloat32, device);
  matmul(a, b, c);
  if (!IsWithin(Error(x, y, ToHost(c), n), 1e-3)) return 1;
  const double seconds = Seconds(device, options.repeat, [&] { matmul(a, b, c); });
  std::printf("matmul of %lld x %lld: %.2f TFLOP/s\n", static_cast<long long>(n),
              static_cast<long long>(n),
              2.0 * std::pow(static_cast<double>(n), 3) / seconds / 1e12);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "matmul_gpu: %s\n", error.what());
  return 1;
}
