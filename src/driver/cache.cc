#include "driver/cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <tuple>

#include "artifact/checksum.h"
#include "driver/check_options.h"
#include "driver/profile.h"
#include "driver/source.h"
#include "frontend/onnx/shape_text.h"
#include "support/atomic_file.h"
#include "support/file.h"
#include "support/file_cache.h"

namespace tenon::driver {

namespace {

namespace fs = std::filesystem;

// What users' functions compute, which no file says.
void AddBodies(const graph::Graph& g, Hasher* hasher) {
  for (const graph::Node& n : g.nodes) {
    if (n.op == graph::OpKind::kCall) hasher->Text(n.attrs.GetString("body"));
    for (const auto& region : n.regions) AddBodies(*region, hasher);
  }
}

Expected<std::string> CacheKey(const CompileOptions& o, const FileFacts& facts) {
  TN_ASSIGN_OR_RETURN(Target target, CheckOptions(o));
  TN_ASSIGN_OR_RETURN(graph::Program program, ImportModel(o));
  TN_ASSIGN_OR_RETURN(SourceHash source_hash, SourceHash::Of(o, program.parts, false, facts));
  const Hash128 source = source_hash.Get();
  Hasher hasher;
  AddImageOf(reinterpret_cast<void*>(&CacheDirectory), &hasher);
  hasher.Int(source.high).Int(source.low).Text(target.ToString()).Text(o.precision).Text(o.name);
  hasher.Int(static_cast<uint64_t>(o.opt_level)).Int(o.empty_sizes).Int(o.shapes.size());
  for (const auto& [name, dims] : o.shapes) {
    hasher.Text(name).Int(dims.size());
    for (const onnx::DimSpec& d : dims) hasher.Text(onnx::SizeText(d));
  }
  o.overrides.AddTo(&hasher);
  for (const graph::Graph& part : program.parts) AddBodies(part, &hasher);
  for (const std::string& object : o.link) {
    TN_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(object));
    hasher.Text(file.text());
  }
  hasher.Int(o.any_machine).Int(o.time_kernels).Int(o.shape_weights.size());
  for (const plan::ShapeWeight& s : o.shape_weights) {
    hasher.Text(fmt::format("{}", s.weight)).Int(s.sizes.size());
    for (const auto& [name, size] : s.sizes) hasher.Text(name).Int(static_cast<uint64_t>(size));
  }
  TN_ASSIGN_OR_RETURN(const PlannedFor planned_for, MachineFor(o, target));
  hasher.Text(planned_for.profile);
  for (const std::string& measured : {o.prices, o.log}) {
    if (measured.empty()) continue;
    TN_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(measured));
    hasher.Text(file.text());
  }
  return hasher.Finish().ToHex();
}

constexpr size_t kHexDigits = 32;  // of a key

// An empty file beside an entry, which changed last when that was asked for last. (The entry's own
// times tell what is known of it, facts.)
std::string UseFile(const std::string& entry) { return entry + ".used"; }

