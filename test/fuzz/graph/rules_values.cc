// Values that are not tensors: sequences, optional values, strings, maps. They live inside of a
// pattern, whose operands and results are tensors. Also constants, and counts of n-grams.
#include "fuzz/graph/rules.h"

namespace tenon::fuzz {

namespace {

// A name of a value that only the pattern knows.
std::string Step(Maker& m, const char* op, const std::vector<std::string>& inputs,
                 const std::vector<std::string>& attributes = {}, const std::string& domain = "") {
  const std::string name = m.NewName();
  m.Plain(op, inputs, name, attributes, domain);
  return name;
}

// Two tensors, put in, taken out, looked up.
bool Sequence(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .max_rank = 3});
  Dims dims = x.dims;
  dims[0] = m.AnyOpenSize();
  const Value y = m.Like(t, dims);
  std::string s = Step(m, "SequenceConstruct", {x.name, y.name});
  if (m.Chance(2)) s = Step(m, "SequenceInsert", {s, x.name, m.Scalar64(m.Between(-2, 2)).name});
  if (m.Chance(2)) s = Step(m, "SequenceErase", {s, m.Scalar64(m.Of<int64_t>({0, -1})).name});
  if (m.Chance(2)) {
    const Value count{"", kI64, {}, 0, 3};
    return m.Add("SequenceLength", {s}, count).has_value();
  }
  // Which of the two is first is known to nobody here: what all have is their width.
  const std::string one = Step(m, "SequenceAt", {s, m.Scalar64(0).name});
  const Value shape{"", kI64, {static_cast<int64_t>(x.rank())}, 0, 1e4};
  return m.Add("Shape", {one}, shape).has_value();
}

bool SequenceJoined(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .max_rank = 3});
  Dims dims = x.dims;
  dims[0] = m.AnyOpenSize();
  const Value y = m.Like(t, dims);
  Value z = x;
  z.dims[0] = x.dims[0] + y.dims[0];
  z.lo = std::min(x.lo, y.lo), z.hi = std::max(x.hi, y.hi);
  z.error = std::max(x.error, y.error), z.whole = x.whole && y.whole;
  const std::string empty = Step(m, "SequenceEmpty", {}, {Int("dtype", t)});
  const std::string s =
      Step(m, "SequenceInsert", {Step(m, "SequenceInsert", {empty, x.name}), y.name});
  return m.Add("ConcatFromSequence", {s}, z, {Int("axis", 0)}).has_value();
}

bool SequenceSplit(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .max_rank = 3, .filled = true});
  const auto axis = static_cast<int64_t>(m.Below(x.rank()));
  const std::string s =
      Step(m, "SplitToSequence", {x.name, m.Scalar64(m.Between(1, 3)).name}, {Int("axis", axis)});
  return m.Add("ConcatFromSequence", {s}, x, {Int("axis", axis)}).has_value();
}

bool SequenceMapped(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.min_rank = 1, .max_rank = 3, .filled = true});
  const std::string s = Step(m, "SplitToSequence", {x.name, m.Scalar64(2).name}, {Int("axis", 0)});
  m.Enter();
  const std::string in = m.FormalOfType(t), out = m.NewName();
  m.Plain("Concat", {in, in}, out, {Int("axis", 0)});
  const std::string mapped = Step(m, "SequenceMap", {s}, {m.Leave("body", {{out, t}})});
  Value y = x;
  y.dims[0] = x.dims[0] * Size(2);
  return m.Add("ConcatFromSequence", {mapped}, y, {Int("axis", 0)}).has_value();
}

bool Optional(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t);
  const std::string o = Step(m, "Optional", {x.name});
  if (rule.op == std::string_view("OptionalHasElement")) {
    const Value y{"", kBool, {}, 0, 1};
    return m.Add(rule.op, {o}, y).has_value();
  }
  return m.Add(rule.op, {o}, x).has_value();
}

// Numbers as text, joined, compared with themselves in another order, and back.
bool Strings(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.max_rank = 3, .lo = 0, .hi = 99, .exact = true});
  const std::string text = Step(m, "Cast", {x.name}, {Int("to", 8)});
  const std::string_view op = rule.op;
  Value y = x;
  if (op == "(strings)") return m.Add("Cast", {text}, y, {Int("to", t)}).has_value();
  if (op == "StringConcat") {
    const std::string twice = Step(m, "StringConcat", {text, text});
    y.elem = kI64, y.lo = 0, y.hi = 9999;
    return m.Add("Cast", {twice}, y, {Int("to", kI64)}).has_value();
  }
  y.elem = kBool, y.lo = 0, y.hi = 1;
  return m
      .Add("RegexFullMatch", {text}, y,
           {Str("pattern", m.Of<std::string>({"[0-9]", "[1-4]+", "(1|2)*.?", ".*5.*"}))})
      .has_value();
}

