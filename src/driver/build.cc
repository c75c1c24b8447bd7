// A module goes through a build in four steps, here for two kernels that call one micro-kernel:
//
//   module     @main (host)  @mm  @rows            kernels as somebody wrote them, or unscheduled
//   lowered    @mm @tile | @rows @tile_1           each kernel with its callees, in parallel
//   shared     @mm @tile | @rows                   equal micro-kernels become the first kernel's
//   code       mm.o rows.o main.o | source | device code and main.o
//
// A host function needs of its kernels what they are called with: it is lowered beside
// declarations.
#include "driver/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>

#include "codegen/gpu/aligned.h"
#include "driver/code_generators.h"
#include "driver/default_threads.h"
#include "driver/info.h"
#include "driver/kernels.h"
#include "ir/visit.h"
#include "loop/pass/host/lower_launches.h"
#include "loop/pass/host/make_packed.h"
#include "loop/pass/host/memory_apart.h"
#include "loop/pass/host/time_launches.h"
#include "loop/pass/packed_abi.h"
#include "loop/print.h"
#include "loop/rewrite.h"
#include "loop/threads.h"
#include "loop/verify.h"
#include "support/strings.h"
#include "support/thread_pool.h"
#include "tenon/kernel_abi.h"

namespace tenon::driver {

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Diagnostics InKernel(Diagnostics errors, const std::string& kernel) {
  for (Diagnostic& d : errors) d.notes.push_back("in kernel '" + kernel + "'");
  return errors;
}

std::string Little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

// The table of weights that host functions want on a device (tn_device_weights).
void AddDeviceWeights(const Module& host, std::vector<codegen::DataBlob>* blobs) {
  std::map<int64_t, int64_t> sizes;  // by offset
  for (const auto& [name, f] : host.funcs) {
    const std::vector<int64_t> offsets = f->attrs.GetInts("weight_offsets");
    const std::vector<int64_t> bytes = f->attrs.GetInts("weight_bytes");
    if (f->func_kind != FuncKind::kHost) continue;
    for (size_t i = 0; i < bytes.size(); ++i)
      sizes[offsets[i]] = std::max(sizes[offsets[i]], bytes[i]);
  }
  if (sizes.empty()) return;
  const std::vector<int64_t> order = packed::DeviceWeightOffsets(host);
  std::string table = Little(order.size(), 4) + Little(0, 4);
  for (const int64_t offset : order) {
    table += Little(static_cast<uint64_t>(offset), 8);
    table += Little(static_cast<uint64_t>(sizes[offset]), 8);
  }
  blobs->push_back({"tn_blob_device_weights", table, 8, false, false});
}

// The table that the function of a timed network tells.
void AddLaunchTimes(const Module& host, std::vector<codegen::DataBlob>* blobs) {
  for (const auto& [name, f] : host.funcs) {
    if (!f->attrs.Has(kLaunchKernelsAttr)) continue;
    const size_t rows = f->attrs.Get<std::vector<std::string>>(kLaunchKernelsAttr, {}).size();
    const std::string zeros(std::max<size_t>(rows, 1) * kLaunchTimesRow, '\0');
    blobs->push_back({kLaunchTimes, zeros, kLaunchTimesRow, false, true});
  }
}

// A kernel's signature and attributes, and the axes of its launch where it has one: all that host
// functions need of it. Bodies would only be lowered again.
Func Declaration(const Func& kernel) {
  PrimFunc fields(*kernel);
  fields.body = Seq::Make({});
  const ThreadNest nest = PeelThreads(*kernel);
  for (size_t i = nest.axes.size(); i-- > 0;) {
    fields.body = WithBody(*nest.axes[i], fields.body);
  }
  return PrimFunc::Make(std::move(fields));
}

// So that a program can call them without arguments' checks.
void ExportBodies(Module* host) {
  for (auto& [name, f] : host->funcs) {
    if (f->func_kind != FuncKind::kHost) continue;
    PrimFunc fields(*f);
    fields.attrs.Set("exported", true);
    f = PrimFunc::Make(std::move(fields));
  }
}

// A packed function of another name that passes its arguments on.
Func Forward(const PrimFunc& packed, const std::string& name) {
  PrimFunc fields;
  fields.name = name;
  fields.func_kind = FuncKind::kPacked;
  fields.target = packed.target;
  std::vector<Expr> args = {StringConst::Make(packed.name)};
  for (const Var& v : packed.scalars) {
    fields.scalars.push_back(VarNode::Make(v->name, v->dtype));
    args.push_back(fields.scalars.back());
  }
  fields.body =
      Seq::Make({Evaluate::Make(Call::Make(Intrinsic::kExtern, std::move(args), DType::Int(32))),
                 Return::Make(IntConst::Make(DType::Int(32), 0))});
  return PrimFunc::Make(fields);
}

Var HandleVar(const char* name) { return VarNode::Make(name, DType::Handle()); }

// A packed function that calls a C function; its parameters are those of one.
Stmt CallStatus(const std::string& callee, std::vector<Expr> args) {
  args.insert(args.begin(), StringConst::Make(callee));
  return Evaluate::Make(Call::Make(Intrinsic::kExtern, std::move(args), DType::Int(32)));
}

// What the runtime's part for programs wants of a library, and the packed function by which that is
// called (tenon/program_abi.h).
void AddProgram(const ProgramRequest& program, const TargetRef& target, Module* host) {
  const Expr ok = IntConst::Make(DType::Int(32), 0);
  PrimFunc part;
  part.name = "tn_program_part";
  part.func_kind = FuncKind::kPacked;
  part.target = target;
  const Var index = VarNode::Make("part", DType::Int(32)),
            count = VarNode::Make("num_args", DType::Int(32));
  const Var args = HandleVar("args"), result = HandleVar("result");
  part.scalars = {index, args, count, result};
  std::vector<Stmt> calls;
  for (size_t i = 0; i < program.parts; ++i) {
    const Expr is_it =
        Binary::Make(BinaryOp::kEq, index, IntConst::Make(DType::Int(32), static_cast<int64_t>(i)));
    const Stmt call =
        CallStatus("__tvm_ffi_" + PartName(program.name, i), {args, args, count, result});
    calls.push_back(If::Make(is_it, Seq::Make({call, Return::Make(ok)})));
  }
  calls.push_back(Return::Make(ok));
  part.body = Seq::Make(std::move(calls));
  host->Add(PrimFunc::Make(std::move(part)));
  PrimFunc main;
  main.name = "__tvm_ffi_" + program.name;
  main.func_kind = FuncKind::kPacked;
  main.target = target;
  const Var n = VarNode::Make("num_args", DType::Int(32)), in = HandleVar("args"),
            out = HandleVar("result");
  main.scalars = {HandleVar("self"), in, n, out};
  std::vector<Expr> passed = {in, n, out};
  if (target->IsDevice()) {
    passed.push_back(IntConst::Make(DType::Int(32), target->device().type));
  }
  main.body =
      Seq::Make({CallStatus("tn_core_check_cpu", {}),  // for all parts
                 CallStatus(target->IsDevice() ? "tn_program_call_on_device" : "tn_program_call",
                            std::move(passed)),
                 Return::Make(ok)});
  host->Add(PrimFunc::Make(std::move(main)));
}

// A C program hands over working memory of a size that the header says.
Status CheckWorkspaces(const Module& host) {
  for (const auto& [name, f] : host.funcs) {
    if (f->func_kind != FuncKind::kHost || !f->attrs.Has(kPlain)) continue;
    if (!host.Find(name + ".arena_bytes") || ArenaBytes(*f) > 0) continue;
    return MakeError(
        fmt::format("function '{}': the size of its working memory has no bound, which a function "
                    "for C programs needs; give its sizes upper bounds",
                    f->attrs.GetString("export_name", name)));
  }
  return Ok();
}

// The target of kernels; of host functions, where there are no others.
TargetRef TargetOf(const Module& module) {
  TargetRef target;
  for (const auto& [name, f] : module.funcs) {
    if (!target || f->func_kind == FuncKind::kKernel) target = f->target;
  }
  return target;
}

// Of what a maker of device code says, that a kernel is not what its author meant: registers that
// did not suffice, units that wait for each other. With the kernel that it is about:
//   ptxas info : Compiling entry function 'main_k0' for 'sm_90a'
//   ptxas info : Function properties for main_k0
//       16 bytes stack frame, 20 bytes spill stores, 24 bytes spill loads
std::vector<std::string> WorthSaying(const std::string& log) {
  std::vector<std::string> out;
  std::string where;
  for (const std::string& line : Split(log, '\n')) {
    constexpr std::string_view kEntry = "Compiling entry function ";
    const size_t entry = line.find(kEntry);
    if (entry != std::string::npos) where = line.substr(entry + kEntry.size()) + ": ";
    const bool spills = line.find("spill stores") != std::string::npos &&
                        line.find(" 0 bytes spill stores") == std::string::npos;
    const size_t begin = line.find_first_not_of(' ');
    if (spills || line.find("arning") != std::string::npos)
      out.push_back(where + line.substr(begin));
  }
  return out;
}

// Of an object in a cache.
Hash128 KeyOf(const Module& module, const Target& target, const codegen::EmitOptions& emit) {
  Hasher key;
  key.Text("object");
  AddImageOf(reinterpret_cast<void*>(&KeyOf), &key);
  key.Text(target.ToString()).Int(emit.verify).Int(emit.quickly).Int(emit.functions.size());
  for (const std::string& name : emit.functions) key.Text(name);
  return key.Text(Print(module)).Finish();
}

/// Keeps: `built_` holds what the steps so far made; a step that fails leaves errors, not half a
/// result.
class Builder {
 public:
  explicit Builder(BuildRequest request) : hooks_(request.hooks) {
    built_.request = std::move(request);
    built_.target = TargetOf(module());
    if (!built_.target) built_.target = built_.request.program.target;
  }

