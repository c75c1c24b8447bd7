#include "frontend/onnx/value_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "frontend/onnx/narrow.h"
#include "graph/program.h"
#include "support/strings.h"

namespace tenon::onnx {

using Kind = ValueType::Kind;

ValueType ValueType::Tensor(int32_t elem_type, std::vector<KnownSize> dims) {
  ValueType t;
  t.elem_type = elem_type;
  t.has_rank = true;
  t.dims = std::move(dims);
  return t;
}

ValueType ValueType::Of(Kind kind, ValueType inner) {
  ValueType t;
  t.kind = kind;
  t.inner.push_back(std::move(inner));
  return t;
}

namespace {

// As models have it, or as callers see it.
std::string NameOf(int32_t elem_type, bool called) {
  const NarrowType* narrow = NarrowTypeOf(elem_type);
  if (narrow && (!called || narrow->IsString())) return narrow->name;
  const Expected<DType> type = CallerTypeOf(elem_type);
  return type ? LongName(*type) : "?";
}

std::string TextOf(const ValueType& t, bool sizes) {
  switch (t.kind) {
    case Kind::kSequence: return fmt::format("sequence({})", TextOf(t.element(), sizes));
    case Kind::kOptional: return fmt::format("optional({})", TextOf(t.element(), sizes));
    case Kind::kMap:
      return fmt::format("map({}, {})", NameOf(t.elem_type, !sizes), TextOf(t.element(), sizes));
    case Kind::kTensor: break;
  }
  if (!sizes) return NameOf(t.elem_type, true);
  std::vector<std::string> dims;
  for (const KnownSize& d : t.dims)
    dims.push_back(d.value >= 0 ? std::to_string(d.value) : d.name.empty() ? "?" : d.name);
  return fmt::format("{}[{}]", NameOf(t.elem_type, false), t.has_rank ? Join(dims, ", ") : "…");
}

// The ranks that a tensor may have; none where it may have any.
std::vector<int64_t> RanksOf(const ValueType& t) {
  return t.has_rank ? std::vector<int64_t>{static_cast<int64_t>(t.dims.size())} : t.ranks;
}

uint32_t WordOf(DType type) {
  const auto code = type.IsFloat8()             ? static_cast<uint32_t>(type.float8)
                    : type.IsBool()             ? TN_DL_BOOL
                    : type == DType::BFloat16() ? TN_DL_BFLOAT
                    : type.IsFloat()            ? TN_DL_FLOAT
                    : type.IsSigned()           ? TN_DL_INT
                                                : TN_DL_UINT;
  return code | static_cast<uint32_t>(type.StorageBits()) << 8 | 1U << 16;
}

Status EncodeInto(const ValueType& t, std::vector<uint32_t>* out) {
  switch (t.kind) {
    case Kind::kTensor: {
      if (t.IsString()) {
        out->push_back(TN_TYPE_STRINGS);
        return Ok();
      }
      TN_ASSIGN_OR_RETURN(const DType type, CallerTypeOf(t.elem_type));
      out->push_back(TN_TYPE_TENSOR);
      out->push_back(WordOf(type));
      return Ok();
    }
    case Kind::kSequence: out->push_back(TN_TYPE_SEQUENCE); break;
    case Kind::kOptional: out->push_back(TN_TYPE_OPTIONAL); break;
    case Kind::kMap:
      out->push_back(TN_TYPE_MAP);
      TN_RETURN_IF_ERROR(EncodeInto(ValueType::Tensor(t.elem_type, {}), out));
      break;
  }
  return EncodeInto(t.element(), out);
}

}  // namespace

std::string ValueType::ToString() const { return TextOf(*this, true); }
std::string ValueType::Name() const { return TextOf(*this, false); }

Expected<std::vector<uint32_t>> ValueType::Encode() const {
  std::vector<uint32_t> out;
  TN_RETURN_IF_ERROR(EncodeInto(*this, &out));
  return out;
}

Expected<ValueType> TypeOf(const ValueInfoProto& declared) {
  using Declared = ValueInfoProto::Kind;
  ValueType t;
  switch (declared.kind) {
    case Declared::kTensor:
      TN_RETURN_IF_ERROR(StorageOf(declared.elem_type));
      t.elem_type = declared.elem_type;
      t.has_rank = declared.has_shape;
      for (const DimProto& d : declared.shape) {
        if (d.kind == DimProto::Kind::kValue && d.value >= 0)
          t.dims.push_back({d.value, ""});
        else
          t.dims.push_back({-1, d.param == "?" ? "" : std::string(d.param)});
      }
      return t;
    case Declared::kSequence: t.kind = Kind::kSequence; break;
    case Declared::kOptional: t.kind = Kind::kOptional; break;
    case Declared::kMap:
      t.kind = Kind::kMap;
      t.elem_type = declared.key_type;
      break;
    default: return MakeError("expected the type of a tensor, a sequence or an optional value");
  }
  if (declared.inner.empty()) return MakeError("expected a type, but the model gives none");
  TN_ASSIGN_OR_RETURN(ValueType inner, TypeOf(declared.inner[0]));
  // Elements need not agree in sizes that have a name.
  for (KnownSize& d : inner.dims) d.name.clear();
  t.inner.push_back(std::move(inner));
  return t;
}

Expected<ValueType> CommonType(const ValueType& a, const ValueType& b) {
  // What may be there and what is.
  if (a.kind == Kind::kOptional || b.kind == Kind::kOptional) {
    TN_ASSIGN_OR_RETURN(ValueType inner, CommonType(a.kind == Kind::kOptional ? a.element() : a,
                                                    b.kind == Kind::kOptional ? b.element() : b));
    return ValueType::Of(Kind::kOptional, std::move(inner));
  }
  if (a.kind != b.kind || (a.elem_type != b.elem_type && a.elem_type != 0 && b.elem_type != 0))
    return MakeError(
        fmt::format("expected values of one type, but got {} and {}", a.ToString(), b.ToString()));
  if (!a.IsTensor()) {
    TN_ASSIGN_OR_RETURN(ValueType inner, CommonType(a.element(), b.element()));
    ValueType out = a;
    out.inner[0] = std::move(inner);
    return out;
  }
  if (a.has_no_value) return b;
  if (b.has_no_value) return a;
  ValueType out = a;
  out.has_rank = a.has_rank && b.has_rank && a.dims.size() == b.dims.size();
  if (!out.has_rank) {
    const std::vector<int64_t> of_a = RanksOf(a), of_b = RanksOf(b);
    out.dims.clear();
    out.ranks.clear();
    if (!of_a.empty() && !of_b.empty())
      std::set_union(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                     std::back_inserter(out.ranks));
  }
  for (size_t i = 0; i < out.dims.size(); ++i) {
    if (a.dims[i] != b.dims[i]) out.dims[i] = {};
  }
  return out;
}

}  // namespace tenon::onnx
