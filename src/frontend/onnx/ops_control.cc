// If, Loop and Scan: operators that hold graphs.
//
// A loop is imported once, as it runs when its condition holds. Where that leaves the condition at
// true and the number of iterations is known, it becomes a counted `loop`; else a `while`, which
// carries what decides besides: the iteration's number.
#include <algorithm>
#include <deque>
#include <unordered_set>

#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/index_checks.h"
#include "frontend/onnx/narrow.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/scan_lengths.h"
#include "graph/edit.h"

namespace tenon::onnx {
namespace {

const DType kI64 = DType::Int(64);

// An input of one element as a scalar.
Expected<ValueId> AsScalar(Builder& b, ValueId v, DType dtype, const char* what) {
  const graph::Type& type = b.graph().value(v).type;
  if (!type.IsTensor() || type.tensor().dtype != dtype ||
      graph::StaticCount(type.tensor().dims) != 1) {
    return MakeError(fmt::format("expected {} to be one element of {}, but got {}", what,
                                 dtype.ToString(), type.ToString()));
  }
  return b.Add(OpKind::kReshape, {v}, "", {}, {{"shape", {}}});
}

std::optional<bool> KnownBool(const Builder& b, ValueId v) {
  const std::optional<std::vector<int64_t>> known = b.KnownInts(v);
  if (!known || known->size() != 1) return std::nullopt;
  return known->front() != 0;
}

ValueId BoolScalar(Builder& b, bool value) {
  const int64_t number = value;
  return b.Constant("", TensorType{DType::Bool(), {}},
                    graph::MakePayload(DType::Bool(), std::span<const int64_t>(&number, 1)));
}

ValueId IntScalar(Builder& b, int64_t value) {
  return b.Constant("", TensorType{kI64, {}},
                    graph::MakePayload(kI64, std::span<const int64_t>(&value, 1)));
}

Status SetOutputs(OpContext& c, std::span<const ValueId> values) {
  for (size_t i = 0; i < values.size(); ++i) TN_RETURN_IF_ERROR(c.SetOutput(i, values[i]));
  return Ok();
}

using NarrowTypes = std::vector<const NarrowType*>;

// Sets outputs to what regions gave, of which these are bytes of narrow types.
Status SetOutputs(OpContext& c, std::span<const ValueId> values, const NarrowTypes& narrow) {
  TN_RETURN_IF_ERROR(SetOutputs(c, values));
  for (size_t i = 0; i < values.size(); ++i) c.SetNarrow(i, narrow[i]);
  return Ok();
}

const char* NameOf(const NarrowType* type) { return type ? type->name : "numbers"; }

Status CheckNarrow(const OpContext& c, size_t i, const NarrowType* before,
                   const NarrowType* after) {
  if (after == before) return Ok();
  return c.Error("expected carried value {} to keep its type, but it begins as {} and becomes {}",
                 i, NameOf(before), NameOf(after));
}

// ---- If ----

// Both regions capture what either does.
std::vector<ValueId> UniteCaptures(std::span<ImportedRegion> regions) {
  std::vector<ValueId> all;
  std::unordered_set<ValueId> seen;
  for (const ImportedRegion& r : regions) {
    for (const Capture& x : r.captures) {
      if (seen.insert(x.outer).second) all.push_back(x.outer);
    }
  }
  return all;
}

Status ImportIf(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const GraphProto* then_graph, c.GraphAttr("then_branch"));
  TN_ASSIGN_OR_RETURN(const GraphProto* else_graph, c.GraphAttr("else_branch"));
  TN_RETURN_IF_ERROR(c.FixOne(0));
  TN_ASSIGN_OR_RETURN(ValueId condition, AsScalar(c.b, c.In(0), DType::Bool(), "the condition"));
  const size_t count = c.num_outputs();
  for (const GraphProto* g : {then_graph, else_graph}) {
    if (g->outputs.size() != count)
      return c.Error("expected branches with {} outputs, but got {}", count, g->outputs.size());
  }
  if (const std::optional<bool> known = KnownBool(c.b, condition)) {
    TN_ASSIGN_OR_RETURN(std::vector<ValueId> values,
                        c.regions().Inline(*known ? *then_graph : *else_graph, {}));
    return SetOutputs(c, values);
  }
  static_cast<void>(c.Narrow(0));  // regions say of which types their results are
  std::vector<ImportedRegion> made;
  for (const GraphProto* g : {then_graph, else_graph}) {
    TN_ASSIGN_OR_RETURN(ImportedRegion region, c.regions().Import(*g, {}));
    made.push_back(std::move(region));
  }
  for (size_t i = 0; i < count; ++i) {
    const graph::Type &a = made[0].TypeOf(i), &b = made[1].TypeOf(i);
    if (!(a == b)) {
      return c.Error("expected both branches to give one type for output {}, but got {} and {}", i,
                     a.ToString(), b.ToString());
    }
    if (made[0].narrow[i] != made[1].narrow[i])
      return c.Error("expected both branches to give one type for output {}, but got {} and {}", i,
                     NameOf(made[0].narrow[i]), NameOf(made[1].narrow[i]));
  }
  const NarrowTypes narrow = made[0].narrow;
  const std::vector<ValueId> captured = UniteCaptures(made);
  std::vector<ValueId> inputs = {condition};
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  std::vector<graph::Graph> regions;
  for (ImportedRegion& r : made) regions.push_back(std::move(r).Finish(c.b, {}, captured));
  TN_ASSIGN_OR_RETURN(std::vector<ValueId> values,
                      c.EmitRegions(OpKind::kIf, std::move(inputs), std::move(regions)));
  return SetOutputs(c, values, narrow);
}

// ---- Loop ----

// A loop as ONNX writes it.
struct LoopNode {
  size_t carried;
  ValueId trip = kNoValue;       // i64 scalar; kNoValue: no bound
  ValueId condition = kNoValue;  // bool scalar; kNoValue: true
  std::vector<ValueId> initial;
};

Expected<LoopNode> ReadLoop(OpContext& c, const GraphProto& body) {
  LoopNode loop;
  if (c.num_inputs() < 2 || body.inputs.size() != c.num_inputs()) {
    return c.Error("expected a body with {} inputs like the node, but got {}", c.num_inputs(),
                   body.inputs.size());
  }
  loop.carried = c.num_inputs() - 2;
  if (body.outputs.size() < loop.carried + 1 || c.num_outputs() > body.outputs.size() - 1) {
    return c.Error("expected a body with {} outputs or more, but got {}",
                   std::max(loop.carried, c.num_outputs()) + 1, body.outputs.size());
  }
  for (size_t i = 0; i < 2; ++i) TN_RETURN_IF_ERROR(c.FixOne(i));
  if (c.Has(0)) {
    TN_ASSIGN_OR_RETURN(loop.trip, AsScalar(c.b, c.In(0), kI64, "the trip count"));
  }
  if (c.Has(1)) {
    TN_ASSIGN_OR_RETURN(loop.condition, AsScalar(c.b, c.In(1), DType::Bool(), "the condition"));
  }
  for (size_t i = 0; i < loop.carried; ++i) {
    if (!c.Has(i + 2)) return c.Error("expected input {}, but it is left out", i + 2);
    loop.initial.push_back(c.In(i + 2));
  }
  return loop;
}

// What is carried keeps its type; that sizes are those it began with is a fact where they are open.
Status KeepCarried(const OpContext& c, size_t i, ValueId initial, ImportedRegion& body,
                   size_t output) {
  const graph::Type &before = c.b.graph().value(initial).type, &after = body.TypeOf(output);
  if (after == before) return Ok();
  if (after.IsTensor() && before.IsTensor() && after.tensor().dtype == before.tensor().dtype) {
    TN_ASSIGN_OR_RETURN(const ValueId kept, Conform(*body.builder, body.outputs[output],
                                                    before.tensor().dims, c.name()));
    body.outputs[output] = kept == kNoValue ? body.outputs[output] : kept;
    if (kept != kNoValue) return Ok();
  }
  return c.Error(
      "expected carried value {} to keep its type, but it begins as {} and the body gives {}", i,
      before.ToString(), after.ToString());
}

std::vector<ValueId> OuterOf(const ImportedRegion& region) {
  std::vector<ValueId> out;
  for (const Capture& x : region.captures) out.push_back(x.outer);
  return out;
}

// The body's formals are the iteration's number and the carried values.
Expected<std::vector<ValueId>> EmitCounted(OpContext& c, std::vector<ValueId> initial,
                                           ImportedRegion body, Expr count) {
  const auto carried = static_cast<int64_t>(initial.size());
  const std::vector<ValueId> captured = OuterOf(body), formals = body.formals;
  std::vector<ValueId> inputs = std::move(initial);
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  std::vector<graph::Graph> regions;
  regions.push_back(std::move(body).Finish(c.b, formals, captured));
  return c.EmitRegions(OpKind::kLoop, std::move(inputs), std::move(regions), {{"carried", carried}},
                       {{"count", {std::move(count)}}});
}

// The iteration's number is carried first where it decides, or the body reads it.
Status EmitWhile(OpContext& c, const LoopNode& loop, ImportedRegion body) {
  for (size_t i = loop.carried; i < c.num_outputs(); ++i) {
    if (!c.Wants(i)) continue;
    return c.Error(
        "output {} ({}) collects what each iteration gives, and how many there are is known only "
        "when the loop runs, which is not supported",
        i, graph::Quoted(c.node.outputs[i]));
  }
  const NarrowTypes narrow(body.narrow.begin() + 1,
                           body.narrow.begin() + static_cast<long>(loop.carried) + 1);
  body.outputs.resize(loop.carried + 1);
  Builder& inner = *body.builder;
  const ValueId number = body.formals[0];
  const bool counts =
      loop.trip != kNoValue || graph::UseCounts(inner.graph())[static_cast<size_t>(number)] > 0 ||
      std::find(body.outputs.begin(), body.outputs.end(), number) != body.outputs.end();
  TN_ASSIGN_OR_RETURN(ValueId go_on,
                      AsScalar(inner, body.outputs[0], DType::Bool(), "the body's condition"));
  std::vector<ValueId> inputs = {loop.condition == kNoValue ? BoolScalar(c.b, true)
                                                            : loop.condition};
  body.formals.erase(body.formals.begin(), body.formals.begin() + 2);
  if (counts) {
    TN_ASSIGN_OR_RETURN(ValueId next, inner.Add(OpKind::kAdd, {number, IntScalar(inner, 1)}));
    if (loop.trip != kNoValue) {
      const ValueId most = body.CaptureValue(c.b, loop.trip);
      TN_ASSIGN_OR_RETURN(ValueId below, inner.Add(OpKind::kLess, {next, most}));
      TN_ASSIGN_OR_RETURN(go_on, inner.Add(OpKind::kAnd, {go_on, below}));
      TN_ASSIGN_OR_RETURN(below, c.b.Add(OpKind::kLess, {IntScalar(c.b, 0), loop.trip}));
      TN_ASSIGN_OR_RETURN(inputs[0], c.b.Add(OpKind::kAnd, {inputs[0], below}));
    }
    body.outputs.insert(body.outputs.begin() + 1, next);
    body.formals.insert(body.formals.begin(), number);
    inputs.push_back(IntScalar(c.b, 0));
  }
  body.outputs[0] = go_on;
  const std::vector<ValueId> captured = OuterOf(body);
  inputs.insert(inputs.end(), loop.initial.begin(), loop.initial.end());
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  const std::vector<ValueId> formals = body.formals;
  const auto carried = static_cast<int64_t>(formals.size());
  std::vector<graph::Graph> regions;
  regions.push_back(std::move(body).Finish(c.b, formals, captured));
  TN_ASSIGN_OR_RETURN(
      std::vector<ValueId> values,
      c.EmitRegions(OpKind::kWhile, std::move(inputs), std::move(regions), {{"carried", carried}}));
  return SetOutputs(c, std::span(values).subspan(counts ? 1 : 0), narrow);
}

Status ImportLoop(OpContext& c) {
  TN_ASSIGN_OR_RETURN(const GraphProto* graph, c.GraphAttr("body"));
  TN_ASSIGN_OR_RETURN(LoopNode loop, ReadLoop(c, *graph));
  std::vector<Formal> formals = {{TensorType{kI64, {}}, std::nullopt, nullptr},
                                 {TensorType{DType::Bool(), {}}, true, nullptr}};
  for (size_t i = 0; i < loop.carried; ++i)
    formals.push_back(
        {c.b.graph().value(loop.initial[i]).type, std::nullopt, nullptr, c.Narrow(i + 2)});
  TN_ASSIGN_OR_RETURN(ImportedRegion body, c.regions().Import(*graph, formals));
  for (size_t i = 0; i < loop.carried; ++i) {
    TN_RETURN_IF_ERROR(KeepCarried(c, i, loop.initial[i], body, i + 1));
    TN_RETURN_IF_ERROR(CheckNarrow(c, i, formals[i + 2].narrow, body.narrow[i + 1]));
  }
  const std::optional<bool> first =
      loop.condition == kNoValue ? std::optional(true) : KnownBool(c.b, loop.condition);
  const bool goes_on = KnownBool(*body.builder, body.outputs[0]) == true;
  const bool trips = first != false && goes_on && loop.trip != kNoValue;
  // What is collected has a size, so the number of iterations is one.
  const bool collects = c.num_outputs() > loop.carried;
  const Elements* trip = trips && first ? c.b.Known(loop.trip) : nullptr;
  if (first == false || trip || (trips && collects)) {
    const Formula f(c);
    const Expr count = first == false ? IndexConst(0)
                       : trip         ? graph::DimMax((*trip)[0], IndexConst(0))
                       : first        ? SizeOf(Max(f.Of(loop.trip), 0))
                               : SizeOf(Where(f.Of(loop.condition), Max(f.Of(loop.trip), 0), 0));
    TN_RETURN_IF_ERROR(f.Done());
    const NarrowTypes narrow(body.narrow.begin() + 1, body.narrow.end());
    body.outputs.erase(body.outputs.begin());
    body.formals.erase(body.formals.begin() + 1);  // the condition, which is a constant
    TN_ASSIGN_OR_RETURN(const std::vector<ValueId> values,
                        EmitCounted(c, loop.initial, std::move(body), count));
    return SetOutputs(c, values, narrow);
  }
  if (loop.carried == 0) return c.Error("a loop that carries nothing is not supported");
  return EmitWhile(c, loop, std::move(body));
}

// ---- Scan ----

// One entry per input or output that is scanned; all alike where the attribute is left out.
Expected<std::vector<int64_t>> ReadPerScan(OpContext& c, const char* name, size_t count) {
  TN_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> list, c.Ints(name));
  if (list && list->size() != count)
    return c.Error("expected {} entries in {}, but got {}", count, name, list->size());
  return list.value_or(std::vector<int64_t>(count, 0));
}

