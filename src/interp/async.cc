// Asynchronous copies: what they read they read at once, what they write waits for its group or its
// barrier.
#include <utility>

#include "interp/grid.h"
#include "interp/machine.h"
#include "loop/threads.h"
#include "loop/warpgroup.h"

namespace tenon::interp {

bool Worker::ExecAsync(const CallFunc& n, const Func& callee) {
  const AsyncPart part = AsyncPartOf(*callee);
  if (part == AsyncPart::kNone) return false;
  if (part == AsyncPart::kInit) {
    if (!thread_) Fail("unsupported: barrier");
    Frame frame = CalleeFrame(callee, n.buffers, n.scalars);
    const View& barrier = frame.buffers.At(callee->buffers[0].get());
    thread_->MakeReady(barrier.address, frame.vars.Find(callee->scalars[0].get())->i,
                       barrier.memory->name());
  } else if (part == AsyncPart::kBulk) {
    ExecBulkCopy(n, callee);
  } else if (part == AsyncPart::kCommit) {
    groups_.push_back(std::move(begun_));
    begun_.clear();
  } else if (part == AsyncPart::kWait) {
    const auto stay = static_cast<size_t>(AsyncGroups(*callee));
    while (groups_.size() > stay) {
      Complete(groups_.front());
      groups_.erase(groups_.begin());
    }
  } else {
    copying_ = true;
    RunCallee(n, callee, CalleeFrame(callee, n.buffers, n.scalars));
    copying_ = false;
  }
  return true;
}

// All of it is one copy, which is done when its barrier hears of it.
void Worker::ExecBulkCopy(const CallFunc& n, const Func& callee) {
  if (!thread_) Fail("unsupported: " + n.callee + " outside of a launch");
  std::vector<AsyncWrite> others = std::exchange(begun_, {});
  Frame frame = CalleeFrame(callee, n.buffers, n.scalars);
  const View barrier = frame.buffers.At(callee->buffers.back().get());
  copying_ = true;
  RunCallee(n, callee, std::move(frame));
  copying_ = false;
  thread_->Begin(std::exchange(begun_, std::move(others)), barrier.address,
                 barrier.memory->name() + ", which " + n.callee + " completes on,");
}

// It may happen at once, so nobody else may be there any more; that it is not seen yet is checked
// by everybody else.
void Worker::BeginWrite(Memory* memory, uintptr_t address, DType type, Lane v,
                        const Accessed& what) {
  if (!memory) Fail("unsupported: an asynchronous copy to foreign memory");
  CheckInside(memory, address, type, what);
  const auto offset = static_cast<int64_t>(address - memory->address());
  const int64_t bytes = type.Element().Bytes();
  if (memory->IsUnderWay(offset, bytes))
    Fail(what.ToString() + " is written while a copy to it is under way");
  NoteAccess(memory, offset, bytes, AccessKind::kWrite, what);
  memory->SetUnderWay(offset, bytes, true);
  begun_.push_back({memory, address, type, v, what.ToString()});
}

// Other threads see it behind a barrier after this moment.
void Worker::Complete(const std::vector<AsyncWrite>& group) {
  for (const AsyncWrite& w : group) {
    const auto offset = static_cast<int64_t>(w.address - w.memory->address());
    w.memory->SetUnderWay(offset, w.type.Element().Bytes(), false);
    WriteAt(w.memory, w.address, w.type, w.value, Accessed(w.what));
  }
}

}  // namespace tenon::interp
