// Thread axes as a type: what the iterations of a loop over threads are (the table is
// thread_axes.def).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

/// The order of the enumerators is that of loops in a nest, outermost first.
enum class ThreadAxis : uint8_t {
#define TN_THREAD_AXIS(enumerator, word, level, dim) enumerator,
#include "ir/thread_axes.def"
#undef TN_THREAD_AXIS
  kNone,  // of a loop that is not over threads
};

/// What differs along an axis.
enum class AxisLevel : uint8_t { kBlock, kCluster, kThread, kVirtual, kNone };

struct ThreadAxisInfo {
  ThreadAxis axis;
  const char* word;
  AxisLevel level;
  int dim;  // 0, 1, 2: x, y, z
};

/// The axis's row; kNone has an empty word.
const ThreadAxisInfo& Info(ThreadAxis axis);
/// Its word in texts; "" of kNone.
const char* Name(ThreadAxis axis);
/// The axis that a text calls so; nothing for any other word. vthread.x, .y and .z are other names
/// of vthread.
std::optional<ThreadAxis> ThreadAxisOf(std::string_view word);
/// "blockIdx.z, blockIdx.y, …": all words.
std::string ThreadAxisWords();

/// Axes that tell blocks apart (clusterCtaIdx too: the place of a block in its cluster), the latter
/// alone, and those that tell threads of a block apart.
inline bool IsBlockAxis(ThreadAxis axis) {
  return Info(axis).level == AxisLevel::kBlock || Info(axis).level == AxisLevel::kCluster;
}
inline bool IsClusterAxis(ThreadAxis axis) { return Info(axis).level == AxisLevel::kCluster; }
inline bool IsThreadAxis(ThreadAxis axis) { return Info(axis).level == AxisLevel::kThread; }

/// The axes of a launch, each with its place in a nest, from 0.
inline constexpr size_t kNumAxes = static_cast<size_t>(ThreadAxis::kVThread);
/// That place; -1 for axes of no launch.
inline int AxisRank(ThreadAxis axis) {
  return axis < ThreadAxis::kVThread ? static_cast<int>(axis) : -1;
}
/// The axis with this place.
inline ThreadAxis AxisAt(size_t rank) { return static_cast<ThreadAxis>(rank); }

}  // namespace tenon
