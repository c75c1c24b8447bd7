// targets.def as arrays; private to this folder.
#pragma once

#include <span>
#include <string_view>

#include "target/target.h"

namespace tenon {

struct CpuRow {
  std::string_view name;
  Arch arch;
  std::string_view triple;  // empty: the architecture's
  std::string_view base;
  std::string_view features;
  CacheSizes caches;
};

struct GpuRow {
  std::string_view kind;
  GpuLimits limits;
  std::string_view device;  // empty: the kind's
};

struct PresetRow {
  std::string_view name;
  std::string_view text;
};

std::span<const CpuRow> CpuRows();
std::span<const GpuRow> GpuRows();
std::span<const PresetRow> PresetRows();

/// Null where there is none.
const CpuRow* FindCpu(std::string_view name);
/// Null where there is none; an empty name finds the kind's default.
const GpuRow* FindGpu(const TargetKind& kind, std::string_view arch);
std::string_view TripleOf(const CpuRow& row);
FeatureSet FeaturesOf(const CpuRow& row);

/// What is assumed of a CPU that nothing is known of.
CacheSizes PlainCaches();
/// This machine's, as one of its cores has them; `otherwise` where nobody knows.
CacheSizes DetectHostCaches(CacheSizes otherwise);

}  // namespace tenon
