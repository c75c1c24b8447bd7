#include "support/diagnostic.h"

#include <fmt/format.h>

#include "support/strings.h"

namespace tenon {

std::string SourceLoc::ToString() const {
  std::string out;
  if (!file.empty()) {
    out += file;
    if (line > 0) out += fmt::format(":{}", line);
    if (line > 0 && column > 0) out += fmt::format(":{}", column);
    out += ": ";
  }
  if (!item.empty()) out += item + ": ";
  return out;
}

std::string Diagnostic::ToString() const {
  std::string out = fmt::format("{}error: {}", loc.ToString(), message);
  for (const std::string& note : notes) out += "\n  note: " + note;
  return out;
}

std::string Diagnostic::ToJson() const {
  std::string out = fmt::format(
      R"({{"severity":"error","kind":"{}","message":{},"file":{},"line":{},"column":{},"item":{},"notes":[)",
      kind == ErrorKind::kLimit ? "limit" : "input", QuoteJson(message), QuoteJson(loc.file),
      loc.line, loc.column, QuoteJson(loc.item));
  for (size_t i = 0; i < notes.size(); ++i) out += (i ? "," : "") + QuoteJson(notes[i]);
  return out + "]}";
}

Diagnostic MakeError(std::string message, SourceLoc loc) {
  Diagnostic d;
  d.message = std::move(message);
  d.loc = std::move(loc);
  return d;
}

Diagnostic MakeLimitError(std::string message, SourceLoc loc) {
  Diagnostic d = MakeError(std::move(message), std::move(loc));
  d.kind = ErrorKind::kLimit;
  return d;
}

std::string ToString(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics) out += d.ToString() + "\n";
  return out;
}

}  // namespace tenon
