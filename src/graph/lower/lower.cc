// A planned graph as a module of loop IR.
//
// Each node becomes a launch of a kernel, which ops::BuildKernel makes for its region and plan; the
// host function is the list of launches, with buffers between them where values have to lie. What
// depends on weights alone is split off first: it becomes functions of a module of its own, run
// while compiling, and what they give are weights like those in the file. So
//
//   %2 "e": f32[2, 2] = exp(%1)                where %1 "w" is a constant
//   %3 "a": f32[2, 2] = matmul(%0, %2)
//   %4 "y": f32[2, 2] = matmul(%3, %2)
//
// becomes
//
//   func @main(x: f32[2, 2], out y: f32[2, 2]) kind host … {weights: ["w2"], …} {
//     alloc w2: f32[2, 2] in const align 64
//     alloc t3: f32[2, 2] align 64
//     launch @main_k0(x, w2, t3) on host {node: "node 'a' (matmul)"}
//     launch @main_k1(t3, w2, y) on host {node: "node 'y' (matmul)"}
//   }
//   func @prepare_0(w: f32[2, 2] align 1, out e: f32[2, 2] align 1) kind host { … }
//
// Kernels are the same function where their code and their choices are; alignment is a part of the
// code, so a kernel that reads an argument is not the one that reads what another kernel wrote.
#include "graph/lower/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "graph/dims.h"
#include "graph/edit.h"
#include "graph/lower/loop_kernels.h"
#include "graph/lower/prepare_plan.h"
#include "graph/lower/prepare_split.h"
#include "graph/lower/size_stages.h"
#include "graph/lower/time_alone.h"
#include "graph/stored_view.h"
#include "graph/verify.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "loop/arguments.h"
#include "loop/requirements.h"
#include "loop/workspace.h"
#include "ops/loop_kernel.h"
#include "plan/region.h"
#include "support/strings.h"

namespace tenon::graph {

namespace {

constexpr uint64_t kWeightAlign = 64;

/// Kernels by content: equal definitions with equal choices share one function.
class KernelTable {
 public:
  KernelTable(Module* module, std::vector<KernelInfo>* infos,
              std::map<std::string, ops::Kernel>* scheduled)
      : module_(module), infos_(infos), scheduled_(scheduled) {}

  /// The name of the kernel, made anew or found. `launched`: at typical sizes.
  std::string Intern(const ops::Kernel& k, bool launched) {
    PrimFunc fields(*k.func);
    std::string wanted = fields.name;
    fields.name = "k";
    Func anonymous = PrimFunc::Make(std::move(fields));
    uint64_t hash = StructuralHash(anonymous);
    for (const auto& [known, name] : known_[hash]) {
      const ops::Kernel& other = scheduled_->at(name);
      if (other.algorithm != k.algorithm || other.point != k.point) continue;
      if (!StructuralEqual(known, anonymous)) continue;
      if (infos_) (*infos_)[index_[name]].launches += launched;
      return name;
    }
    known_[hash].emplace_back(anonymous, wanted);
    module_->Add(k.func);
    for (const Func& callee : k.callees) module_->Add(callee);
    scheduled_->emplace(wanted, k);
    if (infos_) {
      index_[wanted] = infos_->size();
      infos_->push_back({wanted, k.kind, k.flops, k.bytes, launched, k.seconds});
    }
    return wanted;
  }

 private:
  Module* module_;
  std::vector<KernelInfo>* infos_;
  std::map<std::string, ops::Kernel>* scheduled_;
  std::unordered_map<uint64_t, std::vector<std::pair<Func, std::string>>> known_;
  std::map<std::string, size_t> index_;
};

Machine OneWorker(Machine machine) {
  machine.workers = 1;
  return machine;
}

Buffer Aligned(const Buffer& b, int64_t align) {
  return BufferNode::Make(b->name, b->dtype, b->shape, b->scope, b->layout, b->strides, align);
}

/// Where a value lies, and whether that is aligned as arguments are or as what lies between
/// kernels.
struct Slot {
  Buffer buffer;
  bool argument = false;
};

/// The places of weights in their segment, by graph (regions have their own) and value.
using WeightOffsets = std::map<const Graph*, std::map<ValueId, uint64_t>>;

/// A dim that a node defines: what was lowered before it stands outside of its scope.
struct DimScope {
  Var dim;
  Expr value;
  size_t first_local, first_stmt;
};

/// A graph while it is lowered: that of the function, or a region inside.
struct Frame {
  const Graph& g;
  std::string prefix;  // of buffers' names
  std::vector<Slot> slots = std::vector<Slot>(g.values.size());
  std::vector<Buffer> locals;  // allocated around the scope's statements
  std::vector<Stmt> stmts;
  std::vector<DimScope> dims;

  Slot& slot(ValueId v) { return slots[static_cast<size_t>(v)]; }
};

/// Lowers one graph to one host function. Control flow becomes the host's: a region's launches
/// stand in its branch or loop, what it captures are the buffers that the values have outside, and
/// what decides is read from memory. Carried values live in the buffers of the node's results; each
/// iteration computes the next ones beside them and copies them over at its end.
///
///   %4 = while(%c, %x, %w) {carried: 1}          copy x → t4;  t_go = c
///     region(%0, %1) {                           while t_go {
///       %2 = mul(%0, %1)                           launch mul(t4, w, r0_t2)
///       %3 = …                                     launch …(…, r0_t3)
///       return %3, %2 }                            launch copy(r0_t2, t4);  t_go = r0_t3 }
class HostBuilder {
 public:
  HostBuilder(const Graph& g, const std::string& name, const Machine& machine,
              int64_t argument_align, KernelTable* kernels, const WeightOffsets* weights = nullptr,
              std::vector<Var> found = {})
      : g_(g),
        found_(std::move(found)),
        name_(name),
        machine_(machine),
        alone_(OneWorker(machine)),
        place_(machine.target->IsDevice() ? Place::Device(0) : Place{}),
        argument_align_(argument_align),
        kernels_(kernels),
        offsets_(weights) {}

