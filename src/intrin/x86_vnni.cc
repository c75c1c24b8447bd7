// VNNI: sums of four products of bytes, added to 32-bit integers. Intel SDM, VPDPBUSD: the first
// factor is unsigned, the second signed; the sum is exact in 32 bits and wraps when added.
#include <fmt/format.h>

#include "intrin/tile_intrinsic.h"

namespace tenon {

namespace {

constexpr const char* kPairwise = R"(
func @x86.vpdpbusd.512(A: u8[16, 4], B: i8[16, 4], out C: i32[16]) kind device {
  for i in 0..16, k in 0..4 {
    block dot(vi: spatial = i, vk: reduce = k) reducer: add {
      reads A[vi, vk], B[vi, vk], C[vi]
      writes C[vi]
      C[vi] = C[vi] + i32(A[vi, vk]) * i32(B[vi, vk])
    }
  }
}
)";

// Four bytes of a row of the first matrix for all of sixteen columns of the second.
constexpr const char* kRow = R"(
func @x86.vpdpbusd.512.row(A: u8[4], B: i8[16, 4], out C: i32[16]) kind device {
  for i in 0..16, k in 0..4 {
    block dot(vi: spatial = i, vk: reduce = k) reducer: add {
      reads A[vk], B[vi, vk], C[vi]
      writes C[vi]
      C[vi] = C[vi] + i32(A[vk]) * i32(B[vi, vk])
    }
  }
}
)";

Emission InC(const char* load_a) {
  return {Emission::Kind::kC,
          fmt::format("_mm512_storeu_si512({{2}}, _mm512_dpbusd_epi32(_mm512_loadu_si512({{2}}), "
                      "{}, _mm512_loadu_si512({{1}})));",
                      load_a),
          {},
          "__AVX512VNNI__"};
}

}  // namespace

void RegisterX86Vnni(TileIntrinsics* table) {
  const DType words = DType::Int(32).WithLanes(16);
  const auto in_llvm = [&](ArgKind a) {
    return Emission{Emission::Kind::kLlvm,
                    "llvm.x86.avx512.vpdpbusd.512",
                    {{ArgKind::kValue, 2, words}, {a, 0, words}, {ArgKind::kValue, 1, words}},
                    ""};
  };
  table->Add({.name = "x86.vpdpbusd.512",
              .feature = "avx512vnni",
              .state = "",
              .meaning = kPairwise,
              .pattern = "",
              .emissions = {in_llvm(ArgKind::kValue), InC("_mm512_loadu_si512({0})")}});
  table->Add({.name = "x86.vpdpbusd.512.row",
              .feature = "avx512vnni",
              .state = "",
              .meaning = kRow,
              .pattern = "",
              .emissions = {in_llvm(ArgKind::kSplat),
                            InC("_mm512_set1_epi32((int)((uint32_t){0}[0] | (uint32_t){0}[1] << 8 "
                                "| (uint32_t){0}[2] << 16 | (uint32_t){0}[3] << 24))")}});
}

}  // namespace tenon
