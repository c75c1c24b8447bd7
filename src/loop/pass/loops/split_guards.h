// split_guards: splits loops so that their interior runs without guards.
//
// Needs: blocks are lowered, expressions simplified. Ensures: nothing new is computed, in no other
// order. A guard is a comparison among the conjuncts of an `if` or a Select, affine in a loop's
// variable. Where it holds is then a range of that variable, and the serial loop is split into what
// lies before, inside and after: inside, the guard is true. Two cases:
//   exact     only the loop's variable and what is outside occur in it (a padded convolution's
//             kernel loop): before and after, the guard is false where it is the only one, so an
//             `if` without else leaves no loop there at all.
//   relaxed   inner loops' variables occur too (a tile at the edge of a tensor): inside, it holds
//             for all their values; the edges keep it. Of several serial loops that move a tile,
//             the innermost is split; else a split that depends on outer loops is not worth it.
// An equality (the init of a reduction) has its iteration peeled off.
// A parallel loop is not split, for its parts must stay near-equal: its body gets a version without
// the guard, chosen by whether it holds for the whole body. There the guard need not be affine in
// the variable (a loop fused from several axes of tiles, taken apart by division). Where it then
// does not hold for any part of the body, the rest is looked at again: operands that lie behind
// each other have a version each. Why before
// vectorize: masks then remain at the edges alone. A function above PassContext::max_unrolled_stmts
// is left, and so are, among the threads of a launch, guards whose ranges are not constants: where
// loops are split, all threads go by the same way.
#pragma once

#include "loop/pass/pass.h"

namespace tenon {

Module SplitGuards(const Module& module, const PassContext& context);

}  // namespace tenon
