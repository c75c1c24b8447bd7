// For each block, its own loops and those around it: how often its body runs, in which form (lanes,
// a tile of accumulators in registers, one element at a time), and what it moves between memories.
//
// Indices are looked at as functions of the loops: how far one reaches over a loop's range, and how
// far its first two iterations lie apart. So divisions and remainders of fused loops need no rules.
// What moves: for each level, the loops within which everything that is touched fits in half of it
// load what they touch once; the loops around repeat that.
#include "sketch/work.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "dependence/body.h"
#include "ir/visit.h"

namespace tenon::sketch {

namespace {

using Values = std::map<const VarNode*, int64_t>;

/// The value of an index with these loop variables, others being 0; nullopt: it depends on data.
std::optional<int64_t> ValueAt(const Expr& e, const Values& at, int depth = 0) {
  if (depth > 64) return std::nullopt;
  if (const auto n = AsInt(e)) return *n;
  if (const auto* v = As<VarNode>(e)) {
    const auto found = at.find(v);
    return found == at.end() ? 0 : found->second;
  }
  if (const auto* c = As<CastExpr>(e)) return ValueAt(c->value, at, depth + 1);
  const auto* b = As<Binary>(e);
  if (!b) return std::nullopt;
  const auto x = ValueAt(b->lhs, at, depth + 1), y = ValueAt(b->rhs, at, depth + 1);
  if (!x || !y) return std::nullopt;
  switch (b->op) {
    case BinaryOp::kAdd: return *x + *y;
    case BinaryOp::kSub: return *x - *y;
    case BinaryOp::kMul: return *x * *y;
    case BinaryOp::kDiv: return *y == 0 ? 0 : (*x - ((*x % *y) + *y) % *y) / *y;
    case BinaryOp::kMod: return *y == 0 ? 0 : ((*x % *y) + *y) % *y;
    case BinaryOp::kMin: return std::min(*x, *y);
    case BinaryOp::kMax: return std::max(*x, *y);
    default: return std::nullopt;
  }
}

struct Loop {
  const VarNode* var;
  int64_t extent;
  ForKind kind;
  ThreadAxis thread;
};

bool IsAxisOf(const Loop& loop, const char* kind) {
  return loop.kind == ForKind::kThread && std::string(Name(loop.thread)).starts_with(kind);
}
bool IsBlockAxis(const Loop& loop) { return IsAxisOf(loop, "blockIdx"); }
bool IsThreadAxis(const Loop& loop) { return IsAxisOf(loop, "threadIdx"); }

/// How an access's flat place depends on one loop.
struct Reach {
  int64_t step = 0;           // in elements, between the first two iterations
  std::vector<int64_t> span;  // of each dim over the whole loop
  bool touched() const {
    return std::any_of(span.begin(), span.end(), [](int64_t s) { return s != 0; });
  }
};

/// One region that a block touches in one iteration.
struct Touch {
  const BufferNode* buffer;
  bool write = false;
  bool in_memory = true;  // else in registers of a worker
  bool shared = false;
  std::vector<int64_t> box;  // per dim, of one iteration
  std::vector<Reach> loops;  // in the order of the block's
};

int64_t ShapeOf(const BufferNode& b, size_t dim) {
  return std::max<int64_t>(1, AsInt(b.shape[dim]).value_or(1));
}

Touch TouchOf(const Region& region, bool write, const std::vector<Loop>& loops,
              const std::unordered_map<const VarNode*, Expr>& bindings) {
  Touch t{.buffer = region->buffer.get(), .write = write};
  const Scope scope = region->buffer->scope;
  t.shared = scope == Scope::kShared;
  t.in_memory = scope != Scope::kRegister && scope != Scope::kLocal && scope != Scope::kFragment;
  t.loops.resize(loops.size());
  std::vector<Expr> mins;
  for (const Range& r : region->ranges) {
    mins.push_back(Substitute(r->min, bindings));
    t.box.push_back(std::max<int64_t>(1, AsInt(r->extent).value_or(1)));
  }
  for (size_t l = 0; l < loops.size(); ++l) {
    Reach& reach = t.loops[l];
    reach.span.assign(mins.size(), 0);
    int64_t stride = 1;
    for (size_t d = mins.size(); d-- > 0;) {
      if (UsesVar(mins[d], loops[l].var)) {
        const int64_t last = loops[l].extent - 1;
        const auto zero = ValueAt(mins[d], {}), one = ValueAt(mins[d], {{loops[l].var, 1}});
        if (!zero || !one) {
          reach.span[d] = ShapeOf(*t.buffer, d) - 1;
          reach.step += 1024 * stride;  // anywhere
        } else {
          int64_t low = *zero, high = *zero;
          for (const int64_t at : {int64_t{1}, last / 2, last}) {
            const int64_t v = ValueAt(mins[d], {{loops[l].var, std::min(at, last)}}).value_or(0);
            low = std::min(low, v);
            high = std::max(high, v);
          }
          reach.span[d] = std::min(high - low, ShapeOf(*t.buffer, d) - 1);
          if (last > 0) reach.step += (*one - *zero) * stride;
        }
      }
      stride *= ShapeOf(*t.buffer, d);
    }
  }
  return t;
}

// Bytes that the loops from `first` inwards touch, in whole cache lines.
double FootprintOf(const Touch& t, size_t first) {
  constexpr int64_t kLine = 64;
  double elements = 1;
  int64_t row = 1;
  for (size_t d = 0; d < t.box.size(); ++d) {
    int64_t reach = t.box[d];
    for (size_t l = first; l < t.loops.size(); ++l) reach += t.loops[l].span[d];
    reach = std::min(reach, ShapeOf(*t.buffer, d));
    if (d + 1 == t.box.size()) {
      row = reach;
    } else {
      elements *= static_cast<double>(reach);
    }
  }
  const int64_t bytes = row * std::max<int64_t>(1, t.buffer->dtype.Bytes());
  return elements * static_cast<double>((bytes + kLine - 1) / kLine * kLine);
}

/// Arithmetic of one iteration: operations that a vector unit does one of each for.
double OperationsOf(const Block& block) {
  double count = 0;
  bool fused = false;
  PreOrder(block.body, [&](const NodeRef& n) {
    if (const auto* b = As<Binary>(n)) {
      if (b->dtype.IsFloat() || b->lhs->dtype.IsFloat())
        count += b->op == BinaryOp::kDiv ? 4 : 1;
      else if (b->dtype.bits < 64)
        count += 1;
      // A product that is added to something is one operation with it.
      if (b->op == BinaryOp::kAdd &&
          (IsA<Binary>(b->rhs) && As<Binary>(b->rhs)->op == BinaryOp::kMul))
        fused = true;
    } else if (IsA<Call>(n)) {
      count += 10;
    } else if (IsA<Select>(n)) {
      count += 1;
    }
    return true;
  });
  return std::max(1.0, fused ? count - 1 : count);
}

class Reader {
 public:
  Reader(const PrimFunc& func, const Machine& machine)
      : func_(func), machine_(machine), gpu_(machine.warp > 0) {}

