// tvm::runtime::Registry, functions of C++ by global names, header-only:
//
//   TVM_REGISTER_GLOBAL("add").set_body([](TVMArgs args, TVMRetValue* result) {
//     *result = int64_t{args[0]} + int64_t{args[1]};
//   });
//   const PackedFunc* add = Registry::Get("add");   // null where nobody registered it
//
// There is what the program registers and nothing else: none of TVM's own names, and none of
// Python's functions, whose table is the Python package's. Compiled code does not look here.
#ifndef TVM_RUNTIME_REGISTRY_H_
#define TVM_RUNTIME_REGISTRY_H_

#include <tvm/runtime/packed_func.h>
#include <tenon/tenon.hpp>

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tvm::runtime {

class Registry {
 public:
  /// Throws where the name is taken, unless `can_override`.
  static Registry& Register(const std::string& name, bool can_override = false) {
    Table& table = Global();
    const std::lock_guard<std::mutex> lock(table.mutex);
    const auto [at, fresh] = table.functions.try_emplace(name);
    if (!fresh && !can_override)
      throw Error("ValueError", "there is a function '" + name + "' already");
    return at->second;
  }
  /// False where there is none.
  static bool Remove(const std::string& name) {
    Table& table = Global();
    const std::lock_guard<std::mutex> lock(table.mutex);
    return table.functions.erase(name) != 0;
  }
  /// Null where there is none; else valid until it is removed.
  static const PackedFunc* Get(const std::string& name) {
    Table& table = Global();
    const std::lock_guard<std::mutex> lock(table.mutex);
    const auto at = table.functions.find(name);
    return at == table.functions.end() ? nullptr : &at->second.function_;
  }
  static std::vector<std::string> ListNames() {
    Table& table = Global();
    const std::lock_guard<std::mutex> lock(table.mutex);
    std::vector<std::string> names;
    for (const auto& [name, entry] : table.functions) names.push_back(name);
    return names;
  }

  Registry& set_body(PackedFunc function) {
    function_ = std::move(function);
    return *this;
  }
  Registry& set_body(PackedFunc::FType body) { return set_body(PackedFunc(std::move(body))); }

 private:
  struct Table {
    std::mutex mutex;
    std::map<std::string, Registry> functions;  // references to entries stay valid
  };
  // Never freed: functions may be called while the process ends.
  static Table& Global() {
    static auto* table = new Table;
    return *table;
  }

  PackedFunc function_;
};

}  // namespace tvm::runtime

#define TENON_JOINED_(a, b) a##b
#define TENON_JOINED(a, b) TENON_JOINED_(a, b)
/// At namespace scope; set_body comes behind it.
#define TVM_REGISTER_GLOBAL(name)                                                                 \
  [[maybe_unused]] static ::tvm::runtime::Registry& TENON_JOINED(tenon_registered, __COUNTER__) = \
      ::tvm::runtime::Registry::Register(name)

#endif  // TVM_RUNTIME_REGISTRY_H_
