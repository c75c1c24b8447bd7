// The threads of a launch, one at a time.
//
// Each thread of a block is a fiber with a worker of its own; nothing runs at the same time, so a
// run is the same every time, and what real threads could do is found by what is remembered of
// accesses rather than by luck. A block lets each ready thread run until it waits. At a `sync` a
// thread yields; when the last of its group (a warp, a block, a cluster, the grid) has arrived, all
// of them are ready again and their epochs grow. An access notes who made it in which epoch; a
// later one by another thread, in the same epoch, with a write among the two, is a race. In
//
//   for t in 0..4 thread threadIdx.x {
//     alloc S: f32[4] in shared
//     S[t] = A[b * 4 + t]
//     sync cta
//     B[b * 4 + t] = S[3 - t]
//   }
//
// the four fibers run to the barrier one after the other, then on. Without the `sync` the first one
// runs on alone, and the report is "S[3] is read before it is written"; where memory has been
// written before, it is "race: S[3] is read by thread 0 of block 0 and was written by thread 3 of
// block 0 with no sync between". Blocks run side by side only where the kernel has them meet
// (clusters, cooperative launches); else one after the other. Asynchronous copies take effect when
// nobody can go on, or at any time in the other orders of InterpOptions. Barriers in memory (wgmma,
// the copy engine) order single threads, so there each thread has a vector clock, which an arrival
// releases and a wait joins.

#include "interp/grid.h"

#include <algorithm>

#include "ir/visit.h"
#include "loop/warpgroup.h"
#include "support/check.h"
#include "target/target.h"

namespace tenon::interp {

namespace {

constexpr int64_t kMaxThreads = 4096;    // of a block: more than any device has
constexpr int64_t kMaxTogether = 16384;  // side by side, each with a stack

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

/// One block of threads, from its start to its end. Outside of RunReady every thread is ready,
/// waits or has ended; copies_ are under way: begun, and not seen by whoever has not waited for
/// them.
class Cta {
 public:
  /// The `place`-th of its gang.
  Cta(Grid& grid, Gang& gang, int64_t block, size_t place);
  /// Runs each thread that can go on, until it waits. False where none can.
  bool RunReady();
  /// Does a copy that is under way; false: there is none.
  bool CompleteCopy();
  bool IsDone() const;
  /// Ends the threads where they are.
  void Cancel();
  [[noreturn]] static void FailDivergent(const Gang& gang);

 private:
  friend class GridThread;
  void Body(GridThread* thread);
  Frame FrameOf(int64_t thread) const;
  void Wait(GridThread* thread, const StmtNode& at, Level level);
  void Release(GridThread* last);
  /// Those that may be of the group of one of its threads.
  std::vector<const Cta*> Meeting(Level level) const;
  static bool SameGroup(Level level, const GridThread& a, const GridThread& b);
  void JoinGroup(Level level, const GridThread& of) const;
  void WaitFor(GridThread* thread, const BarrierState& barrier, int64_t phase);
  void Wake();
  static void FailIfDeadlocked(const Gang& gang);
  [[noreturn]] void FailToMeet(const GridThread& first) const;

  Grid& grid_;
  Gang& gang_;
  int64_t block_;
  SharedMemory shared_;
  std::vector<std::unique_ptr<GridThread>> threads_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<int64_t> order_;
  std::exception_ptr failure_;

