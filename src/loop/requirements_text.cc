// Requirements as text, the way an attribute holds them.
#include <fmt/format.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "loop/requirements.h"

namespace tenon {

namespace {

// What stands behind the last `mark` in the text, which loses it; nothing where there is none.
std::optional<std::string> CutOff(std::string* text, std::string_view mark) {
  const size_t at = text->rfind(mark);
  if (at == std::string::npos) return std::nullopt;
  std::string rest = text->substr(at + mark.size());
  text->resize(at);
  return rest;
}

// "i in 0..n", in terms of `scope`, which gets its variable.
std::optional<Requirement::Loop> ParseLoop(const std::string& text, std::vector<NodeRef>* scope) {
  const size_t in = text.find(" in "), dots = text.find("..", in);
  if (in == std::string::npos || dots == std::string::npos) return std::nullopt;
  auto min = ParseExpr(text.substr(in + 4, dots - in - 4), *scope);
  auto end = ParseExpr(text.substr(dots + 2), *scope);
  if (!min || !end) return std::nullopt;
  Requirement::Loop out{VarNode::Make(text.substr(0, in)), *min, *end};
  scope->push_back(out.var);
  return out;
}

std::optional<Requirement> ParseOne(std::string text, std::vector<NodeRef> scope) {
  Requirement r;
  const size_t colon = text.find(": ");
  if (colon == std::string::npos) return std::nullopt;
  r.what = text.substr(colon + 2);
  text.resize(colon);
  const std::optional<std::string> when = CutOff(&text, " if ");
  std::vector<std::string> loops;  // innermost first
  while (auto loop = CutOff(&text, " for ")) loops.push_back(*loop);
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    auto every = ParseLoop(*loop, &scope);
    if (!every) return std::nullopt;
    r.every.push_back(*every);
  }
  auto holds = ParseExpr(text, scope);
  if (!holds || !IsA<Binary>(*holds)) return std::nullopt;
  r.holds = Cast<Binary>(*holds);
  if (!when) return r;
  auto condition = ParseExpr(*when, scope);
  if (!condition || !(*condition)->dtype.IsBool()) return std::nullopt;
  r.when = *condition;
  return r;
}

}  // namespace

std::string Requirement::ToString() const {
  std::string text = tenon::ToString(Expr(holds));
  for (const Loop& l : every) {
    text += fmt::format(" for {} in {}..{}", l.var->name, tenon::ToString(l.min),
                        tenon::ToString(l.end));
  }
  if (when) text += " if " + tenon::ToString(when);
  return text + ": " + what;
}

std::vector<Requirement> Requirement::Parse(const PrimFunc& func) {
  std::vector<Requirement> out;
  std::vector<NodeRef> scope(func.dims.begin(), func.dims.end());
  scope.insert(scope.end(), func.scalars.begin(), func.scalars.end());
  for (const std::string& text : func.attrs.Get<std::vector<std::string>>(kRequiresAttr, {})) {
    if (auto r = ParseOne(text, scope)) out.push_back(std::move(*r));
  }
  return out;
}

}  // namespace tenon
