#include "ops/scheduling.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "arith/analyzer.h"
#include "dependence/body.h"
#include "graph/graph.h"
#include "ir/visit.h"
#include "ops/follow_lines.h"
#include "ops/reduce_schedule.h"
#include "ops/steps_schedule.h"

namespace tenon::ops {

const Block* FindBlock(const Func& f, const std::string& name) {
  const Block* found = nullptr;
  PreOrder(f->body, [&](const NodeRef& n) {
    if (const auto* b = As<Block>(n)) {
      if (b->name == name) found = b;
      return false;
    }
    return !IsA<ExprNode>(n);
  });
  return found;
}

Names Concat(std::initializer_list<Names> lists) {
  Names out;
  for (const Names& l : lists) out.insert(out.end(), l.begin(), l.end());
  out.erase(std::remove(out.begin(), out.end(), std::string()), out.end());
  return out;
}

BlockPart PartOf(const Parts& parts, const std::string& block) {
  auto it = parts.find(block);
  return it == parts.end() ? BlockPart{} : it->second;
}

Names BlocksOf(const Schedule& s, const Parts& parts, BlockRole role) {
  Names out;
  for (const std::string& b : s.GetBlocks()) {
    if (PartOf(parts, b).role == role) out.push_back(b);
  }
  return out;
}

std::string OnlyBlock(const Schedule& s, const Parts& parts, BlockRole role) {
  const Names blocks = BlocksOf(s, parts, role);
  return blocks.empty() ? "" : blocks[0];
}

std::string WrittenBuffer(const Schedule& s, const std::string& block) {
  const Block* b = FindBlock(s.func(), block);
  return b && !b->writes.empty() ? b->writes[0]->buffer->name : "";
}

Names ReadBuffers(const Schedule& s, const std::string& block) {
  Names out;
  const Block* b = FindBlock(s.func(), block);
  if (!b) return out;
  for (const Region& r : b->reads) {
    const bool written = std::any_of(b->writes.begin(), b->writes.end(),
                                     [&](const Region& w) { return w->buffer == r->buffer; });
    if (!written) out.push_back(r->buffer->name);
  }
  return out;
}

static bool NamesLoop(const Expr& e, const std::string& loop) {
  bool out = false;
  PreOrder(e, [&](const NodeRef& n) {
    const auto* v = As<VarNode>(n);
    out |= v && v->name == loop;
    return !out;
  });
  return out;
}

// Whether `loop` chooses where `range` of what the block reads begins.
static bool Chooses(const Block& block, const std::string& loop, const Range& range) {
  return std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& v) {
    return NamesLoop(v->binding, loop) && UsesVar(range->min, v->var.get());
  });
}

static bool GoesAlong(const Block& block, const std::string& loop, const Region& region) {
  return std::any_of(region->ranges.begin(), region->ranges.end(),
                     [&](const Range& range) { return Chooses(block, loop, range); });
}

std::string ReadAlong(const Schedule& s, const std::string& block, const std::string& a,
                      const std::string& b) {
  const Block* found = FindBlock(s.func(), block);
  if (!found) return "";
  Names out;
  for (const Region& r : found->reads) {
    if (GoesAlong(*found, a, r) && GoesAlong(*found, b, r)) out.push_back(r->buffer->name);
  }
  if (out.size() != 1) return "";
  const auto parts = std::count_if(found->reads.begin(), found->reads.end(),
                                   [&](const Region& r) { return r->buffer->name == out[0]; });
  return parts == 1 ? out[0] : "";
}

bool ReadsNeighbours(const Schedule& s, const std::string& block, const std::string& loop,
                     const Names& with) {
  const Block* found = FindBlock(s.func(), block);
  return found && std::any_of(found->reads.begin(), found->reads.end(), [&](const Region& r) {
           return !r->ranges.empty() && Chooses(*found, loop, r->ranges.back()) &&
                  std::any_of(with.begin(), with.end(),
                              [&](const std::string& l) { return GoesAlong(*found, l, r); });
         });
}

// Null: there is no such loop.
static Expr ExtentOf(const Func& func, const std::string& loop) {
  Expr extent;
  PreOrder(func->body, [&](const NodeRef& n) {
    const auto* l = As<For>(n);
    if (l && l->var->name == loop) extent = l->extent;
    return !extent && !IsA<ExprNode>(n);
  });
  return extent;
}

