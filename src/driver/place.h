// Where the result of a compilation goes.
#pragma once

#include <cstdint>
#include <string>

#include "driver/compile.h"
#include "support/expected.h"
#include "target/target.h"

namespace tenon::driver {

/// What CompileOptions::output stands for.
struct Place {
  std::string path;        // of the library, object or source
  std::string params;      // of the file of weights; "": they are in the library
  std::string directory;   // that `path` is in, "." or with a '/' at the end
  bool is_bundle = false;  // metadata and an example are wanted beside it
  std::string new_folder;  // `directory`, where it is still to be made; else ""
};

/// Makes nothing. Errors: the output cannot be written.
Expected<Place> ResolvePlace(const CompileOptions& options, const Target& target);

/// Bytes of the finished artifact with its file of weights.
int64_t BytesAt(const Place& place);

}  // namespace tenon::driver
