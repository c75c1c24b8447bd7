// Indices are looked at as functions of the loops: how far one reaches over a loop's range, and how
// far its first two iterations lie apart. So divisions and remainders of fused loops need no rules.
#include "sketch/nest.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>

#include "dependence/body.h"
#include "ir/visit.h"

namespace tenon::sketch {

namespace {

std::optional<int64_t> Evaluate(const Expr& e, const Values& at, int depth) {
  if (depth > 64) return std::nullopt;
  if (const auto n = AsInt(e)) return *n;
  if (const auto* v = As<VarNode>(e)) {
    for (const auto& [var, value] : at)
      if (var == v) return value;
    return 0;
  }
  if (const auto* c = As<CastExpr>(e)) return Evaluate(c->value, at, depth + 1);
  const auto* b = As<Binary>(e);
  if (!b) return std::nullopt;
  const auto x = Evaluate(b->lhs, at, depth + 1), y = Evaluate(b->rhs, at, depth + 1);
  if (!x || !y) return std::nullopt;
  switch (b->op) {
    case BinaryOp::kAdd: return *x + *y;
    case BinaryOp::kSub: return *x - *y;
    case BinaryOp::kMul: return *x * *y;
    case BinaryOp::kDiv: return *y == 0 ? 0 : (*x - ((*x % *y) + *y) % *y) / *y;
    case BinaryOp::kMod: return *y == 0 ? 0 : ((*x % *y) + *y) % *y;
    case BinaryOp::kMin: return std::min(*x, *y);
    case BinaryOp::kMax: return std::max(*x, *y);
    default: return std::nullopt;
  }
}

bool IsAxisOf(const NestLoop& loop, const char* kind) {
  return loop.kind == ForKind::kThread && std::string(Name(loop.thread)).starts_with(kind);
}

/// Arithmetic of one iteration: operations that a vector unit does one of each for.
double OperationsOf(const Block& block) {
  double count = 0;
  bool fused = false;
  PreOrder(block.body, [&](const NodeRef& n) {
    if (const auto* b = As<Binary>(n)) {
      if (b->dtype.IsFloat() || b->lhs->dtype.IsFloat())
        count += b->op == BinaryOp::kDiv ? 4 : 1;
      else if (b->dtype.bits < 64)
        count += 1;
      // A product that is added to something is one operation with it.
      if (b->op == BinaryOp::kAdd &&
          (IsA<Binary>(b->rhs) && As<Binary>(b->rhs)->op == BinaryOp::kMul))
        fused = true;
    } else if (IsA<Call>(n)) {
      count += 10;
    } else if (IsA<Select>(n)) {
      count += 1;
    }
    return true;
  });
  return std::max(1.0, fused ? count - 1 : count);
}

// The unit whose operation a tensorized block calls.
int UnitOf(const Block& block, const Machine& machine) {
  int found = -1;
  PreOrder(block.body, [&](const NodeRef& n) {
    const auto* call = As<CallFunc>(n);
    for (size_t u = 0; u < machine.units.size(); ++u) {
      if (call && machine.units[u].row == call->callee) found = static_cast<int>(u);
    }
    return !IsA<ExprNode>(n);
  });
  return found;
}

class NestReader {
 public:
  explicit NestReader(const Machine& machine) : machine_(machine) {}

  std::optional<Nest> Read(const PrimFunc& func) {
    if (!func.dims.empty()) return std::nullopt;
    const Func whole(&func);
    const Body body(whole);
    std::set<const Node*> roots;
    for (const Body::Place& place : body.blocks()) {
      if (place.inner) continue;
      if (!Add(place)) return std::nullopt;
      const auto loops = place.Loops();
      if (!loops.empty()) roots.insert(loops.front());
    }
    nest_.roots = static_cast<int64_t>(roots.size());
    return std::move(nest_);
  }

