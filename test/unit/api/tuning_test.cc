// Tuning by the public classes: templates, sketches, rules and policies of users; what is wrong
// with them is said where they are defined.
#include "tenon/tuning.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tenon {
namespace {

struct Product {
  te::Tensor a = te::Placeholder({16, 8}, DataType::kFloat32, "A");
  te::Tensor b = te::Placeholder({8, 24}, DataType::kFloat32, "B");
  te::IterVar k = te::ReduceAxis(0, 8, "k");
  te::Tensor c = te::Compute(
      {16, 24}, [&](te::Var i, te::Var j) { return te::Sum(a(i, k) * b(k, j), {k}); }, "C");
  IrModule Definition() const { return CreateFunc({a, b, c}); }
};

IrModule Split(const Product& p, tuning::Config& config) {
  Schedule s = CreateSchedule({p.c});
  const auto i = config.DefineSplit("i", 16, 2);
  config.DefineKnob("vectorize", {0, 1});
  s[p.c].Split(p.c.op().axis()[0], i[1]);
  if (config.Value("vectorize") != 0) s[p.c].Unroll(p.c.op().axis()[1]);
  return Lower(s, {p.a, p.b, p.c});
}

// What is thrown, as a text.
template <class F>
std::string Thrown(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Tuning, SplitsAreListed) {
  using tuning::SplitCandidates;
  EXPECT_EQ(SplitCandidates("s", 6, 2),
            (std::vector<std::vector<int64_t>>{{-1, 1}, {-1, 2}, {-1, 3}, {-1, 6}}));
  EXPECT_EQ(SplitCandidates("s", 7, 2, {.policy = "power2"}).size(), 3U);
  EXPECT_EQ(SplitCandidates("s", 7, 2, {.policy = "power2", .no_tail = true}).size(), 1U);
  EXPECT_EQ(SplitCandidates("s", 12, 3, {.max_factor = 2}).size(), 4U);
  EXPECT_EQ(SplitCandidates("s", 1, 1), (std::vector<std::vector<int64_t>>{{-1}}));
  EXPECT_NE(Thrown([] { SplitCandidates("s", 0, 2); }).find("split 's'"), std::string::npos);
  EXPECT_NE(Thrown([] { SplitCandidates("s", 4, 2, {.policy = "x"}); }).find("no policy 'x'"),
            std::string::npos);
}

TEST(Tuning, TemplatesAreTuned) {
  const Product p;
  const tuning::Task task = tuning::Task::FromTemplate(
      "product", p.Definition(), [&](tuning::Config& config) { return Split(p, config); });
  EXPECT_EQ(task.size(), 5 * 2);
  EXPECT_EQ(task.algorithms(), std::vector<std::string>{"template product"});
  std::vector<tuning::Trial> trials;
  const tuning::Result result = task.Tune(
      {.trials = 100, .searcher = "grid", .candidate_seconds = 0.01, .done = [&](const auto& t) {
         trials.push_back(t);
       }});
  EXPECT_EQ(result.trials, 10);
  EXPECT_EQ(result.failures, 0);
  EXPECT_EQ(result.stopped, "every point has been tried");
  EXPECT_GT(result.best_seconds, 0);
  EXPECT_NO_THROW(Build(task.At(result.best)));
  // What is known is not measured again.
  EXPECT_EQ(task.Tune({.searcher = "random", .before = trials, .candidate_seconds = 0.01}).trials,
            0);
}

TEST(Tuning, MistakesAreNamedAtDefinition) {
  const Product p;
  auto from = [&](const tuning::Template& make) {
    return Thrown([&] { tuning::Task::FromTemplate("mine", p.Definition(), make); });
  };
  EXPECT_NE(from([&](tuning::Config& config) {
              config.DefineKnob("empty", {});
              return p.Definition();
            }).find("template 'mine': knob 'empty': there is nothing to choose from"),
            std::string::npos);
  EXPECT_NE(from([&](tuning::Config& config) {
              config.DefineKnob("a", {1});
              config.DefineKnob("a", {1});
              return p.Definition();
            }).find("knob 'a' is there already"),
            std::string::npos);
  EXPECT_NE(Thrown([&] {
              tuning::Task::FromSketches(p.Definition()).Tune({.trials = 1, .searcher = "best"});
            }).find("there is no searcher 'best'"),
            std::string::npos);
}

class Last : public tuning::Policy {
 public:
  std::vector<tuning::Pick> Next(int count) override {
    std::vector<tuning::Pick> out;
    for (; out.size() < static_cast<size_t>(count) && at_ >= 0; --at_)
      out.push_back({0, {{"i", at_}, {"vectorize", 0}}});
    return out;
  }
  void Observe(const tuning::Pick& pick, std::optional<double> seconds) override {
    if (seconds) seen.insert(pick.point.at("i"));
  }
  std::set<int64_t> seen;

 private:
  int64_t at_ = 4;
};

TEST(Tuning, APolicyOfOnesOwn) {
  const Product p;
  const tuning::Task task = tuning::Task::FromTemplate(
      "product", p.Definition(), [&](tuning::Config& config) { return Split(p, config); });
  Last policy;
  const tuning::Result result =
      task.Tune({.trials = 3, .policy = &policy, .candidate_seconds = 0.01});
  EXPECT_EQ(result.trials, 3);
  EXPECT_EQ(policy.seen, (std::set<int64_t>{2, 3, 4}));
}

TEST(Tuning, ARuleOfOnesOwn) {
  const Product p;
  const tuning::SketchRule rule{
      "halves", true, [](const IrSchedule&, const std::string& block) { return block == "C"; },
      [](IrSchedule& s, const std::string& block, int) {
        const auto parts = s.SamplePerfectTile("half", s.GetLoops(block)[0], 2, 4);
        s.Split(s.GetLoops(block)[0], {-1, "$half.1"});
      }};
  const tuning::Task task = tuning::Task::FromSketches(p.Definition(), Target(), {.rules = {rule}});
  EXPECT_EQ(task.algorithms(), std::vector<std::string>{"sketch halves(C)"});
  const IrSchedule at = task.ScheduleAt({0, {{"half.0", 4}, {"half.1", 4}}});
  EXPECT_EQ(at.GetExtent(at.GetLoops("C")[1]), 4);
}

}  // namespace
}  // namespace tenon
