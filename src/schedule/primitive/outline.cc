// outline: a piece of code becomes a function of its own, written so that equal pieces become the
// same function.
//
// What comes from around the piece is told apart from what it does: buffers are passed as the
// regions touched and indexed from their corners; iteration variables start anew; the trip counts
// of serial reductions, strides, and whatever else depends on the surroundings become parameters.
// What is left depends on the code alone: two tiles of one shape, accumulating over any length in
// matrices of any size, are one function.
//
//   for i.p0 in 0..4 {
//     for j.p0 in 0..10, k.p0 in 0..6 {
//       block C.p0(vi.p0: spatial = i.p0, vj.p0: spatial = j.p0, vk.p0: reduce = k.p0) { … }
//     }
//   }
//
// becomes with outline("j.p0", "rows")
//
//   for i.p0 in 0..4 {
//     call @rows(A[i.p0, 0..6], B, C[i.p0, 0..10]; 6)
//   }
//
//   func @rows<n_k.p0>(A: f32[1, n_k.p0], B: f32[n_k.p0, 10], out C: f32[1, 10]) kind device {
//     for j.p0 in 0..10, k.p0 in 0..n_k.p0 {
//       block b0(vi.p0: spatial in 0..1 = 0, vj.p0: spatial = j.p0, vk.p0: reduce = k.p0) { … }
//     }
//   }
//
// and the same of the rows 4..7 finds that function there, and calls it.

#include <algorithm>
#include <memory>

#include "ir/visit.h"
#include "loop/outer_values.h"
#include "schedule/analysis/conflicts.h"
#include "schedule/analysis/nest.h"
#include "schedule/primitive/move.h"
#include "schedule/primitive/primitives.h"

namespace tenon::primitive {

namespace {

using LoopList = std::vector<const For*>;
constexpr const char* kOutlined = "outlined";

// A buffer of the piece: where its region starts, and what stands for it inside. Where the region
// is no box of memory with regular strides (it runs over several blocks of a layout), the piece
// sees the buffer's storage instead, with a dimension for each that the layout has.
struct Param {
  Buffer outer;
  std::vector<Expr> mins;
  std::vector<Expr> extents;
  bool written = false;
  bool scratch = false;  // used by the piece alone: allocated inside
  Buffer inner;
  Buffer storage = nullptr;  // the outer buffer without its layout
  std::vector<Expr> storage_mins = {};
  std::vector<Expr> storage_extents = {};

  const std::vector<Expr>& corner() const { return storage ? storage_mins : mins; }
};

// One piece that becomes a function. What is left in the piece mentions only its own variables and
// parameters; each parameter has the value that the call passes.
class Outliner {
 public:
  /// With `exact`, trip counts stay as they are.
  Outliner(State& s, Body* body, const Place& place, bool exact)
      : s_(s), body_(body), place_(place), exact_(exact), values_([body](const std::string& base) {
          return body->NewVarName(base);
        }) {}

  Result Run(const std::string& name) {
    if (auto error = Check()) return *error;
    Learn(*s_.func, &analyzer_);
    std::vector<Stmt> path = place_.path;
    path.push_back(place_.stmt);  // so that a condition right around it is known to hold
    Learn(path, &analyzer_);
    hoisted_ = CommonGuards();
    for (const Expr& c : hoisted_) analyzer_.Assume(c);
    LearnPositiveSizes(path);
    FreeTripCounts();
    FindParams();
    for (Param& p : params_) {
      if (auto error = MakeInner(&p)) return *error;
    }
    TN_ASSIGN_OR_RETURN(Stmt code, Rewrite());
    Func callee = MakeCallee(code);
    std::string chosen = AddToModule(callee, name);
    Finish(chosen);
    return Names{chosen};
  }

