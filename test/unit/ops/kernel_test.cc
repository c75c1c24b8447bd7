// Kernels by their meaning: what the rule scheduled and the passes lowered computes what the
// unscheduled kernel does, on every rule, at sizes around the register tile.
#include "ops/kernel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/builder.h"
#include "graph/dims.h"
#include "graph/storage_desc.h"
#include "loop/pass/pass.h"
#include "ops/catalog.h"
#include "support/interp_check.h"

namespace tenon::ops {
namespace {

using graph::OpKind;
using graph::TensorType;
using graph::ValueId;

const Target& TestTarget() {
  static const Target target = *Target::Parse("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4");
  return target;
}

TensorType F32(std::vector<int64_t> dims, const StorageDesc& desc = {}) {
  TensorType t;
  t.dtype = DType::Float(32);
  t.dims = graph::ConstDims(dims);
  t.layout = MakeLayout(desc, t.dims);
  return t;
}

/// One operator on inputs that are stored as stated; the result's layout is set afterwards.
struct Case {
  OpKind op;
  std::vector<TensorType> inputs;
  Attrs attrs;
  StorageDesc out;
  bool bias_relu = false;  // an epilogue: relu(op(…) + x), x of the result's type
};

Expected<Kernel> Build(const Case& c, bool tuned) {
  graph::Builder b("region");
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i)
    inputs.push_back(b.Input(fmt::format("x{}", i), c.inputs[i]));
  TN_ASSIGN_OR_RETURN(ValueId y, b.Add(c.op, inputs, "y", c.attrs));
  auto place = [&](ValueId v) {
    TensorType& t = b.graph().value(v).type;
    t.layout = MakeLayout(c.out, t.dims);
  };
  place(y);
  if (c.bias_relu) {
    ValueId x = b.Input("residual", b.type(y));
    TN_ASSIGN_OR_RETURN(y, b.Add(OpKind::kAdd, {y, x}, "sum"));
    TN_ASSIGN_OR_RETURN(y, b.Add(OpKind::kRelu, {y}, "relu"));
    place(y);
  }
  b.Output("y", y);
  graph::Graph region = std::move(b).Finish();
  KernelRequest request;
  request.name = "k";
  request.region = &region;
  request.target = &TestTarget();
  request.tuned_algorithms = tuned;
  return BuildKernel(request);
}

Module Lowered(const Module& scheduled) {
  PassContext context;
  context.target = &TestTarget();
  Module m = scheduled;
  // As far as shapes stay logical: afterwards arguments are flat storage, which the tests of the
  // passes and whole networks cover.
  for (const char* pass :
       {"compact_buffers", "lower_blocks", "simplify", "split_guards", "simplify"}) {
    m = FindLoopPass(pass)->run(m, context);
  }
  return m;
}

/// Outputs within a relative distance of each other, norm-wise.
::testing::AssertionResult Near(const Module& before, const Module& after, double tolerance) {
  testing::RunResult want = testing::RunRandom(before, "k", {}),
                     got = testing::RunRandom(after, "k", {});
  if (!want.error.empty()) return ::testing::AssertionFailure() << "before: " << want.error;
  if (!got.error.empty()) return ::testing::AssertionFailure() << "after: " << got.error;
  Func f = before.Find("k");
  double error = 0, norm = 0;
  const InterpArg &a = want.args[f->buffers.size() - 1], &b = got.args[f->buffers.size() - 1];
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    error += (a.Get(i) - b.Get(i)) * (a.Get(i) - b.Get(i));
    norm += a.Get(i) * a.Get(i);
  }
  if (std::sqrt(error) <= tolerance * std::sqrt(norm)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "distance " << std::sqrt(error / norm);
}

void Check(const Case& c, const char* rule, double tolerance = 0) {
  Expected<Kernel> kernel = Build(c, true);
  ASSERT_TRUE(kernel) << ToString(kernel.errors());
  EXPECT_EQ(kernel->func->attrs.GetString("rule"), rule);
  Expected<Schedule> scheduled = ScheduleKernel(kernel->func, TestTarget());
  ASSERT_TRUE(scheduled) << ToString(scheduled.errors());
  Module before;
  before.Add(kernel->func);
  if (tolerance > 0) {
    EXPECT_TRUE(Near(before, scheduled->module(), tolerance));
    EXPECT_TRUE(Near(before, Lowered(scheduled->module()), tolerance));
  } else {
    EXPECT_TRUE(testing::SameResults(before, scheduled->module(), "k"));
    EXPECT_TRUE(testing::SameResults(before, Lowered(scheduled->module()), "k"));
  }
}

StorageDesc Blocked(std::vector<int64_t> dims, int64_t halo) {
  StorageDesc d;
  d.blocks = {{1, 16}};
  if (halo > 0) {
    d.begin = {0, 0, halo, halo};
    d.size = graph::ConstDims(
        std::vector<int64_t>{dims[0], dims[1], dims[2] + 2 * halo, dims[3] + 2 * halo});
  }
  return d;
}

Case Conv(int64_t channels, int64_t maps, int64_t size, int64_t kernel, int64_t stride, int64_t pad,
          int64_t group) {
  std::vector<int64_t> x = {1, channels, size, size};
  bool depthwise = group > 1;
  Case c;
  c.op = OpKind::kConv;
  c.attrs = Attrs{{"strides", std::vector<int64_t>{stride, stride}},
                  {"dilations", std::vector<int64_t>{1, 1}},
                  {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
                  {"group", group}};
  c.out = Blocked({}, 0);
  // The weights' layout is what the catalog asks for.
  graph::Builder b;
  ValueId in = b.Input("x", F32(x, Blocked(x, pad)));
  ValueId w = b.Input("w", F32({maps, depthwise ? 1 : channels, kernel, kernel}));
  ValueId bias = b.Input("b", F32({maps}));
  ValueId y = *b.Add(OpKind::kConv, {in, w, bias}, "y", c.attrs);
  const graph::Graph& g = b.graph();
  const graph::Node& node = g.node(g.value(y).producer);
  c.inputs = {b.type(in), b.type(w), b.type(bias)};
  for (size_t i = 1; i < 3; ++i) c.inputs[i].layout = WeightLayout(g, node, i, TestTarget());
  return c;
}

// Channels below, at and above a block; widths around the tile.
class DirectConvolution : public ::testing::TestWithParam<std::tuple<int64_t, int64_t, int64_t>> {};
TEST_P(DirectConvolution, AnySize) {
  const auto [channels, maps, size] = GetParam();
  Check(Conv(channels, maps, size, 3, 1, 1, 1), "tile");
}
INSTANTIATE_TEST_SUITE_P(Kernel, DirectConvolution,
                         ::testing::Combine(::testing::Values(3, 24), ::testing::Values(16, 40),
                                            ::testing::Values(1, 4)));

TEST(Kernel, DirectConvolutionWithStridesAndResiduals) {
  Check(Conv(16, 16, 15, 1, 1, 0, 1), "tile");
  Check(Conv(16, 16, 6, 3, 2, 1, 1), "tile");
  Case residual = Conv(16, 24, 3, 3, 1, 1, 1);
  residual.bias_relu = true;
  Check(residual, "tile");
}

TEST(Kernel, DepthwiseConvolution) {
  for (int64_t size : {1, 5}) Check(Conv(24, 24, size, 3, 1, 1, 24), "tile");
  Check(Conv(32, 32, 7, 5, 2, 2, 32), "tile");
}

// x: [1, channels, space…], w: [maps, channels / group, 3…] with the layouts that the catalog asks
// for.
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
  graph::Builder b;
  ValueId in = b.Input("x", F32(x)), weights = b.Input("w", F32(w));
  ValueId y = *b.Add(OpKind::kConv, {in, weights}, "y", c.attrs);
  const graph::Graph& g = b.graph();
  const graph::Node& node = g.node(g.value(y).producer);
  std::vector<int64_t> halo = WantedHalo(g, node, TestTarget());
  StorageDesc desc;
  desc.begin = {0, 0};
  desc.size = {IndexConst(x[0]), IndexConst(x[1])};
  for (size_t i = 0; i < n; ++i) {
    desc.begin.push_back(halo[i]);
    desc.size.push_back(IndexConst(halo[i] + x[i + 2] + halo[n + i]));
  }
  c.inputs = {F32(x, desc), b.type(weights)};
  c.inputs[1].layout = WeightLayout(g, node, 1, TestTarget());
  return c;
}

TEST(Kernel, ConvolutionAsImplicitProduct) {
  for (int64_t width : {1, 15, 16, 17, 37}) {
    SCOPED_TRACE(fmt::format("width {}", width));
    Check(PlainConv(2, 10, 1, {width}, 1, 1), "implicit_gemm");
  }
  Check(PlainConv(2, 4, 2, {2, 9}, 1, 2), "implicit_gemm");
  Check(PlainConv(2, 2, 2, {1, 2, 5}, 2, 1), "implicit_gemm");
}

TEST(Kernel, WindowsOnChannelBlocks) {
  std::vector<int64_t> x = {1, 24, 9, 9};
  Case c;
  c.op = OpKind::kMaxPool;
  c.inputs = {F32(x, Blocked(x, 0))};
  c.attrs = Attrs{{"kernel", std::vector<int64_t>{3, 3}},
                  {"strides", std::vector<int64_t>{2, 2}},
                  {"dilations", std::vector<int64_t>{1, 1}},
                  {"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  c.out = Blocked({}, 0);
  Check(c, "window");
  c.op = OpKind::kAvgPool;
  Check(c, "window");
  Case mean;
  mean.op = OpKind::kReduce;
  mean.inputs = c.inputs;
  mean.attrs = Attrs{
      {"kind", std::string("mean")}, {"axes", std::vector<int64_t>{2, 3}}, {"keepdims", true}};
  mean.out = Blocked({}, 0);
  Check(mean, "window");
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
          graph::Builder b;
          ValueId a = b.Input("a", c.inputs[0]), w = b.Input("w", c.inputs[1]);
          ValueId y = *b.Add(OpKind::kMatMul, {a, w}, "y", c.attrs);
          const graph::Graph& g = b.graph();
          c.inputs[1].layout = WeightLayout(g, g.node(g.value(y).producer), 1, TestTarget());
          c.bias_relu = k == 7;
          Check(c, "matmul");
        }
      }
    }
  }
}

