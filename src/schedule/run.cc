#include "schedule/run.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "ir/parse.h"
#include "ir/parse_core.h"
#include "ir/print.h"
#include "schedule/primitive/primitives.h"
#include "support/strings.h"

namespace tenon::primitive {

namespace {

// ---- From a plain value to the type that a primitive takes ----

// "$name", the value of a choice; or a number; or factors of these, "$rows*$columns*4".
Expected<int64_t> NumberOf(const State& s, const std::string& text) {
  if (const size_t star = text.rfind('*'); star != std::string::npos) {
    TN_ASSIGN_OR_RETURN(const int64_t others, NumberOf(s, text.substr(0, star)));
    TN_ASSIGN_OR_RETURN(const int64_t last, NumberOf(s, text.substr(star + 1)));
    int64_t product = 0;
    if (__builtin_mul_overflow(others, last, &product))
      return Because("the product " + QuoteJson(text) + " is too large");
    return product;
  }
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  if (!text.starts_with('$'))
    return Because("expected a number or a choice, got " + QuoteJson(text));
  const std::string name = text.substr(1);
  if (s.decisions == nullptr || s.decisions->count(name) == 0) {
    return Because("no choice is named " + QuoteJson(name));
  }
  return s.decisions->at(name);
}

bool IsChoice(const AttrValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr && text->starts_with('$');
}

template <class T>
Status Convert(const State& s, const AttrValue& value, T* out) {
  if constexpr (std::is_same_v<T, AttrValue>) {
    *out = value;
    if (IsChoice(value)) {
      TN_ASSIGN_OR_RETURN(*out, NumberOf(s, std::get<std::string>(value)));
    }
    return Ok();
  } else {
    if constexpr (std::is_same_v<T, int64_t>) {
      if (IsChoice(value)) {
        TN_ASSIGN_OR_RETURN(*out, NumberOf(s, std::get<std::string>(value)));
        return Ok();
      }
    }
    if constexpr (std::is_same_v<T, Ints>) {
      if (const auto* texts = std::get_if<Names>(&value)) {
        for (const std::string& text : *texts) {
          TN_ASSIGN_OR_RETURN(int64_t number, NumberOf(s, text));
          out->push_back(number);
        }
        return Ok();
      }
    }
    if (const T* typed = std::get_if<T>(&value)) {
      *out = *typed;
      return Ok();
    }
    return Because("argument " + ToString(value) + " is of another type than expected");
  }
}

Status Convert(const State&, const AttrValue& value, Scope* out) {
  const auto* word = std::get_if<std::string>(&value);
  if (word == nullptr) return Because("expected the name of a scope, got " + ToString(value));
  TN_ASSIGN_OR_RETURN(*out, ScopeArg(*word));
  return Ok();
}

Status Convert(const State&, const AttrValue& value, ThreadAxis* out) {
  const auto* word = std::get_if<std::string>(&value);
  const auto axis = word ? ThreadAxisOf(*word) : std::nullopt;
  if (!axis) {
    return Because("expected a thread axis such as threadIdx.x, blockIdx.y or vthread, got " +
                   ToString(value));
  }
  *out = *axis;
  return Ok();
}

// An empty list does not say of what; one name stands for a list of it.
Status Convert(const State&, const AttrValue& value, Names* out) {
  const auto* ints = std::get_if<Ints>(&value);
  if (const auto* names = std::get_if<Names>(&value)) {
    *out = *names;
  } else if (const auto* name = std::get_if<std::string>(&value)) {
    *out = {*name};
  } else if (ints == nullptr || !ints->empty()) {
    return Because("expected a list of names, got " + ToString(value));
  }
  return Ok();
}

Status Convert(const State& s, const AttrValue& value, Expr* out) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return Because("expected the text of a condition, got " + ToString(value));
  std::vector<NodeRef> scope;
  for (const Var& v : s.func->dims) scope.push_back(v);
  for (const Var& v : s.func->scalars) scope.push_back(v);
  TN_ASSIGN_OR_RETURN(*out, ParseExpr(*text, scope));
  return Ok();
}

// A layout is read as part of a buffer's type, the only place where the text form has one.
class LayoutReader final : private TextParser {
 public:
  explicit LayoutReader(std::string_view text) : TextParser(text, "") {}
  Expected<Layout> Read() {
    try {
      Layout layout = TakeBufferType("layout")->layout;
      if (errors_.empty()) return layout;
    } catch (Abort) {
      return errors_;
    }
    return errors_;
  }
};

Expected<Layout> ParseLayout(const std::string& text) {
  // "(i, j) -> …" needs a buffer of rank two.
  size_t close = text.find(')');
  auto rank =
      1 + std::count(text.begin(),
                     text.begin() + static_cast<ptrdiff_t>(std::min(close, text.size())), ',');
  std::string type = "f32[";
  for (ptrdiff_t i = 0; i < rank; ++i) type += i == 0 ? "1" : ", 1";
  type += "] layout " + text;
  return LayoutReader(type).Read();
}

Status Convert(const State&, const AttrValue& value, Layout* out) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return Because("expected the text of a layout, got " + ToString(value));
  if (text->empty()) return Ok();
  TN_ASSIGN_OR_RETURN(*out, ParseLayout(*text));
  return Ok();
}

// ---- From a primitive to a call with plain values ----

template <class... A, size_t... I>
Result Call(Result (*fn)(State&, const A&...), State& s, const Args& args,
            std::index_sequence<I...>) {
  if (args.size() != sizeof...(A)) {
    return Because("expected " + std::to_string(sizeof...(A)) + " arguments, got " +
                   std::to_string(args.size()));
  }
  std::tuple<A...> typed;
  Diagnostics errors;
  auto convert = [&](const AttrValue& value, auto* out) {
    if (Status status = Convert(s, value, out); !status) errors = status.errors();
    return errors.empty();
  };
  if (!(convert(args[I], &std::get<I>(typed)) && ...)) return errors;
  return fn(s, std::get<I>(typed)...);
}

template <auto Fn>
struct Runner;
template <class... A, Result (*Fn)(State&, const A&...)>
struct Runner<Fn> {
  static Result Run(State& s, const Args& args) {
    return Call(Fn, s, args, std::index_sequence_for<A...>());
  }
};

constexpr PrimitiveRow kRows[] = {
#define TN_PRIMITIVE(function, name, places) {name, Runner<&function>::Run, places},
#include "schedule/primitives.def"
#undef TN_PRIMITIVE
};

}  // namespace

const PrimitiveRow* FindPrimitive(std::string_view name) {
  for (const PrimitiveRow& row : kRows) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

Names PrimitiveNames() {
  Names out;
  for (const PrimitiveRow& row : kRows) out.push_back(row.name);
  return out;
}

Expected<Scope> ScopeArg(const std::string& word) {
  const auto scope = ScopeOf(word);
  if (scope && Info(*scope).scheduled) return *scope;
  return Because("expected one of the scopes " + ScopeWords(/*scheduled=*/true) + ", got " +
                 QuoteJson(word));
}

AttrValue ToArg(const Expr& condition) {
  return condition ? ToString(NodeRef(condition)) : std::string();
}
AttrValue ToArg(const Layout& layout) { return layout ? ToString(NodeRef(layout)) : std::string(); }

}  // namespace tenon::primitive
