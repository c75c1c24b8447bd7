#include "driver/code_generators.h"

#include <fmt/format.h>

#include "codegen/cuda/emit.h"
#include "codegen/opencl/emit.h"
#include "support/strings.h"

namespace tenon::driver {

namespace {

constexpr CodeGenerator kRows[] = {
    {"llvm", Makes::kObjects, nullptr},
    {"c", Makes::kSource, nullptr},
    {"cuda", Makes::kDeviceCode, codegen::MakeCudaCode, true},
    {"opencl", Makes::kDeviceCode, codegen::MakeOpenClCode},
};

const CodeGenerator* Find(const TargetKind& kind) {
  for (const CodeGenerator& row : kRows) {
    if (row.name == kind.code_generator) return &row;
  }
  return nullptr;
}

// The kinds that there is code for, as text: "llvm, cuda or opencl".
std::string KindsWith(bool source) {
  std::vector<std::string> names;
  for (const TargetKind& kind : Kinds()) {
    const CodeGenerator* row = Find(kind);
    if (row && (row->makes == Makes::kSource) == source) names.emplace_back(kind.name);
  }
  if (names.size() < 2) return Join(names, ", ");
  const std::string last = names.back();
  names.pop_back();
  return Join(names, ", ") + " or " + last;
}

}  // namespace

const CodeGenerator* CodeGeneratorOf(const Target& target) { return Find(target.kind()); }

bool DoesMake(const Target& target, Makes what) {
  const CodeGenerator* row = CodeGeneratorOf(target);
  return row && row->makes == what;
}

Status CheckBuildable(const Target& target) {
  if (!CodeGeneratorOf(target)) {
    return MakeError(fmt::format("target '{}' cannot be built for yet; use an {} target, or {}",
                                 target.ToString(), KindsWith(false), KindsWith(true)));
  }
  if (target.IsDevice() && !DoesMake(target.Cpu(), Makes::kObjects)) {
    return MakeError(fmt::format("target '{}' has the host '{}'; use an llvm target as host",
                                 target.ToString(), target.Cpu().ToString()));
  }
  return Ok();
}

}  // namespace tenon::driver
