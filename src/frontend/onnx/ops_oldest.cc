#include "frontend/onnx/ops_oldest.h"

#include <algorithm>
#include <cctype>

#include "frontend/onnx/formula.h"

namespace tenon::onnx {
namespace {

// ---- What became an input, or another attribute ----

// Types by name.
Status ImportCast1(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(std::string to, c.String("to", ""));
  constexpr std::pair<const char*, ElemType> kTypes[] = {
      {"FLOAT", ElemType::kFloat},   {"DOUBLE", ElemType::kDouble}, {"FLOAT16", ElemType::kFloat16},
      {"INT8", ElemType::kInt8},     {"INT16", ElemType::kInt16},   {"INT32", ElemType::kInt32},
      {"INT64", ElemType::kInt64},   {"UINT8", ElemType::kUint8},   {"UINT16", ElemType::kUint16},
      {"UINT32", ElemType::kUint32}, {"UINT64", ElemType::kUint64}, {"BOOL", ElemType::kBool}};
  std::string name = to;
  for (char& letter : name)
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  for (const auto& [text, code] : kTypes) {
    if (name != text) continue;
    TN_ASSIGN_OR_RETURN(const DType type, ToDType(static_cast<int32_t>(code)));
    const Formula f(c);
    return f.Result(Cast(f.In(0), type));
  }
  return c.Error("expected the name of a data type as `to`, but got {}", graph::Quoted(to));
}

Status ImportReshape1(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const std::optional<Axes> shape, c.Ints("shape"));
  if (!shape) return c.Error("expected the attribute shape, but it is missing");
  const std::vector<Expr> own = c.Dims(0);
  std::vector<Expr> dims;
  std::optional<size_t> inferred;
  Expr others = IndexConst(1);
  for (size_t i = 0; i < shape->size(); ++i) {
    const int64_t n = (*shape)[i];
    if (n < -1 || (n == -1 && inferred) || (n == 0 && i >= own.size())) {
      return c.Error("expected sizes, 0 for those of the input, and one -1 at most, but got {}",
                     ToString(AttrValue(*shape)));
    }
    if (n == -1) inferred = i;
    dims.push_back(n == 0 ? own[i] : IndexConst(n));
    if (n != -1) others = graph::DimMul(others, dims.back());
  }
  const Expr all = graph::DimProduct(own);
  if (inferred) {
    if (IsZero(others)) return c.Error("expected a shape whose -1 can be inferred");
    dims[*inferred] = graph::DimFloorDiv(all, others);
  }
  const Formula f(c);
  return f.Result(Reshape(f.In(0), dims));
}

Status ImportConcat1(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, -1));
  TN_ASSIGN_OR_RETURN(const int64_t axis, c.AxisAttr("axis", 1, c.Rank(0)));
  const Formula f(c);
  std::vector<Val> parts;
  for (size_t i = 0; i < c.num_inputs(); ++i) parts.push_back(f.In(i));
  return f.Result(Concat(parts, axis));
}

// Sizes of parts are an attribute, or an input, or equal.
Status ImportSplit1(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 2));
  TN_ASSIGN_OR_RETURN(const int64_t axis, c.AxisAttr("axis", 0, c.Rank(0)));
  TN_ASSIGN_OR_RETURN(std::optional<Axes> sizes, c.Ints("split"));
  if (!sizes && c.Has(1)) {
    TN_ASSIGN_OR_RETURN(const std::vector<double> given, c.KnownFloats(1, "split"));
    sizes.emplace();
    for (double size : given) sizes->push_back(static_cast<int64_t>(size));
  }
  const Expr dim = c.Dims(0)[static_cast<size_t>(axis)];
  const auto parts = static_cast<int64_t>(c.num_outputs());
  std::vector<Expr> each(c.num_outputs(), graph::DimFloorDiv(dim, IndexConst(parts)));
  if (sizes && sizes->size() != each.size())
    return c.Error("expected {} sizes, but got {}", each.size(), sizes->size());
  Expr from = IndexConst(0);
  const Formula f(c);
  for (size_t i = 0; i < each.size(); ++i) {
    if (sizes) each[i] = IndexConst((*sizes)[i]);
    const Val part = Slice(f.In(0), axis, from, each[i]);
    TN_RETURN_IF_ERROR(f.Done());
    TN_RETURN_IF_ERROR(c.SetOutput(i, part.id()));
    from = graph::DimAdd(from, each[i]);
  }
  if (graph::ProveDifferent(from, dim))
    return c.Error("expected parts of {}, but got {}", graph::DimText(dim), graph::DimText(from));
  c.b.Require(Eq(from, dim));
  return Ok();
}

// So many times along one axis.
Status ImportTile1(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 3));
  TN_ASSIGN_OR_RETURN(const std::vector<double> tiles, c.KnownFloats(1, "tiles"));
  TN_ASSIGN_OR_RETURN(const std::vector<double> axes, c.KnownFloats(2, "axis"));
  if (tiles.size() != 1 || axes.size() != 1 || !(tiles[0] >= 0 && tiles[0] < 0x1p40) ||
      !(axes[0] >= 0 && axes[0] < c.Rank(0)))
    return c.Error("expected a number of tiles and an axis of {}", c.Type(0).ToString());
  Elements repeats(c.Dims(0).size(), IndexConst(1));
  repeats[static_cast<size_t>(axes[0])] = IndexConst(static_cast<int64_t>(tiles[0]));
  const Formula f(c);
  return f.Result(Tile(f.In(0), repeats));
}

