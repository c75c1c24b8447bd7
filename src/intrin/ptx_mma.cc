// Tensor cores from sm_80 on: products of small matrices that the 32 lanes of a warp hold together,
// and the loads that bring tiles of shared memory into that form. PTX ISA, mma.sync and ldmatrix.
//
// All types share one form, told by how many elements a 32-bit register holds (`group`): a piece of
// 8 rows of 16 bytes lies in the lanes four to a row, each with one register of it. A left factor
// is 2 x 2 pieces, a right factor (whose columns are such rows) 2 above each other, a result 16 x 8
// elements of 32 bits with two neighbours in a lane.
#include <fmt/format.h>

#include "intrin/tile_intrinsic.h"

namespace tenon {

namespace {

constexpr const char* kFeature = "sm_80";

struct Product {
  const char* name;
  DType type;         // of the factors
  DType sum;          // of the result
  const char* shape;  // in PTX, as are the types
  const char* ptx;
  const char* factor;  // a factor's element {0} as the unit reads it
};
// The unit reads f32 as tf32: 10 bits of mantissa. The emission rounds, to nearest, ties away.
constexpr Product kProducts[] = {
    {"m16n8k16.f16", DType::Float(16), DType::Float(32), "m16n8k16", "f32.f16.f16.f32", "f32({0})"},
    {"m16n8k16.bf16", DType::BFloat16(), DType::Float(32), "m16n8k16", "f32.bf16.bf16.f32",
     "f32({0})"},
    {"m16n8k8.tf32", DType::Float(32), DType::Float(32), "m16n8k8", "f32.tf32.tf32.f32",
     "reinterpret<f32>(bitand(reinterpret<u32>({0}) + 4096u32, 4294959104u32))"},
    {"m16n8k32.i8", DType::Int(8), DType::Int(32), "m16n8k32", "s32.s8.s8.s32", "i32({0})"},
};

int64_t GroupOf(DType type) { return 4 / type.Bytes(); }

std::string Left(const char* name, DType type) {
  const int64_t group = GroupOf(type);
  return fmt::format(
      "{0}: {1}[16, {2}] layout (i, k) -> (i % 8 * 4 + k % {3} / {4} on threadIdx.x, "
      "k / {3} * {5} + i / 8 * {4} + k % {4}) in fragment",
      name, type.ToString(), 8 * group, 4 * group, group, 2 * group);
}

// Of 8 columns, or of several times 8, next to each other in the lanes' registers.
std::string Right(const char* name, DType type, int64_t columns) {
  const int64_t group = GroupOf(type);
  return fmt::format(
      "{0}: {1}[{2}, {5}] layout (k, j) -> (j % 8 * 4 + k % {3} / {4} on threadIdx.x, j / 8, "
      "k / {3} * {4} + k % {4}) in fragment",
      name, type.ToString(), 8 * group, 4 * group, group, columns);
}

std::string Result(const char* name, DType type) {
  return fmt::format(
      "{0}: {1}[16, 8] layout (i, j) -> (i % 8 * 4 + j / 2 on threadIdx.x, i / 8 * 2 + j % 2) "
      "in fragment",
      name, type.ToString());
}

// In what order the sum of a step is rounded is not documented; integers wrap.
std::string Meaning(const Product& p, const std::string& a, const std::string& b) {
  return fmt::format(R"(
func @ptx.mma.{0}({1}, {2}, out {3}) kind device {{
  for i in 0..16, j in 0..8, k in 0..{4} {{
    block dot(vi: spatial = i, vj: spatial = j, vk: reduce = k) reducer: add fp: contract {{
      reads A[vi, vk], B[vk, vj], C[vi, vj]
      writes C[vi, vj]
      C[vi, vj] = C[vi, vj] + {5} * {6}
    }}
  }}
}}
)",
                     p.name, Left("A", p.type), Right("B", p.type, 8), Result("C", p.sum),
                     8 * GroupOf(p.type), a, b);
}

std::string ProductText(const Product& p) {
  const bool floats = p.sum.IsFloat(), rounds = p.type == DType::Float(32);
  std::string out;
  if (rounds) {
    out = R"(uint32_t a[4], b[2];
  for (int n = 0; n < 4; ++n) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(a[n]) : "f"({0}[n]));
  for (int n = 0; n < 2; ++n) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(b[n]) : "f"({1}[n]));
)";
  } else {
    out = R"(const uint32_t* const a = (const uint32_t*){0};
  const uint32_t* const b = (const uint32_t*){1};
)";
  }
  out += fmt::format("  asm(\"mma.sync.aligned.{}.row.col.{} \"\n", p.shape, p.ptx);
  out += R"(      "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
)";
  const char* c = floats ? "+f" : "+r";
  out += fmt::format(
      "      : \"{0}\"({{2}}[0]), \"{0}\"({{2}}[1]), \"{0}\"({{2}}[2]), \"{0}\"({{2}}[3])\n", c);
  out += R"(      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));)";
  return out;
}

