// CUDA C++ as a row of the C family: how things are written, in tables.
//
// The family's emitters know what to say; this file knows how CUDA says it: types, functions with
// their accuracy, a thread's place on an axis, barriers of each level, atomics, wide accesses, and
// helpers for what has no operator, of which each is written into a file only where it is used. So
//
//   for t in 0..128 thread threadIdx.x { sync cta }
//
// becomes, by the rows {ThreadAxis::kThreadIdxX, "threadIdx.x"} and sync_cta,
//
//   const int32_t t = (int32_t)threadIdx.x;
//   __syncthreads();
//
// Halves are the 16 bits that they are in memory and floats where they are computed with, so a
// program needs none of CUDA's headers.

#include "codegen/cuda/language.h"

#include "codegen/c_family/helpers.h"

namespace tenon::codegen {

static constexpr TypeSpelling kTypes[] = {
    {DType::Bool(), "bool"},        {DType::Int(8), "int8_t"},       {DType::Int(16), "int16_t"},
    {DType::Int(32), "int32_t"},    {DType::Int(64), "int64_t"},     {DType::UInt(8), "uint8_t"},
    {DType::UInt(16), "uint16_t"},  {DType::UInt(32), "uint32_t"},   {DType::UInt(64), "uint64_t"},
    {DType::Float(16), "uint16_t"}, {DType::BFloat16(), "uint16_t"}, {DType::Float(32), "float"},
    {DType::Float(64), "double"},   {DType::Index(), "int64_t"},     {DType::Handle(), "void*"},
};

// Precise functions of CUDA's library, within 2 units in the last place but for pow, tan and acosh
// (4) and sinh, asinh, atanh, atan2 and hypot (3); erf is a quotient of polynomials, within 4e-7 of
// 1, at half the library's cost. The approximate ones are single instructions:
// e^x loses a unit per 1.2 in |x|.
static constexpr MathSpelling kMath[] = {
    {Intrinsic::kFma, "fmaf", "fma"},           {Intrinsic::kSqrt, "sqrtf", "sqrt"},
    {Intrinsic::kRsqrt, "rsqrtf", "rsqrt"},     {Intrinsic::kAbs, "fabsf", "fabs"},
    {Intrinsic::kFloor, "floorf", "floor"},     {Intrinsic::kCeil, "ceilf", "ceil"},
    {Intrinsic::kTrunc, "truncf", "trunc"},     {Intrinsic::kRoundEven, "rintf", "rint"},
    {Intrinsic::kIsNan, "isnan", "isnan"},      {Intrinsic::kIsInf, "isinf", "isinf"},
    {Intrinsic::kExp, "expf", "exp", "__expf"}, {Intrinsic::kExp2, "exp2f", "exp2"},
    {Intrinsic::kLog, "logf", "log"},           {Intrinsic::kLog2, "log2f", "log2"},
    {Intrinsic::kPow, "powf", "pow"},           {Intrinsic::kSin, "sinf", "sin"},
    {Intrinsic::kCos, "cosf", "cos"},           {Intrinsic::kTan, "tanf", "tan"},
    {Intrinsic::kTanh, "tanhf", "tanh"},        {Intrinsic::kErf, nullptr, "erf"},
    {Intrinsic::kExp10, "exp10f", "exp10"},     {Intrinsic::kExpm1, "expm1f", "expm1"},
    {Intrinsic::kLog10, "log10f", "log10"},     {Intrinsic::kLog1p, "log1pf", "log1p"},
    {Intrinsic::kAsin, "asinf", "asin"},        {Intrinsic::kAcos, "acosf", "acos"},
    {Intrinsic::kAtan, "atanf", "atan"},        {Intrinsic::kAtan2, "atan2f", "atan2"},
    {Intrinsic::kSinh, "sinhf", "sinh"},        {Intrinsic::kCosh, "coshf", "cosh"},
    {Intrinsic::kAsinh, "asinhf", "asinh"},     {Intrinsic::kAcosh, "acoshf", "acosh"},
    {Intrinsic::kAtanh, "atanhf", "atanh"},     {Intrinsic::kHypot, "hypotf", "hypot"},
};

static constexpr WideSpelling kWide[] = {
    {16, "uint4", "float4"}, {8, "uint2", "float2"}, {4, "uint32_t", "float"}, {2, "uint16_t", ""}};

// Where the machine has an instruction for what helpers.cc spells out. (bf16 from sm_80 on.)
static constexpr HelperRow kHelpers[] = {
    {"widen", kF16,
     "{q} float tn_widen_f16(uint16_t h) {{\n  float r;\n"
     "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : \"h\"(h));\n  return r;\n}}\n"},
    {"narrow", kF16,
     "{q} uint16_t tn_narrow_f16(float v) {{\n  uint16_t r;\n"
     "  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(v));\n  return r;\n}}\n"},
    {"narrow", kBF16,
     "{q} uint16_t tn_narrow_bf16(float v) {{\n"
     "#if __CUDA_ARCH__ >= 800\n  uint16_t r;\n"
     "  asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(v));\n  return r;\n#else\n"
     "  const uint32_t bits = __float_as_uint(v);\n"
     "  if (v != v) return (uint16_t)(bits >> 16 | 0x40);\n"
     "  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);\n#endif\n}}\n"},
    {"min", kFloats, "{q} {T} tn_min_{t}({T} a, {T} b) {{\n  return fmin{s}(a, b);\n}}\n"},
    {"max", kFloats, "{q} {T} tn_max_{t}({T} a, {T} b) {{\n  return fmax{s}(a, b);\n}}\n"},
    {"muladd", kFloats,
     "{q} {T} tn_muladd_{t}({T} a, {T} b, {T} c) {{\n  return fma{s}(a, b, c);\n}}\n"},
    {"sigmoid", kFloats, "{q} {T} tn_sigmoid_{t}({T} v) {{\n  return 1 / (1 + exp{s}(-v));\n}}\n"},
    // The numbers are kErfP32 and kErfQ32 of loop/pass/math/coefficients.h.
    {"erf", kFloats,
     "{q} float tn_least_f32(float a, float b) {{\n"
     "#if __CUDA_ARCH__ >= 800\n  float r;\n"
     "  asm(\"min.NaN.f32 %0, %1, %2;\" : \"=f\"(r) : \"f\"(a), \"f\"(b));\n  return r;\n"
     "#else\n  return a > b ? b : a;\n#endif\n}}\n"
     "{q} float tn_inverse_f32(float v) {{\n  float r;\n"
     "  asm(\"rcp.approx.ftz.f32 %0, %1;\" : \"=f\"(r) : \"f\"(v));\n  return r;\n}}\n"
     "{q} {T} tn_erf_{t}({T} v) {{\n"
     "  const float x = tn_least_f32(fabsf(v), 3.93f), u = x * x;\n"
     "  float p = 0x1.1211860p-19f, q = 0x1.3ecc080p-15f;\n"
     "  p = fmaf(p, u, 0x1.2aa22a0p-12f);\n  q = fmaf(q, u, 0x1.316f3e0p-10f);\n"
     "  p = fmaf(p, u, 0x1.ef5d700p-9f);\n  q = fmaf(q, u, 0x1.eb6afc0p-7f);\n"
     "  p = fmaf(p, u, 0x1.b0736c0p-5f);\n  q = fmaf(q, u, 0x1.d3fd0c0p-4f);\n"
     "  p = fmaf(p, u, 0x1.86b6920p-3f);\n  q = fmaf(q, u, 0x1.013b420p-1f);\n"
     "  p = fmaf(p, u, 0x1.20dd740p+0f);\n  q = fmaf(q, u, 1.0f);\n"
     "  return copysignf(tn_least_f32(x * p * tn_inverse_f32(q), 1.0f), v);\n}}\n"},
    {"popcount", kInts, "{q} {T} tn_popcount_{t}({T} v) {{\n  return ({T})__popcll(({U})v);\n}}\n"},
    {"clz", kInts,
     "{q} {T} tn_clz_{t}({T} v) {{\n  return ({T})(__clzll((long long)({U})v) - (64 - "
     "{B}));\n}}\n"},
    // By comparing and swapping bits: there is no instruction.
    {"atomic_min", kFloats,
     "{q} void tn_atomic_min_{t}({T}* p, {T} v) {{\n  int* bits = (int*)p;\n"
     "  for (int seen = *bits, old; !(__int_as_float(seen) <= v) && v == v; seen = old) {{\n"
     "    old = atomicCAS(bits, seen, __float_as_int(v));\n    if (old == seen) break;\n  "
     "}}\n}}\n"},
    {"atomic_max", kFloats,
     "{q} void tn_atomic_max_{t}({T}* p, {T} v) {{\n  int* bits = (int*)p;\n"
     "  for (int seen = *bits, old; !(__int_as_float(seen) >= v) && v == v; seen = old) {{\n"
     "    old = atomicCAS(bits, seen, __float_as_int(v));\n    if (old == seen) break;\n  "
     "}}\n}}\n"},
};

static constexpr AxisSpelling kAxes[] = {
    {ThreadAxis::kBlockIdxX, "blockIdx.x"},      {ThreadAxis::kBlockIdxY, "blockIdx.y"},
    {ThreadAxis::kBlockIdxZ, "blockIdx.z"},      {ThreadAxis::kThreadIdxX, "threadIdx.x"},
    {ThreadAxis::kThreadIdxY, "threadIdx.y"},    {ThreadAxis::kThreadIdxZ, "threadIdx.z"},
    {ThreadAxis::kClusterCtaIdxX, "blockIdx.x"}, {ThreadAxis::kClusterCtaIdxY, "blockIdx.y"},
    {ThreadAxis::kClusterCtaIdxZ, "blockIdx.z"},
};

// Sums wrap, so a signed one is that of the unsigned bits. No function: a helper.
static constexpr AtomicSpelling kAtomics[] = {
    {BinaryOp::kAdd, DType::Int(32), "atomicAdd", "int"},
    {BinaryOp::kAdd, DType::UInt(32), "atomicAdd", "unsigned int"},
    {BinaryOp::kAdd, DType::Int(64), "atomicAdd", "unsigned long long"},
    {BinaryOp::kAdd, DType::UInt(64), "atomicAdd", "unsigned long long"},
    {BinaryOp::kAdd, DType::Float(32), "atomicAdd", "float"},
    {BinaryOp::kAdd, DType::Float(64), "atomicAdd", "double"},
    {BinaryOp::kMin, DType::Int(32), "atomicMin", "int"},
    {BinaryOp::kMin, DType::UInt(32), "atomicMin", "unsigned int"},
    {BinaryOp::kMin, DType::Int(64), "atomicMin", "long long"},
    {BinaryOp::kMin, DType::UInt(64), "atomicMin", "unsigned long long"},
    {BinaryOp::kMin, DType::Float(32), nullptr, "float"},
    {BinaryOp::kMax, DType::Int(32), "atomicMax", "int"},
    {BinaryOp::kMax, DType::UInt(32), "atomicMax", "unsigned int"},
    {BinaryOp::kMax, DType::Int(64), "atomicMax", "long long"},
    {BinaryOp::kMax, DType::UInt(64), "atomicMax", "unsigned long long"},
    {BinaryOp::kMax, DType::Float(32), nullptr, "float"},
    {BinaryOp::kBitAnd, DType::Int(32), "atomicAnd", "int"},
    {BinaryOp::kBitAnd, DType::UInt(32), "atomicAnd", "unsigned int"},
    {BinaryOp::kBitAnd, DType::Int(64), "atomicAnd", "unsigned long long"},
    {BinaryOp::kBitAnd, DType::UInt(64), "atomicAnd", "unsigned long long"},
    {BinaryOp::kBitOr, DType::Int(32), "atomicOr", "int"},
    {BinaryOp::kBitOr, DType::UInt(32), "atomicOr", "unsigned int"},
    {BinaryOp::kBitOr, DType::Int(64), "atomicOr", "unsigned long long"},
    {BinaryOp::kBitOr, DType::UInt(64), "atomicOr", "unsigned long long"},
    {BinaryOp::kBitXor, DType::Int(32), "atomicXor", "int"},
    {BinaryOp::kBitXor, DType::UInt(32), "atomicXor", "unsigned int"},
    {BinaryOp::kBitXor, DType::Int(64), "atomicXor", "unsigned long long"},
    {BinaryOp::kBitXor, DType::UInt(64), "atomicXor", "unsigned long long"},
};

static constexpr char kPreamble[] =
    R"(// The arithmetic is exact about roundings: compile with -fmad=false (what may be fused, is).
#if defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef long long intptr_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INT64_MIN (-9223372036854775807ll - 1)
#define INT64_MAX 9223372036854775807ll
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295u
#define UINT64_MAX 18446744073709551615ull
#define INT64_C(value) value##ll
#define UINT64_C(value) value##ull
#define NAN __int_as_float(0x7fffffff)
#define INFINITY __int_as_float(0x7f800000)
#else
#include <math.h>
#include <stdint.h>
#include <string.h>
#endif
)";