void MarkUsed(const std::string& entry) {
  const int fd = open(UseFile(entry).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return;
  futimens(fd, nullptr);
  close(fd);
}

int64_t SecondsOf(const std::string& path) {
  struct stat s = {};
  return stat(path.c_str(), &s) == 0 ? static_cast<int64_t>(s.st_mtim.tv_sec) : 0;
}

// MODEL-HASH.so
bool IsEntry(const fs::path& path) {
  const std::string stem = path.stem().string();
  if (path.extension() != ".so" || stem.size() < kHexDigits + 1) return false;
  const std::string key = stem.substr(stem.size() - kHexDigits);
  return stem[stem.size() - kHexDigits - 1] == '-' &&
         key.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Libraries that have not been used for longest go until all fit, but for the newest; facts that
// are old are found again where they are wanted.
void Trim(const std::string& directory, const std::string& newest, int64_t limit) {
  std::vector<CacheEntry> entries = CacheEntries(directory);
  int64_t bytes = 0;
  for (const CacheEntry& e : entries) bytes += e.bytes;
  for (const CacheEntry& e : entries) {
    if (limit == 0 || bytes <= limit) break;
    if (e.path == newest) continue;
    RemoveEntry(e);
    bytes -= e.bytes;
  }
  constexpr int64_t kOld = int64_t{90} * 24 * 3600;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  for (const fs::path& fact : PathsIn(directory + "/facts")) {
    if (seconds - SecondsOf(fact.string()) > kOld) unlink(fact.c_str());
  }
}

// The file's name in the cache: the model's, as far as it fits, and the key.
std::string EntryName(const std::string& model, const std::string& key) {
  constexpr size_t kMostOfStem = 200;
  return fs::path(model).stem().string().substr(0, kMostOfStem) + "-" + key + ".so";
}

}  // namespace

Expected<int64_t> CacheLimit() {
  constexpr int64_t kDefault = int64_t{10} << 30;
  const char* text = std::getenv("TENON_CACHE_SIZE");
  if (!text || !*text) return kDefault;
  const char* end = text + std::string_view(text).size();
  double number = 0;
  const auto [rest, fault] = std::from_chars(text, end, number);
  constexpr std::string_view kUnits = "kmgt";
  const size_t unit =
      rest + 1 == end ? kUnits.find(static_cast<char>(*rest | 0x20)) : std::string::npos;
  const bool fits = fault == std::errc() && number >= 0 && std::isfinite(number);
  if (!fits || (rest != end && unit == std::string::npos))
    return MakeError(fmt::format(
        "TENON_CACHE_SIZE is '{}'; expected a size such as 500M or 4G, or 0 for any size", text));
  if (rest != end) number = std::ldexp(number, 10 * (static_cast<int>(unit) + 1));
  return static_cast<int64_t>(std::min(number, 0x1p62));
}

std::vector<CacheEntry> CacheEntries(const std::string& directory) {
  std::vector<CacheEntry> entries;
  for (const fs::path& path : PathsIn(directory)) {
    struct stat s = {};
    if (!IsEntry(path) || stat(path.c_str(), &s) != 0) continue;
    const auto made = static_cast<int64_t>(s.st_mtim.tv_sec);
    entries.push_back(
        {path.string(), s.st_size, std::max(made, SecondsOf(UseFile(path.string())))});
  }
  std::sort(entries.begin(), entries.end(), [](const CacheEntry& a, const CacheEntry& b) {
    return std::tie(a.used, a.path) < std::tie(b.used, b.path);
  });
  return entries;
}

void RemoveEntry(const CacheEntry& entry) {
  unlink(entry.path.c_str());
  unlink(UseFile(entry.path).c_str());
}

void ClearCache(const std::string& directory) {
  for (const CacheEntry& e : CacheEntries(directory)) RemoveEntry(e);
  for (const fs::path& fact : PathsIn(directory + "/facts")) unlink(fact.c_str());
  KernelsIn(directory)->Clear();
}

std::shared_ptr<const FileCache> KernelsIn(const std::string& directory) {
  const Expected<int64_t> limit = CacheLimit();
  return std::make_shared<const FileCache>(directory + "/kernels", limit ? *limit / 10 : 0);
}

std::string CacheDirectoryIfAny(const std::function<void(const std::string& warning)>& warn) {
  if (const Expected<int64_t> limit = CacheLimit(); !limit) {
    if (warn) warn(limit.errors()[0].message + "; kernels are not kept");
    return "";
  }
  const Expected<std::string> directory = CacheDirectory();
  return directory ? *directory : "";
}

bool IsFull(const Diagnostics& errors, const std::string& directory) {
  return std::any_of(errors.begin(), errors.end(), [&](const Diagnostic& d) {
    return d.kind == ErrorKind::kLimit && (d.loc.file.starts_with(directory + "/") ||
                                           d.message.find(directory + "/") != std::string::npos);
  });
}

Expected<std::string> CacheDirectory() {
  TN_RETURN_IF_ERROR(CacheLimit());
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

Expected<CachedLibrary> CompileCached(CompileOptions options, const std::string& directory,
                                      const std::function<void(Diagnostic)>& note) {
  const FileFacts facts(directory + "/facts");
  TN_ASSIGN_OR_RETURN(const std::string key, CacheKey(options, facts));
  options.cache = directory;
  options.output = directory + "/" + EntryName(options.model, key);
  if (access(options.output.c_str(), F_OK) == 0) {
    Expected<std::string> whole = facts.Of(options.output, "whole", [&]() -> Expected<std::string> {
      TN_RETURN_IF_ERROR(artifact::CheckFile(options.output, artifact::Checked::kAll));
      return std::string();
    });
    if (whole) {
      MarkUsed(options.output);
      return CachedLibrary{options.output};
    }
    note(std::move(whole.errors()[0]));
    unlink(options.output.c_str());
  }
  const auto start = std::chrono::steady_clock::now();
  TN_RETURN_IF_ERROR(Compile(options));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (const Expected<int64_t> limit = CacheLimit(); limit) Trim(directory, options.output, *limit);
  return CachedLibrary{options.output, seconds.count()};
}

}  // namespace tenon::driver
