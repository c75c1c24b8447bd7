// lld as a function.
//
// lld is a program: it takes words and files, leaves a file, and speaks of the files. Here its
// input is in memory, its output is wanted there, and whatever it says is for a user who has never
// heard of them. So objects and scripts are memory files, named /proc/self/fd/N; the output is a
// pipe that a thread reads, which leaves nothing behind however the process ends; and in messages
// such paths are replaced by what they are. The layout is a script of our own, with the weights
// last, at addresses that nothing else has to be near, so that code reaches code and data whatever
// a network weighs:
//
//   .note.tenon .rodata .tn_info .eh_frame | .text | .data.rel.ro .fini_array .dynamic .got |
//   .data .bss | .tn_weights
//
// A relocatable object (for a program that is linked elsewhere) and WebAssembly take the same way
// with other words.

#include "artifact/link.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <thread>

#include "artifact/lld.h"
#include "artifact/memory_file.h"
#include "artifact/relocatable.h"
#include "artifact/symbols.h"
#include "support/check.h"
#include "support/file.h"
#include "support/strings.h"
#include "target/kinds.h"
#include "tenon/kernel_abi.h"

namespace tenon::artifact {
namespace {

namespace fs = std::filesystem;

// What lld writes, without a file: it maps a regular output file, and builds any other kind in
// memory and writes it at the end. A pipe leaves nothing behind, however the process ends.
class OutputPipe {
 public:
  static Expected<std::unique_ptr<OutputPipe>> Create() {
    auto result = std::make_unique<OutputPipe>();
    if (pipe2(result->ends_, O_CLOEXEC) != 0) {
      return MakeLimitError("cannot make a pipe: " + std::string(strerror(errno)));
    }
    result->reader_ = std::thread([out = result.get()] { out->ReadToEnd(); });
    return result;
  }
  ~OutputPipe() { Finish(); }

  std::string path() const { return fmt::format("/proc/self/fd/{}", ends_[1]); }
  /// All that was written, once nobody writes any more.
  std::string Finish() {
    if (!reader_.joinable()) return "";
    close(ends_[1]);
    reader_.join();
    close(ends_[0]);
    return std::move(content_);
  }

 private:
  void ReadToEnd() {
    constexpr size_t kPiece = size_t{64} << 10;
    for (size_t size = 0;;) {
      content_.resize(size + kPiece);
      const ssize_t n = read(ends_[0], content_.data() + size, kPiece);
      if (n > 0) size += static_cast<size_t>(n);
      content_.resize(size);
      if (n == 0 || (n < 0 && errno != EINTR)) return;
    }
  }

