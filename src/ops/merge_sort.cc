// A row is cut into tiles, a tile into runs of 32. A run is sorted by counting: as many of its keys
// as precede one stand before it. Then neighbouring runs are merged, again and again:
//
//   cut[r, p]   how many of the first p of runs 2r and 2r + 1, taken together, are the first one's:
//               the largest a with  left[a - 1] <= right[p - a],  found by halving
//   merged[r, p] = left[cut] or right[p - cut], whichever is smaller; of equal ones the left one
//
// (merge paths; Odeh, Green, Mwassi, Shmueli and Birk 2012.) An element of what is merged depends
// on nothing but its place, so that each is a thread's, and the order that comes out does not
// depend on how threads run. Within a tile all of it stays in shared memory, in one launch; from
// then on each doubling is a launch. Of runs only as much is kept as is asked for: of few among
// many little is left after the tiles.
//
// Behind a row's end there are the largest keys. They are behind equal ones of the row, for they
// come from places behind these.
#include "ops/merge_sort.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "graph/dims.h"
#include "ops/scheduling.h"
#include "ops/tiling.h"

namespace tenon::ops {

using te::Indices;

namespace {

constexpr int64_t kRun = 32, kTile = 512;

// Places in a tile.
const DType kNear = DType::Int(16);

// What stays in shared memory: keys, their ranks, where the first ones are, and of each width of
// runs what is kept of them.
int64_t SharedBytes(int64_t tile, int64_t asked, DType key) {
  int64_t bytes = tile * (key.Bytes() + 2 * kNear.Bytes());
  for (int64_t width = kRun; width < tile; width *= 2)
    bytes += tile / width * std::min(width, asked) * (key.Bytes() + kNear.Bytes());
  return bytes;
}

// The longest tile that a row of `most` needs and shared memory holds.
int64_t TileFor(int64_t most, int64_t asked, DType key, const Machine& machine) {
  constexpr int64_t kHeld = 48 << 10;  // more than that a launch must ask for
  const int64_t held = std::min<int64_t>(kHeld, machine.target->gpu().max_shared_memory_per_block);
  int64_t tile = 2 * kRun;
  while (tile < kTile && tile < most && SharedBytes(2 * tile, asked, key) <= held) tile *= 2;
  return tile;
}

class MergeSorter {
 public:
  MergeSorter(Group& group, const KeyRows& keys)
      : group_(group),
        keys_(keys),
        most_(LongestRow(keys.size)),
        asked_(std::min(LongestRow(keys.first), most_)),
        tile_(TileFor(most_, asked_, keys.type, *group.request().machine)),
        place_(DType::Int(
            graph::DimRange(keys.size).max <= std::numeric_limits<int32_t>::max() ? 32 : 64)) {}

  SortedRows Run() {
    SortRuns();
    for (int64_t width = 2 * kRun; width <= tile_; width *= 2) MergeInTile(width);
    Expr runs = tiles_;
    for (int64_t width = tile_; width < most_;) {
      width *= 2;
      Merge(width, &runs);
    }
    const Sorted all = sorted_;
    const auto read = [](const te::Tensor& t, Indices row, const Expr& rank) {
      row.push_back(IndexConst(0));
      row.push_back(rank);
      return t.At(row);
    };
    return {place_, [=](const Indices& row, const Expr& rank) { return read(all.keys, row, rank); },
            [=](const Indices& row, const Expr& rank) { return read(all.order, row, rank); }};
  }

 private:
  struct Sorted {
    te::Tensor keys, order;
  };

  std::string Name(const std::string& what, BlockRole role) {
    return group_.Mark(keys_.name + what, role);
  }
  static Indices With(Indices at, std::initializer_list<Expr> more) {
    at.insert(at.end(), more.begin(), more.end());
    return at;
  }
  Indices RowOf(const Indices& at) const {
    return {at.begin(), at.begin() + static_cast<long>(keys_.rows.size())};
  }
  Expr NoKey() const { return MakeIntConst(keys_.type, -1); }

