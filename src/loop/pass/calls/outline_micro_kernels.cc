// The tiles of a network differ in where they lie and how deep they are, and in little else. A
// piece (an allocation of registers with what is done in its scope) is therefore abstracted until
// pieces that do the same are the same tree:
//
//   1. every access of memory from outside is written as corner + sum of stride * loop: the corner
//      becomes the argument, what is left is counted from it;
//   2. trip counts of serial loops become parameters, as do strides that are large; small strides
//      stay, since they decide how vectors are loaded;
//   3. whatever else comes from outside becomes a parameter (OuterValues).
//
// The result is compared with the functions that are there, by structure. So
//
//   for i in 0..64 {
//     alloc acc: f32[16] in register
//     for x in 0..16 unrolled { acc[x] = 0f32 }
//     for k in 0..1024 {
//       for x.1 in 0..16 unrolled { acc[x.1] = acc[x.1] + A[i * 1024 + k] * B[k * 128 + x.1] }
//     }
//     for x.2 in 0..16 unrolled { C[i * 64 + x.2] = acc[x.2] }
//   }
//
// becomes the call
//
//   for i in 0..64 {
//     call @f.tile0(A[i * 1024..+1024], B[0..130960], C[i * 64..+16]; 1024, 130960, 16, 1024, 128)
//   }
//
// of a function of sizes, depth and the stride of B, and a tile that is 512 deep at another place
// calls the same one.

#include "loop/pass/calls/outline_micro_kernels.h"

#include <algorithm>

#include "ir/visit.h"
#include "loop/outer_values.h"
#include "loop/rewrite.h"

namespace tenon {

namespace {

// Stores that a tile must execute: a call with its arguments costs as much as about 30 of them.
constexpr int64_t kMinWork = 1024;
// Strides (in elements) up to this one are a matter of how the tile lies in its vectors.
constexpr int64_t kSmallStride = 64;
// Positions along an unrolled loop whose addresses fit the machine's registers: beyond, constant
// strides become displacements.
constexpr int64_t kMaxPointers = 6;

// A scalar index, or the first lane of a vector of consecutive or strided ones; null for others.
Expr FirstLane(const std::vector<Expr>& indices) {
  if (indices.size() != 1) return nullptr;
  if (const auto* ramp = As<Ramp>(indices[0])) return ramp->base;
  return indices[0]->dtype.IsScalar() ? indices[0] : nullptr;
}

// One piece: first learnt (good_ becomes false for ever at the first thing that cannot be
// abstracted), then made a callee of, then called. Every access of a buffer of params_ lies in
// [base + lo, base + hi].
class Piece {
 public:
  Piece(const Stmt& piece, const Func& caller, NameSupply* names)
      : piece_(piece),
        caller_(caller),
        values_([names](const std::string& base) { return names->Fresh(base); }) {}

  /// False: it stays where it is.
  bool Learn() {
    CollectBound();
    if (!good_ || Work(piece_) < kMinWork || !has_serial_) return false;
    PreOrder(piece_, [&](const NodeRef& n) {
      if (const auto* load = As<Load>(n)) LearnAccess(load->buffer, load->indices, false);
      if (const auto* store = As<Store>(n)) LearnAccess(store->buffer, store->indices, true);
      return good_;
    });
    return good_;
  }

  Func MakeCallee(const std::string& name) {
    MakeParams();
    Stmt body = values_.Abstract(Localize(piece_));
    PrimFunc f;
    f.name = name;
    f.func_kind = FuncKind::kDevice;
    f.target = caller_->target;
    f.attrs.Set(kMicroKernel, true);
    if (caller_->attrs.Get<bool>("noalias", false)) f.attrs.Set("noalias", true);
    values_.DeclareIn(&f);
    for (const Param& p : params_) {
      f.buffers.push_back(p.inner);
      f.num_outputs += p.written;
    }
    f.body = body;
    return PrimFunc::Make(std::move(f));
  }

  Stmt MakeCall(const std::string& callee) const {
    std::vector<Region> regions;
    for (const Param& p : params_) {
      Expr first = Simplify(p.base + p.lo);
      regions.push_back(
          RegionNode::Make(p.outer, {RangeNode::Make(first, IndexConst(p.hi - p.lo + 1))}));
    }
    return CallFunc::Make(callee, std::move(regions), values_.Arguments());
  }

 private:
  struct Loop {
    Var var;
    int64_t min, extent;
    bool serial;
    Var count;  // the parameter that is the trip count of a serial loop
  };
  // An outer buffer: everything is counted from element base + lo; hi is the last one touched.
  struct Param {
    Buffer outer, inner;
    Expr base;
    int64_t lo = 0, hi = 0;
    bool written = false;
    std::vector<std::pair<int64_t, Var>> strides;  // large ones and their parameters
  };

