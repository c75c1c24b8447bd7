// Kernels as text → OpenCL C → the first OpenCL device, against the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codegen/opencl/emit.h"
#include "interp/arguments.h"
#include "interp/interp.h"
#include "loop/parse.h"
#include "support/has.h"
#include "support/opencl_code.h"

namespace tenon::test {

inline Module Parsed(const std::string& text) {
  auto module = ParseModule(text, "kernel");
  EXPECT_TRUE(module) << (module ? "" : ToString(module.errors()));
  return module ? *module : Module{};
}

inline std::string SourceOf(const std::string& text) {
  auto source = codegen::EmitOpenCl(Parsed(text), OpenClTarget(), {});
  EXPECT_TRUE(source) << (source ? "" : ToString(source.errors()));
  return source ? *source : "";
}

inline std::string ErrorOf(const std::string& text) {
  auto source = codegen::EmitOpenCl(Parsed(text), OpenClTarget(), {});
  return source ? "" : ToString(source.errors());
}

/// Skips the test on machines without OpenCL.
#define NEEDS_OPENCL() \
  if (const std::string why = test::WithoutOpenCl(); !why.empty()) GTEST_SKIP() << why

/// Elements agree: equal bytes, or both NaN, or both zero where the sign of zeros is open.
inline bool SameElement(const InterpArg& want, const InterpArg& got, int64_t i, bool any_zero) {
  const auto size = static_cast<size_t>(want.dtype.Bytes());
  const auto at = static_cast<size_t>(i) * size;
  if (std::memcmp(&want.bytes[at], &got.bytes[at], size) == 0) return true;
  if (!want.dtype.IsFloat()) return false;
  const double a = want.Get(i), b = got.Get(i);
  return (a != a && b != b) || (any_zero && a == 0 && b == 0);
}

/// Runs the kernel in the interpreter and on the device, from the same arguments, and compares the
/// outputs.
inline void ExpectSame(const Module& module, OpenClCode* code, const std::string& name,
                       std::vector<InterpArg> args, const DimValues& dims, bool any_zero = false) {
  const Func func = module.Find(name);
  std::vector<InterpArg> got = args;
  std::vector<OpenClCode::Bytes> bytes;
  for (InterpArg& arg : got) {
    arg.bytes.resize(static_cast<size_t>(arg.num_elements() * arg.dtype.Bytes()), 0xA5);
    bytes.push_back({arg.bytes.data(), arg.bytes.size()});
  }
  std::vector<int64_t> ints;
  for (const Var& dim : func->dims) ints.push_back(dims.at(dim->name));
  code->Call(name, bytes, ints);
  InterpOptions options;
  options.dims = dims;
  const Status status = Interpret(module, name, args, options);
  ASSERT_TRUE(status) << name << ": " << ToString(status.errors());
  const size_t inputs = func->buffers.size() - static_cast<size_t>(func->num_outputs);
  for (size_t k = inputs; k < args.size(); ++k) {
    for (int64_t i = 0; i < args[k].num_elements(); ++i) {
      if (SameElement(args[k], got[k], i, any_zero)) continue;
      ADD_FAILURE() << name << ": element " << i << " of " << func->buffers[k]->name << " is "
                    << got[k].Get(i) << ", interpreted " << args[k].Get(i);
      break;
    }
  }
}

/// The same with small integers for arguments.
inline void ExpectSame(const Module& module, OpenClCode* code, const std::string& name,
                       const DimValues& dims) {
  auto args = SmallIntegerArgs(*module.Find(name), dims, 1);
  ASSERT_TRUE(args) << ToString(args.errors());
  ExpectSame(module, code, name, *args, dims);
}

}  // namespace tenon::test
