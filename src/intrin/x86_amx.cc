// AMX: eight tiles of 16 rows of 64 bytes each, and products of two of them added to a third. Intel
// SDM, TILELOADD, TILESTORED, TILEZERO, TDPBUSD, TDPBSSD, TDPBF16PS.
//
// A buffer in scope `tile` is as many tiles as it has kilobytes; the back end numbers those that
// are alive together, of which there are eight, and configures all of them whole when a worker
// enters the function. The right factor of a product has groups of 32 bits in its rows, of which
// each goes with one column: B[k / 4, j, k % 4].
#include <fmt/format.h>

#include "intrin/tile_intrinsic.h"

namespace tenon {

namespace {

constexpr const char* kState = "amx";

// What moves a tile between memory, whose rows are `s` elements apart, and a tile.
std::string Move(const std::string& name, DType type, bool load) {
  const int64_t columns = 64 / type.Bytes();
  const std::string shape = fmt::format("{}[16, {}]", type.ToString(), columns);
  return fmt::format(R"(
func @{0}<s>({1}: {2}{3}, out {4}: {2}{5}) kind device {{
  for i in 0..16, j in 0..{6} {{
    block move(vi: spatial = i, vj: spatial = j) {{
      reads {1}[vi, vj]
      writes {4}[vi, vj]
      {4}[vi, vj] = {1}[vi, vj]
    }}
  }}
}}
)",
                     name, load ? "M" : "T", shape, load ? " strides (s, 1)" : " in tile",
                     load ? "T" : "M", load ? " in tile" : " strides (s, 1)", columns);
}

// The same of a right factor: rows of 16 groups of 32 bits.
std::string MoveGroups(const std::string& name, DType type) {
  const int64_t group = 4 / type.Bytes();
  return fmt::format(R"(
func @{0}<s>(M: {1}[16, 16, {2}] strides (s, {2}, 1), out T: {1}[16, 16, {2}] in tile) kind device {{
  for i in 0..16, j in 0..16, k in 0..{2} {{
    block move(vi: spatial = i, vj: spatial = j, vk: spatial = k) {{
      reads M[vi, vj, vk]
      writes T[vi, vj, vk]
      T[vi, vj, vk] = M[vi, vj, vk]
    }}
  }}
}}
)",
                     name, type.ToString(), group);
}

std::string Zero(const std::string& name, DType type) {
  return fmt::format(R"(
func @{0}(out T: {1}[16, 16] in tile) kind device {{
  for i in 0..16, j in 0..16 {{
    block zero(vi: spatial = i, vj: spatial = j) {{
      writes T[vi, vj]
      T[vi, vj] = 0{1}
    }}
  }}
}}
)",
                     name, type.ToString());
}

// The sum is exact in 32 bits and wraps when added.
std::string Bytes(const std::string& name, const char* a) {
  return fmt::format(R"(
func @{0}(A: {1}[16, 64] in tile, B: i8[16, 16, 4] in tile, out C: i32[16, 16] in tile) kind device {{
  for i in 0..16, j in 0..16, k in 0..64 {{
    block dot(vi: spatial = i, vj: spatial = j, vk: reduce = k) reducer: add {{
      reads A[vi, vk], B[vk / 4, vj, vk % 4], C[vi, vj]
      writes C[vi, vj]
      C[vi, vj] = C[vi, vj] + i32(A[vi, vk]) * i32(B[vk / 4, vj, vk % 4])
    }}
  }}
}}
)",
                     name, a);
}

std::string Flushed(const std::string& x) {
  return fmt::format("select(abs({0}) < 1.1754943508222875e-38f32, {0} * 0f32, {0})", x);
}

// Even and odd products are summed apart, from zero, each by fused multiply-adds; then their sum
// goes to the old value. Denormals are zero on entry and after each rounding.
std::string Halves(const std::string& name) {
  return fmt::format(R"(
func @{0}(A: bf16[16, 32] in tile, B: bf16[16, 16, 2] in tile, out C: f32[16, 16] in tile) kind device {{
  alloc T: f32[2] in register
  for i in 0..16, j in 0..16 {{
    for p in 0..2 {{
      block start(vp: spatial = p) {{
        writes T[vp]
        T[vp] = 0f32
      }}
      for k in 0..16 {{
        block dot(vi: spatial = i, vj: spatial = j, vp: spatial = p, vk: ordered = k) {{
          reads A[vi, vk * 2 + vp], B[vk, vj, vp], T[vp]
          writes T[vp]
          T[vp] = fma({1}, {2}, T[vp])
        }}
        block flush(vp: spatial = p, vk: ordered = k) {{
          reads T[vp]
          writes T[vp]
          T[vp] = {3}
        }}
      }}
    }}
    block add(vi: spatial = i, vj: spatial = j) {{
      reads T[0..2], C[vi, vj]
      writes C[vi, vj]
      C[vi, vj] = {4} + {5}
    }}
    block end(vi: spatial = i, vj: spatial = j) {{
      reads C[vi, vj]
      writes C[vi, vj]
      C[vi, vj] = {4}
    }}
  }}
}}
)",
                     name, Flushed("f32(A[vi, vk * 2 + vp])"), Flushed("f32(B[vk, vj, vp])"),
                     Flushed("T[vp]"), Flushed("C[vi, vj]"), Flushed("(T[0] + T[1])"));
}

