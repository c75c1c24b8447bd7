#include "loop/pass/distribute.h"

#include <algorithm>
#include <map>

#include "loop/pass/fragment_layout.h"
#include "loop/pass/rewrite.h"
#include "loop/threads.h"
#include "loop/warpgroup.h"

namespace tenon {

namespace {

// How a buffer is covered with what operations ask for.
struct Cover {
  std::vector<int64_t> shape;  // of a tile
  std::vector<size_t> dims;    // that the tile's are
  Layout layout;
  int64_t align = 0;
};
struct Fragment : Cover {
  FragmentTile tile;
};
using Fragments = std::map<const BufferNode*, Fragment>;
using Tiles = std::map<const BufferNode*, Cover>;  // in shared memory

// The dimensions of a box that a parameter's stand for.
std::vector<size_t> LongDims(const Region& region) {
  std::vector<size_t> out;
  for (size_t d = 0; d < region->ranges.size(); ++d) {
    if (!IsOne(region->ranges[d]->extent)) out.push_back(d);
  }
  return out;
}

// Reads the layouts off the calls.
class Finder final : public ScopedRewriter {
 public:
  Finder(const PrimFunc& func, const Module& module) : module_(module) {
    BindDims(func, &analyzer_);
    Rewrite(func.body);
    if (!any_call_) return;
    while (InferMore(func.body)) {
    }
    for (const BufferNode* b : made_) {
      const bool known = passed_.count(b) != 0 || found.count(b) != 0;
      if (!known) Unmet("fragment " + b->name + " is in no operation of a warp, nor beside one");
    }
  }
  Fragments found;
  Tiles tiles;
  std::vector<std::string> unmet;

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    if (const auto* alloc = As<Alloc>(stmt); alloc && IsFragment(*alloc->buffer))
      made_.push_back(alloc->buffer.get());
    if (const auto* call = As<CallFunc>(stmt)) See(*call);
    const auto* loop = As<For>(stmt);
    const bool lanes = loop && loop->for_kind == ForKind::kThread && loop->thread == kLaneAxis;
    if (lanes) longest_ = std::max(longest_, LengthOf(*loop));
    lane_loops_ += lanes ? 1 : 0;
    Stmt out = Children(stmt);
    lane_loops_ -= lanes ? 1 : 0;
    if (lanes_ > 0 && std::exchange(longest_, 0) > lanes_) {
      const std::string group = lanes_ == kLanes ? "warp" : "warpgroup";
      Unmet(std::string("loop over ") + kLaneAxis + " is longer than a " + group +
            ", whose lanes it numbers: expected " + std::to_string(lanes_) +
            " iterations, and other axes for " + group + "s");
    }
    return out;
  }

  // Fragments that no operation takes lie as those of the same shape that a statement touches at
  // the same element.
  bool InferMore(const Stmt& body) {
    bool more = false;
    PreOrder(body, [&](const NodeRef& n) {
      if (IsA<Store>(n)) more |= InferIn(n);
      return !IsA<ExprNode>(n);
    });
    return more;
  }

  bool InferIn(const NodeRef& statement) {
    std::vector<std::pair<const BufferNode*, const std::vector<Expr>*>> touched;
    PreOrder(statement, [&](const NodeRef& n) {
      if (const auto* s = As<Store>(n)) touched.emplace_back(s->buffer.get(), &s->indices);
      if (const auto* s = As<Load>(n)) touched.emplace_back(s->buffer.get(), &s->indices);
      return true;
    });
    bool more = false;
    for (const auto& [open, at] : touched) {
      if (!IsFragment(*open) || found.count(open) != 0) continue;
      for (const auto& [known, there] : touched) {
        auto it = found.find(known);
        if (it == found.end() || it->second.tile.opaque()) continue;
        if (!Equal(open->shape, known->shape) || !Equal(*at, *there)) continue;
        found.emplace(open, it->second);
        more = true;
        break;
      }
    }
    return more;
  }

