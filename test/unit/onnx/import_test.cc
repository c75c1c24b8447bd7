// Importing right models: what becomes of operators, versions, shapes and weights.
#include <gtest/gtest.h>

#include "frontend/onnx/shape_text.h"
#include "graph/text.h"
#include "model_builder.h"

namespace tenon::onnx::test {
namespace {

// The graph's text without its head and constants, one line per node.
std::string Body(const Model& model, const ImportOptions& options = {}) {
  Expected<graph::Graph> g = Import(model, options);
  if (!g) return ToString(g.errors());
  std::string out;
  const std::string text = graph::Print(*g);
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    const size_t call = line.find(" = ");
    if (call != std::string::npos && line.find(" = const") == std::string::npos) {
      const size_t type = line.find(": ");
      out += line.substr(type + 2, call - type - 2) + " " +
             line.substr(call + 3, line.find_last_of(")}") - call - 2) + "\n";
    }
    at = end + 1;
  }
  return out;
}

Model Unary(const std::string& op, const std::vector<DimText>& dims,
            const std::vector<std::string>& attrs = {}, int64_t opset = 17) {
  Model m;
  m.opset = opset;
  m.Input("x", dims).Node(op, {"x"}, {"y"}, attrs).Output("y");
  return m;
}

TEST(Import, ASmallNetwork) {
  Model m;
  m.Input("x", {"batch", 4})
      .Init("w", kFloat, {4, 2}, std::string(32, '\0'))
      .Init("b", kFloat, {2}, std::string(8, '\0'));
  m.Node("Gemm", {"x", "w", "b"}, {"h"}, {Float("alpha", 0.5f)})
      .Node("Relu", {"h"}, {"y"})
      .Output("y");
  Expected<graph::Graph> g = Import(m);
  ASSERT_TRUE(g) << ToString(g.errors());
  EXPECT_EQ(g->dims.size(), 1u);
  EXPECT_EQ(g->output_names[0], "y");
  EXPECT_EQ(g->type(g->outputs[0]).ToString(), "f32[batch, 2]");
  EXPECT_EQ(Body(m),
            "f32[batch, 2] matmul(%0, %1)\nf32[batch, 2] mul(%4, %3)\nf32[batch, 2] add(%5, "
            "%2)\nf32[batch, 2] relu(%6)\n");
  // Weights are the file's own bytes.
  for (const graph::Value& v : g->values) {
    if (v.name == "w") EXPECT_NE(v.payload.file(), nullptr);
  }
}

TEST(Import, SoftmaxBeforeOpset13IsTwoDimensional) {
  EXPECT_EQ(Body(Unary("Softmax", {2, 3, 4}, {}, 11)),
            "f32[2, 12] reshape(%0) {shape: [2, 12]}\nf32[2, 12] softmax(%1) {axis: 1}\nf32[2, 3, "
            "4] reshape(%2) {shape: [2, 3, 4]}\n");
  EXPECT_EQ(Body(Unary("Softmax", {2, 3, 4}, {Int("axis", -1)}, 11)),
            "f32[2, 3, 4] softmax(%0) {axis: 2}\n");
  EXPECT_EQ(Body(Unary("Softmax", {2, 3, 4}, {}, 13)), "f32[2, 3, 4] softmax(%0) {axis: 2}\n");
}

TEST(Import, ClipBoundsAreAttributesOrInputs) {
  EXPECT_EQ(Body(Unary("Clip", {4}, {Float("max", 6), Float("min", 0)}, 6 + 1)),
            "f32[4] clip(%0) {lo: 0.0, hi: 6.0}\n");
  Model m;
  m.Input("x", {4})
      .Init("lo", kFloat, {}, Raw<float>({0}))
      .Node("Clip", {"x", "lo"}, {"y"})
      .Output("y");
  EXPECT_EQ(Body(m), "f32[4] clip(%0) {lo: 0.0}\n");
  Model run_time;
  run_time.Input("x", {4}).Input("hi", {}).Node("Clip", {"x", "", "hi"}, {"y"}).Output("y");
  EXPECT_EQ(Body(run_time), "f32[4] min(%0, %1)\n");
}

TEST(Import, AutoPadAndCeilMode) {
  EXPECT_EQ(Body(Unary("MaxPool", {1, 1, 5, 5},
                       {Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2}),
                        Str("auto_pad", "SAME_UPPER")})),
            "f32[1, 1, 3, 3] max_pool(%0) {kernel: [2, 2], strides: [2, 2], pads: [0, 0, 1, 1]}\n");
  EXPECT_EQ(Body(Unary("AveragePool", {1, 1, 5, 5},
                       {Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2}),
                        Str("auto_pad", "SAME_LOWER"), Int("ceil_mode", 1)})),
            "f32[1, 1, 3, 3] avg_pool(%0) {kernel: [2, 2], strides: [2, 2], pads: [1, 1, 0, 0]}\n");
  EXPECT_EQ(
      Body(Unary("MaxPool", {1, 1, 4, 4},
                 {Ints("kernel_shape", {3, 3}), Ints("strides", {2, 2}), Int("ceil_mode", 1)})),
      "f32[1, 1, 2, 2] max_pool(%0) {kernel: [3, 3], strides: [2, 2], ceil_mode: true}\n");
}

