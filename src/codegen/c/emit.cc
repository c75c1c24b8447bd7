// One loop IR module → one file of C11: what the file includes and asks of its compiler, helpers,
// the runtime core, data, and the functions, each behind those that it calls.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codegen/abi.h"
#include "codegen/c/core_text.h"
#include "codegen/c/language.h"
#include "codegen/codegen.h"
#include "codegen/source_function.h"
#include "support/strings.h"

namespace tenon::codegen {

namespace {

// The arithmetic of the functions is exact about roundings, so nothing may be fused, widened or
// reordered behind their back. GCC guesses about arrays that are filled under a condition.
constexpr char kPreamble[] = R"(#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "this code relies on IEEE arithmetic: compile it without -ffast-math"
#endif
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "this code relies on floats that are no wider than their types: with GCC on x86, -mfpmath=sse"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#if !defined(__STRICT_ANSI__) /* with -std=c11 it is off */
#pragma GCC optimize("fp-contract=off")
#endif
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#endif

#if defined(_WIN32)
#define TN_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define TN_EXPORT __attribute__((visibility("default")))
#else
#define TN_EXPORT
#endif
)";

constexpr char kPrefetch[] = R"(
#if defined(__GNUC__)
#define TN_PREFETCH(address, write) __builtin_prefetch(address, write)
#else
#define TN_PREFETCH(address, write) ((void)(address))
#endif
)";

class CModule final : public SourceModule {
 public:
  CModule(const Module& module, const EmitOptions& options)
      : module_(module),
        options_(options),
        language_(C11()),
        helpers_(language_),
        names_(language_.reserved_words),
        written_(*this) {}

  Expected<std::string> Emit();

  Func Find(const std::string& name) const override { return module_.Find(name); }
  std::string NameOf(const PrimFunc& func) override { return function_names_.at(func.name); }
  std::string Symbol(const std::string& name) override;
  bool DeclareC(const std::string& name, const std::string& result,
                const std::vector<std::string>& args) override;
  void Error(const PrimFunc& func, std::string message) override;

 private:
  bool Defines(const std::string& name) const {
    const auto& wanted = options_.functions;
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  }
  void NameFunctions();
  void FindReferences();
  std::string Qualifiers(const PrimFunc& func) const;
  void EmitFunction(const std::string& name);
  std::string Blob(const DataBlob& blob) const;
  std::string IntrinsicHeaders() const;

  const Module& module_;
  const EmitOptions& options_;
  const Language& language_;
  Helpers helpers_;
  Names names_;
  WrittenBuffers written_;
  std::map<std::string, std::string> function_names_;
  std::map<std::string, std::vector<std::string>> references_;  // by function, in order
  std::set<std::string> referenced_, begun_, done_;
  std::map<std::string, std::string> externs_;  // prototypes by name
  std::set<std::string> blobs_;                 // that are mentioned
  bool needs_core_ = false;
  std::string prototypes_, functions_;
  Diagnostics errors_;
  std::set<std::string> reported_;
};

void CModule::Error(const PrimFunc& func, std::string message) {
  if (!reported_.insert(func.name + '\0' + message).second) return;
  SourceLoc loc;
  loc.item = "function '" + func.name + "'";
  errors_.push_back(MakeError(std::move(message), std::move(loc)));
}

void CModule::NameFunctions() {
  for (const auto& [name, func] : module_.funcs) {
    if (!IsExported(*func)) continue;
    if (ToIdentifier(name) != name || !names_.IsFree(name)) {
      Error(*func, "an export of C source needs an identifier that C does not use itself");
    }
    names_.Reserve(name);
    function_names_[name] = name;
  }
  for (const auto& [name, func] : module_.funcs) {
    if (IsExported(*func)) continue;
    function_names_[name] = names_.Take(func->func_kind == FuncKind::kHost ? name + "_body" : name);
  }
}

// What each function mentions: callees, and functions whose address it takes.
void CModule::FindReferences() {
  for (const auto& [name, func] : module_.funcs) {
    std::vector<std::string>& found = references_[name];
    PreOrder(func->body, [&](const NodeRef& n) {
      if (const auto* call = As<CallFunc>(n)) found.push_back(call->callee);
      if (const auto* text = As<StringConst>(n); text && text->value.starts_with("@"))
        found.push_back(text->value.substr(1));
      return true;
    });
    if (Defines(name)) referenced_.insert(found.begin(), found.end());
  }
}

std::string CModule::Qualifiers(const PrimFunc& func) const {
  if (IsExported(func)) return language_.visible;
  return referenced_.contains(func.name) && Defines(func.name) ? language_.hidden : "";
}

