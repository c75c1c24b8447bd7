// Ensembles of trees.
//
// All trees are one table of nodes: which feature a node looks at, how it compares it with what,
// and where it goes in either case. A leaf goes to itself, so after as many steps as the deepest
// tree has levels every tree of every row is at a leaf, and a step is the same gathers for all of
// them:
//
//   at: i64[rows, trees]        begins at the roots
//   value = x[row, feature[at]]
//   at = where(value compares with split[at], yes[at], no[at])
//
// What a leaf gives is a row of a table of weights. The table is checked here: places of nodes are
// in it, and every tree ends.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "frontend/onnx/ops_ml.h"

namespace tenon::onnx {
namespace {

enum Mode : int64_t { kLeq, kLess, kGeq, kGreater, kEq, kNeq, kMember, kLeaf };

struct Ensemble {
  std::vector<int64_t> feature, mode, yes, no, roots;
  std::vector<bool> missing_is_yes;
  std::vector<double> split;
  std::vector<std::vector<double>> members;  // of kMember
  std::vector<double> weights;               // [nodes, targets]
  std::vector<bool> gives;                   // whether a leaf has a weight there
  int64_t targets = 1;
  int64_t depth = 0;

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
    members.emplace_back();
  }
};

// Finds the depth. Errors: nodes out of the table, and paths that come back to where they were.
Status CheckTrees(OpContext& c, Ensemble* e) {
  constexpr int kUnseen = -1, kOpen = -2;
  std::vector<int64_t> height(e->size(), kUnseen);
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
    e->depth = std::max(e->depth, height[static_cast<size_t>(root)]);
  }
  return Ok();
}

bool Uses(const Ensemble& e, int64_t mode) {
  return std::find(e.mode.begin(), e.mode.end(), mode) != e.mode.end();
}

Val Numbers(const Formula& f, const std::vector<double>& list, DType type) {
  TensorType t{type, {IndexConst(static_cast<int64_t>(list.size()))}};
  return f.Of(f.builder().Constant(f.name(), t, graph::MakePayload(type, std::span(list))));
}

