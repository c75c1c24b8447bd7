#include "tune/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "graph/dims.h"
#include "graph/lower/lower_group.h"
#include "graph/pass/constants.h"
#include "graph/storage_desc.h"
#include "graph/text.h"
#include "ir/visit.h"
#include "measure/elements.h"
#include "plan/region.h"
#include "plan/relayout.h"
#include "plan/space.h"
#include "support/check.h"
#include "support/hash.h"
#include "support/strings.h"

namespace tenon::tune {

namespace {

using graph::Graph;
using graph::Group;
using graph::NodeId;
using graph::TensorType;
using graph::ValueId;

// Points beyond so many are the dearest; nobody asks for them.
constexpr size_t kMostCandidates = 4096;
// Copies of a weight that calls take turns with.
constexpr int64_t kMostCopies = 16;

// The region without names, layouts and plans: what two kernels of one task share.
Graph Anonymous(const Graph& region) {
  Graph out = region;
  for (graph::Value& v : out.values) {
    v.name.clear();
    if (v.type.IsTensor()) v.type.tensor().layout = nullptr;
  }
  for (graph::Node& n : out.nodes) {
    n.name.clear();
    n.plan = nullptr;
  }
  for (size_t i = 0; i < out.inputs.size(); ++i)
    out.value(out.inputs[i]).name = fmt::format("x{}", i);
  for (size_t k = 0; k < out.output_names.size(); ++k) out.output_names[k] = fmt::format("y{}", k);
  return out;
}

ValueId KeptApart(Graph* g, ValueId v, const std::string& name) {
  graph::Node n;
  n.op = graph::OpKind::kReshape;
  n.name = name;
  n.inputs = {v};
  n.exprs["shape"] = g->type(v).dims;
  return g->node(g->AddNode(std::move(n), {g->type(v)})).outputs[0];
}

Graph Standalone(const Graph& region) {
  Graph g;
  g.name = kFunction;
  g.dims = region.dims;
  graph::Node fused;
  fused.op = graph::OpKind::kFused;
  fused.name = kFunction;
  for (size_t i = 0; i < region.inputs.size(); ++i) {
    const ValueId in = g.AddInput(fmt::format("x{}", i), region.type(region.inputs[i]));
    fused.inputs.push_back(KeptApart(&g, in, fmt::format("operand{}", i)));
  }
  graph::Types types;
  for (ValueId v : region.outputs) types.emplace_back(region.type(v));
  fused.regions = {std::make_shared<const Graph>(region)};
  const std::vector<ValueId> results = g.node(g.AddNode(std::move(fused), types)).outputs;
  for (size_t k = 0; k < results.size(); ++k)
    g.AddOutput(fmt::format("y{}", k), KeptApart(&g, results[k], fmt::format("result{}", k)));
  return g;
}

// Integers that may be places in a tensor are kept below its shortest axis; 0: the region has none.
int64_t PlaceLimit(const Graph& region) {
  int64_t limit = 0;
  for (const graph::Node& n : region.nodes) {
    using graph::OpKind;
    const bool reads_places = n.op == OpKind::kGather || n.op == OpKind::kGatherElements ||
                              n.op == OpKind::kGatherNd || n.op == OpKind::kScatter;
    if (!reads_places) continue;
    for (const int64_t d : region.type(n.inputs[0]).StaticDims().value_or(std::vector<int64_t>{1}))
      limit = limit == 0 ? std::max<int64_t>(d, 1) : std::min(limit, std::max<int64_t>(d, 1));
  }
  return limit;
}

// "" or why a region's operands cannot be made by the one who measures. `open`: with its dims.
std::string Unmeasurable(const Graph& open, const Graph& region) {
  for (const size_t d : plan::OpenDims(open)) {
    const VarNode* var = open.dims[d].var.get();
    const bool told = std::any_of(open.inputs.begin(), open.inputs.end(), [&](ValueId v) {
      const std::vector<Expr>& dims = open.type(v).dims;
      return std::any_of(dims.begin(), dims.end(),
                         [&](const Expr& e) { return As<VarNode>(e) == var; });
    });
    if (!told) return fmt::format("its operands do not tell {}", var->name);
  }
  for (const std::vector<ValueId>& border : {region.inputs, region.outputs}) {
    for (ValueId v : border) {
      if (!region.IsTensor(v) || !region.type(v).StaticDims()) return "its sizes are open";
      const std::string dtype = LongName(region.type(v).dtype);
      if (!measure::FindElementType(dtype)) return "elements of " + dtype + " are not measured";
    }
  }
  return "";
}

// Which of the values at the region's border lie in blocks, or in another order than row-major.
std::string LayoutOf(const ops::Algorithm& algorithm, const ops::Site& site, const ops::Point& p,
                     const std::vector<bool>& weights) {
  std::string out;
  for (const ops::Want& w : ops::WantsOf(algorithm, site, p).value_or(std::vector<ops::Want>())) {
    const auto& inputs = site.region.inputs;
    const auto place =
        static_cast<size_t>(std::find(inputs.begin(), inputs.end(), w.value) - inputs.begin());
    const bool is_result = place == inputs.size();
    if (!is_result && weights[place]) continue;
    const bool plain = w.desc.blocks.empty() && w.desc.order.empty();
    if (!plain) out += fmt::format("{} ", w.value);
  }
  return out;
}

// The points are those of the kernel as it is; their prices those at its sizes.
void AddCandidates(Task* task, const Machine& machine) {
  const graph::GraphPassContext context{&machine};
  const NodeId node = plan::FindKernel(task->graph, kFunction).value();
  const Group group = graph::GroupOf(task->graph, node);
  const Graph region = plan::AtSizes(group.region, task->sizes);
  const ops::Site site{region, group.anchor, machine};
  size_t structures = 0;
  std::map<std::string, size_t> layouts;
  for (const plan::AlgorithmSpace& s : plan::SpacesOf(task->graph, node, context)) {
    if (s.algorithm == ops::Algorithms().back()) continue;
    std::vector<std::pair<const ops::Point*, size_t>> known;
    for (const auto& p : s.points) {
      const auto same = std::find_if(known.begin(), known.end(), [&](const auto& k) {
        return s.space.SameStructure(*k.first, p.point);
      });
      const size_t structure = same == known.end() ? structures++ : same->second;
      if (same == known.end()) known.emplace_back(&p.point, structure);
      const WorkDescription work = s.algorithm->work(site, p.point);
      const double seconds =
          task->sizes.empty() ? p.seconds : ops::PriceOf(*s.algorithm, site, p.point);
      const std::string layout = LayoutOf(*s.algorithm, site, p.point, task->weights);
      const size_t lies = layouts.emplace(layout, layouts.size()).first->second;
      task->candidates.push_back(
          {s.algorithm, p.point, seconds, FeaturesOf(work, machine), lies, structure});
    }
  }
  std::stable_sort(task->candidates.begin(), task->candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     if (a.predicted != b.predicted) return a.predicted < b.predicted;
                     return a.Trace() < b.Trace();
                   });
  if (task->candidates.size() > kMostCandidates) task->candidates.resize(kMostCandidates);
}

// The place of a plan among the candidates; the cheapest, where it is none of them.
size_t PlaceOf(const graph::Plan* planned, const VarMap& sizes,
               const std::vector<Candidate>& candidates) {
  if (!planned) return 0;
  const graph::Choices choices = plan::ChoicesAt(*planned, sizes);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& c = candidates[i];
    if (planned->algorithm != c.algorithm->name || choices.size() != c.point.size()) continue;
    const bool same = std::all_of(choices.begin(), choices.end(), [&](const graph::Choice& choice) {
      return std::find(c.point.begin(), c.point.end(), choice) != c.point.end();
    });
    if (same) return i;
  }
  return 0;
}

