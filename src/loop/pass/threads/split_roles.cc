// A ring of tiles between one warpgroup that copies and others that compute.
//
// Let a loop of n steps copy tiles at the beginning of each step and compute with them in the rest.
// Each tile gets a dimension of `stages` versions; step k uses version k % stages. Two rings of
// barriers, one of each per version, say who may go on: `full[s]` ends a phase when the bytes of a
// step have come, `empty[s]` when every computing warpgroup is done with them. Phases alternate, so
// a wait names the parity of the turn it is about, (k / stages) % 2; the copying warpgroup waits
// for the turn before, which for the first turn counts as ended. From
//
//   for k in 0..2 {producer_stages: 2} {
//     if threadIdx.y == 0 && threadIdx.x == 0 {
//       call @ptx.tma.copy.64x64.f16(B[0..64, k * 64..+64], SB; 128)
//     }
//     sync cta
//     call @ptx.wgmma.m64n8k64.f16.t(SA[…], SB[0..8, 0..64], CF)
//     sync cta
//   }
//
// comes
//
//   roles {
//     role compute size 8 {
//       for k in 0..2 {
//         wait full[k % 2], k / 2 % 2
//         call @ptx.wgmma.m64n8k64.f16.t(SA[k % 2, …], SB[k % 2, 0..8, 0..64], CF)
//         if threadIdx.x == 0 { arrive empty[k % 2] }
//       }
//     }
//     role copy size 4 {
//       if threadIdx.x == 0 {
//         for k.ahead in 0..2 {
//           wait empty[k.ahead % 2], (k.ahead / 2 + 1) % 2
//           expect full[k.ahead % 2], 24576
//           …
//           call @ptx.tma.copy.64x64.f16(B[0..64, k.ahead * 64..+64],
//               SB[k.ahead % 2, 0..64, 0..64], full[k.ahead % 2]; 128, 0, k.ahead * 64)
//         }
//       }
//     }
//   }
//
// (the other tile left out). The barriers of the block that bind_threads had put are gone, so the
// roles may differ by as many steps as there are versions. What makes that right is checked here:
// the roles have nothing in common but the tiles.
//
// The engine reads matrices that begin at multiples of 16 bytes. Of a kernel with one that may
// begin anywhere that is the aligned form (loop/aligned_form.h); in the other one the threads of
// the copying role move the elements, and each of them arrives at `full` when it has.
#include "loop/pass/threads/split_roles.h"

#include <algorithm>
#include <map>
#include <set>

#include "dependence/access.h"
#include "intrin/ptx_hopper.h"
#include "intrin/tile_intrinsic.h"
#include "loop/aligned_form.h"
#include "loop/rewrite.h"
#include "loop/threads.h"
#include "loop/warpgroup.h"
#include "support/check.h"

namespace tenon {

namespace {

constexpr int64_t kMostStages = 16, kMostMaps = 8;
constexpr int64_t kWarpsOfGroup = kWarpgroup / kLanes;
// Of a multiprocessor, for each of 128 threads; what a warpgroup that copies needs, and the most
// that a thread can have.
constexpr int64_t kRegisters = 512, kCopyingRegisters = 24, kMostRegisters = 240;

bool IsBulkCopy(const PrimFunc& func) {
  return func.buffers.size() == 2 && func.attrs.Has(kIntrinsicAttr) &&
         func.name.starts_with(kBulkCopyRows);
}

// As loop/warpgroup.h has it: with the barrier, and the place of the source in its buffer.
Func WithBarrier(const PrimFunc& row) {
  PrimFunc fields = row;
  fields.attrs.Set(kAsyncAttr, std::string(Name(AsyncPart::kBulk)));
  fields.attrs.Set(kIntrinsicAttr, row.name);
  fields.buffers.push_back(
      BufferNode::Make("full", DType::UInt(64), {IndexConst(1)}, Scope::kBarrier));
  ++fields.num_outputs;
  for (const char* name : {"row", "column"})
    fields.scalars.push_back(VarNode::Make(name, DType::Index()));
  return PrimFunc::Make(std::move(fields));
}

Func Initializer() {
  Expected<Func> meaning = MeaningOf(*BuiltinTileIntrinsics().Find(kBarrierInitRow));
  TN_CHECK(meaning, "{}", ToString(meaning.errors()));
  PrimFunc fields = **meaning;
  fields.attrs.Set(kAsyncAttr, std::string(Name(AsyncPart::kInit)));
  fields.attrs.Set(kIntrinsicAttr, fields.name);
  return PrimFunc::Make(std::move(fields));
}

// One kernel. As soon as something is refused, the kernel is left as it was; until then copies_ and
// rest_ together are the statements of the loop, in order.
class Splitter {
 public:
  enum class Copying : uint8_t { kByEngine, kByThreads };

