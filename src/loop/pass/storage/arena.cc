#include "loop/pass/storage/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "ir/print.h"
#include "ir/visit.h"

namespace tenon {

namespace {

int64_t AlignUp(int64_t bytes) { return (bytes + kArenaAlign - 1) / kArenaAlign * kArenaAlign; }
Expr AlignUp(const Expr& bytes) { return CeilDiv(bytes, IndexConst(kArenaAlign)) * kArenaAlign; }

bool Meet(const ArenaItem& a, const ArenaItem& b) { return a.first <= b.last && b.first <= a.last; }

// Offsets for the guessed sizes.
std::vector<int64_t> GreedyOffsets(const std::vector<ArenaItem>& items) {
  std::vector<size_t> by_size(items.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  // What comes last has an offset of all that may be below it: of open sizes, pages of formulas.
  const bool known = std::all_of(items.begin(), items.end(), [](const ArenaItem& item) {
    return AsInt(item.bytes).has_value();
  });
  const auto rank = [&](size_t i) {
    return std::tuple(known && items[i].is_sparse, -items[i].guess, i);
  };
  std::sort(by_size.begin(), by_size.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  std::vector<int64_t> offsets(items.size(), 0);
  std::vector<size_t> placed;  // by offset
  for (size_t i : by_size) {
    int64_t at = 0;
    for (size_t j : placed) {
      if (!Meet(items[i], items[j])) continue;
      if (at + items[i].guess <= offsets[j]) break;
      at = std::max(at, AlignUp(offsets[j] + items[j].guess));
    }
    offsets[i] = at;
    auto place = std::upper_bound(placed.begin(), placed.end(), i,
                                  [&](size_t a, size_t b) { return offsets[a] < offsets[b]; });
    placed.insert(place, i);
  }
  return offsets;
}

// The largest of these ends, the last of which come first; those that are known to be no larger
// than another are not asked.
Expr LargestEnd(const std::vector<Expr>& ends, const std::vector<size_t>& of, Analyzer* analyzer) {
  std::vector<Expr> largest;
  for (auto j = of.rbegin(); j != of.rend(); ++j) {
    auto covers = [&](const Expr& a, const Expr& b) { return analyzer->CanProve(Ge(a, b)); };
    if (std::any_of(largest.begin(), largest.end(),
                    [&](const Expr& e) { return covers(e, ends[*j]); }))
      continue;
    std::erase_if(largest, [&](const Expr& e) { return covers(ends[*j], e); });
    largest.push_back(ends[*j]);
  }
  if (largest.empty()) return IndexConst(0);
  Expr out = largest[0];
  for (size_t i = 1; i < largest.size(); ++i) out = Max(out, largest[i]);
  return analyzer->Simplify(out);
}

}  // namespace

ArenaPlan PlanArena(const std::vector<ArenaItem>& items, Analyzer* analyzer) {
  std::vector<int64_t> guess = GreedyOffsets(items);
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(guess[a], a) < std::pair(guess[b], b); });
  ArenaPlan plan;
  plan.offsets.resize(items.size());
  std::vector<Expr> ends(items.size());
  // By item: those that are known to end where it begins, or before.
  std::vector<std::vector<bool>> below(items.size(), std::vector<bool>(items.size()));
  for (size_t n = 0; n < order.size(); ++n) {
    size_t i = order[n];
    // The ends of what is below another one say nothing new, and sizes that are expressions would
    // double with every item.
    std::vector<size_t> last;
    for (size_t m = n; m-- > 0;) {
      const size_t j = order[m];
      if (!Meet(items[i], items[j]) || below[i][j]) continue;
      last.push_back(j);
      below[i][j] = true;
      for (size_t k = 0; k < items.size(); ++k) below[i][k] = below[i][k] || below[j][k];
    }
    plan.offsets[i] = LargestEnd(ends, last, analyzer);
    ends[i] = analyzer->Simplify(AlignUp(plan.offsets[i] + items[i].bytes));
  }
  std::vector<size_t> last;  // nothing is above them
  for (size_t m = order.size(); m-- > 0;) {
    const size_t j = order[m];
    if (std::none_of(last.begin(), last.end(), [&](size_t k) { return below[k][j]; }))
      last.push_back(j);
  }
  plan.bytes = LargestEnd(ends, last, analyzer);
  return plan;
}

std::string ToString(const std::vector<ArenaItem>& items, const ArenaPlan& plan) {
  std::string out = "offset bytes from to name\n";
  for (size_t i = 0; i < items.size(); ++i) {
    out += fmt::format("{} {} {} {} {}\n", ToString(plan.offsets[i]),
                       ToString(Simplify(items[i].bytes)), items[i].first, items[i].last,
                       items[i].name);
  }
  return out + fmt::format("total {}\n", ToString(plan.bytes));
}

namespace {

// Numbers statements in order and notes where buffers are used. A lifetime that was seen so far
// covers every use; one that a loop may carry over covers the loop, once it is left.
class LifetimeFinder final : public ChildVisitor {
 public:
  Lifetimes operator()(const Stmt& body) {
    VisitChild(body, FieldRole::kChild);
    found_.end = now_;
    return std::move(found_);
  }

 private:
  struct Loop {
    int64_t begin;
    std::vector<size_t>
        used;  // allocs made outside of this loop and, of all loops, first outside of this one
  };

  void VisitChild(const NodeRef& child, FieldRole role) override {
    if (role == FieldRole::kBinds) return;
    if (!IsA<StmtNode>(child)) return UseAll(child);
    if (child->kind != NodeKind::kSeq) ++now_;
    if (const auto* launch = As<Launch>(child)) found_.launches.emplace_back(launch, now_);
    if (const auto* alloc = As<Alloc>(child)) Open(alloc);
    const auto* loop = As<For>(child);
    bool parallel = loop && loop->for_kind == ForKind::kParallel;
    bool repeats = loop || child->kind == NodeKind::kWhile;
    parallel_ += parallel;
    if (repeats) loops_.push_back({now_, {}});
    child->VisitChildren(*this);
    if (repeats) Close();
    parallel_ -= parallel;
  }

  void Open(const Alloc* alloc) {
    index_[alloc->buffer.get()] = found_.allocs.size();
    loop_depth_.push_back(loops_.size());
    found_.allocs.push_back({alloc, parallel_ > 0, now_, -1});
  }

  void UseAll(const NodeRef& expr) {
    PreOrder(expr, [&](const NodeRef& n) {
      if (const auto* buffer = As<BufferNode>(n)) Use(buffer);
      return n->kind != NodeKind::kBuffer;
    });
  }

  void Use(const BufferNode* buffer) {
    auto it = index_.find(buffer);
    if (it == index_.end()) return;
    Lifetime& life = found_.allocs[it->second];
    int64_t first = now_;
    if (size_t depth = loop_depth_[it->second]; depth < loops_.size()) {
      first = loops_[depth].begin;
      loops_[depth].used.push_back(it->second);
    }
    life.first = life.last < 0 ? first : std::min(life.first, first);
    life.last = std::max(life.last, now_);
  }

  void Close() {
    for (size_t i : loops_.back().used) found_.allocs[i].last = now_;
    loops_.pop_back();
  }

  Lifetimes found_;
  int64_t now_ = 0;
  int parallel_ = 0;
  std::vector<Loop> loops_;
  std::unordered_map<const BufferNode*, size_t> index_;
  std::vector<size_t> loop_depth_;  // per alloc
};

}  // namespace

Lifetimes LifetimesOf(const Stmt& body) { return LifetimeFinder()(body); }

}  // namespace tenon
