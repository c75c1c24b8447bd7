// Sums of products by an equation, determinants, and what is counted or marked along an axis.
//
// An Einsum is contracted from the left, two operands at a time. Of the letters of both, those of
// both and of what is still to come are a batch, those of one operand its rows or columns, and the
// rest is summed: one matmul. "ij,jk,kl->il" is
//
//   [i, j] · [j, k] = [i, k];  [i, k] · [k, l] = [i, l]
//
// A letter that one operand has twice is its diagonal; one that nobody else has is summed before.
#include <algorithm>
#include <map>
#include <set>

#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/formula.h"
#include "frontend/onnx/index_checks.h"
#include "frontend/onnx/ops.h"

namespace tenon::onnx {
namespace {

constexpr DType kI64 = DType::Int(64);

// ---- Einsum ----

// One label for each axis of an operand. Those of an ellipsis are numbers, aligned right.
using Labels = std::string;
struct Labelled {
  Val value;
  Labels labels;
};

struct Equation {
  std::vector<Labels> operands;
  Labels result;
};

constexpr char kDot = '.';
// The label of the k-th axis from the right of an ellipsis.
char DotLabel(size_t k) { return static_cast<char>(1 + k); }

// A term with its ellipsis spelled out to `dots` axes.
Labels Spelled(std::string_view term, size_t dots) {
  Labels out;
  for (char label : term) {
    if (label != kDot) {
      out.push_back(label);
      continue;
    }
    for (size_t k = dots; k-- > 0;) out.push_back(DotLabel(k));
  }
  return out;
}

// The terms of one side, with one kDot for an ellipsis.
Expected<std::vector<std::string>> ReadTerms(const OpContext& c, std::string_view side) {
  std::vector<std::string> terms(1);
  for (size_t i = 0; i < side.size(); ++i) {
    const char ch = side[i];
    const bool letter = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
    if (ch == ',') {
      terms.emplace_back();
    } else if (letter) {
      terms.back().push_back(ch);
    } else if (side.substr(i, 3) == "..." && terms.back().find(kDot) == std::string::npos) {
      terms.back().push_back(kDot);
      i += 2;
    } else {
      return c.Error(
          "expected letters, commas and one ellipsis in a term of the equation, but got {}",
          graph::Quoted(side));
    }
  }
  return terms;
}

Expected<Equation> ReadEquation(OpContext& c) {
  TN_ASSIGN_OR_RETURN(std::string text, c.String("equation", ""));
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  TN_ASSIGN_OR_RETURN(const auto terms, ReadTerms(c, std::string_view(text).substr(0, arrow)));
  if (terms.size() != c.num_inputs()) {
    return c.Error("expected an equation of {} terms, but got {}", c.num_inputs(),
                   graph::Quoted(text));
  }
  Equation e;
  size_t most = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const bool has_dots = terms[i].find(kDot) != std::string::npos;
    const size_t named = terms[i].size() - (has_dots ? 1 : 0), rank = c.Dims(i).size();
    if (rank < named || (rank > named && !has_dots)) {
      return c.Error("expected input {} to have the axes {}, but got {}", i,
                     graph::Quoted(terms[i]), c.Type(i).ToString());
    }
    e.operands.push_back(Spelled(terms[i], rank - named));
    most = std::max(most, rank - named);
  }
  if (arrow != std::string::npos) {
    TN_ASSIGN_OR_RETURN(const auto result, ReadTerms(c, std::string_view(text).substr(arrow + 2)));
    if (result.size() != 1) return c.Error("expected one result, but got {}", graph::Quoted(text));
    e.result = Spelled(result[0], most);
  } else {
    // All that stands once, in the order of the alphabet, after the ellipsis.
    std::map<char, int> count;
    for (const Labels& labels : e.operands) {
      for (char l : labels) ++count[l];
    }
    e.result = Spelled(std::string(1, kDot), most);
    for (const auto& [label, n] : count) {
      if (n == 1 && label >= 'A') e.result.push_back(label);
    }
  }
  for (size_t i = 0; i < e.result.size(); ++i) {
    const bool known = std::any_of(e.operands.begin(), e.operands.end(), [&](const Labels& o) {
      return o.find(e.result[i]) != Labels::npos;
    });
    if (!known || e.result.find(e.result[i], i + 1) != Labels::npos)
      return c.Error("expected a result of distinct labels of the inputs, but got {}",
                     graph::Quoted(text));
  }
  return e;
}

// Axes with one label become one: the diagonal.
Labelled Diagonals(Labelled x) {
  for (size_t i = 0; i < x.labels.size(); ++i) {
    const size_t k = x.labels.find(x.labels[i], i + 1);
    if (k == Labels::npos) continue;
    const auto a = static_cast<int64_t>(i), b = static_cast<int64_t>(k);
    Axes perm;  // the two in front
    for (int64_t axis = 0; axis < x.value.rank(); ++axis) {
      if (axis != a && axis != b) perm.push_back(axis);
    }
    perm.insert(perm.begin(), {a, b});
    Val v = Transpose(x.value, perm);
    const Val number = v.formula().Iota(v.dim(0));
    v = GatherNd(v, Stack({number, number}, 1));
    Labels rest = x.labels;
    rest.erase(k, 1);
    rest.erase(i, 1);
    return Diagonals({v, x.labels[i] + rest});
  }
  return x;
}

// Sums over what nobody asks for.
Labelled Keeping(const Labelled& x, const Labels& wanted) {
  Axes gone;
  Labels labels;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    if (wanted.find(x.labels[i]) == Labels::npos) {
      gone.push_back(static_cast<int64_t>(i));
    } else {
      labels.push_back(x.labels[i]);
    }
  }
  return gone.empty() ? x : Labelled{Sum(x.value, gone, false), labels};
}

