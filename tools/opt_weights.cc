#include "opt_weights.h"

#include <fmt/format.h>

#include <filesystem>

#include "support/file.h"
#include "support/strings.h"

namespace tenon {

namespace {

namespace fs = std::filesystem;

bool IsFile(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Where the file may be, the likeliest place first.
std::vector<std::string> Places(const std::string& name, const std::string& text_file,
                                const std::vector<std::string>& given) {
  std::vector<std::string> places;
  for (const std::string& path : given) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      places.push_back(fs::path(path) / name);
      places.push_back(fs::path(path) / fs::path(name).filename());
    } else if (fs::path(path).filename() == fs::path(name).filename()) {
      places.push_back(path);
    }
  }
  if (!text_file.empty() && text_file != "-") {
    places.push_back(fs::path(text_file).parent_path() / name);
  }
  places.push_back(name);
  if (given.size() == 1) places.push_back(given[0]);
  return places;
}

Expected<std::shared_ptr<const graph::WeightFile>> Open(const std::string& name,
                                                        const std::string& text_file,
                                                        const std::vector<std::string>& given) {
  const std::vector<std::string> places = Places(name, text_file, given);
  for (const std::string& path : places) {
    if (!IsFile(path)) continue;
    TN_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(path));
    // The name stays that of the text, so that printing gives the same again.
    return std::make_shared<const graph::WeightFile>(name, std::move(map));
  }
  return MakeError(
      fmt::format("the weight file '{}' is not there (looked for {}); name it with "
                  "--weights",
                  name, Join(places, ", ")));
}

}  // namespace

graph::WeightSource FindWeights(const std::string& text_file, std::vector<std::string> given) {
  return [text_file, given = std::move(given)](const std::string& name) {
    return Open(name, text_file, given);
  };
}

}  // namespace tenon
