// prefetch: what a block will read some iterations later is asked for now; spread_prefetch: little
// by little, in the turns of a loop inside.

#include <algorithm>
#include <limits>

#include "arith/analyzer.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "schedule/analysis/conflicts.h"
#include "schedule/analysis/nest.h"
#include "schedule/primitive/primitives.h"

namespace tenon::primitive {

namespace {

constexpr int64_t kLineBytes = 64;  // asking for one element brings its cache line

// A hint for every `steps[d]` elements along each dimension d: these are neighbours in memory,
// along `axis` first. One along two dimensions where a layout has groups of a few elements of one
// inside blocks of the other, as factors of dot products have.
struct Lines {
  size_t axis = 0;
  std::vector<int64_t> steps;
};

Expr PlaceInMemory(const Buffer& buffer, const std::vector<Expr>& at, Analyzer* analyzer) {
  const std::vector<Expr> storage = ApplyLayout(buffer->layout, at);
  const std::vector<Expr> extents = StorageExtents(buffer->shape, buffer->layout);
  Expr out = IndexConst(0);
  for (size_t d = 0; d < storage.size(); ++d) out = out * extents[d] + storage[d];
  return analyzer->Simplify(out);
}

// Whether element step * n + r is r times `apart` behind element step * n along the dimension, for
// all r < step, where the other dimensions are at the beginning of their steps.
bool AreNeighbours(const Buffer& buffer, const std::vector<int64_t>& steps, size_t axis,
                   int64_t step, int64_t apart) {
  Analyzer analyzer;
  std::vector<Expr> first, other;
  const Var r = VarNode::Make("r");
  analyzer.Bind(r, IndexConst(0), IndexConst(step));
  for (size_t d = 0; d < buffer->shape.size(); ++d) {
    const Var v = VarNode::Make("v" + std::to_string(d));
    const Expr& extent = buffer->shape[d];
    const int64_t own = d == axis ? step : steps[d];
    analyzer.Bind(v, IndexConst(0),
                  own != 1 ? analyzer.Simplify(CeilDiv(extent, IndexConst(own))) : extent);
    first.push_back(own != 1 ? v * own : Expr(v));
    other.push_back(d == axis ? v * own + r : first.back());
  }
  return IsZero(analyzer.Simplify(PlaceInMemory(buffer, other, &analyzer) -
                                  PlaceInMemory(buffer, first, &analyzer) - r * apart));
}

// The longest step along a dimension that has none yet; false where there is none.
bool TakeStep(const Buffer& buffer, int64_t most, int64_t* apart, Lines* lines) {
  for (int64_t step = most / *apart; step > 1; step /= 2) {
    for (size_t d = buffer->shape.size(); d-- > 0;) {
      if (lines->steps[d] != 1 || !AreNeighbours(buffer, lines->steps, d, step, *apart)) continue;
      if (*apart == 1) lines->axis = d;
      lines->steps[d] = step;
      *apart *= step;
      return true;
    }
  }
  return false;
}

Lines LinesOf(const Buffer& buffer) {
  const size_t last = buffer->shape.size() - 1;
  const int64_t most = std::max<int64_t>(1, kLineBytes / buffer->dtype.Bytes());
  Lines lines = {last, std::vector<int64_t>(buffer->shape.size(), 1)};
  if (!buffer->layout) {
    lines.steps[last] = most;
    return lines;
  }
  for (int64_t apart = 1; TakeStep(buffer, most, &apart, &lines);) {
  }
  return lines;
}

// A hint for a line: its variables are the dimensions of the buffer, of each every step-th.
Block HintBlock(const std::string& name, const Buffer& buffer, const Lines& lines,
                PrefetchFor purpose, Body* body) {
  Block out;
  out.name = name;
  std::vector<Expr> at;
  for (size_t d = 0; d < buffer->shape.size(); ++d) {
    Var v = VarNode::Make(body->NewVarName(name + ".v" + std::to_string(d)));
    const int64_t step = lines.steps[d];
    Expr count =
        step != 1 ? Simplify(CeilDiv(buffer->shape[d], IndexConst(step))) : buffer->shape[d];
    at.push_back(step != 1 ? v * step : Expr(v));
    out.iters.push_back(
        IterVarNode::Make(v, IterKind::kSpatial, IndexConst(0), count, IndexConst(0)));
  }
  out.reads = {PointRegion(buffer, at)};
  out.body = Evaluate::Make(Call::Make(
      Intrinsic::kPrefetch,
      {Load::Make(buffer, at), MakeIntConst(DType::Int(32), static_cast<int64_t>(purpose))},
      DType::Int(32)));
  return out;
}

// What the block reads of the buffer in one iteration of the loop.
Box BoxIn(const Body& body, const Place& block, const Buffer& buffer, const Place& loop,
          Analyzer* analyzer) {
  Box out;
  std::vector<const For*> inner = block.LoopsInside(loop.stmt.get());
  for (const For* l : inner) Learn(*l, analyzer);
  for (const Access& a : body.AccessesUnder(block.stmt.get())) {
    if (a.write || a.region->buffer != buffer) continue;
    Box box = TouchedBox(a.region, *block.block(), DomainOf(inner, analyzer), analyzer);
    out = out.empty() ? box : Union(out, box, analyzer);
  }
  return out;
}

// What both primitives find: the block, the loop whose later iterations count, and what one of them
// reads, in lines.
struct HintTarget {
  const Place* block;
  const Place* loop;
  Buffer buffer;
  Lines lines;
  Box box;
};

Expected<HintTarget> FindTarget(const Body& body, const std::string& name,
                                const std::string& buffer_name, const std::string& loop_name,
                                int64_t distance, Analyzer* analyzer) {
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedBlock(name));
  TN_ASSIGN_OR_RETURN(Buffer buffer, body.NeedBuffer(buffer_name));
  TN_ASSIGN_OR_RETURN(const Place* loop, body.NeedLoop(loop_name));
  if (distance < 1) {
    return Because("expected a distance of at least one iteration, got " +
                   std::to_string(distance));
  }
  if (!place->IsUnder(loop->stmt.get()) || place->inner) {
    return OfBlock(name, "it is not under loop " + loop_name);
  }
  if (loop->loop()->for_kind != ForKind::kSerial) {
    return OfBlock(name, "loop " + loop_name + " is " + Name(loop->loop()->for_kind) +
                             ", so that its iterations do not follow each other");
  }
  if (!body.Writers(buffer).empty()) {
    return OfBlock(name, "block " + body.Writers(buffer)[0]->block()->name + " writes " +
                             buffer_name + ", which may not be there yet");
  }
  Learn(loop->path, analyzer);
  Learn(*loop->loop(), analyzer);
  Box box = BoxIn(body, *place, buffer, *loop, analyzer);
  if (box.empty()) return OfBlock(name, "it does not read " + buffer_name);

