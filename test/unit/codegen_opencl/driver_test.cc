// The runtime's OpenCL driver on a device, where there is one.
#include <cstring>
#include <thread>

#include "opencl.h"

namespace tenon {
namespace {

using runtime::opencl_driver;

constexpr char kScale[] =
    "__kernel void scale(__global float* x, float by, char more) {\n"
    "  x[get_global_id(0)] = x[get_global_id(0)] * by + more;\n}\n";

std::string LastError(const char* expected_kind) {
  const char* kind = "";
  std::string message = tn_last_error(&kind);
  EXPECT_STREQ(kind, expected_kind);
  return message;
}

/// Memory of device 0 for the life of the object.
class OnDevice {
 public:
  explicit OnDevice(const std::vector<float>& values) : bytes_(4 * values.size()) {
    const auto size = static_cast<int64_t>(bytes_);
    EXPECT_EQ(opencl_driver.allocate(0, size, &memory), 0);
    EXPECT_EQ(opencl_driver.copy_from_host(0, memory, values.data(), size), 0);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { opencl_driver.free(0, memory); }
  std::vector<float> Read() const {
    std::vector<float> out(bytes_ / 4);
    EXPECT_EQ(opencl_driver.copy_to_host(0, out.data(), memory, static_cast<int64_t>(bytes_)), 0);
    return out;
  }

  void* memory = nullptr;

 private:
  size_t bytes_;
};

/// kScale, built.
class Scale {
 public:
  Scale() {
    EXPECT_EQ(opencl_driver.module_load(0, kScale, sizeof kScale - 1, &module), 0)
        << tn_last_error(nullptr);
    EXPECT_EQ(opencl_driver.find_function(0, module, "scale", 0, &function_), 0);
  }
  Scale(const Scale&) = delete;
  Scale& operator=(const Scale&) = delete;
  ~Scale() { opencl_driver.module_free(0, module); }
  int32_t Run(void* memory, uint32_t blocks, float by, void* stream = nullptr) {
    int8_t more = 1;
    void* args[] = {static_cast<void*>(&memory), &by, &more};
    const uint8_t params[] = {0, 4, 1};
    const runtime::DeviceLaunch launch{.name = "scale",
                                       .function = function_,
                                       .grid = {blocks, 1, 1},
                                       .block = {2, 1, 1},
                                       .shared_bytes = 0,
                                       .stream = stream,
                                       .args = args,
                                       .params = params,
                                       .num_params = 3};
    return opencl_driver.launch(0, launch);
  }

  void* module = nullptr;

 private:
  void* function_ = nullptr;
};

TEST(OpenClDriver, QueuesWorkInOrder) {
  NEEDS_OPENCL();
  Scale scale;
  OnDevice x({1, 2, 3, 4});
  void *stream = nullptr, *other = nullptr, *event = nullptr, *later = nullptr;
  ASSERT_EQ(opencl_driver.stream_make(0, &stream), 0);
  ASSERT_EQ(opencl_driver.stream_make(0, &other), 0);
  ASSERT_EQ(opencl_driver.event_make(0, &event), 0);
  ASSERT_EQ(opencl_driver.event_make(0, &later), 0);
  EXPECT_EQ(opencl_driver.event_wait(0, event), 0);  // not recorded: nothing to wait for
  EXPECT_EQ(scale.Run(x.memory, 2, 2, stream), 0) << tn_last_error(nullptr);
  EXPECT_EQ(scale.Run(x.memory, 2, 10, stream), 0);
  EXPECT_EQ(opencl_driver.event_record(0, event, stream), 0);
  EXPECT_EQ(opencl_driver.stream_wait_event(0, other, event), 0);
  EXPECT_EQ(scale.Run(x.memory, 1, 0, other), 0);
  EXPECT_EQ(opencl_driver.event_record(0, later, other), 0);
  EXPECT_EQ(opencl_driver.stream_wait(0, other), 0);
  EXPECT_EQ(x.Read(), (std::vector<float>{1, 1, 71, 91}));
  float milliseconds = -1;
  EXPECT_EQ(opencl_driver.event_elapsed(0, event, later, &milliseconds), 0)
      << tn_last_error(nullptr);
  EXPECT_GE(milliseconds, 0);
  std::vector<float> out(4);
  EXPECT_EQ(opencl_driver.copy_to_host_async(0, out.data(), x.memory, 16, stream), 0);
  EXPECT_EQ(opencl_driver.stream_wait(0, stream), 0);
  EXPECT_EQ(out, x.Read());
  for (void* e : {event, later}) EXPECT_EQ(opencl_driver.event_free(0, e), 0);
  for (void* s : {stream, other}) EXPECT_EQ(opencl_driver.stream_free(0, s), 0);
}

TEST(OpenClDriver, ThreadsShareKernels) {
  NEEDS_OPENCL();
  Scale scale;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      OnDevice x({1, 2, 3, 4});
      for (int i = 0; i < 10; ++i) EXPECT_EQ(scale.Run(x.memory, 2, static_cast<float>(t)), 0);
      const std::vector<float> out = x.Read();
      if (t == 0) EXPECT_EQ(out, (std::vector<float>{1, 1, 1, 1}));
      if (t == 1) EXPECT_EQ(out, (std::vector<float>{11, 12, 13, 14}));
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST(OpenClDriver, SaysWhatIsWrong) {
  NEEDS_OPENCL();
  void* out = nullptr;
  EXPECT_EQ(opencl_driver.allocate(0, int64_t{1} << 60, &out), -1);
  EXPECT_EQ(LastError("MemoryError"),
            "out of memory on opencl:0: 1152921504606846976 bytes were asked for");
  const std::string broken = "__kernel void f(__global int* x) { *x = nowhere; }\n";
  EXPECT_EQ(opencl_driver.module_load(0, broken.data(), static_cast<int64_t>(broken.size()), &out),
            -1);
  const std::string log = LastError("RuntimeError");
  EXPECT_TRUE(test::Has(log, "clBuildProgram on opencl:0 failed: CL_BUILD_PROGRAM_FAILURE")) << log;
  EXPECT_TRUE(test::Has(log, "nowhere")) << log;
  Scale scale;
  EXPECT_EQ(opencl_driver.find_function(0, scale.module, "other", 0, &out), -1);
  EXPECT_TRUE(test::Has(LastError("RuntimeError"),
                        "clCreateKernel of 'other' on opencl:0 failed: CL_INVALID_KERNEL_NAME"));
  EXPECT_EQ(opencl_driver.allocate(opencl_driver.count(), 8, &out), -1);
  EXPECT_EQ(LastError("RuntimeError"), "there is no such OpenCL device");
}

}  // namespace
}  // namespace tenon
