// Cycles (at the clock that a chain of multiplications shows) that the forms of expand_math take
// per vector of f32, over data in the first-level cache.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "artifact/temporary_library.h"
#include "codegen/codegen.h"
#include "loop/pass/math/expand_math.h"
#include "target/target.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

// Seconds of one cycle: a multiplication takes three on every x86 of the last decade (additions of
// constants are folded by some before they run).
double CycleTime() {
  constexpr int64_t kSteps = 20'000;  // short: some run must be undisturbed
  double best = 1;
  for (int repeat = 0; repeat < 300; ++repeat) {
    auto start = Clock::now();
    int64_t x = 3;
    for (int64_t i = 0; i < kSteps; ++i) {
      asm volatile("imul %0, %0\n imul %0, %0\n imul %0, %0\n imul %0, %0" : "+r"(x));
    }
    best = std::min(best, Seconds(start) / (12.0 * kSteps));
  }
  return best;
}

Func Loop(Intrinsic f, int32_t lanes) {
  PrimFunc k;
  k.name = "f";
  Var n = VarNode::Make("n"), i = VarNode::Make("i");
  k.dims = {n};
  k.dim_lo = {0}, k.dim_hi = {-1}, k.dim_step = {1};
  const DType f32 = DType::Float(32);
  k.buffers = {BufferNode::Make("x", f32, {n}), BufferNode::Make("y", f32, {n})};
  k.num_outputs = 1;
  k.attrs.Set("exported", true);
  Expr at = Ramp::Make(i * lanes, IndexConst(1), lanes);
  std::vector<Expr> args = {Load::Make(k.buffers[0], {at})};
  if (f == Intrinsic::kPow) args.push_back(MakeConst(f32.WithLanes(lanes), 1.7));
  k.body = For::Make(i, IndexConst(0), n / lanes, ForKind::kSerial,
                     Store::Make(k.buffers[1], {at}, Call::Make(f, args)));
  return PrimFunc::Make(std::move(k));
}

int Run() {
  const Target target = Target::Host();
  const int32_t lanes = target.VectorLanes(32);
  PassContext context;
  context.target = &target;
  constexpr int64_t kN = 4096;
  auto* x = static_cast<float*>(std::aligned_alloc(64, kN * sizeof(float)));
  auto* y = static_cast<float*>(std::aligned_alloc(64, kN * sizeof(float)));
  for (int64_t i = 0; i < kN; ++i) x[i] = static_cast<float>(i % 1000) * 0.01f - 5.0f;
  const double cycle = CycleTime();
  for (Intrinsic f : {Intrinsic::kAbs, Intrinsic::kExp, Intrinsic::kExp2, Intrinsic::kLog,
                      Intrinsic::kLog2, Intrinsic::kTanh, Intrinsic::kErf, Intrinsic::kSigmoid,
                      Intrinsic::kRsqrt, Intrinsic::kPow, Intrinsic::kSin}) {
    Module module;
    module.Add(Loop(f, lanes));
    auto object = codegen::EmitObject(ExpandMath(module, context), target, {});
    auto library = artifact::LoadTemporaryLibrary({{"f.o", *object}}, {"f"}, target.triple());
    auto* run = reinterpret_cast<void (*)(const float*, float*, int64_t)>(library->Find("f"));
    double best = 1;
    for (int repeat = 0; repeat < 300; ++repeat) {
      auto start = Clock::now();
      run(x, y, kN);
      best = std::min(best, Seconds(start));
    }
    fmt::print("{:8} {:6.2f} cycles per {} lanes\n", Info(f).text,
               best / cycle / (static_cast<double>(kN) / lanes), lanes);
  }
  std::free(x);
  std::free(y);
  return 0;
}

}  // namespace
}  // namespace tenon

int main() { return tenon::Run(); }