  Splitter(const Func& func, const Module& module, Copying copying)
      : func_(func),
        module_(module),
        by_threads_(copying == Copying::kByThreads),
        names_(*func),
        nest_(PeelThreads(*func)) {}

  Func Run() {
    Stmt body = nest_.body;
    FindLoop(body);
    if (refused_.empty() && loop_) body = Split(body);
    if (refused_.empty()) CheckMaps(body);
    if (!refused_.empty() || !loop_) return func_;
    PrimFunc fields = *func_;
    for (size_t i = axes_.size(); i-- > 0;) {
      body = For::Make(axes_[i].var, IndexConst(0), axes_[i].extent, ForKind::kThread, body, {},
                       axes_[i].thread);
    }
    fields.body = body;
    SetMaps(&fields.attrs);
    return PrimFunc::Make(std::move(fields));
  }

  /// Why it was left as it is; empty: it was not, or had no copies.
  const std::vector<std::string>& refused() const { return refused_; }
  /// Whether the engine copies from what may begin anywhere.
  bool begins_anywhere() const { return begins_anywhere_; }
  /// The rows that are called with barriers now.
  const std::set<std::string>& called() const { return called_; }

 private:
  struct Axis {
    Var var;
    Expr extent;
    ThreadAxis thread;
  };
  struct Tile {
    Buffer before, after;
  };

  void Refuse(std::string what) {
    if (std::find(refused_.begin(), refused_.end(), what) == refused_.end())
      refused_.push_back(std::move(what));
  }

  const CallFunc* BulkCopyOf(const NodeRef& n) const {
    const auto* call = As<CallFunc>(n);
    const Func callee = call ? module_.Find(call->callee) : nullptr;
    return callee && IsBulkCopy(*callee) ? call : nullptr;
  }

  bool Copies(const Stmt& stmt) const {
    return AnyStmt(stmt, [&](const NodeRef& n) { return BulkCopyOf(n) != nullptr; });
  }

  // The loop, and whether copies stand elsewhere.
  void FindLoop(const Stmt& body) {
    PreOrder(body, [&](const NodeRef& n) {
      const auto* loop = As<For>(n);
      if (loop && loop->attrs.Has(kProducerStagesAttr)) {
        if (loop_) Refuse("two loops have producer_stages: expected one in a kernel");
        loop_ = loop;
        return false;
      }
      if (const CallFunc* call = BulkCopyOf(n)) {
        Refuse(call->callee + " is outside of a loop: expected it in one that is annotated with " +
               kProducerStagesAttr);
      }
      return !IsA<ExprNode>(n);
    });
    if (!loop_) return;
    stages_ = loop_->attrs.GetInt(kProducerStagesAttr, 0);
    if (stages_ < 1 || stages_ > kMostStages) {
      Refuse("producer_stages of loop '" + loop_->var->name + "': expected 1 to " +
             std::to_string(kMostStages));
    }
    if (!Copies(loop_->body))
      Refuse("loop '" + loop_->var->name + "' has producer_stages, but nothing that the copy " +
             "engine copies");
  }

  // ---- the launch ----

