// Statements, one to one.
//
// Everything has been decided: loops are serial, vectors are vectors, calls are calls. So a loop
// becomes one block with a phi for its variable, tested at its end, and before it unless the extent
// is constant,
//
//   for i in 0..n { C[i] = A[i] }
//
//     br i1 (0 < n), label %loop, label %done
//   loop:
//     %i = phi i64 [ 0, … ], [ %next, %loop ]
//     …
//     %next = add nsw i64 %i, 1
//     br i1 (%next < n), label %loop, label %done, !llvm.loop !1
//
// with metadata that keeps LLVM's unroller away: what is to be unrolled has been. Stack memory is
// taken in the entry block, once per call, where LLVM's sroa turns what has constant indices into
// values; that is how register buffers become registers. Error messages are constants of the object
// as far as they are known, since the checks of arguments are the larger part of an export's code.

#include "codegen/llvm/function_emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>

#include <bit>
#include <utility>

#include "codegen/array_size.h"
#include "loop/facts.h"
#include "loop/shares.h"
#include "loop/team.h"
#include "support/check.h"

namespace tenon::codegen {

using llvm::Value;

namespace {

// Larger temporaries belong to the memory plan, not to a worker's stack.
constexpr int64_t kStackAlign = 64;

}  // namespace

llvm::BasicBlock* FunctionEmitter::NewBlock(const char* name) {
  return llvm::BasicBlock::Create(module_.context(), name, f_);
}

void FunctionEmitter::Emit() {
  ir_.SetInsertPoint(NewBlock("entry"));
  exprs_.values().SetFpMode(fp_);
  BindParams();
  ConfigureTiles();
  EmitStmt(func_.body);
  Finish(ir_.getInt32(0));
}

void FunctionEmitter::BindParams() {
  Learn(func_, &exprs_.facts());
  auto arg = f_->arg_begin();
  for (const Buffer& b : func_.buffers) {
    exprs_.BindBuffer(b.get(), {&*arg++, std::max(b->align, b->dtype.Element().Bytes())});
  }
  for (size_t i = 0; i < func_.dims.size(); ++i) {
    exprs_.BindVar(func_.dims[i].get(), &*arg++);
  }
  for (const Var& v : func_.scalars) exprs_.BindVar(v.get(), &*arg++);
  if (!module_.TakesTeam(func_)) return;
  TeamValues team;
  team.rank = &*arg++;
  team.size = &*arg++;
  team.team = &*arg++;
  exprs_.SetTeam(team);
}

// What follows in the same sequence is dead and goes with the first simplification.
void FunctionEmitter::Finish(Value* status) {
  if (uses_tiles_) ir_.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
  if (ReturnsStatus(func_)) {
    ir_.CreateRet(status);
  } else {
    ir_.CreateRetVoid();
  }
}

void FunctionEmitter::EmitStmt(const Stmt& s) {
  exprs_.BeginStatement();
  switch (s->kind) {
    case NodeKind::kSeq:
      for (const Stmt& x : As<Seq>(s)->stmts) EmitStmt(x);
      return;
    case NodeKind::kFor: return EmitFor(*As<For>(s));
    case NodeKind::kIf: return EmitIf(*As<If>(s));
    case NodeKind::kWhile: return EmitWhile(*As<While>(s));
    case NodeKind::kLet: return EmitLet(*As<Let>(s));
    case NodeKind::kAlloc: return EmitAlloc(*As<Alloc>(s));
    case NodeKind::kBind: return EmitBind(*As<Bind>(s));
    case NodeKind::kStore: {
      const auto& store = *As<Store>(s);
      return exprs_.EmitStore(store.buffer, store.indices, store.value, store.mask);
    }
    case NodeKind::kBlock: return EmitBlock(*As<Block>(s));
    case NodeKind::kEvaluate: return EmitEvaluate(*As<Evaluate>(s));
    case NodeKind::kCallFunc: return EmitCall(*As<CallFunc>(s));
    case NodeKind::kCopy: return EmitCopy(*As<Copy>(s));
    case NodeKind::kAssert: return EmitAssert(*As<Assert>(s));
    case NodeKind::kReturn: return EmitReturn(*As<Return>(s));
    case NodeKind::kSync: return EmitSync(*As<Sync>(s));
    case NodeKind::kAtomic: return EmitAtomic(*As<Atomic>(s));
    default: return Unsupported(std::string(Name(s->kind)) + " in code generation");
  }
}

// ---- control ----

void FunctionEmitter::EmitFor(const For& s) {
  if (s.for_kind != ForKind::kSerial) {
    return Unsupported(std::string(Name(s.for_kind)) + " loop " + s.var->name +
                       " in code generation");
  }
  if (s.attrs.Has(kShareAttr) && exprs_.team().team) return EmitShare(s);
  EmitSerial(s);
}

void FunctionEmitter::EmitIf(const If& s) {
  llvm::BasicBlock* yes = NewBlock("if");
  llvm::BasicBlock* no = s.else_body ? NewBlock("else") : nullptr;
  llvm::BasicBlock* join = NewBlock("endif");
  ir_.CreateCondBr(exprs_.Emit(s.condition), yes, no ? no : join);
  ir_.SetInsertPoint(yes);
  const bool outside = std::exchange(apart_, apart_ || IsFirstWorkers(s));
  EmitStmt(s.then_body);
  apart_ = outside;
  ir_.CreateBr(join);
  if (no) {
    ir_.SetInsertPoint(no);
    EmitStmt(s.else_body);
    ir_.CreateBr(join);
  }
  ir_.SetInsertPoint(join);
}

void FunctionEmitter::EmitWhile(const While& s) {
  llvm::BasicBlock* test = NewBlock("while");
  llvm::BasicBlock* body = NewBlock("do");
  llvm::BasicBlock* exit = NewBlock("done");
  ir_.CreateBr(test);
  ir_.SetInsertPoint(test);
  ir_.CreateCondBr(exprs_.Emit(s.condition), body, exit);
  ir_.SetInsertPoint(body);
  EmitStmt(s.body);
  ir_.CreateBr(test);
  ir_.SetInsertPoint(exit);
}

void FunctionEmitter::EmitLet(const Let& s) {
  Value* v = exprs_.Emit(s.value);
  exprs_.BindVar(s.var.get(), v);
  if (s.var->dtype.IsIndex()) LearnValue(s.var, s.value, &exprs_.facts());
  EmitStmt(s.body);
}

// A marker is a block whose variables, if any, only name values; the fp mode is that of the
// innermost block.
void FunctionEmitter::EmitBlock(const Block& s) {
  if (s.init || s.where || s.async) return Unsupported("block " + s.name + " in code generation");
  for (const IterVar& v : s.iters) {
    exprs_.BindVar(v->var.get(), exprs_.Emit(v->binding));
    LearnValue(v->var, v->binding, &exprs_.facts());
  }
  const FpMode outer = fp_;
  fp_ = s.fp;
  exprs_.values().SetFpMode(fp_);
  EmitStmt(s.body);
  fp_ = outer;
  exprs_.values().SetFpMode(fp_);
}

void FunctionEmitter::EmitReturn(const Return& s) {
  Finish(s.value ? exprs_.Emit(s.value) : ir_.getInt32(0));
  ir_.SetInsertPoint(NewBlock("dead"));
}

void FunctionEmitter::ReturnIfFailed(Value* status) {
  llvm::BasicBlock* failed = NewBlock("failed");
  llvm::BasicBlock* ok = NewBlock("ok");
  ir_.CreateCondBr(ir_.CreateIsNotNull(status), failed, ok,
                   llvm::MDBuilder(module_.context()).createUnlikelyBranchWeights());
  ir_.SetInsertPoint(failed);
  Finish(status);
  ir_.SetInsertPoint(ok);
}

// ---- memory ----

// All stack memory is taken in the entry block: once per call, and where sroa finds it.
void FunctionEmitter::EmitAlloc(const Alloc& s) {
  const Buffer& b = s.buffer;
  const auto elements = ArrayElements(b);
  if (!elements) return Unsupported(WhyNoArray(b));
  const int64_t bytes = *elements * b->dtype.Bytes();
  if (b->scope == Scope::kTile && HasTiles()) return EmitTileAlloc(s, bytes);
  llvm::Type* type = llvm::ArrayType::get(exprs_.values().MemoryTypeOf(b->dtype),
                                          static_cast<uint64_t>(std::max<int64_t>(*elements, 1)));
  llvm::BasicBlock& entry = f_->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  llvm::AllocaInst* place = at_entry.CreateAlloca(type, nullptr, b->name);
  const auto natural =
      static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(bytes, 1))));
  const int64_t align = std::max(b->align, std::min(natural, kStackAlign));
  place->setAlignment(llvm::Align(static_cast<uint64_t>(align)));
  exprs_.BindBuffer(b.get(), {place, align, /*is_private=*/true});
  EmitStmt(s.body);
}

