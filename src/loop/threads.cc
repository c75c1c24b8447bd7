#include "loop/threads.h"

#include <algorithm>
#include <iterator>

#include "ir/visit.h"

namespace tenon {

size_t FirstAxisOf(Level level) {
  if (level == Level::kGrid) return 0;
  const ThreadAxis first =
      level == Level::kCluster ? ThreadAxis::kClusterCtaIdxZ : ThreadAxis::kThreadIdxZ;
  return static_cast<size_t>(first);
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

const char* Name(LaunchOrder order) {
  switch (order) {
    case LaunchOrder::kNone: return "";
    case LaunchOrder::kWait: return "wait";
    case LaunchOrder::kBegin: return "begin";
  }
  return "?";
}

const char* Name(AsyncPart part) {
  switch (part) {
    case AsyncPart::kNone: return "";
    case AsyncPart::kCopy: return "copy";
    case AsyncPart::kCommit: return "commit";
    case AsyncPart::kWait: return "wait";
    case AsyncPart::kInit: return "init";
    case AsyncPart::kBulk: return "bulk";
  }
  return "?";
}

// The value of a function's attribute that is a word of an enum; kNone where it is none.
template <class E>
static E WordOf(const PrimFunc& func, const char* attr, E last) {
  const std::string word = func.attrs.GetString(attr);
  for (int i = 1; i <= static_cast<int>(last); ++i) {
    if (word == Name(static_cast<E>(i))) return static_cast<E>(i);
  }
  return E::kNone;
}

LaunchOrder LaunchOrderOf(const PrimFunc& func) {
  return WordOf(func, kLaunchOrderAttr, LaunchOrder::kBegin);
}

AsyncPart AsyncPartOf(const PrimFunc& func) { return WordOf(func, kAsyncAttr, AsyncPart::kBulk); }

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
