// What devices have in common, on the null device, and the CUDA driver over a fake libcuda that
// notes what it is asked.
#include <dlfcn.h>

#include <thread>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/device/null/null.h"
#include "tenon/kernel_abi.h"
#include "tenon/tenon.hpp"
#include "testing.h"

namespace tenon::runtime {
namespace {

// Before anything asks for a CUDA device: the first one who asks decides for the process.
const int fake_driver = setenv("TENON_CUDA_DRIVER", FAKE_CUDA, 1);

constexpr tn_dl_device kCuda0 = {TN_DL_CUDA, 0};

template <class F>
F* FakeFunction(const char* name) {
  void* fake = dlopen(FAKE_CUDA, RTLD_NOW);
  EXPECT_NE(fake, nullptr) << dlerror();
  return reinterpret_cast<F*>(dlsym(fake, name));
}

std::string TakeLog() { return FakeFunction<const char*()>("FakeTakeLog")(); }

/// While it lives, one function of the driver fails.
struct Failing {
  Failing(const char* symbol, int code) { Set(symbol, code); }
  ~Failing() { Set("", 0); }
  static void Set(const char* symbol, int code) {
    FakeFunction<void(const char*, int)>("FakeFail")(symbol, code);
  }
};

class Cuda : public testing::Test {
 protected:
  // The devices' contexts are retained before, so that logs begin alike.
  void SetUp() override {
    for (int32_t id : {0, 1}) {
      void* memory = nullptr;
      ASSERT_EQ(cuda_driver.allocate(id, 1, &memory), 0) << LastErrorText();
      cuda_driver.free(id, memory);
    }
    TakeLog();
  }
};

TEST_F(Cuda, CountsAndNamesDevices) {
  EXPECT_EQ(tn_device_count(TN_DL_CUDA), 2);
  EXPECT_TRUE(Device::Cuda(1).exists());
  EXPECT_FALSE(Device::Cuda(2).exists());
  char text[64];
  ASSERT_EQ(tn_device_describe({TN_DL_CUDA, 1}, text, sizeof text), 0) << LastErrorText();
  EXPECT_STREQ(text, "Fake 1, 4 multiprocessors, CUDA 12.8");
  ASSERT_EQ(tn_device_describe({TN_DL_CUDA, 0}, text, 7), 0);
  EXPECT_STREQ(text, "Fake 0");
  EXPECT_NE(tn_device_describe({TN_DL_CUDA, 2}, text, sizeof text), 0);
}

// Every call happens in the device's primary context, and leaves the thread's as it was.
TEST_F(Cuda, TensorsMoveInTheirDevicesContext) {
  {
    Tensor tensor = Tensor::Empty({3}, DataType::kInt32, Device::Cuda(1));
    const int32_t values[] = {1, 2, 3};
    int32_t back[3] = {};
    tensor.CopyFromBytes(values, 12);
    tensor.CopyToBytes(back, 12);
    EXPECT_EQ(back[2], 3);
  }
  EXPECT_EQ(TakeLog(),
            "cuCtxPushCurrent_v2\ncuMemAlloc_v2@1(12)\ncuCtxPopCurrent_v2@1\n"
            "cuCtxPushCurrent_v2\ncuMemcpyHtoDAsync_v2@1(12, default)\ncuCtxPopCurrent_v2@1\n"
            "cuCtxPushCurrent_v2\ncuStreamSynchronize@1(default)\ncuCtxPopCurrent_v2@1\n"
            "cuCtxPushCurrent_v2\ncuMemcpyDtoHAsync_v2@1(12, default)\ncuCtxPopCurrent_v2@1\n"
            "cuCtxPushCurrent_v2\ncuStreamSynchronize@1(default)\ncuCtxPopCurrent_v2@1\n"
            "cuCtxPushCurrent_v2\ncuMemFree_v2@1\ncuCtxPopCurrent_v2@1\n");
}

// A caller that works in the primary context already, as CUDA's runtime does, is not disturbed.
TEST_F(Cuda, TheCallersContextIsUsedWhereItIsTheSame) {
  FakeFunction<int(void*)>("cuCtxPushCurrent_v2")(reinterpret_cast<void*>(0x1000));
  TakeLog();
  EXPECT_EQ(tn_stream_wait(kCuda0, nullptr), 0);
  EXPECT_EQ(TakeLog(), "cuStreamSynchronize@0(default)\n");
  void* ignored;
  FakeFunction<int(void**)>("cuCtxPopCurrent_v2")(&ignored);
}

TEST_F(Cuda, CopiesBetweenTensors) {
  Tensor a = Tensor::Empty({2}, DataType::kInt32, Device::Cuda(0));
  Tensor b = Tensor::Empty({2}, DataType::kInt32, Device::Cuda(0));
  Tensor c = Tensor::Empty({2}, DataType::kInt32, Device::Cuda(1));
  Tensor host = Tensor::Empty({2}, DataType::kInt32);
  host.data_as<int32_t>()[1] = 7;
  TakeLog();
  a.CopyFrom(host);
  b.CopyFrom(a);
  c.CopyFrom(b);
  host.data_as<int32_t>()[1] = 0;
  host.CopyFrom(c);
  EXPECT_EQ(host.data_as<int32_t>()[1], 7);
  const std::string log = TakeLog();
  EXPECT_NE(log.find("cuMemcpyDtoDAsync_v2@0(8, default)"), std::string::npos) << log;
  EXPECT_NE(log.find("cuMemcpyPeerAsync@1(0 to 1, 8, default)"), std::string::npos) << log;
  Tensor null = Tensor::Empty({2}, DataType::kInt32, Device::Null());
  EXPECT_EQ(tn_tensor_copy(null.handle(), a.handle()), -1);
  EXPECT_EQ(LastErrorText(),
            "ValueError: expected devices of one kind, or the CPU on one side of a copy");
  Tensor longer = Tensor::Empty({3}, DataType::kInt32);
  EXPECT_EQ(tn_tensor_copy(longer.handle(), a.handle()), -1);
}

TEST_F(Cuda, WorkGoesToTheStreamThatIsSet) {
  Tensor tensor = Tensor::Empty({1}, DataType::kInt8, Device::Cuda(0));
  {
    Stream stream(Device::Cuda(0));
    EXPECT_EQ(stream.handle(), reinterpret_cast<void*>(77));
    TakeLog();
    StreamScope scope(stream);
    tensor.CopyFromBytes("x", 1);
    const std::string log = TakeLog();
    EXPECT_NE(log.find("cuMemcpyHtoDAsync_v2@0(1, 77)"), std::string::npos) << log;
    EXPECT_NE(log.find("cuStreamSynchronize@0(77)"), std::string::npos) << log;
    void* other = &tensor;
    std::thread([&] { tn_stream_get(kCuda0, &other); }).join();
    EXPECT_EQ(other, nullptr);  // a thread's own affair
    tn_stream_get({TN_DL_CUDA, 1}, &other);
    EXPECT_EQ(other, nullptr);  // and a device's
    int own = 0;
    StreamScope inner(Device::Cuda(0), &own);
    tn_stream_get(kCuda0, &other);
    EXPECT_EQ(other, &own);
  }
  void* after = &tensor;
  EXPECT_EQ(tn_stream_get(kCuda0, &after), 0);
  EXPECT_EQ(after, nullptr);
  EXPECT_NE(TakeLog().find("cuStreamDestroy_v2@0(77)"), std::string::npos);
}

TEST_F(Cuda, LoadsAndLaunches) {
  void *module = nullptr, *function = nullptr;
  ASSERT_EQ(cuda_driver.module_load(0, "ptx", 4, &module), 0);
  ASSERT_EQ(cuda_driver.find_function(0, module, "small", 49152, &function), 0);
  EXPECT_EQ(TakeLog().find("cuFuncSetAttribute"), std::string::npos);
  ASSERT_EQ(cuda_driver.find_function(0, module, "add", 65536, &function), 0);
  EXPECT_NE(TakeLog().find("cuFuncSetAttribute@0(8, 65536)"), std::string::npos);
  int n = 42;
  void* args[] = {&n};
  DeviceLaunch launch = {"add", function, {4, 2, 1}, {128, 1, 1}, 65536, nullptr, args};
  ASSERT_EQ(cuda_driver.launch(0, launch), 0);
  EXPECT_EQ(TakeLog(),
            "cuCtxPushCurrent_v2\ncuLaunchKernel@0(67, 4, 2, 1, 128, 1, 1, 65536, default, 42)\n"
            "cuCtxPopCurrent_v2@0\n");
  Failing failing("cuLaunchKernel", 1);
  EXPECT_EQ(cuda_driver.launch(0, launch), -1);
  EXPECT_EQ(LastErrorText(),
            "RuntimeError: cuLaunchKernel of 'add' on cuda:0 failed: CUDA_ERROR_FAKE (as asked)");
}

// What a launch asks for besides its extents goes to the driver in its own words.
TEST_F(Cuda, LaunchesHaveAttributes) {
  int n = 42;
  void* args[] = {&n};
  void* const function = &n;
  DeviceLaunch launch = {"add", function, {4, 2, 1}, {128, 1, 1}, 16, nullptr, args};
  auto text = [&] {
    EXPECT_EQ(cuda_driver.launch(0, launch), 0);
    const std::string log = TakeLog();
    const size_t at = log.find('(');
    return log.substr(at, log.find(')', at) - at);
  };
  const std::string plain = ", 4, 2, 1, 128, 1, 1, 16, default, 42";
  const std::string all = "(" + std::to_string(reinterpret_cast<uintptr_t>(function)) + plain;
  EXPECT_EQ(text(), all);
  launch.attributes = TN_LAUNCH_COOPERATIVE;
  EXPECT_EQ(text(), all + ", 2: 1");
  launch.attributes = TN_LAUNCH_DEPENDENT;
  EXPECT_EQ(text(), all + ", 6: 1");
  launch.attributes = 0;
  launch.cluster[1] = 2;
  EXPECT_EQ(text(), all + ", 4: 1 2 1");
  launch.attributes = TN_LAUNCH_COOPERATIVE | TN_LAUNCH_DEPENDENT;
  EXPECT_EQ(text(), all + ", 2: 1, 6: 1, 4: 1 2 1");
  Failing failing("cuLaunchKernelEx", 1);
  EXPECT_EQ(cuda_driver.launch(0, launch), -1);
  EXPECT_EQ(LastErrorText(),
            "RuntimeError: cuLaunchKernelEx of 'add' on cuda:0 failed: CUDA_ERROR_FAKE (as asked)");
}

TEST_F(Cuda, ACooperativeLaunchThatDoesNotFitSaysWhatWould) {
  int n = 42;
  void* args[] = {&n};
  DeviceLaunch launch = {"sum", nullptr, {33, 1, 1}, {256, 1, 1}, 0, nullptr, args};
  launch.attributes = TN_LAUNCH_COOPERATIVE;
  EXPECT_EQ(cuda_driver.launch(1, launch), -1);
  EXPECT_EQ(LastErrorText(),
            "ValueError: kernel 'sum' on cuda:1: a cooperative launch of 33 blocks, but at most 32 "
            "fit at once: 8 on each of 4 multiprocessors");
  launch.grid[0] = 32;
  EXPECT_EQ(cuda_driver.launch(1, launch), 0);
}

// A matrix that the copy engine reads is passed as its description; the caller's arguments stay.
TEST_F(Cuda, LaunchesDescribeMatrices) {
  struct {
    alignas(8) uint8_t params[8] = {TN_PARAM_TENSOR_MAP, 8};
    tn_device_map map = {0, 128, 1, -1, 64, 64, TN_DL_BFLOAT, 16};
  } const table;
  void* memory = nullptr;
  int64_t rows = 256;
  void* args[] = {static_cast<void*>(&memory), &rows};
  DeviceLaunch launch = {"f", nullptr, {1, 1, 1}, {128, 1, 1}, 0, nullptr, args, table.params, 2};
  ASSERT_EQ(cuda_driver.launch(0, launch), 0);
  const std::string log = TakeLog();
  EXPECT_NE(log.find(", 128, 256, 256, 64, 64, 3)\n"), std::string::npos) << log;
  EXPECT_NE(log.find("cuTensorMapEncodeTiled"), std::string::npos) << log;
  EXPECT_NE(log.find(", 77)\n"), std::string::npos) << log;
  EXPECT_EQ(args[0], static_cast<void*>(&memory));
  Failing failing("cuTensorMapEncodeTiled", 1);
  EXPECT_EQ(cuda_driver.launch(0, launch), -1);
  EXPECT_EQ(LastErrorText(),
            "RuntimeError: cuTensorMapEncodeTiled of 'f' on cuda:0 failed: "
            "CUDA_ERROR_FAKE (as asked)");
}

// Of two forms the one for any addresses may take a matrix as it is, or as a description too.
TEST_F(Cuda, LaunchesOfAFormDescribeWhatItTakes) {
  struct {
    alignas(8) uint8_t params[8];
    tn_device_map map = {64, 128, -1, -1, 64, 64, TN_DL_FLOAT, 16};
  } table = {};
  int forms[2];
  void* memory = nullptr;
  void* args[] = {static_cast<void*>(&memory)};
  for (const uint8_t param : {TN_PARAM_ALIGNED_MAP, TN_PARAM_TENSOR_MAP}) {
    table.params[0] = param;
    DeviceLaunch launch = {"f", nullptr, {1, 1, 1}, {128, 1, 1}, 0, nullptr, args, table.params, 1};
    for (int i = 0; i < 2; ++i) launch.forms[i] = &forms[i];
    for (int i = 0; i < 2; ++i) {
      launch.function = launch.forms[i];
      ASSERT_EQ(cuda_driver.launch(0, launch), 0);
      const bool described = TakeLog().find("cuTensorMapEncodeTiled") != std::string::npos;
      EXPECT_EQ(described, i == 1 || param == TN_PARAM_TENSOR_MAP);
    }
  }
}

TEST_F(Cuda, OutOfMemoryIsAnErrorOfTheCall) {
  EXPECT_THROW(
      {
        try {
          Tensor::Empty({int64_t{1} << 41}, DataType::kInt8, Device::Cuda(1));
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), "MemoryError");
          EXPECT_STREQ(error.what(), "out of memory on cuda:1: 2199023255552 bytes were asked for");
          throw;
        }
      },
      Error);
  Tensor::Empty({1}, DataType::kInt8, Device::Cuda(1));  // and nothing is broken
}

