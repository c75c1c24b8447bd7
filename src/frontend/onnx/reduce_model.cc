// Delta debugging of models. Each step makes candidates of one kind from the model at hand; the
// first that holds replaces it. Steps that leave out much come first, and leave out runs of nodes
// before single ones, so that a large model needs some hundred trials and not one per node.
#include "frontend/onnx/reduce_model.h"

#include <algorithm>
#include <set>

#include "frontend/onnx/proto.h"
#include "frontend/onnx/write_model.h"

namespace tenon::onnx {

namespace {

using NameSet = std::set<std::string_view>;

void AddNamesRead(const GraphProto& g, NameSet* names);
void AddNamesRead(const NodeProto& n, NameSet* names) {
  names->insert(n.inputs.begin(), n.inputs.end());
  for (const AttributeProto& a : n.attributes) {
    for (const GraphProto& inner : a.graph) AddNamesRead(inner, names);
  }
}
// What a graph inside reads may be a value around it.
void AddNamesRead(const GraphProto& g, NameSet* names) {
  for (const NodeProto& n : g.nodes) AddNamesRead(n, names);
  for (const ValueInfoProto& v : g.outputs) names->insert(v.name);
}

// Nodes, constants and inputs that no output needs go away.
void Prune(GraphProto* g) {
  NameSet needed;
  for (const ValueInfoProto& v : g->outputs) needed.insert(v.name);
  std::vector<NodeProto> kept;
  for (size_t i = g->nodes.size(); i-- > 0;) {
    NodeProto& n = g->nodes[i];
    if (std::none_of(n.outputs.begin(), n.outputs.end(),
                     [&](std::string_view o) { return needed.contains(o); }))
      continue;
    AddNamesRead(n, &needed);
    kept.push_back(std::move(n));
  }
  std::reverse(kept.begin(), kept.end());
  g->nodes = std::move(kept);
  const auto unneeded = [&](const auto& v) { return !needed.contains(v.name); };
  std::erase_if(g->initializers, unneeded);
  std::erase_if(g->inputs, unneeded);
  NameSet made;
  for (const NodeProto& n : g->nodes) made.insert(n.outputs.begin(), n.outputs.end());
  std::erase_if(g->value_infos, [&](const ValueInfoProto& v) { return !made.contains(v.name); });
}

class Reducer {
 public:
  Reducer(ModelProto model, const std::function<bool(const std::string&)>& holds)
      : model_(std::move(model)), holds_(holds) {}

  std::string Run() {
    for (size_t before = SIZE_MAX; Weight() < before;) {
      before = Weight();
      LeaveOutOutputs();
      OneOutput();
      LeaveOutNodes();
      TakeOperands();
      LeaveOutAttributes();
      LeaveOutOperands();
      ConstantsAsInputs();
      SmallerSizes();
    }
    return WriteModel(model_);
  }

 private:
  // Falls with every change: what ends the search.
  size_t Weight() const { return Weight(model_.graph); }
  static size_t Weight(const GraphProto& g) {
    size_t weight = g.inputs.size() + 2 * g.initializers.size() + 4 * g.outputs.size();
    for (const NodeProto& n : g.nodes) {
      weight += 16 + n.inputs.size();
      for (const AttributeProto& a : n.attributes) {
        weight += 1;
        for (const GraphProto& inner : a.graph) weight += Weight(inner);
      }
    }
    for (const ValueInfoProto& v : g.inputs) {
      for (const DimProto& d : v.shape)
        weight += d.kind == DimProto::Kind::kValue
                      ? static_cast<size_t>(std::max<int64_t>(d.value, 0))
                      : 1;
    }
    return weight;
  }

  bool Try(ModelProto candidate) {
    Prune(&candidate.graph);
    if (candidate.graph.outputs.empty()) return false;
    if (!holds_(WriteModel(candidate))) return false;
    model_ = std::move(candidate);
    return true;
  }

  void LeaveOutOutputs() {
    for (size_t i = model_.graph.outputs.size(); i-- > 0;) {
      if (i >= model_.graph.outputs.size()) continue;
      ModelProto candidate = model_;
      candidate.graph.outputs.erase(candidate.graph.outputs.begin() + static_cast<long>(i));
      Try(std::move(candidate));
    }
  }

