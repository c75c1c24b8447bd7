#include "loop/threads.h"

#include <algorithm>
#include <iterator>

namespace tenon {

namespace {
constexpr std::string_view kAxes[] = {"blockIdx.z",  "blockIdx.y",  "blockIdx.x",
                                      "threadIdx.z", "threadIdx.y", "threadIdx.x"};
}  // namespace

int AxisRank(std::string_view axis) {
  const auto* it = std::find(std::begin(kAxes), std::end(kAxes), axis);
  return it == std::end(kAxes) ? -1 : static_cast<int>(it - std::begin(kAxes));
}

bool IsBlockAxis(std::string_view axis) {
  const int rank = AxisRank(axis);
  return rank >= 0 && rank < 3;
}

bool IsThreadAxis(std::string_view axis) { return AxisRank(axis) >= 3; }

ThreadNest PeelThreads(const PrimFunc& func) {
  ThreadNest nest{{}, func.body};
  while (const auto* loop = As<For>(nest.body)) {
    if (loop->for_kind != ForKind::kThread || AxisRank(loop->thread) < 0) break;
    nest.axes.push_back(loop);
    nest.body = loop->body;
  }
  return nest;
}

}  // namespace tenon
