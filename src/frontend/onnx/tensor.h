// Tensors and types of a model file in the graph's terms.
#pragma once

#include <memory>

#include "frontend/onnx/external_data.h"
#include "frontend/onnx/proto.h"
#include "graph/builder.h"
#include "support/expected.h"

namespace tenon::onnx {

struct NarrowType;

/// The data type of that number; an error names the type where it is known but not supported.
Expected<DType> ToDType(int32_t elem_type);
/// The other way; 0 for a type that tensors of models have not.
int32_t FromDType(DType type);

struct Tensor {
  graph::TensorType type;
  graph::Payload payload;
  const NarrowType* narrow = nullptr;  // what its bytes are (narrow.h), where they are no numbers
};

/// The tensor as a constant of a graph. That its bytes are of a narrow type is for the caller to
/// remember.
graph::ValueId AddConstant(graph::Builder& b, std::string name, Tensor tensor);

/// The tensor's type and bytes. Raw data, packed floats and external data stay in their file;
/// anything else is decoded. `file` is the model's mapping, which tensor.raw points into.
Expected<Tensor> ReadTensor(const TensorProto& tensor,
                            const std::shared_ptr<const graph::WeightFile>& file,
                            ExternalData* external);

}  // namespace tenon::onnx
