// Random networks of supported operators, for comparing compilations with each other.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tenon::driver::test {

struct RandomOutput {
  std::string name;
  bool exact;    // small integers all along: every correct compilation gives the same
  double bound;  // of its elements' magnitudes
};

struct RandomGraph {
  std::string model;  // an ONNX file; inputs are floats, to be filled with integers in -4..4
  std::vector<RandomOutput> outputs;
};

/// About `steps` operators, the same for a seed on every machine.
RandomGraph MakeRandomGraph(uint64_t seed, int steps);

}  // namespace tenon::driver::test
