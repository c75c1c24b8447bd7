// The interpreter: what loop IR means, run slowly and obviously.
//
// It runs functions at every stage of lowering: with blocks and without, before and after
// flattening, vectorizing, division over workers, and wrapping. Beyond results it reports what a
// machine would do silently: accesses outside a buffer's shape or memory, reads of uninitialised
// elements (lanes of a vector that read one are NaN or -1: they may be lanes that nobody uses),
// index overflow and division by zero, block bindings outside their domain, workers that never meet
// at a barrier, races between workers. For tests and `--reference` only.
//
// A function that mentions its team (team_rank, team_size, sync team, also in what it calls) is run
// by every worker of a team of `team_size`; the workers take turns between barriers, in an order
// that `seed` decides. Other functions run once, and the iterations of their parallel and
// vectorized loops in an order that `seed` decides (0: as written). So do the iterations of a loop
// over a thread axis of a kernel that is still being scheduled: without a sync inside they are
// independent.
//
// A kernel in its bound form (loop/threads.h) is run by every thread of its launch. Threads take
// turns at barriers, in the order that InterpOptions::order names; blocks run one after another.
// Reported are accesses of two threads to one element, one of them a write, without a barrier
// between that orders them (whether or not they met in this order); barriers that some threads of
// the block or warp do not reach, or reach at another place; reads of shared memory that nobody has
// written since it was allocated.
//
// So are barriers (loop/warpgroup.h) that nobody is left to end a phase of, and targets of copies
// that are touched before they are waited for: copies are done when no thread can go on.
//
// Not yet: async blocks, syncs above a block of threads, blocks at levels above a worker, sub-byte
// elements. They are answered with "unsupported: <construct>".
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "loop/func.h"
#include "support/expected.h"

namespace tenon {

/// A number that crosses between the interpreter and C: integers, bools, handles in `i`, floats in
/// `f`.
struct InterpScalar {
  int64_t i = 0;
  double f = 0;
};

/// An argument of a function, in the order of its buffers and then its scalars.
struct InterpArg {
  enum class Kind { kTensor, kScalar, kMemory };
  Kind kind = Kind::kTensor;

  // kTensor: logical shape and row-major elements as they lie in memory (bool: one byte). The
  // interpreter puts them into the storage that the parameter's layout and strides describe (pad
  // elements are zero) and reads them back.
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
  bool defined =
      true;  // false: nothing may be read before it is written, and afterwards all must have been

  InterpScalar scalar;       // kScalar
  int64_t memory_bytes = 0;  // kMemory: fresh undefined memory, passed as a handle (workspaces)

  static InterpArg Tensor(DType dtype, std::vector<int64_t> shape, std::vector<uint8_t> bytes);
  /// Elements rounded or wrapped to the type.
  static InterpArg Tensor(DType dtype, std::vector<int64_t> shape,
                          const std::vector<double>& values);
  static InterpArg Output(DType dtype, std::vector<int64_t> shape);
  static InterpArg Int(int64_t value);
  static InterpArg Float(double value);
  static InterpArg Memory(int64_t bytes);

  int64_t num_elements() const;
  /// Element i of a tensor as a double (64-bit integers lose bits beyond 2^53).
  double Get(int64_t i) const;
};

/// A C function that `extern` may call. A string argument is the address of its characters.
using HostFunction = std::function<InterpScalar(std::span<const InterpScalar> args)>;

/// In which order the threads of a launch take turns between barriers, and its blocks run.
enum class ThreadOrder : uint8_t {
  kInOrder,
  kReversed,
  kShuffled,   // anew at every barrier, by the seed
  kSwitching,  // shuffled, and each thread hands over before every access of memory that it shares
};

struct InterpOptions {
  int team_size = 1;
  uint64_t seed = 0;
  ThreadOrder order = ThreadOrder::kInOrder;
  int64_t max_steps = 400'000'000;       // expressions and statements
  int64_t max_bytes = int64_t{4} << 30;  // of any one allocation
  int64_t vscale = 2;                    // for scalable vectors
  std::map<std::string, int64_t> dims;   // dims of the function that no argument's shape tells
  std::map<std::string, HostFunction> functions;
  std::span<const uint8_t> weights;  // what weights_base points to; must live during the call
};

/// Runs a function of the module; outputs are left in `args`. Errors: a failed Assert ("ValueError:
/// …"), a non-zero status, or what the header above lists, with the statement's function named. A
/// program that runs for longer than max_steps, or allocates more than max_bytes at once, is a
/// limit error.
Status Interpret(const Module& module, const std::string& func, std::vector<InterpArg>& args,
                 const InterpOptions& options = {});

/// Runs a function that launches threads in several orders of them: as written, reversed, shuffled
/// twice, switching at every access. Errors: those of the first order that has any, and outputs
/// that differ between orders. A function without bound kernels is run once.
Status InterpretOrders(const Module& module, const std::string& func, std::vector<InterpArg>& args,
                       const InterpOptions& options = {});

}  // namespace tenon