  std::optional<WorkDescription> Read() {
    if (!func_.dims.empty()) return std::nullopt;
    work_.type = DType::Float(32);
    work_.team = 1;
    const Func whole(&func_);
    const Body body(whole);
    std::set<const Node*> roots;
    for (const Body::Place& place : body.blocks()) {
      if (place.inner) continue;
      if (!AddBlock(place)) return std::nullopt;
      const auto loops = place.Loops();
      if (!loops.empty()) roots.insert(loops.front());
    }
    work_.team = gpu_ || any_parallel_ ? std::max<int64_t>(1, machine_.workers) : 1;
    work_.tiles = std::max<int64_t>(1, tiles_);
    const int64_t joins = gpu_ ? static_cast<int64_t>(roots.size()) : parallel_roots_;
    work_.barriers = std::max<int64_t>(0, joins - 1);
    // What is not shared out takes its time whoever else is there.
    const int64_t waves = (work_.tiles + work_.team - 1) / work_.team;
    work_.vector_ops =
        shared_out_ + alone_ * static_cast<double>(work_.tiles) / static_cast<double>(waves);
    return work_;
  }

 private:
  bool AddBlock(const Body::Place& place) {
    const Block& block = *place.block();
    std::vector<Loop> loops;
    for (const For* f : place.Loops()) {
      const auto extent = AsInt(f->extent);
      if (!extent) return false;
      loops.push_back({f->var.get(), *extent, f->for_kind, f->thread});
    }
    const auto bindings = BindingsOf(block);
    std::vector<Touch> touches;
    for (const Region& r : ReadsOf(block)) touches.push_back(TouchOf(r, false, loops, bindings));
    for (const Region& r : block.writes) touches.push_back(TouchOf(r, true, loops, bindings));
    return gpu_ ? AddOnGpu(block, loops, touches) : AddOnCpu(block, loops, touches);
  }

