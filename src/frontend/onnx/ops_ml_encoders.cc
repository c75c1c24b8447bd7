// Encoders: values of one kind for those of another.
#include "frontend/onnx/index_checks.h"
#include "frontend/onnx/ops_ml.h"

namespace tenon::onnx {
namespace {

constexpr auto kStringType = static_cast<int32_t>(ElemType::kString);

/// A list that an attribute gives, of keys or values.
struct Entries {
  Val list;
  const NarrowType* narrow = nullptr;
  bool given = false;
};

// The one attribute that is given of prefix_tensor, prefix_strings, prefix_int64s, prefix_floats.
Expected<Entries> ReadEntries(OpContext& c, const Formula& f, const std::string& prefix) {
  Entries out;
  int given = 0;
  TN_ASSIGN_OR_RETURN(std::optional<Tensor> tensor, c.TensorAttr((prefix + "_tensor").c_str()));
  if (tensor) {
    out.narrow = tensor->narrow;
    out.list = f.Of(AddConstant(c.b, c.name() + "." + prefix, std::move(*tensor)));
    ++given;
  }
  TN_ASSIGN_OR_RETURN(const auto strings, c.Ints((prefix + "_strings").c_str()));
  TN_ASSIGN_OR_RETURN(const auto ints, c.Ints((prefix + "_int64s").c_str()));
  TN_ASSIGN_OR_RETURN(const auto floats, c.Floats((prefix + "_floats").c_str()));
  if (strings) {
    out.narrow = NarrowTypeOf(kStringType);
    out.list = f.Ints(*strings);
    ++given;
  }
  if (ints) out.list = f.Ints(*ints), ++given;
  if (floats) out.list = f.Floats(*floats), ++given;
  if (given > 1) return c.Error("expected one list of {}, but got several", prefix);
  out.given = given == 1;
  return out;
}

// Where keys are equal to elements of x, along a new last axis.
Val Matches(const Val& x, const Val& keys) {
  const Val element = Unsqueeze(x, x.rank());
  const Val equal = Equal(element, keys);
  if (!x.dtype().IsFloat()) return equal;
  return equal | (Apply(OpKind::kIsNan, element) & Apply(OpKind::kIsNan, keys));  // NaN is a key
}

// The value of the first key that an element is, or the default.
Val LookUp(const Val& x, const Val& keys, const Val& values, const Val& otherwise) {
  const Val matches = Cast(Matches(x, keys), DType::Int(32));
  const Val found = Reduce("max", matches, {-1}, false) > 0;
  return Where(found, Gather(values, Squeeze(ArgReduce("max", matches, -1), -1), 0), otherwise);
}

Expected<Val> DefaultOf(OpContext& c, const Formula& f, const Entries& values) {
  TN_ASSIGN_OR_RETURN(std::optional<Tensor> tensor, c.TensorAttr("default_tensor"));
  TN_ASSIGN_OR_RETURN(const int64_t text, c.Int("default_string", 0));
  TN_ASSIGN_OR_RETURN(const int64_t number, c.Int("default_int64", -1));
  TN_ASSIGN_OR_RETURN(const double real, c.Float("default_float", -0.0));
  if (tensor) return Reshape(f.Of(AddConstant(c.b, c.name() + ".default", std::move(*tensor))), {});
  if (values.narrow) return Element(f.Ints({text}), 0, 0);
  if (values.list.dtype().IsFloat()) return f.Number(values.list.dtype(), real);
  return Cast(Element(f.Ints({number}), 0, 0), values.list.dtype());
}

Status ImportLabelEncoder(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  const Formula f(c);
  Entries keys, values;
  const NarrowType* narrow = c.Narrow(0);
  if (c.HasAttr("classes_strings")) {  // of version 1: the places of strings, or the strings there
    TN_ASSIGN_OR_RETURN(const auto classes, c.Ints("classes_strings"));
    std::vector<int64_t> places;
    for (size_t i = 0; i < classes->size(); ++i) places.push_back(static_cast<int64_t>(i));
    Entries strings{f.Ints(*classes), NarrowTypeOf(kStringType), true};
    Entries numbers{f.Ints(places), nullptr, true};
    keys = narrow ? strings : numbers;
    values = narrow ? numbers : strings;
  } else {
    TN_ASSIGN_OR_RETURN(keys, ReadEntries(c, f, "keys"));
    TN_ASSIGN_OR_RETURN(values, ReadEntries(c, f, "values"));
  }
  TN_RETURN_IF_ERROR(f.Done());
  if (!keys.given || !values.given) return c.Error("expected a list of keys and one of values");
  if (keys.narrow != narrow || keys.list.dtype() != c.Type(0).dtype)
    return c.Error("expected keys of the input's type, but got {}", keys.list.dtype().ToString());
  if (keys.list.rank() != 1 || values.list.rank() != 1 ||
      !graph::ProveEqual(keys.list.dim(0), values.list.dim(0)))
    return c.Error("expected as many values as keys");
  TN_ASSIGN_OR_RETURN(const Val otherwise, DefaultOf(c, f, values));
  TN_RETURN_IF_ERROR(f.Result(LookUp(f.In(0), keys.list, values.list, otherwise)));
  c.SetNarrow(0, values.narrow);
  return Ok();
}

Status ImportCategoryMapper(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  const Formula f(c);
  const NarrowType* strings = NarrowTypeOf(kStringType);
  const bool from_strings = c.Narrow(0) == strings;
  TN_ASSIGN_OR_RETURN(const auto texts, c.Ints("cats_strings"));
  TN_ASSIGN_OR_RETURN(const auto numbers, c.Ints("cats_int64s"));
  TN_ASSIGN_OR_RETURN(const int64_t text, c.Int("default_string", 0));
  TN_ASSIGN_OR_RETURN(const int64_t number, c.Int("default_int64", -1));
  if (!texts || !numbers || texts->size() != numbers->size())
    return c.Error("expected cats_strings and cats_int64s of one length");
  const Val otherwise = Element(f.Ints({from_strings ? number : text}), 0, 0);
  TN_RETURN_IF_ERROR(f.Result(LookUp(f.In(0), f.Ints(from_strings ? *texts : *numbers),
                                     f.Ints(from_strings ? *numbers : *texts), otherwise)));
  c.SetNarrow(0, from_strings ? nullptr : strings);
  return Ok();
}

// A 1 for each category, along a new last axis. What is none is all zeros, or without `zeros` an
// error of the call.
Status ImportOneHotEncoder(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  const Formula f(c);
  const bool strings = c.Narrow(0) != nullptr;
  TN_ASSIGN_OR_RETURN(const auto texts, c.Ints("cats_strings"));
  TN_ASSIGN_OR_RETURN(const auto numbers, c.Ints("cats_int64s"));
  TN_ASSIGN_OR_RETURN(const bool zeros, c.Bool("zeros", true));
  const auto& list = strings ? texts : numbers;
  if (!list) return c.Error("expected categories of the input's type");
  Val x = strings ? f.In(0) : Cast(f.In(0), DType::Int(64));
  const Val keys = f.Ints(*list);
  if (!zeros) {
    const Val other = Not(Reduce("any", Matches(x, keys), {-1}, false));
    x = NoneOf(c, 0, x, other, "elements that are no category");
  }
  const Val matches = Matches(x, keys);
  return f.Result(Cast(matches, DType::Float(32)));
}

// Missing values replaced: NaN, or a number that stands for them.
Status ImportImputer(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  const Formula f(c);
  const Val x = f.In(0);
  TN_ASSIGN_OR_RETURN(const auto floats, c.Floats("imputed_value_floats"));
  TN_ASSIGN_OR_RETURN(const auto ints, c.Ints("imputed_value_int64s"));
  TN_ASSIGN_OR_RETURN(const double real, c.Float("replaced_value_float", 0));
  TN_ASSIGN_OR_RETURN(const int64_t number, c.Int("replaced_value_int64", 0));
  const bool is_float = x.dtype().IsFloat();
  if (is_float ? !floats : !ints) return c.Error("expected imputed values of the input's type");
  Val missing, values;
  if (is_float) {
    missing = real != real ? Apply(OpKind::kIsNan, x) : Equal(x, real);
    values = Cast(f.Floats(*floats), x.dtype());
  } else {
    missing = Equal(x, Cast(Element(f.Ints({number}), 0, 0), x.dtype()));
    values = Cast(f.Ints(*ints), x.dtype());
  }
  return f.Result(Where(missing, values, x));
}

// Features side by side.
Status ImportFeatureVectorizer(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, -1));
  const Formula f(c);
  TN_RETURN_IF_ERROR(c.Ints("inputdimensions"));
  std::vector<Val> parts;
  for (size_t i = 0; i < c.num_inputs(); ++i)
    parts.push_back(Cast(RowsOf(f.In(i)), DType::Float(32)));
  return f.Result(Concat(parts, -1));
}

