// Attention by blocks of queries: for each head, the keys are transposed once so that scores come
// in vectors; then for each block of queries scores, softmax and the weighted sum of values run one
// after another in the nearest caches, and no matrix of scores is ever written to memory. (The keys
// of one head are assumed to fit the second-level cache; an online softmax over blocks of keys, as
// in FlashAttention, is for sequences beyond that.)
//
// Few queries, as in a step of a decoder, are not worth the transposition: there each score is a
// dot product of two rows, whose lanes are added up at its end ("keys_in_rows").
//
// Factors of 16 bits that the machine multiplies in pairs stay what they are: keys and values of a
// head are packed in panels whose pairs along the depth of each product are neighbours, queries are
// brought into rows, and exponentials are rounded before they are added up, so that the weights of
// a row are what the sum says.
//
//   for heads: kt = transposed keys
//     for blocks of `rows` queries: scores = q · kt, masked; row maxima, exponentials, sums
//       for columns in tiles: out[rows, out_vectors · lanes] = exponentials · v
//
//   for heads, queries: for keys: score = Σ lanes of q · k, masked
//     row maxima, …
#include <algorithm>

#include "graph/dims.h"
#include "ops/algorithm/attention_steps.h"
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
// Operations that add up the lanes of a vector: a shuffle and an addition each time that sixteen
// are halved.
constexpr int64_t kAddLanes = 8;

struct Shape {
  std::vector<int64_t> lead;  // heads; typical, as are queries and keys
  int64_t queries, keys, depth, width;
  std::vector<int64_t> least;  // of lead
  Expr all_queries, all_keys;
  MicroKernel kernel;

  bool IsPlain() const { return kernel.IsPlain(); }

  int64_t Heads() const {
    int64_t n = 1;
    for (int64_t d : lead) n *= d;
    return n;
  }
};

std::optional<Shape> ReadShape(const Site& site) {
  const graph::TensorType &q = site.input(0), &k = site.input(1), &y = site.result();
  if (y.rank() < 3 || !AsInt(q.dims.back()) || !AsInt(y.dims.back())) return std::nullopt;
  const auto kernel = VectorKernelFor(site.machine, q.dtype, k.dtype, kF32);
  if (!kernel || kernel->IsPlain() != (q.dtype == kF32)) return std::nullopt;
  const std::vector<int64_t> sizes = site.Sizes(y);
  std::vector<int64_t> least = site.LeastSizes(y);
  least.resize(least.size() - 2);
  const Expr &queries = y.dims[y.dims.size() - 2], &keys = k.dims[k.dims.size() - 2];
  if (!kernel->IsPlain() && (!AsInt(keys) || site.input(2).dtype != k.dtype)) return std::nullopt;
  return Shape{{sizes.begin(), sizes.end() - 2},
               sizes[sizes.size() - 2],
               TypicalSize(site.region, keys),
               *AsInt(q.dims.back()),
               sizes.back(),
               std::move(least),
               queries,
               keys,
               *kernel};
}

// Keys that a view has turned do not lie in rows: an element of one is as far from the next as all
// keys are long.
bool LieInRows(const graph::Graph& region, graph::ValueId keys) {
  for (graph::NodeId n = region.value(keys).producer; n != graph::kNoNode;
       n = region.value(keys).producer) {
    const graph::Node& view = region.node(n);
    if (view.op == OpKind::kTranspose) {
      const std::vector<int64_t> perm = view.attrs.GetInts("perm");
      if (perm.back() + 1 != static_cast<int64_t>(perm.size())) return false;
    } else if (view.op != OpKind::kReshape ||
               !graph::ProveEqual(region.type(keys).dims.back(),
                                  region.type(view.inputs[0]).dims.back())) {
      break;
    }
    keys = view.inputs[0];
  }
  return true;
}

