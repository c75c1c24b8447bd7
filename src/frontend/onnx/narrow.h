// Element types that the graph has not: floats of 8 bits and fewer, integers of 4 and 2.
//
// Such a tensor is one of bytes, an element in each, as ml_dtypes arrays are in memory: integers in
// the low bits of i8 or u8, whose other bits say nothing, floats by their bits in u8. What a
// tensor's bytes mean is known to the importer alone: it goes with values through operators that
// move elements, casts and the quantising operators make numbers of them, and all others refuse
// them by name.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "frontend/onnx/formula.h"
#include "support/minifloat.h"

namespace tenon::onnx {

/// One such type; `format` is that of floats.
struct NarrowType {
  int32_t code;  // TensorProto.DataType
  const char* name;
  int bits;
  bool is_float, is_signed;
  Minifloat format = {};
  Float8 float8 = Float8::kNone;  // the element type that callers see, where the graph has it

  DType storage() const {
    if (IsString()) return DType::Int(64);
    return !is_float && is_signed ? DType::Int(8) : DType::UInt(8);
  }
  DType caller() const { return float8 == Float8::kNone ? storage() : DType::OfFloat8(float8); }
  /// Not narrow, but as little a number: the strings of a program are numbered
  /// (tenon/program_abi.h).
  bool IsString() const { return code == static_cast<int32_t>(ElemType::kString); }
  bool IsExponent() const { return is_float && !is_signed; }
};

/// Null where the type is none of them.
const NarrowType* NarrowTypeOf(int32_t elem_type);
/// What the graph has an element type of the model as: `ToDType`, or the bytes of a narrow type.
Expected<DType> StorageOf(int32_t elem_type);
/// What callers see.
Expected<DType> CallerTypeOf(int32_t elem_type);

/// The numbers that bytes of a narrow type are, as `to`.
Val Decoded(const Val& bytes, const NarrowType& type, DType to);
/// How numbers become narrow floats: what is too large is the largest, or no number; exponents
/// alone are rounded "up", "down" or to the "nearest".
struct NarrowRounding {
  bool saturate = true;
  std::string mode = "up";
};
/// Numbers as a narrow type: floats round to nearest even, integers keep their low bits.
Val Encoded(const Val& x, const NarrowType& type, const NarrowRounding& rounding);

/// Which values of a graph are bytes of a narrow type.
class NarrowValues {
 public:
  const NarrowType* Of(ValueId v) const {
    const auto it = types_.find(v);
    return it == types_.end() ? nullptr : it->second;
  }
  void Set(ValueId v, const NarrowType* type) {
    if (type && v >= 0) types_[v] = type;
  }
  /// Lets what the nodes from `first_node` on move of such values be of their types. Errors: one
  /// computes with them.
  Status Follow(const graph::Graph& g, size_t first_node);

 private:
  bool AllOf(const graph::Graph& g, const graph::Node& node, const NarrowType* type) const;

  std::unordered_map<ValueId, const NarrowType*> types_;
};

}  // namespace tenon::onnx
