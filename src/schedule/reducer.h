// What a reduction block does to its accumulator, read off its body.
#pragma once

#include <optional>

#include "loop/stmt.h"

namespace tenon::primitive {

/// acc[indices] = acc[indices] op value.
struct Reduction {
  BinaryOp op;
  Ref<const Store> store;
  Expr value;
};

/// The reduction that the block's body, a single store, makes; nullopt when it is of another form.
std::optional<Reduction> ReadReduction(const Block& block);
/// The value e with e op x = x, in the accumulator's type; null when the operator has none there.
Expr IdentityOf(BinaryOp op, DType type);
Expr Combine(BinaryOp op, const Expr& acc, const Expr& value);
/// True when the updates of the block may be combined in another association than one after the
/// other: integers and bools, minima and maxima, anything in fp mode reassoc.
bool PermitsReassociation(const Block& block);

}  // namespace tenon::primitive
