#include "codegen/opencl/language.h"

#include "codegen/c_family/helpers.h"

namespace tenon::codegen {

// No handles: a pointer without its address space says nothing.
static constexpr TypeSpelling kTypes[] = {
    {DType::Bool(), "bool"},        {DType::Int(8), "int8_t"},       {DType::Int(16), "int16_t"},
    {DType::Int(32), "int32_t"},    {DType::Int(64), "int64_t"},     {DType::UInt(8), "uint8_t"},
    {DType::UInt(16), "uint16_t"},  {DType::UInt(32), "uint32_t"},   {DType::UInt(64), "uint64_t"},
    {DType::Float(16), "uint16_t"}, {DType::BFloat16(), "uint16_t"}, {DType::Float(32), "float"},
    {DType::Float(64), "double"},   {DType::Index(), "int64_t"},
};

// What the standard allows them in f32, in units of the last place: 16 for pow and erf, 6 for
// atan2, 5 for tan, tanh, atan and atanh, 4 for the other functions of angles, hyperbolic ones and
// hypot, 3 for exponentials and logarithms, 2 for rsqrt.
static constexpr MathSpelling kMath[] = {
    {Intrinsic::kFma, "fma", "fma"},       {Intrinsic::kSqrt, "sqrt", "sqrt"},
    {Intrinsic::kRsqrt, "rsqrt", "rsqrt"}, {Intrinsic::kAbs, "fabs", "fabs"},
    {Intrinsic::kFloor, "floor", "floor"}, {Intrinsic::kCeil, "ceil", "ceil"},
    {Intrinsic::kTrunc, "trunc", "trunc"}, {Intrinsic::kRoundEven, "rint", "rint"},
    {Intrinsic::kIsNan, "isnan", "isnan"}, {Intrinsic::kIsInf, "isinf", "isinf"},
    {Intrinsic::kExp, "exp", "exp"},       {Intrinsic::kExp2, "exp2", "exp2"},
    {Intrinsic::kLog, "log", "log"},       {Intrinsic::kLog2, "log2", "log2"},
    {Intrinsic::kPow, "pow", "pow"},       {Intrinsic::kSin, "sin", "sin"},
    {Intrinsic::kCos, "cos", "cos"},       {Intrinsic::kTan, "tan", "tan"},
    {Intrinsic::kTanh, "tanh", "tanh"},    {Intrinsic::kErf, "erf", "erf"},
    {Intrinsic::kExp10, "exp10", "exp10"}, {Intrinsic::kExpm1, "expm1", "expm1"},
    {Intrinsic::kLog10, "log10", "log10"}, {Intrinsic::kLog1p, "log1p", "log1p"},
    {Intrinsic::kAsin, "asin", "asin"},    {Intrinsic::kAcos, "acos", "acos"},
    {Intrinsic::kAtan, "atan", "atan"},    {Intrinsic::kAtan2, "atan2", "atan2"},
    {Intrinsic::kSinh, "sinh", "sinh"},    {Intrinsic::kCosh, "cosh", "cosh"},
    {Intrinsic::kAsinh, "asinh", "asinh"}, {Intrinsic::kAcosh, "acosh", "acosh"},
    {Intrinsic::kAtanh, "atanh", "atanh"}, {Intrinsic::kHypot, "hypot", "hypot"},
};

// Vector types, which may alias what they are made of.
static constexpr WideSpelling kWide[] = {
    {16, "uint4", "float4"}, {8, "uint2", "float2"}, {4, "uchar4", "float"}, {2, "uchar2", ""}};

// Floats are updated by comparing and swapping their bits: OpenCL's atomics are of integers.
#define TN_ATOMIC(family, space, condition, next)                           \
  {family, kFloats,                                                         \
   "{q} void tn_" family "_{t}(volatile " space                             \
   " {T}* p, {T} v) {{\n"                                                   \
   "  union {{\n    {T} value;\n    {W} bits;\n  }} seen, next;\n"          \
   "  seen.value = *p;\n  while (" condition ") {{\n    next.value = " next \
   ";\n"                                                                    \
   "    const {W} old =\n"                                                  \
   "        tn_cmpxchg_{B}((volatile " space                                \
   " {W}*)p, seen.bits, next.bits);\n"                                      \
   "    if (old == seen.bits) break;\n    seen.bits = old;\n  }}\n}}\n"}

static constexpr HelperRow kHelpers[] = {
    {"bits", kInts | kFloats | kOther,
     "{q} {T} tn_bits_{t}_{f}({F} v) {{\n  union {{\n    {F} from;\n    {T} to;\n  }} r;\n"
     "  r.from = v;\n  return r.to;\n}}\n"},
    {"muladd", kFloats,
     "{q} {T} tn_muladd_{t}({T} a, {T} b, {T} c) {{\n"
     "#if defined(FP_FAST_FMA{S})\n  return fma(a, b, c);\n#else\n  return a * b + c;\n"
     "#endif\n}}\n"},
    {"sigmoid", kFloats, "{q} {T} tn_sigmoid_{t}({T} v) {{\n  return 1 / (1 + exp(-v));\n}}\n"},
    {"popcount", kInts, "{q} {T} tn_popcount_{t}({T} v) {{\n  return ({T})popcount(({U})v);\n}}\n"},
    {"clz", kInts, "{q} {T} tn_clz_{t}({T} v) {{\n  return ({T})clz(({U})v);\n}}\n"},
    TN_ATOMIC("atomic_add_global", "__global", "true", "seen.value + v"),
    TN_ATOMIC("atomic_add_shared", "__local", "true", "seen.value + v"),
    TN_ATOMIC("atomic_min_global", "__global", "!(seen.value <= v) && v == v", "v"),
    TN_ATOMIC("atomic_min_shared", "__local", "!(seen.value <= v) && v == v", "v"),
    TN_ATOMIC("atomic_max_global", "__global", "!(seen.value >= v) && v == v", "v"),
    TN_ATOMIC("atomic_max_shared", "__local", "!(seen.value >= v) && v == v", "v"),
};
#undef TN_ATOMIC

static constexpr AxisSpelling kAxes[] = {
    {ThreadAxis::kBlockIdxX, "get_group_id(0)"},  {ThreadAxis::kBlockIdxY, "get_group_id(1)"},
    {ThreadAxis::kBlockIdxZ, "get_group_id(2)"},  {ThreadAxis::kThreadIdxX, "get_local_id(0)"},
    {ThreadAxis::kThreadIdxY, "get_local_id(1)"}, {ThreadAxis::kThreadIdxZ, "get_local_id(2)"},
};

// Those of 64 bits are extensions, with names of their own.
static constexpr AtomicSpelling kAtomics[] = {
    {BinaryOp::kAdd, DType::Int(32), "atomic_add", "int"},
    {BinaryOp::kAdd, DType::UInt(32), "atomic_add", "uint"},
    {BinaryOp::kAdd, DType::Int(64), "atom_add", "long"},
    {BinaryOp::kAdd, DType::UInt(64), "atom_add", "ulong"},
    {BinaryOp::kAdd, DType::Float(32), nullptr, "float"},
    {BinaryOp::kAdd, DType::Float(64), nullptr, "double"},
    {BinaryOp::kMin, DType::Int(32), "atomic_min", "int"},
    {BinaryOp::kMin, DType::UInt(32), "atomic_min", "uint"},
    {BinaryOp::kMin, DType::Int(64), "atom_min", "long"},
    {BinaryOp::kMin, DType::UInt(64), "atom_min", "ulong"},
    {BinaryOp::kMin, DType::Float(32), nullptr, "float"},
    {BinaryOp::kMin, DType::Float(64), nullptr, "double"},
    {BinaryOp::kMax, DType::Int(32), "atomic_max", "int"},
    {BinaryOp::kMax, DType::UInt(32), "atomic_max", "uint"},
    {BinaryOp::kMax, DType::Int(64), "atom_max", "long"},
    {BinaryOp::kMax, DType::UInt(64), "atom_max", "ulong"},
    {BinaryOp::kMax, DType::Float(32), nullptr, "float"},
    {BinaryOp::kMax, DType::Float(64), nullptr, "double"},
    {BinaryOp::kBitAnd, DType::Int(32), "atomic_and", "int"},
    {BinaryOp::kBitAnd, DType::UInt(32), "atomic_and", "uint"},
    {BinaryOp::kBitAnd, DType::Int(64), "atom_and", "long"},
    {BinaryOp::kBitAnd, DType::UInt(64), "atom_and", "ulong"},
    {BinaryOp::kBitOr, DType::Int(32), "atomic_or", "int"},
    {BinaryOp::kBitOr, DType::UInt(32), "atomic_or", "uint"},
    {BinaryOp::kBitOr, DType::Int(64), "atom_or", "long"},
    {BinaryOp::kBitOr, DType::UInt(64), "atom_or", "ulong"},
    {BinaryOp::kBitXor, DType::Int(32), "atomic_xor", "int"},
    {BinaryOp::kBitXor, DType::UInt(32), "atomic_xor", "uint"},
    {BinaryOp::kBitXor, DType::Int(64), "atom_xor", "long"},
    {BinaryOp::kBitXor, DType::UInt(64), "atom_xor", "ulong"},
};

static constexpr char kPreamble[] =
    R"(// The arithmetic is exact about roundings: build with -cl-fp32-correctly-rounded-divide-sqrt where
// the device can, and without -cl-fast-relaxed-math or -cl-denorms-are-zero.
#pragma OPENCL FP_CONTRACT OFF
typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INT64_MIN (-9223372036854775807L - 1)
#define INT64_MAX 9223372036854775807L
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295u
#define UINT64_MAX 18446744073709551615UL
#define INT64_C(value) value##L
#define UINT64_C(value) value##UL
)";

