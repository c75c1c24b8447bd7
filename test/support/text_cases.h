// The text cases of passes, read by unit tests that check more of them than their texts say.
#pragma once

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "support/check.h"
#include "support/file.h"
#include "support/strings.h"

namespace tenon::testing {

struct PassCase {
  std::string name;
  std::vector<std::string> passes;
  std::string target;  // "": the case names none
  std::string text;    // the input; its keys are comments
};
inline void PrintTo(const PassCase& c, std::ostream* out) { *out << c.name; }

inline PassCase ReadPassCase(const std::filesystem::path& path) {
  Expected<std::string> file = ReadFile(path.string());
  TN_CHECK(file, "cannot read {}", path.string());
  const std::string run = file->substr(0, file->find('\n'));
  auto option = [&](const std::string& key, const char* ends) -> std::string {
    const size_t from = run.find(key);
    if (from == std::string::npos) return "";
    const size_t start = from + key.size();
    return run.substr(start, run.find_first_of(ends, start) - start);
  };
  return {path.stem().string(), Split(option("--passes=", " "), ','), option("--target \"", "\""),
          file->substr(0, file->find("// EXPECT:"))};
}

/// Those of a folder and of its folders, by name; cases of what is refused have no result.
inline std::vector<PassCase> ReadPassCases(const std::string& folder) {
  std::vector<PassCase> cases;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".test") continue;
    PassCase found = ReadPassCase(entry.path());
    if (found.text.find("\n// EXIT: ") == std::string::npos) cases.push_back(std::move(found));
  }
  std::sort(cases.begin(), cases.end(),
            [](const PassCase& a, const PassCase& b) { return a.name < b.name; });
  return cases;
}

}  // namespace tenon::testing