TEST(Import, ReshapeFollowsSymbolicShapes) {
  Model m;
  m.Input("x", {"n", 3, "w"}).Node("Shape", {"x"}, {"s"}).Init64("zero", {0}).Init64("rest", {-1});
  m.Node("Gather", {"s", "zero"}, {"first"})
      .Node("Concat", {"first", "rest"}, {"t"}, {Int("axis", 0)});
  m.Node("Reshape", {"x", "t"}, {"y"}).Output("y");
  EXPECT_EQ(Body(m), "f32[n, w * 3] reshape(%0) {shape: [n, w * 3]}\n");
  ImportOptions options;
  options.shapes["x"] = {{.value = 2}, {.value = 3}, {.value = 5}};
  EXPECT_EQ(Body(m, options), "f32[2, 15] reshape(%0) {shape: [2, 15]}\n");
}

TEST(Import, SliceClampsAsPythonDoes) {
  auto slice = [](std::vector<DimText> dims, std::vector<int64_t> s, std::vector<int64_t> e,
                  std::vector<int64_t> step) {
    Model m;
    m.Input("x", dims).Init64("s", s).Init64("e", e).Init64("a", {0}).Init64("t", step);
    m.Node("Slice", {"x", "s", "e", "a", "t"}, {"y"}).Output("y");
    const std::string body = Body(m);
    return body.empty() ? body : body.substr(body.find('{'));
  };
  EXPECT_EQ(slice({10}, {2}, {8}, {3}), "{starts: [2], sizes: [2], steps: [3]}\n");
  EXPECT_EQ(slice({10}, {-3}, {INT64_MAX}, {1}), "{starts: [7], sizes: [3], steps: [1]}\n");
  EXPECT_EQ(slice({10}, {INT64_MAX}, {INT64_MIN}, {-1}),
            "{starts: [9], sizes: [10], steps: [-1]}\n");
  EXPECT_EQ(slice({10}, {8}, {2}, {1}), "");  // a constant without elements
  EXPECT_EQ(slice({10}, {5}, {INT64_MIN}, {INT64_MIN}), "{starts: [5], sizes: [1], steps: [1]}\n");
  // Axes longer than 2^31 - 1, which itself means the end whatever there is.
  constexpr int64_t kLong = int64_t{1} << 32;
  EXPECT_EQ(slice({kLong}, {kLong - 5}, {kLong - 2}, {1}),
            "{starts: [4294967291], sizes: [3], steps: [1]}\n");
  EXPECT_EQ(slice({kLong}, {kLong - 5}, {INT32_MAX}, {1}),
            "{starts: [4294967291], sizes: [5], steps: [1]}\n");
  EXPECT_EQ(slice({"n"}, {0}, {-1}, {1}), "{starts: [0], sizes: [n - 1], steps: [1]}\n");
  EXPECT_EQ(slice({"n"}, {0}, {1}, {1}), "{starts: [0], sizes: [1], steps: [1]}\n");
  EXPECT_EQ(slice({"n"}, {-1}, {INT64_MAX}, {1}), "{starts: [n - 1], sizes: [1], steps: [1]}\n");
}

