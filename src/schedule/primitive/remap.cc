// transform_block_layout: a block runs over other coordinates.
//
// The map takes the iteration variables to new ones. Each new coordinate is read as a mixed-radix
// number whose digits are variables, or quotients and remainders of one by constants; the digits
// are taken out of it again, and make up the old variables. That this is the inverse is proved by
// putting the one into the other; that nothing else is hit, by counting.

#include <algorithm>

#include "arith/linear.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "schedule/primitive/einsum.h"
#include "schedule/primitive/primitives.h"

namespace tenon::primitive {

Expected<Stmt> PlainNestOf(const Place& place) {
  const Block& block = *place.block();
  if (place.inner || block.opaque) {
    return OfBlock(block.name, "it is opaque or inside another block");
  }
  if (block.where) return OfBlock(block.name, "it is guarded");
  std::vector<const For*> loops = place.Loops();
  size_t count = block.iters.size(), depth = place.path.size();
  bool plain = count > 0 && loops.size() >= count && depth >= count;
  for (size_t i = 0; plain && i < count; ++i) {
    const auto* loop = As<For>(place.path[depth - 1 - i]);
    plain = loop != nullptr && loop->for_kind == ForKind::kSerial;
    if (!plain) break;
    plain = std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& v) {
      return v->binding == loop->var && IsZero(v->min) && IsZero(loop->min) &&
             StructuralEqual(v->extent, loop->extent);
    });
  }
  if (plain) return place.path[depth - count];
  return OfBlock(block.name,
                 "it is not alone in a nest of serial loops, one over each of its variables");
}

namespace {

// One change of a block's variables. values_ is the old ones by the new, images_ the new ones by
// the old; the state is changed only when the one is known to undo the other.
class Remapper {
 public:
  Remapper(State& s, Body* body, const Place& block, const Layout& map)
      : s_(s), body_(body), place_(block), block_(*block.block()), map_(map) {}

  Result Run() {
    TN_ASSIGN_OR_RETURN(Stmt nest, PlainNestOf(place_));
    if (!map_ || map_->coords.size() != block_.iters.size()) {
      return OfBlock(block_.name, "it has " + std::to_string(block_.iters.size()) +
                                      " variables, the map " +
                                      std::to_string(map_ ? map_->coords.size() : 0));
    }
    if (auto error = MakeCoordinates()) return *error;
    if (auto error = CheckInverse()) return *error;
    Block out = *Cast<Block>(NodeRef(Substitute(place_.stmt, values_)));
    out.iters = coordinates_;
    for (IterVar& v : out.iters) analyzer_.Bind(v->var, v->min, v->extent);
    Stmt made = MakeNest(out, WholeDomain(out), Widen::kNo, body_, &analyzer_);
    s_.SetBody(Edit(body_->root(), {{nest.get(), made}}));
    return Names{};
  }

 private:
  // The value of a digit runs over [0, n): that of v, v / c, v % m or (v / c) % m.
  struct Digit {
    const VarNode* var;
    int64_t weight;  // c: what one more of the digit adds to the variable
    int64_t count;
  };

  std::optional<int64_t> ExtentOf(const VarNode* var) const {
    for (size_t i = 0; i < map_->coords.size(); ++i) {
      if (map_->coords[i].get() == var) return AsInt(block_.iters[i]->extent);
    }
    return std::nullopt;
  }

  std::optional<Digit> ReadDigit(const Expr& e) const {
    if (const auto* var = As<VarNode>(e)) {
      std::optional<int64_t> extent = ExtentOf(var);
      return extent ? std::optional<Digit>({var, 1, *extent}) : std::nullopt;
    }
    const auto* b = As<Binary>(e);
    std::optional<int64_t> c = b != nullptr ? AsInt(b->rhs) : std::nullopt;
    if (!c || *c < 1) return std::nullopt;
    std::optional<Digit> inner = ReadDigit(b->lhs);
    if (!inner) return std::nullopt;
    if (b->op == BinaryOp::kDiv) {
      return Digit{inner->var, inner->weight * *c, (inner->count + *c - 1) / *c};
    }
    if (b->op == BinaryOp::kMod) {
      return Digit{inner->var, inner->weight, std::min(inner->count, *c)};
    }
    return std::nullopt;
  }

  Diagnostic NotReadable(const Expr& e) const {
    return OfBlock(block_.name, "the coordinate " + ToString(NodeRef(e)) +
                                    " is no sum of digits of variables of constant extent");
  }

