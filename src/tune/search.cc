// Searchers have in common that they remember what they gave (Searched), that what has no price is
// no pick, and where random numbers come from: one generator of a fixed seed, asked in a fixed
// order. So a search over the same answers is the same search.
//
// Neighbours: a mutation gives one knob another value and keeps the others as far as the
// constraints let it; a crossing takes each knob from one of two parents of one space. Whatever
// comes of them is checked against the space and judged by a guess of its price; those that are
// handed out are priced by doing the schedule, where a step that is not legal ends them.
#include "tune/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "support/strings.h"
#include "tune/boosted_trees.h"

namespace tenon::tune {

std::string SearchProblem::Trace(const Pick& pick) const {
  return fmt::format("{} {}", algorithms[pick.space], graph::ChoicesText(pick.point));
}

namespace {

using ops::Point;
using ops::Space;

// Draws in a row that give nothing new before a space counts as exhausted.
constexpr int kPatience = 400;

class Searched : public Searcher {
 public:
  Searched(const SearchProblem& problem, const SearchOptions& options)
      : problem_(problem), options_(options), random_(options.seed) {}

  std::vector<Pick> Next(size_t count) final {
    std::vector<Pick> out;
    for (; hints_used_ < hints_.size() && out.size() < count; ++hints_used_)
      if (Take(hints_[hints_used_])) out.push_back(hints_[hints_used_]);
    if (out.size() < count) {
      for (Pick& more : More(count - out.size())) out.push_back(std::move(more));
    }
    return out;
  }
  void Observe(const Pick& pick, std::optional<double> seconds) override {
    if (given_.insert(problem_.Trace(pick)).second) IsNew(pick);
    Learn(pick, seconds);
  }
  void Hint(const Pick& pick) override { hints_.push_back(pick); }

 protected:
  virtual std::vector<Pick> More(size_t count) = 0;
  virtual void Learn(const Pick&, std::optional<double>) {}

  // A pick that is new and has a price is from now on one that was given.
  bool Take(const Pick& pick) {
    const std::string trace = problem_.Trace(pick);
    if (given_.contains(trace) || refused_.contains(trace)) return false;
    const bool is_one = problem_.price(pick).has_value() && IsNew(pick);
    (is_one ? given_ : refused_).insert(trace);
    return is_one;
  }
  // Whether nothing comes of taking it.
  bool IsOver(const std::string& trace) const {
    return given_.contains(trace) || refused_.contains(trace);
  }

  uint64_t Below(uint64_t n) { return random_() % n; }
  double Chance() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  std::optional<Pick> Draw() {
    const size_t space = Below(problem_.spaces.size());
    std::optional<Point> point = problem_.spaces[space].Sample(&random_);
    if (!point) return std::nullopt;
    return Pick{space, *std::move(point)};
  }

  std::optional<Pick> Mutated(const Pick& of) {
    const Space& space = problem_.spaces[of.space];
    if (space.knobs().empty()) return Draw();
    for (int t = 0; t < 16; ++t) {
      Pick child = of;
      const size_t k = Below(child.point.size());
      const std::vector<int64_t>& domain = space.knobs()[k].domain;
      child.point[k].value = domain[Below(domain.size())];
      if (child.point[k].value == of.point[k].value) continue;
      // Where a product is what is fixed, another knob gives way.
      for (int more = 0; more < 8 && !space.Contains(child.point); ++more) {
        const size_t other = Below(child.point.size());
        const std::vector<int64_t>& values = space.knobs()[other].domain;
        if (other != k) child.point[other].value = values[Below(values.size())];
      }
      if (space.Contains(child.point)) return child;
    }
    return std::nullopt;
  }

  std::optional<Pick> Crossed(const Pick& a, const Pick& b) {
    if (a.space != b.space) return std::nullopt;
    Pick child = a;
    for (size_t k = 0; k < child.point.size(); ++k)
      if (Below(2) == 0) child.point[k].value = b.point[k].value;
    if (!problem_.spaces[a.space].Contains(child.point)) return std::nullopt;
    return child;
  }

  std::vector<Pick> Drawn(size_t count) {
    std::vector<Pick> out;
    for (int failed = 0; out.size() < count && failed < kPatience;) {
      const std::optional<Pick> pick = Draw();
      if (pick && Take(*pick)) {
        out.push_back(*pick);
        failed = 0;
      } else {
        ++failed;
      }
    }
    // Few are left, or none: they are found in order.
    for (size_t s = 0; s < problem_.spaces.size() && out.size() < count; ++s) {
      const Space& space = problem_.spaces[s];
      if (space.Count(kPatience * 4) == kPatience * 4) continue;
      for (auto p = space.First(); p && out.size() < count; p = space.After(*p))
        if (Take({s, *p})) out.push_back({s, *p});
    }
    return out;
  }

