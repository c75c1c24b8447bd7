// Statements that reserve memory, move it, or call: the other half of source_function.cc.
//
// An array is declared where its allocation stands: on the stack, in registers where a GPU has
// them, in shared memory with the language's qualifier, or as a part of the launch's dynamic shared
// memory, at an offset that was found before:
//
//   alloc S: f32[64] in shared align 16        __shared__ __align__(16) float S[64];
//   alloc big: f32[16384] in shared            float* const big = (float*)(… + 256);
//
// An atomic update on memory that nobody else sees is a plain one; on a GPU it is the language's
// function, or a helper, with a fence on the sides that its order speaks of. An assert leaves the
// function with a status and hands its parts to the runtime, which writes the message.

#include <fmt/format.h>

#include <algorithm>

#include "codegen/abi.h"
#include "codegen/array_size.h"
#include "codegen/c_family/function.h"
#include "support/strings.h"

namespace tenon::codegen {

namespace {

// Larger temporaries belong to the memory plan, not to the stack.
// Where accesses of several lanes pay, arrays are aligned for the widest.
int64_t AlignOf(const Buffer& b, const Language& language) {
  const int64_t widest = language.wide.empty() ? 0 : language.wide[0].bytes;
  return std::max(b->align, widest);
}

}  // namespace

// ---- memory ----

// Declares the array of an allocation whose uses are in `body`.
void SourceFunction::DeclareArray(const Buffer& b, const Stmt& body) {
  const auto elements = ArrayElements(b);
  if (!elements) return Unsupported(WhyNoArray(b));
  const std::string name = Declare(b->name), type = values_.MemoryTypeName(b->dtype);
  const int64_t bytes = AlignOf(b, language_);
  const std::string align =
      bytes > b->dtype.Element().Bytes() ? fmt::format(fmt::runtime(language_.align), bytes) : "";
  const bool shared = language_.gpu && HolderOf(b->scope) == Holder::kBlock;
  const std::string qualifier = shared ? std::string(language_.gpu->shared) + " " : "";
  if (auto place = form_.dynamic_shared.find(b.get()); place != form_.dynamic_shared.end()) {
    Line(fmt::format("{0}* const {1} = ({0}*)({2} + {3});", type, name,
                     language_.gpu->dynamic_shared, place->second));
  } else {
    Line(fmt::format("{}{}{} {}[{}];", qualifier, align, type, name,
                     std::max<int64_t>(*elements, 1)));
  }
  if (!used_.contains(b.get())) Line(fmt::format("(void){};", name));
  bool leaks = false;
  PreOrder(body, [&](const NodeRef& n) {
    const auto* call = As<Call>(n);
    const auto* load =
        call && call->intrinsic == Intrinsic::kBufferData ? As<Load>(call->args[0]) : nullptr;
    leaks |= load && load->buffer.get() == b.get();
    return !leaks;
  });
  exprs_.BindBuffer(b.get(), {name, /*is_private=*/!leaks, /*is_distinct=*/false, bytes,
                              shared ? language_.gpu->shared_space : ""});
}

// Where the language wants them before everything else.
void SourceFunction::DeclareShared() {
  PreOrder(func_.body, [&](const NodeRef& n) {
    const auto* alloc = As<Alloc>(n);
    if (alloc && alloc->buffer->scope == Scope::kShared) DeclareArray(alloc->buffer, alloc->body);
    return IsA<StmtNode>(n);
  });
}

void SourceFunction::EmitAlloc(const Alloc& s) {
  const Buffer& b = s.buffer;
  // One for all threads: no thread can make it.
  if (language_.gpu && b->scope == Scope::kGlobal) {
    return Unsupported("alloc of " + b->name + " in global memory on a GPU");
  }
  const bool first = language_.gpu && language_.gpu->shared_first && b->scope == Scope::kShared;
  if (first && func_.func_kind != FuncKind::kKernel)
    return Unsupported("shared memory of a function that is no kernel in " +
                       std::string(language_.name));
  if (!first) DeclareArray(b, s.body);
  if (exprs_.IsBound(b)) EmitStmt(s.body);
}

void SourceFunction::EmitBind(const Bind& s) {
  const bool is_used =
      used_.contains(s.buffer.get()) || written_.Of(func_).contains(s.buffer.get());
  std::string name = s.buffer->name;
  if (is_used) {
    Begin({s.data});
    SourceText data = exprs_.Emit(s.data);
    Flush();
    name = Declare(name);
    const std::string pointer = PointerTo(s.buffer);
    Line(fmt::format("{} const {} = ({}){};", pointer, name, pointer, data.As(Binding::kUnary)));
  }
  exprs_.BindBuffer(s.buffer.get(), {name, /*is_private=*/false, /*is_distinct=*/false});
  EmitStmt(s.body);
}

SourceText SourceFunction::RegionAddress(const Region& region) {
  std::vector<Expr> first;
  for (const Range& r : region->ranges) first.push_back(r->min);
  return exprs_.ElementAddress(region->buffer, first);
}

void SourceFunction::EmitCopy(const Copy& s) {
  const DType type = s.dst->buffer->dtype;
  if (s.dst->ranges.size() > 1 || s.src->ranges.size() > 1 || s.src->buffer->dtype != type) {
    return Unsupported("copy of a box with several dimensions in code generation");
  }
  const Expr count = s.dst->ranges.empty() ? IndexConst(1) : s.dst->ranges[0]->extent;
  std::vector<Expr> roots = {count};
  for (const Region& region : {s.dst, s.src}) {
    if (!region->ranges.empty()) roots.push_back(region->ranges[0]->min);
  }
  Begin(roots);
  SourceText dst = RegionAddress(s.dst), src = RegionAddress(s.src);
  SourceText n = exprs_.Emit(count, /*once=*/language_.copy == nullptr);
  Flush();
  if (!language_.copy) {
    const std::string at = names_.Take("at");
    OpenBlock(fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1})", values_.TypeName(DType::Index()),
                          at, n.As(Binding::kAdd)));
    scopes_.back().names.push_back(at);
    Line(fmt::format("{0}[{2}] = {1}[{2}];", dst.As(Binding::kPrimary), src.As(Binding::kPrimary),
                     at));
    return CloseBlock();
  }
  Line(fmt::format("{}({}, {}, (size_t){} * sizeof({}));", language_.copy, dst.text, src.text,
                   n.As(Binding::kUnary), values_.MemoryTypeName(type)));
}

