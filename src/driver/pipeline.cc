#include "driver/pipeline.h"

#include <chrono>

#include "loop/verify.h"
#include "support/check.h"
#include "support/stop.h"

namespace tenon::driver {

const std::vector<Step>& KernelPipeline() {
  static const std::vector<Step> kSteps = {
      {"select_intrinsics", "compares functions as they were written"},
      {"store_in_results", "on whole buffers, which are as large as results are"},
      {"compact_buffers",
       "schedules leave whole buffers at the root; regions of blocks are needed, so before "
       "lower_blocks"},
      {"lower_blocks", "from here on statements"},
      {"simplify", "bindings were put in"},
      {"bind_threads",
       "a GPU kernel's launch, while extents are those of the schedule and indices have all their "
       "dimensions"},
      {"split_guards", "interiors without ifs, while loops have their full ranges"},
      {"cut_tiles", "what is left has guards because of dims"},
      {"simplify", "decides the guards that splitting and cutting made constant"},
      {"plan_storage", "stack or workspace, on logical shapes"},
      {"flatten_storage", "layouts are taken apart while lanes are loop variables"},
      {"vectorize", "one copy of each body"},
      {"lower_parallel", "ranges become opaque here, so after all that reasons about them"},
      {"outline_micro_kernels",
       "interiors are free of guards, and what is compared is still short"},
      {"unroll", "code grows, so late"},
      {"simplify", "indices of register buffers become constants"},
      {"expand_float8", "late, as what follows; the functions of such floats are f32's then"},
      {"expand_math", "after vectorize, so that polynomials are built once per vector"},
  };
  return kSteps;
}

const std::vector<Step>& DevicePipeline() {
  static const std::vector<Step> kSteps = {
      {"select_intrinsics", "compares functions as they were written"},
      {"compact_buffers", "as on a CPU: regions of blocks are needed"},
      {"combine_threads", "blocks say what they combine, and memory is where it belongs"},
      {"lower_blocks", "from here on statements"},
      {"simplify", "bindings were put in"},
      {"lower_async", "before barriers, which stand behind its waits"},
      {"distribute", "while a warp's fragments have the extents of the schedule"},
      {"bind_threads",
       "the launch, while extents are those of the schedule and indices have all their dimensions"},
      {"split_roles", "the barriers that its own replace have just been placed"},
      {"order_launches", "on what threads run, while memory has names"},
      {"simplify", "the axes' ranges are known now"},
      {"split_guards", "pipelined loops without ifs, while they have their full ranges"},
      {"simplify", "decides the guards that splitting made constant"},
      {"plan_storage", "memory in between that lies on the device"},
      {"flatten_storage", "layouts are taken apart while lanes are loop variables"},
      {"vectorize", "one copy of each body"},
      {"unroll", "code grows, so late"},
      {"simplify", "indices of register buffers become constants"},
      {"early_loads", "loads are single ones now, at places that are expressions of threads"},
      {"expand_float8", "no device computes in them: what it has are conversions"},
  };
  return kSteps;
}

const std::vector<Step>& KernelPipelineOf(const Target& target) {
  const std::string_view name = target.kind().pipeline;
  TN_CHECK(name == "cpu" || name == "device", "no pipeline '{}'", name);
  return name == "cpu" ? KernelPipeline() : DevicePipeline();
}

const std::vector<Step>& HostPipeline() {
  static const std::vector<Step> kSteps = {
      {"plan_storage", "the arena; barriers depend on which values share memory"},
      {"time_launches", "launches have the names of their nodes here, and are calls afterwards"},
      {"lower_team", "launches become calls"},
      {"lower_launches", "those on devices, while dims are parameters"},
      {"make_packed", "exports with their checks, on logical shapes"},
      {"flatten_storage", "code generation knows one-dimensional buffers"},
      {"simplify", "checks that hold are gone"},
  };
  return kSteps;
}

void CheckVerified(const Status& verified, std::string_view after) {
  TN_CHECK(verified, "after {} the code is faulty:\n{}", after, ToString(verified.errors()));
}

Expected<Target> PlainHost() {
  const Target host = Target::Host();
  if (host.arch() != Arch::kX86_64) return host;
  return Target::Parse("llvm -mtriple=" + host.triple() + " -mcpu=x86-64");
}

PassContext ContextOf(const Target& target) {
  PassContext context;
  context.target = &target;
  if (target.Cpu().IsContained()) context.max_team = 1;
  return context;
}

Expected<Module> RunPipeline(const std::vector<Step>& steps, Module module,
                             const PassContext& context, const PassHooks& hooks) {
  for (const Step& step : steps) {
    if (hooks.disabled.count(step.pass)) continue;
    PollStop();
    const PassInfo* pass = FindLoopPass(step.pass);
    TN_CHECK(pass, "no pass '{}'", step.pass);
    auto start = std::chrono::steady_clock::now();
    TN_ASSIGN_OR_RETURN(Module after, RunPass(*pass, module, context));
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (hooks.after_pass) hooks.after_pass(step.pass, module, after, seconds);
    module = std::move(after);
    if (hooks.verify) CheckVerified(Verify(module, Stage::kSchedulable), step.pass);
  }
  // What no pass lowers is named here; it may have come with the input.
  if (hooks.verify) TN_RETURN_IF_ERROR(Verify(module, Stage::kLowered));
  return module;
}

}  // namespace tenon::driver
