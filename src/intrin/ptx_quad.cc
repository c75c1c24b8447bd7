// Reductions over the four lanes of a warp that share the rows of a product (the layouts of
// ptx_mma.cc): each lane brings one value a row, and each gets the row's. With what a lane reduces
// by itself, they are the row maxima and sums of a softmax between two products. PTX ISA,
// shfl.sync.
#include <fmt/format.h>

#include "intrin/tile_intrinsic.h"

namespace tenon {

namespace {

struct Combiner {
  const char* name;
  const char* value;  // of {0} and {1}
  const char* text;
};
constexpr Combiner kCombiners[] = {
    {"max", "max({0}, {1})", "fmaxf({0}, {1})"},
    {"add", "({0} + {1})", "{0} + {1}"},
};

std::string Rows(const char* name) {
  return fmt::format(
      "{}: f32[16, 4] layout (i, q) -> (i % 8 * 4 + q on threadIdx.x, i / 8) in fragment", name);
}

// Sums are those of neighbours first, in every lane the same.
std::string Meaning(const Combiner& c) {
  auto of = [&](const std::string& a, const std::string& b) {
    return fmt::format(fmt::runtime(c.value), a, b);
  };
  const std::string value = of(of("S[vi, 0]", "S[vi, 1]"), of("S[vi, 2]", "S[vi, 3]"));
  return fmt::format(R"(
func @ptx.quad.{0}.f32({1}, out {2}) kind device {{
  for i in 0..16, q in 0..4 {{
    block row(vi: spatial = i, vq: spatial = q) {{
      reads S[vi, 0..4]
      writes T[vi, vq]
      T[vi, vq] = {3}
    }}
  }}
}}
)",
                     c.name, Rows("S"), Rows("T"), value);
}

std::string Text(const Combiner& c) {
  std::string out = "for (int n = 0; n < 2; ++n) {{\n    float v = {0}[n];\n";
  for (int lanes : {1, 2}) {
    const std::string other = fmt::format("__shfl_xor_sync(0xffffffffu, v, {})", lanes);
    out += "    v = " + fmt::format(fmt::runtime(c.text), "v", other) + ";\n";
  }
  return out + "    {1}[n] = v;\n  }}";
}

}  // namespace

void RegisterPtxQuad(TileIntrinsics* table) {
  for (const Combiner& c : kCombiners) {
    table->Add({.name = std::string("ptx.quad.") + c.name + ".f32",
                .feature = "sm_80",
                .state = "",
                .meaning = Meaning(c),
                .pattern = "",
                .emissions = {{Emission::Kind::kCuda, Text(c), {}, ""}}});
  }
}

}  // namespace tenon
