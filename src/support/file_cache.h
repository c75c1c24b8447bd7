// What slow functions of bytes returned, kept in a folder from one process to the next.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/hash.h"

namespace tenon {

/// Lists of byte strings by the hash of all that they follow from, a file for each, in folders by
/// the hash's beginning: who writes a file looks at all that are beside it. An entry is
/// whole or is not there: damaged ones are found by their checksum and removed. Where the folder
/// cannot be written nothing is kept, and nobody is told: everything here can be made again. Any
/// threads and processes may use a folder at once.
class FileCache {
 public:
  /// The folder is made when something is kept. Together its files take `limit` bytes at most
  /// after Trim; 0: any number.
  FileCache(std::string folder, int64_t limit) : folder_(std::move(folder)), limit_(limit) {}

  std::optional<std::vector<std::string>> Find(const Hash128& key) const;
  void Keep(const Hash128& key, std::span<const std::string> values) const;

  /// Removes what was found or kept longest ago, until the rest fits, and what writers that were
  /// killed have left.
  void Trim() const;
  /// The same, where nobody did within the last hour: it looks at every file.
  void TrimNowAndThen() const;
  /// Removes everything.
  void Clear() const;

  struct Size {
    int64_t entries = 0, bytes = 0;
  };
  Size TakeSize() const;

 private:
  std::string PathOf(const Hash128& key) const;

  std::string folder_;
  int64_t limit_;
};

/// Paths of what is in a folder, in no order; none where it is not there.
std::vector<std::filesystem::path> PathsIn(const std::filesystem::path& folder);

/// Adds what tells one build of a program or library from another: of the one that the function is
/// in, its file's size and the time of its last change.
void AddImageOf(const void* function, Hasher* hasher);

}  // namespace tenon
