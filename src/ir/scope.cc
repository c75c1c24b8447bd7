#include "ir/scope.h"

namespace tenon {

namespace {
constexpr ScopeInfo kScopes[] = {
#define TN_SCOPE(enumerator, word, holder, medium, scheduled) \
  {Scope::enumerator, word, Holder::holder, Medium::medium, scheduled},
#include "ir/scopes.def"
#undef TN_SCOPE
};
}  // namespace

const ScopeInfo& Info(Scope scope) { return kScopes[static_cast<size_t>(scope)]; }

const char* Name(Scope scope) { return Info(scope).word; }

std::optional<Scope> ScopeOf(std::string_view word) {
  for (const ScopeInfo& row : kScopes) {
    if (word == row.word) return row.scope;
  }
  return std::nullopt;
}

std::string ScopeWords(bool scheduled) {
  std::string words;
  for (const ScopeInfo& row : kScopes) {
    if (scheduled && !row.scheduled) continue;
    words += (words.empty() ? "" : ", ") + std::string(row.word);
  }
  return words;
}

}  // namespace tenon
