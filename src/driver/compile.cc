#include "driver/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <unordered_set>

#include "artifact/link.h"
#include "cost/rounding.h"
#include "driver/build.h"
#include "driver/cache.h"
#include "driver/check_options.h"
#include "driver/graph_pipeline.h"
#include "driver/info.h"
#include "driver/measured_prices.h"
#include "driver/place.h"
#include "driver/profile.h"
#include "driver/source.h"
#include "graph/edit.h"
#include "graph/lower/lower.h"
#include "graph/program_types.h"
#include "graph/text.h"
#include "ir/print.h"
#include "loop/arguments.h"
#include "loop/pass/host/make_packed.h"
#include "loop/pass/host/time_launches.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "plan/narrow.h"
#include "support/check.h"
#include "support/deep_stack.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/strings.h"
#include "support/thread_pool.h"

namespace tenon::driver {

namespace {

namespace fs = std::filesystem;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Sums of times by name, in order of first appearance. Thread-safe.
class Times {
 public:
  void Add(const std::string& name, double seconds) {
    std::lock_guard lock(mutex_);
    for (PassTime& t : times_) {
      if (t.name != name) continue;
      t.seconds += seconds;
      ++t.runs;
      return;
    }
    times_.push_back({name, seconds, 1});
  }
  std::vector<PassTime> Take() { return std::move(times_); }

 private:
  std::mutex mutex_;
  std::vector<PassTime> times_;
};

std::string Commented(const std::string& text) {
  std::string out;
  for (std::string_view line : Split(text, '\n')) {
    if (!line.empty()) out += fmt::format("//   {}\n", line);
  }
  return out;
}

class Compilation {
 public:
  explicit Compilation(const CompileOptions& options)
      : options_(Settled(options)),
        jobs_(options.jobs > 0 ? options.jobs : AvailableCpus()),
        cache_(options.cache.empty() ? nullptr : KernelsIn(options.cache)) {
    SetHooks();
  }

  Expected<CompileReport> Run() {
    double start = Now();
    TN_ASSIGN_OR_RETURN(Target target, CheckOptions(options_));
    TN_RETURN_IF_ERROR(CheckCore(target));
    TN_ASSIGN_OR_RETURN(place_, ResolvePlace(options_, target));
    TN_RETURN_IF_ERROR(ReadLinked());
    TN_ASSIGN_OR_RETURN(Target build_host, PlainHost());
    TN_ASSIGN_OR_RETURN(PlannedFor planned_for, MachineFor(options_, target));
    profile_ = planned_for.profile;
    Machine machine = std::move(planned_for.machine);
    if (options_.precision == "tf32") {
      if (std::optional<Machine> rounding = WithRoundingUnits(machine)) {
        machine = std::move(*rounding);
      } else {
        options_.precision = "fp32";
      }
    }
    const Machine build_machine = Machine::Of(build_host);
    TN_ASSIGN_OR_RETURN(graph::Program program,
                        InPhase(hooks_, "import", [&] { return Import(); }));
    TN_ASSIGN_OR_RETURN(prices_,
                        ReadPrices(options_, machine, HasFarWeights(program.parts, machine)));
    TN_RETURN_IF_ERROR(CheckOutputs(program.parts, target));
    TN_RETURN_IF_ERROR(CheckProgram(options_, program));
    for (const graph::Graph& g : program.parts) {
      if (options_.format == OutputFormat::kCSource) TN_RETURN_IF_ERROR(RequireEnds(g));
      Dump("import", [&] { return graph::Print(g); });
    }
    TN_RETURN_IF_ERROR(
        InPhase(hooks_, "graph", [&] { return RunPasses(machine, &program.parts); }));
    if (options_.precision == "fp16" || options_.precision == "bf16") ReportFloats(program.parts);
    if (options_.emit.count("graph")) {
      for (const graph::Graph& g : program.parts) planned_ += graph::Print(g);
    }
    TN_ASSIGN_OR_RETURN(graph::LoweredNetwork network, InPhase(hooks_, "lower", [&] {
                          return Lower(program, machine, build_machine);
                        }));
    if (options_.verify_each) {
      CheckVerified(Verify(network.module, Stage::kSchedulable), "lower");
      CheckVerified(Verify(network.prepare, Stage::kSchedulable), "lower");
    }
    Dump("lower", [&] { return Print(network.module) + "\n" + Print(network.prepare); });
    TN_RETURN_IF_ERROR(MarkExportedKernels(&network));
    if (options_.format == OutputFormat::kCSource) TN_RETURN_IF_ERROR(MarkPlain(&network));
    if (options_.time_kernels) MarkTimed(&network);
    if (!program.IsPlain()) MarkParts(program, &network);
    TN_ASSIGN_OR_RETURN(const Built built,
                        Build(RequestOf(program, network, machine, build_machine)));
    if (cache_) cache_->TrimNowAndThen();
    Report(network, built, machine);
    report_.seconds = Now() - start;
    report_.passes = times_.Take();
    return std::move(report_);
  }

