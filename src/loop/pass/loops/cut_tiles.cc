#include "loop/pass/loops/cut_tiles.h"

#include <algorithm>
#include <optional>

#include "loop/rewrite.h"

namespace tenon {

namespace {

// What a tile's guards say: each loop over rows runs where `row · width + lane < rest`; a row is
// one element wide, or a vector whose lanes another loop counts.
struct Cut {
  Expr rest;
  int64_t width = 1;
  int64_t rows = 0;                                             // of the longest of those loops
  std::unordered_map<const Node*, const VarNode*> comparisons;  // by guard: its loop's variable

  // Whether a row runs, all of it or none, where so many rows run; nullopt: its lanes decide.
  std::optional<bool> Holds(int64_t row, int64_t running) const {
    if (row >= running) return false;
    return row + 1 < running || width == 1 ? std::optional(true) : std::nullopt;
  }
};

// The guards of one register tile, those with the first rest that is found. The rest is known where
// the tile begins, is none of `others`, and `dims` decide about it.
class CutFinder {
 public:
  CutFinder(const std::unordered_set<const VarNode*>& dims, const std::vector<Expr>& others,
            Analyzer* analyzer)
      : dims_(dims), others_(others), analyzer_(analyzer) {}

  Cut operator()(const Stmt& tile) {
    PreOrder(tile, [&](const NodeRef& n) {
      if (const auto* loop = As<For>(n)) BindLoop(*loop);
      if (const auto* let = As<Let>(n)) inner_.insert(let->var.get());
      if (const auto* node = As<If>(n)) {
        for (const Expr& e : Conjuncts(node->condition)) Add(e);
      }
      return true;
    });
    return std::move(cut_);
  }

 private:
  void BindLoop(const For& loop) {
    inner_.insert(loop.var.get());
    const auto extent = AsInt(loop.extent);
    if (!extent || !IsZero(loop.min)) return;
    if (loop.for_kind == ForKind::kVectorized) {
      first_lane_[loop.var.get()] = IndexConst(0);
      last_lane_[loop.var.get()] = IndexConst(*extent - 1);
    }
    if (loop.for_kind != ForKind::kUnrolled) return;
    rows_.push_back(loop.var);
    extents_.push_back(*extent);
  }

  void Add(const Expr& e) {
    const auto* comparison = As<Binary>(e);
    if (!comparison || comparison->op != BinaryOp::kLt ||
        !(comparison->lhs->dtype == DType::Index()) || !UsesAnyVar(e, dims_))
      return;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!UsesVar(comparison->lhs, rows_[i].get())) continue;
      const Expr first = Substitute(comparison->lhs, first_lane_);
      const int64_t width = Width(*comparison, rows_[i]);
      const Expr rest = analyzer_->Simplify(comparison->rhs - first + rows_[i] * IndexConst(width));
      const bool other =
          cut_.rest && (width != cut_.width || !analyzer_->CanProveEqual(rest, cut_.rest));
      const bool is_done = std::any_of(others_.begin(), others_.end(), [&](const Expr& o) {
        return analyzer_->CanProveEqual(rest, o);
      });
      if (other || is_done || UsesAnyVar(rest, inner_) || !UsesAnyVar(rest, dims_) || !IsPure(rest))
        return;
      cut_.rest = rest;
      cut_.width = width;
      cut_.rows = std::max(cut_.rows, extents_[i]);
      cut_.comparisons[comparison] = rows_[i].get();
      return;
    }
  }

  // How far a guard's left side goes from row to row, where its lanes fill no more than that; else
  // 1, which leaves the row in the rest.
  int64_t Width(const Binary& guard, const Var& row) {
    const Expr next = Substitute(guard.lhs, {{row.get(), row + IndexConst(1)}});
    const auto step = AsInt(analyzer_->Simplify(next - guard.lhs));
    const auto lanes = AsInt(analyzer_->Simplify(Substitute(guard.lhs, last_lane_) -
                                                 Substitute(guard.lhs, first_lane_)));
    return step && lanes && *lanes >= 0 && *lanes < *step ? *step : 1;
  }

