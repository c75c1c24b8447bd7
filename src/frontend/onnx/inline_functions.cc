// First the nodes that calls become are counted, callees before their callers: a few functions that
// each call the one before twice would become more nodes than any memory holds, and a function that
// calls itself has no count. Then calls are expanded level by level: each round replaces the calls
// that it finds, so nothing recurses.
#include "frontend/onnx/inline_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "frontend/onnx/node_order.h"
#include "graph/graph.h"

namespace tenon::onnx {
namespace {

using FunctionId =
    std::tuple<std::string_view, std::string_view, std::string_view>;  // domain, name, overload

// Every node, those in the graphs that nodes hold too; no deeper than ReadLimits::max_depth.
template <class Visit>
void ForEachNode(const std::vector<NodeProto>& nodes, const Visit& visit) {
  for (const NodeProto& node : nodes) {
    visit(node);
    for (const AttributeProto& a : node.attributes) {
      for (const GraphProto& g : a.graph) ForEachNode(g.nodes, visit);
    }
  }
}

Diagnostic TooManyNodes(size_t most) {
  return MakeLimitError(
      fmt::format("expanding the local functions gives more than {} nodes", most));
}

// A model's functions and who calls whom. The model outlives it.
class Functions {
 public:
  explicit Functions(const ModelProto& model) {
    for (const FunctionProto& f : model.functions) by_id_[{f.domain, f.name, f.overload}] = &f;
  }

  const FunctionProto* Callee(const NodeProto& node) const {
    auto it = by_id_.find({node.domain, node.op_type, node.overload});
    return it == by_id_.end() ? nullptr : it->second;
  }

  // Fails where expanding the model's graph would never end, or gives more than `most` nodes. What
  // graphs that calls pass as attributes add is not counted.
  Status CheckExpansion(const ModelProto& model, size_t most) {
    CountAll(model, most);
    if (auto error = FindCircle(model.graph)) return *error;
    if (CountOf(model.graph.nodes, most) > most) return TooManyNodes(most);
    return Ok();
  }

 private:
  // Callees first. A function that calls itself, by whatever way, or one that does so, has no
  // count.
  void CountAll(const ModelProto& model, size_t most) {
    std::unordered_map<const FunctionProto*, std::vector<const FunctionProto*>> callers;
    std::unordered_map<const FunctionProto*, size_t> uncounted;  // of the calls in it
    std::vector<const FunctionProto*> ready;
    for (const FunctionProto& f : model.functions) {
      ForEachNode(f.nodes, [&](const NodeProto& node) {
        const FunctionProto* callee = Callee(node);
        if (!callee) return;
        callers[callee].push_back(&f);
        ++uncounted[&f];
      });
      if (uncounted[&f] == 0) ready.push_back(&f);
    }
    while (!ready.empty()) {
      const FunctionProto* f = ready.back();
      ready.pop_back();
      counts_[f] = CountOf(f->nodes, most);
      for (const FunctionProto* caller : callers[f]) {
        if (--uncounted[caller] == 0) ready.push_back(caller);
      }
    }
  }

  // At most `most` + 1, which says that there are more. A call is a node before it is expanded, so
  // it counts where its function is empty too.
  size_t CountOf(const std::vector<NodeProto>& nodes, size_t most) const {
    size_t count = 0;
    ForEachNode(nodes, [&](const NodeProto& node) {
      const FunctionProto* callee = Callee(node);
      count += callee ? std::max<size_t>(counts_.at(callee), 1) : 1;
      count = std::min(count, most + 1);
    });
    return count;
  }

  // Follows calls of functions without a count until one comes again: that call closes a circle.
  std::optional<Diagnostic> FindCircle(const GraphProto& graph) const {
    std::set<const FunctionProto*> seen;
    const FunctionProto* in = nullptr;
    for (const NodeProto* call = UncountedCall(graph.nodes); call;
         call = UncountedCall(in->nodes)) {
      const FunctionProto* callee = Callee(*call);
      if (!seen.insert(callee).second) {
        return MakeError("the local function calls itself",
                         {.item = fmt::format("{} of function {}", DescribeNode(*call, 0),
                                              graph::Quoted(in->name))});
      }
      in = callee;
    }
    return std::nullopt;
  }

  const NodeProto* UncountedCall(const std::vector<NodeProto>& nodes) const {
    const NodeProto* found = nullptr;
    ForEachNode(nodes, [&](const NodeProto& node) {
      const FunctionProto* callee = Callee(node);
      if (!found && callee && counts_.count(callee) == 0) found = &node;
    });
    return found;
  }

  std::map<FunctionId, const FunctionProto*> by_id_;
  std::unordered_map<const FunctionProto*, size_t> counts_;
};

// Puts bodies in the place of calls, one level of calls in a round. Each call has a prefix of its
// own for all names inside, so no two share one; what is made stays below max_nodes_, or is an
// error.
class Inliner {
 public:
  Inliner(const Functions& functions, size_t max_nodes, std::deque<std::string>* names)
      : functions_(functions), max_nodes_(max_nodes), names_(names) {}

  // One round over `nodes`; false where no call was found.
  Expected<bool> Expand(std::vector<NodeProto>* nodes) {
    std::vector<NodeProto> out;
    bool found = false;
    for (NodeProto& node : *nodes) {
      const FunctionProto* callee = functions_.Callee(node);
      if (!callee) {
        TN_ASSIGN_OR_RETURN(const bool inside, ExpandInside(&node));
        found |= inside;
        out.push_back(std::move(node));
      } else {
        found = true;
        TN_RETURN_IF_ERROR(Call(*callee, node, &out));
      }
      if (out.size() + nested_ > max_nodes_) return TooManyNodes(max_nodes_);
    }
    *nodes = std::move(out);
    return found;
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

  const Functions& functions_;
  const size_t max_nodes_;
  std::deque<std::string>* names_;
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
  Functions functions(*model);
  const auto told = [&](std::vector<Diagnostic> errors) {
    for (Diagnostic& d : errors) {
      d.loc.file = file;
      if (d.loc.item.empty()) d.loc.item = "functions";
    }
    return errors;
  };
  if (Status checked = functions.CheckExpansion(*model, max_nodes); !checked)
    return told(std::move(checked.errors()));
  Inliner inliner(functions, max_nodes, names);
  for (bool goes_on = true; goes_on;) {
    Expected<bool> found = inliner.Expand(&model->graph.nodes);
    if (!found) return told(std::move(found.errors()));
    goes_on = *found;
  }
  return Ok();
}

}  // namespace tenon::onnx
