// Counting groups.
//
// A thread's asynchronous copies are closed in groups, in order, and all that it can wait for is
// "no more than n groups, the latest, are under way". So the question at a statement that reads is
// how many groups were closed since the one that it reads from; that many may go on. Statements of
// a list are parts, each with what it copies and what it reads of asynchronously written buffers;
// copying parts in a row are one run, and a run is one group. A buffer with versions, as
// software_pipeline makes them, has its version in the first index: an iteration reads what was
// copied `back` iterations ago if the index of the copy there is the index of the read here, and
// then back * (groups per iteration) groups have been closed since. From
//
//   alloc S: f32[3, 32] in shared
//   for k in 0..10 {
//     if k >= 2 {
//       for i in 0..32 thread threadIdx.x { C[k - 2, i] = S[(k - 2) % 3, 31 - i] }
//     }
//     if k < 8 {
//       for c in 0..8 thread threadIdx.x {
//         call @ptx.cp.async.copy.f32(A[k, c * 4..+4], S[k % 3, c * 4..+4])
//       }
//     }
//   }
//
// comes, since (k - 2) % 3 was written two iterations ago, and one group has been closed since,
//
//   for k in 0..10 {
//     call @ptx.cp.async.wait.1()
//     if k >= 2 { … }
//     if k < 8 { … }
//     call @ptx.cp.async.commit()
//   }
//
// Waiting longer than needed is never wrong, so whatever is not known takes the least number that
// is possible. A wait that an earlier one, of this iteration or the one before, has done already is
// left out (Waits finds the fixed point over iterations).

#include "loop/pass/threads/lower_async.h"

#include <algorithm>
#include <set>

#include "dependence/access.h"
#include "intrin/tile_intrinsic.h"
#include "loop/pass/storage/storage.h"
#include "loop/rewrite.h"
#include "loop/threads.h"
#include "support/check.h"

namespace tenon {

namespace {

bool IsAsyncCopy(const PrimFunc& func) {
  return func.buffers.size() == 2 && func.attrs.Has(kIntrinsicAttr) &&
         func.name.starts_with(kAsyncCopyRows);
}

// A statement that touches an asynchronously written buffer: its first index where it is one.
struct Touch {
  const BufferNode* buffer;
  Expr first;  // null: several, or unknown
};

// One kernel. A read of what was copied never comes before a wait that covers it: whatever is not
// known counts as copied last.
class AsyncLowerer final : public ScopedRewriter {
 public:
  AsyncLowerer(const PrimFunc& func, const Module& module, const PassContext& context)
      : func_(func), module_(module), context_(context) {
    Learn(func, &analyzer_);
    PreOrder(func.body, [&](const NodeRef& n) {
      if (const CallFunc* call = CopyOf(n)) ++written_[call->buffers[1]->buffer.get()];
      return !IsA<ExprNode>(n);
    });
  }
  bool any() const { return !written_.empty(); }
  /// Names of the functions that calls were added of.
  std::set<std::string> called;

 private:
  const CallFunc* CopyOf(const NodeRef& n) const {
    const auto* call = As<CallFunc>(n);
    const Func callee = call ? module_.Find(call->callee) : nullptr;
    return callee && IsAsyncCopy(*callee) ? call : nullptr;
  }

  Stmt VisitStmt(const Stmt& stmt) override {
    if (const auto* loop = As<For>(stmt)) {
      const For* outer = std::exchange(loop_, loop);
      Stmt out = Children(stmt);
      loop_ = outer;
      return out;
    }
    if (const CallFunc* call = CopyOf(stmt)) CheckBytes(*call);
    const auto* seq = As<Seq>(stmt);
    return seq ? InOrder(*seq) : Children(stmt);
  }

  // The machine copies from global memory alone, and from and to multiples of what it copies.
  void CheckBytes(const CallFunc& call) {
    const Func callee = module_.Find(call.callee);
    for (size_t i = 0; i < call.buffers.size(); ++i) {
      const BufferNode& b = *call.buffers[i]->buffer;
      const int64_t align = callee->buffers[i]->align;
      const bool base =
          b.scope == Scope::kShared || (b.scope == Scope::kGlobal && b.align >= align);
      const auto bytes = BytesBefore(*call.buffers[i]);
      const bool known = base && bytes && IsZero(analyzer_.Simplify(*bytes % align));
      if (known && (i == 1 || b.scope == Scope::kGlobal)) continue;
      const std::string what = call.callee + " of " + b.name + ": expected " +
                               (i == 0 ? "global" : "shared") + " memory at a multiple of " +
                               std::to_string(align) + " bytes";
      context_.Error(func_, what);
    }
  }

