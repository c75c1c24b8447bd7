// What a layout's expressions come to, remembered.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "interp/indices.h"
#include "ir/buffer.h"

namespace tenon::interp {

/// Storage coordinates of a small buffer's elements: of the fragments of a warp or the blocks of a
/// packed matrix each is touched many times, and its layout's arithmetic would take longer than all
/// else.
class LayoutTable {
 public:
  /// Whether a buffer of this shape has so few elements, and its layout mentions nothing but its
  /// own coordinates.
  static bool Serves(const LayoutNode& layout, std::span<const int64_t> shape);

  LayoutTable(Layout layout, std::span<const int64_t> shape);

  bool IsOf(std::span<const int64_t> shape) const;
  /// The element's number; nullopt: there is no such element.
  std::optional<size_t> ElementAt(std::span<const int64_t> indices) const;
  bool Knows(size_t element) const { return known_[element]; }
  Indices At(size_t element) const;
  void Keep(size_t element, std::span<const int64_t> storage);

 private:
  Layout layout_;  // whose address is what it is found by
  std::vector<int64_t> shape_;
  std::vector<bool> known_;
  std::vector<int64_t> storage_;  // of each element, one after another
};

}  // namespace tenon::interp
