// tenon-opt: loop IR or a graph as text in, the trace of a schedule and any list of passes, text
// out. The tool of text tests and of curious people.
//
// Both kinds of text take one road, which the traits of opt_texts.h fill in: read, verify, replay a
// trace, run the passes that are for this kind, print or interpret. A graph may leave it for that
// of loop IR, with the passes that are left:
//
//   tenon-opt --passes=fuse,lower_blocks --point 'mm: rows {…}' --lower mm
//   graph → fuse → the plan on mm → its kernel → lower_blocks → text of loop IR
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <optional>

#include "intrin/tile_intrinsic.h"
#include "ir/print.h"
#include "opt_plans.h"
#include "opt_texts.h"
#include "opt_weights.h"
#include "support/check.h"
#include "support/file.h"
#include "support/strings.h"

namespace tenon {
namespace {

constexpr int kInputFault = 1, kUsage = 2, kBug = 4, kLimit = 5;

struct Options {
  std::string file = "-";
  std::vector<std::string> passes, weights;
  std::string target, replay, stages;
  std::string verify = "schedulable";
  bool parse_only = false, list_passes = false, list_rules = false, list_intrinsics = false;
  bool remarks = false;
  bool check = false, interpret = false;
  InterpretOptions run;
  std::optional<std::string> space;  // a kernel's node; "": of all
  std::vector<std::string> points;
  std::string lower;
  bool prices = false, json = false;

