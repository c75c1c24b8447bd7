// Convolutions of maps smaller than their windows: taps that meet nothing are left out where the
// map's size is known.
#include "ops/conv_geometry.h"
#include "ops/group.h"
#include "unit/ops/kernel_cases.h"

namespace tenon::ops {
namespace {

// A convolution of open height and width, with windows of 5, at pads that differ.
Case OpenConv(int64_t group, int64_t stride, int64_t dilation) {
  Case c = Conv(24, 24, 1, 5, stride, 2, group);
  c.attrs.Set("dilations", std::vector<int64_t>{dilation, dilation});
  c.attrs.Set("pads", std::vector<int64_t>{2 * dilation, 2, 3 * dilation, 4 * dilation});
  c.dims = {{VarNode::Make("h"), 1, 8, 1}, {VarNode::Make("w"), 1, 8, 1}};
  for (size_t i = 0; i < 2; ++i) c.inputs[0].dims[i + 2] = c.dims[i].var;
  return c;
}

TEST(Kernel, TapsThatMeetTheMap) {
  using Range = std::pair<int64_t, int64_t>;  // the first, how many
  const auto taps = [](const Case& c, std::optional<int64_t> height, size_t axis) {
    const graph::Graph region = RegionOf(c);
    KernelRequest request;
    request.region = &region;
    request.machine = &TestMachine();
    request.input_align.assign(region.inputs.size(), 64);
    if (height) request.known[c.dims[0].var.get()] = IndexConst(*height);
    const Group group(request);
    const TapRange range = TapsThatMeet(group, *ReadConv(group.site()), axis);
    return Range(range.first, range.count);
  };
  Case c = OpenConv(24, 1, 1);  // outputs: one more than rows
  EXPECT_EQ(taps(c, 1, 0), Range(1, 2));
  EXPECT_EQ(taps(c, 2, 0), Range(0, 4));
  EXPECT_EQ(taps(c, 4, 0), Range(0, 5));
  EXPECT_EQ(taps(c, 1, 1), Range(0, 5));
  EXPECT_EQ(taps(c, {}, 0), Range(0, 5));
  EXPECT_EQ(taps(OpenConv(1, 2, 1), 1, 0), Range(2, 1));
  EXPECT_EQ(taps(OpenConv(1, 2, 1), 2, 0), Range(0, 4));
  EXPECT_EQ(taps(OpenConv(1, 1, 3), 1, 0), Range(1, 2));
  c.attrs.Set("pad_value", 1.0);
  EXPECT_EQ(taps(c, 1, 0), Range(0, 5));
}

// Without the taps that meet nothing, the same is computed of maps whose borders hold zeros.
TEST(Kernel, ConvolutionsOfTapsThatMeetTheMap) {
  const Machine& machine = TestMachine();
  for (const auto& [group, name] : {std::pair(1, "direct_conv"), std::pair(24, "depthwise_conv")}) {
    for (const auto& [height, width] : {std::pair(1, 1), std::pair(1, 7), std::pair(2, 3)}) {
      SCOPED_TRACE(fmt::format("{} of {} x {}", name, height, width));
      const Case c = OpenConv(group, 1, 1);
      const Algorithm* algorithm = FindAlgorithm(name);
      const graph::Graph region = RegionOf(c);
      const Site site{region, AnchorOf(region), machine};
      const Point point = CheapestPoint(*algorithm, site)->point;
      const graph::Plan plan = MakePlan(*algorithm, algorithm->space(site), point, 0);
      const graph::Graph placed = Placed(region, *algorithm, point, machine);
      std::vector<std::vector<InterpArg>> results;
      Func func;
      for (const VarMap& known : {VarMap{}, VarMap{{c.dims[0].var.get(), IndexConst(height)},
                                                   {c.dims[1].var.get(), IndexConst(width)}}}) {
        Expected<Kernel> kernel = Build(placed, &plan, machine, 64, known);
        ASSERT_TRUE(kernel) << ToString(kernel.errors());
        Expected<Schedule> scheduled = ScheduleKernel(*kernel, machine);
        ASSERT_TRUE(scheduled) << ToString(scheduled.errors());
        InterpOptions options;
        options.dims = {{"h", height}, {"w", width}};
        auto args = SmallIntegerArgs(*kernel->func, options.dims, 1, options.team_size);
        ASSERT_TRUE(args) << ToString(args.errors());
        InterpArg& x = args->front();
        ASSERT_EQ(x.shape.size(), 4u);
        const int64_t rows = x.shape[2], columns = x.shape[3];
        ASSERT_GE(rows, height + 5);
        for (int64_t i = 0; i < x.num_elements(); ++i) {
          const int64_t row = i / columns % rows - 2, column = i % columns - 2;
          if (row < 0 || row >= height || column < 0 || column >= width)
            std::fill_n(&x.bytes[static_cast<size_t>(i) * 4], 4, uint8_t{0});
        }
        const Status status = Interpret(scheduled->module(), "k", *args, options);
        ASSERT_TRUE(status) << ToString(status.errors());
        results.push_back(std::move(*args));
        func = kernel->func;
      }
      EXPECT_TRUE(testing::SameTensors(results[0], results[1], func));
    }
  }
}

}  // namespace
}  // namespace tenon::ops
