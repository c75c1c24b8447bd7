// For each block, its own loops and those around it: how often its body runs, in which form (lanes,
// a tile of accumulators in registers, one element at a time), and what it moves between memories.
//
// What moves: for each level, the loops within which everything that is touched fits in half of it
// load what they touch once; the loops around repeat that.
#include "sketch/work.h"

#include <algorithm>
#include <cmath>

namespace tenon::sketch {

namespace {

constexpr int64_t kLine = 64;  // bytes of a cache line

// Bytes that the loops from each one inwards touch, in whole cache lines; the last: one iteration.
class Footprints {
 public:
  explicit Footprints(const NestBlock& block) : all_(block.loops.size() + 1) {
    bytes_.resize(block.touches.size() * all_);
    together_.assign(all_, 0);
    for (size_t i = 0; i < block.touches.size(); ++i) Add(block.touches[i], i);
  }
  double Of(size_t touch, size_t first) const { return bytes_[touch * all_ + first]; }
  /// Of all in memory.
  double Together(size_t first) const { return together_[first]; }

 private:
  void Add(const Touch& t, size_t place) {
    const size_t dims = t.shape.size();
    reach_.assign(t.box.begin(), t.box.end());
    for (size_t first = all_; first-- > 0;) {
      if (first + 1 < all_) {
        for (size_t d = 0; d < dims; ++d) reach_[d] += t.Span(first, d);
      }
      double elements = 1;
      int64_t row = 1;
      for (size_t d = 0; d < dims; ++d) {
        const int64_t reach = std::min(reach_[d], t.shape[d]);
        if (d + 1 == dims) {
          row = reach;
        } else {
          elements *= static_cast<double>(reach);
        }
      }
      const int64_t lines = (row * t.element_bytes + kLine - 1) / kLine;
      const double bytes = elements * static_cast<double>(lines * kLine);
      bytes_[place * all_ + first] = bytes;
      if (t.in_memory) together_[first] += bytes;
    }
  }

  size_t all_;
  std::vector<double> bytes_, together_;
  std::vector<int64_t> reach_;
};

class Pricer {
 public:
  explicit Pricer(const Machine& machine) : machine_(machine), gpu_(machine.warp > 0) {}

  std::optional<WorkDescription> Of(const Nest& nest) {
    work_.type = DType::Float(32);
    work_.team = 1;
    for (const NestBlock& block : nest.blocks) {
      if (!(gpu_ ? AddOnGpu(block) : AddOnCpu(block))) return std::nullopt;
    }
    work_.team = gpu_ || any_parallel_ ? std::max<int64_t>(1, machine_.workers) : 1;
    work_.tiles = std::max<int64_t>(1, tiles_);
    const int64_t joins = gpu_ ? nest.roots : parallel_roots_;
    work_.barriers = std::max<int64_t>(0, joins - 1);
    // What is not shared out takes its time whoever else is there.
    const int64_t waves = (work_.tiles + work_.team - 1) / work_.team;
    work_.vector_ops =
        shared_out_ + alone_ * static_cast<double>(work_.tiles) / static_cast<double>(waves);
    return work_;
  }

 private:
  // ---- CPUs ----

  /// The form that a block runs in.
  struct Form {
    double turns = 1;
    int64_t parallel = 1, lanes = 1, unrolled = 1;
    size_t lane = 0;  // the loop of lanes; as many as there are loops: none
  };

  bool AddOnCpu(const NestBlock& block) {
    Form form;
    form.lane = block.loops.size();
    // From the inside: the tile are the unrolled and vectorized loops inside of all others.
    bool inside = true;
    for (size_t l = block.loops.size(); l-- > 0;) {
      const NestLoop& loop = block.loops[l];
      form.turns *= static_cast<double>(loop.extent);
      if (loop.kind == ForKind::kParallel) form.parallel *= loop.extent;
      if (loop.kind == ForKind::kVectorized) {
        form.lanes = loop.extent;
        form.lane = l;
      }
      inside = inside && (loop.kind == ForKind::kUnrolled || loop.kind == ForKind::kVectorized ||
                          loop.extent == 1);
      if (inside && loop.kind == ForKind::kUnrolled) form.unrolled *= loop.extent;
    }
    if (form.parallel > 1) {
      ++parallel_roots_;
      any_parallel_ = true;
      tiles_ = tiles_ == 0 ? form.parallel : std::min(tiles_, form.parallel);
    }
    AddCycles(block, form);
    AddTraffic(block);
    return true;
  }

