// Models that have been compiled before: libraries in a folder, by what they were compiled from and
// how.
#pragma once

#include <functional>
#include <string>

#include "driver/compile.h"
#include "support/expected.h"

namespace tenon::driver {

/// TENON_CACHE_DIR, else ~/.cache/tenon; made, where it is not there. Errors: nothing can be
/// written into it.
Expected<std::string> CacheDirectory();

struct CachedLibrary {
  std::string path;
  double compile_seconds = 0;  // 0: it was there
};

/// The library of a model in `directory`, MODEL-HASH.so, compiled where it is not there or is
/// damaged, which `note` is told. The same files, options, target and build of the compiler are
/// compiled once; options.output is not read. Several processes may ask at the same time.
Expected<CachedLibrary> CompileCached(CompileOptions options, const std::string& directory,
                                      const std::function<void(Diagnostic)>& note);

}  // namespace tenon::driver
