// Loop IR and its schedules: functions as docs/loop-ir.md describes them, and the primitives of
// docs/schedules.md applied to them one by one. C++20; link Tenon::compiler.
//
//   IrSchedule s(IrModule::Parse(text), "matmul");
//   s.Split("i", {-1, 8});        // i.0, i.1
//   s.Reorder({"i.0", "j", "i.1"});
//   Library library = Build(s.module());
//   std::string saved = s.trace().ToJson();
//
// Blocks, loops and buffers are found by name, and primitives derive new names from old ones. A
// primitive that is illegal changes nothing and throws a tenon::Error that names the primitive, the
// block, the loop and the reason.
#ifndef TENON_IR_HPP_
#define TENON_IR_HPP_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tenon/te.hpp"

namespace tenon {
inline namespace v0 {

struct IrData;
struct TraceData;
struct IrScheduleData;

/// Functions of loop IR. A value: what it says does not change.
class TN_API IrModule {
 public:
  explicit IrModule(std::shared_ptr<const IrData> data) : data_(std::move(data)) {}
  /// Reads the text form.
  static IrModule Parse(const std::string& text);
  /// One of the functions of all, to be built into one library; equal names are of equal functions.
  static IrModule Joined(const std::vector<IrModule>& modules);
  std::string str() const;
  std::vector<std::string> functions() const;
  /// The function of this name, with those that it calls.
  IrModule Function(const std::string& name) const;
  /// This one with the function that `of` has (not of kind device, alone), called `name`, in the
  /// place of the one of that name, and with those that it calls.
  IrModule With(const std::string& name, const IrModule& of) const;
  const IrData& data() const { return *data_; }

 private:
  std::shared_ptr<const IrData> data_;
};

/// The function that computes the last of `args`, which are its parameters in order, inputs first:
/// one block per tensor, not scheduled.
TN_API IrModule CreateFunc(const te::Arguments& args, const std::string& name = "main");

namespace te {

/// Tensors computed by a function of loop IR: `body` has one of kind device, of this name or alone,
/// whose parameters are the inputs and then the outputs, compact. Its dims are sizes or strides of
/// them. It may call C functions, which are linked to an object of the library (Library::Save). Its
/// block is scheduled as a whole.
TN_API std::vector<Tensor> Extern(const std::vector<std::vector<Expr>>& shapes,
                                  const std::vector<Tensor>& inputs, const IrModule& body,
                                  const std::vector<DataType>& dtypes, const std::string& name);

}  // namespace te

/// An argument of a primitive. Wherever a number is asked for, "$name" is the value of the choice
/// of that name.
class TN_API Value {
 public:
  using Data = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                            std::vector<double>, std::vector<std::string>>;
  Value(bool v) : data_(v) {}                             // NOLINT
  Value(int v) : data_(int64_t{v}) {}                     // NOLINT
  Value(long v) : data_(static_cast<int64_t>(v)) {}       // NOLINT
  Value(long long v) : data_(static_cast<int64_t>(v)) {}  // NOLINT
  Value(double v) : data_(v) {}                           // NOLINT
  Value(const char* v) : data_(std::string(v)) {}         // NOLINT
  Value(std::string v) : data_(std::move(v)) {}           // NOLINT
  explicit Value(Data data) : data_(std::move(data)) {}
  const Data& data() const { return data_; }

 private:
  Data data_;
};

/// Several of them.
class TN_API Values : public std::vector<Value> {
 public:
  using std::vector<Value>::vector;
  Values(std::initializer_list<Value> list) : std::vector<Value>(list) {}
  Values(std::vector<Value> values)  // NOLINT(google-explicit-constructor)
      : std::vector<Value>(std::move(values)) {}
  Values(const std::vector<int64_t>& numbers)  // NOLINT(google-explicit-constructor)
      : std::vector<Value>(numbers.begin(), numbers.end()) {}
  Values(const std::vector<std::string>& names)  // NOLINT(google-explicit-constructor)
      : std::vector<Value>(names.begin(), names.end()) {}
};

/// What was applied, with what, giving what: one primitive a step. It replays on other functions
/// and other sizes, as far as its steps are legal there.
class TN_API Trace {
 public:
  explicit Trace(std::shared_ptr<const TraceData> data) : data_(std::move(data)) {}
  /// Reads what str() writes.
  static Trace Parse(const std::string& text);
  static Trace FromJson(const std::string& text);
  /// One line per step: i.0, i.1 = split("i", [-1, 8])
  std::string str() const;
  std::string ToJson() const;
  /// A function `apply` of a schedule: of a tenon.tir.Schedule in Python, of an IrSchedule in C++.
  std::string ToPython() const;
  std::string ToCpp() const;
  /// The choices that were made, by name.
  std::map<std::string, int64_t> decisions() const;
  int size() const;
  const TraceData& data() const { return *data_; }

 private:
  std::shared_ptr<const TraceData> data_;
};

/// A schedule of one function of a module. A handle: copies are the same schedule. Not for several
/// threads at once. What each primitive does and when it is legal: docs/schedules.md.
class TN_API IrSchedule {
 public:
  using Names = std::vector<std::string>;

  /// `func` may be left out where the module has one function that is not of kind device.
  explicit IrSchedule(const IrModule& module, const std::string& func = "");

  /// As it is now. Calls of intrinsics that users registered call their implementations.
  IrModule module() const;
  std::string function() const;
  Trace trace() const;
  /// An independent schedule of the same state.
  IrSchedule Copy() const;

  // ---- Looking. Names come in program order, loops outermost first. ----
  Names GetBlocks() const;
  Names GetLoops(const std::string& block) const;
  Names GetChildBlocks(const std::string& loop) const;
  Names GetProducers(const std::string& block) const;
  Names GetConsumers(const std::string& block) const;
  std::string GetBlockOf(const std::string& buffer) const;
  /// The buffers that a block reads and writes, each once, as its declaration has them.
  Names GetReads(const std::string& block) const;
  Names GetWrites(const std::string& block) const;
  Names GetSpatialLoops(const std::string& block) const;
  Names GetReduceLoops(const std::string& block) const;
  /// -1 where it is symbolic.
  int64_t GetExtent(const std::string& loop) const;
  bool HasBlock(const std::string& block) const;
  bool HasLoop(const std::string& loop) const;

  // ---- Loops ----
  Names Split(const std::string& loop, const Values& factors);
  Names Tile(const Names& loops, const Values& factors);
  Names Partition(const std::string& loop, const Values& points);
  Names PartitionEqual(const std::string& loop, const Value& parts);
  std::string Fuse(const Names& loops);
  void Reorder(const Names& loops);
  void Parallel(const std::string& loop);
  void Vectorize(const std::string& loop);
  void Unroll(const std::string& loop);
  void Bind(const std::string& loop, const std::string& thread_axis);

  // ---- Where a block is computed ----
  void ComputeAt(const std::string& block, const std::string& loop);
  void ReverseComputeAt(const std::string& block, const std::string& loop);
  void ComputeRoot(const std::string& block);
  void ComputeInline(const std::string& block);
  void ReverseComputeInline(const std::string& block);

  // ---- Data. Layouts and maps are texts: "(i, j) -> (i / 4, j, i % 4)". ----
  std::string CacheRead(const std::string& block, const std::string& buffer,
                        const std::string& scope);
  std::string CacheWrite(const std::string& block, const std::string& buffer,
                         const std::string& scope);
  void SetScope(const std::string& buffer, const std::string& scope);
  void TransformLayout(const std::string& buffer, const std::string& layout);
  void StorageAlign(const std::string& buffer, const Value& axis, const Value& factor,
                    const Value& offset);
  void TransformBlockLayout(const std::string& block, const std::string& map);
  Names PadEinsum(const std::string& block, const Values& multiples);

  // ---- Reductions ----
  std::string DecomposeReduction(const std::string& block, const std::string& loop);
  /// Which threads store the block's result, "threadIdx.x == 0": it chooses among those that have
  /// the same one.
  void SetStorePredicate(const std::string& block, const std::string& condition);
  std::string RFactor(const std::string& loop, const Value& axis);

  // ---- Time ----
  std::string Prefetch(const std::string& block, const std::string& buffer, const std::string& loop,
                       const Value& distance);
  /// The same little by little, in the turns of `over`, a loop between `loop` and the block, into
  /// the second-level cache.
  std::string SpreadPrefetch(const std::string& block, const std::string& buffer,
                             const std::string& loop, const Value& distance,
                             const std::string& over);
  std::string SoftwarePipeline(const std::string& loop, const Values& stages, const Values& order);
  std::string DoubleBuffer(const std::string& block);
  void RollingBuffer(const std::string& block, const std::string& loop);

  // ---- Tiles and functions ----
  std::string Blockize(const std::string& loop);
  /// The intrinsic is a function of kind device of the module, one that TensorIntrin registered, or
  /// one of the machine's (src/intrin).
  std::string Tensorize(const std::string& loop, const std::string& intrinsic);
  void Specialize(const std::string& condition);
  std::string Outline(const std::string& loop_or_block, const std::string& name);
  void Annotate(const std::string& loop_or_block, const std::string& key, const Value& value);

  // ---- Choices ----
  int64_t Decide(const std::string& name, const std::vector<int64_t>& domain, int64_t guess);
  int64_t SampleCategorical(const std::string& name, const std::vector<int64_t>& candidates,
                            const std::vector<double>& probabilities);
  std::vector<int64_t> SamplePerfectTile(const std::string& name, const std::string& loop,
                                         int64_t parts, int64_t max_innermost);
  /// Values to take instead of guesses from now on, by name.
  void UseDecisions(const std::map<std::string, int64_t>& choices);
  /// Throws where UseDecisions gave a value for a name that no choice has got since. Replay does
  /// this by itself.
  void CheckDecisions() const;

  /// A primitive by its name in traces.
  Names Apply(const std::string& primitive, const Values& args);
  /// All steps, or, where one is not legal here, none and an error.
  void Replay(const Trace& trace);

  explicit IrSchedule(std::shared_ptr<IrScheduleData> data) : data_(std::move(data)) {}
  const std::shared_ptr<IrScheduleData>& data() const { return data_; }

 private:
  std::shared_ptr<IrScheduleData> data_;
};

/// Intrinsics of users, by name and for the whole process: Tensorize replaces what equals the
/// description by a call of the implementation.
class TN_API TensorIntrin {
 public:
  /// `description` and `implementation` are modules with a function of kind device of this name;
  /// both have the same parameters. The implementation may have other device functions beside it.
  /// They must compute the same: where both can be run, they are, on small numbers. A description
  /// with an initial value stands for a whole reduction; then `name.update`, for a part of one, is
  /// registered too where the implementation has a function of that name.
  static void Register(const std::string& name, const IrModule& description,
                       const IrModule& implementation);
  /// The description is the implementation.
  static void Register(const std::string& name, const IrModule& description);
  /// Described by tensors, inputs first: what computes the last one. Operands may be tiles of
  /// larger tensors: of those with several dims, all strides but the last are dims of the function,
  /// in the order of the operands.
  static void Register(const std::string& name, const std::vector<te::Tensor>& description);
  /// The same, with operands that lie as the implementation says: its parameters' strides are
  /// numbers, which a nest's must be, or dims; without strides they are compact.
  static void Register(const std::string& name, const std::vector<te::Tensor>& description,
                       const IrModule& implementation);
  /// The description; of an intrinsic of Tenon's own, what it means.
  static IrModule Get(const std::string& name);
};

}  // namespace v0
}  // namespace tenon

#endif  // TENON_IR_HPP_
