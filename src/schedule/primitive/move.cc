#include "schedule/primitive/move.h"

#include <algorithm>

#include "arith/filled_box.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "schedule/analysis/nest.h"

namespace tenon::primitive {

Target Target::Under(const Place& loop) {
  std::vector<Stmt> path = loop.path;
  path.push_back(loop.stmt);
  return {&loop, std::move(path)};
}

Target Target::Outside(const Place& block) {
  auto outermost =
      std::find_if(block.path.begin(), block.path.end(), [](const Stmt& s) { return IsA<For>(s); });
  return {nullptr, std::vector<Stmt>(block.path.begin(), outermost)};
}

const Node* MeetingPoint(const Place& block, const Target& target) {
  const Node* meeting = nullptr;
  for (size_t i = 0; i < std::min(target.path.size(), block.path.size()); ++i) {
    if (target.path[i] != block.path[i]) break;
    meeting = target.path[i].get();
  }
  return meeting;
}

std::vector<Buffer> WrittenBy(const Block& block) {
  std::vector<Buffer> out;
  for (const Region& w : block.writes) {
    if (std::find(out.begin(), out.end(), w->buffer) == out.end()) out.push_back(w->buffer);
  }
  return out;
}

bool Reads(const Block& block, const Buffer& buffer) {
  return std::any_of(block.reads.begin(), block.reads.end(),
                     [&](const Region& r) { return r->buffer == buffer; });
}
bool Writes(const Block& block, const Buffer& buffer) {
  return std::any_of(block.writes.begin(), block.writes.end(),
                     [&](const Region& r) { return r->buffer == buffer; });
}

std::optional<Diagnostic> NotClosed(const Place& place) {
  const Block& block = *place.block();
  std::unordered_set<const VarNode*> around;
  for (const Stmt& s : place.path) {
    if (const auto* loop = As<For>(s)) around.insert(loop->var.get());
    if (const auto* let = As<Let>(s)) around.insert(let->var.get());
  }
  bool open = UsesAnyVar(block.body, around) || (block.init && UsesAnyVar(block.init, around));
  for (const IterVar& v : block.iters) {
    open |= UsesAnyVar(v->min, around) || UsesAnyVar(v->extent, around);
  }
  if (!open) return std::nullopt;
  return OfBlock(block.name, "it uses variables of the loops around it, not through its own");
}

namespace {

// What is around the block only, besides loops.
std::optional<Diagnostic> NotFree(const Place& place, const std::vector<Stmt>& target_path) {
  const Block& block = *place.block();
  for (const Stmt& s : place.path) {
    bool shared = std::find(target_path.begin(), target_path.end(), s) != target_path.end();
    if (shared || IsA<For>(s) || IsA<Seq>(s)) continue;
    const auto* alloc = As<Alloc>(s);
    if (alloc == nullptr) return OfBlock(block.name, "it is inside a condition or a binding");
    if (Reads(block, alloc->buffer) || Writes(block, alloc->buffer)) {
      return OfBlock(block.name, "buffer " + alloc->buffer->name +
                                     ", which it uses, is allocated inside a loop around it");
    }
  }
  return std::nullopt;
}

// In a loop that does not stay, the block's ordered iterations may write an element again, after
// others in the loop have read it: behind the loop, only the last value is left.
std::optional<Diagnostic> Overwrites(const Body& body, const Place& place,
                                     const std::vector<Stmt>& target_path) {
  for (const For* loop : LoopsOfKind(*place.block(), IterKind::kOrdered, place.Loops())) {
    const bool stays = std::any_of(target_path.begin(), target_path.end(),
                                   [&](const Stmt& s) { return s.get() == loop; });
    if (stays) continue;
    for (const Buffer& b : WrittenBy(*place.block())) {
      std::vector<Access> writes = body.AccessesUnder(place.stmt.get());
      std::erase_if(writes, [&](const Access& a) { return !a.write || a.region->buffer != b; });
      for (const Place* reader : body.Readers(b)) {
        if (reader == &place || !reader->IsUnder(loop)) continue;
        if (ElementFixesLoops(body, writes, {loop})) break;
        return OfBlock(place.block()->name, "block " + reader->block()->name + " reads " + b->name +
                                                " while loop " + loop->var->name +
                                                " goes on writing the same elements");
      }
    }
  }
  return std::nullopt;
}

Diagnostic NotAllOf(const Block& block, const std::string& iters) {
  return OfBlock(block.name,
                 "the loops around it are not known to run over all of " + iters + "'s domain");
}

// The block's loops that do not stay may leave out a part of its reduction (k in 0..i + 1 of a
// domain 0..n, or every third of them); the loops of its new place run over all of it.
std::optional<Diagnostic> RunsPartly(const Body& body, const Place& place,
                                     const std::vector<Stmt>& target_path) {
  const Block& block = *place.block();
  Analyzer analyzer;
  Learn(*body.func(), &analyzer);
  Learn(target_path, &analyzer);
  std::vector<const For*> moving = place.Loops();
  std::erase_if(moving, [&](const For* loop) {
    return std::any_of(target_path.begin(), target_path.end(),
                       [&](const Stmt& s) { return s.get() == loop; });
  });
  const IterRanges ranges = RangesOver(block, moving, &analyzer);
  for (const For* loop : moving) Learn(*loop, &analyzer);
  std::vector<Expr> bindings, ones;
  std::string names;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const IterVar& v = block.iters[i];
    if (v->iter_kind == IterKind::kSpatial) continue;
    const ExprInterval domain{v->min, analyzer.Simplify(v->min + v->extent - 1)};
    bool whole = Contains(ranges[i], domain, &analyzer);
    for (const For* loop : moving) {
      if (!UsesVar(v->binding, loop->var.get())) continue;
      for (const For* other : moving) {
        whole &= !UsesVar(loop->min, other->var.get()) && !UsesVar(loop->extent, other->var.get());
      }
    }
    if (!whole) return NotAllOf(block, v->var->name);
    bindings.push_back(v->binding);
    ones.push_back(IndexConst(1));
    names += (names.empty() ? "" : ", ") + v->var->name;
  }
  if (FilledBox({bindings, DomainOf(moving, &analyzer), {}}, ones, &analyzer)) return std::nullopt;
  return NotAllOf(block, names);
}

}  // namespace

