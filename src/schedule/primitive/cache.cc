// cache_read and cache_write: a copy of what a block reads or writes, made by a block of its own.
//
// Both make a block that copies one element per iteration, over spatial variables of its own, and
// put the copy where the other is used from then on. cache_read stands in front of the outermost
// loop that belongs to the reader alone (its anchor) and copies what the reader touches while the
// loops from there inwards run; compute_at later moves it closer. From
//
//   for i in 0..7, j in 0..10, k in 0..6 {
//     block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) {
//       reads A[vi, vk], B[vk, vj]; writes C[vi, vj]
//
// comes with cache_read("C", "A", "shared")
//
//   alloc A.shared: f32[7, 6] in shared
//   for A.shared.ax0 in 0..7, A.shared.ax1 in 0..6 {
//     block A.shared(A.shared.v0: spatial = A.shared.ax0, A.shared.v1: spatial = A.shared.ax1) {
//       reads A[A.shared.v0, A.shared.v1]; writes A.shared[A.shared.v0, A.shared.v1]
//       A.shared[A.shared.v0, A.shared.v1] = A[A.shared.v0, A.shared.v1]
//     }
//   }
//   for i in 0..7, j in 0..10, k in 0..6 {
//     block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) {
//       reads A.shared[vi, vk], B[vk, vj]; writes C[vi, vj]
//
// The copy must not read what nobody has written: where the reader's loops run beyond its domain,
// or under conditions, the copy gets guards, made of what the conditions say without the reader's
// own loops. cache_write is the mirror image: the block writes the cache, and a copy behind the
// outermost loop of its own hands the elements on.

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "ir/print.h"
#include "ir/visit.h"
#include "schedule/analysis/conflicts.h"
#include "schedule/analysis/nest.h"
#include "schedule/analysis/retarget.h"
#include "schedule/primitive/primitives.h"

