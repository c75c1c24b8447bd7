#include "driver/cache.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "artifact/checksum.h"
#include "driver/check_options.h"
#include "driver/profile.h"
#include "driver/source.h"
#include "frontend/onnx/shape_text.h"
#include "support/atomic_file.h"
#include "support/file.h"

namespace tenon::driver {

namespace {

namespace fs = std::filesystem;

// What tells one build of the compiler from another, of the program or library that it is in: an
// entry of the cache serves only the one that made it.
void AddCompiler(Hasher* hasher) {
  Dl_info image = {};
  dladdr(reinterpret_cast<void*>(&CacheDirectory), &image);
  struct stat self = {};
  // The loader knows a program by how it was called.
  const bool found = image.dli_fname && stat(image.dli_fname, &self) == 0;
  if (!found) stat("/proc/self/exe", &self);
  hasher->Int(static_cast<uint64_t>(self.st_size));
  hasher->Int(static_cast<uint64_t>(self.st_mtim.tv_sec));
  hasher->Int(static_cast<uint64_t>(self.st_mtim.tv_nsec));
}

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
  AddCompiler(&hasher);
  hasher.Int(source.high).Int(source.low).Text(target.ToString()).Text(o.precision).Text(o.name);
  hasher.Int(static_cast<uint64_t>(o.opt_level)).Int(o.empty_sizes).Int(o.shapes.size());
  for (const auto& [name, dims] : o.shapes) {
    hasher.Text(name).Int(dims.size());
    for (const onnx::DimSpec& d : dims) hasher.Text(onnx::ToString(d));
  }
  o.overrides.AddTo(&hasher);
  for (const graph::Graph& part : program.parts) AddBodies(part, &hasher);
  for (const std::string& object : o.link) {
    TN_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(object));
    hasher.Text(file.text());
  }
  hasher.Int(o.any_machine);
  TN_ASSIGN_OR_RETURN(const PlannedFor planned_for, MachineFor(o, target));
  hasher.Text(planned_for.profile);
  for (const std::string& measured : {o.prices, o.log}) {
    if (measured.empty()) continue;
    TN_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(measured));
    hasher.Text(file.text());
  }
  return hasher.Finish().ToHex();
}

// The file's name in the cache: the model's, as far as it fits, and the key.
std::string EntryName(const std::string& model, const std::string& key) {
  constexpr size_t kMostOfStem = 200;
  return fs::path(model).stem().string().substr(0, kMostOfStem) + "-" + key + ".so";
}

}  // namespace

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

Expected<CachedLibrary> CompileCached(CompileOptions options, const std::string& directory,
                                      const std::function<void(Diagnostic)>& note) {
  const FileFacts facts(directory + "/facts");
  TN_ASSIGN_OR_RETURN(const std::string key, CacheKey(options, facts));
  options.output = directory + "/" + EntryName(options.model, key);
  if (access(options.output.c_str(), F_OK) == 0) {
    Expected<std::string> whole = facts.Of(options.output, "whole", [&]() -> Expected<std::string> {
      TN_RETURN_IF_ERROR(artifact::CheckFile(options.output, artifact::Checked::kAll));
      return std::string();
    });
    if (whole) return CachedLibrary{options.output};
    note(std::move(whole.errors()[0]));
    unlink(options.output.c_str());
  }
  const auto start = std::chrono::steady_clock::now();
  TN_RETURN_IF_ERROR(Compile(options));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return CachedLibrary{options.output, seconds.count()};
}

}  // namespace tenon::driver
