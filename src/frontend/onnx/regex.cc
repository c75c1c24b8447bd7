// A pattern is read by descent and becomes code as it is read (Thompson's construction): a piece of
// code has one entry, its begin, and goes on at its end. Repeating a piece copies it, with its
// jumps moved, so code of a piece names states relative to its own begin until it is placed.
#include "frontend/onnx/regex.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "support/strings.h"

namespace tenon::onnx {
namespace {

enum Code { kSet, kSplit, kJump, kMatch, kBegin, kEnd, kWordBorder, kNoWordBorder };

constexpr uint32_t kLast = 0x10ffff;
constexpr size_t kMostStates = 20000;
constexpr int kMostRepeats = 1000, kMostDepth = 200;

/// Code points, as pairs of first and last.
using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;

struct State {
  Code code;
  int32_t a = 0, b = 0;  // jumps: relative to this state
};
using Piece = std::vector<State>;

struct Flags {
  bool ignore_case = false, dot_all = false, multi_line = false, swap_greed = false;
};

Ranges Sorted(Ranges r) {
  std::sort(r.begin(), r.end());
  Ranges out;
  for (const auto& [first, last] : r) {
    if (!out.empty() && first <= out.back().second + 1)
      out.back().second = std::max(out.back().second, last);
    else
      out.emplace_back(first, last);
  }
  return out;
}

Ranges Complement(const Ranges& r) {
  Ranges out;
  uint32_t next = 0;
  for (const auto& [first, last] : Sorted(r)) {
    if (first > next) out.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= kLast) out.emplace_back(next, kLast);
  return out;
}

// Both cases of letters of the alphabet, as in RE2's Latin-1 mode.
Ranges WithCases(Ranges r) {
  const Ranges given = r;
  for (const auto& [first, last] : given) {
    for (uint32_t c = 'a'; c <= 'z'; ++c) {
      if (c >= first && c <= last) r.emplace_back(c - 32, c - 32);
      if (c - 32 >= first && c - 32 <= last) r.emplace_back(c, c);
    }
  }
  return r;
}

const Ranges kDigits = {{'0', '9'}}, kWords = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
             kSpaces = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};

/// The classes that have a name in brackets.
std::optional<Ranges> NamedClass(std::string_view name) {
  static const std::map<std::string_view, Ranges> kClasses = {
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 0x7f}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}},
      {"digit", kDigits},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", kWords},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}}};
  const auto it = kClasses.find(name);
  return it == kClasses.end() ? std::nullopt : std::optional(it->second);
}

struct PatternError {
  std::string message;
};

/// Reads one pattern. Errors are thrown and caught in CompileRegex.
class Reader {
 public:
  explicit Reader(std::string_view pattern) : pattern_(pattern) {}

