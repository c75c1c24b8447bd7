// Offsets for everything that is allocated: in a kernel's workspace, in the arena of a call.
//
// Lifetimes (arena.h) are read off the tree: a value is needed from its first use to its last, in
// the numbering of statements, and a use in a loop counts for the whole loop. PlanArena then places
// the largest first, each at the lowest offset at which it meets nothing that lives at the same
// time. In a kernel, memory of the team never overlaps (workers may be a barrier apart), memory of
// a worker does, and each worker has a copy at rank * bytes:
//
//   for j in 0..4 parallel {
//     alloc first: f32[2048] in local { first[j] = small[0]; small[1] = first[j] }
//     alloc second: f32[2048] in local
//     …
//
// becomes, with both at offset 0,
//
//   let own_workspace = ptr_offset(workspace, 16384 + team_rank<index>() * 8192)
//   …
//   for j in 0..4 parallel {
//     bind first: f32[2048] in local align 64 = ptr_offset(own_workspace, 0) { … }
//     bind second: f32[2048] in local align 64 = ptr_offset(own_workspace, 0)
//     …
//
// Sizes that depend on dims are offsets that are expressions; the order of placing is then decided
// by a guess of typical sizes, so that it is the same in every run. In a host function all values,
// whatever their type, are regions of one view of the arena per element type, and launches carry
// the workspaces of their kernels, which are items with the life of that one launch. Where memory
// has no addresses (handles), every item is memory of its own.

#include "loop/pass/storage/plan_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "dependence/access.h"
#include "intrin/tile_intrinsic.h"
#include "loop/arguments.h"
#include "loop/launch_order.h"
#include "loop/pass/packed_abi.h"
#include "loop/pass/storage/arena.h"
#include "loop/pass/storage/storage.h"
#include "loop/threads.h"
#include "loop/workspace.h"

namespace tenon {

namespace {

// More than any register file: a buffer that asked for registers and is larger goes where others
// go.
constexpr int64_t kMaxRegisterBytes = 8192;

int64_t ElementBytes(const BufferNode& b) { return b.dtype.Bytes(); }

Expr StorageBytes(const Buffer& buffer) { return Flatten(buffer).size * ElementBytes(*buffer); }

// Whether nobody chose an end of this dim.
bool IsOpen(const PrimFunc& func, size_t dim) {
  const int64_t hi = func.dim_hi[dim];
  return hi < 0 || hi >= std::numeric_limits<int32_t>::max();
}

// A size for deciding about order: dims at their upper ends, or at a middling size where they have
// none that anybody chose.
int64_t GuessBytes(const Expr& bytes, const PrimFunc& func) {
  if (auto constant = AsInt(bytes)) return *constant;
  constexpr int64_t kTypicalDim = 128;
  VarMap dims;
  for (size_t i = 0; i < func.dims.size(); ++i) {
    dims[func.dims[i].get()] =
        IndexConst(IsOpen(func, i) ? std::max(func.dim_lo[i], kTypicalDim) : func.dim_hi[i]);
  }
  return AsInt(Simplify(Substitute(bytes, dims))).value_or(kTypicalDim);
}

void SetIfConst(Attrs* attrs, const char* name, const Expr& value) {
  if (auto constant = AsInt(value)) attrs->Set(name, *constant);
}

// ---- kernels ----

// One kernel. An allocation is in exactly one of three places: left where it is (stack, registers),
// in shared_ or in own_; items and buffers of a list go together by index.
class KernelPlanner final : public ScopedRewriter {
 public:
  KernelPlanner(const Func& func, const Module& module, const PassContext& context)
      : func_(func), module_(module), context_(context) {
    Learn(*func, &analyzer_);
  }

  Func operator()() {
    Choose();
    ArenaPlan shared = PlanArena(shared_items_, &analyzer_);
    ArenaPlan own = PlanArena(own_items_, &analyzer_);
    PrimFunc fields = *func_;
    if (!placed_count()) return Describe(std::move(fields), shared, own);
    Var workspace = VarNode::Make("workspace", DType::Handle());
    fields.scalars.push_back(workspace);
    Place(shared_, workspace, Scope::kGlobal, shared.offsets);
    Var own_workspace = VarNode::Make(NameSupply(*func_).Fresh("own_workspace"), DType::Handle());
    Place(own_, own_workspace, Scope::kLocal, own.offsets);
    fields.body = Rewrite(func_->body);
    if (!own_.empty()) {
      Expr rank = Call::Make(Intrinsic::kTeamRank, {}, DType::Index());
      Expr start = Call::Make(Intrinsic::kPtrOffset, {workspace, shared.bytes + rank * own.bytes});
      fields.body = Let::Make(own_workspace, start, fields.body);
    }
    return Describe(std::move(fields), shared, own);
  }

