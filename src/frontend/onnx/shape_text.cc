#include "frontend/onnx/shape_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "graph/graph.h"
#include "graph/verify.h"
#include "support/strings.h"

namespace tenon::onnx {

using graph::Quoted;

namespace {

constexpr size_t kMaxName = 64;

bool IsName(std::string_view text) {
  if (text.empty() || text.size() > kMaxName || std::isdigit(static_cast<unsigned char>(text[0])))
    return false;
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// Takes a number off the front; false where there is none.
bool TakeNumber(std::string_view* text, int64_t* out) {
  const auto [end, fault] = std::from_chars(text->data(), text->data() + text->size(), *out);
  if (fault != std::errc()) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

bool Take(std::string_view* text, std::string_view word) {
  if (!text->starts_with(word)) return false;
  text->remove_prefix(word.size());
  return true;
}

// "1..16", "0.." or "32..512 step 32".
bool ReadRange(std::string_view text, DimSpec* out) {
  if (!TakeNumber(&text, &out->min) || !Take(&text, "..")) return false;
  const bool ends = !text.empty() && text[0] != ' ';
  if (ends && !TakeNumber(&text, &out->max)) return false;
  if (Take(&text, " step ") && !TakeNumber(&text, &out->step)) return false;
  return text.empty();
}

}  // namespace

Expected<DimSpec> ParseSize(std::string_view text) {
  DimSpec out;
  std::string_view rest = text;
  if (TakeNumber(&rest, &out.value)) {
    if (rest.empty() && out.value >= 0) return out;
    return MakeError(fmt::format("{} is not a size", Quoted(text)));
  }
  out.value = -1;
  const size_t open = text.find('[');
  out.symbol = text.substr(0, open);
  if (!IsName(out.symbol)) return MakeError(fmt::format("{} is not a size", Quoted(text)));
  if (open == std::string_view::npos) return out;
  const std::string_view range = text.substr(open + 1);
  if (!range.ends_with(']') || !ReadRange(range.substr(0, range.size() - 1), &out)) {
    return MakeError(fmt::format("expected {0}[1..16] or {0}[32..512 step 32], but got {1}",
                                 out.symbol, Quoted(text)));
  }
  if (out.min < 0 || out.max < out.min || out.max > graph::kLargestSize || out.step < 1) {
    return MakeError(
        fmt::format("expected a range within 0..{} and a step of at least 1, but got {}",
                    graph::kLargestSize, Quoted(text)));
  }
  return out;
}

Expected<std::vector<DimSpec>> ParseShape(std::string_view text) {
  std::vector<DimSpec> out;
  const bool bracketed = text.starts_with('[') && text.ends_with(']');
  const char between = bracketed || text.find(',') != std::string_view::npos ? ',' : 'x';
  if (bracketed) text = text.substr(1, text.size() - 2);
  if (text.empty()) return out;
  for (const std::string& word : Split(text, between)) {
    TN_ASSIGN_OR_RETURN(DimSpec size,
                        ParseSize(between == ',' ? Trim(word) : std::string_view(word)));
    out.push_back(std::move(size));
  }
  return out;
}

std::string SizeText(const DimSpec& size) {
  if (size.value >= 0) return std::to_string(size.value);
  const bool ends = size.max != graph::Dim::kNoMax;
  if (size.min == 1 && !ends && size.step == 1) return size.symbol;
  const std::string step = size.step > 1 ? fmt::format(" step {}", size.step) : "";
  return fmt::format("{}[{}..{}{}]", size.symbol, size.min, ends ? std::to_string(size.max) : "",
                     step);
}

}  // namespace tenon::onnx
