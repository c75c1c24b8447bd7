// One host function becomes a body and its doors.
//
// The runtime runs a function on a team by calling F(closure) in every worker, so F's parameters
// move into an array of slots: addresses of buffers, dims, scalars, in this order. Whoever fills
// the slots is a door: the packed wrapper for the world, which checks everything and borrows an
// arena, or the plain function for C programs, which know the signature. So
//
//   func @add.host<n: 1..=64 step 3>(a: f32[n, 4], out c: f32[n, 4]) kind host {exported: true} {
//     call @add(a, c; n)
//   }
//
// becomes (once flattened)
//
//   func @add.host(closure: handle) kind host {
//     let n = ptr_load<index>(closure, 16)
//     bind a: f32[n * 4] = ptr_load<handle>(closure, 0)
//     bind c: f32[n * 4] = ptr_load<handle>(closure, 8)
//     call @add(a, c; n)
//     return 0i32
//   }
//
// and beside it stand @__tvm_ffi_add, whose checks fill such slots before it runs @add.host on a
// team, and @__tvm_ffi__metadata_add, which says its type.
//
// Where sizes are not told, what finds them runs first, in the same manner: with slots, on a team,
// with memory that it borrows and gives back (arguments.h, kFindersAttr).
//
// Whatever the wrapper acquires on its way (outputs that it makes, the arena) is given back on
// every way out: outputs are marked absent before the first check, and giving back what is absent
// does nothing.

#include "loop/pass/host/make_packed.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "arith/analyzer.h"
#include "ir/parse.h"
#include "ir/visit.h"
#include "loop/pass/host/argument_checks.h"
#include "loop/pass/packed_abi.h"
#include "loop/requirements.h"
#include "loop/workspace.h"
#include "support/check.h"
#include "support/strings.h"

namespace tenon {

using namespace packed;  // NOLINT(google-build-using-namespace): its words, in a file made of them

namespace {

/// F(closure): the host function as a body of the runtime's team.
Func BodyOf(const PrimFunc& func) {
  Var closure = VarNode::Make("closure", DType::Handle());
  StmtList list;
  size_t slot = func.buffers.size();
  auto bind = [&](const Var& var) {
    Expr value = LoadAt(var->dtype, closure, static_cast<int64_t>(slot++) * kSlotBytes);
    list.Open([var, value](Stmt body) { return Let::Make(var, value, std::move(body)); });
  };
  for (const Var& dim : func.dims) bind(dim);
  for (const Var& scalar : func.scalars) bind(scalar);
  for (size_t i = 0; i < func.buffers.size(); ++i) {
    Expr data = LoadAt(DType::Handle(), closure, static_cast<int64_t>(i) * kSlotBytes);
    list.Open([buffer = func.buffers[i], data](Stmt body) {
      return Bind::Make(buffer, data, std::move(body));
    });
  }
  list.Add(func.body);
  list.Add(Return::Make(I32(0)));

  PrimFunc fields = func;
  fields.dims.clear(), fields.dim_lo.clear(), fields.dim_hi.clear(), fields.dim_step.clear();
  fields.buffers.clear();
  fields.num_outputs = 0;
  fields.scalars = {closure};
  fields.attrs.Erase("exported");  // its wrapper is
  fields.attrs.Erase(kArgumentsAttr);
  fields.attrs.Erase(kRequiresAttr);
  fields.attrs.Erase(kConditionsAttr);
  fields.attrs.Erase(kConditionAskersAttr);
  fields.attrs.Erase(kRangeAskersAttr);
  fields.body = list.Close();
  return PrimFunc::Make(std::move(fields));
}

// What plan_storage appends where something is to be stored: the numbers of these scalars.
std::vector<size_t> ArenasOf(const PrimFunc& func) {
  std::vector<size_t> out;
  for (size_t i = 0; i < func.scalars.size(); ++i) {
    if (IsArena(func.scalars[i])) out.push_back(i);
  }
  return out;
}

PrimFunc PackedFields(std::string name, const TargetRef& target) {
  PrimFunc fields;
  fields.name = std::move(name);
  fields.func_kind = FuncKind::kPacked;
  fields.scalars = {VarNode::Make("self", DType::Handle()), VarNode::Make("args", DType::Handle()),
                    VarNode::Make("num_args", DType::Int(32)),
                    VarNode::Make("result", DType::Handle())};
  fields.target = target;
  return fields;
}

/// Builds __tvm_ffi_NAME. Statements go to list_ in the order in which they run: nothing is
/// computed before all arguments are checked, and what the call has made or borrowed is in outputs_
/// and borrowed_ as long as it must be given back.
class Wrapper {
 public:
  Wrapper(const PrimFunc& func, const std::string& name, std::vector<Argument> arguments,
          const Module& module, int pointer_bits)
      : func_(func),
        name_(name),
        arguments_(std::move(arguments)),
        module_(module),
        packed_(PackedFields("__tvm_ffi_" + name, func.target)),
        size_type_(DType::Int(pointer_bits)),
        num_inputs_(arguments_.size() - static_cast<size_t>(func.num_outputs)),
        closure_(
            LocalSlots("closure", func.buffers.size() + func.dims.size() + func.scalars.size())),
        result_shapes_(func.attrs.Get<std::vector<std::string>>(kResultShapesAttr, {})),
        result_dims_(LocalSlots(
            "result_dims", func.attrs.Get<std::vector<std::string>>(kResultDimsAttr, {}).size())),
        outputs_(LocalSlots("outputs",
                            2 * (static_cast<size_t>(func.num_outputs) + result_shapes_.size()))),
        checker_(func, SignatureOf(num_inputs_), args(), AddressOf(closure_), pointer_bits) {}