bool IsFor(const Site& site) {
  auto s = ReadShape(site);
  const int64_t lanes = site.machine.Lanes(kF32);
  if (!s || s->keys < lanes || s->width < lanes || site.machine.warp != 0) return false;
  return FollowersHaveItsShape(site);
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
  const bool has_rows =
      s.IsPlain() && s.depth >= lanes && LieInRows(site.region, site.node().inputs[1]);
  const Expr in_rows =
      space.Add({"keys_in_rows", has_rows ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0},
                 false, true});
  space.Require(
      Or(Eq(in_rows, IndexConst(0)), And(Eq(rows, IndexConst(1)), Eq(scores, IndexConst(1)))));
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
  const int64_t depth = s.kernel.depth();
  WorkDescription work;
  work.unit = s.kernel.unit;
  const bool in_rows = ValueOf(point, "keys_in_rows") != 0;
  if (in_rows) {
    const double dots = heads * static_cast<double>(s.queries * s.keys);
    work.vector_ops = dots * static_cast<double>(s.depth + kAddLanes * lanes);
  } else {
    AddTiles(&work, 1, s.queries, 1, rows, scores,
             heads * static_cast<double>(CeilDiv(CeilDiv(s.keys, lanes), scores) *
                                         CeilDiv(s.depth, depth)));
  }
  AddTiles(
      &work, 1, s.queries, 1, rows, out,
      heads * static_cast<double>(CeilDiv(CeilDiv(s.width, lanes), out) * CeilDiv(s.keys, depth)));
  // Scale, mask, maximum, exponential, sum; and rounding to fewer bits.
  const double for_each = s.IsPlain() ? 15 : 23;
  work.vector_ops +=
      heads * static_cast<double>(s.queries * s.keys) * for_each + EpilogueElements(site);
  const int64_t packed = in_rows ? 0 : s.keys * (s.depth + (s.IsPlain() ? 0 : s.width));
  work.packed_bytes = heads * static_cast<double>(packed * s.kernel.unit.b.Bytes());
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

Indices LeadOf(const Indices& i, const Shape& s) {
  return {i.begin(), i.begin() + static_cast<long>(s.lead.size())};
}

// A second factor [steps, columns] of a product in panels of `columns` of them, whose steps are
// read one after another, neighbours along a step side by side. (Panel, step, column, neighbour.)
struct Panels {
  te::Tensor tensor;
  int64_t width, group;

  Expr At(const Indices& lead, const Expr& k, const Expr& column) const {
    const Expr w = IndexConst(width), g = IndexConst(group);
    return tensor.At(Behind(lead, {column / w, k / g, column % w, k % g}));
  }
};

Panels Pack(Group& group, const std::string& name, BlockRole role, const std::vector<Expr>& lead,
            const Shape& s, int64_t depth, int64_t columns, int64_t vectors,
            const std::function<Expr(const Indices& lead, const Expr& k, const Expr& column)>& at) {
  Panels p;
  p.width = vectors * s.kernel.lanes();
  p.group = s.kernel.depth();
  p.tensor = te::Compute(
      group.Mark(name, role),
      Behind(lead, {IndexConst(CeilDiv(columns, p.width)), IndexConst(CeilDiv(depth, p.group)),
                    IndexConst(p.width), IndexConst(p.group)}),
      [&](const Indices& i) -> te::Body {
        const size_t l = lead.size();
        return at(LeadOf(i, s), i[l + 1] * p.group + i[l + 3], i[l] * p.width + i[l + 2]);
      });
  return p;
}

int64_t Whole(int64_t n, int64_t block) { return CeilDiv(n, block) * block; }

// Of pairs: sums of products in the columns that fill the last panel, too, which nobody reads.
te::Tensor DotsOfPairs(Group& group, const OpContext& op, const Shape& s, int64_t vectors,
                       const std::vector<Expr>& lead) {
  const Operand &q = op.in[0], &k = op.in[1];
  const int64_t depth = Whole(s.depth, s.kernel.depth());
  const Expr keys = IndexConst(Whole(s.keys, vectors * s.kernel.lanes()));
  const Panels packed = Pack(group, op.name + "_kt", BlockRole::kPack, lead, s, s.depth, s.keys,
                             vectors, [&](const Indices& at, const Expr& d, const Expr& j) {
                               return PaddedAt(k, at, j, d, keys, IndexConst(depth));
                             });
  const size_t l = lead.size();
  te::Tensor rows = te::Compute(
      group.Mark(op.name + "_q", BlockRole::kQueries),
      Behind(lead, {s.all_queries, IndexConst(depth)}), [&](const Indices& i) -> te::Body {
        return PaddedAt(q, LeadOf(i, s), i[l], i[l + 1], s.all_queries, IndexConst(depth));
      });
  return te::Compute(group.Mark(op.name + "_qk", BlockRole::kScores, s.kernel.unit.row),
                     Behind(lead, {s.all_queries, keys}), [&](const Indices& i) {
                       te::Axis d = te::ReduceAxis("d", IndexConst(depth));
                       const Indices at = LeadOf(i, s);
                       return te::Sum(CastExpr::Make(kF32, rows.At(Behind(at, {i[l], d.var}))) *
                                          CastExpr::Make(kF32, packed.At(at, d.var, i[l + 1])),
                                      {d});
                     });
}

