// Kernels of loop IR as OpenCL code on the first device, for tests.
#pragma once

#include <fmt/format.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "arith/analyzer.h"
#include "codegen/codegen.h"
#include "codegen/gpu/launch.h"
#include "codegen/opencl/emit.h"
#include "ir/visit.h"
#include "loop/pass/math/expand_float8.h"
#include "runtime/device/device.h"
#include "support/check.h"
#include "target/target.h"
#include "tenon/c_api.h"

namespace tenon::test {

inline Target OpenClTarget() {
  return Target::Parse("opencl -max_threads_per_block=256 -host=llvm -mcpu=x86-64").value();
}

/// Why nothing runs here; "" where there is a device. Drivers are not made for sanitizers: their
/// threads and memory look wrong to them.
inline std::string WithoutOpenCl() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return "OpenCL drivers are not run under sanitizers";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return "OpenCL drivers are not run under sanitizers";
#endif
#endif
  // PoCL keeps compiled kernels: in a folder of this process, which goes with it.
  static const struct Cache {
    Cache() {
      path = (std::filesystem::temp_directory_path() / "tenon-pocl-XXXXXX").string();
      TN_CHECK(mkdtemp(path.data()));
      setenv("POCL_CACHE_DIR", path.c_str(), 1);
    }
    ~Cache() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::string path;
  } cache;
  return runtime::opencl_driver.count() > 0 ? "" : runtime::opencl_driver.missing();
}

/// The kernels of a module on device 0.
class OpenClCode {
 public:
  struct Bytes {
    void* data;
    size_t size;
  };

  /// Throws InternalError with what the emitter or the driver says.
  explicit OpenClCode(const Module& module, const Target& target = OpenClTarget())
      : module_(module), target_(target) {
    auto source = codegen::EmitOpenCl(ExpandFloat8(module, PassContext{}), target, {});
    TN_CHECK(source, "{}", ToString(source.errors()));
    const auto size = static_cast<int64_t>(source->size());
    Check(runtime::opencl_driver.module_load(0, source->data(), size, &code_));
  }
  OpenClCode(const OpenClCode&) = delete;
  OpenClCode& operator=(const OpenClCode&) = delete;
  ~OpenClCode() { runtime::opencl_driver.module_free(0, code_); }

  /// Runs a kernel on copies of the buffers, which are then as it left them; `ints` are its dims
  /// and scalars of 64 bits.
  void Call(const std::string& name, const std::vector<Bytes>& buffers, std::vector<int64_t> ints) {
    const auto& driver = runtime::opencl_driver;
    std::vector<void*> memory(buffers.size()), args;
    std::vector<uint8_t> params;
    for (size_t i = 0; i < buffers.size(); ++i) {
      const auto size = static_cast<int64_t>(buffers[i].size);
      Check(driver.allocate(0, size, &memory[i]));
      Check(driver.copy_from_host(0, memory[i], buffers[i].data, size));
      args.push_back(static_cast<void*>(&memory[i]));
      params.push_back(0);
    }
    for (int64_t& value : ints) {
      args.push_back(&value);
      params.push_back(sizeof value);
    }
    runtime::DeviceLaunch launch{};
    launch.name = name.c_str();
    launch.function = Function(name);
    launch.args = args.data();
    launch.params = params.data();
    launch.num_params = static_cast<uint32_t>(params.size());
    if (ReadExtents(name, ints, &launch)) Check(driver.launch(0, launch));
    for (size_t i = 0; i < buffers.size(); ++i) {
      const auto size = static_cast<int64_t>(buffers[i].size);
      Check(driver.copy_to_host(0, buffers[i].data, memory[i], size));
      driver.free(0, memory[i]);
    }
  }

 private:
  static void Check(int32_t status) { TN_CHECK(status == 0, "{}", tn_last_error(nullptr)); }

  void* Function(const std::string& name) {
    void*& function = functions_[name];
    if (!function)
      Check(runtime::opencl_driver.find_function(0, code_, name.c_str(), 0, &function));
    return function;
  }

  // False where there is nothing to launch.
  bool ReadExtents(const std::string& name, const std::vector<int64_t>& ints,
                   runtime::DeviceLaunch* out) {
    const Func func = module_.Find(name);
    auto launch = codegen::LaunchOf(*func, target_);
    TN_CHECK(launch, "{}", ToString(launch.errors()));
    bool any = true;
    for (size_t axis = 0; axis < 3; ++axis) {
      Expr extent = PostOrderRewrite(launch->grid[axis], [&](const NodeRef& n) -> NodeRef {
        for (size_t i = 0; i < func->dims.size(); ++i) {
          if (n.get() == func->dims[i].get()) return IndexConst(ints[i]);
        }
        return n;
      });
      const int64_t blocks = AsInt(Simplify(extent)).value();
      any &= blocks > 0;
      out->grid[axis] = static_cast<uint32_t>(blocks);
      out->block[axis] = static_cast<uint32_t>(launch->block[axis]);
    }
    return any;
  }

  Module module_;
  Target target_;
  void* code_ = nullptr;
  std::map<std::string, void*> functions_;
};

}  // namespace tenon::test
