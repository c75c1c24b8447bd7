// Rewriting by rules that are text.
//
// "(x + y) - y" is parsed once into a pattern tree; matching walks pattern and expression together,
// binds letters to parts (the same letter must meet equal parts, compared by the number that
// ExprIds gives to each distinct expression), and tries both orders of a commutative operator.
// Rules are found by the operator at their root and tried in the order of the table; the first that
// applies gives the answer, which the simplifier looks at again. So
//
//   min(max(x, y), y)          →  y
//   select(b, x, x)            →  x
//
// are lines below, and a rule that is wrong is wrong visibly: a test instantiates every rule with
// every type that it claims and compares both sides on all small values. A rule must make the
// expression smaller, or bring it nearer to one form, or simplifying would not end.

#include "arith/rules.h"

#include <array>
#include <cctype>
#include <cstring>
#include <unordered_map>

#include "support/check.h"

namespace tenon {

namespace {

constexpr Rule kRules[] = {
    // +, -, unary -
    {"x + -y", "x - y"},
    {"x - -y", "x + y"},
    {"-(-x)", "x"},
    {"-(x - y)", "y - x", RuleType::kInteger},
    {"x - x", "0", RuleType::kInteger},
    {"(x + y) - y", "x", RuleType::kInteger},
    {"(x - y) + y", "x", RuleType::kInteger},
    {"x - (x - y)", "y", RuleType::kInteger},
    {"x - (x + y)", "-y", RuleType::kInteger},
    {"(x + k) + l", "x + (k + l)", RuleType::kInteger},
    // *
    {"(x * k) * l", "x * (k * l)", RuleType::kInteger},
    {"-x * -y", "x * y"},
    // min, max: absorption
    {"min(max(x, y), y)", "y", RuleType::kInteger},
    {"max(min(x, y), y)", "y", RuleType::kInteger},
    {"min(min(x, y), y)", "min(x, y)", RuleType::kInteger},
    {"max(max(x, y), y)", "max(x, y)", RuleType::kInteger},
    {"min(x, x)", "x"},
    {"max(x, x)", "x"},
    // bits
    {"bitand(x, x)", "x"},
    {"bitor(x, x)", "x"},
    {"bitxor(x, x)", "0"},
    {"bitxor(bitxor(x, y), y)", "x"},
    {"~(~x)", "x"},
    // logic: absorption and complements
    {"x && x", "x"},
    {"x || x", "x"},
    {"x && (x || y)", "x"},
    {"x || (x && y)", "x"},
    {"x && !x", "!true"},
    {"x || !x", "true"},
    {"!(!x)", "x"},
    // select
    {"select(b, x, x)", "x"},
    {"select(!b, x, y)", "select(b, y, x)"},
    {"select(b, select(b, x, y), z)", "select(b, x, z)"},
    {"select(b, x, select(b, y, z))", "select(b, x, z)"},
    {"select(x < y, x, y)", "min(x, y)", RuleType::kInteger},
    {"select(x < y, y, x)", "max(x, y)", RuleType::kInteger},
    {"select(b, true, !true)", "b", RuleType::kBool},
    {"select(b, !true, true)", "!b", RuleType::kBool},
};

constexpr char kLetters[] = "xyzbkl";
constexpr size_t kNumLetters = sizeof(kLetters) - 1;
using Letters = std::array<Expr, kNumLetters>;

}  // namespace

struct Pattern {
  enum class Kind { kLetter, kNumber, kTrue, kUnary, kBinary, kSelect };
  Kind kind = Kind::kNumber;
  size_t letter = 0;  // into kLetters
  int64_t number = 0;
  UnaryOp unary{};
  BinaryOp binary{};
  std::vector<PatternRef> operands;
};

void PatternDeleter::operator()(Pattern* p) const { delete p; }

namespace {

struct NamedBinary {
  const char* text;
  int precedence;
  BinaryOp op;
};
constexpr NamedBinary kBinaries[] = {
#define TN_UNARY(name, text)
#define TN_BINARY(name, text, precedence, result) {text, precedence, BinaryOp::k##name},
#include "ir/ops.def"
#undef TN_UNARY
#undef TN_BINARY
};
struct NamedUnary {
  const char* text;
  UnaryOp op;
};
constexpr NamedUnary kUnaries[] = {
#define TN_UNARY(name, text) {text, UnaryOp::k##name},
#define TN_BINARY(name, text, precedence, result)
#include "ir/ops.def"
#undef TN_UNARY
#undef TN_BINARY
};

// Patterns are our own text: what is wrong in one is a bug.
class PatternParser {
 public:
  explicit PatternParser(const char* text) : at_(text), text_(text) {}

  PatternRef Parse() {
    PatternRef out = Binary(1);
    Space();
    TN_CHECK(*at_ == '\0', "rest '{}' in pattern {}", at_, text_);
    return out;
  }