  void AddCycles(const NestBlock& block, const Form& form) {
    const std::vector<NestLoop>& loops = block.loops;
    const ComputeUnit& unit = machine_.VectorUnit(block.type);
    const ComputeUnit* called =
        block.unit < 0 ? nullptr : &machine_.units[static_cast<size_t>(block.unit)];
    const double units = (called ? called : &unit)->per_second / machine_.cycles_per_second;
    const auto width = static_cast<double>(machine_.Lanes(block.type));
    const double registers = std::max(1.0, std::ceil(static_cast<double>(form.lanes) / width));
    const auto per_turn = static_cast<double>(form.lanes * form.unrolled);
    const double steps = form.turns / std::max(per_turn, 1.0);
    const double operations =
        static_cast<double>(form.unrolled) * registers * (called ? 1 : block.operations);
    double loads = 0, stores = 0, accumulators = 0;
    for (const Touch& t : block.touches) {
      // Different registers of one step.
      double different = 1;
      for (size_t l = loops.size(); l-- > 0 && IsOfTile(loops[l]);) {
        if (loops[l].kind == ForKind::kUnrolled && t.MovesOver(l))
          different *= static_cast<double>(loops[l].extent);
      }
      double each = 1;
      if (form.lane < loops.size() && t.MovesOver(form.lane)) {
        const bool along = std::abs(t.steps[form.lane]) == 1;
        each = along ? registers : 1.5 * static_cast<double>(form.lanes);
      }
      if (!t.in_memory) {
        accumulators = std::max(accumulators, different * each);
        continue;
      }
      (t.write ? stores : loads) += different * each;
    }
    if (accumulators > static_cast<double>(machine_.registers)) loads += 2 * accumulators;
    double cycles =
        std::max({operations / units, (loads + 2 * stores) / machine_.vector_loads_per_cycle,
                  block.reduces ? machine_.fma_latency_cycles : 0.25});
    cycles += machine_.loop_cycles * (form.unrolled > 1 ? 1 : 2);
    // In elements of the unit that EstimateSeconds has, so that it comes to these cycles.
    const ComputeUnit& counted = machine_.VectorUnit(work_.type);
    (form.parallel > 1 ? shared_out_ : alone_) += steps * cycles / machine_.cycles_per_second *
                                                  counted.per_second *
                                                  static_cast<double>(counted.n);
  }

  static bool IsOfTile(const NestLoop& loop) {
    return loop.kind == ForKind::kUnrolled || loop.kind == ForKind::kVectorized || loop.extent == 1;
  }

  void AddTraffic(const NestBlock& block) {
    const std::vector<NestLoop>& loops = block.loops;
    const Footprints footprints(block);
    for (size_t level = 0; level + 1 < std::min(machine_.memory.size(), kMostMemoryLevels);
         ++level) {
      const auto room = static_cast<double>(machine_.memory[level].capacity_bytes) / 2;
      size_t first = loops.size();
      while (first > 0 && footprints.Together(first - 1) <= room) --first;
      double around = 1;
      for (size_t l = 0; l < first; ++l) around *= static_cast<double>(loops[l].extent);
      for (size_t i = 0; i < block.touches.size(); ++i) {
        const Touch& t = block.touches[i];
        if (!t.in_memory) continue;
        // Where the next loop outwards does not move it, it stays.
        double repeats = around;
        if (first > 0 && !t.MovesOver(first - 1) && footprints.Of(i, first) <= room / 4)
          repeats /= static_cast<double>(std::max<int64_t>(1, loops[first - 1].extent));
        work_.bytes[level + 1] += repeats * footprints.Of(i, first) * (t.write ? 2 : 1);
      }
    }
  }

  // ---- GPUs ----

