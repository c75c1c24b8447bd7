#include "arith/modular.h"

#include "arith/int_math.h"

namespace tenon {

namespace {
constexpr ModularSet kAny{1, 0};
}

ModularSet Residue(int64_t coefficient, int64_t base) {
  if (coefficient == std::numeric_limits<int64_t>::min()) return kAny;
  if (coefficient < 0) coefficient = -coefficient;
  return {coefficient, coefficient == 0 ? base : FloorModInt(base, coefficient)};
}

int64_t MultipleOf(ModularSet set) { return GcdInt(set.coefficient, set.base); }

ModularSet Add(ModularSet a, ModularSet b) {
  auto base = CheckedAdd(a.base, b.base);
  return base ? Residue(GcdInt(a.coefficient, b.coefficient), *base) : kAny;
}

ModularSet Mul(ModularSet a, ModularSet b) {
  // (p k + x)(q l + y) = pq kl + p y k + q x l + xy
  auto pq = CheckedMul(a.coefficient, b.coefficient);
  auto py = CheckedMul(a.coefficient, b.base);
  auto qx = CheckedMul(b.coefficient, a.base);
  auto xy = CheckedMul(a.base, b.base);
  if (!pq || !py || !qx || !xy) return kAny;
  return Residue(GcdInt(GcdInt(*pq, *py), *qx), *xy);
}

ModularSet Join(ModularSet a, ModularSet b) {
  auto distance = CheckedSub(a.base, b.base);
  if (!distance) return kAny;
  return Residue(GcdInt(GcdInt(a.coefficient, b.coefficient), *distance), a.base);
}

ModularSet Meet(ModularSet a, ModularSet b) {
  if (a.coefficient == 0 || (b.coefficient != 0 && a.coefficient >= b.coefficient)) return a;
  return b;
}

ModularSet FloorDiv(ModularSet a, int64_t divisor) {
  if (divisor <= 0) return kAny;
  if (a.coefficient % divisor != 0) return kAny;
  return Residue(a.coefficient / divisor, FloorDivInt(a.base, divisor));
}

ModularSet FloorMod(ModularSet a, int64_t divisor) {
  if (divisor <= 0) return kAny;
  if (a.coefficient % divisor == 0) return {0, FloorModInt(a.base, divisor)};
  return Residue(GcdInt(a.coefficient, divisor), a.base);
}

}  // namespace tenon
