#include "driver/build.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "artifact/link.h"
#include "artifact/symbols.h"
#include "codegen/codegen.h"
#include "driver/check_options.h"
#include "driver/code_generators.h"
#include "driver/info.h"
#include "driver/kernels.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "loop/arguments.h"
#include "loop/pass/host/make_packed.h"
#include "loop/verify.h"
#include "support/check.h"
#include "support/strings.h"
#include "support/thread_pool.h"
#include "tenon/kernel_abi.h"

namespace tenon::driver {

namespace {

using Json = nlohmann::ordered_json;

Json OfBuffer(const BufferNode& b) { return TensorJson(b.name, b.dtype, b.shape); }

// A number has no shape.
Json NumberJson(const VarNode& var) {
  const DType type = var.dtype.IsIndex() ? DType::Int(64) : var.dtype;
  return {{"name", var.name}, {"dtype", LongName(type)}};
}

Json FunctionJson(const PrimFunc& f, const std::vector<Argument>& arguments) {
  Json j{{"name", f.name}, {"inputs", Json::array()}, {"outputs", Json::array()}};
  const size_t inputs = arguments.size() - static_cast<size_t>(f.num_outputs);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Var number = arguments[i].VarOf(f);
    j[i < inputs ? "inputs" : "outputs"].push_back(
        number ? NumberJson(*number) : OfBuffer(*f.buffers[arguments[i].index]));
  }
  return j;
}

// The keys are those of a network's library, as far as there is something to say.
std::string InfoText(const std::vector<Func>& exported, const Module& host, const Target& target) {
  Json j;
  j["abi"] = TN_ABI_VERSION;
  j["name"] = exported.size() == 1 ? exported[0]->name : "";
  j["target"] = target.ToString();
  j["triple"] = target.Cpu().triple();
  j["features"] = target.Cpu().FeatureList();
  j["functions"] = Json::array();
  j["dims"] = Json::array();
  for (const Func& f : exported) {
    auto arguments = ArgumentsOf(*f);
    TN_CHECK(arguments, "{} has been checked", f->name);
    j["functions"].push_back(FunctionJson(*f, *arguments));
    for (size_t i = 0; i < f->dims.size(); ++i) {
      DimRange r = f->dim_range(i);
      j["dims"].push_back(
          {{"name", f->dims[i]->name}, {"min", r.lo}, {"max", r.hi}, {"step", r.step}});
    }
  }
  int64_t arena = 0;
  for (const auto& [name, f] : host.funcs) {
    arena = std::max(arena, f->attrs.GetInt("arena_bytes"));
  }
  j["arena_bytes"] = arena;
  j["weights_bytes"] = 0;
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
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

// NAME_error: what went wrong in C source that stands alone.
std::string ErrorFunctions(const std::vector<Func>& exported) {
  std::string text;
  for (const Func& f : exported) {
    text += fmt::format("\nTN_EXPORT const char* {}_error(void) {{\n  return tn_error_text;\n}}\n",
                        f->name);
  }
  return text;
}

std::vector<Func> Exported(const Module& module) {
  std::vector<Func> out;
  for (const auto& [name, f] : module.funcs) {
    if (f->attrs.Get<bool>("exported", false)) out.push_back(f);
  }
  return out;
}

// Virtual threads are played in turn, by a loop; other threads are a device's.
Expected<Stmt> WithoutThreads(const Stmt& body, const Target& target) {
  std::vector<std::string> bound;
  NodeRef out = PostOrderRewrite(body, [&](const NodeRef& n) -> NodeRef {
    const auto* loop = As<For>(n);
    if (!loop || loop->for_kind != ForKind::kThread) return n;
    if (loop->thread != ThreadAxis::kVThread)
      bound.push_back(fmt::format("{} to {}", loop->var->name, Name(loop->thread)));
    return For::Make(loop->var, loop->min, loop->extent, ForKind::kSerial, loop->body, loop->attrs);
  });
  if (bound.empty()) return Cast<StmtNode>(out);
  return MakeError(
      fmt::format("bind({}): target '{}' has no threads of a GPU; use parallel to share the "
                  "iterations of a loop among cores, vectorize to make them lanes, or bind it to "
                  "vthread",
                  Join(bound, ", "), target.kind().name));
}

constexpr const char* kKernelSuffix = "_kernel";

// Every function's target, and which of them have parameters that never overlap: an output is
// checked at entry to overlap nothing, and what is only read may. Where the exported name is taken
// by the function for C programs, the kernel has another.
Expected<Module> Annotated(const Module& module, const BuildOptions& options) {
  const TargetRef target = *options.target;
  Module out;
  out.attrs = module.attrs;
  for (const auto& [name, f] : module.funcs) {
    PrimFunc fields(*f);
    fields.target = target;
    if (!options.target->IsDevice()) {
      TN_ASSIGN_OR_RETURN(fields.body, WithoutThreads(f->body, *options.target));
    }
    if (f->func_kind == FuncKind::kKernel) fields.attrs.Set("noalias", true);
    if (options.plain && f->attrs.Get<bool>("exported", false)) fields.name += kKernelSuffix;
    out.Add(PrimFunc::Make(fields));
  }
  return out;
}

// The host functions' own names, and the functions for C programs.
void MarkPlain(const std::vector<Func>& exported, Module* module) {
  for (const Func& f : exported) {
    PrimFunc host(*module->Find(f->name + kKernelSuffix + ".host"));
    host.attrs.Set("export_name", f->name);
    host.attrs.Set(kPlain, f->name);
    host.attrs.Set("plain_checks", true);
    module->Add(PrimFunc::Make(std::move(host)));
  }
}

// The name of a function in a C program.
Status CheckPlainName(const std::string& name) {
  if (name == "main") {
    return MakeError("a C program has a function 'main' of its own; give this one another name");
  }
  return CheckExportName(name);
}

// A C program hands over working memory of a size that the header says.
Status CheckWorkspaces(const std::vector<Func>& exported, const Module& host) {
  for (const Func& f : exported) {
    if (!host.Find(f->name + kKernelSuffix + ".host.arena_bytes")) continue;
    return MakeError(
        fmt::format("function '{}': the size of its working memory has no bound, which a function "
                    "for C programs needs; give its sizes upper bounds",
                    f->name));
  }
  return Ok();
}

// A single function is `main` as well.
void AddMain(const std::vector<Func>& exported, Module* host) {
  if (exported.size() != 1 || exported[0]->name == "main") return;
  for (const char* prefix : {"__tvm_ffi_", "__tvm_ffi__metadata_"}) {
    if (Func f = host->Find(prefix + exported[0]->name))
      host->Add(Forward(*f, prefix + std::string("main")));
  }
}

// The source, and as an object what its library says of itself: data, whatever language code is in.
Status EmitSource(const std::vector<Func>& exported, const BuildOptions& options,
                  const CompiledModule& compiled, BuiltCode* code) {
  codegen::EmitOptions emit = compiled.emit;
  emit.functions.clear();
  TN_ASSIGN_OR_RETURN(code->source, codegen::EmitC(code->lowered, *options.target, emit));
  if (options.plain) code->source += ErrorFunctions(exported);
  TN_ASSIGN_OR_RETURN(const Target plain, PlainHost());
  codegen::EmitOptions data;
  data.blobs =
      DescriptionBlobs(InfoText(exported, code->lowered, *options.target), plain.FeatureList());
  AddInstances(code->lowered, &data.blobs);
  TN_ASSIGN_OR_RETURN(code->object, codegen::EmitObject(Module(), plain, data));
  return Ok();
}

bool Mentions(const PrimFunc& f, const VarNode& dim) {
  bool found = UsesVar(f.body, &dim);
  for (const Buffer& b : f.buffers) found |= UsesVar(b, &dim);
  return found;
}

}  // namespace

Expected<BuiltCode> BuildModule(const Module& input, const BuildOptions& options) {
  const Target& target = *options.target;
  TN_RETURN_IF_ERROR(CheckBuildable(target));
  if (options.plain && target.IsDevice()) {
    return MakeError(
        fmt::format("C programs call what runs on a device in the packed convention: "
                    "save the library of target '{}' instead",
                    target.ToString()));
  }
  TN_RETURN_IF_ERROR(Verify(input, Stage::kSchedulable));
  const std::vector<Func> exported = Exported(input);
  if (exported.empty()) return MakeError("no function of the module has the attribute exported");

  for (const Func& f : exported) {
    auto arguments = ArgumentsOf(*f);
    if (!arguments) return arguments.errors();
    if (const Var dim = UntoldDim(*f, *arguments)) {
      if (!Mentions(*f, *dim)) {
        return MakeError(
            fmt::format("function '{0}': nothing uses the size '{1}' of @{0}<…>: "
                        "expected it in a shape, or left out",
                        f->name, dim->name));
      }
      return MakeError(
          fmt::format("function '{}': the size '{}' follows from the shape of no argument; its "
                      "attribute {} can make it one",
                      f->name, dim->name, kArgumentsAttr));
    }
    if (options.plain) TN_RETURN_IF_ERROR(CheckPlainName(f->name));
    if (ToIdentifier(f->name) == f->name) continue;
    return MakeError(
        fmt::format("the name '{}' is not an identifier of C, which exports need", f->name));
  }
  TN_ASSIGN_OR_RETURN(Module module, Annotated(input, options));
  TN_ASSIGN_OR_RETURN(module, RunPass(*FindLoopPass("wrap_exports"), module, {}));
  if (options.plain) MarkPlain(exported, &module);

  const bool source = DoesMake(target, Makes::kSource);
  KernelJob job;
  job.target = &target;
  job.hooks = options.hooks;
  job.jobs = AvailableCpus();
  job.together = true;
  job.source = source;
  job.finish_host = [&](Module* host) -> Status {
    if (options.plain) TN_RETURN_IF_ERROR(CheckWorkspaces(exported, *host));
    AddMain(exported, host);
    return Ok();
  };
  job.blobs = [&](const Module& host) {
    return DescriptionBlobs(InfoText(exported, host, target), target.Cpu().FeatureList());
  };
  for (const Func& f : exported) {
    if (options.plain && !source) job.error_texts.push_back(f->name + "_error");
  }
  TN_ASSIGN_OR_RETURN(CompiledModule compiled, CompileModule(module, job));

  BuiltCode code;
  code.remarks = std::move(compiled.remarks);
  for (const Func& f : exported) code.functions.push_back(f->name);
  for (const auto& [name, f] : compiled.host.funcs) {
    if (f->func_kind == FuncKind::kPacked) code.exports.push_back(name);
  }
  code.exports.insert(code.exports.end(), job.error_texts.begin(), job.error_texts.end());
  code.lowered = std::move(compiled.whole);
  if (source) {
    TN_RETURN_IF_ERROR(EmitSource(exported, options, compiled, &code));
  } else {
    code.object = std::move(compiled.objects.back());
  }
  code.device = std::move(compiled.device);
  return code;
}

Expected<std::string> DescriptionObject(const std::string& info,
                                        const std::vector<std::string>& features,
                                        const Target& target) {
  codegen::EmitOptions emit;
  emit.blobs = DescriptionBlobs(info, features);
  return codegen::EmitObject(Module(), target, emit);
}

// C functions that the code calls and that neither it nor the runtime core has.
static Status CheckCalls(const Module& lowered) {
  std::set<std::string> missing;
  for (const auto& [name, f] : lowered.funcs) {
    PreOrder(f->body, [&](const NodeRef& n) {
      const auto* call = As<Call>(n);
      if (!call || call->intrinsic != Intrinsic::kExtern) return true;
      const auto* callee = As<StringConst>(call->args[0]);
      bool ours = !callee || callee->value.starts_with("tn_") ||
                  callee->value.starts_with("TVMFFI") || lowered.Find(callee->value);
      if (!ours) missing.insert(callee->value);
      return true;
    });
  }
  if (missing.empty()) return Ok();
  return MakeError(fmt::format(
      "the code calls {}, which is not part of it; save an object and link it with what defines "
      "that (create_shared)",
      Join({missing.begin(), missing.end()}, ", ")));
}

Expected<std::string> LinkBuilt(const BuiltCode& code, const Target& target, bool relocatable) {
  if (!code.device.missing.empty()) return code.device.missing;
  const bool is_source = !code.source.empty();
  const std::string triple = is_source ? Target::Host().triple() : target.Cpu().triple();
  const bool contained = IsContained(triple);  // whose modules import what they call
  if (!relocatable && !contained) TN_RETURN_IF_ERROR(CheckCalls(code.lowered));
  artifact::LinkRequest link;
  link.kind = relocatable || is_source ? artifact::OutputKind::kRelocatable
                                       : artifact::OutputKind::kSharedLibrary;
  link.objects = {{"module.o", code.object}};
  std::string compiled;
  if (is_source) {
    TN_ASSIGN_OR_RETURN(compiled, CompileObject(code.source));
    link.objects.push_back({"source.o", compiled});
  }
  link.exports = code.exports;
  // A library links it by itself; an object must show it to whoever makes a library of it.
  if (relocatable || is_source) link.exports.push_back(TN_QUERY_SYMBOL);
  link.triple = triple;
  TN_ASSIGN_OR_RETURN(std::string image, artifact::LinkImage(link));
  // C source asks more of the C library than a library of ours does: its own linker knows where.
  if (is_source && !relocatable) return SharedLibraryOf(image);
  if (relocatable && !contained) {
    artifact::WeakenSymbols({TN_QUERY_SYMBOL, "__tvm_ffi_main", "__tvm_ffi__metadata_main"},
                            &image);
  }
  return image;
}

}  // namespace tenon::driver
