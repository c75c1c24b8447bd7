#include "driver/custom_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "graph/dims.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "loop/parse.h"
#include "loop/print.h"
#include "loop/requirements.h"
#include "ops/called_function.h"
#include "support/file.h"
#include "support/strings.h"

namespace tenon::driver {

namespace {

using ops::CalledFunction;

bool Takes(const PrimFunc& f, const onnx::CustomNode& node) {
  if (ops::NumInputs(f) != node.inputs.size()) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const graph::TensorType& type = node.inputs[i];
    if (f.buffers[i]->dtype != type.dtype || f.buffers[i]->shape.size() != type.dims.size())
      return false;
  }
  return true;
}

// "f32[n, 4], i64[2]"
std::string InputsText(const PrimFunc& f) {
  std::vector<std::string> inputs;
  for (size_t i = 0; i < ops::NumInputs(f); ++i)
    inputs.push_back(graph::TensorType{f.buffers[i]->dtype, f.buffers[i]->shape}.ToString());
  return Join(inputs, ", ");
}

Diagnostic NoneFits(const std::vector<CalledFunction>& all, const onnx::CustomNode& node) {
  std::vector<std::string> given;
  for (const graph::TensorType& type : node.inputs) given.push_back(type.ToString());
  Diagnostic d = MakeError(fmt::format("no function of the operator takes {}",
                                       given.empty() ? "no inputs" : Join(given, ", ")));
  for (const CalledFunction& f : all)
    d.notes.push_back(fmt::format("@{} takes {}", f.function->name, InputsText(*f.function)));
  return d;
}

// A scalar's value: a number among the node's attributes.
Expected<Expr> Number(const Var& scalar, const onnx::CustomNode& node, const PrimFunc& f) {
  const AttrValue* value = node.attributes.Find(scalar->name);
  if (!value)
    return MakeError(fmt::format("expected the attribute '{}', which is a parameter of @{}",
                                 scalar->name, f.name));
  const auto* whole = std::get_if<int64_t>(value);
  const auto* number = std::get_if<double>(value);
  const bool is_float = scalar->dtype.IsFloat();
  if (whole && !is_float) return MakeIntConst(scalar->dtype, *whole);
  if (is_float && (whole || number))
    return MakeConst(scalar->dtype, whole ? static_cast<double>(*whole) : *number);
  return MakeError(fmt::format("expected the attribute '{}' to be a number that {} holds",
                               scalar->name, scalar->dtype.ToString()));
}

// The function with the node's attributes in place of its scalars.
Expected<Func> WithAttributes(const Func& func, const onnx::CustomNode& node) {
  VarMap numbers;
  std::set<std::string> known;
  for (const Var& scalar : func->scalars) {
    TN_ASSIGN_OR_RETURN(Expr number, Number(scalar, node, *func));
    numbers.emplace(scalar.get(), std::move(number));
    known.insert(scalar->name);
  }
  for (const auto& [name, value] : node.attributes) {
    if (known.count(name) == 0)
      return MakeError(fmt::format("attribute '{}' is no parameter of @{}", name, func->name));
  }
  if (numbers.empty()) return func;
  PrimFunc fields(*func);
  fields.scalars.clear();
  fields.body = Substitute(func->body, numbers);
  return PrimFunc::Make(std::move(fields));
}

// What must hold of the inputs' sizes for the function to be called with them.
class Conditions {
 public:
  Status Add(const Expr& condition, const std::string& what) {
    const Expr simple = graph::SimplifyDim(condition);
    if (IsZero(simple)) return MakeError(what);
    if (!IsOne(simple)) list_.push_back(simple);
    return Ok();
  }
  std::vector<Expr> Take() && { return std::move(list_); }

