// Ensembles of trees.
//
// All trees are one table of nodes: which feature a node looks at, how it compares it with what,
// and where it goes in either case. A leaf goes to itself, so after as many steps as the deepest
// tree has levels every tree of every row is at a leaf, and a step is the same gathers for all of
// them:
//
//   at: i32[rows, trees]        begins at the roots
//   value = x[row, feature[at]]
//   at = next[2 * at + (value compares with split[at])]
//
// Trees that leaf by leaf grew differ in depth: those that have ended take no part in further
// steps.
//
// What a leaf gives is a number where each tree gives for one target, as boosted trees do: those of
// a target are side by side then, and are put together. Otherwise it is a row of a table of
// weights. The table of nodes is checked here: places of nodes are in it, and every tree ends.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <unordered_map>

#include "frontend/onnx/ops_ml.h"

namespace tenon::onnx {
namespace {

enum Mode : int64_t { kLeq, kLess, kGeq, kGreater, kEq, kNeq, kMember, kLeaf };

struct Ensemble {
  std::vector<int64_t> feature, mode, yes, no, roots;
  std::vector<bool> missing_is_yes;
  std::vector<double> split;
  std::unordered_map<int64_t, std::vector<double>> members;  // of nodes of kMember
  struct Weight {
    int64_t node, target;
    double value;
  };
  std::vector<Weight> weights;
  int64_t targets = 1;
  std::vector<int64_t> height;  // of the nodes: how many steps there are below at most