 private:
  // The IR after a pass or phase, where it was asked for. Called from several threads.
  template <class F>
  void Dump(const std::string& pass, F&& text) {
    if (!options_.print_after.count(pass) || !options_.dump) return;
    std::lock_guard lock(dump_mutex_);
    options_.dump(fmt::format("// after {}\n{}", pass, text()));
  }

  // Better known before compiling than after.
  Status CheckCore(const Target& target) {
    if (options_.format == OutputFormat::kCSource) return Ok();
    const Expected<std::string> core = artifact::LibraryDirectory(target.Cpu().triple());
    if (options_.format == OutputFormat::kSharedLibrary) return core ? Ok() : Status(core.errors());
    const std::string& triple = target.Cpu().triple();
    if (!core || IsContained(triple)) report_.lacks_core_for = triple;
    return artifact::CheckLinkable(triple);
  }

  // One workspace serves calls of all sizes.
  static Status RequireEnds(const graph::Graph& g) {
    std::unordered_set<const VarNode*> defined;
    for (const graph::Node& n : g.nodes) {
      if (const Var dim = graph::DefinedDim(n)) defined.insert(dim.get());
    }
    for (const graph::Dim& d : g.dims) {
      // One that a node defines has the end of what it counts.
      if (d.max != graph::Dim::kNoMax || defined.contains(d.var.get())) continue;
      return MakeError(
          fmt::format("the largest size is needed for C; give '{0}' a range, as in "
                      "--shape input:{0}[1..16]",
                      d.var->name));
    }
    return Ok();
  }

  // The network's function for C programs.
  Status MarkPlain(graph::LoweredNetwork* network) {
    Func main = network->module.Find(options_.name);
    TN_CHECK(main, "no function {}", options_.name);
    if (main->attrs.Has(kResultShapesAttr) || main->attrs.Has(kFindersAttr)) {
      return MakeError(
          "the sizes of outputs depend on values: a function for C programs could not say them; "
          "compile a library");
    }
    PrimFunc fields(*main);
    fields.attrs.Set(kPlain, options_.name + "_run");
    fields.attrs.Set("plain_checks", true);
    network->module.Add(PrimFunc::Make(std::move(fields)));
    return Ok();
  }

  // The network's functions, so that another one tells what their launches take.
  void MarkTimed(graph::LoweredNetwork* network) const {
    for (auto& [name, func] : network->module.funcs) {
      if (func->func_kind != FuncKind::kHost) continue;
      PrimFunc fields(*func);
      fields.attrs.Set(kTimedAttr, options_.name + kTimesSuffix);
      func = PrimFunc::Make(std::move(fields));
    }
  }

