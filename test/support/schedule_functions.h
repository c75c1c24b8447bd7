// Functions to schedule, as text. Sizes are $NAMES, to be replaced by numbers or dims; every
// function is called @f. Results are exact in any order of additions for small integers.
#pragma once

namespace tenon::test {

extern const char kMatmul[];      // C[M, N] = A[M, K] * B[K, N]
extern const char kChain[];       // T = A * 2; D = T + 1 over [M, N]
extern const char kBlur[];        // T = A * 2 over [M + 2]; D[i] = T[i] + T[i + 1] + T[i + 2]
extern const char kConv[];        // padded 3x3 convolution over [C, H, W] to [O, H, W], then relu
extern const char kSoftmax[];     // rows of [M, N]: max, difference, sum, product: softmax's shape
extern const char kRowSum[];      // S[M] = 3 + sum over N
extern const char kScan[];        // P[t, i] = P[t - 1, i] + A[t, i]
extern const char kMatmulRelu[];  // C = A * B + bias; D = max(C, 0)
extern const char
    kStencil[];               // D = 5-point stencil of T over [M, N], T = A * A over [M + 2, N + 2]
extern const char kIntSum[];  // S[M] = sum and X[M] = maximum over N, of integers
extern const char kPipe[];    // M tiles of 4: B = A * 2, C = B + 1, D = C * C, tile by tile
extern const char kTileMatmul[];    // kMatmul, and an intrinsic @mma2 for tiles of 2 x 2 x 2
extern const char kTileChain[];     // T = A * 2; D = T + A, and an intrinsic @twice2 for 2 elements
extern const char kBatchMatmul[];   // C[B, M, N] = A[B, M, K] * W[B, N, K]
extern const char kArgMax[];        // I[M], V[M] = where the maximum of a row is, and what it is
extern const char kTuple[];         // S[M], X[M] = sum and maximum over N in one block; D = S + X
extern const char kProduct[];       // P[M] = product, Q[M] = minimum over N; D = P + Q
extern const char kTranspose[];     // T = transposed A; D = T * 2 + transposed A
extern const char kScanAndUse[];    // P as kScan; D[t, i] = P[t, i] * 2 + P[M - 1, i]
extern const char kTriangle[];      // S[i] = sum over j <= i of A[i, j]
extern const char kPool[];          // D[i, j] = maximum of A over windows of 3, 2 apart
extern const char kTwoWriters[];    // X = 1; X = X + A * A, a nest each; D = X * 2
extern const char kGather[];        // T = A * 2; D[i] = T[I[i]], the index clamped
extern const char kTwoConsumers[];  // T = A + 1; D = T * 2; E = sum over N of T
extern const char kDilated[];       // D[i] = T[i] + T[i + 3], T = A * 2 over [M + 3]
extern const char kDepthwise[];     // depthwise convolution of 3, 2 apart: [C, M] from [C, 2 M + 1]
extern const char kGuarded[];       // D = A * 2 + 1 in tiles of 3 with a guard

}  // namespace tenon::test
