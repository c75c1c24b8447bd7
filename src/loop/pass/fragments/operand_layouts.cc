// Layouts flow from calls to buffers.
//
// Schedules say `alloc AF: f32[16, 8] in fragment` and nothing of lanes. What the buffer must look
// like is known by the operations that it is passed to: each parameter has a layout of one tile,
// which covers the buffer tile by tile. Two calls that ask for the same buffer have to agree, and
// agreement is checked point by point on a few tiles rather than between formulas, which may be
// written in many ways. Fragments that no operation takes (the running maximum of a softmax) lie as
// a fragment of the same shape that some statement touches at the same element, until nothing new
// follows. From
//
//   alloc AF: f32[16, 8] in fragment
//   call @step(AF, CF[0..16, t * 8..+8])
//
// with @step's A in layout (i, k) -> (i % 8 * 4 + k % 4 on threadIdx.x, k / 4 * 2 + i / 8), comes
//
//   alloc AF: f32[16, 8] layout (x0, x1) -> (x0 % 8 * 4 + x1 % 4 size 32 on threadIdx.x,
//       x0 / 16 size _, x1 / 8 size _, x1 / 4 % 2 * 2 + x0 / 8 % 2 size 4) in fragment
//
// (one line there). Memory in shared gets from the same calls its swizzled layout, where a
// parameter is a tile, and the bytes that it must begin at a multiple of.

#include "loop/pass/fragments/operand_layouts.h"

#include <algorithm>
#include <unordered_set>

#include "ir/print.h"
#include "loop/pass/storage/storage.h"
#include "loop/rewrite.h"
#include "loop/threads.h"
#include "loop/warpgroup.h"

