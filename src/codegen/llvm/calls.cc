// Intrinsic calls: what the machine, the team, the ABI's structures and C functions provide.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/expr_emitter.h"
#include "support/check.h"

namespace tenon::codegen {

using llvm::Value;

Value* ExprEmitter::EmitIntrinsic(const Call& n) {
  switch (n.intrinsic) {
    case Intrinsic::kFma:
    case Intrinsic::kSqrt:
    case Intrinsic::kAbs:
    case Intrinsic::kFloor:
    case Intrinsic::kCeil:
    case Intrinsic::kTrunc:
    case Intrinsic::kRoundEven:
    case Intrinsic::kIsNan:
    case Intrinsic::kIsInf:
    case Intrinsic::kPopCount:
    case Intrinsic::kClz: {
      std::vector<Value*> args;
      for (const Expr& a : n.args) args.push_back(Emit(a));
      Value* v = values_.Math(n.intrinsic, n.args[0]->dtype, args);
      return v ? v
               : Unsupported(std::string(Info(n.intrinsic).text) + " of " +
                                 n.args[0]->dtype.ToString() + " on target " +
                                 module_.target().ToString(),
                             n.dtype);
    }
    case Intrinsic::kReduceAdd:
    case Intrinsic::kReduceMax:
    case Intrinsic::kReduceMin:
      return values_.Reduce(n.intrinsic, n.args[0]->dtype, Emit(n.args[0]),
                            not_nan_.Holds(n.args[0]));
    case Intrinsic::kReinterpret:
      if (n.args[0]->dtype.IsHandle() != n.dtype.IsHandle()) {
        return values_.Cast(n.args[0]->dtype, n.dtype, Emit(n.args[0]));  // widths may differ
      }
      return ir_.CreateBitOrPointerCast(Emit(n.args[0]), values_.TypeOf(n.dtype));
    case Intrinsic::kTeamRank:
      return ir_.CreateZExtOrTrunc(team_.rank ? team_.rank : ir_.getInt32(0),
                                   values_.TypeOf(n.dtype));
    case Intrinsic::kTeamSize:
      return ir_.CreateZExtOrTrunc(team_.size ? team_.size : ir_.getInt32(1),
                                   values_.TypeOf(n.dtype));
    case Intrinsic::kWeightsBase: return module_.Symbol("tn_weights_base");
    case Intrinsic::kBufferData: {
      const auto* load = As<Load>(n.args[0]);
      if (!load) return Unsupported("data() of something that is not a load", n.dtype);
      return ElementAddress(load->buffer, load->indices);
    }
    case Intrinsic::kPtrOffset:
      return ir_.CreateGEP(ir_.getInt8Ty(), Emit(n.args[0]), Emit(n.args[1]));
    case Intrinsic::kPtrLoad: {
      Value* address = ir_.CreateGEP(ir_.getInt8Ty(), Emit(n.args[0]), Emit(n.args[1]));
      const llvm::Align align = values_.AlignOf(n.dtype);
      return values_.FromMemory(
          n.dtype, ir_.CreateAlignedLoad(values_.MemoryTypeOf(n.dtype), address, align));
    }
    case Intrinsic::kExtern: return EmitExtern(n);
    case Intrinsic::kPtrStore:
    case Intrinsic::kPrefetch:
      return Unsupported(std::string(Info(n.intrinsic).text) + " as a value", n.dtype);
    case Intrinsic::kDTypeName:
    case Intrinsic::kDeviceName:
      return Unsupported(std::string(Info(n.intrinsic).text) + " outside a message", n.dtype);
    case Intrinsic::kVScale: return Unsupported("vscale in code generation", n.dtype);
    case Intrinsic::kPow:
      if (n.dtype.IsInt()) return values_.IntegerPow(n.dtype, Emit(n.args[0]), Emit(n.args[1]));
      [[fallthrough]];
    default:  // NOLINT: all functions of numbers
      return Unsupported(std::string(Info(n.intrinsic).text) + " that expand_math has not expanded",
                         n.dtype);
  }
}

Value* ExprEmitter::EmitExtern(const Call& call, bool has_result) {
  const auto* name = call.args.empty() ? nullptr : As<StringConst>(call.args[0]);
  if (!name) return Unsupported("extern without a function name", call.dtype);
  std::vector<Value*> args;
  std::vector<llvm::Type*> types;
  for (size_t i = 1; i < call.args.size(); ++i) {
    Value* v = Emit(call.args[i]);
    if (call.args[i]->dtype.IsVector()) return Unsupported("a vector argument of C", call.dtype);
    // C passes bool as a byte.
    if (call.args[i]->dtype.IsBool()) v = ir_.CreateZExt(v, ir_.getInt8Ty());
    args.push_back(v);
    types.push_back(v->getType());
  }
  llvm::Type* result = has_result ? values_.TypeOf(call.dtype) : ir_.getVoidTy();
  auto* type = llvm::FunctionType::get(result, types, false);
  return ir_.CreateCall(module_.DeclareC(name->value, type), args);
}

void ExprEmitter::EmitPtrStore(const Call& call) {
  const DType type = call.args[2]->dtype;
  Value* address = ir_.CreateGEP(ir_.getInt8Ty(), Emit(call.args[0]), Emit(call.args[1]));
  ir_.CreateAlignedStore(values_.ToMemory(type, Emit(call.args[2])), address,
                         values_.AlignOf(type));
}

void ExprEmitter::EmitPrefetch(const Call& call) {
  const auto* load = As<Load>(call.args[0]);
  if (!load) {
    Unsupported("prefetch of something that is not a load", DType::Int(32));
    return;
  }
  constexpr int kAllCaches = 3, kFromSecondLevel = 2, kData = 1;
  const auto purpose = static_cast<PrefetchFor>(AsInt(call.args[1]).value_or(0));
  const int nearness = purpose == PrefetchFor::kLaterRead ? kFromSecondLevel : kAllCaches;
  ir_.CreateIntrinsic(llvm::Intrinsic::prefetch, {ir_.getPtrTy()},
                      {ElementAddress(load->buffer, load->indices),
                       ir_.getInt32(purpose == PrefetchFor::kWrite ? 1 : 0), ir_.getInt32(nearness),
                       ir_.getInt32(kData)});
}

}  // namespace tenon::codegen
