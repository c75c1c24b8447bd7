#include "loop/thread_reduction.h"

#include <fmt/format.h>

#include <algorithm>

#include "arith/analyzer.h"
#include "arith/conditions.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/visit.h"

namespace tenon {

namespace {

using LoopList = std::vector<const For*>;

LoopList LoopsOf(const std::vector<Stmt>& path) {
  LoopList loops;
  for (const Stmt& s : path) {
    if (const auto* loop = As<For>(s)) loops.push_back(loop);
  }
  return loops;
}

bool Binds(const Block& block, IterKind kind, const For& loop) {
  return std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& v) {
    return v->iter_kind == kind && UsesVar(v->binding, loop.var.get());
  });
}

bool UsesAny(const NodeRef& node, const LoopList& loops) {
  return std::any_of(loops.begin(), loops.end(),
                     [&](const For* loop) { return UsesVar(node, loop->var.get()); });
}

bool Contains(const LoopList& loops, const For* loop) {
  return std::find(loops.begin(), loops.end(), loop) != loops.end();
}

Diagnostic Because(std::string reason) { return MakeError(std::move(reason)); }

/// Sorts the loops around one block by what they are to its reduction. `out` has those that were
/// seen; a reason why the reduction cannot be shared out ends the work.
class Reader {
 public:
  Reader(const Block& block, const std::vector<Stmt>& path, const For* bound)
      : block_(block), path_(path), bound_(bound) {}

  Expected<ThreadReduction> Read() {
    TN_ASSIGN_OR_RETURN(out_.combiner, Combiner::Of(block_));
    for (const For* loop : LoopsOf(path_)) TN_RETURN_IF_ERROR(Sort(*loop));
    TN_RETURN_IF_ERROR(CheckBounds());
    TN_RETURN_IF_ERROR(CheckBetween());
    TN_RETURN_IF_ERROR(CheckOrder());
    TN_RETURN_IF_ERROR(SortGuards());
    return std::move(out_);
  }

 private:
  bool IsShared(const For& loop) const { return IsOverThreads(loop) || &loop == bound_; }

  Status Sort(const For& loop) {
    const bool reduces = Binds(block_, IterKind::kReduce, loop);
    const bool spatial = Binds(block_, IterKind::kSpatial, loop);
    const std::string& name = loop.var->name;
    if (Binds(block_, IterKind::kOrdered, loop))
      return Because(fmt::format("loop {} runs over an ordered variable", name));
    if (IsOne(loop.extent)) return Ok();
    if (reduces && spatial)
      return Because(fmt::format("loop {} runs over spatial and reduce variables at once", name));
    if (reduces) {
      if (!out_.outermost) out_.outermost = &loop;
      const bool apart = loop.for_kind == ForKind::kThread || loop.for_kind == ForKind::kParallel;
      if (apart && !IsShared(loop)) {
        return Because(fmt::format("loop {}, which is {}, runs over its reduction too", name,
                                   loop.for_kind == ForKind::kThread
                                       ? std::string("bound to ") + Name(loop.thread)
                                       : Name(loop.for_kind)));
      }
      (IsShared(loop) ? out_.threads : out_.serial).push_back(&loop);
    } else if (out_.outermost && spatial) {
      out_.spatial.push_back(&loop);
    } else if (out_.outermost) {
      return Because(fmt::format("each iteration of loop {} computes it anew", name));
    }
    return Ok();
  }

  // Each thread has a part of every element that the loops inside run over.
  Status CheckBounds() const {
    for (const For* loop : LoopsOf(path_)) {
      if (!IsShared(*loop) || Contains(out_.threads, loop) || AsInt(loop->extent)) continue;
      return Because(fmt::format(
          "loop {} is around it, over threads too, and has {} iterations: expected a constant "
          "number, for the memory in which threads combine what they have of its reduction",
          loop->var->name, ToString(NodeRef(loop->extent))));
    }
    LoopList inside = out_.threads;
    inside.insert(inside.end(), out_.spatial.begin(), out_.spatial.end());
    for (const For* loop : inside) {
      const std::string& name = loop->var->name;
      if (AsInt(loop->extent).value_or(0) < 1) {
        return Because(fmt::format(
            "{} {} has {} iterations, where threads combine what each has of its reduction: "
            "expected a constant number; split by a constant factor makes a loop of so many",
            Contains(out_.threads, loop) ? "loop" : "inside its reduction, loop", name,
            ToString(NodeRef(loop->extent))));
      }
      for (const For* other : AllInside()) {
        if (UsesVar(loop->min, other->var.get()))
          return Because(
              fmt::format("the bounds of loop {} depend on loop {}", name, other->var->name));
      }
    }
    return Ok();
  }

  LoopList AllInside() const {
    LoopList loops = LoopsOf(path_);
    loops.erase(loops.begin(), std::find(loops.begin(), loops.end(), out_.outermost));
    return loops;
  }

