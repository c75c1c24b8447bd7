#include "api/user_names.h"

#include <cctype>

namespace tenon::inline v0 {

namespace {

bool IsOfName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

std::map<std::string, std::string> UsersNames(const StageNames& names) {
  std::map<std::string, int> uses;
  for (const auto& [stage, loops] : names) {
    for (const auto& [loop, name] : loops) uses[loop->name] += name.empty() ? 0 : 1;
  }
  std::map<std::string, std::string> out;
  for (const auto& [stage, loops] : names) {
    for (const auto& [loop, name] : loops) {
      if (name.empty()) continue;
      out[name] = uses[loop->name] == 1 ? loop->name : stage->op.name() + "." + loop->name;
    }
  }
  return out;
}

}  // namespace

std::string InUsersNames(const std::string& message, const StageNames& names) {
  const std::map<std::string, std::string> users = UsersNames(names);
  std::string out;
  for (size_t i = 0; i < message.size();) {
    size_t end = i;
    while (end < message.size() && IsOfName(message[end])) ++end;
    if (end == i) {
      out += message[i++];
      continue;
    }
    // A dot at the end is the sentence's.
    size_t word = end;
    while (word > i && message[word - 1] == '.') --word;
    const auto known = users.find(message.substr(i, word - i));
    out += known == users.end() ? message.substr(i, word - i) : known->second;
    out += message.substr(word, end - word);
    i = end;
  }
  return out;
}

}  // namespace tenon::inline v0