  size_t size() const { return mode.size(); }
  // A leaf; where it goes is itself.
  int64_t AddLeaf() {
    const auto at = static_cast<int64_t>(size());
    AddNode(0, kLeaf, 0, false);
    yes[static_cast<size_t>(at)] = no[static_cast<size_t>(at)] = at;
    return at;
  }
  void AddNode(int64_t of, int64_t how, double by, bool missing) {
    feature.push_back(of);
    mode.push_back(how);
    split.push_back(by);
    missing_is_yes.push_back(missing);
    yes.push_back(0);
    no.push_back(0);
  }
};

// Finds the heights. Errors: nodes out of the table, and paths that come back to where they were.
Status CheckTrees(OpContext& c, Ensemble* e) {
  constexpr int kUnseen = -1, kOpen = -2;
  std::vector<int64_t>& height = e->height;
  height.assign(e->size(), kUnseen);
  for (int64_t root : e->roots) {
    if (root < 0 || root >= static_cast<int64_t>(e->size()))
      return c.Error("expected roots among {} nodes, but got {}", e->size(), root);
    std::vector<int64_t> path = {root};
    while (!path.empty()) {
      const auto at = static_cast<size_t>(path.back());
      if (height[at] >= 0) {
        path.pop_back();
        continue;
      }
      if (e->mode[at] == kLeaf) {
        height[at] = 0;
        continue;
      }
      int64_t below = 0;
      bool ready = true;
      for (int64_t next : {e->yes[at], e->no[at]}) {
        if (next < 0 || next >= static_cast<int64_t>(e->size()))
          return c.Error("expected node ids below {}, but got {}", e->size(), next);
        const int64_t of_next = height[static_cast<size_t>(next)];
        if (of_next == kOpen) return c.Error("the nodes of a tree form a cycle at node {}", next);
        if (of_next < 0) {
          height[at] = kOpen;
          path.push_back(next);
          ready = false;
          break;
        }
        below = std::max(below, of_next);
      }
      if (ready) height[at] = below + 1;
    }
  }
  return Ok();
}

Val Numbers(const Formula& f, const std::vector<double>& list, DType type) {
  TensorType t{type, {IndexConst(static_cast<int64_t>(list.size()))}};
  return f.Of(f.builder().Constant(f.name(), t, graph::MakePayload(type, std::span(list))));
}

// A table of nodes; there are fewer than 2^26 of them.
Val Places(const Formula& f, const std::vector<int64_t>& list) {
  return Numbers(f, std::vector<double>(list.begin(), list.end()), DType::Int(32));
}

// How the nodes compare that are no leaves.
std::vector<int64_t> ModesOf(const Ensemble& e) {
  std::vector<int64_t> used;
  for (int64_t m = kLeq; m < kLeaf; ++m) {
    if (std::find(e.mode.begin(), e.mode.end(), m) != e.mode.end()) used.push_back(m);
  }
  return used;
}

// Whether values compare with the splits of the nodes that they are at.
Val Compare(int64_t mode, const Val& value, const Val& split, const Val& members) {
  switch (mode) {
    case kLeq: return value <= split;
    case kLess: return value < split;
    case kGeq: return value >= split;
    case kGreater: return value > split;
    case kEq: return Equal(value, split);
    case kNeq: return Not(Equal(value, split));
    default:
      return Reduce("max", Cast(Equal(Unsqueeze(value, value.rank()), members), DType::Int(32)),
                    {-1}, false) > 0;
  }
}

// The lists of members, all of the longest one's length: NaN is equal to nothing.
Val MembersOf(const Formula& f, const Ensemble& e, DType type) {
  size_t most = 1;
  for (const auto& [node, list] : e.members) most = std::max(most, list.size());
  std::vector<double> all(e.size() * most, std::numeric_limits<double>::quiet_NaN());
  for (const auto& [node, list] : e.members)
    std::copy(list.begin(), list.end(), all.begin() + node * static_cast<int64_t>(most));
  return Reshape(Numbers(f, all, type), {IndexConst(static_cast<int64_t>(e.size())),
                                         IndexConst(static_cast<int64_t>(most))});
}

// Steps that the first trees take, which are the highest, from where all trees were left before.
struct Stretch {
  int64_t trees, steps;
};

// Heights, the largest first, as stretches: each ends where letting trees go spares most, and if
// that is a fifth at least of what is left to do.
std::vector<Stretch> StretchesOf(const std::vector<int64_t>& heights) {
  std::vector<Stretch> out;
  auto trees = static_cast<int64_t>(heights.size());
  int64_t done = 0;
  constexpr size_t kMost = 4;
  while (trees > 0 && heights[0] > done) {
    const int64_t all = trees * (heights[0] - done);
    Stretch best{trees, heights[0] - done};
    int64_t least = all - all / 5, left = 0;
    for (int64_t k = 1; k < trees && out.size() + 1 < kMost; ++k) {
      const int64_t cut = heights[static_cast<size_t>(k)];  // of the first that may end here
      if (cut <= done) break;
      const int64_t cost = trees * (cut - done) + k * (heights[0] - cut);
      if (cost < least) least = cost, best = {trees, cut - done}, left = k;
    }
    out.push_back(best);
    done += best.steps, trees = left;
  }
  return out;
}

// The leaf of each tree that each row comes to: i32[rows, trees]. `roots` are those of the trees in
// any order. At a leaf it does not matter how it compares.
Val Walk(const Formula& f, const Val& x, const Ensemble& e, const std::vector<int64_t>& roots) {
  std::vector<size_t> order(roots.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto height = [&](size_t tree) { return e.height[static_cast<size_t>(roots[tree])]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return height(a) > height(b); });
  std::vector<int64_t> heights;
  for (size_t tree : order) heights.push_back(height(tree));
  const std::vector<Stretch> stretches = StretchesOf(heights);
  if (stretches.size() < 2) std::iota(order.begin(), order.end(), size_t{0});
  std::vector<int64_t> begins, back(roots.size());
  for (size_t i = 0; i < order.size(); ++i) {
    begins.push_back(roots[order[i]]);
    back[order[i]] = static_cast<int64_t>(i);
  }
  const DType type = x.dtype();
  std::vector<int64_t> ways(2 * e.size());
  for (size_t i = 0; i < e.size(); ++i) ways[2 * i] = e.no[i], ways[2 * i + 1] = e.yes[i];
  const std::vector<int64_t> modes = ModesOf(e);
  std::vector<Val> captured;
  auto capture = [&](const Val& v) {
    captured.push_back(v);
    return captured.size() - 1;
  };
  const size_t row = capture(x), feature = capture(Places(f, e.feature));
  const size_t split = capture(Numbers(f, e.split, type)), next = capture(Places(f, ways));
  const size_t mode = modes.size() > 1 ? capture(Places(f, e.mode)) : 0;
  const bool by_member = !modes.empty() && modes.back() == kMember;
  const size_t members = by_member ? capture(MembersOf(f, e, type)) : 0;
  const bool any_missing =
      std::find(e.missing_is_yes.begin(), e.missing_is_yes.end(), true) != e.missing_is_yes.end();
  const std::vector<int64_t> flags(e.missing_is_yes.begin(), e.missing_is_yes.end());
  const size_t missing = any_missing ? capture(Places(f, flags)) : 0;
  auto step = [&](const Val&, const std::vector<Val>& carried, const std::vector<Val>& in) {
    const Val& at = carried[0];
    const Val value = GatherElements(in[row], Gather(in[feature], at, 0), 1);
    const Val by = Gather(in[split], at, 0);
    const Val how = modes.size() > 1 ? Gather(in[mode], at, 0) : Val();
    const Val list = by_member ? Gather(in[members], at, 0) : Val();
    Val holds;
    for (int64_t m : modes) {
      const Val one = Compare(m, value, by, list);
      holds = holds ? Where(Equal(how, static_cast<double>(m)), one, holds) : one;
    }
    if (any_missing)
      holds = holds | (Apply(OpKind::kIsNan, value) & (Gather(in[missing], at, 0) > 0));
    return std::vector<Val>{Gather(in[next], at * 2 + Cast(holds, at.dtype()), 0)};
  };
  const auto count = static_cast<int64_t>(roots.size());
  Val at = Expand(Places(f, begins), {x.dim(0), IndexConst(count)});
  std::vector<Val> ended;  // of the trees behind those that go on, from the last ones
  for (const Stretch& s : stretches) {
    const int64_t before = *AsInt(at.dim(1));
    if (s.trees < before) {
      ended.push_back(Slice(at, 1, IndexConst(s.trees), IndexConst(before - s.trees)));
      at = Slice(at, 1, IndexConst(0), IndexConst(s.trees));
    }
    at = Loop(f, IndexConst(s.steps), {at}, captured, step)[0];
  }
  if (ended.empty()) return at;
  ended.push_back(at);
  std::reverse(ended.begin(), ended.end());
  return Gather(Concat(ended, 1), f.Ints(back), 1);
}

// The one target of each tree's leaves; nothing where a tree gives for several, or where trees
// share so much that they are not to be walked one by one.
std::optional<std::vector<int64_t>> TargetsOfTrees(const Ensemble& e) {
  constexpr int64_t kNone = -1;
  std::vector<int64_t> of_node(e.size(), kNone), seen(e.size(), kNone), of_tree;
  for (const Ensemble::Weight& w : e.weights) {
    int64_t& target = of_node[static_cast<size_t>(w.node)];
    if (target != kNone && target != w.target) return std::nullopt;
    target = w.target;
  }
  size_t walked = 0;
  for (int64_t root : e.roots) {
    const auto tree = static_cast<int64_t>(of_tree.size());
    int64_t target = kNone;
    std::vector<int64_t> open = {root};
    while (!open.empty()) {
      const auto at = static_cast<size_t>(open.back());
      open.pop_back();
      if (seen[at] == tree) continue;
      seen[at] = tree;
      if (++walked > 4 * e.size() + e.roots.size()) return std::nullopt;
      if (e.mode[at] != kLeaf) {
        open.insert(open.end(), {e.yes[at], e.no[at]});
      } else if (of_node[at] != kNone) {
        if (target != kNone && target != of_node[at]) return std::nullopt;
        target = of_node[at];
      }
    }
    of_tree.push_back(std::max<int64_t>(target, 0));
  }
  return of_tree;
}

// Which trees there are for each target that has some, all of them equally many.
struct Grouping {
  std::vector<int64_t> roots;    // target by target
  std::vector<int64_t> targets;  // those that there are trees for, ascending
};
std::optional<Grouping> GroupByTarget(const Ensemble& e) {
  const auto of_tree = TargetsOfTrees(e);
  if (!of_tree || of_tree->empty()) return std::nullopt;
  std::vector<size_t> order(of_tree->size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return (*of_tree)[a] < (*of_tree)[b]; });
  Grouping g;
  for (size_t tree : order) {
    g.roots.push_back(e.roots[tree]);
    if (g.targets.empty() || g.targets.back() != (*of_tree)[tree])
      g.targets.push_back((*of_tree)[tree]);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t place = i * g.targets.size() / order.size();
    if ((*of_tree)[order[i]] != g.targets[place]) return std::nullopt;
  }
  return g;
}

Val WithBase(const Formula& f, const Val& scores, const std::vector<double>& base) {
  return base.empty() ? scores : scores + Numbers(f, base, scores.dtype());
}

// What leaves give, as they are reached: values[rows, …, trees, targets], and which of them there
// are, where that is asked for.
struct Given {
  Val values, any;
};

// Trees' results put together along an axis. A leaf that has no weight for a target has no part in
// the least or the largest, and what no leaf gives is 0.
Val Combine(const std::string& how, const Given& given, int64_t axis, double trees) {
  if (how == "AVERAGE") return Sum(given.values, {axis}, false) / trees;
  if (how == "SUM") return Sum(given.values, {axis}, false);
  const Val picked = Reduce(how == "MIN" ? "min" : "max", given.values, {axis}, false);
  return Where(Reduce("max", given.any, {axis}, false) > 0, picked, 0);
}

// The weights as a table of `width` numbers for each node, at the leaves; `width` is 1 or that of
// the targets.
Given AtLeaves(const Formula& f, const Ensemble& e, const std::string& how, DType type,
               const Val& leaves, int64_t width) {
  const bool picks = how == "MIN" || how == "MAX";
  std::vector<double> weights(e.size() * static_cast<size_t>(width), 0), gives;
  if (picks) gives = weights;
  auto place = [&](const Ensemble::Weight& w) {
    return static_cast<size_t>(w.node * width + (width > 1 ? w.target : 0));
  };
  for (const Ensemble::Weight& w : e.weights) {
    weights[place(w)] += w.value;
    if (picks) gives[place(w)] = 1;
  }
  const double none = std::numeric_limits<double>::infinity() * (how == "MIN" ? 1 : -1);
  for (size_t i = 0; i < gives.size(); ++i) {
    if (gives[i] == 0) weights[i] = none;
  }
  auto table = [&](const std::vector<double>& list) {
    if (list.empty()) return Val();
    Val rows = Numbers(f, list, type);
    if (width > 1)
      rows = Reshape(rows, {IndexConst(static_cast<int64_t>(e.size())), IndexConst(width)});
    return Gather(rows, leaves, 0);
  };
  return {table(weights), table(gives)};
}

// Trees' results put together, and a number for each target added: [rows, targets].
Val Aggregate(const Formula& f, const Val& x, const Ensemble& e, const std::string& how,
              const std::vector<double>& base) {
  const auto trees = static_cast<double>(e.roots.size());
  const auto grouping = GroupByTarget(e);
  if (!grouping) {
    const Given given = AtLeaves(f, e, how, x.dtype(), Walk(f, x, e, e.roots), e.targets);
    if (e.targets > 1) return WithBase(f, Combine(how, given, 1, trees), base);
    return WithBase(f, Unsqueeze(Combine(how, given, 1, trees), 1), base);
  }
  const auto there = static_cast<int64_t>(grouping->targets.size());
  const auto each = static_cast<int64_t>(e.roots.size()) / there;
  const Val leaves =
      Reshape(Walk(f, x, e, grouping->roots), {x.dim(0), IndexConst(there), IndexConst(each)});
  Val scores = Combine(how, AtLeaves(f, e, how, x.dtype(), leaves, 1), 2, trees);
  if (there < e.targets) {
    std::vector<int64_t> from(static_cast<size_t>(e.targets), there);  // a column of zeros
    for (int64_t i = 0; i < there; ++i) from[static_cast<size_t>(grouping->targets[i])] = i;
    scores = Gather(Pad(scores, 1, 0, 1), f.Ints(from), 1);
  }
  return WithBase(f, scores, base);
}

Expected<std::string> AggregateName(OpContext& c, const std::string& name) {
  if (name == "SUM" || name == "AVERAGE" || name == "MIN" || name == "MAX") return name;
  return c.Error("expected aggregate_function to be SUM, AVERAGE, MIN or MAX, but got '{}'", name);
}

// Weights may be a table: nodes by targets.
Status CheckTargets(OpContext& c, const Ensemble& e) {
  constexpr size_t kMost = size_t{1} << 26;
  if (e.targets < 1 || e.size() > kMost / static_cast<size_t>(e.targets))
    return c.Error("expected at most {} nodes times results", kMost);
  return Ok();
}

Status AddWeight(OpContext& c, Ensemble* e, int64_t node, int64_t target, double weight) {
  if (target < 0 || target >= e->targets)
    return c.Error("expected results below {}, but got {}", e->targets, target);
  e->weights.push_back({node, target, weight});
  return Ok();
}

// Features are those of the input; an open number of them is one of the call's that has all.
Status CheckFeatures(OpContext& c, const Ensemble& e, const Val& x) {
  const auto features = AsInt(x.dim(1));
  int64_t last = -1;
  for (int64_t i : e.feature) {
    if (i < 0 || (features && i >= *features))
      return c.Error("expected features below {}, but got {}", features.value_or(0), i);
    last = std::max(last, i);
  }
  if (!features) c.b.Require(Gt(x.dim(1), IndexConst(last)));
  return Ok();
}

Val FeaturesOf(const Formula& f) {
  const Val x = RowsOf(f.In(0));
  return x.dtype() == DType::Float(64) ? x : Cast(x, DType::Float(32));
}

Expected<std::vector<double>> Reals(OpContext& c, const char* name) {
  TN_ASSIGN_OR_RETURN(auto floats, c.Floats(name));
  if (floats) return *floats;
  TN_ASSIGN_OR_RETURN(std::optional<Tensor> tensor,
                      c.TensorAttr((std::string(name) + "_as_tensor").c_str()));
  if (!tensor) return std::vector<double>();
  graph::Value v;
  v.type = tensor->type;
  v.payload = tensor->payload;
  const auto list = graph::ReadFloats(v, int64_t{1} << 32);
  if (!list) return c.Error("expected floats in {}_as_tensor", name);
  return *list;
}

Expected<std::vector<int64_t>> IntList(OpContext& c, const char* name, size_t size) {
  TN_ASSIGN_OR_RETURN(const auto list, c.Ints(name));
  const size_t got = list ? list->size() : 0;
  if (got != size) return c.Error("expected {} entries in {}, but got {}", size, name, got);
  if (size == 0) return std::vector<int64_t>();
  return *list;
}

// The trees of TreeEnsembleRegressor and TreeEnsembleClassifier; `prefix`: target, or class.
Expected<Ensemble> ReadOldEnsemble(OpContext& c, const std::string& prefix, int64_t targets) {
  static const std::map<std::string, int64_t, std::less<>> kModes = {
      {"BRANCH_LEQ", kLeq}, {"BRANCH_LT", kLess}, {"BRANCH_GTE", kGeq}, {"BRANCH_GT", kGreater},
      {"BRANCH_EQ", kEq},   {"BRANCH_NEQ", kNeq}, {"LEAF", kLeaf}};
  Ensemble e;
  e.targets = targets;
  TN_ASSIGN_OR_RETURN(const auto modes, c.Strings("nodes_modes"));
  const size_t n = modes.size();
  if (n == 0) return c.Error("expected nodes of trees in nodes_modes, but there are none");
  TN_ASSIGN_OR_RETURN(const auto trees, IntList(c, "nodes_treeids", n));
  TN_ASSIGN_OR_RETURN(const auto nodes, IntList(c, "nodes_nodeids", n));
  TN_ASSIGN_OR_RETURN(const auto features, IntList(c, "nodes_featureids", n));
  TN_ASSIGN_OR_RETURN(const auto yes, IntList(c, "nodes_truenodeids", n));
  TN_ASSIGN_OR_RETURN(const auto no, IntList(c, "nodes_falsenodeids", n));
  TN_ASSIGN_OR_RETURN(const auto values, Reals(c, "nodes_values"));
  TN_RETURN_IF_ERROR(Reals(c, "nodes_hitrates"));
  TN_ASSIGN_OR_RETURN(const auto missing, c.Ints("nodes_missing_value_tracks_true"));
  if (values.size() != n) return c.Error("expected {} entries in nodes_values", n);
  if (missing && !missing->empty() && missing->size() != n)
    return c.Error("expected {} entries in nodes_missing_value_tracks_true", n);
  // Where each node of each tree is; converters write them in this order.
  std::vector<std::array<int64_t, 3>> places(n);
  for (size_t i = 0; i < n; ++i) places[i] = {trees[i], nodes[i], static_cast<int64_t>(i)};
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < n; ++i) {
    if (places[i][0] == places[i - 1][0] && places[i][1] == places[i - 1][1])
      return c.Error("node {} of tree {} is defined twice", places[i][1], places[i][0]);
  }
  for (size_t i = 0; i < n; ++i) {
    const auto mode = kModes.find(modes[i]);
    if (mode == kModes.end()) return c.Error("unknown mode '{}' of node {}", modes[i], nodes[i]);
    const bool leaf = mode->second == kLeaf;
    const bool tracks = missing && !missing->empty() && (*missing)[i] != 0;
    e.AddNode(leaf ? 0 : features[i], mode->second, values[i], tracks && !leaf);
    if (i == 0 || trees[i] != trees[i - 1]) e.roots.push_back(static_cast<int64_t>(i));
  }
  auto place = [&](int64_t tree, int64_t node) {
    const auto it =
        std::lower_bound(places.begin(), places.end(), std::array<int64_t, 3>{tree, node, 0});
    return it != places.end() && (*it)[0] == tree && (*it)[1] == node ? (*it)[2] : -1;
  };
  for (size_t i = 0; i < n; ++i) {
    const bool leaf = e.mode[i] == kLeaf;
    e.yes[i] = leaf ? static_cast<int64_t>(i) : place(trees[i], yes[i]);
    e.no[i] = leaf ? static_cast<int64_t>(i) : place(trees[i], no[i]);
  }
  TN_ASSIGN_OR_RETURN(const auto weights, Reals(c, (prefix + "_weights").c_str()));
  TN_ASSIGN_OR_RETURN(const auto ids, IntList(c, (prefix + "_ids").c_str(), weights.size()));
  TN_ASSIGN_OR_RETURN(const auto of_tree,
                      IntList(c, (prefix + "_treeids").c_str(), weights.size()));
  TN_ASSIGN_OR_RETURN(const auto of_node,
                      IntList(c, (prefix + "_nodeids").c_str(), weights.size()));
  TN_RETURN_IF_ERROR(CheckTargets(c, e));
  for (size_t i = 0; i < weights.size(); ++i) {
    const int64_t at = place(of_tree[i], of_node[i]);
    if (at < 0)
      return c.Error("a weight is of node {} of tree {}, which there is not", of_node[i],
                     of_tree[i]);
    TN_RETURN_IF_ERROR(AddWeight(c, &e, at, ids[i], weights[i]));
  }
  TN_RETURN_IF_ERROR(CheckTrees(c, &e));
  return e;
}

