// Linking and loading code into this very process, for what the compiler itself must run.
#pragma once

#include <string>
#include <vector>

#include "artifact/link.h"
#include "artifact/memory_file.h"
#include "support/expected.h"

namespace tenon::artifact {

/// A library without a file, loaded. Moves, does not copy; unloaded on destruction, after which its
/// functions are gone.
class TemporaryLibrary {
 public:
  TemporaryLibrary(TemporaryLibrary&& other) noexcept;
  TemporaryLibrary& operator=(TemporaryLibrary&&) = delete;
  ~TemporaryLibrary();

  /// The address of one of the exports; null where there is none of that name.
  void* Find(const std::string& symbol) const;

 private:
  friend Expected<TemporaryLibrary> LoadTemporaryLibrary(const std::vector<ObjectFile>& objects,
                                                         const std::vector<std::string>& exports,
                                                         const std::string& triple);
  TemporaryLibrary(MemoryFile file, void* handle) : file_(std::move(file)), handle_(handle) {}
  MemoryFile file_;  // kept: its descriptor is the name that the loader knows the library by
  void* handle_;
};

/// Links objects for this machine with the runtime core and loads the result.
Expected<TemporaryLibrary> LoadTemporaryLibrary(const std::vector<ObjectFile>& objects,
                                                const std::vector<std::string>& exports,
                                                const std::string& triple);

}  // namespace tenon::artifact
