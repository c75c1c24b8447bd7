// A call from outside brings an array of tagged values; a kernel wants addresses and sizes. What
// stands between is written here as loop IR, an assert for each thing that could be wrong, so that
// it is simplified, interpreted and compiled like any other code.
//
// The order of checks is the order in which values become known. Each argument is taken apart into
// locals named after it (x.type_index, x.tensor, x.shape); the first place at which a dim stands
// alone, a number or an entry of a shape, defines it for everything behind, and every later place
// has to agree. A shape such as [2 * n + 1] whose n is not known yet waits and is tried again when
// more is known; it may define n itself. For a: f32[n, 4] with n: 1..=64 step 3, among others,
//
//   let a.type_index = ptr_load<i32>(args, 0)
//   assert a.type_index == 70i32 || a.type_index == 7i32, "TypeError",
//       "Parameter `a` expects tensor but got type_index=", a.type_index, …
//   …
//   let a.shape = ptr_load<handle>(a.tensor, 24)
//   assert 1 <= ptr_load<index>(a.shape, 0) && ptr_load<index>(a.shape, 0) < 65, "ValueError",
//       "Parameter `a` expects shape[0] in 1..=64 but got shape[0]=", …
//   let n = ptr_load<index>(a.shape, 0)

#include "loop/pass/host/argument_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "arith/analyzer.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "loop/pass/packed_abi.h"
#include "loop/requirements.h"
#include "support/check.h"
#include "support/strings.h"
#include "target/reached.h"

