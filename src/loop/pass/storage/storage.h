// Where the elements of a buffer lie: its layout and strides applied, down to one index.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "loop/rewrite.h"

namespace tenon {

/// A one-dimensional view of a buffer's storage.
struct FlatBuffer {
  Buffer buffer;              // one dimension, no layout, no strides
  Expr offset;                // of the first element in `buffer`, in elements; null: 0
  std::vector<Expr> extents;  // of the storage dimensions
  std::vector<Expr> strides;  // in elements
  Expr size;                  // elements of storage
};

/// The view with a buffer of its own: same name, type, scope and alignment. A buffer that is
/// already flat stands for itself.
FlatBuffer Flatten(const Buffer& buffer);

/// Bytes of the buffer's memory in front of the region's first element; nothing where the buffer
/// has strides.
std::optional<Expr> BytesBefore(const RegionNode& region);

/// Rewrites accesses, regions and bindings of buffers to flat ones. Derive to choose where a buffer
/// goes.
class StorageRewriter : public ScopedRewriter {
 protected:
  /// Where `buffer` lies; called once per buffer. Null buffer: leave it alone.
  virtual FlatBuffer Place(const Buffer& buffer) { return Flatten(buffer); }

  Stmt VisitStmt(const Stmt& stmt) override;
  Expr VisitExpr(const Expr& expr) override;
  Buffer VisitBuffer(const Buffer& buffer) override;
  NodeRef VisitRegion(const Region& region) override;

  const FlatBuffer& At(const Buffer& buffer);
  /// The flat index of an element; a vector where an index is one.
  Expr Index(const Buffer& buffer, const std::vector<Expr>& indices);

 private:
  Expr ScalarIndex(const FlatBuffer& flat, const Buffer& buffer, const std::vector<Expr>& indices);

  std::unordered_map<const BufferNode*, FlatBuffer> places_;
  std::vector<Buffer> keep_;
};

}  // namespace tenon
