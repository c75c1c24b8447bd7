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
// "Without a hole" is FilledBox (box.h). What was written under a condition counts for reads under
// the same condition. Whatever cannot be shown has no bound (a null end of a box), which proves
// nothing: the buffer then stays where it is.

#include "dependence/flow.h"

#include <algorithm>

#include "arith/conditions.h"
#include "ir/visit.h"
#include "loop/facts.h"
#include "loop/threads.h"

namespace tenon {

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
    Learn(func, &analyzer_);
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
    std::vector<const BufferUse*> writers;
    for (const BufferUse& use : a.uses) {
      bool init_runs = std::none_of(use.reduce_bindings.begin(), use.reduce_bindings.end(),
                                    [&](const Expr& e) { return UsesAnyVar(e, outer); });
      if (use.updates && init_runs) continue;
      const bool covered = std::any_of(writers.begin(), writers.end(), [&](const BufferUse* w) {
        return WritesBefore(*w, use, *a.alloc->buffer, target);
      });
      if (use.reads && !covered) return false;
      if (use.writes && !use.reads && init_runs) writers.push_back(&use);
    }
    return true;
  }

  // Whether `write`, which stands before `read`, has written what that reads. Of loops around both,
  // no later iteration counts: what this one has written must do.
  bool WritesBefore(const BufferUse& write, const BufferUse& read, const BufferNode& buffer,
                    size_t target) {
    size_t shared = 0;
    while (shared < write.path.size() && shared < read.path.size() &&
           write.path[shared] == read.path[shared]) {
      ++shared;
    }
    const size_t from = std::max(target, shared);
    const std::optional<Written> written = WritesAll(write, from, buffer);
    return written && IsCovered(*written, read, buffer.shape, from);
  }

  // A box of which every element is written, where the conditions hold, which stay the same in one
  // execution of the statement.
  struct Written {
    Box box;
    std::vector<Expr> conditions;
  };

  // Where the use's guards hold, what is written covers its box.
  bool IsCovered(const Written& written, const BufferUse& use, const std::vector<Expr>& shape,
                 size_t target) {
    Box box = BoxOf(use, target);
    const std::vector<Expr> given = ConjunctsOf(use.guards);
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
    const bool covered = Holds(written.conditions, given) && Covers(written.box, box, shape);
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
    for (size_t d = 0; d < r.size(); ++d) {
      if (!w[d].min || !w[d].max) return false;
      const ExprInterval read{r[d].min ? r[d].min : IndexConst(0),
                              r[d].max ? r[d].max : shape[d] - 1};
      if (!Contains(w[d], read, &analyzer_)) return false;
    }
    return true;
  }

  // ---- boxes ----

  // What runs inside the statement at `target` on the way to a use.
  struct Inner {
    std::vector<const For*> loops;
    std::unordered_set<const VarNode*> vars;  // of loops and lets
    bool is_nest = true;                      // loops and conditions alone
  };

  // `threads`: all threads of a block, also where their loops are outside.
  Inner InnerOf(const BufferUse& use, size_t target, bool threads = false) {
    Inner inner;
    for (size_t i = threads ? 0 : target; i < use.path.size(); ++i) {
      const Node* s = use.path[i];
      if (i < target && !RunsThreads(use.path[i])) continue;
      inner.is_nest &= s->kind != NodeKind::kWhile && s->kind != NodeKind::kLet;
      if (const auto* let = As<Let>(s)) inner.vars.insert(let->var.get());
      const auto* loop = As<For>(s);
      if (!loop) continue;
      inner.vars.insert(loop->var.get());
      inner.loops.push_back(loop);
    }
    return inner;
  }

  // An index that is read from memory may be anything: a variable of `domain` without bounds.
  static Expr WithoutLoads(const Expr& e, IntervalMap* domain, std::vector<Var>* made) {
    if (IsPure(e)) return e;
    return PostOrderRewrite(e, [&](const NodeRef& n) -> NodeRef {
      if (!IsA<Load>(n) && !IsA<CastExpr>(n)) return n;
      const Expr part = Cast<ExprNode>(n);
      if (part->dtype != DType::Index() || IsPure(part)) return n;
      made->push_back(VarNode::Make("anything"));
      (*domain)[made->back().get()] = {nullptr, nullptr};
      return made->back();
    });
  }

  // What e takes while the inner loops run, in terms of what is outside.
  ExprInterval RangeOf(const Expr& of, const Inner& inner, IntervalMap domain) {
    std::vector<Var> made;
    const Expr e = WithoutLoads(of, &domain, &made);
    return Outside(EvalInterval(e, domain, &analyzer_), inner);
  }

  // Null for ends that are not known in terms of what is outside.
  ExprInterval Outside(const ExprInterval& range, const Inner& inner) {
    auto end = [&](const Expr& e) {
      const bool known = e && !UsesAnyVar(e, inner.vars) && IsPure(e);
      return known ? analyzer_.Simplify(e) : nullptr;
    };
    return {end(range.min), end(range.max)};
  }

  Box BoxOf(const BufferUse& use, size_t target, bool threads = false) {
    if (use.no_box) return Box(use.first.size());
    const Inner inner = InnerOf(use, target, threads);
    const IntervalMap domain = DomainOf(inner.loops, &analyzer_);
    Box box;
    for (size_t d = 0; d < use.first.size(); ++d) {
      box.push_back(
          {RangeOf(use.first[d], inner, domain).min, RangeOf(use.last[d], inner, domain).max});
    }
    return box;
  }

  // The box of which one execution of the statement writes every element, where conditions hold
  // that stay the same in it; nothing where it is not known to.
  std::optional<Written> WritesAll(const BufferUse& use, size_t target, const BufferNode& buffer) {
    const Inner inner = InnerOf(use, target);
    if ((use.in_call && !use.fills) || use.no_box || !inner.is_nest) return std::nullopt;
    Written out{{}, GuardsBesideShape(use, buffer)};
    const VarMap start = StartOfOtherLoops(use, target);
    for (Expr& c : out.conditions) {
      const Expr there = Substitute(c, start);
      if (there != c) c = analyzer_.Simplify(there);
    }
    std::erase_if(out.conditions,
                  [&](const Expr& c) { return IsPure(c) && analyzer_.CanProve(c); });
    DropImplied(&out.conditions);
    if (!std::all_of(out.conditions.begin(), out.conditions.end(), IsPure)) return std::nullopt;
    Box ends(use.first.size());
    std::vector<Expr> guards;
    std::erase_if(out.conditions, [&](const Expr& c) {
      if (!UsesAnyVar(c, inner.vars)) return false;
      if (!EndsAnIndex(c, use, inner, &ends)) guards.push_back(c);
      return true;
    });
    std::vector<Expr> extents;
    for (size_t d = 0; d < use.first.size(); ++d)
      extents.push_back(analyzer_.Simplify(use.last[d] - use.first[d] + 1));
    const auto filled = FilledBox(use.first, extents, inner.loops, std::move(guards), &analyzer_);
    if (!filled) return std::nullopt;
    for (size_t d = 0; d < ends.size(); ++d) {
      ExprInterval range = Outside((*filled)[d], inner);
      if (range.max && ends[d].max) range.max = analyzer_.Simplify(Min(range.max, ends[d].max));
      out.box.push_back(range);
    }
    return out;
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
  bool EndsAnIndex(const Expr& guard, const BufferUse& use, const Inner& inner, Box* ends) {
    const Expr simple = analyzer_.Simplify(guard);
    const auto* less = As<Binary>(simple);
    if (less == nullptr || less->op != BinaryOp::kLt || !less->lhs->dtype.IsIndex()) return false;
    for (size_t d = 0; d < use.first.size(); ++d) {
      if (use.first[d] != use.last[d]) continue;
      const Expr last = analyzer_.Simplify(use.first[d] - less->lhs + less->rhs - 1);
      if (UsesAnyVar(last, inner.vars)) continue;
      Expr& end = (*ends)[d].max;
      end = end ? Min(end, last) : last;
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
        Expr& end = (*box)[d].max;
        end = end ? Min(end, last) : last;
      }
      if (IsPure(first) && !UsesAnyVar(first, inner.vars)) {
        Expr& start = (*box)[d].min;
        start = start ? Max(start, first) : first;
      }
    }
  }

  static std::vector<Expr> ConjunctsOf(const std::vector<Expr>& conditions) {
    std::vector<Expr> out;
    for (const Expr& c : conditions) {
      for (Expr& part : Conjuncts(c)) out.push_back(std::move(part));
    }
    return out;
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
    for (const Expr& g : ConjunctsOf(use.guards)) {
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