std::string HalvesPattern(const std::string& name) {
  return fmt::format(R"(
func @{0}(A: bf16[16, 32] in tile, B: bf16[16, 16, 2] in tile, out C: f32[16, 16] in tile) kind device {{
  for i in 0..16, j in 0..16, k in 0..32 {{
    block dot(vi: spatial = i, vj: spatial = j, vk: reduce = k) reducer: add fp: contract {{
      reads A[vi, vk], B[vk / 2, vj, vk % 2], C[vi, vj]
      writes C[vi, vj]
      C[vi, vj] = C[vi, vj] + f32(A[vi, vk]) * f32(B[vk / 2, vj, vk % 2])
    }}
  }}
}}
)",
                     name);
}

void Add(TileIntrinsics* table, const std::string& name, const char* feature,
         const std::string& meaning, const std::string& pattern, const char* llvm,
         std::vector<EmissionArg> args, const std::string& start = "",
         std::vector<std::string> moves = {}) {
  table->Add({.name = name,
              .feature = feature,
              .state = kState,
              .meaning = meaning,
              .pattern = pattern,
              .emissions = {{Emission::Kind::kLlvm, llvm, std::move(args), ""}},
              .start = start,
              .moves = std::move(moves)});
}

void AddMove(TileIntrinsics* table, const std::string& name, DType type, const std::string& meaning,
             bool load) {
  const int memory = load ? 0 : 1, tile = load ? 1 : 0;
  Add(table, name, "amx-tile", meaning, "", load ? "llvm.x86.tileloadd64" : "llvm.x86.tilestored64",
      {{ArgKind::kTile, tile}, {ArgKind::kAddress, memory}, {ArgKind::kStride, 0, type}});
}

}  // namespace

void RegisterX86Amx(TileIntrinsics* table) {
  const DType i8 = DType::Int(8), u8 = DType::UInt(8), half = DType::BFloat16();
  for (DType type : {i8, u8, half, DType::Int(32), DType::Float(32)}) {
    const std::string name = "x86.tileloadd." + type.ToString();
    AddMove(table, name, type, Move(name, type, true), true);
  }
  for (DType type : {i8, half}) {
    const std::string name = "x86.tileloadd." + type.ToString() + ".groups";
    AddMove(table, name, type, MoveGroups(name, type), true);
  }
  for (DType type : {DType::Int(32), DType::Float(32)}) {
    const std::string store = "x86.tilestored." + type.ToString();
    AddMove(table, store, type, Move(store, type, false), false);
    const std::string zero = "x86.tilezero." + type.ToString();
    Add(table, zero, "amx-tile", Zero(zero, type), "", "llvm.x86.tilezero", {{ArgKind::kTile, 0}});
  }
  const std::vector<EmissionArg> product = {
      {ArgKind::kTile, 2}, {ArgKind::kTile, 0}, {ArgKind::kTile, 1}};
  Add(table, "x86.tdpbusd", "amx-int8", Bytes("x86.tdpbusd", "u8"), "", "llvm.x86.tdpbusd", product,
      "x86.tilezero.i32", {"x86.tileloadd.u8", "x86.tileloadd.i8.groups", "x86.tilestored.i32"});
  Add(table, "x86.tdpbssd", "amx-int8", Bytes("x86.tdpbssd", "i8"), "", "llvm.x86.tdpbssd", product,
      "x86.tilezero.i32", {"x86.tileloadd.i8", "x86.tileloadd.i8.groups", "x86.tilestored.i32"});
  Add(table, "x86.tdpbf16ps", "amx-bf16", Halves("x86.tdpbf16ps"), HalvesPattern("x86.tdpbf16ps"),
      "llvm.x86.tdpbf16ps", product, "x86.tilezero.f32",
      {"x86.tileloadd.bf16", "x86.tileloadd.bf16.groups", "x86.tilestored.f32"});
}

}  // namespace tenon
