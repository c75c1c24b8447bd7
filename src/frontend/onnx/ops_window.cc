// Windows the other way round, and sums over them: Col2Im, ConvTranspose, LpPool; and what is cut
// from the middle.
//
// A column of Col2Im says what each place of a window adds to the image, for each place of the
// window. Along one spatial axis, with K places and L windows, an element at y of the image takes
// from place k the window (y + pad - k · dilation) / stride, if that is one: a gather of [D, k…],
// of the places where it is whole, and a sum over these. Axis by axis that turns [N, C, K…, L…]
// into [N, C, D…], for any number of axes. ConvTranspose is a product that makes such columns, or,
// where sizes are known well enough, some convolutions whose results lie between each other.
#include <algorithm>
#include <numeric>
#include <utility>

#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/window.h"
#include "support/strings.h"

namespace tenon::onnx {
namespace {

using graph::DimAdd;
using graph::DimMul;
using graph::DimSub;

// Of one spatial axis of a window.
struct Lane {
  Expr kernel;
  int64_t stride, dilation;
  Expr pad;      // before the first element
  Expr windows;  // how many there are
  Expr size;     // of the image
};

// A size as a dim of its own where it is a formula. Of open kernels and images on many axes sizes
// are products of formulas, and what is asked about these takes minutes; products of names are
// simple.
Expr AsDim(const OpContext& c, const Formula& f, const Expr& size) {
  if (AsInt(size) || IsA<VarNode>(size) || c.in_region) return size;
  const Val count = NumberOf(f, size);
  if (!count) return size;
  const Expected<Expr> dim = f.builder().DefineDim(ToIdentifier(f.name()), count.id());
  if (dim) return *dim;
  f.Of(Expected<ValueId>(dim.errors()));
  return size;
}

// Whether each element of the image lies in one window.
bool AreApart(const Lane& lane) {
  return lane.dilation == 1 && AsInt(lane.kernel) == lane.stride && IsZero(lane.pad) &&
         graph::ProveEqual(lane.size, DimMul(lane.windows, lane.kernel));
}

// […, K, L], windows beside each other, to […, L · K].
Val SideBySide(const Val& x, const Lane& lane) {
  Dims dims = x.dims();
  if (dims.size() < 2) return x;
  dims.pop_back();
  dims.back() = lane.size;
  return Reshape(Swap(x, -1, -2), dims);
}

// The inverse of a modulo m, which have no common factor, by Euclid's algorithm.
int64_t InverseModulo(int64_t a, int64_t m) {
  int64_t rest = m, next = a % m, inverse = 0, other = 1;
  while (next != 0) {
    const int64_t times = rest / next;
    rest = std::exchange(next, rest - times * next);
    inverse = std::exchange(other, inverse - times * other);
  }
  return (inverse % m + m) % m;
}

// […, K, L] to […, D]: each element takes from the places of the window that have it there, which
// are `step` apart, the window of each. Element y is at place t where t · dilation is y + pad
// modulo the stride.
Val SumOfRows(const Val& x, const Lane& lane) {
  const Formula& f = x.formula();
  Dims rows = x.dims();
  if (rows.size() < 2) return x;
  rows.pop_back();
  rows.back() = DimMul(lane.windows, lane.kernel);
  const int64_t common = std::gcd(lane.stride, lane.dilation), step = lane.stride / common;
  const int64_t inverse = InverseModulo(lane.dilation / common, step);
  const Val from = Unsqueeze(f.Iota(lane.size), 1) + NumberOf(f, lane.pad);
  const auto number = [&](int64_t n) { return f.Number(from.dtype(), static_cast<double>(n)); };
  const Val first = Mod(Mod(from / number(common), number(step)) * number(inverse), number(step));
  const Val place =
      first + f.Iota(graph::DimCeilDiv(lane.kernel, IndexConst(step))) * static_cast<double>(step);
  const Val begin = place * static_cast<double>(lane.dilation),
            window = (from - begin) / number(lane.stride);
  const Val count = Size(x, -1), places = NumberOf(f, lane.kernel);
  Val is_one = (from >= begin) & (place < places) & (window < count);
  if (common > 1) is_one = is_one & Equal(Mod(from, number(common)), 0);
  const Val at = Min(place, places - 1) * count + Max(Min(window, count - 1), 0);
  return Sum(Where(is_one, Gather(Reshape(x, rows), at, -1), 0), {-1}, false);
}

// [N, C, K…, L…] to [N, C, D…].
Val SumOfWindows(Val x, const std::vector<Lane>& lanes) {
  const auto n = static_cast<int64_t>(lanes.size());
  for (int64_t a = 0; a < n && x; ++a) {
    const Lane& lane = lanes[static_cast<size_t>(a)];
    // The axes are now N, C, D… (a of them), K… and L… (n - a of each): K and L of this one at the
    // end.
    const int64_t left = n - a, k_axis = 2 + a, l_axis = 2 + a + left;
    Axes perm;
    for (int64_t i = 0; i < x.rank(); ++i) {
      if (i != k_axis && i != l_axis) perm.push_back(i);
    }
    perm.insert(perm.end(), {k_axis, l_axis});
    x = Transpose(x, perm);
    x = AreApart(lane) ? SideBySide(x, lane) : SumOfRows(x, lane);
    // The axis made stands after those made before.
    perm = AxesFrom(x, 0);
    if (perm.empty()) return x;
    perm.pop_back();
    perm.insert(perm.begin() + 2 + a, x.rank() - 1);
    x = Transpose(x, perm);
  }
  return x;
}

// An attribute with an entry for each spatial axis.
Expected<Axes> ReadSpatial(OpContext& c, const char* name, size_t count, int64_t fallback,
                           int64_t least) {
  TN_ASSIGN_OR_RETURN(const std::optional<Axes> list, c.Ints(name));
  const Axes out = list.value_or(Axes(count, fallback));
  for (int64_t x : out) {
    if (x < least || x > INT32_MAX)
      return c.Error("expected {} of at least {}, but got {}", name, least, x);
  }
  if (out.size() != count)
    return c.Error("expected {} entries in {}, but got {}", count, name, out.size());
  return out;
}

Status ImportCol2Im(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 3));
  // How many spatial axes there are is known of either, or of the result.
  std::optional<int64_t> count;
  for (size_t i : {1, 2}) {
    if (!count && c.Rank(i) == 1) count = AsInt(c.Dims(i)[0]);
  }
  if (const auto rank = c.DeclaredRank(0); !count && rank) count = *rank - 2;
  TN_ASSIGN_OR_RETURN(const Elements image, SizesOf(c, 1, "an image_shape", count));
  TN_ASSIGN_OR_RETURN(const Elements block, SizesOf(c, 2, "a block_shape", count));
  const size_t n = image.size();
  if (n == 0 || block.size() != n || c.Rank(0) != 3) {
    return c.Error(
        "expected columns [N, C · K, L], and an image_shape and a block_shape of one "
        "length, but got {}, {} and {}",
        c.Type(0).ToString(), n, block.size());
  }
  TN_ASSIGN_OR_RETURN(const Axes strides, ReadSpatial(c, "strides", n, 1, 1));
  TN_ASSIGN_OR_RETURN(const Axes dilations, ReadSpatial(c, "dilations", n, 1, 1));
  TN_ASSIGN_OR_RETURN(const Axes pads, ReadSpatial(c, "pads", 2 * n, 0, 0));
  std::vector<Lane> lanes;
  const Expr one = IndexConst(1);
  for (size_t a = 0; a < n; ++a) {
    const std::optional<int64_t> places = AsInt(block[a]);
    if (places && (*places < 1 || *places > 1 << 15))
      return c.Error("expected a sensible block_shape, but got {}", *places);
    const Expr extent = DimAdd(DimMul(DimSub(block[a], one), IndexConst(dilations[a])), one);
    const Expr room = DimSub(DimAdd(image[a], IndexConst(pads[a] + pads[n + a])), extent);
    const Expr windows = DimAdd(graph::DimFloorDiv(room, IndexConst(strides[a])), one);
    lanes.push_back({block[a], strides[a], dilations[a], IndexConst(pads[a]), windows, image[a]});
  }
  const Formula f(c);
  const Val given = f.In(0);
  const Val x = given && given.dtype().IsBool() ? Cast(given, DType::Int(32)) : Widened(given);
  for (Lane& lane : lanes) lane.windows = AsDim(c, f, lane.windows);
  const Expr channels = graph::DimFloorDiv(x.dim(1), graph::DimProduct(block));
  Dims dims = {x.dim(0), AsDim(c, f, channels)};
  for (const Lane& lane : lanes) dims.push_back(lane.kernel);
  for (const Lane& lane : lanes) dims.push_back(lane.windows);
  return f.Result(Cast(SumOfWindows(Reshape(x, dims), lanes), c.Type(0).dtype));
}

