#include "target/target.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "target/tables.h"

namespace tenon {
namespace {

Target Must(std::string_view text) {
  auto target = Target::Parse(text);
  EXPECT_TRUE(target) << ToString(target.errors());
  return *target;
}

std::string Error(std::string_view text) {
  auto target = Target::Parse(text);
  EXPECT_FALSE(target) << text;
  return target ? "" : target.errors()[0].ToString();
}

TEST(Target, TextRoundTrips) {
  for (const char* text : {
           "llvm -mcpu=core-avx2",
           "llvm -mcpu=skylake-avx512 -num-cores=2",
           "llvm -mcpu=sapphirerapids -mattr=-amx-bf16,-amx-int8,-amx-tile",
           "llvm -mcpu=x86-64-v4 -mattr=+avx512bf16,+avx512vnni -l1-cache=48K -l2-cache=2M "
           "-l3-cache=1000",
           "llvm -mtriple=aarch64-unknown-linux-musl -mcpu=cortex-a72",
           "llvm -mcpu=apple-m1",
           "llvm -mcpu=wasm-generic -mattr=-simd128",
           "c",
           "c -l1-cache=16K -num-cores=4",
           "cuda -arch=sm_90 -max_threads_per_block=512 -host=llvm -mcpu=x86-64-v3",
           "rocm -mcpu=gfx90a -host=llvm -mcpu=x86-64",
           "opencl -max_threads_per_block=128 -host=llvm -mcpu=x86-64",
       }) {
    EXPECT_EQ(Must(text).ToString(), text);
  }
}

TEST(Target, EveryRowParsesAndRoundTrips) {
  for (const CpuRow& row : CpuRows()) {
    const Target target = Must(fmt::format("llvm -mcpu={}", row.name));
    EXPECT_EQ(target.arch(), row.arch);
    EXPECT_EQ(Must(target.ToString()), target);
  }
  for (const PresetRow& row : PresetRows()) EXPECT_EQ(Must(row.name), Must(row.text));
  for (const GpuRow& row : GpuRows()) EXPECT_GT(row.limits.thread_warp_size, 0);
}

TEST(Target, HostRoundTripsAndRunsItself) {
  const Target host = Target::Host();
  EXPECT_EQ(Must("llvm"), host);
  EXPECT_EQ(Must(host.ToString()), host);
  EXPECT_TRUE(host.MissingOn(host).empty());
  EXPECT_GT(host.caches().l1, 0);
#if defined(__x86_64__)
  EXPECT_EQ(host.Has(Feature::kAvx2), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(host.Has(Feature::kFma), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(host.Has(Feature::kAvx512F), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(host.Has(Feature::kAvx512Vnni), __builtin_cpu_supports("avx512vnni") != 0);
#endif
}

#if defined(__linux__)
// What the system says of the first core, where it does.
TEST(Target, HostCachesAreThoseOfACore) {
  const CacheSizes host = Target::Host().caches();
  for (int i = 0; i < 8; ++i) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    int level = 0;
    int64_t kilobytes = 0;
    std::string kind;
    std::ifstream(folder + "level") >> level;
    std::ifstream(folder + "size") >> kilobytes;
    std::ifstream(folder + "type") >> kind;
    if (kilobytes == 0 || kind == "Instruction" || level < 1 || level > 3) continue;
    const int64_t known[] = {host.l1, host.l2, host.l3};
    EXPECT_EQ(known[level - 1], kilobytes * 1024) << level;
  }
}
#endif

TEST(Target, VectorsFollowFeatures) {
  const Target sse = Must("llvm -mcpu=x86-64");
  EXPECT_EQ(sse.VectorLanes(32), 4);
  EXPECT_FALSE(sse.HasFma());
  const Target avx2 = Must("llvm -mcpu=core-avx2");
  EXPECT_EQ(avx2.VectorLanes(32), 8);
  EXPECT_EQ(avx2.NumVectorRegisters(), 16);
  EXPECT_TRUE(avx2.HasFma());
  const Target avx512 = Must("llvm -mcpu=skylake-avx512");
  EXPECT_EQ(avx512.VectorLanes(16), 32);
  EXPECT_EQ(avx512.NumVectorRegisters(), 32);
  const Target arm = Must("llvm -mcpu=cortex-a72");
  EXPECT_EQ(arm.triple(), "aarch64-unknown-linux-gnu");
  EXPECT_EQ(arm.VectorLanes(32), 4);
  EXPECT_EQ(arm.NumVectorRegisters(), 32);
  const Target risc = Must("llvm -mtriple=riscv64-linux-gnu");
  EXPECT_EQ(risc.VectorLanes(32) * risc.NumVectorRegisters(), 32);  // scalar registers, in pairs
  EXPECT_TRUE(risc.HasFma());
  EXPECT_EQ(Must("llvm -mtriple=riscv64-linux-gnu -mattr=+v").VectorLanes(32), 4);
  EXPECT_NE(risc.LlvmFeatures().find("+d,"), std::string::npos) << risc.LlvmFeatures();
  const Target wasm = Must("llvm -mtriple=wasm32-unknown-unknown");
  EXPECT_EQ(wasm.VectorLanes(32), 4);
  EXPECT_FALSE(Must("llvm -mcpu=wasm-generic -mattr=+relaxed-simd").HasFma());
  EXPECT_EQ(Must("llvm -mcpu=wasm-generic -mattr=-simd128").VectorLanes(32), 2);
  EXPECT_EQ(wasm.PointerBits(), 32);
  EXPECT_EQ(arm.PointerBits(), 64);
}

TEST(Target, AttributesCloseOverWhatTheyImply) {
  const Target without = Must("llvm -mcpu=sapphirerapids -mattr=-avx2");
  EXPECT_FALSE(without.Has(Feature::kAvx512F));
  EXPECT_FALSE(without.Has("avx512bf16"));
  EXPECT_TRUE(without.Has(Feature::kFma));
  const Target with = Must("llvm -mcpu=x86-64 -mattr=+avx512bf16");
  EXPECT_TRUE(with.Has(Feature::kFma));
  EXPECT_EQ(with.VectorBits(), 512);
  EXPECT_EQ(Must("llvm -mcpu=x86-64 -mattr=+avx -mattr=+fma"),
            Must("llvm -mcpu=x86-64 -mattr=+fma"));
}

TEST(Target, AnOptionIsGivenOnce) {
  const std::string twice = Error("cuda -arch=sm_80 -arch=sm_90");
  EXPECT_NE(twice.find("the option '-arch' is given twice"), std::string::npos) << twice;
  EXPECT_NE(Error("c -num-cores=2 -num-cores=2").find("twice"), std::string::npos);
  EXPECT_NE(Error("raspberry-pi/4b -num-cores=2 -num-cores=2").find("twice"), std::string::npos);
  // What is written counts before what a preset says, on either side of it.
  EXPECT_EQ(Must("jetson-nano -arch=sm_62").gpu().arch, "sm_62");
  EXPECT_EQ(Must("cuda -model=jetson-nano -arch=sm_62").gpu().arch, "sm_62");
  EXPECT_EQ(Must("cuda -arch=sm_62 -model=jetson-nano").gpu().arch, "sm_62");
}

TEST(Target, ArchitecturesAreListedByNumber) {
  const std::string error = Error("cuda -arch=sm_1");
  EXPECT_NE(error.find("sm_53, sm_60"), std::string::npos) << error;
  EXPECT_NE(error.find("sm_90, sm_90a, sm_100, sm_100a, sm_103, sm_110, sm_120, sm_121"),
            std::string::npos)
      << error;
}

// They are in order, and what is made for all of them keeps the limits of each.
TEST(Target, SeveralArchitecturesAreOneTarget) {
  const Target target = Must("cuda -arch=sm_90a,sm_86,sm_80,sm_86");
  EXPECT_TRUE(target.ToString().starts_with("cuda -arch=sm_80,sm_86,sm_90a ")) << target.ToString();
  EXPECT_EQ(Must(target.ToString()), target);
  EXPECT_EQ(target.gpu().max_shared_memory_per_block, 101376);
  EXPECT_TRUE(target.Offers("sm_80"));
  EXPECT_FALSE(target.Offers("sm_86"));
  EXPECT_FALSE(target.Offers("sm_90a"));
  EXPECT_FALSE(target.Can(Ability::kDependentLaunches));
  EXPECT_TRUE(target.CanInPart(Ability::kDependentLaunches));
  EXPECT_FALSE(target.CanAs("sm_86", Ability::kDependentLaunches));
  EXPECT_TRUE(target.CanAs("sm_90a", Ability::kDependentLaunches));
  EXPECT_FALSE(Must("cuda -arch=sm_80,sm_86").CanInPart(Ability::kDependentLaunches));
  EXPECT_TRUE(Must("cuda -arch=null").CanInPart(Ability::kDependentLaunches));
  EXPECT_FALSE(Must("opencl").CanInPart(Ability::kDependentLaunches));
  EXPECT_NE(Error("cuda -arch=sm_80,sm_99").find("'sm_99'"), std::string::npos);
  EXPECT_NE(Error("cuda -arch=sm_80,").find("valid:"), std::string::npos);
  EXPECT_NE(Error("cuda -arch=sm_80,null").find("beside others"), std::string::npos);
}

TEST(Target, NamesFeaturesForLlvmAndForTheArtifact) {
  const Target target = Must("llvm -mcpu=x86-64 -mattr=+avx");
  EXPECT_EQ(target.FeatureList(),
            (std::vector<std::string>{"avx", "sse3", "sse4.1", "sse4.2", "ssse3"}));
  EXPECT_EQ(target.LlvmCpu(), "x86-64");
  EXPECT_NE(target.LlvmFeatures().find("+avx,-avx2,"), std::string::npos);
  EXPECT_EQ(target.MissingOn(Must("llvm -mcpu=nehalem")), std::vector<std::string>{"avx"});
  EXPECT_EQ(Must("llvm -mcpu=znver4").LlvmTuneCpu(), "znver4");
  EXPECT_EQ(Must("llvm -mcpu=armv8-a").LlvmTuneCpu(), "generic");
}

TEST(Target, DividesInOneWayWhereDividersAreFast) {
  for (const char* cpu : {"icelake-client", "sapphirerapids", "alderlake", "znver3", "znver5"}) {
    const Target target = Must(std::string("llvm -mcpu=") + cpu);
    EXPECT_NE(target.LlvmFeatures().find("-idivq-to-divl"), std::string::npos) << cpu;
  }
  for (const char* cpu : {"x86-64", "x86-64-v4", "cascadelake", "znver2", "neoverse-v1"}) {
    const Target target = Must(std::string("llvm -mcpu=") + cpu);
    EXPECT_EQ(target.LlvmFeatures().find("idivq-to-divl"), std::string::npos) << cpu;
  }
}

TEST(Target, TriplesImplyAndAreImplied) {
  EXPECT_EQ(Must("llvm -mtriple=aarch64-linux-gnu").cpu(), "armv8-a");
  EXPECT_EQ(Must("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"),
            Must("llvm -mcpu=cortex-a72"));
  EXPECT_EQ(Must("llvm -mtriple=wasm32-unknown-unknown").arch(), Arch::kWasm32);
  EXPECT_EQ(Must("llvm -mcpu=apple-m1").triple(), "arm64-apple-macosx11.0.0");
}

TEST(Target, GpusHaveLimitsAndAHost) {
  const Target nano = Must("cuda -model=jetson-nano");
  EXPECT_EQ(nano, Must("jetson-nano"));
  EXPECT_EQ(nano.gpu().arch, "sm_53");
  EXPECT_EQ(nano.gpu().registers_per_block, 32768);
  EXPECT_EQ(nano.Cpu().cpu(), "cortex-a57");
  const Target bare = Must("cuda");
  EXPECT_EQ(bare.gpu().arch, "sm_75");
  EXPECT_EQ(bare.Cpu(), Target::Host());
  EXPECT_EQ(Must("rocm").gpu().arch, "gfx900");
  EXPECT_FALSE(Must("llvm").IsDevice());
}

TEST(Target, ErrorsNameTheWordAndWhatIsValid) {
  EXPECT_TRUE(Error("llmv").starts_with(
      "error: unknown kind or preset 'llmv' in target 'llmv'\n  note: did you mean 'llvm'?"));
  const std::string cpu = Error("llvm -mcpu=core-avx3");
  EXPECT_NE(cpu.find("unknown CPU 'core-avx3'"), std::string::npos) << cpu;
  EXPECT_NE(cpu.find("did you mean 'core-avx2'?"), std::string::npos) << cpu;
  EXPECT_NE(cpu.find("valid: x86-64, "), std::string::npos) << cpu;
  const std::string other = Error("llvm -mtriple=aarch64-linux-gnu -mcpu=haswell");
  EXPECT_NE(other.find("CPU of aarch64-linux-gnu 'haswell'"), std::string::npos) << other;
  EXPECT_EQ(other.find("skylake"), std::string::npos) << other;
  EXPECT_NE(Error("llvm -mtriple=sparc-linux").find("'sparc-linux'"), std::string::npos);
  EXPECT_NE(Error("llvm -mcpu=haswell -mattr=+avx2,+foo").find("unknown CPU feature 'foo'"),
            std::string::npos);
  EXPECT_NE(Error("llvm -mattr=avx2").find("'-mattr=avx2'"), std::string::npos);
  EXPECT_NE(Error("llvm -arch=sm_90").find("unknown option of 'llvm' '-arch'"), std::string::npos);
  EXPECT_NE(Error("llvm core-avx2").find("'core-avx2'"), std::string::npos);
  EXPECT_NE(Error("llvm -mcpu").find("expected '-mcpu=VALUE'"), std::string::npos);
  EXPECT_NE(Error("llvm -mcpu=").find("expected '-mcpu=VALUE'"), std::string::npos);
  for (const char* n : {"0", "-1", "x", "1G", "99999999999999999999", "5000"}) {
    EXPECT_NE(Error(fmt::format("c -num-cores={}", n)).find("-num-cores"), std::string::npos);
  }
  EXPECT_NE(Error("cuda -arch=sm_1").find("sm_90"), std::string::npos);
  EXPECT_NE(Error("cuda -host=opencl").find("expected a CPU target as host"), std::string::npos);
  EXPECT_NE(Error("cuda -model=raspberry-pi/4b").find("jetson-nano"), std::string::npos);
  EXPECT_FALSE(Target::Parse(""));
  EXPECT_FALSE(Target::Parse("  "));
}

}  // namespace
}  // namespace tenon
