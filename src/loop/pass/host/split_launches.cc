#include "loop/pass/host/split_launches.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "ir/visit.h"
#include "loop/pass/host/split_kernel.h"
#include "loop/rewrite.h"
#include "loop/threads.h"
#include "support/check.h"

namespace tenon {

namespace {

// A kernel's launches, with their attributes.
KernelParts PartsOf(const Func& kernel, const Module& module, const PassContext& context) {
  const bool cooperative = !AskedBy(kernel->body, kCooperativeAttr).empty();
  KernelParts parts = SplitKernel(cooperative ? WithLaunchAttributes(kernel) : kernel, module);
  for (Func& part : parts.kernels) {
    CheckDependentLaunch(*part, context);
    part = WithLaunchAttributes(part);
  }
  return parts;
}

// The kernel under another name where its own, a plain one for a function, is a device language's:
// that of a C program's first function, or a word of OpenCL C. Callers see the host function's.
Func WithFreeName(const Func& kernel, const Module& module) {
  if (kernel->name != "main" && kernel->name != "kernel") return kernel;
  PrimFunc fields = *kernel;
  const std::string name = kernel->name + "_kernel";
  fields.name = name;
  for (int i = 1; module.Find(fields.name); ++i) fields.name = fmt::format("{}_{}", name, i);
  return PrimFunc::Make(std::move(fields));
}

/// A kernel that is replaced, and by what.
struct Replaced {
  Func kernel;
  KernelParts parts;
};
using SplitKernels = std::map<std::string, Replaced>;

// Goes over one host function. The launches in the place of one do, in order, what it did; the
// memory between them has a name that is nowhere else in the function.
class Splitting final : public ScopedRewriter {
 public:
  Splitting(const Func& host, const SplitKernels& replaced) : replaced_(replaced), names_(*host) {}

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    const auto* launch = As<Launch>(stmt);
    const auto it = launch ? replaced_.find(launch->kernel) : replaced_.end();
    return it == replaced_.end() ? Children(stmt) : InParts(*launch, it->second);
  }

  Stmt InParts(const Launch& launch, const Replaced& replaced) {
    const PrimFunc& kernel = *replaced.kernel;
    VarMap values;
    for (size_t i = 0; i < launch.scalars.size(); ++i) {
      const size_t dims = kernel.dims.size();
      const Var& var = i < dims ? kernel.dims[i] : kernel.scalars.at(i - dims);
      values[var.get()] = launch.scalars[i];
    }
    std::map<std::string, Region> known;  // by the name of the kernels' parameter
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      known[kernel.buffers[i]->name] = launch.buffers[i];
    }
    std::vector<Buffer> between;
    for (const Buffer& b : replaced.parts.between) {
      std::vector<Expr> shape = StorageExtents(b->shape, b->layout);
      for (Expr& extent : shape) extent = Substitute(extent, values);
      between.push_back(BufferNode::Make(names_.Fresh(b->name), b->dtype, std::move(shape),
                                         b->scope, nullptr, b->strides, b->align));
      known[b->name] = Whole(between.back());
    }
    std::vector<Stmt> launches;
    for (const Func& part : replaced.parts.kernels) {
      std::vector<Region> regions;
      for (const Buffer& b : part->buffers) regions.push_back(known.at(b->name));
      launches.push_back(
          Launch::Make(part->name, std::move(regions), launch.scalars, launch.place, launch.attrs));
    }
    Stmt body = Seq::Make(std::move(launches));
    for (size_t i = between.size(); i-- > 0;) body = Alloc::Make(between[i], body);
    return body;
  }

  const SplitKernels& replaced_;
  NameSupply names_;
};

// The kernels that host functions launch on devices.
std::set<std::string> Launched(const Module& module) {
  std::set<std::string> out;
  for (const auto& [name, func] : module.funcs) {
    if (func->func_kind != FuncKind::kHost) continue;
    PreOrder(func->body, [&](const NodeRef& n) {
      const auto* launch = As<Launch>(n);
      const Func kernel = launch ? module.Find(launch->kernel) : nullptr;
      if (kernel && kernel->IsForDevice()) out.insert(launch->kernel);
      return !IsA<ExprNode>(n);
    });
  }
  return out;
}

}  // namespace

Module SplitLaunches(const Module& module, const PassContext& context) {
  Module out = module;
  SplitKernels replaced;
  for (const std::string& name : Launched(module)) {
    const Func kernel = module.Find(name);
    if (IsBound(*kernel)) continue;
    KernelParts parts = PartsOf(kernel, module, context);
    if (parts.kernels.size() == 1) parts.kernels[0] = WithFreeName(parts.kernels[0], out);
    out.funcs.erase(name);
    for (const Func& part : parts.kernels) out.Add(part);
    const bool same = parts.kernels.size() == 1 && parts.kernels[0]->name == name;
    if (!same) replaced[name] = {kernel, std::move(parts)};
  }
  if (replaced.empty()) return out;
  return MapFuncs(out, [&](const Func& func) {
    if (func->func_kind != FuncKind::kHost) return func;
    return WithBody(func, Splitting(func, replaced).Rewrite(func->body));
  });
}

}  // namespace tenon
