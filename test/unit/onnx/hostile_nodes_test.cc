// Nodes whose attributes, shapes or sizes cannot be: each ends in a diagnostic that names the node.
#include <cmath>

#include "graph/dims.h"
#include "hostile.h"

namespace tenon::onnx::test {
namespace {

TEST(HostileNodes, Attributes) {
  EXPECT_SAYS(One("Softmax", {{4}}, {Float("axis", 0)}),
              "node 'n0' (Softmax): error: expected attribute axis to be an int, but got a float");
  EXPECT_SAYS(One("Softmax", {{4}}, {Int("axis", 0), Int("axis", 0)}),
              "attribute 'axis' is given twice");
  EXPECT_SAYS(One("Softmax", {{4}}, {Int("axis", 1)}), "expected axis in -1..0, but got 1");
  EXPECT_SAYS(One("Softmax", {{4}}, {Int("axes", 0)}),
              "unknown attribute 'axes' for Softmax in opset 17");
  EXPECT_SAYS(One("Concat", {{4}}), "expected the attribute axis, but it is missing");
  EXPECT_SAYS(One("Relu", {{4}, {4}}), "expected 1 inputs, but got 2");
  EXPECT_SAYS(One("Cast", {{4}}, {Int("to", 8)}), "numbers are no strings: cast them");
  EXPECT_SAYS(One("Cast", {{4}}, {Int("to", int64_t{1} << 40)}), "unknown data type 1099511627776");
  Model ref = One("Softmax", {{4}}, {Message([](pbf_writer& w) {
                    w.add_string(1, "axis"), w.add_string(21, "outer"), w.add_int32(20, 2);
                  })});
  EXPECT_SAYS(ref, "attribute axis refers to a function's attribute outside a function");
}

TEST(HostileNodes, Windows) {
  const std::vector<std::vector<DimText>> xw = {{1, 4, 8, 8}, {8, 4, 3, 3}};
  EXPECT_SAYS(One("Conv", {{1, 4, 8, 8}, {8, 4, 3}}),
              "expected an input of rank 3 or more and a weight of the same rank, but got f32[1, "
              "4, 8, 8] and f32[8, 4, 3]");
  EXPECT_SAYS(One("Conv", xw, {Ints("strides", {0, 1})}),
              "expected strides in 1..2147483648, but got [0, 1]");
  EXPECT_SAYS(One("Conv", xw, {Ints("dilations", {1, -1})}),
              "expected dilations in 1..2147483648, but got [1, -1]");
  EXPECT_SAYS(One("Conv", xw, {Ints("pads", {0, 0, 0})}), "expected 4 entries in pads, but got 3");
  EXPECT_SAYS(One("Conv", xw, {Ints("pads", {-1, 0, 0, 0})}),
              "expected pads in 0..2147483648, but got [-1, 0, 0, 0]");
  EXPECT_SAYS(One("Conv", xw, {Ints("pads", {INT64_MAX, 0, 0, 0})}),
              "expected pads in 0..2147483648");
  EXPECT_SAYS(
      One("Conv", xw,
          {Ints("pads", {int64_t{1} << 31, int64_t{1} << 31, int64_t{1} << 31, int64_t{1} << 31})}),
      "expected a tensor of at most 2^40 elements");
  EXPECT_SAYS(One("Conv", xw, {Ints("kernel_shape", {5, 5})}),
              "expected kernel_shape [3, 3] as the weight has, but got [5, 5]");
  EXPECT_SAYS(One("Conv", xw, {Int("group", 0)}), "expected group of at least 1, but got 0");
  EXPECT_SAYS(One("Conv", xw, {Int("group", INT64_MAX)}), "input channels");
  EXPECT_SAYS(One("Conv", {{1, 4, 8, 8}, {8, 4, 0, 3}}),
              "expected kernel in 1..2147483648, but got [0, 3]");
  EXPECT_SAYS(One("Conv", xw, {Str("auto_pad", "SAME")}),
              "expected auto_pad NOTSET, SAME_UPPER, SAME_LOWER or VALID, but got 'SAME'");
  EXPECT_SAYS(One("MaxPool", {{1, 4, 8, 8}}),
              "expected the attribute kernel_shape, but it is missing");
  EXPECT_SAYS(One("MaxPool", {{1, 4, 8, 8}}, {Ints("kernel_shape", {0, 0})}),
              "expected kernel_shape in 1..2147483648, but got [0, 0]");
  EXPECT_SAYS(One("MaxPool", {{1, 4}}, {Ints("kernel_shape", {})}),
              "expected an input of rank 3 or more, but got f32[1, 4]");
}

// A node whose further inputs are constants.
Model WithInts(const std::string& op, const std::vector<DimText>& dims,
               const std::vector<std::vector<int64_t>>& ints, int outputs = 1,
               const std::vector<std::string>& attrs = {}) {
  Model m;
  m.Input("x", dims);
  std::vector<std::string> inputs = {"x"}, names;
  for (const std::vector<int64_t>& v : ints) {
    inputs.push_back("c" + std::to_string(inputs.size()));
    m.Init64(inputs.back(), v);
  }
  for (int i = 0; i < outputs; ++i) names.push_back("y" + std::to_string(i));
  m.Node(op, inputs, names, attrs);
  for (const std::string& n : names) m.Output(n);
  return m;
}

// They were taken off by broadcasting, so that these made results of other shapes.
TEST(HostileNodes, ZeroPointsOfWeights) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{4, 1, 1, 1}, {3}}) {
    Model m;
    m.Input("x", {1, 3, 5, 6}, kUint8).Init("w", kUint8, {4, 3, 3, 3}, std::string(108, '\1'));
    m.Init("zx", kUint8, {}, "\2")
        .Init("zw", kUint8, dims, std::string(static_cast<size_t>(dims[0]), '\3'));
    m.Node("ConvInteger", {"x", "w", "zx", "zw"}, {"y"}).Output("y", kInt32);
    EXPECT_SAYS(m, "expected a zero point of the weights, or one for each map of u8[4, 3, 3, 3]");
  }
}