  Func operator()() {
    if (!is_part()) list_.Add(Evaluate::Make(CallC("tn_core_check_cpu", {}, DType::Int(32))));
    Make(closure_, &list_);
    Make(outputs_, &list_);
    if (has_late_outputs()) Make(result_dims_, &list_);
    SetNone();
    checker_.Begin(&list_);
    Arguments();
    Run();
    if (has_late_outputs()) MakeLateOutputs();
    GiveBack();
    packed_.body = list_.Close();
    return PrimFunc::Make(std::move(packed_));
  }

  /// What it calls besides the core and the function; after it was made.
  std::vector<Func> functions() const {
    std::vector<Func> out = checker_.functions();
    if (has_many_outputs()) out.push_back(DropOutputs());
    for (const auto& [type, maker] : makers_) out.push_back(maker);
    return out;
  }

 private:
  const Var& args() const { return packed_.scalars[1]; }
  const Var& num_args() const { return packed_.scalars[2]; }
  const Var& result() const { return packed_.scalars[3]; }
  // Outputs whose sizes the call finds out: `outputs_` has, behind all outputs, the memory that the
  // call writes for each.
  bool has_late_outputs() const { return !result_shapes_.empty(); }
  // Whoever calls a part of a program brings no outputs.
  bool is_part() const { return func_.attrs.Has(kPartAttr); }
  bool AlwaysMakesOutputs() const { return has_late_outputs() || is_part(); }
  bool IsLate(size_t output) const { return has_late_outputs() && !result_shapes_[output].empty(); }
  int64_t num_values() const {
    return func_.num_outputs + static_cast<int64_t>(result_shapes_.size());
  }
  int32_t num_outputs() const { return static_cast<int32_t>(func_.num_outputs); }

  std::string SignatureOf(size_t count) const {
    return SignatureText(func_, name_, std::span(arguments_).first(count));
  }
  size_t first_output() const {
    return func_.buffers.size() - static_cast<size_t>(func_.num_outputs);
  }

  static Buffer LocalSlots(const char* name, size_t count) {
    Expr size = IndexConst(static_cast<int64_t>(std::max<size_t>(count, 1)));
    return BufferNode::Make(name, DType::Int(64), {size}, Scope::kLocal, nullptr, {}, kSlotBytes);
  }
  static void Make(const Buffer& buffer, StmtList* list) {
    list->Open([buffer](Stmt body) { return Alloc::Make(buffer, std::move(body)); });
  }
  static void SetNone(const Expr& value, StmtList* list) {
    list->Add(StoreAt(value, 0, I64(kNone)));
    list->Add(StoreAt(value, kAnyValue, I64(0)));
  }
  void SetNone() {
    if (!has_many_outputs()) {
      for (int64_t i = 0; i < num_values(); ++i) SetNone(Value(i), &list_);
      return;
    }
    const Var i = VarNode::Make("value", DType::Index());
    StmtList one;
    SetNone(ValueAt(AddressOf(outputs_), i), &one);
    list_.Add(For::Make(i, IndexConst(0), IndexConst(num_values()), ForKind::kSerial, one.Close()));
  }
  /// The address of a value that is made.
  Expr Value(int64_t i) const { return At(AddressOf(outputs_), i * kAnyBytes); }
  static Expr ValueAt(const Expr& values, const Expr& i) {
    return Call::Make(Intrinsic::kPtrOffset, {values, Simplify(i * kAnyBytes)});
  }

  Expr OutputsGiven() const { return Eq(num_args(), I32(static_cast<int64_t>(arguments_.size()))); }