Task MakeTask(const Group& group, const std::vector<bool>& constant,
              const std::vector<int64_t>& sizes) {
  Task task;
  const Graph region = plan::WithOwnDims(Anonymous(group.region));
  task.sizes = plan::SizesOf(group.region, sizes);
  const Graph sized = plan::AtSizes(region, task.sizes);
  task.kernel = HashText(graph::RegionKey(sized)).ToHex();
  if (!sizes.empty()) task.open = HashText(graph::RegionKey(region)).ToHex();
  task.kind =
      group.anchor == graph::kNoNode ? "elementwise" : graph::Name(region.node(group.anchor).op);
  task.graph = Standalone(region);
  const int64_t limit = PlaceLimit(sized);
  for (size_t i = 0; i < region.inputs.size(); ++i) {
    const auto v = static_cast<size_t>(group.operands[i]);
    task.weights.push_back(v < constant.size() && constant[v]);
    task.limits.push_back(region.type(region.inputs[i]).dtype.IsInt() ? limit : 0);
  }
  return task;
}

// Of a type whose dims have these sizes.
measure::Parameter ParameterOf(const TensorType& type, const VarMap& sizes) {
  const auto number = [&](const Expr& e) {
    const std::optional<int64_t> n = AsInt(graph::SimplifyDim(Substitute(e, sizes)));
    TN_CHECK(n, "a size that is no number");
    return *n;
  };
  measure::Parameter p;
  p.dtype = LongName(type.dtype);
  for (const Expr& d : type.dims) p.dims.push_back(number(d));
  const auto desc = graph::ReadLayout(type.layout, type.dims).value();
  p.begin = desc.begin;
  p.padding = desc.padding;
  const size_t rank = p.dims.size();
  std::vector<measure::StorageTerm> terms;
  for (size_t k = 0; k < rank; ++k) {
    const auto axis =
        static_cast<int64_t>(desc.order.empty() ? static_cast<int>(k) : desc.order[k]);
    const int64_t block = desc.BlockOf(static_cast<int>(axis));
    terms.push_back({axis, block, 0, 1});
    p.shape.push_back(number(desc.Cells(type.dims, static_cast<int>(axis))) / block);
  }
  for (size_t i = 0; i < desc.blocks.size(); ++i) {
    const graph::Blocking& outer = desc.blocks[i];
    int64_t inner = 1;
    for (size_t j = i + 1; j < desc.blocks.size() && inner == 1; ++j) {
      if (desc.blocks[j].axis == outer.axis) inner = desc.blocks[j].size;
    }
    terms.push_back({outer.axis, inner, outer.size / inner, 1});
    p.shape.push_back(outer.size / inner);
  }
  int64_t stride = 1;
  for (size_t k = terms.size(); k-- > 0;) {
    terms[k].stride = stride;
    stride *= p.shape[k];
  }
  p.terms = std::move(terms);
  return p;
}

