// software_pipeline and double_buffer: the statements of a loop's body run in different iterations,
// so that those of one stage work on the next element while those of a later stage use the last.
//
// Statement c of iteration i runs in iteration i + stage[c] of the new loop. Two accesses of one
// element, one of them a write, must keep their order. Within an iteration that is a question of
// (stage, order) pairs. Between iterations i < j, a at i + stage[a] must come before b at j +
// stage[b], which is so for all j but those next to i: for these, a and b must touch different
// elements where the order is not kept. A buffer that each iteration fills for itself is spared the
// second condition: it gets as many versions as iterations have it in use at once, found by the
// iteration's number modulo that. (Registers do so only where they must: they are few, and no other
// thread is to be kept waiting.)
//
// With software_pipeline("t", [0, 1, 2], [2, 1, 0])
//
//   for t in 0..4 {
//     for b in 0..8 { block B(vb: spatial in 0..32 = t * 8 + b) { … writes B[vb] … } }
//     for c in 0..8 { block C(vc: spatial in 0..32 = t * 8 + c) { reads B[vc]; … } }
//     for d in 0..8 { block D(vd: spatial in 0..32 = t * 8 + d) { reads C[vd]; … } }
//   }
//
// becomes, with B and C as two versions of eight elements each,
//
//   for t.pipe in 0..6 {
//     for d in 0..8 { block D(vd: … = t.pipe * 8 + d - 16) where 2 <= t.pipe { … } }
//     for c in 0..8 { block C(vc: … = t.pipe * 8 + c - 8) where 1 <= t.pipe && t.pipe < 5 {
//       reads B[(t.pipe - 1) % 2, vc - (t.pipe - 1) * 8]; … } }
//     for b in 0..8 { block B(vb: … = t.pipe * 8 + b) where t.pipe < 4 {
//       … writes B[t.pipe % 2, vb - t.pipe * 8] } }
//   }

#include <algorithm>

#include "ir/print.h"
#include "ir/visit.h"
#include "schedule/analysis/conflicts.h"
#include "schedule/analysis/nest.h"
#include "schedule/analysis/retarget.h"
#include "schedule/primitive/primitives.h"

namespace tenon::primitive {

namespace {

// Memory of one thread, of which there is little.
bool IsInRegisters(const BufferNode& buffer) {
  return Info(buffer.scope).medium != Medium::kMemory;
}

// One loop. Any two accesses of an element, one of them a write, keep their order, or are of
// different versions of a buffer that each iteration fills for itself.
class Pipeliner {
 public:
  Pipeliner(State& s, Body* body, const Place& loop, Ints stages, Ints order)
      : s_(s),
        body_(body),
        place_(loop),
        loop_(*loop.loop()),
        stages_(std::move(stages)),
        order_(std::move(order)) {}

  Result Run() {
    if (auto error = CheckForm()) return *error;
    last_stage_ = *std::max_element(stages_.begin(), stages_.end());
    Learn(*s_.func, &analyzer_);
    Learn(place_.path, &analyzer_);
    Learn(loop_, &analyzer_);
    std::vector<Access> all = body_->AccessesUnder(&loop_);
    std::vector<Buffer> written;
    for (const Access& a : all) {
      bool known = std::find(written.begin(), written.end(), a.region->buffer) != written.end();
      if (a.write && !known) written.push_back(a.region->buffer);
    }
    for (const Buffer& b : written) {
      std::vector<Access> accesses = all;
      std::erase_if(accesses, [&](const Access& a) { return a.region->buffer != b; });
      if (auto error = CheckBuffer(b, accesses)) return *error;
    }
    return Names{Build()};
  }

