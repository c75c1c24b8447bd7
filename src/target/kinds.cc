#include "target/kinds.h"

#include "support/check.h"
#include "support/strings.h"
#include "tenon/devices.h"

namespace tenon {

std::span<const TargetKind> Kinds() {
  static constexpr TargetKind kRows[] = {
#define TN_KIND(id, ...) {.name = #id, __VA_ARGS__},
#include "target/kinds.def"
  };
  return kRows;
}

const TargetKind* FindKind(std::string_view name) {
  for (const TargetKind& kind : Kinds()) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

std::string_view FeatureFor(Ability ability) {
  for (const TargetKind& kind : Kinds()) {
    for (const AbilityRow& row : kind.abilities) {
      if (row.ability == ability) return row.feature;
    }
  }
  return "";
}

static constexpr DeviceRow kDevices[] = {
#define TN_DEVICE_ROW(id, name, type, handles) {name, type, handles != 0},
    TN_DEVICES(TN_DEVICE_ROW)
#undef TN_DEVICE_ROW
};

const DeviceRow* FindDevice(std::string_view name) {
  for (const DeviceRow& row : kDevices) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const DeviceRow* FindDevice(int64_t type) {
  for (const DeviceRow& row : kDevices) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

std::span<const ArchRow> ArchRows() {
  static constexpr ArchRow kRows[] = {
#define TN_ARCH(id, names, triple, cpu, llvm_cpu, features, contained, suffix) \
  {Arch::k##id, names, triple, cpu, llvm_cpu, features, contained, suffix},
#define TN_CPU(...)
#define TN_GPU(...)
#define TN_PRESET(...)
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

const ArchRow* ArchOfTriple(std::string_view triple) {
  const std::string first = Split(triple, '-')[0];
  for (const ArchRow& row : ArchRows()) {
    for (const std::string& name : Split(row.triple_names, ' ')) {
      if (name == first) return &row;
    }
  }
  return nullptr;
}

bool IsContained(std::string_view triple) {
  const ArchRow* row = ArchOfTriple(triple);
  return row && row->contained;
}

}  // namespace tenon
