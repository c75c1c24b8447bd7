// Regular expressions as automata that a program carries.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "support/expected.h"

namespace tenon::onnx {

/// The automaton of a pattern in RE2's syntax, which must match a whole text: the number of states;
/// for each three numbers, what it does and with what; then ranges of code points, two numbers
/// each.
///   0 first count   takes a character that is in one of `count` ranges from `first` on
///   1 a b           goes to state a and to state b
///   2 a             goes to state a
///   3               has matched, at the end of the text
///   4, 5            goes on at the begin, at the end of the text
///   6, 7            goes on at the border of a word, and elsewhere
/// What goes on, or has taken a character, is in the next state. Matching takes time in proportion
/// to the text times the states. Errors: no pattern, or one with what automata cannot do
/// (backreferences, looking ahead), of more than 20,000 states, or deeper than 200.
Expected<std::vector<int32_t>> CompileRegex(std::string_view pattern);

}  // namespace tenon::onnx