  // Warpgroups along threadIdx.y; the copying one comes last.
  void ReadAxes() {
    bool has_y = false;
    for (const For* loop : nest_.axes) {
      const bool lanes = loop->thread == kLaneAxis;
      if (lanes && !has_y)
        axes_.push_back({NewVar("threadIdx.y"), IndexConst(1), ThreadAxis::kThreadIdxY});
      axes_.push_back({loop->var, loop->extent, loop->thread});
      has_y |= loop->thread == ThreadAxis::kThreadIdxY;
      const auto extent = AsInt(loop->extent);
      if (loop->thread == ThreadAxis::kThreadIdxZ && extent != 1)
        Refuse("a loop is over threadIdx.z" + Why());
      if (lanes && extent == kWarpgroup) lane_ = loop->var;
    }
    if (!lane_) return Refuse("no operation of a warpgroup" + Why());
    Axis& y = axes_[axes_.size() - 2];
    groups_ = AsInt(y.extent).value_or(0);
    if (groups_ < 1 || groups_ > 7) Refuse("more than 7 warpgroups along threadIdx.y" + Why());
    y.extent = IndexConst(groups_ + 1);
    group_ = y.var;
  }

  static std::string Why() {
    return ": a loop with producer_stages expects warpgroups along threadIdx.x and threadIdx.y";
  }

  Var NewVar(const std::string& name) { return VarNode::Make(names_.Fresh(name), DType::Index()); }

  // ---- the loop ----

  Stmt Split(const Stmt& body) {
    ReadAxes();
    TakeParts(loop_->body);
    if (!refused_.empty()) return body;
    MakeTiles();
    CheckRest(body);
    full_ = BufferNode::Make(names_.Fresh("full"), DType::UInt(64), {IndexConst(stages_)},
                             Scope::kBarrier);
    empty_ = BufferNode::Make(names_.Fresh("empty"), DType::UInt(64), {IndexConst(stages_)},
                              Scope::kBarrier);
    const Stmt producer = Producer(), consumer = Without(body);
    if (!refused_.empty()) return body;
    // No more than a launch gives to all of them: who asks for more waits for ever.
    const int64_t given = kRegisters / (groups_ + 1) / 8 * 8 * (groups_ + 1);
    const int64_t budget = std::min(kMostRegisters, (given - kCopyingRegisters) / groups_ / 8 * 8);
    // Fewer blocks have room for all that they take over.
    constexpr int64_t kManyRegisters = 112;
    const bool takes = groups_ > 1 && !by_threads_ && FragmentRegisters(body) >= kManyRegisters;
    Stmt out =
        Roles::Make({"compute", "copy"}, {groups_ * kWarpsOfGroup, kWarpsOfGroup},
                    {takes ? budget : 0, takes ? kCopyingRegisters : 0}, {consumer, producer});
    out = Seq::Make({InitBarriers(), Sync::Make(Level::kCta), out});
    out = Alloc::Make(full_, Alloc::Make(empty_, out));
    for (const Tile& tile : tiles_) out = Alloc::Make(tile.after, out);
    return out;
  }

  // Allocations around, and the statements in order.
  void TakeParts(const Stmt& stmt) {
    if (const auto* alloc = As<Alloc>(stmt)) {
      if (alloc->buffer->scope != Scope::kShared) inside_.push_back(alloc->buffer);
      return TakeParts(alloc->body);
    }
    if (const auto* seq = As<Seq>(stmt)) {
      for (const Stmt& s : seq->stmts) TakeParts(s);
      return;
    }
    if (IsA<Sync>(stmt)) return;
    (Copies(stmt) ? copies_ : rest_).push_back(stmt);
    PreOrder(stmt, [&](const NodeRef& n) {
      if (IsA<Sync>(n))
        Refuse("a barrier of the block stands deep in loop '" + loop_->var->name + "'");
      return !IsA<ExprNode>(n);
    });
  }

  // The tiles that are copied to, with a version per stage.
  void MakeTiles() {
    for (const Stmt& s : copies_) {
      PreOrder(s, [&](const NodeRef& n) {
        if (const CallFunc* call = BulkCopyOf(n)) AddTile(call->buffers[1]->buffer);
        return !IsA<ExprNode>(n);
      });
    }
  }

  void AddTile(const Buffer& b) {
    for (const Tile& t : tiles_) {
      if (t.before == b) return;
    }
    if (b->scope != Scope::kShared || !b->layout)
      return Refuse("buffer " + b->name +
                    " is copied to by the copy engine: expected it in shared");
    auto with = MakeRef<BufferNode>(*b);
    with->shape.insert(with->shape.begin(), IndexConst(stages_));
    std::vector<Var> coords = b->layout->coords;
    std::vector<Expr> storage = b->layout->storage, extents = b->layout->extents;
    coords.insert(coords.begin(), VarNode::Make("stage", DType::Index()));
    storage.insert(storage.begin(), Expr(coords[0]));
    if (!extents.empty()) extents.insert(extents.begin(), Expr());
    with->layout = LayoutNode::Make(std::move(coords), std::move(storage), std::move(extents));
    tiles_.push_back({b, with});
  }

