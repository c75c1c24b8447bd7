// Attention as one kernel, where a warp's units multiply (warp_steps.h). A warp has 16 rows of
// queries. The scores of these with the keys are one product's result; their softmax is taken where
// they lie, and is the left factor of the next product. Each lane has its part of a row: it reduces
// that, and the four lanes that share the row exchange what they got (Dao et al., "FlashAttention",
// 2022).
//
//   out[…, i, j]  →  blocks over …, i / rows: warps over 16 rows each
//                      queries, keys and values to shared memory
//                      scores[16, keys] = q · k; masked; most, exponentials and their sums by row
//                      out = weights · v / sums, through shared memory
//
// Where a row's scores do not fit in registers, keys come in tiles, twice: the first time for the
// greatest score of each row alone, the second time for what follows from it. That is half as many
// products again as an only pass has, which scales what it has summed whenever a greater score
// comes; in return each sum is one reduction.
//
//                      for tiles of keys: scores = q · k; most
//                      for tiles of keys: scores = q · k; exponentials; sums, out += weights · v
//
// Rows and keys behind the end are the first ones again: such rows are not stored, such keys weigh
// nothing.
#include <algorithm>

#include "graph/dims.h"
#include "intrin/tile_intrinsic.h"
#include "ops/algorithm/warp_steps.h"
#include "ops/group.h"
#include "ops/tiling.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32);
constexpr int64_t kRows = 16, kLanesOfRow = 4, kPiece = 8;
// Scores, weights and sums of a lane, and what else it needs, are 255 registers at most.
constexpr int64_t kMostAtOnce = 256, kMostColumns = 128;

struct AttentionShape {
  std::vector<int64_t> lead;
  int64_t queries = 0, keys = 0, depth = 0, columns = 0;

  /// The keys whose scores a warp has at once, where it can have all.
  int64_t Whole() const { return CeilDiv(keys, kRows) * kRows; }
  bool FitsWhole() const { return Whole() <= kMostAtOnce && Whole() / 2 + columns / 2 <= 160; }
  int64_t AllKeys(const Point& point) const {
    const int64_t tile = ValueOf(point, "keys");
    return CeilDiv(keys, tile) * tile;
  }
  bool IsTiled(const Point& point) const { return AllKeys(point) > ValueOf(point, "keys"); }
};

AttentionShape ShapeOf(const Site& site) {
  const std::vector<int64_t> y = site.Sizes(site.result()), k = site.Sizes(site.input(1));
  return {{y.begin(), y.end() - 2}, y[y.size() - 2], k[k.size() - 2], k.back(), y.back()};
}

bool IsFor(const Site& site) {
  if (site.region.outputs.size() != 1) return false;
  for (size_t i = 0; i < 3; ++i) {
    const graph::TensorType& x = site.input(i);
    if (!AreNumbers(x) || x.dtype.Bytes() != 2 || !WarpUnit(site.machine, x.dtype)) return false;
  }
  const std::vector<Expr>& own = site.result().dims;
  const std::vector<Expr>& dims = site.region.type(site.region.outputs[0]).dims;
  if (!std::equal(dims.begin(), dims.end(), own.begin(), own.end(), graph::ProveEqual))
    return false;
  const AttentionShape s = ShapeOf(site);
  const bool some = std::all_of(s.lead.begin(), s.lead.end(), [](int64_t d) { return d > 0; });
  return some && s.queries > 1 && s.keys > 0 && s.depth > 0 && s.depth % kRows == 0 &&
         s.depth <= kMostColumns && s.columns > 0 && s.columns % kRows == 0 &&
         s.columns <= kMostColumns;
}

Space SpaceOf(const Site& site) {
  const AttentionShape s = ShapeOf(site);
  Space space;
  const Expr warps = space.Add({"warps", {1, 2, 4}, false, true});
  const std::vector<int64_t> tiles =
      s.FitsWhole() ? std::vector<int64_t>{s.Whole()} : std::vector<int64_t>{32, 64};
  const Expr keys = space.Add({"keys", tiles, false, true});
  // Whole turns of all threads bring the keys and the values.
  const Expr turn = warps * IndexConst(32 * kPiece);
  const Expr rows = warps * IndexConst(kRows);
  space.Require(Eq(keys * IndexConst(s.depth) % turn, IndexConst(0)));
  space.Require(Eq(keys * IndexConst(s.columns) % turn, IndexConst(0)));
  // Of tiles there are those of both passes, two of each.
  const int64_t columns =
      s.FitsWhole() ? s.depth + s.columns + 2 * kPiece : 2 * s.depth + s.columns + 3 * kPiece;
  const Expr shared = keys * IndexConst(columns * 2);
  space.Require(
      Le(rows * IndexConst((s.depth + kPiece) * 2 + (s.columns + kPiece) * 4) + shared,
         IndexConst(std::min<int64_t>(site.machine.memory[0].capacity_bytes, 160 << 10))));
  return space;
}

