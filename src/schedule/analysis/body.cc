// What a primitive knows of a function, and how it changes it.
//
// A Body is taken anew by every primitive: one walk over the tree writes down each loop, block and
// stray statement with the path of statements around it, in program order. Questions are then asked
// of lists: who writes this buffer, which loops are inside of that one, what stands around both.
// In
//
//   for i in 0..8 {
//     for j in 0..8 {
//       block C(vi: spatial = i, vj: spatial = j) { … }
//     }
//     block D(vx: spatial = i) { … }
//   }
//
// C has the path (i, j, …), D the path (i, …), and what both are in is loop i. Trees are immutable,
// so a snapshot stays true while a change is prepared; a change is a map from old statements to new
// ones (Edit), by identity, and null removes a statement with every loop, condition and allocation
// that it leaves empty: with {block D: null} the above keeps loop j alone in loop i.

#include "schedule/analysis/body.h"

#include <algorithm>

#include "ir/visit.h"
#include "support/strings.h"

namespace tenon::primitive {

std::vector<const For*> Place::Loops() const { return LoopsInside(nullptr); }

std::vector<const For*> Place::LoopsInside(const Node* outer) const {
  std::vector<const For*> out;
  bool inside = outer == nullptr;
  for (const Stmt& s : path) {
    if (const auto* loop = As<For>(s); loop != nullptr && inside) out.push_back(loop);
    inside |= s.get() == outer;
  }
  return out;
}

bool Place::IsUnder(const Node* ancestor) const {
  if (ancestor == nullptr || stmt.get() == ancestor) return true;
  return std::any_of(path.begin(), path.end(), [&](const Stmt& s) { return s.get() == ancestor; });
}

// ---- Body ----

Body::Body(const Func& func) : func_(func) {
  for (const Var& v : func->dims) vars_.insert(v->name);
  for (const Var& v : func->scalars) vars_.insert(v->name);
  for (const Buffer& b : func->buffers) {
    buffers_.push_back(b);
    buffer_names_.insert(b->name);
  }
  std::vector<Stmt> path;
  Walk(func->body, &path, false);
}

void Body::Enter(const Stmt& s, const std::vector<Stmt>& path, bool inner) {
  Place place{s, path, inner};
  if (const auto* loop = As<For>(s)) {
    vars_.insert(loop->var->name);
    loops_.push_back(std::move(place));
  } else if (const auto* block = As<Block>(s)) {
    block_names_.insert(block->name);
    for (const IterVar& v : block->iters) vars_.insert(v->var->name);
    blocks_.push_back(std::move(place));
  } else if (const auto* let = As<Let>(s)) {
    vars_.insert(let->var->name);
  } else if (const auto* alloc = As<Alloc>(s)) {
    allocs_.push_back(alloc->buffer);
    buffers_.push_back(alloc->buffer);
    buffer_names_.insert(alloc->buffer->name);
  } else if (const auto* bind = As<tenon::Bind>(s)) {
    buffers_.push_back(bind->buffer);
    buffer_names_.insert(bind->buffer->name);
  }
}

namespace {

// The statements directly inside a statement.
std::vector<Stmt> ChildrenOf(const Stmt& s) {
  class Collector final : public ChildVisitor {
   public:
    void VisitChild(const NodeRef& child, FieldRole) override {
      if (IsA<StmtNode>(child)) out.push_back(Stmt(static_cast<const StmtNode*>(child.get())));
    }
    std::vector<Stmt> out;
  } collector;
  s->VisitChildren(collector);
  return std::move(collector.out);
}

}  // namespace

void Body::Walk(const Stmt& s, std::vector<Stmt>* path, bool inner) {
  Enter(s, *path, inner);
  std::vector<Stmt> children = ChildrenOf(s);
  bool is_leaf = children.empty() && !IsA<Seq>(s);
  if (is_leaf && !inner) strays_.push_back({s, *path, false});
  path->push_back(s);
  for (const Stmt& child : children) Walk(child, path, inner || IsA<Block>(s));
  path->pop_back();
}

std::string Body::Unique(const std::string& base, std::set<std::string>* taken) {
  std::string name = base;
  for (int i = 2; !taken->insert(name).second; ++i) name = base + "_" + std::to_string(i);
  return name;
}

namespace {

const Place* FindIn(const std::vector<Place>& places, const std::string& name) {
  for (const Place& p : places) {
    const std::string& own = p.loop() ? p.loop()->var->name : p.block()->name;
    if (own == name) return &p;
  }
  return nullptr;
}

Diagnostic Unknown(const char* what, const std::string& name, const Names& known) {
  Diagnostic d = Because(std::string("no ") + what + " is named " + QuoteJson(name));
  std::string near = NearestWord(name, known);
  if (!near.empty()) d.notes.push_back("did you mean " + near + "?");
  return d;
}

}  // namespace

const Place* Body::FindLoop(const std::string& name) const { return FindIn(loops_, name); }
const Place* Body::FindBlock(const std::string& name) const { return FindIn(blocks_, name); }

Expected<const Place*> Body::NeedLoop(const std::string& name) const {
  if (const Place* p = FindLoop(name)) return p;
  Names known;
  for (const Place& p : loops_) known.push_back(p.loop()->var->name);
  return Unknown("loop", name, known);
}

Expected<const Place*> Body::NeedBlock(const std::string& name) const {
  if (const Place* p = FindBlock(name)) return p;
  Names known;
  for (const Place& p : blocks_) known.push_back(p.block()->name);
  return Unknown("block", name, known);
}

Expected<Buffer> Body::NeedBuffer(const std::string& name) const {
  Names known;
  for (const Buffer& b : buffers_) {
    if (b->name == name) return b;
    known.push_back(b->name);
  }
  return Unknown("buffer", name, known);
}

bool Body::IsAlloc(const Buffer& buffer) const {
  return std::find(allocs_.begin(), allocs_.end(), buffer) != allocs_.end();
}

std::vector<const Place*> Body::BlocksUnder(const Node* stmt) const {
  std::vector<const Place*> out;
  for (const Place& p : blocks_) {
    if (!p.inner && p.IsUnder(stmt)) out.push_back(&p);
  }
  return out;
}

bool Body::HasStrayUnder(const Node* stmt) const {
  return std::any_of(strays_.begin(), strays_.end(),
                     [&](const Place& p) { return p.IsUnder(stmt); });
}

std::vector<Access> Body::AccessesUnder(const Node* stmt) const {
  std::vector<Access> out;
  for (const Place* p : BlocksUnder(stmt)) {
    for (const Region& r : ReadsOf(*p->block())) out.push_back({p, r, false});
    for (const Region& r : p->block()->writes) out.push_back({p, r, true});
  }
  return out;
}

namespace {

std::vector<const Place*> Touching(const Body& body, const Buffer& buffer, bool write) {
  std::vector<const Place*> out;
  for (const Access& a : body.AccessesUnder(nullptr)) {
    if (a.write != write || a.region->buffer != buffer) continue;
    if (out.empty() || out.back() != a.place) out.push_back(a.place);
  }
  return out;
}

}  // namespace

std::vector<const Place*> Body::Writers(const Buffer& buffer) const {
  return Touching(*this, buffer, true);
}
std::vector<const Place*> Body::Readers(const Buffer& buffer) const {
  return Touching(*this, buffer, false);
}

bool HasKind(const Block& block, IterKind kind) {
  return std::any_of(block.iters.begin(), block.iters.end(),
                     [&](const IterVar& v) { return v->iter_kind == kind; });
}

namespace {

bool Loads(const Stmt& s, const Buffer& buffer) {
  bool found = false;
  PreOrder(s, [&](const NodeRef& n) {
    const auto* load = As<Load>(n);
    found |= load != nullptr && load->buffer == buffer;
    return !found;
  });
  return found;
}

}  // namespace

std::vector<Region> ReadsOf(const Block& block) {
  std::vector<Region> out = block.reads;
  for (const Region& w : block.writes) {
    bool said = std::any_of(out.begin(), out.end(),
                            [&](const Region& r) { return r->buffer == w->buffer; });
    if (!said && Loads(block.body, w->buffer)) out.push_back(w);
  }
  return out;
}

std::unordered_map<const VarNode*, Expr> BindingsOf(const Block& block) {
  std::unordered_map<const VarNode*, Expr> out;
  for (const IterVar& v : block.iters) out[v->var.get()] = v->binding;
  return out;
}

const Node* CommonAncestor(const Place& a, const Place& b) {
  const Node* common = nullptr;
  for (size_t i = 0; i < std::min(a.path.size(), b.path.size()); ++i) {
    if (a.path[i] != b.path[i]) break;
    common = a.path[i].get();
  }
  return common;
}

Stmt BranchTowards(const Place& place, const Node* ancestor) {
  if (ancestor == nullptr) return place.path.empty() ? place.stmt : place.path[0];
  for (size_t i = 0; i < place.path.size(); ++i) {
    if (place.path[i].get() == ancestor) {
      return i + 1 < place.path.size() ? place.path[i + 1] : place.stmt;
    }
  }
  return place.stmt;
}

// ---- Editing ----

namespace {

// Maps the statements directly inside one.
class StmtMapper final : public ChildMapper {
 public:
  explicit StmtMapper(const std::function<Stmt(const Stmt&)>& map) : map_(map) {}
  NodeRef MapChild(const NodeRef& child, FieldRole) override {
    if (!IsA<StmtNode>(child)) return child;
    return map_(Stmt(static_cast<const StmtNode*>(child.get())));
  }

