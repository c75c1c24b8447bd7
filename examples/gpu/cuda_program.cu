// Compiled functions inside a CUDA program: on its memory, on its streams, between its own kernels.
//
//   python3 cuda_program.py --target "cuda -arch=sm_90" --folder lib
//   nvcc -std=c++20 cuda_program.cu -o cuda_program $(pkg-config --cflags --libs tenon)
//   ./cuda_program lib
//
// pkg-config finds Tenon where PKG_CONFIG_PATH names the pkgconfig folder of an install tree, the program its library where
// LD_LIBRARY_PATH names the lib folder.
//
// 1. own kernel -> compiled function -> own kernel, on one stream, without a copy and without waiting in between
// 2. a compiled feature extractor feeds a kernel
// 3. two compiled functions on two streams, and a kernel that combines what they say
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tenon/tenon.hpp"

using tenon::DataType;
using tenon::Device;
using tenon::Function;
using tenon::Module;
using tenon::StreamScope;
using tenon::Tensor;

namespace {

constexpr int kInputs = 64, kOutputs = 16;

void Check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

// The program's own memory: the compiled functions get tensors over it.
class Floats {
 public:
  explicit Floats(std::vector<int64_t> shape) : shape_(std::move(shape)) {
    for (int64_t d : shape_) size_ *= d;
    Check(cudaMalloc(&data_, bytes()), "cudaMalloc");
  }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  ~Floats() { cudaFree(data_); }

