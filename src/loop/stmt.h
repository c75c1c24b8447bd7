// Statements and functions of the loop IR.
//
// Semantics (the interpreter, src/interp, is the definition)
// ----------------------------------------------------------
//  * A Seq runs in order. A For runs its body for var = min … min+extent-1; extent <= 0: never. The
//  kind says how:
//      serial       in order.
//      parallel     iterations are independent; they are divided over the workers of the team.
//      vectorized   iterations are independent lanes of one vector operation; extent is a constant.
//      unrolled     like serial; the body is repeated in the code; extent is a constant.
//      thread       iterations are the threads of axis `thread` (ir/thread_axis.h).
//  * A Block is one iteration of a computation: its iteration variables get the values of their
//  bindings (expressions
//    over the loops outside), and if `where` holds, the body runs; before it `init` runs when every
//    reduce variable is at the start of its domain. Schedules move blocks; legality is judged on
//    what blocks declare.
//      spatial   different values write different elements; any order.
//      reduce    the body updates with an associative, commutative reducer; any order, init first.
//      ordered   iterations run in increasing order and may read what earlier ones wrote.
//    `reads` and `writes` cover everything the body touches; `exact` says that they cover nothing
//    more.
//  * Alloc makes a buffer whose content is undefined (reading it before writing is an error) for
//  its body.
//  * Bind views memory at a handle as a buffer for its body.
//  * CallFunc runs another function of the module in place, in the same worker. Region arguments
//  pass the address of the
//    box's first element; the callee's parameter states the shape and strides it assumes.
//  * Launch runs a kernel over a whole team/grid: `launch k(buffers, dims) on place`. It is data
//  until lower_team decides.
//  * Assert: when the condition is false the call fails with an error of the kind and the message
//  made of `parts`.
//  * Copy moves a region; sizes agree. Sync, Barrier, Roles, Atomic: docs/loop-ir.md has a table.
#pragma once

#include <string>
#include <vector>

#include "ir/buffer.h"
#include "ir/place.h"

namespace tenon {

struct StmtNode : Node {
  static bool Classof(NodeKind k) { return k >= NodeKind::kSeq && k < NodeKind::kPrimFunc; }

 protected:
  explicit StmtNode(NodeKind k) : Node(k) {}
};
using Stmt = Ref<const StmtNode>;

struct Seq final : NodeOf<Seq, NodeKind::kSeq, StmtNode> {
  std::vector<Stmt> stmts;  // none of them a Seq
  /// Flattens nested Seqs; one statement comes back as itself.
  static Stmt Make(std::vector<Stmt> stmts);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("stmts", s.stmts, FieldRole::kChild);
  }
};

/// Of a loop: names of buffers that each iteration has for itself, wherever they are allocated.
inline constexpr char kPrivateAttr[] = "private";

enum class ForKind : uint8_t { kSerial, kParallel, kVectorized, kUnrolled, kThread };
const char* Name(ForKind kind);

struct For final : NodeOf<For, NodeKind::kFor, StmtNode> {
  Var var;  // its name is the loop's handle
  Expr min, extent;
  ForKind for_kind = ForKind::kSerial;
  ThreadAxis thread = ThreadAxis::kNone;  // the axis when kThread
  Attrs attrs;
  Stmt body;
  static Stmt Make(Var var, Expr min, Expr extent, ForKind kind, Stmt body, Attrs attrs = {},
                   ThreadAxis thread = ThreadAxis::kNone);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("min", s.min, FieldRole::kChild);
    f("extent", s.extent, FieldRole::kChild);
    f("var", s.var, FieldRole::kBinds);
    f("for_kind", s.for_kind, FieldRole::kAttribute);
    f("thread", s.thread, FieldRole::kAttribute);
    f("attrs", s.attrs, FieldRole::kAttribute);
    f("body", s.body, FieldRole::kChild);
  }
};

struct If final : NodeOf<If, NodeKind::kIf, StmtNode> {
  Expr condition;
  Stmt then_body, else_body;  // else may be null
  static Stmt Make(Expr condition, Stmt then_body, Stmt else_body = nullptr);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("condition", s.condition, FieldRole::kChild);
    f("then_body", s.then_body, FieldRole::kChild);
    f("else_body", s.else_body, FieldRole::kChild);
  }
};

struct While final : NodeOf<While, NodeKind::kWhile, StmtNode> {
  Expr condition;
  Stmt body;
  static Stmt Make(Expr condition, Stmt body);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("condition", s.condition, FieldRole::kChild);
    f("body", s.body, FieldRole::kChild);
  }
};

struct Let final : NodeOf<Let, NodeKind::kLet, StmtNode> {
  Var var;
  Expr value;
  Stmt body;
  static Stmt Make(Var var, Expr value, Stmt body);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("value", s.value, FieldRole::kChild);
    f("var", s.var, FieldRole::kBinds);
    f("body", s.body, FieldRole::kChild);
  }
};

