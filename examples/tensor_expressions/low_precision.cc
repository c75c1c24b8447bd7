// Matrix products of bytes and of bfloat16 numbers by the dot-product units of AVX-512, or in the
// tiles of AMX, by tensorize.
//
//   low_precision [SIZE [REPEAT]]
//
// prints the rate of each product and how many times it is the peak of 32-bit multiply-adds on the
// same cores. On a machine without the units the same programs run as plain code: slowly, with the
// same results. docs/tutorial.md says how it works; low_precision.py is this program in Python.
#include <cmath>
#include <cstdio>

#include "measure.h"
#include "tenon/compiler.hpp"

namespace te = tenon::te;
using tenon::DataType;
using tenon::Tensor;

constexpr int64_t kRows = 4, kWidth = 64;  // of C: the sums that are kept in registers
constexpr int64_t kLanes = 16;             // 32-bit sums in a register

struct Kernel {
  tenon::Schedule s;
  std::vector<te::Tensor> args;
};

// panels[j / 16, k / group, j % 16, k % group] = B[k, j]: what the unit takes at once lies
// together.
std::vector<te::Expr> PanelShape(int64_t n, int64_t group) {
  return {n / kLanes, n / group, kLanes, group};
}
Kernel Packing(int64_t n, int64_t group, DataType type, DataType panel_type) {
  te::Tensor b = te::Placeholder({n, n}, type, "B");
  te::Tensor panels = te::Compute(
      PanelShape(n, group),
      [&](te::Var p, te::Var q, te::Var j, te::Var k) {
        return te::Cast(b(q * group + k, p * kLanes + j), panel_type);
      },
      "panels");
  tenon::Schedule s = tenon::CreateSchedule({panels});
  s[panels].Parallel(panels.op().axis()[0]);
  return {s, {b, panels}};
}

// C = A B, B in panels.
te::Tensor Product(int64_t n, const te::Tensor& a, const te::Tensor& panels, int64_t group,
                   DataType result) {
  te::IterVar k = te::ReduceAxis(0, n);
  return te::Compute(
      {n, n},
      [&](te::Var i, te::Var j) {
        te::Expr b = panels(j / kLanes, k / group, j % kLanes, k % group);
        return te::Sum(te::Cast(a(i, k), result) * te::Cast(b, result), {k});
      },
      "C");
}

// As in matmul.cc, but what adds to 16 sums is one instruction.
void Tensorize(tenon::Schedule& s, const te::Tensor& c, int64_t group, const char* intrinsic) {
  tenon::Stage sums = s[s.CacheWrite(c, "register")];
  auto [io, jo, ii, ji] = s[c].Tile(c.op().axis()[0], c.op().axis()[1], kRows, kWidth);
  sums.ComputeAt(s[c], jo);
  te::IterVar i = sums.op().axis()[0];
  auto [ko, ki] = sums.Split(sums.op().reduce_axis()[0], group);
  auto [vector, lane] = sums.Split(sums.op().axis()[1], kLanes);
  sums.Reorder({ko, i, vector, lane, ki});
  sums.Unroll(i);
  sums.Unroll(vector);
  sums.Vectorize(lane);  // for the zeros in the beginning
  sums.Tensorize(lane, intrinsic);
  s[c].Vectorize(ji);
  s[c].Parallel(io);
}

// C = A B in tiles of 16 rows of 64 bytes. Four tiles of sums, two of A and two of B are what the
// machine has; what moves a tile is an intrinsic as what multiplies two of them is.
struct TileIntrinsics {
  const char *load_rows, *load_columns, *product, *store;
};
te::Tensor ProductInTiles(int64_t n, const te::Tensor& a, const te::Tensor& panels, int64_t group,
                          DataType result, te::Tensor* rows, te::Tensor* columns,
                          te::Tensor* sums) {
  const int64_t width = 16 * group;  // of a tile of A
  *rows = te::Compute(
      {n / 16, n / width, 16, width},
      [&](te::Var p, te::Var q, te::Var i, te::Var k) { return a(p * 16 + i, q * width + k); },
      "rows");
  *columns = te::Compute(
      {n / 16, n / width, 16, 16, group},
      [&](te::Var p, te::Var q, te::Var r, te::Var j, te::Var k) {
        return panels(p, q * 16 + r, j, k);
      },
      "columns");
  te::IterVar q = te::ReduceAxis(0, n / width), k = te::ReduceAxis(0, width);
  *sums = te::Compute(
      {n / 16, n / 16, 16, 16},
      [&](te::Var p, te::Var r, te::Var i, te::Var j) {
        return te::Sum(te::Cast((*rows)(p, q, i, k), result) *
                           te::Cast((*columns)(r, q, k / group, j, k % group), result),
                       {q, k});
      },
      "sums");
  return te::Compute(
      {n, n}, [&](te::Var i, te::Var j) { return (*sums)(i / 16, j / 16, i % 16, j % 16); }, "C");
}

