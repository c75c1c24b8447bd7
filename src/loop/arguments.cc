#include "loop/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "arith/analyzer.h"
#include "ir/visit.h"

namespace tenon {

namespace {

using Kind = Argument::Kind;

// What the caller of a kernel or a host function provides, not that of the library: memory, and the
// number of its tensors' device.
bool IsProvided(const Var& scalar) {
  if (scalar->name == kDeviceId || scalar->name == kDeviceWeights || scalar->name == kResultDims)
    return true;
  return IsArena(scalar) || (scalar->dtype.IsHandle() && scalar->name == "workspace");
}

std::optional<Argument> Find(const PrimFunc& func, const std::string& name) {
  for (size_t i = 0; i < func.buffers.size(); ++i) {
    if (func.buffers[i]->name == name) return Argument{Kind::kBuffer, i};
  }
  for (size_t i = 0; i < func.scalars.size(); ++i) {
    if (func.scalars[i]->name == name) return Argument{Kind::kScalar, i};
  }
  for (size_t i = 0; i < func.dims.size(); ++i) {
    if (func.dims[i]->name == name) return Argument{Kind::kDim, i};
  }
  return std::nullopt;
}

std::vector<Argument> DefaultOrder(const PrimFunc& func) {
  const size_t inputs = func.buffers.size() - static_cast<size_t>(func.num_outputs);
  std::vector<Argument> order;
  for (size_t i = 0; i < inputs; ++i) order.push_back({Kind::kBuffer, i});
  for (size_t i = 0; i < func.scalars.size(); ++i) {
    if (!IsProvided(func.scalars[i])) order.push_back({Kind::kScalar, i});
  }
  for (size_t i = inputs; i < func.buffers.size(); ++i) order.push_back({Kind::kBuffer, i});
  return order;
}

Expected<std::vector<Argument>> Named(const PrimFunc& func, const std::vector<std::string>& names) {
  std::vector<Argument> order;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    std::optional<Argument> found = Find(func, name);
    if (!found) {
      return MakeError(
          fmt::format("function '{}': there is no parameter or dim '{}', which its "
                      "attribute {} names",
                      func.name, name, kArgumentsAttr));
    }
    if (!seen.insert(name).second) {
      return MakeError(fmt::format("function '{}': '{}' is twice in its attribute {}", func.name,
                                   name, kArgumentsAttr));
    }
    order.push_back(*found);
  }
  for (const Argument& a : DefaultOrder(func)) {
    if (seen.count(a.NameOf(func)) != 0) continue;
    return MakeError(fmt::format("function '{}': its attribute {} lacks '{}'", func.name,
                                 kArgumentsAttr, a.NameOf(func)));
  }
  return order;
}

}  // namespace

bool IsArena(const Var& scalar) {
  return scalar->dtype.IsHandle() &&
         (scalar->name == "arena" || scalar->name.starts_with("arena_"));
}

Var Argument::VarOf(const PrimFunc& func) const {
  switch (kind) {
    case Kind::kBuffer: return nullptr;
    case Kind::kScalar: return func.scalars[index];
    case Kind::kDim: return func.dims[index];
  }
  return nullptr;
}

const std::string& Argument::NameOf(const PrimFunc& func) const {
  return kind == Kind::kBuffer ? func.buffers[index]->name : VarOf(func)->name;
}

Expected<std::vector<Argument>> ArgumentsOf(const PrimFunc& func) {
  using Names = std::vector<std::string>;
  std::vector<Argument> order = DefaultOrder(func);
  if (func.attrs.Has(kArgumentsAttr)) {
    TN_ASSIGN_OR_RETURN(order, Named(func, func.attrs.Get<Names>(kArgumentsAttr, {})));
  }
  const size_t outputs = static_cast<size_t>(func.num_outputs);
  for (size_t i = 0; i < outputs; ++i) {
    const Argument& a = order[order.size() - outputs + i];
    const size_t buffer = func.buffers.size() - outputs + i;
    if (a.kind == Kind::kBuffer && a.index == buffer) continue;
    return MakeError(fmt::format("function '{}': its attribute {} does not end with the outputs",
                                 func.name, kArgumentsAttr));
  }
  for (const Argument& a : order) {
    const Var var = a.VarOf(func);
    if (!var || (!var->dtype.IsHandle() && !var->dtype.IsVector())) continue;
    return MakeError(
        fmt::format("function '{}': the parameter '{}' is {}, which callers cannot "
                    "pass; expected a buffer, an integer, a float or a bool",
                    func.name, var->name, var->dtype.ToString()));
  }
  return order;
}

Var DimToldBy(const PrimFunc& func, const Expr& size,
              const std::function<bool(const Var&)>& known) {
  Var unknown;
  for (const Var& dim : func.dims) {
    if (known(dim) || !UsesVar(size, dim.get())) continue;
    if (unknown) return nullptr;
    unknown = dim;
  }
  if (!unknown) return nullptr;
  const std::optional<AffineForm> form = DetectAffine(size, {unknown});
  if (!form) return nullptr;
  return AsInt(form->coefficients[0]).value_or(0) == 0 ? nullptr : unknown;
}

Var UntoldDim(const PrimFunc& func, std::span<const Argument> arguments) {
  std::set<const VarNode*> told;
  std::vector<Expr> sizes;
  for (const Argument& a : arguments) {
    if (a.kind == Argument::Kind::kDim) told.insert(func.dims[a.index].get());
    if (a.kind != Argument::Kind::kBuffer) continue;
    const BufferNode& b = *func.buffers[a.index];
    sizes.insert(sizes.end(), b.shape.begin(), b.shape.end());
    for (const Expr& stride : b.strides) {
      if (IsA<VarNode>(stride)) sizes.push_back(stride);
    }
  }
  const auto found = func.attrs.Get<std::vector<std::string>>(kFoundDimsAttr, {});
  for (const Var& dim : func.dims) {
    if (std::find(found.begin(), found.end(), dim->name) != found.end()) told.insert(dim.get());
  }
  auto known = [&](const Var& v) { return told.count(v.get()) != 0; };
  for (bool more = true; more;) {
    more = false;
    for (const Expr& size : sizes) {
      const Var dim = DimToldBy(func, size, known);
      more |= dim && told.insert(dim.get()).second;
    }
  }
  const auto untold = std::find_if_not(func.dims.begin(), func.dims.end(), known);
  return untold == func.dims.end() ? nullptr : *untold;
}

}  // namespace tenon
