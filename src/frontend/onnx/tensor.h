// Tensors and types of a model file in the graph's terms.
#pragma once

#include <memory>

#include "frontend/onnx/external_data.h"
#include "frontend/onnx/proto.h"
#include "graph/graph.h"
#include "support/expected.h"

namespace tenon::onnx {

/// The data type of that number; an error names the type where it is known but not supported.
Expected<DType> ToDType(int32_t elem_type);

struct Tensor {
  graph::TensorType type;
  graph::Payload payload;
};

/// The tensor's type and bytes. Raw data, packed floats and external data stay in their file;
/// anything else is decoded. `file` is the model's mapping, which tensor.raw points into.
Expected<Tensor> ReadTensor(const TensorProto& tensor,
                            const std::shared_ptr<const graph::WeightFile>& file,
                            ExternalData* external);

}  // namespace tenon::onnx
