// Text that reads back.
//
// Two things make that hard. Names: identity is the node, so two variables may be called x; the
// printer remembers what is in scope and calls the second x_1, which the reader makes another
// variable again. And literals: 3 is an index, 3i32 is not, and 0.1f32 must be the shortest digits
// that round to the same float. Precedence decides on parentheses, so that a tree prints as people
// write it: of
//
//   (i * 8) + (j % (n + 1))      prints      i * 8 + j % (n + 1)
//
// Where two readings would be possible the printer avoids one: -3 is the constant and -(3) the
// negation, a comparison of comparisons has parentheses, since a < b > (c) would be a call with a
// stated type. Shared parts are printed at each use, so a graph of moderate size can be a text of
// any; it is cut at a limit.

#include "ir/print.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "ir/visit.h"
#include "support/check.h"
#include "support/strings.h"

namespace tenon {

namespace {

// Shared subtrees print once per use, so a small graph can have a huge text; past this many bytes
// it is cut.
constexpr size_t kMaxText = size_t{1} << 28;

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsWordChar(char c) { return IsLetter(c) || (c >= '0' && c <= '9'); }

bool IsIdentifier(std::string_view word) {
  if (word.empty() || !IsLetter(word[0])) return false;
  for (size_t i = 0; i < word.size(); ++i) {
    const bool dot = word[i] == '.' && i + 1 < word.size() && IsWordChar(word[i + 1]);
    if (!IsWordChar(word[i]) && !dot) return false;
  }
  return true;
}

// Words that stand for themselves in an expression. A type is none: it reads as a cast only before
// a parenthesis, where no variable stands.
bool IsReserved(std::string_view word) {
  if (word == "true" || word == "false" || word == "_" || word == "where") return true;
  const bool constant = word.starts_with("inf.") || word.starts_with("nan.");
  return constant && DType::Parse(word.substr(4)).has_value();
}

std::string Backquote(const std::string& name) {
  const std::string quoted = QuoteJson(name);
  std::string out = "`";
  for (char c : std::string_view(quoted).substr(1, quoted.size() - 2)) {
    if (c == '`') {
      out += "\\u0060";
    } else {
      out += c;
    }
  }
  return out + "`";
}

bool IsNumber(const Expr& e) { return IsA<IntConst>(e) || IsA<FloatConst>(e); }

// The fewest digits that read back as `value`.
std::string ShortestHalf(DType type, double value) {
  std::string text;
  for (int digits = 1; digits <= 9; ++digits) {
    text = fmt::format("{:.{}g}", value, digits);
    float read = 0;
    std::from_chars(text.data(), text.data() + text.size(), read);
    if (RoundToType(type, read) == value) break;
  }
  return text;
}

// min + extent where both are constants and the end can be written down.
std::optional<int64_t> ConstEnd(const Expr& min, const Expr& extent) {
  const auto* a = As<IntConst>(min);
  const auto* n = As<IntConst>(extent);
  int64_t end = 0;
  if (!a || !n || a->dtype != n->dtype || __builtin_add_overflow(a->value, n->value, &end)) {
    return std::nullopt;
  }
  // The end must be a constant of the type, so that end - min is the extent again.
  const Expr back = IntConst::Make(a->dtype, end);
  return As<IntConst>(back)->value == end ? std::optional(end) : std::nullopt;
}

}  // namespace

std::string ToString(const NodeRef& node) {
  IrPrinter printer;
  printer.PrintNode(node);
  return printer.Take();
}

bool IsPlainName(std::string_view word) { return IsIdentifier(word) && !IsReserved(word); }

std::string WordText(const std::string& word) { return IsPlainName(word) ? word : QuoteJson(word); }

// ---- names ----

std::string IrPrinter::Unused(const std::string& name) const {
  const std::string base = name.empty() ? "v" : name;
  std::string candidate = base;
  for (int i = 1; used_.count(candidate) != 0; ++i) candidate = fmt::format("{}_{}", base, i);
  return candidate;
}

void IrPrinter::Declare(const NodeRef& node, const std::string& name) {
  std::string chosen = Unused(name);
  used_.insert(chosen);
  std::string& slot = names_[node.get()];
  scope_.push_back({node.get(), chosen, slot});
  slot = std::move(chosen);
}

void IrPrinter::Leave(size_t mark) {
  while (scope_.size() > mark) {
    Declared& last = scope_.back();
    used_.erase(last.name);
    if (last.shadowed.empty()) {
      names_.erase(last.node);
    } else {
      names_[last.node] = std::move(last.shadowed);
    }
    scope_.pop_back();
  }
}

std::string IrPrinter::NameOf(const NodeRef& node, const std::string& name) {
  auto it = names_.find(node.get());
  if (it == names_.end()) {
    std::string chosen = Unused(name);
    used_.insert(chosen);
    it = names_.emplace(node.get(), std::move(chosen)).first;
  }
  return IsPlainName(it->second) ? it->second : Backquote(it->second);
}

// ---- nodes ----

void IrPrinter::PrintNode(const NodeRef& node) {
  if (!node) {
    out_ += "<null>";
  } else if (IsA<ExprNode>(node)) {
    PrintExpr(Expr(static_cast<const ExprNode*>(node.get())));
  } else if (const auto* buffer = As<BufferNode>(node)) {
    PrintBufferDecl(*buffer);
  } else if (const auto* layout = As<LayoutNode>(node)) {
    PrintLayout(*layout);
  } else if (const auto* range = As<RangeNode>(node)) {
    PrintRange(range->min, range->extent, /*point=*/true);
  } else if (const auto* region = As<RegionNode>(node)) {
    PrintRegion(*region);
  } else {
    out_ += fmt::format("<{}>", Name(node->kind));
  }
}

void IrPrinter::PrintInt(const IntConst& c) {
  if (c.dtype.IsBool()) {
    out_ += c.value ? "true" : "false";
  } else if (c.dtype.IsIndex()) {
    out_ += std::to_string(c.value);
  } else if (c.dtype.code == TypeCode::kUInt) {
    out_ += fmt::format("{}{}", static_cast<uint64_t>(c.value), c.dtype.ToString());
  } else {
    out_ += fmt::format("{}{}", c.value, c.dtype.ToString());
  }
}

void IrPrinter::PrintFloat(const FloatConst& c) {
  const std::string type = c.dtype.ToString();
  if (std::isnan(c.value)) {
    out_ += "nan." + type;
  } else if (std::isinf(c.value)) {
    out_ += (c.value < 0 ? "-inf." : "inf.") + type;
  } else if (c.dtype.bits == 16) {
    out_ += ShortestHalf(c.dtype, c.value) + type;
  } else if (c.dtype.bits == 32) {
    out_ += fmt::format("{}{}", static_cast<float>(c.value), type);  // the shortest that reads back
  } else {
    out_ += fmt::format("{}{}", c.value, type);
  }
}

void IrPrinter::PrintList(const std::vector<Expr>& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) out_ += ", ";
    PrintExpr(list[i]);
  }
}

