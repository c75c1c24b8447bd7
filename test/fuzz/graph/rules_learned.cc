// Operators of ai.onnx.ml over numbers: parameters are attributes.
#include <cmath>

#include "fuzz/graph/rules.h"

namespace tenon::fuzz {

namespace {

constexpr const char* kMl = "ai.onnx.ml";
constexpr Types kFeatures = Only(kF32) | Only(kF64) | Only(kI32) | Only(kI64);

// [N, C] with whole numbers, so that comparisons and sums are what they are.
Value Features(Maker& m, Elem t) {
  return m.Like(t, {m.AnyOpenSize(), m.Between(1, 9)}, {.lo = -4, .hi = 4, .exact = true});
}

std::vector<float> AnyFloats(Maker& m, int64_t n, int64_t lo, int64_t hi) {
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(static_cast<float>(m.Between(lo, hi)));
  return out;
}

bool Scaler(Maker& m, const Rule& rule, Elem t) {
  const Value x = Features(m, t);
  const int64_t n = m.Chance(2) ? x.dims[1].a : 1;
  Value y = x;
  y.elem = kF32, y.lo = -21, y.hi = 21;
  return m
      .Add(rule.op, {x.name}, y,
           {FloatList("offset", AnyFloats(m, n, -3, 3)), FloatList("scale", AnyFloats(m, n, 1, 3))},
           kMl)
      .has_value();
}

bool Binarizer(Maker& m, const Rule& rule, Elem t) {
  Value y = Features(m, t);
  const std::string x = y.name;
  y.lo = 0, y.hi = 1;
  return m.Add(rule.op, {x}, y, {Float("threshold", 0.5f)}, kMl).has_value();
}

bool Normalizer(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Like(t, {m.AnyOpenSize(), m.Between(1, 9)}, {.lo = 1, .hi = 4, .exact = true});
  const Value y = Computed(kF32, x.dims, 1, Rounded(kF32, 1, kFormula));
  return m.Add(rule.op, {x.name}, y, {Str("norm", m.Of<std::string>({"MAX", "L1", "L2"}))}, kMl)
      .has_value();
}

bool Imputer(Maker& m, const Rule& rule, Elem t) {
  const Value x = Features(m, t);
  const int64_t n = m.Chance(2) ? x.dims[1].a : 1;
  Value y = x;
  y.lo = -9, y.hi = 9;
  std::vector<std::string> attributes;
  if (IsFloat(t)) {
    attributes = {FloatList("imputed_value_floats", AnyFloats(m, n, -9, 9)),
                  Float("replaced_value_float", 1)};
  } else {
    Ints64 values;
    for (int64_t i = 0; i < n; ++i) values.push_back(m.Between(-9, 9));
    attributes = {Ints("imputed_value_int64s", values), Int("replaced_value_int64", 1)};
  }
  return m.Add(rule.op, {x.name}, y, attributes, kMl).has_value();
}

bool LinearRegressor(Maker& m, const Rule& rule, Elem t) {
  const Value x = Features(m, t);
  const int64_t targets = m.Between(1, 3);
  std::vector<std::string> attributes = {
      FloatList("coefficients", AnyFloats(m, targets * x.dims[1].a, -3, 3)),
      Int("targets", targets)};
  if (m.Chance(2)) attributes.push_back(FloatList("intercepts", AnyFloats(m, targets, -3, 3)));
  Value y = Computed(kF32, {x.dims[0], targets}, 12.0 * 9 + 3, 0);
  y.whole = true;
  return m.Add(rule.op, {x.name}, y, attributes, kMl).has_value();
}

Ints64 Labels(int64_t n) {
  Ints64 out;
  for (int64_t i = 0; i < n; ++i) out.push_back(3 * i - 1);
  return out;
}

bool LinearClassifier(Maker& m, const Rule& rule, Elem t) {
  const Value x = Features(m, t);
  const int64_t classes = m.Between(2, 4);
  const std::string post = m.Of<std::string>({"NONE", "SOFTMAX", "LOGISTIC"});
  // Fractions of their own keep scores of two classes from being the same.
  std::vector<float> intercepts;
  for (int64_t i = 0; i < classes; ++i)
    intercepts.push_back(static_cast<float>(m.Between(-3, 3)) + static_cast<float>(i) / 8);
  const Value label{"", kI64, {x.dims[0]}, -1, 12};
  const Value scores =
      Computed(kF32, {x.dims[0], classes}, 12.0 * 9 + 4, Rounded(kF32, 112, kArithmetic));
  return m.AddAll(rule.op, {x.name}, {label, scores},
                  {FloatList("coefficients", AnyFloats(m, classes * x.dims[1].a, -3, 3)),
                   FloatList("intercepts", intercepts), Ints("classlabels_ints", Labels(classes)),
                   Str("post_transform", post)},
                  kMl);
}

bool SvmRegressor(Maker& m, const Rule& rule, Elem t) {
  const Value x = Features(m, t);
  const int64_t n = m.Between(1, 5);
  const std::string kernel = m.Of<std::string>({"LINEAR", "POLY", "RBF", "SIGMOID"});
  const double each = kernel == "POLY" ? 200 : kernel == "LINEAR" ? 72 : 1;
  const double most = 2 * each * static_cast<double>(n) + 1;
  const Value y =
      Computed(kF32, {x.dims[0], 1}, most, Rounded(kF32, most, kFunction) * (each > 1 ? 1 : 16));
  return m
      .Add(rule.op, {x.name}, y,
           {Str("kernel_type", kernel), FloatList("kernel_params", {0.125f, 0.5f, 2}),
            FloatList("support_vectors", AnyFloats(m, n * x.dims[1].a, -2, 2)),
            FloatList("coefficients", AnyFloats(m, n, -2, 2)), FloatList("rho", {1}),
            Int("n_supports", n)},
           kMl)
      .has_value();
}

// The class alone: what scores there are depends on which attributes are left out.
bool SvmClassifier(Maker& m, const Rule& rule, Elem t) {
  const Value x = Features(m, t);
  const int64_t classes = m.Between(2, 3), each = m.Between(1, 2), n = classes * each;
  std::vector<float> rho;
  for (int64_t i = 0; i < classes * (classes - 1) / 2; ++i)
    rho.push_back(0.5f + static_cast<float>(i) / 4);
  const Value label{"", kI64, {x.dims[0]}, -1, 12};
  const std::string scores = m.NewName();
  Value named = label;
  named.name = m.NewName();
  m.PlainAll(
      rule.op, {x.name}, {named.name, scores},
      {Str("kernel_type", "LINEAR"), FloatList("kernel_params", {0.125f, 0.5f, 2}),
       FloatList("support_vectors", AnyFloats(m, n * x.dims[1].a, -2, 2)),
       FloatList("coefficients", AnyFloats(m, n * (classes - 1), 1, 3)), FloatList("rho", rho),
       Ints("vectors_per_class", Ints64(static_cast<size_t>(classes), each)),
       Ints("classlabels_ints", Labels(classes))},
      kMl);
  return m.Add("Identity", {named.name}, label).has_value();
}

// Nodes of trees as the attributes of the older operators have them.
struct Trees {
  Ints64 tree, node, feature, yes, no, leaf_tree, leaf_node, leaf_id;
  std::vector<std::string> modes;
  std::vector<float> values, weights;
};

// The tree's node of that number and what is below it.
void Grow(Maker& m, Trees* out, int64_t tree, int64_t* next, int64_t depth, int64_t features,
          int64_t targets) {
  const int64_t id = (*next)++;
  const auto at = out->tree.size();
  const bool leaf = depth == 0 || (id > 0 && m.Chance(4));
  out->tree.push_back(tree), out->node.push_back(id);
  out->feature.push_back(leaf ? 0 : m.Between(0, features - 1));
  out->modes.push_back(leaf ? "LEAF"
                            : m.Of<std::string>({"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT",
                                                 "BRANCH_GTE", "BRANCH_EQ", "BRANCH_NEQ"}));
  out->values.push_back(leaf ? 0.0f : static_cast<float>(m.Between(-4, 4)) / 2);
  out->yes.push_back(0), out->no.push_back(0);
  if (leaf) {
    out->leaf_tree.push_back(tree), out->leaf_node.push_back(id);
    out->leaf_id.push_back(m.Between(0, targets - 1));
    out->weights.push_back(static_cast<float>(m.Between(-8, 8)) / 4);
    return;
  }
  out->yes[at] = *next;
  Grow(m, out, tree, next, depth - 1, features, targets);
  out->no[at] = *next;
  Grow(m, out, tree, next, depth - 1, features, targets);
}

bool OldTrees(Maker& m, const Rule& rule, Elem t) {
  const bool classes = rule.op == std::string_view("TreeEnsembleClassifier");
  const std::string leaf = classes ? "class_" : "target_";
  const Value x = Features(m, t);
  const int64_t trees = m.Between(1, 4), targets = m.Between(classes ? 2 : 1, 3);
  Trees all;
  for (int64_t tree = 0; tree < trees; ++tree) {
    int64_t next = 0;
    Grow(m, &all, tree, &next, m.Between(1, 4), x.dims[1].a, targets);
  }
  std::vector<std::string> attributes = {
      Ints("nodes_treeids", all.tree),         Ints("nodes_nodeids", all.node),
      Ints("nodes_featureids", all.feature),   StrList("nodes_modes", all.modes),
      FloatList("nodes_values", all.values),   Ints("nodes_truenodeids", all.yes),
      Ints("nodes_falsenodeids", all.no),      Ints(leaf + "treeids", all.leaf_tree),
      Ints(leaf + "nodeids", all.leaf_node),   Ints(leaf + "ids", all.leaf_id),
      FloatList(leaf + "weights", all.weights)};
  Value y = Computed(kF32, {x.dims[0], targets}, 12, Rounded(kF32, 12, kFormula));
  if (!classes) {
    attributes.push_back(Int("n_targets", targets));
    attributes.push_back(
        Str("aggregate_function", m.Of<std::string>({"SUM", "AVERAGE", "MIN", "MAX"})));
    return m.Add(rule.op, {x.name}, y, attributes, kMl).has_value();
  }
  std::vector<float> base;
  for (int64_t i = 0; i < targets; ++i) base.push_back(static_cast<float>(i) / 16);
  attributes.insert(attributes.end(),
                    {Ints("classlabels_int64s", Labels(targets)), FloatList("base_values", base),
                     Str("post_transform", m.Of<std::string>({"NONE", "SOFTMAX", "LOGISTIC"}))});
  const Value label{"", kI64, {x.dims[0]}, -1, 12};
  return m.AddAll(rule.op, {x.name}, {label, y}, attributes, kMl);
}

// The same trees as the newer operator has them: branches and leaves apart, by place.
bool NewTrees(Maker& m, const Rule& rule, Elem t) {
  const Value x = Features(m, t);
  const int64_t trees = m.Between(1, 4), targets = m.Between(1, 3);
  Ints64 roots, features, yes, no, yes_leaf, no_leaf, ids;
  std::vector<double> modes, splits, weights;
  for (int64_t tree = 0; tree < trees; ++tree) {
    Trees one;
    int64_t next = 0;
    Grow(m, &one, 0, &next, m.Between(1, 4), x.dims[1].a, targets);
    const auto first_branch = static_cast<int64_t>(features.size()),
               first_leaf = static_cast<int64_t>(ids.size());
    Ints64 place;
    int64_t branches = 0, leaves = 0;
    for (const std::string& mode : one.modes)
      place.push_back(mode == "LEAF" ? first_leaf + leaves++ : first_branch + branches++);
    roots.push_back(first_branch);
    constexpr const char* kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                      "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
    for (size_t i = 0; i < one.modes.size(); ++i) {
      if (one.modes[i] == "LEAF") continue;
      const auto a = static_cast<size_t>(one.yes[i]), b = static_cast<size_t>(one.no[i]);
      features.push_back(one.feature[i]), splits.push_back(one.values[i]);
      modes.push_back(static_cast<double>(
          std::find(std::begin(kModes), std::end(kModes), one.modes[i]) - std::begin(kModes)));
      yes.push_back(place[a]), yes_leaf.push_back(one.modes[a] == "LEAF");
      no.push_back(place[b]), no_leaf.push_back(one.modes[b] == "LEAF");
    }
    ids.insert(ids.end(), one.leaf_id.begin(), one.leaf_id.end());
    weights.insert(weights.end(), one.weights.begin(), one.weights.end());
  }
  const auto tensor = [](const char* name, Elem elem, const std::vector<double>& values) {
    return onnx::test::TensorAttr(
        name,
        onnx::test::Tensor("", elem, {static_cast<int64_t>(values.size())}, BytesOf(elem, values)));
  };
  Value y = Computed(t, {x.dims[0], targets}, 12, Rounded(t, 12, kFormula));
  return m
      .Add(rule.op, {x.name}, y,
           {Ints("tree_roots", roots), Ints("nodes_featureids", features),
            tensor("nodes_splits", t, splits), tensor("nodes_modes", kU8, modes),
            Ints("nodes_truenodeids", yes), Ints("nodes_trueleafs", yes_leaf),
            Ints("nodes_falsenodeids", no), Ints("nodes_falseleafs", no_leaf),
            Ints("leaf_targetids", ids), tensor("leaf_weights", t, weights),
            Int("n_targets", targets), Int("aggregate_function", m.Between(0, 3))},
           kMl)
      .has_value();
}

bool ExtractFeatures(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 2, .max_rank = 3, .filled = true});
  const Size n = Within(m.AnyOpenSize(), 1, 9);
  const Value at = m.Data(kI64, {n}, 0, static_cast<double>(x.dims.back().least() - 1));
  Value y = x;
  y.dims.back() = n;
  return m.Add(rule.op, {x.name, at.name}, y, {}, kMl).has_value();
}

