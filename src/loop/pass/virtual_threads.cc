#include "loop/pass/virtual_threads.h"

#include <unordered_set>

#include "ir/visit.h"

namespace tenon {

namespace {

constexpr int64_t kMostVirtualThreads = 64;
constexpr int64_t kMostUnrolled = 16;  // that are written out

class Interleaver {
 public:
  Interleaver(const For& loop, NameSupply* names) : loop_(loop), names_(names) {
    differing_.insert(loop.var.get());
  }

  Stmt operator()() {
    const auto extent = AsInt(loop_.extent);
    if (!extent || *extent < 1 || *extent > kMostVirtualThreads) return nullptr;
    extent_ = *extent;
    Stmt body = loop_.body;
    if (!IsZero(loop_.min)) {
      body = Substitute(body, VarMap{{loop_.var.get(), loop_.min + Expr(loop_.var)}});
    }
    PreOrder(body, [&](const NodeRef& n) {
      if (const auto* alloc = As<Alloc>(n)) made_.insert(alloc->buffer.get());
      return !IsA<ExprNode>(n);
    });
    size_t before = 0;
    do {
      before = differing_.size();
      Scan(body, false);
    } while (differing_.size() != before && fits_);
    return fits_ ? Push(Widened(body)) : nullptr;
  }

 private:
  // What is not the same for all virtual threads: a variable, or a buffer made inside.
  bool Differs(const NodeRef& node) const {
    bool found = false;
    PreOrder(node, [&](const NodeRef& n) {
      found |= differing_.count(n.get()) != 0;
      if (const auto* load = As<Load>(n)) found |= differing_.count(load->buffer.get()) != 0;
      return !found;
    });
    return found;
  }

  void Scan(const Stmt& stmt, bool guarded) {
    switch (stmt->kind) {
      case NodeKind::kSeq:
        for (const Stmt& s : As<Seq>(stmt)->stmts) Scan(s, guarded);
        return;
      case NodeKind::kFor: {
        const auto* loop = As<For>(stmt);
        const bool differs = Differs(loop->min) || Differs(loop->extent);
        if (differs) differing_.insert(loop->var.get());
        return Scan(loop->body, guarded || differs);
      }
      case NodeKind::kIf: {
        const auto* node = As<If>(stmt);
        const bool differs = guarded || Differs(node->condition);
        Scan(node->then_body, differs);
        if (node->else_body) Scan(node->else_body, differs);
        return;
      }
      case NodeKind::kLet:
        if (Differs(As<Let>(stmt)->value)) differing_.insert(As<Let>(stmt)->var.get());
        return Scan(As<Let>(stmt)->body, guarded);
      case NodeKind::kAlloc: return Scan(As<Alloc>(stmt)->body, guarded);
      case NodeKind::kWhile:
        return Scan(As<While>(stmt)->body, guarded || Differs(As<While>(stmt)->condition));
      case NodeKind::kBlock: return Scan(As<Block>(stmt)->body, guarded);
      case NodeKind::kStore: {
        const BufferNode* buffer = As<Store>(stmt)->buffer.get();
        if (made_.count(buffer) == 0 || !(guarded || Differs(stmt))) return;
        differing_.insert(buffer);
        fits_ &= !As<Store>(stmt)->buffer->layout && As<Store>(stmt)->buffer->strides.empty();
        return;
      }
      default: ScanOther(stmt, guarded);
    }
  }

  // Memory that differs cannot be widened where whole regions of it are named.
  void ScanOther(const Stmt& stmt, bool guarded) {
    const bool differs = guarded || Differs(stmt);
    PreOrder(stmt, [&](const NodeRef& n) {
      const auto* region = As<RegionNode>(n);
      const auto* atomic = As<Atomic>(n);
      const auto* call = As<Call>(n);
      const BufferNode* buffer = region   ? region->buffer.get()
                                 : atomic ? atomic->buffer.get()
                                          : nullptr;
      if (buffer && made_.count(buffer) != 0) fits_ &= !differs && differing_.count(buffer) == 0;
      if (call && call->intrinsic == Intrinsic::kBufferData) fits_ = false;
      return fits_;
    });
  }