  const BuildHooks& hooks() const { return hooks_; }

  Expected<Built> Run() {
    Module all, host;
    PassContext wrapping;
    wrapping.remarks = &built_.remarks;
    TN_ASSIGN_OR_RETURN(all, RunPass(*FindLoopPass("wrap_exports"), module(), wrapping));
    for (const auto& [name, f] : all.funcs) {
      if (f->func_kind == FuncKind::kHost) host.Add(f);
    }
    TN_RETURN_IF_ERROR(ScheduleKernels(all, &host));
    TN_RETURN_IF_ERROR(ForEachKernel([&](KernelResult* k) { return Lower(k); }));
    ShareMicroKernels(&kernels_);
    std::string host_object;
    TN_RETURN_IF_ERROR(EmitKernelsAndHost(std::move(host), &host_object));
    CollectUnits();
    if (!IsSource()) built_.objects.push_back(std::move(host_object));
    return std::move(built_);
  }

 private:
  const Module& module() const { return built_.request.module; }
  const Target& target() const { return *built_.target; }
  bool IsSource() const { return DoesMake(target(), Makes::kSource); }
  bool IsTogether() const { return built_.request.together && !target().IsDevice(); }
  bool EmitsKernels() const { return !IsSource() && !IsTogether() && !target().IsDevice(); }

