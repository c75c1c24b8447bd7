// C = A + B on a GPU, for every size: built here, run where there is a GPU.
//
//   vector_add_gpu [--target TARGET] [--save FILE]
//
// A library of it, and this program, need no CUDA toolkit to run: the driver alone.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "tenon/compiler.hpp"

namespace te = tenon::te;
using tenon::DataType;
using tenon::Device;
using tenon::Tensor;

namespace {

constexpr int64_t kThreads = 256, kLanes = 4;

tenon::Library BuildAdd(const tenon::Target& target) {
  te::Var n("n");
  te::Tensor a = te::Placeholder({n}, DataType::kFloat32, "A");
  te::Tensor b = te::Placeholder({n}, DataType::kFloat32, "B");
  te::Tensor c = te::Compute({n}, [&](te::Var i) { return a(i) + b(i); }, "C");
  tenon::Schedule s = tenon::CreateSchedule({c});
  auto [block, rest] = s[c].Split(c.op().axis()[0], kThreads * kLanes);
  auto [thread, lanes] = s[c].Split(rest, kLanes);
  s[c].Bind(block, te::ThreadAxis("blockIdx.x"));
  s[c].Bind(thread, te::ThreadAxis("threadIdx.x"));
  s[c].Vectorize(lanes);
  return tenon::Build(s, {a, b, c}, target, "add");
}

Tensor OnGpu(const std::vector<float>& values) {
  const auto n = static_cast<int64_t>(values.size());
  Tensor t = Tensor::Empty({n}, DataType::kFloat32, Device::Cuda(0));
  t.CopyFromBytes(values.data(), t.bytes());
  return t;
}

// True when the GPU's answer is the sum.
bool Check(const tenon::Function& add, size_t n) {
  std::vector<float> x(n), y(n, 1), z(n);
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 1000);
  Tensor a = OnGpu(x), b = OnGpu(y);
  Tensor c = add(a, b);  // a new tensor on the GPU
  c.CopyToBytes(z.data(), c.bytes());
  for (size_t i = 0; i < n; ++i) {
    if (z[i] != x[i] + 1) return std::printf("wrong at %zu of %zu\n", i, n), false;
  }
  return true;
}

void Measure(const tenon::Function& add) {
  constexpr int64_t kSize = int64_t{1} << 26;
  constexpr int kCalls = 50;
  Tensor a = Tensor::Empty({kSize}, DataType::kFloat32, Device::Cuda(0));
  Tensor b = Tensor::Empty({kSize}, DataType::kFloat32, Device::Cuda(0));
  Tensor c = Tensor::Empty({kSize}, DataType::kFloat32, Device::Cuda(0));
  tenon::Stream stream(Device::Cuda(0));
  tenon::StreamScope scope(stream);  // calls of this thread are queued on it
  add(a, b, c);
  stream.Wait();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) add(a, b, c);
  stream.Wait();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  std::printf("%.0f GB/s\n", 3.0 * 4 * kSize * kCalls / taken.count() / 1e9);
}

}  // namespace

int main(int argc, char** argv) try {
  const char* target = "cuda -arch=sm_90";
  const char* save = nullptr;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--target") == 0) target = argv[i + 1];
    if (std::strcmp(argv[i], "--save") == 0) save = argv[i + 1];
  }
  tenon::Library library = BuildAdd(tenon::Target(target));
  std::printf("%s\n", library.GetSource().c_str());
  if (save) library.Save(save);
  if (!Device::Cuda(0).exists()) return std::puts("there is no GPU here to run it on"), 0;
  tenon::Function add = library.GetFunction("add");
  for (size_t n : {1, 1023, 1024, 1025, 1000000}) {
    if (!Check(add, n)) return 1;
  }
  Measure(add);
  return 0;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "vector_add_gpu: %s\n", error.what());
  return 1;
}
