// NVRTC is asked for where it is wanted: no build depends on CUDA, and no machine needs a toolkit.
//
// It is looked for once per process: where TENON_NVRTC says, else among the libraries that the
// system knows, in the toolkit's folder, and in the packages of Python environments. A source is
// compiled twice where both are wanted: for "sm_90" to machine code, which runs at once, and for
// "compute_90" to PTX, which the driver of a later GPU compiles itself:
//
//   kernels.cu + sm_80     →   cubin for sm_80, PTX for compute_80
//   kernels.cu + sm_90a    →   cubin alone: no other architecture runs code with its own features

#include "codegen/cuda/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "support/strings.h"

namespace tenon::codegen {

namespace {

namespace fs = std::filesystem;

constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

using Program = void*;
using Result = int;  // 0: done

/// The part of NVRTC's interface that is used, as its documentation gives it.
struct Nvrtc {
  NvrtcInfo info;
  const char* (*error_string)(Result) = nullptr;
  Result (*version)(int* major, int* minor) = nullptr;
  Result (*num_archs)(int* count) = nullptr;
  Result (*archs)(int* list) = nullptr;
  Result (*create)(Program*, const char* source, const char* name, int headers,
                   const char* const* texts, const char* const* names) = nullptr;
  Result (*destroy)(Program*) = nullptr;
  Result (*compile)(Program, int count, const char* const* options) = nullptr;
  Result (*log_size)(Program, size_t*) = nullptr;
  Result (*log)(Program, char*) = nullptr;
  Result (*ptx_size)(Program, size_t*) = nullptr;
  Result (*ptx)(Program, char*) = nullptr;
  Result (*cubin_size)(Program, size_t*) = nullptr;
  Result (*cubin)(Program, char*) = nullptr;
};

// ---- finding it ----

void AddPackages(const fs::path& site, std::vector<std::string>* out) {
  for (const char* package : {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"}) {
    for (const char* name : kNames) out->push_back((site / package / name).string());
  }
}

// The site-packages of an environment: lib/python3.x/site-packages.
void AddEnvironment(const char* root, std::vector<std::string>* out) {
  if (!root) return;
  std::error_code ignored;
  std::vector<fs::path> pythons;
  for (fs::directory_iterator it(fs::path(root) / "lib", ignored), end; it != end;
       it.increment(ignored)) {
    if (it->path().filename().string().starts_with("python3")) pythons.push_back(it->path());
  }
  std::sort(pythons.begin(), pythons.end());
  for (const fs::path& python : pythons) AddPackages(python / "site-packages", out);
}

// The environments whose python3 a shell would find, first one first.
void AddPath(const char* path, std::vector<std::string>* out) {
  for (const std::string& folder : Split(path ? path : "", ':')) {
    std::error_code ignored;
    const fs::path bin = folder;
    if (bin.is_absolute() && fs::exists(bin / "python3", ignored)) {
      AddEnvironment(bin.parent_path().c_str(), out);
    }
  }
}

std::vector<std::string> Candidates() {
  std::vector<std::string> out;
  if (const char* given = std::getenv("TENON_NVRTC"); given && *given) {
    std::error_code ignored;
    if (!fs::is_directory(given, ignored)) return {given};
    for (const char* name : kNames) out.push_back((fs::path(given) / name).string());
    return out;
  }
  for (const char* folder : {"", "/usr/local/cuda/lib64/"}) {
    for (const char* name : kNames) out.push_back(std::string(folder) + name);
  }
  AddEnvironment(std::getenv("VIRTUAL_ENV"), &out);
  AddEnvironment(std::getenv("CONDA_PREFIX"), &out);
  AddPath(std::getenv("PATH"), &out);
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&Candidates), &self) && self.dli_fname) {
    for (fs::path at = self.dli_fname; at.has_relative_path(); at = at.parent_path()) {
      if (at.filename() == "site-packages") AddPackages(at, &out);
    }
  }
  return out;
}

template <class F>
bool Bind(void* library, const char* symbol, F* function) {
  *function = reinterpret_cast<F>(dlsym(library, symbol));
  return *function != nullptr;
}

bool BindAll(void* library, Nvrtc* n) {
  return Bind(library, "nvrtcGetErrorString", &n->error_string) &&
         Bind(library, "nvrtcVersion", &n->version) &&
         Bind(library, "nvrtcGetNumSupportedArchs", &n->num_archs) &&
         Bind(library, "nvrtcGetSupportedArchs", &n->archs) &&
         Bind(library, "nvrtcCreateProgram", &n->create) &&
         Bind(library, "nvrtcDestroyProgram", &n->destroy) &&
         Bind(library, "nvrtcCompileProgram", &n->compile) &&
         Bind(library, "nvrtcGetProgramLogSize", &n->log_size) &&
         Bind(library, "nvrtcGetProgramLog", &n->log) &&
         Bind(library, "nvrtcGetPTXSize", &n->ptx_size) && Bind(library, "nvrtcGetPTX", &n->ptx) &&
         Bind(library, "nvrtcGetCUBINSize", &n->cubin_size) &&
         Bind(library, "nvrtcGetCUBIN", &n->cubin);
}

