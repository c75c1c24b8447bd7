// What has been compiled before: libraries of models in a folder, by what they were compiled from
// and how, and the code of kernels in a folder of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "support/expected.h"
#include "support/file_cache.h"

namespace tenon::driver {

/// TENON_CACHE_DIR, else ~/.cache/tenon; made, where it is not there. Errors: nothing can be
/// written into it; CacheLimit's.
Expected<std::string> CacheDirectory();

/// The same, where something can be kept. "": there is no such folder, and nobody need know; `warn`
/// is told what is wrong with TENON_CACHE_SIZE.
std::string CacheDirectoryIfAny(const std::function<void(const std::string& warning)>& warn);

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
/// The code of kernels that a cache in `directory` keeps: a tenth of CacheLimit at most. Objects
/// are found again by the build of the compiler that made them, what NVRTC made by every one.
std::shared_ptr<const FileCache> KernelsIn(const std::string& directory);
/// Removes all libraries, kernels and facts.
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
