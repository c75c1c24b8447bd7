// Attention as one kernel, where a warp's units multiply (warp_steps.h) and a row's scores fit in
// its registers. A warp has 16 rows of queries. The scores of these with all keys are one product's
// result; their softmax is taken where they lie, and is the left factor of the next product. Each
// lane has its part of a row: it reduces that, and the four lanes that share the row exchange what
// they got (Dao et al., "FlashAttention", 2022, without its loop over keys).
//
//   out[…, i, j]  →  blocks over …, i / rows: warps over 16 rows each
//                      queries, keys and values to shared memory
//                      scores[16, keys] = q · k; masked; most, exponentials and their sums by row
//                      out = weights · v / sums, through shared memory
//
// Rows and keys behind the end read the last one: such rows are not stored, such keys weigh
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
constexpr int64_t kMostKeys = 256, kMostColumns = 128;

struct AttentionShape {
  std::vector<int64_t> lead;
  int64_t queries = 0, keys = 0, depth = 0, columns = 0;

  int64_t AllKeys() const { return CeilDiv(keys, kRows) * kRows; }
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
  return some && s.queries > 1 && s.keys > 0 && s.keys <= kMostKeys && s.depth > 0 &&
         s.depth % kRows == 0 && s.depth <= kMostColumns && s.columns > 0 &&
         s.columns % kRows == 0 && s.columns <= kMostColumns &&
         s.AllKeys() / 2 + s.columns / 2 <= 160;
}

Space SpaceOf(const Site& site) {
  const AttentionShape s = ShapeOf(site);
  Space space;
  const Expr warps = space.Add({"warps", {1, 2, 4}, false, true});
  // Whole turns of all threads bring the keys and the values.
  const Expr turn = warps * IndexConst(32 * kPiece);
  const Expr rows = warps * IndexConst(kRows);
  space.Require(Eq(IndexConst(s.AllKeys() * s.depth) % turn, IndexConst(0)));
  space.Require(Eq(IndexConst(s.AllKeys() * s.columns) % turn, IndexConst(0)));
  const int64_t shared = s.AllKeys() * (s.depth + s.columns + 2 * kPiece) * 2;
  space.Require(
      Le(rows * IndexConst((s.depth + kPiece) * 2 + (s.columns + kPiece) * 4) + IndexConst(shared),
         IndexConst(std::min<int64_t>(site.machine.memory[0].capacity_bytes, 160 << 10))));
  return space;
}