static constexpr char kPrefetch[] = R"(
#define TN_PREFETCH(address, write, nearness) asm volatile("prefetch.L2 [%0];" ::"l"(address))
)";

static constexpr char kDynamicShared[] =
    "\nextern __shared__ __align__(1024) unsigned char tn_shared[];\n";

static constexpr char kTensorMap[] = R"(
struct __align__(64) tn_tensor_map {
  uint64_t opaque[16];
};
)";

static constexpr char kBarriers[] = R"(
static __device__ __forceinline__ void tn_barrier_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
               :
               : "r"((uint32_t)__cvta_generic_to_shared(barrier))
               : "memory");
}

static __device__ __forceinline__ void tn_barrier_expect(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :
               : "r"((uint32_t)__cvta_generic_to_shared(barrier)), "r"(bytes)
               : "memory");
}

static __device__ __forceinline__ void tn_barrier_wait(uint64_t* barrier, uint32_t phase) {
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(barrier);
  uint32_t over;
  do {
    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(over)
                 : "r"(at), "r"(phase)
                 : "memory");
  } while (!over);
}
)";

static constexpr char kSyncCluster[] = R"(
static __device__ __forceinline__ void tn_sync_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}
)";

// A thread of each block counts it in the word that the driver gives to a cooperative launch, whose
// address less 4 is in two registers. All that come add up to 2^31, and so change its highest bit,
// for which they wait; the lower ones are 0 again, whatever it began with.
static constexpr char kSyncGrid[] = R"(
static __device__ void tn_sync_grid() {
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
    uint32_t high, low;
    asm volatile("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm volatile("mov.u32 %0, %%envreg2;" : "=r"(low));
    unsigned int* const word = (unsigned int*)(((uint64_t)high << 32 | low) + 4);
    const uint32_t others = gridDim.x * gridDim.y * gridDim.z - 1;
    const bool first = blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0;
    __threadfence();
    const uint32_t before = atomicAdd(word, first ? 0x80000000u - others : 1u);
    uint32_t now;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(word) : "memory");
    } while (((before ^ now) & 0x80000000u) == 0);
    __threadfence();
  }
  __syncthreads();
}
)";