Val Arranged(const Labelled& x, const Labels& order) {
  Axes perm;
  for (char label : order) perm.push_back(static_cast<int64_t>(x.labels.find(label)));
  return Transpose(x.value, perm);
}

// The size of a label: of two operands', the one that is not 1.
Dims SizesOf(const Labels& labels, const Labelled& a, const Labelled& b) {
  Dims out;
  for (char label : labels) {
    Expr size = IndexConst(1);
    for (const Labelled* x : {&a, &b}) {
      const size_t at = x->labels.find(label);
      if (at == Labels::npos) continue;
      const Expr own = x->value.dim(static_cast<int64_t>(at));
      const Expr both = graph::BroadcastSizes(size, own).size;
      if (both) size = both;  // if not, they do not go together, which expanding them finds
    }
    out.push_back(size);
  }
  return out;
}

// The product of two operands, with what is wanted of their labels.
Labelled Contract(const Labelled& left, const Labelled& right, const Labels& wanted) {
  const Labelled a = Keeping(left, wanted + right.labels), b = Keeping(right, wanted + left.labels);
  const auto has = [](const Labels& l, char c) { return l.find(c) != Labels::npos; };
  Labels batch, rows, columns, summed;
  for (char l : a.labels) {
    (!has(b.labels, l) ? rows : has(wanted, l) ? batch : summed).push_back(l);
  }
  for (char l : b.labels) {
    if (!has(a.labels, l)) columns.push_back(l);
  }
  const Dims batches = SizesOf(batch, a, b), depth = SizesOf(summed, a, b);
  const auto matrices = [&](const Labelled& x, const Labels& order, const Labels& first,
                            const Labels& second) {
    Val v = Arranged(x, order);
    Dims dims = batches;
    for (const Labels* part : {&first, &second}) {
      const Dims sizes = SizesOf(*part, a, b);
      dims.insert(dims.end(), sizes.begin(), sizes.end());
    }
    v = Expand(v, dims);  // axes of 1 of an ellipsis
    Dims grouped = batches;
    for (const Labels* part : {&first, &second}) {
      const Dims sizes = SizesOf(*part, a, b);
      grouped.push_back(graph::DimProduct(sizes));
    }
    return Reshape(v, grouped);
  };
  const Val x = matrices(a, batch + rows + summed, rows, summed);
  const Val y = matrices(b, batch + summed + columns, summed, columns);
  const Labels labels = batch + rows + columns;
  return {Reshape(MatMul(x, y), SizesOf(labels, a, b)), labels};
}