bool OneHotEncoder(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .max_rank = 2, .lo = 0, .hi = 9, .exact = true});
  const int64_t n = m.Between(1, 5);
  Value y = Computed(kF32, x.dims, 1, 0);
  y.lo = 0, y.whole = true;
  y.dims.push_back(n);
  Ints64 known;
  for (int64_t i = 0; i < n; ++i) known.push_back(2 * i);
  return m.Add(rule.op, {x.name}, y, {Ints("cats_int64s", known), Int("zeros", 1)}, kMl)
      .has_value();
}

bool LabelEncoder(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.lo = -4, .hi = 9, .exact = true});
  const int64_t n = m.Between(1, 5);
  Value y = x;
  y.lo = -9, y.hi = 9;
  std::vector<std::string> attributes;
  if (t == kI64) {
    Ints64 values;
    for (int64_t i = 0; i < n; ++i) values.push_back(m.Between(-9, 9));
    attributes = {Ints("keys_int64s", Labels(n)), Ints("values_int64s", values),
                  Int("default_int64", 7)};
  } else {
    std::vector<float> keys;
    for (int64_t key : Labels(n)) keys.push_back(static_cast<float>(key));
    attributes = {FloatList("keys_floats", keys),
                  FloatList("values_floats", AnyFloats(m, n, -9, 9)), Float("default_float", 7)};
  }
  return m.Add(rule.op, {x.name}, y, attributes, kMl).has_value();
}

