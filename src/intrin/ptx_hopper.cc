// The units of sm_90: the copy engine for tensors (TMA) and products by the 128 threads of a
// warpgroup that read their factors from shared memory (wgmma). PTX ISA, cp.async.bulk.tensor and
// wgmma.mma_async.
//
// Both see shared memory in pieces of 8 rows of 128 bytes in which the 16-byte chunks of row r
// stand at the places of their own numbers xor r: the swizzle of 128 bytes, without which eight
// rows of one column would meet in one bank. A tile is as many pieces above each other as it has
// rows, and tiles of 64 columns lie one behind the other; it begins at a multiple of 1024 bytes,
// because the units take r from the address.
#include "intrin/ptx_hopper.h"

#include <fmt/format.h>

#include "intrin/tile_intrinsic.h"

namespace tenon {

namespace {

constexpr int64_t kSide = kBulkCopySide;  // 128 bytes in a row

// A buffer of (i, j) whose rows of 64 columns are swizzled.
std::string Tile(const char* name, DType type, int64_t rows, int64_t columns) {
  const std::string block = columns > kSide ? "j / 64 size _, " : "";
  const std::string chunk = columns > kSide ? "j % 64 / 8" : "j / 8";
  return fmt::format(
      "{}: {}[{}, {}] layout (i, j) -> ({}i size _, bitxor({}, i % 8) size 8, j % 8 size _) in "
      "shared align 1024",
      name, type.ToString(), rows, columns, block, chunk);
}

// ---- copies ----

void AddCopy(TileIntrinsics* table, DType type) {
  const std::string name = kBulkCopyRows + type.ToString();
  const std::string meaning = fmt::format(R"(
func @{0}<s: 0.. step 8>(M: {1}[64, 64] strides (s, 1), out {2}) kind device {{
  for i in 0..64, j in 0..64 {{
    block move(vi: spatial = i, vj: spatial = j) {{
      reads M[vi, vj]
      writes T[vi, vj]
      T[vi, vj] = M[vi, vj]
    }}
  }}
}}
)",
                                          name, type.ToString(), Tile("T", type, kSide, kSide));
  // The operands are those of a bulk copy, loop/warpgroup.h.
  const std::string text =
      R"(asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1, {{%3, %4}}], [%2];"
               :
               : "r"((uint32_t)__cvta_generic_to_shared({1})), "l"({0}),
                 "r"((uint32_t)__cvta_generic_to_shared({2})), "r"((int32_t){5}), "r"((int32_t){4})
               : "memory");)";
  table->Add({.name = name,
              .feature = "sm_90",
              .state = "",
              .meaning = meaning,
              .pattern = "",
              .emissions = {{Emission::Kind::kCuda, text, {}, ""}}});
}

// ---- products ----

struct Product {
  DType type;
  const char* ptx;
  int64_t columns;
  bool turned;  // the right factor's columns are rows of memory
};

std::string NameOf(const Product& p) {
  return fmt::format("{}{}k64.{}{}", kWarpgroupRows, p.columns, p.type.ToString(),
                     p.turned ? ".t" : "");
}

std::string Meaning(const Product& p) {
  const std::string right =
      p.turned ? Tile("B", p.type, p.columns, kSide) : Tile("B", p.type, kSide, p.columns);
  return fmt::format(R"(
func @{0}({1}, {2}, out C: f32[64, {3}] layout (i, j) -> (i / 16 * 32 + i % 8 * 4 + j % 8 / 2 on threadIdx.x, j / 8, i / 8 % 2 * 2 + j % 2) in fragment) kind device {{
  for i in 0..64, j in 0..{3}, k in 0..64 {{
    block dot(vi: spatial = i, vj: spatial = j, vk: reduce = k) reducer: add fp: contract {{
      reads A[vi, vk], B[{4}], C[vi, vj]
      writes C[vi, vj]
      C[vi, vj] = C[vi, vj] + f32(A[vi, vk]) * f32(B[{4}])
    }}
  }}
}}
)",
                     NameOf(p), Tile("A", p.type, kSide, kSide), right, p.columns,
                     p.turned ? "vj, vk" : "vk, vj");
}

// How the unit is told where a factor lies: its address in units of 16 bytes; how far apart its
// blocks of 64 columns are, and its pieces of 8 rows; and the swizzle.
std::string Descriptor(const char* name, const char* operand, int64_t block, int64_t piece) {
  return fmt::format(
      "const uint64_t {0} = (uint64_t)(((uint32_t)__cvta_generic_to_shared({1}) & 0x3ffff) >> 4) "
      "|\n"
      "                     (uint64_t){2} << 16 | (uint64_t){3} << 32 | (uint64_t)1 << 62;\n  ",
      name, operand, block / 16, piece / 16);
}

