// What a program's importer knows of a value's type: less than a graph does, since the elements of
// a sequence may have any shape.
#pragma once

#include <string>
#include <vector>

#include "frontend/onnx/proto.h"
#include "support/expected.h"

namespace tenon::onnx {

/// A size: a number, or a name that stands for the same number wherever it is; or nothing is known.
struct KnownSize {
  int64_t value = -1;
  std::string name;
  friend bool operator==(const KnownSize&, const KnownSize&) = default;
};

struct ValueType {
  enum class Kind { kTensor, kSequence, kOptional, kMap };
  Kind kind = Kind::kTensor;
  int32_t elem_type = 0;      // of a tensor; of a map: of its keys
  bool has_rank = false;      // of a tensor
  bool has_no_value = false;  // of an empty sequence's elements: any rank will do
  std::vector<KnownSize> dims;
  std::vector<int64_t> ranks;    // without has_rank: those there may be, in order; none: any
  std::vector<ValueType> inner;  // one, but of a tensor

  bool IsTensor() const { return kind == Kind::kTensor; }
  bool IsString() const {
    return IsTensor() && elem_type == static_cast<int32_t>(ElemType::kString);
  }
  const ValueType& element() const { return inner[0]; }
  friend bool operator==(const ValueType&, const ValueType&) = default;

  static ValueType Tensor(int32_t elem_type, std::vector<KnownSize> dims);
  static ValueType Of(Kind kind, ValueType inner);

  /// "float32[2, n]", "string[?]", "sequence(float32[…])".
  std::string ToString() const;
  /// The same without sizes, of element types as callers see them.
  std::string Name() const;
  /// As words of a program.
  Expected<std::vector<uint32_t>> Encode() const;
};

/// The type that a file declares.
Expected<ValueType> TypeOf(const ValueInfoProto& declared);
/// What holds for values of both types.
Expected<ValueType> CommonType(const ValueType& a, const ValueType& b);

}  // namespace tenon::onnx