  // Copies that complete on barriers, the earliest first.
  struct Copy {
    std::vector<AsyncWrite> writes;
    uintptr_t barrier;
    Clock knows;
  };
  std::unique_ptr<Barriers> barriers_;  // null: the kernel has none
  std::vector<Copy> copies_;
};

Cta::Cta(Grid& grid, Gang& gang, int64_t block, size_t place)
    : grid_(grid), gang_(gang), block_(block), shared_(grid.machine) {
  const size_t first = place * static_cast<size_t>(grid.threads);
  if (grid.has_barriers) barriers_ = std::make_unique<Barriers>(static_cast<size_t>(grid.threads));
  for (int64_t t = 0; t < grid.threads; ++t) {
    Actor actor;
    actor.launch = grid.machine.phase;
    actor.block = static_cast<uint32_t>(block);
    actor.cluster = static_cast<uint32_t>(block / grid.cluster);
    actor.warp = static_cast<uint32_t>(t / grid.warp_size);
    actor.thread = static_cast<uint32_t>(t);
    threads_.push_back(std::make_unique<GridThread>(this, actor));
    const size_t stack = first + static_cast<size_t>(t);
    if (grid.stacks.size() <= stack) grid.stacks.push_back(std::make_unique<FiberStack>());
    fibers_.push_back(std::make_unique<Fiber>(grid.stacks[stack].get(),
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
    frame.vars.Set(loop->var.get(), IntLane(rest % grid_.extents[i]));
    rest /= grid_.extents[i];
  }
  return frame;
}

void Cta::Body(GridThread* thread) {
  try {
    if (!gang_.cancelled) {
      Worker worker(grid_.machine, nullptr, 0, thread);
      worker.RunBody(FrameOf(thread->actor_.thread), grid_.nest.body);
    }
  } catch (const Cancelled&) {
    gang_.cancelled = true;  // another thread failed; its failure is the one to report
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
  thread->state_ = GridThread::State::kDone;
}

bool Cta::IsDone() const {
  return std::all_of(threads_.begin(), threads_.end(),
                     [](const auto& t) { return t->state_ == GridThread::State::kDone; });
}

// Each ready thread in turn, until its next barrier or, where threads switch at accesses, until one
// of those.
bool Cta::RunReady() {
  if (std::none_of(threads_.begin(), threads_.end(),
                   [](const auto& t) { return t->state_ == GridThread::State::kReady; }))
    return false;
  if (grid_.machine.options.order != ThreadOrder::kInOrder)
    order_ = grid_.machine.ThreadOrderOf(grid_.threads);
  for (int64_t t : order_) {
    if (threads_[static_cast<size_t>(t)]->state_ != GridThread::State::kReady) continue;
    fibers_[static_cast<size_t>(t)]->Resume();
    if (failure_) std::rethrow_exception(failure_);
  }
  return true;
}

void Cta::Cancel() {
  gang_.cancelled = true;
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
  if (gang_.cancelled) throw Cancelled{};
}

std::vector<const Cta*> Cta::Meeting(Level level) const {
  if (level != Level::kCluster && level != Level::kGrid) return {this};
  std::vector<const Cta*> out;
  for (const auto& cta : gang_.ctas) out.push_back(cta.get());
  return out;
}

// Lets the threads of a group go on when the last of them has arrived.
void Cta::Release(GridThread* last) {
  const Level level = last->level_;
  const bool orders = last->at_->kind == NodeKind::kSync;
  const std::vector<const Cta*> meeting = Meeting(level);
  for (const Cta* cta : meeting) {
    for (const auto& t : cta->threads_) {
      if (!SameGroup(level, *t, *last)) continue;
      if (t->state_ != GridThread::State::kWaiting || t->at_ != last->at_) return;
    }
  }
  for (const Cta* cta : meeting) {
    if (!SameGroup(level, *cta->threads_[0], *last) && cta != this) continue;
    const GridThread& of = cta == this ? *last : *cta->threads_[0];
    if (orders || level == Level::kWarpgroup) cta->JoinGroup(level, of);
    for (const auto& t : cta->threads_) {
      if (!SameGroup(level, *t, *last)) continue;
      t->state_ = GridThread::State::kReady;
      if (orders) ++t->actor_.warp_epoch;
      if (level >= Level::kCta) ++t->actor_.cta_epoch;
      if (level >= Level::kCluster) ++t->actor_.cluster_epoch;
      if (level >= Level::kGrid) ++t->actor_.grid_epoch;
    }
  }
}

bool Cta::SameGroup(Level level, const GridThread& a, const GridThread& b) {
  if (level == Level::kCluster) return a.actor_.cluster == b.actor_.cluster;
  if (level == Level::kWarp) return a.actor_.warp == b.actor_.warp;
  if (level == Level::kWarpgroup)
    return a.actor_.thread / kWarpgroup == b.actor_.thread / kWarpgroup;
  return true;
}

// Each knows now what any of them knew.
void Cta::JoinGroup(Level level, const GridThread& of) const {
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
    if (gang_.cancelled) throw Cancelled{};
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
  if (IsDone())
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

void Cta::FailIfDeadlocked(const Gang& gang) {
  for (const auto& cta : gang.ctas) {
    for (const auto& t : cta->threads_) {
      if (t->state_ != GridThread::State::kBlocked) continue;
      const BarrierState& b = *t->barrier_;
      Fail("deadlock: " + t->actor_.ToString() + " waits for " + t->barrier_name_ +
           " to end its phase, and nobody is left to do so: " + std::to_string(b.missing) +
           " arrivals and " + std::to_string(b.bytes) + " bytes are missing");
    }
  }
}

// Of those that wait for few, first: others may wait for them.
void Cta::FailDivergent(const Gang& gang) {
  FailIfDeadlocked(gang);
  const Cta* in = nullptr;
  const GridThread* first = nullptr;
  for (const auto& cta : gang.ctas) {
    for (const auto& t : cta->threads_) {
      if (t->state_ != GridThread::State::kWaiting) continue;
      if (first && first->level_ <= t->level_) continue;
      first = t.get();
      in = cta.get();
    }
  }
  TN_CHECK(first, "threads of a block wait for nothing");
  in->FailToMeet(*first);
}

void Cta::FailToMeet(const GridThread& first) const {
  const Level level = first.level_;
  int64_t waiting = 0, all = 0;
  const GridThread *other = nullptr, *done = nullptr;
  for (const Cta* cta : Meeting(level)) {
    for (const auto& t : cta->threads_) {
      // Who of a block waits for its warp alone is told beside the block.
      if (level == Level::kCluster && !SameGroup(level, *t, first)) continue;
      ++all;
      if (t->state_ != GridThread::State::kWaiting) {
        if (!done) done = t.get();
        continue;
      }
      ++waiting;
      if (!other && t->at_ != first.at_) other = t.get();
    }
  }
  const bool blocks = level == Level::kCluster || level == Level::kGrid;
  auto name = [&](const GridThread& t) {
    return blocks ? t.actor_.ToString() : "thread " + std::to_string(t.actor_.thread);
  };
  std::string group = "block " + std::to_string(block_);
  if (level == Level::kCluster) group = "the cluster of block " + std::to_string(block_);
  if (level == Level::kGrid) group = "the launch";
  const auto* call = As<CallFunc>(static_cast<const Node*>(first.at_));
  const std::string what = (call ? "call of " + call->callee : std::string("sync ") + Name(level)) +
                           ": " + std::to_string(waiting) + " of the " + std::to_string(all) +
                           " threads of " + group + " wait";
  if (done) Fail(what + " at a barrier that " + name(*done) + " never reaches");
  TN_CHECK(other, "threads of a block wait for nothing");
  Fail(what + " at different barriers: " + name(first) + " at one, " + name(*other) +
       " at another");
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
  const Holder holder = HolderOf(alloc->buffer->scope);
  const bool block = holder == Holder::kBlock;
  if (!block && holder != Holder::kLaunch) return nullptr;
  Memory* memory = (block ? cta_->shared_ : cta_->grid_.global).Get(alloc, make);
  if (block) ++visits_[memory];
  return memory;
}

void GridThread::BeforeAccess() {
  if (cta_->grid_.machine.options.order != ThreadOrder::kSwitching) return;
  cta_->fibers_[actor_.thread]->Yield();
  if (cta_->gang_.cancelled) throw Cancelled{};
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
                       const Accessed& what) {
  if (memory->is_private()) return;
  BeforeAccess();
  const std::vector<const Memory*>& awaited = cta_->grid_.awaited;
  if (!has_waited_ && std::find(awaited.begin(), awaited.end(), memory) != awaited.end())
    Fail(what.ToString() + " is touched before the launch before this one is waited for");
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
  if (!race.empty()) Fail("race: " + what.ToString() + " " + race);
  if (kind == AccessKind::kRead && history.StaleRead(offset, bytes, actor_, visit))
    Fail(what.ToString() + " is read before it is written");
}

namespace {

// All that they do, side by side.
void Run(const Gang& gang) {
  for (bool more = true; more;) {
    for (bool ran = true; ran;) {
      ran = false;
      for (const auto& cta : gang.ctas) ran |= cta->RunReady();
    }
    more = std::any_of(gang.ctas.begin(), gang.ctas.end(),
                       [](const auto& cta) { return cta->CompleteCopy(); });
  }
  if (!std::all_of(gang.ctas.begin(), gang.ctas.end(), [](const auto& c) { return c->IsDone(); }))
    Cta::FailDivergent(gang);
}

void RunGang(Grid& grid, const std::vector<int64_t>& blocks) {
  Gang gang;
  for (int64_t block : blocks)
    gang.ctas.push_back(std::make_unique<Cta>(grid, gang, block, gang.ctas.size()));
  std::exception_ptr failure;
  try {
    Run(gang);
  } catch (...) {
    failure = std::current_exception();
  }
  if (!failure) return;
  for (const auto& cta : gang.ctas) cta->Cancel();
  std::rethrow_exception(failure);
}

void ReadAxes(const std::string& name, Grid* grid) {
  Worker host(grid->machine, nullptr, 0);
  host.frame() = grid->frame;
  for (const For* loop : grid->nest.axes) {
    if (!IsZero(loop->min))
      Fail("kernel " + name + ": " + Name(loop->thread) + " does not start at 0");
    const int64_t extent = std::max<int64_t>(host.EvalInt(loop->extent), 0);
    grid->extents.push_back(extent);
    (IsBlockAxis(loop->thread) ? grid->blocks : grid->threads) *= extent;
    if (IsClusterAxis(loop->thread)) grid->cluster *= std::max<int64_t>(extent, 1);
  }
  if (grid->threads > kMaxThreads) {
    Fail("kernel " + name + ": a block of " + std::to_string(grid->threads) + " threads, at most " +
         std::to_string(kMaxThreads) + " are possible");
  }
}

// What the body asks for: barriers, blocks that meet, the wait of a dependent launch.
void ReadBody(Grid* grid, bool* out_cluster_meets, bool* out_grid_meets) {
  bool waits = false;
  PreOrder(grid->nest.body, [&](const NodeRef& n) {
    if (const auto* alloc = As<Alloc>(n))
      grid->has_barriers |= alloc->buffer->scope == Scope::kBarrier;
    if (const auto* sync = As<Sync>(n)) {
      *out_cluster_meets |= sync->level == Level::kCluster;
      *out_grid_meets |= sync->level == Level::kGrid;
    }
    const auto* call = As<CallFunc>(n);
    const Func callee = call ? grid->machine.module.Find(call->callee) : nullptr;
    waits |= callee && LaunchOrderOf(*callee) == LaunchOrder::kWait;
    return !IsA<ExprNode>(n);
  });
  const PrimFunc& kernel = *grid->frame.func;
  const auto names = kernel.attrs.Get<std::vector<std::string>>(kAwaitsAttr, {});
  for (const Buffer& b : kernel.buffers) {
    if (waits && std::find(names.begin(), names.end(), b->name) != names.end())
      grid->awaited.push_back(grid->frame.buffers.At(b.get()).memory);
  }
}

}  // namespace

void RunGrid(Machine& machine, const Frame& frame) {
  const std::string& name = frame.func->name;
  Grid grid{machine, frame, PeelThreads(*frame.func), {}, 1, 1, 32, SharedMemory(machine)};
  ReadAxes(name, &grid);
  if (frame.func->IsForDevice())
    grid.warp_size = std::max<int64_t>(frame.func->target->gpu().thread_warp_size, 1);
  bool cluster_meets = false, grid_meets = false;
  ReadBody(&grid, &cluster_meets, &grid_meets);
  if (grid_meets && !frame.func->attrs.Has(kCooperativeAttr))
    Fail("kernel " + name + ": sync grid in a launch that is not cooperative");
  const int64_t together = grid_meets ? grid.blocks : cluster_meets ? grid.cluster : 1;
  if (grid.threads > 0 && together > kMaxTogether / grid.threads) {
    Fail("kernel " + name + ": " + std::to_string(together) + " blocks of " +
         std::to_string(grid.threads) + " threads that wait for each other, at most " +
         std::to_string(kMaxTogether) + " threads are possible here");
  }
  ++machine.phase;
  const int64_t gangs = grid.threads > 0 && together > 0 ? grid.blocks / together : 0;
  for (int64_t gang : machine.ThreadOrderOf(gangs)) {
    std::vector<int64_t> blocks = machine.ThreadOrderOf(together);
    for (int64_t& block : blocks) block += gang * together;
    RunGang(grid, blocks);
  }
  ++machine.phase;
}

}  // namespace tenon::interp