Status CheckDirections(const OpContext& c, const char* name, const std::vector<int64_t>& list) {
  for (int64_t d : list) {
    if (d != 0 && d != 1) return c.Error("expected 0 or 1 in {}, but got {}", name, d);
  }
  return Ok();
}

/// A scan: its body, the states it begins with, what is scanned, and how, with an entry each.
struct ScanNode {
  const GraphProto* body;
  std::vector<Val> states, scanned;
  std::vector<int64_t> axes, reversed, out_axes, out_reversed;
  NarrowTypes narrow;  // of states and of what is scanned
};

// A counted loop: what is scanned is captured whole, and its element of the iteration taken inside.
// The states it ends with, then what each iteration gave; `narrow`: which of these are bytes.
Expected<std::vector<Val>> Scanned(OpContext& c, const Formula& f, const ScanNode& scan,
                                   NarrowTypes* narrow) {
  const size_t states = scan.states.size();
  std::vector<Formal> formals;
  for (const Val& x : scan.states)
    formals.push_back({TensorType{x.dtype(), x.dims()}, std::nullopt, nullptr, nullptr});
  ValueId number = kNoValue;
  Expr count;
  for (size_t k = 0; k < scan.scanned.size(); ++k) {
    const Val& x = scan.scanned[k];
    TN_ASSIGN_OR_RETURN(const int64_t axis,
                        c.NormalizeAxis(scan.axes[k], x.rank(), "scan_input_axes"));
    if (count && graph::ProveDifferent(count, x.dim(axis)))
      return c.Error("expected inputs of one length to scan, but got {} and {}",
                     graph::DimText(count), graph::DimText(x.dim(axis)));
    if (count) c.b.Require(Eq(count, x.dim(axis)));
    if (!count) count = x.dim(axis);
    const Val whole = scan.reversed[k] != 0 ? Flip(x, axis) : x;
    TN_RETURN_IF_ERROR(f.Done());
    formals.push_back({{}, std::nullopt, [&c, &number, whole, axis](ImportedRegion& region) {
                         Builder& b = *region.builder;
                         if (number == kNoValue) number = b.Input("i", TensorType{kI64, {}});
                         return b.Add(OpKind::kGather,
                                      {region.CaptureValue(c.b, whole.id()), number}, "",
                                      {{"axis", axis}});
                       }});
  }
  TN_RETURN_IF_ERROR(f.Done());
  for (size_t i = 0; i < formals.size(); ++i) formals[i].narrow = scan.narrow[i];
  TN_ASSIGN_OR_RETURN(ImportedRegion body, c.regions().Import(*scan.body, formals));
  *narrow = body.narrow;
  std::vector<ValueId> initial;
  for (size_t i = 0; i < states; ++i) {
    initial.push_back(scan.states[i].id());
    TN_RETURN_IF_ERROR(KeepCarried(c, i, initial[i], body, i));
    TN_RETURN_IF_ERROR(CheckNarrow(c, i, scan.narrow[i], body.narrow[i]));
  }
  body.formals.resize(states);
  body.formals.insert(body.formals.begin(), number);
  TN_ASSIGN_OR_RETURN(const std::vector<ValueId> values,
                      EmitCounted(c, initial, std::move(body), std::move(count)));
  std::vector<Val> out;
  for (size_t i = 0; i < values.size(); ++i) {
    Val v = f.Of(values[i]);
    if (i >= states) {
      const size_t k = i - states;
      TN_ASSIGN_OR_RETURN(const int64_t axis,
                          c.NormalizeAxis(scan.out_axes[k], v.rank(), "scan_output_axes"));
      Axes perm = AxesFrom(v, 1);
      perm.insert(perm.begin() + axis, 0);
      v = Transpose(v, perm);
      if (scan.out_reversed[k] != 0) v = Flip(v, axis);
    }
    out.push_back(v);
  }
  TN_RETURN_IF_ERROR(f.Done());
  return out;
}

