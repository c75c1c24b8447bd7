// What a call of a compiled network costs the host beside cuGraphLaunch of the same launches, and
// whether many calls from several threads keep giving the same bits in the same memory.
//
//   nvcc -O2 -std=c++20 bench/gpu_calls.cu -o gpu_calls -I PREFIX/include -L PREFIX/lib
//   -ltenon_runtime -lcuda && LD_LIBRARY_PATH=PREFIX/lib ./gpu_calls LIBRARY [CALLS]
//
// LIBRARY is compiled for CUDA with known sizes. Inputs of floats are normally distributed, of
// integers zeros and ones.
//
// 1. the first call, with the context there: load, code, weights, memory
// 2. medians of 60 times 20 calls: cuGraphLaunch of the launches as a capture of the call has them;
//    a call; a call whose inputs and outputs are elsewhere than last time
// 3. CALLS (10,000) from each of four threads, each on a stream of its own; every 50th writes to
//    memory filled with other bytes and must give the first call's bits, and what the device has
//    left must not shrink from the half on
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tenon/tenon.hpp"

namespace {

constexpr int kThreads = 4, kOften = 50;

void Check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

double Now() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

template <class T, class Draw>
void Fill(void* bytes, int64_t count, Draw draw) {
  for (int64_t i = 0; i < count; ++i) static_cast<T*>(bytes)[i] = static_cast<T>(draw());
}

// A parameter's memory on the device, with tensors over it.
struct Buffer {
  Buffer(const tenon::Parameter& p, bool input)
      : tensor(tenon::Tensor::Empty(p.shape, p.dtype, tenon::Device::Cuda(0))),
        bytes(static_cast<size_t>(tensor.bytes()), 0) {
    if (!input) return;
    std::mt19937 generator(1);
    std::normal_distribution<float> normal;
    const int64_t count = tensor.num_elements();
    if (p.dtype == tenon::DataType::kFloat32) {
      Fill<float>(bytes.data(), count, [&] { return normal(generator); });
    } else if (p.dtype == tenon::DataType::kInt64) {
      Fill<int64_t>(bytes.data(), count, [&] { return generator() & 1; });
    } else if (p.dtype == tenon::DataType::kInt32) {
      Fill<int32_t>(bytes.data(), count, [&] { return generator() & 1; });
    }
    tensor.CopyFromBytes(bytes.data(), tensor.bytes());
  }

  tenon::Tensor tensor;
  std::vector<uint8_t> bytes;
};

// What one call is given.
class Arguments {
 public:
  explicit Arguments(const tenon::Module& module) {
    for (const tenon::Parameter& p : module.Inputs()) buffers_.emplace_back(p, true);
    inputs_ = buffers_.size();
    for (const tenon::Parameter& p : module.Outputs()) buffers_.emplace_back(p, false);
    for (const Buffer& b : buffers_) tensors.push_back(b.tensor);
  }

  void Spoil(cudaStream_t stream) {
    for (size_t i = inputs_; i < buffers_.size(); ++i)
      Check(cudaMemsetAsync(tensors[i].data(), 0xff, buffers_[i].bytes.size(), stream),
            "cudaMemsetAsync");
  }

  std::vector<std::vector<uint8_t>> Results(cudaStream_t stream) {
    std::vector<std::vector<uint8_t>> out;
    for (size_t i = inputs_; i < buffers_.size(); ++i) {
      out.emplace_back(buffers_[i].bytes.size());
      Check(cudaMemcpyAsync(out.back().data(), tensors[i].data(), out.back().size(),
                            cudaMemcpyDeviceToHost, stream),
            "cudaMemcpyAsync");
    }
    Check(cudaStreamSynchronize(stream), "a call");
    return out;
  }

  std::vector<tenon::Tensor> tensors;

