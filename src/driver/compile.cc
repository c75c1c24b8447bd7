#include "driver/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "artifact/link.h"
#include "driver/check_options.h"
#include "driver/companions.h"
#include "driver/graph_pipeline.h"
#include "driver/info.h"
#include "driver/kernels.h"
#include "driver/prepare.h"
#include "driver/source.h"
#include "driver/write_artifact.h"
#include "driver/write_source.h"
#include "driver/write_wasm.h"
#include "graph/lower/lower.h"
#include "graph/text.h"
#include "ir/print.h"
#include "loop/pass/host/make_packed.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "support/check.h"
#include "support/deep_stack.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/strings.h"
#include "support/thread_pool.h"
#include "tenon/kernel_abi.h"

namespace tenon::driver {

namespace {

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
      : options_(Settled(options)), jobs_(options.jobs > 0 ? options.jobs : AvailableCpus()) {
    graph_hooks_.after_pass = [this](const char* pass, const graph::Graph&,
                                     const graph::Graph& after, double seconds) {
      times_.Add(pass, seconds);
      Dump(pass, [&] { return graph::Print(after); });
    };
  }

  template <class F>
  auto Phase(const char* name, F&& f) {
    if (options_.progress) options_.progress(name, 0, 1);
    double start = Now();
    auto result = f();
    times_.Add(name, Now() - start);
    if (result && options_.progress) options_.progress(name, 1, 1);
    return result;
  }

