// From objects to a shared library's image.
//
// The image holds code and small data. Weights are not linked: the image only reserves their
// addresses, as a segment of its own after everything else, and names its start tn_weights_base;
// LibraryWriter (library_writer.h) puts the bytes into the file behind the image. So no weight is
// ever copied through the linker, and their size costs nothing here. Modules of WebAssembly are the
// exception: they have no segments, and their weights are data of an object.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/expected.h"
#include "support/hash.h"

namespace tenon::artifact {

struct ObjectFile {
  std::string name;        // for messages
  std::string_view image;  // an ELF relocatable object that we made; borrowed
};

enum class OutputKind { kSharedLibrary, kRelocatable };

struct LinkRequest {
  OutputKind kind = OutputKind::kSharedLibrary;
  std::vector<ObjectFile> objects;
  std::vector<std::string> exports;  // the symbols that the library shows; all others become local
  bool visible = true;  // of an object: whether its exports can be seen outside of the program or
                        // library that it is linked into
  std::vector<std::string> weak;  // exports of an object that give way: where several define one,
                                  // the first counts
  std::string triple;             // of the objects; chooses the core archive and the libc stub
  bool core = true;               // link the runtime core in and export the query symbol
  bool nodelete = false;          // dlclose never unmaps it
  bool open = false;   // C functions that nobody defines are those of the process that loads it
  std::string soname;  // the name that programs linked with the library ask for; "": none
  uint64_t weights_bytes = 0;  // 0: no weight segment
  std::string params_name;     // the file beside the library that holds the weights; "": it
                               // holds them itself
};

/// The largest pages that systems of an architecture (the first part of a triple) come with.
constexpr uint64_t PageBytes(std::string_view arch) {
  return arch == "aarch64" ? uint64_t{64} << 10 : uint64_t{4} << 10;
}

/// The alignment of a weight segment, in the file and in memory.
constexpr uint64_t WeightAlignment(uint64_t weights_bytes, uint64_t page_bytes) {
  return weights_bytes < (uint64_t{8} << 20) ? page_bytes : uint64_t{2} << 20;
}

/// LinkSharedLibrary or LinkRelocatable (relocatable.h), by the request's kind.
Expected<std::string> LinkImage(const LinkRequest& request);

/// Whether objects for a triple can be linked: for Linux on an architecture that we know, or
/// WebAssembly.
Status CheckLinkable(const std::string& triple);

/// Links the objects with lld. For an architecture whose libraries are contained (target/kinds.h,
/// WebAssembly) it makes a module that exports its memory, request.exports, the query symbol and
/// what callers outside need (src/runtime/wasm/core.cc), and imports what nobody defines;
/// weights_bytes and params_name do not apply. Of others, the library needs libc alone, has no
/// undefined symbols but those of the libc stub unless it is open, and the same request gives the
/// same bytes. With weights, their section and segment are there without contents.
Expected<std::string> LinkSharedLibrary(const LinkRequest& request);

/// What ties a library to its file of weights: a hash of the request.
Hash128 ParamsId(const LinkRequest& request);

/// The folder of the archives for a triple (libtenon_core.a, libc_stub.so): $TENON_LIBRARY_DIR,
/// else beside this program, else that of the build tree. Errors name the triple, the folders
/// looked at, and what would help.
Expected<std::string> LibraryDirectory(const std::string& triple);

}  // namespace tenon::artifact
