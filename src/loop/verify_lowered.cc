// Rules of the last stage: what back ends take, and what nobody lowers yet.
#include "loop/threads.h"
#include "loop/verify_impl.h"
#include "target/target.h"

namespace tenon {

namespace {

// What kind of machine a function is for.
struct Machine {
  bool gpu = false;
  bool has_barriers = false;  // that threads and copies meet at
};

Machine MachineOf(const TargetRef& target) {
  if (!target) return {};
  return {target->IsDevice(), target->Can(Ability::kBarriers)};
}

// The construct that has no lowering; "" when it has one.
std::string UnsupportedExpr(const ExprNode& e) {
  if (e.dtype.scalable) return fmt::format("scalable vectors ({})", e.dtype.ToString());
  const auto* call = As<Call>(static_cast<const Node*>(&e));
  return call && call->intrinsic == Intrinsic::kVScale ? "vscale" : "";
}

std::string UnsupportedBuffer(const BufferNode& b, const Machine& m) {
  if (b.layout && !b.layout->threads.empty())
    return fmt::format("a layout with thread axes ('{}')", b.name);
  if (b.dtype.StorageBits() % 8 != 0)
    return fmt::format("packed elements of {} ('{}')", b.dtype.ToString(), b.name);
  if ((b.scope == Scope::kShared && !m.gpu) || (b.scope == Scope::kTile && m.gpu) ||
      IsFragment(b) || (b.scope == Scope::kBarrier && !m.has_barriers))
    return fmt::format("memory in {} ('{}')", Name(b.scope), b.name);
  return "";
}

std::string UnsupportedStmt(const NodeRef& node, const Machine& m) {
  if (const auto* s = As<For>(node); s && s->for_kind == ForKind::kThread && !m.gpu) {
    return fmt::format("the thread axis {} on a CPU (loop '{}')", Name(s->thread), s->var->name);
  }
  if (const auto* s = As<Block>(node)) {
    if (s->async) return fmt::format("async ({})", Describe(node));
    if (s->at != Level::kThread && s->at != Level::kWorker)
      return fmt::format("level {} ({})", Name(s->at), Describe(node));
  }
  if (const auto* s = As<Sync>(node)) {
    const bool known = s->level == Level::kThread || s->level == Level::kWorker ||
                       s->level == Level::kTeam ||
                       (m.gpu && (s->level == Level::kCta || s->level == Level::kWarp)) ||
                       // CheckLaunch says which of these GPUs have it.
                       (m.gpu && (s->level == Level::kCluster || s->level == Level::kGrid));
    return known ? "" : fmt::format("sync {}", Name(s->level));
  }
  if (const auto* s = As<Launch>(node); s && !s->place.IsHost()) {
    return fmt::format("a launch on {} ('{}')", s->place.ToString(), s->kernel);
  }
  if (m.has_barriers) return "";
  if (const auto* s = As<Barrier>(node))
    return fmt::format("{} on a barrier ('{}')", Name(s->op), s->buffer->name);
  return IsA<Roles>(node) ? "roles" : "";
}

}  // namespace

void CheckSupported(const VerifyContext& context) {
  // Its body says what it means; what is written is the target's operation.
  if (IsWarpFunction(context.func)) {
    if (!context.func.attrs.Has("intrinsic")) {
      context.Unsupported(fmt::format("'{}', an operation of a warp that the target does not have",
                                      context.func.name));
    }
    return;
  }
  const Machine machine = MachineOf(context.func.target);
  const bool part = context.func.func_kind == FuncKind::kDevice && !context.func.target;
  context.ForEach([&](const NodeRef& node) {
    std::string what;
    if (IsA<ExprNode>(node)) {
      what = UnsupportedExpr(static_cast<const ExprNode&>(*node));
    } else if (const auto* buffer = As<BufferNode>(node)) {
      // Of a part of a kernel that has no target, its callers say where it runs.
      const bool shared = HolderOf(buffer->scope) == Holder::kBlock;
      what = UnsupportedBuffer(*buffer, shared && part ? Machine{true, true} : machine);
    } else if (IsA<StmtNode>(node)) {
      what = UnsupportedStmt(node, machine);
    }
    if (!what.empty()) context.Unsupported(what);
  });
}

void CheckLowered(const VerifyContext& context) {
  if (IsWarpFunction(context.func)) return;
  context.ForEach([&](const NodeRef& node) {
    if (const auto* b = As<BufferNode>(node)) {
      if (b->shape.size() > 1)
        context.Error("'{}' still has {} dimensions", b->name, b->shape.size());
      if (b->layout || !b->strides.empty())
        context.Error("'{}' still has a layout or strides", b->name);
    } else if (const auto* s = As<For>(node)) {
      const bool left = s->for_kind != ForKind::kSerial && s->for_kind != ForKind::kThread;
      if (left) context.Error("{} is still {}", Describe(node), Name(s->for_kind));
    } else if (const auto* s = As<Block>(node)) {
      if (!s->iters.empty() || s->where || s->init)
        context.Error("{} is still no mere marker", Describe(node));
    } else if (IsA<Launch>(node)) {
      context.Error("{} is still there", Describe(node));
    }
  });
}

}  // namespace tenon
