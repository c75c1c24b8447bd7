// cache_read and cache_write: a copy of what a block reads or writes, made by a block of its own.

#include <algorithm>
#include <unordered_set>

#include "ir/print.h"
#include "ir/visit.h"
#include "schedule/dependence.h"
#include "schedule/nest.h"
#include "schedule/retarget.h"
#include "schedule/state.h"

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

// What the accesses touch over their blocks' whole domains.
Box WholeBox(const std::vector<Access>& accesses, Analyzer* analyzer) {
  Box out;
  for (const Access& a : accesses) {
    Box box = DomainBox(a.region, *a.place->block(), analyzer);
    out = out.empty() ? box : Union(out, box, analyzer);
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

Buffer CacheBuffer(const Buffer& of, const std::string& name, const std::string& scope) {
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

// A block over the spatial variables of `block` that copies the element each writes from the cache.
Block WriteBack(const std::string& name, const Block& block, const Region& write,
                const Buffer& cache, Body* body) {
  Block copy;
  copy.name = name;
  std::vector<Expr> at;
  for (const Range& r : write->ranges) at.push_back(r->min);
  for (const IterVar& v : block.iters) {
    if (v->iter_kind == IterKind::kSpatial) copy.iters.push_back(v);
  }
  copy.reads = {PointRegion(cache, at)};
  copy.writes = {PointRegion(write->buffer, at)};
  copy.body = Store::Make(write->buffer, at, Load::Make(cache, at));
  return WithFreshVars(copy, "." + cache->scope, body);
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

// The guards that keep a nest of copies to what the readers touch over their domains: where their
// loops run beyond, nobody may have written what is there. Fails where that depends on those loops.
Expected<std::vector<Expr>> DomainGuards(const Stmt& nest, const std::vector<Reader>& readers,
                                         Analyzer* analyzer) {
  std::vector<Access> reads;
  std::unordered_set<const VarNode*> inner;
  for (const Reader& r : readers) {
    reads.insert(reads.end(), r.reads.begin(), r.reads.end());
    for (const For* loop : LoopsFrom(*r.place, r.anchor)) inner.insert(loop->var.get());
  }
  const Node* block = nest.get();
  while (const auto* loop = As<For>(block)) block = loop->body.get();
  const Box box = WholeBox(reads, analyzer);
  std::vector<Expr> out;
  auto within = [&](const Expr& condition) {
    if (analyzer->CanProve(condition)) return true;
    out.push_back(analyzer->Simplify(condition));
    return !UsesAnyVar(condition, inner);
  };
  for (size_t d = 0; d < box.size(); ++d) {
    const Expr& at = As<Block>(block)->iters[d]->binding;
    const bool known =
        (!box[d].min || within(Ge(at, box[d].min))) && (!box[d].max || within(Le(at, box[d].max)));
    if (known) continue;
    const Place& reader = *readers[0].place;
    return OfBlock(reader.block()->name,
                   "its guard may leave out parts of " + reads[0].region->buffer->name +
                       " that are not written: " + ToString(NodeRef(reader.block()->where)));
  }
  return out;
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

}  // namespace

Result CacheRead(State& s, const Names& names, const std::string& buffer_name,
                 const std::string& scope) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(Buffer buffer, body.NeedBuffer(buffer_name));
  if (auto error = NotAScope(scope)) return *error;
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

  std::string block_name = body.NewBlockName(buffer_name + "." + scope);
  Buffer cache = CacheBuffer(buffer, body.NewBufferName(buffer_name + "." + scope), scope);
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
  s.SetBody(AddAlloc(cache, Edit(body.root(), edits)));
  return Names{block_name};
}

Result CacheWrite(State& s, const std::string& name, const std::string& buffer_name,
                  const std::string& scope) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedBlock(name));
  TN_ASSIGN_OR_RETURN(Buffer buffer, body.NeedBuffer(buffer_name));
  const Block& block = *place->block();
  if (auto error = NotAScope(scope)) return *error;
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
  std::vector<const Place*> readers = body.Readers(buffer);
  std::erase(readers, place);
  Stmt anchor = AnchorOf(*place, readers);
  if (!GuardsOnlyDomain(*place, *s.func, GuardsAround(*place, PathTo(*place, anchor))) ||
      !block.exact) {
    return OfBlock(name, "it may write only a part of " + buffer_name);
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

  std::string block_name = body.NewBlockName(buffer_name + "." + scope);
  Buffer cache = CacheBuffer(buffer, body.NewBufferName(buffer_name + "." + scope), scope);
  Block copy = WriteBack(block_name, block, writes[0].region, cache, &body);
  Stmt nest = MakeNest(copy, RangesOver(copy, inner, &analyzer), Widen::kNo, &body, &analyzer);
  nest = Inherit(nest, GuardsAround(*place, PathTo(*place, anchor)), &analyzer);
  Stmt writer = SubstituteBuffers(place->stmt, {{buffer.get(), cache}});
  Stmt rest = Edit(anchor, {{place->stmt.get(), writer}});
  s.SetBody(AddAlloc(cache, Edit(body.root(), {{anchor.get(), Before(rest, nest)}})));
  return Names{block_name};
}

}  // namespace tenon::primitive
