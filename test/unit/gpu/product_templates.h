// The product of matrices as authors of CUDA kernels write it down for any tile and block of
// threads, by the public headers alone, whose names are also those of what is inside.
#pragma once

#include <cstdint>
#include <string>

namespace tenon::test {

/// How the threads of a block share out the loads of a tile, and what each computes of the result.
enum class Sharing : uint8_t {
  kParts,    // a run of neighbours for each thread
  kVectors,  // four neighbours for each thread in turn
  kVirtual,  // one element for each thread in turn; two pieces of the result for each thread
};

struct ProductTemplate {
  int64_t m, n, k;               // sizes
  int64_t rows, columns, depth;  // of a block's tiles
  int64_t threads_y, threads_x;  // of a block
  Sharing sharing;
};

/// The loop IR of f: C = A B in f32, tiles of A and B in shared memory, sums in local memory.
/// Throws tenon::Error.
std::string LowerProduct(const ProductTemplate& t);

}  // namespace tenon::test
