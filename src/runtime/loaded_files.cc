#include "runtime/loaded_files.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "runtime/core/os.h"

namespace tenon::runtime {
namespace {

struct File {
  File* next;
  struct stat status;
};

File* files;
uint32_t lock;

}  // namespace

bool NoteLoaded(int fd, bool fresh) {
  struct stat now;
  if (fstat(fd, &now) != 0) return true;
  MutexLock guard(&lock);
  File* file = files;
  while (file && (file->status.st_dev != now.st_dev || file->status.st_ino != now.st_ino))
    file = file->next;
  if (file && !fresh) {
    const struct stat& then = file->status;
    return then.st_size == now.st_size && then.st_mtim.tv_sec == now.st_mtim.tv_sec &&
           then.st_mtim.tv_nsec == now.st_mtim.tv_nsec;
  }
  if (!file) {
    file = static_cast<File*>(malloc(sizeof(File)));
    if (!file) return true;
    file->next = files;
    files = file;
  }
  file->status = now;
  return true;
}

}  // namespace tenon::runtime