namespace tenon {

using namespace packed;  // NOLINT(google-build-using-namespace): its words, in the one file made of
                         // them

namespace {

uint8_t DlCode(DType type) {
  switch (type.code) {
    case TypeCode::kInt:
    case TypeCode::kIndex: return 0;
    case TypeCode::kUInt: return 1;
    case TypeCode::kFloat: return 2;
    case TypeCode::kHandle: return 3;
    case TypeCode::kBFloat: return 4;
    case TypeCode::kFloat8: return static_cast<uint8_t>(type.float8);
    case TypeCode::kBool: return 6;
    case TypeCode::kString: break;
  }
  TN_UNREACHABLE();
}

Expr Product(const std::vector<Expr>& factors, size_t first) {
  Expr product = IndexConst(1);
  for (size_t i = first; i < factors.size(); ++i) product = product * factors[i];
  return product;
}

constexpr int64_t kNoDevice = -1;  // that a tensor says
// No tensor that the runtime makes or lets into a program has a larger size.
constexpr int64_t kMostOfTensor = (int64_t{1} << 47) - 1;

// What to write, in the languages that callers have.
std::string HowToMove(const std::string& device) {
  if (device == "cuda") return "x.to('cuda') in PyTorch, tenon::Tensor::CopyFrom in C++";
  return fmt::format("tenon.nd.array(x, tenon.{}(0)) in Python, tenon::Tensor::CopyFrom in C++",
                     device);
}

Expr IsEmpty(const BufferNode& b) { return Eq(Product(b.shape, 0), IndexConst(0)); }

// What a caller sees of a number: sizes are 64-bit integers.
DType Passed(DType type) { return type.IsIndex() ? DType::Int(64) : type; }

}  // namespace

int64_t packed::PackedDType(DType type) {
  return DlCode(type) | int64_t{type.StorageBits()} << 8 | int64_t{type.lanes} << 16;
}

std::vector<int64_t> packed::DeviceWeightOffsets(const Module& module) {
  std::vector<int64_t> out;
  for (const auto& [name, f] : module.funcs) {
    if (f->func_kind != FuncKind::kHost || !f->attrs.Has(kDeviceTypeAttr)) continue;
    for (const int64_t offset : f->attrs.GetInts("weight_offsets")) {
      if (std::find(out.begin(), out.end(), offset) == out.end()) out.push_back(offset);
    }
  }
  return out;
}

bool packed::HasHandles(const PrimFunc& func) {
  const DeviceRow* device = FindDevice(func.attrs.GetInt(kDeviceTypeAttr, kCpu));
  return device && device->handles;
}

std::string packed::DeviceName(int64_t type) {
  const DeviceRow* device = FindDevice(type);
  return device ? std::string(device->name) : fmt::format("device(type={})", type);
}

std::string SignatureText(const PrimFunc& func, const std::string& name,
                          std::span<const Argument> arguments) {
  // More than a message could hold, in each of the messages, would be most of the code.
  constexpr size_t kMostBytes = 2000;
  std::vector<std::string> params;
  size_t bytes = 0;
  for (const Argument& a : arguments) {
    if (!params.empty()) bytes += params.back().size();
    if (bytes > kMostBytes) {
      params.push_back(fmt::format("and {} more", arguments.size() - params.size()));
      break;
    }
    if (const Var var = a.VarOf(func)) {
      params.push_back(fmt::format("{}: {}", var->name, LongName(Passed(var->dtype))));
      continue;
    }
    const BufferNode& b = *func.buffers[a.index];
    std::vector<std::string> dims;
    for (const Expr& d : b.shape) dims.push_back(ToString(d));
    params.push_back(
        fmt::format("{}: Tensor([{}], {})", b.name, Join(dims, ", "), LongName(b.dtype)));
  }
  return fmt::format("{}({})", name, Join(params, ", "));
}

/// Where a dim's value is given: in a shape, or as a number.
struct ArgumentChecker::Place {
  Expr value;
  std::string name;       // "a.shape[0]", "n"
  std::string parameter;  // "a", "n"; "" where it was found
  std::string what;       // what messages call it: "shape[0]", "a value"
  std::string came;       // … and what came: "shape[0]=", ""
  bool is_size = false;   // of a tensor, as it is
};

ArgumentChecker::ArgumentChecker(const PrimFunc& func, std::string signature, Expr args,
                                 Expr closure, int pointer_bits)
    : func_(func),
      fields_(pointer_bits == 32 ? kFields32 : kFields64),
      signature_(std::move(signature)),
      args_(std::move(args)),
      closure_(std::move(closure)),
      made_(func.attrs.Get<std::vector<std::string>>(kPartAttr, {})) {}

Stmt ArgumentChecker::Fail(Expr condition, const char* kind, std::vector<Expr> parts) const {
  parts.push_back(Text(fmt::format("\nwhen calling: `{}`", signature_)));
  return Assert::Make(std::move(condition), kind, std::move(parts));
}

// "Parameter `x` expects ", where the name may be known to the call alone, then the rest.
std::vector<Expr> ArgumentChecker::About(const std::string& name, const std::string& what,
                                         std::vector<Expr> rest) const {
  std::vector<Expr> parts;
  if (name_) {
    parts = {Text("Parameter `"), name_, Text(fmt::format("` expects {}", what))};
  } else {
    parts = {Text(fmt::format("Parameter `{}` expects {}", name, what))};
  }
  parts.insert(parts.end(), rest.begin(), rest.end());
  return parts;
}

void ArgumentChecker::Check(const Argument& argument, size_t position, StmtList* list) {
  if (argument.kind == Argument::Kind::kBuffer) {
    return IsAlike(argument.index) ? CheckByCall(argument.index, position, list)
                                   : CheckBuffer(argument.index, position, list);
  }
  CheckNumber(argument.VarOf(func_), argument, position, list);
}

Stmt ArgumentChecker::StoreSlot(const Argument& argument, Expr value) const {
  size_t slot = argument.index;
  if (argument.kind != Argument::Kind::kBuffer) slot += func_.buffers.size();
  if (argument.kind == Argument::Kind::kScalar) slot += func_.dims.size();
  return StoreAt(closure_, static_cast<int64_t>(slot) * kSlotBytes, std::move(value));
}

// A bool, an int or a float as the convention has them, as the parameter's type: what is wider
// takes what is narrower, as in Python.
Expr ArgumentChecker::NumberOf(const Var& var, size_t position, StmtList* list) const {
  const int64_t any = static_cast<int64_t>(position) * kAnyBytes;
  Var type = list->Define(var->name + ".type_index", LoadAt(DType::Int(32), args_, any));
  auto is = [&](int64_t index) { return Eq(type, I32(index)); };
  Expr fits = Or(is(kInt), is(kBool));
  const bool is_float = var->dtype.IsFloat();
  if (is_float) fits = Or(is(kFloat), fits);
  const char* name = is_float ? "float" : var->dtype.IsBool() ? "bool" : "int";
  list->Add(Fail(
      fits, "TypeError",
      {Text(fmt::format("Parameter `{}` expects {} but got type_index=", var->name, name)), type}));
  Expr whole = LoadAt(DType::Int(64), args_, any + kAnyValue);
  if (!is_float) return list->Define(var->name + ".given", whole);
  Expr real = LoadAt(DType::Float(64), args_, any + kAnyValue);
  return list->Define(var->name + ".given",
                      Select::Make(is(kFloat), real, CastExpr::Make(DType::Float(64), whole)));
}

// An integer must fit its type.
void ArgumentChecker::CheckFits(const Var& var, const Expr& given, StmtList* list) const {
  const DType type = var->dtype;
  if (type.code != TypeCode::kInt && type.code != TypeCode::kUInt) return;
  auto expects = [&](const std::string& what) {
    return std::vector<Expr>{
        Text(fmt::format("Parameter `{}` expects a value {} but got ", var->name, what)), given};
  };
  if (type.bits >= 64) {
    if (type.IsSigned()) return;
    list->Add(Fail(Ge(given, I64(0)), "ValueError", expects("of at least 0")));
    return;
  }
  const int64_t low = type.IsSigned() ? -(int64_t{1} << (type.bits - 1)) : 0;
  const int64_t high = (int64_t{1} << (type.bits - (type.IsSigned() ? 1 : 0))) - 1;
  list->Add(Fail(And(Ge(given, I64(low)), Le(given, I64(high))), "ValueError",
                 expects(fmt::format("in {}..={}", low, high))));
}

void ArgumentChecker::CheckNumber(const Var& var, const Argument& argument, size_t position,
                                  StmtList* list) {
  Expr given = NumberOf(var, position, list);
  if (argument.kind == Argument::Kind::kDim) {
    const Place place{CastExpr::Make(DType::Index(), given), var->name, var->name, "a value", ""};
    return known_.count(var.get()) == 0 ? DefineDim(var, place, list) : Agree(var, place, list);
  }
  CheckFits(var, given, list);
  Expr value =
      var->dtype.IsBool() ? Ne(given, I64(0)) : CastExpr::Make(var->dtype, std::move(given));
  list->Add(StoreSlot(argument, std::move(value)));
}

// Of many buffers, those whose checks need nothing but constants are checked by functions, one for
// all that differ in nothing but their names.
bool ArgumentChecker::IsAlike(size_t i) const {
  constexpr size_t kFewBuffers = 16;
  const std::vector<Expr>& shape = func_.buffers[i]->shape;
  return !name_ && !IsMade(i) && func_.buffers[i]->strides.empty() &&
         func_.buffers.size() > kFewBuffers && !func_.attrs.Has(kDeviceTypeAttr) &&
         std::all_of(shape.begin(), shape.end(),
                     [](const Expr& d) { return AsInt(d).has_value(); });
}

// call f.check_0(the argument's value, its name, its slot): an i32 that is returned where it is
// not 0.
void ArgumentChecker::CheckByCall(size_t i, size_t position, StmtList* list) {
  const BufferNode& b = *func_.buffers[i];
  std::string kind = fmt::format("{} {} {}", b.dtype.ToString(), b.align, signature_);
  for (const Expr& d : b.shape) kind += fmt::format(" {}", *AsInt(d));
  auto [it, is_new] = alike_.try_emplace(kind);
  if (is_new) {
    PrimFunc one;
    one.name = fmt::format("{}.check_{}", func_.name, alike_.size() - 1);
    one.func_kind = FuncKind::kHost;
    one.target = func_.target;
    one.buffers = {func_.buffers[i]};
    if (is_part()) one.attrs.Set(kPartAttr, std::vector<std::string>{""});
    const Var value = VarNode::Make("value", DType::Handle());
    const Var name = VarNode::Make("name", DType::Handle());
    const Var slot = VarNode::Make("slot", DType::Handle());
    const Var fact = VarNode::Make("fact", DType::Handle());
    ArgumentChecker checker(one, signature_, value, slot, &fields_ == &kFields32 ? 32 : 64);
    checker.name_ = name;
    if (facts_) checker.facts_ = fact;
    StmtList body;
    checker.CheckBuffer(0, 0, &body);
    body.Add(Return::Make(I32(0)));
    PrimFunc fields = one;
    fields.buffers.clear();
    fields.scalars = {value, name, slot};
    if (facts_) fields.scalars.push_back(fact);
    fields.body = body.Close();
    it->second = PrimFunc::Make(std::move(fields));
  }
  std::vector<Expr> given = {At(args_, static_cast<int64_t>(position) * kAnyBytes), Text(b.name),
                             At(closure_, static_cast<int64_t>(i) * kSlotBytes)};
  if (facts_) given.push_back(At(facts_, static_cast<int64_t>(i) * kFactBytes));
  list->Add(CallFunc::Make(it->second->name, {}, std::move(given)));
}

void ArgumentChecker::Begin(StmtList* list) {
  if (!HasManyPairs(func_)) return;
  const auto bytes = static_cast<int64_t>(func_.buffers.size()) * kFactBytes;
  const Buffer facts = BufferNode::Make("facts", DType::Int(64), {IndexConst(bytes / kSlotBytes)},
                                        Scope::kLocal, nullptr, {}, kSlotBytes);
  list->Open([facts](Stmt body) { return Alloc::Make(facts, std::move(body)); });
  facts_ = AddressOf(facts);
}

// A handle stands for all of its memory.
void ArgumentChecker::StoreFactOf(size_t i, StmtList* list) const {
  if (!facts_) return;
  const Expr bytes = BytesOf(i);
  StoreFact(At(facts_, static_cast<int64_t>(i) * kFactBytes),
            HasHandles(func_) ? Simplify(Min(bytes, I64(1))) : bytes,
            name_ ? Expr(name_) : Text(func_.buffers[i]->name), list);
}

std::vector<Func> ArgumentChecker::functions() const {
  std::vector<Func> out;
  for (const auto& [kind, function] : alike_) out.push_back(function);
  if (HasManyPairs(func_)) out.push_back(FindOverlapFunc(func_.target));
  return out;
}

bool ArgumentChecker::is_part() const { return func_.attrs.Has(kPartAttr); }

bool ArgumentChecker::IsMade(size_t i) const { return i < made_.size() && !made_[i].empty(); }

bool ArgumentChecker::IsMadeWith(size_t i, size_t d) const {
  return IsMade(i) && Split(made_[i], ',')[d].find('?') == std::string_view::npos;
}

// The address of the DLTensor that an argument is.
Var ArgumentChecker::TensorOf(size_t i, size_t position, StmtList* list) const {
  const BufferNode& b = *func_.buffers[i];
  const int64_t any = static_cast<int64_t>(position) * kAnyBytes;
  if (IsMade(i)) {
    const Expr object = LoadAt(DType::Handle(), args_, any + kAnyValue);
    return list->Define(b.name + ".tensor", At(object, kObjectHeaderBytes));
  }
  Var type = list->Define(b.name + ".type_index", LoadAt(DType::Int(32), args_, any));
  list->Add(Fail(Or(Eq(type, I32(kTensor)), Eq(type, I32(kDlTensorPtr))), "TypeError",
                 About(b.name, "tensor but got type_index=", {type})));
  Var object = list->Define(b.name + ".object", LoadAt(DType::Handle(), args_, any + kAnyValue));
  CheckThere(b.name, "a tensor", object, BoolConst(false), list);
  Expr behind_header = At(object, kObjectHeaderBytes);
  return list->Define(b.name + ".tensor",
                      Select::Make(Eq(type, I32(kTensor)), behind_header, object));
}

void ArgumentChecker::CheckType(const BufferNode& b, const Var& tensor, StmtList* list) const {
  Expr ndim = LoadAt(DType::Int(32), tensor, fields_.ndim);
  list->Add(Fail(Eq(ndim, I32(b.rank())), "ValueError",
                 About(b.name, fmt::format("ndim={} but got ndim=", b.rank()), {ndim})));
  Expr dtype = LoadAt(DType::UInt(32), tensor, fields_.dtype);
  list->Add(Fail(Eq(dtype, IntConst::Make(DType::UInt(32), PackedDType(b.dtype))), "TypeError",
                 About(b.name, fmt::format("dtype={} but got dtype=", LongName(b.dtype)),
                       {Call::Make(Intrinsic::kDTypeName, {dtype}, DType::Handle())})));
}

void ArgumentChecker::CheckBuffer(size_t i, size_t position, StmtList* list) {
  const BufferNode& b = *func_.buffers[i];
  const Var tensor = TensorOf(i, position, list);
  if (!IsMade(i)) CheckType(b, tensor, list);
  CheckDevice(i, tensor, list);

  Var shape = list->Define(b.name + ".shape", LoadAt(DType::Handle(), tensor, fields_.shape));
  if (b.rank() > 0 && !is_part()) CheckThere(b.name, "a shape", shape, BoolConst(false), list);
  const Given a{func_.buffers[i], i, tensor, shape};
  for (size_t d = 0; d < b.shape.size(); ++d) CheckDim(a, d, list);
  const bool known =
      std::all_of(b.shape.begin(), b.shape.end(), [&](const Expr& size) { return IsKnown(size); });
  known ? CheckMemory(a, list) : waiting_.push_back({a, Waiting::kMemory});

  const Var data = CheckData(a, list);
  list->Add(StoreSlot({Argument::Kind::kBuffer, i}, data));
}

// Where the tensor's first element is. A handle in the place of an address has no offset, and says
// nothing of alignment.
Var ArgumentChecker::CheckData(const Given& a, StmtList* list) {
  const BufferNode& b = *a.buffer;
  Expr offset = LoadAt(DType::Index(), a.tensor, fields_.byte_offset);
  Expr start = LoadAt(DType::Handle(), a.tensor, fields_.data);
  if (HasHandles(func_)) {
    list->Add(Fail(Eq(offset, IndexConst(0)), "ValueError",
                   About(b.name, "byte_offset=0 but got byte_offset=", {offset})));
    return list->Define(b.name + ".data", start);
  }
  Var data = list->Define(b.name + ".data", Call::Make(Intrinsic::kPtrOffset, {start, offset}));
  if (is_part() && b.align <= b.dtype.Bytes() && !func_.attrs.Has(kDeviceTypeAttr)) return data;
  CheckAligned(b.name, data, std::max<int64_t>(b.dtype.Bytes(), b.align), list);
  return data;
}

void ArgumentChecker::CheckAligned(const std::string& name, const Var& data, int64_t align,
                                   StmtList* list) const {
  if (align <= 1) return;
  Expr rest = Binary::Make(BinaryOp::kBitAnd, Bits(data), I64(align - 1));
  list->Add(Fail(
      Eq(rest, I64(0)), "ValueError",
      About(name, fmt::format("data aligned to {0} bytes but its address modulo {0} is ", align),
            {rest})));
}

// The first tensor on a device says which; memory that all of them reach says nothing, and where
// all is of that kind, the call is the first device's.
void ArgumentChecker::CheckDevice(size_t i, const Var& tensor, StmtList* list) {
  const BufferNode& b = *func_.buffers[i];
  const int64_t wanted = func_.attrs.GetInt(kDeviceTypeAttr, kCpu);
  if (is_part() && wanted == kCpu) return;
  const std::string name = DeviceName(wanted);
  auto expects = [&](const std::string& what, std::vector<Expr> came) {
    return About(b.name, "device=" + what, std::move(came));
  };
  const Expr device = LoadAt(DType::Int(32), tensor, fields_.device_type);
  const Expr is_on_it = Eq(device, I32(wanted));
  Expr fits = is_on_it;
  const std::span<const int64_t> reached = ReachedBy(wanted);
  for (int64_t memory : reached) fits = Or(fits, Eq(device, I32(memory)));
  std::vector<Expr> came = {Call::Make(Intrinsic::kDeviceName, {device}, DType::Handle())};
  if (wanted != kCpu)
    came.push_back(Text("; copy the tensor there first (" + HowToMove(name) + ")"));
  list->Add(Fail(fits, "ValueError", expects(name + " but got device=", std::move(came))));
  if (wanted == kCpu) return;
  const Expr id = LoadAt(DType::Int(32), tensor, fields_.device_type + 4);
  if (!device_id_) {
    device_id_ = list->Define(
        kDeviceId, reached.empty() ? id : Expr(Select::Make(is_on_it, id, I32(kNoDevice))));
    device_from_ = b.name;
    return;
  }
  // Outputs are looked at in one of two ways that a call goes.
  if (!reached.empty() && i + static_cast<size_t>(func_.num_outputs) < func_.buffers.size()) {
    const Expr known = Ge(device_id_, I32(0));
    device_id_ =
        list->Define(b.name + ".device.id", Select::Make(Or(known, Not(is_on_it)), device_id_, id));
  }
  const Expr same = Eq(id, device_id());
  list->Add(Fail(
      reached.empty() ? same : Expr(Or(same, Not(is_on_it))), "ValueError",
      expects(name + ":",
              {device_id(),
               Text(fmt::format(" (that of `{}`) but got device={}:", device_from_, name)), id})));
}

// Where nothing but memory that all devices reach has come, the first one.
Expr ArgumentChecker::device_id() const {
  return device_id_ ? Expr(Max(device_id_, I32(0))) : nullptr;
}

void ArgumentChecker::SetDevice(const Expr& id, const std::string& from, StmtList* list) {
  device_id_ = list->Define(kDeviceId, id);
  device_from_ = from;
}

// A dim that is known already has the same value here.
void ArgumentChecker::Agree(const Var& dim, const Place& place, StmtList* list) {
  list->Add(
      Fail(Eq(place.value, dim), "ValueError",
           {Text(fmt::format("Shape mismatch: {}=", dim->name)), dim,
            Text(fmt::format(" (from {}) but {}=", known_[dim.get()], place.name)), place.value}));
}

void ArgumentChecker::CheckDim(const Given& a, size_t d, StmtList* list) {
  const Expr& expected = a.buffer->shape[d];
  if (const auto* var = As<VarNode>(expected)) {
    const std::string shape = fmt::format("shape[{}]", d);
    const Place place{a.Dim(d), a.buffer->name + "." + shape, a.buffer->name, shape, shape + "=",
                      true};
    return known_.count(var) == 0 ? DefineDim(Var(var), place, list) : Agree(Var(var), place, list);
  }
  if (AsInt(expected) && IsMadeWith(a.index, d)) return;
  IsKnown(expected) ? CheckShape(a, d, list) : waiting_.push_back({a, d});
}

bool ArgumentChecker::IsKnown(const Expr& e) const {
  return std::all_of(func_.dims.begin(), func_.dims.end(), [&](const Var& dim) {
    return known_.count(dim.get()) != 0 || !UsesVar(e, dim.get());
  });
}

void ArgumentChecker::CheckWaiting(StmtList* list) {
  auto each = [&](const auto& done) {
    const size_t before = waiting_.size();
    std::erase_if(waiting_, done);
    return waiting_.size() < before;
  };
  auto check = [&](const Waiting& w) {
    const std::vector<Expr>& shape = w.given.buffer->shape;
    if (w.d == Waiting::kMemory || !IsKnown(shape[w.d])) return false;
    CheckShape(w.given, w.d, list);
    return true;
  };
  auto solve = [&](const Waiting& w) {
    return w.d != Waiting::kMemory && Solve(w.given, w.d, list);
  };
  while (each(check) || each(solve)) {
  }
  each([&](const Waiting& w) {
    const std::vector<Expr>& shape = w.given.buffer->shape;
    if (!std::all_of(shape.begin(), shape.end(), [&](const Expr& e) { return IsKnown(e); })) {
      return false;
    }
    CheckMemory(w.given, list);
    return true;
  });
}

// The one dim that is not known, from what the others leave of the shape's.
bool ArgumentChecker::Solve(const Given& a, size_t d, StmtList* list) {
  const Expr& size = a.buffer->shape[d];
  const Var dim = DimToldBy(func_, size, [&](const Var& v) { return known_.count(v.get()) != 0; });
  if (!dim) return false;
  const AffineForm form = *DetectAffine(size, {dim});
  const Expr rest = Simplify(a.Dim(d) - form.base);
  const std::string place = fmt::format("shape[{}]", d);
  list->Add(Fail(Eq(rest % form.coefficients[0], IndexConst(0)), "ValueError",
                 {Text(fmt::format("Parameter `{}` expects {}={} for some {} but got {}=",
                                   a.buffer->name, place, ToString(size), dim->name, place)),
                  a.Dim(d)}));
  const Var value = list->Define(dim->name + ".told", rest / form.coefficients[0]);
  DefineDim(dim,
            {value, a.buffer->name + "." + place, a.buffer->name,
             fmt::format("{} of {}={}", dim->name, place, ToString(size)), dim->name + "="},
            list);
  return true;
}

void ArgumentChecker::CheckShape(const Given& a, size_t d, StmtList* list) {
  const Expr& expected = a.buffer->shape[d];
  const Expr got = a.Dim(d);
  Expr value = Simplify(expected);
  std::string text = AsInt(value) ? ToString(value) : ToString(expected) + "=";
  std::vector<Expr> came;
  if (!AsInt(value)) came.push_back(value);
  came.push_back(Text(fmt::format(" but got shape[{}]=", d)));
  came.push_back(got);
  list->Add(Fail(Eq(got, value), "ValueError",
                 About(a.buffer->name, fmt::format("shape[{}]={}", d, text), std::move(came))));
}

void ArgumentChecker::AddAsker(const char* attr, size_t i, std::vector<Expr>* message) const {
  const auto askers = func_.attrs.Get<std::vector<std::string>>(attr, {});
  if (i < askers.size() && !askers[i].empty()) message->push_back(Text(", which " + askers[i]));
}

void ArgumentChecker::CheckRange(size_t index, const Place& place, StmtList* list) const {
  DimRange range = func_.dim_range(index);
  const Expr& got = place.value;
  const bool is_any = range.lo <= 0 && (range.hi < 0 || range.hi >= kMostOfTensor);
  if (is_part() && place.is_size && is_any && range.step <= 1) return;
  auto expects = [&](const std::string& what) {
    const std::string subject = place.parameter.empty()
                                    ? "Expected"
                                    : fmt::format("Parameter `{}` expects", place.parameter);
    std::vector<Expr> parts = {
        Text(fmt::format("{} {} {} but got {}", subject, place.what, what, place.came)), got};
    AddAsker(kRangeAskersAttr, index, &parts);
    return parts;
  };
  if (range.hi >= 0) {
    list->Add(Fail(And(Ge(got, IndexConst(range.lo)), Le(got, IndexConst(range.hi))), "ValueError",
                   expects(fmt::format("in {}..={}", range.lo, range.hi))));
  } else {
    list->Add(Fail(Ge(got, IndexConst(range.lo)), "ValueError",
                   expects(fmt::format("at least {}", range.lo))));
  }
  if (range.step > 1) {
    list->Add(Fail(Eq((got - range.lo) % range.step, IndexConst(0)), "ValueError",
                   expects(fmt::format("in {} + multiples of {}", range.lo, range.step))));
  }
}

void ArgumentChecker::DefineDim(const Var& dim, const Place& place, StmtList* list) {
  size_t index = 0;
  while (func_.dims[index] != dim) ++index;
  CheckRange(index, place, list);
  const Expr& got = place.value;
  known_[dim.get()] = place.name;
  list->Open([dim, got](Stmt body) { return Let::Make(dim, got, std::move(body)); });
  list->Add(StoreSlot({Argument::Kind::kDim, index}, dim));
}

void ArgumentChecker::Found(const Var& dim, const Expr& value, StmtList* list) {
  DefineDim(dim, {value, dim->name, "", fmt::format("the size {}", dim->name), ""}, list);
}

// Only a tensor without elements may be nowhere.
void ArgumentChecker::CheckMemory(const Given& a, StmtList* list) {
  if (is_part()) return;
  const Expr data = LoadAt(DType::Handle(), a.tensor, fields_.data);
  CheckThere(a.buffer->name, "memory", data, IsEmpty(*a.buffer), list);
  ReadStrides(a, list);
  StoreFactOf(a.index, list);
}

void ArgumentChecker::CheckThere(const std::string& name, const char* what, const Expr& pointer,
                                 const Expr& unless, StmtList* list) const {
  list->Add(Fail(Simplify(Or(Ne(Bits(pointer), I64(0)), unless)), "ValueError",
                 About(name, fmt::format("{} but got a null pointer", what), {})));
}

void ArgumentChecker::ReadStrides(const Given& a, StmtList* list) {
  if (a.buffer->rank() > 0)
    a.buffer->strides.empty() ? CheckCompact(a, list) : TakeStrides(a, list);
}

// What the parameter says of its strides: a dim is what comes, all else is what must come. A tensor
// without strides is compact, and so is a dimension along which nothing lies apart.
void ArgumentChecker::TakeStrides(const Given& a, StmtList* list) {
  const BufferNode& b = *a.buffer;
  const Expr strides = LoadAt(DType::Handle(), a.tensor, fields_.strides);
  const Expr given = Ne(Bits(strides), I64(0));
  // There is always a number to be loaded.
  const Var from = list->Define(b.name + ".strides", Select::Make(given, strides, a.shape));
  const Expr empty = Eq(Product(b.shape, 0), IndexConst(0));
  for (size_t d = 0; d < b.shape.size(); ++d) {
    const Expr alone = Or(Eq(b.shape[d], IndexConst(1)), empty);
    const Expr loaded = LoadAt(DType::Index(), from, static_cast<int64_t>(d) * 8);
    const std::string what = fmt::format("strides[{}]", d);
    const Expr came = list->Define(
        fmt::format("{}.stride_{}", b.name, d),
        Simplify(Select::Make(And(given, Not(alone)), loaded, Product(b.shape, d + 1))));
    const Expr& expected = b.strides[d];
    const auto* var = As<VarNode>(expected);
    if (var && known_.count(var) == 0) {
      DefineDim(Var(var), {came, b.name + "." + what, b.name, what, what + "="}, list);
      continue;
    }
    list->Add(
        Fail(Simplify(Or(Eq(came, expected), alone)), "ValueError",
             About(b.name, what + "=", {expected, Text(fmt::format(" but got {}=", what)), came})));
  }
}

void ArgumentChecker::CheckCompact(const Given& a, StmtList* list) {
  // A null pointer says compact. The strides of an empty tensor lead nowhere.
  Expr strides = LoadAt(DType::Handle(), a.tensor, fields_.strides);
  Expr given = Ne(Bits(strides), I64(0));
  std::vector<Stmt> checks;
  const Expr empty = IsEmpty(*a.buffer);
  for (size_t d = 0; d < a.buffer->shape.size(); ++d) {
    Expr stride = LoadAt(DType::Index(), strides, static_cast<int64_t>(d) * 8);
    Expr compact = Product(a.buffer->shape, d + 1);
    Expr fine = Or(Eq(stride, compact), Or(Eq(a.buffer->shape[d], IndexConst(1)), empty));
    checks.push_back(
        Fail(Simplify(fine), "ValueError",
             About(a.buffer->name, fmt::format("compact strides, strides[{}]=", d),
                   {Simplify(compact), Text(fmt::format(" but got strides[{}]=", d)), stride})));
  }
  list->Add(If::Make(given, Seq::Make(std::move(checks))));
}

bool ArgumentChecker::HasManyPairs(const PrimFunc& func) {
  // So many comparisons are less code than the function that sorts.
  constexpr int64_t kFewPairs = 32;
  if (func.attrs.Has(kPartAttr)) return false;  // its outputs are made for it
  const auto n = static_cast<int64_t>(func.buffers.size());
  return func.num_outputs * (n - func.num_outputs) + func.num_outputs * (func.num_outputs - 1) / 2 >
         kFewPairs;
}

void ArgumentChecker::CheckApart(StmtList* list) const {
  const auto outputs = static_cast<size_t>(func_.num_outputs);
  const size_t first_output = func_.buffers.size() - outputs;
  constexpr const char* kWhat = "` expects memory of its own but it overlaps `";
  if (HasManyPairs(func_)) {
    auto fail = [&](Expr output, Expr other) {
      return Fail(
          BoolConst(false), "ValueError",
          {Text("Parameter `"), std::move(output), Text(kWhat), std::move(other), Text("`")});
    };
    return tenon::CheckApart(func_.buffers.size(), outputs, closure_, facts_, fail, list);
  }
  for (size_t i = first_output; i < func_.buffers.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      // Read anew for each comparison: nothing of it stays in a register between them.
      const auto before = [&](size_t x, size_t y) {
        return Le(StartOf(x) + BytesOf(x), StartOf(y));
      };
      const Expr apart =
          HasHandles(func_) ? Ne(StartOf(i), StartOf(j)) : Or(before(i, j), before(j, i));
      const Expr empty = Or(Eq(BytesOf(i), I64(0)), Eq(BytesOf(j), I64(0)));
      list->Add(Fail(Simplify(Or(apart, empty)), "ValueError",
                     {Text(fmt::format("Parameter `{}{}{}`", func_.buffers[i]->name, kWhat,
                                       func_.buffers[j]->name))}));
    }
  }
}