te::Tensor Dots(Group& group, const OpContext& op, const Shape& s,
                const std::function<std::vector<Expr>(Expr, Expr)>& dims) {
  const Operand &q = op.in[0], &k = op.in[1];
  const size_t r = op.out.dims.size();
  te::Tensor packed = te::Compute(
      group.Mark(op.name + "_kt", BlockRole::kPack), dims(IndexConst(s.depth), s.all_keys),
      [&](const Indices& i) { return k.at(With(i, i[r - 1], i[r - 2])); });
  return te::Compute(
      group.Mark(op.name + "_qk", BlockRole::kScores), dims(s.all_queries, s.all_keys),
      [&](const Indices& i) {
        te::Axis d = te::ReduceAxis("d", IndexConst(s.depth));
        return te::Sum(q.at(With(i, i[r - 2], d.var)) * packed.At(With(i, d.var, i[r - 1])), {d});
      });
}

Operand DotsOfRows(Group& group, const OpContext& op, const Shape& s,
                   const std::function<std::vector<Expr>(Expr, Expr)>& dims) {
  const Operand &q = op.in[0], &k = op.in[1];
  const int64_t width = PartialWidth(s.depth, group.site().machine.Lanes(kF32));
  return ReduceRow(group, op.name + "_qk", dims(s.all_queries, s.all_keys), IndexConst(s.depth),
                   width, BinaryOp::kAdd,
                   [&](const Indices& i, const Expr& d) {
                     return q.at(With(i, i[i.size() - 2], d)) * k.at(With(i, i.back(), d));
                   },
                   {BlockRole::kScoreLanes, BlockRole::kScores});
}

// The scores of queries against keys, scaled and masked.
te::Tensor Scores(Group& group, const OpContext& op, const Shape& s, const Point& point,
                  const std::function<std::vector<Expr>(Expr, Expr)>& dims) {
  const std::vector<Expr> lead(op.out.dims.begin(), op.out.dims.end() - 2);
  const Operand dot = ValueOf(point, "keys_in_rows") != 0 ? DotsOfRows(group, op, s, dims)
                      : s.IsPlain()
                          ? Read(Dots(group, op, s, dims))
                          : Read(DotsOfPairs(group, op, s, ValueOf(point, "score_vectors"), lead));
  return te::Compute(group.Mark(op.name + "_score", BlockRole::kMasked),
                     dims(s.all_queries, s.all_keys), [&](const Indices& i) -> te::Body {
                       return ScoreOf(op, i, dot.at(i), s.all_queries, s.all_keys);
                     });
}

Operand Build(Group& group, const graph::Node& node, const Point& point) {
  OpContext op = group.Context(node);
  const Operand& v = op.in[2];
  const Shape s = *ReadShape(group.site());
  const size_t r = op.out.dims.size();
  const std::vector<Expr> lead(op.out.dims.begin(), op.out.dims.end() - 2);
  auto dims = [&](const Expr& a, const Expr& b) {
    std::vector<Expr> d = lead;
    d.push_back(a);
    d.push_back(b);
    return d;
  };
  const te::Tensor score = Scores(group, op, s, point, dims);
  // Of whole steps of the second product.
  const Expr keys = graph::InBlocks(s.all_keys, s.kernel.depth());
  const auto [e, factor] = WeightsOfScores(group, op.name, score, InRow(lead, s.all_queries),
                                           s.all_keys, keys, s.kernel.unit.a);
  std::vector<Expr> columns = op.out.dims;
  std::function<Expr(const Indices&, const Expr&)> value = [&](const Indices& i, const Expr& j) {
    return v.at(With(i, j, i[r - 1]));
  };
  Panels packed;
  if (!s.IsPlain()) {
    const int64_t vectors = ValueOf(point, "out_vectors");
    columns.back() = IndexConst(Whole(s.width, vectors * s.kernel.lanes()));
    packed = Pack(group, op.name + "_v", BlockRole::kMove, lead, s, s.keys, s.width, vectors,
                  [&](const Indices& at, const Expr& j, const Expr& column) {
                    return PaddedAt(v, at, j, column, keys, columns.back());
                  });
    value = [&](const Indices& i, const Expr& j) {
      return CastExpr::Make(kF32, packed.At(LeadOf(i, s), j, i[r - 1]));
    };
  }
  group.Mark(op.name, BlockRole::kAnchor, s.kernel.unit.row);
  const te::Tensor weighted = te::Compute(op.name, columns, [&, e = e](const Indices& i) {
    te::Axis j = te::ReduceAxis("j", keys);
    return te::Sum(CastExpr::Make(kF32, e.At(With(i, i[r - 2], j.var))) * value(i, j.var), {j});
  });
  return ResultOf(op, Read(weighted), factor);
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
  const std::string dots = OnlyBlock(s, parts, BlockRole::kScores);
  ComputeInRegisters(s, dots, j[0], "$score_vectors",
                     KernelOf(machine, PartOf(parts, dots).row, kF32), SIZE_MAX, {});
  if (!query.empty() && s.GetExtent(query) >= 0) s.Unroll(query);  // else all open queries
  s.Unroll(j[1]);
  s.Vectorize(j[2]);
}

