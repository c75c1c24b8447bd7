#include "loop/pass/storage/storage.h"

#include "loop/pass/lanes.h"

namespace tenon {

namespace {

bool IsFlat(const BufferNode& b) {
  return b.rank() == 1 && !b.layout && (b.strides.empty() || IsOne(b.strides[0]));
}

std::vector<Expr> RowMajor(const std::vector<Expr>& extents) {
  std::vector<Expr> strides(extents.size());
  Expr stride = IndexConst(1);
  for (size_t i = extents.size(); i-- > 0;) {
    strides[i] = stride;
    stride = stride * extents[i];
  }
  return strides;
}

Expr StorageSize(const BufferNode& b, const FlatBuffer& flat) {
  if (b.strides.empty()) {
    Expr size = IndexConst(1);
    for (const Expr& e : flat.extents) size = size * e;
    return Simplify(size);
  }
  Expr last = IndexConst(0);
  for (size_t i = 0; i < flat.extents.size(); ++i) {
    last = last + (flat.extents[i] - 1) * flat.strides[i];
  }
  return Simplify(last + 1);
}

}  // namespace

std::optional<Expr> BytesBefore(const RegionNode& region) {
  const BufferNode& buffer = *region.buffer;
  if (!buffer.strides.empty()) return std::nullopt;
  std::vector<Expr> first;
  for (const Range& r : region.ranges) first.push_back(r->min);
  const std::vector<Expr> at = ApplyLayout(buffer.layout, first);
  const std::vector<Expr> extents = StorageExtents(buffer.shape, buffer.layout);
  Expr bytes = IndexConst(0), stride = IndexConst(buffer.dtype.Bytes());
  for (size_t d = at.size(); d-- > 0; stride = stride * extents[d]) bytes = bytes + at[d] * stride;
  return bytes;
}

FlatBuffer Flatten(const Buffer& buffer) {
  FlatBuffer flat;
  flat.extents = StorageExtents(buffer->shape, buffer->layout);
  flat.strides = buffer->strides.empty() ? RowMajor(flat.extents) : buffer->strides;
  flat.size = StorageSize(*buffer, flat);
  flat.buffer = IsFlat(*buffer) && buffer->strides.empty()
                    ? buffer
                    : BufferNode::Make(buffer->name, buffer->dtype, {flat.size}, buffer->scope,
                                       nullptr, {}, buffer->align);
  return flat;
}

const FlatBuffer& StorageRewriter::At(const Buffer& buffer) {
  auto it = places_.find(buffer.get());
  if (it != places_.end()) return it->second;
  keep_.push_back(buffer);
  return places_.emplace(buffer.get(), Place(buffer)).first->second;
}

Expr StorageRewriter::ScalarIndex(const FlatBuffer& flat, const Buffer& buffer,
                                  const std::vector<Expr>& indices) {
  std::vector<Expr> storage = ApplyLayout(buffer->layout, indices);
  Expr index = flat.offset ? flat.offset : IndexConst(0);
  for (size_t i = 0; i < storage.size(); ++i) index = index + storage[i] * flat.strides[i];
  return analyzer_.Simplify(index);
}

Expr StorageRewriter::Index(const Buffer& buffer, const std::vector<Expr>& indices) {
  const FlatBuffer& flat = At(buffer);
  // Vector indices go through as scalars (a ramp as its lane, anything else as a name) and are
  // widened afterwards, so that layouts only ever see scalars.
  std::vector<Expr> scalars;
  int32_t lanes = 1;
  for (const Expr& i : indices) lanes = std::max(lanes, i->dtype.lanes);
  Widener widener(lanes);
  for (const Expr& i : indices) {
    Expr index = CastExpr::Make(DType::Index(), i);
    if (const auto* same = As<Broadcast>(index)) index = same->value;
    if (index->dtype.IsVector()) {
      Var lane = VarNode::Make("lane");
      if (const auto* ramp = As<Ramp>(index)) {
        analyzer_.Bind(lane, IndexConst(0), IndexConst(lanes));
        widener.Set(lane, Ramp::Make(IndexConst(0), IndexConst(1), lanes));
        index = ramp->base + lane * ramp->stride;
      } else {
        widener.Set(lane, index);
        index = lane;
      }
    }
    scalars.push_back(std::move(index));
  }
  Expr index = ScalarIndex(flat, buffer, scalars);
  return lanes == 1 ? index : widener.VisitLanes(index);
}

Expr StorageRewriter::VisitExpr(const Expr& expr) {
  return PostOrderRewrite(expr, [&](const NodeRef& n) -> NodeRef {
    const auto* load = As<Load>(n);
    if (!load || !At(load->buffer).buffer) return n;
    return Load::Make(At(load->buffer).buffer, {Index(load->buffer, load->indices)}, load->mask);
  });
}

Buffer StorageRewriter::VisitBuffer(const Buffer& buffer) {
  const FlatBuffer& flat = At(buffer);
  return flat.buffer ? flat.buffer : buffer;
}

Stmt StorageRewriter::VisitStmt(const Stmt& stmt) {
  if (const auto* store = As<Store>(stmt)) {
    const FlatBuffer& flat = At(store->buffer);
    if (!flat.buffer) return Children(stmt);
    std::vector<Expr> indices;
    for (const Expr& i : store->indices) indices.push_back(VisitExpr(i));
    Expr value = VisitExpr(store->value), mask = store->mask ? VisitExpr(store->mask) : nullptr;
    return Store::Make(flat.buffer, {Index(store->buffer, indices)}, value, mask);
  }
  if (const auto* atomic = As<Atomic>(stmt)) {
    const FlatBuffer& flat = At(atomic->buffer);
    if (!flat.buffer) return Children(stmt);
    std::vector<Expr> indices;
    for (const Expr& i : atomic->indices) indices.push_back(VisitExpr(i));
    return Atomic::Make(atomic->op, flat.buffer, {Index(atomic->buffer, indices)},
                        VisitExpr(atomic->value), atomic->order, atomic->scope);
  }
  return Children(stmt);
}

NodeRef StorageRewriter::VisitRegion(const Region& region) {
  const FlatBuffer& flat = At(region->buffer);
  if (!flat.buffer) return region->MapChildren(*this);
  // A part of what is flat is the same part, whether it is the whole or not: parts of an arena have
  // sizes about which proofs take long.
  if (flat.buffer == region->buffer && !flat.offset) {
    const Range& r = region->ranges[0];
    return RegionNode::Make(flat.buffer,
                            {RangeNode::Make(analyzer_.Simplify(VisitExpr(r->min)),
                                             analyzer_.Simplify(VisitExpr(r->extent)))});
  }
  std::vector<Expr> first, last;
  bool whole = true;
  for (size_t i = 0; i < region->ranges.size(); ++i) {
    Expr min = VisitExpr(region->ranges[i]->min), extent = VisitExpr(region->ranges[i]->extent);
    whole &= IsZero(min) && analyzer_.CanProveEqual(extent, region->buffer->shape[i]);
    first.push_back(min);
    last.push_back(min + extent - 1);
  }
  Expr min = Index(region->buffer, first);
  Expr extent = whole ? flat.size : analyzer_.Simplify(Index(region->buffer, last) - min + 1);
  return RegionNode::Make(flat.buffer, {RangeNode::Make(min, extent)});
}

}  // namespace tenon