  Status CheckBetween() const {
    auto inside = std::find_if(path_.begin(), path_.end(), [&](const Stmt& s) {
      return s.get() == static_cast<const Node*>(out_.outermost);
    });
    for (; inside != path_.end(); ++inside) {
      if (IsA<For>(*inside) || IsA<Seq>(*inside) || IsA<Alloc>(*inside)) continue;
      return Because(fmt::format("there is more than loops between it and loop {}",
                                 out_.outermost->var->name));
    }
    for (const IterVar& v : block_.iters) {
      if (block_.init && v->iter_kind == IterKind::kReduce && UsesVar(block_.init, v->var.get()))
        return Because("its init depends on " + v->var->name);
    }
    return Ok();
  }

  // What came first stays first where each thread has neighbours of its own.
  Status CheckOrder() const {
    if (!out_.combiner.DependsOnOrder()) return Ok();
    const LoopList all = LoopsOf(path_);
    for (const For* loop : all) {
      if (loop == out_.threads.back()) return Ok();
      if (!Contains(out_.serial, loop)) continue;
      return Because(fmt::format(
          "its combiner depends on the order of what it combines, of equal values say: only its "
          "outermost reduce loop, {}, leaves that as it is",
          loop->var->name));
    }
    return Ok();
  }

  // A condition on the reduction says what belongs to a part. It says nothing of the elements where
  // it is about the reduction alone, or holds for all of them at the start.
  Status SortGuards() {
    VarMap bindings;
    for (const IterVar& v : block_.iters) bindings[v->var.get()] = v->binding;
    LoopList own = out_.threads, others;
    own.insert(own.end(), out_.serial.begin(), out_.serial.end());
    for (const For* loop : LoopsOf(path_)) {
      if (!Contains(own, loop)) others.push_back(loop);
    }
    for (const Expr& c : Conjuncts(block_.where ? Substitute(block_.where, bindings) : nullptr)) {
      if (!UsesAny(c, own)) {
        out_.of_element = AndAlso(out_.of_element, c);
      } else if (UsesAny(c, others) && !EndsDomain(c) && !HoldsAtStart(c, own)) {
        return Because("its guard ties the reduction to other loops: " + ToString(NodeRef(c)));
      }
    }
    return Ok();
  }

  // "binding < min + extent" of a reduce variable, in any form.
  bool EndsDomain(const Expr& c) const {
    const auto* order = As<Binary>(c);
    if (!order || (order->op != BinaryOp::kLt && order->op != BinaryOp::kLe)) return false;
    Expr below = order->lhs - order->rhs;
    if (order->op == BinaryOp::kLe) below = below - 1;
    Analyzer analyzer;
    return std::any_of(block_.iters.begin(), block_.iters.end(), [&](const IterVar& v) {
      return v->iter_kind == IterKind::kReduce &&
             analyzer.CanProveEqual(below, v->binding - v->min - v->extent);
    });
  }

  bool HoldsAtStart(const Expr& c, const LoopList& own) const {
    Analyzer analyzer;
    VarMap start;
    for (const For* loop : LoopsOf(path_)) {
      analyzer.Bind(loop->var, loop->min, loop->extent);
      if (Contains(own, loop)) start[loop->var.get()] = loop->min;
    }
    return analyzer.CanProve(Substitute(c, start));
  }

  const Block& block_;
  const std::vector<Stmt>& path_;
  const For* bound_;
  ThreadReduction out_;
};

}  // namespace

bool IsOverThreads(const For& loop) {
  return loop.for_kind == ForKind::kThread && IsThreadAxis(loop.thread);
}

bool SharesReduction(const For& loop) {
  bool found = false;
  if (!IsOverThreads(loop) || IsOne(loop.extent)) return false;
  PreOrder(loop.body, [&](const NodeRef& n) {
    const auto* block = As<Block>(n);
    found |= block && Binds(*block, IterKind::kReduce, loop);
    return !found && !IsA<ExprNode>(n);
  });
  return found;
}

bool ReducesOverThreads(const Block& block, const std::vector<Stmt>& path) {
  return ReducesOverThreads(block, LoopsOf(path));
}
bool ReducesOverThreads(const Block& block, const std::vector<const For*>& loops) {
  return std::any_of(loops.begin(), loops.end(), [&](const For* loop) {
    return IsOverThreads(*loop) && !IsOne(loop->extent) && Binds(block, IterKind::kReduce, *loop);
  });
}

Expected<ThreadReduction> ThreadReductionOf(const Block& block, const std::vector<Stmt>& path,
                                            const For* bound) {
  return Reader(block, path, bound).Read();
}

std::vector<Var> AxisVariables() {
  std::vector<Var> out;
  for (size_t i = 0; i < kNumAxes; ++i) out.push_back(VarNode::Make(Name(AxisAt(i))));
  return out;
}

Expected<Expr> ParseStorePredicate(const std::string& text, const std::vector<Var>& axes) {
  return ParseExpr(text, {axes.begin(), axes.end()});
}

}  // namespace tenon
