// A softmax keeps the exponentials of a row until their sum is known:
//
//   for i in 0..m parallel {
//     for j in 0..n { block E(vi, vj) { E[vi, vj] = exp(X[vi, vj] - top[vi]) } }
//     for j in 0..n { block sum(vi, vj) { … sum[vi] = sum[vi] + E[vi, vj] } }
//     for j in 0..n { block Y(vi, vj) { Y[vi, vj] = E[vi, vj] / sum[vi] } }
//   }
//
// With Y in the place of E a row is two streams of memory instead of three, and the lines of the
// result are fetched while there is much to compute, instead of all at once by the last loop.
//
// That is right where nobody needs an element of E any more once Y has its own:
//   - Y is written by that one block and by nobody else, element by element, each from its own
//     element of E; what else uses E stands before it, under the loops around all of them;
//   - different iterations of these loops use different elements (AreFixed), so that none comes
//     back to what an earlier one has finished, whoever runs it;
//   - no loop is parallel further inside, where some would still read what others overwrite.
// Partial sums are left alone: what is updated again and again is better off close together.
#include "loop/pass/blocks/store_in_results.h"

#include <algorithm>

#include "dependence/flow.h"
#include "loop/reducer.h"
#include "loop/rewrite.h"

namespace tenon {

namespace {

bool IsPlain(const BufferNode& b) { return !b.layout && b.strides.empty(); }

bool IsMemory(Scope scope) { return scope == Scope::kLocal || scope == Scope::kGlobal; }

// Looks for results that allocations of one function can be.
class Finder {
 public:
  explicit Finder(const PrimFunc& func) : func_(func), flow_(func) {}

  // Null where it is none.
  Buffer ResultFor(const AllocUses& a) {
    const Buffer& kept = a.alloc->buffer;
    if (!IsMemory(kept->scope) || !IsPlain(*kept) || a.uses.empty()) return nullptr;
    const size_t shared = SharedPath(a);
    if (shared == 0) return nullptr;
    const Block* last = LastReader(a);
    const std::vector<Ref<const Store>> stores =
        last ? StoresOf(last->body) : std::vector<Ref<const Store>>{};
    if (stores.size() != 1 || last->init || !IsElementwise(*last)) return nullptr;
    const Buffer result = ResultLike(*kept, *stores[0]);
    if (!result || !ReadsOnly(*last, *kept, stores[0]->indices) || !IsOnly(*last, *result))
      return nullptr;
    return IsOrdered(a, *last, shared) && IsApart(a, shared) ? result : nullptr;
  }

 private:
  // How many statements are around all uses: up to a sequence that they are in different parts of,
  // without loops of unknown length. 0: there is none.
  static size_t SharedPath(const AllocUses& a) {
    const std::vector<const StmtNode*>& path = a.uses[0].path;
    size_t n = path.size();
    for (const BufferUse& use : a.uses) {
      if (use.in_call || use.no_box || use.updates) return 0;
      size_t k = 0;
      while (k < n && k < use.path.size() && use.path[k] == path[k]) ++k;
      n = k;
    }
    const bool repeats = std::any_of(path.begin(), path.begin() + static_cast<int64_t>(n),
                                     [](const StmtNode* s) { return s->kind == NodeKind::kWhile; });
    return n > 0 && !repeats && path[n - 1]->kind == NodeKind::kSeq ? n : 0;
  }

  static const Block* BlockOf(const BufferUse& use) {
    for (auto it = use.path.rbegin(); it != use.path.rend(); ++it) {
      if (const auto* block = As<Block>(static_cast<const Node*>(*it))) return block;
    }
    return nullptr;
  }

  // The block of the last use, where it only reads; null where it does not.
  static const Block* LastReader(const AllocUses& a) {
    const Block* last = BlockOf(a.uses.back());
    for (const BufferUse& use : a.uses) {
      const Block* block = BlockOf(use);
      if (!block || (block == last && use.writes)) return nullptr;
    }
    return last;
  }

  static bool IsElementwise(const Block& block) {
    return std::all_of(block.iters.begin(), block.iters.end(),
                       [](const IterVar& v) { return v->iter_kind == IterKind::kSpatial; });
  }

  Buffer ResultLike(const BufferNode& kept, const Store& store) {
    const auto first = func_.buffers.end() - func_.num_outputs;
    const auto it = std::find(first, func_.buffers.end(), store.buffer);
    if (it == func_.buffers.end()) return nullptr;
    const BufferNode& r = **it;
    const bool same = r.dtype == kept.dtype && IsPlain(r) && r.shape.size() == kept.shape.size() &&
                      std::equal(r.shape.begin(), r.shape.end(), kept.shape.begin(),
                                 [&](const Expr& x, const Expr& y) {
                                   return flow_.analyzer()->CanProve(Eq(x, y));
                                 });
    return same ? *it : nullptr;
  }

