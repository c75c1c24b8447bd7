// The whole road of a kernel on a device: built for the null device, loaded, called, and launched
// there; with CUDA's code where NVRTC is, on a machine without a driver.
#include <gtest/gtest.h>

#include <vector>

#include "artifact/memory_file.h"
#include "codegen/cuda/nvrtc.h"
#include "driver/functions.h"
#include "loop/parse.h"
#include "runtime/device/null/null.h"
#include "tenon/kernel_abi.h"
#include "tenon/tenon.hpp"

namespace tenon {
namespace {

using runtime::NullLaunch;
using runtime::NullLaunchAt;
using runtime::NullLaunchCount;

// Before anything asks for a CUDA device: there is none.
const int no_driver = setenv("TENON_CUDA_DRIVER", "/nonexistent/libcuda.so.1", 1);

constexpr char kAdd[] = R"(
func @add<n>(A: f32[n], B: f32[n], out C: f32[n]) {exported: true} {
  for bx in 0..(n + 127) / 128 thread blockIdx.x {
    for tx in 0..128 thread threadIdx.x {
      block C(i: spatial in 0..n = bx * 128 + tx) where bx * 128 + tx < n {
        reads A[i], B[i]; writes C[i]
        C[i] = A[i] + B[i]
      }
    }
  }
}
)";

Expected<driver::Built> Built(const std::string& text, const Target& target) {
  auto module = ParseModule(text, "kernel");
  EXPECT_TRUE(module) << (module ? "" : ToString(module.errors()));
  driver::FunctionOptions options;
  options.target = &target;
  options.hooks.verify = true;
  return driver::BuildFunctions(*module, options);
}

std::string ErrorOf(const std::string& text, const std::string& target) {
  auto code = Built(text, Target::Parse(target).value());
  return code ? "" : ToString(code.errors());
}

v0::Module Loaded(const std::string& text, const std::string& target_text) {
  const Target target = Target::Parse(target_text).value();
  auto code = Built(text, target);
  EXPECT_TRUE(code) << (code ? "" : ToString(code.errors()));
  auto image = driver::MakeOutput(*code, "so");
  EXPECT_TRUE(image) << (image ? "" : ToString(image.errors()));
  auto file = artifact::MemoryFile::Create("tenon-test", *image);
  return v0::Module::LoadFromFile(file->path());
}

constexpr Device kNull = Device::Null();

Tensor OnNull(int64_t n) { return Tensor::Empty({n}, DataType::kFloat32, kNull); }

template <class F>
std::string MessageOf(F&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Launch, HasTheExtentsOfTheCallsDims) {
  Function add = Loaded(kAdd, "cuda -arch=null").GetFunction("add");
  for (int64_t n : {1, 128, 129, 1000}) {
    Tensor a = OnNull(n), b = OnNull(n), c = OnNull(n);
    const int64_t before = NullLaunchCount();
    add(a, b, c);
    ASSERT_EQ(NullLaunchCount(), before + 1);
    const NullLaunch& launch = *NullLaunchAt(before);
    EXPECT_STREQ(launch.name, "add");
    EXPECT_EQ(launch.grid[0], (n + 127) / 128);
    EXPECT_EQ(launch.grid[1] * launch.grid[2], 1);
    EXPECT_EQ(launch.block[0], 128);
    EXPECT_EQ(launch.block[1] * launch.block[2], 1);
    EXPECT_EQ(launch.shared_bytes, 0);
    EXPECT_EQ(launch.first_arg, a.data());
  }
}

TEST(Launch, OfNothingDoesNotHappen) {
  Function add = Loaded(kAdd, "cuda -arch=null").GetFunction("main");
  const int64_t before = NullLaunchCount();
  add(OnNull(0), OnNull(0), OnNull(0));
  EXPECT_EQ(NullLaunchCount(), before);
}

constexpr char kSum[] = R"(
func @sum<n>(A: f32[n], out S: f32[1]) {exported: true} {
  alloc P: f32[4, 2]
  for b in 0..4 thread blockIdx.x {cooperative: true} {
    for c in 0..2 thread clusterCtaIdx.x {
      for k in 0..(n + 7) / 8 {
        block P(vb: spatial = b, vc: spatial = c, vk: reduce in 0..(n + 7) / 8 = k) where (vk * 4 + vb) * 2 + vc < n {
          reads A[(vk * 4 + vb) * 2 + vc], P[vb, vc]; writes P[vb, vc]
          init { P[vb, vc] = 0f32 }
          P[vb, vc] = P[vb, vc] + A[(vk * 4 + vb) * 2 + vc]
        }
      }
    }
  }
  for i in 0..4 {
    for j in 0..2 {
      block S(vi: reduce = i, vj: reduce = j) {
        reads P[vi, vj], S[0]; writes S[0]
        init { S[0] = 0f32 }
        S[0] = S[0] + P[vi, vj]
      }
    }
  }
}
)";

