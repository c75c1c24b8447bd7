#include "codegen/gpu/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/visit.h"
#include "loop/threads.h"

namespace tenon::codegen {

namespace {

constexpr int64_t kMostStaticShared = 48 * 1024;
constexpr int64_t kSharedAlign = 16;

// One kernel's launch, read off its nest. It goes on behind an error where it can, so that several
// are told; launch_ is of use only while there is none.
class LaunchReader {
 public:
  LaunchReader(const PrimFunc& kernel, const Target& target)
      : kernel_(kernel), target_(target), limits_(target.gpu()) {}

  Expected<GpuLaunch> Read() {
    launch_.grid.fill(IndexConst(1));
    launch_.cooperative = kernel_.attrs.Has(kCooperativeAttr);
    launch_.dependent = kernel_.attrs.Has(kAwaitsAttr);
    const ThreadNest nest = PeelThreads(kernel_);
    for (const For* loop : nest.axes) ReadLoop(*loop);
    PreOrder(nest.body, [&](const NodeRef& n) {
      const auto* loop = As<For>(n);
      if (loop && loop->for_kind == ForKind::kThread) {
        Error("the loop '{}' over {} is not part of the nest around the kernel's body",
              loop->var->name, Name(loop->thread));
      }
      if (const auto* sync = As<Sync>(n)) CheckSync(sync->level);
      return errors_.empty();
    });
    PlaceShared();
    CheckLimits();
    if (!errors_.empty()) return std::move(errors_);
    return std::move(launch_);
  }

 private:
  template <class... Args>
  void Error(fmt::format_string<Args...> format, Args&&... args) {
    SourceLoc loc;
    loc.item = "function '" + kernel_.name + "'";
    errors_.push_back(MakeError(fmt::format(format, std::forward<Args>(args)...), std::move(loc)));
  }

  void ReadLoop(const For& loop) {
    if (!axes_.insert(loop.thread).second) Error("two loops over {}", Name(loop.thread));
    if (!IsZero(loop.min)) Error("the loop '{}' does not begin at 0", loop.var->name);
    const auto dim = static_cast<size_t>(Info(loop.thread).dim);
    switch (Info(loop.thread).level) {
      case AxisLevel::kBlock: return ReadGrid(dim, loop);
      case AxisLevel::kCluster: return ReadConstant(loop, "blocks", &launch_.cluster[dim]);
      case AxisLevel::kThread: return ReadConstant(loop, "threads", &launch_.block[dim]);
      case AxisLevel::kVirtual:
      case AxisLevel::kNone: return;  // part of no nest of axes
    }
  }

  // The verifier has said so, of a module that it has seen.
  void CheckSync(Level level) {
    if (level == Level::kGrid && !launch_.cooperative)
      Error("sync grid in a launch that is not cooperative");
    if (level == Level::kCluster && !target_.Can(Ability::kClusters))
      Error("sync cluster needs {}, but the target is {}", FeatureFor(Ability::kClusters),
            target_.ShortName());
  }

  void ReadConstant(const For& loop, const char* what, int64_t* out) {
    const auto extent = AsInt(loop.extent);
    if (extent && *extent > 0) {
      *out = *extent;
    } else {
      Error("{} needs a constant number of {}", Name(loop.thread), what);
    }
  }

  void ReadGrid(size_t i, const For& loop) {
    launch_.grid[i] = loop.extent;
    PreOrder(loop.extent, [&](const NodeRef& n) {
      const auto* var = As<VarNode>(n);
      const bool known = !var || std::any_of(kernel_.dims.begin(), kernel_.dims.end(),
                                             [&](const Var& d) { return d.get() == var; });
      if (!known || IsA<Load>(n))
        Error("the blocks along {} depend on more than dims", Name(loop.thread));
      return known;
    });
  }

  void PlaceShared() {
    PreOrder(kernel_.body, [&](const NodeRef& n) {
      const auto* alloc = As<Alloc>(n);
      if (!alloc || HolderOf(alloc->buffer->scope) != Holder::kBlock) return true;
      const Buffer& b = alloc->buffer;
      int64_t bytes = b->dtype.Bytes();
      for (const Expr& extent : b->shape) {
        const auto size = AsInt(extent);
        if (!size || __builtin_mul_overflow(bytes, *size, &bytes)) {
          Error("'{}' in shared memory needs a constant size", b->name);
          return false;
        }
      }
      const int64_t align = std::max(b->align, kSharedAlign);
      const int64_t at = (launch_.shared_bytes + align - 1) / align * align;
      launch_.shared[b.get()] = at;
      if (__builtin_add_overflow(at, bytes, &launch_.shared_bytes))
        Error("'{}' in shared memory is too large", b->name);
      return errors_.empty();
    });
    launch_.dynamic_shared = launch_.shared_bytes > kMostStaticShared;
  }

  void CheckLimits() {
    int64_t threads = 1;
    for (int64_t n : launch_.block) {
      if (__builtin_mul_overflow(threads, n, &threads)) threads = INT64_MAX;
    }
    int64_t cluster = 1;
    for (int64_t n : launch_.cluster) cluster *= std::min(n, kMostInCluster + 1);
    if (cluster > kMostInCluster)
      Error("a cluster of {} blocks: at most {} are possible", cluster, kMostInCluster);
    if (threads > limits_.max_threads_per_block) {
      Error("a block of {} threads, but {} has at most {}", threads, limits_.arch,
            limits_.max_threads_per_block);
    }
    if (launch_.shared_bytes > limits_.max_shared_memory_per_block) {
      Error("{} bytes of shared memory in a block, but {} has at most {}", launch_.shared_bytes,
            limits_.arch, limits_.max_shared_memory_per_block);
    }
  }

  const PrimFunc& kernel_;
  const Target& target_;
  const GpuLimits& limits_;
  GpuLaunch launch_;
  std::set<ThreadAxis> axes_;
  Diagnostics errors_;
};

}  // namespace

Expected<GpuLaunch> LaunchOf(const PrimFunc& kernel, const Target& target) {
  return LaunchReader(kernel, target).Read();
}

}  // namespace tenon::codegen
