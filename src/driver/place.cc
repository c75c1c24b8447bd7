#include "driver/place.h"

#include <fmt/format.h>

#include <filesystem>

#include "driver/outputs.h"
#include "support/atomic_file.h"

namespace tenon::driver {

namespace fs = std::filesystem;

// A file where the first of the folders will be that are made for this one.
static std::string BesideNew(const std::string& folder) {
  fs::path first = fs::absolute(folder).lexically_normal();
  if (first.filename().empty()) first = first.parent_path();
  std::error_code fault;
  while (first.has_relative_path() && !fs::exists(first.parent_path(), fault))
    first = first.parent_path();
  return first.string();
}

Expected<Place> ResolvePlace(const CompileOptions& options, const Target& target) {
  const bool object = options.format == OutputFormat::kObject;
  const bool source = options.format == OutputFormat::kCSource;
  if (source && !options.output.ends_with('/') && !options.output.ends_with(".c")) {
    return MakeError(fmt::format(
        "C source goes to a file that ends in .c, or into a folder/; got '{}'", options.output));
  }
  if (options.output.empty()) return MakeError("expected a file or a folder/ to write to, got ''");
  Place place{options.output, "", "", false, ""};
  std::error_code fault;
  if (options.output.ends_with('/') || fs::is_directory(options.output, fault)) {
    if (!fs::exists(options.output, fault)) place.new_folder = options.output;
    const std::string_view suffix = object   ? ".o"
                                    : source ? ".c"
                                             : RowOf(target.Cpu().arch()).library_suffix;
    place.path = (fs::path(options.output) / fmt::format("model{}", suffix)).string();
    place.is_bundle = true;
  }
  if (!object && !source) TN_RETURN_IF_ERROR(CheckLibraryFile(place.path, target));
  place.directory = fs::path(place.path).parent_path().string();
  place.directory = place.directory.empty() ? "." : place.directory;
  if (options.params == ParamsMode::kSeparate)
    place.params = fs::path(place.path).replace_extension(".params");
  // That it cannot be written is better known before compiling than after; nothing stays of this.
  TN_RETURN_IF_ERROR(
      AtomicFile::Create(place.new_folder.empty() ? place.path : BesideNew(place.new_folder)));
  return place;
}

int64_t BytesAt(const Place& place) {
  std::error_code ignored;
  uintmax_t bytes = fs::file_size(place.path, ignored);
  if (!place.params.empty() && fs::exists(place.params, ignored))
    bytes += fs::file_size(place.params, ignored);
  return static_cast<int64_t>(bytes);
}

}  // namespace tenon::driver