  // [rows…, tiles, runs of a tile, the first of a run]
  void SortRuns() {
    tiles_ = graph::DimCeilDiv(keys_.size, IndexConst(tile_));
    const Expr runs = IndexConst(tile_ / kRun), run = IndexConst(kRun);
    const size_t lead = keys_.rows.size();
    const te::Tensor keys = te::Compute(
        Name("_keys", BlockRole::kTileSort), With(keys_.rows, {tiles_, runs, run}),
        [&](const Indices& at) -> te::Body {
          const Expr j = at[lead] * tile_ + at[lead + 1] * kRun + at.back();
          const Expr key = keys_.at(RowOf(at), Min(j, Max(keys_.size - 1, IndexConst(0))));
          return Select::Make(Lt(j, keys_.size), key, NoKey());
        });
    const te::Tensor rank =
        te::Compute(Name("_rank", BlockRole::kTileSort), With(keys_.rows, {tiles_, runs, run}),
                    [&](const Indices& at) {
                      const te::Axis r = te::ReduceAxis("r", run);
                      Indices other = at;
                      other.back() = r.var;
                      const Expr key = keys.At(other), own = keys.At(at);
                      const Expr before = Or(Lt(key, own), And(Eq(key, own), Lt(r.var, at.back())));
                      return te::Sum(CastExpr::Make(kNear, before), {r});
                    });
    length_ = IndexConst(std::min(kRun, asked_));
    const std::vector<Expr> dims = With(keys_.rows, {tiles_, runs, length_});
    const te::Tensor first =
        te::Compute(Name("_first", BlockRole::kTileSort), dims, [&](const Indices& at) {
          const te::Axis r = te::ReduceAxis("r", run);
          Indices in = at;
          in.back() = r.var;
          const Expr here = Eq(rank.At(in), CastExpr::Make(kNear, at.back()));
          return te::Sum(Select::Make(here, CastExpr::Make(kNear, r.var), MakeIntConst(kNear, 0)),
                         {r});
        });
    Put("_runs", BlockRole::kTileSort, dims, [&](const Indices& at) -> Element {
      const Expr in_run = CastExpr::Make(DType::Index(), first.At(at));
      Indices from = at;
      from.back() = Max(Min(in_run, IndexConst(kRun - 1)), IndexConst(0));
      return {keys.At(from), CastExpr::Make(kNear, at[lead + 1] * kRun + in_run)};
    });
  }

  struct Element {
    Expr key, place;
  };
  void Put(const std::string& what, BlockRole role, const std::vector<Expr>& dims,
           const std::function<Element(const Indices&)>& element) {
    const std::vector<te::Tensor> both =
        te::ComputeTuple(Name(what, role), dims, [&](const Indices& at) -> te::TupleBody {
          const Element e = element(at);
          return {{e.key, e.place}, {}, {}, nullptr};
        });
    sorted_ = {both[0], both[1]};
  }

  // Two runs in one place of what is sorted so far: of each the first `length_`.
  struct Pair {
    std::function<Indices(const Expr& run, const Expr& at)> place;  // of what is so far
    Expr left, right;                                               // the numbers of the runs
    Expr of_right;                                                  // how many the right one has
  };

  Expr KeyAt(const Pair& pair, const Expr& run, const Expr& at) const {
    return sorted_.keys.At(pair.place(run, Max(Min(at, length_ - 1), IndexConst(0))));
  }

  // `place_of`: what an element's place is called in what is made; null: as before.
  void MergePairs(int64_t width, const std::vector<Expr>& dims, BlockRole role,
                  const std::function<Pair(const Indices&)>& pair_of,
                  const std::function<Expr(const Indices&, const Expr&)>& place_of = nullptr) {
    const int64_t longest = std::min({width / 2, asked_});
    int64_t bits = 1;  // of a cut; nothing may be asked for
    while (longest >> bits != 0) ++bits;
    const te::Axis step = te::ReduceAxis("step", IndexConst(bits));
    const DType i32 = DType::Int(32);
    const te::Tensor cut = te::AfterSteps(
        Name(fmt::format("_cut{}", width), BlockRole::kCut), dims, step,
        [&](const Indices& at) -> te::StepsBody {
          const Expr& p = at.back();
          return {MakeIntConst(i32, 0), [&, at, p](const Expr& here) {
                    const Expr bit =
                        Binary::Make(BinaryOp::kShr, MakeIntConst(i32, int64_t{1} << (bits - 1)),
                                     CastExpr::Make(i32, step.var));
                    const Pair pair = pair_of(at);
                    const Expr more = CastExpr::Make(DType::Index(), here + bit);
                    const Expr left = KeyAt(pair, pair.left, more - 1);
                    const Expr right = KeyAt(pair, pair.right, p - more);
                    const Expr takes = And(And(Le(more, p), Le(more, length_)),
                                           Or(Ge(p - more, pair.of_right), Le(left, right)));
                    return Select::Make(takes, here + bit, here);
                  }};
        });
    Put(fmt::format("_merged{}", width), role, dims, [&](const Indices& at) -> Element {
      const Pair pair = pair_of(at);
      const Expr a = CastExpr::Make(DType::Index(), cut.At(at)), b = at.back() - a;
      const Expr is_in_right = Lt(b, pair.of_right);
      const Expr takes_left =
          And(Lt(a, length_),
              Or(Not(is_in_right), Le(KeyAt(pair, pair.left, a), KeyAt(pair, pair.right, b))));
      const Expr run = Select::Make(takes_left, pair.left, pair.right);
      const Expr from = Select::Make(takes_left, a, b);
      const Indices place = pair.place(run, Max(Min(from, length_ - 1), IndexConst(0)));
      return {Select::Make(Or(takes_left, is_in_right), sorted_.keys.At(place), NoKey()),
              place_of ? place_of(at, sorted_.order.At(place)) : sorted_.order.At(place)};
    });
  }

