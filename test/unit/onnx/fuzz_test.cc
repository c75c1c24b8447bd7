// 10,000 broken models through reader, importer, inference and verifier in one process: none may
// crash or hang.
#include <gtest/gtest.h>

#include "fuzz/mutate.h"
#include "graph/text.h"
#include "model_builder.h"
#include "small_models.h"

namespace tenon::onnx::test {
namespace {

// The small models that all dims are known of, and the ones with names for some.
std::vector<std::string> Samples() {
  std::vector<std::string> samples = SmallModels("n", "s");
  for (const std::string& model : SmallModels(2, 3)) samples.push_back(model);
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
