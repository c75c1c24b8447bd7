#include "codegen/llvm/module_emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>

#include "codegen/c_family/exchanged.h"
#include "codegen/llvm/function_emitter.h"
#include "codegen/llvm/passes.h"
#include "intrin/tile_intrinsic.h"
#include "ir/visit.h"

namespace tenon::codegen {

namespace {

// The buffer parameters that the function itself, or a function it calls, may write through.
std::set<const BufferNode*> WrittenBuffers(const PrimFunc& func, bool* leaks) {
  std::set<const BufferNode*> written;
  *leaks = false;
  PreOrder(func.body, [&](const NodeRef& n) {
    if (const auto* s = As<Store>(n)) written.insert(s->buffer.get());
    if (const auto* s = As<Atomic>(n)) written.insert(s->buffer.get());
    if (const auto* s = As<Copy>(n)) written.insert(s->dst->buffer.get());
    if (const auto* s = As<CallFunc>(n)) {
      for (const Region& r : s->buffers) written.insert(r->buffer.get());
    }
    if (const auto* c = As<Call>(n)) *leaks |= c->intrinsic == Intrinsic::kBufferData;
    return true;
  });
  return written;
}

}  // namespace

void ModuleEmitter::Error(const PrimFunc& func, std::string message) {
  if (!reported_.insert(func.name + '\0' + message).second) return;
  SourceLoc loc;
  loc.item = "function '" + func.name + "'";
  errors_.push_back(MakeError(std::move(message), std::move(loc)));
}

bool ModuleEmitter::Defines(const PrimFunc& func) const {
  const auto& wanted = options_.functions;
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), func.name) != wanted.end();
}

bool ModuleEmitter::IsInternal(const PrimFunc& func) const {
  return func.func_kind == FuncKind::kDevice && !IsExported(func) && options_.functions.empty();
}

// Of a function that is only declared the body may be another's, or missing: nothing is concluded
// from it.
void ModuleEmitter::DecorateParams(const PrimFunc& func, llvm::Function* f) {
  // What a packed function is called with is not known until it is checked.
  if (!Defines(func) || func.func_kind == FuncKind::kPacked) return;
  bool leaks = false;
  const auto written = WrittenBuffers(func, &leaks);
  const bool noalias = func.attrs.Get<bool>("noalias", false);
  const auto exchanged = ExchangedBuffers(func);
  for (size_t i = 0; i < func.buffers.size(); ++i) {
    const Buffer& b = func.buffers[i];
    llvm::AttrBuilder attrs(context());
    attrs.addAlignmentAttr(
        llvm::Align(static_cast<uint64_t>(std::max(b->align, b->dtype.Element().Bytes()))));
    if (noalias && !exchanged.contains(b.get())) attrs.addAttribute(llvm::Attribute::NoAlias);
    if (!leaks) {
      attrs.addAttribute(llvm::Attribute::NoCapture);
      if (!written.contains(b.get())) attrs.addAttribute(llvm::Attribute::ReadOnly);
    }
    f->getArg(static_cast<unsigned>(i))->addAttrs(attrs);
  }
}

// More calls and arguments than any network that people write has: LLVM takes time quadratic in
// such a function, whose own time is nothing beside that of what it calls.
static bool CallsTooMuch(const PrimFunc& func) {
  constexpr size_t kMany = 10000;
  size_t arguments = 0;
  PreOrder(func.body, [&](const NodeRef& n) {
    const auto* call = As<CallFunc>(n);
    if (call != nullptr) arguments += call->buffers.size() + call->scalars.size();
    return IsA<StmtNode>(n) && arguments <= kMany;
  });
  return arguments > kMany;
}

// Whether vectors of a function are taken apart as bits, which is what exponentials and their like
// do when they are written out: these want more registers than there are.
static bool WritesOutMath(const PrimFunc& func) {
  bool found = false;
  PreOrder(func.body, [&](const NodeRef& n) {
    const auto* call = As<Call>(n);
    found |= call && call->intrinsic == Intrinsic::kReinterpret && call->dtype.IsVector();
    return !found;
  });
  return found;
}

void ModuleEmitter::Decorate(const PrimFunc& func, llvm::Function* f) {
  f->setDoesNotThrow();
  f->addFnAttr("prefer-vector-width", std::to_string(target_.VectorBits()));
  f->addFnAttr("tune-cpu", target_.LlvmTuneCpu());
  f->addFnAttr("no-trapping-math", "true");
  f->addFnAttr(llvm::Attribute::NoInline);
  if (Defines(func) && CallsTooMuch(func)) f->addFnAttr(llvm::Attribute::OptimizeNone);
  // What is put aside on the stack is aligned only where a frame pointer is there from the start:
  // vectors that cross lines of the cache cost as much again, whenever the stack begins so.
  if (Defines(func) && WritesOutMath(func)) f->addFnAttr("frame-pointer", "all");
  if (func.func_kind == FuncKind::kPacked) f->addFnAttr(kRunsOnce);
  if (func.func_kind == FuncKind::kDevice && !IsExported(func)) {
    f->setCallingConv(llvm::CallingConv::Fast);
  }
  if (!IsExported(func) && !IsInternal(func)) {
    f->setVisibility(llvm::GlobalValue::HiddenVisibility);
    f->setDSOLocal(true);
  }
}

