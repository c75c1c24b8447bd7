// What a worker is asked and what it answers: one line of JSON each. A worker knows no IR: a
// kernel is a function of a library, and its parameters are tensors of which is said how they lie.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/expected.h"

namespace tenon::measure {

/// A storage coordinate: ((coordinate + begin of the axis) / divisor) % modulus, `stride` elements
/// apart; modulus 0: none.
struct StorageTerm {
  int64_t axis = 0, divisor = 1, modulus = 0, stride = 1;
};

/// A tensor as a kernel takes it. Its elements are the same in whatever layout a candidate wants
/// them; the cells around them hold `padding`.
struct Parameter {
  std::string dtype;               // "float32"
  std::vector<int64_t> dims;       // logical
  std::vector<int64_t> shape;      // of the storage, row-major
  std::vector<StorageTerm> terms;  // where an element lies
  std::vector<int64_t> begin;      // cells before each axis
  double padding = 0;
  bool output = false;
  int64_t limit = 0;   // of integers that are places in something: 0 to limit - 1; 0: any
  int64_t copies = 1;  // of a weight: calls take turns, so that it comes from farther than the
                       // nearest cache, as in its network
};

/// A kernel in a library of its own.
struct Program {
  std::string path, function;
  std::vector<Parameter> parameters;
};

struct RaceRequest {
  std::string kernel;            // whose elements are the same for all of its programs
  Program reference;             // what it computes; path "": answers are not compared
  std::string results;           // a file that keeps what the reference computes: it runs once,
                                 // and workers that come later read it; "": it runs in each
  Program incumbent, candidate;  // a candidate with path "": whether the device is there, and
                                 // the reference's results, where there is one
  std::string device;            // where they run: "", "cuda", "opencl"
  int64_t team = 1;
  double noise = 0;  // paired_test.h
  int64_t most_pairs = 400;
  double seconds = 2;  // for timing; what has been seen by then counts
};

/// How an attempt ended.
enum class Outcome {
  kOk,
  kWrong,    // another answer than the reference's
  kOutside,  // wrote or read beside its operands
  kCrash,    // the worker died
  kTimeout,  // or did not answer in time
  kError,    // it could not be loaded or called, or needs more memory than it may have
};
const char* ToString(Outcome outcome);
/// Of ToString's texts.
Expected<Outcome> ParseOutcome(std::string_view text);

struct RaceAnswer {
  Outcome outcome = Outcome::kOk;
  std::string message;  // of all outcomes but kOk
  std::string machine;  // of a request without a candidate: the device's model and driver
  // Of kOk alone:
  bool faster = false;
  double incumbent_seconds = 0;  // of one call, the median
  double log_ratio = 0;          // candidate over incumbent, the median of pairs
  double noise = 0;              // NoiseOf the pairs: of use where both programs are one kernel
  int64_t pairs = 0, dropped = 0;
  double timing_seconds = 0;  // from the first pair to the last
};

std::string ToLine(const RaceRequest& request);
std::string ToLine(const RaceAnswer& answer);
Expected<RaceRequest> ParseRequest(std::string_view line);
Expected<RaceAnswer> ParseAnswer(std::string_view line);

}  // namespace tenon::measure
