#include "ops/algorithm/matrix_tiles.h"

#include "intrin/tile_intrinsic.h"
#include "support/check.h"

namespace tenon::ops {

using te::Indices;

namespace {

Indices Joined(std::initializer_list<Indices> lists) {
  Indices out;
  for (const Indices& l : lists) out.insert(out.end(), l.begin(), l.end());
  return out;
}

// All but the last `rank` loops run over tiles: they are written out, since a tile's number is part
// of the instruction.
void UnrollTiles(Schedule& s, const Names& loops, size_t rank) {
  for (size_t i = 0; i + rank < loops.size(); ++i) s.Unroll(loops[i]);
}

// The last `rank` loops, those of one tile, are the operation.
void TensorizeTiles(Schedule& s, const Names& loops, size_t rank, const std::string& row) {
  if (!s.ok()) return;
  TN_CHECK(loops.size() >= rank);
  s.Tensorize(loops[loops.size() - rank], row);
  UnrollTiles(s, loops, rank);
}

// Where sizes are not known, nothing is asked for, nor where a panel is little beside the nearest
// level: then the next one is there, or nearly.
void AskForNextPanel(Schedule& s, const Machine& machine, const std::string& move,
                     const std::string& panels, const Names& steps, const std::string& over) {
  const Names read = ReadBuffers(s, move);
  if (panels.empty() || read.size() != 1 || s.GetExtent(panels) < 2) return;
  int64_t bytes = WrittenType(s, move).Bytes();
  for (const std::string& l : Concat({steps, LoopsInside(s, move, steps.back()).spatial})) {
    bytes *= std::max<int64_t>(s.GetExtent(l), 1);
  }
  if (machine.LevelFor(bytes) == 0) return;
  Schedule tried = s;
  tried.SpreadPrefetch(move, read[0], panels, 1, over);
  if (tried.ok()) s = std::move(tried);
}

}  // namespace

Operand BuildTiles(Group& group, const OpContext& op, const MicroKernel& kernel,
                   const TiledProduct& p) {
  const int64_t rows = kernel.rows(), lanes = kernel.lanes(), depth = kernel.depth();
  const size_t l = p.lead.size(), steps = p.steps.size();
  const auto move = [&](const char* suffix, size_t i) {
    return group.Mark(op.name + suffix, BlockRole::kMove, kernel.moves.at(i));
  };
  const auto part = [](const Indices& i, size_t from, size_t count) {
    return Indices(i.begin() + static_cast<long>(from),
                   i.begin() + static_cast<long>(from + count));
  };
  const Indices row_tiles = {p.groups, IndexConst(p.tile_rows)};
  const te::Tensor a = te::Compute(
      move("_a", 0), Joined({p.lead, row_tiles, p.steps, {IndexConst(rows), IndexConst(depth)}}),
      [&](const Indices& i) {
        return p.a(part(i, 0, l), i[l], i[l + 1], part(i, l + 2, steps), i[l + 2 + steps],
                   i[l + 3 + steps]);
      });
  const size_t own = p.own_b ? l : 0;
  const te::Tensor b = te::Compute(
      move("_b", 1),
      Joined({part(p.lead, 0, own),
              {p.columns},
              p.steps,
              {IndexConst(depth / kernel.group), IndexConst(lanes), IndexConst(kernel.group)}}),
      [&](const Indices& i) {
        return p.b(part(i, 0, own), i[own], part(i, own + 1, steps),
                   i[own + 1 + steps] * kernel.group + i[own + 3 + steps], i[own + 2 + steps]);
      });
  group.Mark(op.name, p.sums, kernel.unit.row);
  const te::Tensor sums = te::Compute(
      op.name, Joined({p.lead, row_tiles, {p.columns, IndexConst(rows), IndexConst(lanes)}}),
      [&](const Indices& i) {
        std::vector<te::Axis> axes;
        Indices step;
        for (size_t q = 0; q < steps; ++q) {
          axes.push_back(te::ReduceAxis(q == 0 ? "q" : "q" + std::to_string(q), p.steps[q]));
          step.push_back(axes.back().var);
        }
        axes.push_back(te::ReduceAxis("k", IndexConst(depth)));
        const Expr at = axes.back().var;
        const Expr x = a.At(Joined({part(i, 0, l + 2), step, {i[l + 3], at}}));
        const Expr y = b.At(Joined(
            {part(i, 0, own), {i[l + 2]}, step, {at / kernel.group, i[l + 4], at % kernel.group}}));
        return te::Sum(CastExpr::Make(p.wide, x) * CastExpr::Make(p.wide, y), axes);
      });
  // Rows one behind the other for each vector of columns, so that a row's place is its number.
  const te::Tensor stored =
      te::Compute(move("_c", 2),
                  Joined({p.lead, {p.columns, p.groups * (p.tile_rows * rows), IndexConst(lanes)}}),
                  [&](const Indices& i) {
                    const Expr &column = i[l], &row = i[l + 1];
                    return sums.At(Joined({part(i, 0, l),
                                           {row / (p.tile_rows * rows), row / rows % p.tile_rows,
                                            column, row % rows, i[l + 2]}}));
                  });
  return {p.wide, op.out.dims, [=](const Indices& i) {
            return stored.At(Joined({part(i, 0, l), {i[l + 1] / lanes, i[l], i[l + 1] % lanes}}));
          }};
}

void ScheduleTiles(Schedule& s, const Parts& parts, const Machine& machine, const std::string& sums,
                   const std::string& around_groups, size_t written_out, const std::string& panels,
                   int64_t groups) {
  const Names moves = {sums + "_a", sums + "_b", sums + "_c"};
  const MicroKernel kernel = KernelOf(machine, PartOf(parts, sums).row, WrittenType(s, sums));
  // The result in memory, then the sums, then the operands of a step. That tiles leave whole, even
  // where a few of their rows are asked for, is settled before anything is moved.
  s.SetScope(WrittenBuffer(s, sums), Scope::kTile);
  s.SetScope(WrittenBuffer(s, moves[2]), Scope::kLocal);
  const Names of_sums = s.GetSpatialLoops(sums), whole = s.GetLoops(moves[2]);
  if (!s.ok()) return;
  const int64_t tile_rows = s.GetExtent(of_sums[of_sums.size() - 4]);
  const Names rows = s.Split(whole[whole.size() - 2], {-1, kernel.rows()});
  const std::string store = s.Tensorize(rows[1], kernel.moves[2]);
  s.ComputeAt(store, around_groups);
  Names tiles = LoopsInside(s, store, around_groups).spatial;  // columns, rows
  if (!s.ok()) return;
  std::string at = around_groups;
  if (groups > 1) {
    const Names row_tiles =
        tile_rows > 1 ? s.Split(tiles.back(), {-1, tile_rows}) : Names{tiles.back()};
    at = row_tiles[0];
    tiles.pop_back();
    s.Reorder(Concat({{at}, tiles, {row_tiles.begin() + 1, row_tiles.end()}}));
    tiles.insert(tiles.end(), row_tiles.begin() + 1, row_tiles.end());
  }
  UnrollTiles(s, tiles, 0);
  s.ComputeAt(sums, at);
  InnerLoops in = LoopsInside(s, sums, at);
  if (!s.ok()) return;
  const Names steps(in.reduce.begin(), in.reduce.end() - 1);
  const std::string around = steps.empty() ? at : steps.back();
  s.Reorder(Concat({steps, in.spatial, {in.reduce.back()}}));
  const Names inside = Concat({steps, in.spatial});
  const std::string start = s.DecomposeReduction(sums, inside[0]);
  for (size_t k = 0; k < 2; ++k) {
    s.SetScope(WrittenBuffer(s, moves[k]), Scope::kTile);
    s.ComputeAt(moves[k], around);
  }
  if (steps.size() > written_out) {
    AskForNextPanel(s, machine, moves[1], panels, steps, steps[steps.size() - written_out - 1]);
  }
  for (size_t k = 0; k < 2; ++k) {
    TensorizeTiles(s, LoopsInside(s, moves[k], around).spatial, 2 + k, kernel.moves[k]);
  }
  const TileIntrinsic& row = *BuiltinTileIntrinsics().Find(kernel.unit.row);
  TensorizeTiles(s, LoopsInside(s, start, at).spatial, 2, row.start);
  TensorizeTiles(s, in.spatial, 2, row.name);
  for (size_t i = steps.size() - std::min(written_out, steps.size()); i < steps.size(); ++i) {
    s.Unroll(steps[i]);
  }
}

}  // namespace tenon::ops