 private:
  struct Placed {
    Buffer buffer;
    Expr data;
  };

  size_t placed_count() const { return shared_.size() + own_.size(); }

  // What launchers need to know, so that a declaration will do for them.
  Func Describe(PrimFunc fields, const ArenaPlan& shared, const ArenaPlan& own) const {
    SetWorkspace(shared.bytes, own.bytes, &fields);
    ParamUse use = ParamUseOf(*func_, module_);
    std::vector<int64_t> reads, writes;
    for (size_t i = 0; i < use.reads.size(); ++i) {
      if (use.reads[i]) reads.push_back(static_cast<int64_t>(i));
      if (use.writes[i]) writes.push_back(static_cast<int64_t>(i));
    }
    fields.attrs.Set("reads", std::move(reads));
    fields.attrs.Set("writes", std::move(writes));
    bool parallel = false;
    Expr width = IndexConst(1);
    PreOrder(func_->body, [&](const NodeRef& n) {
      const auto* loop = As<For>(n);
      if (!loop || loop->for_kind != ForKind::kParallel) return !IsA<ExprNode>(n);
      parallel = true;
      if (width) width = IsOfDims(loop->extent, *func_) ? Max(width, loop->extent) : nullptr;
      return false;
    });
    if (width) SetTeamWidth(Simplify(width), &fields);
    fields.attrs.Set("parallel", parallel);
    return PrimFunc::Make(std::move(fields));
  }

  /// Bytes of storage, for the largest dims; nullopt where they have no end.
  std::optional<int64_t> LargestBytes(const Buffer& buffer) {
    int64_t bytes = analyzer_.ConstBounds(StorageBytes(buffer)).max;
    if (bytes == Interval::kPosInf) return std::nullopt;
    return std::max<int64_t>(bytes, 0);
  }

  void Choose() {
    Lifetimes lives = LifetimesOf(func_->body);
    std::vector<std::pair<const Lifetime*, Expr>> own;
    for (const Lifetime& life : lives.allocs) {
      const Buffer& b = life.alloc->buffer;
      std::optional<int64_t> bytes = LargestBytes(b);
      const bool is_constant = AsInt(StorageBytes(b)).has_value();
      bool registers =
          b->scope == Scope::kRegister && is_constant && bytes && *bytes <= kMaxRegisterBytes;
      const bool tiles = b->scope == Scope::kTile && bytes && *bytes <= kTileBytes * kNumTiles;
      if (registers || tiles || b->scope == Scope::kBarrier) continue;
      // A GPU's compiler finds places for a thread's and a block's memory.
      if (IsBound(*func_) && b->scope != Scope::kGlobal) continue;
      const Expr size = bytes ? IndexConst(*bytes) : Simplify(StorageBytes(b));
      if (!IsOfDims(size, *func_)) {
        context_.Remark(fmt::format("{}: {} has no largest size", func_->name, b->name));
      } else if (b->scope == Scope::kGlobal && !life.in_parallel) {
        // The team's buffers never overlap: workers may be a barrier apart.
        Add(life, size, &shared_, &shared_items_);
      } else {
        own.emplace_back(&life, size);
      }
    }
    std::sort(own.begin(), own.end(), [&](const auto& a, const auto& b) {
      return std::pair(Guess(a.second), a.first->first) <
             std::pair(Guess(b.second), b.first->first);
    });
    int64_t room = context_.max_stack_bytes;
    for (const auto& [life, bytes] : own) {
      if (Guess(bytes) <= room && AsInt(StorageBytes(life->alloc->buffer)))
        room -= Guess(bytes);
      else
        Add(*life, bytes, &own_, &own_items_);
    }
    for (ArenaItem& item : shared_items_) item.first = 0, item.last = lives.end;
  }

  int64_t Guess(const Expr& bytes) const { return GuessBytes(bytes, *func_); }

  void Add(const Lifetime& life, const Expr& bytes, std::vector<Buffer>* buffers,
           std::vector<ArenaItem>* items) const {
    buffers->push_back(life.alloc->buffer);
    items->push_back({buffers->back()->name, bytes, Guess(bytes), life.first, life.last, false});
  }