Status ImportEinsum(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, -1));
  TN_ASSIGN_OR_RETURN(const Equation e, ReadEquation(c));
  const Formula f(c);
  const DType type = c.Type(0).dtype;
  std::vector<Labelled> operands;
  for (size_t i = 0; i < e.operands.size(); ++i)
    operands.push_back(Diagonals({Widened(f.In(i)), e.operands[i]}));
  Labelled so_far = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    Labels wanted = e.result;
    for (size_t k = i + 1; k < operands.size(); ++k) wanted += operands[k].labels;
    so_far = Contract(so_far, operands[i], wanted);
  }
  return f.Result(Cast(Arranged(Keeping(so_far, e.result), e.result), type));
}

// ---- Square matrices ----

Status NeedSquareMatrices(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  const Dims dims = c.Dims(0);
  if (dims.size() < 2 || graph::ProveDifferent(dims[dims.size() - 1], dims[dims.size() - 2]))
    return c.Error("expected square matrices, but got {}", c.Type(0).ToString());
  c.b.Require(Eq(dims[dims.size() - 1], dims[dims.size() - 2]));
  return Ok();
}

// Where the first of the largest is, NaN being the largest; of none it is no place. ArgReduce wants
// one at least.
Val FirstLargest(const Val& x, int64_t axis) {
  Val place = x.formula().Iota(x.dim(axis));
  for (int64_t k = x.At(axis) + 1; k < x.rank(); ++k) place = Unsqueeze(place, -1);
  Val is_largest = Equal(x, Reduce("max", x, {axis}));
  if (x.dtype().IsFloat()) is_largest = is_largest | Apply(OpKind::kIsNan, x);
  return Reduce("min", Where(is_largest, place, Size(x, axis)), {axis});
}

// Of step i of an elimination: the row of the greatest element at or below i in column i,
// [count, 1], and which row comes to each place when that one and row i change places, [count, n].
struct PivotRows {
  Val best, from;
};

PivotRows Pivots(const Val& matrix, const Val& row, const Val& i) {
  const Val column = Gather(matrix, i, 2);  // [count, n]
  const Val best = FirstLargest(Where(row >= i, Abs(column), -1), 1);
  return {best, Where(Equal(row, i), best, Where(Equal(row, best), i, row))};
}

// ---- Det: elimination with pivots, a column at a time ----

Status ImportDet(OpContext& c) {
  TN_RETURN_IF_ERROR(NeedSquareMatrices(c));
  const Dims dims = c.Dims(0);
  const Formula f(c);
  const Expr& n = dims.back();
  const Expr one = IndexConst(1);
  const Expr count = graph::DimProduct(std::span(dims).first(dims.size() - 2));
  const Val x = Reshape(Widened(f.In(0)), {count, n, n});
  const auto step = [&](const Val& i, const std::vector<Val>& carried,
                        const std::vector<Val>&) -> std::vector<Val> {
    const Val row = i.formula().Iota(n);
    const auto [best, from] = Pivots(carried[0], row, i);
    const Val swapped = GatherElements(carried[0], Expand(Unsqueeze(from, 2), {count, n, n}), 1);
    const Val top = Unsqueeze(Gather(swapped, i, 1), 1);  // [count, 1, n]
    const Val pivot = Unsqueeze(Gather(top, i, 2), 2);    // [count, 1, 1]
    const Val below = Unsqueeze(Gather(swapped, i, 2), 2) / Where(Equal(pivot, 0), 1, pivot);
    const Val factor = Where(Unsqueeze(row > i, 1), below, 0);
    const Val value = Squeeze(Squeeze(pivot, 2), 1);
    const Val sign = Where(Equal(Squeeze(best, 1), i), value, -value);
    return {swapped - factor * top, carried[1] * sign};
  };
  const Val ones = Expand(f.Number(x.dtype(), 1), {count});
  const Val det = Loop(f, n, {x, ones}, {}, step)[1];
  return f.Result(Cast(Reshape(det, Dims(dims.begin(), dims.end() - 2)), c.Type(0).dtype));
}