void IrPrinter::PrintUnary(const Unary& e, int min_precedence) {
  const bool parens = min_precedence > kUnaryPrecedence;
  if (parens) out_ += "(";
  out_ += Text(e.op);
  // -3 is the constant; the negation of 3 is -(3).
  PrintExpr(e.value, IsNumber(e.value) ? kUnaryPrecedence + 1 : kUnaryPrecedence);
  if (parens) out_ += ")";
}

void IrPrinter::PrintBinary(const Binary& e, int min_precedence) {
  const BinaryInfo& info = Info(e.op);
  if (info.precedence == 0) {
    out_ += fmt::format("{}(", info.text);
    PrintExpr(e.lhs);
    out_ += ", ";
    PrintExpr(e.rhs);
    out_ += ")";
    return;
  }
  const bool parens = info.precedence < min_precedence;
  if (parens) out_ += "(";
  // a < b > (c) would read like a call with a stated type: comparisons of comparisons are in
  // parentheses.
  PrintExpr(e.lhs, info.precedence + (info.is_comparison ? 1 : 0));
  out_ += fmt::format(" {} ", info.text);
  PrintExpr(e.rhs, info.precedence + 1);
  if (parens) out_ += ")";
}

void IrPrinter::PrintLanes(DType type) {
  out_ +=
      type.scalable ? fmt::format(", vscale * {})", type.lanes) : fmt::format(", {})", type.lanes);
}

void IrPrinter::PrintCall(const Call& e) {
  const IntrinsicInfo& info = Info(e.intrinsic);
  out_ += info.text;
  if (info.type == IntrinsicType::kGiven) out_ += fmt::format("<{}>", e.dtype.ToString());
  out_ += "(";
  PrintList(e.args);
  out_ += ")";
}

void IrPrinter::PrintAccess(const Buffer& buffer, const std::vector<Expr>& indices,
                            const Expr& mask) {
  out_ += NameOf(buffer, buffer->name) + "[";
  PrintList(indices);
  if (mask) {
    out_ += indices.empty() ? "where " : " where ";
    PrintExpr(mask);
  }
  out_ += "]";
}

void IrPrinter::PrintExpr(const Expr& e, int min_precedence) {
  if (!e) {
    out_ += "<null>";
    return;
  }
  if (out_.size() > kMaxText) {
    out_ += "<cut>";
    return;
  }
  if (IsNumber(e)) {
    const bool parens = min_precedence > kUnaryPrecedence;
    if (parens) out_ += "(";
    IsA<IntConst>(e) ? PrintInt(*As<IntConst>(e)) : PrintFloat(*As<FloatConst>(e));
    if (parens) out_ += ")";
  } else if (const auto* s = As<StringConst>(e)) {
    out_ += QuoteJson(s->value);
  } else if (const auto* v = As<VarNode>(e)) {
    out_ += NameOf(e, v->name);
  } else if (const auto* u = As<Unary>(e)) {
    PrintUnary(*u, min_precedence);
  } else if (const auto* b = As<Binary>(e)) {
    PrintBinary(*b, min_precedence);
  } else if (const auto* s = As<Select>(e)) {
    out_ += "select(";
    PrintList({s->condition, s->on_true, s->on_false});
    out_ += ")";
  } else if (const auto* c = As<CastExpr>(e)) {
    out_ += c->dtype.Element().ToString() + "(";
    PrintExpr(c->value);
    out_ += ")";
  } else if (const auto* l = As<Load>(e)) {
    PrintAccess(l->buffer, l->indices, l->mask);
  } else if (const auto* r = As<Ramp>(e)) {
    out_ += "ramp(";
    PrintList({r->base, r->stride});
    PrintLanes(r->dtype);
  } else if (const auto* b = As<Broadcast>(e)) {
    out_ += "broadcast(";
    PrintExpr(b->value);
    PrintLanes(b->dtype);
  } else if (const auto* c = As<Call>(e)) {
    PrintCall(*c);
  } else {
    TN_UNREACHABLE();
  }
}