  // Checks what is given; makes the outputs that are not. They can only be made when the inputs
  // tell all dims.
  void Arguments() {
    auto all = static_cast<int64_t>(arguments_.size()), inputs = static_cast<int64_t>(num_inputs_);
    makes_outputs_ = num_outputs() > 0 && InputsTellDims();
    Expr fits = OutputsGiven();
    auto count = [](int64_t n) { return fmt::format("{} argument{}", n, n == 1 ? "" : "s"); };
    std::string expected = fmt::format("Expected {} but got ", count(all));
    if (has_late_outputs()) {
      fits = Eq(num_args(), I32(inputs));
      expected = fmt::format(
          "Expected {} (the sizes of outputs depend on values, so the call makes "
          "them) but got ",
          count(inputs));
    } else if (makes_outputs_) {
      fits = Or(Eq(num_args(), I32(inputs)), fits);
      expected = fmt::format("Expected {}, or {} with outputs, but got ", count(inputs), all);
    } else {
      checker_.set_signature(SignatureOf(arguments_.size()));
    }
    if (!is_part()) list_.Add(checker_.Fail(fits, "TypeError", {Text(expected), num_args()}));
    if (on_device() && first_output() == 0) AskForDevice();
    for (size_t i = 0; i < num_inputs_; ++i) checker_.Check(arguments_[i], i, &list_);
    makes_outputs_ ? checker_.CheckWaiting(&list_) : CheckOutputs(&list_);
    FindSizes();
    checker_.CheckRequirements(&list_);
    if (!makes_outputs_) return;
    StmtList given, made;
    MakeOutputs(&made);
    if (AlwaysMakesOutputs()) return list_.Add(made.Close());
    checker_.set_signature(SignatureOf(arguments_.size()));
    CheckOutputs(&given);
    list_.Add(If::Make(OutputsGiven(), given.Close(), made.Close()));
  }

  // Without inputs it is the outputs' device, and the first of its kind where they are made.
  void AskForDevice() {
    checker_.SetDevice(
        CallC("tn_core_device_of",
              {packed_.scalars[1], num_args(), I32(func_.attrs.GetInt(kDeviceTypeAttr))},
              DType::Int(32)),
        arguments_.empty() ? "" : func_.buffers[0]->name, &list_);
  }

  bool InputsTellDims() const {
    return !UntoldDim(func_, std::span(arguments_).first(num_inputs_));
  }

  void CheckOutputs(StmtList* list) {
    for (size_t i = num_inputs_; i < arguments_.size(); ++i) {
      checker_.Check(arguments_[i], i, list);
    }
    checker_.CheckWaiting(list);
    checker_.CheckApart(list);
  }

  void MakeOutputs(StmtList* list) {
    size_t rank = 1;
    for (size_t i = first_output(); i < func_.buffers.size(); ++i) {
      rank = std::max(rank, func_.buffers[i]->shape.size());
    }
    const Buffer shape = LocalSlots("output_shape", rank);
    Make(shape, list);
    for (size_t i = first_output(); i < func_.buffers.size(); ++i) {
      const size_t output = i - first_output();
      const Expr value =
          Value(static_cast<int64_t>(output) + (IsLate(output) ? func_.num_outputs : 0));
      const Expr slot = At(AddressOf(closure_), static_cast<int64_t>(i) * kSlotBytes);
      if (IsMadeByCall(*func_.buffers[i])) {
        const Func& maker = MakerOf(*func_.buffers[i]);
        list->Add(CallFunc::Make(maker->name, {}, {AddressOf(outputs_), value, slot}));
      } else {
        const Var status = MakeOutput(*func_.buffers[i], shape, value, slot, list);
        list->Add(If::Make(Ne(status, I32(0)), LeaveWith(I32(-1))));
      }
    }
  }

  // Appends the call that makes a tensor; its status.
  Var MakeOutput(const BufferNode& b, const Buffer& shape, const Expr& value, const Expr& slot,
                 StmtList* list) const {
    for (size_t d = 0; d < b.shape.size(); ++d) {
      list->Add(StoreAt(AddressOf(shape), static_cast<int64_t>(d) * 8, b.shape[d]));
    }
    std::vector<Expr> args = {I32(PackedDType(b.dtype)), I32(b.rank()), AddressOf(shape), value,
                              slot};
    return list->Define(b.name + ".status", CallAllocation(std::move(args)));
  }

  // Of a tensor where the function's are.
  Expr CallAllocation(std::vector<Expr> args) const {
    const int64_t device = func_.attrs.GetInt(kDeviceTypeAttr, kCpu);
    if (device != kCpu) args.insert(args.begin(), {I32(device), checker_.device_id()});
    const char* make = device == kCpu ? "tn_core_tensor_alloc" : "tn_core_device_tensor_alloc";
    return CallC(make, std::move(args), DType::Int(32));
  }