  bool IsTileOfRing(const BufferNode* b) const {
    return std::any_of(tiles_.begin(), tiles_.end(),
                       [&](const Tile& t) { return t.before.get() == b; });
  }

  // Without the barriers that stood in the loop, its threads may meet in the tiles alone; and what
  // is outside of it is left to some of the threads.
  void CheckRest(const Stmt& body) {
    auto shared = [](const Buffer& b) {
      return b->scope == Scope::kShared || b->scope == Scope::kGlobal;
    };
    const Accesses all = AccessesOf(body, module_, shared);
    Accesses rest;
    for (const Stmt& s : rest_) rest.Add(AccessesOf(s, module_, shared));
    for (const BufferNode* b : rest.writes) {
      Refuse("buffer " + b->name + " is written in loop '" + loop_->var->name + "', " +
             "which has producer_stages: expected results in fragments or local");
    }
    for (const BufferNode* b : rest.reads) {
      if (!IsTileOfRing(b) && all.writes.count(b) != 0)
        Refuse("buffer " + b->name + " is read in loop '" + loop_->var->name +
               "', which has producer_stages, and is no tile that the copy engine fills");
    }
    PreOrder(body, [&](const NodeRef& n) {
      if (n.get() == loop_) return false;
      if (IsA<Sync>(n)) Refuse("threads wait for each other beside the loop with producer_stages");
      if (const auto* r = As<RegionNode>(n); r && IsTileOfRing(r->buffer.get()))
        Refuse("buffer " + r->buffer->name + " is used beside the loop with producer_stages");
      return !IsA<ExprNode>(n);
    });
    CheckPath(body);
  }

  // The copying warps run the loop once, at once.
  void CheckPath(const Stmt& body) {
    Stmt at = body;
    for (;;) {
      if (at.get() == loop_) return;
      if (const auto* alloc = As<Alloc>(at)) {
        at = alloc->body;
      } else if (const auto* seq = As<Seq>(at)) {
        for (const Stmt& s : seq->stmts) {
          if (Contains(s)) at = s;
        }
        if (at.get() == seq) return;
      } else {
        return Refuse("loop '" + loop_->var->name +
                      "', which has producer_stages, stands in a loop " + "or under a condition");
      }
    }
  }

  // Of a thread, for what its warpgroup keeps.
  static int64_t FragmentRegisters(const Stmt& body) {
    int64_t bytes = 0;
    PreOrder(body, [&](const NodeRef& n) {
      const auto* alloc = As<Alloc>(n);
      if (!alloc || !IsFragment(*alloc->buffer)) return !IsA<ExprNode>(n);
      int64_t own = alloc->buffer->dtype.Bytes();
      for (const Expr& e : alloc->buffer->shape) own *= AsInt(Simplify(e)).value_or(0);
      bytes += own;
      return true;
    });
    return bytes / kWarpgroup / 4;
  }

  bool Contains(const Stmt& stmt) const {
    return AnyStmt(stmt, [&](const NodeRef& n) { return n.get() == loop_; });
  }

  // ---- rings ----

  Expr Step(const Var& var) const { return Expr(var) - loop_->min; }
  Expr Slot(const Var& var) const { return Simplify(Step(var) % stages_); }
  Expr Turn(const Var& var, int64_t ahead) const {
    return Simplify((Step(var) / stages_ + ahead) % 2);
  }

  Stmt On(BarrierOp op, const Buffer& ring, const Expr& slot, const Expr& value = nullptr) const {
    return Barrier::Make(op, ring, {slot}, value);
  }

  static Stmt Ready(const Buffer& ring, const Var& slot, int64_t arrivals) {
    const Region element = RegionNode::Make(ring, {RangeNode::Make(slot, IndexConst(1))});
    return CallFunc::Make(kBarrierInitRow, {element}, {IndexConst(arrivals)});
  }

