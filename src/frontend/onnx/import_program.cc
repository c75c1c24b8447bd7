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

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>

#include "frontend/onnx/narrow.h"
#include "frontend/onnx/node_order.h"
#include "frontend/onnx/op_context.h"
#include "frontend/onnx/regex.h"
#include "frontend/onnx/value_types.h"
#include "graph/dims.h"
#include "support/strings.h"

namespace tenon::onnx {
namespace {

using graph::kNoSlot;
using graph::Quoted;
using graph::Slot;
using Kind = ValueType::Kind;

constexpr auto kString = static_cast<int32_t>(ElemType::kString);
constexpr auto kBool = static_cast<int32_t>(ElemType::kBool);
constexpr auto kInt64 = static_cast<int32_t>(ElemType::kInt64);
constexpr char kMlDomain[] = "ai.onnx.ml";

bool IsDefaultDomain(const NodeProto& n) { return n.domain.empty() || n.domain == "ai.onnx"; }

// Operators that are steps whatever they are used on.
bool IsAlwaysStep(const NodeProto& n) {
  static const std::set<std::string_view> kSteps = {
      "SequenceEmpty",  "SequenceConstruct", "SequenceAt",      "SequenceInsert",
      "SequenceErase",  "SequenceLength",    "SplitToSequence", "ConcatFromSequence",
      "SequenceMap",    "Optional",          "StringConcat",    "StringSplit",
      "RegexFullMatch", "StringNormalizer"};
  if (n.domain == kMlDomain) return n.op_type == "ZipMap";
  return IsDefaultDomain(n) && kSteps.contains(n.op_type);
}

const AttributeProto* FindAttribute(const NodeProto& n, std::string_view name) {
  for (const AttributeProto& a : n.attributes) {
    if (a.name == name) return &a;
  }
  return nullptr;
}

bool IsStringConstant(const NodeProto& n) {
  if (!IsDefaultDomain(n) || n.op_type != "Constant") return false;
  const AttributeProto* value = FindAttribute(n, "value");
  if (value && !value->tensor.empty()) return value->tensor[0].data_type == kString;
  return FindAttribute(n, "value_string") || FindAttribute(n, "value_strings");
}

// Whether an attribute of ai.onnx.ml is strings that are values, not the name of a choice.
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

/// What a name stands for: a value in a slot, or a constant that whoever reads it has for himself.
struct Named {
  ValueType type;
  Slot slot = kNoSlot;
  const TensorProto* constant = nullptr;
  const NodeProto* maker = nullptr;  // of a constant, an operator without inputs
};

struct Names {
  const Names* outer = nullptr;
  std::unordered_map<std::string_view, Named> here = {};

  const Named* Find(std::string_view name) const {
    for (const Names* n = this; n; n = n->outer) {
      if (auto it = n->here.find(name); it != n->here.end()) return &it->second;
    }
    return nullptr;
  }
};

/// One import. Keeps: slots are never used twice; what names_ and texts_ hold lives as long, since
/// protos are views.
class ProgramImporter {
 public:
  ProgramImporter(std::shared_ptr<const graph::WeightFile> file, const ImportOptions& options,
                  const ModelProto& model, bool control)
      : file_(std::move(file)), options_(options), model_(model), control_(control) {
    part_options_ = options;
    part_options_.shapes.clear();
    part_options_.sizes_from = 0;
  }

  Expected<graph::Program> Run();

 private:
  // A graph that is being planned: where its steps go, and what its names are.
  struct Frame {
    std::vector<graph::Step>* steps;
    Names names;
  };
  // One node that is a step.
  struct At {
    const NodeProto& node;
    Frame& frame;
  };

  Diagnostic Error(const NodeProto& node, const std::string& message) const {
    return MakeError(message, {.file = file_->path, .item = DescribeNode(node, 0)});
  }
  std::string_view Keep(std::string text) { return texts_.emplace_back(std::move(text)); }
  int32_t NumberOf(std::string_view text);
  Expected<const TensorProto*> Numbered(const TensorProto& t);
  const TensorProto* OfStrings(std::span<const std::string_view> list, std::vector<int64_t> dims);