static constexpr char kDoubles[] = R"(
#if defined(cl_khr_fp64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#elif !defined(__opencl_c_fp64)
#error "this code computes in f64, but the device has no cl_khr_fp64"
#endif
)";

static constexpr char kAtomics64[] = R"(
#if defined(cl_khr_int64_base_atomics)
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#else
#error "this code updates 64 bits at once, but the device has no cl_khr_int64_base_atomics"
#endif
)";

static constexpr char kMoreAtomics64[] = R"(
#if defined(cl_khr_int64_extended_atomics)
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
#else
#error "this code updates 64 bits at once, but the device has no cl_khr_int64_extended_atomics"
#endif
)";

static constexpr PreambleSpelling kPreambles[] = {
    {"double", kDoubles},
    {"atom_add tn_cmpxchg_64", kAtomics64},
    {"atom_min atom_max atom_and atom_or atom_xor", kMoreAtomics64},
    {"tn_cmpxchg_32", "#define tn_cmpxchg_32 atomic_cmpxchg\n"},
    {"tn_cmpxchg_64", "#define tn_cmpxchg_64 atom_cmpxchg\n"},
    {"TN_PREFETCH", "#define TN_PREFETCH(address, write, nearness) ((void)(address))\n"},
};

static constexpr GpuSpelling kGpu = {
    .shared = "__local",
    .dynamic_shared = nullptr,
    .threads = "__attribute__((reqd_work_group_size({1}, {2}, {3})))",
    .global_space = "__global ",
    .shared_space = "__local ",
    .shared_first = true,
    .axes = kAxes,
    .sync_cta = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    .sync_warp = nullptr,
    // PoCL 3.1, which puts a barrier of its own there, loses the branch's other way and aborts.
    .barrier_ends_loop = true,
    .fence_cta = "mem_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    .fence_grid = nullptr,
    .atomics = kAtomics,
    .preamble = kPreamble,
    .preambles = kPreambles,
};

