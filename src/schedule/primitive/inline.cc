// compute_inline and reverse_compute_inline: a block dissolves into its consumers, or into its
// producer.
//
// compute_inline reads the block as a definition, B[v] = f(v), and puts f(e) in the place of every
// B[e]:
//
//   block B(vi: spatial = i) { reads A[vi]; writes B[vi]
//     B[vi] = A[vi] * A[vi]
//   }
//   …
//   block C(vj: spatial = j) { reads B[vj..+3]; writes C[vj]
//     C[vj] = B[vj] + B[vj + 1] + B[vj + 2]
//   }
//
// becomes
//
//   block C(vj: spatial = j) { reads A[vj..+3]; writes C[vj]
//     C[vj] = A[vj] * A[vj] + A[vj + 1] * A[vj + 1] + A[vj + 2] * A[vj + 2]
//   }
//
// The regions that the consumer declares follow by the same substitution. reverse_compute_inline
// goes the other way: the consumer, which reads the producer's element at its own place, becomes
// the last step of the producer's store. The size of what comes out is counted before it is made,
// shared parts wherever they would stand, since chains of inlined stencils grow exponentially.

#include <algorithm>

#include "ir/print.h"
#include "ir/visit.h"
#include "schedule/analysis/nest.h"
#include "schedule/primitive/move.h"
#include "schedule/primitive/primitives.h"

namespace tenon::primitive {

namespace {

// The block's body when it is one unmasked store per iteration.
const Store* SingleStore(const Block& block) {
  const auto* store = As<Store>(block.body);
  return store != nullptr && !store->mask && !block.init && block.writes.size() == 1 ? store
                                                                                     : nullptr;
}

std::optional<Diagnostic> NotElementwise(const Place& place) {
  const Block& block = *place.block();
  if (place.inner) return OfBlock(block.name, "it is inside another block");
  if (block.opaque || block.at != Level::kThread || block.async) {
    return OfBlock(block.name, "it is not a plain computation of one element");
  }
  if (HasKind(block, IterKind::kReduce) || HasKind(block, IterKind::kOrdered)) {
    return OfBlock(block.name, "it has reduce or ordered variables");
  }
  if (SingleStore(block) == nullptr) {
    return OfBlock(block.name, "its body is not a single store");
  }
  return NotClosed(place);
}

// Iteration variable of each index; fails unless indices are distinct variables (or constants) that
// name all of them.
std::optional<std::vector<const VarNode*>> IndexVars(const Block& block,
                                                     const std::vector<Expr>& indices) {
  std::vector<const VarNode*> out;
  for (const Expr& e : indices) {
    const auto* var = As<VarNode>(e);
    bool own = var != nullptr && std::any_of(block.iters.begin(), block.iters.end(),
                                             [&](const IterVar& v) { return v->var.get() == var; });
    if (!own && !AsInt(e)) return std::nullopt;
    if (own && std::find(out.begin(), out.end(), var) != out.end()) return std::nullopt;
    out.push_back(own ? var : nullptr);
  }
  // A variable that runs over one value needs no index.
  for (const IterVar& v : block.iters) {
    bool indexed = std::find(out.begin(), out.end(), v->var.get()) != out.end();
    if (!indexed && !IsOne(v->extent)) return std::nullopt;
  }
  return out;
}

// The variables' values at an element.
VarMap ValuesAt(const Block& block, const std::vector<const VarNode*>& vars,
                const std::vector<Expr>& indices) {
  VarMap out;
  for (const IterVar& v : block.iters) out[v->var.get()] = v->min;
  for (size_t i = 0; i < vars.size(); ++i) {
    if (vars[i] != nullptr) out[vars[i]] = indices[i];
  }
  return out;
}

// Nothing larger is made by inlining: every later step would take its time.
constexpr int64_t kMaxNodes = 65536;

/// How many nodes an expression has when shared ones are counted wherever they stand.
class TreeSize {
 public:
  /// Loads of `inlined`, if any, count as the value that is put in their place.
  TreeSize(const BufferNode* inlined, int64_t value) : inlined_(inlined), value_(value) {}

