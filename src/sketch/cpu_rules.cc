// The rules for CPUs. What they have in common: the loops that store a block's results decide
// (those of an elementwise consumer, where there is one that can be tiled in the block's place, or
// of a copy out of registers), outer ones are shared out, inner ones are a tile of vectors.
//
//   multi_level_tiling   outer …, block …, [reduction …, tile …, lanes], store: tile …, lanes
//   tensorize            the same with an operation of the machine's table in the place of lanes,
//   its
//                        second operand packed as that wants it
//   rfactor              the reduction's last loop becomes lanes, which are combined at the end;
//                        of a result alone its first loop becomes parts, for the cores
//   with_consumer        a block is computed where its results are used, nothing twice
//   plain                vectors along memory, outer loops shared out
#include <fmt/format.h>

#include <algorithm>

#include "ops/scheduling.h"
#include "sketch/cpu_tiles.h"

namespace tenon::sketch {

namespace {

using ops::Concat;

// The reduction inside the tile: steps outside, then the tile in registers, lanes innermost.
void FillTile(Draft* d, const BlockView& v, const Tile& t, const std::string& at) {
  Schedule& s = d->schedule;
  s.ComputeAt(v.name, at);
  ops::InnerLoops in = ops::LoopsInside(s, v.name, at);
  if (!s.ok()) return;
  std::string lane;
  if (!t.lane.empty()) {
    if (in.spatial.empty()) return d->Refuse();
    const int64_t extent = s.GetExtent(in.spatial.back());
    if (extent % t.lanes != 0) return d->Refuse();
    lane = in.spatial.back();
    if (extent > t.lanes) {
      const Names parts = s.Split(lane, {-1, t.lanes});
      in.spatial.back() = parts[0];
      lane = parts[1];
    } else {
      in.spatial.pop_back();
    }
  }
  std::string step;
  if (!in.reduce.empty() && v.reduce_extents.back() > 1) {
    const std::string name = Named(v.name, "unroll");
    const std::vector<int64_t> domain = Divisors(v.reduce_extents.back(), 8);
    d->Choose(name, domain, 1);
    const Names parts = s.SplitBy(in.reduce.back(), {"-1", Draft::Ref(name)});
    in.reduce.back() = parts[0];
    step = parts[1];
  }
  s.Reorder(Concat({in.reduce, {step}, in.spatial, {lane}}));
  if (!in.reduce.empty()) {
    const std::string init = s.DecomposeReduction(v.name, in.reduce[0]);
    const Names start = ops::LoopsInside(s, init, at).spatial;
    for (size_t i = 0; i < start.size(); ++i) {
      const bool is_lane = i + 1 == start.size() && !lane.empty();
      is_lane ? s.Vectorize(start[i]) : s.Unroll(start[i]);
    }
  }
  if (!lane.empty()) s.Vectorize(lane);
  for (const std::string& loop : in.spatial) s.Unroll(loop);
  if (!step.empty()) s.Unroll(step);
}

// Copies of operands that several tiles read, each for what an outer loop needs, in one piece.
void Pack(Draft* d, const BlockView& v, const std::string& operand, const std::string& at) {
  Schedule& s = d->schedule;
  const std::string copy = s.CacheRead(v.name, operand, Scope::kGlobal);
  s.ComputeAt(copy, at);
  const Names loops = ops::LoopsInside(s, copy, at).spatial;
  if (!s.ok() || loops.empty()) return;
  const int64_t lanes = LanesFor(*d->machine, v.type, s.GetExtent(loops.back()));
  if (lanes > 1) s.Vectorize(s.Split(loops.back(), {-1, lanes})[1]);
}

void ApplyTiling(Draft* d, const std::string& block, int way) {
  Schedule& s = d->schedule;
  const BlockView v = View(s, block);
  const std::string store = StoreOf(d, v, Scope::kRegister);
  const Names axes = s.GetLoops(store);
  if (!s.ok() || axes.empty()) return d->Refuse();
  const Tile t = CutTile(d, block, axes, v.type);
  const Names outer = WithoutEmpty(t.outer), around = WithoutEmpty(t.block);
  s.Reorder(Concat({t.outer, t.block, t.inner, {t.lane}}));
  const std::string at = around.empty() ? outer.back() : around.back();
  FillTile(d, v, t, at);
  for (const std::string& loop : WithoutEmpty(t.inner)) s.Unroll(loop);
  if (!t.lane.empty()) s.Vectorize(t.lane);
  if (way > 0 && s.ok()) {
    // The operand whose number this is.
    Pack(d, v, v.reads[static_cast<size_t>(way - 1)], outer.back());
  }
  if (s.ok()) ShareOut(d, block, t.cut);
}

int TilingWays(const Draft& d, const std::string& block) {
  const BlockView v = View(d.schedule, block);
  // Sums of columns share nothing, but a tile of them stays in registers while rows go by.
  const bool fits = v.all_known && !v.reduce.empty() && !v.spatial.empty() &&
                    (v.reuses || v.along) && v.results > 1 && IsUntouched(d.schedule, block);
  if (!fits) return 0;
  return v.reuses ? 1 + static_cast<int>(std::min<size_t>(v.reads.size(), 2)) : 1;
}

// ---- Reductions in lanes and parts ----

// The last of the block's reduce loops becomes lanes, which `block` combines at the end, under
// `at`.
void ReduceInLanes(Draft* d, const std::string& block, const std::string& loop, DType type,
                   const std::string& at) {
  Schedule& s = d->schedule;
  const int64_t lanes = d->machine->Lanes(type);
  const std::vector<int64_t> domain = {1, 2, 4, 8};
  const std::string name = Named(block, "accumulators");
  const int64_t accumulators = d->Choose(name, domain, 4, true);
  const Names parts = s.Split(loop, {-1, lanes * accumulators});
  const std::string partial = s.RFactor(parts[1], -1);
  if (!s.ok()) return;
  s.SetScope(ops::WrittenBuffer(s, partial), Scope::kRegister);
  if (!at.empty()) s.ComputeAt(partial, at);
  const Names all = s.GetLoops(partial);
  const ops::InnerLoops in =
      at.empty() ? ops::InnerLoops{s.GetSpatialLoops(partial), s.GetReduceLoops(partial)}
                 : ops::LoopsInside(s, partial, at);
  if (!s.ok() || in.spatial.empty()) return d->Refuse();
  Names lane = {in.spatial.back()};
  if (accumulators > 1) lane = s.Split(in.spatial.back(), {accumulators, lanes});
  const Names rest(in.spatial.begin(), in.spatial.end() - 1);
  s.Reorder(Concat({rest, in.reduce, lane}));
  if (!in.reduce.empty()) {
    const std::string init = s.DecomposeReduction(partial, in.reduce[0]);
    const Names start =
        at.empty() ? s.GetSpatialLoops(init) : ops::LoopsInside(s, init, at).spatial;
    if (!start.empty()) s.Vectorize(start.back());
    if (start.size() > 1 && accumulators > 1) s.Unroll(start[start.size() - 2]);
  }
  s.Vectorize(lane.back());
  if (accumulators > 1) s.Unroll(lane.front());
  // What combines them has their numbers as constants: they stay in registers.
  for (const std::string& left : s.GetReduceLoops(block)) {
    if (s.GetExtent(left) == lanes * accumulators) s.Unroll(left);
  }
}

void ApplyRFactor(Draft* d, const std::string& block, int way) {
  Schedule& s = d->schedule;
  const BlockView v = View(s, block);
  if (way == 0) {
    const std::string follower = FollowerOf(s, v);
    Names outer = v.spatial;
    std::string at;
    if (!follower.empty()) {
      outer = s.GetLoops(follower);
      if (outer.empty()) return d->Refuse();
      at = outer.back();
      s.SetScope(v.buffer, Scope::kLocal);
      s.ComputeAt(block, at);
      const Names reduce = s.GetReduceLoops(block);
      if (!s.ok() || reduce.empty()) return d->Refuse();
      ReduceInLanes(d, block, reduce.back(), v.type, at);
    } else {
      s.Reorder(Concat({v.spatial, v.reduce}));
      ReduceInLanes(d, block, v.reduce.back(), v.type, "");
      // The nest of the results is a new one.
      outer = s.GetSpatialLoops(block);
      const Names partial = s.GetProducers(block);
      if (!s.ok() || partial.empty()) return d->Refuse();
      if (!outer.empty()) s.ComputeAt(partial.back(), outer.back());
    }
    if (s.ok()) ShareOut(d, block, LongOnes(outer, v.spatial_extents));
    return;
  }
  // A few results: the first reduce loop in parts for the cores, and lanes within.
  const std::vector<int64_t> domain = Powers(v.reduce_extents[0], 64);
  const int64_t parts = d->Choose(Named(block, "parts"), domain, Nearest(domain, 8), true);
  const Names cut = s.Split(v.reduce[0], {parts, -1});
  const std::string partial = s.RFactor(cut[0], 0);
  const Names reduce = s.GetReduceLoops(partial);
  const Names spatial = s.GetSpatialLoops(partial);
  if (!s.ok() || reduce.empty() || spatial.empty()) return d->Refuse();
  s.Reorder(Concat({spatial, reduce}));
  ReduceInLanes(d, partial, reduce.back(), v.type, "");
  const Names outer = s.GetSpatialLoops(partial), inner = s.GetProducers(partial);
  if (!s.ok() || outer.empty() || inner.empty()) return d->Refuse();
  s.ComputeAt(inner.back(), outer.back());
  s.Parallel(outer[0]);
}

int RFactorWays(const Draft& d, const std::string& block) {
  const BlockView v = View(d.schedule, block);
  const bool fits = v.all_known && !v.reduce.empty() && IsUntouched(d.schedule, block) &&
                    v.reduce_extents.back() >= 2 * d.machine->Lanes(v.type);
  if (!fits) return 0;
  const bool few = v.results < 64 && v.reduced >= 4096 && FollowerOf(d.schedule, v).empty();
  return few ? 2 : 1;
}

// ---- Where it is used ----

// The deepest loop around all consumers under which nothing is computed twice.
std::string PlaceFor(const Schedule& schedule, const BlockView& v) {
  Schedule s = schedule;
  Names common;
  for (size_t i = 0; i < v.consumers.size(); ++i) {
    const Names loops = s.GetLoops(v.consumers[i]);
    if (i == 0) common = loops;
    size_t same = 0;
    while (same < common.size() && same < loops.size() && common[same] == loops[same]) ++same;
    common.resize(same);
  }
  for (size_t i = common.size(); i-- > 0;) {
    Schedule tried = schedule;
    tried.ComputeAt(v.name, common[i]);
    if (!tried.ok()) continue;
    int64_t turns = 1;
    for (const std::string& loop : tried.GetLoops(v.name)) turns *= tried.GetExtent(loop);
    if (tried.ok() && turns == v.results * v.reduced) return common[i];
  }
  return "";
}

void ApplyWithConsumer(Draft* d, const std::string& block, int) {
  Schedule& s = d->schedule;
  const BlockView v = View(s, block);
  const std::string at = PlaceFor(s, v);
  s.ComputeAt(block, at);
  const ops::InnerLoops in = ops::LoopsInside(s, block, at);
  if (!s.ok()) return;
  const int64_t lanes = d->machine->Lanes(v.type);
  if (!in.reduce.empty() && s.GetExtent(in.reduce.back()) >= 2 * lanes && in.spatial.empty()) {
    ReduceInLanes(d, block, in.reduce.back(), v.type, at);
  } else if (in.reduce.empty() && !in.spatial.empty()) {
    const int64_t own = LanesFor(*d->machine, v.type, s.GetExtent(in.spatial.back()));
    if (own > 1) s.Vectorize(s.Split(in.spatial.back(), {-1, own})[1]);
  }
}

int WithConsumerWays(const Draft& d, const std::string& block) {
  const BlockView v = View(d.schedule, block);
  const bool fits = v.all_known && !v.is_result && !v.consumers.empty() &&
                    IsUntouched(d.schedule, block) && !PlaceFor(d.schedule, v).empty();
  return fits ? 1 : 0;
}

// ---- Everything else ----

void ApplyPlain(Draft* d, const std::string& block, int) {
  Schedule& s = d->schedule;
  const BlockView v = View(s, block);
  if (v.spatial.empty()) return;
  const std::string follower = FollowerOf(s, v);
  const std::string store = follower.empty() || v.reduce.empty() ? block : follower;
  Names axes = store == block ? v.spatial : s.GetLoops(store);
  const int64_t extent = s.GetExtent(axes.back());
  const int64_t lanes = LanesFor(*d->machine, v.type, extent);
  std::string unrolled, lane;
  if (lanes > 1) {
    const std::string name = Named(block, "unroll");
    const std::vector<int64_t> domain = Powers((extent + lanes - 1) / lanes, 8);
    d->Choose(name, domain, 1);
    const Names parts = s.SplitBy(axes.back(), {"-1", Draft::Ref(name), std::to_string(lanes)});
    axes.back() = parts[0];
    unrolled = parts[1];
    lane = parts[2];
  }
  if (store != block) {
    s.SetScope(v.buffer, Scope::kLocal);
    s.Reorder(Concat({axes, {unrolled, lane}}));
    s.ComputeAt(block, unrolled.empty() ? axes.back() : unrolled);
    const ops::InnerLoops in =
        ops::LoopsInside(s, block, unrolled.empty() ? axes.back() : unrolled);
    if (s.ok() && lanes > 1 && in.spatial.size() == 1) {
      s.Reorder(Concat({in.reduce, in.spatial}));
      s.Vectorize(in.spatial[0]);
    }
  } else {
    s.Reorder(Concat({axes, v.reduce, {unrolled, lane}}));
    if (!v.reduce.empty() && !lane.empty()) {
      const std::string init = s.DecomposeReduction(block, v.reduce[0]);
      const Names start = s.GetSpatialLoops(init);
      if (!start.empty()) s.Vectorize(start.back());
    }
  }
  if (!lane.empty()) s.Vectorize(lane);
  if (!unrolled.empty()) s.Unroll(unrolled);
  if (s.ok()) ShareOut(d, block, LongOnes(axes, v.spatial_extents));
}

int PlainWays(const Draft& d, const std::string& block) {
  const BlockView v = View(d.schedule, block);
  return v.all_known && IsUntouched(d.schedule, block) ? 1 : 0;
}

}  // namespace

Rule InlineRule() {
  return {"inline", Then::kSkipOthers,
          [](const Draft& d, const std::string& block) {
            const BlockView v = View(d.schedule, block);
            if (v.is_result || !v.elementwise || v.consumers.empty()) return 0;
            Schedule tried = d.schedule;
            tried.ComputeInline(block);
            return tried.ok() ? 1 : 0;
          },
          [](Draft* d, const std::string& block, int) { d->schedule.ComputeInline(block); }};
}

std::vector<Rule> CpuRules() {
  const auto nothing = [](Draft*, const std::string&, int) {};
  return {InlineRule(),
          {"follow", Then::kSkipOthers, FollowerWays, nothing},
          TensorizeRule(),
          {"multi_level_tiling", Then::kTryOthers, TilingWays, ApplyTiling},
          {"rfactor", Then::kTryOthers, RFactorWays, ApplyRFactor},
          {"with_consumer", Then::kTryOthers, WithConsumerWays, ApplyWithConsumer},
          {"plain", Then::kTryOthers, PlainWays, ApplyPlain}};
}

}  // namespace tenon::sketch
