#include "temporary_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace tenon::tools {

Expected<TemporaryFolder> TemporaryFolder::Make() {
  const char* parent = std::getenv("TMPDIR");
  std::string path = std::string(parent && *parent ? parent : "/tmp") + "/tenon-XXXXXX";
  if (mkdtemp(path.data())) return TemporaryFolder(path);
  return MakeError(fmt::format("cannot make a temporary folder '{}': {}", path,
                               std::generic_category().message(errno)));
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, "")) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace tenon::tools
