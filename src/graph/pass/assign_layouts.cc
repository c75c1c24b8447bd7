#include "graph/pass/assign_layouts.h"

#include <algorithm>

#include "graph/dims.h"
#include "graph/edit.h"
#include "graph/pass/constants.h"
#include "graph/storage_desc.h"
#include "ir/print.h"
#include "ops/catalog.h"

namespace tenon::graph {

namespace {

class Assigner {
 public:
  Assigner(const Graph& g, const Target& target)
      : g_(g), target_(target), constant_(ConstantValues(g)) {}

  Graph Run() {
    size_t count = g_.nodes.size();
    ChooseBlocked();
    SplitOutputs();
    ChooseHalos();
    for (size_t v = 0; v < desc_.size(); ++v) {
      TensorType& type = g_.values[v].type;
      if (!type.layout && !IsEnd(static_cast<ValueId>(v)))
        type.layout = MakeLayout(desc_[v], type.dims);
    }
    for (size_t n = 0; n < count; ++n) CopyEnds(static_cast<NodeId>(n));
    for (size_t n = 0; n < count; ++n) ArrangeWeights(static_cast<NodeId>(n));
    TopologicalSort(g_);
    Compact(g_);
    return std::move(g_);
  }

 private:
  bool IsGraphOutput(ValueId v) const {
    return std::find(g_.outputs.begin(), g_.outputs.end(), v) != g_.outputs.end();
  }
  // Row-major: what callers see, and constants.
  bool IsEnd(ValueId v) const { return g_.value(v).producer == kNoNode || IsGraphOutput(v); }

  // Computed from constants alone.
  bool IsConstant(ValueId v) const {
    return static_cast<size_t>(v) < constant_.size() && constant_[static_cast<size_t>(v)];
  }

  // Operators that compute in whatever layout their operands have.
  static bool Follows(OpKind op) {
    switch (op) {
      case OpKind::kMaxPool:
      case OpKind::kAvgPool:
      case OpKind::kConcat:
      case OpKind::kResize: return true;
      default: break;
    }
    IndexMapClass map = Info(op).map;
    return map == IndexMapClass::kElementwise || map == IndexMapClass::kBroadcast;
  }

  bool KeepsChannels(const Node& n) const {
    if (n.op == OpKind::kConcat) return n.attrs.GetInt("axis") == 1;
    if (n.op != OpKind::kReduce) return Follows(n.op);
    std::vector<int64_t> axes = n.attrs.GetInts("axes");
    bool spatial = std::all_of(axes.begin(), axes.end(), [](int64_t a) { return a >= 2; });
    return spatial && n.attrs.Get<bool>("keepdims", false);
  }

  void ChooseBlocked() {
    desc_.resize(g_.values.size());
    int64_t block = ops::ChannelBlock(target_);
    for (const Node& n : g_.nodes) {
      ValueId out = n.outputs[0];
      auto dims = g_.type(out).StaticDims();
      if (!dims || dims->size() != 4 || !(g_.type(out).dtype == DType::Float(32))) continue;
      bool conv = n.op == OpKind::kConv;
      bool blocked = conv && ops::WantsBlocks(g_, n);
      for (ValueId in : n.inputs) {
        blocked |= !conv && in != kNoValue && KeepsChannels(n) &&
                   !desc_[static_cast<size_t>(in)].blocks.empty();
      }
      if (blocked && (*dims)[1] > 1) desc_[static_cast<size_t>(out)].blocks = {{1, block}};
    }
  }

  // A graph output that its operator computes in blocks becomes a row-major copy of the blocked
  // value, which the rest of the network reads.
  void SplitOutputs() {
    for (size_t k = 0; k < g_.outputs.size(); ++k) {
      ValueId v = g_.outputs[k];
      if (g_.value(v).producer == kNoNode || desc_[static_cast<size_t>(v)].blocks.empty()) continue;
      ValueId plain = Arrange(v, nullptr);
      desc_.resize(g_.values.size());
      std::replace(g_.outputs.begin(), g_.outputs.end(), v, plain);
    }
  }

