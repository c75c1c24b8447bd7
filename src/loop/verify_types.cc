// Rules about types: of expressions, buffers and statements.
//
// A node's maker checks what it can see of its operands, so a tree that was built is mostly right;
// these rules look at the rest, and at trees that were put together from parts of others: operands
// of one type, masks with the lanes of what they mask, indices of index, loops that count in
// integers, stores that fit. Of
//
//   func @f(A: f32[4] align 24, B: f32[-1]) { … }
//
// it is said that
//
//   @f: error: 'A': expected an alignment that is a power of two but got 24
//   @f: error: 'B' has the extent -1
//
// Expressions are visited once, however many parents they have.

#include <algorithm>
#include <bit>

#include "loop/verify_impl.h"

namespace tenon {

namespace {

bool SameLanes(DType a, DType b) { return a.lanes == b.lanes && a.scalable == b.scalable; }
bool IsCount(DType type) { return type.IsIndex() || type.IsInt(); }
bool IsNumber(DType type) { return IsCount(type) || type.IsFloat(); }

// ---- expressions ----

bool TakesOperands(BinaryOp op, DType type) {
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMul:
    case BinaryOp::kDiv:
    case BinaryOp::kMod: return IsNumber(type);
    case BinaryOp::kMin:
    case BinaryOp::kMax:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe: return IsNumber(type) || type.IsBool();
    case BinaryOp::kEq:
    case BinaryOp::kNe: return true;
    case BinaryOp::kAnd:
    case BinaryOp::kOr: return type.IsBool();
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor: return IsCount(type) || type.IsBool();
    case BinaryOp::kShl:
    case BinaryOp::kShr: return IsCount(type);
  }
  return false;
}

bool TakesOperand(UnaryOp op, DType type) {
  switch (op) {
    case UnaryOp::kNeg: return IsNumber(type);
    case UnaryOp::kNot: return type.IsBool();
    case UnaryOp::kBitNot: return type.IsInt();
  }
  return false;
}

std::string WrongPrefetch(const Call& call) {
  const std::optional<int64_t> purpose = AsInt(call.args[1]);
  constexpr auto kLast = static_cast<int64_t>(PrefetchFor::kLaterRead);
  const bool fits = IsA<Load>(call.args[0]) && purpose && *purpose >= 0 && *purpose <= kLast;
  return fits ? "" : "a load naming the place, and 0 to read, 1 to write or 2 to read later";
}

// What is wrong with the arguments of a call; "" when nothing is.
std::string WrongArguments(const Call& call) {
  const auto type = [&](size_t i) { return call.args[i]->dtype; };
  const IntrinsicInfo& info = Info(call.intrinsic);
  if (info.arity >= 0 && call.args.size() != static_cast<size_t>(info.arity)) {
    return fmt::format("{} arguments", info.arity);
  }
  const std::string floats = "floats of one type", address = "a handle and an integer offset";
  switch (call.intrinsic) {
    case Intrinsic::kFma:
    case Intrinsic::kExp:
    case Intrinsic::kExp2:
    case Intrinsic::kLog:
    case Intrinsic::kExp10:
    case Intrinsic::kExpm1:
    case Intrinsic::kLog2:
    case Intrinsic::kLog10:
    case Intrinsic::kLog1p:
    case Intrinsic::kSqrt:
    case Intrinsic::kRsqrt:
    case Intrinsic::kSin:
    case Intrinsic::kCos:
    case Intrinsic::kTan:
    case Intrinsic::kAsin:
    case Intrinsic::kAcos:
    case Intrinsic::kAtan:
    case Intrinsic::kAtan2:
    case Intrinsic::kSinh:
    case Intrinsic::kCosh:
    case Intrinsic::kTanh:
    case Intrinsic::kAsinh:
    case Intrinsic::kAcosh:
    case Intrinsic::kAtanh:
    case Intrinsic::kHypot:
    case Intrinsic::kErf:
    case Intrinsic::kSigmoid:
    case Intrinsic::kFloor:
    case Intrinsic::kCeil:
    case Intrinsic::kTrunc:
    case Intrinsic::kRoundEven:
    case Intrinsic::kIsNan:
    case Intrinsic::kIsInf:
      for (const Expr& arg : call.args) {
        if (!arg->dtype.IsFloat() || arg->dtype != type(0)) return floats;
      }
      return "";
    case Intrinsic::kPow:
      return IsNumber(type(0)) && type(0) == type(1) ? "" : "numbers of one type";
    case Intrinsic::kAbs: return IsNumber(type(0)) ? "" : "a number";
    case Intrinsic::kPopCount:
    case Intrinsic::kClz: return type(0).IsInt() ? "" : "an integer";
    case Intrinsic::kReinterpret: {
      const DType from = type(0), to = call.dtype;
      const bool fits = from.bits == to.bits && SameLanes(from, to);
      return fits ? "" : fmt::format("as many bits as {}", to.ToString());
    }
    case Intrinsic::kReduceAdd:
    case Intrinsic::kReduceMax:
    case Intrinsic::kReduceMin:
      return type(0).Element() == call.dtype ? ""
                                             : fmt::format("lanes of {}", call.dtype.ToString());
    case Intrinsic::kBufferData: return IsA<Load>(call.args[0]) ? "" : "a load naming the place";
    case Intrinsic::kPrefetch: return WrongPrefetch(call);
    case Intrinsic::kPtrOffset:
    case Intrinsic::kPtrLoad:
    case Intrinsic::kPtrStore: return type(0).IsHandle() && IsCount(type(1)) ? "" : address;
    case Intrinsic::kExtern:
      return !call.args.empty() && IsA<StringConst>(call.args[0])
                 ? ""
                 : "the function's name as a string first";
    case Intrinsic::kVScale:
    case Intrinsic::kDTypeName:
    case Intrinsic::kDeviceName:
    case Intrinsic::kTeamRank:
    case Intrinsic::kTeamSize:
    case Intrinsic::kWeightsBase: return "";
  }
  return "";
}

DType IndexLanes(const std::vector<Expr>& indices) {
  DType lanes = DType::Index();
  for (const Expr& i : indices) {
    if (i->dtype.IsVector()) lanes = DType::Index().WithLanes(i->dtype.lanes, i->dtype.scalable);
  }
  return lanes;
}

// Indices and mask of a load or store.
void CheckAccess(const VerifyContext& c, const Buffer& buffer, const std::vector<Expr>& indices,
                 const Expr& mask) {
  if (indices.size() != buffer->shape.size()) {
    c.Error("'{}' has {} dimensions but got {} indices", buffer->name, buffer->shape.size(),
            indices.size());
  }
  int vectors = 0;
  for (const Expr& i : indices) {
    vectors += i->dtype.IsVector();
    if (!IsCount(i->dtype))
      c.Error("index of '{}': expected index but got {}", buffer->name, i->dtype.ToString());
  }
  if (vectors > 1)
    c.Error("access of '{}': expected one index of several lanes but got {}", buffer->name,
            vectors);
  const DType lanes = IndexLanes(indices);
  if (mask && !(mask->dtype.IsBool() && SameLanes(mask->dtype, lanes))) {
    c.Error("mask of '{}': expected {} but got {}", buffer->name,
            DType::Bool().WithLanes(lanes.lanes, lanes.scalable).ToString(),
            mask->dtype.ToString());
  }
}

void CheckExpr(const VerifyContext& c, const Expr& e) {
  if (!DType::Parse(e->dtype.ToString())) {
    c.Error("there is no type {}: {}", e->dtype.ToString(), ToString(NodeRef(e)));
  } else if (const auto* u = As<Unary>(e); u && !TakesOperand(u->op, u->value->dtype)) {
    c.Error("operand of {} is {}", Text(u->op), u->value->dtype.ToString());
  } else if (const auto* b = As<Binary>(e)) {
    if (b->lhs->dtype != b->rhs->dtype) {
      c.Error("operands of {} differ: {} and {}", Info(b->op).text, b->lhs->dtype.ToString(),
              b->rhs->dtype.ToString());
    } else if (!TakesOperands(b->op, b->lhs->dtype)) {
      c.Error("operands of {} are {}", Info(b->op).text, b->lhs->dtype.ToString());
    }
  } else if (const auto* s = As<Select>(e)) {
    const DType cond = s->condition->dtype, yes = s->on_true->dtype;
    if (!cond.IsBool() || yes != s->on_false->dtype || !(cond.IsScalar() || SameLanes(cond, yes))) {
      c.Error("select by {} of {} and {}", cond.ToString(), yes.ToString(),
              s->on_false->dtype.ToString());
    }
  } else if (const auto* cast = As<CastExpr>(e)) {
    const DType from = cast->value->dtype;
    if (from.IsHandle() || e->dtype.IsHandle() || from == e->dtype || !SameLanes(from, e->dtype)) {
      c.Error("cast from {} to {}", from.ToString(), e->dtype.ToString());
    }
  } else if (const auto* l = As<Load>(e)) {
    CheckAccess(c, l->buffer, l->indices, l->mask);
    const DType lanes = IndexLanes(l->indices),
                expected = l->buffer->dtype.WithLanes(lanes.lanes, lanes.scalable);
    if (e->dtype != expected)
      c.Error("load of {} from '{}': {}", e->dtype.ToString(), l->buffer->name,
              expected.ToString());
  } else if (const auto* call = As<Call>(e)) {
    const std::string expected = WrongArguments(*call);
    if (!expected.empty())
      c.Error("{}: expected {}: {}", Info(call->intrinsic).text, expected, ToString(NodeRef(e)));
  }
}

}  // namespace