  static bool Same(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(),
                      [](const Expr& x, const Expr& y) { return StructuralEqual(x, y); });
  }

  // Whether all that the block loads of the buffer is the element at these indices.
  static bool ReadsOnly(const Block& block, const BufferNode& b, const std::vector<Expr>& indices) {
    bool only = true;
    PreOrder(block.body, [&](const NodeRef& n) {
      const auto* load = As<Load>(n);
      if (load && load->buffer.get() == &b) only &= !load->mask && Same(load->indices, indices);
      return only;
    });
    return only;
  }

  // Whether nobody but the block's store uses the buffer.
  bool IsOnly(const Block& block, const BufferNode& b) const {
    int uses = 0;
    PreOrder(func_.body, [&](const NodeRef& n) {
      if (const auto* inside = As<Block>(n); inside == &block) return false;
      const auto* load = As<Load>(n);
      const auto* store = As<Store>(n);
      const auto* region = As<RegionNode>(n);
      const auto* atomic = As<Atomic>(n);
      uses += (load && load->buffer.get() == &b) || (store && store->buffer.get() == &b) ||
              (region && region->buffer.get() == &b) || (atomic && atomic->buffer.get() == &b);
      return uses == 0;
    });
    PreOrder(block.body, [&](const NodeRef& n) {
      const auto* load = As<Load>(n);
      uses += load && load->buffer.get() == &b;
      return uses == 0;
    });
    return uses == 0;
  }

  // Whether all other uses stand in parts of the sequence before that of the last block, and no
  // part is shared out among workers.
  static bool IsOrdered(const AllocUses& a, const Block& last, size_t shared) {
    const auto& parts = As<Seq>(static_cast<const Node*>(a.uses[0].path[shared - 1]))->stmts;
    const auto place = [&](const BufferUse& use) {
      const auto it = std::find_if(parts.begin(), parts.end(),
                                   [&](const Stmt& s) { return s.get() == use.path.at(shared); });
      return it - parts.begin();
    };
    return std::all_of(a.uses.begin(), a.uses.end(), [&](const BufferUse& use) {
      const bool parallel = std::any_of(
          use.path.begin() + static_cast<int64_t>(shared), use.path.end(), [](const StmtNode* s) {
            const auto* loop = As<For>(static_cast<const Node*>(s));
            return loop &&
                   (loop->for_kind == ForKind::kParallel || loop->for_kind == ForKind::kThread);
          });
      return !parallel && (BlockOf(use) == &last || place(use) < place(a.uses.back()));
    });
  }

  // Whether the loops around all uses are known from any element that one of their iterations uses.
  bool IsApart(const AllocUses& a, size_t shared) {
    std::unordered_set<const VarNode*> loops;
    for (size_t i = 0; i < shared; ++i) {
      const auto* loop = As<For>(static_cast<const Node*>(a.uses[0].path[i]));
      if (loop && !IsOne(loop->extent)) loops.insert(loop->var.get());
    }
    if (loops.empty()) return true;
    Box all = flow_.BoxOf(a.uses[0], shared - 1, false);
    for (const BufferUse& use : a.uses)
      all = Union(all, flow_.BoxOf(use, shared - 1, false), flow_.analyzer());
    return AreFixed(loops, SumsOf(all, flow_.analyzer()), loops, {}, flow_.analyzer());
  }

  const PrimFunc& func_;
  BufferFlow flow_;
};

Stmt WithoutAllocs(const Stmt& body, const BufferMap& gone) {
  return PostOrderRewrite(body, [&](const NodeRef& n) -> NodeRef {
    const auto* alloc = As<Alloc>(n);
    return alloc && gone.count(alloc->buffer.get()) ? NodeRef(alloc->body) : n;
  });
}

Func InResults(const Func& func, const Module& module) {
  Finder finder(*func);
  BufferMap gone;
  std::unordered_set<const BufferNode*> taken;  // a result is one allocation at most
  for (const AllocUses& a : UsesOfAllocs(*func, module)) {
    const Buffer result = finder.ResultFor(a);
    if (result && taken.insert(result.get()).second) gone[a.alloc->buffer.get()] = result;
  }
  if (gone.empty()) return func;
  return WithBody(func, SubstituteBuffers(WithoutAllocs(func->body, gone), gone));
}

}  // namespace

Module StoreInResults(const Module& module, const PassContext&) {
  return MapFuncs(module, [&](const Func& func) {
    return func->func_kind == FuncKind::kKernel ? InResults(func, module) : func;
  });
}

}  // namespace tenon
