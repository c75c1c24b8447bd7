#include "loop/pass/host/split_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "dependence/access.h"
#include "ir/visit.h"
#include "loop/pass/storage/storage.h"
#include "loop/rewrite.h"
#include "loop/threads.h"

namespace tenon {

namespace {

constexpr int64_t kMostBlockBytes = 16 << 10;
constexpr int64_t kBetweenAlign = 64;  // of memory that host functions plan

bool HasLoopOver(const Stmt& stmt, bool (*is_axis)(ThreadAxis)) {
  return AnyStmt(stmt, [&](const NodeRef& n) {
    const auto* loop = As<For>(n);
    return loop && loop->for_kind == ForKind::kThread && is_axis(loop->thread);
  });
}

// One kernel. groups_ are the statements in their order, in runs: memory of a thread or a block is
// used in one of them only, and what several use goes between them as parameters.
class Splitter {
 public:
  Splitter(const Func& kernel, const Module& module) : kernel_(kernel), module_(module) {
    Stmt body = kernel->body;
    for (; IsA<Alloc>(body); body = As<Alloc>(body)->body) {
      allocs_.push_back(As<Alloc>(body)->buffer);
    }
    if (const auto* seq = As<Seq>(body)) stmts_ = seq->stmts;
  }

  KernelParts operator()() {
    KernelParts out;
    const bool cooperative = kernel_->attrs.Has(kCooperativeAttr), one_block = IsOneBlock();
    const bool fits = FitsBlock();
    if (stmts_.size() > 1 && !cooperative && !(one_block && fits)) FindGroups();
    if (groups_.size() < 2) return {{one_block && fits ? WithinBlock() : kernel_}, {}};
    for (const Buffer& b : allocs_) {
      if (UsersOf(b) < 2) continue;
      auto aligned = MakeRef<BufferNode>(*b);
      aligned->align = std::max(b->align, kBetweenAlign);
      between_[b.get()] = aligned;
      out.between.push_back(between_[b.get()]);
    }
    for (size_t i = 0; i < groups_.size(); ++i) out.kernels.push_back(Part(i));
    return out;
  }

 private:
  bool IsOneBlock() const {
    bool threads = false;
    for (const Stmt& s : stmts_) {
      if (HasLoopOver(s, IsBlockAxis)) return false;
      threads |= HasLoopOver(s, IsThreadAxis);
    }
    return threads;
  }

  // Memory between the statements of one block is the block's, where it has so much.
  bool FitsBlock() const {
    int64_t bytes = 0;
    for (const Buffer& b : allocs_) {
      if (b->scope != Scope::kGlobal) continue;
      const auto size = AsInt(Flatten(b).size);
      if (!size) return false;
      bytes += *size * b->dtype.Bytes();
    }
    return bytes <= kMostBlockBytes;
  }

  Func WithinBlock() const {
    PrimFunc fields = *kernel_;
    BufferMap shared;
    Stmt body = kernel_->body;
    while (const auto* alloc = As<Alloc>(body)) body = alloc->body;
    for (size_t i = allocs_.size(); i-- > 0;) {
      auto own = MakeRef<BufferNode>(*allocs_[i]);
      if (own->scope == Scope::kGlobal) own->scope = Scope::kShared;
      shared[allocs_[i].get()] = own;
      body = Alloc::Make(own, body);
    }
    if (std::none_of(allocs_.begin(), allocs_.end(),
                     [](const Buffer& b) { return b->scope == Scope::kGlobal; }))
      return kernel_;
    fields.body = SubstituteBuffers(body, shared);
    return PrimFunc::Make(std::move(fields));
  }

  void FindGroups() {
    for (size_t first = 0; first < stmts_.size();) {
      size_t end = first + 1;
      // Until no statement behind shares a thread's or a block's memory with one of the group.
      for (size_t i = first; i < end; ++i) {
        for (const Buffer& b : allocs_) {
          if (b->scope == Scope::kGlobal || !UsesBuffer(stmts_[i], b.get())) continue;
          for (size_t j = end; j < stmts_.size(); ++j) {
            if (UsesBuffer(stmts_[j], b.get())) end = j + 1;
          }
        }
      }
      groups_.push_back(Seq::Make({stmts_.begin() + static_cast<int64_t>(first),
                                   stmts_.begin() + static_cast<int64_t>(end)}));
      first = end;
    }
  }

