#include "codegen/gpu/narrow.h"

#include "arith/analyzer.h"
#include "ir/visit.h"

namespace tenon::codegen {

namespace {

bool Fits(Interval range) {
  return range.min >= std::numeric_limits<int32_t>::min() &&
         range.max <= std::numeric_limits<int32_t>::max();
}

// The value of a ramp's last lane, in 128 bits: its parts fit 32 already.
bool LastLaneFits(const Ramp& r, Analyzer* analyzer) {
  const Interval base = analyzer->ConstBounds(r.base), stride = analyzer->ConstBounds(r.stride);
  if (!Fits(base) || !Fits(stride)) return false;
  const int64_t last = r.dtype.lanes - 1;
  return Fits({base.min + stride.min * last, base.max + stride.max * last});
}

bool ExprFits(const Expr& e, Analyzer* analyzer) {
  if (!e->dtype.IsIndex()) return true;
  if (e->dtype.IsScalar()) return Fits(analyzer->ConstBounds(e));
  // Of vectors, the parts are looked at as well; other arithmetic on them is rare.
  if (const auto* ramp = As<Ramp>(e)) return LastLaneFits(*ramp, analyzer);
  return IsA<Broadcast>(e);
}

}  // namespace

bool IndicesFit32(const PrimFunc& func) {
  Analyzer analyzer;
  for (size_t i = 0; i < func.dims.size(); ++i) {
    const DimRange range = func.dim_range(i);
    analyzer.BindInterval(func.dims[i], {range.lo, range.hi < 0 ? Interval::kPosInf : range.hi});
  }
  bool fits = true;
  // Parents come first, so that loops are known where their variables are used.
  PreOrder(func.body, [&](const NodeRef& n) {
    if (const auto* loop = As<For>(n)) {
      analyzer.Bind(loop->var, loop->min, loop->extent);
      fits &= Fits(analyzer.ConstBounds(loop->min + loop->extent));
    } else if (const auto* let = As<Let>(n)) {
      if (let->var->dtype.IsIndex() && let->var->dtype.IsScalar())
        analyzer.BindInterval(let->var, analyzer.ConstBounds(let->value));
    } else if (IsA<ExprNode>(n)) {
      fits &= ExprFits(Cast<ExprNode>(n), &analyzer);
    }
    return fits && !IsA<BufferNode>(n);
  });
  return fits;
}

}  // namespace tenon::codegen
