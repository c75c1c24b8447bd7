// VNNI: sums of four products of bytes, added to 32-bit integers. Intel SDM, VPDPBUSD: the first
// factor is unsigned, the second signed; the sum is exact in 32 bits and wraps when added.
#include "intrin/tile_intrinsic.h"

namespace tenon {

void RegisterX86Vnni(TileIntrinsics* table) {
  const DType words = DType::Int(32).WithLanes(16);
  table->Add({
      .name = "x86.vpdpbusd.512",
      .feature = "avx512vnni",
      .state = "",
      .meaning = R"(
func @x86.vpdpbusd.512(A: u8[16, 4] in register, B: i8[16, 4] in register, out C: i32[16] in register) kind device {
  for i in 0..16, k in 0..4 {
    block dot(vi: spatial = i, vk: reduce = k) reducer: add {
      reads A[vi, vk], B[vi, vk], C[vi]
      writes C[vi]
      C[vi] = C[vi] + i32(A[vi, vk]) * i32(B[vi, vk])
    }
  }
}
)",
      .emissions = {{Emission::Kind::kLlvm,
                     "llvm.x86.avx512.vpdpbusd.512",
                     {{2, words}, {0, words}, {1, words}}},
                    {Emission::Kind::kTemplate,
                     "{0} = _mm512_dpbusd_epi32({0}, {1}, {2})",
                     {{2, words}, {0, words}, {1, words}}}},
  });
}

}  // namespace tenon
