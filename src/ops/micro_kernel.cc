#include "ops/micro_kernel.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>

#include "graph/dims.h"
#include "intrin/tile_intrinsic.h"
#include "ops/tiling.h"
#include "support/check.h"

namespace tenon::ops {

StorageDesc MicroKernel::Panels(bool transposed, int64_t vectors, int lead) const {
  const int columns = lead + (transposed ? 0 : 1), k = lead + (transposed ? 1 : 0);
  StorageDesc d;
  if (!transposed) {
    d.order.resize(static_cast<size_t>(lead));
    std::iota(d.order.begin(), d.order.end(), 0);
    d.order.insert(d.order.end(), {columns, k});
  }
  const bool nested = depth() > group;  // a step reads several groups of k one after another
  if (!nested || vectors > 1) d.blocks.push_back({columns, vectors * lanes()});
  if (nested) {
    d.blocks.push_back({k, depth()});
    d.blocks.push_back({columns, lanes()});
  }
  if (group > 1) d.blocks.push_back({k, group});
  return d;
}

StorageDesc MicroKernel::Rows(const std::vector<Expr>& dims, int64_t row_tiles) const {
  StorageDesc d;
  if (depth() == 1 && rows() == 1) return d;
  const size_t r = dims.size();
  d.begin.assign(r, 0);
  d.size = dims;
  d.size[r - 1] = graph::InBlocks(dims[r - 1], depth());
  if (rows() > 1) d.size[r - 2] = graph::InBlocks(dims[r - 2], rows() * row_tiles);
  return HasPadding(d, dims) ? d : StorageDesc();
}

// Of the second operand of a row of the table, the last dim. Rows are read once: every price of a
// plan asks for what they say.
static int64_t GroupOf(const TileIntrinsic& row) {
  static std::mutex mutex;
  static std::map<const TileIntrinsic*, int64_t> known;
  const std::lock_guard lock(mutex);
  const auto [it, is_new] = known.emplace(&row, 1);
  if (!is_new) return it->second;
  const Expected<Func> meaning = MeaningOf(row);
  TN_CHECK(meaning, "{}", ToString(meaning.errors()));
  return it->second = AsInt((*meaning)->buffers[1]->shape.back()).value_or(1);
}

static MicroKernel OfUnit(const ComputeUnit& unit) {
  MicroKernel kernel;
  kernel.unit = unit;
  if (unit.row.empty()) return kernel;
  const TileIntrinsic* row = BuiltinTileIntrinsics().Find(unit.row);
  TN_CHECK(row, "no intrinsic '{}'", unit.row);
  kernel.group = GroupOf(*row);
  kernel.moves = row->moves;
  return kernel;
}

// The fastest unit of the table for these types, with tiles or without.
static std::optional<MicroKernel> Fastest(const Machine& machine, DType a, DType b, DType acc,
                                          bool tiles) {
  std::optional<MicroKernel> best;
  if (machine.warp != 0) return best;
  for (const ComputeUnit& unit : machine.units) {
    if (unit.row.empty() || unit.a != a || unit.b != b || unit.acc != acc) continue;
    if (best && unit.FlopsPerSecond() <= best->unit.FlopsPerSecond()) continue;
    MicroKernel kernel = OfUnit(unit);
    if (kernel.HasTiles() == tiles) best = std::move(kernel);
  }
  return best;
}

// Without loss, and of one kind.
static bool Widens(DType from, DType to) {
  if (from == to) return true;
  if (from.IsFloat() && from.bits == 16) return to == DType::Float(32);
  return from.IsInt() && from.bits == 8 && to == DType::Int(32);
}

std::optional<MicroKernel> VectorKernelFor(const Machine& machine, DType a, DType b, DType acc) {
  if (auto kernel = Fastest(machine, a, b, acc, false)) return kernel;
  return PlainKernelFor(machine, a, b, acc);
}

std::optional<MicroKernel> PlainKernelFor(const Machine& machine, DType a, DType b, DType acc) {
  if (machine.warp != 0) return std::nullopt;
  if (!Widens(a, acc) || !Widens(b, acc) || machine.VectorUnit(acc).acc != acc) return std::nullopt;
  MicroKernel plain = PlainKernel(machine, acc);
  plain.unit.a = a;
  plain.unit.b = b;
  return plain;
}

std::optional<MicroKernel> TileKernelFor(const Machine& machine, DType a, DType b, DType acc) {
  return Fastest(machine, a, b, acc, true);
}

MicroKernel PlainKernel(const Machine& machine, DType type) {
  return OfUnit(machine.VectorUnit(type));
}

MicroKernel KernelOf(const Machine& machine, const std::string& row, DType acc) {
  if (row.empty()) return PlainKernel(machine, acc);
  for (const ComputeUnit& unit : machine.units) {
    if (unit.row == row) return OfUnit(unit);
  }
  TN_CHECK(false, "the machine has no unit '{}'", row);
  return {};
}

int64_t ProductShape::Lead() const {
  int64_t product = 1;
  for (int64_t d : lead) product *= d;
  return product;
}

std::vector<Expr> ProductShape::ResultDims(const std::vector<Expr>& dims) const {
  if (!together) return dims;
  Expr rows = dims[0];
  for (size_t i = 1; i + 1 < dims.size(); ++i) rows = graph::DimMul(rows, dims[i]);
  return {rows, dims.back()};
}

te::Indices ProductShape::RowAt(const te::Indices& rows, const std::vector<Expr>& dims) const {
  return together ? Delinearize(rows[0], {dims.begin(), dims.end() - 1}) : rows;
}

te::Indices ProductShape::RowsOf(const te::Indices& row, const std::vector<Expr>& dims) const {
  if (!together) return row;
  return {Linearize(row, {dims.begin(), dims.end() - 1})};
}

// Of operands whose last two dims are those of matrices.
static std::optional<ProductShape> ReadMatrices(const Site& site) {
  const Attrs& attrs = site.node().attrs;
  const graph::TensorType &x = site.input(0), &w = site.input(1);
  if (x.rank() < 2) return std::nullopt;
  const std::vector<int64_t> a = site.Sizes(x), b = site.Sizes(w);
  ProductShape s;
  s.a = x.dtype;
  s.b = w.dtype;
  const auto types = graph::ContractionTypesOf(s.a, s.b, attrs);
  if (!types) return std::nullopt;
  s.types = *types;
  s.trans_a = attrs.Get<bool>("trans_a", false);
  s.trans_b = attrs.Get<bool>("trans_b", false);
  s.is_open = !AreNumbers(w, w.dims.size() - 2);
  s.lead.assign(a.begin(), a.end() - 2);
  s.m = a[a.size() - (s.trans_a ? 1 : 2)];
  s.n = b[b.size() - (s.trans_b ? 2 : 1)];
  s.k = b[b.size() - (s.trans_b ? 1 : 2)];
  s.least = site.LeastSizes(x);
  s.least.erase(s.least.end() - (s.trans_a ? 2 : 1));
  return s;
}

std::optional<ProductShape> ReadProduct(const Site& site) {
  if (site.input(1).rank() != 2) return std::nullopt;
  std::optional<ProductShape> s = ReadMatrices(site);
  if (s && (s->trans_a || s->is_open || s->n < 2)) return std::nullopt;
  return s;
}

std::optional<ProductShape> ReadAnyProduct(const Site& site) {
  const graph::TensorType& w = site.input(1);
  std::optional<ProductShape> s = w.rank() < 2 ? std::nullopt : ReadMatrices(site);
  if (!s) return std::nullopt;
  s->batched = w.rank() > 2;
  if (s->batched) {
    const std::vector<int64_t> sizes = site.Sizes(site.result());
    s->lead.assign(sizes.begin(), sizes.end() - 2);
    s->least = site.LeastSizes(site.result());
    s->least.pop_back();
  } else if (!s->trans_a && StandTogether(site)) {
    s->PutTogether();
  }
  return s;
}

bool StandTogether(const Site& site) {
  const std::vector<Expr>& a = site.input(0).dims;
  const auto rows = static_cast<long>(a.size()) - 1;
  const auto is_one = [](const Expr& d) { return AsInt(d) == 1; };
  const auto several = rows - std::count_if(a.begin(), a.begin() + rows, is_one);
  if (several <= 1) return several == 1 && is_one(a[a.size() - 2]);
  const bool has_some = std::none_of(a.begin(), a.begin() + rows, [&](const Expr& d) {
    return graph::MayBeEmpty(site.region, d);
  });
  return !AsInt(a[a.size() - 2]) && (several == 2 || has_some);
}

void ProductShape::PutTogether() {
  together = true;
  m *= Lead();
  lead.clear();
  least = {std::accumulate(least.begin(), least.end(), int64_t{1}, std::multiplies<>())};
}

std::optional<ProductShape> ReadProductOfRows(const Site& site) {
  std::optional<ProductShape> s = ReadProduct(site);
  if (!s || !StandTogether(site)) return s;
  s->PutTogether();
  return s;
}

void AddProductBytes(WorkDescription* work, const Site& site, int64_t blocks) {
  const double border = BorderBytes(site.region);
  const double matrix = BytesOf(site.region, site.input(1));
  const auto add = [&](double from, double bytes) {
    work->bytes[site.machine.LevelFor(static_cast<int64_t>(from))] += bytes;
  };
  add(border, border);
  add(matrix, matrix * static_cast<double>(std::max<int64_t>(blocks - 1, 0)));
}

int64_t SecondLevelBytes(const Machine& machine) {
  return machine.memory[std::min<size_t>(1, machine.memory.size() - 1)].capacity_bytes;
}

}  // namespace tenon::ops
