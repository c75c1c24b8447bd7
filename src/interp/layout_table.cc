#include "interp/layout_table.h"

#include <algorithm>

#include "ir/visit.h"

namespace tenon::interp {

namespace {
constexpr int64_t kMostElements = 1 << 16;
}

bool LayoutTable::Serves(const LayoutNode& layout, std::span<const int64_t> shape) {
  int64_t elements = 1;
  for (int64_t extent : shape) {
    if (extent <= 0 || extent > kMostElements) return false;
    elements *= extent;
    if (elements > kMostElements) return false;
  }
  bool closed = true;
  for (const Expr& e : layout.storage) {
    PreOrder(e, [&](const NodeRef& n) {
      const auto* var = As<VarNode>(n);
      closed &= !var || std::any_of(layout.coords.begin(), layout.coords.end(),
                                    [&](const Var& coord) { return coord.get() == var; });
      return closed;
    });
  }
  return closed;
}

LayoutTable::LayoutTable(Layout layout, std::span<const int64_t> shape)
    : layout_(std::move(layout)), shape_(shape.begin(), shape.end()) {
  size_t elements = 1;
  for (int64_t extent : shape) elements *= static_cast<size_t>(extent);
  known_.resize(elements);
  storage_.resize(elements * layout_->storage.size());
}

bool LayoutTable::IsOf(std::span<const int64_t> shape) const {
  return std::equal(shape.begin(), shape.end(), shape_.begin(), shape_.end());
}

std::optional<size_t> LayoutTable::ElementAt(std::span<const int64_t> indices) const {
  int64_t element = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= shape_[i]) return std::nullopt;
    element = element * shape_[i] + indices[i];
  }
  return static_cast<size_t>(element);
}

Indices LayoutTable::At(size_t element) const {
  const size_t rank = layout_->storage.size();
  Indices out(rank);
  for (size_t i = 0; i < rank; ++i) out[i] = storage_[element * rank + i];
  return out;
}

void LayoutTable::Keep(size_t element, std::span<const int64_t> storage) {
  known_[element] = true;
  std::copy(storage.begin(), storage.end(),
            storage_.begin() + static_cast<std::ptrdiff_t>(element * storage.size()));
}

}  // namespace tenon::interp