Expr ArgumentChecker::BytesOf(size_t i) const {
  const BufferNode& b = *func_.buffers[i];
  const Expr elements = Product(b.shape, 0);
  Expr reach = elements;
  if (!b.strides.empty()) {
    Expr last = IndexConst(0);
    for (size_t d = 0; d < b.shape.size(); ++d) last = last + (b.shape[d] - 1) * b.strides[d];
    reach = Select::Make(Eq(elements, IndexConst(0)), IndexConst(0), last + 1);
  }
  return CastExpr::Make(DType::Int(64), Simplify(reach * b.dtype.Bytes()));
}

Expr ArgumentChecker::StartOf(size_t i) const {
  return Bits(LoadAt(DType::Handle(), closure_, static_cast<int64_t>(i) * kSlotBytes));
}

void ArgumentChecker::CheckPlain(const Var& workspace, StmtList* list) {
  for (size_t i = 0; i < func_.dims.size(); ++i) {
    const std::string& name = func_.dims[i]->name;
    // From its slot, of which the simplifier knows nothing: a parameter is taken to be in its
    // range.
    const size_t slot = func_.buffers.size() + i;
    Expr given = LoadAt(DType::Index(), closure_, static_cast<int64_t>(slot) * kSlotBytes);
    CheckRange(i, {given, name, name, "a value", ""}, list);
  }
  Begin(list);
  for (size_t i = 0; i < func_.buffers.size(); ++i) {
    const Buffer& b = func_.buffers[i];
    const Var data = list->Define(b->name + ".data", AddressOf(b));
    CheckThere(b->name, "memory", data, IsEmpty(*b), list);
    CheckAligned(b->name, data, std::max<int64_t>(b->dtype.Bytes(), b->align), list);
    StoreFactOf(i, list);
  }
  if (workspace) {
    CheckThere(workspace->name, "memory", workspace, BoolConst(false), list);
    constexpr int64_t kWorkspaceAlign = 64;
    CheckAligned(workspace->name, workspace, kWorkspaceAlign, list);
  }
  CheckApart(list);
  Require(list);
}

}  // namespace tenon