// ---- Inverse: elimination above and below, of the matrix and the unit matrix beside it ----

Status ImportInverse(OpContext& c) {
  TN_RETURN_IF_ERROR(NeedSquareMatrices(c));
  const Dims dims = c.Dims(0);
  const Formula f(c);
  const Expr& n = dims.back();
  const Expr count = graph::DimProduct(std::span(dims).first(dims.size() - 2));
  const Val x = Reshape(Widened(f.In(0)), {count, n, n});
  const Val place = f.Iota(n);
  const Val unit = Cast(Equal(Unsqueeze(place, 1), place), x.dtype());
  const auto step = [&](const Val& i, const std::vector<Val>& carried,
                        const std::vector<Val>&) -> std::vector<Val> {
    const Val row = i.formula().Iota(n);
    const Val at = Expand(Unsqueeze(Pivots(carried[0], row, i).from, 2), {count, n, n});
    const Val left = GatherElements(carried[0], at, 1), right = GatherElements(carried[1], at, 1);
    const Val top = Unsqueeze(Gather(left, i, 1), 1), beside = Unsqueeze(Gather(right, i, 1), 1);
    const Val pivot = Unsqueeze(Gather(top, i, 2), 2);  // [count, 1, 1]
    const Val is_top = Unsqueeze(Equal(row, i), 1);     // [n, 1]
    const Val factor = Where(is_top, 0, Unsqueeze(Gather(left, i, 2), 2));
    const Val over = top / pivot, also = beside / pivot;
    return {Where(is_top, over, left - factor * over), Where(is_top, also, right - factor * also)};
  };
  const Val inverse = Loop(f, n, {x, Expand(unit, {count, n, n})}, {}, step)[1];
  return f.Result(Cast(Reshape(inverse, dims), c.Type(0).dtype));
}

// ---- Marked along an axis ----

// 1 at the first of the largest. Until opset 12 the axes from `axis` on are one.
Status ImportHardmax(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  const bool joined = c.opset < 13;
  TN_ASSIGN_OR_RETURN(int64_t axis, c.AxisAttr("axis", joined ? 1 : -1, c.Rank(0), joined));
  const Formula f(c);
  const Dims dims = c.Dims(0);
  Val x = f.In(0);
  if (joined) {
    const std::span<const Expr> all(dims);
    const auto at = static_cast<size_t>(axis);
    x = Reshape(x, {graph::DimProduct(all.first(at)), graph::DimProduct(all.subspan(at))});
    axis = 1;
  }
  Val number = f.Iota(x.dim(axis));
  for (int64_t k = axis + 1; k < x.rank(); ++k) number = Unsqueeze(number, -1);
  const Val y = Cast(Equal(number, FirstLargest(x, axis)), x.dtype());
  return f.Result(Reshape(y, dims));
}