 private:
  void Space() {
    while (*at_ == ' ') ++at_;
  }
  bool Take(const char* token) {
    Space();
    size_t n = std::strlen(token);
    if (std::strncmp(at_, token, n) != 0) return false;
    at_ += n;
    return true;
  }
  void Expect(const char* token) {
    TN_CHECK(Take(token), "expected '{}' in pattern {}", token, text_);
  }

  static PatternRef Node(Pattern::Kind kind) {
    PatternRef p(new Pattern);
    p->kind = kind;
    return p;
  }

  // The longest operator here of at least this precedence.
  const NamedBinary* PeekBinary(int min_precedence) {
    Space();
    const NamedBinary* best = nullptr;
    for (const NamedBinary& b : kBinaries) {
      if (b.precedence == 0 || std::strncmp(at_, b.text, std::strlen(b.text)) != 0) continue;
      if (!best || std::strlen(b.text) > std::strlen(best->text)) best = &b;
    }
    return best && best->precedence >= min_precedence ? best : nullptr;
  }

  PatternRef Binary(int min_precedence) {
    PatternRef left = Primary();
    while (const NamedBinary* op = PeekBinary(min_precedence)) {
      at_ += std::strlen(op->text);
      PatternRef node = Node(Pattern::Kind::kBinary);
      node->binary = op->op;
      node->operands.push_back(std::move(left));
      node->operands.push_back(Binary(op->precedence + 1));
      left = std::move(node);
    }
    return left;
  }

  PatternRef Arguments(PatternRef node, int count) {
    for (int i = 0; i < count; ++i) {
      Expect(i == 0 ? "(" : ",");
      node->operands.push_back(Binary(1));
    }
    Expect(")");
    return node;
  }

  PatternRef Primary() {
    if (Take("(")) {
      PatternRef out = Binary(1);
      Expect(")");
      return out;
    }
    if (Take("select")) return Arguments(Node(Pattern::Kind::kSelect), 3);
    if (Take("true")) return Node(Pattern::Kind::kTrue);
    for (const NamedBinary& b : kBinaries) {
      if (b.precedence != 0 || !Take(b.text)) continue;
      PatternRef node = Node(Pattern::Kind::kBinary);
      node->binary = b.op;
      return Arguments(std::move(node), 2);
    }
    for (const NamedUnary& u : kUnaries) {
      if (!Take(u.text)) continue;
      PatternRef node = Node(Pattern::Kind::kUnary);
      node->unary = u.op;
      node->operands.push_back(Primary());
      return node;
    }
    if (std::isdigit(static_cast<unsigned char>(*at_))) {
      PatternRef node = Node(Pattern::Kind::kNumber);
      node->number = *at_++ - '0';
      return node;
    }
    const char* letter = *at_ ? std::strchr(kLetters, *at_) : nullptr;
    TN_CHECK(letter, "expected an operand at '{}' in pattern {}", at_, text_);
    ++at_;
    PatternRef node = Node(Pattern::Kind::kLetter);
    node->letter = static_cast<size_t>(letter - kLetters);
    return node;
  }

