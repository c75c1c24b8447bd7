// Kernels of machines whose threads run together, by their meaning (kernel_test.cc).
#include <array>

#include "loop/print.h"
#include "loop/warpgroup.h"
#include "unit/ops/kernel_cases.h"

namespace tenon::ops {
namespace {

// ---- machines whose threads run together ----

// Its schedule, by text, means what the kernel does.
std::string ExpectItsMeaning(const Expected<Kernel>& kernel) {
  EXPECT_TRUE(kernel) << ToString(kernel.errors());
  if (!kernel) return "";
  Expected<Schedule> scheduled = ScheduleKernel(*kernel, ThreadsMachine());
  EXPECT_TRUE(scheduled) << ToString(scheduled.errors());
  if (!scheduled) return "";
  testing::Reference before = ReferenceOf(*kernel);
  EXPECT_TRUE(testing::SameResults(before, scheduled->module()));
  EXPECT_TRUE(testing::SameResults(before, Lowered(scheduled->module(), ThreadsMachine())));
  return Print(scheduled->module());
}

// And is one launch.
void ExpectOneLaunch(const Expected<Kernel>& kernel) {
  const std::string text = ExpectItsMeaning(kernel);
  const size_t grid = text.find("blockIdx.x");
  EXPECT_NE(grid, std::string::npos);
  EXPECT_EQ(text.find("blockIdx.x", grid + 1), std::string::npos) << "two launches:\n" << text;
}

TEST(Kernel, RowsOnThreads) {
  for (int64_t n : {1, 31, 33, 70}) {
    SCOPED_TRACE(n);
    Case softmax;
    softmax.op = OpKind::kSoftmax;
    softmax.inputs = {F32({2, 3, n})};
    softmax.attrs = Attrs{{"axis", int64_t{2}}};
    Check(softmax, "thread_rows", 1e-6, ThreadsMachine());
    Case norm;
    norm.op = OpKind::kLayerNorm;
    norm.inputs = {F32({5, n}), F32({n}), F32({n})};
    norm.attrs = Attrs{{"axis", int64_t{1}}, {"epsilon", 1e-5}};
    Check(norm, "thread_rows", 1e-5, ThreadsMachine());
  }
}

// What is reduced is a result, too: short and long rows, along each axis, by one reduction and by
// two.
TEST(Kernel, ReducedResultsOnThreads) {
  for (auto [dims, axis] : {std::pair<std::vector<int64_t>, int64_t>{{1, 2}, 1},
                            {{7, 7}, 1},
                            {{33, 8}, 1},
                            {{5, 9}, 0},
                            {{2, 3, 31}, 1},
                            {{2, 3, 32}, 2},
                            {{3, 33}, 1},
                            {{130}, 0}}) {
    for (const char* kind : {"sum", "max", "sum_square"}) {
      SCOPED_TRACE(fmt::format("{} {} {}", fmt::join(dims, "x"), axis, kind));
      const bool sum = std::string(kind) != "max";  // of integers, which any order gives
      const TensorType type = TypeOf(sum ? DType::Int(32) : DType::Float(32), dims);
      graph::Builder b("region");
      const ValueId x = b.Input("x", type);
      const ValueId held = *b.Add(OpKind::kAdd, {x, b.Input("y", type)}, "held");
      const ValueId twice = *b.Add(OpKind::kAdd, {held, x}, "twice");
      Attrs attrs{{"kind", std::string(kind)}, {"axes", std::vector<int64_t>{axis}}};
      const ValueId result = *b.Add(OpKind::kReduce, {twice}, "result", attrs);
      b.Output("result", *b.Add(OpKind::kNeg, {result}, "negated"));
      b.Output("held", held);
      const graph::Graph region = std::move(b).Finish();
      Expected<Kernel> kernel = Build(region, nullptr, ThreadsMachine());
      ExpectOneLaunch(kernel);
    }
  }
}

// Sums that are made before: those of rows in each block of a product of few of them.
TEST(Kernel, SumsBeforeProductsOnThreads) {
  for (auto [m, k, n] : {std::array<int64_t, 3>{1, 2, 3}, {2, 33, 7}, {8, 64, 5}, {1, 257, 40}}) {
    SCOPED_TRACE(fmt::format("{}x{}x{}", m, n, k));
    const DType f32 = DType::Float(32);
    graph::Builder b("region");
    const ValueId x = b.Input("x", TypeOf(f32, {m, k}));
    const ValueId w = b.Input("w", TypeOf(f32, {k, n}));
    Attrs last{{"kind", std::string("sum")}, {"axes", std::vector<int64_t>{1}}, {"keepdims", true}};
    const ValueId sum = *b.Add(OpKind::kReduce, {x}, "sum", last);
    const ValueId apart = *b.Add(OpKind::kSub, {x, sum}, "apart");
    last.Set("kind", std::string("max"));
    const ValueId most = *b.Add(OpKind::kReduce, {apart}, "most", last);
    const ValueId rows = *b.Add(OpKind::kSub, {apart, most}, "rows");
    const ValueId y = *b.Add(OpKind::kMatMul, {rows, w}, "y");
    b.Output("y", *b.Add(OpKind::kNeg, {y}, "negated"));
    const graph::Graph region = std::move(b).Finish();
    const Algorithm* rule = FindAlgorithm("thread_row_matmul");
    const Site site{region, AnchorOf(region), ThreadsMachine()};
    ASSERT_TRUE(HasSums(site) && Applies(*rule, site));
    for (const Algorithm* a : Algorithms()) {
      EXPECT_EQ(Applies(*a, site), a == rule || a == Algorithms().back()) << a->name;
    }
    const auto best = CheapestPoint(*rule, site);
    ASSERT_TRUE(best);
    const graph::Plan plan = MakePlan(*rule, rule->space(site), best->point, best->seconds);
    // As the rule wants it: k next to each other.
    graph::Graph stored = region;
    stored.value(stored.inputs[1]).type.tensor().layout =
        graph::MakeLayout(graph::StorageDesc{{1, 0}}, stored.type(stored.inputs[1]).dims);
    Expected<Kernel> kernel = Build(stored, &plan, ThreadsMachine());
    ExpectOneLaunch(kernel);
  }
}

// A step's window behind the product that makes its newest column, with one column for each thread
// and with several: the product, the window, and the window's sum.
TEST(Kernel, WindowsBehindProductsOnThreads) {
  for (auto [channels, taps, k] :
       {std::array<int64_t, 3>{3, 4, 33}, {32, 4, 96}, {64, 2, 40}, {64, 7, 7}}) {
    SCOPED_TRACE(fmt::format("{}x{} {}", channels, taps, k));
    const DType f32 = DType::Float(32);
    graph::Builder b("region");
    const ValueId x = b.Input("x", TypeOf(f32, {1, k}));
    const ValueId w = b.Input("w", TypeOf(f32, {k, 2 * channels}));
    const ValueId old = b.Input("old", TypeOf(f32, {1, channels, taps - 1}));
    const ValueId weights = b.Input("weights", TypeOf(f32, {channels, taps}));
    const ValueId product = *b.Add(OpKind::kMatMul, {x, w}, "product");
    const auto ints = [](std::vector<int64_t> v) {
      std::vector<Expr> out;
      for (int64_t i : v) out.push_back(IndexConst(i));
      return out;
    };
    graph::ExprAttrs half, column;
    half["starts"] = ints({0, 0});
    half["sizes"] = ints({1, channels});
    column["shape"] = ints({1, channels, 1});
    const ValueId first =
        *b.Add(OpKind::kSlice, {product}, "first", {{"steps", std::vector<int64_t>{1, 1}}}, half);
    const ValueId newest = *b.Add(OpKind::kReshape, {first}, "newest", {}, column);
    const ValueId window = *b.Add(OpKind::kConcat, {old, newest}, "window", {{"axis", int64_t{2}}});
    const ValueId weighted = *b.Add(OpKind::kMul, {window, weights}, "weighted");
    Attrs last{{"kind", std::string("sum")}, {"axes", std::vector<int64_t>{2}}};
    const ValueId sum = *b.Add(OpKind::kReduce, {weighted}, "sum", last);
    b.Output("product", product);
    b.Output("window", window);
    b.Output("sum", *b.Add(OpKind::kNeg, {sum}, "negated"));
    const graph::Graph region = std::move(b).Finish();
    const Algorithm* rule = FindAlgorithm("thread_row_matmul");
    const Site site{region, AnchorOf(region), ThreadsMachine()};
    ASSERT_EQ(site.node().op, OpKind::kMatMul);
    ASSERT_TRUE(Applies(*rule, site));
    for (const Point& point : SomePoints(*rule, site, kPoints, nullptr)) {
      SCOPED_TRACE(Text(point));
      const graph::Plan plan = MakePlan(*rule, rule->space(site), point, 0);
      const Expected<Kernel> kernel =
          Build(Placed(region, *rule, point, ThreadsMachine()), &plan, ThreadsMachine());
      if (taps == 7) {  // nobody proves that such sums stay in their blocks: they go through memory
        ExpectItsMeaning(kernel);
      } else {
        ExpectOneLaunch(kernel);
      }
    }
  }
}

// An element of a product for each row that is reduced and given out.
TEST(Kernel, SumsBeforeRowsOnThreads) {
  for (auto [rows, each, k] :
       {std::array<int64_t, 3>{1, 2, 3}, {7, 9, 5}, {33, 16, 48}, {3, 33, 7}, {64, 3, 2}}) {
    SCOPED_TRACE(fmt::format("{}x{} {}", rows, each, k));
    const DType i32 = DType::Int(32);
    graph::Builder b("region");
    const ValueId t = b.Input("t", TypeOf(i32, {k, rows}));
    Attrs axes{{"kind", std::string("sum")}, {"axes", std::vector<int64_t>{0}}};
    const ValueId d = *b.Add(OpKind::kReduce, {t}, "d", axes);
    graph::ExprAttrs shape;
    shape["shape"] = {IndexConst(rows), IndexConst(1)};
    const ValueId step = *b.Add(OpKind::kReshape, {d}, "step", {}, shape);
    const ValueId state =
        *b.Add(OpKind::kMul, {step, b.Input("old", TypeOf(i32, {rows, each}))}, "state");
    axes.Set("axes", std::vector<int64_t>{1});
    b.Output("sum", *b.Add(OpKind::kReduce, {state}, "sum", axes));
    b.Output("state", state);
    const graph::Graph region = std::move(b).Finish();
    Expected<Kernel> kernel = Build(region, nullptr, ThreadsMachine());
    ExpectOneLaunch(kernel);
  }
}

// ---- machines whose warps have units of their own ----

const Machine& WarpsMachine() {
  static const Machine machine =
      *WithRoundingUnits(Machine::Of(*Target::Parse("cuda -arch=sm_80")));
  return machine;
}

// Sizes around tiles; k that is whole steps, and k that is not.
TEST(Kernel, ProductsOfWarps) {
  struct Sizes {
    DType type;
    int64_t m, n, k;
    bool trans;
  };
  const DType f16 = DType::Float(16), f32 = DType::Float(32);
  for (auto [type, m, n, k, trans] : {Sizes{f16, 33, 48, 32, false},
                                      {f16, 2, 8, 64, true},
                                      {f16, 9, 24, 192, false},
                                      {DType::BFloat16(), 17, 15, 7, true},
                                      {f32, 31, 16, 96, false}}) {
    SCOPED_TRACE(fmt::format("{} {}x{}x{} {}", type.ToString(), m, n, k, trans));
    Case c = Product(type, {m, k}, trans ? std::vector{n, k} : std::vector{k, n}, trans);
    c.bias_relu = m == 33;
    Check(c, "warp_matmul", type == f32 ? 1e-3 : 1e-6, WarpsMachine(), kWarpPoints);
  }
}

const Machine& GroupsMachine() {
  static const Machine machine = Machine::Of(*Target::Parse("cuda -arch=sm_90a"));
  return machine;
}

// Sizes around the tiles of warpgroups, both ways in which a right factor lies; batches.
TEST(Kernel, ProductsOfGroups) {
  struct Sizes {
    DType type;
    std::vector<int64_t> a, b;
    bool trans;
  };
  const DType f16 = DType::Float(16);
  for (auto [type, a, b, trans] : {Sizes{f16, {65, 64}, {64, 72}, false},
                                   {f16, {2, 64}, {8, 64}, true},
                                   {f16, {63, 128}, {128, 64}, false},
                                   {f16, {3, 192}, {15, 192}, true},
                                   {DType::BFloat16(), {2, 3, 64}, {2, 64, 24}, false}}) {
    SCOPED_TRACE(fmt::format("{} {} {} {}", type.ToString(), a.back(), b.back(), trans));
    Case c = Product(type, a, b, trans);
    c.bias_relu = a[0] == 65;
    // Larger tiles are interpreted too long.
    Check(c, "group_matmul", 1e-6, GroupsMachine(), 0, [](const Point& p) {
      return graph::ValueOf(p, "columns") == 64 && graph::ValueOf(p, "engine") == 0;
    });
  }
}

bool IsSmallAndByEngine(const Point& p) {
  return graph::ValueOf(p, "engine") == 1 && graph::ValueOf(p, "columns") == 64;
}

// Tiles that the copy engine brings: both ways in which a right factor lies, rows of several
// matrices, batches.
TEST(Kernel, ProductsOfGroupsByTheEngine) {
  struct Sizes {
    DType type;
    std::vector<int64_t> a, b;
    bool trans;
  };
  for (auto [type, a, b, trans] : {Sizes{DType::Float(16), {64, 192}, {64, 192}, true},
                                   {DType::Float(16), {2, 192, 128}, {128, 64}, false},
                                   {DType::BFloat16(), {1, 2, 64, 128}, {2, 128, 64}, false}}) {
    SCOPED_TRACE(
        fmt::format("{} {} {} {}", type.ToString(), fmt::join(a, "x"), fmt::join(b, "x"), trans));
    Case c = Product(type, a, b, trans);
    c.bias_relu = trans;
    Check(c, "group_matmul", 1e-6, GroupsMachine(), 0, IsSmallAndByEngine);
    const graph::Graph region = RegionOf(c);
    const Site site{region, AnchorOf(region), GroupsMachine()};
    const Algorithm& algorithm = *FindAlgorithm("group_matmul");
    const Point point = CheapestPoint(algorithm, site, IsSmallAndByEngine)->point;
    const graph::Plan plan = MakePlan(algorithm, algorithm.space(site), point, 1e-6);
    Expected<Kernel> kernel =
        Build(Placed(region, algorithm, point, GroupsMachine()), &plan, GroupsMachine());
    ASSERT_TRUE(kernel) << ToString(kernel.errors());
    Expected<Schedule> scheduled = ScheduleKernel(*kernel, GroupsMachine());
    ASSERT_TRUE(scheduled) << ToString(scheduled.errors());
    EXPECT_NE(Print(scheduled->module()).find(kProducerStagesAttr), std::string::npos);
  }
}

// Where a tensor may begin anywhere threads of their own copy, and the engine does in the kernel's
// aligned form. Steps more than stages.
TEST(Kernel, CopiesByTheEngineInTwoForms) {
  const graph::Graph region =
      RegionOf(Product(DType::Float(16), {1, 64, 192}, {192, 64}, /*trans=*/false));
  const Site site{region, AnchorOf(region), GroupsMachine()};
  const Algorithm& algorithm = *FindAlgorithm("group_matmul");
  const Point point = CheapestPoint(algorithm, site, [](const Point& p) {
                        return IsSmallAndByEngine(p) && graph::ValueOf(p, "stages") == 2;
                      })->point;
  const graph::Plan plan = MakePlan(algorithm, algorithm.space(site), point, 1e-6);
  const graph::Graph placed = Placed(region, algorithm, point, GroupsMachine());
  for (int64_t align : {0, 64}) {
    Expected<Kernel> kernel = Build(placed, &plan, GroupsMachine(), align);
    ASSERT_TRUE(kernel) << ToString(kernel.errors());
    Expected<Schedule> scheduled = ScheduleKernel(*kernel, GroupsMachine());
    ASSERT_TRUE(scheduled) << ToString(scheduled.errors());
    Module bound = Lowered(scheduled->module(), GroupsMachine());
    PassContext context;
    context.target = &*GroupsMachine().target;
    for (const char* pass : {"bind_threads", "split_roles"})
      bound = FindLoopPass(pass)->run(bound, context);
    testing::Reference meaning = ReferenceOf(*kernel);
    EXPECT_TRUE(Alike(meaning, bound, 1e-6, {}));
    const Func by_engine = bound.Find(align == 0 ? "k_aligned" : "k");
    ASSERT_TRUE(by_engine);
    EXPECT_TRUE(by_engine->attrs.Has(kTensorMapsAttr));
    EXPECT_EQ(bound.Find("k")->attrs.Has(kTensorMapsAttr), align == 64);
  }
}

// The engine copies whole tiles of matrices that are stored, in more steps than one.
TEST(Kernel, WhereTheEngineDoesNotCopy) {
  const DType f16 = DType::Float(16);
  for (const auto& [a, b] :
       {std::pair<std::vector<int64_t>, std::vector<int64_t>>{{63, 128}, {128, 64}},
        {{64, 128}, {128, 72}},
        {{64, 64}, {64, 64}},
        {{2, 32, 128}, {128, 64}}}) {
    const graph::Graph region = RegionOf(Product(f16, a, b, false));
    const Site site{region, AnchorOf(region), GroupsMachine()};
    EXPECT_FALSE(CheapestPoint(*FindAlgorithm("group_matmul"), site,
                               [](const Point& p) { return graph::ValueOf(p, "engine") == 1; }));
  }
}

// Nor what somebody else reads in the same kernel.
TEST(Kernel, TheEngineHasItsOperandsForItself) {
  graph::Builder b("region");
  const ValueId x = b.Input("x", TypeOf(DType::Float(16), {128, 128}));
  const ValueId w = b.Input("w", TypeOf(DType::Float(16), {128, 128}));
  const ValueId product = *b.Add(OpKind::kMatMul, {x, w}, "product", {{"accumulator", "f32"}});
  b.Output("y", *b.Add(OpKind::kAdd, {product, x}, "y"));
  const graph::Graph region = std::move(b).Finish();
  const Site site{region, AnchorOf(region), GroupsMachine()};
  const Algorithm& algorithm = *FindAlgorithm("group_matmul");
  ASSERT_TRUE(Applies(algorithm, site));
  EXPECT_FALSE(CheapestPoint(algorithm, site,
                             [](const Point& p) { return graph::ValueOf(p, "engine") == 1; }));
}

// Copies that nobody waits for move whole pieces from multiples of 16 bytes: what a caller passes
// may begin anywhere.
TEST(Kernel, OperandsOfCallersAreLoaded) {
  for (const char* name : {"warp_matmul", "group_matmul"}) {
    SCOPED_TRACE(name);
    const graph::Graph region = RegionOf(Product(DType::Float(16), {64, 64}, {64, 64}, false));
    const Site site{region, AnchorOf(region), GroupsMachine()};
    const Algorithm& algorithm = *FindAlgorithm(name);
    const Point point = CheapestPoint(algorithm, site)->point;
    const graph::Plan plan = MakePlan(algorithm, algorithm.space(site), point, 1e-6);
    const graph::Graph placed = Placed(region, algorithm, point, GroupsMachine());
    for (int64_t align : {0, 8, 16, 64}) {
      Expected<Kernel> kernel = Build(placed, &plan, GroupsMachine(), align);
      ASSERT_TRUE(kernel) << ToString(kernel.errors());
      Expected<Schedule> scheduled = ScheduleKernel(*kernel, GroupsMachine());
      ASSERT_TRUE(scheduled) << ToString(scheduled.errors());
      const bool copies =
          Print(scheduled->module()).find("call @ptx.cp.async") != std::string::npos;
      EXPECT_EQ(copies, align >= 16) << align;
    }
  }
}

// Windows that are places, and such with borders; k that is whole steps, and k that is not.
TEST(Kernel, ConvolutionsOfWarps) {
  for (auto [channels, kernel, stride] :
       {std::tuple<int64_t, int64_t, int64_t>{32, 1, 1}, {32, 3, 2}, {5, 3, 1}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", channels, kernel, stride));
    Case c = Conv(channels, 17, 6, kernel, stride, kernel / 2, 1);
    for (size_t i = 0; i < 2; ++i) c.inputs[i].dtype = DType::Float(16);
    c.attrs.Set("result", std::string("f32"));
    c.bias_relu = kernel == 1;
    Check(c, "warp_conv", 1e-6, WarpsMachine(), kWarpPoints);
  }
}

// Images with their channels last: pieces that are whole, with and without borders and steps behind
// the end of k; colours, and maps that are no whole pieces; several images.
TEST(Kernel, ConvolutionsOfImagesByWarps) {
  for (auto [channels, maps, kernel, stride, images] :
       {std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>{32, 16, 3, 2, 1},
        {8, 24, 3, 1, 2},
        {40, 17, 1, 1, 1},
        {3, 8, 5, 2, 1}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", channels, kernel, stride));
    Case c = Conv(channels, maps, 5, kernel, stride, kernel / 2, 1);
    c.inputs[0] = TypeOf(DType::Float(16), {images, channels, 5, 5});
    c.inputs[1].dtype = DType::Float(16);
    c.attrs.Set("result", std::string("f32"));
    c.bias_relu = kernel == 1;
    Check(c, "warp_image_conv", 1e-6, WarpsMachine(), kWarpPoints);
  }
}

// Images of one axis, whose windows are a line.
TEST(Kernel, ConvolutionsAlongOneAxisByWarps) {
  for (auto [channels, kernel, stride] :
       {std::tuple<int64_t, int64_t, int64_t>{16, 3, 2}, {8, 1, 1}, {3, 5, 1}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", channels, kernel, stride));
    Case c;
    c.op = OpKind::kConv;
    c.inputs = {TypeOf(DType::Float(16), {2, channels, 19}),
                TypeOf(DType::Float(16), {16, channels, kernel})};
    c.attrs = Attrs{{"strides", std::vector<int64_t>{stride}},
                    {"dilations", std::vector<int64_t>{1}},
                    {"pads", std::vector<int64_t>{kernel / 2, kernel / 2}},
                    {"group", int64_t{1}},
                    {"result", std::string("f32")}};
    Check(c, "warp_image_conv", 1e-6, WarpsMachine(), kWarpPoints);
  }
}

TEST(Kernel, ConvolutionsOfGroups) {
  for (auto [algorithm, side, kernel] :
       {std::tuple<const char*, int64_t, int64_t>{"group_image_conv", 19, 3},
        {"group_conv", 64, 1}}) {
    SCOPED_TRACE(algorithm);
    Case c;
    c.op = OpKind::kConv;
    c.inputs = {TypeOf(DType::Float(16), {2, 64, side}),
                TypeOf(DType::Float(16), {16, 64, kernel})};
    c.attrs = Attrs{{"pads", std::vector<int64_t>{kernel / 2, kernel / 2}},
                    {"result", std::string("f32")}};
    Check(c, algorithm, 1e-6, GroupsMachine(), 0);
  }
}

// One place has no rows for tiles.
TEST(Kernel, NoTilesOfOnePlace) {
  Case c = Conv(16, 8, 1, 1, 1, 0, 1);
  for (size_t i = 0; i < 2; ++i) c.inputs[i].dtype = DType::Float(16);
  c.attrs.Set("result", std::string("f32"));
  const graph::Graph region = RegionOf(c);
  const Site site{region, AnchorOf(region), WarpsMachine()};
  EXPECT_FALSE(Applies(*FindAlgorithm("warp_image_conv"), site));
}

TEST(Kernel, WindowsOfImagesByThreads) {
  Case c = Conv(24, 24, 5, 3, 1, 1, 24);
  Check(c, "thread_window", 0, WarpsMachine());
  for (size_t i = 0; i < 2; ++i) c.inputs[i].dtype = DType::Float(16);
  c.attrs.Set("result", std::string("f32"));
  Check(c, "thread_window", 0, WarpsMachine());
  Check(Conv(3, 3, 7, 5, 2, 2, 3), "thread_window", 0, WarpsMachine());
  Case pool;
  pool.op = OpKind::kMaxPool;
  pool.inputs = {F32({2, 24, 9, 9})};
  pool.attrs = Attrs{{"kernel", std::vector<int64_t>{3, 3}},
                     {"strides", std::vector<int64_t>{2, 2}},
                     {"dilations", std::vector<int64_t>{1, 1}},
                     {"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  Check(pool, "thread_window", 0, WarpsMachine());
  pool.op = OpKind::kAvgPool;
  Check(pool, "thread_window", 1e-6, WarpsMachine());
}

// Images of less than a tile, of whole ones, and of ragged ones; several images, whose tiles are
// those of one; channels, maps and places below, at and above the products' tiles (small ones, for
// the interpreter has a product for each point); borders of all widths.
TEST(Kernel, WinogradConvolutionOnThreads) {
  struct Sizes {
    int64_t tile, images, channels, maps, height, width;
  };
  const auto small = [](const Point& p) {
    return ValueOf(p, "threads_y") == 4 && ValueOf(p, "threads_x") == 8 &&
           ValueOf(p, "pieces_y") == 1 && ValueOf(p, "pieces_x") == 1;
  };
  for (auto [tile, images, channels, maps, height, width] :
       {Sizes{2, 1, 3, 2, 3, 5}, {2, 3, 8, 17, 7, 6}, {4, 3, 9, 5, 2, 7}, {4, 2, 8, 16, 5, 4}}) {
    SCOPED_TRACE(fmt::format("{} {}x{}x{}", tile, images, height, width));
    Case c = WinogradConv(tile, channels, maps, height, width);
    c.inputs[0].dims[0] = IndexConst(images);
    c.bias_relu = images > 1;
    if (height == 5) c.attrs = Attrs{{"pads", std::vector<int64_t>{1, 0, 0, 2}}};
    Check(c, "thread_winograd_conv", 1e-5, ThreadsMachine(), kWarpPoints, small);
  }
}

// Rows of all matrices by one; pairs of matrices, of which one side may be the same.
TEST(Kernel, ProductsOfWarpsInBatches) {
  const DType f16 = DType::Float(16);
  const auto check = [](const Case& c) {
    Check(c, "warp_matmul", 1e-6, WarpsMachine(), kWarpPoints);
  };
  check(Product(f16, {3, 5, 32}, {32, 16}, false));
  check(Product(f16, {2, 1, 5, 32}, {3, 16, 32}, true));
  check(Product(f16, {1, 2, 5, 32}, {1, 1, 32, 16}, false));
}

// Rows and keys that are no whole tiles; masks of both kinds, that broadcast; a mask of f32.
TEST(Kernel, AttentionOfWarps) {
  struct Sizes {
    int64_t queries, keys;
    DType type, mask;
  };
  const DType f16 = DType::Float(16), bf16 = DType::BFloat16(), f32 = DType::Float(32);
  for (auto [queries, keys, type, mask] : {Sizes{16, 32, f16, DType::Handle()},
                                           {19, 5, bf16, DType::Bool()},
                                           {33, 49, f16, f32},
                                           {5, 293, f16, DType::Bool()},  // keys in tiles
                                           {17, 320, bf16, DType::Handle()}}) {
    SCOPED_TRACE(fmt::format("{} {}", queries, keys));
    Case c;
    c.op = OpKind::kAttention;
    const int64_t n = keys > 256 ? 1 : 2, heads = n;
    c.inputs = {TypeOf(type, {n, heads, queries, 32}), TypeOf(type, {n, heads, keys, 32}),
                TypeOf(type, {n, heads, keys, 16})};
    if (mask != DType::Handle()) c.inputs.push_back(TypeOf(mask, {n, 1, 1, keys}));
    c.attrs = Attrs{{"scale", 0.25}};
    Check(c, "warp_attention", type == f16 ? 2e-3 : 2e-2, WarpsMachine(), kWarpPoints);
  }
}

// Rows that are one and several, batches of one row; columns and k that are no whole tiles; a
// matrix that lies by rows and by columns.
TEST(Kernel, FewRowsOnThreads) {
  struct Sizes {
    DType type;
    std::vector<int64_t> rows;
    int64_t n, k;
    bool trans;
  };
  const DType f16 = DType::Float(16), bf16 = DType::BFloat16(), f32 = DType::Float(32);
  for (const auto& [type, rows, n, k, trans] : {Sizes{f32, {1}, 2, 2, false},
                                                {f16, {1}, 37, 520, true},
                                                {bf16, {3}, 5, 64, false},
                                                {f16, {2, 1}, 33, 7, true},
                                                {f32, {8}, 9, 260, true},
                                                {f16, {1}, 64, 96, true},  // several columns each
                                                {bf16, {2}, 128, 40, true}}) {
    SCOPED_TRACE(fmt::format("{} {}x{} {}", type.ToString(), n, k, trans));
    std::vector<int64_t> a = rows;
    a.push_back(k);
    Case c = Product(type, a, trans ? std::vector{n, k} : std::vector{k, n}, trans);
    c.bias_relu = n == 37;
    Check(c, "thread_row_matmul", 1e-6, ThreadsMachine());
  }
}

// Scores and values have tiles of their own.
TEST(Kernel, AttentionOnThreads) {
  for (auto [queries, keys, columns] :
       {std::tuple<int64_t, int64_t, int64_t>{5, 9, 3}, {9, 12, 4}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", queries, keys, columns));
    Case c;
    c.op = OpKind::kAttention;
    c.inputs = {F32({1, queries, 32}), F32({1, keys, 32}), F32({1, keys, columns})};
    c.attrs = Attrs{{"scale", 0.25}};
    Check(c, "thread_attention", 1e-5, ThreadsMachine(), kWarpPoints);
  }
}

// So many rows are tiles.
TEST(Kernel, ManyRowsAreNotFew) {
  const Case c = Product(DType::Float(32), {9, 64}, {64, 16}, false);
  const graph::Graph region = RegionOf(c);
  EXPECT_FALSE(
      Applies(*FindAlgorithm("thread_row_matmul"), {region, AnchorOf(region), ThreadsMachine()}));
}

// A single row, and single columns of little k: nothing to make tiles of.
TEST(Kernel, NoTilesOnThreads) {
  Case c;
  c.op = OpKind::kMatMul;
  c.inputs = {F32({1, 5}), F32({5, 3})};
  c.attrs = Attrs{{"trans_a", false}, {"trans_b", false}};
  const graph::Graph region = RegionOf(c);
  EXPECT_FALSE(
      CheapestPoint(*FindAlgorithm("thread_matmul"), {region, AnchorOf(region), ThreadsMachine()}));
}

}  // namespace
}  // namespace tenon::ops