  static bool Equal(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Expr& x, const Expr& y) { return StructuralEqual(x, y); });
  }

  int64_t LengthOf(const For& loop) {
    return AsInt(analyzer_.Simplify(loop.extent)).value_or(kWarpgroup + 1);
  }

  void Unmet(const std::string& what) {
    if (std::find(unmet.begin(), unmet.end(), what) == unmet.end()) unmet.push_back(what);
  }

  void See(const CallFunc& call) {
    const Func callee = module_.Find(call.callee);
    if (!callee || callee->func_kind != FuncKind::kDevice) return;
    for (size_t i = 0; i < call.buffers.size(); ++i) {
      if (IsTile(*callee->buffers[i])) SeeTile(call.callee, *callee->buffers[i], call.buffers[i]);
    }
    if (!IsWarpFunction(*callee)) return;
    any_call_ = true;
    const int64_t lanes = LanesOf(*callee);
    if (lanes_ > 0 && lanes != lanes_)
      Unmet(call.callee + " is an operation of other threads than the kernel's others");
    lanes_ = lanes;
    if (lane_loops_ > 0) {
      Unmet(call.callee + " is an operation of a warp inside of a loop over " + kLaneAxis +
            ", which numbers its lanes");
    }
    for (size_t i = 0; i < call.buffers.size(); ++i) {
      if (IsFragment(*callee->buffers[i])) See(*callee, *callee->buffers[i], call.buffers[i]);
    }
  }

  void See(const PrimFunc& callee, const BufferNode& param, const Region& region) {
    const Buffer& buffer = region->buffer;
    passed_.insert(buffer.get());
    const std::string what =
        "operand " + param.name + " of " + callee.name + ", " + buffer->name + ", ";
    auto tile = FragmentTile::Of(param, callee.attrs.Has(kOpaqueAttr));
    const std::vector<size_t> dims = LongDims(region);
    if (!tile || dims.size() != tile->shape().size()) {
      return Unmet(what + "has no layout over the lanes of a warp");
    }
    if (!IsWhole(what, region, tile->shape(), dims)) return;
    const Layout layout = tile->Cover(buffer->shape.size(), dims);
    const Fragment fragment{{tile->shape(), dims, layout}, *tile};
    auto [it, fresh] = found.try_emplace(buffer.get(), fragment);
    const bool alike = it->second.tile.opaque() == fragment.tile.opaque();
    if (fresh || (alike && Agrees(it->second, fragment, *buffer))) return;
    Unmet(what + "is asked for in another layout elsewhere");
  }

  // A box of whole tiles of constant size.
  bool IsWhole(const std::string& what, const Region& region, const std::vector<int64_t>& shape,
               const std::vector<size_t>& dims) {
    for (size_t i = 0; i < dims.size(); ++i) {
      const RangeNode& range = *region->ranges[dims[i]];
      const Expr rest = analyzer_.Simplify(range.min % shape[i]);
      if (!IsZero(rest) || AsInt(analyzer_.Simplify(range.extent)) != shape[i]) {
        Unmet(what + "does not begin where a tile of it does");
        return false;
      }
      const auto whole = AsInt(region->buffer->shape[dims[i]]);
      if (whole && *whole % shape[i] == 0) continue;
      Unmet(what + "is not made of whole tiles");
      return false;
    }
    return true;
  }

  void SeeTile(const std::string& callee, const BufferNode& param, const Region& region) {
    const Buffer& buffer = region->buffer;
    const std::string what = "operand " + param.name + " of " + callee + ", " + buffer->name + ", ";
    const std::vector<size_t> dims = LongDims(region);
    std::vector<int64_t> shape;
    for (const Expr& e : param.shape) shape.push_back(AsInt(e).value_or(0));
    if (buffer->layout || !buffer->strides.empty() || dims.size() != shape.size())
      return Unmet(what + "has a layout of its own, or other dimensions");
    if (!IsWhole(what, region, shape, dims)) return;
    const Layout layout = CoverMemory(param, buffer->shape.size(), dims);
    const Cover cover{shape, dims, layout, param.align};
    auto [it, fresh] = tiles.try_emplace(buffer.get(), cover);
    if (!fresh && !Agrees(it->second, cover, *buffer))
      return Unmet(what + "is asked for in another layout elsewhere");
    it->second.align = std::max(it->second.align, param.align);
  }

  // Every element lies in the same place by both.
  static bool Agrees(const Cover& a, const Cover& b, const BufferNode& buffer) {
    if (a.dims != b.dims) return false;
    std::vector<int64_t> shape, point(buffer.shape.size(), 0);
    for (size_t i = 0; i < a.dims.size(); ++i) {
      const int64_t whole = AsInt(buffer.shape[a.dims[i]]).value_or(0);
      shape.push_back(std::min(std::max(a.shape[i], b.shape[i]) * 2, whole));
    }
    const std::vector<int64_t> x = SizesOf(a, buffer), y = SizesOf(b, buffer);
    std::vector<int64_t> inner(shape.size(), 0);
    do {
      for (size_t i = 0; i < a.dims.size(); ++i) point[a.dims[i]] = inner[i];
      if (PlaceOf(a, x, point) != PlaceOf(b, y, point)) return false;
    } while (Next(shape, &inner));
    return true;
  }

  static bool Next(const std::vector<int64_t>& shape, std::vector<int64_t>* point) {
    for (size_t d = shape.size(); d-- > 0;) {
      if (++(*point)[d] < shape[d]) return true;
      (*point)[d] = 0;
    }
    return false;
  }

  static std::vector<int64_t> SizesOf(const Cover& f, const BufferNode& buffer) {
    std::vector<int64_t> out;
    for (const Expr& e : StorageExtents(buffer.shape, f.layout))
      out.push_back(AsInt(e).value_or(0));
    return out;
  }

  // In memory, or, lane by lane, in registers.
  static int64_t PlaceOf(const Cover& f, const std::vector<int64_t>& sizes,
                         const std::vector<int64_t>& point) {
    const std::vector<int64_t> storage = StorageAt(*f.layout, point);
    int64_t number = 0;
    for (size_t i = 0; i < storage.size(); ++i) number = number * sizes[i] + storage[i];
    return storage.empty() ? -1 : number;
  }

  const Module& module_;
  std::vector<const BufferNode*> made_;
  std::unordered_set<const BufferNode*> passed_;
  bool any_call_ = false;
  int lane_loops_ = 0;
  int64_t lanes_ = 0, longest_ = 0;
};

