// Ways through a network that only the call can choose between: kernels are made for a rank, so
// where a tensor's rank, or the length of a vector that tells a shape, is not known before, all
// that is left to do of the graph is planned once for each that it may be.
//
//   y = Reshape(x, s)     =>   by length of s: 1: part 0 (y of one axis), 2: part 1 (of two), …
#include <fmt/format.h>

#include "frontend/onnx/program_importer.h"

namespace tenon::onnx {

std::string_view ProgramImporter::WithoutKnownRank(const std::vector<const NodeProto*>& nodes,
                                                   const Names& names) {
  for (const NodeProto* n : nodes) {
    for (std::string_view name : ReadsOf(*n)) {
      const Named* named = names.Find(name);
      if (named && named->slot != kNoSlot && named->type.IsTensor() && !named->type.has_rank)
        return name;
    }
  }
  return {};
}

namespace {

// The input whose length decides the rank of the result: a vector of one size for each axis, or of
// the axes that go or come; or "".
std::string_view RankInputOf(const NodeProto& n) {
  if (!n.domain.empty() && n.domain != "ai.onnx") return {};
  static const std::set<std::string_view> kSecond = {"Reshape", "Expand", "Squeeze", "Unsqueeze"};
  const AttributeProto* keeps = FindAttribute(n, "keepdims");
  const bool reduces = n.op_type.starts_with("Reduce") && keeps && keeps->i == 0;
  const bool is_first = n.op_type == "ConstantOfShape";
  if (!is_first && !reduces && !kSecond.contains(n.op_type)) return {};
  const size_t i = is_first ? 0 : 1;
  return i < n.inputs.size() ? n.inputs[i] : std::string_view();
}

// Nodes of the list by which the value is made, in its order.
std::vector<const NodeProto*> MakersOf(std::string_view value,
                                       const std::vector<const NodeProto*>& nodes) {
  std::set<std::string_view> wanted = {value};
  std::vector<const NodeProto*> makers;
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const NodeProto& n = **it;
    if (std::none_of(n.outputs.begin(), n.outputs.end(),
                     [&](std::string_view output) { return wanted.contains(output); }))
      continue;
    makers.push_back(&n);
    for (std::string_view name : ReadsOf(n)) wanted.insert(name);
  }
  std::reverse(makers.begin(), makers.end());
  return makers;
}

bool IsVectorOfUnknownLength(const Named& named) {
  return named.slot != kNoSlot && named.type.IsTensor() && named.type.has_rank &&
         named.type.elem_type == static_cast<int32_t>(ElemType::kInt64) &&
         named.type.dims.size() == 1 && named.type.dims[0].value < 0;
}

}  // namespace

// What makes such a vector may be among the nodes. Then it is planned by itself, on trial: its type
// says whether the length is known.
std::optional<ProgramImporter::Vector> ProgramImporter::WithoutKnownLength(
    const std::vector<const NodeProto*>& nodes, const Frame& frame) {
  std::set<std::string_view> seen;
  for (const NodeProto* n : nodes) {
    const std::string_view name = RankInputOf(*n);
    if (name.empty() || !seen.insert(name).second) continue;
    std::vector<const NodeProto*> makers = MakersOf(name, nodes);
    if (makers.empty()) {
      const Named* named = frame.names.Find(name);
      if (named && IsVectorOfUnknownLength(*named)) return Vector{name, {}};
      continue;
    }
    const size_t parts = program_.parts.size();
    std::vector<graph::Step> steps;
    Frame trial{&steps, {&frame.names}};
    const Status planned = PlanPart(makers, {name}, &trial);
    program_.parts.resize(parts);
    if (planned && IsVectorOfUnknownLength(*trial.names.Find(name)))
      return Vector{name, std::move(makers)};
  }
  return std::nullopt;
}

