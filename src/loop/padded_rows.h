// Rows of a buffer that are longer than what they hold, as storage_align makes them. A row is what
// lies behind any of its dimensions.
#pragma once

#include <optional>
#include <vector>

#include "ir/buffer.h"

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

/// Row-major, but for the dimension `axis`, whose stride is `stride`.
Layout PaddedLayout(const std::vector<Expr>& shape, size_t axis, const Expr& stride);
/// The elements of a row behind the dimension.
Expr RowSize(const std::vector<Expr>& shape, size_t axis);

struct PaddedRows {
  size_t axis;
  Expr stride;
};
/// What of a buffer's layout is of that form; nothing where it is of another.
std::optional<PaddedRows> PaddedRowsOf(const BufferNode& buffer);

}  // namespace tenon
