#include "ir/buffer.h"

#include "ir/node_fields.h"
#include "ir/visit.h"
#include "support/check.h"

namespace tenon {

Layout LayoutNode::Make(std::vector<Var> coords, std::vector<Expr> storage,
                        std::vector<Expr> extents, std::vector<ThreadAxis> threads,
                        int64_t replicas, double padding) {
  TN_CHECK(extents.empty() || extents.size() == storage.size());
  TN_CHECK(threads.size() <= storage.size() && replicas >= 1);
  auto n = MakeRef<LayoutNode>();
  n->coords = std::move(coords);
  n->storage = std::move(storage);
  n->extents = std::move(extents);
  n->threads = std::move(threads);
  n->replicas = replicas;
  n->padding = padding;
  return n;
}

std::vector<Expr> ApplyLayout(const Layout& layout, const std::vector<Expr>& indices) {
  if (!layout) return indices;
  TN_CHECK(layout->coords.size() == indices.size());
  VarMap map;
  for (size_t i = 0; i < indices.size(); ++i) map[layout->coords[i].get()] = indices[i];
  std::vector<Expr> out;
  for (const Expr& e : layout->storage) out.push_back(Substitute(e, map));
  return out;
}

Buffer BufferNode::Make(std::string name, DType dtype, std::vector<Expr> shape, Scope scope,
                        Layout layout, std::vector<Expr> strides, int64_t align) {
  TN_CHECK(dtype.IsScalar());
  for (const Expr& d : shape) TN_CHECK(d && d->dtype.IsIndex(), "dims of {} are index", name);
  TN_CHECK(!layout || layout->coords.size() == shape.size(), "layout of {} has another rank", name);
  TN_CHECK(strides.empty() || strides.size() == (layout ? layout->storage.size() : shape.size()));
  auto n = MakeRef<BufferNode>();
  n->name = std::move(name);
  n->dtype = dtype;
  n->shape = std::move(shape);
  n->layout = std::move(layout);
  n->strides = std::move(strides);
  n->scope = scope;
  n->align = align;
  return n;
}

Range RangeNode::Make(Expr min, Expr extent) {
  TN_CHECK(min && extent);
  auto n = MakeRef<RangeNode>();
  n->min = std::move(min);
  n->extent = std::move(extent);
  return n;
}

Region RegionNode::Make(Buffer buffer, std::vector<Range> ranges) {
  TN_CHECK(buffer && ranges.size() == buffer->shape.size());
  auto n = MakeRef<RegionNode>();
  n->buffer = std::move(buffer);
  n->ranges = std::move(ranges);
  return n;
}

Region Whole(const Buffer& buffer) {
  std::vector<Range> ranges;
  for (const Expr& extent : buffer->shape) ranges.push_back(RangeNode::Make(IndexConst(0), extent));
  return RegionNode::Make(buffer, std::move(ranges));
}

template class NodeOf<LayoutNode, NodeKind::kLayout>;
template class NodeOf<BufferNode, NodeKind::kBuffer>;
template class NodeOf<RangeNode, NodeKind::kRange>;
template class NodeOf<RegionNode, NodeKind::kRegion>;

}  // namespace tenon
