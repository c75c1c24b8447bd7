// A product by warpgroups whose tiles the copy engine brings: every pass keeps the meaning, under
// every order of threads, the machine's operations are what is written, and what has no barriers to
// stand on is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "codegen/codegen.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/gpu/aligned.h"
#include "codegen/gpu/device_code.h"
#include "driver/pipeline.h"
#include "interp/interp.h"
#include "intrin/tile_intrinsic.h"
#include "loop/parse.h"
#include "loop/verify.h"
#include "loop/warpgroup.h"
#include "tenon/kernel_abi.h"
#include "unit/gpu/numbers.h"

namespace tenon {
namespace {

constexpr int64_t kRows = 128, kColumns = 8, kDepth = 192;

// C[128, 8] = 2 A B over three steps of k by two warpgroups; the columns of B are rows of memory.
// {0}: what the loop over steps is noted with.
constexpr char kKernel[] = R"(
func @f(A: f16[128, 192] align 16, B: f16[64, 192] align 16, out C: f32[128, 8]) target "cuda -arch=sm_90a" {{
  for b in 0..1 thread blockIdx.x {{
    for w in 0..2 thread threadIdx.y {{
      alloc CF: f32[64, 8] in fragment
      for zi in 0..64, zj in 0..8 {{ CF[zi, zj] = 0f32 }}
      for k in 0..3 {0} {{
        alloc SA: f16[128, 64] in shared
        alloc SB: f16[64, 64] in shared
        for r in 0..2 {{
          call @ptx.tma.copy.64x64.f16(A[r * 64..+64, k * 64..+64], SA[r * 64..+64, 0..64]; 192)
        }}
        call @ptx.tma.copy.64x64.f16(B[0..64, k * 64..+64], SB; 192)
        call @ptx.wgmma.m64n8k64.f16.t(SA[w * 64..+64, 0..64], SB[0..8, 0..64], CF)
      }}
      for i in 0..64, j in 0..8 {{ C[w * 64 + i, j] = CF[i, j] * 2f32 }}
    }}
  }}
}}
)";

Module ModuleOf(const std::string& text, std::initializer_list<const char*> rows) {
  auto module = ParseModule(text, "kernel");
  EXPECT_TRUE(module) << (module ? "" : ToString(module.errors()));
  for (const char* name : rows) {
    auto meaning = MeaningOf(*BuiltinTileIntrinsics().Find(name));
    EXPECT_TRUE(meaning) << (meaning ? "" : ToString(meaning.errors()));
    module->Add(*meaning);
  }
  return *module;
}

Module Product(const char* noted) {
  return ModuleOf(fmt::format(kKernel, noted),
                  {"ptx.tma.copy.64x64.f16", "ptx.wgmma.m64n8k64.f16.t"});
}

void CheckProduct(const Module& module, const std::string& after, bool orders = false) {
  const bool flat = module.Find("f")->buffers[0]->rank() == 1;
  std::vector<InterpArg> args{Numbers(DType::Float(16), Shape(flat, kRows, kDepth), 0),
                              Numbers(DType::Float(16), Shape(flat, 64, kDepth), 3),
                              InterpArg::Output(DType::Float(32), Shape(flat, kRows, kColumns))};
  InterpOptions options;
  options.max_steps = int64_t{1} << 32;
  Status status =
      orders ? InterpretOrders(module, "f", args, options) : Interpret(module, "f", args, options);
  ASSERT_TRUE(status) << "after " << after << ": " << ToString(status.errors());
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kColumns; ++j) {
      int64_t want = 0;
      for (int64_t n = 0; n < kDepth; ++n)
        want += Number(i * kDepth + n) * Number(j * kDepth + n + 3);
      ASSERT_EQ(args[2].Get(i * kColumns + j), 2 * want) << "after " << after;
    }
  }
}

Expected<Module> Lowered(const Module& module, const driver::PassHooks& hooks = {}) {
  const Target target = Target::Parse("cuda -arch=sm_90a").value();
  return driver::RunPipeline(driver::DevicePipeline(), module, driver::ContextOf(target), hooks);
}

