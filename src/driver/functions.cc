#include "driver/functions.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "driver/check_options.h"
#include "driver/code_generators.h"
#include "driver/info.h"
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
Expected<Module> Annotated(const Module& module, const FunctionOptions& options) {
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

bool Mentions(const PrimFunc& f, const VarNode& dim) {
  bool found = UsesVar(f.body, &dim);
  for (const Buffer& b : f.buffers) found |= UsesVar(b, &dim);
  return found;
}

}  // namespace

// What must hold of every function that is exported.
static Status CheckExported(const PrimFunc& f, bool plain) {
  TN_ASSIGN_OR_RETURN(const std::vector<Argument> arguments, ArgumentsOf(f));
  if (const Var dim = UntoldDim(f, arguments)) {
    if (!Mentions(f, *dim)) {
      return MakeError(
          fmt::format("function '{0}': nothing uses the size '{1}' of @{0}<…>: "
                      "expected it in a shape, or left out",
                      f.name, dim->name));
    }
    return MakeError(
        fmt::format("function '{}': the size '{}' follows from the shape of no argument; its "
                    "attribute {} can make it one",
                    f.name, dim->name, kArgumentsAttr));
  }
  if (plain) TN_RETURN_IF_ERROR(CheckPlainName(f.name));
  if (ToIdentifier(f.name) == f.name) return Ok();
  return MakeError(
      fmt::format("the name '{}' is not an identifier of C, which exports need", f.name));
}

std::vector<std::string> ExportedNames(const Module& module) {
  std::vector<std::string> names;
  for (const Func& f : Exported(module)) names.push_back(f->name);
  return names;
}

Expected<BuildRequest> RequestOf(const Module& input, const FunctionOptions& options) {
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
  for (const Func& f : exported) TN_RETURN_IF_ERROR(CheckExported(*f, options.plain));

  BuildRequest request;
  request.source = std::make_shared<const Module>(input);
  TN_ASSIGN_OR_RETURN(const Module annotated, Annotated(input, options));
  TN_ASSIGN_OR_RETURN(request.module, RunPass(*FindLoopPass("wrap_exports"), annotated, {}));
  if (options.plain) MarkPlain(exported, &request.module);
  request.hooks.passes = options.hooks;
  request.jobs = AvailableCpus();
  request.together = true;
  // create_shared makes libraries of objects; what C programs link is their own affair.
  request.visible = !options.plain;
  request.describe = [exported, target](const Module& host) {
    return InfoText(exported, host, target);
  };
  // A single function is `main` as well.
  if (exported.size() == 1 && exported[0]->name != "main")
    request.aliases.emplace_back("main", exported[0]->name);
  for (const Func& f : exported) {
    if (options.plain) request.error_texts.push_back(f->name + "_error");
  }
  return request;
}

Expected<Built> BuildFunctions(const Module& module, const FunctionOptions& options) {
  TN_ASSIGN_OR_RETURN(BuildRequest request, RequestOf(module, options));
  return Build(std::move(request));
}

}  // namespace tenon::driver
