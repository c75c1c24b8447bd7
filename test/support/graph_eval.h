// A slow and obvious evaluator of graphs, in doubles, written from the page above ops.def: what
// graph passes are checked against. Knows the operators that their tests use; dims must be numbers.
// Integers and bools are doubles too.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "graph/graph.h"

namespace tenon::graph {

struct Array {
  std::vector<int64_t> dims;
  std::vector<double> data;

  static int64_t Count(const std::vector<int64_t>& dims) {
    return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  }
  explicit Array(std::vector<int64_t> d = {})
      : dims(std::move(d)), data(static_cast<size_t>(Count(dims))) {}
  size_t rank() const { return dims.size(); }

  /// Row-major; read as NumPy broadcasts: aligned right, axes of dim 1 at 0.
  double& At(const std::vector<int64_t>& index) {
    size_t at = 0;
    for (size_t i = 0; i < dims.size(); ++i) {
      const int64_t k = index[index.size() - dims.size() + i];
      at = at * static_cast<size_t>(dims[i]) + static_cast<size_t>(dims[i] == 1 ? 0 : k);
    }
    return data[at];
  }
  double At(const std::vector<int64_t>& index) const { return const_cast<Array*>(this)->At(index); }
};

/// Every index of these dims, in row-major order.
inline void ForEach(const std::vector<int64_t>& dims,
                    const std::function<void(const std::vector<int64_t>&)>& f) {
  std::vector<int64_t> index(dims.size());
  for (int64_t n = 0; n < Array::Count(dims); ++n) {
    int64_t left = n;
    for (size_t i = dims.size(); i-- > 0; left /= dims[i]) index[i] = left % dims[i];
    f(index);
  }
}

class GraphEvaluator {
 public:
  explicit GraphEvaluator(const Graph& g) : g_(g), values_(g.values.size()) {}