  void CollectBound() {
    PreOrder(piece_, [&](const NodeRef& n) {
      switch (n->kind) {
        case NodeKind::kSeq:
        case NodeKind::kStore:
        case NodeKind::kIf: break;
        case NodeKind::kBlock: good_ &= As<Block>(n)->iters.empty(); break;
        case NodeKind::kFor: CollectLoop(*As<For>(n)); break;
        case NodeKind::kLet:
          lets_.insert(As<Let>(n)->var.get());
          values_.AddInner(As<Let>(n)->var.get());
          break;
        case NodeKind::kAlloc:
          good_ &= As<Alloc>(n)->buffer->scope == Scope::kRegister;
          own_.insert(As<Alloc>(n)->buffer.get());
          break;
        case NodeKind::kCall: good_ &= Info(As<Call>(n)->intrinsic).purity == Purity::kPure; break;
        default: good_ &= !IsA<StmtNode>(n);
      }
      return good_;
    });
  }

  void CollectLoop(const For& loop) {
    auto min = AsInt(loop.min), extent = AsInt(loop.extent);
    bool serial = loop.for_kind == ForKind::kSerial;
    good_ &= min && extent && *extent > 0 && (serial || loop.for_kind == ForKind::kUnrolled);
    if (!good_) return;
    has_serial_ |= serial;
    loops_.push_back({loop.var, *min, *extent, serial, nullptr});
    vars_.push_back(loop.var);
    values_.AddInner(loop.var.get());
    analyzer_.Bind(loop.var, loop.min, loop.extent);
  }

  // Stores executed, every branch counted.
  static int64_t Work(const Stmt& s) {
    if (IsA<Store>(s)) return 1;
    if (const auto* loop = As<For>(s)) return AsInt(loop->extent).value_or(1) * Work(loop->body);
    int64_t sum = 0;
    if (const auto* seq = As<Seq>(s)) {
      for (const Stmt& t : seq->stmts) sum += Work(t);
    }
    if (const auto* branch = As<If>(s)) {
      sum = Work(branch->then_body) + (branch->else_body ? Work(branch->else_body) : 0);
    }
    if (const auto* let = As<Let>(s)) sum = Work(let->body);
    if (const auto* alloc = As<Alloc>(s)) sum = Work(alloc->body);
    if (const auto* block = As<Block>(s)) sum = Work(block->body);
    return sum;
  }

  std::optional<AffineForm> Form(const Expr& index) {
    Expr e = analyzer_.Simplify(index);
    if (UsesAnyVar(e, lets_)) return std::nullopt;
    bool loads = false;
    PreOrder(e, [&](const NodeRef& n) { return !(loads |= IsA<Load>(n)); });
    return loads ? std::nullopt : DetectAffine(e, vars_);
  }

  Param* Find(const Buffer& b) {
    auto it =
        std::find_if(params_.begin(), params_.end(), [&](const Param& p) { return p.outer == b; });
    return it == params_.end() ? nullptr : &*it;
  }

  void LearnAccess(const Buffer& buffer, const std::vector<Expr>& indices, bool write) {
    if (own_.count(buffer.get())) return;
    Expr first = FirstLane(indices);
    std::optional<AffineForm> form = first ? Form(first) : std::nullopt;
    // Registers from outside would be memory to a function.
    good_ &=
        form.has_value() && buffer->scope != Scope::kBarrier && buffer->scope != Scope::kRegister;
    if (!good_) return;
    const auto* ramp = As<Ramp>(indices[0]);
    Param* p = Find(buffer);
    if (p == nullptr) {
      params_.push_back({buffer, nullptr, form->base, 0, 0, false, {}});
      p = &params_.back();
    }
    auto delta = AsInt(analyzer_.Simplify(form->base - p->base));
    auto step = ramp ? AsInt(ramp->stride) : std::optional<int64_t>(1);
    good_ &= delta && step;
    if (!good_) return;
    int64_t last = indices[0]->dtype.lanes - 1;
    int64_t lo = *delta + std::min<int64_t>(0, last * *step),
            hi = *delta + std::max<int64_t>(0, last * *step);
    for (size_t i = 0; i < loops_.size(); ++i) {
      auto c = AsInt(form->coefficients[i]);
      good_ &= c.has_value();
      if (!good_) return;
      int64_t at_first = *c * loops_[i].min, at_last = *c * (loops_[i].min + loops_[i].extent - 1);
      lo += std::min(at_first, at_last);
      hi += std::max(at_first, at_last);
    }
    p->lo = std::min(p->lo, lo);
    p->hi = std::max(p->hi, hi);
    p->written |= write;
  }

  void MakeParams() {
    // What is written comes last, as outputs do.
    std::stable_partition(params_.begin(), params_.end(),
                          [](const Param& p) { return !p.written; });
    for (Param& p : params_) {
      Expr size = values_.NewDim("n_" + p.outer->name, IndexConst(p.hi - p.lo + 1));
      p.inner = BufferNode::Make(p.outer->name, p.outer->dtype, {size}, p.outer->scope);
    }
    for (Loop& l : loops_) {
      if (l.serial) l.count = values_.NewDim("n_" + l.var->name, IndexConst(l.extent));
    }
  }