void FunctionEmitter::EmitBind(const Bind& s) {
  const int64_t align = std::max(s.buffer->align, s.buffer->dtype.Element().Bytes());
  exprs_.BindBuffer(s.buffer.get(), {exprs_.Emit(s.data), align});
  EmitStmt(s.body);
}

Value* FunctionEmitter::RegionAddress(const Region& region) {
  std::vector<Expr> first;
  for (const Range& r : region->ranges) first.push_back(r->min);
  return exprs_.ElementAddress(region->buffer, first);
}

void FunctionEmitter::EmitCopy(const Copy& s) {
  const DType type = s.dst->buffer->dtype;
  if (s.dst->ranges.size() > 1 || s.src->ranges.size() > 1 || s.src->buffer->dtype != type) {
    return Unsupported("copy of a box with several dimensions in code generation");
  }
  Value* dst = RegionAddress(s.dst);
  Value* src = RegionAddress(s.src);
  Value* count = s.dst->ranges.empty() ? ir_.getInt64(1) : exprs_.Emit(s.dst->ranges[0]->extent);
  const auto align = llvm::Align(static_cast<uint64_t>(type.Bytes()));
  Value* bytes = ir_.CreateNSWMul(count, ir_.getInt64(static_cast<uint64_t>(type.Bytes())));
  ir_.CreateMemCpy(dst, align, src, align, bytes);
}

