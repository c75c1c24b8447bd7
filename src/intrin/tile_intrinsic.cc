#include "intrin/tile_intrinsic.h"

#include "loop/parse.h"
#include "support/check.h"

namespace tenon {

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
    return t;
  }();
  return table;
}

Expected<Func> MeaningOf(const TileIntrinsic& intrinsic) {
  return ParseFunc(intrinsic.meaning, std::string("meaning of ") + intrinsic.name);
}

}  // namespace tenon