TEST(Import, SplitIsSlices) {
  Model m;
  m.opset = 18;
  m.Input("x", {2, 7})
      .Node("Split", {"x"}, {"a", "b", "c"}, {Int("axis", 1), Int("num_outputs", 3)});
  m.Output("a").Output("b").Output("c");
  EXPECT_EQ(Body(m),
            "f32[2, 3] slice(%0) {starts: [0, 0], sizes: [2, 3], steps: [1, 1]}\n"
            "f32[2, 3] slice(%0) {starts: [0, 3], sizes: [2, 3], steps: [1, 1]}\n"
            "f32[2, 1] slice(%0) {starts: [0, 6], sizes: [2, 1], steps: [1, 1]}\n");
}

TEST(Import, LayerNormalizationGivesItsStatisticsWhereAsked) {
  Model m;
  m.Input("x", {2, 8})
      .Input("s", {8})
      .Node("LayerNormalization", {"x", "s"}, {"y", "mean"})
      .Output("y")
      .Output("mean");
  const std::string body = Body(m);
  EXPECT_NE(body.find("layer_norm(%0, %1) {axis: 1"), std::string::npos) << body;
  EXPECT_NE(body.find("f32[2, 1] reduce(%0) {kind: \"mean\", axes: [1], keepdims: true}"),
            std::string::npos)
      << body;
}

TEST(Import, NodesMayComeInAnyOrder) {
  Model m;
  m.Input("x", {4}).Node("Relu", {"h"}, {"y"}).Node("Exp", {"x"}, {"h"}).Output("y");
  EXPECT_EQ(Body(m), "f32[4] exp(%0)\nf32[4] relu(%1)\n");
}

TEST(Import, OutputsMayBeInputsConstantsAndOneValueTwice) {
  Model m;
  m.Input("x", {4})
      .Init64("k", {1, 2})
      .Node("Identity", {"x"}, {"y"})
      .Node("Relu", {"x"}, {"r"})
      .Node("Identity", {"r"}, {"z"});
  m.Output("y").Output("r").Output("z").Output("k", kInt64);
  Expected<graph::Graph> g = Import(m);
  ASSERT_TRUE(g) << ToString(g.errors());
  EXPECT_EQ(g->output_names, (std::vector<std::string>{"y", "r", "z", "k"}));
  EXPECT_EQ(g->outputs[0], g->inputs[0]);
  EXPECT_EQ(g->outputs[1], g->outputs[2]);
  EXPECT_TRUE(g->value(g->outputs[3]).IsConstant());
}

TEST(Import, ShapesGivenByTheUserHoldForTheModelsNames) {
  Model m;
  m.Input("x", {"batch", 4}).Input("z", {"batch", 1}).Node("Add", {"x", "z"}, {"y"}).Output("y");
  ImportOptions options;
  options.shapes["x"] = {{.value = 8}, {.value = 4}};
  EXPECT_EQ(Body(m, options), "f32[8, 4] add(%0, %1)\n");
  options.shapes["x"] = {{.symbol = "b", .min = 1, .max = 64, .step = 2}, {.value = 4}};
  Expected<graph::Graph> g = Import(m, options);
  ASSERT_TRUE(g) << ToString(g.errors());
  EXPECT_EQ(g->dims.size(), 1u);
  EXPECT_EQ(g->dims[0].max, 64);
  EXPECT_EQ(g->type(g->inputs[1]).ToString(), "f32[b, 1]");
  options.shapes["z"] = {{.value = 3}, {.value = 1}};
  EXPECT_NE(Errors(m, options).find("expected dim 0 to be b as 'batch' is elsewhere, but got 3"),
            std::string::npos)
      << Errors(m, options);
  options.shapes = {{"w", {}}};
  EXPECT_NE(Errors(m, options)
                .find("input 'w': error: a shape is given for it, but the model has no such input"),
            std::string::npos);
  options.shapes = {{"x", {{.value = 3}}}};
  EXPECT_NE(Errors(m, options).find("input 'x': error: expected a shape of 2 dims, but got 1"),
            std::string::npos);
}