  // Of many outputs, those of one type are made by one function.
  bool IsMadeByCall(const BufferNode& b) const {
    return has_many_outputs() && !on_device() &&
           std::all_of(b.shape.begin(), b.shape.end(),
                       [](const Expr& d) { return AsInt(d).has_value(); });
  }

  // f.make_0(the outputs, the value, its slot): an i32 that is returned where it is not 0; then
  // what was made is dropped.
  const Func& MakerOf(const BufferNode& b) {
    std::string type = b.dtype.ToString();
    for (const Expr& d : b.shape) type += fmt::format(" {}", *AsInt(d));
    auto [it, is_new] = makers_.try_emplace(type);
    if (!is_new) return it->second;
    const Var outputs = VarNode::Make("outputs", DType::Handle());
    const Var value = VarNode::Make("value", DType::Handle());
    const Var slot = VarNode::Make("slot", DType::Handle());
    PrimFunc fields;
    fields.name = fmt::format("{}.make_{}", func_.name, makers_.size() - 1);
    fields.func_kind = FuncKind::kHost;
    fields.target = func_.target;
    fields.scalars = {outputs, value, slot};
    StmtList body;
    const Buffer shape = LocalSlots("output_shape", b.shape.size());
    Make(shape, &body);
    const Var status = MakeOutput(b, shape, value, slot, &body);
    body.Add(If::Make(
        Ne(status, I32(0)),
        Seq::Make({CallFunc::Make(DropName(), {}, {Expr(outputs)}), Return::Make(I32(-1))})));
    body.Add(Return::Make(I32(0)));
    fields.body = body.Close();
    it->second = PrimFunc::Make(std::move(fields));
    return it->second;
  }

  static Stmt Release(const Expr& values, const Expr& i) {
    return Evaluate::Make(CallC("tn_core_release", {ValueAt(values, i)}, DType::Handle()));
  }
  static Stmt Release(const Expr& values, int64_t i) { return Release(values, IndexConst(i)); }

  // There are as many ways out as outputs that are made: a call, where each of them would be long.
  bool has_many_outputs() const {
    constexpr int64_t kFewValues = 4;
    return num_values() > kFewValues;
  }
  std::string DropName() const { return func_.name + ".drop_outputs"; }
  Func DropOutputs() const {
    PrimFunc fields;
    fields.name = DropName();
    fields.func_kind = FuncKind::kDevice;
    fields.target = func_.target;
    const Var values = VarNode::Make("values", DType::Handle());
    fields.scalars = {values};
    const Var i = VarNode::Make("i", DType::Index());
    fields.body = For::Make(i, IndexConst(0), IndexConst(num_values()), ForKind::kSerial,
                            Release(values, Expr(i)));
    return PrimFunc::Make(std::move(fields));
  }

  // Outputs made and memory borrowed so far are dropped.
  Stmt LeaveWith(Expr status) {
    std::vector<Stmt> out = Releases();
    if (has_many_outputs()) {
      out.push_back(CallFunc::Make(DropName(), {}, {AddressOf(outputs_)}));
    } else {
      for (int64_t i = 0; i < num_values(); ++i) out.push_back(Release(AddressOf(outputs_), i));
    }
    out.push_back(Return::Make(std::move(status)));
    return Seq::Make(std::move(out));
  }

  // Runs what finds the sizes that are not told.
  void FindSizes() {
    using Names = std::vector<std::string>;
    for (const std::string& name : func_.attrs.Get<Names>(kFindersAttr, {})) {
      const Func finder = module_.Find(name);
      TN_CHECK(finder, "no function {}", name);
      const Names names = finder->attrs.Get<Names>(kFoundDimsAttr, {});
      const Buffer found = LocalSlots("found", names.size());
      const size_t count = finder->buffers.size() + finder->dims.size() + finder->scalars.size();
      const Buffer closure = LocalSlots("finder", count);
      Make(found, &list_);
      Make(closure, &list_);
      const auto set = [&](size_t slot, const Expr& value) {
        list_.Add(StoreAt(AddressOf(closure), static_cast<int64_t>(slot) * kSlotBytes, value));
      };
      size_t slot = 0;
      for (; slot < first_output(); ++slot)
        set(slot,
            LoadAt(DType::Handle(), AddressOf(closure_), static_cast<int64_t>(slot) * kSlotBytes));
      for (size_t i = 0; !on_device() && i < names.size(); ++i)
        set(slot++, At(AddressOf(found), static_cast<int64_t>(i) * kSlotBytes));
      for (const Var& dim : finder->dims) set(slot++, DimOfThis(dim->name));
      SetScalars(*finder, closure, found);
      on_device() ? RunOnDevice(*finder, closure) : Launch(*finder, closure);
      for (size_t i = 0; i < names.size(); ++i) {
        const Expr value =
            LoadAt(DType::Index(), AddressOf(found), static_cast<int64_t>(i) * kSlotBytes);
        checker_.Found(DimOfThis(names[i]), value, &list_);
      }
    }
  }