Names RunThroughMemory(const Schedule& s, const std::string& block, const Names& reduce) {
  const Block* found = FindBlock(s.func(), block);
  // The last of the loops that choose along the region's last dims, all but the outermost of them
  // along the whole of these.
  const auto run_of = [&](const Region& r, bool open) {
    size_t run = 0;
    const size_t rank = r->ranges.size(), most = std::min(reduce.size(), rank);
    while (run < most &&
           Chooses(*found, reduce[reduce.size() - 1 - run], r->ranges[rank - 1 - run])) {
      ++run;
      const Expr extent = ExtentOf(s.func(), reduce[reduce.size() - run]);
      if (!StructuralEqual(extent, r->buffer->shape[rank - run]) || (!open && !AsInt(extent)))
        break;
    }
    return run;
  };
  size_t longest = 1, shortest = reduce.size(), known = 1;
  for (const Region& r : found->reads) {
    const size_t run = run_of(r, true);
    longest = std::max(longest, run);
    known = std::max(known, run_of(r, false));
    if (std::any_of(reduce.begin(), reduce.end(),
                    [&](const std::string& l) { return GoesAlong(*found, l, r); }))
      shortest = std::min(shortest, run);
  }
  const size_t run = shortest == longest ? longest : known;
  return Names(reduce.end() - static_cast<long>(run), reduce.end());
}

std::vector<bool> AxesAlong(const Schedule& s, const std::string& block, const std::string& buffer,
                            const Names& loops) {
  const Block* found = FindBlock(s.func(), block);
  std::vector<bool> along;
  if (!found) return along;
  for (const Region& r : found->reads) {
    if (r->buffer->name != buffer) continue;
    if (!along.empty()) return {};
    for (const Range& range : r->ranges) {
      along.push_back(std::any_of(loops.begin(), loops.end(), [&](const std::string& loop) {
        return Chooses(*found, loop, range);
      }));
    }
  }
  return along;
}

std::string StateBuffer(const Schedule& s, const std::string& block) {
  const Block* b = FindBlock(s.func(), block);
  return b && !b->writes.empty() ? b->writes.back()->buffer->name : "";
}

int64_t WrittenRank(const Schedule& s, const std::string& block) {
  const Block* b = FindBlock(s.func(), block);
  return b && !b->writes.empty() ? static_cast<int64_t>(b->writes[0]->buffer->shape.size()) : 0;
}

DType WrittenType(const Schedule& s, const std::string& block) {
  const Block* b = FindBlock(s.func(), block);
  return b && !b->writes.empty() ? b->writes[0]->buffer->dtype : DType::Float(32);
}

InnerLoops LoopsInside(Schedule& s, const std::string& block, const std::string& loop) {
  InnerLoops in;
  Names all = s.GetLoops(block), reduce = s.GetReduceLoops(block);
  auto at = std::find(all.begin(), all.end(), loop);
  for (auto it = at == all.end() ? all.begin() : at + 1; it != all.end(); ++it) {
    bool reduces = std::find(reduce.begin(), reduce.end(), *it) != reduce.end();
    (reduces ? in.reduce : in.spatial).push_back(*it);
  }
  return in;
}

void ComputeInRegisters(Schedule& s, const std::string& block, const std::string& at,
                        const std::string& vectors, const MicroKernel& kernel, size_t lanes_axis,
                        const Names& unrolled_reduce,
                        const std::function<void(const Names& reduce)>& along_k) {
  s.SetScope(WrittenBuffer(s, block), Scope::kRegister);
  s.ComputeAt(block, at);
  InnerLoops in = LoopsInside(s, block, at);
  if (in.spatial.empty()) return;
  lanes_axis = std::min(lanes_axis, in.spatial.size() - 1);
  std::string vector_loop = in.spatial[lanes_axis];
  Names tile = in.spatial;
  tile.erase(tile.begin() + static_cast<long>(lanes_axis));
  std::string rows, lane = vector_loop;
  if (s.GetExtent(vector_loop) > kernel.lanes()) {
    Names parts = s.SplitBy(vector_loop, {vectors, std::to_string(kernel.lanes())});
    rows = parts[0];
    lane = parts[1];
  }
  std::string step;
  if (!kernel.IsPlain()) {
    if (!s.ok()) return;
    Names parts = s.Split(in.reduce.back(), {-1, kernel.depth()});
    in.reduce.back() = parts[0];
    step = parts[1];
  }
  s.Reorder(Concat({in.reduce, tile, {rows, lane, step}}));
  Names unroll = Concat({tile, {rows}});
  if (!in.reduce.empty()) {
    std::string init = s.DecomposeReduction(block, in.reduce[0]);
    InnerLoops start = LoopsInside(s, init, at);
    if (!start.spatial.empty()) {
      s.Vectorize(start.spatial.back());
      for (size_t i = 0; i + 1 < start.spatial.size(); ++i) s.Unroll(start.spatial[i]);
    }
    if (along_k) along_k(in.reduce);
  }
  if (kernel.IsPlain()) {
    s.Vectorize(lane);
  } else {
    s.Tensorize(lane, kernel.unit.row);
  }
  for (const std::string& l : unroll) s.Unroll(l);
  for (const std::string& l : unrolled_reduce) {
    if (s.HasLoop(l)) s.Unroll(l);
  }
}

