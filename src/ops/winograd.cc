#include "ops/winograd.h"

#include <cmath>

#include "graph/dims.h"

namespace tenon::ops {

using te::Indices;

namespace {

const double kPoint = std::sqrt(0.5);  // the points are +-kPoint and +-2 kPoint

Expr Number(double value) { return MakeConst(DType::Float(32), value); }

// Where an index that is unrolled picks one of several values.
Expr Pick(const Expr& index, const std::vector<Expr>& values) {
  Expr out = values.back();
  for (size_t k = values.size() - 1; k-- > 0;)
    out = Select::Make(Eq(index, IndexConst(static_cast<int64_t>(k))), values[k], out);
  return out;
}

// Bt times a column of t + 2 elements. Rows of points of opposite sign are a sum and a difference
// of the same two parts.
std::vector<Expr> TransformInput(int64_t tile, const std::vector<Expr>& d) {
  if (tile == 2) return {d[2] - d[0], d[1] + d[2], d[2] - d[1], d[3] - d[1]};
  const Expr even = d[4] - Number(2) * d[2], odd = d[3] - Number(2) * d[1];
  const Expr even2 = d[4] - Number(0.5) * d[2], odd2 = d[3] - Number(0.5) * d[1];
  return {d[0] + d[4] - Number(2.5) * d[2],  even + Number(kPoint) * odd,
          even - Number(kPoint) * odd,       even2 + Number(2 * kPoint) * odd2,
          even2 - Number(2 * kPoint) * odd2, d[1] + d[5] - Number(2.5) * d[3]};
}

// At times a column of t + 2 sums.
std::vector<Expr> TransformResult(int64_t tile, const std::vector<Expr>& m) {
  if (tile == 2) return {m[0] + m[1] + m[2], m[1] - m[2] + m[3]};
  const Expr plus = m[1] + m[2], minus = m[1] - m[2], plus2 = m[3] + m[4], minus2 = m[3] - m[4];
  return {m[0] + plus + plus2, Number(kPoint) * minus + Number(2 * kPoint) * minus2,
          Number(0.5) * plus + Number(2) * plus2,
          m[5] + Number(kPoint / 2) * minus + Number(4 * kPoint) * minus2};
}

Expr InWhole(const Expr& size, int64_t part) { return graph::DimCeilDiv(size, IndexConst(part)); }

std::vector<Expr> WholeLine(int64_t count, const Line& at) {
  std::vector<Expr> all;
  for (int64_t k = 0; k < count; ++k) all.push_back(at(IndexConst(k)));
  return all;
}

}  // namespace

Expr WinogradPoint(int64_t tile, const Expr& point, const Line& elements) {
  return Pick(point, TransformInput(tile, WholeLine(tile + 2, elements)));
}

Expr WinogradPlace(int64_t tile, const Expr& place, const Line& sums) {
  return Pick(place, TransformResult(tile, WholeLine(tile + 2, sums)));
}

std::vector<std::array<double, 3>> WinogradWeights(int64_t tile) {
  if (tile == 2) return {{-1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  const double p = kPoint;  // 1 / the product of differences, times the point's powers
  return {{1, 0, 0},
          {-2.0 / 3, -2.0 / 3 * p, -1.0 / 3},
          {-2.0 / 3, 2.0 / 3 * p, -1.0 / 3},
          {1.0 / 6, 1.0 / 3 * p, 1.0 / 3},
          {1.0 / 6, -1.0 / 3 * p, 1.0 / 3},
          {0, 0, 1}};
}

WinogradStages MakeWinogradStages(const OpContext& op, int64_t lanes, const Operand& x,
                                  const Operand& u) {
  const int64_t tile = WinogradTile(u), points = tile + 2;
  const std::vector<int64_t> pads = op.node->attrs.GetInts("pads");
  const Expr n = op.out.dims[0], p = IndexConst(points), v = IndexConst(lanes);
  const Expr down = InWhole(op.out.dims[2], tile), across = InWhole(op.out.dims[3], tile);
  const Expr in_blocks = InWhole(u.dims[1], lanes), out_blocks = InWhole(u.dims[0], lanes);
  WinogradStages s;
  s.input_half = te::Compute(
      op.name + "_rows", {n, down, across, in_blocks, p, p, v}, [&](const Indices& i) -> te::Body {
        return WinogradPoint(tile, i[4], [&](const Expr& k) {
          return x.at(
              {i[0], i[3] * lanes + i[6], i[1] * tile + k - pads[0], i[2] * tile + i[5] - pads[1]});
        });
      });
  s.input = te::Compute(op.name + "_input", {n, p, p, in_blocks, down, across, v},
                        [&](const Indices& i) -> te::Body {
                          return WinogradPoint(tile, i[2], [&](const Expr& k) {
                            return s.input_half.At({i[0], i[4], i[5], i[3], i[1], k, i[6]});
                          });
                        });
  const Expr channels = out_blocks * IndexConst(lanes);
  s.products = te::Compute(op.name, {n, p, p, down, across, channels}, [&](const Indices& i) {
    te::Axis cb = te::ReduceAxis("cb", in_blocks), ci = te::ReduceAxis("ci", v);
    return te::Sum(s.input.At({i[0], i[1], i[2], cb.var, i[3], i[4], ci.var}) *
                       u.at({i[5], Expr(cb.var) * lanes + ci.var, i[1], i[2]}),
                   {cb, ci});
  });
  s.sums = te::Compute(op.name + "_sums", {n, down, across, out_blocks, p, p, v},
                       [&](const Indices& i) -> te::Body {
                         return s.products.At({i[0], i[4], i[5], i[1], i[2], i[3] * lanes + i[6]});
                       });
  const Expr t = IndexConst(tile);
  s.result_half = te::Compute(op.name + "_half", {n, down, across, out_blocks, t, p, v},
                              [&](const Indices& i) -> te::Body {
                                return WinogradPlace(tile, i[4], [&](const Expr& k) {
                                  return s.sums.At({i[0], i[1], i[2], i[3], k, i[5], i[6]});
                                });
                              });
  s.result = te::Compute(op.name + "_tile", {n, down, across, out_blocks, t, t, v},
                         [&](const Indices& i) -> te::Body {
                           return WinogradPlace(tile, i[5], [&](const Expr& k) {
                             return s.result_half.At({i[0], i[1], i[2], i[3], i[4], k, i[6]});
                           });
                         });
  return s;
}

Expr WinogradElement(const WinogradStages& stages, int64_t tile, int64_t lanes, const Indices& at) {
  return stages.result.At({at[0], at[2] / tile, at[3] / tile, at[1] / lanes, at[2] % tile,
                           at[3] % tile, at[1] % lanes});
}

Operand DefineWinograd(const OpContext& op) {
  const Operand &x = op.in[0], &u = op.in[1];
  const int64_t tile = WinogradTile(u);
  // Zeros around it, of which the last tiles may ask for more than pads say.
  const Operand padded{x.dtype, x.dims, [x](const Indices& i) {
                         Indices inside = i;
                         Expr is_inside;
                         for (size_t a = 2; a < 4; ++a) {
                           const Expr here = And(Ge(i[a], IndexConst(0)), Lt(i[a], x.dims[a]));
                           is_inside = is_inside ? And(is_inside, here) : here;
                           inside[a] = Max(Min(i[a], x.dims[a] - 1), IndexConst(0));
                         }
                         return Select::Make(is_inside, x.at(inside), MakeConst(x.dtype, 0));
                       }};
  const WinogradStages stages = MakeWinogradStages(op, 1, padded, u);
  return {op.out.dtype, op.out.dims, [=](const Indices& i) {
            const Expr sum = WinogradElement(stages, tile, 1, i);
            return op.Has(2) ? sum + op.in[2].at({i[1]}) : sum;
          }};
}

}  // namespace tenon::ops