// The part of matrices on, above or below a diagonal, which is `k` to the right of the main one.
Status ImportTrilu(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 2));
  TN_ASSIGN_OR_RETURN(const bool upper, c.Bool("upper", true));
  if (c.Rank(0) < 2) return c.Error("expected matrices, but got {}", c.Type(0).ToString());
  const Formula f(c);
  const Val x = f.In(0), column = f.Iota(x.dim(-1));
  Val diagonal = Unsqueeze(f.Iota(x.dim(-2)), 1);
  // Far from the matrix all diagonals are alike, and sums do not overflow.
  if (f.In(1)) diagonal = diagonal + Max(Min(Reshape(f.In(1), {}), 0x1p62), -0x1p62);
  const Val keep = upper ? column >= diagonal : column <= diagonal;
  return f.Result(Where(keep, x, 0));
}

Status ImportEyeLike(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const int64_t k, c.Int("k", 0));
  DType type = c.Type(0).dtype;
  if (c.HasAttr("dtype")) {
    TN_ASSIGN_OR_RETURN(const int64_t code, c.Int("dtype", std::nullopt));
    TN_ASSIGN_OR_RETURN(type, ToDType(static_cast<int32_t>(code)));
  }
  if (c.Rank(0) != 2) return c.Error("expected a matrix, but got {}", c.Type(0).ToString());
  if (std::abs(k / 2) > (int64_t{1} << 40)) return c.Error("expected a sensible k, but got {}", k);
  const Formula f(c);
  const Val row = Unsqueeze(f.Iota(c.Dims(0)[0]), 1), column = f.Iota(c.Dims(0)[1]);
  return f.Result(Cast(Equal(row + static_cast<double>(k), column), type));
}

Status ImportReverseSequence(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(2, 2));
  TN_ASSIGN_OR_RETURN(const int64_t batch, c.AxisAttr("batch_axis", 1, c.Rank(0)));
  TN_ASSIGN_OR_RETURN(const int64_t time, c.AxisAttr("time_axis", 0, c.Rank(0)));
  if (batch == time || batch > 1 || time > 1)
    return c.Error("expected batch_axis and time_axis to be 0 and 1, but got {} and {}", batch,
                   time);
  if (c.Rank(1) != 1)
    return c.Error("expected one length per sequence, but got {}", c.Type(1).ToString());
  const Formula f(c);
  const Val x = f.In(0);
  const Val lengths = InRange(c, 1, f.In(1), graph::DimAdd(x.dim(time), IndexConst(1)));
  return f.Result(ReverseRows(x, Conformed(lengths, {x.dim(batch)}), time));
}

// ---- TfIdfVectorizer: how often each n-gram of a pool stands in a row ----

