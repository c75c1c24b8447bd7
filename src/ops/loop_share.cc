#include "ops/loop_share.h"

#include <algorithm>

#include "graph/dims.h"
#include "ir/visit.h"

namespace tenon::ops {

namespace {

// What a thread may have in registers, and may compute in an iteration.
constexpr int64_t kMostElements = 64, kMostSteps = 1024;
// An iteration is written out: of 6,060 nodes NVRTC makes machine code in 34 s, and PoCL takes as
// long. A selective scan has 416, a product with a matrix of 19 x 19 1,102.
constexpr int64_t kMostNodes = 2560;
// Of iterations that are one piece of code.
constexpr int64_t kMostTogether = 8, kMostStepsTogether = 512;

// How many elements a thread has of a tensor, where that is known.
std::optional<int64_t> ElementsOfThread(const std::vector<Expr>& shape, int axis,
                                        int lane = kNoAxis) {
  int64_t count = 1;
  for (size_t a = 0; a < shape.size(); ++a) {
    if (static_cast<int>(a) == axis || static_cast<int>(a) == lane) continue;
    const auto size = AsInt(shape[a]);
    if (!size || *size > kMostSteps) return std::nullopt;
    count = std::min(count * *size, kMostSteps + 1);
  }
  return count;
}

constexpr int64_t kTooMany = kMostSteps + 1;

/// What a thread has, and does in an iteration: elements, and the nodes that these are made of;
/// kTooMany where that is no number, or more.
struct OwnShare {
  int64_t elements = 0, work = 0, rows = 0, nodes = 0;
};

// How many nodes an element is made of, but for indices.
int64_t NodesOf(const Expr& value) {
  int64_t count = 0;
  PreOrder(value, [&](const NodeRef& n) {
    ++count;
    return !IsA<Load>(n);
  });
  return count;
}

OwnShare OwnOf(const LoopBody& body) {
  OwnShare own;
  const auto add = [&](const std::vector<Expr>& shape, int axis, int lane) {
    const int64_t each = ElementsOfThread(shape, axis, lane).value_or(kTooMany);
    own.elements += each;
    return each;
  };
  for (size_t k = 0; k < body.states().size(); ++k)
    add(body.states()[k]->shape, body.state_axis(k), body.state_lane(k));
  for (const LoopStep& s : body.steps()) {
    int64_t each = add(s.full->shape, s.axis, s.lane);
    for (const te::Axis& r : s.reduce) {
      if (r.var != s.meets) each *= AsInt(r.extent).value_or(kTooMany);
    }
    own.work += each;
    own.nodes += std::min(each, kTooMany) * NodesOf(s.value);
  }
  for (const CollectedRow& r : body.rows())
    own.rows += ElementsOfThread(r.shape, r.axis).value_or(kTooMany);
  own.work += own.rows;
  return own;
}

bool IsLittle(const LoopBody& body) {
  const OwnShare own = OwnOf(body);
  return own.elements <= 4 * kMostElements && own.work <= kMostSteps && own.nodes <= kMostNodes;
}

}  // namespace

int64_t IterationsTogether(const LoopBody& body) {
  const OwnShare own = OwnOf(body);
  const int64_t fit = std::min(kMostElements / std::max<int64_t>(own.rows, 1),
                               kMostStepsTogether / std::max<int64_t>(own.work, 1));
  return std::clamp<int64_t>(fit, 1, kMostTogether);
}

bool ChooseAxis(const graph::Graph& g, LoopBody* body) {
  if (body->states().empty()) return false;
  const std::vector<Expr>& shape = body->states()[0]->shape;
  std::vector<std::pair<int64_t, int>> axes;
  for (size_t a = 0; a < shape.size(); ++a) {
    // One place is none that could be told from others.
    if (!IsOne(shape[a])) axes.emplace_back(-graph::TypicalSize(g, shape[a]), static_cast<int>(a));
  }
  std::sort(axes.begin(), axes.end());
  axes.emplace_back(0, kNoAxis);
  return std::any_of(axes.begin(), axes.end(), [&](const auto& axis) {
    return body->FindAxes(axis.second) && IsLittle(*body);
  });
}

}  // namespace tenon::ops
