// Do two accesses touch one element from different threads?
//
// Iterations of one loop over an axis are independent: that is what binding it promises. Threads
// can therefore only meet between two loops over the same axis, or between the same loop in two
// iterations of one around it, and the question is whether equal elements mean equal threads. It is
// answered from the indices: if the thread's number can be read off the element's number by
// division and remainder in both accesses, in the same way, no barrier is needed (IndexTells).
//
//   alloc S: f32[64] in shared
//   for t in 0..64 thread threadIdx.x { S[t] = A[t] }
//   for u in 0..64 thread threadIdx.x { C[u] = S[u] }       the element tells the thread: none
//   for w in 0..64 thread threadIdx.x { D[w] = S[63 - w] }  it does not: `sync cta` before it
//
// Against the promise stand two facts. An atomic access says that others touch the element. And two
// numbers of iterations, m and n, may be found for which one access in m meets the other in n: a
// promise of independence does not hold against that (Cross). One element written by all
// iterations, each with a value of its own, no barrier can help (Races).
//
// Everything unknown counts as touching: an access without indices is one of any element.

#include "loop/pass/threads/sync_analysis.h"

#include <algorithm>

#include "dependence/access.h"
#include "dependence/element.h"
#include "dependence/strides.h"
#include "loop/rewrite.h"

