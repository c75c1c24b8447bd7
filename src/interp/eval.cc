#include <cstring>

#include "interp/machine.h"
#include "interp/team.h"
#include "ir/print.h"
#include "support/check.h"

namespace tenon::interp {

size_t Worker::LanesOf(DType type) const {
  return static_cast<size_t>(type.lanes) *
         static_cast<size_t>(type.scalable ? m_.options.vscale : 1);
}

namespace {

// One value per lane, computed by f(lane); a scalar for scalar types.
template <class F>
Value PerLane(DType type, size_t lanes, F f) {
  Value out{type, {}, {}};
  if (type.IsScalar()) {
    out.first = f(0);
    return out;
  }
  out.lanes.reserve(lanes);
  for (size_t i = 0; i < lanes; ++i) out.lanes.push_back(f(i));
  out.first = out.lanes[0];
  return out;
}

}  // namespace

Value Worker::Eval(const Expr& e) {
  if (e->dtype.IsScalar()) return {e->dtype, EvalScalar(e), {}};
  m_.Step();
  return EvalVector(e);
}

Lane Worker::EvalTree(const Expr& e) {
  if (e->dtype.IsVector()) return EvalVector(e).first;
  switch (e->kind) {
    case NodeKind::kFloatConst: return FloatLane(As<FloatConst>(e)->value);
    case NodeKind::kStringConst:
      return IntLane(reinterpret_cast<intptr_t>(As<StringConst>(e)->value.c_str()));
    case NodeKind::kUnary: {
      const auto* n = As<Unary>(e);
      return Apply(n->op, n->dtype, EvalScalar(n->value));
    }
    case NodeKind::kBinary: {
      const auto* n = As<Binary>(e);
      const Lane a = EvalScalar(n->lhs);
      return ApplyBinary(*n, a, EvalScalar(n->rhs));
    }
    case NodeKind::kSelect: {  // loads of the side not taken touch no memory
      const auto* n = As<Select>(e);
      return EvalScalar(EvalBool(n->condition) ? n->on_true : n->on_false);
    }
    case NodeKind::kCast: {
      const auto* n = As<CastExpr>(e);
      return Convert(n->dtype, n->value->dtype, EvalScalar(n->value));
    }
    case NodeKind::kLoad: return LoadScalar(*As<Load>(e));
    default: return EvalCall(*As<Call>(e)).first;
  }
}

Value Worker::EvalVector(const Expr& e) {
  const size_t lanes = LanesOf(e->dtype);
  if (const auto* n = As<VarNode>(e)) {
    const Value* vector = frame_.vars.FindVector(n);
    return vector ? *vector : Value{n->dtype, VarLane(*n), {}};
  }
  if (const auto* n = As<Unary>(e)) {
    Value v = Eval(n->value);
    return PerLane(n->dtype, lanes, [&](size_t i) { return Apply(n->op, n->dtype, v.at(i)); });
  }
  if (const auto* n = As<Binary>(e)) {
    Value a = Eval(n->lhs), b = Eval(n->rhs);
    return PerLane(n->dtype, lanes, [&](size_t i) {
      if (Active(i)) return ApplyBinary(*n, a.at(i), b.at(i));
      return Apply(n->op, n->lhs->dtype.Element(), a.at(i), b.at(i)).value_or(IntLane(0));
    });
  }
  if (const auto* n = As<Select>(e)) return EvalSelect(*n);
  if (const auto* n = As<CastExpr>(e)) {
    Value v = Eval(n->value);
    DType from = n->value->dtype;
    return PerLane(n->dtype, lanes, [&](size_t i) { return Convert(n->dtype, from, v.at(i)); });
  }
  if (const auto* n = As<Load>(e)) return LoadVector(*n);
  if (const auto* n = As<Ramp>(e)) {
    Value base = Eval(n->base), stride = Eval(n->stride);
    DType type = n->dtype.Element();
    return PerLane(n->dtype, lanes, [&](size_t i) {
      auto step = Apply(BinaryOp::kMul, type, stride.first,
                        Convert(type, DType::Index(), IntLane(static_cast<int64_t>(i))));
      auto out = step ? Apply(BinaryOp::kAdd, type, base.first, *step) : step;
      if (!out) Fail("index arithmetic overflows in " + ToString(e));
      return *out;
    });
  }
  if (const auto* n = As<Broadcast>(e)) {
    Value v = Eval(n->value);
    return PerLane(n->dtype, lanes, [&](size_t) { return v.first; });
  }
  return EvalCall(*As<Call>(e));
}

Lane Worker::ApplyBinary(const Binary& n, Lane a, Lane b) {
  const auto out = Apply(n.op, n.lhs->dtype.Element(), a, b);
  if (out) return *out;
  const bool divides = n.op == BinaryOp::kDiv || n.op == BinaryOp::kMod;
  Fail((b.i == 0 && divides ? "index division by zero in " : "index arithmetic overflows in ") +
       ToString(Expr(&n)));
}

// Loads of the side not taken touch no memory.
Value Worker::EvalSelect(const Select& n) {
  if (n.condition->dtype.IsScalar()) return Eval(EvalBool(n.condition) ? n.on_true : n.on_false);
  Value condition = Eval(n.condition);
  const size_t lanes = LanesOf(n.dtype);
  const std::vector<bool>* outer = active_;
  auto side = [&](const Expr& e, bool taken) {
    std::vector<bool> mask(lanes);
    for (size_t i = 0; i < lanes; ++i)
      mask[i] = (condition.at(i).i != 0) == taken && (!outer || (*outer)[i]);
    active_ = &mask;
    Value out = Eval(e);
    active_ = outer;
    return out;
  };
  Value on_true = side(n.on_true, true), on_false = side(n.on_false, false);
  return PerLane(n.dtype, lanes,
                 [&](size_t i) { return condition.at(i).i ? on_true.at(i) : on_false.at(i); });
}

Value Worker::EvalReduce(const Call& n) {
  Value v = Eval(n.args[0]);
  DType type = n.args[0]->dtype.Element();
  BinaryOp op = n.intrinsic == Intrinsic::kReduceAdd   ? BinaryOp::kAdd
                : n.intrinsic == Intrinsic::kReduceMax ? BinaryOp::kMax
                                                       : BinaryOp::kMin;
  Lane acc = v.at(0);
  for (size_t i = 1; i < LanesOf(n.args[0]->dtype); ++i) {
    auto next = Apply(op, type, acc, v.at(i));
    if (!next) Fail("index arithmetic overflows in " + ToString(Expr(&n)));
    acc = *next;
  }
  return {n.dtype, acc, {}};
}

Value Worker::EvalReinterpret(const Call& n) {
  Value v = Eval(n.args[0]);
  DType from = n.args[0]->dtype.Element(), to = n.dtype.Element();
  if (LanesOf(n.args[0]->dtype) != LanesOf(n.dtype))
    Fail("unsupported: reinterpret that changes the number of lanes");
  return PerLane(n.dtype, LanesOf(n.dtype), [&](size_t i) {
    uint8_t bytes[8] = {};
    Encode(from, v.at(i), bytes);
    return Decode(to, bytes);
  });
}

Value Worker::EvalCall(const Call& n) {
  switch (n.intrinsic) {
    case Intrinsic::kReduceAdd:
    case Intrinsic::kReduceMax:
    case Intrinsic::kReduceMin: return EvalReduce(n);
    case Intrinsic::kReinterpret: return EvalReinterpret(n);
    case Intrinsic::kVScale: return {n.dtype, IntLane(m_.options.vscale), {}};
    case Intrinsic::kTeamRank: return {n.dtype, IntLane(rank_), {}};
    case Intrinsic::kTeamSize:
      return {n.dtype, IntLane(team_ && !by_itself_ ? team_->size() : 1), {}};
    case Intrinsic::kWeightsBase:
      if (!m_.weights) Fail("weights_base: the options give no weights");
      return {n.dtype, IntLane(static_cast<int64_t>(m_.weights->address())), {}};
    case Intrinsic::kBufferData: {
      const auto* load = As<Load>(n.args[0]);
      if (!load) Fail("data() expects a load, got " + ToString(n.args[0]));
      return {n.dtype, IntLane(static_cast<int64_t>(AddressOf(*load))), {}};
    }
    case Intrinsic::kPtrOffset:
      return {n.dtype, IntLane(EvalInt(n.args[0]) + EvalInt(n.args[1])), {}};
    case Intrinsic::kPtrLoad: {
      auto address = static_cast<uintptr_t>(EvalInt(n.args[0]) + EvalInt(n.args[1]));
      return {n.dtype, ReadAt(m_.memory.Find(address), address, n.dtype, Accessed("ptr_load")), {}};
    }
    case Intrinsic::kPtrStore: {
      auto address = static_cast<uintptr_t>(EvalInt(n.args[0]) + EvalInt(n.args[1]));
      Value v = Eval(n.args[2]);
      WriteAt(m_.memory.Find(address), address, n.args[2]->dtype, v.first, Accessed("ptr_store"));
      return v;
    }
    case Intrinsic::kExtern: return CallExtern(n);
    case Intrinsic::kPrefetch: return {n.dtype, IntLane(0), {}};
    default: break;  // NOLINT: arithmetic, below
  }
  std::vector<Value> args;
  for (const Expr& a : n.args) args.push_back(Eval(a));
  DType type = n.args[0]->dtype.Element();
  return PerLane(n.dtype, LanesOf(n.dtype), [&](size_t i) {
    Lane lanes[3] = {};
    for (size_t k = 0; k < args.size() && k < 3; ++k) lanes[k] = args[k].at(i);
    auto out = Apply(n.intrinsic, type, lanes);
    if (!out)
      Fail(std::string("unsupported: ") + Info(n.intrinsic).text + " of " + type.ToString());
    return *out;
  });
}

Value Worker::CallExtern(const Call& n) {
  const auto* name = n.args.empty() ? nullptr : As<StringConst>(n.args[0]);
  if (!name) Fail("extern expects a function name first");
  auto it = m_.options.functions.find(name->value);
  if (it == m_.options.functions.end())
    Fail("extern function " + name->value + " is not in the interpreter's table");
  std::vector<InterpScalar> args;
  for (size_t i = 1; i < n.args.size(); ++i) {
    Value v = Eval(n.args[i]);
    args.push_back(n.args[i]->dtype.IsFloat() ? InterpScalar{0, v.first.f}
                                              : InterpScalar{v.first.i, 0});
  }
  InterpScalar result = it->second(args);
  if (n.dtype.IsFloat()) return {n.dtype, FloatLane(RoundToType(n.dtype, result.f)), {}};
  return {n.dtype, IntLane(WrapInt(n.dtype, result.i)), {}};
}

}  // namespace tenon::interp
