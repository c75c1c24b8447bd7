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

// A message may quote what a file says, and a file may say anything, at any length.
static std::string Shortened(std::string message) {
  constexpr size_t kMost = 4000;
  if (message.size() <= kMost) return message;
  size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0) == 0x80) --end;
  return fmt::format("{}… ({} bytes)", message.substr(0, end), message.size());
}

Diagnostic MakeError(std::string message, SourceLoc loc) {
  Diagnostic d;
  d.message = Shortened(std::move(message));
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
