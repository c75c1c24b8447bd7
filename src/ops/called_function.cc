#include "ops/called_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/print.h"
#include "loop/edit.h"
#include "loop/fresh_names.h"
#include "loop/parse.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "ops/group.h"
#include "support/hash.h"
#include "support/strings.h"

namespace tenon::ops {

namespace {

std::set<std::string> CalleesOf(const PrimFunc& f) {
  std::set<std::string> names;
  PreOrder(f.body, [&](const NodeRef& n) {
    if (const auto* call = As<CallFunc>(n)) names.insert(call->callee);
    return true;
  });
  return names;
}

Status CheckParameters(const PrimFunc& f) {
  if (f.num_outputs == 0)
    return MakeError(fmt::format("@{} has no result: expected `out` parameters", f.name));
  for (const Buffer& b : f.buffers) {
    if (b->layout || !b->strides.empty())
      return MakeError(fmt::format("expected '{}' of @{} to be row-major", b->name, f.name));
  }
  std::set<const Node*> told;
  for (size_t i = 0; i < NumInputs(f); ++i) {
    for (const Expr& size : f.buffers[i]->shape) told.insert(size.get());
  }
  for (const Var& dim : f.dims) {
    if (told.count(dim.get()) == 0)
      return MakeError(fmt::format("what '{}' of @{} is does not follow from an input's shape",
                                   dim->name, f.name));
  }
  return Ok();
}

// A number that is built into the kernel, where the function expects memory.
Stmt Stored(const Buffer& b, const Operand& value, const Stmt& body) {
  const std::vector<Expr> first(b->shape.size(), IndexConst(0));
  return Alloc::Make(b, Seq::Make({Store::Make(b, first, value.at(first)), body}));
}

Func Renamed(const PrimFunc& f, const std::map<std::string, std::string>& names) {
  PrimFunc fields(f);
  const auto own = names.find(f.name);
  if (own != names.end()) fields.name = own->second;
  fields.body = PostOrderRewrite(f.body, [&](const NodeRef& n) -> NodeRef {
    const auto* call = As<CallFunc>(n);
    return call ? CallFunc::Make(names.at(call->callee), call->buffers, call->scalars) : n;
  });
  return PrimFunc::Make(std::move(fields));
}

}  // namespace

Expected<std::vector<CalledFunction>> FindCalled(const Module& module) {
  TN_RETURN_IF_ERROR(Verify(module, Stage::kSchedulable));
  std::set<std::string> called;
  for (const auto& [name, f] : module.funcs) called.merge(CalleesOf(*f));
  std::vector<CalledFunction> out;
  for (const auto& [name, f] : module.funcs) {
    if (called.count(name) != 0) continue;
    TN_RETURN_IF_ERROR(CheckParameters(*f));
    out.push_back({f, {}});
    std::vector<Func> todo = {f};
    while (!todo.empty()) {
      const Func caller = todo.back();
      todo.pop_back();
      for (const std::string& callee : CalleesOf(*caller)) {
        const Func next = module.Find(callee);
        if (out.back().callees.emplace(callee, next).second) todo.push_back(next);
      }
    }
  }
  return out;
}

Expected<CalledFunction> ParseCalled(const std::string& body) {
  TN_ASSIGN_OR_RETURN(const Module module, ParseModule(body));
  TN_ASSIGN_OR_RETURN(std::vector<CalledFunction> found, FindCalled(module));
  if (found.size() != 1)
    return MakeError(
        fmt::format("expected one function that no other calls, but got {}", found.size()));
  const PrimFunc& f = *found[0].function;
  if (!f.scalars.empty())
    return MakeError(
        fmt::format("@{} has the parameter '{}', which is no tensor", f.name, f.scalars[0]->name));
  return std::move(found[0]);
}

size_t NumInputs(const PrimFunc& f) {
  return f.buffers.size() - static_cast<size_t>(f.num_outputs);
}

VarMap DimsOf(const PrimFunc& f, std::span<const InputShape> inputs) {
  VarMap dims;
  for (size_t i = 0; i < NumInputs(f); ++i) {
    for (size_t d = 0; d < inputs[i].size(); ++d) {
      if (const auto* var = As<VarNode>(f.buffers[i]->shape[d])) dims.emplace(var, inputs[i][d]);
    }
  }
  return dims;
}

bool IsScheduled(const PrimFunc& f) {
  return AnyStmt(f.body, [](const NodeRef& n) {
    const auto* loop = As<For>(n);
    return loop && loop->for_kind != ForKind::kSerial;
  });
}

namespace {

/// A function's parameters as the buffers of a kernel.
struct Arguments {
  BufferMap buffers;
  std::vector<InputShape> shapes;                   // of the inputs
  std::vector<std::pair<Buffer, Operand>> numbers;  // inputs that are built into the kernel
};

Expected<Arguments> ArgumentsOf(const PrimFunc& f, const Group& group) {
  const graph::Graph& g = group.graph();
  const graph::Node& node = g.node(group.anchor());
  if (f.buffers.size() != node.inputs.size() + node.outputs.size())
    return MakeError(fmt::format("expected @{} to have {} parameters, but it has {}", f.name,
                                 node.inputs.size() + node.outputs.size(), f.buffers.size()));
  Arguments out;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const graph::ValueId v = node.inputs[i];
    out.shapes.push_back(g.type(v).dims);
    const StoredTensor* stored = group.Stored(v);
    if (!stored && !g.value(v).IsConstant())
      return MakeError(fmt::format("expected the inputs of @{} to be the kernel's", f.name));
    const Buffer b = stored ? stored->buffer : Store(fmt::format("number{}", i), g.type(v)).buffer;
    if (!stored) out.numbers.emplace_back(b, group.value(v));
    out.buffers.emplace(f.buffers[i].get(), b);
  }
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    const auto at = std::find(g.outputs.begin(), g.outputs.end(), node.outputs[k]);
    if (at == g.outputs.end())
      return MakeError(fmt::format("expected the results of @{} to be the kernel's", f.name));
    out.buffers.emplace(f.buffers[node.inputs.size() + k].get(),
                        group.output(static_cast<size_t>(at - g.outputs.begin())).buffer);
  }
  return out;
}

}  // namespace