// Four steps of 16 along k. A factor whose rows run along k has the next step 32 bytes further in
// its rows, another 16 rows further down.
std::string ProductText(const Product& p) {
  const int64_t registers = p.columns / 2;
  std::string sums, operands;
  for (int64_t i = 0; i < registers; ++i) {
    sums += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
    operands += fmt::format("{}\"+f\"({{2}}[{}])", i == 0 ? "" : ", ", i);
  }
  const int64_t step_b = p.turned ? 32 : 16 * 128;
  std::string out = Descriptor("a", "{0}", 16, 1024);
  out += Descriptor("b", "{1}", p.turned ? 16 : 64 * 128, 1024);
  // What threads have stored in a factor is the unit's to read from here on.
  out += "asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");\n";
  out += "  asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");\n";
  for (int64_t step = 0; step < 4; ++step) {
    out += fmt::format(
        "  asm volatile(\"{{{{.reg .pred adds; setp.ne.b32 adds, 1, 0; \"\n"
        "               \"wgmma.mma_async.sync.aligned.m64n{0}k16.f32.{1}.{1} \"\n"
        "               \"{{{{{2}}}}}, %{3}, %{4}, adds, 1, 1, 0, {5};}}}}\"\n               : "
        "{6}\n"
        "               : \"l\"(a + {7}), \"l\"(b + {8}));\n",
        p.columns, p.ptx, sums, registers, registers + 1, p.turned ? 0 : 1, operands,
        step * 32 / 16, step * step_b / 16);
  }
  out += "  asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");\n";
  out += "  asm volatile(\"wgmma.wait_group.sync.aligned 0;\" ::: \"memory\");";
  return out;
}

void AddProduct(TileIntrinsics* table, const Product& p) {
  table->Add({.name = NameOf(p),
              .feature = "sm_90a",
              .state = "",
              .meaning = Meaning(p),
              .pattern = "",
              .emissions = {{Emission::Kind::kCuda, ProductText(p), {}, ""}}});
}

// ---- results ----

// Four threads share the rows of a product, and have two of every eight columns.
constexpr char kTurnMeaning[] = R"(
func @ptx.wgmma.turn.m64n32.f32(S: f32[64, 32] layout (i, j) -> (i / 16 * 32 + i % 8 * 4 + j % 8 / 2 on threadIdx.x, j / 8, i / 8 % 2 * 2 + j % 2) in fragment, out T: f32[64, 32] layout (i, j) -> (i / 16 * 32 + i % 8 * 4 + j / 8 on threadIdx.x, i / 8 % 2, j % 8) in fragment) kind device {
  for i in 0..64, j in 0..32 {
    block move(vi: spatial = i, vj: spatial = j) {
      reads S[vi, vj]
      writes T[vi, vj]
      T[vi, vj] = S[vi, vj]
    }
  }
}
)";

// A transposition of four times four pairs, by halves: of blocks whose numbers differ in a bit each
// thread keeps the one that has its own bit and gives away the other.
constexpr char kTurnText[] = R"(for (int n = 0; n < 4; ++n) {{
    float v[4];
    for (int b = 0; b < 4; ++b) v[b] = {0}[b * 4 + n];
    for (int bit = 1; bit < 4; bit *= 2) {{
      const bool odd = (threadIdx.x & bit) != 0;
      for (int b = 0; b < 4; ++b) {{
        if ((b & bit) != 0) continue;
        const float got = __shfl_xor_sync(0xffffffffu, odd ? v[b] : v[b | bit], bit);
        if (odd) v[b] = got; else v[b | bit] = got;
      }}
    }}
    for (int q = 0; q < 4; ++q) {1}[n / 2 * 8 + q * 2 + n % 2] = v[q];
  }})";

}  // namespace

void RegisterPtxHopper(TileIntrinsics* table) {
  table->Add({.name = kBarrierInitRow,
              .feature = "sm_90",
              .state = "",
              .meaning = fmt::format(
                  "func @{}(out b: u64[1] in barrier, arrivals: index) kind device {{ }}",
                  kBarrierInitRow),
              .pattern = "",
              .emissions = {{Emission::Kind::kCuda,
                             R"(asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
               :
               : "r"((uint32_t)__cvta_generic_to_shared({0})), "r"((uint32_t){1})
               : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");)",
                             {},
                             ""}}});
  const std::pair<DType, const char*> types[] = {{DType::Float(16), "f16"},
                                                 {DType::BFloat16(), "bf16"}};
  for (const auto& [type, ptx] : types) {
    AddCopy(table, type);
    for (int64_t columns : {64, 128, 192, 256}) {
      AddProduct(table, {type, ptx, columns, false});
      AddProduct(table, {type, ptx, columns, true});
    }
    AddProduct(table, {type, ptx, 8, true});
  }
  table->Add({.name = kWarpgroupTurnRow,
              .feature = "sm_90a",
              .state = "",
              .meaning = kTurnMeaning,
              .pattern = "",
              .emissions = {{Emission::Kind::kCuda, kTurnText, {}, ""}}});
}

}  // namespace tenon