 private:
  std::optional<Diagnostic> Check() {
    if (place_.inner) return Because("it is inside a block");
    if (body_->HasStrayUnder(place_.stmt.get())) {
      return Because("it holds statements that are in no block");
    }
    bool calls = false;
    PreOrder(place_.stmt, [&](const NodeRef& n) {
      calls |= IsA<CallFunc>(n);
      return IsA<StmtNode>(n) && !calls;
    });
    if (calls) return Because("it holds a call, which knows the strides of what it is passed");
    for (const Place* p : body_->BlocksUnder(place_.stmt.get())) {
      for (const Place& other : body_->blocks()) {
        if (other.inner && other.IsUnder(p->stmt.get())) {
          return OfBlock(p->block()->name, "it holds another block");
        }
      }
      if (auto error = NotClosed(*p)) return error;
      const Block& block = *p->block();
      for (const IterVar& v : block.iters) {
        bool outside = v->iter_kind == IterKind::kReduce && UsesOuterLoop(v->binding);
        if (block.init && outside) {
          return OfBlock(block.name, "its reduction over " + v->var->name +
                                         " runs outside too; decompose_reduction first");
        }
      }
    }
    return std::nullopt;
  }

  // What the surroundings alone decide, for all of the piece: whether it is called.
  std::vector<Expr> CommonGuards() const {
    std::vector<const Place*> blocks = body_->BlocksUnder(place_.stmt.get());
    std::vector<Expr> out;
    if (!blocks.empty()) out = GuardsAround(*blocks[0], place_.path);
    for (const Place* p : blocks) {
      const std::vector<Expr> own = GuardsAround(*p, place_.path);
      std::erase_if(out, [&](const Expr& c) { return !IsAmong(c, own); });
    }
    return out;
  }

  // What is above an index is positive: where the row r < n * 2 is there, n is no 0, and so r % n
  // is a place below n. A loop that is gone through has a turn.
  void LearnPositiveSizes(const std::vector<Stmt>& path) {
    std::vector<Expr> guards = hoisted_;
    for (size_t i = 0; i + 1 < path.size(); ++i) {
      const auto* loop = As<For>(path[i]);
      if (loop != nullptr && !AsInt(loop->extent))
        analyzer_.Assume(Ge(loop->extent, IndexConst(1)));
      const auto* branch = As<If>(path[i]);
      if (branch != nullptr && path[i + 1] == branch->then_body) {
        const std::vector<Expr> own = Conjuncts(branch->condition);
        guards.insert(guards.end(), own.begin(), own.end());
      }
    }
    for (const Expr& guard : guards) {
      const auto* less = As<Binary>(guard);
      if (less != nullptr && less->op == BinaryOp::kLt && less->lhs->dtype.IsIndex() &&
          analyzer_.CanProve(Ge(less->lhs, IndexConst(0)))) {
        analyzer_.Assume(Ge(less->rhs, IndexConst(1)));
      }
    }
  }

  static bool IsAmong(const Expr& e, const std::vector<Expr>& list) {
    return std::any_of(list.begin(), list.end(),
                       [&](const Expr& other) { return StructuralEqual(e, other); });
  }

  bool UsesOuterLoop(const Expr& e) const {
    for (const For* loop : place_.Loops()) {
      if (UsesVar(e, loop->var.get())) return true;
    }
    return false;
  }

  // Loops count from 0; serial loops over nothing but reductions get a parameter as their trip
  // count.
  void FreeTripCounts() {
    piece_ = MapStmts(place_.stmt, [&](const Stmt& raw) -> Stmt {
      Stmt s = FromZero(raw);
      const auto* loop = As<For>(s);
      if (exact_ || loop == nullptr || loop->for_kind != ForKind::kSerial) return s;
      if (IsOne(loop->extent)) return s;
      if (!AsInt(loop->extent) || !OnlyReduces(As<For>(raw)->var)) return s;
      Var n = values_.NewDim("n_" + loop->var->name, loop->extent);
      analyzer_.BindInterval(n, {1, Interval::kPosInf});
      return For::Make(loop->var, loop->min, n, loop->for_kind, loop->body, loop->attrs);
    });
    // The places of the piece's blocks, with the new loops around them.
    PrimFunc copy = *s_.func;
    copy.body = Edit(body_->root(), {{place_.stmt.get(), piece_}});
    freed_ = std::make_unique<Body>(PrimFunc::Make(std::move(copy)));
    for (const Place* p : freed_->BlocksUnder(piece_.get())) {
      for (const For* loop : PieceLoops(*p)) {
        values_.AddInner(loop->var.get());
        Learn(*loop, &analyzer_);
      }
    }
  }

