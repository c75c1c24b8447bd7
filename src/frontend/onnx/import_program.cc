// How a network becomes a program.
//
// Nodes are of two kinds: those on tensors, for which there are kernels, and steps on other values.
// The nodes of a graph are taken in turns: first all on tensors that can be computed from what is
// there, as one part; then all steps that can; and so on. So
//
//   s = SplitToSequence(x)          step
//   a = SequenceAt(s, 0)            step          %2 = part 0(x)         (Add)
//   y = Mul(a, Add(x, 1))      =>   part 1        ...
//
// A part is a small model: its nodes, the initializers that they read, and inputs of the types that
// are known by then. It is imported like any other, and tells the types of its results.
//
// Strings are numbers here: an initializer of strings becomes one of the numbers that the program
// gives them, whose element type is still `string`, so that the importers of operators can refuse
// to calculate with them (narrow.h).
//
// Names mean what they do in ONNX: a graph in an attribute reads those around it. Its values have
// slots of the same program, so nothing is captured. A loop's carried values must have types that
// hold for every iteration: its body is planned with those of the first, and again with what that
// and its results have in common until that stays.

#include "frontend/onnx/import_program.h"

#include <fmt/format.h>

#include "frontend/onnx/check_subgraphs.h"
#include "frontend/onnx/narrow.h"
#include "frontend/onnx/op_context.h"
#include "frontend/onnx/program_importer.h"
#include "graph/dims.h"
#include "support/strings.h"