struct Alloc final : NodeOf<Alloc, NodeKind::kAlloc, StmtNode> {
  Buffer buffer;
  Stmt body;
  static Stmt Make(Buffer buffer, Stmt body);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("buffer", s.buffer, FieldRole::kBinds);
    f("body", s.body, FieldRole::kChild);
  }
};

struct Bind final : NodeOf<Bind, NodeKind::kBind, StmtNode> {
  Buffer buffer;
  Expr data;  // a handle
  Stmt body;
  static Stmt Make(Buffer buffer, Expr data, Stmt body);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("data", s.data, FieldRole::kChild);
    f("buffer", s.buffer, FieldRole::kBinds);
    f("body", s.body, FieldRole::kChild);
  }
};

struct Store final : NodeOf<Store, NodeKind::kStore, StmtNode> {
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;
  Expr mask;  // null, or a bool with the value's lanes: false lanes write nothing
  static Stmt Make(Buffer buffer, std::vector<Expr> indices, Expr value, Expr mask = nullptr);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("buffer", s.buffer, FieldRole::kChild);
    f("indices", s.indices, FieldRole::kChild);
    f("value", s.value, FieldRole::kChild);
    f("mask", s.mask, FieldRole::kChild);
  }
};

enum class IterKind : uint8_t { kSpatial, kReduce, kOrdered };
const char* Name(IterKind kind);

/// An iteration variable of a block: `var` ranges over [min, min+extent) and has the value
/// `binding` in terms of loops.
struct IterVarNode final : NodeOf<IterVarNode, NodeKind::kIterVar> {
  Var var;
  IterKind iter_kind = IterKind::kSpatial;
  Expr min, extent;  // the domain, for init, legality and bounds
  Expr binding;
  static Ref<const IterVarNode> Make(Var var, IterKind kind, Expr min, Expr extent, Expr binding);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("min", s.min, FieldRole::kChild);
    f("extent", s.extent, FieldRole::kChild);
    f("binding", s.binding, FieldRole::kChild);
    f("iter_kind", s.iter_kind, FieldRole::kAttribute);
    f("var", s.var, FieldRole::kBinds);
  }
};
using IterVar = Ref<const IterVarNode>;

enum class FpMode : uint8_t { kStrict, kContract, kReassoc };
const char* Name(FpMode mode);
enum class Level : uint8_t { kThread, kWarp, kWarpgroup, kCta, kCluster, kGrid, kWorker, kTeam };
const char* Name(Level level);

struct Block final : NodeOf<Block, NodeKind::kBlock, StmtNode> {
  std::string name;  // unique in its function
  std::vector<IterVar> iters;
  Expr where;  // null: always
  std::vector<Region> reads, writes;
  bool exact = true;
  bool opaque = false;  // effects beyond reads/writes: moved only whole
  std::string
      reducer;  // a name of loop/reducer.h; "" where there is none or it is read off the body
  FpMode fp = FpMode::kStrict;
  Level at = Level::kThread;
  bool async = false;  // completes on a barrier buffer
  Attrs attrs;
  Stmt init;  // null: none
  Stmt body;

  static Ref<const Block> Make(Block fields);
  Block();
  Block(const Block&);
  Block(Block&&) noexcept;
  ~Block() override;
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("name", s.name, FieldRole::kAttribute);
    f("iters", s.iters, FieldRole::kChild);
    f("where", s.where, FieldRole::kChild);
    f("reads", s.reads, FieldRole::kChild);
    f("writes", s.writes, FieldRole::kChild);
    f("exact", s.exact, FieldRole::kAttribute);
    f("opaque", s.opaque, FieldRole::kAttribute);
    f("reducer", s.reducer, FieldRole::kAttribute);
    f("fp", s.fp, FieldRole::kAttribute);
    f("at", s.at, FieldRole::kAttribute);
    f("async", s.async, FieldRole::kAttribute);
    f("attrs", s.attrs, FieldRole::kAttribute);
    f("init", s.init, FieldRole::kChild);
    f("body", s.body, FieldRole::kChild);
  }
};

/// An intrinsic with an effect (ptr_store, extern, prefetch).
struct Evaluate final : NodeOf<Evaluate, NodeKind::kEvaluate, StmtNode> {
  Expr call;
  static Stmt Make(Expr call);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("call", s.call, FieldRole::kChild);
  }
};

/// call f(regions…, scalars…): another function of the module, in place. Arguments follow the
/// callee's parameters.
struct CallFunc final : NodeOf<CallFunc, NodeKind::kCallFunc, StmtNode> {
  std::string callee;
  std::vector<Region> buffers;
  std::vector<Expr> scalars;
  static Stmt Make(std::string callee, std::vector<Region> buffers, std::vector<Expr> scalars);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("callee", s.callee, FieldRole::kAttribute);
    f("buffers", s.buffers, FieldRole::kChild);
    f("scalars", s.scalars, FieldRole::kChild);
  }
};

