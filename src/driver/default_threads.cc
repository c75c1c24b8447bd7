#include "driver/default_threads.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/visit.h"
#include "loop/threads.h"
#include "schedule/schedule.h"
#include "support/strings.h"

namespace tenon::driver {

namespace {

using Names = std::vector<std::string>;

bool HasConcurrentLoop(const Stmt& stmt) {
  bool found = false;
  PreOrder(stmt, [&](const NodeRef& n) {
    const auto* loop = As<For>(n);
    found |= loop && (loop->for_kind == ForKind::kThread || loop->for_kind == ForKind::kParallel);
    return !found && !IsA<ExprNode>(n);
  });
  return found;
}

Names BlocksOf(const Stmt& stmt) {
  Names out;
  PreOrder(stmt, [&](const NodeRef& n) {
    const auto* block = As<Block>(n);
    if (block) out.push_back(block->name);
    return !block && !IsA<ExprNode>(n);
  });
  return out;
}

// The statements that stand beside each other in a function, in the memory that it allocates.
std::vector<Stmt> NestsOf(const PrimFunc& func) {
  Stmt body = func.body;
  while (const auto* alloc = As<Alloc>(body)) body = alloc->body;
  const auto* seq = As<Seq>(body);
  return seq ? seq->stmts : std::vector<Stmt>{body};
}

// The loops, from the nest's outermost one on, of which each is alone in the one around it and runs
// over elements of every block.
Names OuterLoops(const Stmt& nest, const Names& blocks, Schedule* s) {
  Names out;
  for (const auto* loop = As<For>(nest); loop; loop = As<For>(loop->body)) {
    const std::string& name = loop->var->name;
    const bool spatial = std::all_of(blocks.begin(), blocks.end(), [&](const std::string& block) {
      const Names own = s->GetSpatialLoops(block);
      return std::find(own.begin(), own.end(), name) != own.end();
    });
    if (!spatial) break;
    out.push_back(name);
  }
  return out;
}

// Makes the loops parallel, or as many of the outer ones as may be. Returns why none is.
std::string MakeParallel(const Names& loops, Schedule* s) {
  std::string why = "its outermost loop does not run over elements";
  for (size_t count = loops.size(); count > 0; --count) {
    Schedule next = *s;
    const Names some(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(count));
    next.Parallel(count == 1 ? some[0] : next.Fuse(some));
    if (next.ok()) {
      *s = std::move(next);
      return "";
    }
    why = next.status().errors()[0].message;
  }
  return why;
}

Module Shared(const Module& module, const Func& kernel, Names* remarks) {
  const bool bound = HasConcurrentLoop(kernel->body);
  Schedule schedule(module, kernel->name);
  for (const Stmt& nest : NestsOf(*kernel)) {
    const Names blocks = BlocksOf(nest);
    if (blocks.empty() || HasConcurrentLoop(nest)) continue;
    const std::string what =
        fmt::format("{}: no loop of '{}' is bound", kernel->name, Join(blocks, "', '"));
    if (bound) {
      remarks->push_back(what + ", as others of the kernel are; one thread does it");
      continue;
    }
    const Names loops = OuterLoops(nest, blocks, &schedule);
    const std::string why = MakeParallel(loops, &schedule);
    remarks->push_back(why.empty() ? what + "; its outer loops are made parallel"
                                   : fmt::format("{}; one thread does everything ({})", what, why));
  }
  return schedule.module();
}

}  // namespace

Module WithDefaultThreads(const Module& module, Names* remarks) {
  Module out = module;
  for (const auto& [name, func] : module.funcs) {
    const bool kernel = func->func_kind == FuncKind::kKernel && func->IsForDevice();
    if (kernel && !IsBound(*func)) out = Shared(out, func, remarks);
  }
  return out;
}

}  // namespace tenon::driver