  /// Of all expressions of a statement or an expression.
  int64_t Of(const NodeRef& root) {
    std::vector<NodeRef> tops;
    PreOrder(root, [&](const NodeRef& n) {
      if (IsA<ExprNode>(n)) tops.push_back(n);
      return !IsA<ExprNode>(n);
    });
    int64_t sum = 0;
    for (const NodeRef& n : tops) sum = Add(sum, OfExpr(Cast<ExprNode>(n)));
    return sum;
  }

 private:
  static int64_t Add(int64_t a, int64_t b) { return std::min(a + b, kMaxNodes + 1); }

  int64_t OfExpr(const Expr& e) {
    if (auto it = known_.find(e.get()); it != known_.end()) return it->second;
    int64_t size = 1;
    auto add = [&](const Expr& part) { size = part ? Add(size, OfExpr(part)) : size; };
    if (const auto* load = As<Load>(e)) {
      if (load->buffer.get() == inlined_) size = value_;
      for (const Expr& i : load->indices) add(i);
    } else if (const auto* b = As<Binary>(e)) {
      add(b->lhs), add(b->rhs);
    } else if (const auto* u = As<Unary>(e)) {
      add(u->value);
    } else if (const auto* s = As<Select>(e)) {
      add(s->condition), add(s->on_true), add(s->on_false);
    } else if (const auto* c = As<CastExpr>(e)) {
      add(c->value);
    } else if (const auto* call = As<Call>(e)) {
      for (const Expr& a : call->args) add(a);
    }
    return known_[e.get()] = size;
  }

  const BufferNode* inlined_;
  const int64_t value_;
  std::unordered_map<const Node*, int64_t> known_;
};

std::optional<Diagnostic> TooLarge(const Block& block, const Stmt& consumer, const Buffer& buffer,
                                   const Expr& value) {
  const int64_t each = TreeSize(nullptr, 0).Of(value);
  if (TreeSize(buffer.get(), each).Of(consumer) <= kMaxNodes) return std::nullopt;
  return OfBlock(block.name, "the expression that it makes has more than " +
                                 std::to_string(kMaxNodes) +
                                 " nodes; keep some of what it reads in memory");
}

FpMode Stricter(FpMode a, FpMode b) { return std::min(a, b); }

// What a region covers while the block's variables range over `box`, one interval per index of its
// store.
Region RegionOver(const Region& region, const Block& block, const std::vector<const VarNode*>& vars,
                  const Region& box) {
  Analyzer analyzer;
  VarMap points = ValuesAt(block, vars, [&] {
    std::vector<Expr> mins;
    for (const Range& r : box->ranges) mins.push_back(r->min);
    return mins;
  }());
  IntervalMap domain;
  for (size_t i = 0; i < vars.size(); ++i) {
    const Range& r = box->ranges[i];
    if (vars[i] == nullptr || IsOne(r->extent)) continue;
    points.erase(vars[i]);
    domain[vars[i]] = {r->min, analyzer.Simplify(r->min + r->extent - 1)};
  }
  std::vector<Range> ranges;
  for (const Range& r : region->ranges) {
    Expr min = analyzer.Simplify(Substitute(r->min, points));
    Expr last = analyzer.Simplify(Substitute(r->min + r->extent - 1, points));
    ExprInterval lo = EvalInterval(min, domain, &analyzer),
                 hi = EvalInterval(last, domain, &analyzer);
    if (!lo.min || !hi.max) {
      size_t d = ranges.size();
      ranges.push_back(RangeNode::Make(IndexConst(0), region->buffer->shape[d]));
      continue;
    }
    ranges.push_back(RangeNode::Make(lo.min, analyzer.Simplify(hi.max - lo.min + 1)));
  }
  return RegionNode::Make(region->buffer, std::move(ranges));
}

void AddRegion(const Region& r, std::vector<Region>* list) {
  bool there = std::any_of(list->begin(), list->end(),
                           [&](const Region& x) { return StructuralEqual(x, r); });
  if (!there) list->push_back(r);
}

// The function without a block and the buffer that only it wrote.
Stmt Without(const Stmt& root, Replacements edits, const Place& gone, const Buffer& buffer) {
  edits[gone.stmt.get()] = nullptr;
  return RemoveAlloc(buffer, Edit(root, edits));
}

// One inlining. The state is changed only when the value can stand at every load of the buffer;
// then nobody uses the buffer any more.
class Inliner {
 public:
  Inliner(State& s, const Body& body, const Place& place)
      : s_(s), body_(body), place_(place), block_(*place.block()) {}