  Expr LengthFor(int64_t width) const {
    return width <= tile_ ? IndexConst(std::min(width, asked_))
                          : graph::DimMin(keys_.first, IndexConst(width));
  }

  // All of a tile's runs in pairs; of the last one there is no axis of runs any more.
  void MergeInTile(int64_t width) {
    const bool last = width == tile_;
    const Expr length = LengthFor(width);
    std::vector<Expr> dims = With(keys_.rows, {tiles_, IndexConst(tile_ / width), length});
    if (last) dims.erase(dims.end() - 2);
    MergePairs(width, dims, last ? BlockRole::kMerge : BlockRole::kTileSort, [&](const Indices& at) {
      const size_t n = keys_.rows.size();
      const Expr r = last ? IndexConst(0) : at[n + 1];
      const Indices tile(at.begin(), at.begin() + static_cast<long>(n) + 1);
      return Pair{[tile](const Expr& run, const Expr& i) { return With(tile, {run, i}); }, r * 2,
                  r * 2 + 1, length_};
    }, last ? [&](const Indices& at, const Expr& near) {
      return CastExpr::Make(place_, at[keys_.rows.size()] * tile_ + CastExpr::Make(DType::Index(), near));
    } : std::function<Expr(const Indices&, const Expr&)>());
    length_ = length;
  }

  // Two of the tiles' runs, or a run and none.
  void Merge(int64_t width, Expr* runs) {
    const Expr before = *runs, length = LengthFor(width);
    *runs = graph::DimCeilDiv(before, IndexConst(2));
    MergePairs(width, With(keys_.rows, {*runs, length}), BlockRole::kMerge, [&](const Indices& at) {
      const Indices row = RowOf(at);
      const Expr left = at[row.size()] * 2, right = Min(left + 1, before - 1);
      return Pair{[row](const Expr& run, const Expr& i) { return With(row, {run, i}); }, left,
                  right, Select::Make(Lt(left + 1, before), length_, IndexConst(0))};
    });
    length_ = length;
  }

  Group& group_;
  const KeyRows& keys_;
  const int64_t most_, asked_, tile_;
  const DType place_;
  Expr tiles_, length_;  // of a row, and of a run
  Sorted sorted_;
};

// Each tile is a block of threads. Everything before the last of it is in shared memory.
class MergeScheduler {
 public:
  MergeScheduler(Schedule& s, const Parts& parts, const Machine& machine)
      : s_(s), parts_(parts), most_threads_(machine.target->gpu().max_threads_per_block) {}

  // Returns the results that went along.
  Names Run() {
    Names tile, cuts;
    std::string last, thread;  // what is merged last, and its thread
    for (const std::string& block : s_.GetBlocks()) {
      if (!s_.ok()) return {};
      switch (PartOf(parts_, block).role) {
        case BlockRole::kTileSort: tile.push_back(block); break;
        case BlockRole::kCut: cuts.push_back(block); break;
        case BlockRole::kMerge:
          last = block;
          if (tile.empty()) {
            thread = ShareAmongThreads(s_, parts_, block);
            TakeCut(cuts.back(), thread);
          } else {
            thread = ShareTile(tile, cuts, block);
          }
          tile.clear();
          cuts.clear();
          break;
        default: break;
      }
    }
    return TakeResults(last, thread);
  }

 private:
  // Results that are made of what is merged last, element by element, come with it.
  Names TakeResults(const std::string& last, const std::string& thread) {
    Schedule tried = s_;
    Names results = s_.GetConsumers(last);
    for (const std::string& block : results) {
      if (PartOf(parts_, block).role != BlockRole::kOutput) return {};
      tried.ReverseComputeAt(block, thread);
    }
    for (const std::string& buffer : {WrittenBuffer(s_, last), StateBuffer(s_, last)})
      tried.SetScope(buffer, Scope::kLocal);
    if (!tried.ok()) return {};
    s_ = std::move(tried);
    return results;
  }