// Rows over their largest magnitude, or their norm; those of zeros stay.
Status ImportMlNormalizer(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(1, 1));
  TN_ASSIGN_OR_RETURN(const std::string norm, c.String("norm", "MAX"));
  const Formula f(c);
  const Val x = Cast(f.In(0), DType::Float(32));
  Val by;
  if (norm == "MAX")
    by = Reduce("max", x, {-1});
  else if (norm == "L1")
    by = Sum(Abs(x), {-1});
  else if (norm == "L2")
    by = Sqrt(Sum(x * x, {-1}));
  else
    return c.Error("expected norm to be MAX, L1 or L2, but got '{}'", norm);
  return f.Result(x / Where(Equal(by, 0), 1, by));
}

constexpr OpRow kRows[] = {
    {.name = "LabelEncoder", .since = 1, .import = ImportLabelEncoder, .domain = kMl},
    {.name = "CategoryMapper", .since = 1, .import = ImportCategoryMapper, .domain = kMl},
    {.name = "OneHotEncoder", .since = 1, .import = ImportOneHotEncoder, .domain = kMl},
    {.name = "Imputer", .since = 1, .import = ImportImputer, .domain = kMl},
    {.name = "FeatureVectorizer", .since = 1, .import = ImportFeatureVectorizer, .domain = kMl},
    {.name = "Normalizer", .since = 1, .import = ImportMlNormalizer, .domain = kMl},
};

}  // namespace

std::span<const OpRow> MlEncoderRows() { return kRows; }

}  // namespace tenon::onnx
