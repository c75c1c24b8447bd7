#include "interp/grid.h"

#include <algorithm>

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
  void Cancel();
  [[noreturn]] void FailDivergent() const;

  Grid& grid_;
  int64_t block_;
  SharedMemory shared_;
  std::vector<std::unique_ptr<GridThread>> threads_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<int64_t> order_;
  std::exception_ptr failure_;
  bool cancelled_ = false;
};

Cta::Cta(Grid& grid, int64_t block) : grid_(grid), block_(block), shared_(grid.machine) {
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
    while (std::any_of(threads_.begin(), threads_.end(),
                       [](const auto& t) { return t->state_ == GridThread::State::kReady; })) {
      RunReady();
    }
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
  const bool warp = last->level_ == Level::kWarp, orders = last->at_->kind == NodeKind::kSync;
  for (const auto& t : threads_) {
    if (warp && t->actor_.warp != last->actor_.warp) continue;
    if (t->state_ != GridThread::State::kWaiting || t->at_ != last->at_) return;
  }
  for (const auto& t : threads_) {
    if (warp && t->actor_.warp != last->actor_.warp) continue;
    t->state_ = GridThread::State::kReady;
    if (orders) ++t->actor_.warp_epoch;
    if (!warp) ++t->actor_.cta_epoch;
  }
}

void Cta::FailDivergent() const {
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

int64_t GridThread::lane() const { return actor_.thread % cta_->grid_.warp_size; }

void GridThread::Meet(const CallFunc& call) { cta_->Wait(this, call, Level::kWarp); }

std::vector<Frame*> GridThread::PostedByWarp() const {
  std::vector<Frame*> out;
  for (const auto& t : cta_->threads_) {
    if (t->actor_.warp == actor_.warp) out.push_back(t->posted);
  }
  return out;
}

Memory* GridThread::Shared(const Alloc* alloc,
                           const std::function<std::unique_ptr<Memory>()>& make) {
  const std::string& scope = alloc->buffer->scope;
  if (scope != "shared" && scope != "global") return nullptr;
  Memory* memory = (scope == "shared" ? cta_->shared_ : cta_->grid_.global).Get(alloc, make);
  if (scope == "shared") ++visits_[memory];
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
  return history.TornRead(offset, bytes, actor_) ||
         history.StaleRead(offset, bytes, actor_, VisitOf(memory));
}

void GridThread::Touch(Memory* memory, int64_t offset, int64_t bytes, AccessKind kind,
                       const std::string& what) {
  if (memory->is_private()) return;
  BeforeAccess();
  const uint32_t visit = VisitOf(memory);
  AccessHistory& history = memory->history();
  const bool together = for_warp_ && kind != AccessKind::kRead;
  std::string race =
      history.Note(offset, bytes, together ? actor_.SomeLane() : actor_, kind, visit);
  // Two of its lanes stand for all: whoever wrote it last is not one of them.
  if (for_warp_ && !together && race.empty()) {
    Actor other = actor_;
    other.thread += static_cast<uint32_t>(cta_->grid_.warp_size) - 1;
    race = history.Note(offset, bytes, other, kind, visit);
  }
  if (!race.empty()) Fail("race: " + what + " " + race);
  if (kind == AccessKind::kRead && history.StaleRead(offset, bytes, actor_, visit))
    Fail(what + " is read before it is written");
}

void RunGrid(Machine& machine, const Frame& frame) {
  const std::string& name = frame.func->name;
  Grid grid{machine, frame, PeelThreads(*frame.func), {}, 1, 1, 32, SharedMemory(machine), {}};
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
  ++machine.phase;
  if (grid.threads > 0) {
    for (int64_t block : machine.ThreadOrderOf(grid.blocks)) Cta(grid, block).Run();
  }
  ++machine.phase;
}

}  // namespace tenon::interp
