// Expressions as C, without C's vectors.
//
// A vector expression is a loop over lanes in which the text of one lane stands; a scalar is
// computed before that loop, once. So text is collected in sections: the statement's, a loop over
// lanes, a branch in it (the untaken side of `?:` must not run). A section remembers the texts of
// expressions that were written in it (memo); what is used more than once, or is deeper than fits a
// line, gets a name there. A vector's text holds within its own loop only. The store
//
//   B[ramp(i * 4, 1, 4) where …] = max(x * x, x * x + 1.5f32)      x = A[… where …]
//
// becomes
//
//   float v1[4];
//   for (int64_t lane = 0; lane < 4; ++lane) {
//     const int64_t t2 = i * 4 + lane;
//     const bool t3 = t2 < n;
//     const float t4 = t3 ? b0[t2] : 0.0f;
//     const float t5 = t4 * t4;
//     v1[lane] = tn_max_f32(t5, t5 + 1.5f);
//   }
//   for (int64_t lane = 0; lane < 4; ++lane) {
//     const int64_t t6 = i * 4 + lane;
//     const bool t7 = t6 < n;
//     if (t7) b1[t6] = v1[lane];
//   }
//
// in two loops, since every lane is read before one is written. Compilers make vectors of them
// again.

#include "codegen/c_family/expr.h"

#include <fmt/format.h>

#include "support/check.h"

