// Whether a text holds another, for tests of messages and sources.
#pragma once

#include <string>

namespace tenon::test {

inline bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tenon::test
