// Iterations that any thread may do.
//
// A nest of serial loops that fills shared memory would be done by one thread, or by all of them
// alike. It can be dealt out instead where different iterations touch different elements of what is
// filled. Each access is read as a number, base + sum of weight * loop variable, which all loops of
// the nest that every access moves with have in common; loops that are not dealt, and loops inside
// the body, move the number within a span. Then the numbers are those of a mixed radix: sort the
// dealt loops by weight, and each weight must be at least the span plus what the smaller digits
// reach (DigitsTell). In
//
//   for ty in 0..2 thread threadIdx.y {
//     for tx in 0..8 thread threadIdx.x {
//       for k in 0..3 {
//         alloc S: f32[2, 8] in shared
//         for i in 0..2, j in 0..8 { S[i, j] = A[bx, k * 16 + i * 8 + j] * 2f32 }
//
// the element's number is i * 8 + j: the weights are 8 and 1, the span is 1, so both loops are
// dealt, and their 16 iterations go to the 16 threads of the block (share_loads and bind_threads
// make that of it):
//
//         S[threadIdx.y, threadIdx.x] =
//             A[blockIdx.x, k * 16 + threadIdx.y * 8 + threadIdx.x] * 2f32
//         sync cta
//
// A reduction into an element keeps its loop inside, with the element.

#include "loop/pass/threads/shared_nest.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "dependence/strides.h"
#include "loop/pass/threads/place_syncs.h"
#include "loop/rewrite.h"
#include "loop/threads.h"

namespace tenon {

bool HasThreadLoop(const Stmt& stmt) {
  return AnyStmt(stmt, [&](const NodeRef& n) {
    const auto* loop = As<For>(n);
    return loop && loop->for_kind == ForKind::kThread;
  });
}

namespace {

// Where one statement touches a buffer that the nest fills: the flat numbers of the first and the
// last element, each a sum over the loops' variables.
struct Touch {
  AffineForm first;
  int64_t reach = 0;  // of the last beyond the first
};

bool LoadsOrCalls(const Expr& e) {
  bool found = !IsPure(e);
  PreOrder(e, [&](const NodeRef& n) {
    found |= IsA<Load>(n);
    return !found;
  });
  return found;
}

bool UsesAny(const Expr& e, const std::vector<const For*>& loops) {
  return std::any_of(loops.begin(), loops.end(),
                     [&](const For* loop) { return UsesVar(e, loop->var.get()); });
}

// A number whose digits are the values of loops: neighbours are `weight` apart.
struct Digit {
  int64_t weight;
  std::optional<int64_t> count;
};

// True when numbers that differ in a digit are at least `apart` from each other.
bool DigitsTell(std::vector<Digit> digits, __int128 apart) {
  std::sort(digits.begin(), digits.end(),
            [](const Digit& a, const Digit& b) { return a.weight < b.weight; });
  for (size_t i = 0; i < digits.size(); ++i) {
    if (digits[i].weight < apart) return false;
    if (!digits[i].count && i + 1 < digits.size()) return false;
    apart += static_cast<__int128>(digits[i].weight) * (digits[i].count.value_or(1) - 1);
  }
  return true;
}

// One nest, with as many of its outermost loops as are tried. In what Read answers, iterations of
// the dealt loops touch different elements of what is filled, so that any thread may run any of
// them.
class NestReader {
 public:
  NestReader(std::vector<const For*> loops, Stmt body, const Module& module, Analyzer* analyzer)
      : module_(module), analyzer_(analyzer), loops_(std::move(loops)), body_(std::move(body)) {
    num_nested_ = loops_.size();
  }

