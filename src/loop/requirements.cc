#include "loop/requirements.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "arith/analyzer.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/visit.h"

namespace tenon {

namespace {

// More accesses than that are not looked at, and no more is asked of one call.
constexpr int kMaxAccesses = 20000;
constexpr size_t kMaxRequirements = 64;

/// One step on the way from the function to an access, outermost first.
struct Step {
  enum class Kind : uint8_t { kLoop, kValue, kCondition } kind;
  Var var;           // of a loop or a value
  Expr min, extent;  // of a loop
  Expr value;        // of a value; a condition, null where it is not known
};

enum class Side : uint8_t { kLeast, kMost };

/// Where a loop stands in the witness of an index that neither rises nor falls with it.
enum class Otherwise : uint8_t { kFirst, kLast, kWraps };

/// How an expression changes with a variable.
enum class Trend : uint8_t { kNone, kRises, kFalls, kUnknown };

Trend Turned(Trend t) {
  if (t == Trend::kRises) return Trend::kFalls;
  return t == Trend::kFalls ? Trend::kRises : t;
}

Trend Both(Trend a, Trend b) {
  if (a == Trend::kNone || a == b) return b;
  return b == Trend::kNone ? a : Trend::kUnknown;
}

class Finder {
 public:
  Finder(const PrimFunc& func, const Module& module) : func_(func), module_(module) {
    for (size_t i = 0; i < func.dims.size(); ++i) {
      const DimRange range = func.dim_range(i);
      numbers_.insert(func.dims[i].get());
      analyzer_.BindInterval(func.dims[i], {range.lo, range.hi < 0 ? Interval::kPosInf : range.hi});
    }
    for (const Var& scalar : func.scalars) {
      if (!scalar->dtype.IsFloat() && !scalar->dtype.IsHandle()) numbers_.insert(scalar.get());
    }
  }

  Expected<std::vector<Requirement>> Find() {
    bool leaves = false;  // then what stands behind may not run
    PreOrder(func_.body, [&](const NodeRef& n) {
      leaves |= IsA<Return>(n);
      return !IsA<ExprNode>(n);
    });
    if (!leaves) Walk(func_.body);
    if (!errors_.empty()) return errors_;
    return std::move(found_);
  }

 private:
  // ---- Walking to the accesses ----

  template <class F>
  void Under(Step step, const F& inside) {
    path_.push_back(std::move(step));
    inside();
    path_.pop_back();
  }
  template <class F>
  void If(const Expr& condition, const F& inside) {
    Under({Step::Kind::kCondition, nullptr, nullptr, nullptr, condition}, inside);
  }

  void Walk(const Stmt& s) {
    if (const auto* seq = As<Seq>(s)) {
      for (const Stmt& one : seq->stmts) Walk(one);
    } else if (const auto* loop = As<For>(s)) {
      Look(loop->min), Look(loop->extent);
      Under({Step::Kind::kLoop, loop->var, loop->min, loop->extent, nullptr},
            [&] { Walk(loop->body); });
    } else if (const auto* let = As<Let>(s)) {
      Look(let->value);
      Under({Step::Kind::kValue, let->var, nullptr, nullptr, let->value}, [&] { Walk(let->body); });
    } else if (const auto* test = As<tenon::If>(s)) {
      Look(test->condition);
      If(test->condition, [&] { Walk(test->then_body); });
      if (test->else_body) If(Not(test->condition), [&] { Walk(test->else_body); });
    } else if (const auto* alloc = As<Alloc>(s)) {
      Walk(alloc->body);
    } else if (const auto* bind = As<Bind>(s)) {
      Walk(bind->body);
    } else if (const auto* block = As<Block>(s)) {
      WalkBlock(*block, 0);
    } else {
      WalkEffect(s);
    }
  }

  void WalkBlock(const Block& block, size_t iter) {
    if (iter < block.iters.size()) {
      const IterVarNode& v = *block.iters[iter];
      return Under({Step::Kind::kValue, v.var, nullptr, nullptr, v.binding},
                   [&] { WalkBlock(block, iter + 1); });
    }
    auto inside = [&] {
      if (block.init) {
        Expr starts = BoolConst(true);
        for (const IterVar& v : block.iters) {
          if (v->iter_kind == IterKind::kReduce) starts = And(starts, Eq(v->var, v->min));
        }
        If(starts, [&] { Walk(block.init); });
      }
      Walk(block.body);
    };
    if (!block.where) return inside();
    Look(block.where);
    If(block.where, inside);
  }

