// Networks compiled for CUDA, on the fake driver: their kernels are run by the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels.h"
#include "tenon/tenon.hpp"

namespace tenon::device::test {

using Values = std::vector<float>;

/// A function of the fake driver (test/support/fake_cuda/driver.cc), or of CUDA's that it has.
void* FakeSymbol(const char* name);
template <class F>
F* Fake(const char* name) {
  return reinterpret_cast<F*>(FakeSymbol(name));
}

/// Calls of the driver since the last time, one a line, and how many of them begin so.
std::string TakeLog();
int CountOf(const std::string& log, const std::string& call);
int CallsOf(const std::string& call);  // of the log that it takes

struct Counts {
  uint64_t allocations, bytes, graphs, events, streams;
  bool operator==(const Counts&) const = default;
};
/// What lives in the driver.
Counts Count();

/// CompileLayers (kernels.h) for the CPU and for CUDA. Every one has a name of its own, of which
/// its kernels' names are made.
class Network {
 public:
  explicit Network(const std::string& name, const std::string& batch = "1",
                   const std::string& target = "cuda -arch=sm_90", int layers = 4,
                   Kind kind = Kind::kPlain);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network();

  /// What the CPU says.
  Values OnCpu(const Values& x, int64_t batch = 1) const;
  /// On device 0 or wherever x is.
  Tensor operator()(const Tensor& x) const { return Tensor(run_(x)); }
  void Into(const Tensor& x, const Tensor& y, const CallOptions& options = {}) const {
    run_(options, x, y);
  }
  Module& module() { return module_; }
  void Unload();

 private:
  std::string folder_;
  Module cpu_module_, module_;
  Function cpu_, run_;
};

/// Random numbers for an input.
Values Inputs(int64_t batch, uint32_t seed);
Tensor OnDevice(const Values& values, int64_t batch = 1, Device device = Device::Cuda(0));
Values Read(const Tensor& tensor);
/// Whether they are equal up to roundings.
testing::AssertionResult AreClose(const Values& a, const Values& b);

}  // namespace tenon::device::test