  std::optional<SharedNest> Read() {
    PreOrder(body_, [&](const NodeRef& n) { return Scan(n); });
    if (!simple_) return std::nullopt;
    PreOrder(body_, [&](const NodeRef& n) { return ScanTouches(n); });
    if (!simple_ || touches_.empty()) return std::nullopt;
    SharedNest nest{{}, {}, body_, IndexConst(1), {}};
    for (size_t i = 0; i < num_nested_; ++i) {
      const bool deal = IsDealt(i);
      dealt_.push_back(deal);
      (deal ? nest.dealt : nest.kept).push_back(loops_[i]);
      if (deal) nest.size = nest.size * loops_[i]->extent;
    }
    if (nest.dealt.empty()) return std::nullopt;
    for (const auto& [buffer, touches] : touches_) {
      if (!AreApart(touches)) return std::nullopt;
      nest.filled.push_back(buffer->name);
    }
    std::sort(nest.filled.begin(), nest.filled.end());
    nest.size = analyzer_->Simplify(nest.size);
    return nest;
  }

 private:
  // What the body may consist of; what it binds.
  bool Scan(const NodeRef& n) {
    if (const auto* call = As<Call>(n)) {
      // A call that only computes does not matter, nor what it loads.
      simple_ &= call->intrinsic != Intrinsic::kExtern && call->intrinsic != Intrinsic::kBufferData;
    }
    if (IsA<ExprNode>(n)) return simple_;
    switch (n->kind) {
      case NodeKind::kSeq:
      case NodeKind::kIf:
      case NodeKind::kStore: break;
      case NodeKind::kFor:
        loops_.push_back(As<For>(n));
        analyzer_->Bind(loops_.back()->var, loops_.back()->min, loops_.back()->extent);
        simple_ &= loops_.back()->for_kind != ForKind::kThread;
        break;
      case NodeKind::kLet: lets_.push_back(As<Let>(n)->var); break;
      case NodeKind::kAlloc:
        own_.insert(As<Alloc>(n)->buffer.get());
        simple_ &= IsThreadPrivate(*As<Alloc>(n)->buffer);
        break;
      case NodeKind::kCallFunc: simple_ &= IsCopy(*As<CallFunc>(n)); break;
      default: simple_ &= !IsA<StmtNode>(n);
    }
    return simple_;
  }

  // By the thread that begins it.
  bool IsCopy(const CallFunc& call) const {
    const Func callee = module_.Find(call.callee);
    return callee && AsyncPartOf(*callee) == AsyncPart::kCopy && call.buffers.size() == 2;
  }

  bool ScanTouches(const NodeRef& n) {
    if (const auto* store = As<Store>(n)) Fill(store->buffer);
    if (const auto* call = As<CallFunc>(n)) Fill(call->buffers[1]->buffer);
    return simple_;
  }
  void Fill(const Buffer& buffer) {
    if (own_.count(buffer.get()) != 0 || touches_.count(buffer.get()) != 0) return;
    simple_ &= buffer->scope == Scope::kShared;
    if (!simple_) return;
    std::vector<Touch>& touches = touches_[buffer.get()];
    PreOrder(body_, [&](const NodeRef& n) {
      if (const auto* s = As<Store>(n)) Add(buffer, s->buffer, s->indices, {}, &touches);
      if (const auto* s = As<Load>(n)) Add(buffer, s->buffer, s->indices, {}, &touches);
      if (const auto* r = As<RegionNode>(n)) {
        std::vector<Expr> first, last;
        for (const Range& range : r->ranges) {
          first.push_back(range->min);
          last.push_back(range->min + range->extent - 1);
        }
        Add(buffer, r->buffer, first, last, &touches);
      }
      return simple_;
    });
  }

  void Add(const Buffer& filled, const Buffer& buffer, const std::vector<Expr>& indices,
           const std::vector<Expr>& last, std::vector<Touch>* touches) {
    if (buffer != filled) return;
    const Expr number = FlatIndex(*buffer, indices, analyzer_);
    const Expr reach = last.empty()
                           ? IndexConst(0)
                           : analyzer_->Simplify(FlatIndex(*buffer, last, analyzer_) - number);
    std::vector<Var> vars;
    for (const For* loop : loops_) vars.push_back(loop->var);
    auto affine = DetectAffine(number, vars);
    const auto most = AsInt(reach);
    simple_ &= affine && most && *most >= 0 && !LoadsOrCalls(number);
    for (const Var& let : lets_) simple_ &= !UsesVar(number, let.get());
    if (simple_) touches->push_back({std::move(*affine), *most});
  }

