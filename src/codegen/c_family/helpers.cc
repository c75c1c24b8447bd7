#include "codegen/c_family/helpers.h"

#include <fmt/format.h>

#include <vector>

#include "support/check.h"

namespace tenon::codegen {

namespace {

// In the order they are written out: what a text calls stands before it.
constexpr HelperRow kRows[] = {
    {"bits", kInts | kFloats | kOther,
     "{q} {T} tn_bits_{t}_{f}({F} v) {{\n  {T} r;\n  memcpy(&r, &v, sizeof r);\n  return r;\n}}\n",
     ""},
    {"load", kMemory,
     "{q} {T} tn_load_{t}(const void* p, int64_t offset) {{\n  {T} r;\n"
     "  memcpy(&r, (const char*)p + offset, sizeof r);\n  return r;\n}}\n",
     ""},
    {"store", kMemory,
     "{q} void tn_store_{t}(void* p, int64_t offset, {T} v) {{\n"
     "  memcpy((char*)p + offset, &v, sizeof v);\n}}\n",
     ""},
    // Placing exponent and mantissa in an f32 gives the value over 2^112, denormals included.
    {"widen", kF16,
     "{q} float tn_widen_f16(uint16_t h) {{\n"
     "  const uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13;\n"
     "  const uint32_t scaled = tn_bits_u32_f32(tn_bits_f32_u32(magnitude) * 0x1p112f);\n"
     "  const uint32_t special = magnitude | 0x7f800000;\n"
     "  const uint32_t sign = (uint32_t)(h & 0x8000) << 16;\n"
     "  return tn_bits_f32_u32((magnitude >= 0x0f800000 ? special : scaled) | sign);\n}}\n",
     "bits:u32:f32 bits:f32:u32"},
    {"widen", kBF16,
     "{q} float tn_widen_bf16(uint16_t h) {{\n"
     "  return tn_bits_f32_u32((uint32_t)h << 16);\n}}\n",
     "bits:f32:u32"},
    // Normal results round at bit 13 and move the exponent; adding 1/2 puts the unit of denormal
    // ones at the last bit.
    {"narrow", kF16,
     "{q} uint16_t tn_narrow_f16(float v) {{\n"
     "  const uint32_t bits = tn_bits_u32_f32(v);\n"
     "  const uint32_t magnitude = bits & 0x7fffffff;\n"
     "  const uint32_t sign = bits >> 16 & 0x8000;\n"
     "  if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));\n"
     "  if (magnitude >= 0x47800000) return (uint16_t)(sign | 0x7c00);\n"
     "  if (magnitude < 0x38800000) {{\n"
     "    const float tiny = tn_bits_f32_u32(magnitude) + 0.5f;\n"
     "    return (uint16_t)(sign | (tn_bits_u32_f32(tiny) - 0x3f000000));\n  }}\n"
     "  return (uint16_t)(sign |\n"
     "                    ((magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13));\n}}\n",
     "bits:u32:f32 bits:f32:u32"},
    {"narrow", kBF16,
     "{q} uint16_t tn_narrow_bf16(float v) {{\n"
     "  const uint32_t bits = tn_bits_u32_f32(v);\n"
     "  if (v != v) return (uint16_t)(bits >> 16 | 0x40);\n"
     "  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);\n}}\n",
     "bits:u32:f32"},
    // f64 to f32 with an inexact result made odd: rounding it further to 16 bits is as if once.
    {"odd", kFloats,
     "{q} float tn_odd_f32(double v) {{\n"
     "  const float near = (float)v;\n"
     "  const double back = near;\n"
     "  uint32_t bits = tn_bits_u32_f32(near);\n"
     "  bits -= fabs(back) > fabs(v) ? 1 : 0;\n"
     "  return tn_bits_f32_u32(bits | (back < v || back > v ? 1 : 0));\n}}\n",
     "bits:u32:f32 bits:f32:u32"},
    {"div", kSigned,
     "{q} {T} tn_div_{t}({T} a, {T} b) {{\n  if (b == 0) return 0;\n"
     "  return ({T})(b == -1 ? ({T})(0 - ({W})a) : a / b);\n}}\n",
     ""},
    {"div", kUnsigned,
     "{q} {T} tn_div_{t}({T} a, {T} b) {{\n  return ({T})(b == 0 ? 0 : a / b);\n}}\n", ""},
    {"mod", kSigned,
     "{q} {T} tn_mod_{t}({T} a, {T} b) {{\n"
     "  return ({T})(b == 0 || b == -1 ? 0 : a % b);\n}}\n",
     ""},
    {"mod", kUnsigned,
     "{q} {T} tn_mod_{t}({T} a, {T} b) {{\n  return ({T})(b == 0 ? 0 : a % b);\n}}\n", ""},
    {"divisor", kSigned, "{q} {T} tn_divisor_{t}({T} d) {{\n  return d == 0 ? 1 : d;\n}}\n", ""},
    {"floordiv", kSigned,
     "{q} {T} tn_floordiv_{t}({T} a, {T} b) {{\n"
     "  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);\n}}\n",
     ""},
    {"floormod", kSigned,
     "{q} {T} tn_floormod_{t}({T} a, {T} b) {{\n  const {T} r = a % b;\n"
     "  return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n}}\n",
     ""},
    {"min", kInts, "{q} {T} tn_min_{t}({T} a, {T} b) {{\n  return a < b ? a : b;\n}}\n", ""},
    {"max", kInts, "{q} {T} tn_max_{t}({T} a, {T} b) {{\n  return a > b ? a : b;\n}}\n", ""},
    {"min", kFloats, "{q} {T} tn_min_{t}({T} a, {T} b) {{\n  return a < b || b != b ? a : b;\n}}\n",
     ""},
    {"max", kFloats, "{q} {T} tn_max_{t}({T} a, {T} b) {{\n  return a > b || b != b ? a : b;\n}}\n",
     ""},
    {"lt", kUnsigned, "{q} bool tn_lt_{t}({T} a, {T} b) {{\n  return a < b;\n}}\n", ""},
    {"le", kUnsigned, "{q} bool tn_le_{t}({T} a, {T} b) {{\n  return a <= b;\n}}\n", ""},
    {"shl", kInts,
     "{q} {T} tn_shl_{t}({T} a, {T} b) {{\n"
     "  return ({T})(({U})b < {B} ? ({W})a << b : 0);\n}}\n",
     ""},
    {"shr", kUnsigned,
     "{q} {T} tn_shr_{t}({T} a, {T} b) {{\n  return ({T})(b < {B} ? a >> b : 0);\n}}\n", ""},
    {"shr", kSigned,
     "{q} {T} tn_shr_{t}({T} a, {T} b) {{\n"
     "  return ({T})(a >> (({U})b < {B} ? b : {B} - 1));\n}}\n",
     ""},
    {"abs", kSigned,
     "{q} {T} tn_abs_{t}({T} a) {{\n  return ({T})(a < 0 ? 0 - ({W})a : ({W})a);\n}}\n", ""},
    {"pow", kSigned,
     "{q} {T} tn_pow_{t}({T} base, {T} exponent) {{\n"
     "  if (exponent < 0) return ({T})(base == 1 ? 1 : base != -1 ? 0 : exponent % 2 != 0 ? -1 : "
     "1);\n"
     "  {W} result = 1, square = ({W})base;\n"
     "  for ({W} rest = ({W})exponent; rest != 0; rest >>= 1) {{\n"
     "    if (rest & 1) result *= square;\n    square *= square;\n  }}\n"
     "  return ({T})result;\n}}\n",
     ""},
    {"pow", kUnsigned,
     "{q} {T} tn_pow_{t}({T} base, {T} exponent) {{\n  {W} result = 1, square = base;\n"
     "  for ({W} rest = exponent; rest != 0; rest >>= 1) {{\n"
     "    if (rest & 1) result *= square;\n    square *= square;\n  }}\n"
     "  return ({T})result;\n}}\n",
     ""},
    {"popcount", kInts,
     "{q} {T} tn_popcount_{t}({T} v) {{\n  int count = 0;\n"
     "  for ({U} rest = ({U})v; rest != 0; rest &= ({U})(rest - 1)) ++count;\n"
     "  return ({T})count;\n}}\n",
     ""},
    {"clz", kInts,
     "{q} {T} tn_clz_{t}({T} v) {{\n  int count = {B};\n"
     "  for ({U} rest = ({U})v; rest != 0; rest = ({U})(rest >> 1)) --count;\n"
     "  return ({T})count;\n}}\n",
     ""},
    {"cast", kSigned,
     "{q} {T} tn_cast_{t}_{f}({F} v) {{\n  if (v >= {ABOVE}) return {MAX};\n"
     "  if (v >= -{ABOVE}) return ({T})v;\n  return v < 0 ? {MIN} : 0;\n}}\n",
     ""},
    {"cast", kUnsigned,
     "{q} {T} tn_cast_{t}_{f}({F} v) {{\n  if (v >= {ABOVE}) return {MAX};\n"
     "  return v > 0 ? ({T})v : 0;\n}}\n",
     ""},
    // One rounding where the machine has the instruction, two where it would be a library call.
    {"muladd", kFloats,
     "{q} {T} tn_muladd_{t}({T} a, {T} b, {T} c) {{\n"
     "#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(FP_FAST_FMA{S})\n"
     "  return fma{s}(a, b, c);\n#else\n  return a * b + c;\n#endif\n}}\n",
     ""},
};

unsigned ClassOf(DType type) {
  switch (type.code) {
    case TypeCode::kInt:
    case TypeCode::kIndex: return kSigned;
    case TypeCode::kUInt: return kUnsigned;
    case TypeCode::kFloat: return type.bits == 16 ? kF16 : kFloats;
    case TypeCode::kBFloat: return kBF16;
    case TypeCode::kFloat8:  // bytes here
    case TypeCode::kBool:
    case TypeCode::kHandle:
    case TypeCode::kString: return kOther;
  }
  TN_UNREACHABLE();
}

DType Canonical(DType type) {
  if (type.IsFloat8()) return DType::UInt(8);
  return type.IsIndex() ? DType::Int(64) : type.Element();
}

DType TypeNamed(const std::string& text) {
  auto type = DType::Parse(text);
  TN_CHECK(type, "no type {}", text);
  return *type;
}

std::string Limit(DType type, bool most) {
  if (type.IsSigned()) return fmt::format("INT{}_{}", type.bits, most ? "MAX" : "MIN");
  return most ? fmt::format("UINT{}_MAX", type.bits) : "0";
}

}  // namespace

static const HelperRow* FindRow(std::span<const HelperRow> rows, const std::string& family,
                                DType type) {
  for (const HelperRow& row : rows) {
    if (family == row.family && (ClassOf(type) & row.classes) != 0) return &row;
  }
  return nullptr;
}

// Its place in the order of writing too: a language's own stands where it replaces one of ours,
// else last, since nothing of ours calls it.
const HelperRow* Helpers::Find(const std::string& family, DType type, size_t* place) const {
  const HelperRow* own = FindRow(language_.helpers, family, type);
  const HelperRow* ours = FindRow(kRows, family, type);
  *place = std::size(kRows);
  if (own) *place += static_cast<size_t>(own - language_.helpers.data());
  if (ours) *place = static_cast<size_t>(ours - std::begin(kRows));
  return own ? own : ours;
}

bool Helpers::Has(const std::string& family, DType type) const {
  size_t place = 0;
  return Find(family, Canonical(type), &place) != nullptr;
}

std::string Helpers::Use(const std::string& family, DType given, DType given_from) {
  const DType type = Canonical(given), from = Canonical(given_from);
  size_t place = 0;
  if (const HelperRow* found = Find(family, type, &place)) {
    const HelperRow& row = *found;
    const bool is_signed = type.IsSigned(), is_double = type.bits == 64;
    const char* wide = type.bits == 64 ? "uint64_t" : "uint32_t";
    const char* unsigned_name = language_.TypeName(DType::UInt(type.IsInt() ? type.bits : 8));
    texts_.emplace(
        static_cast<int>(place),
        fmt::format(fmt::runtime(row.text), fmt::arg("q", language_.helper),
                    fmt::arg("T", language_.TypeName(type)), fmt::arg("t", type.ToString()),
                    fmt::arg("F", language_.TypeName(from)), fmt::arg("f", from.ToString()),
                    fmt::arg("U", unsigned_name), fmt::arg("W", wide), fmt::arg("B", type.bits),
                    fmt::arg("MIN", Limit(type, false)), fmt::arg("MAX", Limit(type, true)),
                    fmt::arg("ABOVE", fmt::format("0x1p{}{}", is_signed ? type.bits - 1 : type.bits,
                                                  from.bits == 64 ? "" : "f")),
                    fmt::arg("s", is_double ? "" : "f"), fmt::arg("S", is_double ? "" : "F")));
    std::string needs = row.needs;
    for (size_t at = 0; at < needs.size();) {  // "family:type:from family:type:from"
      const size_t end = std::min(needs.find(' ', at), needs.size());
      const std::string need = needs.substr(at, end - at);
      const size_t first = need.find(':'), second = need.find(':', first + 1);
      Use(need.substr(0, first), TypeNamed(need.substr(first + 1, second - first - 1)),
          TypeNamed(need.substr(second + 1)));
      at = end + 1;
    }
    std::string name = fmt::format("tn_{}_{}", family, type.ToString());
    return std::string(row.text).find("_{f}") == std::string::npos
               ? name
               : fmt::format("{}_{}", name, from.ToString());
  }
  TN_CHECK(false, "no helper {} for {}", family, type.ToString());
  TN_UNREACHABLE();
}

std::string Helpers::Text() const {
  std::string out;
  for (const auto& [place, text] : texts_) out += text;
  return out;
}

}  // namespace tenon::codegen
