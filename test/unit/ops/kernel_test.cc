// Kernels by their meaning: what the algorithms' schedules made and the passes lowered computes
// what the unscheduled kernel does, for points all over each space, at sizes around the register
// tile; and a trace replays to the kernel of every other point that agrees on what is structural.
#include "unit/ops/kernel_cases.h"

namespace tenon::ops {
namespace {

// Channels below, at and above a block; widths around the tile.
class DirectConvolution : public ::testing::TestWithParam<std::tuple<int64_t, int64_t, int64_t>> {};
TEST_P(DirectConvolution, AnySize) {
  const auto [channels, maps, size] = GetParam();
  Check(Conv(channels, maps, size, 3, 1, 1, 1), "direct_conv");
}
INSTANTIATE_TEST_SUITE_P(Kernel, DirectConvolution,
                         ::testing::Combine(::testing::Values(3, 24), ::testing::Values(16, 40),
                                            ::testing::Values(1, 4)));

// Channels are multiplied in groups of four, or widened.
TEST(Kernel, DirectConvolutionOfBytes) {
  const DType u8 = DType::UInt(8), i8 = DType::Int(8);
  auto bytes = [&](int64_t channels, int64_t maps, int64_t size, int64_t stride) {
    Case c = Conv(channels, maps, size, 3, stride, 1, 1);
    c.inputs = {TypeOf(u8, {1, channels, size, size}), TypeOf(i8, {maps, channels, 3, 3})};
    return c;
  };
  const Machine vnni = MachineOf("cascadelake"), avx2 = MachineOf("x86-64-v3");
  for (const Machine* machine : {&vnni, &avx2}) {
    Check(bytes(3, 17, 4, 1), "direct_conv", 0, *machine);
    Check(bytes(20, 32, 5, 2), "direct_conv", 0, *machine);
    Check(bytes(16, 16, 1, 1), "direct_conv", 0, *machine);
    for (int64_t channels : {1, 4, 5}) Check(bytes(channels, 16, 3, 1), "direct_conv", 0, *machine);
  }
}

// Channels are multiplied in pairs; few of them fill pairs, not vectors.
TEST(Kernel, DirectConvolutionOfHalves) {
  const DType half = DType::BFloat16();
  const Machine dots = MachineOf("cooperlake");
  for (int64_t channels : {1, 3, 4, 17}) {
    Case c = Conv(channels, 17, 4, 3, 1, 1, 1);
    c.inputs = {TypeOf(half, {1, channels, 4, 4}), TypeOf(half, {17, channels, 3, 3})};
    Check(c, "direct_conv", 1e-2, dots);
    Check(c, "direct_conv", 1e-2, MachineOf("x86-64-v3"));
  }
}

// Convolutions in tiles of AMX.
class ConvolutionInTiles : public ::testing::Test {
 protected:
  static Case Of(Case c, DType a, DType b) {
    c.inputs = {TypeOf(a, *c.inputs[0].StaticDims()), TypeOf(b, *c.inputs[1].StaticDims())};
    return c;
  }
  static Case Halves(Case c) { return Of(std::move(c), DType::BFloat16(), DType::BFloat16()); }
  static Case Line(int64_t size) {
    Case line;
    line.op = OpKind::kConv;
    line.attrs = Attrs{{"strides", std::vector<int64_t>{2}},
                       {"dilations", std::vector<int64_t>{1}},
                       {"pads", std::vector<int64_t>{1, 1}},
                       {"group", int64_t{1}}};
    line.inputs = {TypeOf(DType::BFloat16(), {2, 32, size}),
                   TypeOf(DType::BFloat16(), {16, 32, 3})};
    return line;
  }
  const Machine amx = MachineOf("sapphirerapids");
};

// Whole blocks alone: then storage has the shape of what is stored.
TEST_F(ConvolutionInTiles, IsTheConvolution) {
  Case apart = Halves(Conv(32, 32, 6, 3, 1, 2, 1));
  apart.attrs.Set("dilations", std::vector<int64_t>{2, 2});
  Case bytes = Of(Conv(64, 16, 4, 3, 1, 1, 1), DType::UInt(8), DType::Int(8));
  bytes.attrs.Set("pad_value", 3.0);
  Case few = Halves(Conv(2, 16, 2, 1, 1, 0, 1));
  few.inputs = {TypeOf(DType::BFloat16(), {1, 2, 2, 39}),
                TypeOf(DType::BFloat16(), {16, 2, 1, 32})};
  few.attrs.Set("pads", std::vector<int64_t>{0, 3, 0, 3});
  few.attrs.Set("strides", std::vector<int64_t>{1, 2});
  const std::vector<Case> cases = {few,
                                   Halves(Conv(32, 16, 5, 3, 1, 1, 1)),
                                   Halves(Conv(64, 32, 7, 3, 2, 1, 1)),
                                   Halves(Conv(32, 16, 6, 1, 2, 0, 1)),
                                   Halves(Conv(32, 16, 7, 2, 3, 0, 1)),
                                   apart,
                                   bytes,
                                   Line(35)};
  for (const Case& c : cases) {
    const graph::Graph region = RegionOf(c);
    const Algorithm& algorithm = *FindAlgorithm("tile_conv");
    const Site site{region, AnchorOf(region), amx};
    const Expected<Kernel> definition = Build(region, nullptr, amx);
    ASSERT_TRUE(definition) << ToString(definition.errors());
    testing::Reference defined = ReferenceOf(*definition);
    for (const Point& point : SomePoints(algorithm, site, 1, nullptr)) {
      SCOPED_TRACE(Text(point));
      const graph::Plan plan = MakePlan(algorithm, algorithm.space(site), point, 0);
      const Expected<Kernel> kernel = Build(Placed(region, algorithm, point, amx), &plan, amx);
      ASSERT_TRUE(kernel) << ToString(kernel.errors());
      Module tiles;
      tiles.Add(kernel->func);
      EXPECT_TRUE(Alike(defined, tiles, 1e-2, {}));
    }
  }
}

// Positions and channels around tiles; windows that cross the ends of rows, are dealt out to
// several maps, or leave places between their taps.
TEST_F(ConvolutionInTiles, Schedules) {
  Check(Halves(Conv(16, 2, 1, 1, 1, 0, 1)), "tile_conv", 1e-2, amx, 1);
  Check(Halves(Conv(33, 17, 5, 3, 1, 1, 1)), "tile_conv", 1e-2, amx, 0);
  Check(Halves(Conv(31, 33, 7, 3, 2, 1, 1)), "tile_conv", 1e-2, amx, 0);
  Check(Halves(Conv(3, 17, 6, 7, 2, 3, 1)), "tile_conv", 1e-2, amx, 1);
  Case residual = Halves(Conv(16, 16, 4, 3, 1, 1, 1));
  residual.bias_relu = true;
  residual.inputs.push_back(TypeOf(DType::BFloat16(), {16}));
  Check(residual, "tile_conv", 1e-2, amx, 1);
  Check(Line(5), "tile_conv", 1e-2, amx, 1);
}

TEST(Kernel, DirectConvolutionWithStridesAndResiduals) {
  Check(Conv(16, 16, 15, 1, 1, 0, 1), "direct_conv");
  Check(Conv(16, 16, 6, 3, 2, 1, 1), "direct_conv");
  Case residual = Conv(16, 24, 3, 3, 1, 1, 1);
  residual.bias_relu = true;
  Check(residual, "direct_conv");
}

// With weights that are transformed already, for tiles of 2 and of 4; images of one tile, a ragged
// one more, and bands of several; channels below, at and above a block.
class WinogradConvolution : public ::testing::TestWithParam<std::tuple<int64_t, int64_t, int64_t>> {
};
TEST_P(WinogradConvolution, AnySize) {
  const auto [tile, channels, size] = GetParam();
  Check(WinogradConv(tile, channels, 40, size, size), "winograd_conv", 1e-6);
}
INSTANTIATE_TEST_SUITE_P(Kernel, WinogradConvolution,
                         ::testing::Combine(::testing::Values(2, 4), ::testing::Values(3, 24),
                                            ::testing::Values(4, 5)));
TEST_F(WinogradConvolution, Bands) {
  Case residual = WinogradConv(4, 16, 16, 9, 8);
  residual.bias_relu = true;
  Check(residual, "winograd_conv", 1e-6);
  Check(WinogradConv(2, 17, 16, 4, 7), "winograd_conv", 1e-6);
  const Machine avx2 = MachineOf("x86-64-v3");
  Check(WinogradConv(4, 8, 24, 8, 5), "winograd_conv", 1e-6, avx2);
}

TEST(Kernel, DepthwiseConvolution) {
  for (int64_t size : {1, 5}) Check(Conv(24, 24, size, 3, 1, 1, 24), "depthwise_conv");
  Check(Conv(32, 32, 7, 5, 2, 2, 32), "depthwise_conv");
}

// Bytes of any signs, around an input that stands for zero by another number.
TEST(Kernel, DepthwiseConvolutionOfBytes) {
  const DType u8 = DType::UInt(8), i8 = DType::Int(8);
  for (const char* cpu : {"cascadelake", "x86-64-v3"}) {
    const Machine machine = MachineOf(cpu);
    for (int64_t size : {1, 5}) {
      Case c = Conv(24, 24, size, 3, 1, 1, 24);
      c.inputs = {TypeOf(size == 5 ? i8 : u8, {1, 24, size, size}), TypeOf(i8, {24, 1, 3, 3})};
      c.attrs.Set("pad_value", size == 5 ? -3.0 : 7.0);
      Check(c, "depthwise_conv", 0, machine);
    }
  }
}

// x: [1, channels, space…], w: [maps, channels / group, 3…].
Case PlainConv(int64_t channels, int64_t maps, int64_t group, std::vector<int64_t> space,
               int64_t stride, int64_t dilation) {
  const size_t n = space.size();
  std::vector<int64_t> x = {1, channels}, w = {maps, channels / group};
  x.insert(x.end(), space.begin(), space.end());
  w.insert(w.end(), n, 3);
  Case c;
  c.op = OpKind::kConv;
  c.attrs = Attrs{{"strides", std::vector<int64_t>(n, stride)},
                  {"dilations", std::vector<int64_t>(n, dilation)},
                  {"pads", std::vector<int64_t>(2 * n, dilation)},
                  {"group", group}};
  c.inputs = {F32(x), F32(w)};
  return c;
}

TEST(Kernel, ConvolutionAsImplicitProduct) {
  // Along a width of 1 there are no vectors: more maps than lanes were split as if they were them.
  const graph::Graph one = RegionOf(PlainConv(2, 10, 1, {1}, 1, 1));
  EXPECT_FALSE(Applies(*FindAlgorithm("implicit_gemm"), {one, AnchorOf(one), TestMachine()}));
  for (int64_t width : {2, 15, 16, 17, 37}) {
    SCOPED_TRACE(fmt::format("width {}", width));
    Check(PlainConv(2, 10, 1, {width}, 1, 1), "implicit_gemm");
  }
  Check(PlainConv(2, 4, 2, {2, 9}, 1, 2), "implicit_gemm");
  Check(PlainConv(2, 2, 2, {1, 2, 5}, 2, 1), "implicit_gemm");
}

TEST(Kernel, WindowsOnChannelBlocks) {
  Case c;
  c.op = OpKind::kMaxPool;
  c.inputs = {F32({1, 24, 9, 9})};
  c.attrs = Attrs{{"kernel", std::vector<int64_t>{3, 3}},
                  {"strides", std::vector<int64_t>{2, 2}},
                  {"dilations", std::vector<int64_t>{1, 1}},
                  {"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  Check(c, "blocked_window");
  for (DType type : {DType::UInt(8), DType::Int(8)}) {
    Case bytes = c;
    bytes.inputs = {TypeOf(type, {1, 24, 9, 9})};
    Check(bytes, "blocked_window");
  }
  Case halves = c;
  halves.inputs = {TypeOf(DType::BFloat16(), {1, 24, 9, 9})};
  Check(halves, "blocked_window");
  c.op = OpKind::kAvgPool;
  Check(c, "blocked_window");
  halves.op = OpKind::kAvgPool;
  Check(halves, "blocked_window");
  Case mean;
  mean.op = OpKind::kReduce;
  mean.inputs = c.inputs;
  mean.attrs = Attrs{
      {"kind", std::string("mean")}, {"axes", std::vector<int64_t>{2, 3}}, {"keepdims", true}};
  Check(mean, "blocked_window");
  for (const std::vector<int64_t>& map : {std::vector<int64_t>{33, 32}, {1, 1024}, {1025, 1}}) {
    for (DType type : {DType::Float(32), DType::BFloat16()}) {  // the sums of their rows
      mean.inputs = {TypeOf(type, {1, 17, map[0], map[1]})};
      Check(mean, "blocked_window", 1e-5);
    }
  }
}

TEST(Kernel, PackedMatrixProduct) {
  for (int64_t m : {1, 13, 17}) {
    for (int64_t n : {2, 16, 33}) {
      for (int64_t k : {1, 7}) {
        for (bool trans : {false, true}) {
          SCOPED_TRACE(fmt::format("{}x{}x{}", m, n, k));
          Case c;
          c.op = OpKind::kMatMul;
          c.inputs = {F32({m, k}),
                      F32(trans ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n})};
          c.attrs = Attrs{{"trans_a", false}, {"trans_b", trans}};
          c.bias_relu = k == 7;
          Check(c, "packed_matmul");
        }
      }
    }
  }
}

Case SumsOf(std::vector<int64_t> dims, int64_t axis, DType dtype, const char* kind = "sum",
            bool exclusive = false, bool reverse = false) {
  Case c;
  c.op = OpKind::kCumSum;
  c.inputs = {TypeOf(dtype, std::move(dims))};
  c.attrs = Attrs{
      {"axis", axis}, {"kind", std::string(kind)}, {"exclusive", exclusive}, {"reverse", reverse}};
  return c;
}

// With vectors that are whole, that are not, and of fewer lanes; in rows, in columns, and in one
// row; with what follows.
TEST(Kernel, SumsInOrder) {
  for (int64_t n : {1, 2, 7, 8, 15, 16, 17, 31, 64, 65, 127, 128, 129, 147}) {
    SCOPED_TRACE(n);
    for (bool odd : {false, true}) {
      Case columns = SumsOf({3, n}, 0, DType::Float(32), odd ? "prod" : "sum", odd);
      columns.bias_relu = odd;
      Check(columns, "definition");
      Check(SumsOf({3, n}, 1, DType::Float(32), "sum", odd, !odd), "definition");
      Check(SumsOf({n}, 0, DType::Int(64), "sum", !odd, odd), "definition");
    }
    Check(SumsOf({2, n, 5}, 1, DType::Float(16), "sum", true, true), "definition");
    Check(SumsOf({2, 5, n}, 1, DType::Int(8)), "definition");
  }
}

TEST(Kernel, SumsInOrderOfOpenSizes) {
  const Var n = VarNode::Make("n"), m = VarNode::Make("m");
  for (int64_t axis : {0, 1}) {
    for (bool turned : {false, true}) {
      Case c = SumsOf({1, 1}, axis, DType::Float(32), "sum", turned, turned);
      c.inputs[0].dims = {Expr(n), Expr(m)};
      c.dims = {{n, 0, 1000, 1}, {m, 0, 1000, 1}};
      c.at.clear();
      for (int64_t rows : {0, 1, 3}) {
        for (int64_t columns : {0, 1, 15, 16, 17, 63, 64, 65, 83})
          c.at.push_back({{"n", rows}, {"m", columns}});
      }
      c.bias_relu = axis == 1;
      Check(c, "definition");
    }
  }
}

// Many short rows are a thread's each; of a long one all elements are.
TEST(Kernel, SumsOnThreads) {
  const Algorithm& doubling = *FindAlgorithm("doubling_scan");
  for (int64_t n : {1, 2, 3, 31, 64, 65}) {
    SCOPED_TRACE(n);
    for (bool odd : {false, true}) {
      const Case rows = SumsOf({5, n}, 1, DType::Int(32), "sum", odd, !odd),
                 columns = SumsOf({n, 5}, 0, DType::Int(32), odd ? "prod" : "sum", !odd);
      for (const Case& c : {rows, columns}) {
        Check(c, "definition", 0, ThreadsMachine());
        Check(c, "doubling_scan", 0, ThreadsMachine());
        const graph::Graph region = RegionOf(c);
        const graph::Plan plan = MakePlan(doubling, {}, {}, 0);
        testing::Reference defined = ReferenceOf(*Build(region, nullptr, ThreadsMachine()));
        Module doubled;
        doubled.Add(Build(region, &plan, ThreadsMachine())->func);
        EXPECT_TRUE(Alike(defined, doubled, 1e-12, {}));
      }
    }
  }
  const auto chosen = [&](std::vector<int64_t> dims) {
    const graph::Graph region = RegionOf(SumsOf(std::move(dims), 1, DType::Float(32)));
    const Site site{region, AnchorOf(region), ThreadsMachine()};
    return PriceOf(doubling, site, {}) < PriceOf(*FindAlgorithm("definition"), site, {})
               ? "doubling_scan"
               : "definition";
  };
  EXPECT_EQ(chosen({1, 100000}), std::string("doubling_scan"));
  EXPECT_EQ(chosen({100000, 64}), std::string("definition"));
}

// Each place is found bit by bit.
TEST(Kernel, SearchInOrder) {
  for (int64_t size : {1, 2, 3, 4, 7, 8, 31, 33}) {
    SCOPED_TRACE(size);
    Case c;
    c.op = OpKind::kSearchSorted;
    c.inputs = {TypeOf(DType::Int(64), {size}), TypeOf(DType::Int(64), {3, 17})};
    Check(c, "definition");
    Check(c, "definition", 0, ThreadsMachine());
  }
}

// Few results of much each are reduced by the threads of a block, others by a thread each.
TEST(Kernel, ReductionsOnThreads) {
  for (const char* kind : {"mean", "max"}) {
    for (int64_t size : {3, 9}) {
      Case c;
      c.op = OpKind::kReduce;
      c.inputs = {F32({2, 5, size, size})};
      c.attrs = Attrs{
          {"kind", std::string(kind)}, {"axes", std::vector<int64_t>{2, 3}}, {"keepdims", true}};
      Check(c, "definition", 1e-6, ThreadsMachine());
    }
  }
}

// Blocks that are whole, that are not, and of one byte.
TEST(Kernel, ProductWithCodesInBlocks) {
  for (int64_t bits : {2, 4, 8}) {
    for (auto [k, block] :
         {std::pair<int64_t, int64_t>{32, 16}, {24, 16}, {13, 16}, {8, 8 / bits}}) {
      for (int64_t m : {1, 9}) {
        for (int64_t n : {2, 33}) {
          SCOPED_TRACE(fmt::format("{} bits, {}x{}x{} in blocks of {}", bits, m, n, k, block));
          const int64_t blocks = (k + block - 1) / block;
          Case c;
          c.op = OpKind::kBlockMatMul;
          c.inputs = {F32({m, k}), TypeOf(DType::UInt(8), {n, blocks * block * bits / 8}),
                      F32({n, blocks}), F32({n, blocks})};
          c.attrs = Attrs{{"bits", bits}, {"block", block}};
          c.bias_relu = m == 9;
          Check(c, "block_matmul", 1e-6);
        }
      }
    }
  }
}

// [lead…, m, k] by [k, n], or [n, k] where it is transposed.
Case Product(DType a, DType b, std::vector<int64_t> lead, int64_t m, int64_t n, int64_t k) {
  Case c;
  c.op = OpKind::kMatMul;
  const bool trans = (m + n) % 2 == 0;
  lead.insert(lead.end(), {m, k});
  c.inputs = {TypeOf(a, lead),
              TypeOf(b, trans ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n})};
  c.attrs = Attrs{{"trans_a", false}, {"trans_b", trans}};
  c.bias_relu = m % 3 == 1;
  return c;
}

// Sizes around a register tile, a vector and a dot product.
void CheckProducts(DType a, DType b, const char* name, const Machine& machine, double tolerance,
                   const std::vector<int64_t>& depths) {
  for (int64_t m : {1, 7}) {
    for (int64_t n : {2, 16, 33}) {
      for (int64_t k : depths) {
        SCOPED_TRACE(fmt::format("{} x {}, {}x{}x{}", a.ToString(), b.ToString(), m, n, k));
        Check(Product(a, b, {}, m, n, k), name, tolerance, machine);
      }
    }
  }
  SCOPED_TRACE("in batches");
  Check(Product(a, b, {2, 3}, 5, 17, depths[1]), name, tolerance, machine);
}

TEST(Kernel, ProductOfBytes) {
  const DType u8 = DType::UInt(8), i8 = DType::Int(8);
  const Machine vnni = MachineOf("cascadelake");
  CheckProducts(u8, i8, "packed_matmul", vnni, 0, {1, 3, 4, 5, 11});
  // What the unit does not multiply takes the vectors of the sums.
  const Machine avx2 = MachineOf("x86-64-v3");
  for (DType a : {u8, i8}) {
    for (DType b : {u8, i8}) {
      CheckProducts(a, b, "packed_matmul", a == u8 && b == i8 ? avx2 : vnni, 0, {1, 5});
    }
  }
}

TEST(Kernel, ProductOfHalves) {
  const DType bf16 = DType::BFloat16();
  CheckProducts(bf16, bf16, "packed_matmul", MachineOf("cooperlake"), 0, {1, 2, 3, 9});
  CheckProducts(bf16, bf16, "packed_matmul", TestMachine(), 0, {1, 5});
  CheckProducts(DType::Float(16), DType::Float(16), "packed_matmul", TestMachine(), 0, {1, 5});
}

// Sizes around a tile of 16 x 16 sums, 64 bytes or 32 halves deep.
TEST(Kernel, ProductInTiles) {
  const Machine amx = MachineOf("sapphirerapids");
  const DType u8 = DType::UInt(8), i8 = DType::Int(8), bf16 = DType::BFloat16();
  Check(Product(u8, i8, {}, 1, 2, 1), "tile_matmul", 0, amx);
  Check(Product(u8, i8, {}, 15, 16, 63), "tile_matmul", 0, amx);
  Check(Product(u8, i8, {}, 16, 17, 64), "tile_matmul", 0, amx);
  Check(Product(u8, i8, {2}, 1, 33, 65), "tile_matmul", 0, amx);
  Check(Product(u8, i8, {}, 17, 16, 65), "tile_matmul", 0, amx);
  Check(Product(i8, i8, {}, 17, 16, 65), "tile_matmul", 0, amx);
  Check(Product(bf16, bf16, {}, 1, 16, 31), "tile_matmul", 0, amx);
  Check(Product(bf16, bf16, {}, 17, 16, 33), "tile_matmul", 0, amx);
  Check(Product(i8, i8, {}, 17, 33, 65), "tile_rows_matmul", 0, amx, 1);
  Check(Product(bf16, bf16, {2}, 3, 16, 31), "tile_rows_matmul", 1e-2, amx, 1);
  Check(Product(bf16, bf16, {}, 40, 80, 33), "tile_rows_matmul", 1e-2, amx, 0);
}

Case ProductOfParts(std::vector<int64_t> x, int64_t n, bool trans) {
  const int64_t k = x.back();
  Case c;
  c.op = OpKind::kSplitMatMul;
  c.inputs = {F32(std::move(x)), TypeOf(DType::BFloat16(), trans ? std::vector<int64_t>{2, n, k}
                                                                 : std::vector<int64_t>{2, k, n})};
  if (trans) c.attrs.Set("trans_b", true);
  return c;
}

// Rows, columns and k around tiles, in both orders of the matrix.
TEST(Kernel, ProductOfPartsInTiles) {
  const Machine amx = MachineOf("sapphirerapids");
  Check(ProductOfParts({1, 1}, 2, false), "split_matmul", 1e-6, amx);
  Check(ProductOfParts({15, 31}, 16, true), "split_matmul", 1e-6, amx, 1);
  Check(ProductOfParts({16, 32}, 17, false), "split_matmul", 1e-6, amx, 1);
  Check(ProductOfParts({2, 3, 33}, 16, true), "split_matmul", 1e-6, amx, 1);
  Case residual = ProductOfParts({17, 33}, 33, false);
  residual.bias_relu = true;
  Check(residual, "split_matmul", 1e-6, amx, 2);
}

bool IsInVectors(const Point& p) { return ValueOf(p, "vector_rows") > 0; }

// Rows around those of a tile, columns around those of a panel.
TEST(Kernel, FewRowsOfPartsInVectors) {
  const Machine amx = MachineOf("sapphirerapids");
  Check(ProductOfParts({1, 4}, 2, false), "split_matmul", 1e-6, amx, 1, IsInVectors);
  Check(ProductOfParts({7, 34}, 17, true), "split_matmul", 1e-6, amx, 1, IsInVectors);
  Check(ProductOfParts({2, 4, 66}, 33, false), "split_matmul", 1e-6, amx, 1, IsInVectors);
  Case open = ProductOfParts({1, 34}, 17, false);
  open.dims = {{VarNode::Make("m"), 0, 17, 1}};
  open.inputs[0].dims[0] = open.dims[0].var;
  open.at.clear();
  for (int64_t m : {0, 1, 7, 8, 9}) open.at.push_back({{"m", m}});
  Check(open, "split_matmul", 1e-6, amx, 1, IsInVectors);
}

// A panel that few rows meet comes from beyond the second level while they read it, not before.
TEST(Kernel, FewRowsAskAheadForTheirPanel) {
  const auto asks = [](const Case& c, const char* name, const Machine& machine,
                       const Allowed& allowed = nullptr) {
    const graph::Graph region = RegionOf(c);
    const Algorithm& algorithm = *FindAlgorithm(name);
    const Site site{region, AnchorOf(region), machine};
    const Point point = CheapestPoint(algorithm, site, allowed)->point;
    const graph::Plan plan = MakePlan(algorithm, algorithm.space(site), point, 0);
    const Expected<Kernel> kernel =
        Build(Placed(region, algorithm, point, machine), &plan, machine);
    return Print(ScheduleKernel(*kernel, machine)->module()).find("prefetch") != std::string::npos;
  };
  const DType f32 = DType::Float(32);
  EXPECT_TRUE(asks(Product(f32, f32, {}, 7, 2048, 1024), "packed_matmul", TestMachine()));
  EXPECT_FALSE(asks(Product(f32, f32, {}, 7, 64, 64), "packed_matmul", TestMachine()));
  EXPECT_TRUE(asks(ProductOfParts({7, 1024}, 2048, false), "split_matmul",
                   MachineOf("sapphirerapids"), IsInVectors));
}

// Products whose rows stand on these open axes, of f32 in parts and of bf16, in tiles.
void CheckInTiles(const std::vector<graph::Dim>& rows, const decltype(Case::at)& at) {
  const Machine amx = MachineOf("sapphirerapids");
  const DType bf16 = DType::BFloat16();
  Case plain = Product(bf16, bf16, std::vector<int64_t>(rows.size() - 1, 1), 1, 17, 33);
  Case parts;
  parts.op = OpKind::kSplitMatMul;
  parts.inputs = {plain.inputs[0], TypeOf(bf16, {2, 33, 17})};
  parts.inputs[0].dtype = DType::Float(32);
  for (Case* c : {&parts, &plain}) {
    c->dims = rows;
    c->at = at;
    for (size_t d = 0; d < rows.size(); ++d) c->inputs[0].dims[d] = rows[d].var;
  }
  Check(parts, "split_matmul", 1e-6, amx);
  Check(plain, "tile_rows_matmul", 1e-2, amx);
}

// So few rows, or none, that one block of tiles is all of them.
TEST(Kernel, ProductInTilesOfFewOpenRows) {
  CheckInTiles({{VarNode::Make("m"), 0, 16, 1}},
               {{{"m", 0}}, {{"m", 1}}, {{"m", 15}}, {{"m", 16}}});
  CheckInTiles({{VarNode::Make("m"), 1, 17, 1}}, {{{"m", 1}}, {{"m", 15}}, {{"m", 17}}});
}

// Rows on two open axes fill tiles one behind the other: one row in each of several places, and
// places that end within a tile.
TEST(Kernel, ProductInTilesOfRowsOnOpenAxes) {
  CheckInTiles({{VarNode::Make("b"), 1, 9, 1}, {VarNode::Make("s"), 1, 4, 1}},
               {{{"b", 9}, {"s", 1}}, {{"b", 5}, {"s", 3}}, {{"b", 5}, {"s", 4}}});
}

// Each leading place has a second operand of its own; rows and columns end in the middle of a tile.
TEST(Kernel, PackedBatchedProducts) {
  for (const int64_t n : {2, 16, 33}) {
    for (const bool trans : {false, true}) {
      for (const bool open : {false, true}) {
        SCOPED_TRACE(
            fmt::format("{} columns{}{}", n, trans ? ", transposed" : "", open ? ", open" : ""));
        Case c;
        c.op = OpKind::kMatMul;
        c.inputs = {F32({2, 3, 13, 7}), F32(trans ? std::vector<int64_t>{2, 3, n, 7}
                                                  : std::vector<int64_t>{2, 3, 7, n})};
        if (open) {
          c.dims = {{VarNode::Make("m"), 1, 40, 1}};
          for (TensorType& t : c.inputs) t.dims[0] = c.dims[0].var;
          c.at = {{{"m", 1}}, {{"m", 3}}};
        }
        c.attrs = Attrs{{"trans_a", false}, {"trans_b", trans}};
        c.bias_relu = n == 33;
        Check(c, "packed_matmul");
      }
    }
  }
}

TEST(Kernel, PackedMatrixProductOfOpenSizes) {
  for (int64_t n : {2, 33}) {
    Case rows;
    rows.op = OpKind::kMatMul;
    rows.inputs = {Open(F32({1, 7}), 0, &rows), F32({7, n})};
    rows.bias_relu = n == 33;
    Check(rows, "packed_matmul");
  }
  for (int64_t rows : {1, 3}) {
    Case batch;
    batch.op = OpKind::kMatMul;
    batch.inputs = {Open(F32({1, rows, 5}), 0, &batch), F32({5, 18})};
    Check(batch, "packed_matmul");
  }
}

// One row in each of many places: they share tiles.
TEST(Kernel, ProductOfSingleRows) {
  const DType f32 = DType::Float(32), u8 = DType::UInt(8), i8 = DType::Int(8);
  for (const std::vector<int64_t>& lead :
       std::vector<std::vector<int64_t>>{{1, 7}, {8, 1}, {9}, {17}}) {
    Case c = Product(f32, f32, lead, 1, 35, 7);
    c.bias_relu = lead[0] == 9;
    Check(c, "packed_matmul");
  }
  Check(Product(u8, i8, {5}, 1, 33, 6), "packed_matmul", 0, MachineOf("cascadelake"));
}

// Rows of several open axes share tiles, however few stand on the last one.
TEST(Kernel, ProductOfRowsOnOpenAxes) {
  for (const int64_t between : {1, 3}) {
    Case c;
    const int64_t least = between == 1 ? 0 : 1;
    c.op = OpKind::kMatMul;
    c.dims = {{VarNode::Make("m"), least, 3, 1}, {VarNode::Make("n"), least, 9, 1}};
    c.inputs = {F32({1, between, 1, 3}), F32({3, 18})};
    c.inputs[0].dims[0] = c.dims[0].var;
    c.inputs[0].dims[2] = c.dims[1].var;
    c.bias_relu = between == 3;
    c.at = {{{"m", 1}, {"n", 1}}, {{"m", 3}, {"n", 1}}, {{"m", 3}, {"n", 3}}, {{"m", 2}, {"n", 9}}};
    if (least == 0) c.at.insert(c.at.end(), {{{"m", 0}, {"n", 3}}, {{"m", 3}, {"n", 0}}});
    Check(c, "packed_matmul");
  }
}

TEST(Kernel, ConvolutionOfOpenBatches) {
  Case c = Conv(4, 24, 3, 1, 1, 0, 1);
  c.inputs[0] = Open(c.inputs[0], 0, &c);
  c.at = {{{"m", 1}}, {{"m", 3}}};
  Check(c, "direct_conv");
}

// Windows of one position: tiles go on behind the end of a row of the map. One size is written in
// two ways, which are the same where it is even.
TEST(Kernel, ConvolutionOfOnePositionOfOpenMaps) {
  for (const int64_t step : {1, 2}) {
    Case c = Conv(64, 9, 1, 1, 1, 0, 1);
    c.dims = {{VarNode::Make("m"), 0, 16, step}};
    const Expr half = (Expr(c.dims[0].var) + 1) / 2;
    c.inputs[0] = F32({1, 64, 1, 1});
    c.inputs[0].dims[2] = step == 1 ? Expr(c.dims[0].var) : half;
    c.inputs[0].dims[3] = half;
    c.bias_relu = step == 1;
    c.at = {{{"m", 0}}, {{"m", 2}}, {{"m", 6}}};
    if (step == 1) c.at.insert(c.at.end(), {{{"m", 1}}, {{"m", 5}}});
    Check(c, "direct_conv");
  }
}

// Squares of one tile or less, of several, and of more than a band.
TEST_F(WinogradConvolution, OpenImages) {
  for (int64_t tile : {2, 4}) {
    Case c = WinogradConv(tile, 3, 2, 1, 1);
    c.inputs[0] = Open(Open(c.inputs[0], 2, &c), 3, &c);
    c.bias_relu = tile == 4;
    if (c.bias_relu) c.attrs = Attrs{{"pads", std::vector<int64_t>{1, 1, 0, 2}}};
    c.at = {{{"m", 1}}, {{"m", 4}}, {{"m", 5}}, {{"m", 9}}};
    Check(c, "winograd_conv", 1e-6, TestMachine(), 1);
  }
}

// An even number of rows of tiles: bands can have two.
TEST_F(WinogradConvolution, OpenImagesOfPairsOfRows) {
  Case c = WinogradConv(4, 3, 2, 1, 1);
  c.dims = {{VarNode::Make("m"), 1, 5, 1}, {VarNode::Make("n"), 1, 40, 1}};
  c.inputs[0].dims[2] = Expr(c.dims[0].var) * 8;
  c.inputs[0].dims[3] = c.dims[1].var;
  c.at = {{{"m", 1}, {"n", 1}}, {{"m", 1}, {"n", 13}}, {{"m", 3}, {"n", 39}}};
  const Machine& machine = TestMachine();
  Check(c, "winograd_conv", 1e-6, machine, 1,
        [](const Point& p) { return ValueOf(p, "band_rows") == 2; });
}

// Vectors along an axis of open size, the last of them masked.
TEST(Kernel, ElementsOfOpenSizes) {
  for (const auto& op : {OpKind::kRelu, OpKind::kTranspose}) {
    Case c;
    c.op = op;
    c.dims = {{VarNode::Make("m"), 0, 40, 1}};
    c.inputs = {F32({3, 5, 1})};
    c.inputs[0].dims[op == OpKind::kTranspose ? 1 : 2] = c.dims[0].var;
    if (op == OpKind::kTranspose) c.attrs = Attrs{{"perm", std::vector<int64_t>{2, 0, 1}}};
    c.at.clear();
    for (int64_t m : {0, 1, 15, 16, 17, 37}) c.at.push_back({{"m", m}});
    Check(c, "definition");
  }
}

Case SoftmaxOf(TensorType x, int64_t axis) {
  Case c;
  c.op = OpKind::kSoftmax;
  c.inputs = {std::move(x)};
  c.attrs = Attrs{{"axis", axis}};
  return c;
}

Case LayerNormOf(std::vector<int64_t> x) {
  Case c;
  c.op = OpKind::kLayerNorm;
  const int64_t n = x.back();
  c.attrs = Attrs{{"axis", static_cast<int64_t>(x.size()) - 1}, {"epsilon", 1e-5}};
  c.inputs = {F32(std::move(x)), F32({n}), F32({n})};
  return c;
}

constexpr size_t kAllPoints = 1000;

// Rows and their lengths around vectors and rows that are computed together; every point.
TEST(Kernel, RowsOfOpenSizes) {
  Case length = SoftmaxOf(F32({5, 1}), 1);
  length.inputs[0] = Open(F32({5, 1}), 1, &length);
  Check(length, "rows", 1e-6, TestMachine(), kAllPoints);
  Case rows = SoftmaxOf(F32({1, 19}), 1);
  rows.inputs[0] = Open(F32({1, 19}), 0, &rows);
  Check(rows, "rows", 1e-6, TestMachine(), kAllPoints);
}

// Lanes across rows are across those of the axes around an axis of one.
TEST(Kernel, RowsBehindAnAxisOfOne) {
  for (const std::vector<int64_t>& x : {std::vector<int64_t>{17, 1, 3}, {1, 1, 3}, {1, 3}})
    Check(SoftmaxOf(F32(x), static_cast<int64_t>(x.size()) - 1), "rows", 1e-6, TestMachine(),
          kAllPoints);
  Case open = SoftmaxOf(F32({17, 1, 4}), 2);
  open.inputs[0] = Open(F32({17, 1, 4}), 2, &open);
  Check(open, "rows", 1e-6, TestMachine(), kAllPoints);
}

TEST(Kernel, Rows) {
  for (int64_t n : {1, 7, 8, 9, 16, 17, 64, 100}) {
    Check(SoftmaxOf(F32({2, 3, n}), 2), "rows", 1e-6);
    if (n > 1) Check(LayerNormOf({5, n}), "rows", 1e-6);
  }
  Check(SoftmaxOf(F32({13, 37}), 1), "rows", 1e-6, TestMachine(), kAllPoints);
  Check(SoftmaxOf(F32({13, 3}), 1), "rows", 1e-6, TestMachine(), kAllPoints);
  Check(LayerNormOf({2, 5, 33}), "rows", 1e-6, TestMachine(), kAllPoints);
  Check(LayerNormOf({13, 3}), "rows", 1e-6, TestMachine(), kAllPoints);
  Check(SoftmaxOf(F32({37}), 0), "rows", 1e-6, TestMachine(), kAllPoints);
}

// Halves are computed in f32 and rounded once: where sums are taken in another order, by one step.
TEST(Kernel, RowsOfHalves) {
  for (const auto& [type, step] : {std::pair(DType::Float(16), 1e-3), {DType::BFloat16(), 8e-3}}) {
    for (int64_t n : {1, 3, 8, 9, 37}) {
      Case softmax = SoftmaxOf(F32({5, n}), 1), norm = LayerNormOf({2, 3, n});
      for (Case* c : {&softmax, &norm}) {
        for (TensorType& x : c->inputs) x.dtype = type;
      }
      Check(softmax, "rows", step);
      if (n > 1) Check(norm, "rows", step);
    }
    Case open = LayerNormOf({2, 3, 17});
    for (TensorType& x : open.inputs) x.dtype = type;
    open.inputs[0] = Open(open.inputs[0], 1, &open);
    Check(open, "rows", step);
  }
}

TEST(Kernel, Definition) {
  Case transpose;
  transpose.op = OpKind::kTranspose;
  transpose.inputs = {F32({3, 5, 17})};
  transpose.attrs = Attrs{{"perm", std::vector<int64_t>{2, 0, 1}}};
  Check(transpose, "definition");
  Case product;
  product.op = OpKind::kMatMul;
  product.inputs = {F32({3, 5, 7}), F32({3, 7, 18})};
  Check(product, "definition");
}

// Every cell of a result that is none of its elements holds what its layout says.
TEST(Kernel, PaddingIsFilled) {
  for (double padding : {-std::numeric_limits<double>::infinity(), 7.0}) {
    Case c;
    c.op = OpKind::kReshape;
    c.inputs = {F32({1, 3, 2, 2})};
    graph::Builder b("region");
    const ValueId x = b.Input("x", c.inputs[0]);
    const ValueId y = *b.Add(OpKind::kReshape, {x}, "y", {}, {{"shape", c.inputs[0].dims}});
    b.Output("y", y);
    graph::Graph region = std::move(b).Finish();
    TensorType& type = region.value(y).type.tensor();
    StorageDesc desc;
    desc.blocks = {{1, 4}, {1, 2}};
    desc.begin = {0, 0, 1, 0};
    desc.size = {IndexConst(1), IndexConst(3), IndexConst(4), IndexConst(3)};
    desc.padding = padding;
    type.layout = MakeLayout(desc, type.dims);
    const Expected<Kernel> kernel = Build(region, nullptr);
    ASSERT_TRUE(kernel) << ToString(kernel.errors());
    const Expected<Schedule> scheduled = ScheduleKernel(*kernel, TestMachine());
    ASSERT_TRUE(scheduled) << ToString(scheduled.errors());
    const testing::RunResult run = testing::RunRandom(scheduled->module(), "k", {});
    ASSERT_EQ(run.error, "");
    int64_t padded = 0;
    const InterpArg& out = run.args.back();
    for (int64_t i = 0; i < out.num_elements(); ++i) {
      const int64_t channel = i / 12, row = i / 3 % 4, column = i % 3;
      if (channel < 3 && row >= 1 && row < 3 && column < 2) continue;
      EXPECT_EQ(out.Get(i), padding) << i;
      ++padded;
    }
    EXPECT_EQ(padded, 4 * 4 * 3 - 12);
  }
}

// What a plan says is held against the row.
TEST(Kernel, PlansThatDoNotFitAreErrors) {
  const graph::Graph region = RegionOf(Conv(16, 16, 8, 3, 1, 1, 1));
  const Site site{region, AnchorOf(region), TestMachine()};
  const Algorithm& row = *FindAlgorithm("direct_conv");
  graph::Plan plan = MakePlan(row, row.space(site), CheapestPoint(row, site)->point, 0);
  auto message = [&](const graph::Plan& p) {
    Expected<Kernel> kernel = Build(region, &p);
    return kernel ? std::string() : ToString(kernel.errors());
  };
  EXPECT_NE(message(plan).find("does not lie as the algorithm 'direct_conv' wants it"),
            std::string::npos);
  plan.variants[0].schedule[0].value = 99;
  EXPECT_NE(message(plan).find("chooses no point"), std::string::npos);
  plan.algorithm = "attention";
  EXPECT_NE(message(plan).find("does not apply here"), std::string::npos);
  plan.algorithm = "magic";
  EXPECT_NE(message(plan).find("there is no algorithm 'magic'"), std::string::npos);
}

}  // namespace
}  // namespace tenon::ops