// Where blocks of an axis are shorter than a vector, those of neighbours along the last axis are
// one behind the other in memory: vectors run over both. Empty: they do not, and nothing was done;
// else the loops outside, and that of the vector.
static std::optional<std::pair<Names, std::string>> VectorsOverBlocks(Schedule& s,
                                                                      const BlockPart& part,
                                                                      const Names& spatial,
                                                                      int64_t lanes) {
  const auto axis = static_cast<size_t>(std::max(part.vector_axis, 0));
  if (part.vector_block == 0 || part.vector_block >= lanes || axis + 1 >= spatial.size() ||
      s.GetExtent(spatial.back()) * part.vector_block < lanes) {
    return std::nullopt;
  }
  Names outer = spatial;
  const Names split = s.Split(spatial[axis], {-1, part.vector_block});
  outer[axis] = split[0];
  s.Reorder(Concat({outer, {split[1]}}));
  const Names run = s.Split(s.Fuse({outer.back(), split[1]}), {-1, lanes});
  outer.back() = run[0];
  return std::pair(outer, run[1]);
}

Expr WithoutClamps(const Expr& index) {
  return PostOrderRewrite(index, [](const NodeRef& n) -> NodeRef {
    if (const auto* choice = As<Select>(n)) return choice->on_true;
    const auto* e = As<Binary>(n);
    if (!e || (e->op != BinaryOp::kMin && e->op != BinaryOp::kMax)) return n;
    return IsA<IntConst>(e->lhs) ? e->rhs : IsA<IntConst>(e->rhs) ? e->lhs : n;
  });
}

// Whether neighbours along the loop are neighbours in all that the block reads and writes, or read
// the same.
static bool IsContiguousAlong(const Schedule& s, const std::string& block,
                              const std::string& loop) {
  const Block* found = FindBlock(s.func(), block);
  const VarMap bound = BindingsOf(*found);
  Var var;
  for (const IterVar& v : found->iters) {
    PreOrder(v->binding, [&](const NodeRef& n) {
      const auto* l = As<VarNode>(n);
      if (l && l->name == loop) var = Cast<VarNode>(n);
      return true;
    });
  }
  Analyzer analyzer;
  if (var) analyzer.Bind(var, IndexConst(0), ExtentOf(s.func(), loop));
  bool contiguous = var != nullptr;
  PreOrder(found->body, [&](const NodeRef& n) {
    const auto* load = As<Load>(n);
    const auto* store = As<tenon::Store>(n);
    if (!contiguous || (!load && !store)) return contiguous;
    const Buffer& buffer = load ? load->buffer : store->buffer;
    std::vector<Expr> indices;
    for (const Expr& i : load ? load->indices : store->indices)
      indices.push_back(WithoutClamps(Substitute(i, bound)));
    const Expr place = analyzer.Simplify(Linearize(indices, buffer->shape));
    const auto affine = DetectAffine(place, {var});
    const auto step =
        affine && !UsesVar(affine->base, var.get()) ? AsInt(affine->coefficients[0]) : std::nullopt;
    contiguous = !buffer->layout && buffer->strides.empty() && (step == 1 || (load && step == 0));
    return contiguous;
  });
  return contiguous;
}