  std::vector<int32_t> Run() {
    Piece code = Alternatives(Flags{});
    if (!AtEnd()) Fail("an unexpected )");
    code.push_back({kMatch});
    CheckSize(code.size());
    std::vector<int32_t> out = {static_cast<int32_t>(code.size())};
    for (size_t i = 0; i < code.size(); ++i) {
      const State& s = code[i];
      const bool jumps = s.code == kSplit || s.code == kJump;
      const int32_t here = jumps ? static_cast<int32_t>(i) : 0;
      out.insert(out.end(), {s.code, s.a + here, s.b + here});
    }
    for (const auto& [first, last] : ranges_) {
      out.push_back(static_cast<int32_t>(first));
      out.push_back(static_cast<int32_t>(last));
    }
    return out;
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw PatternError{fmt::format("{} at byte {}", what, at_)};
  }
  static void CheckSize(size_t states) {
    if (states > kMostStates)
      throw PatternError{fmt::format("it needs more than {} states", kMostStates)};
  }
  bool AtEnd() const { return at_ >= pattern_.size(); }
  bool Accept(std::string_view text) {
    if (!pattern_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  // The pattern is UTF-8.
  uint32_t Take() {
    if (AtEnd()) Fail("an unexpected end");
    const auto first = static_cast<unsigned char>(pattern_[at_++]);
    const int more = first < 0x80 ? 0 : first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    uint32_t c = more == 0 ? first : first & (0x3fU >> more);
    for (int i = 0; i < more; ++i)
      c = c << 6 | (static_cast<unsigned char>(pattern_[at_++]) & 0x3f);
    return c;
  }

  static void Append(Piece* to, const Piece& piece) {
    to->insert(to->end(), piece.begin(), piece.end());
  }

  Piece Alternatives(Flags flags) {
    if (++depth_ > kMostDepth) Fail("groups nested too deep");
    std::vector<Piece> choices;
    do {
      choices.push_back(Sequence(&flags));
    } while (Accept("|"));
    --depth_;
    Piece out = std::move(choices.back());
    for (size_t i = choices.size() - 1; i-- > 0;) out = Either(choices[i], out);
    return out;
  }

  static Piece Either(const Piece& a, const Piece& b) {
    const auto past_a = static_cast<int32_t>(a.size()) + 2;
    Piece out = {{kSplit, 1, past_a}};
    Append(&out, a);
    out.push_back({kJump, static_cast<int32_t>(b.size()) + 1});
    Append(&out, b);
    CheckSize(out.size());
    return out;
  }

  Piece Sequence(Flags* flags) {
    Piece out;
    while (!AtEnd() && pattern_[at_] != '|' && pattern_[at_] != ')') {
      Append(&out, Repeats(Item(flags)));
      CheckSize(out.size());
    }
    return out;
  }

  static Piece Optional(const Piece& p) {
    Piece out = {{kSplit, 1, static_cast<int32_t>(p.size()) + 1}};
    Append(&out, p);
    return out;
  }
  static Piece Star(const Piece& p) {
    Piece out = Optional(p);
    out[0].b += 1;
    out.push_back({kJump, -static_cast<int32_t>(p.size()) - 1});
    return out;
  }

  std::optional<int> Number() {
    const size_t begin = at_;
    int number = 0;
    while (!AtEnd() && pattern_[at_] >= '0' && pattern_[at_] <= '9') {
      number = std::min(number * 10 + (pattern_[at_] - '0'), kMostRepeats + 1);
      ++at_;
    }
    return at_ > begin ? std::optional(number) : std::nullopt;
  }

  // {n}, {n,} or {n,m}; what looks otherwise is text.
  bool Counted(int* least, int* most) {
    const size_t begin = at_;
    if (Accept("{")) {
      const std::optional<int> first = Number();
      const bool comma = first && Accept(",");
      const std::optional<int> second = comma ? Number() : first;
      if (first && Accept("}")) {
        *least = *first;
        *most = second.value_or(-1);
        if (*least > kMostRepeats || *most > kMostRepeats || (*most >= 0 && *most < *least))
          Fail("a count of repetitions that makes no sense");
        return true;
      }
    }
    at_ = begin;
    return false;
  }

  Piece Repeats(Piece piece) {
    while (!AtEnd()) {
      int least = 0, most = -1;
      if (Accept("+")) {
        least = 1;
      } else if (Accept("?")) {
        most = 1;
      } else if (!Accept("*") && !Counted(&least, &most)) {
        break;
      }
      Accept("?");  // as few as possible: a whole text matches or does not, either way
      Piece out;
      CheckSize(piece.size() * static_cast<size_t>(std::max({least, most, 1})));
      for (int i = 0; i < least; ++i) Append(&out, piece);
      if (most < 0) Append(&out, Star(piece));
      for (int i = least; i < most; ++i) Append(&out, Optional(piece));
      piece = std::move(out);
    }
    return piece;
  }

  Piece Set(Ranges set, const Flags& flags) {
    if (flags.ignore_case) set = WithCases(std::move(set));
    set = Sorted(std::move(set));
    const auto [it, is_new] = known_.try_emplace(set, static_cast<int32_t>(ranges_.size()));
    if (is_new) ranges_.insert(ranges_.end(), set.begin(), set.end());
    return {{kSet, it->second, static_cast<int32_t>(set.size())}};
  }

  Piece Item(Flags* flags) {
    if (Accept("(")) return Group(flags);
    if (Accept("[")) return Set(Bracket(*flags), *flags);
    if (Accept("."))
      return Set(flags->dot_all ? Ranges{{0, kLast}} : Complement({{'\n', '\n'}}), *flags);
    if (Accept("^") || Accept("$")) {
      if (flags->multi_line) Fail("(?m), which is not supported,");
      return {{pattern_[at_ - 1] == '^' ? kBegin : kEnd}};
    }
    if (Accept("\\A")) return {{kBegin}};
    if (Accept("\\z")) return {{kEnd}};
    if (Accept("\\b")) return {{kWordBorder}};
    if (Accept("\\B")) return {{kNoWordBorder}};
    if (Accept("\\Q")) return Quoted(*flags);
    if (Accept("\\C")) return Set({{0, kLast}}, *flags);
    if (Accept("\\")) return Set(Escape(), *flags);
    if (!AtEnd() && (pattern_[at_] == '*' || pattern_[at_] == '+' || pattern_[at_] == '?'))
      Fail("nothing to repeat");
    const uint32_t c = Take();
    return Set({{c, c}}, *flags);
  }

  Piece Quoted(const Flags& flags) {
    Piece out;
    while (!AtEnd() && !Accept("\\E")) {
      const uint32_t c = Take();
      Append(&out, Set({{c, c}}, flags));
    }
    return out;
  }

  Piece Group(Flags* flags) {
    Flags inside = *flags;
    if (Accept("?P<") || Accept("?<")) {
      if (!AtEnd() && (pattern_[at_] == '=' || pattern_[at_] == '!')) Fail("looking behind");
      while (!Accept(">")) Take();
    } else if (Accept("?")) {
      bool on = true;
      for (;;) {
        const uint32_t c = Take();
        if (c == ':') break;
        if (c == ')') {  // for the rest of the group around it
          *flags = inside;
          return {};
        }
        if (c == '-')
          on = false;
        else if (c == 'i')
          inside.ignore_case = on;
        else if (c == 's')
          inside.dot_all = on;
        else if (c == 'm')
          inside.multi_line = on;
        else if (c == 'U')
          inside.swap_greed = on;
        else
          Fail("a group of a kind that is not supported");
      }
    }
    Piece out = Alternatives(inside);
    if (!Accept(")")) Fail("a group without an end");
    return out;
  }

  uint32_t Hex(int digits) {
    uint32_t c = 0;
    for (int i = 0; i < digits; ++i) {
      const uint32_t d = Take();
      const uint32_t low = d | 32;
      if (d >= '0' && d <= '9')
        c = c * 16 + (d - '0');
      else if (low >= 'a' && low <= 'f')
        c = c * 16 + (low - 'a' + 10);
      else
        Fail("an escape that is no hexadecimal number");
    }
    return c;
  }

  // Behind a backslash: the characters that are meant.
  Ranges Escape() {
    const uint32_t c = Take();
    auto one = [](uint32_t code) { return Ranges{{code, code}}; };
    switch (c) {
      case 'd': return kDigits;
      case 'D': return Complement(kDigits);
      case 'w': return kWords;
      case 'W': return Complement(kWords);
      case 's': return kSpaces;
      case 'S': return Complement(kSpaces);
      case 'a': return one('\a');
      case 'f': return one('\f');
      case 'n': return one('\n');
      case 'r': return one('\r');
      case 't': return one('\t');
      case 'v': return one('\v');
      case 'x': {
        if (!Accept("{")) return one(Hex(2));
        uint32_t code = 0;
        while (!Accept("}")) {
          code = code * 16 + Hex(1);
          if (code > kLast) Fail("a character that there is not");
        }
        return one(code);
      }
      default: break;
    }
    const bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
    if (c < 0x80 && (letter || (c >= '0' && c <= '9')))
      Fail(fmt::format("the escape \\{}, which is not supported,", static_cast<char>(c)));
    return one(c);
  }

  Ranges Bracket(const Flags& flags) {
    const bool negated = Accept("^");
    Ranges out;
    for (bool first = true; first || !Accept("]"); first = false) {
      if (Accept("[:")) {
        const size_t end = pattern_.find(":]", at_);
        if (end == std::string_view::npos) Fail("a class without an end");
        std::string_view name = pattern_.substr(at_, end - at_);
        const bool without = name.starts_with("^");
        if (without) name.remove_prefix(1);
        const std::optional<Ranges> named = NamedClass(name);
        if (!named) Fail("a class that there is not");
        at_ = end + 2;
        const Ranges add = without ? Complement(*named) : *named;
        out.insert(out.end(), add.begin(), add.end());
        continue;
      }
      const Ranges from = BracketItem();
      const bool single = from.size() == 1 && from[0].first == from[0].second;
      const bool range =
          single && at_ + 1 < pattern_.size() && pattern_[at_] == '-' && pattern_[at_ + 1] != ']';
      if (!range) {
        out.insert(out.end(), from.begin(), from.end());
        continue;
      }
      Accept("-");
      const Ranges to = BracketItem();
      if (to.size() != 1 || to[0].first != to[0].second || to[0].first < from[0].first)
        Fail("a range that makes no sense");
      out.emplace_back(from[0].first, to[0].first);
    }
    if (flags.ignore_case) out = WithCases(std::move(out));
    return negated ? Complement(out) : out;
  }
  Ranges BracketItem() {
    if (Accept("\\")) return Escape();
    const uint32_t c = Take();
    return {{c, c}};
  }

  const std::string_view pattern_;
  size_t at_ = 0;
  int depth_ = 0;
  Ranges ranges_;
  std::map<Ranges, int32_t> known_;  // where a set's ranges begin
};

}  // namespace

Expected<std::vector<int32_t>> CompileRegex(std::string_view pattern) {
  if (!IsUtf8(pattern)) return MakeError("expected a pattern in UTF-8");
  try {
    return Reader(pattern).Run();
  } catch (const PatternError& e) {
    return MakeError(fmt::format("the pattern has {}", e.message));
  }
}

}  // namespace tenon::onnx
