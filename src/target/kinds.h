// Kinds of targets, architectures of CPUs and kinds of devices, as rows of data. Whoever needs to
// know something about a kind asks its row; nothing above this folder names one, but for the folder
// of its code generator.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "target/features.h"

namespace tenon {

/// What a kind is for, and where the properties of its targets come from.
enum class Family {
  kKnownCpu,  // rows of TN_CPU and options
  kPlainCpu,  // nothing is known: 128-bit vectors, usual caches, every unit that code asks for
  kDevice,    // rows of TN_GPU and options; besides, a CPU as its host
};

/// What some devices can do and others cannot.
enum class Ability {
  kNone,
  kBarriers,           // barriers as objects, roles of warps
  kCooperative,        // launches whose blocks wait for each other
  kClusters,           // of blocks that wait for each other and see each other's memory
  kDependentLaunches,  // a launch that begins before the one in front of it has ended
};

struct AbilityRow {
  Ability ability = Ability::kNone;
  std::string_view feature;  // as Target::Offers has it: what a machine needs for it; "": nothing
};

/// A row of kinds.def.
struct TargetKind {
  std::string_view name;
  Family family = Family::kDevice;
  std::string_view options;         // in the order of messages, separated by blanks
  std::string_view arch_option;     // of a device: the one that names its row; "": it has one row
  std::string_view pipeline;        // of its kernels: KernelPipelineOf in driver
  std::string_view code_generator;  // a row of driver/code_generators.cc; "": there is none yet
  std::string_view device;          // of its memory: a name of tenon/devices.h
  std::string_view forms;           // of its own code in files, by suffix; source first
  std::array<AbilityRow, 6> abilities = {};
  // The most that a launch may have along x, y, z; 0 where nothing but the number of threads
  // counts.
  std::array<int64_t, 3> most_blocks = {};
  std::array<int64_t, 3> most_threads = {};
};

std::span<const TargetKind> Kinds();
/// Null where there is none of this name.
const TargetKind* FindKind(std::string_view name);
/// The least feature by which any kind has the ability, for messages: "sm_90".
std::string_view FeatureFor(Ability ability);

/// A row of tenon/devices.h.
struct DeviceRow {
  std::string_view name;
  int64_t type;  // DLDeviceType
  bool handles;  // a pointer is a handle that nothing can be added to
};
/// Null where there is none.
const DeviceRow* FindDevice(std::string_view name);
const DeviceRow* FindDevice(int64_t type);

/// A row of TN_ARCH.
struct ArchRow {
  Arch arch;
  std::string_view triple_names;  // separated by blanks
  std::string_view triple;
  std::string_view plain_cpu;
  std::string_view llvm_cpu;       // that one, as LLVM calls it
  std::string_view llvm_features;  // of it, as far as LLVM does not know them by that name
  /// A library is a module that has its memory to itself: one thread, its weights inside, at a
  /// fixed place; what nobody defines is its host's to give.
  bool contained;
  std::string_view library_suffix;  // ".so"
};

std::span<const ArchRow> ArchRows();
/// The row of an architecture; not for Arch::kNone.
const ArchRow& RowOf(Arch arch);
/// That of a triple, by its first part; null where nothing is known of it.
const ArchRow* ArchOfTriple(std::string_view triple);
/// Whether libraries of a triple are.
bool IsContained(std::string_view triple);

}  // namespace tenon