  std::vector<Array> Run(const std::vector<Array>& inputs) {
    for (size_t v = 0; v < g_.values.size(); ++v) {
      if (g_.values[v].IsConstant()) values_[v] = ReadConstant(g_.values[v]);
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      values_[static_cast<size_t>(g_.inputs[i])] = inputs[i];
    for (const Node& n : g_.nodes) {
      if (!n.regions.empty() || n.outputs.size() > 1) {
        std::vector<Array> operands;
        for (ValueId v : n.inputs) operands.push_back(values_[static_cast<size_t>(v)]);
        const std::vector<Array> results =
            n.regions.empty() ? TopK(n) : RunRegions(n, std::move(operands));
        for (size_t k = 0; k < n.outputs.size(); ++k)
          values_[static_cast<size_t>(n.outputs[k])] = results.at(k);
      } else {
        values_[static_cast<size_t>(n.outputs[0])] = Evaluate(n);
      }
    }
    std::vector<Array> outputs;
    for (ValueId v : g_.outputs) outputs.push_back(values_[static_cast<size_t>(v)]);
    return outputs;
  }

 private:
  using Index = std::vector<int64_t>;

  static std::vector<Array> RunRegions(const Node& n, std::vector<Array> in) {
    auto run = [&](size_t region, const std::vector<Array>& inputs) {
      return GraphEvaluator(*n.regions.at(region)).Run(inputs);
    };
    if (n.op == OpKind::kFused) return run(0, in);
    if (n.op == OpKind::kIf) {
      const bool taken = in.front().data[0] != 0;
      in.erase(in.begin());
      return run(taken ? 0 : 1, in);
    }
    const auto carried = n.attrs.GetInt("carried");
    if (n.op == OpKind::kWhile) {
      while (in.front().data[0] != 0) {
        std::vector<Array> next = run(0, {in.begin() + 1, in.end()});
        std::move(next.begin(), next.end(), in.begin());
      }
      return {in.begin() + 1, in.begin() + 1 + carried};
    }
    return Loop(n, std::move(in));
  }

  static std::vector<Array> Loop(const Node& n, std::vector<Array> in) {
    const auto carried = static_cast<size_t>(n.attrs.GetInt("carried"));
    const int64_t count = Numbers(n.exprs.at("count"))[0];
    std::vector<Array> all(n.outputs.size());
    for (int64_t i = 0; i < count; ++i) {
      std::vector<Array> inputs = {Array()};
      inputs[0].data[0] = static_cast<double>(i);
      inputs.insert(inputs.end(), in.begin(), in.end());
      std::vector<Array> out = GraphEvaluator(*n.regions.at(0)).Run(inputs);
      for (size_t k = 0; k < carried; ++k) in[k] = out[k];
      for (size_t k = carried; k < out.size(); ++k) {
        if (i == 0) all[k].data.clear();
        all[k].dims = out[k].dims;
        all[k].dims.insert(all[k].dims.begin(), count);
        all[k].data.insert(all[k].data.end(), out[k].data.begin(), out[k].data.end());
      }
    }
    for (size_t k = 0; k < carried; ++k) all[k] = in[k];
    return all;
  }

  // Along the last axis.
  std::vector<Array> TopK(const Node& n) const {
    if (n.op != OpKind::kTopK)
      throw std::logic_error(std::string("the evaluator of tests does not know ") + Name(n.op));
    const Array& x = in(n, 0);
    const int64_t row = x.dims.back(), k = Numbers(n.exprs.at("k"))[0];
    const bool largest = n.attrs.Get<bool>("largest", true);
    std::vector<int64_t> dims = x.dims;
    dims.back() = k;
    Array values(dims), places(dims);
    for (size_t r = 0; r * static_cast<size_t>(row) < x.data.size(); ++r) {
      const double* from = x.data.data() + r * static_cast<size_t>(row);
      std::vector<int64_t> order(static_cast<size_t>(row));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return largest ? from[a] > from[b] : from[a] < from[b];
      });
      for (int64_t j = 0; j < k; ++j) {
        const size_t to = r * static_cast<size_t>(k) + static_cast<size_t>(j);
        values.data[to] = from[order[static_cast<size_t>(j)]];
        places.data[to] = static_cast<double>(order[static_cast<size_t>(j)]);
      }
    }
    return {values, places};
  }

  const Array& in(const Node& n, size_t i) const {
    return values_[static_cast<size_t>(n.inputs[i])];
  }
  static bool Has(const Node& n, size_t i) {
    return i < n.inputs.size() && n.inputs[i] != kNoValue;
  }

  static Array ReadConstant(const Value& v) {
    Array a(*v.type.tensor().StaticDims());
    if (auto floats = ReadFloats(v)) a.data = *floats;
    if (auto ints = ReadInts(v)) a.data.assign(ints->begin(), ints->end());
    return a;
  }

  static std::vector<int64_t> Numbers(const std::vector<Expr>& exprs) {
    std::vector<int64_t> out;
    for (const Expr& e : exprs) out.push_back(AsInt(e).value());
    return out;
  }

  Array Evaluate(const Node& n) const {
    Array out(*g_.type(n.outputs[0]).StaticDims());
    const IndexMapClass map = Info(n.op).map;
    const bool batch_norm = n.op == OpKind::kBatchNorm;
    if ((map == IndexMapClass::kElementwise || map == IndexMapClass::kBroadcast) && !batch_norm) {
      ForEach(out.dims, [&](const Index& i) { out.At(i) = Scalar(n, i); });
    } else if (map == IndexMapClass::kInjective) {
      Move(n, &out);
    } else if (n.op == OpKind::kRequire) {
      out = in(n, 0);  // what the check would refuse has no meaning to compare
    } else if (n.op == OpKind::kMatMul) {
      MatMul(in(n, 0), in(n, 1), n.attrs.Get<bool>("trans_a", false),
             n.attrs.Get<bool>("trans_b", false), &out);
    } else if (n.op == OpKind::kBlockMatMul) {
      BlockMatMul(n, &out);
    } else if (n.op == OpKind::kSplitMatMul) {
      SplitMatMul(n, &out);
    } else if (n.op == OpKind::kAttention) {
      Attention(n, &out);
    } else if (n.op == OpKind::kConv) {
      Conv(n, &out);
    } else if (n.op == OpKind::kWinogradConv) {
      WinogradConv(n, &out);
    } else if (n.op == OpKind::kMaxPool) {
      MaxPool(n, &out);
    } else {
      Normalise(n, &out);
    }
    return out;
  }

