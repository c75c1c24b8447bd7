// What rules ask about blocks.
#include <algorithm>

#include "arith/analyzer.h"
#include "dependence/body.h"
#include "ir/visit.h"
#include "sketch/rule.h"

namespace tenon::sketch {

namespace {

bool Uses(const Region& region, const Var& var) {
  return std::any_of(region->ranges.begin(), region->ranges.end(),
                     [&](const Range& r) { return UsesVar(r->min, var.get()); });
}

bool IsElement(const Region& region) {
  return std::all_of(region->ranges.begin(), region->ranges.end(),
                     [](const Range& r) { return AsInt(r->extent) == 1; });
}

void Add(Names* names, const std::string& name) {
  if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
}

// An operand that does not know one of the variables is the same for all of its values.
bool Reuses(const Block& block, const std::string& own) {
  for (const Region& r : ReadsOf(block)) {
    if (r->buffer->name == own) continue;
    for (const IterVar& v : block.iters) {
      if (v->iter_kind == IterKind::kSpatial && AsInt(v->extent) != 1 && !Uses(r, v->var))
        return true;
    }
  }
  return false;
}

// Whether steps of the results' last variable are steps along rows of an operand.
bool LiesAlong(const Block& block, const std::string& own) {
  const auto last = std::find_if(block.iters.rbegin(), block.iters.rend(), [](const IterVar& v) {
    return v->iter_kind == IterKind::kSpatial;
  });
  if (last == block.iters.rend()) return false;
  const std::vector<Region> reads = ReadsOf(block);
  return std::any_of(reads.begin(), reads.end(), [&](const Region& r) {
    return r->buffer->name != own && !r->ranges.empty() &&
           UsesVar(r->ranges.back()->min, (*last)->var.get());
  });
}

}  // namespace

BlockView View(const Schedule& schedule, const std::string& name) {
  BlockView view{.name = name};
  Schedule s = schedule;
  view.spatial = s.GetSpatialLoops(name);
  view.reduce = s.GetReduceLoops(name);
  view.consumers = s.GetConsumers(name);
  view.producers = s.GetProducers(name);
  const Body body(s.func());
  const Body::Place* place = body.FindBlock(name);
  if (!s.ok() || !place) return view;
  const Block& block = *place->block();
  if (block.writes.empty()) return view;
  view.buffer = block.writes[0]->buffer->name;
  view.type = block.writes[0]->buffer->dtype;
  view.is_result = !body.IsAlloc(block.writes[0]->buffer);
  auto extents = [&](const Names& loops, std::vector<int64_t>* out, int64_t* product) {
    for (const std::string& loop : loops) {
      out->push_back(s.GetExtent(loop));
      view.all_known = view.all_known && out->back() >= 0;
      *product *= std::max<int64_t>(out->back(), 1);
    }
  };
  extents(view.spatial, &view.spatial_extents, &view.results);
  extents(view.reduce, &view.reduce_extents, &view.reduced);
  view.all_known =
      view.all_known && place->Loops().size() == view.spatial.size() + view.reduce.size();
  view.elementwise = view.reduce.empty() && !block.opaque && block.writes.size() == 1;
  for (const Region& r : ReadsOf(block)) {
    if (r->buffer->name != view.buffer) Add(&view.reads, r->buffer->name);
    view.elementwise = view.elementwise && IsElement(r) && r->buffer->name != view.buffer;
  }
  view.reuses = Reuses(block, view.buffer);
  view.along = LiesAlong(block, view.buffer);
  return view;
}

bool ReadsAsWritten(const Schedule& schedule, const std::string& consumer,
                    const std::string& buffer) {
  const Body body(schedule.func());
  const Body::Place* place = body.FindBlock(consumer);
  if (!place) return false;
  std::vector<Var> vars;
  for (const IterVar& v : place->block()->iters) {
    if (v->iter_kind != IterKind::kSpatial) return false;
    vars.push_back(v->var);
  }
  bool found = false;
  for (const Region& r : ReadsOf(*place->block())) {
    if (r->buffer->name != buffer) continue;
    if (r->ranges.size() != vars.size() || !IsElement(r)) return false;
    for (size_t i = 0; i < vars.size(); ++i) {
      // A coordinate of one value may be written as that.
      const bool only = AsInt(r->buffer->shape[i]) == 1;
      if (!only && r->ranges[i]->min.get() != vars[i].get()) return false;
    }
    found = true;
  }
  return found;
}

bool IsUntouched(const Schedule& schedule, const std::string& block) {
  const Body body(schedule.func());
  const Body::Place* place = body.FindBlock(block);
  if (!place || place->inner) return false;
  size_t vars = 0;
  for (const IterVar& v : place->block()->iters) {
    if (AsInt(v->extent) != 1) ++vars;
  }
  const std::vector<const For*> loops = place->Loops();
  if (loops.size() < vars) return false;
  for (const For* loop : loops) {
    if (loop->for_kind != ForKind::kSerial || !AsInt(loop->extent)) return false;
    if (body.BlocksUnder(loop).size() != 1) return false;
    const bool bound =
        std::any_of(place->block()->iters.begin(), place->block()->iters.end(),
                    [&](const IterVar& v) { return v->binding.get() == loop->var.get(); });
    if (!bound) return false;
  }
  return true;
}

std::string FollowerOf(const Schedule& schedule, const BlockView& view) {
  if (view.consumers.size() != 1 || view.is_result) return "";
  const std::string& consumer = view.consumers[0];
  const BlockView other = View(schedule, consumer);
  const bool fits = other.elementwise && other.results == view.results &&
                    other.spatial.size() == view.spatial.size() &&
                    IsUntouched(schedule, consumer) &&
                    ReadsAsWritten(schedule, consumer, view.buffer);
  return fits ? consumer : "";
}

int FollowerWays(const Draft& draft, const std::string& block) {
  const Schedule& s = draft.schedule;
  for (const std::string& producer : View(s, block).producers) {
    const BlockView v = View(s, producer);
    if (!v.reduce.empty() && v.all_known && FollowerOf(s, v) == block && IsUntouched(s, producer))
      return 1;
  }
  return 0;
}

std::vector<int64_t> Divisors(int64_t n, int64_t most) {
  std::vector<int64_t> out;
  for (int64_t d = 1; d <= std::min(n, most); ++d) {
    if (n % d == 0) out.push_back(d);
  }
  return out.empty() ? std::vector<int64_t>{1} : out;
}

std::vector<int64_t> Powers(int64_t n, int64_t most) {
  std::vector<int64_t> out = {1};
  while (out.back() < n && out.back() * 2 <= most) out.push_back(out.back() * 2);
  return out;
}

std::vector<int64_t> TileSizes(int64_t n, int64_t most) {
  std::vector<int64_t> out = Divisors(n, most);
  for (const int64_t p : Powers(n, most)) {
    if (p <= n) out.push_back(p);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

int64_t Nearest(const std::vector<int64_t>& domain, int64_t x) {
  const auto above = std::upper_bound(domain.begin(), domain.end(), x);
  return above == domain.begin() ? domain.front() : *(above - 1);
}

}  // namespace tenon::sketch