// Rows of text, in letters of one case; of no row there would be one, which is empty.
bool Normalized(Maker& m, const Rule& rule, Elem t) {
  const Value x =
      m.Take(t, {.min_rank = 1, .max_rank = 1, .lo = 0, .hi = 99, .exact = true, .filled = true});
  const std::string text = Step(m, "Cast", {x.name}, {Int("to", 8)});
  std::vector<std::string> attributes = {
      Str("case_change_action", m.Of<std::string>({"NONE", "LOWER", "UPPER"})),
      Int("is_case_sensitive", m.Between(0, 1))};
  if (m.Chance(2)) attributes.push_back(StrList("stopwords", {"none", "of", "These"}));
  return m.Add("Cast", {Step(m, rule.op, {text}, attributes)}, x, {Int("to", t)}).has_value();
}

// How many parts each number has between fives: 55 has three, all of them empty.
bool Parts(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.max_rank = 3, .lo = 0, .hi = 99, .exact = true});
  const std::string text = Step(m, "Cast", {x.name}, {Int("to", 8)});
  const std::string parts = m.NewName(), counts = m.NewName();
  m.PlainAll(rule.op, {text}, {parts, counts}, {Str("delimiter", "5"), Int("maxsplit", 2)});
  Value y = x;
  y.elem = kI64, y.lo = 0, y.hi = 3;
  return m.Add("Identity", {counts}, y).has_value();
}

// Numbers to names and back.
bool Categories(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.max_rank = 3, .lo = 0, .hi = 9, .exact = true});
  const std::vector<std::string> attributes = {
      StrList("cats_strings", {"a", "b", "", "ü"}), Ints("cats_int64s", {0, 2, 3, 9}),
      Str("default_string", "none"), Int("default_int64", 7)};
  const std::string names = Step(m, rule.op, {x.name}, attributes, rule.domain);
  Value y = x;
  y.lo = 0, y.hi = 9;
  return m.Add(rule.op, {names}, y, attributes, rule.domain).has_value();
}

bool ConstantNode(Maker& m, const Rule& rule, Elem t) {
  const int64_t n = m.Between(0, 9);
  const double least = std::max(0.0, InfoOf(t).least), most = std::min(9.0, InfoOf(t).most);
  const Value y{"", t, {n}, least, most};
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(AnyElement(m.random, y));
  return m
      .Add(rule.op, {}, y,
           {onnx::test::TensorAttr("value", onnx::test::Tensor("", t, {n}, BytesOf(t, values)))})
      .has_value();
}

// Pairs and single numbers that are counted.
bool NGrams(Maker& m, const Rule& rule, Elem t) {
  const Size length = Within(m.AnyOpenSize(), 1, 17);
  const bool rows = m.Chance(2);
  const Size batch = Within(m.AnyOpenSize(), 1, 5);
  const Value x = m.Data(t, rows ? Dims{batch, length} : Dims{length}, 0, 4);
  const std::string mode = m.Of<std::string>({"TF", "IDF", "TFIDF"});
  Value y = Computed(kF32, rows ? Dims{batch, 5} : Dims{5}, 400, 0);
  y.lo = 0, y.whole = true;
  return m
      .Add(rule.op, {x.name}, y,
           {Str("mode", mode), Int("min_gram_length", m.Between(1, 2)), Int("max_gram_length", 2),
            Int("max_skip_count", m.Between(0, 3)), Ints("ngram_counts", {0, 3}),
            Ints("ngram_indexes", {0, 2, 1, 4, 3}), Ints("pool_int64s", {1, 2, 4, 1, 2, 3, 3}),
            FloatList("weights", {1, 2, 3, 2, 1})})
      .has_value();
}

constexpr Types kWritten = Only(kI32) | Only(kI64) | Only(kF32);

constexpr Rule kRules[] = {
    {"(sequence)", 18, kOldAll, Sequence},
    {"(sequence joined)", 18, kOldAll, SequenceJoined},
    {"SplitToSequence", 18, kOldAll, SequenceSplit},
    {"SplitToSequence", 24, Only(kBF16), SequenceSplit},
    {"SequenceMap", 18, kOldAll, SequenceMapped},
    {"OptionalGetElement", 18, kOldAll, Optional},
    {"OptionalHasElement", 18, kOldAll, Optional},
    {"OptionalGetElement", 28, Only(kBF16) | kStored, Optional},
    {"OptionalHasElement", 28, Only(kBF16) | kStored, Optional},
    {"(strings)", 20, kWritten, Strings},
    {"StringConcat", 20, Only(kI32) | Only(kI64), Strings},
    {"RegexFullMatch", 20, Only(kI32) | Only(kI64), Strings},
    {"StringNormalizer", 18, Only(kI32) | Only(kI64), Normalized},
    {"StringSplit", 20, Only(kI32) | Only(kI64), Parts},
    {"CategoryMapper", 18, Only(kI64), Categories, "ai.onnx.ml"},
    {"Constant", 21, kAny, ConstantNode},
    {"TfIdfVectorizer", 18, Only(kI32) | Only(kI64), NGrams},
};

}  // namespace

std::span<const Rule> ValueRules() { return kRules; }

}  // namespace tenon::fuzz
