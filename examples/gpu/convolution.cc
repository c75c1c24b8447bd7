// A convolution of images in NHWC order with 3 x 3 filters, in fp32 on a GPU's CUDA cores.
//
//   convolution_gpu [--batch 16] [--size 64] [--channels 128] [--target TARGET] [--save FILE]
//   [--show]
//
// A block of 256 threads makes 8 x 16 pixels of 64 output channels. The pixels it reads, with their
// border, and the filters, 8 input channels at a time, go through shared memory; each thread keeps
// the sums of 8 pixels in 4 channels in registers, so that 9 loads serve 32 multiply-adds.
// convolution.py is this program in Python.
#include <cmath>

#include "measure.h"

namespace te = tenon::te;
using tenon::DataType;
using tenon::Tensor;

namespace {

constexpr int64_t kKernel = 3, kRows = 8, kColumns = 16, kOutputs = 64, kDepth = 8, kLanes = 4;

struct Convolution {
  te::Tensor image, weights, padded, out;
};

Convolution Define(int64_t batch, int64_t size, int64_t channels) {
  te::Tensor image = te::Placeholder({batch, size, size, channels}, DataType::kFloat32, "image");
  te::Tensor weights =
      te::Placeholder({kKernel, kKernel, channels, channels}, DataType::kFloat32, "weights");
  te::Tensor padded = te::Compute(
      {batch, size + 2, size + 2, channels},
      [&](te::Var n, te::Var y, te::Var x, te::Var c) {
        te::Expr inside = y >= 1 && y <= size && x >= 1 && x <= size;
        return te::Select(inside, image(n, y - 1, x - 1, c), 0.0);
      },
      "padded");
  te::IterVar r = te::ReduceAxis(0, kKernel, "r"), q = te::ReduceAxis(0, kKernel, "q");
  te::IterVar c = te::ReduceAxis(0, channels, "c");
  te::Tensor out = te::Compute(
      {batch, size, size, channels},
      [&](te::Var n, te::Var y, te::Var x, te::Var o) {
        return te::Sum(padded(n, y + r, x + q, c) * weights(r, q, c, o), {r, q, c});
      },
      "out");
  return {image, weights, padded, out};
}

// The result over blocks and threads; the innermost loop over threads.
te::IterVar Divide(tenon::Stage out) {
  std::vector<te::IterVar> axis = out.op().axis();
  auto [y_block, y] = out.Split(axis[1], kRows);
  auto [x_block, x] = out.Split(axis[2], kColumns);
  auto [o_block, rest] = out.Split(axis[3], kOutputs);
  auto [o, lanes] = out.Split(rest, kLanes);
  out.Reorder({axis[0], y_block, x_block, o_block, x, o, y, lanes});
  out.Bind(out.Fuse({axis[0], y_block}), te::ThreadAxis("blockIdx.z"));
  out.Bind(x_block, te::ThreadAxis("blockIdx.y"));
  out.Bind(o_block, te::ThreadAxis("blockIdx.x"));
  out.Bind(x, te::ThreadAxis("threadIdx.y"));
  out.Bind(o, te::ThreadAxis("threadIdx.x"));
  out.Unroll(y);
  out.Vectorize(lanes);
  return o;
}

tenon::Library Scheduled(const Convolution& conv, const Options& options) {
  tenon::Schedule s = tenon::CreateSchedule({conv.out});
  s[conv.padded].SetScope("shared");
  te::Tensor filters = s.CacheRead(conv.weights, "shared", {conv.out.op()});
  tenon::Stage sums = s[s.CacheWrite(conv.out, "local")];
  sums.ComputeAt(s[conv.out], Divide(s[conv.out]));
  std::vector<te::IterVar> reduce = sums.op().reduce_axis(), axis = sums.op().axis();
  auto [c_outer, c] = sums.Split(reduce[2], kDepth);
  sums.Reorder({c_outer, reduce[0], reduce[1], c, axis[1], axis[3]});
  for (const te::IterVar& loop : {reduce[1], c, axis[1], axis[3]}) sums.Unroll(loop);
  // Nobody says which thread loads what: the block's threads share the work.
  for (const te::Tensor& tile : {conv.padded, filters}) {
    s[tile].ComputeAt(sums, c_outer);
    s[tile].Vectorize(s[tile].Split(s[tile].op().axis()[3], kLanes).second);
  }
  return Built(s, {conv.image, conv.weights, conv.out}, options, "convolution");
}

// Of some pixels.
double Error(const std::vector<float>& image, const std::vector<float>& weights,
             const std::vector<float>& got, int64_t size, int64_t channels) {
  double worst = 0;
  for (size_t at = 0; at < got.size(); at += 10007) {
    const auto place = static_cast<int64_t>(at);
    const int64_t o = place % channels, x0 = place / channels % size,
                  y0 = place / channels / size % size;
    const int64_t n = place / channels / size / size;
    double sum = 0;
    for (int64_t r = 0; r < kKernel; ++r) {
      for (int64_t q = 0; q < kKernel; ++q) {
        const int64_t y = y0 + r - 1, x = x0 + q - 1;
        if (y < 0 || y >= size || x < 0 || x >= size) continue;
        for (int64_t c = 0; c < channels; ++c) {
          sum += double{image[static_cast<size_t>(((n * size + y) * size + x) * channels + c)]} *
                 weights[static_cast<size_t>(((r * kKernel + q) * channels + c) * channels + o)];
        }
      }
    }
    worst = std::max(worst, std::abs(got[at] - sum));
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = Arguments(argc, argv, {{"batch", 16}, {"size", 64}, {"channels", 128}});
  const int64_t batch = options.sizes.at("batch"), size = options.sizes.at("size");
  const int64_t channels = options.sizes.at("channels");
  tenon::Library library = Scheduled(Define(batch, size, channels), options);
  const tenon::Device device = DeviceOf(options);
  if (!device.exists()) return 0;
  tenon::Function convolution = library.GetFunction("convolution");
  const std::vector<float> x = Numbers(batch * size * size * channels, 1);
  const std::vector<float> w = Numbers(kKernel * kKernel * channels * channels, 2);
  Tensor image = On(device, {batch, size, size, channels}, x);
  Tensor weights = On(device, {kKernel, kKernel, channels, channels}, w);
  Tensor out = Tensor::Empty({batch, size, size, channels}, DataType::kFloat32, device);
  convolution(image, weights, out);
  if (!IsWithin(Error(x, w, ToHost(out), size, channels), 1e-3)) return 1;
  const double seconds = Seconds(device, options.repeat, [&] { convolution(image, weights, out); });
  const double products = static_cast<double>(out.num_elements() * channels * kKernel * kKernel);
  std::printf("convolution of %lld x %lld x %lld x %lld: %.2f TFLOP/s\n",
              static_cast<long long>(batch), static_cast<long long>(size),
              static_cast<long long>(size), static_cast<long long>(channels),
              2 * products / seconds / 1e12);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "convolution_gpu: %s\n", error.what());
  return 1;
}