 private:
  bool Add(const Body::Place& place) {
    const Block& block = *place.block();
    NestBlock out;
    std::vector<const VarNode*> vars;
    for (const For* f : place.Loops()) {
      const auto extent = AsInt(f->extent);
      if (!extent) return false;
      out.loops.push_back({*extent, f->for_kind, f->thread});
      vars.push_back(f->var.get());
    }
    const auto bindings = BindingsOf(block);
    for (const Region& r : ReadsOf(block))
      out.touches.push_back(TouchOf(r, false, out.loops, vars, bindings));
    for (const Region& r : block.writes)
      out.touches.push_back(TouchOf(r, true, out.loops, vars, bindings));
    out.operations = OperationsOf(block);
    out.type = block.writes.empty() ? DType::Float(32) : block.writes[0]->buffer->dtype;
    out.unit = UnitOf(block, machine_);
    out.reduces = HasKind(block, IterKind::kReduce);
    nest_.blocks.push_back(std::move(out));
    return true;
  }

  Touch TouchOf(const Region& region, bool write, const std::vector<NestLoop>& loops,
                const std::vector<const VarNode*>& vars,
                const std::unordered_map<const VarNode*, Expr>& bindings) {
    const BufferNode& buffer = *region->buffer;
    const Scope scope = buffer.scope;
    Touch t{.buffer = buffers_.emplace(&buffer, buffers_.size()).first->second,
            .write = write,
            .in_memory =
                scope != Scope::kRegister && scope != Scope::kLocal && scope != Scope::kFragment,
            .shared = scope == Scope::kShared,
            .element_bytes = std::max<int64_t>(1, buffer.dtype.Bytes())};
    const size_t dims = region->ranges.size();
    std::vector<Expr> mins;
    for (size_t d = 0; d < dims; ++d) {
      mins.push_back(Substitute(region->ranges[d]->min, bindings));
      t.box.push_back(std::max<int64_t>(1, AsInt(region->ranges[d]->extent).value_or(1)));
      t.shape.push_back(std::max<int64_t>(1, AsInt(buffer.shape[d]).value_or(1)));
    }
    t.spans.assign(loops.size() * dims, 0);
    t.steps.assign(loops.size(), 0);
    for (size_t l = 0; l < loops.size(); ++l) {
      int64_t stride = 1;
      for (size_t d = dims; d-- > 0; stride *= t.shape[d]) {
        if (UsesVar(mins[d], vars[l])) Reach(mins[d], vars[l], loops[l].extent, l, d, stride, &t);
      }
    }
    return t;
  }

  static void Reach(const Expr& index, const VarNode* var, int64_t extent, size_t l, size_t d,
                    int64_t stride, Touch* t) {
    int64_t& span = t->spans[l * t->shape.size() + d];
    const int64_t last = extent - 1;
    const auto zero = ValueAt(index, {}), one = ValueAt(index, {{var, 1}});
    if (!zero || !one) {
      span = t->shape[d] - 1;
      t->steps[l] += kAnywhere * stride;
      return;
    }
    int64_t low = *zero, high = *zero;
    for (const int64_t at : {int64_t{1}, last / 2, last}) {
      const int64_t v = ValueAt(index, {{var, std::min(at, last)}}).value_or(0);
      low = std::min(low, v);
      high = std::max(high, v);
    }
    span = std::min(high - low, t->shape[d] - 1);
    if (last > 0) t->steps[l] += (*one - *zero) * stride;
  }

  const Machine& machine_;
  std::unordered_map<const BufferNode*, size_t> buffers_;
  Nest nest_;
};

}  // namespace

bool IsBlockAxis(const NestLoop& loop) { return IsAxisOf(loop, "blockIdx"); }
bool IsThreadAxis(const NestLoop& loop) { return IsAxisOf(loop, "threadIdx"); }

bool Touch::MovesOver(size_t loop) const {
  for (size_t d = 0; d < shape.size(); ++d)
    if (Span(loop, d) != 0) return true;
  return false;
}

std::optional<int64_t> ValueAt(const Expr& index, const Values& at) {
  return Evaluate(index, at, 0);
}

std::optional<Nest> NestOf(const PrimFunc& func, const Machine& machine) {
  return NestReader(machine).Read(func);
}

}  // namespace tenon::sketch
