#include "driver/check_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/code_generators.h"
#include "support/strings.h"

namespace tenon::driver {

namespace {

struct Words {
  const char* names;
  const char* what;
};

constexpr Words kTaken[] = {
#define TN_C_WORDS(names, what) {names, what},
#include "driver/c_names.def"
#undef TN_C_WORDS
};

// What lowering cannot do without. The other passes only make code better.
constexpr const char* kNeeded[] = {"wrap_exports",    "lower_blocks",  "plan_storage",
                                   "flatten_storage", "vectorize",     "lower_parallel",
                                   "unroll",          "expand_float8", "expand_math",
                                   "lower_team",      "make_packed"};

// Otherwise the back end would name what it cannot make, or the library have no function.
Status CheckDisabled(const std::set<std::string>& passes) {
  Diagnostics errors;
  for (const std::string& pass : passes) {
    if (std::find(std::begin(kNeeded), std::end(kNeeded), pass) == std::end(kNeeded)) continue;
    errors.push_back(
        MakeError(fmt::format("the pass '{}' cannot be left out: lowering needs it", pass)));
  }
  if (!errors.empty()) return errors;
  return Ok();
}

Status CheckTarget(const CompileOptions& options, const Target& target) {
  const bool source = options.format == OutputFormat::kCSource;
  const bool makes_source = DoesMake(target, Makes::kSource);
  if (source && !makes_source)
    return MakeError(fmt::format("C source is for target 'c', not for '{}'", options.target));
  if (!source && makes_source) return MakeError("target 'c' makes C source: expected --format c");
  return CheckBuildable(target);
}

Status CheckPrecision(const std::string& precision) {
  const auto end = std::end(kPrecisions);
  if (std::find(std::begin(kPrecisions), end, precision) != end) return Ok();
  return MakeError(fmt::format("there is no precision '{}': expected {}", precision,
                               fmt::join(kPrecisions, ", ")));
}

Status CheckSymbols(const CompileOptions& options, const Target& target) {
  const bool library = options.format == OutputFormat::kSharedLibrary;
  if (options.visible && library)
    return MakeError("a library's functions are seen by all; --export is for --format obj and c");
  if (options.soname.empty()) return Ok();
  if (!library || target.Cpu().IsContained())
    return MakeError("shared libraries have a SONAME; expected --soname with --format so");
  if (options.soname.find('/') == std::string::npos) return Ok();
  return MakeError(fmt::format(
      "a SONAME is the name of a file in any folder: expected no '/' in '{}'", options.soname));
}

}  // namespace

Status CheckExportName(const std::string& name) {
  if (ToIdentifier(name) != name) {
    return MakeError(
        fmt::format("the name '{}' is not an identifier of C, which exports need", name));
  }
  for (const char* prefix : {"tn_", "__"}) {
    if (!name.starts_with(prefix)) continue;
    return MakeError(
        fmt::format("the name '{}' begins with '{}', as those of {} do; choose another", name,
                    prefix, *prefix == '_' ? "compilers and their libraries" : "Tenon's runtime"));
  }
  for (const Words& words : kTaken) {
    const std::vector<std::string> names = Split(words.names, ' ');
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    return MakeError(fmt::format("the name '{}' is {}; choose another", name, words.what));
  }
  return Ok();
}

CompileOptions Settled(CompileOptions options) {
  const bool is_c =
      options.target == "c" || options.target.starts_with("c ") || options.output.ends_with(".c");
  if (is_c && options.format == OutputFormat::kSharedLibrary)
    options.format = OutputFormat::kCSource;
  if (options.format == OutputFormat::kCSource && options.target == "llvm") options.target = "c";
  if (options.format == OutputFormat::kSharedLibrary && options.output.ends_with(".o"))
    options.format = OutputFormat::kObject;
  return options;
}

Expected<Target> CheckOptions(const CompileOptions& given) {
  const CompileOptions options = Settled(given);
  TN_ASSIGN_OR_RETURN(Target target, Target::Parse(options.target));
  TN_RETURN_IF_ERROR(CheckTarget(options, target));
  TN_RETURN_IF_ERROR(CheckPrecision(options.precision));
  TN_RETURN_IF_ERROR(CheckExportName(options.name));
  if (options.format == OutputFormat::kObject && options.params == ParamsMode::kSeparate) {
    return MakeError("an object holds its weights; expected --params embed with --format obj");
  }
  if (target.Cpu().IsContained() && options.params == ParamsMode::kSeparate) {
    return MakeError("a module of WebAssembly holds its weights; expected --params embed");
  }
  if (options.time_kernels &&
      (options.format == OutputFormat::kCSource || target.Cpu().IsContained())) {
    return MakeError("kernels are timed in libraries and objects for an operating system");
  }
  TN_RETURN_IF_ERROR(CheckSymbols(options, target));
  TN_RETURN_IF_ERROR(CheckDisabled(options.disabled_passes));
  return target;
}

}  // namespace tenon::driver
