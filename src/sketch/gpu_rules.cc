// The rules for GPUs. The loops that store a block's results become a grid: blocks of threads, in
// each of them threads, and pieces that a thread has for itself.
//
//   multi_level_tiling      blocks, virtual threads, threads, [reduction, pieces], with operands
//                           brought into shared memory step by step, by all threads of a block
//   cross_thread_reduction  a block of threads makes a result together
//   threads                 a thread for each result
#include <fmt/format.h>

#include <algorithm>

#include "ops/scheduling.h"
#include "sketch/rule.h"

namespace tenon::sketch {

namespace {

using ops::Concat;

constexpr int64_t kMostPieces = 64;  // that a thread has in registers

std::string Named(const std::string& block, const char* what) {
  return fmt::format("{}.{}", block, what);
}
std::string Named(const std::string& block, size_t axis, const char* what) {
  return fmt::format("{}.{}.{}", block, axis, what);
}

std::string FuseAll(Schedule* s, const Names& loops) {
  return loops.size() > 1 ? s->Fuse(loops) : loops[0];
}

int64_t MostThreads(const Draft& d) {
  return std::max<int64_t>(1, d.machine->target->gpu().max_threads_per_block);
}

/// The loops of a store, cut.
struct Grid {
  Names blocks, virtuals, threads, pieces;  // of each axis
  std::string together;                     // threads of a block, as a factor of a split
};

Grid CutGrid(Draft* d, const std::string& block, const Names& axes) {
  Schedule& s = d->schedule;
  Grid g;
  Expr threads, pieces;
  for (size_t a = 0; a < axes.size(); ++a) {
    const int64_t extent = s.GetExtent(axes[a]);
    if (extent <= 1) {
      g.blocks.push_back(axes[a]);
      continue;
    }
    const std::vector<int64_t> of_threads = Powers(extent, 64), of_pieces = TileSizes(extent, 8),
                               of_virtuals = Powers(extent, 4);
    const bool near = a + 2 >= axes.size();  // the last two have most of what is shared out
    const std::string t = Named(block, a, "threads"), p = Named(block, a, "pieces"),
                      u = Named(block, a, "virtual");
    d->Choose(t, of_threads, Nearest(of_threads, near ? 16 : 1));
    g.together += (g.together.empty() ? "" : "*") + Draft::Ref(t);
    d->Choose(u, of_virtuals, 1);
    d->Choose(p, of_pieces, Nearest(of_pieces, near ? 4 : 1));
    d->Require(Le(d->VarOf(t) * d->VarOf(u) * d->VarOf(p), IndexConst(2 * extent - 1)));
    threads = threads ? threads * d->VarOf(t) : d->VarOf(t);
    const Expr own = d->VarOf(u) * d->VarOf(p);
    pieces = pieces ? pieces * own : own;
    const Names loops = s.SplitBy(axes[a], {"-1", Draft::Ref(u), Draft::Ref(t), Draft::Ref(p)});
    g.blocks.push_back(loops[0]);
    g.virtuals.push_back(loops[1]);
    g.threads.push_back(loops[2]);
    g.pieces.push_back(loops[3]);
  }
  if (threads) {
    d->Require(Le(threads, IndexConst(MostThreads(*d))));
    d->Require(Le(pieces, IndexConst(kMostPieces)));
  }
  return g;
}

// A step's part of an operand, brought by all threads of the block.
void Share(Draft* d, const BlockView& v, const std::string& operand, const std::string& step,
           const std::string& threads) {
  Schedule& s = d->schedule;
  const std::string copy = s.CacheRead(v.name, operand, Scope::kShared);
  s.ComputeAt(copy, step);
  const Names loops = ops::LoopsInside(s, copy, step).spatial;
  if (!s.ok() || loops.empty()) return d->Refuse();
  const Names parts = s.SplitBy(FuseAll(&s, loops), {"-1", threads});
  s.Bind(parts[1], ThreadAxis::kThreadIdxX);
}

void ApplyTiling(Draft* d, const std::string& block, int) {
  Schedule& s = d->schedule;
  const BlockView v = View(s, block);
  const std::string follower = FollowerOf(s, v);
  if (!follower.empty()) s.SetScope(v.buffer, Scope::kLocal);
  const std::string store =
      follower.empty() ? s.CacheWrite(block, v.buffer, Scope::kLocal) : follower;
  const Names axes = s.GetLoops(store);
  if (!s.ok() || axes.empty()) return d->Refuse();
  const Grid g = CutGrid(d, block, axes);
  if (g.threads.empty()) return d->Refuse();
  s.Reorder(Concat({g.blocks, g.virtuals, g.threads, g.pieces}));
  s.Bind(FuseAll(&s, g.blocks), ThreadAxis::kBlockIdxX);
  for (const std::string& loop : g.virtuals) {
    if (s.GetExtent(loop) > 1) s.Bind(loop, ThreadAxis::kVThread);
  }
  const std::string thread = FuseAll(&s, g.threads);
  s.Bind(thread, ThreadAxis::kThreadIdxX);
  for (const std::string& loop : g.pieces) s.Unroll(loop);
  s.ComputeAt(block, thread);
  ops::InnerLoops in = ops::LoopsInside(s, block, thread);
  if (!s.ok() || in.reduce.empty()) return d->Refuse();
  const std::vector<int64_t> depths = TileSizes(v.reduce_extents.back(), 32);
  const std::string depth = Named(block, "depth");
  d->Choose(depth, depths, Nearest(depths, 8));
  const Names k = s.SplitBy(in.reduce.back(), {"-1", Draft::Ref(depth)});
  in.reduce.back() = k[0];
  s.Reorder(Concat({in.reduce, {k[1]}, in.spatial}));
  const std::string init = s.DecomposeReduction(block, in.reduce[0]);
  for (const std::string& loop : ops::LoopsInside(s, init, thread).spatial) s.Unroll(loop);
  for (const std::string& loop : in.spatial) s.Unroll(loop);
  if (!s.ok()) return;
  for (const std::string& operand : v.reads) Share(d, v, operand, k[0], g.together);
}

int TilingWays(const Draft& d, const std::string& block) {
  const BlockView v = View(d.schedule, block);
  const bool fits = v.all_known && !v.reduce.empty() && !v.spatial.empty() && v.reuses &&
                    v.results > 1 && v.reduced > 1 && IsUntouched(d.schedule, block);
  return fits ? 1 : 0;
}

// The grid of a store whose blocks have a result each.
std::string BlockForEach(Draft* d, const Names& axes) {
  Schedule& s = d->schedule;
  const std::string all = FuseAll(&s, axes);
  s.Bind(all, ThreadAxis::kBlockIdxX);
  return all;
}

void ApplyCrossThread(Draft* d, const std::string& block, int) {
  Schedule& s = d->schedule;
  const BlockView v = View(s, block);
  const std::string follower = FollowerOf(s, v);
  Names reduce = v.reduce;
  if (!follower.empty()) {
    const Names axes = s.GetLoops(follower);
    if (!s.ok() || axes.empty()) return d->Refuse();
    const std::string at = BlockForEach(d, axes);
    s.SetScope(v.buffer, Scope::kLocal);
    s.ComputeAt(block, at);
    reduce = s.GetReduceLoops(block);
  } else {
    s.Reorder(Concat({v.spatial, v.reduce}));
    BlockForEach(d, v.spatial);
  }
  if (!s.ok() || reduce.empty()) return d->Refuse();
  const std::vector<int64_t> domain = Powers(v.reduced, std::min<int64_t>(MostThreads(*d), 512));
  const std::string threads = Named(block, "threads");
  d->Choose(threads, domain, Nearest(domain, 128));
  s.Bind(s.SplitBy(FuseAll(&s, reduce), {"-1", Draft::Ref(threads)})[1], ThreadAxis::kThreadIdxX);
}

int CrossThreadWays(const Draft& d, const std::string& block) {
  const BlockView v = View(d.schedule, block);
  const bool fits = v.all_known && !v.reduce.empty() && !v.spatial.empty() && v.reduced >= 32 &&
                    IsUntouched(d.schedule, block);
  return fits ? 1 : 0;
}

void ApplyThreads(Draft* d, const std::string& block, int) {
  Schedule& s = d->schedule;
  const BlockView v = View(s, block);
  const std::string follower = v.reduce.empty() ? "" : FollowerOf(s, v);
  const Names axes = follower.empty() ? v.spatial : s.GetLoops(follower);
  if (!s.ok() || axes.empty()) return d->Refuse();
  if (follower.empty()) s.Reorder(Concat({v.spatial, v.reduce}));
  const std::string name = Named(block, "threads"), per = Named(block, "pieces");
  const std::vector<int64_t> threads = Powers(v.results, std::min<int64_t>(MostThreads(*d), 512));
  const std::vector<int64_t> pieces = Powers(v.results, 8);
  d->Choose(name, threads, Nearest(threads, 128));
  d->Choose(per, pieces, 1);
  const Names parts = s.SplitBy(FuseAll(&s, axes), {"-1", Draft::Ref(per), Draft::Ref(name)});
  s.Bind(parts[0], ThreadAxis::kBlockIdxX);
  s.Bind(parts[2], ThreadAxis::kThreadIdxX);
  if (follower.empty()) return;
  s.SetScope(v.buffer, Scope::kLocal);
  s.ComputeAt(block, parts[2]);
}

int ThreadsWays(const Draft& d, const std::string& block) {
  const BlockView v = View(d.schedule, block);
  return v.all_known && IsUntouched(d.schedule, block) ? 1 : 0;
}

}  // namespace

std::vector<Rule> GpuRules() {
  const auto nothing = [](Draft*, const std::string&, int) {};
  return {InlineRule(),
          {"follow", Then::kSkipOthers, FollowerWays, nothing},
          {"multi_level_tiling", Then::kTryOthers, TilingWays, ApplyTiling},
          {"cross_thread_reduction", Then::kTryOthers, CrossThreadWays, ApplyCrossThread},
          {"threads", Then::kTryOthers, ThreadsWays, ApplyThreads}};
}

}  // namespace tenon::sketch