namespace tenon {

namespace {

// The dimensions of a box that a parameter's stand for.
std::vector<size_t> LongDims(const Region& region) {
  std::vector<size_t> out;
  for (size_t d = 0; d < region->ranges.size(); ++d) {
    if (!IsOne(region->ranges[d]->extent)) out.push_back(d);
  }
  return out;
}

// Reads the layouts off the calls. A fragment gets a layout once and keeps it; where two calls want
// different ones that is an error. made_ are the fragments that the function allocates.
class Finder final : public ScopedRewriter {
 public:
  Finder(const PrimFunc& func, const Module& module, OperandLayouts* out)
      : module_(module), out_(*out) {
    Learn(func, &analyzer_);
    Rewrite(func.body);
    if (!any_call_) return;
    while (InferMore(func.body)) {
    }
    for (const BufferNode* b : made_) {
      const bool known = passed_.count(b) != 0 || out_.fragments.count(b) != 0;
      if (!known) Refuse("fragment " + b->name + " is in no operation of a warp, nor beside one");
    }
  }

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
      Refuse(std::string("loop over ") + Name(kLaneAxis) + " is longer than a " + group +
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
      if (!IsFragment(*open) || out_.fragments.count(open) != 0) continue;
      for (const auto& [known, there] : touched) {
        auto it = out_.fragments.find(known);
        if (it == out_.fragments.end() || it->second.tile.opaque()) continue;
        if (!Equal(open->shape, known->shape) || !Equal(*at, *there)) continue;
        out_.fragments.emplace(open, it->second);
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

  void Refuse(const std::string& what) {
    if (std::find(out_.refused.begin(), out_.refused.end(), what) == out_.refused.end())
      out_.refused.push_back(what);
  }

  void See(const CallFunc& call) {
    const Func callee = module_.Find(call.callee);
    if (!callee || callee->func_kind != FuncKind::kDevice) return;
    for (size_t i = 0; i < call.buffers.size(); ++i) {
      const BufferNode& param = *callee->buffers[i];
      if (IsTile(param)) SeeTile(call.callee, param, call.buffers[i]);
      const bool other = IsWarpFunction(*callee) && !IsTile(param) && !IsFragment(param);
      if (other) SeeMemory(call.callee, param, call.buffers[i]);
    }
    SeeStrides(call, *callee);
    if (!IsWarpFunction(*callee)) return;
    any_call_ = true;
    const int64_t lanes = LanesOf(*callee);
    if (lanes_ > 0 && lanes != lanes_)
      Refuse(call.callee + " is an operation of other threads than the kernel's others");
    lanes_ = lanes;
    if (lane_loops_ > 0) {
      Refuse(call.callee + " is an operation of a warp inside of a loop over " + Name(kLaneAxis) +
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
      return Refuse(what + "has no layout over the lanes of a warp");
    }
    if (!IsWhole(what, region, tile->shape(), dims)) return;
    const Layout layout = tile->Cover(buffer->shape.size(), dims);
    const Fragment fragment{{tile->shape(), dims, layout}, *tile};
    auto [it, fresh] = out_.fragments.try_emplace(buffer.get(), fragment);
    const bool alike = it->second.tile.opaque() == fragment.tile.opaque();
    if (fresh || (alike && Agrees(it->second, fragment, *buffer))) return;
    Refuse(what + "is asked for in another layout elsewhere");
  }

  // A box of whole tiles of constant size.
  bool IsWhole(const std::string& what, const Region& region, const std::vector<int64_t>& shape,
               const std::vector<size_t>& dims) {
    for (size_t i = 0; i < dims.size(); ++i) {
      const RangeNode& range = *region->ranges[dims[i]];
      const Expr rest = analyzer_.Simplify(range.min % shape[i]);
      if (!IsZero(rest) || AsInt(analyzer_.Simplify(range.extent)) != shape[i]) {
        Refuse(what + "does not begin where a tile of it does");
        return false;
      }
      const auto whole = AsInt(region->buffer->shape[dims[i]]);
      if (whole && *whole % shape[i] == 0) continue;
      Refuse(what + "is not made of whole tiles");
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
      return Refuse(what + "has a layout of its own, or other dimensions");
    if (!IsWhole(what, region, shape, dims)) return;
    const Layout layout = CoverMemory(param, buffer->shape.size(), dims);
    const Cover cover{shape, dims, layout};
    auto [it, fresh] = out_.tiles.try_emplace(buffer.get(), cover);
    if (!fresh && !Agrees(it->second, cover, *buffer))
      return Refuse(what + "is asked for in another layout elsewhere");
    Align(*buffer, param.align);
  }

  // Rows are as far apart as the operation can take them.
  void SeeStrides(const CallFunc& call, const PrimFunc& callee) {
    for (size_t d = 0; d < callee.dims.size(); ++d) {
      const int64_t step = callee.dim_step[d];
      if (step <= 1 || IsZero(analyzer_.Simplify(call.scalars[d] % step))) continue;
      for (size_t i = 0; i < call.buffers.size(); ++i) {
        const BufferNode& param = *callee.buffers[i];
        if (!std::any_of(param.strides.begin(), param.strides.end(),
                         [&](const Expr& s) { return UsesVar(s, callee.dims[d].get()); })) {
          continue;
        }
        Refuse("operand " + param.name + " of " + call.callee + ", " +
               call.buffers[i]->buffer->name + ", has rows that are " +
               ToString(NodeRef(analyzer_.Simplify(call.scalars[d]))) +
               " elements apart: expected a multiple of " + std::to_string(step));
      }
    }
  }

  // Memory of a block of threads begins where the operations need it to, a caller's where its
  // declaration says. The box has to be at a multiple of that in it.
  void SeeMemory(const std::string& callee, const BufferNode& param, const Region& region) {
    const BufferNode& buffer = *region->buffer;
    const bool shared = buffer.scope == Scope::kShared;
    if (param.align == 0 || (!shared && buffer.scope != Scope::kGlobal)) return;
    const auto bytes = BytesBefore(*region);
    const bool base = shared || buffer.align >= param.align;
    if (!base || !bytes || !IsZero(analyzer_.Simplify(*bytes % param.align))) {
      return Refuse("operand " + param.name + " of " + callee + ", " + buffer.name +
                    ", is not known to begin at a multiple of " + std::to_string(param.align) +
                    " bytes");
    }
    if (shared) Align(buffer, param.align);
  }

  void Align(const BufferNode& buffer, int64_t align) {
    int64_t& most = out_.aligns[&buffer];
    most = std::max(most, align);
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
  OperandLayouts& out_;
  std::vector<const BufferNode*> made_;
  std::unordered_set<const BufferNode*> passed_;
  bool any_call_ = false;
  int lane_loops_ = 0;
  int64_t lanes_ = 0, longest_ = 0;
};

}  // namespace

OperandLayouts LayoutsOfOperands(const PrimFunc& func, const Module& module) {
  OperandLayouts out;
  Finder finder(func, module, &out);
  return out;
}

}  // namespace tenon
