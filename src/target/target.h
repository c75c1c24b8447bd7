// Targets as data: what kind of code to make, for which CPU or GPU, with which limits. A target is
// a value; its text (docs/targets.md) says everything about it: Parse(t.ToString()) equals t on
// every machine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/expected.h"
#include "target/features.h"
#include "target/kinds.h"

namespace tenon {

/// Bytes. L1 (data) and L2 belong to one core, L3 is shared.
struct CacheSizes {
  int64_t l1 = 0;
  int64_t l2 = 0;
  int64_t l3 = 0;

  bool operator==(const CacheSizes&) const = default;
};

/// Limits of one GPU launch.
struct GpuLimits {
  std::string arch;  // "sm_90", "gfx90a", "generic"
  int64_t max_threads_per_block = 0;
  int64_t max_shared_memory_per_block = 0;  // bytes
  int64_t registers_per_block = 0;          // of 32 bits
  int64_t thread_warp_size = 0;

  bool operator==(const GpuLimits&) const = default;
};

/// 90 of "sm_90a"; 0 of what is no such name. The null device, which runs nothing, has everything.
int GpuGeneration(std::string_view arch);

class Target {
 public:
  /// Reads a target string: the name of a kind (kinds.def) or of a preset, then options. Bare
  /// "llvm" is this machine, resolved. A failure names the word at fault and lists what would be
  /// valid.
  static Expected<Target> Parse(std::string_view text);
  /// This machine: features asked of the CPU, the plainest CPU name that has no more than them, its
  /// cache sizes.
  static Target Host();

  /// The shortest string that means this target everywhere.
  std::string ToString() const;

  const TargetKind& kind() const { return *kind_; }
  bool SameKind(const Target& other) const { return kind_ == other.kind_; }
  /// Of a kind whose code is launched on a device by a host.
  bool IsDevice() const { return host_ != nullptr; }
  /// The CPU that code of this target, or its host part, runs on.
  const Target& Cpu() const { return host_ ? *host_ : *this; }

  /// What memory of the target lies on.
  const DeviceRow& device() const;
  /// Of a device of several architectures: whether all of them can.
  bool Can(Ability ability) const;
  /// Whether one of them can. Code of the others does without: it says so by itself, and its
  /// launches are told by what is noted of it (tn_device_image).
  bool CanInPart(Ability ability) const;
  /// Whether this architecture can, by its name: "sm_90a".
  bool CanAs(std::string_view arch, Ability ability) const;
  /// Whether it has a unit: a feature of its CPU, the generation of a device; a plain CPU offers
  /// all.
  bool Offers(std::string_view feature) const;
  /// The target in a word: its kind's name or, where a kind has several, that of its architecture.
  std::string ShortName() const;

  // --- CPUs ---
  Arch arch() const { return arch_; }
  /// Libraries of it are contained (kinds.h).
  bool IsContained() const;
  const std::string& triple() const { return triple_; }  // empty for a plain CPU
  const std::string& cpu() const { return cpu_; }
  bool Has(Feature feature) const { return features_.test(static_cast<size_t>(feature)); }
  /// By LLVM's name; false for a name that this architecture does not know.
  bool Has(std::string_view feature) const;
  /// LLVM's names of what code for this target may use beyond its architecture's baseline, sorted.
  std::vector<std::string> FeatureList() const;
  /// Those of FeatureList() that `machine` lacks; empty where code for this target runs on it.
  std::vector<std::string> MissingOn(const Target& machine) const;
  /// What LLVM is told: the plain CPU of the architecture, "+a,-b,…" over every feature we know,
  /// and the CPU to tune for. So code never uses a feature that FeatureList() does not name.
  std::string LlvmCpu() const;
  std::string LlvmFeatures() const;
  std::string LlvmTuneCpu() const;

  /// The widest vector register, and how many of its kind there are.
  int VectorBits() const;
  int NumVectorRegisters() const;
  /// Elements of `element_bits` in the widest vector register.
  int VectorLanes(int element_bits) const { return VectorBits() / element_bits; }
  /// fma in hardware, rounded once.
  bool HasFma() const;
  int PointerBits() const;
  const CacheSizes& caches() const { return caches_; }
  /// What -num-cores says; 0 where it says nothing. Only cost models may look: code serves every
  /// size of team.
  int cores() const { return cores_; }

  // --- devices ---
  const GpuLimits& gpu() const { return gpu_; }

  friend bool operator==(const Target& a, const Target& b);

 private:
  friend class TargetParser;
  Target();

  const TargetKind* kind_ = nullptr;
  Arch arch_ = Arch::kNone;
  std::string triple_;
  std::string cpu_;
  FeatureSet features_;
  CacheSizes caches_;
  int cores_ = 0;
  GpuLimits gpu_;
  std::shared_ptr<const Target> host_;  // of a device; immutable
};

/// A target that functions share; null where none is chosen. It prints as it was written, since the
/// whole text of a target that leaves something to the machine differs from machine to machine.
class TargetRef {
 public:
  TargetRef() = default;
  TargetRef(Target target);  // NOLINT(google-explicit-constructor): a target is one that is shared
  static Expected<TargetRef> Parse(std::string_view text);

  explicit operator bool() const { return shared_ != nullptr; }
  const Target* operator->() const { return &shared_->target; }
  const Target& operator*() const { return shared_->target; }
  /// As Parse got it, or Target::ToString(); "" for null.
  const std::string& text() const;
  /// Target::ToString(), by which two of them are equal; "" for null.
  const std::string& FullText() const;

  friend bool operator==(const TargetRef& a, const TargetRef& b);

 private:
  struct Shared {
    Target target;
    std::string text, full;  // as written; ToString()
  };
  std::shared_ptr<const Shared> shared_;
};

}  // namespace tenon