void FunctionEmitter::EmitAtomic(const Atomic& s) {
  using Op = llvm::AtomicRMWInst::BinOp;
  const DType type = s.value->dtype;
  const bool is_float = type.IsFloat(), is_signed = type.IsSigned();
  Op op = Op::BAD_BINOP;
  if (s.op == BinaryOp::kAdd) op = is_float ? Op::FAdd : Op::Add;
  if (s.op == BinaryOp::kMax) op = is_float ? Op::FMax : is_signed ? Op::Max : Op::UMax;
  if (s.op == BinaryOp::kMin) op = is_float ? Op::FMin : is_signed ? Op::Min : Op::UMin;
  if (s.op == BinaryOp::kBitAnd && !is_float) op = Op::And;
  if (s.op == BinaryOp::kBitOr && !is_float) op = Op::Or;
  if (s.op == BinaryOp::kBitXor && !is_float) op = Op::Xor;
  if (op == Op::BAD_BINOP || type.IsVector() || type.IsBool() || (is_float && type.bits <= 16)) {
    return Unsupported(std::string("atomic ") + Info(s.op).text + " of " + type.ToString());
  }
  llvm::AtomicOrdering order{};
  switch (s.order) {
    case MemoryOrder::kRelaxed: order = llvm::AtomicOrdering::Monotonic; break;
    case MemoryOrder::kAcquire: order = llvm::AtomicOrdering::Acquire; break;
    case MemoryOrder::kRelease: order = llvm::AtomicOrdering::Release; break;
    case MemoryOrder::kAcqRel: order = llvm::AtomicOrdering::AcquireRelease; break;
  }
  Value* v = exprs_.Emit(s.value);
  ir_.CreateAtomicRMW(op, exprs_.ElementAddress(s.buffer, s.indices), v,
                      llvm::Align(static_cast<uint64_t>(type.Bytes())), order);
}

// ---- calls ----

void FunctionEmitter::EmitEvaluate(const Evaluate& s) {
  const auto* call = As<Call>(s.call);
  if (!call) return Unsupported("evaluate of something that is not a call");
  if (call->intrinsic == Intrinsic::kPtrStore) return exprs_.EmitPtrStore(*call);
  if (call->intrinsic == Intrinsic::kPrefetch) return exprs_.EmitPrefetch(*call);
  if (call->intrinsic != Intrinsic::kExtern) {
    return Unsupported(std::string("evaluate of ") + Info(call->intrinsic).text);
  }
  // WebAssembly wants the very type: a function whose result is not looked at may have none.
  Value* status = exprs_.EmitExtern(*call, /*has_result=*/!call->dtype.IsHandle());
  if (call->dtype != DType::Int(32)) return;
  if (ReturnsStatus(func_)) return ReturnIfFailed(status);
  Unsupported("a C call that can fail in a function that cannot");
}

