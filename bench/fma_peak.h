// The most that this machine's multiply-add units give: what other speeds are measured against.
#pragma once

namespace tenon::bench {

/// GFLOP/s in fp32 of independent fused multiply-adds on the widest registers of this x86-64 core,
/// in this thread's own
/// time, over some hundred thousand of them (below a millisecond: a call beside
/// each measurement sees the same clock).
double FmaPeak();
/// The sum over `threads` threads that do so at the same time.
double FmaPeak(int threads);

}  // namespace tenon::bench