void CheckExprTypes(const VerifyContext& context) {
  context.ForEach([&](const NodeRef& node) {
    if (IsA<ExprNode>(node)) CheckExpr(context, Expr(static_cast<const ExprNode*>(node.get())));
  });
}

// ---- buffers ----

namespace {

void CheckIndexList(const VerifyContext& c, const std::string& what,
                    const std::vector<Expr>& list) {
  for (const Expr& e : list) {
    if (e && e->dtype != DType::Index())
      c.Error("{}: expected index but got {}", what, e->dtype.ToString());
  }
}

void CheckLayout(const VerifyContext& c, const BufferNode& b) {
  const LayoutNode& layout = *b.layout;
  if (layout.coords.size() != b.shape.size()) {
    c.Error("'{}' has {} dimensions but its layout has {}", b.name, b.shape.size(),
            layout.coords.size());
  }
  CheckIndexList(c, fmt::format("layout of '{}'", b.name), layout.storage);
  CheckIndexList(c, fmt::format("extents of the layout of '{}'", b.name), layout.extents);
}

void CheckBuffer(const VerifyContext& c, const BufferNode& b) {
  if (!b.dtype.IsScalar() || !DType::Parse(b.dtype.ToString())) {
    c.Error("'{}': expected elements of a scalar type but got {}", b.name, b.dtype.ToString());
  }
  CheckIndexList(c, fmt::format("shape of '{}'", b.name), b.shape);
  CheckIndexList(c, fmt::format("strides of '{}'", b.name), b.strides);
  for (const Expr& e : b.shape) {
    if (AsInt(e).value_or(0) < 0) c.Error("'{}' has the extent {}", b.name, *AsInt(e));
  }
  if (b.layout) CheckLayout(c, b);
  const size_t rank = b.layout ? b.layout->storage.size() : b.shape.size();
  if (!b.strides.empty() && b.strides.size() != rank) {
    c.Error("'{}': expected {} strides but got {}", b.name, rank, b.strides.size());
  }
  if (b.align < 0 || (b.align != 0 && !std::has_single_bit(static_cast<uint64_t>(b.align)))) {
    c.Error("'{}': expected an alignment that is a power of two but got {}", b.name, b.align);
  }
}

}  // namespace