TEST(Warpgroups, EveryPassKeepsTheProduct) {
  driver::PassHooks hooks;
  hooks.verify = true;
  hooks.after_pass = [&](const std::string& pass, const Module&, const Module& after, double) {
    const bool looked = pass == "lower_blocks" || pass == "distribute" || pass == "split_roles";
    if (looked) CheckProduct(after, pass);
  };
  auto lowered = Lowered(Product("{producer_stages: 2}"), hooks);
  ASSERT_TRUE(lowered) << ToString(lowered.errors());
  CheckProduct(*lowered, "everything", /*orders=*/true);
}

TEST(Warpgroups, AreWhatIsWritten) {
  if (auto nvrtc = codegen::FindNvrtc(); !nvrtc) GTEST_SKIP() << ToString(nvrtc.errors());
  auto lowered = Lowered(Product("{producer_stages: 2}"));
  ASSERT_TRUE(lowered) << ToString(lowered.errors());
  auto source = codegen::EmitCuda(*lowered, Target::Parse("cuda -arch=sm_90a").value(), {});
  ASSERT_TRUE(source) << ToString(source.errors());
  auto code = codegen::CompileCudaBoth(*source, "f.cu", "sm_90a", nullptr);
  ASSERT_TRUE(code) << ToString(code.errors()) << *source;
  for (const char* word :
       {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "mbarrier.try_wait.parity",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
        "prefetch.tensormap"}) {
    EXPECT_NE(code->ptx.find(word), std::string::npos) << word << "\n" << code->ptx;
  }
  // Eight sums of a thread take no registers from others.
  EXPECT_EQ(code->ptx.find("setmaxnreg"), std::string::npos) << code->ptx;
  EXPECT_EQ(code->ptx.find(".local"), std::string::npos) << code->ptx;  // fragments are registers
  EXPECT_EQ(code->ptx.find("bar.sync"), code->ptx.rfind("bar.sync"));   // for the barriers alone
}

// All rows, as a compiler of CUDA sees them.
TEST(Warpgroups, RowsAreTaken) {
  if (auto nvrtc = codegen::FindNvrtc(); !nvrtc) GTEST_SKIP() << ToString(nvrtc.errors());
  for (const char* type : {"f16", "bf16"}) {
    for (int columns : {64, 256}) {
      for (bool turned : {false, true}) {
        const std::string copy = fmt::format("ptx.tma.copy.64x64.{}", type);
        const std::string product =
            fmt::format("ptx.wgmma.m64n{}k64.{}{}", columns, type, turned ? ".t" : "");
        const std::string text = fmt::format(
            R"(
func @f(A: {0}[64, 128] align 16, B: {0}[{2}] align 16, out C: f32[64, {1}]) target "cuda -arch=sm_90a" {{
  for b in 0..1 thread blockIdx.x {{
    alloc CF: f32[64, {1}] in fragment
    for zi in 0..64, zj in 0..{1} {{ CF[zi, zj] = 0f32 }}
    for k in 0..2 {{producer_stages: 2}} {{
      alloc SA: {0}[64, 64] in shared
      alloc SB: {0}[{3}] in shared
      call @{4}(A[0..64, k * 64..+64], SA; 128)
      for r in 0..{1} / 64 {{ call @{4}(B[{5}], SB[{6}]; {7}) }}
      call @{8}(SA, SB, CF)
    }}
    for i in 0..64, j in 0..{1} {{ C[i, j] = CF[i, j] }}
  }}
}}
)",
            type, columns,
            turned ? fmt::format("{}, 128", columns) : fmt::format("128, {}", columns),
            turned ? fmt::format("{}, 64", columns) : fmt::format("64, {}", columns), copy,
            turned ? "r * 64..+64, k * 64..+64" : "k * 64..+64, r * 64..+64",
            turned ? "r * 64..+64, 0..64" : "0..64, r * 64..+64", turned ? 128 : columns, product);
        auto lowered = Lowered(ModuleOf(text, {copy.c_str(), product.c_str()}));
        ASSERT_TRUE(lowered) << ToString(lowered.errors());
        auto source = codegen::EmitCuda(*lowered, Target::Parse("cuda -arch=sm_90a").value(), {});
        ASSERT_TRUE(source) << product << ToString(source.errors());
        auto ptx = codegen::CompileCuda(*source, "f.cu", "sm_90a", codegen::CudaFormat::kPtx);
        ASSERT_TRUE(ptx) << product << ToString(ptx.errors()) << *source;
      }
    }
  }
}