  // The parts of a program, with what is known of their inputs.
  static void MarkParts(const graph::Program& program, graph::LoweredNetwork* network) {
    const auto inputs = graph::MadeInputs(program);
    for (size_t i = 0; i < program.parts.size(); ++i) {
      const graph::Graph& g = program.parts[i];
      PrimFunc fields(*network->module.Find(g.name));
      std::vector<std::string> made(g.inputs.size());
      for (size_t k = 0; k < inputs[i].size(); ++k) {
        const graph::TensorType& type = g.type(g.inputs[k]);
        const std::optional<graph::MadeType>& known = inputs[i][k];
        if (!known || known->dtype != type.dtype || known->dims.size() != type.dims.size())
          continue;
        std::vector<std::string> sizes;
        for (size_t d = 0; d < type.dims.size(); ++d) {
          const bool same = known->dims[d] >= 0 && AsInt(type.dims[d]) == known->dims[d];
          sizes.push_back(same ? std::to_string(known->dims[d]) : "?");
        }
        made[k] = fmt::format("[{}]", Join(sizes, ", "));
      }
      fields.attrs.Set(kPartAttr, made);
      network->module.Add(PrimFunc::Make(std::move(fields)));
    }
  }

  Expected<graph::Program> Import() {
    TN_ASSIGN_OR_RETURN(graph::Program program, ImportModel(options_));
    // Gigabytes of weights are read while the network is compiled.
    TN_ASSIGN_OR_RETURN(source_hash_,
                        SourceHash::Of(options_, program.parts, jobs_ > 1, FileFacts("")));
    return program;
  }

  Status RunPasses(const Machine& machine, std::vector<graph::Graph>* graphs) {
    const std::vector<graph::Graph> before = prices_.log ? *graphs : std::vector<graph::Graph>();
    TN_RETURN_IF_ERROR(Plan(machine, graphs));
    if (!prices_.log) return Ok();
    const std::optional<double> ratio = prices_.log->RatioOf(PlanKey(*graphs));
    if (!ratio || *ratio <= kMostOfUntuned) return Ok();
    if (options_.warn) {
      options_.warn(
          fmt::format("planned without '{}': by its records the whole network takes {:.3f} "
                      "of its time",
                      options_.log, *ratio));
    }
    prices_ = {};
    *graphs = before;
    return Plan(machine, graphs);
  }
  Status Plan(const Machine& machine, std::vector<graph::Graph>* graphs) {
    for (graph::Graph& g : *graphs) {
      TN_ASSIGN_OR_RETURN(
          g, RunGraphPasses(std::move(g), machine, options_, prices_.prices.get(), graph_hooks_));
    }
    return Ok();
  }

  Expected<graph::LoweredNetwork> Lower(graph::Program& program, const Machine& machine,
                                        const Machine& build_machine) const {
    const graph::LowerOptions lower{&machine, &build_machine, options_.name,
                                    RunsPass("plan_groups", options_)};
    if (program.IsPlain()) return graph::Lower(program.parts[0], lower);
    for (size_t i = 0; i < program.parts.size(); ++i)
      program.parts[i].name = PartName(options_.name, i);
    return graph::LowerAll(program.parts, lower);
  }

  Status MarkExportedKernels(graph::LoweredNetwork* network) {
    for (const std::string& name : options_.export_kernels) {
      Func f = network->module.Find(name);
      if (!f || f->func_kind != FuncKind::kKernel) {
        std::vector<std::string> names;
        for (const graph::KernelInfo& k : network->kernels) names.push_back(k.name);
        return MakeError(fmt::format("there is no kernel '{}' to export; the kernels are {}", name,
                                     Join(names, ", ")));
      }
      PrimFunc fields(*f);
      fields.attrs.Set("exported", true);
      network->module.Add(PrimFunc::Make(std::move(fields)));
    }
    return Ok();
  }