// At how many places of its loops the block begins to read something else.
static int64_t CutsOf(const Schedule& s, const std::string& block) {
  const auto speaks_of_place = [](const Expr& condition) {
    bool found = false;
    PreOrder(condition, [&](const NodeRef& n) {
      const auto* e = As<Binary>(n);
      found |= e && e->lhs->dtype == DType::Index();
      return !found && !IsA<Load>(n);
    });
    return found;
  };
  int64_t cuts = 0;
  PreOrder(FindBlock(s.func(), block)->body, [&](const NodeRef& n) {
    const auto* choice = As<Select>(n);
    cuts += choice && speaks_of_place(choice->condition) ? 1 : 0;
    return !IsA<Load>(n);  // where indices are kept inside nothing else is read
  });
  return cuts;
}

// Takes the last loops as one where rows are shorter than `enough` elements and vectors along them
// alone would leave something over, and those along several loops do not, or less often. A loop is
// cut once where what it reads begins to be something else: that outweighs rows shorter than one
// vector. More cuts would not be made.
static void FuseContiguous(Schedule& s, const std::string& block, int64_t lanes, int64_t enough,
                           const Names& reduce, Names* spatial) {
  if (spatial->empty()) return;
  int64_t extent = s.GetExtent(spatial->back());
  const int64_t cuts = CutsOf(s, block);
  if (cuts > 1 || extent >= (cuts == 1 ? lanes : enough)) return;
  while (spatial->size() > 1 && extent >= 0 && extent % lanes != 0) {
    const Names run(spatial->end() - 2, spatial->end());
    const int64_t outer = s.GetExtent(run[0]);
    if (outer < 0) return;
    Schedule tried = s;
    const std::string fused = tried.Fuse(run);
    if (!tried.ok() || !IsContiguousAlong(tried, block, fused)) return;
    // Parts of the loop have to be known to be apart.
    Schedule probe = tried;
    const Names split = probe.Split(fused, {-1, lanes});
    if (!reduce.empty()) {
      probe.Reorder(Concat({{split[0]}, reduce, {split[1]}}));
      probe.DecomposeReduction(block, reduce[0]);
    }
    probe.Parallel(split[0]);
    if (!probe.ok()) return;
    s = std::move(tried);
    spatial->pop_back();
    spatial->back() = fused;
    extent *= outer;
  }
}

// Fewer loops than this are none to share out.
constexpr int64_t kFewStrips = 4;

// A reduction of columns adds up rows of this many elements at the most: what it has is in the
// nearest cache, and so are they.
static int64_t MostColumns(const Machine& machine, DType type) {
  constexpr int64_t kShare = 4;
  return machine.memory.front().capacity_bytes / kShare / type.Bytes();
}

// How many vectors of columns, of `outer.back()` next to each other, a long reduction goes on with
// from row to row: one alone waits for each of its additions, and reads a line of the cache here
// and the next one a row further.
static int64_t VectorsTogether(Schedule& s, const Machine& machine, int64_t most,
                               const Names& outer, const Names& reduce) {
  constexpr int64_t kLong = 16;
  const int64_t vectors = s.GetExtent(outer.back());
  if (vectors < 2 || TypicalTripsTogether(s, reduce) < kLong) return 1;
  const int64_t others = TypicalTripsTogether(s, outer) / vectors;
  const int64_t strips = std::max(machine.workers, kFewStrips);
  int64_t together = std::min(vectors, most);
  while (together > 1 && (vectors % together != 0 || others * (vectors / together) < strips)) {
    --together;
  }
  return together;
}

// Takes the rows of a long reduction of columns in parts where there is little else to share out,
// so that rows are read whole: partial results of a block of its own, whose name this returns, or
// "".
static std::string SplitRows(Schedule& s, const std::string& block, int64_t most,
                             const Names& spatial, const Names& reduce) {
  constexpr int64_t kParts = 8, kRowsOfPart = 16;
  if (s.GetExtent(reduce[0]) < kParts * kRowsOfPart ||
      TypicalTripsTogether(s, spatial) >= kFewStrips * most ||
      !IsContiguousAlong(s, block, spatial.back())) {
    return "";
  }
  Schedule tried = s;
  const std::string part = tried.Split(reduce[0], {kParts, -1})[0];
  const std::string partial = tried.RFactor(part, 0);
  // Loops of one turn are nobody's now: outside, where they stand between no others.
  Names order = spatial;
  order.pop_back();
  std::stable_partition(order.begin(), order.end(),
                        [&](const std::string& loop) { return tried.GetExtent(loop) == 1; });
  tried.Reorder(Concat({order, {part, spatial.back()}}));
  if (!tried.ok()) return "";
  s = std::move(tried);
  return partial;
}

