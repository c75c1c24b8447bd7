// What the command line says: results on standard output, all else on standard error. Names come
// from files of strangers, so whatever a terminal would obey is written as text.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace tenon::tools {

/// The same with control characters as \x1b; line ends and tabs stay.
std::string Harmless(std::string_view text);

/// Nothing fails here: a program whose messages nobody reads does its work all the same, and
/// whether its results were written is asked at the end (FinishOutput).
void WriteOut(std::string_view text);
void WriteError(std::string_view text);

template <class... Args>
void Print(fmt::format_string<Args...> format, Args&&... args) {
  WriteOut(Harmless(fmt::format(format, std::forward<Args>(args)...)));
}
template <class... Args>
void PrintError(fmt::format_string<Args...> format, Args&&... args) {
  WriteError(Harmless(fmt::format(format, std::forward<Args>(args)...)));
}

/// First of all: where the three standard descriptors are closed, a file that is opened later would
/// become one of them.
void OpenStandardStreams();

/// Writes what waits, so that it stands before what comes on the other stream.
void FlushOutput();

/// The same at the end. `status`, or kInputAtFault with a message where results could not be
/// written.
int FinishOutput(int status);

}  // namespace tenon::tools