  // A coefficient of a loop in an index of a buffer.
  Expr Stride(Param* p, const Loop& loop, int64_t c) {
    bool constant = std::abs(c) <= kSmallStride || (!loop.serial && loop.extent > kMaxPointers);
    if (constant) return IndexConst(c);
    for (const auto& [value, var] : p->strides) {
      if (value == c) return var;
    }
    p->strides.emplace_back(c, values_.NewDim("stride_" + p->outer->name, IndexConst(c)));
    return p->strides.back().second;
  }

  std::vector<Expr> LocalIndices(Param* p, const std::vector<Expr>& indices) {
    AffineForm form = *Form(FirstLane(indices));
    int64_t delta = *AsInt(analyzer_.Simplify(form.base - p->base)) - p->lo;
    Expr local = IndexConst(delta);
    for (size_t i = 0; i < loops_.size(); ++i) {
      int64_t c = *AsInt(form.coefficients[i]);
      if (c != 0) local = local + loops_[i].var * Stride(p, loops_[i], c);
    }
    local = Simplify(local);
    const auto* ramp = As<Ramp>(indices[0]);
    return {ramp ? Ramp::Make(local, ramp->stride, indices[0]->dtype.lanes) : local};
  }

  // The piece with its accesses counted from the corners of what it touches.
  Stmt Localize(const Stmt& s) {
    return PostOrderRewrite(s, [&](const NodeRef& n) -> NodeRef {
      if (const auto* load = As<Load>(n)) {
        Param* p = Find(load->buffer);
        if (p == nullptr) return n;
        return Load::Make(p->inner, LocalIndices(p, load->indices), load->mask);
      }
      if (const auto* store = As<Store>(n)) {
        Param* p = Find(store->buffer);
        if (p == nullptr) return n;
        return Store::Make(p->inner, LocalIndices(p, store->indices), store->value, store->mask);
      }
      if (const auto* branch = As<If>(n)) {
        Expr c = values_.AbstractCondition(branch->condition, vars_, &analyzer_);
        return If::Make(c, branch->then_body, branch->else_body);
      }
      if (const auto* loop = As<For>(n)) {
        auto it = std::find_if(loops_.begin(), loops_.end(),
                               [&](const Loop& l) { return l.var == loop->var; });
        if (!it->serial) return n;
        return For::Make(loop->var, loop->min, it->count, loop->for_kind, loop->body, loop->attrs);
      }
      return n;
    });
  }

  Stmt piece_;
  Func caller_;
  OuterValues values_;
  Analyzer analyzer_;
  bool good_ = true, has_serial_ = false;
  std::vector<Loop> loops_;
  std::vector<Var> vars_;
  std::unordered_set<const VarNode*> lets_;
  std::unordered_set<const BufferNode*> own_;
  std::vector<Param> params_;
};

// Goes over one kernel. Functions that it adds to the module are different from each other.
class Outliner final : public ScopedRewriter {
 public:
  Outliner(const Func& func, Module* out) : func_(func), names_(*func), out_(out) {}

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    const auto* alloc = As<Alloc>(stmt);
    if (!alloc || alloc->buffer->scope != Scope::kRegister) return Children(stmt);
    Piece piece(stmt, func_, &names_);
    if (!piece.Learn()) return Children(stmt);
    return piece.MakeCall(Add(piece.MakeCallee(func_->name)));
  }

  // The name of an equal function, or of the new one.
  std::string Add(const Func& callee) {
    for (const auto& [name, other] : out_->funcs) {
      if (other->attrs.Has(kMicroKernel) &&
          StructuralEqual(Renamed(other, func_->name, {}), callee))
        return name;
    }
    std::string name;
    for (int i = 0; name.empty() || out_->Find(name); ++i) {
      name = func_->name + ".tile" + std::to_string(i);
    }
    out_->Add(Renamed(callee, name, {}));
    return name;
  }

  Func func_;
  NameSupply names_;
  Module* out_;
};

}  // namespace

Func Renamed(const Func& func, const std::string& name,
             const std::map<std::string, std::string>& names) {
  PrimFunc fields = *func;
  fields.name = name;
  if (names.empty()) return PrimFunc::Make(std::move(fields));
  fields.body = PostOrderRewrite(func->body, [&](const NodeRef& n) -> NodeRef {
    const auto* call = As<CallFunc>(n);
    auto it = call ? names.find(call->callee) : names.end();
    if (it == names.end()) return n;
    return CallFunc::Make(it->second, call->buffers, call->scalars);
  });
  return PrimFunc::Make(std::move(fields));
}

Module OutlineMicroKernels(const Module& module, const PassContext&) {
  Module out = module;
  for (const auto& [name, func] : module.funcs) {
    if (func->func_kind != FuncKind::kKernel) continue;
    out.Add(WithBody(func, Outliner(func, &out).Rewrite(func->body)));
  }
  return out;
}

}  // namespace tenon
