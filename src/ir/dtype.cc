#include "ir/dtype.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "support/check.h"

namespace tenon {

namespace {

using Special = Minifloat::Special;

struct Float8Row {
  Float8 format;
  const char* text;
  const char* long_name;
  Minifloat numbers;
};

constexpr Float8Row kFloat8Rows[] = {
    {Float8::kE3M4, "f8e3m4", "float8_e3m4", {8, 3, 4, 3, Special::kInfinity}},
    {Float8::kE4M3, "f8e4m3", "float8_e4m3", {8, 4, 3, 7, Special::kInfinity}},
    {Float8::kE4M3B11Fnuz, "f8e4m3b11fnuz", "float8_e4m3b11fnuz", {8, 4, 3, 11, Special::kZero}},
    {Float8::kE4M3Fn, "f8e4m3fn", "float8_e4m3fn", {8, 4, 3, 7, Special::kFinite}},
    {Float8::kE4M3Fnuz, "f8e4m3fnuz", "float8_e4m3fnuz", {8, 4, 3, 8, Special::kZero}},
    {Float8::kE5M2, "f8e5m2", "float8_e5m2", {8, 5, 2, 15, Special::kInfinity}},
    {Float8::kE5M2Fnuz, "f8e5m2fnuz", "float8_e5m2fnuz", {8, 5, 2, 16, Special::kZero}},
    {Float8::kE8M0Fnu, "f8e8m0fnu", "float8_e8m0fnu", {8, 8, 0, 127, Special::kFinite}},
};

const Float8Row& RowOf(Float8 format) {
  for (const Float8Row& row : kFloat8Rows) {
    if (row.format == format) return row;
  }
  TN_UNREACHABLE();
}

}  // namespace

const Minifloat& FormatOf(Float8 format) { return RowOf(format).numbers; }

static const char* Letter(TypeCode code) {
  switch (code) {
    case TypeCode::kInt: return "i";
    case TypeCode::kUInt: return "u";
    case TypeCode::kFloat: return "f";
    case TypeCode::kBFloat: return "bf";
    case TypeCode::kFloat8: return "f8e";
    case TypeCode::kBool: return "bool";
    case TypeCode::kIndex: return "index";
    case TypeCode::kHandle: return "handle";
    case TypeCode::kString: return "string";
  }
  return "?";
}

static bool HasBits(TypeCode code) {
  return code != TypeCode::kBool && code != TypeCode::kIndex && code != TypeCode::kHandle &&
         code != TypeCode::kFloat8 && code != TypeCode::kString;
}

std::string DType::ToString() const {
  std::string out = IsFloat8() ? RowOf(float8).text : Letter(code);
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
    case TypeCode::kFloat8:
    case TypeCode::kString: break;
  }
  return false;
}

// What stands before "x16" or "x[4]", and is left of the text.
static std::optional<DType> TakeFloat8(std::string_view* text) {
  const Float8Row* longest = nullptr;
  for (const Float8Row& row : kFloat8Rows) {
    const std::string_view name = row.text;
    if (text->starts_with(name) && (!longest || name.size() > strlen(longest->text)))
      longest = &row;
  }
  if (!longest) return std::nullopt;
  text->remove_prefix(strlen(longest->text));
  return DType::OfFloat8(longest->format);
}

std::optional<DType> DType::Parse(std::string_view text) {
  // Longest names first, so that "index" is not read as "i".
  static constexpr TypeCode kOrder[] = {TypeCode::kHandle, TypeCode::kIndex, TypeCode::kBool,
                                        TypeCode::kBFloat, TypeCode::kInt,   TypeCode::kUInt,
                                        TypeCode::kFloat8, TypeCode::kFloat};
  for (TypeCode code : kOrder) {
    std::string_view letter = Letter(code);
    if (!text.starts_with(letter)) continue;
    std::string_view rest = text.substr(letter.size());
    DType type{code, static_cast<uint8_t>(code == TypeCode::kBool ? 1 : 64)};
    if (code == TypeCode::kFloat8) {
      rest = text;
      const std::optional<DType> found = TakeFloat8(&rest);
      if (!found) return std::nullopt;
      type = *found;
    }
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
    case TypeCode::kFloat8: return RowOf(type.float8).long_name;
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
  for (const Float8Row& row : kFloat8Rows) {
    if (name == row.long_name) return DType::OfFloat8(row.format);
  }
  return std::nullopt;
}

}  // namespace tenon
