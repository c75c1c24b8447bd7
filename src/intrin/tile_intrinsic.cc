#include "intrin/tile_intrinsic.h"

#include "intrin/ptx_hopper.h"
#include "loop/parse.h"
#include "support/check.h"

namespace tenon {

const Emission* TileIntrinsic::EmissionOf(Emission::Kind kind) const {
  for (const Emission& e : emissions) {
    if (e.kind == kind) return &e;
  }
  return nullptr;
}

const Emission* TileIntrinsic::EmissionFor(std::string_view code_generator) const {
  struct Row {
    std::string_view code_generator;
    Emission::Kind kind;
  };
  static constexpr Row kRows[] = {
      {"llvm", Emission::Kind::kLlvm}, {"c", Emission::Kind::kC}, {"cuda", Emission::Kind::kCuda}};
  for (const Row& row : kRows) {
    if (row.code_generator == code_generator) return EmissionOf(row.kind);
  }
  return nullptr;
}

void TileIntrinsics::Add(TileIntrinsic row) {
  TN_CHECK(!Find(row.name), "tile intrinsic {} is registered twice", row.name);
  rows_.push_back(std::move(row));
}

const TileIntrinsic* TileIntrinsics::Find(std::string_view name) const {
  for (const TileIntrinsic& row : rows_) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

const TileIntrinsics& BuiltinTileIntrinsics() {
  static const TileIntrinsics table = [] {
    TileIntrinsics t;
    RegisterX86Vnni(&t);
    RegisterX86Bf16(&t);
    RegisterX86Amx(&t);
    RegisterPtxMma(&t);
    RegisterPtxWmma(&t);
    RegisterPtxAsync(&t);
    RegisterPtxQuad(&t);
    RegisterPtxLaunch(&t);
    RegisterPtxHopper(&t);
    return t;
  }();
  return table;
}

Expected<Func> MeaningOf(const TileIntrinsic& intrinsic) {
  return ParseFunc(intrinsic.meaning, "meaning of " + intrinsic.name);
}

Expected<Func> PatternOf(const TileIntrinsic& intrinsic) {
  if (intrinsic.pattern.empty()) return MeaningOf(intrinsic);
  return ParseFunc(intrinsic.pattern, "pattern of " + intrinsic.name);
}

const TileIntrinsic* IntrinsicOf(const PrimFunc& func) {
  const std::string name = func.attrs.Get<std::string>(kIntrinsicAttr, "");
  return name.empty() ? nullptr : BuiltinTileIntrinsics().Find(name);
}

}  // namespace tenon
