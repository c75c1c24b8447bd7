// Products on tensor cores, from calls in a schedule to PTX: every pass keeps the meaning, under
// every order of threads, and the machine's operations are what is written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/codegen.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "driver/pipeline.h"
#include "interp/interp.h"
#include "intrin/tile_intrinsic.h"
#include "loop/parse.h"
#include "loop/verify.h"
#include "unit/gpu/numbers.h"

namespace tenon {
namespace {

struct Case {
  const char* mma;
  DType type, sum;
  int64_t depth;      // of one operation
  const char* right;  // how the right factor is loaded
  const char* in_ptx;
};

// C[32, 16] = A B over two steps of k, by two warps of 16 rows each. Where the right factor is not
// turned while it is loaded, it is given transposed.
constexpr char kKernel[] = R"(
func @f(A: {0}[32, {3}], B: {0}[{4}], out C: {1}[32, 16]) target "cuda -arch=sm_80" {{
  for b in 0..1 thread blockIdx.x {{
    for w in 0..2 thread threadIdx.y {{
      alloc CF: {1}[16, 16] in fragment
      for zi in 0..16, zj in 0..16 {{ CF[zi, zj] = {2} }}
      for k in 0..2 {{
        alloc SA: {0}[32, {5}] in shared
        alloc SB: {0}[{6}] in shared
        alloc AF: {0}[16, {5}] in fragment
        alloc BF: {0}[{5}, 16] in fragment
        for y in 0..2 thread threadIdx.y {{
          for x in 0..32 thread threadIdx.x {{
            for l in 0..{5} / 2 {{
              SA[y * 16 + x / 2, x % 2 * {5} / 2 + l] =
                  A[y * 16 + x / 2, k * {5} + x % 2 * {5} / 2 + l]
            }}
          }}
        }}
        for n in 0..16 {{
          for m in 0..{5} {{ SB[{7}] = B[{8}] }}
        }}
        call @ptx.ldmatrix.a.{0}(SA[w * 16..+16, 0..{5}], AF; {5})
        call @ptx.ldmatrix.{9}.{0}(SB, BF; {10})
        for t in 0..2 {{
          call @ptx.mma.{11}(AF, BF[0..{5}, t * 8..+8], CF[0..16, t * 8..+8])
        }}
      }}
      for i in 0..16, j in 0..16 {{ C[w * 16 + i, j] = CF[i, j] * {12} }}
    }}
  }}
}}
)";

Module ModuleOf(const Case& c) {
  const bool turned = std::string(c.right) == "b.trans";
  const std::string type = c.type.ToString(), sum = c.sum.ToString();
  const int64_t d = c.depth;
  const std::string text = fmt::format(
      kKernel, type, sum, "0" + sum, 2 * d,
      turned ? fmt::format("{}, 16", 2 * d) : fmt::format("16, {}", 2 * d), d,
      turned ? fmt::format("{}, 16", d) : fmt::format("16, {}", d), turned ? "m, n" : "n, m",
      turned ? fmt::format("k * {} + m, n", d) : fmt::format("n, k * {} + m", d), c.right,
      turned ? 16 : d, c.mma, "2" + sum);
  auto module = ParseModule(text, "kernel");
  EXPECT_TRUE(module) << (module ? "" : ToString(module.errors()));
  for (const std::string& name :
       {"ptx.ldmatrix.a." + type, std::string("ptx.ldmatrix.") + c.right + "." + type,
        std::string("ptx.mma.") + c.mma}) {
    module->Add(*MeaningOf(*BuiltinTileIntrinsics().Find(name)));
  }
  return *module;
}

void CheckProduct(const Case& c, const Module& module, const std::string& after,
                  bool orders = false) {
  const bool turned = std::string(c.right) == "b.trans";
  const int64_t k = 2 * c.depth;
  const bool flat = module.Find("f")->buffers[0]->rank() == 1;
  std::vector<InterpArg> args{Numbers(c.type, Shape(flat, 32, k), 0),
                              Numbers(c.type, turned ? Shape(flat, k, 16) : Shape(flat, 16, k), 3),
                              InterpArg::Output(c.sum, Shape(flat, 32, 16))};
  InterpOptions options;
  options.max_steps = int64_t{1} << 32;
  Status status =
      orders ? InterpretOrders(module, "f", args, options) : Interpret(module, "f", args, options);
  ASSERT_TRUE(status) << c.mma << " after " << after << ": " << ToString(status.errors());
  for (int64_t i = 0; i < 32; ++i) {
    for (int64_t j = 0; j < 16; ++j) {
      int64_t want = 0;
      for (int64_t n = 0; n < k; ++n)
        want += Number(i * k + n) * Number((turned ? n * 16 + j : j * k + n) + 3);
      ASSERT_EQ(args[2].Get(i * 16 + j), 2 * want) << c.mma << " after " << after;
    }
  }
}

const Case kCases[] = {
    {"m16n8k16.f16", DType::Float(16), DType::Float(32), 16, "b.trans",
     "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"},
    {"m16n8k16.f16", DType::Float(16), DType::Float(32), 16, "b",
     "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"},
    {"m16n8k16.bf16", DType::BFloat16(), DType::Float(32), 16, "b.trans",
     "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"},
    {"m16n8k8.tf32", DType::Float(32), DType::Float(32), 8, "b",
     "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"},
    {"m16n8k32.i8", DType::Int(8), DType::Int(32), 32, "b",
     "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"},
};

TEST(TensorCores, EveryPassKeepsTheProduct) {
  const Target target = Target::Parse("cuda -arch=sm_80").value();
  for (const Case& c : kCases) {
    Module module = ModuleOf(c);
    CheckProduct(c, module, "nothing");
    driver::PassHooks hooks;
    hooks.verify = true;
    hooks.after_pass = [&](const std::string& pass, const Module&, const Module& after, double) {
      const bool slow = &c != &kCases[0] && pass != "distribute" && pass != "bind_threads" &&
                        pass != "flatten_storage";
      if (!slow) CheckProduct(c, after, pass);
    };
    auto lowered =
        driver::RunPipeline(driver::DevicePipeline(), module, driver::ContextOf(target), hooks);
    ASSERT_TRUE(lowered) << c.mma << ": " << ToString(lowered.errors());
    CheckProduct(c, *lowered, "everything", /*orders=*/&c == &kCases[0]);
  }
}

TEST(TensorCores, AreWhatIsWritten) {
  if (auto nvrtc = codegen::FindNvrtc(); !nvrtc) GTEST_SKIP() << ToString(nvrtc.errors());
  const Target target = Target::Parse("cuda -arch=sm_80").value();
  for (const Case& c : kCases) {
    auto lowered =
        driver::RunPipeline(driver::DevicePipeline(), ModuleOf(c), driver::ContextOf(target), {});
    ASSERT_TRUE(lowered);
    auto source = codegen::EmitCuda(*lowered, target, {});
    ASSERT_TRUE(source) << ToString(source.errors());
    for (const char* arch : {"sm_80", "sm_90a"}) {
      auto ptx = codegen::CompileCuda(*source, "f.cu", arch, codegen::CudaFormat::kPtx);
      ASSERT_TRUE(ptx) << ToString(ptx.errors()) << *source;
      EXPECT_NE(ptx->find(c.in_ptx), std::string::npos) << *ptx;
      EXPECT_NE(ptx->find(std::string("ldmatrix.sync.aligned.m8n8.x4") +
                          (std::string(c.right) == "b" ? ".shared" : ".trans.shared")),
                std::string::npos)
          << *ptx;
      EXPECT_EQ(ptx->find(".local"), std::string::npos) << *ptx;  // fragments are registers
    }
  }
}

TEST(TensorCores, AreRefusedWhereThereAreNone) {
  for (const char* text : {"cuda -arch=sm_75", "opencl"}) {
    const Target target = Target::Parse(text).value();
    Module module = ModuleOf(kCases[0]);
    PrimFunc func = *module.Find("f");
    func.target = target;
    module.Add(PrimFunc::Make(std::move(func)));
    driver::PassHooks hooks;
    hooks.verify = true;
    auto lowered =
        driver::RunPipeline(driver::DevicePipeline(), module, driver::ContextOf(target), hooks);
    ASSERT_FALSE(lowered);
    EXPECT_NE(ToString(lowered.errors()).find("an operation of a warp that the target"),
              std::string::npos)
        << ToString(lowered.errors());
  }
}

}  // namespace
}  // namespace tenon