  void TakeCut(const std::string& cut, const std::string& thread) {
    s_.SetScope(WrittenBuffer(s_, cut), Scope::kLocal);
    s_.ComputeAt(cut, thread);
  }

  std::string ShareInTile(const Names& loops) {
    const std::string all = loops.size() > 1 ? s_.Fuse(loops) : loops[0];
    const Names split = s_.Split(all, {-1, threads_});
    s_.Bind(split[1], ThreadAxis::kThreadIdxX);
    return split[1];
  }

  // The tiles of all rows along blocks of threads.
  std::string ShareTiles(const Names& loops) {
    Schedule tried = s_;
    std::string tile = loops.size() > 1 ? tried.Fuse(loops) : loops[0];
    tried.Bind(tile, ThreadAxis::kBlockIdxX);
    if (tried.ok()) {
      s_ = std::move(tried);
      return tile;
    }
    s_.Bind(loops.back(), ThreadAxis::kBlockIdxX);
    const Names rows(loops.begin(), loops.end() - 1);
    s_.Bind(rows.size() > 1 ? s_.Fuse(rows) : rows[0], ThreadAxis::kBlockIdxY);
    return loops.back();
  }

  std::string ShareTile(const Names& blocks, const Names& cuts, const std::string& last) {
    Names loops = s_.GetSpatialLoops(last);
    const std::string along = loops.back();
    loops.pop_back();
    const std::string tile = ShareTiles(loops);
    const Names keys = s_.GetSpatialLoops(blocks[0]);  // behind those of the rows and tiles
    threads_ = std::min(TripsTogether(s_, {keys[keys.size() - 2], keys.back()}), most_threads_);
    size_t next_cut = cuts.size();
    const std::string thread_of_last = ShareInTile({along});
    TakeCut(cuts[--next_cut], thread_of_last);
    for (size_t i = blocks.size(); i-- > 0 && s_.ok();) {
      const std::string& block = blocks[i];
      for (const std::string& buffer : {WrittenBuffer(s_, block), StateBuffer(s_, block)})
        s_.SetScope(buffer, Scope::kShared);
      s_.ComputeAt(block, tile);
      const std::string thread = ShareInTile(LoopsInside(s_, block, tile).spatial);
      const Names producers = s_.GetProducers(block);
      if (next_cut > 0 &&
          std::find(producers.begin(), producers.end(), cuts[next_cut - 1]) != producers.end())
        TakeCut(cuts[--next_cut], thread);
    }
    return thread_of_last;
  }

  Schedule& s_;
  const Parts& parts_;
  const int64_t most_threads_;
  int64_t threads_ = 1;  // of a tile
};

}  // namespace

int64_t LongestRow(const Expr& size) {
  const int64_t most = graph::DimRange(size).max;
  return most < 0 ? kLongestMerged : std::min(most, kLongestMerged);
}

bool IsMerged(const Expr& size) {
  const std::optional<int64_t> known = AsInt(size);
  return !known || (*known > 0 && *known <= kLongestMerged);
}

SortedRows SortByMerging(Group& group, const KeyRows& keys) {
  return MergeSorter(group, keys).Run();
}

Names ScheduleMerging(Schedule& s, const Parts& parts, const Machine& machine) {
  return MergeScheduler(s, parts, machine).Run();
}

void AddMerging(WorkDescription* work, const Machine& machine, int64_t rows, int64_t size,
                int64_t first, DType type) {
  constexpr double kOperations = 12;  // of a step of halving
  // A thread's steps wait for each other: in a tile, and in a launch that merges.
  constexpr int64_t kBarriersOfTile = 3, kBarriersOfMerge = 2;
  const int64_t tile = TileFor(size, first, type, machine);
  double elements = static_cast<double>(rows) * static_cast<double>(CeilDiv(size, tile) * tile);
  work->vector_ops += elements * 4 * static_cast<double>(kRun);
  work->barriers += kBarriersOfTile;
  double steps = 1;
  for (int64_t width = kRun; width < size; width *= 2) {
    const bool in_tile = width < tile;
    const int64_t kept = std::min(2 * width, first);
    elements = static_cast<double>(rows * CeilDiv(size, 2 * width) * kept);
    for (steps = 1; (int64_t{1} << static_cast<int64_t>(steps)) <= kept;) ++steps;
    work->vector_ops += elements * steps * kOperations;
    if (in_tile) continue;
    work->barriers += kBarriersOfMerge;
    const double bytes = elements * (type.bits / 8.0 + 4) * 3;
    work->bytes[machine.LevelFor(static_cast<int64_t>(bytes))] += bytes;
  }
}

}  // namespace tenon::ops
