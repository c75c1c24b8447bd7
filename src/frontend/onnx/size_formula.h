// What exporters write in place of a dim's name: "past_sequence_length + sequence_length", "2*s0".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::onnx {

/// A sum of whole multiples of named sizes, and a number.
struct SizeFormula {
  std::vector<std::pair<int64_t, std::string_view>> terms;  // views of the text
  int64_t number = 0;
};

/// The formula that a text is, or nullopt: of a plain name, of what is not linear, and of numbers
/// beyond 2^31.
std::optional<SizeFormula> ParseSizeFormula(std::string_view text);

}  // namespace tenon::onnx
