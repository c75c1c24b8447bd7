// Accesses, ranges, regions, layouts and declarations of buffers.
#include <fmt/format.h>

#include "ir/parse_core.h"
#include "support/strings.h"

namespace tenon {

TextParser::Access TextParser::TakeAccess() {
  const Token at = Peek();
  Access access;
  access.lanes = DType::Index();
  access.buffer = TakeBuffer();
  Expect("[", "after the name of a buffer");
  while (!At("]") && !At("where")) {
    Operand index = TakeOperand();
    const DType type = index.expr->dtype;
    if (!type.IsIndex() && !type.IsInt()) {
      Fail(at, fmt::format("index of '{}': expected index but got {}", access.buffer->name,
                           type.ToString()));
    }
    if (type.IsVector()) access.lanes = DType::Index().WithLanes(type.lanes, type.scalable);
    access.depth = std::max(access.depth, index.depth);
    access.indices.push_back(index.expr);
    if (!Accept(",")) break;
  }
  if (Accept("where")) {
    Operand mask = TakeOperand();
    const DType expected = DType::Bool().WithLanes(access.lanes.lanes, access.lanes.scalable);
    if (mask.expr->dtype != expected) {
      Fail(at, fmt::format("mask of '{}': expected {} but got {}", access.buffer->name,
                           expected.ToString(), mask.expr->dtype.ToString()));
    }
    access.mask = mask.expr;
    access.depth = std::max(access.depth, mask.depth);
  }
  Expect("]", "after indices");
  if (access.indices.size() != access.buffer->shape.size()) {
    Fail(at, fmt::format("'{}' has {} dimensions but got {} indices", access.buffer->name,
                         access.buffer->shape.size(), access.indices.size()));
  }
  return access;
}

// end - min as a builder would write it, without wrapping.
Expr TextParser::ExtentTo(const Token& at, const Expr& min, const Expr& end) {
  const auto* a = As<IntConst>(min);
  const auto* b = As<IntConst>(end);
  if (a && a->value == 0) return end;
  const auto* sum = As<Binary>(end);
  if (sum && sum->op == BinaryOp::kAdd && StructuralEqual(sum->lhs, min)) return sum->rhs;
  int64_t extent = 0;
  if (!a || !b) return end - min;
  const bool wraps = __builtin_sub_overflow(b->value, a->value, &extent);
  Expr e = IntConst::Make(a->dtype, extent);
  if (wraps || As<IntConst>(e)->value != extent)
    Fail(at, "the length of the range does not fit its type");
  return e;
}

Range TextParser::TakeRange(DType type, bool point) {
  const Token at = Peek();
  Expr min = TakeExpr(type, "start of a range");
  if (Accept("..+")) return RangeNode::Make(min, TakeExpr(type, "length of a range"));
  if (Accept("..")) {
    Expr end = TakeExpr(type, "end of a range");
    return RangeNode::Make(min, ExtentTo(at, min, end));
  }
  if (!point) FailExpected("'..' in a range");
  return RangeNode::Make(min, MakeIntConst(type, 1));
}

Region TextParser::TakeRegion() {
  const Token at = Peek();
  Buffer buffer = TakeBuffer();
  std::vector<Range> ranges;
  if (!Accept("[")) {
    for (const Expr& extent : buffer->shape)
      ranges.push_back(RangeNode::Make(IndexConst(0), extent));
    return RegionNode::Make(buffer, std::move(ranges));
  }
  List("]", "after a region", [&] { ranges.push_back(TakeRange(DType::Index(), /*point=*/true)); });
  if (ranges.size() != buffer->shape.size()) {
    Fail(at, fmt::format("'{}' has {} dimensions but the region has {}", buffer->name,
                         buffer->shape.size(), ranges.size()));
  }
  return RegionNode::Make(buffer, std::move(ranges));
}

// (i, j) -> (i / 16 on threadIdx.x, i % 16 size 16) replicas 2 padding -inf
Layout TextParser::TakeLayout() {
  const size_t mark = Enter();
  std::vector<Var> coords;
  std::vector<Expr> storage, extents;
  std::vector<ThreadAxis> threads;
  Expect("(", "before the coordinates of a layout");
  List(")", "after the coordinates of a layout", [&] {
    const Token at = Peek();
    Var coord = VarNode::Make(TakeName("a coordinate"));
    for (const Var& other : coords) {
      if (other->name == coord->name)
        Fail(at, fmt::format("two coordinates are named '{}'", coord->name));
    }
    Declare(at, coord->name, coord, /*hide=*/true);
    coords.push_back(coord);
  });
  Expect("->", "in a layout");
  Expect("(", "before the storage of a layout");
  List(")", "after the storage of a layout", [&] {
    const Token at = Peek();
    storage.push_back(TakeIndex("storage coordinate"));
    if (Accept("size"))
      extents.push_back(Accept("_") ? Expr() : TakeIndex("extent of a storage dimension"));
    if (!extents.empty() && extents.size() != storage.size()) {
      Fail(at, "expected 'size' on every storage coordinate or on none");
    }
    if (!Accept("on")) return;
    if (threads.size() + 1 != storage.size())
      Fail(at, "expected the thread axes on the leading coordinates");
    threads.push_back(TakeThreadAxis());
  });
  int64_t replicas = 1;
  if (Accept("replicas")) {
    const Token at = Peek();
    replicas = TakeInt("a number of replicas");
    if (replicas < 1) Fail(at, fmt::format("expected at least one replica but got {}", replicas));
  }
  double padding = 0;
  if (Accept("padding")) {
    const Token at = Peek();
    const AttrValue value = TakeAttrValue();
    if (const auto* number = std::get_if<int64_t>(&value)) {
      padding = static_cast<double>(*number);
    } else if (const auto* real = std::get_if<double>(&value)) {
      padding = *real;
    } else {
      Fail(at, "expected a number that padding holds");
    }
  }
  Leave(mark);
  return LayoutNode::Make(coords, storage, extents, threads, replicas, padding);
}

Buffer TextParser::TakeBufferType(const std::string& name) {
  const Token at = Peek();
  auto dtype = at.kind == TokenKind::kWord ? DType::Parse(at.text) : std::nullopt;
  if (!dtype || !dtype->IsScalar()) FailExpected("the element type of a buffer");
  Take();
  Expect("[", "after the element type of a buffer");
  std::vector<Expr> shape, strides;
  List("]", "after a shape", [&] { shape.push_back(TakeIndex("dimension")); });
  Layout layout;
  Scope scope = Scope::kGlobal;
  int64_t align = 0;
  const Token after = Peek();
  if (Accept("layout")) layout = TakeLayout();
  if (layout && layout->coords.size() != shape.size()) {
    Fail(after, fmt::format("'{}' has {} dimensions but its layout has {}", name, shape.size(),
                            layout->coords.size()));
  }
  const Token before_strides = Peek();
  if (Accept("strides")) {
    Expect("(", "before strides");
    List(")", "after strides", [&] { strides.push_back(TakeIndex("stride")); });
    const size_t rank = layout ? layout->storage.size() : shape.size();
    if (strides.size() != rank && !strides.empty()) {
      Fail(before_strides, fmt::format("expected {} strides but got {}", rank, strides.size()));
    }
  }
  if (Accept("in")) scope = TakeScope();
  if (Accept("align")) align = TakeInt("an alignment in bytes");
  return BufferNode::Make(name, *dtype, std::move(shape), scope, std::move(layout),
                          std::move(strides), align);
}

}  // namespace tenon
