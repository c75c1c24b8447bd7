// Shared by the tests of artifacts.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "artifact/link.h"
#include "support/file.h"

namespace tenon::artifact {

namespace fs = std::filesystem;

// The value of a result that must be there.
template <class T>
T Take(Expected<T> result) {
  return std::move(result.value());
}

inline const std::string& TestObject() {
  static const std::string object = ReadFile(TEST_MODULE_OBJECT).value();
  return object;
}

inline LinkRequest Request(uint64_t weights_bytes = 0) {
  LinkRequest request;
  request.objects = {{"add.o", TestObject()}};
  for (const char* name : {"main", "outputs", "fail", "team", "arena", "weight"}) {
    request.exports.push_back(std::string("__tvm_ffi_") + name);
  }
#if defined(__aarch64__)
  request.triple = "aarch64-unknown-linux-gnu";
#else
  request.triple = "x86_64-unknown-linux-gnu";
#endif
  request.weights_bytes = weights_bytes;
  return request;
}

// A folder of its own for each test, removed afterwards.
class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::path(testing::TempDir()) / "tenon-artifact-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Path(const std::string& name) { return (folder_ / name).string(); }
  size_t FilesInFolder() {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

}  // namespace tenon::artifact
