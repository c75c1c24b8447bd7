#include "frontend/onnx/tensor.h"

#include <fmt/format.h>

#include <cstring>

#include "frontend/onnx/narrow.h"
#include "graph/infer.h"

namespace tenon::onnx {

using graph::Payload;

Expected<DType> ToDType(int32_t elem_type) {
  switch (elem_type) {
    case 1: return DType::Float(32);
    case 2: return DType::UInt(8);
    case 3: return DType::Int(8);
    case 4: return DType::UInt(16);
    case 5: return DType::Int(16);
    case 6: return DType::Int(32);
    case 7: return DType::Int(64);
    case 9: return DType::Bool();
    case 10: return DType::Float(16);
    case 11: return DType::Float(64);
    case 12: return DType::UInt(32);
    case 13: return DType::UInt(64);
    case 16: return DType::BFloat16();
    default: break;
  }
  static constexpr const char* kNames[] = {"undefined",
                                           "",
                                           "",
                                           "",
                                           "",
                                           "",
                                           "",
                                           "",
                                           "string",
                                           "",
                                           "",
                                           "",
                                           "",
                                           "",
                                           "complex64",
                                           "complex128",
                                           "",
                                           "float8e4m3fn",
                                           "float8e4m3fnuz",
                                           "float8e5m2",
                                           "float8e5m2fnuz",
                                           "uint4",
                                           "int4",
                                           "float4e2m1",
                                           "float8e8m0",
                                           "uint2",
                                           "int2",
                                           "float6e2m3",
                                           "float6e3m2"};
  if (elem_type >= 0 && elem_type < static_cast<int32_t>(std::size(kNames))) {
    return MakeError(fmt::format("data type {} is not supported", kNames[elem_type]));
  }
  return MakeError(fmt::format("unknown data type {}", elem_type));
}

int32_t FromDType(DType type) {
  for (int32_t code = 1; code <= 16; ++code) {
    const Expected<DType> of = ToDType(code);
    if (of && *of == type) return code;
  }
  return 0;
}

namespace {

// The typed field that holds elements of a type, and how wide its own elements are.
const Chunks& TypedField(const TensorProto& t, DType dtype) {
  if (dtype.IsFloat() && dtype.bits == 64) return t.double_data;
  if (dtype.IsFloat() && dtype.bits == 32) return t.float_data;
  if (dtype == DType::Int(64)) return t.int64_data;
  if (dtype == DType::UInt(32) || dtype == DType::UInt(64)) return t.uint64_data;
  return t.int32_data;
}

bool HasTypedData(const TensorProto& t) {
  return !t.float_data.empty() || !t.int32_data.empty() || !t.int64_data.empty() ||
         !t.double_data.empty() || !t.uint64_data.empty() || t.has_strings;
}

Payload InModel(std::string_view bytes, const std::shared_ptr<const graph::WeightFile>& file) {
  return Payload::InFile(file, static_cast<uint64_t>(bytes.data() - file->map.text().data()),
                         bytes.size());
}

Diagnostic WrongSize(uint64_t expected, uint64_t got) {
  return MakeError(
      fmt::format("expected {} bytes of data for the tensor's type, but got {}", expected, got));
}

Expected<Payload> DecodeTyped(const TensorProto& t, const graph::TensorType& type, uint64_t count,
                              const std::shared_ptr<const graph::WeightFile>& file) {
  const Chunks& chunks = TypedField(t, type.dtype);
  const size_t width = static_cast<size_t>(type.dtype.Bytes());
  std::vector<std::byte> bytes;
  if (type.dtype.IsFloat() && type.dtype.bits >= 32) {
    size_t total = 0;
    for (std::string_view c : chunks) total += c.size();
    if (total != count * width) return WrongSize(count * width, total);
    if (chunks.size() == 1) return InModel(chunks[0], file);
    for (std::string_view c : chunks) {
      const std::byte* p = reinterpret_cast<const std::byte*>(c.data());
      bytes.insert(bytes.end(), p, p + c.size());
    }
    return Payload::Owned(std::move(bytes));
  }
  std::vector<uint64_t> values;
  if (!DecodeVarints(chunks, count, &values) || values.size() != count) {
    return MakeError(fmt::format("expected {} elements in the typed data of the tensor", count));
  }
  bytes.resize(count * width);
  for (size_t i = 0; i < values.size(); ++i)
    memcpy(bytes.data() + i * width, &values[i], width);  // little-endian
  return Payload::Owned(std::move(bytes));
}

Expected<Payload> ReadPayload(const TensorProto& t, const graph::TensorType& type, uint64_t count,
                              const std::shared_ptr<const graph::WeightFile>& file,
                              ExternalData* external) {
  const uint64_t size = count * static_cast<uint64_t>(type.dtype.Bytes());
  const bool is_external = t.data_location == 1;
  if (t.has_segment) return MakeError("tensors in segments are not supported");
  if (static_cast<int>(is_external) + static_cast<int>(t.has_raw) +
          static_cast<int>(HasTypedData(t)) >
      1) {
    return MakeError("expected one of raw data, typed data and external data, but got several");
  }
  if (is_external) return external->Find(t, size);
  if (t.data_location != 0)
    return MakeError(fmt::format("unknown data location {}", t.data_location));
  if (t.has_raw) {
    if (t.raw.size() != size) return WrongSize(size, t.raw.size());
    return InModel(t.raw, file);
  }
  return DecodeTyped(t, type, count, file);
}

// Several elements in a byte, the first in the lowest bits; here each has its own.
Expected<Payload> ReadPacked(const TensorProto& t, const NarrowType& narrow, uint64_t count,
                             const std::shared_ptr<const graph::WeightFile>& file,
                             ExternalData* external) {
  const auto bits = static_cast<uint64_t>(narrow.bits), each = 8 / bits;
  const uint64_t size = (count + each - 1) / each;
  const graph::TensorType type{DType::UInt(8), {IndexConst(static_cast<int64_t>(size))}};
  TN_ASSIGN_OR_RETURN(const Payload packed, ReadPayload(t, type, size, file, external));
  std::vector<std::byte> elements(count);
  const int mask = (1 << bits) - 1;
  for (uint64_t i = 0; i < count; ++i) {
    int code = (static_cast<int>(packed.bytes()[i / each]) >> (i % each * bits)) & mask;
    if (!narrow.is_float && narrow.is_signed && code > mask / 2) code -= mask + 1;
    elements[i] = static_cast<std::byte>(code);
  }
  return Payload::Owned(std::move(elements));
}

// The place in the dense tensor of each element of a sparse one. They are given as numbers, or as a
// row of indices each, and ascend.
Expected<std::vector<int64_t>> ReadPlaces(const TensorProto& t, int64_t count, size_t elements,
                                          const std::shared_ptr<const graph::WeightFile>& file,
                                          ExternalData* external) {
  const TensorProto& indices = t.sparse[1];
  const auto most = static_cast<int64_t>(elements), rank = static_cast<int64_t>(t.dims.size());
  const bool rows = indices.dims.size() == 2;
  if (indices.data_type != FromDType(DType::Int(64)) || !indices.sparse.empty() ||
      (indices.dims.size() != 1 && !rows) || indices.dims[0] != most ||
      (rows && indices.dims[1] != rank))
    return MakeError(
        fmt::format("expected {} indices of int64, or as many rows of {}", most, rank));
  TN_ASSIGN_OR_RETURN(const Tensor read, ReadTensor(indices, file, external));
  std::vector<int64_t> list(read.payload.bytes().size() / sizeof(int64_t));
  if (!list.empty()) memcpy(list.data(), read.payload.bytes().data(), list.size() * sizeof list[0]);
  std::vector<int64_t> places;
  for (size_t i = 0; i < elements; ++i) {
    int64_t at = 0;
    for (size_t k = 0; rows && k < t.dims.size(); ++k) {
      const int64_t index = list[i * t.dims.size() + k];
      if (index < 0 || index >= t.dims[k])
        return MakeError(fmt::format("expected indices in 0..{} along axis {}, but got {}",
                                     t.dims[k] - 1, k, index));
      at = at * t.dims[k] + index;
    }
    if (!rows) at = list[i];
    if (at < 0 || at >= count)
      return MakeError(fmt::format("expected indices in 0..{}, but got {}", count - 1, at));
    if (!places.empty() && at <= places.back())
      return MakeError(fmt::format("expected indices in ascending order, but got {} after {}", at,
                                   places.back()));
    places.push_back(at);
  }
  return places;
}

Expected<Tensor> ReadSparse(const TensorProto& t,
                            const std::shared_ptr<const graph::WeightFile>& file,
                            ExternalData* external) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  const TensorProto& values = t.sparse[0];
  if (!values.sparse.empty() || values.dims.size() != 1)
    return MakeError("expected the values of a sparse tensor as a list");
  TN_ASSIGN_OR_RETURN(Tensor out, ReadTensor(values, file, external));
  out.type.dims.clear();
  for (int64_t d : t.dims) out.type.dims.push_back(IndexConst(d));
  TN_RETURN_IF_ERROR(graph::CheckType(out.type));
  const auto width = static_cast<size_t>(out.type.dtype.Bytes());
  const int64_t count = *graph::StaticCount(out.type.dims);
  if (count > kMostBytes / static_cast<int64_t>(width)) {
    return MakeLimitError(fmt::format(
        "expected a sparse tensor of at most {} bytes when its zeros are filled in, but got {}",
        kMostBytes, out.type.ToString()));
  }
  const std::span<const std::byte> from = out.payload.bytes();
  TN_ASSIGN_OR_RETURN(const std::vector<int64_t> places,
                      ReadPlaces(t, count, from.size() / width, file, external));
  std::vector<std::byte> bytes(static_cast<size_t>(count) * width);
  for (size_t i = 0; i < places.size(); ++i)
    memcpy(bytes.data() + static_cast<size_t>(places[i]) * width, from.data() + i * width, width);
  out.payload = Payload::Owned(std::move(bytes));
  return out;
}

}  // namespace

