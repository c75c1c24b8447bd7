// From a function to its accesses and divisions: the way there, and what must hold at its end.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "ir/visit.h"
#include "loop/func.h"
#include "loop/requirements.h"

namespace tenon {

class AccessWalker {
 public:
  AccessWalker(const PrimFunc& func, const Module& module) : func_(func), module_(module) {}
  virtual ~AccessWalker() = default;
  AccessWalker(const AccessWalker&) = delete;
  AccessWalker& operator=(const AccessWalker&) = delete;

 protected:
  /// One step on the way from the function to an access, outermost first.
  struct Step {
    enum class Kind : uint8_t { kLoop, kValue, kCondition } kind;
    Var var;           // of a loop or a value
    Expr min, extent;  // of a loop
    Expr value;        // of a value; a condition, null where it is not known
  };

  void Walk(const Stmt& s);
  /// That a comparison holds wherever the path leads: 0 <= e at the least e, e < extent at the
  /// most.
  virtual void Judge(const Ref<const Binary>& holds, const std::string& what) = 0;

  const PrimFunc& func_;
  const Module& module_;
  std::vector<Step> path_;
  int budget_ = 20000;  // more accesses than that are not looked at
  int arms_ = 20000;    // nor more arms of choices
  Diagnostics errors_;

 private:
  /// The nodes of an expression that need no further look.
  struct Seen {
    std::unordered_set<const Node*> nodes;
    std::vector<const Node*> order;
  };

  template <class F>
  void Under(Step step, const F& inside) {
    path_.push_back(std::move(step));
    inside();
    path_.pop_back();
  }
  template <class F>
  void If(const Expr& condition, const F& inside) {
    Under({Step::Kind::kCondition, nullptr, nullptr, nullptr, condition}, inside);
  }

  void WalkBlock(const Block& block, size_t iter);
  void WalkEffect(const Stmt& s);
  // What the function needs of its own sizes, with what it is given for them.
  void WalkCall(const CallFunc& call);
  void WalkNeed(const Requirement& r, size_t loop, VarMap given, const std::string& what);
  // The loads and divisions of an expression. What shares its nodes is looked at once per
  // condition.
  void Look(const Expr& e);
  void LookInto(const NodeRef& n, Seen* seen);
  void LookIntoArm(const Expr& condition, const Expr& arm, Seen* seen);
  void Divides(const Binary* e);
  void Access(const Buffer& buffer, const std::vector<Expr>& indices);
  // Each side of a select where it is taken.
  void JudgeIndex(const Expr& index, const Expr& extent, const std::string& what);
};

}  // namespace tenon