  /// The results, scalars of i64, are for the host: on a device they are not buffers but go where
  /// the last scalar of the function, `kResultDims`, points.
  void TellResults() { tells_results_ = !place_.IsHost(); }

  Expected<Func> Build() {
    PrimFunc f;
    f.name = name_;
    f.func_kind = FuncKind::kHost;
    const Target& target = *machine_.target;
    f.target = machine_.target;
    if (target.IsDevice()) {
      f.target = target.Cpu();
      f.attrs.Set(kDeviceTypeAttr, target.device().type);
      f.scalars = {VarNode::Make(kDeviceId, DType::Int(32))};
    }
    DeclareDims(&f);
    for (const Node& n : g_.nodes) {
      if (const Var dim = DefinedDim(n)) own_dims_.emplace_back(dim, Most(n.exprs.at("most")[0]));
    }
    Frame main{g_, ""};
    DeclareArguments(&main, &f);
    TN_RETURN_IF_ERROR(LowerNodes(&main));
    for (const auto& [from, to] : copies_) {
      const bool late = MentionsOwn(g_.type(from).dims);
      TN_RETURN_IF_ERROR(late ? LowerLateOutput(&main, from, to)
                              : LowerCopy(&main, from, {to, true}));
    }
    tells_results_ ? TellOutputs(&main, &f) : TellOwnDims(&main, &f);
    Stmt body = Close(&main);
    if (told_.first) body = Bind::Make(told_.first, told_.second, body);
    std::vector<std::string> names;
    std::vector<int64_t> offsets;
    for (const auto& [buffer, offset] : Weights(main)) {
      names.push_back(buffer->name);
      offsets.push_back(static_cast<int64_t>(offset));
      body = Alloc::Make(buffer, body);
    }
    if (!names.empty()) {
      f.attrs.Set("weights", names);
      f.attrs.Set("weight_offsets", offsets);
    }
    f.body = body;
    return PrimFunc::Make(std::move(f));
  }

 private:
  // Those that callers tell by the shapes of what they give, and those that have been found.
  void DeclareDims(PrimFunc* f) {
    for (const Dim& d : g_.dims) {
      const bool found = std::find(found_.begin(), found_.end(), d.var) != found_.end();
      const bool told = found || std::any_of(g_.inputs.begin(), g_.inputs.end(), [&](ValueId v) {
                          const std::vector<Expr>& shape = g_.type(v).dims;
                          return std::any_of(shape.begin(), shape.end(), [&](const Expr& size) {
                            return UsesVar(size, d.var.get());
                          });
                        });
      if (!told) continue;
      f->dims.push_back(d.var);
      f->dim_lo.push_back(d.min);
      f->dim_hi.push_back(d.max == Dim::kNoMax ? kLargestSize : d.max);
      f->dim_step.push_back(d.step);
    }
    std::vector<std::string> conditions;
    for (const Expr& c : g_.constraints) conditions.push_back(ToString(c));
    if (!conditions.empty()) f->attrs.Set(kConditionsAttr, conditions);
  }

  void DeclareArguments(Frame* main, PrimFunc* f) {
    for (size_t i = 0; i < g_.inputs.size(); ++i) {
      ValueId v = g_.inputs[i];
      Buffer b = ops::Store(g_.value(v).name.empty() ? fmt::format("in{}", i) : g_.value(v).name,
                            g_.type(v))
                     .buffer;
      main->slot(v) = {Aligned(b, argument_align_), true};
      f->buffers.push_back(main->slot(v).buffer);
    }
    for (size_t k = 0; !tells_results_ && k < g_.outputs.size(); ++k) {
      ValueId v = g_.outputs[k];
      const bool late = MentionsOwn(g_.type(v).dims);
      Buffer b = Aligned(late ? MostOf(g_.output_names[k], g_.type(v))
                              : ops::Store(g_.output_names[k], g_.type(v)).buffer,
                         argument_align_);
      f->buffers.push_back(b);
      // Inputs, constants, values given out twice and those of late sizes are copied at the end.
      if (late || g_.value(v).producer == kNoNode || main->slot(v).buffer) {
        copies_.emplace_back(v, b);
      } else {
        main->slot(v) = {b, true};
      }
    }
    f->num_outputs = tells_results_ ? 0 : static_cast<int64_t>(g_.outputs.size());
  }

  // ---- dims that nodes define ----

  // The largest size that such a dim can have, and so what an expression of it can be.
  Expr Most(const Expr& size) const {
    VarMap most;
    for (const auto& [var, value] : own_dims_) most[var.get()] = value;
    return SimplifyDim(Substitute(size, most));
  }
  bool MentionsOwn(const std::vector<Expr>& sizes) const {
    return std::any_of(sizes.begin(), sizes.end(), [&](const Expr& size) {
      return std::any_of(own_dims_.begin(), own_dims_.end(),
                         [&](const auto& own) { return UsesVar(size, own.first.get()); });
    });
  }

  // Memory for an output whose size the call finds out: for as many elements as there can be.
  Buffer MostOf(const std::string& name, const TensorType& type) const {
    return BufferNode::Make(name, type.dtype, {Most(DimProduct(type.dims))});
  }

