// 500 broken models through a whole compile in one process: each ends in a library or in
// diagnostics, in bounded time, and leaves nothing but the library.
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>

#include "driver/compile.h"
#include "fuzz/mutate.h"
#include "support/atomic_file.h"
#include "unit/driver/folder.h"
#include "unit/onnx/small_models.h"

namespace tenon::driver::test {
namespace {

namespace fs = std::filesystem;

// Of the processor, so that what else runs here does not matter: many times what the slowest takes,
// sanitizers included.
constexpr double kMostSeconds = 60;

// Both levels: every operator by itself with plain schedules, and what is made of them together.
CompileOptions OptionsOf(const Folder& folder, int i) {
  CompileOptions options;
  options.model = folder / "m.onnx";
  options.output = folder / "m.so";
  options.opt_level = i % 4 == 3 ? 0 : 2;
  options.target = "llvm -mcpu=core-avx2";
  options.verify_each = true;
  options.jobs = 1;
  return options;
}

TEST(Mutations, MutatedModelsEndInALibraryOrDiagnostics) {
  const uint64_t seed = fuzz::Seed();
  printf("TENON_FUZZ_SEED=%llu\n", static_cast<unsigned long long>(seed));
  const std::vector<std::string> samples = onnx::test::SmallModels(2, 3);
  const Folder folder;
  // One change each: most models that have several do not get beyond the importer.
  fuzz::Mutator mutator(seed, samples, 1);
  int compiled = 0;
  for (int i = 0; i < 500; ++i) {
    const bool whole = static_cast<size_t>(i) < samples.size();
    const std::string bytes = whole ? samples[static_cast<size_t>(i)] : mutator.Next();
    const CompileOptions options = OptionsOf(folder, i);
    ASSERT_TRUE(WriteFile(options.model, bytes));
    const std::clock_t start = std::clock();
    const Expected<CompileReport> report = Compile(options);
    const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    EXPECT_LT(took, kMostSeconds) << "mutation " << i;
    EXPECT_EQ(static_cast<bool>(report), fs::exists(options.output)) << "mutation " << i;
    fs::remove(options.output);
    EXPECT_EQ(folder.Count(), 1u) << "mutation " << i;
    if (whole) ASSERT_TRUE(report) << ToString(report.errors());
    if (!report) EXPECT_FALSE(report.errors().empty());
    compiled += static_cast<bool>(report);
  }
  printf("%d of 500 compiled\n", compiled);
  EXPECT_GT(compiled, 50);
}

}  // namespace
}  // namespace tenon::driver::test