PrimFunc SignatureOf(const KernelRequest& request, const Group& group) {
  const graph::Graph& g = group.graph();
  PrimFunc f;
  f.name = request.name;
  f.target = request.machine->target;
  for (size_t i = 0; i < g.inputs.size(); ++i) f.buffers.push_back(group.input(i).buffer);
  for (size_t k = 0; k < g.outputs.size(); ++k) f.buffers.push_back(group.output(k).buffer);
  f.num_outputs = static_cast<int64_t>(g.outputs.size());
  for (const graph::Dim& d : g.dims) {
    f.dims.push_back(d.var);
    f.dim_lo.push_back(d.min);
    f.dim_hi.push_back(d.max == graph::Dim::kNoMax ? -1 : d.max);
    f.dim_step.push_back(d.step);
  }
  return f;
}

int64_t BytesOf(const Group& group) {
  const graph::Graph& g = group.graph();
  int64_t bytes = 0;
  for (size_t i = 0; i < g.inputs.size(); ++i) bytes += TypicalSize(g, group.input(i).Bytes());
  for (size_t k = 0; k < g.outputs.size(); ++k) bytes += TypicalSize(g, group.output(k).Bytes());
  return bytes;
}

Expected<Kernel> BuildCall(const KernelRequest& request, const Group& group) {
  const graph::Graph& g = *request.region;
  const std::string text = g.node(group.anchor()).attrs.GetString("body");
  TN_ASSIGN_OR_RETURN(const CalledFunction called, ParseCalled(text));
  const PrimFunc& own = *called.function;
  TN_ASSIGN_OR_RETURN(const Arguments arguments, ArgumentsOf(own, group));
  Hasher hasher;
  hasher.Text(text);
  const std::string mark = hasher.Finish().ToHex().substr(0, 8);
  std::map<std::string, std::string> names;
  for (const auto& [name, callee] : called.callees)
    names[name] = fmt::format("called_{}_{}", mark, name);
  Kernel kernel;
  for (const auto& [name, callee] : called.callees)
    kernel.callees.push_back(Renamed(*callee, names));
  PrimFunc f = SignatureOf(request, group);
  f.attrs = own.attrs;
  f.attrs.Erase("exported");
  NameSupply supply(own);
  for (const Buffer& b : f.buffers) supply.Take(b->name);
  f.body = SubstituteBuffers(
      FreshCopy(Renamed(own, names)->body, DimsOf(own, arguments.shapes), &supply),
      arguments.buffers);
  for (const auto& [buffer, value] : arguments.numbers) f.body = Stored(buffer, value, f.body);
  kernel.func = WithUsedDims(PrimFunc::Make(std::move(f)));
  kernel.operands = g.inputs;
  kernel.bytes = BytesOf(group);
  return kernel;
}

}  // namespace tenon::ops
