// The type rule of functions of users: their nodes say what they give.
#include "graph/rules.h"

namespace tenon::graph::rules {

Expected<Types> TypeCall(const OpView& v) {
  const auto dtypes = v.attrs.Get<std::vector<std::string>>("dtypes", {});
  const std::vector<int64_t> ranks = v.attrs.GetInts("ranks");
  const std::vector<Expr>& sizes = v.exprs.at("sizes");
  if (dtypes.empty() || dtypes.size() != ranks.size())
    return Bad("expected a dtype and a rank for each result, but got {} and {}", dtypes.size(),
               ranks.size());
  Types out;
  auto next = sizes.begin();
  for (size_t i = 0; i < dtypes.size(); ++i) {
    const std::optional<DType> dtype = DType::Parse(dtypes[i]);
    if (!dtype || !dtype->IsScalar()) return Bad("expected dtypes, but got '{}'", dtypes[i]);
    if (ranks[i] < 0 || ranks[i] > sizes.end() - next)
      return Bad("expected sizes for result {}, of rank {}, but there are {}", i, ranks[i],
                 sizes.end() - next);
    out.emplace_back(TensorType{*dtype, {next, next + ranks[i]}});
    next += ranks[i];
  }
  if (next != sizes.end())
    return Bad("expected {} sizes, as the ranks say, but got {}", next - sizes.begin(),
               sizes.size());
  return out;
}

}  // namespace tenon::graph::rules
