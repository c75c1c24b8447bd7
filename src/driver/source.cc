#include "driver/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "driver/check_options.h"
#include "frontend/onnx/import.h"
#include "support/file.h"
#include "target/kinds.h"

namespace tenon::driver {

namespace {

using Obstacles = std::vector<onnx::Obstacle>;

std::string HashOf(const MappedFile& file, const std::stop_token& stop) {
  constexpr size_t kPiece = size_t{8} << 20;
  Hasher hasher;
  hasher.Int(file.size());
  for (size_t at = 0; at < file.size() && !stop.stop_requested(); at += kPiece) {
    size_t n = std::min(kPiece, file.size() - at);
    hasher.Add(file.bytes().subspan(at, n));
    file.ReleasePages(at, n);
  }
  return hasher.Finish().ToHex();
}

// Constants stand in the order of the model, so the files do too.
std::vector<std::shared_ptr<const graph::WeightFile>> FilesOf(
    std::span<const graph::Graph> graphs) {
  std::vector<std::shared_ptr<const graph::WeightFile>> files;
  std::set<const graph::WeightFile*> seen;
  for (const graph::Graph& g : graphs) {
    for (const graph::Value& v : g.values) {
      const std::shared_ptr<const graph::WeightFile>& file = v.payload.file();
      if (file && seen.insert(file.get()).second) files.push_back(file);
    }
  }
  return files;
}

// What of a network makes a program of it.
struct Needs {
  bool values = false;  // that are no tensors of numbers
  bool ranks = false;   // that only the call knows
};

void Note(std::span<const graph::Step> steps, Needs* needs) {
  for (const graph::Step& step : steps) {
    switch (step.operation) {
      case TN_STEP_PART:
      case TN_STEP_MOVE:
      case TN_STEP_IF:
      case TN_STEP_LOOP:
      case TN_STEP_FAIL: break;
      case TN_STEP_BY_RANK:
      case TN_STEP_BY_LENGTH: needs->ranks = true; break;
      default: needs->values = true;
    }
    for (const graph::StepBody& body : step.bodies) Note(body.steps, needs);
  }
}

const char* WhatNeedsSteps(const graph::Program& program) {
  Needs needs;
  Note(program.steps, &needs);
  for (const auto* list : {&program.inputs, &program.outputs}) {
    for (const graph::ProgramValue& v : *list)
      needs.values |= v.text == "string" || v.text.find('(') != std::string::npos;
  }
  return needs.values  ? "strings, sequences, optional values and maps"
         : needs.ranks ? "tensors whose rank only the call knows"
                       : "branches and loops that decide sizes and ranks";
}

}  // namespace

// What runs a program is a part of libraries for CPUs with an operating system.
const char* WhyNoProgram(const CompileOptions& given) {
  const CompileOptions options = Settled(given);
  if (options.format == OutputFormat::kCSource) return "in C source";
  const Expected<Target> target = Target::Parse(options.target);
  if (!target) return nullptr;
  return IsContained(target->Cpu().triple()) ? "in modules of WebAssembly" : nullptr;
}

Status CheckProgram(const CompileOptions& options, const graph::Program& program) {
  const char* where = program.IsPlain() ? nullptr : WhyNoProgram(options);
  if (!where) return Ok();
  return MakeError(fmt::format("{} are not supported {} yet", WhatNeedsSteps(program), where));
}

Expected<graph::Program> ImportModel(const CompileOptions& options, Obstacles* obstacles) {
  onnx::ImportOptions import;
  import.shapes = options.shapes;
  import.warn = options.warn;
  import.empty_sizes = options.empty_sizes;
  import.external_data_dir = options.external_data_dir;
  import.overrides = options.overrides;
  import.operators = options.operators;
  import.obstacles = obstacles;
  TN_ASSIGN_OR_RETURN(graph::Program program, onnx::ImportNetwork(options.model, import));
  if (program.IsPlain() || !WhyNoProgram(options)) return program;
  // What sizes decide may be taken as a fact about them.
  import.obstacles = nullptr;
  Expected<graph::Graph> one = onnx::ImportOnnx(options.model, import);
  if (!one) return program;
  graph::Program out;
  out.parts.push_back(std::move(*one));
  return out;
}

std::string PathOf(const CompileOptions& options, const graph::WeightFile& file) {
  const std::string folder = onnx::ExternalDataDirectory(options.model, options.external_data_dir);
  return (std::filesystem::path(folder) / file.path).string();
}

Expected<SourceHash> SourceHash::Of(const CompileOptions& options,
                                    std::span<const graph::Graph> graphs, bool beside,
                                    const FileFacts& facts) {
  TN_ASSIGN_OR_RETURN(MappedFile model, MappedFile::Open(options.model));
  struct Weights {
    std::shared_ptr<const graph::WeightFile> file;
    std::string path;
  };
  std::vector<Weights> weights;
  for (const auto& file : FilesOf(graphs)) {
    if (file->path != options.model) weights.push_back({file, PathOf(options, *file)});
  }
  SourceHash hash;
  hash.stop_ = std::stop_source();
  hash.result_ = std::async(beside ? std::launch::async : std::launch::deferred,
                            [model = std::move(model), path = options.model,
                             weights = std::move(weights), facts, stop = hash.stop_.get_token()] {
                              Hasher hasher;
                              const auto add = [&](const std::string& of, const MappedFile& file) {
                                const auto find = [&]() -> Expected<std::string> {
                                  std::string found = HashOf(file, stop);
                                  if (stop.stop_requested())
                                    return MakeError("nobody waits for it");
                                  return found;
                                };
                                if (const Expected<std::string> found = facts.Of(of, "hash", find))
                                  hasher.Text(*found);
                              };
                              add(path, model);
                              for (const Weights& w : weights) add(w.path, w.file->map);
                              return hasher.Finish();
                            });
  return hash;
}

std::vector<const graph::WeightFile*> WeightFilesOf(std::span<const graph::Graph> graphs) {
  std::vector<const graph::WeightFile*> files;
  for (const auto& file : FilesOf(graphs)) files.push_back(file.get());
  return files;
}

bool HasFarWeights(std::span<const graph::Graph> graphs, const Machine& machine) {
  int64_t bytes = 0;
  for (const graph::Graph& g : graphs) {
    for (const graph::Value& v : g.values) {
      if (v.IsConstant()) bytes += static_cast<int64_t>(v.payload.bytes().size());
    }
  }
  return machine.memory.size() > 1 && bytes > machine.memory[1].capacity_bytes;
}

}  // namespace tenon::driver