// A GPU's atomics are relaxed; an order is a fence on the side that it speaks of.
void SourceFunction::EmitGpuAtomic(const Atomic& s) {
  const GpuSpelling& gpu = *language_.gpu;
  const DType type = s.value->dtype.IsIndex() ? DType::Int(64) : s.value->dtype;
  const bool in_block = s.scope != Level::kGrid && s.scope != Level::kCluster;
  const char* fence = in_block ? gpu.fence_cta : gpu.fence_grid;
  if (s.order != MemoryOrder::kRelaxed && !fence)
    return Unsupported(std::string("atomic ") + Name(s.order) + " at " + Name(s.scope) + " in " +
                       language_.name);
  for (const AtomicSpelling& row : gpu.atomics) {
    if (row.op != s.op || row.type != type) continue;
    std::vector<Expr> roots = s.indices;
    roots.push_back(s.value);
    Begin(roots);
    SourceText at = exprs_.ElementAddress(s.buffer, s.indices), value = exprs_.Emit(s.value);
    Flush();
    const std::string& space = exprs_.SpaceOf(s.buffer);
    if (s.order == MemoryOrder::kRelease || s.order == MemoryOrder::kAcqRel) Line(fence);
    std::string helper =
        std::string("atomic_") + (s.op == BinaryOp::kAdd ? "add" : Info(s.op).text);
    if (!space.empty()) helper += space == gpu.global_space ? "_global" : "_shared";
    const std::string function = row.function ? row.function : values_.helpers().Use(helper, type);
    Line(fmt::format("{0}(({4}{1}*)({2}), ({1})({3}));", function, row.memory, at.text, value.text,
                     space));
    if (s.order == MemoryOrder::kAcquire || s.order == MemoryOrder::kAcqRel) Line(fence);
    return;
  }
  Unsupported(std::string("atomic ") + Info(s.op).text + " of " + type.ToString());
}

void SourceFunction::EmitAtomic(const Atomic& s) {
  const bool is_private = IsThreadArray(s.buffer->scope);
  if (language_.gpu && !is_private) return EmitGpuAtomic(s);
  EmitPlainUpdate(s);
}

// One worker, or a thread's own memory: nobody else is there to interfere.
void SourceFunction::EmitPlainUpdate(const Atomic& s) {
  const DType type = s.value->dtype;
  const bool bits =
      s.op == BinaryOp::kBitAnd || s.op == BinaryOp::kBitOr || s.op == BinaryOp::kBitXor;
  const bool known = s.op == BinaryOp::kAdd || s.op == BinaryOp::kMax || s.op == BinaryOp::kMin ||
                     (bits && !type.IsFloat());
  if (!known || type.IsVector() || type.IsBool() || (type.IsFloat() && type.bits <= 16)) {
    return Unsupported(std::string("atomic ") + Info(s.op).text + " of " + type.ToString());
  }
  Expr load = Load::Make(s.buffer, s.indices);
  Expr value = Binary::Make(s.op, load, s.value);
  std::vector<Expr> roots = s.indices;
  roots.push_back(value);
  Begin(roots);
  exprs_.EmitStore(s.buffer, s.indices, value, nullptr);
  Flush();
}

// ---- calls ----

// Leaves the function with a status that is not 0.
void SourceFunction::CheckStatus(const SourceText& call) {
  const std::string name = exprs_.Fresh("status");
  Line(fmt::format("const int32_t {} = {};", name, call.text));
  Line(fmt::format("if ({0} != 0) return {0};", name));
}

