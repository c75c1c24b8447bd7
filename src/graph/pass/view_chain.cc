// Reshapes, slices and transposes, multiplied out.
//
// The chain is kept as the source's axes cut into atoms (each with its size, and first, count and
// step of what is read of it), and the result's axes as groups of atoms. A transpose permutes the
// groups. A slice narrows an atom, if its axis is one (neighbours in the source are made one
// first). A reshape regroups: walking old and new axes side by side, it splits an atom where a new
// axis ends inside of it. Building goes the other way: of three ways to cut the source (as the
// source has it, as the result needs it, in runs as long as both allow), the one with the fewest
// nodes. So
//
//   %1: f32[5, 3, 3, 4] = reshape(%0) {shape: [5, 3, 3, 4]}
//   %2: f32[3, 3, 5, 4] = transpose(%1) {perm: [1, 2, 0, 3]}
//   %3: f32[1, 3, 5, 4] = slice(%2) {starts: [1, 0, 0, 0], …}
//   %4: f32[3, 5, 4] = reshape(%3) {shape: [3, 5, 4]}
//   %5: f32[3, 5, 2] = slice(%4) {starts: [0, 0, 3], sizes: [3, 5, 2], steps: [1, 1, -2]}
//
// becomes one of each, with the slice in front, where it makes the transpose smaller:
//
//   %3: f32[5, 3, 3, 4] = reshape(%0) {shape: [5, 3, 3, 4]}
//   %4: f32[5, 1, 3, 2] = slice(%3) {starts: [0, 1, 0, 3], sizes: [5, 1, 3, 2], …}
//   %5: f32[1, 3, 5, 2] = transpose(%4) {perm: [1, 2, 0, 3]}
//   %6: f32[3, 5, 2] = reshape(%5) {shape: [3, 5, 2]}

#include "graph/pass/view_chain.h"

#include <algorithm>
#include <numeric>

#include "graph/dims.h"

namespace tenon::graph {

namespace {

// a / b, where b divides a for certain.
std::optional<Expr> Quotient(const Expr& a, const Expr& b) {
  Expr q = DimFloorDiv(a, b);
  if (ProveEqual(DimMul(q, b), a)) return q;
  return std::nullopt;
}

bool SameDims(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return ProveEqual(x, y); });
}

}  // namespace

bool ViewChain::Atom::IsWhole() const {
  return IsZero(start) && step == 1 && ProveEqual(size, count);
}

ViewChain::ViewChain(ValueId source, const TensorType& type)
    : source_(source), source_dims_(type.dims), dims_(type.dims) {
  for (const Expr& d : type.dims) {
    axes_.emplace_back();
    if (IsOne(d)) continue;
    axes_.back().push_back(atoms_.size());
    atoms_.push_back({d, IndexConst(0), d});
  }
}

bool ViewChain::IsLink(const Node& n) {
  return n.op == OpKind::kReshape || n.op == OpKind::kTranspose || n.op == OpKind::kSlice;
}

bool ViewChain::Apply(const Node& n, const std::vector<Expr>& dims) {
  if (std::any_of(dims.begin(), dims.end(), IsZero)) return false;
  dims_ = dims;
  if (n.op == OpKind::kReshape) return Reshape(dims);
  if (n.op == OpKind::kSlice) return Slice(n);
  std::vector<Group> axes;
  for (int64_t from : n.attrs.GetInts("perm")) axes.push_back(axes_[static_cast<size_t>(from)]);
  axes_ = std::move(axes);
  return true;
}

// An atom becomes two, the inner one of size `inner`, which divides it.
void ViewChain::Split(size_t atom, const Expr& outer, const Expr& inner) {
  Atom second{inner, IndexConst(0), inner};
  atoms_[atom] = {outer, IndexConst(0), outer};
  atoms_.insert(atoms_.begin() + static_cast<long>(atom) + 1, second);
  for (Group& axis : axes_) {
    for (size_t i = 0; i < axis.size(); ++i) {
      if (axis[i] > atom) ++axis[i];
      if (axis[i] == atom) axis.insert(axis.begin() + static_cast<long>(++i), atom + 1);
    }
  }
}