  int ends_[2];
  std::string content_;
  std::thread reader_;
};

// Where everything goes. Read-only data, code, data that is read-only after relocation, data, and
// last, at addresses that nothing else needs to be near, the weights. Sizes of pages are lld's for
// the architecture.
constexpr char kScript[] = R"(
PHDRS {{
  rodata PT_LOAD FILEHDR PHDRS FLAGS(4);
  text PT_LOAD FLAGS(5);
  data PT_LOAD FLAGS(6);{weights_header}
  dynamic PT_DYNAMIC FLAGS(6);
  tls PT_TLS FLAGS(4);
  relro PT_GNU_RELRO FLAGS(4);
  eh_frame PT_GNU_EH_FRAME FLAGS(4);
  stack PT_GNU_STACK FLAGS(6);
  note PT_NOTE FLAGS(4);
}}
SECTIONS {{
  . = SIZEOF_HEADERS;
  .note.tenon : {{ *(.note.tenon) }} :rodata :note
  .gnu.hash : {{ *(.gnu.hash) }} :rodata
  .dynsym : {{ *(.dynsym) }} :rodata
  .dynstr : {{ *(.dynstr) }} :rodata
  .gnu.version : {{ *(.gnu.version) }} :rodata
  .gnu.version_r : {{ *(.gnu.version_r) }} :rodata
  .rela.dyn : {{ *(.rela.dyn) }} :rodata
  .rela.plt : {{ *(.rela.plt) }} :rodata
  .rodata : {{ *(.rodata .rodata.* .srodata .srodata.*) {weights_facts} }} :rodata
  .tn_info : {{ *(.tn_info) }} :rodata
  .eh_frame_hdr : {{ *(.eh_frame_hdr) }} :rodata :eh_frame
  .eh_frame : {{ *(.eh_frame) }} :rodata
  . = ALIGN(CONSTANT(MAXPAGESIZE));
  .text : {{ *(.text .text.*) }} :text
  .plt : {{ *(.plt .plt.*) }} :text
  . = ALIGN(CONSTANT(MAXPAGESIZE));
  .tdata : {{ *(.tdata .tdata.*) }} :data :relro :tls
  .tbss : {{ *(.tbss .tbss.*) }} :data :relro :tls
  .data.rel.ro : {{ *(.data.rel.ro .data.rel.ro.*) }} :data :relro
  .fini_array : {{ *(.fini_array .fini_array.*) }} :data :relro
  .dynamic : {{ *(.dynamic) }} :data :relro :dynamic
  .got : {{ *(.got) }} :data :relro
  .got.plt : {{ *(.got.plt) }} :data :relro
  . = ALIGN(CONSTANT(MAXPAGESIZE));
  .data : {{ *(.data .data.* .sdata .sdata.*) }} :data
  .bss : {{ *(.bss .bss.* .sbss .sbss.*) *(COMMON) }} :data{weights}
  /DISCARD/ : {{ *(.comment) *(.note.GNU-stack) }}
}}
)";

std::string ArchOf(const std::string& triple) { return triple.substr(0, triple.find('-')); }

// Data commands that define what the core asks about the weights.
std::string WeightFacts(const LinkRequest& request) {
  std::string text =
      fmt::format(". = ALIGN(8); HIDDEN(tn_weights_size = .); QUAD({});", request.weights_bytes);
  if (request.params_name.empty()) return text;
  Hash128 id = ParamsId(request);
  text += fmt::format(" HIDDEN(tn_params_id = .); QUAD({}); QUAD({});", id.high, id.low);
  text += " HIDDEN(tn_params_name = .);";
  for (unsigned char byte : request.params_name) text += fmt::format(" BYTE({});", byte);
  return text + " BYTE(0);";
}

std::string LinkerScript(const LinkRequest& request) {
  if (request.weights_bytes == 0) {
    return fmt::format(kScript, fmt::arg("weights_header", ""), fmt::arg("weights_facts", ""),
                       fmt::arg("weights", ""));
  }
  std::string section = fmt::format(
      "\n  . = ALIGN({});\n"
      "  .tn_weights (NOLOAD) : {{ HIDDEN(tn_weights_base = .); . += {}; }} :weights",
      WeightAlignment(request.weights_bytes, PageBytes(ArchOf(request.triple))),
      request.weights_bytes);
  return fmt::format(kScript, fmt::arg("weights_header", "\n  weights PT_LOAD FLAGS(4);"),
                     fmt::arg("weights_facts", WeightFacts(request)), fmt::arg("weights", section));
}

std::string VersionScript(const std::vector<std::string>& exports) {
  std::string script = "{";
  if (!exports.empty()) script += " global: " + Join(exports, "; ") + ";";
  return script + " local: *; };\n";
}

std::vector<std::string> CandidateDirectories() {
  std::vector<std::string> roots;
  if (const char* chosen = getenv("TENON_LIBRARY_DIR")) roots.emplace_back(chosen);
  Dl_info info;  // of the program or library that this code is in
  std::error_code error;
  if (dladdr(reinterpret_cast<void*>(&LinkSharedLibrary), &info) && info.dli_fname) {
    fs::path self = fs::canonical(info.dli_fname, error);
    if (error) self = fs::canonical("/proc/self/exe", error);
    const fs::path folder = self.parent_path();
    // The second is a system's.
    for (const fs::path& path : {folder / "../lib/tenon", folder / ("../" TENON_LIBDIR "/tenon"),
                                 folder / "tenon", fs::path(TENON_BUILD_LIBRARY_DIR)}) {
      std::string root = path.lexically_normal();
      if (std::find(roots.begin(), roots.end(), root) == roots.end()) roots.push_back(root);
    }
    return roots;
  }
  roots.emplace_back(TENON_BUILD_LIBRARY_DIR);
  return roots;
}

// lld's name for an architecture; null where we make nothing for it.
const char* EmulationOf(const std::string& arch) {
  if (arch == "aarch64") return "aarch64linux";
  if (arch == "riscv64") return "elf64lriscv";
  return arch == "x86_64" ? "elf_x86_64" : nullptr;
}

// "linux-gnu" of "aarch64-unknown-linux-gnu" and "aarch64-linux-gnu".
std::string SystemOf(const std::string& triple) {
  const size_t linux = triple.find("-linux");
  if (linux == std::string::npos)
    return triple.substr(std::min(triple.find('-'), triple.size() - 1) + 1);
  const std::string system = triple.substr(linux + 1);
  return system == "linux" ? "linux-gnu" : system;
}

// Replaces the paths of memory files in lld's messages by what they are.
std::string NameInputs(std::string text,
                       const std::vector<std::pair<std::string, std::string>>& names) {
  // Longest first is not needed: a path is followed by a colon or a parenthesis, which keeps /fd/1
  // out of /fd/12.
  for (const auto& [path, name] : names) {
    for (char after : {':', ')', '\n', ' '}) {
      std::string from = path + after;
      for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1)) {
        text.replace(at, path.size(), name);
      }
    }
  }
  return text;
}

}  // namespace