  void Place(const std::vector<Buffer>& buffers, const Var& base, Scope scope,
             const std::vector<Expr>& offsets) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      auto view = MakeRef<BufferNode>(*buffers[i]);
      view->scope = scope;
      view->align = std::max(view->align, kArenaAlign);
      placed_[buffers[i].get()] = {view, Call::Make(Intrinsic::kPtrOffset, {base, offsets[i]})};
    }
  }

  Stmt VisitStmt(const Stmt& stmt) override {
    const auto* alloc = As<Alloc>(stmt);
    auto it = alloc ? placed_.find(alloc->buffer.get()) : placed_.end();
    if (it == placed_.end()) return Children(stmt);
    return Bind::Make(it->second.buffer, it->second.data, VisitStmt(alloc->body));
  }
  Buffer VisitBuffer(const Buffer& buffer) override {
    auto it = placed_.find(buffer.get());
    return it == placed_.end() ? buffer : it->second.buffer;
  }
  Expr VisitExpr(const Expr& expr) override {
    return PostOrderRewrite(expr, [&](const NodeRef& n) -> NodeRef {
      const auto* load = As<Load>(n);
      if (!load || !placed_.count(load->buffer.get())) return n;
      return Load::Make(VisitBuffer(load->buffer), load->indices, load->mask);
    });
  }

  const Func& func_;
  const Module& module_;
  const PassContext& context_;
  std::vector<Buffer> shared_, own_;
  std::vector<ArenaItem> shared_items_, own_items_;
  std::unordered_map<const BufferNode*, Placed> placed_;
};

// ---- host functions ----

// More than any machine has; sums of some of these are integers still.
constexpr int64_t kTooManyBytes = int64_t{1} << 56;

// A size as a float: no less than it is but for roundings.
Expr Approximate(const Expr& e) {
  const DType type = DType::Float(64);
  if (auto n = AsInt(e)) return FloatConst::Make(type, static_cast<double>(*n));
  const auto* b = As<Binary>(e);
  if (!b) return CastExpr::Make(type, e);
  switch (b->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kMul:
    case BinaryOp::kMax: return Binary::Make(b->op, Approximate(b->lhs), Approximate(b->rhs));
    case BinaryOp::kDiv:
      if (AsInt(b->rhs))
        return Approximate(b->lhs) / Approximate(b->rhs) + Approximate(IndexConst(1));
      return Approximate(b->lhs);
    default: return CastExpr::Make(type, e);
  }
}

// One host function. Every value and workspace is an item, and plan_ has an offset for each, in the
// order of items_.
class HostPlanner final : public StorageRewriter {
 public:
  /// `numbers`: of the weights that the module's functions have on a device, by their offsets.
  HostPlanner(const Func& func, const Module& module, const PassContext& context,
              const std::map<int64_t, size_t>& numbers)
      : func_(func), module_(module), context_(context) {
    Learn(*func, &analyzer_);
    FindMost();
    std::vector<std::string> names = func->attrs.Get<std::vector<std::string>>("weights", {});
    std::vector<int64_t> offsets = func->attrs.GetInts("weight_offsets");
    TN_CHECK(names.size() == offsets.size());
    for (size_t i = 0; i < names.size(); ++i) {
      weight_offsets_[names[i]] = offsets[i];
      if (const auto at = numbers.find(offsets[i]); at != numbers.end())
        weight_numbers_[names[i]] = {i, at->second};
    }
    on_device_ = func->attrs.Has(packed::kDeviceTypeAttr);
    device_weights_.resize(names.size());
    weight_sizes_.resize(names.size());
  }

  /// `sizer` receives the function that computes the arena's bytes, where they are not constant.
  Func operator()(Func* sizer) {
    Plan();
    PrimFunc fields = *func_;
    Stmt body = Rewrite(func_->body);
    if (on_device_ && !weight_offsets_.empty()) {
      Var weights = VarNode::Make(kDeviceWeights, DType::Handle());
      for (size_t i = 0; i < device_weights_.size(); ++i) {
        if (!device_weights_[i]) continue;
        const auto slot = static_cast<int64_t>(device_slots_[i]) * packed::kSlotBytes;
        body = Bind::Make(device_weights_[i], packed::LoadAt(DType::Handle(), weights, slot), body);
      }
      fields.scalars.push_back(weights);
      fields.attrs.Set("weight_bytes", weight_sizes_);
    }
    for (auto& [dtype, view] : weight_views_) {
      Expr base = Call::Make(Intrinsic::kWeightsBase, {}, DType::Handle());
      body = Bind::Make(view, base, body);
    }
    for (const Arena& arena : arenas_) {
      for (const auto& [dtype, view] : arena.views) body = Bind::Make(view, arena.memory, body);
      fields.scalars.push_back(arena.memory);
    }
    fields.body = body ? body : Seq::Make({});
    if (!items_.empty()) {
      fields.attrs.Set("plan", ToString(items_, plan_));
      const bool is_constant = arenas_.size() == 1 && AsInt(plan_.bytes);
      if (is_constant) SetIfConst(&fields.attrs, "arena_bytes", plan_.bytes);
      if (!is_constant) {
        *sizer = Sizer();
        SetMostBytes(&fields.attrs);
      }
    }
    if (uses_team_size_) fields.attrs.Set("max_team", context_.max_team);
    return PrimFunc::Make(std::move(fields));
  }