std::vector<Want> Wants(const Site& site, const Point&) {
  std::vector<Want> wants;
  WantPlainResults(site, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  constexpr double kBlockCycles = 3000, kTileCycles = 500, kSoftmax = 12;
  const AttentionShape s = ShapeOf(site);
  const Machine& machine = site.machine;
  const ComputeUnit& unit = *WarpUnit(machine, site.input(0).dtype);
  const int64_t rows = ValueOf(point, "warps") * kRows;
  int64_t blocks = CeilDiv(s.queries, rows);
  for (int64_t d : s.lead) blocks *= d;
  const auto lanes = static_cast<double>(machine.VectorUnit(kF32).n);
  const double per_cycle =
      static_cast<double>(unit.m * unit.n * unit.k) * unit.per_second / machine.cycles_per_second;
  const auto all = static_cast<double>(blocks);
  const int64_t keys = s.AllKeys(point), passes = s.IsTiled(point) ? 2 : 1;
  const auto scores = static_cast<double>(rows * keys);
  const double products = scores * static_cast<double>(passes * s.depth + s.columns) / per_cycle;
  // Few warps keep a quarter of a multiprocessor's units busy each.
  const double together = std::clamp(all / static_cast<double>(machine.workers), 1.0, 4.0);
  const double busy = std::min(1.0, static_cast<double>(ValueOf(point, "warps")) * together / 8);
  WorkDescription work;
  work.team = machine.workers;
  work.tiles = blocks;
  // Tiles are waited for.
  const int64_t blocks_of_keys = keys / ValueOf(point, "keys");
  const auto turns = static_cast<double>(blocks_of_keys * passes);
  work.vector_ops =
      all * ((products / busy + (kBlockCycles + (turns - 1) * kTileCycles) / together) * lanes +
             scores * kSoftmax);
  work.bytes[1] = all * static_cast<double>(keys * (passes * s.depth + s.columns)) * 2;
  work.bytes[2] = BorderBytes(site.region);
  return work;
}

// Row and column of an index […, i, j].
Expr RowOf(const Indices& i) { return i[i.size() - 2]; }
Indices LeadOf(const Indices& i) { return {i.begin(), i.end() - 2}; }

// The lane of those of a row that has a column of a product's result.
Expr LaneOf(const Expr& column) { return column / 2 % kLanesOfRow; }

// What is made of scores has an axis of tiles of keys before its rows where there are several.
class Builder {
 public:
  Builder(Group& group, const graph::Node& node, const Point& point)
      : group_(group),
        op_(group.Context(node)),
        shape_(ShapeOf(group.site())),
        all_keys_(shape_.AllKeys(point)),
        tile_(ValueOf(point, "keys")),
        tiled_(shape_.IsTiled(point)) {
    for (int64_t d : shape_.lead) lead_.push_back(IndexConst(d));
    const int64_t rows = ValueOf(point, "warps") * kRows;
    rows_ = IndexConst(CeilDiv(shape_.queries, rows) * rows);
  }

  Operand Run() {
    const te::Tensor q = Tile("_q", 0, rows_, shape_.queries);
    const te::Tensor first = tiled_ ? OfRows("_max", Scores("_first", q), true) : te::Tensor();
    const te::Tensor masked = Scores("", q);
    const te::Tensor most = tiled_ ? first : OfRows("_max", masked, true);
    const te::Tensor v = Tile("_v", 2, IndexConst(all_keys_), shape_.keys);
    const te::Tensor grown = OfScores("_exp", BlockRole::kRow, [&](const Indices& i) {
      // Blocks stand in the order in which they are met: the first pass before the second.
      const Expr less = MakeConst(kF32, 0) - AtRow(most, i);
      return Call::Make(Intrinsic::kExp, {less + masked.At(i)});
    });
    const te::Tensor total = OfRows("_sum", grown, false);
    const DType narrow = op_.in[2].dtype;
    const te::Tensor weights = OfScores("_weights", BlockRole::kRow, [&](const Indices& i) {
      return CastExpr::Make(narrow, grown.At(i));
    });
    const Expr columns = IndexConst(shape_.columns);
    const te::Tensor sums = te::Compute(
        group_.Mark(Name("_pv"), BlockRole::kAnchor), Behind(lead_, {rows_, columns}),
        [&](const Indices& i) {
          const Axes axes = KeyAxes();
          te::Axis key = te::ReduceAxis("key", IndexConst(tile_));
          Indices at = LeadOf(i);
          for (const te::Axis& t : axes) at.push_back(t.var);
          const Expr weight = weights.At(Behind(at, {RowOf(i), key.var}));
          const Expr value =
              v.At(Behind(LeadOf(i), {KeyOf(Behind(at, {RowOf(i), key.var})), i.back()}));
          return te::Sum(CastExpr::Make(kF32, weight) * CastExpr::Make(kF32, value),
                         With(axes, {key}));
        });
    const te::Tensor made =
        te::Compute(group_.Mark(Name("_made"), BlockRole::kMove), Behind(lead_, {rows_, columns}),
                    [&](const Indices& i) { return Result(sums.At(i) / AtRow(total, i)); });
    return As(op_.out.dtype, {kF32, op_.out.dims, [made](const Indices& i) { return made.At(i); }});
  }

 private:
  using Axes = std::vector<te::Axis>;

  std::string Name(const std::string& suffix) const { return op_.name + suffix; }

  // The axis over tiles, where there is one.
  Axes KeyAxes() const {
    if (!tiled_) return {};
    return {te::ReduceAxis("tile", IndexConst(all_keys_ / tile_))};
  }
  static Axes With(Axes axes, const Axes& more) {
    axes.insert(axes.end(), more.begin(), more.end());
    return axes;
  }
  // Of an index of scores, [lead…, tile, i, j]: what is before the tile, and the key.
  Indices OuterOf(const Indices& i) const {
    return {i.begin(), i.begin() + static_cast<long>(lead_.size())};
  }
  Expr KeyOf(const Indices& i) const {
    return tiled_ ? i[lead_.size()] * tile_ + i.back() : i.back();
  }

  // The scores of a pass over the keys, masked.
  te::Tensor Scores(const std::string& pass, const te::Tensor& q) {
    const Expr keys = IndexConst(all_keys_), depth = IndexConst(shape_.depth);
    const te::Tensor by_key = Tile(pass + "_k", 1, keys, shape_.keys);
    const te::Tensor k = te::Compute(
        group_.Mark(Name(pass + "_turned"), BlockRole::kPack), Behind(lead_, {depth, keys}),
        [&](const Indices& i) { return by_key.At(Behind(LeadOf(i), {i.back(), RowOf(i)})); });
    const te::Tensor scores = OfScores(pass + "_qk", BlockRole::kAnchor, [&](const Indices& i) {
      te::Axis d = te::ReduceAxis("k", depth);
      const Expr query = q.At(Behind(OuterOf(i), {RowOf(i), d.var}));
      const Expr key = k.At(Behind(OuterOf(i), {d.var, KeyOf(i)}));
      return te::Sum(CastExpr::Make(kF32, query) * CastExpr::Make(kF32, key), {d});
    });
    return OfScores(pass + "_masked", BlockRole::kMasked,
                    [&](const Indices& i) { return Masked(scores.At(i), i); });
  }

  // Rows of an operand, as many as whole tiles have.
  te::Tensor Tile(const std::string& suffix, size_t input, const Expr& rows, int64_t size) {
    const Operand& x = op_.in[input];
    const bool ragged = AsInt(rows) != size;
    return te::Compute(group_.Mark(Name(suffix), BlockRole::kMove),
                       Behind(lead_, {rows, x.dims.back()}), [&](const Indices& i) {
                         Indices at = i;
                         Expr& row = at[at.size() - 2];
                         if (ragged) row = row % size;
                         return x.at(at);
                       });
  }

  te::Tensor OfScores(const std::string& suffix, BlockRole role,
                      const std::function<te::Body(const Indices&)>& element) {
    Indices lead = lead_;
    if (tiled_) lead.push_back(IndexConst(all_keys_ / tile_));
    return te::Compute(group_.Mark(Name(suffix), role), Behind(lead, {rows_, IndexConst(tile_)}),
                       [&](const Indices& i) { return element(i); });
  }

  Expr Masked(const Expr& score, const Indices& i) const {
    Expr value = score * MakeConst(kF32, op_.node->attrs.GetFloat("scale", 1));
    const bool ragged = all_keys_ != shape_.keys;
    if (op_.Has(3)) {
      Indices at =
          Behind(OuterOf(i), {RowOf(i), KeyOf(i)});  // what is behind the end: the last one
      Expr &row = at[at.size() - 2], &key = at.back();
      if (AsInt(rows_) != shape_.queries) row = Min(row, IndexConst(shape_.queries - 1));
      if (ragged) key = Min(key, IndexConst(shape_.keys - 1));
      std::vector<Expr> dims(op_.out.dims.begin(), op_.out.dims.end() - 1);
      dims.push_back(IndexConst(shape_.keys));
      const Operand& mask = op_.in[3];
      const Expr m = BroadcastAt(mask.dtype.IsBool() ? mask : As(kF32, mask), at, dims);
      value = m->dtype.IsBool() ? Select::Make(m, value, LowestOf(kF32)) : value + m;
    }
    if (!ragged) return value;
    return Select::Make(Lt(KeyOf(i), IndexConst(shape_.keys)), value, LowestOf(kF32));
  }

  // What each of the lanes of a row makes of its columns, and what all four make of that.
  te::Tensor OfRows(const std::string& suffix, const te::Tensor& x, bool is_max) {
    const Expr lanes = IndexConst(kLanesOfRow);
    const std::string name = Name(suffix);
    const te::Tensor own =
        te::Compute(group_.Mark(name + "_own", BlockRole::kLanes), Behind(lead_, {rows_, lanes}),
                    [&](const Indices& i) {
                      const Axes tiles = KeyAxes();
                      te::Axis piece = te::ReduceAxis("piece", IndexConst(tile_ / kPiece));
                      te::Axis part = te::ReduceAxis("part", IndexConst(2));
                      Indices at = LeadOf(i);
                      for (const te::Axis& t : tiles) at.push_back(t.var);
                      const Expr column = piece.var * kPiece + i.back() * 2 + part.var;
                      const Expr value = x.At(Behind(at, {RowOf(i), column}));
                      const Axes axes = With(tiles, {piece, part});
                      return is_max ? te::MaxOf(value, axes) : te::Sum(value, axes);
                    });
    return te::Compute(group_.Mark(name, BlockRole::kAcross), Behind(lead_, {rows_, lanes}),
                       [&](const Indices& i) {
                         const auto at = [&](int64_t lane) {
                           return own.At(Behind(LeadOf(i), {RowOf(i), IndexConst(lane)}));
                         };
                         if (is_max) return Max(Max(at(0), at(1)), Max(at(2), at(3)));
                         return (at(0) + at(1)) + (at(2) + at(3));
                       });
  }

  // Of what each row has, that of the row of an index of scores, or of results.
  Expr AtRow(const te::Tensor& x, const Indices& i) const {
    return x.At(Behind(OuterOf(i), {RowOf(i), LaneOf(i.back())}));
  }

  Expr Result(const Expr& y) const {
    if (!op_.node->attrs.Get<bool>("nan_to_zero", false)) return y;
    return Select::Make(Call::Make(Intrinsic::kIsNan, {y}), MakeConst(kF32, 0), y);
  }

  Group& group_;
  const OpContext op_;
  const AttentionShape shape_;
  const int64_t all_keys_, tile_;
  const bool tiled_;
  Expr rows_;
  Indices lead_;
};

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  return Builder(group, node, point).Run();
}

