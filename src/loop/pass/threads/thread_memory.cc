// What threads do not share is as large as one of them needs.
//
// A schedule speaks of a row, of which each thread has a part: in
//
//   for t in 0..64 thread threadIdx.x { for j in 0..8, v in 0..4 { L[j * 256 + t * 4 + v] = … } }
//
// a thread touches 32 of 2048 elements. Along a dimension whose indices all have the same steps of
// the axes (here 4 of t), what is left besides, j * 256 + v, says which of its elements it means.
// Those are numbered densely: what is left is read as digits, j of weight 256 and v of weight 1,
// which all indices have in common, and the new index, j * 4 + v, has the digits' extents for
// weights.

#include "loop/pass/threads/thread_memory.h"

#include <algorithm>
#include <set>

#include "arith/linear.h"
#include "loop/pass/threads/place_syncs.h"
#include "loop/rewrite.h"
#include "loop/threads.h"
#include "support/check.h"

namespace tenon {

namespace {

// What is larger is not made smaller: no thread has so much.
constexpr int64_t kMostElements = int64_t{1} << 28;

bool HasLoad(const Expr& e) {
  bool found = false;
  PreOrder(e, [&](const NodeRef& n) {
    found |= IsA<Load>(n);
    return !found;
  });
  return found;
}

// What an index is besides the axes' steps, with the range of each term. The index is one that
// nothing rewrites.
struct Rest {
  Expr index;
  Linear sum;
  std::vector<Interval> ranges;
};

struct Digit {
  int64_t weight, extent;
};

// One dimension of a buffer: what all its indices have in common.
struct Dimension {
  std::vector<int64_t> steps;  // of the axes' variables
  std::vector<Rest> rests;     // one for each index
  bool shrinks = true;
};
struct Use {
  std::vector<Dimension> dims;
  bool seen = false;
};
using Uses = std::unordered_map<const BufferNode*, Use>;

// Reads how private buffers are used. uses has those that may shrink, each dimension as all
// accesses seen so far agree on it; a buffer whose address or region is asked for is there no more.
class Finder final : public ScopedRewriter {
 public:
  Finder(const PrimFunc& func, std::vector<Var> axes) : axes_(std::move(axes)) {
    Learn(func, &analyzer_);
  }
  Uses uses;

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    if (const auto* alloc = As<Alloc>(stmt)) {
      const Buffer& b = alloc->buffer;
      if (IsThreadPrivate(*b) && !b->layout && b->strides.empty())
        uses[b.get()].dims.resize(b->shape.size());
    }
    if (const auto* s = As<Store>(stmt)) See(s->buffer, s->indices);
    if (const auto* s = As<Atomic>(stmt)) See(s->buffer, s->indices);
    return Children(stmt);
  }
  Expr VisitExpr(const Expr& expr) override {
    PreOrder(expr, [&](const NodeRef& n) {
      if (const auto* load = As<Load>(n)) See(load->buffer, load->indices);
      const auto* call = As<Call>(n);
      const auto* address =
          call && call->intrinsic == Intrinsic::kBufferData ? As<Load>(call->args[0]) : nullptr;
      if (address) uses.erase(address->buffer.get());
      return true;
    });
    return expr;
  }
  // A region is a box of the buffer as it is.
  NodeRef VisitRegion(const Region& region) override {
    uses.erase(region->buffer.get());
    return region;
  }

  void See(const Buffer& buffer, const std::vector<Expr>& indices) {
    auto it = uses.find(buffer.get());
    if (it == uses.end()) return;
    const bool first = !std::exchange(it->second.seen, true);
    for (size_t d = 0; d < indices.size(); ++d) SeeIndex(indices[d], first, &it->second.dims[d]);
  }

