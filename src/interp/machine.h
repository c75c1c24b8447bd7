// The machine that runs loop IR: what all workers share (Machine), their team (team.h), and one
// worker's walk through a function (Worker).
//
// A failure inside unwinds to Interpret as the private exception Failure; nothing else sees it.
#pragma once

#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "interp/indices.h"
#include "interp/interp.h"
#include "interp/layout_table.h"
#include "interp/memory.h"
#include "interp/names.h"
#include "interp/promise.h"
#include "interp/value.h"
#include "interp/variables.h"
#include "loop/func.h"

namespace tenon::interp {

struct Failure {
  Diagnostic diagnostic;
};
[[noreturn]] void Fail(std::string message);

struct Window;

/// A buffer in a frame: where its first element is and how logical indices reach the others.
struct View {
  Buffer buffer;
  uintptr_t address = 0;
  Memory* memory = nullptr;              // null: foreign memory, unchecked
  std::vector<int64_t> shape;            // logical
  std::vector<int64_t> strides;          // elements, over storage dimensions
  std::shared_ptr<const Window> window;  // of a fragment that is passed on; null: memory
  LayoutTable* table = nullptr;          // of its layout; null: that is worked out each time
};

/// A box of a fragment: the caller's buffer as it is in each lane (one entry where one worker does
/// everything), the box's first element, and the dimensions that the callee sees.
struct Window {
  std::vector<View> lanes;
  std::vector<int64_t> origin;
  std::vector<size_t> dims;
};

/// What an access touches, for reports: its text is made only where there is one. Lives no longer
/// than what it was made of.
class Accessed {
 public:
  explicit Accessed(std::string_view name) : name_(name) {}
  Accessed(const View& view, std::span<const int64_t> indices)
      : name_(view.buffer->name), indices_(indices), is_element_(true) {}

  /// "A[2, 5]", or the name alone.
  std::string ToString() const;

 private:
  std::string_view name_;
  std::span<const int64_t> indices_;
  bool is_element_ = false;
};

/// The indices of an access, of one lane at a time.
class LaneIndices {
 public:
  explicit LaneIndices(std::vector<Value> values)
      : values_(std::move(values)), at_(values_.size()) {}

  /// Those of a lane; valid until the next call.
  std::span<const int64_t> At(size_t lane) {
    for (size_t i = 0; i < at_.size(); ++i) at_[i] = values_[i].at(lane).i;
    return at_;
  }

 private:
  std::vector<Value> values_;
  Indices at_;
};

/// Where an element is.
struct Spot {
  Memory* memory;
  uintptr_t address;
};

/// The names visible in a function.
struct Frame {
  explicit Frame(VariableNumbers& numbers) : vars(numbers) {}

  Func func;
  Variables vars;
  Names<BufferNode, View> buffers;
};

class Team;
class GridThread;

/// A write of an asynchronous copy, withheld until it is waited for.
struct AsyncWrite {
  Memory* memory;
  uintptr_t address;
  DType type;
  Lane value;
  std::string what;
};

/// What one call of Interpret shares between all its workers. Only one worker runs at a time.
struct Machine {
  Machine(const Module& m, const InterpOptions& o) : module(m), options(o), random(o.seed) {}

  const Module& module;
  const InterpOptions& options;
  MemoryMap memory;
  VariableNumbers variables;
  int64_t steps = 0;
  uint32_t phase = 0;  // grows at every barrier, launch and end of a team
  std::mt19937_64 random;
  Memory* weights = nullptr;

  void Step() {
    if (++steps > options.max_steps) TooLong();
  }
  [[noreturn]] void TooLong() const;
  /// Memory for `elements` of so many bytes, nothing of it written; fails where that is too much.
  std::unique_ptr<Memory> NewMemory(const std::string& name, int64_t elements,
                                    int64_t bytes_each) const;
  /// The function, or a failure that names the caller.
  Func Callee(const std::string& name, const char* what) const;
  /// True when the function, or one that it calls, mentions its team.
  bool MentionsTeam(const Func& func);
  /// 0 … n-1, permuted unless the seed is 0.
  std::vector<int64_t> Order(int64_t n);
  /// 0 … n-1 as InterpOptions::order says, for threads and blocks.
  std::vector<int64_t> ThreadOrderOf(int64_t n);
  /// Extents of a buffer's storage over its dims and layout.
  const std::vector<Expr>& StorageOf(const Buffer& buffer);
  /// The table of a layout for buffers of that shape; null: there is none.
  LayoutTable* TableOf(const Layout& layout, std::span<const int64_t> shape);

 private:
  std::unordered_map<const PrimFunc*, bool> mentions_team_;
  std::unordered_map<const BufferNode*, std::vector<Expr>> storage_;
  std::vector<Buffer> keep_;
  std::unordered_map<const LayoutNode*, std::unique_ptr<LayoutTable>> tables_;
};

class Worker {
 public:
  /// `team` null: alone. `thread`: it is one of a launch.
  Worker(Machine& machine, Team* team, int rank, GridThread* thread = nullptr)
      : m_(machine), team_(team), rank_(rank), thread_(thread), frame_(machine.variables) {}

  /// Runs a function whose frame is filled in. The status of a host function, else 0.
  int64_t Run(Frame frame);
  /// Runs a statement under a filled-in frame.
  void RunBody(Frame frame, const Stmt& body);
  /// Runs a kernel or a host function over a team where it asks for one.
  static int64_t RunOnTeam(Machine& machine, const Frame& frame, int team_size);

