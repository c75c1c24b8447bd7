// tvm::runtime::Module over tenon::Module, header-only: code that was written for TVM's C++ runtime
// loads and calls what Tenon compiled. A network can also be run in the manners of TVM's graph
// executor and of its virtual machine (executors.h).
#ifndef TVM_RUNTIME_MODULE_H_
#define TVM_RUNTIME_MODULE_H_

#include <tvm/runtime/packed_func.h>
#include <tenon/tenon.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace tvm::runtime {

/// What functions are asked of. Thread-safety is the function's.
class ModuleNode {
 public:
  virtual ~ModuleNode() = default;
  /// Null where there is no such function.
  virtual PackedFunc GetFunction(const std::string& name) const = 0;
};

class Module {
 public:
  using Node = ModuleNode;

  Module() = default;
  explicit Module(std::nullptr_t) {}
  explicit Module(std::shared_ptr<const ModuleNode> node) : node_(std::move(node)) {}

  /// `format` is not used: a library says what it is.
  static Module LoadFromFile(const std::string& path, const std::string& format = "");

  /// Null where the module has no such function. `query_imports` is not used: a library is one
  /// module.
  PackedFunc GetFunction(const std::string& name, bool query_imports = false) const {
    static_cast<void>(query_imports);
    if (!node_) throw Error("RuntimeError", "the module that is asked for '" + name + "' is null");
    return node_->GetFunction(name);
  }

  bool defined() const { return node_ != nullptr; }
  bool operator==(std::nullptr_t) const { return !defined(); }
  bool operator!=(std::nullptr_t) const { return defined(); }
  /// TVM's code says both module.GetFunction and module->GetFunction.
  const Module* operator->() const { return this; }

 private:
  std::shared_ptr<const ModuleNode> node_;
};

}  // namespace tvm::runtime

#include <tvm/runtime/executors.h>

#endif  // TVM_RUNTIME_MODULE_H_