namespace tenon {

namespace {

const auto kLaneRank = static_cast<size_t>(AxisRank(kLaneAxis));

constexpr int64_t kMostTried = 1024;  // iterations
constexpr int64_t kFar = int64_t{1} << 40;

// Those along which threads differ that meet at this level, and not below.
std::pair<size_t, size_t> AxesOf(size_t level) {
  const size_t end = level == 0 ? kNumAxes : FirstAxisOf(kSyncLevels[level - 1]);
  return {FirstAxisOf(kSyncLevels[level]), end};
}

// Whether the first thread along the axis alone makes the access.
bool IsOfFirst(const SyncAccess& a, size_t axis) {
  const For* loop = a.binders[axis].loop;
  return loop ? IsZero(loop->min) && IsOne(loop->extent) : a.solo;
}

}  // namespace

SyncAnalysis::SyncAnalysis(const PrimFunc& func, const Module& module, const AxisExtents& extents,
                           const Stmt& body)
    : module_(module), extents_(extents), body_(body) {
  Learn(func, &analyzer);
  for (const auto* list : {&func.dims, &func.scalars}) {
    for (const Var& v : *list) dims_.insert(v.get());
  }
  written_ = AccessesOf(body, module_, [](const Buffer&) { return true; }).writes;
  PreOrder(body, [&](const NodeRef& n) {
    const auto* call = As<CallFunc>(n);
    if (const Func callee = call ? module_.Find(call->callee) : nullptr;
        callee && AsyncPartOf(*callee) == AsyncPart::kCopy)
      copied_.push_back(call->buffers.back()->buffer);
    return !IsA<ExprNode>(n);
  });
}

// ---- accesses ----

AccessList SyncAnalysis::Collect(const NodeRef& node) {
  AccessList out;
  auto add = [&](const Buffer& b, std::vector<Expr> indices, bool write, bool atomic = false) {
    if (written_.count(b.get()) != 0) out.push_back(At(b, std::move(indices), write, atomic));
  };
  PreOrder(node, [&](const NodeRef& n) {
    if (const auto* s = As<Load>(n)) add(s->buffer, s->indices, false);
    if (const auto* s = As<Store>(n)) {
      add(s->buffer, s->indices, true);
      if (IsWritten(s->buffer)) out.back().value = s->value;
    }
    if (const auto* s = As<Atomic>(n)) add(s->buffer, s->indices, true, true);
    if (IsA<Copy>(n) || IsA<CallFunc>(n) || IsA<Call>(n)) {
      AddUnknown(n, &out);
      return IsA<Call>(n);
    }
    return true;
  });
  const bool visible = std::any_of(out.begin(), out.end(), [](const SyncAccess& a) {
    return a.write && !IsThreadPrivate(*a.buffer);
  });
  for (SyncAccess& a : out) {
    a.solo = visible && !IsA<ExprNode>(node);
    a.conditions = conditions;
  }
  all.insert(all.end(), out.begin(), out.end());
  return out;
}

// Whole buffers that a copy or a callee touches, or whose address is taken.
void SyncAnalysis::AddUnknown(const NodeRef& node, AccessList* out) {
  const Accesses found = AccessesOf(node, module_, [](const Buffer&) { return true; });
  const auto* call = As<Call>(node);
  if (call && call->intrinsic != Intrinsic::kBufferData) return;
  auto regions = [&](const std::vector<Region>& list) {
    for (const Region& r : list) {
      if (written_.count(r->buffer.get()) == 0) continue;
      out->push_back(At(r->buffer, {}, found.writes.count(r->buffer.get()) != 0, false));
      out->back().fixed.clear();
      for (const Range& range : r->ranges)
        out->back().fixed.push_back(IsOne(range->extent) ? range->min : nullptr);
      out->back().indices = AnyOf(*r);
    }
  };
  if (const auto* s = As<CallFunc>(node)) {
    const Func callee = module_.Find(s->callee);
    const bool waits = callee && AsyncPartOf(*callee) == AsyncPart::kWait;
    for (size_t i = 0; waits && i < copied_.size(); ++i) {
      out->push_back(At(copied_[i], {}, false, false));
      out->back().arrival = true;
    }
  }
  if (const auto* s = As<Copy>(node)) regions({s->dst, s->src});
  if (const auto* s = As<CallFunc>(node)) regions(s->buffers);
  if (call) {
    if (const auto* load = As<Load>(call->args[0]))
      out->push_back(At(load->buffer, {}, true, false));
  }
}

// The indices of any element of a box of constant size; empty for others.
std::vector<Expr> SyncAnalysis::AnyOf(const RegionNode& region) {
  std::vector<Expr> out;
  for (const Range& range : region.ranges) {
    const auto extent = AsInt(analyzer.Simplify(range->extent));
    if (!extent) return {};
    Var any = VarNode::Make("any", DType::Index());
    analyzer.Bind(any, IndexConst(0), range->extent);
    out.push_back(*extent == 1 ? range->min : range->min + any);
  }
  return out;
}

// ---- dependence ----

bool SyncAnalysis::MadeInside(const Buffer& buffer, const Binder& binder) const {
  auto it = alloc_depth.find(buffer.get());
  return it != alloc_depth.end() && it->second > binder.depth;
}

bool SyncAnalysis::MadeOnce(const Buffer& buffer, size_t axis, const Binder& binder) {
  return IsOneFor(*buffer, axis) && (MadeInside(buffer, binder) || IsOwnOf(*binder.loop, buffer));
}

// True for memory made here that is used in that loop alone.
bool SyncAnalysis::IsOwnOf(const For& loop, const Buffer& buffer) {
  auto [it, fresh] = used_outside_.try_emplace(&loop);
  if (fresh) {
    PreOrder(body_, [&, outside = &it->second](const NodeRef& n) {
      if (const auto* s = As<Store>(n)) outside->insert(s->buffer.get());
      if (const auto* s = As<Load>(n)) outside->insert(s->buffer.get());
      if (const auto* s = As<Atomic>(n)) outside->insert(s->buffer.get());
      if (const auto* s = As<RegionNode>(n)) outside->insert(s->buffer.get());
      return n.get() != &loop;
    });
  }
  return alloc_depth.count(buffer.get()) != 0 && it->second.count(buffer.get()) == 0;
}

bool SyncAnalysis::SameThread(const SyncAccess& a, const SyncAccess& b, size_t axis, size_t depth) {
  // Which lane has an element is said by its layout, and the same everywhere.
  if (!Matters(axis) || (axis == kLaneRank && IsFragment(*a.buffer))) return true;
  const Binder &x = a.binders[axis], &y = b.binders[axis];
  if (IsOfFirst(a, axis) && IsOfFirst(b, axis)) return true;
  if (!x.loop && !y.loop) return IsThreadPrivate(*a.buffer) || (a.solo && b.solo);
  if (!x.loop || !y.loop) {
    // Every thread has written its own copy of what it reads.
    const SyncAccess& writer = a.write ? a : b;
    return IsThreadPrivate(*a.buffer) && !IsBlockRank(axis) && !writer.binders[axis].loop &&
           !(a.write && b.write);
  }
  const bool together = x.loop == y.loop && x.depth < depth && !MadeOnce(a.buffer, axis, x);
  if (together && !OthersTouch(a, b, axis)) return true;
  return IndexTells(a, b, x, y);
}

// Iterations of a loop are independent, unless an atomic access says that others touch the element,
// or indices show it.
bool SyncAnalysis::OthersTouch(const SyncAccess& a, const SyncAccess& b, size_t axis) {
  if (!IsOneFor(*a.buffer, axis)) return false;
  return a.atomic != b.atomic || Cross(a, b, axis);
}

// True where the value is known to be the same in all iterations of the loop that run the same
// iterations of other loops.
bool SyncAnalysis::IsFreeOf(const Expr& e, const For& loop) const {
  std::vector<Expr> left = {e};
  std::unordered_set<const Node*> seen;
  bool free = true;
  while (free && !left.empty()) {
    const Expr now = left.back();
    left.pop_back();
    free = IsPure(now);
    PreOrder(now, [&](const NodeRef& n) {
      free &= !IsA<Load>(n) && n.get() != loop.var.get();
      const bool known = dims_.count(n.get()) != 0 || !seen.insert(n.get()).second;
      if (!free || !IsA<VarNode>(n) || known) return free;
      const auto it = loops.find(n.get());
      free = it != loops.end();
      if (free) left.insert(left.end(), {it->second->min, it->second->extent});
      return free;
    });
  }
  return free;
}

// Which iteration of the loop touches which element, in numbers: step * iteration + base.
std::optional<SyncAnalysis::Line> SyncAnalysis::LineOf(const SyncAccess& a, const For& loop) {
  if (a.indices.empty()) return std::nullopt;
  const auto affine = DetectAffine(FlatIndex(*a.buffer, a.indices, &analyzer), {loop.var});
  const auto step = affine ? AsInt(analyzer.Simplify(affine->coefficients[0])) : std::nullopt;
  if (!step || std::abs(*step) > kFar || !IsFreeOf(affine->base, loop)) return std::nullopt;
  return Line{*step, affine->base};
}

// True where an iteration surely touches an element that another touches through the other access,
// and does not just write what that one writes. Two numbers of iterations tell, m and n with
// p * m = q * n + apart.
bool SyncAnalysis::Cross(const SyncAccess& a, const SyncAccess& b, size_t axis) {
  const For& loop = *a.binders[axis].loop;
  if (a.IsGuarded(axis) || b.IsGuarded(axis) || !IsZero(loop.min)) return false;
  const auto p = LineOf(a, loop), q = LineOf(b, loop);
  const auto apart = p && q ? AsInt(analyzer.Simplify(q->base - p->base)) : std::nullopt;
  if (!apart || std::abs(*apart) > kFar) return false;
  const int64_t most = analyzer.ConstBounds(loop.extent).max;
  auto same_value = [&](const Expr& shift) {
    if (!a.value || !b.value) return false;
    const Expr value = Substitute(a.value, VarMap{{loop.var.get(), Expr(loop.var) + shift}});
    return StructuralEqual(analyzer.Simplify(value), analyzer.Simplify(b.value));
  };
  if (p->step == q->step) {
    if (p->step == 0 || *apart == 0 || *apart % p->step != 0) return false;
    const int64_t shift = *apart / p->step;
    return std::abs(shift) < most && !same_value(IndexConst(shift));
  }
  for (int64_t n = 0; n < std::min(most, kMostTried); ++n) {
    const int64_t sum = q->step * n + *apart;
    const bool meets = p->step == 0 ? sum == 0
                                    : sum % p->step == 0 && sum / p->step != n &&
                                          sum / p->step >= 0 && sum / p->step < most;
    if (meets) return true;
  }
  return false;
}

bool SyncAnalysis::Races(const SyncAccess& a, size_t axis) {
  const For* loop = a.binders[axis].loop;
  if (!a.value || !loop || !Matters(axis) || a.IsGuarded(axis)) return false;
  if (!IsOneFor(*a.buffer, axis) || MadeOnce(a.buffer, axis, a.binders[axis])) return false;
  if (analyzer.ConstBounds(loop->extent).max <= 1) return false;
  bool adds = UsesVar(a.value, loop->var.get());
  for (const Expr& index : a.indices) {
    if (!IsFreeOf(index, *loop)) return false;
  }
  PreOrder(a.value, [&](const NodeRef& n) {
    const auto* load = As<Load>(n);
    if (load && load->buffer == a.buffer) {
      bool same = load->indices.size() == a.indices.size();
      for (size_t i = 0; same && i < a.indices.size(); ++i)
        same = StructuralEqual(load->indices[i], a.indices[i]);
      adds |= same;
    }
    return !adds;
  });
  return adds;
}

bool SyncAnalysis::IndexTells(const SyncAccess& a, const SyncAccess& b, const Binder& x,
                              const Binder& y) {
  if (!IsZero(x.loop->min) || !IsZero(y.loop->min)) return false;
  return ElementTells(*a.buffer, a.indices, {x.loop->var, x.loop->extent}, b.indices,
                      {y.loop->var, y.loop->extent}, &analyzer);
}

// What was waited for is there for other threads behind a barrier; before it, nobody is in the
// way that was not when it was copied.
bool SyncAnalysis::Depend(const SyncAccess& a, const SyncAccess& b) {
  if (a.arrival || b.arrival) return a.buffer == b.buffer && a.arrival && !b.arrival && !b.write;
  return a.buffer == b.buffer && (a.write || b.write) && !(a.atomic && b.atomic);
}

// Boxes of different versions of a buffer, told by the loops that both are in.
bool SyncAnalysis::Apart(const SyncAccess& a, const SyncAccess& b, size_t depth, size_t level) {
  for (size_t d = 0; d < a.fixed.size() && d < b.fixed.size(); ++d) {
    if (!a.fixed[d] || !b.fixed[d]) continue;
    if (!IsTold(a.fixed[d], depth, level) || !IsTold(b.fixed[d], depth, level)) continue;
    const auto count = AsInt(a.buffer->shape[d]);
    if (!count) continue;
    const auto apart = AsInt(analyzer.Simplify((a.fixed[d] - b.fixed[d]) % *count));
    if (apart && *apart != 0) return true;
    if (analyzer.CanProve(Ne(a.fixed[d], b.fixed[d]))) return true;
  }
  return false;
}

// Only variables of the outermost `depth` loops, with one value for all threads that meet.
bool SyncAnalysis::IsTold(const Expr& e, size_t depth, size_t level) const {
  bool told = IsPure(e);
  PreOrder(e, [&](const NodeRef& n) {
    auto it = loop_depth.find(n.get());
    if (IsA<VarNode>(n))
      told &= it != loop_depth.end() && it->second < depth && varying[level].count(n.get()) == 0;
    told &= !IsA<Load>(n);
    return told;
  });
  return told;
}

const SyncAccess* SyncAnalysis::Conflict(const AccessList& before, const AccessList& after,
                                         size_t depth, size_t told, size_t level) {
  const auto [first, end] = AxesOf(level);
  for (const SyncAccess& a : before) {
    if (IsThreadPrivate(*a.buffer)) continue;
    // No barrier makes one block's memory another's.
    if (level > 0 && a.buffer->scope != Scope::kGlobal) continue;
    for (const SyncAccess& b : after) {
      if (!Depend(a, b) || Apart(a, b, told, level)) continue;
      for (size_t axis = first; axis < end; ++axis) {
        if (!SameThread(a, b, axis, depth)) return &a;
      }
    }
  }
  return nullptr;
}

}  // namespace tenon