// The pads that auto_pad and output_shape stand for are those that leave that size.
Expected<std::vector<Lane>> ReadTransposed(OpContext& c, std::span<const Expr> kernel) {
  const size_t n = kernel.size();
  TN_ASSIGN_OR_RETURN(const Axes strides, ReadSpatial(c, "strides", n, 1, 1));
  TN_ASSIGN_OR_RETURN(const Axes dilations, ReadSpatial(c, "dilations", n, 1, 1));
  TN_ASSIGN_OR_RETURN(const Axes pads, ReadSpatial(c, "pads", 2 * n, 0, 0));
  TN_ASSIGN_OR_RETURN(const Axes more, ReadSpatial(c, "output_padding", n, 0, 0));
  TN_ASSIGN_OR_RETURN(const std::optional<Axes> shape, c.Ints("output_shape"));
  TN_ASSIGN_OR_RETURN(const std::string auto_pad, c.String("auto_pad", "NOTSET"));
  const bool upper = auto_pad == "SAME_UPPER", same = upper || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "VALID" && auto_pad != "NOTSET") {
    return c.Error("expected auto_pad NOTSET, SAME_UPPER, SAME_LOWER or VALID, but got {}",
                   graph::Quoted(auto_pad));
  }
  // It may speak of all axes.
  if (shape && shape->size() != n && shape->size() != n + 2)
    return c.Error("expected {} entries in output_shape, but got {}", n, shape->size());
  for (size_t a = 0; shape && a < shape->size(); ++a) {
    if ((*shape)[a] < 1)
      return c.Error("expected output_shape of at least 1, but got {}", (*shape)[a]);
  }
  std::vector<Lane> lanes;
  for (size_t a = 0; a < n; ++a) {
    const Expr dim = c.Dims(0)[a + 2], stride = IndexConst(strides[a]);
    const Expr one = IndexConst(1), two = IndexConst(2);
    const Expr reach = DimMul(DimSub(kernel[a], one), IndexConst(dilations[a]));
    // Without pads.
    const Expr whole =
        DimAdd(DimAdd(DimMul(DimSub(dim, one), stride), reach), IndexConst(1 + more[a]));
    const bool padded = auto_pad != "VALID";
    Lane lane{kernel[a],    strides[a],
              dilations[a], IndexConst(padded ? pads[a] : 0),
              dim,          DimSub(whole, IndexConst(padded ? pads[a] + pads[n + a] : 0))};
    if (shape || same) {
      lane.size = shape ? IndexConst((*shape)[shape->size() - n + a]) : DimMul(dim, stride);
      // A convolution of that size and stride, without pads, gives more windows than there are.
      const Expr end = DimAdd(whole, IndexConst(std::max(strides[a], dilations[a])));
      if (graph::ProveDifferent(graph::DimMax(DimAdd(lane.size, one), end), end))
        return c.Error("expected output_shape below {} along axis {}, but got {}",
                       graph::DimText(end), a + 2, graph::DimText(lane.size));
      c.b.Require(Gt(end, lane.size));
      const Expr pad = graph::DimMax(DimSub(whole, lane.size), IndexConst(0));
      lane.pad = graph::DimFloorDiv(upper ? pad : DimAdd(pad, one), two);
    }
    lanes.push_back(lane);
  }
  return lanes;
}

