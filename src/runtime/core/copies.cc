#include "runtime/core/copies.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

namespace tenon::runtime {
namespace {

struct Search {
  uint32_t kind;
  int32_t skip;  // so many copies come before
  Copy* out;
};

size_t Padded(size_t bytes) { return (bytes + 3) & ~size_t{3}; }

// Reads one note; whether it is the copy that is searched for.
bool IsWanted(const Elf64_Nhdr& note, const char* name, const char* content, Search* search) {
  if (note.n_type != search->kind || note.n_descsz != sizeof(int64_t)) return false;
  if (note.n_namesz != sizeof TN_NOTE_NAME || memcmp(name, TN_NOTE_NAME, sizeof TN_NOTE_NAME) != 0)
    return false;
  int64_t distance;
  memcpy(&distance, content, sizeof distance);
  auto* services = reinterpret_cast<const tn_host_services*>(content + distance);
  if (services->abi_version != TN_ABI_VERSION || search->skip-- > 0) return false;
  search->out->services = services;
  return true;
}

bool ReadNotes(const char* at, size_t bytes, Search* search) {
  Elf64_Nhdr note;
  while (bytes >= sizeof note) {
    memcpy(&note, at, sizeof note);
    const char* name = at + sizeof note;
    const char* content = name + Padded(note.n_namesz);
    const size_t whole = sizeof note + Padded(note.n_namesz) + Padded(note.n_descsz);
    if (whole > bytes) return false;
    if (IsWanted(note, name, content, search)) return true;
    at += whole;
    bytes -= whole;
  }
  return false;
}

bool Contains(const dl_phdr_info& info, const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address) - info.dlpi_addr;
  for (size_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && at - segment.p_vaddr < segment.p_memsz) return true;
  }
  return false;
}

int Visit(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    // Notes that are aligned to 8 bytes are the system's.
    if (segment.p_type != PT_NOTE || segment.p_align > 4) continue;
    const auto* notes = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    if (!ReadNotes(notes, segment.p_memsz, search)) continue;
    Copy* out = search->out;
    if (strlen(info->dlpi_name) >= Copy::kPathBytes) return 0;
    strcpy(out->path, info->dlpi_name);
    out->beside = Contains(*info, reinterpret_cast<const void*>(&Visit));
    out->stays = out->beside || out->path[0] == '\0';  // the program's name is empty
    return 1;
  }
  return 0;
}

}  // namespace

bool FindCopy(uint32_t kind, int32_t number, Copy* out) {
  Search search = {kind, number, out};
  return dl_iterate_phdr(Visit, &search) != 0;
}

// The loader's lock is not held any more: the library may have gone, and then has no handle.
bool Hold(const Copy& copy, void** out_hold) {
  *out_hold = copy.stays ? nullptr : dlopen(copy.path, RTLD_LAZY | RTLD_NOLOAD);
  return copy.stays || *out_hold;
}

void Release(void* hold) {
  if (hold) dlclose(hold);
}

}  // namespace tenon::runtime
