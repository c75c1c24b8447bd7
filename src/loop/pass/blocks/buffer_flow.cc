// Boxes in the variables outside of a statement, and two proofs from them.
//
// compact_buffers asks about a statement around all uses of a buffer: may the allocation move into
// it? It may where one execution reads nothing that an earlier one wrote, and then the buffer needs
// only what one execution touches. Both are questions about boxes. A use's indices are expressions
// over loops inside of the statement and outside; interval arithmetic over the inner ones leaves
// the first and last element in terms of the outer ones. In
//
//   alloc T: f32[n, 64]
//   for i in 0..n parallel {
//     for jo in 0..8 {
//       for a in 0..8 {
//         block T(vi: spatial = i, vj: spatial in 0..64 = jo * 8 + a) { … }
//       }
//       for b in 0..8 {
//         block C(vi: spatial = i, vj: spatial in 0..64 = jo * 8 + b) {
//           reads T[vi, jo * 8..+8]; writes C[vi, vj]
//           …
//
// one execution of the loops over a and b, for given i and jo, writes the box T[i, jo * 8..+8] and
// reads the same box; it is written first, and without a hole. So T moves in and is 1 x 8:
//
//       alloc T: f32[1, 8] in local
//
// "Without a hole" is IsFilled: each index is a sum of strides times loops, and with the loops
// sorted by stride each stride must not be more than what the smaller ones reach, as in a number
// whose digits leave no gap. Loops that were fused are taken apart first, and a guard that ends a
// digit (a tail of a split) shortens it. What was written under a condition counts for reads under
// the same condition. Whatever cannot be shown has no bound (a null end of a box), which proves
// nothing: the buffer then stays where it is.

#include "loop/pass/blocks/buffer_flow.h"

#include <algorithm>

#include "loop/pass/analysis/variance.h"
#include "loop/pass/rewrite.h"
#include "loop/threads.h"