llvm::Function* ModuleEmitter::Declare(const PrimFunc& func) {
  if (llvm::Function* f = out_.getFunction(func.name)) return f;
  llvm::IRBuilder<> ir(context());
  ValueBuilder values(ir, target_);
  std::vector<llvm::Type*> params(func.buffers.size(), ir.getPtrTy());
  params.insert(params.end(), func.dims.size(), ir.getInt64Ty());
  for (const Var& v : func.scalars) params.push_back(values.TypeOf(v->dtype));
  if (TakesTeam(func)) {
    params.insert(params.end(), {ir.getInt32Ty(), ir.getInt32Ty(), ir.getPtrTy()});
  }
  llvm::Type* result =
      ReturnsStatus(func) ? static_cast<llvm::Type*>(ir.getInt32Ty()) : ir.getVoidTy();
  auto* type = llvm::FunctionType::get(result, params, false);
  const auto linkage =
      IsInternal(func) ? llvm::GlobalValue::InternalLinkage : llvm::GlobalValue::ExternalLinkage;
  auto* f = llvm::Function::Create(type, linkage, func.name, out_);
  Decorate(func, f);
  DecorateParams(func, f);
  return f;
}

llvm::FunctionCallee ModuleEmitter::DeclareC(const std::string& name, llvm::FunctionType* type) {
  llvm::FunctionCallee callee = out_.getOrInsertFunction(name, type);
  auto* f = llvm::dyn_cast<llvm::Function>(callee.getCallee());
  if (f && f->isDeclaration()) {
    f->setDoesNotThrow();
    if (name.starts_with("tn_core_")) {
      f->setVisibility(llvm::GlobalValue::HiddenVisibility);
      f->setDSOLocal(true);
    }
  }
  return {type, callee.getCallee()};
}

llvm::Constant* ModuleEmitter::CString(const std::string& text) {
  llvm::Constant*& at = strings_[text];
  if (at) return at;
  llvm::Constant* bytes = llvm::ConstantDataArray::getString(context(), text);
  auto* g = new llvm::GlobalVariable(out_, bytes->getType(), /*isConstant=*/true,
                                     llvm::GlobalValue::PrivateLinkage, bytes, ".text");
  g->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  g->setAlignment(llvm::Align(1));
  return at = g;
}

llvm::Constant* ModuleEmitter::Symbol(const std::string& name) {
  if (Func f = Find(name)) return Declare(*f);
  if (llvm::GlobalValue* g = out_.getNamedValue(name)) return g;
  const bool ours = name.starts_with("tn_");
  auto* g = new llvm::GlobalVariable(out_, llvm::Type::getInt8Ty(context()), /*isConstant=*/false,
                                     llvm::GlobalValue::ExternalLinkage, nullptr, name);
  if (ours) g->setVisibility(llvm::GlobalValue::HiddenVisibility);
  g->setDSOLocal(ours);
  return g;
}

void ModuleEmitter::EmitBlob(const DataBlob& blob) {
  llvm::Constant* bytes = llvm::ConstantDataArray::getString(context(), blob.bytes, false);
  auto* g = new llvm::GlobalVariable(out_, bytes->getType(), !blob.writable,
                                     llvm::GlobalValue::ExternalLinkage, bytes, blob.symbol);
  g->setAlignment(llvm::Align(static_cast<uint64_t>(blob.align)));
  if (blob.section && llvm::Triple(out_.getTargetTriple()).isOSBinFormatELF())
    g->setSection(blob.section);
  if (!blob.exported) {
    g->setVisibility(llvm::GlobalValue::HiddenVisibility);
    g->setDSOLocal(true);
  }
}

void ModuleEmitter::EmitErrorText(const std::string& name) {
  llvm::IRBuilder<> ir(context());
  auto* type = llvm::FunctionType::get(ir.getPtrTy(), false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, out_);
  ir.SetInsertPoint(llvm::BasicBlock::Create(context(), "", f));
  ir.CreateRet(ir.CreateCall(DeclareC("tn_core_error_text", type)));
}

Status ModuleEmitter::Emit() {
  for (const DataBlob& blob : options_.blobs) EmitBlob(blob);
  for (const std::string& name : options_.error_texts) EmitErrorText(name);
  for (const std::string& name : options_.functions) {
    if (!Find(name)) return MakeError("no function '" + name + "' in the module");
  }
  for (const auto& [name, func] : module_.funcs) {
    if (IntrinsicOf(*func)) continue;  // its calls are operations
    if (Defines(*func)) FunctionEmitter(*this, *func, Declare(*func)).Emit();
  }
  if (!errors_.empty()) return std::move(errors_);
  return Ok();
}

}  // namespace tenon::codegen
