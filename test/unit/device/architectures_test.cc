// Libraries with code for several architectures, on devices of some.
#include <filesystem>

#include "kernels.h"
#include "networks.h"
#include "support/file.h"

namespace tenon::device::test {
namespace {

void SetCapability(int major, int minor) {
  Fake<void(int, int, int)>("FakeSetCapability")(0, major, minor);
}

// The code that a first call loads, after what it tries in vain, and " early" where its launches
// begin before those in front of them have ended; or the call's error.
std::string LoadedOn(int major, int minor, const std::string& name,
                     const std::string& archs = "sm_90a,sm_80") {
  Network net(name, "1", "cuda -arch=" + archs);
  SetCapability(major, minor);
  const Values a = Inputs(1, 1);
  Tensor x = OnDevice(a), y = OnDevice(a);
  TakeLog();
  std::string error;
  try {
    for (int i = 0; i < 2; ++i) net.Into(x, y);
    EXPECT_TRUE(AreClose(Read(y), net.OnCpu(a)));
  } catch (const Error& e) {
    error = e.what();
  }
  SetCapability(9, 0);
  const std::string log = TakeLog();
  if (!error.empty()) return error;
  const std::string load = "cuModuleLoadDataEx@0(";
  const size_t at = log.rfind(load) + load.size();
  const std::string early = CountOf(log, "cuGraphAddDependencies") > 0 ? " early" : "";
  EXPECT_GT(CountOf(log, "cuGraphAddKernelNode"), 1);
  return log.substr(at, log.find(')', at) - at) + early;
}

TEST(DeviceArchitectures, ChooseTheCodeThatIsTheirs) {
  EXPECT_EQ(LoadedOn(8, 0, "on80"), "fake cubin for sm_80");
  EXPECT_EQ(LoadedOn(8, 6, "on86"), "fake cubin for sm_80");
  EXPECT_EQ(LoadedOn(9, 0, "on90"), "fake cubin for sm_90a early");
  EXPECT_EQ(LoadedOn(12, 1, "on121"), "fake PTX for compute_80");
  const std::string error = LoadedOn(7, 5, "on75");
  EXPECT_NE(error.find("cannot load the code of kernel"), std::string::npos) << error;
  EXPECT_NE(error.find("CUDA_ERROR_NO_BINARY_FOR_GPU"), std::string::npos) << error;
}

// Code for sm_80 does not wait for the launch before, also where it is PTX that a later device
// compiles: there and on older cards edges of graphs say so.
TEST(DeviceArchitectures, LetLaunchesBeginEarlyWhereTheirCodeWaits) {
  EXPECT_EQ(LoadedOn(8, 0, "early80", "sm_80,sm_90"), "fake cubin for sm_80");
  EXPECT_EQ(LoadedOn(8, 9, "early89", "sm_80,sm_90"), "fake cubin for sm_80");
  EXPECT_EQ(LoadedOn(9, 0, "early90", "sm_80,sm_90"), "fake cubin for sm_90 early");
  EXPECT_EQ(LoadedOn(12, 0, "early120", "sm_80,sm_90"), "fake PTX for compute_90 early");
  EXPECT_EQ(LoadedOn(9, 0, "late90", "sm_80"), "fake PTX for compute_80");
  EXPECT_EQ(LoadedOn(12, 0, "late120", "sm_80,sm_90a"), "fake PTX for compute_80");
}

// Another form would not have more room.
TEST(DeviceArchitectures, DoNotTryOthersWhenMemoryIsOut) {
  Network net("noroom", "1", "cuda -arch=sm_90,sm_80");
  Tensor x = OnDevice(Inputs(1, 1)), y = OnDevice(Inputs(1, 1));
  TakeLog();
  Fake<void(const char*, int)>("FakeFail")("cuModuleLoadDataEx", 2);
  std::string kind;
  try {
    net.Into(x, y);
  } catch (const Error& e) {
    kind = e.kind();
  }
  Fake<void(const char*, int)>("FakeFail")("", 0);
  EXPECT_EQ(kind, "MemoryError");
  EXPECT_EQ(CallsOf("cuModuleLoadDataEx"), 1);
  net.Into(x, y);
}

// As many as the library has: of the form for sm_90 here.
TEST(DeviceArchitectures, KernelsAreSpreadOverModules) {
  Network net("parts", "1", "cuda -arch=sm_90,sm_80", 48, Kind::kWide);
  const Values a = Inputs(1, 1);
  Tensor x = OnDevice(a), y = OnDevice(a);
  TakeLog();
  net.Into(x, y);
  const int parts = CallsOf("cuModuleLoadDataEx@0(fake cubin for sm_90)");
  EXPECT_GT(parts, 1);
  EXPECT_TRUE(AreClose(Read(y), net.OnCpu(a)));
  net.Unload();
  EXPECT_EQ(CallsOf("cuModuleUnload"), parts);
}

// A form is all of its parts, or is not loaded.
TEST(DeviceArchitectures, AFormWithoutOneOfItsPartsIsLeft) {
  Network net("partly", "1", "cuda -arch=sm_90", 48, Kind::kWide);
  const Values a = Inputs(1, 1);
  Tensor x = OnDevice(a), y = OnDevice(a);
  TakeLog();
  Fake<void(int)>("FakeLoadNoMore")(1);
  net.Into(x, y);
  Fake<void(int)>("FakeLoadNoMore")(-1);
  const std::string log = TakeLog();
  EXPECT_EQ(CountOf(log, "cuModuleLoadDataEx@0(fake cubin for sm_90)"), 2);
  EXPECT_EQ(CountOf(log, "cuModuleUnload"), 1);
  EXPECT_GT(CountOf(log, "cuModuleLoadDataEx@0(fake PTX for compute_90)"), 1);
  EXPECT_TRUE(AreClose(Read(y), net.OnCpu(a)));
}

TEST(DeviceArchitectures, WhatTheCompilerSaysOfRightCodeIsKept) {
  setenv("FAKE_NVRTC_LOG", "ptxas info    : Used 32 registers", 1);
  EXPECT_EQ(LogOfCompiling("sm_90"), "ptxas info    : Used 32 registers");
  unsetenv("FAKE_NVRTC_LOG");
  EXPECT_EQ(LogOfCompiling("sm_90"), "");
}

TEST(DeviceArchitectures, AnOptionThatACompilerDoesNotHaveIsLeftOut) {
  setenv("FAKE_NVRTC_REFUSES", "-enable-dot=0", 1);
  EXPECT_EQ(LogOfCompiling("sm_90"), "");
  setenv("FAKE_NVRTC_REFUSES", "--std=c++17", 1);
  EXPECT_EQ(LogOfCompiling("sm_90"), "f.cu: error: --std=c++17 is an unsupported option\n");
  unsetenv("FAKE_NVRTC_REFUSES");
}

// The fake compiler says something else the second time, which nobody asks it then.
TEST(DeviceArchitectures, CodeIsMadeOnce) {
  std::string folder = std::filesystem::temp_directory_path() / "tenon-kernels-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto compile = [&](const char* mark, const std::string& target) {
    setenv("FAKE_NVRTC_MARK", mark, 1);
    const std::string path = folder + "/a.so";
    EXPECT_EQ(CompileLayers("once", "1", target, path, 48, Kind::kWide, folder), "");
    unsetenv("FAKE_NVRTC_MARK");
    return ReadFile(path).value();
  };
  const std::string first = compile("mark-one", "cuda -arch=sm_90");
  EXPECT_NE(first.find("mark-one"), std::string::npos);
  EXPECT_EQ(first, compile("mark-two", "cuda -arch=sm_90"));
  EXPECT_EQ(compile("mark-three", "cuda -arch=sm_80").find("mark-one"), std::string::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tenon::device::test