TEST(Import, ANamedSizeIsSharedByInputs) {
  Model m;
  m.Input("x", {1, 4}).Input("z", {1, 4}).Node("Add", {"x", "z"}, {"y"}).Output("y");
  ImportOptions options;
  options.shapes["x"] = *ParseShape("bx4");
  options.shapes["z"] = *ParseShape("b[2..64 step 2]x4");
  Expected<graph::Graph> g = Import(m, options);
  ASSERT_TRUE(g) << ToString(g.errors());
  ASSERT_EQ(g->dims.size(), 1u);
  EXPECT_EQ(g->dims[0].min, 2);
  EXPECT_EQ(g->dims[0].max, 64);
  EXPECT_EQ(g->dims[0].step, 2);
  EXPECT_EQ(g->type(g->outputs[0]).ToString(), "f32[b, 4]");
  options.shapes["x"] = *ParseShape("b[1..8]x4");
  EXPECT_NE(
      Errors(m, options).find("expected one range for 'b', but got b[1..8] and b[2..64 step 2]"),
      std::string::npos)
      << Errors(m, options);
}

TEST(Import, ShapesAsText) {
  for (const char* text :
       {"1", "n", "n[1..16]", "n[0..]", "n[0..8 step 4]", "rows_2[32..512 step 32]"}) {
    Expected<DimSpec> size = ParseSize(text);
    ASSERT_TRUE(size) << text;
    EXPECT_EQ(SizeText(*size), text);
  }
  EXPECT_EQ(ParseShape("")->size(), 0u);
  EXPECT_EQ(ParseShape("batchx3x224")->size(), 3u);
  EXPECT_EQ(ParseShape("[]")->size(), 0u);
  for (const char* commas : {"max_len[1..4],8", "[ max_len[1..4], 8 ]"}) {
    const Expected<std::vector<DimSpec>> shape = ParseShape(commas);
    ASSERT_TRUE(shape) << commas;
    ASSERT_EQ(shape->size(), 2u);
    EXPECT_EQ((*shape)[0].symbol, "max_len");
    EXPECT_EQ((*shape)[1].value, 8);
  }
  EXPECT_EQ(ParseShape("[n]")->at(0).symbol, "n");
  auto error = [](const char* text) {
    Expected<std::vector<DimSpec>> shape = ParseShape(text);
    return shape ? std::string() : shape.errors()[0].message;
  };
  EXPECT_EQ(error("1x-3"), "'-3' is not a size");
  EXPECT_EQ(error("1xx2"), "'' is not a size");
  EXPECT_EQ(error("2n"), "'2n' is not a size");
  EXPECT_EQ(error("n["), "expected n[1..16] or n[32..512 step 32], but got 'n['");
  EXPECT_EQ(error("n[1..16 step]"),
            "expected n[1..16] or n[32..512 step 32], but got 'n[1..16 step]'");
  EXPECT_EQ(
      error("n[8..7]"),
      "expected a range within 0..140737488355327 and a step of at least 1, but got 'n[8..7]'");
}

TEST(Import, UnknownDimsGetNamesOfTheirOwn) {
  Model m;
  m.Input("p2o.x", {"?", "", -1, "a.b", "a_b"}).Node("Relu", {"p2o.x"}, {"y"}).Output("y");
  Expected<graph::Graph> g = Import(m);
  ASSERT_TRUE(g) << ToString(g.errors());
  EXPECT_EQ(g->type(g->inputs[0]).ToString(), "f32[p2o_x_d0, p2o_x_d1, p2o_x_d2, a_b, a_b_1]");
}

TEST(Import, TypedDataOfEveryForm) {
  const auto typed = [](int elem_type, uint32_t field, auto add) {
    return Message([&](pbf_writer& w) {
      w.add_int64(1, 3);
      w.add_int32(2, elem_type);
      w.add_string(8, "k");
      add(w, field);
    });
  };
  const auto ints = [&](int elem_type, uint32_t field, std::vector<int64_t> v, bool packed) {
    Model m;
    m.Input("x", {1}).Field(5, typed(elem_type, field, [&](pbf_writer& w, uint32_t f) {
                              if (packed) {
                                w.add_packed_int64(f, v.begin(), v.end());
                              } else {
                                for (int64_t i : v) w.add_int64(f, i);
                              }
                            }));
    m.Output("k", elem_type);
    Expected<graph::Graph> g = Import(m);
    EXPECT_TRUE(g) << ToString(g.errors());
    return *graph::ReadInts(g->value(g->outputs[0]));
  };
  for (bool packed : {false, true}) {
    EXPECT_EQ(ints(kInt64, 7, {-1, 0, INT64_MAX}, packed),
              (std::vector<int64_t>{-1, 0, INT64_MAX}));
    EXPECT_EQ(ints(kInt32, 5, {-1, 0, 7}, packed), (std::vector<int64_t>{-1, 0, 7}));
    EXPECT_EQ(ints(kUint8, 5, {255, 0, 7}, packed), (std::vector<int64_t>{255, 0, 7}));
    EXPECT_EQ(ints(kBool, 5, {1, 0, 1}, packed), (std::vector<int64_t>{1, 0, 1}));
  }
  const std::vector<float> values = {1.5f, -2, 3};
  Model m;
  m.Input("x", {1})
      .Field(5, typed(kFloat, 4,
                      [&](pbf_writer& w, uint32_t f) {
                        w.add_packed_float(f, values.begin(), values.end());
                      }))
      .Output("k");
  Expected<graph::Graph> g = Import(m);
  ASSERT_TRUE(g) << ToString(g.errors());
  EXPECT_EQ(*graph::ReadFloats(g->value(g->outputs[0])), (std::vector<double>{1.5, -2, 3}));
  EXPECT_NE(g->value(g->outputs[0]).payload.file(), nullptr);
}

