#include "target/features.h"

#include <algorithm>
#include <array>

#include "support/strings.h"

namespace tenon {

namespace {

constexpr size_t kCount = static_cast<size_t>(Feature::kCount);

constexpr std::array<FeatureInfo, kCount> kFeatures = {{
#define TN_X86_FEATURE(id, name, implies, ...) {name, Arch::kX86_64, implies},
#define TN_ARM_FEATURE(id, name, implies, ...) {name, Arch::kAArch64, implies},
#define TN_RISCV_FEATURE(id, name, implies, ...) {name, Arch::kRiscV64, implies},
#define TN_WASM_FEATURE(id, name, implies) {name, Arch::kWasm32, implies},
#include "target/features.def"
}};

// For every feature the features it implies, itself included. Rows imply earlier rows only, so one
// pass closes it.
std::array<FeatureSet, kCount> MakeClosures() {
  std::array<FeatureSet, kCount> closures;
  for (size_t i = 0; i < kCount; ++i) {
    closures[i].set(i);
    for (const std::string& name : Split(kFeatures[i].implies, ' ')) {
      if (name.empty()) continue;
      closures[i] |= closures[static_cast<size_t>(FindFeature(kFeatures[i].arch, name))];
    }
  }
  return closures;
}

const FeatureSet& ClosureOf(size_t index) {
  static const std::array<FeatureSet, kCount> closures = MakeClosures();
  return closures[index];
}

}  // namespace

const FeatureInfo& InfoOf(Feature feature) { return kFeatures[static_cast<size_t>(feature)]; }

Feature FindFeature(Arch arch, std::string_view name) {
  size_t i = 0;
  while (i < kCount && !(kFeatures[i].arch == arch && kFeatures[i].name == name)) ++i;
  return static_cast<Feature>(i);
}

std::vector<Feature> FeaturesOf(Arch arch) {
  std::vector<Feature> features;
  for (size_t i = 0; i < kCount; ++i) {
    if (kFeatures[i].arch == arch) features.push_back(static_cast<Feature>(i));
  }
  std::sort(features.begin(), features.end(),
            [](Feature a, Feature b) { return InfoOf(a).name < InfoOf(b).name; });
  return features;
}

void AddFeature(Feature feature, FeatureSet* set) {
  *set |= ClosureOf(static_cast<size_t>(feature));
}

void RemoveFeature(Feature feature, FeatureSet* set) {
  for (size_t i = 0; i < kCount; ++i) {
    if (ClosureOf(i).test(static_cast<size_t>(feature))) set->reset(i);
  }
}

}  // namespace tenon
