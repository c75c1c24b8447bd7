// Diagnostics: errors, which are what a user is told about his input. Several per run, each with a
// place and optional notes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// A place in a text or a model file. `line`/`column` count from 1; 0 means unknown. For models,
/// `file` is the path and `item` names the node or tensor, e.g. "node 'conv1' (Conv)".
struct SourceLoc {
  std::string file;
  int32_t line = 0;
  int32_t column = 0;
  std::string item;

  /// "file:line:column: item: ", with the unknown parts left out.
  std::string ToString() const;
};

/// Which exit status an error asks for (docs of the command line: 1 input at fault, 5 a limit was
/// hit).
enum class ErrorKind { kInput, kLimit };

struct Diagnostic {
  std::string message;  // starts in lower case, says what was expected and what came, no full stop
  SourceLoc loc;
  std::vector<std::string> notes;
  ErrorKind kind = ErrorKind::kInput;

  /// One line "loc: error: message" and one indented line per note.
  std::string ToString() const;
  /// The same as one JSON object on one line.
  std::string ToJson() const;
};

/// A list of diagnostics; the failure arm of Expected.
using Diagnostics = std::vector<Diagnostic>;

Diagnostic MakeError(std::string message, SourceLoc loc = {});
Diagnostic MakeLimitError(std::string message, SourceLoc loc = {});
std::string ToString(const Diagnostics& diagnostics);

}  // namespace tenon
