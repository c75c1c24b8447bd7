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

namespace {

using graph::Quoted;

constexpr auto kString = static_cast<int32_t>(ElemType::kString);
constexpr char kMlDomain[] = "ai.onnx.ml";

bool IsDefaultDomain(const NodeProto& n) { return n.domain.empty() || n.domain == "ai.onnx"; }

// Operators that are steps whatever they are used on.
bool IsAlwaysStep(const NodeProto& n) {
  static const std::set<std::string_view> kSteps = {
      "SequenceEmpty",  "SequenceConstruct", "SequenceAt",      "SequenceInsert",
      "SequenceErase",  "SequenceLength",    "SplitToSequence", "ConcatFromSequence",
      "SequenceMap",    "Optional",          "StringConcat",    "StringSplit",
      "RegexFullMatch", "StringNormalizer"};
  if (n.domain == kMlDomain)
    return n.op_type == "ZipMap" || n.op_type == "DictVectorizer" || n.op_type == "CastMap";
  return IsDefaultDomain(n) && kSteps.contains(n.op_type);
}

bool IsStringConstant(const NodeProto& n) {
  if (!IsDefaultDomain(n) || n.op_type != "Constant") return false;
  const AttributeProto* value = FindAttribute(n, "value");
  if (value && !value->tensor.empty()) return value->tensor[0].data_type == kString;
  return FindAttribute(n, "value_string") || FindAttribute(n, "value_strings");
}

// Whether an attribute, of ai.onnx.ml or a pool of n-grams, is strings that are values, not the
// name of a choice.
bool HoldsStrings(const AttributeProto& a) {
  if (!a.tensor.empty()) return a.tensor[0].data_type == kString;
  return a.name.ends_with("_strings") || a.name.ends_with("_string");
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
    for (const DimSpec& d : given->second) {
      if (d.value < 0 && !(d == DimSpec{.symbol = d.symbol}))
        return MakeError(
            "ranges of sizes are not supported in networks with strings, sequences or optionals");
      type.dims.push_back({d.value, d.symbol});
    }
  }
  if (!type.has_rank)
    return MakeError("expected a shape, but the model gives none; give one with --shape");
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
  return Ok();
}

Expected<graph::Program> ProgramImporter::Run() {
  Frame frame{&program_.steps, {}};
  TN_RETURN_IF_ERROR(AddInputs(&frame));
  TN_ASSIGN_OR_RETURN(const std::vector<Named> outputs, PlanGraph(model_.graph, &frame));
  for (size_t i = 0; i < outputs.size(); ++i) {
    TN_ASSIGN_OR_RETURN(graph::ProgramValue described,
                        Described(model_.graph.outputs[i].name, outputs[i].slot, outputs[i].type));
    program_.outputs.push_back(std::move(described));
  }
  return std::move(program_);
}

