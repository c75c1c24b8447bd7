#include "ops/operand.h"

#include <map>
#include <memory>

#include "graph/dims.h"
#include "support/check.h"

namespace tenon::ops {

int64_t Operand::dim(int i) const {
  auto v = AsInt(dims.at(static_cast<size_t>(i)));
  TN_CHECK(v, "dim {} is symbolic", i);
  return *v;
}

Operand Read(const te::Tensor& tensor) {
  return {tensor.dtype(), tensor.shape(), [tensor](const te::Indices& i) { return tensor.At(i); }};
}

Operand As(DType type, Operand operand) {
  if (!operand.at || operand.dtype == type) return operand;
  auto at = std::move(operand.at);
  operand.at = [at, type](const te::Indices& i) { return CastExpr::Make(type, at(i)); };
  operand.dtype = type;
  return operand;
}

Operand Memo(Operand operand) {
  // Keys are the addresses of the index expressions; the indices are kept so that no address is
  // used again.
  struct Entry {
    te::Indices indices;
    Expr value;
  };
  auto cache = std::make_shared<std::map<std::vector<const ExprNode*>, Entry>>();
  auto at = std::move(operand.at);
  operand.at = [cache, at](const te::Indices& indices) {
    std::vector<const ExprNode*> key;
    for (const Expr& i : indices) key.push_back(i.get());
    auto it = cache->find(key);
    if (it != cache->end()) return it->second.value;
    Expr value = at(indices);
    cache->emplace(std::move(key), Entry{indices, value});
    return value;
  };
  return operand;
}

Expr BroadcastIndex(const Expr& own, const Expr& i, const Expr& dim) {
  if (IsOne(own)) return IndexConst(0);
  if (graph::ProveEqual(own, dim) || !graph::MayBroadcast(own, dim)) return i;
  return i * Select::Make(Eq(own, IndexConst(1)), IndexConst(0), IndexConst(1));
}

Expr WeightOf(const Expr& x) {
  constexpr double kLeast32 = -87.3365, kLeast64 = -708.396;  // logarithms of the least normal ones
  const Expr least = MakeConst(x->dtype, x->dtype.bits == 64 ? kLeast64 : kLeast32);
  // Not positive, whoever looks at it.
  const Expr below = -Call::Make(Intrinsic::kAbs, {x});
  return Select::Make(Lt(below, least), MakeConst(x->dtype, 0),
                      Call::Make(Intrinsic::kExp, {below}));
}

Expr TotalOf(const Expr& sum, const Expr& count) {
  if (graph::DimRange(count).min >= 1) return sum;
  return Select::Make(Eq(count, IndexConst(0)), MakeConst(sum->dtype, 1), sum);
}

Expr BroadcastAt(const Operand& x, const te::Indices& out, const std::vector<Expr>& dims) {
  te::Indices indices;
  size_t skip = out.size() - x.dims.size();
  for (size_t i = 0; i < x.dims.size(); ++i) {
    indices.push_back(BroadcastIndex(x.dims[i], out[skip + i], dims[skip + i]));
  }
  return x.at(indices);
}

Expr Linearize(const te::Indices& indices, const std::vector<Expr>& dims) {
  Expr linear = IndexConst(0);
  for (size_t i = 0; i < dims.size(); ++i) linear = linear * dims[i] + indices[i];
  return linear;
}

te::Indices Delinearize(Expr linear, const std::vector<Expr>& dims) {
  te::Indices out(dims.size());
  for (size_t i = dims.size(); i-- > 0;) {
    if (i == 0) {
      out[i] = linear;
    } else {
      out[i] = linear % dims[i];
      linear = linear / dims[i];
    }
  }
  return out;
}

te::Indices Behind(te::Indices first, const te::Indices& last) {
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

}  // namespace tenon::ops
