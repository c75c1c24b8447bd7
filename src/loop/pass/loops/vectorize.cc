// All lanes at once, by abstract interpretation with two kinds of values: those that are the same
// in every lane stay scalars, those that differ become vectors. A Widener (lanes.h) walks
// expressions and knows which variables have become vectors; here are the statements, and memory.
//
// The loop's variable is ramp(min, 1, lanes). An `if` whose condition is a vector does not branch:
// its lanes become a mask, and-ed to the mask of what is around, under which stores write and loads
// read. Conjuncts that the first and the last lane agree on are taken out first and branch as
// before, and the whole of a masked body is entered only where some lane is active, so that what
// its lanes have in common can be done without a mask. From
//
//   for j in 0..8 vectorized {
//     if i * 8 + j < n && i < 5 { C[i * 8 + j] = A[i * 8 + j] * B[i] }
//   }
//
// comes
//
//   if i < 5 {
//     if reduce_max<bool>(ramp(i * 8, 1, 8) < broadcast(n, 8)) {
//       C[ramp(i * 8, 1, 8) where ramp(i * 8, 1, 8) < broadcast(n, 8)] =
//           A[ramp(i * 8, 1, 8) where ramp(i * 8, 1, 8) < broadcast(n, 8)] * broadcast(B[i], 8)
//     }
//   }
//
// (broken here after the `=`). A store whose place is a scalar while its value is a vector can only
// be an update, x = x op value, and becomes one reduction of the lanes; inactive lanes bring the
// identity. A buffer that is made inside gets `lanes` elements for each of its own, lanes next to
// each other, so that the lanes of one element are one vector.

#include "loop/pass/loops/vectorize.h"

#include <fmt/format.h>

#include "loop/pass/lanes.h"
#include "loop/rewrite.h"
#include "target/target.h"

namespace tenon {

namespace {

// The vector reduction that does `op`.
std::optional<Intrinsic> ReductionOf(BinaryOp op) {
  if (op == BinaryOp::kAdd) return Intrinsic::kReduceAdd;
  if (op == BinaryOp::kMax) return Intrinsic::kReduceMax;
  if (op == BinaryOp::kMin) return Intrinsic::kReduceMin;
  return std::nullopt;
}

// `x[i] op value` as what the store x[i] = … adds to itself.
struct Update {
  BinaryOp op;
  Expr value;
};

std::optional<Update> AsUpdate(const Store& store) {
  auto is_self = [&](const Expr& e) {
    const auto* load = As<Load>(e);
    if (!load || load->buffer != store.buffer || load->mask) return false;
    for (size_t i = 0; i < load->indices.size(); ++i) {
      if (!StructuralEqual(load->indices[i], store.indices[i])) return false;
    }
    return true;
  };
  std::optional<Update> update;
  if (const auto* binary = As<Binary>(store.value)) {
    if (is_self(binary->lhs))
      update = Update{binary->op, binary->rhs};
    else if (is_self(binary->rhs))
      update = Update{binary->op, binary->lhs};
  } else if (const auto* call = As<Call>(store.value); call && call->intrinsic == Intrinsic::kFma) {
    if (is_self(call->args[2])) update = Update{BinaryOp::kAdd, call->args[0] * call->args[1]};
  }
  if (update && UsesBuffer(update->value, store.buffer.get())) update.reset();
  return update;
}

// The body of one loop for all lanes. When failure() is set the result is meaningless. Until then
// what is made does what all lanes of mask_ did, and nothing for the others.
class LaneRewriter final : public Widener {
 public:
  /// `analyzer`: what is known around the loop. `apart`: names for a copy of what is guarded, code
  /// without masks where a guard holds in all lanes, for targets that take lanes with masks one
  /// after the other; null: there is none.
  LaneRewriter(const Var& lane, const Expr& min, int32_t lanes, Analyzer* analyzer,
               NameSupply* apart)
      : Widener(lanes), lane_(lane), min_(min), analyzer_(*analyzer), apart_(apart) {
    Set(lane, Ramp::Make(min, IndexConst(1), lanes));
  }