  Var DimOfThis(const std::string& name) const {
    for (const Var& dim : func_.dims) {
      if (dim->name == name) return dim;
    }
    TN_UNREACHABLE();
  }

  void Run() {
    SetScalars(func_, closure_, result_dims_);
    on_device() ? RunOnDevice(func_, closure_) : Launch(func_, closure_);
  }

  // Those that are not borrowed: the device, and where the function tells sizes.
  void SetScalars(const PrimFunc& func, const Buffer& closure, const Buffer& told) {
    for (size_t i = 0; i < func.scalars.size(); ++i) {
      const std::string& scalar = func.scalars[i]->name;
      if (scalar != kDeviceId && scalar != kResultDims) continue;
      const size_t slot = func.buffers.size() + func.dims.size() + i;
      // The whole slot: the runtime compares slots of calls.
      const Expr value = scalar == kDeviceId ? CastExpr::Make(DType::Int(64), checker_.device_id())
                                             : AddressOf(told);
      list_.Add(StoreAt(AddressOf(closure), static_cast<int64_t>(slot) * kSlotBytes, value));
    }
  }

  // What belongs to a call of a function; of this one, by its own name.
  std::string NameIn(const PrimFunc& func, const std::string& name) const {
    return &func == &func_ ? name : fmt::format("{}.{}", func.name, name);
  }

  // A host function whose slots are filled, but for the memory that it borrows, on a team.
  void Launch(const PrimFunc& func, const Buffer& closure) {
    VarMap dims;  // the function's, as this one's
    for (const Var& dim : func.dims) dims[dim.get()] = DimOfThis(dim->name);
    BorrowArenas(func, closure, dims);
    Expr team = TeamSize(func, dims);
    Var status =
        list_.Define(NameIn(func, "status"),
                     CallC("tn_core_run_team", {Text("@" + func.name), AddressOf(closure), team},
                           DType::Int(32)));
    for (Stmt& release : Releases()) list_.Add(std::move(release));
    borrowed_.clear();
    list_.Add(If::Make(Ne(status, I32(0)), LeaveWith(status)));
  }

  // The sizes are known now: tensors of them take over what the call wrote.
  void MakeLateOutputs() {
    std::vector<NodeRef> scope(func_.dims.begin(), func_.dims.end());
    int64_t slot = 0;
    for (const std::string& name : func_.attrs.Get<std::vector<std::string>>(kResultDimsAttr, {})) {
      scope.push_back(
          list_.Define(name, LoadAt(DType::Index(), AddressOf(result_dims_), slot++ * kSlotBytes)));
    }
    Buffer data = LocalSlots("late_data", 1);
    Make(data, &list_);
    for (size_t k = 0; k < result_shapes_.size(); ++k) {
      if (!IsLate(k)) continue;
      const size_t i = first_output() + k;
      const BufferNode& b = *func_.buffers[i];
      std::vector<Expr> sizes;
      for (std::string_view text : Split(result_shapes_[k], ';')) {
        Expected<Expr> size = ParseExpr(text, scope);
        TN_CHECK(size, "the size '{}' of '{}' is none", text, b.name);
        sizes.push_back(*size);
      }
      Buffer shape = LocalSlots("late_shape", sizes.size());
      Make(shape, &list_);
      Expr bytes = IndexConst(b.dtype.Bytes());
      for (size_t d = 0; d < sizes.size(); ++d) {
        list_.Add(StoreAt(AddressOf(shape), static_cast<int64_t>(d) * 8, sizes[d]));
        bytes = bytes * sizes[d];
      }
      const Expr value = At(AddressOf(outputs_), static_cast<int64_t>(k) * kAnyBytes);
      std::vector<Expr> args = {I32(PackedDType(b.dtype)), I32(static_cast<int64_t>(sizes.size())),
                                AddressOf(shape), value, AddressOf(data)};
      const Var status = list_.Define(b.name + ".status", CallAllocation(std::move(args)));
      list_.Add(If::Make(Ne(status, I32(0)), LeaveWith(I32(-1))));
      const Expr to = LoadAt(DType::Handle(), AddressOf(data), 0);
      const Expr from =
          LoadAt(DType::Handle(), AddressOf(closure_), static_cast<int64_t>(i) * kSlotBytes);
      Copy(to, from, bytes, b.name);
      const int64_t memory = static_cast<int64_t>(k) + func_.num_outputs;
      list_.Add(Evaluate::Make(CallC(
          "tn_core_release", {At(AddressOf(outputs_), memory * kAnyBytes)}, DType::Handle())));
      SetNone(Value(memory), &list_);
    }
  }

