// What all passes over loop IR have in common. A pass is a free function from module to module, in
// a file pair of its name. What nobody could lower it reports to its context; a construct that it
// does not know stays, and the verifier of the next stage names it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loop/func.h"
#include "support/expected.h"
#include "target/target.h"

namespace tenon {

struct PassContext {
  /// What the kernels are compiled for; null: unknown, nothing about it is assumed.
  const Target* target = nullptr;
  /// Statements that unrolling may make of one function; loops beyond it stay.
  int64_t max_unrolled_stmts = 4096;
  /// Widest vector, in lanes, that one vectorized loop may become; longer loops stay serial.
  int64_t max_lanes = 256;
  /// A function's worker-local buffers up to this size together live on the stack, the rest in the
  /// workspace.
  int64_t max_stack_bytes = 4096;
  /// The largest team that a call may get: workspaces have room for so many workers (address space,
  /// touched when used).
  int64_t max_team = 64;
  /// Where passes say what they could not do and why; null: nowhere. Not shared between threads.
  std::vector<std::string>* remarks = nullptr;

  /// Where passes report what cannot be done; what such a pass returns is of no use then. Null:
  /// the caller knows that there is nothing to report. Not shared between threads.
  Diagnostics* errors = nullptr;

  void Remark(std::string text) const {
    if (remarks) remarks->push_back(std::move(text));
  }
  /// Something in the function cannot be done; `what` names the loop, block or buffer, and what was
  /// expected of it. The same of one function is said once.
  void Error(const PrimFunc& func, const std::string& what) const;
};

using PassFn = Module (*)(const Module&, const PassContext&);

struct PassInfo {
  const char* name;
  PassFn run;
  const char* doc;
};

/// The module after the pass, or what the pass reported.
Expected<Module> RunPass(const PassInfo& pass, const Module& module, PassContext context);

/// Every pass, in the order of passes.def.
const std::vector<PassInfo>& LoopPasses();
/// Null when there is none of that name.
const PassInfo* FindLoopPass(std::string_view name);

}  // namespace tenon