 private:
  std::optional<Diagnostic> CheckForm() {
    if (place_.inner) return Because("loop " + Name() + " is inside the body of a block");
    if (loop_.for_kind != ForKind::kSerial) {
      return Because("loop " + Name() + " is " + tenon::Name(loop_.for_kind) + ", expected serial");
    }
    Flatten(loop_.body);
    size_t count = children_.size();
    if (count == 1) return Because("the body of loop " + Name() + " is one statement");
    if (stages_.size() != count || order_.size() != count) {
      return Because("the body of loop " + Name() + " has " + std::to_string(count) +
                     " statements, got " + std::to_string(stages_.size()) + " stages and " +
                     std::to_string(order_.size()) + " places in the order");
    }
    Ints sorted = order_;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < count; ++i) {
      if (sorted[i] != static_cast<int64_t>(i)) {
        return Because("the order is not one of the numbers 0 to " + std::to_string(count - 1));
      }
    }
    constexpr int64_t kMostStages = 64;
    auto [least, most] = std::minmax_element(stages_.begin(), stages_.end());
    if (*least != 0 || *most > kMostStages) {
      return Because("expected stages from 0 to 64 at most");
    }
    if (body_->HasStrayUnder(&loop_)) {
      return Because("loop " + Name() + " holds statements that are in no block");
    }
    for (const Place* p : body_->BlocksUnder(&loop_)) {
      if (p->block()->opaque) return OfBlock(p->block()->name, "the block is opaque");
    }
    return std::nullopt;
  }

  // The statements of the body, out of the memory that is made for several of them.
  void Flatten(const Stmt& body) {
    std::vector<Stmt> rest = {body};
    while (!rest.empty()) {
      Stmt stmt = rest.back();
      rest.pop_back();
      if (const auto* seq = As<Seq>(stmt)) {
        rest.insert(rest.end(), seq->stmts.rbegin(), seq->stmts.rend());
      } else if (const auto* alloc = As<Alloc>(stmt); alloc && !IsSizedByLoop(*alloc->buffer)) {
        made_.push_back(alloc->buffer);
        rest.push_back(alloc->body);
      } else {
        children_.push_back(stmt);
      }
    }
  }

  bool IsSizedByLoop(const BufferNode& buffer) const {
    return std::any_of(buffer.shape.begin(), buffer.shape.end(),
                       [&](const Expr& e) { return UsesVar(e, loop_.var.get()); });
  }

  std::string Name() const { return loop_.var->name; }

  // The statement of the loop's body that the place is in.
  size_t ChildOf(const Place& place) const {
    auto it = std::find_if(children_.begin(), children_.end(),
                           [&](const Stmt& child) { return place.IsUnder(child.get()); });
    return static_cast<size_t>(it - children_.begin());
  }

  // a still runs before b of the iteration `later` ones after it.
  bool Before(size_t a, size_t b, int64_t later) const {
    return std::pair(stages_[a], order_[a]) < std::pair(stages_[b] + later, order_[b]);
  }

  // The two touch different elements, b `later` iterations after a.
  bool Apart(const Access& a, const Access& b, int64_t later) {
    auto box_of = [&](const Access& access) {
      std::vector<const For*> inner = access.place->LoopsInside(&loop_);
      for (const For* l : inner) Learn(*l, &analyzer_);
      return TouchedBox(access.region, *access.place->block(), DomainOf(inner, &analyzer_),
                        &analyzer_);
    };
    const Box x = box_of(a), y = box_of(b);
    const VarMap then{{loop_.var.get(), loop_.var + later}};
    for (size_t d = 0; d < x.size(); ++d) {
      auto less = [&](const Expr& high, const Expr& low) {
        return high && low && analyzer_.CanProve(Lt(high, low));
      };
      const Expr min = y[d].min ? Substitute(y[d].min, then) : nullptr;
      const Expr max = y[d].max ? Substitute(y[d].max, then) : nullptr;
      if (less(x[d].max, min) || less(max, x[d].min)) return true;
      const bool points = min && max && x[d].min && x[d].max &&
                          analyzer_.CanProveEqual(x[d].min, x[d].max) &&
                          analyzer_.CanProveEqual(min, max);
      const auto size = AsInt(a.region->buffer->shape[d]);
      if (!points || !size) continue;
      const auto apart = AsInt(analyzer_.Simplify((min - x[d].min) % *size));
      if (apart && *apart != 0) return true;
    }
    return false;
  }