namespace tenon::onnx {

const AttributeProto* FindAttribute(const NodeProto& n, std::string_view name) {
  for (const AttributeProto& a : n.attributes) {
    if (a.name == name) return &a;
  }
  return nullptr;
}

bool IsAlwaysStep(const NodeProto& n) {
  static const std::set<std::string_view> kSteps = {
      "SequenceEmpty",  "SequenceConstruct", "SequenceAt",      "SequenceInsert",
      "SequenceErase",  "SequenceLength",    "SplitToSequence", "ConcatFromSequence",
      "SequenceMap",    "Optional",          "StringConcat",    "StringSplit",
      "RegexFullMatch", "StringNormalizer"};
  if (n.domain == kMlDomain)
    return n.op_type == "ZipMap" || n.op_type == "DictVectorizer" || n.op_type == "CastMap";
  return (n.domain.empty() || n.domain == "ai.onnx") && kSteps.contains(n.op_type);
}

bool HoldsStrings(const AttributeProto& a) {
  if (!a.tensor.empty()) return a.tensor[0].data_type == static_cast<int32_t>(ElemType::kString);
  return a.name.ends_with("_strings") || a.name.ends_with("_string");
}

namespace {

using graph::Quoted;

constexpr auto kString = static_cast<int32_t>(ElemType::kString);

bool IsDefaultDomain(const NodeProto& n) { return n.domain.empty() || n.domain == "ai.onnx"; }

bool IsStringConstant(const NodeProto& n) {
  if (!IsDefaultDomain(n) || n.op_type != "Constant") return false;
  const AttributeProto* value = FindAttribute(n, "value");
  if (value && !value->tensor.empty()) return value->tensor[0].data_type == kString;
  return FindAttribute(n, "value_string") || FindAttribute(n, "value_strings");
}

bool IsPlain(const ValueInfoProto& v) {
  return v.kind == ValueInfoProto::Kind::kNone || v.kind == ValueInfoProto::Kind::kOther ||
         (v.kind == ValueInfoProto::Kind::kTensor && v.elem_type != kString);
}

// Whether a graph, or one in its nodes, has values that are no tensors of numbers.
bool HasValues(const GraphProto& g) {
  auto is_string = [](const TensorProto& t) { return t.data_type == kString; };
  if (!std::all_of(g.inputs.begin(), g.inputs.end(), IsPlain) ||
      !std::all_of(g.outputs.begin(), g.outputs.end(), IsPlain) ||
      std::any_of(g.initializers.begin(), g.initializers.end(), is_string))
    return true;
  return std::any_of(g.nodes.begin(), g.nodes.end(), [](const NodeProto& n) {
    if (IsAlwaysStep(n) || IsStringConstant(n)) return true;
    const AttributeProto* to = FindAttribute(n, "to");
    if (n.op_type == "Cast" && to && to->i == kString) return true;
    if (n.domain == kMlDomain &&
        std::any_of(n.attributes.begin(), n.attributes.end(), HoldsStrings))
      return true;
    return std::any_of(n.attributes.begin(), n.attributes.end(), [](const AttributeProto& a) {
      return !a.graph.empty() && HasValues(a.graph[0]);
    });
  });
}

}  // namespace

// ---- Strings ----

int32_t ProgramImporter::NumberOf(std::string_view text) {
  if (auto it = numbers_.find(text); it != numbers_.end()) return it->second;
  const auto number = static_cast<int32_t>(program_.strings.size());
  program_.strings.emplace_back(text);
  numbers_.emplace(text, number);
  return number;
}

const TensorProto* ProgramImporter::OfStrings(std::span<const std::string_view> list,
                                              std::vector<int64_t> dims) {
  std::string varints;
  for (std::string_view text : list) {
    auto number = static_cast<uint32_t>(NumberOf(text));
    for (; number >= 0x80; number >>= 7) varints += static_cast<char>(number | 0x80);
    varints += static_cast<char>(number);
  }
  TensorProto& out = tensors_.emplace_back();
  out.dims = std::move(dims);
  out.data_type = kString;
  if (!varints.empty()) out.int64_data.push_back(Keep(std::move(varints)));
  return &out;
}

// An initializer as parts have it.
Expected<const TensorProto*> ProgramImporter::Numbered(const TensorProto& t) {
  if (t.data_type != kString) return &t;
  int64_t count = 1;
  for (int64_t d : t.dims) {
    if (d < 0 || d > static_cast<int64_t>(t.strings.size()))
      return MakeError("expected as many strings as the tensor's shape says");
    count *= d;
    if (count > static_cast<int64_t>(t.strings.size())) break;
  }
  if (count != static_cast<int64_t>(t.strings.size()) || t.has_raw || t.data_location != 0)
    return MakeError("expected as many strings as the tensor's shape says");
  for (size_t i = 0; i < t.strings.size(); ++i) {
    if (!IsUtf8(t.strings[i]))
      return MakeError(fmt::format("expected UTF-8, but string {} is not", i));
  }
  auto* out = const_cast<TensorProto*>(OfStrings(t.strings, t.dims));
  out->name = t.name;
  return out;
}

// ---- Graphs ----

Expected<ValueType> ProgramImporter::InputType(const ValueInfoProto& input) const {
  TN_ASSIGN_OR_RETURN(ValueType type, TypeOf(input));
  const auto given = options_.shapes.find(std::string(input.name));
  if (!type.IsTensor()) return type;
  if (given != options_.shapes.end()) {
    type.has_rank = true;
    type.dims.clear();
    for (const DimSpec& d : given->second) type.dims.push_back({d.value, d.symbol});
  }
  return type;
}

// What a value is for people and for tools.
static Expected<graph::ProgramValue> Described(std::string_view name, Slot slot,
                                               const ValueType& type) {
  graph::ProgramValue out;
  out.name = name;
  out.slot = slot;
  TN_ASSIGN_OR_RETURN(out.type, type.Encode());
  out.text = type.Name();
  out.is_tensor = type.IsTensor() && type.has_rank;
  for (const KnownSize& d : type.dims)
    out.dims.push_back(d.value >= 0 ? std::to_string(d.value) : d.name.empty() ? "?" : d.name);
  return out;
}

Status ProgramImporter::AddInputs(Frame* frame) {
  std::set<std::string_view> fixed;
  for (const TensorProto& t : model_.graph.initializers) fixed.insert(t.name);
  for (const ValueInfoProto& input : model_.graph.inputs) {
    if (fixed.contains(input.name)) continue;
    Expected<ValueType> type = InputType(input);
    if (!type) {
      Diagnostic d = type.errors()[0];
      d.loc = {.file = file_->path, .item = "input " + Quoted(input.name)};
      return d;
    }
    const Slot slot = program_.slots++;
    TN_ASSIGN_OR_RETURN(graph::ProgramValue described, Described(input.name, slot, *type));
    program_.inputs.push_back(std::move(described));
    frame->names.here[input.name] = {std::move(*type), slot};
  }
  return CheckRanges(frame);
}

// Ranges that sizes of inputs are given hold for the call, whoever reads the inputs: a part that
// has nothing else to do takes all of them.
Status ProgramImporter::CheckRanges(Frame* frame) {
  const auto has_range = [](const auto& given) {
    return std::any_of(given.second.begin(), given.second.end(), [](const DimSpec& d) {
      return d.value < 0 && !(d == DimSpec{.symbol = d.symbol});
    });
  };
  if (std::none_of(options_.shapes.begin(), options_.shapes.end(), has_range)) return Ok();
  std::vector<const NodeProto*> nodes;
  std::set<std::string_view> shapes;
  for (const ValueInfoProto& input : model_.graph.inputs) {
    const auto given = options_.shapes.find(std::string(input.name));
    if (given == options_.shapes.end() || !frame->names.here.contains(input.name)) continue;
    NodeProto& shape = nodes_.emplace_back();
    shape.op_type = "Shape";
    shape.inputs = {input.name};
    shape.outputs = {Keep(fmt::format("{}.shape", input.name))};
    nodes.push_back(&shape);
    shapes.insert(shape.outputs[0]);
    part_options_.shapes.insert(*given);
  }
  const Status planned = PlanPart(nodes, shapes, frame);
  part_options_.shapes.clear();
  return planned;
}

Expected<graph::Program> ProgramImporter::Run() {
  Frame frame{&program_.steps, {}};
  NumberOf("");  // is 0: what fills places without an element, as a zero does among numbers
  TN_RETURN_IF_ERROR(AddInputs(&frame));
  TN_ASSIGN_OR_RETURN(const std::vector<Named> outputs, PlanGraph(model_.graph, &frame));
  for (size_t i = 0; i < outputs.size(); ++i) {
    TN_ASSIGN_OR_RETURN(graph::ProgramValue described,
                        Described(model_.graph.outputs[i].name, outputs[i].slot, outputs[i].type));
    program_.outputs.push_back(std::move(described));
  }
  graph::ShareParts(&program_);
  return std::move(program_);
}

Status ProgramImporter::AddConstants(const GraphProto& g, Frame* frame) {
  for (const TensorProto& t : g.initializers) {
    Expected<const TensorProto*> numbered = Numbered(t);
    if (!numbered)
      return MakeError(numbered.errors()[0].message,
                       {.file = file_->path, .item = "initializer " + Quoted(t.name)});
    Named named;
    named.constant = *numbered;
    std::vector<KnownSize> dims;
    for (int64_t d : t.dims) dims.push_back({d, ""});
    named.type = ValueType::Tensor(t.data_type, std::move(dims));
    frame->names.here[t.name] = std::move(named);
  }
  for (const NodeProto& n : g.nodes) {
    if (!IsDefaultDomain(n) || n.op_type != "Constant" || n.outputs.empty()) continue;
    Named named;
    const AttributeProto* value = FindAttribute(n, "value");
    if (IsStringConstant(n)) {
      if (value) {
        TN_ASSIGN_OR_RETURN(named.constant, Numbered(value->tensor[0]));
      } else if (const AttributeProto* one = FindAttribute(n, "value_string")) {
        named.constant = OfStrings({&one->s, 1}, {});
      } else {
        const auto& list = FindAttribute(n, "value_strings")->strings;
        named.constant = OfStrings(list, {static_cast<int64_t>(list.size())});
      }
      std::vector<KnownSize> dims;
      for (int64_t d : named.constant->dims) dims.push_back({d, ""});
      named.type = ValueType::Tensor(kString, std::move(dims));
    } else {
      named.maker = &n;
      if (value && !value->tensor.empty()) {
        std::vector<KnownSize> dims;
        for (int64_t d : value->tensor[0].dims) dims.push_back({d, ""});
        named.type = ValueType::Tensor(value->tensor[0].data_type, std::move(dims));
      }
    }
    frame->names.here[n.outputs[0]] = std::move(named);
  }
  return Ok();
}

std::vector<std::string_view> ReadsOf(const NodeProto& n) {
  std::vector<std::string_view> names;
  for (std::string_view input : n.inputs) {
    if (!input.empty()) names.push_back(input);
  }
  for (const AttributeProto& a : n.attributes) {
    if (a.graph.empty()) continue;
    for (std::string_view name : OuterNames(a.graph[0])) names.push_back(name);
  }
  return names;
}

ProgramImporter::Role ProgramImporter::RoleOf(const NodeProto& n, const Names& names,
                                              const std::set<std::string_view>& pending) const {
  if (IsAlwaysStep(n)) return Role::kStep;
  if (!IsDefaultDomain(n)) return Role::kPart;
  const std::string_view first = n.inputs.empty() ? std::string_view() : n.inputs[0];
  const Named* input = pending.contains(first) ? nullptr : names.Find(first);
  const bool tensor = !input || input->type.IsTensor();
  if (n.op_type == "Identity" || n.op_type == "OptionalHasElement" ||
      n.op_type == "OptionalGetElement")
    return tensor ? Role::kPart : Role::kStep;
  if (n.op_type == "Cast") {
    const AttributeProto* to = FindAttribute(n, "to");
    if (to && to->i == kString) return input && input->type.IsString() ? Role::kPart : Role::kStep;
    if (!input) return Role::kLater;  // it may be strings
    return input->type.IsString() ? Role::kStep : Role::kPart;
  }
  if (n.op_type == "CastLike" && n.inputs.size() > 1) {
    const Named* like = pending.contains(n.inputs[1]) ? nullptr : names.Find(n.inputs[1]);
    if (!input || !like) return Role::kLater;
    return input->type.IsString() != like->type.IsString() ? Role::kStep : Role::kPart;
  }
  if (n.op_type == "Unique") {
    if (!input) return Role::kLater;  // it may be strings
    return input->type.IsString() ? Role::kStep : Role::kPart;
  }
  if (n.op_type != "If" && n.op_type != "Loop" && n.op_type != "Scan") return Role::kPart;
  if (control_ && n.op_type != "Scan") return Role::kStep;
  for (const AttributeProto& a : n.attributes) {
    if (!a.graph.empty() && HasValues(a.graph[0])) return Role::kStep;
  }
  for (std::string_view name : ReadsOf(n)) {
    const Named* read = pending.contains(name) ? nullptr : names.Find(name);
    if (read && (!read->type.IsTensor() || read->type.IsString() ||
                 (!read->type.has_rank && !read->constant && !read->maker)))
      return Role::kStep;
  }
  return Role::kPart;
}

Expected<std::vector<Named>> ProgramImporter::PlanGraph(const GraphProto& g, Frame* frame) {
  if (++depth_ > graph::Limits::kRegionDepth)
    return MakeLimitError(fmt::format("graphs nested deeper than {}", graph::Limits::kRegionDepth));
  TN_RETURN_IF_ERROR(AddConstants(g, frame));
  TN_ASSIGN_OR_RETURN(const std::vector<size_t> order,
                      OrderNodes(g, file_->path, [&](std::string_view name) {
                        return frame->names.outer && frame->names.outer->Find(name);
                      }));
  Unplanned all{g, {}, {}};
  for (size_t n : order) {
    const bool constant = IsDefaultDomain(g.nodes[n]) && g.nodes[n].op_type == "Constant";
    if (!constant) all.nodes.push_back(&g.nodes[n]);
  }
  for (const NodeProto* n : all.nodes) all.names.insert(n->outputs.begin(), n->outputs.end());
  TN_ASSIGN_OR_RETURN(std::vector<Named> outputs, PlanNodes(std::move(all), frame));
  --depth_;
  return outputs;
}

Expected<std::vector<Named>> ProgramImporter::PlanNodes(Unplanned all, Frame* frame) {
  const GraphProto& g = all.graph;
  std::vector<const NodeProto*>& left = all.nodes;
  const auto is_there = [&](std::string_view name) {
    return !all.names.contains(name) && frame->names.Find(name) != nullptr;
  };
  const auto made = [&](const NodeProto& n) {
    for (std::string_view output : n.outputs) all.names.erase(output);
  };
  while (!left.empty()) {
    // All that can be computed on tensors now.
    std::vector<const NodeProto*> part, rest;
    std::set<std::string_view> pending, wanted;
    for (const NodeProto* n : left) {
      const std::vector<std::string_view> reads = ReadsOf(*n);
      const bool ready = std::all_of(reads.begin(), reads.end(), [&](std::string_view name) {
        return pending.contains(name) || is_there(name);
      });
      if (!ready || RoleOf(*n, frame->names, pending) != Role::kPart) {
        rest.push_back(n);
        continue;
      }
      part.push_back(n);
      for (std::string_view output : n->outputs) {
        if (!output.empty()) pending.insert(output);
      }
    }
    for (const NodeProto* n : rest) {
      for (std::string_view name : ReadsOf(*n)) {
        if (pending.contains(name)) wanted.insert(name);
      }
    }
    for (const ValueInfoProto& output : g.outputs) {
      if (pending.contains(output.name)) wanted.insert(output.name);
    }
    if (const std::string_view name = WithoutKnownRank(part, frame->names); !name.empty())
      return PlanWays(ByRank(name, frame->names), all, frame);
    if (const Status planned = part.empty() ? Ok() : PlanPart(part, wanted, frame); !planned) {
      const std::string of_found_sizes = faults_.of_found_sizes;
      if (SpellOutSqueeze(part, &all, frame)) continue;
      const std::optional<Vector> vector = WithoutKnownLength(part, *frame);
      if (!vector && PlanBefore(of_found_sizes, part, &all, frame)) continue;
      if (!vector || !PlanMakers(*vector, &all, frame)) return planned.errors();
      Expected<std::vector<Named>> ways =
          PlanWays(ByLength(vector->name, frame->names), all, frame);
      return ways ? std::move(ways) : Expected<std::vector<Named>>(planned.errors());
    }
    for (const NodeProto* n : part) made(*n);
    // All steps that can be done now.
    left.clear();
    size_t done = part.size();
    for (const NodeProto* n : rest) {
      const std::vector<std::string_view> reads = ReadsOf(*n);
      const bool ready = std::all_of(reads.begin(), reads.end(), is_there);
      if (!ready || RoleOf(*n, frame->names, {}) != Role::kStep) {
        left.push_back(n);
        continue;
      }
      TN_RETURN_IF_ERROR(PlanStep(*n, frame));
      made(*n);
      ++done;
    }
    if (done == 0) return Error(*left[0], "its inputs cannot be computed");
  }
  std::vector<Named> outputs;
  for (const ValueInfoProto& output : g.outputs) {
    TN_ASSIGN_OR_RETURN(const Slot slot, SlotOf(output.name, frame));
    outputs.push_back(*frame->names.Find(output.name));
    outputs.back().slot = slot;
  }
  return outputs;
}

bool NeedsProgram(const ModelProto& model) { return HasValues(model.graph); }

Expected<graph::Program> ImportProgram(std::shared_ptr<const graph::WeightFile> file,
                                       const ModelProto& model, const ImportOptions& options,
                                       bool control) {
  TN_RETURN_IF_ERROR(CheckSubgraphs(model.graph, file, options));
  return ProgramImporter(std::move(file), options, model, control).Run();
}

}  // namespace tenon::onnx