  const SearchProblem& problem_;
  const SearchOptions options_;
  std::mt19937_64 random_;

 private:
  // Choices may come to nothing: how a loop is shared out by one worker, say.
  bool IsNew(const Pick& pick) {
    return !problem_.identity || identities_.insert(problem_.identity(pick)).second;
  }

  std::set<std::string> given_, refused_;  // refused: no such kernels, or known by another point
  std::set<std::string> identities_;
  std::vector<Pick> hints_;
  size_t hints_used_ = 0;
};

class RandomSearch : public Searched {
 public:
  using Searched::Searched;
  std::vector<Pick> More(size_t count) override { return Drawn(count); }
};

class GridSearch : public Searched {
 public:
  using Searched::Searched;
  std::vector<Pick> More(size_t count) override {
    std::vector<Pick> out;
    while (out.size() < count && space_ < problem_.spaces.size()) {
      const Space& space = problem_.spaces[space_];
      at_ = at_ ? space.After(*at_) : space.First();
      if (!at_) {
        ++space_;
      } else if (Take({space_, *at_})) {
        out.push_back({space_, *at_});
      }
    }
    return out;
  }

 private:
  size_t space_ = 0;
  std::optional<Point> at_;
};

/// Generations of measured points: parents are drawn by rank.
class GeneticSearch : public Searched {
 public:
  using Searched::Searched;

  std::vector<Pick> More(size_t count) override {
    if (measured_.size() < std::max<size_t>(4, std::min<size_t>(options_.population, 16)))
      return Drawn(count);
    std::vector<Pick> out;
    for (int failed = 0; out.size() < count && failed < kPatience;) {
      const Pick& a = Parent();
      std::optional<Pick> child =
          Chance() < options_.mutation ? std::optional<Pick>(a) : Crossed(a, Parent());
      if (child && (*child == a || Chance() < 0.2)) child = Mutated(*child);
      if (child && Take(*child)) {
        out.push_back(*child);
        failed = 0;
      } else {
        ++failed;
      }
    }
    if (out.size() < count) {
      for (Pick& more : Drawn(count - out.size())) out.push_back(std::move(more));
    }
    return out;
  }

 private:
  void Learn(const Pick& pick, std::optional<double> seconds) override {
    if (!seconds) return;
    const auto at = std::upper_bound(measured_.begin(), measured_.end(), *seconds,
                                     [](double s, const auto& m) { return s < m.first; });
    measured_.insert(at, {*seconds, pick});
    if (measured_.size() > options_.population) measured_.pop_back();
  }
  // The better of two.
  const Pick& Parent() {
    const uint64_t a = Below(measured_.size()), b = Below(measured_.size());
    return measured_[std::min(a, b)].second;
  }

  std::vector<std::pair<double, Pick>> measured_;  // the fastest first
};

/// What is known of picks: measured, or the price corrected by what measurements said.
class Corrected : public Searched {
 public:
  Corrected(const SearchProblem& problem, const SearchOptions& options)
      : Searched(problem, options),
        model_(options.model ? options.model : std::make_shared<ResidualModel>()) {
    trees_.Follow(*model_);
  }

 protected:
  void Learn(const Pick& pick, std::optional<double> seconds) override {
    const std::optional<Quote> quote = problem_.price(pick);
    if (!seconds || !quote || quote->seconds <= 0) return;
    model_->Add(quote->features, problem_.algorithms[pick.space], problem_.kernel,
                std::log(*seconds / quote->seconds));
    trees_.Follow(*model_);
    if (best_ <= 0 || *seconds < best_) best_ = *seconds;
    parents_.push_back(pick);
  }
  /// The logarithms of their seconds; nullopt: it has no price.
  std::vector<std::optional<Gaussian>> Opinions(const std::vector<Pick>& picks) const {
    std::vector<std::optional<Gaussian>> out;
    std::vector<TreeInput> inputs;
    for (const Pick& pick : picks) {
      const std::optional<Quote> quote =
          problem_.guess ? problem_.guess(pick) : problem_.price(pick);
      const std::string& algorithm = problem_.algorithms[pick.space];
      out.emplace_back();
      if (!quote) continue;
      out.back() = model_->Predict(quote->features, algorithm, problem_.kernel);
      out.back()->mean += std::log(std::max(quote->seconds, 1e-12));
      if (trees_.are_there()) inputs.push_back({quote->features, algorithm});
    }
    const std::vector<double> more = trees_.Predict(inputs);
    for (size_t i = 0, next = 0; i < out.size() && next < more.size(); ++i)
      if (out[i]) out[i]->mean += more[next++];
    return out;
  }
  /// How much is hoped for; larger is better.
  double Hope(const Gaussian& time) const {
    if (best_ <= 0) return -time.mean;  // nothing was measured yet: the least price
    return ExpectedImprovement(std::log(best_), time);
  }

