// Traces as programs: a function that applies the same primitives again, in both languages.
#include "api/bridge.h"
#include "api/ir_data.h"

namespace tenon::inline v0 {

namespace {

enum class Language : uint8_t { kPython, kCpp };

struct MethodRow {
  const char* primitive;
  const char* method;
};
constexpr MethodRow kMethods[] = {
#define TN_PRIMITIVE(function, name, places) {name, #function},
#include "schedule/primitives.def"
#undef TN_PRIMITIVE
    {"decide", "Decide"},
    {"sample_categorical", "SampleCategorical"},
    {"sample_perfect_tile", "SamplePerfectTile"},
};

std::string MethodOf(const std::string& primitive, Language language) {
  if (language == Language::kPython) return primitive;
  for (const MethodRow& row : kMethods) {
    if (primitive == row.primitive) return row.method;
  }
  return primitive;
}

/// Values as literals.
struct Literal {
  Language language;

  std::string operator()(bool v) const {
    if (language == Language::kCpp) return v ? "true" : "false";
    return v ? "True" : "False";
  }
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const {
    std::string text = fmt::format("{}", v);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }
  std::string operator()(const std::string& v) const { return QuoteJson(v); }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    std::vector<std::string> items;
    for (const T& item : list) items.push_back((*this)(item));
    bool cpp = language == Language::kCpp;
    return (cpp ? "{" : "[") + Join(items, ", ") + (cpp ? "}" : "]");
  }
};

bool IsList(const AttrValue& v) { return v.index() >= AttrValue(std::vector<int64_t>()).index(); }

std::string CallOf(const TraceStep& step, Language language) {
  std::vector<std::string> args;
  for (const AttrValue& a : step.args) {
    std::string text = std::visit(Literal{language}, a);
    // What a list is of follows from the parameter, but for annotate, which takes any value.
    if (language == Language::kCpp && step.primitive == "annotate" && IsList(a)) {
      const char* of = std::holds_alternative<std::vector<int64_t>>(a)  ? "int64_t"
                       : std::holds_alternative<std::vector<double>>(a) ? "double"
                                                                        : "std::string";
      text = fmt::format("tenon::Value(tenon::Value::Data(std::vector<{}>{}))", of, text);
    }
    args.push_back(text);
  }
  return fmt::format("s.{}({})", MethodOf(step.primitive, language), Join(args, ", "));
}

std::string CodeOf(const Trace& trace, Language language) {
  const bool cpp = language == Language::kCpp;
  std::string out = cpp ? "void Apply(tenon::IrSchedule& s) {\n" : "def apply(s):\n";
  for (const TraceStep& step : trace.data().trace.steps) {
    out += (cpp ? "  " : "    ") + CallOf(step, language) + (cpp ? ";" : "");
    // Handles are names, which the same steps make again.
    if (!step.results.empty()) out += (cpp ? "  // " : "  # ") + Join(step.results, ", ");
    out += "\n";
  }
  if (!cpp && trace.data().trace.steps.empty()) out += "    pass\n";
  return cpp ? out + "}\n" : out;
}

}  // namespace

std::string Trace::ToPython() const { return CodeOf(*this, Language::kPython); }
std::string Trace::ToCpp() const { return CodeOf(*this, Language::kCpp); }

}  // namespace tenon::inline v0