Status ImportPad1(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(std::optional<Axes> pads, c.Ints("paddings"));
  TN_ASSIGN_OR_RETURN(const double value, c.Float("value", 0));
  TN_ASSIGN_OR_RETURN(std::string mode, c.String("mode", "constant"));
  if (!pads) return c.Error("expected the attribute paddings, but it is missing");
  return c.Result(OpKind::kPad, {c.In(0), c.Scalar(c.Type(0).dtype, value)},
                  {{"mode", std::move(mode)}}, {{"pads", graph::ToElements(*pads)}});
}

// ---- Experimental ones, which later sets lack and converters still write ----

Status ImportAffine(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const double alpha, c.Float("alpha", 1));
  TN_ASSIGN_OR_RETURN(const double beta, c.Float("beta", 0));
  const Formula f(c);
  return f.Result(f.In(0) * alpha + beta);
}

Status ImportScaledTanh(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const double alpha, c.Float("alpha", 1));
  TN_ASSIGN_OR_RETURN(const double beta, c.Float("beta", 1));
  const Formula f(c);
  return f.Result(Tanh(f.In(0) * beta) * alpha);
}

Status ImportParametricSoftplus(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const double alpha, c.Float("alpha", 1));
  TN_ASSIGN_OR_RETURN(const double beta, c.Float("beta", 1));
  const Formula f(c);
  return f.Result(Apply(OpKind::kSoftplus, f.In(0) * beta) * alpha);
}

Status ImportThresholdedRelu1(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const double alpha, c.Float("alpha", 1));
  const Formula f(c);
  const Val x = f.In(0);
  return f.Result(Where(x > alpha, x, 0));
}

// Over each channel of an image, or over all of them.
Status ImportMeanVarianceNorm1(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const bool across, c.Bool("across_channels", false));
  TN_ASSIGN_OR_RETURN(const bool scales, c.Bool("normalize_variance", true));
  if (c.Rank(0) < 3)
    return c.Error("expected an input of rank 3 or more, but got {}", c.Type(0).ToString());
  const Formula f(c);
  const Val x = Widened(f.In(0));
  Axes axes = AxesFrom(x, across ? 1 : 2);
  axes.insert(axes.begin(), 0);
  Val y = x - Mean(x, axes);
  if (scales) y = y / (Sqrt(Mean(y * y, axes)) + 1e-9);
  return f.Result(Cast(y, c.Type(0).dtype));
}

Status CheckImage(const OpContext& c) {
  if (c.Rank(0) == 4) return Ok();
  return c.Error("expected an image [N, C, H, W], but got {}", c.Type(0).ToString());
}

// A number for each channel is added.
Status ImportImageScaler(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_RETURN_IF_ERROR(CheckImage(c));
  TN_ASSIGN_OR_RETURN(const double scale, c.Float("scale", 1));
  TN_ASSIGN_OR_RETURN(const std::optional<std::vector<double>> bias, c.Floats("bias"));
  const Formula f(c);
  const Val x = f.In(0) * scale;
  if (!bias) return f.Result(x);
  const Expr channels = IndexConst(static_cast<int64_t>(bias->size())), one = IndexConst(1);
  TN_RETURN_IF_ERROR(c.Fix(0, 1, static_cast<int64_t>(bias->size())));
  if (graph::ProveDifferent(c.Dims(0)[1], channels)) {
    return c.Error("expected a bias for each channel of {}, but got {}", c.Type(0).ToString(),
                   bias->size());
  }
  return f.Result(x + Cast(Reshape(f.Floats(*bias), {channels, one, one}), x.dtype()));
}

// `border`: left, top, right, bottom; `scale`: height and width of what stays, in their place.
Status ImportCrop(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_RETURN_IF_ERROR(CheckImage(c));
  TN_ASSIGN_OR_RETURN(const std::optional<Axes> border, c.Ints("border"));
  TN_ASSIGN_OR_RETURN(const std::optional<Axes> scale, c.Ints("scale"));
  const auto is_sensible = [](const Axes& list, size_t count) {
    return list.size() == count &&
           std::all_of(list.begin(), list.end(), [](int64_t x) { return x >= 0 && x < 1 << 30; });
  };
  if (!border || !is_sensible(*border, 4) || (scale && !is_sensible(*scale, 2)))
    return c.Error("expected a border of 4 sizes, and 2 in scale");
  const Formula f(c);
  Val y = f.In(0);
  for (int64_t axis : {2, 3}) {
    const auto at = static_cast<size_t>(axis);
    const int64_t first = (*border)[3 - at], last = (*border)[5 - at];
    const Expr left = graph::DimSub(c.Dims(0)[at], IndexConst(first + last));
    y = Slice(y, axis, IndexConst(first), scale ? IndexConst((*scale)[at - 2]) : left);
  }
  return f.Result(y);
}

constexpr OpRow kRows[] = {
    {"Cast", 1, ImportCast1},
    {"Reshape", 1, ImportReshape1},
    {"Concat", 1, ImportConcat1},
    {"Split", 1, ImportSplit1},
    {"Tile", 1, ImportTile1},
    {"Pad", 1, ImportPad1},
    {"Affine", 1, ImportAffine},
    {"ScaledTanh", 1, ImportScaledTanh},
    {"ParametricSoftplus", 1, ImportParametricSoftplus},
    {"ImageScaler", 1, ImportImageScaler},
    {"Crop", 1, ImportCrop},
    {"ThresholdedRelu", 1, ImportThresholdedRelu1},
    {"MeanVarianceNormalization", 1, ImportMeanVarianceNorm1},
};

}  // namespace

std::span<const OpRow> OldestRows() { return kRows; }

}  // namespace tenon::onnx
