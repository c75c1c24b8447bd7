#include "graph/lower/loop_kernels.h"

#include "ops/group.h"
#include "te/te.h"

namespace tenon::graph {

namespace {

Expected<ops::Kernel> KernelOf(const std::string& name, const std::vector<te::Tensor>& inputs,
                               const te::Tensor& result, te::FuncOptions options,
                               const Machine& machine) {
  options.target = machine.target;
  TN_ASSIGN_OR_RETURN(const Func func, te::MakeFunc(name, inputs, {result}, options));
  ops::Kernel kernel;
  kernel.func = ops::WithUsedDims(func);
  kernel.kind = "elementwise";
  kernel.algorithm = ops::FindAlgorithm("definition");
  return kernel;
}

// A parameter that has the buffer's memory.
Buffer Parameter(const std::string& name, const Buffer& b) {
  return BufferNode::Make(name, b->dtype, b->shape, Scope::kGlobal, b->layout, b->strides,
                          b->align);
}

}  // namespace

Expected<ops::Kernel> NumberKernel(const std::string& name, const Var& i, const Machine& machine) {
  const DType type = DType::Int(64);
  const te::Tensor number = te::Compute(
      "number", {}, [&](const te::Indices&) -> te::Body { return CastExpr::Make(type, i); });
  te::FuncOptions options;
  options.dims = {i};
  options.ranges.emplace_back();
  return KernelOf(name, {}, number, std::move(options), machine);
}

Expected<ops::Kernel> RowKernel(const std::string& name, const Buffer& row, const Buffer& rows,
                                const Var& i, const std::vector<Dim>& dims,
                                const Machine& machine) {
  const te::Tensor from = te::Placeholder("row", row->shape, row->dtype, Parameter("row", row));
  te::Storage storage;
  storage.buffer = Parameter("rows", rows);
  storage.place = [i](const te::Indices& at) {
    te::Indices place = {i};
    place.insert(place.end(), at.begin(), at.end());
    return place;
  };
  const te::Tensor to = te::Compute(
      "stored", row->shape, [&](const te::Indices& at) -> te::Body { return from.At(at); },
      storage);
  te::FuncOptions options;
  for (const Dim& d : dims) {
    options.dims.push_back(d.var);
    options.ranges.push_back({d.min, d.max == Dim::kNoMax ? -1 : d.max, d.step});
  }
  options.dims.push_back(i);
  options.ranges.emplace_back();
  return KernelOf(name, {from}, to, std::move(options), machine);
}

}  // namespace tenon::graph
