// One walk that writes down, for each allocation, every access of it in program order, in a form in
// which boxes can be computed without knowing of blocks.
//
// Block variables are replaced by what they are bound to, so that indices speak of loops alone; the
// conditions on the way (ifs, the `where` of blocks, the arms of selects, negated for the else
// side) are collected as guards; a block's update of the element that its init has set is told
// apart from a read, since nothing from before flows through it. The block
//
//   for i in 0..n parallel {
//     for jo in 0..8 {
//       for b in 0..8 {
//         block C(vi: spatial = i, vj: spatial in 0..64 = jo * 8 + b) {
//           reads T[vi, jo * 8..+8]; writes C[vi, vj]
//           C[vi, vj] = T[vi, vj] + T[vi, jo * 8]
//         }
//
// gives T two uses that read: one with first = last = (i, jo * 8 + b), one with (i, jo * 8), both
// with the path i, jo, b, block, store. Regions that a block declares are not uses: they promise,
// and may promise more than happens. Of a call it is worked out whether the callee writes all of an
// operand without looking at it (WritesWhole), which makes the call as good as a nest of stores.

#include "dependence/uses.h"

#include <algorithm>

#include "arith/conditions.h"
#include "dependence/strides.h"
#include "ir/visit.h"
#include "loop/warpgroup.h"

namespace tenon {

namespace {

using LoopEnds = std::unordered_map<const For*, Expr>;

// A block that runs where its loops' variables are below some ends: false where it says more.
bool AddEnds(const Expr& where, const std::unordered_map<const VarNode*, const For*>& loops,
             LoopEnds* ends) {
  if (!where) return true;
  for (const Expr& c : Conjuncts(where)) {
    const auto* less = As<Binary>(c);
    if (!less || less->op != BinaryOp::kLt) return false;
    auto it = loops.find(As<VarNode>(less->lhs));
    const bool fixed = std::none_of(loops.begin(), loops.end(), [&](const auto& entry) {
      return UsesVar(less->rhs, entry.first);
    });
    if (it == loops.end() || !fixed) return false;
    Expr& end = ends->try_emplace(it->second, it->second->extent).first->second;
    end = Min(end, less->rhs);
  }
  return true;
}

// Whether a function, called with these values of its dims and scalars, stores every element of a
// parameter and looks at none: one nest of loops that start from 0 and run over its dims.
bool WritesWhole(const PrimFunc& f, const BufferNode& param, const VarMap& values) {
  std::unordered_map<const VarNode*, const For*> loops;  // that a variable runs over
  LoopEnds ends;
  Stmt at = f.body;
  while (at) {
    if (const auto* loop = As<For>(at); loop && IsZero(loop->min)) {
      loops[loop->var.get()] = loop;
      at = loop->body;
      continue;
    }
    const auto* block = As<Block>(at);
    if (!block || block->init || !AddEnds(block->where, loops, &ends)) break;
    for (const IterVar& iter : block->iters) {
      auto it = loops.find(As<VarNode>(iter->binding));
      if (it != loops.end()) loops[iter->var.get()] = it->second;
    }
    at = block->body;
  }
  const auto* store = As<Store>(at);
  if (!store || store->buffer.get() != &param || store->mask) return false;
  if (UsesBuffer(store->value, &param)) return false;
  std::unordered_set<const Node*> used;
  for (size_t d = 0; d < store->indices.size(); ++d) {
    auto it = loops.find(As<VarNode>(store->indices[d]));
    if (it == loops.end() || !used.insert(it->second).second) return false;
    auto end = ends.find(it->second);
    const Expr count = end == ends.end() ? it->second->extent : end->second;
    if (StructuralEqual(count, param.shape[d])) continue;
    if (!Analyzer().CanProve(Substitute(Le(param.shape[d], count), values))) return false;
  }
  // A loop that runs less often, and over no dimension, may leave out everything.
  return std::all_of(ends.begin(), ends.end(),
                     [&](const auto& entry) { return used.count(entry.first) != 0; });
}

VarMap ValuesOf(const CallFunc& call, const PrimFunc& callee) {
  std::vector<Var> params = callee.dims;
  params.insert(params.end(), callee.scalars.begin(), callee.scalars.end());
  VarMap out;
  for (size_t i = 0; i < std::min(params.size(), call.scalars.size()); ++i) {
    out[params[i].get()] = call.scalars[i];
  }
  return out;
}

// The walk. At every node `path_`, `guards_` and `bindings_` are those of the statements around it;
// a use copies them, so it stays true when the walk goes on.
class UseFinder final : public ChildVisitor {
 public:
  explicit UseFinder(const Module& module) : module_(module) {}

