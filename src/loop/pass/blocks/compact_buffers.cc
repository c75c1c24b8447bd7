#include "loop/pass/blocks/compact_buffers.h"

#include <fmt/format.h>

#include <algorithm>

#include "dependence/flow.h"
#include "ir/print.h"
#include "loop/padded_rows.h"
#include "loop/pass/blocks/move_allocs.h"
#include "loop/pass/blocks/private_memory.h"
#include "loop/rewrite.h"
#include "loop/threads.h"

namespace tenon {

namespace {

bool Repeats(const StmtNode* s) {
  const auto* loop = As<For>(static_cast<const Node*>(s));
  return loop ? !IsOne(loop->extent) : s->kind == NodeKind::kWhile;
}

// A loop whose iterations are independent, so that none reads what another wrote. (What a block of
// threads shares is made for all of them.)
bool IsIndependent(const StmtNode* s, const BufferNode& buffer) {
  const auto* loop = As<For>(static_cast<const Node*>(s));
  if (!loop) return false;
  if (loop->for_kind == ForKind::kThread)
    return HolderOf(buffer.scope) != Holder::kBlock || !IsThreadAxis(loop->thread);
  return loop->for_kind == ForKind::kParallel || loop->for_kind == ForKind::kVectorized;
}

// Decides about the allocations of one function, of each alone: what it looks at is the function as
// it was, and the new place and size are right whatever becomes of the others.
class Planner {
 public:
  Planner(const PrimFunc& func, const PassContext& context)
      : flow_(func), analyzer_(*flow_.analyzer()), context_(context) {}

  Placement Plan(const AllocUses& a) {
    Placement out;
    size_t target = ChooseTarget(a);
    const std::vector<const StmtNode*>& path = a.uses[0].path;
    out.around = path[target];
    bool in_parallel =
        std::any_of(a.path.begin(), a.path.end(), IsParallel) ||
        std::any_of(path.begin(), path.begin() + static_cast<int64_t>(target), IsParallel);
    out.buffer = Shrink(a, target, &out.origin, in_parallel);
    return out;
  }

 private:
  static bool IsParallel(const StmtNode* s) {
    const auto* loop = As<For>(static_cast<const Node*>(s));
    return (loop && loop->for_kind == ForKind::kParallel) || RunsThreads(s);
  }

  // ---- where ----

  // The place in the first use's path of the statement to stand around: the smallest with all uses
  // that is sound.
  size_t ChooseTarget(const AllocUses& a) {
    const std::vector<const StmtNode*>& path = a.uses[0].path;
    size_t root = a.path.size(), common = path.size();
    for (const BufferUse& use : a.uses) {
      size_t n = 0;
      while (n < common && n < use.path.size() && use.path[n] == path[n]) ++n;
      common = n;
    }
    size_t target = std::max(root, common - 1);
    for (size_t i = root; i < target; ++i) {
      if (path[i]->kind == NodeKind::kBlock) target = i;  // blocks are moved whole
      if (JoinsBlocks(path[i]) && IsOfCluster(a)) target = i;
    }
    size_t serial = root;
    auto keeps = [&](const StmtNode* s) {
      return Repeats(s) && !IsIndependent(s, *a.alloc->buffer);
    };
    while (serial < target && !keeps(path[serial])) ++serial;
    return serial == target || flow_.IsFlowFree(a, target) ? target : serial;
  }

  static bool JoinsBlocks(const StmtNode* s) {
    const auto* loop = As<For>(static_cast<const Node*>(s));
    return loop && loop->for_kind == ForKind::kThread && IsBlockAxis(loop->thread);
  }

  // Global memory that blocks of a cluster hand over: none of them can make it.
  static bool IsOfCluster(const AllocUses& a) {
    auto over_cluster = [](const StmtNode* s) {
      return JoinsBlocks(s) && IsClusterAxis(static_cast<const For*>(s)->thread);
    };
    return a.alloc->buffer->scope == Scope::kGlobal &&
           std::any_of(a.uses.begin(), a.uses.end(), [&](const BufferUse& use) {
             return std::any_of(use.path.begin(), use.path.end(), over_cluster);
           });
  }

  // ---- how large ----

