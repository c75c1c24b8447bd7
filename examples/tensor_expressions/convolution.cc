// A convolution of an image in NHWC order, made fast in four steps.
//
//   convolution [SIZE [CHANNELS [REPEAT]]]
//
// prints the rate of each step and its share of what the cores it uses could do at most.
// docs/tutorial.md says why each step helps; convolution.py is this program in Python.
#include <cmath>
#include <cstdio>

#include "measure.h"
#include "tenon/compiler.hpp"

namespace te = tenon::te;
using tenon::DataType;
using tenon::Tensor;

constexpr int64_t kKernel = 3;     // rows and columns of the filter; a border of zeros of one pixel
constexpr int64_t kChannels = 32;  // output channels of a tile: two vectors of AVX-512
constexpr int64_t kPixels = 8;     // neighbours in a row whose sums are kept in registers

struct Convolution {
  tenon::Schedule s;
  te::Tensor image, weights, padded, out;
};

// Output channels are last in the weights too, so that vectors run along them.
Convolution Naive(int64_t size, int64_t channels) {
  te::Tensor image = te::Placeholder({size, size, channels}, DataType::kFloat32, "image");
  te::Tensor weights =
      te::Placeholder({kKernel, kKernel, channels, channels}, DataType::kFloat32, "weights");
  te::Tensor padded = te::Compute(
      {size + 2, size + 2, channels},
      [&](te::Var y, te::Var x, te::Var c) {
        te::Expr inside = y >= 1 && y <= size && x >= 1 && x <= size;
        return te::Select(inside, image(y - 1, x - 1, c), 0.0);
      },
      "padded");
  te::IterVar r = te::ReduceAxis(0, kKernel, "r"), q = te::ReduceAxis(0, kKernel, "q");
  te::IterVar c = te::ReduceAxis(0, channels, "c");
  te::Tensor out = te::Compute(
      {size, size, channels},
      [&](te::Var y, te::Var x, te::Var o) {
        return te::Sum(padded(y + r, x + q, c) * weights(r, q, c, o), {r, q, c});
      },
      "out");
  Convolution conv{tenon::CreateSchedule({out}), image, weights, padded, out};
  conv.s[padded].Vectorize(padded.op().axis()[2]);
  return conv;
}

// Output channels innermost: one value of the image times a vector of weights.
Convolution Vectorized(int64_t size, int64_t channels) {
  Convolution conv = Naive(size, channels);
  tenon::Stage out = conv.s[conv.out];
  std::vector<te::IterVar> axis = out.op().axis(), sum = out.op().reduce_axis();
  out.Reorder({axis[0], axis[1], sum[0], sum[1], sum[2], axis[2]});
  out.Vectorize(axis[2]);
  return conv;
}

// The sums of a few pixels and channels stay in registers while all of the filter is added.
te::IterVar KeepSums(Convolution& conv) {
  te::Tensor cache = conv.s.CacheWrite(conv.out, "register");
  tenon::Stage out = conv.s[conv.out], sums = conv.s[cache];
  std::vector<te::IterVar> axis = out.op().axis();
  auto [xo, xi] = out.Split(axis[1], kPixels);
  auto [oo, oi] = out.Split(axis[2], kChannels);
  out.Reorder({axis[0], oo, xo, xi, oi});
  out.Vectorize(oi);
  sums.ComputeAt(out, xo);
  std::vector<te::IterVar> tile = sums.op().axis(), sum = sums.op().reduce_axis();
  sums.Reorder({sum[0], sum[1], sum[2], tile[1], tile[2]});
  sums.Unroll(tile[1]);
  sums.Vectorize(tile[2]);
  return axis[0];
}
Convolution Cached(int64_t size, int64_t channels) {
  Convolution conv = Naive(size, channels);
  KeepSums(conv);
  return conv;
}

// Rows are divided over the cores.
Convolution Parallel(int64_t size, int64_t channels) {
  Convolution conv = Naive(size, channels);
  conv.s[conv.out].Parallel(KeepSums(conv));
  conv.s[conv.padded].Parallel(conv.padded.op().axis()[0]);
  return conv;
}

struct Step {
  const char* name;
  Convolution (*make)(int64_t size, int64_t channels);
};
constexpr Step kSteps[] = {
    {"naive", Naive}, {"vectorized", Vectorized}, {"cached", Cached}, {"parallel", Parallel}};

// Of some pixels, against sums in double precision.
bool IsRight(const float* x, const float* w, const float* z, int64_t size, int64_t channels) {
  for (int64_t at = 0; at < size * size * channels; at += 101) {
    const int64_t y0 = at / channels / size, x0 = at / channels % size, o = at % channels;
    double sum = 0;
    for (int64_t r = 0; r < kKernel; ++r) {
      for (int64_t q = 0; q < kKernel; ++q) {
        const int64_t row = y0 + r - 1, column = x0 + q - 1;
        if (row < 0 || row >= size || column < 0 || column >= size) continue;
        for (int64_t c = 0; c < channels; ++c) {
          sum += double{x[(row * size + column) * channels + c]} *
                 w[((r * kKernel + q) * channels + c) * channels + o];
        }
      }
    }
    if (std::abs(z[at] - sum) > 1e-4 * sum) return false;
  }
  return true;
}

int main(int argc, char** argv) try {
  const int64_t size = argc > 1 ? std::atoll(argv[1]) : 56;
  const int64_t channels = argc > 2 ? std::atoll(argv[2]) : 64;
  const int repeat = argc > 3 ? std::atoi(argv[3]) : 5;
  Tensor x = Tensor::Empty({size, size, channels}, DataType::kFloat32);
  Tensor w = Tensor::Empty({kKernel, kKernel, channels, channels}, DataType::kFloat32);
  Tensor z = Tensor::Empty({size, size, channels}, DataType::kFloat32);
  for (const Tensor& t : {x, w}) {
    for (int64_t i = 0; i < t.num_elements(); ++i)
      t.data_as<float>()[i] = static_cast<float>(i * 7919 % 1000) / 1000;
  }
  const double flops = 2.0 * size * size * channels * channels * kKernel * kKernel;
  std::printf("%d x %d, %d channels, %d cores\n\n", int(size), int(size), int(channels), Cores());
  std::printf("%-12s%9s%10s%9s\n", "step", "ms", "GFLOP/s", "of peak");
  for (const Step& step : kSteps) {
    Convolution conv = step.make(size, channels);
    tenon::Library library = tenon::Build(conv.s, {conv.image, conv.weights, conv.out});
    tenon::Function f = library.GetFunction("main");
    f(x, w, z);
    if (!IsRight(x.data_as<float>(), w.data_as<float>(), z.data_as<float>(), size, channels)) {
      std::printf("%s: wrong\n", step.name);
      return 1;
    }
    const double peak = Probe(step.make == Parallel ? Cores() : 1)();
    std::vector<double> seconds;
    for (int i = 0; i < repeat; ++i) seconds.push_back(SecondsOf([&] { f(x, w, z); }));
    const double rate = flops / Median(seconds) / 1e9;
    std::printf("%-12s%9.2f%10.1f%8.0f%%\n", step.name, Median(seconds) * 1e3, rate,
                100 * rate / peak);
  }
  return 0;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "convolution: %s\n", error.what());
  return 1;
}
