#include "target/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "support/check.h"
#include "support/strings.h"
#include "target/tables.h"

namespace tenon {

namespace {

// The architecture of the null device, which runs nothing.
constexpr std::string_view kEverything = "null";

// "48K", "2M" or plain bytes, whichever is exact and shortest.
std::string FormatSize(int64_t bytes) {
  if (bytes % (1 << 20) == 0) return fmt::format("{}M", bytes >> 20);
  if (bytes % (1 << 10) == 0) return fmt::format("{}K", bytes >> 10);
  return fmt::format("{}", bytes);
}

// " -mattr=-a,+b" that turns `from` into `to`. Removals stand first: a removal takes with it what
// implies the feature, which nothing in `to` does, and an addition brings what it implies, which is
// all in `to`.
std::string FormatAttributes(Arch arch, const FeatureSet& from, const FeatureSet& to) {
  std::vector<std::string> words;
  for (const char sign : {'-', '+'}) {
    const FeatureSet changed = sign == '-' ? from & ~to : to & ~from;
    for (Feature f : FeaturesOf(arch)) {
      if (changed.test(static_cast<size_t>(f)))
        words.push_back(fmt::format("{}{}", sign, InfoOf(f).name));
    }
  }
  return words.empty() ? "" : " -mattr=" + Join(words, ",");
}

std::string FormatCaches(const CacheSizes& from, const CacheSizes& to) {
  std::string out;
  if (from.l1 != to.l1) out += " -l1-cache=" + FormatSize(to.l1);
  if (from.l2 != to.l2) out += " -l2-cache=" + FormatSize(to.l2);
  if (from.l3 != to.l3) out += " -l3-cache=" + FormatSize(to.l3);
  return out;
}

std::string FormatGpu(const TargetKind& kind, const GpuLimits& gpu) {
  std::string out;
  const GpuLimits& row = FindGpu(kind, gpu.arch)->limits;
  if (!kind.arch_option.empty()) out += fmt::format(" -{}={}", kind.arch_option, gpu.arch);
  auto add = [&out](const char* name, int64_t value, int64_t usual) {
    if (value != usual) out += fmt::format(" -{}={}", name, value);
  };
  add("max_threads_per_block", gpu.max_threads_per_block, row.max_threads_per_block);
  add("max_shared_memory_per_block", gpu.max_shared_memory_per_block,
      row.max_shared_memory_per_block);
  add("registers_per_block", gpu.registers_per_block, row.registers_per_block);
  add("thread_warp_size", gpu.thread_warp_size, row.thread_warp_size);
  return out;
}

// A name with a letter at its end is of units that later generations do not have.
bool ArchOffers(std::string_view arch, std::string_view feature) {
  const bool alone = feature.back() == 'a';
  if (alone && arch != kEverything) return arch == feature;
  return GpuGeneration(arch) >= GpuGeneration(feature);
}

}  // namespace

int GpuGeneration(std::string_view arch) {
  int number = 0;
  if (arch == kEverything) return std::numeric_limits<int>::max();
  if (!arch.starts_with("sm_")) return 0;
  for (char c : arch.substr(3, arch.find(',') - 3)) {
    if (c >= '0' && c <= '9' && number < 100000) number = number * 10 + (c - '0');
  }
  return number;
}

std::string Target::ToString() const {
  std::string out(kind_->name);
  if (IsDevice()) return out + FormatGpu(*kind_, gpu_) + " -host=" + host_->ToString();
  if (kind_->family == Family::kKnownCpu) {
    const CpuRow& row = *FindCpu(cpu_);
    if (triple_ != TripleOf(row)) out += " -mtriple=" + triple_;
    out += " -mcpu=" + cpu_;
    out += FormatAttributes(arch_, FeaturesOf(row), features_);
    out += FormatCaches(row.caches, caches_);
  } else {
    out += FormatCaches(PlainCaches(), caches_);
  }
  if (cores_ > 0) out += fmt::format(" -num-cores={}", cores_);
  return out;
}

bool Target::Has(std::string_view feature) const {
  const Feature f = FindFeature(arch_, feature);
  return f != Feature::kCount && Has(f);
}

std::vector<std::string> Target::FeatureList() const {
  std::vector<std::string> names;
  for (Feature f : FeaturesOf(arch_)) {
    if (Has(f)) names.emplace_back(InfoOf(f).name);
  }
  return names;
}

std::vector<std::string> Target::MissingOn(const Target& machine) const {
  std::vector<std::string> names;
  for (Feature f : FeaturesOf(arch_)) {
    if (Has(f) && !machine.Has(f)) names.emplace_back(InfoOf(f).name);
  }
  return names;
}

std::string Target::LlvmCpu() const { return std::string(RowOf(arch_).llvm_cpu); }

// LLVM makes two of each division of 64 bits, one of 32 bits where both numbers are small, with
// branches. Dividers that take tens of cycles for 64 bits want that; those of Ice Lake and Zen 3
// and of what came after them, which are the processors that have vaes, do not, and what is split
// at each division of an index takes long to compile.
static bool DividesFast(const Target& target) {
  return target.arch() == Arch::kX86_64 && target.Has(Feature::kVaes);
}

std::string Target::LlvmFeatures() const {
  std::vector<std::string> words;
  const std::string_view baseline = RowOf(arch_).llvm_features;
  if (!baseline.empty()) words.emplace_back(baseline);
  for (Feature f : FeaturesOf(arch_)) {
    words.push_back(fmt::format("{}{}", Has(f) ? '+' : '-', InfoOf(f).name));
  }
  if (DividesFast(*this)) words.emplace_back("-idivq-to-divl");
  return Join(words, ",");
}

std::string Target::LlvmTuneCpu() const {
  return cpu_ == RowOf(arch_).plain_cpu ? LlvmCpu() : cpu_;
}

// Where there are no vector registers, pairs of fp32 registers stand for them: code in vectors of
// that width becomes scalar code that fills the registers.
int Target::VectorBits() const {
  switch (arch_) {
    case Arch::kX86_64: return Has(Feature::kAvx512F) ? 512 : Has(Feature::kAvx) ? 256 : 128;
    case Arch::kRiscV64: return Has(Feature::kRiscVVector) ? 128 : 64;  // every V has 128
    case Arch::kWasm32: return Has(Feature::kSimd128) ? 128 : 64;
    case Arch::kAArch64:
    case Arch::kNone: return 128;
  }
  TN_UNREACHABLE();
}

int Target::NumVectorRegisters() const {
  switch (arch_) {
    case Arch::kX86_64: return Has(Feature::kAvx512F) ? 32 : 16;
    case Arch::kAArch64: return 32;
    case Arch::kRiscV64: return Has(Feature::kRiscVVector) ? 32 : 16;
    // Engines give the registers of the machine: at least 16.
    case Arch::kWasm32: return Has(Feature::kSimd128) ? 16 : 8;
    case Arch::kNone: return 16;
  }
  TN_UNREACHABLE();
}

int Target::PointerBits() const { return arch_ == Arch::kWasm32 ? 32 : 64; }

bool Target::HasFma() const {
  if (IsDevice()) return true;
  switch (arch_) {
    case Arch::kX86_64: return Has(Feature::kFma);
    case Arch::kAArch64:
    case Arch::kRiscV64: return true;
    case Arch::kWasm32:  // relaxed-simd may round in between
    case Arch::kNone: return false;
  }
  TN_UNREACHABLE();
}

bool operator==(const Target& a, const Target& b) { return a.ToString() == b.ToString(); }

Target::Target() : kind_(Kinds().data()) {}

const DeviceRow& Target::device() const {
  const GpuRow* row = IsDevice() ? FindGpu(*kind_, gpu_.arch) : nullptr;
  const DeviceRow* device = FindDevice(row && !row->device.empty() ? row->device : kind_->device);
  TN_CHECK(device, "kind {} names the device {}", kind_->name, kind_->device);
  return *device;
}

bool Target::Can(Ability ability) const {
  for (const AbilityRow& row : kind_->abilities) {
    if (row.ability == ability) return Offers(row.feature);
  }
  return false;
}

bool Target::CanAs(std::string_view arch, Ability ability) const {
  for (const AbilityRow& row : kind_->abilities) {
    if (row.ability == ability) return row.feature.empty() || ArchOffers(arch, row.feature);
  }
  return false;
}

bool Target::CanInPart(Ability ability) const {
  const std::vector<std::string> archs = Split(gpu_.arch, ',');
  return std::any_of(archs.begin(), archs.end(),
                     [&](const std::string& arch) { return CanAs(arch, ability); });
}

bool Target::Offers(std::string_view feature) const {
  if (feature.empty() || kind_->family == Family::kPlainCpu) return true;
  return IsDevice() ? ArchOffers(gpu_.arch, feature) : Has(feature);
}

std::string Target::ShortName() const {
  const bool named = !kind_->arch_option.empty();
  return named ? gpu_.arch : std::string(kind_->name);
}

bool Target::IsContained() const { return arch_ != Arch::kNone && RowOf(arch_).contained; }

TargetRef::TargetRef(Target target) {
  std::string text = target.ToString();
  shared_ = std::make_shared<const Shared>(Shared{std::move(target), text, text});
}

Expected<TargetRef> TargetRef::Parse(std::string_view text) {
  TN_ASSIGN_OR_RETURN(Target target, Target::Parse(text));
  std::string full = target.ToString();
  TargetRef out;
  out.shared_ =
      std::make_shared<const Shared>(Shared{std::move(target), std::string(text), std::move(full)});
  return out;
}

static const std::string kNoTarget;

const std::string& TargetRef::text() const { return shared_ ? shared_->text : kNoTarget; }

const std::string& TargetRef::FullText() const { return shared_ ? shared_->full : kNoTarget; }

bool operator==(const TargetRef& a, const TargetRef& b) {
  return a.shared_ == b.shared_ || a.FullText() == b.FullText();
}

}  // namespace tenon
