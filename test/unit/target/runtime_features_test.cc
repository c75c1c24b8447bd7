// The runtime refuses code by a table of its own (it may not include this layer). The two must
// agree: a feature that a target can name but the runtime does not know would make every load fail,
// and a wrong bit would run what must not run.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>

#include "target/features.h"

namespace tenon {
namespace {

enum Register { kEax, kEbx, kEcx, kEdx };

struct Row {
  std::string name;
  uint32_t leaf;
  uint32_t subleaf;
  int reg;
  int bit;
  uint64_t state;  // bits of XCR0

  auto Key() const { return std::tuple(leaf, subleaf, reg, bit, state); }
};

std::vector<Row> TargetRows() {
  enum : uint64_t { kYmm = 0x6, kZmm = 0xe6, kAmx = 0x60000 };
  return {
#define TN_X86_FEATURE(id, name, implies, leaf, subleaf, reg, bit, state) \
  {name, leaf, subleaf, reg, bit, state},
#define TN_ARM_FEATURE(...)
#define TN_RISCV_FEATURE(...)
#define TN_WASM_FEATURE(...)
#include "target/features.def"
  };
}

std::vector<Row> RuntimeRows() {
  enum : uint64_t { kNone = 0, kAvx = 0x6, kAvx512 = 0xe6, kAmx = 0x60000 };
  return {
#define X86_FEATURE(name, leaf, subleaf, reg, bit, state) {name, leaf, subleaf, reg, bit, state},
#include "runtime/core/cpu_x86.def"
#undef X86_FEATURE
  };
}

TEST(RuntimeFeatures, AgreeWithTheTargets) {
  const std::vector<Row> runtime = RuntimeRows();
  for (const Row& row : TargetRows()) {
    const Row* found = nullptr;
    for (const Row& other : runtime) {
      if (other.name == row.name) found = &other;
    }
    ASSERT_NE(found, nullptr) << "the runtime does not know " << row.name;
    EXPECT_EQ(found->Key(), row.Key()) << row.name;
  }
}

}  // namespace
}  // namespace tenon