// What output_shape says of the axes that are not spatial, where it speaks of all, is what they
// are.
Status CheckOuterShape(OpContext& c, const std::vector<Expr>& outer) {
  TN_ASSIGN_OR_RETURN(const std::optional<Axes> shape, c.Ints("output_shape"));
  if (!shape || shape->size() != c.Dims(0).size()) return Ok();
  for (size_t a = 0; a < outer.size(); ++a) {
    const Expr said = IndexConst((*shape)[a]);
    if (graph::ProveDifferent(said, outer[a]))
      return c.Error("expected {} as entry {} of output_shape, but got {}",
                     graph::DimText(outer[a]), a, (*shape)[a]);
    c.b.Require(Eq(outer[a], said));
  }
  return Ok();
}

// Along one axis, the elements of the image that are `phase` behind a multiple of the stride: a
// convolution of x with some of the taps, the last one first.
struct Phase {
  int64_t tap, taps;           // the first, how many; a stride apart
  int64_t cut_begin, cut_end;  // elements of x that none of them meets
  int64_t pad_begin, pad_end;
};

// How many elements a phase of the image has more than x; nullopt where that depends on sizes.
std::optional<int64_t> MoreThanWindows(const Lane& lane) {
  return AsInt(graph::SimplifyDim(
      DimSub(graph::DimCeilDiv(lane.size, IndexConst(lane.stride)), lane.windows)));
}

