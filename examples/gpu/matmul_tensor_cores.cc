// C = A B in fp16 on a GPU's tensor cores, summed in fp32, as schedules of tensors.
//
//   matmul_tensor_cores_gpu [--size 4096] [--wgmma 1] [--peak 989] [--target TARGET] [--save FILE]
//                           [--show]
//
// By mma.sync, from sm_80 on: a block of 8 warps makes 128 x 256 elements, each warp 64 x 64 of
// them in its registers. Tiles of A and B, 32 steps of k at a time, are copied to shared memory by
// cp.async while those of up to three tiles before are used; rows there are padded by 16 bytes, so
// that ldmatrix, which reads eight rows at once, meets no bank twice. Fragments are loaded one
// product ahead, those of the next tile too.
//
// By wgmma, on sm_90a (--wgmma 1): each of two warpgroups makes 64 x 256 elements, a third one
// keeps the copy engine busy up to four steps of 64 ahead, and the products read both factors from
// shared memory.
//
// Stages in the scope "fragment" are registers of a warp (of a warpgroup), and what is tensorized
// says which lane has which element. --peak is the machine's rate in TFLOP/s, that of an H100.
// matmul_tensor_cores.py is this program in Python.
#include <cmath>

#include "measure.h"

namespace te = tenon::te;
using tenon::DataType;
using tenon::Tensor;
using Half = _Float16;