Status ImportTreeRegressor(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const int64_t targets, c.Int("n_targets", 1));
  TN_ASSIGN_OR_RETURN(const std::string how, c.String("aggregate_function", "SUM"));
  TN_RETURN_IF_ERROR(AggregateName(c, how));
  TN_ASSIGN_OR_RETURN(const std::string post, c.String("post_transform", "NONE"));
  TN_ASSIGN_OR_RETURN(const auto base, Reals(c, "base_values"));
  TN_ASSIGN_OR_RETURN(const Ensemble e, ReadOldEnsemble(c, "target", targets));
  if (!base.empty() && base.size() != static_cast<size_t>(targets))
    return c.Error("expected {} base values, but got {}", targets, base.size());
  const Formula f(c);
  const Val x = FeaturesOf(f);
  TN_RETURN_IF_ERROR(CheckFeatures(c, e, x));
  const Val scores = Cast(Aggregate(f, x, e, how, base), DType::Float(32));
  TN_ASSIGN_OR_RETURN(const Val out, PostTransform(c, scores, post));
  return f.Result(out);
}

Status ImportTreeClassifier(OpContext& c) {
  TN_ASSIGN_OR_RETURN(const Classifier classifier, ReadClassifier(c, "classlabels_int64s"));
  const ClassLabels& labels = classifier.labels;
  TN_ASSIGN_OR_RETURN(const auto base, Reals(c, "base_values"));
  const auto classes = static_cast<int64_t>(labels.list.size());
  TN_ASSIGN_OR_RETURN(const Ensemble e, ReadOldEnsemble(c, "class", classes));
  TN_ASSIGN_OR_RETURN(const auto ids, c.Ints("class_ids"));
  TN_ASSIGN_OR_RETURN(const auto weights, Reals(c, "class_weights"));
  const Formula f(c);
  const Val x = FeaturesOf(f);
  TN_RETURN_IF_ERROR(CheckFeatures(c, e, x));
  Val scores = Aggregate(f, x, e, "SUM", {});
  // Of two classes one may have all the weights.
  const int64_t only = ids && !ids->empty() ? ids->front() : 0;
  const bool single = classes == 2 && ids && base.size() < 2 &&
                      std::all_of(ids->begin(), ids->end(), [&](int64_t id) { return id == only; });
  if (single) {
    const bool positive =
        std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0; });
    const Val one = Cast(WithBase(f, Slice(scores, 1, IndexConst(only), IndexConst(1)), base),
                         DType::Float(32));
    return SetTwoClasses(c, classifier, one, positive);
  }
  if (!base.empty() && base.size() != labels.list.size())
    return c.Error("expected {} base values, but got {}", classes, base.size());
  return SetBestClass(c, classifier, Cast(WithBase(f, scores, base), DType::Float(32)));
}

