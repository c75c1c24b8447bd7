#include "driver/kernels.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "ir/visit.h"
#include "loop/aligned_form.h"
#include "loop/pass/calls/outline_micro_kernels.h"
#include "loop/rewrite.h"

namespace tenon::driver {

namespace {

// A kernel and the functions that it calls, and those that they call.
Module WithCallees(const Module& module, const Func& kernel) {
  Module out;
  std::vector<Func> waiting = {kernel};
  while (!waiting.empty()) {
    const Func f = waiting.back();
    waiting.pop_back();
    if (out.Find(f->name)) continue;
    out.Add(f);
    PreOrder(f->body, [&](const NodeRef& n) {
      const auto* call = As<CallFunc>(n);
      if (Func callee = call ? module.Find(call->callee) : nullptr) waiting.push_back(callee);
      return !IsA<ExprNode>(n);
    });
  }
  return out;
}

}  // namespace

std::vector<KernelResult> KernelsOf(const Module& module) {
  std::vector<KernelResult> out;
  for (const auto& [name, f] : module.funcs) {
    if (f->func_kind != FuncKind::kKernel) continue;
    out.emplace_back();
    out.back().name = name;
    out.back().scheduled = WithCallees(module, f);
  }
  return out;
}

void ShareMicroKernels(std::vector<KernelResult>* kernels) {
  std::unordered_map<uint64_t, std::vector<Func>> shared;  // by the hash without the name
  for (KernelResult& k : *kernels) {
    Module own;
    std::map<std::string, std::string> names;
    for (const auto& [name, f] : k.lowered.funcs) {
      if (!f->attrs.Has(kMicroKernel)) continue;
      Func nameless = Renamed(f, kMicroKernel, {});
      std::vector<Func>& equal = shared[StructuralHash(nameless)];
      auto it = std::find_if(equal.begin(), equal.end(), [&](const Func& other) {
        return StructuralEqual(Renamed(other, kMicroKernel, {}), nameless);
      });
      if (it == equal.end()) {
        k.functions.push_back(name);
        it = equal.insert(equal.end(), f);
      }
      names[name] = (*it)->name;
      own.Add(*it);
    }
    for (const auto& [name, f] : k.lowered.funcs) {
      if (names.count(name)) continue;
      k.functions.push_back(name);
      own.Add(Renamed(f, name, names));
    }
    k.lowered = std::move(own);
  }
}

std::vector<std::vector<KernelResult*>> Batches(std::vector<KernelResult>* kernels, bool distinct) {
  constexpr size_t kEnough = 2000;  // nodes
  std::vector<std::vector<KernelResult*>> out;
  std::set<std::string> names;
  size_t size = kEnough;
  for (KernelResult& k : *kernels) {
    const bool meets =
        distinct && std::any_of(k.functions.begin(), k.functions.end(),
                                [&](const std::string& name) { return names.contains(name); });
    if (size >= kEnough || meets) {
      out.emplace_back();
      names.clear();
      size = 0;
    }
    out.back().push_back(&k);
    names.insert(k.functions.begin(), k.functions.end());
    for (const auto& [name, f] : k.lowered.funcs) {
      PreOrder(f->body, [&](const NodeRef&) { return ++size < kEnough; });
    }
  }
  return out;
}

void AddKernel(const Module& lowered, const std::string& kernel, Module* whole) {
  std::map<std::string, std::string> names;
  for (const auto& [name, f] : lowered.funcs) {
    Func there = whole->Find(name);
    if (!there || StructuralEqual(there, f)) continue;
    names[name] = std::string(kernel).append(".").append(name);
  }
  for (const auto& [name, f] : lowered.funcs) {
    auto it = names.find(name);
    Func renamed = Renamed(f, it == names.end() ? name : it->second, names);
    const auto form = names.find(f->attrs.Get<std::string>(kAlignedFormAttr, ""));
    if (form != names.end()) {
      PrimFunc fields = *renamed;
      fields.attrs.Set(kAlignedFormAttr, form->second);
      renamed = PrimFunc::Make(std::move(fields));
    }
    whole->Add(renamed);
  }
}

}  // namespace tenon::driver