  Stmt Rewrite(const Stmt& stmt) {
    if (!failure_.empty()) return stmt;
    switch (stmt->kind) {
      case NodeKind::kSeq: return OnSeq(*As<Seq>(stmt));
      case NodeKind::kFor: return OnFor(*As<For>(stmt), stmt);
      case NodeKind::kIf: return OnIf(*As<If>(stmt));
      case NodeKind::kLet: return OnLet(*As<Let>(stmt));
      case NodeKind::kAlloc: return OnAlloc(*As<Alloc>(stmt));
      case NodeKind::kStore: return OnStore(*As<Store>(stmt));
      default: Refuse(fmt::format("{} inside", Name(stmt->kind))); return stmt;
    }
  }

 private:
  void Refuse(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
  }

  // `make` with the lanes of `condition` only. `any_lane`: it is known that there is one.
  template <class F>
  auto Under(const Expr& condition, bool any_lane, F&& make) {
    Expr outer_mask = mask_;
    bool outer_any = std::exchange(any_lane_, any_lane);
    mask_ = mask_ ? And(mask_, condition) : condition;
    const size_t known = Known();
    auto out = make();
    Forget(known);
    mask_ = std::move(outer_mask);
    any_lane_ = outer_any;
    return out;
  }

  static Expr AnyLane(const Expr& mask) {
    return Call::Make(Intrinsic::kReduceMax, {mask}, DType::Bool());
  }

  Stmt OnSeq(const Seq& seq) {
    std::vector<Stmt> out;
    for (const Stmt& s : seq.stmts) out.push_back(Rewrite(s));
    return Seq::Make(std::move(out));
  }

  Stmt OnFor(const For& loop, const Stmt& stmt) {
    if (Varies(loop.min) || Varies(loop.extent)) {
      Refuse(fmt::format("the range of {} depends on the lane", loop.var->name));
      return stmt;
    }
    return For::Make(loop.var, Visit(loop.min), Visit(loop.extent), loop.for_kind,
                     Rewrite(loop.body), loop.attrs, loop.thread);
  }

  // A condition for all lanes: conjuncts that hold in all lanes or in none are scalars (the tail of
  // a tensor that ends at a multiple of the lanes, the border between two parts of a
  // concatenation).
  Expr Condition(const Expr& condition) {
    std::vector<Expr> common, varying;
    for (const Expr& e : Conjuncts(condition)) {
      Expr c = Visit(Agreeing(e));
      (c->dtype.IsScalar() ? common : varying).push_back(c);
    }
    Expr scalar = Conjunction(common), vector = Conjunction(varying);
    if (!vector) return scalar;
    return scalar ? And(ToLanes(scalar, lanes_), vector) : vector;
  }

  // The comparison in the first lane, where that decides it for all of them; else the comparison.
  Expr Agreeing(const Expr& e) {
    const auto* comparison = As<Binary>(e);
    bool ordered = comparison && comparison->lhs->dtype == DType::Index() &&
                   (comparison->op == BinaryOp::kLt || comparison->op == BinaryOp::kLe ||
                    comparison->op == BinaryOp::kGt || comparison->op == BinaryOp::kGe);
    if (!ordered || !Varies(e) || !IsPure(e)) return e;
    auto affine = DetectAffine(comparison->lhs - comparison->rhs, {lane_});
    if (!affine || !AsInt(analyzer_.Simplify(affine->coefficients[0]))) return e;  // monotone, then
    Expr first = Substitute(e, VarMap{{lane_.get(), min_}});
    Expr last = Substitute(e, VarMap{{lane_.get(), min_ + (lanes_ - 1)}});
    return Implies(first, last) && Implies(last, first) ? analyzer_.Simplify(first) : e;
  }