TEST(HostileNodes, Movement) {
  EXPECT_SAYS(WithInts("Reshape", {4}, {{-1, -1}}),
              "expected at most one -1 in the shape, but got [-1, -1]");
  EXPECT_SAYS(WithInts("Reshape", {4}, {{-2, 2}}),
              "expected dims of -1 or more in the shape, but got [-2, 2]");
  EXPECT_SAYS(WithInts("Reshape", {4}, {{3}}),
              "expected a shape of 4 elements like the input's [4], but got [3] with 3");
  EXPECT_SAYS(WithInts("Reshape", {4}, {{3, -1}}), "expected a shape of 4 elements");
  EXPECT_SAYS(WithInts("Reshape", {4}, {{4, 1, 0}}),
              "expected 0 in the shape to copy one of 1 dims, but it stands at 2");
  EXPECT_SAYS(WithInts("Reshape", {0, 4}, {{0, -1}}),
              "expected a shape whose -1 can be inferred, but another dim is 0");
  EXPECT_SAYS(
      WithInts("Reshape", {4}, {{int64_t{1} << 32, int64_t{1} << 32, 0}}, 1, {Int("allowzero", 1)}),
      "expected a shape of 4 elements");
  EXPECT_SAYS(WithInts("Slice", {4}, {{0}, {4}, {0}, {0}}),
              "expected slice steps other than 0 (axis 0)");
  EXPECT_SAYS(WithInts("Slice", {4}, {{0, 0}, {4, 4}, {0, 0}}),
              "expected distinct axes, but 0 is repeated");
  EXPECT_SAYS(WithInts("Slice", {4}, {{0}, {4, 5}}),
              "expected starts, ends, axes and steps of one length, but got 1, 2, 1 and 1");
  EXPECT_SAYS(WithInts("Split", {7}, {{3, 3}}, 2),
              "expected 2 split sizes that sum to 7, but got [3, 3]");
  EXPECT_SAYS(WithInts("Split", {7}, {{8, -1}}, 2),
              "expected split sizes of at least 0, but got -1");
  EXPECT_SAYS(WithInts("Split", {7}, {}, 2),
              "expected an axis that splits into 2 equal parts, but got 7");
  EXPECT_SAYS(WithInts("Split", {7}, {}, 0), "expected outputs to split into, but there are none");
  EXPECT_SAYS(WithInts("Expand", {4}, {{int64_t{1} << 60, 4}}),
              "expected a tensor of at most 2^40 elements");
  EXPECT_SAYS(WithInts("Expand", {4}, {{-3}}), "expected");
  EXPECT_SAYS(WithInts("Tile", {4}, {{int64_t{1} << 60}}),
              "expected a tensor of at most 2^40 elements");
  EXPECT_SAYS(WithInts("Tile", {4}, {{-1}}), "expected repeats of at least 0, but got [-1]");
  EXPECT_SAYS(WithInts("Pad", {4}, {{INT64_MAX, INT64_MAX}}), "expected sensible padding");
  EXPECT_SAYS(WithInts("Pad", {4}, {{-3, -3}}),
              "expected padding that leaves axis 0 a size, but got -2");
  EXPECT_SAYS(WithInts("Pad", {4}, {{4, 0}}, 1, {Str("mode", "reflect")}),
              "expected reflected padding below axis 0's dim 4, but got 4");
  EXPECT_SAYS(
      WithInts("Pad", {4}, {{1, 1}}, 1, {Str("mode", "mirror")}),
      "expected attribute mode of pad to be one of constant|reflect|edge|wrap, but got 'mirror'");
  EXPECT_SAYS(WithInts("Squeeze", {1, 2}, {{1}}),
              "expected axis 1 to squeeze to be 1, but got f32[1, 2]");
  EXPECT_SAYS(WithInts("Unsqueeze", {1, 2}, {{0, 0}}),
              "expected distinct axes, but one is repeated");
  EXPECT_SAYS(One("Transpose", {{1, 2}}, {Ints("perm", {0, 0})}),
              "expected perm to permute 2 axes, but got [0, 0]");
  EXPECT_SAYS(One("Concat", {{1, 2}, {1, 2, 3}}, {Int("axis", 0)}),
              "expected inputs that differ along axis 0 only, but got [1, 2] and [1, 2, 3]");
  EXPECT_SAYS(One("Gather", {{4}, {2}}), "expected indices of i32 or i64, but got f32");
}