tenon::Schedule InTiles(int64_t n, const te::Tensor& a, const te::Tensor& panels, int64_t group,
                        DataType result, const TileIntrinsics& by, te::Tensor* c) {
  te::Tensor rows, columns, sums;
  *c = ProductInTiles(n, a, panels, group, result, &rows, &columns, &sums);
  tenon::Schedule s = tenon::CreateSchedule({*c});
  tenon::Stage out = s[*c], add = s[sums];
  auto [io, jo, ii, ji] = out.Tile(c->op().axis()[0], c->op().axis()[1], 32, 32);
  auto [it, i] = out.Split(ii, 16);
  auto [jt, j] = out.Split(ji, 16);
  out.Reorder({io, jo, it, jt, i, j});
  out.Unroll(it);
  out.Unroll(jt);
  out.Tensorize(i, by.store);
  out.Parallel(io);
  add.SetScope("tile");
  add.ComputeAt(out, jo);
  std::vector<te::IterVar> x = sums.op().axis(), k = sums.op().reduce_axis();
  add.Reorder({k[0], x[0], x[1], x[2], x[3], k[1]});
  add.Unroll(x[0]);  // a tile's number is part of the instruction
  add.Unroll(x[1]);
  add.Tensorize(x[2], by.product);
  for (const auto& [tile, load] : {std::pair{rows, by.load_rows}, {columns, by.load_columns}}) {
    s[tile].SetScope("tile");
    s[tile].ComputeAt(add, k[0]);
    s[tile].Unroll(tile.op().axis()[0]);
    s[tile].Tensorize(tile.op().axis()[2], load);
  }
  return s;
}

bool Has(const char* feature) {
  for (const std::string& f : tenon::Target().features()) {
    if (f == feature) return true;
  }
  return false;
}

// Bytes without a sign times bytes with one, summed in 32 bits: exact.
Kernel Int8(int64_t n) {
  te::Tensor a = te::Placeholder({n, n}, DataType::kUInt8, "A");
  te::Tensor panels = te::Placeholder(PanelShape(n, 4), DataType::kInt8, "panels");
  if (Has("amx-int8")) {
    te::Tensor c;
    tenon::Schedule s = InTiles(
        n, a, panels, 4, DataType::kInt32,
        {"x86.tileloadd.u8", "x86.tileloadd.i8.groups", "x86.tdpbusd", "x86.tilestored.i32"}, &c);
    return {s, {a, panels, c}};
  }
  te::Tensor c = Product(n, a, panels, 4, DataType::kInt32);
  tenon::Schedule s = tenon::CreateSchedule({c});
  Tensorize(s, c, 4, "x86.vpdpbusd.512.row");
  return {s, {a, panels, c}};
}

// 32-bit floats whose factors are rounded to bfloat16: half the memory, three digits.
Kernel Bf16(int64_t n) {
  te::Tensor a = te::Placeholder({n, n}, DataType::kFloat32, "A");
  te::Tensor half = te::Compute(
      {n, n}, [&](te::Var i, te::Var k) { return te::Cast(a(i, k), DataType::kBFloat16); }, "half");
  te::Tensor panels = te::Placeholder(PanelShape(n, 2), DataType::kBFloat16, "panels");
  if (Has("amx-bf16")) {
    te::Tensor c;
    tenon::Schedule s = InTiles(
        n, half, panels, 2, DataType::kFloat32,
        {"x86.tileloadd.bf16", "x86.tileloadd.bf16.groups", "x86.tdpbf16ps", "x86.tilestored.f32"},
        &c);
    s[half].Vectorize(s[half].Split(half.op().axis()[1], kLanes).second);
    s[half].Parallel(half.op().axis()[0]);
    return {s, {a, panels, c}};
  }
  te::Tensor c = Product(n, half, panels, 2, DataType::kFloat32);
  tenon::Schedule s = tenon::CreateSchedule({c});
  s[half].Vectorize(s[half].Split(half.op().axis()[1], kLanes).second);
  s[half].Parallel(half.op().axis()[0]);
  Tensorize(s, c, 2, "x86.vdpbf16ps.512.row");
  return {s, {a, panels, c}};
}

