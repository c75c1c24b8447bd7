#include "loop/facts.h"

namespace tenon {

void Learn(const PrimFunc& func, Analyzer* analyzer) {
  for (size_t i = 0; i < func.dims.size(); ++i) {
    DimRange range = func.dim_range(i);
    int64_t hi = range.hi < 0 ? Interval::kPosInf : range.hi;
    analyzer->BindInterval(func.dims[i], {range.lo, hi});
    if (range.step > 1) {
      analyzer->BindModular(func.dims[i], {range.step, range.lo % range.step});
    }
  }
}

void Learn(const For& loop, Analyzer* analyzer) { analyzer->Bind(loop.var, loop.min, loop.extent); }

void LearnValue(const Var& var, const Expr& value, Analyzer* analyzer) {
  const Interval range = analyzer->ConstBounds(value);
  const ModularSet set = analyzer->Modular(value);
  analyzer->BindInterval(var, range);
  analyzer->BindModular(var, set);
}

void Learn(const std::vector<Stmt>& path, Analyzer* analyzer) {
  for (size_t i = 0; i < path.size(); ++i) {
    if (const auto* loop = As<For>(path[i])) Learn(*loop, analyzer);
    if (const auto* let = As<Let>(path[i]); let && let->var->dtype.IsIndex()) {
      analyzer->BindValue(let->var, let->value);
    }
    if (const auto* branch = As<If>(path[i]); branch != nullptr && i + 1 < path.size()) {
      if (path[i + 1] == branch->then_body) analyzer->Assume(branch->condition);
    }
  }
}

}  // namespace tenon
