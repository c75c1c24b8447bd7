// From "a thread loop over a reduction" to parts and a tree of shared memory.
//
// From
//
//   for k.0 in 0..4 {
//     for k.1 in 0..5 thread threadIdx.x {
//       block S(vi: spatial = i, vk: reduce = k.0 * 5 + k.1) {
//         init { S[vi] = 0f32 }
//         S[vi] = S[vi] + A[vi, vk]
//       }
//     }
//   }
//
// comes, in the same loops over i,
//
//   alloc S.part: f32[5] in local
//   for k.1 in 0..5 thread threadIdx.x { S.part[k.1] = 0f32 }
//   for k.0 in 0..4 {
//     for k.1 in 0..5 thread threadIdx.x { S.part[k.1] = S.part[k.1] + A[i, k.0 * 5 + k.1] }
//   }
//   alloc S.parts: f32[5] in shared
//   for k.1 in 0..5 thread threadIdx.x { S.parts[k.1] = S.part[k.1] }
//   for k.1 in 0..1 thread threadIdx.x {
//     S.parts[k.1] = S.parts[k.1] + S.parts[k.1 + 1]
//     S.parts[k.1] = S.parts[k.1] + S.parts[k.1 + 2] …
//   }
//   S[i] = S.parts[0]
//
// which bind_threads gives its barriers. Any number of threads goes: up to 16 parts are added up by
// one thread, up to 256 in two steps, and so on, for a barrier costs as much as reading several
// parts. Where S is a thread's own memory, each adds up the last parts, a barrier earlier:
//
//   S[i] = S.parts[0]
//   S[i] = S[i] + S.parts[1]
//   S[i] = S[i] + S.parts[2] …
//
// Several axes are taken one after the other, inner loops first, with a dimension of the
// shared memory for each; so have the loops over threads around the block, whose threads have
// reductions of their own. Elements that a thread has parts of are combined side by side, in shared
// memory and by threads of their own where there are as many, and else one after the other. A
// thread that has one iteration of one element alone needs no memory of its own for it. Where the
// order matters, the combiner takes neighbours, two at a time.

#include "loop/pass/threads/combine_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "ir/print.h"
#include "loop/rewrite.h"
#include "loop/thread_reduction.h"
#include "loop/threads.h"

