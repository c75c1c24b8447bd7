// What tests of kernels share: cases, and the check that a schedule keeps a kernel's meaning.
#pragma once

#include "ops/kernel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "cost/rounding.h"
#include "graph/builder.h"
#include "graph/dims.h"
#include "graph/storage_desc.h"
#include "ir/visit.h"
#include "loop/pass/pass.h"
#include "loop/print.h"
#include "support/interp_check.h"

namespace tenon::ops {

using graph::MakeLayout;
using graph::OpKind;
using graph::TensorType;
using graph::ValueId;

inline Machine MachineOf(const char* cpu) {
  return Machine::Of(*Target::Parse(fmt::format("llvm -mtriple=x86_64-linux-gnu -mcpu={}", cpu)));
}
inline const Machine& TestMachine() {
  static const Machine machine = MachineOf("x86-64-v4");
  return machine;
}

inline TensorType TypeOf(DType dtype, std::vector<int64_t> dims) {
  TensorType t;
  t.dtype = dtype;
  for (int64_t d : dims) t.dims.push_back(IndexConst(d));
  return t;
}
inline TensorType F32(std::vector<int64_t> dims) {
  return TypeOf(DType::Float(32), std::move(dims));
}

/// One operator, and perhaps what follows it.
struct Case {
  OpKind op;
  std::vector<TensorType> inputs;
  Attrs attrs;
  bool bias_relu = false;                // an epilogue: relu(op(…) + x), x of the result's type
  std::vector<graph::Dim> dims = {};     // open sizes
  std::vector<testing::Dims> at = {{}};  // and what they are in runs
  graph::ExprAttrs exprs = {};
  size_t results = 1;
};

inline graph::Graph RegionOf(const Case& c) {
  graph::Builder b("region");
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i)
    inputs.push_back(b.Input(fmt::format("x{}", i), c.inputs[i]));
  const std::vector<ValueId> all = *b.AddAll(c.op, c.results, inputs, "y", c.attrs, c.exprs);
  ValueId y = all[0];
  if (c.bias_relu) {
    ValueId x = b.Input("residual", b.type(y));
    y = *b.Add(OpKind::kAdd, {y, x}, "sum");
    y = *b.Add(OpKind::kRelu, {y}, "relu");
  }
  b.Output("y", y);
  for (size_t k = 1; k < all.size(); ++k) b.Output(fmt::format("y{}", k), all[k]);
  graph::Graph region = std::move(b).Finish();
  region.dims = c.dims;
  return region;
}

// The region with its border as the algorithm wants it at the point.
inline graph::Graph Placed(graph::Graph region, const Algorithm& algorithm, const Point& point,
                           const Machine& machine) {
  const Site site{region, AnchorOf(region), machine};
  for (const Want& w : algorithm.wants(site, point)) {
    TensorType& type = region.value(w.value).type.tensor();
    type.layout = MakeLayout(w.desc, type.dims);
  }
  return region;
}

/// Of operands that lie so, in bytes: 64 as those of an arena, 0 as a caller's, which may begin
/// anywhere.
inline Expected<Kernel> Build(const graph::Graph& region, const graph::Plan* plan,
                              const Machine& machine = TestMachine(), int64_t align = 64,
                              const VarMap& known = {}) {
  KernelRequest request;
  request.input_align.assign(region.inputs.size(), align);
  request.name = "k";
  request.region = &region;
  request.machine = &machine;
  request.plan = plan;
  request.known = known;
  return BuildKernel(request);
}

