// Steps: a row of stage_primitives.def for each, by which its arguments are taken and what it means
// is found. A step that waits is kept with what the engine's primitive takes of its arguments.
#include <fmt/format.h>

#include <algorithm>

#include "stages/arguments.h"
#include "stages/stage_schedule.h"
#include "support/strings.h"

namespace tenon::stages {

namespace {

using Values = std::vector<AttrValue>;

// What the engine takes of an argument that waits.
void Keep(const StageId&, Values*) {}
void Keep(const Loop&, Values*) {}
void Keep(const Number& n, Values* args) { args->push_back(n.given); }
void Keep(const Numbers& n, Values* args) { args->push_back(n.given); }
void Keep(const Tensor& t, Values* args) { args->push_back(t.name); }
void Keep(const Axis& a, Values* args) { args->push_back(a.name); }
void Keep(const PragmaKey& k, Values* args) { args->push_back(k.name); }
void Keep(const OptionalText& t, Values* args) { args->push_back(t.text); }
void Keep(const Text& t, Values* args) { args->push_back(t); }
void Keep(const AttrValue& v, Values* args) { args->push_back(v); }

using RunFn = Expected<Made> (*)(const Call&, Phase, const Values&);

/// Of the kinds of arguments behind the stage, as the parameters of a function type.
template <class F>
struct Waits;
template <class... P>
struct Waits<void(P...)> {
  static Expected<Made> Run(const Call& c, Phase phase, const Values& args) {
    using Typed = std::tuple<Stage, std::remove_cvref_t<P>...>;
    Arguments arguments(c, args);
    TN_ASSIGN_OR_RETURN(const Typed typed, (TakeAll<Stage, std::remove_cvref_t<P>...>(&arguments)));
    const bool runs = phase == Phase::kMark && c.name != std::string_view("pragma");
    if (runs) {
      TN_RETURN_IF_ERROR(c.RequireUnmarked(*arguments.stage(), *arguments.loop()));
    }
    Waiting step{c.name, phase, arguments.stage(), arguments.loop(), {}};
    std::apply([&](const auto&... arg) { (Keep(arg, &step.args), ...); }, typed);
    c.s.waiting.push_back(std::move(step));
    return Made{};
  }
};

template <auto Fn>
struct Changes;
template <class... A, Expected<Made> (*Fn)(const Call&, const A&...)>
struct Changes<Fn> {
  static Expected<Made> Run(const Call& c, Phase, const Values& args) {
    Arguments arguments(c, args);
    TN_ASSIGN_OR_RETURN(const std::tuple<A...> typed, TakeAll<A...>(&arguments));
    return std::apply([&](const A&... arg) { return Fn(c, arg...); }, typed);
  }
};

// The one step that is of no stage.
Expected<Made> SpecializeAll(const Call& c, Phase phase, const Values& args) {
  Arguments arguments(c, args);
  TN_ASSIGN_OR_RETURN(const std::tuple<Text> condition, TakeAll<Text>(&arguments));
  c.s.waiting.push_back({c.name, phase, {}, {}, {std::get<0>(condition)}});
  return Made{};
}

struct PrimitiveRow {
  const char* name;
  Phase phase;
  RunFn run;
};
constexpr PrimitiveRow kRows[] = {
    {"specialize", Phase::kVersions, SpecializeAll},
#define TN_STAGE_WAITS(Method, name, phase, parameters, ...) \
  {name, Phase::phase, Waits<void parameters>::Run},
#define TN_STAGE_DOES(Method, name, phase, ...) {name, Phase::phase, Changes<Method>::Run},
#define TN_STAGE_STEP_WAITS(name, phase, ...) {name, Phase::phase, Waits<void(__VA_ARGS__)>::Run},
#define TN_STAGE_STEP(name, phase, function) {name, Phase::phase, Changes<function>::Run},
#include "tenon/stage_primitives.def"
};

const PrimitiveRow* FindRow(const std::string& name) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const PrimitiveRow& r) { return name == r.name; });
  return row == std::end(kRows) ? nullptr : row;
}

std::vector<std::string> NamesOf(const State& state, const Made& made) {
  std::vector<std::string> names;
  for (LoopId loop : made.loops) names.push_back(state[loop].name);
  for (StageId stage : made.stages) names.push_back(state[stage].name);
  return names;
}

}  // namespace

std::vector<std::string> PrimitiveNames() {
  std::vector<std::string> out;
  for (const PrimitiveRow& row : kRows) out.push_back(row.name);
  return out;
}

Expected<Made> StageSchedule::Apply(const std::string& primitive, Values args) {
  const PrimitiveRow* row = FindRow(primitive);
  if (row == nullptr) {
    Diagnostic d = MakeError("schedule: no primitive of stages is named " + QuoteJson(primitive));
    const std::string near = NearestWord(primitive, PrimitiveNames());
    if (!near.empty()) d.notes.push_back("did you mean " + near + "?");
    return d;
  }
  State next = state_;  // a step that is refused leaves all as it was
  TN_ASSIGN_OR_RETURN(const Made made, row->run(Call{next, row->name}, row->phase, args));
  TN_RETURN_IF_ERROR(next.base.status());
  state_ = std::move(next);
  steps_.steps.push_back({primitive, std::move(args), NamesOf(state_, made)});
  return made;
}

Status StageSchedule::Replay(const Trace& steps) {
  for (const TraceStep& step : steps.steps) {
    if (Schedule::IsChoice(step.primitive)) {
      TN_RETURN_IF_ERROR(ReplayChoice(step));
      continue;
    }
    StageSchedule next = *this;
    TN_RETURN_IF_ERROR(next.Apply(step.primitive, step.args));
    const std::vector<std::string>& made = next.steps_.steps.back().results;
    if (!step.results.empty() && made != step.results) {
      return MakeError(fmt::format("replay: {} gave [{}], the steps expect [{}]", step.primitive,
                                   Join(made, ", "), Join(step.results, ", ")));
    }
    *this = std::move(next);
  }
  return Ok();
}

}  // namespace tenon::stages
