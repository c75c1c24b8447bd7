#include "target/tables.h"

#include "support/check.h"
#include "support/strings.h"

namespace tenon {

std::span<const CpuRow> CpuRows() {
  static constexpr CpuRow kRows[] = {
#define TN_ARCH(...)
#define TN_CPU(name, arch, triple, base, features, l1, l2, l3) \
  {name, Arch::k##arch, triple, base, features, {l1 * 1024, l2 * 1024, l3 * 1024}},
#define TN_GPU(...)
#define TN_PRESET(...)
#include "target/targets.def"
  };
  return kRows;
}

std::span<const GpuRow> GpuRows() {
  static const GpuRow kRows[] = {
#define TN_ARCH(...)
#define TN_CPU(...)
#define TN_GPU(arch, kind, threads, shared, registers, warp, device) \
  {#kind, {arch, threads, shared, registers, warp}, device},
#define TN_PRESET(...)
#include "target/targets.def"
  };
  return kRows;
}

std::span<const PresetRow> PresetRows() {
  static constexpr PresetRow kRows[] = {
#define TN_ARCH(...)
#define TN_CPU(...)
#define TN_GPU(...)
#define TN_PRESET(name, text) {name, text},
#include "target/targets.def"
  };
  return kRows;
}

const CpuRow* FindCpu(std::string_view name) {
  for (const CpuRow& row : CpuRows()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// Of several architectures, the first: the others have what it has.
const GpuRow* FindGpu(const TargetKind& kind, std::string_view arch) {
  arch = arch.substr(0, arch.find(','));
  for (const GpuRow& row : GpuRows()) {
    if (row.kind == kind.name && (arch.empty() || row.limits.arch == arch)) return &row;
  }
  return nullptr;
}

std::string_view TripleOf(const CpuRow& row) {
  return row.triple.empty() ? RowOf(row.arch).triple : row.triple;
}

FeatureSet FeaturesOf(const CpuRow& row) {
  FeatureSet set;
  for (const CpuRow* r = &row; r; r = r->base.empty() ? nullptr : FindCpu(r->base)) {
    for (const std::string& name : Split(r->features, ' ')) {
      if (name.empty()) continue;
      const Feature feature = FindFeature(r->arch, name);
      TN_CHECK(feature != Feature::kCount, "CPU {} names the feature {}", r->name, name);
      AddFeature(feature, &set);
    }
  }
  return set;
}

CacheSizes PlainCaches() { return {32 << 10, 256 << 10, 2 << 20}; }

}  // namespace tenon
