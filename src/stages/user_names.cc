#include "stages/user_names.h"

#include <cctype>

namespace tenon::stages {

namespace {

bool IsOfName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

std::map<std::string, std::string> UsersNames(const Carried& c) {
  std::map<std::string, int> uses;
  for (const auto& [loop, name] : c.names) uses[c.s[loop].name] += name.empty() ? 0 : 1;
  std::map<std::string, std::string> out;
  for (const auto& [loop, name] : c.names) {
    const LoopInfo& info = c.s[loop];
    if (name.empty()) continue;
    out[name] = uses[info.name] == 1 ? info.name : c.s[info.stage].name + "." + info.name;
  }
  return out;
}

}  // namespace

static std::string InNames(const std::string& message,
                           const std::map<std::string, std::string>& users) {
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

Diagnostics InUsersNames(Diagnostics errors, const Carried& carried) {
  const std::map<std::string, std::string> users = UsersNames(carried);
  for (Diagnostic& d : errors) {
    d.message = InNames(d.message, users);
    for (std::string& note : d.notes) note = InNames(note, users);
  }
  return errors;
}

}  // namespace tenon::stages