  std::shared_ptr<ResidualModel> model_;
  GrowingTrees trees_;
  double best_ = 0;
  std::vector<Pick> parents_;  // measured
};

class ImprovementSearch : public Corrected {
 public:
  using Corrected::Corrected;

  std::vector<Pick> More(size_t count) override {
    std::vector<Pick> out =
        best_ > 0 ? Drawn(static_cast<size_t>(options_.random_part * static_cast<double>(count)))
                  : std::vector<Pick>();
    std::vector<std::pair<double, Pick>> pool = Pool();
    if (best_ <= 0) pool = LeadersFirst(pool);
    for (size_t i = 0; i < pool.size() && out.size() < count; ++i)
      if (Take(pool[i].second)) out.push_back(pool[i].second);
    if (out.size() < count) {
      for (Pick& more : Drawn(count - out.size())) out.push_back(std::move(more));
    }
    return out;
  }

 private:
  // What is hoped of each, the most first.
  using Ranked = std::vector<std::pair<double, Pick>>;

  // While nothing is measured the model would give neighbours of one point, all right or all wrong:
  // the best of each space come first, then those of structures that differ.
  Ranked LeadersFirst(const Ranked& pool) const {
    Ranked out[3];
    std::set<size_t> spaces;
    std::vector<const Pick*> structures;
    for (const auto& hoped : pool) {
      const Pick& pick = hoped.second;
      const bool is_known = std::any_of(structures.begin(), structures.end(), [&](const Pick* p) {
        return p->space == pick.space &&
               problem_.spaces[pick.space].SameStructure(p->point, pick.point);
      });
      const bool first = spaces.insert(pick.space).second;
      if (!is_known) structures.push_back(&pick);
      out[first ? 0 : is_known ? 2 : 1].push_back(hoped);
    }
    for (const size_t more : {1, 2})
      out[0].insert(out[0].end(), out[more].begin(), out[more].end());
    return std::move(out[0]);
  }

  // By traces, with what is hoped of each.
  using Hoped = std::map<std::string, std::pair<double, Pick>>;

  // Candidates that were not given, those with the most hope first.
  Ranked Pool() {
    Hoped pool;
    if (const auto all = All()) {
      Add(*all, &pool);
    } else {
      Evolve(&pool);
    }
    Ranked sorted;
    for (const auto& [trace, hoped] : pool)
      if (!IsOver(trace)) sorted.push_back(hoped);
    // Of equal ones the first by its text.
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    return sorted;
  }

  // Those that are new and have a price.
  void Add(const std::vector<Pick>& picks, Hoped* pool) const {
    std::vector<Pick> fresh;
    std::vector<std::string> traces;
    std::set<std::string> seen;
    for (const Pick& pick : picks) {
      std::string trace = problem_.Trace(pick);
      if (pool->contains(trace) || !seen.insert(trace).second) continue;
      fresh.push_back(pick);
      traces.push_back(std::move(trace));
    }
    const std::vector<std::optional<Gaussian>> opinions = Opinions(fresh);
    for (size_t i = 0; i < fresh.size(); ++i)
      if (opinions[i]) (*pool)[traces[i]] = {Hope(*opinions[i]), std::move(fresh[i])};
  }

  // Of small spaces; nullopt: they have more than a population.
  std::optional<std::vector<Pick>> All() const {
    int64_t left = static_cast<int64_t>(options_.population);
    for (const Space& space : problem_.spaces) {
      const int64_t points = space.Count(left + 1);
      if (points > left) return std::nullopt;
      left -= points;
    }
    std::vector<Pick> out;
    for (size_t s = 0; s < problem_.spaces.size(); ++s)
      problem_.spaces[s].ForEach([&](const Point& p) { out.push_back({s, p}); });
    return out;
  }

