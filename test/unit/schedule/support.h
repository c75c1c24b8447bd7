// What the tests of schedules share: functions from text, and "means the same" by running both.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "interp/interp.h"
#include "loop/parse.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "schedule/schedule.h"

namespace tenon::test {

/// `text` with every $NAME replaced by its value.
std::string Fill(std::string text, const std::map<std::string, int64_t>& values);
/// A module of one function.
Module Parse(const std::string& text);

/// Values of dims that no argument's shape tells, and of those that do (shapes may name them).
using Dims = std::map<std::string, int64_t>;
/// The outputs of `func`, one after the other, for inputs of small random integers.
std::vector<double> RunFunc(const Module& module, const std::string& func, const Dims& dims,
                            uint64_t seed, int team_size, std::string* error);

/// The schedule has no error; what it made verifies, prints, parses back, has the meaning of
/// `before` (in several orders of parallel iterations), and its trace prints, parses and replays to
/// the same.
void ExpectSame(const Module& before, const Schedule& after, const Dims& dims = {});
/// The schedule failed with a message that holds `part`.
void ExpectError(const Schedule& s, const std::string& part);

// ---- Functions to schedule. Sizes are the $NAMES. ----
extern const char kMatmul[];      // C[M, N] = A[M, K] * B[K, N]
extern const char kChain[];       // T = A * 2; D = T + 1 over [M, N]
extern const char kBlur[];        // T = A * 2 over [M + 2]; D[i] = T[i] + T[i + 1] + T[i + 2]
extern const char kConv[];        // padded 3x3 convolution over [C, H, W] to [O, H, W], then relu
extern const char kSoftmax[];     // rows of [M, N]: max, exponent (2^x), sum, quotient
extern const char kRowSum[];      // S[M] = sum over N
extern const char kScan[];        // P[t, i] = P[t - 1, i] + A[t, i]
extern const char kMatmulRelu[];  // C = A * B + bias; D = max(C, 0)

extern const char
    kStencil[];               // D = 5-point stencil of T over [M, N], T = A * A over [M + 2, N + 2]
extern const char kIntSum[];  // S[M] = sum and X[M] = maximum over N, of integers
extern const char kPipe[];    // M tiles of 4: B = A * 2, C = B + 1, D = C * C, tile by tile
extern const char kTileMatmul[];  // kMatmul, and an intrinsic @mma2 for tiles of 2 x 2 x 2

}  // namespace tenon::test
