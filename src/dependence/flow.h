// What executions of a statement touch of a buffer, and whether values come from earlier ones,
// judged on accesses.
#pragma once

#include <memory>
#include <vector>

#include "dependence/box.h"
#include "dependence/uses.h"

namespace tenon {

/// True for a loop over an axis of the threads of a block.
bool RunsThreads(const StmtNode* s);

class BufferFlow {
 public:
  explicit BufferFlow(const PrimFunc& func);
  ~BufferFlow();
  BufferFlow(const BufferFlow&) = delete;
  BufferFlow& operator=(const BufferFlow&) = delete;

  /// Knows the ranges of the function's dims and loops.
  Analyzer* analyzer();

  /// True when one execution of the statement at `target` in the paths reads nothing from an
  /// earlier one.
  bool IsFlowFree(const AllocUses& a, size_t target);

  /// What a use touches in one execution of that statement; with `threads` what all threads of a
  /// block do, also where their loops are outside.
  Box BoxOf(const BufferUse& use, size_t target, bool threads);

 private:
  class Prover;
  std::unique_ptr<Prover> prover_;
};

}  // namespace tenon