  std::optional<Diagnostic> MakeCoordinates() {
    std::unordered_set<const VarNode*> coords;
    for (size_t i = 0; i < map_->coords.size(); ++i) {
      coords.insert(map_->coords[i].get());
      values_[block_.iters[i]->var.get()] = IndexConst(0);
      analyzer_.Bind(map_->coords[i], IndexConst(0), block_.iters[i]->extent);
    }
    for (size_t k = 0; k < map_->storage.size(); ++k) {
      std::vector<Term> terms = SumOf(map_->storage[k]).terms;
      std::erase_if(terms, [&](const Term& t) { return !UsesAnyVar(t.product, coords); });
      std::vector<std::pair<Term, Digit>> digits;
      for (const Term& t : terms) {
        std::optional<Digit> digit = ReadDigit(t.product);
        if (!digit || t.coefficient < 1) return NotReadable(map_->storage[k]);
        digits.emplace_back(t, *digit);
      }
      if (digits.empty()) return NotReadable(map_->storage[k]);
      if (auto error = AddCoordinate(k, digits)) return error;
    }
    const bool reduces = std::any_of(coordinates_.begin(), coordinates_.end(), [](const auto& v) {
      return v->iter_kind == IterKind::kReduce;
    });
    if (block_.init && !reduces) {
      return OfBlock(block_.name, "no coordinate is left that its reduction runs over");
    }
    return std::nullopt;
  }

  std::optional<Diagnostic> AddCoordinate(size_t k,
                                          const std::vector<std::pair<Term, Digit>>& digits) {
    Var u = VarNode::Make(body_->NewVarName(block_.name + ".u" + std::to_string(k)));
    std::optional<IterKind> kind;
    int64_t extent = 1;
    for (const auto& [term, digit] : digits) {
      const IterVar& old = IterOf(digit.var);
      if ((kind && *kind != old->iter_kind) || old->iter_kind == IterKind::kOrdered) {
        return OfBlock(block_.name, "the coordinate " + ToString(NodeRef(map_->storage[k])) +
                                        " joins variables of several kinds, or is ordered");
      }
      kind = old->iter_kind;
      extent += term.coefficient * (digit.count - 1);
      Expr part = Simplify(u / term.coefficient % digit.count) * digit.weight;
      Expr& value = values_[old->var.get()];
      value = value + part;
    }
    coordinates_.push_back(
        IterVarNode::Make(u, *kind, IndexConst(0), IndexConst(extent), IndexConst(0)));
    images_[u.get()] = map_->storage[k];
    return std::nullopt;
  }

  const IterVar& IterOf(const VarNode* coord) const {
    size_t i = 0;
    while (map_->coords[i].get() != coord) ++i;
    return block_.iters[i];
  }

  std::optional<Diagnostic> CheckInverse() {
    int64_t before = 1, after = 1;
    for (size_t i = 0; i < map_->coords.size(); ++i) {
      const IterVar& old = block_.iters[i];
      Expr& value = values_[old->var.get()];
      if (!AsInt(old->extent) ||
          !analyzer_.CanProveEqual(Substitute(value, images_), map_->coords[i])) {
        return OfBlock(block_.name, "its variable " + old->var->name +
                                        " does not follow from the new coordinates");
      }
      before *= *AsInt(old->extent);
    }
    for (const IterVar& v : coordinates_) {
      after *= *AsInt(v->extent);
      analyzer_.Bind(v->var, v->min, v->extent);
    }
    if (before != after) {
      return OfBlock(block_.name, "the map takes " + std::to_string(before) + " iterations to " +
                                      std::to_string(after));
    }
    for (auto& [var, value] : values_) value = analyzer_.Simplify(value);
    return std::nullopt;
  }

  State& s_;
  Body* body_;
  const Place& place_;
  const Block& block_;
  const Layout& map_;
  Analyzer analyzer_;
  std::vector<IterVar> coordinates_;
  std::unordered_map<const VarNode*, Expr> values_;  // old variables in terms of the coordinates
  std::unordered_map<const VarNode*, Expr> images_;  // the coordinates in terms of the map's
};

}  // namespace

Result TransformBlockLayout(State& s, const std::string& block, const Layout& map) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedBlock(block));
  return Remapper(s, &body, *place, map).Run();
}

}  // namespace tenon::primitive
