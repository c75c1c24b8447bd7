// Broken and hostile models: each ends in a diagnostic that names the node and the tensor.
#include "hostile.h"

namespace tenon::onnx::test {
namespace {

std::string ErrorsOf(std::string_view bytes) {
  Expected<graph::Graph> g = ImportOnnx(InMemory(bytes), {});
  return g ? "" : ToString(g.errors());
}

Model Good() {
  Model m;
  m.Input("x", {1, 4})
      .Init("w", kFloat, {4, 2}, std::string(32, '\0'))
      .Node("MatMul", {"x", "w"}, {"h"});
  m.Node("Relu", {"h"}, {"y"}).Output("y");
  return m;
}

// ---- files and wire format ----

TEST(Hostile, EmptyTruncatedAndGarbageFiles) {
  EXPECT_NE(ErrorsOf("").find("expected an ONNX model, but the file is empty"), std::string::npos);
  EXPECT_NE(ErrorsOf("\x08").find("not an ONNX model, or a damaged one"), std::string::npos);
  EXPECT_NE(ErrorsOf("PK\x03\x04 this is a zip").find("not an ONNX model but an archive"),
            std::string::npos);
  EXPECT_NE(ErrorsOf("<html>").find("a page or XML"), std::string::npos);
  EXPECT_NE(ErrorsOf("int main() {}\n").find("not an ONNX model but text"), std::string::npos);
  const std::string good = Good().Bytes();
  EXPECT_EQ(ErrorsOf(good), "");
  for (size_t n = 0; n < good.size(); ++n) EXPECT_NE(ErrorsOf(good.substr(0, n)), "") << n;
}

TEST(Hostile, LengthsBeyondTheEndAreLocated) {
  Model m;
  m.Field(1,
          "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
          "abc");
  EXPECT_SAYS(m,
              "graph.node[0].input[0]: error: not a readable ONNX model: field 1 claims "
              "9223372036854775807 bytes where 3 are left");
}

TEST(Hostile, WrongWireTypesAreUnknownFields) {
  Model m = Good();
  m.Field(1, Message([](pbf_writer& w) {
            w.add_int64(4, 7);
          }));  // op_type as a number: no operator at all
  EXPECT_SAYS(m, "operator '' of opset 17 is not supported (1 node)");
}

TEST(Hostile, NamesMustBeText) {
  EXPECT_SAYS(One("Relu\xff", {{1}}),
              "graph.node[0].op_type: error: not a readable ONNX model: a string that is not valid "
              "UTF-8 without NUL");
  EXPECT_SAYS(One(std::string("Re\0lu", 5), {{1}}), "not valid UTF-8 without NUL");
  EXPECT_SAYS(One(std::string(1 << 20, 'a'), {{1}}),
              "a name of 1048576 bytes; at most 65536 are accepted");
  Model m;
  m.Input("x\n\"../'", {4}).Node("Softmax", {"x\n\"../'"}, {"y"}, {Int("axis", 5)}).Output("y");
  EXPECT_SAYS(m, "input 0: 'x\\x0a\"../'' is f32[4]");
}

TEST(Hostile, DeepSubgraphsAreRefused) {
  std::string graph;
  for (int i = 0; i < 2000; ++i) {
    const std::string attr = Message([&](pbf_writer& w) {
      w.add_string(1, "body"), w.add_message(6, graph), w.add_int32(20, 5);
    });
    const std::string node =
        Message([&](pbf_writer& w) { w.add_string(4, "Loop"), w.add_message(5, attr); });
    graph = Message([&](pbf_writer& w) { w.add_message(1, node); });
  }
  Model m;
  m.Field(1, Message([&](pbf_writer& w) {
            w.add_string(4, "Loop");
            w.add_message(5, Message([&](pbf_writer& a) {
                            a.add_string(1, "body"), a.add_message(6, graph), a.add_int32(20, 5);
                          }));
          }));
  EXPECT_SAYS(m, "graphs nested deeper than 15");
}

// ---- header ----

TEST(Hostile, Versions) {
  Model m = Good();
  m.opset = 0;
  const Expected<graph::Graph> newest = Import(m);
  ASSERT_TRUE(newest) << ToString(newest.errors());
  EXPECT_EQ(
      newest->metadata.at("notes"),
      "the model imports no version of the default domain: its operators are those of opset 28");
  Model of_others;
  of_others.Input("x", {4}).Node("Gelu", {"x"}, {"y"}, {}, "com.microsoft").Output("y");
  const Expected<graph::Graph> others = Import(of_others);
  ASSERT_TRUE(others) << ToString(others.errors());
  EXPECT_EQ(others->metadata.at("notes"),
            "the model imports no version of the domain 'com.microsoft': its operators are the "
            "newest");
  m.opset = 9999;
  EXPECT_SAYS(m, "expected operator set 1 to 28, but got 9999");
  m.opset = 29;
  EXPECT_SAYS(m, "expected operator set 1 to 28, but got 29");
  m.opset = 17;
  m.ir_version = 1 << 20;
  EXPECT_SAYS(m, "expected an IR version of 1 to 14, but got 1048576");
  m.ir_version = 0;
  EXPECT_SAYS(m, "expected an IR version of 1 to 14, but got 0");
}

TEST(Hostile, UnknownOperatorsAreReportedTogether) {
  Model m;
  m.Input("x", {4})
      .Node("NoSuch", {"x"}, {"a"})
      .Node("Attention", {"x"}, {"b"}, {}, "com.example")
      .Node("NoSuch", {"a"}, {"c"})
      .Output("c");
  const std::string errors = Errors(m);
  EXPECT_NE(errors.find("node 'n0' (NoSuch): error: operator 'NoSuch' of opset 17 is not supported "
                        "(2 nodes)\n  note: node 'n0' (NoSuch)\n  note: node 'n2' (NoSuch)"),
            std::string::npos)
      << errors;
  EXPECT_NE(errors.find("operator 'Attention' of domain 'com.example' is not supported (1 node)"),
            std::string::npos)
      << errors;
}

// ---- graph structure ----

TEST(Hostile, GraphStructure) {
  Model cycle;
  cycle.Input("x", {4}).Node("Add", {"x", "b"}, {"a"}).Node("Relu", {"a"}, {"b"}).Output("b");
  EXPECT_SAYS(cycle,
              "graph: error: expected an acyclic graph, but these nodes depend on themselves or on "
              "such nodes\n  note: node 'n0' (Add)");
  Model undefined = Good();
  undefined.Node("Relu", {"nowhere"}, {"z"});
  EXPECT_SAYS(
      undefined,
      "node 'n2' (Relu): error: input 'nowhere' is defined by no node, initializer or graph input");
  Model twice = Good();
  twice.Node("Exp", {"x"}, {"h"});
  EXPECT_SAYS(twice, "node 'n2' (Exp): error: output 'h' is defined twice");
  Model missing = Good();
  missing.Output("z");
  EXPECT_SAYS(missing, "output 'z': error: no node produces it");
  Model none;
  none.Input("x", {4}).Node("Relu", {"x"}, {"y"});
  EXPECT_SAYS(none, "graph: error: expected outputs, but there are none");
  Model inputs = Good();
  inputs.Input("x", {4});
  EXPECT_SAYS(inputs, "input 'x': error: the input is declared twice");
  Model init = Good();
  init.Init("w", kFloat, {1}, std::string(4, 0));
  EXPECT_SAYS(init, "initializer 'w': error: the tensor is defined twice");
  Model sparse = Good();
  sparse.Field(15, "");
  EXPECT_SAYS(sparse, "initializer: error: expected a name, but it has none");
}

TEST(Hostile, ErrorsOfOneNodeDoNotSpread) {
  Model m;
  m.Input("x", {2, 3}).Input("z", {4, 5});
  m.Node("Add", {"x", "z"}, {"a"})
      .Node("Relu", {"a"}, {"b"})
      .Node("MatMul", {"x", "z"}, {"c"})
      .Output("b")
      .Output("c");
  Expected<graph::Graph> g = Import(m);
  ASSERT_FALSE(g);
  ASSERT_EQ(g.errors().size(), 2u) << ToString(g.errors());
  EXPECT_EQ(g.errors()[0].ToString(),
            "model.onnx: node 'n0' (Add): error: expected shapes that broadcast together, but got "
            "[2, 3] and [4, 5]\n"
            "  note: input 0: 'x' is f32[2, 3]\n  note: input 1: 'z' is f32[4, 5]");
}

// ---- types and tensors ----

TEST(Hostile, InputTypes) {
  EXPECT_SAYS(One("Relu", {{-2}}), "input 'x0': error: expected dims of at least 0, but got -2");
  EXPECT_SAYS(One("Relu", {{int64_t{1} << 62, int64_t{1} << 62}}),
              "input 'x0': error: expected a tensor of at most 2^40 elements");
  EXPECT_SAYS(
      One("Relu", {std::vector<DimText>(65, 1)}),
      "graph.input[0].type.tensor_type: error: not a readable ONNX model: more than 64 dimensions");
  Model m;
  m.Input("x", {4}, 99).Node("Relu", {"x"}, {"y"}).Output("y");
  EXPECT_SAYS(m, "input 'x': error: unknown data type 99");
  Model strings;
  strings.Input("x", {4}, kString).Node("Relu", {"x"}, {"y"}).Output("y");
  EXPECT_SAYS(strings, "tensors of string can be compared and moved, but not computed with");
  Model shapeless;
  shapeless.Field(11, ValueInfo("x", TensorType(kFloat, {}, false)))
      .Node("Relu", {"x"}, {"y"})
      .Output("y");
  EXPECT_SAYS(
      shapeless,
      "input 'x': error: expected a shape, but the model gives none; give one with --shape");
  Model sequence;
  sequence
      .Field(11, ValueInfo("x", Message([](pbf_writer& w) { w.add_message(4, std::string()); })))
      .Node("Relu", {"x"}, {"y"})
      .Output("y");
  EXPECT_SAYS(
      sequence,
      "input 'x': error: expected a tensor; sparse tensors and opaque values are not supported");
  Model declared = One("Relu", {{4}});
  declared.Output("x0", kInt64);
  EXPECT_SAYS(declared, "output 'x0': error: expected i64 as the model declares, but it is f32");
}

TEST(Hostile, TensorData) {
  const auto init = [](const std::string& tensor) {
    Model m;
    m.Input("x", {4}).Field(5, tensor).Node("Relu", {"x"}, {"y"}).Output("y");
    return m;
  };
  EXPECT_SAYS(init(Tensor("w", kFloat, {3}, std::string(8, '\0'))),
              "initializer 'w': error: expected 12 bytes of data for the tensor's type, but got 8");
  EXPECT_SAYS(init(Tensor("w", kFloat, {-1}, "")),
              "initializer 'w': error: expected dims of at least 0, but got f32[-1]");
  EXPECT_SAYS(init(Tensor("w", kFloat, {int64_t{1} << 33, int64_t{1} << 33}, "")),
              "initializer 'w': error: expected a tensor of at most 2^40 elements");
  EXPECT_SAYS(init(Tensor("w", 22, {3}, "\x01")),
              "initializer 'w': error: expected 2 bytes of data for the tensor's type, but got 1");
  EXPECT_SAYS(init(Tensor("w", 27, {2}, "\x01")),
              "initializer 'w': error: data type float6e2m3 is not supported");
  EXPECT_SAYS(init(Tensor("w", -7, {2}, "\x01")), "initializer 'w': error: unknown data type -7");
  EXPECT_SAYS(init(Tensor("w", kBool, {2}, "\x01\x02")),
              "initializer 'w': error: expected bools of 0 or 1, but got 2");
  std::string both = Tensor("w", kFloat, {1}, std::string(4, '\0'));
  pbf_writer(both).add_float(4, 1.0f);
  EXPECT_SAYS(init(both),
              "initializer 'w': error: expected one of raw data, typed data and external data, but "
              "got several");
  std::string few = Message([](pbf_writer& w) {
    w.add_int64(1, 1000000), w.add_int32(2, kInt64), w.add_string(8, "w"), w.add_int64(7, 1);
  });
  EXPECT_SAYS(init(few),
              "initializer 'w': error: expected 1000000 elements in the typed data of the tensor");
  std::string broken = Message([](pbf_writer& w) {
    w.add_int64(1, 1), w.add_int32(2, kInt64), w.add_string(8, "w"), w.add_bytes(7, "\xff");
  });
  EXPECT_SAYS(init(broken),
              "initializer 'w': error: expected 1 elements in the typed data of the tensor");
  EXPECT_SAYS(init(Message([](pbf_writer& w) {
                w.add_string(8, "w");
                w.add_int32(2, kFloat);
                for (int i = 0; i < 1000; ++i) w.add_int64(1, 1);
              })),
              "graph.initializer[0].dims: error: not a readable ONNX model: a broken integer list, "
              "or one of more than 64 entries");
  EXPECT_SAYS(init(External("w", {1}, {{"location", "w.bin"}})),
              "initializer 'w': error: external data in a model that was not read from a file");
}

}  // namespace
}  // namespace tenon::onnx::test
