// Two things are gained. A launch behind another one is got ready while that one ends, which is
// never slower. And it can be let in before: its blocks come as soon as those of the launch before
// are all there, load their weights, and wait. But blocks that come early come where there is room,
// not where each has a multiprocessor for itself, and so will they compute. ThreadWork of a few
// statements for each thread does not mind; a product's tiles do, and take half as long again. So
// whoever is launched before short work alone lets it begin.
#include "loop/pass/host/overlap_launches.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/visit.h"
#include "loop/threads.h"

namespace tenon {

namespace {

// Short work: statements of one thread, and threads. Of those that have more to load before they
// wait than behind it, as many as fit on a large device at once. Where next to all is loaded
// before, as in a row times a matrix, statements that compute with it do not count: they fill no
// device.
constexpr double kMostStatements = 64, kMostThreads = 1 << 16, kMostLoaders = 1 << 18;
constexpr double kMostOfLoaders = 1 << 10, kNextToAll = 16;

/// What all launches of a kernel have in common, and where they stand.
struct LaunchPlaces {
  bool follows = false;        // another launch, in some place
  std::set<size_t> changing;   // parameters that may be written, in some place
  std::set<std::string> next;  // kernels that are launched behind it
};

bool IsConstantRegion(const RegionNode& region) { return region.buffer->scope == Scope::kConst; }

// Goes over one host function. What is launched in a loop follows itself, and what branches launch
// follows either.
class LaunchReader {
 public:
  explicit LaunchReader(std::map<std::string, LaunchPlaces>* out) : out_(*out) {}

  void Read(const PrimFunc& host) {
    before_.clear();
    Visit(host.body);
  }

 private:
  void Visit(const NodeRef& node) {
    PreOrder(node, [&](const NodeRef& n) {
      if (const auto* launch = As<Launch>(n)) Add(*launch);
      const auto* loop = As<For>(n);
      const auto* open = As<While>(n);
      if (!loop && !open) return !IsA<ExprNode>(n);
      for (int round = 0; round < 2; ++round) Visit(loop ? loop->body : open->body);
      return false;
    });
  }

  void Add(const Launch& launch) {
    LaunchPlaces& own = out_[launch.kernel];
    own.follows |= !before_.empty();
    for (const std::string& name : before_) out_[name].next.insert(launch.kernel);
    before_ = {launch.kernel};
  }