  // A result of an early node as the output: all behind it goes. Of many nodes, those at halves,
  // quarters, … of the way.
  void OneOutput() {
    constexpr size_t kFew = 32;
    const size_t n = model_.graph.nodes.size();
    for (size_t step = std::max<size_t>(1, n / kFew), i = step - 1; i < n; i += step) {
      for (std::string_view name : model_.graph.nodes[i].outputs) {
        if (name.empty() ||
            (model_.graph.outputs.size() == 1 && model_.graph.outputs[0].name == name))
          continue;
        ModelProto candidate = model_;
        candidate.graph.outputs = {OutputOf(name)};
        if (Try(std::move(candidate))) return;
      }
    }
  }

  ValueInfoProto OutputOf(std::string_view name) const {
    for (const auto* infos : {&model_.graph.outputs, &model_.graph.value_infos}) {
      for (const ValueInfoProto& v : *infos) {
        if (v.name == name) return v;
      }
    }
    ValueInfoProto unknown;  // a name alone: its type is inferred
    unknown.name = name;
    return unknown;
  }

  // Runs of nodes, long ones first; what others read of them becomes an input.
  void LeaveOutNodes() {
    for (size_t run = std::max<size_t>(1, model_.graph.nodes.size() / 2);; run /= 2) {
      for (size_t end = model_.graph.nodes.size(); end > 0;) {
        end = std::min(end, model_.graph.nodes.size());
        const size_t begin = end > run ? end - run : 0;
        if (end > 0 && !LeaveOut(begin, end)) end = begin;
        if (begin == 0) break;
      }
      if (run <= 1) break;
    }
  }
  bool LeaveOut(size_t begin, size_t end) {
    ModelProto candidate = model_;
    GraphProto& g = candidate.graph;
    const auto first = g.nodes.begin() + static_cast<long>(begin);
    const auto last = g.nodes.begin() + static_cast<long>(end);
    const std::vector<NodeProto> gone(first, last);
    g.nodes.erase(first, last);
    NameSet read;
    for (const NodeProto& n : g.nodes) AddNamesRead(n, &read);
    for (const NodeProto& n : gone) {
      for (std::string_view name : n.outputs) {
        if (!name.empty())
          std::erase_if(g.outputs, [&](const ValueInfoProto& v) { return v.name == name; });
        if (name.empty() || !read.contains(name)) continue;
        const auto info = std::find_if(g.value_infos.begin(), g.value_infos.end(),
                                       [&](const ValueInfoProto& v) { return v.name == name; });
        if (info == g.value_infos.end()) return false;
        g.inputs.push_back(*info);
      }
    }
    return Try(std::move(candidate));
  }

  // Every reader of a node's result reads an operand of it instead; in graphs inside, too.
  void TakeOperands() {
    for (size_t i = model_.graph.nodes.size(); i-- > 0;) {
      if (i >= model_.graph.nodes.size()) continue;
      const NodeProto node = model_.graph.nodes[i];
      for (std::string_view operand : node.inputs) {
        if (operand.empty() || node.outputs.empty()) continue;
        ModelProto candidate = model_;
        RenameReads(&candidate.graph, node.outputs[0], operand);
        if (Try(std::move(candidate))) break;
      }
    }
    TakeOperandsInside();
  }
  // Outputs of the outermost graph keep their names; those of graphs inside are reads.
  static void RenameReads(GraphProto* g, std::string_view from, std::string_view to) {
    for (NodeProto& n : g->nodes) {
      std::replace(n.inputs.begin(), n.inputs.end(), from, to);
      for (AttributeProto& a : n.attributes) {
        for (GraphProto& inner : a.graph) RenameInside(&inner, from, to);
      }
    }
  }
  static void RenameInside(GraphProto* g, std::string_view from, std::string_view to) {
    RenameReads(g, from, to);
    for (ValueInfoProto& v : g->outputs) {
      if (v.name == from) v.name = to;
    }
  }