// Element s · q + phase of the image takes from tap t element q + (phase + pad - t · dilation) / s
// of x, where that is whole. Nullopt where it takes from no tap, or sizes are not known well
// enough.
std::optional<Phase> PhaseOf(const Lane& lane, int64_t phase) {
  const auto kernel = AsInt(lane.kernel), pad = AsInt(lane.pad), more = MoreThanWindows(lane);
  const int64_t s = lane.stride;
  if (!kernel || !pad || !more || (s > 1 && lane.dilation > 1)) return std::nullopt;
  Phase out{};
  out.tap = (phase + *pad) % s;
  out.taps = (*kernel - out.tap + s - 1) / s;
  if (out.taps < 1) return std::nullopt;
  const int64_t reach = (out.taps - 1) * lane.dilation;
  const int64_t first = (phase + *pad - out.tap) / s - reach;  // element of x behind q
  const int64_t last = first + reach + *more;                  // the last, behind the last of x
  out.pad_begin = std::max<int64_t>(0, -first);
  out.cut_begin = std::max<int64_t>(0, first);
  out.pad_end = std::max<int64_t>(0, last);
  out.cut_end = std::max<int64_t>(0, -last);
  // Nothing empty.
  const int64_t least = graph::DimRange(lane.windows).min;
  if (least <= out.cut_begin + out.cut_end || graph::DimRange(lane.size).min < 1)
    return std::nullopt;
  return out;
}

// [C, M / groups, K…], channels of x by maps of a group, as a convolution has it.
Val SwappedChannels(const Val& weight, int64_t groups) {
  if (!weight) return weight;
  Dims dims = weight.dims();
  dims[0] = graph::DimFloorDiv(dims[0], IndexConst(groups));
  dims.insert(dims.begin(), IndexConst(groups));
  Val swapped = Swap(Reshape(weight, dims), 1, 2);
  if (!swapped) return swapped;
  dims = swapped.dims();
  dims[1] = graph::DimMul(dims[0], dims[1]);
  dims.erase(dims.begin());
  return Reshape(swapped, dims);
}

// Convolutions for the phases of a transposed one, put together axis by axis. As in any
// convolution, what lies in the padding is multiplied, too.
class Phases {
 public:
  // Null where a product and sums over its windows do as well or better.
  static Val Of(const Formula& f, const Val& x, const Val& weight, const std::vector<Lane>& lanes,
                int64_t groups) {
    if (!x || !weight || !AreWorthIt(x, weight, lanes, groups)) return {};
    Phases phases(f, lanes, groups);
    for (const Lane& lane : lanes) {
      std::vector<Phase>& along = phases.along_.emplace_back();
      for (int64_t r = 0; r < lane.stride; ++r) {
        const auto phase = PhaseOf(lane, r);
        if (!phase) return {};
        along.push_back(*phase);
      }
    }
    return phases.Image(x, SwappedChannels(weight, groups), 0);
  }

