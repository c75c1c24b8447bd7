// blockize: a nest becomes the body of a block.

#include "schedule/primitive/blockize.h"

#include <algorithm>
#include <optional>

#include "ir/visit.h"
#include "schedule/analysis/conflicts.h"
#include "schedule/primitive/primitives.h"

namespace tenon::primitive {

namespace {

// One nest that becomes a block. Nothing is changed: what is answered is a block whose regions
// cover all that the nest touches, and whose spatial iterations write different elements.
class Blockizer {
 public:
  Blockizer(Body* body, const Place& loop, bool in_order)
      : body_(body), loop_(loop), in_order_(in_order) {}

  Expected<Blockized> Run(const std::string& suffix) {
    if (auto error = CheckForm()) return *error;
    Learn(*body_->func(), &analyzer_);
    Learn(place_->path, &analyzer_);
    Blockized out;
    out.block.name = body_->NewBlockName(block_->name + suffix);
    if (auto error = AddIters(&out)) return *error;
    if (auto error = AddRegions(&out)) return *error;
    if (auto error = CheckApart(&out.block)) return *error;
    out.block.fp = block_->fp;
    out.block.body = Substitute(loop_.stmt, out.inner);
    return out;
  }

 private:
  std::optional<Diagnostic> CheckForm() {
    const std::string& name = loop_.loop()->var->name;
    if (loop_.inner) return Because("loop " + name + " is inside the body of a block");
    Stmt inside = loop_.stmt;
    while (const auto* loop = As<For>(inside)) {
      if (loop->for_kind == ForKind::kParallel || loop->for_kind == ForKind::kThread) {
        return Because("loop " + loop->var->name + " is " + Name(loop->for_kind) +
                       ", which is not for the inside of a block");
      }
      inside = loop->body;
    }
    if (!IsA<Block>(inside)) {
      return Because("loop " + name + " is not a perfect nest around one block");
    }
    place_ = body_->FindBlock(As<Block>(inside)->name);
    block_ = As<Block>(inside);
    if (block_->opaque) return OfBlock(block_->name, "the block is opaque");
    return std::nullopt;
  }

  bool Mentions(const For* outer) const { return UsesVar(loop_.stmt, outer->var.get()); }

  // One variable for each loop around that matters inside.
  std::optional<Diagnostic> AddIters(Blockized* out) {
    inner_loops_ = place_->LoopsInside(loop_.stmt.get());
    inner_loops_.insert(inner_loops_.begin(), loop_.loop());
    for (const For* outer : loop_.Loops()) {
      if (!Mentions(outer)) continue;
      bool spatial = BindsLoop(*block_, IterKind::kSpatial, outer);
      bool reduce = BindsLoop(*block_, IterKind::kReduce, outer);
      bool ordered = BindsLoop(*block_, IterKind::kOrdered, outer);
      if (spatial + reduce + ordered > 1) {
        return OfBlock(block_->name, "loop " + outer->var->name +
                                         " runs over variables of several kinds at once");
      }
      if (UsesAnyVar(outer->min, OuterVars()) || UsesAnyVar(outer->extent, OuterVars())) {
        return Because("the bounds of loop " + outer->var->name + " depend on other loops");
      }
      IterKind kind = reduce ? IterKind::kReduce : IterKind::kSpatial;
      if (ordered) kind = IterKind::kOrdered;
      Var v = VarNode::Make(body_->NewVarName("v" + outer->var->name));
      out->block.iters.push_back(IterVarNode::Make(v, kind, outer->min, outer->extent, outer->var));
      out->inner[outer->var.get()] = v;
      if (kind == IterKind::kSpatial) spatial_.push_back(outer);
    }
    return std::nullopt;
  }

  std::unordered_set<const VarNode*> OuterVars() const {
    std::unordered_set<const VarNode*> out;
    for (const For* outer : loop_.Loops()) out.insert(outer->var.get());
    return out;
  }

  // What the whole nest touches. Guards make that an upper bound.
  std::optional<Diagnostic> AddRegions(Blockized* out) {
    Block& block = out->block;
    block.exact = block_->exact && !block_->where;
    for (const Access& a : body_->AccessesUnder(place_->stmt.get())) {
      Box box = TouchedBox(a.region, *block_, DomainOf(inner_loops_, &analyzer_), &analyzer_);
      block.exact &= FillsItsBox(a.region, *block_, inner_loops_, &analyzer_);
      std::vector<Range> ranges;
      for (size_t d = 0; d < box.size(); ++d) {
        Expr length = Length(box[d], &analyzer_);
        Expr low = length ? box[d].min : IndexConst(0);
        if (!length) length = a.region->buffer->shape[d];
        ranges.push_back(
            RangeNode::Make(Substitute(low, out->inner), Substitute(length, out->inner)));
      }
      if (a.write) written_.emplace_back(a, box);
      std::vector<Region>& list = a.write ? block.writes : block.reads;
      list.push_back(RegionNode::Make(a.region->buffer, std::move(ranges)));
    }
    return std::nullopt;
  }

  // Different values of the spatial variables must write different elements.
  std::optional<Diagnostic> CheckApart(Block* made) {
    std::unordered_set<const VarNode*> unknown;
    for (const For* loop : spatial_) unknown.insert(loop->var.get());
    for (const auto& [access, box] : written_) {
      auto fixed = FixedVars(SumsOf(box, &analyzer_), unknown, {}, &analyzer_);
      for (const For* loop : spatial_) {
        if (fixed.count(loop->var.get()) != 0 || IsOne(loop->extent)) continue;
        if (IsOwn(access.region->buffer->scope, loop->for_kind, loop->thread)) continue;
        if (in_order_ && loop->for_kind == ForKind::kSerial) {
          RunInOrder(*loop, made);
          continue;
        }
        return OfBlock(block_->name, "iterations of loop " + loop->var->name +
                                         " are not known to write different elements of " +
                                         access.region->buffer->name);
      }
    }
    return std::nullopt;
  }

  static void RunInOrder(const For& loop, Block* made) {
    for (IterVar& v : made->iters) {
      if (v->binding != loop.var) continue;
      v = IterVarNode::Make(v->var, IterKind::kOrdered, v->min, v->extent, v->binding);
    }
  }

  Body* body_;
  const Place& loop_;
  bool in_order_;
  const Place* place_ = nullptr;
  const Block* block_ = nullptr;
  std::vector<const For*> inner_loops_, spatial_;
  std::vector<std::pair<Access, Box>> written_;
  Analyzer analyzer_;
};

}  // namespace

Expected<Blockized> MakeBlock(Body* body, const Place& loop, const std::string& suffix,
                              bool in_order) {
  return Blockizer(body, loop, in_order).Run(suffix);
}

Result Blockize(State& s, const std::string& name) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* loop, body.NeedLoop(name));
  TN_ASSIGN_OR_RETURN(Blockized made, MakeBlock(&body, *loop, ".tile"));
  std::string block = made.block.name;
  s.SetBody(Edit(body.root(), {{loop->stmt.get(), Block::Make(std::move(made.block))}}));
  return Names{block};
}

}  // namespace tenon::primitive
