#include "schedule/trace.h"

#include <algorithm>
#include <optional>

#include "support/json.h"
#include "support/strings.h"

namespace tenon {

namespace {

// Names and numbers stand as they are, anything else in quotes.
bool IsPlainResult(const std::string& text) {
  return !text.empty() && text.find_first_of(" \t\r\n,=()\"\\#") == std::string::npos;
}

}  // namespace

std::string TraceStep::ToString() const {
  std::vector<std::string> texts;
  for (const AttrValue& a : args) texts.push_back(tenon::ToString(a));
  std::string call = primitive + "(" + Join(texts, ", ") + ")";
  std::vector<std::string> names;
  for (const std::string& r : results) names.push_back(IsPlainResult(r) ? r : QuoteJson(r));
  return results.empty() ? call : Join(names, ", ") + " = " + call;
}

std::string Trace::ToString() const {
  std::string out;
  for (const TraceStep& step : steps) out += step.ToString() + "\n";
  return out;
}

namespace {

using Json = nlohmann::json;

template <class T>
std::vector<T> ListOf(const Json& list) {
  std::vector<T> out;
  for (const Json& item : list) out.push_back(item.get<T>());
  return out;
}

bool All(const Json& list, bool (Json::*is)() const noexcept) {
  for (const Json& item : list) {
    if (!(item.*is)()) return false;
  }
  return true;
}

std::optional<AttrValue> ToValue(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return std::nullopt;
  if (All(value, &Json::is_number_integer)) return ListOf<int64_t>(value);
  if (All(value, &Json::is_number)) return ListOf<double>(value);
  if (All(value, &Json::is_string)) return ListOf<std::string>(value);
  return std::nullopt;
}

// What is left of a line while it is read from its front.
struct LineReader {
  std::string_view line, rest;
  int number;

  // At the first character that is left; the line stands below, so that a lost quote is seen.
  Diagnostic Fault(std::string message) const {
    const auto column = static_cast<int32_t>(rest.data() - line.data()) + 1;
    Diagnostic d = MakeError(std::move(message), {"trace", number, column, ""});
    d.notes.push_back("the line is: " + std::string(Trim(line)));
    return d;
  }

  // A quoted text, or everything up to a space or one of ",=(".
  Expected<std::string> Word() {
    rest = Trim(rest);
    size_t end = rest.find_first_of(" \t,=(");
    if (!rest.empty() && rest[0] == '"') {
      end = 1;
      while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, rest.size());
      Expected<Json> text = ParseJson(rest.substr(0, end), "", 1);
      if (!text || !text->is_string()) return Fault("expected a name");
      rest = Trim(rest.substr(end));
      return text->get<std::string>();
    }
    std::string word(rest.substr(0, end));
    if (word.empty()) return Fault("expected a name");
    rest = Trim(rest.substr(word.size()));
    return word;
  }
  bool Accept(char c) {
    if (rest.empty() || rest[0] != c) return false;
    rest = rest.substr(1);
    return true;
  }
};

Expected<std::vector<AttrValue>> ParseArgs(const LineReader& reader) {
  Expected<Json> args = ParseJson("[" + std::string(reader.rest) + "]", "", 4);
  if (!args) return reader.Fault("in the arguments: " + args.errors()[0].message);
  std::vector<AttrValue> out;
  for (const Json& item : *args) {
    std::optional<AttrValue> value = ToValue(item);
    if (!value) return reader.Fault("no primitive takes the argument " + item.dump());
    out.push_back(std::move(*value));
  }
  return out;
}

// [result, … =] primitive(arguments), the arguments as in JSON
Expected<TraceStep> ParseStep(std::string_view line, int number) {
  LineReader reader{line, Trim(line), number};
  TraceStep step;
  while (true) {
    TN_ASSIGN_OR_RETURN(std::string word, reader.Word());
    if (reader.Accept('(')) {
      step.primitive = std::move(word);
      break;
    }
    step.results.push_back(std::move(word));
    bool last = reader.Accept('=');
    if (!last && !reader.Accept(',')) {
      return reader.Fault("expected ',', '=' or '(' after a name");
    }
    if (!last) continue;
    TN_ASSIGN_OR_RETURN(step.primitive, reader.Word());
    if (!reader.Accept('(')) return reader.Fault("expected '(' after the primitive");
    break;
  }
  if (!reader.rest.ends_with(')')) return reader.Fault("expected ')' at the end");
  reader.rest.remove_suffix(1);
  TN_ASSIGN_OR_RETURN(step.args, ParseArgs(reader));
  return step;
}

}  // namespace

Expected<Trace> Trace::Parse(std::string_view text) {
  Trace trace;
  int number = 0;
  for (const std::string& raw : Split(text, '\n')) {
    ++number;
    std::string_view line = Trim(raw);
    if (line.empty() || line[0] == '#') continue;
    TN_ASSIGN_OR_RETURN(TraceStep step, ParseStep(raw, number));
    trace.steps.push_back(std::move(step));
  }
  return trace;
}

namespace {

constexpr int64_t kJsonVersion = 1;

Json ToJsonValue(const AttrValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

Expected<TraceStep> StepFromJson(const Json& step) {
  auto has = [&](const char* key, auto is) { return step.contains(key) && (step[key].*is)(); };
  if (!step.is_object() || !has("primitive", &Json::is_string) || !has("args", &Json::is_array) ||
      !has("results", &Json::is_array) || !All(step["results"], &Json::is_string)) {
    return MakeError("trace: expected a step with primitive, args and results, got " + step.dump());
  }
  TraceStep out;
  out.primitive = step["primitive"].get<std::string>();
  out.results = ListOf<std::string>(step["results"]);
  for (const Json& item : step["args"]) {
    std::optional<AttrValue> value = ToValue(item);
    if (!value) return MakeError("trace: no primitive takes the argument " + item.dump());
    out.args.push_back(std::move(*value));
  }
  return out;
}

}  // namespace

std::string Trace::ToJson() const {
  Json list = Json::array();
  for (const TraceStep& step : steps) {
    Json args = Json::array();
    for (const AttrValue& a : step.args) args.push_back(ToJsonValue(a));
    list.push_back({{"primitive", step.primitive}, {"args", args}, {"results", step.results}});
  }
  return Json{{"trace", kJsonVersion}, {"steps", list}}.dump(-1, ' ', false,
                                                             Json::error_handler_t::replace);
}

Expected<Trace> Trace::FromJson(std::string_view text) {
  TN_ASSIGN_OR_RETURN(Json json, ParseJson(text, "trace", 8));
  if (!json.is_object() || !json.contains("steps") || !json["steps"].is_array()) {
    return MakeError("trace: expected an object with a list of steps");
  }
  if (!json.contains("trace") || json["trace"] != kJsonVersion) {
    return MakeError("trace: expected version " + std::to_string(kJsonVersion));
  }
  Trace trace;
  for (const Json& item : json["steps"]) {
    TN_ASSIGN_OR_RETURN(TraceStep step, StepFromJson(item));
    trace.steps.push_back(std::move(step));
  }
  return trace;
}

}  // namespace tenon
