// Primitives that copy code: partition and specialize.
//
// Both write one piece of code several times, each with facts of its own that the copies are
// simplified by. partition cuts a loop at points: with partition("k", [2])
//
//   for k in 0..6 {
//     block C(vi: spatial = i, vk: reduce = k) { … init { C[vi] = 0f32 } … }
//   }
//
// becomes
//
//   for k.p0 in 0..2 {
//     block C.p0(vi.p0: spatial = i, vk.p0: reduce = k.p0) { … init { C[vi.p0] = 0f32 } … }
//   }
//   for k.p1 in 2..6 {
//     block C.p1(vi.p1: spatial = i, vk.p1: reduce = k.p1) { … }
//   }
//
// where only the part that begins a reduction keeps its init, and the later ones read what the
// earlier ones left. A copy binds everything anew, since names are handles: ".p1" on each. Facts
// shrink domains, too: a variable that one part gives a smaller range is declared with that range.
// specialize puts the whole body under a condition on sizes, and its copy under the else, and
// simplifies the first by the condition.

#include "schedule/primitive/copies.h"

#include "ir/visit.h"
#include "schedule/analysis/conflicts.h"
#include "schedule/primitive/primitives.h"

namespace tenon::primitive {

namespace {

// New variables and buffers for all that a tree binds, so that the copy may stand beside the
// original: their names are new in the function, and the copy mentions nothing that the original
// binds.
class Renamer {
 public:
  Renamer(const std::string& suffix, Body* body, VarMap vars,
          std::vector<std::pair<std::string, std::string>>* renamed)
      : suffix_(suffix), body_(body), vars_(std::move(vars)), renamed_(renamed) {}

  Stmt Run(const Stmt& stmt) {
    Collect(stmt);
    // Allocations get new shapes; buffers from outside keep theirs, so uses are replaced without
    // entering buffers.
    Stmt out = PostOrderRewrite(stmt, [&](const NodeRef& n) -> NodeRef {
      const auto* var = As<VarNode>(n);
      auto it = var != nullptr ? vars_.find(var) : vars_.end();
      return it == vars_.end() ? n : NodeRef(it->second);
    });
    out = MapStmts(out, [&](const Stmt& s) { return Rename(s); });
    return SubstituteBuffers(out, buffers_);
  }

 private:
  Var NewVar(const Var& v) {
    Var fresh = VarNode::Make(body_->NewVarName(v->name + suffix_), v->dtype);
    bound_[v.get()] = fresh;
    vars_[v.get()] = fresh;
    return fresh;
  }

  void Collect(const Stmt& s) {
    PreOrder(s, [&](const NodeRef& n) {
      if (const auto* loop = As<For>(n)) NewVar(loop->var);
      if (const auto* let = As<Let>(n)) NewVar(let->var);
      if (const auto* block = As<Block>(n)) {
        for (const IterVar& v : block->iters) NewVar(v->var);
      }
      if (const auto* alloc = As<Alloc>(n)) allocs_.push_back(alloc->buffer);
      if (const auto* bind = As<tenon::Bind>(n)) allocs_.push_back(bind->buffer);
      return !IsA<ExprNode>(n);
    });
    for (const Buffer& b : allocs_) {
      std::vector<Expr> shape;
      for (const Expr& d : b->shape) shape.push_back(Substitute(d, vars_));
      std::vector<Expr> strides;
      for (const Expr& d : b->strides) strides.push_back(Substitute(d, vars_));
      buffers_[b.get()] = BufferNode::Make(body_->NewBufferName(b->name + suffix_), b->dtype, shape,
                                           b->scope, b->layout, strides, b->align);
    }
  }

  void Note(const std::string& name, const std::string& copy) {
    if (renamed_) renamed_->emplace_back(name, copy);
  }

  Stmt Rename(const Stmt& s) {
    if (const auto* loop = As<For>(s)) {
      Note(loop->var->name, bound_.at(loop->var.get())->name);
      return For::Make(bound_.at(loop->var.get()), loop->min, loop->extent, loop->for_kind,
                       loop->body, loop->attrs, loop->thread);
    }
    if (const auto* let = As<Let>(s)) {
      return Let::Make(bound_.at(let->var.get()), let->value, let->body);
    }
    const auto* block = As<Block>(s);
    if (block == nullptr) return s;
    Block copy = *block;
    copy.name = body_->NewBlockName(block->name + suffix_);
    Note(block->name, copy.name);
    for (IterVar& v : copy.iters) {
      v = IterVarNode::Make(bound_.at(v->var.get()), v->iter_kind, v->min, v->extent, v->binding);
    }
    return Block::Make(std::move(copy));
  }

