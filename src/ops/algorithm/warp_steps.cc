#include "ops/algorithm/warp_steps.h"

#include <algorithm>
#include <numeric>

#include "intrin/ptx_hopper.h"
#include "intrin/tile_intrinsic.h"

namespace tenon::ops {

namespace {

constexpr int64_t kWarp = 32, kPieceBytes = 16;

}  // namespace

namespace {

// The fastest unit for two operands of a type of which `is` holds.
template <class F>
const ComputeUnit* FastestUnit(const Machine& machine, DType type, F&& is) {
  const ComputeUnit* best = nullptr;
  if (machine.warp != kWarp) return best;
  for (const ComputeUnit& unit : machine.units) {
    if (unit.row.empty() || unit.a != type || unit.b != type || unit.acc != DType::Float(32))
      continue;
    if (is(unit) && (!best || unit.FlopsPerSecond() > best->FlopsPerSecond())) best = &unit;
  }
  return best;
}

}  // namespace

const ComputeUnit* WarpUnit(const Machine& machine, DType type) {
  return FastestUnit(machine, type, [](const ComputeUnit& unit) {
    const TileIntrinsic* row = BuiltinTileIntrinsics().Find(unit.row);
    return row && !row->moves.empty();
  });
}

const ComputeUnit* WarpgroupUnit(const Machine& machine, DType type) {
  return FastestUnit(machine, type,
                     [](const ComputeUnit& unit) { return unit.row.starts_with(kWarpgroupRows); });
}

// Bytes of which the addresses of all that a block reads are multiples.
static int64_t ReadAlign(const Schedule& s, const std::string& block) {
  int64_t align = 64;
  if (const Block* b = FindBlock(s.func(), block)) {
    for (const Region& r : b->reads)
      align = std::gcd(align, std::max(r->buffer->align, r->buffer->dtype.Bytes()));
  }
  return align;
}

void BringPiece(Schedule& s, const std::string& block, DType type, const std::string& part,
                int64_t vector) {
  // Operands of callers may begin anywhere.
  if (vector == kPieceBytes / type.Bytes() && ReadAlign(s, block) % kPieceBytes == 0) {
    for (const char* rows : {kAsyncCopyRows, kAsyncCopyWhereRows}) {
      Schedule tried = s;  // with a condition where there is one
      tried.Tensorize(part, rows + type.ToString());
      if (tried.ok()) {
        s = std::move(tried);
        return;
      }
    }
  }
  s.Vectorize(part);
}

WarpSteps::WarpSteps(Schedule& s, const ComputeUnit& unit, int64_t warps_y, int64_t warps_x)
    : s_(s),
      unit_(unit),
      moves_(BuiltinTileIntrinsics().Find(unit.row)->moves),
      warps_y_(warps_y),
      warps_x_(warps_x) {}

std::string WarpSteps::BindWarps(const std::string& rows, const std::string& columns) const {
  const Names y = s_.Split(rows, {warps_y_, -1});
  const Names x = s_.Split(columns, {warps_x_, -1});
  s_.Reorder({y[0], x[0], y[1], x[1]});
  s_.Bind(y[0], ThreadAxis::kThreadIdxY);
  s_.Bind(x[0], ThreadAxis::kThreadIdxZ);
  s_.Vectorize(x[1]);
  return x[0];
}

std::string WarpSteps::ShareOut(const std::string& outer, const std::string& inner,
                                int64_t vector) const {
  const std::string all = s_.Fuse({outer, inner});
  const Names parts = s_.Split(all, {-1, warps_y_, warps_x_, kWarp, vector});
  s_.Unroll(parts[0]);
  s_.Bind(parts[1], ThreadAxis::kThreadIdxY);
  s_.Bind(parts[2], ThreadAxis::kThreadIdxZ);
  s_.Bind(parts[3], ThreadAxis::kThreadIdxX);
  return vector > 1 ? parts[4] : "";
}

std::string WarpSteps::Fragments(const std::string& product, const std::string& tile,
                                 const std::string& turned) const {
  const std::string buffer = WrittenBuffer(s_, tile);
  s_.SetScope(buffer, Scope::kShared);
  if (turned.empty()) return s_.CacheRead(product, buffer, Scope::kFragment);
  s_.SetScope(WrittenBuffer(s_, turned), Scope::kFragment);
  return turned;
}

void WarpSteps::PadRows(const std::string& tile) const {
  const int64_t piece = kPieceBytes / unit_.a.Bytes();
  s_.StorageAlign(WrittenBuffer(s_, tile), WrittenRank(s_, tile) - 2, 2 * piece, piece);
}

void WarpSteps::BringTile(const std::string& block, int64_t vector) const {
  const Names loops = s_.GetLoops(block);
  if (!s_.ok()) return;
  const std::string part = ShareOut(loops[loops.size() - 2], loops.back(), vector);
  if (!part.empty()) BringPiece(s_, block, unit_.a, part, vector);
}

void WarpSteps::LoadLeft(const std::string& block) const { Load(block, moves_[0], 16, unit_.k); }

void WarpSteps::LoadRight(const std::string& block, bool along_k) const {
  Load(block, moves_.at(along_k ? 1 : 2), unit_.k, 16);
}

void WarpSteps::Load(const std::string& block, const std::string& row, int64_t rows,
                     int64_t columns) const {
  const Names loops = s_.GetLoops(block);
  if (!s_.ok()) return;
  const Names i = s_.Split(loops[loops.size() - 2], {-1, rows});
  const Names j = s_.Split(loops.back(), {-1, columns});
  s_.Reorder({i[0], j[0], i[1], j[1]});
  s_.Tensorize(i[1], row);
  s_.Unroll(i[0]);
  s_.Unroll(j[0]);
}

void WarpSteps::Multiply(const std::string& block) const {
  const Names loops = s_.GetLoops(block);
  if (!s_.ok()) return;
  const size_t n = loops.size();
  s_.Tensorize(loops[n - 3], unit_.row);
  for (size_t l = n - 6; l < n - 3; ++l) s_.Unroll(loops[l]);
}

}  // namespace tenon::ops
