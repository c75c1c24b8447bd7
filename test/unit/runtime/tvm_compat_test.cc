// Code as it is written for TVM's C++ runtime, over this runtime: only the include path differs.
#include <dlpack/dlpack.h>
#include <gtest/gtest.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>

#include <numeric>
#include <string>
#include <vector>

#include "testing.h"

namespace {

using tenon::runtime::ModulePath;
using tvm::NDArray;
using tvm::runtime::Module;
using tvm::runtime::PackedFunc;

constexpr DLDevice kCpu = {kDLCPU, 0};
constexpr DLDataType kFloat = {kDLFloat, 32, 1};

NDArray Numbers(int64_t n) {
  NDArray array = NDArray::Empty({n}, kFloat, kCpu);
  std::iota(static_cast<float*>(array->data), static_cast<float*>(array->data) + n, 0.0f);
  return array;
}

TEST(TvmCompat, ArraysOfTheCInterface) {
  PackedFunc f = Module::LoadFromFile(ModulePath("add")).GetFunction("main");
  ASSERT_TRUE(f != nullptr);
  DLTensor *x = nullptr, *y = nullptr;
  const int64_t shape[] = {5};
  ASSERT_EQ(TVMArrayAlloc(shape, 1, kDLFloat, 32, 1, kDLCPU, 0, &x), 0);
  ASSERT_EQ(TVMArrayAlloc(shape, 1, kDLFloat, 32, 1, kDLCPU, 0, &y), 0);
  for (int i = 0; i < 5; ++i) static_cast<float*>(x->data)[i] = static_cast<float>(i);
  f(x, x, y);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(static_cast<float*>(y->data)[i], 2.0f * i);

  float values[5] = {9, 8, 7, 6, 5}, back[5] = {};
  EXPECT_EQ(TVMArrayCopyFromBytes(x, values, sizeof values), 0);
  EXPECT_EQ(TVMArrayCopyFromTo(x, y, nullptr), 0);
  EXPECT_EQ(TVMArrayCopyToBytes(y, back, sizeof back), 0);
  EXPECT_EQ(back[4], 5);
  EXPECT_EQ(TVMArrayCopyToBytes(y, back, 3), -1);
  EXPECT_NE(std::string(TVMGetLastError()), "");
  EXPECT_EQ(TVMSynchronize(kDLCPU, 0, nullptr), 0);

  DLTensor* same = nullptr;
  ASSERT_EQ(TVMArrayFromDLTensor(x, &same), 0);
  EXPECT_EQ(same->data, x->data);
  TVMArrayFree(same);
  TVMArrayFree(x);
  TVMArrayFree(y);
}

TEST(TvmCompat, ArraysAreHandles) {
  Module module = Module::LoadFromFile(ModulePath("add"), "so");
  PackedFunc f = module->GetFunction("main", true);
  NDArray x = Numbers(4), y = NDArray::Empty({4}, kFloat, kCpu);
  f(x, x, y);
  EXPECT_EQ(static_cast<float*>(y->data)[3], 6);
  NDArray returned = f(x, y);
  EXPECT_EQ(static_cast<float*>(returned->data)[3], 9);
  EXPECT_EQ(returned.Shape(), (std::vector<int64_t>{4}));
  EXPECT_EQ(returned.DataType().bits, 32);

  tvm::runtime::TypedPackedFunc<NDArray(NDArray, NDArray)> typed(f);
  EXPECT_EQ(static_cast<float*>(typed(x, y)->data)[2], 6);

  NDArray copy = x.CopyTo(kCpu);
  EXPECT_NE(copy->data, x->data);
  DLTensor view = *copy.operator->();
  view.strides = nullptr;
  y.CopyFrom(&view);
  EXPECT_EQ(static_cast<float*>(y->data)[1], 1);
  EXPECT_EQ(NDArray::FromExternalDLTensor(view)->data, copy->data);
  NDArray square = x.CreateView({2, 2}, kFloat);
  EXPECT_EQ(square->data, x->data);
  EXPECT_EQ(square.Shape(), (std::vector<int64_t>{2, 2}));
  EXPECT_THROW(x.CreateView({3, 2}, kFloat), tvm::runtime::Error);
  EXPECT_TRUE(NDArray() == nullptr);
}

TEST(TvmCompat, ADlPackTensorHasOneOwner) {
  static int freed;
  freed = 0;
  float data[2] = {3, 4};
  int64_t shape[1] = {2};
  DLManagedTensor managed = {};
  managed.dl_tensor = {data, kCpu, 1, kFloat, shape, nullptr, 0};
  managed.deleter = [](DLManagedTensor*) { ++freed; };
  {
    NDArray x = NDArray::FromDLPack(&managed);
    EXPECT_EQ(x->data, data);
    DLManagedTensor* given = x.ToDLPack();
    x.reset();
    EXPECT_EQ(freed, 0);
    EXPECT_EQ(static_cast<float*>(given->dl_tensor.data)[1], 4);
    given->deleter(given);
  }
  EXPECT_EQ(freed, 1);
}

TEST(TvmCompat, WhatFails) {
  Module module = Module::LoadFromFile(ModulePath("add"));
  EXPECT_TRUE(module.GetFunction("nothing") == nullptr);
  EXPECT_THROW(module.GetFunction("nothing")(1), tvm::runtime::Error);
  EXPECT_THROW(module.GetFunction("main")(1, 2), tvm::runtime::Error);
  EXPECT_THROW(Module::LoadFromFile("nowhere.so"), tvm::runtime::Error);
  EXPECT_FALSE(Module().defined());
  EXPECT_THROW(Module().GetFunction("main"), tvm::runtime::Error);
  const int64_t shape[] = {-1};
  DLTensor* none = reinterpret_cast<DLTensor*>(&module);  // whatever was there before
  EXPECT_EQ(TVMArrayAlloc(shape, 1, kDLFloat, 32, 1, kDLCPU, 0, &none), -1);
  EXPECT_EQ(none, nullptr);
  EXPECT_THROW(NDArray().Shape(), tvm::runtime::Error);
  EXPECT_EQ(TVMArrayFree(nullptr), 0);
}

TEST(TvmCompat, GraphExecutor) {
  Module lib = Module::LoadFromFile(ModulePath("add"));
  Module run = lib.GetFunction("default")(kCpu);
  lib = Module();  // the executor has what it needs
  EXPECT_EQ(int64_t{run.GetFunction("get_num_inputs")()}, 2);
  EXPECT_EQ(int{run.GetFunction("get_num_outputs")()}, 1);
  EXPECT_EQ(int{run.GetFunction("get_input_index")("b")}, 1);
  EXPECT_EQ(int{run.GetFunction("get_input_index")("x")}, -1);
  PackedFunc set_input = run.GetFunction("set_input");
  PackedFunc get_output = run.GetFunction("get_output");
  EXPECT_THROW(get_output(0), tvm::runtime::Error);
  EXPECT_THROW(run.GetFunction("run")(), tvm::runtime::Error);
  NDArray x = Numbers(3);
  set_input("a", x);
  set_input(1, x);
  static_cast<float*>(x->data)[2] = 9;  // set_input has copied
  run.GetFunction("run")();
  NDArray y = get_output(0), z = NDArray::Empty({3}, kFloat, kCpu);
  EXPECT_EQ(static_cast<float*>(y->data)[2], 4);
  get_output("c", z);
  EXPECT_EQ(static_cast<float*>(z->data)[2], 4);
  run.GetFunction("set_input_zero_copy")("b", x);
  static_cast<float*>(x->data)[2] = 7;
  run.GetFunction("run")();
  get_output(0, z);
  EXPECT_EQ(static_cast<float*>(z->data)[2], 9);
  NDArray held = run.GetFunction("get_input")("b");
  EXPECT_EQ(held->data, x->data);
  try {
    set_input("x", x);
    FAIL();
  } catch (const tvm::runtime::Error& error) {
    EXPECT_STREQ(error.what(), "there is no input 'x'; there are 'a' 'b'");
  }
  EXPECT_TRUE(run.GetFunction("nothing") == nullptr);
}

TEST(TvmCompat, VirtualMachine) {
  Module lib = Module::LoadFromFile(ModulePath("named"));
  Module vm = lib.GetFunction("vm_load_executable")();
  vm.GetFunction("vm_initialization")(static_cast<int>(kDLCPU), 0, 2);
  NDArray y = vm.GetFunction("main")(Numbers(3), Numbers(3));
  EXPECT_EQ(static_cast<float*>(y->data)[2], 4);
}

TEST(TvmCompat, FunctionsOfCpp) {
  PackedFunc f([](tvm::runtime::TVMArgs args, tvm::runtime::TVMRetValue* result) {
    *result = static_cast<int64_t>(args[0]) + static_cast<int64_t>(std::string(args[1]).size());
  });
  EXPECT_EQ(int{f(2, "abc")}, 5);
  EXPECT_THROW(f("abc", 2), tvm::runtime::Error);
  EXPECT_THROW(f(2), tvm::runtime::Error);
}

}  // namespace