 private:
  std::vector<Expr> list_;
};

// A requirement at every iteration of its loops, whose ends the model's sizes say; `each` is told.
Status ForEvery(const Requirement& need, size_t loop, VarMap* numbers, int64_t* left,
                const std::function<Status(const VarMap&)>& each) {
  if (loop == need.every.size()) return each(*numbers);
  const Requirement::Loop& l = need.every[loop];
  const std::optional<int64_t> min = AsInt(graph::SimplifyDim(Substitute(l.min, *numbers)));
  const std::optional<int64_t> end = AsInt(graph::SimplifyDim(Substitute(l.end, *numbers)));
  if (!min || !end || (*left -= std::max<int64_t>(*end - *min, 0)) < 0) {
    return MakeError(fmt::format(
        "whether an index stays inside cannot be told before a call: {}; give the sizes of the "
        "model's inputs, or keep the index inside by a minimum",
        need.what));
  }
  for (int64_t i = *min; i < *end; ++i) {
    (*numbers)[l.var.get()] = IndexConst(i);
    TN_RETURN_IF_ERROR(ForEvery(need, loop + 1, numbers, left, each));
  }
  return Ok();
}

// What the function needs of its sizes so that no access is outside its buffer.
Status AddAccesses(const PrimFunc& f, const Module& functions, const VarMap& dims,
                   Conditions* all) {
  constexpr int64_t kMostIterations = 1 << 16;
  TN_ASSIGN_OR_RETURN(const std::vector<Requirement> needs, RequirementsOf(f, functions));
  for (const Requirement& need : needs) {
    const Expr holds = need.holds;
    const Expr always = need.when ? Or(Not(need.when), holds) : holds;
    VarMap numbers = dims;
    int64_t left = kMostIterations;
    TN_RETURN_IF_ERROR(ForEvery(need, 0, &numbers, &left, [&](const VarMap& here) {
      return all->Add(Substitute(always, here),
                      fmt::format("an access of @{} is outside of its buffer: expected {}", f.name,
                                  need.ToString()));
    }));
  }
  return Ok();
}

Expected<std::vector<Expr>> ConditionsOf(const PrimFunc& f, const Module& functions,
                                         const onnx::CustomNode& node, const VarMap& dims) {
  Conditions all;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const graph::TensorType& type = node.inputs[i];
    for (size_t d = 0; d < type.dims.size(); ++d) {
      const Expr expected = Substitute(f.buffers[i]->shape[d], dims);
      if (graph::ProveEqual(expected, type.dims[d])) continue;
      TN_RETURN_IF_ERROR(all.Add(
          Eq(expected, type.dims[d]),
          fmt::format("expected {} elements along axis {} of input {}, as '{}' of @{} has, but got "
                      "{}",
                      graph::DimText(expected), d, i, f.buffers[i]->name, f.name,
                      graph::DimText(type.dims[d]))));
    }
  }
  for (size_t i = 0; i < f.dims.size(); ++i) {
    const DimRange range = f.dim_range(i);
    const Expr& size = dims.at(f.dims[i].get());
    const std::string what = fmt::format("expected a size in {}..={}{} for '{}' of @{}, but got {}",
                                         range.lo, range.hi < 0 ? "" : std::to_string(range.hi),
                                         range.step > 1 ? fmt::format(" step {}", range.step) : "",
                                         f.dims[i]->name, f.name, graph::DimText(size));
    if (range.lo > 0) TN_RETURN_IF_ERROR(all.Add(Ge(size, IndexConst(range.lo)), what));
    if (range.hi >= 0) TN_RETURN_IF_ERROR(all.Add(Le(size, IndexConst(range.hi)), what));
    if (range.step > 1) {
      const Expr rest = (size - range.lo) % range.step;
      TN_RETURN_IF_ERROR(all.Add(Eq(rest, IndexConst(0)), what));
    }
  }
  TN_RETURN_IF_ERROR(AddAccesses(f, functions, dims, &all));
  return std::move(all).Take();
}

}  // namespace

Expected<onnx::CustomBody> BodyOf(const Module& functions, const onnx::CustomNode& node) {
  TN_ASSIGN_OR_RETURN(const std::vector<CalledFunction> all, ops::FindCalled(functions));
  const auto fits = std::find_if(all.begin(), all.end(),
                                 [&](const CalledFunction& f) { return Takes(*f.function, node); });
  if (fits == all.end()) return NoneFits(all, node);
  TN_ASSIGN_OR_RETURN(const Func f, WithAttributes(fits->function, node));
  std::vector<ops::InputShape> shapes;
  for (const graph::TensorType& type : node.inputs) shapes.push_back(type.dims);
  const VarMap dims = ops::DimsOf(*f, shapes);
  onnx::CustomBody out;
  TN_ASSIGN_OR_RETURN(out.conditions, ConditionsOf(*f, functions, node, dims));
  for (size_t k = ops::NumInputs(*f); k < f->buffers.size(); ++k) {
    graph::TensorType type{f->buffers[k]->dtype, {}};
    for (const Expr& size : f->buffers[k]->shape)
      type.dims.push_back(graph::SimplifyDim(Substitute(size, dims)));
    out.results.push_back(std::move(type));
  }
  Module body;
  body.Add(f);
  for (const auto& [name, callee] : fits->callees) body.Add(callee);
  out.body = Print(body);
  return out;
}

Status CheckOperator(const Module& functions) {
  TN_ASSIGN_OR_RETURN(const std::vector<CalledFunction> all, ops::FindCalled(functions));
  return all.empty() ? MakeError("there is no function") : Ok();
}

Expected<onnx::CustomOperator> ReadOperator(const std::string& path) {
  TN_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  TN_ASSIGN_OR_RETURN(Module module, ParseModule(file.text(), path));
  // What is wrong with the functions is told before a model is read.
  if (Status fit = CheckOperator(module); !fit) {
    for (Diagnostic& d : fit.errors()) d.loc.file = path;
    return std::move(fit.errors());
  }
  return onnx::CustomOperator(
      [module = std::move(module)](const onnx::CustomNode& node) { return BodyOf(module, node); });
}

}  // namespace tenon::driver