  Result Run() {
    if (auto error = NotElementwise(place_)) return *error;
    store_ = SingleStore(block_);
    std::optional<std::vector<const VarNode*>> vars = IndexVars(block_, store_->indices);
    if (!vars) {
      return OfBlock(block_.name, "the indices of its store are not its iteration variables");
    }
    vars_ = *vars;
    if (auto error = Check()) return *error;
    Replacements edits;
    for (const Place* p : body_.Readers(store_->buffer)) {
      edits[p->stmt.get()] = Block::Make(WithValue(*p->block()));
    }
    s_.SetBody(Without(body_.root(), edits, place_, store_->buffer));
    return Names{};
  }

 private:
  std::optional<Diagnostic> Check() const {
    const Buffer& b = store_->buffer;
    if (!body_.IsAlloc(b)) {
      return OfBlock(block_.name,
                     "it writes " + b->name + ", which is not allocated in the function");
    }
    if (!body_.strays().empty()) {
      return OfBlock(block_.name, "the function has statements in no block");
    }
    if (body_.Writers(b).size() != 1) {
      return OfBlock(block_.name, "another block writes " + b->name + " too");
    }
    for (const Region& r : block_.reads) {
      if (r->buffer == b) return OfBlock(block_.name, "it reads what it writes");
      for (const Place* w : body_.Writers(r->buffer)) {
        if (auto error = NotFinal(*w, r->buffer)) return error;
      }
    }
    std::vector<const Place*> readers = body_.Readers(b);
    if (readers.empty()) return OfBlock(block_.name, "it has no consumer");
    for (const Stmt& around : place_.path) {
      const auto* alloc = As<Alloc>(around);
      if (alloc == nullptr || !Reads(block_, alloc->buffer)) continue;
      for (const Place* reader : readers) {
        if (reader->IsUnder(alloc)) continue;
        return OfBlock(block_.name, "it reads " + alloc->buffer->name +
                                        ", which is not there for its consumer " +
                                        reader->block()->name);
      }
    }
    for (const Place* reader : readers) {
      if (auto error = CheckReader(*reader, b)) return error;
      const Block& consumer = *reader->block();
      if (auto error = TooLarge(block_, consumer.body, b, store_->value)) return error;
    }
    return std::nullopt;
  }

  // What the block reads must be the same later, where its consumers are.
  std::optional<Diagnostic> NotFinal(const Place& writer, const Buffer& b) const {
    bool after = body_.OrderOf(&writer) > body_.OrderOf(&place_);
    bool partial = false;
    for (const For* loop : writer.Loops()) {
      partial |= place_.IsUnder(loop) && (BindsLoop(*writer.block(), IterKind::kReduce, loop) ||
                                          BindsLoop(*writer.block(), IterKind::kOrdered, loop));
    }
    if (!after && !partial) return std::nullopt;
    return OfBlock(block_.name, "block " + writer.block()->name + " writes " + b->name +
                                    ", which it reads, later");
  }

  std::optional<Diagnostic> CheckReader(const Place& reader, const Buffer& b) const {
    const Block& consumer = *reader.block();
    bool whole = false;  // the buffer is used other than by plain loads
    PreOrder(reader.stmt, [&](const NodeRef& n) {
      if (const auto* load = As<Load>(n)) whole |= load->buffer == b && load->mask;
      whole |= IsA<CallFunc>(n) || IsA<Copy>(n) || IsA<Atomic>(n);
      whole |= IsA<Block>(n) && n != reader.stmt;  // which declares what it reads
      if (const auto* call = As<Call>(n)) whole |= call->intrinsic == Intrinsic::kBufferData;
      return true;
    });
    if (whole || consumer.opaque) {
      return OfBlock(block_.name,
                     "its consumer " + consumer.name + " does more than load " + b->name);
    }
    for (const Region& r : block_.reads) {
      if (Writes(consumer, r->buffer)) {
        return OfBlock(block_.name, "its consumer " + consumer.name + " writes " + r->buffer->name +
                                        ", which it reads");
      }
    }
    return std::nullopt;
  }