inline Module Lowered(const Module& scheduled, const Machine& machine) {
  PassContext context;
  context.target = &*machine.target;
  Module m = scheduled;
  if (machine.units.size() > 1 && machine.warp > 0) {  // each lane has its fragments
    for (const char* pass : {"select_intrinsics", "compact_buffers", "combine_threads",
                             "lower_blocks", "simplify", "lower_async", "distribute"}) {
      m = FindLoopPass(pass)->run(m, context);
    }
    return m;
  }
  if (machine.warp > 0) {  // what several launches have in common is cut up behind this
    for (const char* pass : {"compact_buffers", "combine_threads", "lower_blocks", "simplify"}) {
      m = FindLoopPass(pass)->run(m, context);
    }
    return m;
  }
  // As far as shapes stay logical: afterwards arguments are flat storage, which the tests of the
  // passes and whole networks cover.
  for (const char* pass : {"store_in_results", "compact_buffers", "lower_blocks", "simplify",
                           "split_guards", "cut_tiles", "simplify"}) {
    m = FindLoopPass(pass)->run(m, context);
  }
  return m;
}

/// Outputs within a relative distance of the reference's, norm-wise.
inline ::testing::AssertionResult Near(testing::Reference& before, const Module& after,
                                       double tolerance, const testing::Dims& dims) {
  const testing::RunResult& want = before.At(dims);
  const testing::RunResult got = testing::RunRandom(after, before.name(), dims);
  if (!want.error.empty()) return ::testing::AssertionFailure() << "before: " << want.error;
  if (!got.error.empty()) return ::testing::AssertionFailure() << "after: " << got.error;
  const size_t result = before.func()->buffers.size() - 1;
  double error = 0, norm = 0;
  const InterpArg &a = want.args[result], &b = got.args[result];
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    error += (a.Get(i) - b.Get(i)) * (a.Get(i) - b.Get(i));
    norm += a.Get(i) * a.Get(i);
  }
  if (std::sqrt(error) <= tolerance * std::sqrt(norm)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "distance " << std::sqrt(error / norm);
}

// Under sanitizers interpreting takes ten times as long and says what it says without them: there
// kernels are made, by every pass, and not run.
#if !defined(__has_feature)
#define __has_feature(x) 0
#endif
inline constexpr bool kInterprets = !__has_feature(address_sanitizer);

/// Results that are the reference's, or within a relative distance where it is above 0.
inline ::testing::AssertionResult Alike(testing::Reference& before, const Module& after,
                                        double tolerance, const testing::Dims& dims) {
  if (!kInterprets) return ::testing::AssertionSuccess();
  return tolerance > 0 ? Near(before, after, tolerance, dims)
                       : testing::SameResults(before, after, dims);
}

inline testing::Reference ReferenceOf(const Kernel& kernel) {
  Module module;
  module.Add(kernel.func);
  return {std::move(module), "k"};
}

// A dim of the case, 1 to 40, and sizes around tiles of up to eight.
inline TensorType Open(TensorType type, size_t axis, Case* c) {
  if (c->dims.empty()) {
    c->dims.push_back({VarNode::Make("m"), 1, 40, 1});
    c->at.clear();
    for (int64_t m : {1, 7, 9, 17}) c->at.push_back({{"m", m}});
  }
  type.dims[axis] = c->dims[0].var;
  return type;
}

inline constexpr size_t kPoints = 3;  // beside the cheapest

using Allowed = std::function<bool(const Point&)>;

// At most `count` points of the space, by seed, and the cheapest, of those that are allowed.
inline std::vector<Point> SomePoints(const Algorithm& algorithm, const Site& site, size_t count,
                                     const Allowed& allowed) {
  std::vector<Point> points;
  algorithm.space(site).ForEach([&](const Point& p) {
    if (!allowed || allowed(p)) points.push_back(p);
  });
  std::shuffle(points.begin(), points.end(), std::mt19937(1));
  if (points.size() > count) points.resize(count);
  points.push_back(CheapestPoint(algorithm, site, allowed)->point);
  return points;
}

// The trace of the schedule at `from`, replayed with the choices of `to`.
inline void CheckReplay(const Schedule& from, const Module& unscheduled, const Point& to,
                        const Module& wanted) {
  Schedule replayed(unscheduled, "k");
  std::map<std::string, int64_t> choices;
  for (const graph::Choice& c : to) choices[c.name] = c.value;
  replayed.UseDecisions(choices);
  const Status status = replayed.Replay(from.trace());
  ASSERT_TRUE(status) << ToString(status.errors()) << from.trace().ToString();
  std::string where;
  EXPECT_TRUE(StructuralEqual(replayed.func(), wanted.Find("k"), &where))
      << where << "\n"
      << from.trace().ToString() << Print(replayed.module()) << Print(wanted);
}