bool ViewChain::Reshape(const std::vector<Expr>& dims) {
  std::vector<Group> grouped;
  size_t taken = 0;  // atoms of the old axes, in order, that the new ones have so far
  auto next = [&]() -> std::optional<size_t> {
    size_t skip = taken;
    for (const Group& axis : axes_) {
      if (skip < axis.size()) return axis[skip];
      skip -= axis.size();
    }
    return std::nullopt;
  };
  for (const Expr& d : dims) {
    Group group;
    for (Expr left = d; !IsOne(left);) {
      std::optional<size_t> atom = next();
      if (!atom) return false;
      const Atom a = atoms_[*atom];
      if (std::optional<Expr> more = Quotient(left, a.count)) {
        left = *more;
      } else {
        std::optional<Expr> inner = Quotient(a.count, left);
        if (!inner || !a.IsWhole()) return false;
        for (Group& g : grouped) {
          for (size_t& i : g) i += i > *atom;
        }
        for (size_t& i : group) i += i > *atom;
        Split(*atom, left, *inner);
        left = IndexConst(1);
      }
      group.push_back(*atom);
      ++taken;
    }
    grouped.push_back(std::move(group));
  }
  if (next()) return false;
  axes_ = std::move(grouped);
  return true;
}

// Makes one atom of an axis' several, where they are neighbours in the source too.
bool ViewChain::MergeInto(Group& axis) {
  for (size_t i = 0; i < axis.size(); ++i) {
    if (axis[i] != axis[0] + i || !atoms_[axis[i]].IsWhole()) return false;
  }
  const size_t first = axis[0], more = axis.size() - 1;
  Expr size = SizeOf(axis, false);
  atoms_[first] = {size, IndexConst(0), size};
  atoms_.erase(atoms_.begin() + static_cast<long>(first) + 1,
               atoms_.begin() + static_cast<long>(first + 1 + more));
  axis = {first};
  for (Group& other : axes_) {
    for (size_t& i : other) i -= i > first ? more : 0;
  }
  return true;
}

bool ViewChain::Slice(const Node& n) {
  const std::vector<Expr>&starts = n.exprs.at("starts"), &sizes = n.exprs.at("sizes");
  const std::vector<int64_t> steps = n.attrs.GetInts("steps");
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].empty()) continue;
    if (IsZero(starts[i]) && steps[i] == 1 && ProveEqual(sizes[i], SizeOf(axes_[i], true)))
      continue;
    if (axes_[i].size() > 1 && !MergeInto(axes_[i])) return false;
    Atom& a = atoms_[axes_[i][0]];
    a.start = DimAdd(a.start, DimMul(starts[i], IndexConst(a.step)));
    a.count = sizes[i];
    a.step *= steps[i];
    if (IsOne(a.count)) {
      a.step = 1;
      axes_[i].clear();
    }
  }
  return true;
}

// Sliced down to one coordinate, so that no axis of the result has it.
bool ViewChain::IsDropped(size_t atom) const { return IsOne(atoms_[atom].count); }

Expr ViewChain::SizeOf(const Group& group, bool sliced) const {
  Expr size = IndexConst(1);
  for (size_t i : group) size = DimMul(size, sliced ? atoms_[i].count : atoms_[i].size);
  return size;
}

// Axes as the source has them; none where an atom spans several.
std::vector<ViewChain::Group> ViewChain::CutAsSource() const {
  std::vector<Group> cut;
  size_t next = 0;
  for (const Expr& d : source_dims_) {
    cut.emplace_back();
    for (Expr left = d; !IsOne(left); ++next) {
      std::optional<Expr> more =
          next < atoms_.size() ? Quotient(left, atoms_[next].size) : std::nullopt;
      if (!more) return {};
      cut.back().push_back(next);
      left = *more;
    }
  }
  return cut;
}