namespace tenon {

namespace {

std::vector<Expr> Conjuncts(std::vector<Expr> conditions) {
  std::vector<Expr> out;
  while (!conditions.empty()) {
    const Expr c = conditions.back();
    conditions.pop_back();
    const auto* both = As<Binary>(c);
    if (both != nullptr && both->op == BinaryOp::kAnd) {
      conditions.push_back(both->lhs);
      conditions.push_back(both->rhs);
    } else {
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace

bool RunsThreads(const StmtNode* s) {
  const auto* loop = As<For>(static_cast<const Node*>(s));
  return loop && loop->for_kind == ForKind::kThread && IsThreadAxis(loop->thread);
}

// The proofs for one function. Its analyzer knows the ranges of dims and loops for good; what is
// assumed for one proof is retracted before the next. A bound that is not known is null, and null
// proves nothing.
class BufferFlow::Prover {
 public:
  explicit Prover(const PrimFunc& func) {
    BindDims(func, &analyzer_);
    PreOrder(func.body, [&](const NodeRef& n) {
      const auto* loop = As<For>(n);
      if (loop && IsPure(loop->min) && IsPure(loop->extent))
        analyzer_.Bind(loop->var, loop->min, loop->extent);
      return !IsA<ExprNode>(n);
    });
  }

  Analyzer* analyzer() { return &analyzer_; }

  // True when one execution of the statement at `target` reads nothing from an earlier one.
  bool IsFlowFree(const AllocUses& a, size_t target) {
    std::unordered_set<const VarNode*> outer;  // of the loops that would be entered
    const std::vector<const StmtNode*>& path = a.uses[0].path;
    for (size_t i = a.path.size(); i < target; ++i) {
      if (const auto* loop = As<For>(static_cast<const Node*>(path[i])))
        outer.insert(loop->var.get());
    }
    std::vector<Written> written;
    for (const BufferUse& use : a.uses) {
      bool init_runs = std::none_of(use.reduce_bindings.begin(), use.reduce_bindings.end(),
                                    [&](const Expr& e) { return UsesAnyVar(e, outer); });
      if (use.updates && init_runs) continue;
      Box box = BoxOf(use, target);
      if (use.reads && !IsCovered(written, use, box, a.alloc->buffer->shape, target)) return false;
      if (!use.writes || use.reads || !init_runs) continue;
      auto conditions = WritesAllWhere(use, target, *a.alloc->buffer, &box);
      if (conditions) written.push_back({std::move(box), std::move(*conditions)});
    }
    return true;
  }

  // A box of which every element is written, where the conditions hold, which stay the same in one
  // execution of the statement.
  struct Written {
    Box box;
    std::vector<Expr> conditions;
  };

  // Where the use's guards hold, one of what is written covers its box.
  bool IsCovered(const std::vector<Written>& written, const BufferUse& use, Box box,
                 const std::vector<Expr>& shape, size_t target) {
    const std::vector<Expr> given = Conjuncts(use.guards);
    const Inner inner = InnerOf(use, target);
    std::vector<size_t> tokens;
    for (const Expr& c : given) {
      if (!IsPure(c)) continue;
      if (UsesAnyVar(c, inner.vars)) {
        EndIndices(c, use, inner, &box);
      } else {
        tokens.push_back(analyzer_.Assume(c));
      }
    }
    const bool covered = std::any_of(written.begin(), written.end(), [&](const Written& w) {
      return Holds(w.conditions, given) && Covers(w.box, box, shape);
    });
    Retract(&tokens);
    return covered;
  }

  void Retract(std::vector<size_t>* tokens) {
    for (; !tokens->empty(); tokens->pop_back()) analyzer_.Retract(tokens->back());
  }

  static bool Holds(const std::vector<Expr>& conditions, const std::vector<Expr>& given) {
    return std::all_of(conditions.begin(), conditions.end(), [&](const Expr& c) {
      return std::any_of(given.begin(), given.end(),
                         [&](const Expr& g) { return StructuralEqual(g, c); });
    });
  }

  // What is read at an index that nobody knows is an element all the same.
  bool Covers(const Box& w, const Box& r, const std::vector<Expr>& shape) {
    for (size_t d = 0; d < r.first.size(); ++d) {
      if (!w.first[d] || !w.last[d]) return false;
      const Expr first = r.first[d] ? r.first[d] : IndexConst(0);
      const Expr last = r.last[d] ? r.last[d] : shape[d] - 1;
      if (!analyzer_.CanProve(Le(w.first[d], first)) || !analyzer_.CanProve(Le(last, w.last[d])))
        return false;
    }
    return true;
  }

  // ---- boxes ----

  // Variables bound inside the statement at `target` on the way to a use; null interval: unknown.
  struct Inner {
    IntervalMap loops;
    std::unordered_set<const VarNode*> vars;
  };

  // `threads`: all threads of a block, also where their loops are outside.
  Inner InnerOf(const BufferUse& use, size_t target, bool threads = false) {
    Inner inner;
    for (size_t i = threads ? 0 : target; i < use.path.size(); ++i) {
      const Node* s = use.path[i];
      if (i < target && !RunsThreads(use.path[i])) continue;
      if (const auto* let = As<Let>(s)) inner.vars.insert(let->var.get());
      const auto* loop = As<For>(s);
      if (!loop) continue;
      inner.vars.insert(loop->var.get());
      inner.loops[loop->var.get()] = {loop->min, loop->min + loop->extent - 1};
    }
    return inner;
  }

  // An index that is read from memory may be anything.
  static Expr WithoutLoads(const Expr& e, Inner* inner) {
    if (IsPure(e)) return e;
    return PostOrderRewrite(e, [&](const NodeRef& n) -> NodeRef {
      if (!IsA<Load>(n) && !IsA<CastExpr>(n)) return n;
      const Expr part = Cast<ExprNode>(n);
      if (part->dtype != DType::Index() || IsPure(part)) return n;
      Var anything = VarNode::Make("anything");
      inner->vars.insert(anything.get());
      inner->loops[anything.get()] = {nullptr, nullptr};
      return anything;
    });
  }

  // The least (or greatest) value of e; null where it is not known in terms of what is outside.
  Expr Extreme(const Expr& of, Inner inner, bool least) {
    Expr e = WithoutLoads(of, &inner);
    constexpr int kMaxChain = 4;  // loops whose ranges depend on loops whose ranges …
    for (int i = 0; i < kMaxChain && e && UsesAnyVar(e, inner.vars); ++i) {
      ExprInterval range = EvalInterval(e, inner.loops, &analyzer_);
      e = least ? range.min : range.max;
    }
    if (!e || UsesAnyVar(e, inner.vars) || !IsPure(e)) return nullptr;
    return analyzer_.Simplify(e);
  }

  Box BoxOf(const BufferUse& use, size_t target, bool threads = false) {
    Inner inner = InnerOf(use, target, threads);
    Box box;
    if (use.no_box)
      return {std::vector<Expr>(use.first.size()), std::vector<Expr>(use.last.size())};
    for (size_t d = 0; d < use.first.size(); ++d) {
      box.first.push_back(Extreme(use.first[d], inner, true));
      box.last.push_back(Extreme(use.last[d], inner, false));
    }
    return box;
  }

  // The conditions under which one execution of the statement writes every element of the use's
  // box, less what is beyond an index that a guard ends; nothing where it is not known to.
  std::optional<std::vector<Expr>> WritesAllWhere(const BufferUse& use, size_t target,
                                                  const BufferNode& buffer, Box* box) {
    if ((use.in_call && !use.fills) || use.no_box) return std::nullopt;
    std::vector<Expr> conditions = GuardsBesideShape(use, buffer);
    const VarMap start = StartOfOtherLoops(use, target);
    for (Expr& c : conditions) {
      const Expr there = Substitute(c, start);
      if (there != c) c = analyzer_.Simplify(there);
    }
    std::erase_if(conditions, [&](const Expr& c) { return IsPure(c) && analyzer_.CanProve(c); });
    DropImplied(&conditions);
    if (!IsFilled(use, target, &conditions)) return std::nullopt;
    const Inner inner = InnerOf(use, target);
    std::erase_if(conditions, [&](const Expr& c) { return EndsAnIndex(c, use, inner, box); });
    for (const Expr& c : conditions) {
      if (!IsPure(c) || UsesAnyVar(c, inner.vars)) return std::nullopt;
    }
    return conditions;
  }

  // The inner loops that choose no index (a reduction's), where they start: one of their iterations
  // is enough to write an element.
  static VarMap StartOfOtherLoops(const BufferUse& use, size_t target) {
    VarMap out;
    for (size_t i = target; i < use.path.size(); ++i) {
      const auto* loop = As<For>(static_cast<const Node*>(use.path[i]));
      if (loop == nullptr) continue;
      bool chooses = false;
      for (size_t d = 0; d < use.first.size(); ++d) {
        chooses |= UsesVar(use.first[d], loop->var.get()) || UsesVar(use.last[d], loop->var.get());
      }
      if (!chooses) out[loop->var.get()] = Substitute(loop->min, out);
    }
    return out;
  }

  // An index < end, where only what is outside tells the end: the box ends there.
  bool EndsAnIndex(const Expr& guard, const BufferUse& use, const Inner& inner, Box* box) {
    if (!IsPure(guard) || !UsesAnyVar(guard, inner.vars)) return false;
    const Expr simple = analyzer_.Simplify(guard);
    const auto* less = As<Binary>(simple);
    if (less == nullptr || less->op != BinaryOp::kLt || !less->lhs->dtype.IsIndex()) return false;
    for (size_t d = 0; d < use.first.size(); ++d) {
      if (use.first[d] != use.last[d] || !box->last[d]) continue;
      Expr last = analyzer_.Simplify(use.first[d] - less->lhs + less->rhs - 1);
      if (UsesAnyVar(last, inner.vars)) continue;
      box->last[d] = analyzer_.Simplify(Min(box->last[d], last));
      return true;
    }
    return false;
  }

  // Where an index differs from a side of the guard by what is outside, the guard is an end of it.
  void EndIndices(const Expr& guard, const BufferUse& use, const Inner& inner, Box* box) {
    const Expr simple = analyzer_.Simplify(guard);
    const auto* order = As<Binary>(simple);
    const bool less = order && (order->op == BinaryOp::kLt || order->op == BinaryOp::kLe);
    if (!less || !order->lhs->dtype.IsIndex()) return;
    const Expr slack = order->rhs - order->lhs - (order->op == BinaryOp::kLt ? 1 : 0);  // >= 0
    for (size_t d = 0; d < use.first.size(); ++d) {
      const Expr last = analyzer_.Simplify(use.last[d] + slack);
      const Expr first = analyzer_.Simplify(use.first[d] - slack);
      if (IsPure(last) && !UsesAnyVar(last, inner.vars)) {
        box->last[d] = box->last[d] ? Min(box->last[d], last) : last;
      }
      if (IsPure(first) && !UsesAnyVar(first, inner.vars)) {
        box->first[d] = box->first[d] ? Max(box->first[d], first) : first;
      }
    }
  }

  // Guards aside, every element of the use's box is touched. Those that end a part of an index are
  // taken account of, and away.
  bool IsFilled(const BufferUse& use, size_t target, std::vector<Expr>* guards) {
    std::vector<Var> loops;
    std::vector<int64_t> extents;
    for (size_t i = target; i < use.path.size(); ++i) {
      const Node* s = use.path[i];
      if (s->kind == NodeKind::kWhile || s->kind == NodeKind::kLet) return false;
      const auto* loop = As<For>(s);
      if (!loop) continue;
      loops.push_back(loop->var);
      extents.push_back(AsInt(analyzer_.Simplify(loop->extent)).value_or(-1));
    }
    std::vector<Expr> indices;
    for (size_t d = 0; d < use.first.size(); ++d) {
      if (IsZero(analyzer_.Simplify(use.last[d] - use.first[d]))) {
        indices.push_back(use.first[d]);
      } else if (UsesAny(use.first[d], loops)) {
        // A box that moves by its own width is an element of a coarser dimension.
        const Expr width = analyzer_.Simplify(use.last[d] - use.first[d] + 1);
        if (!AsInt(width) || !IsZero(analyzer_.Simplify(use.first[d] % width))) return false;
        indices.push_back(analyzer_.Simplify(use.first[d] / width));
      }
    }
    for (size_t i = 0; i < loops.size(); ++i) Unfuse(i, &indices, &loops, &extents);
    std::unordered_set<const VarNode*> taken;
    return std::all_of(indices.begin(), indices.end(),
                       [&](const Expr& e) { return IsDense(e, loops, extents, &taken, guards); });
  }

  // A loop made by fusing two, of whose variable indices take quotient and remainder, becomes two
  // again: loop i the outer one, and an inner one at the end.
  void Unfuse(size_t i, std::vector<Expr>* indices, std::vector<Var>* loops,
              std::vector<int64_t>* extents) {
    const Var fused = (*loops)[i];
    const int64_t extent = (*extents)[i], part = SmallestPart(*indices, fused);
    if (part == 0 || extent <= part || extent % part != 0) return;
    Var outer = VarNode::Make(fused->name + ".outer", DType::Index());
    Var inner = VarNode::Make(fused->name + ".inner", DType::Index());
    analyzer_.Bind(outer, IndexConst(0), IndexConst(extent / part));
    analyzer_.Bind(inner, IndexConst(0), IndexConst(part));
    const VarMap split{{fused.get(), Expr(outer) * part + Expr(inner)}};
    for (Expr& e : *indices) e = analyzer_.Simplify(Substitute(e, split));
    (*loops)[i] = outer;
    (*extents)[i] = extent / part;
    loops->push_back(inner);
    extents->push_back(part);
    Unfuse(i, indices, loops, extents);
  }

  static bool UsesAny(const Expr& e, const std::vector<Var>& vars) {
    return std::any_of(vars.begin(), vars.end(), [&](const Var& v) { return UsesVar(e, v.get()); });
  }

  // True when e takes every value between its extremes, and shares no loop with another dimension.
  bool IsDense(const Expr& e, const std::vector<Var>& loops, const std::vector<int64_t>& extents,
               std::unordered_set<const VarNode*>* taken, std::vector<Expr>* guards) {
    std::vector<int64_t> steps;
    if (!StepsOf(e, loops, &steps)) return false;
    for (size_t i = 0; i < loops.size(); ++i) {
      if (steps[i] != 0 && !taken->insert(loops[i].get()).second) return false;
    }
    std::vector<Term> terms;
    std::erase_if(*guards,
                  [&](const Expr& g) { return EndsAPart(g, loops, extents, &steps, &terms); });
    for (size_t i = 0; i < loops.size(); ++i) {
      if (steps[i] != 0) terms.push_back({std::abs(steps[i]), extents[i]});
    }
    return Reach(std::move(terms)).has_value();
  }

  // step * t for t in 0..extent (-1: any number).
  struct Term {
    int64_t step, extent;
  };

  // The constant coefficients of the loops in an index or a bound.
  bool StepsOf(const Expr& e, const std::vector<Var>& loops, std::vector<int64_t>* out) {
    auto affine = DetectAffine(analyzer_.Simplify(e), loops);
    if (!affine) return false;
    for (const Expr& coefficient : affine->coefficients) {
      auto c = AsInt(analyzer_.Simplify(coefficient));
      if (!c) return false;
      out->push_back(*c);
    }
    return true;
  }

  // How many values from 0 up the sum of the terms takes, all of them (-1: any number); nothing
  // where there are gaps.
  static std::optional<int64_t> Reach(std::vector<Term> terms) {
    std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) {
      return std::pair(a.step, a.extent) < std::pair(b.step, b.extent);
    });
    int64_t reach = 1;  // values 0 … reach-1 are taken by the smaller steps
    for (size_t i = 0; i < terms.size(); ++i) {
      if (terms[i].step > reach) return std::nullopt;
      if (terms[i].extent < 0) return i + 1 == terms.size() ? std::optional(-1) : std::nullopt;
      reach += terms[i].step * (terms[i].extent - 1);
    }
    return reach;
  }

  // a * 3 + b < 4, where the index has (a * 3 + b) * step (uneven splits inside each other): both
  // loops together are one over 0..4, which comes to `terms` in place of their steps.
  bool EndsAPart(const Expr& guard, const std::vector<Var>& loops,
                 const std::vector<int64_t>& extents, std::vector<int64_t>* steps,
                 std::vector<Term>* terms) {
    const Expr simple = analyzer_.Simplify(guard);
    const auto* less = As<Binary>(simple);
    const auto end = less ? AsInt(less->rhs) : std::nullopt;
    if (!end || *end < 1 || less->op != BinaryOp::kLt || !less->lhs->dtype.IsIndex()) return false;
    auto affine = DetectAffine(less->lhs, loops);
    std::vector<int64_t> own;
    if (!affine || !IsZero(analyzer_.Simplify(affine->base))) return false;
    if (!StepsOf(less->lhs, loops, &own)) return false;
    std::vector<Term> part;
    int64_t times = 0;  // how often the part is in the index
    for (size_t i = 0; i < loops.size(); ++i) {
      if (own[i] == 0) continue;
      const int64_t step = (*steps)[i];
      if (own[i] < 0 || step == 0 || step % own[i] != 0) return false;
      if (times != 0 && step / own[i] != times) return false;
      times = step / own[i];
      part.push_back({own[i], extents[i]});
    }
    const auto reach = Reach(part);
    if (part.empty() || !reach || (*reach >= 0 && *reach < *end)) return false;
    for (size_t i = 0; i < loops.size(); ++i) {
      if (own[i] != 0) (*steps)[i] = 0;
    }
    terms->push_back({std::abs(times), *end});
    return true;
  }

  // Guards that only keep accesses inside the buffer do not leave holes in it; the others.
  std::vector<Expr> GuardsBesideShape(const BufferUse& use, const BufferNode& buffer) {
    if (use.guards.empty()) return {};
    std::vector<size_t> tokens;
    for (size_t d = 0; d < use.first.size(); ++d) {
      tokens.push_back(analyzer_.Assume(Ge(use.first[d], IndexConst(0))));
      tokens.push_back(analyzer_.Assume(Lt(use.last[d], buffer.shape[d])));
    }
    std::vector<Expr> others;
    for (const Expr& g : Conjuncts(use.guards)) {
      if (!IsPure(g) || !analyzer_.CanProve(g)) others.push_back(g);
    }
    Retract(&tokens);
    return others;
  }

  // Less those that the others imply.
  void DropImplied(std::vector<Expr>* conditions) {
    for (size_t i = conditions->size(); i-- > 0;) {
      std::vector<size_t> tokens;
      for (size_t k = 0; k < conditions->size(); ++k) {
        const Expr& other = (*conditions)[k];
        if (k != i && IsPure(other)) tokens.push_back(analyzer_.Assume(other));
      }
      const bool implied = IsPure((*conditions)[i]) && analyzer_.CanProve((*conditions)[i]);
      Retract(&tokens);
      if (implied) conditions->erase(conditions->begin() + static_cast<ptrdiff_t>(i));
    }
  }

  Analyzer analyzer_;
};

BufferFlow::BufferFlow(const PrimFunc& func) : prover_(std::make_unique<Prover>(func)) {}
BufferFlow::~BufferFlow() = default;
Analyzer* BufferFlow::analyzer() { return prover_->analyzer(); }
bool BufferFlow::IsFlowFree(const AllocUses& a, size_t target) {
  return prover_->IsFlowFree(a, target);
}
Box BufferFlow::BoxOf(const BufferUse& use, size_t target, bool threads) {
  return prover_->BoxOf(use, target, threads);
}

}  // namespace tenon
