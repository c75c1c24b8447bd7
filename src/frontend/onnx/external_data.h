// Files that hold tensors outside the model: opened only inside one directory.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "frontend/onnx/proto.h"
#include "graph/graph.h"
#include "support/expected.h"

namespace tenon::onnx {

/// Opens each file once. A location is refused unless it is a relative path that stays inside the
/// directory and names a regular file with one hard link; symbolic links on the way must end inside
/// the directory or the second one: whoever wrote the model must not be able to make us read, and
/// ship inside an artifact, a file of the person who compiles it.
class ExternalData {
 public:
  /// `directory` empty: every external tensor is an error. `linked` empty: no second directory.
  ExternalData(std::string directory, std::string linked)
      : directory_(std::move(directory)), linked_(std::move(linked)) {}

  /// The bytes that `tensor` refers to, which must be `size`.
  Expected<graph::Payload> Find(const TensorProto& tensor, uint64_t size);

 private:
  Expected<std::shared_ptr<const graph::WeightFile>> Open(const std::string& location);
  /// A descriptor, or -1 with errno; ELOOP: it leads outside.
  int OpenLinked(const std::string& location) const;

  const std::string directory_, linked_;
  std::map<std::string, std::shared_ptr<const graph::WeightFile>> files_;
};

}  // namespace tenon::onnx
