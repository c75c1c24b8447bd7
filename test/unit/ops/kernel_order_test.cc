// Kernels whose steps come one after the other, each at a place that the data say: what the
// schedules made of them, and that they are what the definitions are.
#include "unit/ops/kernel_cases.h"

namespace tenon::ops {
namespace {

// The algorithm's kernel as it is scheduled, and beside the definition's.
void CheckOrdered(const Case& c, const char* name, const Machine& machine = TestMachine()) {
  Check(c, name, 0, machine);
  const graph::Graph region = RegionOf(c);
  const Algorithm& algorithm = *FindAlgorithm(name);
  const Site site{region, AnchorOf(region), machine};
  const graph::Plan definition = MakePlan(*FindAlgorithm("definition"), {}, {}, 0);
  testing::Reference defined = ReferenceOf(*Build(region, &definition, machine));
  for (const Point& point : SomePoints(algorithm, site, kPoints, nullptr)) {
    SCOPED_TRACE(Text(point));
    const graph::Plan plan = MakePlan(algorithm, algorithm.space(site), point, 0);
    const Expected<Kernel> kernel = Build(region, &plan, machine);
    ASSERT_TRUE(kernel) << ToString(kernel.errors());
    Module ordered;
    ordered.Add(kernel->func);
    for (const testing::Dims& dims : c.at) {
      const auto none = [](const auto& dim) { return dim.second == 0; };  // then it is not run
      if (std::none_of(dims.begin(), dims.end(), none))
        EXPECT_TRUE(Alike(defined, ordered, 0, dims));
    }
  }
}

Case Top(DType type, std::vector<int64_t> dims, int64_t axis, int64_t k, bool largest) {
  Case c{OpKind::kTopK, {TypeOf(type, std::move(dims))}, {{"axis", axis}, {"largest", largest}}};
  c.exprs = {{"k", {IndexConst(k)}}};
  c.results = 2;
  return c;
}

// Numbers of few bits meet often: what is equal stands in the order of places.
TEST(KernelInOrder, SortsByDigits) {
  for (bool largest : {false, true}) {
    for (DType type : {DType::Float(32), DType::Float(16), DType::Float(64), DType::Int(8),
                       DType::Int(32), DType::Int(64), DType::UInt(8)}) {
      SCOPED_TRACE(type.ToString());
      CheckOrdered(Top(type, {17}, 0, 17, largest), "radix_sort");
    }
    for (int64_t n : {1, 2, 3, 64, 101}) {
      SCOPED_TRACE(n);
      CheckOrdered(Top(DType::Float(32), {2, n}, 1, (n + 1) / 2, largest), "radix_sort");
      CheckOrdered(Top(DType::Int(8), {n, 3}, 0, n, largest), "radix_sort");
    }
    CheckOrdered(Top(DType::Float(32), {4, 3}, 1, 0, largest), "radix_sort");
  }
}

// Each round begins behind the element that the one before has found.
TEST(KernelInOrder, SelectsOneAfterAnother) {
  for (bool largest : {false, true}) {
    for (DType type : {DType::Float(32), DType::Float(16), DType::BFloat16(), DType::Int(8),
                       DType::Int(32), DType::UInt(32), DType::Float(64), DType::Int(64)}) {
      SCOPED_TRACE(type.ToString());
      CheckOrdered(Top(type, {17}, 0, 8, largest), "selection");
    }
    for (int64_t n : {1, 2, 7, 8, 9, 31, 32, 33, 101}) {
      SCOPED_TRACE(n);
      CheckOrdered(Top(DType::Float(32), {2, n}, 1, std::min<int64_t>(n, 3), largest), "selection");
      CheckOrdered(Top(DType::Int(8), {n, 3}, 0, 1, largest), "selection");
    }
  }
  Case open = Top(DType::Float(32), {1, 17}, 1, 2, true);
  const Var n = VarNode::Make("n");
  open.inputs[0].dims[0] = n;
  open.dims = {{n, 0}};
  open.at = {{{"n", 0}}, {{"n", 1}}, {{"n", 3}}, {{"n", 33}}, {{"n", 65}}};
  CheckOrdered(open, "selection");
}

TEST(KernelInOrder, SortsRowsOfOpenSizes) {
  const Var n = VarNode::Make("n"), m = VarNode::Make("m");
  for (int64_t axis : {0, 1}) {
    Case c{OpKind::kTopK, {{DType::Float(32), {n, m}}}, {{"axis", axis}}};
    c.exprs = {{"k", {axis == 0 ? n : m}}};
    c.results = 2;
    c.dims = {{n, 0, 1000, 1}, {m, 0, 1000, 1}};
    c.at.clear();
    for (int64_t rows : {0, 1, 3}) {
      for (int64_t columns : {0, 1, 17}) c.at.push_back({{"n", rows}, {"m", columns}});
    }
    CheckOrdered(c, "radix_sort");
  }
}

// Its shared memory holds tiles of 64 only, so that short rows are several.
const Machine& SmallTiles() {
  static const Machine machine =
      Machine::Of(*Target::Parse("cuda -arch=sm_80 -max_shared_memory_per_block=1536"));
  return machine;
}

// All of a row and the first of it, at sizes around runs and tiles. Keys are those of digits; here
// there is one type of each width.
TEST(KernelInOrder, SortsByMerging) {
  for (DType type : {DType::Float(16), DType::Float(64), DType::Int(32), DType::UInt(8)}) {
    SCOPED_TRACE(type.ToString());
    CheckOrdered(Top(type, {67}, 0, 67, type.IsFloat()), "merge_sort", SmallTiles());
  }
  for (int64_t n : {1, 31, 32, 33, 63, 64, 65, 131}) {
    SCOPED_TRACE(n);
    CheckOrdered(Top(DType::Float(32), {n}, 0, n, true), "merge_sort", SmallTiles());
    CheckOrdered(Top(DType::Int(8), {n, 2}, 0, (n + 9) / 10, false), "merge_sort", SmallTiles());
  }
  CheckOrdered(Top(DType::Float(32), {130}, 0, 70, true), "merge_sort", ThreadsMachine());
  CheckOrdered(Top(DType::Float(32), {4, 3}, 1, 0, true), "merge_sort", ThreadsMachine());
}

TEST(KernelInOrder, MergesRowsOfOpenSizes) {
  const Var n = VarNode::Make("n"), m = VarNode::Make("m");
  for (int64_t axis : {0, 1}) {
    Case c{OpKind::kTopK, {{DType::Float(32), {n, m}}}, {{"axis", axis}}};
    c.exprs = {{"k", {axis == 0 ? n : m}}};
    c.results = 2;
    c.dims = {{n, 0, 100, 1}, {m, 0, 100, 1}};
    c.at.clear();
    for (auto [rows, size] : {std::pair<int64_t, int64_t>{0, 5}, {2, 0}, {2, 1}, {1, 65}}) {
      c.at.push_back({{axis == 1 ? "n" : "m", rows}, {axis == 1 ? "m" : "n", size}});
    }
    CheckOrdered(c, "merge_sort", SmallTiles());
  }
}

Case Updates(DType type, std::vector<int64_t> x, std::vector<int64_t> indices,
             std::vector<int64_t> updates, int64_t axis, const char* reduction) {
  return {OpKind::kScatter,
          {TypeOf(type, std::move(x)), TypeOf(DType::Int(64), std::move(indices)),
           TypeOf(type, std::move(updates))},
          {{"axis", axis}, {"reduction", std::string(reduction)}}};
}

// Random places are mostly outside, some count from the end, and some meet.
TEST(KernelInOrder, UpdatesElements) {
  for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
    SCOPED_TRACE(reduction);
    for (int64_t steps : {1, 7, 33}) {
      CheckOrdered(Updates(DType::Int(32), {5}, {steps}, {steps}, 0, reduction), "ordered_scatter");
      CheckOrdered(Updates(DType::Int(32), {6, 5}, {steps, 3}, {steps, 3}, 0, reduction),
                   "ordered_scatter");
      CheckOrdered(Updates(DType::Int(32), {3, 6}, {2, steps}, {2, steps}, 1, reduction),
                   "ordered_scatter");
    }
    for (int64_t width : {1, 15, 16, 17, 40}) {
      SCOPED_TRACE(width);
      CheckOrdered(Updates(DType::Int(32), {4, width}, {9, 1}, {9, width}, 0, reduction),
                   "ordered_scatter");
    }
  }
}

// More than 16 of one place, rows of updates, and columns that there are no updates for.
TEST(KernelInOrder, UpdatesInTheOrderOfPlaces) {
  for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
    SCOPED_TRACE(reduction);
    CheckOrdered(Updates(DType::Int(32), {5}, {35}, {35}, 0, reduction), "sorted_scatter",
                 SmallTiles());
  }
  for (const char* reduction : {"none", "add"}) {
    SCOPED_TRACE(reduction);
    for (int64_t steps : {1, 16, 17, 65}) {
      SCOPED_TRACE(steps);
      for (const Case& c :
           {Updates(DType::Int(32), {6, 3}, {steps, 2}, {steps, 2}, 0, reduction),
            Updates(DType::Int(32), {3, 6}, {2, steps}, {2, steps}, 1, reduction),
            Updates(DType::Int(32), {4, 3}, {steps, 1}, {steps, 3}, 0, reduction)}) {
        CheckOrdered(c, "sorted_scatter", SmallTiles());
      }
    }
  }
  CheckOrdered(Updates(DType::Int(32), {1}, {258}, {258}, 0, "add"), "sorted_scatter",
               SmallTiles());
}

