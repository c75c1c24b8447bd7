#include "loop/pass/fragments/fragment_layout.h"

#include <algorithm>
#include <bit>

#include "arith/analyzer.h"
#include "arith/int_math.h"
#include "ir/visit.h"
#include "loop/threads.h"
#include "loop/warpgroup.h"

namespace tenon {

namespace {

using Values = std::unordered_map<const Node*, int64_t>;

// Of the operators that layouts are made of; nothing for any other.
std::optional<int64_t> ValueOf(const Expr& e, const Values& values) {
  if (auto constant = AsInt(e)) return constant;
  if (auto it = values.find(e.get()); it != values.end()) return it->second;
  const auto* b = As<Binary>(e);
  if (b == nullptr) return std::nullopt;
  const auto x = ValueOf(b->lhs, values), y = ValueOf(b->rhs, values);
  if (!x || !y) return std::nullopt;
  const bool divides = b->op == BinaryOp::kDiv || b->op == BinaryOp::kMod;
  if (*x < 0 || *y < 0 || (divides && *y == 0)) return std::nullopt;
  switch (b->op) {
    case BinaryOp::kAdd: return *x + *y;
    case BinaryOp::kSub: return *x - *y;
    case BinaryOp::kMul: return *x * *y;
    case BinaryOp::kDiv: return *x / *y;
    case BinaryOp::kMod: return *x % *y;
    case BinaryOp::kBitXor: return *x ^ *y;
    default: return std::nullopt;  // NOLINT: see above
  }
}

// The points of a box, the last dimension fastest.
bool Advance(const std::vector<int64_t>& shape, std::vector<int64_t>* point) {
  for (size_t d = shape.size(); d-- > 0;) {
    if (++(*point)[d] < shape[d]) return true;
    (*point)[d] = 0;
  }
  return false;
}

// The elements by lane and register.
struct Table {
  int64_t lanes = 0, registers = 1;
  std::vector<std::vector<int64_t>> points;  // of lane * registers + register
};

std::optional<Table> Invert(const LayoutNode& layout, const std::vector<Expr>& extents,
                            const std::vector<int64_t>& shape) {
  Table out;
  std::vector<int64_t> sizes;
  for (const Expr& e : extents) sizes.push_back(AsInt(e).value_or(0));
  if (sizes.empty() || (sizes[0] != kLanes && sizes[0] != kWarpgroup)) return std::nullopt;
  out.lanes = sizes[0];
  int64_t elements = 1;
  for (size_t i = 1; i < sizes.size(); ++i) out.registers *= sizes[i];
  for (int64_t n : shape) elements *= n;
  constexpr int64_t kMostElements = 1 << 16;
  if (elements > kMostElements || elements != out.lanes * out.registers) return std::nullopt;
  out.points.resize(static_cast<size_t>(elements));
  std::vector<int64_t> point(shape.size(), 0);
  do {
    const std::vector<int64_t> storage = StorageAt(layout, point);
    int64_t number = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (storage.size() != sizes.size() || storage[i] >= sizes[i]) return std::nullopt;
      number = number * sizes[i] + storage[i];
    }
    std::vector<int64_t>& place = out.points[static_cast<size_t>(number)];
    if (!place.empty()) return std::nullopt;  // two elements in one register
    place = point;
  } while (Advance(shape, &point));
  return out;
}

// What the bits of a number do to a point, from the highest to the lowest; nothing where one does
// several things.
std::optional<std::vector<TileDigit>> DigitsOf(const Table& table, bool of_lane) {
  const int64_t count = of_lane ? table.lanes : table.registers;
  if (!std::has_single_bit(static_cast<uint64_t>(count))) return std::nullopt;
  std::vector<TileDigit> out;
  for (int bit = 0; (int64_t{1} << bit) < count; ++bit) {
    const int64_t number = (int64_t{1} << bit) * (of_lane ? table.registers : 1);
    const std::vector<int64_t>& point = table.points[static_cast<size_t>(number)];
    TileDigit digit{of_lane, bit, 1, 0, 0};
    for (size_t d = 0; d < point.size(); ++d) {
      if (point[d] == 0) continue;
      if (digit.step != 0) return std::nullopt;
      digit.dim = d;
      digit.step = point[d];
    }
    TileDigit* last = out.empty() ? nullptr : &out.back();
    if (last && last->dim == digit.dim && digit.step == last->step << last->bits) {
      ++last->bits;
    } else {
      out.push_back(digit);
    }
  }
  std::reverse(out.begin(), out.end());
  return out;
}

bool Reproduces(const std::vector<TileDigit>& digits, const Table& table) {
  for (size_t number = 0; number < table.points.size(); ++number) {
    std::vector<int64_t> point(table.points[number].size(), 0);
    for (const TileDigit& digit : digits) {
      const auto whole = static_cast<int64_t>(number);
      const int64_t from = digit.of_lane ? whole / table.registers : whole % table.registers;
      point[digit.dim] += ((from >> digit.shift) & ((int64_t{1} << digit.bits) - 1)) * digit.step;
    }
    if (point != table.points[number]) return false;
  }
  return true;
}

}  // namespace

