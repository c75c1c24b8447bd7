// The most that the matrix unit of this core gives when it is fed from the second-level cache.
#pragma once

namespace tenon::bench {

/// Whether this x86-64 machine multiplies tiles of bf16 (AMX) and lets this process do so.
bool HasTiles();
/// GFLOP/s of products of bf16 by squares of two by two tiles whose one operand streams from the
/// second-level cache, random numbers as they are in real work (zeros take less power and run
/// faster), in this thread's own time; the sum over `threads` threads that do so at the same time.
/// Only where HasTiles().
double TilePeak(int threads);

}  // namespace tenon::bench