// Every function that can fail says which it was, and on which device; contexts are put back.
TEST_F(Cuda, EveryErrorIsReported) {
  void* out = nullptr;
  float time = 0;
  char host[4] = {};
  const DeviceDriver& d = cuda_driver;
  const std::pair<const char*, int32_t> calls[] = {
      {"cuMemAlloc_v2", (Failing::Set("cuMemAlloc_v2", 1), d.allocate(1, 1, &out))},
      {"cuMemcpyHtoDAsync_v2",
       (Failing::Set("cuMemcpyHtoDAsync_v2", 1), d.copy_from_host(1, host, host, 4))},
      {"cuMemcpyDtoHAsync_v2",
       (Failing::Set("cuMemcpyDtoHAsync_v2", 1), d.copy_to_host(1, host, host, 4))},
      {"cuStreamSynchronize",
       (Failing::Set("cuStreamSynchronize", 1), d.copy_to_host(1, host, host, 4))},
      {"cuMemcpyDtoDAsync_v2",
       (Failing::Set("cuMemcpyDtoDAsync_v2", 1), d.copy_between(1, host, 1, host, 4, nullptr))},
      {"cuMemcpyPeerAsync",
       (Failing::Set("cuMemcpyPeerAsync", 1), d.copy_between(1, host, 0, host, 4, nullptr))},
      {"cuStreamCreate", (Failing::Set("cuStreamCreate", 1), d.stream_make(1, &out))},
      {"cuStreamDestroy_v2", (Failing::Set("cuStreamDestroy_v2", 1), d.stream_free(1, host))},
      {"cuStreamWaitEvent",
       (Failing::Set("cuStreamWaitEvent", 1), d.stream_wait_event(1, host, host))},
      {"cuEventCreate", (Failing::Set("cuEventCreate", 1), d.event_make(1, &out))},
      {"cuEventDestroy_v2", (Failing::Set("cuEventDestroy_v2", 1), d.event_free(1, host))},
      {"cuEventRecord", (Failing::Set("cuEventRecord", 1), d.event_record(1, host, nullptr))},
      {"cuEventSynchronize", (Failing::Set("cuEventSynchronize", 1), d.event_wait(1, host))},
      {"cuEventElapsedTime",
       (Failing::Set("cuEventElapsedTime", 1), d.event_elapsed(1, host, host, &time))},
      {"cuModuleUnload", (Failing::Set("cuModuleUnload", 1), d.module_free(1, host))},
      {"cuModuleGetFunction",
       (Failing::Set("cuModuleGetFunction", 1), d.find_function(1, host, "f", 0, &out))},
      {"cuFuncSetAttribute",
       (Failing::Set("cuFuncSetAttribute", 1), d.find_function(1, host, "f", 50000, &out))},
      {"cuCtxPushCurrent_v2", (Failing::Set("cuCtxPushCurrent_v2", 1), d.event_make(1, &out))},
      {"cuModuleLoadDataEx",
       (Failing::Set("cuModuleLoadDataEx", 218), d.module_load(1, "x", 2, &out))},
  };
  Failing::Set("", 0);
  for (const auto& [symbol, result] : calls) EXPECT_EQ(result, -1) << symbol;
  EXPECT_EQ(
      LastErrorText(),
      "RuntimeError: cuModuleLoadData on cuda:1 failed: CUDA_ERROR_FAKE (as asked): line 3 is "
      "no PTX");
  const std::string log = TakeLog();
  size_t pushes = 0, pops = 0;
  for (size_t at = 0; (at = log.find("cuCtxPushCurrent", at)) != std::string::npos; ++at) ++pushes;
  for (size_t at = 0; (at = log.find("cuCtxPopCurrent", at)) != std::string::npos; ++at) ++pops;
  EXPECT_EQ(pushes, pops + 1);  // one failed
  // The copy whose wait failed is queued still, and ends in this frame.
  EXPECT_EQ(d.stream_wait(1, nullptr), 0);
}