  // Each value gets the largest pads that any convolution reading it wants.
  void ChooseHalos() {
    halo_.resize(g_.values.size());
    for (const Node& n : g_.nodes) {
      if (n.op != OpKind::kConv) continue;
      std::vector<int64_t> pads = ops::WantedHalo(g_, n, target_);
      if (pads.empty()) continue;
      size_t v = static_cast<size_t>(n.inputs[0]);
      halo_[v].resize(pads.size());
      for (size_t i = 0; i < pads.size(); ++i) halo_[v][i] = std::max(halo_[v][i], pads[i]);
    }
    for (size_t v = 0; v < halo_.size(); ++v) {
      const std::vector<Expr>& dims = g_.values[v].type.dims;
      if (!std::any_of(halo_[v].begin(), halo_[v].end(), [](int64_t p) { return p > 0; })) {
        halo_[v].clear();
        continue;
      }
      size_t spatial = halo_[v].size() / 2;
      desc_[v].begin.assign(2, 0);
      desc_[v].size = {dims[0], dims[1]};
      for (size_t i = 0; i < spatial; ++i) {
        desc_[v].begin.push_back(halo_[v][i]);
        desc_[v].size.push_back(
            DimAdd(dims[i + 2], IndexConst(halo_[v][i] + halo_[v][spatial + i])));
      }
    }
  }

  // A reshape to the same dims, which changes only how the value lies in memory.
  ValueId Arrange(ValueId v, Layout layout) {
    TensorType type = g_.type(v);
    type.layout = std::move(layout);
    Node n;
    n.op = OpKind::kReshape;
    n.name = g_.value(v).name + ".arranged";
    n.inputs = {v};
    n.exprs["shape"] = type.dims;
    return g_.node(g_.AddNode(n, {type})).outputs[0];
  }

  // Convolutions read graph inputs (and values that are also outputs) through a copy with a halo,
  // and those that want no blocks a blocked value through a plain copy.
  void CopyEnds(NodeId id) {
    if (g_.node(id).op != OpKind::kConv) return;
    ValueId v = g_.node(id).inputs[0];
    if (g_.value(v).IsConstant() || static_cast<size_t>(v) >= desc_.size()) return;
    StorageDesc have = IsEnd(v) ? StorageDesc{} : desc_[static_cast<size_t>(v)];
    StorageDesc want = desc_[static_cast<size_t>(v)];
    if (!ops::WantsBlocks(g_, g_.node(id))) want.blocks.clear();
    if (want == have) return;
    auto [it, fresh] = copies_.emplace(v, kNoValue);
    if (fresh) it->second = Arrange(v, MakeLayout(want, g_.type(v).dims));
    g_.node(id).inputs[0] = it->second;
  }

  void ArrangeWeights(NodeId id) {
    for (size_t i = 1; i < g_.node(id).inputs.size(); ++i) {
      ValueId v = g_.node(id).inputs[i];
      if (v == kNoValue || !IsConstant(v) || !g_.type(v).StaticDims() || g_.type(v).layout)
        continue;
      Layout layout = ops::WeightLayout(g_, g_.node(id), i, target_);
      if (!layout) continue;
      auto [it, fresh] = arranged_.emplace(std::pair(v, ToString(layout)), kNoValue);
      if (fresh) it->second = Arrange(v, layout);
      g_.node(id).inputs[i] = it->second;
    }
  }

  Graph g_;
  const Target& target_;
  std::vector<bool> constant_;
  std::vector<StorageDesc> desc_;
  std::vector<std::vector<int64_t>> halo_;
  std::map<ValueId, ValueId> copies_;
  std::map<std::pair<ValueId, std::string>, ValueId> arranged_;  // by weight and layout
};

}  // namespace

Graph AssignLayouts(const Graph& g, const GraphPassContext& context) {
  return Assigner(g, *context.target).Run();
}

}  // namespace tenon::graph