  // Runs `step` for every kernel, in parallel. All their errors, each with the kernel's name where
  // the user did not write it.
  Status ForEachKernel(const std::function<Status(KernelResult*)>& step) {
    ParallelFor(static_cast<int64_t>(kernels_.size()), built_.request.jobs, [&](int64_t i) {
      KernelResult& k = kernels_[static_cast<size_t>(i)];
      if (Status status = step(&k); !status) k.errors = std::move(status.errors());
    });
    Diagnostics errors;
    for (KernelResult& k : kernels_) {
      Diagnostics own =
          built_.request.schedule ? InKernel(std::move(k.errors), k.name) : std::move(k.errors);
      errors.insert(errors.end(), own.begin(), own.end());
    }
    if (!errors.empty()) return errors;
    return Ok();
  }

  // Where that is still to be done. On a device their launches are split then, so that there may be
  // more of them, and those of networks overlap.
  Status ScheduleKernels(const Module& all, Module* host) {
    kernels_ = KernelsOf(all);
    if (built_.request.schedule) {
      TN_RETURN_IF_ERROR(ForEachKernel([&](KernelResult* k) { return Schedule(all, k); }));
    }
    if (!target().IsDevice()) return Ok();
    Module whole = *host;
    for (const KernelResult& k : kernels_) {
      for (const auto& [name, f] : k.scheduled.funcs) whole.Add(f);
    }
    TN_ASSIGN_OR_RETURN(whole, RunPass(*FindLoopPass("split_launches"), whole, {}));
    if (!built_.request.schedule) {
      whole = WithDefaultThreads(whole, &built_.remarks);
    } else if (!hooks().passes.disabled.contains("overlap_launches")) {
      TN_ASSIGN_OR_RETURN(whole, RunPass(*FindLoopPass("overlap_launches"), whole, {}));
    }
    kernels_ = KernelsOf(whole);
    for (auto& [name, f] : host->funcs) f = whole.Find(name);
    return Ok();
  }

  Status Schedule(const Module& all, KernelResult* k) const {
    const auto start = Clock::now();
    TN_ASSIGN_OR_RETURN(tenon::Schedule schedule, built_.request.schedule(all.Find(k->name)));
    if (hooks().after_schedule) hooks().after_schedule(schedule, SecondsSince(start));
    k->scheduled = schedule.module();
    if (hooks().passes.verify)
      CheckVerified(Verify(k->scheduled, Stage::kSchedulable), "the schedule");
    return Ok();
  }