  float* data() const { return data_; }
  int64_t size() const { return size_; }
  Tensor tensor() const { return Tensor::Wrap(data_, shape_, DataType::kFloat32, Device::Cuda(0)); }
  void Set(const std::vector<float>& values) {
    Check(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  std::vector<float> Get() const {
    std::vector<float> out(static_cast<size_t>(size_));
    Check(cudaMemcpy(out.data(), data_, bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return out;
  }

 private:
  size_t bytes() const { return static_cast<size_t>(size_) * sizeof(float); }
  std::vector<int64_t> shape_;
  int64_t size_ = 1;
  float* data_ = nullptr;
};

std::vector<float> Random(int64_t size) {
  std::vector<float> out(static_cast<size_t>(size));
  for (float& x : out) x = static_cast<float>(std::rand()) / static_cast<float>(RAND_MAX) - 0.5f;
  return out;
}

void Expect(const std::vector<float>& got, const std::vector<float>& want, const char* what) {
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::fabs(got[i] - want[i]) <= 1e-4f * (1 + std::fabs(want[i]))) continue;
    std::fprintf(stderr, "%s: element %zu is %g, expected %g\n", what, i, got[i], want[i]);
    std::exit(1);
  }
}

// Microseconds of a round on the stream, from the first kernel's start to the last one's end.
double Time(cudaStream_t stream, const std::function<void()>& round) {
  constexpr int kRounds = 100;
  cudaEvent_t start, end;
  Check(cudaEventCreate(&start), "cudaEventCreate");
  Check(cudaEventCreate(&end), "cudaEventCreate");
  round();
  Check(cudaEventRecord(start, stream), "cudaEventRecord");
  for (int i = 0; i < kRounds; ++i) round();
  Check(cudaEventRecord(end, stream), "cudaEventRecord");
  Check(cudaEventSynchronize(end), "cudaEventSynchronize");
  float milliseconds = 0;
  Check(cudaEventElapsedTime(&milliseconds, start, end), "cudaEventElapsedTime");
  cudaEventDestroy(start);
  cudaEventDestroy(end);
  return 1e3 * milliseconds / kRounds;
}

int Blocks(int64_t n) { return static_cast<int>((n + 255) / 256); }

__global__ void Square(const float* x, float* y, int64_t n) {
  const int64_t i = blockIdx.x * int64_t{256} + threadIdx.x;
  if (i < n) y[i] = x[i] * x[i];
}

__global__ void Negate(float* x, int64_t n) {
  const int64_t i = blockIdx.x * int64_t{256} + threadIdx.x;
  if (i < n) x[i] = -x[i];
}

// The largest of a row's values.
__global__ void Largest(const float* rows, float* out, int64_t n) {
  const int64_t i = blockIdx.x * int64_t{256} + threadIdx.x;
  if (i >= n) return;
  float most = rows[i * kOutputs];
  for (int j = 1; j < kOutputs; ++j) most = fmaxf(most, rows[i * kOutputs + j]);
  out[i] = most;
}

__global__ void Combine(const float* a, const float* b, float* out, int64_t n) {
  const int64_t i = blockIdx.x * int64_t{256} + threadIdx.x;
  if (i < n) out[i] = a[i] / (1 + b[i]);
}

void BetweenKernels(const Function& smooth, cudaStream_t stream) {
  constexpr int64_t n = 1'000'003;
  Floats x({n}), squared({n}), y({n});
  const std::vector<float> given = Random(n);
  x.Set(given);
  Tensor in = squared.tensor(), out = y.tensor();
  auto round = [&] {
    Square<<<Blocks(n), 256, 0, stream>>>(x.data(), squared.data(), n);
    StreamScope scope(Device::Cuda(0), stream);  // the caller's own stream
    smooth(in, out);
    Negate<<<Blocks(n), 256, 0, stream>>>(y.data(), n);
  };
  const double time = Time(stream, round);
  std::vector<float> want(given.size());
  auto square = [&](int64_t i) {
    const float v = given[static_cast<size_t>(std::min(std::max(i, int64_t{0}), n - 1))];
    return v * v;
  };
  for (int64_t i = 0; i < n; ++i) {
    want[static_cast<size_t>(i)] = -(square(i - 1) + square(i) + square(i + 1)) / 3;
  }
  Expect(y.Get(), want, "between kernels");
  std::printf("kernel -> smooth -> kernel, %lld elements: %.1f us a round\n", (long long)n, time);
}

struct Rows {
  int64_t n;
  std::vector<float> x, w;
  float x_at(int64_t i, int k) const { return x[static_cast<size_t>(i * kInputs + k)]; }
  float w_at(int j, int k) const { return w[static_cast<size_t>(j * kInputs + k)]; }

  std::vector<float> Features() const {
    std::vector<float> out;
    for (int64_t i = 0; i < n; ++i) {
      for (int j = 0; j < kOutputs; ++j) {
        float sum = 0;
        for (int k = 0; k < kInputs; ++k) sum += x_at(i, k) * w_at(j, k);
        out.push_back(std::max(sum, 0.0f));
      }
    }
    return out;
  }
  std::vector<float> Distances() const {
    std::vector<float> out;
    for (int64_t i = 0; i < n; ++i) {
      for (int j = 0; j < kOutputs; ++j) {
        float sum = 0;
        for (int k = 0; k < kInputs; ++k) sum += std::pow(x_at(i, k) - w_at(j, k), 2.0f);
        out.push_back(std::sqrt(sum));
      }
    }
    return out;
  }
};

void FeaturesFeedAKernel(const Function& features, const Rows& rows, cudaStream_t stream) {
  Floats x({rows.n, kInputs}), w({kOutputs, kInputs}), f({rows.n, kOutputs}), best({rows.n});
  x.Set(rows.x);
  w.Set(rows.w);
  Tensor in = x.tensor(), weights = w.tensor(), out = f.tensor();
  auto round = [&] {
    StreamScope scope(Device::Cuda(0), stream);
    features(in, weights, out);
    Largest<<<Blocks(rows.n), 256, 0, stream>>>(f.data(), best.data(), rows.n);
  };
  const double time = Time(stream, round);
  const std::vector<float> all = rows.Features();
  std::vector<float> want;
  for (int64_t i = 0; i < rows.n; ++i) {
    const auto first = all.begin() + i * kOutputs;
    want.push_back(*std::max_element(first, first + kOutputs));
  }
  Expect(best.Get(), want, "features feed a kernel");
  std::printf("features -> kernel, %lld rows: %.1f us a round\n", (long long)rows.n, time);
}

void TwoAndACombination(const Function& features, const Function& distances, const Rows& rows,
                        cudaStream_t stream) {
  Floats x({rows.n, kInputs}), w({kOutputs, kInputs}), a({rows.n, kOutputs}),
      b({rows.n, kOutputs}), both({rows.n, kOutputs});
  x.Set(rows.x);
  w.Set(rows.w);
  cudaStream_t other;
  cudaEvent_t ready, done;
  Check(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "cudaStreamCreate");
  Check(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming), "cudaEventCreate");
  Check(cudaEventCreateWithFlags(&done, cudaEventDisableTiming), "cudaEventCreate");
  Tensor in = x.tensor(), weights = w.tensor(), out_a = a.tensor(), out_b = b.tensor();
  auto round = [&] {
    cudaEventRecord(ready, stream);
    cudaStreamWaitEvent(other, ready, 0);
    {
      StreamScope scope(Device::Cuda(0), other);
      distances(in, weights, out_b);
    }
    cudaEventRecord(done, other);
    {
      StreamScope scope(Device::Cuda(0), stream);
      features(in, weights, out_a);
    }
    cudaStreamWaitEvent(stream, done, 0);
    Combine<<<Blocks(both.size()), 256, 0, stream>>>(a.data(), b.data(), both.data(), both.size());
  };
  const double time = Time(stream, round);
  std::vector<float> want = rows.Features();
  const std::vector<float> far = rows.Distances();
  for (size_t i = 0; i < want.size(); ++i) want[i] /= 1 + far[i];
  Expect(both.Get(), want, "two and a combination");
  std::printf("features | distances -> kernel, %lld rows: %.1f us a round\n", (long long)rows.n, time);
  cudaEventDestroy(ready);
  cudaEventDestroy(done);
  cudaStreamDestroy(other);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : ".";
  auto load = [&](const std::string& name) {
    return Module::LoadFromFile(folder + "/" + name + ".so").GetFunction(name);
  };
  const Function smooth = load("smooth"), features = load("features"), distances = load("distances");
  cudaStream_t stream;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  BetweenKernels(smooth, stream);
  const Rows rows{100'003, Random(100'003 * kInputs), Random(kOutputs * kInputs)};
  FeaturesFeedAKernel(features, rows, stream);
  TwoAndACombination(features, distances, rows, stream);
  cudaStreamDestroy(stream);
  return 0;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s: %s\n", error.kind().c_str(), error.what());
  return 1;
}