graph::ValueId AddConstant(graph::Builder& b, std::string name, Tensor tensor) {
  if (!tensor.narrow)
    return b.Constant(std::move(name), std::move(tensor.type), std::move(tensor.payload));
  // Its bytes are no numbers, which nobody is to know at compile time.
  return b.graph().AddConstant(std::move(name), std::move(tensor.type), std::move(tensor.payload));
}

Expected<Tensor> ReadTensor(const TensorProto& t,
                            const std::shared_ptr<const graph::WeightFile>& file,
                            ExternalData* external) {
  if (!t.sparse.empty()) return ReadSparse(t, file, external);
  Tensor out;
  TN_ASSIGN_OR_RETURN(out.type.dtype, StorageOf(t.data_type));
  out.narrow = NarrowTypeOf(t.data_type);
  uint64_t count = 1;
  for (int64_t d : t.dims) out.type.dims.push_back(IndexConst(d));
  TN_RETURN_IF_ERROR(graph::CheckType(out.type));
  for (int64_t d : t.dims) count *= static_cast<uint64_t>(d);
  if (out.narrow && out.narrow->bits < 8) {
    TN_ASSIGN_OR_RETURN(out.payload, ReadPacked(t, *out.narrow, count, file, external));
    return out;
  }
  TN_ASSIGN_OR_RETURN(out.payload, ReadPayload(t, out.type, count, file, external));
  if (out.type.dtype.IsBool()) {
    for (std::byte b : out.payload.bytes()) {
      if (b > std::byte{1})
        return MakeError(fmt::format("expected bools of 0 or 1, but got {}", static_cast<int>(b)));
    }
  }
  return out;
}

}  // namespace tenon::onnx