// One launch of all blocks, even where there is nothing to add up.
TEST(Launch, IsOfOneGridInClusters) {
  Function sum = Loaded(kSum, "cuda -arch=null").GetFunction("sum");
  for (int64_t n : {0, 1, 1009}) {
    const int64_t before = NullLaunchCount();
    sum(OnNull(n), OnNull(1));
    ASSERT_EQ(NullLaunchCount(), before + 1);
    const NullLaunch& launch = *NullLaunchAt(before);
    EXPECT_EQ(launch.attributes, TN_LAUNCH_COOPERATIVE);
    EXPECT_EQ(launch.grid[0], 8);
    EXPECT_EQ(launch.cluster[0], 2);
    EXPECT_EQ(launch.cluster[1] * launch.cluster[2], 1);
  }
}

TEST(Launch, OfAGridIsForCudaAndOfClustersForItsLaterDevices) {
  EXPECT_NE(ErrorOf(kSum, "cuda -arch=sm_80")
                .find("@sum: error: loop 'clusterCtaIdx.x' over clusterCtaIdx.x: clusters of "
                      "blocks need sm_90, but the target is sm_80"),
            std::string::npos);
  EXPECT_NE(ErrorOf(kSum, "opencl").find("loop 'b' is cooperative, but opencl has no launches"),
            std::string::npos);
}

constexpr char kChain[] = R"(
func @chain<n, m>(A: f32[n], W: f32[m], out C: f32[m]) {exported: true} {
  alloc P: f32[n]
  for b in 0..n thread blockIdx.x {
    block P(i: spatial = b) { reads A[i]; writes P[i]; P[i] = A[i] * 2f32 }
  }
  for c in 0..m thread blockIdx.x {dependent_launch: true} {
    block C(i: spatial = c) { reads P[0..n], W[i]; writes C[i]; C[i] = select(i < n, P[i], 0f32) + W[i] }
  }
}
)";

// A launch that was left out is none to depend on.
TEST(Launch, DependsOnTheOneBefore) {
  Function chain = Loaded(kChain, "cuda -arch=null").GetFunction("chain");
  int64_t before = NullLaunchCount();
  chain(OnNull(5), OnNull(7), OnNull(7));
  ASSERT_EQ(NullLaunchCount(), before + 2);
  EXPECT_EQ(NullLaunchAt(before)->attributes, 0);
  EXPECT_EQ(NullLaunchAt(before + 1)->attributes, TN_LAUNCH_DEPENDENT);
  before = NullLaunchCount();
  chain(OnNull(0), OnNull(7), OnNull(7));
  ASSERT_EQ(NullLaunchCount(), before + 1);
  EXPECT_EQ(NullLaunchAt(before)->attributes, 0);
}

