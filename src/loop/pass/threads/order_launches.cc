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
    std::vector<Stmt> all, out, behind;
    std::vector<Buffer> own;
    for (const Stmt& s : seq.stmts) Flatten(s, &all, &own);
    for (const Stmt& s : all) {
      const bool early = !Touches(s) && (behind.empty() || MayPass(s, behind));
      (early ? out : behind).push_back(s);
    }
    behind.front() = In(behind.front());
    out.insert(out.end(), behind.begin(), behind.end());
    Stmt result = Seq::Make(std::move(out));
    for (size_t i = own.size(); i-- > 0;) result = Alloc::Make(own[i], result);
    return result;
  }

  // Statements in what a thread has for itself count like those around.
  static void Flatten(const Stmt& stmt, std::vector<Stmt>* out, std::vector<Buffer>* own) {
    const auto* alloc = As<Alloc>(stmt);
    if (const auto* seq = As<Seq>(stmt)) {
      for (const Stmt& s : seq->stmts) Flatten(s, out, own);
    } else if (alloc && IsOwn(*alloc->buffer)) {
      own->push_back(alloc->buffer);
      Flatten(alloc->body, out, own);
    } else {
      out->push_back(stmt);
    }
  }

  static bool IsOwn(const BufferNode& b) {
    return b.scope == Scope::kLocal || b.scope == Scope::kRegister;
  }

  // Statements of one thread alone, that have nothing to do with each other. Barriers between them
  // do not mind where none but the thread, or everybody at any time, finds what it touches.
  static bool MayPass(const Stmt& stmt, const std::vector<Stmt>& others) {
    const auto counts = [](const Buffer&) { return true; };
    const Accesses own = AccessesOf(stmt, Module(), counts);
    const auto is_apart = [](const BufferNode* b) { return IsOwn(*b); };
    const bool apart = std::all_of(own.writes.begin(), own.writes.end(), is_apart) &&
                       std::all_of(own.reads.begin(), own.reads.end(), [&](const BufferNode* b) {
                         return IsOwn(*b) || b->scope == Scope::kGlobal;
                       });
    return IsPlain(stmt, false) && std::all_of(others.begin(), others.end(), [&](const Stmt& s) {
             return IsPlain(s, apart) && !own.Conflicts(AccessesOf(s, Module(), counts));
           });
  }

  static bool IsPlain(const Stmt& stmt, bool may_meet) {
    return !AnyStmt(stmt, [&](const NodeRef& n) {
      return (IsA<Sync>(n) && !may_meet) || IsA<CallFunc>(n) || IsA<Atomic>(n) || IsA<While>(n) ||
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
