#include "driver/build.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "artifact/link.h"
#include "codegen/codegen.h"
#include "driver/kernels.h"
#include "ir/print.h"
#include "loop/verify.h"
#include "support/strings.h"
#include "tenon/kernel_abi.h"

namespace tenon::driver {

namespace {

using Json = nlohmann::ordered_json;

Json TensorJson(const BufferNode& buffer) {
  Json shape = Json::array();
  for (const Expr& d : buffer.shape) {
    if (auto n = AsInt(d)) {
      shape.push_back(*n);
    } else {
      shape.push_back(ToString(d));
    }
  }
  return {{"name", buffer.name}, {"dtype", LongName(buffer.dtype)}, {"shape", shape}};
}

Json FunctionJson(const PrimFunc& f, const std::string& name) {
  Json j{{"name", name}, {"inputs", Json::array()}, {"outputs", Json::array()}};
  size_t inputs = f.buffers.size() - static_cast<size_t>(f.num_outputs);
  for (size_t i = 0; i < f.buffers.size(); ++i) {
    j[i < inputs ? "inputs" : "outputs"].push_back(TensorJson(*f.buffers[i]));
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
    j["functions"].push_back(FunctionJson(*f, f->name));
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

std::vector<codegen::DataBlob> Blobs(const std::string& info, const Target& target) {
  std::string size(8, '\0'), cpu;
  for (size_t i = 0; i < 8; ++i) size[i] = static_cast<char>(info.size() >> (8 * i));
  for (const std::string& feature : target.FeatureList()) cpu += feature + '\0';
  cpu += '\0';
  return {{"tn_blob_info", info, 1, false, false},
          {"tn_blob_info_size", size, 8, false, false},
          {"tn_cpu_required", cpu, 1, false, false},
          {"tn_main_instances", std::string(TN_INSTANCES_BYTES, '\0'), 64, false, true}};
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

std::vector<Func> Exported(const Module& module) {
  std::vector<Func> out;
  for (const auto& [name, f] : module.funcs) {
    if (f->attrs.Get<bool>("exported", false)) out.push_back(f);
  }
  return out;
}

// Every function's target, and which of them have parameters that never overlap: an output is
// checked at entry to overlap nothing, and what is only read may.
Module Annotated(const Module& module, const Target& target) {
  Module out = module;
  for (const auto& [name, f] : module.funcs) {
    PrimFunc fields(*f);
    fields.target = target.ToString();
    if (f->func_kind == FuncKind::kKernel) fields.attrs.Set("noalias", true);
    out.Add(PrimFunc::Make(fields));
  }
  return out;
}

}  // namespace

Expected<BuiltCode> BuildModule(const Module& input, const BuildOptions& options) {
  const Target& target = *options.target;
  if (target.kind() != TargetKind::kLlvm) {
    return MakeError(
        fmt::format("target '{}' cannot be built for yet; use an llvm target", target.ToString()));
  }
  TN_RETURN_IF_ERROR(Verify(input, Stage::kSchedulable));
  const std::vector<Func> exported = Exported(input);
  if (exported.empty()) return MakeError("no function of the module has the attribute exported");

  for (const Func& f : exported) {
    if (ToIdentifier(f->name) == f->name) continue;
    return MakeError(
        fmt::format("the name '{}' is not an identifier of C, which exports need", f->name));
  }
  Module module = FindLoopPass("wrap_exports")->run(Annotated(input, target), {});
  Module kernels, host;
  for (const auto& [name, f] : module.funcs) {
    (f->func_kind == FuncKind::kHost ? host : kernels).Add(f);
  }
  PassContext context;
  context.target = &target;
  TN_ASSIGN_OR_RETURN(kernels,
                      RunPipeline(KernelPipeline(), std::move(kernels), context, options.hooks));
  for (const auto& [name, f] : kernels.funcs) {
    if (f->func_kind == FuncKind::kKernel) host.Add(Declaration(f));
  }
  TN_ASSIGN_OR_RETURN(host, RunPipeline(HostPipeline(), std::move(host), context, options.hooks));

  BuiltCode code;
  for (const Func& f : exported) code.functions.push_back(f->name);
  if (exported.size() == 1 && exported[0]->name != "main") {
    for (const char* prefix : {"__tvm_ffi_", "__tvm_ffi__metadata_"}) {
      if (Func f = host.Find(prefix + exported[0]->name))
        host.Add(Forward(*f, prefix + std::string("main")));
    }
  }
  for (const auto& [name, f] : host.funcs) {
    if (f->func_kind == FuncKind::kPacked) code.exports.push_back(name);
  }
  codegen::EmitOptions emit;
  emit.blobs = Blobs(InfoText(exported, host, target), target);
  AddInstances(host, &emit.blobs);
  code.lowered = std::move(host);
  for (const auto& [name, f] : kernels.funcs) code.lowered.Add(f);
  TN_ASSIGN_OR_RETURN(code.object, codegen::EmitObject(code.lowered, target, emit));
  return code;
}

Expected<std::string> LinkBuilt(const BuiltCode& code, const Target& target, bool relocatable) {
  artifact::LinkRequest link;
  link.kind =
      relocatable ? artifact::OutputKind::kRelocatable : artifact::OutputKind::kSharedLibrary;
  link.objects = {{"module.o", code.object}};
  link.exports = code.exports;
  // A library links it by itself; an object must show it to whoever makes a library of it.
  if (relocatable) link.exports.push_back(TN_QUERY_SYMBOL);
  link.triple = target.triple();
  return artifact::LinkImage(link);
}

}  // namespace tenon::driver