Status ProgramImporter::AddConstants(const GraphProto& g, Frame* frame) {
  if (g.sparse_initializers > 0) return MakeError("sparse initializers are not supported");
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

// What a node reads, in graphs of its attributes too.
static std::vector<std::string_view> ReadsOf(const NodeProto& n) {
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

Expected<std::vector<Named>> ProgramImporter::PlanGraph(const GraphProto& g, Frame* frame) {
  if (++depth_ > graph::Limits::kRegionDepth)
    return MakeLimitError(fmt::format("graphs nested deeper than {}", graph::Limits::kRegionDepth));
  TN_RETURN_IF_ERROR(AddConstants(g, frame));
  TN_ASSIGN_OR_RETURN(const std::vector<size_t> order,
                      OrderNodes(g, file_->path, [&](std::string_view name) {
                        return frame->names.outer && frame->names.outer->Find(name);
                      }));
  std::vector<const NodeProto*> left;
  for (size_t n : order) {
    const bool constant = IsDefaultDomain(g.nodes[n]) && g.nodes[n].op_type == "Constant";
    if (!constant) left.push_back(&g.nodes[n]);
  }
  // What this graph is yet to make: until then no name of it means one around it.
  std::set<std::string_view> unmade;
  for (const NodeProto* n : left) unmade.insert(n->outputs.begin(), n->outputs.end());
  const auto is_there = [&](std::string_view name) {
    return !unmade.contains(name) && frame->names.Find(name) != nullptr;
  };
  const auto made = [&](const NodeProto& n) {
    for (std::string_view output : n.outputs) unmade.erase(output);
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
    if (!part.empty()) TN_RETURN_IF_ERROR(PlanPart(part, wanted, frame));
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
  --depth_;
  return outputs;
}

// ---- Parts ----

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

// Attributes of strings become the numbers of those, which operators look up.
Expected<NodeProto> ProgramImporter::ForPart(const NodeProto& node) {
  NodeProto out = node;
  if (node.domain != kMlDomain && node.op_type != "TfIdfVectorizer") return out;
  if ((node.op_type == "LabelEncoder" || node.op_type == "CategoryMapper") &&
      !FindAttribute(node, "default_string")) {
    AttributeProto& unknown = out.attributes.emplace_back();
    unknown.name = "default_string";
    unknown.type = AttrProtoType::kString;
    unknown.s = "_Unused";
  }
  for (AttributeProto& a : out.attributes) {
    if (!a.tensor.empty()) {
      TN_ASSIGN_OR_RETURN(const TensorProto* numbered, Numbered(a.tensor[0]));
      const TensorProto copy = *numbered;
      a.tensor[0] = copy;
    }
    if (!HoldsStrings(a)) continue;
    if (a.type == AttrProtoType::kStrings) {
      for (std::string_view text : a.strings) a.ints.push_back(NumberOf(text));
      a.type = AttrProtoType::kInts;
    } else if (a.type == AttrProtoType::kString) {
      a.i = NumberOf(a.s);
      a.type = AttrProtoType::kInt;
    }
  }
  return out;
}

// Of a part's result: sizes that its inputs have keep their names, others get one of their own.
std::vector<KnownSize> ProgramImporter::SizesOf(const graph::Graph& g, graph::ValueId v,
                                                size_t part) {
  std::set<std::string> given;
  for (graph::ValueId input : g.inputs) {
    for (const Expr& d : g.type(input).dims) {
      if (IsA<VarNode>(d)) given.insert(As<VarNode>(d)->name);
    }
  }
  std::vector<KnownSize> out;
  for (const Expr& d : g.type(v).dims) {
    if (const auto number = AsInt(d)) {
      out.push_back({*number, ""});
    } else if (IsA<VarNode>(d) && given.contains(As<VarNode>(d)->name)) {
      out.push_back({-1, As<VarNode>(d)->name});
    } else {
      out.push_back({-1, ToIdentifier(fmt::format("p{}_{}", part, graph::DimText(d)))});
    }
  }
  return out;
}

// The nodes as a function of their own; `wanted` of its results are read elsewhere.
Status ProgramImporter::PlanPart(const std::vector<const NodeProto*>& nodes,
                                 const std::set<std::string_view>& wanted, Frame* frame) {
  if (wanted.empty()) return Ok();
  ModelProto model;
  model.ir_version = model_.ir_version;
  model.opset_imports = model_.opset_imports;
  model.has_graph = true;
  GraphProto& g = model.graph;
  graph::Step step{TN_STEP_PART, {}, {}, {static_cast<int32_t>(program_.parts.size())}, {}};
  std::set<std::string_view> defined, made;
  for (const NodeProto* n : nodes) {
    for (std::string_view output : n->outputs) made.insert(output);
  }
  for (const NodeProto* n : nodes) {
    std::vector<std::string_view> reads = ReadsOf(*n);
    for (std::string_view name : reads) {
      if (made.contains(name) || !defined.insert(name).second) continue;
      const Named& named = *frame->names.Find(name);
      if (named.constant) {
        g.initializers.push_back(*named.constant);
        g.initializers.back().name = name;
        continue;
      }
      if (named.maker) {
        g.nodes.push_back(*named.maker);
        continue;
      }
      if (!named.type.IsTensor() || !named.type.has_rank) {
        return Error(*n, fmt::format("expected tensors of a known rank, but {} is {}", Quoted(name),
                                     named.type.ToString()));
      }
      ValueInfoProto input;
      input.name = name;
      input.kind = ValueInfoProto::Kind::kTensor;
      input.elem_type = named.type.elem_type;
      input.has_shape = true;
      for (const KnownSize& size : named.type.dims) {
        DimProto d;
        d.kind = size.value >= 0     ? DimProto::Kind::kValue
                 : size.name.empty() ? DimProto::Kind::kUnknown
                                     : DimProto::Kind::kParam;
        d.value = size.value;
        d.param = Keep(size.name);
        input.shape.push_back(d);
      }
      g.inputs.push_back(std::move(input));
      step.inputs.push_back(named.slot);
    }
    TN_ASSIGN_OR_RETURN(NodeProto for_part, ForPart(*n));
    g.nodes.push_back(std::move(for_part));
  }
  for (std::string_view name : wanted) {
    ValueInfoProto output;
    output.name = name;
    g.outputs.push_back(std::move(output));
  }
  TN_ASSIGN_OR_RETURN(ImportedPart part, ImportPart(file_, model, part_options_));
  size_t i = 0;
  for (std::string_view name : wanted) {
    Named named;
    named.slot = program_.slots++;
    const graph::ValueId v = part.graph.outputs[i];
    named.type =
        ValueType::Tensor(part.output_types[i], SizesOf(part.graph, v, program_.parts.size()));
    step.outputs.push_back(named.slot);
    frame->names.here[name] = std::move(named);
    ++i;
  }
  part.graph.name = fmt::format("part{}", program_.parts.size());
  program_.parts.push_back(std::move(part.graph));
  frame->steps->push_back(std::move(step));
  return Ok();
}

// Where a value is; a constant is put into a slot by a part that has nothing else to do.
Expected<Slot> ProgramImporter::SlotOf(std::string_view name, Frame* frame) {
  const Named* named = frame->names.Find(name);
  if (named->slot != kNoSlot) return named->slot;
  NodeProto& copy = nodes_.emplace_back();
  copy.op_type = "Identity";
  copy.inputs = {name};
  const std::string_view made = Keep(fmt::format("{}.value", name));
  copy.outputs = {made};
  TN_RETURN_IF_ERROR(PlanPart({&copy}, {made}, frame));
  Named& placed = frame->names.here[name];
  placed = frame->names.here[made];
  return placed.slot;
}

bool NeedsProgram(const ModelProto& model) { return HasValues(model.graph); }

Expected<graph::Program> ImportProgram(std::shared_ptr<const graph::WeightFile> file,
                                       const ModelProto& model, const ImportOptions& options,
                                       bool control) {
  return ProgramImporter(std::move(file), options, model, control).Run();
}

}  // namespace tenon::onnx