// Elements of fragments, each by the lane that has it.
void PlaceElements(Schedule& s, const std::string& block, const std::string& at) {
  s.SetScope(WrittenBuffer(s, block), Scope::kFragment);
  s.ComputeAt(block, at);
}

// A product's blocks: what it makes of tiles in shared memory.
struct ProductBlocks {
  std::string sums;
  std::string left;           // loads fragments of the left factor; "": it is in fragments
  std::string right, turned;  // turned: the block that reads the right factor by columns
  std::string load = "";      // and the one that loads its fragments
};
// The part of a product that is under the loop `at`, in the unit's steps; the fragments of its left
// factor are loaded at `left_at`, and its sums begin before `start` ("": with each part).
void ArrangeProduct(Schedule& s, const WarpSteps& steps, ProductBlocks* blocks,
                    const std::string& at, const std::string& left_at = "",
                    const std::string& start = "") {
  const ComputeUnit& unit = steps.unit();
  const std::string& sums = blocks->sums;
  const InnerLoops in = LoopsInside(s, sums, at);
  if (!s.ok()) return;
  const size_t r = in.spatial.size();
  const Names i = s.Split(in.spatial[r - 2], {-1, unit.m});
  const Names j = s.Split(in.spatial[r - 1], {-1, unit.n});
  const Names k = s.Split(in.reduce[0], {-1, unit.k});
  s.Reorder({k[0], i[0], j[0], i[1], j[1], k[1]});
  blocks->load = steps.Fragments(sums, blocks->right, blocks->turned);
  s.ComputeAt(blocks->load, k[0]);
  if (!blocks->left.empty()) s.ComputeAt(blocks->left, left_at.empty() ? k[0] : left_at);
  s.DecomposeReduction(sums, start.empty() ? k[0] : start);
}
// By the unit's operations; its tiles are where they stay.
void FeedProduct(Schedule& s, const WarpSteps& steps, const ProductBlocks& blocks) {
  steps.PadRows(blocks.right);
  if (!blocks.left.empty()) steps.LoadLeft(blocks.left);
  steps.LoadRight(blocks.load, !blocks.turned.empty());
  steps.Multiply(blocks.sums);
}

