// tenon: compile, run, measure and look at models. One file per verb.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <new>
#include <sstream>
#include <string_view>
#include <vector>

#include "console.h"
#include "guard.h"
#include "support/check.h"
#include "support/strings.h"
#include "verbs.h"

namespace tenon::tools {

namespace {

// Reports wrong usage in the words that the user asked for; `verb` as "tenon compile".
int WrongUsage(const std::string& message, const std::string& verb, bool json) {
  if (json) {
    Common common;
    common.error_format = "json";
    return ReportUsage({MakeError(message)}, common);
  }
  PrintError("tenon: wrong usage: {}\nsee {} --help\n", message, verb);
  return kWrongUsage;
}

// Whether errors are wanted as JSON, asked of the words themselves: what is wrong may stand before
// the option, and then the parser has not seen it.
bool WantsJson(int argc, char** argv) {
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with("--error-format=")) json = word == "--error-format=json";
    if (word == "--error-format" && i + 1 < argc) json = argv[i + 1] == std::string_view("json");
  }
  return json;
}

// " (did you mean 'compile'?)", or "" where none of the words is near.
std::string Suggestion(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = NearestWord(word, known);
  return near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near);
}

// The verb that the user seems to have meant, where the first word is none.
int ReportUnknownVerb(const std::string& word, const std::map<std::string, Run>& verbs, bool json) {
  std::vector<std::string> names;
  for (const auto& [name, run] : verbs) names.push_back(name);
  return WrongUsage(fmt::format("there is no verb '{}'{}; there are {}", word,
                                Suggestion(word, names), Join(names, ", ")),
                    "tenon", json);
}

// The same of an option: the other words that are left over may be its value.
int ReportUnknownOption(const CLI::App& app, const std::string& verb, bool json) {
  const std::vector<std::string> left = app.remaining(/*recurse=*/true);
  const auto option = std::find_if(left.begin(), left.end(),
                                   [](const std::string& word) { return word.starts_with("-"); });
  if (option == left.end())
    return WrongUsage(fmt::format("nothing is expected of '{}'", Join(left, "', '")), verb, json);
  std::vector<std::string> names;
  std::vector<const CLI::App*> all = {&app};
  for (const CLI::App* chosen : app.get_subcommands()) all.push_back(chosen);
  for (const CLI::App* one : all) {
    for (const CLI::Option* known : one->get_options()) {
      for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
    }
  }
  const std::string word = option->substr(0, option->find('='));
  return WrongUsage(fmt::format("there is no option '{}'{}", word, Suggestion(word, names)), verb,
                    json);
}

int Execute(const Run& run) {
  RemoveOutputsOnSignals();
  try {
    return run();
  } catch (const std::bad_alloc&) {
    PrintError("tenon: error: out of memory\n");
    return kLimitHit;
  } catch (const std::exception& e) {
    PrintError("tenon: this is a bug in tenon, please report it: {}\n", e.what());
    return kBug;
  }
}

int Main(int argc, char** argv) {
  CLI::App app{"Tenon compiles neural networks to small native libraries.", "tenon"};
  app.footer(
      "Start with:\n"
      "  tenon inspect model.onnx              what the model takes and gives\n"
      "  tenon compile model.onnx -o model.so  a library that needs libc alone\n"
      "  tenon run model.so --fill random      call it once\n"
      "  tenon bench model.so                  and measure it\n"
      "  tenon tune model.onnx --log t.log     measure its kernels; compile --log t.log uses that\n"
      "  tenon doctor -o profile.json          what this machine does; compile --profile uses "
      "that\n"
      "  tenon reduce model.onnx -o small.onnx the smallest model with the same fault\n"
      "`tenon VERB --help` describes a verb; docs/command-line.md all of them.\n"
      "Exit status: 0 done, 1 the input is at fault, 2 wrong usage, 3 results differ,\n"
      "4 a bug of tenon, 5 a limit was hit.");
  app.set_version_flag("--version", "tenon " TENON_VERSION);
  app.require_subcommand(0, 1);
  Common common;
  app.add_flag("-v,--verbose", common.verbose, "say more");
  app.add_option("--error-format", common.error_format,
                 "text, or json: each error is an object on a line of its own")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.fallthrough();
  // clang-format off
  const std::map<std::string, Run> verbs = {
      {"compile", AddCompile(app, common)},
      {"run", AddRun(app, common)},
      {"bench", AddBench(app, common)},
      {"inspect", AddInspect(app, common)},
      {"tune", AddTune(app, common)},
      {"log", AddLog(app, common)},
      {"report", AddReport(app, common)},
      {"doctor", AddDoctor(app, common)},
      {"reduce", AddReduce(app, common)},
      {"cache", AddCache(app, common)},
  };
  // clang-format on
  const bool json = WantsJson(argc, argv);
  const auto chosen = [&app] {
    std::string name = app.get_name();
    for (const CLI::App* verb : app.get_subcommands()) name += " " + verb->get_name();
    return name;
  };
  // `tenon help VERB` is what git and cargo say.
  std::vector<const char*> words(argv, argv + argc);
  if (argc > 1 && words[1] == std::string_view("help")) {
    words.erase(words.begin() + 1);
    words.push_back("--help");
  }
  try {
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::ExtrasError&) {
    if (app.get_subcommands().empty())
      return ReportUnknownVerb(app.remaining().front(), verbs, json);
    return ReportUnknownOption(app, chosen(), json);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {  // help and version
      std::ostringstream out;
      app.exit(e, out, out);
      WriteOut(out.str());
      return kDone;
    }
    return WrongUsage(e.what(), chosen(), json);
  }
  if (app.get_subcommands().empty()) {
    PrintError("{}", app.help());
    return kWrongUsage;
  }
  return Execute(verbs.at(app.get_subcommands().front()->get_name()));
}

}  // namespace

}  // namespace tenon::tools

int main(int argc, char** argv) {
  tenon::tools::OpenStandardStreams();
  return tenon::tools::FinishOutput(tenon::tools::Main(argc, argv));
}