  // Its elements stand densely at the beginning of that memory.
  Status LowerLateOutput(Frame* frame, ValueId from, const Buffer& to) {
    TensorType flat{g_.type(from).dtype, {DimProduct(g_.type(from).dims)}};
    const Region part = RegionNode::Make(to, {RangeNode::Make(IndexConst(0), flat.dims[0])});
    return LowerCopy(frame, g_.value(from), SlotOf(frame, from), {to, true}, part, flat.dims);
  }

  // What the node has computed, within the dim's range: memory is planned for that.
  Status LowerDim(Frame* frame, const Node& node, const std::string& what) {
    if (&frame->g != &g_) {
      return MakeError(fmt::format(
          "{}: sizes that depend on values cannot be found out inside control flow yet", what));
    }
    const Var dim = DefinedDim(node);
    const Slot& result = SlotOf(frame, node.outputs[0]);
    TN_RETURN_IF_ERROR(LowerCopy(frame, node.inputs[0], result));
    const Expr count = CastExpr::Make(DType::Index(), Load::Make(result.buffer, {}));
    const Expr value = Min(Max(count, IndexConst(0)), Most(node.exprs.at("most")[0]));
    frame->dims.push_back({dim, value, frame->locals.size(), frame->stmts.size()});
    return Ok();
  }

  // The value stays where it is. The worst element has been found by a kernel, and the host looks
  // at it: "… in -3..=2 (axis 0 of 'x' has 3 elements), but got 7".
  Status LowerRequire(Frame* frame, const Node& node) {
    const Slot from = SlotOf(frame, node.inputs[0]);
    const Expr least = node.exprs.at("least")[0], end = node.exprs.at("end")[0];
    if (place_.IsHost()) {
      const DType wide = DType::UInt(64);
      const Expr worst = Scalar(frame, node.inputs[1]);
      const Expr none = Eq(DimProduct(frame->g.type(node.inputs[0]).dims), IndexConst(0));
      const Expr fits = Lt(worst, CastExpr::Make(wide, SimplifyDim(end - least)));
      const auto text = [](std::string s) -> Expr { return StringConst::Make(std::move(s)); };
      const std::string because = node.attrs.GetString("because");
      std::vector<Expr> parts = {text(node.attrs.GetString("what") + " in "), least, text("..="),
                                 SimplifyDim(end - 1)};
      if (!because.empty()) {
        parts.insert(parts.end(), {text(" (" + because + " has "), end, text(" elements)")});
      }
      parts.insert(parts.end(),
                   {text(", but got "), CastExpr::Make(DType::Index(), worst) + least});
      frame->stmts.push_back(Assert::Make(Or(fits, SimplifyDim(none)), "IndexError", parts));
    }
    Slot& to = frame->slot(node.outputs[0]);
    if (!to.buffer) to = from;
    return to.buffer == from.buffer ? Ok() : LowerCopy(frame, node.inputs[0], to);
  }

  // Memory of the host's for so many numbers.
  Buffer Tell(PrimFunc* f, size_t count) {
    const Expr size = IndexConst(static_cast<int64_t>(count));
    told_ = {BufferNode::Make("result_dims", DType::Int(64), {size}),
             VarNode::Make(kResultDims, DType::Handle())};
    f->scalars.push_back(told_.second);
    return told_.first;
  }

  void TellOutputs(Frame* main, PrimFunc* f) {
    const Buffer told = Tell(f, g_.outputs.size());
    for (size_t k = 0; k < g_.outputs.size(); ++k)
      main->stmts.push_back(
          Store::Make(told, {IndexConst(static_cast<int64_t>(k))}, Scalar(main, g_.outputs[k])));
  }

  // For the caller, who gets outputs of these sizes.
  void TellOwnDims(Frame* main, PrimFunc* f) {
    std::vector<std::string> shapes, dims;
    bool any = false;
    for (ValueId v : g_.outputs) {
      const bool late = MentionsOwn(g_.type(v).dims);
      any |= late;
      std::vector<std::string> sizes;
      for (const Expr& size : g_.type(v).dims) sizes.push_back(ToString(size));
      shapes.push_back(late ? Join(sizes, "; ") : "");
    }
    if (!any) return;
    const Buffer told = Tell(f, main->dims.size());
    for (const DimScope& scope : main->dims) {
      const Expr at = IndexConst(static_cast<int64_t>(dims.size()));
      main->stmts.push_back(Store::Make(told, {at}, CastExpr::Make(DType::Int(64), scope.dim)));
      dims.push_back(scope.dim->name);
    }
    f->attrs.Set(kResultDimsAttr, dims);
    f->attrs.Set(kResultShapesAttr, shapes);
  }

  // The place of a value that a kernel reads or writes; intermediates and weights are made when
  // first met.
  const Slot& SlotOf(Frame* frame, ValueId v) {
    Slot& slot = frame->slot(v);
    if (slot.buffer) return slot;
    const Value& value = frame->g.value(v);
    bool is_weight = value.producer == kNoNode;
    Buffer b = ops::Store(fmt::format("{}{}{}", frame->prefix, is_weight ? "w" : "t", v),
                          value.type.tensor())
                   .buffer;
    if (is_weight) {
      b = BufferNode::Make(b->name, b->dtype, b->shape, Scope::kConst, b->layout, b->strides,
                           b->align);
      if (&frame->g != &g_) inner_weights_.emplace_back(b, offsets_->at(&frame->g).at(v));
    } else {
      frame->locals.push_back(b);
    }
    slot.buffer = b;
    return slot;
  }
  std::vector<Slot> SlotsOf(Frame* frame, const std::vector<ValueId>& values) {
    std::vector<Slot> out;
    for (ValueId v : values) out.push_back(SlotOf(frame, v));
    return out;
  }
  int64_t AlignOf(const Slot& slot) const {
    return slot.argument ? argument_align_ : static_cast<int64_t>(kWeightAlign);
  }