  Stmt FromZero(const Stmt& s) {
    const auto* loop = As<For>(s);
    if (loop == nullptr || IsZero(loop->min)) return s;
    Var var = VarNode::Make(body_->NewVarName(loop->var->name + ".z"));
    Stmt body = Substitute(loop->body, VarMap{{loop->var.get(), var + loop->min}});
    return For::Make(var, IndexConst(0), loop->extent, loop->for_kind, body, loop->attrs,
                     loop->thread);
  }

  bool OnlyReduces(const Var& var) const {
    bool reduces = false, otherwise = false;
    for (const Place* p : body_->BlocksUnder(place_.stmt.get())) {
      if (p->block()->where && UsesVar(p->block()->where, var.get())) return false;
      for (const IterVar& v : p->block()->iters) {
        if (!UsesVar(v->binding, var.get())) continue;
        (v->iter_kind == IterKind::kReduce ? reduces : otherwise) = true;
      }
    }
    return reduces && !otherwise;
  }

  LoopList PieceLoops(const Place& block) const {
    LoopList loops = block.LoopsInside(piece_.get());
    if (const auto* loop = As<For>(piece_)) loops.insert(loops.begin(), loop);
    return loops;
  }

  // ---- Buffers ----

  void FindParams() {
    for (const Access& a : freed_->AccessesUnder(piece_.get())) {
      const Buffer& b = a.region->buffer;
      if (UsesInside(b)) continue;
      Box box = TouchedBox(a.region, *a.place->block(), DomainOf(PieceLoops(*a.place), &analyzer_),
                           &analyzer_);
      auto it = std::find_if(boxes_.begin(), boxes_.end(),
                             [&](const auto& entry) { return entry.first == b; });
      if (it == boxes_.end()) {
        boxes_.emplace_back(b, box);
        params_.push_back({b, {}, {}, false, false, nullptr});
        it = boxes_.end() - 1;
      } else {
        it->second = Union(it->second, box, &analyzer_);
      }
      params_[static_cast<size_t>(it - boxes_.begin())].written |= a.write;
    }
    for (size_t i = 0; i < params_.size(); ++i) {
      Param& p = params_[i];
      p.scratch = body_->IsAlloc(p.outer) && !p.outer->layout &&
                  AllUsesUnder(*body_, p.outer, place_.stmt.get()) &&
                  IsCoveredIn(*body_, p.outer, place_.stmt.get(), true);
      for (size_t d = 0; d < boxes_[i].second.size(); ++d) {
        const ExprInterval& range = boxes_[i].second[d];
        Expr extent = Length(range, &analyzer_);
        bool empty = extent && AsInt(extent).value_or(1) < 1;  // declared, never touched
        bool whole = !extent || empty || UsesAnyVar(extent, values_.inner());
        const Expr& size = p.outer->shape[d];
        if (!whole && !p.scratch) {
          // A guarded piece's box may reach beyond the buffer; what the callee is told does not.
          Expr end = Substitute(range.min + extent, FreedTripCounts());
          if (!analyzer_.CanProve(Le(end, size))) {
            extent = analyzer_.Simplify(Max(Min(extent, size - range.min), IndexConst(0)));
          }
          whole = !analyzer_.CanProve(Ge(range.min, IndexConst(0)));
        }
        // Scratch is no larger inside than it was outside.
        if (!whole && p.scratch) whole = !analyzer_.CanProve(Le(extent, size));
        p.mins.push_back(whole ? IndexConst(0) : range.min);
        p.extents.push_back(whole ? size : extent);
      }
    }
    // What is written comes last, as outputs do.
    std::stable_partition(params_.begin(), params_.end(),
                          [](const Param& p) { return !p.written; });
  }

  VarMap FreedTripCounts() const {
    VarMap out;
    for (const OuterValues::Value& v : values_.dims()) out[v.var.get()] = v.outer;
    return out;
  }