// What is made of rows: by each lane of its own elements, beginning before `start` ("": where its
// loops do), and by the lanes of a row of what each has.
void ReduceRows(Schedule& s, const std::string& own, const std::string& all, const std::string& row,
                const std::string& at, const std::string& start = "") {
  const Names loops = LoopsInside(s, all, at).spatial;
  if (!s.ok()) return;
  s.Tensorize(loops[loops.size() - 2], row);
  const Names of_own = LoopsInside(s, own, at).spatial;
  if (!s.ok()) return;
  // Each lane starts its elements in a nest of their own.
  s.DecomposeReduction(own, start.empty() ? of_own[0] : start);
}

struct AttentionBlocks {
  Names moves, products, rows, own, all, masked, packs;
};

// All keys at once.
void ScheduleWhole(Schedule& s, const WarpSteps& steps, const AttentionBlocks& b,
                   const std::string& block, const std::string& warp) {
  ReduceRows(s, b.own[0], b.all[0], "ptx.quad.max.f32", warp);
  ReduceRows(s, b.own[1], b.all[1], "ptx.quad.add.f32", warp);
  ProductBlocks pv = {b.products[1], "", b.moves[2], ""};
  ProductBlocks qk = {b.products[0], steps.Fragments(b.products[0], b.moves[0]), b.moves[1],
                      b.packs[0]};
  ArrangeProduct(s, steps, &pv, warp);
  ArrangeProduct(s, steps, &qk, warp);
  for (size_t i = 0; i < 3; ++i) s.ComputeAt(b.moves[i], block);
  steps.PadRows(b.moves[0]);
  FeedProduct(s, steps, pv);
  FeedProduct(s, steps, qk);
}

