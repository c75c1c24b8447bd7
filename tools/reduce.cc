// tenon reduce MODEL -o OUT
#include <fmt/format.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "console.h"
#include "frontend/onnx/reduce_model.h"
#include "message_gist.h"
#include "support/atomic_file.h"
#include "support/file.h"
#include "temporary_folder.h"
#include "verbs.h"

namespace tenon::tools {

namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string model, output, when;
  bool quiet = false;
};

// A word of a shell's command line.
std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// How a command ended, and what it wrote.
struct Ended {
  int status = -1;  // of waitpid
  std::string text;
};
Ended Shell(const std::string& command) {
  Ended out;
  std::fflush(nullptr);
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return out;
  std::array<char, 4096> part;
  for (size_t n; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    out.text.append(part.data(), n);
  out.status = pclose(pipe);
  return out;
}

// What is asked of candidates. Each is a file in a folder of its own.
class Question {
 public:
  Question(const Arguments& args, std::string folder)
      : args_(args), candidate_(folder + "/candidate.onnx"), library_(folder + "/candidate.so") {}

  bool Holds(const std::string& model) {
    ++trials_;
    if (!WriteFile(candidate_, model)) return false;
    const Ended ended = Shell(Command());
    if (!args_.when.empty()) return WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0;
    if (ended.status == 0) return false;
    if (first_ && (ended.status != status_ || GistOf(ended.text) != gist_)) return false;
    if (!first_) first_ = true, status_ = ended.status, gist_ = GistOf(ended.text);
    return true;
  }
  int trials() const { return trials_; }

 private:
  std::string Command() const {
    if (args_.when.empty()) {
      const fs::path folder = fs::absolute(args_.model).parent_path();
      std::error_code none;
      return fmt::format("{} compile {} -o {} --quiet --external-data-dir {} 2>&1",
                         Quoted(fs::read_symlink("/proc/self/exe", none)), Quoted(candidate_),
                         Quoted(library_), Quoted(folder));
    }
    std::string command = args_.when;
    size_t at = command.find("{}");
    if (at == std::string::npos) return command + " " + Quoted(candidate_);
    for (; at != std::string::npos; at = command.find("{}", at)) {
      command.replace(at, 2, Quoted(candidate_));
      at += Quoted(candidate_).size();
    }
    return command;
  }

  const Arguments& args_;
  const std::string candidate_, library_;
  bool first_ = false;  // whether it is known what the model itself says
  int status_ = 0, trials_ = 0;
  std::string gist_;
};

Status Reduce(const Arguments& args) {
  TN_ASSIGN_OR_RETURN(const std::string model, ReadFile(args.model));
  TN_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Make());
  Question question(args, folder.path());
  TN_RETURN_IF_ERROR(onnx::ModelText(model));  // a file that is no model has no smaller one
  if (!question.Holds(model)) {
    return MakeError(args.when.empty()
                         ? "the model compiles; say with --when what smaller ones must still do"
                         : "the command of --when does not succeed for the model itself",
                     {args.model});
  }
  size_t bytes = model.size();
  const auto holds = [&](const std::string& smaller) {
    if (!question.Holds(smaller)) return false;
    if (!args.quiet && smaller.size() < bytes)
      PrintError("{} trials: {} bytes\n", question.trials(), smaller.size());
    bytes = smaller.size();
    return true;
  };
  TN_ASSIGN_OR_RETURN(const std::string small, onnx::ReduceModel(model, holds));
  TN_RETURN_IF_ERROR(WriteFile(args.output, small));
  TN_ASSIGN_OR_RETURN(const std::string text, onnx::ModelText(small));
  Print("{}", text);
  return Ok();
}

}  // namespace

Run AddReduce(CLI::App& app, const Common& common) {
  auto args = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("reduce", "find the smallest model that still shows a fault");
  verb->footer(
      "Takes a model apart, step by step, and keeps what still shows the fault: without --when, "
      "that\n"
      "compiling it ends with the same exit status and, names and numbers aside, the same "
      "message.\n"
      "  tenon reduce model.onnx -o small.onnx\n"
      "  tenon reduce model.onnx -o small.onnx --when 'timeout 60 ./differs.sh {}'\n"
      "Prints the small model as text.");
  verb->add_option("model", args->model, "an ONNX file")->required();
  verb->add_option("-o,--output", args->output, "where the small model goes")->required();
  verb->add_option("--when", args->when,
                   "a command that exits with 0 for models that show the fault; {} stands for the "
                   "model's path");
  verb->add_flag("-q,--quiet", args->quiet, "no progress");
  return [args, &common]() -> int {
    if (Status status = Reduce(*args); !status)
      return Report(InFile(status.errors(), args->model), common);
    return kDone;
  };
}

}  // namespace tenon::tools