// Axes as the result has them, in the source's order; axes of dim 1 stay behind what they follow.
std::vector<ViewChain::Group> ViewChain::CutAsResult() const {
  std::vector<std::pair<size_t, Group>> placed;
  size_t behind = 0;
  for (const Group& axis : axes_) {
    if (!axis.empty()) behind = axis[0] + 1;
    placed.emplace_back(behind, axis);
  }
  for (size_t a = 0; a < atoms_.size(); ++a) {
    if (IsDropped(a)) placed.push_back({a + 1, {a}});
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Group> cut;
  for (auto& [at, group] : placed) cut.push_back(std::move(group));
  return cut;
}

// Axes as long as source and result both allow.
std::vector<ViewChain::Group> ViewChain::CutInRuns() const {
  std::vector<size_t> follows(atoms_.size(),
                              atoms_.size());  // the atom before each one in the result
  size_t before = atoms_.size();
  for (const Group& axis : axes_) {
    for (size_t a : axis) {
      follows[a] = before;
      before = a;
    }
  }
  std::vector<Group> cut;
  for (size_t a = 0; a < atoms_.size(); ++a) {
    const bool joins =
        a > 0 && follows[a] == a - 1 && atoms_[a].IsWhole() && atoms_[a - 1].IsWhole();
    if (!joins) cut.emplace_back();
    cut.back().push_back(a);
  }
  return cut;
}

// Orders the axes as the result wants them. Axes of dim 1 go where it has such, and, left over, to
// the front.
void ViewChain::Permute(Plan* plan) const {
  std::vector<int64_t> order;  // axes of the cut that survive, by their place in the result
  std::vector<int64_t> units;
  std::vector<int64_t> axis_of(atoms_.size(), -1);
  for (size_t i = 0; i < plan->cut.size(); ++i) {
    const Group& group = plan->cut[i];
    if (group.empty() || (group.size() == 1 && IsDropped(group[0]))) {
      units.push_back(static_cast<int64_t>(i));
    } else {
      axis_of[group[0]] = static_cast<int64_t>(i);
    }
  }
  size_t used = 0;
  for (const Group& axis : axes_) {
    if (axis.empty() && used < units.size()) plan->perm.push_back(units[used++]);
    for (size_t a : axis) {
      if (axis_of[a] < 0) continue;
      plan->perm.push_back(axis_of[a]);
      order.push_back(axis_of[a]);
    }
  }
  plan->perm.insert(plan->perm.begin(), units.begin() + static_cast<long>(used), units.end());
  plan->transposes = !std::is_sorted(order.begin(), order.end());
  // Moving axes of dim 1 alone is a reshape.
  if (!plan->transposes) std::iota(plan->perm.begin(), plan->perm.end(), 0);
}

std::optional<ViewChain::Plan> ViewChain::PlanFor(std::vector<Group> cut) const {
  std::vector<size_t> place(atoms_.size());  // in the result
  size_t count = 0;
  for (const Group& axis : axes_) {
    for (size_t a : axis) place[a] = count++;
  }
  std::vector<Expr> first, sliced;
  Plan plan;
  for (const Group& group : cut) {
    for (size_t i = 0; i < group.size(); ++i) {
      if (group.size() > 1 && !atoms_[group[i]].IsWhole()) return std::nullopt;
      if (i == 0) continue;
      if (group[i] != group[0] + i || place[group[i]] != place[group[0]] + i) return std::nullopt;
    }
    first.push_back(SizeOf(group, false));
    sliced.push_back(SizeOf(group, true));
  }
  plan.cut = std::move(cut);
  Permute(&plan);
  std::vector<Expr> permuted;
  for (int64_t i : plan.perm) permuted.push_back(sliced[static_cast<size_t>(i)]);
  plan.slices =
      std::any_of(atoms_.begin(), atoms_.end(), [](const Atom& a) { return !a.IsWhole(); });
  plan.reshapes_first = !SameDims(first, source_dims_);
  plan.reshapes_last = !SameDims(permuted, dims_);
  return plan;
}

ViewChain::Plan ViewChain::Best() const {
  Plan best = *PlanFor(CutInRuns());
  for (std::vector<Group> cut : {CutAsResult(), CutAsSource()}) {
    if (cut.empty()) continue;
    std::optional<Plan> plan = PlanFor(std::move(cut));
    if (plan && plan->Length() <= best.Length()) best = std::move(*plan);
  }
  return best;
}

int ViewChain::Length() const { return Best().Length(); }

Expected<ValueId> ViewChain::Build(Builder& b, std::string name) const {
  const Plan plan = Best();
  ExprAttrs cut, slice, last;
  std::vector<int64_t> steps;
  for (const Group& group : plan.cut) {
    const Atom* sliced = group.size() == 1 ? &atoms_[group[0]] : nullptr;
    cut["shape"].push_back(SizeOf(group, false));
    slice["starts"].push_back(sliced ? sliced->start : IndexConst(0));
    slice["sizes"].push_back(SizeOf(group, true));
    steps.push_back(sliced ? sliced->step : 1);
  }
  last["shape"] = dims_;
  ValueId v = source_;
  if (plan.reshapes_first) {
    TN_ASSIGN_OR_RETURN(v, b.Add(OpKind::kReshape, {v}, name, {}, cut));
  }
  if (plan.slices) {
    TN_ASSIGN_OR_RETURN(v, b.Add(OpKind::kSlice, {v}, name, {{"steps", steps}}, slice));
  }
  if (plan.transposes) {
    TN_ASSIGN_OR_RETURN(v, b.Add(OpKind::kTranspose, {v}, name, {{"perm", plan.perm}}));
  }
  return plan.reshapes_last ? b.Add(OpKind::kReshape, {v}, name, {}, last) : v;
}

}  // namespace tenon::graph
