#include "frontend/onnx/size_formula.h"

#include <cctype>
#include <charconv>
#include <string>

namespace tenon::onnx {
namespace {

// What is left of a text, without the spaces before it.
class FormulaReader {
 public:
  explicit FormulaReader(std::string_view text) : rest_(text) {}

  bool AtEnd() {
    SkipSpaces();
    return rest_.empty();
  }
  bool Take(char c) {
    SkipSpaces();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::optional<int64_t> TakeNumber() {
    SkipSpaces();
    uint32_t number = 0;
    const auto [end, fault] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (fault != std::errc() || number > INT32_MAX) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return number;
  }
  // Empty: there is none.
  std::string_view TakeName() {
    SkipSpaces();
    size_t size = 0;
    while (size < rest_.size() && IsOfName(rest_[size], size == 0)) ++size;
    const std::string_view name = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return name;
  }

 private:
  static bool IsOfName(char c, bool first) {
    const auto u = static_cast<unsigned char>(c);
    return c == '_' || (first ? std::isalpha(u) != 0 : std::isalnum(u) != 0);
  }
  void SkipSpaces() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

// "3", "n", "3 * n" or "n * 3".
bool AddTerm(FormulaReader& reader, int64_t sign, SizeFormula* out) {
  std::optional<int64_t> number = reader.TakeNumber();
  if (number && !reader.Take('*')) {
    out->number += sign * *number;
    return true;
  }
  const std::string_view name = reader.TakeName();
  if (name.empty()) return false;
  if (!number && reader.Take('*')) {
    number = reader.TakeNumber();
    if (!number) return false;
  }
  out->terms.emplace_back(sign * number.value_or(1), name);
  return true;
}

}  // namespace

std::optional<SizeFormula> ParseSizeFormula(std::string_view text) {
  FormulaReader reader(text);
  SizeFormula out;
  int64_t sign = reader.Take('-') ? -1 : 1;
  do {
    if (!AddTerm(reader, sign, &out)) return std::nullopt;
    if (reader.AtEnd()) {
      const bool plain = out.terms.size() == 1 && out.terms[0].first == 1 && out.number == 0;
      if (plain || out.terms.empty()) return std::nullopt;
      return out;
    }
    sign = reader.Take('+') ? 1 : reader.Take('-') ? -1 : 0;
  } while (sign != 0 && out.terms.size() < 8);
  return std::nullopt;
}

}  // namespace tenon::onnx
