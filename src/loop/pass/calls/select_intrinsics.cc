#include "loop/pass/calls/select_intrinsics.h"

#include "intrin/tile_intrinsic.h"
#include "loop/pass/rewrite.h"
#include "support/check.h"

namespace tenon {

namespace {

// A name with a letter at its end is of units that later generations do not have.
bool HasUnit(const std::string& arch, const std::string& feature) {
  const bool alone = !feature.empty() && feature.back() == 'a';
  if (alone && arch != "null") return arch == feature;
  return GpuGeneration(arch) >= GpuGeneration(feature);
}

bool CanWrite(const TileIntrinsic& row, const Target& target) {
  switch (target.kind()) {
    case TargetKind::kLlvm:
      return row.EmissionOf(Emission::Kind::kLlvm) != nullptr && target.Has(row.feature);
    case TargetKind::kC: return row.EmissionOf(Emission::Kind::kC) != nullptr;
    case TargetKind::kCuda:
      return row.EmissionOf(Emission::Kind::kCuda) != nullptr &&
             HasUnit(target.gpu().arch, row.feature);
    case TargetKind::kOpenCl:
    case TargetKind::kRocm: return false;
  }
  TN_UNREACHABLE();
}

// What two functions must have in common: all but where they are used and what was noted of them.
Func Comparable(const PrimFunc& func) {
  PrimFunc fields = func;
  fields.target.clear();
  fields.attrs = {};
  return PrimFunc::Make(std::move(fields));
}

bool IsSelected(const PrimFunc& func, const Target& target) {
  if (func.func_kind != FuncKind::kDevice) return false;
  const TileIntrinsic* row = BuiltinTileIntrinsics().Find(func.name);
  if (row == nullptr || !CanWrite(*row, target)) return false;
  Expected<Func> meaning = MeaningOf(*row);
  TN_CHECK(meaning, "{}", ToString(meaning.errors()));
  return StructuralEqual(Comparable(func), Comparable(**meaning));
}

}  // namespace

Module SelectIntrinsics(const Module& module, const PassContext& context) {
  return MapFuncs(module, [&](const Func& func) {
    const bool selected = context.target != nullptr && IsSelected(*func, *context.target);
    if (!selected && !func->attrs.Has(kIntrinsicAttr)) return func;
    PrimFunc fields = *func;
    fields.attrs.Erase(kIntrinsicAttr);
    if (selected) fields.attrs.Set(kIntrinsicAttr, func->name);
    return PrimFunc::Make(std::move(fields));
  });
}

}  // namespace tenon
