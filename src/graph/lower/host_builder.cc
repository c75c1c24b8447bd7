// Where values lie, and what is launched on them. Places are made when first met: outputs are the
// caller's buffers, views lie where they are views of, weights have their offsets in the segment,
// and all else is allocated around the statements of its scope. A scope ends with its graph or
// region; a dim that a node defines opens one more, since sizes after it may mention the dim.
#include "graph/lower/host_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "arith/analyzer.h"
#include "graph/dims.h"
#include "graph/edit.h"
#include "graph/lower/time_alone.h"
#include "graph/stored_view.h"
#include "graph/verify.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "loop/arguments.h"
#include "loop/requirements.h"
#include "loop/workspace.h"
#include "plan/region.h"
#include "plan/shape_weights.h"
#include "support/strings.h"

namespace tenon::graph {

namespace {

Machine OneWorker(Machine machine) {
  machine.workers = 1;
  return machine;
}

}  // namespace

Buffer Aligned(const Buffer& b, int64_t align) {
  return BufferNode::Make(b->name, b->dtype, b->shape, b->scope, b->layout, b->strides, align);
}

HostBuilder::HostBuilder(const Graph& g, std::string name, const Machine& machine,
                         int64_t argument_align, KernelTable* kernels, const WeightOffsets* weights,
                         std::vector<Var> found)
    : g_(g),
      found_(std::move(found)),
      name_(std::move(name)),
      machine_(machine),
      alone_(OneWorker(machine)),
      place_(machine.target->IsDevice() ? Place::Device(0) : Place{}),
      argument_align_(argument_align),
      kernels_(kernels),
      offsets_(weights) {}

// An identifier of the languages that kernels are written in.
std::string HostBuilder::NextName() {
  std::string name = fmt::format("{}_k{}", name_, serial_++);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

Expected<Func> HostBuilder::Build() {
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

static void SetAskers(const char* attr, const std::vector<std::string>& askers, PrimFunc* f) {
  if (std::any_of(askers.begin(), askers.end(), [](const auto& who) { return !who.empty(); }))
    f->attrs.Set(attr, askers);
}

void HostBuilder::DeclareDims(PrimFunc* f) {
  std::vector<std::string> askers;
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
    askers.push_back(d.asker);
  }
  SetAskers(kRangeAskersAttr, askers, f);
  std::vector<std::string> conditions, who;
  for (const Constraint& c : g_.constraints) {
    conditions.push_back(ToString(c.holds));
    who.push_back(c.asker);
  }
  if (!conditions.empty()) f->attrs.Set(kConditionsAttr, conditions);
  SetAskers(kConditionAskersAttr, who, f);
}

void HostBuilder::DeclareArguments(Frame* main, PrimFunc* f) {
  for (size_t i = 0; i < g_.inputs.size(); ++i) {
    ValueId v = g_.inputs[i];
    Buffer b =
        ops::Store(g_.value(v).name.empty() ? fmt::format("in{}", i) : g_.value(v).name, g_.type(v))
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

Expr HostBuilder::Most(const Expr& size) const {
  VarMap most;
  for (const auto& [var, value] : own_dims_) most[var.get()] = value;
  return SimplifyDim(Substitute(size, most));
}

bool HostBuilder::MentionsOwn(const std::vector<Expr>& sizes) const {
  return std::any_of(sizes.begin(), sizes.end(), [&](const Expr& size) {
    return std::any_of(own_dims_.begin(), own_dims_.end(),
                       [&](const auto& own) { return UsesVar(size, own.first.get()); });
  });
}

Buffer HostBuilder::MostOf(const std::string& name, const TensorType& type) const {
  return BufferNode::Make(name, type.dtype, {Most(DimProduct(type.dims))});
}

Status HostBuilder::LowerLateOutput(Frame* frame, ValueId from, const Buffer& to) {
  TensorType flat{g_.type(from).dtype, {DimProduct(g_.type(from).dims)}};
  const Region part = RegionNode::Make(to, {RangeNode::Make(IndexConst(0), flat.dims[0])});
  return LowerCopy(frame, g_.value(from), SlotOf(frame, from), {to, true}, part, flat.dims);
}

Status HostBuilder::LowerDim(Frame* frame, const Node& node, const std::string& what) {
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

Status HostBuilder::LowerRequire(Frame* frame, const Node& node) {
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
    parts.insert(parts.end(), {text(", but got "), CastExpr::Make(DType::Index(), worst) + least});
    frame->stmts.push_back(Assert::Make(Or(fits, SimplifyDim(none)), "IndexError", parts));
  }
  Slot& to = frame->slot(node.outputs[0]);
  if (!to.buffer) to = from;
  return to.buffer == from.buffer ? Ok() : LowerCopy(frame, node.inputs[0], to);
}

Buffer HostBuilder::Tell(PrimFunc* f, size_t count) {
  const Expr size = IndexConst(static_cast<int64_t>(count));
  told_ = {BufferNode::Make("result_dims", DType::Int(64), {size}),
           VarNode::Make(kResultDims, DType::Handle())};
  f->scalars.push_back(told_.second);
  return told_.first;
}

void HostBuilder::TellOutputs(Frame* main, PrimFunc* f) {
  const Buffer told = Tell(f, g_.outputs.size());
  for (size_t k = 0; k < g_.outputs.size(); ++k)
    main->stmts.push_back(
        Store::Make(told, {IndexConst(static_cast<int64_t>(k))}, Scalar(main, g_.outputs[k])));
}

void HostBuilder::TellOwnDims(Frame* main, PrimFunc* f) {
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

const Slot& HostBuilder::SlotOf(Frame* frame, ValueId v) {
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

std::vector<Slot> HostBuilder::SlotsOf(Frame* frame, const std::vector<ValueId>& values) {
  std::vector<Slot> out;
  for (ValueId v : values) out.push_back(SlotOf(frame, v));
  return out;
}

int64_t HostBuilder::AlignOf(const Slot& slot) const {
  return slot.argument ? argument_align_ : static_cast<int64_t>(kWeightAlign);
}

std::vector<std::pair<Buffer, uint64_t>> HostBuilder::Weights(Frame& main) const {
  std::vector<std::pair<Buffer, uint64_t>> all;
  if (!offsets_) return all;
  for (auto [v, offset] : offsets_->at(&g_)) {
    if (const Buffer& b = main.slot(v).buffer) all.emplace_back(b, offset);
  }
  all.insert(all.end(), inner_weights_.begin(), inner_weights_.end());
  return all;
}

Stmt HostBuilder::Close(Frame* frame) {
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

Status HostBuilder::LowerNodes(Frame* frame) {
  StoreThroughViews(frame);
  for (const Node& node : frame->g.nodes) TN_RETURN_IF_ERROR(LowerNode(frame, node));
  return Ok();
}

void HostBuilder::StoreThroughViews(Frame* frame) {
  const Graph& g = frame->g;
  for (size_t n = g.nodes.size(); n-- > 0;) {
    const Node& node = g.nodes[n];
    if (!IsStoredView(g, node) || g.value(node.inputs[0]).producer == kNoNode) continue;
    const Slot& to = frame->slot(node.outputs[0]);
    if (Slot& from = frame->slot(node.inputs[0]); !from.buffer) from = to;
  }
}

Status HostBuilder::LowerNode(Frame* frame, const Node& node) {
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

bool HostBuilder::IsKnownScalar(const Value& v) {
  if (!v.IsConstant() || v.payload.bytes().empty() || v.type.tensor().rank() > 1) return false;
  auto dims = v.type.tensor().StaticDims();
  return dims && (dims->empty() || dims->at(0) == 1);
}

Status HostBuilder::LowerCopy(Frame* frame, const Value& from, const Slot& source, const Slot& to,
                              const Region& part, const std::vector<Expr>& shape) {
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

Status HostBuilder::LowerCopy(Frame* frame, ValueId from, const Slot& to, const Region& part) {
  const Value& value = frame->g.value(from);
  return LowerCopy(frame, value, IsKnownScalar(value) ? Slot{} : SlotOf(frame, from), to, part);
}

// The dims that are at one end of their range wherever that holds, as numbers.
static VarMap KnownWhere(const Graph& region, const Expr& when) {
  Analyzer analyzer;
  for (const Dim& d : region.dims) analyzer.BindInterval(d.var, {d.min, d.max});
  VarMap out;
  for (const Dim& d : region.dims) {
    const auto never = [&](int64_t from, int64_t to) {
      analyzer.BindInterval(d.var, {from, to});
      return from <= to && analyzer.CanProve(Not(when));
    };
    const int64_t last = plan::SizeUpTo(d, d.max);
    if (never(d.min + d.step, d.max)) {
      out[d.var.get()] = IndexConst(d.min);
    } else if (d.max != Dim::kNoMax && never(d.min, last - d.step)) {
      out[d.var.get()] = IndexConst(last);
    }
    analyzer.BindInterval(d.var, {d.min, d.max});
  }
  return out;
}

Status HostBuilder::LowerRegion(Frame* frame, const Graph& region, const std::vector<Slot>& inputs,
                                const std::vector<Slot>& outputs, const std::string& what,
                                const Plan* plan, const Region& part) {
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
    if (plan) {
      variant.variants = {{plan->variants.back().when, plan->variants[i].schedule}};
      request.known = KnownWhere(region, plan->variants[i].when);
    }
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
    Attrs attrs;
    attrs.Set("node", what);
    if (auto time = TimeAlone(region, args, *kernel, alone_); !time.empty())
      attrs.Set(kAlone, std::move(time));
    const Stmt here = Launch::Make(kernels_->Intern(*kernel, i == typical), args, kernel->sizes,
                                   place_, std::move(attrs));
    stmt = stmt ? If::Make(plan->variants[i].when, here, stmt) : here;
  }
  frame->stmts.push_back(std::move(stmt));
  return Ok();
}

size_t HostBuilder::TypicalVariant(const Graph& region, const Plan* plan) {
  VarMap typical;
  for (const Dim& d : region.dims) typical[d.var.get()] = IndexConst(d.Typical());
  size_t i = 0;
  while (plan && i + 1 < plan->variants.size() &&
         !IsOne(SimplifyDim(Substitute(plan->variants[i].when, typical)))) {
    ++i;
  }
  return i;
}

}  // namespace tenon::graph