std::string LoadName(const char* which, DType type) {
  return std::string("ptx.ldmatrix.") + which + "." + type.ToString();
}

// Of the left factor, of the right one by columns, and, of two bytes, by rows.
std::vector<std::string> MovesOf(const Product& p) {
  std::vector<std::string> out = {LoadName("a", p.type), LoadName("b", p.type)};
  if (p.type.Bytes() == 2) out.push_back(LoadName("b.trans", p.type));
  return out;
}

void AddProduct(TileIntrinsics* table, const Product& p) {
  const std::string a = "A[vi, vk]", b = "B[vk, vj]";
  const std::string meaning =
      Meaning(p, fmt::format(fmt::runtime(p.factor), a), fmt::format(fmt::runtime(p.factor), b));
  const bool rounds = p.type == DType::Float(32);
  table->Add({.name = std::string("ptx.mma.") + p.name,
              .feature = kFeature,
              .state = "",
              .meaning = meaning,
              .pattern = rounds ? Meaning(p, a, b) : "",
              .emissions = {{Emission::Kind::kCuda, ProductText(p), {}, ""}},
              .moves = MovesOf(p)});
}

// Four pieces at once. Each lane gives the address of a row: lane l that of row l % 8 of piece l /
// 8, and gets a register of each piece.
struct Loading {
  const char* name;
  bool left;         // a left factor; else two right factors of 8 columns each
  bool transposed;   // memory holds the factor's columns in its rows
  const char* form;  // of the instruction
  const char* row;   // of the lane's address; {} elements of 16 bytes
  const char* column;
};
constexpr Loading kLoads[] = {
    {"a", true, false, "", "lane % 16", "lane / 16 * {0}"},
    {"b", false, true, "", "lane / 16 * 8 + lane % 8", "lane / 8 % 2 * {0}"},
    {"b.trans", false, false, ".trans", "lane % 16", "lane / 16 * {0}"},
};

void AddLoad(TileIntrinsics* table, const Loading& load, DType type) {
  const std::string name = LoadName(load.name, type);
  const int64_t depth = 8 * GroupOf(type);
  const std::string fragment = load.left ? Left("T", type) : Right("T", type, 16);
  const int64_t rows = load.left ? 16 : depth, columns = load.left ? depth : 16;
  const std::string meaning =
      fmt::format(R"(
func @{0}<s: 0.. step {1}>(M: {2}[{3}, {4}] strides (s, 1) in shared align 16, out {5}) kind device {{
  for i in 0..{6}, j in 0..{7} {{
    block move(vi: spatial = i, vj: spatial = j) {{
      reads M[{8}]
      writes T[vi, vj]
      T[vi, vj] = M[{8}]
    }}
  }}
}}
)",
                  name, 4 * GroupOf(type), type.ToString(), load.transposed ? columns : rows,
                  load.transposed ? rows : columns, fragment, rows, columns,
                  load.transposed ? "vj, vi" : "vi, vj");
  const std::string column = fmt::format(fmt::runtime(load.column), 4 * GroupOf(type));
  const std::string text = fmt::format(
      R"(const int lane = threadIdx.x % 32;
  uint32_t* const r = (uint32_t*){{1}};
  // What differs between lanes is apart, so that it is computed once for all tiles.
  const uint32_t own = (uint32_t)((({0}) * (int){{2}} + {1}) * sizeof(*{{0}}));
  const uint32_t at = (uint32_t)__cvta_generic_to_shared({{0}}) + own;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4{2}.shared.b16 {{{{%0, %1, %2, %3}}}}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));)",
      load.row, column, load.form);
  table->Add({.name = name,
              .feature = kFeature,
              .state = "",
              .meaning = meaning,
              .pattern = "",
              .emissions = {{Emission::Kind::kCuda, text, {}, ""}}});
}

}  // namespace

void RegisterPtxMma(TileIntrinsics* table) {
  for (const Product& p : kProducts) {
    AddProduct(table, p);
    for (const Loading& load : kLoads) {
      // Rows are turned in pairs of bytes.
      if (load.form[0] == '\0' || p.type.Bytes() == 2) AddLoad(table, load, p.type);
    }
  }
}

}  // namespace tenon
