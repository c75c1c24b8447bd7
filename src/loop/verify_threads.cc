// Rules about kernels whose threads are those of a GPU: their form, their needs, their size.
//
// Two kinds of questions. Is the bound form what it says, one nest of axes in their order, over the
// kernel's dims? And does the machine have it: so many threads and blocks along each axis, shared
// memory, registers, clusters, launches whose blocks wait for each other? Numbers are saturated
// far above any machine, so that hostile extents neither overflow nor pass. Of
//
//   func @threads(out A: f32[2048]) target "cuda -arch=sm_80" {bound: 1} {
//     for y in 0..2 thread threadIdx.y {
//       for x in 0..1024 thread threadIdx.x { A[y * 1024 + x] = 0 }
//     }
//   }
//
// it is said that
//
//   @threads: error: 2048 threads per block, but the target sm_80 has at most 1024 (its option
//   -max_threads_per_block)

#include <algorithm>
#include <optional>

#include "arith/analyzer.h"
#include "loop/threads.h"
#include "loop/verify_impl.h"
#include "loop/warpgroup.h"
#include "target/target.h"

namespace tenon {

namespace {

void CheckAxis(const VerifyContext& c, const For& loop) {
  if (!IsZero(loop.min)) {
    c.Error("the launch's axis {} starts at {}: expected 0", Name(loop.thread),
            ToString(NodeRef(loop.min)));
  }
  PreOrder(loop.extent, [&](const NodeRef& n) {
    const auto& dims = c.func.dims;
    const auto& scalars = c.func.scalars;
    auto is = [&](const Var& v) { return v.get() == n.get(); };
    const bool known = std::any_of(dims.begin(), dims.end(), is) ||
                       std::any_of(scalars.begin(), scalars.end(), is);
    if (IsA<Load>(n) || (IsA<VarNode>(n) && !known)) {
      c.Error("the launch's extent of {}, {}, needs more than the kernel's dims", Name(loop.thread),
              ToString(NodeRef(loop.extent)));
      return false;
    }
    return true;
  });
}

// The nest, whether or not the function says that it is bound: back ends take no other.
void CheckNest(const VerifyContext& c) {
  const ThreadNest nest = PeelThreads(c.func);
  int last = -1;
  for (const For* loop : nest.axes) {
    const int rank = AxisRank(loop->thread);
    if (rank <= last) {
      c.Error(
          "the launch's axes are out of order at {}: expected blockIdx.z, y, x, then "
          "clusterCtaIdx.z, y, x, then threadIdx.z, y, x, each once",
          Name(loop->thread));
    }
    last = std::max(last, rank);
    CheckAxis(c, *loop);
  }
  PreOrder(nest.body, [&](const NodeRef& n) {
    const auto* loop = As<For>(n);
    if (loop && loop->for_kind == ForKind::kThread) {
      c.Error(
          "loop '{}' over {} stands inside the body of the launch: expected all axes in one "
          "nest around it",
          loop->var->name, Name(loop->thread));
    }
    return !IsA<ExprNode>(n);
  });
}

constexpr int64_t kMost = int64_t{1} << 50;  // more than any machine has

// Nothing where it is not constant.
std::optional<int64_t> BytesOf(const Buffer& buffer) {
  __int128 size = buffer->dtype.Bytes();
  for (const Expr& extent : StorageExtents(buffer->shape, buffer->layout)) {
    auto n = AsInt(Simplify(extent));
    if (!n) return std::nullopt;
    size = std::min<__int128>(size * std::max<int64_t>(*n, 0), kMost);
  }
  return static_cast<int64_t>(size);
}

int64_t SharedBytes(const VerifyContext& c) {
  int64_t bytes = 0;
  c.ForEach([&](const NodeRef& node) {
    const auto* alloc = As<Alloc>(node);
    if (!alloc || alloc->buffer->scope != Scope::kShared) return;
    const auto size = BytesOf(alloc->buffer);
    if (!size)
      return c.Error(
          "'{}' in shared has a size that is not constant: expected a tile of it, by splitting its "
          "loops by constants and compute_at in an inner one",
          alloc->buffer->name);
    bytes = std::min(bytes + *size, kMost);
  });
  return bytes;
}

// The registers of 32 bits that one thread asks for at a time.
int64_t NumRegisters(const Stmt& stmt) {
  int64_t most = 0;
  PreOrder(stmt, [&](const NodeRef& n) {
    const auto* alloc = As<Alloc>(n);
    if (!alloc) return !IsA<ExprNode>(n);
    const bool counts = alloc->buffer->scope == Scope::kRegister;
    const int64_t own = counts ? (BytesOf(alloc->buffer).value_or(0) + 3) / 4 : 0;
    most = std::max(most, std::min(own + NumRegisters(alloc->body), kMost));
    return false;
  });
  return most;
}

// A launch gives all warps the same; who asks for more than others give back waits for ever.
void CheckRegisters(const VerifyContext& c, const Roles& roles, int64_t threads) {
  constexpr int64_t kAll = 65536, kGranule = 8, kGroup = kWarpgroup / kLanes;
  const int64_t given = kAll / std::max<int64_t>(threads, 1) / kGranule * kGranule * threads;
  int64_t warps = 0, asked = 0;
  for (size_t i = 0; i < roles.names.size(); ++i) {
    const int64_t registers = roles.registers[i], size = std::min(roles.sizes[i], kMost);
    warps = std::min(warps + size, kMost);
    const bool possible = registers % kGranule == 0 && registers >= 24 && registers <= 256;
    if (registers != 0 && (!possible || size % kGroup != 0))
      c.Error("role '{}': expected warpgroups with 24 to 256 registers a thread, in eights",
              roles.names[i]);
    asked = std::min(asked + size * kLanes * std::min<int64_t>(registers, 256), kMost);
  }
  if (warps * kLanes != threads)
    c.Error("roles of {} warps in a block of {} threads", warps, threads);
  if (asked > given)
    c.Error("roles ask for {} registers, but a launch of {} threads has {}", asked, threads, given);
}

std::string TargetName(const Target& target) { return "the target " + target.ShortName(); }

// What the kind allows along each axis, on every architecture.
void CheckAxisLimit(const VerifyContext& c, const For& loop, const Target& target) {
  const bool thread = IsThreadAxis(loop.thread);
  if (!thread && (!IsBlockAxis(loop.thread) || IsClusterAxis(loop.thread))) return;
  const auto along = static_cast<size_t>(2 - AxisRank(loop.thread) % 3);
  const int64_t most = (thread ? target.kind().most_threads : target.kind().most_blocks)[along];
  const auto extent = AsInt(Simplify(loop.extent));
  if (most > 0 && extent && *extent > most)
    c.Error("{} {} along {}, but {} has at most {}", *extent, thread ? "threads" : "blocks",
            Name(loop.thread), TargetName(target), most);
}

void CheckLimits(const VerifyContext& c, const Target& target) {
  const GpuLimits& limits = target.gpu();
  const std::string name = TargetName(target);
  __int128 threads = 1;
  for (const For* loop : PeelThreads(c.func).axes) {
    auto extent = AsInt(Simplify(loop->extent));
    CheckAxisLimit(c, *loop, target);
    if (!IsThreadAxis(loop->thread)) continue;
    if (!extent) {
      c.Error("the extent of {} is not constant: blocks have a fixed number of threads",
              Name(loop->thread));
      return;
    }
    threads = std::min<__int128>(threads * *extent, kMost);
  }
  if (threads > limits.max_threads_per_block) {
    c.Error("{} threads per block, but {} has at most {} (its option -max_threads_per_block)",
            static_cast<int64_t>(threads), name, limits.max_threads_per_block);
  }
  c.ForEach([&](const NodeRef& node) {
    const auto* roles = As<Roles>(node);
    if (roles && target.Can(Ability::kBarriers))
      CheckRegisters(c, *roles, static_cast<int64_t>(threads));
  });
  const int64_t shared = SharedBytes(c);
  if (shared > limits.max_shared_memory_per_block) {
    c.Error(
        "{} bytes of shared memory per block, but {} has at most {} (its option "
        "-max_shared_memory_per_block)",
        shared, name, limits.max_shared_memory_per_block);
  }
  const __int128 registers = threads * NumRegisters(c.func.body);
  if (registers > limits.registers_per_block) {
    c.Error(
        "{} registers per block, but {} has at most {}: expected fewer threads, or less in "
        "register",
        static_cast<int64_t>(std::min<__int128>(registers, kMost)), name,
        limits.registers_per_block);
  }
}

// Who wants it: what the schedule annotated, where that is known.
std::string AskerOf(const AttrValue& value) {
  const auto* by = std::get_if<std::string>(&value);
  return by ? *by : "the launch";
}

void CheckClusters(const VerifyContext& c, const Target& target) {
  const bool has = target.Can(Ability::kClusters);
  int64_t blocks = 1;
  for (const For* loop : PeelThreads(c.func).axes) {
    if (!IsClusterAxis(loop->thread)) continue;
    if (!has) {
      return c.Error("loop '{}' over {}: clusters of blocks need {}, but the target is {}",
                     loop->var->name, Name(loop->thread), FeatureFor(Ability::kClusters),
                     target.ShortName());
    }
    const auto extent = AsInt(Simplify(loop->extent));
    if (!extent || *extent < 1) {
      return c.Error("loop '{}' over {}: expected a constant number of blocks but got {}",
                     loop->var->name, Name(loop->thread), ToString(NodeRef(loop->extent)));
    }
    blocks = std::min(blocks * std::min(*extent, kMost), kMost);
    if (blocks > kMostInCluster) {
      return c.Error("loop '{}' over {} makes clusters of {} blocks: at most {} are possible",
                     loop->var->name, Name(loop->thread), blocks, kMostInCluster);
    }
  }
}

// Who waits for whom, and what the target has for it.
void CheckMeetings(const VerifyContext& c, const Target& target) {
  const AttrValue* cooperative = c.func.attrs.Find(kCooperativeAttr);
  const bool meets = target.Can(Ability::kCooperative);
  if (cooperative && !meets) {
    c.Error("{} is cooperative, but {} has no launches whose blocks wait for each other",
            AskerOf(*cooperative), target.ShortName());
  }
  if (c.func.attrs.Has(kAwaitsAttr) && !target.CanInPart(Ability::kDependentLaunches)) {
    c.Error("dependent_launch needs {}, but the target is {}",
            FeatureFor(Ability::kDependentLaunches), target.ShortName());
  }
  c.ForEach([&](const NodeRef& node) {
    const auto* sync = As<Sync>(node);
    if (!sync || (cooperative && !meets)) return;
    if (sync->level == Level::kGrid && !cooperative)
      c.Error("sync grid in a launch that is not cooperative");
    if (sync->level == Level::kCluster && !target.Can(Ability::kClusters))
      c.Error("sync cluster needs {}, but the target is {}", FeatureFor(Ability::kClusters),
              target.ShortName());
  });
}

}  // namespace

void CheckBoundForm(const VerifyContext& context) {
  if (!IsBound(context.func)) return;
  if (context.func.func_kind != FuncKind::kKernel)
    context.Error("only a kernel is launched over threads");
  CheckNest(context);
}

void CheckLaunch(const VerifyContext& context) {
  if (context.func.func_kind != FuncKind::kKernel) return;
  if (!context.func.IsForDevice()) return;
  const Target& target = *context.func.target;
  CheckNest(context);
  CheckLimits(context, target);
  CheckClusters(context, target);
  CheckMeetings(context, target);
}

}  // namespace tenon
