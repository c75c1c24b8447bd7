// Target::Parse and Target::Host.
//
// A string is words: a kind or a preset, then options; -host takes all that follows it. The words
// are read into a table first, where what is written counts before what a preset says, and only
// then resolved, in an order of their own: the triple's architecture, the CPU's row with its
// features and caches, what -mattr adds and takes away, numbers. So the order of options means
// nothing, and what is left is what Target::ToString writes out:
//
//   aws/c5.large -num-cores=2 -mattr=-avx512vnni
//     its preset is            llvm -mcpu=cascadelake -num-cores=1
//     and it is written out as llvm -mcpu=cascadelake -mattr=-avx512vnni -num-cores=2
//   cuda -model=jetson-nano -max_threads_per_block=512
//     is written out as        cuda -arch=sm_53 -max_threads_per_block=512 -host=llvm …
//
// A word that is none of those that may stand there is an error with all of them and the nearest.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "support/strings.h"
#include "target/tables.h"

namespace tenon {

namespace {

constexpr Arch HostArch() {
#if defined(__x86_64__)
  return Arch::kX86_64;
#elif defined(__aarch64__)
  return Arch::kAArch64;
#elif defined(__riscv) && __riscv_xlen == 64
  return Arch::kRiscV64;
#else
  return Arch::kNone;
#endif
}

// Takes the next word off the front of `text`.
std::string_view NextWord(std::string_view* text) {
  *text = Trim(*text);
  const std::string_view word = text->substr(0, text->find_first_of(" \t\n\r\v\f"));
  text->remove_prefix(word.size());
  return word;
}

// "x86_64-linux-gnu" and "x86_64-unknown-linux-gnu" are one target and have one text.
std::string NormalTriple(std::string_view triple) {
  std::vector<std::string> parts = Split(triple, '-');
  if (parts.size() > 1 && parts[1] == "linux") parts.insert(parts.begin() + 1, "unknown");
  return Join(parts, "-");
}

// "sm_90" before "sm_100", and names without a number last.
bool PrecedesAsArch(const std::string& a, const std::string& b) {
  auto key = [](const std::string& s) {
    const size_t digit = s.find_first_of("0123456789");
    const bool suffix = s.starts_with("sm_") && (s.back() < '0' || s.back() > '9');
    return std::make_tuple(digit == std::string::npos, s.substr(0, digit), s.size() - suffix, s);
  };
  return key(a) < key(b);
}

}  // namespace

// One parse: reads the words into options, then resolves them in an order that does not depend on
// theirs.
class TargetParser {
 public:
  explicit TargetParser(std::string_view text) : text_(text) {}

  Expected<Target> Run() {
    TN_RETURN_IF_ERROR(ReadWords(text_));
    switch (target_.kind_->family) {
      case Family::kKnownCpu: TN_RETURN_IF_ERROR(ResolveCpu()); break;
      case Family::kPlainCpu: target_.caches_ = PlainCaches(); break;
      case Family::kDevice: TN_RETURN_IF_ERROR(ResolveDevice()); break;
    }
    if (!target_.IsDevice()) TN_RETURN_IF_ERROR(ResolveNumbers());
    return target_;
  }

  static Target Host() {
    TargetParser parser("llvm");
    parser.SetHost();
    return parser.target_;
  }

 private:
  // The error that `word` is not one of `valid`.
  Diagnostic Unknown(std::string_view what, std::string_view word,
                     std::vector<std::string> valid) const {
    Diagnostic error = MakeError(fmt::format("unknown {} '{}' in target '{}'", what, word, text_));
    const std::string nearest = NearestWord(word, valid);
    if (!nearest.empty()) error.notes.push_back(fmt::format("did you mean '{}'?", nearest));
    error.notes.push_back("valid: " + Join(valid, ", "));
    return error;
  }

  Diagnostic Wrong(std::string_view option, std::string_view expected) const {
    const std::string value = options_.at(std::string(option));
    return MakeError(
        fmt::format("expected {} but got '-{}={}' in target '{}'", expected, option, value, text_));
  }

  std::optional<std::string> Get(std::string_view option) const {
    auto it = options_.find(std::string(option));
    if (it == options_.end()) return std::nullopt;
    return it->second;
  }

  // A kind or a preset, then options.
  Status ReadWords(std::string_view rest) {
    const std::string_view head = NextWord(&rest);
    if (const TargetKind* kind = FindKind(head)) {
      target_.kind_ = kind;
      return ReadOptions(rest);
    }
    for (const PresetRow& preset : PresetRows()) {
      if (head != preset.name) continue;
      TN_RETURN_IF_ERROR(ReadWords(preset.text));
      given_.clear();  // a preset's options may be given again
      return ReadOptions(rest);
    }
    std::vector<std::string> valid;
    for (const TargetKind& kind : Kinds()) valid.emplace_back(kind.name);
    for (const PresetRow& preset : PresetRows()) valid.emplace_back(preset.name);
    return Unknown("kind or preset", head, valid);
  }