void CheckBuffers(const VerifyContext& context) {
  context.ForEach([&](const NodeRef& node) {
    if (const auto* buffer = As<BufferNode>(node)) CheckBuffer(context, *buffer);
    if (const auto* region = As<RegionNode>(node)) {
      const std::string what = fmt::format("region of '{}'", region->buffer->name);
      if (region->ranges.size() != region->buffer->shape.size()) {
        context.Error("{}: expected {} ranges but got {}", what, region->buffer->shape.size(),
                      region->ranges.size());
      }
      for (const Range& r : region->ranges) CheckIndexList(context, what, {r->min, r->extent});
    }
  });
}

// ---- statements ----

namespace {

void CheckStored(const VerifyContext& c, const Buffer& buffer, const std::vector<Expr>& indices,
                 const Expr& value, const Expr& mask) {
  CheckAccess(c, buffer, indices, mask);
  const DType lanes = IndexLanes(indices),
              expected = buffer->dtype.WithLanes(lanes.lanes, lanes.scalable);
  if (value->dtype != expected) {
    c.Error("store to '{}': expected {} but got {}", buffer->name, expected.ToString(),
            value->dtype.ToString());
  }
}

void CheckCondition(const VerifyContext& c, const char* what, const Expr& e) {
  if (e && e->dtype != DType::Bool())
    c.Error("{}: expected bool but got {}", what, e->dtype.ToString());
}

void CheckRangeTypes(const VerifyContext& c, const std::string& what, DType type,
                     const std::vector<Expr>& parts) {
  if (!IsCount(type) || !type.IsScalar()) c.Error("{} counts in {}", what, type.ToString());
  for (const Expr& e : parts) {
    if (e->dtype != type)
      c.Error("{}: expected {} but got {}", what, type.ToString(), e->dtype.ToString());
  }
}

void CheckStmt(const VerifyContext& c, const NodeRef& node) {
  if (const auto* s = As<For>(node)) {
    CheckRangeTypes(c, Describe(node), s->var->dtype, {s->min, s->extent});
  } else if (const auto* iter = As<IterVarNode>(node)) {
    CheckRangeTypes(c, fmt::format("block variable '{}'", iter->var->name), iter->var->dtype,
                    {iter->min, iter->extent, iter->binding});
  } else if (const auto* s = As<If>(node)) {
    CheckCondition(c, "condition of if", s->condition);
  } else if (const auto* s = As<While>(node)) {
    CheckCondition(c, "condition of while", s->condition);
  } else if (const auto* s = As<Assert>(node)) {
    CheckCondition(c, "condition of assert", s->condition);
  } else if (const auto* s = As<Block>(node)) {
    CheckCondition(c, "where", s->where);
  } else if (const auto* s = As<Store>(node)) {
    CheckStored(c, s->buffer, s->indices, s->value, s->mask);
  } else if (const auto* s = As<Atomic>(node)) {
    CheckStored(c, s->buffer, s->indices, s->value, nullptr);
  } else if (const auto* s = As<Let>(node); s && s->var->dtype != s->value->dtype) {
    c.Error("{}: expected {} but got {}", Describe(node), s->var->dtype.ToString(),
            s->value->dtype.ToString());
  } else if (const auto* s = As<Bind>(node); s && s->data->dtype != DType::Handle()) {
    c.Error("{}: expected a handle but got {}", Describe(node), s->data->dtype.ToString());
  } else if (const auto* s = As<Copy>(node); s && s->dst->buffer->dtype != s->src->buffer->dtype) {
    c.Error("copy from {} to {}", s->src->buffer->dtype.ToString(),
            s->dst->buffer->dtype.ToString());
  }
}

}  // namespace

void CheckStmtTypes(const VerifyContext& context) {
  context.ForEach([&](const NodeRef& node) { CheckStmt(context, node); });
}

}  // namespace tenon
