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

std::string AsyncPart(const PrimFunc& func) { return func.attrs.Get<std::string>(kAsyncAttr, ""); }

int64_t AsyncGroups(const PrimFunc& func) {
  int64_t groups = 0;
  const size_t digits = func.name.find_last_not_of("0123456789") + 1;
  for (char c : std::string_view(func.name).substr(digits)) groups = groups * 10 + (c - '0');
  return groups;
}

bool IsWarpFunction(const PrimFunc& func) {
  return func.func_kind == FuncKind::kDevice &&
         std::any_of(func.buffers.begin(), func.buffers.end(),
                     [](const Buffer& b) { return IsFragment(*b); });
}

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