std::vector<int64_t> StorageAt(const LayoutNode& layout, const std::vector<int64_t>& point) {
  Values values;
  for (size_t d = 0; d < layout.coords.size(); ++d) values[layout.coords[d].get()] = point[d];
  std::vector<int64_t> out;
  for (const Expr& e : layout.storage) {
    auto value = ValueOf(e, values);
    if (!value) return {};
    out.push_back(*value);
  }
  return out;
}

std::optional<FragmentTile> FragmentTile::Of(const BufferNode& param, bool opaque) {
  const Layout& layout = param.layout;
  const bool fits = layout && layout->replicas == 1 && layout->threads.size() == 1 &&
                    layout->threads[0] == kLaneAxis;
  if (!fits) return std::nullopt;
  FragmentTile out;
  out.layout_ = layout;
  out.opaque_ = opaque;
  for (const Expr& e : param.shape) out.shape_.push_back(AsInt(e).value_or(0));
  auto table = Invert(*layout, StorageExtents(param.shape, layout), out.shape_);
  if (!table && opaque) return out;
  if (!table) return std::nullopt;
  out.lanes_ = table->lanes;
  for (bool of_lane : {true, false}) {
    auto digits = DigitsOf(*table, of_lane);
    if (!digits) return std::nullopt;
    out.digits_.insert(out.digits_.end(), digits->begin(), digits->end());
  }
  if (!Reproduces(out.digits_, *table)) return std::nullopt;
  return out;
}

Layout FragmentTile::Cover(size_t rank, const std::vector<size_t>& dims) const {
  std::vector<Var> coords;
  std::vector<Expr> outer;
  for (size_t d = 0; d < rank; ++d) {
    coords.push_back(VarNode::Make("x" + std::to_string(d), DType::Index()));
    outer.emplace_back(coords.back());
  }
  VarMap inside;
  for (size_t i = 0; i < dims.size(); ++i) {
    inside[layout_->coords[i].get()] = Expr(coords[dims[i]]) % shape_[i];
    outer[dims[i]] = Expr(coords[dims[i]]) / shape_[i];
  }
  std::vector<Expr> shape, extents{IndexConst(lanes_)}, storage;
  for (int64_t n : shape_) shape.push_back(IndexConst(n));
  const std::vector<Expr> own = StorageExtents(shape, layout_);
  storage.push_back(Substitute(layout_->storage[0], inside));
  storage.insert(storage.end(), outer.begin(), outer.end());
  extents.resize(storage.size());
  for (size_t i = 1; i < own.size(); ++i) {
    storage.push_back(Substitute(layout_->storage[i], inside));
    extents.push_back(own[i]);
  }
  for (Expr& e : storage) e = Simplify(e);
  return LayoutNode::Make(std::move(coords), std::move(storage), std::move(extents),
                          layout_->threads);
}

Layout CoverMemory(const BufferNode& tile, size_t rank, const std::vector<size_t>& dims) {
  std::vector<Var> coords;
  std::vector<Expr> storage, extents(rank);
  for (size_t d = 0; d < rank; ++d) {
    coords.push_back(VarNode::Make("x" + std::to_string(d), DType::Index()));
    storage.emplace_back(coords.back());
  }
  VarMap inside;
  for (size_t i = 0; i < dims.size(); ++i) {
    inside[tile.layout->coords[i].get()] = Expr(coords[dims[i]]) % tile.shape[i];
    storage[dims[i]] = Expr(coords[dims[i]]) / tile.shape[i];
  }
  const std::vector<Expr> own = StorageExtents(tile.shape, tile.layout);
  for (size_t i = 0; i < own.size(); ++i) {
    storage.push_back(Substitute(tile.layout->storage[i], inside));
    extents.push_back(own[i]);
  }
  for (Expr& e : storage) e = Simplify(e);
  return LayoutNode::Make(std::move(coords), std::move(storage), std::move(extents));
}

}  // namespace tenon
