#include "loop/pass/blocks/lower_blocks.h"

#include "loop/pass/blocks/empty_reductions.h"
#include "loop/rewrite.h"

namespace tenon {

namespace {

bool IsPlain(const Block& block) {
  bool cpu_level = block.at == Level::kThread || block.at == Level::kWorker;
  return cpu_level && !block.async;
}

const Binary* AsProduct(const Expr& e) {
  const auto* binary = As<Binary>(e);
  return binary && binary->op == BinaryOp::kMul ? binary : nullptr;
}

// a * b + c, c + a * b, a * b - c and c - a * b as one fma. Of 8-bit floats every operation rounds
// on all targets, since a rounding more or less is seen at once.
NodeRef ContractOne(const NodeRef& n) {
  const auto* sum = As<Binary>(n);
  if (!sum || !sum->dtype.IsFloat() || sum->dtype.IsFloat8()) return n;
  bool add = sum->op == BinaryOp::kAdd, sub = sum->op == BinaryOp::kSub;
  if (!add && !sub) return n;
  if (const Binary* product = AsProduct(sum->lhs)) {
    Expr addend = add ? sum->rhs : -sum->rhs;
    return Call::Make(Intrinsic::kFma, {product->lhs, product->rhs, addend});
  }
  if (const Binary* product = AsProduct(sum->rhs)) {
    Expr factor = add ? product->lhs : -product->lhs;
    return Call::Make(Intrinsic::kFma, {factor, product->rhs, sum->lhs});
  }
  return n;
}

// Goes over one function. fp_ is the mode of the innermost block around, and the analyzer knows the
// conditions of the blocks around, as long as it is inside.
class BlockLowerer final : public ScopedRewriter {
 public:
  BlockLowerer(const PrimFunc& func, bool has_fma) : has_fma_(has_fma) { Learn(func, &analyzer_); }

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    const auto* block = As<Block>(stmt);
    if (!block || !IsPlain(*block)) return Children(stmt);
    FpMode outer = std::exchange(fp_, block->fp);
    Stmt out = LowerBlock(*block);
    fp_ = outer;
    return out;
  }

  Expr VisitExpr(const Expr& expr) override {
    if (fp_ == FpMode::kStrict || !has_fma_) return expr;
    return PostOrderRewrite(expr, ContractOne);
  }

  Stmt LowerBlock(const Block& block) {
    VarMap bindings;
    for (const IterVar& iter : block.iters) bindings[iter->var.get()] = iter->binding;
    Stmt body = Substitute(block.body, bindings);
    Stmt init = block.init ? Substitute(block.init, bindings) : nullptr;
    Expr where = block.where ? analyzer_.Simplify(Substitute(block.where, bindings)) : nullptr;
    if (where && IsZero(where)) return nullptr;
    bool guarded = where && !IsOne(where);
    size_t token = guarded ? analyzer_.Assume(where) : 0;
    if (init)
      body = Seq::Make({GuardInit(block, Rewrite(init)), Rewrite(body)});
    else
      body = Rewrite(body);
    if (guarded) analyzer_.Retract(token);
    return guarded && body ? If::Make(where, body) : body;
  }

  Stmt GuardInit(const Block& block, Stmt init) {
    if (!init) return init;
    std::vector<Expr> at_start;
    for (const IterVar& iter : block.iters) {
      if (iter->iter_kind == IterKind::kSpatial) continue;
      Expr condition = analyzer_.Simplify(Eq(iter->binding, iter->min));
      if (IsZero(condition)) return nullptr;
      if (!IsOne(condition)) at_start.push_back(std::move(condition));
    }
    Expr condition = Conjunction(at_start);
    return condition ? If::Make(condition, init) : init;
  }

  bool has_fma_;
  FpMode fp_ = FpMode::kStrict;
};

}  // namespace

Module LowerBlocks(const Module& module, const PassContext& context) {
  bool has_fma = context.target && context.target->HasFma();
  return MapFuncs(module, [&](const Func& func) {
    const Func whole = InitializeEmptyReductions(func);
    return WithBody(whole, BlockLowerer(*whole, has_fma).Rewrite(whole->body));
  });
}

}  // namespace tenon
