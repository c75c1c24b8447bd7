// One graph as one host function.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cost/machine.h"
#include "graph/graph.h"
#include "graph/lower/kernel_table.h"
#include "loop/func.h"
#include "loop/stmt.h"
#include "support/expected.h"

namespace tenon::graph {

/// In bytes, of weights in their segment and of what lies between kernels.
inline constexpr uint64_t kWeightAlign = 64;

/// Where a value lies, and whether that is aligned as arguments are or as what lies between
/// kernels.
struct Slot {
  Buffer buffer;
  bool argument = false;
};

/// The places of weights in their segment, by graph (regions have their own) and value.
using WeightOffsets = std::map<const Graph*, std::map<ValueId, uint64_t>>;

/// A dim that a node defines: what was lowered before it stands outside of its scope.
struct DimScope {
  Var dim;
  Expr value;
  size_t first_local, first_stmt;
};

/// A graph while it is lowered: that of the function, or a region inside.
struct Frame {
  const Graph& g;
  std::string prefix;  // of buffers' names
  std::vector<Slot> slots = std::vector<Slot>(g.values.size());
  std::vector<Buffer> locals;  // allocated around the scope's statements
  std::vector<Stmt> stmts;
  std::vector<DimScope> dims;

  Slot& slot(ValueId v) { return slots[static_cast<size_t>(v)]; }
};

/// The buffer with another alignment, in bytes.
Buffer Aligned(const Buffer& b, int64_t align);

/// Lowers one graph to one host function. Control flow becomes the host's: a region's launches
/// stand in its branch or loop, what it captures are the buffers that the values have outside, and
/// what decides is read from memory. Carried values live in the buffers of the node's results; each
/// iteration computes the next ones beside them and copies them over at its end.
///
///   %4 = while(%c, %x, %w) {carried: 1}          copy x → t4;  t_go = c
///     region(%0, %1) {                           while t_go {
///       %2 = mul(%0, %1)                           launch mul(t4, w, r0_t2)
///       %3 = …                                     launch …(…, r0_t3)
///       return %3, %2 }                            launch copy(r0_t2, t4);  t_go = r0_t3 }
class HostBuilder {
 public:
  /// `found`: dims that stages before this function have found. Without `weights`, the graph's
  /// constants are arguments.
  HostBuilder(const Graph& g, std::string name, const Machine& machine, int64_t argument_align,
              KernelTable* kernels, const WeightOffsets* weights = nullptr,
              std::vector<Var> found = {});

  /// The results, scalars of i64, are for the host: on a device they are not buffers but go where
  /// the last scalar of the function, `kResultDims`, points.
  void TellResults() { tells_results_ = !place_.IsHost(); }

  /// Once.
  Expected<Func> Build();

 private:
  // Those that callers tell by the shapes of what they give, and those that have been found.
  void DeclareDims(PrimFunc* f);
  void DeclareArguments(Frame* main, PrimFunc* f);

  // ---- dims that nodes define, and what the call is told of them ----
  // The largest size that such a dim can have, and so what an expression of it can be.
  Expr Most(const Expr& size) const;
  bool MentionsOwn(const std::vector<Expr>& sizes) const;
  // Memory for an output whose size the call finds out: for as many elements as there can be.
  Buffer MostOf(const std::string& name, const TensorType& type) const;
  // Its elements stand densely at the beginning of that memory.
  Status LowerLateOutput(Frame* frame, ValueId from, const Buffer& to);
  // What the node has computed, within the dim's range: memory is planned for that.
  Status LowerDim(Frame* frame, const Node& node, const std::string& what);
  // The value stays where it is. The worst element has been found by a kernel, and the host looks
  // at it: "… in -3..=2 (axis 0 of 'x' has 3 elements), but got 7".
  Status LowerRequire(Frame* frame, const Node& node);
  // Memory of the host's for so many numbers.
  Buffer Tell(PrimFunc* f, size_t count);
  void TellOutputs(Frame* main, PrimFunc* f);
  // For the caller, who gets outputs of these sizes.
  void TellOwnDims(Frame* main, PrimFunc* f);

