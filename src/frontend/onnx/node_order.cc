#include "frontend/onnx/node_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "graph/graph.h"
#include "support/strings.h"

namespace tenon::onnx {

using graph::Quoted;

std::string DescribeNode(const NodeProto& node, size_t index) {
  const std::string op =
      node.op_type.empty() ? "no operator" : std::string(node.op_type.substr(0, 64));
  if (!node.name.empty()) return fmt::format("node {} ({})", Quoted(node.name), op);
  for (std::string_view output : node.outputs) {
    if (!output.empty()) return fmt::format("node of {} ({})", Quoted(output), op);
  }
  return fmt::format("node {} ({})", index, op);
}

std::string AskerOf(const NodeProto& node, size_t index) {
  constexpr size_t kMost = 4;
  std::vector<std::string> names;
  for (std::string_view input : node.inputs) {
    std::string name = Quoted(input);
    if (!input.empty() && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  if (names.size() > kMost) {
    names.resize(kMost);
    names.emplace_back("others");
  }
  const std::string last = names.empty() ? "" : names.back();
  if (!names.empty()) names.pop_back();
  return fmt::format("{} needs{}{}{}{}", DescribeNode(node, index), last.empty() ? "" : " of ",
                     Join(names, ", "), names.empty() ? "" : " and ", last);
}

namespace {

bool ReadsName(const NodeProto& node, std::string_view name) {
  const auto is_in = [&](const std::vector<std::string_view>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return is_in(node.inputs) ||
         std::any_of(node.attributes.begin(), node.attributes.end(), [&](const AttributeProto& a) {
           return std::any_of(a.graph.begin(), a.graph.end(),
                              [&](const GraphProto& g) { return is_in(OuterNames(g)); });
         });
}

// The node that reads a name from around the graphs that it is in: this one, or one in its
// attributes.
std::string DescribeReader(const NodeProto& node, size_t index, std::string_view name) {
  if (std::find(node.inputs.begin(), node.inputs.end(), name) != node.inputs.end())
    return DescribeNode(node, index);
  for (const AttributeProto& a : node.attributes) {
    for (const GraphProto& g : a.graph) {
      const std::vector<std::string_view> outer = OuterNames(g);
      if (std::find(outer.begin(), outer.end(), name) == outer.end()) continue;
      for (size_t n = 0; n < g.nodes.size(); ++n) {
        if (ReadsName(g.nodes[n], name)) return DescribeReader(g.nodes[n], n, name);
      }
    }
  }
  return DescribeNode(node, index);
}

constexpr size_t kMostErrors = 20;
constexpr size_t kOutside = SIZE_MAX;  // defined by an input or initializer

// The names of one graph, and an order of its nodes. While nodes are ordered waiting_[n] counts the
// reads of node n that are not there yet; what is above 0 in the end lies on a cycle, or behind
// one.
class Resolver {
 public:
  Resolver(const GraphProto& graph, const std::string& file,
           const std::function<bool(std::string_view)>& outer)
      : graph_(graph), file_(file), outer_(outer) {}

  Expected<std::vector<size_t>> Run() {
    DefineAll();
    FindUses();
    if (!errors_.empty()) return std::move(errors_);
    std::vector<size_t> order = Sort();
    if (order.size() < graph_.nodes.size()) return Cycle();
    return order;
  }

 private:
  void Report(std::string item, std::string message) {
    if (errors_.size() < kMostErrors)
      errors_.push_back(MakeError(std::move(message), {.file = file_, .item = std::move(item)}));
  }

  void DefineAll() {
    for (const TensorProto& t : graph_.initializers) {
      if (t.name.empty()) Report("initializer", "expected a name, but it has none");
      if (!t.name.empty() && !defined_.emplace(t.name, kOutside).second)
        Report("initializer " + Quoted(t.name), "the tensor is defined twice");
    }
    std::unordered_map<std::string_view, bool> inputs;
    for (const ValueInfoProto& i : graph_.inputs) {
      if (i.name.empty()) Report("input", "expected a name, but it has none");
      if (!inputs.emplace(i.name, true).second)
        Report("input " + Quoted(i.name), "the input is declared twice");
      defined_.emplace(i.name, kOutside);  // an initializer of that name gives its default
    }
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (std::string_view output : graph_.nodes[n].outputs) {
        if (!output.empty() && !defined_.emplace(output, n).second) {
          Report(DescribeNode(graph_.nodes[n], n),
                 fmt::format("output {} is defined twice", Quoted(output)));
        }
      }
    }
  }

  void FindUses() {
    readers_.resize(graph_.nodes.size());
    waiting_.resize(graph_.nodes.size(), 0);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      std::vector<std::string_view> read = graph_.nodes[n].inputs;
      for (const AttributeProto& a : graph_.nodes[n].attributes) {
        for (const GraphProto& g : a.graph) {
          const std::vector<std::string_view> names = OuterNames(g);
          read.insert(read.end(), names.begin(), names.end());
        }
      }
      for (std::string_view input : read) {
        if (input.empty()) continue;
        auto it = defined_.find(input);
        if (it == defined_.end()) {
          if (outer_ && outer_(input)) continue;
          Report(DescribeReader(graph_.nodes[n], n, input),
                 fmt::format("input {} is defined by no node, initializer or graph input",
                             Quoted(input)));
        } else if (it->second != kOutside) {
          readers_[it->second].push_back(n);
          ++waiting_[n];
        }
      }
    }
    // One value may be several outputs: a state that a scan carries and collects.
    for (const ValueInfoProto& o : graph_.outputs) {
      if (o.name.empty() || (!defined_.contains(o.name) && !(outer_ && outer_(o.name))))
        Report("output " + Quoted(o.name), "no node produces it");
    }
  }

  // Kahn's algorithm, lowest ready index first: a sorted file keeps its order.
  std::vector<size_t> Sort() {
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t n = 0; n < waiting_.size(); ++n) {
      if (waiting_[n] == 0) ready.push(n);
    }
    std::vector<size_t> order;
    while (!ready.empty()) {
      const size_t n = ready.top();
      ready.pop();
      order.push_back(n);
      for (size_t reader : readers_[n]) {
        if (--waiting_[reader] == 0) ready.push(reader);
      }
    }
    return order;
  }

  Diagnostic Cycle() const {
    Diagnostic d = MakeError(
        "expected an acyclic graph, but these nodes depend on themselves or on such nodes",
        {.file = file_, .item = "graph"});
    for (size_t n = 0; n < waiting_.size() && d.notes.size() < 10; ++n) {
      if (waiting_[n] > 0) d.notes.push_back(DescribeNode(graph_.nodes[n], n));
    }
    return d;
  }

  const GraphProto& graph_;
  const std::string& file_;
  const std::function<bool(std::string_view)>& outer_;
  std::unordered_map<std::string_view, size_t> defined_;  // by which node
  std::vector<std::vector<size_t>> readers_;
  std::vector<size_t> waiting_;
  Diagnostics errors_;
};

}  // namespace

std::vector<std::string_view> OuterNames(const GraphProto& graph) {
  std::unordered_map<std::string_view, bool> known;  // true: defined here, false: read from outside
  for (const TensorProto& t : graph.initializers) known[t.name] = true;
  for (const ValueInfoProto& i : graph.inputs) known[i.name] = true;
  for (const NodeProto& node : graph.nodes) {
    for (std::string_view output : node.outputs) known[output] = true;
  }
  std::vector<std::string_view> outer;
  auto read = [&](std::string_view name) {
    if (!name.empty() && known.emplace(name, false).second) outer.push_back(name);
  };
  for (const NodeProto& node : graph.nodes) {
    for (std::string_view input : node.inputs) read(input);
    for (const AttributeProto& a : node.attributes) {
      for (const GraphProto& g : a.graph) {  // no deeper than ReadLimits::max_depth
        for (std::string_view name : OuterNames(g)) read(name);
      }
    }
  }
  for (const ValueInfoProto& o : graph.outputs) read(o.name);
  return outer;
}

Expected<std::vector<size_t>> OrderNodes(const GraphProto& graph, const std::string& file,
                                         const std::function<bool(std::string_view)>& outer) {
  return Resolver(graph, file, outer).Run();
}

}  // namespace tenon::onnx
