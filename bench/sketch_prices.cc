// What prices of points take. Of a kernel's graph (bench/tuning_suite.txt has some): microseconds
// for each point of the spaces of all algorithms that apply, described and priced.
//
//   bench_sketch_prices kernel.graph.txt [target]
//
// What prices of sketches' points take, and what they are worth: points drawn from all sketches of
// a function are priced by doing the schedule, and by numbers (src/sketch/numbers.h); printed are
// microseconds of each, how many points were legal, the rank correlation of the two prices, and how
// many points a second evolutionary search looks at.
//
//   bench_sketch_prices kernel.tn [target]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>

#include "driver/tune_kernel.h"
#include "graph/text.h"
#include "loop/parse.h"
#include "plan/fuse.h"
#include "plan/plan_groups.h"
#include "plan/region.h"
#include "plan/space.h"
#include "tune/task.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

std::vector<double> Ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (size_t j = i; j < end; ++j) ranks[order[j]] = static_cast<double>(i + end - 1) / 2;
    i = end;
  }
  return ranks;
}

double Correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = Ranks(a), y = Ranks(b);
  const double middle = static_cast<double>(x.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - middle) * (y[i] - middle);
    xx += (x[i] - middle) * (x[i] - middle);
    yy += (y[i] - middle) * (y[i] - middle);
  }
  return xy / std::sqrt(xx * yy);
}

Status PriceLibrary(const std::string& path, const std::string& text, const Machine& machine) {
  TN_ASSIGN_OR_RETURN(const graph::Graph parsed, graph::Parse(text, path));
  const graph::Graph planned = graph::PlanGroups(graph::Fuse(parsed, {&machine}), {&machine});
  for (const tune::Task& task : tune::TasksOf(planned, machine).tasks) {
    TN_ASSIGN_OR_RETURN(const graph::NodeId node, plan::FindKernel(task.graph, tune::kFunction));
    const graph::Group group = graph::GroupOf(task.graph, node);
    const ops::Site site{group.region, group.anchor, machine};
    const Clock::time_point start = Clock::now();
    double sum = 0;
    for (const tune::Candidate& c : task.candidates)
      sum += ops::PriceOf(*c.algorithm, site, c.point);
    const double seconds = Seconds(start);
    const auto count = static_cast<double>(task.candidates.size());
    fmt::print("{} {}: {} points, {:.2f} µs for each, {:.4g} µs on average\n", path, task.name,
               task.candidates.size(), 1e6 * seconds / count, 1e6 * sum / count);
  }
  return Ok();
}

Status Run(const std::string& path, const std::string& target_text) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (text.starts_with("graph @")) {
    TN_ASSIGN_OR_RETURN(const TargetRef target, Target::Parse(target_text));
    return PriceLibrary(path, text, Machine::Of(*target));
  }
  TN_ASSIGN_OR_RETURN(Module module, ParseModule(text));
  TN_ASSIGN_OR_RETURN(const TargetRef target, Target::Parse(target_text));
  const Machine machine = Machine::Of(*target);
  for (const auto& [name, func] : module.funcs) {
    PrimFunc fields(*func);
    fields.target = target;
    module.Add(PrimFunc::Make(std::move(fields)));
  }
  TN_ASSIGN_OR_RETURN(const auto kernel, driver::OpenKernel::OfSketches(module, machine, {}, 64));
  const tune::SearchProblem& problem = kernel->open().problem;
  std::mt19937_64 random(1);
  std::vector<tune::Pick> picks;
  for (size_t s = 0; s < problem.spaces.size(); ++s)
    for (int i = 0; i < 100; ++i)
      if (auto point = problem.spaces[s].Sample(&random)) picks.push_back({s, *std::move(point)});
  const Clock::time_point first = Clock::now();
  std::vector<double> guesses, prices, both;
  for (const tune::Pick& pick : picks) guesses.push_back(problem.guess(pick)->seconds);
  const double before = Seconds(first);
  const Clock::time_point second = Clock::now();
  for (const tune::Pick& pick : picks) problem.guess(pick);
  const double light = Seconds(second);
  const Clock::time_point third = Clock::now();
  for (size_t i = 0; i < picks.size(); ++i) {
    const auto quote = problem.price(picks[i]);
    if (!quote) continue;
    prices.push_back(quote->seconds);
    both.push_back(guesses[i]);
  }
  const double heavy = Seconds(third);
  const auto count = static_cast<double>(picks.size());
  fmt::print(
      "{}: {} sketches; a price by its schedule {:.0f} µs, by numbers {:.2f} µs (making them "
      "{:.0f} ms); {} of {} legal, rank "
      "correlation {:.4f}\n",
      path, problem.spaces.size(), 1e6 * heavy / count, 1e6 * light / count, 1e3 * before,
      both.size(), picks.size(), Correlation(both, prices));
  for (const size_t population : {128, 512, 2048}) {
    tune::SearchOptions options;
    options.population = population;
    TN_ASSIGN_OR_RETURN(const auto searcher, tune::MakeSearcher("improvement", problem, options));
    const Clock::time_point start = Clock::now();
    const std::vector<tune::Pick> next = searcher->Next(8);
    const double seconds = Seconds(start);
    const auto looked = static_cast<double>(population * (1 + options.rounds));
    fmt::print("  a population of {}: {:.3f} s, {:.0f} points a second, the best {:.4g} µs\n",
               population, seconds, looked / seconds,
               next.empty() ? 0 : 1e6 * problem.price(next[0])->seconds);
  }
  return Ok();
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const tenon::Status done = tenon::Run(argv[1], argc > 2 ? argv[2] : "llvm -num-cores=2");
  if (!done) fmt::print(stderr, "{}\n", done.errors()[0].message);
  return done ? 0 : 1;
}
