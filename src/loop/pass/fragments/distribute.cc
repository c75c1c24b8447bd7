// Loops over rows and columns become loops over lanes and registers.
//
// An operation of a warp says where each element of its operands lies: in which lane, in which of
// the lane's registers. Such a layout is made of digits (fragment_layout.h): bits of the lane's
// number and of the register's number count along one dimension of the tile each. Turned around,
// the element's index is a sum of digits, so a loop over 16 rows of a tile whose rows are
// lane / 4 % 8 and one bit of the register splits into "every lane" and a loop of two:
//
//   for ai in 0..16, ak in 0..8 { AF[ai, ak] = A[w * 16 + ai, ak] }
//
// becomes, with AF laid out (x0 % 8 * 4 + x1 % 4 on threadIdx.x, x1 / 4 % 2 * 2 + x0 / 8 % 2),
//
//   for lane in 0..32 thread threadIdx.x {
//     for own in 0..2 unrolled {
//       for own.1 in 0..2 unrolled {
//         AF[lane / 4 % 8 + own.1 * 8, lane % 4 + own * 4] =
//             A[w * 16 + (lane / 4 % 8 + own.1 * 8), lane % 4 + own * 4]
//       }
//     }
//   }
//
// The statement's first fragment with loops over whole tiles leads; every other fragment in it has
// to find its elements in the same lane, which the analyzer proves from the two layouts. Where it
// cannot, lanes would have to exchange elements, and that is refused rather than done slowly.

#include "loop/pass/fragments/distribute.h"

#include <algorithm>
#include <map>

#include "loop/pass/fragments/operand_layouts.h"
#include "loop/rewrite.h"
#include "loop/threads.h"

namespace tenon {

namespace {

// A perfect nest of loops, outermost first, and what it runs.
struct Nest {
  std::vector<const For*> loops;
  Stmt body;
};

// Gives each lane its elements. A statement is changed only if every fragment in it is touched, in
// each lane, at elements of that lane; else it stays, and `refused` says why.
class Distributor final : public ScopedRewriter {
 public:
  Distributor(const PrimFunc& func, const Fragments& fragments)
      : names_(func), fragments_(fragments) {
    Learn(func, &analyzer_);
  }
  std::vector<std::string> refused;

 private:
  struct Element {
    const Fragment* fragment = nullptr;
    Buffer buffer;
    std::vector<Expr> indices;
    bool stored = false;
  };

  Stmt VisitStmt(const Stmt& stmt) override {
    const auto* loop = As<For>(stmt);
    if (!loop || loop->for_kind == ForKind::kThread) {
      for (const Element& e : HasLoops(stmt) ? std::vector<Element>{} : ElementsOf(stmt)) {
        if (IsA<Store>(stmt)) Refuse(e.buffer, "is touched outside of loops over its elements");
      }
      return Children(stmt);
    }
    const Nest nest = NestOf(stmt);
    if (HasLoops(nest.body)) return Children(stmt);
    const std::vector<Element> elements = ElementsOf(nest.body);
    if (elements.empty()) return Children(stmt);
    return Distribute(nest, elements, stmt);
  }

  void Refuse(const Buffer& buffer, const std::string& why) {
    refused.push_back("fragment " + buffer->name + " " + why);
  }

  static bool HasLoops(const Stmt& stmt) {
    return AnyStmt(stmt, [&](const NodeRef& n) { return IsA<For>(n) || IsA<While>(n); });
  }

  static Nest NestOf(const Stmt& stmt) {
    Nest nest{{}, stmt};
    while (const auto* loop = As<For>(nest.body)) {
      if (loop->for_kind == ForKind::kThread) break;
      nest.loops.push_back(loop);
      nest.body = loop->body;
    }
    return nest;
  }

  std::vector<Element> ElementsOf(const Stmt& stmt) const {
    std::vector<Element> out;
    auto add = [&](const Buffer& b, const std::vector<Expr>& indices, bool stored) {
      if (auto it = fragments_.find(b.get()); it != fragments_.end())
        out.push_back({&it->second, b, indices, stored});
    };
    PreOrder(stmt, [&](const NodeRef& n) {
      if (const auto* s = As<Load>(n)) add(s->buffer, s->indices, false);
      if (const auto* s = As<Store>(n)) add(s->buffer, s->indices, true);
      return true;
    });
    return out;
  }

  // The loop that runs over a dimension of tiles of `size`: its variable is the index but for
  // multiples of the size.
  std::optional<size_t> LoopOver(const Expr& index, int64_t size, const Nest& nest) {
    std::vector<Var> vars;
    for (const For* loop : nest.loops) vars.push_back(loop->var);
    auto affine = DetectAffine(analyzer_.Simplify(index), vars);
    if (!affine || !IsZero(analyzer_.Simplify(affine->base % size))) return std::nullopt;
    std::optional<size_t> out;
    for (size_t i = 0; i < vars.size(); ++i) {
      const Expr step = analyzer_.Simplify(affine->coefficients[i]);
      const auto extent = AsInt(analyzer_.Simplify(nest.loops[i]->extent));
      if (IsOne(step) && !out && IsZero(nest.loops[i]->min) && extent && *extent % size == 0) {
        out = i;
      } else if (!IsZero(analyzer_.Simplify(step % size))) {
        return std::nullopt;
      }
    }
    return out;
  }