// The elements of a tensor of the attributes, of floats or of small integers.
Expected<std::vector<double>> TensorNumbers(OpContext& c, const char* name) {
  TN_ASSIGN_OR_RETURN(std::optional<Tensor> tensor, c.TensorAttr(name));
  if (!tensor) return std::vector<double>();
  graph::Value v;
  v.type = tensor->type;
  v.payload = tensor->payload;
  if (const auto floats = graph::ReadFloats(v, int64_t{1} << 32)) return *floats;
  const auto ints = graph::ReadInts(v, int64_t{1} << 32);
  if (!ints) return c.Error("expected numbers in {}", name);
  return std::vector<double>(ints->begin(), ints->end());
}

Status ImportTreeEnsemble(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  static const char* const kHow[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  static const char* const kPost[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  TN_ASSIGN_OR_RETURN(const int64_t how, c.Int("aggregate_function", 1));
  TN_ASSIGN_OR_RETURN(const int64_t post, c.Int("post_transform", 0));
  if (how < 0 || how > 3 || post < 0 || post > 4)
    return c.Error("expected aggregate_function in 0..3 and post_transform in 0..4");
  Ensemble e;
  TN_ASSIGN_OR_RETURN(e.targets, c.Int("n_targets", 1));
  TN_ASSIGN_OR_RETURN(const auto modes, TensorNumbers(c, "nodes_modes"));
  const size_t n = modes.size();
  TN_ASSIGN_OR_RETURN(const auto splits, TensorNumbers(c, "nodes_splits"));
  TN_ASSIGN_OR_RETURN(const auto features, IntList(c, "nodes_featureids", n));
  TN_ASSIGN_OR_RETURN(const auto yes, IntList(c, "nodes_truenodeids", n));
  TN_ASSIGN_OR_RETURN(const auto no, IntList(c, "nodes_falsenodeids", n));
  TN_ASSIGN_OR_RETURN(const auto yes_is_leaf, IntList(c, "nodes_trueleafs", n));
  TN_ASSIGN_OR_RETURN(const auto no_is_leaf, IntList(c, "nodes_falseleafs", n));
  TN_ASSIGN_OR_RETURN(const auto missing, c.Ints("nodes_missing_value_tracks_true"));
  TN_RETURN_IF_ERROR(TensorNumbers(c, "nodes_hitrates"));
  TN_ASSIGN_OR_RETURN(const auto members, TensorNumbers(c, "membership_values"));
  TN_ASSIGN_OR_RETURN(const auto weights, TensorNumbers(c, "leaf_weights"));
  TN_ASSIGN_OR_RETURN(const auto targets, IntList(c, "leaf_targetids", weights.size()));
  TN_ASSIGN_OR_RETURN(const auto roots, c.Ints("tree_roots"));
  if (splits.size() != n || !roots || (missing && !missing->empty() && missing->size() != n))
    return c.Error("expected lists of one length for the {} nodes, and tree_roots", n);
  for (size_t i = 0; i < n; ++i) {
    const auto mode = static_cast<int64_t>(modes[i]);
    if (mode < kLeq || mode > kMember) return c.Error("unknown mode of node {}", i);
    e.AddNode(features[i], mode, splits[i], missing && !missing->empty() && (*missing)[i] != 0);
  }
  for (size_t i = 0; i < weights.size(); ++i) e.AddLeaf();
  auto place = [&](int64_t id, bool leaf) -> Expected<int64_t> {
    const size_t limit = leaf ? weights.size() : n;
    if (id < 0 || static_cast<size_t>(id) >= limit)
      return c.Error("expected {} ids below {}, but got {}", leaf ? "leaf" : "node", limit, id);
    return leaf ? id + static_cast<int64_t>(n) : id;
  };
  // The sets of members stand one behind the other, with a NaN after each.
  auto member = members.begin();
  for (size_t i = 0; i < n; ++i) {
    TN_ASSIGN_OR_RETURN(e.yes[i], place(yes[i], yes_is_leaf[i] != 0));
    TN_ASSIGN_OR_RETURN(e.no[i], place(no[i], no_is_leaf[i] != 0));
    if (e.mode[i] != kMember) continue;
    auto& list = e.members[static_cast<int64_t>(i)];
    for (; member != members.end() && *member == *member; ++member) list.push_back(*member);
    if (member != members.end()) ++member;
  }
  TN_RETURN_IF_ERROR(CheckTargets(c, e));
  for (size_t i = 0; i < weights.size(); ++i)
    TN_RETURN_IF_ERROR(AddWeight(c, &e, static_cast<int64_t>(n + i), targets[i], weights[i]));
  // A root whose both ways are the same leaf stands for a tree that is a leaf.
  for (int64_t root : *roots) {
    TN_ASSIGN_OR_RETURN(const int64_t at, place(root, false));
    e.roots.push_back(at);
  }
  TN_RETURN_IF_ERROR(CheckTrees(c, &e));
  const Formula f(c);
  const Val x = RowsOf(f.In(0));
  TN_RETURN_IF_ERROR(CheckFeatures(c, e, x));
  const Val wide = x.dtype().bits < 32 ? Cast(x, DType::Float(32)) : x;
  TN_ASSIGN_OR_RETURN(const Val out,
                      PostTransform(c, Aggregate(f, wide, e, kHow[how], {}), kPost[post]));
  return f.Result(Cast(out, x.dtype()));
}

constexpr OpRow kRows[] = {
    {.name = "TreeEnsembleRegressor", .since = 1, .import = ImportTreeRegressor, .domain = kMl},
    {.name = "TreeEnsembleClassifier", .since = 1, .import = ImportTreeClassifier, .domain = kMl},
    {.name = "TreeEnsemble", .since = 5, .import = ImportTreeEnsemble, .domain = kMl},
};

}  // namespace

std::span<const OpRow> MlTreeRows() { return kRows; }

}  // namespace tenon::onnx
