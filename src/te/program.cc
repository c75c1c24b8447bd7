// Functions to be scheduled, of what people call as they like: names of buffers become unique, and
// every variable that nothing gives a value becomes a parameter.
#include <algorithm>
#include <set>

#include "ir/visit.h"
#include "loop/fresh_names.h"
#include "te/program.h"

namespace tenon::te {

namespace {

Func WithUniqueNames(const Func& func, std::unordered_map<const BufferNode*, Buffer>* renamed) {
  NameSupply names("_", 1);
  BufferMap map;
  auto visit = [&](const Buffer& b) {
    const std::string name = names.Fresh(b->name);
    Buffer own = name == b->name ? b
                                 : BufferNode::Make(name, b->dtype, b->shape, b->scope, b->layout,
                                                    b->strides, b->align);
    (*renamed)[b.get()] = own;
    if (own != b) map[b.get()] = own;
  };
  for (const Buffer& b : func->buffers) visit(b);
  PreOrder(func->body, [&](const NodeRef& n) {
    if (const auto* alloc = As<Alloc>(n)) visit(alloc->buffer);
    return !IsA<ExprNode>(n);
  });
  if (map.empty()) return func;
  PrimFunc fields(*func);
  for (Buffer& b : fields.buffers) b = renamed->at(b.get());
  fields.body = SubstituteBuffers(func->body, map);
  return PrimFunc::Make(fields);
}

// Variables that nothing in the function gives a value, in the order of their first use.
std::vector<Var> FreeVars(const PrimFunc& func) {
  std::set<const Node*> bound;
  std::vector<Var> used;
  auto visit = [&](const NodeRef& n) {
    if (const auto* loop = As<For>(n)) bound.insert(loop->var.get());
    if (const auto* let = As<Let>(n)) bound.insert(let->var.get());
    if (const auto* block = As<Block>(n)) {
      for (const auto& iter : block->iters) bound.insert(iter->var.get());
    }
    if (IsA<VarNode>(n)) used.push_back(Cast<VarNode>(n));
    return true;
  };
  for (const Var& dim : func.dims) bound.insert(dim.get());
  for (const Buffer& b : func.buffers) PreOrder(b, visit);
  PreOrder(func.body, visit);
  std::erase_if(used, [&](const Var& v) { return !bound.insert(v.get()).second; });
  return used;
}

// Sizes are dims, of which nothing is known yet but that they are none below 0.
Func WithNumbers(const Func& func) {
  PrimFunc fields(*func);
  for (const Var& var : FreeVars(*func)) {
    if (!var->dtype.IsIndex()) {
      fields.scalars.push_back(var);
      continue;
    }
    const DimRange size;
    fields.dims.push_back(var);
    fields.dim_lo.push_back(size.lo);
    fields.dim_hi.push_back(size.hi);
    fields.dim_step.push_back(size.step);
  }
  return PrimFunc::Make(std::move(fields));
}

}  // namespace

Expected<Program> MakeProgram(const std::string& name, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& outputs, const FuncOptions& options) {
  Program out;
  TN_ASSIGN_OR_RETURN(const Func func, MakeFunc(name, inputs, outputs, options, &out.blocks));
  out.func = WithUniqueNames(WithNumbers(func), &out.buffers);
  return out;
}

}  // namespace tenon::te
