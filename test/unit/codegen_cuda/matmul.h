// A kernel that uses what matters to speed.
#pragma once

namespace tenon::test {

// A tiled product: 64 x 64 of C by 16 x 16 threads, 4 x 4 each in registers, tiles in shared
// memory, brought there 16 bytes at a time.
inline constexpr char kMatmul[] = R"(
func @matmul(A: f32[1048576] align 64, B: f32[1048576] align 64, out C: f32[1048576] align 64)
    target "cuda" {noalias: true} {
  for by in 0..16 thread blockIdx.y {
    for bx in 0..16 thread blockIdx.x {
      for ty in 0..16 thread threadIdx.y {
        for tx in 0..16 thread threadIdx.x {
          alloc As: f32[1024] in shared
          alloc Bs: f32[1024] in shared
          alloc acc: f32[16] in local
          for i in 0..16 { acc[i] = 0f32 }
          for ko in 0..64 {
            As[ramp((ty * 16 + tx) * 4, 1, 4)] =
                A[ramp((by * 64 + (ty * 16 + tx) / 4) * 1024 + ko * 16 + tx % 4 * 4, 1, 4)]
            Bs[ramp((ty * 16 + tx) * 4, 1, 4)] =
                B[ramp((ko * 16 + ty) * 1024 + bx * 64 + tx * 4, 1, 4)]
            sync cta
            for k in 0..16 {
              for i in 0..4 {
                for j in 0..4 {
                  block update() fp: contract {
                    acc[i * 4 + j] = acc[i * 4 + j] + As[(ty * 4 + i) * 16 + k] * Bs[k * 64 + tx * 4 + j]
                  }
                }
              }
            }
            sync cta
          }
          for i in 0..4 {
            C[ramp((by * 64 + ty * 4 + i) * 1024 + bx * 64 + tx * 4, 1, 4)] = acc[ramp(i * 4, 1, 4)]
          }
        }
      }
    }
  }
}
)";

}  // namespace tenon::test