  Status AddInputs(Frame* frame);
  Expected<ValueType> InputType(const ValueInfoProto& input) const;
  Expected<std::vector<Named>> PlanGraph(const GraphProto& g, Frame* frame);
  Status AddConstants(const GraphProto& g, Frame* frame);

  enum class Role { kPart, kStep, kLater };
  Role RoleOf(const NodeProto& n, const Names& names,
              const std::set<std::string_view>& pending) const;
  Status PlanPart(const std::vector<const NodeProto*>& nodes,
                  const std::set<std::string_view>& wanted, Frame* frame);
  Expected<NodeProto> ForPart(const NodeProto& node);
  std::vector<KnownSize> SizesOf(const graph::Graph& g, graph::ValueId v, size_t part);

  // Steps.
  Status PlanStep(const NodeProto& node, Frame* frame);
  Expected<Named> Value(const At& at, size_t i);
  Expected<Slot> SlotOf(std::string_view name, Frame* frame);
  Expected<int64_t> Int(const At& at, std::string_view name, int64_t fallback) const;
  bool Has(const At& at, size_t i) const {
    return i < at.node.inputs.size() && !at.node.inputs[i].empty();
  }
  // Appends a step on all the node's inputs, whose results have these types.
  Status Emit(const At& at, int32_t operation, std::vector<ValueType> types,
              std::vector<int32_t> numbers = {}, std::vector<graph::StepBody> bodies = {});
  Status PlanIf(const At& at);
  Status PlanLoop(const At& at);
  Status PlanMap(const At& at);
  Status PlanSequenceStep(const At& at);
  Status PlanOptionalStep(const At& at);
  Status PlanStringStep(const At& at);
  Status PlanZipMap(const At& at);
  Expected<const GraphProto*> Body(const At& at, std::string_view name, size_t inputs) const;
  Expected<std::vector<Named>> PlanBody(const GraphProto& g, const std::vector<ValueType>& types,
                                        Frame* outer, graph::StepBody* body);