  // What the statements of a list do with asynchronously written buffers.
  struct Part {
    std::vector<Touch> copies, reads;
  };

  Part PartOf(const Stmt& stmt) const {
    Part part;
    auto touch = [&](const BufferNode* b, const Expr& first, std::vector<Touch>* list) {
      if (written_.count(b) != 0) list->push_back({b, first});
    };
    PreOrder(stmt, [&](const NodeRef& n) {
      if (const auto* load = As<Load>(n))
        touch(load->buffer.get(), load->indices.empty() ? nullptr : load->indices[0], &part.reads);
      if (const auto* call = As<CallFunc>(n)) {
        const bool copies = CopyOf(n) != nullptr;
        for (size_t i = 0; i < call->buffers.size(); ++i) {
          const RegionNode& r = *call->buffers[i];
          const bool one = !r.ranges.empty() && IsOne(r.ranges[0]->extent);
          touch(r.buffer.get(), one ? r.ranges[0]->min : nullptr,
                copies && i == 1 ? &part.copies : &part.reads);
        }
      }
      return true;
    });
    return part;
  }

  Stmt InOrder(const Seq& seq) {
    std::vector<Part> parts;
    std::vector<size_t> runs;  // copying parts begin a new run after one that does not copy
    bool mixed = false;
    for (const Stmt& s : seq.stmts) {
      const bool first = parts.empty() || parts.back().copies.empty();
      parts.push_back(PartOf(s));
      const bool copies = !parts.back().copies.empty();
      mixed |= copies && !parts.back().reads.empty();
      runs.push_back((runs.empty() ? 0 : runs.back()) + (copies && first ? 1 : 0));
    }
    if (runs.empty() || runs.back() == 0) return Children(Stmt(&seq));
    return mixed || !HasAllCopies(parts) ? WaitingForAll(seq, parts) : Counting(seq, parts, runs);
  }

  // No copies of what is read here are made elsewhere.
  bool HasAllCopies(const std::vector<Part>& parts) const {
    std::unordered_map<const BufferNode*, size_t> here;
    for (const Part& p : parts) {
      for (const Touch& copy : p.copies) ++here[copy.buffer];
    }
    return std::all_of(parts.begin(), parts.end(), [&](const Part& p) {
      return std::all_of(p.reads.begin(), p.reads.end(), [&](const Touch& read) {
        auto it = here.find(read.buffer);
        return it != here.end() && it->second == written_.at(read.buffer);
      });
    });
  }

  // A part that copies what it reads has its waits inside, for what it knows of: all that was
  // copied before it is there.
  Stmt WaitingForAll(const Seq& seq, const std::vector<Part>& parts) {
    std::vector<Stmt> out;
    bool copied = false;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (copied && !parts[i].reads.empty()) {
        out.push_back(CallTo(kAsyncCommitRow));
        out.push_back(Wait(0));
      }
      copied |= !parts[i].copies.empty();
      out.push_back(VisitStmt(seq.stmts[i]));
    }
    return Seq::Make(std::move(out));
  }

  Stmt Counting(const Seq& seq, const std::vector<Part>& parts, const std::vector<size_t>& runs) {
    const std::vector<int64_t> waits = Waits(parts, runs, loop_ && loop_->body.get() == &seq);
    std::vector<Stmt> out;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (waits[i] >= 0) out.push_back(Wait(waits[i]));
      out.push_back(VisitStmt(seq.stmts[i]));
      if (Closes(parts, i)) out.push_back(CallTo(kAsyncCommitRow));
    }
    return Seq::Make(std::move(out));
  }

  // A group ends behind the last of several statements that copy.
  static bool Closes(const std::vector<Part>& parts, size_t i) {
    return !parts[i].copies.empty() && (i + 1 == parts.size() || parts[i + 1].copies.empty());
  }

