#include "codegen/gpu/file.h"

#include <fmt/format.h>

#include "codegen/gpu/narrow.h"
#include "intrin/tile_intrinsic.h"
#include "support/strings.h"

namespace tenon::codegen {

namespace {

bool IsWordPart(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Whether one of the words, separated by blanks, stands in the text.
bool Mentions(const std::string& text, const std::string& words) {
  for (const std::string& word : Split(words, ' ')) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      const size_t end = at + word.size();
      const bool begins = at == 0 || !IsWordPart(text[at - 1]);
      if (begins && (end == text.size() || !IsWordPart(text[end]))) return true;
    }
  }
  return false;
}

// Whether its roles have registers of their own.
bool NamesRegisters(const PrimFunc& func) {
  bool found = false;
  PreOrder(func.body, [&](const NodeRef& n) {
    const auto* roles = As<Roles>(n);
    for (size_t i = 0; roles && i < roles->registers.size(); ++i) found |= roles->registers[i] > 0;
    return !found && !IsA<ExprNode>(n);
  });
  return found;
}

}  // namespace

// A module may hold the host's functions too.
bool GpuFile::IsWanted(const PrimFunc& func) const {
  if (func.func_kind != FuncKind::kKernel) return false;
  if (!options_.functions.empty()) return IsAskedFor(func.name);
  return func.target && func.target->SameKind(target_);
}

std::string GpuFile::Symbol(const std::string& name) {
  Error(*now_, "unsupported: the address of '" + name + "' on a GPU");
  return "0";
}

// Written when the first call needs it, and so before its caller; where pointers say which memory
// they are of, once for each choice of memories that it is called with.
std::string GpuFile::CalleeOf(const PrimFunc& func, const std::vector<std::string>& spaces) {
  auto [place, fresh] = callees_.try_emplace(func.name + "(" + Join(spaces, ",") + ")");
  std::string& name = place->second;
  if (!fresh) return name;
  const bool first = done_.insert(func.name).second;
  name = first ? NameOf(func) : names_.Take(NameOf(func));
  if (func.func_kind != FuncKind::kDevice) {
    Error(*now_, "call of " + func.name + ", which is no device function");
    return name;
  }
  FunctionForm form;
  form.name = name;
  form.spaces = spaces;
  const PrimFunc* caller = now_;
  EmitFunction(func, IntrinsicOf(func) ? language_.helper : language_.hidden, std::move(form));
  now_ = caller;
  return name;
}

void GpuFile::EmitFunction(const PrimFunc& func, const std::string& qualifiers, FunctionForm form) {
  now_ = &func;
  form.index_bits = IndicesFit32(func) ? 32 : 64;
  SourceFunction source(*this, func, language_, &helpers_, &written_, std::move(form));
  if (func.func_kind == FuncKind::kDevice)
    prototypes_ += qualifiers + " " + source.Signature() + ";\n";
  const std::string text = source.Emit(qualifiers);
  functions_ += "\n" + text;
}

void GpuFile::EmitKernel(const PrimFunc& func) {
  auto launch = LaunchOf(func, target_);
  if (!launch) {
    errors_.insert(errors_.end(), launch.errors().begin(), launch.errors().end());
    return;
  }
  const std::array<int64_t, 3>& block = launch->block;
  const std::string qualifiers = fmt::format(
      "{} {}", language_.visible,
      fmt::format(
          fmt::runtime(gpu_.roles && NamesRegisters(func) ? gpu_.roles->threads : gpu_.threads),
          launch->threads(), block[0], block[1], block[2]));
  FunctionForm form;
  form.spaces.assign(func.buffers.size(), gpu_.global_space);
  if (gpu_.dynamic_shared && launch->dynamic_shared) form.dynamic_shared = launch->shared;
  EmitFunction(func, qualifiers, std::move(form));
}

// What the file begins with, and what that mentions which follows asks for.
std::string GpuFile::Beginning(const std::string& helpers) const {
  std::string out = gpu_.preamble;
  for (const PreambleSpelling& row : gpu_.preambles) {
    if (Mentions(functions_, row.words) || Mentions(helpers, row.words)) out += row.text;
  }
  return out;
}

Expected<std::string> GpuFile::Emit() {
  TN_RETURN_IF_ERROR(CheckOptions());
  for (const std::string& name : options_.functions) {
    if (Find(name)->func_kind != FuncKind::kKernel)
      return MakeError("function '" + name + "' is no kernel");
  }
  NameFunctions([&](const PrimFunc& f) { return IsWanted(f); }, "a kernel",
                [](const PrimFunc& f) { return f.name; });
  for (const auto& [name, func] : module_.funcs) {
    if (IsWanted(*func)) EmitKernel(*func);
  }
  if (!errors_.empty()) return std::move(errors_);
  const std::string helpers = helpers_.Text();
  std::string out = Beginning(helpers);
  if (!options_.declarations.empty()) out += "\n" + options_.declarations;
  if (!helpers.empty()) out += "\n" + helpers;
  if (!prototypes_.empty()) out += "\n" + prototypes_;
  return out + functions_;
}

}  // namespace tenon::codegen
