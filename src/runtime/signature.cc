#include "runtime/signature.h"

#include <stdlib.h>
#include <string.h>

#include <new>

namespace tenon::runtime {
namespace {

// Hands out pieces of one block. Run once without memory it counts what is needed, run again it
// fills: one description of the layout serves both.
class Block {
 public:
  explicit Block(char* memory) : memory_(memory) {}
  size_t used() const { return used_; }
  bool filling() const { return memory_ != nullptr; }

  template <class T>
  T* Take(size_t count) {
    used_ = (used_ + alignof(T) - 1) / alignof(T) * alignof(T);
    T* piece = filling() ? reinterpret_cast<T*>(memory_ + used_) : nullptr;
    used_ += count * sizeof(T);
    return piece;
  }

  const char* TakeString(JsonValue string) {
    char* copy = Take<char>(JsonStringRoom(string));
    if (copy) JsonDecode(string, copy);
    return copy;
  }

 private:
  char* memory_;
  size_t used_ = 0;
};

tn_dl_data_type ParseDType(JsonValue name) {
  static constexpr struct {
    const char* name;
    tn_dl_data_type dtype;
  } kTypes[] = {
      {"float32", {TN_DL_FLOAT, 32, 1}},
      {"float16", {TN_DL_FLOAT, 16, 1}},
      {"float64", {TN_DL_FLOAT, 64, 1}},
      {"bfloat16", {TN_DL_BFLOAT, 16, 1}},
      {"int4", {TN_DL_INT, 4, 1}},
      {"int8", {TN_DL_INT, 8, 1}},
      {"int16", {TN_DL_INT, 16, 1}},
      {"int32", {TN_DL_INT, 32, 1}},
      {"int64", {TN_DL_INT, 64, 1}},
      {"uint4", {TN_DL_UINT, 4, 1}},
      {"uint8", {TN_DL_UINT, 8, 1}},
      {"uint16", {TN_DL_UINT, 16, 1}},
      {"uint32", {TN_DL_UINT, 32, 1}},
      {"uint64", {TN_DL_UINT, 64, 1}},
      {"bool", {TN_DL_BOOL, 8, 1}},
      {"float8_e3m4", {TN_DL_FLOAT8_E3M4, 8, 1}},
      {"float8_e4m3", {TN_DL_FLOAT8_E4M3, 8, 1}},
      {"float8_e4m3b11fnuz", {TN_DL_FLOAT8_E4M3B11FNUZ, 8, 1}},
      {"float8_e4m3fn", {TN_DL_FLOAT8_E4M3FN, 8, 1}},
      {"float8_e4m3fnuz", {TN_DL_FLOAT8_E4M3FNUZ, 8, 1}},
      {"float8_e5m2", {TN_DL_FLOAT8_E5M2, 8, 1}},
      {"float8_e5m2fnuz", {TN_DL_FLOAT8_E5M2FNUZ, 8, 1}},
      {"float8_e8m0fnu", {TN_DL_FLOAT8_E8M0FNU, 8, 1}},
  };
  for (const auto& type : kTypes) {
    if (JsonEquals(name, type.name)) return type.dtype;
  }
  return {TN_DL_HANDLE, 0, 0};
}

void ReadDims(JsonValue shape, Block* block, int32_t ndim, tn_parameter_t* out) {
  auto* dims = block->Take<int64_t>(static_cast<size_t>(ndim));
  auto* names = block->Take<const char*>(static_cast<size_t>(ndim));
  JsonItems items(shape);
  for (int32_t i = 0; i < ndim; ++i) {
    JsonValue dim = items.Next();
    const char* name = dim.IsString() ? block->TakeString(dim) : nullptr;
    if (!block->filling()) continue;
    dims[i] = dim.IsString() ? -1 : JsonInt(dim, -1);
    names[i] = name;
  }
  out->shape = dims;
  out->dims = names;
}

ParameterList ReadParameters(JsonValue list, Block* block) {
  int32_t count = JsonCount(list);
  auto* parameters = block->Take<tn_parameter_t>(static_cast<size_t>(count));
  JsonItems items(list);
  for (int32_t i = 0; i < count; ++i) {
    JsonValue item = items.Next();
    JsonValue shape = JsonFind(item, "shape");
    tn_parameter_t parameter;
    parameter.name = block->TakeString(JsonFind(item, "name"));
    parameter.dtype = ParseDType(JsonFind(item, "dtype"));
    parameter.ndim = shape.exists() ? JsonCount(shape) : -1;  // -1: a number
    ReadDims(shape, block, parameter.ndim < 0 ? 0 : parameter.ndim, &parameter);
    if (block->filling()) parameters[i] = parameter;
  }
  return {parameters, count};
}

Signature* LayOutSignature(JsonValue info, Block* block) {
  auto* signature = block->Take<Signature>(1);
  JsonValue function = JsonItems(JsonFind(info, "functions")).Next();
  const char* name = block->TakeString(JsonFind(function, "name"));
  ParameterList inputs = ReadParameters(JsonFind(function, "inputs"), block);
  ParameterList outputs = ReadParameters(JsonFind(function, "outputs"), block);
  if (signature) *signature = {name, inputs, outputs};
  return signature;
}

Metadata* LayOutMetadata(JsonValue info, Block* block) {
  auto* metadata = block->Take<Metadata>(1);
  JsonValue object = JsonFind(info, "metadata");
  int32_t count = JsonCount(object);
  auto* entries = block->Take<Metadata::Item>(static_cast<size_t>(count));
  JsonItems items(object);
  for (int32_t i = 0; i < count; ++i) {
    JsonValue key;
    JsonValue value = items.Next(&key);
    const char* key_text = block->TakeString(key);
    const char* value_text = block->TakeString(value);
    if (block->filling()) entries[i] = {key_text, value_text};
  }
  if (metadata) *metadata = {entries, count};
  return metadata;
}

template <class T>
T* ReadBlock(JsonValue info, T* (*lay_out)(JsonValue, Block*)) {
  Block count(nullptr);
  lay_out(info, &count);
  auto* memory = static_cast<char*>(malloc(count.used()));
  if (!memory) return nullptr;
  Block fill(memory);
  return lay_out(info, &fill);  // the first piece, so at the block's start
}

}  // namespace

Signature* ReadSignature(JsonValue info) { return ReadBlock(info, LayOutSignature); }
Metadata* ReadMetadata(JsonValue info) { return ReadBlock(info, LayOutMetadata); }

}  // namespace tenon::runtime
