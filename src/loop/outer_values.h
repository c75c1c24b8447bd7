// Taking a piece of code out of its surroundings: what in its expressions comes from outside
// becomes a parameter, so that pieces which differ in nothing else become one function. Shared by
// the schedule primitive `outline` and the pass outline_micro_kernels.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "arith/analyzer.h"
#include "loop/func.h"

namespace tenon {

class OuterValues {
 public:
  /// A parameter of the piece and its value outside.
  struct Value {
    Var var;
    Expr outer;
  };

  /// `fresh_name` makes names that are free in the function: NAME(base).
  explicit OuterValues(std::function<std::string(const std::string&)> fresh_name)
      : fresh_name_(std::move(fresh_name)) {}

  /// `var` is bound inside the piece.
  void AddInner(const VarNode* var) { inner_.insert(var), done_.clear(); }
  const std::unordered_set<const VarNode*>& inner() const { return inner_; }

  /// A new size or stride with this value outside.
  Var NewDim(const std::string& base, const Expr& outer);

  /// The expression, or every statement's expressions, with the largest parts that depend on the
  /// surroundings alone replaced by scalars; equal parts get the same one. Loads and vectors are
  /// never such parts, only what is in them.
  Expr Abstract(const Expr& e);
  Stmt Abstract(const Stmt& s);
  /// For a comparison of indices that is affine in `vars`, all that is outer becomes one value:
  /// inner + outer < bound as inner < value.
  Expr AbstractCondition(const Expr& condition, const std::vector<Var>& vars, Analyzer* analyzer);

  const std::vector<Value>& dims() const { return dims_; }

  /// The function of the piece gets its dims and scalars …
  void DeclareIn(PrimFunc* func) const;
  /// … and a call of it their values, in the order that CallFunc wants: dims, scalars.
  std::vector<Expr> Arguments() const;

 private:
  bool IsOwn(const VarNode* var) const;
  bool IsOuter(const Expr& e) const;
  Expr ScalarFor(const Expr& e);

  std::function<std::string(const std::string&)> fresh_name_;
  std::unordered_set<const VarNode*> inner_;
  std::vector<Value> dims_, scalars_;
  // What has several parents, and what Abstract made of it.
  std::unordered_map<const Node*, std::pair<Expr, Expr>> done_;
};

}  // namespace tenon
