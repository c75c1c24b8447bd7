// Memory scopes as a type: what a buffer's memory is, and whose (the table is scopes.def).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

enum class Scope : uint8_t {
#define TN_SCOPE(enumerator, word, holder, medium, scheduled) enumerator,
#include "ir/scopes.def"
#undef TN_SCOPE
};

/// Who has one memory of a scope, from the many to the one.
enum class Holder : uint8_t { kLaunch, kBlock, kWarp, kThread };
/// What memory of a scope is made of.
enum class Medium : uint8_t { kMemory, kRegisters, kUnit };

struct ScopeInfo {
  Scope scope;
  const char* word;
  Holder holder;
  Medium medium;
  bool scheduled;  // a schedule may ask for it
};

/// The scope's row.
const ScopeInfo& Info(Scope scope);
/// Its word in texts.
const char* Name(Scope scope);
/// The scope that a text calls so; nothing for any other word.
std::optional<Scope> ScopeOf(std::string_view word);
/// "global, shared, …": all words, or those that a schedule may ask for.
std::string ScopeWords(bool scheduled);

inline Holder HolderOf(Scope scope) { return Info(scope).holder; }
/// An array of one thread or worker, in memory or in registers.
inline bool IsThreadArray(Scope scope) {
  return HolderOf(scope) == Holder::kThread && Info(scope).medium != Medium::kUnit;
}

}  // namespace tenon