 private:
  const std::function<Stmt(const Stmt&)>& map_;
};

// True when the mapped statement has lost what it is around.
bool IsEmpty(const Stmt& s) {
  if (const auto* loop = As<For>(s)) return !loop->body;
  if (const auto* loop = As<While>(s)) return !loop->body;
  if (const auto* let = As<Let>(s)) return !let->body;
  if (const auto* alloc = As<Alloc>(s)) return !alloc->body;
  if (const auto* bind = As<tenon::Bind>(s)) return !bind->body;
  if (const auto* block = As<Block>(s)) return !block->body;
  return false;
}

Stmt MapChildStmts(const Stmt& s, const std::function<Stmt(const Stmt&)>& map) {
  StmtMapper mapper(map);
  NodeRef mapped = s->MapChildren(mapper);
  if (mapped.get() == s.get()) return s;
  Stmt out(static_cast<const StmtNode*>(mapped.get()));
  if (const auto* seq = As<Seq>(out)) {
    Stmt flat = Seq::Make(seq->stmts);
    const auto* left = As<Seq>(flat);
    return left != nullptr && left->stmts.empty() ? nullptr : flat;
  }
  if (const auto* branch = As<If>(out)) {
    if (branch->then_body) return out;
    if (!branch->else_body) return nullptr;
    return If::Make(Not(branch->condition), branch->else_body);
  }
  return IsEmpty(out) ? nullptr : out;
}

}  // namespace

Stmt Edit(const Stmt& root, const Replacements& replacements) {
  std::function<Stmt(const Stmt&)> edit = [&](const Stmt& s) -> Stmt {
    auto it = replacements.find(s.get());
    return it != replacements.end() ? it->second : MapChildStmts(s, edit);
  };
  return edit(root);
}

Stmt MapStmts(const Stmt& root, const std::function<Stmt(const Stmt&)>& map) {
  std::function<Stmt(const Stmt&)> walk = [&](const Stmt& s) -> Stmt {
    Stmt inner = MapChildStmts(s, walk);
    return inner ? map(inner) : inner;
  };
  return walk(root);
}

Stmt Before(const Stmt& first, const Stmt& second) { return Seq::Make({first, second}); }

Stmt AddAlloc(const Buffer& buffer, const Stmt& root) { return Alloc::Make(buffer, root); }

Stmt RemoveAlloc(const Buffer& buffer, const Stmt& root) {
  return MapStmts(root, [&](const Stmt& s) -> Stmt {
    const auto* alloc = As<Alloc>(s);
    return alloc != nullptr && alloc->buffer == buffer ? alloc->body : s;
  });
}

Expr AndAlso(const Expr& a, const Expr& b) {
  if (!a) return b;
  return b ? And(a, b) : a;
}

std::vector<Expr> Conjuncts(const Expr& condition) {
  std::vector<Expr> out, todo;
  if (condition) todo.push_back(condition);
  while (!todo.empty()) {
    Expr e = todo.back();
    todo.pop_back();
    const auto* b = As<Binary>(e);
    if (b != nullptr && b->op == BinaryOp::kAnd) {
      todo.push_back(b->rhs);
      todo.push_back(b->lhs);
    } else {
      out.push_back(e);
    }
  }
  return out;
}

Stmt AddGuard(const Stmt& stmt, const Expr& condition) {
  std::function<Stmt(const Stmt&)> guard = [&](const Stmt& s) -> Stmt {
    if (const auto* block = As<Block>(s)) {
      Block copy = *block;
      copy.where = AndAlso(block->where, condition);
      return Block::Make(std::move(copy));
    }
    bool is_leaf = ChildrenOf(s).empty() && !IsA<Seq>(s);
    return is_leaf ? If::Make(condition, s) : MapChildStmts(s, guard);
  };
  return guard(stmt);
}

// ---- Facts ----

void Learn(const PrimFunc& func, Analyzer* analyzer) {
  for (size_t i = 0; i < func.dims.size(); ++i) {
    DimRange range = func.dim_range(i);
    int64_t hi = range.hi < 0 ? Interval::kPosInf : range.hi;
    analyzer->BindInterval(func.dims[i], {range.lo, hi});
    if (range.step > 1) {
      analyzer->BindModular(func.dims[i], {range.step, range.lo % range.step});
    }
  }
}

void Learn(const For& loop, Analyzer* analyzer) { analyzer->Bind(loop.var, loop.min, loop.extent); }

void Learn(const std::vector<Stmt>& path, Analyzer* analyzer) {
  for (size_t i = 0; i < path.size(); ++i) {
    if (const auto* loop = As<For>(path[i])) Learn(*loop, analyzer);
    if (const auto* let = As<Let>(path[i]); let && let->var->dtype.IsIndex()) {
      analyzer->BindValue(let->var, let->value);
    }
    if (const auto* branch = As<If>(path[i]); branch != nullptr && i + 1 < path.size()) {
      if (path[i + 1] == branch->then_body) analyzer->Assume(branch->condition);
    }
  }
}

namespace {

Stmt TidyBlock(const Block& block, const Stmt& s, Analyzer* analyzer) {
  Block copy = block;
  bool changed = false;
  for (IterVar& v : copy.iters) {
    Expr binding = analyzer->Simplify(v->binding);
    Expr min = analyzer->Simplify(v->min), extent = analyzer->Simplify(v->extent);
    if (binding == v->binding && min == v->min && extent == v->extent) continue;
    v = IterVarNode::Make(v->var, v->iter_kind, min, extent, binding);
    changed = true;
  }
  Expr where;
  for (const Expr& c : Conjuncts(block.where)) {
    if (!analyzer->CanProve(c)) where = AndAlso(where, analyzer->Simplify(c));
  }
  changed |= where != block.where;
  copy.where = where;
  return changed ? Stmt(Block::Make(std::move(copy))) : s;
}

}  // namespace

Stmt Tidy(const Stmt& stmt, Analyzer* analyzer) {
  std::function<Stmt(const Stmt&)> tidy = [&](const Stmt& s) -> Stmt {
    if (const auto* block = As<Block>(s)) return TidyBlock(*block, s, analyzer);
    const auto* loop = As<For>(s);
    if (loop == nullptr) return MapChildStmts(s, tidy);
    Expr min = analyzer->Simplify(loop->min);
    Expr extent = analyzer->Simplify(loop->extent);
    analyzer->Bind(loop->var, min, extent);
    Stmt body = tidy(loop->body);
    if (body == loop->body && min == loop->min && extent == loop->extent) return s;
    return For::Make(loop->var, min, extent, loop->for_kind, body, loop->attrs, loop->thread);
  };
  return tidy(stmt);
}

// ---- Diagnostics ----

Diagnostic OfBlock(const std::string& block, const std::string& reason) {
  return MakeError(" of block " + block + ": " + reason);
}
Diagnostic Because(const std::string& reason) { return MakeError(": " + reason); }

}  // namespace tenon::primitive