  // What says that a guard holds in all lanes; null where that is not a matter of the first and the
  // last.
  Expr InAllLanes(const Expr& condition) {
    std::vector<Expr> ends;
    for (const Expr& e : Conjuncts(condition)) {
      if (!Varies(Agreeing(e))) continue;
      const auto* comparison = As<Binary>(e);
      const bool ordered = comparison && IsPure(e) && comparison->lhs->dtype == DType::Index() &&
                           comparison->op != BinaryOp::kNe && comparison->op != BinaryOp::kEq &&
                           comparison->dtype == DType::Bool();
      if (!ordered || !DetectAffine(comparison->lhs - comparison->rhs, {lane_})) return nullptr;
      for (const Expr& lane : {min_, min_ + (lanes_ - 1)}) {
        const Expr end = analyzer_.Simplify(Visit(Substitute(e, VarMap{{lane_.get(), lane}})));
        if (ends.empty() || !Implies(Conjunction(ends), end)) ends.push_back(end);
      }
      if (ends.size() > 1 && Implies(ends.back(), ends[ends.size() - 2]))
        ends.erase(ends.end() - 2);
    }
    return Conjunction(ends);
  }

  bool Implies(const Expr& a, const Expr& b) {
    size_t token = analyzer_.Assume(a);
    bool proved = analyzer_.CanProve(b);
    analyzer_.Retract(token);
    return proved;
  }

  Stmt OnIf(const If& node) {
    Expr condition = Condition(node.condition);
    if (condition->dtype.IsScalar()) {
      Stmt then_body = Rewrite(node.then_body);
      return If::Make(condition, then_body, node.else_body ? Rewrite(node.else_body) : nullptr);
    }
    if (node.else_body) {
      if (!IsPure(node.condition)) Refuse("an else whose condition reads memory");
      return Seq::Make({Masked(condition, node.then_body), Masked(Not(condition), node.else_body)});
    }
    std::vector<Expr> common, varying;
    for (const Expr& e : Conjuncts(node.condition)) {
      Expr c = Condition(e);
      (c->dtype.IsScalar() ? common : varying).push_back(c);
    }
    const Expr all = apart_ && !mask_ ? InAllLanes(node.condition) : nullptr;
    Stmt masked = Masked(Conjunction(varying), node.then_body);
    if (all) masked = If::Make(all, Rewrite(FreshCopy(node.then_body, {}, apart_)), masked);
    return common.empty() ? masked : If::Make(Conjunction(common), masked);
  }

  // Where no lane is left the body is not entered, so what is common to all lanes needs no mask in
  // there.
  Stmt Masked(const Expr& lanes, const Stmt& body) {
    return Under(lanes, true, [&] {
      Stmt out = Rewrite(body);
      return If::Make(AnyLane(mask_), out);
    });
  }

  Stmt OnLet(const Let& let) {
    Expr value = Visit(let.value);
    if (value->dtype.IsScalar()) return Let::Make(let.var, value, Rewrite(let.body));
    Var wide = VarNode::Make(let.var->name, value->dtype);
    Set(let.var, wide);
    return Let::Make(wide, value, Rewrite(let.body));
  }

  // Lanes share nothing: element e of the buffer becomes elements e * lanes + lane of a larger one.
  Stmt OnAlloc(const Alloc& alloc) {
    const BufferNode& b = *alloc.buffer;
    if (b.rank() != 1 || b.layout || !b.strides.empty()) {
      Refuse("a buffer that is not flat is made inside");
      return alloc.body;
    }
    Buffer wide =
        BufferNode::Make(b.name, b.dtype, {b.shape[0] * lanes_}, b.scope, nullptr, {}, b.align);
    private_[&b] = wide;
    return Alloc::Make(wide, Rewrite(alloc.body));
  }

  const BufferNode* Private(const Buffer& b, Buffer* wide) const {
    auto it = private_.find(b.get());
    if (it == private_.end()) return nullptr;
    *wide = it->second;
    return b.get();
  }

  Expr PrivateIndex(const Expr& element) {
    Expr lane = Ramp::Make(IndexConst(0), IndexConst(1), lanes_);
    if (element->dtype.IsScalar()) return Ramp::Make(element * lanes_, IndexConst(1), lanes_);
    if (const auto* ramp = As<Ramp>(element)) {
      return Ramp::Make(ramp->base * lanes_, ramp->stride * lanes_ + 1, lanes_);
    }
    return element * ToLanes(IndexConst(lanes_), lanes_) + lane;
  }