  Stmt Distribute(const Nest& nest, const std::vector<Element>& elements, const Stmt& stmt) {
    for (const For* loop : nest.loops) analyzer_.Bind(loop->var, loop->min, loop->extent);
    for (const Element& e : elements) {
      const std::vector<size_t> over = TileLoops(e, nest);
      if (over.empty()) continue;
      for (const Element& other : elements) {
        if (KeepsOrder(other, e, nest)) continue;
        Refuse(other.buffer, "is computed in several iterations, whose order lanes would not keep");
        return stmt;
      }
      if (!CheckAlike(nest, elements, over)) return stmt;
      Stmt out = Split(nest, *e.fragment, over);
      return CheckLanes(elements) ? out : stmt;
    }
    Refuse(elements[0].buffer, "is not touched in loops that run over whole tiles");
    return stmt;
  }

  // Splitting the loops over the tiles of `lead` keeps the order of the iterations that touch one
  // element, if it matters: these differ in the innermost loop alone.
  bool KeepsOrder(const Element& e, const Element& lead, const Nest& nest) {
    const std::vector<size_t> over = TileLoops(lead, nest);
    if (!e.stored || TileLoops(e, nest) == over) return true;
    std::vector<Var> vars;
    for (const For* loop : nest.loops) vars.push_back(loop->var);
    for (size_t i = 0; i + 1 < vars.size(); ++i) {
      const bool alone = std::any_of(e.indices.begin(), e.indices.end(), [&](const Expr& index) {
        auto affine = DetectAffine(analyzer_.Simplify(index), vars);
        if (!affine) return false;
        for (size_t v = 0; v < vars.size(); ++v) {
          if (IsZero(analyzer_.Simplify(affine->coefficients[v])) != (v != i)) return false;
        }
        return true;
      });
      if (!alone) return false;
    }
    int64_t step = 0;  // registers along that loop: the inner ones are nearer to each other
    for (const TileDigit& digit : lead.fragment->tile.digits()) {
      if (digit.of_lane || over[digit.dim] + 1 != vars.size()) continue;
      if (step != 0 && digit.step > step) return false;
      step = digit.step;
    }
    return true;
  }

  // The loop over each dimension of an element's tile; none where there is no such loop.
  std::vector<size_t> TileLoops(const Element& element, const Nest& nest) {
    const std::vector<int64_t>& shape = element.fragment->tile.shape();
    std::vector<size_t> over;
    for (size_t i = 0; i < shape.size(); ++i) {
      auto loop = LoopOver(element.indices[element.fragment->dims[i]], shape[i], nest);
      if (!loop || std::find(over.begin(), over.end(), *loop) != over.end()) return {};
      over.push_back(*loop);
    }
    return over;
  }

  // Where nobody knows which element lies where, all are treated alike.
  bool CheckAlike(const Nest& nest, const std::vector<Element>& elements,
                  const std::vector<size_t>& over) {
    auto opaque = [](const Element& e) { return e.fragment->tile.opaque(); };
    auto it = std::find_if(elements.begin(), elements.end(), opaque);
    if (it == elements.end()) return true;
    bool alike = !it->fragment->tile.digits().empty();
    for (const Element& e : elements) alike = alike && opaque(e) && TileLoops(e, nest) == over;
    for (size_t loop : over) alike = alike && !UsesBesides(nest.body, *nest.loops[loop]->var);
    if (!alike) {
      Refuse(it->buffer,
             "has elements of which nobody knows where they lie: what is not the same for all of "
             "them (a bias, an index) goes behind the store, into a stage that reads it in shared "
             "memory, or onto the fragments of ptx.mma, which are known");
    }
    return alike;
  }

  // The variable stands somewhere else than in indices of fragments.
  bool UsesBesides(const NodeRef& node, const VarNode& var) {
    bool found = false;
    PreOrder(node, [&](const NodeRef& n) {
      const auto* load = As<Load>(n);
      const auto* store = As<Store>(n);
      found = found || n.get() == &var;
      if (load && fragments_.count(load->buffer.get()) > 0) return false;
      if (!store || fragments_.count(store->buffer.get()) == 0) return !found;
      found =
          found || UsesBesides(store->value, var) || (store->mask && UsesBesides(store->mask, var));
      return false;
    });
    return found;
  }

  Var Fresh(const std::string& name, int64_t extent) {
    Var v = VarNode::Make(names_.Fresh(name), DType::Index());
    analyzer_.Bind(v, IndexConst(0), IndexConst(extent));
    return v;
  }