namespace tenon::primitive {

namespace {

// The loops around the place from `anchor`, one of them (or the place itself), inwards.
std::vector<const For*> LoopsFrom(const Place& place, const Stmt& anchor) {
  std::vector<const For*> loops = place.LoopsInside(anchor.get());
  if (const auto* loop = As<For>(anchor)) loops.insert(loops.begin(), loop);
  return loops;
}

// The statements around `anchor`, which is around the place.
std::vector<Stmt> PathTo(const Place& place, const Stmt& anchor) {
  return {place.path.begin(), std::find(place.path.begin(), place.path.end(), anchor)};
}

// The part of a buffer that the accesses touch while the loops from `anchor` inwards run; whole
// dimensions where no bound is found.
Box BoxAt(const std::vector<Access>& accesses, const Stmt& anchor, Analyzer* analyzer) {
  const Buffer& buffer = accesses[0].region->buffer;
  Box out;
  for (const Access& a : accesses) {
    std::vector<const For*> loops = LoopsFrom(*a.place, anchor);
    for (const For* loop : loops) Learn(*loop, analyzer);
    Box box = TouchedBox(a.region, *a.place->block(), DomainOf(loops, analyzer), analyzer);
    out = out.empty() ? box : Union(out, box, analyzer);
  }
  for (size_t d = 0; d < out.size(); ++d) {
    Expr last = analyzer->Simplify(buffer->shape[d] - 1);
    ExprInterval& r = out[d];
    r.min = r.min ? analyzer->Simplify(Max(r.min, IndexConst(0))) : IndexConst(0);
    r.max = r.max ? analyzer->Simplify(Min(r.max, last)) : last;
  }
  return out;
}

// The smaller of two ends of a range; where that is not known, the one that `other` says.
Expr Smaller(const Expr& a, const Expr& b, bool other, bool* open, Analyzer* analyzer) {
  if (!a || analyzer->CanProve(Le(b, a))) return b;
  if (analyzer->CanProve(Le(a, b))) return a;
  *open = true;
  return other ? a : b;
}

// What the reader touches while the loops from its anchor inwards run, as far as they stay in its
// variables' domains. Where it is not known which of the two ends first, bit i of `choice` says for
// variable i; `open` gets those bits: what is touched is inside the boxes of all choices.
Box BoxInDomain(const Access& a, const Stmt& anchor, unsigned choice, unsigned* open,
                Analyzer* analyzer) {
  const Block& block = *a.place->block();
  const IterRanges ranges = RangesOver(block, LoopsFrom(*a.place, anchor), analyzer);
  IntervalMap domain;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const IterVar& v = block.iters[i];
    const unsigned bit = i < 4 ? 1U << i : 0;
    bool either = false;
    const Expr last = analyzer->Simplify(v->min + v->extent - 1);
    const Expr min = ranges[i].min ? analyzer->Simplify(-ranges[i].min) : nullptr;
    const bool loops = (choice & bit) != 0;
    const Expr low = Smaller(min, analyzer->Simplify(-v->min), loops, &either, analyzer);
    domain[v->var.get()] = {analyzer->Simplify(-low),
                            Smaller(ranges[i].max, last, loops, &either, analyzer)};
    if (either) *open |= bit;
  }
  Box out;
  for (const Range& r : a.region->ranges) {
    ExprInterval box = EvalInterval(r->min, domain, analyzer);
    box.max = EvalInterval(analyzer->Simplify(r->min + r->extent - 1), domain, analyzer).max;
    out.push_back(box);
  }
  return out;
}

// to[v0, v1, …] = from[v0, v1, …] over the whole shape.
Block CopyBlock(const std::string& name, const Buffer& from, const Buffer& to, Body* body) {
  Block copy;
  copy.name = name;
  std::vector<Expr> at;
  for (size_t d = 0; d < from->shape.size(); ++d) {
    Var v = VarNode::Make(body->NewVarName(name + ".v" + std::to_string(d)));
    at.push_back(v);
    copy.iters.push_back(
        IterVarNode::Make(v, IterKind::kSpatial, IndexConst(0), from->shape[d], IndexConst(0)));
  }
  copy.reads = {PointRegion(from, at)};
  copy.writes = {PointRegion(to, at)};
  copy.body = Store::Make(to, at, Load::Make(from, at));
  return copy;
}

Buffer CacheBuffer(const Buffer& of, const std::string& name, Scope scope) {
  return BufferNode::Make(name, of->dtype, of->shape, scope);
}

std::vector<Access> AccessesOf(const Body& body, const Place* place, const Buffer& buffer,
                               bool write) {
  std::vector<Access> out = body.AccessesUnder(place->stmt.get());
  std::erase_if(out,
                [&](const Access& a) { return a.region->buffer != buffer || a.write != write; });
  return out;
}

// A region of one element that the spatial variables alone choose.
bool IsSpatialPoint(const Access& a) {
  const Block& block = *a.place->block();
  for (const Range& r : a.region->ranges) {
    if (!IsOne(r->extent)) return false;
    for (const IterVar& v : block.iters) {
      if (v->iter_kind != IterKind::kSpatial && UsesVar(r->min, v->var.get())) return false;
    }
  }
  return true;
}

// What a block writes, and what it is to write instead.
struct Cached {
  Buffer buffer;
  Region write;
  Buffer cache = nullptr;
};

// A block over the spatial variables of `block` that copies the elements each writes from the
// caches.
Block WriteBack(const std::string& name, const Block& block, const std::vector<Cached>& results,
                Body* body) {
  Block copy;
  copy.name = name;
  for (const IterVar& v : block.iters) {
    if (v->iter_kind == IterKind::kSpatial) copy.iters.push_back(v);
  }
  std::vector<Stmt> stores;
  for (const Cached& r : results) {
    std::vector<Expr> at;
    for (const Range& range : r.write->ranges) at.push_back(range->min);
    copy.reads.push_back(PointRegion(r.cache, at));
    copy.writes.push_back(PointRegion(r.buffer, at));
    stores.push_back(Store::Make(r.buffer, at, Load::Make(r.cache, at)));
  }
  copy.body = stores.size() == 1 ? stores[0] : Seq::Make(std::move(stores));
  return WithFreshVars(copy, std::string(".") + Name(results[0].cache->scope), body);
}

// A block that is to read a copy: the statement that the copy comes before, and what it reads.
struct Reader {
  const Place* place;
  Stmt anchor;
  std::vector<Access> reads;
  std::vector<Stmt> Path() const { return PathTo(*place, anchor); }
  std::vector<Expr> Guards() const { return GuardsAround(*place, Path()); }
};

Expected<Reader> FindReader(const Body& body, const std::string& name, const Buffer& buffer) {
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedBlock(name));
  if (place->inner || place->block()->opaque) {
    return OfBlock(name, "it is opaque or inside another block");
  }
  std::vector<Access> reads = AccessesOf(body, place, buffer, false);
  if (reads.empty()) return OfBlock(name, "it does not read " + buffer->name);
  std::vector<const Place*> writers = body.Writers(buffer);
  if (std::find(writers.begin(), writers.end(), place) != writers.end()) {
    return OfBlock(name, "it writes " + buffer->name + " too");
  }
  Reader reader{place, AnchorOf(*place, writers), std::move(reads)};
  // The copy reads whatever the loops run over; of a buffer that is made here, there may be less.
  if (!writers.empty() && !GuardsOnlyDomain(*place, *body.func(), reader.Guards())) {
    return OfBlock(name, "its guard may leave out parts of " + buffer->name +
                             " that are not written: " + ToString(NodeRef(place->block()->where)));
  }
  return reader;
}

