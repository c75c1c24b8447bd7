// What goes wrong on a device, and what works afterwards.
#include <sys/wait.h>
#include <unistd.h>

#include "kernels.h"
#include "networks.h"

namespace tenon::device::test {
namespace {

constexpr int kIllegalAddress = 700;

template <class F>
std::string ErrorOf(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.kind() + ": " + error.what();
  }
  return "";
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void SetMemory(uint64_t most) { Fake<void(uint64_t)>("FakeSetMemory")(most); }

TEST(DeviceErrors, OutOfMemoryIsTheCallsAndTheNextWorks) {
  Network net("memory", "n");
  const Values a = Inputs(64, 1);
  Tensor x = OnDevice(a, 64), y = OnDevice(a, 64);
  SetMemory(Count().bytes + 3000);  // enough for the weights
  std::string error = ErrorOf([&] { net.Into(x, y); });
  EXPECT_TRUE(Has(error, "MemoryError: out of memory on cuda:0: ")) << error;
  EXPECT_TRUE(Has(error, " bytes were asked for")) << error;
  SetMemory(Count().bytes);
  Network other("memory2");
  Tensor p = x, q = y;
  error = ErrorOf([&] {
    other.Into(Tensor::Wrap(x.data(), {1, 8}, DataType::kFloat32, Device::Cuda(0)),
               Tensor::Wrap(y.data(), {1, 8}, DataType::kFloat32, Device::Cuda(0)));
  });
  EXPECT_TRUE(Has(error, "MemoryError: out of memory on cuda:0: 2048 bytes were asked for"))
      << error;
  SetMemory(uint64_t{1} << 40);
  net.Into(x, y);
  EXPECT_TRUE(AreClose(Read(y), net.OnCpu(a, 64)));
}

// Where there is no more to be had, a stream takes over what another one has done with.
TEST(DeviceErrors, WithoutMoreMemoryAStreamWaitsForAnother) {
  Network net("scarce");
  Stream first(Device::Cuda(0)), second(Device::Cuda(0));
  const Values a = Inputs(1, 2), b = Inputs(1, 3);
  Tensor x = OnDevice(a), y = OnDevice(a), p = OnDevice(b), q = OnDevice(b);
  {
    const StreamScope scope(first);
    net.Into(x, y);
  }
  SetMemory(Count().bytes);
  for (int i = 0; i < 10; ++i) {
    {
      const StreamScope scope(first);
      net.Into(x, y);
    }
    const StreamScope scope(second);
    net.Into(p, q);
  }
  SetMemory(uint64_t{1} << 40);
  first.Wait();
  second.Wait();
  EXPECT_TRUE(AreClose(Read(y), net.OnCpu(a)));
  EXPECT_TRUE(AreClose(Read(q), net.OnCpu(b)));
}

TEST(DeviceErrors, LimitsAndTrims) {
  Network net("limited", "n");
  const Values a = Inputs(64, 4);
  Tensor x = OnDevice(a, 64), y = OnDevice(a, 64);
  net.module().LimitMemory(64);
  const std::string error = ErrorOf([&] { net.Into(x, y); });
  EXPECT_TRUE(Has(error, "MemoryError: an arena of ")) << error;
  EXPECT_TRUE(Has(error, "of 64 that it may")) << error;
  net.module().LimitMemory(0);
  net.Into(x, y);
  const uint64_t before = Count().bytes, graphs = Count().graphs;
  net.module().Trim();
  EXPECT_EQ(tn_stream_wait(Device::Cuda(0), nullptr), 0);
  EXPECT_LT(Count().bytes, before);
  EXPECT_EQ(Count().graphs, graphs - 1);
  net.Into(x, y);
  EXPECT_TRUE(AreClose(Read(y), net.OnCpu(a, 64)));
}

TEST(DeviceErrors, TheCallersMemoryServesAsWorkspace) {
  Network net("workspace", "n");
  const Values a = Inputs(16, 5);
  Tensor x = OnDevice(a, 16), y = OnDevice(a, 16);
  net.Into(OnDevice(Inputs(1, 1)), OnDevice(Inputs(1, 1)));
  int64_t bytes = -1;
  CallOptions ask;
  ask.out_workspace_bytes = &bytes;
  net.Into(x, y, ask);
  ASSERT_GT(bytes, 0);
  Tensor memory = Tensor::Empty({bytes}, DataType::kUInt8, Device::Cuda(0));
  const Counts before = Count();
  CallOptions options;
  options.workspace = memory.data();
  options.workspace_bytes = bytes;
  net.Into(x, y, options);
  EXPECT_EQ(Count().bytes, before.bytes);
  EXPECT_TRUE(AreClose(Read(y), net.OnCpu(a, 16)));
  options.workspace_bytes = bytes - 64;
  const std::string error = ErrorOf([&] { net.Into(x, y, options); });
  EXPECT_TRUE(Has(error, "MemoryError: the call works in " + std::to_string(bytes) + " bytes"))
      << error;
}

int UseABrokenDevice(Network* net) {
  const Values a = Inputs(1, 6);
  Tensor x = OnDevice(a), y = OnDevice(a);
  Tensor p = OnDevice(a, 1, Device::Cuda(1)), q = OnDevice(a, 1, Device::Cuda(1));
  net->Into(x, y);
  Read(y);
  BreakKernels("broken_k1", kIllegalAddress);
  const std::string first = ErrorOf([&] {
    net->Into(x, y);
    Read(y);
  });
  const std::string later = ErrorOf([&] { net->Into(x, y); });
  BreakKernels("", 0);
  net->Into(p, q);
  const bool right = AreClose(Read(q), net->OnCpu(a));
  net->Unload();
  fprintf(stderr, "%s\n%s\n", first.c_str(), later.c_str());
  const bool told = Has(first, "CUDA_ERROR_ILLEGAL_ADDRESS") &&
                    Has(later, "cuda:0 cannot be used any more in this process, since cu") &&
                    Has(later, "CUDA_ERROR_ILLEGAL_ADDRESS");
  return right && told ? 0 : 1;
}

// TENON_DEVICE_SYNC is read once.
int SyncEach(const Network& net) {
  setenv("TENON_DEVICE_SYNC", "1", 1);
  BreakKernels("synced_k3", kIllegalAddress);
  const Values a = Inputs(1, 7);
  Tensor x = OnDevice(a), y = OnDevice(a);
  const std::string error = ErrorOf([&] { net.Into(x, y); });
  fprintf(stderr, "%s\n", error.c_str());
  return Has(error, "kernel 'synced_k3") && Has(error, "CUDA_ERROR_ILLEGAL_ADDRESS") ? 0 : 1;
}

// In processes of their own, started anew: what they do to devices stays.
TEST(DeviceErrorsDeathTest, ABrokenDeviceNamesTheFirstErrorAndOthersGoOn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Network net("broken");
  EXPECT_EXIT(exit(UseABrokenDevice(&net)), testing::ExitedWithCode(0), "");
}

TEST(DeviceErrorsDeathTest, SyncFindsTheKernel) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Network net("synced");
  EXPECT_EXIT(exit(SyncEach(net)), testing::ExitedWithCode(0), "");
}

TEST(DeviceErrors, AForkedChildIsToldSo) {
  Network net("forked");
  const Values a = Inputs(1, 8);
  Tensor x = OnDevice(a), y = OnDevice(a);
  net.Into(x, y);
  const pid_t child = fork();
  if (child == 0) {
    const std::string error = ErrorOf([&] { net.Into(x, y); });
    _exit(Has(error, "CUDA cannot be used in a forked child") ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(AreClose(Read(y), net.OnCpu(a)));
}

TEST(DeviceErrors, NoCodeForTheDeviceSaysWhatThereIs) {
  Network net("elsewhere", "1", "cuda -arch=sm_100");
  Tensor x = OnDevice(Inputs(1, 9)), y = OnDevice(Inputs(1, 9));
  const std::string error = ErrorOf([&] { net.Into(x, y); });
  EXPECT_TRUE(Has(error, "cannot load the code of kernel")) << error;
  EXPECT_TRUE(Has(error, "sm_100")) << error;
}

}  // namespace
}  // namespace tenon::device::test