  // ---- CPUs ----

  bool AddOnCpu(const Block& block, const std::vector<Loop>& loops, std::vector<Touch>& touches) {
    double turns = 1;
    int64_t parallel = 1, lanes = 1, unrolled = 1;
    size_t lane = loops.size();
    // From the inside: the tile are the unrolled and vectorized loops inside of all others.
    bool inside = true;
    for (size_t l = loops.size(); l-- > 0;) {
      const Loop& loop = loops[l];
      turns *= static_cast<double>(loop.extent);
      if (loop.kind == ForKind::kParallel) parallel *= loop.extent;
      if (loop.kind == ForKind::kVectorized) {
        lanes = loop.extent;
        lane = l;
      }
      inside = inside && (loop.kind == ForKind::kUnrolled || loop.kind == ForKind::kVectorized ||
                          loop.extent == 1);
      if (inside && loop.kind == ForKind::kUnrolled) unrolled *= loop.extent;
    }
    if (parallel > 1) {
      ++parallel_roots_;
      any_parallel_ = true;
      tiles_ = tiles_ == 0 ? parallel : std::min(tiles_, parallel);
    }
    const DType type = block.writes.empty() ? work_.type : block.writes[0]->buffer->dtype;
    AddCycles(block, loops, touches, turns, lanes, lane, unrolled, parallel, type);
    AddTraffic(loops, touches);
    return true;
  }

  // The unit whose operation a tensorized block calls; null where it calls none.
  const ComputeUnit* CalledBy(const Block& block) const {
    const ComputeUnit* found = nullptr;
    PreOrder(block.body, [&](const NodeRef& n) {
      const auto* call = As<CallFunc>(n);
      for (const ComputeUnit& unit : machine_.units) {
        if (call && unit.row == call->callee) found = &unit;
      }
      return !IsA<ExprNode>(n);
    });
    return found;
  }