  Stmt OnStore(const Store& store) {
    Buffer wide;
    if (Private(store.buffer, &wide)) {
      Expr index = PrivateIndex(Visit(store.indices[0]));
      return Store::Make(wide, {index}, VisitLanes(store.value), MaskOf(store.mask));
    }
    std::vector<Expr> indices;
    bool is_vector = false;
    for (const Expr& i : store.indices) {
      indices.push_back(Visit(i));
      is_vector |= indices.back()->dtype.IsVector();
    }
    if (is_vector) {
      Expr value = VisitLanes(store.value);
      return Store::Make(store.buffer, std::move(indices), value, MaskOf(store.mask));
    }
    return StoreToOnePlace(store, std::move(indices));
  }

  Expr MaskOf(const Expr& own) {
    Expr mask = own ? VisitLanes(own) : nullptr;
    if (!mask_) return mask;
    return mask ? And(mask_, mask) : mask_;
  }

  Stmt StoreToOnePlace(const Store& store, std::vector<Expr> indices) {
    auto update = AsUpdate(store);
    if (!update) {
      Expr value = Visit(store.value), mask = store.mask ? Visit(store.mask) : nullptr;
      if (value->dtype.IsVector() || (mask && mask->dtype.IsVector())) {
        Refuse(fmt::format("all lanes write one element of {}", store.buffer->name));
        return body_of_failure_;
      }
      return Store::Make(store.buffer, std::move(indices), value, mask);
    }
    auto reduction = ReductionOf(update->op);
    if (!reduction) {
      Refuse(fmt::format("no vector form of the update of {}", store.buffer->name));
      return body_of_failure_;
    }
    Expr lanes = VisitLanes(update->value);
    if (Expr mask = MaskOf(store.mask)) {
      lanes =
          Select::Make(mask, lanes, ToLanes(NeutralOf(update->op, store.buffer->dtype), lanes_));
    }
    Expr one = Call::Make(*reduction, {lanes}, store.buffer->dtype);
    Expr self = Load::Make(store.buffer, indices);
    return Store::Make(store.buffer, indices, Binary::Make(update->op, self, one));
  }

  Expr VisitLoad(const Load& node, const Expr& e) override {
    Buffer wide;
    if (Private(node.buffer, &wide)) {
      Expr element = Visit(node.indices[0]);
      // Every lane has such an element, so even those that are not active may read theirs.
      bool exists = AsInt(element).has_value() && !node.mask;
      return Load::Make(wide, {PrivateIndex(element)}, exists ? nullptr : MaskOf(node.mask));
    }
    Expr load = Widener::VisitLoad(node, e);
    const auto* made = As<Load>(load);
    if (!mask_ || InBounds(node)) return load;
    if (Expr done = Loaded(*made)) return done;
    if (load->dtype.IsScalar()) {
      return any_lane_ ? load : Select::Make(AnyLane(mask_), load, MakeIntConst(load->dtype, 0));
    }
    return Load::Make(made->buffer, made->indices, made->mask ? And(mask_, made->mask) : mask_);
  }

  // True when every lane, active or not, may read its element: masks cost registers, and a masked
  // load is not the load that the condition itself made.
  bool InBounds(const Load& load) {
    if (load.mask) return false;
    for (size_t i = 0; i < load.indices.size(); ++i) {
      Interval range = analyzer_.ConstBounds(load.indices[i]);
      auto size = AsInt(load.buffer->shape[i]);
      if (!size || range.min < 0 || range.max >= *size) return false;
    }
    return true;
  }

  // The side that a lane does not take must not touch memory.
  Expr VisitSelect(const Select& node, const Expr& e) override {
    Expr condition = Condition(node.condition);
    if (condition->dtype.IsScalar()) {
      Expr on_true = Visit(node.on_true), on_false = Visit(node.on_false);
      bool is_vector = on_true->dtype.IsVector() || on_false->dtype.IsVector();
      if (!is_vector) return Select::Make(condition, on_true, on_false);
      return Select::Make(condition, ToLanes(on_true, lanes_), ToLanes(on_false, lanes_));
    }
    size_t outer = loaded_.size();
    NoteLoads(condition);
    Expr on_true = Under(condition, false, [&] { return VisitLanes(node.on_true); });
    Expr on_false = Under(Not(condition), false, [&] { return VisitLanes(node.on_false); });
    loaded_.resize(outer);
    return Select::Make(condition, on_true, on_false);
  }

