// The file of a compiled library (or object): the linked image, and the weights behind it, written
// straight into the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "artifact/link.h"
#include "artifact/params.h"
#include "artifact/weight_sink.h"
#include "support/atomic_file.h"
#include "support/expected.h"

namespace tenon::artifact {

/// Everything happens under a temporary name beside the target; without CommitTogether nothing is
/// left.
class LibraryWriter final : public WeightSink {
 public:
  /// Links (link.h) and writes the image with room for request.weights_bytes of weights; where the
  /// request names a file for them, into that file, beside `path`, with `table` at its head.
  static Expected<LibraryWriter> Create(const LinkRequest& request, const std::string& path,
                                        const std::vector<ParamEntry>& table = {});

  /// Adds the checksums (checksum.h) of what was written. The files, in the order in which they go
  /// to their places: the weights' own first. Errors: one is not whole.
  Expected<std::vector<AtomicFile>> Finish() &&;

 private:
  LibraryWriter(AtomicFile library, std::optional<AtomicFile> params, uint64_t weights_at,
                uint64_t weights_bytes, bool has_checksums)
      : WeightSink(weights_at, weights_bytes),
        weights_at_(weights_at),
        has_checksums_(has_checksums),
        library_(std::move(library)),
        params_(std::move(params)) {}
  AtomicFile& weights_file() override { return params_ ? *params_ : library_; }

  uint64_t weights_at_;  // in the file that has them
  bool has_checksums_;   // an object is for a linker, which knows nothing of them
  AtomicFile library_;
  std::optional<AtomicFile> params_;
};

}  // namespace tenon::artifact