// The inputs from `first` on: states, then what is scanned.
Expected<ScanNode> ReadScan(OpContext& c, const Formula& f, size_t first) {
  ScanNode scan;
  TN_ASSIGN_OR_RETURN(scan.body, c.GraphAttr("body"));
  TN_ASSIGN_OR_RETURN(const int64_t scanned, c.Int("num_scan_inputs", std::nullopt));
  const size_t inputs = c.num_inputs() - std::min(first, c.num_inputs());
  if (scanned < 1 || scanned > static_cast<int64_t>(inputs))
    return c.Error("expected num_scan_inputs in 1..{}, but got {}", inputs, scanned);
  const size_t states = inputs - static_cast<size_t>(scanned);
  if (scan.body->outputs.size() < states || c.num_outputs() > scan.body->outputs.size())
    return c.Error("expected a body with {} outputs or more, but got {}",
                   std::max(states, c.num_outputs()), scan.body->outputs.size());
  for (size_t i = first; i < c.num_inputs(); ++i) {
    if (!c.Has(i)) return c.Error("expected input {}, but it is left out", i);
    (i < first + states ? scan.states : scan.scanned).push_back(f.In(i));
    scan.narrow.push_back(c.Narrow(i));
  }
  const size_t collected = scan.body->outputs.size() - states, count = scan.scanned.size();
  const bool old = c.opset < 9;
  const char* directions = old ? "directions" : "scan_input_directions";
  TN_ASSIGN_OR_RETURN(scan.reversed, ReadPerScan(c, directions, count));
  TN_RETURN_IF_ERROR(CheckDirections(c, directions, scan.reversed));
  scan.axes.assign(count, 0);
  scan.out_axes.assign(collected, 0);
  scan.out_reversed.assign(collected, 0);
  if (old) return scan;
  TN_ASSIGN_OR_RETURN(scan.axes, ReadPerScan(c, "scan_input_axes", count));
  TN_ASSIGN_OR_RETURN(scan.out_axes, ReadPerScan(c, "scan_output_axes", collected));
  TN_ASSIGN_OR_RETURN(scan.out_reversed, ReadPerScan(c, "scan_output_directions", collected));
  TN_RETURN_IF_ERROR(CheckDirections(c, "scan_output_directions", scan.out_reversed));
  return scan;
}

