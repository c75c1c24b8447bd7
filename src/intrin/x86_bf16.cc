// AVX512_BF16: two products of bfloat16 added to a 32-bit float. Intel SDM, VDPBF16PS: the odd
// product first, each added with one rounding to nearest even; denormals are taken for zero on
// entry and flushed to it after each rounding, whatever the mode of the processor. (Checked bit for
// bit against the instruction, test/unit/codegen_llvm.)
#include <fmt/format.h>

#include "intrin/tile_intrinsic.h"

namespace tenon {

namespace {

// A zero keeps the sign of what it stands for.
std::string Flushed(const std::string& x) {
  return fmt::format("select(abs({0}) < 1.1754943508222875e-38f32, {0} * 0f32, {0})", x);
}

// `a` is the index of A's row with its comma, or nothing.
std::string Meaning(const std::string& name, const std::string& a_shape, const std::string& a) {
  return fmt::format(R"(
func @{0}(A: bf16[{1}2], B: bf16[16, 2], out C: f32[16]) kind device {{
  alloc T: f32[1] in register
  for i in 0..16 {{
    block start(vi: spatial = i) {{
      reads C[vi]
      writes T[0]
      T[0] = {3}
    }}
    for k in 0..2 {{
      block dot(vi: spatial = i, vk: ordered = k) {{
        reads A[{2}1 - vk], B[vi, 1 - vk], T[0]
        writes T[0]
        T[0] = fma({4}, {5}, T[0])
      }}
      block flush(vi: spatial = i, vk: ordered = k) {{
        reads T[0]
        writes T[0]
        T[0] = {6}
      }}
    }}
    block end(vi: spatial = i) {{
      reads T[0]
      writes C[vi]
      C[vi] = T[0]
    }}
  }}
}}
)",
                     name, a_shape, a, Flushed("C[vi]"), Flushed("f32(A[" + a + "1 - vk])"),
                     Flushed("f32(B[vi, 1 - vk])"), Flushed("T[0]"));
}

std::string Pattern(const std::string& name, const std::string& a_shape, const std::string& a) {
  return fmt::format(R"(
func @{0}(A: bf16[{1}2], B: bf16[16, 2], out C: f32[16]) kind device {{
  for i in 0..16, k in 0..2 {{
    block dot(vi: spatial = i, vk: reduce = k) reducer: add fp: contract {{
      reads A[{2}vk], B[vi, vk], C[vi]
      writes C[vi]
      C[vi] = C[vi] + f32(A[{2}vk]) * f32(B[vi, vk])
    }}
  }}
}}
)",
                     name, a_shape, a);
}

TileIntrinsic Row(const std::string& name, bool by_row) {
  const DType sums = DType::Float(32).WithLanes(16), pairs = DType::BFloat16().WithLanes(32);
  const std::string load_a =
      by_row ? "_mm512_set1_epi32((int)((uint32_t){0}[0] | (uint32_t){0}[1] << 16))"
             : "_mm512_loadu_si512({0})";
  const ArgKind a = by_row ? ArgKind::kSplat : ArgKind::kValue;
  return {.name = name,
          .feature = "avx512bf16",
          .state = "",
          .meaning = Meaning(name, by_row ? "" : "16, ", by_row ? "" : "vi, "),
          .pattern = Pattern(name, by_row ? "" : "16, ", by_row ? "" : "vi, "),
          .emissions = {{Emission::Kind::kLlvm,
                         "llvm.x86.avx512bf16.dpbf16ps.512",
                         {{ArgKind::kValue, 2, sums}, {a, 0, pairs}, {ArgKind::kValue, 1, pairs}},
                         ""},
                        {Emission::Kind::kC,
                         "_mm512_storeu_ps({2}, _mm512_dpbf16_ps(_mm512_loadu_ps({2}), (__m512bh)" +
                             load_a + ", (__m512bh)_mm512_loadu_si512({1})));",
                         {},
                         "__AVX512BF16__"}}};
}

}  // namespace

void RegisterX86Bf16(TileIntrinsics* table) {
  table->Add(Row("x86.vdpbf16ps.512", false));
  table->Add(Row("x86.vdpbf16ps.512.row", true));
}

}  // namespace tenon
