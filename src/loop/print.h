// The text form of statements, functions and modules. ParseModule (loop/parse.h) reads it back: the
// result equals what was printed, and prints the same.
//
//   func @f<m: 1..=4096 step 8, n>(A: f32[m, 64], out C: f32[m], s: i32)
//       kind host target "llvm" {role: "x"} {
//     for i in 0..m, j in 0..64 { … }                    one list for serial loops nested directly
//     for i in 0..m parallel { … }              or vectorized, unrolled, thread threadIdx.x
//     block C(vi: spatial = i, vk: reduce in 0..k = ko * 4 + ki) where c fp: contract
//         at: warp async opaque
//         conservative reducer: argmax {attrs} {
//       reads A[vi, vk]; writes C[vi]
//       init { C[vi] = 0f32 }
//       C[vi] = C[vi] + A[vi, vk]
//     }
//     if c { … } else if d { … } else { … }     while c { … }
//     let x = i * 4                             scope: to the end of the enclosing braces;
//     alloc t: f32[16] in local                 followed by { … }: those braces alone
//     bind v: f32[m] = p
//     C[i where mask] = x                       prefetch<i32>(A[i], 0)
//     call @g(A[0..8, 0..8], C; i, 3)           launch @k(A, C; m) on host {grid: [4]}
//     copy C[0..8] from A[i, 0..8]              assert c, "ValueError", "expected ", m
//     return 0i32                               sync team
//     arrive b[0]   expect b[0], 4   wait b[0], phase
//     roles { role load size 1 registers 40 { … } role compute size 2 { … } }
//     atomic + C[i], x relaxed at grid
//   }
//
// The domain of a block's variable is left out where it is that of the loop it is bound to. `kind
// kernel` and a range that says nothing are left out. A module is its functions in name order;
// attributes come first as `module {…}`.
#pragma once

#include <concepts>
#include <string>

#include "ir/print.h"
#include "loop/func.h"

namespace tenon {

/// The text of any node, statements and functions included. A function's text ends with a newline.
std::string Print(const NodeRef& node);
std::string Print(const Module& module);

/// The same under the name that expressions have.
template <class T>
  requires std::derived_from<T, StmtNode> || std::same_as<T, PrimFunc>
std::string ToString(const Ref<const T>& node) {
  return Print(node);
}

}  // namespace tenon
