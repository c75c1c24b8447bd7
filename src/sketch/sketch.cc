// Derivation: one draft for each list of rules applied so far, blocks in turn from the last to the
// first. A draft that a rule has spoilt is dropped; the last rule of the table is for every block,
// so something always comes of it. Two lists that give the same trace by their guesses are one.
#include "sketch/sketch.h"

#include <fmt/format.h>

#include <algorithm>
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

}  // namespace tenon::sketch
