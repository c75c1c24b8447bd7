// An empty folder that goes away with its object; and whether this is a slow build.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/check.h"

namespace tenon::driver::test {

/// Compiling takes some ten times as long under a sanitizer: tests that search do less of it there.
#if defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "tenon-test-XXXXXX") {
    TN_CHECK(mkdtemp(path_.data()), "cannot make a folder");
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string operator/(const char* name) const { return path_ + "/" + name; }
  size_t Count() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
};

}  // namespace tenon::driver::test
