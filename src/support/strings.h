// Small string helpers that the standard library lacks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

std::vector<std::string> Split(std::string_view text, char separator);
std::string_view Trim(std::string_view text);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
bool IsUtf8(std::string_view text);
/// The text as a JSON string with its quotes; bytes that are not valid UTF-8 become U+FFFD.
std::string QuoteJson(std::string_view text);
/// A C identifier made of `text`: other bytes become '_', a leading digit gets a '_' before it;
/// never empty.
std::string ToIdentifier(std::string_view text);
/// The word of `candidates` nearest to `word` by edit distance, or "" where none is near; for "did
/// you mean" notes.
std::string NearestWord(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace tenon