Status ImportScan(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(c.num_inputs(), static_cast<int>(c.num_inputs())));
  const Formula f(c);
  TN_ASSIGN_OR_RETURN(const ScanNode scan, ReadScan(c, f, 0));
  NarrowTypes narrow;
  TN_ASSIGN_OR_RETURN(const std::vector<Val> values, Scanned(c, f, scan, &narrow));
  for (size_t i = 0; i < c.num_outputs(); ++i) {
    TN_RETURN_IF_ERROR(c.SetOutput(i, values[i].id()));
    c.SetNarrow(i, narrow[i]);
  }
  return Ok();
}

// How many steps there are for each entry of a batch.
Expected<Val> LengthsOf(OpContext& c, const Formula& f, const ScanNode& batch) {
  const Dims dims = batch.scanned[0].dims();
  if (dims.size() < 2 || c.Rank(0) != 1 || c.Type(0).dtype != kI64 ||
      graph::ProveDifferent(c.Dims(0)[0], dims[0]))
    return c.Error("expected a length of i64 for each of {} sequences, but got {}",
                   dims.empty() ? "no" : graph::DimText(dims[0]), c.Type(0).ToString());
  if (std::any_of(batch.reversed.begin(), batch.reversed.end(), [](int64_t d) { return d != 0; }))
    return c.Error("sequence_lens beside directions of 1 are not supported");
  c.b.Require(Eq(c.Dims(0)[0], dims[0]));
  return InRange(c, 0, f.In(0), graph::DimAdd(dims[1], IndexConst(1)));
}

