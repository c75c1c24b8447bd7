// Steps of programs: the types of their results, and what they are told besides their inputs.
#include <fmt/format.h>

#include "frontend/onnx/import.h"
#include "frontend/onnx/narrow.h"
#include "frontend/onnx/op_context.h"
#include "frontend/onnx/program_importer.h"
#include "frontend/onnx/regex.h"
#include "support/strings.h"

namespace tenon::onnx {

using graph::Quoted;
using Kind = ValueType::Kind;

namespace {

constexpr auto kString = static_cast<int32_t>(ElemType::kString);
constexpr auto kBool = static_cast<int32_t>(ElemType::kBool);
constexpr auto kInt64 = static_cast<int32_t>(ElemType::kInt64);

}  // namespace

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

Status ExpectKind(const ValueType& type, Kind kind, size_t i) {
  if (type.kind == kind) return Ok();
  const char* what = kind == Kind::kSequence ? "a sequence"
                     : kind == Kind::kMap    ? "a map"
                                             : "a tensor";
  return MakeError(fmt::format("expected input {} to be {}, but got {}", i, what, type.ToString()));
}

Status ProgramImporter::PlanInstead(const At& at, const NodeProto& node) {
  if (RoleOf(node, at.frame.names, {}) == Role::kStep) return PlanStep(node, &at.frame);
  std::set<std::string_view> wanted(node.outputs.begin(), node.outputs.end());
  wanted.erase("");
  return PlanPart({&node}, wanted, &at.frame);
}

Status ProgramImporter::PlanOperator(const At& at) {
  const std::string_view op = at.node.op_type;
  if (op == "If") return PlanIf(at);
  if (op == "Loop") return PlanLoop(at);
  if (op == "Scan") return PlanScan(at);
  if (op == "SequenceMap") return PlanMap(at);
  if (op == "Unique") return PlanUnique(at);
  if (op == "ZipMap") return PlanZipMap(at);
  if (op == "DictVectorizer") return PlanDictVectorizer(at);
  if (op == "CastMap") return PlanCastMap(at);
  if (op.starts_with("Optional") || op == "Identity") return PlanOptionalStep(at);
  if (op.starts_with("Seq") || op.ends_with("Sequence")) return PlanSequenceStep(at);
  return PlanStringStep(at);
}

bool ProgramImporter::Lasts(const At& at) {
  for (const AttributeProto& a : at.node.attributes)
    if (!a.graph.empty()) return false;
  std::vector<graph::Step> steps;
  Frame frame{&steps, {&at.frame.names}};
  for (std::string_view input : at.node.inputs) {
    const Named* named = at.frame.names.Find(input);
    if (!named || named->constant || named->maker || !named->type.IsTensor()) continue;
    Named& open = frame.names.here[input] = *named;
    open.type = WithoutRank(named->type);
  }
  return !PlanOperator({at.node, frame});
}

Status ProgramImporter::PlanStep(const NodeProto& node, Frame* frame) {
  const At at{node, *frame};
  Status done = PlanOperator(at);
  if (done) return done;
  const bool lasts = Lasts(at);
  for (Diagnostic& d : done.errors()) {
    if (d.loc.item.empty()) d.loc = {.file = file_->path, .item = DescribeNode(node, 0)};
    if (lasts) faults_.lasting.insert(FaultOf(d));
  }
  return done;
}

namespace {

// The words of what a tensor's elements are inside of a program.
Expected<std::vector<uint32_t>> ElementWord(const ValueType& t) {
  return Scalar(t.IsString() ? kInt64 : t.elem_type).Encode();
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
    TN_RETURN_IF_ERROR(ExpectKind(first.type, Kind::kTensor, 0));
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
  TN_RETURN_IF_ERROR(ExpectKind(first.type, Kind::kSequence, 0));
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
  TN_RETURN_IF_ERROR(ExpectKind(first.type, Kind::kTensor, 0));
  if (op == "Cast" || op == "CastLike") {
    TN_ASSIGN_OR_RETURN(int64_t to, Int(at, "to", 0));
    if (op == "CastLike") {
      TN_ASSIGN_OR_RETURN(const Named like, Value(at, 1));
      TN_RETURN_IF_ERROR(ExpectKind(like.type, Kind::kTensor, 1));
      to = like.type.elem_type;
    }
    NodeProto cast = at.node;  // of one input
    cast.inputs.resize(1);
    ValueType out = first.type;
    out.elem_type = static_cast<int32_t>(to);
    if (to == kString) {
      if (NarrowTypeOf(first.type.elem_type))
        return MakeError("narrow numbers are not cast to strings");
      return Emit({cast, at.frame}, TN_STEP_TO_STRING, {out});
    }
    if (NarrowTypeOf(out.elem_type)) return MakeError("strings are not cast to narrow numbers");
    TN_ASSIGN_OR_RETURN(const std::vector<uint32_t> type, out.Encode());
    return Emit({cast, at.frame}, TN_STEP_FROM_STRING, {out}, {static_cast<int32_t>(type[1])});
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

// In the order of strings: ranks are integers, of which Unique is a kernel.
Status ProgramImporter::PlanUnique(const At& at) {
  TN_ASSIGN_OR_RETURN(const Named first, Value(at, 0));
  const auto name = [&](const char* role) {
    return Keep(fmt::format("{}.{}", at.node.outputs.empty() ? "" : at.node.outputs[0], role));
  };
  NodeProto ranks;
  ranks.inputs = {at.node.inputs[0]};
  ranks.outputs = {name("ranks"), name("distinct")};
  ValueType of_ranks = first.type;
  of_ranks.elem_type = kInt64;
  TN_RETURN_IF_ERROR(Emit({ranks, at.frame}, TN_STEP_STRING_RANKS,
                          {of_ranks, ValueType::Tensor(kString, {KnownSize{}})}));
  NodeProto& unique = nodes_.emplace_back(at.node);
  unique.inputs = {ranks.outputs[0]};
  if (unique.outputs.empty()) return MakeError("expected an output");
  unique.outputs[0] = name("places");
  NodeProto& gather = nodes_.emplace_back();
  gather.op_type = "Gather";
  gather.inputs = {ranks.outputs[1], unique.outputs[0]};
  gather.outputs = {at.node.outputs[0]};
  std::set<std::string_view> wanted(unique.outputs.begin() + 1, unique.outputs.end());
  wanted.insert(gather.outputs[0]);
  wanted.erase("");
  return PlanPart({&unique, &gather}, wanted, &at.frame);
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

// Of an If whose condition is known one branch is all there is.
Status ProgramImporter::PlanBranch(const At& at, bool taken) {
  TN_ASSIGN_OR_RETURN(const GraphProto* g, Body(at, taken ? "then_branch" : "else_branch", 0));
  Frame frame{at.frame.steps, {&at.frame.names}};
  TN_ASSIGN_OR_RETURN(const std::vector<Named> outputs, PlanGraph(*g, &frame));
  if (outputs.size() < at.node.outputs.size())
    return MakeError(fmt::format("expected a branch with {} outputs, but got {}",
                                 at.node.outputs.size(), outputs.size()));
  for (size_t i = 0; i < at.node.outputs.size(); ++i) {
    if (!at.node.outputs[i].empty()) at.frame.names.here[at.node.outputs[i]] = outputs[i];
  }
  return Ok();
}

namespace {

// Whether a graph, or one in it, has operators that nobody knows.
bool HasUnknownOperators(const GraphProto& g, const CustomOperators& custom) {
  return std::any_of(g.nodes.begin(), g.nodes.end(), [&](const NodeProto& n) {
    const std::string_view domain = n.domain == "ai.onnx" ? std::string_view() : n.domain;
    if (!IsAlwaysStep(n) && !FindCustom(custom, domain, n.op_type) &&
        !FindRow(domain, n.op_type, kMaxOpset)) {
      return true;
    }
    return std::any_of(n.attributes.begin(), n.attributes.end(), [&](const AttributeProto& a) {
      return !a.graph.empty() && HasUnknownOperators(a.graph[0], custom);
    });
  });
}

}  // namespace

// A branch that has no meaning at the sizes there are, which the model may never take: a call that
// does fails.
Status ProgramImporter::PlanFailure(const At& at, const Diagnostics& why, graph::StepBody* body) {
  const std::string text = fmt::format("{}: {}", why.front().loc.item, why.front().message);
  if (options_.warn) {
    options_.warn(
        fmt::format("{}: {}: warning: a branch cannot be computed, and calls that take "
                    "it will fail: {}",
                    file_->path, DescribeNode(at.node, 0), text));
  }
  *body = {};
  body->steps.push_back({TN_STEP_FAIL, {}, {}, {NumberOf(text)}, {}});
  for (size_t i = 0; i < at.node.outputs.size(); ++i) body->outputs.push_back(program_.slots++);
  return Ok();
}

Status ProgramImporter::PlanIf(const At& at) {
  std::vector<graph::StepBody> bodies(2);
  std::vector<ValueType> types;
  TN_ASSIGN_OR_RETURN(const Named condition, Value(at, 0));
  if (condition.number) return PlanBranch(at, *condition.number != 0);
  Diagnostics why;
  for (size_t b = 0; b < 2; ++b) {
    TN_ASSIGN_OR_RETURN(const GraphProto* g, Body(at, b == 0 ? "then_branch" : "else_branch", 0));
    const size_t parts = program_.parts.size();
    const int depth = depth_;
    Expected<std::vector<Named>> outputs = PlanBody(*g, {}, &at.frame, &bodies[b]);
    if (!outputs) {
      const bool limit =
          std::any_of(outputs.errors().begin(), outputs.errors().end(),
                      [](const Diagnostic& d) { return d.kind == ErrorKind::kLimit; });
      const bool lasts =
          std::any_of(outputs.errors().begin(), outputs.errors().end(),
                      [&](const Diagnostic& d) { return faults_.lasting.contains(FaultOf(d)); });
      if (!why.empty() || limit || lasts || HasUnknownOperators(*g, options_.operators))
        return std::move(outputs.errors());
      program_.parts.resize(parts);
      depth_ = depth;
      why = outputs.errors();
      TN_RETURN_IF_ERROR(PlanFailure(at, why, &bodies[b]));
      continue;
    }
    if (types.empty()) {
      for (const Named& output : *outputs) types.push_back(output.type);
      continue;
    }
    if (outputs->size() != types.size())
      return MakeError("expected as many results of both branches");
    for (size_t i = 0; i < types.size(); ++i) {
      TN_ASSIGN_OR_RETURN(types[i], CommonType(types[i], (*outputs)[i].type));
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
      TN_RETURN_IF_ERROR(ExpectKind(collected, Kind::kTensor, i));
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

}  // namespace tenon::onnx
