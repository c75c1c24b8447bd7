// One loop IR module → one file of CUDA C++.
#include "codegen/cuda/emit.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/cuda/language.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/gpu/file.h"
#include "loop/aligned_form.h"
#include "support/strings.h"
#include "support/thread_pool.h"

namespace tenon::codegen {

Expected<std::string> EmitCuda(const Module& module, const Target& target,
                               const EmitOptions& options) {
  if (target.kind().code_generator != "cuda")
    return MakeError("CUDA code is made for a cuda target but got '" + target.ToString() + "'");
  return GpuFile(module, target, options, CudaCpp()).Emit();
}

namespace {

// That of an architecture's own features ("sm_90a") serves no other.
bool IsPortable(const std::string& arch) { return !arch.ends_with('a') && !arch.ends_with('f'); }

// What the source says of waiting is left out where it is compiled for an older architecture
// (ptx_launch.cc), also in PTX that a later device takes.
bool MayOverlap(const std::string& arch, const Target& target) {
  return target.CanAs(arch, Ability::kDependentLaunches);
}

// The source of some kernels and their other forms.
Expected<std::string> SourceOf(const KernelPart& part, const Module& kernels,
                               const Target& target) {
  EmitOptions options;
  for (const std::string& name : part) {
    options.functions.push_back(name);
    const auto aligned = kernels.Find(name)->attrs.Get<std::string>(kAlignedFormAttr, "");
    if (!aligned.empty()) options.functions.push_back(aligned);
  }
  return EmitCuda(kernels, target, options);
}

// One file of NVRTC's, and what comes of it.
struct Unit {
  size_t part = 0;
  std::string arch;
  CudaCode code;
  Diagnostics errors;
};

Status CompileUnits(const std::vector<std::string>& sources, const DeviceCodeOptions& options,
                    std::vector<Unit>* units) {
  // What takes longest begins first.
  std::vector<Unit*> order;
  for (Unit& unit : *units) order.push_back(&unit);
  std::stable_sort(order.begin(), order.end(), [&](const Unit* a, const Unit* b) {
    return sources[a->part].size() > sources[b->part].size();
  });
  ParallelFor(static_cast<int64_t>(order.size()), options.jobs, [&](int64_t i) {
    Unit& unit = *order[static_cast<size_t>(i)];
    auto code = CompileCudaBoth(sources[unit.part], "kernels.cu", unit.arch, options.cache);
    if (code) {
      unit.code = std::move(*code);
    } else {
      unit.errors = std::move(code.errors());
    }
  });
  for (Unit& unit : *units) {
    if (!unit.errors.empty()) return std::move(unit.errors);
  }
  return Ok();
}

// The name of a part's file, by its suffix.
std::string FileOf(const std::string& form, size_t part, size_t parts) {
  return parts == 1 ? form : fmt::format("{}.{}", part, form);
}

// What comes of the units, which stand by architecture: images, the highest architecture first, and
// at the end, for later ones, the PTX of the highest that has no units of its own.
void AddCode(std::vector<Unit> units, size_t parts, const Target& target, DeviceCode* out) {
  DeviceImage later;
  for (Unit& unit : units) {
    const bool first = unit.part == 0, portable = IsPortable(unit.arch);
    const bool overlaps = MayOverlap(unit.arch, target);
    if (first) out->images.push_back({"cubin for " + unit.arch, {}, overlaps});
    if (first && portable) later = {"PTX for " + unit.arch, {}, overlaps};
    out->images.back().parts.push_back(unit.code.cubin);
    if (portable) later.parts.push_back(unit.code.ptx + '\0');
    out->log += unit.code.log;
    out->files[FileOf("cubin", unit.part, parts)] = std::move(unit.code.cubin);
    std::string& ptx = out->files[FileOf("ptx", unit.part, parts)];
    if (portable || ptx.empty()) ptx = std::move(unit.code.ptx);
  }
  std::reverse(out->images.begin(), out->images.end());
  if (!later.parts.empty()) out->images.push_back(std::move(later));
}

}  // namespace

Expected<DeviceCode> MakeCudaCode(const Module& kernels, const Target& target,
                                  const DeviceCodeOptions& options) {
  DeviceCode out;
  TN_ASSIGN_OR_RETURN(out.source, EmitCuda(kernels, target, {}));
  out.files["cu"] = out.source;
  if (target.device().name != target.kind().device) {  // the null device
    out.images.push_back({"source", {out.source}, true});
    return out;
  }
  const std::vector<std::string> archs = Split(target.gpu().arch, ',');
  for (const std::string& arch : archs) {
    if (const Status can = CanCompileFor(arch); !can) {
      out.missing = can.errors();
      return out;
    }
  }
  std::vector<std::string> sources = {out.source};
  if (options.parts.size() > 1) {
    out.parts = options.parts;
    sources.clear();
    for (const KernelPart& part : out.parts) {
      TN_ASSIGN_OR_RETURN(sources.emplace_back(), SourceOf(part, kernels, target));
    }
  }
  std::vector<Unit> units;
  for (const std::string& arch : archs) {
    for (size_t part = 0; part < sources.size(); ++part) units.push_back({part, arch, {}, {}});
  }
  TN_RETURN_IF_ERROR(CompileUnits(sources, options, &units));
  AddCode(std::move(units), sources.size(), target, &out);
  return out;
}

}  // namespace tenon::codegen