Status ImportTfIdf(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const int64_t least, c.Int("min_gram_length", std::nullopt));
  TN_ASSIGN_OR_RETURN(const int64_t most, c.Int("max_gram_length", std::nullopt));
  TN_ASSIGN_OR_RETURN(const int64_t skips, c.Int("max_skip_count", std::nullopt));
  TN_ASSIGN_OR_RETURN(const std::string mode, c.String("mode", ""));
  TN_ASSIGN_OR_RETURN(const auto counts, c.Ints("ngram_counts"));
  TN_ASSIGN_OR_RETURN(const auto columns, c.Ints("ngram_indexes"));
  // Strings and their pool are numbers (import_program.cc).
  const bool strings = c.Narrow(0) != nullptr;
  TN_ASSIGN_OR_RETURN(const auto pool, c.Ints(strings ? "pool_strings" : "pool_int64s"));
  TN_ASSIGN_OR_RETURN(const auto weights, c.Floats("weights"));
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return c.Error("expected mode TF, IDF or TFIDF, but got {}", graph::Quoted(mode));
  constexpr int64_t kMost = 1 << 20;
  if (least < 1 || most < least || most > 64 || skips < 0 || skips > 1024 || !counts || !columns ||
      !pool || !c.Type(0).dtype.IsInt() || c.Rank(0) < 1 || c.Rank(0) > 2) {
    return c.Error(
        "expected rows of integers, a pool, its counts and columns, and sensible lengths of "
        "n-grams, but got {} and {} to {}",
        c.Type(0).ToString(), least, most);
  }
  for (int64_t column : *columns) {
    if (column < 0 || column > kMost)
      return c.Error("expected ngram_indexes in 0..{}, but got {}", kMost, column);
  }
  if (weights && weights->size() != columns->size())
    return c.Error("expected {} weights, but got {}", columns->size(), weights->size());
  const Formula f(c);
  const bool one_row = c.Rank(0) == 1;
  const Val x = Cast(one_row ? Unsqueeze(f.In(0), 0) : f.In(0), kI64);
  // Behind a row stands what is in no n-gram, so that one may begin at every element.
  const std::set<int64_t> known(pool->begin(), pool->end());
  int64_t outside = 0;
  while (known.contains(outside)) ++outside;
  const Val rows = Pad(x, 1, 0, (most - 1) * (skips + 1), Element(f.Ints({outside}), 0, 0));
  std::vector<Val> found;  // [N, n-grams of a length]
  size_t grams = 0;
  for (size_t k = 0; k < counts->size(); ++k) {
    const int64_t from = (*counts)[k];
    const int64_t to =
        k + 1 < counts->size() ? (*counts)[k + 1] : static_cast<int64_t>(pool->size());
    const auto n = static_cast<int64_t>(k) + 1;
    if (from < 0 || to < from || to > static_cast<int64_t>(pool->size()) || (to - from) % n != 0)
      return c.Error("expected ngram_counts to cut the pool into n-grams, but entry {} is {}", k,
                     from);
    const int64_t size = (to - from) / n;
    if (size == 0) continue;
    grams += static_cast<size_t>(size);
    Val sum = Expand(f.Number(kI64, 0), {x.dim(0), IndexConst(size)});
    for (int64_t skip = 0; n >= least && n <= most && skip <= (n == 1 ? 0 : skips); ++skip) {
      Val same;
      for (int64_t t = 0; t < n; ++t) {
        std::vector<int64_t> word;
        for (int64_t g = 0; g < size; ++g)
          word.push_back((*pool)[static_cast<size_t>(from + g * n + t)]);
        const Val here = Slice(rows, 1, IndexConst(t * (skip + 1)), x.dim(1));
        const Val hit = Equal(Unsqueeze(here, 2), f.Ints(word));
        same = same ? same & hit : hit;
      }
      sum = sum + Sum(Cast(same, kI64), {1}, false);
    }
    found.push_back(sum);
  }
  if (grams != columns->size() || found.empty())
    return c.Error("expected {} ngram_indexes, but got {}", grams, columns->size());
  Val y = Cast(Concat(found, 1), DType::Float(32));
  if (mode != "TF") {
    if (mode == "IDF") y = Min(y, 1);
    if (weights) y = y * f.Floats(*weights);
  }
  const int64_t width = *std::max_element(columns->begin(), columns->end()) + 1;
  const Val none = Expand(f.Number(DType::Float(32), 0), {x.dim(0), IndexConst(width)});
  y = Scatter(none, Unsqueeze(f.Ints(*columns), 0), y, 1);
  return f.Result(one_row ? Squeeze(y, 0) : y);
}

constexpr OpRow kRows[] = {
    {"Einsum", 12, ImportEinsum},
    {"Det", 11, ImportDet},
    {"Hardmax", 1, ImportHardmax},
    {"Trilu", 14, ImportTrilu},
    {"EyeLike", 9, ImportEyeLike},
    {"ReverseSequence", 10, ImportReverseSequence},
    {"TfIdfVectorizer", 9, ImportTfIdf},
    {.name = "Trilu", .since = 1, .import = ImportTrilu, .domain = "com.microsoft"},
    {.name = "Inverse", .since = 1, .import = ImportInverse, .domain = "com.microsoft"},
};

}  // namespace

std::span<const OpRow> MathRows() { return kRows; }

}  // namespace tenon::onnx