static constexpr PreambleSpelling kPreambles[] = {
    {"TN_PREFETCH", kPrefetch},
    {"tn_shared", kDynamicShared},
    {"tn_tensor_map", kTensorMap},
    {"tn_sync_cluster", kSyncCluster},
    {"tn_sync_grid", kSyncGrid},
    {"tn_barrier_arrive tn_barrier_expect tn_barrier_wait", kBarriers}};

static constexpr RolesSpelling kRoles = {
    .warp =
        "__shfl_sync(0xffffffff, (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * "
        "threadIdx.z)) / 32, 0)",
    .more_registers = "asm volatile(\"setmaxnreg.inc.sync.aligned.u32 {};\");",
    .fewer_registers = "asm volatile(\"setmaxnreg.dec.sync.aligned.u32 {};\");",
    .threads = "__launch_bounds__({0}, 1)",
    .tensor_map = "tn_tensor_map",
    .map_param = "const __grid_constant__ tn_tensor_map {}",
    .fetch_map =
        "if (threadIdx.x == 0 && threadIdx.y == 0) asm volatile(\"prefetch.tensormap [%0];\" "
        "::\"l\"(&{}) : \"memory\");",
    .arrive = "tn_barrier_arrive({0});",
    .expect = "tn_barrier_expect({0}, (uint32_t){1});",
    .wait = "tn_barrier_wait({0}, (uint32_t){1});",
};