  double Scalar(const Node& n, const Index& i) const {
    const double a = in(n, 0).At(i);
    auto b = [&] { return in(n, 1).At(i); };
    switch (n.op) {
      case OpKind::kRelu: return a < 0 ? 0 : a;
      case OpKind::kSigmoid: return 1 / (1 + std::exp(-a));
      case OpKind::kTanh: return std::tanh(a);
      case OpKind::kExp: return std::exp(a);
      case OpKind::kLog: return std::log(a);
      case OpKind::kSqrt: return std::sqrt(a);
      case OpKind::kErf: return std::erf(a);
      case OpKind::kSin: return std::sin(a);
      case OpKind::kRound: return std::nearbyint(a);
      case OpKind::kNeg: return -a;
      case OpKind::kAbs: return std::abs(a);
      case OpKind::kReciprocal: return 1 / a;
      case OpKind::kGelu:
        if (n.attrs.GetString("approximate") == "none")
          return a / 2 * (1 + std::erf(a / std::sqrt(2.0)));
        return a / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (a + 0.044715 * a * a * a)));
      case OpKind::kHardSigmoid:
        return std::max(0.0,
                        std::min(1.0, n.attrs.GetFloat("alpha") * a + n.attrs.GetFloat("beta")));
      case OpKind::kHardSwish: return a * std::max(0.0, std::min(1.0, a / 6 + 0.5));
      case OpKind::kClip:
        return std::isnan(a)
                   ? a
                   : std::min(std::max(a, n.attrs.GetFloat("lo")), n.attrs.GetFloat("hi"));
      case OpKind::kIsNan: return std::isnan(a);
      case OpKind::kNot: return a == 0;
      case OpKind::kCast: return a;
      case OpKind::kExpand: return a;
      case OpKind::kAdd: return a + b();
      case OpKind::kSub: return a - b();
      case OpKind::kMul: return a * b();
      case OpKind::kDiv: return a / b();
      case OpKind::kPow: return std::pow(a, b());
      case OpKind::kAnd: return a != 0 && b() != 0;
      case OpKind::kEqual: return a == b();
      case OpKind::kLess: return a < b();
      case OpKind::kWhere: return a != 0 ? b() : in(n, 2).At(i);
      default:
        throw std::logic_error(std::string("the evaluator of tests does not know ") + Name(n.op));
    }
  }

  // Indices out of bounds have no meaning: any element will do, in both evaluations the same.
  static int64_t Inside(int64_t index, int64_t size) {
    return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size - 1);
  }

  void Move(const Node& n, Array* out) const {
    const Array& x = in(n, 0);
    if (n.op == OpKind::kReshape) {
      out->data = x.data;
      return;
    }
    if (n.op == OpKind::kRange) {
      for (size_t k = 0; k < out->data.size(); ++k) {
        out->data[k] = x.data[0] + static_cast<double>(k) * in(n, 1).data[0];
      }
      return;
    }
    if (n.op == OpKind::kConcat) return Concat(n, out);
    if (n.op == OpKind::kPad) return Pad(n, out);
    ForEach(out->dims, [&](const Index& i) {
      Index at = i;
      if (n.op == OpKind::kTranspose) {
        const std::vector<int64_t> perm = n.attrs.GetInts("perm");
        for (size_t k = 0; k < perm.size(); ++k) at[static_cast<size_t>(perm[k])] = i[k];
      } else if (n.op == OpKind::kSlice) {
        const std::vector<int64_t> starts = Numbers(n.exprs.at("starts")),
                                   steps = n.attrs.GetInts("steps");
        for (size_t k = 0; k < steps.size(); ++k) at[k] = starts[k] + i[k] * steps[k];
      } else if (n.op == OpKind::kGather) {
        const size_t axis = static_cast<size_t>(n.attrs.GetInt("axis")), q = in(n, 1).rank();
        const auto from = i.begin() + static_cast<long>(axis), to = from + static_cast<long>(q);
        const auto index = static_cast<int64_t>(in(n, 1).At(Index(from, to)));
        at.assign(i.begin(), from);
        at.push_back(Inside(index, x.dims[axis]));
        at.insert(at.end(), to, i.end());
      } else if (n.op == OpKind::kGatherNd) {
        const auto batch = static_cast<size_t>(n.attrs.GetInt("batch_dims"));
        Index place(i.begin(), i.begin() + static_cast<long>(in(n, 1).rank() - 1));
        at.assign(i.begin(), i.begin() + static_cast<long>(batch));
        place.push_back(0);
        for (; place.back() < in(n, 1).dims.back(); ++place.back()) {
          at.push_back(Inside(static_cast<int64_t>(in(n, 1).At(place)), x.dims[at.size()]));
        }
        at.insert(at.end(), i.begin() + static_cast<long>(place.size() - 1), i.end());
      } else {
        throw std::logic_error(std::string("the evaluator of tests does not know ") + Name(n.op));
      }
      out->At(i) = x.At(at);
    });
  }

  // Mode constant.
  void Pad(const Node& n, Array* out) const {
    const std::vector<int64_t> pads = Numbers(n.exprs.at("pads"));
    ForEach(out->dims, [&](const Index& i) {
      Index at = i;
      bool inside = true;
      for (size_t k = 0; k < at.size(); ++k) {
        at[k] -= pads[k];
        inside &= at[k] >= 0 && at[k] < in(n, 0).dims[k];
      }
      out->At(i) = inside ? in(n, 0).At(at) : Has(n, 1) ? in(n, 1).data[0] : 0;
    });
  }

  void Concat(const Node& n, Array* out) const {
    const size_t axis = static_cast<size_t>(n.attrs.GetInt("axis"));
    ForEach(out->dims, [&](const Index& i) {
      Index at = i;
      size_t k = 0;
      for (; at[axis] >= in(n, k).dims[axis]; ++k) at[axis] -= in(n, k).dims[axis];
      out->At(i) = in(n, k).At(at);
    });
  }

  static void MatMul(const Array& a, const Array& b, bool trans_a, bool trans_b, Array* out) {
    const int64_t inner = a.dims[a.rank() - (trans_a ? 2 : 1)];
    ForEach(out->dims, [&](const Index& i) {
      Index x = i, y = i;
      const size_t r = i.size();
      double sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        x[r - 2] = trans_a ? k : i[r - 2];
        x[r - 1] = trans_a ? i[r - 2] : k;
        y[r - 2] = trans_b ? i[r - 1] : k;
        y[r - 1] = trans_b ? k : i[r - 1];
        sum += a.At(x) * b.At(y);
      }
      out->At(i) = sum;
    });
  }

  void BlockMatMul(const Node& n, Array* out) const {
    const Array &a = in(n, 0), &codes = in(n, 1), &scales = in(n, 2), &offsets = in(n, 3);
    const int64_t bits = n.attrs.GetInt("bits"), block = n.attrs.GetInt("block"),
                  per_byte = 8 / bits;
    ForEach(out->dims, [&](const Index& i) {
      Index x = i;
      double sum = 0;
      for (int64_t k = 0; k < a.dims.back(); ++k) {
        x.back() = k;
        const auto byte = static_cast<int64_t>(codes.At({i.back(), k / per_byte}));
        const auto code = static_cast<double>(byte >> (k % per_byte * bits) & ((1 << bits) - 1));
        const Index at = {i.back(), k / block};
        sum += a.At(x) * (code * scales.At(at) - offsets.At(at));
      }
      out->At(i) = sum;
    });
  }

  // Over each row along `axis`: f sees its elements and changes them.
  static void ForEachRow(Array* x, size_t axis,
                         const std::function<void(std::vector<double>*)>& f) {
    std::vector<int64_t> outer = x->dims;
    outer[axis] = 1;
    ForEach(outer, [&](Index i) {
      std::vector<double> row;
      for (i[axis] = 0; i[axis] < x->dims[axis]; ++i[axis]) row.push_back(x->At(i));
      f(&row);
      for (i[axis] = 0; i[axis] < x->dims[axis]; ++i[axis])
        x->At(i) = row[static_cast<size_t>(i[axis])];
    });
  }

  static void Softmax(std::vector<double>* row, bool log) {
    const double top = *std::max_element(row->begin(), row->end());
    double sum = 0;
    for (double x : *row) sum += std::exp(x - top);
    for (double& x : *row) x = log ? x - top - std::log(sum) : std::exp(x - top) / sum;
  }

  void Attention(const Node& n, Array* out) const {
    const Array &q = in(n, 0), &k = in(n, 1), &v = in(n, 2);
    std::vector<int64_t> dims = q.dims;
    dims.back() = k.dims[k.rank() - 2];
    Array scores(dims);
    MatMul(q, k, false, true, &scores);
    const bool is_bool = Has(n, 3) && g_.type(n.inputs[3]).dtype.IsBool();
    ForEach(dims, [&](const Index& i) {
      scores.At(i) *= n.attrs.GetFloat("scale");
      if (!Has(n, 3)) return;
      scores.At(i) += !is_bool ? in(n, 3).At(i) : in(n, 3).At(i) != 0 ? 0 : -INFINITY;
    });
    ForEachRow(&scores, dims.size() - 1, [&](std::vector<double>* row) {
      Softmax(row, false);
      for (double& x : *row) x = std::isnan(x) && n.attrs.Get<bool>("nan_to_zero", false) ? 0 : x;
    });
    MatMul(scores, v, false, false, out);
  }

  // Any number of spatial axes.
  void Conv(const Node& n, Array* out) const {
    const Array &x = in(n, 0), &w = in(n, 1);
    const std::vector<int64_t> s = n.attrs.GetInts("strides"), d = n.attrs.GetInts("dilations"),
                               p = n.attrs.GetInts("pads");
    const int64_t per_group = w.dims[0] / n.attrs.GetInt("group", 1);
    ForEach(out->dims, [&](const Index& o) {
      double sum = Has(n, 2) ? in(n, 2).At({o[1]}) : 0;
      ForEach({w.dims.begin() + 1, w.dims.end()}, [&](const Index& k) {
        Index from = {o[0], o[1] / per_group * w.dims[1] + k[0]}, weight = {o[1], k[0]};
        for (size_t i = 0; i + 2 < x.dims.size(); ++i) {
          from.push_back(o[i + 2] * s[i] + k[i + 1] * d[i] - p[i]);
          weight.push_back(k[i + 1]);
          if (from.back() < 0 || from.back() >= x.dims[i + 2]) return;
        }
        sum += x.At(from) * w.At(weight);
      });
      out->At(o) = sum;
    });
  }

  void MaxPool(const Node& n, Array* out) const {
    const Array& x = in(n, 0);
    const std::vector<int64_t> size = n.attrs.GetInts("kernel"), s = n.attrs.GetInts("strides"),
                               d = n.attrs.GetInts("dilations"), p = n.attrs.GetInts("pads");
    ForEach(out->dims, [&](const Index& o) {
      double best = std::nan("");
      ForEach(size, [&](const Index& k) {
        const int64_t y = o[2] * s[0] + k[0] * d[0] - p[0], z = o[3] * s[1] + k[1] * d[1] - p[1];
        if (y < 0 || z < 0 || y >= x.dims[2] || z >= x.dims[3]) return;
        best = std::fmax(best, x.At({o[0], o[1], y, z}));
      });
      out->At(o) = best;
    });
  }

  // At and Bt from the points alone (Toom and Cook): a row of At has the points' powers; a row of
  // Bt the coefficients of the polynomial that is 0 at all points but its own.
  static void PointForms(const std::vector<double>& points, std::vector<std::vector<double>>* at,
                         std::vector<std::vector<double>>* bt) {
    const size_t n = points.size() + 1;
    for (size_t r = 0; r + 2 < n; ++r) {
      at->emplace_back();
      for (double p : points) at->back().push_back(std::pow(p, static_cast<double>(r)));
      at->back().push_back(r + 3 == n ? 1 : 0);  // the point at infinity
    }
    for (size_t i = 0; i < n; ++i) {
      std::vector<double> row(n);
      row[0] = 1;
      for (size_t k = 0; k + 1 < n; ++k) {
        if (k == i) continue;
        for (size_t d = n; d-- > 0;) row[d] = (d > 0 ? row[d - 1] : 0) - points[k] * row[d];
      }
      bt->push_back(row);
    }
  }

  // To eight bits, ties to even.
  static double ToBFloat16(double x) {
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);
    return std::isfinite(x) ? std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8) : x;
  }

  void SplitMatMul(const Node& n, Array* out) const {
    const Array &a = in(n, 0), &parts = in(n, 1);
    const bool trans = n.attrs.Get<bool>("trans_b", false);
    ForEach(out->dims, [&](const Index& i) {
      Index at = i;
      for (int64_t k = 0; k < a.dims.back(); ++k) {
        at.back() = k;
        const double x = a.At(at), high = std::isfinite(x) ? ToBFloat16(x) : 0;
        const auto part = [&](int64_t which) {
          return parts.At({which, trans ? i.back() : k, trans ? k : i.back()});
        };
        out->At(i) += (high + ToBFloat16(x - high)) * part(0) + high * part(1);
      }
    });
  }

  void WinogradConv(const Node& n, Array* out) const {
    const Array &x = in(n, 0), &u = in(n, 1);
    const std::vector<int64_t> pads = n.attrs.GetInts("pads");
    const int64_t all = u.dims[2], t = all - 2;
    const double half = std::sqrt(0.5);
    std::vector<std::vector<double>> at, bt;
    PointForms(t == 2 ? std::vector<double>{0, 1, -1}
                      : std::vector<double>{0, half, -half, 2 * half, -2 * half},
               &at, &bt);
    const auto form = [](const std::vector<std::vector<double>>& m, int64_t row, int64_t column) {
      return m[static_cast<size_t>(row)][static_cast<size_t>(column)];
    };
    const std::vector<int64_t>& y = out->dims;
    Array d({x.dims[0], x.dims[1], (y[2] + t - 1) / t, (y[3] + t - 1) / t, all, all});
    ForEach(d.dims, [&](const Index& i) {
      ForEach({all, all}, [&](const Index& e) {
        const int64_t h = i[2] * t + e[0] - pads[0], w = i[3] * t + e[1] - pads[1];
        if (h < 0 || w < 0 || h >= x.dims[2] || w >= x.dims[3]) return;
        d.At(i) += form(bt, i[4], e[0]) * form(bt, i[5], e[1]) * x.At({i[0], i[1], h, w});
      });
    });
    ForEach(y, [&](const Index& o) {
      double sum = Has(n, 2) ? in(n, 2).At({o[1]}) : 0;
      ForEach({u.dims[1], all, all}, [&](const Index& k) {
        sum += form(at, o[2] % t, k[1]) * form(at, o[3] % t, k[2]) *
               u.At({o[1], k[0], k[1], k[2]}) * d.At({o[0], k[0], o[2] / t, o[3] / t, k[1], k[2]});
      });
      out->At(o) = sum;
    });
  }

  void Normalise(const Node& n, Array* out) const {
    const Array& x = in(n, 0);
    if (n.op == OpKind::kSoftmax || n.op == OpKind::kLogSoftmax) {
      *out = x;
      ForEachRow(out, static_cast<size_t>(n.attrs.GetInt("axis")),
                 [&](std::vector<double>* row) { Softmax(row, n.op == OpKind::kLogSoftmax); });
    } else if (n.op == OpKind::kBatchNorm) {
      ForEach(x.dims, [&](const Index& i) {
        auto at = [&](size_t k) { return in(n, k).At({i[1]}); };
        out->At(i) =
            (x.At(i) - at(3)) / std::sqrt(at(4) + n.attrs.GetFloat("epsilon")) * at(1) + at(2);
      });
    } else if (n.op == OpKind::kLayerNorm) {
      LayerNorm(n, out);
    } else if (n.op == OpKind::kReduce) {
      Reduce(n, out);
    } else {
      throw std::logic_error(std::string("the evaluator of tests does not know ") + Name(n.op));
    }
  }

  void LayerNorm(const Node& n, Array* out) const {
    const Array& x = in(n, 0);
    const auto outer = x.dims.begin() + n.attrs.GetInt("axis");
    const size_t inner = static_cast<size_t>(Array::Count({outer, x.dims.end()}));
    for (size_t first = 0; first < x.data.size(); first += inner) {
      double mean = 0, var = 0;
      for (size_t k = 0; k < inner; ++k) mean += x.data[first + k] / static_cast<double>(inner);
      for (size_t k = 0; k < inner; ++k)
        var += std::pow(x.data[first + k] - mean, 2) / static_cast<double>(inner);
      for (size_t k = 0; k < inner; ++k) {
        out->data[first + k] =
            (x.data[first + k] - mean) / std::sqrt(var + n.attrs.GetFloat("epsilon"));
      }
    }
    ForEach(x.dims, [&](const Index& i) {
      out->At(i) = out->At(i) * in(n, 1).At(i) + (Has(n, 2) ? in(n, 2).At(i) : 0);
    });
  }

  void Reduce(const Node& n, Array* out) const {
    const Array& x = in(n, 0);
    const std::string kind = n.attrs.GetString("kind");
    std::vector<int64_t> kept = x.dims;
    for (int64_t a : n.attrs.GetInts("axes")) kept[static_cast<size_t>(a)] = 1;
    Array result(kept);
    if (kind == "max") std::fill(result.data.begin(), result.data.end(), -INFINITY);
    ForEach(x.dims, [&](const Index& i) {
      double& r = result.At(i);
      if (kind != "max" && kind != "sum" && kind != "mean")
        throw std::logic_error("reduce " + kind);
      r = kind == "max" ? std::max(r, x.At(i)) : r + x.At(i);
    });
    const double count =
        static_cast<double>(x.data.size()) / static_cast<double>(result.data.size());
    for (double& r : result.data) r /= kind == "mean" ? count : 1;
    out->data = result.data;
  }

  const Graph& g_;
  std::vector<Array> values_;
};

/// Inputs of a graph: floats between -2 and 2, integers and bools 0 or 1.
inline std::vector<Array> RandomInputs(const Graph& g, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Array> inputs;
  for (ValueId v : g.inputs) {
    inputs.emplace_back(*g.type(v).StaticDims());
    for (double& x : inputs.back().data) {
      const double unit = random() / 4294967296.0;
      x = g.type(v).dtype.IsFloat() ? unit * 4 - 2 : std::floor(unit * 2);
    }
  }
  return inputs;
}

}  // namespace tenon::graph