TEST_F(Cuda, EventsTimeAndOrderStreams) {
  void *event = nullptr, *stream = reinterpret_cast<void*>(5);
  float milliseconds = 0;
  ASSERT_EQ(cuda_driver.event_make(0, &event), 0);
  ASSERT_EQ(cuda_driver.event_record(0, event, nullptr), 0);
  ASSERT_EQ(cuda_driver.stream_wait_event(0, stream, event), 0);
  ASSERT_EQ(cuda_driver.event_wait(0, event), 0);
  ASSERT_EQ(cuda_driver.event_elapsed(0, event, event, &milliseconds), 0);
  EXPECT_EQ(milliseconds, 1.5f);
  const std::string log = TakeLog();
  const size_t record = log.find("cuEventRecord@0(99, default)");
  EXPECT_LT(record, log.find("cuStreamWaitEvent@0(5, 99)")) << log;
}

// ---- in processes of their own ----

void RunAlone(const char* variable, const char* value, const std::string& expected) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv(variable, value, 1);
        tn_tensor_t* tensor = nullptr;
        const int64_t shape[] = {1};
        const bool failed = tn_device_count(TN_DL_CUDA) == 0 &&
                            tn_tensor_make(DataType::kInt8, 1, shape, kCuda0, &tensor) == -1;
        fputs(LastErrorText().c_str(), stderr);
        exit(failed ? 0 : 1);
      },
      testing::ExitedWithCode(0), expected);
}

