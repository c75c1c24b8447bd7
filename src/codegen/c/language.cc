#include "codegen/c/language.h"

namespace tenon::codegen {

static constexpr TypeSpelling kTypes[] = {
    {DType::Bool(), "bool"},        {DType::Int(8), "int8_t"},       {DType::Int(16), "int16_t"},
    {DType::Int(32), "int32_t"},    {DType::Int(64), "int64_t"},     {DType::UInt(8), "uint8_t"},
    {DType::UInt(16), "uint16_t"},  {DType::UInt(32), "uint32_t"},   {DType::UInt(64), "uint64_t"},
    {DType::Float(16), "uint16_t"}, {DType::BFloat16(), "uint16_t"}, {DType::Float(32), "float"},
    {DType::Float(64), "double"},   {DType::Index(), "int64_t"},     {DType::Handle(), "void*"},
};

// rint rounds to nearest even, which is the mode of a program that does not change it.
static constexpr MathSpelling kMath[] = {
    {Intrinsic::kFma, "fmaf", "fma"},         {Intrinsic::kSqrt, "sqrtf", "sqrt"},
    {Intrinsic::kAbs, "fabsf", "fabs"},       {Intrinsic::kFloor, "floorf", "floor"},
    {Intrinsic::kCeil, "ceilf", "ceil"},      {Intrinsic::kTrunc, "truncf", "trunc"},
    {Intrinsic::kRoundEven, "rintf", "rint"}, {Intrinsic::kIsNan, "isnan", "isnan"},
    {Intrinsic::kIsInf, "isinf", "isinf"},
};

const Language& C11() {
  static const Language language = {
      .name = "C",
      .helper = "static inline",
      .hidden = "static",
      .visible = "TN_EXPORT",
      .restrict_word = "restrict",
      .copy = "memcpy",
      .align = "_Alignas({}) ",
      .unroll = nullptr,
      .divide = nullptr,
      .remainder_f32 = "fmodf",
      .reserved_words =
          "_Alignas _Alignof _Atomic _Bool _Complex _Generic _Imaginary _Noreturn "
          "_Static_assert _Thread_local NULL NAN INFINITY HUGE_VAL",
      .types = kTypes,
      .math = kMath,
      .wide = {},
      .helpers = {},
      .gpu = nullptr,
  };
  return language;
}

}  // namespace tenon::codegen
