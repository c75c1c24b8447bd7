// Which buffers statements read and write, and when two pieces of work must not run at the same
// time.
#pragma once

#include <functional>
#include <unordered_set>

#include "loop/func.h"

namespace tenon {

/// Buffers touched, as far as `is_shared` says that they count.
struct Accesses {
  std::unordered_set<const BufferNode*> reads, writes;

  bool empty() const { return reads.empty() && writes.empty(); }
  void Add(const Accesses& other);
  /// One writes what the other touches.
  bool Conflicts(const Accesses& other) const;
};

using BufferFilter = std::function<bool(const Buffer&)>;

/// What a node and everything below it touches. Which parameters a callee writes is read off
/// `module`; an unknown callee, and `extern` given the address of an element, may write everything
/// passed.
Accesses AccessesOf(const NodeRef& node, const Module& module, const BufferFilter& counts);

/// Whether each buffer parameter of a function is read, and whether it is written.
struct ParamUse {
  std::vector<bool> reads, writes;
};
ParamUse ParamUseOf(const PrimFunc& func, const Module& module);

}  // namespace tenon