  // Of the device's memory, in the order of the stream, or of the host's.
  void Copy(const Expr& to, const Expr& from, const Expr& bytes, const std::string& name) {
    if (!on_device()) {
      list_.Add(Evaluate::Make(
          CallC("memcpy", {to, from, CastExpr::Make(size_type_, bytes)}, DType::Handle())));
      return;
    }
    const Var status = list_.Define(
        name + ".copied", CallC("tn_core_device_copy",
                                {I32(func_.attrs.GetInt(kDeviceTypeAttr)), checker_.device_id(), to,
                                 from, CastExpr::Make(DType::Int(64), bytes)},
                                DType::Int(32)));
    list_.Add(If::Make(Ne(status, I32(0)), LeaveWith(I32(-1))));
  }

  // A tn_device_call, which says what the runtime needs to run the function: its code and weights,
  // the arenas that it wants, and which slots it gets them in.
  void RunOnDevice(const PrimFunc& func, const Buffer& closure) {
    const auto slot_of = [&](size_t scalar) {
      return I64(static_cast<int64_t>(func.buffers.size() + func.dims.size() + scalar));
    };
    const std::vector<size_t> arenas = ArenasOf(func);
    const Buffer sizes = LocalSlots("arena_size", arenas.size());
    Make(sizes, &list_);
    if (!arenas.empty()) {
      VarMap dims;
      for (const Var& dim : func.dims) dims[dim.get()] = DimOfThis(dim->name);
      const std::vector<Expr> bytes = ArenaSizes(func, sizes, dims);
      if (!module_.Find(func.name + ".arena_bytes"))
        list_.Add(StoreAt(AddressOf(sizes), 0, bytes.at(0)));
    }
    Expr weights = I64(0), base = I64(0), weights_slot = I64(-1);
    for (size_t i = 0; i < func.scalars.size(); ++i) {
      if (func.scalars[i]->name != kDeviceWeights) continue;
      weights = Text(std::string("@") + kDeviceWeightsTable);
      base = Call::Make(Intrinsic::kWeightsBase, {}, DType::Handle());
      weights_slot = slot_of(i);
    }
    const auto buffers = static_cast<int64_t>(func.buffers.size());
    const Expr id = CastExpr::Make(DType::Int(64), checker_.device_id());
    const std::vector<Expr> fields = {
        Text("@" + func.name),
        Text(std::string("@") + kDeviceCode),
        Text(std::string("@") + kDeviceState),
        weights,
        base,
        AddressOf(sizes),
        I64(static_cast<int64_t>(arenas.size())),
        I64(buffers),
        I64(buffers + static_cast<int64_t>(func.dims.size() + func.scalars.size())),
        weights_slot,
        arenas.empty() ? I64(-1) : slot_of(arenas[0]),
        I64(func.attrs.GetInt(kDeviceTypeAttr)),
        id,
        I64(func.attrs.Get<bool>(kRepeatsAttr, false) ? kCallRepeats : 0)};
    const Buffer call = LocalSlots("call", fields.size());
    Make(call, &list_);
    for (size_t i = 0; i < fields.size(); ++i)
      list_.Add(StoreAt(AddressOf(call), static_cast<int64_t>(i) * kSlotBytes, fields[i]));
    const Var status = list_.Define(
        NameIn(func, "status"),
        CallC("tn_core_device_run", {AddressOf(call), AddressOf(closure)}, DType::Int(32)));
    list_.Add(If::Make(Ne(status, I32(0)), LeaveWith(status)));
  }

  // The largest that has work for all; 0 stands for the pool's.
  static Expr TeamSize(const PrimFunc& func, const VarMap& dims) {
    const int64_t most = func.attrs.GetInt("max_team");
    Expr width = TeamWidthOf(func);
    if (!width || most == 1) return I32(most);
    width = Substitute(width, dims);
    constexpr int64_t kNoLimit = std::numeric_limits<int32_t>::max();
    Expr size = Max(IndexConst(1), Min(width, IndexConst(most > 0 ? most : kNoLimit)));
    return CastExpr::Make(DType::Int(32), Simplify(size));
  }