  // ---- places ----
  // The place of a value that a kernel reads or writes; intermediates and weights are made when
  // first met.
  const Slot& SlotOf(Frame* frame, ValueId v);
  std::vector<Slot> SlotsOf(Frame* frame, const std::vector<ValueId>& values);
  int64_t AlignOf(const Slot& slot) const;
  // The function's weights in the order of its values, then those of regions as they are met.
  std::vector<std::pair<Buffer, uint64_t>> Weights(Frame& main) const;

  // ---- scopes and launches ----
  // The scope's statements with its allocations around them; likewise inside it the scope of each
  // dim that a node defines.
  static Stmt Close(Frame* frame);
  Status LowerNodes(Frame* frame);
  // What becomes an output by views alone is computed where the output lies.
  static void StoreThroughViews(Frame* frame);
  Status LowerNode(Frame* frame, const Node& node);
  // Scalars that are known are no weights: kernels have them built in.
  static bool IsKnownScalar(const Value& v);
  // A copy of `from`, which lies in `source` unless it is built in; as a tensor of `shape`, where
  // that is given.
  Status LowerCopy(Frame* frame, const Value& from, const Slot& source, const Slot& to,
                   const Region& part = nullptr, const std::vector<Expr>& shape = {});
  Status LowerCopy(Frame* frame, ValueId from, const Slot& to, const Region& part = nullptr);
  // `part`: of the (only) result's buffer, where that is written in parts.
  Status LowerRegion(Frame* frame, const Graph& region, const std::vector<Slot>& inputs,
                     const std::vector<Slot>& outputs, const std::string& what, const Plan* plan,
                     const Region& part = nullptr);
  // The variant that is launched at typical sizes.
  static size_t TypicalVariant(const Graph& region, const Plan* plan);

  // ---- control flow (host_control.cc) ----
  Frame Enter(const Graph& region);
  Status LowerControl(Frame* frame, const Node& node, const std::string& what);
  // A scalar as the host reads it.
  Expr Scalar(Frame* frame, ValueId v);
  Slot Local(Frame* frame, const std::string& name, DType dtype);
  // The same in the host's memory, wherever that of values is.
  Slot HostLocal(Frame* frame, const std::string& name, DType dtype);
  // A branch computes its results where the node's are, unless they are there already elsewhere.
  Status LowerIf(Frame* frame, const Node& node);
  // What a loop carries: begins in the results' buffers, whose values the body reads. `first` is
  // the place of the first carried input.
  Expected<std::vector<Slot>> BeginCarried(Frame* frame, const Node& node, size_t first);
  // Copies the body's results, `first_output` and following, to where the next iteration reads
  // them. One that is another's value of this iteration is saved first.
  Status EndCarried(Frame* inner, const std::vector<Slot>& state, size_t first_output);
  Status LowerWhile(Frame* frame, const Node& node);
  static bool SameShape(const BufferNode& a, const BufferNode& b);
  // The number of the iteration, which the body reads from memory.
  Status LowerNumber(Frame* inner, const Var& i);
  // Row `i` of a collected result. A device's kernel gets the whole of it: where memory has
  // handles, no part can be handed over.
  Status LowerRow(Frame* inner, ValueId v, const Slot& all, const Var& i);
  std::string NextName();
  // A kernel that is no region's.
  void LaunchAlone(Frame* frame, const ops::Kernel& kernel, const std::vector<Slot>& slots,
                   const std::string& what);
  Status LowerLoop(Frame* frame, const Node& node);

  const Graph& g_;
  const std::vector<Var> found_;  // dims that stages before this function have found
  std::string name_;
  const Machine& machine_;
  const Machine alone_;  // one worker of it
  const Place place_;    // of the kernels
  int64_t argument_align_;
  KernelTable* kernels_;
  const WeightOffsets* offsets_;  // null: the graph's constants are arguments
  std::vector<std::pair<Buffer, uint64_t>> inner_weights_;  // of regions
  std::vector<std::pair<ValueId, Buffer>> copies_;
  std::vector<std::pair<Var, Expr>> own_dims_;  // that nodes define, with the most they can be
  bool tells_results_ = false;
  std::pair<Buffer, Var> told_;  // where the caller wants to know them; null: it does not
  int serial_ = 0;
  int regions_ = 0;
};

}  // namespace tenon::graph
