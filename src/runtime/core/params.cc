#include "runtime/core/params.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/core/error.h"
#include "runtime/core/os.h"
#include "tenon/kernel_abi.h"

namespace tenon::runtime {
namespace {

constexpr size_t kPathBytes = 4096;

// The file's path: the library's, with the last part replaced. Our loader opens libraries through
// descriptors, whose links lead to the file while the library is being loaded, and that is when
// this is asked first.
bool ParamsPath(char (&path)[kPathBytes]) {
  Dl_info info;
  if (!dladdr(&tn_params_id, &info) || !info.dli_fname) return false;
  size_t length = strnlen(info.dli_fname, kPathBytes);
  if (length >= kPathBytes) return false;
  memcpy(path, info.dli_fname, length + 1);
  if (strncmp(path, "/proc/self/fd", 13) == 0) {
    ssize_t link = readlink(info.dli_fname, path, kPathBytes - 1);
    if (link < 0) return false;
    path[link] = '\0';
  }
  char* slash = strrchr(path, '/');
  char* name = slash ? slash + 1 : path;
  size_t room = static_cast<size_t>(path + kPathBytes - name);
  size_t name_bytes = strnlen(tn_params_name, room) + 1;
  if (name_bytes > room) return false;
  memcpy(name, tn_params_name, name_bytes);
  return true;
}

// Null where the file is the one that belongs to this library and is whole; else what is wrong.
const char* CheckParams(int fd, const tn_params_header& header) {
  if (memcmp(header.magic, TN_PARAMS_MAGIC, sizeof header.magic) != 0) {
    return "it is not a file of weights";
  }
  if (header.version != TN_PARAMS_VERSION) return "its version is not this library's";
  if (header.id[0] != tn_params_id[0] || header.id[1] != tn_params_id[1] ||
      header.payload_bytes != tn_weights_size) {
    return "it belongs to another library";
  }
  off_t size = lseek(fd, 0, SEEK_END);
  uint64_t file_bytes = size > 0 ? static_cast<uint64_t>(size) : 0;
  bool whole = header.payload_offset <= file_bytes &&
               header.payload_bytes <= file_bytes - header.payload_offset;
  return whole && header.payload_offset % 4096 == 0 ? nullptr : "the file is truncated";
}

const char* MapFile(int fd) {
  tn_params_header header;
  if (read(fd, &header, sizeof header) != sizeof header) return "the file is truncated";
  const char* fault = CheckParams(fd, header);
  if (fault) return fault;
  // Over the pages that the library has reserved for them.
  void* target = const_cast<unsigned char*>(tn_weights_base);
  void* mapped = mmap(target, tn_weights_size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd,
                      static_cast<off_t>(header.payload_offset));
  return mapped == MAP_FAILED ? "it cannot be mapped" : nullptr;
}

int32_t ParamsError(const char* path, const char* fault) {
  const tn_msg_part parts[] = {{TN_MSG_TEXT, 0, {"cannot load the weights '"}},
                               {TN_MSG_TEXT, 0, {path}},
                               {TN_MSG_TEXT, 0, {"': "}},
                               {TN_MSG_TEXT, 0, {fault}}};
  return tn_core_raise("RuntimeError", parts, 4);
}

}  // namespace

int32_t MapParams() {
  static uint32_t lock;
  static bool mapped;
  if (tn_params_name[0] == '\0') return 0;
  MutexLock hold(&lock);
  if (mapped) return 0;
  char path[kPathBytes];
  if (!ParamsPath(path)) return ParamsError(tn_params_name, "the library's own path is not known");
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return ParamsError(path, errno == ENOENT ? "there is no such file" : "it cannot be opened");
  const char* fault = MapFile(fd);
  close(fd);
  if (fault) return ParamsError(path, fault);
  mapped = true;
  return 0;
}

}  // namespace tenon::runtime
