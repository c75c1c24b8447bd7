#include "tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cstring>

#include "ir/expr.h"
#include "support/half.h"

namespace tenon::tools {

namespace {

// An element of 16 bits, as what it stands for.
struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  explicit Float16(double value) : bits(HalfBits(RoundToType(DType::Float(16), value))) {}
  explicit operator double() const { return HalfValue(bits); }
};
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(double value)
      : bits(static_cast<uint16_t>(
            std::bit_cast<uint32_t>(static_cast<float>(RoundToType(DType::BFloat16(), value))) >>
            16)) {}
  explicit operator double() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

template <Float8 format>
struct Byte {
  uint8_t bits = 0;
  Byte() = default;
  explicit Byte(double value)
      : bits(static_cast<uint8_t>(FormatOf(format).CodeOf(FormatOf(format).Round(value)))) {}
  explicit operator double() const { return FormatOf(format).NumberOf(bits); }
};

template <class F>
auto WithFloat8(Float8 format, F&& f) {
  switch (format) {
    case Float8::kE3M4: return f(Byte<Float8::kE3M4>{});
    case Float8::kE4M3: return f(Byte<Float8::kE4M3>{});
    case Float8::kE4M3B11Fnuz: return f(Byte<Float8::kE4M3B11Fnuz>{});
    case Float8::kE4M3Fn: return f(Byte<Float8::kE4M3Fn>{});
    case Float8::kE4M3Fnuz: return f(Byte<Float8::kE4M3Fnuz>{});
    case Float8::kE5M2: return f(Byte<Float8::kE5M2>{});
    case Float8::kE5M2Fnuz: return f(Byte<Float8::kE5M2Fnuz>{});
    case Float8::kNone:
    case Float8::kE8M0Fnu: break;
  }
  return f(Byte<Float8::kE8M0Fnu>{});
}

// Calls f with a value of the C++ type that a plain element type has.
template <class F>
auto WithType(tn_dl_data_type type, F&& f) {
  if (IsFloat8(type)) return WithFloat8(static_cast<Float8>(type.code), std::forward<F>(f));
  switch (type.code) {
    case TN_DL_FLOAT:
      return type.bits == 16 ? f(Float16{}) : type.bits == 32 ? f(float{}) : f(double{});
    case TN_DL_BFLOAT: return f(BFloat16{});
    case TN_DL_BOOL: return f(uint8_t{});
    case TN_DL_INT:
      switch (type.bits) {
        case 8: return f(int8_t{});
        case 16: return f(int16_t{});
        case 32: return f(int32_t{});
        default: return f(int64_t{});
      }
    default:
      switch (type.bits) {
        case 8: return f(uint8_t{});
        case 16: return f(uint16_t{});
        case 32: return f(uint32_t{});
        default: return f(uint64_t{});
      }
  }
}

}  // namespace

Diagnostic ApiError() {
  const char* kind = "";
  const char* message = tn_last_error(&kind);
  return std::string_view(kind) == "MemoryError" ? MakeLimitError(message) : MakeError(message);
}

bool IsFloat8(tn_dl_data_type type) {
  return type.bits == 8 && type.lanes == 1 && type.code >= static_cast<uint8_t>(Float8::kE3M4) &&
         type.code <= static_cast<uint8_t>(Float8::kE8M0Fnu);
}

std::string ToString(tn_dl_data_type type) {
  if (IsFloat8(type)) return LongName(DType::OfFloat8(static_cast<Float8>(type.code)));
  if (IsText(type)) return "string";
  switch (type.code) {
    case TN_DL_INT: return fmt::format("int{}", type.bits);
    case TN_DL_UINT: return fmt::format("uint{}", type.bits);
    case TN_DL_FLOAT: return fmt::format("float{}", type.bits);
    case TN_DL_BFLOAT: return fmt::format("bfloat{}", type.bits);
    case TN_DL_BOOL: return "bool";
    default: return fmt::format("type {} of {} bits", type.code, type.bits);
  }
}

std::string ShapeText(std::span<const int64_t> shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

bool IsPlainType(tn_dl_data_type type) {
  if (type.lanes != 1) return false;
  if (IsFloat8(type)) return true;
  switch (type.code) {
    case TN_DL_FLOAT: return type.bits == 16 || type.bits == 32 || type.bits == 64;
    case TN_DL_BFLOAT: return type.bits == 16;
    case TN_DL_BOOL: return type.bits == 8;
    case TN_DL_INT:
    case TN_DL_UINT: return type.bits == 8 || type.bits == 16 || type.bits == 32 || type.bits == 64;
    default: return false;
  }
}

Expected<Tensor> Tensor::Make(tn_dl_data_type dtype, const std::vector<int64_t>& shape,
                              tn_dl_device device) {
  tn_tensor_t* tensor = nullptr;
  auto ndim = static_cast<int32_t>(shape.size());
  if (tn_tensor_make(dtype, ndim, shape.data(), device, &tensor) != 0) return ApiError();
  return Tensor(tensor);
}

int64_t Tensor::num_elements() const {
  int64_t count = 1;
  for (int64_t extent : shape()) count *= extent;
  return count;
}

std::span<std::byte> Tensor::bytes() const {
  const tn_dl_tensor& view = tensor_->dl_tensor;
  return {static_cast<std::byte*>(view.data) + view.byte_offset,
          static_cast<size_t>(tn_tensor_bytes(tensor_))};
}

Expected<Tensor> Tensor::AsFloat8(tn_dl_data_type type) const {
  if (!IsFloat8(type) || !(dtype() == tn_dl_data_type{TN_DL_UINT, 8, 1})) return *this;
  TN_ASSIGN_OR_RETURN(Tensor out, Make(type, {shape().begin(), shape().end()}));
  std::copy(bytes().begin(), bytes().end(), out.bytes().begin());
  return out;
}

double Tensor::At(int64_t i) const {
  return WithType(dtype(), [&](auto value) {
    std::memcpy(&value, bytes().data() + static_cast<size_t>(i) * sizeof value, sizeof value);
    return static_cast<double>(value);
  });
}

void Tensor::Set(int64_t i, double value) {
  WithType(dtype(), [&](auto kind) {
    auto element = static_cast<decltype(kind)>(value);
    std::memcpy(bytes().data() + static_cast<size_t>(i) * sizeof element, &element, sizeof element);
  });
}

const Tensor* Find(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [key, tensor] : tensors) {
    if (key == name) return &tensor;
  }
  return nullptr;
}

}  // namespace tenon::tools
