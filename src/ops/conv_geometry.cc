#include "ops/conv_geometry.h"

#include <algorithm>

#include "graph/conv_axis.h"
#include "graph/dims.h"
#include "ops/group.h"

namespace tenon::ops {

int64_t ConvGeometry::Window() const {
  int64_t taps = 1;
  for (size_t i = 2; i < w.size(); ++i) taps *= w[i];
  return taps;
}

std::optional<ConvGeometry> ReadConv(const Site& site) {
  const graph::Node& n = site.node();
  if (n.op != graph::OpKind::kConv) return std::nullopt;
  const graph::TensorType &x = site.input(0), &w = site.input(1), &y = site.result();
  if (x.rank() < 3 || !AsInt(x.dims[1]) || !AreNumbers(w) || !AsInt(y.dims[1])) return std::nullopt;
  const auto types = graph::ContractionTypesOf(x.dtype, w.dtype, n.attrs);
  if (!types) return std::nullopt;
  ConvGeometry c{site.Sizes(x),
                 site.Sizes(w),
                 site.Sizes(y),
                 site.LeastSizes(y)[0],
                 !AreNumbers(x, 2) || !AreNumbers(y, 2),
                 n.attrs.GetInt("group", 1),
                 n.attrs.GetInts("strides"),
                 n.attrs.GetInts("dilations"),
                 n.attrs.GetInts("pads"),
                 *types,
                 n.attrs.GetFloat("pad_value", 0)};
  if (std::any_of(c.pads.begin(), c.pads.end(), [](int64_t p) { return p < 0; }))
    return std::nullopt;
  return c;
}

TapRange TapsThatMeet(const Group& group, const ConvGeometry& c, size_t axis) {
  TapRange out{0, c.w[axis + 2]};
  const Site site = group.site();
  const auto size = group.KnownSize(site.input(0).dims[axis + 2]);
  const auto outputs = group.KnownSize(site.result().dims[axis + 2]);
  if (!size || !outputs || c.pad_value != 0) return out;
  const graph::ConvAxis at{.size = *size,
                           .outputs = *outputs,
                           .stride = c.strides[axis],
                           .dilation = c.dilations[axis],
                           .begin = c.pads[axis]};
  while (out.count > 1 && !at.Meets(out.first)) ++out.first, --out.count;
  while (out.count > 1 && !at.Meets(out.first + out.count - 1)) --out.count;
  return out;
}

bool IsDirectConv(const ConvGeometry& c) {
  return c.rank() == 2 && (c.group == 1 || c.Depthwise());
}

int64_t MaxWidth(int64_t width, bool is_open, const Machine& machine) {
  constexpr int64_t kOpen = 8;
  return std::min(width, is_open ? kOpen : machine.registers);
}

int64_t ChannelBlock(const graph::TensorType& type, const Machine& machine) {
  constexpr int64_t kBytesOfDotProduct = 4;
  const int64_t lanes = machine.Lanes(DType::Float(32));
  const auto channels = AsInt(type.dims[1]);
  const bool bytes = type.dtype.IsInt() && type.dtype.bits == 8;
  const bool halves = type.dtype.IsFloat() && type.dtype.bits == 16;
  if (!(bytes || halves) || !channels) return lanes;
  int64_t block = kBytesOfDotProduct / type.dtype.Bytes();
  while (block < *channels) block *= 2;
  return std::min(block, lanes);
}

StorageDesc FeatureMap(const std::vector<Expr>& dims, int64_t lanes,
                       const std::vector<int64_t>& before, const std::vector<int64_t>& after,
                       double padding) {
  StorageDesc d;
  if (lanes > 1) d.blocks = {{1, lanes}};
  auto cells = [](const std::vector<int64_t>& list) {
    return std::any_of(list.begin(), list.end(), [](int64_t n) { return n > 0; });
  };
  if (!cells(before) && !cells(after)) return d;
  d.padding = padding;
  d.begin = {0, 0};
  d.size = {dims[0], dims[1]};
  for (size_t i = 0; i < before.size(); ++i) {
    d.begin.push_back(before[i]);
    d.size.push_back(graph::DimAdd(dims[i + 2], IndexConst(before[i] + after[i])));
  }
  return d;
}

StorageDesc ChannelsLast(int rank) {
  StorageDesc d;
  d.order.push_back(0);
  for (int i = 2; i < rank; ++i) d.order.push_back(i);
  d.order.push_back(1);
  return d;
}

StorageDesc FeatureOrder(const Machine& machine, int rank, int64_t lanes) {
  return machine.warp > 0 ? ChannelsLast(rank) : FeatureMap({}, lanes);
}

void WantBlockedResults(const Site& site, int64_t lanes, std::vector<Want>* wants) {
  for (graph::ValueId v : site.region.outputs) {
    wants->push_back({v, FeatureMap(site.region.type(v).dims, lanes), false, true});
  }
}

}  // namespace tenon::ops
