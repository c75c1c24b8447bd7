// Named reducers: what a reduction block does to its accumulators, as a combiner over a tuple with
// an identity.
//
//   add mul min max and or bitand bitor bitxor   one accumulator
//   argmax argmin   (index, value): the least index among the best values
//   sum_exp         (sum, max): sum of e^(x - max), as an online softmax
//                   keeps it
//
// Combiners are associative and commutative (floats: up to rounding; NaN in argmax and argmin is
// not ordered). In a tuple no component's combination reads an earlier component, so a block may
// store them one after the other.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "loop/stmt.h"

namespace tenon {

struct Reducer {
  const char* name;
  int arity;
  /// The identity for accumulators of these types; empty where the reducer has none there.
  std::vector<Expr> (*identity)(std::span<const DType> types);
  /// The combination of two tuples of `arity` scalars or vectors.
  std::vector<Expr> (*combine)(std::span<const Expr> a, std::span<const Expr> b);
};

/// The reducer of this name, or null.
const Reducer* FindReducer(std::string_view name);
/// All of them, in a fixed order.
std::span<const Reducer> AllReducers();

/// (C0[…], C1[…], …) = combine((C0[…], C1[…], …), values).
struct Reduction {
  const Reducer* reducer;
  std::vector<Ref<const Store>> stores;
  std::vector<Expr> values;
};

/// The reduction that a block's body makes: of the reducer that the block names, or read off the
/// body. The body is one unmasked store per component, in the tuple's order; a store's own operand
/// may be on either side of `+`, `max`, …, and fma(a, b, C[…]) counts as C[…] + a * b. nullopt: the
/// body is of another form.
std::optional<Reduction> DetectReducer(const Block& block);

/// The unmasked stores that a statement consists of, in order; none where it is anything else.
std::vector<Ref<const Store>> StoresOf(const Stmt& body);

/// True when the reduction gives the same bits in any order: integers, bools, minima and maxima.
bool IsExactInAnyOrder(const Reduction& reduction);

}  // namespace tenon