bool Vectorize(Maker& m, const Rule& rule, Elem t) {
  const Value a = Features(m, t);
  const Value b = m.Like(t, {a.dims[0], m.Between(1, 9)}, {.lo = -9, .hi = 9, .exact = true});
  Value y = a;
  y.elem = kF32, y.dims[1] = a.dims[1] + b.dims[1];
  y.lo = std::min(a.lo, b.lo), y.hi = std::max(a.hi, b.hi);
  return m
      .Add(rule.op, {a.name, b.name}, y, {Ints("inputdimensions", {a.dims[1].a, b.dims[1].a})}, kMl)
      .has_value();
}

constexpr Rule kRules[] = {
    {"Scaler", 18, kFeatures, Scaler, kMl},
    {"Binarizer", 18, kFeatures, Binarizer, kMl},
    {"Normalizer", 18, kFeatures, Normalizer, kMl},
    {"Imputer", 18, Only(kF32) | Only(kF64) | Only(kI32) | Only(kI64), Imputer, kMl},
    {"LinearRegressor", 18, kFeatures, LinearRegressor, kMl},
    {"LinearClassifier", 18, kFeatures, LinearClassifier, kMl},
    {"SVMRegressor", 18, kFeatures, SvmRegressor, kMl},
    {"SVMClassifier", 18, kFeatures, SvmClassifier, kMl},
    {"TreeEnsembleRegressor", 18, kFeatures, OldTrees, kMl},
    {"TreeEnsembleClassifier", 18, kFeatures, OldTrees, kMl},
    {"TreeEnsemble", 18, kIeee, NewTrees, kMl},
    {"ArrayFeatureExtractor", 18, kFeatures, ExtractFeatures, kMl},
    {"OneHotEncoder", 18, kFeatures, OneHotEncoder, kMl},
    {"LabelEncoder", 18, Only(kI64) | Only(kF32), LabelEncoder, kMl},
    {"FeatureVectorizer", 18, kFeatures, Vectorize, kMl},
};

}  // namespace

std::span<const Rule> LearnedRules() { return kRules; }

}  // namespace tenon::fuzz