  bool AddOnGpu(const NestBlock& block) {
    double turns = 1;
    int64_t blocks = 1, threads = 1, unrolled = 1;
    bool bound = false;
    for (const NestLoop& loop : block.loops) {
      turns *= static_cast<double>(loop.extent);
      if (loop.kind == ForKind::kUnrolled) unrolled *= loop.extent;
      if (loop.kind != ForKind::kThread) continue;
      if (IsBlockAxis(loop)) blocks *= loop.extent;
      if (IsThreadAxis(loop)) threads *= loop.extent;
      bound = bound || IsBlockAxis(loop) || IsThreadAxis(loop);
    }
    if (threads > machine_.target->gpu().max_threads_per_block) return false;
    if (!SharedFits(block)) return false;
    tiles_ = std::max(tiles_, blocks);
    // Threads of a part of a warp idle; few warps on a multiprocessor wait for memory.
    const double warps =
        std::ceil(static_cast<double>(threads) / static_cast<double>(machine_.warp));
    const double waste = warps * static_cast<double>(machine_.warp) / static_cast<double>(threads);
    const double together =
        std::clamp(static_cast<double>(blocks) / static_cast<double>(machine_.workers), 1.0, 8.0);
    const double idle = std::max(1.0, 8.0 / (warps * together));
    double loads = 0;
    const Footprints footprints(block);
    for (size_t i = 0; i < block.touches.size(); ++i) {
      const Touch& t = block.touches[i];
      if (!t.in_memory) continue;
      double different = 1;
      for (size_t l = 0; l < block.loops.size(); ++l) {
        if (block.loops[l].kind == ForKind::kUnrolled && t.MovesOver(l))
          different *= static_cast<double>(block.loops[l].extent);
      }
      const double each = different / static_cast<double>(unrolled);
      loads += each * (t.shared ? 1.0 : 4.0 * Spread(block, t));
      if (t.shared) work_.bytes[0] += turns * each * static_cast<double>(t.element_bytes);
      if (!t.shared) AddGlobal(block, t, footprints, i);
    }
    const double slow = block.type.bits > 32 ? 8 : 1;
    const double operations = turns * (block.operations * slow + loads);
    // Loops of no grid run on one thread.
    constexpr double kOneThread = 1e3;
    shared_out_ += operations * waste * idle * (bound ? 1 : kOneThread);
    return true;
  }

  // How many sectors a warp's neighbours touch in the place of one.
  static double Spread(const NestBlock& block, const Touch& t) {
    for (size_t l = block.loops.size(); l-- > 0;) {
      if (!IsThreadAxis(block.loops[l])) continue;
      const int64_t step = std::abs(t.steps[l]);
      return step <= 1 ? 1 : std::min<double>(8, static_cast<double>(step));
    }
    return 1;
  }

  void AddGlobal(const NestBlock& block, const Touch& t, const Footprints& footprints,
                 size_t place) {
    size_t first = 0;
    double around = 1;
    for (size_t l = 0; l < block.loops.size(); ++l) {
      if (IsBlockAxis(block.loops[l])) {
        first = l + 1;
        around *= static_cast<double>(block.loops[l].extent);
      }
    }
    const double of_block = footprints.Of(place, first);
    work_.bytes[1] += around * of_block * Spread(block, t);
    work_.bytes[2] += std::min(around * of_block, 4 * footprints.Of(place, 0));
  }

  bool SharedFits(const NestBlock& block) {
    // What a block of threads keeps of each buffer in shared memory: inside its step.
    for (const Touch& t : block.touches) {
      if (!t.shared) continue;
      size_t first = 0;
      for (size_t l = 0; l < block.loops.size(); ++l) {
        if (IsThreadAxis(block.loops[l])) first = l + 1;
      }
      // The loop after the threads is the step; all threads together touch the rest.
      double elements = 1;
      for (size_t d = 0; d < t.box.size(); ++d) {
        int64_t reach = t.box[d];
        for (size_t l = 0; l < block.loops.size(); ++l) {
          if (!IsBlockAxis(block.loops[l]) && l != first) reach += t.Span(l, d);
        }
        elements *= static_cast<double>(std::min(reach, t.shape[d]));
      }
      if (shared_bytes_.size() <= t.buffer) shared_bytes_.resize(t.buffer + 1, 0);
      shared_bytes_[t.buffer] =
          std::max(shared_bytes_[t.buffer], elements * static_cast<double>(t.element_bytes));
    }
    double all = 0;
    for (const double bytes : shared_bytes_) all += bytes;
    return all <=
           static_cast<double>(std::min<int64_t>(machine_.memory[0].capacity_bytes, 48 << 10));
  }

  const Machine& machine_;
  const bool gpu_;
  WorkDescription work_;
  int64_t tiles_ = 0, parallel_roots_ = 0;
  double shared_out_ = 0, alone_ = 0;  // elements
  bool any_parallel_ = false;
  std::vector<double> shared_bytes_;  // of each buffer
};

}  // namespace

std::optional<WorkDescription> WorkOf(const Nest& nest, const Machine& machine) {
  return Pricer(machine).Of(nest);
}

std::optional<WorkDescription> WorkOf(const PrimFunc& func, const Machine& machine) {
  const std::optional<Nest> nest = NestOf(func, machine);
  if (!nest) return std::nullopt;
  return WorkOf(*nest, machine);
}

}  // namespace tenon::sketch