// The vector's makers become a part of their own, which comes first.
Status ProgramImporter::PlanMakers(const Vector& vector, Unplanned* all, Frame* frame) {
  if (vector.makers.empty()) return Ok();
  std::vector<const NodeProto*>& left = all->nodes;
  std::erase_if(left, [&](const NodeProto* n) {
    return std::find(vector.makers.begin(), vector.makers.end(), n) != vector.makers.end();
  });
  std::set<std::string_view> read = {vector.name}, wanted;
  for (const NodeProto* n : left) {
    for (std::string_view name : ReadsOf(*n)) read.insert(name);
  }
  for (const ValueInfoProto& output : all->graph.outputs) read.insert(output.name);
  for (const NodeProto* n : vector.makers) {
    for (std::string_view output : n->outputs) {
      all->names.erase(output);
      if (!output.empty() && read.contains(output)) wanted.insert(output);
    }
  }
  return PlanPart(vector.makers, wanted, frame);
}

bool ProgramImporter::PlanBefore(const std::string& item,
                                 const std::vector<const NodeProto*>& nodes, Unplanned* all,
                                 Frame* frame) {
  const auto at = std::find_if(nodes.begin(), nodes.end(),
                               [&](const NodeProto* n) { return DescribeNode(*n, 0) == item; });
  if (item.empty() || at == nodes.begin() || at == nodes.end()) return false;
  std::vector<const NodeProto*> left = all->nodes;
  std::set<std::string_view> names = all->names;
  if (PlanMakers({"", {nodes.begin(), at}}, all, frame)) return true;
  all->nodes = std::move(left);
  all->names = std::move(names);
  return false;
}

// y = Squeeze(x)   =>   s = Shape(x), k = Compress(s, Not(Equal(s, 1))), y = Reshape(x, k)
bool ProgramImporter::SpellOutSqueeze(const std::vector<const NodeProto*>& nodes, Unplanned* all,
                                      Frame* frame) {
  int64_t newest = 0;
  for (const OpsetId& id : model_.opset_imports) {
    if (id.domain.empty() || id.domain == "ai.onnx") newest = id.version;
  }
  for (const NodeProto* n : nodes) {
    const int64_t opset = n->opset > 0 ? n->opset : newest;
    const bool named = n->inputs.size() != 1 || FindAttribute(*n, "axes");
    if (n->op_type != "Squeeze" || !n->domain.empty() || named || n->outputs.size() != 1) continue;
    const std::string_view x = n->inputs[0];
    const std::vector<const NodeProto*> makers = MakersOf(x, nodes);
    std::vector<graph::Step> steps;
    Frame trial{&steps, {&frame->names}};
    const size_t parts = program_.parts.size();
    const bool planned = makers.empty() || PlanPart(makers, {x}, &trial);
    program_.parts.resize(parts);
    const Named* named_x = planned ? trial.names.Find(x) : nullptr;
    if (!named_x || !named_x->type.has_rank) continue;
    int64_t least = 0, open = 0;
    for (const KnownSize& d : named_x->type.dims) {
      open += d.value < 0;
      least += d.value >= 0 && d.value != 1;
    }
    if (open == 0) continue;
    const At at{*n, *frame};
    const std::string_view sizes = NameFor(at, "sizes"), one = VectorOf(at, 1),
                           gone = NameFor(at, "gone"), stays = NameFor(at, "stays"),
                           left = NameFor(at, "left");
    for (int64_t k = 0; k <= open; ++k) lengths_[left].push_back(least + k);
    NodeProto reshape = NodeOf("Reshape", {x, left}, n->outputs[0]);
    reshape.name = n->name;
    if (opset >= 14) reshape.attributes.push_back(IntAttr("allowzero", 1));
    const auto place = std::find(all->nodes.begin(), all->nodes.end(), n);
    const auto rest = all->nodes.insert(all->nodes.erase(place), 5, nullptr);
    NodeProto made[] = {NodeOf("Shape", {x}, sizes), NodeOf("Equal", {sizes, one}, gone),
                        NodeOf("Not", {gone}, stays),
                        NodeOf("Compress", {sizes, stays}, left, {IntAttr("axis", 0)}), reshape};
    for (size_t i = 0; i < std::size(made); ++i) {
      made[i].opset = n->opset;
      nodes_.push_back(std::move(made[i]));
      rest[static_cast<ptrdiff_t>(i)] = &nodes_.back();
      all->names.insert(nodes_.back().outputs[0]);
    }
    return true;
  }
  return false;
}

