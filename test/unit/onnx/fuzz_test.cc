// 10,000 broken models through reader, importer, inference and verifier in one process: none may
// crash or hang.
#include <gtest/gtest.h>

#include "fuzz/mutate.h"
#include "graph/text.h"
#include "model_builder.h"

namespace tenon::onnx::test {
namespace {

std::vector<std::string> Samples() {
  std::vector<std::string> samples;
  {
    Model m;
    m.Input("x", {"n", 3, 8, 8})
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
    m.Input("x", {"n", "s", 16})
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
  return samples;
}

TEST(Fuzz, MutatedModelsEndInAGraphOrDiagnostics) {
  const uint64_t seed = fuzz::Seed();
  printf("TENON_FUZZ_SEED=%llu\n", static_cast<unsigned long long>(seed));
  for (const std::string& sample : Samples()) {
    Expected<graph::Graph> g = ImportOnnx(InMemory(sample), {});
    ASSERT_TRUE(g) << ToString(g.errors());
  }
  fuzz::Mutator mutator(seed, Samples());
  int imported = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::string bytes = mutator.Next();
    // A heap block of exactly this size, so that the address sanitizer sees a read beyond its end.
    const std::vector<char> block(bytes.begin(), bytes.end());
    Expected<ModelProto> proto = ReadModel({block.data(), block.size()}, "m");
    if (!proto) {
      EXPECT_FALSE(proto.errors().empty());
      continue;
    }
    Expected<graph::Graph> g = ImportOnnx(InMemory(bytes), {});
    if (!g) {
      EXPECT_FALSE(g.errors().empty());
      continue;
    }
    ++imported;
    if (imported % 10 != 0) continue;
    const auto file = InMemory(bytes);
    const std::string text = graph::Print(*g);
    Expected<graph::Graph> again =
        graph::Parse(text, "t", [&](const std::string&) { return Expected(file); });
    ASSERT_TRUE(again) << ToString(again.errors()) << text;
    std::string where;
    EXPECT_TRUE(graph::StructuralEqual(*g, *again, &where)) << where << "\n" << text;
  }
  printf("%d of 10000 imported\n", imported);
  EXPECT_GT(imported, 100);
}

}  // namespace
}  // namespace tenon::onnx::test
