#include "graph/lower/lower.h"

#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "graph/edit.h"
#include "graph/lower/prepare_split.h"
#include "loop/arguments.h"
#include "plan/region.h"

namespace tenon::graph {

namespace {

constexpr uint64_t kWeightAlign = 64;

/// Kernels by content: equal definitions with equal choices share one function.
class KernelTable {
 public:
  KernelTable(Module* module, std::vector<KernelInfo>* infos,
              std::map<std::string, ops::Kernel>* scheduled)
      : module_(module), infos_(infos), scheduled_(scheduled) {}

  /// The name of the kernel, made anew or found.
  std::string Intern(const ops::Kernel& k) {
    PrimFunc fields(*k.func);
    std::string wanted = fields.name;
    fields.name = "k";
    Func anonymous = PrimFunc::Make(std::move(fields));
    uint64_t hash = StructuralHash(anonymous);
    for (const auto& [known, name] : known_[hash]) {
      const ops::Kernel& other = scheduled_->at(name);
      if (other.algorithm != k.algorithm || other.point != k.point) continue;
      if (!StructuralEqual(known, anonymous)) continue;
      if (infos_) ++(*infos_)[index_[name]].launches;
      return name;
    }
    known_[hash].emplace_back(anonymous, wanted);
    module_->Add(k.func);
    scheduled_->emplace(wanted, k);
    if (infos_) {
      index_[wanted] = infos_->size();
      infos_->push_back({wanted, k.kind, k.flops, k.bytes, 1, k.seconds});
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

Region Whole(const Buffer& b) {
  std::vector<Range> ranges;
  for (const Expr& d : b->shape) ranges.push_back(RangeNode::Make(IndexConst(0), d));
  return RegionNode::Make(b, std::move(ranges));
}

Buffer Aligned(const Buffer& b, int64_t align) {
  return BufferNode::Make(b->name, b->dtype, b->shape, b->scope, b->layout, b->strides, align);
}

/// Lowers one graph to one host function.
class HostBuilder {
 public:
  HostBuilder(const Graph& g, const std::string& name, const Machine& machine,
              int64_t argument_align, KernelTable* kernels)
      : g_(g), name_(name), machine_(machine), argument_align_(argument_align), kernels_(kernels) {
    buffers_.resize(g.values.size());
    is_argument_.resize(g.values.size());
  }

  /// Weights by value: the buffer is viewed at this offset of the segment.
  void BindWeight(ValueId v, uint64_t offset) { weight_offsets_[v] = offset; }

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
    DeclareArguments(&f);
    std::vector<Stmt> launches;
    for (size_t n = 0; n < g_.nodes.size(); ++n) {
      TN_ASSIGN_OR_RETURN(Stmt launch, LowerNode(static_cast<NodeId>(n)));
      launches.push_back(launch);
    }
    for (auto [from, to] : copies_) {
      TN_ASSIGN_OR_RETURN(Stmt launch, LowerCopy(from, to));
      launches.push_back(launch);
    }
    Stmt body = Seq::Make(std::move(launches));
    for (auto it = locals_.rbegin(); it != locals_.rend(); ++it) body = Alloc::Make(*it, body);
    std::vector<std::string> weights;
    std::vector<int64_t> offsets;
    for (auto [v, offset] : weight_offsets_) {
      const Buffer& b = buffers_[static_cast<size_t>(v)];
      if (!b) continue;
      weights.push_back(b->name);
      offsets.push_back(static_cast<int64_t>(offset));
      body = Alloc::Make(b, body);
    }
    if (!weights.empty()) {
      f.attrs.Set("weights", weights);
      f.attrs.Set("weight_offsets", offsets);
    }
    f.body = body;
    return PrimFunc::Make(std::move(f));
  }

 private:
  void DeclareArguments(PrimFunc* f) {
    for (size_t i = 0; i < g_.inputs.size(); ++i) {
      ValueId v = g_.inputs[i];
      Buffer b = ops::Store(g_.value(v).name.empty() ? fmt::format("in{}", i) : g_.value(v).name,
                            g_.type(v))
                     .buffer;
      buffers_[static_cast<size_t>(v)] = Aligned(b, argument_align_);
      is_argument_[static_cast<size_t>(v)] = true;
      f->buffers.push_back(buffers_[static_cast<size_t>(v)]);
    }
    for (size_t k = 0; k < g_.outputs.size(); ++k) {
      ValueId v = g_.outputs[k];
      Buffer b = Aligned(ops::Store(g_.output_names[k], g_.type(v)).buffer, argument_align_);
      f->buffers.push_back(b);
      // Inputs, constants and values given out twice are copied at the end.
      if (g_.value(v).producer == kNoNode || buffers_[static_cast<size_t>(v)]) {
        copies_.emplace_back(v, b);
      } else {
        buffers_[static_cast<size_t>(v)] = b;
        is_argument_[static_cast<size_t>(v)] = true;
      }
    }
    f->num_outputs = static_cast<int64_t>(g_.outputs.size());
  }

  // The buffer of a value that a kernel reads or writes; intermediates and weights are made when
  // first met.
  Buffer BufferOf(ValueId v) {
    Buffer& b = buffers_[static_cast<size_t>(v)];
    if (b) return b;
    const Value& value = g_.value(v);
    bool is_weight = value.producer == kNoNode;
    b = ops::Store(fmt::format("{}{}", is_weight ? "w" : "t", v), value.type).buffer;
    if (is_weight) {
      b = BufferNode::Make(b->name, b->dtype, b->shape, "const", b->layout, b->strides, b->align);
    } else {
      locals_.push_back(b);
    }
    return b;
  }
  int64_t AlignOf(ValueId v) const {
    return is_argument_[static_cast<size_t>(v)] ? argument_align_
                                                : static_cast<int64_t>(kWeightAlign);
  }

  Expected<Stmt> LowerNode(NodeId id) {
    const Node& node = g_.node(id);
    std::vector<ValueId> operands;
    const Graph region = RegionOf(g_, id, &operands);
    return LowerRegion(region, operands, node.outputs, Describe(g_, id), node.plan.get());
  }

  Expected<Stmt> LowerCopy(ValueId from, const Buffer& to) {
    Graph region;
    Node node;
    node.op = OpKind::kReshape;
    node.exprs["shape"] = g_.type(from).dims;
    node.inputs = {region.AddInput("x", g_.type(from))};
    NodeId id = region.AddNode(node, {g_.type(from)});
    region.AddOutput("y", region.node(id).outputs[0]);
    return LowerRegion(region, {from}, {}, "copy to output", nullptr, to);
  }

  Expected<Stmt> LowerRegion(const Graph& region, const std::vector<ValueId>& inputs,
                             const std::vector<ValueId>& outputs, const std::string& what,
                             const Plan* plan, Buffer into = nullptr) {
    ops::KernelRequest request;
    request.name = fmt::format("{}_k{}", name_, serial_++);
    request.region = &region;
    request.machine = &machine_;
    request.plan = plan;
    for (ValueId v : inputs) request.input_align.push_back(AlignOf(v));
    for (ValueId v : outputs) request.output_align.push_back(AlignOf(v));
    if (into) request.output_align.push_back(argument_align_);
    Expected<ops::Kernel> kernel = ops::BuildKernel(request);
    if (!kernel) {
      for (Diagnostic& d : kernel.errors()) d.notes.push_back("while lowering " + what);
      return kernel.errors();
    }
    std::vector<Region> args;
    for (ValueId v : inputs) args.push_back(Whole(BufferOf(v)));
    for (ValueId v : outputs) args.push_back(Whole(BufferOf(v)));
    if (into) args.push_back(Whole(into));
    std::string name = kernels_->Intern(*kernel);
    Attrs attrs;
    attrs.Set("node", what);
    return Launch::Make(name, std::move(args), {},
                        machine_.target->IsDevice() ? "device 0" : "host", std::move(attrs));
  }

  const Graph& g_;
  std::string name_;
  const Machine& machine_;
  int64_t argument_align_;
  KernelTable* kernels_;
  std::vector<Buffer> buffers_;
  std::vector<bool> is_argument_;
  std::vector<Buffer> locals_;
  std::vector<std::pair<ValueId, Buffer>> copies_;
  std::map<ValueId, uint64_t> weight_offsets_;
  int serial_ = 0;
};

class Lowering {
 public:
  Lowering(const Graph& g, const LowerOptions& options)
      : g_(g),
        options_(options),
        split_(g),
        kernels_(&out_.module, &out_.kernels, &out_.scheduled),
        prepare_kernels_(&out_.prepare, nullptr, &out_.scheduled) {}

  Expected<LoweredNetwork> Run() {
    Graph runtime = RuntimeGraph();
    HostBuilder host(runtime, options_.name, *options_.machine, 0, &kernels_);
    const std::vector<int32_t> uses = UseCounts(runtime);
    for (size_t v = 0; v < runtime.values.size(); ++v) {
      if (!runtime.values[v].IsConstant() || uses[v] == 0) continue;
      auto id = static_cast<ValueId>(v);
      TN_ASSIGN_OR_RETURN(uint64_t offset, PlaceWeight(id));
      host.BindWeight(id, offset);
    }
    TN_ASSIGN_OR_RETURN(Func main, host.Build());
    PrimFunc fields(*main);
    fields.attrs.Set("exported", true);
    out_.module.Add(PrimFunc::Make(std::move(fields)));
    return std::move(out_);
  }

 private:
  // The graph without its prepared nodes: their results are constants with an empty marker payload.
  Graph RuntimeGraph() {
    Graph runtime = g_;
    std::vector<Node> kept;
    for (size_t n = 0; n < runtime.nodes.size(); ++n) {
      if (!split_.IsPrepared(static_cast<NodeId>(n))) kept.push_back(runtime.nodes[n]);
    }
    runtime.nodes = std::move(kept);
    for (Value& v : runtime.values) v.producer = kNoNode;
    for (size_t n = 0; n < runtime.nodes.size(); ++n) {
      for (ValueId v : runtime.nodes[n].outputs) runtime.value(v).producer = static_cast<NodeId>(n);
    }
    for (size_t v = 0; v < runtime.values.size(); ++v) {
      auto id = static_cast<ValueId>(v);
      if (split_.IsConstant(id) && !runtime.values[v].IsConstant()) {
        runtime.values[v].payload = Payload::Owned({});  // known only once prepare has run
        prepared_.insert_or_assign(id, true);
      }
    }
    return runtime;
  }

  Expected<uint64_t> PlaceWeight(ValueId v) {
    Weight w;
    w.name = g_.value(v).name;
    w.type = g_.type(v);
    w.bytes = static_cast<uint64_t>(ops::Store("w", w.type).Bytes());
    w.offset = (out_.weights_bytes + kWeightAlign - 1) / kWeightAlign * kWeightAlign;
    if (!prepared_.count(v)) {
      w.source = g_.value(v).payload;
    } else {
      TN_RETURN_IF_ERROR(LowerPrepare(v, &w));
    }
    out_.weights_bytes = w.offset + w.bytes;
    uint64_t offset = w.offset;
    out_.weights.push_back(std::move(w));
    return offset;
  }

  Status LowerPrepare(ValueId v, Weight* w) {
    std::vector<ValueId> operands;
    Graph region = ExtractRegion(g_, split_.Slice(v), {v}, &operands);
    w->prepare = fmt::format("prepare_{}", out_.weights.size());
    for (ValueId source : operands) w->sources.push_back(g_.value(source).payload);
    // Weights in a model file are aligned to nothing.
    HostBuilder host(region, w->prepare, *options_.prepare_machine, 1, &prepare_kernels_);
    TN_ASSIGN_OR_RETURN(Func f, host.Build());
    out_.prepare.Add(f);
    return Ok();
  }

  const Graph& g_;
  const LowerOptions& options_;
  PrepareSplit split_;
  LoweredNetwork out_;
  KernelTable kernels_, prepare_kernels_;
  std::map<ValueId, bool> prepared_;
};

}  // namespace

Expected<LoweredNetwork> Lower(const Graph& g, const LowerOptions& options) {
  return Lowering(g, options).Run();
}

}  // namespace tenon::graph
