// Choices: what a schedule leaves open, so that its trace is a template. And replay, which fills
// templates in.
//
// A choice is a step of the trace with a name, a domain and a guess; what depends on it mentions it
// as "$name" where a number would stand, or in a product, "$rows*4". The trace is then a template:
//
//   4 = decide("rows", [2, 4, 8], 4)
//   i.0, i.1 = split("i", ["-1", "$rows"])
//
// Replaying it takes, for each choice, what the caller decides, else what the trace has in it if
// that is still in the domain, else the guess; the numbers are put in where a step is run (run.cc),
// so a trace never holds a number that a choice made. A tile (sample_perfect_tile) is several
// choices whose product is the loop's extent: values that do not multiply to it any more, since the
// extent is another, are guessed anew.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "schedule/steps.h"
#include "support/strings.h"

namespace tenon {

using Ints = std::vector<int64_t>;

namespace {

constexpr const char* kDecide = "decide";
constexpr const char* kCategorical = "sample_categorical";
constexpr const char* kPerfectTile = "sample_perfect_tile";

bool Has(const Ints& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::optional<int64_t> ToInt(const std::string& text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Names Texts(const Ints& values) {
  Names out;
  for (int64_t v : values) out.push_back(std::to_string(v));
  return out;
}

Ints Values(const Names& texts) {
  Ints out;
  for (const std::string& text : texts) {
    if (std::optional<int64_t> value = ToInt(text)) out.push_back(*value);
  }
  return out;
}

std::string PartName(const std::string& name, size_t part) {
  return name + "." + std::to_string(part);
}

}  // namespace

bool Schedule::Steps::IsChoice(const std::string& primitive) {
  return primitive == kDecide || primitive == kCategorical || primitive == kPerfectTile;
}

int64_t Schedule::Steps::Choose(Schedule& s, const std::string& name, const Ints& domain,
                                int64_t guess) {
  auto it = s.choices_.find(name);
  int64_t chosen = it != s.choices_.end() && Has(domain, it->second) ? it->second : guess;
  s.decided_[name] = chosen;
  return chosen;
}

namespace {

// Of decide: a guess of the domain. Of sample_categorical: a probability for each of it.
std::optional<Diagnostic> NoChoice(const std::string& primitive, const primitive::Args& args) {
  const Ints& domain = std::get<Ints>(args[1]);
  if (primitive == kDecide) {
    const auto* guess = std::get_if<int64_t>(&args[2]);
    if (guess != nullptr && Has(domain, *guess)) return std::nullopt;
    return MakeError(Schedule::Steps::Heading(primitive, args) +
                     ": the guess is not in the domain");
  }
  const auto* probabilities = std::get_if<std::vector<double>>(&args[2]);
  const bool each = probabilities != nullptr && probabilities->size() == domain.size();
  const std::string heading = Schedule::Steps::Heading(primitive, args);
  if (!each || domain.empty())
    return MakeError(heading + ": expected one probability per candidate");
  double sum = 0;
  for (double p : *probabilities) {
    sum += p;
    if (p >= 0 && p <= 1) continue;
    return MakeError(heading + ": expected probabilities from 0 to 1");
  }
  constexpr double kRounding = 1e-3;
  if (std::abs(sum - 1) <= kRounding) return std::nullopt;
  return MakeError(heading + ": expected probabilities that add up to 1");
}

}  // namespace

int64_t Schedule::Decide(const std::string& name, Ints domain, int64_t guess) {
  if (!ok()) return guess;
  primitive::Args args = {name, domain, guess};
  if (auto error = NoChoice(kDecide, args)) {
    Steps::Fail(*this, {*error});
    return guess;
  }
  int64_t chosen = Steps::Choose(*this, name, domain, guess);
  trace_.steps.push_back({kDecide, std::move(args), {std::to_string(chosen)}});
  return chosen;
}

int64_t Schedule::SampleCategorical(const std::string& name, Ints candidates,
                                    std::vector<double> probabilities) {
  if (!ok()) return 0;
  primitive::Args args = {name, candidates, probabilities};
  if (auto error = NoChoice(kCategorical, args)) {
    Steps::Fail(*this, {*error});
    return 0;
  }
  auto best = std::max_element(probabilities.begin(), probabilities.end());
  int64_t guess = candidates[static_cast<size_t>(best - probabilities.begin())];
  int64_t chosen = Steps::Choose(*this, name, candidates, guess);
  trace_.steps.push_back({kCategorical, std::move(args), {std::to_string(chosen)}});
  return chosen;
}

namespace {

// The innermost part as large as it may be, the rest outermost.
Ints GuessTile(int64_t extent, int64_t parts, int64_t most) {
  Ints out(static_cast<size_t>(parts), 1);
  if (parts > 1) {
    int64_t inner = std::min(extent, most);
    while (extent % inner != 0) --inner;
    out.back() = inner;
  }
  out[0] = extent / (parts > 1 ? out.back() : 1);
  return out;
}

// The factors multiply to the extent exactly, and the innermost is not too large.
bool IsTile(const Ints& factors, int64_t extent, int64_t parts, int64_t most) {
  if (static_cast<int64_t>(factors.size()) != parts) return false;
  int64_t product = 1;
  for (int64_t f : factors) {
    if (f < 1 || f > extent || __builtin_mul_overflow(product, f, &product)) return false;
  }
  return product == extent && (parts == 1 || factors.back() <= most);
}

}  // namespace

Ints Schedule::Steps::ChooseTile(Schedule& s, primitive::Args args, const Ints& before) {
  const auto* name = std::get_if<std::string>(&args[0]);
  const auto* loop = std::get_if<std::string>(&args[1]);
  const auto* parts = std::get_if<int64_t>(&args[2]);
  const auto* most = std::get_if<int64_t>(&args[3]);
  constexpr int64_t kMostParts = 16;
  auto fail = [&](const std::string& reason) {
    Fail(s, {MakeError(Heading(kPerfectTile, args) + ": " + reason)});
    return Ints();
  };
  if (name == nullptr || loop == nullptr || parts == nullptr || most == nullptr || *parts < 1 ||
      *parts > kMostParts || *most < 1) {
    return fail("expected a name, a loop, 1 to 16 parts and a positive largest innermost factor");
  }
  const Body body(s.func());
  Expected<const primitive::Place*> place = body.NeedLoop(*loop);
  if (!place) {
    for (Diagnostic& d : place.errors()) d.message = Heading(kPerfectTile, args) + d.message;
    Fail(s, place.errors());
    return {};
  }
  const int64_t extent = AsInt((*place)->loop()->extent).value_or(-1);
  if (extent < 1) return fail("expected a constant extent of at least 1");
  Ints chosen = IsTile(before, extent, *parts, *most) ? before : GuessTile(extent, *parts, *most);
  Ints wanted = chosen;
  for (size_t i = 0; i < wanted.size(); ++i) {
    auto it = s.choices_.find(PartName(*name, i));
    if (it != s.choices_.end()) wanted[i] = it->second;
  }
  if (IsTile(wanted, extent, *parts, *most)) chosen = wanted;
  for (size_t i = 0; i < chosen.size(); ++i) s.decided_[PartName(*name, i)] = chosen[i];
  s.trace_.steps.push_back({kPerfectTile, std::move(args), Texts(chosen)});
  return chosen;
}

Ints Schedule::SamplePerfectTile(const std::string& name, const std::string& loop, int64_t parts,
                                 int64_t max_innermost) {
  Ints out;
  if (ok()) out = Steps::ChooseTile(*this, {name, loop, parts, max_innermost}, {});
  if (out.empty()) out.resize(static_cast<size_t>(std::clamp<int64_t>(parts, 0, 16)), 1);
  return out;
}

std::map<std::string, int64_t> Trace::Decisions() const {
  std::map<std::string, int64_t> out;
  for (const TraceStep& step : steps) {
    if (!Schedule::IsChoice(step.primitive) || step.args.empty()) continue;
    const auto* name = std::get_if<std::string>(&step.args[0]);
    Ints values = Values(step.results);
    if (name == nullptr || values.size() != step.results.size()) continue;
    for (size_t i = 0; i < values.size(); ++i) {
      out[step.primitive == kPerfectTile ? PartName(*name, i) : *name] = values[i];
    }
  }
  return out;
}

bool Schedule::IsChoice(const std::string& primitive) { return Steps::IsChoice(primitive); }

void Schedule::Steps::ReplayChoice(Schedule& s, const TraceStep& step) {
  auto malformed = [&] {
    Fail(s, {MakeError("replay: " + Heading(step.primitive, step.args) +
                       " is not what a choice looks like")});
  };
  const primitive::Args& args = step.args;
  Ints before = Values(step.results);
  if (step.primitive == kPerfectTile) {
    if (args.size() != 4) return malformed();
    ChooseTile(s, args, before);
    return;
  }
  const auto* name = args.size() == 3 ? std::get_if<std::string>(&args[0]) : nullptr;
  const auto* domain = args.size() == 3 ? std::get_if<Ints>(&args[1]) : nullptr;
  if (name == nullptr || domain == nullptr || before.size() != 1 || !Has(*domain, before[0])) {
    return malformed();
  }
  if (auto error = NoChoice(step.primitive, args)) return Fail(s, {*error});
  int64_t chosen = Choose(s, *name, *domain, before[0]);
  s.trace_.steps.push_back({step.primitive, args, {std::to_string(chosen)}});
}

Names Schedule::Steps::ApplyByName(Schedule& s, const std::string& primitive, primitive::Args args,
                                   Renames* renamed) {
  if (primitive::FindPrimitive(primitive) == nullptr) {
    Diagnostic d = MakeError("schedule: no primitive is named " + QuoteJson(primitive));
    std::string near = NearestWord(primitive, primitive::PrimitiveNames());
    if (!near.empty()) d.notes.push_back("did you mean " + near + "?");
    Fail(s, {d});
    return {};
  }
  return Apply(s, primitive.c_str(), std::move(args), 0, renamed);
}

Status Schedule::Replay(const Trace& trace) {
  for (const TraceStep& step : trace.steps) {
    if (!ok()) return status();
    if (Steps::IsChoice(step.primitive)) {
      Steps::ReplayChoice(*this, step);
      continue;
    }
    Names got = Steps::ApplyByName(*this, step.primitive, step.args);
    if (ok() && got != step.results) {
      Steps::Fail(*this, {MakeError("replay: " + Steps::Heading(step.primitive, step.args) +
                                    " gave [" + Join(got, ", ") + "], the trace expects [" +
                                    Join(step.results, ", ") + "]")});
    }
  }
  return status();
}

}  // namespace tenon