  const std::string& suffix_;
  Body* body_;
  VarMap vars_;
  std::unordered_map<const VarNode*, Var> bound_;
  std::vector<Buffer> allocs_;
  BufferMap buffers_;
  std::vector<std::pair<std::string, std::string>>* renamed_;
};

}  // namespace

Stmt CopyRenamed(const Stmt& stmt, const std::string& suffix, Body* body,
                 std::unordered_map<const VarNode*, Expr> vars,
                 std::vector<std::pair<std::string, std::string>>* renamed) {
  return Renamer(suffix, body, std::move(vars), renamed).Run(stmt);
}

namespace {

// Why a part of the loop that does not hold its start cannot do without the init of the block.
std::optional<Diagnostic> SharesInit(const Block& block, const For* loop) {
  bool mixed = block.init && BindsLoop(block, IterKind::kReduce, loop) &&
               BindsLoop(block, IterKind::kSpatial, loop);
  if (!mixed) return std::nullopt;
  return OfBlock(block.name, "loop " + loop->var->name +
                                 " runs over spatial and reduce variables at once; "
                                 "decompose_reduction first");
}

// A part of a loop, with what its variables run over.
struct LoopPart {
  const For* loop;
  Expr whole_min;  // where the whole loop, and so its first part, starts; null: that may be empty
  bool first;      // of its parts
  IntervalMap domain;
};

// Whether a block's reduction may start in this part of the loop.
bool MayStartIn(const Block& block, const LoopPart& part, Analyzer* analyzer) {
  if (part.first || !block.init || !BindsLoop(block, IterKind::kReduce, part.loop)) return true;
  IntervalMap at_start = part.domain;
  at_start[part.loop->var.get()] = {part.whole_min, part.whole_min};
  for (const IterVar& v : block.iters) {
    if (v->iter_kind != IterKind::kReduce || !UsesVar(v->binding, part.loop->var.get())) continue;
    const Expr lowest = EvalInterval(v->binding, part.domain, analyzer).min;
    if (lowest && analyzer->CanProve(Gt(lowest, v->min))) return false;
    const Expr earliest =
        part.whole_min ? EvalInterval(v->binding, at_start, analyzer).min : nullptr;
    if (earliest && analyzer->CanProveEqual(earliest, v->min)) return false;
  }
  return true;
}

// The part of the domains that a part of the loop runs over; the init only where the reduction
// starts.
Stmt NarrowBlock(const Stmt& s, const LoopPart& part, Analyzer* analyzer) {
  const auto* block = As<Block>(s);
  if (block == nullptr) return s;
  Block copy = *block;
  if (!MayStartIn(*block, part, analyzer)) {
    copy.reads = ReadsOf(*block);
    copy.init = nullptr;
  }
  for (IterVar& v : copy.iters) {
    if (!UsesVar(v->binding, part.loop->var.get())) continue;
    ExprInterval range = EvalInterval(v->binding, part.domain, analyzer);
    if (!range.min || !range.max) continue;
    // An init runs where its variables are at the start of their domains, which stays.
    const bool keeps_start = copy.init && v->iter_kind == IterKind::kReduce;
    Expr lo = keeps_start ? v->min : analyzer->Simplify(Max(range.min, v->min));
    Expr hi = analyzer->Simplify(Min(range.max + 1, v->min + v->extent));
    v = IterVarNode::Make(v->var, v->iter_kind, lo, analyzer->Simplify(hi - lo), v->binding);
  }
  return Block::Make(std::move(copy));
}

// One partition. The parts run the iterations of the loop in order, each once, and bind nothing
// that another part binds.
class Partitioner {
 public:
  /// `first_filled`: where the loop has an iteration, its first part has one.
  Partitioner(State& s, Body* body, const Place& place, bool first_filled)
      : s_(s), body_(body), place_(place), loop_(*place.loop()), first_filled_(first_filled) {}

  // Consecutive parts between the bounds, which rise.
  Result Run(const std::vector<Expr>& bounds) {
    for (const Place* p : body_->BlocksUnder(&loop_)) {
      if (auto error = SharesInit(*p->block(), &loop_)) return *error;
    }
    Names names;
    std::vector<Stmt> parts;
    for (size_t i = 0; i + 1 < bounds.size(); ++i) {
      parts.push_back(Part(bounds[i], bounds[i + 1], i));
      names.push_back(As<For>(parts.back())->var->name);
    }
    s_.SetBody(Edit(body_->root(), {{place_.stmt.get(), Seq::Make(std::move(parts))}}));
    return names;
  }

