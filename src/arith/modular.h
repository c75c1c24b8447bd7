// Arithmetic of residue classes (ModularSet of analyzer.h). Results contain every possible value;
// overflow gives up to "any integer".
#pragma once

#include "arith/analyzer.h"

namespace tenon {

ModularSet Residue(int64_t coefficient, int64_t base);
/// What divides every member; 0 where all are 0.
int64_t MultipleOf(ModularSet set);
ModularSet Add(ModularSet a, ModularSet b);
ModularSet Mul(ModularSet a, ModularSet b);
/// Smallest class that contains both.
ModularSet Join(ModularSet a, ModularSet b);
/// Knowing both: keeps the finer one where neither contains the other.
ModularSet Meet(ModularSet a, ModularSet b);
ModularSet FloorDiv(ModularSet a, int64_t divisor);
ModularSet FloorMod(ModularSet a, int64_t divisor);

}  // namespace tenon