static constexpr GpuSpelling kGpu = {
    .shared = "__shared__",
    .dynamic_shared = "tn_shared",
    .threads = "__launch_bounds__({0})",
    .global_space = "",
    .shared_space = "",
    .shared_first = false,
    .axes = kAxes,
    .sync_cta = "__syncthreads();",
    .sync_warp = "__syncwarp();",
    .sync_cluster = "tn_sync_cluster();",
    .sync_grid = "tn_sync_grid();",
    .fence_cta = "__threadfence_block();",
    .fence_grid = "__threadfence();",
    .atomics = kAtomics,
    .preamble = kPreamble,
    .preambles = kPreambles,
    .roles = &kRoles,
};

const Language& CudaCpp() {
  static const Language language = {
      .name = "CUDA C++",
      .helper = "static __device__ __forceinline__",
      .hidden = "static __device__",
      .visible = "extern \"C\" __global__",
      .restrict_word = "__restrict__",
      .copy = "memcpy",
      .align = "__align__({}) ",
      .unroll = "#pragma unroll",
      .divide = "__fdividef",
      .remainder_f32 = "fmodf",
      .reserved_words =
          "threadIdx blockIdx blockDim gridDim warpSize NAN INFINITY NULL dim3 float2 float4 uint2 "
          "uint4 int2 int4 expf exp2f logf log2f powf sinf cosf tanf tanhf erff sqrtf rsqrt rsqrtf "
          "fabsf floorf ceilf truncf rintf fmaf fminf fmaxf isnan isinf atomicAdd atomicMin "
          "atomicMax atomicAnd atomicOr atomicXor atomicCAS atomicSub atomicExch atomicInc "
          "atomicDec min max size_t char1 char2 char3 char4 uchar1 uchar2 uchar3 uchar4 short1 "
          "short2 short3 short4 ushort1 ushort2 ushort3 ushort4 int1 int3 uint1 uint3 long1 long2 "
          "long3 long4 ulong1 ulong2 ulong3 ulong4 longlong1 longlong2 ulonglong1 ulonglong2 "
          "float1 float3 double1 double2 double3 double4 uint3 half assert printf clock64",
      .types = kTypes,
      .math = kMath,
      .wide = kWide,
      .helpers = kHelpers,
      .gpu = &kGpu,
  };
  return language;
}

}  // namespace tenon::codegen
