// What processes that were killed leave in a folder, and how the next one tidies up.
#pragma once

#include <string>
#include <vector>

#include "support/expected.h"

namespace tenon {

/// "." for a name without one; ends with '/' otherwise.
std::string FolderOf(const std::string& path);

/// What the names of a target's temporary files begin with; "4711-0", a process and a number,
/// follows. They are no longer than file systems allow where the target's is not.
std::string TemporaryPrefix(const std::string& target);

/// Whether nobody else holds the file, who is writing it; then it is locked by this descriptor.
/// File systems without locks: `without`.
bool LockFile(int fd, bool without);

/// A temporary file and its target, both in one folder.
struct Rename {
  std::string temporary, target;
};

/// A file ".tenon-commit-4711-0" in a folder that says what is about to be renamed there, while
/// this object lives. Its process has it locked.
class RenameRecord {
 public:
  static Expected<RenameRecord> Create(const std::string& folder,
                                       const std::vector<Rename>& renames);
  RenameRecord(RenameRecord&& other) noexcept;
  RenameRecord& operator=(RenameRecord&&) = delete;
  ~RenameRecord();

 private:
  RenameRecord(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
};

/// In the target's folder: finishes the renames of records whose processes are gone, then removes
/// temporary files of the target whose writers are.
void ClearLeftovers(const std::string& target);

}  // namespace tenon
