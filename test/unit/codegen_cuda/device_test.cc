// Kernels on a GPU, where there is one: text → CUDA C++ → cubin → the runtime's driver → answers.
#include <array>
#include <cmath>
#include <vector>

#include "cuda.h"
#include "matmul.h"
#include "runtime/device/cuda/library.h"
#include "runtime/device/device.h"

namespace tenon {
namespace {

using runtime::cuda_driver;

/// Memory of the device for the life of the object.
class OnDevice {
 public:
  explicit OnDevice(const std::vector<float>& values) : bytes_(4 * values.size()) {
    EXPECT_EQ(cuda_driver.allocate(0, static_cast<int64_t>(bytes_), &memory_), 0);
    EXPECT_EQ(cuda_driver.copy_from_host(0, memory_, values.data(), static_cast<int64_t>(bytes_)),
              0);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { cuda_driver.free(0, memory_); }

  /// The address of the pointer, as launches want it.
  void* argument() { return static_cast<void*>(&memory_); }
  std::vector<float> Read() const {
    std::vector<float> out(bytes_ / 4);
    EXPECT_EQ(cuda_driver.copy_to_host(0, out.data(), memory_, static_cast<int64_t>(bytes_)), 0);
    return out;
  }

 private:
  size_t bytes_;
  void* memory_ = nullptr;
};

/// "sm_90" of device 0.
std::string ArchOfDevice() {
  const runtime::cuda::Library* library = runtime::cuda::Find(nullptr);
  int32_t major = 0, minor = 0;
  EXPECT_EQ(library->device_attribute(&major, runtime::cuda::kArchMajor, 0), 0);
  EXPECT_EQ(library->device_attribute(&minor, runtime::cuda::kArchMinor, 0), 0);
  return "sm_" + std::to_string(10 * major + minor);
}

/// One kernel on device 0.
class Kernel {
 public:
  Kernel(const std::string& text, const std::string& name) : name_(name) {
    const std::string arch = ArchOfDevice();
    auto cubin = codegen::CompileCuda(test::SourceOf(text, arch), "kernel.cu", arch,
                                      codegen::CudaFormat::kCubin);
    EXPECT_TRUE(cubin) << (cubin ? "" : ToString(cubin.errors()));
    if (!cubin) return;
    EXPECT_EQ(
        cuda_driver.module_load(0, cubin->data(), static_cast<int64_t>(cubin->size()), &module_),
        0);
    EXPECT_EQ(cuda_driver.find_function(0, module_, name.c_str(), 0, &function_), 0);
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel() { cuda_driver.module_free(0, module_); }

  /// True when the launch and all of its work succeeded.
  bool Run(std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
           std::vector<void*> arguments) {
    runtime::DeviceLaunch launch{.name = name_.c_str(),
                                 .function = function_,
                                 .grid = {grid[0], grid[1], grid[2]},
                                 .block = {block[0], block[1], block[2]},
                                 .shared_bytes = 0,
                                 .stream = nullptr,
                                 .args = arguments.data()};
    return cuda_driver.launch(0, launch) == 0 && cuda_driver.stream_wait(0, nullptr) == 0;
  }

 private:
  std::string name_;
  void* module_ = nullptr;
  void* function_ = nullptr;
};

#define NEEDS_GPU()                                                    \
  if (cuda_driver.count() == 0) GTEST_SKIP() << cuda_driver.missing(); \
  NEEDS_NVRTC()

std::vector<float> SmallIntegers(size_t n, uint32_t seed) {
  std::vector<float> out(n);
  for (float& x : out) {
    seed = seed * 1664525 + 1013904223;
    x = static_cast<float>(static_cast<int>(seed >> 24) % 8 - 4);
  }
  return out;
}

std::vector<float> Product(const std::vector<float>& a, const std::vector<float>& b, size_t size) {
  std::vector<float> out(size * size);
  for (size_t i = 0; i < size; ++i) {
    for (size_t k = 0; k < size; ++k) {
      for (size_t j = 0; j < size; ++j) out[i * size + j] += a[i * size + k] * b[k * size + j];
    }
  }
  return out;
}

TEST(CudaDevice, AddsVectorsOfAnySize) {
  NEEDS_GPU();
  Kernel add(R"(
func @add<n: 1..=65536>(A: f32[n] align 64, B: f32[n] align 64, out C: f32[n] align 64)
    target "cuda" {noalias: true} {
  for bx in 0..(n + 127) / 128 thread blockIdx.x {
    for tx in 0..128 thread threadIdx.x {
      if bx * 128 + tx < n { C[bx * 128 + tx] = A[bx * 128 + tx] + B[bx * 128 + tx] }
    }
  }
}
)",
             "add");
  for (int64_t n : {1, 127, 128, 129, 1009, 65536}) {
    const auto size = static_cast<size_t>(n);
    std::vector<float> a = SmallIntegers(size, 1), b = SmallIntegers(size, 2), sum(size);
    for (size_t i = 0; i < size; ++i) sum[i] = a[i] + b[i];
    OnDevice da(a), db(b), dc(std::vector<float>(size, NAN));
    ASSERT_TRUE(add.Run({static_cast<uint32_t>((n + 127) / 128), 1, 1}, {128, 1, 1},
                        {da.argument(), db.argument(), dc.argument(), &n}));
    EXPECT_EQ(dc.Read(), sum) << n;
  }
}

// Tiles in shared memory, barriers around them, sums in registers.
TEST(CudaDevice, MultipliesThroughSharedMemory) {
  NEEDS_GPU();
  constexpr size_t kSize = 64;
  Kernel matmul(R"(
func @matmul(A: f32[4096] align 64, B: f32[4096] align 64, out C: f32[4096] align 64)
    target "cuda" {noalias: true} {
  for by in 0..4 thread blockIdx.y {
    for bx in 0..4 thread blockIdx.x {
      for ty in 0..16 thread threadIdx.y {
        for tx in 0..16 thread threadIdx.x {
          alloc As: f32[256] in shared
          alloc Bs: f32[256] in shared
          alloc acc: f32[1] in register
          acc[0] = 0f32
          for ko in 0..4 {
            As[ty * 16 + tx] = A[(by * 16 + ty) * 64 + ko * 16 + tx]
            Bs[ty * 16 + tx] = B[(ko * 16 + ty) * 64 + bx * 16 + tx]
            sync cta
            for k in 0..16 {
              acc[0] = acc[0] + As[ty * 16 + k] * Bs[k * 16 + tx]
            }
            sync cta
          }
          C[(by * 16 + ty) * 64 + bx * 16 + tx] = acc[0]
        }
      }
    }
  }
}
)",
                "matmul");
  const std::vector<float> a = SmallIntegers(kSize * kSize, 3), b = SmallIntegers(kSize * kSize, 4);
  const std::vector<float> product = Product(a, b, kSize);
  OnDevice da(a), db(b), dc(std::vector<float>(kSize * kSize, NAN));
  ASSERT_TRUE(matmul.Run({4, 4, 1}, {16, 16, 1}, {da.argument(), db.argument(), dc.argument()}));
  EXPECT_EQ(dc.Read(), product);
}

// Four lanes at a time through shared memory into a tile of registers.
TEST(CudaDevice, MultipliesByVectorsAndRegisters) {
  NEEDS_GPU();
  constexpr size_t kSize = 1024;
  Kernel matmul(test::kMatmul, "matmul");
  const std::vector<float> a = SmallIntegers(kSize * kSize, 6), b = SmallIntegers(kSize * kSize, 7);
  OnDevice da(a), db(b), dc(std::vector<float>(kSize * kSize, NAN));
  ASSERT_TRUE(matmul.Run({16, 16, 1}, {16, 16, 1}, {da.argument(), db.argument(), dc.argument()}));
  const std::vector<float> product = Product(a, b, kSize);
  EXPECT_EQ(dc.Read(), product);
}

// A tree of sums across the threads of a block.
TEST(CudaDevice, ReducesAcrossThreads) {
  NEEDS_GPU();
  std::string steps;
  for (int half = 128; half > 0; half /= 2) {
    const std::string h = std::to_string(half);
    steps.append("      if tx < ").append(h).append(" { part[tx] = part[tx] + part[tx + ");
    steps.append(h).append("] }\n      sync cta\n");
  }
  Kernel sum(
      "func @sum(A: f32[1024] align 64, out C: f32[4] align 64) target \"cuda\" {\n"
      "  for bx in 0..4 thread blockIdx.x {\n"
      "    for tx in 0..256 thread threadIdx.x {\n"
      "      alloc part: f32[256] in shared\n"
      "      part[tx] = A[bx * 256 + tx]\n      sync cta\n" +
          steps + "      if tx == 0 { C[bx] = part[0] }\n    }\n  }\n}\n",
      "sum");
  const std::vector<float> a = SmallIntegers(1024, 5);
  std::vector<float> sums(4);
  for (size_t i = 0; i < a.size(); ++i) sums[i / 256] += a[i];
  OnDevice da(a), dc(std::vector<float>(4, NAN));
  ASSERT_TRUE(sum.Run({4, 1, 1}, {256, 1, 1}, {da.argument(), dc.argument()}));
  EXPECT_EQ(dc.Read(), sums);
}

}  // namespace
}  // namespace tenon