  // Allocated in the piece.
  bool UsesInside(const Buffer& b) const {
    bool inside = false;
    PreOrder(piece_, [&](const NodeRef& n) {
      const auto* alloc = As<Alloc>(n);
      inside |= alloc != nullptr && alloc->buffer == b;
      return IsA<StmtNode>(n);
    });
    return inside;
  }

  // A size or stride inside: itself when constant, else a dim.
  Expr DimFor(const Expr& e, const std::string& base) {
    if (AsInt(e)) return e;
    for (const OuterValues::Value& v : values_.dims()) {
      if (v.var == e) return e;  // a freed trip count
    }
    return values_.NewDim(base, e);
  }

  std::optional<Diagnostic> MakeInner(Param* p) {
    const Buffer& outer = p->outer;
    Expected<std::vector<Expr>> found =
        p->scratch ? std::vector<Expr>() : StridesOf(outer, p->mins, p->extents);
    if (!found && outer->layout && SeesStorage(p)) {
      found = StridesOf(p->storage, p->storage_mins, p->storage_extents);
    }
    if (!found) return found.errors()[0];
    std::vector<Expr> shape;
    for (const Expr& e : p->storage ? p->storage_extents : p->extents) {
      shape.push_back(DimFor(e, "n_" + outer->name));
    }
    if (p->scratch) {
      p->inner = BufferNode::Make(outer->name, outer->dtype, shape, outer->scope, nullptr, {},
                                  outer->align);
      return std::nullopt;
    }
    std::vector<Expr> strides = std::move(*found);
    // Strides that a compact buffer of this shape has anyway are not worth a parameter.
    bool compact = true;
    Expr dense = IndexConst(1);
    for (size_t d = shape.size(); d-- > 0;) {
      bool same = IsOne(shape[d]) || analyzer_.CanProveEqual(strides[d], dense);
      if (same) {
        strides[d] = dense;
      } else {
        compact = false;
        strides[d] =
            IsOne(strides[d]) ? strides[d] : values_.NewDim("stride_" + outer->name, strides[d]);
      }
      dense = analyzer_.Simplify(dense * shape[d]);
    }
    if (compact) strides.clear();
    p->inner = BufferNode::Make(outer->name, outer->dtype, shape, outer->scope, nullptr, strides);
    return std::nullopt;
  }

  // Finds the box of storage that the piece touches. False where it is not known, or does not begin
  // with the first element of the region, which is what a call passes.
  bool SeesStorage(Param* p) {
    const Buffer& b = p->outer;
    const Buffer storage = BufferNode::Make(b->name, b->dtype, StorageExtents(b->shape, b->layout),
                                            b->scope, nullptr, b->strides, b->align);
    std::optional<Box> box;
    for (const Access& a : freed_->AccessesUnder(piece_.get())) {
      if (a.region->buffer != b) continue;
      const Block& block = *a.place->block();
      const std::optional<Region> region = InStorage(a.region, storage, BindingsOf(block));
      if (!region) return false;
      Box touched =
          TouchedBox(*region, block, DomainOf(PieceLoops(*a.place), &analyzer_), &analyzer_);
      box = box ? Union(*box, touched, &analyzer_) : touched;
    }
    if (!box) return false;
    const std::vector<Expr> first = ApplyLayout(b->layout, p->mins);
    for (size_t d = 0; d < box->size(); ++d) {
      const Expr extent = Length((*box)[d], &analyzer_);
      if (!extent || !AsInt(extent) || !analyzer_.CanProveEqual(first[d], (*box)[d].min)) {
        return false;
      }
      p->storage_mins.push_back((*box)[d].min);
      p->storage_extents.push_back(extent);
    }
    p->storage = storage;
    return true;
  }

  // A single element's place in storage; nullopt for larger regions.
  std::optional<Region> InStorage(const Region& region, const Buffer& storage,
                                  const VarMap& values) {
    std::vector<Expr> at;
    for (const Range& r : region->ranges) {
      if (!IsOne(r->extent)) return std::nullopt;
      at.push_back(Substitute(r->min, values));
    }
    std::vector<Range> ranges;
    for (const Expr& e : ApplyLayout(region->buffer->layout, at)) {
      ranges.push_back(RangeNode::Make(analyzer_.Simplify(e), IndexConst(1)));
    }
    return RegionNode::Make(storage, std::move(ranges));
  }