  // The consumer with the value in the place of each load.
  Block WithValue(const Block& consumer) const {
    const Buffer& b = store_->buffer;
    Block out = consumer;
    auto replace = [&](const Stmt& s) {
      return PostOrderRewrite(s, [&](const NodeRef& n) -> NodeRef {
        const auto* load = As<Load>(n);
        if (load == nullptr || load->buffer != b) return n;
        return Substitute(store_->value, ValuesAt(block_, vars_, load->indices));
      });
    };
    out.body = replace(consumer.body);
    if (consumer.init) out.init = replace(consumer.init);
    out.fp = Stricter(consumer.fp, block_.fp);
    out.reads.clear();
    for (const Region& r : consumer.reads) {
      if (r->buffer != b) AddRegion(r, &out.reads);
    }
    for (const Region& r : consumer.reads) {
      if (r->buffer != b) continue;
      for (const Region& mine : block_.reads) {
        AddRegion(RegionOver(mine, block_, vars_, r), &out.reads);
      }
      out.exact &= block_.exact;
    }
    return out;
  }

  State& s_;
  const Body& body_;
  const Place& place_;
  const Block& block_;
  const Store* store_ = nullptr;
  std::vector<const VarNode*> vars_;
};

// One inlining into the producer. The consumer runs for exactly the elements that the producer
// makes, else the state stays as it is.
class ReverseInliner {
 public:
  ReverseInliner(State& s, const Body& body, const Place& place)
      : s_(s), body_(body), place_(place), block_(*place.block()) {}

  Result Run() {
    if (auto error = NotElementwise(place_)) return *error;
    store_ = SingleStore(block_);
    TN_ASSIGN_OR_RETURN(const Place* producer, FindProducer());
    if (auto error = CheckPair(*producer)) return *error;
    TN_ASSIGN_OR_RETURN(Block merged, Merge(*producer));
    Replacements edits{{producer->stmt.get(), Block::Make(std::move(merged))}};
    s_.SetBody(Without(body_.root(), edits, place_, buffer_));
    return Names{};
  }

 private:
  // The one block whose buffer the block reads at its own iteration, and nobody else reads.
  Expected<const Place*> FindProducer() {
    std::string why = "it reads nothing that one elementwise block alone writes";
    for (const Region& r : block_.reads) {
      std::vector<const Place*> writers = body_.Writers(r->buffer);
      if (!body_.IsAlloc(r->buffer) || writers.size() != 1 || writers[0] == &place_) continue;
      if (HasKind(*writers[0]->block(), IterKind::kReduce)) {
        why = "its producer " + writers[0]->block()->name + " is a reduction";
        continue;
      }
      if (body_.Readers(r->buffer).size() != 1) {
        why = "block " + writers[0]->block()->name + " has other consumers";
        continue;
      }
      buffer_ = r->buffer;
      return writers[0];
    }
    return OfBlock(block_.name, why);
  }

  std::optional<Diagnostic> CheckPair(const Place& producer) {
    if (auto error = NotElementwise(producer)) return error;
    if (!body_.strays().empty()) {
      return OfBlock(block_.name, "the function has statements in no block");
    }
    if (!GuardsOnlyDomain(place_, *s_.func)) {
      return OfBlock(block_.name, "it is guarded by " + ToString(NodeRef(block_.where)));
    }
    size_t from = body_.OrderOf(&producer), to = body_.OrderOf(&place_);
    if (from > to) return OfBlock(block_.name, "its producer comes after it");
    for (const Place& other : body_.blocks()) {
      if (&other == &place_ || &other == &producer || other.inner) continue;
      size_t at = body_.OrderOf(&other);
      for (const Region& w : block_.writes) {
        bool touches = Writes(*other.block(), w->buffer) || Reads(*other.block(), w->buffer);
        if (touches && at < to) {
          return OfBlock(block_.name, "block " + other.block()->name + " touches " +
                                          w->buffer->name + ", which it writes, before it");
        }
      }
      for (const Region& r : block_.reads) {
        if (Writes(*other.block(), r->buffer) && (at > from || CommonLoop(other, producer))) {
          return OfBlock(block_.name, "block " + other.block()->name + " writes " +
                                          r->buffer->name + ", which it reads, after its producer");
        }
      }
    }
    return std::nullopt;
  }