  // The network as a build; its outputs are written in phases of their own.
  BuildRequest RequestOf(const graph::Program& program, const graph::LoweredNetwork& network,
                         const Machine& machine, const Machine& build_machine) {
    BuildRequest request = driver::RequestOf(network, machine, build_machine);
    request.describe = [&](const Module& host) {
      return InfoJson(program, network, host, machine, options_, {source_hash_.Get(), profile_},
                      fs::path(place_.params).filename(), Records(program.parts));
    };
    // Who links the code has a header, which tells of errors too.
    if (options_.format != OutputFormat::kSharedLibrary || options_.name != "main")
      request.error_texts.push_back(options_.name + "_error");
    if (!program.IsPlain())
      request.program = {options_.name, program.Encode(), program.parts.size(), machine.target};
    request.linked = linked_;
    request.open = options_.open;
    request.visible = options_.visible;
    request.soname = options_.soname;
    request.hooks = hooks_;
    request.jobs = jobs_;
    request.cache = cache_;
    request.outputs = Outputs(*machine.target);
    request.new_folder = place_.new_folder;
    return request;
  }

  // None of a log that the network is planned without; null where there is no log.
  nlohmann::ordered_json Records(std::span<const graph::Graph> graphs) const {
    if (options_.log.empty()) return nullptr;
    if (!prices_.log) return nlohmann::ordered_json::array();
    return RecordsUsed(*prices_.log, graphs);
  }

  Status ReadLinked() {
    for (const std::string& path : options_.link) {
      TN_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
      if (!file.text().starts_with("\x7f"
                                   "ELF"))
        return MakeError(fmt::format("'{}' is no ELF object", path));
      linked_.emplace_back(path, file.text());
    }
    return Ok();
  }

  // What is written must not be what is read: the model, its weights, what was measured.
  Status CheckOutputs(std::span<const graph::Graph> graphs, const Target& target) const {
    std::set<fs::path> inputs = {options_.model};
    for (const std::string& measured : {options_.prices, options_.log, options_.profile}) {
      if (!measured.empty()) inputs.insert(measured);
    }
    inputs.insert(options_.link.begin(), options_.link.end());
    for (const graph::WeightFile* file : WeightFilesOf(graphs)) {
      if (file->path == options_.model) continue;
      inputs.insert(PathOf(options_, *file));
    }
    std::vector<fs::path> outputs = {place_.path, place_.params};
    for (const Output& output : Outputs(target)) outputs.push_back(output.path);
    for (const fs::path& output : outputs) {
      for (const fs::path& input : inputs) {
        std::error_code none;
        if (!fs::equivalent(output, input, none)) continue;
        return MakeError(fmt::format(
            "the output would replace '{}', a file that the model is read from", output.string()));
      }
    }
    return Ok();
  }

  // What is read beside the artifact, then that itself: when it is there, all of it is.
  std::vector<Output> Outputs(const Target& target) const {
    const bool source = options_.format == OutputFormat::kCSource;
    const bool library = options_.format == OutputFormat::kSharedLibrary;
    const fs::path path = place_.path, directory = place_.directory;
    std::vector<Output> out;
    if (options_.emit.count("c") && target.IsDevice())
      out.push_back({kDeviceForms, place_.path, ""});
    else if (options_.emit.count("c") && !source)
      out.push_back({"c", place_.path + ".c", ""});
    if (options_.emit.count("graph"))
      out.push_back({kGivenText, place_.path + ".graph.txt", "", planned_});
    if (options_.emit.count("loop")) out.push_back({"lowered", place_.path + ".loop.txt", ""});
    if (options_.emit.count("llvm")) out.push_back({"llvm", place_.path + ".ll", ""});
    if (options_.emit.count("asm")) out.push_back({"asm", place_.path + ".s", ""});
    if (source) {
      out.push_back({"h", fs::path(path).replace_extension(".h"), ""});
    } else if (options_.name != "main") {
      out.push_back({"h", directory / (options_.name + ".h"), ""});
    }
    if (place_.is_bundle) {
      out.push_back({"metadata", directory / "metadata.json", ""});
      // The example loads a library.
      if (library && !target.Cpu().IsContained())
        out.push_back({"example", directory / "inference_example.cpp", ""});
    }
    out.push_back({source ? "c" : library ? "so" : "obj", place_.path, place_.params});
    return out;
  }