std::optional<Diagnostic> NotMovable(const Body& body, const Place& place, const Target& target) {
  const Block& block = *place.block();
  if (place.inner) return OfBlock(block.name, "it is inside another block");
  if (block.opaque) return OfBlock(block.name, "the block is opaque");
  const std::vector<Stmt>& target_path = target.path;
  if (auto error = NotFree(place, target_path)) return error;
  if (auto error = NotClosed(place)) return error;
  if (!GuardsOnlyDomain(place, *body.func(), GuardsAround(place, target_path))) {
    return OfBlock(block.name, "its guard says more than its iteration variables' domains: " +
                                   ToString(NodeRef(block.where)));
  }
  for (const For* loop : place.Loops()) {
    bool stays = std::any_of(target_path.begin(), target_path.end(),
                             [&](const Stmt& s) { return s.get() == loop; });
    if (stays &&
        (BindsLoop(block, IterKind::kReduce, loop) || BindsLoop(block, IterKind::kOrdered, loop))) {
      return OfBlock(block.name, "loop " + loop->var->name +
                                     ", around both places, runs over its "
                                     "reduction");
    }
  }
  if (auto error = Overwrites(body, place, target_path)) return error;
  if (auto error = RunsPartly(body, place, target_path)) return error;
  bool starts = block.init || HasKind(block, IterKind::kOrdered);
  for (const Region& r : ReadsOf(block)) {
    if (!starts && Writes(block, r->buffer)) {
      return OfBlock(block.name, "it updates " + r->buffer->name + " in place");
    }
  }
  return std::nullopt;
}

}  // namespace tenon::primitive
