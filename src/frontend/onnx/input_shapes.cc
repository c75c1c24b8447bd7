#include "frontend/onnx/input_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "frontend/onnx/shape_text.h"
#include "frontend/onnx/size_formula.h"
#include "graph/dims.h"
#include "graph/edit.h"
#include "graph/verify.h"
#include "support/strings.h"

namespace tenon::onnx {

using graph::Quoted;

namespace {

// "?" and "" are how some exporters say that nothing is known.
bool IsNamed(const DimProto& d) {
  return d.kind == DimProto::Kind::kParam && d.param != "?" && !d.param.empty();
}

}  // namespace

const std::vector<DimSpec>* InputShapes::GivenFor(const ValueInfoProto& input) const {
  auto it = given_.find(std::string(input.name));
  return it == given_.end() ? nullptr : &it->second;
}

// The model's or user's name made an identifier that no other dim has.
Expr InputShapes::NewDim(const std::string& wanted, const DimSpec& range) {
  const std::string base = ToIdentifier(wanted.substr(0, 64));
  auto taken = [&](const std::string& name) {
    return std::any_of(graph_.dims.begin(), graph_.dims.end(),
                       [&](const graph::Dim& d) { return d.var->name == name; });
  };
  std::string name = base;
  for (int i = 1; taken(name); ++i) name = fmt::format("{}_{}", base, i);
  graph_.dims.push_back({.var = range.min == 0 ? VarNode::MakeCount(name) : VarNode::Make(name),
                         .min = range.min,
                         .max = range.max,
                         .step = range.step});
  return graph_.dims.back().var;
}

// The range that any mention of the symbol gives.
Expected<DimSpec> InputShapes::RangeOf(const std::string& symbol) const {
  const DimSpec unsaid{.symbol = symbol};
  DimSpec out = unsaid;
  for (const auto& [input, shape] : given_) {
    for (const DimSpec& spec : shape) {
      if (spec.value >= 0 || spec.symbol != symbol || spec == unsaid || spec == out) continue;
      if (!(out == unsaid)) {
        return MakeError(fmt::format("expected one range for {}, but got {} and {}", Quoted(symbol),
                                     SizeText(out), SizeText(spec)));
      }
      out = spec;
    }
  }
  return out;
}

Expected<Expr> InputShapes::FromUser(const DimSpec& given) {
  if (given.value >= 0) return IndexConst(given.value);
  if (auto it = symbols_.find(given.symbol); it != symbols_.end()) return it->second;
  TN_ASSIGN_OR_RETURN(const DimSpec spec, RangeOf(given.symbol));
  if (spec.min < 0 || spec.max < spec.min || spec.max > graph::kLargestSize || spec.step < 1) {
    return MakeError(fmt::format(
        "expected a range within 0..{} and a step of at least 1 for {}, but got {}..{} step {}",
        graph::kLargestSize, Quoted(spec.symbol), spec.min, spec.max, spec.step));
  }
  return symbols_[spec.symbol] = NewDim(spec.symbol, spec);
}

Expected<Expr> InputShapes::FromModel(const ValueInfoProto& input, size_t axis) {
  const DimProto& declared = input.shape[axis];
  if (declared.kind == DimProto::Kind::kValue && declared.value >= 0)
    return IndexConst(declared.value);
  if (declared.kind == DimProto::Kind::kValue && declared.value < -1) {
    return MakeError(fmt::format("expected dims of at least 0, but got {}", declared.value));
  }
  if (!IsNamed(declared))
    return NewDim(fmt::format("{}_d{}", input.name.substr(0, 48), axis), open_);
  if (Expr sum = FromFormula(declared.param)) return sum;
  return FromParam(declared.param);
}

Expr InputShapes::FromParam(std::string_view name) {
  auto [it, is_new] = params_.try_emplace(name);
  if (is_new) it->second = NewDim(std::string(name), open_);
  return it->second;
}

// Of sizes that inputs have by themselves, so that a call tells them. Else the text is a name.
Expr InputShapes::FromFormula(std::string_view text) {
  const std::optional<SizeFormula> formula = ParseSizeFormula(text);
  if (!formula) return nullptr;
  for (const auto& [times, name] : formula->terms) {
    if (!plain_.contains(name)) return nullptr;
  }
  Expr sum = IndexConst(formula->number);
  for (const auto& [times, name] : formula->terms)
    sum = graph::DimAdd(sum, graph::DimMul(FromParam(name), IndexConst(times)));
  return sum;
}

Status InputShapes::Bind(const ValueInfoProto& input) {
  const std::vector<DimSpec>* given = GivenFor(input);
  for (const DimProto& d : input.shape) {
    if (IsNamed(d)) plain_.insert(d.param);
  }
  if (!given || !input.has_shape) return Ok();
  if (input.shape.size() != given->size()) {
    Diagnostic error = MakeError(
        fmt::format("expected a shape of {} dims, but got {}", input.shape.size(), given->size()));
    // Between sizes stands an x, which may have been a name's.
    const bool named = std::any_of(given->begin(), given->end(),
                                   [](const DimSpec& d) { return !d.symbol.empty(); });
    if (named && given->size() > input.shape.size()) {
      error.notes.emplace_back(
          "a name that has an x in it stands between commas: --shape 'input:max_len,8'");
    }
    return error;
  }
  for (size_t i = 0; i < given->size(); ++i) {
    if (!IsNamed(input.shape[i])) continue;
    TN_ASSIGN_OR_RETURN(Expr dim, FromUser((*given)[i]));
    auto [bound, is_new] = params_.try_emplace(input.shape[i].param, dim);
    if (!is_new && !graph::ProveEqual(bound->second, dim)) {
      return MakeError(fmt::format("expected dim {} to be {} as {} is elsewhere, but got {}", i,
                                   graph::DimText(bound->second), Quoted(input.shape[i].param),
                                   graph::DimText(dim)));
    }
  }
  return Ok();
}

Expected<std::vector<Expr>> InputShapes::Dims(const ValueInfoProto& input) {
  if (graph_.dims.size() > graph::Limits::kDims) {
    return MakeLimitError(fmt::format("expected at most {} symbolic dims", graph::Limits::kDims));
  }
  const std::vector<DimSpec>* given = GivenFor(input);
  if (!input.has_shape && !given)
    return MakeError("expected a shape, but the model gives none; give one with --shape");
  std::vector<Expr> dims;
  const size_t rank = given ? given->size() : input.shape.size();
  for (size_t i = 0; i < rank; ++i) {
    TN_ASSIGN_OR_RETURN(Expr dim, given ? FromUser((*given)[i]) : FromModel(input, i));
    dims.push_back(std::move(dim));
  }
  return dims;
}

std::vector<std::string> InputShapes::Overruled(const ValueInfoProto& input) const {
  std::vector<std::string> lines;
  const std::vector<DimSpec>* given = GivenFor(input);
  if (!given) return lines;
  for (size_t i = 0; i < std::min(given->size(), input.shape.size()); ++i) {
    const DimProto& fixed = input.shape[i];
    const bool same = (*given)[i].value == fixed.value;
    if (fixed.kind != DimProto::Kind::kValue || fixed.value < 0 || same) continue;
    const std::string size =
        (*given)[i].value < 0 ? Quoted((*given)[i].symbol) : std::to_string((*given)[i].value);
    lines.push_back(fmt::format("the model fixes dim {} of {} at {}, --shape gives {}", i,
                                Quoted(input.name), fixed.value, size));
  }
  return lines;
}

Expected<graph::Graph> SettleDims(graph::Graph g, const InputShapes::Given& given,
                                  const std::map<std::string, SourceLoc>& askers,
                                  const std::vector<std::string>& notes) {
  auto named = [&](const std::string& name) {
    return std::any_of(given.begin(), given.end(), [&](const auto& input) {
      return std::any_of(input.second.begin(), input.second.end(),
                         [&](const DimSpec& d) { return d.value < 0 && d.symbol == name; });
    });
  };
  std::map<std::string, Expr> settled;
  std::set<const VarNode*> defined;
  for (const graph::Node& n : g.nodes) {
    if (const Var dim = graph::DefinedDim(n)) defined.insert(dim.get());
  }
  Diagnostics errors;
  for (const Expr& c : graph::Conditions(g)) {
    const auto* equal = As<Binary>(c);
    const auto* dim = equal && equal->op == BinaryOp::kEq ? As<VarNode>(equal->lhs) : nullptr;
    // What a node defines has to be found to be checked.
    if (!dim || defined.contains(dim) || !AsInt(equal->rhs)) continue;
    if (!settled.emplace(dim->name, equal->rhs).second) continue;
    if (!named(dim->name)) continue;
    const auto asker = askers.find(graph::DimText(c));
    errors.push_back(MakeError(fmt::format("{} is left open, but the model computes with {} alone",
                                           Quoted(dim->name), graph::DimText(c)),
                               asker == askers.end() ? SourceLoc() : asker->second));
    errors.back().notes = notes;
  }
  if (!errors.empty()) return errors;
  return settled.empty() ? g : graph::SubstituteDims(g, settled);
}

}  // namespace tenon::onnx