TEST(HostileNodes, ShapesThatDependOnRunTimeData) {
  Model m;
  m.Input("x", {4}).Input("shape", {2}, kInt64).Node("Reshape", {"x", "shape"}, {"y"}).Output("y");
  Expected<graph::Graph> g = Import(m);
  ASSERT_TRUE(g) << ToString(g.errors());
  EXPECT_EQ(g->type(g->outputs[0]).ToString(), "f32[n0, n0_1]");
  ASSERT_EQ(g->constraints.size(), 1u);
  EXPECT_EQ(graph::DimText(g->constraints[0].holds), "n0 * n0_1 == 4");

  Model ranks;
  ranks.Input("x", {4}).Input("shape", {"n"}, kInt64).Node("Reshape", {"x", "shape"}, {"y"});
  EXPECT_SAYS(ranks.Output("y"),
              "node 'n0' (Reshape): error: expected a shape of known length, but got i64[n]");
}

TEST(HostileNodes, ConstantsOfAbsurdSize) {
  Model m;
  m.Input("x", {4})
      .Init64("s", {int64_t{1} << 31, int64_t{1} << 31})
      .Node("ConstantOfShape", {"s"}, {"y"})
      .Output("y");
  EXPECT_SAYS(m, "node 'n0' (ConstantOfShape): error: expected a tensor of at most 2^40 elements");
  Model range;
  range.Input("x", {4})
      .Init("a", kInt64, {}, Raw<int64_t>({0}))
      .Init("b", kInt64, {}, Raw<int64_t>({INT64_MAX}))
      .Init("c", kInt64, {}, Raw<int64_t>({1}));
  range.Node("Range", {"a", "b", "c"}, {"y"}).Output("y", kInt64);
  EXPECT_SAYS(range, "node 'n0' (Range): error: expected a tensor of at most 2^40 elements");
  Model zero;
  zero.Input("x", {4})
      .Init("a", kInt64, {}, Raw<int64_t>({0}))
      .Node("Range", {"a", "a", "a"}, {"y"})
      .Output("y", kInt64);
  EXPECT_SAYS(zero, "expected a range with a sensible delta, but got 0");
  Model nan;
  nan.Input("x", {4})
      .Init("a", kFloat, {}, Raw<float>({0}))
      .Init("n", kFloat, {}, Raw<float>({NAN}))
      .Node("Range", {"a", "n", "a"}, {"y"})
      .Output("y");
  EXPECT_SAYS(nan, "expected a range of finite size");
}

