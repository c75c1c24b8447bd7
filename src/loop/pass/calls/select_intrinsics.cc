#include "loop/pass/calls/select_intrinsics.h"

#include <fmt/format.h>

#include "intrin/tile_intrinsic.h"
#include "loop/rewrite.h"
#include "loop/threads.h"
#include "support/check.h"

namespace tenon {

namespace {

bool CanWrite(const TileIntrinsic& row, const Target& target) {
  return row.EmissionFor(target.kind().code_generator) != nullptr && target.Offers(row.feature);
}

// What two functions must have in common: all but where they are used and what was noted of them.
Func Comparable(const PrimFunc& func) {
  PrimFunc fields = func;
  fields.target = {};
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

// What the target lacks for the operation, where another of its kind has it.
std::string Needs(const PrimFunc& func, const Target& target) {
  const TileIntrinsic* row = BuiltinTileIntrinsics().Find(func.name);
  if (!row || row->feature.empty() || target.Offers(row->feature) ||
      row->EmissionFor(target.kind().code_generator) == nullptr) {
    return "";
  }
  return fmt::format(": it needs {0} (target {1} -arch={0})", row->feature, target.kind().name);
}

}  // namespace

Module SelectIntrinsics(const Module& module, const PassContext& context) {
  return MapFuncs(module, [&](const Func& func) {
    const bool selected = context.target != nullptr && IsSelected(*func, *context.target);
    // Said here, where it is clear: what follows would stumble over what is not there.
    if (!selected && context.target != nullptr && context.target->IsDevice() &&
        IsWarpFunction(*func)) {
      context.Error(*func, fmt::format("unsupported: '{}', an operation of a warp that the target "
                                       "does not have{}",
                                       func->name, Needs(*func, *context.target)));
    }
    if (!selected && !func->attrs.Has(kIntrinsicAttr)) return func;
    PrimFunc fields = *func;
    fields.attrs.Erase(kIntrinsicAttr);
    if (selected) fields.attrs.Set(kIntrinsicAttr, func->name);
    return PrimFunc::Make(std::move(fields));
  });
}

}  // namespace tenon