void FunctionEmitter::EmitCall(const CallFunc& s) {
  Func callee = module_.Find(s.callee);
  if (!callee) return Unsupported("call of " + s.callee + ", which is not in the module");
  if (callee->func_kind == FuncKind::kPacked || s.buffers.size() != callee->buffers.size() ||
      s.scalars.size() != callee->dims.size() + callee->scalars.size()) {
    return Unsupported("call of " + s.callee + " with other parameters than it has");
  }
  if (const TileIntrinsic* row = IntrinsicOf(*callee)) {
    return EmitTileIntrinsic(s, *callee, *row->EmissionOf(Emission::Kind::kLlvm));
  }
  std::vector<Value*> args;
  for (const Region& r : s.buffers) args.push_back(RegionAddress(r));
  for (const Expr& e : s.scalars) args.push_back(exprs_.Emit(e));
  if (module_.TakesTeam(*callee)) {
    const TeamValues team = apart_ ? TeamValues() : exprs_.team();
    args.push_back(team.rank ? team.rank : ir_.getInt32(0));
    args.push_back(team.size ? team.size : ir_.getInt32(1));
    args.push_back(team.team ? team.team : llvm::ConstantPointerNull::get(ir_.getPtrTy()));
  }
  llvm::Function* target = module_.Declare(*callee);
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i]->getType() != target->getArg(static_cast<unsigned>(i))->getType()) {
      return Unsupported("call of " + s.callee + " with other types than it has");
    }
  }
  llvm::CallInst* call = ir_.CreateCall(target, args);
  call->setCallingConv(target->getCallingConv());
  if (ReturnsStatus(*callee) && ReturnsStatus(func_)) ReturnIfFailed(call);
}

void FunctionEmitter::EmitSync(const Sync& s) {
  if (s.level == Level::kThread || s.level == Level::kWorker) return;
  if (s.level != Level::kTeam) {
    return Unsupported(std::string("sync ") + Name(s.level) + " in code generation");
  }
  Value* team = exprs_.team().team;
  if (!team) return;  // one worker
  auto* type = llvm::FunctionType::get(ir_.getInt32Ty(), {ir_.getPtrTy()}, false);
  llvm::CallInst* ends = ir_.CreateCall(module_.DeclareC("tn_core_barrier", type), {team});
  // Where a kernel is told that the call is to end, it ends soon, and the host is told so too.
  if (ReturnsStatus(func_)) ReturnIfFailed(ends);
}

// The payload of a tn_msg_part (64 bits or a pointer), and its kind.
Value* FunctionEmitter::MessagePart(const Expr& part, int* kind) {
  constexpr int kText = 0, kInt = 1, kDouble = 2, kDType = 3, kDevice = 4, kCString = 5;
  if (const auto* call = As<Call>(part); call && (call->intrinsic == Intrinsic::kDTypeName ||
                                                  call->intrinsic == Intrinsic::kDeviceName)) {
    *kind = call->intrinsic == Intrinsic::kDTypeName ? kDType : kDevice;
    return exprs_.values().Cast(call->args[0]->dtype, DType::Int(64), exprs_.Emit(call->args[0]));
  }
  const DType type = part->dtype;
  *kind = kInt;
  if (IsA<StringConst>(part)) *kind = kText;
  if (type.IsFloat()) *kind = kDouble;
  if (type.IsHandle() && *kind != kText) *kind = kCString;
  if (const auto* text = As<StringConst>(part)) return module_.CString(text->value);
  Value* v = exprs_.Emit(part);
  if (type.IsFloat()) return exprs_.values().Cast(type, DType::Float(64), v);
  return exprs_.values().Cast(type, DType::Int(64), v);
}

// Texts side by side become one.
static std::vector<Expr> JoinTexts(const std::vector<Expr>& parts) {
  std::vector<Expr> out;
  for (const Expr& part : parts) {
    const auto* text = As<StringConst>(part);
    const auto* before = text && !out.empty() ? As<StringConst>(out.back()) : nullptr;
    if (before) {
      out.back() = StringConst::Make(before->value + text->value);
    } else {
      out.push_back(part);
    }
  }
  return out;
}

// {i32 kind, i32 value, 64-bit payload}.
llvm::Constant* FunctionEmitter::PartConstant(int kind, int value, llvm::Constant* payload) {
  const bool wide = f_->getParent()->getDataLayout().getPointerSize() == 8;
  std::vector<llvm::Constant*> fields = {ir_.getInt32(static_cast<uint32_t>(kind)),
                                         ir_.getInt32(static_cast<uint32_t>(value)), payload};
  if (payload->getType()->isPointerTy() && !wide) fields.push_back(ir_.getInt32(0));
  return llvm::ConstantStruct::getAnon(module_.context(), fields);
}