  std::map<std::string, LaunchPlaces>& out_;
  std::set<std::string> before_;  // whose launch may be the last so far
};

// The kernel that a host function launches before any other, on every way; "" where branches or
// loops decide.
std::string FirstKernel(const PrimFunc& host) {
  std::string first;
  bool found = false;
  PreOrder(host.body, [&](const NodeRef& n) {
    if (found || IsA<ExprNode>(n)) return false;
    const auto* launch = As<Launch>(n);
    found = launch || IsA<If>(n) || IsA<For>(n) || IsA<While>(n);
    if (launch) first = launch->kernel;
    return !found;
  });
  return first;
}

// Inputs that stay what they are from the first launch to the last: no function writes its own, no
// caller gets outputs into their memory, and what was queued before is done when the first launch
// begins, which waits for all of it where its kernel is no dependent launch.
std::set<const BufferNode*> LastingInputs(const PrimFunc& host,
                                          const std::map<std::string, LaunchPlaces>& launched) {
  const auto first = launched.find(FirstKernel(host));
  if (first == launched.end() || first->second.follows) return {};
  std::set<const BufferNode*> out;
  for (const Buffer& b : host.buffers) out.insert(b.get());
  for (int64_t i = 0; i < host.num_outputs; ++i) out.erase(host.buffers.rbegin()[i].get());
  return out;
}

// Which of a kernel's parameters may be written while a launch before it runs.
void FindChanging(const PrimFunc& host, std::map<std::string, LaunchPlaces>* launched) {
  const std::set<const BufferNode*> lasting = LastingInputs(host, *launched);
  PreOrder(host.body, [&](const NodeRef& n) {
    const auto* launch = As<Launch>(n);
    for (size_t i = 0; launch && i < launch->buffers.size(); ++i) {
      const RegionNode& region = *launch->buffers[i];
      if (!IsConstantRegion(region) && !lasting.contains(region.buffer.get()))
        (*launched)[launch->kernel].changing.insert(i);
    }
    return !IsA<ExprNode>(n);
  });
}

// What one thread of a statement does, and how many there are; infinite where sizes say so.
struct ThreadWork {
  double statements = 0, threads = 1;
};

double ExtentOf(const For& loop) {
  return static_cast<double>(AsInt(loop.extent).value_or(INT64_MAX));
}

ThreadWork ThreadWorkOf(const Stmt& stmt) {
  ThreadWork out;
  PreOrder(stmt, [&](const NodeRef& n) {
    const auto* loop = As<For>(n);
    if (loop) {
      const ThreadWork inside = ThreadWorkOf(loop->body);
      const bool thread = loop->for_kind == ForKind::kThread;
      const bool apart = thread || loop->for_kind == ForKind::kVectorized;
      out.statements += inside.statements * (apart ? 1 : ExtentOf(*loop));
      out.threads = std::max(out.threads, inside.threads * (thread ? ExtentOf(*loop) : 1));
    } else if (IsA<While>(n)) {
      out.statements = std::numeric_limits<double>::infinity();
    }
    out.statements += IsA<Store>(n) || IsA<CallFunc>(n) || IsA<Atomic>(n);
    return !loop && !IsA<ExprNode>(n);
  });
  return out;
}

double StaticBytesOf(const BufferNode& buffer) {
  double bytes = buffer.dtype.Bytes();
  for (const Expr& extent : buffer.shape)
    bytes *= static_cast<double>(AsInt(extent).value_or(INT64_MAX));
  return bytes;
}

bool IsShort(const PrimFunc& kernel, const LaunchPlaces& own) {
  const ThreadWork work = ThreadWorkOf(kernel.body);
  double constant = 0, changing = 0;
  for (size_t i = 0; i < kernel.buffers.size(); ++i)
    (own.changing.contains(i) ? changing : constant) += StaticBytesOf(*kernel.buffers[i]);
  const bool is_loader = constant > kNextToAll * changing;
  return work.statements <= (is_loader ? kMostOfLoaders : kMostStatements) &&
         work.threads <= (constant > changing ? kMostLoaders : kMostThreads);
}

bool MayOverlap(const PrimFunc& kernel) {
  return kernel.func_kind == FuncKind::kKernel && kernel.IsForDevice() && kernel.target &&
         kernel.target->CanInPart(Ability::kDependentLaunches) && !kernel.attrs.Has(kAwaitsAttr) &&
         !kernel.attrs.Has(kPrecedesAttr) && !kernel.attrs.Has(kCooperativeAttr);
}

}  // namespace

Module OverlapLaunches(const Module& module, const PassContext&) {
  std::map<std::string, LaunchPlaces> launched;
  LaunchReader reader(&launched);
  for (const auto& [name, func] : module.funcs) {
    if (func->func_kind == FuncKind::kHost) reader.Read(*func);
  }
  for (const auto& [name, func] : module.funcs) {
    if (func->func_kind == FuncKind::kHost) FindChanging(*func, &launched);
  }
  Module out = module;
  for (const auto& [name, own] : launched) {
    const Func kernel = module.Find(name);
    if (!kernel || !MayOverlap(*kernel)) continue;
    PrimFunc fields = *kernel;
    if (own.follows) {
      std::vector<std::string> names;
      for (const size_t i : own.changing) names.push_back(kernel->buffers[i]->name);
      fields.attrs.Set(kAwaitsAttr, names);
    }
    const bool lets_begin = std::all_of(own.next.begin(), own.next.end(), [&](const auto& next) {
      const Func after = module.Find(next);
      return after && MayOverlap(*after) && IsShort(*after, launched.at(next));
    });
    if (!own.next.empty() && lets_begin) fields.attrs.Set(kPrecedesAttr, true);
    out.Add(PrimFunc::Make(std::move(fields)));
  }
  return out;
}

}  // namespace tenon
