#include "interp/grid.h"

#include <algorithm>

#include "ir/visit.h"
#include "loop/warpgroup.h"
#include "support/check.h"
#include "target/target.h"

namespace tenon::interp {

namespace {

constexpr int64_t kMaxThreads = 4096;  // more than any device has

struct Cancelled {};

}  // namespace

SharedMemory::~SharedMemory() {
  for (auto& [alloc, memory] : memory_) machine_.memory.Remove(memory);
}

Memory* SharedMemory::Get(const Alloc* alloc,
                          const std::function<std::unique_ptr<Memory>()>& make) {
  auto [it, added] = memory_.try_emplace(alloc);
  if (added) it->second = machine_.memory.Add(make());
  return it->second;
}

/// One block of threads, from its start to its end.
class Cta {
 public:
  Cta(Grid& grid, int64_t block);
  void Run();

 private:
  friend class GridThread;
  void Body(GridThread* thread);
  Frame FrameOf(int64_t thread) const;
  void RunReady();
  void Wait(GridThread* thread, const StmtNode& at, Level level);
  void Release(GridThread* last);
  bool SameGroup(Level level, const GridThread& a, const GridThread& b) const;
  void JoinGroup(Level level, const GridThread& of);
  void WaitFor(GridThread* thread, const BarrierState& barrier, int64_t phase);
  void Wake();
  bool CompleteCopy();
  void Cancel();
  [[noreturn]] void FailDivergent() const;
  [[noreturn]] void FailDeadlock(const GridThread& thread) const;

  Grid& grid_;
  int64_t block_;
  SharedMemory shared_;
  std::vector<std::unique_ptr<GridThread>> threads_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<int64_t> order_;
  std::exception_ptr failure_;
  bool cancelled_ = false;

