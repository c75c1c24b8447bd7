// Asks this machine's CPU for its features and caches. Nothing here looks at the CPU's name, family
// or model.
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) || defined(__riscv)
#include <sys/auxv.h>
#endif

#include <unistd.h>

#include <array>
#include <cstdint>

#include "target/features.h"
#include "target/tables.h"

namespace tenon {

namespace {

#if defined(__x86_64__)

enum Register { kEax, kEbx, kEcx, kEdx };
// State that the operating system has to save across a context switch, as bits of XCR0.
enum State : uint64_t { kYmm = 0x6, kZmm = 0xe6, kAmx = 0x60000 };

std::array<uint32_t, 4> Cpuid(uint32_t leaf, uint32_t subleaf) {
  std::array<uint32_t, 4> r = {};
  // For a leaf beyond the last, the instruction answers with the last one's content.
  if (__get_cpuid_max(leaf & 0x80000000, nullptr) >= leaf) {
    __cpuid_count(leaf, subleaf, r[kEax], r[kEbx], r[kEcx], r[kEdx]);
  }
  return r;
}

uint64_t EnabledState() {
  constexpr uint32_t kOsxsave = 1u << 27;
  if (!(Cpuid(1, 0)[kEcx] & kOsxsave)) return 0;
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

FeatureSet RawFeatures() {
  const uint64_t enabled = EnabledState();
  const uint32_t last_of_leaf_7 = Cpuid(7, 0)[kEax];
  FeatureSet set;
  auto add = [&](Feature f, uint32_t leaf, uint32_t subleaf, Register r, int bit, uint64_t state) {
    if (leaf == 7 && subleaf > last_of_leaf_7) return;
    if ((enabled & state) != state) return;
    set.set(static_cast<size_t>(f), Cpuid(leaf, subleaf)[r] >> bit & 1);
  };
#define TN_X86_FEATURE(id, name, implies, leaf, subleaf, reg, bit, state) \
  add(Feature::k##id, leaf, subleaf, reg, bit, state);
#define TN_ARM_FEATURE(...)
#define TN_RISCV_FEATURE(...)
#define TN_WASM_FEATURE(...)
#include "target/features.def"
  return set;
}

// The caches that a leaf lists: a subleaf for each, the last one of no kind. The C library adds up
// the third-level caches of a whole package, of which a core has one.
void ReadCaches(uint32_t leaf, CacheSizes* caches) {
  constexpr uint32_t kData = 1, kBoth = 3;
  for (uint32_t i = 0; i < 8; ++i) {
    const auto r = Cpuid(leaf, i);
    const uint32_t kind = r[kEax] & 0x1f, level = r[kEax] >> 5 & 7;
    if (kind == 0) return;
    if (kind != kData && kind != kBoth) continue;
    const auto field = [&](int shift, uint32_t mask) { return (r[kEbx] >> shift & mask) + 1; };
    const int64_t line = field(0, 0xfff), partitions = field(12, 0x3ff), ways = field(22, 0x3ff);
    const int64_t bytes = line * partitions * ways * (int64_t{r[kEcx]} + 1);
    if (level == 1) caches->l1 = bytes;
    if (level == 2) caches->l2 = bytes;
    if (level == 3) caches->l3 = bytes;
  }
}

void ReadCaches(CacheSizes* caches) {
  ReadCaches(4, caches);
  constexpr uint32_t kTopologyExtensions = 1u << 22;  // the same list, under another number
  if (Cpuid(0x80000001, 0)[kEcx] & kTopologyExtensions) ReadCaches(0x8000001d, caches);
}

#elif defined(__aarch64__)

FeatureSet RawFeatures() {
  const std::array<unsigned long, 2> words = {getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
  FeatureSet set;
#define TN_X86_FEATURE(...)
#define TN_ARM_FEATURE(id, name, implies, word, bit) \
  set.set(static_cast<size_t>(Feature::k##id), words[word - 1] >> bit & 1);
#define TN_RISCV_FEATURE(...)
#define TN_WASM_FEATURE(...)
#include "target/features.def"
  return set;
}

#elif defined(__riscv)

FeatureSet RawFeatures() {
  const unsigned long letters = getauxval(AT_HWCAP);
  FeatureSet set;
#define TN_X86_FEATURE(...)
#define TN_ARM_FEATURE(...)
#define TN_RISCV_FEATURE(id, name, implies, letter) \
  set.set(static_cast<size_t>(Feature::k##id), letters >> (letter - 'a') & 1);
#define TN_WASM_FEATURE(...)
#include "target/features.def"
  return set;
}

#else

FeatureSet RawFeatures() { return {}; }

#endif

#if !defined(__x86_64__)
void ReadCaches(CacheSizes*) {}
#endif

// Of the system, where it knows.
int64_t SystemCache(int name, int64_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : otherwise;
}

}  // namespace

FeatureSet DetectHostFeatures() {
  const FeatureSet raw = RawFeatures();
  FeatureSet set;
  for (size_t i = 0; i < raw.size(); ++i) {
    if (!raw.test(i)) continue;
    FeatureSet with = set;
    AddFeature(static_cast<Feature>(i), &with);
    if ((with & ~raw).none()) set = with;
  }
  return set;
}

CacheSizes DetectHostCaches(CacheSizes otherwise) {
  CacheSizes caches = {SystemCache(_SC_LEVEL1_DCACHE_SIZE, otherwise.l1),
                       SystemCache(_SC_LEVEL2_CACHE_SIZE, otherwise.l2),
                       SystemCache(_SC_LEVEL3_CACHE_SIZE, otherwise.l3)};
  ReadCaches(&caches);
  return caches;
}

}  // namespace tenon
