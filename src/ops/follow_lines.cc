#include "ops/follow_lines.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "arith/analyzer.h"
#include "dependence/body.h"
#include "ir/visit.h"

namespace tenon::ops {

namespace {

constexpr int64_t kLineBytes = 64;

// How far apart in memory a load's elements are for neighbours along the loop, where all other
// loops begin; nullopt where that is no number.
std::optional<int64_t> StepAlong(const Load& load, const VarMap& bound,
                                 const std::vector<Var>& loops, const Var& loop) {
  const Buffer& buffer = load.buffer;
  if (!buffer->strides.empty()) return std::nullopt;
  std::vector<Expr> indices;
  for (const Expr& i : load.indices) indices.push_back(WithoutClamps(Substitute(i, bound)));
  const Expr place = Linearize(ApplyLayout(buffer->layout, indices),
                               StorageExtents(buffer->shape, buffer->layout));
  VarMap first, second;
  for (const Var& v : loops) {
    first[v.get()] = IndexConst(0);
    second[v.get()] = IndexConst(v == loop ? 1 : 0);
  }
  return AsInt(Simplify(Substitute(place, second) - Substitute(place, first)));
}

// The loop, other than `vector`, whose neighbours lie side by side where the block reads what is
// far apart along `vector`; "" where there is none.
std::string TurnedLoop(const Schedule& s, const std::string& block, const std::string& vector) {
  const Block* found = FindBlock(s.func(), block);
  const VarMap bound = BindingsOf(*found);
  std::vector<Var> loops;
  for (const IterVar& v : found->iters) {
    PreOrder(v->binding, [&](const NodeRef& n) {
      if (IsA<VarNode>(n)) loops.push_back(Cast<VarNode>(n));
      return true;
    });
  }
  const auto lanes =
      std::find_if(loops.begin(), loops.end(), [&](const Var& v) { return v->name == vector; });
  std::string turned;
  PreOrder(found->body, [&](const NodeRef& n) {
    const auto* load = As<Load>(n);
    if (!load || lanes == loops.end() || !turned.empty()) return turned.empty();
    const std::optional<int64_t> across = StepAlong(*load, bound, loops, *lanes);
    if (across == 0 || across == 1) return true;
    for (const Var& v : loops) {
      if (v != *lanes && StepAlong(*load, bound, loops, v) == 1) turned = v->name;
    }
    return true;
  });
  return turned;
}

}  // namespace

void FollowLines(Schedule& s, const std::string& block, const std::string& vector, Names* outer) {
  const int64_t line = kLineBytes / WrittenType(s, block).Bytes();
  const std::string turned = TurnedLoop(s, block, vector);
  const auto at = std::find(outer->begin(), outer->end(), turned);
  if (at == outer->end() || at + 1 == outer->end()) return;
  const Names behind(at + 1, outer->end());
  if (const int64_t extent = s.GetExtent(turned); extent >= 0 && extent <= line) {
    outer->erase(at);
    outer->push_back(turned);
    return;
  }
  const Names split = s.Split(turned, {-1, line});
  const int64_t own = TypicalTripsTogether(s, {split[0]}), others = TypicalTripsTogether(s, behind);
  *at = split[0];
  if (own < others) {
    outer->erase(at);
    outer->push_back(split[0]);
  }
  outer->push_back(split[1]);
}

}  // namespace tenon::ops