// Scores of one query, each a dot product of two rows.
void ScheduleDotsOfRows(Schedule& s, const Parts& parts, const std::string& at) {
  const std::string masked = OnlyBlock(s, parts, BlockRole::kMasked);
  s.SetScope(WrittenBuffer(s, masked), Scope::kLocal);
  s.ComputeAt(masked, at);
  const Names loops = LoopsInside(s, masked, at).spatial;
  if (!s.ok()) return;
  const std::string across = OnlyBlock(s, parts, BlockRole::kScores);
  const std::string partial = OnlyBlock(s, parts, BlockRole::kScoreLanes);
  for (const auto& [block, role] :
       {std::pair(across, BlockRole::kAcross), std::pair(partial, BlockRole::kLanes)}) {
    s.SetScope(WrittenBuffer(s, block), Scope::kRegister);
    s.ComputeAt(block, loops.back());
    VectorizeRowStep(s, block, role, loops.back(), /*lanes=*/0);  // sums are whole vectors
  }
}

// Keys of a head, transposed. Reads run along memory, writes are scattered: each line is written
// whole by then. Where keys are not counted yet, the last vector would be a gather of mostly
// nothing.
void ScheduleTransposedKeys(Schedule& s, const Parts& parts, const std::string& at, int64_t lanes) {
  const std::string pack = OnlyBlock(s, parts, BlockRole::kPack);
  s.SetScope(WrittenBuffer(s, pack), Scope::kLocal);
  s.ComputeAt(pack, at);
  if (!s.ok()) return;
  const Names packed = LoopsInside(s, pack, at).spatial;
  if (s.GetExtent(packed.back()) >= 0) {
    VectorizeLast(s, packed.back(), lanes);
  } else if (packed.size() > 1) {
    s.Reorder({packed[packed.size() - 1], packed[packed.size() - 2]});
  }
}

// Keys and values of a head in panels, and the queries of a block in rows. Pairs of keys are moved
// whole; those of values are neighbours of two rows.
void SchedulePairs(Schedule& s, const Parts& parts, const std::string& head,
                   const std::string& block, int64_t lanes) {
  const std::string queries = OnlyBlock(s, parts, BlockRole::kQueries);
  s.SetScope(WrittenBuffer(s, queries), Scope::kLocal);
  s.ComputeAt(queries, block);
  if (!s.ok()) return;
  VectorizeLast(s, LoopsInside(s, queries, block).spatial.back(), lanes);
  for (const BlockRole role : {BlockRole::kPack, BlockRole::kMove}) {
    const std::string pack = OnlyBlock(s, parts, role);
    s.SetScope(WrittenBuffer(s, pack), Scope::kLocal);
    s.ComputeAt(pack, head);
    if (!s.ok()) return;
    const Names loops = LoopsInside(s, pack, head).spatial;
    s.Unroll(loops.back());
    // Panel, step, column, neighbour.
    if (role == BlockRole::kPack && loops.size() > 3)
      s.Reorder({loops[loops.size() - 2], loops[loops.size() - 3], loops.back()});
  }
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
  const std::string anchor = OnlyBlock(s, parts, BlockRole::kAnchor);
  const MicroKernel kernel = KernelOf(machine, PartOf(parts, anchor).row, kF32);
  ComputeInRegisters(s, anchor, e[0], "$out_vectors", kernel, SIZE_MAX, {});
  s.Unroll(i[1]);
  s.Unroll(e[1]);
  s.Vectorize(e[2]);
  ScheduleRowSteps(s, parts, i[0], lanes);
  if (ValueOf(point, "keys_in_rows") != 0) {
    ScheduleDotsOfRows(s, parts, i[0]);
    return ParallelFirst(s, lead, ValueOf(point, "parallel_loops"));
  }
  ScheduleScores(s, parts, machine, i[0]);
  if (kernel.IsPlain()) {
    ScheduleTransposedKeys(s, parts, lead.back(), lanes);
  } else {
    SchedulePairs(s, parts, lead.back(), i[0], lanes);
  }
  ParallelFirst(s, lead, ValueOf(point, "parallel_loops"));
}

constexpr OpKind kOps[] = {OpKind::kAttention};

}  // namespace

extern const Algorithm kAttention;
const Algorithm kAttention = {"attention", kOps, IsFor, SpaceOf, Wants, Work, Build, ScheduleIt, 5};

}  // namespace tenon::ops