  void WalkEffect(const Stmt& s) {
    if (const auto* store = As<Store>(s)) {
      Look(store->value);
      for (const Expr& i : store->indices) Look(i);
      auto check = [&] { Access(store->buffer, store->indices); };
      store->mask ? If(nullptr, check) : check();
    } else if (const auto* atomic = As<Atomic>(s)) {
      Look(atomic->value);
      Access(atomic->buffer, atomic->indices);
    } else if (const auto* call = As<CallFunc>(s)) {
      WalkCall(*call);
    } else if (const auto* effect = As<Evaluate>(s)) {
      Look(effect->call);
    }
  }

  // What the function needs of its own sizes, with what it is given for them.
  void WalkCall(const CallFunc& call) {
    for (const Expr& e : call.scalars) Look(e);
    const Func callee = module_.Find(call.callee);
    if (!callee || callee->func_kind != FuncKind::kDevice) return;
    auto needs = RequirementsOf(*callee, module_);
    if (!needs) {
      if (errors_.empty()) errors_ = needs.errors();
      return;
    }
    VarMap given;
    std::vector<Var> params = callee->dims;
    params.insert(params.end(), callee->scalars.begin(), callee->scalars.end());
    if (params.size() != call.scalars.size()) return;
    for (size_t i = 0; i < params.size(); ++i) given[params[i].get()] = call.scalars[i];
    for (const Requirement& r : *needs) {
      auto check = [&] {
        const auto holds = Cast<Binary>(Substitute(Expr(r.holds), given));
        Judge(holds, r.what + " in @" + callee->name);
      };
      r.when ? If(Substitute(r.when, given), check) : check();
    }
  }

  // The loads and divisions of an expression. What shares its nodes is looked at once per
  // condition.
  void Look(const Expr& e) {
    std::unordered_set<const Node*> seen;
    LookInto(e, &seen);
  }

  void LookInto(const NodeRef& n, std::unordered_set<const Node*>* seen) {
    PreOrder(n, [&](const NodeRef& node) {
      if (node->kind == NodeKind::kBuffer || !seen->insert(node.get()).second) return false;
      if (const auto* select = As<Select>(node)) {
        LookInto(select->condition, seen);
        std::unordered_set<const Node*> then, otherwise;
        if (--budget_ < 0) return false;
        If(select->condition, [&] { LookInto(select->on_true, &then); });
        If(Not(select->condition), [&] { LookInto(select->on_false, &otherwise); });
        return false;
      }
      if (const auto* load = As<Load>(node)) {
        auto check = [&] { Access(load->buffer, load->indices); };
        load->mask ? If(nullptr, check) : check();
      }
      if (const auto* binary = As<Binary>(node)) Divides(binary);
      const auto* call = As<Call>(node);
      return !call ||
             (call->intrinsic != Intrinsic::kBufferData && call->intrinsic != Intrinsic::kPrefetch);
    });
  }

  void Divides(const Binary* e) {
    const bool divides = e->op == BinaryOp::kDiv || e->op == BinaryOp::kMod;
    if (!divides || !e->dtype.IsIndex() || e->dtype.IsVector() || AsInt(e->rhs)) return;
    Judge(Cast<Binary>(Ne(e->rhs, IndexConst(0))), ToString(Ref<const Binary>(e)));
  }

  void Access(const Buffer& buffer, const std::vector<Expr>& indices) {
    for (size_t d = 0; d < indices.size(); ++d) {
      if (!indices[d]->dtype.IsIndex() || indices[d]->dtype.IsVector()) continue;
      std::string place;
      for (const Expr& i : indices) place += (place.empty() ? "" : ", ") + ToString(i);
      const std::string what = fmt::format("{}[{}] along dim {}", buffer->name, place, d);
      Judge(Cast<Binary>(Le(IndexConst(0), indices[d])), what);
      Judge(Cast<Binary>(Lt(indices[d], buffer->shape[d])), what);
    }
  }

  // ---- The witness ----

  Trend TrendOf(const Expr& e, const Var& v) {
    if (!UsesVar(e, v.get())) return Trend::kNone;
    if (e.get() == v.get()) return Trend::kRises;
    if (const auto* cast = As<CastExpr>(e)) return TrendOf(cast->value, v);
    const auto* b = As<Binary>(e);
    if (!b) return Trend::kUnknown;
    switch (b->op) {
      case BinaryOp::kAdd:
      case BinaryOp::kMin:
      case BinaryOp::kMax: return Both(TrendOf(b->lhs, v), TrendOf(b->rhs, v));
      case BinaryOp::kSub: return Both(TrendOf(b->lhs, v), Turned(TrendOf(b->rhs, v)));
      case BinaryOp::kMul:
        if (UsesVar(b->lhs, v.get())) return Scaled(TrendOf(b->lhs, v), b->rhs, v);
        return Scaled(TrendOf(b->rhs, v), b->lhs, v);
      case BinaryOp::kDiv: return Scaled(TrendOf(b->lhs, v), b->rhs, v);
      default: return Trend::kUnknown;  // NOLINT: the others do not keep an order
    }
  }

