// One random network through the compiler: what its library computes is what the interpreter says.
#pragma once

#include <string>
#include <vector>

#include "fuzz/graph/maker.h"

namespace tenon::fuzz {

struct CheckOptions {
  std::vector<int> levels;  // of optimisation
  std::string target = "llvm";
  std::string folder;  // an empty one, for files
  std::string keep;    // "": else a folder that gets the model, its inputs and expected outputs, as
                       // SEED.onnx and SEED.json
  bool narrow = false;  // open sizes have ranges, no longer than they must be
  bool spoil = false;   // makes an element of each result wrong: what must then be found
};

struct Finding {
  // "" : none. "difference", "refusal" (an error of the compiler or of a call), "warning" (declared
  // types are what was said wrong), "internal" (an exception); processes that die are their
  // parent's to tell: "crash", "time".
  std::string kind;
  std::string what;
};

struct Checked {
  Finding finding;
  bool interpreted = false;  // else the library of level 0 was what others were compared with
  int calls = 0;
};

/// Inputs depend on the seed and their names.
Checked Check(const Network& network, uint64_t seed, const CheckOptions& options);

}  // namespace tenon::fuzz
