// pad_einsum: a sum of products runs over a larger domain, with zeros around its operands.
//
// A product of sizes that no tile divides has guards in its innermost loops. Zeros change no sum,
// so the operands can be copied into larger buffers with zeros around, the result computed whole,
// and the wanted part copied out; the guards then stand in the copies alone. With
// pad_einsum("C", [4, 8, 4]) of C[7, 10] = A[7, 6] * B[6, 10]
//
//   for i in 0..7, j in 0..10, k in 0..6 {
//     block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) { … }
//   }
//
// becomes (the copy of B left out)
//
//   for A.pad.ax0 in 0..8, A.pad.ax1 in 0..8 {
//     block A.pad(…) {
//       A.pad[…] = select(A.pad.v0 < 7 && A.pad.v1 < 6, A[A.pad.v0, A.pad.v1], 0f32)
//     }
//   }
//   for i in 0..8, j in 0..16, k in 0..8 {
//     block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) {
//       reads A.pad[vi, vk], B.pad[vk, vj]; writes C.pad[vi, vj]
//       …
//   for C.pad.ax0 in 0..7, C.pad.ax1 in 0..10 { block C.pad(…) { C[…] = C.pad[…] } }
//
// It is checked that the block is such a sum, and that what it adds up is zero for certain,
// infinities and NaNs included, where the padded operands are.

#include <algorithm>
#include <optional>

#include "ir/visit.h"
#include "loop/reducer.h"
#include "schedule/primitive/einsum.h"
#include "schedule/primitive/primitives.h"

namespace tenon::primitive {

namespace {

// One padding. The wanted elements of the result get the terms that they had, and zeros; the others
// are never copied out.
class Padder {
 public:
  Padder(State& s, Body* body, const Place& block, const Ints& padding)
      : s_(s), body_(body), place_(block), block_(*block.block()), padding_(padding) {}

  Result Run() {
    TN_ASSIGN_OR_RETURN(nest_, PlainNestOf(place_));
    if (auto error = FindExtents()) return *error;
    if (auto error = CheckRegions()) return *error;
    if (auto error = CheckValue()) return *error;
    Learn(*s_.func, &analyzer_);
    Learn(place_.path, &analyzer_);
    Build();
    return made_;
  }

 private:
  std::optional<Diagnostic> FindExtents() {
    if (padding_.size() != block_.iters.size()) {
      return OfBlock(block_.name, "it has " + std::to_string(block_.iters.size()) +
                                      " variables, got " + std::to_string(padding_.size()) +
                                      " multiples");
    }
    bool any = false;
    for (size_t i = 0; i < padding_.size(); ++i) {
      const IterVar& v = block_.iters[i];
      if (padding_[i] < 1) {
        return OfBlock(block_.name,
                       "expected positive multiples, got " + std::to_string(padding_[i]));
      }
      if (v->iter_kind == IterKind::kOrdered) {
        return OfBlock(block_.name, "its variable " + v->var->name + " is ordered");
      }
      Expr extent = Simplify(CeilDiv(v->extent, IndexConst(padding_[i])) * padding_[i]);
      if (StructuralEqual(extent, v->extent)) continue;
      extents_[v->var.get()] = extent;
      any = true;
    }
    if (!any) return OfBlock(block_.name, "its domain is a multiple already");
    return std::nullopt;
  }

  bool Grows(const Expr& index) const {
    const auto* var = As<VarNode>(index);
    return var != nullptr && extents_.count(var) != 0;
  }

