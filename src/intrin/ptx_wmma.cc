// Tensor cores from sm_70 on, by the instructions that do not tell which lane holds what: products
// of 16 x 16 tiles, and the loads and stores that are the only way in and out. PTX ISA, wmma.
//
// A layout here stands for the unit's own, which may differ between architectures. It has the
// registers of the unit (f16 factors fill only half of them; the unit keeps a copy), and is another
// one where the unit takes tiles by columns, since such a fragment is no other's operand.
#include <fmt/format.h>

#include "intrin/tile_intrinsic.h"

namespace tenon {

namespace {

// A type of factors, with that of its results.
struct Product {
  DType type, sum;
  const char* feature;
  const char* factor;  // in PTX
  const char* result;
  const char* types;  // of the product
  int registers;      // of 32 bits, for a factor
};
const Product kProducts[] = {
    {DType::Float(16), DType::Float(32), "sm_70", "f16", "f32", "f32.f32", 8},
    {DType::BFloat16(), DType::Float(32), "sm_80", "bf16", "f32", "f32.bf16.bf16.f32", 4},
    {DType::Int(8), DType::Int(32), "sm_72", "s8", "s32", "s32.s8.s8.s32", 2},
};
constexpr int kResultRegisters = 8;

// A fragment of which a lane has eight elements next to each other in a row, or in a column.
std::string Fragment(const char* name, DType type, bool by_columns, int registers) {
  const int64_t room = int64_t{4} * registers / type.Bytes();
  return fmt::format(
      "{0}: {1}[16, 16] layout (i, j) -> ({2} * 2 + {3} / 8 size 32 on threadIdx.x, {3} % 8 size "
      "{4}) "
      "in fragment",
      name, type.ToString(), by_columns ? "j" : "i", by_columns ? "i" : "j", room);
}

// "%2, %3, …"
std::string Places(int from, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += fmt::format("{}%{}", i == 0 ? "" : ", ", from + i);
  return out;
}

// "constraint"(array[0]), …
std::string Registers(const char* constraint, const char* array, int count) {
  std::string out;
  for (int i = 0; i < count; ++i)
    out += fmt::format("{}\"{}\"({}[{}])", i == 0 ? "" : ", ", constraint, array, i);
  return out;
}

void Add(TileIntrinsics* table, const std::string& name, const char* feature,
         const std::string& signature, const std::string& body, const std::string& text) {
  table->Add({.name = name,
              .feature = feature,
              .state = "",
              .meaning = fmt::format("func @{}{} kind device {{opaque: 1}} {{\n{}}}\n", name,
                                     signature, body),
              .pattern = "",
              .emissions = {{Emission::Kind::kCuda, text, {}, ""}}});
}

// {0} moves to {1}.
constexpr char kMove[] = R"(  for i in 0..16, j in 0..16 {{
    block move(vi: spatial = i, vj: spatial = j) {{
      reads {0}
      writes {1}
      {1} = {0}
    }}
  }}
)";

// Tiles begin at 32 bytes, and rows of them at 16.
std::string Memory(const char* name, DType type, const char* scope) {
  return fmt::format("{}: {}[16, 16] strides (s, 1){} align 32", name, type.ToString(), scope);
}
std::string Steps(DType type) { return fmt::format("<s: 0.. step {}>", 16 / type.Bytes()); }

void AddLoad(TileIntrinsics* table, const Product& p, char side, bool by_columns) {
  const std::string name =
      fmt::format("ptx.wmma.load.{}{}.{}", side, by_columns ? ".trans" : "", p.type.ToString());
  // Memory holds the factor's columns in its rows.
  const char* from = by_columns ? "M[vj, vi]" : "M[vi, vj]";
  const std::string text = fmt::format(
      R"(uint32_t* const r = (uint32_t*){{1}};
  asm volatile("wmma.load.{0}.sync.aligned.{1}.m16n16k16.shared.{2} {{{{{3}}}}}, [%{4}], %{5};"
               : {6}
               : "r"((uint32_t)__cvta_generic_to_shared({{0}})), "r"((int){{2}})
               : "memory");)",
      side, by_columns ? "col" : "row", p.factor, Places(0, p.registers), p.registers,
      p.registers + 1, Registers("=r", "r", p.registers));
  Add(table, name, p.feature,
      fmt::format("{}({}, out {})", Steps(p.type), Memory("M", p.type, " in shared"),
                  Fragment("T", p.type, by_columns, p.registers)),
      fmt::format(kMove, from, "T[vi, vj]"), text);
}

