// Products by wmma, whose fragments nobody looks into: every pass keeps the meaning, and NVRTC
// takes what is written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/codegen.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "driver/pipeline.h"
#include "interp/interp.h"
#include "intrin/tile_intrinsic.h"
#include "loop/parse.h"
#include "unit/gpu/numbers.h"

namespace tenon {
namespace {

struct Case {
  DType type, sum;
  bool a_columns, b_columns;  // memory holds columns in its rows
  const char* tail;
  const char* arch;
  const char* ptx;
};

// C[32, 16] = 2 A B over two steps of k, by two warps of 16 rows each.
constexpr char kKernel[] = R"(
func @f(A: {0}[{2}], B: {0}[{3}], out C: {1}[32, 16] align 32) target "cuda -arch={4}" {{
  for b in 0..1 thread blockIdx.x {{
    for w in 0..2 thread threadIdx.y {{
      alloc CF: {1}[16, 16] in fragment
      for zi in 0..16, zj in 0..16 {{ CF[zi, zj] = 0{1} }}
      for k in 0..2 {{
        alloc SA: {0}[{5}] in shared
        alloc SB: {0}[16, 16] in shared
        alloc AF: {0}[16, 16] in fragment
        alloc BF: {0}[16, 16] in fragment
        for y in 0..2 thread threadIdx.y {{
          for x in 0..16 thread threadIdx.x {{
            for l in 0..16 {{ {6} }}
          }}
        }}
        for n in 0..16 {{
          for m in 0..16 {{ SB[n, m] = B[{7}] }}
        }}
        call @ptx.wmma.load.a.{8}{0}(SA[{9}], AF; {10})
        call @ptx.wmma.load.b.{11}{0}(SB, BF; 16)
        call @ptx.wmma.{0}.{12}.{13}(AF, BF, CF)
      }}
      for i in 0..16, j in 0..16 {{ CF[i, j] = CF[i, j] * 2{1} }}
      {14}
    }}
  }}
}}
)";
constexpr char kToMemory[] = "call @ptx.wmma.store.{0}(CF, C[w * 16..+16, 0..16]; 16)";
// By way of shared memory, since lanes read what others have written.
constexpr char kToShared[] = R"(
      alloc SC: {0}[32, 16] in shared
      call @ptx.wmma.store.{0}.shared(CF, SC[w * 16..+16, 0..16]; 16)
      for u in 0..32 thread threadIdx.x {{
        for v in 0..8 {{ C[w * 16 + u / 2, u % 2 * 8 + v] = SC[w * 16 + u / 2, u % 2 * 8 + v] }}
      }})";

Module ModuleOf(const Case& c) {
  const std::string type = c.type.ToString(), sum = c.sum.ToString();
  auto trans = [](bool columns) { return columns ? "trans." : ""; };
  auto order = [](bool columns) { return columns ? "col" : "row"; };
  const std::string text =
      fmt::format(kKernel, type, sum, "32, 32", c.b_columns ? "16, 32" : "32, 16", c.arch,
                  c.a_columns ? "16, 32" : "32, 16",
                  c.a_columns ? "SA[l, y * 16 + x] = A[k * 16 + l, y * 16 + x]"
                              : "SA[y * 16 + x, l] = A[y * 16 + x, k * 16 + l]",
                  c.b_columns ? "n, k * 16 + m" : "k * 16 + n, m", trans(c.a_columns),
                  c.a_columns ? "0..16, w * 16..+16" : "w * 16..+16, 0..16", c.a_columns ? 32 : 16,
                  trans(c.b_columns), order(c.a_columns), order(c.b_columns),
                  fmt::format(fmt::runtime(c.tail), sum));
  auto module = ParseModule(text, "kernel");
  EXPECT_TRUE(module) << (module ? "" : ToString(module.errors()));
  for (const std::string& name :
       {fmt::format("ptx.wmma.load.a.{}{}", trans(c.a_columns), type),
        fmt::format("ptx.wmma.load.b.{}{}", trans(c.b_columns), type),
        fmt::format("ptx.wmma.{}.{}.{}", type, order(c.a_columns), order(c.b_columns)),
        "ptx.wmma.store." + sum, "ptx.wmma.store." + sum + ".shared"}) {
    const TileIntrinsic* row = BuiltinTileIntrinsics().Find(name);
    EXPECT_NE(row, nullptr) << name;
    if (row) module->Add(*MeaningOf(*row));
  }
  return *module;
}