const Language& OpenClC() {
  static const Language language = {
      .name = "OpenCL C",
      .helper = "static inline",
      .hidden = "static",
      .visible = "__kernel",
      .restrict_word = "restrict",
      .copy = nullptr,
      .align = "__attribute__((aligned({}))) ",
      .unroll = "#pragma unroll",
      .divide = nullptr,
      .remainder_f32 = "fmod",
      .reserved_words =
          "kernel global local constant generic pipe read_only write_only read_write half uchar "
          "ushort uint ulong size_t ptrdiff_t intptr_t uintptr_t event_t sampler_t complex "
          "imaginary quad float2 float3 float4 float8 float16 uint2 uint4 uchar2 uchar4 NAN "
          "INFINITY NULL MAXFLOAT HUGE_VAL HUGE_VALF rsqrt isnan isinf isfinite isnormal isequal "
          "isless isgreater isordered isunordered signbit sign step smoothstep mix clamp degrees "
          "radians min max mad mad24 mul24 mad_hi mul_hi rotate select bitselect shuffle shuffle2 "
          "upsample popcount clz ctz hadd rhadd abs_diff add_sat sub_sat any all dot cross length "
          "distance normalize fast_length fast_distance fast_normalize fract fdim maxmag minmag "
          "rootn pown powr sincos sinpi cospi tanpi asin acos atan atan2 sinh cosh asinh acosh "
          "atanh expm1 log1p logb ilogb lgamma tgamma erfc exp10 barrier mem_fence "
          "read_mem_fence write_mem_fence prefetch get_group_id get_local_id get_global_id "
          "get_global_size get_local_size get_num_groups get_work_dim get_global_offset "
          "atomic_add atomic_sub atomic_xchg atomic_inc atomic_dec atomic_cmpxchg atomic_min "
          "atomic_max atomic_and atomic_or atomic_xor atom_add atom_sub atom_xchg atom_inc "
          "atom_dec atom_cmpxchg atom_min atom_max atom_and atom_or atom_xor "
          "async_work_group_copy wait_group_events image1d_t image1d_array_t image1d_buffer_t "
          "image2d_t image2d_array_t image2d_depth_t image2d_array_depth_t image2d_msaa_t "
          "image3d_t queue_t ndrange_t clk_event_t reserve_id_t cl_mem_fence_flags memory_order "
          "memory_scope atomic_int atomic_uint atomic_long atomic_ulong atomic_float atomic_double "
          "atomic_flag char2 char3 char4 char8 char16 uchar3 uchar8 uchar16 short2 short3 short4 "
          "short8 short16 ushort2 ushort3 ushort4 ushort8 ushort16 int2 int3 int4 int8 int16 uint3 "
          "uint8 uint16 long2 long3 long4 long8 long16 ulong2 ulong3 ulong4 ulong8 ulong16 half2 "
          "half3 half4 half8 half16 double2 double3 double4 double8 double16",
      .types = kTypes,
      .math = kMath,
      .wide = kWide,
      .helpers = kHelpers,
      .gpu = &kGpu,
  };
  return language;
}

}  // namespace tenon::codegen