  Status ReadOptions(std::string_view rest) {
    while (!(rest = Trim(rest)).empty()) {
      std::string_view value = rest;
      const std::string_view word = NextWord(&rest);
      const size_t equals = word.find('=');
      const std::string_view name = word.substr(0, equals).substr(word.starts_with('-') ? 1 : 0);
      if (!word.starts_with('-') || !IsOption(name)) return UnknownOption(word);
      if (equals == std::string_view::npos || equals + 1 == word.size()) {
        return MakeError(
            fmt::format("expected '-{}=VALUE' but got '{}' in target '{}'", name, word, text_));
      }
      if (name == "host") {
        options_["host"] = value.substr(equals + 1);
        return Ok();
      }
      TN_RETURN_IF_ERROR(SetOption(std::string(name), std::string(word.substr(equals + 1))));
    }
    return Ok();
  }

  bool IsOption(std::string_view name) const {
    const std::vector<std::string> options = Split(target_.kind_->options, ' ');
    return std::find(options.begin(), options.end(), name) != options.end();
  }

  Diagnostic UnknownOption(std::string_view word) const {
    std::vector<std::string> valid = Split(target_.kind_->options, ' ');
    for (std::string& option : valid) option.insert(0, "-");
    return Unknown(fmt::format("option of '{}'", target_.kind_->name),
                   word.substr(0, word.find('=')), valid);
  }

  // What is written counts before what a preset says; lists of attributes add up.
  Status SetOption(const std::string& name, const std::string& value) {
    const bool is_new = name == "mattr" || given_.insert(name).second;
    if (!is_new && in_preset_) return Ok();
    if (!is_new) {
      return MakeError(fmt::format("the option '-{}' is given twice in target '{}'", name, text_));
    }
    if (name == "model") return ReadModel(value);
    std::string& slot = options_[name];
    slot = name == "mattr" && !slot.empty() ? slot + "," + value : value;
    return Ok();
  }

  // -model=NAME stands for the options of the preset NAME, which has to be of the same kind.
  Status ReadModel(std::string_view name) {
    std::vector<std::string> valid;
    for (const PresetRow& preset : PresetRows()) {
      std::string_view rest = preset.text;
      if (NextWord(&rest) != target_.kind_->name) continue;
      if (preset.name == name) return ReadPreset(rest);
      valid.emplace_back(preset.name);
    }
    return Unknown("model", name, valid);
  }

  Status ReadPreset(std::string_view options) {
    const std::set<std::string> own = given_;
    in_preset_ = true;
    TN_RETURN_IF_ERROR(ReadOptions(options));
    in_preset_ = false;
    given_ = own;
    return Ok();
  }

  void SetCpu(const CpuRow& row) {
    target_.arch_ = row.arch;
    target_.cpu_ = row.name;
    target_.triple_ = TripleOf(row);
    target_.features_ = FeaturesOf(row);
    target_.caches_ = row.caches;
  }

  // The richest plain CPU that this machine can do everything of, with this machine's features and
  // caches.
  void SetHost() {
    if (HostArch() == Arch::kNone) return;
    const FeatureSet features = DetectHostFeatures();
    SetCpu(*FindCpu(RowOf(HostArch()).plain_cpu));
    for (std::string_view name : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
      const CpuRow& row = *FindCpu(name);
      if (row.arch == HostArch() && (FeaturesOf(row) & ~features).none()) SetCpu(row);
    }
    target_.features_ = features;
    target_.caches_ = DetectHostCaches(target_.caches_);
  }

  Status ResolveCpu() {
    const std::optional<std::string> triple = Get("mtriple");
    const std::optional<std::string> cpu = Get("mcpu");
    if (!triple && !cpu) {
      SetHost();
    } else {
      TN_RETURN_IF_ERROR(FindCpuRow(triple, cpu));
    }
    return ResolveAttributes();
  }

  Status FindCpuRow(const std::optional<std::string>& triple,
                    const std::optional<std::string>& cpu) {
    const ArchRow* arch = nullptr;
    if (triple) {
      arch = ArchOfTriple(*triple);
      if (!arch) {
        std::vector<std::string> valid;
        for (const ArchRow& row : ArchRows()) valid.emplace_back(row.triple);
        return Unknown("architecture of the triple", *triple, valid);
      }
    }
    const CpuRow* row = FindCpu(cpu ? *cpu : arch->plain_cpu);
    if (!row || (arch && row->arch != arch->arch)) {
      std::vector<std::string> valid;
      for (const CpuRow& r : CpuRows()) {
        if (!arch || r.arch == arch->arch) valid.emplace_back(r.name);
      }
      return Unknown(arch ? fmt::format("CPU of {}", *triple) : "CPU", *cpu, valid);
    }
    SetCpu(*row);
    if (triple) target_.triple_ = NormalTriple(*triple);
    return Ok();
  }