  bool LooksAtPlans() const { return space || !points.empty() || !lower.empty(); }
};

int Report(const Diagnostics& errors) {
  int status = kInputFault;
  for (const Diagnostic& d : errors) {
    fmt::print(stderr, "{}\n", d.ToString());
    if (d.kind == ErrorKind::kLimit) status = kLimit;
  }
  return status;
}

// That printing and reading gives the same again is what --parse-only proves.
template <class Text>
int CheckRoundTrip(const typename Text::Ir& ir, const graph::WeightSource& weights) {
  const std::string text = Text::Print(ir);
  auto again = Text::Parse(text, "<printed>", weights);
  if (!again) return Report(again.errors()), kBug;
  std::string where;
  if (!Text::Equal(ir, *again, &where)) {
    fmt::print(stderr, "tenon-opt: the printed text reads back differently at {}\n", where);
    return kBug;
  }
  if (Text::Print(*again) != text) {
    fmt::print(stderr, "tenon-opt: the printed text prints differently once read\n");
    return kBug;
  }
  fmt::print("{}", text);
  return 0;
}

// Prints what was refused, as comments in front of the result.
template <class Text>
Expected<typename Text::Ir> Replay(const Options& options, const std::string& input,
                                   const typename Text::Ir& ir) {
  const bool stages = !options.stages.empty();
  const std::string& file = stages ? options.stages : options.replay;
  std::string trace = TraceInText(input);
  if (file != "-") {
    TN_ASSIGN_OR_RETURN(trace, ReadFile(file));
  }
  std::vector<std::string> refusals;
  TN_ASSIGN_OR_RETURN(typename Text::Ir out,
                      Text::Replay(ir, trace, stages, options.check, &refusals));
  for (const std::string& refusal : refusals) {
    for (const std::string& line : Split(refusal, '\n')) fmt::print("// {}\n", line);
  }
  return out;
}

template <class Text>
Expected<std::optional<Target>> TargetFor(const Options& options, const typename Text::Ir& ir) {
  const std::string text = options.target.empty() ? Text::TargetText(ir) : options.target;
  if (text.empty()) return std::optional<Target>();
  TN_ASSIGN_OR_RETURN(Target target, Target::Parse(text));
  return std::optional<Target>(std::move(target));
}

// Runs those passes, from `*next` on, that are for texts of this kind. Answers an exit status.
template <class Text>
int RunPasses(const Options& options, const Target* target, size_t* next, typename Text::Ir* ir,
              std::vector<std::string>* remarks) {
  const bool verify = options.verify != "none";
  if (Status ok = verify ? Text::Verify(*ir) : Ok(); !ok) return Report(ok.errors());
  for (; *next < options.passes.size(); ++*next) {
    const std::string& name = options.passes[*next];
    const auto* pass = Text::FindPass(name);
    if (!pass) return 0;
    Expected<typename Text::Ir> after =
        Text::Run(*pass, *ir, target, options.remarks ? remarks : nullptr);
    if (!after) return Report(after.errors());
    *ir = std::move(*after);
    if (Status ok = verify ? Text::Verify(*ir) : Ok(); !ok) {
      fmt::print(stderr, "tenon-opt: after {}:\n{}", name, Text::Print(*ir));
      return Report(ok.errors()), kBug;
    }
  }
  return 0;
}

template <class Text>
int Finish(const Options& options, const typename Text::Ir& ir, size_t next,
           const std::vector<std::string>& remarks) {
  if (next < options.passes.size()) {
    fmt::print(stderr, "tenon-opt: wrong usage: the pass '{}' does not run on {}\n",
               options.passes[next], Text::kWhat);
    return kUsage;
  }
  if (options.verify == "lowered") {
    if (Status ok = Text::VerifyLowered(ir); !ok) return Report(ok.errors());
  }
  if (options.interpret) {
    Expected<std::string> results = Text::Interpret(ir, options.run);
    if (!results) return Report(results.errors());
    fmt::print("{}", *results);
  } else {
    fmt::print("{}", Text::Print(ir));
  }
  for (const std::string& remark : remarks) fmt::print(stderr, "remark: {}\n", remark);
  return 0;
}

// What is asked of a graph's plans: points that are chosen, then a space, or a group's loop IR and
// the rest of the passes on it.
int RunPlans(const Options& options, const Target& target, size_t next, graph::Graph g,
             std::vector<std::string>* remarks) {
  const Machine machine = Machine::Of(target);
  const graph::GraphPassContext context{&machine};
  for (const std::string& text : options.points) {
    Expected<graph::Graph> planned = WithPointText(g, text, context);
    if (!planned) return Report(planned.errors());
    g = std::move(*planned);
    if (Status ok = graph::Verify(g); !ok) return Report(ok.errors()), kBug;
  }
  if (options.space) {
    Expected<std::string> text =
        SpaceText(g, *options.space, context, options.prices, options.json);
    if (!text) return Report(text.errors());
    fmt::print("{}", *text);
    return 0;
  }
  if (options.lower.empty()) return Finish<GraphText>(options, g, next, *remarks);
  Expected<Module> module = LowerText(g, options.lower, machine);
  if (!module) return Report(module.errors());
  if (int status = RunPasses<LoopText>(options, &target, &next, &*module, remarks)) return status;
  return Finish<LoopText>(options, *module, next, *remarks);
}

template <class Text>
int RunAll(const Options& options, const std::string& input, typename Text::Ir ir) {
  auto target = TargetFor<Text>(options, ir);
  if (!target) return Report(target.errors());
  if (!options.replay.empty() || !options.stages.empty()) {
    const bool verify = options.verify != "none";
    if (Status ok = verify ? Text::Verify(ir) : Ok(); !ok) return Report(ok.errors());
    Expected<typename Text::Ir> scheduled = Replay<Text>(options, input, ir);
    if (!scheduled) return Report(scheduled.errors());
    ir = std::move(*scheduled);
  }
  std::vector<std::string> remarks;
  size_t next = 0;
  const Target* known = *target ? &**target : nullptr;
  if (int status = RunPasses<Text>(options, known, &next, &ir, &remarks)) return status;
  if constexpr (std::is_same_v<Text, GraphText>) {
    if (options.LooksAtPlans()) {
      TN_CHECK(known, "graphs have a target");
      return RunPlans(options, *known, next, std::move(ir), &remarks);
    }
  }
  return Finish<Text>(options, ir, next, remarks);
}

template <class Text>
int RunText(const Options& options, const std::string& text) {
  const graph::WeightSource weights = FindWeights(options.file, options.weights);
  auto ir = Text::Parse(text, options.file == "-" ? "<stdin>" : options.file, weights);
  if (!ir) return Report(ir.errors());
  if (options.parse_only) return CheckRoundTrip<Text>(*ir, weights);
  if (options.LooksAtPlans() && !std::is_same_v<Text, GraphText>) {
    fmt::print(stderr, "tenon-opt: wrong usage: --space, --point and --lower are for graphs\n");
    return kUsage;
  }
  return RunAll<Text>(options, text, std::move(*ir));
}

Expected<std::string> ReadInput(const std::string& file) {
  if (file != "-") return ReadFile(file);
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

// A text of graphs starts with the word; comments before it do not count.
bool IsGraph(std::string_view text) {
  for (text = Trim(text); text.starts_with("//"); text = Trim(text)) {
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
  return text.starts_with("graph");
}

// An operand as a schedule sees it: its layout follows from the operation.
std::string OperandText(const Buffer& buffer) {
  auto plain = MakeRef<BufferNode>(*buffer);
  plain->layout = nullptr;
  return ToString(plain);
}

// Columns between tabs: name, what the target must have, dims of the operands' strides, operands.
int ListIntrinsics() {
  for (const TileIntrinsic& row : BuiltinTileIntrinsics().rows()) {
    auto meaning = MeaningOf(row);
    if (!meaning) return Report(meaning.errors());
    const PrimFunc& func = **meaning;
    std::vector<std::string> dims, operands;
    for (size_t i = 0; i < func.dims.size(); ++i) {
      const int64_t step = func.dim_step[i];
      dims.push_back(func.dims[i]->name + (step > 1 ? fmt::format(" step {}", step) : ""));
    }
    for (const Buffer& b : func.buffers) operands.push_back(OperandText(b));
    fmt::print("{}\t{}\t{}\t{}\n", row.name, row.feature, fmt::join(dims, ", "),
               fmt::join(operands, "; "));
  }
  return 0;
}

int Run(const Options& options) {
  if (options.list_intrinsics) return ListIntrinsics();
  if (options.list_passes) {
    for (const auto* passes : {&graph::GraphPasses(), &graph::PlanPasses()}) {
      for (const auto& pass : *passes) fmt::print("graph {:<22} {}\n", pass.name, pass.doc);
    }
    for (const PassInfo& pass : LoopPasses()) fmt::print("loop  {:<22} {}\n", pass.name, pass.doc);
    return 0;
  }
  if (options.list_rules) {
    for (const VerifyRule& rule : VerifyRules()) {
      fmt::print("{:<12} {:<15} {}\n", rule.stage == Stage::kLowered ? "lowered" : "always",
                 rule.name, rule.doc);
    }
    return 0;
  }
  auto text = ReadInput(options.file);
  if (!text) return Report(text.errors());
  return IsGraph(*text) ? RunText<GraphText>(options, *text) : RunText<LoopText>(options, *text);
}

std::string CheckPassName(const std::string& name) {
  std::vector<std::string> names;
  for (const PassInfo& pass : LoopPasses()) names.push_back(pass.name);
  for (const auto* passes : {&graph::GraphPasses(), &graph::PlanPasses()}) {
    for (const auto& pass : *passes) names.push_back(pass.name);
  }
  if (std::find(names.begin(), names.end(), name) != names.end()) return "";
  const std::string near = NearestWord(name, names);
  return fmt::format("unknown pass '{}'{}", name,
                     near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
}

void AddInterpretOptions(CLI::App* app, Options* options) {
  InterpretOptions& run = options->run;
  const char* group = "Running a function in the interpreter";
  CLI::Option* interpret =
      app->add_flag("--interpret", options->interpret,
                    "instead of the text, print a function's arguments and what it leaves in them")
          ->group(group);
  app->add_option("--function", run.function, "which; default: the one that no other calls")
      ->group(group)
      ->needs(interpret);
  app->add_option("--dim", run.dims, "a size, as n=8; may be repeated")
      ->group(group)
      ->allow_extra_args(false)
      ->needs(interpret);
  app->add_option("--set", run.values,
                  "a parameter, as A=1,2,3 in row-major order or A=1 for every element; others get "
                  "small integers; may be repeated")
      ->group(group)
      ->allow_extra_args(false)
      ->needs(interpret);
  app->add_option("--seed", run.seed, "of the small integers")->group(group)->needs(interpret);
  app->add_option("--team", run.team, "workers that run the function together, where it asks")
      ->group(group)
      ->check(CLI::Range(1, 64))
      ->needs(interpret);
}

void AddPlanOptions(CLI::App* app, Options* options) {
  const char* group = "How a graph's groups are computed";
  CLI::Option* space =
      app->add_option(
             "--space", options->space,
             "print what the algorithms of each group leave open, or of this one (a node's "
             "name, or %7)")
          ->type_name("[NODE]")
          ->expected(0, 1)
          ->group(group);
  app->add_flag("--prices", options->prices, "with --space: every point and its predicted time")
      ->group(group)
      ->needs(space);
  app->add_flag("--json", options->json, "with --space: as JSON")->group(group)->needs(space);
  app->add_option("--point", options->points,
                  "choose a plan, as 'NODE: algorithm {knob: value, …}'; may be repeated")
      ->group(group)
      ->allow_extra_args(false);
  app->add_option("--lower", options->lower,
                  "the kernel of this node alone as loop IR; passes over loop IR run on it")
      ->type_name("NODE")
      ->group(group)
      ->excludes(space);
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Reads loop IR or a graph as text, runs passes over it and prints the result.",
               "tenon-opt");
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return fmt::format("tenon-opt: wrong usage: {}\nsee tenon-opt --help\n", error.what());
  });
  app.add_option("file", options.file, "the text; - is the standard input")->capture_default_str();
  app.add_option("--passes", options.passes, "passes to run, in order: a,b,c")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Validator(CheckPassName, "PASS"));
  CLI::Option* replay = app.add_option(
      "--replay", options.replay,
      "a file with the trace of a schedule, applied to the one function before any pass; - is the "
      "lines of the text that start with //>");
  app.add_option("--stages", options.stages,
                 "likewise a file with what is asked of the stages of a function of tensors: "
                 "its blocks, as te makes them; carried out before any pass")
      ->excludes(replay);
  app.add_flag(
      "--check", options.check,
      "with --replay or --stages: the schedule must keep the meaning (the interpreter, on small "
      "integers), and the trace must print, store and replay");
  app.add_option("--target", options.target,
                 "what passes compile for; default: what the text says, else this host");
  app.add_option("--verify", options.verify,
                 "none, schedulable (before and after every pass) or lowered (that, and the result "
                 "by the rules of code "
                 "generation)")
      ->check(CLI::IsMember({"none", "schedulable", "lowered"}))
      ->capture_default_str();
  app.add_option("--weights", options.weights,
                 "a file of weights that a graph's constants name, or a folder with them; by "
                 "default they are looked for beside the text and from here; may be repeated")
      ->allow_extra_args(false)
      ->check(CLI::ExistingPath);
  AddInterpretOptions(&app, &options);
  AddPlanOptions(&app, &options);
  app.add_flag("--parse-only", options.parse_only,
               "no passes, no verifier of loops: check that printing round-trips");
  app.add_flag("--remarks", options.remarks, "say what passes could not do and why");
  app.add_flag("--list-passes", options.list_passes, "the passes and what each does");
  app.add_flag("--list-intrinsics", options.list_intrinsics,
               "what tensorize can put in the place of a nest: name, target, strides, operands");
  app.add_flag("--list-rules", options.list_rules, "the rules of the verifier of loop IR");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  if (options.check && options.replay.empty() && options.stages.empty()) {
    fmt::print(stderr,
               "tenon-opt: wrong usage: --check requires --replay or --stages\n"
               "see tenon-opt --help\n");
    return kUsage;
  }
  try {
    return Run(options);
  } catch (const InternalError& error) {
    fmt::print(stderr, "tenon-opt: this is a bug in tenon, please report it: {}\n", error.what());
    return kBug;
  }
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) { return tenon::Main(argc, argv); }
