#include "cost/rounding.h"

#include <algorithm>

namespace tenon {

// As fast as the unit of f16 in elements: half as deep, as many a second.
std::optional<Machine> WithRoundingUnits(Machine machine) {
  const DType f32 = DType::Float(32);
  const auto half = std::find_if(machine.units.begin(), machine.units.end(), [](const auto& unit) {
    return unit.row == "ptx.mma.m16n8k16.f16";
  });
  if (machine.warp == 0 || half == machine.units.end()) return std::nullopt;
  const double rate = half->per_second;
  machine.units.push_back({"ptx.mma.m16n8k8.tf32", f32, f32, f32, 16, 8, 8, rate});
  return machine;
}

}  // namespace tenon
