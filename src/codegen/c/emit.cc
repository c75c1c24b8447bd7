// One loop IR module → one file of C11: what the file includes and asks of its compiler, helpers,
// the runtime core, data, and the functions, each behind those that it calls.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/abi.h"
#include "codegen/c/core_text.h"
#include "codegen/c/language.h"
#include "codegen/c_family/file.h"
#include "codegen/codegen.h"
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

)";

// What stands before exports, unless the compiler's command line says it (-DTN_EXPORT=…).
constexpr char kVisible[] = R"(
#if defined(TN_EXPORT)
#elif defined(_WIN32)
#define TN_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define TN_EXPORT __attribute__((visibility("default")))
#else
#define TN_EXPORT
#endif
)";
constexpr char kHidden[] = R"(
/* Functions are for the program or library that this is linked into, not for others in its process. */
#if defined(TN_EXPORT)
#elif defined(__GNUC__) && !defined(_WIN32)
#define TN_EXPORT __attribute__((visibility("hidden")))
#else
#define TN_EXPORT
#endif
)";

constexpr char kPrefetch[] = R"(
#if defined(__GNUC__)
#define TN_PREFETCH(address, write, nearness) __builtin_prefetch(address, write, nearness)
#else
#define TN_PREFETCH(address, write, nearness) ((void)(address))
#endif
)";

class CFile final : public SourceFile {
 public:
  CFile(const Module& module, const EmitOptions& options) : SourceFile(module, options, C11()) {}

  Expected<std::string> Emit();

  std::string Symbol(const std::string& name) override;
  bool DeclareC(const std::string& name, const std::string& result,
                const std::vector<std::string>& args) override;

 private:
  void FindReferences();
  std::string Qualifiers(const PrimFunc& func) const;
  void EmitFunction(const std::string& name);
  std::string Blob(const DataBlob& blob) const;
  std::string IntrinsicHeaders() const;

  std::map<std::string, std::vector<std::string>> references_;  // by function, in order
  std::set<std::string> referenced_, begun_;
  std::map<std::string, std::string> externs_;  // prototypes by name
  std::set<std::string> blobs_;                 // that are mentioned
  bool needs_core_ = false;
};

// What each function mentions: callees, and functions whose address it takes.
void CFile::FindReferences() {
  for (const auto& [name, func] : module_.funcs) {
    std::vector<std::string>& found = references_[name];
    PreOrder(func->body, [&](const NodeRef& n) {
      if (const auto* call = As<CallFunc>(n)) found.push_back(call->callee);
      if (const auto* text = As<StringConst>(n); text && text->value.starts_with("@"))
        found.push_back(text->value.substr(1));
      return true;
    });
    if (IsAskedFor(name)) referenced_.insert(found.begin(), found.end());
  }
}

std::string CFile::Qualifiers(const PrimFunc& func) const {
  if (IsExported(func)) return language_.visible;
  return referenced_.contains(func.name) && IsAskedFor(func.name) ? language_.hidden : "";
}

std::string CFile::Symbol(const std::string& name) {
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

bool CFile::DeclareC(const std::string& name, const std::string& result,
                     const std::vector<std::string>& args) {
  if (name.starts_with("tn_core_")) {
    needs_core_ = true;
    return true;
  }
  const std::string prototype =
      fmt::format("extern {} {}({});\n", result, name, args.empty() ? "void" : Join(args, ", "));
  return externs_.emplace(name, prototype).first->second == prototype;
}

std::string CFile::Blob(const DataBlob& blob) const {
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
void CFile::EmitFunction(const std::string& name) {
  Func func = module_.Find(name);
  if (!func || done_.contains(name)) return;
  SourceFunction source(*this, *func, language_, &helpers_, &written_);
  const std::string qualifiers = Qualifiers(*func);
  if (!IsAskedFor(name) || !begun_.insert(name).second) {
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
std::string CFile::IntrinsicHeaders() const {
  std::set<std::string> macros;
  for (const auto& [name, func] : module_.funcs) {
    const TileIntrinsic* row = IsAskedFor(name) ? IntrinsicOf(*func) : nullptr;
    if (row != nullptr)
      macros.insert("defined(" + row->EmissionOf(Emission::Kind::kC)->macro + ")");
  }
  if (macros.empty()) return "";
  return fmt::format("\n#if {}\n#include <immintrin.h>\n#endif\n", fmt::join(macros, " || "));
}

Expected<std::string> CFile::Emit() {
  TN_RETURN_IF_ERROR(CheckOptions());
  NameFunctions(IsExported, "an export", [](const PrimFunc& f) {
    return f.func_kind == FuncKind::kHost ? f.name + "_body" : f.name;
  });
  FindReferences();
  for (const auto& [name, func] : module_.funcs) {
    if (IsAskedFor(name)) EmitFunction(name);
  }
  if (!errors_.empty()) return std::move(errors_);
  std::string out = kPreamble;
  out += options_.visible ? kVisible : kHidden;
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
  return CFile(module, options).Emit();
}

}  // namespace tenon::codegen
