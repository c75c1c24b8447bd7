// A folder of this process alone.
#pragma once

#include <string>

#include "support/expected.h"

namespace tenon::tools {

/// In $TMPDIR, else /tmp; gone with all that is in it when the object goes.
class TemporaryFolder {
 public:
  static Expected<TemporaryFolder> Make();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace tenon::tools
