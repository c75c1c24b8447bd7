// Every text case of graph passes keeps its graph's meaning: the graph computes the same before and
// after.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "graph/edit.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "plan/passes.h"
#include "support/graph_eval.h"
#include "support/text_cases.h"

namespace tenon::graph {
namespace {

using tenon::testing::PassCase;

// Symbolic dims become small numbers, all different.
Graph Fixed(const Graph& g) {
  std::map<std::string, Expr> sizes;
  for (const Dim& d : g.dims)
    sizes[d.var->name] = IndexConst(static_cast<int64_t>(sizes.size()) + 2);
  return SubstituteDims(g, sizes);
}

void ExpectSame(const std::vector<Array>& a, const std::vector<Array>& b, const Graph& g) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(a[k].dims, b[k].dims) << g.output_names[k];
    for (size_t i = 0; i < a[k].data.size(); ++i) {
      const double x = a[k].data[i], y = b[k].data[i];
      // Constants are rounded to floats before they are combined.
      const bool same =
          x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= 1e-6 * (1 + std::abs(x));
      ASSERT_TRUE(same) << g.output_names[k] << "[" << i << "]: " << x << " became " << y;
    }
  }
}

std::vector<PassCase> Cases() {
  std::vector<PassCase> cases = testing::ReadPassCases(TENON_GRAPH_PASS_CASES);
  for (PassCase& c : testing::ReadPassCases(TENON_PLAN_CASES)) cases.push_back(std::move(c));
  return cases;
}

// What functions of loop IR compute is none of the evaluator's.
bool Calls(const Graph& g) {
  return std::any_of(g.nodes.begin(), g.nodes.end(),
                     [](const Node& n) { return n.op == OpKind::kCall; });
}

class GraphPassMeaning : public ::testing::TestWithParam<PassCase> {};

TEST_P(GraphPassMeaning, Stays) {
  Expected<Graph> parsed = Parse(GetParam().text, GetParam().name);
  ASSERT_TRUE(parsed) << ToString(parsed.errors());
  const Machine machine = Machine::Of(Target::Parse("llvm -mcpu=core-avx2").value());
  const GraphPassContext context{&machine};
  for (const Graph& start : {*parsed, Fixed(*parsed)}) {
    Graph after = start;
    for (const std::string& name : GetParam().passes) {
      const GraphPassInfo* pass = FindAnyGraphPass(name);
      ASSERT_TRUE(pass) << name;
      after = pass->run(after, context);
      Status ok = Verify(after);
      ASSERT_TRUE(ok) << name << ": " << ToString(ok.errors()) << Print(after);
      EXPECT_TRUE(StructuralEqual(pass->run(after, context), after))
          << name << " finds more the second time";
    }
    const Graph before = Fixed(start), result = Fixed(after);
    if (Calls(before)) continue;
    for (uint32_t seed = 0; seed < 4; ++seed) {
      const std::vector<Array> inputs = RandomInputs(before, seed);
      ExpectSame(GraphEvaluator(before).Run(inputs), GraphEvaluator(result).Run(inputs), before);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GraphPassMeaning, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

TEST(GraphPasses, EachHasATextCase) {
  std::set<std::string> seen;
  for (const PassCase& c : Cases()) seen.insert(c.passes.begin(), c.passes.end());
  for (const auto* passes : {&GraphPasses(), &PlanPasses()}) {
    for (const GraphPassInfo& pass : *passes) EXPECT_TRUE(seen.count(pass.name)) << pass.name;
  }
}

}  // namespace
}  // namespace tenon::graph
