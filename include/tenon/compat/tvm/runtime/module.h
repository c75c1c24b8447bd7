// tvm::runtime::Module over tenon::Module, header-only: code that was written for TVM's C++ runtime
// loads and calls what Tenon compiled.
#ifndef TVM_RUNTIME_MODULE_H_
#define TVM_RUNTIME_MODULE_H_

#include <tvm/runtime/packed_func.h>
#include <tenon/tenon.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace tvm::runtime {

class Module {
 public:
  Module() = default;
  explicit Module(std::nullptr_t) {}

  /// `format` is not used: a library says what it is.
  static Module LoadFromFile(const std::string& path, const std::string& format = "") {
    static_cast<void>(format);
    Module result;
    result.module_ = ::tenon::Module::LoadFromFile(path);
    return result;
  }

  /// Null where the module has no such function. `query_imports` is not used: a library is one
  /// module.
  PackedFunc GetFunction(const std::string& name, bool query_imports = false) const {
    static_cast<void>(query_imports);
    if (!module_)
      throw Error("RuntimeError", "the module that is asked for '" + name + "' is null");
    tn_packed_fn function = nullptr;
    if (tn_module_get_function(module_->handle(), name.c_str(), &function) != 0) return nullptr;
    return PackedFunc(::tenon::Function(function));
  }

  bool defined() const { return module_.has_value(); }
  bool operator==(std::nullptr_t) const { return !defined(); }
  bool operator!=(std::nullptr_t) const { return defined(); }
  /// TVM's code says both module.GetFunction and module->GetFunction.
  const Module* operator->() const { return this; }

 private:
  std::optional<::tenon::Module> module_;
};

}  // namespace tvm::runtime

#endif  // TVM_RUNTIME_MODULE_H_