Case OpenUpdates(int64_t most) {
  const Var n = VarNode::Make("n"), m = VarNode::Make("m");
  Case c{OpKind::kScatter,
         {{DType::Int(32), {IndexConst(4), m}},
          {DType::Int(64), {n, IndexConst(1)}},
          {DType::Int(32), {n, m}}},
         {{"axis", int64_t{0}}, {"reduction", std::string("add")}}};
  c.dims = {{n, 0, most, 1}, {m, 0, most, 1}};
  c.at.clear();
  for (int64_t steps : {0, 1, 9}) {
    for (int64_t width : {0, 1, 16, 37}) c.at.push_back({{"n", steps}, {"m", width}});
  }
  return c;
}

TEST(KernelInOrder, UpdatesRowsOfOpenSizes) {
  CheckOrdered(OpenUpdates(1000), "ordered_scatter");
  CheckOrdered(OpenUpdates(100), "sorted_scatter", SmallTiles());
}

// All pairs of a short row are few; of a long one they are not.
TEST(KernelInOrder, IsChosenWhereItIsLess) {
  const auto chosen = [](const Case& c, const char* name, const Machine& machine = TestMachine()) {
    const graph::Graph region = RegionOf(c);
    const Site site{region, AnchorOf(region), machine};
    return CheapestPoint(*FindAlgorithm(name), site)->seconds <
           PriceOf(*FindAlgorithm("definition"), site, {});
  };
  EXPECT_FALSE(chosen(Top(DType::Float(32), {64, 8}, 1, 2, true), "radix_sort"));
  EXPECT_TRUE(chosen(Top(DType::Float(32), {1, 25200}, 1, 300, true), "radix_sort"));
  EXPECT_TRUE(chosen(Top(DType::Float(32), {2000, 64}, 1, 2, true), "selection"));
  EXPECT_TRUE(
      chosen(Updates(DType::Float(32), {1000}, {1000}, {1000}, 0, "add"), "ordered_scatter"));
  static const Machine gpu = Machine::Of(*Target::Parse("cuda -arch=sm_90a"));
  EXPECT_FALSE(chosen(Top(DType::Float(32), {1000}, 0, 1000, true), "merge_sort", gpu));
  EXPECT_TRUE(chosen(Top(DType::Float(32), {4000}, 0, 4000, true), "merge_sort", gpu));
  EXPECT_TRUE(chosen(Top(DType::Float(32), {2000, 64}, 1, 2, true), "merge_sort", gpu));
  EXPECT_FALSE(
      chosen(Updates(DType::Float(32), {1000}, {1000}, {1000}, 0, "add"), "sorted_scatter", gpu));
  EXPECT_TRUE(chosen(Updates(DType::Float(32), {10000}, {10000}, {10000}, 0, "add"),
                     "sorted_scatter", gpu));
}

}  // namespace
}  // namespace tenon::ops