  // Every index is one variable (or does not grow), so that what is padded is a box at the end.
  std::optional<Diagnostic> CheckRegions() {
    if (!IsA<Store>(block_.body)) return OfBlock(block_.name, "its body is not a single store");
    if (block_.writes.size() != 1) return OfBlock(block_.name, "it writes several regions");
    std::vector<Region> all = ReadsOf(block_);
    all.push_back(block_.writes[0]);
    for (const Region& r : all) {
      for (const Range& range : r->ranges) {
        bool single = IsOne(range->extent) && (As<VarNode>(range->min) || AsInt(range->min));
        if (!single) {
          return OfBlock(block_.name,
                         "it touches " + r->buffer->name + " at more than single variables");
        }
      }
    }
    for (const Region& r : all) {
      for (const Region& other : all) {
        if (r->buffer != other->buffer || (!Grows(r) && !Grows(other))) continue;
        if (StructuralEqual(r, other)) continue;
        return OfBlock(block_.name, "it touches " + r->buffer->name + " in several ways");
      }
    }
    const Buffer& out = block_.writes[0]->buffer;
    if (body_->Writers(out).size() != 1) {
      return OfBlock(block_.name, "another block writes " + out->name + " too");
    }
    if (!block_.init && !ReadsOut().empty()) {
      return OfBlock(block_.name, "it updates " + out->name + " in place");
    }
    return std::nullopt;
  }

  std::vector<Region> ReadsOut() const {
    std::vector<Region> reads = ReadsOf(block_);
    std::erase_if(reads, [&](const Region& r) { return r->buffer != block_.writes[0]->buffer; });
    return reads;
  }

  // Zero for certain, infinities and NaNs included, where loads at padded reduce variables are 0.
  bool IsZeroThere(const Expr& e) const {
    if (const auto* load = As<Load>(e)) {
      return std::any_of(load->indices.begin(), load->indices.end(),
                         [&](const Expr& i) { return Grows(i) && reduce_.count(As<VarNode>(i)); });
    }
    if (const auto* cast = As<CastExpr>(e)) return IsZeroThere(cast->value);
    const auto* b = As<Binary>(e);
    if (b == nullptr) return IsZero(e);
    if (b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub) {
      return IsZeroThere(b->lhs) && IsZeroThere(b->rhs);
    }
    bool left = IsZeroThere(b->lhs), right = IsZeroThere(b->rhs);
    bool exact = !b->dtype.IsFloat();  // 0 * infinity is no 0
    return b->op == BinaryOp::kMul && (exact ? left || right : left && right);
  }

  std::optional<Diagnostic> CheckValue() {
    for (const IterVar& v : block_.iters) {
      if (v->iter_kind == IterKind::kReduce && extents_.count(v->var.get())) {
        reduce_.insert(v->var.get());
      }
    }
    if (reduce_.empty()) return std::nullopt;
    std::optional<Reduction> reduction = DetectReducer(block_);
    if (!reduction || reduction->reducer != FindReducer("add")) {
      return OfBlock(block_.name, "its reduction is not a sum, which zeros leave alone");
    }
    // Every padded variable by itself must make the term zero.
    auto all = reduce_;
    for (const VarNode* v : all) {
      reduce_ = {v};
      if (!IsZeroThere(reduction->values[0])) {
        return OfBlock(block_.name, "zeros at the end of " + v->name +
                                        " are not known to add nothing to its sum");
      }
    }
    reduce_ = all;
    return std::nullopt;
  }

  // ---- Code ----

  Buffer Padded(const Region& r) {
    std::vector<Expr> shape = r->buffer->shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (Grows(r->ranges[d]->min)) shape[d] = extents_.at(As<VarNode>(r->ranges[d]->min));
    }
    std::string name = body_->NewBufferName(r->buffer->name + ".pad");
    const Scope scope = r->buffer->scope == Scope::kConst ? Scope::kGlobal : r->buffer->scope;
    return BufferNode::Make(name, r->buffer->dtype, shape, scope);
  }

  bool Grows(const Region& r) const {
    return std::any_of(r->ranges.begin(), r->ranges.end(),
                       [&](const Range& range) { return Grows(range->min); });
  }

  // What an index runs over before it grows: one of the block's variables, or one element.
  Range DomainOfIndex(const Expr& index) const {
    for (const IterVar& v : block_.iters) {
      if (v->var.get() == As<VarNode>(index)) return RangeNode::Make(v->min, v->extent);
    }
    return RangeNode::Make(index, IndexConst(1));
  }

