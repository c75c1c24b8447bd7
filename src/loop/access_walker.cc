#include "loop/access_walker.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "ir/print.h"
#include "ir/visit.h"

namespace tenon {

namespace {

// Whether it is too long to be written down for a caller: what is used at several places counts at
// each of them.
bool IsLong(const Expr& e) {
  constexpr int64_t kMostNodes = 4096;
  std::unordered_map<const Node*, int64_t> sizes;
  struct Adder final : ChildVisitor {
    void VisitChild(const NodeRef& child, FieldRole) override {
      const auto it = sizes->find(child.get());
      if (it == sizes->end()) return open.push_back(child);
      size = std::min(size + it->second, kMostNodes + 1);
    }
    std::unordered_map<const Node*, int64_t>* sizes = nullptr;
    std::vector<NodeRef> open;
    int64_t size = 1;
  };
  std::vector<NodeRef> todo = {e};
  while (!todo.empty()) {
    const NodeRef n = todo.back();
    Adder adder;
    adder.sizes = &sizes;
    if (n->kind != NodeKind::kBuffer) n->VisitChildren(adder);
    if (!adder.open.empty()) {
      todo.insert(todo.end(), adder.open.begin(), adder.open.end());
      continue;
    }
    sizes[n.get()] = adder.size;
    todo.pop_back();
  }
  return sizes[e.get()] > kMostNodes;
}

}  // namespace

void AccessWalker::Walk(const Stmt& s) {
  if (const auto* seq = As<Seq>(s)) {
    for (const Stmt& one : seq->stmts) Walk(one);
  } else if (const auto* loop = As<For>(s)) {
    Look(loop->min), Look(loop->extent);
    Under({Step::Kind::kLoop, loop->var, loop->min, loop->extent, nullptr},
          [&] { Walk(loop->body); });
  } else if (const auto* let = As<Let>(s)) {
    Look(let->value);
    Under({Step::Kind::kValue, let->var, nullptr, nullptr, let->value}, [&] { Walk(let->body); });
  } else if (const auto* test = As<tenon::If>(s)) {
    Look(test->condition);
    If(test->condition, [&] { Walk(test->then_body); });
    if (test->else_body) If(Not(test->condition), [&] { Walk(test->else_body); });
  } else if (const auto* alloc = As<Alloc>(s)) {
    Walk(alloc->body);
  } else if (const auto* bind = As<Bind>(s)) {
    Walk(bind->body);
  } else if (const auto* block = As<Block>(s)) {
    WalkBlock(*block, 0);
  } else {
    WalkEffect(s);
  }
}

void AccessWalker::WalkBlock(const Block& block, size_t iter) {
  if (iter < block.iters.size()) {
    const IterVarNode& v = *block.iters[iter];
    return Under({Step::Kind::kValue, v.var, nullptr, nullptr, v.binding},
                 [&] { WalkBlock(block, iter + 1); });
  }
  auto inside = [&] {
    if (block.init) {
      Expr starts = BoolConst(true);
      for (const IterVar& v : block.iters) {
        if (v->iter_kind == IterKind::kReduce) starts = And(starts, Eq(v->var, v->min));
      }
      If(starts, [&] { Walk(block.init); });
    }
    Walk(block.body);
  };
  if (!block.where) return inside();
  Look(block.where);
  If(block.where, inside);
}

void AccessWalker::WalkEffect(const Stmt& s) {
  if (const auto* store = As<Store>(s)) {
    Look(store->value);
    for (const Expr& i : store->indices) Look(i);
    auto check = [&] { Access(store->buffer, store->indices); };
    store->mask ? If(nullptr, check) : check();
  } else if (const auto* atomic = As<Atomic>(s)) {
    Look(atomic->value);
    Access(atomic->buffer, atomic->indices);
  } else if (const auto* call = As<CallFunc>(s)) {
    WalkCall(*call);
  } else if (const auto* effect = As<Evaluate>(s)) {
    Look(effect->call);
  }
}

void AccessWalker::WalkCall(const CallFunc& call) {
  for (const Expr& e : call.scalars) Look(e);
  const Func callee = module_.Find(call.callee);
  if (!callee || callee->func_kind != FuncKind::kDevice) return;
  auto needs = RequirementsOf(*callee, module_);
  if (!needs) {
    if (errors_.empty()) errors_ = needs.errors();
    return;
  }
  VarMap given;
  std::vector<Var> params = callee->dims;
  params.insert(params.end(), callee->scalars.begin(), callee->scalars.end());
  if (params.size() != call.scalars.size()) return;
  for (size_t i = 0; i < params.size(); ++i) given[params[i].get()] = call.scalars[i];
  for (const Requirement& r : *needs) WalkNeed(r, 0, given, r.what + " in @" + callee->name);
}

void AccessWalker::WalkNeed(const Requirement& r, size_t loop, VarMap given,
                            const std::string& what) {
  if (loop < r.every.size()) {
    const Requirement::Loop& l = r.every[loop];
    const Expr min = Substitute(l.min, given), end = Substitute(l.end, given);
    Var var = VarNode::Make(l.var->name + ".in", l.var->dtype);
    given[l.var.get()] = var;
    return Under({Step::Kind::kLoop, var, min, end - min, nullptr},
                 [&] { WalkNeed(r, loop + 1, given, what); });
  }
  auto check = [&] { Judge(Cast<Binary>(Substitute(Expr(r.holds), given)), what); };
  r.when ? If(Substitute(r.when, given), check) : check();
}

void AccessWalker::Look(const Expr& e) {
  Seen seen;
  LookInto(e, &seen);
}

// What was looked at around the condition holds in the arm as well; what is in the arm, there only.
void AccessWalker::LookIntoArm(const Expr& condition, const Expr& arm, Seen* seen) {
  if (--arms_ < 0) return;
  const size_t mark = seen->order.size();
  If(condition, [&] { LookInto(arm, seen); });
  for (; seen->order.size() > mark; seen->order.pop_back()) seen->nodes.erase(seen->order.back());
}

void AccessWalker::LookInto(const NodeRef& n, Seen* seen) {
  PreOrder(n, [&](const NodeRef& node) {
    if (node->kind == NodeKind::kBuffer || !seen->nodes.insert(node.get()).second) return false;
    seen->order.push_back(node.get());
    if (const auto* select = As<Select>(node)) {
      LookInto(select->condition, seen);
      LookIntoArm(select->condition, select->on_true, seen);
      LookIntoArm(Not(select->condition), select->on_false, seen);
      return false;
    }
    if (const auto* load = As<Load>(node)) {
      for (const Expr& i : load->indices) LookInto(i, seen);  // its divisions first
      if (load->mask) LookInto(load->mask, seen);
      auto check = [&] { Access(load->buffer, load->indices); };
      load->mask ? If(nullptr, check) : check();
      return false;
    }
    if (const auto* binary = As<Binary>(node)) Divides(binary);
    const auto* call = As<Call>(node);
    return !call ||
           (call->intrinsic != Intrinsic::kBufferData && call->intrinsic != Intrinsic::kPrefetch);
  });
}

void AccessWalker::Divides(const Binary* e) {
  const bool divides = e->op == BinaryOp::kDiv || e->op == BinaryOp::kMod;
  if (!divides || !e->dtype.IsIndex() || e->dtype.IsVector() || AsInt(e->rhs)) return;
  if (IsLong(Ref<const Binary>(e))) return;
  Judge(Cast<Binary>(Ne(e->rhs, IndexConst(0))), ToString(Ref<const Binary>(e)));
}

void AccessWalker::Access(const Buffer& buffer, const std::vector<Expr>& indices) {
  if (std::any_of(indices.begin(), indices.end(), IsLong)) return;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]->dtype.IsIndex() || indices[d]->dtype.IsVector()) continue;
    std::string place;
    for (const Expr& i : indices) place += (place.empty() ? "" : ", ") + ToString(i);
    JudgeIndex(indices[d], buffer->shape[d],
               fmt::format("{}[{}] along dim {}", buffer->name, place, d));
  }
}

void AccessWalker::JudgeIndex(const Expr& index, const Expr& extent, const std::string& what) {
  const auto* select = As<Select>(index);
  if (!select || --budget_ < 0) {
    Judge(Cast<Binary>(Le(IndexConst(0), index)), what);
    Judge(Cast<Binary>(Lt(index, extent)), what);
    return;
  }
  If(select->condition, [&] { JudgeIndex(select->on_true, extent, what); });
  If(Not(select->condition), [&] { JudgeIndex(select->on_false, extent, what); });
}

}  // namespace tenon
