#include "message_gist.h"

#include <cctype>

namespace tenon::tools {

// Quoted words become '…', words with a slash a path, and digits with what stands around them in
// a number become N.
std::string GistOf(const std::string& message) {
  constexpr size_t kMost = 160;
  std::string gist;
  for (size_t i = 0; i < message.size() && gist.size() < kMost;) {
    const char c = message[i];
    size_t end = i;
    if (c == '\'') {
      end = message.find('\'', i + 1);
      if (end == std::string::npos) end = message.size() - 1;
      gist += "'…'";
      i = end + 1;
    } else if (c == '/') {
      while (end < message.size() && !std::isspace(static_cast<unsigned char>(message[end]))) ++end;
      gist += "PATH";
      i = end;
    } else if (std::isdigit(static_cast<unsigned char>(c))) {
      while (end < message.size() &&
             (std::isalnum(static_cast<unsigned char>(message[end])) || message[end] == '.'))
        ++end;
      gist += "N";
      i = end;
    } else {
      gist += c;
      ++i;
    }
  }
  return gist;
}

}  // namespace tenon::tools