TEST(CudaDeathTest, WithoutADriverTheMessageSaysWhatIsMissing) {
  RunAlone("TENON_CUDA_DRIVER", "/nowhere/libcuda.so.1",
           "RuntimeError: there is no device cuda:0: this runtime sees 0 of that kind: NVIDIA's "
           "driver is not installed: /nowhere/libcuda.so.1 was not found");
}

TEST(CudaDeathTest, AnotherLibraryIsNotADriver) {
  RunAlone("TENON_CUDA_DRIVER", "libm.so.6", "the CUDA driver has no cuInit: it is too old");
}

TEST(CudaDeathTest, ADriverThatDoesNotStartSaysSo) {
  RunAlone("FAKE_CUDA_FAIL", "cuInit=100",
           "the CUDA driver cannot be used: cuInit failed: CUDA_ERROR_FAKE .as asked.");
}

// The first use from many threads at once retains each context once.
TEST(CudaDeathTest, ContextsAreRetainedOnceAtFirstUse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const bool lazy = TakeLog().empty();
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; ++i) {
          threads.emplace_back([] { Tensor::Empty({1}, DataType::kInt8, Device::Cuda(1)); });
        }
        for (std::thread& t : threads) t.join();
        const std::string log = TakeLog();
        const size_t first = log.find("cuDevicePrimaryCtxRetain(1)");
        const bool once = first != std::string::npos &&
                          log.find("cuDevicePrimaryCtxRetain", first + 1) == std::string::npos &&
                          log.find("cuInit") == log.rfind("cuInit");
        exit(lazy && once ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// ---- the null device ----

TEST(NullDevice, RecordsLaunches) {
  void *module = nullptr, *function = nullptr, *stream = nullptr, *args[1];
  ASSERT_EQ(null_driver.module_load(0, "add mul", 7, &module), 0);
  ASSERT_EQ(null_driver.find_function(0, module, "mul", 0, &function), 0);
  ASSERT_EQ(null_driver.stream_make(0, &stream), 0);
  void* data = static_cast<void*>(args);
  args[0] = static_cast<void*>(&data);
  const int64_t number = NullLaunchCount();
  ASSERT_EQ(null_driver.launch(0, {"mul", function, {3, 2, 1}, {64, 1, 1}, 16, stream, args}), 0);
  EXPECT_EQ(NullLaunchCount(), number + 1);
  const NullLaunch* launch = NullLaunchAt(number);
  ASSERT_NE(launch, nullptr);
  EXPECT_STREQ(launch->name, "mul");
  EXPECT_EQ(launch->grid[1], 2u);
  EXPECT_EQ(launch->block[0], 64u);
  EXPECT_EQ(launch->shared_bytes, 16u);
  EXPECT_EQ(launch->stream, stream);
  EXPECT_EQ(launch->first_arg, data);
  EXPECT_EQ(NullLaunchAt(number + 1), nullptr);
  EXPECT_EQ(null_driver.find_function(0, module, "sub", 0, &function), -1);
  EXPECT_EQ(LastErrorText(), "RuntimeError: no kernel 'sub' in the module");
  null_driver.module_free(0, module);
}

TEST(NullDevice, HasStreamsAndTheCpuHasNone) {
  Stream stream(Device::Null());
  stream.Wait();
  Tensor a = Tensor::Empty({2}, DataType::kInt8, Device::Null());
  Tensor::Empty({2}, DataType::kInt8, Device::Null()).CopyFrom(a);
  EXPECT_EQ(tn_stream_set({TN_DL_CPU, 0}, &stream, nullptr), -1);
  EXPECT_EQ(LastErrorText(), "ValueError: cpu has no streams");
}

}  // namespace
}  // namespace tenon::runtime