void SourceFunction::EmitEvaluate(const Evaluate& s) {
  const auto* call = As<Call>(s.call);
  if (!call) return Unsupported("evaluate of something that is not a call");
  Begin({s.call});
  if (call->intrinsic == Intrinsic::kPtrStore) {
    exprs_.EmitPtrStore(*call);
    return Flush();
  }
  if (call->intrinsic == Intrinsic::kPrefetch) {
    exprs_.EmitPrefetch(*call);
    return Flush();
  }
  if (call->intrinsic != Intrinsic::kExtern) {
    return Unsupported(std::string("evaluate of ") + Info(call->intrinsic).text);
  }
  SourceText v = exprs_.EmitExtern(*call, /*as_value=*/call->dtype == DType::Int(32));
  Flush();
  if (call->dtype != DType::Int(32)) return Line(v.text + ";");
  if (ReturnsStatus(func_)) return CheckStatus(v);
  Unsupported("a C call that can fail in a function that cannot");
}

void SourceFunction::EmitCall(const CallFunc& s) {
  Func callee = module_.Find(s.callee);
  if (!callee) return Unsupported("call of " + s.callee + ", which is not in the module");
  if (callee->func_kind == FuncKind::kPacked || s.buffers.size() != callee->buffers.size() ||
      s.scalars.size() != callee->dims.size() + callee->scalars.size()) {
    return Unsupported("call of " + s.callee + " with other parameters than it has");
  }
  std::vector<Expr> roots = s.scalars;
  for (const Region& r : s.buffers) {
    for (const Range& range : r->ranges) roots.push_back(range->min);
  }
  Begin(roots);
  std::vector<SourceText> args;
  std::vector<std::string> spaces;
  for (size_t i = 0; i < s.buffers.size(); ++i) {
    args.push_back(ArgumentOf(*callee, i, s.buffers[i]));
    spaces.push_back(exprs_.SpaceOf(s.buffers[i]->buffer));
    if (s.buffers[i]->buffer->dtype != callee->buffers[i]->dtype) {
      return Unsupported("call of " + s.callee + " with other types than it has");
    }
  }
  for (const Expr& e : s.scalars) args.push_back(exprs_.Emit(e));
  Flush();
  SourceText call = values_.CallOf(module_.CalleeOf(*callee, spaces), args);
  if (ReturnsStatus(*callee) && ReturnsStatus(func_)) return CheckStatus(call);
  Line(call.text + ";");
}

// An initialiser of a tn_msg_part.
std::string SourceFunction::MessagePart(const Expr& part) {
  const DType i64 = DType::Int(64);
  if (const auto* text = As<StringConst>(part)) {
    return fmt::format("{{TN_MSG_TEXT, 0, {{.text = {}}}}}", QuoteC(text->value));
  }
  if (const auto* call = As<Call>(part); call && (call->intrinsic == Intrinsic::kDTypeName ||
                                                  call->intrinsic == Intrinsic::kDeviceName)) {
    const bool is_dtype = call->intrinsic == Intrinsic::kDTypeName;
    SourceText v = values_.Cast(call->args[0]->dtype, i64, exprs_.Emit(call->args[0]));
    return fmt::format("{{{}, 0, {{.i = {}}}}}", is_dtype ? "TN_MSG_DTYPE" : "TN_MSG_DEVICE_TYPE",
                       v.text);
  }
  const DType type = part->dtype;
  SourceText v = exprs_.Emit(part);
  if (type.IsFloat()) {
    return fmt::format("{{TN_MSG_DOUBLE, 0, {{.f = {}}}}}",
                       values_.Cast(type, DType::Float(64), v).text);
  }
  return fmt::format("{{{}, 0, {{.i = {}}}}}", type.IsHandle() ? "TN_MSG_C_STRING" : "TN_MSG_INT",
                     values_.Cast(type, i64, v).text);
}

void SourceFunction::EmitAssert(const Assert& s) {
  if (!ReturnsStatus(func_)) return Unsupported("assert in a function that cannot fail");
  Begin({s.condition});
  SourceText condition = exprs_.Emit(s.condition);
  Flush();
  OpenBlock(fmt::format("if (!{})", condition.As(Binding::kPrimary)));
  std::vector<Expr> roots;
  for (const Expr& part : s.parts) {
    const auto* call = As<Call>(part);
    const bool is_name = call && (call->intrinsic == Intrinsic::kDTypeName ||
                                  call->intrinsic == Intrinsic::kDeviceName);
    roots.push_back(is_name ? call->args[0] : part);
  }
  Begin(roots);
  std::vector<std::string> parts;
  for (const Expr& part : s.parts) parts.push_back(MessagePart(part));
  Flush();
  std::string name = "NULL";
  if (!parts.empty()) {
    name = Declare("parts");
    Line(fmt::format("const tn_msg_part {}[] = {{", name));
    for (const std::string& part : parts) Line("    " + part + ",");
    Line("};");
  }
  SourceText raise{"tn_core_raise"};
  module_.DeclareC(raise.text, "int32_t", {});
  Line(fmt::format("return tn_core_raise({}, {}, {});", QuoteC(s.error_kind), name, parts.size()));
  CloseBlock();
}

}  // namespace tenon::codegen