  // The function's weights in the order of its values, then those of regions as they are met.
  std::vector<std::pair<Buffer, uint64_t>> Weights(Frame& main) const {
    std::vector<std::pair<Buffer, uint64_t>> all;
    if (!offsets_) return all;
    for (auto [v, offset] : offsets_->at(&g_)) {
      if (const Buffer& b = main.slot(v).buffer) all.emplace_back(b, offset);
    }
    all.insert(all.end(), inner_weights_.begin(), inner_weights_.end());
    return all;
  }

  // The scope's statements with its allocations around them; likewise inside it the scope of each
  // dim that a node defines.
  static Stmt Close(Frame* frame) {
    Stmt inner;
    auto close = [&](size_t first_local, size_t first_stmt) {
      std::vector<Stmt> stmts(frame->stmts.begin() + static_cast<long>(first_stmt),
                              frame->stmts.end());
      if (inner) stmts.push_back(inner);
      Stmt body = Seq::Make(std::move(stmts));
      while (frame->locals.size() > first_local) {
        body = Alloc::Make(frame->locals.back(), body);
        frame->locals.pop_back();
      }
      frame->stmts.resize(first_stmt);
      return body;
    };
    for (auto it = frame->dims.rbegin(); it != frame->dims.rend(); ++it)
      inner = Let::Make(it->dim, it->value, close(it->first_local, it->first_stmt));
    return close(0, 0);
  }

  Status LowerNodes(Frame* frame) {
    StoreThroughViews(frame);
    for (const Node& node : frame->g.nodes) TN_RETURN_IF_ERROR(LowerNode(frame, node));
    return Ok();
  }

  // What becomes an output by views alone is computed where the output lies.
  static void StoreThroughViews(Frame* frame) {
    const Graph& g = frame->g;
    for (size_t n = g.nodes.size(); n-- > 0;) {
      const Node& node = g.nodes[n];
      if (!IsStoredView(g, node) || g.value(node.inputs[0]).producer == kNoNode) continue;
      const Slot& to = frame->slot(node.outputs[0]);
      if (Slot& from = frame->slot(node.inputs[0]); !from.buffer) from = to;
    }
  }

  Status LowerNode(Frame* frame, const Node& node) {
    const Graph& g = frame->g;
    const std::string what = Describe(g, static_cast<NodeId>(&node - g.nodes.data()));
    if (node.op == OpKind::kDim) return LowerDim(frame, node, what);
    if (node.op == OpKind::kRequire) return LowerRequire(frame, node);
    if (IsControl(node.op)) return LowerControl(frame, node, what);
    if (IsStoredView(g, node)) {
      const Slot& from = SlotOf(frame, node.inputs[0]);
      Slot& to = frame->slot(node.outputs[0]);
      if (!to.buffer) to = from;
      if (to.buffer == from.buffer) return Ok();
    }
    std::vector<ValueId> operands;
    const Graph region = RegionOf(g, static_cast<NodeId>(&node - g.nodes.data()), &operands);
    const std::vector<Slot> results = SlotsOf(frame, node.outputs);
    return LowerRegion(frame, region, SlotsOf(frame, operands), results, what, node.plan.get());
  }

  // Scalars that are known are no weights: kernels have them built in.
  static bool IsKnownScalar(const Value& v) {
    if (!v.IsConstant() || v.payload.bytes().empty() || v.type.tensor().rank() > 1) return false;
    auto dims = v.type.tensor().StaticDims();
    return dims && (dims->empty() || dims->at(0) == 1);
  }

  // A copy of `from`, which lies in `source` unless it is built in; as a tensor of `shape`, where
  // that is given.
  Status LowerCopy(Frame* frame, const Value& from, const Slot& source, const Slot& to,
                   const Region& part = nullptr, const std::vector<Expr>& shape = {}) {
    const TensorType& type = from.type.tensor();
    Graph region;
    region.dims = frame->g.dims;
    Node node;
    node.op = OpKind::kReshape;
    node.exprs["shape"] = shape.empty() ? type.dims : shape;
    node.inputs = {region.AddInput("x", type)};
    TensorType copied = type;
    if (!shape.empty()) copied = TensorType{type.dtype, shape};
    NodeId id = region.AddNode(node, {copied});
    region.AddOutput("y", region.node(id).outputs[0]);
    std::vector<Slot> inputs = {source};
    if (!source.buffer) {
      region.value(region.inputs[0]).payload = from.payload;
      region.inputs.clear();
      inputs.clear();
    }
    return LowerRegion(frame, region, inputs, {to}, "copy to output", nullptr, part);
  }
  Status LowerCopy(Frame* frame, ValueId from, const Slot& to, const Region& part = nullptr) {
    const Value& value = frame->g.value(from);
    return LowerCopy(frame, value, IsKnownScalar(value) ? Slot{} : SlotOf(frame, from), to, part);
  }

