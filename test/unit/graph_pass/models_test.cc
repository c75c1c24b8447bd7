// What raising finds in whole networks: no layer is missed. Their weights are files with a hole.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "frontend/onnx/import.h"
#include "graph/pass/pass.h"
#include "graph/verify.h"

namespace tenon::graph {
namespace {

namespace fs = std::filesystem;

struct Network {
  const char* name;
  int layers;
  int norms;  // beside two per layer
};
void PrintTo(const Network& n, std::ostream* out) { *out << n.name; }

Expected<Graph> Import(const std::string& name) {
  const fs::path folder = fs::path(::testing::TempDir()) / ("tenon_raise_" + name);
  fs::create_directories(folder);
  const fs::path models = TENON_MODELS, graph = folder / (name + ".onnx");
  fs::copy_file(models / (name + ".onnx"), graph, fs::copy_options::overwrite_existing);
  const nlohmann::json weights =
      nlohmann::json::parse(std::ifstream(models / (name + ".weights.json")));
  const fs::path file = folder / weights.at("file").get<std::string>();
  std::ofstream(file).close();
  fs::resize_file(file, weights.at("bytes").get<uint64_t>());
  Expected<Graph> g = onnx::ImportOnnx(graph.string());
  fs::remove_all(folder);  // what is mapped stays
  return g;
}

class RaisedNetwork : public ::testing::TestWithParam<Network> {};

TEST_P(RaisedNetwork, EveryLayerIsFound) {
  Expected<Graph> g = Import(GetParam().name);
  ASSERT_TRUE(g) << ToString(g.errors());
  const Machine machine = Machine::Of(Target::Parse("llvm -mcpu=core-avx2").value());
  for (const char* pass : {"common_subexpressions", "simplify_views", "raise_gelu", "raise_softmax",
                           "raise_layer_norm", "raise_attention", "simplify_views"}) {
    *g = FindGraphPass(pass)->run(*g, {&machine});
    Status ok = Verify(*g);
    ASSERT_TRUE(ok) << pass << ": " << ToString(ok.errors());
  }
  std::map<OpKind, int> count;
  for (const Node& n : g->nodes) ++count[n.op];
  EXPECT_EQ(count[OpKind::kAttention], GetParam().layers);
  EXPECT_EQ(count[OpKind::kSoftmax], 0);
  EXPECT_EQ(count[OpKind::kIsNan], 0);
  EXPECT_EQ(count[OpKind::kGelu], GetParam().layers);
  EXPECT_EQ(count[OpKind::kLayerNorm], 2 * GetParam().layers + GetParam().norms);
}

INSTANTIATE_TEST_SUITE_P(Networks, RaisedNetwork,
                         ::testing::Values(Network{"bert-tiny", 2, 1}, Network{"bert-base", 12, 1},
                                           Network{"bert-large", 24, 1},
                                           Network{"vit_b_16", 12, 1}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tenon::graph