  // How large a function's arenas are; those that dims decide are computed into `sizes`.
  std::vector<Expr> ArenaSizes(const PrimFunc& func, const Buffer& sizes, const VarMap& dims) {
    const Func sizer = module_.Find(func.name + ".arena_bytes");
    if (!sizer) return {I64(func.attrs.GetInt("arena_bytes"))};
    const Range all = RangeNode::Make(IndexConst(0), sizes->shape[0]);
    std::vector<Expr> values, out;
    for (const Var& dim : func.dims) values.push_back(dims.at(dim.get()));
    list_.Add(CallFunc::Make(sizer->name, {RegionNode::Make(sizes, {all})}, std::move(values)));
    for (size_t i = 0; i < ArenasOf(func).size(); ++i)
      out.push_back(Load::Make(sizes, {IndexConst(static_cast<int64_t>(i))}));
    return out;
  }

  void BorrowArenas(const PrimFunc& func, const Buffer& closure, const VarMap& dims) {
    const std::vector<size_t> arenas = ArenasOf(func);
    if (arenas.empty()) return;
    packed_.attrs.Set("instances", Instances());
    const Buffer sizes = LocalSlots("arena_size", arenas.size());
    if (module_.Find(func.name + ".arena_bytes")) Make(sizes, &list_);
    const std::vector<Expr> bytes = ArenaSizes(func, sizes, dims);
    for (size_t i = 0; i < arenas.size(); ++i) {
      Expr borrow =
          CallC("tn_core_arena_acquire", {Text("@" + Instances()), bytes[i]}, DType::Handle());
      Var arena = list_.Define(NameIn(func, func.scalars[arenas[i]]->name), borrow);
      list_.Add(If::Make(Eq(Bits(arena), I64(0)), LeaveWith(I32(-1))));
      const size_t slot = func.buffers.size() + func.dims.size() + arenas[i];
      list_.Add(StoreAt(AddressOf(closure), static_cast<int64_t>(slot) * kSlotBytes, arena));
      borrowed_.push_back(arena);
    }
  }

  std::vector<Stmt> Releases() const {
    std::vector<Stmt> out;
    for (const Var& arena : borrowed_) {
      out.push_back(Evaluate::Make(
          CallC("tn_core_arena_release", {Text("@" + Instances()), arena}, DType::Handle())));
    }
    return out;
  }

  bool on_device() const { return func_.attrs.Has(kDeviceTypeAttr); }

  std::string Instances() const {
    return func_.attrs.Has("export_name") ? "tn_instances_" + name_ : "tn_main_instances";
  }

  void GiveBack() {
    Expr give = CallC("tn_core_return", {AddressOf(outputs_), I32(num_outputs()), result()},
                      DType::Int(32));
    StmtList none;
    none.Add(StoreAt(result(), 0, I64(kNone)));
    none.Add(StoreAt(result(), 8, I64(0)));
    Stmt nothing = none.Close();
    const Stmt made = Evaluate::Make(give);
    list_.Add(!makes_outputs_        ? nothing
              : AlwaysMakesOutputs() ? made
                                     : If::Make(OutputsGiven(), nothing, made));
    list_.Add(Return::Make(I32(0)));
  }