  // `part`: of the (only) result's buffer, where that is written in parts.
  Status LowerRegion(Frame* frame, const Graph& region, const std::vector<Slot>& inputs,
                     const std::vector<Slot>& outputs, const std::string& what, const Plan* plan,
                     const Region& part = nullptr) {
    ops::KernelRequest request;
    request.machine = &machine_;
    for (const Slot& s : inputs) request.input_align.push_back(AlignOf(s));
    for (const Slot& s : outputs) request.output_align.push_back(part ? 0 : AlignOf(s));
    std::vector<Region> args;
    for (const Slot& s : inputs) args.push_back(Whole(s.buffer));
    for (const Slot& s : outputs) args.push_back(part ? part : Whole(s.buffer));
    request.region = &region;
    // Kernels by variant; without a plan there is one.
    const size_t count = plan ? plan->variants.size() : 1, typical = TypicalVariant(region, plan);
    Stmt stmt;
    for (size_t i = count; i-- > 0;) {
      Plan variant = plan ? *plan : Plan{};
      if (plan) variant.variants = {{plan->variants.back().when, plan->variants[i].schedule}};
      request.plan = plan ? &variant : nullptr;
      request.name = NextName();
      Expected<ops::Kernel> kernel = ops::BuildKernel(request);
      if (!kernel) {
        for (Diagnostic& d : kernel.errors()) d.notes.push_back("while lowering " + what);
        return kernel.errors();
      }
      // The plan says it of the last one.
      if (i + 1 < count) {
        const ops::Site site{region, ops::AnchorOf(region), machine_};
        kernel->seconds = ops::PriceOf(*kernel->algorithm, site, kernel->point);
      }
      const std::vector<Var>& dims = kernel->func->dims;
      Attrs attrs;
      attrs.Set("node", what);
      if (kernel->algorithm) attrs.Set(kAlone, TimeAlone(region, *kernel, alone_));
      const Stmt here = Launch::Make(kernels_->Intern(*kernel, i == typical), args,
                                     {dims.begin(), dims.end()}, place_, std::move(attrs));
      stmt = stmt ? If::Make(plan->variants[i].when, here, stmt) : here;
    }
    frame->stmts.push_back(std::move(stmt));
    return Ok();
  }

  // The variant that is launched at typical sizes.
  static size_t TypicalVariant(const Graph& region, const Plan* plan) {
    VarMap typical;
    for (const Dim& d : region.dims) typical[d.var.get()] = IndexConst(d.Typical());
    size_t i = 0;
    while (plan && i + 1 < plan->variants.size() &&
           !IsOne(SimplifyDim(Substitute(plan->variants[i].when, typical)))) {
      ++i;
    }
    return i;
  }

  // ---- control flow ----

  Frame Enter(const Graph& region) { return {region, fmt::format("r{}_", regions_++)}; }

  Status LowerControl(Frame* frame, const Node& node, const std::string& what) {
    if (node.op == OpKind::kLoop && machine_.warp > 0) {
      std::vector<ValueId> operands;
      const NodeId id = static_cast<NodeId>(&node - frame->g.nodes.data());
      const Graph region = RegionOf(frame->g, id, &operands);
      if (ops::FitsOneKernel(region)) {
        const std::vector<Slot> results = SlotsOf(frame, node.outputs);
        return LowerRegion(frame, region, SlotsOf(frame, operands), results, what, nullptr);
      }
    }
    if (node.op == OpKind::kIf) return LowerIf(frame, node);
    return node.op == OpKind::kWhile ? LowerWhile(frame, node) : LowerLoop(frame, node);
  }

  // A scalar as the host reads it.
  Expr Scalar(Frame* frame, ValueId v) {
    const Value& value = frame->g.value(v);
    if (IsKnownScalar(value) && value.type.tensor().dtype.IsBool())
      return BoolConst(ReadInts(value, 1)->front() != 0);
    // What it is a view of may have axes.
    const Buffer& buffer = SlotOf(frame, v).buffer;
    return Load::Make(buffer, std::vector<Expr>(buffer->shape.size(), IndexConst(0)));
  }

  Slot Local(Frame* frame, const std::string& name, DType dtype) {
    Buffer b = ops::Store(frame->prefix + name, TensorType{dtype, {}}).buffer;
    frame->locals.push_back(b);
    return {b, false};
  }

  // The same in the host's memory, wherever that of values is.
  Slot HostLocal(Frame* frame, const std::string& name, DType dtype) {
    if (place_.IsHost()) return Local(frame, name, dtype);
    Buffer b = BufferNode::Make(frame->prefix + name, dtype, {}, Scope::kLocal);
    frame->locals.push_back(b);
    return {b, false};
  }

  // A branch computes its results where the node's are, unless they are there already elsewhere.
  Status LowerIf(Frame* frame, const Node& node) {
    const Expr condition = Scalar(frame, node.inputs[0]);
    const std::vector<Slot> results = SlotsOf(frame, node.outputs);
    Stmt branches[2];
    for (size_t b = 0; b < 2; ++b) {
      Frame inner = Enter(*node.regions[b]);
      for (size_t i = 0; i < inner.g.inputs.size(); ++i)
        inner.slot(inner.g.inputs[i]) = SlotOf(frame, node.inputs[i + 1]);
      std::vector<size_t> copied;
      for (size_t k = 0; k < results.size(); ++k) {
        const ValueId v = inner.g.outputs[k];
        if (inner.g.value(v).producer == kNoNode || inner.slot(v).buffer) {
          copied.push_back(k);
        } else {
          inner.slot(v) = results[k];
        }
      }
      TN_RETURN_IF_ERROR(LowerNodes(&inner));
      for (size_t k : copied) {
        TN_RETURN_IF_ERROR(LowerCopy(&inner, inner.g.outputs[k], results[k]));
      }
      branches[b] = Close(&inner);
    }
    frame->stmts.push_back(If::Make(condition, branches[0], branches[1]));
    return Ok();
  }

