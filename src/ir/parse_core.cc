// Tokens, errors and names: what every parser of a text does alike.
//
// Tokens are read on demand, with as many ahead as are looked at. An error is written down with its
// place and thrown to the nearest list of statements, which goes on behind the statement; so one
// run reports several, and each once: names whose declaration failed are poisoned, and a text that
// ends too early is one error, however much it leaves open. In
//
//   func @b(x: f32[2]) {
//     fore i in 0..2 { x[i] = 3i32 }
//     x[0] = 1 1
//
// there is "2:3: expected a statement but got 'fore'" and "3:12: expected the end of the statement
// but got '1'", and nothing about what stands between the braces of the first. Names in scope are a
// table of what a name means now, and a list of what it hid, by which leaving a scope puts it back.

#include "ir/parse_core.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <utility>

#include "support/check.h"
#include "support/strings.h"

namespace tenon {

TextParser::TextParser(std::string_view text, std::string file)
    : file_(file.empty() ? "<text>" : std::move(file)), lexer_(text.substr(0, kMaxText)) {
  if (text.size() <= kMaxText) return;
  errors_.push_back(MakeLimitError(
      fmt::format("expected a text of at most {} bytes but got {}", kMaxText, text.size()),
      {file_}));
}

// ---- tokens and errors ----

const Token& TextParser::Peek(size_t ahead) {
  while (ahead_.size() <= ahead) ahead_.push_back(lexer_.Next());
  return ahead_[ahead];
}

Token TextParser::Take() {
  Token token = Peek();
  ahead_.erase(ahead_.begin());
  return token;
}

bool TextParser::At(std::string_view text, size_t ahead) {
  const Token& token = Peek(ahead);
  return (token.kind == TokenKind::kWord || token.kind == TokenKind::kPunct) && token.text == text;
}

bool TextParser::Accept(std::string_view text) {
  if (!At(text)) return false;
  Take();
  return true;
}

Token TextParser::Expect(std::string_view text, std::string_view where) {
  if (!At(text)) FailExpected(fmt::format("'{}' {}", text, where));
  return Take();
}

void TextParser::Report(Diagnostic error) {
  if (errors_.size() < kMaxErrors) errors_.push_back(std::move(error));
  throw Abort();
}

void TextParser::Fail(const Token& at, std::string message) {
  Report(MakeError(std::move(message), Loc(at)));
}

void TextParser::FailLimit(const Token& at, std::string message) {
  Report(MakeLimitError(std::move(message), Loc(at)));
}

void TextParser::FailExpected(std::string_view expected) {
  const Token token = Peek();
  switch (token.kind) {
    case TokenKind::kEnd:
      if (std::exchange(end_reported_, true)) throw Abort();
      Fail(token, fmt::format("expected {} but got the end of the text", expected));
    case TokenKind::kError: Fail(token, std::string(token.text));
    case TokenKind::kWord:
    case TokenKind::kName:
    case TokenKind::kNumber:
    case TokenKind::kString:
    case TokenKind::kPunct:
      Fail(token, fmt::format("expected {} but got '{}'", expected, token.text.substr(0, 80)));
  }
  TN_UNREACHABLE();
}

TextParser::Nest::Nest(TextParser* parser) : parser_(parser) {
  if (parser->depth_ >= kMaxDepth) {
    parser->FailLimit(parser->Peek(), fmt::format("expected nesting of at most {}", kMaxDepth));
  }
  ++parser->depth_;
}

// ---- words and numbers ----

std::string TextParser::TakeName(std::string_view what) {
  const Token token = Peek();
  std::string name;
  if (token.kind == TokenKind::kWord) {
    name = token.text;
  } else if (token.kind == TokenKind::kName) {
    auto text = Unquote(token.text);
    if (!text) Fail(token, text.errors()[0].message);
    name = std::move(*text);
  }
  if (name.empty()) FailExpected(fmt::format("the name of {}", what));
  Take();
  return name;
}

std::string TextParser::TakeWord(std::string_view what) {
  if (Peek().kind == TokenKind::kString) return TakeString(what);
  if (Peek().kind != TokenKind::kWord) FailExpected(what);
  return std::string(Take().text);
}

std::string TextParser::TakeString(std::string_view what) {
  if (Peek().kind != TokenKind::kString) FailExpected(what);
  const Token token = Take();
  auto text = Unquote(token.text);
  if (!text) Fail(token, text.errors()[0].message);
  return std::move(*text);
}

Scope TextParser::TakeScope() {
  const Token at = Peek();
  const std::string word = TakeWord("a scope");
  if (const auto scope = ScopeOf(word)) return *scope;
  Fail(at, fmt::format("expected a scope: one of {} but got '{}'", ScopeWords(/*scheduled=*/false),
                       word));
}

ThreadAxis TextParser::TakeThreadAxis() {
  const Token at = Peek();
  const std::string word = TakeWord("a thread axis");
  if (const auto axis = ThreadAxisOf(word)) return *axis;
  Fail(at, fmt::format("expected a thread axis: one of {} but got '{}'", ThreadAxisWords(), word));
}

Place TextParser::TakePlace() {
  constexpr std::string_view kWhat = "a place: host or \"device k\"";
  const Token at = Peek();
  const std::string text = TakeWord(kWhat);
  if (const auto place = Place::Parse(text)) return *place;
  Fail(at, fmt::format("expected {} but got '{}'", kWhat, text));
}

int64_t TextParser::TakeInt(std::string_view what) {
  const bool negative = At("-") && Peek(1).kind == TokenKind::kNumber;
  const Token& token = Peek(negative ? 1 : 0);
  const NumberParts parts = SplitNumber(token.text);
  if (token.kind != TokenKind::kNumber || parts.is_float || !parts.type.empty()) FailExpected(what);
  const std::string digits = (negative ? "-" : "") + std::string(parts.digits);
  int64_t value = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc()) {
    Fail(token, fmt::format("{} does not fit 64 bits", digits));
  }
  if (negative) Take();
  Take();
  return value;
}

