// The file of a compiled library (or object): the linked image, and the weights behind it, written
// straight into the file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "artifact/link.h"
#include "artifact/params.h"
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
  friend class LibraryWriter;
  WritableRange(void* mapping, size_t mapping_bytes, std::span<std::byte> bytes)
      : mapping_(mapping), mapping_bytes_(mapping_bytes), bytes_(bytes) {}
  void* mapping_;
  size_t mapping_bytes_;
  std::span<std::byte> bytes_;
};

/// Everything happens under a temporary name beside the target; without Commit nothing is left.
/// Weights that are never written are zero. Threads may write disjoint ranges at once.
class LibraryWriter {
 public:
  /// Links (link.h) and writes the image with room for request.weights_bytes of weights; where the
  /// request names a file for them, into that file, beside `path`, with `table` at its head.
  static Expected<LibraryWriter> Create(const LinkRequest& request, const std::string& path,
                                        const std::vector<ParamEntry>& table = {});

  uint64_t weights_bytes() const { return weights_bytes_; }
  /// Copies bytes to `offset` in the weight segment. The range must lie inside it.
  Status Write(uint64_t offset, std::span<const std::byte> bytes);
  /// Maps a range of the weight segment, zero until written.
  Expected<WritableRange> Map(uint64_t offset, uint64_t bytes);
  /// Puts the file in its place (the weights' own file first).
  Status Commit();

 private:
  LibraryWriter(AtomicFile library, std::optional<AtomicFile> params, uint64_t weights_at,
                uint64_t weights_bytes)
      : library_(std::move(library)),
        params_(std::move(params)),
        weights_at_(weights_at),
        weights_bytes_(weights_bytes) {}
  AtomicFile& weights_file() { return params_ ? *params_ : library_; }

  AtomicFile library_;
  std::optional<AtomicFile> params_;
  uint64_t weights_at_;  // in their file
  uint64_t weights_bytes_;
};

}  // namespace tenon::artifact