llvm::GlobalVariable* FunctionEmitter::PartsConstant(const std::vector<llvm::Constant*>& parts) {
  llvm::Constant* known = llvm::ConstantStruct::getAnon(module_.context(), parts);
  auto* global = new llvm::GlobalVariable(*f_->getParent(), known->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::PrivateLinkage, known, ".parts");
  global->setAlignment(llvm::Align(8));
  return global;
}

// Of parts that say which values they want.
Value* FunctionEmitter::PartsCopy(const std::vector<llvm::Constant*>& parts,
                                  const std::vector<Value*>& values) {
  constexpr uint32_t kPartBytes = 16, kPayloadAt = 8;
  llvm::GlobalVariable* known = PartsConstant(parts);
  llvm::BasicBlock& entry = f_->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  llvm::AllocaInst* copy = at_entry.CreateAlloca(known->getValueType(), nullptr, "parts");
  copy->setAlignment(llvm::Align(8));
  ir_.CreateMemCpy(copy, llvm::Align(8), known, llvm::Align(8), kPartBytes * parts.size());
  size_t next = 0;
  for (uint32_t i = 0; i < parts.size(); ++i) {
    if (parts[i]->getAggregateElement(1U)->isNullValue()) continue;
    ir_.CreateStore(values[next++], ir_.CreateConstInBoundsGEP1_32(ir_.getInt8Ty(), copy,
                                                                   kPartBytes * i + kPayloadAt));
  }
  return copy;
}

// One constant for each check, from which the runtime makes the message, and values as arguments:
// checks are the larger part of an export's code, and compiling them of its compile time. Where
// there are more values than that takes, they are stored into a copy.
llvm::CallInst* FunctionEmitter::EmitRaise(const std::string& error_kind,
                                           const std::vector<Expr>& message) {
  constexpr size_t kRaiseValues = 3;  // those of tn_core_raise_at
  std::vector<Value*> values;
  std::vector<llvm::Constant*> parts = {
      PartConstant(static_cast<int>(message.size()), 0, module_.CString(error_kind))};
  for (const Expr& part : message) {
    int kind = 0;
    Value* payload = MessagePart(part, &kind);
    auto* known = llvm::dyn_cast<llvm::Constant>(payload);
    if (!known) values.push_back(ir_.CreateBitCast(payload, ir_.getInt64Ty()));
    parts.push_back(known ? PartConstant(kind, 0, known)
                          : PartConstant(kind, static_cast<int>(values.size()), ir_.getInt64(0)));
  }
  llvm::Type *ptr = ir_.getPtrTy(), *i32 = ir_.getInt32Ty(), *i64 = ir_.getInt64Ty();
  if (values.size() <= kRaiseValues) {
    auto* type = llvm::FunctionType::get(i32, {ptr, i64, i64, i64}, false);
    values.resize(kRaiseValues, ir_.getInt64(0));
    values.insert(values.begin(), PartsConstant(parts));
    return ir_.CreateCall(module_.DeclareC("tn_core_raise_at", type), values);
  }
  auto* type = llvm::FunctionType::get(i32, {ptr, ptr, i32}, false);
  llvm::Value* copy = PartsCopy({parts.begin() + 1, parts.end()}, values);
  return ir_.CreateCall(
      module_.DeclareC("tn_core_raise", type),
      {module_.CString(error_kind), copy, ir_.getInt32(static_cast<uint32_t>(message.size()))});
}

void FunctionEmitter::EmitAssert(const Assert& s) {
  if (!ReturnsStatus(func_)) return Unsupported("assert in a function that cannot fail");
  llvm::BasicBlock* failed = NewBlock("raise");
  llvm::BasicBlock* ok = NewBlock("ok");
  ir_.CreateCondBr(exprs_.Emit(s.condition), ok, failed,
                   llvm::MDBuilder(module_.context()).createLikelyBranchWeights());
  ir_.SetInsertPoint(failed);
  exprs_.BeginStatement();  // nothing of the cold block is computed before it
  EmitRaise(s.error_kind, JoinTexts(s.parts))->addFnAttr(llvm::Attribute::Cold);
  Finish(ir_.getInt32(static_cast<uint32_t>(-1)));  // what both give
  ir_.SetInsertPoint(ok);
}

}  // namespace tenon::codegen
