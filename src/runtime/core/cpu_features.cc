// Does this CPU have what the library's code needs?
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "runtime/core/error.h"
#include "runtime/core/params.h"
#include "tenon/kernel_abi.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) || defined(__riscv)
#include <sys/auxv.h>
#endif

namespace tenon::runtime {
namespace {

#if defined(__x86_64__)

enum Register { kEax, kEbx, kEcx, kEdx };
enum State { kNone, kAvx, kAvx512, kAmx };

struct Feature {
  const char* name;
  uint32_t leaf;
  uint8_t subleaf, reg, bit, state;
};

constexpr Feature kFeatures[] = {
#define X86_FEATURE(name, leaf, subleaf, reg, bit, state) {name, leaf, subleaf, reg, bit, state},
#include "runtime/core/cpu_x86.def"
#undef X86_FEATURE
};

// Whether the system saves the registers that the feature uses (XCR0).
bool StateEnabled(State state) {
  if (state == kNone) return true;
  uint32_t regs[4];
  if (!__get_cpuid(1, &regs[kEax], &regs[kEbx], &regs[kEcx], &regs[kEdx])) return false;
  if (!(regs[kEcx] >> 27 & 1)) return false;  // OSXSAVE
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr uint32_t kMasks[] = {0, 0x6, 0xe6, 0x60000};
  return (low & kMasks[state]) == kMasks[state];
}

bool Has(const Feature& feature) {
  uint32_t regs[4];
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &regs[kEax], &regs[kEbx], &regs[kEcx],
                         &regs[kEdx])) {
    return false;
  }
  return (regs[feature.reg] >> feature.bit & 1) && StateEnabled(static_cast<State>(feature.state));
}

// Linux gives the tile registers to a process that asks for them (ARCH_REQ_XCOMP_PERM,
// XFEATURE_XTILEDATA), once.
bool Permit(const char* feature) {
  if (strcmp(feature, "amx-tile") != 0) return true;
  return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}

#elif defined(__aarch64__)

struct Feature {
  const char* name;
  uint32_t type;
  uint64_t mask;
};

constexpr Feature kFeatures[] = {
    {"fp-armv8", AT_HWCAP, 1 << 0},  {"neon", AT_HWCAP, 1 << 1},     {"aes", AT_HWCAP, 1 << 3},
    {"sha2", AT_HWCAP, 1 << 6},      {"crc", AT_HWCAP, 1 << 7},      {"lse", AT_HWCAP, 1 << 8},
    {"fullfp16", AT_HWCAP, 1 << 10}, {"rdm", AT_HWCAP, 1 << 12},     {"rcpc", AT_HWCAP, 1 << 15},
    {"sha3", AT_HWCAP, 1 << 17},     {"dotprod", AT_HWCAP, 1 << 20}, {"sve", AT_HWCAP, 1 << 22},
    {"fp16fml", AT_HWCAP, 1 << 23},  {"sve2", AT_HWCAP2, 1 << 1},    {"i8mm", AT_HWCAP2, 1 << 13},
    {"bf16", AT_HWCAP2, 1 << 14},    {"sme", AT_HWCAP2, 1 << 23},
};

bool Has(const Feature& feature) {
  return (getauxval(feature.type) & feature.mask) == feature.mask;
}
bool Permit(const char*) { return true; }

#elif defined(__riscv)

struct Feature {
  const char* name;
};

// Linux has a bit for each extension of one letter.
constexpr Feature kFeatures[] = {{"v"}};

bool Has(const Feature& feature) { return getauxval(AT_HWCAP) >> (feature.name[0] - 'a') & 1; }
bool Permit(const char*) { return true; }

#else
struct Feature {
  const char* name;
};
constexpr Feature kFeatures[] = {{""}};
bool Has(const Feature&) { return false; }
bool Permit(const char*) { return true; }
#endif

bool HasNamed(const char* name) {
  for (const Feature& feature : kFeatures) {
    if (strcmp(feature.name, name) == 0) return Has(feature) && Permit(name);
  }
  return false;
}

// A list of names, cut where the buffer is full.
class NameList {
 public:
  void Add(const char* name) {
    size_t length = strlen(name);
    if (size_ + length + 2 > sizeof text_) return;
    if (size_ != 0) text_[size_++] = ',';
    memcpy(text_ + size_, name, length + 1);
    size_ += length;
  }
  bool empty() const { return size_ == 0; }
  const char* text() const { return text_; }

 private:
  char text_[1200] = "";
  size_t size_ = 0;
};

int32_t Refuse(const NameList& lacking) {
  NameList needed, present;
  for (const char* name = tn_cpu_required; *name; name += strlen(name) + 1) needed.Add(name);
  for (const Feature& feature : kFeatures) {
    if (Has(feature)) present.Add(feature.name);
  }
  const tn_msg_part parts[] = {
      {TN_MSG_TEXT, 0, {"this library was compiled for another CPU: it lacks "}},
      {TN_MSG_TEXT, 0, {lacking.text()}},
      {TN_MSG_TEXT, 0, {"\n  the code needs: "}},
      {TN_MSG_TEXT, 0, {needed.text()}},
      {TN_MSG_TEXT, 0, {"\n  this CPU has: "}},
      {TN_MSG_TEXT, 0, {present.text()}},
  };
  return tn_core_raise("RuntimeError", parts, sizeof parts / sizeof parts[0]);
}

}  // namespace
}  // namespace tenon::runtime

extern "C" int32_t tn_core_check_cpu(void) {
  using namespace tenon::runtime;
  static std::atomic<bool> fits;
  if (fits.load(std::memory_order_relaxed)) return 0;
  NameList lacking;
  for (const char* name = tn_cpu_required; *name; name += strlen(name) + 1) {
    if (!HasNamed(name)) lacking.Add(name);
  }
  if (!lacking.empty()) return Refuse(lacking);
  if (MapParams() != 0) return -1;
  fits.store(true, std::memory_order_relaxed);
  return 0;
}