  Status Lower(KernelResult* k) const {
    PassContext context = ContextOf(target());
    context.remarks = &k->remarks;
    TN_ASSIGN_OR_RETURN(k->lowered, RunPipeline(KernelPipelineOf(target()), std::move(k->scheduled),
                                                context, hooks().passes));
    // A schedule may ask for what a device cannot do; nothing before this knows.
    if (target().IsDevice()) return Verify(k->lowered, Stage::kLowered);
    return Ok();
  }

  // The host functions are one more job beside the kernels' batches, and the first: it is long, and
  // needs of kernels what they are called with and not their code.
  Status EmitKernelsAndHost(Module host, std::string* host_object) {
    std::vector<std::vector<KernelResult*>> batches;
    if (EmitsKernels()) batches = Batches(&kernels_, /*distinct=*/true);
    const auto n = static_cast<int64_t>(kernels_.size());
    std::atomic<int64_t> done{0};
    Status emitted = Ok();
    ParallelFor(static_cast<int64_t>(batches.size()) + 1, built_.request.jobs, [&](int64_t i) {
      if (i == 0) {
        emitted = EmitHost(std::move(host), host_object);
        return;
      }
      const std::vector<KernelResult*>& batch = batches[static_cast<size_t>(i - 1)];
      // What is wrong in one of several is said of that one.
      if (!Emit(batch)) {
        for (KernelResult* k : batch) {
          if (Status status = Emit({k}); !status) k->errors = std::move(status.errors());
        }
      }
      done += static_cast<int64_t>(batch.size());
      if (hooks().progress) hooks().progress("kernels", done, n);
    });
    TN_RETURN_IF_ERROR(ForEachKernel([](KernelResult*) { return Ok(); }));  // their errors
    return emitted;
  }

  // As one module; the object is the first kernel's.
  Status Emit(const std::vector<KernelResult*>& batch) const {
    codegen::EmitOptions emit;
    Module module;
    for (const KernelResult* k : batch) {
      emit.functions.insert(emit.functions.end(), k->functions.begin(), k->functions.end());
      for (const auto& [name, f] : k->lowered.funcs) module.Add(f);
    }
    emit.verify |= hooks().passes.verify;
    emit.quickly = built_.request.quickly;
    const FileCache* cache = built_.request.cache.get();
    const Hash128 key = cache ? KeyOf(module, target(), emit) : Hash128();
    if (auto kept = cache ? cache->Find(key) : std::nullopt; kept && kept->size() == 1) {
      batch.front()->object = std::move(kept->front());
      return Ok();
    }
    const auto start = Clock::now();
    TN_ASSIGN_OR_RETURN(batch.front()->object, codegen::EmitObject(module, target(), emit));
    if (cache) cache->Keep(key, {{batch.front()->object}});
    if (hooks().after_codegen) hooks().after_codegen(SecondsSince(start));
    return Ok();
  }

  Status LowerHost(Module host) {
    const BuildRequest& request = built_.request;
    for (KernelResult& k : kernels_) {
      built_.remarks.insert(built_.remarks.end(), k.remarks.begin(), k.remarks.end());
      host.Add(Declaration(k.lowered.Find(k.name)));
      AddKernel(k.lowered, k.name, &built_.whole);
    }
    TN_ASSIGN_OR_RETURN(host, RunPipeline(HostPipeline(), std::move(host),
                                          ContextOf(target().Cpu()), hooks().passes));
    TN_RETURN_IF_ERROR(CheckWorkspaces(host));
    for (const auto& [alias, function] : request.aliases) {
      for (const char* prefix : {"__tvm_ffi_", "__tvm_ffi__metadata_"}) {
        if (Func f = host.Find(prefix + function)) host.Add(Forward(*f, prefix + alias));
      }
    }
    const bool has_program = !request.program.words.empty();
    if (has_program) AddProgram(request.program, built_.target, &host);
    if (request.export_bodies) ExportBodies(&host);
    codegen::EmitOptions& emit = built_.emit;
    emit.verify |= hooks().passes.verify;
    emit.error_texts = request.error_texts;
    emit.visible = request.visible;
    for (const auto& [name, f] : host.funcs) {
      // All but the declarations of kernels: a function that tells the arena's size too.
      if (f->func_kind == FuncKind::kKernel) continue;
      emit.functions.push_back(name);
      built_.whole.Add(f);
      // The parts of a program are its own affair.
      const bool seen = !has_program || name == "__tvm_ffi_" + request.program.name ||
                        name == "__tvm_ffi_" + request.program.name + kTimesSuffix;
      if (f->func_kind == FuncKind::kPacked && seen) built_.exports.push_back(name);
    }
    built_.exports.insert(built_.exports.end(), emit.error_texts.begin(), emit.error_texts.end());
    if (request.describe) {
      built_.info = request.describe(host);
      emit.blobs = DescriptionBlobs(built_.info, target().Cpu().FeatureList());
    }
    AddInstances(host, &emit.blobs);
    AddLaunchTimes(host, &emit.blobs);
    if (has_program)
      emit.blobs.push_back({"tn_blob_program", request.program.words, 4, false, false});
    built_.host = std::move(host);
    return Ok();
  }