  const std::unordered_set<const VarNode*>& dims_;
  const std::vector<Expr>& others_;
  Analyzer* analyzer_;
  std::unordered_set<const VarNode*> inner_;  // what the tile binds
  VarMap first_lane_, last_lane_;             // of the vectorized loops met so far
  std::vector<Var> rows_;                     // unrolled loops met so far, and how long they are
  std::vector<int64_t> extents_;
  Cut cut_;
};

class TileCutter final : public ScopedRewriter {
 public:
  TileCutter(const Func& func, const PassContext& context)
      : names_(*func), stmts_(Unrolled(func->body)), max_stmts_(context.max_unrolled_stmts) {
    Learn(*func, &analyzer_);
    for (const Var& d : func->dims) dims_.insert(d.get());
  }

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    const auto* alloc = As<Alloc>(stmt);
    if (!alloc || alloc->buffer->scope != Scope::kRegister) return Children(stmt);
    const Cut cut = CutFinder(dims_, rests_, &analyzer_)(stmt);
    // The copies are half as long as the whole in the middle.
    const int64_t copies = cut.rows * Unrolled(stmt) / 2;
    if (!cut.rest || stmts_ + copies > max_stmts_) return Children(stmt);
    stmts_ += copies;
    rests_.push_back(cut.rest);
    // From the last case to the first, each in the `else` of the one before it.
    Stmt out;
    for (int64_t n = cut.rows; n >= 0; --n) {
      const bool is_last = n == cut.rows;
      const Expr holds = is_last ? Gt(cut.rest, IndexConst((n - 1) * cut.width))
                                 : Le(cut.rest, IndexConst(n * cut.width));
      if (analyzer_.CanProve(Not(holds))) continue;
      Stmt here = Tile(*alloc, cut, n);
      here = here ? VisitStmt(here) : Seq::Make({});
      out = out ? If::Make(holds, FreshCopy(here, {}, &names_), out) : here;
    }
    rests_.pop_back();
    return out;
  }

  // Statements when all loops that are to be unrolled are.
  static int64_t Unrolled(const Stmt& stmt) {
    if (const auto* loop = As<For>(stmt)) {
      const bool unrolled = loop->for_kind == ForKind::kUnrolled;
      return (unrolled ? AsInt(loop->extent).value_or(1) : 1) * Unrolled(loop->body);
    }
    if (!IsControl(stmt)) return 1;
    int64_t sum = 0;
    MapBodies(stmt, [&](const Stmt& s) {
      sum += Unrolled(s);
      return s;
    });
    return sum;
  }

  // The tile where the rest is `n`.
  Stmt Tile(const Alloc& tile, const Cut& cut, int64_t n) {
    const Stmt body = WithRows(tile.body, cut, n);
    if (!body || (n == 0 && OnlyAsks(body))) return nullptr;
    const Buffer small = Shrunk(tile.buffer, body);
    return Alloc::Make(small, SubstituteBuffers(body, {{tile.buffer.get(), small}}));
  }

  // The loops over rows stop at `n`, and what they do besides what is guarded goes on in loops of
  // its own. Null: nothing is left.
  Stmt WithRows(const Stmt& stmt, const Cut& cut, int64_t n) {
    if (const auto* node = As<If>(stmt)) {
      const Expr condition = Simplify(node->condition);
      if (IsOne(condition)) return WithRows(node->then_body, cut, n);
      if (IsZero(condition)) return node->else_body ? WithRows(node->else_body, cut, n) : nullptr;
    }
    const auto* loop = As<For>(stmt);
    const auto is_var = [&](const auto& c) { return c.second == loop->var.get(); };
    if (!loop || std::none_of(cut.comparisons.begin(), cut.comparisons.end(), is_var)) {
      const Stmt out = MapBodies(stmt, [&](const Stmt& s) { return WithRows(s, cut, n); });
      return IsIdle(out) ? nullptr : out;
    }
    const int64_t extent = *AsInt(loop->extent), rows = std::min(n, extent);
    std::vector<Stmt> parts;
    // Rows from `first` to `end`, about which the guards say the same.
    auto add = [&](int64_t first, int64_t end) {
      if (first == end) return;
      const Stmt body =
          WithRows(Decide(loop->body, cut, loop->var.get(), cut.Holds(first, n)), cut, n);
      if (!body) return;
      const Stmt part = For::Make(loop->var, IndexConst(first), IndexConst(end - first),
                                  loop->for_kind, body, loop->attrs);
      parts.push_back(parts.empty() ? part : FreshCopy(part, {}, &names_));
    };
    // The last of the rows that run may be on its own: only some of its lanes may.
    const int64_t sure = rows == n && rows > 0 && !cut.Holds(n - 1, n) ? rows - 1 : rows;
    add(0, sure);
    add(sure, rows);
    add(rows, extent);
    return parts.empty() ? nullptr : parts.size() == 1 ? parts[0] : Seq::Make(std::move(parts));
  }

  // Whether it asks for memory and does nothing else. An open dim may leave many tiles without
  // rows, and what asks on behalf of each would take longer than the tiles that there are.
  static bool OnlyAsks(const Stmt& stmt) {
    if (!IsControl(stmt)) {
      const auto* evaluate = As<Evaluate>(stmt);
      const auto* call = evaluate ? As<Call>(evaluate->call) : nullptr;
      return call && call->intrinsic == Intrinsic::kPrefetch;
    }
    bool only = true;
    MapBodies(stmt, [&](const Stmt& s) {
      only = only && OnlyAsks(s);
      return s;
    });
    return only;
  }

  static bool IsIdle(const Stmt& stmt) {
    const auto* seq = As<Seq>(stmt);
    const auto* loop = As<For>(stmt);
    return loop ? IsIdle(loop->body) : seq && seq->stmts.empty();
  }

  // The guards over one loop's variable, where they are known.
  static Stmt Decide(const Stmt& stmt, const Cut& cut, const VarNode* var,
                     std::optional<bool> holds) {
    if (!holds) return stmt;
    return PostOrderRewrite(stmt, [&](const NodeRef& n) -> NodeRef {
      auto it = cut.comparisons.find(n.get());
      return it != cut.comparisons.end() && it->second == var ? BoolConst(*holds) : n;
    });
  }

  // The buffer with as many rows as are used of it: of axes that loops alone index, up to the end
  // of the longest.
  static Buffer Shrunk(const Buffer& buffer, const Stmt& body) {
    std::vector<int64_t> used(buffer->shape.size(), 0), whole;
    for (const Expr& size : buffer->shape) whole.push_back(AsInt(size).value_or(0));
    std::unordered_map<const VarNode*, int64_t> ends;
    auto note = [&](const Buffer& b, const std::vector<Expr>& indices) {
      if (b != buffer) return;
      for (size_t i = 0; i < used.size(); ++i) {
        auto end = ends.find(As<VarNode>(indices[i]));
        used[i] = std::max(used[i], end == ends.end() ? whole[i] : end->second);
      }
    };
    PreOrder(body, [&](const NodeRef& n) {
      const auto* loop = As<For>(n);
      const auto first = loop ? AsInt(loop->min) : std::nullopt;
      const auto count = loop ? AsInt(loop->extent) : std::nullopt;
      if (first && count) ends[loop->var.get()] = *first + *count;
      if (const auto* region = As<RegionNode>(n); region && region->buffer == buffer) used = whole;
      if (const auto* load = As<Load>(n)) note(load->buffer, load->indices);
      if (const auto* store = As<Store>(n)) note(store->buffer, store->indices);
      return true;
    });
    if (buffer->layout || !buffer->strides.empty()) return buffer;
    std::vector<Expr> shape = buffer->shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (used[i] > 0 && used[i] < whole[i]) shape[i] = IndexConst(used[i]);
    }
    return BufferNode::Make(buffer->name, buffer->dtype, std::move(shape), buffer->scope,
                            buffer->layout, buffer->strides, buffer->align);
  }

  NameSupply names_;
  int64_t stmts_;
  const int64_t max_stmts_;
  std::unordered_set<const VarNode*> dims_;
  std::vector<Expr> rests_;  // by which the tiles around have been cut
};

}  // namespace

Module CutTiles(const Module& module, const PassContext& context) {
  return MapFuncs(module, [&](const Func& func) {
    const bool cuts = func->func_kind == FuncKind::kKernel && !func->dims.empty();
    return cuts ? WithBody(func, TileCutter(func, context).Rewrite(func->body)) : func;
  });
}

}  // namespace tenon
