// Calls are expanded level by level: each round replaces the calls that it finds, so nothing
// recurses, and a call that is still there after as many rounds as there are functions is part of a
// cycle.
#include "frontend/onnx/inline_functions.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "frontend/onnx/node_order.h"
#include "graph/graph.h"

namespace tenon::onnx {
namespace {

using FunctionId =
    std::tuple<std::string_view, std::string_view, std::string_view>;  // domain, name, overload

// Puts bodies in the place of calls, one level of calls in a round. Each call has a prefix of its
// own for all names inside, so no two share one; what is made stays below max_nodes_, or is an
// error.
class Inliner {
 public:
  Inliner(const ModelProto& model, size_t max_nodes, std::deque<std::string>* names)
      : max_nodes_(max_nodes), names_(names) {
    for (const FunctionProto& f : model.functions) functions_[{f.domain, f.name, f.overload}] = &f;
  }

  const FunctionProto* Callee(const NodeProto& node) const {
    auto it = functions_.find({node.domain, node.op_type, node.overload});
    return it == functions_.end() ? nullptr : it->second;
  }

  // One round over `nodes`; false where no call was found.
  Expected<bool> Expand(std::vector<NodeProto>* nodes) {
    std::vector<NodeProto> out;
    bool found = false;
    for (NodeProto& node : *nodes) {
      const FunctionProto* callee = Callee(node);
      if (!callee) {
        TN_ASSIGN_OR_RETURN(const bool inside, ExpandInside(&node));
        found |= inside;
        out.push_back(std::move(node));
      } else {
        found = true;
        TN_RETURN_IF_ERROR(Call(*callee, node, &out));
      }
      if (out.size() + nested_ > max_nodes_) {
        return MakeLimitError(
            fmt::format("expanding the local functions gives more than {} nodes", max_nodes_));
      }
    }
    *nodes = std::move(out);
    return found;
  }

  // A call that is left, anywhere; null where there is none.
  const NodeProto* FindCall(const std::vector<NodeProto>& nodes) const {
    for (const NodeProto& node : nodes) {
      if (Callee(node)) return &node;
      for (const AttributeProto& a : node.attributes) {
        for (const GraphProto& g : a.graph) {  // no deeper than ReadLimits::max_depth
          if (const NodeProto* call = FindCall(g.nodes)) return call;
        }
      }
    }
    return nullptr;
  }

 private:
  // The calls in the graphs that a node holds; no deeper than ReadLimits::max_depth.
  Expected<bool> ExpandInside(NodeProto* node) {
    bool found = false;
    for (AttributeProto& a : node->attributes) {
      for (GraphProto& g : a.graph) {
        TN_ASSIGN_OR_RETURN(const bool inside, Expand(&g.nodes));
        found |= inside;
      }
    }
    return found;
  }

  std::string_view Keep(std::string name) { return names_->emplace_back(std::move(name)); }

  Status Call(const FunctionProto& f, const NodeProto& call, std::vector<NodeProto>* out) {
    if (call.inputs.size() > f.inputs.size() || call.outputs.size() > f.outputs.size()) {
      return MakeError(fmt::format(
          "expected at most {} inputs and {} outputs for function {}, but got {} and {}",
          f.inputs.size(), f.outputs.size(), graph::Quoted(f.name), call.inputs.size(),
          call.outputs.size()));
    }
    const std::string prefix =
        fmt::format("{}#{}/", call.name.empty() ? f.name : call.name, calls_++);
    std::unordered_map<std::string_view, std::string_view> renamed;
    for (size_t i = 0; i < f.inputs.size(); ++i)
      renamed[f.inputs[i]] = i < call.inputs.size() ? call.inputs[i] : std::string_view();
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      // An output that is an input as well is copied, or it would keep the input's name.
      if (!call.outputs[i].empty() && !renamed.emplace(f.outputs[i], call.outputs[i]).second) {
        out->push_back({.name = call.name,
                        .op_type = "Identity",
                        .inputs = {renamed[f.outputs[i]]},
                        .outputs = {call.outputs[i]}});
      }
    }
    auto rename = [&](std::string_view& name) {
      if (name.empty()) return;
      auto [it, is_new] = renamed.try_emplace(name);
      if (is_new) it->second = Keep(prefix + std::string(name));
      name = it->second;
    };
    for (const NodeProto& body_node : f.nodes) {
      NodeProto node = body_node;
      Localize(f, call, prefix, rename, &node);
      out->push_back(std::move(node));
      if (nested_ > max_nodes_) break;  // Expand says so
    }
    return Ok();
  }

