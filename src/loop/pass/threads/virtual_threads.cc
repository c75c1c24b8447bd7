#include "loop/pass/threads/virtual_threads.h"

#include <optional>

#include "dependence/element.h"
#include "dependence/variance.h"
#include "ir/visit.h"

namespace tenon {

namespace {

constexpr int64_t kMostVirtualThreads = 64;
constexpr int64_t kMostUnrolled = 16;  // that are written out

// One loop over virtual threads. As long as fits_ holds, what virtual threads do to memory made
// inside can be told apart by one dimension more, and to memory made outside by its elements.
class Interleaver {
 public:
  Interleaver(const For& loop, const BufferSet& outer, NameSupply* names)
      : loop_(loop), outer_(outer), names_(names) {}

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
    differs_.emplace(loop_.var, body);
    Fit(body);
    fits_ = fits_ && ElementsTell(body);
    return fits_ ? Push(Widened(body)) : nullptr;
  }

 private:
  // Memory made inside that differs gets a dimension more: not where it has a layout, or whole
  // regions of it are named.
  void Fit(const Stmt& body) {
    PreOrder(body, [&](const NodeRef& n) {
      const auto* region = As<RegionNode>(n);
      const auto* atomic = As<Atomic>(n);
      const auto* alloc = As<Alloc>(n);
      const auto* call = As<Call>(n);
      const BufferNode* buffer = region   ? region->buffer.get()
                                 : atomic ? atomic->buffer.get()
                                          : nullptr;
      if (buffer && made_.count(buffer) != 0) fits_ &= !differs_->Has(buffer);
      if (alloc && differs_->Has(alloc->buffer.get()))
        fits_ &= !alloc->buffer->layout && alloc->buffer->strides.empty();
      if (call && call->intrinsic == Intrinsic::kBufferData) fits_ = false;
      return fits_;
    });
  }

  // Memory made outside, each virtual thread's own all the same if it writes before it reads, stays
  // one for all: then no two of them may touch one element.
  bool ElementsTell(const Stmt& body) {
    std::unordered_map<const BufferNode*, std::vector<std::vector<Expr>>> touched;
    Analyzer analyzer;
    analyzer.Bind(loop_.var, IndexConst(0), IndexConst(extent_));
    auto add = [&](const Buffer& b, const std::vector<Expr>& indices) {
      const bool outside = outer_.count(b.get()) != 0 && made_.count(b.get()) == 0;
      if (outside && differs_->Has(b.get())) touched[b.get()].push_back(indices);
    };
    PreOrder(body, [&](const NodeRef& n) {
      if (const auto* s = As<Load>(n)) add(s->buffer, s->indices);
      if (const auto* s = As<Store>(n)) add(s->buffer, s->indices);
      if (const auto* s = As<Atomic>(n)) add(s->buffer, s->indices);
      if (const auto* s = As<RegionNode>(n)) add(s->buffer, {});
      const auto* loop = As<For>(n);
      if (loop && IsPure(loop->min) && IsPure(loop->extent))
        analyzer.Bind(loop->var, loop->min, loop->extent);
      return true;
    });
    const Iteration v{loop_.var, IndexConst(extent_)};
    for (const auto& [buffer, accesses] : touched) {
      for (size_t i = 0; i < accesses.size(); ++i) {
        for (size_t j = i; j < accesses.size(); ++j) {
          if (!ElementTells(*buffer, accesses[i], v, accesses[j], v, &analyzer)) return false;
        }
      }
    }
    return true;
  }

  // Every virtual thread with its own part of what differs.
  Stmt Widened(const Stmt& body) {
    std::unordered_map<const BufferNode*, Buffer> wide;
    for (const BufferNode* b : made_) {
      if (!differs_->Has(b)) continue;
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
    if (!IsAlikeForAll(stmt)) return Wrap(stmt);
    return MapBodies(stmt, [&](const Stmt& s) { return Push(s); });
  }

  // True for what all virtual threads may walk through together.
  bool IsAlikeForAll(const Stmt& stmt) const {
    if (const auto* loop = As<For>(stmt)) {
      const bool lanes = loop->for_kind == ForKind::kVectorized;
      return !lanes && !UsesLoop(loop->min) && !UsesLoop(loop->extent);
    }
    if (const auto* node = As<If>(stmt)) return !UsesLoop(node->condition);
    if (const auto* let = As<Let>(stmt)) return !UsesLoop(let->value);
    if (const auto* loop = As<While>(stmt)) return !UsesLoop(loop->condition);
    return IsA<Seq>(stmt) || IsA<Alloc>(stmt);
  }

  Stmt Wrap(const Stmt& stmt) {
    Var var = VarNode::Make(names_->Fresh(loop_.var->name), DType::Index());
    Stmt body = Substitute(stmt, VarMap{{loop_.var.get(), var}});
    const ForKind kind = extent_ <= kMostUnrolled ? ForKind::kUnrolled : ForKind::kSerial;
    return For::Make(var, IndexConst(0), IndexConst(extent_), kind, body, loop_.attrs);
  }

  const For& loop_;
  const BufferSet& outer_;
  NameSupply* names_;
  int64_t extent_ = 1;
  bool fits_ = true;
  BufferSet made_;                   // allocated inside
  std::optional<Variance> differs_;  // between virtual threads
};

}  // namespace

Stmt InterleaveVirtualThreads(const For& loop, const BufferSet& made, NameSupply* names) {
  return Interleaver(loop, made, names)();
}

}  // namespace tenon