  Stmt Split(const Nest& nest, const Fragment& fragment, const std::vector<size_t>& over) {
    lane_ = Fresh("lane", fragment.tile.lanes());
    std::vector<Expr> inside(over.size(), IndexConst(0));
    std::vector<std::pair<Var, const TileDigit*>> registers;
    for (const TileDigit& digit : fragment.tile.digits()) {
      const int64_t count = int64_t{1} << digit.bits;
      Expr number;
      if (digit.of_lane) {
        number = Expr(lane_) / (int64_t{1} << digit.shift) % count;
      } else {
        registers.emplace_back(Fresh("own", count), &digit);
        number = registers.back().first;
      }
      inside[digit.dim] = inside[digit.dim] + number * digit.step;
    }
    values_.clear();
    std::vector<std::pair<Var, int64_t>> outer(nest.loops.size());
    for (size_t i = 0; i < over.size(); ++i) {
      const For& loop = *nest.loops[over[i]];
      const int64_t tiles = *AsInt(analyzer_.Simplify(loop.extent)) / fragment.tile.shape()[i];
      outer[over[i]] = {Fresh(loop.var->name + ".tile", tiles), tiles};
      Expr tile = tiles == 1 ? IndexConst(0) : Expr(outer[over[i]].first);
      values_[loop.var.get()] = tile * fragment.tile.shape()[i] + inside[i];
    }
    Stmt body = Substitute(nest.body, values_);
    for (size_t i = registers.size(); i-- > 0;) {
      const auto& [var, digit] = registers[i];
      const bool last = i + 1 == registers.size() && digit->step == 1;
      const bool lanes = nest.loops[over[digit->dim]]->for_kind == ForKind::kVectorized;
      body = For::Make(var, IndexConst(0), IndexConst(int64_t{1} << digit->bits),
                       last && lanes ? ForKind::kVectorized : ForKind::kUnrolled, body);
    }
    body = For::Make(lane_, IndexConst(0), IndexConst(fragment.tile.lanes()), ForKind::kThread,
                     body, {}, kLaneAxis);
    for (size_t i = nest.loops.size(); i-- > 0;) body = Around(*nest.loops[i], outer[i], body);
    return body;
  }

  static Stmt Around(const For& loop, const std::pair<Var, int64_t>& tiles, const Stmt& body) {
    const bool lanes = loop.for_kind == ForKind::kVectorized;
    const ForKind kind = lanes ? ForKind::kUnrolled : loop.for_kind;
    if (!tiles.first) return For::Make(loop.var, loop.min, loop.extent, kind, body, loop.attrs);
    if (tiles.second == 1) return body;
    return For::Make(tiles.first, IndexConst(0), IndexConst(tiles.second), kind, body, loop.attrs);
  }

  // All that a lane touches is its own.
  bool CheckLanes(const std::vector<Element>& elements) {
    for (const Element& e : elements) {
      std::vector<Expr> indices;
      for (const Expr& i : e.indices) indices.push_back(Substitute(i, values_));
      const Expr lane = ApplyLayout(e.fragment->layout, indices)[0];
      if (analyzer_.CanProveEqual(lane, lane_)) continue;
      Refuse(e.buffer, "has elements in one lane that another lane needs");
      return false;
    }
    return true;
  }

  NameSupply names_;
  const Fragments& fragments_;
  Var lane_;
  VarMap values_;  // of the loops that are split
};

// What becomes of the buffers.
BufferMap BuffersFor(const OperandLayouts& operands) {
  std::map<const BufferNode*, Ref<BufferNode>> made;
  auto own = [&](const BufferNode* buffer) -> BufferNode& {
    auto [it, fresh] = made.try_emplace(buffer, nullptr);
    if (fresh) it->second = MakeRef<BufferNode>(*buffer);
    return *it->second;
  };
  for (const auto& [buffer, fragment] : operands.fragments) own(buffer).layout = fragment.layout;
  for (const auto& [buffer, cover] : operands.tiles) own(buffer).layout = cover.layout;
  for (const auto& [buffer, align] : operands.aligns)
    own(buffer).align = std::max(own(buffer).align, align);
  BufferMap out;
  for (const auto& [buffer, with] : made) out[buffer] = with;
  return out;
}

Func DistributeIn(const Func& func, const Module& module, const PassContext& context) {
  if (func->func_kind != FuncKind::kKernel || IsBound(*func) || !func->IsForDevice()) return func;
  OperandLayouts operands = LayoutsOfOperands(*func, module);
  std::vector<std::string> refused = std::move(operands.refused);
  if (operands.fragments.empty() && operands.tiles.empty() && operands.aligns.empty() &&
      refused.empty()) {
    return func;
  }
  Stmt body = func->body;
  if (refused.empty()) {
    Distributor distributor(*func, operands.fragments);
    body = distributor.Rewrite(body);
    refused = std::move(distributor.refused);
  }
  for (const std::string& what : refused) context.Error(*func, what);
  if (!refused.empty()) return func;
  return WithBody(func, SubstituteBuffers(body, BuffersFor(operands)));
}

}  // namespace

Module Distribute(const Module& module, const PassContext& context) {
  return MapFuncs(module, [&](const Func& func) { return DistributeIn(func, module, context); });
}

}  // namespace tenon
