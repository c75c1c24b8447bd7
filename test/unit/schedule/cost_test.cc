// What a primitive costs: a nest of 20 loops, well under a millisecond each (this process's own
// time, with room for slow machines and sanitizers).
#include <ctime>

#include "unit/schedule/support.h"

namespace tenon::test {
namespace {

TEST(Cost, PrimitivesOnADeepNest) {
  Module before = Parse(Fill(kConv, {{"C", 64}, {"H", 56}, {"W", 56}, {"O", 64}}));
  Schedule s(before, "f");
  const std::clock_t start = std::clock();
  for (const char* loop : {"o", "h", "w", "c"}) s.Split(loop, {-1, 2, 2, 7});
  s.Split("r", {-1, 1, 1});
  s.Reorder({"o.0", "h.0", "w.0", "c.0", "h.1", "w.1", "o.1", "c.1", "o.2", "h.2", "w.2", "o.3",
             "h.3", "w.3"});
  s.ComputeAt("P", "h.0");
  s.ReverseComputeAt("Z", "w.0");
  s.DecomposeReduction("Y", "c.0");
  s.Unroll("h.3");
  s.Parallel("o.0");
  const std::clock_t end = std::clock();
  ASSERT_TRUE(s.ok()) << ToString(s.status().errors());
  EXPECT_GE(s.GetLoops("Y").size(), 20u);
  const double each = static_cast<double>(end - start) * 1e3 / CLOCKS_PER_SEC /
                      static_cast<double>(s.trace().steps.size());
  RecordProperty("microseconds_each", static_cast<int>(each * 1000));
  EXPECT_LT(each, 20);
}

}  // namespace
}  // namespace tenon::test