  Buffer Shrink(const AllocUses& a, size_t target, std::vector<Expr>* origin, bool in_parallel) {
    const BufferNode& b = *a.alloc->buffer;
    origin->assign(b.shape.size(), nullptr);
    const std::optional<PaddedRows> rows = RowsOf(b);
    const bool fixed = !b.strides.empty() || (b.layout && !b.layout->extents.empty() && !rows);
    auto out = MakeRef<BufferNode>(b);
    if (in_parallel && b.scope == Scope::kGlobal) out->scope = Scope::kLocal;
    if (fixed) return out;
    std::vector<Box> boxes;
    for (const BufferUse& use : a.uses)
      boxes.push_back(flow_.BoxOf(use, target, b.scope == Scope::kShared));
    const size_t free = FreeDims(a);
    // Registers and tiles are so many, however short a dim is.
    const bool counted = Info(b.scope).medium != Medium::kMemory;
    for (size_t d = 0; d < b.shape.size(); ++d) {
      if (counted) out->shape[d] = analyzer_.Simplify(b.shape[d]);
      Expr first, last;
      bool known = true;
      for (const Box& box : boxes) {
        known &= box[d].min && box[d].max;
        if (!known) break;
        first = first ? Min(first, box[d].min) : box[d].min;
        last = last ? Max(last, box[d].max) : box[d].max;
      }
      if (!known) continue;
      first = analyzer_.Simplify(first);
      Expr extent = Size(first, analyzer_.Simplify(last));
      if (!extent || !IsSmaller(extent, out->shape[d], counted)) continue;
      if (d >= free) {
        context_.Remark(
            fmt::format("buffer '{}' keeps {} elements along dim {} where {} are used: "
                        "a call is told the strides",
                        b.name, ToString(b.shape[d]), d, ToString(extent)));
        continue;
      }
      out->shape[d] = extent;
      if (!IsZero(first)) (*origin)[d] = first;
    }
    bool shorter = false;
    for (size_t d = rows ? rows->axis + 1 : b.shape.size(); d < b.shape.size(); ++d)
      shorter |= !StructuralEqual(out->shape[d], b.shape[d]);
    if (shorter) out->layout = Padded(out->shape, *rows);
    return out;
  }

  // Row-major, but for rows that are longer than what they hold, by a rule or as constants.
  static std::optional<PaddedRows> RowsOf(const BufferNode& b) {
    std::optional<PaddedRows> rows = PaddedRowsOf(b);
    const bool plain = rows && !PaddingOf(rows->stride);
    const bool constant = plain && rows->axis + 2 == b.shape.size() &&
                          AsInt(Simplify(rows->stride)) && AsInt(b.shape.back());
    return plain && !constant ? std::nullopt : rows;
  }

  // Rows of `shape` padded by the rule that those of `had` show, else so that they begin in the
  // banks of memory that they began in (their length stays what it is modulo all of them).
  static Layout Padded(const std::vector<Expr>& shape, const PaddedRows& had) {
    constexpr int64_t kBankElements = 128;  // of a byte each; fewer of larger ones
    const Expr size = RowSize(shape, had.axis);
    if (const auto padding = PaddingOf(had.stride))
      return PaddedLayout(shape, had.axis, Simplify(PaddedExtent(size, *padding)));
    const int64_t was = *AsInt(Simplify(had.stride)), now = AsInt(size).value_or(was);
    return PaddedLayout(shape, had.axis, IndexConst(now + (was - now) % kBankElements));
  }

  // How many of the outer dimensions may shrink. A function that is passed a part of the buffer
  // knows its strides, unless the call tells it: a dimension changes those of the ones before it,
  // which count for nothing where the part has one element along them.
  size_t FreeDims(const AllocUses& a) {
    const BufferNode& b = *a.alloc->buffer;
    size_t free = b.shape.size();
    if (IsFragment(b)) return free;  // who gets a box of it sees its elements, wherever they lie
    for (const BufferUse& use : a.uses) {
      if (!use.in_call || use.as_tile) continue;
      if (b.layout && !RowsOf(b)) return 0;
      if (use.told) continue;
      size_t d = 0;
      while (d < free && IsOne(analyzer_.Simplify(use.last[d] - use.first[d] + 1))) ++d;
      free = std::min(free, d + 1);
    }
    return free;
  }

  // last - first + 1, as a constant where there is one; null where it depends on loops.
  Expr Size(const Expr& first, const Expr& last) {
    Expr extent = analyzer_.Simplify(last - first + 1);
    if (auto size = AsInt(extent)) return IndexConst(std::max<int64_t>(*size, 0));
    int64_t most = analyzer_.ConstBounds(extent).max;
    return most == Interval::kPosInf ? nullptr : IndexConst(std::max<int64_t>(most, 0));
  }

  // `counted`: any number is smaller than what is none.
  bool IsSmaller(const Expr& extent, const Expr& whole, bool counted) {
    auto size = AsInt(extent), all = AsInt(whole);
    if (size && all) return *size < *all;
    return (counted && size) || !analyzer_.CanProve(Le(whole, extent));
  }

  BufferFlow flow_;
  Analyzer& analyzer_;  // the flow's
  const PassContext& context_;
};

Func Compact(const Func& func, const Module& module, const PassContext& context) {
  const Func own = WithBody(func, GivePrivateMemory(func));
  Planner planner(*own, context);
  std::vector<std::pair<Buffer, Placement>> placements;
  for (const AllocUses& a : UsesOfAllocs(*own, module)) {
    if (!a.uses.empty()) placements.emplace_back(a.alloc->buffer, planner.Plan(a));
  }
  return placements.empty() ? own
                            : WithBody(own, MoveAllocs(own->body, std::move(placements), module));
}

}  // namespace

Module CompactBuffers(const Module& module, const PassContext& context) {
  return MapFuncs(module, [&](const Func& func) {
    bool runs_loops = func->func_kind == FuncKind::kKernel || func->func_kind == FuncKind::kDevice;
    return runs_loops ? Compact(func, module, context) : func;
  });
}

}  // namespace tenon