std::string ScheduleBlock(Schedule& s, const Parts& parts, const Machine& machine,
                          const std::string& block) {
  Names spatial = s.GetSpatialLoops(block), reduce = s.GetReduceLoops(block);
  if (!s.GetOrderedLoops(block).empty()) return ScheduleSteps(s, machine, block);
  const BlockPart part = PartOf(parts, block);
  if (part.vector_block == 0 && ScheduleReduction(s, machine, block)) return "";
  if (spatial.empty()) return "";
  if (auto run = reduce.empty()
                     ? VectorsOverBlocks(s, part, spatial, machine.Lanes(DType::Float(32)))
                     : std::nullopt) {
    s.Vectorize(run->second);
    ParallelOuter(s, run->first);
    return "";
  }
  int64_t lanes = machine.Lanes(WrittenType(s, block));
  if (part.vector_block > 0) lanes = std::min(lanes, part.vector_block);
  size_t axis = part.vector_axis < 0 ? spatial.size() - 1 : static_cast<size_t>(part.vector_axis);
  if (part.vector_block == 0 && axis + 1 == spatial.size() && lanes > 1) {
    const int64_t most = MostColumns(machine, WrittenType(s, block));
    FuseContiguous(s, block, lanes, reduce.empty() ? 2 * lanes : most, reduce, &spatial);
    axis = spatial.size() - 1;
    if (!reduce.empty() && s.GetExtent(spatial.back()) >= lanes) {
      const std::string partial = SplitRows(s, block, most, spatial, reduce);
      if (!partial.empty()) {
        ScheduleBlock(s, parts, machine, partial);
        return ScheduleBlock(s, parts, machine, block);
      }
    }
  }
  std::string vector;
  Names together;
  Names outer = spatial;
  // A size that is not known counts as long: what is left of it at the end is masked.
  const int64_t along = axis < spatial.size() ? s.GetExtent(spatial[axis]) : 0;
  if ((along >= lanes || along < 0) && lanes > 1) {
    Names split = s.Split(spatial[axis], {-1, lanes});
    outer[axis] = split[0];
    vector = split[1];
    if (reduce.empty()) FollowLines(s, block, vector, &outer);
    if (!reduce.empty() && axis + 1 == spatial.size() && IsContiguousAlong(s, block, vector)) {
      const int64_t most = MostColumns(machine, WrittenType(s, block)) / lanes;
      const int64_t vectors = VectorsTogether(s, machine, most, outer, reduce);
      if (vectors > 1) {
        split = s.Split(outer.back(), {-1, vectors});
        outer.back() = split[0];
        together = {split[1]};
      }
    }
  }
  Names order = Concat({outer, reduce, together, {vector}});
  if (order.size() > 1) s.Reorder(order);
  if (!reduce.empty()) {
    std::string init = s.DecomposeReduction(block, reduce[0]);
    Names loops = s.GetSpatialLoops(init);
    if (!vector.empty() && !loops.empty()) s.Vectorize(loops.back());
  }
  if (!vector.empty()) s.Vectorize(vector);
  // What registers do not hold LLVM unrolls as it likes.
  if (!together.empty() && s.GetExtent(together[0]) <= machine.registers / 2) s.Unroll(together[0]);
  ParallelOuter(s, outer);
  return "";
}

// The block's loops over what it stores, in the order in which that lies in memory.
static Names StoredLoops(Schedule& s, const Parts& parts, const std::string& block) {
  Names loops = s.GetSpatialLoops(block);
  const std::vector<int> order = PartOf(parts, block).order;
  if (order.size() != loops.size()) return loops;
  Names out;
  for (int axis : order) out.push_back(loops[static_cast<size_t>(axis)]);
  return out;
}

