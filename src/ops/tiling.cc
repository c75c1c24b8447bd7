#include "ops/tiling.h"

#include <algorithm>
#include <numeric>

#include "ops/scheduling.h"
#include "support/check.h"

namespace tenon::ops {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::vector<int64_t> OneTo(int64_t n) {
  std::vector<int64_t> out(static_cast<size_t>(std::max<int64_t>(n, 1)));
  std::iota(out.begin(), out.end(), 1);
  return out;
}

std::vector<int64_t> DivisorsOf(int64_t n, int64_t most) {
  std::vector<int64_t> out;
  for (int64_t i = 1; i <= std::min(n, most); ++i) {
    if (n % i == 0) out.push_back(i);
  }
  return out.empty() ? std::vector<int64_t>{1} : out;
}

Expr FitsRegisters(const Expr& rows, const Expr& vectors, const Machine& machine) {
  return Le(rows * vectors + vectors + 1, IndexConst(machine.registers));
}

std::vector<TripCount> TripCounts(const std::vector<int64_t>& typical,
                                  const std::vector<int64_t>& least) {
  std::vector<TripCount> out;
  for (size_t i = 0; i < typical.size(); ++i) out.emplace_back(typical[i], least[i]);
  return out;
}

void AddParallelLoops(Space* space, const std::vector<TripCount>& loops, bool or_none) {
  const auto count = static_cast<int64_t>(loops.size());
  std::vector<int64_t> domain(loops.size() + 1);
  std::iota(domain.begin(), domain.end(), 0);
  const Expr n = space->Add({"parallel_loops", domain, false, true});
  const Expr enough = IndexConst(kEnoughParts);
  Expr least = IndexConst(1), typical = IndexConst(1);
  Expr some;
  for (int64_t i = 1; i <= count; ++i) {
    const TripCount& loop = loops[static_cast<size_t>(i) - 1];
    const Expr before = least;
    least = i == 1 ? loop.least : least * loop.least;
    typical = i == 1 ? loop.typical : typical * loop.typical;
    Expr here = Eq(n, IndexConst(i));
    if (i > 1) here = And(here, Lt(before, enough));
    here = And(here, i < count ? Le(enough, least) : Lt(IndexConst(1), typical));
    some = some ? Or(some, here) : here;
  }
  Expr none = Eq(n, IndexConst(0));
  if (!or_none) none = And(none, Le(typical, IndexConst(1)));
  space->Require(some ? Or(none, some) : none);
}

void ShareOut(WorkDescription* work, const Machine& machine, const std::vector<int64_t>& extents,
              const Point& point) {
  const int64_t loops = ValueOf(point, "parallel_loops");
  TN_CHECK(loops <= static_cast<int64_t>(extents.size()));
  work->team = loops > 0 ? machine.workers : 1;
  work->tiles = 1;
  for (int64_t i = 0; i < loops; ++i) work->tiles *= extents[static_cast<size_t>(i)];
}

void AddTiles(WorkDescription* work, int64_t height, int64_t width, int64_t th, int64_t tw,
              int64_t vectors, double turns) {
  const int64_t whole_down = height / th, whole_along = width / tw;
  const auto full_rows = static_cast<double>(whole_down);
  const auto full_columns = static_cast<double>(whole_along);
  const int64_t rest_rows = height % th, rest_columns = width % tw;
  work->AddTileSteps(th * tw, vectors, full_rows * full_columns * turns);
  work->AddTileSteps(th * rest_columns, vectors, full_rows * turns);
  work->AddTileSteps(rest_rows * tw, vectors, full_columns * turns);
  work->AddTileSteps(rest_rows * rest_columns, vectors, turns);
}

double BytesOf(const graph::Graph& region, const graph::TensorType& type) {
  auto bytes = static_cast<double>(type.dtype.Bytes());
  for (const Expr& d : type.dims) bytes *= static_cast<double>(TypicalSize(region, d));
  return bytes;
}

double BorderBytes(const graph::Graph& region) {
  double bytes = 0;
  for (graph::ValueId v : region.inputs) bytes += BytesOf(region, region.type(v));
  for (graph::ValueId v : region.outputs) bytes += BytesOf(region, region.type(v));
  return bytes;
}

int64_t LinesAlong(const std::vector<int64_t>& sizes, size_t axis) {
  int64_t lines = 1;
  for (size_t a = 0; a < sizes.size(); ++a) lines *= a == axis ? 1 : std::max<int64_t>(sizes[a], 1);
  return lines;
}

double EpilogueElements(const Site& site) {
  double elements = 0;
  for (size_t n = 0; n < site.region.nodes.size(); ++n) {
    if (static_cast<graph::NodeId>(n) <= site.anchor) continue;
    for (graph::ValueId v : site.region.nodes[n].outputs) {
      const graph::TensorType& type = site.region.type(v);
      elements += BytesOf(site.region, type) / static_cast<double>(type.dtype.Bytes());
    }
  }
  return elements;
}

}  // namespace tenon::ops
