#include "driver/kernels.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <unordered_map>

#include "driver/code_generators.h"
#include "ir/visit.h"
#include "loop/pass/calls/outline_micro_kernels.h"
#include "loop/pass/host/lower_launches.h"
#include "loop/pass/rewrite.h"
#include "loop/threads.h"
#include "loop/verify.h"
#include "support/thread_pool.h"
#include "tenon/kernel_abi.h"

namespace tenon::driver {

namespace {

struct KernelResult {
  std::string name;
  Module scheduled;                    // the kernel and what it calls
  Module lowered;                      // the same, with the micro-kernels
  std::vector<std::string> functions;  // those of them that its object defines
  std::string object;
  std::vector<std::string> remarks;
  Diagnostics errors;
};

Status ScheduleIn(const Func& kernel, const KernelJob& job, KernelResult* k) {
  auto start = std::chrono::steady_clock::now();
  TN_ASSIGN_OR_RETURN(Schedule schedule, job.schedule(kernel));
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (job.after_schedule) job.after_schedule(schedule, seconds);
  k->scheduled = schedule.module();
  if (job.hooks.verify) CheckVerified(Verify(k->scheduled, Stage::kSchedulable), "the schedule");
  return Ok();
}

Status LowerIn(const KernelJob& job, KernelResult* k) {
  PassContext context = ContextOf(*job.target);
  context.remarks = &k->remarks;
  TN_ASSIGN_OR_RETURN(k->lowered, RunPipeline(KernelPipelineOf(*job.target),
                                              std::move(k->scheduled), context, job.hooks));
  // A schedule may ask for what a device cannot do; nothing before this knows.
  if (job.target->IsDevice()) return Verify(k->lowered, Stage::kLowered);
  return Ok();
}

// A kernel and the functions that it calls, and those that they call.
Module WithCallees(const Module& module, const Func& kernel) {
  Module out;
  std::vector<Func> waiting = {kernel};
  while (!waiting.empty()) {
    const Func f = waiting.back();
    waiting.pop_back();
    if (out.Find(f->name)) continue;
    out.Add(f);
    PreOrder(f->body, [&](const NodeRef& n) {
      const auto* call = As<CallFunc>(n);
      if (Func callee = call ? module.Find(call->callee) : nullptr) waiting.push_back(callee);
      return !IsA<ExprNode>(n);
    });
  }
  return out;
}

std::vector<KernelResult> KernelsOf(const Module& module) {
  std::vector<KernelResult> out;
  for (const auto& [name, f] : module.funcs) {
    if (f->func_kind != FuncKind::kKernel) continue;
    out.emplace_back();
    out.back().name = name;
    out.back().scheduled = WithCallees(module, f);
  }
  return out;
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

// All errors of the kernels, each with the kernel's name where the user did not write it.
Diagnostics ErrorsOf(std::vector<KernelResult>* kernels, const KernelJob& job) {
  Diagnostics errors;
  for (KernelResult& k : *kernels) {
    Diagnostics own = job.schedule ? InKernel(std::move(k.errors), k.name) : std::move(k.errors);
    errors.insert(errors.end(), own.begin(), own.end());
  }
  return errors;
}

// Schedules the kernels where that is still to be done. On a device their launches are split then,
// so that there may be more of them.
Expected<std::vector<KernelResult>> Scheduled(const Module& module, const KernelJob& job,
                                              Module* host) {
  std::vector<KernelResult> kernels = KernelsOf(module);
  if (job.schedule) {
    ForEachKernel(&kernels, job, [&](int64_t, KernelResult* k) {
      return ScheduleIn(module.Find(k->name), job, k);
    });
  }
  if (Diagnostics errors = ErrorsOf(&kernels, job); !errors.empty()) return errors;
  if (!job.target->IsDevice()) return kernels;
  Module all = *host;
  for (const KernelResult& k : kernels) {
    for (const auto& [name, f] : k.scheduled.funcs) all.Add(f);
  }
  TN_ASSIGN_OR_RETURN(all, RunPass(*FindLoopPass("split_launches"), all, {}));
  kernels = KernelsOf(all);
  for (auto& [name, f] : host->funcs) f = all.Find(name);
  return kernels;
}

// The host functions' code with what is data of the library.
Status EmitHost(const KernelJob& job, CompiledModule* out) {
  const codegen::EmitOptions& emit = out->emit;
  const Target& cpu = job.target->Cpu();
  if (job.source) return Ok();
  const bool together = job.together && !job.target->IsDevice();
  Module host = together ? out->whole : out->host;
  codegen::EmitOptions options = emit;
  if (together) options.functions.clear();
  if (job.target->IsDevice())
    std::erase_if(host.funcs,
                  [](const auto& named) { return named.second->func_kind == FuncKind::kKernel; });
  TN_ASSIGN_OR_RETURN(std::string object, codegen::EmitObject(host, cpu, options));
  out->objects.push_back(std::move(object));
  return Ok();
}

std::string Little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

// The table of weights that host functions want on a device (tn_device_weights).
void AddDeviceWeights(const Module& host, std::vector<codegen::DataBlob>* blobs) {
  for (const auto& [name, f] : host.funcs) {
    const std::vector<int64_t> offsets = f->attrs.GetInts("weight_offsets");
    const std::vector<int64_t> bytes = f->attrs.GetInts("weight_bytes");
    if (f->func_kind != FuncKind::kHost || bytes.empty()) continue;
    std::string table = Little(bytes.size(), 4) + Little(0, 4);
    for (size_t i = 0; i < bytes.size(); ++i) {
      table += Little(static_cast<uint64_t>(offsets[i]), 8);
      table += Little(static_cast<uint64_t>(bytes[i]), 8);
    }
    blobs->push_back({"tn_blob_device_weights", table, 8, false, false});
    blobs->push_back({"tn_blob_device_weights_state",
                      std::string(TN_DEVICE_WEIGHTS_STATE_BYTES, '\0'), 64, false, true});
  }
}

// The device's code, and as data of the library where it is there.
Status MakeDeviceCode(const std::vector<KernelResult>& kernels, const KernelJob& job,
                      CompiledModule* out) {
  Module module;
  for (const KernelResult& k : kernels) AddKernel(k.lowered, k.name, &module);
  TN_ASSIGN_OR_RETURN(out->device, CodeGeneratorOf(*job.target)->device_code(module, *job.target));
  if (!out->device.missing.empty()) return Ok();
  TN_ASSIGN_OR_RETURN(
      auto blobs, codegen::PackDeviceCode(DeviceKernels(module), *job.target, out->device.images));
  AddDeviceWeights(out->host, &blobs);
  out->emit.blobs.insert(out->emit.blobs.end(), blobs.begin(), blobs.end());
  return Ok();
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

// So that a program can call them without arguments' checks.
static void ExportBodies(Module* host) {
  for (auto& [name, f] : host->funcs) {
    if (f->func_kind != FuncKind::kHost) continue;
    PrimFunc fields(*f);
    fields.attrs.Set("exported", true);
    f = PrimFunc::Make(std::move(fields));
  }
}

Expected<CompiledModule> CompileModule(const Module& input, const KernelJob& job) {
  CompiledModule out;
  PassContext wrapping;
  wrapping.remarks = &out.remarks;
  TN_ASSIGN_OR_RETURN(const Module module, RunPass(*FindLoopPass("wrap_exports"), input, wrapping));
  Module host;
  for (const auto& [name, f] : module.funcs) {
    if (f->func_kind == FuncKind::kHost) host.Add(f);
  }
  TN_ASSIGN_OR_RETURN(std::vector<KernelResult> kernels, Scheduled(module, job, &host));
  ForEachKernel(&kernels, job, [&](int64_t, KernelResult* k) { return LowerIn(job, k); });
  if (Diagnostics errors = ErrorsOf(&kernels, job); !errors.empty()) return errors;
  ShareMicroKernels(&kernels);
  std::atomic<int64_t> done{0};
  const auto n = static_cast<int64_t>(kernels.size());
  ForEachKernel(&kernels, job, [&](int64_t, KernelResult* k) -> Status {
    if (!job.source && !job.together && !job.target->IsDevice()) {
      codegen::EmitOptions emit;
      emit.functions = k->functions;
      emit.verify |= job.hooks.verify;
      const auto start = std::chrono::steady_clock::now();
      TN_ASSIGN_OR_RETURN(k->object, codegen::EmitObject(k->lowered, *job.target, emit));
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      if (job.after_codegen) job.after_codegen(taken.count());
    }
    if (job.progress) job.progress(++done, n);
    return Ok();
  });
  if (Diagnostics errors = ErrorsOf(&kernels, job); !errors.empty()) return errors;
  for (KernelResult& k : kernels) {
    out.remarks.insert(out.remarks.end(), k.remarks.begin(), k.remarks.end());
    if (job.inspect) TN_RETURN_IF_ERROR(job.inspect(k.lowered, k.functions));
    host.Add(Declaration(k.lowered.Find(k.name)));
    AddKernel(k.lowered, k.name, &out.whole);
    if (!k.object.empty()) out.objects.push_back(std::move(k.object));
  }

  PassContext context = ContextOf(job.target->Cpu());
  TN_ASSIGN_OR_RETURN(out.host, RunPipeline(HostPipeline(), std::move(host), context, job.hooks));
  if (job.finish_host) TN_RETURN_IF_ERROR(job.finish_host(&out.host));
  if (job.export_bodies) ExportBodies(&out.host);
  codegen::EmitOptions& emit = out.emit;
  emit.verify |= job.hooks.verify;
  emit.error_texts = job.error_texts;
  for (const auto& [name, f] : out.host.funcs) {
    // All but the declarations of kernels: a function that tells the arena's size too.
    if (f->func_kind != FuncKind::kKernel) emit.functions.push_back(name);
  }
  if (job.blobs) emit.blobs = job.blobs(out.host);
  AddInstances(out.host, &emit.blobs);
  if (job.inspect) TN_RETURN_IF_ERROR(job.inspect(out.host, emit.functions));
  if (job.target->IsDevice()) TN_RETURN_IF_ERROR(MakeDeviceCode(kernels, job, &out));
  for (const std::string& name : emit.functions) out.whole.Add(out.host.Find(name));
  TN_RETURN_IF_ERROR(EmitHost(job, &out));
  return out;
}

}  // namespace tenon::driver
