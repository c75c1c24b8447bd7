// Random chains of split, fuse and reorder over a few axes, as schedules make them, for the tests
// of what is proved about index arithmetic.
#pragma once

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "arith/analyzer.h"
#include "expr_fuzz.h"
#include "ir/print.h"
#include "ir/visit.h"

namespace tenon::fuzz {

struct Loop {
  Var var;
  Expr extent;
};

// A nest with the values of the axes that it began as. Loops run from 0, and where the guards hold.
class Chain {
 public:
  Chain(uint32_t seed, bool open, int most_steps = 5) : random_(seed), n_(VarNode::Make("n")) {
    analyzer_.BindInterval(n_, {0, Interval::kPosInf});
    const int axes = 1 + Below(3);
    for (int i = 0; i < axes; ++i) {
      const Expr extent = open && i == 0 ? Expr(n_) : IndexConst(1 + Below(axes == 1 ? 40 : 9));
      loops_.push_back(Bound("a", extent));
      values_.push_back(loops_.back().var);
      extents_.push_back(extent);
    }
    for (int steps = 1 + Below(most_steps); steps > 0; --steps) Step();
  }

  const std::vector<Expr>& values() const { return values_; }
  const std::vector<Loop>& loops() const { return loops_; }
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  std::unordered_set<const VarNode*> Unknown() const {
    std::unordered_set<const VarNode*> out;
    for (const Loop& l : loops_) out.insert(l.var.get());
    return out;
  }

  // What holds wherever the body runs.
  std::vector<Expr> Guards() const {
    std::vector<Expr> out = guards_;
    for (const Loop& l : loops_) out.push_back(Gt(l.extent, IndexConst(0)));
    return out;
  }
  const std::vector<Expr>& guards() const { return guards_; }
  Analyzer* analyzer() { return &analyzer_; }
  const std::vector<Expr>& extents() const { return extents_; }

  // All points of the nest for a value of n; nothing where there are too many.
  std::optional<std::vector<Assignment>> Points(int64_t n) const {
    std::vector<Assignment> out{{{n_.get(), n}}};
    for (const Loop& l : loops_) {
      std::vector<Assignment> more;
      const int64_t extent = *Evaluate(l.extent, out.empty() ? Assignment{{n_.get(), n}} : out[0]);
      if (static_cast<int64_t>(out.size()) * extent > 4000) return std::nullopt;
      for (const Assignment& a : out) {
        for (int64_t x = 0; x < extent; ++x) {
          more.push_back(a);
          more.back()[l.var.get()] = x;
        }
      }
      out = std::move(more);
    }
    std::erase_if(out, [&](const Assignment& a) {
      return std::any_of(guards_.begin(), guards_.end(),
                         [&](const Expr& g) { return !*Evaluate(g, a); });
    });
    return out;
  }

  std::string Text() const {
    std::string out;
    for (const Loop& l : loops_)
      out += l.var->name + " in 0.." + ToString(NodeRef(l.extent)) + ", ";
    for (const Expr& v : values_) out += "\n  value " + ToString(NodeRef(v));
    for (const Expr& g : guards_) out += "\n  where " + ToString(NodeRef(g));
    return out;
  }

 private:
  Loop Bound(const std::string& name, const Expr& extent) {
    Loop out{VarNode::Make(name + std::to_string(count_++)), analyzer_.Simplify(extent)};
    analyzer_.Bind(out.var, IndexConst(0), out.extent);
    return out;
  }

  void Step() {
    if (loops_.size() > 1 && Below(3) == 0) {
      std::shuffle(loops_.begin(), loops_.end(), random_);
      return Fuse();
    }
    if (loops_.size() < 6) Split();
  }

  void Split() {
    const size_t at = static_cast<size_t>(Below(static_cast<int>(loops_.size())));
    const Loop loop = loops_[at];
    const Expr factor = IndexConst(1 + Below(8));
    const Expr count = CeilDiv(loop.extent, factor);
    const bool parts = Below(2) == 0;
    const Loop outer = Bound("o", parts ? factor : count),
               inner = Bound("i", parts ? count : factor);
    Replace({{loop.var.get(), outer.var * inner.extent + inner.var}});
    const Expr offset = outer.var * inner.extent + inner.var;
    if (!analyzer_.CanProveEqual(outer.extent * inner.extent, loop.extent))
      AddGuard(Lt(offset, loop.extent));
    loops_[at] = outer;
    loops_.insert(loops_.begin() + static_cast<int64_t>(at) + 1, inner);
  }

  void Fuse() {
    const Loop outer = loops_[0], inner = loops_[1];
    const Loop fused = Bound("f", outer.extent * inner.extent);
    Replace(
        {{outer.var.get(), fused.var / inner.extent}, {inner.var.get(), fused.var % inner.extent}});
    loops_.erase(loops_.begin());
    loops_[0] = fused;
  }

  void Replace(const VarMap& map) {
    for (Expr& v : values_) v = analyzer_.Simplify(Substitute(v, map));
    const std::vector<Expr> guards = std::move(guards_);
    guards_.clear();
    for (const Expr& g : guards) AddGuard(Substitute(g, map));
  }

  void AddGuard(const Expr& guard) {
    if (!analyzer_.CanProve(guard)) guards_.push_back(analyzer_.Simplify(guard));
  }

  std::mt19937 random_;
  Analyzer analyzer_;
  Var n_;
  int count_ = 0;
  std::vector<Loop> loops_;
  std::vector<Expr> values_, guards_, extents_;
};

}  // namespace tenon::fuzz
