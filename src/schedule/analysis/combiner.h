// How a reduction block combines: what a primitive needs that reduces in parts.
//
// The reducer is one of loop/reducer.h, or one that the block spells out. Then its body first binds
// the values that are combined in, one for each component, and all else that it does is in terms of
// them and of the components:
//
//   let v0 = idx            // reads no component
//   let v1 = A[i, k]
//   let n0 = select(v1 > T1[i], v0, T0[i])
//   let n1 = max(T1[i], v1)
//   T0[i] = n0; T1[i] = n1
//
// Such a reducer is associative by its author's promise. Where it starts, its init, must be
// constants that combining with themselves leaves as they are: any number of parts can then start
// there.
#pragma once

#include "dependence/body.h"
#include "loop/reducer.h"

namespace tenon::primitive {

class Combiner {
 public:
  /// The block's reduction, or why it cannot be done in parts.
  static Expected<Combiner> Of(const Block& block);

  /// The updates, one per component, each of one element.
  const std::vector<Ref<const Store>>& stores() const { return stores_; }
  /// What is combined in.
  const std::vector<Expr>& values() const { return values_; }
  const std::vector<Expr>& identity() const { return identity_; }
  /// Swapping the two sides gives something else: a tie goes to whoever came first.
  bool DependsOnOrder() const { return depends_on_order_; }

  /// The body of a block that combines `values` into these elements of `buffers`.
  Stmt Update(const std::vector<Buffer>& buffers, const std::vector<Expr>& indices,
              const std::vector<Expr>& values, Body* body) const;

 private:
  std::vector<Expr> Combine(const std::vector<Expr>& old, const std::vector<Expr>& values) const;
  std::optional<Diagnostic> ReadBody(const Block& block);
  std::optional<Diagnostic> ReadInit(const Block& block);
  bool FindsOrder() const;

  std::vector<Ref<const Store>> stores_;
  std::vector<Expr> values_, identity_;
  const Reducer* reducer_ = nullptr;
  // Of one that the block spells out: its results in terms of variables.
  std::vector<Var> old_, new_;
  std::vector<Expr> results_;
  bool depends_on_order_ = false;
};

/// Stores of `values` at these elements.
Stmt StoreAll(const std::vector<Buffer>& buffers, const std::vector<Expr>& indices,
              const std::vector<Expr>& values);

}  // namespace tenon::primitive
