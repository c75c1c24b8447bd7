#include "artifact/temporary_library.h"

#include <dlfcn.h>

#include <utility>

namespace tenon::artifact {

TemporaryLibrary::TemporaryLibrary(TemporaryLibrary&& other) noexcept
    : file_(std::move(other.file_)), handle_(std::exchange(other.handle_, nullptr)) {}

TemporaryLibrary::~TemporaryLibrary() {
  if (!handle_) return;
  dlclose(handle_);
  // A library that has started workers stays; so does its name then, and no other file may get it.
  if (dlopen(file_.path().c_str(), RTLD_LAZY | RTLD_NOLOAD)) file_.Leak();
}

void* TemporaryLibrary::Find(const std::string& symbol) const {
  return dlsym(handle_, symbol.c_str());
}

Expected<TemporaryLibrary> LoadTemporaryLibrary(const std::vector<ObjectFile>& objects,
                                                const std::vector<std::string>& exports,
                                                const std::string& triple) {
  LinkRequest request;
  request.objects = objects;
  request.exports = exports;
  request.triple = triple;
  TN_ASSIGN_OR_RETURN(std::string image, LinkSharedLibrary(request));
  TN_ASSIGN_OR_RETURN(MemoryFile file, MemoryFile::Create("tenon-library", image));
  void* handle = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return MakeError(std::string("cannot load code into this process: ") + dlerror());
  return TemporaryLibrary(std::move(file), handle);
}

}  // namespace tenon::artifact