  // Elements between neighbours in each dimension of a box of the buffer, as it lies in memory.
  Expected<std::vector<Expr>> StridesOf(const Buffer& b, const std::vector<Expr>& mins,
                                        const std::vector<Expr>& sizes) {
    std::vector<Var> locals;
    std::vector<Expr> at;
    for (size_t d = 0; d < mins.size(); ++d) {
      locals.push_back(VarNode::Make("x" + std::to_string(d)));
      analyzer_.Bind(locals[d], IndexConst(0), sizes[d]);
      at.push_back(mins[d] + locals[d]);
    }
    std::vector<Expr> storage = ApplyLayout(b->layout, at);
    std::vector<Expr> extents = StorageExtents(b->shape, b->layout);
    Expr offset = IndexConst(0), stride = IndexConst(1);
    for (size_t d = storage.size(); d-- > 0;) {
      offset = offset + storage[d] * (b->strides.empty() ? stride : b->strides[d]);
      stride = analyzer_.Simplify(stride * extents[d]);
    }
    std::optional<AffineForm> form = DetectAffine(analyzer_.Simplify(offset), locals);
    if (!form) {
      return Because("the region of " + b->name +
                     " that it touches is not at regular strides in "
                     "memory");
    }
    std::vector<Expr> out;
    for (const Expr& c : form->coefficients) out.push_back(analyzer_.Simplify(c));
    return out;
  }

  // ---- Code ----

  // The piece in terms of its own variables and buffers.
  Expected<Stmt> Rewrite() {
    std::unordered_map<const Node*, Stmt> edits;
    int number = 0;
    for (const Place* p : freed_->BlocksUnder(piece_.get())) {
      Block block = LocalBlock(*p);
      block.name = "b" + std::to_string(number++);
      edits[p->stmt.get()] = Block::Make(std::move(block));
    }
    Stmt code = Edit(piece_, edits);
    code = MapStmts(code, [&](const Stmt& s) -> Stmt {
      const auto* loop = As<For>(s);
      if (loop == nullptr) return s;
      return For::Make(loop->var, values_.Abstract(loop->min), values_.Abstract(loop->extent),
                       loop->for_kind, loop->body, loop->attrs, loop->thread);
    });
    code = AbstractAllocs(code);
    for (const Param& p : params_) {
      if (p.scratch) code = Alloc::Make(p.inner, code);
    }
    return code;
  }

  // What is allocated in the piece has sizes that may come from outside.
  Stmt AbstractAllocs(const Stmt& code) {
    BufferMap buffers;
    PreOrder(code, [&](const NodeRef& n) {
      const auto* alloc = As<Alloc>(n);
      if (alloc == nullptr) return IsA<StmtNode>(n);
      const Buffer& b = alloc->buffer;
      std::vector<Expr> shape, strides;
      for (const Expr& e : b->shape) shape.push_back(values_.Abstract(e));
      for (const Expr& e : b->strides) strides.push_back(values_.Abstract(e));
      if (shape != b->shape || strides != b->strides) {
        buffers[b.get()] = BufferNode::Make(b->name, b->dtype, std::move(shape), b->scope,
                                            b->layout, std::move(strides), b->align);
      }
      return true;
    });
    return SubstituteBuffers(code, buffers);
  }

