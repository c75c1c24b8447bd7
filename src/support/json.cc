#include "support/json.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

namespace {

struct TooDeep {};

SourceLoc LocationOf(std::string_view text, size_t byte, const std::string& file) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  SourceLoc loc;
  loc.file = file;
  loc.line = 1 + static_cast<int32_t>(std::count(before.begin(), before.end(), '\n'));
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  loc.column = 1 + static_cast<int32_t>(before.size() - line_start);
  return loc;
}

}  // namespace

Expected<nlohmann::json> ParseJson(std::string_view text, const std::string& file, int max_depth) {
  auto limit_depth = [max_depth](int depth, nlohmann::json::parse_event_t event, nlohmann::json&) {
    using Event = nlohmann::json::parse_event_t;
    const bool opens = event == Event::object_start || event == Event::array_start;
    if (opens && depth >= max_depth) throw TooDeep();
    return true;
  };
  SourceLoc loc;
  loc.file = file;
  try {
    return nlohmann::json::parse(text.begin(), text.end(), limit_depth);
  } catch (const TooDeep&) {
    return MakeLimitError(fmt::format("expected JSON nested at most {} deep", max_depth), loc);
  } catch (const nlohmann::json::parse_error& e) {
    // e.byte counts from 1 and names the last byte read.
    return MakeError("malformed JSON", LocationOf(text, e.byte > 0 ? e.byte - 1 : 0, file));
  } catch (const nlohmann::json::exception& e) {
    return MakeError(fmt::format("malformed JSON: {}", e.what()), loc);
  }
}

}  // namespace tenon