  // Every virtual thread with its own part of what differs.
  Stmt Widened(const Stmt& body) {
    std::unordered_map<const BufferNode*, Buffer> wide;
    for (const BufferNode* b : made_) {
      if (differing_.count(b) == 0) continue;
      std::vector<Expr> shape = {IndexConst(extent_)};
      shape.insert(shape.end(), b->shape.begin(), b->shape.end());
      wide[b] =
          BufferNode::Make(b->name, b->dtype, std::move(shape), b->scope, nullptr, {}, b->align);
    }
    auto indices = [&](const std::vector<Expr>& given) {
      std::vector<Expr> out = {loop_.var};
      out.insert(out.end(), given.begin(), given.end());
      return out;
    };
    return PostOrderRewrite(body, [&](const NodeRef& n) -> NodeRef {
      if (const auto* s = As<Load>(n); s && wide.count(s->buffer.get()) != 0)
        return Load::Make(wide[s->buffer.get()], indices(s->indices), s->mask);
      if (const auto* s = As<Store>(n); s && wide.count(s->buffer.get()) != 0)
        return Store::Make(wide[s->buffer.get()], indices(s->indices), s->value, s->mask);
      if (const auto* s = As<Alloc>(n); s && wide.count(s->buffer.get()) != 0)
        return Alloc::Make(wide[s->buffer.get()], s->body);
      return n;
    });
  }

  bool UsesLoop(const NodeRef& node) const { return UsesVar(node, loop_.var.get()); }

  Stmt Push(const Stmt& stmt) {
    if (!UsesLoop(stmt)) return stmt;
    switch (stmt->kind) {
      case NodeKind::kSeq: {
        std::vector<Stmt> out;
        for (const Stmt& s : As<Seq>(stmt)->stmts) out.push_back(Push(s));
        return Seq::Make(std::move(out));
      }
      case NodeKind::kFor: {
        const auto* loop = As<For>(stmt);
        const bool lanes = loop->for_kind == ForKind::kVectorized;
        if (lanes || UsesLoop(loop->min) || UsesLoop(loop->extent)) return Wrap(stmt);
        return For::Make(loop->var, loop->min, loop->extent, loop->for_kind, Push(loop->body),
                         loop->attrs, loop->thread);
      }
      case NodeKind::kIf: {
        const auto* node = As<If>(stmt);
        if (UsesLoop(node->condition)) return Wrap(stmt);
        Stmt no = node->else_body ? Push(node->else_body) : nullptr;
        return If::Make(node->condition, Push(node->then_body), no);
      }
      case NodeKind::kLet: {
        const auto* let = As<Let>(stmt);
        if (UsesLoop(let->value)) return Wrap(stmt);
        return Let::Make(let->var, let->value, Push(let->body));
      }
      case NodeKind::kAlloc:
        return Alloc::Make(As<Alloc>(stmt)->buffer, Push(As<Alloc>(stmt)->body));
      case NodeKind::kWhile: {
        const auto* loop = As<While>(stmt);
        if (UsesLoop(loop->condition)) return Wrap(stmt);
        return While::Make(loop->condition, Push(loop->body));
      }
      default: return Wrap(stmt);
    }
  }

  Stmt Wrap(const Stmt& stmt) {
    Var var = VarNode::Make(names_->Fresh(loop_.var->name), DType::Index());
    Stmt body = Substitute(stmt, VarMap{{loop_.var.get(), var}});
    const ForKind kind = extent_ <= kMostUnrolled ? ForKind::kUnrolled : ForKind::kSerial;
    return For::Make(var, IndexConst(0), IndexConst(extent_), kind, body, loop_.attrs);
  }

  const For& loop_;
  NameSupply* names_;
  int64_t extent_ = 1;
  bool fits_ = true;
  std::unordered_set<const BufferNode*> made_;  // allocated inside
  std::unordered_set<const Node*> differing_;   // variables and buffers
};

}  // namespace

Stmt InterleaveVirtualThreads(const For& loop, NameSupply* names) {
  return Interleaver(loop, names)();
}

}  // namespace tenon