  // What a loop carries: begins in the results' buffers, whose values the body reads. `first` is
  // the place of the first carried input.
  Expected<std::vector<Slot>> BeginCarried(Frame* frame, const Node& node, size_t first) {
    const auto carried = static_cast<size_t>(node.attrs.GetInt("carried"));
    std::vector<Slot> state;
    for (size_t k = 0; k < carried; ++k) {
      state.push_back(SlotOf(frame, node.outputs[k]));
      TN_RETURN_IF_ERROR(LowerCopy(frame, node.inputs[first + k], state.back()));
    }
    return state;
  }

  // Copies the body's results, `first_output` and following, to where the next iteration reads
  // them. One that is another's value of this iteration is saved first.
  Status EndCarried(Frame* inner, const std::vector<Slot>& state, size_t first_output) {
    std::vector<Slot> saved(state.size());
    auto next = [&](size_t k) { return inner->g.outputs[first_output + k]; };
    // By what lies there: a view of a carried value is its memory.
    auto is_state = [&](size_t k) {
      const Buffer& from = inner->slot(next(k)).buffer;
      return from && std::any_of(state.begin(), state.end(),
                                 [&](const Slot& s) { return s.buffer == from; });
    };
    auto stays = [&](size_t k) { return inner->slot(next(k)).buffer == state[k].buffer; };
    for (size_t k = 0; k < state.size(); ++k) {
      if (stays(k) || !is_state(k)) continue;
      const TensorType& type = inner->g.type(next(k));
      saved[k].buffer = ops::Store(fmt::format("{}saved{}", inner->prefix, k), type).buffer;
      inner->locals.push_back(saved[k].buffer);
      TN_RETURN_IF_ERROR(LowerCopy(inner, next(k), saved[k]));
    }
    for (size_t k = 0; k < state.size(); ++k) {
      if (stays(k)) continue;
      TN_RETURN_IF_ERROR(saved[k].buffer
                             ? LowerCopy(inner, inner->g.value(next(k)), saved[k], state[k])
                             : LowerCopy(inner, next(k), state[k]));
    }
    return Ok();
  }

  Status LowerWhile(Frame* frame, const Node& node) {
    TN_ASSIGN_OR_RETURN(const std::vector<Slot> state, BeginCarried(frame, node, 1));
    const Slot go_on = HostLocal(frame, fmt::format("go{}", regions_), DType::Bool());
    frame->stmts.push_back(Store::Make(go_on.buffer, {}, Scalar(frame, node.inputs[0])));
    Frame inner = Enter(*node.regions[0]);
    for (size_t i = 0; i < inner.g.inputs.size(); ++i)
      inner.slot(inner.g.inputs[i]) =
          i < state.size() ? state[i] : SlotOf(frame, node.inputs[i + 1]);
    TN_RETURN_IF_ERROR(LowerNodes(&inner));
    inner.stmts.push_back(Store::Make(go_on.buffer, {}, Scalar(&inner, inner.g.outputs[0])));
    TN_RETURN_IF_ERROR(EndCarried(&inner, state, 1));
    frame->stmts.push_back(While::Make(Load::Make(go_on.buffer, {}), Close(&inner)));
    return Ok();
  }

  static bool SameShape(const BufferNode& a, const BufferNode& b) {
    return std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end(),
                      [](const Expr& x, const Expr& y) { return ProveEqual(x, y); });
  }

  // The number of the iteration, which the body reads from memory.
  Status LowerNumber(Frame* inner, const Var& i) {
    const Slot number = Local(inner, "number", DType::Int(64));
    inner->slot(inner->g.inputs[0]) = number;
    if (place_.IsHost()) {
      inner->stmts.push_back(Store::Make(number.buffer, {}, CastExpr::Make(DType::Int(64), i)));
      return Ok();
    }
    if (UseCounts(inner->g)[static_cast<size_t>(inner->g.inputs[0])] == 0) return Ok();
    TN_ASSIGN_OR_RETURN(const ops::Kernel kernel, NumberKernel(NextName(), i, machine_));
    LaunchAlone(inner, kernel, {number}, "number of an iteration");
    return Ok();
  }

  // Row `i` of a collected result. A device's kernel gets the whole of it: where memory has
  // handles, no part can be handed over.
  Status LowerRow(Frame* inner, ValueId v, const Slot& all, const Var& i) {
    if (place_.IsHost()) {
      std::vector<Range> ranges = Whole(all.buffer)->ranges;
      ranges[0] = RangeNode::Make(i, IndexConst(1));
      return LowerCopy(inner, v, all, RegionNode::Make(all.buffer, std::move(ranges)));
    }
    const Value& value = inner->g.value(v);
    Slot row = SlotOf(inner, v);
    // Where a view of it lies, and what is built in, is no such row.
    const Buffer own =
        ops::Store(fmt::format("{}row{}", inner->prefix, v), value.type.tensor()).buffer;
    if (IsKnownScalar(value) || !SameShape(*row.buffer, *own)) {
      inner->locals.push_back(own);
      TN_RETURN_IF_ERROR(LowerCopy(inner, v, {own, false}));
      row = {own, false};
    }
    TN_ASSIGN_OR_RETURN(const ops::Kernel kernel,
                        RowKernel(NextName(), Aligned(row.buffer, AlignOf(row)),
                                  Aligned(all.buffer, AlignOf(all)), i, inner->g.dims, machine_));
    LaunchAlone(inner, kernel, {row, all}, "row of a loop's result");
    return Ok();
  }

  std::string NextName() { return fmt::format("{}_k{}", name_, serial_++); }

  // A kernel that is no region's.
  void LaunchAlone(Frame* frame, const ops::Kernel& kernel, const std::vector<Slot>& slots,
                   const std::string& what) {
    std::vector<Region> args;
    for (const Slot& s : slots) args.push_back(Whole(s.buffer));
    const std::vector<Var>& dims = kernel.func->dims;
    Attrs attrs;
    attrs.Set("node", what);
    frame->stmts.push_back(Launch::Make(kernels_->Intern(kernel, true), args,
                                        {dims.begin(), dims.end()}, place_, std::move(attrs)));
  }