/// launch k(buffers, dims) on place.
struct Launch final : NodeOf<Launch, NodeKind::kLaunch, StmtNode> {
  std::string kernel;
  std::vector<Region> buffers;
  std::vector<Expr> scalars;
  Place place;
  Attrs attrs;
  static Stmt Make(std::string kernel, std::vector<Region> buffers, std::vector<Expr> scalars,
                   Place place = {}, Attrs attrs = {});
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("kernel", s.kernel, FieldRole::kAttribute);
    f("buffers", s.buffers, FieldRole::kChild);
    f("scalars", s.scalars, FieldRole::kChild);
    f("place", s.place, FieldRole::kAttribute);
    f("attrs", s.attrs, FieldRole::kAttribute);
  }
};

struct Copy final : NodeOf<Copy, NodeKind::kCopy, StmtNode> {
  Region dst, src;
  static Stmt Make(Region dst, Region src);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("dst", s.dst, FieldRole::kChild);
    f("src", s.src, FieldRole::kChild);
  }
};

/// assert condition, "ErrorKind", part, part…: a StringConst part is literal text, any other is
/// printed by value.
struct Assert final : NodeOf<Assert, NodeKind::kAssert, StmtNode> {
  Expr condition;
  std::string error_kind;  // "ValueError", "TypeError", "RuntimeError", …
  std::vector<Expr> parts;
  static Stmt Make(Expr condition, std::string error_kind, std::vector<Expr> parts);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("condition", s.condition, FieldRole::kChild);
    f("error_kind", s.error_kind, FieldRole::kAttribute);
    f("parts", s.parts, FieldRole::kChild);
  }
};

/// Leaves the function. Host functions return an i32 status; kernels return nothing (null value).
struct Return final : NodeOf<Return, NodeKind::kReturn, StmtNode> {
  Expr value;
  static Stmt Make(Expr value = nullptr);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("value", s.value, FieldRole::kChild);
  }
};

struct Sync final : NodeOf<Sync, NodeKind::kSync, StmtNode> {
  Level level = Level::kTeam;
  static Stmt Make(Level level);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("level", s.level, FieldRole::kAttribute);
  }
};

/// arrive / expect / wait on an element of a barrier buffer; `value` is the count of expect or the
/// phase of wait.
enum class BarrierOp : uint8_t { kArrive, kExpect, kWait };
const char* Name(BarrierOp op);
struct Barrier final : NodeOf<Barrier, NodeKind::kBarrier, StmtNode> {
  BarrierOp op = BarrierOp::kArrive;
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;  // null for arrive
  static Stmt Make(BarrierOp op, Buffer buffer, std::vector<Expr> indices, Expr value);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("op", s.op, FieldRole::kAttribute);
    f("buffer", s.buffer, FieldRole::kChild);
    f("indices", s.indices, FieldRole::kChild);
    f("value", s.value, FieldRole::kChild);
  }
};

/// Disjoint sub-teams running concurrently: names, sizes in workers/warps, register budgets (0:
/// none) and bodies.
struct Roles final : NodeOf<Roles, NodeKind::kRoles, StmtNode> {
  std::vector<std::string> names;
  std::vector<int64_t> sizes, registers;
  std::vector<Stmt> bodies;
  static Stmt Make(std::vector<std::string> names, std::vector<int64_t> sizes,
                   std::vector<int64_t> registers, std::vector<Stmt> bodies);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("names", s.names, FieldRole::kAttribute);
    f("sizes", s.sizes, FieldRole::kAttribute);
    f("registers", s.registers, FieldRole::kAttribute);
    f("bodies", s.bodies, FieldRole::kChild);
  }
};

/// What an atomic update orders with itself: nothing, what comes after it, what came before, both.
enum class MemoryOrder : uint8_t { kRelaxed, kAcquire, kRelease, kAcqRel };
const char* Name(MemoryOrder order);

/// atomic op buffer[indices], value order scope.
struct Atomic final : NodeOf<Atomic, NodeKind::kAtomic, StmtNode> {
  BinaryOp op = BinaryOp::kAdd;
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;
  MemoryOrder order = MemoryOrder::kRelaxed;
  Level scope = Level::kGrid;
  static Stmt Make(BinaryOp op, Buffer buffer, std::vector<Expr> indices, Expr value,
                   MemoryOrder order, Level scope);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("op", s.op, FieldRole::kAttribute);
    f("buffer", s.buffer, FieldRole::kChild);
    f("indices", s.indices, FieldRole::kChild);
    f("value", s.value, FieldRole::kChild);
    f("order", s.order, FieldRole::kAttribute);
    f("scope", s.scope, FieldRole::kAttribute);
  }
};

}  // namespace tenon