// f32, or f32x of the scalable f32x[4].
DType TextParser::TakeType() {
  const Token token = Peek();
  if (token.kind != TokenKind::kWord) FailExpected("a type");
  std::string text(token.text);
  Take();
  if (text.ends_with("x") && At("[") && Peek(1).kind == TokenKind::kNumber && At("]", 2)) {
    text += fmt::format("[{}]", Peek(1).text);
    for (int i = 0; i < 3; ++i) Take();
  }
  auto type = DType::Parse(text);
  if (!type) Fail(token, fmt::format("unknown type '{}'", text));
  return *type;
}

// ---- attributes ----

bool TextParser::AtAttrs() { return At("{") && Peek(1).kind == TokenKind::kWord && At(":", 2); }

Attrs TextParser::TakeAttrs() {
  Attrs attrs;
  Expect("{", "before attributes");
  List("}", "after attributes", [&] {
    const Token token = Peek();
    if (token.kind != TokenKind::kWord) FailExpected("the name of an attribute");
    Take();
    Expect(":", "after the name of an attribute");
    std::string name(token.text);
    if (attrs.Has(name)) Fail(token, fmt::format("the attribute '{}' is given twice", name));
    attrs.Set(std::move(name), TakeAttrValue());
  });
  return attrs;
}

AttrValue TextParser::TakeAttrValue() {
  if (At("[")) return TakeAttrList();
  if (Accept("true")) return true;
  if (Accept("false")) return false;
  if (Peek().kind == TokenKind::kString) return TakeString("a string");
  const bool negative = At("-");
  const double sign = negative ? -1 : 1;
  const Token token = Peek(negative ? 1 : 0);
  if (token.kind == TokenKind::kWord && token.text == "inf") {
    if (negative) Take();
    Take();
    return sign * std::numeric_limits<double>::infinity();
  }
  const NumberParts parts = SplitNumber(token.text);
  if (token.kind != TokenKind::kNumber || !parts.type.empty()) {
    FailExpected("the value of an attribute: a number, a string, true, false or a list");
  }
  if (!parts.is_float) return TakeInt("a number");
  double value = 0;
  const char* end = parts.digits.data() + parts.digits.size();
  if (std::from_chars(parts.digits.data(), end, value).ec != std::errc()) {
    Fail(token, fmt::format("{} does not fit f64", parts.digits));
  }
  if (negative) Take();
  Take();
  return sign * value;
}

// A list of one type; the empty list is one of integers.
AttrValue TextParser::TakeAttrList() {
  std::vector<AttrValue> items;
  const Token at = Expect("[", "before a list");
  List("]", "after a list", [&] {
    if (At("[")) FailExpected("a number or a string in a list");
    items.push_back(TakeAttrValue());
  });
  auto as = [&](auto example) -> std::optional<AttrValue> {
    using T = decltype(example);
    std::vector<T> list;
    for (const AttrValue& item : items) {
      if (!std::holds_alternative<T>(item)) return std::nullopt;
      list.push_back(std::get<T>(item));
    }
    return list;
  };
  if (auto list = as(int64_t{})) return *list;
  if (auto list = as(double{})) return *list;
  if (auto list = as(std::string())) return *list;
  Fail(at, "expected a list of integers, of floats or of strings");
}

// ---- names in scope ----

void TextParser::Declare(const Token& at, const std::string& name, const NodeRef& node, bool hide) {
  NodeRef& slot = names_[name];
  if (slot && !hide) Fail(at, fmt::format("'{}' is already defined here", name));
  scope_.push_back({name, std::exchange(slot, node)});
}

void TextParser::Leave(size_t mark) {
  while (scope_.size() > mark) {
    Declared& last = scope_.back();
    if (last.hidden) {
      names_[last.name] = std::move(last.hidden);
    } else {
      names_.erase(last.name);
    }
    scope_.pop_back();
  }
}

NodeRef TextParser::Lookup(const Token& at, const std::string& name) {
  auto it = names_.find(name);
  if (it != names_.end()) return it->second;
  if (!poisoned_.insert(name).second) throw Abort();
  Diagnostic error = MakeError(fmt::format("'{}' is not defined here", name), Loc(at));
  std::vector<std::string> known;
  for (const Declared& d : scope_) known.push_back(d.name);
  const std::string near = name.size() < 3 ? "" : NearestWord(name, known);
  if (!near.empty()) error.notes.push_back(fmt::format("did you mean '{}'?", near));
  Report(std::move(error));
}

Buffer TextParser::TakeBuffer() {
  const Token at = Peek();
  const std::string name = TakeName("a buffer");
  const NodeRef node = Lookup(at, name);
  if (!IsA<BufferNode>(node)) Fail(at, fmt::format("'{}' is a variable: expected a buffer", name));
  return Buffer(As<BufferNode>(node));
}

}  // namespace tenon