  // What a condition has read in all lanes of its own mask is read again by the same load: max(x,
  // 0) as a Select. The sides of the Select have no lanes beyond that mask, and several that stand
  // in each other (what is rounded, and rounded again) would have a load for each way through them.
  void NoteLoads(const Expr& condition) {
    PreOrder(condition, [&](const NodeRef& n) {
      const auto* load = As<Load>(n);
      if (load && (!load->mask || load->mask == mask_)) loaded_.push_back(Cast<ExprNode>(n));
      return true;
    });
  }

  // The load of these elements that lanes of this mask have done anyway; null: there is none.
  Expr Loaded(const Load& load) const {
    if (load.mask) return nullptr;
    for (const Expr& e : loaded_) {
      const auto* known = As<Load>(e);
      bool same = known->buffer == load.buffer && known->dtype == load.dtype;
      for (size_t i = 0; same && i < load.indices.size(); ++i) {
        same = StructuralEqual(known->indices[i], load.indices[i]);
      }
      if (same) return e;
    }
    return nullptr;
  }

  const Var& lane_;
  const Expr& min_;
  Analyzer& analyzer_;
  std::vector<Expr> loaded_;  // loads that all lanes of mask_ do anyway
  const Stmt body_of_failure_ =
      Seq::Make({});  // stands for what could not be rewritten; dropped with the rest
  Expr mask_;         // the lanes that are active; null: all
  NameSupply* apart_;
  bool any_lane_ = true;  // mask_ is known to have one
  BufferMap private_;     // buffers made inside → theirs with room for all lanes
};

// Goes over one function, innermost loops first: what a LaneRewriter gets has no vectorized loop
// left inside.
class LoopVectorizer final : public ScopedRewriter {
 public:
  LoopVectorizer(const Func& func, const PassContext& context)
      : func_(*func), context_(context), names_(*func) {
    Learn(*func, &analyzer_);
    is_gpu_ = func->IsForDevice();
  }

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    const auto* loop = As<For>(stmt);
    if (!loop || loop->for_kind != ForKind::kVectorized) return Children(stmt);
    Stmt body = VisitStmt(loop->body);
    if (!body) return nullptr;
    std::string failure;
    Stmt out = ToVectors(*loop, body, &failure);
    if (failure.empty()) return out;
    context_.Remark(
        fmt::format("{}: loop {} is not vectorized: {}", func_.name, loop->var->name, failure));
    return For::Make(loop->var, loop->min, loop->extent, ForKind::kSerial, body, loop->attrs);
  }

  Stmt ToVectors(const For& loop, const Stmt& body, std::string* failure) {
    auto extent = AsInt(loop.extent);
    if (!extent) return *failure = "its extent is not constant", body;
    if (*extent <= 0) return nullptr;
    if (*extent == 1) return Substitute(body, VarMap{{loop.var.get(), loop.min}});
    if (*extent > context_.max_lanes) {
      return *failure = fmt::format("{} lanes, more than {}", *extent, context_.max_lanes), body;
    }
    analyzer_.Bind(loop.var, loop.min, loop.extent);
    LaneRewriter rewriter(loop.var, loop.min, static_cast<int32_t>(*extent), &analyzer_,
                          is_gpu_ ? &names_ : nullptr);
    Stmt out = rewriter.Rewrite(body);
    *failure = rewriter.failure();
    return out;
  }

  const PrimFunc& func_;
  const PassContext& context_;
  NameSupply names_;
  bool is_gpu_ = false;
};

}  // namespace

Module Vectorize(const Module& module, const PassContext& context) {
  return MapFuncs(module, [&](const Func& func) {
    return WithBody(func, LoopVectorizer(func, context).Rewrite(func->body));
  });
}

}  // namespace tenon
