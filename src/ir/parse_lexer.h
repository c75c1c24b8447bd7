// Tokens of the text forms: words, names in backquotes, numbers, strings, punctuation. Comments run
// from // to the end of the line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/expected.h"

namespace tenon {

enum class TokenKind : uint8_t {
  kEnd,
  kWord,    // [A-Za-z_][A-Za-z0-9_]*, with dots between: i.0, threadIdx.x
  kName,    // the same in backquotes, any characters
  kNumber,  // 12, 1.5, 1e-05; a type may follow directly: 3i64, 0f32
  kString,  // as JSON
  kPunct,
  kError,  // `text` says what is wrong
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  // as written, quotes included; the message of kError
  int32_t line = 1, column = 1;
  bool starts_line = false;
};

/// Cuts a text into tokens on demand. A copy goes on from the same place; the text must outlive
/// both.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  /// The next token; kEnd again and again at the end. Never fails, always advances.
  Token Next();

 private:
  void SkipBlanks();
  size_t QuotedLength(char quote) const;
  size_t WordLength() const;
  size_t NumberLength() const;
  char At(size_t offset) const {
    return pos_ + offset < text_.size() ? text_[pos_ + offset] : '\0';
  }

  std::string_view text_;
  size_t pos_ = 0, line_begin_ = 0;
  int32_t line_ = 1;
  bool starts_line_ = true;
};

/// The text between the quotes of a kString or kName token with JSON's escapes resolved; it is
/// UTF-8.
Expected<std::string> Unquote(std::string_view quoted);

/// The number without its type, and the type ("" where there is none).
struct NumberParts {
  std::string_view digits, type;
  bool is_float = false;  // has a point or an exponent
};
NumberParts SplitNumber(std::string_view token);

}  // namespace tenon
