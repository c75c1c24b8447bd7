#include "artifact/weight_sink.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "artifact/checksum.h"
#include "support/check.h"

namespace tenon::artifact {

WritableRange::WritableRange(WritableRange&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(other.mapping_bytes_),
      bytes_(other.bytes_) {}

WritableRange::~WritableRange() {
  if (mapping_) munmap(mapping_, mapping_bytes_);
}

Status WeightSink::Write(uint64_t offset, std::span<const std::byte> bytes) {
  TN_CHECK(offset <= weights_bytes_ && bytes.size() <= weights_bytes_ - offset);
  return weights_file().WriteAt(weights_at_ + offset, bytes);
}

Expected<WritableRange> WeightSink::Map(uint64_t offset, uint64_t bytes) {
  TN_CHECK(offset <= weights_bytes_ && bytes <= weights_bytes_ - offset);
  if (bytes == 0) return WritableRange(nullptr, 0, {});
  uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t start = (weights_at_ + offset) / page * page;
  size_t lead = weights_at_ + offset - start;
  void* mapping = mmap(nullptr, lead + bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                       weights_file().fd(), static_cast<off_t>(start));
  if (mapping == MAP_FAILED) {
    return MakeLimitError(fmt::format("cannot map {} bytes of '{}': {}", bytes,
                                      weights_file().temporary_path(), strerror(errno)));
  }
  return WritableRange(mapping, lead + bytes, {static_cast<std::byte*>(mapping) + lead, bytes});
}

Expected<WeightFile> WeightFile::Create(const std::string& path, const std::string& head,
                                        uint64_t weights_bytes) {
  TN_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  TN_RETURN_IF_ERROR(file.Append(head));
  TN_RETURN_IF_ERROR(file.Resize(head.size() + weights_bytes));
  return WeightFile(std::move(file), head.size(), weights_bytes);
}

Expected<AtomicFile> WeightFile::Finish() && {
  TN_RETURN_IF_ERROR(AppendChecksums(&file_, head_bytes_));
  TN_RETURN_IF_ERROR(file_.CheckWritten());
  return std::move(file_);
}

}  // namespace tenon::artifact
