// Support vector machines.
//
// A row is compared with all support vectors at once: kernel values k[rows, vectors] come from the
// product x · vectors^T. What follows is linear in them: of a classifier, each pair of classes has
// a score, whose weights are those of the vectors of both classes, so scores are k · weights^T with
// weights[pairs, vectors] made here, and 0 for the vectors of other classes. Pairs vote. Where the
// model has probabilities of pairs, those of classes are what fits them best:
//
//   T.-F. Wu, C.-J. Lin, R. C. Weng: Probability estimates for multi-class classification by
//   pairwise coupling. JMLR 5 (2004), algorithm 2.
//
// It improves one class at a time, for all rows in one loop; rows that are done stay as they are.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/ops_ml.h"

namespace tenon::onnx {
namespace {

struct Kernel {
  std::string type;
  double gamma = 0, coef0 = 0, degree = 0;
};

Expected<Kernel> ReadKernel(OpContext& c) {
  Kernel k;
  TN_ASSIGN_OR_RETURN(k.type, c.String("kernel_type", "LINEAR"));
  TN_ASSIGN_OR_RETURN(const auto params, c.Floats("kernel_params"));
  if (k.type != "LINEAR" && k.type != "POLY" && k.type != "RBF" && k.type != "SIGMOID")
    return c.Error("expected kernel_type to be LINEAR, POLY, RBF or SIGMOID, but got '{}'", k.type);
  if (!params || params->empty()) return k;
  if (params->size() != 3)
    return c.Error("expected gamma, coef0 and degree in kernel_params, but got {} numbers",
                   params->size());
  k.gamma = (*params)[0], k.coef0 = (*params)[1], k.degree = (*params)[2];
  return k;
}

Val Matrix(const Formula& f, const std::vector<double>& list, size_t rows) {
  const auto columns = static_cast<int64_t>(list.size() / std::max<size_t>(rows, 1));
  return Reshape(f.Floats(list), {IndexConst(static_cast<int64_t>(rows)), IndexConst(columns)});
}

// Each row against each vector: [rows, vectors].
Val Compare(const Kernel& k, const Val& x, const Val& vectors) {
  const Val products = MatMul(x, vectors, false, true);
  if (k.type == "LINEAR") return products;
  if (k.type == "POLY") return Pow(products * k.gamma + k.coef0, k.degree);
  if (k.type == "SIGMOID") return Tanh(products * k.gamma + k.coef0);
  // By differences: |x|² + |v|² - 2 x·v would cancel where they are close.
  const Val difference = Unsqueeze(x, 1) - vectors;
  return Exp(Sum(difference * difference, {-1}, false) * -k.gamma);
}

Val Rows(const Formula& f) { return Cast(RowsOf(f.In(0)), DType::Float(32)); }

// The vectors, `count` of them.
Expected<Val> ReadVectors(OpContext& c, const Formula& f, int64_t count) {
  TN_ASSIGN_OR_RETURN(const auto list, c.Floats("support_vectors"));
  if (!list || list->empty() || list->size() % static_cast<size_t>(count) != 0)
    return c.Error("expected {} support vectors of one length, but got {} numbers", count,
                   list ? list->size() : 0);
  return Matrix(f, *list, static_cast<size_t>(count));
}

Status ImportSvmRegressor(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(Kernel kernel, ReadKernel(c));
  TN_ASSIGN_OR_RETURN(const auto coefficients, c.Floats("coefficients"));
  TN_ASSIGN_OR_RETURN(const auto rho, c.Floats("rho"));
  TN_ASSIGN_OR_RETURN(const int64_t supports, c.Int("n_supports", 0));
  TN_ASSIGN_OR_RETURN(const int64_t one_class, c.Int("one_class", 0));
  TN_ASSIGN_OR_RETURN(const std::string post, c.String("post_transform", "NONE"));
  TN_RETURN_IF_ERROR(c.Int("n_targets", 1));
  if (!coefficients || coefficients->empty() || !rho || rho->empty())
    return c.Error("expected the attributes coefficients and rho");
  if (supports < 0 || (supports > 0 && coefficients->size() != static_cast<size_t>(supports)))
    return c.Error("expected {} coefficients, but got {}", supports, coefficients->size());
  const Formula f(c);
  Val values;
  if (supports > 0) {
    TN_ASSIGN_OR_RETURN(const Val vectors, ReadVectors(c, f, supports));
    values = Compare(kernel, Rows(f), vectors);
  } else {
    values = Rows(f);
    TN_RETURN_IF_ERROR(c.Floats("support_vectors"));
  }
  const Val score = MatMul(values, Matrix(f, *coefficients, 1), false, true) + (*rho)[0];
  if (one_class != 0) return f.Result(Where(score > 0, f.Number(score.dtype(), 1), -1));
  TN_ASSIGN_OR_RETURN(const Val out, PostTransform(c, score, post));
  return f.Result(out);
}

/// The pairs of classes of a classifier, (0, 1), (0, 2), …, (1, 2), …
struct Pairs {
  std::vector<std::pair<size_t, size_t>> list;
  explicit Pairs(size_t classes) {
    for (size_t i = 0; i < classes; ++i) {
      for (size_t j = i + 1; j < classes; ++j) list.emplace_back(i, j);
    }
  }
  /// 1 where a class is a pair's first one, or its second: [pairs, classes].
  std::vector<double> Members(size_t classes, bool second) const {
    std::vector<double> out(list.size() * classes, 0);
    for (size_t p = 0; p < list.size(); ++p)
      out[p * classes + (second ? list[p].second : list[p].first)] = 1;
    return out;
  }
};

// Of each pair, the weights of all vectors. Coefficients are [classes - 1, vectors]: of a vector of
// class i, those against the classes before i come first, and against those behind it follow.
std::vector<double> PairWeights(const Pairs& pairs, const std::vector<double>& coefficients,
                                const std::vector<int64_t>& per_class, size_t vectors) {
  std::vector<size_t> begin = {0};
  for (int64_t n : per_class) begin.push_back(begin.back() + static_cast<size_t>(n));
  std::vector<double> out(pairs.list.size() * vectors, 0);
  for (size_t p = 0; p < pairs.list.size(); ++p) {
    const auto [i, j] = pairs.list[p];
    for (size_t v = begin[i]; v < begin[i + 1]; ++v)
      out[p * vectors + v] = coefficients[(j - 1) * vectors + v];
    for (size_t v = begin[j]; v < begin[j + 1]; ++v)
      out[p * vectors + v] = coefficients[i * vectors + v];
  }
  return out;
}

// [rows, classes, classes] of [rows, pairs]: an entry for both orders of a pair, and 0 between.
Val Square(const Val& of_pairs, const Val& of_reversed, const Pairs& pairs, size_t classes) {
  const Formula& f = of_pairs.formula();
  const auto n = static_cast<int64_t>(classes);
  std::vector<int64_t> from(classes * classes, 2 * static_cast<int64_t>(pairs.list.size()));
  for (size_t p = 0; p < pairs.list.size(); ++p) {
    const auto [i, j] = pairs.list[p];
    from[i * classes + j] = static_cast<int64_t>(p);
    from[j * classes + i] = static_cast<int64_t>(p + pairs.list.size());
  }
  const Val zero = Slice(of_pairs, 1, IndexConst(0), IndexConst(1)) * 0;
  const Val all = Gather(Concat({of_pairs, of_reversed, zero}, 1), f.Ints(from), 1);
  return Reshape(all, {of_pairs.dim(0), IndexConst(n), IndexConst(n)});
}

// Probabilities of classes from those of pairs.
Val Couple(const Val& of_pairs, const Pairs& pairs, size_t classes) {
  constexpr size_t kRounds = 100;
  const Formula& f = of_pairs.formula();
  const auto n = static_cast<int64_t>(classes);
  const double enough = 0.005 / static_cast<double>(n);
  const Val r = Square(of_pairs, 1 - of_pairs, pairs, classes);  // r[i, j]: i rather than j
  const Val reversed = Swap(r, 1, 2);
  const Val one =
      Cast(Equal(Unsqueeze(f.Iota(IndexConst(n)), 1), f.Iota(IndexConst(n))), DType::Float(32));
  const Val own = Unsqueeze(Sum(reversed * reversed, {-1}, false), 2);
  const Val q = own * one - reversed * r;
  const Val p0 = Expand(f.Number(DType::Float(32), 1.0 / static_cast<double>(n)),
                        {of_pairs.dim(0), IndexConst(n)});
  const Val done0 = Expand(f.Number(DType::Float(32), 0), {of_pairs.dim(0), IndexConst(1)});
  auto step = [&](const Val& i, const std::vector<Val>& carried, const std::vector<Val>& in) {
    const Val& matrix = in[0];
    const Val t = Mod(i, static_cast<double>(n));
    const Val begins = Equal(t, 0);
    const Val p = carried[0];
    // At a round's begin products are taken anew, for accuracy.
    const Val fresh = Squeeze(MatMul(matrix, Unsqueeze(p, 2)), 2);
    const Val qp = Where(begins, fresh, carried[1]);
    const Val pqp = Where(begins, Sum(p * fresh, {-1}), carried[2]);
    const Val error = Reduce("max", Abs(qp - pqp), {-1});
    const Val done = Where(begins & (error < enough), 1, carried[3]);
    const Val at = Reshape(t, {IndexConst(1)});
    const Val row = Squeeze(Gather(matrix, at, 1), 1);
    const Val middle = Gather(row, at, 1);
    const Val by = (pqp - Gather(qp, at, 1)) / middle;
    const Val next_pqp = (pqp + by * (by * middle + 2 * Gather(qp, at, 1))) / ((1 + by) * (1 + by));
    const Val next_qp = (qp + by * row) / (1 + by);
    const Val next_p = (p + by * Gather(in[1], at, 0)) / (1 + by);
    const Val stays = done > 0;
    return std::vector<Val>{Where(stays, p, next_p), Where(stays, qp, next_qp),
                            Where(stays, pqp, next_pqp), done};
  };
  const auto rounds = static_cast<int64_t>(std::max(kRounds, classes));
  return Loop(f, IndexConst(rounds * n), {p0, p0, done0, done0}, {q, one}, step)[0];
}

Status ImportSvmClassifier(OpContext& c) {
  TN_ASSIGN_OR_RETURN(const Classifier classifier, ReadClassifier(c, "classlabels_ints"));
  TN_ASSIGN_OR_RETURN(const Kernel kernel, ReadKernel(c));
  TN_ASSIGN_OR_RETURN(const auto coefficients, c.Floats("coefficients"));
  TN_ASSIGN_OR_RETURN(const auto rho, c.Floats("rho"));
  TN_ASSIGN_OR_RETURN(const auto per_class, c.Ints("vectors_per_class"));
  TN_ASSIGN_OR_RETURN(const auto a, c.Floats("prob_a"));
  TN_ASSIGN_OR_RETURN(const auto b, c.Floats("prob_b"));
  const size_t classes = classifier.labels.list.size();
  if (!coefficients || coefficients->empty() || !rho || rho->empty())
    return c.Error("expected the attributes coefficients and rho");
  const Formula f(c);
  if (!per_class || per_class->empty()) {  // linear
    TN_RETURN_IF_ERROR(c.Floats("support_vectors"));
    if (coefficients->size() % classes != 0)
      return c.Error("expected coefficients for each of {} classes", classes);
    const Val scores = MatMul(Rows(f), Matrix(f, *coefficients, classes), false, true) + (*rho)[0];
    return SetBestClass(c, classifier, scores);
  }
  size_t vectors = 0;
  for (int64_t n : *per_class) {
    if (n < 0 || n > INT32_MAX)
      return c.Error("expected counts in vectors_per_class, but got {}", n);
    vectors += static_cast<size_t>(n);
  }
  const Pairs pairs(classes);
  if (classes < 2 || vectors == 0 || per_class->size() != classes)
    return c.Error("expected vectors of each of {} classes", classes);
  if (coefficients->size() != (classes - 1) * vectors || rho->size() != pairs.list.size())
    return c.Error("expected {} coefficients and {} rho, but got {} and {}",
                   (classes - 1) * vectors, pairs.list.size(), coefficients->size(), rho->size());
  TN_ASSIGN_OR_RETURN(const Val support, ReadVectors(c, f, static_cast<int64_t>(vectors)));
  const Val weights =
      Matrix(f, PairWeights(pairs, *coefficients, *per_class, vectors), pairs.list.size());
  const Val scores =
      MatMul(Compare(kernel, Rows(f), support), weights, false, true) + f.Floats(*rho);
  const Val first = Cast(scores > 0, DType::Float(32));
  const Val votes = MatMul(first, Matrix(f, pairs.Members(classes, false), pairs.list.size())) +
                    MatMul(1 - first, Matrix(f, pairs.Members(classes, true), pairs.list.size()));
  const Val best = Squeeze(ArgReduce("max", votes, -1), -1);
  if (a && !a->empty()) {
    if (!b || a->size() != pairs.list.size() || b->size() != pairs.list.size())
      return c.Error("expected {} entries in prob_a and prob_b", pairs.list.size());
    const Val raw = 1 - Sigmoid(scores * f.Floats(*a) + f.Floats(*b));
    const Val probabilities = Couple(Min(Max(raw, 1e-7), 1 - 1e-7), pairs, classes);
    TN_ASSIGN_OR_RETURN(const Val out, PostTransform(c, probabilities, classifier.post_transform));
    return SetClasses(c, classifier.labels, best, out);
  }
  const Val each = classes == 2 ? Concat({-scores, scores}, -1) : scores;
  TN_ASSIGN_OR_RETURN(const Val out, PostTransform(c, each, classifier.post_transform));
  return SetClasses(c, classifier.labels, best, out);
}

constexpr OpRow kRows[] = {
    {.name = "SVMRegressor", .since = 1, .import = ImportSvmRegressor, .domain = kMl},
    {.name = "SVMClassifier", .since = 1, .import = ImportSvmClassifier, .domain = kMl},
};

}  // namespace

std::span<const OpRow> MlSvmRows() { return kRows; }

}  // namespace tenon::onnx
