// The compiler's side of these tests, which has types by the names of the public headers' inside.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::device::test {

/// A call of what waits looks at the largest of x, in the middle: above 1 it does other products
/// behind than below. Of what is wide each layer has another size, so that its kernels are many. To
/// the sums of what is residual x is added.
enum class Kind { kPlain, kWaits, kWide, kResidual };

/// Compiles a network of `layers` products with weights and a softmax, x: [batch, 8] → y: [batch,
/// 8], as function `name`; `batch` is a number or the name of an open size. Empty, or what went
/// wrong. `cache`: that of kernels' code (driver::CompileOptions). On CUDA the fake driver runs its
/// kernels from now on, by the interpreter.
std::string CompileLayers(const std::string& name, const std::string& batch,
                          const std::string& target, const std::string& path, int layers,
                          Kind kind = Kind::kPlain, const std::string& cache = "");

/// The next launch, and all that follow, of a kernel whose name begins so ends with this code of
/// the device; "": none does.
void BreakKernels(const std::string& prefix, int code);

/// What NVRTC says of a kernel that is right.
std::string LogOfCompiling(const std::string& arch);

}  // namespace tenon::device::test
