// Spaces are enumerated and priced as planning does it (ops/algorithm.h, plan/prices.h), then
// sorted.
//
// A point is put on a node by an edit around it. What the algorithm wants of an operand's layout is
// met by the operand, by what it is itself a copy of, or by a new copy. A result that is wanted in
// another layout keeps its name and changes its type; relayouts that read it read it still, and
// whoever else did reads a copy in the old layout:
//
//   %2 = conv(%0, %1) "c" ; %3 = relu(%2)
//
// becomes, with "c: direct_conv {input_block: 8, nv: 1, …}",
//
//   %4 layout (…, d1 / 8, …, d1 % 8) = reshape(%0) ; %5 layout (d0 / 8, …) = reshape(%1)
//   %2 layout (…, d1 / 8, …, d1 % 8) = conv(%4, %5) "c" plan "direct_conv" …
//   %6 = reshape(%2) ; %3 = relu(%6)
//
// Where the relu is then given blocks too, it reads %2, and %6 is gone: nothing reads it.
#include "plan/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "graph/edit.h"
#include "graph/text.h"
#include "ir/print.h"
#include "plan/prices.h"
#include "plan/records.h"
#include "plan/region.h"
#include "plan/relayout.h"
#include "support/strings.h"

namespace tenon::plan {

using graph::Graph;
using graph::GraphPassContext;
using graph::Group;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using ops::Want;

// ---- Names ----

std::string NamedPoint::ToString() const {
  return fmt::format("{}: {} {}", node, algorithm, graph::ChoicesText(choices));
}

namespace {

Diagnostic BadPoint(std::string_view text) {
  return MakeError(fmt::format("expected 'NODE: algorithm {{knob: value, …}}', but got {}",
                               graph::Quoted(text)));
}

Expected<ops::Point> ParseChoices(std::string_view list, std::string_view whole) {
  ops::Point choices;
  if (Trim(list).empty()) return choices;
  for (const std::string& part : Split(list, ',')) {
    const size_t colon = part.find(':');
    if (colon == std::string::npos) return BadPoint(whole);
    const std::string name(Trim(std::string_view(part).substr(0, colon)));
    const std::string_view number = Trim(std::string_view(part).substr(colon + 1));
    int64_t value = 0;
    const auto [end, fault] = std::from_chars(number.begin(), number.end(), value);
    if (name.empty() || fault != std::errc() || end != number.end()) return BadPoint(whole);
    for (const graph::Choice& c : choices) {
      if (c.name == name) return MakeError(fmt::format("the knob '{}' is given twice", name));
    }
    choices.push_back({name, value});
  }
  return choices;
}

}  // namespace

// Names of nodes may hold anything, also colons: the last one in front of the choices counts.
Expected<NamedPoint> NamedPoint::Parse(std::string_view text) {
  NamedPoint out;
  std::string_view front = Trim(text);
  if (front.ends_with('}')) {
    const size_t open = front.rfind('{');
    if (open == std::string_view::npos) return BadPoint(text);
    TN_ASSIGN_OR_RETURN(out.choices,
                        ParseChoices(front.substr(open + 1, front.size() - open - 2), text));
    front = Trim(front.substr(0, open));
  }
  const size_t colon = front.rfind(':');
  if (colon == std::string_view::npos) return BadPoint(text);
  if (front.find_first_of("{}", colon) != std::string_view::npos) return BadPoint(text);
  out.node = Trim(front.substr(0, colon));
  out.algorithm = Trim(front.substr(colon + 1));
  if (out.node.empty() || out.algorithm.empty()) return BadPoint(text);
  return out;
}

static std::string Numbered(const Graph& g, NodeId node) {
  const ValueId first = g.node(node).outputs.at(0);
  return fmt::format("%{}", graph::TextNumbers(g)[static_cast<size_t>(first)]);
}

std::string NameOf(const Graph& g, NodeId node) {
  const std::string& name = g.node(node).name;
  const std::vector<NodeId> all = graph::KernelNodes(g);
  const bool alone =
      std::count_if(all.begin(), all.end(), [&](NodeId n) { return g.node(n).name == name; }) == 1;
  return alone && !name.empty() ? name : Numbered(g, node);
}

Expected<NodeId> FindKernel(const Graph& g, std::string_view name) {
  const std::vector<NodeId> all = graph::KernelNodes(g);
  const std::vector<int64_t> numbers = graph::TextNumbers(g);
  std::vector<NodeId> by_node, by_value;
  std::vector<std::string> names;
  for (NodeId n : all) {
    const Node& node = g.node(n);
    names.push_back(NameOf(g, n));
    if (node.name == name) by_node.push_back(n);
    for (ValueId v : node.outputs) {
      if (name == fmt::format("%{}", numbers[static_cast<size_t>(v)])) return n;
      if (g.value(v).name == name) by_value.push_back(n);
    }
  }
  for (const auto& found : {by_node, by_value}) {
    if (found.size() == 1) return found[0];
  }
  const bool several = by_node.size() > 1 || by_value.size() > 1;
  return MakeError(
      fmt::format("{} {}; there {}", several ? "several kernels are named" : "no kernel is named",
                  graph::Quoted(name), names.empty() ? "are none" : "are " + Join(names, ", ")));
}

// ---- Spaces ----

std::vector<AlgorithmSpace> SpacesOf(const Graph& g, NodeId node, const GraphPassContext& context) {
  const Group group = graph::GroupOf(g, node);
  const ops::Site site{group.region, group.anchor, *context.machine};
  std::vector<AlgorithmSpace> out;
  for (const ops::Algorithm* a : ops::Algorithms()) {
    if (!ops::Applies(*a, site)) continue;
    AlgorithmSpace s{a, a->space(site), {}};
    s.space.ForEach([&](const ops::Point& point) {
      s.points.push_back({point, PriceOf(context.prices, *a, site, point)});
    });
    std::stable_sort(s.points.begin(), s.points.end(),
                     [](const auto& x, const auto& y) { return x.seconds < y.seconds; });
    out.push_back(std::move(s));
  }
  return out;
}

namespace {

std::string What(const Graph& g, NodeId node) {
  const Group group = graph::GroupOf(g, node);
  return group.anchor == graph::kNoNode ? "elementwise"
                                        : graph::Name(group.region.node(group.anchor).op);
}

struct Line {
  double seconds;
  std::string text;
};

}  // namespace

std::string SpacesText(const Graph& g, const std::vector<NodeId>& nodes,
                       const GraphPassContext& context, bool prices) {
  std::string out;
  for (NodeId n : nodes) {
    const std::string name = NameOf(g, n);
    out += fmt::format("{} ({})\n", name, What(g, n));
    std::vector<Line> lines;
    for (const AlgorithmSpace& s : SpacesOf(g, n, context)) {
      out += fmt::format("  {}: {} {}\n", s.algorithm->name, s.points.size(),
                         s.points.size() == 1 ? "point" : "points");
      for (const std::string& line : Split(s.space.ToString(), '\n')) {
        if (!line.empty()) out += "    " + line + "\n";
      }
      for (const auto& p : s.points) {
        lines.push_back({p.seconds, NamedPoint{name, s.algorithm->name, p.point}.ToString()});
      }
    }
    if (!prices) continue;
    std::stable_sort(lines.begin(), lines.end(),
                     [](const Line& x, const Line& y) { return x.seconds < y.seconds; });
    out += "  by price:\n";
    for (const Line& line : lines)
      out += fmt::format("    {:.3g} s  {}\n", line.seconds, line.text);
  }
  return out;
}

std::string SpacesJson(const Graph& g, const std::vector<NodeId>& nodes,
                       const GraphPassContext& context, bool prices) {
  using Json = nlohmann::ordered_json;
  Json all = Json::array();
  for (NodeId n : nodes) {
    Json algorithms = Json::array();
    for (const AlgorithmSpace& s : SpacesOf(g, n, context)) {
      Json knobs = Json::array(), constraints = Json::array(), points = Json::array();
      for (const ops::Knob& k : s.space.knobs()) {
        knobs.push_back({{"name", k.name},
                         {"domain", k.domain},
                         {"in_layout", k.in_layout},
                         {"structural", k.structural}});
      }
      for (const Expr& c : s.space.constraints()) constraints.push_back(ToString(c));
      for (const auto& p : s.points) {
        Json choices = Json::object();
        for (const graph::Choice& c : p.point) choices[c.name] = c.value;
        points.push_back({{"seconds", p.seconds}, {"choices", choices}});
      }
      Json row = {{"algorithm", s.algorithm->name},
                  {"size", s.points.size()},
                  {"knobs", knobs},
                  {"constraints", constraints}};
      if (prices) row["points"] = points;
      algorithms.push_back(std::move(row));
    }
    Json row = {{"node", NameOf(g, n)}, {"kind", What(g, n)}};
    // What lines of --prices name it by.
    if (prices) {
      row["machine"] = context.machine->Hash().ToHex();
      row["group"] = Records::GroupKey(graph::GroupOf(g, n).region);
    }
    row["algorithms"] = std::move(algorithms);
    all.push_back(std::move(row));
  }
  return all.dump(1) + "\n";
}

// ---- A point of one's own ----

namespace {

// The result v of a node becomes a value in the wanted layout. Whoever reads it gets it back as it
// was, but for relayouts, which read any layout; those that are none any more are gone.
void StoreAs(Graph* g, ValueId v, const Layout& layout, graph::Relayouts* relayouts) {
  const Layout before = g->type(v).layout;
  g->value(v).type.tensor().layout = layout;
  std::vector<NodeId> readers;
  for (size_t n = 0; n < g->nodes.size(); ++n) {
    const std::vector<ValueId>& in = g->nodes[n].inputs;
    if (std::find(in.begin(), in.end(), v) != in.end()) readers.push_back(static_cast<NodeId>(n));
  }
  const bool is_output = std::find(g->outputs.begin(), g->outputs.end(), v) != g->outputs.end();
  for (NodeId n : readers) {
    if (!IsRelayout(*g, g->node(n))) {
      const ValueId back = relayouts->Of(v, before);
      for (ValueId& in : g->node(n).inputs) in = in == v ? back : in;
    } else if (g->type(g->node(n).outputs[0]) == g->type(v)) {
      graph::ReplaceAllUses(*g, g->node(n).outputs[0], v);
    }
  }
  if (!is_output) return;
  const ValueId back = relayouts->Of(v, before);
  for (ValueId& out : g->outputs) out = out == v ? back : out;
}

}  // namespace

Expected<PlannedNode> WithPoint(const Graph& g, const NamedPoint& named,
                                const GraphPassContext& context) {
  TN_ASSIGN_OR_RETURN(const NodeId node, FindKernel(g, named.node));
  const Group group = graph::GroupOf(g, node);
  const ops::Site site{group.region, group.anchor, *context.machine};
  const ops::Algorithm* algorithm = ops::FindAlgorithm(named.algorithm);
  if (!algorithm || !ops::Applies(*algorithm, site)) {
    std::vector<std::string> names;
    for (const ops::Algorithm* a : ops::Algorithms()) {
      if (ops::Applies(*a, site)) names.emplace_back(a->name);
    }
    return MakeError(fmt::format(
        "{}: {}; it can be computed by {}", Describe(g, node),
        algorithm ? fmt::format("the algorithm '{}' does not apply", named.algorithm)
                  : fmt::format("there is no algorithm {}", graph::Quoted(named.algorithm)),
        Join(names, ", ")));
  }
  const ops::Space space = algorithm->space(site);
  Expected<ops::Point> point = space.PointOf(named.choices);
  if (!point) {
    return MakeError(
        fmt::format("{}: {}: {}", Describe(g, node), algorithm->name, point.errors()[0].message));
  }
  const auto wants = ops::WantsOf(*algorithm, site, *point);
  if (!wants) {
    return MakeError(fmt::format("{}: {} wants cells around a value that is computed in this node",
                                 Describe(g, node), algorithm->name));
  }
  Graph out = g;
  graph::Relayouts relayouts(&out, *context.machine);
  std::vector<ValueId> operands = group.operands;
  const std::vector<ValueId> results = g.node(node).outputs;
  for (const Want& want : *wants) {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (group.region.inputs[i] == want.value) operands[i] = relayouts.Meeting(operands[i], want);
    }
    const ValueId outer = group.OuterOf(g, want.value);
    if (std::find(results.begin(), results.end(), outer) == results.end()) continue;
    const std::vector<Expr>& dims = out.type(outer).dims;
    const auto stored = graph::ReadLayout(out.type(outer).layout, dims);
    if (!stored || !want.IsMetBy(*stored, dims))
      StoreAs(&out, outer, graph::MakeLayout(want.desc, dims), &relayouts);
  }
  const double seconds = PriceOf(context.prices, *algorithm, site, *point);
  ApplyPlan(&out, group, operands, ops::MakePlan(*algorithm, space, *point, seconds));
  graph::TopologicalSort(out);
  const std::vector<ValueId> now = graph::Compact(out);
  const NodeId planned = out.value(now[static_cast<size_t>(results[0])]).producer;
  return PlannedNode{std::move(out), planned};
}

}  // namespace tenon::plan