  void TakeOperandsInside() {
    for (size_t i = 0; i < model_.graph.nodes.size(); ++i) {
      for (size_t a = 0; a < model_.graph.nodes[i].attributes.size(); ++a) {
        if (model_.graph.nodes[i].attributes[a].graph.empty()) continue;
        const size_t inside = model_.graph.nodes[i].attributes[a].graph[0].nodes.size();
        for (size_t k = inside; k-- > 0;) {
          const NodeProto node = model_.graph.nodes[i].attributes[a].graph[0].nodes[k];
          for (std::string_view operand : node.inputs) {
            if (operand.empty() || node.outputs.empty()) continue;
            ModelProto candidate = model_;
            GraphProto& inner = candidate.graph.nodes[i].attributes[a].graph[0];
            RenameInside(&inner, node.outputs[0], operand);
            inner.nodes.erase(inner.nodes.begin() + static_cast<long>(k));
            const size_t nodes = candidate.graph.nodes.size();
            if (Try(std::move(candidate))) {
              if (model_.graph.nodes.size() != nodes) return;  // another search is under way
              break;
            }
          }
        }
      }
    }
  }

  void LeaveOutAttributes() {
    for (size_t i = 0; i < model_.graph.nodes.size(); ++i) {
      for (size_t a = model_.graph.nodes[i].attributes.size(); a-- > 0;) {
        ModelProto candidate = model_;
        auto& attributes = candidate.graph.nodes[i].attributes;
        attributes.erase(attributes.begin() + static_cast<long>(a));
        Try(std::move(candidate));
        if (i >= model_.graph.nodes.size()) return;
        a = std::min(a, model_.graph.nodes[i].attributes.size());
      }
    }
  }

  void LeaveOutOperands() {
    for (size_t i = 0; i < model_.graph.nodes.size(); ++i) {
      for (size_t k = model_.graph.nodes[i].inputs.size(); k-- > 0;) {
        ModelProto candidate = model_;
        auto& inputs = candidate.graph.nodes[i].inputs;
        if (k >= inputs.size() || inputs[k].empty()) continue;
        if (k + 1 == inputs.size())
          inputs.pop_back();
        else
          inputs[k] = "";
        Try(std::move(candidate));
        if (i >= model_.graph.nodes.size()) return;
      }
    }
  }

  // An input says less than a constant does.
  void ConstantsAsInputs() {
    for (size_t i = model_.graph.initializers.size(); i-- > 0;) {
      if (i >= model_.graph.initializers.size()) continue;
      ModelProto candidate = model_;
      const TensorProto t = candidate.graph.initializers[i];
      candidate.graph.initializers.erase(candidate.graph.initializers.begin() +
                                         static_cast<long>(i));
      ValueInfoProto input;
      input.name = t.name, input.kind = ValueInfoProto::Kind::kTensor;
      input.elem_type = t.data_type, input.has_shape = true;
      for (int64_t d : t.dims) input.shape.push_back({DimProto::Kind::kValue, d, {}});
      const auto same = [&](const ValueInfoProto& v) { return v.name == t.name; };
      if (std::none_of(candidate.graph.inputs.begin(), candidate.graph.inputs.end(), same))
        candidate.graph.inputs.push_back(input);
      Try(std::move(candidate));
    }
  }

  // A size, wherever an input has it, becomes 1, its half, or one less.
  void SmallerSizes() {
    std::set<int64_t> sizes;
    for (const ValueInfoProto& v : model_.graph.inputs) {
      for (const DimProto& d : v.shape) {
        if (d.kind == DimProto::Kind::kValue && d.value > 1) sizes.insert(d.value);
      }
    }
    for (int64_t size : sizes) {
      for (int64_t less : {int64_t{1}, size / 2, size - 1}) {
        if (less > 0 && less < size && Resize(size, less)) break;
      }
    }
  }
  bool Resize(int64_t from, int64_t to) {
    ModelProto candidate = model_;
    candidate.graph.value_infos.clear();  // they are of the old sizes
    for (auto* infos : {&candidate.graph.inputs, &candidate.graph.outputs}) {
      for (ValueInfoProto& v : *infos) {
        for (DimProto& d : v.shape) {
          if (d.kind == DimProto::Kind::kValue && d.value == from) d.value = to;
        }
      }
    }
    return Try(std::move(candidate));
  }

  ModelProto model_;
  const std::function<bool(const std::string&)>& holds_;
};

}  // namespace

Expected<std::string> ReduceModel(const std::string& model,
                                  const std::function<bool(const std::string&)>& holds) {
  TN_ASSIGN_OR_RETURN(ModelProto proto, ReadModel(model, "model"));
  return Reducer(std::move(proto), holds).Run();
}

Expected<std::string> ModelText(const std::string& model) {
  TN_ASSIGN_OR_RETURN(const ModelProto proto, ReadModel(model, "model"));
  return PrintModel(proto);
}

}  // namespace tenon::onnx
