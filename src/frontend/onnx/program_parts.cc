// Parts of programs: runs of nodes on tensors as models of their own.
#include <fmt/format.h>

#include <set>

#include "frontend/onnx/program_importer.h"
#include "graph/dims.h"
#include "support/strings.h"

namespace tenon::onnx {

using graph::Quoted;

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

// The name of a size that an expression tells, which no other has.
std::string ProgramImporter::SizeName(const std::string& expression) {
  std::string name = ToIdentifier(expression);
  while (size_names_.emplace(name, expression).first->second != expression) name += '_';
  return name;
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
      out.push_back({-1, SizeName(fmt::format("p{}_{}", part, graph::DimText(d)))});
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
  faults_.of_found_sizes.clear();
  TN_ASSIGN_OR_RETURN(ImportedPart part, ImportPart(file_, model, part_options_, &faults_));
  if (part.assumes_rank)
    return MakeError("expected results of known ranks, but which axes are of 1 is open");
  size_t i = 0;
  for (std::string_view name : wanted) {
    Named named;
    named.slot = program_.slots++;
    const graph::ValueId v = part.graph.outputs[i];
    named.type =
        ValueType::Tensor(part.output_types[i], SizesOf(part.graph, v, program_.parts.size()));
    if (const auto known = graph::ReadInts(part.graph.value(v), 1); known && known->size() == 1)
      named.number = known->front();
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

}  // namespace tenon::onnx