  // And, where it is there, as data of the library.
  Status MakeDeviceCode() {
    Module module;
    for (const KernelResult& k : kernels_) AddKernel(k.lowered, k.name, &module);
    const CodeGenerator& generator = *CodeGeneratorOf(target());
    if (generator.has_addresses) module = codegen::WithAlignedForms(module);
    codegen::DeviceCodeOptions options{{}, built_.request.jobs, built_.request.cache.get()};
    if (!built_.request.together) {
      // Which device functions have one name is AddKernel's affair.
      for (const std::vector<KernelResult*>& batch : Batches(&kernels_, /*distinct=*/false)) {
        codegen::KernelPart& part = options.parts.emplace_back();
        for (const KernelResult* k : batch) part.push_back(k->name);
      }
    }
    TN_ASSIGN_OR_RETURN(built_.device, generator.device_code(module, target(), options));
    if (!built_.device.missing.empty()) return Ok();
    for (std::string& line : WorthSaying(built_.device.log))
      built_.remarks.push_back(std::move(line));
    TN_ASSIGN_OR_RETURN(auto blobs,
                        codegen::PackDeviceCode(DeviceKernels(module), target(), built_.device));
    AddDeviceWeights(built_.host, &blobs);
    built_.emit.blobs.insert(built_.emit.blobs.end(), blobs.begin(), blobs.end());
    return Ok();
  }

  void CollectUnits() {
    for (KernelResult& k : kernels_) {
      if (!k.object.empty()) built_.objects.push_back(std::move(k.object));
    }
    if (IsTogether()) {
      built_.units.push_back({built_.whole, {}, false});
      return;
    }
    for (KernelResult& k : kernels_) {
      built_.units.push_back({std::move(k.lowered), std::move(k.functions), target().IsDevice(),
                              built_.request.quickly});
    }
    built_.units.push_back(
        {built_.host, built_.emit.functions, false, IsHostCompiledQuickly(built_.host)});
  }

  // Sizes, once a call: loops have left to host functions what they repeat. But where a call brings
  // so many tensors that they are sorted, checking them is most of what it costs its caller.
  static bool IsHostCompiledQuickly(const Module& host) { return !host.Find(kFindOverlap); }

  // The host functions' code with what is data of the library; of a module that is compiled
  // together, all code.
  Status EmitHost(Module host, std::string* object) {
    TN_RETURN_IF_ERROR(LowerHost(std::move(host)));
    if (target().IsDevice()) TN_RETURN_IF_ERROR(MakeDeviceCode());
    if (IsSource()) return Ok();
    codegen::EmitOptions options = built_.emit;
    Module module = built_.host;
    if (IsTogether()) {
      options.functions.clear();
      module = built_.whole;
    } else {
      options.quickly = IsHostCompiledQuickly(module);
    }
    if (target().IsDevice()) {
      std::erase_if(module.funcs,
                    [](const auto& named) { return named.second->func_kind == FuncKind::kKernel; });
    }
    TN_ASSIGN_OR_RETURN(*object, codegen::EmitObject(module, target().Cpu(), options));
    return Ok();
  }

  const BuildHooks hooks_;
  std::vector<KernelResult> kernels_;
  Built built_;
};

}  // namespace

std::string PartName(const std::string& program, size_t part) {
  return fmt::format("{}_part{}", program, part);
}

Expected<Built> Build(BuildRequest request) {
  Builder builder(std::move(request));
  TN_ASSIGN_OR_RETURN(Built built,
                      InPhase(builder.hooks(), "kernels", [&] { return builder.Run(); }));
  TN_RETURN_IF_ERROR(WriteOutputs(built, built.request.outputs));
  return built;
}

}  // namespace tenon::driver
