// Damage of libraries and files of weights, found by the checksums at their ends.
#pragma once

#include <cstdint>
#include <string>

#include "support/atomic_file.h"
#include "support/expected.h"

namespace tenon::artifact {

/// The last bytes of such a file, behind all that is loaded; one that was stripped has none. A
/// checksum is taken over little-endian words of 8 bytes, the last one filled up with zeros: from
/// kChecksumSeed on, h = rotate_left(h ^ word, 29) * kChecksumFactor.
struct Checksums {
  char magic[8];        // kChecksumsMagic
  uint64_t code_bytes;  // headers, tables, code and data: all that stands before the weights
  uint64_t all_bytes;   // of the file before this structure
  uint64_t code;        // checksum of the first code_bytes
  uint64_t weights;     // of what follows them
  uint64_t own;         // of this structure up to here
};
inline constexpr char kChecksumsMagic[] = "TNCHECK1";
inline constexpr uint64_t kChecksumSeed = 0x54656e6f6e211a0a;
inline constexpr uint64_t kChecksumFactor = 0x9fb21c651e98df25;

/// Appends the checksums of a file that is complete; what stands before `weights_at` is its code.
Status AppendChecksums(AtomicFile* file, uint64_t weights_at);

/// What is compared with its checksum. Code is what a loader trusts, and small.
enum class Checked { kCode, kAll };

/// Errors name the file and what of it is damaged. A file without checksums is one when all of it
/// is asked for.
Status CheckFile(const std::string& path, Checked what);

}  // namespace tenon::artifact
