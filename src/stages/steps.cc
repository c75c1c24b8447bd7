// Steps: from plain values to what the functions of primitives.h take, as the kinds of their
// parameters say.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ir/visit.h"
#include "loop/threads.h"
#include "loop/warpgroup.h"
#include "stages/primitives.h"
#include "stages/stage_schedule.h"
#include "support/strings.h"

namespace tenon::stages {

namespace {

using Values = std::vector<AttrValue>;

// What passes read off loops.
std::vector<Text> Pragmas() { return {kCooperativeAttr, kDependentAttr, kProducerStagesAttr}; }

std::optional<int64_t> ParseInt(const Text& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Takes the arguments of one step, one after the other.
class Reader {
 public:
  Reader(const Call& call, const Values& args) : c_(call), args_(args) {}

  bool ok() const { return errors_.empty(); }
  const Diagnostics& errors() const { return errors_; }
  const std::optional<StageId>& stage() const { return first_; }
  const std::optional<LoopId>& loop() const { return loop_; }

  /// The stage that the step is of, and then the others.
  void Take(Stage* out) {
    const Text name = TakeText("a stage's name");
    if (!ok()) return;
    const std::optional<StageId> found = c_.s.FindStage(name);
    if (!found) return Fail(fmt::format("the schedule has no stage '{}'", name));
    *out = *found;
    of_ = found;
    if (!first_) first_ = found;
  }
  void Take(Stages* out) {
    for (const Text& name : TakeTexts("names of stages")) {
      const std::optional<StageId> found = c_.s.FindStage(name);
      if (!found) return Fail(fmt::format("the schedule has no stage '{}'", name));
      out->push_back(*found);
    }
  }
  void Take(Loop* out) {
    const Text name = TakeText("a loop's name");
    if (ok()) *out = TakeLoop(name);
    loop_ = out->id;
  }
  void Take(Loops* out) {
    for (const Text& name : TakeTexts("names of loops")) {
      out->push_back(TakeLoop(name));
      if (!ok()) return;
    }
  }
  void Take(Number* out) {
    out->given = Next();
    if (ok()) out->value = ValueOf(out->given);
  }
  void Take(Numbers* out) {
    out->given = Next();
    if (!ok()) return;
    if (const auto* numbers = std::get_if<std::vector<int64_t>>(&out->given)) {
      out->values = *numbers;
    } else if (const auto* texts = std::get_if<std::vector<Text>>(&out->given)) {
      for (const Text& text : *texts) out->values.push_back(ok() ? ValueOf(text) : 0);
    } else {
      Fail("expected a list of numbers");
    }
  }
  void Take(Tensor* out) {
    out->name = TakeText("a tensor's name");
    if (!ok() || HasBuffer(out->name)) return;
    Fail(fmt::format("the schedule has no tensor '{}'", out->name));
  }
  void Take(Axis* out) {
    out->name = TakeText("a thread axis");
    if (!ok() || ThreadAxisOf(out->name)) return;
    Fail(fmt::format("expected a thread axis; see thread_axis, but got '{}'", out->name));
  }
  void Take(PragmaKey* out) {
    out->name = TakeText("a key");
    const std::vector<Text> known = Pragmas();
    if (!ok() || std::find(known.begin(), known.end(), out->name) != known.end()) return;
    Fail(fmt::format("nothing reads the key '{}'; expected {}", out->name, Join(known, ", ")));
  }
  void Take(OptionalText* out) {
    if (next_ < args_.size()) Take(&out->text);
  }
  void Take(Text* out) { *out = TakeText("a text"); }
  void Take(AttrValue* out) { *out = Next(); }

  void End() {
    if (ok() && next_ < args_.size()) WrongCount();
  }

 private:
  void Fail(const std::string& reason) {
    if (!ok()) return;
    errors_.push_back(of_ ? c_.Wrong(*of_, reason)
                          : MakeError(fmt::format("{}: {}", c_.name, reason)));
  }
  void WrongCount() {
    Fail(fmt::format("got {} arguments, which is not as many as it takes", args_.size()));
  }

  AttrValue Next() {
    if (next_ < args_.size()) return args_[next_++];
    WrongCount();
    return {};
  }
  Text TakeText(const char* what) {
    const AttrValue value = Next();
    if (const auto* text = std::get_if<Text>(&value)) return *text;
    Fail(fmt::format("expected {}", what));
    return "";
  }
  // An empty list does not say of what; one name stands for a list of it.
  std::vector<Text> TakeTexts(const char* what) {
    const AttrValue value = Next();
    if (const auto* texts = std::get_if<std::vector<Text>>(&value)) return *texts;
    if (const auto* text = std::get_if<Text>(&value)) return {*text};
    const auto* empty = std::get_if<std::vector<int64_t>>(&value);
    if (!empty || !empty->empty()) Fail(fmt::format("expected {}", what));
    return {};
  }

  Loop TakeLoop(const Text& name) {
    const std::vector<LoopId>& leaves = c_.s[*of_].leaves;
    const std::optional<LoopId> loop = c_.s.FindLoop(*of_, name);
    const auto place = loop ? std::find(leaves.begin(), leaves.end(), *loop) : leaves.end();
    if (place != leaves.end()) return {*loop, static_cast<size_t>(place - leaves.begin())};
    Fail(fmt::format("'{}' is no loop of it now; its loops are {}", name, c_.s.Names(leaves)));
    return {};
  }

  int64_t ValueOf(const AttrValue& given) {
    if (const auto* number = std::get_if<int64_t>(&given)) return *number;
    const auto* text = std::get_if<Text>(&given);
    // In a list with choices, numbers are texts too.
    if (const std::optional<int64_t> number = text ? ParseInt(*text) : std::nullopt) return *number;
    const std::map<Text, int64_t> taken = c_.s.base.trace().Decisions();
    const auto choice = text && text->starts_with('$') ? taken.find(text->substr(1)) : taken.end();
    if (choice != taken.end()) return choice->second;
    Fail(fmt::format("expected a number or \"$\" and the name of a choice{}",
                     text ? fmt::format(", but {} is none", QuoteJson(*text)) : ""));
    return 0;
  }

  bool HasBuffer(const Text& name) const {
    const Func& func = c_.s.base.func();
    bool found = std::any_of(func->buffers.begin(), func->buffers.end(),
                             [&](const Buffer& b) { return b->name == name; });
    PreOrder(func->body, [&](const NodeRef& n) {
      const auto* alloc = As<Alloc>(n);
      found |= alloc && alloc->buffer->name == name;
      return !IsA<ExprNode>(n);
    });
    return found;
  }

  const Call& c_;
  const Values& args_;
  size_t next_ = 0;
  std::optional<StageId> first_, of_;
  std::optional<LoopId> loop_;
  Diagnostics errors_;
};

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

constexpr const char* kPerfectTile = "sample_perfect_tile";

using RunFn = Expected<Made> (*)(const Call&, Phase, const Values&);

template <class... A>
Expected<std::tuple<A...>> Read(Reader* reader) {
  std::tuple<A...> typed;
  std::apply([&](auto&... out) { ((reader->ok() ? reader->Take(&out) : void()), ...); }, typed);
  reader->End();
  if (!reader->ok()) return reader->errors();
  return typed;
}

/// Of the kinds of arguments behind the stage, as the parameters of a function type.
template <class F>
struct Waits;
template <class... P>
struct Waits<void(P...)> {
  static Expected<Made> Run(const Call& c, Phase phase, const Values& args) {
    using Typed = std::tuple<Stage, std::remove_cvref_t<P>...>;
    Reader reader(c, args);
    TN_ASSIGN_OR_RETURN(const Typed typed, (Read<Stage, std::remove_cvref_t<P>...>(&reader)));
    Waiting step{c.name, phase, reader.stage(), reader.loop(), {}};
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
    Reader reader(c, args);
    TN_ASSIGN_OR_RETURN(const std::tuple<A...> typed, Read<A...>(&reader));
    return std::apply([&](const A&... arg) { return Fn(c, arg...); }, typed);
  }
};

// The one step that is of no stage.
Expected<Made> SpecializeAll(const Call& c, Phase phase, const Values& args) {
  Reader reader(c, args);
  TN_ASSIGN_OR_RETURN(const std::tuple<Text> condition, Read<Text>(&reader));
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

// Keeps a choice that went well.
Status StageSchedule::Chosen(Schedule next, const TraceStep& asked) {
  TN_RETURN_IF_ERROR(next.status());
  steps_.steps.push_back({asked.primitive, asked.args, next.trace().steps.back().results});
  state_.base = std::move(next);
  return Ok();
}

Expected<int64_t> StageSchedule::Decide(const std::string& name, const std::vector<int64_t>& domain,
                                        int64_t guess) {
  Schedule next = state_.base;
  const int64_t value = next.Decide(name, domain, guess);
  TN_RETURN_IF_ERROR(Chosen(std::move(next), {"decide", {name, domain, guess}, {}}));
  return value;
}

Expected<int64_t> StageSchedule::SampleCategorical(const std::string& name,
                                                   const std::vector<int64_t>& candidates,
                                                   const std::vector<double>& probabilities) {
  Schedule next = state_.base;
  const int64_t value = next.SampleCategorical(name, candidates, probabilities);
  const TraceStep step{"sample_categorical", {name, candidates, probabilities}, {}};
  TN_RETURN_IF_ERROR(Chosen(std::move(next), step));
  return value;
}

Expected<std::vector<int64_t>> StageSchedule::SamplePerfectTile(const std::string& name,
                                                                LoopId loop, int64_t parts,
                                                                int64_t max_innermost) {
  const StageInfo& stage = state_[state_[loop].stage];
  TN_ASSIGN_OR_RETURN(const std::string found, RootName(loop));
  Schedule next = state_.base;
  const std::vector<int64_t> values = next.SamplePerfectTile(name, found, parts, max_innermost);
  const TraceStep step{
      kPerfectTile, {name, stage.name, state_[loop].name, parts, max_innermost}, {}};
  TN_RETURN_IF_ERROR(Chosen(std::move(next), step));
  return values;
}

// The engine's name of a loop that a stage was made with.
Expected<std::string> StageSchedule::RootName(LoopId loop) const {
  const StageInfo& stage = state_[state_[loop].stage];
  TN_ASSIGN_OR_RETURN(LoopNames names, RootNames(stage, state_.base, ""));
  if (!names[loop].empty()) return names[loop];
  return MakeError(fmt::format(
      "sample_perfect_tile: '{}' is no loop that an operation was made with", state_[loop].name));
}

Status StageSchedule::ReplayChoice(const TraceStep& choice) {
  TraceStep step = choice;
  if (choice.primitive == kPerfectTile) {  // whose loop is a stage's here
    const Call call{state_, kPerfectTile};
    Reader reader(call, choice.args);
    Text name;
    StageId stage{};
    Loop loop;
    AttrValue parts, most;
    reader.Take(&name);
    if (reader.ok()) reader.Take(&stage);
    if (reader.ok()) reader.Take(&loop);
    if (reader.ok()) reader.Take(&parts);
    if (reader.ok()) reader.Take(&most);
    reader.End();
    if (!reader.ok()) return reader.errors();
    TN_ASSIGN_OR_RETURN(const std::string found, RootName(loop.id));
    step.args = {name, found, parts, most};
  }
  Schedule next = state_.base;
  tenon::ReplayChoice(&next, step);
  return Chosen(std::move(next), choice);
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