  static std::string WhyLost(const Access& first, bool across) {
    std::string why = across ? "its next iteration" : "it";
    why.append(" would run before block ").append(first.place->block()->name);
    why.append(across ? " is done with " : ", which touches ");
    why.append(first.region->buffer->name);
    return across ? why : why.append(" before it now");
  }

  // Why accesses of one element would lose their order; `across`: from iteration to iteration too.
  std::optional<Diagnostic> LostOrder(const std::vector<Access>& accesses, bool across) {
    for (const Access& a : accesses) {
      for (const Access& b : accesses) {
        if (!a.write && !b.write) continue;
        const size_t x = ChildOf(*a.place), y = ChildOf(*b.place);
        for (int64_t later = 0; later <= (across ? last_stage_ : 0); ++later) {
          if (later == 0 ? x >= y : x == y) continue;
          if (Before(x, y, later) || Apart(a, b, later)) continue;
          return OfBlock(b.place->block()->name, WhyLost(a, later > 0));
        }
      }
    }
    return std::nullopt;
  }

  std::optional<Diagnostic> CheckBuffer(const Buffer& buffer, const std::vector<Access>& accesses) {
    int64_t least = last_stage_, most = 0;
    for (const Access& a : accesses) {
      least = std::min(least, stages_[ChildOf(*a.place)]);
      most = std::max(most, stages_[ChildOf(*a.place)]);
    }
    const bool fixed = ElementFixesLoops(*body_, accesses, {&loop_});
    bool own = most > least && !NotRetargetable(*body_, buffer) &&
               AllUsesUnder(*body_, buffer, &loop_) && IsCoveredIn(*body_, buffer, &loop_);
    if (own && !fixed && IsInRegisters(*buffer)) own = LostOrder(accesses, true).has_value();
    if (auto error = LostOrder(accesses, !fixed && !own)) return error;
    if (own) AddVersions(buffer, accesses, most - least + 1);
    return std::nullopt;
  }

  // A buffer of `count` parts, each as large as what one iteration uses.
  void AddVersions(const Buffer& buffer, const std::vector<Access>& accesses, int64_t count) {
    Box box;
    std::unordered_set<const VarNode*> inside;
    for (const Access& a : accesses) {
      std::vector<const For*> inner = a.place->LoopsInside(&loop_);
      for (const For* l : inner) {
        Learn(*l, &analyzer_);
        inside.insert(l->var.get());
      }
      Box touched =
          TouchedBox(a.region, *a.place->block(), DomainOf(inner, &analyzer_), &analyzer_);
      box = box.empty() ? touched : Union(box, touched, &analyzer_);
    }
    std::vector<Expr> low, shape = {IndexConst(count)};
    for (size_t d = 0; d < box.size(); ++d) {
      ExprInterval range = RelaxToConstantLength(box[d], &analyzer_);
      Expr length = Length(range, &analyzer_);
      std::optional<int64_t> most = AsInt(buffer->shape[d]);
      bool part = length && AsInt(length) && (!most || *AsInt(length) < *most) &&
                  !UsesAnyVar(range.min, inside);
      low.push_back(part ? range.min : IndexConst(0));
      shape.push_back(part ? length : buffer->shape[d]);
    }
    Expr version = analyzer_.Simplify((loop_.var - loop_.min) % count);
    auto inner = [this, low](size_t d, const Expr& e) { return analyzer_.Simplify(e - low[d]); };
    Retarget r;
    r.from = buffer;
    r.to = BufferNode::Make(buffer->name, buffer->dtype, shape, buffer->scope, nullptr, {},
                            buffer->align);
    r.element = [version, inner](const std::vector<Expr>& indices) {
      std::vector<Expr> out = {version};
      for (size_t d = 0; d < indices.size(); ++d) out.push_back(inner(d, indices[d]));
      return out;
    };
    r.box = [version, inner](const std::vector<Range>& ranges) {
      std::vector<Range> out = {RangeNode::Make(version, IndexConst(1))};
      for (size_t d = 0; d < ranges.size(); ++d) {
        out.push_back(RangeNode::Make(inner(d, ranges[d]->min), ranges[d]->extent));
      }
      return out;
    };
    versions_.push_back(std::move(r));
  }

