#include "ops/algorithm/attention_steps.h"

#include <algorithm>

#include "graph/dims.h"
#include "ops/row_steps.h"

namespace tenon::ops {

using te::Indices;

namespace {

const DType kF32 = DType::Float(32);

bool IsRowStep(BlockRole role) {
  return role == BlockRole::kLanes || role == BlockRole::kAcross || role == BlockRole::kRow ||
         role == BlockRole::kFactor;
}

}  // namespace

Expr PaddedAt(const Operand& x, const Indices& lead, const Expr& row, const Expr& col,
              const Expr& rows, const Expr& cols) {
  const size_t r = x.dims.size();
  const auto is_padded = [&](const Expr& all, size_t axis) {
    return !graph::ProveEqual(all, x.dims[axis]);
  };
  Expr inside;
  if (is_padded(rows, r - 2)) inside = Lt(row, x.dims[r - 2]);
  if (is_padded(cols, r - 1)) {
    const Expr fits = Lt(col, x.dims[r - 1]);
    inside = inside ? And(inside, fits) : fits;
  }
  Indices at = lead;
  at.push_back(row);
  at.push_back(col);
  const Expr value = x.at(at);
  return inside ? Select::Make(inside, value, MakeConst(value->dtype, 0)) : value;
}

Expr ScoreOf(const OpContext& op, const Indices& i, Expr dot, const Expr& rows, const Expr& cols) {
  Expr value = std::move(dot) * MakeConst(kF32, op.node->attrs.GetFloat("scale", 1));
  if (!op.Has(3)) return value;
  const size_t r = op.out.dims.size();
  std::vector<Expr> scores(op.in[0].dims.begin(), op.in[0].dims.end() - 1);
  scores.push_back(op.in[1].dims[r - 2]);
  const Expr m = BroadcastAt(op.in[3], i, scores);
  Expr masked = m->dtype.IsBool() ? Select::Make(m, value, LowestOf(value->dtype))
                                  : value + CastExpr::Make(kF32, m);
  if (!graph::ProveEqual(cols, scores[r - 1]))
    masked = Select::Make(Lt(i[r - 1], scores[r - 1]), masked, value);
  if (!graph::ProveEqual(rows, scores[r - 2]))
    masked = Select::Make(Lt(i[r - 2], scores[r - 2]), masked, value);
  return masked;
}

AttentionWeights WeightsOfScores(Group& group, const std::string& name, const te::Tensor& score,
                                 const std::vector<Expr>& rows, const Expr& keys,
                                 const Expr& whole_keys, DType type) {
  const int64_t lanes = group.site().machine.Lanes(kF32);
  const int64_t width = PartialWidth(graph::TypicalSize(group.graph(), keys), lanes);
  const Operand m =
      ReduceRow(group, name + "_max", rows, keys, width, BinaryOp::kMax,
                [&](const Indices& row, const Expr& j) { return score.At(InRow(row, j)); });
  const bool is_padded = !graph::ProveEqual(whole_keys, keys);
  AttentionWeights out;
  out.weights = te::Compute(group.Mark(name + "_exp", BlockRole::kRow), InRow(rows, whole_keys),
                            [&](const Indices& i) -> te::Body {
                              Expr weight = WeightOf(score.At(i) - m.at(RowOf(i)));
                              if (is_padded)
                                weight = Select::Make(Lt(i.back(), keys), weight,
                                                      MakeConst(weight->dtype, 0));
                              return CastExpr::Make(type, weight);
                            });
  const Operand sum = ReduceRow(group, name + "_sum", rows, keys, width, BinaryOp::kAdd,
                                [&](const Indices& row, const Expr& j) {
                                  return CastExpr::Make(kF32, out.weights.At(InRow(row, j)));
                                });
  out.factor =
      te::Compute(group.Mark(name + "_factor", BlockRole::kFactor), rows, [&](const Indices& row) {
        Expr total = TotalOf(sum.at(row), keys);
        return MakeConst(total->dtype, 1) / total;
      });
  return out;
}

Operand ResultOf(const OpContext& op, const Operand& weighted, const te::Tensor& factor) {
  const bool nan_to_zero = op.node->attrs.Get<bool>("nan_to_zero", false);
  return As(op.out.dtype, {kF32, op.out.dims, [=](const Indices& i) {
                             Expr y = weighted.at(i) * factor.At(RowOf(i));
                             if (!nan_to_zero) return y;
                             return Select::Make(Call::Make(Intrinsic::kIsNan, {y}),
                                                 MakeConst(y->dtype, 0), y);
                           }});
}

bool FollowersHaveItsShape(const Site& site) {
  const std::vector<Expr>& own = site.result().dims;
  const std::vector<graph::ValueId>& outputs = site.region.outputs;
  return std::all_of(outputs.begin(), outputs.end(), [&](graph::ValueId v) {
    const std::vector<Expr>& dims = site.region.type(v).dims;
    return std::equal(dims.begin(), dims.end(), own.begin(), own.end(), graph::ProveEqual);
  });
}

void VectorizeRowStep(Schedule& s, const std::string& block, BlockRole role, const std::string& at,
                      int64_t lanes) {
  const InnerLoops in = LoopsInside(s, block, at);
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
    if (!IsRowStep(role)) continue;
    s.SetScope(WrittenBuffer(s, *it), Scope::kLocal);
    s.ComputeAt(*it, at);
    VectorizeRowStep(s, *it, role, at, lanes);
  }
}

void ScheduleRowByRow(Schedule& s, const Parts& parts, const std::string& at, int64_t lanes) {
  const std::string weights = OnlyBlock(s, parts, BlockRole::kRow);
  Names before, after;
  bool is_behind = false;
  for (const std::string& block : s.GetBlocks()) {
    const BlockRole role = PartOf(parts, block).role;
    if (!IsRowStep(role)) continue;
    const bool is_kept = role == BlockRole::kRow || role == BlockRole::kFactor;  // behind the row
    s.SetScope(WrittenBuffer(s, block), is_kept ? Scope::kLocal : Scope::kRegister);
    if (block == weights) {
      is_behind = true;
    } else {
      (is_behind ? after : before).push_back(block);
    }
  }
  for (auto it = after.rbegin(); it != after.rend(); ++it) s.ComputeAt(*it, at);
  s.ComputeAt(weights, at);
  const Names loops = LoopsInside(s, weights, at).spatial;
  if (!s.ok()) return;
  const std::string& row = loops[0];
  for (auto it = before.rbegin(); it != before.rend(); ++it) {
    s.ComputeAt(*it, row);
    VectorizeRowStep(s, *it, PartOf(parts, *it).role, row, lanes);
  }
  for (const std::string& block : after) {
    s.ReverseComputeAt(block, row);
    VectorizeRowStep(s, block, PartOf(parts, block).role, row, lanes);
  }
  VectorizeLast(s, loops.back(), lanes);
}

void VectorizeLast(Schedule& s, const std::string& loop, int64_t lanes) {
  const int64_t extent = s.GetExtent(loop);  // -1: symbolic
  if (extent == lanes) {
    s.Vectorize(loop);
  } else if (extent < 0 || extent > lanes) {
    s.Vectorize(s.Tile(loop, lanes)[1]);
  }
}

}  // namespace tenon::ops