// `fused`: loops that there are no axes for become one with others; else they stay a thread's.
static std::string ShareAmongThreads(Schedule& s, const Parts& parts, const std::string& block,
                                     bool fused) {
  constexpr int64_t kThreads = 64, kLong = 32;
  const Names spatial = StoredLoops(s, parts, block);
  const Names reduce = Concat({s.GetReduceLoops(block), s.GetOrderedLoops(block)});
  if (spatial != s.GetSpatialLoops(block)) s.Reorder(Concat({spatial, reduce}));
  Names around, alone;
  for (const std::string& loop : spatial) {
    (s.GetExtent(loop) == 1 ? alone : around).push_back(loop);
  }
  if (around.empty()) {  // one element: one thread of one block
    // A state that others read is a result.
    const std::string state = StateBuffer(s, block);
    if (!s.GetOrderedLoops(block).empty() && state != WrittenBuffer(s, block))
      s.SetScope(state, Scope::kLocal);
    if (alone.empty()) return "";
    s.Bind(alone[0], ThreadAxis::kThreadIdxX);
    return alone[0];
  }
  // Sizes that are not known count as long.
  const auto length = [&](const std::string& loop) {
    const int64_t extent = s.GetExtent(loop);
    return extent < 0 ? kLong : std::min(extent, kLong);
  };
  size_t chosen = around.size() - 1;
  for (size_t i = around.size(); i-- > 0;) {
    if (length(around[i]) > length(around[chosen])) chosen = i;
  }
  std::string along = around[chosen];
  // Several short ones at the end, one behind the other in memory, are as good as a long one.
  const bool known = std::all_of(around.begin(), around.end(),
                                 [&](const std::string& loop) { return s.GetExtent(loop) > 0; });
  Names kept;
  if (fused && known && chosen + 1 < around.size()) {
    if (spatial.size() + reduce.size() > 1) s.Reorder(Concat({around, alone, reduce}));
    while (around.size() > 1 && s.GetExtent(around.back()) < kThreads) {
      const std::string both = s.Fuse({around[around.size() - 2], around.back()});
      around.pop_back();
      around.back() = both;
    }
    along = around.back();
    around.pop_back();
  } else {
    around.erase(around.begin() + static_cast<long>(chosen));
    while (!fused && around.size() > 2) {
      kept.push_back(around[0]);
      around.erase(around.begin());
    }
    if (spatial.size() + reduce.size() > 1)
      s.Reorder(Concat({around, {along}, kept, alone, reduce}));
  }
  const int64_t extent = s.GetExtent(along);
  // Of none there are threads, in no blocks.
  const int64_t threads = extent < 0 ? kThreads : std::clamp<int64_t>(extent, 1, kThreads);
  const Names split = s.Split(along, {-1, threads});
  while (around.size() > 2) {
    const std::string both = s.Fuse({around[0], around[1]});
    around.erase(around.begin());
    around[0] = both;
  }
  constexpr ThreadAxis axes[] = {ThreadAxis::kBlockIdxY, ThreadAxis::kBlockIdxZ};
  for (size_t i = 0; i < around.size(); ++i) s.Bind(around[around.size() - 1 - i], axes[i]);
  s.Bind(split[0], ThreadAxis::kBlockIdxX);
  s.Bind(split[1], ThreadAxis::kThreadIdxX);
  return split[1];
}

// Of loops that run over open sizes as one it may not be known that their iterations are apart.
std::string ShareAmongThreads(Schedule& s, const Parts& parts, const std::string& block) {
  Schedule tried = s;
  std::string threads = ShareAmongThreads(tried, parts, block, true);
  if (!tried.ok()) return ShareAmongThreads(s, parts, block, false);
  s = std::move(tried);
  return threads;
}

bool ShareVectors(Schedule& s, const Parts& parts, const Machine& machine,
                  const std::string& block) {
  constexpr int64_t kThreads = 128, kEnough = 2048;  // threads of a multiprocessor
  const Names spatial = StoredLoops(s, parts, block);
  const BlockPart part = PartOf(parts, block);
  const bool ordered = part.order.size() == spatial.size();
  if (spatial.empty() || !s.GetReduceLoops(block).empty() || part.vector_block > 0 ||
      (!ordered && part.vector_axis != static_cast<int>(spatial.size()) - 1)) {
    return false;
  }
  int64_t elements = 1;
  for (const std::string& loop : spatial) {
    if (s.GetExtent(loop) < 1) return false;
    elements *= s.GetExtent(loop);
  }
  int64_t vector = machine.Lanes(WrittenType(s, block));
  while (s.GetExtent(spatial.back()) % vector != 0) vector /= 2;
  if (vector == 1 || elements < machine.workers * kEnough * vector) return false;
  Schedule tried = s;
  Names loops = spatial;
  if (ordered && loops.size() > 1) tried.Reorder(loops);
  const Names last = tried.Split(loops.back(), {-1, vector});
  loops.back() = last[0];
  tried.Vectorize(last[1]);
  const std::string whole = loops.size() > 1 ? tried.Fuse(loops) : loops[0];
  const Names all = tried.Split(whole, {-1, kThreads});
  tried.Bind(all[0], ThreadAxis::kBlockIdxX);
  tried.Bind(all[1], ThreadAxis::kThreadIdxX);
  if (!tried.ok()) return false;
  s = std::move(tried);
  return true;
}

