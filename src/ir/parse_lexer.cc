#include "ir/parse_lexer.h"

#include <optional>
#include <utility>

#include "support/strings.h"

namespace tenon {

namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsWordChar(char c) { return IsLetter(c) || IsDigit(c); }

// Longest first, so that the first match is the right one.
constexpr std::string_view kPunctuation[] = {"..=", "..+", "..", "->", "==", "!=", "<=", ">=", "<<",
                                             ">>",  "&&",  "||", "(",  ")",  "[",  "]",  "{",  "}",
                                             ",",   ":",   ";",  "=",  "<",  ">",  "+",  "-",  "*",
                                             "/",   "%",   "!",  "~",  "@",  "&",  "|"};

// Digits, then a fraction and an exponent where they are complete: "0..4" is 0, "..", 4.
size_t DigitsLength(std::string_view s) {
  auto digits = [&](size_t i) {
    while (i < s.size() && IsDigit(s[i])) ++i;
    return i;
  };
  size_t end = digits(0);
  if (end + 1 < s.size() && s[end] == '.' && IsDigit(s[end + 1])) end = digits(end + 1);
  if (end < s.size() && (s[end] == 'e' || s[end] == 'E')) {
    size_t exponent = end + 1;
    if (exponent < s.size() && (s[exponent] == '+' || s[exponent] == '-')) ++exponent;
    if (exponent < s.size() && IsDigit(s[exponent])) end = digits(exponent);
  }
  return end;
}

}  // namespace

void Lexer::SkipBlanks() {
  for (;;) {
    const char c = At(0);
    if (pos_ >= text_.size()) return;
    if (c == '\n') {
      ++pos_;
      ++line_;
      line_begin_ = pos_;
      starts_line_ = true;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++pos_;
    } else if (c == '/' && At(1) == '/') {
      while (pos_ < text_.size() && text_[pos_] != '\n') ++pos_;
    } else {
      return;
    }
  }
}

// The length with both quotes; 0 where the closing one is missing on this line.
size_t Lexer::QuotedLength(char quote) const {
  for (size_t i = 1; pos_ + i < text_.size() && At(i) != '\n'; ++i) {
    if (At(i) == quote) return i + 1;
    if (At(i) == '\\') ++i;
  }
  return 0;
}

size_t Lexer::WordLength() const {
  size_t end = 1;
  while (IsWordChar(At(end)) || (At(end) == '.' && IsWordChar(At(end + 1)))) ++end;
  return end;
}

size_t Lexer::NumberLength() const {
  size_t end = DigitsLength(text_.substr(pos_));
  if (IsLetter(At(end))) {
    while (IsWordChar(At(end))) ++end;
  }
  return end;
}

Token Lexer::Next() {
  SkipBlanks();
  Token token;
  token.line = line_;
  token.column = static_cast<int32_t>(pos_ - line_begin_) + 1;
  token.starts_line = std::exchange(starts_line_, false);
  if (pos_ >= text_.size()) return token;
  const char c = At(0);
  size_t length = 1;
  if (IsLetter(c)) {
    token.kind = TokenKind::kWord;
    length = WordLength();
  } else if (IsDigit(c)) {
    token.kind = TokenKind::kNumber;
    length = NumberLength();
  } else if (c == '"' || c == '`') {
    token.kind = c == '"' ? TokenKind::kString : TokenKind::kName;
    length = QuotedLength(c);
  } else {
    token.kind = TokenKind::kPunct;
    length = 0;
    for (std::string_view punct : kPunctuation) {
      if (length == 0 && text_.substr(pos_).starts_with(punct)) length = punct.size();
    }
  }
  token.text = text_.substr(pos_, length);
  if (length == 0) {
    token.text = token.kind == TokenKind::kPunct ? "unexpected character"
                                                 : "the quote is not closed on its line";
    token.kind = TokenKind::kError;
    length = 1;
  }
  pos_ += length;
  return token;
}

// ---- strings ----

// Appends the character that \uXXXX means; false where it is none (a surrogate).
static bool AppendUtf8(uint32_t code, std::string* out) {
  if (code >= 0xD800 && code < 0xE000) return false;
  if (code < 0x80) {
    *out += static_cast<char>(code);
  } else if (code < 0x800) {
    *out += static_cast<char>(0xC0 | (code >> 6));
    *out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    *out += static_cast<char>(0xE0 | (code >> 12));
    *out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    *out += static_cast<char>(0x80 | (code & 0x3F));
  }
  return true;
}

static std::optional<uint32_t> Hex4(std::string_view s) {
  if (s.size() < 4) return std::nullopt;
  uint32_t value = 0;
  for (char c : s.substr(0, 4)) {
    uint32_t digit = 0;
    if (IsDigit(c)) {
      digit = static_cast<uint32_t>(c - '0');
    } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
      digit = static_cast<uint32_t>((c | 0x20) - 'a' + 10);
    } else {
      return std::nullopt;
    }
    value = value * 16 + digit;
  }
  return value;
}

Expected<std::string> Unquote(std::string_view quoted) {
  static constexpr std::string_view kEscapes = "\"\\/ntrbf", kMeaning = "\"\\/\n\t\r\b\f";
  const std::string_view s = quoted.substr(1, quoted.size() - 2);
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '\\') {
      out += s[i];
      continue;
    }
    const char escape = ++i < s.size() ? s[i] : '\0';
    const size_t known = kEscapes.find(escape);
    if (escape == 'u') {
      const auto code = Hex4(s.substr(i + 1));
      if (!code || !AppendUtf8(*code, &out)) {
        return MakeError("expected \\u and four hexadecimal digits that mean a character");
      }
      i += 4;
    } else if (known != std::string_view::npos) {
      out += kMeaning[known];
    } else {
      return MakeError("expected an escape of JSON after the backslash");
    }
  }
  if (!IsUtf8(out)) return MakeError("expected UTF-8 between the quotes");
  return out;
}

NumberParts SplitNumber(std::string_view token) {
  NumberParts parts;
  const size_t end = DigitsLength(token);
  parts.digits = token.substr(0, end);
  parts.type = token.substr(end);
  parts.is_float = parts.digits.find_first_of(".eE") != std::string_view::npos;
  return parts;
}

}  // namespace tenon