Hash128 ParamsId(const LinkRequest& request) {
  Hasher hasher;
  for (const ObjectFile& object : request.objects) hasher.Text(object.image);
  for (const std::string& symbol : request.exports) hasher.Text(symbol);
  return hasher.Text(request.triple).Int(request.weights_bytes).Finish();
}

Status CheckLinkable(const std::string& triple) {
  if (IsContained(triple)) return Ok();
  if (EmulationOf(ArchOf(triple)) && SystemOf(triple).starts_with("linux-")) return Ok();
  // Who names an architecture alone means Linux on it.
  const ArchRow* row = triple.find('-') == std::string::npos ? ArchOfTriple(triple) : nullptr;
  return MakeError(
      fmt::format("libraries and objects are made for Linux on x86-64, aarch64 and riscv64, and "
                  "for wasm32, not for '{}'{}; --emit asm shows the code",
                  triple, row ? fmt::format(" (did you mean '{}'?)", row->triple) : ""));
}

Expected<std::string> LibraryDirectory(const std::string& triple) {
  TN_RETURN_IF_ERROR(CheckLinkable(triple));
  std::string folder = ArchOf(triple) + "-" + SystemOf(triple);
  std::vector<std::string> roots = CandidateDirectories();
  for (const std::string& root : roots) {
    std::error_code error;
    fs::path path = fs::path(root) / folder;
    if (fs::exists(path / "libtenon_core.a", error)) return path.string();
  }
  Diagnostic error = MakeError(fmt::format("there is no runtime core for the target '{}'", triple));
  for (const std::string& root : roots)
    error.notes.push_back(fmt::format("looked for {}/{}/libtenon_core.a", root, folder));
  error.notes.push_back(fmt::format(
      "a build of Tenon makes it where libc's headers for {} are installed (on Debian for aarch64 "
      "and riscv64: libc6-dev-arm64-cross, libc6-dev-riscv64-cross); one that was made elsewhere "
      "goes into a folder that TENON_LIBRARY_DIR names; objects need none",
      folder));
  return error;
}

namespace {

// Runs lld with the options given, the request's objects, and the libraries after them; the image.
Expected<std::string> Link(const LinkRequest& request, std::vector<std::string> arguments,
                           const std::vector<std::string>& libraries) {
  TN_RETURN_IF_ERROR(CheckLinkable(request.triple));
  TN_ASSIGN_OR_RETURN(std::unique_ptr<OutputPipe> output, OutputPipe::Create());
  const bool wasm = IsContained(request.triple);
  if (!wasm) arguments.insert(arguments.end(), {"-m", EmulationOf(ArchOf(request.triple))});
  arguments.insert(arguments.end(), {"--threads=1", "-o", output->path()});
  std::vector<MemoryFile> inputs;
  std::vector<std::pair<std::string, std::string>> names;
  for (const ObjectFile& object : request.objects) {
    TN_ASSIGN_OR_RETURN(MemoryFile input, MemoryFile::Create(object.name, object.image));
    arguments.push_back(input.path());
    names.emplace_back(input.path(), object.name);
    inputs.push_back(std::move(input));
  }
  arguments.insert(arguments.end(), libraries.begin(), libraries.end());
  Status status = RunLld(wasm ? "wasm-ld" : "ld.lld", arguments);
  if (status) return output->Finish();
  for (Diagnostic& error : status.errors()) error.message = NameInputs(error.message, names);
  return std::move(status.errors());
}

// A read-only section for the weights and one for their size. Merging into an object keeps sections
// apart by name, so the rest needs no script.
constexpr char kRelocatableScript[] = R"(
SECTIONS {{
  .rodata.tn_weights_size : {{ HIDDEN(tn_weights_size = .); QUAD({bytes}) }}
  .tn_weights (NOLOAD) : {{ HIDDEN(tn_weights_base = .); . += {bytes}; }}
}}
)";