// Until opset 8 all has a batch axis, of which the body knows nothing: a loop over its entries,
// which collects what a scan of each gives.
Status ImportScan8(OpContext& c) {
  constexpr int64_t kScan = 9;  // the first that knows no batch
  const Formula f(c);
  TN_ASSIGN_OR_RETURN(const ScanNode batch, ReadScan(c, f, 1));
  const Expr count = batch.scanned[0].dim(0);
  std::deque<std::string> names;
  const auto name = [&](std::string_view role) {
    return std::string_view(names.emplace_back(fmt::format("{}/{}#", c.name(), role)));
  };
  const std::string_view number = name("entry");
  GraphProto one;
  one.inputs.emplace_back().name = number;
  NodeProto scan = NodeOf("Scan", kScan, {}, {});
  for (const auto* all : {&batch.states, &batch.scanned}) {
    for (const Val& x : *all) {
      if (graph::ProveDifferent(x.dim(0), count))
        return c.Error("expected one batch, but got {} and {}", graph::DimText(count),
                       graph::DimText(x.dim(0)));
      c.b.Require(Eq(x.dim(0), count));
    }
  }
  for (size_t i = 1; i < c.num_inputs(); ++i) {
    scan.inputs.push_back(name(fmt::format("in{}", i)));
    one.nodes.push_back(NodeOf("Gather", kScan, {c.node.inputs[i], number}, {scan.inputs.back()}));
  }
  for (size_t i = 0; i < c.num_outputs(); ++i) {
    scan.outputs.push_back(name(fmt::format("out{}", i)));
    one.outputs.emplace_back().name = scan.outputs.back();
  }
  for (const AttributeProto& a : c.node.attributes) {
    scan.attributes.push_back(a);
    if (a.name == "directions") scan.attributes.back().name = "scan_input_directions";
  }
  std::vector<Formal> formals = {{TensorType{kI64, {}}, std::nullopt, nullptr}};
  if (c.Has(0)) {
    TN_ASSIGN_OR_RETURN(const Val lengths, LengthsOf(c, f, batch));
    one.inputs.emplace_back().name = name("lengths");
    formals.push_back({TensorType{kI64, lengths.dims()}, std::nullopt,
                       [&c, id = lengths.id()](ImportedRegion& r) -> Expected<ValueId> {
                         return r.CaptureValue(c.b, id);
                       }});
    LimitSteps(batch.states.size(), number, name, &scan, &one);
  }
  one.nodes.push_back(std::move(scan));
  TN_RETURN_IF_ERROR(f.Done());
  TN_ASSIGN_OR_RETURN(ImportedRegion body, c.regions().Import(one, formals));
  body.formals.resize(1);
  TN_ASSIGN_OR_RETURN(const std::vector<ValueId> values,
                      EmitCounted(c, {}, std::move(body), count));
  return SetOutputs(c, values);
}

// ---- Optionals: of a tensor it is known whether it is there ----

Status ImportOptionalHasElement(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(0, 1));
  return c.SetOutput(0, BoolScalar(c.b, c.Has(0)));
}

Status ImportOptionalGetElement(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  return c.SetOutput(0, c.In(0));
}

constexpr OpRow kRows[] = {
    {"OptionalHasElement", 15, ImportOptionalHasElement},
    {"OptionalGetElement", 15, ImportOptionalGetElement},
    {"If", 1, ImportIf},
    {"Scan", 8, ImportScan8},
    {"Scan", 9, ImportScan},
    {"Loop", 1, ImportLoop},
};

}  // namespace

std::span<const OpRow> ControlRows() { return kRows; }

}  // namespace tenon::onnx