  std::optional<int64_t> Weight(const Touch& touch, size_t loop) const {
    return AsInt(analyzer_->Simplify(touch.first.coefficients[loop]));
  }
  std::optional<int64_t> Count(size_t loop) const {
    return AsInt(analyzer_->Simplify(loops_[loop]->extent));
  }

  // Every access moves with the loop.
  bool IsDealt(size_t loop) const {
    for (const auto& [buffer, touches] : touches_) {
      for (const Touch& touch : touches) {
        if (Weight(touch, loop).value_or(0) == 0) return false;
      }
    }
    const auto count = Count(loop);
    return !count || *count > 1;
  }

  // Different iterations of the dealt loops touch different elements: the element's number is one
  // in a mixed radix whose digits are their values, but for less than the smallest of weights.
  bool AreApart(const std::vector<Touch>& touches) const {
    __int128 low = 0, high = 0;
    for (const Touch& touch : touches) {
      auto offset = AsInt(analyzer_->Simplify(Base(touch) - Base(touches[0])));
      if (!offset) return false;
      __int128 from = *offset, to = from + touch.reach;
      for (size_t i = 0; i < loops_.size(); ++i) {
        const auto weight = Weight(touch, i);
        if (!weight || (IsIn(i) && weight != Weight(touches[0], i))) return false;
        if (*weight == 0 || IsIn(i)) continue;
        const auto count = Count(i);
        if (!count || UsesAny(loops_[i]->min, loops_)) return false;
        const __int128 most = static_cast<__int128>(*weight) * std::max<int64_t>(*count - 1, 0);
        (most < 0 ? from : to) += most;
      }
      low = std::min(low, from);
      high = std::max(high, to);
    }
    std::vector<Digit> digits;
    for (size_t i = 0; i < num_nested_; ++i) {
      if (IsIn(i)) digits.push_back({std::abs(*Weight(touches[0], i)), Count(i)});
    }
    return DigitsTell(std::move(digits), high - low + 1);
  }
  bool IsIn(size_t loop) const { return loop < num_nested_ && dealt_[loop]; }

  // The number where all loops begin.
  Expr Base(const Touch& touch) const {
    Expr out = touch.first.base;
    for (size_t i = 0; i < loops_.size(); ++i) {
      if (Weight(touch, i).value_or(0) != 0)
        out = out + touch.first.coefficients[i] * loops_[i]->min;
    }
    return out;
  }

  const Module& module_;
  Analyzer* analyzer_;
  std::vector<const For*> loops_;  // of the nest, then those in its body
  size_t num_nested_ = 0;
  Stmt body_;
  bool simple_ = true;
  std::vector<Var> lets_;                                              // bound in the body
  std::unordered_set<const BufferNode*> own_;                          // made in the body
  std::unordered_map<const BufferNode*, std::vector<Touch>> touches_;  // of what is filled
  std::vector<bool> dealt_;
};

// The loops of a perfect nest, whose bounds none of them decides.
std::vector<const For*> LoopsOf(const Stmt& stmt, Analyzer* analyzer) {
  std::vector<const For*> loops;
  for (const auto* loop = As<For>(stmt); loop; loop = As<For>(loop->body)) {
    const bool in_order = loop->for_kind == ForKind::kSerial ||
                          loop->for_kind == ForKind::kUnrolled ||
                          loop->for_kind == ForKind::kParallel;
    if (!in_order || LoadsOrCalls(loop->min) || LoadsOrCalls(loop->extent)) break;
    if (UsesAny(loop->min, loops) || UsesAny(loop->extent, loops)) break;
    analyzer->Bind(loop->var, loop->min, loop->extent);
    loops.push_back(loop);
  }
  return loops;
}

}  // namespace

std::optional<SharedNest> FindSharedNest(const Stmt& stmt, const Module& module,
                                         Analyzer* analyzer) {
  std::vector<const For*> loops = LoopsOf(stmt, analyzer);
  for (; !loops.empty(); loops.pop_back()) {
    auto nest = NestReader(loops, loops.back()->body, module, analyzer).Read();
    if (nest) return nest;
  }
  return std::nullopt;
}

}  // namespace tenon