namespace tenon::codegen {

namespace {

constexpr int kMostDepth = 12;  // of an expression on one line

}  // namespace

// ---- statements and sections ----

void SourceExpr::Begin(int indent, const std::vector<Expr>& roots) {
  statement_ = Section{};
  statement_.indent = indent;
  now_ = &statement_;
  uses_.clear();
  guards_.Clear();
  struct Counter final : ChildVisitor {
    std::unordered_map<const ExprNode*, int>* uses;
    std::vector<Expr> open;
    void VisitChild(const NodeRef& child, FieldRole) override {
      if (!IsA<ExprNode>(child)) return;
      Expr e = Cast<ExprNode>(child);
      if (++(*uses)[e.get()] == 1) open.push_back(std::move(e));
    }
  } counter;
  counter.uses = &uses_;
  for (const Expr& e : roots) {
    if (e) counter.VisitChild(e, FieldRole::kChild);
  }
  while (!counter.open.empty()) {
    Expr e = std::move(counter.open.back());
    counter.open.pop_back();
    e->VisitChildren(counter);
  }
}

std::string SourceExpr::TakeLines() {
  TN_CHECK(now_ == &statement_);
  return std::move(statement_.lines);
}

void SourceExpr::Line(const std::string& text) {
  now_->lines += std::string(static_cast<size_t>(2 * now_->indent), ' ') + text + "\n";
}

SourceText SourceExpr::Unsupported(const std::string& what) {
  module_.Error(func_, "unsupported: " + what);
  return {"0", Binding::kPrimary, 0, false};
}

SourceExpr::Section* SourceExpr::LanesOf() const {
  for (Section* s = now_; s; s = s->parent) {
    if (s->kind == Kind::kLanes) return s;
  }
  return nullptr;
}

void SourceExpr::Open(Section* section, Kind kind) {
  section->parent = now_;
  section->kind = kind;
  section->indent = now_->indent + 1;
  now_ = section;
}

void SourceExpr::OpenLanes(Section* section, int32_t lanes) {
  Open(section, Kind::kLanes);
  section->lanes = lanes;
  section->lane = names_.Take("lane");
}

void SourceExpr::CloseLanes(Section* section) {
  now_ = section->parent;
  if (values_.language().unroll) Line(values_.language().unroll);
  Line(fmt::format("for ({2} {0} = 0; {0} < {1}; ++{0}) {{", section->lane, section->lanes,
                   values_.TypeName(DType::Index())));
  now_->lines += section->lines;
  Line("}");
  names_.Give(section->lane);
}

// A vector's text is that of a lane: it holds within its own loop only.
const SourceText* SourceExpr::Known(const Expr& e) const {
  for (const Section* s = now_; s; s = s->parent) {
    if (auto it = s->memo.find(e.get()); it != s->memo.end()) return &it->second;
    if (e->dtype.IsVector() && s->kind == Kind::kLanes) return nullptr;
  }
  return nullptr;
}

const std::string* SourceExpr::ArrayOf(const Expr& e) const {
  for (const Section* s = now_; s; s = s->parent) {
    if (auto it = s->arrays.find(e.get()); it != s->arrays.end()) return &it->second;
  }
  return nullptr;
}

std::string SourceExpr::Fresh(const char* prefix) {
  std::string name = fmt::format("{}{}", prefix, next_++);
  while (!names_.IsFree(name)) name = fmt::format("{}{}", prefix, next_++);
  names_.Reserve(name);
  return name;
}

SourceText SourceExpr::Named(const Expr& e, const SourceText& value) {
  std::string type = values_.TypeName(e->dtype);
  std::string name = Fresh("t");
  Line(fmt::format("{} {} = {};", e->dtype.IsHandle() ? type + " const" : "const " + type, name,
                   value.text));
  return {name, Binding::kPrimary, 0, false};
}

SourceText SourceExpr::Emit(const Expr& e, bool once) {
  SourceText v = Visit(e);
  const bool is_simple = IsA<IntConst>(e) || IsA<VarNode>(e);
  return once && !is_simple && v.depth > 0 ? Named(e, v) : v;
}

SourceText SourceExpr::Visit(const Expr& e) {
  if (e->dtype.scalable) return Unsupported("scalable vectors in code generation");
  if (values_.TypeName(e->dtype).empty())
    return Unsupported("values of type " + e->dtype.ToString() + " in code generation");
  if (const SourceText* known = Known(e)) return *known;
  // Scalars of a loop over lanes are computed before it, but for those of a branch in it.
  if (e->dtype.IsScalar() && now_->kind == Kind::kLanes) {
    Section* inside = now_;
    now_ = inside->parent;
    SourceText v = Visit(e);
    now_ = inside;
    return v;
  }
  if (e->dtype.IsVector()) {
    Section* loop = LanesOf();
    TN_CHECK(loop && loop->lanes == e->dtype.lanes, "{} lanes outside their loop", e->dtype.lanes);
    if (const std::string* array = ArrayOf(e))
      return {fmt::format("{}[{}]", *array, loop->lane), Binding::kPrimary, 0, false};
  }
  SourceText v = ExprFunctor<SourceText>::Visit(e);
  auto uses = uses_.find(e.get());
  const bool shared = uses != uses_.end() && uses->second > 1;
  if ((shared && v.depth > 0) || v.depth > kMostDepth) v = Named(e, v);
  now_->memo[e.get()] = v;
  return v;
}

// ---- leaves and operators ----

SourceText SourceExpr::VisitDefault(const Expr& e) { return Unsupported(Name(e->kind)); }

SourceText SourceExpr::VisitIntConst(const IntConst& n, const Expr&) {
  return values_.Int(n.dtype.Element(), n.value);
}

SourceText SourceExpr::VisitFloatConst(const FloatConst& n, const Expr&) {
  return values_.Float(n.dtype.Element(), n.value);
}

SourceText SourceExpr::VisitStringConst(const StringConst& n, const Expr&) {
  if (n.value.starts_with("@"))
    return {module_.Symbol(n.value.substr(1)), Binding::kUnary, 0, false};
  return {"(void*)" + QuoteC(n.value), Binding::kUnary, 0, false};
}

SourceText SourceExpr::VisitVar(const VarNode& n, const Expr&) {
  auto it = vars_.find(&n);
  TN_CHECK(it != vars_.end(), "variable {} of {} is used outside its scope", n.name, func_.name);
  if (n.dtype.IsScalar()) return {it->second, Binding::kPrimary, 0, false};
  return {fmt::format("{}[{}]", it->second, LanesOf()->lane), Binding::kPrimary, 0, false};
}

SourceText SourceExpr::VisitUnary(const Unary& n, const Expr&) {
  return values_.Unary(n.op, n.dtype.Element(), Visit(n.value));
}

// a * b + c and its like, where the block lets the product go without its rounding.
std::optional<SourceText> SourceExpr::Contracted(const Binary& n) {
  const DType type = n.dtype.Element();
  if (fp_ == FpMode::kStrict || type.code != TypeCode::kFloat || type.bits == 16) return {};
  if (n.op != BinaryOp::kAdd && n.op != BinaryOp::kSub) return {};
  auto product = [&](const Expr& e) {
    const auto* b = As<Binary>(e);
    return b && b->op == BinaryOp::kMul && uses_[e.get()] == 1 ? b : nullptr;
  };
  auto negated = [&](const SourceText& v) { return values_.Unary(UnaryOp::kNeg, type, v); };
  const bool subtracts = n.op == BinaryOp::kSub;
  if (const Binary* p = product(n.rhs)) {
    SourceText c = Visit(n.lhs), a = Visit(p->lhs), b = Visit(p->rhs);
    return values_.MulAdd(type, subtracts ? negated(a) : a, b, c);
  }
  if (const Binary* p = product(n.lhs)) {
    SourceText a = Visit(p->lhs), b = Visit(p->rhs), c = Visit(n.rhs);
    return values_.MulAdd(type, a, b, subtracts ? negated(c) : c);
  }
  return {};
}

SourceText SourceExpr::VisitBinary(const Binary& n, const Expr&) {
  if (auto fused = Contracted(n)) return *fused;
  SourceText l = Visit(n.lhs), r = Visit(n.rhs);
  const bool nonnegative = n.lhs->dtype.IsIndex() && facts_.ConstBounds(n.lhs).min >= 0 &&
                           facts_.ConstBounds(n.rhs).min >= 0;
  return values_.Binary(n.op, n.lhs->dtype, l, r, nonnegative);
}

SourceText SourceExpr::VisitCast(const CastExpr& n, const Expr&) {
  return values_.Cast(n.value->dtype, n.dtype, Visit(n.value));
}

SourceText SourceExpr::VisitRamp(const Ramp& n, const Expr&) {
  const DType type = n.dtype.Element();
  if (type.IsFloat()) return Unsupported("a ramp of floats");
  SourceText lane{LanesOf()->lane, Binding::kPrimary, 0, false};
  if (!type.IsIndex()) lane = values_.Cast(DType::Index(), type, lane);
  SourceText base = Visit(n.base), stride = Visit(n.stride);
  SourceText offset =
      IsOne(n.stride) ? lane : values_.Binary(BinaryOp::kMul, type, lane, stride, false);
  return IsZero(n.base) ? offset : values_.Binary(BinaryOp::kAdd, type, base, offset, false);
}

SourceText SourceExpr::VisitBroadcast(const Broadcast& n, const Expr&) { return Visit(n.value); }

// ---- Select ----

SourceText SourceExpr::VisitSelect(const Select& n, const Expr& e) {
  if (LoadWideWhere(e))
    return {fmt::format("{}[{}]", *ArrayOf(e), LanesOf()->lane), Binding::kPrimary, 0, false};
  if (guards_.Needs(n.on_true) || guards_.Needs(n.on_false)) return Branches(n);
  SourceText c = Visit(n.condition), t = Visit(n.on_true), f = Visit(n.on_false);
  return values_.Select(c, t, f);
}

// `?:` evaluates one side, as long as both fit into the expression.
SourceText SourceExpr::Branches(const Select& n) {
  SourceText c = Visit(n.condition);
  Section yes, no;
  Open(&yes, Kind::kBranch);
  SourceText t = Visit(n.on_true);
  now_ = yes.parent;
  Open(&no, Kind::kBranch);
  SourceText f = Visit(n.on_false);
  now_ = no.parent;
  if (yes.lines.empty() && no.lines.empty()) return values_.Select(c, t, f);
  std::string name = Fresh("t");
  Line(fmt::format("{} {};", values_.TypeName(n.dtype), name));
  auto assign = [&](Section* side, const SourceText& v) {
    now_ = side;
    Line(fmt::format("{} = {};", name, v.text));
    now_ = side->parent;
    now_->lines += side->lines;
  };
  Line(fmt::format("if ({}) {{", c.text));
  assign(&yes, t);
  Line("} else {");
  assign(&no, f);
  Line("}");
  return {name, Binding::kPrimary, 0, false};
}

// ---- vectors ----

void SourceExpr::EmitLanes(const Expr& e, const std::string& name) {
  Section loop;
  OpenLanes(&loop, e->dtype.lanes);
  SourceText v = Visit(e);
  Line(fmt::format("{}[{}] = {};", name, loop.lane, v.text));
  CloseLanes(&loop);
}

void SourceExpr::IntoArray(const Expr& e) {
  if (!e || e->dtype.IsScalar() || ArrayOf(e) || LoadWide(e) || LoadWideWhere(e)) return;
  std::string name = Fresh("v");
  Line(ArrayDeclaration(e->dtype, name));
  EmitLanes(e, name);
  now_->arrays[e.get()] = name;
}

// From the first lane on, in order; any order is allowed.
SourceText SourceExpr::Reduce(const Call& n) {
  const Expr& v = n.args[0];
  if (v->dtype.IsScalar()) return Visit(v);
  const DType type = v->dtype.Element();
  // Halves are added up in f32 and rounded once.
  const bool is_half = type.IsFloat() && type.bits == 16;
  const DType wide = is_half ? DType::Float(32) : type;
  const BinaryOp op = n.intrinsic == Intrinsic::kReduceAdd   ? BinaryOp::kAdd
                      : n.intrinsic == Intrinsic::kReduceMax ? BinaryOp::kMax
                                                             : BinaryOp::kMin;
  IntoArray(v);
  const std::string array = *ArrayOf(v);
  const std::string name = Fresh("t");
  SourceText total{name, Binding::kPrimary, 0, false};
  auto lane_value = [&](const std::string& lane) {
    return values_.Cast(type, wide,
                        {fmt::format("{}[{}]", array, lane), Binding::kPrimary, 0, false});
  };
  Line(fmt::format("{} {} = {};", values_.TypeName(wide), name, lane_value("0").text));
  const std::string lane = names_.Take("lane");
  if (values_.language().unroll) Line(values_.language().unroll);
  Line(fmt::format("for ({2} {0} = 1; {0} < {1}; ++{0}) {{", lane, v->dtype.lanes,
                   values_.TypeName(DType::Index())));
  SourceText next = values_.Binary(op, wide, total, lane_value(lane), false);
  Line(fmt::format("  {} = {};", name, next.text));
  Line("}");
  names_.Give(lane);
  return values_.Cast(wide, n.dtype, total);
}

}  // namespace tenon::codegen