  Status LowerLoop(Frame* frame, const Node& node) {
    TN_ASSIGN_OR_RETURN(const std::vector<Slot> state, BeginCarried(frame, node, 0));
    Frame inner = Enter(*node.regions[0]);
    const Var i = VarNode::Make(inner.prefix + "i");
    TN_RETURN_IF_ERROR(LowerNumber(&inner, i));
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      inner.slot(inner.g.inputs[k + 1]) =
          k < state.size() ? state[k] : SlotOf(frame, node.inputs[k]);
    }
    TN_RETURN_IF_ERROR(LowerNodes(&inner));
    std::vector<std::pair<size_t, Slot>> moved;
    for (size_t k = state.size(); k < node.outputs.size(); ++k) {
      Slot all = SlotOf(frame, node.outputs[k]);
      // Where a view of it lies, rows may be none of that buffer.
      const Buffer own =
          ops::Store(fmt::format("{}rows{}", inner.prefix, k), frame->g.type(node.outputs[k]))
              .buffer;
      if (!SameShape(*all.buffer, *own)) {
        all.buffer = own;
        frame->locals.push_back(own);
        moved.emplace_back(k, all);
      }
      TN_RETURN_IF_ERROR(LowerRow(&inner, inner.g.outputs[k], all, i));
    }
    TN_RETURN_IF_ERROR(EndCarried(&inner, state, 0));
    const Expr count = node.exprs.find("count")->second[0];
    frame->stmts.push_back(For::Make(i, IndexConst(0), count, ForKind::kSerial, Close(&inner)));
    for (const auto& [k, rows] : moved) {
      TN_RETURN_IF_ERROR(
          LowerCopy(frame, frame->g.value(node.outputs[k]), rows, SlotOf(frame, node.outputs[k])));
    }
    return Ok();
  }

  const Graph& g_;
  const std::vector<Var> found_;  // dims that stages before this function have found
  std::string name_;
  const Machine& machine_;
  const Machine alone_;  // one worker of it
  const Place place_;    // of the kernels
  int64_t argument_align_;
  KernelTable* kernels_;
  const WeightOffsets* offsets_;  // null: the graph's constants are arguments
  std::vector<std::pair<Buffer, uint64_t>> inner_weights_;  // of regions
  std::vector<std::pair<ValueId, Buffer>> copies_;
  std::vector<std::pair<Var, Expr>> own_dims_;  // that nodes define, with the most they can be
  bool tells_results_ = false;
  std::pair<Buffer, Var> told_;  // where the caller wants to know them; null: it does not
  int serial_ = 0;
  int regions_ = 0;
};

/// Lowers a network: the host function, weights, and what computes some of them. Every constant
/// that a graph of offsets_ reads has a place in the weights' segment; places overlap only where a
/// region has the same bytes, and weights_bytes is the end of the last.
class Lowering {
 public:
  explicit Lowering(const LowerOptions& options)
      : options_(options),
        kernels_(&out_.module, &out_.kernels, &out_.scheduled),
        prepare_kernels_(&out_.prepare, nullptr, &out_.scheduled) {}

  /// Adds the host function `name` of a graph.
  Status Add(const Graph& g, const std::string& name) {
    TN_RETURN_IF_ERROR(CheckValues(g));
    Graph rest = g;
    const std::vector<SizeStage> stages = SplitSizeStages(&rest);
    TN_ASSIGN_OR_RETURN(const std::shared_ptr<const Graph> runtime, RuntimeGraph(rest, false));
    stages_.push_back(runtime);
    std::vector<Var> found;
    std::vector<std::string> finders, names;
    for (const SizeStage& stage : stages) {
      finders.push_back(fmt::format("{}.sizes_{}", name, finders.size()));
      TN_ASSIGN_OR_RETURN(PrimFunc finder, LowerStage(stage, finders.back(), found));
      out_.module.Add(PrimFunc::Make(std::move(finder)));
      found.insert(found.end(), stage.found.begin(), stage.found.end());
    }
    for (const Var& dim : found) names.push_back(dim->name);
    HostBuilder host(*runtime, name, *options_.machine, 0, &kernels_, &offsets_, found);
    TN_ASSIGN_OR_RETURN(Func main, host.Build());
    PrimFunc fields(*main);
    fields.attrs.Set("exported", true);
    if (!finders.empty()) {
      fields.attrs.Set(kFindersAttr, finders);
      fields.attrs.Set(kFoundDimsAttr, names);
    }
    out_.module.Add(PrimFunc::Make(std::move(fields)));
    return Ok();
  }
  LoweredNetwork Take() { return std::move(out_); }

 private:
  // The host function that finds the sizes of a stage.
  Expected<PrimFunc> LowerStage(const SizeStage& stage, const std::string& name,
                                const std::vector<Var>& found) {
    TN_ASSIGN_OR_RETURN(const std::shared_ptr<const Graph> g, RuntimeGraph(stage.graph, true));
    stages_.push_back(g);
    HostBuilder host(*g, name, *options_.machine, 0, &kernels_, &offsets_, found);
    host.TellResults();
    TN_ASSIGN_OR_RETURN(const Func f, host.Build());
    PrimFunc fields(*f);
    std::vector<std::string> names;
    for (const Var& dim : stage.found) names.push_back(dim->name);
    fields.attrs.Set(kFoundDimsAttr, names);
    return fields;
  }

