// A chain of reshapes, transposes and slices as one thing: which elements of its source it gives,
// and in which order.
//
// The source's axes are cut into atoms, as finely as the chain's reshapes require. A slice keeps
// some coordinates of an atom; a transpose permutes; a reshape groups atoms anew. So any chain
// amounts to: cut the source (a reshape), slice the atoms, permute them, group them (a reshape).
#pragma once

#include <optional>
#include <vector>

#include "graph/builder.h"

namespace tenon::graph {

class ViewChain {
 public:
  /// Reads all of `source`. No dim may be 0.
  ViewChain(ValueId source, const TensorType& type);

  /// Is the node's operator one that Apply may know?
  static bool IsLink(const Node& n);
  /// Follows with such a node, whose output has `dims`. False where it does not fit the form (it
  /// slices an axis made of several, or nothing is known of how symbolic sizes divide); the chain
  /// is then spoilt.
  bool Apply(const Node& n, const std::vector<Expr>& dims);

  ValueId source() const { return source_; }
  /// How many nodes Build makes.
  int Length() const;
  /// Makes the nodes; the result has the dims of the last node applied.
  Expected<ValueId> Build(Builder& b, std::string name) const;

 private:
  // A piece of the source's axes, and which of its coordinates are read.
  struct Atom {
    Expr size;
    Expr start, count;
    int64_t step = 1;
    bool IsWhole() const;
  };
  using Group = std::vector<size_t>;  // atoms, outermost first; none: an axis of dim 1

  // One way to lay the chain out as nodes.
  struct Plan {
    std::vector<Group> cut;  // axes of the source once reshaped, in the source's order
    std::vector<int64_t> perm;
    bool reshapes_first = false, slices = false, transposes = false, reshapes_last = false;
    int Length() const { return reshapes_first + slices + transposes + reshapes_last; }
  };

  bool Reshape(const std::vector<Expr>& dims);
  bool Slice(const Node& n);
  bool MergeInto(Group& axis);
  void Split(size_t atom, const Expr& outer, const Expr& inner);
  bool IsDropped(size_t atom) const;
  Expr SizeOf(const Group& group, bool sliced) const;
  std::vector<Group> CutAsSource() const;
  std::vector<Group> CutAsResult() const;
  std::vector<Group> CutInRuns() const;
  std::optional<Plan> PlanFor(std::vector<Group> cut) const;
  void Permute(Plan* plan) const;
  Plan Best() const;

  ValueId source_;
  std::vector<Expr> source_dims_;
  std::vector<Atom> atoms_;  // in the source's order
  std::vector<Group> axes_;  // of the result
  std::vector<Expr> dims_;   // of the result
};

}  // namespace tenon::graph