  std::vector<AllocUses> operator()(const PrimFunc& func) {
    VisitChild(func.body, FieldRole::kChild);
    return std::move(found_);
  }

 private:
  void VisitChild(const NodeRef& child, FieldRole role) override {
    if (role == FieldRole::kBinds) return;
    if (!IsA<StmtNode>(child)) return Expressions(child);
    path_.push_back(As<StmtNode>(child));
    if (const auto* block = As<Block>(child)) {
      OnBlock(*block);
    } else {
      OnStmt(child);
    }
    path_.pop_back();
  }

  void OnStmt(const NodeRef& stmt) {
    arms_ = 0;
    if (const auto* alloc = As<Alloc>(stmt)) {
      index_[alloc->buffer.get()] = found_.size();
      found_.push_back({alloc, path_, {}});
    }
    if (const auto* node = As<If>(stmt)) {
      Expressions(node->condition);
      Guarded(node->condition, node->then_body);
      if (node->else_body) Guarded(Not(node->condition), node->else_body);
      return;
    }
    if (const auto* store = As<Store>(stmt)) {
      // The value is read before the element is written.
      Expressions(store->value, store);
      for (const Expr& i : store->indices) Expressions(i);
      if (store->mask) Expressions(store->mask);
      return Access(store->buffer, store->indices, false, true);
    }
    if (const auto* call = As<CallFunc>(stmt)) {
      const Func callee = module_.Find(call->callee);
      const VarMap values = callee ? ValuesOf(*call, *callee) : VarMap();
      for (size_t i = 0; i < call->buffers.size(); ++i) {
        const bool fills = callee && i < callee->buffers.size() &&
                           WritesWhole(*callee, *callee->buffers[i], values);
        Box(call->buffers[i], !fills, true, true);
        if (fills) MarkFilled(call->buffers[i]->buffer);
        if (callee && i < callee->buffers.size() && IsTile(*callee->buffers[i]))
          MarkTile(call->buffers[i]->buffer);
        if (callee && StrideDims(*call, *callee, i)) MarkTold(call->buffers[i]->buffer);
      }
      for (const Expr& e : call->scalars) Expressions(e);
      return;
    }
    if (const auto* copy = As<Copy>(stmt)) {
      Box(copy->src, true, false, false);
      return Box(copy->dst, false, true, false);
    }
    if (const auto* atomic = As<Atomic>(stmt)) Access(atomic->buffer, atomic->indices, true, true);
    stmt->VisitChildren(*this);
  }

  void Guarded(const Expr& condition, const Stmt& body) {
    guards_.push_back(Outside(condition));
    VisitChild(body, FieldRole::kChild);
    guards_.pop_back();
  }

  void OnBlock(const Block& block) {
    for (const IterVar& iter : block.iters) bindings_[iter->var.get()] = Outside(iter->binding);
    if (block.where) {
      Expressions(block.where);
      guards_.push_back(Outside(block.where));
    }
    const Block* outer = std::exchange(block_, &block);
    // Regions are promises, not accesses.
    if (block.init) {
      in_init_ = true;
      VisitChild(block.init, FieldRole::kChild);
      in_init_ = false;
    }
    VisitChild(block.body, FieldRole::kChild);
    block_ = outer;
    if (block.where) guards_.pop_back();
  }

  // Loads in an expression; `store`: of the value that it stores. An arm of a choice is looked at
  // where the condition says so.
  void Expressions(const NodeRef& root, const Store* store = nullptr) {
    PreOrder(root, [&](const NodeRef& n) {
      const auto* select = As<Select>(n);
      if (select && select->condition->dtype.IsScalar() && arms_ < kMostArms) {
        Expressions(select->condition, store);
        Arm(select->condition, select->on_true, store);
        Arm(Not(select->condition), select->on_false, store);
        return false;
      }
      if (const auto* load = As<Load>(n)) {
        bool update = store && load->buffer == store->buffer && IsUpdate(*load, *store);
        Access(load->buffer, load->indices, true, false, update);
      }
      if (const auto* call = As<Call>(n); call && call->intrinsic == Intrinsic::kBufferData) {
        if (const auto* load = As<Load>(call->args[0])) Escape(load->buffer);
      }
      return n->kind != NodeKind::kBuffer;
    });
  }