Box UnionOver(const std::vector<Reader>& readers,
              const std::function<Box(const Access&, const Stmt& anchor)>& box_of) {
  Analyzer analyzer;
  Box out;
  for (const Reader& r : readers) {
    for (const Access& a : r.reads) {
      Box own = box_of(a, r.anchor);
      out = out.empty() ? own : Union(out, own, &analyzer);
    }
  }
  return out;
}

bool IsAnEnd(const Expr& e, const Expr& a, const Expr& b) {
  return (a && StructuralEqual(e, a)) || (b && StructuralEqual(e, b));
}

// The guards that keep a nest of copies to what the readers touch in their domains: where their
// loops run beyond, nobody may have written what is there: first over their whole domains, then
// over what the loops outside leave of them. Fails where that depends on the readers' own loops.
Expected<std::vector<Expr>> DomainGuards(const Stmt& nest, const std::vector<Reader>& readers,
                                         Analyzer* analyzer) {
  std::unordered_set<const VarNode*> inner;
  for (const Reader& r : readers) {
    for (const For* loop : LoopsFrom(*r.place, r.anchor)) inner.insert(loop->var.get());
  }
  const Node* block = nest.get();
  while (const auto* loop = As<For>(block)) block = loop->body.get();
  std::vector<Expr> out;
  auto within = [&](const Expr& condition) {
    if (analyzer->CanProve(condition)) return true;
    const Expr simple = analyzer->Simplify(condition);
    const bool there = std::any_of(out.begin(), out.end(),
                                   [&](const Expr& c) { return StructuralEqual(c, simple); });
    if (!there) out.push_back(simple);
    return !UsesAnyVar(simple, inner);
  };
  const Box loops = UnionOver(
      readers, [&](const Access& a, const Stmt& anchor) { return BoxAt({a}, anchor, analyzer); });
  const Box whole = UnionOver(readers, [&](const Access& a, const Stmt&) {
    return DomainBox(a.region, *a.place->block(), analyzer);
  });
  auto fails = [&](const Box& box, bool all) {
    for (size_t d = 0; d < box.size(); ++d) {
      const Expr& at = As<Block>(block)->iters[d]->binding;
      const bool low = box[d].min && (all || !IsAnEnd(box[d].min, loops[d].min, whole[d].min));
      const bool high = box[d].max && (all || !IsAnEnd(box[d].max, loops[d].max, whole[d].max));
      if (low && !within(Ge(at, box[d].min))) return true;
      if (high && !within(Le(at, box[d].max))) return true;
    }
    return false;
  };
  bool failed = fails(whole, true);
  unsigned open = 0;
  for (unsigned choice = 0; choice <= open && !failed; ++choice) {
    if ((choice & ~open) != 0) continue;
    failed = fails(UnionOver(readers,
                             [&](const Access& a, const Stmt& anchor) {
                               return BoxInDomain(a, anchor, choice, &open, analyzer);
                             }),
                   false);
  }
  if (!failed) return out;
  const Place& reader = *readers[0].place;
  return OfBlock(reader.block()->name,
                 "its guard may leave out parts of " + readers[0].reads[0].region->buffer->name +
                     " that are not written: " + ToString(NodeRef(reader.block()->where)));
}

