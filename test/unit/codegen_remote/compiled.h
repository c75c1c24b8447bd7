// The LLVM back end for other machines, as the tests that all back ends share see it: the code runs
// under an emulator. $TENON_REMOTE_TARGETS names the targets, divided by ';', and
// $TENON_REMOTE_RUNNER the command that runs a library's functions (test/support/remote.h).
#pragma once

#include <fcntl.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "artifact/link.h"
#include "codegen/codegen.h"
#include "loop/func.h"
#include "loop/pass/math/expand_float8.h"
#include "loop/pass/math/expand_math.h"
#include "support/atomic_file.h"
#include "support/remote.h"
#include "support/strings.h"
#include "target/target.h"

namespace tenon::test {

/// Of these only that it is not called here: no team meets through a pipe.
inline constexpr bool kTeams = false;
/// Where there are no masks, LLVM makes a branch for each lane, and takes a minute for 256 of them.
inline constexpr int32_t kMostLanes = 40;

inline std::vector<int32_t> LanesToTry() { return {1, 7, 16}; }

inline std::string Setting(const char* name) {
  const char* value = getenv(name);
  TN_CHECK(value, "{} is not set; ctest sets it", name);
  return value;
}

inline std::vector<Target> RemoteTargets() {
  std::vector<Target> out;
  for (const std::string& text : Split(Setting("TENON_REMOTE_TARGETS"), ';')) {
    out.push_back(Target::Parse(text).value());
  }
  return out;
}

/// Many lanes on the first target only, for the sake of time.
inline std::vector<Target> TargetsToTry(int32_t lanes) {
  std::vector<Target> out = RemoteTargets();
  if (lanes > 8) out.resize(1, out[0]);
  return out;
}

/// The code of a module on the other machine.
class Compiled {
 public:
  explicit Compiled(const Module& given, const Target& target = RemoteTargets()[0]) {
    PassContext context;
    context.target = &target;
    const Module module = ExpandMath(ExpandFloat8(given, context), context);
    codegen::EmitOptions options;
    options.verify = true;
    auto object = codegen::EmitObject(module, target, options);
    TN_CHECK(object, "{}", ToString(object.errors()));
    artifact::LinkRequest link;
    link.objects = {{"test.o", *object}};
    link.triple = target.triple();
    for (const auto& [name, func] : module.funcs) {
      if (func->attrs.Get<bool>("exported", false)) link.exports.push_back(name);
    }
    auto image = artifact::LinkImage(link);
    TN_CHECK(image, "{}", ToString(image.errors()));
    path_ = (std::filesystem::temp_directory_path() / "tenon-remote-XXXXXX").string();
    const int fd = mkstemp(path_.data());
    TN_CHECK(fd >= 0);
    close(fd);
    TN_CHECK(WriteFile(path_, *image));
    library_ = std::make_unique<RemoteLibrary>(Setting("TENON_REMOTE_RUNNER"), path_);
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    library_.reset();
    unlink(path_.c_str());
  }

  std::string Call(const std::string& name, const std::vector<RemoteLibrary::Bytes>& buffers,
                   const std::vector<int64_t>& ints) const {
    return library_->CallPlain(name, buffers, ints);
  }
  template <class Fn>
  Fn* Get(const std::string& name) const {
    TN_CHECK(false, "{} is not in this process", name);
    return nullptr;
  }

 private:
  std::string path_;
  std::unique_ptr<RemoteLibrary> library_;
};

}  // namespace tenon::test