  Stmt InitBarriers() {
    const Var s = NewVar("stage");
    const Stmt body =
        Seq::Make({Ready(full_, s, by_threads_ ? kWarpgroup : 1), Ready(empty_, s, groups_)});
    const Expr first =
        Conjunction({Eq(Expr(lane_), IndexConst(0)), Eq(Expr(group_), IndexConst(0))});
    return If::Make(first,
                    For::Make(s, IndexConst(0), IndexConst(stages_), ForKind::kSerial, body));
  }

  // The box of a version of a tile; other regions as they are.
  Region InRing(const Region& region, const Expr& slot) const {
    for (const Tile& t : tiles_) {
      if (t.before != region->buffer) continue;
      std::vector<Range> ranges = region->ranges;
      ranges.insert(ranges.begin(), RangeNode::Make(slot, IndexConst(1)));
      return RegionNode::Make(t.after, std::move(ranges));
    }
    return region;
  }

  Stmt Rest() {
    const Var& k = loop_->var;
    std::vector<Stmt> out{On(BarrierOp::kWait, full_, Slot(k), Turn(k, 0))};
    for (const Stmt& s : rest_) {
      out.push_back(PostOrderRewrite(s, [&](const NodeRef& n) -> NodeRef {
        const auto* call = As<CallFunc>(n);
        if (!call) return n;
        std::vector<Region> regions;
        for (const Region& r : call->buffers) regions.push_back(InRing(r, Slot(k)));
        return CallFunc::Make(call->callee, std::move(regions), call->scalars);
      }));
    }
    out.push_back(
        If::Make(Eq(Expr(lane_), IndexConst(0)), On(BarrierOp::kArrive, empty_, Slot(k))));
    Stmt body = Seq::Make(std::move(out));
    for (const Buffer& b : inside_) body = Alloc::Make(b, body);
    return body;
  }

  // What is not copied, and no memory of tiles.
  Stmt Without(const Stmt& body) {
    const Stmt rest = Rest();
    return PostOrderRewrite(body, [&](const NodeRef& n) -> NodeRef {
      if (const auto* alloc = As<Alloc>(n); alloc && IsTileOfRing(alloc->buffer.get()))
        return alloc->body;
      const auto* loop = As<For>(n);
      if (!loop || !loop->attrs.Has(kProducerStagesAttr)) return n;
      Attrs attrs = loop->attrs;
      attrs.Erase(kProducerStagesAttr);
      return For::Make(loop->var, loop->min, loop->extent, loop->for_kind, rest, attrs);
    });
  }

  Stmt Producer() {
    const Var k = NewVar(loop_->var->name + ".ahead");
    const VarMap ahead{{loop_->var.get(), Expr(k)}};
    int64_t bytes = 0;
    std::vector<Stmt> copies;
    for (const Stmt& s : copies_) copies.push_back(Substitute(Copy(s, k, 1, &bytes), ahead));
    std::vector<Stmt> out{On(BarrierOp::kWait, empty_, Slot(k), Turn(k, 1))};
    if (!by_threads_) out.push_back(On(BarrierOp::kExpect, full_, Slot(k), IndexConst(bytes)));
    out.insert(out.end(), copies.begin(), copies.end());
    if (by_threads_) out.push_back(On(BarrierOp::kArrive, full_, Slot(k)));
    const Stmt steps =
        For::Make(k, loop_->min, loop_->extent, ForKind::kSerial, Seq::Make(std::move(out)));
    return by_threads_ ? steps : If::Make(Eq(Expr(lane_), IndexConst(0)), steps);
  }