  Trend Scaled(Trend t, const Expr& factor, const Var& v) {
    if (UsesVar(factor, v.get())) return Trend::kUnknown;
    if (analyzer_.CanProve(Ge(factor, IndexConst(0)))) return t;
    return analyzer_.CanProve(Le(factor, IndexConst(0))) ? Turned(t) : Trend::kUnknown;
  }

  // Where (v + rest) % m is m - 1; null where there is none.
  static Expr WhereItWraps(const Expr& e, const Var& v) {
    Expr found;
    PreOrder(e, [&](const NodeRef& n) {
      const auto* mod = As<Binary>(n);
      if (!mod || mod->op != BinaryOp::kMod || UsesVar(mod->rhs, v.get())) return true;
      std::optional<AffineForm> form = DetectAffine(mod->lhs, {v});
      if (form && IsOne(form->coefficients[0])) found = mod->rhs - IndexConst(1) - form->base;
      return true;
    });
    return found;
  }

  // What the condition compares at a witness, and when that runs. The last one's index is the
  // side that the witness makes large or small.
  struct Witness {
    Expr left, right;
    std::vector<Expr> loops, conditions;
    bool unsure = false;  // whether an index neither rises nor falls
  };

  std::optional<Witness> At(const Binary& holds, Side side, Otherwise otherwise) {
    Witness w{holds.lhs, holds.rhs, {}, {}};
    VarMap put;
    auto all = [&](const Var& var, const Expr& value) {
      put = {{var.get(), value}};
      w.left = Substitute(w.left, put), w.right = Substitute(w.right, put);
      for (Expr& e : w.loops) e = Substitute(e, put);
      for (Expr& e : w.conditions) e = Substitute(e, put);
    };
    for (auto step = path_.rbegin(); step != path_.rend(); ++step) {
      switch (step->kind) {
        case Step::Kind::kCondition:
          if (!step->value) return std::nullopt;
          w.conditions.push_back(step->value);
          break;
        case Step::Kind::kValue: all(step->var, step->value); break;
        case Step::Kind::kLoop:
          w.loops.push_back(Lt(IndexConst(0), step->extent));
          all(step->var, PlaceOf(*step, side, otherwise, &w));
          break;
      }
    }
    auto known = [&](const Expr& e) { return IsOfNumbers(e); };
    if (!known(w.left) || !known(w.right) || !std::all_of(w.loops.begin(), w.loops.end(), known) ||
        !std::all_of(w.conditions.begin(), w.conditions.end(), known)) {
      return std::nullopt;
    }
    return w;
  }

  // The loop's value at the witness.
  Expr PlaceOf(const Step& loop, Side side, Otherwise otherwise, Witness* w) {
    Expr last = loop.min + loop.extent - 1;
    switch (TrendOf(side == Side::kMost ? w->left : w->right, loop.var)) {
      case Trend::kNone: return loop.min;
      case Trend::kRises: return side == Side::kMost ? last : loop.min;
      case Trend::kFalls: return side == Side::kMost ? loop.min : last;
      case Trend::kUnknown: break;
    }
    w->unsure = true;
    if (otherwise == Otherwise::kFirst) return loop.min;
    Expr wraps = otherwise == Otherwise::kWraps ? WhereItWraps(w->left, loop.var) : nullptr;
    if (!wraps) return last;
    w->conditions.push_back(And(Le(loop.min, wraps), Le(wraps, last)));
    return wraps;
  }

  bool IsOfNumbers(const Expr& e) const {
    bool known = true;
    PreOrder(e, [&](const NodeRef& n) {
      const bool fine = IsA<IntConst>(n) || IsA<Binary>(n) || IsA<Unary>(n) || IsA<Select>(n) ||
                        IsA<CastExpr>(n) ||
                        (IsA<VarNode>(n) && numbers_.count(static_cast<const VarNode*>(n.get())));
      known &= fine && !As<ExprNode>(n)->dtype.IsFloat() && !As<ExprNode>(n)->dtype.IsVector();
      return known;
    });
    return known;
  }

  // ---- The verdict ----

  // That a comparison holds wherever the path leads: 0 <= e at the least e, e < extent at the most.
  void Judge(const Ref<const Binary>& holds, const std::string& what) {
    if (--budget_ < 0 || !errors_.empty()) return;
    const Side side = holds->op == BinaryOp::kLt ? Side::kMost : Side::kLeast;
    for (Otherwise otherwise : {Otherwise::kFirst, Otherwise::kLast, Otherwise::kWraps}) {
      std::optional<Witness> w = At(*holds, side, otherwise);
      if (!w) return;
      JudgeWitness(holds->op, *w, what);
      if (!w->unsure) return;
    }
  }