// ---- ranges, regions, buffers ----

void IrPrinter::PrintRange(const Expr& min, const Expr& extent, bool point) {
  PrintExpr(min);
  const auto* n = As<IntConst>(extent);
  if (point && n && n->value == 1 && n->dtype.IsIndex()) return;
  const auto* a = As<IntConst>(min);
  if (auto end = ConstEnd(min, extent)) {
    out_ += "..";
    PrintExpr(IntConst::Make(a->dtype, *end));
  } else if (a && a->value == 0) {
    out_ += "..";
    PrintExpr(extent);
  } else {
    out_ += "..+";
    PrintExpr(extent);
  }
}

static bool IsWhole(const RegionNode& region) {
  for (size_t i = 0; i < region.ranges.size(); ++i) {
    const RangeNode& r = *region.ranges[i];
    const bool from_zero = IsA<IntConst>(r.min) && IsZero(r.min) && r.min->dtype.IsIndex();
    if (!from_zero || !StructuralEqual(r.extent, region.buffer->shape[i])) return false;
  }
  return true;
}

void IrPrinter::PrintRegion(const RegionNode& region) {
  out_ += NameOf(region.buffer, region.buffer->name);
  if (IsWhole(region)) return;
  out_ += "[";
  for (size_t i = 0; i < region.ranges.size(); ++i) {
    if (i) out_ += ", ";
    PrintRange(region.ranges[i]->min, region.ranges[i]->extent, /*point=*/true);
  }
  out_ += "]";
}

// The names of variables and buffers outside that a layout mentions. Every other name is free for
// its coordinates.
std::unordered_set<std::string> IrPrinter::NamesMentioned(const LayoutNode& layout) {
  std::unordered_set<const Node*> coords;
  for (const Var& coord : layout.coords) coords.insert(coord.get());
  std::vector<NodeRef> mentioned;
  PreOrder(NodeRef(&layout), [&](const NodeRef& n) {
    const bool outside = (IsA<VarNode>(n) || IsA<BufferNode>(n)) && coords.count(n.get()) == 0;
    if (outside) mentioned.push_back(n);
    return !IsA<BufferNode>(n);
  });
  std::unordered_set<std::string> names;
  for (const NodeRef& n : mentioned) {
    NameOf(n, IsA<VarNode>(n) ? As<VarNode>(n)->name : As<BufferNode>(n)->name);
    names.insert(names_.at(n.get()));
  }
  return names;
}

void IrPrinter::PrintLayout(const LayoutNode& layout) {
  std::unordered_set<std::string> mentioned = NamesMentioned(layout);
  const std::unordered_set<std::string> outside = std::exchange(used_, std::move(mentioned));
  const size_t mark = Enter();
  out_ += "(";
  for (size_t i = 0; i < layout.coords.size(); ++i) {
    const Var& coord = layout.coords[i];
    Declare(coord, coord->name);
    out_ += (i ? ", " : "") + NameOf(coord, coord->name);
  }
  out_ += ") -> (";
  for (size_t i = 0; i < layout.storage.size(); ++i) {
    if (i) out_ += ", ";
    PrintExpr(layout.storage[i]);
    if (!layout.extents.empty()) {
      out_ += " size ";
      layout.extents[i] ? PrintExpr(layout.extents[i]) : void(out_ += "_");
    }
    if (i < layout.threads.size()) out_ += " on " + WordText(Name(layout.threads[i]));
  }
  out_ += ")";
  if (layout.replicas != 1) out_ += fmt::format(" replicas {}", layout.replicas);
  if (layout.padding != 0) out_ += fmt::format(" padding {}", layout.padding);
  Leave(mark);
  used_ = outside;
}

void IrPrinter::PrintBufferDecl(const BufferNode& buffer) {
  out_ += NameOf(NodeRef(&buffer), buffer.name) + ": " + buffer.dtype.ToString() + "[";
  PrintList(buffer.shape);
  out_ += "]";
  if (buffer.layout) {
    out_ += " layout ";
    PrintLayout(*buffer.layout);
  }
  if (!buffer.strides.empty()) {
    out_ += " strides (";
    PrintList(buffer.strides);
    out_ += ")";
  }
  if (buffer.scope != Scope::kGlobal) out_ += " in " + WordText(Name(buffer.scope));
  if (buffer.align != 0) out_ += fmt::format(" align {}", buffer.align);
}

}  // namespace tenon