// scaled(x; k) = relu(x) * Constant(k); twice(x; k) = scaled(scaled(x; k); 3)
Model WithFunctions(bool recursive) {
  const auto attr_ref = [](const std::string& name, const std::string& to) {
    return Message(
        [&](pbf_writer& w) { w.add_string(1, name), w.add_string(21, to), w.add_int32(20, 1); });
  };
  const auto node = [](const std::string& op, const std::vector<std::string>& in,
                       const std::string& out, const std::string& attr, bool local) {
    return Message([&](pbf_writer& w) {
      for (const std::string& i : in) w.add_string(1, i);
      w.add_string(2, out);
      w.add_string(4, op);
      if (!attr.empty()) w.add_message(5, attr);
      if (local) w.add_string(7, "my");
    });
  };
  const auto function = [](const std::string& name, const std::vector<std::string>& nodes) {
    return Message([&](pbf_writer& w) {
      w.add_string(1, name);
      w.add_string(4, "x");
      w.add_string(5, "y");
      w.add_string(6, "k");
      for (const std::string& n : nodes) w.add_message(7, n);
      w.add_message(9, Message([](pbf_writer& o) { o.add_string(1, ""), o.add_int64(2, 17); }));
      w.add_string(10, "my");
    });
  };
  Model m;
  m.Input("x", {4}).Node("twice", {"x"}, {"y"}, {Float("k", 2)}, "my").Output("y");
  m.ModelField(25,
               function("scaled", {node("Relu", {"x"}, "r", "", false),
                                   node("Constant", {}, "c", attr_ref("value_float", "k"), false),
                                   node("Mul", {"r", "c"}, "y", "", false)}));
  m.ModelField(
      25,
      function("twice", {node("scaled", {"x"}, "t", attr_ref("k", "k"), true),
                         node(recursive ? "twice" : "scaled", {"t"}, "y", Float("k", 3), true)}));
  return m;
}

TEST(Import, LocalFunctionsAreInlined) {
  EXPECT_EQ(Body(WithFunctions(false)),
            "f32[4] relu(%0)\nf32[4] mul(%3, %1)\nf32[4] relu(%4)\nf32[4] mul(%5, %2)\n");
  EXPECT_NE(Errors(WithFunctions(true)).find("the local function calls itself"), std::string::npos)
      << Errors(WithFunctions(true));
}

TEST(Import, KeepsMetadata) {
  Model m = Unary("Relu", {4});
  m.ModelField(
      14, Message([](pbf_writer& w) { w.add_string(1, "character"), w.add_string(2, "'\n疗\n"); }));
  Expected<graph::Graph> g = Import(m);
  ASSERT_TRUE(g);
  EXPECT_EQ(g->metadata.at("character"), "'\n疗\n");
}

// ---- graphs in attributes ----

// y = If(c) of these branches.
Model Branching(const Model& yes, const Model& no) {
  Model m;
  m.Input("x", {2, 3}).Input("c", {}, kBool);
  m.Node("If", {"c"}, {"y"}, {GraphAttr("then_branch", yes), GraphAttr("else_branch", no)});
  m.Output("y");
  return m;
}