  // ---- eval.cc ----
  Value Eval(const Expr& e);
  /// The scalar that Eval gives, without a Value around it; of a vector the first lane.
  Lane EvalScalar(const Expr& e) {
    m_.Step();
    if (e->kind == NodeKind::kVar) return VarLane(*As<VarNode>(e));  // most are leaves
    if (e->kind == NodeKind::kIntConst) return IntLane(As<IntConst>(e)->value);
    return EvalTree(e);
  }
  int64_t EvalInt(const Expr& e) { return EvalScalar(e).i; }
  bool EvalBool(const Expr& e) { return EvalScalar(e).i != 0; }

  // ---- access.cc ----
  /// The buffer at an address; its dims are evaluated in this frame.
  View MakeView(const Buffer& buffer, uintptr_t address);
  int64_t StorageElements(const Buffer& buffer);
  /// Byte offset of an element from the view's address; checks logical bounds when asked.
  int64_t Offset(const View& view, std::span<const int64_t> indices, bool check);
  Frame& frame() { return frame_; }
  Indices StorageOf(const View& view, std::span<const int64_t> indices);

 private:
  enum class Flow { kNext, kReturn };

  // ---- eval.cc ----
  Lane EvalTree(const Expr& e);
  Value EvalVector(const Expr& e);
  Lane VarLane(const VarNode& n) const {
    const Lane* lane = frame_.vars.Find(&n);
    if (!lane) Fail("variable " + n.name + " has no value");
    return *lane;
  }
  Lane ApplyBinary(const Binary& n, Lane a, Lane b);
  Value EvalSelect(const Select& n);
  Value EvalCall(const Call& n);
  Value EvalReduce(const Call& n);
  Value EvalReinterpret(const Call& n);
  Value CallExtern(const Call& n);
  size_t LanesOf(DType type) const;
  bool Active(size_t lane) const { return !active_ || (*active_)[lane]; }

  // ---- access.cc ----
  const View& ViewOf(const Buffer& buffer);
  Value LoadVector(const Load& n);
  void ExecStore(const Store& n);
  uintptr_t AddressOf(const Load& n);
  void CheckBounds(const View& view, std::span<const int64_t> indices) const;
  Spot Locate(const View& view, std::span<const int64_t> indices);
  Lane Read(const View& view, std::span<const int64_t> indices);
  Lane ReadLane(const View& view, std::span<const int64_t> indices);
  void Write(const View& view, std::span<const int64_t> indices, Lane v);
  /// Notes an access of `offset` for the reports of races.
  void NoteAccess(Memory* memory, int64_t offset, int64_t bytes, AccessKind kind,
                  const Accessed& what);
  Lane ReadAt(Memory* memory, uintptr_t address, DType type, const Accessed& what,
              AccessKind kind = AccessKind::kRead);
  void WriteAt(Memory* memory, uintptr_t address, DType type, Lane v, const Accessed& what,
               AccessKind kind = AccessKind::kWrite);
  void CheckInside(const Memory* memory, uintptr_t address, DType type, const Accessed& what);
  LaneIndices LaneIndicesOf(const std::vector<Expr>& indices);
  Indices IndicesOf(const std::vector<Expr>& indices);
  Lane LoadScalar(const Load& n);

  // ---- exec.cc ----
  Flow Exec(const Stmt& s);
  Flow ExecFor(const For& n);
  Flow ExecWhile(const While& n);
  Flow ExecAlloc(const Alloc& n);
  Flow ExecBlock(const Block& n);
  void ExecCopy(const Copy& n);
  void ExecAssert(const Assert& n);
  void ExecAtomic(const Atomic& n);
  void ExecEvaluate(const Evaluate& n);
  void ExecSync(const Sync& n);
  void ExecBarrier(const Barrier& n);
  Flow ExecRoles(const Roles& n);
  Flow ExecReturn(const Return& n);
  template <class Body>
  Flow WithVar(const Var& var, Value value, Body body);
  /// The frame of a callee, its parameters bound to regions and scalars of this frame.
  Frame CalleeFrame(const Func& callee, const std::vector<Region>& buffers,
                    const std::vector<Expr>& scalars);
  void ExecCall(const CallFunc& n);
  void RunCallee(const CallFunc& n, const Func& callee, Frame frame);

  // ---- warp.cc ----
  Spot LocateInWindow(const View& view, std::span<const int64_t> indices);
  /// What a parameter in a fragment is of the caller's.
  View WindowOn(const Buffer& param, const View& view, const Region& region, Worker* callee);
  void ExecWarpCall(const CallFunc& n, const Func& callee, Frame frame);

  // ---- async.cc ----
  /// Carries out a call of a part of an asynchronous copy; false: it is none.
  bool ExecAsync(const CallFunc& n, const Func& callee);
  void ExecBulkCopy(const CallFunc& n, const Func& callee);
  void BeginWrite(Memory* memory, uintptr_t address, DType type, Lane v, const Accessed& what);
  void Complete(const std::vector<AsyncWrite>& group);
  void ExecLaunch(const Launch& n);

  Machine& m_;
  Team* team_;
  int rank_;
  GridThread* thread_;
  std::vector<Promise> promises_;  // of the loops around, innermost last
  Frame frame_;
  int64_t status_ = 0;
  bool copying_ = false;                         // what is written is written later
  bool apart_ = false;                           // in the branch of worker 0 alone (loop/team.h)
  bool by_itself_ = false;                       // in what is called there
  std::vector<AsyncWrite> begun_;                // in no group yet
  std::vector<std::vector<AsyncWrite>> groups_;  // under way, the earliest first
  const std::vector<bool>* active_ = nullptr;    // lanes whose loads count; null: all
  std::unordered_map<const Node*, int> visits_;  // of shared allocations
  // A variable of a block that is entered, and its domain.
  struct Bound {
    const IterVarNode* iter;
    int64_t value, min, extent;
  };
  std::vector<Bound> bound_;  // of the blocks around, innermost last
};

}  // namespace tenon::interp
