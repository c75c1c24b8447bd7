// tile: splits and a reorder in one step.

#include "schedule/primitive/primitives.h"

namespace tenon::primitive {

Result Tile(State& s, const Names& loops, const Ints& factors) {
  if (loops.empty()) return Because("expected at least one loop");
  if (loops.size() != factors.size()) {
    return Because("expected one factor per loop, got " + std::to_string(factors.size()) + " for " +
                   std::to_string(loops.size()) + " loops");
  }
  State tiled = s;
  Names outer, inner;
  for (size_t i = 0; i < loops.size(); ++i) {
    TN_ASSIGN_OR_RETURN(Names parts, Split(tiled, loops[i], {-1, factors[i]}));
    outer.push_back(parts[0]);
    inner.push_back(parts[1]);
  }
  outer.insert(outer.end(), inner.begin(), inner.end());
  TN_RETURN_IF_ERROR(Reorder(tiled, outer));
  s = tiled;
  return outer;
}

}  // namespace tenon::primitive