 private:
  // Whether there are algorithms for the convolutions, they are few, and not many of their products
  // are with padding (x of one element and a window of 4 x 4 have 16 times as many as a product).
  static bool AreWorthIt(const Val& x, const Val& weight, const std::vector<Lane>& lanes,
                         int64_t groups) {
    constexpr int64_t kMostPhases = 16, kMostPadding = 3;
    const auto maps = AsInt(weight.dim(1));
    if (x.dtype() != DType::Float(32) || !maps || (*maps == 1 && groups == 1)) return false;
    if (std::all_of(lanes.begin(), lanes.end(), AreApart)) return false;
    int64_t count = 1;
    double outputs = 1, inputs = 1;
    for (const Lane& lane : lanes) {
      count *= lane.stride;
      const auto windows = AsInt(lane.windows), more = MoreThanWindows(lane);
      if (count > kMostPhases || !more || (!windows && lanes.size() > 2)) return false;
      if (!windows) continue;
      inputs *= static_cast<double>(*windows);
      outputs *= static_cast<double>(*windows) + static_cast<double>(*more);
    }
    return outputs <= kMostPadding * inputs;
  }

  Phases(const Formula& f, const std::vector<Lane>& lanes, int64_t groups)
      : f_(f), lanes_(lanes), groups_(groups), chosen_(lanes.size()) {}

  // With the phases along axes before `axis` chosen, and their taps and elements cut out.
  Val Image(const Val& x, const Val& weight, size_t axis) {
    if (axis == lanes_.size()) return Convolution(x, weight);
    const Lane& lane = lanes_[axis];
    const auto at = static_cast<int64_t>(axis) + 2;
    std::vector<Val> parts;
    for (const Phase& phase : along_[axis]) {
      chosen_[axis] = phase;
      Val taps = weight, from = x;
      if (lane.stride > 1)
        taps = Slice(weight, at, IndexConst(phase.tap), IndexConst(phase.taps), lane.stride);
      const int64_t cut = phase.cut_begin + phase.cut_end;
      if (cut > 0)
        from = Slice(x, at, IndexConst(phase.cut_begin), DimSub(lane.windows, IndexConst(cut)));
      parts.push_back(Image(from, Flip(taps, at), axis + 1));
    }
    if (parts.size() == 1) return parts[0];
    Val stacked = Stack(parts, at + 1);
    if (!stacked) return stacked;
    Dims dims = parts[0].dims();
    dims[axis + 2] = DimMul(dims[axis + 2], IndexConst(lane.stride));
    const Val image = Reshape(stacked, dims);
    return graph::ProveEqual(dims[axis + 2], lane.size)
               ? image
               : Slice(image, at, IndexConst(0), lane.size);
  }

  Val Convolution(const Val& x, const Val& weight) const {
    const size_t n = lanes_.size();
    std::vector<int64_t> dilations, pads(2 * n);
    for (size_t a = 0; a < n; ++a) {
      dilations.push_back(lanes_[a].dilation);
      pads[a] = chosen_[a].pad_begin;
      pads[n + a] = chosen_[a].pad_end;
    }
    return f_.Emit(OpKind::kConv, {x, weight},
                   {{"strides", std::vector<int64_t>(n, 1)},
                    {"dilations", std::move(dilations)},
                    {"pads", std::move(pads)},
                    {"group", groups_}});
  }

  const Formula& f_;
  const std::vector<Lane>& lanes_;
  const int64_t groups_;
  std::vector<std::vector<Phase>> along_;
  std::vector<Phase> chosen_;
};