  // How many groups may be under way at each statement that has to wait, else -1. In a loop, the
  // waits of an iteration count for the next one: what the first one reads was not copied before.
  std::vector<int64_t> Waits(const std::vector<Part>& parts, const std::vector<size_t>& runs,
                             bool repeats) {
    constexpr int64_t kAny = kMostAsyncGroups + 1;
    std::vector<int64_t> least(parts.size(), kAny);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!parts[i].reads.empty()) least[i] = GroupsSince(parts, runs, i);
    }
    std::vector<int64_t> out(parts.size(), -1);
    // Under way where the statements begin, at most; no more than where they end, in the end.
    for (int64_t begin = repeats ? 0 : kAny;;) {
      int64_t under_way = begin;
      for (size_t i = 0; i < parts.size(); ++i) {
        out[i] = !parts[i].reads.empty() && least[i] < under_way ? least[i] : -1;
        under_way = std::min(under_way, least[i]) + (Closes(parts, i) ? 1 : 0);
      }
      if (!repeats || std::min(under_way, kAny) <= begin) return out;
      begin = std::min(under_way, kAny);
    }
  }

  // How many groups were closed after the latest one that statement `reader` reads from.
  int64_t GroupsSince(const std::vector<Part>& parts, const std::vector<size_t>& runs,
                      size_t reader) {
    const auto per_iteration = static_cast<int64_t>(runs.back());
    // Those before it in the same iteration: the runs that have begun, which have ended too.
    const auto before = static_cast<int64_t>(runs[reader]);
    int64_t least = kMostAsyncGroups;
    for (size_t i = 0; i < parts.size(); ++i) {
      for (const Touch& copy : parts[i].copies) {
        for (const Touch& read : parts[reader].reads) {
          if (copy.buffer != read.buffer) continue;
          const int64_t back = IterationsBack(copy, read, i < reader);
          const int64_t since = back * per_iteration + before - static_cast<int64_t>(runs[i]);
          least = std::min(least, std::max<int64_t>(since, 0));
        }
      }
    }
    return least;
  }

  // In which earlier iteration of the loop around was copied what is read in this one; the latest
  // that is possible.
  int64_t IterationsBack(const Touch& copy, const Touch& read, bool copied_first) {
    const int64_t latest = copied_first ? 0 : 1;
    if (!loop_ || loop_->for_kind == ForKind::kThread || !copy.first || !read.first) return latest;
    const auto versions = AsInt(copy.buffer->shape[0]).value_or(1);
    for (int64_t back = latest; back < versions + latest; ++back) {
      const Expr then = Substitute(copy.first, VarMap{{loop_->var.get(), Expr(loop_->var) - back}});
      const auto apart = AsInt(analyzer_.Simplify(read.first - then));
      if (apart && *apart == 0) return back;
      if (analyzer_.CanProveEqual(read.first, then)) return back;
    }
    return latest;
  }

  Stmt CallTo(const std::string& name) {
    called.insert(name);
    return CallFunc::Make(name, {}, {});
  }
  Stmt Wait(int64_t n) { return CallTo(kAsyncWaitRows + std::to_string(n)); }

  const PrimFunc& func_;
  const Module& module_;
  const PassContext& context_;
  std::unordered_map<const BufferNode*, size_t> written_;  // by how many statements
  const For* loop_ = nullptr;                              // the innermost around
};

// A function whose calls are asynchronous, as loop/threads.h has it.
Func Marked(const PrimFunc& func, AsyncPart part) {
  PrimFunc fields = func;
  fields.attrs.Set(kAsyncAttr, std::string(Name(part)));
  fields.attrs.Set(kIntrinsicAttr, func.name);
  return PrimFunc::Make(std::move(fields));
}

}  // namespace

Module LowerAsync(const Module& module, const PassContext& context) {
  Module out = module;
  std::set<std::string> called;
  for (const auto& [name, func] : module.funcs) {
    if (func->func_kind != FuncKind::kKernel || IsBound(*func) || !func->IsForDevice()) continue;
    AsyncLowerer lowerer(*func, module, context);
    if (!lowerer.any()) continue;
    PrimFunc fields = *func;
    fields.body = lowerer.Rewrite(func->body);
    out.Add(PrimFunc::Make(std::move(fields)));
    called.insert(lowerer.called.begin(), lowerer.called.end());
  }
  if (called.empty()) return out;
  for (const auto& [name, func] : module.funcs) {
    if (IsAsyncCopy(*func)) out.Add(Marked(*func, AsyncPart::kCopy));
  }
  for (const std::string& name : called) {
    Expected<Func> meaning = MeaningOf(*BuiltinTileIntrinsics().Find(name));
    TN_CHECK(meaning, "{}", ToString(meaning.errors()));
    out.Add(Marked(**meaning, name == kAsyncCommitRow ? AsyncPart::kCommit : AsyncPart::kWait));
  }
  return out;
}

}  // namespace tenon