void AddProduct(TileIntrinsics* table, const Product& p, bool a_columns, bool b_columns) {
  auto order = [](bool by_columns) { return by_columns ? "col" : "row"; };
  const std::string name =
      fmt::format("ptx.wmma.{}.{}.{}", p.type.ToString(), order(a_columns), order(b_columns));
  const std::string cast = p.sum.ToString();
  const std::string body = fmt::format(
      R"(  for i in 0..16, j in 0..16, k in 0..16 {{
    block dot(vi: spatial = i, vj: spatial = j, vk: reduce = k) reducer: add fp: contract {{
      reads A[vi, vk], B[vk, vj], C[vi, vj]
      writes C[vi, vj]
      C[vi, vj] = C[vi, vj] + {0}(A[vi, vk]) * {0}(B[vk, vj])
    }}
  }}
)",
      cast);
  const int n = p.registers, c = kResultRegisters;
  const std::string text = fmt::format(
      R"(const uint32_t* const a = (const uint32_t*){{0}};
  const uint32_t* const b = (const uint32_t*){{1}};
  asm("wmma.mma.sync.aligned.{0}.{1}.m16n16k16.{2} "
      "{{{{{3}}}}}, {{{{{4}}}}}, {{{{{5}}}}}, {{{{{3}}}}};"
      : {6}
      : {7}, {8});)",
      order(a_columns), order(b_columns), p.types, Places(0, c), Places(c, n), Places(c + n, n),
      Registers(p.sum.IsFloat() ? "+f" : "+r", "{2}", c), Registers("r", "a", n),
      Registers("r", "b", n));
  Add(table, name, p.feature,
      fmt::format("({}, {}, out {})", Fragment("A", p.type, a_columns, n),
                  Fragment("B", p.type, b_columns, n), Fragment("C", p.sum, false, c)),
      body, text);
}

// Results go to memory of any kind.
void AddStore(TileIntrinsics* table, const Product& p, const char* scope) {
  const std::string name =
      fmt::format("ptx.wmma.store.{}{}", p.sum.ToString(), scope[0] == '\0' ? "" : ".shared");
  const std::string text = fmt::format(
      R"(asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.{0} [%0], {{{{{1}}}}}, %{2};"
               :
               : "l"({{1}}), {3}, "r"((int){{2}})
               : "memory");)",
      p.result, Places(1, kResultRegisters), kResultRegisters + 1,
      Registers(p.sum.IsFloat() ? "f" : "r", "{0}", kResultRegisters));
  Add(table, name, "sm_70",
      fmt::format("{}({}, out {})", Steps(p.sum), Fragment("T", p.sum, false, kResultRegisters),
                  Memory("M", p.sum, scope)),
      fmt::format(kMove, "T[vi, vj]", "M[vi, vj]"), text);
}

}  // namespace

void RegisterPtxWmma(TileIntrinsics* table) {
  for (const Product& p : kProducts) {
    for (bool by_columns : {false, true}) {
      for (char side : {'a', 'b'}) AddLoad(table, p, side, by_columns);
      for (bool b_columns : {false, true}) AddProduct(table, p, by_columns, b_columns);
    }
    if (table->Find("ptx.wmma.store." + p.sum.ToString())) continue;
    for (const char* scope : {"", " in shared"}) AddStore(table, p, scope);
  }
}

}  // namespace tenon
