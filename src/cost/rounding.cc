#include "cost/rounding.h"

namespace tenon {

// As fast as the unit of f16 in elements: half as deep, as many a second.
Machine WithRoundingUnits(Machine machine) {
  const DType f16 = DType::Float(16), f32 = DType::Float(32);
  const ComputeUnit* half = machine.MatrixUnit(f16, f16, f32);
  if (machine.warp == 0 || !half) return machine;
  machine.units.push_back({"ptx.mma.m16n8k8.tf32", f32, f32, f32, 16, 8, 8, half->per_second});
  return machine;
}

}  // namespace tenon