// Whether values compare with the splits of the nodes that they are at.
Val Compare(const Ensemble& e, int64_t mode, const Val& value, const Val& split,
            const Val& members) {
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

// The leaf of each tree that each row comes to: [rows, trees].
Val Walk(const Formula& f, const Val& x, const Ensemble& e) {
  const DType type = x.dtype();
  const Val feature = f.Ints(e.feature), yes = f.Ints(e.yes), no = f.Ints(e.no);
  const Val mode = f.Ints(e.mode), split = Numbers(f, e.split, type);
  std::vector<Val> captured = {x, feature, yes, no, mode, split};
  size_t most = 1;
  for (const auto& list : e.members) most = std::max(most, list.size());
  if (Uses(e, kMember)) {  // lists of one length; NaN is equal to nothing
    std::vector<double> all;
    for (auto list : e.members) {
      list.resize(most, std::numeric_limits<double>::quiet_NaN());
      all.insert(all.end(), list.begin(), list.end());
    }
    captured.push_back(Reshape(Numbers(f, all, type), {IndexConst(static_cast<int64_t>(e.size())),
                                                       IndexConst(static_cast<int64_t>(most))}));
  }
  const bool any_missing =
      std::find(e.missing_is_yes.begin(), e.missing_is_yes.end(), true) != e.missing_is_yes.end();
  if (any_missing) {
    std::vector<int64_t> flags;
    for (bool b : e.missing_is_yes) flags.push_back(b ? 1 : 0);
    captured.push_back(f.Ints(flags));
  }
  const Val begin =
      Expand(f.Ints(e.roots), {x.dim(0), IndexConst(static_cast<int64_t>(e.roots.size()))});
  auto step = [&](const Val&, const std::vector<Val>& carried, const std::vector<Val>& in) {
    const Val& at = carried[0];
    const Val value = GatherElements(in[0], Gather(in[1], at, 0), 1);
    const Val how = Gather(in[4], at, 0), by = Gather(in[5], at, 0);
    const Val members = Uses(e, kMember) ? Gather(in[6], at, 0) : Val();
    Val holds;
    for (int64_t m = kLeq; m < kLeaf; ++m) {
      if (!Uses(e, m)) continue;
      const Val one = Compare(e, m, value, by, members);
      holds = holds ? Where(Equal(how, static_cast<double>(m)), one, holds) : one;
    }
    if (any_missing)
      holds = holds | (Apply(OpKind::kIsNan, value) & (Gather(in.back(), at, 0) > 0));
    return std::vector<Val>{Where(holds, Gather(in[2], at, 0), Gather(in[3], at, 0))};
  };
  Val at = begin;
  if (e.depth > 0) at = Loop(f, IndexConst(e.depth), {begin}, captured, step)[0];
  return at;
}

// Rows of a table [nodes, targets] for leaves: [rows, trees, targets].
Val AtLeaves(const Formula& f, const Ensemble& e, const std::vector<double>& table, DType type,
             const Val& leaves) {
  const Val rows = Reshape(Numbers(f, table, type),
                           {IndexConst(static_cast<int64_t>(e.size())), IndexConst(e.targets)});
  return Gather(rows, leaves, 0);
}

Val WithBase(const Formula& f, const Val& scores, const std::vector<double>& base) {
  return base.empty() ? scores : scores + Numbers(f, base, scores.dtype());
}

// Trees' results put together, and a number for each target added: [rows, targets]. A leaf that has
// no weight for a target has no part in the least or the largest, and what no leaf gives is 0.
Val Aggregate(const Formula& f, const Val& x, const Ensemble& e, const std::string& how,
              const std::vector<double>& base) {
  const Val leaves = Walk(f, x, e);
  const auto given = [&](const std::vector<double>& table) {
    return AtLeaves(f, e, table, x.dtype(), leaves);
  };
  if (how == "AVERAGE") return WithBase(f, Reduce("mean", given(e.weights), {1}, false), base);
  if (how == "SUM") return WithBase(f, Sum(given(e.weights), {1}, false), base);
  const bool least = how == "MIN";
  const double none = std::numeric_limits<double>::infinity() * (least ? 1 : -1);
  std::vector<double> weights = e.weights, gives(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    gives[i] = e.gives[i] ? 1 : 0;
    if (!e.gives[i]) weights[i] = none;
  }
  const Val picked = Reduce(least ? "min" : "max", given(weights), {1}, false);
  const Val any = Reduce("max", given(gives), {1}, false) > 0;
  return WithBase(f, Where(any, picked, 0), base);
}

Expected<std::string> AggregateName(OpContext& c, const std::string& name) {
  if (name == "SUM" || name == "AVERAGE" || name == "MIN" || name == "MAX") return name;
  return c.Error("expected aggregate_function to be SUM, AVERAGE, MIN or MAX, but got '{}'", name);
}

// Weights may be large: nodes by targets.
Status MakeWeights(OpContext& c, Ensemble* e) {
  constexpr size_t kMost = size_t{1} << 26;
  if (e->targets < 1 || e->size() > kMost / static_cast<size_t>(e->targets))
    return c.Error("expected at most {} nodes times results", kMost);
  e->weights.assign(e->size() * static_cast<size_t>(e->targets), 0);
  e->gives.assign(e->weights.size(), false);
  return Ok();
}

Status AddWeight(OpContext& c, Ensemble* e, int64_t node, int64_t target, double weight) {
  if (target < 0 || target >= e->targets)
    return c.Error("expected results below {}, but got {}", e->targets, target);
  const auto at = static_cast<size_t>(node * e->targets + target);
  e->weights[at] += weight;
  e->gives[at] = true;
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
  if (!list || list->size() != size)
    return c.Error("expected {} entries in {}, but got {}", size, name, list ? list->size() : 0);
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
  std::map<std::pair<int64_t, int64_t>, int64_t> places;
  for (size_t i = 0; i < n; ++i) {
    const auto mode = kModes.find(modes[i]);
    if (mode == kModes.end()) return c.Error("unknown mode '{}' of node {}", modes[i], nodes[i]);
    if (!places.emplace(std::pair(trees[i], nodes[i]), static_cast<int64_t>(i)).second)
      return c.Error("node {} of tree {} is defined twice", nodes[i], trees[i]);
    const bool leaf = mode->second == kLeaf;
    const bool tracks = missing && !missing->empty() && (*missing)[i] != 0;
    e.AddNode(leaf ? 0 : features[i], mode->second, values[i], tracks && !leaf);
    if (i == 0 || trees[i] != trees[i - 1]) e.roots.push_back(static_cast<int64_t>(i));
  }
  auto place = [&](int64_t tree, int64_t node) {
    const auto it = places.find({tree, node});
    return it == places.end() ? -1 : it->second;
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
  TN_RETURN_IF_ERROR(MakeWeights(c, &e));
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
    for (; member != members.end() && *member == *member; ++member) e.members[i].push_back(*member);
    if (member != members.end()) ++member;
  }
  TN_RETURN_IF_ERROR(MakeWeights(c, &e));
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
