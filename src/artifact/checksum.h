// Damage of libraries and files of weights, found by the checksums at their ends
// (tenon/library_checksums.hpp).
#pragma once

#include <cstdint>
#include <string>

#include "support/atomic_file.h"
#include "support/expected.h"
#include "tenon/library_checksums.hpp"

namespace tenon::artifact {

/// Appends the checksums of a file that is complete; what stands before `weights_at` is its code.
Status AppendChecksums(AtomicFile* file, uint64_t weights_at);

/// What is compared with its checksum. Code is what a loader trusts, and small.
enum class Checked { kCode, kAll };

/// Errors name the file and what of it is damaged. A file without checksums is one when all of it
/// is asked for.
Status CheckFile(const std::string& path, Checked what);

}  // namespace tenon::artifact
