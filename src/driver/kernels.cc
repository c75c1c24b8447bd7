#include "driver/kernels.h"

#include <atomic>
#include <chrono>
#include <optional>

#include "ops/kernel.h"
#include "support/thread_pool.h"
#include "tenon/kernel_abi.h"

namespace tenon::driver {

namespace {

struct KernelResult {
  Module lowered;
  std::string object;
  Diagnostics errors;
};

// Host functions call kernels by their signatures and attributes; bodies would only be lowered
// again.
Func Declaration(const Func& f) {
  PrimFunc fields(*f);
  fields.body = Seq::Make({});
  return PrimFunc::Make(std::move(fields));
}

Expected<KernelResult> CompileKernel(const Func& kernel, const KernelJob& job) {
  PassContext context;
  context.target = job.target;
  auto start = std::chrono::steady_clock::now();
  TN_ASSIGN_OR_RETURN(Schedule schedule, ops::ScheduleKernel(kernel, *job.target));
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (job.after_schedule) job.after_schedule(schedule, seconds);
  KernelResult r;
  TN_ASSIGN_OR_RETURN(r.lowered,
                      RunPipeline(KernelPipeline(), schedule.module(), context, job.hooks));
  TN_ASSIGN_OR_RETURN(r.object, codegen::EmitObject(r.lowered, *job.target, {}));
  return r;
}

Diagnostics InKernel(Diagnostics errors, const std::string& kernel) {
  for (Diagnostic& d : errors) d.notes.push_back("in kernel '" + kernel + "'");
  return errors;
}

// The idle arenas of every exported function that borrows one and has none among the blobs yet.
void AddInstances(const Module& host, std::vector<codegen::DataBlob>* blobs) {
  for (const auto& [name, f] : host.funcs) {
    std::string symbol = f->attrs.GetString("instances");
    bool there = symbol.empty();
    for (const codegen::DataBlob& b : *blobs) there |= b.symbol == symbol;
    if (!there) blobs->push_back({symbol, std::string(TN_INSTANCES_BYTES, '\0'), 64, false, true});
  }
}

}  // namespace

Expected<CompiledModule> CompileModule(const Module& input, const KernelJob& job) {
  Module module = FindLoopPass("wrap_exports")->run(input, {});
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
  std::atomic<int64_t> done{0};
  ParallelFor(n, job.jobs, [&](int64_t i) {
    size_t k = static_cast<size_t>(i);
    Expected<KernelResult> r = CompileKernel(kernels[k], job);
    if (r) {
      results[k] = std::move(*r);
    } else {
      results[k].errors = InKernel(std::move(r.errors()), kernels[k]->name);
    }
    if (job.progress) job.progress(++done, n);
  });

  CompiledModule out;
  Diagnostics errors;
  for (size_t k = 0; k < kernels.size(); ++k) {
    errors.insert(errors.end(), results[k].errors.begin(), results[k].errors.end());
    if (!errors.empty()) continue;
    std::vector<std::string> names;
    for (const auto& [name, f] : results[k].lowered.funcs) names.push_back(name);
    if (job.inspect) TN_RETURN_IF_ERROR(job.inspect(results[k].lowered, names));
    host.Add(Declaration(results[k].lowered.Find(kernels[k]->name)));
    out.objects.push_back(std::move(results[k].object));
  }
  if (!errors.empty()) return errors;

  PassContext context;
  context.target = job.target;
  TN_ASSIGN_OR_RETURN(out.host, RunPipeline(HostPipeline(), std::move(host), context, job.hooks));
  if (job.export_bodies) {
    for (auto& [name, f] : out.host.funcs) {
      if (f->func_kind != FuncKind::kHost) continue;
      PrimFunc fields(*f);
      fields.attrs.Set("exported", true);
      f = PrimFunc::Make(std::move(fields));
    }
  }
  codegen::EmitOptions emit;
  for (const auto& [name, f] : out.host.funcs) {
    if (f->func_kind == FuncKind::kHost || f->func_kind == FuncKind::kPacked)
      emit.functions.push_back(name);
  }
  if (job.blobs) emit.blobs = job.blobs(out.host);
  AddInstances(out.host, &emit.blobs);
  if (job.inspect) TN_RETURN_IF_ERROR(job.inspect(out.host, emit.functions));
  TN_ASSIGN_OR_RETURN(std::string object, codegen::EmitObject(out.host, *job.target, emit));
  out.objects.push_back(std::move(object));
  return out;
}

}  // namespace tenon::driver
