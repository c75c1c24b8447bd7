// tenon inspect FILE
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "artifact_source.h"
#include "compile_arguments.h"
#include "console.h"
#include "describe.h"
#include "driver/describe_model.h"
#include "log_text.h"
#include "support/strings.h"
#include "tune/log.h"
#include "verbs.h"

namespace tenon::tools {

namespace {

struct Arguments {
  std::string file;
  CompileArguments how;
  bool json = false, verify = false;
};

// Text of a value from a file: on one line, and not too long.
std::string Shown(std::string text) {
  constexpr size_t kMost = 160;
  for (char& c : text) c = c == '\n' || c == '\t' ? ' ' : c;
  if (text.size() <= kMost) return text;
  return fmt::format("{}… ({} bytes)", text.substr(0, kMost), text.size());
}

std::string TextOf(const Json& value) {
  return value.is_string() ? Shown(value.get<std::string>()) : value.dump();
}

void PrintTensors(const char* title, const Json& tensors) {
  Print("{}:\n", title);
  for (const Json& t : tensors) {
    std::vector<std::string> dims;
    if (t.contains("shape")) {
      for (const Json& d : t["shape"]) dims.push_back(TextOf(d));
    }
    std::string shape = !t.contains("shape") ? "of unknown shape"
                        : dims.empty()       ? "scalar"
                                             : Join(dims, " x ");
    Print("  {:<24} {} {}\n", TextOf(t["name"]), TextOf(t["dtype"]), shape);
  }
}

// A largest size of -1 is none.
void PrintDims(const Json& dims) {
  for (const Json& d : dims) {
    const auto most = d["max"].get<int64_t>();
    const std::string range = most >= 0 ? fmt::format("{} to {}", d["min"].dump(), most)
                                        : fmt::format("at least {}", d["min"].dump());
    Print("dim {}: {} in steps of {}\n", TextOf(d["name"]), range, d["step"].dump());
  }
}

void PrintMetadata(const Json& json) {
  if (!json.contains("metadata")) return;
  Print("metadata:\n");
  for (const auto& [key, value] : json["metadata"].items())
    Print("  {}: {}\n", Shown(key), TextOf(value));
}

void PrintModel(const Json& json) {
  const std::string producer = TextOf(json["producer"]);
  Print("ONNX model, IR version {}{}\n", json["ir_version"].dump(),
        producer.empty() ? "" : ", made by " + producer);
  if (json.contains("opset")) {
    for (const auto& [domain, version] : json["opset"].items()) {
      Print("operator set {} {}\n", Shown(domain), version.dump());
    }
  }
  PrintTensors("inputs", json["inputs"]);
  PrintTensors("outputs", json["outputs"]);
  if (json.contains("dims")) PrintDims(json["dims"]);
  std::vector<std::pair<std::string, int64_t>> operators;
  for (const auto& [name, count] : json["operators"].items()) operators.emplace_back(name, count);
  std::stable_sort(operators.begin(), operators.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Print("operators:\n");
  for (const auto& [name, count] : operators) Print("  {:<24} {}\n", Shown(name), count);
  Print("weights: {}", json["weights"].dump());
  if (json.contains("weights_bytes"))
    Print(", {:.1f} MB", json["weights_bytes"].get<double>() / 1e6);
  Print("\n");
  PrintMetadata(json);
}

void PrintKernels(const Json& kernels) {
  Print("kernels:\n  {:<24} {:<14} {:>8} {:>12} {:>12} {:>12}\n", "name", "kind", "launches",
        "MFLOP", "KB", "est. µs");
  for (const Json& k : kernels) {
    Print("  {:<24} {:<14} {:>8} {:>12.3f} {:>12.1f} {:>12.1f}\n", TextOf(k["name"]),
          TextOf(k["kind"]), k.value("launches", int64_t{0}), k.value("flops", 0.0) / 1e6,
          k.value("bytes", 0.0) / 1e3, k.value("estimated_us", 0.0));
  }
}

// Where what a device computes decides what its host does.
void PrintWaits(const Json& function) {
  const int64_t waits = function.value("waits", int64_t{0});
  if (waits == 0) return;
  const int64_t in_loops = function.value("waits_in_loops", int64_t{0});
  Print("a call waits for the device in {} place{}, {} of them in loops\n", waits,
        waits == 1 ? "" : "s", in_loops);
}

void PrintArtifact(const Json& json) {
  Print("Tenon library, ABI version {}, {:.1f} MB, {:.1f} MB of it weights\n", json["abi"].dump(),
        json["file_bytes"].get<double>() / 1e6, json.value("weights_bytes", 0.0) / 1e6);
  if (json.contains("params")) Print("weights: in {}, beside it\n", TextOf(json["params"]));
  Print("target: {}\n", json["target"].get<std::string>());
  Print("triple: {}\n", TextOf(json["triple"]));
  std::vector<std::string> features;
  for (const Json& f : json["features"]) features.push_back(TextOf(f));
  Print("CPU features needed: {}\n", features.empty() ? "none" : Join(features, " "));
  for (const Json& f : json["functions"]) {
    Print("function {}\n", TextOf(f["name"]));
    PrintTensors("inputs", f["inputs"]);
    PrintTensors("outputs", f["outputs"]);
    if (f.value("makes_outputs", false))
      Print("sizes of outputs depend on values: the call makes them\n");
    PrintWaits(f);
  }
  PrintDims(json["dims"]);
  if (!json["kernels"].empty()) PrintKernels(json["kernels"]);
  Print("working memory: {:.1f} MB\n", json.value("arena_bytes", 0.0) / 1e6);
  if (json.contains("plan")) Print("memory plan:\n{}\n", json["plan"].get<std::string>());
  PrintMetadata(json);
  for (const auto& [what, hash] : json["hashes"].items())
    Print("hash of {}: {}\n", what, TextOf(hash));
}

Expected<int> InspectFile(Arguments& args, const Common& common) {
  if (tune::IsLog(args.file)) {
    TN_ASSIGN_OR_RETURN(const tune::LogContents contents, tune::ReadLog(args.file));
    PrintLog(contents, args.json);
    FlushOutput();
    return contents.skipped.empty() ? kDone : Report(contents.skipped, common);
  }
  TN_ASSIGN_OR_RETURN(bool compiled, IsArtifact(args.file));
  args.how.options.model = args.file;
  Diagnostics problems;
  TN_ASSIGN_OR_RETURN(Json json, compiled ? DescribeArtifact(args.file, &problems)
                                          : driver::DescribeModel(args.how.options, &problems));
  if (args.verify && !compiled) return MakeError("a model has no checksums", {args.file});
  if (args.verify) TN_RETURN_IF_ERROR(VerifyArtifact(args.file, json));
  if (args.json) {
    WriteOut(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } else if (compiled) {
    PrintArtifact(json);
  } else {
    PrintModel(json);
  }
  if (args.verify && !args.json) Print("verified: every byte is as it was written\n");
  FlushOutput();
  return problems.empty() ? kDone : Report(problems, common);
}

// What a library says about itself may have been changed: parts may be missing, or of another type.
Expected<int> Inspect(Arguments& args, const Common& common) {
  try {
    return InspectFile(args, common);
  } catch (const Json::exception&) {
    FlushOutput();
    return MakeError("the library's information about itself is damaged", {args.file});
  }
}

}  // namespace

Run AddInspect(CLI::App& app, const Common& common) {
  auto args = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("inspect", "say what a model or a compiled library holds");
  verb->footer(
      "Of a model: inputs, outputs, operators, metadata, and everything that keeps it from being\n"
      "compiled (exit 1). Of a library: its functions, kernels, memory plan and target.");
  verb->add_option("file", args->file, "an ONNX file, a compiled library or a log of tuning")
      ->required();
  verb->add_flag("--verify", args->verify,
                 "compare every byte of a library and its weights with their checksums");
  verb->add_flag("--json", args->json, "print one JSON object instead");
  args->how.AddTo(verb);
  return [args, &common]() -> int {
    if (Status status = args->how.Finish(); !status) return ReportUsage(status.errors(), common);
    Expected<int> status = Inspect(*args, common);
    return status ? *status : Report(status.errors(), common);
  };
}

}  // namespace tenon::tools