Expected<LoweredCandidate> Lower(const Task& task, const Graph& g, NodeId node,
                                 const Machine& machine, bool far_weights) {
  TN_ASSIGN_OR_RETURN(LoweredCandidate out, LowerNode(g, node, machine, task.sizes));
  const int64_t l2 = machine.memory.size() > 1 ? machine.memory[1].capacity_bytes : 0;
  for (size_t i = 0; i < task.weights.size(); ++i) {
    measure::Parameter& p = out.parameters[i];
    p.limit = task.limits[i];
    if (!far_weights || !task.weights[i]) continue;
    TN_ASSIGN_OR_RETURN(const int64_t bytes, measure::StorageBytes(p));
    p.copies = std::clamp(2 * l2 / std::max<int64_t>(bytes, 1) + 1, int64_t{1}, kMostCopies);
  }
  return out;
}

}  // namespace

std::string Candidate::Trace() const {
  return fmt::format("{} {}", algorithm->name, graph::ChoicesText(point));
}

// A kernel of open sizes has them in a line of its own: "at n=7,m=3".
constexpr std::string_view kAt = "at ";

std::string Task::Text() const {
  std::string text = graph::Print(graph);
  for (const graph::Dim& d : graph.dims) {
    const auto size = sizes.find(d.var.get());
    if (size == sizes.end()) continue;
    text += fmt::format("{}{}={}", &d == &graph.dims[0] ? kAt : ",", d.var->name,
                        AsInt(size->second).value_or(0));
  }
  return graph.dims.empty() ? text : text + "\n";
}

Expected<KernelText> KernelText::Read(const std::string& text) {
  const size_t at = text.rfind(fmt::format("\n{}", kAt));
  KernelText out;
  TN_ASSIGN_OR_RETURN(out.graph, graph::Parse(text.substr(0, at)));
  TN_ASSIGN_OR_RETURN(out.node, plan::FindKernel(out.graph, kFunction));
  if (at == std::string::npos) return out;
  TN_ASSIGN_OR_RETURN(const plan::ShapeWeight sizes,
                      plan::ShapeWeight::Parse(Trim(text.substr(at + 1 + kAt.size()))));
  for (const graph::Dim& d : out.graph.dims) {
    const auto size = sizes.sizes.find(d.var->name);
    if (size == sizes.sizes.end())
      return MakeError(fmt::format("a kernel has no size for {}", d.var->name));
    out.sizes.push_back(size->second);
  }
  return out;
}

