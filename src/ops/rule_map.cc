// The fallback rule: any block, any target.
#include "ops/rules.h"

namespace tenon::ops {

void ScheduleBlock(Schedule& s, const Target& target, const std::string& block) {
  std::vector<std::string> spatial = s.GetSpatialLoops(block), reduce = s.GetReduceLoops(block);
  if (spatial.empty()) return;
  Attrs attrs = BlockAttrs(s, block);
  int bits = WrittenType(s, block).StorageBits();
  int64_t lanes = std::max(1, target.Cpu().VectorLanes(bits));
  lanes = std::min(lanes, attrs.GetInt("vector_block", lanes));
  size_t axis =
      static_cast<size_t>(attrs.GetInt("vector_axis", static_cast<int64_t>(spatial.size()) - 1));
  std::string vector;
  std::vector<std::string> outer = spatial;
  if (axis < spatial.size() && s.GetExtent(spatial[axis]) >= lanes && lanes > 1) {
    std::vector<std::string> parts = s.Split(spatial[axis], {-1, lanes});
    outer[axis] = parts[0];
    vector = parts[1];
  }
  std::vector<std::string> order = outer;
  order.insert(order.end(), reduce.begin(), reduce.end());
  if (!vector.empty()) order.push_back(vector);
  if (order.size() > 1) s.Reorder(order);
  if (!reduce.empty()) {
    std::string init = s.DecomposeReduction(block, reduce[0]);
    std::vector<std::string> loops = s.GetSpatialLoops(init);
    if (!vector.empty() && !loops.empty()) s.Vectorize(loops.back());
  }
  if (!vector.empty()) s.Vectorize(vector);
  ParallelOuter(s, outer);
}

void ScheduleMap(Schedule& s, const Target& target) {
  for (const std::string& block : s.GetBlocks()) ScheduleBlock(s, target, block);
}

}  // namespace tenon::ops