  Expected<CompileReport> Run() {
    double start = Now();
    TN_ASSIGN_OR_RETURN(Target target, CheckOptions(options_));
    TN_RETURN_IF_ERROR(CheckCore(target));
    TN_ASSIGN_OR_RETURN(output_, ResolveOutput(options_, target));
    TN_ASSIGN_OR_RETURN(Target build_host, PlainHost());
    const Machine machine = Machine::Of(target), build_machine = Machine::Of(build_host);
    TN_ASSIGN_OR_RETURN(graph::Graph g, Phase("import", [&] { return Import(); }));
    Dump("import", [&] { return graph::Print(g); });
    TN_ASSIGN_OR_RETURN(g, Phase("graph", [&] {
                          return RunGraphPasses(std::move(g), machine, options_, graph_hooks_);
                        }));
    TN_RETURN_IF_ERROR(EmitGraph(g));
    graph::LowerOptions lower{&machine, &build_machine, options_.name,
                              RunsPass("plan_groups", options_)};
    TN_ASSIGN_OR_RETURN(graph::LoweredNetwork network,
                        Phase("lower", [&] { return graph::Lower(g, lower); }));
    if (options_.verify_each) {
      CheckVerified(Verify(network.module, Stage::kSchedulable), "lower");
      CheckVerified(Verify(network.prepare, Stage::kSchedulable), "lower");
    }
    Dump("lower", [&] { return Print(network.module) + "\n" + Print(network.prepare); });
    TN_RETURN_IF_ERROR(MarkExportedKernels(&network));
    if (options_.format == OutputFormat::kCSource) MarkPlain(&network);
    TN_ASSIGN_OR_RETURN(CompiledModule code,
                        Phase("kernels", [&] { return CompileCode(g, network, target); }));
    TN_RETURN_IF_ERROR(WriteTexts(code, target));
    TN_RETURN_IF_ERROR(WriteOutput(network, code, target, build_host));
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

  // The network's function for C programs.
  void MarkPlain(graph::LoweredNetwork* network) {
    Func main = network->module.Find(options_.name);
    TN_CHECK(main, "no function {}", options_.name);
    PrimFunc fields(*main);
    fields.attrs.Set(kPlain, PlainName(options_));
    fields.attrs.Set("plain_checks", true);
    network->module.Add(PrimFunc::Make(std::move(fields)));
  }

  Expected<graph::Graph> Import() {
    TN_ASSIGN_OR_RETURN(graph::Graph g, ImportModel(options_));
    TN_ASSIGN_OR_RETURN(source_hash_, HashSource(options_, g));
    return g;
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

  Expected<CompiledModule> CompileCode(const graph::Graph& g, const graph::LoweredNetwork& network,
                                       const Target& target) {
    KernelJob job;
    job.target = &target;
    job.jobs = jobs_;
    job.schedule = [machine = Machine::Of(target), &network](const Func& kernel) {
      return ops::ScheduleKernel(network.scheduled.at(kernel->name), machine);
    };
    job.source = options_.format == OutputFormat::kCSource;
    job.hooks.disabled = options_.disabled_passes;
    job.hooks.verify = options_.verify_each;
    job.hooks.after_pass = [this](const char* pass, const Module&, const Module& after,
                                  double seconds) {
      times_.Add(pass, seconds);
      Dump(pass, [&] { return Print(after); });
    };
    job.after_schedule = [this](const Schedule& schedule, double seconds) {
      times_.Add("schedule", seconds);
      // The trace stands before the result, as comments: the dump reads back.
      Dump("schedule",
           [&] { return Commented(schedule.trace().ToString()) + Print(schedule.module()); });
    };
    job.after_codegen = [this](double seconds) { times_.Add("code generation (LLVM)", seconds); };
    job.blobs = [&](const Module& host) { return Blobs(g, network, host, target); };
    job.inspect = [&](const Module& lowered, const std::vector<std::string>& functions) {
      return CollectTexts(lowered, functions, target);
    };
    if (options_.progress) {
      job.progress = [this](int64_t done, int64_t total) {
        options_.progress("kernels", done, total);
      };
    }
    return CompileModule(network.module, job);
  }

  std::vector<codegen::DataBlob> Blobs(const graph::Graph& g, const graph::LoweredNetwork& network,
                                       const Module& host, const Target& target) {
    info_ = InfoJson(g, network, host, target, options_, source_hash_);
    Func main = host.Find(options_.name);
    report_.arena_bytes = main ? ArenaBytes(*main) : 0;
    return DescriptionBlobs(info_, target.Cpu().FeatureList());
  }

  Status EmitGraph(const graph::Graph& g) {
    if (!options_.emit.count("graph")) return Ok();
    return WriteFile(output_.path + ".graph.txt", graph::Print(g));
  }

  Status CollectTexts(const Module& lowered, const std::vector<std::string>& functions,
                      const Target& target) {
    if (options_.emit.count("loop")) {
      Module defined;
      for (const std::string& name : functions) defined.Add(lowered.Find(name));
      loop_text_ += Print(defined) + "\n";
    }
    // A device's own source is a file beside the output.
    if (target.IsDevice() && lowered.Find(functions.at(0))->func_kind == FuncKind::kKernel)
      return Ok();
    codegen::EmitOptions emit;
    emit.functions = functions;
    if (options_.emit.count("llvm")) {
      TN_ASSIGN_OR_RETURN(std::string text, codegen::EmitLlvm(lowered, target.Cpu(), emit));
      llvm_text_ += text;
    }
    if (options_.emit.count("asm")) {
      TN_ASSIGN_OR_RETURN(std::string text, codegen::EmitAssembly(lowered, target.Cpu(), emit));
      asm_text_ += text;
    }
    return Ok();
  }

  Status WriteTexts(const CompiledModule& code, const Target& target) {
    const bool wants_source = options_.emit.count("c") && options_.format != OutputFormat::kCSource;
    if (wants_source && target.IsDevice()) {
      for (const auto& [form, text] : code.device.files) {
        TN_RETURN_IF_ERROR(WriteFile(output_.path + "." + form, text));
      }
    } else if (wants_source) {
      codegen::EmitOptions emit = code.emit;
      emit.functions.clear();
      TN_ASSIGN_OR_RETURN(std::string text, codegen::EmitC(code.whole, target, emit));
      TN_RETURN_IF_ERROR(WriteFile(output_.path + ".c", text));
    }
    if (options_.emit.count("loop"))
      TN_RETURN_IF_ERROR(WriteFile(output_.path + ".loop.txt", loop_text_));
    if (options_.emit.count("llvm"))
      TN_RETURN_IF_ERROR(WriteFile(output_.path + ".ll", llvm_text_));
    if (options_.emit.count("asm")) TN_RETURN_IF_ERROR(WriteFile(output_.path + ".s", asm_text_));
    return Ok();
  }

  Status WriteOutput(const graph::LoweredNetwork& network, const CompiledModule& code,
                     const Target& target, const Target& build_host) {
    std::function<void(int64_t, int64_t)> progress;
    if (options_.progress)
      progress = [this](int64_t done, int64_t n) { options_.progress("weights", done, n); };
    if (!code.device.missing.empty()) return code.device.missing;
    const bool wasm = target.Cpu().IsContained();
    if (options_.format == OutputFormat::kCSource || wasm) {
      TN_RETURN_IF_ERROR(Phase("weights", [&] {
        return (wasm ? WriteWasm : WriteSource)({network,
                                                 code,
                                                 target,
                                                 build_host,
                                                 options_,
                                                 output_,
                                                 info_,
                                                 {jobs_, options_.verify_each},
                                                 progress});
      }));
      TN_RETURN_IF_ERROR(WriteCompanions(info_, options_, output_));
    } else {
      auto writer =
          Phase("link", [&] { return CreateArtifact(network, code, target, options_, output_); });
      if (!writer) return writer.errors();
      TN_RETURN_IF_ERROR(Phase("weights", [&] {
        return WriteWeights(network, build_host, {jobs_, options_.verify_each}, &*writer, progress);
      }));
      TN_RETURN_IF_ERROR(WriteCompanions(info_, options_, output_));
      TN_RETURN_IF_ERROR(writer->Commit());
    }
    Report(network, target);
    return Ok();
  }

  void Report(const graph::LoweredNetwork& network, const Target& target) {
    for (const graph::KernelInfo& k : network.kernels) {
      report_.kernels.push_back(
          {k.name, k.kind, k.flops, k.bytes, k.launches, EstimateMicroseconds(k, target)});
    }
    report_.artifact = output_.path;
    report_.params = output_.params;
    report_.artifact_bytes = ArtifactBytes(output_);
    report_.weights_bytes = static_cast<int64_t>(network.weights_bytes);
  }

  const CompileOptions options_;
  int jobs_;
  Times times_;
  GraphHooks graph_hooks_;
  std::mutex dump_mutex_;
  CompileReport report_;
  Output output_;
  Hash128 source_hash_;
  std::string info_;
  std::string loop_text_, llvm_text_, asm_text_;
};

}  // namespace

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