Status ImportConvTranspose(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 3));
  TN_ASSIGN_OR_RETURN(const int64_t groups, c.Int("group", 1));
  TN_ASSIGN_OR_RETURN(const std::optional<Axes> kernel_shape, c.Ints("kernel_shape"));
  TN_RETURN_IF_ERROR(FixKernel(c, 1));
  const std::vector<Expr> w = c.Dims(1);
  if (c.Rank(0) < 3 || c.Rank(1) != c.Rank(0)) {
    return c.Error(
        "expected an input of rank 3 or more and a weight of its rank, but got {} and {}",
        c.Type(0).ToString(), c.Type(1).ToString());
  }
  const Dims kernel(w.begin() + 2, w.end());
  TN_RETURN_IF_ERROR(CheckKernel(c, kernel_shape, kernel));
  const Expr depth = graph::DimFloorDiv(w[0], IndexConst(std::max<int64_t>(groups, 1)));
  const Expr channels = graph::DimMul(depth, IndexConst(groups));
  if (groups < 1 || graph::ProveDifferent(channels, w[0]) ||
      graph::ProveDifferent(channels, c.Dims(0)[1]))
    return c.Error("expected channels in {} groups as the weight has, but got {} and {}", groups,
                   c.Type(0).ToString(), c.Type(1).ToString());
  TN_ASSIGN_OR_RETURN(std::vector<Lane> lanes, ReadTransposed(c, kernel));
  TN_RETURN_IF_ERROR(CheckOuterShape(c, {c.Dims(0)[0], graph::DimMul(w[1], IndexConst(groups))}));
  c.b.Require(And(Eq(channels, w[0]), Eq(channels, c.Dims(0)[1])));
  const Formula f(c);
  const Val x = Widened(f.In(0)), weight = Widened(f.In(1));
  for (Lane& lane : lanes) {
    if (!AsInt(lane.kernel)) lane.size = AsDim(c, f, lane.size);
  }
  const Expr g = IndexConst(groups);
  Val y = Phases::Of(f, x, weight, lanes, groups);
  if (!y) {
    const Dims dims = x.dims();
    const Expr& batch = dims[0];
    const Expr pixels = graph::DimProduct(std::span(dims).subspan(2));
    Expr columns = w[1];  // maps and places of the window
    for (const Expr& k : kernel) columns = graph::DimMul(columns, k);
    // Of one group rows are pixels, so that the weights are one matrix, and constant.
    const Val product = groups == 1 ? Swap(MatMul(Swap(Reshape(x, {batch, depth, pixels}), 1, 2),
                                                  Reshape(weight, {depth, columns})),
                                           1, 2)
                                    : MatMul(Reshape(weight, {g, depth, columns}),
                                             Reshape(x, {batch, g, depth, pixels}), true);
    Dims split = {batch, graph::DimMul(w[1], g)};
    for (const Lane& lane : lanes) split.push_back(lane.kernel);
    for (const Lane& lane : lanes) split.push_back(lane.windows);
    y = SumOfWindows(Reshape(product, split), lanes);
  }
  if (const Val bias = f.In(2)) {
    Dims per_map(kernel.size() + 1, IndexConst(1));
    per_map[0] = bias.dim(0);
    y = y + Reshape(Widened(bias), per_map);
  }
  return f.Result(Cast(y, c.Type(0).dtype));
}

// ---- (Σ |x|^p)^(1/p) ----

Val Root(const Val& x, double p) { return p == 2 ? Sqrt(x) : p == 1 ? x : Pow(x, 1 / p); }
Val PowerOf(const Val& x, double p) { return p == 2 ? x * x : p == 1 ? Abs(x) : Pow(Abs(x), p); }

// The attribute p, which was a float in the first set.
Expected<double> ReadOrder(OpContext& c) {
  double p = 2;
  if (c.opset < 2) {
    TN_ASSIGN_OR_RETURN(p, c.Float("p", p));
  } else {
    TN_ASSIGN_OR_RETURN(p, c.Int("p", 2));
  }
  if (!(p >= 1)) return c.Error("expected p of at least 1, but got {}", p);
  return p;
}

// Further padding at the end for the window that is not whole, unless it would begin in the
// padding; by a size that is open before the window moves over it.
void PadLastWindow(const OpContext& c, WindowAttrs* window) {
  const size_t n = window->kernel.size();
  for (size_t a = 0; a < n; ++a) {
    const int64_t extent = (window->kernel[a] - 1) * window->dilations[a] + 1;
    const int64_t begin = window->pads[a], end = window->pads[n + a];
    const Expr dim = c.Dims(0)[a + 2], stride = IndexConst(window->strides[a]);
    const Expr one = IndexConst(1), there = DimAdd(dim, IndexConst(begin));
    const Expr room = DimAdd(there, IndexConst(end - extent));
    const Expr windows = graph::DimMin(DimAdd(graph::DimCeilDiv(room, stride), one),
                                       graph::DimCeilDiv(there, stride));
    const Expr reach = DimAdd(DimMul(DimSub(windows, one), stride), IndexConst(extent));
    const Expr more = graph::DimMax(DimSub(reach, DimAdd(there, IndexConst(end))), IndexConst(0));
    if (const std::optional<int64_t> known = AsInt(more)) {
      window->pads[n + a] += *known;
      continue;
    }
    window->pads[a] = window->pads[n + a] = 0;
    window->by_call.push_back({static_cast<int64_t>(a) + 2, IndexConst(begin),
                               DimAdd(DimAdd(there, IndexConst(end)), more)});
  }
}

