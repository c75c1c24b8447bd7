// The C back end, as the tests that all back ends share see it: the source is compiled by a C
// compiler without a warning, and loaded.
#pragma once

#include <dlfcn.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "loop/func.h"
#include "loop/pass/math/expand_float8.h"
#include "loop/pass/math/expand_math.h"
#include "support/atomic_file.h"
#include "support/check.h"
#include "support/file.h"
#include "target/target.h"

namespace tenon::test {

/// Functions take neither rank nor team.
inline constexpr bool kTeams = false;
/// Of the longest vectors.
inline constexpr int32_t kMostLanes = 256;

inline Target TargetC() { return Target::Parse("c").value(); }

inline std::vector<int32_t> LanesToTry() { return {1, 7}; }

inline std::vector<Target> TargetsToTry(int32_t) { return {TargetC()}; }

/// A folder that goes with this object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = (std::filesystem::temp_directory_path() / "tenon-c-XXXXXX").string();
    TN_CHECK(mkdtemp(path_.data()));
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The compilers and options that take turns: both compilers where both are there, and what makes
/// them vectorise, fuse and warn.
inline const std::vector<std::string>& Compilers() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> out = {
        TENON_CC " -O1",
        TENON_CC " -O2 -march=native -Wno-unknown-warning-option -Wno-invalid-feature-combination"};
    if (system("gcc --version > /dev/null 2>&1") == 0) {
      out.insert(out.end(), {"gcc -O1", "gcc -O2 -march=native"});
    }
    return out;
  }();
  return all;
}

/// Compiles a C file to a shared library at `library`; `how` is a row of Compilers().
inline void CompileC(const std::string& how, const std::string& source,
                     const std::string& library) {
  const std::string command = how + " -std=c11 -Wall -Wextra -Werror -shared -fPIC " + source +
                              " -o " + library + " -lm > " + library + ".txt 2>&1";
  const int status = system(command.c_str());
  TN_CHECK(status == 0, "{}\n{}", command, ReadFile(library + ".txt").value());
}

/// The loaded code of a module whose exported functions can be asked for.
class Compiled {
 public:
  explicit Compiled(const Module& given, const Target& target = TargetC()) {
    PassContext context;
    context.target = &target;
    auto source = codegen::EmitC(ExpandMath(ExpandFloat8(given, context), context), target, {});
    TN_CHECK(source, "{}", ToString(source.errors()));
    const std::string file = folder_.path() + "/test.c", library = folder_.path() + "/test.so";
    TN_CHECK(WriteFile(file, *source));
    static size_t turn = 0;
    CompileC(Compilers()[turn++ % Compilers().size()], file, library);
    handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    TN_CHECK(handle_, "{}", dlerror());
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() { dlclose(handle_); }
  template <class Fn>
  Fn* Get(const std::string& name) const {
    void* f = dlsym(handle_, name.c_str());
    TN_CHECK(f, "no {}", name);
    return reinterpret_cast<Fn*>(f);
  }

 private:
  TemporaryFolder folder_;
  void* handle_ = nullptr;
};

}  // namespace tenon::test