TEST(HostileNodes, ResizeScales) {
  const auto resize = [](float scale) {
    Model m;
    m.Input("x", {1, 1, 4, 4})
        .Init("s", kFloat, {4}, Raw<float>({1, 1, scale, 1}))
        .Node("Resize", {"x", "", "s"}, {"y"})
        .Output("y");
    return m;
  };
  EXPECT_EQ(Errors(resize(2)), "");
  EXPECT_SAYS(resize(0), "node 'n0' (Resize): error: expected finite scales above 0, but got 0");
  EXPECT_SAYS(resize(-1), "expected finite scales above 0, but got -1");
  EXPECT_SAYS(resize(NAN), "expected finite scales above 0, but got nan");
  EXPECT_SAYS(resize(INFINITY), "expected finite scales above 0, but got inf");
  EXPECT_SAYS(resize(1e30f), "expected a sensible size, but dim 4 times scale");
}

TEST(HostileNodes, IntegerArithmeticInShapes) {
  Model m;
  m.Input("x", {4})
      .Init64("a", {INT64_MIN})
      .Init64("b", {-1})
      .Node("Div", {"a", "b"}, {"q"})
      .Node("Reshape", {"x", "q"}, {"y"})
      .Output("y");
  EXPECT_SAYS(m, "expected dims of -1 or more in the shape, but got [-9223372036854775808]");
}

TEST(HostileNodes, FunctionsCannotExplode) {
  Model m;
  m.Input("x", {4}).Node("f29", {"x"}, {"y"}, {}, "my").Output("y");
  for (int i = 0; i < 30; ++i) {
    m.ModelField(25, Message([&](pbf_writer& w) {
                   w.add_string(1, "f" + std::to_string(i));
                   w.add_string(4, "x");
                   w.add_string(5, "y");
                   for (int k = 0; k < 2; ++k) {
                     w.add_message(7, Message([&](pbf_writer& n) {
                                     n.add_string(1, k ? "t" : "x");
                                     n.add_string(2, k ? "y" : "t");
                                     n.add_string(4, i ? "f" + std::to_string(i - 1) : "Relu");
                                     if (i) n.add_string(7, "my");
                                   }));
                   }
                   w.add_string(10, "my");
                 }));
  }
  // Counted before any is expanded: nobody waits for the second.
  for (const size_t most : {size_t{5000}, size_t{1} << 29}) {
    ImportOptions options;
    options.limits.max_nodes = most;
    const std::string errors = Errors(m, options);
    EXPECT_NE(errors.find("functions: error: expanding the local functions gives more than " +
                          std::to_string(most) + " nodes"),
              std::string::npos)
        << errors;
  }
}

TEST(HostileNodes, SymbolicDimsAreCounted) {
  Model m;
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) {
    names.push_back("x" + std::to_string(i));
    m.Input(names.back(), std::vector<DimText>(64, ""));
  }
  m.Node("Sum", names, {"y"}).Output("y");
  EXPECT_SAYS(m, "error: expected at most 1024 symbolic dims");
}

TEST(HostileNodes, FoldingIsBounded) {
  // Each node would fold to 4,096 numbers; beyond a total the rest is left to run.
  Model m;
  m.Input("x", {1}).Init64("c0", std::vector<int64_t>(4096, 1));
  for (int i = 0; i < 3000; ++i) {
    const std::string from = "c" + std::to_string(i);
    m.Node("Add", {from, from}, {"c" + std::to_string(i + 1)});
  }
  m.Output("c3000", kInt64);
  Expected<graph::Graph> g = Import(m);
  ASSERT_TRUE(g) << ToString(g.errors());
  EXPECT_GT(g->nodes.size(), 1000u);
  EXPECT_LT(g->nodes.size(), 3000u);
}

TEST(HostileNodes, ExpressionsCannotGrowWithoutBound) {
  Model m;
  m.Input("x", {"n", "m"}).Node("Shape", {"x"}, {"s0"}).Init64("k", {3, 5});
  for (int i = 0; i < 200; ++i) {
    const std::string from = "s" + std::to_string(i), to = "s" + std::to_string(i + 1);
    m.Node("Add", {from, "k"}, {from + "a"})
        .Node("Div", {from + "a", "k"}, {from + "d"})
        .Node("Mul", {from + "d", from}, {to});
  }
  m.Node("ConstantOfShape", {"s200"}, {"y"}).Output("y");
  // What is no expression of bounded length is found when the library is called.
  Expected<graph::Graph> g = Import(m);
  ASSERT_TRUE(g) << ToString(g.errors());
  EXPECT_EQ(g->type(g->outputs[0]).ToString(), "f32[n601, n601_1]");
}

}  // namespace
}  // namespace tenon::onnx::test
