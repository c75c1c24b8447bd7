// What one schedule primitive costs on a nest of 20 loops: the middle of many, in microseconds,
// for each primitive of the table.
//
//   bench_schedule_primitives [most microseconds, default 1000: exit 1 where one takes longer]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "arith/analyzer.h"
#include "loop/parse.h"
#include "schedule/run.h"
#include "schedule/schedule.h"

namespace tenon {
namespace {

constexpr int kTimes = 31;

// A producer of 18 loops, a reduction C of 20 loops over it, and a consumer of 18: a text that is
// easier made by a program.
std::string Text() {
  std::string dims, point, loops_p, vars_p, loops_c, vars_c, point_c, loops_d, vars_d, point_d;
  for (int i = 0; i < 18; ++i) {
    const std::string n = std::to_string(i), comma = i > 0 ? ", " : "";
    dims += comma + "4";
    loops_p += comma + "p" + n + " in 0..4";
    vars_p += comma + "vp" + n + ": spatial = p" + n;
    point += comma + "vp" + n;
    loops_c += comma + "i" + n + " in 0..4";
    vars_c += comma + "vi" + n + ": spatial = i" + n;
    point_c += comma + "vi" + n;
    loops_d += comma + "d" + n + " in 0..4";
    vars_d += comma + "vd" + n + ": spatial = d" + n;
    point_d += comma + "vd" + n;
  }
  return fmt::format(R"(
func @dot(A: f32[1], B: f32[4], out C: f32[1]) kind device {{
  for k in 0..4 {{
    block C(vk: reduce = k) fp: reassoc {{
      reads A[0], B[vk], C[0]; writes C[0]
      C[0] = C[0] + A[0] * B[vk]
    }}
  }}
}}
func @f<n: 1..=64>(A: f32[{dims}], W: f32[4, 4], X: f32[n], out D: f32[{dims}], out Y: f32[n]) {{
  alloc P: f32[{dims}]
  alloc C: f32[{dims}]
  for {loops_p} {{
    block P({vars_p}) {{
      reads A[{point}]; writes P[{point}]
      P[{point}] = A[{point}] * 2f32
    }}
  }}
  for {loops_c}, k in 0..4, l in 0..4 {{
    block C({vars_c}, vk: reduce = k, vl: reduce = l) fp: reassoc {{
      reads P[{point_c}], W[vk, vl]; writes C[{point_c}]
      init {{ C[{point_c}] = 0f32 }}
      C[{point_c}] = C[{point_c}] + P[{point_c}] * W[vk, vl]
    }}
  }}
  for {loops_d} {{
    block D({vars_d}) {{
      reads C[{point_d}]; writes D[{point_d}]
      D[{point_d}] = C[{point_d}] + 1f32
    }}
  }}
  for y in 0..n {{
    block Y(vy: spatial = y) {{
      reads X[vy]; writes Y[vy]
      Y[vy] = X[vy]
    }}
  }}
}})",
                     fmt::arg("dims", dims), fmt::arg("loops_p", loops_p),
                     fmt::arg("vars_p", vars_p), fmt::arg("point", point),
                     fmt::arg("loops_c", loops_c), fmt::arg("vars_c", vars_c),
                     fmt::arg("point_c", point_c), fmt::arg("loops_d", loops_d),
                     fmt::arg("vars_d", vars_d), fmt::arg("point_d", point_d));
}

struct Row {
  const char* primitive;
  std::function<void(Schedule&)> before;  // not timed
  std::function<void(Schedule&)> step;
};

using S = Schedule;
void Nothing(S&) {}

std::vector<Row> Rows() {
  auto layout = [] {  // one of the coordinates in two
    std::vector<Var> from;
    std::vector<Expr> to;
    for (int i = 0; i < 18; ++i) {
      from.push_back(VarNode::Make("c" + std::to_string(i)));
      to.push_back(i == 3 ? from.back() / 2 : Expr(from.back()));
    }
    to.push_back(from[3] % 2);
    return LayoutNode::Make(std::move(from), std::move(to));
  };
  return {
      {"split", Nothing, [](S& s) { s.Split("i9", {-1, 2}); }},
      {"tile", Nothing, [](S& s) { s.TileLoops({"i8", "i9"}, {2, 2}); }},
      {"partition", Nothing, [](S& s) { s.Partition("i9", {1}); }},
      {"partition_equal", Nothing, [](S& s) { s.PartitionEqual("i9", 2); }},
      {"fuse", Nothing, [](S& s) { s.Fuse({"i8", "i9"}); }},
      {"reorder", Nothing, [](S& s) { s.Reorder({"k", "i9", "i0"}); }},
      {"parallel", Nothing, [](S& s) { s.Parallel("i0"); }},
      {"vectorize", Nothing, [](S& s) { s.Vectorize("d17"); }},
      {"unroll", Nothing, [](S& s) { s.Unroll("l"); }},
      {"bind", Nothing, [](S& s) { s.Bind("i0", ThreadAxis::kBlockIdxX); }},
      {"compute_at", Nothing, [](S& s) { s.ComputeAt("P", "i9"); }},
      {"reverse_compute_at", Nothing, [](S& s) { s.ReverseComputeAt("D", "i9"); }},
      {"compute_root", [](S& s) { s.ComputeAt("P", "i9"); }, [](S& s) { s.ComputeRoot("P"); }},
      {"compute_inline", Nothing, [](S& s) { s.ComputeInline("P"); }},
      {"reverse_compute_inline", [](S& s) { s.CacheRead("P", "A", Scope::kLocal); },
       [](S& s) { s.ReverseComputeInline("P"); }},
      {"cache_read", Nothing, [](S& s) { s.CacheRead("C", "P", Scope::kLocal); }},
      {"cache_write", Nothing, [](S& s) { s.CacheWrite("C", "C", Scope::kLocal); }},
      {"set_scope", Nothing, [](S& s) { s.SetScope("P", Scope::kLocal); }},
      {"decompose_reduction", Nothing, [](S& s) { s.DecomposeReduction("C", "i9"); }},
      {"rfactor", Nothing, [](S& s) { s.RFactor("k", 0); }},
      {"transform_layout", Nothing, [=](S& s) { s.TransformLayout("P", layout()); }},
      {"storage_align", Nothing, [](S& s) { s.StorageAlign("P", 16, 8, 1); }},
      {"transform_block_layout", Nothing, [=](S& s) { s.TransformBlockLayout("D", layout()); }},
      {"pad_einsum", Nothing,
       [](S& s) {
         std::vector<int64_t> multiples(18, 3);
         multiples.insert(multiples.end(), {1, 1});
         s.PadEinsum("C", multiples);
       }},
      {"prefetch", Nothing, [](S& s) { s.Prefetch("P", "A", "p9", 1); }},
      {"software_pipeline", [](S& s) { s.ComputeAt("P", "i17"); },
       [](S& s) { s.SoftwarePipeline("i17", {0, 1}, {0, 1}); }},
      {"double_buffer", [](S& s) { s.ComputeAt("P", "i17"); }, [](S& s) { s.DoubleBuffer("P"); }},
      {"rolling_buffer", [](S& s) { s.ComputeAt("P", "i17"); },
       [](S& s) { s.RollingBuffer("P", "i17"); }},
      {"blockize", [](S& s) { s.DecomposeReduction("C", "i0"); }, [](S& s) { s.Blockize("l"); }},
      {"tensorize", [](S& s) { s.DecomposeReduction("C", "i0"); },
       [](S& s) { s.Tensorize("l", "dot"); }},
      {"specialize", Nothing, [](S& s) { s.Specialize(Eq(s.func()->dims[0], IndexConst(8))); }},
      {"outline", Nothing, [](S& s) { s.Outline("p9", "piece"); }},
      {"annotate", Nothing, [](S& s) { s.Annotate("i9", "key", int64_t{1}); }},
  };
}

// The middle time in microseconds; also of a refusal, which is as much work.
double Measure(const Schedule& start, const Row& row, std::string* refused) {
  Schedule before = start;
  row.before(before);
  std::vector<double> times;
  for (int i = 0; i < kTimes; ++i) {
    Schedule s = before;
    const auto from = std::chrono::steady_clock::now();
    row.step(s);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - from;
    times.push_back(took.count());
    if (!s.ok()) *refused = ToString(s.status().errors());
  }
  std::nth_element(times.begin(), times.begin() + kTimes / 2, times.end());
  return times[kTimes / 2];
}

int Main(double most) {
  Expected<Module> module = ParseModule(Text(), "bench");
  if (!module) {
    fmt::print(stderr, "{}\n", ToString(module.errors()));
    return 2;
  }
  const Schedule start(*module, "f");
  std::vector<std::string> missing = primitive::PrimitiveNames();
  bool slow = false;
  for (const Row& row : Rows()) {
    std::erase(missing, row.primitive);
    std::string refused;
    const double time = Measure(start, row, &refused);
    slow |= time > most;
    fmt::print("{:<24} {:>9.1f} us{}{}\n", row.primitive, time, time > most ? "  SLOW" : "",
               refused.empty() ? "" : "  refused: " + refused);
  }
  for (const std::string& name : missing) fmt::print("{} is not measured\n", name);
  return slow || !missing.empty() ? 1 : 0;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) { return tenon::Main(argc > 1 ? std::atof(argv[1]) : 1000); }
