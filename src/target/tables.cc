#include "target/tables.h"

#include <array>

#include "support/check.h"
#include "support/strings.h"

namespace tenon {

std::span<const ArchRow> ArchRows() {
  static constexpr ArchRow kRows[] = {
#define TN_ARCH(id, names, triple, cpu, llvm_cpu, features) \
  {Arch::k##id, names, triple, cpu, llvm_cpu, features},
#define TN_CPU(...)
#define TN_GPU(...)
#define TN_PRESET(...)
#include "target/targets.def"
  };
  return kRows;
}

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
#define TN_GPU(arch, kind, threads, shared, registers, warp) \
  {TargetKind::k##kind, {arch, threads, shared, registers, warp}},
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

const ArchRow& RowOf(Arch arch) {
  for (const ArchRow& row : ArchRows()) {
    if (row.arch == arch) return row;
  }
  TN_UNREACHABLE();
}

const CpuRow* FindCpu(std::string_view name) {
  for (const CpuRow& row : CpuRows()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const GpuRow* FindGpu(TargetKind kind, std::string_view arch) {
  for (const GpuRow& row : GpuRows()) {
    if (row.kind == kind && (arch.empty() || row.limits.arch == arch)) return &row;
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

std::string_view NameOf(TargetKind kind) {
  switch (kind) {
    case TargetKind::kLlvm: return "llvm";
    case TargetKind::kC: return "c";
    case TargetKind::kCuda: return "cuda";
    case TargetKind::kRocm: return "rocm";
    case TargetKind::kOpenCl: return "opencl";
  }
  TN_UNREACHABLE();
}

}  // namespace tenon
