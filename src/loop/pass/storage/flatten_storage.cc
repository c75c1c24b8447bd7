#include "loop/pass/storage/flatten_storage.h"

#include <algorithm>

#include "loop/pass/storage/storage.h"
#include "loop/threads.h"

namespace tenon {

namespace {

// The dimension of each private buffer along which vectors run. How such a buffer lies in memory is
// nobody else's business, so that dimension goes innermost, and its vectors become registers.
class VectorAxes final : public ChildVisitor {
 public:
  std::unordered_map<const BufferNode*, size_t> operator()(const Stmt& body) {
    VisitChild(body, FieldRole::kChild);
    std::unordered_map<const BufferNode*, size_t> axes;
    for (const auto& [buffer, uses] : uses_) {
      auto most = std::max_element(uses.begin(), uses.end());
      if (most != uses.end() && *most > 0) axes[buffer] = static_cast<size_t>(most - uses.begin());
    }
    return axes;
  }

 private:
  void VisitChild(const NodeRef& child, FieldRole role) override {
    if (role == FieldRole::kBinds || child->kind == NodeKind::kBuffer) return;
    if (!child->IsUnique() && !seen_.insert(child.get()).second) return;
    if (const auto* alloc = As<Alloc>(child)) Found(alloc->buffer);
    if (const auto* load = As<Load>(child)) Access(load->buffer, load->indices);
    if (const auto* store = As<Store>(child)) Access(store->buffer, store->indices);
    // Whoever gets a part of it counts on its rows.
    if (const auto* region = As<RegionNode>(child)) uses_.erase(region->buffer.get());
    const auto* loop = As<For>(child);
    bool lanes = loop && loop->for_kind == ForKind::kVectorized;
    if (lanes) lanes_.insert(loop->var.get());
    child->VisitChildren(*this);
    if (lanes) lanes_.erase(loop->var.get());
  }

  void Found(const Buffer& b) {
    bool free = IsThreadArray(b->scope) && !b->layout && b->strides.empty();
    if (free && b->rank() > 1) uses_[b.get()].resize(b->shape.size());
  }

  void Access(const Buffer& b, const std::vector<Expr>& indices) {
    auto it = uses_.find(b.get());
    if (it == uses_.end()) return;
    for (size_t d = 0; d < indices.size(); ++d) {
      it->second[d] += indices[d]->dtype.IsVector() || UsesAnyVar(indices[d], lanes_);
    }
  }

  std::unordered_map<const BufferNode*, std::vector<int>>
      uses_;  // vector accesses along each dimension
  std::unordered_set<const VarNode*> lanes_;
  std::unordered_set<const Node*> seen_;  // of those with several parents
};

// One function. axes_ says along which axis vectors run in a private buffer; it is found before
// anything is rewritten, so that all uses of the buffer agree.
class Flattener final : public StorageRewriter {
 public:
  Func operator()(const Func& func) {
    Learn(*func, &analyzer_);
    axes_ = VectorAxes()(func->body);
    PrimFunc fields = *func;
    for (Buffer& b : fields.buffers) b = VisitBuffer(b);
    fields.body = Rewrite(func->body);
    return PrimFunc::Make(std::move(fields));
  }

 private:
  FlatBuffer Place(const Buffer& buffer) override {
    if (IsFragment(*buffer)) return Registers(buffer);
    bool memory = !buffer->layout || buffer->layout->threads.empty();
    if (!memory || buffer->scope == Scope::kBarrier) return {};
    FlatBuffer flat = Flatten(buffer);
    auto axis = axes_.find(buffer.get());
    if (axis != axes_.end()) PutInnermost(axis->second, &flat);
    return flat;
  }

  // What each lane has of a fragment.
  static FlatBuffer Registers(const Buffer& buffer) {
    FlatBuffer flat = Flatten(buffer);
    if (!buffer->layout || buffer->layout->threads.empty()) return {};
    flat.size = Simplify(flat.strides[0]);
    flat.strides[0] = IndexConst(0);
    flat.buffer = BufferNode::Make(buffer->name, buffer->dtype, {flat.size}, Scope::kRegister,
                                   nullptr, {}, buffer->align);
    return flat;
  }

  static void PutInnermost(size_t axis, FlatBuffer* flat) {
    Expr stride = flat->extents[axis];
    flat->strides[axis] = IndexConst(1);
    for (size_t d = flat->extents.size(); d-- > 0;) {
      if (d == axis) continue;
      flat->strides[d] = stride;
      stride = stride * flat->extents[d];
    }
  }

  std::unordered_map<const BufferNode*, size_t> axes_;
};

}  // namespace

Module FlattenStorage(const Module& module, const PassContext&) {
  return MapFuncs(module, [](const Func& func) {
    // The meaning of an operation of a warp, which nobody writes as code.
    return IsWarpFunction(*func) ? func : Flattener()(func);
  });
}

}  // namespace tenon