std::string CModule::Symbol(const std::string& name) {
  if (Func f = Find(name)) return NameOf(*f);
  for (const DataBlob& blob : options_.blobs) {
    if (blob.symbol != name) continue;
    blobs_.insert(name);
    return "(void*)" + name;
  }
  const bool declared = options_.declarations.find(name) != std::string::npos;
  if (!declared) externs_[name] = "extern unsigned char " + name + "[];\n";
  return name;
}

bool CModule::DeclareC(const std::string& name, const std::string& result,
                       const std::vector<std::string>& args) {
  if (name.starts_with("tn_core_")) {
    needs_core_ = true;
    return true;
  }
  const std::string prototype =
      fmt::format("extern {} {}({});\n", result, name, args.empty() ? "void" : Join(args, ", "));
  return externs_.emplace(name, prototype).first->second == prototype;
}

std::string CModule::Blob(const DataBlob& blob) const {
  std::string out =
      fmt::format("static {}_Alignas({}) unsigned char {}[{}]", blob.writable ? "" : "const ",
                  blob.align, blob.symbol, std::max<size_t>(blob.bytes.size(), 1));
  const bool zero =
      std::all_of(blob.bytes.begin(), blob.bytes.end(), [](char c) { return c == 0; });
  if (zero) return out + ";\n";
  out += " = {";
  for (size_t i = 0; i < blob.bytes.size(); ++i) {
    out += fmt::format("{}{},", i % 16 ? " " : "\n    ", static_cast<unsigned char>(blob.bytes[i]));
  }
  return out + "\n};\n";
}

// The functions that it mentions stand before it; where they mention each other, a prototype does.
void CModule::EmitFunction(const std::string& name) {
  Func func = module_.Find(name);
  if (!func || done_.contains(name)) return;
  SourceFunction source(*this, *func, language_, &helpers_, &written_);
  const std::string qualifiers = Qualifiers(*func);
  if (!Defines(name) || !begun_.insert(name).second) {
    prototypes_ += qualifiers + (qualifiers.empty() ? "" : " ") + source.Signature() + ";\n";
    done_.insert(name);
    return;
  }
  for (const std::string& other : references_[name]) EmitFunction(other);
  std::string text = source.Emit(qualifiers);
  // The structures of the packed convention have pointers of 64 bits.
  if (func->func_kind == FuncKind::kPacked && name.starts_with("__tvm_ffi_"))
    text = "#if UINTPTR_MAX == UINT64_MAX\n" + text + "#endif\n";
  functions_ += "\n" + text;
  done_.insert(name);
}

// The compiler's own header, where one of its operations is used.
std::string CModule::IntrinsicHeaders() const {
  std::set<std::string> macros;
  for (const auto& [name, func] : module_.funcs) {
    const TileIntrinsic* row = Defines(name) ? IntrinsicOf(*func) : nullptr;
    if (row != nullptr)
      macros.insert("defined(" + row->EmissionOf(Emission::Kind::kC)->macro + ")");
  }
  if (macros.empty()) return "";
  return fmt::format("\n#if {}\n#include <immintrin.h>\n#endif\n", fmt::join(macros, " || "));
}

Expected<std::string> CModule::Emit() {
  for (const std::string& name : options_.functions) {
    if (!Find(name)) return MakeError("no function '" + name + "' in the module");
  }
  NameFunctions();
  FindReferences();
  for (const auto& [name, func] : module_.funcs) {
    if (Defines(name)) EmitFunction(name);
  }
  if (!errors_.empty()) return std::move(errors_);
  std::string out = kPreamble;
  if (functions_.find("TN_PREFETCH") != std::string::npos) out += kPrefetch;
  out += IntrinsicHeaders();
  if (!options_.declarations.empty()) out += "\n" + options_.declarations;
  if (needs_core_) {
    out += std::string("\n") + kFfiTypesText + "\n";
    const std::string core = kCoreText;
    out += core.substr(core.find("*/\n", core.find("#include <tenon")) + 3);
  }
  const std::string helpers = helpers_.Text();
  if (!helpers.empty()) out += "\n" + helpers;
  for (const DataBlob& blob : options_.blobs) {
    if (blobs_.contains(blob.symbol)) out += "\n" + Blob(blob);
  }
  if (!externs_.empty() || !prototypes_.empty()) out += "\n";
  for (const auto& [name, prototype] : externs_) out += prototype;
  return out + prototypes_ + functions_;
}

}  // namespace

Expected<std::string> EmitC(const Module& module, const Target& target,
                            const EmitOptions& options) {
  return CModule(module, options).Emit();
}

}  // namespace tenon::codegen