 private:
  void Plan() {
    Lifetimes lives = LifetimesOf(func_->body);
    for (const Lifetime& life : lives.allocs) {
      const Buffer& b = life.alloc->buffer;
      if (IsOnHost(*b)) continue;
      allocated_.insert(b.get());
      if (b->scope == Scope::kConst) continue;
      item_of_[b.get()] = items_.size();
      AddItem(b->name, StorageBytes(b), life.first, life.last);
    }
    for (const auto& [launch, point] : lives.launches) {
      Expr bytes = LaunchBytes(*launch);
      if (IsZero(bytes)) continue;
      workspace_of_[launch] = items_.size();
      AddItem(launch->kernel + " workspace", bytes, point, point);
      items_.back().is_sparse = HasScratch(*module_.Find(launch->kernel));
    }
    KeepForDependents(lives);
    plan_ = PlanArena(items_, &analyzer_);
    if (items_.empty()) return;
    if (packed::HasHandles(*func_)) return PlanApart();
    arenas_ = {{VarNode::Make("arena", DType::Handle()), plan_.bytes, {}}};
  }

  // A launch that depends on the one before it begins while that one runs, and so does one that
  // depends on it: what any of them uses is in use until the last of them is done. Only what a
  // kernel hands over waits (AwaitedBy); the memory of what is gone must not be given away earlier.
  // A launch that waits before it touches any of that memory is as good as one behind the others.
  void KeepForDependents(const Lifetimes& lives) {
    for (size_t first = 0; first < lives.launches.size();) {
      size_t end = first + 1;
      while (end < lives.launches.size() && IsDependent(*lives.launches[end].first)) ++end;
      const int64_t begin = lives.launches[first].second, last = lives.launches[end - 1].second;
      for (ArenaItem& item : items_) {
        if (item.last >= begin && item.last < last) item.last = last;
      }
      first = end;
    }
  }

  bool IsDependent(const Launch& launch) const {
    const Func kernel = module_.Find(launch.kernel);
    return kernel && kernel->attrs.Has(kAwaitsAttr) && !AwaitsAll(*kernel, launch, *func_);
  }

  // What the host of a device has for itself, beside the memory that kernels get.
  bool IsOnHost(const BufferNode& b) const { return on_device_ && b.scope == Scope::kLocal; }

  // No part of such memory can be handed to a kernel: each item has its own.
  void PlanApart() {
    plan_.bytes = IndexConst(0);
    for (size_t i = 0; i < items_.size(); ++i) {
      plan_.offsets[i] = IndexConst(0);
      plan_.bytes = analyzer_.Simplify(plan_.bytes + items_[i].bytes);
      Var memory = VarNode::Make(fmt::format("arena_{}", i), DType::Handle());
      arenas_.push_back({memory, items_[i].bytes, {}});
    }
  }

  // Sizes that the function itself computes, each the least of a value and of what it can be at
  // most: memory is there for that.
  void FindMost() {
    PreOrder(func_->body, [&](const NodeRef& n) {
      const auto* let = As<Let>(n);
      if (!let || !let->var->dtype.IsIndex()) return !IsA<ExprNode>(n);
      const auto* least = As<Binary>(let->value);
      if (!least || least->op != BinaryOp::kMin) return true;
      const Expr most = Substitute(least->rhs, most_);
      if (IsOfDims(most, *func_)) most_[let->var.get()] = most;
      return true;
    });
  }

  void AddItem(std::string name, Expr bytes, int64_t first, int64_t last) {
    bytes = analyzer_.Simplify(Substitute(bytes, most_));
    items_.push_back({std::move(name), bytes, GuessBytes(bytes, *func_), first, last, false});
  }

