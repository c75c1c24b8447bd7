// What stands at the end of a library, and of a file of weights: shared by who writes, who loads
// and who verifies them.
#pragma once

#include <stdint.h>

namespace tenon {

/// The last bytes of such a file, behind all that is loaded; one that was stripped has none. A
/// checksum is taken over little-endian words of 8 bytes: from kChecksumSeed on, h = rotate_left(h
/// ^ word, 29) * kChecksumFactor.
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

}  // namespace tenon
