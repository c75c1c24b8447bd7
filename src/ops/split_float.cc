#include "ops/split_float.h"

#include <limits>

namespace tenon::ops {

Expr HighPart(const Expr& x) {
  const DType f32 = DType::Float(32);
  const Expr most = MakeConst(f32, kLargestBFloat16), least = MakeConst(f32, -kLargestBFloat16);
  const Expr is_finite =
      Lt(Call::Make(Intrinsic::kAbs, {x}), MakeConst(f32, std::numeric_limits<double>::infinity()));
  const Expr kept = Select::Make(is_finite, Min(Max(x, least), most), MakeConst(f32, 0));
  return CastExpr::Make(DType::BFloat16(), kept);
}

Expr LowPart(const Expr& x) {
  const Expr high = CastExpr::Make(DType::Float(32), HighPart(x));
  return CastExpr::Make(DType::BFloat16(), x - high);
}

}  // namespace tenon::ops