TEST(Regions, BranchesThatDoNotFitAreNamed) {
  Model yes, no, two;
  yes.Node("Relu", {"x"}, {"a"}).Output("a");
  no.Node("Transpose", {"x"}, {"b"}).Output("b");
  two.Node("Neg", {"x"}, {"b"}).Output("b").Output("b2").Node("Neg", {"b"}, {"b2"});
  EXPECT_EQ(Errors(Branching(yes, yes)), "");
  EXPECT_NE(Errors(Branching(yes, no))
                .find("node 'n0' (If): error: expected both branches to give one type for output "
                      "0, but got f32[2, 3] and f32[3, 2]"),
            std::string::npos)
      << Errors(Branching(yes, no));
  EXPECT_NE(Errors(Branching(yes, two)).find("expected branches with 1 outputs, but got 2"),
            std::string::npos);
  Model m;
  m.Input("x", {2}).Input("c", {2}, kBool);
  m.Node("If", {"c"}, {"y"}, {GraphAttr("then_branch", yes)}).Output("y");
  EXPECT_NE(Errors(m).find("expected a graph in attribute else_branch, but there is none"),
            std::string::npos);
}

TEST(Regions, ErrorsInsideNameTheirNodes) {
  Model yes, no, unknown;
  yes.Node("Relu", {"x"}, {"a"}).Output("a");
  no.Init("w", kFloat, {4, 5}, std::string(80, '\0'));
  no.Node("MatMul", {"x", "w"}, {"b"}).Output("b");
  const std::string errors = Errors(Branching(yes, no));
  EXPECT_NE(errors.find("node 'n0' (MatMul): error: expected equal inner dims, but got 3 and 4"),
            std::string::npos)
      << errors;
  unknown.Node("Frobnicate", {"x"}, {"b"}).Output("b");
  EXPECT_NE(Errors(Branching(yes, unknown)).find("operator 'Frobnicate' of opset 17"),
            std::string::npos);
  Model lost;
  lost.Node("Relu", {"nowhere"}, {"b"}).Output("b");
  EXPECT_NE(Errors(Branching(yes, lost)).find("'nowhere' is defined by no node"),
            std::string::npos);
  Model circle;
  circle.Node("Relu", {"y"}, {"b"}).Output("b");
  EXPECT_NE(Errors(Branching(yes, circle)).find("expected an acyclic graph"), std::string::npos);
}

TEST(Regions, LoopsThatDoNotFitAreNamed) {
  auto looping = [](const char* op, bool collects) {
    Model body, m;
    body.Input("i", {}, kInt64).Input("c", {}, kBool).Input("h", {2, 3});
    body.Node(op, {"h"}, {"h2"}).Node("ReduceMax", {"h"}, {"t"}, {Int("keepdims", 0)});
    body.Node("Less", {"t", "most"}, {"go"}).Output("go", kBool).Output("h2").Output("t");
    m.Input("x", {2, 3}).Input("trips", {}, kInt64).Init("most", kFloat, {}, Raw<float>({9}));
    std::vector<std::string> outputs = {"y"};
    if (collects) outputs.push_back("all");
    m.Node("Loop", {"trips", "", "x"}, outputs, {GraphAttr("body", body)}).Output("y");
    if (collects) m.Output("all");
    return Errors(m);
  };
  EXPECT_EQ(looping("Relu", false), "");
  EXPECT_NE(looping("Transpose", false)
                .find("expected carried value 0 to keep its type, but it begins as f32[2, 3] and "
                      "the body gives f32[3, 2]"),
            std::string::npos);
  EXPECT_NE(looping("Relu", true).find("output 1 ('all') collects what each iteration gives"),
            std::string::npos);
}

TEST(Regions, WhatACapturedShapeSaysIsKnownInside) {
  Model yes, no, m;
  yes.Node("Reshape", {"x", "shape"}, {"a"}).Output("a");
  no.Node("ConstantOfShape", {"shape"}, {"b"}).Output("b");
  m.Input("x", {"n", 6}).Input("c", {}, kBool).Node("Shape", {"x"}, {"shape"});
  m.Node("If", {"c"}, {"y"}, {GraphAttr("then_branch", yes), GraphAttr("else_branch", no)});
  m.Output("y");
  Expected<graph::Graph> g = Import(m);
  ASSERT_TRUE(g) << ToString(g.errors());
  EXPECT_EQ(g->type(g->outputs[0]).ToString(), "f32[n, 6]");
}

}  // namespace
}  // namespace tenon::onnx::test