  void SetHooks() {
    graph_hooks_.after_pass = [this](const char* pass, const graph::Graph&,
                                     const graph::Graph& after, double seconds) {
      times_.Add(pass, seconds);
      Dump(pass, [&] { return graph::Print(after); });
    };
    hooks_.passes.disabled = options_.disabled_passes;
    hooks_.passes.verify = options_.verify_each;
    hooks_.passes.after_pass = [this](const char* pass, const Module&, const Module& after,
                                      double seconds) {
      times_.Add(pass, seconds);
      Dump(pass, [&] { return Print(after); });
    };
    hooks_.after_schedule = [this](const Schedule& schedule, double seconds) {
      times_.Add("schedule", seconds);
      // The trace stands before the result, as comments: the dump reads back.
      Dump("schedule",
           [&] { return Commented(schedule.trace().ToString()) + Print(schedule.module()); });
    };
    hooks_.after_codegen = [this](double seconds) {
      times_.Add("code generation (LLVM)", seconds);
    };
    hooks_.after_phase = [this](const char* phase, double seconds) { times_.Add(phase, seconds); };
    hooks_.progress = options_.progress;
  }

  void ReportFloats(std::span<const graph::Graph> graphs) {
    for (const graph::Graph& g : graphs) {
      graph::StoredFloats stored = graph::StoredFloatsOf(g);
      report_.narrow_values += stored.narrow;
      for (std::string& name : stored.wide) report_.wide_values.push_back(std::move(name));
    }
  }

  void Report(const graph::LoweredNetwork& network, const Built& built, const Machine& machine) {
    for (const graph::KernelInfo& k : network.kernels) {
      report_.kernels.push_back(
          {k.name, k.kind, k.flops, k.bytes, k.launches, EstimateMicroseconds(k, machine)});
    }
    const Func main = built.host.Find(options_.name);
    report_.arena_bytes = main ? ArenaBytes(*main) : 0;
    report_.artifact = place_.path;
    report_.params = place_.params;
    report_.artifact_bytes = BytesAt(place_);
    report_.weights_bytes = static_cast<int64_t>(network.weights_bytes);
    report_.remarks = built.remarks;
  }

  CompileOptions options_;
  int jobs_;
  Times times_;
  GraphHooks graph_hooks_;
  BuildHooks hooks_;
  std::mutex dump_mutex_;
  CompileReport report_;
  Place place_;
  MeasuredPrices prices_;
  SourceHash source_hash_;
  const std::shared_ptr<const FileCache> cache_;  // of kernels; null: none
  std::string profile_;                           // its hash; "": plans are for a preset
  std::string planned_;                           // the graph's text, where that is asked for
  std::vector<std::pair<std::string, std::string>> linked_;  // objects of others
};

}  // namespace

BuildRequest RequestOf(const graph::LoweredNetwork& network, const Machine& machine,
                       const Machine& build_machine) {
  auto scheduled_for = [&network](const Machine& m) {
    return [m, &network](const Func& kernel) {
      return ops::ScheduleKernel(network.scheduled.at(kernel->name), m);
    };
  };
  BuildRequest request;
  request.module = network.module;
  request.schedule = scheduled_for(machine);
  request.weights = std::make_shared<const Weights>(Weights{
      network.weights, network.weights_bytes, network.prepare, scheduled_for(build_machine)});
  return request;
}

const std::vector<std::string>& Phases() {
  static const std::vector<std::string> kPhases = {"import",  "graph", "lower",
                                                   "kernels", "link",  "weights"};
  return kPhases;
}

Expected<CompileReport> Compile(const CompileOptions& options) {
  std::optional<Expected<CompileReport>> report;
  OnDeepStack([&] { report = Compilation(options).Run(); });
  return *std::move(report);
}

}  // namespace tenon::driver