TEST(Kernel, Rows) {
  for (int64_t n : {16, 17, 64, 100}) {
    Case softmax;
    softmax.op = OpKind::kSoftmax;
    softmax.inputs = {F32({2, 3, n})};
    softmax.attrs = Attrs{{"axis", int64_t{2}}};
    Check(softmax, "rows", 1e-6);
    Case norm;
    norm.op = OpKind::kLayerNorm;
    norm.inputs = {F32({5, n}), F32({n}), F32({n})};
    norm.attrs = Attrs{{"axis", int64_t{1}}, {"epsilon", 1e-5}};
    Check(norm, "rows", 1e-6);
  }
}

TEST(Kernel, Attention) {
  for (int64_t queries : {1, 13}) {
    for (int64_t keys : {16, 19}) {
      SCOPED_TRACE(fmt::format("{} queries, {} keys", queries, keys));
      Case c;
      c.op = OpKind::kAttention;
      c.inputs = {F32({1, 2, queries, 20}), F32({1, 2, keys, 20}), F32({1, 2, keys, 24}),
                  F32({1, 1, 1, keys})};
      c.attrs = Attrs{{"scale", 0.25}};
      Check(c, "attention", 1e-6);
    }
  }
}

TEST(Kernel, FallbackRule) {
  Case transpose;
  transpose.op = OpKind::kTranspose;
  transpose.inputs = {F32({3, 5, 17})};
  transpose.attrs = Attrs{{"perm", std::vector<int64_t>{2, 0, 1}}};
  Check(transpose, "map");
  Case product;
  product.op = OpKind::kMatMul;
  product.inputs = {F32({3, 5, 7}), F32({3, 7, 18})};
  Check(product, "map");
}

}  // namespace
}  // namespace tenon::ops
