#include "ir/dtype.h"

#include <fmt/format.h>

#include <charconv>

namespace tenon {

static const char* Letter(TypeCode code) {
  switch (code) {
    case TypeCode::kInt: return "i";
    case TypeCode::kUInt: return "u";
    case TypeCode::kFloat: return "f";
    case TypeCode::kBFloat: return "bf";
    case TypeCode::kBool: return "bool";
    case TypeCode::kIndex: return "index";
    case TypeCode::kHandle: return "handle";
    case TypeCode::kString: return "string";
  }
  return "?";
}

static bool HasBits(TypeCode code) {
  return code != TypeCode::kBool && code != TypeCode::kIndex && code != TypeCode::kHandle &&
         code != TypeCode::kString;
}

std::string DType::ToString() const {
  std::string out = Letter(code);
  if (HasBits(code)) out += std::to_string(bits);
  if (scalable) return out + fmt::format("x[{}]", lanes);
  if (lanes != 1) out += fmt::format("x{}", lanes);
  return out;
}

static std::optional<int> TakeNumber(std::string_view* text) {
  int value = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || value <= 0) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return value;
}

static bool ValidBits(TypeCode code, int bits) {
  switch (code) {
    case TypeCode::kInt:
    case TypeCode::kUInt:
      return bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16 || bits == 32 ||
             bits == 64;
    case TypeCode::kFloat: return bits == 16 || bits == 32 || bits == 64;
    case TypeCode::kBFloat: return bits == 16;
    case TypeCode::kBool:
    case TypeCode::kIndex:
    case TypeCode::kHandle: return true;
    case TypeCode::kString: break;
  }
  return false;
}

std::optional<DType> DType::Parse(std::string_view text) {
  // Longest names first, so that "index" is not read as "i".
  static constexpr TypeCode kOrder[] = {TypeCode::kHandle, TypeCode::kIndex, TypeCode::kBool,
                                        TypeCode::kBFloat, TypeCode::kInt,   TypeCode::kUInt,
                                        TypeCode::kFloat};
  for (TypeCode code : kOrder) {
    std::string_view letter = Letter(code);
    if (!text.starts_with(letter)) continue;
    std::string_view rest = text.substr(letter.size());
    DType type{code, static_cast<uint8_t>(code == TypeCode::kBool ? 1 : 64)};
    if (HasBits(code)) {
      auto bits = TakeNumber(&rest);
      if (!bits || !ValidBits(code, *bits)) return std::nullopt;
      type.bits = static_cast<uint8_t>(*bits);
    }
    if (rest.empty()) return type;
    if (!rest.starts_with("x")) return std::nullopt;
    rest.remove_prefix(1);
    bool scalable = rest.starts_with("[") && rest.ends_with("]");
    if (scalable) rest = rest.substr(1, rest.size() - 2);
    auto lanes = TakeNumber(&rest);
    if (!lanes || !rest.empty() || *lanes > 1 << 20) return std::nullopt;
    return type.WithLanes(*lanes, scalable);
  }
  return std::nullopt;
}

std::string LongName(DType type) {
  switch (type.code) {
    case TypeCode::kInt: return fmt::format("int{}", type.bits);
    case TypeCode::kUInt: return fmt::format("uint{}", type.bits);
    case TypeCode::kFloat: return fmt::format("float{}", type.bits);
    case TypeCode::kBFloat: return "bfloat16";
    case TypeCode::kBool: return "bool";
    case TypeCode::kIndex: return "index";
    case TypeCode::kHandle: return "handle";
    case TypeCode::kString: return "string";
  }
  return "?";
}

std::optional<DType> ParseLongName(std::string_view name) {
  static constexpr DType kTypes[] = {
      DType::Bool(),    DType::Int(8),    DType::Int(16),   DType::Int(32),  DType::Int(64),
      DType::UInt(8),   DType::UInt(16),  DType::UInt(32),  DType::UInt(64), DType::Float(16),
      DType::Float(32), DType::Float(64), DType::BFloat16()};
  for (DType type : kTypes) {
    if (LongName(type) == name) return type;
  }
  return std::nullopt;
}

}  // namespace tenon
