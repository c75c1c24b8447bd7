// Small models that between them use most of what a file can say: what mutations start from.
#pragma once

#include <string>
#include <vector>

#include "model_builder.h"

namespace tenon::onnx::test {

/// Those with control flow.
inline std::vector<std::string> LoopingModels(const DimText& n) {
  std::vector<std::string> samples;
  {
    // A loop with a branch in it; all of them read values of the graph around them.
    Model yes, no, body, m;
    yes.Node("Mul", {"h", "scale"}, {"a"}).Output("a");
    no.Init("bias", kFloat, {4}, Raw<float>({1, 2, 3, 4}));
    no.Node("Add", {"h", "bias"}, {"s"}).Node("Tanh", {"s"}, {"b"}).Output("b");
    body.Input("i", {}, kInt64).Input("go", {}, kBool).Input("h", {n, 4});
    body.Node("Equal", {"i", "three"}, {"is"})
        .Node("If", {"is"}, {"h2"}, {GraphAttr("then_branch", yes), GraphAttr("else_branch", no)})
        .Node("ReduceMax", {"h2"}, {"top"}, {Int("keepdims", 0)})
        .Node("Less", {"top", "most"}, {"on"})
        .Output("on", kBool)
        .Output("h2");
    m.Input("x", {n, 4}).Input("trips", {}, kInt64);
    m.Init("three", kInt64, {}, Raw<int64_t>({3})).Init("most", kFloat, {}, Raw<float>({9}));
    m.Node("Exp", {"x"}, {"scale"})
        .Node("Loop", {"trips", "", "x"}, {"y"}, {GraphAttr("body", body)});
    m.Init64("k", {2}).Node("TopK", {"y", "k"}, {"best", "where"}, {Int("axis", 1)});
    m.Output("y").Output("best").Output("where", kInt64);
    samples.push_back(m.Bytes());
  }
  {
    // A loop that is counted and collects.
    Model body, m;
    body.Input("i", {}, kInt64).Input("go", {}, kBool).Input("h", {3});
    body.Node("Identity", {"go"}, {"on"}).Node("Add", {"h", "x"}, {"h2"});
    body.Node("Cast", {"i"}, {"f"}, {Int("to", 1)}).Node("Add", {"f", "h"}, {"c"});
    body.Output("on", kBool).Output("h2").Output("c");
    m.Input("x", {3}).Init("four", kInt64, {}, Raw<int64_t>({4}));
    m.Node("Loop", {"four", "", "x"}, {"y", "all"}, {GraphAttr("body", body)});
    m.Output("y").Output("all");
    samples.push_back(m.Bytes());
  }
  return samples;
}

/// `n` and `s` are the dims that a model leaves open: names or sizes.
inline std::vector<std::string> SmallModels(const DimText& n, const DimText& s) {
  std::vector<std::string> samples;
  {
    Model m;
    m.Input("x", {n, 3, 8, 8})
        .Init("w", kFloat, {4, 3, 3, 3}, std::string(432, '\x3f'))
        .Init("b", kFloat, {4}, std::string(16, '\0'));
    m.Node("Conv", {"x", "w", "b"}, {"c"},
           {Ints("pads", {1, 1, 1, 1}), Ints("strides", {2, 2}), Int("group", 1)});
    m.Node("MaxPool", {"c"}, {"p"}, {Ints("kernel_shape", {2, 2}), Int("ceil_mode", 1)});
    m.Node("GlobalAveragePool", {"p"}, {"g"}).Node("Flatten", {"g"}, {"f"}, {Int("axis", 1)});
    m.Node("Softmax", {"f"}, {"y"}, {Int("axis", -1)}).Output("y");
    samples.push_back(m.Bytes());
  }
  {
    Model m;
    m.Input("x", {n, s, 16})
        .Node("Shape", {"x"}, {"shape"})
        .Init64("i", {0, 1})
        .Node("Gather", {"shape", "i"}, {"ns"}, {Int("axis", 0)});
    m.Init64("tail", {4, -1})
        .Node("Concat", {"ns", "tail"}, {"to"}, {Int("axis", 0)})
        .Node("Reshape", {"x", "to"}, {"r"});
    m.Node("Transpose", {"r"}, {"t"}, {Ints("perm", {0, 2, 1, 3})})
        .Init64("st", {0})
        .Init64("en", {INT64_MAX})
        .Init64("ax", {1});
    m.Node("Slice", {"t", "st", "en", "ax"}, {"sl"})
        .Node("ReduceMean", {"sl"}, {"m"}, {Ints("axes", {-1}), Int("keepdims", 1)});
    m.Node("Sub", {"sl", "m"}, {"d"})
        .Init64("k", {2})
        .Node("Div", {"ns", "k"}, {"half"})
        .Node("Cast", {"half"}, {"hf"}, {Int("to", 6)});
    m.Node("ConstantOfShape", {"half"}, {"zeros"}).Output("d").Output("hf", kInt32).Output("zeros");
    samples.push_back(m.Bytes());
  }
  {
    Model m;
    m.Input("x", {1, 1, 4, 4}).Init("s", kFloat, {4}, Raw<float>({1, 1, 2, 1.5f}));
    m.Node("Resize", {"x", "", "s"}, {"r"},
           {Str("mode", "linear"), Str("coordinate_transformation_mode", "asymmetric")});
    m.Node("Constant", {}, {"c"},
           {TensorAttr("value", Tensor("", kInt64, {2}, Raw<int64_t>({2, 24})))});
    m.Node("Reshape", {"r", "c"}, {"q"})
        .Init64("split", {10, 14})
        .Node("Split", {"q", "split"}, {"a", "b"}, {Int("axis", 1)});
    m.Init64("pads", {0, 1, 0, 1})
        .Node("Pad", {"a", "pads"}, {"p"}, {Str("mode", "constant")})
        .Init64("rep", {2, 2});
    m.Node("Tile", {"p", "rep"}, {"y"}).Output("y").Output("b");
    m.ModelField(14,
                 Message([](pbf_writer& w) { w.add_string(1, "key"), w.add_string(2, "value"); }));
    samples.push_back(m.Bytes());
  }
  {
    Model m;
    m.Input("x", {n, 8})
        .Init("w", kFloat, {8, 16}, std::string(512, '\x3e'))
        .Init("v", kFloat, {1, 16}, Raw<float>(std::vector<float>(16, 0.5f)))
        .Node("Add", {"w", "v"}, {"wv"});
    m.Node("MatMul", {"x", "wv"}, {"h"}).Node("Relu", {"h"}, {"r"});
    m.Init("g", kFloat, {5, 16}, std::string(320, '\x3d'))
        .Init("c", kFloat, {5}, Raw<float>({1, 2, 3, 4, 5}))
        .Node("Gemm", {"r", "g", "c"}, {"o"}, {Int("transB", 1), Float("alpha", 0.5f)});
    m.Node("ArgMax", {"o"}, {"best"}, {Int("axis", 1), Int("keepdims", 0)})
        .Init("table", kFloat, {5, 4}, Raw<float>(std::vector<float>(20, 2.0f)))
        .Node("Gather", {"table", "best"}, {"picked"}, {Int("axis", 0)});
    m.Node("LogSoftmax", {"picked"}, {"y"}, {Int("axis", 1)}).Output("y").Output("best", kInt64);
    samples.push_back(m.Bytes());
  }
  for (std::string& model : LoopingModels(n)) samples.push_back(std::move(model));
  return samples;
}

}  // namespace tenon::onnx::test