  // Of each worker.
  static bool HasScratch(const PrimFunc& kernel) {
    return kernel.attrs.GetInt(kScratchBytes) != 0 || kernel.attrs.Has(kScratchSize);
  }

  Expr LaunchBytes(const Launch& launch) {
    Func kernel = module_.Find(launch.kernel);
    if (!kernel) return IndexConst(0);
    uses_team_size_ |= HasScratch(*kernel);
    VarMap dims;
    for (size_t i = 0; i < kernel->dims.size(); ++i) {
      dims[kernel->dims[i].get()] = launch.scalars[i];
    }
    return Substitute(WorkspaceOf(*kernel, context_.max_team), dims);
  }

  FlatBuffer Place(const Buffer& buffer) override {
    if (allocated_.count(buffer.get()) == 0) return {};  // parameters keep their logical shapes
    FlatBuffer flat = Flatten(buffer);
    int64_t element = ElementBytes(*buffer);
    if (buffer->scope == Scope::kConst) {
      auto it = weight_offsets_.find(buffer->name);
      TN_CHECK(it != weight_offsets_.end(), "weight {} has no offset", buffer->name);
      TN_CHECK(it->second % element == 0, "weight {} is not aligned to its elements", buffer->name);
      if (on_device_) return OnDevice(buffer, std::move(flat));
      flat.offset = IndexConst(it->second / element);
      flat.buffer =
          View(&weight_views_, "weights", buffer->dtype, Scope::kConst, WeightBytes() / element);
    } else {
      const size_t item = item_of_.at(buffer.get());
      Arena& arena = ArenaOf(item);
      // As it holds everywhere: where a buffer is met first may be a branch that knows more of
      // dims.
      flat.offset = plan_.offsets[item] / IndexConst(element);
      flat.buffer = View(&arena.views, arena.memory->name, buffer->dtype, Scope::kGlobal,
                         arena.bytes / IndexConst(element));
    }
    return flat;
  }

  // A weight by itself: where memory has handles, no part of it can be handed to a kernel.
  FlatBuffer OnDevice(const Buffer& buffer, FlatBuffer flat) {
    const auto [place, number] = weight_numbers_.at(buffer->name);
    const int64_t bytes = AsInt(StorageBytes(buffer)).value_or(0);
    weight_sizes_[place] = bytes;
    device_slots_[place] = number;
    Buffer& view = device_weights_[place];
    if (!view) {
      view = BufferNode::Make(fmt::format("weight_{}", number), buffer->dtype,
                              {IndexConst(bytes / ElementBytes(*buffer))}, Scope::kGlobal, nullptr,
                              {}, kArenaAlign);
    }
    flat.offset = IndexConst(0);
    flat.buffer = view;
    return flat;
  }

  using Views = std::map<std::string, Buffer>;
  /// Memory that a call borrows.
  struct Arena {
    Var memory;
    Expr bytes;
    Views views;
  };
  Arena& ArenaOf(size_t item) { return arenas_.size() == 1 ? arenas_[0] : arenas_[item]; }

  static Buffer View(Views* views, const std::string& name, DType dtype, Scope scope,
                     const Expr& size) {
    Buffer& view = (*views)[dtype.ToString()];
    if (!view) {
      view = BufferNode::Make(name + "." + dtype.ToString(), dtype, {size}, scope, nullptr, {},
                              kArenaAlign);
    }
    return view;
  }

  // Bytes up to the end of the last weight.
  Expr WeightBytes() {
    if (weight_bytes_) return weight_bytes_;
    int64_t end = 0;
    PreOrder(func_->body, [&](const NodeRef& n) {
      const auto* alloc = As<Alloc>(n);
      if (alloc && alloc->buffer->scope == Scope::kConst) {
        auto at = weight_offsets_.find(alloc->buffer->name);
        int64_t start = at == weight_offsets_.end() ? 0 : at->second;
        end = std::max(end, start + AsInt(StorageBytes(alloc->buffer)).value_or(0));
      }
      return !IsA<ExprNode>(n);
    });
    return weight_bytes_ = IndexConst((end + kArenaAlign - 1) / kArenaAlign * kArenaAlign);
  }