namespace {

struct Product {
  te::Tensor a, b, total, c;
};

Product Define(int64_t n) {
  Product p;
  p.a = te::Placeholder({n, n}, DataType::kFloat16, "A");
  p.b = te::Placeholder({n, n}, DataType::kFloat16, "B");
  te::IterVar k = te::ReduceAxis(0, n);
  auto wide = [](const te::Expr& e) { return te::Cast(e, DataType::kFloat32); };
  p.total = te::Compute(
      {n, n}, [&](te::Var i, te::Var j) { return te::Sum(wide(p.a(i, k)) * wide(p.b(k, j)), {k}); },
      "total");
  p.c = te::Compute(
      {n, n}, [&](te::Var i, te::Var j) { return te::Cast(p.total(i, j), DataType::kFloat16); },
      "C");
  return p;
}

// ---- mma.sync ----

constexpr int64_t kRows = 128, kColumns = 256, kDepth = 32;  // of a block
constexpr int64_t kWarpsY = 2, kWarpsX = 4, kLanes = 32;
constexpr int64_t kStages = 4;
constexpr int64_t kChunk = 8;  // elements in 16 bytes

struct Threads {
  te::IterVar warp_y = te::ThreadAxis("threadIdx.y"), warp_x = te::ThreadAxis("threadIdx.z");
  te::IterVar lane = te::ThreadAxis("threadIdx.x");
};

// The block's threads take 16 bytes each, as often as it takes; the loop over these.
te::IterVar Across(tenon::Stage stage, const te::IterVar& i, const te::IterVar& j,
                   const Threads& threads) {
  auto parts = stage.SplitFactors(stage.Fuse({i, j}), {-1, kWarpsY, kWarpsX, kLanes, kChunk});
  stage.Unroll(parts[0]);
  stage.Bind(parts[1], threads.warp_y);
  stage.Bind(parts[2], threads.warp_x);
  stage.Bind(parts[3], threads.lane);
  return parts[4];
}

void LoadFragments(tenon::Stage stage, const std::string& intrinsic) {
  auto [io, jo, i, j] = stage.Tile(stage.op().axis()[0], stage.op().axis()[1], 16, 16);
  stage.Unroll(io);
  stage.Unroll(jo);
  stage.Tensorize(i, intrinsic);
}

// The result leaves through shared memory, for a lane has two elements of a row and memory takes
// whole lines. The loop over the warps along x of what fills it.
te::IterVar Store(tenon::Stage c, tenon::Stage shared, const Threads& threads) {
  auto [by, bx, i, j] = c.Tile(c.op().axis()[0], c.op().axis()[1], kRows, kColumns);
  c.Bind(by, te::ThreadAxis("blockIdx.y"));
  c.Bind(bx, te::ThreadAxis("blockIdx.x"));
  c.Vectorize(Across(c, i, j, threads));
  shared.ComputeAt(c, bx);
  shared.StorageAlign(shared.op().axis()[0], 16, 8);
  auto [wy, wi] = shared.SplitParts(shared.op().axis()[0], kWarpsY);
  auto [wx, wj] = shared.SplitParts(shared.op().axis()[1], kWarpsX);
  shared.Reorder({wy, wx, wi, wj});
  shared.Bind(wy, threads.warp_y);
  shared.Bind(wx, threads.warp_x);
  shared.Vectorize(wj);
  return wx;
}

tenon::Library ByMma(int64_t n, const Options& options, const std::string& name) {
  auto [a, b, total, c] = Define(n);
  tenon::Schedule s = tenon::CreateSchedule({c});
  s[total].SetScope("fragment");
  te::Tensor out = s.CacheWrite(c, "shared");
  te::Tensor tile_a = s.CacheRead(a, "shared", {total.op()});
  te::Tensor tile_b = s.CacheRead(b, "shared", {total.op()});
  te::Tensor left = s.CacheRead(tile_a, "fragment", {total.op()});
  te::Tensor right = s.CacheRead(tile_b, "fragment", {total.op()});

  const Threads threads;
  tenon::Stage sums = s[total];
  sums.ComputeAt(s[out], Store(s[c], s[out], threads));
  auto [io, i] = sums.Split(total.op().axis()[0], 16);
  auto [jo, j] = sums.Split(total.op().axis()[1], 8);
  auto k = sums.SplitFactors(total.op().reduce_axis()[0], {-1, kDepth / 16, 16});
  sums.Reorder({k[0], k[1], io, jo, i, j, k[2]});
  for (const te::IterVar& loop : {k[1], io, jo}) sums.Unroll(loop);
  sums.Tensorize(i, "ptx.mma.m16n8k16.f16");
  for (const te::Tensor& fragments : {left, right}) s[fragments].ComputeAt(sums, k[1]);
  LoadFragments(s[left], "ptx.ldmatrix.a.f16");
  LoadFragments(s[right], "ptx.ldmatrix.b.trans.f16");
  for (const te::Tensor& tile : {tile_a, tile_b}) {
    s[tile].ComputeAt(sums, k[0]);
    s[tile].Tensorize(Across(s[tile], tile.op().axis()[0], tile.op().axis()[1], threads),
                      "ptx.cp.async.copy.f16");
    s[tile].StorageAlign(tile.op().axis()[0], 16, 8);
  }
  // Per step of k: its loads, and the product of the step before. Per tile: copies of B and A; then
  // its steps but the last, the first loads of the next tile, and the last product.
  sums.SoftwarePipeline(k[1], {0, 0, 1}, {0, 1, 2});
  sums.Partition(k[1], {1, kDepth / 16});
  sums.SoftwarePipeline(k[0], {0, 0, kStages - 2, kStages - 1, kStages - 1}, {0, 1, 3, 2, 4});
  return Built(s, {a, b, c}, options, name);
}

// ---- wgmma ----

constexpr int64_t kGroups = 2,
                  kBand = 8;  // blocks run in bands, which share most of what they read

tenon::Library ByWgmma(int64_t n, const Options& options, const std::string& name) {
  auto [a, b, total, c] = Define(n);
  tenon::Schedule s = tenon::CreateSchedule({c});
  s[total].SetScope("fragment");
  te::Tensor tile_a = s.CacheRead(a, "shared", {total.op()});
  te::Tensor tile_b = s.CacheRead(b, "shared", {total.op()});

  tenon::Stage result = s[c];
  const int64_t band = std::min(kBand, n / kGroups / 64);
  auto i = result.SplitFactors(c.op().axis()[0], {-1, band, kGroups, 64});
  auto [bx, j] = result.Split(c.op().axis()[1], kColumns);
  result.Reorder({i[0], bx, i[1], i[2], i[3], j});
  result.Bind(result.Fuse({i[0], bx, i[1]}), te::ThreadAxis("blockIdx.x"));
  result.Bind(i[2], te::ThreadAxis("threadIdx.y"));
  result.Vectorize(j);

  tenon::Stage sums = s[total];
  sums.ComputeAt(result, i[2]);
  auto [ko, k] = sums.Split(total.op().reduce_axis()[0], 64);
  sums.Reorder({ko, total.op().axis()[0], total.op().axis()[1], k});
  sums.Tensorize(total.op().axis()[0], "ptx.wgmma.m64n256k64.f16");
  sums.Pragma(ko, "producer_stages", kStages);
  for (const te::Tensor& tile : {tile_a, tile_b}) {
    s[tile].ComputeAt(sums, ko);
    auto loops = s[tile].Tile(tile.op().axis()[0], tile.op().axis()[1], 64, 64);
    s[tile].Tensorize(loops[2], "ptx.tma.copy.64x64.f16");
  }
  return Built(s, {a, b, c}, options, name);
}

// ---- running ----

// Multiples of 1/1024, which fp16 holds.
std::vector<Half> Halves(int64_t count, uint32_t seed) {
  std::vector<Half> out;
  for (float x : Numbers(count, seed))
    out.push_back(static_cast<Half>(std::floor(x * 1024) / 1024));
  return out;
}

// Of some rows, relative to 1 and the value.
double Error(const std::vector<Half>& x, const std::vector<Half>& y, const std::vector<Half>& got,
             int64_t n) {
  double worst = 0;
  std::vector<double> sum(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; i += std::max<int64_t>(1, n / 16)) {
    std::fill(sum.begin(), sum.end(), 0);
    for (int64_t k = 0; k < n; ++k) {
      const auto factor = static_cast<double>(x[static_cast<size_t>(i * n + k)]);
      for (int64_t j = 0; j < n; ++j)
        sum[static_cast<size_t>(j)] +=
            factor * static_cast<double>(y[static_cast<size_t>(k * n + j)]);
    }
    for (int64_t j = 0; j < n; ++j) {
      const double want = sum[static_cast<size_t>(j)];
      const auto own = static_cast<double>(got[static_cast<size_t>(i * n + j)]);
      worst = std::max(worst, std::abs(own - want) / (1 + std::abs(want)));
    }
  }
  return worst;
}

Tensor HalvesOn(tenon::Device device, int64_t n, const std::vector<Half>& values) {
  Tensor t = Tensor::Empty({n, n}, DataType::kFloat16, device);
  t.CopyFromBytes(values.data(), t.bytes());
  return t;
}

bool Run(const tenon::Function& matmul, const std::string& name, const Options& options) {
  const tenon::Device device = DeviceOf(options);
  const int64_t n = options.sizes.at("size"), peak = options.sizes.at("peak");
  const std::vector<Half> x = Halves(n * n, 1), y = Halves(n * n, 2);
  Tensor a = HalvesOn(device, n, x), b = HalvesOn(device, n, y);
  Tensor c = Tensor::Empty({n, n}, DataType::kFloat16, device);
  matmul(a, b, c);
  std::vector<Half> got(x.size());
  c.CopyToBytes(got.data(), c.bytes());
  if (!IsWithin(Error(x, y, got, n), 1e-3)) return false;
  const double seconds = Seconds(device, options.repeat, [&] { matmul(a, b, c); });
  const double rate = 2.0 * std::pow(static_cast<double>(n), 3) / seconds / 1e12;
  std::printf("%s of %lld x %lld: %.1f TFLOP/s, %.0f %% of %lld\n", name.c_str(),
              static_cast<long long>(n), static_cast<long long>(n), rate,
              100 * rate / static_cast<double>(peak), static_cast<long long>(peak));
  return true;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = Arguments(argc, argv, {{"size", 4096}, {"peak", 989}, {"wgmma", 0}});
  const bool wgmma = options.sizes.at("wgmma") != 0;
  const std::string name = wgmma ? "matmul_wgmma" : "matmul_mma";
  tenon::Library library = (wgmma ? ByWgmma : ByMma)(options.sizes.at("size"), options, name);
  if (!DeviceOf(options).exists()) return 0;
  return Run(library.GetFunction(name), name, options) ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "matmul_tensor_cores_gpu: %s\n", error.what());
  return 1;
}