 private:
  Stmt Part(const Expr& from, const Expr& to, size_t index) {
    Analyzer analyzer;
    Learn(*s_.func, &analyzer);
    Learn(place_.path, &analyzer);
    Stmt cut = For::Make(loop_.var, analyzer.Simplify(from), analyzer.Simplify(to - from),
                         loop_.for_kind, loop_.body, loop_.attrs, loop_.thread);
    Stmt copy = CopyRenamed(cut, ".p" + std::to_string(index), body_, {}, &s_.renamed);
    const For* part = As<For>(copy);
    std::vector<const For*> loops = place_.Loops();
    PreOrder(copy, [&](const NodeRef& n) {
      if (const auto* inner = As<For>(n)) {
        loops.push_back(inner);
        Learn(*inner, &analyzer);
      }
      return IsA<StmtNode>(n) && !IsA<Block>(n);
    });
    const LoopPart here{part, first_filled_ ? loop_.min : nullptr, index == 0,
                        DomainOf(loops, &analyzer)};
    Stmt narrow = MapStmts(copy, [&](const Stmt& s) { return NarrowBlock(s, here, &analyzer); });
    Stmt tidy = Tidy(narrow, &analyzer);
    // What never runs in this part goes, unless nothing would be left.
    Stmt live = MapStmts(tidy, [](const Stmt& s) -> Stmt {
      const auto* block = As<Block>(s);
      bool dead = block != nullptr && block->where && IsZero(block->where);
      return dead ? nullptr : s;
    });
    return IsA<For>(live) ? live : tidy;
  }

  State& s_;
  Body* body_;
  const Place& place_;
  const For& loop_;
  bool first_filled_;
};

Expected<const Place*> SerialLoop(const Body& body, const std::string& name) {
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedLoop(name));
  ForKind kind = place->loop()->for_kind;
  if (kind != ForKind::kSerial) {
    return Because("loop " + name + " is " + Name(kind) + ", expected serial");
  }
  if (place->inner) return Because("loop " + name + " is inside the body of a block");
  return place;
}

}  // namespace

Result Partition(State& s, const std::string& name, const Ints& points) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* place, SerialLoop(body, name));
  const For& loop = *place->loop();
  if (points.empty()) return Because("expected at least one point");
  std::optional<int64_t> min = AsInt(loop.min), extent = AsInt(loop.extent);
  Expr end = loop.min + loop.extent;
  std::vector<Expr> bounds = {loop.min};
  for (size_t i = 0; i < points.size(); ++i) {
    bool rises = i == 0 ? !min || points[i] > *min : points[i] > points[i - 1];
    if (!rises || (min && extent && points[i] >= *min + *extent)) {
      return Because("points must rise strictly and lie inside the loop, got " +
                     std::to_string(points[i]));
    }
    Expr point = IndexConst(points[i]);
    if (!min) point = Max(point, loop.min);
    bounds.push_back(min && extent ? point : Min(point, end));
  }
  bounds.push_back(end);
  return Partitioner(s, &body, *place, min.has_value()).Run(bounds);
}

Result PartitionEqual(State& s, const std::string& name, const int64_t& parts) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* place, SerialLoop(body, name));
  const For& loop = *place->loop();
  constexpr int64_t kMostParts = 4096;
  if (parts < 1 || parts > kMostParts) {
    return Because("expected 1 to 4096 parts, got " + std::to_string(parts));
  }
  std::optional<int64_t> extent = AsInt(loop.extent);
  if (extent && *extent < parts) {
    return Because("the extent " + std::to_string(*extent) + " is less than the number of parts");
  }
  std::vector<Expr> bounds = {loop.min};
  for (int64_t i = 1; i <= parts; ++i) {
    // Longer parts first: ceil(i * extent / parts) would not do, as it rounds each bound on its
    // own.
    Expr longer = Min(loop.extent % parts, IndexConst(i));
    bounds.push_back(loop.min + (loop.extent / parts) * i + longer);
  }
  return Partitioner(s, &body, *place, true).Run(bounds);
}

namespace {

// dim == constant among the conjuncts of a condition.
VarMap KnownDims(const PrimFunc& func, const Expr& condition) {
  VarMap out;
  for (const Expr& c : Conjuncts(condition)) {
    const auto* eq = As<Binary>(c);
    if (eq == nullptr || eq->op != BinaryOp::kEq) continue;
    for (const Var& dim : func.dims) {
      if (eq->lhs == dim && AsInt(eq->rhs)) out[dim.get()] = eq->rhs;
      if (eq->rhs == dim && AsInt(eq->lhs)) out[dim.get()] = eq->lhs;
    }
  }
  return out;
}

}  // namespace

Result Specialize(State& s, const Expr& condition) {
  Body body(s.func);
  if (!condition || condition->dtype != DType::Bool()) {
    return Because("expected a condition of type bool");
  }
  Analyzer analyzer;
  Learn(*s.func, &analyzer);
  if (analyzer.CanProve(Not(condition))) return Because("it holds for no sizes of the function");
  VarMap known = KnownDims(*s.func, condition);
  Stmt copy = CopyRenamed(body.root(), ".s", &body, known);
  analyzer.Assume(condition);
  s.SetBody(If::Make(condition, Tidy(copy, &analyzer), body.root()));
  return Names{};
}

}  // namespace tenon::primitive