  // A copying statement, which runs `times` times, without the conditions that leave it to a
  // thread.
  Stmt Copy(const Stmt& stmt, const Var& step, int64_t times, int64_t* bytes) {
    if (IsA<Seq>(stmt))
      return MapBodies(stmt, [&](const Stmt& s) { return Copy(s, step, times, bytes); });
    if (const auto* loop = As<For>(stmt)) {
      const auto extent = AsInt(Simplify(loop->extent));
      if (!extent || *extent > kMostRegisters)
        Refuse("loop '" + loop->var->name + "' over copies has no constant number of iterations");
      Stmt body = Copy(loop->body, step, times * extent.value_or(1), bytes);
      return WithBody(*loop, body);
    }
    if (const auto* node = As<If>(stmt); node && !node->else_body && IsOfFirst(node->condition))
      return Copy(node->then_body, step, times, bytes);
    if (const CallFunc* call = BulkCopyOf(stmt)) {
      *bytes += times * BytesOf(*call->buffers[1]);
      CheckSource(call->callee, call->buffers[0]);
      if (UsesVar(stmt, lane_.get()) || UsesVar(stmt, group_.get()))
        Refuse(call->callee + " copies something else in each thread");
      return by_threads_ ? CopyByThreads(*call, step) : CopyOnBarrier(*call, step);
    }
    Refuse("copies by the copy engine in loop '" + loop_->var->name + "' stand under a condition");
    return stmt;
  }

  bool IsOfFirst(const Expr& condition) const {
    const std::vector<Expr> parts = Conjuncts(condition);
    return std::all_of(parts.begin(), parts.end(), [&](const Expr& c) {
      return StructuralEqual(c, Eq(Expr(lane_), IndexConst(0))) ||
             StructuralEqual(c, Eq(Expr(group_), IndexConst(0)));
    });
  }

  static int64_t BytesOf(const RegionNode& box) {
    int64_t bytes = box.buffer->dtype.Bytes();
    for (const Range& r : box.ranges) bytes *= AsInt(Simplify(r->extent)).value_or(0);
    return bytes;
  }

  // The threads of the role take the elements of a box in turns.
  Stmt CopyByThreads(const CallFunc& call, const Var& step) {
    constexpr int64_t kElements = kBulkCopySide * kBulkCopySide;
    const Region& source = call.buffers[0];
    const Region target = InRing(call.buffers[1], Slot(step));
    const Var turn = NewVar("turn");
    const Expr element = Expr(turn) * kWarpgroup + Expr(lane_);
    const auto at = [&](const Region& box) {
      std::vector<Expr> out;
      for (const Range& r : box->ranges) out.push_back(r->min);
      const size_t rank = out.size();
      out[rank - 2] = out[rank - 2] + element / kBulkCopySide;
      out[rank - 1] = out[rank - 1] + element % kBulkCopySide;
      return out;
    };
    return For::Make(
        turn, IndexConst(0), IndexConst(kElements / kWarpgroup), ForKind::kSerial,
        Store::Make(target->buffer, at(target), Load::Make(source->buffer, at(source))));
  }

  Stmt CopyOnBarrier(const CallFunc& call, const Var& step) {
    const Region& source = call.buffers[0];
    std::vector<Expr> scalars = call.scalars;
    const std::vector<Range>& box = source->ranges;
    Expr row = IndexConst(0);
    for (size_t i = 0; i + 1 < box.size(); ++i) row = row * source->buffer->shape[i] + box[i]->min;
    scalars.push_back(Simplify(row));
    scalars.push_back(box.back()->min);
    const Expr slot = Slot(step);
    const Region full = RegionNode::Make(full_, {RangeNode::Make(slot, IndexConst(1))});
    called_.insert(call.callee);
    return CallFunc::Make(call.callee, {source, InRing(call.buffers[1], slot), full},
                          std::move(scalars));
  }

  // ---- tensor maps ----

  void CheckSource(const std::string& callee, const Region& source) {
    const Buffer& b = source->buffer;
    const auto& params = func_->buffers;
    const auto inputs = params.end() - func_->num_outputs;
    const std::string what = callee + " of " + b->name + ": ";
    if (std::find(params.begin(), inputs, b) == inputs)
      return Refuse(what + "expected an input of the kernel");
    if (b->rank() < 2 || b->layout || !b->strides.empty())
      return Refuse(what + "expected matrices, row by row");
    begins_anywhere_ |= b->align < kKernelAlign;
    Analyzer analyzer;
    Learn(*func_, &analyzer);
    for (const Expr& e : b->shape) {
      const bool dim =
          std::any_of(func_->dims.begin(), func_->dims.end(), [&](const Var& d) { return d == e; });
      if (!AsInt(e) && (!dim || b->rank() > 2))
        Refuse(what + "expected sizes that are constants or, of one matrix, dims");
    }
    if (!IsZero(analyzer.Simplify(b->shape.back() * b->dtype.Bytes() % kKernelAlign)))
      Refuse(what + "expected rows of a multiple of 16 bytes");
    if (std::find(maps_.begin(), maps_.end(), b->name) == maps_.end()) maps_.push_back(b->name);
  }

