// Buffers, their layouts, and regions of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "ir/scope.h"
#include "ir/thread_axis.h"

namespace tenon {

/// A map from logical coordinates to storage coordinates (house: one notion for padding, NCHW16c,
/// packed panels, swizzles, fragments).
///
/// `coords` are the logical coordinates, one per dimension of the buffer. `storage` are expressions
/// over them, one per storage dimension; the storage is row-major over the extents, which are 1 +
/// the largest value of each expression over the logical shape, rounded up to the `extents` entry
/// where that is given (explicit padding; null = derived). `threads` names the thread axes that the
/// leading storage coordinates live on, for fragments, and `replicas` is how many
/// copies the axis holds; both are empty/1 for memory. `padding` is what the cells hold that no
/// logical point of a stored value maps to: who writes the value writes them too.
struct LayoutNode final : NodeOf<LayoutNode, NodeKind::kLayout> {
  std::vector<Var> coords;
  std::vector<Expr> storage;
  std::vector<Expr> extents;  // empty, or one per storage dimension
  std::vector<ThreadAxis> threads;
  int64_t replicas = 1;
  double padding = 0;

  static Ref<const LayoutNode> Make(std::vector<Var> coords, std::vector<Expr> storage,
                                    std::vector<Expr> extents = {},
                                    std::vector<ThreadAxis> threads = {}, int64_t replicas = 1,
                                    double padding = 0);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("coords", s.coords, FieldRole::kBinds);
    f("storage", s.storage, FieldRole::kChild);
    f("extents", s.extents, FieldRole::kChild);
    f("threads", s.threads, FieldRole::kAttribute);
    f("replicas", s.replicas, FieldRole::kAttribute);
    f("padding", s.padding, FieldRole::kAttribute);
  }
};
using Layout = Ref<const LayoutNode>;

/// Storage coordinates of a logical point: the layout's expressions with `indices` put in. Null
/// layout: the indices.
std::vector<Expr> ApplyLayout(const Layout& layout, const std::vector<Expr>& indices);

/// A place in memory with a type and a shape. Identity is the node.
struct BufferNode final : NodeOf<BufferNode, NodeKind::kBuffer> {
  std::string name;
  DType dtype;                // element type, scalar
  std::vector<Expr> shape;    // logical dims, index
  Layout layout;              // null: row-major
  std::vector<Expr> strides;  // in elements over storage dims; empty: compact
  Scope scope = Scope::kGlobal;
  /// Bytes that the first element is known to be aligned to; 0: the element's size.
  int64_t align = 0;

  static Buffer Make(std::string name, DType dtype, std::vector<Expr> shape,
                     Scope scope = Scope::kGlobal, Layout layout = nullptr,
                     std::vector<Expr> strides = {}, int64_t align = 0);
  int rank() const { return static_cast<int>(shape.size()); }
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("name", s.name, FieldRole::kIgnore);
    f("dtype", s.dtype, FieldRole::kAttribute);
    f("shape", s.shape, FieldRole::kChild);
    f("layout", s.layout, FieldRole::kChild);
    f("strides", s.strides, FieldRole::kChild);
    f("scope", s.scope, FieldRole::kAttribute);
    f("align", s.align, FieldRole::kAttribute);
  }
};

/// A half-open interval of an axis: [min, min + extent).
struct RangeNode final : NodeOf<RangeNode, NodeKind::kRange> {
  Expr min, extent;
  static Ref<const RangeNode> Make(Expr min, Expr extent);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("min", s.min, FieldRole::kChild);
    f("extent", s.extent, FieldRole::kChild);
  }
};
using Range = Ref<const RangeNode>;

/// A box of a buffer, one Range per logical dimension.
struct RegionNode final : NodeOf<RegionNode, NodeKind::kRegion> {
  Buffer buffer;
  std::vector<Range> ranges;
  static Ref<const RegionNode> Make(Buffer buffer, std::vector<Range> ranges);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("buffer", s.buffer, FieldRole::kChild);
    f("ranges", s.ranges, FieldRole::kChild);
  }
};
using Region = Ref<const RegionNode>;
/// All elements of a buffer.
Region Whole(const Buffer& buffer);

}  // namespace tenon