  // Copies that complete on barriers, the earliest first.
  struct Copy {
    std::vector<AsyncWrite> writes;
    uintptr_t barrier;
    Clock knows;
  };
  std::unique_ptr<Barriers> barriers_;  // null: the kernel has none
  std::vector<Copy> copies_;
};

Cta::Cta(Grid& grid, int64_t block) : grid_(grid), block_(block), shared_(grid.machine) {
  if (grid.has_barriers) barriers_ = std::make_unique<Barriers>(static_cast<size_t>(grid.threads));
  for (int64_t t = 0; t < grid.threads; ++t) {
    Actor actor;
    actor.launch = grid.machine.phase;
    actor.block = static_cast<uint32_t>(block);
    actor.warp = static_cast<uint32_t>(t / grid.warp_size);
    actor.thread = static_cast<uint32_t>(t);
    threads_.push_back(std::make_unique<GridThread>(this, actor));
    if (grid.stacks.size() <= static_cast<size_t>(t))
      grid.stacks.push_back(std::make_unique<FiberStack>());
    fibers_.push_back(std::make_unique<Fiber>(grid.stacks[static_cast<size_t>(t)].get(),
                                              [this, own = threads_.back().get()] { Body(own); }));
  }
  order_ = grid.machine.ThreadOrderOf(grid.threads);
}

// The kernel's frame with the axes' variables of a thread; axes lie innermost first in its number.
Frame Cta::FrameOf(int64_t thread) const {
  Frame frame = grid_.frame;
  int64_t rest_thread = thread, rest_block = block_;
  for (size_t i = grid_.nest.axes.size(); i-- > 0;) {
    const For* loop = grid_.nest.axes[i];
    int64_t& rest = IsBlockAxis(loop->thread) ? rest_block : rest_thread;
    frame.vars[loop->var.get()] = {loop->var->dtype, IntLane(rest % grid_.extents[i]), {}};
    rest /= grid_.extents[i];
  }
  return frame;
}

void Cta::Body(GridThread* thread) {
  try {
    if (!cancelled_) {
      Worker worker(grid_.machine, nullptr, 0, thread);
      worker.RunBody(FrameOf(thread->actor_.thread), grid_.nest.body);
    }
  } catch (const Cancelled&) {
    cancelled_ = true;  // another thread failed; its failure is the one to report
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
  thread->state_ = GridThread::State::kDone;
}

void Cta::Run() {
  try {
    do {
      while (std::any_of(threads_.begin(), threads_.end(),
                         [](const auto& t) { return t->state_ == GridThread::State::kReady; })) {
        RunReady();
      }
    } while (CompleteCopy());
    if (!std::all_of(threads_.begin(), threads_.end(),
                     [](const auto& t) { return t->state_ == GridThread::State::kDone; })) {
      FailDivergent();
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
  if (!failure_) return;
  Cancel();
  std::rethrow_exception(failure_);
}

// Each ready thread in turn, until its next barrier or, where threads switch at accesses, until one
// of those.
void Cta::RunReady() {
  if (grid_.machine.options.order != ThreadOrder::kInOrder)
    order_ = grid_.machine.ThreadOrderOf(grid_.threads);
  for (int64_t t : order_) {
    if (threads_[static_cast<size_t>(t)]->state_ != GridThread::State::kReady) continue;
    fibers_[static_cast<size_t>(t)]->Resume();
    if (failure_) std::rethrow_exception(failure_);
  }
}

void Cta::Cancel() {
  cancelled_ = true;
  for (auto& fiber : fibers_) {
    if (fiber->started() && !fiber->done()) fiber->Resume();
  }
}

void Cta::Wait(GridThread* thread, const StmtNode& at, Level level) {
  thread->state_ = GridThread::State::kWaiting;
  thread->at_ = &at;
  thread->level_ = level;
  Release(thread);
  fibers_[thread->actor_.thread]->Yield();
  if (cancelled_) throw Cancelled{};
}

// Lets the threads of a group go on when the last of them has arrived.
void Cta::Release(GridThread* last) {
  const Level level = last->level_;
  const bool orders = last->at_->kind == NodeKind::kSync;
  for (const auto& t : threads_) {
    if (!SameGroup(level, *t, *last)) continue;
    if (t->state_ != GridThread::State::kWaiting || t->at_ != last->at_) return;
  }
  if (orders || level == Level::kWarpgroup) JoinGroup(level, *last);
  for (const auto& t : threads_) {
    if (!SameGroup(level, *t, *last)) continue;
    t->state_ = GridThread::State::kReady;
    if (orders) ++t->actor_.warp_epoch;
    if (level == Level::kCta) ++t->actor_.cta_epoch;
  }
}

bool Cta::SameGroup(Level level, const GridThread& a, const GridThread& b) const {
  if (level == Level::kWarp) return a.actor_.warp == b.actor_.warp;
  if (level == Level::kWarpgroup)
    return a.actor_.thread / kWarpgroup == b.actor_.thread / kWarpgroup;
  return true;
}

// Each knows now what any of them knew.
void Cta::JoinGroup(Level level, const GridThread& of) {
  if (!barriers_) return;
  Clock all;
  for (const auto& t : threads_) {
    if (SameGroup(level, *t, of)) Join(&all, barriers_->Release(t->actor_.thread));
  }
  for (const auto& t : threads_) {
    if (SameGroup(level, *t, of)) Join(&barriers_->of(t->actor_.thread), all);
  }
}

// ---- barriers ----

void Cta::WaitFor(GridThread* thread, const BarrierState& barrier, int64_t phase) {
  while (!Barriers::IsOver(barrier, phase)) {
    thread->state_ = GridThread::State::kBlocked;
    thread->barrier_ = &barrier;
    thread->phase_ = phase;
    fibers_[thread->actor_.thread]->Yield();
    if (cancelled_) throw Cancelled{};
  }
  Join(&barriers_->of(thread->actor_.thread), barrier.passed);
}

// Those whose phase is over go on.
void Cta::Wake() {
  for (const auto& t : threads_) {
    if (t->state_ == GridThread::State::kBlocked && Barriers::IsOver(*t->barrier_, t->phase_))
      t->state_ = GridThread::State::kReady;
  }
}

// Nobody can go on: a copy, any but the earliest at first in the orders that are not plain, is
// done. False where none is under way.
bool Cta::CompleteCopy() {
  if (copies_.empty()) return false;
  const bool plain = grid_.machine.options.order == ThreadOrder::kInOrder;
  const size_t which = plain ? 0 : static_cast<size_t>(grid_.machine.random() % copies_.size());
  Copy copy = std::move(copies_[which]);
  copies_.erase(copies_.begin() + static_cast<ptrdiff_t>(which));
  if (std::all_of(threads_.begin(), threads_.end(),
                  [](const auto& t) { return t->state_ == GridThread::State::kDone; }))
    Fail(copy.writes.front().what + " is still copied to when its block of threads ends");
  int64_t bytes = 0;
  for (const AsyncWrite& w : copy.writes) {
    const auto offset = static_cast<int64_t>(w.address - w.memory->address());
    const int64_t size = w.type.Element().Bytes();
    w.memory->SetUnderWay(offset, size, false);
    w.memory->Define(offset, size);
    Encode(w.type.Element(), w.value, w.memory->data() + offset);
    bytes += size;
  }
  barriers_->Bring(&barriers_->At(copy.barrier), copy.knows, bytes);
  Wake();
  return true;
}

void GridThread::MakeReady(uintptr_t address, int64_t arrivals, const std::string& what) {
  BarrierState& barrier = cta_->barriers_->At(address);
  if (barrier.arrivals != 0) Fail(what + " is made ready twice");
  if (arrivals < 1) Fail(what + " is made ready for " + std::to_string(arrivals) + " arrivals");
  barrier.arrivals = barrier.missing = arrivals;
  barrier.made = cta_->barriers_->Release(actor_.thread);
}

void GridThread::OnBarrier(BarrierOp op, uintptr_t address, int64_t value,
                           const std::string& what) {
  BeforeAccess();
  Barriers& all = *cta_->barriers_;
  BarrierState& barrier = all.At(address);
  if (barrier.arrivals == 0 || !all.Knows(actor_.thread, barrier.made))
    Fail(what + " is used before it is made ready");
  if (op == BarrierOp::kWait) {
    barrier_name_ = what;
    return cta_->WaitFor(this, barrier, value);
  }
  const bool expects = op == BarrierOp::kExpect;
  if (!all.Arrive(&barrier, all.Release(actor_.thread), expects ? value : 0))
    Fail(what + ": more threads arrive in a phase than end it, " +
         std::to_string(barrier.arrivals));
  cta_->Wake();
}

void GridThread::Begin(std::vector<AsyncWrite> writes, uintptr_t barrier, const std::string& what) {
  if (cta_->barriers_->At(barrier).arrivals == 0) Fail(what + " is used before it is made ready");
  cta_->copies_.push_back({std::move(writes), barrier, cta_->barriers_->Release(actor_.thread)});
}

const Clock* GridThread::seen() const {
  return cta_->barriers_ ? &cta_->barriers_->of(actor_.thread) : nullptr;
}

Actor GridThread::Now() const {
  Actor now = actor_;
  if (cta_->barriers_) now.clock = cta_->barriers_->now(actor_.thread);
  return now;
}

void Cta::FailDeadlock(const GridThread& thread) const {
  const BarrierState& b = *thread.barrier_;
  Fail("deadlock: " + thread.actor_.ToString() + " waits for " + thread.barrier_name_ +
       " to end its phase, and nobody is left to do so: " + std::to_string(b.missing) +
       " arrivals and " + std::to_string(b.bytes) + " bytes are missing");
}

void Cta::FailDivergent() const {
  for (const auto& t : threads_) {
    if (t->state_ == GridThread::State::kBlocked) FailDeadlock(*t);
  }
  int64_t waiting = 0;
  const GridThread *first = nullptr, *other = nullptr, *done = nullptr;
  for (const auto& t : threads_) {
    if (t->state_ != GridThread::State::kWaiting) {
      if (!done) done = t.get();
      continue;
    }
    ++waiting;
    if (!first) first = t.get();
    if (!other && t->at_ != first->at_) other = t.get();
  }
  const auto* call = As<CallFunc>(static_cast<const Node*>(first->at_));
  std::string what =
      (call ? "call of " + call->callee : std::string("sync ") + Name(first->level_)) + ": " +
      std::to_string(waiting) + " of the " + std::to_string(threads_.size()) +
      " threads of block " + std::to_string(block_) + " wait";
  if (done)
    Fail(what + " at a barrier that thread " + std::to_string(done->actor_.thread) +
         " never reaches");
  TN_CHECK(other, "threads of a block wait for nothing");
  Fail(what + " at different barriers: thread " + std::to_string(first->actor_.thread) +
       " at one, thread " + std::to_string(other->actor_.thread) + " at another");
}

void GridThread::Sync(const tenon::Sync& sync) { cta_->Wait(this, sync, sync.level); }

namespace {
Level LevelOf(int64_t lanes) { return lanes == kWarpgroup ? Level::kWarpgroup : Level::kWarp; }
}  // namespace

void GridThread::Meet(const CallFunc& call, int64_t lanes) {
  cta_->Wait(this, call, LevelOf(lanes));
}

std::vector<Frame*> GridThread::PostedByGroup(int64_t lanes) const {
  std::vector<Frame*> out;
  for (const auto& t : cta_->threads_) {
    if (cta_->SameGroup(LevelOf(lanes), *t, *this)) out.push_back(t->posted);
  }
  return out;
}

Memory* GridThread::Shared(const Alloc* alloc,
                           const std::function<std::unique_ptr<Memory>()>& make) {
  const std::string& scope = alloc->buffer->scope;
  const bool block = scope == "shared" || scope == "barrier";
  if (!block && scope != "global") return nullptr;
  Memory* memory = (block ? cta_->shared_ : cta_->grid_.global).Get(alloc, make);
  if (block) ++visits_[memory];
  return memory;
}

void GridThread::BeforeAccess() {
  if (cta_->grid_.machine.options.order != ThreadOrder::kSwitching) return;
  cta_->fibers_[actor_.thread]->Yield();
  if (cta_->cancelled_) throw Cancelled{};
}

uint32_t GridThread::VisitOf(Memory* memory) const {
  auto it = visits_.find(memory);
  return it == visits_.end() ? 0 : it->second;
}

bool GridThread::SeesAnything(Memory* memory, int64_t offset, int64_t bytes) {
  if (memory->is_private()) return false;
  BeforeAccess();
  const AccessHistory& history = memory->history();
  return history.TornRead(offset, bytes, Now(), seen()) ||
         history.StaleRead(offset, bytes, actor_, VisitOf(memory));
}

void GridThread::Touch(Memory* memory, int64_t offset, int64_t bytes, AccessKind kind,
                       const std::string& what) {
  if (memory->is_private()) return;
  BeforeAccess();
  const uint32_t visit = VisitOf(memory);
  AccessHistory& history = memory->history();
  const bool together = reads_for_ > 1 && kind != AccessKind::kRead;
  std::string race =
      history.Note(offset, bytes, together ? Now().SomeLane() : Now(), kind, visit, seen());
  // Two of its lanes stand for all: whoever wrote it last is not one of them.
  if (reads_for_ > 1 && !together && race.empty()) {
    const GridThread& other = *cta_->threads_[actor_.thread + static_cast<size_t>(reads_for_) - 1];
    race = history.Note(offset, bytes, other.Now(), kind, visit, other.seen());
  }
  if (!race.empty()) Fail("race: " + what + " " + race);
  if (kind == AccessKind::kRead && history.StaleRead(offset, bytes, actor_, visit))
    Fail(what + " is read before it is written");
}

void RunGrid(Machine& machine, const Frame& frame) {
  const std::string& name = frame.func->name;
  Grid grid{machine, frame, PeelThreads(*frame.func), {},    1,
            1,       32,    SharedMemory(machine),    false, {}};
  Worker host(machine, nullptr, 0);
  host.frame() = frame;
  for (const For* loop : grid.nest.axes) {
    if (!IsZero(loop->min)) Fail("kernel " + name + ": " + loop->thread + " does not start at 0");
    grid.extents.push_back(std::max<int64_t>(host.EvalInt(loop->extent), 0));
    (IsBlockAxis(loop->thread) ? grid.blocks : grid.threads) *= grid.extents.back();
  }
  if (grid.threads > kMaxThreads) {
    Fail("kernel " + name + ": a block of " + std::to_string(grid.threads) + " threads, at most " +
         std::to_string(kMaxThreads) + " are possible");
  }
  if (auto target = Target::Parse(frame.func->target); target && target->IsGpu())
    grid.warp_size = std::max<int64_t>(target->gpu().thread_warp_size, 1);
  PreOrder(grid.nest.body, [&](const NodeRef& n) {
    const auto* alloc = As<Alloc>(n);
    grid.has_barriers |= alloc && alloc->buffer->scope == "barrier";
    return !IsA<ExprNode>(n);
  });
  ++machine.phase;
  if (grid.threads > 0) {
    for (int64_t block : machine.ThreadOrderOf(grid.blocks)) Cta(grid, block).Run();
  }
  ++machine.phase;
}

}  // namespace tenon::interp
