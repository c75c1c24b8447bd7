// A scheduled function as numbers: the loops around each of its blocks, and what these touch over
// them. All that the model of costs asks of a schedule (work.h) is in it, whether it was read off a
// function or computed from choices (numbers.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cost/machine.h"
#include "ir/expr.h"
#include "loop/func.h"

namespace tenon::sketch {

struct NestLoop {
  int64_t extent = 1;
  ForKind kind = ForKind::kSerial;
  ThreadAxis thread = ThreadAxis::kThreadIdxX;
  friend bool operator==(const NestLoop&, const NestLoop&) = default;
};
bool IsBlockAxis(const NestLoop& loop);
bool IsThreadAxis(const NestLoop& loop);

/// One region that a block touches, and how it moves over the block's loops.
struct Touch {
  size_t buffer = 0;  // equal numbers: the same buffer
  bool write = false;
  bool in_memory = true;  // else in registers of a worker
  bool shared = false;    // among the threads of a block
  int64_t element_bytes = 1;
  std::vector<int64_t> shape, box;  // of each dim: the buffer's, and that of one iteration
  std::vector<int64_t> spans;       // [loop][dim]: how far it reaches over the whole loop
  std::vector<int64_t> steps;       // [loop]: in elements, between the first two iterations

  int64_t Span(size_t loop, size_t dim) const { return spans[loop * shape.size() + dim]; }
  bool MovesOver(size_t loop) const;
  friend bool operator==(const Touch&, const Touch&) = default;
};

struct NestBlock {
  std::vector<NestLoop> loops;  // outermost first
  std::vector<Touch> touches;
  double operations = 1;  // arithmetic of one iteration: what a vector unit does one of each for
  DType type;             // of what it writes
  int unit = -1;          // of the machine's, whose operation its body calls; -1: none
  bool reduces = false;
  friend bool operator==(const NestBlock&, const NestBlock&) = default;
};

struct Nest {
  std::vector<NestBlock> blocks;
  int64_t roots = 0;  // outermost loops
  friend bool operator==(const Nest&, const Nest&) = default;
};

/// The value of an index with these variables, others being 0; nullopt: it depends on data.
using Values = std::vector<std::pair<const VarNode*, int64_t>>;
std::optional<int64_t> ValueAt(const Expr& index, const Values& at);

/// A step for which nobody knows where it leads: an index that depends on data.
inline constexpr int64_t kAnywhere = 1024;

/// Of a function of blocks and loops before passes; nullopt: its sizes are open.
std::optional<Nest> NestOf(const PrimFunc& func, const Machine& machine);

}  // namespace tenon::sketch
