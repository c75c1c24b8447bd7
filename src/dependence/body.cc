// What there is in a function, and where.
//
// A Body is taken anew for every change: one walk over the tree writes down each loop, block and
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
// so a snapshot stays true while a change is prepared (Edit of loop/edit.h: a map from old
// statements to new ones).

#include "dependence/body.h"

#include <algorithm>

#include "ir/visit.h"
#include "support/strings.h"

namespace tenon {

std::vector<const For*> Body::Place::Loops() const { return LoopsInside(nullptr); }

std::vector<const For*> Body::Place::LoopsInside(const Node* outer) const {
  std::vector<const For*> out;
  bool inside = outer == nullptr;
  for (const Stmt& s : path) {
    if (const auto* loop = As<For>(s); loop != nullptr && inside) out.push_back(loop);
    inside |= s.get() == outer;
  }
  return out;
}

bool Body::Place::IsUnder(const Node* ancestor) const {
  if (ancestor == nullptr || stmt.get() == ancestor) return true;
  return std::any_of(path.begin(), path.end(), [&](const Stmt& s) { return s.get() == ancestor; });
}

// ---- Body ----

Body::Body(const Func& func) : func_(func) {
  for (const Var& v : func->dims) vars_.Take(v->name);
  for (const Var& v : func->scalars) vars_.Take(v->name);
  for (const Buffer& b : func->buffers) {
    buffers_.push_back(b);
    buffer_names_.Take(b->name);
  }
  std::vector<Stmt> path;
  Walk(func->body, &path, false);
}

void Body::Enter(const Stmt& s, const std::vector<Stmt>& path, bool inner) {
  if (const auto* loop = As<For>(s)) {
    vars_.Take(loop->var->name);
    loops_.push_back({s, path, inner});
  } else if (const auto* block = As<Block>(s)) {
    block_names_.Take(block->name);
    for (const IterVar& v : block->iters) vars_.Take(v->var->name);
    blocks_.push_back({s, path, inner});
  } else if (const auto* let = As<Let>(s)) {
    vars_.Take(let->var->name);
  } else if (const auto* alloc = As<Alloc>(s)) {
    allocs_.push_back(alloc->buffer);
    buffers_.push_back(alloc->buffer);
    buffer_names_.Take(alloc->buffer->name);
  } else if (const auto* bind = As<Bind>(s)) {
    buffers_.push_back(bind->buffer);
    buffer_names_.Take(bind->buffer->name);
  }
}

void Body::Walk(const Stmt& s, std::vector<Stmt>* path, bool inner) {
  Enter(s, *path, inner);
  std::vector<Stmt> children = ChildrenOf(s);
  bool is_leaf = children.empty() && !IsA<Seq>(s);
  if (is_leaf && !inner) strays_.push_back({s, *path, false});
  path->push_back(s);
  for (const Stmt& child : children) Walk(child, path, inner || IsA<Block>(s));
  path->pop_back();
}

namespace {

const Body::Place* FindIn(const std::vector<Body::Place>& places, const std::string& name) {
  for (const Body::Place& p : places) {
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

const Body::Place* Body::FindLoop(const std::string& name) const { return FindIn(loops_, name); }
const Body::Place* Body::FindBlock(const std::string& name) const { return FindIn(blocks_, name); }

Expected<const Body::Place*> Body::NeedLoop(const std::string& name) const {
  if (const Place* p = FindLoop(name)) return p;
  Names known;
  for (const Place& p : loops_) known.push_back(p.loop()->var->name);
  return Unknown("loop", name, known);
}

Expected<const Body::Place*> Body::NeedBlock(const std::string& name) const {
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

std::vector<const Body::Place*> Body::BlocksUnder(const Node* stmt) const {
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

std::vector<Body::Access> Body::AccessesUnder(const Node* stmt) const {
  std::vector<Access> out;
  reads_.resize(blocks_.size());
  for (const Place* p : BlocksUnder(stmt)) {
    std::optional<std::vector<Region>>& reads = reads_[OrderOf(p)];
    if (!reads) reads = ReadsOf(*p->block());
    for (const Region& r : *reads) out.push_back({p, r, false});
    for (const Region& r : p->block()->writes) out.push_back({p, r, true});
  }
  return out;
}

namespace {

std::vector<const Body::Place*> Touching(const Body& body, const Buffer& buffer, bool write) {
  std::vector<const Body::Place*> out;
  for (const Body::Access& a : body.AccessesUnder(nullptr)) {
    if (a.write != write || a.region->buffer != buffer) continue;
    if (out.empty() || out.back() != a.place) out.push_back(a.place);
  }
  return out;
}

}  // namespace

std::vector<const Body::Place*> Body::Writers(const Buffer& buffer) const {
  return Touching(*this, buffer, true);
}
std::vector<const Body::Place*> Body::Readers(const Buffer& buffer) const {
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

const Node* CommonAncestor(const Body::Place& a, const Body::Place& b) {
  const Node* common = nullptr;
  for (size_t i = 0; i < std::min(a.path.size(), b.path.size()); ++i) {
    if (a.path[i] != b.path[i]) break;
    common = a.path[i].get();
  }
  return common;
}

Stmt BranchTowards(const Body::Place& place, const Node* ancestor) {
  if (ancestor == nullptr) return place.path.empty() ? place.stmt : place.path[0];
  for (size_t i = 0; i < place.path.size(); ++i) {
    if (place.path[i].get() == ancestor) {
      return i + 1 < place.path.size() ? place.path[i + 1] : place.stmt;
    }
  }
  return place.stmt;
}

std::optional<Diagnostic> UsedInNoBlock(const Body& body, const Buffer& buffer) {
  const PrimFunc& func = *body.func();
  const auto inputs = static_cast<ptrdiff_t>(func.buffers.size()) - func.num_outputs;
  const auto end = func.buffers.begin() + inputs;
  if (std::find(func.buffers.begin(), end, buffer) != end) return std::nullopt;
  for (const Body::Place& stray : body.strays()) {
    if (!UsesBuffer(stray.stmt, buffer.get())) continue;
    return Because("a statement in no block uses buffer " + buffer->name);
  }
  return std::nullopt;
}

bool IsAllocatedUnder(const Body::Place& place, const Buffer& buffer, const Node* stmt) {
  bool under = false;
  for (const Stmt& s : place.path) {
    const auto* alloc = As<Alloc>(s);
    if (under && alloc != nullptr && alloc->buffer == buffer) return true;
    under |= s.get() == stmt;
  }
  return false;
}

// ---- Diagnostics ----

Diagnostic OfBlock(const std::string& block, const std::string& reason) {
  return MakeError(" of block " + block + ": " + reason);
}
Diagnostic Because(const std::string& reason) { return MakeError(": " + reason); }

}  // namespace tenon
