// CPU features as data (features.def): their names, what implies what, and which of them this
// machine has.
#pragma once

#include <bitset>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Instruction sets that code can be made for. kNone: a target that is not a CPU we know (C source,
/// GPUs).
enum class Arch { kX86_64, kAArch64, kRiscV64, kWasm32, kNone };

enum class Feature {
#define TN_X86_FEATURE(id, ...) k##id,
#define TN_ARM_FEATURE(id, ...) k##id,
#define TN_RISCV_FEATURE(id, ...) k##id,
#define TN_WASM_FEATURE(id, ...) k##id,
#include "target/features.def"
  kCount
};

using FeatureSet = std::bitset<static_cast<size_t>(Feature::kCount)>;

/// A row of features.def; `index` is the Feature.
struct FeatureInfo {
  std::string_view name;
  Arch arch;
  std::string_view implies;
};
const FeatureInfo& InfoOf(Feature feature);

/// The feature of that name in an architecture, or kCount.
Feature FindFeature(Arch arch, std::string_view name);
/// All features of an architecture, sorted by name.
std::vector<Feature> FeaturesOf(Arch arch);

/// Adds a feature and all that it implies; removes one and all that imply it. Sets made by these
/// two are closed.
void AddFeature(Feature feature, FeatureSet* set);
void RemoveFeature(Feature feature, FeatureSet* set);

/// What this machine's CPU has and its system lets programs use, asked of the CPU itself (its name
/// is not looked at: under virtual machines it lies). Closed as above: a feature whose implied ones
/// are masked does not count.
FeatureSet DetectHostFeatures();

}  // namespace tenon
