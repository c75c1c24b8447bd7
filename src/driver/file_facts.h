// What was found out about files by reading all of them, kept for as long as they are the same.
#pragma once

#include <functional>
#include <string>

#include "support/expected.h"

namespace tenon::driver {

/// Facts about files, in a folder. A file is the same while its device, inode, size and the times
/// of its last changes are; one that changed less than two seconds ago may change again within the
/// same tick of a clock, so nothing is kept of it. Any threads and processes may use the folder.
class FileFacts {
 public:
  /// Keeps nothing where the folder is "", or cannot be written.
  explicit FileFacts(std::string folder) : folder_(std::move(folder)) {}

  /// The fact of this kind, a short text without line breaks: the one that is kept, else what
  /// `find` finds, which reads the file.
  Expected<std::string> Of(const std::string& path, const std::string& kind,
                           const std::function<Expected<std::string>()>& find) const;

 private:
  std::string folder_;
};

}  // namespace tenon::driver
