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

#include <map>
#include <span>

#include "graph/edit.h"
#include "graph/lower/host_builder.h"
#include "graph/lower/kernel_table.h"
#include "graph/lower/prepare_plan.h"
#include "graph/lower/prepare_split.h"
#include "graph/lower/size_stages.h"
#include "graph/stored_view.h"
#include "graph/verify.h"
#include "loop/arguments.h"
#include "plan/region.h"

namespace tenon::graph {

namespace {

/// Lowers a network: the host function, weights, and what computes some of them. Every constant
/// that a graph of offsets_ reads has a place in the weights' segment; places overlap only where a
/// region has the same bytes, or one is a view of the other, and weights_bytes is the end of the
/// last.
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
      // What is the same memory as another constant, by another shape or transposed, lies there.
      auto id = static_cast<ValueId>(v), own = id;
      while (!g.value(own).IsConstant() && IsStoredView(g, g.node(g.value(own).producer)))
        own = g.node(g.value(own).producer).inputs[0];
      if (!offsets.contains(own)) {
        TN_ASSIGN_OR_RETURN(offsets[own], PlaceWeight(g, split, own, is_region));
      }
      offsets[id] = offsets.at(own);
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
