#include "loop/combiner.h"

#include <algorithm>
#include <cmath>

#include "arith/analyzer.h"
#include "ir/visit.h"

namespace tenon {

namespace {

Diagnostic NotUpdate() { return MakeError("its body is not one update acc = acc op value"); }

bool IsConstant(const Expr& e) { return IsA<IntConst>(e) || IsA<FloatConst>(e); }

// Numbers up to what their type rounds in a few operations.
bool IsSame(const Expr& a, const Expr& b) {
  if (StructuralEqual(a, b)) return true;
  const auto* x = As<FloatConst>(a);
  const auto* y = As<FloatConst>(b);
  if (!x || !y) return false;
  if (std::isnan(x->value) || std::isnan(y->value)) return false;
  return std::fabs(x->value - y->value) <=
         0.01 * std::max(std::fabs(x->value), std::fabs(y->value));
}

}  // namespace

Stmt StoreAll(const std::vector<Buffer>& buffers, const std::vector<Expr>& indices,
              const std::vector<Expr>& values) {
  std::vector<Stmt> stores;
  for (size_t k = 0; k < buffers.size(); ++k) {
    stores.push_back(Store::Make(buffers[k], indices, values[k]));
  }
  return Seq::Make(std::move(stores));
}

Expected<Combiner> Combiner::Of(const Block& block) {
  Combiner out;
  if (std::optional<Reduction> known = DetectReducer(block)) {
    std::vector<DType> types;
    for (const auto& store : known->stores) types.push_back(store->buffer->dtype);
    out.stores_ = known->stores;
    out.values_ = known->values;
    out.reducer_ = known->reducer;
    out.identity_ = known->reducer->identity(types);
  } else {
    TN_RETURN_IF_ERROR(out.ReadBody(block));
    TN_RETURN_IF_ERROR(out.ReadInit(block));
    out.depends_on_order_ = out.FindsOrder();
  }
  for (const auto& store : out.stores_) {
    const auto& first = *out.stores_[0];
    bool alike = store->indices.size() == first.indices.size();
    for (size_t d = 0; alike && d < first.indices.size(); ++d) {
      alike = StructuralEqual(store->indices[d], first.indices[d]);
    }
    if (!alike || block.writes.size() != out.stores_.size()) return NotUpdate();
  }
  return out;
}

Status Combiner::ReadBody(const Block& block) {
  std::vector<const Let*> lets;
  Stmt rest = block.body;
  for (const auto* let = As<Let>(rest); let != nullptr; let = As<Let>(rest)) {
    lets.push_back(let);
    rest = let->body;
  }
  stores_ = StoresOf(rest);
  const size_t count = stores_.size();
  if (count == 0 || lets.size() < count) return NotUpdate();
  auto is_component = [&](const Expr& e) {
    return std::any_of(stores_.begin(), stores_.end(),
                       [&](const auto& s) { return UsesBuffer(e, s->buffer.get()); });
  };
  VarMap bound;
  for (size_t k = 0; k < lets.size(); ++k) {
    if (k < count) {
      if (is_component(lets[k]->value) || lets[k]->value->dtype != stores_[k]->buffer->dtype) {
        return NotUpdate();
      }
      values_.push_back(Substitute(lets[k]->value, bound));
      new_.push_back(lets[k]->var);
    } else {
      bound[lets[k]->var.get()] = Substitute(lets[k]->value, bound);
    }
  }
  for (const auto& store : stores_) {
    old_.push_back(VarNode::Make("old", store->buffer->dtype));
  }
  for (const auto& store : stores_) {
    // The components by variables; what is left besides them and the values is a constant.
    Expr result =
        PostOrderRewrite(Substitute(store->value, bound), [&](const NodeRef& n) -> NodeRef {
          const auto* load = As<Load>(n);
          for (size_t k = 0; load != nullptr && k < count; ++k) {
            if (load->buffer != stores_[k]->buffer || load->mask) continue;
            if (StructuralEqual(n, Load::Make(load->buffer, stores_[k]->indices))) return old_[k];
          }
          return n;
        });
    bool closed = result->dtype == store->buffer->dtype;
    PreOrder(result, [&](const NodeRef& n) {
      const auto* var = As<VarNode>(n);
      auto is = [&](const Var& v) { return v.get() == var; };
      closed &= !IsA<Load>(n);
      closed &= var == nullptr || std::any_of(old_.begin(), old_.end(), is) ||
                std::any_of(new_.begin(), new_.end(), is);
      return closed;
    });
    if (!closed) return NotUpdate();
    results_.push_back(result);
  }
  return Ok();
}

Status Combiner::ReadInit(const Block& block) {
  const std::vector<Ref<const Store>> starts =
      block.init ? StoresOf(block.init) : std::vector<Ref<const Store>>();
  for (const auto& start : starts) {
    if (identity_.size() < stores_.size() && start->buffer == stores_[identity_.size()]->buffer) {
      identity_.push_back(Simplify(start->value));
    }
  }
  if (identity_.size() != stores_.size() ||
      !std::all_of(identity_.begin(), identity_.end(), IsConstant)) {
    return MakeError("its init is not constants, one for each component");
  }
  const std::vector<Expr> twice = Combine(identity_, identity_);
  for (size_t k = 0; k < twice.size(); ++k) {
    const Expr value = Simplify(twice[k]);
    if (!IsConstant(value) || IsSame(value, identity_[k])) continue;
    return MakeError("its init is no identity: combined with itself it gives another value");
  }
  return Ok();
}

// On small numbers, equal ones among them, whose combinations are known.
bool Combiner::FindsOrder() const {
  constexpr int kSamples[][2] = {{1, 2}, {2, 1}, {1, 1}, {3, 5}};
  auto tuple = [&](int first, int others) {
    std::vector<Expr> out;
    for (size_t k = 0; k < old_.size(); ++k) {
      const DType type = old_[k]->dtype;
      const int v = k == 0 ? first : others;
      out.push_back(type.IsFloat() ? MakeConst(type, v)
                                   : MakeIntConst(type, type.IsBool() ? v & 1 : v));
    }
    return out;
  };
  for (const auto& [a, b] : kSamples) {
    for (const auto& [c, d] : kSamples) {
      const std::vector<Expr> one = Combine(tuple(a, b), tuple(c, d));
      const std::vector<Expr> other = Combine(tuple(c, d), tuple(a, b));
      for (size_t k = 0; k < one.size(); ++k) {
        const Expr x = Simplify(one[k]), y = Simplify(other[k]);
        if (IsConstant(x) && IsConstant(y) && !IsSame(x, y)) return true;
      }
    }
  }
  return false;
}

std::vector<Expr> Combiner::Combine(const std::vector<Expr>& old,
                                    const std::vector<Expr>& values) const {
  if (reducer_ != nullptr) return reducer_->combine(old, values);
  VarMap map;
  for (size_t k = 0; k < old.size(); ++k) {
    map[old_[k].get()] = old[k];
    map[new_[k].get()] = values[k];
  }
  std::vector<Expr> out;
  for (const Expr& r : results_) out.push_back(Substitute(r, map));
  return out;
}

Stmt Combiner::Update(const std::vector<Buffer>& buffers, const std::vector<Expr>& indices,
                      const std::vector<Expr>& values, const FreshName& fresh) const {
  std::vector<Expr> old;
  for (const Buffer& b : buffers) old.push_back(Load::Make(b, indices));
  if (reducer_ != nullptr) return StoreAll(buffers, indices, Combine(old, values));
  // All are combined before the first is stored, for each may need the others' old value.
  std::vector<Var> bound, held;
  for (const Var& v : new_) {
    bound.push_back(VarNode::Make(fresh(v->name), v->dtype));
    held.push_back(VarNode::Make(fresh(v->name + ".new"), v->dtype));
  }
  const std::vector<Expr> results = Combine(old, {bound.begin(), bound.end()});
  Stmt update = StoreAll(buffers, indices, {held.begin(), held.end()});
  for (size_t k = held.size(); k-- > 0;) update = Let::Make(held[k], results[k], update);
  for (size_t k = bound.size(); k-- > 0;) update = Let::Make(bound[k], values[k], update);
  return update;
}

}  // namespace tenon
