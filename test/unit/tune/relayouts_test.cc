// Relayouts between kernels are kernels with records, too: plans weigh layouts by what is measured
// of both, and by corrected predictions of those that are not.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/text.h"
#include "ops/conv_geometry.h"
#include "plan/plan_groups.h"
#include "plan/relayout.h"
#include "records.h"
#include "tune/history.h"

namespace tenon::tune {
namespace {

const Machine& TheMachine() {
  static const Machine kMachine =
      Machine::Of(Target::Parse("llvm -mcpu=x86-64-v3 -num-cores=1").value());
  return kMachine;
}

graph::TensorType Map(int64_t channels, int64_t size) {
  graph::TensorType type;
  type.dtype = DType::Float(32);
  for (const int64_t d : {int64_t{1}, channels, size, size}) type.dims.push_back(IndexConst(d));
  return type;
}
Layout Blocks(const graph::TensorType& type) {
  const int64_t lanes = TheMachine().Lanes(DType::Float(32));
  return graph::MakeLayout(ops::FeatureOrder(TheMachine(), 4, lanes), type.dims);
}

Record RecordOf(const Relayout& relayout, double seconds) {
  Record r;
  r.kernel = relayout.kernel;
  r.target = "llvm";
  r.algorithm = Relayout::Algorithm().name;
  r.epoch = Relayout::Algorithm().epoch;
  r.point = "{}";
  r.cache = "warm";
  r.outcome = kOk;
  r.leader = true;
  r.seconds = seconds;
  return r;
}

TEST(Relayouts, AreKernelsWithATextOfTheirOwn) {
  const graph::TensorType type = Map(64, 28);
  const Relayout there(type, Blocks(type)), same(type, Blocks(type)), other(Map(32, 28), nullptr);
  EXPECT_EQ(there.kernel, same.kernel);
  EXPECT_NE(there.kernel, other.kernel);
  graph::TensorType blocked = type;
  blocked.layout = Blocks(type);
  const Relayout back(blocked, nullptr);
  EXPECT_NE(there.kernel, back.kernel);
  const auto read = KernelText::Read(there.Text());
  ASSERT_TRUE(read) << ToString(read.errors());
  EXPECT_EQ(Relayout(read->graph).kernel, there.kernel);
  for (const Relayout* r : {&there, &back}) {
    const auto lowered = LowerRelayout(*r, TheMachine());
    ASSERT_TRUE(lowered) << ToString(lowered.errors());
    ASSERT_EQ(lowered->parameters.size(), 2U);
    EXPECT_NE(lowered->parameters[0].shape, lowered->parameters[1].shape);
    EXPECT_TRUE(LowerCopy(*r, TheMachine()));
    EXPECT_GT(r->Predicted(TheMachine()), 0);
  }
}

TEST(Relayouts, HaveMeasuredAndCorrectedPrices) {
  const graph::TensorType known = Map(64, 28), unknown = Map(96, 56);
  const Relayout relayout(known, Blocks(known));
  LogContents contents;
  contents.kernels[relayout.kernel] = relayout.Text();
  const double predicted = relayout.Predicted(TheMachine());
  contents.records.push_back(RecordOf(relayout, 3 * predicted));
  const LogPrices prices(contents, {"", "llvm", 1, "warm"}, TheMachine());
  EXPECT_DOUBLE_EQ(prices.Relayout(known, Blocks(known), predicted), 3 * predicted);
  const double corrected = prices.Relayout(unknown, Blocks(unknown), 1e-5);
  EXPECT_GT(corrected, 1.1e-5);
  EXPECT_LT(corrected, 3e-5) << "one measurement is not all there is to know";
  const LogPrices none(LogContents(), {"", "llvm", 1, "warm"}, TheMachine());
  EXPECT_EQ(none.Relayout(known, Blocks(known), predicted), predicted);
}

// All relayouts cost a second: a plan that had some has none, if layouts let it.
TEST(Relayouts, DecideAboutLayouts) {
  class Dear : public plan::Prices {
   public:
    std::optional<double> Find(const ops::Algorithm&, const ops::Site&,
                               const ops::Point&) const override {
      return std::nullopt;
    }
    double Relayout(const graph::TensorType&, const Layout&, double) const override { return 1; }
  };
  const graph::Graph g =
      graph::Parse(
          "graph @g(%0 \"x\": f32[1, 64, 28, 28], %1 \"w1\": f32[64, 64, 3, 3], %2 \"w2\": "
          "f32[64, 64, 3, 3]) {\n  %3: f32[1, 64, 28, 28] = conv(%0, %1) {pads: [1, 1, 1, 1]} "
          "\"first\"\n  %4: f32[1, 64, 28, 28] = conv(%3, %2) {pads: [1, 1, 1, 1]} \"second\"\n"
          "  return %4 \"y\"\n}\n")
          .value();
  const auto relayouts = [](const graph::Graph& planned) {
    int count = 0;
    for (const graph::Node& n : planned.nodes) count += graph::IsRelayout(planned, n) && n.plan;
    return count;
  };
  const Dear dear;
  EXPECT_GT(relayouts(graph::PlanGroups(g, {&TheMachine()})), 0);
  EXPECT_EQ(relayouts(graph::PlanGroups(g, {&TheMachine(), &dear})), 0);
}

}  // namespace
}  // namespace tenon::tune
