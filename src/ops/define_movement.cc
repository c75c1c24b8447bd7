// Movement operators: which element of which operand stands where.
//
// A definition is a function from the result's indices to an element, so it costs no memory: what
// reads the result reads the operand at other indices. They are made so that little is left to be
// simplified: a reshape is cut into runs of axes with the same number of elements, and what did not
// change keeps its index. A reshape of f32[5, 6, 4] to f32[5, 3, 8] is
//
//   out0[vi0, vi1, vi2] = in0[vi0, (vi1 * 8 + vi2) / 4, (vi1 * 8 + vi2) % 4]
//
// Where an element comes from one of several places, all are expressions and one is selected; the
// indices of the others are clamped, since each of them must be inside. A concat of f32[2] and
// f32[3] is
//
//   out0[vi0] = select(vi0 < 2, in0[max(min(vi0, 1), 0)], in1[max(min(vi0 - 2, 2), 0)])
#include <algorithm>

#include "graph/dims.h"
#include "ops/define.h"
#include "support/check.h"

namespace tenon::ops {

using graph::OpKind;
using te::Indices;

static const std::vector<Expr>& Exprs(const OpContext& op, const char* name) {
  auto it = op.node->exprs.find(name);
  TN_CHECK(it != op.node->exprs.end(), "{} lacks {}", graph::Name(op.node->op), name);
  return it->second;
}

/// A run of axes on each side of a reshape that have the same number of elements: [begin, end).
struct Regrouped {
  size_t from_begin, from_end, to_begin, to_end;
};

// The shortest such runs from these places on, for sizes that are numbers: the smaller product
// grows.
static Regrouped NextOfNumbers(const std::vector<int64_t>& from, const std::vector<int64_t>& to,
                               Regrouped r) {
  auto take = [](const std::vector<int64_t>& dims, size_t* at) {
    return *at < dims.size() ? dims[(*at)++] : 1;
  };
  int64_t pf = take(from, &r.from_end), pt = take(to, &r.to_end);
  while (pf != pt && (r.from_end < from.size() || r.to_end < to.size())) {
    const bool grow_from = pf < pt && r.from_end < from.size();
    if (grow_from || r.to_end >= to.size()) {
      pf *= take(from, &r.from_end);
    } else {
      pt *= take(to, &r.to_end);
    }
  }
  return r;
}

// The same where sizes are symbolic: the first runs whose products are equal for all sizes, which
// all that is left has by the operator's type rule.
static Regrouped NextOfSizes(const std::vector<Expr>& from, const std::vector<Expr>& to,
                             Regrouped r) {
  const size_t f = r.from_begin, t = r.to_begin;
  const size_t most_from = from.size() - f, most_to = to.size() - t;
  for (size_t total = 1; total < most_from + most_to; ++total) {
    for (size_t nf = total - std::min(total, most_to); nf <= std::min(total, most_from); ++nf) {
      r.from_end = f + nf;
      r.to_end = t + (total - nf);
      if (graph::ProveEqual(graph::DimProduct({from.data() + f, nf}),
                            graph::DimProduct({to.data() + t, total - nf})))
        return r;
    }
  }
  r.from_end = from.size();
  r.to_end = to.size();
  return r;
}

static std::vector<Regrouped> Regroup(const std::vector<Expr>& from, const std::vector<Expr>& to) {
  const auto from_numbers = graph::TensorType{{}, from, nullptr, {}}.StaticDims();
  const auto to_numbers = graph::TensorType{{}, to, nullptr, {}}.StaticDims();
  std::vector<Regrouped> out;
  Regrouped next{0, 0, 0, 0};
  while (next.from_begin < from.size() || next.to_begin < to.size()) {
    next = from_numbers && to_numbers ? NextOfNumbers(*from_numbers, *to_numbers, next)
                                      : NextOfSizes(from, to, next);
    out.push_back(next);
    next = {next.from_end, next.from_end, next.to_end, next.to_end};
  }
  return out;
}

// Indices into `from` of the element whose row-major position in `to` is `at`. Dims are matched in
// groups of equal product, so that axes that do not change keep their index and only regrouped ones
// cost divisions.
static Indices ReshapeIndices(const std::vector<Expr>& from, const std::vector<Expr>& to,
                              const Indices& at) {
  Indices out(from.size());
  for (const Regrouped& r : Regroup(from, to)) {
    std::vector<Expr> to_dims(to.begin() + static_cast<long>(r.to_begin),
                              to.begin() + static_cast<long>(r.to_end));
    std::vector<Expr> from_dims(from.begin() + static_cast<long>(r.from_begin),
                                from.begin() + static_cast<long>(r.from_end));
    Indices part(at.begin() + static_cast<long>(r.to_begin),
                 at.begin() + static_cast<long>(r.to_end));
    if (from_dims.size() == 1 && to_dims.size() == 1) {
      out[r.from_begin] = part[0];
      continue;
    }
    Indices split = Delinearize(Linearize(part, to_dims), from_dims);
    for (size_t i = 0; i < split.size(); ++i)
      out[r.from_begin + i] = IsOne(from_dims[i]) ? IndexConst(0) : split[i];
  }
  return out;
}

static Expr DefineSlice(const OpContext& op, const Indices& out) {
  std::vector<int64_t> steps = op.node->attrs.GetInts("steps");
  Indices in;
  for (size_t i = 0; i < out.size(); ++i) in.push_back(Exprs(op, "starts")[i] + out[i] * steps[i]);
  return op.in[0].at(in);
}

static Expr DefineConcat(const OpContext& op, const Indices& out) {
  size_t axis = static_cast<size_t>(op.Int("axis"));
  Expr start = IndexConst(0), value;
  std::vector<Expr> starts;
  for (const Operand& x : op.in) {
    starts.push_back(start);
    start = start + x.dims[axis];
  }
  for (size_t i = op.in.size(); i-- > 0;) {
    Indices in = out;
    // Clamped, so that the branch not taken stays in bounds.
    Expr last = op.in[i].dims[axis] - 1;
    in[axis] = op.in.size() == 1 ? out[axis] : Max(Min(out[axis] - starts[i], last), IndexConst(0));
    if (IsZero(op.in[i].dims[axis])) continue;
    Expr element = op.in[i].at(in);
    value = value ? Select::Make(Lt(out[axis], starts[i] + op.in[i].dims[axis]), element, value)
                  : element;
  }
  return value ? value : MakeConst(op.out.dtype, 0);
}

static Expr Clamp(const Expr& i, const Expr& dim) { return Max(Min(i, dim - 1), IndexConst(0)); }

// Position in an operand's axis of padded coordinate `i` (already less the begin pad), by mode.
// What negative pads leave is what the others repeat. Where nothing is repeated, it is `i` itself:
// a loop is cut there, and neighbours are read together.
static Expr PadIndex(const std::string& mode, const Expr& i, const Expr& dim, const Expr& before,
                     const Expr& after) {
  const Expr zero = IndexConst(0), first = Max(zero - before, zero);
  const Expr left = dim - first - Max(zero - after, zero);
  const auto unless_inside = [&](const Expr& index) {
    return Select::Make(And(Ge(i, first), Lt(i, first + left)), i, index);
  };
  if (mode == "wrap") return unless_inside(first + (i - first) % left);
  if (mode != "reflect") return unless_inside(Clamp(i, dim));
  const Expr period = Max(left * 2 - 2, IndexConst(1));
  const Expr m = (i - first) % period;
  return unless_inside(first + Min(m, period - m));
}

static Expr DefinePad(const OpContext& op, const Indices& out) {
  const std::vector<Expr>& pads = Exprs(op, "pads");
  const auto may_grow = [](const Expr& pad) { return AsInt(pad).value_or(1) > 0; };
  std::string mode = op.node->attrs.GetString("mode");
  Indices in;
  Expr inside = BoolConst(true);
  bool guarded = false;
  for (size_t i = 0; i < out.size(); ++i) {
    Expr at = out[i] - pads[i];
    const bool grows = may_grow(pads[i]) || may_grow(pads[out.size() + i]);
    if (mode == "constant" && grows) {
      Expr ok = And(Ge(at, IndexConst(0)), Lt(at, op.in[0].dims[i]));
      inside = guarded ? And(inside, ok) : ok;
      guarded = true;
    }
    in.push_back(grows ? PadIndex(mode, at, op.in[0].dims[i], pads[i], pads[out.size() + i]) : at);
  }
  Expr fill = op.Has(1) ? op.in[1].at(Indices(op.in[1].dims.size(), IndexConst(0)))
                        : MakeConst(op.out.dtype, 0);
  bool empty = false;
  for (const Expr& d : op.in[0].dims) empty |= IsZero(d);
  if (empty) return fill;
  Expr value = op.in[0].at(in);
  return guarded ? Select::Make(inside, value, fill) : value;
}

// A data index as a position in an axis: negative counts from the end, and never out of bounds.
static Expr DataIndex(const Expr& raw, const Expr& dim) {
  Expr i = CastExpr::Make(DType::Index(), raw);
  return Clamp(Select::Make(Lt(i, IndexConst(0)), i + dim, i), dim);
}

// Where an axis has no elements there is nothing to read: 0.
static Expr ElementAt(const Operand& x, const Indices& at) {
  const bool is_empty =
      std::any_of(x.dims.begin(), x.dims.end(), [](const Expr& d) { return IsZero(d); });
  return is_empty ? MakeConst(x.dtype, 0) : x.at(at);
}

static Expr DefineGather(const OpContext& op, const Indices& out) {
  size_t axis = static_cast<size_t>(op.Int("axis"));
  size_t count = op.in[1].dims.size();
  Indices where(out.begin() + static_cast<long>(axis),
                out.begin() + static_cast<long>(axis + count));
  Indices in(out.begin(), out.begin() + static_cast<long>(axis));
  in.push_back(DataIndex(op.in[1].at(where), op.in[0].dims[axis]));
  in.insert(in.end(), out.begin() + static_cast<long>(axis + count), out.end());
  return ElementAt(op.in[0], in);
}

static Expr DefineGatherNd(const OpContext& op, const Indices& out) {
  size_t batch = static_cast<size_t>(op.Int("batch_dims"));
  size_t lead = op.in[1].dims.size() - 1;
  Indices where(out.begin(), out.begin() + static_cast<long>(lead));
  Indices in(out.begin(), out.begin() + static_cast<long>(batch));
  int64_t q = op.in[1].dim(static_cast<int>(lead));
  for (int64_t k = 0; k < q; ++k) {
    Indices at = where;
    at.push_back(IndexConst(k));
    in.push_back(DataIndex(op.in[1].at(at), op.in[0].dims[in.size()]));
  }
  in.insert(in.end(), out.begin() + static_cast<long>(lead), out.end());
  return ElementAt(op.in[0], in);
}

static Expr DefineOneHot(const OpContext& op, const Indices& out) {
  size_t axis = static_cast<size_t>(op.Int("axis"));
  Indices where = out;
  where.erase(where.begin() + static_cast<long>(axis));
  const Expr& depth = Exprs(op, "depth")[0];
  Expr raw = CastExpr::Make(DType::Index(), op.in[0].at(where));
  Expr hot = Eq(Select::Make(Lt(raw, IndexConst(0)), raw + depth, raw), out[axis]);
  return Select::Make(hot, op.in[1].at({IndexConst(1)}), op.in[1].at({IndexConst(0)}));
}

static Expr DefineShape(const OpContext& op, const Indices& out) {
  Expr value = MakeIntConst(DType::Int(64), 0);
  int64_t start = op.Int("start");
  for (int64_t i = op.Int("end"); i-- > start;) {
    Expr dim = CastExpr::Make(DType::Int(64), op.in[0].dims[static_cast<size_t>(i)]);
    value = Select::Make(Eq(out[0], IndexConst(i - start)), dim, value);
  }
  return value;
}

Expr DefineMovement(const OpContext& op, const Indices& out) {
  switch (op.node->op) {
    case OpKind::kReshape: return op.in[0].at(ReshapeIndices(op.in[0].dims, op.out.dims, out));
    case OpKind::kTranspose: {
      std::vector<int64_t> perm = op.node->attrs.GetInts("perm");
      Indices in(out.size());
      for (size_t i = 0; i < out.size(); ++i) in[static_cast<size_t>(perm[i])] = out[i];
      return op.in[0].at(in);
    }
    case OpKind::kSlice: return DefineSlice(op, out);
    case OpKind::kConcat: return DefineConcat(op, out);
    case OpKind::kExpand: return BroadcastAt(op.in[0], out, op.out.dims);
    case OpKind::kPad: return DefinePad(op, out);
    case OpKind::kGather: return DefineGather(op, out);
    case OpKind::kGatherElements: {
      size_t axis = static_cast<size_t>(op.Int("axis"));
      Indices in = out;
      in[axis] = DataIndex(op.in[1].at(out), op.in[0].dims[axis]);
      return ElementAt(op.in[0], in);
    }
    case OpKind::kGatherNd: return DefineGatherNd(op, out);
    case OpKind::kOneHot: return DefineOneHot(op, out);
    case OpKind::kShape: return DefineShape(op, out);
    case OpKind::kRange: {
      Expr start = op.in[0].at({}), delta = op.in[1].at({});
      return start + CastExpr::Make(op.out.dtype, out[0]) * delta;
    }
    default: break;  // not a movement: the caller dispatched wrongly
  }
  TN_UNREACHABLE();
}

}  // namespace tenon::ops