// In program order.
Expected<std::vector<Reader>> FindReaders(const Body& body, const Names& names,
                                          const Buffer& buffer) {
  std::vector<Reader> readers;
  for (const std::string& name : names) {
    TN_ASSIGN_OR_RETURN(Reader reader, FindReader(body, name, buffer));
    readers.push_back(std::move(reader));
  }
  if (readers.empty()) return Because("no block is named");
  std::sort(readers.begin(), readers.end(),
            [](const Reader& a, const Reader& b) { return a.place < b.place; });
  const Reader& first = readers[0];
  for (const Reader& other : readers) {
    if (other.Path() == first.Path()) continue;
    return OfBlock(other.place->block()->name,
                   "it does not stand beside block " + first.place->block()->name);
  }
  for (const Place* w : body.Writers(buffer)) {
    bool between = first.place < w && w < readers.back().place;
    if (!between) continue;
    return OfBlock(w->block()->name, "it writes " + buffer->name + " between the readers");
  }
  return readers;
}

bool ReadsWhatIsThere(const Func& func, const std::string& block) {
  const Body body(func);
  const Place* place = body.FindBlock(block);
  const std::vector<Access> accesses = body.AccessesUnder(place->stmt.get());
  return std::all_of(accesses.begin(), accesses.end(),
                     [&](const Access& a) { return a.write || IsWrittenBefore(body, a); });
}

}  // namespace

Result CacheRead(State& s, const Names& names, const std::string& buffer_name, const Scope& scope) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(Buffer buffer, body.NeedBuffer(buffer_name));
  if (auto error = PassedToCall(body, buffer)) return *error;
  if (auto error = UsedInNoBlock(body, buffer)) return *error;
  TN_ASSIGN_OR_RETURN(std::vector<Reader> readers, FindReaders(body, names, buffer));
  const Reader& first = readers[0];
  Analyzer analyzer;
  Learn(*s.func, &analyzer);
  Learn(readers.size() == 1 ? first.place->path : first.Path(), &analyzer);
  Box box;
  for (const Reader& r : readers) {
    Box own = BoxAt(r.reads, r.anchor, &analyzer);
    box = box.empty() ? own : Union(box, own, &analyzer);
  }

  std::string block_name = body.NewBlockName(buffer_name + "." + Name(scope));
  Buffer cache = CacheBuffer(buffer, body.NewBufferName(buffer_name + "." + Name(scope)), scope);
  Stmt nest =
      MakeNest(CopyBlock(block_name, buffer, cache, &body), box, Widen::kYes, &body, &analyzer);
  const bool guarded = std::any_of(readers.begin(), readers.end(),
                                   [](const Reader& r) { return r.place->block()->where; });
  if (guarded && !body.Writers(buffer).empty()) {
    TN_ASSIGN_OR_RETURN(std::vector<Expr> guards, DomainGuards(nest, readers, &analyzer));
    nest = Inherit(nest, guards, &analyzer);
  }
  if (readers.size() == 1) nest = Inherit(nest, first.Guards(), &analyzer);
  Replacements edits;
  for (const Reader& r : readers) {
    edits[r.place->stmt.get()] = SubstituteBuffers(r.place->stmt, {{buffer.get(), cache}});
  }
  Stmt anchor = Edit(first.anchor, edits);
  edits[first.anchor.get()] = Before(nest, anchor);
  State after = s;
  after.SetBody(AddAlloc(cache, Edit(body.root(), edits)));
  const bool exact = std::all_of(readers.begin(), readers.end(),
                                 [](const Reader& r) { return r.place->block()->exact; });
  if (!exact && !body.Writers(buffer).empty() && !ReadsWhatIsThere(after.func, block_name)) {
    return OfBlock(first.place->block()->name, "it may read less of " + buffer_name +
                                                   " than it declares, and the rest of it is not "
                                                   "known to be written");
  }
  s = after;
  return Names{block_name};
}

