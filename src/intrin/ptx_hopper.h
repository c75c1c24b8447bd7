// Names that passes know the operations of sm_90 by.
#pragma once

#include <cstdint>

namespace tenon {

class TileIntrinsics;
void RegisterPtxHopper(TileIntrinsics* table);

/// Copies by the copy engine, of boxes with so many rows and columns; the type follows.
inline constexpr const char* kBulkCopyRows = "ptx.tma.copy.64x64.";
inline constexpr int64_t kBulkCopySide = 64;
/// Products by the threads of a warpgroup, of 64 rows and 64 steps of k; "256k64.f16" follows, and
/// ".t" where rows in memory of the right factor run along k.
inline constexpr const char* kWarpgroupRows = "ptx.wgmma.m64n";
/// Takes 64 x 32 sums of such a product to where each thread has eight neighbours of a row.
inline constexpr const char* kWarpgroupTurnRow = "ptx.wgmma.turn.m64n32.f32";
inline constexpr int64_t kWarpgroupTurnColumns = 32;
/// Makes a barrier ready.
inline constexpr const char* kBarrierInitRow = "ptx.mbarrier.init";

}  // namespace tenon
