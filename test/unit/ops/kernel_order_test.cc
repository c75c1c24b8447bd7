// Kernels whose steps come one after the other, each at a place that the data say: what the
// schedules made of them, and that they are what the definitions are.
#include "unit/ops/kernel_cases.h"

namespace tenon::ops {
namespace {

// The algorithm's kernel as it is scheduled, and beside the definition's.
void CheckOrdered(const Case& c, const char* name) {
  Check(c, name);
  const graph::Graph region = RegionOf(c);
  const Algorithm& algorithm = *FindAlgorithm(name);
  const Site site{region, AnchorOf(region), TestMachine()};
  Module defined;
  const graph::Plan definition = MakePlan(*FindAlgorithm("definition"), {}, {}, 0);
  defined.Add(Build(region, &definition)->func);
  for (const Point& point : SomePoints(algorithm, site, kPoints, nullptr)) {
    SCOPED_TRACE(Text(point));
    const graph::Plan plan = MakePlan(algorithm, algorithm.space(site), point, 0);
    const Expected<Kernel> kernel = Build(region, &plan);
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

TEST(KernelInOrder, UpdatesRowsOfOpenSizes) {
  const Var n = VarNode::Make("n"), m = VarNode::Make("m");
  Case c{OpKind::kScatter,
         {{DType::Int(32), {IndexConst(4), m}},
          {DType::Int(64), {n, IndexConst(1)}},
          {DType::Int(32), {n, m}}},
         {{"axis", int64_t{0}}, {"reduction", std::string("add")}}};
  c.dims = {{n, 0, 1000, 1}, {m, 0, 1000, 1}};
  c.at.clear();
  for (int64_t steps : {0, 1, 9}) {
    for (int64_t width : {0, 1, 16, 37}) c.at.push_back({{"n", steps}, {"m", width}});
  }
  CheckOrdered(c, "ordered_scatter");
}

// All pairs of a short row are few; of a long one they are not.
TEST(KernelInOrder, IsChosenWhereItIsLess) {
  const auto chosen = [](const Case& c, const char* name) {
    const graph::Graph region = RegionOf(c);
    const Site site{region, AnchorOf(region), TestMachine()};
    return CheapestPoint(*FindAlgorithm(name), site)->seconds <
           PriceOf(*FindAlgorithm("definition"), site, {});
  };
  EXPECT_FALSE(chosen(Top(DType::Float(32), {64, 8}, 1, 2, true), "radix_sort"));
  EXPECT_TRUE(chosen(Top(DType::Float(32), {1, 25200}, 1, 300, true), "radix_sort"));
  EXPECT_TRUE(
      chosen(Updates(DType::Float(32), {1000}, {1000}, {1000}, 0, "add"), "ordered_scatter"));
}

}  // namespace
}  // namespace tenon::ops