Expected<Nvrtc> Load() {
  std::vector<std::string> tried;
  for (const std::string& path : Candidates()) {
    tried.push_back(path);
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) continue;
    Nvrtc n;
    int count = 0;
    const bool usable = BindAll(library, &n) && n.version(&n.info.major, &n.info.minor) == 0 &&
                        n.num_archs(&count) == 0 && count > 0;
    if (!usable) {
      dlclose(library);
      continue;
    }
    n.info.archs.resize(static_cast<size_t>(count));
    if (n.archs(n.info.archs.data()) != 0) n.info.archs.clear();
    n.info.path = path;
    return n;
  }
  Diagnostic error = MakeError(
      "making CUDA code needs NVRTC of CUDA 12 or 13, but it was not found; install CUDA's toolkit "
      "or the Python package nvidia-cuda-nvrtc, or name the library in TENON_NVRTC");
  error.notes.push_back("looked for " + Join(tried, ", "));
  return error;
}

// The first caller looks; the answer holds for the process. The library is never unloaded.
const Expected<Nvrtc>& TheNvrtc() {
  static const Expected<Nvrtc> nvrtc = Load();
  return nvrtc;
}

// ---- architectures ----

/// The versions of CUDA that compile for an architecture, where not all of 12 and 13 do.
std::string VersionFor(int arch) {
  if (arch < 50) return "CUDA 11 or older";
  if (arch < 75) return "CUDA 12";
  if (arch >= 100) return "CUDA 12.8 or newer";
  return arch >= 89 ? "CUDA 11.8 or newer" : "CUDA 11 or newer";
}

/// "90a" of "sm_90a", where this NVRTC makes it.
Expected<std::string> ArchOf(const std::string& arch, const NvrtcInfo& info) {
  int number = 0;
  const char* end = arch.data() + arch.size();
  const char* rest = nullptr;
  if (arch.starts_with("sm_")) rest = std::from_chars(arch.data() + 3, end, number).ptr;
  const std::string suffix = rest ? std::string(rest, end) : "?";
  if (number == 0 || (!suffix.empty() && suffix != "a" && suffix != "f"))
    return MakeError("expected a CUDA architecture such as sm_80 but got '" + arch + "'");
  if (std::find(info.archs.begin(), info.archs.end(), number) == info.archs.end()) {
    std::vector<std::string> known;
    for (int a : info.archs) known.push_back(fmt::format("sm_{}", a));
    return MakeError(fmt::format("{} needs NVRTC of {}, but {} is version {}.{}, which makes {}",
                                 arch, VersionFor(number), info.path, info.major, info.minor,
                                 Join(known, ", ")));
  }
  return arch.substr(3);
}

// ---- compiling ----

// "file(12): error: what" and the lines that belong to it.
Diagnostics ReadLog(const std::string& log, const std::string& file) {
  Diagnostics out;
  for (const std::string& line : Split(log, '\n')) {
    int number = 0;
    const char* end = line.data() + line.size();
    const bool placed = line.starts_with(file + "(");
    const char* rest = line.data();
    if (placed) rest = std::from_chars(line.data() + file.size() + 1, end, number).ptr;
    std::string text(rest, end);
    const size_t error = text.find("error: "), error_id = text.find("error #");
    const bool is_error = error != std::string::npos || error_id != std::string::npos;
    if (is_error) {
      SourceLoc loc;
      loc.file = file;
      loc.line = number;
      const size_t colon = text.find(": ", error != std::string::npos ? error : error_id);
      out.push_back(MakeError(text.substr(colon + 2), std::move(loc)));
    } else if (!out.empty() && !placed && !Trim(text).empty()) {
      out.back().notes.push_back(text);
    }
  }
  if (out.empty()) out.push_back(MakeError("NVRTC refused " + file + ": " + log));
  return out;
}

std::string ReadText(Result (*size)(Program, size_t*), Result (*read)(Program, char*), Program p) {
  size_t bytes = 0;
  if (size(p, &bytes) != 0) return "";
  std::string out(bytes, '\0');
  if (bytes == 0 || read(p, out.data()) != 0) return "";
  return out;
}

// What NVRTC's optimizer is told. From 12.4 to 13.5, at least, it makes dot products of halves
// (dp2a) of sums like `c - 72 * a - 24 * b` of small unsigned numbers, and widens what may be
// negative there as if it were not: an index that is 2^32 too large. Nothing that is documented
// says so.
constexpr const char* kNoDotProducts[] = {"-Xnvvm", "-Xopt", "-Xnvvm", "-enable-dot=0"};