  void Evolve(Hoped* pool) {
    Add(parents_, pool);
    const size_t wanted = options_.population + parents_.size();
    for (int failed = 0; pool->size() < wanted && failed < kPatience;) {
      const size_t before = pool->size();
      std::vector<Pick> drawn;
      for (size_t i = before; i < wanted; ++i)
        if (std::optional<Pick> p = Draw()) drawn.push_back(*std::move(p));
      Add(drawn, pool);
      failed = pool->size() > before ? 0 : failed + static_cast<int>(wanted - before);
    }
    for (size_t round = 0; round < options_.rounds; ++round) {
      std::vector<std::pair<double, Pick>> best;
      for (const auto& [trace, hoped] : *pool) best.push_back(hoped);
      std::stable_sort(best.begin(), best.end(),
                       [](const auto& a, const auto& b) { return a.first > b.first; });
      if (best.empty()) return;
      const size_t parents = std::min(best.size(), std::max<size_t>(8, options_.population / 4));
      std::vector<Pick> children;
      for (size_t i = 0; i < options_.population; ++i) {
        const Pick& a = best[std::min(Below(parents), Below(parents))].second;
        std::optional<Pick> child =
            Chance() < options_.mutation ? Mutated(a) : Crossed(a, best[Below(parents)].second);
        if (child) children.push_back(*std::move(child));
      }
      Add(children, pool);
    }
  }
};

/// Walks that go on from batch to batch; worse steps are taken the more rarely the colder it is.
class AnnealingSearch : public Corrected {
 public:
  using Corrected::Corrected;

  std::vector<Pick> More(size_t count) override {
    constexpr int kSteps = 8;
    Start();
    std::map<std::string, std::pair<double, Pick>> seen;
    double temperature = options_.start_temperature * std::pow(options_.cooling, batches_++ * 8.0);
    for (int step = 0; step < kSteps; ++step, temperature *= options_.cooling) {
      std::vector<Pick> steps;
      for (const auto& [mean, pick] : walks_) steps.push_back(Mutated(pick).value_or(pick));
      const std::vector<std::optional<Gaussian>> times = Opinions(steps);
      for (size_t i = 0; i < walks_.size(); ++i) {
        auto& [mean, pick] = walks_[i];
        if (!times[i] || steps[i] == pick) continue;
        const double worse = times[i]->mean - mean;
        if (worse > 0 && Chance() >= std::exp(-worse / std::max(temperature, 1e-6))) continue;
        mean = times[i]->mean;
        pick = std::move(steps[i]);
        seen[problem_.Trace(pick)] = {mean, pick};
      }
    }
    std::vector<std::pair<double, Pick>> sorted;
    for (const auto& [trace, walked] : seen) sorted.push_back(walked);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Pick> out;
    for (size_t i = 0; i < sorted.size() && out.size() < count; ++i)
      if (Take(sorted[i].second)) out.push_back(sorted[i].second);
    if (out.size() < count) {
      for (Pick& more : Drawn(count - out.size())) out.push_back(std::move(more));
    }
    return out;
  }

 private:
  void Start() {
    for (int tries = 0; walks_.size() < options_.population && tries < kPatience; ++tries) {
      const std::optional<Pick> pick = Draw();
      const std::optional<Gaussian> time = pick ? Opinions({*pick})[0] : std::nullopt;
      if (time) walks_.emplace_back(time->mean, *pick);
    }
  }

  std::vector<std::pair<double, Pick>> walks_;
  int batches_ = 0;
};

template <class S>
std::unique_ptr<Searcher> Make(const SearchProblem& problem, const SearchOptions& options) {
  return std::make_unique<S>(problem, options);
}

struct SearcherRow {
  const char* name;
  std::unique_ptr<Searcher> (*make)(const SearchProblem&, const SearchOptions&);
};
constexpr SearcherRow kSearchers[] = {{"improvement", Make<ImprovementSearch>},
                                      {"random", Make<RandomSearch>},
                                      {"grid", Make<GridSearch>},
                                      {"genetic", Make<GeneticSearch>},
                                      {"annealing", Make<AnnealingSearch>}};

}  // namespace

std::vector<std::string> SearcherNames() {
  std::vector<std::string> out;
  for (const SearcherRow& row : kSearchers) out.emplace_back(row.name);
  return out;
}

Expected<std::unique_ptr<Searcher>> MakeSearcher(std::string_view name,
                                                 const SearchProblem& problem,
                                                 const SearchOptions& options) {
  SearchOptions all = options;
  constexpr size_t kPopulation = 128, kGuessed = 2048;
  const bool by_model = name == "improvement" && problem.guess;
  if (all.population == 0) all.population = by_model ? kGuessed : kPopulation;
  for (const SearcherRow& row : kSearchers)
    if (name == row.name) return row.make(problem, all);
  return MakeError(
      fmt::format("there is no searcher '{}'; there are {}", name, Join(SearcherNames(), ", ")));
}

}  // namespace tenon::tune