  const Lines lines = LinesOf(buffer);
  const Var& var = loop->loop()->var;
  std::unordered_map<const VarNode*, Expr> ahead{{var.get(), var + distance}};
  for (size_t d = 0; d < box.size(); ++d) {
    for (Expr* end : {&box[d].min, &box[d].max}) {
      if (!*end) continue;
      *end = Substitute(*end, ahead);
      if (lines.steps[d] != 1) *end = *end / lines.steps[d];
      *end = analyzer->Simplify(*end);
    }
  }
  return HintTarget{place, loop, buffer, lines, box};
}

// The number of the turn of the last of the loops, counted since the first began, and how many
// there are.
struct Turns {
  Expr number = IndexConst(0);
  int64_t count = 1;
};

Expected<Turns> TurnsOf(const std::vector<const For*>& loops, const std::string& block,
                        Analyzer* analyzer) {
  Turns out;
  for (const For* l : loops) {
    const std::optional<int64_t> extent = AsInt(analyzer->Simplify(l->extent));
    if (!extent) return OfBlock(block, "loop " + l->var->name + " has no fixed number of turns");
    if (l->for_kind != ForKind::kSerial) {
      return OfBlock(block, "loop " + l->var->name + " is " + Name(l->for_kind) +
                                ", so that its iterations do not follow each other");
    }
    out.number = out.number * *extent + (l->var - l->min);
    out.count *= *extent;
  }
  return out;
}

// A part of the place of a line along a dimension, place / unit % count: as one of the numbers that
// a layout makes of it, its lines are `stride` elements apart.
struct LineDigit {
  size_t dim;
  int64_t unit, count, stride;
};

// The lines of a box, numbered in the order of memory, as far as the layout gives one.
struct Numbered {
  std::vector<Expr> first;
  std::vector<LineDigit> digits;  // from the outermost
  int64_t count = 1;

