#include "codegen/llvm/expr_emitter.h"

#include <llvm/IR/Constants.h>

#include "support/check.h"

namespace tenon::codegen {

using llvm::Value;

namespace {

// Of an index, as far as its form tells; what does not is simplified, which costs a hundred times
// as much, and is asked of every operand in unrolled loops.
bool IsNonNegative(const Expr& e, Analyzer* facts) {
  const auto both = [&](const Expr& a, const Expr& b) {
    return IsNonNegative(a, facts) && IsNonNegative(b, facts);
  };
  if (const auto number = AsInt(e)) return *number >= 0;
  if (const auto* ramp = As<Ramp>(e)) return both(ramp->base, ramp->stride);
  if (const auto* same = As<Broadcast>(e)) return IsNonNegative(same->value, facts);
  const auto* n = As<Binary>(e);
  const bool keeps =
      n && (n->op == BinaryOp::kAdd || n->op == BinaryOp::kMul || n->op == BinaryOp::kDiv ||
            n->op == BinaryOp::kMod || n->op == BinaryOp::kMin || n->op == BinaryOp::kMax);
  return (keeps && both(n->lhs, n->rhs)) || facts->ConstBounds(e).min >= 0;
}

}  // namespace

Value* ExprEmitter::Unsupported(const std::string& what, DType type) {
  module_.Error(func_, "unsupported: " + what);
  return llvm::PoisonValue::get(values_.TypeOf(type));
}

void ExprEmitter::BeginStatement() {
  scopes_.assign(1, {});
  guards_.Clear();
}

Value* ExprEmitter::Emit(const Expr& e) { return Visit(e); }

Value* ExprEmitter::Visit(const Expr& e) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (auto it = scope->values.find(e.get()); it != scope->values.end()) return it->second;
  }
  Value* v = e->dtype.scalable ? Unsupported("scalable vectors in code generation", DType::Int(32))
                               : ExprFunctor::Visit(e);
  scopes_.back().values[e.get()] = v;
  return v;
}

Value* ExprEmitter::VisitDefault(const Expr& e) { return Unsupported(Name(e->kind), e->dtype); }

Value* ExprEmitter::VisitIntConst(const IntConst& n, const Expr&) {
  return values_.IntConstant(n.dtype, n.value);
}

Value* ExprEmitter::VisitFloatConst(const FloatConst& n, const Expr&) {
  return values_.FloatConstant(n.dtype, n.value);
}

Value* ExprEmitter::VisitStringConst(const StringConst& n, const Expr&) {
  if (n.value.starts_with("@")) return module_.Symbol(n.value.substr(1));
  return module_.CString(n.value);
}

Value* ExprEmitter::VisitVar(const VarNode& n, const Expr&) {
  auto it = vars_.find(&n);
  TN_CHECK(it != vars_.end(), "variable {} of {} is used outside its scope", n.name, func_.name);
  return it->second;
}

Value* ExprEmitter::VisitUnary(const Unary& n, const Expr&) {
  return values_.Unary(n.op, n.dtype, Emit(n.value));
}

Value* ExprEmitter::VisitBinary(const Binary& n, const Expr&) {
  if (Info(n.op).is_comparison) {
    if (Value* mask = CompareLanes(n)) return mask;
  }
  Value* l = Emit(n.lhs);
  Value* r = Emit(n.rhs);
  const bool divides = n.op == BinaryOp::kDiv || n.op == BinaryOp::kMod;
  const bool is_index = n.lhs->dtype.IsIndex();
  if (divides && is_index && guard_ && !AsInt(n.rhs)) {
    // Lanes (or, for other vectors, everything) that the mask switches off must not divide by zero.
    Value* on = guard_;
    if (n.dtype.lanes !=
        static_cast<int32_t>(
            llvm::cast<llvm::FixedVectorType>(guard_->getType())->getNumElements())) {
      on = values_.Any(guard_);
    }
    r = ir_.CreateSelect(on, r, llvm::ConstantInt::get(r->getType(), 1));
  }
  const bool picks = n.op == BinaryOp::kMin || n.op == BinaryOp::kMax;
  if (picks && n.dtype.IsFloat() && n.dtype.bits >= 32) {
    if (not_nan_.Holds(n.rhs)) return values_.MinMaxOfNumber(n.op, l, r);
    if (not_nan_.Holds(n.lhs)) return values_.MinMaxOfNumber(n.op, r, l);
  }
  const bool nonnegative =
      is_index && IsNonNegative(n.lhs, &facts_) && IsNonNegative(n.rhs, &facts_);
  Value* v = values_.Binary(n.op, n.lhs->dtype, l, r, nonnegative);
  return v ? v
           : Unsupported("remainder of floats on target " + module_.target().ToString(), n.dtype);
}

