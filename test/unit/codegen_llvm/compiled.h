// The LLVM back end, as the tests that all back ends share see it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "artifact/temporary_library.h"
#include "codegen/codegen.h"
#include "loop/func.h"
#include "loop/pass/math/expand_float8.h"
#include "loop/pass/math/expand_math.h"
#include "support/check.h"
#include "target/target.h"

namespace tenon::test {

/// Functions take (rank, size, team) and code may run in teams.
inline constexpr bool kTeams = true;
/// Of the longest vectors.
inline constexpr int32_t kMostLanes = 256;

inline std::vector<int32_t> LanesToTry() { return {1, 7, 16}; }

/// This machine and, on x86, older ones whose code it runs; many lanes on this machine only, for
/// the sake of time.
inline std::vector<Target> TargetsToTry(int32_t lanes) {
  std::vector<Target> out = {Target::Host()};
  if (lanes > 8) return out;
  for (const char* cpu : {"x86-64-v3", "x86-64"}) {
    if (auto t = Target::Parse(std::string("llvm -mcpu=") + cpu)) {
      if (t->MissingOn(out[0]).empty() && t->arch() == out[0].arch()) out.push_back(*t);
    }
  }
  return out;
}

/// The loaded code of a module whose exported functions can be asked for.
class Compiled {
 public:
  explicit Compiled(const Module& given, const Target& target = Target::Host()) {
    PassContext context;
    context.target = &target;
    const Module module = ExpandMath(ExpandFloat8(given, context), context);
    codegen::EmitOptions options;
    options.verify = true;
    auto object = codegen::EmitObject(module, target, options);
    TN_CHECK(object, "{}", ToString(object.errors()));
    std::vector<std::string> exports;
    for (const auto& [name, func] : module.funcs) {
      if (func->attrs.Get<bool>("exported", false)) exports.push_back(name);
    }
    auto library = artifact::LoadTemporaryLibrary({{"test.o", *object}}, exports, target.triple());
    TN_CHECK(library, "{}", ToString(library.errors()));
    library_ = std::make_unique<artifact::TemporaryLibrary>(std::move(*library));
  }
  template <class Fn>
  Fn* Get(const std::string& name) const {
    void* f = library_->Find(name);
    TN_CHECK(f, "no {}", name);
    return reinterpret_cast<Fn*>(f);
  }

 private:
  std::unique_ptr<artifact::TemporaryLibrary> library_;
};

}  // namespace tenon::test
