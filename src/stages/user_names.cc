#include "stages/user_names.h"

#include <cctype>

namespace tenon::stages {

namespace {

bool IsOfName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

}  // namespace

UsersNames UsersNamesOf(const Carried& c) {
  std::map<std::string, int> uses;
  for (const auto& [loop, name] : c.names) uses[c.s[loop].name] += name.empty() ? 0 : 1;
  UsersNames out;
  for (const auto& [loop, name] : c.names) {
    const LoopInfo& info = c.s[loop];
    if (name.empty()) continue;
    out[name] = uses[info.name] == 1 ? info.name : c.s[info.stage].name + "." + info.name;
  }
  return out;
}

// A loop that a pass has copied goes on with a number after the name of what it copies.
static std::string WordOf(const std::string& word, const UsersNames& users) {
  for (std::string name = word; !name.empty();) {
    if (auto known = users.find(name); known != users.end()) return known->second;
    const size_t dot = name.find_last_not_of("0123456789");
    if (dot == std::string::npos || dot + 1 == name.size() || name[dot] != '.') break;
    name.resize(dot);
  }
  return word;
}

std::string InUsersNames(const std::string& message, const UsersNames& users) {
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
    out += WordOf(message.substr(i, word - i), users);
    out += message.substr(word, end - word);
    i = end;
  }
  return out;
}

Diagnostics InUsersNames(Diagnostics errors, const UsersNames& users) {
  for (Diagnostic& d : errors) {
    d.message = InUsersNames(d.message, users);
    for (std::string& note : d.notes) note = InUsersNames(note, users);
  }
  return errors;
}

}  // namespace tenon::stages
