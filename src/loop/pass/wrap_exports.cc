#include "loop/pass/wrap_exports.h"

#include <fmt/format.h>

#include "arith/analyzer.h"
#include "loop/arguments.h"
#include "support/check.h"

namespace tenon {

namespace {

Region WholeRegion(const Buffer& buffer) {
  std::vector<Range> ranges;
  for (const Expr& extent : buffer->shape) ranges.push_back(RangeNode::Make(IndexConst(0), extent));
  return RegionNode::Make(buffer, std::move(ranges));
}

// A kernel's parameter as it lies in memory: what a caller can hand over has no layout.
Buffer InMemory(const Buffer& b) {
  if (!b->layout) return b;
  return BufferNode::Make(b->name, b->dtype, StorageExtents(b->shape, b->layout), b->scope, nullptr,
                          b->strides, b->align);
}

Func HostOf(const PrimFunc& kernel) {
  PrimFunc host = kernel;
  host.name = kernel.name + ".host";
  host.func_kind = FuncKind::kHost;
  host.attrs = {{"exported", true}, {"export_name", kernel.name}};
  std::vector<Region> regions;
  for (Buffer& b : host.buffers) {
    b = InMemory(b);
    regions.push_back(WholeRegion(b));
  }
  if (const AttrValue* order = kernel.attrs.Find(kArgumentsAttr)) {
    host.attrs.Set(kArgumentsAttr, *order);
  }
  std::vector<Expr> numbers(kernel.dims.begin(), kernel.dims.end());
  numbers.insert(numbers.end(), kernel.scalars.begin(), kernel.scalars.end());
  host.body = Launch::Make(kernel.name, std::move(regions), std::move(numbers));
  return PrimFunc::Make(std::move(host));
}

}  // namespace

Module WrapExports(const Module& module, const PassContext& context) {
  Module out = module;
  for (const auto& [name, func] : module.funcs) {
    if (func->func_kind != FuncKind::kKernel || !func->attrs.Get<bool>("exported", false)) continue;
    if (auto order = ArgumentsOf(*func); !order) {
      context.Remark(fmt::format("not exported: {}", order.errors()[0].message));
      continue;
    }
    out.Add(HostOf(*func));
    PrimFunc kernel = *func;
    kernel.attrs.Erase("exported");
    kernel.attrs.Erase(kArgumentsAttr);
    out.Add(PrimFunc::Make(std::move(kernel)));
  }
  return out;
}

}  // namespace tenon