  void AddCycles(const Block& block, const std::vector<Loop>& loops,
                 const std::vector<Touch>& touches, double turns, int64_t lanes, size_t lane,
                 int64_t unrolled, int64_t parallel, DType type) {
    const ComputeUnit& unit = machine_.VectorUnit(type);
    const ComputeUnit* called = CalledBy(block);
    const double units = (called ? called : &unit)->per_second / machine_.cycles_per_second;
    const auto width = static_cast<double>(machine_.Lanes(type));
    const double registers = std::max(1.0, std::ceil(static_cast<double>(lanes) / width));
    const auto per_turn = static_cast<double>(lanes * unrolled);
    const double steps = turns / std::max(per_turn, 1.0);
    const double operations =
        static_cast<double>(unrolled) * registers * (called ? 1 : OperationsOf(block));
    double loads = 0, stores = 0, accumulators = 0;
    for (const Touch& t : touches) {
      // Different registers of one step.
      double different = 1;
      for (size_t l = 0; l < loops.size(); ++l) {
        if (loops[l].kind == ForKind::kUnrolled && t.loops[l].touched() && InTile(loops, l))
          different *= static_cast<double>(loops[l].extent);
      }
      double each = 1;
      if (lane < loops.size() && t.loops[lane].touched()) {
        const bool along = std::abs(t.loops[lane].step) == 1;
        each = along ? registers : 1.5 * static_cast<double>(lanes);
      }
      if (!t.in_memory) {
        accumulators = std::max(accumulators, different * each);
        continue;
      }
      (t.write ? stores : loads) += different * each;
    }
    const bool reduces = HasKind(block, IterKind::kReduce);
    if (accumulators > static_cast<double>(machine_.registers)) loads += 2 * accumulators;
    double cycles =
        std::max({operations / units, (loads + 2 * stores) / machine_.vector_loads_per_cycle,
                  reduces ? machine_.fma_latency_cycles : 0.25});
    cycles += machine_.loop_cycles * (unrolled > 1 ? 1 : 2);
    // In elements of the unit that EstimateSeconds has, so that it comes to these cycles.
    const ComputeUnit& counted = machine_.VectorUnit(work_.type);
    (parallel > 1 ? shared_out_ : alone_) += steps * cycles / machine_.cycles_per_second *
                                             counted.per_second * static_cast<double>(counted.n);
  }

  static bool InTile(const std::vector<Loop>& loops, size_t l) {
    for (size_t i = l; i < loops.size(); ++i) {
      if (loops[i].kind != ForKind::kUnrolled && loops[i].kind != ForKind::kVectorized &&
          loops[i].extent != 1)
        return false;
    }
    return true;
  }

  void AddTraffic(const std::vector<Loop>& loops, const std::vector<Touch>& touches) {
    for (size_t level = 0; level + 1 < std::min(machine_.memory.size(), kMostMemoryLevels);
         ++level) {
      const auto room = static_cast<double>(machine_.memory[level].capacity_bytes) / 2;
      size_t first = loops.size();
      while (first > 0 && TogetherOf(touches, first - 1) <= room) --first;
      double around = 1;
      for (size_t l = 0; l < first; ++l) around *= static_cast<double>(loops[l].extent);
      for (const Touch& t : touches) {
        if (!t.in_memory) continue;
        // Where the next loop outwards does not move it, it stays.
        double repeats = around;
        if (first > 0 && !t.loops[first - 1].touched() && FootprintOf(t, first) <= room / 4)
          repeats /= static_cast<double>(std::max<int64_t>(1, loops[first - 1].extent));
        work_.bytes[level + 1] += repeats * FootprintOf(t, first) * (t.write ? 2 : 1);
      }
    }
  }
  static double TogetherOf(const std::vector<Touch>& touches, size_t first) {
    double bytes = 0;
    for (const Touch& t : touches) {
      if (t.in_memory) bytes += FootprintOf(t, first);
    }
    return bytes;
  }

  // ---- GPUs ----

