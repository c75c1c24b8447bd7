#include "frontend/onnx/scan_lengths.h"

#include <fmt/format.h>

#include <utility>

#include "frontend/onnx/program_importer.h"

namespace tenon::onnx {

NodeProto NodeOf(std::string_view op, int64_t opset, std::vector<std::string_view> inputs,
                 std::vector<std::string_view> outputs) {
  NodeProto n;
  n.op_type = op;
  n.opset = opset;
  n.inputs = std::move(inputs);
  n.outputs = std::move(outputs);
  return n;
}

namespace {

constexpr int64_t kLengthsOpset = 15;  // the first that knows CastLike

NodeProto NumberNode(int64_t value, std::string_view output) {
  NodeProto n = NodeOf("Constant", kLengthsOpset, {}, {output});
  n.attributes = {IntAttr("value_int", value)};
  return n;
}

// The body of a scan that carries the number of its step as the first state, and stands still from
// step `length` on.
GraphProto StandingStill(GraphProto body, size_t states, std::string_view length,
                         const NameMaker& name) {
  const std::string_view step = name("step"), next = name("next"), goes = name("goes"),
                         one = name("one"), zero = name("zero");
  const auto add = [&](std::string_view op, std::vector<std::string_view> inputs,
                       std::string_view output) {
    body.nodes.push_back(NodeOf(op, kLengthsOpset, std::move(inputs), {output}));
  };
  body.nodes.push_back(NumberNode(1, one));
  body.nodes.push_back(NumberNode(0, zero));
  add("Add", {step, one}, next);
  add("Less", {step, length}, goes);
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    const std::string_view made = body.outputs[i].name, kept = name(fmt::format("kept{}", i));
    std::string_view other = i < states ? body.inputs[i].name : std::string_view();
    if (i >= states) {
      other = name(fmt::format("none{}", i));
      add("CastLike", {zero, made}, other);
    }
    add("Where", {goes, made, other}, kept);
    body.outputs[i] = {};
    body.outputs[i].name = kept;
  }
  ValueInfoProto of_step, of_next;
  of_step.name = step, of_next.name = next;
  body.inputs.insert(body.inputs.begin(), of_step);
  body.outputs.insert(body.outputs.begin(), of_next);
  return body;
}

}  // namespace

void LimitSteps(size_t states, std::string_view entry, const NameMaker& name, NodeProto* scan,
                GraphProto* one) {
  const std::string_view length = name("length"), first = name("first");
  one->nodes.push_back(NodeOf("Gather", kLengthsOpset, {one->inputs.back().name, entry}, {length}));
  one->nodes.push_back(NumberNode(0, first));
  scan->inputs.insert(scan->inputs.begin(), first);
  scan->outputs.insert(scan->outputs.begin(), "");
  for (AttributeProto& a : scan->attributes) {
    if (a.name == "body" && !a.graph.empty())
      a.graph[0] = StandingStill(std::move(a.graph[0]), states, length, name);
  }
}

}  // namespace tenon::onnx
