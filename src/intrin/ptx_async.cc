// Copies of 16 bytes from global to shared memory that the copying thread does not wait for, from
// sm_80 on. PTX ISA, cp.async. Each thread closes groups of its copies, and waits until at most so
// many of them, the latest, are under way.
#include <fmt/format.h>

#include "intrin/tile_intrinsic.h"

namespace tenon {

namespace {

void Add(TileIntrinsics* table, const std::string& name, const std::string& meaning,
         const std::string& text) {
  table->Add({.name = name,
              .feature = "sm_80",
              .state = "",
              .meaning = meaning,
              .pattern = "",
              .emissions = {{Emission::Kind::kCuda, text, {}, ""}}});
}

void AddCopy(TileIntrinsics* table, DType type) {
  const std::string name = kAsyncCopyRows + type.ToString();
  const std::string meaning = fmt::format(R"(
func @{0}(M: {1}[{2}] align 16, out T: {1}[{2}] in shared align 16) kind device {{
  for i in 0..{2} {{
    block move(vi: spatial = i) {{
      reads M[vi]
      writes T[vi]
      T[vi] = M[vi]
    }}
  }}
}}
)",
                                          name, type.ToString(), 16 / type.Bytes());
  Add(table, name, meaning, R"(asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :
               : "r"((uint32_t)__cvta_generic_to_shared({1})), "l"({0}));)");
}

// Zeros where there is nothing to copy: then nothing is read.
void AddCopyWhere(TileIntrinsics* table, DType type) {
  const std::string name = kAsyncCopyWhereRows + type.ToString();
  const std::string meaning = fmt::format(R"(
func @{0}(M: {1}[{2}] align 16, out T: {1}[{2}] in shared align 16, there: bool) kind device {{
  for i in 0..{2} {{
    block move(vi: spatial = i) {{
      reads M[vi]
      writes T[vi]
      T[vi] = select(there, M[vi], 0)
    }}
  }}
}}
)",
                                          name, type.ToString(), 16 / type.Bytes());
  Add(table, name, meaning, R"(asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"((uint32_t)__cvta_generic_to_shared({1})), "l"({0}), "r"({2} ? 16 : 0));)");
}

}  // namespace

void RegisterPtxAsync(TileIntrinsics* table) {
  for (DType type : {DType::Float(16), DType::BFloat16(), DType::Float(32), DType::Int(8)})
    AddCopy(table, type), AddCopyWhere(table, type);
  Add(table, kAsyncCommitRow, fmt::format("func @{}() kind device {{ }}", kAsyncCommitRow),
      R"(asm volatile("cp.async.commit_group;");)");
  for (int64_t n = 0; n <= kMostAsyncGroups; ++n) {
    const std::string name = kAsyncWaitRows + std::to_string(n);
    Add(table, name, fmt::format("func @{}() kind device {{ }}", name),
        fmt::format(R"(asm volatile("cp.async.wait_group {};" ::: "memory");)", n));
  }
}

}  // namespace tenon
