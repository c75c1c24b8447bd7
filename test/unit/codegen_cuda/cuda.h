// Kernels as text → CUDA C++ → PTX, for tests.
#pragma once

#include <gtest/gtest.h>

#include "codegen/codegen.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "loop/parse.h"
#include "support/has.h"

namespace tenon::test {

inline Module Parsed(const std::string& text) {
  auto module = ParseModule(text, "kernel");
  EXPECT_TRUE(module) << (module ? "" : ToString(module.errors()));
  return module ? *module : Module{};
}

inline Target CudaTarget(const std::string& arch = "sm_80") {
  return Target::Parse("cuda -arch=" + arch + " -host=llvm -mcpu=x86-64").value();
}

inline std::string SourceOf(const std::string& text, const std::string& arch = "sm_80") {
  auto source = codegen::EmitCuda(Parsed(text), CudaTarget(arch), {});
  EXPECT_TRUE(source) << (source ? "" : ToString(source.errors()));
  return source ? *source : "";
}

inline std::string ErrorOf(const std::string& text, const std::string& arch = "sm_80") {
  auto source = codegen::EmitCuda(Parsed(text), CudaTarget(arch), {});
  return source ? "" : ToString(source.errors());
}

/// What stands behind the preamble.
inline std::string BodyOf(const std::string& source) {
  return source.substr(source.find("#endif\n") + 7);
}

inline std::string PtxOf(const std::string& text, const std::string& arch = "sm_80") {
  auto ptx =
      codegen::CompileCuda(SourceOf(text, arch), "kernel.cu", arch, codegen::CudaFormat::kPtx);
  EXPECT_TRUE(ptx) << (ptx ? "" : ToString(ptx.errors()));
  return ptx ? *ptx : "";
}

/// Skips the test on machines where nothing compiles CUDA code.
#define NEEDS_NVRTC() \
  if (auto nvrtc = codegen::FindNvrtc(); !nvrtc) GTEST_SKIP() << ToString(nvrtc.errors())

}  // namespace tenon::test