// ---- Select ----

bool ExprEmitter::IsSafe(const Load& load) {
  const BufferPlace* place = PlaceOf(load.buffer);
  if (place == nullptr || !place->is_private || load.indices.size() != 1) return false;
  const auto* ramp = As<Ramp>(load.indices[0]);
  return AsInt(ramp ? ramp->base : load.indices[0]).has_value();
}

Value* ExprEmitter::EmitGuarded(const Expr& e, Value* mask) {
  Value* outer = guard_;
  if (mask) guard_ = mask;
  scopes_.emplace_back();
  Value* v = Emit(e);
  scopes_.pop_back();
  guard_ = outer;
  return v;
}

Value* ExprEmitter::Branch(Value* condition, const std::function<Value*()>& then,
                           const std::function<Value*()>& otherwise) {
  llvm::Function* f = ir_.GetInsertBlock()->getParent();
  auto* yes = llvm::BasicBlock::Create(module_.context(), "then", f);
  auto* no = llvm::BasicBlock::Create(module_.context(), "else", f);
  auto* join = llvm::BasicBlock::Create(module_.context(), "join", f);
  ir_.CreateCondBr(condition, yes, no);
  ir_.SetInsertPoint(yes);
  Value* a = then();
  llvm::BasicBlock* yes_end = ir_.GetInsertBlock();
  ir_.CreateBr(join);
  ir_.SetInsertPoint(no);
  Value* b = otherwise();
  llvm::BasicBlock* no_end = ir_.GetInsertBlock();
  ir_.CreateBr(join);
  ir_.SetInsertPoint(join);
  llvm::PHINode* phi = ir_.CreatePHI(a->getType(), 2);
  phi->addIncoming(a, yes_end);
  phi->addIncoming(b, no_end);
  return phi;
}

// Passes copy expressions, and to LLVM a load under a select's mask is not the one that the
// select's condition made, nor one branch another of the same. No statement writes before it has
// read all.
Value* ExprEmitter::Known(const Expr& e, std::vector<std::pair<Expr, Value*>> Memo::* list) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    for (const auto& [other, value] : (*scope).*list) {
      if (StructuralEqual(other, e)) return value;
    }
  }
  return nullptr;
}

Value* ExprEmitter::VisitSelect(const Select& n, const Expr& e) {
  Value* c = Emit(n.condition);
  if (!guards_.Needs(n.on_true) && !guards_.Needs(n.on_false)) {
    Value* t = Emit(n.on_true);
    return ir_.CreateSelect(c, t, Emit(n.on_false));
  }
  if (n.condition->dtype.IsScalar()) {
    if (Value* value = Known(e, &Memo::branches)) return value;
    Value* value = Branch(
        c, [&] { return EmitGuarded(n.on_true, nullptr); },
        [&] { return EmitGuarded(n.on_false, nullptr); });
    scopes_.back().branches.emplace_back(e, value);
    return value;
  }
  Value* not_c = ir_.CreateNot(c);
  const bool joins = guard_ && guard_->getType() == c->getType();
  Value* t = EmitGuarded(n.on_true, joins ? ir_.CreateAnd(guard_, c) : c);
  Value* f = EmitGuarded(n.on_false, joins ? ir_.CreateAnd(guard_, not_c) : not_c);
  return ir_.CreateSelect(c, t, f);
}

// ---- the rest ----

Value* ExprEmitter::VisitCast(const CastExpr& n, const Expr&) {
  return values_.Cast(n.value->dtype, n.dtype, Emit(n.value));
}

Value* ExprEmitter::VisitRamp(const Ramp& n, const Expr&) {
  Value* base = Emit(n.base);
  if (n.dtype.IsScalar()) return base;
  if (n.dtype.IsFloat()) return Unsupported("a ramp of floats", n.dtype);
  const int32_t lanes = n.dtype.lanes;
  Value* steps = values_.Steps(n.dtype.Element(), lanes);
  Value* stride = ir_.CreateVectorSplat(static_cast<unsigned>(lanes), Emit(n.stride));
  Value* offsets = values_.Binary(BinaryOp::kMul, n.dtype, stride, steps, false);
  Value* bases = ir_.CreateVectorSplat(static_cast<unsigned>(lanes), base);
  return values_.Binary(BinaryOp::kAdd, n.dtype, bases, offsets, false);
}

Value* ExprEmitter::VisitBroadcast(const Broadcast& n, const Expr&) {
  Value* v = Emit(n.value);
  return n.dtype.IsScalar() ? v : ir_.CreateVectorSplat(static_cast<unsigned>(n.dtype.lanes), v);
}

Value* ExprEmitter::VisitCall(const Call& n, const Expr&) { return EmitIntrinsic(n); }

}  // namespace tenon::codegen