std::vector<Want> Wants(const Site& site, const Point&) {
  std::vector<Want> wants;
  WantPlainResults(site, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  constexpr double kBlockCycles = 3000, kSoftmax = 12;
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
  const auto scores = static_cast<double>(rows * s.AllKeys());
  const double products = scores * static_cast<double>(s.depth + s.columns) / per_cycle;
  // Few warps keep a quarter of a multiprocessor's units busy each.
  const double together = std::clamp(all / static_cast<double>(machine.workers), 1.0, 4.0);
  const double busy = std::min(1.0, static_cast<double>(ValueOf(point, "warps")) * together / 8);
  WorkDescription work;
  work.team = machine.workers;
  work.tiles = blocks;
  work.vector_ops = all * ((products / busy + kBlockCycles / together) * lanes + scores * kSoftmax);
  work.bytes[1] = all * static_cast<double>(s.AllKeys() * (s.depth + s.columns)) * 2;
  work.bytes[2] = BorderBytes(site.region);
  return work;
}

Indices Behind(Indices lead, const Expr& a, const Expr& b) {
  lead.push_back(a);
  lead.push_back(b);
  return lead;
}

// Row and column of an index […, i, j].
Expr RowOf(const Indices& i) { return i[i.size() - 2]; }
Indices LeadOf(const Indices& i) { return {i.begin(), i.end() - 2}; }

// The lane of those of a row that has a column of a product's result.
Expr LaneOf(const Expr& column) { return column / 2 % kLanesOfRow; }

class Builder {
 public:
  Builder(Group& group, const graph::Node& node, const Point& point)
      : group_(group),
        op_(group.Context(node)),
        shape_(ShapeOf(group.site())),
        keys_(IndexConst(shape_.AllKeys())) {
    for (int64_t d : shape_.lead) lead_.push_back(IndexConst(d));
    const int64_t rows = ValueOf(point, "warps") * kRows;
    rows_ = IndexConst(CeilDiv(shape_.queries, rows) * rows);
  }

  Operand Run() {
    const te::Tensor q = Tile("_q", 0, rows_, shape_.queries);
    const te::Tensor by_key = Tile("_k", 1, keys_, shape_.keys);
    const te::Tensor k = te::Compute(
        group_.Mark(Name("_turned"), BlockRole::kPack),
        Behind(lead_, IndexConst(shape_.depth), keys_),
        [&](const Indices& i) { return by_key.At(Behind(LeadOf(i), i.back(), RowOf(i))); });
    const te::Tensor v = Tile("_v", 2, keys_, shape_.keys);
    const te::Tensor scores =
        Product("_qk", keys_, IndexConst(shape_.depth),
                [&](const Indices& lead, const Expr& i, const Expr& j, const Expr& d) {
                  return std::pair(q.At(Behind(lead, i, d)), k.At(Behind(lead, d, j)));
                });
    const te::Tensor masked = Stage("_masked", BlockRole::kMasked, keys_,
                                    [&](const Indices& i) { return Masked(scores.At(i), i); });
    const te::Tensor most = OfRows("_max", masked, true);
    const te::Tensor grown = Stage("_exp", BlockRole::kRow, keys_, [&](const Indices& i) {
      return Call::Make(Intrinsic::kExp, {masked.At(i) - AtRow(most, i)});
    });
    const te::Tensor total = OfRows("_sum", grown, false);
    const DType narrow = op_.in[2].dtype;
    const te::Tensor weights = Stage("_weights", BlockRole::kRow, keys_, [&](const Indices& i) {
      return CastExpr::Make(narrow, grown.At(i));
    });
    const Expr columns = IndexConst(shape_.columns);
    const te::Tensor sums =
        Product("_pv", columns, keys_,
                [&](const Indices& lead, const Expr& i, const Expr& j, const Expr& key) {
                  return std::pair(weights.At(Behind(lead, i, key)), v.At(Behind(lead, key, j)));
                });
    const te::Tensor made = Stage("_made", BlockRole::kMove, columns, [&](const Indices& i) {
      return Result(sums.At(i) / AtRow(total, i));
    });
    return As(op_.out.dtype, {kF32, op_.out.dims, [made](const Indices& i) { return made.At(i); }});
  }

 private:
  std::string Name(const char* suffix) const { return op_.name + suffix; }

  // Rows of an operand, as many as whole tiles have.
  te::Tensor Tile(const char* suffix, size_t input, const Expr& rows, int64_t size) {
    const Operand& x = op_.in[input];
    const bool ragged = AsInt(rows) != size;
    return te::Compute(group_.Mark(Name(suffix), BlockRole::kMove),
                       Behind(lead_, rows, x.dims.back()), [&](const Indices& i) {
                         Indices at = i;
                         Expr& row = at[at.size() - 2];
                         if (ragged) row = Min(row, IndexConst(size - 1));
                         return x.at(at);
                       });
  }

  te::Tensor Stage(const char* suffix, BlockRole role, const Expr& columns,
                   const std::function<Expr(const Indices&)>& element) {
    return te::Compute(group_.Mark(Name(suffix), role), Behind(lead_, rows_, columns),
                       [&](const Indices& i) { return element(i); });
  }

  using Factors = std::function<std::pair<Expr, Expr>(const Indices& lead, const Expr& i,
                                                      const Expr& j, const Expr& k)>;
  te::Tensor Product(const char* suffix, const Expr& columns, const Expr& depth,
                     const Factors& factors) {
    return te::Compute(group_.Mark(Name(suffix), BlockRole::kAnchor), Behind(lead_, rows_, columns),
                       [&](const Indices& i) {
                         te::Axis k = te::ReduceAxis("k", depth);
                         const auto [a, b] = factors(LeadOf(i), RowOf(i), i.back(), k.var);
                         return te::Sum(CastExpr::Make(kF32, a) * CastExpr::Make(kF32, b), {k});
                       });
  }

  Expr Masked(const Expr& score, const Indices& i) const {
    Expr value = score * MakeConst(kF32, op_.node->attrs.GetFloat("scale", 1));
    const bool ragged = shape_.AllKeys() != shape_.keys;
    if (op_.Has(3)) {
      Indices at = i;  // what is behind the end reads the last one
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
    return Select::Make(Lt(i.back(), IndexConst(shape_.keys)), value, LowestOf(kF32));
  }

  // What each of the lanes of a row makes of its columns, and what all four make of that.
  te::Tensor OfRows(const char* suffix, const te::Tensor& x, bool is_max) {
    const Expr lanes = IndexConst(kLanesOfRow);
    const std::string name = Name(suffix);
    const te::Tensor own = te::Compute(
        group_.Mark(name + "_own", BlockRole::kLanes), Behind(lead_, rows_, lanes),
        [&](const Indices& i) {
          te::Axis piece = te::ReduceAxis("piece", IndexConst(shape_.AllKeys() / kPiece));
          te::Axis part = te::ReduceAxis("part", IndexConst(2));
          const Expr column = piece.var * kPiece + i.back() * 2 + part.var;
          const Expr value = x.At(Behind(LeadOf(i), RowOf(i), column));
          return is_max ? te::MaxOf(value, {piece, part}) : te::Sum(value, {piece, part});
        });
    return te::Compute(group_.Mark(name, BlockRole::kAcross), Behind(lead_, rows_, lanes),
                       [&](const Indices& i) {
                         const auto at = [&](int64_t lane) {
                           return own.At(Behind(LeadOf(i), RowOf(i), IndexConst(lane)));
                         };
                         if (is_max) return Max(Max(at(0), at(1)), Max(at(2), at(3)));
                         return (at(0) + at(1)) + (at(2) + at(3));
                       });
  }

  static Expr AtRow(const te::Tensor& x, const Indices& i) {
    return x.At(Behind(LeadOf(i), RowOf(i), LaneOf(i.back())));
  }

  Expr Result(const Expr& y) const {
    if (!op_.node->attrs.Get<bool>("nan_to_zero", false)) return y;
    return Select::Make(Call::Make(Intrinsic::kIsNan, {y}), MakeConst(kF32, 0), y);
  }

  Group& group_;
  const OpContext op_;
  const AttentionShape shape_;
  const Expr keys_;
  Expr rows_;
  Indices lead_;
};

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  return Builder(group, node, point).Run();
}

// One of the two products, in fragments of the warp at `at`.
void ScheduleProduct(Schedule& s, const WarpSteps& steps, const std::string& sums,
                     const std::string& left, const std::string& right, const std::string& turned,
                     const std::string& at) {
  const ComputeUnit& unit = steps.unit();
  s.SetScope(WrittenBuffer(s, sums), Scope::kFragment);
  s.ComputeAt(sums, at);
  const InnerLoops in = LoopsInside(s, sums, at);
  if (!s.ok()) return;
  const size_t r = in.spatial.size();
  const Names i = s.Split(in.spatial[r - 2], {-1, unit.m});
  const Names j = s.Split(in.spatial[r - 1], {-1, unit.n});
  const Names k = s.Split(in.reduce[0], {-1, unit.k});
  s.Reorder({k[0], i[0], j[0], i[1], j[1], k[1]});
  std::string load_left, load_right = steps.Fragments(sums, right, turned);
  s.ComputeAt(load_right, k[0]);
  if (!left.empty()) {
    load_left = steps.Fragments(sums, left);
    s.ComputeAt(load_left, k[0]);
  }
  s.DecomposeReduction(sums, k[0]);
  steps.PadRows(right);
  if (!left.empty()) {
    steps.PadRows(left);
    steps.LoadLeft(load_left);
  }
  steps.LoadRight(load_right, !turned.empty());
  steps.Multiply(sums);
}

// Elements of fragments, each by the lane that has it.
void ScheduleElements(Schedule& s, const std::string& block, const std::string& at) {
  s.SetScope(WrittenBuffer(s, block), Scope::kFragment);
  s.ComputeAt(block, at);
}

void ScheduleOfRows(Schedule& s, const std::string& own, const std::string& all,
                    const std::string& row, const std::string& at) {
  ScheduleElements(s, all, at);
  ScheduleElements(s, own, at);
  const Names loops = LoopsInside(s, all, at).spatial;
  if (!s.ok()) return;
  s.Tensorize(loops[loops.size() - 2], row);
  const Names of_own = LoopsInside(s, own, at).spatial;
  if (!s.ok()) return;
  s.DecomposeReduction(own, of_own[0]);  // each lane starts its elements in a nest of their own
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  const Names moves = BlocksOf(s, parts, BlockRole::kMove);       // q, k, v, what is made
  const Names products = BlocksOf(s, parts, BlockRole::kAnchor);  // q k, p v
  const Names rows = BlocksOf(s, parts, BlockRole::kRow);         // exponentials, weights
  const Names own = BlocksOf(s, parts, BlockRole::kLanes),
              all = BlocksOf(s, parts, BlockRole::kAcross);
  const std::string store = OnlyBlock(s, parts, BlockRole::kOutput);
  if (!s.ok() || moves.size() != 4 || products.size() != 2) return;
  const int64_t warps = ValueOf(point, "warps");
  const WarpSteps steps(s, *WarpUnit(machine, WrittenType(s, moves[0])), warps, 1);
  const Names axes = s.GetLoops(store);
  const Names lead(axes.begin(), axes.end() - 2);
  const Names y = s.Split(axes[axes.size() - 2], {-1, warps * kRows});
  if (!s.ok()) return;
  if (!lead.empty()) s.Bind(lead.size() > 1 ? s.Fuse(lead) : lead[0], ThreadAxis::kBlockIdxY);
  s.Bind(y[0], ThreadAxis::kBlockIdxX);
  const std::string piece = steps.ShareOut(y[1], axes.back(), kPiece);
  s.Vectorize(piece);
  s.SetScope(WrittenBuffer(s, moves[3]), Scope::kShared);
  s.ComputeAt(moves[3], y[0]);
  const Names tile = LoopsInside(s, moves[3], y[0]).spatial;
  if (!s.ok()) return;
  s.StorageAlign(WrittenBuffer(s, moves[3]), WrittenRank(s, moves[3]) - 2, 32, 8);
  const std::string warp = steps.BindWarps(tile[tile.size() - 2], tile.back());
  s.SetScope(WrittenBuffer(s, rows[1]), Scope::kFragment);  // a factor as it is
  // From the last to the first: what each needs is known then.
  ScheduleProduct(s, steps, products[1], "", moves[2], "", warp);
  ScheduleElements(s, rows[1], warp);
  ScheduleOfRows(s, own[1], all[1], "ptx.quad.add.f32", warp);
  ScheduleElements(s, rows[0], warp);
  ScheduleOfRows(s, own[0], all[0], "ptx.quad.max.f32", warp);
  ScheduleElements(s, OnlyBlock(s, parts, BlockRole::kMasked), warp);
  ScheduleProduct(s, steps, products[0], moves[0], moves[1], OnlyBlock(s, parts, BlockRole::kPack),
                  warp);
  for (size_t i = 0; i < 3; ++i) {
    s.ComputeAt(moves[i], y[0]);
    steps.BringTile(moves[i], kPiece);
  }
}

constexpr OpKind kOps[] = {OpKind::kAttention};

}  // namespace

extern const Algorithm kWarpAttention;
const Algorithm kWarpAttention = {"warp_attention", kOps, IsFor, SpaceOf, Wants, Work, Build,
                                  ScheduleIt};

}  // namespace tenon::ops