  // In the order of the parameters.
  void SetMaps(Attrs* attrs) const {
    if (by_threads_) return;
    std::vector<std::string> names, sizes;
    for (const Buffer& b : func_->buffers) {
      if (std::find(maps_.begin(), maps_.end(), b->name) == maps_.end()) continue;
      names.push_back(b->name);
      // Of several matrices the rows of all.
      Expr rows = IndexConst(1);
      for (size_t i = 0; i + 1 < b->shape.size(); ++i) rows = Simplify(rows * b->shape[i]);
      for (const Expr& e : {rows, b->shape.back()}) {
        const auto size = AsInt(e);
        sizes.push_back(size ? std::to_string(*size) : As<VarNode>(e)->name);
      }
    }
    attrs->Set(kTensorMapsAttr, names);
    attrs->Set(kTensorSizesAttr, sizes);
  }

  // A parameter that is passed as a map is no memory for anybody else.
  void CheckMaps(const Stmt& body) {
    if (by_threads_) return;
    if (static_cast<int64_t>(maps_.size()) > kMostMaps)
      Refuse("more than " + std::to_string(kMostMaps) + " buffers are copied by the copy engine");
    auto mapped = [&](const Buffer& b) {
      return std::find(maps_.begin(), maps_.end(), b->name) != maps_.end() &&
             b->scope == Scope::kGlobal;
    };
    PreOrder(body, [&](const NodeRef& n) {
      Buffer used;
      if (const auto* load = As<Load>(n)) used = load->buffer;
      const auto* call = As<CallFunc>(n);
      for (size_t i = 0; call && i < call->buffers.size(); ++i) {
        if (!called_.count(call->callee) && mapped(call->buffers[i]->buffer))
          used = call->buffers[i]->buffer;
      }
      if (used && mapped(used))
        Refuse("buffer " + used->name + " is copied by the copy engine and read otherwise too");
      return true;
    });
  }

  const Func& func_;
  const Module& module_;
  const bool by_threads_;
  NameSupply names_;
  const ThreadNest nest_;
  const For* loop_ = nullptr;
  int64_t stages_ = 0, groups_ = 0;
  std::vector<Axis> axes_;
  Var lane_, group_;  // of the launch
  std::vector<Stmt> copies_, rest_;
  std::vector<Buffer> inside_;  // allocated in the loop, besides tiles
  std::vector<Tile> tiles_;
  Buffer full_, empty_;
  std::vector<std::string> maps_, refused_;
  bool begins_anywhere_ = false;
  std::set<std::string> called_;
};

}  // namespace

Module SplitRoles(const Module& module, const PassContext& context) {
  Module out = module;
  std::set<std::string> called;
  for (const auto& [name, func] : module.funcs) {
    if (func->func_kind != FuncKind::kKernel || !IsBound(*func)) continue;
    Splitter splitter(func, module, Splitter::Copying::kByEngine);
    const Func split = splitter.Run();
    for (const std::string& what : splitter.refused()) context.Error(*func, what);
    called.insert(splitter.called().begin(), splitter.called().end());
    if (!splitter.begins_anywhere() || !splitter.refused().empty()) {
      out.Add(split);
      continue;
    }
    std::string aligned = name + "_aligned";
    while (out.Find(aligned)) aligned += '_';
    out.Add(AlignedForm(*split, aligned));
    Splitter by_threads(func, module, Splitter::Copying::kByThreads);
    PrimFunc fields = *by_threads.Run();
    TN_CHECK(by_threads.refused().empty(), "{}", by_threads.refused().front());
    fields.attrs.Set(kAlignedFormAttr, aligned);
    out.Add(PrimFunc::Make(std::move(fields)));
  }
  for (const std::string& name : called) out.Add(WithBarrier(*module.Find(name)));
  if (!called.empty()) out.Add(Initializer());
  return out;
}

}  // namespace tenon