int64_t TripsTogether(Schedule& s, const Names& loops) {
  int64_t all = 1;
  for (const std::string& loop : loops) {
    const int64_t extent = s.GetExtent(loop);
    if (extent < 0) return -1;
    all *= extent;
  }
  return all;
}

static std::string AsOne(Schedule& s, const Names& loops) {
  return loops.size() == 1 ? loops[0] : s.Fuse(loops);
}

// A reduction from so many elements on is a block's; it has so many threads.
constexpr int64_t kLeastOfThreads = 32, kMostThreads = 128, kResultsOfOne = 256;

static void BindReduction(Schedule& s, const Names& reduce, int64_t each) {
  const std::string all = AsOne(s, reduce);
  int64_t threads = kLeastOfThreads;
  while (threads < kMostThreads && threads * 2 <= each) threads *= 2;
  s.Bind(s.Split(all, {-1, threads})[1], ThreadAxis::kThreadIdxX);
}

bool ReduceByThreads(Schedule& s, const Machine& machine, const std::string& block) {
  const Names spatial = s.GetSpatialLoops(block), reduce = s.GetReduceLoops(block);
  if (spatial.empty() || reduce.empty()) return false;
  const int64_t results = TripsTogether(s, spatial), each = TripsTogether(s, reduce);
  if (results < 1 || each < kLeastOfThreads || results > machine.workers * kResultsOfOne)
    return false;
  Schedule tried = s;
  tried.Reorder(Concat({spatial, reduce}));
  tried.Bind(AsOne(tried, spatial), ThreadAxis::kBlockIdxX);
  BindReduction(tried, reduce, each);
  if (!tried.ok()) return false;
  s = std::move(tried);
  return true;
}

bool ReduceBeforeResult(Schedule& s, const Machine& machine) {
  const Names blocks = s.GetBlocks();
  if (blocks.size() != 2) return false;
  const std::string &sum = blocks[0], &result = blocks[1];
  const Names spatial = s.GetSpatialLoops(result), reduce = s.GetReduceLoops(sum);
  if (reduce.empty() || spatial.empty() || !s.GetReduceLoops(result).empty()) return false;
  if (FindBlock(s.func(), sum)->writes.size() != 1) return false;
  const Names read = ReadBuffers(s, result);
  const std::string sums = WrittenBuffer(s, sum);
  if (std::find(read.begin(), read.end(), sums) == read.end()) return false;
  const int64_t results = TripsTogether(s, spatial), each = TripsTogether(s, reduce);
  // A block for each result is for few of them; what one thread adds up is in its registers.
  const bool too_many = each >= kLeastOfThreads && results > machine.workers * kResultsOfOne;
  if (results < 1 || each < 1 || too_many || results != TripsTogether(s, s.GetSpatialLoops(sum))) {
    return false;
  }
  Schedule tried = s;
  const std::string all = AsOne(tried, spatial);
  std::string at = all;
  if (each >= kLeastOfThreads) {
    tried.Bind(all, ThreadAxis::kBlockIdxX);
  } else {
    const int64_t threads =
        results < machine.workers * kMostThreads ? kLeastOfThreads : kMostThreads;
    const Names parts = tried.Split(all, {-1, threads});
    tried.Bind(parts[0], ThreadAxis::kBlockIdxX);
    tried.Bind(parts[1], ThreadAxis::kThreadIdxX);
    at = parts[1];
  }
  tried.SetScope(sums, Scope::kLocal);
  tried.ComputeAt(sum, at);
  const InnerLoops in = LoopsInside(tried, sum, at);
  if (!tried.ok()) return false;
  if (each >= kLeastOfThreads) BindReduction(tried, in.reduce, each);
  if (!tried.ok()) return false;
  s = std::move(tried);
  return true;
}