TEST(Launch, IsOnTheThreadsStream) {
  Function add = Loaded(kAdd, "cuda -arch=null").GetFunction("add");
  const tn_dl_device device = {TN_DL_NULL, 0};
  void* stream = nullptr;
  ASSERT_EQ(tn_stream_make(device, &stream), 0);
  ASSERT_EQ(tn_stream_set(device, stream, nullptr), 0);
  const int64_t before = NullLaunchCount();
  add(OnNull(5), OnNull(5), OnNull(5));
  ASSERT_EQ(tn_stream_set(device, nullptr, nullptr), 0);
  add(OnNull(5), OnNull(5), OnNull(5));
  ASSERT_EQ(NullLaunchCount(), before + 2);
  EXPECT_EQ(NullLaunchAt(before)->stream, stream);
  EXPECT_EQ(NullLaunchAt(before + 1)->stream, nullptr);
}

TEST(Launch, ReturnsOutputsOnTheInputsDevice) {
  Function add = Loaded(kAdd, "cuda -arch=null").GetFunction("add");
  Tensor c = add(OnNull(300), OnNull(300));
  EXPECT_EQ(c.shape()[0], 300);
  EXPECT_EQ(c.device().device_type, TN_DL_NULL);
  EXPECT_EQ(c.device().device_id, 0);
}

TEST(Launch, RefusesTensorsOfOtherDevices) {
  Function add = Loaded(kAdd, "cuda -arch=null").GetFunction("add");
  Tensor host = Tensor::Empty({8}, DataType::kFloat32);
  EXPECT_NE(MessageOf([&] {
              add(OnNull(8), host, OnNull(8));
            }).find("Parameter `B` expects device=null but got device=cpu"),
            std::string::npos);
  auto elsewhere = [] {
    return Tensor::Wrap(OnNull(8).data(), {8}, DataType::kFloat32, Device::Null(1));
  };
  EXPECT_NE(MessageOf([&] {
              add(OnNull(8), elsewhere(), OnNull(8));
            }).find("Parameter `B` expects device=null:0 (that of `A`) but got device=null:1"),
            std::string::npos);
  EXPECT_NE(MessageOf([&] {
              add(elsewhere(), elsewhere(), elsewhere());
            }).find("there is no device null:1"),
            std::string::npos);
}

// More shared memory than a kernel has by itself is asked for by every launch.
TEST(Launch, AsksForDynamicSharedMemory) {
  const char* text = R"(
func @f(A: f32[32768], out C: f32[32768]) {exported: true} {
  for tx in 0..64 thread threadIdx.x {
    alloc S: f32[16384] in shared
    for i in 0..256 { S[i * 64 + tx] = A[i * 64 + tx] }
    for j in 0..256 { C[j * 64 + tx] = S[16383 - (j * 64 + tx)] }
  }
}
)";
  Function f = Loaded(text, "cuda -arch=null -max_shared_memory_per_block=100K").GetFunction("f");
  const int64_t before = NullLaunchCount();
  f(OnNull(32768), OnNull(32768));
  ASSERT_EQ(NullLaunchCount(), before + 1);
  EXPECT_EQ(NullLaunchAt(before)->shared_bytes, 65536);
  EXPECT_NE(ErrorOf(text, "cuda -arch=null")
                .find("65536 bytes of shared memory per block, but the target null has "
                      "at most 49152"),
            std::string::npos);
}

// Two kernels and their order in the library.
TEST(Launch, FindsEachKernelOfALibrary) {
  std::string text = kAdd;
  text += R"(
func @twice(A: f32[64], out C: f32[64]) {exported: true} {
  for tx in 0..64 thread threadIdx.x { C[tx] = A[tx] + A[tx] }
}
)";
  v0::Module module = Loaded(text, "cuda -arch=null");
  const int64_t before = NullLaunchCount();
  module.GetFunction("twice")(OnNull(64), OnNull(64));
  module.GetFunction("add")(OnNull(64), OnNull(64), OnNull(64));
  ASSERT_EQ(NullLaunchCount(), before + 2);
  EXPECT_STREQ(NullLaunchAt(before)->name, "twice");
  EXPECT_EQ(NullLaunchAt(before)->block[0], 64);
  EXPECT_STREQ(NullLaunchAt(before + 1)->name, "add");
}

