// What a caller knows better than the model's file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "frontend/onnx/proto.h"
#include "support/expected.h"
#include "support/hash.h"

namespace tenon::onnx {

/// The value of an initializer, in place of the file's.
struct GivenInitializer {
  int32_t elem_type = 0;  // a number of TensorProto.DataType, of a byte or more
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;  // row-major, little-endian
  bool is_spare = false;         // that the model has no such initializer is no error
};

struct Overrides {
  /// Sizes of the dims that the model calls so, of any input.
  std::map<std::string, int64_t> dims;
  /// Sizes of the dims of inputs that the model leaves open and denotes so, in small letters.
  std::map<std::string, int64_t> denoted_dims;
  /// Dims of inputs that have one name need not be of one size.
  bool independent_dims = false;
  /// Initializers that the graph lists among its inputs, and that become such.
  std::set<std::string> inputs;
  /// Values of initializers, and of inputs, which become constants.
  std::map<std::string, GivenInitializer> initializers;

  void AddTo(Hasher* hasher) const;
};

/// Changes a model that has been read; the values of initializers are left to who reads them.
/// `overrides` outlives the graph. Errors: the model has no initializer or input of a name, no
/// initializer that is listed among the inputs, or one of another type.
Status Apply(const Overrides& overrides, GraphProto* graph);

}  // namespace tenon::onnx