  // to[v…] = from[v…] where the block touches `region`; when `pad`, also where it will, with zeros.
  Stmt CopyNest(const Buffer& from, const Buffer& to, const Region& region, bool pad) {
    Block copy;
    copy.name = body_->NewBlockName(pad ? to->name : from->name);
    std::vector<Expr> at;
    std::vector<Range> read;
    Expr inside;
    for (size_t d = 0; d < to->shape.size(); ++d) {
      Var v = VarNode::Make(body_->NewVarName(copy.name + ".v" + std::to_string(d)));
      at.push_back(v);
      const Range own = DomainOfIndex(region->ranges[d]->min);
      const bool beyond = pad && Grows(region->ranges[d]->min);
      copy.iters.push_back(IterVarNode::Make(v, IterKind::kSpatial, own->min,
                                             beyond ? to->shape[d] : own->extent, own->min));
      if (beyond) inside = AndAlso(inside, Lt(v, own->extent));
      // Beyond the end, an empty range is read.
      Expr low = beyond ? Min(v, own->extent) : Expr(v);
      Expr count = beyond ? Min(v + 1, own->extent) - low : IndexConst(1);
      read.push_back(RangeNode::Make(low, count));
    }
    Expr value = Load::Make(from, at);
    if (inside) value = Select::Make(inside, value, MakeConst(from->dtype, 0));
    copy.reads = {RegionNode::Make(from, std::move(read))};
    copy.writes = {PointRegion(to, at)};
    copy.body = Store::Make(to, at, value);
    made_.push_back(copy.name);
    return MakeNest(copy, WholeDomain(copy), Widen::kNo, body_, &analyzer_);
  }

  void Build() {
    std::vector<Stmt> stmts;
    std::vector<Buffer> allocs;
    std::unordered_map<const BufferNode*, Buffer> buffers;
    const Buffer& out = block_.writes[0]->buffer;
    for (const Region& r : block_.reads) {
      if (r->buffer == out || !Grows(r) || buffers.count(r->buffer.get())) continue;
      allocs.push_back(Padded(r));
      buffers[r->buffer.get()] = allocs.back();
      stmts.push_back(CopyNest(r->buffer, allocs.back(), r, true));
    }
    size_t center = stmts.size();
    if (Grows(block_.writes[0])) {
      allocs.push_back(Padded(block_.writes[0]));
      buffers[out.get()] = allocs.back();
    }
    Stmt nest = MapStmts(nest_, [&](const Stmt& s) { return Grown(s); });
    stmts.insert(stmts.begin() + static_cast<ptrdiff_t>(center), SubstituteBuffers(nest, buffers));
    if (buffers.count(out.get()))
      stmts.push_back(CopyNest(allocs.back(), out, block_.writes[0], false));
    Stmt root = Edit(body_->root(), {{nest_.get(), Seq::Make(std::move(stmts))}});
    for (const Buffer& b : allocs) root = AddAlloc(b, root);
    s_.SetBody(root);
  }

  Stmt Grown(const Stmt& s) const {
    if (const auto* loop = As<For>(s)) {
      for (const IterVar& v : block_.iters) {
        auto it = extents_.find(v->var.get());
        if (v->binding != loop->var || it == extents_.end()) continue;
        return For::Make(loop->var, loop->min, it->second, loop->for_kind, loop->body, loop->attrs);
      }
      return s;
    }
    const auto* block = As<Block>(s);
    if (block == nullptr || block->name != block_.name) return s;
    Block copy = *block;
    for (IterVar& v : copy.iters) {
      auto it = extents_.find(v->var.get());
      if (it == extents_.end()) continue;
      v = IterVarNode::Make(v->var, v->iter_kind, v->min, it->second, v->binding);
    }
    return Block::Make(std::move(copy));
  }

  State& s_;
  Body* body_;
  const Place& place_;
  const Block& block_;
  const Ints& padding_;
  Analyzer analyzer_;
  Stmt nest_;
  std::unordered_map<const VarNode*, Expr> extents_;  // of the variables that grow
  std::unordered_set<const VarNode*> reduce_;         // those of them that reduce
  Names made_;
};

}  // namespace

Result PadEinsum(State& s, const std::string& block, const Ints& padding) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedBlock(block));
  return Padder(s, &body, *place, padding).Run();
}

}  // namespace tenon::primitive