  // A block with iteration variables that start where the piece does, regions and accesses counted
  // from the corners.
  Block LocalBlock(const Place& place) {
    const Block& block = *place.block();
    LoopList loops = PieceLoops(place);
    std::vector<Var> vars;
    for (const For* loop : loops) vars.push_back(loop->var);
    IntervalMap domain = DomainOf(loops, &analyzer_);
    Block out = block;
    VarMap shift;
    for (IterVar& v : out.iters) {
      Expr base = IndexConst(0), local = v->binding;
      if (std::optional<AffineForm> form = DetectAffine(v->binding, vars)) {
        base = analyzer_.Simplify(form->base);
        local = analyzer_.Simplify(v->binding - base);
      }
      bool starts = block.init && v->iter_kind == IterKind::kReduce;
      if (starts) {
        base = IndexConst(0);
        local = v->binding;
      }
      ExprInterval range = EvalInterval(local, domain, &analyzer_);
      Expr count = Length(range, &analyzer_);
      // The init runs where the reduction starts, which loops may overshoot (a pipeline's).
      bool elsewhere = starts && count && !analyzer_.CanProveEqual(range.min, v->min);
      if (!count || elsewhere) {
        range.min = analyzer_.Simplify(v->min - base);
        count = v->extent;
      }
      analyzer_.Bind(v->var, range.min, count);
      if (!IsZero(base)) shift[v->var.get()] = v->var + base;
      // A variable of one value says nothing of its own.
      if (IsOne(count) && AsInt(range.min)) shift[v->var.get()] = base + range.min;
      v = IterVarNode::Make(v->var, v->iter_kind, values_.Abstract(range.min),
                            values_.Abstract(count), values_.Abstract(local));
      values_.AddInner(v->var.get());
    }
    out.where = nullptr;
    for (const Expr& raw : Conjuncts(block.where)) {
      const Expr c = Substitute(raw, BindingsOf(block));
      if (IsAmong(c, hoisted_) || analyzer_.CanProve(c)) continue;
      out.where = AndAlso(out.where, values_.AbstractCondition(c, vars, &analyzer_));
    }
    for (Region& r : out.reads) r = LocalRegion(r, shift);
    for (Region& r : out.writes) r = LocalRegion(r, shift);
    out.body = LocalStmt(block.body, shift);
    if (block.init) out.init = LocalStmt(block.init, shift);
    return out;
  }

  const Param* Find(const Buffer& b) const {
    auto it =
        std::find_if(params_.begin(), params_.end(), [&](const Param& p) { return p.outer == b; });
    return it == params_.end() ? nullptr : &*it;
  }

  std::vector<Expr> LocalIndices(const Param& p, const std::vector<Expr>& indices) {
    const std::vector<Expr> at = p.storage ? ApplyLayout(p.outer->layout, indices) : indices;
    std::vector<Expr> out;
    for (size_t d = 0; d < at.size(); ++d) {
      out.push_back(values_.Abstract(analyzer_.Simplify(at[d] - p.corner()[d])));
    }
    return out;
  }

  Region LocalRegion(const Region& raw, const VarMap& shift) {
    const Param* p = Find(raw->buffer);
    if (p == nullptr) return raw;
    const Region region = p->storage ? *InStorage(raw, p->storage, shift) : Substitute(raw, shift);
    std::vector<Range> ranges;
    for (size_t d = 0; d < region->ranges.size(); ++d) {
      const Expr min = region->ranges[d]->min, extent = region->ranges[d]->extent;
      ranges.push_back(RangeNode::Make(values_.Abstract(analyzer_.Simplify(min - p->corner()[d])),
                                       values_.Abstract(analyzer_.Simplify(extent))));
    }
    return RegionNode::Make(p->inner, std::move(ranges));
  }

  Stmt LocalStmt(const Stmt& s, const VarMap& shift) {
    // Loops inside the body are the piece's own, too.
    PreOrder(s, [&](const NodeRef& n) {
      if (const auto* loop = As<For>(n)) {
        values_.AddInner(loop->var.get());
        Learn(*loop, &analyzer_);
      }
      if (const auto* let = As<Let>(n)) values_.AddInner(let->var.get());
      return true;
    });
    Stmt moved = PostOrderRewrite(s, [&](const NodeRef& n) -> NodeRef {
      if (const auto* v = As<VarNode>(n)) {
        auto it = shift.find(v);
        return it == shift.end() ? n : NodeRef(it->second);
      }
      if (const auto* select = As<Select>(n); select && select->condition->dtype.IsScalar()) {
        return Select::Make(analyzer_.Simplify(select->condition), select->on_true,
                            select->on_false);
      }
      if (const auto* load = As<Load>(n)) {
        const Param* p = Find(load->buffer);
        if (p != nullptr) return Load::Make(p->inner, LocalIndices(*p, load->indices), load->mask);
      }
      if (const auto* store = As<Store>(n)) {
        const Param* p = Find(store->buffer);
        if (p == nullptr) return n;
        return Store::Make(p->inner, LocalIndices(*p, store->indices), store->value, store->mask);
      }
      return n;
    });
    return values_.Abstract(moved);
  }