// A perfect nest of loops, outermost first, and what it runs.
struct Nest {
  std::vector<const For*> loops;
  Stmt body;
};

// Gives each lane its elements.
class Distributor final : public ScopedRewriter {
 public:
  Distributor(const PrimFunc& func, const Fragments& fragments)
      : names_(func), fragments_(fragments) {
    BindDims(func, &analyzer_);
  }
  std::vector<std::string> unmet;

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
        if (IsA<Store>(stmt)) Unmet(e.buffer, "is touched outside of loops over its elements");
      }
      return Children(stmt);
    }
    const Nest nest = NestOf(stmt);
    if (HasLoops(nest.body)) return Children(stmt);
    const std::vector<Element> elements = ElementsOf(nest.body);
    if (elements.empty()) return Children(stmt);
    return Distribute(nest, elements, stmt);
  }

  void Unmet(const Buffer& buffer, const std::string& why) {
    unmet.push_back("fragment " + buffer->name + " " + why);
  }

  static bool HasLoops(const Stmt& stmt) {
    bool found = false;
    PreOrder(stmt, [&](const NodeRef& n) {
      found |= IsA<For>(n) || IsA<While>(n);
      return !found && !IsA<ExprNode>(n);
    });
    return found;
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
        Unmet(other.buffer, "is computed in several iterations, whose order lanes would not keep");
        return stmt;
      }
      if (!CheckAlike(nest, elements, over)) return stmt;
      Stmt out = Split(nest, *e.fragment, over);
      return CheckLanes(elements) ? out : stmt;
    }
    Unmet(elements[0].buffer, "is not touched in loops that run over whole tiles");
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
    if (!alike) Unmet(it->buffer, "has elements of which nobody knows where they lie");
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
      Unmet(e.buffer, "has elements in one lane that another lane needs");
      return false;
    }
    return true;
  }

  NameSupply names_;
  const Fragments& fragments_;
  Var lane_;
  VarMap values_;  // of the loops that are split
};

Func DistributeIn(const Func& func, const Module& module) {
  auto target = Target::Parse(func->target);
  if (func->func_kind != FuncKind::kKernel || IsBound(*func) || !target || !target->IsGpu())
    return func;
  Finder finder(*func, module);
  if (finder.found.empty() && finder.tiles.empty() && finder.unmet.empty()) return func;
  std::vector<std::string> unmet = std::move(finder.unmet);
  Stmt body = func->body;
  if (unmet.empty()) {
    Distributor distributor(*func, finder.found);
    body = distributor.Rewrite(body);
    unmet = std::move(distributor.unmet);
  }
  PrimFunc fields = *func;
  if (unmet.empty()) {
    BufferMap buffers;
    for (const auto& [buffer, fragment] : finder.found) {
      auto with = MakeRef<BufferNode>(*buffer);
      with->layout = fragment.layout;
      buffers[buffer] = with;
    }
    for (const auto& [buffer, cover] : finder.tiles) {
      auto with = MakeRef<BufferNode>(*buffer);
      with->layout = cover.layout;
      with->align = std::max(with->align, cover.align);
      buffers[buffer] = with;
    }
    fields.body = SubstituteBuffers(body, buffers);
  } else {
    auto all = func->attrs.Get<std::vector<std::string>>("unmet", {});
    all.insert(all.end(), unmet.begin(), unmet.end());
    fields.attrs.Set("unmet", all);
  }
  return PrimFunc::Make(std::move(fields));
}

}  // namespace

Module Distribute(const Module& module, const PassContext&) {
  return MapFuncs(module, [&](const Func& func) { return DistributeIn(func, module); });
}

}  // namespace tenon