// The stack lies below everything, so that what grows beyond it traps. Functions that nobody
// defines are the host's to give.
Expected<std::string> LinkWasmModule(const LinkRequest& request) {
  TN_ASSIGN_OR_RETURN(std::string folder, LibraryDirectory(request.triple));
  std::vector<std::string> arguments = {"--no-entry",        "--import-undefined", "--gc-sections",
                                        "--strip-all",       "--stack-first",      "-z",
                                        "stack-size=1048576"};
  std::vector<std::string> exports = request.exports, libraries;
  if (request.core) {
    exports.insert(exports.end(),
                   {TN_QUERY_SYMBOL, "tn_alloc", "tn_free", "tn_release", "tn_last_error"});
    libraries.push_back(folder + "/libtenon_core.a");
  }
  for (const std::string& symbol : exports) arguments.push_back("--export=" + symbol);
  return Link(request, arguments, libraries);
}

}  // namespace

Expected<std::string> LinkSharedLibrary(const LinkRequest& request) {
  if (IsContained(request.triple)) return LinkWasmModule(request);
  TN_ASSIGN_OR_RETURN(std::string folder, LibraryDirectory(request.triple));
  std::vector<std::string> exports = request.exports;
  if (request.core) exports.push_back(TN_QUERY_SYMBOL);
  TN_ASSIGN_OR_RETURN(MemoryFile script, MemoryFile::Create("script", LinkerScript(request)));
  TN_ASSIGN_OR_RETURN(MemoryFile versions, MemoryFile::Create("versions", VersionScript(exports)));
  std::vector<std::string> arguments = {
      "-shared",
      "--hash-style=gnu",
      "--build-id=none",
      "--eh-frame-hdr",
      request.open ? "--unresolved-symbols=ignore-all" : "--no-undefined",
      "--gc-sections",
      "-z",
      "now",
      "--script",
      script.path(),
      "--version-script",
      versions.path()};
  std::vector<std::string> libraries;
  if (request.nodelete) arguments.insert(arguments.end(), {"-z", "nodelete"});
  if (!request.soname.empty()) arguments.insert(arguments.end(), {"-soname", request.soname});
  if (request.core) {
    arguments.push_back("--undefined=" TN_QUERY_SYMBOL);
    libraries.push_back(folder + "/libtenon_core.a");
  }
  libraries.push_back(folder + "/libc_stub.so");
  return Link(request, arguments, libraries);
}

Expected<std::string> LinkRelocatable(const LinkRequest& request) {
  // Other programs for WebAssembly have a libc, where the core brings parts of one: it stays apart.
  if (IsContained(request.triple)) return Link(request, {"-r"}, {});
  constexpr uint64_t kMostWeights = uint64_t{1} << 30;
  if (request.weights_bytes > kMostWeights) {
    return MakeError(fmt::format(
        "an object can hold {} bytes of weights but the model has {}; compile a shared library",
        kMostWeights, request.weights_bytes));
  }
  const Expected<std::string> folder = LibraryDirectory(request.triple);
  std::string text;
  if (request.weights_bytes > 0) {
    text = fmt::format(kRelocatableScript, fmt::arg("bytes", request.weights_bytes));
  }
  TN_ASSIGN_OR_RETURN(MemoryFile script, MemoryFile::Create("script", text));
  std::vector<std::string> arguments = {"-r"};
  if (request.weights_bytes > 0) arguments.insert(arguments.end(), {"--script", script.path()});
  std::vector<std::string> libraries;
  if (request.core && folder) libraries.push_back(*folder + "/libtenon_core.a");
  // Nothing need refer to it: an object may hold data alone.
  const auto& shown = request.exports;
  if (folder && std::find(shown.begin(), shown.end(), TN_QUERY_SYMBOL) != shown.end()) {
    arguments.push_back("--undefined=" TN_QUERY_SYMBOL);
  }
  TN_ASSIGN_OR_RETURN(std::string image, Link(request, arguments, libraries));
  ShowOnly(request.exports, request.visible, &image);
  WeakenSymbols(request.weak, &image);
  return image;
}

Expected<std::string> LinkImage(const LinkRequest& request) {
  switch (request.kind) {
    case OutputKind::kSharedLibrary: return LinkSharedLibrary(request);
    case OutputKind::kRelocatable: return LinkRelocatable(request);
  }
  TN_UNREACHABLE();
}

}  // namespace tenon::artifact
