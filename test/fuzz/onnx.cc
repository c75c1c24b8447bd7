// The ONNX reader and importer on a mapped file, as `compile` has it: nothing crashes or reads
// beyond the file.
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "frontend/onnx/import.h"

namespace {

// The rest of a mapping's last page is readable; to the sanitizer it is not ours.
class PoisonedTail {
 public:
  explicit PoisonedTail(const tenon::MappedFile& file) : begin_(file.data() + file.size()) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_ = (page - file.size() % page) % page;
    __asan_poison_memory_region(begin_, size_);
  }
  ~PoisonedTail() { __asan_unpoison_memory_region(begin_, size_); }

 private:
  const std::byte* begin_;
  size_t size_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != static_cast<ssize_t>(size)) abort();
  auto mapped = tenon::MappedFile::OpenDescriptor(fd, "fuzz.onnx");
  close(fd);
  if (!mapped || mapped->size() == 0) return 0;
  auto file = std::make_shared<tenon::graph::WeightFile>();
  file->path = "fuzz.onnx";
  file->map = std::move(*mapped);
  const PoisonedTail tail(file->map);
  (void)tenon::onnx::ImportOnnx(file);
  return 0;
}
