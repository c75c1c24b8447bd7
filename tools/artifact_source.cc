#include "artifact_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "console.h"
#include "driver/cache.h"
#include "progress.h"
#include "support/file.h"
#include "temporary_folder.h"
#include "verbs.h"

namespace tenon::tools {

namespace {

namespace fs = std::filesystem;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What compiling took is not part of what running takes (VmHWM starts anew).
void ForgetPeak() {
  const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] ssize_t written = write(fd, "5", 1);
  close(fd);
}

Expected<LoadedModel> Load(const std::string& library, double compile_seconds) {
  std::error_code ignored;
  const auto bytes = static_cast<int64_t>(fs::file_size(library, ignored));
  const double start = Now();
  TN_ASSIGN_OR_RETURN(Program program, Program::Load(library));
  return LoadedModel{std::move(program), compile_seconds, Now() - start, bytes};
}

// Through the cache; without it where there can be none.
Expected<LoadedModel> CompileAndLoad(driver::CompileOptions options, bool verbose) {
  Expected<std::string> directory = driver::CacheDirectory();
  std::optional<TemporaryFolder> own;
  if (!directory) {
    PrintError("tenon: note: {}; compiling for this call alone\n", directory.errors()[0].message);
    TN_ASSIGN_OR_RETURN(TemporaryFolder made, TemporaryFolder::Make());
    own.emplace(std::move(made));
    directory = own->path();
  }
  driver::CachedLibrary library;
  {
    Progress progress(verbose ? Progress::Lines::kPhasesWithTimes : Progress::Lines::kNone);
    options.progress = [&](const std::string& phase, int64_t done, int64_t total) {
      progress.Show(phase, done, total);
    };
    const auto note = [](Diagnostic damage) {
      PrintError("tenon: note: {}; compiling it again\n", damage.ToString());
    };
    Expected<driver::CachedLibrary> made = driver::CompileCached(options, *directory, note);
    if (!made && !own && driver::IsFull(made.errors(), *directory)) {
      PrintError("tenon: note: {}; compiling for this call alone\n", made.errors()[0].message);
      TN_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Make());
      own.emplace(std::move(folder));
      made = driver::CompileCached(options, own->path(), note);
    }
    TN_ASSIGN_OR_RETURN(library, std::move(made));
  }
  if (library.compile_seconds > 0) ForgetPeak();
  return Load(library.path, library.compile_seconds);
}

// The runtime of a library takes no notice of what is no number.
Status CheckThreads() {
  const char* text = std::getenv("TENON_NUM_THREADS");
  if (!text) return Ok();
  int threads = 0;
  const char* end = text + std::strlen(text);
  const auto [rest, fault] = std::from_chars(text, end, threads);
  if (fault == std::errc() && rest == end && threads >= 1) return Ok();
  return MakeError(fmt::format("TENON_NUM_THREADS is '{}'; expected a number of at least 1", text));
}

void TakeShapes(const NamedTensors& given, driver::CompileOptions* options) {
  for (const auto& [name, tensor] : given) {
    if (name.empty() || options->shapes.count(name)) continue;
    std::vector<onnx::DimSpec>& dims = options->shapes[name];
    for (int64_t extent : tensor.shape()) {
      dims.emplace_back();
      dims.back().value = extent;
    }
  }
}

}  // namespace

Expected<bool> IsArtifact(const std::string& path) {
  Expected<MappedFile> file = MappedFile::Open(path);
  if (!file) return InFile(std::move(file.errors()), path);
  return file->text().starts_with(
      "\x7f"
      "ELF");
}

Expected<LoadedModel> LoadModel(const std::string& path, const CompileArguments& how,
                                const CallArguments& call, bool verbose) {
  TN_RETURN_IF_ERROR(CheckThreads());
  TN_ASSIGN_OR_RETURN(bool compiled, IsArtifact(path));
  if (const std::string option = how.Given(); compiled && !option.empty()) {
    return MakeError(
        fmt::format("{} says how to compile a model, and this is compiled already", option),
        {path});
  }
  if (compiled) return Load(path, 0);
  driver::CompileOptions options = how.options;
  options.model = path;
  TakeShapes(call.given(), &options);
  return CompileAndLoad(std::move(options), verbose);
}

}  // namespace tenon::tools
