// Attention by blocks of queries: for each head, the keys are transposed once so that scores come
// in vectors; then for each block of queries scores, softmax and the weighted sum of values run one
// after another in the nearest caches, and no matrix of scores is ever written to memory. (The keys
// of one head are assumed to fit the second-level cache; an online softmax over blocks of keys, as
// in FlashAttention, is for sequences beyond that.)
//
//   for heads: kt = transposed keys
//     for blocks of `rows` queries: scores = q · kt, masked; row maxima, exponentials, sums
//       for columns in tiles: out[rows, out_vectors · lanes] = exponentials · v
#include <algorithm>

#include "graph/dims.h"
#include "ops/group.h"
#include "ops/row_steps.h"
#include "ops/scheduling.h"
#include "ops/tiling.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

namespace {

const DType kF32 = DType::Float(32);
constexpr int64_t kMaxOpenRows = 8;

struct Shape {
  std::vector<int64_t> lead;  // heads; typical, as are queries and keys
  int64_t queries, keys, depth, width;
  std::vector<int64_t> least;  // of lead
  Expr all_queries, all_keys;

  int64_t Heads() const {
    int64_t n = 1;
    for (int64_t d : lead) n *= d;
    return n;
  }
};

std::optional<Shape> ReadShape(const Site& site) {
  const graph::TensorType &q = site.input(0), &k = site.input(1), &y = site.result();
  if (y.rank() < 3 || !(q.dtype == kF32) || !AsInt(q.dims.back()) || !AsInt(y.dims.back()))
    return std::nullopt;
  const std::vector<int64_t> sizes = site.Sizes(y);
  std::vector<int64_t> least = site.LeastSizes(y);
  least.resize(least.size() - 2);
  const Expr &queries = y.dims[y.dims.size() - 2], &keys = k.dims[k.dims.size() - 2];
  return Shape{{sizes.begin(), sizes.end() - 2},
               sizes[sizes.size() - 2],
               TypicalSize(site.region, keys),
               *AsInt(q.dims.back()),
               sizes.back(),
               std::move(least),
               queries,
               keys};
}

bool IsFor(const Site& site) {
  auto s = ReadShape(site);
  const int64_t lanes = site.machine.Lanes(kF32);
  if (!s || s->keys < lanes || s->width < lanes || site.machine.warp != 0) return false;
  // What follows has the result's shape.
  for (graph::ValueId v : site.region.outputs) {
    const std::vector<Expr>&dims = site.region.type(v).dims, &own = site.result().dims;
    if (!std::equal(dims.begin(), dims.end(), own.begin(), own.end(), graph::ProveEqual))
      return false;
  }
  return true;
}

Space SpaceOf(const Site& site) {
  const Shape s = *ReadShape(site);
  const int64_t lanes = site.machine.Lanes(kF32);
  Space space;
  const Expr scores =
      space.Add({"score_vectors", DivisorsOf(CeilDiv(s.keys, lanes), 8), false, true});
  const Expr out = space.Add({"out_vectors", DivisorsOf(CeilDiv(s.width, lanes), 8), false, true});
  // Where queries are not counted yet, there is code for every number of them below that.
  const bool is_open = !AreNumbers(site.result());
  const int64_t most = is_open ? std::min(kMaxOpenRows, s.queries) : s.queries;
  const Expr rows =
      space.Add({"rows", OneTo(std::min(most, site.machine.registers)), false, false});
  space.Require(FitsRegisters(rows, scores, site.machine));
  space.Require(FitsRegisters(rows, out, site.machine));
  AddParallelLoops(&space, TripCounts(s.lead, s.least), is_open);
  return space;
}

std::vector<Want> Wants(const Site& site, const Point&) {
  std::vector<Want> wants;
  WantPlainResults(site, &wants);
  return wants;
}

WorkDescription Work(const Site& site, const Point& point) {
  const Shape s = *ReadShape(site);
  const int64_t lanes = site.machine.Lanes(kF32), rows = ValueOf(point, "rows");
  const int64_t scores = ValueOf(point, "score_vectors"), out = ValueOf(point, "out_vectors");
  const auto heads = static_cast<double>(s.Heads());
  WorkDescription work;
  AddTiles(&work, 1, s.queries, 1, rows, scores,
           heads * static_cast<double>(CeilDiv(CeilDiv(s.keys, lanes), scores) * s.depth));
  AddTiles(&work, 1, s.queries, 1, rows, out,
           heads * static_cast<double>(CeilDiv(CeilDiv(s.width, lanes), out) * s.keys));
  // Scale, mask, maximum, exponential, sum.
  work.vector_ops = heads * static_cast<double>(s.queries * s.keys) * 15 + EpilogueElements(site);
  work.packed_bytes = heads * static_cast<double>(s.keys * s.depth) * 4;
  const double bytes = BorderBytes(site.region);
  work.bytes[site.machine.LevelFor(static_cast<int64_t>(bytes))] = bytes;
  ShareOut(&work, site.machine, s.lead, point);
  return work;
}

Indices With(const Indices& i, const Expr& row, const Expr& col) {
  Indices out(i.begin(), i.end() - 2);
  out.push_back(row);
  out.push_back(col);
  return out;
}

// The scores of queries against transposed keys, scaled and masked.
te::Tensor Scores(Group& group, const OpContext& op, const Shape& s,
                  const std::function<std::vector<Expr>(Expr, Expr)>& dims) {
  const Operand &q = op.in[0], &k = op.in[1];
  const size_t r = op.out.dims.size();
  Expr scale = MakeConst(q.dtype, op.node->attrs.GetFloat("scale", 1));
  te::Tensor packed = te::Compute(
      group.Mark(op.name + "_kt", BlockRole::kPack), dims(IndexConst(s.depth), s.all_keys),
      [&](const Indices& i) { return k.at(With(i, i[r - 1], i[r - 2])); });
  std::vector<Expr> scores(op.in[0].dims.begin(), op.in[0].dims.end() - 1);
  scores.push_back(k.dims[r - 2]);
  te::Tensor dot = te::Compute(
      group.Mark(op.name + "_qk", BlockRole::kScores), dims(s.all_queries, s.all_keys),
      [&](const Indices& i) {
        te::Axis d = te::ReduceAxis("d", IndexConst(s.depth));
        return te::Sum(q.at(With(i, i[r - 2], d.var)) * packed.At(With(i, d.var, i[r - 1])), {d});
      });
  return te::Compute(group.Mark(op.name + "_score", BlockRole::kMasked),
                     dims(s.all_queries, s.all_keys), [&](const Indices& i) -> te::Body {
                       Expr value = dot.At(i) * scale;
                       if (!op.Has(3)) return value;
                       Expr m = BroadcastAt(op.in[3], i, scores);
                       return m->dtype.IsBool() ? Select::Make(m, value, LowestOf(value->dtype))
                                                : value + m;
                     });
}

Operand Build(Group& group, const graph::Node& node, const Point&) {
  OpContext op = group.Context(node);
  const Operand& v = op.in[2];
  const Shape s = *ReadShape(group.site());
  const size_t r = op.out.dims.size();
  const int64_t lanes = group.site().machine.Lanes(kF32);
  const std::vector<Expr> lead(op.out.dims.begin(), op.out.dims.end() - 2);
  auto dims = [&](const Expr& a, const Expr& b) {
    std::vector<Expr> d = lead;
    d.push_back(a);
    d.push_back(b);
    return d;
  };
  const te::Tensor score = Scores(group, op, s, dims);
  const std::vector<Expr> rows = InRow(lead, s.all_queries);
  Operand m = ReduceRow(group, op.name + "_max", rows, s.all_keys, lanes, BinaryOp::kMax,
                        [&](const Indices& row, const Expr& j) { return score.At(InRow(row, j)); });
  te::Tensor e =
      te::Compute(group.Mark(op.name + "_exp", BlockRole::kRow), dims(s.all_queries, s.all_keys),
                  [&](const Indices& i) { return WeightOf(score.At(i) - m.at(RowOf(i))); });
  Operand sum = ReduceRow(group, op.name + "_sum", rows, s.all_keys, lanes, BinaryOp::kAdd,
                          [&](const Indices& row, const Expr& j) { return e.At(InRow(row, j)); });
  te::Tensor factor = te::Compute(group.Mark(op.name + "_factor", BlockRole::kFactor), rows,
                                  [&](const Indices& row) {
                                    Expr total = TotalOf(sum.at(row), s.all_keys);
                                    return MakeConst(total->dtype, 1) / total;
                                  });
  te::Tensor weighted = te::Compute(op.name, op.out.dims, [&](const Indices& i) {
    te::Axis j = te::ReduceAxis("j", s.all_keys);
    return te::Sum(e.At(With(i, i[r - 2], j.var)) * v.at(With(i, j.var, i[r - 1])), {j});
  });
  bool nan_to_zero = op.node->attrs.Get<bool>("nan_to_zero", false);
  return {op.out.dtype, op.out.dims, [weighted, factor, nan_to_zero](const Indices& i) {
            Expr y = weighted.At(i) * factor.At(RowOf(i));
            if (!nan_to_zero) return y;
            return Select::Make(Call::Make(Intrinsic::kIsNan, {y}), MakeConst(y->dtype, 0), y);
          }};
}

// The innermost loops of a plain block become vectors, tails masked.
void VectorizeLast(Schedule& s, const std::string& loop, int64_t lanes) {
  const int64_t extent = s.GetExtent(loop);  // -1: symbolic
  if (extent == lanes) {
    s.Vectorize(loop);
  } else if (extent < 0 || extent > lanes) {
    s.Vectorize(s.Tile(loop, lanes)[1]);
  }
}

// One reduction of a row in two steps, or the factor of a row, under the loop over the block's
// rows.
void ScheduleRowStep(Schedule& s, const std::string& block, BlockRole role, const std::string& at,
                     int64_t lanes) {
  s.SetScope(WrittenBuffer(s, block), Scope::kLocal);
  s.ComputeAt(block, at);
  InnerLoops in = LoopsInside(s, block, at);
  if (!s.ok()) return;
  if (role == BlockRole::kLanes) {
    // A row of one step has no loop over steps.
    if (!in.reduce.empty()) {
      s.Reorder(Concat({in.spatial.size() > 1 ? Names{in.spatial[0]} : Names{},
                        in.reduce,
                        {in.spatial.back()}}));
      std::string init = s.DecomposeReduction(block, in.reduce.at(0));
      s.Vectorize(s.GetLoops(init).back());
    }
    s.Vectorize(in.spatial.back());
  } else if (role == BlockRole::kAcross) {
    s.DecomposeReduction(block, in.reduce.at(0));
    s.Vectorize(in.reduce.at(0));
  } else if (role == BlockRole::kRow) {
    VectorizeLast(s, in.spatial.back(), lanes);
  }
}

void ScheduleRowSteps(Schedule& s, const Parts& parts, const std::string& at, int64_t lanes) {
  const Names blocks = s.GetBlocks();
  for (auto it = blocks.rbegin(); it != blocks.rend() && s.ok(); ++it) {
    const BlockRole role = PartOf(parts, *it).role;
    if (role == BlockRole::kLanes || role == BlockRole::kAcross || role == BlockRole::kRow ||
        role == BlockRole::kFactor) {
      ScheduleRowStep(s, *it, role, at, lanes);
    }
  }
}

// Scores of a block of queries, with scale and mask as they leave the registers.
void ScheduleScores(Schedule& s, const Parts& parts, const Machine& machine,
                    const std::string& at) {
  const int64_t lanes = machine.Lanes(kF32);
  const std::string masked = OnlyBlock(s, parts, BlockRole::kMasked);
  s.SetScope(WrittenBuffer(s, masked), Scope::kLocal);
  s.ComputeAt(masked, at);
  InnerLoops tile = LoopsInside(s, masked, at);
  if (!s.ok()) return;
  Names j = s.SplitBy(tile.spatial.back(), {"-1", "$score_vectors", std::to_string(lanes)});
  std::string query = tile.spatial.size() > 1 ? tile.spatial[tile.spatial.size() - 2] : "";
  s.Reorder(Concat({{j[0], query, j[1], j[2]}}));
  ComputeInRegisters(s, OnlyBlock(s, parts, BlockRole::kScores), j[0], "$score_vectors",
                     PlainKernel(machine, kF32), SIZE_MAX, {});
  if (!query.empty()) s.Unroll(query);
  s.Unroll(j[1]);
  s.Vectorize(j[2]);
}

void ScheduleIt(Schedule& s, const Parts& parts, const Machine& machine, const Point& point) {
  const int64_t lanes = machine.Lanes(kF32);
  Names axes = s.GetLoops(OnlyBlock(s, parts, BlockRole::kOutput));
  const size_t r = axes.size();
  Names i = s.SplitBy(axes[r - 2], {"-1", "$rows"});
  Names e = s.SplitBy(axes[r - 1], {"-1", "$out_vectors", std::to_string(lanes)});
  Names lead(axes.begin(), axes.end() - 2);
  s.Reorder(Concat({lead, {i[0], e[0], i[1], e[1], e[2]}}));
  // The weighted sum of values per tile of the output.
  ComputeInRegisters(s, OnlyBlock(s, parts, BlockRole::kAnchor), e[0], "$out_vectors",
                     PlainKernel(machine, kF32), SIZE_MAX, {});
  s.Unroll(i[1]);
  s.Unroll(e[1]);
  s.Vectorize(e[2]);
  ScheduleRowSteps(s, parts, i[0], lanes);
  ScheduleScores(s, parts, machine, i[0]);
  // Keys of a head, transposed. Reads run along memory, writes are scattered: each line is written
  // whole by then. Where keys are not counted yet, the last vector would be a gather of mostly
  // nothing.
  const std::string pack = OnlyBlock(s, parts, BlockRole::kPack);
  s.SetScope(WrittenBuffer(s, pack), Scope::kLocal);
  s.ComputeAt(pack, lead.back());
  if (!s.ok()) return;
  const Names packed = LoopsInside(s, pack, lead.back()).spatial;
  if (s.GetExtent(packed.back()) >= 0) {
    VectorizeLast(s, packed.back(), lanes);
  } else if (packed.size() > 1) {
    s.Reorder({packed[packed.size() - 1], packed[packed.size() - 2]});
  }
  ParallelFirst(s, lead, ValueOf(point, "parallel_loops"));
}

constexpr OpKind kOps[] = {OpKind::kAttention};

}  // namespace

extern const Algorithm kAttention;
const Algorithm kAttention = {"attention", kOps, IsFor, SpaceOf, Wants, Work, Build, ScheduleIt, 2};

}  // namespace tenon::ops