  const std::shared_ptr<const graph::WeightFile> file_;
  const ImportOptions& options_;
  const ModelProto& model_;
  const bool control_;
  ImportOptions part_options_;
  graph::Program program_;
  std::map<std::string, int32_t, std::less<>> numbers_;
  std::deque<std::string> texts_;
  std::deque<TensorProto> tensors_;
  std::deque<NodeProto> nodes_;
  int depth_ = 0;
};

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
  while (!left.empty()) {
    // All that can be computed on tensors now.
    std::vector<const NodeProto*> part, rest;
    std::set<std::string_view> pending, wanted;
    for (const NodeProto* n : left) {
      const std::vector<std::string_view> reads = ReadsOf(*n);
      const bool ready = std::all_of(reads.begin(), reads.end(), [&](std::string_view name) {
        return pending.contains(name) || frame->names.Find(name);
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
    // All steps that can be done now.
    left.clear();
    size_t done = part.size();
    for (const NodeProto* n : rest) {
      const std::vector<std::string_view> reads = ReadsOf(*n);
      const bool ready = std::all_of(reads.begin(), reads.end(), [&](std::string_view name) {
        return frame->names.Find(name) != nullptr;
      });
      if (!ready || RoleOf(*n, frame->names, {}) != Role::kStep) {
        left.push_back(n);
        continue;
      }
      TN_RETURN_IF_ERROR(PlanStep(*n, frame));
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
  if (n.op_type != "If" && n.op_type != "Loop") return Role::kPart;
  if (control_) return Role::kStep;
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

// Attributes of strings become the numbers of those: operators of ai.onnx.ml look them up.
Expected<NodeProto> ProgramImporter::ForPart(const NodeProto& node) {
  NodeProto out = node;
  if (node.domain != kMlDomain) return out;
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

// ---- Steps ----

Expected<Named> ProgramImporter::Value(const At& at, size_t i) {
  if (!Has(at, i)) return Error(at.node, fmt::format("expected input {}, but it is left out", i));
  TN_ASSIGN_OR_RETURN(const Slot slot, SlotOf(at.node.inputs[i], &at.frame));
  Named named = *at.frame.names.Find(at.node.inputs[i]);
  named.slot = slot;
  return named;
}

Expected<int64_t> ProgramImporter::Int(const At& at, std::string_view name,
                                       int64_t fallback) const {
  const AttributeProto* a = FindAttribute(at.node, name);
  if (!a) return fallback;
  if (a->type != AttrProtoType::kInt || a->i < INT32_MIN || a->i > INT32_MAX)
    return Error(at.node, fmt::format("expected attribute {} to be an integer", name));
  return a->i;
}

Status ProgramImporter::Emit(const At& at, int32_t operation, std::vector<ValueType> types,
                             std::vector<int32_t> numbers, std::vector<graph::StepBody> bodies) {
  graph::Step step{operation, {}, {}, std::move(numbers), std::move(bodies)};
  for (size_t i = 0; i < at.node.inputs.size(); ++i) {
    step.inputs.push_back(kNoSlot);
    if (!Has(at, i)) continue;
    TN_ASSIGN_OR_RETURN(step.inputs.back(), SlotOf(at.node.inputs[i], &at.frame));
  }
  if (at.node.outputs.empty() || at.node.outputs.size() > types.size())
    return Error(at.node, fmt::format("expected at most {} outputs, but got {}", types.size(),
                                      at.node.outputs.size()));
  for (size_t i = 0; i < types.size(); ++i) {
    step.outputs.push_back(program_.slots++);
    if (i >= at.node.outputs.size() || at.node.outputs[i].empty()) continue;
    at.frame.names.here[at.node.outputs[i]] = {std::move(types[i]), step.outputs.back()};
  }
  at.frame.steps->push_back(std::move(step));
  return Ok();
}

Status ProgramImporter::PlanStep(const NodeProto& node, Frame* frame) {
  const At at{node, *frame};
  const std::string_view op = node.op_type;
  Status done = op == "If"                                          ? PlanIf(at)
                : op == "Loop"                                      ? PlanLoop(at)
                : op == "SequenceMap"                               ? PlanMap(at)
                : op == "ZipMap"                                    ? PlanZipMap(at)
                : op.starts_with("Optional") || op == "Identity"    ? PlanOptionalStep(at)
                : op.starts_with("Seq") || op.ends_with("Sequence") ? PlanSequenceStep(at)
                                                                    : PlanStringStep(at);
  if (done) return done;
  for (Diagnostic& d : done.errors()) {
    if (d.loc.item.empty()) d.loc = {.file = file_->path, .item = DescribeNode(node, 0)};
  }
  return done;
}

namespace {

Status Expect(const ValueType& type, Kind kind, size_t i) {
  if (type.kind == kind) return Ok();
  const char* what = kind == Kind::kSequence ? "a sequence" : "a tensor";
  return MakeError(fmt::format("expected input {} to be {}, but got {}", i, what, type.ToString()));
}

ValueType Scalar(int32_t elem_type) { return ValueType::Tensor(elem_type, {}); }

// The words of what a tensor's elements are inside of a program.
Expected<std::vector<uint32_t>> ElementWord(const ValueType& t) {
  return Scalar(t.IsString() ? kInt64 : t.elem_type).Encode();
}

ValueType WithoutRank(ValueType t) {
  t.has_rank = false;
  t.dims.clear();
  return t;
}

}  // namespace

Status ProgramImporter::PlanSequenceStep(const At& at) {
  const std::string_view op = at.node.op_type;
  if (op == "SequenceEmpty") {
    TN_ASSIGN_OR_RETURN(const int64_t dtype, Int(at, "dtype", 1));
    TN_RETURN_IF_ERROR(StorageOf(static_cast<int32_t>(dtype)));
    ValueType element = WithoutRank(Scalar(static_cast<int32_t>(dtype)));
    element.has_no_value = true;
    return Emit(at, TN_STEP_SEQUENCE, {ValueType::Of(Kind::kSequence, element)});
  }
  TN_ASSIGN_OR_RETURN(const Named first, Value(at, 0));
  if (op == "SequenceConstruct") {
    ValueType element = first.type;
    for (size_t i = 1; i < at.node.inputs.size(); ++i) {
      TN_ASSIGN_OR_RETURN(const Named next, Value(at, i));
      TN_ASSIGN_OR_RETURN(element, CommonType(element, next.type));
    }
    return Emit(at, TN_STEP_SEQUENCE, {ValueType::Of(Kind::kSequence, element)});
  }
  if (op == "SplitToSequence") {
    TN_RETURN_IF_ERROR(Expect(first.type, Kind::kTensor, 0));
    TN_ASSIGN_OR_RETURN(int64_t axis, Int(at, "axis", 0));
    TN_ASSIGN_OR_RETURN(const int64_t keep, Int(at, "keepdims", 1));
    ValueType element = first.type;
    if (element.has_rank) {
      const auto rank = static_cast<int64_t>(element.dims.size());
      if (axis < -rank || axis >= rank)
        return MakeError(fmt::format("expected axis in {}..{}, but got {}", -rank, rank - 1, axis));
      const auto along = element.dims.begin() + (axis < 0 ? axis + rank : axis);
      if (!Has(at, 1) && keep == 0)
        element.dims.erase(along);
      else
        *along = Has(at, 1) ? KnownSize{} : KnownSize{1, ""};
    }
    return Emit(at, TN_STEP_SPLIT, {ValueType::Of(Kind::kSequence, element)},
                {static_cast<int32_t>(axis), static_cast<int32_t>(keep)});
  }
  TN_RETURN_IF_ERROR(Expect(first.type, Kind::kSequence, 0));
  const ValueType& element = first.type.element();
  if (op == "SequenceLength") return Emit(at, TN_STEP_LENGTH, {Scalar(kInt64)});
  if (op == "SequenceAt") {
    TN_RETURN_IF_ERROR(Value(at, 1));
    return Emit(at, TN_STEP_AT, {element});
  }
  if (op == "SequenceErase") return Emit(at, TN_STEP_ERASE, {first.type});
  if (op == "SequenceInsert") {
    TN_ASSIGN_OR_RETURN(const Named value, Value(at, 1));
    TN_ASSIGN_OR_RETURN(const ValueType common, CommonType(element, value.type));
    return Emit(at, TN_STEP_INSERT, {ValueType::Of(Kind::kSequence, common)});
  }
  if (op != "ConcatFromSequence") return Error(at.node, "the operator is not supported");
  TN_ASSIGN_OR_RETURN(int64_t axis, Int(at, "axis", 0));
  TN_ASSIGN_OR_RETURN(const int64_t new_axis, Int(at, "new_axis", 0));
  ValueType out = element;
  out.has_no_value = false;
  if (out.has_rank) {
    const auto rank = static_cast<int64_t>(out.dims.size()) + (new_axis != 0 ? 1 : 0);
    if (axis < -rank || axis >= rank)
      return MakeError(fmt::format("expected axis in {}..{}, but got {}", -rank, rank - 1, axis));
    const auto along = out.dims.begin() + (axis < 0 ? axis + rank : axis);
    if (new_axis != 0)
      out.dims.insert(along, KnownSize{});
    else
      *along = {};
  }
  return Emit(at, TN_STEP_JOIN, {out},
              {static_cast<int32_t>(axis), static_cast<int32_t>(new_axis != 0)});
}

Status ProgramImporter::PlanOptionalStep(const At& at) {
  const std::string_view op = at.node.op_type;
  if (op == "Optional" && !Has(at, 0)) {
    const AttributeProto* type = FindAttribute(at.node, "type");
    if (!type || type->type_proto.empty())
      return MakeError("expected the attribute type where there is no input");
    TN_ASSIGN_OR_RETURN(ValueType inner, TypeOf(type->type_proto[0]));
    return Emit(at, TN_STEP_NONE, {ValueType::Of(Kind::kOptional, std::move(inner))});
  }
  TN_ASSIGN_OR_RETURN(const Named value, Value(at, 0));
  const bool optional = value.type.kind == Kind::kOptional;
  if (op == "Optional") return Emit(at, TN_STEP_MOVE, {ValueType::Of(Kind::kOptional, value.type)});
  if (op == "OptionalHasElement") return Emit(at, TN_STEP_HAS, {Scalar(kBool)});
  if (op == "OptionalGetElement")
    return Emit(at, TN_STEP_GET, {optional ? value.type.element() : value.type});
  return Emit(at, TN_STEP_MOVE, {value.type});
}

Status ProgramImporter::PlanStringStep(const At& at) {
  const std::string_view op = at.node.op_type;
  TN_ASSIGN_OR_RETURN(const Named first, Value(at, 0));
  TN_RETURN_IF_ERROR(Expect(first.type, Kind::kTensor, 0));
  if (op == "Cast") {
    TN_ASSIGN_OR_RETURN(const int64_t to, Int(at, "to", 0));
    ValueType out = first.type;
    out.elem_type = static_cast<int32_t>(to);
    if (to == kString) {
      if (NarrowTypeOf(first.type.elem_type))
        return MakeError("narrow numbers are not cast to strings");
      return Emit(at, TN_STEP_TO_STRING, {out});
    }
    if (NarrowTypeOf(out.elem_type)) return MakeError("strings are not cast to narrow numbers");
    TN_ASSIGN_OR_RETURN(const std::vector<uint32_t> type, out.Encode());
    return Emit(at, TN_STEP_FROM_STRING, {out}, {static_cast<int32_t>(type[1])});
  }
  if (!first.type.IsString())
    return MakeError(fmt::format("expected strings, but got {}", first.type.ToString()));
  auto text = [&](std::string_view name) {
    const AttributeProto* a = FindAttribute(at.node, name);
    return a ? a->s : std::string_view();
  };
  if (op == "StringConcat") {
    TN_ASSIGN_OR_RETURN(const Named second, Value(at, 1));
    ValueType out = first.type;
    const ValueType& other = second.type;
    if (!other.IsString())
      return MakeError(fmt::format("expected strings, but got {}", other.ToString()));
    if (!(out == other)) {
      const bool ranks = out.has_rank && other.has_rank;
      const size_t rank = std::max(out.dims.size(), other.dims.size());
      out = ranks ? ValueType::Tensor(kString, std::vector<KnownSize>(rank)) : WithoutRank(out);
    }
    return Emit(at, TN_STEP_STRING_CONCAT, {out});
  }
  if (op == "StringSplit") {
    TN_ASSIGN_OR_RETURN(const int64_t most, Int(at, "maxsplit", -1));
    ValueType pieces = first.type, counts = first.type;
    counts.elem_type = kInt64;
    if (pieces.has_rank) pieces.dims.push_back({});
    const bool by_space = text("delimiter").empty();
    return Emit(at, TN_STEP_STRING_SPLIT, {pieces, counts},
                {by_space ? -1 : NumberOf(text("delimiter")), static_cast<int32_t>(most)});
  }
  if (op == "StringNormalizer") {
    const std::string_view change = text("case_change_action");
    if (!change.empty() && change != "NONE" && change != "LOWER" && change != "UPPER")
      return MakeError(fmt::format(
          "expected case_change_action to be NONE, LOWER or UPPER, but got {}", Quoted(change)));
    TN_ASSIGN_OR_RETURN(const int64_t exact, Int(at, "is_case_sensitive", 0));
    std::vector<int32_t> numbers = {change == "LOWER"   ? 1
                                    : change == "UPPER" ? 2
                                                        : 0,
                                    static_cast<int32_t>(exact != 0)};
    if (const AttributeProto* stops = FindAttribute(at.node, "stopwords")) {
      for (std::string_view stop : stops->strings) numbers.push_back(NumberOf(stop));
    }
    ValueType out = first.type;
    if (out.has_rank && !out.dims.empty()) out.dims.back() = {};
    return Emit(at, TN_STEP_STRING_NORMALIZE, {out}, std::move(numbers));
  }
  if (op != "RegexFullMatch") return Error(at.node, "the operator is not supported on strings");
  TN_ASSIGN_OR_RETURN(std::vector<int32_t> automaton, CompileRegex(text("pattern")));
  ValueType out = first.type;
  out.elem_type = kBool;
  return Emit(at, TN_STEP_REGEX, {out}, std::move(automaton));
}

// A map for each row, of the keys in the attribute.
Status ProgramImporter::PlanZipMap(const At& at) {
  TN_ASSIGN_OR_RETURN(const Named rows, Value(at, 0));
  TN_RETURN_IF_ERROR(Expect(rows.type, Kind::kTensor, 0));
  const AttributeProto* names = FindAttribute(at.node, "classlabels_strings");
  const AttributeProto* numbers = FindAttribute(at.node, "classlabels_int64s");
  if (!names == !numbers)
    return MakeError("expected either classlabels_strings or classlabels_int64s");
  TensorProto& keys = tensors_.emplace_back();
  if (names) keys = *OfStrings(names->strings, {static_cast<int64_t>(names->strings.size())});
  if (numbers) {
    std::string varints;
    for (int64_t key : numbers->ints) {
      auto word = static_cast<uint64_t>(key);
      for (; word >= 0x80; word >>= 7) varints += static_cast<char>(word | 0x80);
      varints += static_cast<char>(word);
    }
    keys.dims = {static_cast<int64_t>(numbers->ints.size())};
    keys.data_type = kInt64;
    if (!varints.empty()) keys.int64_data.push_back(Keep(std::move(varints)));
  }
  const std::string_view name =
      Keep(fmt::format("{}.keys", at.node.outputs.empty() ? "" : at.node.outputs[0]));
  Named constant;
  constant.constant = &keys;
  at.frame.names.here[name] = constant;
  NodeProto& node = nodes_.emplace_back(at.node);
  node.inputs = {name, at.node.inputs[0]};
  ValueType map = ValueType::Of(Kind::kMap, WithoutRank(Scalar(rows.type.elem_type)));
  map.elem_type = keys.data_type;
  return Emit({node, at.frame}, TN_STEP_ZIP_MAP, {ValueType::Of(Kind::kSequence, map)});
}

// ---- Control flow ----

Expected<const GraphProto*> ProgramImporter::Body(const At& at, std::string_view name,
                                                  size_t inputs) const {
  const AttributeProto* a = FindAttribute(at.node, name);
  if (!a || a->graph.empty())
    return MakeError(fmt::format("expected a graph in attribute {}", name));
  if (a->graph[0].inputs.size() == inputs) return &a->graph[0];
  return MakeError(fmt::format("expected a graph with {} inputs in attribute {}, but it has {}",
                               inputs, name, a->graph[0].inputs.size()));
}

Expected<std::vector<Named>> ProgramImporter::PlanBody(const GraphProto& g,
                                                       const std::vector<ValueType>& types,
                                                       Frame* outer, graph::StepBody* body) {
  Frame frame{&body->steps, {&outer->names}};
  for (size_t i = 0; i < types.size(); ++i) {
    body->inputs.push_back(program_.slots++);
    frame.names.here[g.inputs[i].name] = {types[i], body->inputs.back()};
  }
  TN_ASSIGN_OR_RETURN(std::vector<Named> outputs, PlanGraph(g, &frame));
  for (const Named& output : outputs) body->outputs.push_back(output.slot);
  return outputs;
}

Status ProgramImporter::PlanIf(const At& at) {
  std::vector<graph::StepBody> bodies(2);
  std::vector<ValueType> types;
  TN_RETURN_IF_ERROR(Value(at, 0));
  for (size_t b = 0; b < 2; ++b) {
    TN_ASSIGN_OR_RETURN(const GraphProto* g, Body(at, b == 0 ? "then_branch" : "else_branch", 0));
    TN_ASSIGN_OR_RETURN(const std::vector<Named> outputs, PlanBody(*g, {}, &at.frame, &bodies[b]));
    if (b == 1 && outputs.size() != types.size())
      return MakeError("expected as many results of both branches");
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (b == 0) {
        types.push_back(outputs[i].type);
        continue;
      }
      TN_ASSIGN_OR_RETURN(types[i], CommonType(types[i], outputs[i].type));
    }
  }
  return Emit(at, TN_STEP_IF, std::move(types), {}, std::move(bodies));
}

Status ProgramImporter::PlanLoop(const At& at) {
  const size_t carried = at.node.inputs.size() < 2 ? 0 : at.node.inputs.size() - 2;
  TN_ASSIGN_OR_RETURN(const GraphProto* g, Body(at, "body", carried + 2));
  if (g->outputs.size() < carried + 1)
    return MakeError(fmt::format("expected a body with {} outputs or more", carried + 1));
  std::vector<ValueType> types = {Scalar(kInt64), Scalar(kBool)};
  for (size_t i = 0; i < carried; ++i) {
    TN_ASSIGN_OR_RETURN(const Named initial, Value(at, i + 2));
    types.push_back(initial.type);
  }
  // Where it is tried anew nothing stays of it.
  constexpr int kMostTries = 4;
  for (int attempt = 0; attempt < kMostTries; ++attempt) {
    const size_t parts = program_.parts.size();
    graph::StepBody body;
    TN_ASSIGN_OR_RETURN(const std::vector<Named> outputs, PlanBody(*g, types, &at.frame, &body));
    bool stays = true;
    for (size_t i = 0; i < carried; ++i) {
      TN_ASSIGN_OR_RETURN(ValueType common, CommonType(types[i + 2], outputs[i + 1].type));
      stays = stays && common == types[i + 2];
      types[i + 2] = std::move(common);
    }
    if (!stays) {
      program_.parts.resize(parts);
      continue;
    }
    std::vector<ValueType> results(types.begin() + 2, types.end());
    std::vector<int32_t> numbers = {static_cast<int32_t>(carried)};
    for (size_t i = carried + 1; i < outputs.size(); ++i) {
      ValueType collected = outputs[i].type;
      TN_RETURN_IF_ERROR(Expect(collected, Kind::kTensor, i));
      // What there is when there is no iteration.
      TN_ASSIGN_OR_RETURN(const std::vector<uint32_t> word, ElementWord(collected));
      numbers.push_back(static_cast<int32_t>(word[1]));
      numbers.push_back(static_cast<int32_t>(collected.dims.size()));
      for (KnownSize& d : collected.dims) {
        d.name.clear();  // of one iteration
        numbers.push_back(static_cast<int32_t>(std::clamp<int64_t>(d.value, 0, INT32_MAX)));
      }
      if (collected.has_rank) collected.dims.insert(collected.dims.begin(), KnownSize{});
      results.push_back(std::move(collected));
    }
    std::vector<graph::StepBody> bodies;
    bodies.push_back(std::move(body));
    return Emit(at, TN_STEP_LOOP, std::move(results), std::move(numbers), std::move(bodies));
  }
  return MakeError("the types of what the loop carries do not settle");
}

Status ProgramImporter::PlanMap(const At& at) {
  TN_ASSIGN_OR_RETURN(const GraphProto* g, Body(at, "body", at.node.inputs.size()));
  std::vector<ValueType> types;
  std::vector<int32_t> is_sequence;
  for (size_t i = 0; i < at.node.inputs.size(); ++i) {
    TN_ASSIGN_OR_RETURN(const Named input, Value(at, i));
    is_sequence.push_back(input.type.kind == Kind::kSequence ? 1 : 0);
    types.push_back(is_sequence.back() != 0 ? input.type.element() : input.type);
  }
  if (is_sequence.empty() || is_sequence[0] == 0)
    return MakeError("expected a sequence as the first input");
  std::vector<graph::StepBody> bodies(1);
  TN_ASSIGN_OR_RETURN(const std::vector<Named> outputs, PlanBody(*g, types, &at.frame, &bodies[0]));
  std::vector<ValueType> results;
  for (const Named& output : outputs) {
    ValueType element = output.type;
    for (KnownSize& d : element.dims) d.name.clear();  // differs from element to element
    results.push_back(ValueType::Of(Kind::kSequence, std::move(element)));
  }
  return Emit(at, TN_STEP_MAP, std::move(results), std::move(is_sequence), std::move(bodies));
}

}  // namespace

bool NeedsProgram(const ModelProto& model) { return HasValues(model.graph); }

Expected<graph::Program> ImportProgram(std::shared_ptr<const graph::WeightFile> file,
                                       const ModelProto& model, const ImportOptions& options,
                                       bool control) {
  return ProgramImporter(std::move(file), options, model, control).Run();
}

}  // namespace tenon::onnx