inline std::string Text(const Point& point) {
  std::string out;
  for (const graph::Choice& c : point) out += fmt::format(" {}={}", c.name, c.value);
  return out;
}

inline void Check(const Case& c, const char* name, double tolerance = 0,
                  const Machine& machine = TestMachine(), size_t num_points = kPoints,
                  const Allowed& allowed = nullptr) {
  const graph::Graph region = RegionOf(c);
  const Algorithm* algorithm = FindAlgorithm(name);
  ASSERT_TRUE(algorithm) << name;
  const Site site{region, AnchorOf(region), machine};
  ASSERT_TRUE(Applies(*algorithm, site)) << name;
  const Space space = algorithm->space(site);
  std::optional<std::pair<Point, Schedule>> last;
  std::optional<testing::Reference> before;  // of the last point, which often is the next one's
  for (const Point& point : SomePoints(*algorithm, site, num_points, allowed)) {
    const graph::Plan plan = MakePlan(*algorithm, space, point, PriceOf(*algorithm, site, point));
    const graph::Graph placed = Placed(region, *algorithm, point, machine);
    SCOPED_TRACE(fmt::format("{} {}", name, Text(point)));
    Expected<Kernel> kernel = Build(placed, &plan, machine);
    ASSERT_TRUE(kernel) << ToString(kernel.errors());
    Expected<Schedule> scheduled = ScheduleKernel(*kernel, machine);
    ASSERT_TRUE(scheduled) << ToString(scheduled.errors());
    if (!before || !StructuralEqual(before->func(), kernel->func))
      before.emplace(ReferenceOf(*kernel));
    const Module lowered = Lowered(scheduled->module(), machine);
    for (const testing::Dims& dims : c.at) {
      EXPECT_TRUE(Alike(*before, scheduled->module(), tolerance, dims));
      EXPECT_TRUE(Alike(*before, lowered, tolerance, dims));
    }
    if (last && space.SameStructure(last->first, point)) {
      CheckReplay(last->second, before->module(), point, scheduled->module());
    }
    last.emplace(point, *scheduled);
  }
}

inline Case Conv(int64_t channels, int64_t maps, int64_t size, int64_t kernel, int64_t stride,
                 int64_t pad, int64_t group) {
  bool depthwise = group > 1;
  Case c;
  c.op = OpKind::kConv;
  c.attrs = Attrs{{"strides", std::vector<int64_t>{stride, stride}},
                  {"dilations", std::vector<int64_t>{1, 1}},
                  {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
                  {"group", group}};
  c.inputs = {F32({1, channels, size, size}), F32({maps, depthwise ? 1 : channels, kernel, kernel}),
              F32({maps})};
  return c;
}

// With weights that are transformed already, and a bias.
inline Case WinogradConv(int64_t tile, int64_t channels, int64_t maps, int64_t height,
                         int64_t width) {
  Case c;
  c.op = OpKind::kWinogradConv;
  c.attrs = Attrs{{"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  c.inputs = {F32({1, channels, height, width}), F32({maps, channels, tile + 2, tile + 2}),
              F32({maps})};
  return c;
}

inline const Machine& ThreadsMachine() {
  static const Machine machine = Machine::Of(*Target::Parse("opencl"));
  return machine;
}

inline constexpr size_t kWarpPoints = 1;  // their threads are many

inline Case Product(DType type, std::vector<int64_t> a, std::vector<int64_t> b, bool trans_b) {
  Case c;
  c.op = OpKind::kMatMul;
  c.inputs = {TypeOf(type, std::move(a)), TypeOf(type, std::move(b))};
  c.attrs = Attrs{{"trans_b", trans_b}, {"result", std::string("f32")}};
  return c;
}

}  // namespace tenon::ops