void CheckProduct(const Case& c, const Module& module, const std::string& after) {
  const bool flat = module.Find("f")->buffers[0]->rank() == 1;
  std::vector<InterpArg> args{
      Numbers(c.type, Shape(flat, 32, 32), 0),
      Numbers(c.type, c.b_columns ? Shape(flat, 16, 32) : Shape(flat, 32, 16), 3),
      InterpArg::Output(c.sum, Shape(flat, 32, 16))};
  InterpOptions options;
  options.max_steps = int64_t{1} << 32;
  Status status = Interpret(module, "f", args, options);
  ASSERT_TRUE(status) << c.ptx << " after " << after << ": " << ToString(status.errors());
  for (int64_t i = 0; i < 32; ++i) {
    for (int64_t j = 0; j < 16; ++j) {
      int64_t want = 0;
      for (int64_t n = 0; n < 32; ++n) {
        want += Number(c.a_columns ? n * 32 + i : i * 32 + n) *
                Number((c.b_columns ? j * 32 + n : n * 16 + j) + 3);
      }
      ASSERT_EQ(args[2].Get(i * 16 + j), 2 * want) << c.ptx << " after " << after;
    }
  }
}

const Case kCases[] = {
    {DType::Float(16), DType::Float(32), false, false, kToMemory, "sm_75",
     "row.row.m16n16k16.f32.f32"},
    {DType::Float(16), DType::Float(32), true, false, kToShared, "sm_75",
     "col.row.m16n16k16.f32.f32"},
    {DType::Float(16), DType::Float(32), false, true, kToMemory, "sm_75",
     "row.col.m16n16k16.f32.f32"},
    {DType::BFloat16(), DType::Float(32), true, true, kToShared, "sm_80",
     "col.col.m16n16k16.f32.bf16.bf16.f32"},
    {DType::Int(8), DType::Int(32), false, true, kToMemory, "sm_75",
     "row.col.m16n16k16.s32.s8.s8.s32"},
};

TEST(Wmma, EveryPassKeepsTheProduct) {
  for (const Case& c : kCases) {
    const Target target = Target::Parse(std::string("cuda -arch=") + c.arch).value();
    Module module = ModuleOf(c);
    CheckProduct(c, module, "nothing");
    driver::PassHooks hooks;
    hooks.verify = true;
    hooks.after_pass = [&](const std::string& pass, const Module&, const Module& after, double) {
      if (pass == "distribute" || pass == "bind_threads" || pass == "flatten_storage")
        CheckProduct(c, after, pass);
    };
    auto lowered =
        driver::RunPipeline(driver::DevicePipeline(), module, driver::ContextOf(target), hooks);
    ASSERT_TRUE(lowered) << c.ptx << ": " << ToString(lowered.errors());
    CheckProduct(c, *lowered, "everything");
  }
}

TEST(Wmma, IsWhatIsWritten) {
  if (auto nvrtc = codegen::FindNvrtc(); !nvrtc) GTEST_SKIP() << ToString(nvrtc.errors());
  for (const Case& c : kCases) {
    const Target target = Target::Parse(std::string("cuda -arch=") + c.arch).value();
    auto lowered =
        driver::RunPipeline(driver::DevicePipeline(), ModuleOf(c), driver::ContextOf(target), {});
    ASSERT_TRUE(lowered);
    auto source = codegen::EmitCuda(*lowered, target, {});
    ASSERT_TRUE(source) << ToString(source.errors());
    for (const char* arch : {c.arch, "sm_90a"}) {
      auto ptx = codegen::CompileCuda(*source, "f.cu", arch, codegen::CudaFormat::kPtx);
      ASSERT_TRUE(ptx) << ToString(ptx.errors()) << *source;
      EXPECT_NE(ptx->find(std::string("wmma.mma.sync.aligned.") + c.ptx), std::string::npos)
          << *ptx;
      EXPECT_EQ(ptx->find(".local"), std::string::npos) << *ptx;  // fragments are registers
      auto cubin = codegen::CompileCuda(*source, "f.cu", arch, codegen::CudaFormat::kCubin);
      EXPECT_TRUE(cubin) << ToString(cubin.errors());
    }
  }
}

}  // namespace
}  // namespace tenon