  // Makes a node of the function's body, and what is in it, one of the caller's: all names inside
  // are the function's, whichever graph of its body defines them.
  template <class Rename>
  void Localize(const FunctionProto& f, const NodeProto& call, const std::string& prefix,
                Rename&& rename, NodeProto* node) {
    node->name = Keep(prefix + std::string(node->name));
    for (std::string_view& i : node->inputs) rename(i);
    for (std::string_view& o : node->outputs) rename(o);
    BindAttributes(f, call, node);
    for (const OpsetId& id : f.opset_imports) {
      if (id.domain.empty() || id.domain == "ai.onnx") node->opset = id.version;
    }
    for (AttributeProto& a : node->attributes) {
      for (GraphProto& g : a.graph) {
        for (ValueInfoProto& i : g.inputs) rename(i.name);
        for (ValueInfoProto& o : g.outputs) rename(o.name);
        for (TensorProto& t : g.initializers) rename(t.name);
        for (NodeProto& inner : g.nodes) {  // no deeper than ReadLimits::max_depth
          if (++nested_ > max_nodes_) return;
          Localize(f, call, prefix, rename, &inner);
        }
      }
    }
  }

  // References to the function's attributes become the call's values, or the defaults, or vanish.
  static void BindAttributes(const FunctionProto& f, const NodeProto& call, NodeProto* node) {
    std::vector<AttributeProto> bound;
    for (AttributeProto& a : node->attributes) {
      if (a.ref_attr_name.empty()) {
        bound.push_back(std::move(a));
        continue;
      }
      const AttributeProto* value = nullptr;
      for (const AttributeProto& d : f.attribute_defaults)
        value = d.name == a.ref_attr_name ? &d : value;
      for (const AttributeProto& c : call.attributes)
        value = c.name == a.ref_attr_name ? &c : value;
      if (!value) continue;
      const std::string_view name = a.name;
      bound.push_back(*value);
      bound.back().name = name;
    }
    node->attributes = std::move(bound);
  }

  const size_t max_nodes_;
  std::deque<std::string>* names_;
  std::map<FunctionId, const FunctionProto*> functions_;
  size_t calls_ = 0;
  size_t nested_ = 0;  // nodes made in graphs of attributes
};

}  // namespace

Status InlineFunctions(ModelProto* model, size_t max_nodes, std::deque<std::string>* names,
                       const std::string& file) {
  if (model->functions.empty()) return Ok();
  std::set<FunctionId> known;
  for (const FunctionProto& f : model->functions) {
    if (known.emplace(f.domain, f.name, f.overload).second) continue;
    return MakeError("two functions have this name",
                     {.file = file, .item = "function " + graph::Quoted(f.name)});
  }
  Inliner inliner(*model, max_nodes, names);
  for (size_t round = 0; round <= model->functions.size(); ++round) {
    Expected<bool> found = inliner.Expand(&model->graph.nodes);
    if (!found) {
      for (Diagnostic& d : found.errors()) d.loc = {.file = file, .item = "functions"};
      return std::move(found.errors());
    }
    if (!*found) return Ok();
  }
  const NodeProto* call = inliner.FindCall(model->graph.nodes);
  if (!call) return Ok();
  return MakeError("the local function calls itself",
                   {.file = file, .item = DescribeNode(*call, 0)});
}

}  // namespace tenon::onnx