std::string Replaced(std::string text,
                     std::initializer_list<std::pair<const char*, const char*>> words) {
  for (const auto& [from, to] : words) {
    EXPECT_NE(text.find(from), std::string::npos) << from;
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += strlen(to))
      text.replace(at, strlen(from), to);
  }
  return text;
}

TEST(Warpgroups, WithManySumsTakeRegisters) {
  const std::string text =
      Replaced(fmt::format(kKernel, "{producer_stages: 2}"),
               {{"call @ptx.tma.copy.64x64.f16(B[0..64, k * 64..+64], SB; 192)",
                 "for q in 0..4 { call @ptx.tma.copy.64x64.f16(B[q * 64..+64, k * 64..+64], "
                 "SB[q * 64..+64, 0..64]; 192) }"},
                {"m64n8k64", "m64n256k64"},
                {"f32[64, 8]", "f32[64, 256]"},
                {"f32[128, 8]", "f32[128, 256]"},
                {"B: f16[64, 192]", "B: f16[256, 192]"},
                {"SB: f16[64, 64]", "SB: f16[256, 64]"},
                {"0..8", "0..256"}});
  auto lowered = Lowered(ModuleOf(text, {"ptx.tma.copy.64x64.f16", "ptx.wgmma.m64n256k64.f16.t"}));
  ASSERT_TRUE(lowered) << ToString(lowered.errors());
  auto source = codegen::EmitCuda(*lowered, Target::Parse("cuda -arch=sm_90a").value(), {});
  ASSERT_TRUE(source) << ToString(source.errors());
  for (const char* word :
       {"setmaxnreg.inc.sync.aligned.u32 240", "setmaxnreg.dec.sync.aligned.u32 24"})
    EXPECT_NE(source->find(word), std::string::npos) << *source;
}

// What each parameter of a kernel is, as its library says it.
std::string ParamsOf(const Module& kernels) {
  std::vector<Func> all;
  for (const auto& [name, f] : kernels.funcs) {
    if (f->func_kind == FuncKind::kKernel) all.push_back(f);
  }
  auto blobs = codegen::PackDeviceCode(all, Target::Parse("cuda -arch=sm_90a").value(), {});
  EXPECT_TRUE(blobs) << (blobs ? "" : ToString(blobs.errors()));
  const std::string& code = blobs->at(0).bytes;
  tn_device_kernel row;
  memcpy(&row, code.data() + sizeof(tn_device_code), sizeof row);
  EXPECT_EQ(row.aligned != 0, all.size() == 2);
  return code.substr(row.params, row.num_params);
}

// A matrix that may begin anywhere: threads copy, and the engine does in the aligned form.
TEST(Warpgroups, CopyFromAnywhereInAnotherForm) {
  const std::string text = Replaced(fmt::format(kKernel, "{producer_stages: 2}"),
                                    {{"B: f16[64, 192] align 16", "B: f16[64, 192]"}});
  auto lowered = Lowered(ModuleOf(text, {"ptx.tma.copy.64x64.f16", "ptx.wgmma.m64n8k64.f16.t"}));
  ASSERT_TRUE(lowered) << ToString(lowered.errors());
  CheckProduct(*lowered, "everything");
  const Func aligned = lowered->Find("f_aligned");
  ASSERT_TRUE(aligned);
  EXPECT_TRUE(aligned->attrs.Has(kTensorMapsAttr));
  const Module forms = codegen::WithAlignedForms(*lowered);
  EXPECT_EQ(forms.funcs.size(), lowered->funcs.size());
  EXPECT_EQ(ParamsOf(forms), (std::string{static_cast<char>(TN_PARAM_ALIGNED_MAP),
                                          static_cast<char>(TN_PARAM_ALIGNED_MAP), '\0'}));
}