  std::string Build() {
    std::string name = body_->NewVarName(Name() + ".pipe");
    Var var = VarNode::Make(name);
    Expr extent = analyzer_.Simplify(loop_.extent + last_stage_);
    analyzer_.Bind(var, IndexConst(0), extent);
    std::vector<Stmt> stmts(children_.size());
    for (size_t c = 0; c < children_.size(); ++c) {
      Stmt child = children_[c];
      for (const Retarget& r : versions_) child = Apply(r, child);
      Expr iteration = analyzer_.Simplify(var - stages_[c]);
      child = Substitute(child, {{loop_.var.get(), analyzer_.Simplify(loop_.min + iteration)}});
      Expr guard;
      if (stages_[c] > 0) guard = Ge(var, IndexConst(stages_[c]));
      if (stages_[c] < last_stage_) guard = AndAlso(guard, Lt(iteration, loop_.extent));
      stmts[static_cast<size_t>(order_[c])] = guard ? AddGuard(child, guard) : child;
    }
    Stmt out = For::Make(var, IndexConst(0), extent, ForKind::kSerial, Seq::Make(std::move(stmts)),
                         loop_.attrs);
    out = Tidy(out, &analyzer_);
    for (const Buffer& b : made_) {
      const bool has_versions = std::any_of(versions_.begin(), versions_.end(),
                                            [&](const Retarget& r) { return r.from == b; });
      if (!has_versions) out = AddAlloc(b, out);
    }
    for (const Retarget& r : versions_) out = AddAlloc(r.to, out);
    Stmt root = Edit(body_->root(), {{place_.stmt.get(), out}});
    for (const Retarget& r : versions_) root = RemoveAlloc(r.from, root);
    s_.SetBody(root);
    s_.renamed.emplace_back(Name(), name);
    return name;
  }

  State& s_;
  Body* body_;
  const Place& place_;
  const For& loop_;
  Ints stages_, order_;
  int64_t last_stage_ = 0;
  std::vector<Stmt> children_;
  std::vector<Buffer> made_;  // in the loop's body
  std::vector<Retarget> versions_;
  Analyzer analyzer_;
};

}  // namespace

Result SoftwarePipeline(State& s, const std::string& name, const Ints& stages, const Ints& order) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* loop, body.NeedLoop(name));
  return Pipeliner(s, &body, *loop, stages, order).Run();
}

Result DoubleBuffer(State& s, const std::string& name) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedBlock(name));
  const Place* loop = nullptr;
  const Seq* seq = nullptr;
  for (const Stmt& stmt : place->path) {
    const auto* around = As<For>(stmt);
    if (around == nullptr || !IsA<Seq>(around->body)) continue;
    loop = body.FindLoop(around->var->name);
    seq = As<Seq>(around->body);
  }
  if (loop == nullptr || place->inner) {
    return OfBlock(name, "it is not one of several statements in the body of a loop");
  }
  Stmt producer = BranchTowards(*place, seq);
  Ints stages, order;
  int64_t next = 1;
  for (const Stmt& stmt : seq->stmts) {
    stages.push_back(stmt == producer ? 0 : 1);
    order.push_back(stmt == producer ? 0 : next++);
  }
  return Pipeliner(s, &body, *loop, stages, order).Run();
}

}  // namespace tenon::primitive