  // Where a line is, in each dimension.
  std::vector<Expr> At(Expr number) const {
    std::vector<Expr> out = first;
    for (size_t i = digits.size(); i-- > 0;) {
      const LineDigit& d = digits[i];
      out[d.dim] = out[d.dim] + (i == 0 ? number : number % d.count) * d.unit;
      number = number / d.count;
    }
    return out;
  }
};

// The digits of `length` lines along a dimension, from the innermost. One where the layout does not
// say how far apart they are: then those along the axis follow each other.
std::vector<LineDigit> DigitsOf(const HintTarget& t, size_t dim, int64_t length) {
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
  std::vector<LineDigit> whole = {{dim, 1, length, dim == t.lines.axis ? 0 : kFar}};
  Analyzer analyzer;
  std::vector<Expr> at(t.box.size(), IndexConst(0));
  const auto place = [&](int64_t line) -> std::optional<int64_t> {
    at[dim] = IndexConst(line * t.lines.steps[dim]);
    return AsInt(PlaceInMemory(t.buffer, at, &analyzer));
  };
  std::vector<LineDigit> out;
  for (int64_t unit = 1; unit < length;) {
    const std::optional<int64_t> stride = place(unit);
    if (!stride) return whole;
    int64_t count = 2;
    while (count * unit < length && place(count * unit) == count * *stride) ++count;
    if (length / unit % count != 0) return whole;
    out.push_back({dim, unit, count, *stride});
    unit *= count;
  }
  return out;
}

Expected<Numbered> NumberLines(const HintTarget& t, const std::string& block, Analyzer* analyzer) {
  Numbered out;
  for (size_t d = 0; d < t.box.size(); ++d) {
    const ExprInterval range = RelaxToConstantLength(t.box[d], analyzer);
    const std::optional<int64_t> length =
        range.min && range.max ? AsInt(Length(range, analyzer)) : std::nullopt;
    if (!length || *length < 1) {
      return OfBlock(block, "how much it reads of " + t.buffer->name + " in a turn of loop " +
                                t.loop->loop()->var->name + " is no fixed number");
    }
    out.first.push_back(range.min);
    out.count *= *length;
    for (const LineDigit& digit : DigitsOf(t, d, *length)) out.digits.push_back(digit);
  }
  std::stable_sort(out.digits.begin(), out.digits.end(),
                   [](const LineDigit& a, const LineDigit& b) { return a.stride > b.stride; });
  return out;
}

// The block with these bindings, where they are inside its domain.
void BindWithin(const std::vector<Expr>& bindings, Block* block, Analyzer* analyzer) {
  for (size_t d = 0; d < bindings.size(); ++d) {
    IterVar& v = block->iters[d];
    const Expr binding = analyzer->Simplify(bindings[d]);
    block->where = AndAlso(block->where, BoundsGuard(binding, v->min, v->extent, analyzer));
    v = IterVarNode::Make(v->var, v->iter_kind, v->min, v->extent, binding);
  }
}

}  // namespace

Result Prefetch(State& s, const std::string& name, const std::string& buffer_name,
                const std::string& loop_name, const int64_t& distance) {
  Body body(s.func);
  Analyzer analyzer;
  Learn(*s.func, &analyzer);
  TN_ASSIGN_OR_RETURN(const HintTarget t,
                      FindTarget(body, name, buffer_name, loop_name, distance, &analyzer));
  std::string made = body.NewBlockName(buffer_name + ".prefetch");
  Stmt nest = MakeNest(HintBlock(made, t.buffer, t.lines, PrefetchFor::kRead, &body), t.box,
                       Widen::kYes, &body, &analyzer);
  const Stmt& inside = t.loop->loop()->body;
  s.SetBody(Edit(body.root(), {{inside.get(), Before(nest, inside)}}));
  return Names{made};
}

Result SpreadPrefetch(State& s, const std::string& name, const std::string& buffer_name,
                      const std::string& loop_name, const int64_t& distance,
                      const std::string& over_name) {
  Body body(s.func);
  Analyzer analyzer;
  Learn(*s.func, &analyzer);
  TN_ASSIGN_OR_RETURN(const HintTarget t,
                      FindTarget(body, name, buffer_name, loop_name, distance, &analyzer));
  TN_ASSIGN_OR_RETURN(const Place* over, body.NeedLoop(over_name));
  std::vector<const For*> loops = t.block->LoopsInside(t.loop->stmt.get());
  const auto last = std::find(loops.begin(), loops.end(), over->loop());
  if (last == loops.end()) {
    return OfBlock(name, "loop " + over_name + " is not between it and loop " + loop_name);
  }
  loops.erase(last + 1, loops.end());
  for (const For* l : loops) Learn(*l, &analyzer);
  TN_ASSIGN_OR_RETURN(const Turns turns, TurnsOf(loops, name, &analyzer));
  TN_ASSIGN_OR_RETURN(const Numbered lines, NumberLines(t, name, &analyzer));

  // It is read only after the rest of this iteration of `loop`.
  Block hint = HintBlock(body.NewBlockName(buffer_name + ".prefetch"), t.buffer, t.lines,
                         PrefetchFor::kLaterRead, &body);
  const int64_t each = (lines.count - 1) / turns.count + 1;
  const Var own = VarNode::Make(body.NewVarName(hint.name + ".ax"));
  Expr number = turns.number;
  if (each > 1) {
    analyzer.Bind(own, IndexConst(0), IndexConst(each));
    number = number * each + own;
  }
  // More turns than are needed begin anew, which costs less than to ask whether there are any.
  if (turns.count * each > lines.count) number = number % lines.count;
  number = analyzer.Simplify(number);
  const For& loop = *t.loop->loop();
  const Expr follows = analyzer.Simplify(Lt(loop.var + distance, loop.min + loop.extent));
  if (!analyzer.CanProve(follows)) {
    hint.where = follows;
    analyzer.Assume(follows);
  }
  BindWithin(lines.At(number), &hint, &analyzer);
  const std::string made = hint.name;
  Stmt nest = Block::Make(std::move(hint));
  if (each > 1) {
    nest = For::Make(own, IndexConst(0), IndexConst(each), ForKind::kSerial, nest);
  }
  const Stmt& inside = over->loop()->body;
  s.SetBody(Edit(body.root(), {{inside.get(), Before(nest, inside)}}));
  return Names{made};
}

}  // namespace tenon::primitive
