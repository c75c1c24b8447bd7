// targets.def as arrays; private to this folder.
#pragma once

#include <span>
#include <string_view>

#include "target/target.h"

namespace tenon {

struct ArchRow {
  Arch arch;
  std::string_view triple_names;  // separated by blanks
  std::string_view triple;
  std::string_view plain_cpu;
  std::string_view llvm_cpu;       // that one, as LLVM calls it
  std::string_view llvm_features;  // of it, as far as LLVM does not know them by that name
};

struct CpuRow {
  std::string_view name;
  Arch arch;
  std::string_view triple;  // empty: the architecture's
  std::string_view base;
  std::string_view features;
  CacheSizes caches;
};

struct GpuRow {
  TargetKind kind;
  GpuLimits limits;
};

struct PresetRow {
  std::string_view name;
  std::string_view text;
};

std::span<const ArchRow> ArchRows();
std::span<const CpuRow> CpuRows();
std::span<const GpuRow> GpuRows();
std::span<const PresetRow> PresetRows();

/// The row of an architecture; not for Arch::kNone.
const ArchRow& RowOf(Arch arch);
/// Null where there is none.
const CpuRow* FindCpu(std::string_view name);
/// Null where there is none; an empty name finds the kind's default.
const GpuRow* FindGpu(TargetKind kind, std::string_view arch);
std::string_view TripleOf(const CpuRow& row);
FeatureSet FeaturesOf(const CpuRow& row);

std::string_view NameOf(TargetKind kind);
/// What is assumed of a CPU that nothing is known of.
CacheSizes PlainCaches();

}  // namespace tenon
