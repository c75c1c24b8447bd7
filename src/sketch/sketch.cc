// Derivation: one draft for each list of rules applied so far, blocks in turn from the last to the
// first. A draft that a rule has spoilt is dropped; the last rule of the table is for every block,
// so something always comes of it. Two lists that give the same trace by their guesses are one.
#include "sketch/sketch.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

#include "sketch/work.h"
#include "support/check.h"

namespace tenon::sketch {

int64_t Draft::Choose(const std::string& name, std::vector<int64_t> domain, int64_t guess,
                      bool structural) {
  TN_CHECK(!vars.contains(name), "the choice '{}' twice", name);
  vars[name] = space.Add({name, domain, false, structural});
  if (point) {
    const auto at = std::find_if(point->begin(), point->end(),
                                 [&](const graph::Choice& c) { return c.name == name; });
    if (at != point->end() && std::binary_search(domain.begin(), domain.end(), at->value))
      guess = at->value;
  }
  return schedule.Decide(name, std::move(domain), guess);
}

std::vector<Rule> RulesFor(const Machine& machine) {
  return machine.target->IsDevice() ? GpuRules() : CpuRules();
}

Draft Sketches::Run(const std::vector<Step>& steps, const ops::Point* point) const {
  Draft draft(Schedule(module_, func_), machine_, point);
  for (const Step& step : steps) {
    if (!draft.ok()) break;
    rules_[step.rule].apply(&draft, step.block, step.way);
  }
  return draft;
}

void Sketches::Derive(const Draft& draft, const Names& blocks, size_t left, std::vector<Step> steps,
                      size_t most) {
  if (all_.size() >= most) return;
  if (left == 0) {
    // Drafts of guesses that are no points have no sketch.
    Sketch sketch{.steps = steps, .space = draft.space};
    for (const ops::Knob& k : draft.space.knobs()) {
      const auto decided = draft.schedule.trace().Decisions();
      sketch.guess.push_back({k.name, decided.at(k.name)});
    }
    for (const Step& s : steps)
      sketch.name += fmt::format("{}{}{}({})", sketch.name.empty() ? "" : " ", rules_[s.rule].name,
                                 s.way > 0 ? fmt::format(".{}", s.way) : "", s.block);
    if (!sketch.space.Contains(sketch.guess)) {
      const std::optional<ops::Point> first = sketch.space.First();
      if (!first) return;
      sketch.guess = *first;
    }
    all_.push_back(std::move(sketch));
    return;
  }
  const std::string& block = blocks[left - 1];
  if (!draft.schedule.HasBlock(block)) return Derive(draft, blocks, left - 1, steps, most);
  bool applied = false;
  for (size_t r = 0; r < rules_.size(); ++r) {
    const int ways = rules_[r].ways(draft, block);
    for (int way = 0; way < ways; ++way) {
      Draft next = draft;
      rules_[r].apply(&next, block, way);
      if (!next.ok()) continue;
      applied = true;
      std::vector<Step> more = steps;
      more.push_back({r, block, way});
      Derive(next, blocks, left - 1, std::move(more), most);
    }
    if (applied && ways > 0 && rules_[r].then == Then::kSkipOthers) return;
  }
  if (!applied) Derive(draft, blocks, left - 1, std::move(steps), most);
}

Expected<Sketches> Sketches::Of(const Module& module, const std::string& func,
                                const Machine& machine, std::vector<Rule> rules, size_t most) {
  const Schedule plain(module, func);
  TN_RETURN_IF_ERROR(plain.status());
  for (Rule& rule : RulesFor(machine)) rules.push_back(std::move(rule));
  Sketches out(module, func, machine, std::move(rules));
  const Draft draft(plain, out.machine_);
  const Names blocks = plain.GetBlocks();
  if (blocks.empty())
    return MakeError(fmt::format("function {} has no block: there is nothing to schedule", func));
  out.Derive(draft, blocks, blocks.size(), {}, most);
  if (out.all_.empty())
    return MakeError(fmt::format("no rule has a schedule for function {}", func));
  return out;
}

Expected<Schedule> Sketches::At(size_t sketch, const ops::Point& point) const {
  Draft draft = Run(all_[sketch].steps, &point);
  TN_RETURN_IF_ERROR(draft.schedule.status());
  if (draft.refused)
    return MakeError(
        fmt::format("{} does not apply at {}", all_[sketch].name, graph::ChoicesText(point)));
  return std::move(draft.schedule);
}

std::optional<WorkDescription> Sketches::WorkAt(size_t sketch, const ops::Point& point) const {
  const Expected<Schedule> schedule = At(sketch, point);
  if (!schedule) return std::nullopt;
  return WorkOf(*schedule->func(), machine_);
}

// ---- Guesses ----

namespace {

// Of the knobs that are not structural, the least values above 1 as far as the space has them:
// where a tile is one the loops that it would have are not there to be counted.
ops::Point WithLoops(const ops::Space& space, ops::Point point) {
  for (const bool above : {false, true}) {
    for (size_t k = 0; k < point.size(); ++k) {
      const ops::Knob& knob = space.knobs()[k];
      if (knob.structural || (above && knob.domain.size() < 2)) continue;
      const int64_t before = point[k].value;
      const bool first = !above || knob.domain[0] > 1;
      point[k].value = knob.domain[first ? 0 : 1];
      if (!space.Contains(point)) point[k].value = before;
    }
  }
  return point;
}

std::vector<int64_t> StructureOf(const ops::Space& space, const ops::Point& point) {
  std::vector<int64_t> out;
  for (size_t k = 0; k < point.size(); ++k)
    if (space.knobs()[k].structural) out.push_back(point[k].value);
  return out;
}

// Points of the same structure, drawn.
std::vector<ops::Point> Others(const ops::Space& space, const ops::Point& like, size_t count) {
  constexpr int kDraws = 200;
  std::mt19937_64 random(1);
  std::vector<ops::Point> out;
  for (int i = 0; i < kDraws && out.size() < count; ++i) {
    std::optional<ops::Point> drawn = space.Sample(&random);
    if (!drawn) continue;
    for (size_t k = 0; k < like.size(); ++k)
      if (space.knobs()[k].structural) (*drawn)[k].value = like[k].value;
    if (space.Contains(*drawn)) out.push_back(*std::move(drawn));
  }
  return out;
}

}  // namespace

std::optional<Numbers> Sketches::MakeNumbers(size_t sketch, const ops::Point& like) const {
  const ops::Space& space = all_[sketch].space;
  const Schedule plain(module_, func_);
  std::vector<ops::Point> tried = Others(space, like, 4);
  tried.insert(tried.begin(), WithLoops(space, like));
  for (const ops::Point& point : tried) {
    const Expected<Schedule> schedule = At(sketch, point);
    if (!schedule) continue;
    std::optional<Numbers> numbers = Numbers::Of(plain, schedule->trace(), space, machine_);
    if (numbers && AreRight(&*numbers, sketch, like)) return numbers;
    return std::nullopt;
  }
  return std::nullopt;
}

// Rules may put numbers into a trace that follow from choices without saying so.
bool Sketches::AreRight(Numbers* numbers, size_t sketch, const ops::Point& like) const {
  constexpr size_t kChecked = 3;
  constexpr double kNear = 1.25;
  for (const ops::Point& point : Others(all_[sketch].space, like, kChecked)) {
    const std::optional<WorkDescription> exact = WorkAt(sketch, point);
    if (!exact) continue;
    const std::optional<WorkDescription> guess = WorkOf(numbers->At(point), machine_);
    if (!guess) return false;
    const double ratio = EstimateSeconds(*guess, machine_) / EstimateSeconds(*exact, machine_);
    if (ratio > kNear || ratio * kNear < 1) return false;
  }
  return true;
}

Numbers* Sketches::NumbersFor(size_t sketch, const ops::Point& point) {
  const std::pair key(sketch, StructureOf(all_[sketch].space, point));
  auto at = numbers_.find(key);
  if (at == numbers_.end()) at = numbers_.emplace(key, MakeNumbers(sketch, point)).first;
  return at->second ? &*at->second : nullptr;
}

std::optional<WorkDescription> Sketches::GuessAt(size_t sketch, const ops::Point& point) {
  Numbers* numbers = NumbersFor(sketch, point);
  return numbers ? WorkOf(numbers->At(point), machine_) : WorkAt(sketch, point);
}

}  // namespace tenon::sketch
