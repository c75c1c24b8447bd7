// Allocations at other places and of other sizes: how compact_buffers carries out what it decided.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "loop/func.h"

namespace tenon {

/// What becomes of one allocation.
struct Placement {
  const StmtNode* around = nullptr;  // the Alloc is put around this statement
  Buffer buffer;
  std::vector<Expr> origin;  // the element that becomes the first, per dimension; null: 0
};

/// The statement with the allocations of these buffers as they are placed, and all accesses
/// following them; functions of `module` that are told strides are told the new ones.
Stmt MoveAllocs(const Stmt& body, std::vector<std::pair<Buffer, Placement>> placements,
                const Module& module);

}  // namespace tenon