  int64_t UsersOf(const Buffer& b) const {
    return std::count_if(groups_.begin(), groups_.end(),
                         [&](const Stmt& s) { return UsesBuffer(s, b.get()); });
  }

  Func Part(size_t number) const {
    const Stmt& group = groups_[number];
    const Accesses touched = AccessesOf(group, module_, [](const Buffer&) { return true; });
    PrimFunc fields = *kernel_;
    fields.name = fmt::format("{}_{}", kernel_->name, number);
    fields.buffers.clear();
    fields.num_outputs = 0;
    for (const bool written : {false, true}) {
      auto add = [&](const Buffer& b) {
        const bool writes = touched.writes.count(b.get()) != 0;
        if (!UsesBuffer(group, b.get()) || writes != written) return;
        auto it = between_.find(b.get());
        fields.buffers.push_back(it == between_.end() ? b : it->second);
        fields.num_outputs += written ? 1 : 0;
      };
      for (const Buffer& b : kernel_->buffers) add(b);
      for (const Buffer& b : allocs_) {
        if (between_.count(b.get()) != 0) add(b);
      }
    }
    Stmt body = group;
    for (size_t i = allocs_.size(); i-- > 0;) {
      const Buffer& b = allocs_[i];
      if (between_.count(b.get()) == 0 && UsesBuffer(group, b.get())) body = Alloc::Make(b, body);
    }
    fields.body = SubstituteBuffers(body, between_);
    if (IsDependent(number)) fields.attrs.Set(kAwaitsAttr, AwaitedBy(number, fields.buffers));
    if (number + 1 < groups_.size() && IsDependent(number + 1))
      fields.attrs.Set(kPrecedesAttr, true);
    return PrimFunc::Make(std::move(fields));
  }

  // The first waits for whatever its caller has queued.
  bool IsDependent(size_t number) const {
    return number > 0 && !AskedBy(groups_[number], kDependentAttr).empty();
  }

  // What an earlier launch may still touch when this one begins: all that is handed over, whose
  // memory others may have had before, and what one of the two writes.
  std::vector<std::string> AwaitedBy(size_t number, const std::vector<Buffer>& own) const {
    auto writes = [&](const Stmt& s, const Buffer& b) {
      return AccessesOf(s, module_, [](const Buffer&) { return true; }).writes.count(b.get()) != 0;
    };
    std::vector<std::string> names;
    for (const Buffer& b : own) {
      const bool param =
          std::find(kernel_->buffers.begin(), kernel_->buffers.end(), b) != kernel_->buffers.end();
      bool awaited = !param;
      for (size_t i = 0; param && i < number; ++i) {
        if (!UsesBuffer(groups_[i], b.get())) continue;
        awaited |= writes(groups_[i], b) || writes(groups_[number], b);
      }
      if (awaited) names.push_back(b->name);
    }
    return names;
  }

  const Func& kernel_;
  const Module& module_;
  std::vector<Buffer> allocs_;  // around the statements
  std::vector<Stmt> stmts_;
  std::vector<Stmt> groups_;
  BufferMap between_;  // memory that crosses groups → as parameter
};

}  // namespace

Func WithLaunchAttributes(const Func& func) {
  const std::string cooperative = AskedBy(func->body, kCooperativeAttr);
  const bool asked = !cooperative.empty() && !func->attrs.Has(kCooperativeAttr);
  if (!asked) return func;
  PrimFunc fields = *func;
  fields.attrs.Set(kCooperativeAttr, cooperative);
  return PrimFunc::Make(std::move(fields));
}

void CheckDependentLaunch(const PrimFunc& func, const PassContext& context) {
  const std::string dependent = AskedBy(func.body, kDependentAttr);
  if (dependent.empty() || func.attrs.Has(kAwaitsAttr)) return;
  context.Error(func, dependent + " has dependent_launch, but nothing is launched before it");
}

KernelParts SplitKernel(const Func& kernel, const Module& module) {
  return Splitter(kernel, module)();
}

}  // namespace tenon
