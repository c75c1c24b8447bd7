// Kernels on an OpenCL device, where there is one, at sizes around their tiles.
#include "opencl.h"

namespace tenon {
namespace {

using test::ExpectSame;
using test::OpenClCode;

// TYPE in the text stands for a type.
Module Parsed(std::string text, const std::string& type = "") {
  for (size_t at = 0; (at = text.find("TYPE", at)) != std::string::npos;) text.replace(at, 4, type);
  return test::Parsed(text);
}

TEST(OpenClDevice, AddsVectorsOfAnySize) {
  NEEDS_OPENCL();
  const Module m = Parsed(R"(
func @add<n: 0..=65536>(A: f32[n], B: f32[n], out C: f32[n])
    target "opencl" {bound: true, noalias: true} {
  for bx in 0..(n + 63) / 64 thread blockIdx.x {
    for tx in 0..64 thread threadIdx.x {
      if bx * 64 + tx < n { C[bx * 64 + tx] = A[bx * 64 + tx] + B[bx * 64 + tx] }
    }
  }
}
)");
  OpenClCode code(m);
  for (int64_t n : {0, 1, 63, 64, 65, 1009}) ExpectSame(m, &code, "add", {{"n", n}});
}

// Tiles in shared memory, barriers around them, edges filled with zeros, sums in registers.
TEST(OpenClDevice, MultipliesThroughSharedMemory) {
  NEEDS_OPENCL();
  const Module m = Parsed(R"(
func @matmul<m: 0..=64, n: 0..=64, k: 0..=64>(A: f32[m * k], B: f32[k * n], out C: f32[m * n])
    target "opencl" {bound: true, noalias: true} {
  for by in 0..(m + 7) / 8 thread blockIdx.y {
    for bx in 0..(n + 7) / 8 thread blockIdx.x {
      for ty in 0..8 thread threadIdx.y {
        for tx in 0..8 thread threadIdx.x {
          alloc acc: f32[1] in register
          acc[0] = 0f32
          for ko in 0..(k + 7) / 8 {
            alloc As: f32[64] in shared
            alloc Bs: f32[64] in shared
            As[ty * 8 + tx] = select(by * 8 + ty < m && ko * 8 + tx < k,
                                     A[(by * 8 + ty) * k + ko * 8 + tx], 0f32)
            Bs[ty * 8 + tx] = select(ko * 8 + ty < k && bx * 8 + tx < n,
                                     B[(ko * 8 + ty) * n + bx * 8 + tx], 0f32)
            sync cta
            for kk in 0..8 {
              acc[0] = acc[0] + As[ty * 8 + kk] * Bs[kk * 8 + tx]
            }
            sync cta
          }
          if by * 8 + ty < m && bx * 8 + tx < n {
            C[(by * 8 + ty) * n + bx * 8 + tx] = acc[0]
          }
        }
      }
    }
  }
}
)");
  OpenClCode code(m);
  for (int64_t m_size : {1, 7, 8, 9}) {
    for (int64_t n : {0, 1, 8, 11}) {
      for (int64_t k : {1, 8, 13}) {
        ExpectSame(m, &code, "matmul", {{"m", m_size}, {"n", n}, {"k", k}});
      }
    }
  }
}

// A tree of sums across the threads of a block, by a device function that is called with shared
// memory and with global memory.
TEST(OpenClDevice, ReducesAcrossThreads) {
  NEEDS_OPENCL();
  std::string steps;
  for (int half = 32; half > 0; half /= 2) {
    const std::string h = std::to_string(half);
    steps += "      if tx < " + h + " { call @add_to(part[tx + " + h + "..tx + " + h +
             " + 1], part[tx..tx + 1]) }\n      sync cta\n";
  }
  const Module m = Parsed(
      "func @add_to(X: f32[1], out S: f32[1]) kind device target \"opencl\" {\n"
      "  S[0] = S[0] + X[0]\n}\n"
      "func @sum<n: 0..=4096>(A: f32[n * 64], out C: f32[n]) target \"opencl\" {bound: true} {\n"
      "  for bx in 0..n thread blockIdx.x {\n"
      "    for tx in 0..64 thread threadIdx.x {\n"
      "      alloc part: f32[64] in shared\n"
      "      part[tx] = 0f32\n"
      "      call @add_to(A[bx * 64 + tx..bx * 64 + tx + 1], part[tx..tx + 1])\n      sync cta\n" +
      steps + "      if tx == 0 { C[bx] = part[0] }\n    }\n  }\n}\n");
  OpenClCode code(m);
  for (int64_t n : {0, 1, 5}) ExpectSame(m, &code, "sum", {{"n", n}});
}

// Updates of elements that threads share, in global memory and through a block's own.
TEST(OpenClDevice, UpdatesAtOnce) {
  NEEDS_OPENCL();
  for (const std::string type : {"i32", "u32", "i64", "u64", "f32", "f64"}) {
    std::string ops =
        "      atomic + C[0], A[tx] relaxed at grid\n"
        "      atomic min C[1], A[tx] relaxed at grid\n"
        "      atomic max C[2], A[tx] relaxed at grid\n"
        "      atomic + S[0], A[tx] relaxed at cta\n"
        "      atomic min S[1], A[tx] relaxed at cta\n"
        "      atomic max S[2], A[tx] acq_rel at cta\n"
        "      atomic + own[0], A[tx] relaxed at cta\n";
    if (type[0] != 'f') {
      ops +=
          "      atomic bitand C[3], A[tx] relaxed at grid\n"
          "      atomic bitor C[4], A[tx] relaxed at grid\n"
          "      atomic bitxor S[3], A[tx] relaxed at cta\n";
    }
    const Module m = Parsed(
        "func @f(A: TYPE[64], out C: TYPE[5], out D: TYPE[64]) target \"opencl\" {bound: true} {\n"
        "  for tx in 0..64 thread threadIdx.x {\n"
        "    alloc S: TYPE[4] in shared\n    alloc own: TYPE[1] in register\n"
        "    own[0] = A[tx]\n"
        "    if tx < 4 { S[tx] = A[tx] }\n    if tx < 5 { C[tx] = A[tx] }\n    sync cta\n" +
            ops + "    sync cta\n    D[tx] = select(tx < 4, S[tx % 4], own[0])\n  }\n}\n",
        type);
    OpenClCode code(m);
    ExpectSame(m, &code, "f", {});
  }
}

// What a schedule makes of memory that each thread has for itself, copies and prefetches included.
TEST(OpenClDevice, MovesMemory) {
  NEEDS_OPENCL();
  const Module m = Parsed(R"(
func @f<n: 0..=4096>(A: u8[n * 16] align 16, out C: u8[n * 16] align 16)
    target "opencl" {bound: true} {
  for bx in 0..n thread blockIdx.x {
    for tx in 0..2 thread threadIdx.x {
      alloc own: u8[8] in local
      alloc both: u8[16] in shared
      copy own[0..8] from A[bx * 16 + tx * 8..bx * 16 + tx * 8 + 8]
      copy both[tx * 8..tx * 8 + 8] from own[0..8]
      sync cta
      C[ramp(bx * 16 + tx * 8, 1, 8)] = both[ramp(8 - tx * 8, 1, 8)]
    }
  }
}
)");
  OpenClCode code(m);
  for (int64_t n : {0, 1, 7}) ExpectSame(m, &code, "f", {{"n", n}});
}

}  // namespace
}  // namespace tenon
