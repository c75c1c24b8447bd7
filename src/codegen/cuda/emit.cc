// One loop IR module → one file of CUDA C++: what stands in for the host's headers, helpers, device
// functions, and the kernels.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codegen/abi.h"
#include "codegen/codegen.h"
#include "codegen/cuda/language.h"
#include "codegen/gpu_launch.h"
#include "codegen/narrow.h"
#include "codegen/source_function.h"
#include "support/strings.h"

namespace tenon::codegen {

namespace {

constexpr char kPreamble[] =
    R"(// The arithmetic is exact about roundings: compile with -fmad=false (what may be fused, is).
#if defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef long long intptr_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INT64_MIN (-9223372036854775807ll - 1)
#define INT64_MAX 9223372036854775807ll
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295u
#define UINT64_MAX 18446744073709551615ull
#define INT64_C(value) value##ll
#define UINT64_C(value) value##ull
#define NAN __int_as_float(0x7fffffff)
#define INFINITY __int_as_float(0x7f800000)
#else
#include <math.h>
#include <stdint.h>
#include <string.h>
#endif
)";

constexpr char kPrefetch[] = R"(
#define TN_PREFETCH(address, write) asm volatile("prefetch.L2 [%0];" ::"l"(address))
)";

constexpr char kDynamicShared[] = "\nextern __shared__ __align__(128) unsigned char tn_shared[];\n";

class CudaModule final : public SourceModule {
 public:
  CudaModule(const Module& module, const Target& target, const EmitOptions& options)
      : module_(module),
        target_(target),
        options_(options),
        language_(CudaCpp()),
        helpers_(language_),
        names_(language_.reserved_words),
        written_(*this) {}

  Expected<std::string> Emit();

  Func Find(const std::string& name) const override { return module_.Find(name); }
  std::string NameOf(const PrimFunc& func) override { return function_names_.at(func.name); }
  std::string Symbol(const std::string& name) override {
    Error("the address of '" + name + "' on a GPU");
    return "0";
  }
  bool DeclareC(const std::string&, const std::string&, const std::vector<std::string>&) override {
    return true;  // refused where it is called
  }
  void Error(const PrimFunc& func, std::string message) override;

 private:
  bool IsWanted(const PrimFunc& func) const;
  void NameFunctions();
  void EmitFunction(const PrimFunc& func);
  void EmitCallees(const PrimFunc& func);
  void Error(const std::string& what) { Error(*now_, "unsupported: " + what); }

  const Module& module_;
  const Target& target_;
  const EmitOptions& options_;
  const Language& language_;
  Helpers helpers_;
  Names names_;
  WrittenBuffers written_;
  std::map<std::string, std::string> function_names_;
  std::set<std::string> done_;
  const PrimFunc* now_ = nullptr;
  std::string prototypes_, functions_;
  bool dynamic_shared_ = false;
  Diagnostics errors_;
  std::set<std::string> reported_;
};

void CudaModule::Error(const PrimFunc& func, std::string message) {
  if (!reported_.insert(func.name + '\0' + message).second) return;
  SourceLoc loc;
  loc.item = "function '" + func.name + "'";
  errors_.push_back(MakeError(std::move(message), std::move(loc)));
}

// A module may hold the host's functions too.
bool CudaModule::IsWanted(const PrimFunc& func) const {
  if (func.func_kind != FuncKind::kKernel) return false;
  const auto& wanted = options_.functions;
  if (!wanted.empty()) return std::find(wanted.begin(), wanted.end(), func.name) != wanted.end();
  auto target = Target::Parse(func.target);
  return target && target->kind() == TargetKind::kCuda;
}

void CudaModule::NameFunctions() {
  for (const auto& [name, func] : module_.funcs) {
    if (!IsWanted(*func)) continue;
    if (ToIdentifier(name) != name || !names_.IsFree(name))
      Error(*func, "a kernel needs an identifier that CUDA C++ does not use itself");
    names_.Reserve(name);
    function_names_[name] = name;
  }
  for (const auto& [name, func] : module_.funcs) {
    if (!function_names_.contains(name)) function_names_[name] = names_.Take(name);
  }
}

// Device functions stand before those that call them.
void CudaModule::EmitCallees(const PrimFunc& func) {
  PreOrder(func.body, [&](const NodeRef& n) {
    const auto* call = As<CallFunc>(n);
    Func callee = call ? Find(call->callee) : nullptr;
    if (!callee) return true;
    if (callee->func_kind != FuncKind::kDevice) {
      Error(func, "call of " + call->callee + ", which is no device function");
    } else if (done_.insert(callee->name).second) {
      EmitFunction(*callee);
    }
    return true;
  });
}

void CudaModule::EmitFunction(const PrimFunc& func) {
  const bool is_kernel = func.func_kind == FuncKind::kKernel;
  FunctionForm form;
  form.index_bits = IndicesFit32(func) ? 32 : 64;
  std::string qualifiers = language_.hidden;
  if (is_kernel) {
    auto launch = LaunchOf(func, target_.gpu());
    if (!launch) {
      errors_.insert(errors_.end(), launch.errors().begin(), launch.errors().end());
      return;
    }
    qualifiers = fmt::format("{} __launch_bounds__({})", language_.visible, launch->threads());
    if (launch->dynamic_shared) form.dynamic_shared = launch->shared;
    dynamic_shared_ |= launch->dynamic_shared;
  }
  SourceFunction source(*this, func, language_, &helpers_, &written_, std::move(form));
  if (!is_kernel) prototypes_ += qualifiers + " " + source.Signature() + ";\n";
  EmitCallees(func);
  now_ = &func;
  functions_ += "\n" + source.Emit(qualifiers);
}

Expected<std::string> CudaModule::Emit() {
  if (target_.kind() != TargetKind::kCuda)
    return MakeError("CUDA code is made for a cuda target but got '" + target_.ToString() + "'");
  for (const std::string& name : options_.functions) {
    Func f = Find(name);
    if (!f) return MakeError("no function '" + name + "' in the module");
    if (f->func_kind != FuncKind::kKernel) return MakeError("function '" + name + "' is no kernel");
  }
  NameFunctions();
  for (const auto& [name, func] : module_.funcs) {
    if (IsWanted(*func)) EmitFunction(*func);
  }
  if (!errors_.empty()) return std::move(errors_);
  std::string out = kPreamble;
  if (functions_.find("TN_PREFETCH") != std::string::npos) out += kPrefetch;
  if (dynamic_shared_) out += kDynamicShared;
  if (!options_.declarations.empty()) out += "\n" + options_.declarations;
  const std::string helpers = helpers_.Text();
  if (!helpers.empty()) out += "\n" + helpers;
  if (!prototypes_.empty()) out += "\n" + prototypes_;
  return out + functions_;
}

}  // namespace

Expected<std::string> EmitCuda(const Module& module, const Target& target,
                               const EmitOptions& options) {
  return CudaModule(module, target, options).Emit();
}

}  // namespace tenon::codegen