// The sum over a window is a convolution of each channel with ones.
Status ImportLpPool(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  if (c.Rank(0) < 3)
    return c.Error("expected an input of rank 3 or more, but got {}", c.Type(0).ToString());
  TN_ASSIGN_OR_RETURN(const double p, ReadOrder(c));
  TN_ASSIGN_OR_RETURN(WindowAttrs window, ReadWindow(c, {}));
  bool ceil_mode = false;
  if (c.opset >= 18) {
    TN_ASSIGN_OR_RETURN(ceil_mode, c.Bool("ceil_mode", false));
  }
  if (ceil_mode && !window.auto_pad) PadLastWindow(c, &window);
  const Formula f(c);
  const Val x = Padded(PowerOf(Widened(f.In(0)), p), window.by_call, 0);
  const Dims dims = x.dims();
  if (dims.size() < 3) return f.Done();
  Dims planes = dims, ones(2, IndexConst(1));
  planes[0] = DimMul(dims[0], dims[1]);
  planes[1] = IndexConst(1);
  for (int64_t k : window.kernel) ones.push_back(IndexConst(k));
  const Val sum =
      f.Emit(OpKind::kConv, {Reshape(x, planes), Expand(f.Number(x.dtype(), 1), ones)},
             {{"strides", window.strides}, {"dilations", window.dilations}, {"pads", window.pads}});
  Dims out = sum.dims();
  if (out.size() > 1) {
    out[0] = dims[0];
    out[1] = dims[1];
  }
  return f.Result(Cast(Root(Reshape(sum, out), p), c.Type(0).dtype));
}

Status ImportGlobalLpPool(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  if (c.Rank(0) < 3)
    return c.Error("expected an input of rank 3 or more, but got {}", c.Type(0).ToString());
  TN_ASSIGN_OR_RETURN(const double p, ReadOrder(c));
  const Formula f(c);
  const Val x = Widened(f.In(0));
  return f.Result(Cast(Root(Sum(PowerOf(x, p), AxesFrom(x, 2)), p), c.Type(0).dtype));
}

// ---- CenterCropPad: as much is cut or added on both sides; the odd one at the end ----

Status ImportCenterCropPad(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(std::optional<Axes> axes, c.Ints("axes"));
  const auto count = axes ? static_cast<int64_t>(axes->size()) : c.Rank(0);
  TN_ASSIGN_OR_RETURN(const Elements shape, SizesOf(c, 1, "a shape", count));
  const Formula f(c);
  Val y = f.In(0);
  if (!axes) axes = AxesFrom(y, 0);
  if (axes->size() != shape.size())
    return c.Error("expected a shape of {} entries, but got {}", axes->size(), shape.size());
  TN_RETURN_IF_ERROR(c.NormalizeAxes(*axes, c.Rank(0), "axes"));
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t axis = y.At((*axes)[i]);
    const std::optional<int64_t> dim = AsInt(y.dim(axis)), size = AsInt(shape[i]);
    if (size && (*size < 0 || *size > int64_t{1} << 40))
      return c.Error("expected sensible sizes, but got {} of axis {}", *size, axis);
    if (!dim || !size) {
      const Val have = Size(y, axis), want = Element(f.In(1), 0, static_cast<int64_t>(i));
      const Val more = Cast(want, have.dtype()) - have;  // halves are rounded towards zero
      y = Cut(y, axis, -(more / 2), shape[i]);
      continue;
    }
    const int64_t more = *size - *dim;
    if (more > 0) y = Pad(y, axis, more / 2, more - more / 2);
    if (more < 0) y = Slice(y, axis, IndexConst(-more / 2), shape[i]);
  }
  return f.Result(y);
}

constexpr OpRow kRows[] = {
    {"Col2Im", 18, ImportCol2Im},
    {"ConvTranspose", 1, ImportConvTranspose},
    {"LpPool", 1, ImportLpPool},
    {"GlobalLpPool", 1, ImportGlobalLpPool},
    {"CenterCropPad", 18, ImportCenterCropPad},
};

}  // namespace

std::span<const OpRow> WindowRows() { return kRows; }

}  // namespace tenon::onnx