namespace {

// What the block writes of a buffer, one element for each value of its spatial variables.
Expected<Cached> ResultOf(const Body& body, const Place* place, const std::string& buffer_name) {
  const Block& block = *place->block();
  const std::string& name = block.name;
  TN_ASSIGN_OR_RETURN(Buffer buffer, body.NeedBuffer(buffer_name));
  if (auto error = PassedToCall(body, buffer)) return *error;
  if (auto error = UsedInNoBlock(body, buffer)) return *error;
  if (place->inner || block.opaque) return OfBlock(name, "it is opaque or inside another block");
  std::vector<Access> writes = AccessesOf(body, place, buffer, true);
  if (writes.empty()) return OfBlock(name, "it does not write " + buffer_name);
  for (const Place* w : body.Writers(buffer)) {
    if (w != place) {
      return OfBlock(name, "block " + w->block()->name + " writes " + buffer_name + " too");
    }
  }
  bool starts = block.init || HasKind(block, IterKind::kOrdered);
  if (!AccessesOf(body, place, buffer, false).empty() && !starts) {
    return OfBlock(name, "it updates " + buffer_name + " in place");
  }
  if (writes.size() != 1 || !IsSpatialPoint(writes[0])) {
    return OfBlock(name, "it does not write one element of " + buffer_name +
                             " per value of its spatial variables");
  }
  return Cached{buffer, writes[0].region};
}

}  // namespace

Result CacheWrite(State& s, const std::string& name, const Names& buffer_names,
                  const Scope& scope) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedBlock(name));
  const Block& block = *place->block();
  if (buffer_names.empty()) return Because("expected at least one buffer");
  std::vector<Cached> results;
  std::vector<const Place*> readers;
  for (const std::string& buffer_name : buffer_names) {
    TN_ASSIGN_OR_RETURN(Cached result, ResultOf(body, place, buffer_name));
    for (const Cached& other : results) {
      if (other.buffer == result.buffer)
        return Because("buffer " + buffer_name + " is named twice");
    }
    for (const Place* reader : body.Readers(result.buffer)) {
      const bool known = std::find(readers.begin(), readers.end(), reader) != readers.end();
      if (reader != place && !known) readers.push_back(reader);
    }
    results.push_back(std::move(result));
  }
  const std::string& first = buffer_names[0];
  Stmt anchor = AnchorOf(*place, readers);
  if (!GuardsOnlyDomain(*place, *s.func, GuardsAround(*place, PathTo(*place, anchor))) ||
      !block.exact) {
    return OfBlock(name, "it may write only a part of " + first);
  }
  std::vector<const For*> inner = LoopsFrom(*place, anchor);
  for (const For* loop : place->Loops()) {
    bool inside = std::find(inner.begin(), inner.end(), loop) != inner.end();
    if (!inside &&
        (BindsLoop(block, IterKind::kReduce, loop) || BindsLoop(block, IterKind::kOrdered, loop))) {
      return OfBlock(name, "loop " + loop->var->name +
                               ", around its consumers too, runs over its " + "reduction");
    }
  }
  Analyzer analyzer;
  Learn(*s.func, &analyzer);
  Learn(place->path, &analyzer);

  std::string block_name = body.NewBlockName(first + "." + Name(scope));
  BufferMap caches;
  for (Cached& r : results) {
    const std::string cache_name = body.NewBufferName(r.buffer->name + "." + Name(scope));
    r.cache = CacheBuffer(r.buffer, cache_name, scope);
    caches[r.buffer.get()] = r.cache;
  }
  Block copy = WriteBack(block_name, block, results, &body);
  Stmt nest = MakeNest(copy, RangesOver(copy, inner, &analyzer), Widen::kNo, &body, &analyzer);
  nest = Inherit(nest, GuardsAround(*place, PathTo(*place, anchor)), &analyzer);
  Stmt writer = SubstituteBuffers(place->stmt, caches);
  Stmt rest = Edit(anchor, {{place->stmt.get(), writer}});
  Stmt out = Edit(body.root(), {{anchor.get(), Before(rest, nest)}});
  for (size_t i = results.size(); i-- > 0;) out = AddAlloc(results[i].cache, out);
  s.SetBody(out);
  return Names{block_name};
}

}  // namespace tenon::primitive