  const PrimFunc& func_;
  const std::string name_;
  const std::vector<Argument> arguments_;
  const Module& module_;
  PrimFunc packed_;
  const DType size_type_;  // C's size_t
  const size_t num_inputs_;
  const Buffer closure_;
  const std::vector<std::string> result_shapes_;  // none, or one for each output
  const Buffer result_dims_;
  const Buffer outputs_;  // tn_ffi_any each
  ArgumentChecker checker_;
  StmtList list_;
  bool makes_outputs_ = false;
  std::vector<Var> borrowed_;           // arenas, while the call has them
  std::map<std::string, Func> makers_;  // by the type of what they make
};

/// __tvm_ffi__metadata_NAME: the JSON that TVM-FFI's stub generators read. The string is static:
/// the library stays.
Func Metadata(const PrimFunc& func, const std::string& name,
              const std::vector<Argument>& arguments) {
  const std::string tensor = R"({"type":"ffi.Tensor"})";
  std::string result =
      func.num_outputs == 1 ? tensor : R"({"type":"ffi.Array","args":[)" + tensor + "]}";
  if (func.num_outputs == 0) result = R"({"type":"None"})";
  std::string args = result;
  for (size_t i = 0; i < arguments.size() - static_cast<size_t>(func.num_outputs); ++i) {
    const Var number = arguments[i].VarOf(func);
    const char* type = !number                   ? "ffi.Tensor"
                       : number->dtype.IsBool()  ? "bool"
                       : number->dtype.IsFloat() ? "float"
                                                 : "int";
    args += fmt::format(R"(,{{"type":"{}"}})", type);
  }
  std::string schema = R"({"type":"ffi.Function","args":[)" + args + "]}";
  PrimFunc fields = PackedFields("__tvm_ffi__metadata_" + name, func.target);
  const Var& out = fields.scalars[3];
  fields.body =
      Seq::Make({StoreAt(out, 0, I64(kRawStr)),
                 StoreAt(out, 8, Text(fmt::format(R"({{"type_schema":{}}})", QuoteJson(schema)))),
                 Return::Make(I32(0))});
  return PrimFunc::Make(std::move(fields));
}

/// NAME(buffers…, dims…, scalars…, workspace): F for callers who know its signature, on their own
/// thread.
// Appends what it calls to `called`.
Func Plain(const PrimFunc& func, const std::string& name, const std::vector<Argument>& arguments,
           int pointer_bits, std::vector<Func>* called) {
  PrimFunc fields;
  fields.name = name;
  fields.func_kind = FuncKind::kPacked;
  fields.target = func.target;
  fields.dims = func.dims;
  fields.dim_lo = func.dim_lo, fields.dim_hi = func.dim_hi, fields.dim_step = func.dim_step;
  fields.buffers = func.buffers;
  fields.num_outputs = func.num_outputs;
  Var workspace = VarNode::Make("workspace", DType::Handle());
  fields.scalars = func.scalars;
  const bool needs_arena = !ArenasOf(func).empty();  // one: these functions are for CPUs
  if (needs_arena) fields.scalars.pop_back();
  fields.scalars.push_back(workspace);
  fields.attrs.Set(kPlain, name);
  StmtList list;
  const bool checked = func.attrs.Get<bool>("plain_checks", false);
  if (checked) list.Add(Evaluate::Make(CallC("tn_core_check_cpu", {}, DType::Int(32))));
  std::vector<Expr> values;
  for (const Buffer& b : func.buffers) values.push_back(AddressOf(b));
  values.insert(values.end(), func.dims.begin(), func.dims.end());
  values.insert(values.end(), fields.scalars.begin(), fields.scalars.end() - 1);
  if (needs_arena) values.push_back(workspace);
  Expr count = IndexConst(static_cast<int64_t>(std::max<size_t>(values.size(), 1)));
  Buffer closure =
      BufferNode::Make("closure", DType::Int(64), {count}, Scope::kLocal, nullptr, {}, kSlotBytes);
  list.Open([closure](Stmt body) { return Alloc::Make(closure, std::move(body)); });
  for (size_t i = 0; i < values.size(); ++i) {
    list.Add(StoreAt(AddressOf(closure), static_cast<int64_t>(i) * kSlotBytes, values[i]));
  }
  if (checked) {
    ArgumentChecker checker(func, SignatureText(func, name, arguments), nullptr, AddressOf(closure),
                            pointer_bits);
    checker.CheckPlain(needs_arena ? workspace : nullptr, &list);
    *called = checker.functions();
  }
  list.Add(CallFunc::Make(func.name, {}, {AddressOf(closure)}));
  list.Add(Return::Make(I32(0)));
  fields.body = list.Close();
  return PrimFunc::Make(std::move(fields));
}

}  // namespace

Module MakePacked(const Module& module, const PassContext& context) {
  Module out = module;
  const int pointer_bits = context.target ? context.target->Cpu().PointerBits() : 64;
  for (const auto& [key, func] : module.funcs) {
    if (func->func_kind != FuncKind::kHost) continue;
    bool is_body = func->buffers.empty() && func->dims.empty() && func->scalars.size() == 1 &&
                   func->scalars[0]->name == "closure";
    if (is_body) continue;
    auto arguments = ArgumentsOf(*func);
    bool exported = func->attrs.Get<bool>("exported", false);
    if (exported && !arguments) {
      context.Remark(fmt::format("not exported: {}", arguments.errors()[0].message));
    }
    if (exported && arguments) {
      std::string name = func->attrs.GetString("export_name", func->name);
      Wrapper wrapper(*func, name, *arguments, module, pointer_bits);
      out.Add(wrapper());
      for (const Func& f : wrapper.functions()) out.Add(f);
      if (!func->attrs.Has(kPartAttr)) out.Add(Metadata(*func, name, *arguments));
      if (func->attrs.Has(kPlain)) {
        std::vector<Func> called;
        out.Add(Plain(*func, func->attrs.GetString(kPlain), *arguments, pointer_bits, &called));
        for (const Func& f : called) out.Add(f);
      }
    }
    out.Add(BodyOf(*func));
  }
  return out;
}

}  // namespace tenon
