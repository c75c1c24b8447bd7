#include "driver/kernels.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <unordered_map>

#include "loop/pass/calls/outline_micro_kernels.h"
#include "loop/pass/rewrite.h"
#include "loop/threads.h"
#include "loop/verify.h"
#include "support/thread_pool.h"
#include "tenon/kernel_abi.h"

namespace tenon::driver {

namespace {

struct KernelResult {
  Module lowered;                      // the kernel and the micro-kernels that it calls
  std::vector<std::string> functions;  // those of them that its object defines
  std::string object;
  Diagnostics errors;
};

Expected<Module> LowerKernel(const Func& kernel, const KernelJob& job) {
  PassContext context = ContextOf(*job.target);
  auto start = std::chrono::steady_clock::now();
  TN_ASSIGN_OR_RETURN(Schedule schedule, job.schedule(kernel));
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (job.after_schedule) job.after_schedule(schedule, seconds);
  if (job.hooks.verify) {
    CheckVerified(Verify(schedule.module(), Stage::kSchedulable), "the schedule");
  }
  return RunPipeline(KernelPipeline(), schedule.module(), context, job.hooks);
}

// Equal micro-kernels of several kernels become one: the first kernel's, which defines it for all.
void ShareMicroKernels(std::vector<KernelResult>* kernels) {
  std::unordered_map<uint64_t, std::vector<Func>> shared;  // by the hash without the name
  for (KernelResult& k : *kernels) {
    Module own;
    std::map<std::string, std::string> names;
    for (const auto& [name, f] : k.lowered.funcs) {
      if (!f->attrs.Has(kMicroKernel)) continue;
      Func nameless = Renamed(f, kMicroKernel, {});
      std::vector<Func>& equal = shared[StructuralHash(nameless)];
      auto it = std::find_if(equal.begin(), equal.end(), [&](const Func& other) {
        return StructuralEqual(Renamed(other, kMicroKernel, {}), nameless);
      });
      if (it == equal.end()) {
        k.functions.push_back(name);
        it = equal.insert(equal.end(), f);
      }
      names[name] = (*it)->name;
      own.Add(*it);
    }
    for (const auto& [name, f] : k.lowered.funcs) {
      if (names.count(name)) continue;
      k.functions.push_back(name);
      own.Add(Renamed(f, name, names));
    }
    k.lowered = std::move(own);
  }
}

// Runs `step` for every kernel, in parallel.
void ForEachKernel(std::vector<KernelResult>* kernels, const KernelJob& job,
                   const std::function<Status(int64_t, KernelResult*)>& step) {
  ParallelFor(static_cast<int64_t>(kernels->size()), job.jobs, [&](int64_t i) {
    KernelResult& k = (*kernels)[static_cast<size_t>(i)];
    if (!k.errors.empty()) return;
    if (Status status = step(i, &k); !status) k.errors = std::move(status.errors());
  });
}

Diagnostics InKernel(Diagnostics errors, const std::string& kernel) {
  for (Diagnostic& d : errors) d.notes.push_back("in kernel '" + kernel + "'");
  return errors;
}

// One file holds the functions of all kernels: device functions that are not shared get their
// kernel's name where another has theirs.
void AddKernel(const Module& lowered, const std::string& kernel, Module* whole) {
  std::map<std::string, std::string> names;
  for (const auto& [name, f] : lowered.funcs) {
    Func there = whole->Find(name);
    if (!there || StructuralEqual(there, f)) continue;
    names[name] = std::string(kernel).append(".").append(name);
  }
  for (const auto& [name, f] : lowered.funcs) {
    auto it = names.find(name);
    whole->Add(Renamed(f, it == names.end() ? name : it->second, names));
  }
}

}  // namespace

// Bodies would only be lowered again.
Func Declaration(const Func& kernel) {
  PrimFunc fields(*kernel);
  fields.body = Seq::Make({});
  const ThreadNest nest = PeelThreads(*kernel);
  for (size_t i = nest.axes.size(); i-- > 0;) {
    fields.body = WithBody(*nest.axes[i], fields.body);
  }
  return PrimFunc::Make(std::move(fields));
}

void AddInstances(const Module& host, std::vector<codegen::DataBlob>* blobs) {
  for (const auto& [name, f] : host.funcs) {
    std::string symbol = f->attrs.GetString("instances");
    bool there = symbol.empty();
    for (const codegen::DataBlob& b : *blobs) there |= b.symbol == symbol;
    if (!there) blobs->push_back({symbol, std::string(TN_INSTANCES_BYTES, '\0'), 64, false, true});
  }
}

Expected<CompiledModule> CompileModule(const Module& input, const KernelJob& job) {
  TN_ASSIGN_OR_RETURN(Module module, RunPass(*FindLoopPass("wrap_exports"), input, {}));
  std::vector<Func> kernels;
  Module host;
  for (const auto& [name, f] : module.funcs) {
    if (f->func_kind == FuncKind::kHost) {
      host.Add(f);
    } else {
      kernels.push_back(f);
    }
  }
  auto n = static_cast<int64_t>(kernels.size());
  std::vector<KernelResult> results(kernels.size());
  ForEachKernel(&results, job, [&](int64_t i, KernelResult* k) -> Status {
    TN_ASSIGN_OR_RETURN(k->lowered, LowerKernel(kernels[static_cast<size_t>(i)], job));
    return Ok();
  });
  ShareMicroKernels(&results);
  std::atomic<int64_t> done{0};
  ForEachKernel(&results, job, [&](int64_t, KernelResult* k) -> Status {
    codegen::EmitOptions emit;
    emit.functions = k->functions;
    emit.verify |= job.hooks.verify;
    if (job.source) {
      if (job.progress) job.progress(++done, n);
      return Ok();
    }
    const auto start = std::chrono::steady_clock::now();
    TN_ASSIGN_OR_RETURN(k->object, codegen::EmitObject(k->lowered, *job.target, emit));
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (job.after_codegen) job.after_codegen(taken.count());
    if (job.progress) job.progress(++done, n);
    return Ok();
  });

  CompiledModule out;
  Diagnostics errors;
  for (size_t k = 0; k < kernels.size(); ++k) {
    Diagnostics own = InKernel(std::move(results[k].errors), kernels[k]->name);
    errors.insert(errors.end(), own.begin(), own.end());
    if (!errors.empty()) continue;
    if (job.inspect) TN_RETURN_IF_ERROR(job.inspect(results[k].lowered, results[k].functions));
    host.Add(Declaration(results[k].lowered.Find(kernels[k]->name)));
    AddKernel(results[k].lowered, kernels[k]->name, &out.whole);
    if (!job.source) out.objects.push_back(std::move(results[k].object));
  }
  if (!errors.empty()) return errors;

  PassContext context = ContextOf(*job.target);
  TN_ASSIGN_OR_RETURN(out.host, RunPipeline(HostPipeline(), std::move(host), context, job.hooks));
  if (job.export_bodies) {
    for (auto& [name, f] : out.host.funcs) {
      if (f->func_kind != FuncKind::kHost) continue;
      PrimFunc fields(*f);
      fields.attrs.Set("exported", true);
      f = PrimFunc::Make(std::move(fields));
    }
  }
  codegen::EmitOptions& emit = out.emit;
  emit.verify |= job.hooks.verify;
  for (const auto& [name, f] : out.host.funcs) {
    // All but the declarations of kernels: a function that tells the arena's size too.
    if (f->func_kind != FuncKind::kKernel) emit.functions.push_back(name);
  }
  if (job.blobs) emit.blobs = job.blobs(out.host);
  AddInstances(out.host, &emit.blobs);
  if (job.inspect) TN_RETURN_IF_ERROR(job.inspect(out.host, emit.functions));
  for (const std::string& name : emit.functions) out.whole.Add(out.host.Find(name));
  if (job.source) return out;
  TN_ASSIGN_OR_RETURN(std::string object, codegen::EmitObject(out.host, *job.target, emit));
  out.objects.push_back(std::move(object));
  return out;
}

}  // namespace tenon::driver