  bool AddOnGpu(const Block& block, const std::vector<Loop>& loops, std::vector<Touch>& touches) {
    double turns = 1;
    int64_t blocks = 1, threads = 1, unrolled = 1;
    bool bound = false;
    for (const Loop& loop : loops) {
      turns *= static_cast<double>(loop.extent);
      if (loop.kind == ForKind::kUnrolled) unrolled *= loop.extent;
      if (loop.kind != ForKind::kThread) continue;
      if (IsBlockAxis(loop)) blocks *= loop.extent;
      if (IsThreadAxis(loop)) threads *= loop.extent;
      bound = bound || IsBlockAxis(loop) || IsThreadAxis(loop);
    }
    if (threads > machine_.target->gpu().max_threads_per_block) return false;
    if (!SharedFits(touches, loops)) return false;
    tiles_ = std::max(tiles_, blocks);
    const DType type = block.writes.empty() ? work_.type : block.writes[0]->buffer->dtype;
    // Threads of a part of a warp idle; few warps on a multiprocessor wait for memory.
    const double warps =
        std::ceil(static_cast<double>(threads) / static_cast<double>(machine_.warp));
    const double waste = warps * static_cast<double>(machine_.warp) / static_cast<double>(threads);
    const double together =
        std::clamp(static_cast<double>(blocks) / static_cast<double>(machine_.workers), 1.0, 8.0);
    const double idle = std::max(1.0, 8.0 / (warps * together));
    double loads = 0;
    for (const Touch& t : touches) {
      if (!t.in_memory) continue;
      double different = 1;
      for (size_t l = 0; l < loops.size(); ++l) {
        if (loops[l].kind == ForKind::kUnrolled && t.loops[l].touched())
          different *= static_cast<double>(loops[l].extent);
      }
      const double each = different / static_cast<double>(unrolled);
      loads += each * (t.shared ? 1.0 : 4.0 * Spread(loops, t));
      if (t.shared) work_.bytes[0] += turns * each * static_cast<double>(t.buffer->dtype.Bytes());
      if (!t.shared) AddGlobal(loops, t);
    }
    const double slow = type.bits > 32 ? 8 : 1;
    const double operations = turns * (OperationsOf(block) * slow + loads);
    // Loops of no grid run on one thread.
    constexpr double kOneThread = 1e3;
    shared_out_ += operations * waste * idle * (bound ? 1 : kOneThread);
    return true;
  }

  // How many sectors a warp's neighbours touch in the place of one.
  double Spread(const std::vector<Loop>& loops, const Touch& t) const {
    for (size_t l = loops.size(); l-- > 0;) {
      if (!IsThreadAxis(loops[l])) continue;
      const int64_t step = std::abs(t.loops[l].step);
      return step <= 1 ? 1 : std::min<double>(8, static_cast<double>(step));
    }
    return 1;
  }

  void AddGlobal(const std::vector<Loop>& loops, const Touch& t) {
    size_t first = 0;
    double around = 1;
    for (size_t l = 0; l < loops.size(); ++l) {
      if (IsBlockAxis(loops[l])) {
        first = l + 1;
        around *= static_cast<double>(loops[l].extent);
      }
    }
    const double of_block = FootprintOf(t, first);
    work_.bytes[1] += around * of_block * Spread(loops, t);
    work_.bytes[2] += std::min(around * of_block, 4 * FootprintOf(t, 0));
  }

  bool SharedFits(const std::vector<Touch>& touches, const std::vector<Loop>& loops) {
    // What a block of threads keeps of each buffer in shared memory: inside its step.
    for (const Touch& t : touches) {
      if (!t.shared) continue;
      size_t first = 0;
      for (size_t l = 0; l < loops.size(); ++l) {
        if (IsThreadAxis(loops[l])) first = l + 1;
      }
      // The loop after the threads is the step; all threads together touch the rest.
      double elements = 1;
      for (size_t d = 0; d < t.box.size(); ++d) {
        int64_t reach = t.box[d];
        for (size_t l = 0; l < loops.size(); ++l) {
          const bool is_block = IsBlockAxis(loops[l]);
          if (!is_block && l != first) reach += t.loops[l].span[d];
        }
        elements *= static_cast<double>(std::min(reach, ShapeOf(*t.buffer, d)));
      }
      double& bytes = shared_bytes_[t.buffer];
      bytes = std::max(bytes, elements * static_cast<double>(t.buffer->dtype.Bytes()));
    }
    double all = 0;
    for (const auto& [buffer, bytes] : shared_bytes_) all += bytes;
    return all <=
           static_cast<double>(std::min<int64_t>(machine_.memory[0].capacity_bytes, 48 << 10));
  }

  const PrimFunc& func_;
  const Machine& machine_;
  const bool gpu_;
  WorkDescription work_;
  int64_t tiles_ = 0, parallel_roots_ = 0;
  double shared_out_ = 0, alone_ = 0;  // elements
  bool any_parallel_ = false;
  std::map<const BufferNode*, double> shared_bytes_;
};

}  // namespace

std::optional<WorkDescription> WorkOf(const PrimFunc& func, const Machine& machine) {
  return Reader(func, machine).Read();
}

}  // namespace tenon::sketch
