// Models that have been compiled before: libraries in a folder, by what they were compiled from and
// how.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "support/expected.h"

namespace tenon::driver {

/// TENON_CACHE_DIR, else ~/.cache/tenon; made, where it is not there. Errors: nothing can be
/// written into it; CacheLimit's.
Expected<std::string> CacheDirectory();

/// How many bytes libraries in the cache may take together: TENON_CACHE_SIZE ("2G", "500M"; 0: any
/// number), else 10 GB. Errors: it is something else.
Expected<int64_t> CacheLimit();

/// A library in the cache.
struct CacheEntry {
  std::string path;
  int64_t bytes = 0;
  int64_t used = 0;  // when it was asked for last: seconds since the epoch
};
/// Least recently used ones first.
std::vector<CacheEntry> CacheEntries(const std::string& directory);
/// Removes a library; whoever has it loaded keeps it.
void RemoveEntry(const CacheEntry& entry);
/// Removes all libraries and facts.
void ClearCache(const std::string& directory);

/// Whether what failed is that the folder's disk is full: then other folders may do.
bool IsFull(const Diagnostics& errors, const std::string& directory);

struct CachedLibrary {
  std::string path;
  double compile_seconds = 0;  // 0: it was there
};

/// The library of a model in `directory`, MODEL-HASH.so, compiled where it is not there or is
/// damaged, which `note` is told. The same files, options, target and build of the compiler are
/// compiled once; options.output is not read. Several processes may ask at the same time. What is
/// compiled anew may push out those that nobody has used for longest (CacheLimit).
Expected<CachedLibrary> CompileCached(CompileOptions options, const std::string& directory,
                                      const std::function<void(Diagnostic)>& note);

}  // namespace tenon::driver
