#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "tenon/tenon.hpp"
#include "testing.h"

namespace tenon::runtime {
namespace {

namespace fs = std::filesystem;

std::string Load(const std::string& path) {
  tn_module_t* module = nullptr;
  if (tn_module_load(path.c_str(), &module) != 0) return LastErrorText();
  tn_module_free(module);
  return "loaded";
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Write(const std::string& name, const std::string& contents) {
  std::string path = (fs::path(testing::TempDir()) / name).string();
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

std::string Refusal(const std::string& path, const std::string& fault) {
  return "RuntimeError: cannot load '" + path + "': " + fault;
}

std::vector<float> Sum(const Module& module, size_t n) {
  std::vector<float> a(n), b(n), c(n);
  for (size_t i = 0; i < n; ++i) a[i] = static_cast<float>(i), b[i] = 1;
  int64_t dim = static_cast<int64_t>(n);
  module.GetFunction("main")(Tensor::Wrap(a.data(), {dim}, DataType::kFloat32),
                             Tensor::Wrap(b.data(), {dim}, DataType::kFloat32),
                             Tensor::Wrap(c.data(), {dim}, DataType::kFloat32));
  return c;
}

std::vector<float> Expected(size_t n) {
  std::vector<float> c(n);
  for (size_t i = 0; i < n; ++i) c[i] = static_cast<float>(i) + 1;
  return c;
}

TEST(Module, Calls) {
  Module module = Module::LoadFromFile(ModulePath("add"));
  for (size_t n : {0, 1, 2, 3, 4, 5, 1000, 100003}) EXPECT_EQ(Sum(module, n), Expected(n)) << n;
  Tensor a = Tensor::Empty({3}, DataType::kFloat32);
  const float values[] = {1, 2, 3};
  a.CopyFromBytes(values, sizeof values);
  Tensor c = module.GetFunction("main")(a, a);
  EXPECT_EQ(std::vector(c.data_as<float>(), c.data_as<float>() + 3), (std::vector<float>{2, 4, 6}));
  Result three = module.GetFunction("outputs")(3);
  ASSERT_EQ(three.size(), 3u);
  EXPECT_EQ(three[2].shape(), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(three[1].data_as<int64_t>()[2], 2);
  EXPECT_EQ(module.GetFunction("outputs")(0).size(), 0u);
}

TEST(Module, RawDlTensorsAreAccepted) {
  Module module = Module::LoadFromFile(ModulePath("add"));
  float data[2] = {1, 2}, out[2] = {};
  int64_t shape[] = {2}, strides[] = {1};
  tn_dl_tensor view = {data, {TN_DL_CPU, 0}, 1, {TN_DL_FLOAT, 32, 1}, shape, strides, 0};
  tn_dl_tensor target = view;
  target.data = out;
  const tn_dl_tensor* input = &view;
  module.GetFunction("main")(input, &view, &target);
  EXPECT_EQ(out[1], 4);
}

TEST(Module, ErrorsOfCalls) {
  Module module = Module::LoadFromFile(ModulePath("add"));
  try {
    module.GetFunction("main")(1, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "TypeError");
    EXPECT_STREQ(error.what(),
                 "Parameter `a` expects tensor but got type_index=1\n"
                 "when calling: `main(a: Tensor([n], float32), b: Tensor([n], float32))`");
  }
  EXPECT_THROW(module.GetFunction("fail")(0), Error);
  try {
    module.GetFunction("nothing");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the module has no function 'nothing'; it has main");
  }
}

TEST(Module, SaysWhatItIs) {
  Module module = Module::LoadFromFile(ModulePath("add"));
  std::vector<Parameter> inputs = module.Inputs();
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[1].name, "b");
  EXPECT_EQ(inputs[1].dtype, DataType::kFloat32);
  EXPECT_EQ(inputs[1].shape, std::vector<int64_t>{-1});
  EXPECT_EQ(inputs[1].dims, std::vector<std::string>{"n"});
  ASSERT_EQ(module.Outputs().size(), 1u);
  EXPECT_EQ(module.Outputs()[0].name, "c");
  EXPECT_EQ(module.GetMetadata("character"), "a\nbé😀\"\\");
  EXPECT_EQ(module.GetMetadata("empty"), "");
  EXPECT_EQ(module.GetMetadata("number"), "7");
  EXPECT_THROW(module.GetMetadata("none"), Error);
  EXPECT_EQ(module.GetInfo().substr(0, 9), "{\"abi\": 1");
  tn_parameter_t parameter;
  EXPECT_EQ(tn_module_get_input(module.handle(), 2, &parameter), -1);
  EXPECT_EQ(LastErrorText(), "IndexError: input 2 was asked for but the module has 2");
}

TEST(Module, Session) {
  Session session(ModulePath("add"));
  Tensor a = Tensor::Empty({2}, DataType::kFloat32), c = Tensor::Empty({2}, DataType::kFloat32);
  const float values[] = {1, 2};
  a.CopyFromBytes(values, sizeof values);
  EXPECT_EQ(session.Run({{"a", a}, {"b", a}}).at("c").data_as<float>()[1], 4);
  session.Run({{"a", a}, {"b", a}}, {{"c", c}});
  EXPECT_EQ(c.data_as<float>()[0], 2);
  try {
    session.Run({{"a", a}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "input 'b' was not given");
  }
  try {
    session.Run({{"a", a}, {"x", a}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "there is no input 'x'; there are 'a' 'b'");
  }
  try {
    session.Run({{"a", a}, {"b", a}, {"x", a}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "there is no input 'x'; there are 'a' 'b'");
  }
}

// Compiled with --name: the library has no main.
TEST(Module, SessionOfAnotherName) {
  EXPECT_EQ(Module::LoadFromFile(ModulePath("add")).Name(), "main");
  Module module = Module::LoadFromFile(ModulePath("named"));
  EXPECT_EQ(module.Name(), "named");
  EXPECT_THROW(module.GetFunction("main"), Error);
  Tensor a = Tensor::Empty({1}, DataType::kFloat32);
  const float value = 3;
  a.CopyFromBytes(&value, sizeof value);
  EXPECT_EQ(Session(module).Run({{"a", a}, {"b", a}}).at("c").data_as<float>()[0], 6);
}

TEST(Module, ThreadsCallAtOnce) {
  Module module = Module::LoadFromFile(ModulePath("add"));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 100; ++i) {
        size_t n = 100 * t + i;
        ASSERT_EQ(Sum(module, n), Expected(n));
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Module, TeamLimitOfACall) {
  Module module = Module::LoadFromFile(ModulePath("add"));
  EXPECT_EQ(module.GetFunction("team").Call(nullptr, 0, 1).AsInt(), 1);
  EXPECT_EQ(module.GetFunction("team")(CallOptions::Team(1)).AsInt(), 1);
  Tensor a = Tensor::Empty({1}, DataType::kFloat32);
  const float value = 3;
  a.CopyFromBytes(&value, sizeof value);
  Tensor c = module.GetFunction("main")({a, a}, CallOptions::Team(1));
  EXPECT_EQ(c.data_as<float>()[0], 6);
  Session(module).Run({{"a", a}, {"b", a}}, {{"c", c}}, CallOptions::Team(1));
  EXPECT_EQ(c.data_as<float>()[0], 6);
}

TEST(Module, Reserve) {
  Module module = Module::LoadFromFile(ModulePath("add"));
  module.Reserve(4);
  module.Reserve(2, 1 << 16);
  EXPECT_THROW(module.Reserve(1, int64_t{1} << 60), Error);
}

TEST(Module, FilesThatAreNotOurs) {
  EXPECT_EQ(Load("/nowhere/x.so"), Refusal("/nowhere/x.so", "No such file or directory"));
  EXPECT_EQ(Load("/"), Refusal("/", "it is not a regular file"));
  std::string path = Write("empty.so", "");
  EXPECT_EQ(Load(path), Refusal(path, "the file is empty"));
  path = Write("text.so", "hello, this is no library");
  EXPECT_EQ(Load(path), Refusal(path, "it is not an ELF library"));
  path = ModulePath("no_query");
  EXPECT_EQ(
      Load(path),
      Refusal(path, "it is not a library that Tenon compiled (it exports no __tenon_query_v5)"));
  path = ModulePath("next_version");
  EXPECT_EQ(Load(path),
            Refusal(path, "it was compiled for ABI version 6 but this runtime expects version 5"));
  path = ModulePath("other_abi");
  EXPECT_EQ(Load(path),
            Refusal(path, "it was compiled for ABI version 7 but this runtime expects version 5"));
  path = Write("object.so", Contents(TEST_MODULE_OBJECT));
  EXPECT_EQ(Load(path),
            Refusal(path, "expected a shared library but got another kind of ELF file"));
}

TEST(Module, TruncatedFiles) {
  std::string whole = Contents(ModulePath("add"));
  for (size_t size : {size_t{5}, size_t{40}, size_t{63}, size_t{64}, size_t{300}, size_t{5000}}) {
    std::string path = Write("cut.so", whole.substr(0, size));
    EXPECT_EQ(Load(path), Refusal(path, "the file is truncated")) << size;
  }
}

TEST(Module, AnotherArchitecture) {
  std::string image = Contents(ModulePath("add"));
  image[18] = static_cast<char>(0xf3);  // RISC-V
  std::string path = Write("riscv.so", image);
  EXPECT_EQ(Load(path), Refusal(path, "it is for riscv64, which this machine is not"));
  image[4] = 1;
  path = Write("elf32.so", image);
  EXPECT_EQ(Load(path), Refusal(path, "expected a 64-bit little-endian library"));
}

#if defined(__x86_64__)
TEST(Module, AnotherCpu) {
  std::string text = Load(ModulePath("other_cpu"));
  EXPECT_EQ(
      text.find(
          "RuntimeError: this library was compiled for another CPU: it lacks no-such-feature"),
      0u)
      << text;
  EXPECT_NE(text.find("\n  the code needs: sse2,no-such-feature,avx2\n  this CPU has: cmov,"),
            std::string::npos)
      << text;
  EXPECT_EQ(Load(ModulePath("this_cpu")), "loaded");
}
#endif

TEST(Module, AFileReplacedUnderItsPathIsTheNewOne) {
  // Two libraries of different content under one path, and through descriptors with one number.
  std::string path = Write("replaced.so", Contents(ModulePath("add")));
  Module first = Module::LoadFromFile(path);
  Write("replaced.so", Contents(ModulePath("this_cpu")));
  Module second = Module::LoadFromFile(path);
  EXPECT_NE(first.GetFunction("main").raw(), second.GetFunction("main").raw());
  Module again = Module::LoadFromFile(path);
  EXPECT_EQ(again.GetFunction("main").raw(), second.GetFunction("main").raw());
  EXPECT_EQ(Sum(first, 5), Expected(5));
}

TEST(Module, FunctionsOutliveTheHandle) {
  Function f = Module::LoadFromFile(ModulePath("add")).GetFunction("team");
  EXPECT_GE(f().AsInt(), 1);
}

TEST(Module, WhatIsEmptySaysSo) {
  const auto message = [](auto use) {
    try {
      use();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_EQ(message([] { Function()(1); }), "the function that is called is empty");
  EXPECT_EQ(message([] { Module().GetFunction("main"); }),
            "the module is empty: nothing was loaded into it");
  const std::string empty = "the tensor is empty: nothing was put into it";
  EXPECT_EQ(message([] { Tensor().shape(); }), empty);
  EXPECT_EQ(message([] { Tensor().CopyToBytes(nullptr, 0); }), empty);
  Session session(ModulePath("add"));
  Tensor a = Tensor::Empty({1}, DataType::kFloat32);
  EXPECT_EQ(message([&] { session.Run({{"a", a}, {"b", Tensor()}}); }),
            "input 'b' is an empty tensor");
  EXPECT_EQ(message([&] { session.module().GetFunction("main")(a, Tensor()); }).substr(0, 32),
            "Parameter `b` expects tensor but");
  const float value = 1;
  EXPECT_EQ(Tensor::Wrap(&value, {1}, DataType::kFloat32).data(), &value);
}

// Whether a file is.
bool IsMapped(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(path) != std::string::npos) return true;
  }
  return false;
}

TEST(Module, ALibraryGoesWithTheLastThatNeedsIt) {
  const std::string path = Write("going.so", Contents(ModulePath("add")));
  Tensor a = Tensor::Empty({3}, DataType::kFloat32), c;
  for (int round = 0; round < 3; ++round) {
    Function f = Module::LoadFromFile(path).GetFunction("main");
    c = f(a, a);
    Result several = Module::LoadFromFile(path).GetFunction("outputs")(3);
    f = Function();
    EXPECT_TRUE(IsMapped(path));
    EXPECT_EQ(several[2].shape(), (std::vector<int64_t>{3, 2}));
    several = Result();
    EXPECT_FALSE(IsMapped(path)) << round;
    EXPECT_EQ(c.shape(), std::vector<int64_t>{3});
  }
  // A handle of C that was freed, not unloaded, leaves functions valid.
  tn_module_t* module = nullptr;
  tn_packed_fn f = nullptr;
  ASSERT_EQ(tn_module_load(path.c_str(), &module), 0);
  ASSERT_EQ(tn_module_get_function(module, "team", &f), 0);
  tn_module_free(module);
  tn_ffi_any result;
  EXPECT_EQ(tn_call(f, nullptr, nullptr, 0, &result), 0);
  EXPECT_TRUE(IsMapped(path));
}

}  // namespace
}  // namespace tenon::runtime