 private:
  std::vector<Buffer> buffers_;
  size_t inputs_ = 0;
};

cudaStream_t NewStream() {
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return stream;
}

// Host time of one of 20 calls behind one another, the median of 60 times.
template <class Call>
double HostTime(cudaStream_t stream, Call call) {
  std::vector<double> times;
  for (int i = 0; i < 63; ++i) {
    const double start = Now();
    for (int j = 0; j < 20; ++j) call(j);
    times.push_back((Now() - start) / 20);
    Check(cudaStreamSynchronize(stream), "calls");
  }
  times.erase(times.begin(), times.begin() + 3);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void Costs(const tenon::Function& function, Arguments& here, Arguments& elsewhere) {
  const cudaStream_t stream = NewStream();
  tenon::StreamScope scope(tenon::Device::Cuda(0), stream);
  function(elsewhere.tensors);
  function(here.tensors);
  Check(cudaStreamSynchronize(stream), "the first call");
  // The capture keeps an instance's memory: one call before it, and one after.
  cudaGraph_t graph = nullptr;
  Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  function(here.tensors);
  Check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  size_t nodes = 0;
  Check(cudaGraphGetNodes(graph, nullptr, &nodes), "cudaGraphGetNodes");
  cudaGraphExec_t launched = nullptr;
  Check(cudaGraphInstantiate(&launched, graph, 0), "cudaGraphInstantiate");
  function(here.tensors);
  Check(cudaStreamSynchronize(stream), "a call");
  const double floor = HostTime(stream, [&](int) { cuGraphLaunch(launched, stream); });
  const double call = HostTime(stream, [&](int) { function(here.tensors); });
  const double moved =
      HostTime(stream, [&](int j) { function(j & 1 ? here.tensors : elsewhere.tensors); });
  std::printf(
      "%zu nodes; us of the host: cuGraphLaunch %.2f, a call %.2f, with tensors elsewhere %.2f\n",
      nodes, floor, call, moved);
}

int ManyCalls(const tenon::Module& module, const tenon::Function& function,
              const std::vector<std::vector<uint8_t>>& expected, int calls) {
  std::atomic<int> wrong = 0, half = 0, done = 0;
  std::vector<std::thread> threads;
  std::atomic<int64_t> shrunk = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const cudaStream_t stream = NewStream();
      Arguments arguments(module);
      tenon::StreamScope scope(tenon::Device::Cuda(0), stream);
      size_t free = 0, total = 0, free_before = 0;
      for (int i = 0; i < calls; ++i) {
        const bool looked_at = i % kOften == 0 || i + 1 == calls;
        if (looked_at) arguments.Spoil(stream);
        function(arguments.tensors);
        if (looked_at && arguments.Results(stream) != expected) ++wrong;
        if (i == calls / 2) {
          ++half;
          while (half < kThreads) std::this_thread::yield();
          Check(cudaMemGetInfo(&free_before, &total), "cudaMemGetInfo");
        }
      }
      // Nobody's arguments go before the last has looked.
      ++done;
      while (done < kThreads) std::this_thread::yield();
      Check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
      ++done;
      while (done < 2 * kThreads) std::this_thread::yield();
      if (t == 0) shrunk = static_cast<int64_t>(free_before) - static_cast<int64_t>(free);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf(
      "%d calls from each of %d threads: %d of those looked at differ; memory taken in the second "
      "half: %lld bytes\n",
      calls, kThreads, wrong.load(), static_cast<long long>(shrunk.load()));
  return wrong > 0 || shrunk > 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "gpu_calls LIBRARY [CALLS]\n");
    return 2;
  }
  Check(cudaFree(nullptr), "a context");
  const double start = Now();
  const tenon::Module module = tenon::Module::LoadFromFile(argv[1]);
  const tenon::Function function = module.GetFunction(module.Name());
  const double loaded = Now();
  Arguments here(module), elsewhere(module);
  const cudaStream_t stream = NewStream();
  std::vector<std::vector<uint8_t>> expected;
  const double before = Now();
  {
    tenon::StreamScope scope(tenon::Device::Cuda(0), stream);
    function(here.tensors);
    expected = here.Results(stream);
  }
  std::printf("first call: %.1f ms, of which loading %.1f\n",
              (Now() - before + loaded - start) / 1000, (loaded - start) / 1000);
  Costs(function, here, elsewhere);
  return ManyCalls(module, function, expected, argc > 2 ? std::atoi(argv[2]) : 10000);
}