// Data that crosses blocks takes two launches, with memory of the device between them.
TEST(Launch, OfAKernelThatNeedsTwo) {
  const char* text = R"(
func @f<n: 1..=64>(A: f32[n], out C: f32[n]) {exported: true} {
  alloc B: f32[n]
  for i in 0..n thread blockIdx.x { B[i] = A[i] }
  for j in 0..(n + 31) / 32 thread blockIdx.x {
    for t in 0..32 thread threadIdx.x { if j * 32 + t < n { C[j * 32 + t] = B[n - 1 - (j * 32 + t)] } }
  }
}
)";
  Function f = Loaded(text, "cuda -arch=null").GetFunction("f");
  void* between = nullptr;
  for (int call = 0; call < 2; ++call) {
    const int64_t before = NullLaunchCount();
    Tensor a = OnNull(40), c = OnNull(40);
    f(a, c);
    ASSERT_EQ(NullLaunchCount(), before + 2);
    EXPECT_STREQ(NullLaunchAt(before)->name, "f_0");
    EXPECT_EQ(NullLaunchAt(before)->grid[0], 40);
    EXPECT_EQ(NullLaunchAt(before)->first_arg, a.data());
    EXPECT_STREQ(NullLaunchAt(before + 1)->name, "f_1");
    EXPECT_EQ(NullLaunchAt(before + 1)->grid[0], 2);
    // The second call has the first one's memory.
    if (call == 1) EXPECT_EQ(NullLaunchAt(before + 1)->first_arg, between);
    between = NullLaunchAt(before + 1)->first_arg;
    EXPECT_NE(between, a.data());
    EXPECT_NE(between, c.data());
  }
}

// What a body asks for that no barrier can give, or that the device has not, is refused before code
// is made.
struct Refused {
  const char* body;
  const char* message;
};
constexpr Refused kRefused[] = {
    {R"(for k in 0..2 {
          alloc B: f32[4]
          for i in 0..4 thread blockIdx.x { B[i] = A[i] }
          for j in 0..4 thread blockIdx.x { C[j] = B[3 - j] }
        })",
     "buffer B is written by one block of threads and touched by another: blocks cannot wait"},
    {R"(alloc L: f32[4] in local
        for i in 0..4 thread threadIdx.x { L[i] = A[i] }
        for j in 0..4 thread threadIdx.x { C[j] = L[3 - j] })",
     "buffer L in local is written by one thread and read by another: expected it in shared"},
    {R"(alloc S: f32[1] in shared
        for i in 0..4 thread threadIdx.x {
          S[0] = A[i]
          C[i] = S[0]
        })",
     "buffer S in shared is made for each thread: expected it in local"},
    {R"(alloc S: f32[4] in shared
        for i in 0..4 thread threadIdx.x {
          if A[i] < 0f32 {
            S[i] = A[i]
            sync cta
            C[i] = S[3 - i]
          }
        })",
     "a barrier stands under a condition that differs by thread"},
    {R"(alloc S: f32[4] in shared
        for i in 0..4 thread threadIdx.x {
          for k in 0..i {
            S[i] = A[k]
            sync cta
            C[i] = S[3 - i]
          }
        })",
     "a barrier stands in loop 'k', whose bounds differ by thread"},
    {"for y in 0..2 thread threadIdx.y { for x in 0..1024 thread threadIdx.x { "
     "if y * 1024 + x < 4 { C[y * 1024 + x] = A[y * 1024 + x] } } }",
     "2048 threads per block, but the target null has at most 1024"},
    {R"(for i in 0..4 thread threadIdx.x {
          alloc S: f32[16384] in shared
          S[i * 4096] = A[i]
          C[i] = S[i * 4096]
        })",
     "49156 bytes of shared memory per block, but the target null has at most 49152"},
    {R"(for i in 0..1024 thread threadIdx.x {
          if i < 4 {
            alloc R: f32[128] in register
            for k in 0..128 { R[k] = A[i] }
            for m in 0..128 { C[i] = R[127 - m] }
          }
        })",
     "131072 registers per block, but the target null has at most 65536: expected fewer threads"},
};