// A result that may begin anywhere: the engine copies in both forms.
TEST(Warpgroups, StoreAnywhereInAnotherForm) {
  const std::string text =
      Replaced(fmt::format(kKernel, "{producer_stages: 2}"),
               {{"for i in 0..64, j in 0..8 { C[w * 64 + i, j] = CF[i, j] * 2f32 }",
                 "for i in 0..64 { for j in 0..8 vectorized { C[w * 64 + i, j] = CF[i, j] * 2f32 } "
                 "}"}});
  auto lowered = Lowered(ModuleOf(text, {"ptx.tma.copy.64x64.f16", "ptx.wgmma.m64n8k64.f16.t"}));
  ASSERT_TRUE(lowered) << ToString(lowered.errors());
  const Module forms = codegen::WithAlignedForms(*lowered);
  ASSERT_TRUE(forms.Find("f_aligned"));
  EXPECT_EQ(ParamsOf(forms), (std::string{static_cast<char>(TN_PARAM_TENSOR_MAP),
                                          static_cast<char>(TN_PARAM_TENSOR_MAP), '\0'}));
}

// What `Lowered` reports of the kernel with a part of its text replaced.
std::string ReportOf(const char* noted, const std::string& from, const std::string& to) {
  std::string text = fmt::format(kKernel, noted);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, from.size(), to);
  driver::PassHooks hooks;
  hooks.verify = true;
  auto lowered =
      Lowered(ModuleOf(text, {"ptx.tma.copy.64x64.f16", "ptx.wgmma.m64n8k64.f16.t"}), hooks);
  return lowered ? "" : ToString(lowered.errors());
}

TEST(Warpgroups, WhatDoesNotFitIsRefused) {
  const struct {
    const char *noted, *from, *to, *report;
  } cases[] = {
      {"", "f32", "f32", "is outside of a loop: expected it in one that is annotated with"},
      {"{producer_stages: 17}", "f32", "f32", "expected 1 to 16"},
      {"{producer_stages: 2}", "call @ptx.wgmma", "C[w * 64, 0] = 1f32\n        call @ptx.wgmma",
       "expected results in fragments or local"},
      {"{producer_stages: 2}", "call @ptx.tma.copy.64x64.f16(B",
       "if k < 2 { call @ptx.tma.copy.64x64.f16(B[0..64, k * 64..+64], SB; "
       "192) }\n        call @ptx.tma.copy.64x64.f16(B",
       "stand under a condition"},
  };
  for (const auto& c : cases) {
    const std::string report = ReportOf(c.noted, c.from, c.to);
    EXPECT_NE(report.find(c.report), std::string::npos) << report;
  }
}

// Registers that nobody gives back are waited for without end.
TEST(Warpgroups, RolesGetNoMoreRegistersThanThereAre) {
  const char* text = R"(
func @f(out C: f32[4]) target "cuda -arch=sm_90a" {bound: 1} {
  for b in 0..1 thread blockIdx.x {
    for t in 0..640 thread threadIdx.x {
      roles {
        role compute size 16 registers 120 { if t == 0 { C[0] = 1f32 } }
        role copy size 4 registers 24 { }
      }
    }
  }
}
)";
  auto module = ParseModule(text, "kernel");
  ASSERT_TRUE(module);
  Status status = Verify(*module, Stage::kLowered);
  ASSERT_FALSE(status);
  EXPECT_NE(ToString(status.errors())
                .find("roles ask for 64512 registers, but a launch of 640 threads has 61440"),
            std::string::npos)
      << ToString(status.errors());
}

// Units of a generation with an "a" are that generation's alone.
TEST(Warpgroups, AreRefusedWhereThereAreNone) {
  for (const char* text : {"cuda -arch=sm_90", "cuda -arch=sm_100", "opencl"}) {
    Module module = Product("{producer_stages: 2}");
    PrimFunc func = *module.Find("f");
    func.target = Target::Parse(text).value();
    module.Add(PrimFunc::Make(std::move(func)));
    driver::PassHooks hooks;
    hooks.verify = true;
    const Target target = Target::Parse(text).value();
    auto lowered =
        driver::RunPipeline(driver::DevicePipeline(), module, driver::ContextOf(target), hooks);
    ASSERT_FALSE(lowered) << text;
    EXPECT_NE(ToString(lowered.errors()).find("an operation of a warp that the target"),
              std::string::npos)
        << ToString(lowered.errors());
  }
}

}  // namespace
}  // namespace tenon