namespace tenon {

namespace {

using LoopList = std::vector<const For*>;

struct Found {
  const Block* block;
  std::vector<Stmt> path;
};

// The first block whose reduction is shared out; blocks are not looked into.
std::optional<Found> Find(const Stmt& stmt, std::vector<Stmt>* path) {
  if (const auto* block = As<Block>(stmt)) {
    if (!ReducesOverThreads(*block, *path)) return std::nullopt;
    return Found{block, *path};
  }
  if (!IsControl(stmt)) return std::nullopt;
  std::optional<Found> found;
  path->push_back(stmt);
  MapBodies(stmt, [&](const Stmt& s) {
    if (!found) found = Find(s, path);
    return s;
  });
  path->pop_back();
  return found;
}

// The statement with one inside replaced.
Stmt Replace(const Stmt& stmt, const Node* what, const std::function<Stmt(const Stmt&)>& by) {
  if (stmt.get() == what) return by(stmt);
  if (!IsControl(stmt)) return stmt;
  return MapBodies(stmt, [&](const Stmt& s) { return Replace(s, what, by); });
}

LoopList operator+(LoopList a, const LoopList& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Lowers one block. part_ are its results' parts of each thread, by the loops inside the reduction
/// that are spatial and then those over threads; parts_ those that the block's threads share, by
/// the loops over threads around it, those inside that are spatial, where they meet together, and
/// then those of the reduction. Where a thread has nothing to add up, part_ is parts_.
class Combining {
 public:
  Combining(const Found& found, ThreadReduction reduction, NameSupply* names)
      : block_(*found.block), r_(std::move(reduction)), names_(*names) {
    for (const Stmt& s : found.path) {
      const auto* loop = As<For>(s);
      if (loop == r_.outermost) break;
      if (loop && IsOverThreads(*loop)) around_.push_back(loop);
    }
    top_ = around_.empty() ? r_.outermost : around_[0];
    for (const For* loop : r_.spatial) {
      if (IsOverThreads(*loop)) around_.push_back(loop);
    }
    for (const IterVar& v : block_.iters) bindings_[v->var.get()] = v->binding;
    auto inside = std::find_if(found.path.begin(), found.path.end(), [&](const Stmt& s) {
      return s.get() == static_cast<const Node*>(r_.outermost);
    });
    for (; inside != found.path.end(); ++inside) {
      const auto* loop = As<For>(*inside);
      if (loop && IsOne(loop->extent)) once_[loop->var.get()] = loop->min;
    }
    direct_ = r_.serial.empty() && r_.spatial.empty();
    together_ = MeetTogether();
  }

  Expected<Stmt> Run(const Stmt& body) {
    MakeBuffers();
    TN_ASSIGN_OR_RETURN(const Stmt stored, Stored());
    return Replace(body, top_, [&](const Stmt& top) {
      Stmt out = Replace(top, r_.outermost, [&](const Stmt& loop) {
        return WithAllocs(
            direct_ ? std::vector<Buffer>{} : part_,
            Seq::Make({Start(),
                       Replace(loop, &block_, [&](const Stmt&) { return Stmt(OwnBlock()); }),
                       stored}));
      });
      return WithAllocs(parts_, out);
    });
  }

 private:
  static Stmt WithAllocs(const std::vector<Buffer>& buffers, Stmt body) {
    for (size_t k = buffers.size(); k-- > 0;) body = Alloc::Make(buffers[k], body);
    return body;
  }

  void MakeBuffers() {
    auto make = [&](const char* suffix, Scope scope, const LoopList& loops, int64_t padding = 0) {
      std::vector<Buffer> out;
      for (const auto& store : r_.combiner.stores()) {
        std::vector<Expr> shape;
        for (const For* loop : loops) shape.push_back(loop->extent);
        if (padding > 0) shape.back() = Simplify(shape.back() + padding);
        out.push_back(BufferNode::Make(names_.Fresh(store->buffer->name + suffix),
                                       store->buffer->dtype, std::move(shape), scope));
      }
      return out;
    };
    parts_ = make(".parts", Scope::kShared, around_ + Together() + r_.threads, Padding());
    part_ = direct_ ? parts_ : make(".part", Scope::kLocal, r_.spatial + r_.threads);
  }

  // ---- loops and places ----

  // The statement that `body` makes in copies of the loops, from 0 on; `at` has their variables'
  // values there.
  Stmt Nest(const LoopList& loops, VarMap* at, const std::function<Stmt()>& body) {
    std::vector<Var> vars;
    for (const For* loop : loops) {
      vars.push_back(VarNode::Make(names_.Fresh(loop->var->name)));
      (*at)[loop->var.get()] = IsZero(loop->min) ? Expr(vars.back()) : loop->min + vars.back();
    }
    Stmt out = body();
    for (size_t i = loops.size(); i-- > 0;) {
      const bool lanes = loops[i]->for_kind == ForKind::kVectorized;
      out = For::Make(vars[i], IndexConst(0), loops[i]->extent,
                      lanes ? ForKind::kUnrolled : loops[i]->for_kind, out, {}, loops[i]->thread);
    }
    return out;
  }

  static std::vector<Expr> Digits(const LoopList& loops, const VarMap& at) {
    std::vector<Expr> out;
    for (const For* loop : loops) {
      out.push_back(Simplify(Substitute(Expr(loop->var), at) - loop->min));
    }
    return out;
  }

  std::vector<Expr> PartAt(const VarMap& at) const {
    return Digits((direct_ ? around_ : r_.spatial) + r_.threads, at);
  }

  // Of a thread of the reduction.
  std::vector<Expr> SharedAt(const VarMap& at, const std::vector<Expr>& thread) const {
    std::vector<Expr> out = Digits(around_ + Together(), at);
    out.insert(out.end(), thread.begin(), thread.end());
    return out;
  }

  // The loops whose elements have shared memory at once.
  LoopList Together() const { return together_ ? r_.spatial : LoopList{}; }

  // Elements that a thread has parts of meet at the same barriers where their parts are few.
  bool MeetTogether() const {
    constexpr int64_t kMostBytes = 8 << 10;  // up to half as much again is padding
    if (r_.spatial.empty() || r_.combiner.DependsOnOrder()) return false;
    int64_t bytes = 0;
    for (const auto& store : r_.combiner.stores()) bytes += store->buffer->dtype.Bytes();
    for (const For* loop : around_ + r_.spatial + r_.threads) {
      const auto extent = AsInt(loop->extent);
      if (!extent || *extent < 1 || *extent > kMostBytes) return false;
      bytes *= *extent;
      if (bytes > kMostBytes) return false;
    }
    return std::none_of(r_.spatial.begin(), r_.spatial.end(),
                        [](const For* loop) { return IsOverThreads(*loop); });
  }

  static std::vector<Expr> LoadAll(const std::vector<Buffer>& buffers,
                                   const std::vector<Expr>& indices) {
    std::vector<Expr> out;
    for (const Buffer& b : buffers) out.push_back(Load::Make(b, indices));
    return out;
  }

  Stmt Update(const std::vector<Buffer>& buffers, const std::vector<Expr>& indices,
              const std::vector<Expr>& values) {
    return r_.combiner.Update(buffers, indices, values,
                              [&](const std::string& base) { return names_.Fresh(base); });
  }

  // ---- parts ----

  // Each part begins with the identity.
  Stmt Start() {
    if (direct_ && !block_.where) return Seq::Make({});
    VarMap at;
    return Nest(r_.threads + r_.spatial, &at,
                [&] { return StoreAll(part_, PartAt(at), r_.combiner.identity()); });
  }

  // The block in its loops, with a thread's part for its result.
  Ref<const Block> OwnBlock() {
    Block out = block_;
    std::erase_if(out.iters, [](const IterVar& v) { return v->iter_kind == IterKind::kReduce; });
    VarMap values;
    auto add = [&](const LoopList& loops, IterKind kind) {
      for (const For* loop : loops) {
        Var v = VarNode::Make(names_.Fresh(block_.name + ".v" + loop->var->name));
        out.iters.push_back(IterVarNode::Make(v, kind, loop->min, loop->extent, loop->var));
        values[loop->var.get()] = v;
      }
    };
    add(r_.spatial + r_.threads, IterKind::kSpatial);
    add(r_.serial, IterKind::kReduce);
    VarMap reduced;  // the variables that are there no more
    for (const IterVar& v : block_.iters) {
      if (v->iter_kind == IterKind::kReduce)
        reduced[v->var.get()] = Simplify(Substitute(v->binding, values));
    }
    std::vector<Expr> combined;
    for (const Expr& value : r_.combiner.values()) combined.push_back(Substitute(value, reduced));
    const std::vector<Expr> at = PartAt(values);
    out.body = direct_ ? StoreAll(part_, at, combined) : Update(part_, at, combined);
    out.init = nullptr;
    out.attrs.Erase(kStorePredicateAttr);
    if (out.where) out.where = Substitute(out.where, reduced);
    std::erase_if(out.reads, [&](const Region& r) { return IsResult(r->buffer); });
    for (Region& r : out.reads) r = Cast<RegionNode>(SubstituteNode(r, reduced));
    out.writes.clear();
    std::vector<Range> element;
    for (const Expr& i : at) element.push_back(RangeNode::Make(i, IndexConst(1)));
    for (const Buffer& b : part_) out.writes.push_back(RegionNode::Make(b, element));
    return Block::Make(std::move(out));
  }

  bool IsResult(const Buffer& buffer) const {
    const auto& stores = r_.combiner.stores();
    return std::any_of(stores.begin(), stores.end(),
                       [&](const auto& s) { return s->buffer == buffer; });
  }

  // ---- what becomes of them ----

  Expected<Stmt> Stored() {
    VarMap at = once_;
    TN_ASSIGN_OR_RETURN(const Expr predicate, Predicate());
    if (together_) {
      VarMap put = at, store = at;
      std::vector<Stmt> steps = {Nest(r_.spatial, &put, [&] { return Put(put); })};
      Combine(at, &steps);
      steps.push_back(Nest(r_.spatial, &store, [&] { return Store(store, predicate); }));
      return Seq::Make(std::move(steps));
    }
    return Nest(r_.spatial, &at, [&] {
      std::vector<Stmt> steps;
      if (!direct_) steps.push_back(Put(at));
      Combine(at, &steps);
      steps.push_back(Store(at, predicate));
      return Seq::Make(std::move(steps));
    });
  }

  Stmt Put(VarMap at) {
    return Nest(r_.threads, &at, [&] {
      return StoreAll(parts_, SharedAt(at, Digits(r_.threads, at)), LoadAll(part_, PartAt(at)));
    });
  }

  void Combine(const VarMap& at, std::vector<Stmt>* steps) {
    for (size_t axis = r_.threads.size(); axis-- > 0;) {
      const int64_t threads = *AsInt(r_.threads[axis]->extent);
      if (r_.combiner.DependsOnOrder()) {
        for (int64_t apart = 1; apart < threads; apart *= 2) {
          const int64_t pairs = (threads - apart + 2 * apart - 1) / (2 * apart);
          steps->push_back(CombineParts(at, axis, {pairs, 2 * apart, apart, threads}));
        }
        continue;
      }
      for (int64_t parts = threads; parts > 1;) {
        const int64_t kept = KeptOf(parts, threads);
        if (axis == 0 && kept == 1 && EachTakes(parts)) {
          left_ = parts;
          break;
        }
        steps->push_back(CombineParts(at, axis, {kept, 1, kept, parts}));
        parts = kept;
      }
    }
  }

  // Whether each thread adds up the last parts for itself, which is a barrier less: where it has
  // the result in its own memory, and they are few.
  bool EachTakes(int64_t parts) const {
    constexpr int64_t kMost = 32;
    const auto& stores = r_.combiner.stores();
    return parts * Elements() <= kMost && std::all_of(stores.begin(), stores.end(), [](auto& s) {
             return HolderOf(s->buffer->scope) == Holder::kThread;
           });
  }

  // So many of an element's parts are left after a step: few enough for each element to have
  // threads of its own.
  int64_t KeptOf(int64_t parts, int64_t threads) const {
    const int64_t fan = FanOf(threads), own = threads / Elements();
    const int64_t kept = (parts + fan - 1) / fan;
    return own > 0 ? std::min(kept, own) : kept;
  }

  // Between the elements' parts, so that threads of several read from different banks.
  int64_t Padding() const {
    if (!together_ || r_.threads.size() != 1) return 0;
    const int64_t threads = *AsInt(r_.threads[0]->extent);
    return threads > 1 ? KeptOf(threads, threads) : 0;
  }

  // How many parts one thread takes at a step: as many as are read while a barrier is waited for,
  // and in equal steps.
  static int64_t FanOf(int64_t threads) {
    constexpr int64_t kMost = 16;
    int64_t steps = 1;
    for (int64_t reach = kMost; reach < threads; reach *= kMost) ++steps;
    for (int64_t fan = 2;; fan *= 2) {
      int64_t reach = 1;
      for (int64_t i = 0; i < steps; ++i) reach *= fan;
      if (reach >= threads) return fan;
    }
  }

  /// Of `parts` in a row, each of so many threads takes part step * t and, in their order, those at
  /// multiples of `apart` behind it that no other thread takes.
  struct Taking {
    int64_t threads, step, apart, parts;
  };

  // Along the axis; the axes inside it have been combined.
  Stmt CombineParts(VarMap at, size_t axis, const Taking& taking) {
    const auto place = static_cast<std::ptrdiff_t>(axis);
    const For& loop = *r_.threads[axis];
    // Each element has threads of its own for it, where there are as many.
    const int64_t elements = Elements(), apart = elements * taking.threads;
    const bool own = elements > 1 && r_.threads.size() == 1 && apart <= *AsInt(loop.extent);
    const Stmt fewer = For::Make(loop.var, IndexConst(0), IndexConst(own ? apart : taking.threads),
                                 loop.for_kind, loop.body, {}, loop.thread);
    LoopList loops(r_.threads.begin(), r_.threads.begin() + place);
    loops.push_back(As<For>(fewer));
    return Nest(loops, &at, [&] {
      std::vector<Expr> thread = Digits(loops, at);
      thread.resize(r_.threads.size(), IndexConst(0));
      if (!own) {
        return Nest(Together(), &at, [&] { return Take(at, thread, axis, taking); });
      }
      Expr element = thread[axis] / taking.threads;
      thread[axis] = Simplify(thread[axis] % taking.threads);
      for (size_t i = r_.spatial.size(); i-- > 0;) {
        const For& spatial = *r_.spatial[i];
        at[spatial.var.get()] =
            Simplify(spatial.min + (i == 0 ? element : element % spatial.extent));
        element = element / spatial.extent;
      }
      return Take(at, thread, axis, taking);
    });
  }

  int64_t Elements() const {
    int64_t count = 1;
    for (const For* loop : Together()) count *= *AsInt(loop->extent);
    return count;
  }

  Stmt Take(const VarMap& at, std::vector<Expr> thread, size_t axis, const Taking& taking) {
    const Expr first = Simplify(thread[axis] * taking.step);
    thread[axis] = first;
    std::vector<Stmt> taken;
    const int64_t end = taking.step > 1 ? taking.step : taking.parts;
    for (int64_t behind = taking.apart; behind < end; behind += taking.apart) {
      std::vector<Expr> other = thread;
      other[axis] = Simplify(first + behind);
      Stmt update = Update(parts_, SharedAt(at, thread), LoadAll(parts_, SharedAt(at, other)));
      const int64_t last = (taking.threads - 1) * taking.step + behind;
      if (last >= taking.parts)
        update = If::Make(Lt(other[axis], IndexConst(taking.parts)), update);
      taken.push_back(std::move(update));
    }
    return Seq::Make(std::move(taken));
  }

  // Who stores, in terms of the loops over threads; null: anyone.
  Expected<Expr> Predicate() const {
    const std::string text = block_.attrs.Get<std::string>(kStorePredicateAttr, "");
    if (text.empty()) return Expr(nullptr);
    const std::vector<Var> axes = AxisVariables();
    TN_ASSIGN_OR_RETURN(const Expr parsed, ParseStorePredicate(text, axes));
    VarMap values;
    for (const Var& axis : axes) values[axis.get()] = IndexConst(0);
    for (const For* loop : r_.threads) {
      values[axes[static_cast<size_t>(AxisRank(loop->thread))].get()] = loop->var - loop->min;
    }
    return Substitute(parsed, values);
  }

  // Outside of all loops over the axes, which leaves it to the first thread, or, of a thread's own
  // memory, to each.
  Stmt Store(VarMap at, const Expr& predicate) {
    const auto& stores = r_.combiner.stores();
    const bool chosen = predicate && HolderOf(stores[0]->buffer->scope) != Holder::kThread;
    auto store = [&] {
      std::vector<Expr> part(r_.threads.size(), IndexConst(0));
      const std::vector<Expr> values = LoadAll(parts_, SharedAt(at, part));
      std::vector<Buffer> results;
      std::vector<Expr> indices;
      for (const auto& s : stores) results.push_back(s->buffer);
      for (const Expr& i : stores[0]->indices)
        indices.push_back(Simplify(Substitute(Substitute(i, bindings_), at)));
      Stmt out = StoreAll(results, indices, values);
      if (!StartsWithIdentity()) out = Update(results, indices, values);
      if (block_.init && !StartsWithIdentity())
        out = Seq::Make({Substitute(Substitute(block_.init, bindings_), at), out});
      for (int64_t i = 1; i < left_; ++i) {
        part[0] = IndexConst(i);
        out = Seq::Make({out, Update(results, indices, LoadAll(parts_, SharedAt(at, part)))});
      }
      std::vector<Expr> conditions;
      if (r_.of_element) conditions.push_back(Simplify(Substitute(r_.of_element, at)));
      if (chosen) conditions.push_back(Simplify(Substitute(predicate, at)));
      const Expr condition = Conjunction(conditions);
      return condition ? If::Make(condition, out) : out;
    };
    return chosen ? Nest(r_.threads, &at, store) : store();
  }

  bool StartsWithIdentity() const {
    if (!block_.init) return false;
    const std::vector<Ref<const tenon::Store>> starts = StoresOf(block_.init);
    const std::vector<Expr>& identity = r_.combiner.identity();
    if (starts.size() != identity.size()) return false;
    for (size_t k = 0; k < starts.size(); ++k) {
      if (!StructuralEqual(Simplify(starts[k]->value), Simplify(identity[k]))) return false;
    }
    return true;
  }

  const Block& block_;
  ThreadReduction r_;
  NameSupply& names_;
  LoopList around_;           // over threads, besides those of the reduction
  const For* top_ = nullptr;  // the outermost loop over threads, or of the reduction
  VarMap bindings_;           // of the block's variables
  VarMap once_;               // of loops of one iteration inside the reduction
  bool direct_ = false;       // a thread has one iteration of one element
  bool together_ = false;     // its elements, of the spatial loops, are combined side by side
  int64_t left_ = 1;          // parts of an element that each thread takes when it stores
  std::vector<Buffer> part_, parts_;
};

Func Combined(const Func& func, const PassContext& context) {
  Func out = func;
  NameSupply names(*func);
  for (;;) {
    std::vector<Stmt> path;
    const std::optional<Found> found = Find(out->body, &path);
    if (!found) return out;
    Expected<ThreadReduction> reduction = ThreadReductionOf(*found->block, found->path);
    Expected<Stmt> body = reduction
                              ? Combining(*found, std::move(*reduction), &names).Run(out->body)
                              : Expected<Stmt>(reduction.errors());
    if (!body) {
      context.Error(*func, "block " + found->block->name + ": " + body.errors()[0].message);
      return func;
    }
    out = WithBody(out, *body);
  }
}

}  // namespace

Module CombineThreads(const Module& module, const PassContext& context) {
  return MapFuncs(module,
                  [&](const Func& func) { return func->body ? Combined(func, context) : func; });
}

}  // namespace tenon