void ScheduleBlocks(Schedule& s, const Parts& parts, const Machine& machine) {
  Names done;
  for (const std::string& block : s.GetBlocks()) {
    if (std::find(done.begin(), done.end(), block) != done.end()) continue;
    if (machine.warp > 0) {
      if (!ReduceByThreads(s, machine, block) && !ShareVectors(s, parts, machine, block))
        ShareAmongThreads(s, parts, block);
    } else {
      done.push_back(ScheduleBlock(s, parts, machine, block));
    }
  }
}

void ScheduleHalos(Schedule& s, const Parts& parts, const Machine& machine) {
  for (const std::string& b : BlocksOf(s, parts, BlockRole::kHalo)) {
    ScheduleBlock(s, parts, machine, b);
  }
}

struct TripsOfLoop {
  int64_t least = 1, typical = 1, most = 1;  // most: -1 where there is no end
};

// How often a loop runs at the least, the typical and the largest sizes of the function's dims.
static TripsOfLoop TripsOf(Schedule& s, const std::string& loop) {
  if (const int64_t extent = s.GetExtent(loop); extent >= 0) return {extent, extent, extent};
  const Func& f = s.func();
  TripsOfLoop trips;
  trips.most = -1;
  const Expr extent = ExtentOf(f, loop);
  if (!extent) return trips;
  VarMap least, typical, most;
  for (size_t i = 0; i < f->dims.size(); ++i) {
    const DimRange r = f->dim_range(i);
    const graph::Dim dim{f->dims[i], r.lo, r.hi < 0 ? graph::Dim::kNoMax : r.hi, r.step};
    least[f->dims[i].get()] = IndexConst(r.lo);
    typical[f->dims[i].get()] = IndexConst(dim.Typical());
    if (r.hi >= 0) most[f->dims[i].get()] = IndexConst(r.hi);
  }
  trips.least = AsInt(Simplify(Substitute(extent, least))).value_or(1);
  trips.typical = AsInt(Simplify(Substitute(extent, typical))).value_or(1);
  trips.most = AsInt(Simplify(Substitute(extent, most))).value_or(-1);
  return trips;
}

int64_t MostTrips(Schedule& s, const std::string& loop) { return TripsOf(s, loop).most; }

int64_t TypicalTripsTogether(Schedule& s, const Names& loops) {
  int64_t typical = 1;
  for (const std::string& loop : loops) typical *= TripsOf(s, loop).typical;
  return typical;
}

int64_t MostTripsTogether(Schedule& s, const Names& loops) {
  int64_t most = 1;
  for (const std::string& loop : loops) {
    const int64_t trips = MostTrips(s, loop);
    most = trips < 0 || most < 0 ? -1 : most * trips;
  }
  return most;
}

// Runs the loops in parallel, as one. Of many open sizes it may not be known that the fused loop's
// iterations are apart: then the last ones stay serial. Returns the parallel loop.
static std::string ParallelAsOne(Schedule& s, Names loops) {
  const bool open = std::any_of(loops.begin(), loops.end(),
                                [&](const std::string& l) { return s.GetExtent(l) < 0; });
  while (open && loops.size() > 1) {
    Schedule trial = s;
    trial.Parallel(trial.Fuse(loops));
    if (trial.ok()) break;
    loops.pop_back();
  }
  std::string fused = loops.size() == 1 ? loops[0] : s.Fuse(loops);
  s.Parallel(fused);
  return fused;
}

std::string ParallelOuter(Schedule& s, const Names& loops) {
  Names outer;
  int64_t certain = 1, typical = 1;  // parts at the least sizes of dims, and at the typical ones
  for (const std::string& l : loops) {
    if (certain >= kEnoughParts) break;
    // The last loop has the smallest parts: where others are mostly enough, it stays whole.
    if (&l == &loops.back() && !outer.empty() && typical >= kEnoughParts) break;
    outer.push_back(l);
    const TripsOfLoop trips = TripsOf(s, l);
    certain *= std::max<int64_t>(trips.least, 1);
    typical *= trips.typical;
  }
  if (outer.empty() || typical <= 1) return "";
  return ParallelAsOne(s, outer);
}

void ParallelFirst(Schedule& s, const Names& loops, int64_t count) {
  if (count > 0) ParallelAsOne(s, Names(loops.begin(), loops.begin() + count));
}

}  // namespace tenon::ops