  void SeeIndex(const Expr& index, bool first, Dimension* dim) {
    if (!dim->shrinks) return;
    const bool plain = index->dtype.IsIndex() && !HasLoad(index);
    auto affine = plain ? DetectAffine(index, axes_) : std::nullopt;
    std::vector<int64_t> steps;
    for (size_t i = 0; affine && i < axes_.size(); ++i) {
      auto step = AsInt(analyzer_.Simplify(affine->coefficients[i]));
      if (!step) affine.reset();
      steps.push_back(step.value_or(0));
    }
    dim->shrinks = affine.has_value() && (first || steps == dim->steps);
    if (!dim->shrinks) return;
    const Expr base = analyzer_.Simplify(affine->base);
    const Interval range = analyzer_.ConstBounds(base);
    Rest rest{index, SumOf(base), {}};
    for (const Term& term : rest.sum.terms)
      rest.ranges.push_back(analyzer_.ConstBounds(term.product));
    dim->shrinks = range.min >= 0 && range.max <= kMostElements;
    dim->steps = std::move(steps);
    dim->rests.push_back(std::move(rest));
  }

  std::vector<Var> axes_;
};

// A rest as a digit and what is below: high * weight + low, with low in [0, weight).
struct Parts {
  Rest high, low;
  int64_t high_max;
};

// The range of a sum; nothing where it is too large to be of interest.
std::optional<Interval> RangeOf(const Rest& rest) {
  Interval out{rest.sum.constant, rest.sum.constant};
  for (size_t i = 0; i < rest.sum.terms.size(); ++i) {
    const Interval& r = rest.ranges[i];
    if (r.min < -kMostElements || r.max > kMostElements) return std::nullopt;
    const int64_t c = rest.sum.terms[i].coefficient;
    if (c < -kMostElements || c > kMostElements) return std::nullopt;
    out.min += std::min(c * r.min, c * r.max);
    out.max += std::max(c * r.min, c * r.max);
  }
  return out;
}

std::optional<Parts> CutAt(const Rest& rest, int64_t weight) {
  Parts out;
  for (size_t i = 0; i < rest.sum.terms.size(); ++i) {
    Term term = rest.sum.terms[i];
    const bool high = term.coefficient % weight == 0;
    if (high) term.coefficient /= weight;
    Rest& part = high ? out.high : out.low;
    part.sum.terms.push_back(std::move(term));
    part.ranges.push_back(rest.ranges[i]);
  }
  out.low.sum.constant = rest.sum.constant;
  const std::optional<Interval> low = RangeOf(out.low);
  if (!low) return std::nullopt;
  const int64_t carried = low->min >= 0 ? low->min / weight : -((weight - 1 - low->min) / weight);
  out.low.sum.constant -= carried * weight;
  out.high.sum.constant = carried;
  const std::optional<Interval> high = RangeOf(out.high);
  if (!high || high->min < 0 || low->max - carried * weight >= weight) return std::nullopt;
  out.high_max = high->max;
  return out;
}

// The digits of all rests, of falling weight, and what each rest has for them: values_[i] has the
// digits taken so far of rest i, left_[i] what is below them. Where that does not pay there is one
// digit, of weight 1.
class Digits {
 public:
  static Digits Of(const std::vector<Rest>& rests) {
    Digits dense(rests, false), plain(rests, true);
    return dense.Count() < plain.Count() ? dense : plain;
  }

  /// How many numbers there are.
  int64_t Count() const {
    int64_t count = 1;
    for (const Digit& digit : digits_) {
      if (__builtin_mul_overflow(count, digit.extent, &count)) return Interval::kPosInf;
    }
    return count;
  }
  // The number of rest i among those that occur.
  Expr Number(size_t i) const {
    Expr out = IndexConst(0);
    for (size_t k = 0; k < digits_.size(); ++k)
      out = out * digits_[k].extent + ToExpr(values_[i][k]);
    return Simplify(out);
  }

 private:
  Digits(const std::vector<Rest>& rests, bool plain) : values_(rests.size()), left_(rests) {
    while (TakeOne(plain)) {
    }
  }

  // The largest weight at which all can be cut; the last one is 1.
  bool TakeOne(bool plain) {
    std::set<int64_t, std::greater<>> weights = {1};
    for (const Rest& rest : left_) {
      for (const Term& term : rest.sum.terms)
        weights.insert(plain ? 1 : std::max<int64_t>(term.coefficient, 1));
    }
    for (const int64_t weight : weights) {
      std::vector<Parts> all;
      for (const Rest& rest : left_) {
        auto parts = CutAt(rest, weight);
        if (!parts) break;
        all.push_back(std::move(*parts));
      }
      if (all.size() != left_.size()) continue;
      Digit digit{weight, 1};
      for (size_t i = 0; i < all.size(); ++i) {
        digit.extent = std::max(digit.extent, all[i].high_max + 1);
        values_[i].push_back(std::move(all[i].high.sum));
        left_[i] = std::move(all[i].low);
      }
      digits_.push_back(digit);
      return weight != 1;
    }
    return false;
  }