  void JudgeWitness(BinaryOp op, const Witness& w, const std::string& what) {
    std::vector<size_t> tokens;
    Expr when;
    bool sure = true;  // given that the loops run
    bool never = false;
    auto assume = [&](const Expr& given, bool is_loop) {
      const Expr c = analyzer_.Simplify(given);
      if (AsInt(c)) never |= *AsInt(c) == 0;
      if (AsInt(c) || analyzer_.CanProve(c)) return;
      sure &= is_loop;
      when = when ? And(when, c) : c;
      tokens.push_back(analyzer_.Assume(c));
    };
    for (const Expr& c : w.loops) assume(c, true);
    for (const Expr& c : w.conditions) assume(c, false);
    if (!never) {
      const Expr left = analyzer_.Simplify(w.left), right = analyzer_.Simplify(w.right);
      const Expr holds = Binary::Make(op, left, right);
      if (!IsRest(op, left, right) && !analyzer_.CanProve(holds)) {
        sure&& analyzer_.CanProve(Not(holds)) ? Fail(op, left, right, what)
                                              : Add({Cast<Binary>(holds), when, what});
      }
    }
    for (; !tokens.empty(); tokens.pop_back()) analyzer_.Retract(tokens.back());
  }

  // Whether the comparison is x % d < extent with 1 <= d <= extent.
  bool IsRest(BinaryOp op, const Expr& left, const Expr& right) {
    const auto* mod = As<Binary>(left);
    return op == BinaryOp::kLt && mod && mod->op == BinaryOp::kMod &&
           analyzer_.CanProve(Le(IndexConst(1), mod->rhs)) &&
           analyzer_.CanProve(Le(mod->rhs, right));
  }

  void Add(Requirement r) {
    if (found_.size() >= kMaxRequirements) return;
    const std::string text = r.ToString();
    if (known_.insert(text).second) found_.push_back(std::move(r));
  }

  void Fail(BinaryOp op, const Expr& left, const Expr& right, const std::string& what) {
    std::string reason;
    if (op == BinaryOp::kNe) {
      reason = fmt::format("{}: it divides by zero", what);
    } else if (op == BinaryOp::kLe) {
      reason = fmt::format("{}: the index takes the value {}", what, ToString(right));
    } else {
      reason = fmt::format("{}: the index takes the value {}, but the dim has {} elements", what,
                           ToString(left), ToString(right));
    }
    errors_.push_back(MakeError(fmt::format("function '{}': {}", func_.name, reason)));
  }

  const PrimFunc& func_;
  const Module& module_;
  Analyzer analyzer_;
  std::unordered_set<const VarNode*> numbers_;  // known at a call
  std::vector<Step> path_;
  int budget_ = kMaxAccesses;
  std::vector<Requirement> found_;
  std::set<std::string> known_;
  Diagnostics errors_;
};

}  // namespace

std::string Requirement::ToString() const {
  std::string text = tenon::ToString(Expr(holds));
  if (when) text += " if " + tenon::ToString(when);
  return text + ": " + what;
}

std::vector<Requirement> Requirement::Parse(const PrimFunc& func) {
  std::vector<Requirement> out;
  std::vector<NodeRef> scope(func.dims.begin(), func.dims.end());
  scope.insert(scope.end(), func.scalars.begin(), func.scalars.end());
  for (const std::string& text : func.attrs.Get<std::vector<std::string>>(kRequiresAttr, {})) {
    const size_t colon = text.find(": "), condition = text.find(" if ");
    if (colon == std::string::npos) continue;
    const bool has_when = condition < colon;
    auto holds = ParseExpr(text.substr(0, has_when ? condition : colon), scope);
    if (!holds || !IsA<Binary>(*holds)) continue;
    Requirement r{Cast<Binary>(*holds), nullptr, text.substr(colon + 2)};
    if (has_when) {
      auto when = ParseExpr(text.substr(condition + 4, colon - condition - 4), scope);
      if (!when || !(*when)->dtype.IsBool()) continue;
      r.when = *when;
    }
    out.push_back(std::move(r));
  }
  return out;
}

Expected<std::vector<Requirement>> RequirementsOf(const PrimFunc& func, const Module& module) {
  return Finder(func, module).Find();
}

Expected<Func> WithRequirements(const Func& func, const Module& module) {
  if (func->attrs.Has(kRequiresAttr)) return func;
  TN_ASSIGN_OR_RETURN(const std::vector<Requirement> needs, RequirementsOf(*func, module));
  if (needs.empty()) return func;
  std::vector<std::string> texts;
  for (const Requirement& r : needs) texts.push_back(r.ToString());
  PrimFunc fields(*func);
  fields.attrs.Set(kRequiresAttr, texts);
  return PrimFunc::Make(std::move(fields));
}

}  // namespace tenon