  Stmt VisitStmt(const Stmt& stmt) override {
    const auto* alloc = As<Alloc>(stmt);
    if (alloc && !IsOnHost(*alloc->buffer)) return VisitStmt(alloc->body);
    if (const auto* launch = As<Launch>(stmt)) {
      Stmt out = Children(stmt);
      auto it = workspace_of_.find(launch);
      if (it == workspace_of_.end()) return out;
      auto with = MakeRef<Launch>(*As<Launch>(out));
      with->scalars.push_back(Call::Make(Intrinsic::kPtrOffset,
                                         {ArenaOf(it->second).memory, plan_.offsets[it->second]}));
      return with;
    }
    return StorageRewriter::VisitStmt(stmt);
  }

  // The bytes of an arena, or a number of them that no machine has where they may be so many that
  // integers wrap around.
  Expr Bounded(size_t arena) {
    const Expr& bytes = arenas_[arena].bytes;
    Expr sum;
    double most = 0;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (&ArenaOf(i) != &arenas_[arena]) continue;
      Expr size = Approximate(items_[i].bytes);
      sum = sum ? sum + size : size;
      const Interval range = analyzer_.ConstBounds(items_[i].bytes);
      most += static_cast<double>(range.max);
    }
    if (most < static_cast<double>(kTooManyBytes)) return bytes;
    const Expr limit = FloatConst::Make(DType::Float(64), static_cast<double>(kTooManyBytes));
    return Select::Make(Lt(sum, limit), bytes, IndexConst(kTooManyBytes));
  }

  // What the largest sizes need, where all have an end.
  void SetMostBytes(Attrs* attrs) {
    for (size_t i = 0; i < func_->dims.size(); ++i) {
      if (IsOpen(*func_, i)) return;
    }
    const int64_t most = analyzer_.ConstBounds(plan_.bytes).max;
    if (most < kTooManyBytes) attrs->Set("most_arena_bytes", most);
  }

  Func Sizer() {
    PrimFunc fields;
    fields.name = func_->name + ".arena_bytes";
    fields.func_kind = FuncKind::kDevice;
    fields.dims = func_->dims;
    fields.dim_lo = func_->dim_lo, fields.dim_hi = func_->dim_hi, fields.dim_step = func_->dim_step;
    const auto count = static_cast<int64_t>(arenas_.size());
    Buffer bytes = BufferNode::Make("bytes", DType::Int(64), {IndexConst(count)});
    fields.buffers = {bytes};
    fields.num_outputs = 1;
    fields.target = func_->target;
    std::vector<Stmt> stores;
    for (int64_t i = 0; i < count; ++i) {
      Expr size = CastExpr::Make(DType::Int(64), Bounded(static_cast<size_t>(i)));
      stores.push_back(Store::Make(bytes, {IndexConst(i)}, size));
    }
    fields.body = Seq::Make(std::move(stores));
    return PrimFunc::Make(std::move(fields));
  }

  const Func& func_;
  const Module& module_;
  const PassContext& context_;
  std::map<std::string, int64_t> weight_offsets_;
  // Places among the function's weights, and numbers among those on the device.
  std::map<std::string, std::pair<size_t, size_t>> weight_numbers_;
  bool on_device_ = false;
  std::vector<Buffer> device_weights_;  // by place; what is read of them
  std::map<size_t, size_t> device_slots_;
  std::vector<int64_t> weight_sizes_;
  Expr weight_bytes_;
  VarMap most_;  // of sizes that the function computes
  std::vector<ArenaItem> items_;
  ArenaPlan plan_;
  bool uses_team_size_ = false;
  std::unordered_set<const BufferNode*> allocated_;
  std::unordered_map<const BufferNode*, size_t> item_of_;
  std::unordered_map<const Launch*, size_t> workspace_of_;
  std::vector<Arena> arenas_;  // one with all items, or one for each
  Views weight_views_;
};

}  // namespace

Module PlanStorage(const Module& module, const PassContext& context) {
  Module out = module;
  for (const auto& [name, func] : module.funcs) {
    bool planned = func->attrs.Has(kWorkspaceBytes);
    if (func->func_kind == FuncKind::kKernel && !planned)
      out.Add(KernelPlanner(func, module, context)());
  }
  const std::vector<int64_t> offsets = packed::DeviceWeightOffsets(module);
  std::map<int64_t, size_t> numbers;
  for (size_t i = 0; i < offsets.size(); ++i) numbers[offsets[i]] = i;
  for (const auto& [name, func] : module.funcs) {
    if (func->func_kind != FuncKind::kHost) continue;
    Func sizer;
    out.Add(HostPlanner(func, out, context, numbers)(&sizer));
    if (sizer) out.Add(sizer);
  }
  return out;
}

}  // namespace tenon
