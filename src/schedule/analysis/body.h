// Looking at and editing the statement tree of a function: the ground that all primitives stand on.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "arith/analyzer.h"
#include "loop/func.h"
#include "support/expected.h"

namespace tenon::primitive {

using BlockRef = Ref<const Block>;
using Names = std::vector<std::string>;

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

/// A snapshot of a function's body: who is where, who touches what. Positions are in program order.
class Body {
 public:
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
  std::string NewVarName(const std::string& base) { return Unique(base, &vars_); }
  std::string NewBlockName(const std::string& base) { return Unique(base, &block_names_); }
  std::string NewBufferName(const std::string& base) { return Unique(base, &buffer_names_); }

 private:
  static std::string Unique(const std::string& base, std::set<std::string>* taken);
  void Walk(const Stmt& s, std::vector<Stmt>* path, bool inner);
  void Enter(const Stmt& s, const std::vector<Stmt>& path, bool inner);

  Func func_;
  std::vector<Place> loops_, blocks_, strays_;
  std::vector<Buffer> allocs_, buffers_;
  std::set<std::string> vars_, block_names_, buffer_names_;
};

/// What the block reads; see Access.
std::vector<Region> ReadsOf(const Block& block);
bool HasKind(const Block& block, IterKind kind);
/// The iteration variables' bindings, for substitution into what the block declares.
std::unordered_map<const VarNode*, Expr> BindingsOf(const Block& block);

/// The deepest statement around both places; null when only the function is.
const Node* CommonAncestor(const Place& a, const Place& b);
/// The child of `ancestor` (the whole body's path start when null) on the way to the place.
Stmt BranchTowards(const Place& place, const Node* ancestor);

// ---- Editing ----

using Replacements = std::unordered_map<const Node*, Stmt>;
/// Rebuilds `root` with statements (by identity) replaced; null removes one, and with it every
/// loop, condition and allocation left empty. Null when nothing is left.
Stmt Edit(const Stmt& root, const Replacements& replacements);
Stmt Before(const Stmt& first, const Stmt& second);
/// `root` with the allocation put around everything / taken away.
Stmt AddAlloc(const Buffer& buffer, const Stmt& root);
Stmt RemoveAlloc(const Buffer& buffer, const Stmt& root);

/// Rebuilds every statement below and including `root`, children first; null removes it.
Stmt MapStmts(const Stmt& root, const std::function<Stmt(const Stmt&)>& map);

/// `condition` added to what guards the blocks under `stmt`; stray statements get an If.
Stmt AddGuard(const Stmt& stmt, const Expr& condition);
/// a && b where either may be null.
Expr AndAlso(const Expr& a, const Expr& b);
/// The conjuncts of a condition; none for null.
std::vector<Expr> Conjuncts(const Expr& condition);

// ---- Facts ----

/// Tells the analyzer what holds for the function's dims and at the end of the path.
void Learn(const PrimFunc& func, Analyzer* analyzer);
void Learn(const std::vector<Stmt>& path, Analyzer* analyzer);
void Learn(const For& loop, Analyzer* analyzer);
/// Simplifies trip counts, bindings and guards under `stmt`, given what the analyzer knows about
/// its surroundings. Guards that always hold vanish.
Stmt Tidy(const Stmt& stmt, Analyzer* analyzer);

// ---- Diagnostics: the caller puts "primitive(arguments)" in front. ----

Diagnostic OfBlock(const std::string& block, const std::string& reason);
Diagnostic Because(const std::string& reason);
/// Why memory for values that a schedule moves around cannot live there; nothing where it can.

}  // namespace tenon::primitive