  static bool CommonLoop(const Place& a, const Place& b) {
    for (const For* loop : a.Loops()) {
      if (b.IsUnder(loop)) return true;
    }
    return false;
  }

  // One block that computes the producer's value and stores the consumer's.
  Expected<Block> Merge(const Place& place) {
    const Block& producer = *place.block();
    const Store* made = SingleStore(producer);
    std::optional<std::vector<const VarNode*>> vars = LoadVars();
    if (!vars) {
      return OfBlock(block_.name,
                     "it does not read " + buffer_->name + " at its own iteration variables alone");
    }
    if (!IndexVars(producer, made->indices)) {
      return OfBlock(producer.name, "the indices of its store are not its iteration variables");
    }
    if (auto error = DomainsDiffer(producer, *made, *vars)) return *error;
    if (auto error = TooLarge(block_, block_.body, buffer_, made->value)) return *error;
    VarMap values = ValuesAt(block_, *vars, made->indices);
    auto here = [&](const NodeRef& n) { return SubstituteNode(n, values); };
    Block out = producer;
    NodeRef body = PostOrderRewriter([&](const NodeRef& n) -> NodeRef {
      const auto* load = As<Load>(n);
      return load != nullptr && load->buffer == buffer_ ? NodeRef(made->value) : n;
    })(here(block_.body));
    out.name = block_.name;
    out.body = Cast<StmtNode>(body);
    out.fp = Stricter(producer.fp, block_.fp);
    out.exact = producer.exact && block_.exact;
    out.writes.clear();
    for (const Region& r : block_.writes) out.writes.push_back(Cast<RegionNode>(here(r)));
    for (const Region& r : block_.reads) {
      if (r->buffer != buffer_) AddRegion(Cast<RegionNode>(here(r)), &out.reads);
    }
    for (const auto& [key, value] : block_.attrs) out.attrs.Set(key, value);
    return out;
  }

  // The variables that index the loads of the buffer, the same in all of them.
  std::optional<std::vector<const VarNode*>> LoadVars() const {
    std::optional<std::vector<const VarNode*>> found;
    bool same = true;
    PreOrder(block_.body, [&](const NodeRef& n) {
      const auto* load = As<Load>(n);
      if (load == nullptr || load->buffer != buffer_) return true;
      auto vars = IndexVars(block_, load->indices);
      same &= vars.has_value() && !load->mask && (!found || *found == *vars);
      if (vars) found = vars;
      return true;
    });
    return same ? found : std::nullopt;
  }

  // The consumer must run for exactly the elements that the producer makes.
  std::optional<Diagnostic> DomainsDiffer(const Block& producer, const Store& made,
                                          const std::vector<const VarNode*>& vars) const {
    Analyzer analyzer;
    Learn(*s_.func, &analyzer);
    for (size_t d = 0; d < vars.size(); ++d) {
      const IterVarNode* mine = FindIter(block_, vars[d]);
      const IterVarNode* theirs = FindIter(producer, As<VarNode>(made.indices[d]));
      if (mine == nullptr && theirs == nullptr) continue;
      bool same = mine != nullptr && theirs != nullptr &&
                  analyzer.CanProveEqual(mine->min, theirs->min) &&
                  analyzer.CanProveEqual(mine->extent, theirs->extent);
      if (!same) {
        return OfBlock(block_.name, "its domain is not that of its producer " + producer.name +
                                        " in dimension " + std::to_string(d));
      }
    }
    return std::nullopt;
  }

  static const IterVarNode* FindIter(const Block& block, const VarNode* var) {
    for (const IterVar& v : block.iters) {
      if (v->var.get() == var) return v.get();
    }
    return nullptr;
  }

  State& s_;
  const Body& body_;
  const Place& place_;
  const Block& block_;
  const Store* store_ = nullptr;
  Buffer buffer_;
};

}  // namespace

Result ComputeInline(State& s, const std::string& block) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedBlock(block));
  return Inliner(s, body, *place).Run();
}

Result ReverseComputeInline(State& s, const std::string& block) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedBlock(block));
  return ReverseInliner(s, body, *place).Run();
}

}  // namespace tenon::primitive