Tasks TasksOf(const Graph& planned, const Machine& machine,
              const std::vector<plan::ShapeWeight>& shapes) {
  Tasks out;
  const std::vector<bool> constant = graph::ConstantValues(planned);
  std::map<std::string, size_t> places;
  for (NodeId n : graph::KernelNodes(planned)) {
    const Group group = graph::GroupOf(planned, n);
    const ops::Site site{group.region, group.anchor, machine};
    const bool has_space =
        std::any_of(ops::Algorithms().begin(), ops::Algorithms().end() - 1,
                    [&](const ops::Algorithm* a) { return ops::Applies(*a, site); });
    if (!has_space) continue;
    for (const plan::SizedRegion& sized : plan::AtWeightedSizes(group.region, shapes)) {
      const std::string name =
          plan::NameOf(planned, n) + (sized.name.empty() ? "" : " " + sized.name);
      if (const std::string why = Unmeasurable(group.region, sized.region); !why.empty()) {
        out.left_out.push_back(fmt::format("{}: {}", name, why));
        continue;
      }
      Task task = MakeTask(group, constant, sized.sizes);
      const auto [place, fresh] = places.emplace(task.kernel, out.tasks.size());
      if (!fresh) {
        ++out.tasks[place->second].launches;
        continue;
      }
      task.name = name;
      task.weight = sized.weight;
      AddCandidates(&task, machine);
      task.chosen = PlaceOf(planned.node(n).plan.get(), task.sizes, task.candidates);
      out.tasks.push_back(std::move(task));
    }
  }
  // What leaves nothing open stays only as long as it is counted.
  std::erase_if(out.tasks, [](const Task& t) { return t.candidates.size() < 2; });
  return out;
}

Expected<Task> TaskOf(const Graph& g, NodeId node, const Machine& machine,
                      const std::vector<int64_t>& sizes) {
  const Group group = graph::GroupOf(g, node);
  const Graph sized = plan::AtSizes(group.region, plan::SizesOf(group.region, sizes));
  if (const std::string why = Unmeasurable(group.region, sized); !why.empty())
    return MakeError(fmt::format("{} cannot be tuned: {}", plan::NameOf(g, node), why));
  Task task = MakeTask(group, graph::ConstantValues(g), sizes);
  task.name = plan::NameOf(g, node);
  AddCandidates(&task, machine);
  if (task.candidates.empty())
    return MakeError(fmt::format("{} cannot be tuned: it leaves nothing open", task.name));
  task.chosen = PlaceOf(g.node(node).plan.get(), task.sizes, task.candidates);
  return task;
}

Expected<LoweredCandidate> LowerCandidate(const Task& task, const Candidate& candidate,
                                          const Machine& machine, bool far_weights) {
  const graph::GraphPassContext context{&machine};
  TN_ASSIGN_OR_RETURN(
      const plan::PlannedNode planned,
      plan::WithPoint(task.graph, {kFunction, candidate.algorithm->name, candidate.point},
                      context));
  return Lower(task, planned.graph, planned.node, machine, far_weights);
}

Expected<LoweredCandidate> LowerNode(const Graph& planned, NodeId node, const Machine& machine,
                                     const VarMap& sizes) {
  LoweredCandidate out;
  TN_ASSIGN_OR_RETURN(out.module, graph::LowerGroup(planned, node, machine, kFunction));
  std::vector<ValueId> values = graph::GroupOf(planned, node).operands;
  const size_t operands = values.size();
  values.insert(values.end(), planned.node(node).outputs.begin(), planned.node(node).outputs.end());
  TN_CHECK(values.size() == out.module.Find(kFunction)->buffers.size(), "a kernel of {} operands",
           values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    out.parameters.push_back(ParameterOf(planned.type(values[i]), sizes));
    out.parameters.back().output = i >= operands;
  }
  return out;
}

Relayout::Relayout(const TensorType& from, const Layout& to)
    : Relayout(graph::RelayoutKernel(from, to, kFunction)) {}

Relayout::Relayout(Graph text)
    : graph(std::move(text)), kernel(HashText(graph::Print(graph)).ToHex()) {}

const ops::Algorithm& Relayout::Algorithm() { return *ops::Algorithms().back(); }

std::string Relayout::Trace() { return fmt::format("{} {{}}", Algorithm().name); }

double Relayout::Predicted(const Machine& machine) const {
  return graph::RelayoutSecondsOf(graph, graph.type(graph.inputs[0]), machine);
}

std::string Relayout::Text() const { return graph::Print(graph); }

Expected<LoweredCandidate> LowerRelayout(const Relayout& relayout, const Machine& machine) {
  TN_ASSIGN_OR_RETURN(const NodeId node, plan::FindKernel(relayout.graph, kFunction));
  return LowerNode(relayout.graph, node, machine);
}

Expected<LoweredCandidate> LowerCopy(const Relayout& relayout, const Machine& machine) {
  TensorType plain = relayout.graph.type(relayout.graph.inputs[0]);
  return LowerRelayout(Relayout(plain, nullptr), machine);
}

Expected<LoweredCandidate> LowerDefinition(const Task& task, const Machine& machine) {
  TN_ASSIGN_OR_RETURN(const NodeId node, plan::FindKernel(task.graph, kFunction));
  return Lower(task, task.graph, node, machine, false);
}

}  // namespace tenon::tune
