// Scan, where it is a step: as the Loop that it is.
//
//   y…, z… = Scan(s…, x…) body(s, row)     =>   n = Shape(x)[axis]
//                                              y…, z… = Loop(n, , s…) body'(i, go, s):
//                                                row = Gather(x, i)      where x is read from
//                                                outside (the body's nodes)
//
// What is scanned backwards has n - 1 - i in place of i; what is collected backwards or along
// another axis is turned around, and transposed, behind the loop.
#include <fmt/format.h>

#include "frontend/onnx/program_importer.h"

namespace tenon::onnx {

AttributeProto IntAttr(std::string_view name, int64_t value) {
  AttributeProto a;
  a.name = name;
  a.type = AttrProtoType::kInt;
  a.i = value;
  return a;
}

AttributeProto IntsAttr(std::string_view name, std::vector<int64_t> values) {
  AttributeProto a;
  a.name = name;
  a.type = AttrProtoType::kInts;
  a.ints = std::move(values);
  return a;
}

NodeProto NodeOf(std::string_view op, std::vector<std::string_view> inputs, std::string_view output,
                 std::vector<AttributeProto> attributes) {
  NodeProto n;
  n.op_type = op;
  n.inputs = std::move(inputs);
  n.outputs = {output};
  n.attributes = std::move(attributes);
  return n;
}

namespace {

// A list of `count` integers, zeros where there is none.
Expected<std::vector<int64_t>> ListOf(const NodeProto& n, std::string_view name, size_t count) {
  const AttributeProto* a = FindAttribute(n, name);
  if (!a || a->ints.empty()) return std::vector<int64_t>(count, 0);
  if (a->ints.size() == count) return a->ints;
  return MakeError(
      fmt::format("expected {} entries in {}, but got {}", count, name, a->ints.size()));
}

Expected<int64_t> AxisIn(const ValueType& type, int64_t axis) {
  const auto rank = static_cast<int64_t>(type.dims.size());
  if (type.has_rank && axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  return MakeError(fmt::format("expected an axis of {}, but got {}", type.ToString(), axis));
}

}  // namespace

/// A Scan node's attributes, axes of inputs counted from the beginning.
struct ProgramImporter::ScanForm {
  const GraphProto* body;
  size_t states, scanned, collected;
  std::vector<int64_t> axes, backwards, out_axes, out_backwards;
};

Expected<ProgramImporter::ScanForm> ProgramImporter::ReadScan(const At& at) {
  ScanForm f{};
  TN_ASSIGN_OR_RETURN(const int64_t given, Int(at, "num_scan_inputs", 0));
  f.scanned = static_cast<size_t>(given);
  if (given < 1 || f.scanned > at.node.inputs.size() || FindAttribute(at.node, "directions"))
    return MakeError("expected num_scan_inputs of 1 or more, as Scan has it from opset 9 on");
  f.states = at.node.inputs.size() - f.scanned;
  TN_ASSIGN_OR_RETURN(f.body, Body(at, "body", at.node.inputs.size()));
  if (f.body->outputs.size() < f.states || at.node.outputs.size() > f.body->outputs.size())
    return MakeError(fmt::format("expected a body with {} outputs or more", f.states));
  f.collected = f.body->outputs.size() - f.states;
  TN_ASSIGN_OR_RETURN(f.axes, ListOf(at.node, "scan_input_axes", f.scanned));
  TN_ASSIGN_OR_RETURN(f.backwards, ListOf(at.node, "scan_input_directions", f.scanned));
  TN_ASSIGN_OR_RETURN(f.out_axes, ListOf(at.node, "scan_output_axes", f.collected));
  TN_ASSIGN_OR_RETURN(f.out_backwards, ListOf(at.node, "scan_output_directions", f.collected));
  for (size_t k = 0; k < f.scanned; ++k) {
    TN_ASSIGN_OR_RETURN(const Named x, Value(at, f.states + k));
    TN_RETURN_IF_ERROR(ExpectKind(x.type, ValueType::Kind::kTensor, f.states + k));
    TN_ASSIGN_OR_RETURN(f.axes[k], AxisIn(x.type, f.axes[k]));
  }
  return f;
}

std::string_view ProgramImporter::NameFor(const At& at, std::string_view role) {
  return Keep(fmt::format("{}.{}.{}", at.node.outputs.empty() ? "" : at.node.outputs[0],
                          program_.slots, role));
}

std::string_view ProgramImporter::VectorOf(const At& at, int64_t number) {
  AttributeProto list;
  list.ints = {number};
  return KeysOf({NodeOf("", {}, NameFor(at, fmt::format("vector{}", number))), at.frame}, list);
}

// The loop's body, which reads what is scanned from outside. `count`: the number of iterations.
GraphProto ProgramImporter::LoopBodyOf(const At& at, const ScanForm& scan, std::string_view count) {
  GraphProto g = *scan.body;
  const std::string_view number = NameFor(at, "i"), go = NameFor(at, "go"),
                         back = NameFor(at, "back"), last = NameFor(at, "last");
  bool any_back = false;
  for (size_t k = 0; k < scan.scanned; ++k) {
    any_back |= scan.backwards[k] != 0;
    g.nodes.push_back(
        NodeOf("Gather", {at.node.inputs[scan.states + k], scan.backwards[k] != 0 ? back : number},
               scan.body->inputs[scan.states + k].name, {IntAttr("axis", scan.axes[k])}));
  }
  if (any_back) {
    const std::string_view most = NameFor(at, "most"), flat = NameFor(at, "flat");
    g.nodes.push_back(NodeOf("Sub", {count, VectorOf(at, 1)}, most));
    g.nodes.push_back(NodeOf("Sub", {most, number}, flat));
    g.nodes.push_back(NodeOf("Squeeze", {flat}, back));
  }
  g.nodes.push_back(NodeOf("Identity", {go}, last));
  g.inputs.resize(scan.states);
  ValueInfoProto of_number, of_go, of_last;
  of_number.name = number, of_go.name = go, of_last.name = last;
  g.inputs.insert(g.inputs.begin(), {of_number, of_go});
  g.outputs.insert(g.outputs.begin(), of_last);
  return g;
}

// What a loop has collected along its first axis as a Scan gives it.
Status ProgramImporter::PlanCollected(const At& at, std::string_view from, std::string_view to,
                                      int64_t axis, bool backwards) {
  const ValueType type = at.frame.names.Find(from)->type;
  TN_ASSIGN_OR_RETURN(const int64_t along, AxisIn(type, axis));
  if (backwards) {
    const std::string_view turned = along == 0 ? to : NameFor(at, "turned");
    const NodeProto& slice = nodes_.emplace_back(
        NodeOf("Slice",
               {from, VectorOf(at, -1), VectorOf(at, INT64_MIN), VectorOf(at, 0), VectorOf(at, -1)},
               turned));
    TN_RETURN_IF_ERROR(PlanInstead(at, slice));
    from = turned;
  }
  if (along == 0) return Ok();
  std::vector<int64_t> perm;
  for (int64_t d = 1; d < static_cast<int64_t>(type.dims.size()); ++d) perm.push_back(d);
  perm.insert(perm.begin() + along, 0);
  return PlanInstead(
      at, nodes_.emplace_back(NodeOf("Transpose", {from}, to, {IntsAttr("perm", perm)})));
}

Status ProgramImporter::PlanScan(const At& at) {
  TN_ASSIGN_OR_RETURN(const ScanForm scan, ReadScan(at));
  const std::string_view sizes = NameFor(at, "sizes"), count = NameFor(at, "count");
  const auto states = static_cast<ptrdiff_t>(scan.states);
  TN_RETURN_IF_ERROR(
      PlanInstead(at, nodes_.emplace_back(NodeOf("Shape", {at.node.inputs[scan.states]}, sizes))));
  TN_RETURN_IF_ERROR(PlanInstead(
      at, nodes_.emplace_back(NodeOf("Gather", {sizes, VectorOf(at, scan.axes[0])}, count))));
  NodeProto& loop = nodes_.emplace_back();
  loop.name = at.node.name;
  loop.op_type = "Loop";
  loop.inputs = {count, ""};
  loop.inputs.insert(loop.inputs.end(), at.node.inputs.begin(), at.node.inputs.begin() + states);
  loop.outputs = at.node.outputs;
  AttributeProto& body = loop.attributes.emplace_back();
  body.name = "body";
  body.type = AttrProtoType::kGraph;
  body.graph.push_back(LoopBodyOf(at, scan, count));
  std::vector<size_t> turned;
  for (size_t k = 0; k < scan.collected && scan.states + k < loop.outputs.size(); ++k) {
    std::string_view& output = loop.outputs[scan.states + k];
    if (output.empty() || (scan.out_axes[k] == 0 && scan.out_backwards[k] == 0)) continue;
    output = NameFor(at, fmt::format("collected{}", k));
    turned.push_back(k);
  }
  TN_RETURN_IF_ERROR(PlanLoop({loop, at.frame}));
  for (size_t k : turned) {
    TN_RETURN_IF_ERROR(PlanCollected(at, loop.outputs[scan.states + k],
                                     at.node.outputs[scan.states + k], scan.out_axes[k],
                                     scan.out_backwards[k] != 0));
  }
  return Ok();
}

}  // namespace tenon::onnx