// Measures a product of tensors of type A and B; false where a result differs from sums in double
// precision by more than `tolerance` of the sum of the factors' magnitudes.
template <class A, class B, class C>
bool Run(const char* name, int64_t n, int repeat, const Kernel& packing, const Kernel& product,
         Tensor x, Tensor y, Tensor panels, Tensor z, double tolerance) {
  tenon::Library pack = tenon::Build(packing.s, packing.args);
  tenon::Library library = tenon::Build(product.s, product.args);
  tenon::Function f = library.GetFunction("main");
  pack.GetFunction("main")(y, panels);  // once: weights
  f(x, panels, z);
  for (int64_t at = 0; at < n * n; at += 211) {
    double sum = 0, magnitude = 0;
    for (int64_t k = 0; k < n; ++k) {
      const double term = static_cast<double>(x.data_as<A>()[at / n * n + k]) *
                          static_cast<double>(y.data_as<B>()[k * n + at % n]);
      sum += term;
      magnitude += std::abs(term);
    }
    if (std::abs(static_cast<double>(z.data_as<C>()[at]) - sum) > tolerance * magnitude)
      return false;
  }
  const Probe probe(Cores());
  std::vector<double> seconds, times;
  for (int i = 0; i < repeat; ++i) {
    const double before = probe();
    seconds.push_back(SecondsOf([&] { f(x, panels, z); }));
    times.push_back(2.0 * n * n * n / seconds.back() / 1e9 / std::max(before, probe()));
  }
  std::printf("%-12s%9.2f%10.1f%9.1f\n", name, Median(seconds) * 1e3,
              2.0 * n * n * n / Median(seconds) / 1e9, Median(times));
  return true;
}

template <class T>
Tensor Filled(int64_t n, DataType type, T (*value)(int64_t)) {
  Tensor t = Tensor::Empty({n, n}, type);
  for (int64_t i = 0; i < n * n; ++i) t.data_as<T>()[i] = value(i * 7919 % 1009);
  return t;
}

int main(int argc, char** argv) try {
  const int64_t n = argc > 1 ? std::atoll(argv[1]) : 1024;
  const int repeat = argc > 2 ? std::atoi(argv[2]) : 5;
  if (n <= 0 || n % kWidth != 0) {
    std::fprintf(stderr, "usage: low_precision [SIZE [REPEAT]], SIZE a multiple of %d\n",
                 int{kWidth});
    return 2;
  }
  std::printf("%d x %d, %d cores\n\n%-12s%9s%10s%9s\n", int(n), int(n), Cores(), "type", "ms",
              "GOP/s", "x peak");
  auto byte = [](int64_t i) { return static_cast<uint8_t>(i); };
  auto signed_byte = [](int64_t i) { return static_cast<int8_t>(i); };
  auto number = [](int64_t i) { return static_cast<float>(i) / 500 - 1; };
  const bool bytes = Run<uint8_t, int8_t, int32_t>(
      "int8", n, repeat, Packing(n, 4, DataType::kInt8, DataType::kInt8), Int8(n),
      Filled<uint8_t>(n, DataType::kUInt8, byte), Filled<int8_t>(n, DataType::kInt8, signed_byte),
      Tensor::Empty({n / kLanes, n / 4, kLanes, 4}, DataType::kInt8),
      Tensor::Empty({n, n}, DataType::kInt32), 0);
  const bool halves = Run<float, float, float>(
      "bf16", n, repeat, Packing(n, 2, DataType::kFloat32, DataType::kBFloat16), Bf16(n),
      Filled<float>(n, DataType::kFloat32, number), Filled<float>(n, DataType::kFloat32, number),
      Tensor::Empty({n / kLanes, n / 2, kLanes, 2}, DataType::kBFloat16),
      Tensor::Empty({n, n}, DataType::kFloat32), 0.01);
  if (!bytes || !halves) std::puts("wrong");
  return bytes && halves ? 0 : 1;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "low_precision: %s\n", error.what());
  return 1;
}
