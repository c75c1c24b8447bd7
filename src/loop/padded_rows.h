// Rows of a buffer that are longer than what they hold, as storage_align makes them.
#pragma once

#include <optional>

#include "ir/expr.h"

namespace tenon {

/// The stride of a row is `offset` modulo `factor`.
struct RowPadding {
  int64_t factor, offset;
};

/// The least extent from `size` up of that kind, as an expression that shows it: size + (offset -
/// size) % factor. So rows that turn out to be shorter are padded as they were meant to be.
Expr PaddedExtent(const Expr& size, RowPadding padding);
/// What such an expression shows; nothing for others.
std::optional<RowPadding> PaddingOf(const Expr& extent);

}  // namespace tenon