  std::vector<Digit> digits_;
  std::vector<std::vector<Linear>> values_;  // by rest, then by digit
  std::vector<Rest> left_;                   // below the digits that were taken
};

// small_ has the buffers that get smaller, with what is known of each dimension; all uses of such a
// buffer are rewritten together with its allocation, in one walk.
class Shrinker {
 public:
  explicit Shrinker(const Uses& uses) {
    for (const auto& [buffer, use] : uses) {
      auto small = MakeRef<BufferNode>(*buffer);
      std::vector<Numbers> numbers;
      for (size_t d = 0; use.seen && d < use.dims.size(); ++d) {
        if (!Shrinks(use.dims[d])) continue;
        const std::vector<Rest>& rests = use.dims[d].rests;
        const Digits digits = Digits::Of(rests);
        small->shape[d] = IndexConst(digits.Count());
        numbers.resize(use.dims.size());
        for (size_t i = 0; i < rests.size(); ++i)
          numbers[d][rests[i].index.get()] = digits.Number(i);
      }
      if (!numbers.empty()) small_[buffer] = {small, std::move(numbers)};
    }
  }

  Stmt operator()(const Stmt& stmt) const {
    if (small_.empty()) return stmt;
    return PostOrderRewrite(stmt, [this](const NodeRef& n) -> NodeRef {
      if (const auto* s = As<Load>(n)) {
        const Small* to = Find(s->buffer);
        return to ? NodeRef(Load::Make(to->buffer, Indices(*to, s->indices), s->mask)) : n;
      }
      if (const auto* s = As<Store>(n)) {
        const Small* to = Find(s->buffer);
        return to ? NodeRef(Store::Make(to->buffer, Indices(*to, s->indices), s->value, s->mask))
                  : n;
      }
      if (const auto* s = As<Atomic>(n)) {
        const Small* to = Find(s->buffer);
        return to ? NodeRef(Atomic::Make(s->op, to->buffer, Indices(*to, s->indices), s->value,
                                         s->order, s->scope))
                  : n;
      }
      const auto* alloc = As<Alloc>(n);
      const Small* to = alloc ? Find(alloc->buffer) : nullptr;
      return to ? NodeRef(Alloc::Make(to->buffer, alloc->body)) : n;
    });
  }

 private:
  using Numbers = std::unordered_map<const Node*, Expr>;  // by the index that one is for
  struct Small {
    Buffer buffer;
    std::vector<Numbers> numbers;  // by dimension; none of one that stays
  };

  static bool Shrinks(const Dimension& dim) {
    return dim.shrinks &&
           std::any_of(dim.steps.begin(), dim.steps.end(), [](int64_t step) { return step != 0; });
  }

  const Small* Find(const Buffer& buffer) const {
    auto it = small_.find(buffer.get());
    return it == small_.end() ? nullptr : &it->second;
  }

  static std::vector<Expr> Indices(const Small& to, std::vector<Expr> indices) {
    for (size_t d = 0; d < indices.size(); ++d) {
      if (to.numbers[d].empty()) continue;
      const auto number = to.numbers[d].find(indices[d].get());
      TN_CHECK(number != to.numbers[d].end(), "an index of {} was not seen", to.buffer->name);
      indices[d] = number->second;
    }
    return indices;
  }

  std::unordered_map<const BufferNode*, Small> small_;
};

}  // namespace

Stmt ShrinkThreadMemory(const PrimFunc& func, const Stmt& nest) {
  std::vector<Var> axes;
  Stmt inner = nest;
  while (const auto* loop = As<For>(inner)) {
    if (loop->for_kind != ForKind::kThread) break;
    axes.push_back(loop->var);
    inner = loop->body;
  }
  Finder finder(func, axes);
  finder.Rewrite(nest);
  return Shrinker(finder.uses)(nest);
}

}  // namespace tenon
