// A snapshot of a function's body: which loops and blocks there are, where each stands, and what
// the blocks touch.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "arith/conditions.h"
#include "loop/edit.h"
#include "loop/facts.h"
#include "loop/fresh_names.h"
#include "support/expected.h"

namespace tenon {

using BlockRef = Ref<const Block>;
using Names = std::vector<std::string>;

/// A snapshot of a function's body: who is where, who touches what. Positions are in program order.
/// For one thread at a time.
class Body {
 public:
  /// A loop, a block or a leaf statement and the statements around it.
  struct Place {
    Stmt stmt;
    std::vector<Stmt> path;  // outermost first, without stmt itself
    bool inner = false;      // inside the body of a block

    const For* loop() const { return As<For>(stmt); }
    const Block* block() const { return As<Block>(stmt); }
    /// The loops around it, outermost first.
    std::vector<const For*> Loops() const;
    /// The loops around it that are strictly inside `outer` (all of them when null).
    std::vector<const For*> LoopsInside(const Node* outer) const;
    bool IsUnder(const Node* ancestor) const;
  };

  /// How a block touches a buffer. What a block loads of what it writes is read, whether it says so
  /// or not.
  struct Access {
    const Place* place;
    Region region;
    bool write;
  };

  explicit Body(const Func& func);

  const Func& func() const { return func_; }
  const Stmt& root() const { return func_->body; }
  const std::vector<Place>& loops() const { return loops_; }
  const std::vector<Place>& blocks() const { return blocks_; }
  /// Stores, calls and other leaf statements that stand outside any block.
  const std::vector<Place>& strays() const { return strays_; }
  const std::vector<Buffer>& allocs() const { return allocs_; }

  Expected<const Place*> NeedLoop(const std::string& name) const;
  Expected<const Place*> NeedBlock(const std::string& name) const;
  Expected<Buffer> NeedBuffer(const std::string& name) const;
  const Place* FindLoop(const std::string& name) const;
  const Place* FindBlock(const std::string& name) const;
  bool IsAlloc(const Buffer& buffer) const;

  /// Outermost blocks under a statement (itself included), in program order.
  std::vector<const Place*> BlocksUnder(const Node* stmt) const;
  bool HasStrayUnder(const Node* stmt) const;
  std::vector<const Place*> Writers(const Buffer& buffer) const;
  std::vector<const Place*> Readers(const Buffer& buffer) const;
  /// Accesses by outermost blocks under `stmt`.
  std::vector<Access> AccessesUnder(const Node* stmt) const;
  /// Position of a block among blocks().
  size_t OrderOf(const Place* block) const { return static_cast<size_t>(block - blocks_.data()); }

  /// Names that are not taken yet; each answer is taken from then on.
  std::string NewVarName(const std::string& base) { return vars_.Fresh(base); }
  std::string NewBlockName(const std::string& base) { return block_names_.Fresh(base); }
  std::string NewBufferName(const std::string& base) { return buffer_names_.Fresh(base); }

 private:
  void Walk(const Stmt& s, std::vector<Stmt>* path, bool inner);
  void Enter(const Stmt& s, const std::vector<Stmt>& path, bool inner);

  Func func_;
  std::vector<Place> loops_, blocks_, strays_;
  std::vector<Buffer> allocs_, buffers_;
  // What blocks read, found when it is first asked for: there are many questions about one body.
  mutable std::vector<std::optional<std::vector<Region>>> reads_;
  NameSupply vars_{"_", 2}, block_names_{"_", 2}, buffer_names_{"_", 2};
};

/// What the block reads; see Access.
std::vector<Region> ReadsOf(const Block& block);
bool HasKind(const Block& block, IterKind kind);
/// The iteration variables' bindings, for substitution into what the block declares.
std::unordered_map<const VarNode*, Expr> BindingsOf(const Block& block);

/// The deepest statement around both places; null when only the function is.
const Node* CommonAncestor(const Body::Place& a, const Body::Place& b);
/// The child of `ancestor` (the whole body's path start when null) on the way to the place.
Stmt BranchTowards(const Body::Place& place, const Node* ancestor);

/// Why not everybody who uses the buffer is known: a statement outside any block does. Not of
/// inputs, which nobody writes.
std::optional<Diagnostic> UsedInNoBlock(const Body& body, const Buffer& buffer);
/// True when each run of the statement around `place` makes the buffer anew: it is allocated under
/// `stmt`.
bool IsAllocatedUnder(const Body::Place& place, const Buffer& buffer, const Node* stmt);

// ---- Diagnostics: the caller puts "primitive(arguments)" in front. ----

Diagnostic OfBlock(const std::string& block, const std::string& reason);
Diagnostic Because(const std::string& reason);

}  // namespace tenon