  const char* at_;
  const char* text_;
};

}  // namespace

namespace {

bool IsConstantLetter(size_t letter) { return kLetters[letter] == 'k' || kLetters[letter] == 'l'; }

bool Commutes(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kMul:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor: return true;
    case BinaryOp::kSub:
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe:
    case BinaryOp::kShl:
    case BinaryOp::kShr: return false;
  }
  return false;
}

bool Match(ExprIds& ids, const Pattern& p, const Expr& e, Letters* letters) {
  switch (p.kind) {
    case Pattern::Kind::kLetter: {
      Expr& bound = (*letters)[p.letter];
      if (bound) return ids.Same(bound, e);
      if (IsConstantLetter(p.letter) && !AsInt(e)) return false;
      bound = e;
      return true;
    }
    case Pattern::Kind::kNumber: return AsInt(e) == p.number && !e->dtype.IsBool();
    case Pattern::Kind::kTrue: return e->dtype.IsBool() && IsOne(e);
    case Pattern::Kind::kUnary: {
      const auto* n = As<Unary>(e);
      return n && n->op == p.unary && Match(ids, *p.operands[0], n->value, letters);
    }
    case Pattern::Kind::kSelect: {
      const auto* n = As<Select>(e);
      return n && Match(ids, *p.operands[0], n->condition, letters) &&
             Match(ids, *p.operands[1], n->on_true, letters) &&
             Match(ids, *p.operands[2], n->on_false, letters);
    }
    case Pattern::Kind::kBinary: {
      const auto* n = As<Binary>(e);
      if (!n || n->op != p.binary) return false;
      Letters before = *letters;
      if (Match(ids, *p.operands[0], n->lhs, letters) &&
          Match(ids, *p.operands[1], n->rhs, letters))
        return true;
      *letters = before;
      return Commutes(p.binary) && Match(ids, *p.operands[0], n->rhs, letters) &&
             Match(ids, *p.operands[1], n->lhs, letters);
    }
  }
  TN_UNREACHABLE();
}

// The type of a part, from the letters in it: null where it has none.
std::optional<DType> TypeOf(const Pattern& p, std::span<const Expr> letters) {
  switch (p.kind) {
    case Pattern::Kind::kLetter: return letters[p.letter]->dtype;
    case Pattern::Kind::kNumber:
    case Pattern::Kind::kTrue: return std::nullopt;
    case Pattern::Kind::kUnary: return TypeOf(*p.operands[0], letters);
    case Pattern::Kind::kSelect: {
      auto type = TypeOf(*p.operands[1], letters);
      return type ? type : TypeOf(*p.operands[2], letters);
    }
    case Pattern::Kind::kBinary: {
      auto type = TypeOf(*p.operands[0], letters);
      if (!type) type = TypeOf(*p.operands[1], letters);
      if (type && Info(p.binary).is_comparison)
        return DType::Bool().WithLanes(type->lanes, type->scalable);
      return type;
    }
  }
  TN_UNREACHABLE();
}

bool RuleHolds(RuleType rule, DType type) {
  switch (rule) {
    case RuleType::kAny: return true;
    case RuleType::kInteger: return type.IsInt() || type.IsIndex();
    case RuleType::kBool: return type.IsBool();
    case RuleType::kFloat: return type.IsFloat();
  }
  TN_UNREACHABLE();
}

struct Compiled {
  const Rule* rule;
  PatternRef pattern, replacement;
};

// Rules by what stands at their root.
class RuleIndex {
 public:
  RuleIndex() {
    for (const Rule& r : kRules) {
      Compiled c{&r, ParsePattern(r.pattern), ParsePattern(r.replacement)};
      groups_[KeyOf(*c.pattern)].push_back(std::move(c));
    }
  }
  const std::vector<Compiled>* Find(const Expr& e) const {
    auto it = groups_.find(KeyOf(e));
    return it == groups_.end() ? nullptr : &it->second;
  }

 private:
  static int Key(Pattern::Kind kind, int op) { return static_cast<int>(kind) << 8 | op; }
  static int KeyOf(const Pattern& p) {
    int op =
        p.kind == Pattern::Kind::kUnary ? static_cast<int>(p.unary) : static_cast<int>(p.binary);
    return Key(p.kind, p.kind == Pattern::Kind::kSelect ? 0 : op);
  }
  static int KeyOf(const Expr& e) {
    if (const auto* n = As<Unary>(e)) return Key(Pattern::Kind::kUnary, static_cast<int>(n->op));
    if (const auto* n = As<Binary>(e)) return Key(Pattern::Kind::kBinary, static_cast<int>(n->op));
    return IsA<Select>(e) ? Key(Pattern::Kind::kSelect, 0) : -1;
  }
  std::unordered_map<int, std::vector<Compiled>> groups_;
};

}  // namespace

PatternRef ParsePattern(const char* text) { return PatternParser(text).Parse(); }
std::span<const Rule> AllRules() { return kRules; }

Expr Instantiate(const Pattern& p, std::span<const Expr> letters, DType type) {
  switch (p.kind) {
    case Pattern::Kind::kLetter: return letters[p.letter];
    case Pattern::Kind::kNumber: return MakeIntConst(type, p.number);
    case Pattern::Kind::kTrue: return MakeIntConst(type, 1);
    case Pattern::Kind::kUnary:
      return Unary::Make(p.unary, Instantiate(*p.operands[0], letters, type));
    case Pattern::Kind::kSelect: {
      DType condition = TypeOf(*p.operands[0], letters).value_or(DType::Bool());
      return Select::Make(Instantiate(*p.operands[0], letters, condition),
                          Instantiate(*p.operands[1], letters, type),
                          Instantiate(*p.operands[2], letters, type));
    }
    case Pattern::Kind::kBinary: {
      DType operand = type;
      if (Info(p.binary).is_comparison) {
        auto known = TypeOf(*p.operands[0], letters);
        operand = known ? *known : TypeOf(*p.operands[1], letters).value_or(type);
      }
      return Binary::Make(p.binary, Instantiate(*p.operands[0], letters, operand),
                          Instantiate(*p.operands[1], letters, operand));
    }
  }
  TN_UNREACHABLE();
}

Expr ApplyRules(ExprIds& ids, const Expr& e) {
  static const RuleIndex index;
  const std::vector<Compiled>* group = index.Find(e);
  if (!group) return nullptr;
  for (const Compiled& c : *group) {
    Letters letters;
    if (!RuleHolds(c.rule->type, e->dtype) || !Match(ids, *c.pattern, e, &letters)) continue;
    // A scalar condition that selects vectors does not stand for a vector.
    if (auto type = TypeOf(*c.replacement, letters); type && *type != e->dtype) continue;
    return Instantiate(*c.replacement, letters, e->dtype);
  }
  return nullptr;
}

}  // namespace tenon