TEST(Launch, KernelsThatNoDeviceRunsAreRefused) {
  for (const Refused& r : kRefused) {
    const std::string error = ErrorOf(
        std::string("func @f(A: f32[4], out C: f32[4]) {exported: true} {\n") + r.body + "\n}\n",
        "cuda -arch=null");
    EXPECT_NE(error.find(r.message), std::string::npos) << r.message << "\ngot: " << error;
  }
}

TEST(Launch, WithoutADriverSaysWhatIsMissing) {
  if (auto nvrtc = codegen::FindNvrtc(); !nvrtc) GTEST_SKIP() << ToString(nvrtc.errors());
  Function add = Loaded(kAdd, "cuda -arch=sm_90").GetFunction("add");
  void* anywhere = OnNull(8).data();
  Tensor a = Tensor::Wrap(anywhere, {8}, DataType::kFloat32, Device::Cuda(0));
  const std::string message = MessageOf([&] { add(a, a, a); });
  EXPECT_NE(message.find("expects memory of its own"), std::string::npos) << message;
  Tensor c =
      Tensor::Wrap(static_cast<char*>(anywhere) + 256, {8}, DataType::kFloat32, Device::Cuda(0));
  const std::string missing = MessageOf([&] { add(a, a, c); });
  EXPECT_NE(missing.find("there is no device cuda:0"), std::string::npos) << missing;
  EXPECT_NE(missing.find("NVIDIA's driver is not installed: /nonexistent/libcuda.so.1"),
            std::string::npos)
      << missing;
}

// A library for CUDA carries machine code, and PTX for later GPUs.
TEST(DeviceCode, OfCudaIsACubinAndPtx) {
  if (auto nvrtc = codegen::FindNvrtc(); !nvrtc) GTEST_SKIP() << ToString(nvrtc.errors());
  auto code = Built(kAdd, Target::Parse("cuda -arch=sm_80").value());
  ASSERT_TRUE(code) << ToString(code.errors());
  ASSERT_EQ(code->device.images.size(), 2U);
  EXPECT_EQ(code->device.images[0].form, "cubin for sm_80");
  EXPECT_EQ(code->device.images[0].parts[0].substr(1, 3), "ELF");
  EXPECT_NE(code->device.images[1].parts[0].find(".target sm_80"), std::string::npos);
  EXPECT_EQ(code->device.images[1].parts[0].back(), '\0');
  auto own = Built(kAdd, Target::Parse("cuda -arch=sm_90a").value());
  ASSERT_TRUE(own) << ToString(own.errors());
  EXPECT_EQ(own->device.images.size(), 1U);
}

// There is source to look at, and what a link will say.
TEST(DeviceCode, OfAnArchitectureThatNvrtcLacksIsMissing) {
  const auto nvrtc = codegen::FindNvrtc();
  if (!nvrtc) GTEST_SKIP() << ToString(nvrtc.errors());
  const Target target = Target::Parse("cuda -arch=sm_53").value();
  const auto code = Built(kAdd, target);
  ASSERT_TRUE(code) << ToString(code.errors());
  EXPECT_NE(code->device.source.find("__global__"), std::string::npos);
  if (nvrtc->major < 13) GTEST_SKIP() << "NVRTC of CUDA 12 makes code for sm_53";
  EXPECT_TRUE(code->device.images.empty());
  const auto image = driver::MakeOutput(*code, "so");
  ASSERT_FALSE(image);
  EXPECT_NE(ToString(image.errors()).find("sm_53 needs NVRTC of CUDA 12"), std::string::npos)
      << ToString(image.errors());
}

}  // namespace
}  // namespace tenon
