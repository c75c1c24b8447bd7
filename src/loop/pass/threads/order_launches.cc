#include "loop/pass/threads/order_launches.h"

#include <algorithm>
#include <unordered_set>

#include "dependence/access.h"
#include "intrin/tile_intrinsic.h"
#include "loop/rewrite.h"
#include "loop/threads.h"
#include "support/check.h"

namespace tenon {

namespace {

Stmt CallTo(const char* row) { return CallFunc::Make(row, {}, {}); }

// Puts waits into one kernel. Nothing of awaited_ is touched before a wait on any way, and each way
// has one.
class Waits {
 public:
  explicit Waits(const PrimFunc& kernel) {
    const auto names = kernel.attrs.Get<std::vector<std::string>>(kAwaitsAttr, {});
    for (const Buffer& b : kernel.buffers) {
      if (std::find(names.begin(), names.end(), b->name) != names.end()) awaited_.insert(b.get());
    }
    PreOrder(kernel.body, [&](const NodeRef& n) {
      const auto* alloc = As<Alloc>(n);
      if (alloc && alloc->buffer->scope == Scope::kGlobal) awaited_.insert(alloc->buffer.get());
      return !IsA<ExprNode>(n);
    });
  }

  /// The statement with one wait on every way through it.
  Stmt In(const Stmt& stmt) const {
    const auto* nest = As<For>(stmt);
    // The launch's own nest; other loops may run often, or never.
    if (nest && nest->for_kind == ForKind::kThread) return WithBody(*nest, In(nest->body));
    if (!Touches(stmt)) return Seq::Make({stmt, CallTo(kLaunchWaitRow)});
    switch (stmt->kind) {
      case NodeKind::kSeq: return InSeq(*As<Seq>(stmt));
      case NodeKind::kAlloc: return Alloc::Make(As<Alloc>(stmt)->buffer, In(As<Alloc>(stmt)->body));
      case NodeKind::kLet: {
        const auto* let = As<Let>(stmt);
        if (Touches(let->value)) return Before(stmt);
        return Let::Make(let->var, let->value, In(let->body));
      }
      case NodeKind::kIf: {
        const auto* node = As<If>(stmt);
        if (Touches(node->condition)) return Before(stmt);
        const Stmt no = node->else_body ? In(node->else_body) : CallTo(kLaunchWaitRow);
        return If::Make(node->condition, In(node->then_body), no);
      }
      default: return Before(stmt);
    }
  }

 private:
  static Stmt Before(const Stmt& stmt) { return Seq::Make({CallTo(kLaunchWaitRow), stmt}); }

  bool Touches(const NodeRef& node) const {
    return std::any_of(awaited_.begin(), awaited_.end(),
                       [&](const BufferNode* b) { return UsesBuffer(node, b); });
  }

  // What touches nothing that is waited for, such as loads of weights, goes in front of the wait,
  // where it does not mind.
  Stmt InSeq(const Seq& seq) const {
    std::vector<Stmt> out, behind;
    for (const Stmt& s : seq.stmts) {
      const bool early = !Touches(s) && (behind.empty() || MayPass(s, behind));
      (early ? out : behind).push_back(s);
    }
    behind.front() = In(behind.front());
    out.insert(out.end(), behind.begin(), behind.end());
    return Seq::Make(std::move(out));
  }

  // Statements of one thread alone, that have nothing to do with each other.
  static bool MayPass(const Stmt& stmt, const std::vector<Stmt>& others) {
    const auto counts = [](const Buffer&) { return true; };
    const Accesses own = AccessesOf(stmt, Module(), counts);
    return IsPlain(stmt) && std::all_of(others.begin(), others.end(), [&](const Stmt& s) {
             return IsPlain(s) && !own.Conflicts(AccessesOf(s, Module(), counts));
           });
  }

  static bool IsPlain(const Stmt& stmt) {
    return !AnyStmt(stmt, [](const NodeRef& n) {
      return IsA<Sync>(n) || IsA<CallFunc>(n) || IsA<Atomic>(n) || IsA<While>(n) ||
             IsA<Evaluate>(n);
    });
  }

  std::unordered_set<const BufferNode*> awaited_;
};

Stmt Inside(const Stmt& nest, const Stmt& first) {
  const auto* loop = As<For>(nest);
  if (!loop || loop->for_kind != ForKind::kThread) return Seq::Make({first, nest});
  return WithBody(*loop, Inside(loop->body, first));
}

Func Row(const char* name, LaunchOrder order) {
  Expected<Func> meaning = MeaningOf(*BuiltinTileIntrinsics().Find(name));
  TN_CHECK(meaning, "{}", ToString(meaning.errors()));
  PrimFunc fields = **meaning;
  fields.attrs.Set(kLaunchOrderAttr, std::string(Name(order)));
  fields.attrs.Set(kIntrinsicAttr, fields.name);
  return PrimFunc::Make(std::move(fields));
}

}  // namespace

Module OrderLaunches(const Module& module, const PassContext&) {
  Module out = module;
  for (const auto& [name, func] : module.funcs) {
    const bool waits = func->attrs.Has(kAwaitsAttr), precedes = func->attrs.Has(kPrecedesAttr);
    if (func->func_kind != FuncKind::kKernel || !IsBound(*func) || (!waits && !precedes)) continue;
    PrimFunc fields = *func;
    if (waits) {
      fields.body = Waits(*func).In(fields.body);
      out.Add(Row(kLaunchWaitRow, LaunchOrder::kWait));
    }
    if (precedes) {
      fields.body = Inside(fields.body, CallTo(kLaunchBeginRow));
      out.Add(Row(kLaunchBeginRow, LaunchOrder::kBegin));
    }
    out.Add(PrimFunc::Make(std::move(fields)));
  }
  return out;
}

}  // namespace tenon