  void Arm(const Expr& condition, const Expr& value, const Store* store) {
    guards_.push_back(Outside(condition));
    ++arms_;
    Expressions(value, store);
    guards_.pop_back();
  }

  // The block's init has written the element that its body updates.
  bool IsUpdate(const Load& load, const Store& store) const {
    if (!block_ || !block_->init) return false;
    for (size_t i = 0; i < load.indices.size(); ++i) {
      if (!StructuralEqual(load.indices[i], store.indices[i])) return false;
    }
    return true;
  }

  void Access(const Buffer& buffer, const std::vector<Expr>& indices, bool reads, bool writes,
              bool update = false) {
    BufferUse* use = NewUse(buffer, reads, writes);
    if (!use) return;
    for (const Expr& i : indices) {
      const auto* ramp = As<Ramp>(i);
      Expr first = Outside(ramp ? ramp->base : i);
      if (!ramp && i->dtype.IsVector()) {
        use->no_box = true;
        first = IndexConst(0);
      }
      use->first.push_back(first);
      use->last.push_back(ramp ? Outside(ramp->base + ramp->stride * int64_t{ramp->dtype.lanes - 1})
                               : first);
    }
    use->updates = update;
    if (update || (writes && in_init_)) {
      for (const IterVar& iter : block_->iters) {
        if (iter->iter_kind != IterKind::kSpatial)
          use->reduce_bindings.push_back(Outside(iter->binding));
      }
    }
  }

  void Box(const Region& region, bool reads, bool writes, bool in_call) {
    for (const Range& r : region->ranges) {
      Expressions(r->min);
      Expressions(r->extent);
    }
    BufferUse* use = NewUse(region->buffer, reads, writes);
    if (!use) return;
    for (const Range& r : region->ranges) {
      use->first.push_back(Outside(r->min));
      use->last.push_back(Outside(r->min + r->extent - 1));
    }
    use->in_call = in_call;
  }

  void Escape(const Buffer& buffer) {
    if (BufferUse* use = NewUse(buffer, true, true)) {
      for (const Expr& d : buffer->shape) {
        use->first.push_back(IndexConst(0));
        use->last.push_back(d - 1);
      }
      use->in_call = true;
    }
  }

  void MarkFilled(const Buffer& buffer) {
    auto it = index_.find(buffer.get());
    if (it != index_.end()) found_[it->second].uses.back().fills = true;
  }

  void MarkTile(const Buffer& buffer) {
    auto it = index_.find(buffer.get());
    if (it != index_.end()) found_[it->second].uses.back().as_tile = true;
  }

  void MarkTold(const Buffer& buffer) {
    auto it = index_.find(buffer.get());
    if (it != index_.end()) found_[it->second].uses.back().told = true;
  }

  BufferUse* NewUse(const Buffer& buffer, bool reads, bool writes) {
    auto it = index_.find(buffer.get());
    if (it == index_.end()) return nullptr;
    BufferUse& use = found_[it->second].uses.emplace_back();
    use.path = path_;
    use.reads = reads, use.writes = writes;
    use.guards = guards_;
    return &use;
  }

  Expr Outside(const Expr& e) const { return Substitute(e, bindings_); }

  const Module& module_;
  std::vector<AllocUses> found_;
  std::unordered_map<const BufferNode*, size_t> index_;
  std::vector<const StmtNode*> path_;
  VarMap bindings_;
  std::vector<Expr> guards_;
  const Block* block_ = nullptr;
  bool in_init_ = false;
  // Of one statement, so many arms are looked at by themselves: what they share is looked at anew.
  static constexpr int kMostArms = 16;
  int arms_ = 0;
};

}  // namespace

std::vector<AllocUses> UsesOfAllocs(const PrimFunc& func, const Module& module) {
  return UseFinder(module)(func);
}

}  // namespace tenon
