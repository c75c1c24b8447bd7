#include "codegen/c_family/file.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/strings.h"

namespace tenon::codegen {

SourceFile::SourceFile(const Module& module, const EmitOptions& options, const Language& language)
    : module_(module),
      options_(options),
      language_(language),
      helpers_(language_),
      names_(language_.reserved_words),
      written_(*this) {}

void SourceFile::Error(const PrimFunc& func, std::string message) {
  if (!reported_.insert(func.name + '\0' + message).second) return;
  SourceLoc loc;
  loc.item = "function '" + func.name + "'";
  errors_.push_back(MakeError(std::move(message), std::move(loc)));
}

bool SourceFile::IsAskedFor(const std::string& name) const {
  const auto& wanted = options_.functions;
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
}

Status SourceFile::CheckOptions() const {
  for (const std::string& name : options_.functions) {
    if (!Find(name)) return MakeError("no function '" + name + "' in the module");
  }
  return Ok();
}

void SourceFile::NameFunctions(const std::function<bool(const PrimFunc&)>& keeps, const char* what,
                               const std::function<std::string(const PrimFunc&)>& wanted) {
  for (const auto& [name, func] : module_.funcs) {
    if (!keeps(*func)) continue;
    // Names of GPU languages begin so; exports of C source that do are those of the ABI.
    const bool taken = language_.gpu && name.starts_with("__");
    if (ToIdentifier(name) != name || !names_.IsFree(name) || taken) {
      Error(*func, fmt::format("{} needs an identifier that {} does not use itself", what,
                               language_.name));
    }
    names_.Reserve(name);
    function_names_[name] = name;
  }
  for (const auto& [name, func] : module_.funcs) {
    if (!function_names_.contains(name)) function_names_[name] = names_.Take(wanted(*func));
  }
}

}  // namespace tenon::codegen