  // ---- The function and the call ----

  Func MakeCallee(const Stmt& code) {
    PrimFunc f;
    f.name = kOutlined;
    f.func_kind = FuncKind::kDevice;
    f.target = s_.func->target;
    f.attrs.Set(kOutlined, true);
    values_.DeclareIn(&f);
    for (const Param& p : params_) {
      if (p.scratch) continue;
      f.buffers.push_back(p.inner);
      f.num_outputs += p.written;
    }
    f.body = code;
    return PrimFunc::Make(std::move(f));
  }

  static Func Named(const Func& f, const std::string& name) {
    PrimFunc copy = *f;
    copy.name = name;
    return PrimFunc::Make(std::move(copy));
  }

  // The name of an equal function that was outlined before, or of the new one.
  std::string AddToModule(const Func& callee, const std::string& name) {
    for (const auto& [other_name, other] : s_.module->funcs) {
      if (!other->attrs.Has(kOutlined)) continue;
      if (StructuralEqual(Named(other, kOutlined), callee)) return other_name;
    }
    std::string chosen = name;
    for (int i = 2; s_.module->Find(chosen); ++i) chosen = name + "_" + std::to_string(i);
    s_.module->Add(Named(callee, chosen));
    return chosen;
  }

  // Sizes that were freed have their values again.
  Expr Actual(const Expr& e) const {
    VarMap values;
    for (const OuterValues::Value& v : values_.dims()) values[v.var.get()] = v.outer;
    return Simplify(Substitute(e, values));
  }

  void Finish(const std::string& callee) {
    std::vector<Region> regions;
    std::vector<Expr> scalars;
    for (const Param& p : params_) {
      if (p.scratch) continue;
      std::vector<Range> ranges;
      for (size_t d = 0; d < p.mins.size(); ++d) {
        ranges.push_back(RangeNode::Make(Actual(p.mins[d]), Actual(p.extents[d])));
      }
      regions.push_back(RegionNode::Make(p.outer, std::move(ranges)));
    }
    for (const Expr& e : values_.Arguments()) scalars.push_back(Actual(e));
    Stmt call = CallFunc::Make(callee, std::move(regions), std::move(scalars));
    Expr called;
    for (const Expr& c : hoisted_) called = AndAlso(called, c);
    if (called) call = If::Make(called, call);
    Stmt root = Edit(body_->root(), {{place_.stmt.get(), call}});
    for (const Param& p : params_) {
      if (p.scratch) root = RemoveAlloc(p.outer, root);
    }
    s_.SetBody(root);
  }

  State& s_;
  Body* body_;
  const Place& place_;
  bool exact_;
  Analyzer analyzer_;
  Stmt piece_;                   // with freed trip counts
  std::unique_ptr<Body> freed_;  // the function with that piece
  std::vector<std::pair<Buffer, Box>> boxes_;
  std::vector<Param> params_;
  OuterValues values_;
  std::vector<Expr> hoisted_;  // conditions of the call
};

}  // namespace

namespace {

Result OutlinePiece(State& s, const std::string& what, const std::string& name, bool exact) {
  Body body(s.func);
  if (name.empty()) return Because("expected a name for the function");
  if (const Place* loop = body.FindLoop(what)) return Outliner(s, &body, *loop, exact).Run(name);
  TN_ASSIGN_OR_RETURN(const Place* block, body.NeedBlock(what));
  return Outliner(s, &body, *block, exact).Run(name);
}

}  // namespace

Result Outline(State& s, const std::string& what, const std::string& name) {
  return OutlinePiece(s, what, name, false);
}

Result OutlineExactly(State& s, const std::string& what, const std::string& name) {
  return OutlinePiece(s, what, name, true);
}

}  // namespace tenon::primitive
