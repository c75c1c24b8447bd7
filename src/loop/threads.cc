#include "loop/threads.h"

#include <algorithm>
#include <iterator>

#include "ir/visit.h"

namespace tenon {

namespace {
constexpr std::string_view kAxes[] = {"blockIdx.z",      "blockIdx.y",      "blockIdx.x",
                                      "clusterCtaIdx.z", "clusterCtaIdx.y", "clusterCtaIdx.x",
                                      "threadIdx.z",     "threadIdx.y",     "threadIdx.x"};
constexpr int kFirstInCluster = 3, kFirstInBlock = 6;
static_assert(std::size(kAxes) == kNumAxes);
}  // namespace

int AxisRank(std::string_view axis) {
  const auto* it = std::find(std::begin(kAxes), std::end(kAxes), axis);
  return it == std::end(kAxes) ? -1 : static_cast<int>(it - std::begin(kAxes));
}

bool IsBlockAxis(std::string_view axis) {
  const int rank = AxisRank(axis);
  return rank >= 0 && rank < kFirstInBlock;
}

bool IsClusterAxis(std::string_view axis) {
  return IsBlockAxis(axis) && AxisRank(axis) >= kFirstInCluster;
}

bool IsThreadAxis(std::string_view axis) { return AxisRank(axis) >= kFirstInBlock; }

std::string AxisName(size_t rank) { return std::string(kAxes[rank]); }

size_t FirstAxisOf(Level level) {
  if (level == Level::kGrid) return 0;
  return level == Level::kCluster ? kFirstInCluster : kFirstInBlock;
}

// A pragma's value is a text.
static bool IsAsked(const Attrs& attrs, const char* name) {
  const AttrValue* value = attrs.Find(name);
  if (!value) return false;
  if (const auto* flag = std::get_if<bool>(value)) return *flag;
  if (const auto* number = std::get_if<int64_t>(value)) return *number != 0;
  const auto* text = std::get_if<std::string>(value);
  return !text || (*text != "0" && *text != "False" && *text != "false");
}

std::string AskedBy(const Stmt& body, const char* attr) {
  std::string by;
  PreOrder(body, [&](const NodeRef& n) {
    const auto* loop = As<For>(n);
    const auto* block = As<Block>(n);
    if (by.empty() && loop && IsAsked(loop->attrs, attr)) by = "loop '" + loop->var->name + "'";
    if (by.empty() && block && IsAsked(block->attrs, attr)) by = "block '" + block->name + "'";
    return by.empty() && !IsA<ExprNode>(n);
  });
  return by;
}

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