// Keys in tiles, each brought while the one before is used. The first pass goes from what it is for
// to what that needs; in the second, everything that is made of scores follows them into the loop
// over tiles.
void ScheduleTiles(Schedule& s, const WarpSteps& steps, const AttentionBlocks& b,
                   const std::string& block, const std::string& warp) {
  const InnerLoops most = LoopsInside(s, b.own[0], warp);
  const InnerLoops scores = LoopsInside(s, b.products[1], warp);
  if (!s.ok()) return;
  const std::string first = most.reduce[0];
  s.Reorder(Concat({{first}, most.spatial, {most.reduce[1], most.reduce[2]}}));
  s.ComputeAt(b.masked[0], first);
  s.ComputeAt(b.products[0], first);
  const std::string second = scores.spatial[scores.spatial.size() - 3];
  for (const std::string& made : {b.masked[1], b.rows[0], b.own[1], b.rows[1], b.products[2]})
    s.ReverseComputeAt(made, second);
  ReduceRows(s, b.own[0], b.all[0], "ptx.quad.max.f32", warp, first);
  ReduceRows(s, b.own[1], b.all[1], "ptx.quad.add.f32", warp, second);
  const auto query = [&](size_t product) {
    return steps.Fragments(b.products[product], b.moves[0]);
  };
  ProductBlocks pv = {b.products[2], "", b.moves[3], ""};
  ProductBlocks qk[] = {{b.products[0], query(0), b.moves[1], b.packs[0]},
                        {b.products[1], query(1), b.moves[2], b.packs[1]}};
  ArrangeProduct(s, steps, &pv, second, "", second);
  ArrangeProduct(s, steps, &qk[1], second, warp);
  ArrangeProduct(s, steps, &qk[0], first, warp);
  s.ComputeAt(b.moves[0], block);
  s.ComputeAt(b.moves[1], first);
  s.ComputeAt(b.moves[2], second);
  s.ComputeAt(b.moves[3], second);
  // Zeros, keys, products, masked; then the greatest, or exponentials, weights, values, products,
  // and sums of exponentials.
  s.SoftwarePipeline(first, {1, 0, 1, 1, 1}, {1, 0, 2, 3, 4});
  s.SoftwarePipeline(second, {1, 0, 1, 1, 1, 1, 0, 1, 1}, {2, 0, 3, 4, 5, 6, 1, 7, 8});
  steps.PadRows(b.moves[0]);
  for (const ProductBlocks& product : {pv, qk[1], qk[0]}) FeedProduct(s, steps, product);
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  const auto all_of = [&](BlockRole role) { return BlocksOf(s, parts, role); };
  // Of moves: q, k (of each pass), v, what is made; of products: q k (of each pass), p v.
  const AttentionBlocks b = {all_of(BlockRole::kMove),   all_of(BlockRole::kAnchor),
                             all_of(BlockRole::kRow),    all_of(BlockRole::kLanes),
                             all_of(BlockRole::kAcross), all_of(BlockRole::kMasked),
                             all_of(BlockRole::kPack)};
  const std::string store = OnlyBlock(s, parts, BlockRole::kOutput);
  const size_t passes = b.packs.size();
  if (!s.ok() || b.moves.size() != passes + 3 || b.products.size() != passes + 1) return;
  const int64_t warps = ValueOf(point, "warps");
  const WarpSteps steps(s, *WarpUnit(machine, WrittenType(s, b.moves[0])), warps, 1);
  const Names axes = s.GetLoops(store);
  const Names lead(axes.begin(), axes.end() - 2);
  const Names y = s.Split(axes[axes.size() - 2], {-1, warps * kRows});
  if (!s.ok()) return;
  if (!lead.empty()) s.Bind(lead.size() > 1 ? s.Fuse(lead) : lead[0], ThreadAxis::kBlockIdxY);
  s.Bind(y[0], ThreadAxis::kBlockIdxX);
  const std::string piece = steps.ShareOut(y[1], axes.back(), kPiece);
  s.Vectorize(piece);
  const std::string& made = b.moves.back();
  s.SetScope(WrittenBuffer(s, made), Scope::kShared);
  s.ComputeAt(made, y[0]);
  const Names tile = LoopsInside(s, made, y[0]).spatial;
  if (!s.ok()) return;
  s.StorageAlign(WrittenBuffer(s, made), WrittenRank(s, made) - 2, 32, 8);
  const std::string warp = steps.BindWarps(tile[tile.size() - 2], tile.back());
  // From the last to the first: what each needs is known then.
  Names of_warp = {b.products.back(), b.rows[1], b.all[1],    b.own[1],     b.rows[0],
                   b.all[0],          b.own[0],  b.masked[0], b.products[0]};
  if (passes > 1) of_warp = Concat({of_warp, {b.masked[1], b.products[1]}});
  for (const std::string& block : of_warp) PlaceElements(s, block, warp);
  if (passes > 1) {
    ScheduleTiles(s, steps, b, y[0], warp);
  } else {
    ScheduleWhole(s, steps, b, y[0], warp);
  }
  for (size_t i = 0; i + 1 < b.moves.size(); ++i) steps.BringTile(b.moves[i], kPiece);
}

constexpr OpKind kOps[] = {OpKind::kAttention};

}  // namespace

extern const Algorithm kWarpAttention;
const Algorithm kWarpAttention = {"warp_attention", kOps, IsFor, SpaceOf, Wants, Work, Build,
                                  ScheduleIt,       2};

}  // namespace tenon::ops