// What NVRTC is told of an architecture's number, "90a": for "sm" or "compute".
std::vector<std::string> OptionsFor(const char* kind, const std::string& number) {
  std::vector<std::string> out = {fmt::format("--gpu-architecture={}_{}", kind, number),
                                  "--std=c++17", "--fmad=false", "--disable-warnings",
                                  "--ptxas-options=-v"};
  out.insert(out.end(), std::begin(kNoDotProducts), std::end(kNoDotProducts));
  return out;
}

// One compilation for "sm" (machine code, and the PTX it came from) or "compute" (PTX alone) of an
// architecture; what is not wanted is null.
Status Compile(const std::string& source, const std::string& file, const std::string& arch,
               const char* kind, std::string* ptx, std::string* cubin, std::string* log) {
  const Expected<Nvrtc>& nvrtc = TheNvrtc();
  if (!nvrtc) return nvrtc.errors();
  TN_ASSIGN_OR_RETURN(const std::string number, ArchOf(arch, nvrtc->info));
  const std::vector<std::string> texts = OptionsFor(kind, number);
  std::vector<const char*> options;
  for (const std::string& text : texts) options.push_back(text.c_str());
  Program program = nullptr;
  Result result = nvrtc->create(&program, source.c_str(), file.c_str(), 0, nullptr, nullptr);
  if (result != 0)
    return MakeError(fmt::format("NVRTC failed on {}: {}", file, nvrtc->error_string(result)));
  auto destroy = [&](void*) { nvrtc->destroy(&program); };
  std::unique_ptr<void, decltype(destroy)> owner(program, destroy);
  auto compile = [&](size_t count) {
    result = nvrtc->compile(program, static_cast<int>(count), options.data());
    *log = ReadText(nvrtc->log_size, nvrtc->log, program);
    while (!log->empty() && log->back() == '\0') log->pop_back();
  };
  compile(options.size());
  // By its words alone: an option that it does not know may go with success, and without code.
  const bool refused = log->find(kNoDotProducts[3]) != std::string::npos;
  if (refused) compile(options.size() - std::size(kNoDotProducts));
  if (result != 0) return ReadLog(log->empty() ? nvrtc->error_string(result) : *log, file);
  if (ptx) *ptx = ReadText(nvrtc->ptx_size, nvrtc->ptx, program);
  if (cubin) *cubin = ReadText(nvrtc->cubin_size, nvrtc->cubin, program);
  if ((ptx && ptx->empty()) || (cubin && cubin->empty()))
    return MakeError("NVRTC made nothing of " + file);
  if (refused && ReadText(nvrtc->ptx_size, nvrtc->ptx, program).find("dp2a.") != std::string::npos)
    return MakeError(
        fmt::format("this NVRTC refuses {}, and makes dot products of {} that may be wrong",
                    kNoDotProducts[3], file));
  if (ptx) ptx->pop_back();  // the terminating zero
  return Ok();
}

}  // namespace

Expected<NvrtcInfo> FindNvrtc() {
  const Expected<Nvrtc>& nvrtc = TheNvrtc();
  if (!nvrtc) return nvrtc.errors();
  return nvrtc->info;
}

Status CanCompileFor(const std::string& arch) {
  const Expected<Nvrtc>& nvrtc = TheNvrtc();
  if (!nvrtc) return nvrtc.errors();
  if (auto number = ArchOf(arch, nvrtc->info); !number) return number.errors();
  return Ok();
}

Expected<std::string> CompileCuda(const std::string& source, const std::string& file,
                                  const std::string& arch, CudaFormat format) {
  const bool is_ptx = format == CudaFormat::kPtx;
  CudaCode code;
  TN_RETURN_IF_ERROR(Compile(source, file, arch, is_ptx ? "compute" : "sm",
                             is_ptx ? &code.ptx : nullptr, is_ptx ? nullptr : &code.cubin,
                             &code.log));
  return is_ptx ? code.ptx : code.cubin;
}

Expected<CudaCode> CompileCudaBoth(const std::string& source, const std::string& file,
                                   const std::string& arch, const FileCache* cache) {
  const Expected<Nvrtc>& nvrtc = TheNvrtc();
  if (!nvrtc) return nvrtc.errors();
  TN_ASSIGN_OR_RETURN(const std::string number, ArchOf(arch, nvrtc->info));
  Hasher key;
  key.Text("NVRTC");
  AddImageOf(reinterpret_cast<void*>(nvrtc->compile), &key);
  for (const std::string& option : OptionsFor("sm", number)) key.Text(option);
  key.Text(file).Text(source);
  if (auto kept = cache ? cache->Find(key.Finish()) : std::nullopt; kept && kept->size() == 3)
    return CudaCode{std::move((*kept)[0]), std::move((*kept)[1]), std::move((*kept)[2])};
  CudaCode code;
  TN_RETURN_IF_ERROR(Compile(source, file, arch, "sm", &code.ptx, &code.cubin, &code.log));
  if (cache) cache->Keep(key.Finish(), {{code.ptx, code.cubin, code.log}});
  return code;
}

}  // namespace tenon::codegen
