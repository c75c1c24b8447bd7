// Which large constants become 16 bits because kernels look up their rows.
#include "plan/narrow.h"

#include "graph/text.h"
#include "graph/verify.h"
#include "plan/passes.h"
#include "run.h"

namespace tenon::plan {
namespace {

using graph::Graph;
using graph::ValueId;

const Machine& NarrowMachine() {
  static const Machine kMachine =
      Machine::Of(Target::Parse("llvm -mtriple=x86_64-linux-gnu -mcpu=core-avx2").value());
  return kMachine;
}

// The nodes of a graph of %0 "table", %1 "rows": i64[3], %2 "w": f32[512, 4] and %3 "scale",
// narrowed; the table is a constant of these elements.
Graph Narrowed(const std::string& nodes, float element = 0.5F, int64_t rows = 512) {
  const std::string text = "graph @g(%0 \"table\": f32[" + std::to_string(rows) +
                           ", 512], %1 \"rows\": i64[3], %2 \"w\": f32[512, 4], %3 \"scale\": "
                           "f32[512]) {\n" +
                           nodes + "}\n";
  Expected<Graph> parsed = graph::Parse(text, "test");
  EXPECT_TRUE(parsed) << ToString(parsed.errors());
  Graph g = *std::move(parsed);
  g.inputs.erase(g.inputs.begin());
  std::vector<double> elements(static_cast<size_t>(rows * 512), 0.25);
  elements[7] = element;
  g.value(0).payload = graph::MakePayload(DType::Float(32), elements);
  const graph::GraphPassContext context{&NarrowMachine(), nullptr};
  g = graph::FindAnyGraphPass("fuse")->run(g, context);
  g = graph::FindAnyGraphPass("narrow_f16")->run(g, context);
  const Status ok = graph::Verify(g);
  EXPECT_TRUE(ok) << ToString(ok.errors()) << graph::Print(g);
  return g;
}

// Whether something outside of kernels converts the table, and nothing reads it as it is.
bool IsConverted(const Graph& g) {
  bool converted = false, read = false;
  for (const graph::Node& n : g.nodes) {
    for (const ValueId v : n.inputs) {
      if (v == graph::kNoValue || !g.value(v).IsConstant() || g.value(v).name != "table") continue;
      (n.op == graph::OpKind::kCast ? converted : read) = true;
    }
  }
  return converted && !read;
}

constexpr char kNormed[] =
    "  %4: f32[3, 512] = gather(%0, %1) {axis: 0}\n"
    "  %5: f32[3, 512] = layer_norm(%4, %3) {axis: 1} \"norm\"\n"
    "  %6: f32[3, 4] = matmul(%5, %2) \"product\"\n"
    "  return %6 \"y\"\n";

TEST(Narrow, TablesOfRowsThatAreActivations) {
  EXPECT_TRUE(IsConverted(Narrowed(kNormed)));
  EXPECT_TRUE(
      IsConverted(Narrowed("  %4: f32[3, 512] = gather(%0, %1) {axis: 0}\n"
                           "  %5: f32[3, 512] = add(%4, %3)\n"
                           "  %6: f32[3, 4] = matmul(%5, %2) \"product\"\n"
                           "  return %6 \"y\"\n")));
}

TEST(Narrow, TablesThatAreNotWorthIt) { EXPECT_FALSE(IsConverted(Narrowed(kNormed, 0.5F, 511))); }

TEST(Narrow, TablesWithElementsThatHalvesDoNotHave) {
  EXPECT_TRUE(IsConverted(Narrowed(kNormed, -65504.F)));
  EXPECT_FALSE(IsConverted(Narrowed(kNormed, -65536.F)));
  EXPECT_FALSE(IsConverted(Narrowed(kNormed, std::numeric_limits<float>::infinity())));
  EXPECT_FALSE(IsConverted(Narrowed(kNormed, std::numeric_limits<float>::quiet_NaN())));
}

// What is handed to the caller is what the model says.
TEST(Narrow, TablesWhoseRowsStayWide) {
  EXPECT_FALSE(
      IsConverted(Narrowed("  %4: f32[3, 512] = gather(%0, %1) {axis: 0}\n"
                           "  return %4 \"y\"\n")));
  EXPECT_FALSE(
      IsConverted(Narrowed("  %4: f32[3, 512] = gather(%0, %1) {axis: 0}\n"
                           "  %5: f32[3, 512] = layer_norm(%4, %3) {axis: 1} \"norm\"\n"
                           "  %6: f32[3, 4] = matmul(%5, %2) \"product\"\n"
                           "  return %6 \"y\", %4 \"rows\"\n")));
}

// 16 bits of an angle are another one, of a number of something another thing; in the kernel that
// looks it up, and in those that read what it hands on.
TEST(Narrow, TablesOfWhatIsNoActivation) {
  for (const char* how : {"cos", "log", "exp"}) {
    const std::string op = how;
    EXPECT_FALSE(IsConverted(
        Narrowed("  %4: f32[3, 512] = gather(%0, %1) {axis: 0}\n  %5: f32[3, 512] = " + op +
                 "(%4)\n  %6: f32[3, 512] = mul(%5, %3)\n"
                 "  %7: f32[3, 4] = matmul(%6, %2) \"product\"\n"
                 "  return %7 \"y\"\n")))
        << how;
  }
  EXPECT_FALSE(
      IsConverted(Narrowed("  %4: f32[3, 512] = gather(%0, %1) {axis: 0}\n"
                           "  %5: f32[512, 3] = transpose(%4) {perm: [1, 0]}\n"
                           "  %6: i64[512, 3] = cast(%5) {to: \"i64\"}\n"
                           "  return %6 \"y\"\n")));
  EXPECT_FALSE(
      IsConverted(Narrowed("  %4: f32[3, 512] = gather(%0, %1) {axis: 0}\n"
                           "  %5: f32[3] = reduce(%4) {axes: [1], keepdims: false, kind: \"max\"}\n"
                           "  return %5 \"y\"\n")));
}

// Columns are no rows.
TEST(Narrow, TablesThatAreReadInOtherWays) {
  EXPECT_FALSE(
      IsConverted(Narrowed("  %4: f32[512, 3] = gather(%0, %1) {axis: 1}\n"
                           "  %5: f32[3, 512] = transpose(%4) {perm: [1, 0]}\n"
                           "  %6: f32[3, 512] = layer_norm(%5, %3) {axis: 1} \"norm\"\n"
                           "  %7: f32[3, 4] = matmul(%6, %2) \"product\"\n"
                           "  return %7 \"y\"\n")));
}

}  // namespace
}  // namespace tenon::plan
