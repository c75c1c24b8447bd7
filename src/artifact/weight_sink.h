// Where weights are written: a range of an output file that has not been put in its place yet.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "support/atomic_file.h"
#include "support/expected.h"
#include "support/file.h"

namespace tenon::artifact {

/// A range of an output file, mapped for writing. Moves, does not copy. When it goes, its pages
/// leave this process's memory; what was written is in the file.
class WritableRange {
 public:
  WritableRange(WritableRange&& other) noexcept;
  WritableRange& operator=(WritableRange&&) = delete;
  ~WritableRange();
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  friend class WeightSink;
  WritableRange(void* mapping, size_t mapping_bytes, std::span<std::byte> bytes)
      : mapping_(mapping), mapping_bytes_(mapping_bytes), bytes_(bytes) {}
  void* mapping_;
  size_t mapping_bytes_;
  std::span<std::byte> bytes_;
};

/// Weights that are never written are zero. Threads may write disjoint ranges at once.
class WeightSink {
 public:
  virtual ~WeightSink() = default;
  uint64_t weights_bytes() const { return weights_bytes_; }
  /// Copies bytes to `offset` in the weights. The range must lie inside them.
  Status Write(uint64_t offset, std::span<const std::byte> bytes);
  /// Maps a range of the weights, zero until written.
  Expected<WritableRange> Map(uint64_t offset, uint64_t bytes);

 protected:
  WeightSink(uint64_t weights_at, uint64_t weights_bytes)
      : weights_at_(weights_at), weights_bytes_(weights_bytes) {}
  WeightSink(WeightSink&&) = default;
  virtual AtomicFile& weights_file() = 0;

 private:
  uint64_t weights_at_;  // in their file
  uint64_t weights_bytes_;
};

/// A file of weights alone.
class WeightFile final : public WeightSink {
 public:
  /// A file of `head` and then the weights, under a temporary name.
  static Expected<WeightFile> Create(const std::string& path, const std::string& head,
                                     uint64_t weights_bytes);
  /// The weights as they are in the file.
  Expected<MappedFile> Read() {
    return MappedFile::OpenDescriptor(file_.fd(), file_.temporary_path());
  }
  /// Adds the checksums (checksum.h) of what was written. The file, not in its place yet. Errors:
  /// it is not whole.
  Expected<AtomicFile> Finish() &&;

 private:
  WeightFile(AtomicFile file, uint64_t weights_at, uint64_t weights_bytes)
      : WeightSink(weights_at, weights_bytes), head_bytes_(weights_at), file_(std::move(file)) {}
  AtomicFile& weights_file() override { return file_; }
  uint64_t head_bytes_;
  AtomicFile file_;
};

}  // namespace tenon::artifact