// Inputs whose rank nobody tells are of these, too.
bool HasRanksOfCalls(const GraphProto& g, const ImportOptions& options) {
  std::set<std::string_view> constants;
  for (const TensorProto& t : g.initializers) constants.insert(t.name);
  for (const NodeProto& n : g.nodes) {
    if (n.op_type == "Constant") constants.insert(n.outputs.begin(), n.outputs.end());
  }
  for (const ValueInfoProto& input : g.inputs) {
    if (input.kind == ValueInfoProto::Kind::kTensor && !input.has_shape &&
        !constants.contains(input.name) && !options.shapes.contains(std::string(input.name)))
      return true;
  }
  return std::any_of(g.nodes.begin(), g.nodes.end(), [&](const NodeProto& n) {
    const std::string_view vector = RankInputOf(n);
    return !vector.empty() && !constants.contains(vector);
  });
}

ProgramImporter::Ways ProgramImporter::ByRank(std::string_view name, const Names& names) const {
  const ValueType& type = names.Find(name)->type;
  Ways ways{name, TN_STEP_BY_RANK, type.ranks, {}};
  if (ways.numbers.empty()) ways.numbers = {0, 1, 2, 3, 4, 5};
  ways.type = [elements = type.elem_type](int64_t rank) {
    return ValueType::Tensor(elements, std::vector<KnownSize>(static_cast<size_t>(rank)));
  };
  return ways;
}

ProgramImporter::Ways ProgramImporter::ByLength(std::string_view name, const Names& names) const {
  Ways ways{name, TN_STEP_BY_LENGTH, {0, 1, 2, 3, 4, 5, 6}, {}};
  if (const auto known = lengths_.find(name); known != lengths_.end()) ways.numbers = known->second;
  ways.type = [elements = names.Find(name)->type.elem_type](int64_t length) {
    return ValueType::Tensor(elements, {{length, ""}});
  };
  return ways;
}

// The call takes the way that fits. One that cannot be gone is an error of the call, or of the
// model where it is so with all.
Expected<std::vector<Named>> ProgramImporter::PlanWays(const Ways& ways, const Unplanned& rest,
                                                       Frame* frame) {
  constexpr int kMostWays = 512;
  const Named value = *frame->names.Find(ways.name);
  if (++depth_ > graph::Limits::kRegionDepth)
    return MakeLimitError(fmt::format("graphs nested deeper than {}", graph::Limits::kRegionDepth));
  graph::Step step{ways.operation, {value.slot}, {}, {NumberOf(ways.name)}, {}};
  std::vector<Named> outputs;
  Diagnostics why;
  for (int64_t number : ways.numbers) {
    if (++ways_ > kMostWays) {
      return MakeLimitError(fmt::format(
          "expected tensors of known ranks, but there are more than {} ways through the network",
          kMostWays));
    }
    const size_t parts = program_.parts.size();
    const int depth = depth_;
    graph::StepBody body;
    Frame inner{&body.steps, {&frame->names}};
    Named& here = inner.names.here[ways.name] = value;
    here.type = ways.type(number);
    Expected<std::vector<Named>> planned = PlanNodes(rest, &inner);
    Status fits = planned ? Ok() : Status(planned.errors());
    for (size_t i = 0; fits && i < planned->size(); ++i) {
      body.outputs.push_back((*planned)[i].slot);
      if (outputs.size() < planned->size()) {
        outputs.push_back({(*planned)[i].type, program_.slots++});
        continue;
      }
      Expected<ValueType> common = CommonType(outputs[i].type, (*planned)[i].type);
      if (common)
        outputs[i].type = std::move(*common);
      else
        fits = std::move(common.errors());
    }
    if (!fits) {
      program_.parts.resize(parts);
      depth_ = depth;
      if (why.empty()) why = fits.errors();
      continue;
    }
    step.numbers.push_back(static_cast<int32_t>(number));
    step.bodies.push_back(std::move(body));
  }
  --depth_;
  if (step.bodies.empty()) return why;
  for (const Named& output : outputs) step.outputs.push_back(output.slot);
  frame->steps->push_back(std::move(step));
  return outputs;
}

}  // namespace tenon::onnx