  // Names what graphs can say and kernels cannot do. Regions nest no deeper than
  // Limits::kRegionDepth.
  static Status CheckValues(const Graph& g) {
    for (size_t v = 0; v < g.values.size(); ++v) {
      const Value& value = g.values[v];
      const bool tensor = value.type.IsTensor();
      if (tensor && !value.type.tensor().dtype.IsString()) continue;
      SourceLoc at{.item = value.producer == kNoNode ? fmt::format("value {}", Quoted(value.name))
                                                     : Describe(g, value.producer)};
      return MakeError(
          fmt::format("expected tensors of numbers and bools, but got {}: {} are not compiled yet",
                      value.type.ToString(), tensor ? "strings" : "sequences and optionals"),
          at);
    }
    for (const Node& n : g.nodes) {
      for (const auto& region : n.regions) TN_RETURN_IF_ERROR(CheckValues(*region));
    }
    return Ok();
  }

  // The graph without its prepared nodes: their results are constants with an empty marker payload.
  // Likewise its regions. All weights are placed; those of a region that are there already stay
  // where they are.
  Expected<std::shared_ptr<const Graph>> RuntimeGraph(const Graph& g, bool is_region) {
    const PrepareSplit split(g);
    auto made = std::make_shared<Graph>(g);
    Graph& runtime = *made;
    std::vector<Node> kept;
    for (size_t n = 0; n < runtime.nodes.size(); ++n) {
      if (!split.IsPrepared(static_cast<NodeId>(n))) kept.push_back(runtime.nodes[n]);
    }
    runtime.nodes = std::move(kept);
    for (Value& v : runtime.values) v.producer = kNoNode;
    for (size_t n = 0; n < runtime.nodes.size(); ++n) {
      for (ValueId v : runtime.nodes[n].outputs) runtime.value(v).producer = static_cast<NodeId>(n);
    }
    for (size_t v = 0; v < runtime.values.size(); ++v) {
      if (split.IsConstant(static_cast<ValueId>(v)) && !runtime.values[v].IsConstant())
        runtime.values[v].payload = Payload::Owned({});  // known only once prepare has run
    }
    std::map<ValueId, uint64_t>& offsets = offsets_[made.get()];
    const std::vector<int32_t> uses = UseCounts(runtime);
    for (size_t v = 0; v < runtime.values.size(); ++v) {
      if (!runtime.values[v].IsConstant() || uses[v] == 0) continue;
      auto id = static_cast<ValueId>(v);
      TN_ASSIGN_OR_RETURN(offsets[id], PlaceWeight(g, split, id, is_region));
    }
    for (Node& n : runtime.nodes) {
      if (!IsControl(n.op)) continue;
      for (std::shared_ptr<const Graph>& region : n.regions) {
        TN_ASSIGN_OR_RETURN(region, RuntimeGraph(*region, true));
      }
    }
    return std::shared_ptr<const Graph>(made);
  }

  Expected<uint64_t> PlaceWeight(const Graph& g, const PrepareSplit& split, ValueId v,
                                 bool is_region) {
    Weight w;
    w.name = g.value(v).name;
    w.type = g.type(v);
    w.bytes = static_cast<uint64_t>(*AsInt(ops::Store("w", w.type).Bytes()));
    const bool prepared = !g.value(v).IsConstant();
    const std::span<const std::byte> source = g.value(v).payload.bytes();
    if (!prepared && is_region) {
      for (const Weight& known : out_.weights) {
        const std::span<const std::byte> there = known.source.bytes();
        if (known.type == w.type && there.data() == source.data() && there.size() == source.size())
          return known.offset;
      }
    }
    w.offset = (out_.weights_bytes + kWeightAlign - 1) / kWeightAlign * kWeightAlign;
    if (!prepared) {
      w.source = g.value(v).payload;
    } else {
      TN_RETURN_IF_ERROR(LowerPrepare(g, split, v, &w));
    }
    out_.weights_bytes = w.offset + w.bytes;
    uint64_t offset = w.offset;
    out_.weights.push_back(std::move(w));
    return offset;
  }

  Status LowerPrepare(const Graph& g, const PrepareSplit& split, ValueId v, Weight* w) {
    std::vector<ValueId> operands;
    Graph region = ExtractRegion(g, split.Slice(v), {v}, &operands);
    w->prepare = fmt::format("prepare_{}", out_.weights.size());
    for (ValueId source : operands) w->sources.push_back(g.value(source).payload);
    if (options_.plan_prepare) region = PlanPrepare(region, *options_.prepare_machine);
    // Weights in a model file are aligned to nothing.
    HostBuilder host(region, w->prepare, *options_.prepare_machine, 1, &prepare_kernels_);
    TN_ASSIGN_OR_RETURN(Func f, host.Build());
    out_.prepare.Add(f);
    return Ok();
  }

  const LowerOptions& options_;
  LoweredNetwork out_;
  std::vector<std::shared_ptr<const Graph>> stages_;  // offsets_ knows graphs by their addresses
  KernelTable kernels_, prepare_kernels_;
  WeightOffsets offsets_;
};

}  // namespace

Expected<LoweredNetwork> Lower(const Graph& g, const LowerOptions& options) {
  Lowering lowering(options);
  TN_RETURN_IF_ERROR(lowering.Add(g, options.name));
  return lowering.Take();
}

Expected<LoweredNetwork> LowerAll(std::span<const Graph> graphs, const LowerOptions& options) {
  Lowering lowering(options);
  for (const Graph& g : graphs) TN_RETURN_IF_ERROR(lowering.Add(g, g.name));
  return lowering.Take();
}

}  // namespace tenon::graph
