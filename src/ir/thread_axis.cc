#include "ir/thread_axis.h"

namespace tenon {

namespace {
constexpr ThreadAxisInfo kAxes[] = {
#define TN_THREAD_AXIS(enumerator, word, level, dim) \
  {ThreadAxis::enumerator, word, AxisLevel::level, dim},
#include "ir/thread_axes.def"
#undef TN_THREAD_AXIS
    {ThreadAxis::kNone, "", AxisLevel::kNone, 0},
};
}  // namespace

const ThreadAxisInfo& Info(ThreadAxis axis) { return kAxes[static_cast<size_t>(axis)]; }

const char* Name(ThreadAxis axis) { return Info(axis).word; }

std::optional<ThreadAxis> ThreadAxisOf(std::string_view word) {
  if (word == "vthread.x" || word == "vthread.y" || word == "vthread.z")
    return ThreadAxis::kVThread;
  for (const ThreadAxisInfo& row : kAxes) {
    if (row.axis != ThreadAxis::kNone && word == row.word) return row.axis;
  }
  return std::nullopt;
}

std::string ThreadAxisWords() {
  std::string words;
  for (const ThreadAxisInfo& row : kAxes) {
    if (row.axis == ThreadAxis::kNone) continue;
    words += (words.empty() ? "" : ", ") + std::string(row.word);
  }
  return words;
}

}  // namespace tenon