  Status ResolveAttributes() {
    const std::optional<std::string> attributes = Get("mattr");
    if (!attributes) return Ok();
    for (const std::string& word : Split(*attributes, ',')) {
      const char sign = word.empty() ? '\0' : word[0];
      if (sign != '+' && sign != '-') return Wrong("mattr", "a list of +FEATURE and -FEATURE");
      const Feature feature = FindFeature(target_.arch_, word.substr(1));
      if (feature == Feature::kCount) {
        std::vector<std::string> valid;
        for (Feature f : FeaturesOf(target_.arch_)) valid.emplace_back(InfoOf(f).name);
        return Unknown("CPU feature", word.substr(1), valid);
      }
      (sign == '+' ? AddFeature : RemoveFeature)(feature, &target_.features_);
    }
    return Ok();
  }

  Status ResolveNumbers() {
    TN_RETURN_IF_ERROR(ReadNumber("l1-cache", &target_.caches_.l1));
    TN_RETURN_IF_ERROR(ReadNumber("l2-cache", &target_.caches_.l2));
    TN_RETURN_IF_ERROR(ReadNumber("l3-cache", &target_.caches_.l3));
    int64_t cores = target_.cores_;
    TN_RETURN_IF_ERROR(ReadNumber("num-cores", &cores));
    if (cores > 4096) return Wrong("num-cores", "at most 4096 cores");
    target_.cores_ = static_cast<int>(cores);
    return Ok();
  }

  // Several architectures, separated by commas, are named in their order; the limits are those that
  // all of them keep.
  Status FindArchs() {
    const TargetKind& kind = *target_.kind_;
    std::vector<std::string> archs = Split(Get(kind.arch_option).value_or(""), ',');
    std::sort(archs.begin(), archs.end(), PrecedesAsArch);
    archs.erase(std::unique(archs.begin(), archs.end()), archs.end());
    for (const std::string& arch : archs) {
      const GpuRow* row = FindGpu(kind, arch);
      if (!row || (arch.empty() && archs.size() > 1)) {
        std::vector<std::string> valid;
        for (const GpuRow& r : GpuRows()) {
          if (r.kind == kind.name) valid.push_back(r.limits.arch);
        }
        std::sort(valid.begin(), valid.end(), PrecedesAsArch);
        return Unknown("GPU architecture", arch, valid);
      }
      if (archs.size() > 1 && !row->device.empty())
        return Wrong(kind.arch_option, "an architecture of a GPU beside others");
      GpuLimits& gpu = target_.gpu_;
      if (gpu.arch.empty()) {
        gpu = row->limits;
        continue;
      }
      auto least = [](int64_t* mine, int64_t other) { *mine = std::min(*mine, other); };
      gpu.arch += "," + arch;
      least(&gpu.max_threads_per_block, row->limits.max_threads_per_block);
      least(&gpu.max_shared_memory_per_block, row->limits.max_shared_memory_per_block);
      least(&gpu.registers_per_block, row->limits.registers_per_block);
    }
    return Ok();
  }

  Status ResolveDevice() {
    target_.gpu_ = {};
    TN_RETURN_IF_ERROR(FindArchs());
    GpuLimits& gpu = target_.gpu_;
    TN_RETURN_IF_ERROR(ReadNumber("max_threads_per_block", &gpu.max_threads_per_block));
    TN_RETURN_IF_ERROR(ReadNumber("max_shared_memory_per_block", &gpu.max_shared_memory_per_block));
    TN_RETURN_IF_ERROR(ReadNumber("registers_per_block", &gpu.registers_per_block));
    TN_RETURN_IF_ERROR(ReadNumber("thread_warp_size", &gpu.thread_warp_size));
    TN_ASSIGN_OR_RETURN(Target host, Target::Parse(Get("host").value_or("llvm")));
    if (host.IsDevice()) return Wrong("host", "a CPU target as host");
    target_.host_ = std::make_shared<const Target>(std::move(host));
    return Ok();
  }

  // A positive count, with K or M for its multiples of 1024; leaves *out alone where the option is
  // not given.
  Status ReadNumber(std::string_view option, int64_t* out) {
    const std::optional<std::string> text = Get(option);
    if (!text) return Ok();
    int64_t value = 0;
    const char* end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data(), end, value);
    const std::string_view unit(stop, static_cast<size_t>(end - stop));
    const int shift = unit == "K" ? 10 : unit == "M" ? 20 : 0;
    constexpr int64_t kLimit = int64_t{1} << 40;
    if (error != std::errc() || (shift == 0 && !unit.empty()) || value < 1 ||
        value > kLimit >> shift) {
      return Wrong(option, "a number of at least 1, or one followed by K or M, up to 1048576M,");
    }
    *out = value << shift;
    return Ok();
  }

  std::string text_;
  Target target_;
  std::map<std::string, std::string> options_;
  std::set<std::string> given_;  // options that the text has, not those of its preset
  bool in_preset_ = false;
};

Expected<Target> Target::Parse(std::string_view text) { return TargetParser(text).Run(); }

Target Target::Host() { return TargetParser::Host(); }

}  // namespace tenon
