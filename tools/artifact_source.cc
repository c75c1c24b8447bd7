#include "artifact_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "artifact/checksum.h"
#include "console.h"
#include "driver/check_options.h"
#include "driver/source.h"
#include "frontend/onnx/shape_text.h"
#include "progress.h"
#include "support/atomic_file.h"
#include "support/file.h"
#include "verbs.h"

namespace tenon::tools {

namespace {

namespace fs = std::filesystem;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A folder of this process alone, gone when this goes.
class TemporaryFolder {
 public:
  static Expected<TemporaryFolder> Make() {
    const char* parent = std::getenv("TMPDIR");
    std::string path = std::string(parent && *parent ? parent : "/tmp") + "/tenon-XXXXXX";
    if (mkdtemp(path.data())) return TemporaryFolder(path);
    return MakeError(fmt::format("cannot make a temporary folder '{}': {}", path,
                                 std::generic_category().message(errno)));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Made, where it is not there; errors: nothing can be written into it.
Expected<std::string> CacheDirectory() {
  std::string path;
  if (const char* dir = std::getenv("TENON_CACHE_DIR"); dir && *dir) {
    path = dir;
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    path = std::string(home) + "/.cache/tenon";
  } else {
    return MakeError("there is no folder for the cache: neither TENON_CACHE_DIR nor HOME is set");
  }
  std::error_code fault;
  fs::create_directories(path, fault);
  if (fault) return MakeError(fmt::format("cannot make the cache '{}': {}", path, fault.message()));
  // Nothing stays of this.
  TN_RETURN_IF_ERROR(AtomicFile::Create(path + "/new"));
  return path;
}

// What tells one build of the compiler from another: an entry of the cache serves only the one that
// made it.
void AddCompiler(Hasher* hasher) {
  struct stat self{};
  stat("/proc/self/exe", &self);
  hasher->Text(TENON_VERSION).Int(static_cast<uint64_t>(self.st_size));
  hasher->Int(static_cast<uint64_t>(self.st_mtim.tv_sec));
  hasher->Int(static_cast<uint64_t>(self.st_mtim.tv_nsec));
}

Expected<std::string> CacheKey(const driver::CompileOptions& o) {
  TN_ASSIGN_OR_RETURN(Target target, driver::CheckOptions(o));
  TN_ASSIGN_OR_RETURN(graph::Graph g, driver::ImportModel(o));
  TN_ASSIGN_OR_RETURN(Hash128 source, driver::HashSource(o, g));
  Hasher hasher;
  AddCompiler(&hasher);
  hasher.Int(source.high).Int(source.low).Text(target.ToString()).Text(o.precision);
  hasher.Int(static_cast<uint64_t>(o.opt_level)).Int(o.empty_sizes).Int(o.shapes.size());
  for (const auto& [name, dims] : o.shapes) {
    hasher.Text(name).Int(dims.size());
    for (const onnx::DimSpec& d : dims) hasher.Text(onnx::ToString(d));
  }
  return hasher.Finish().ToHex();
}

// The file's name in the cache: the model's, as far as it fits, and the key.
std::string EntryName(const std::string& model, const std::string& key) {
  constexpr size_t kMostOfStem = 200;
  return fs::path(model).stem().string().substr(0, kMostOfStem) + "-" + key + ".so";
}

// Compiles to options.output; returns how long that took, in seconds.
Expected<double> CompileFor(driver::CompileOptions options, bool verbose) {
  Progress progress(verbose ? Progress::Lines::kPhasesWithTimes : Progress::Lines::kNone);
  options.progress = [&](const std::string& phase, int64_t done, int64_t total) {
    progress.Show(phase, done, total);
  };
  const double start = Now();
  TN_RETURN_IF_ERROR(driver::Compile(options));
  const double seconds = Now() - start;
  // What compiling took is not part of what running takes (VmHWM starts anew).
  if (int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC); fd >= 0) {
    [[maybe_unused]] ssize_t written = write(fd, "5", 1);
    close(fd);
  }
  return seconds;
}

Expected<LoadedModel> Load(const std::string& library, double compile_seconds) {
  std::error_code ignored;
  const auto bytes = static_cast<int64_t>(fs::file_size(library, ignored));
  const double start = Now();
  TN_ASSIGN_OR_RETURN(Program program, Program::Load(library));
  return LoadedModel{std::move(program), compile_seconds, Now() - start, bytes};
}

// Through the cache; without it where there can be none, and anew where an entry is damaged.
Expected<LoadedModel> CompileAndLoad(driver::CompileOptions options, bool verbose) {
  TN_ASSIGN_OR_RETURN(const std::string key, CacheKey(options));
  Expected<std::string> directory = CacheDirectory();
  std::optional<TemporaryFolder> own;
  if (!directory) {
    PrintError("tenon: note: {}; compiling for this call alone\n", directory.errors()[0].message);
    TN_ASSIGN_OR_RETURN(TemporaryFolder made, TemporaryFolder::Make());
    own.emplace(std::move(made));
    directory = own->path();
  }
  options.output = *directory + "/" + EntryName(options.model, key);
  if (access(options.output.c_str(), F_OK) == 0) {
    Status whole = artifact::CheckFile(options.output, artifact::Checked::kAll);
    if (whole) return Load(options.output, 0);
    PrintError("tenon: note: {}; compiling it again\n",
               InFile(std::move(whole.errors()), options.output)[0].ToString());
    unlink(options.output.c_str());
  }
  TN_ASSIGN_OR_RETURN(const double seconds, CompileFor(options, verbose));
  return Load(options.output, seconds);
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
