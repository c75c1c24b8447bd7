// Graphs as text, read with the machinery of loop IR's (ir/parse_core.h).
//
// A line defines values by number, `%7 "name": type = op(%1, %2) {attributes}`; attributes are read
// as the operator's row of ops.def types them, so that a list of integers is never taken for one of
// names. A tensor's type is written as a buffer's is, with `on device k` where it is not the host:
//
//   graph @main<n>(%0 "x": f32[n, 4]) {
//     %1: f32[4, 4] = const @"w.bin"+0
//     %2 "y": f32[n, 4] = matmul(%0, %1) {trans_b: true}
//     return %2 "y"
//   }
//
// The bytes of constants stay in their file, which is opened once and mapped. What is read is
// verified before anybody else sees it: types are written in the text, and are checked against what
// the operators say.

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <unordered_map>

#include "graph/text.h"
#include "graph/verify.h"
#include "ir/parse_core.h"
#include "support/check.h"

namespace tenon::graph {
namespace {

// One graph being read. `numbers_` are the values defined so far, which is all that a use may name:
// the text is in order, as the graph is.
class GraphParser : TextParser {
 public:
  GraphParser(std::string_view text, const std::string& file, const WeightSource& source)
      : TextParser(text, file), file_(file), source_(source) {}

  Expected<Graph> Run() {
    Graph g;
    if (errors_.empty()) {
      try {
        TakeGraph(&g);
      } catch (const Abort&) {
      }
    }
    if (!errors_.empty()) return std::move(errors_);
    Status verified = Verify(g);
    if (verified) return g;
    for (Diagnostic& d : verified.errors()) d.loc.file = file_;
    return std::move(verified.errors());
  }

 private:
  using Numbers = std::unordered_map<int64_t, ValueId>;

  void TakeGraph(Graph* g) {
    Expect("graph", "at the start of a graph");
    Expect("@", "before the name of a graph");
    g->name = TakeWord("the name of a graph");
    TakeDims(g);
    TakeParams(g);
    Expect("{", "before a graph's body");
    while (Accept("metadata")) {
      const Token at = Peek();
      std::string key = TakeString("the key of an entry");
      if (!g->metadata.emplace(std::move(key), TakeString("the value of an entry")).second)
        Fail(at, "the key is given twice");
    }
    if (Accept("require")) {  // in brackets, because the % of the next line would go on with the
                              // expression
      Expect("[", "before the conditions");
      List("]", "after the conditions", [&] {
        Expr holds = TakeExpr(DType::Bool(), "condition");
        g->constraints.push_back({std::move(holds), TakeAsker()});
      });
    }
    TakeBody(g);
    Expect("}", "after a graph's body");
    if (Peek().kind != TokenKind::kEnd) FailExpected("the end of the text");
  }

  std::string TakeAsker() {
    return Accept("for") ? TakeString("who asks for a condition or a range") : "";
  }

  void TakeDims(Graph* g) {
    if (!Accept("<")) return;
    List(">", "after the dims", [&] {
      const Token at = Peek();
      const std::string name = TakeName("a dim");
      Dim d;
      if (Accept(":")) {
        d.min = TakeInt("the least size");
        Expect("..=", "between the least and the largest size");
        d.max = TakeInt("the largest size");
      }
      d.var = d.min == 0 ? VarNode::MakeCount(name) : VarNode::Make(name);
      if (Accept("step")) d.step = TakeInt("the step of sizes");
      d.asker = TakeAsker();
      Declare(at, name, d.var);
      g->dims.push_back(std::move(d));
    });
  }

  void TakeParams(Graph* g) {
    Expect("(", "before the inputs");
    List(")", "after the inputs", [&] {
      const Definition d = TakeDefinition();
      Define(d, g->AddInput(d.name, d.type));
    });
  }

  struct Definition {
    Token at;
    int64_t number = 0;
    std::string name;
    Type type;
  };

  int64_t TakeNumber() {
    Expect("%", "before the number of a value");
    return TakeInt("the number of a value");
  }

  Definition TakeDefinition() {
    Definition d;
    d.at = Peek();
    d.number = TakeNumber();
    if (Peek().kind == TokenKind::kString) d.name = TakeString("a name");
    Expect(":", "before the type of a value");
    d.type = TakeValueType(0);
    return d;
  }

  void Define(const Definition& d, ValueId v) {
    if (!numbers_.emplace(d.number, v).second)
      Fail(d.at, fmt::format("%{} is already defined", d.number));
  }

  Type TakeValueType(int depth) {
    const Token at = Peek();
    const bool sequence = At("sequence") && At("(", 1);
    if (!sequence && !(At("optional") && At("(", 1))) return TakeTensorType();
    if (depth >= Limits::kTypeDepth)
      FailLimit(at, fmt::format("expected types nested at most {} deep", Limits::kTypeDepth));
    Take();
    Expect("(", "before the type of what is in it");
    Type element = TakeValueType(depth + 1);
    Expect(")", "after the type of what is in it");
    return sequence ? Type::Sequence(std::move(element)) : Type::Optional(std::move(element));
  }

  // A tensor's type is written as a buffer's is; buffers have no strings.
  TensorType TakeTensorType() {
    const Token at = Peek();
    if (Accept("string")) {
      Expect("[", "before the dims of a tensor");
      return {DType::String(), TakeExprs("]", "after the dims of a tensor"), nullptr, {}};
    }
    const Buffer buffer = TakeBufferType("value");
    if (!buffer->strides.empty() || buffer->scope != Scope::kGlobal || buffer->align != 0) {
      Fail(at, "expected the type of a tensor without strides, scope and alignment");
    }
    TensorType type{buffer->dtype, buffer->shape, buffer->layout, {}};
    if (Accept("on")) {
      Expect("device", "in the place of a tensor");
      const int64_t device = TakeInt("the number of a device");
      if (device < 0 || device > Place::kMostDevices)
        Fail(at, fmt::format("expected the number of a device, but got {}", device));
      type.place = Place::Device(static_cast<int32_t>(device));
    }
    return type;
  }

  ValueId TakeUse() {
    if (Accept("_")) return kNoValue;
    const Token at = Peek();
    const int64_t number = TakeNumber();
    auto it = numbers_.find(number);
    if (it == numbers_.end()) Fail(at, fmt::format("%{} is not defined before it is used", number));
    return it->second;
  }

  void TakeBody(Graph* g) {
    while (!At("return")) TakeLine(g);
    Take();
    if (At("}")) return;
    do {
      const Token at = Peek();
      const ValueId v = TakeUse();
      if (v == kNoValue) Fail(at, "expected a value to return");
      g->AddOutput(Peek().kind == TokenKind::kString ? TakeString("a name") : "", v);
    } while (Accept(","));
  }

  void TakeLine(Graph* g) {
    if (g->values.size() > 2 * Limits::kNodes) FailLimit(Peek(), "too many values");
    std::vector<Definition> outputs;
    do {
      outputs.push_back(TakeDefinition());
    } while (Accept(","));
    Expect("=", "after the type of a value");
    if (Accept("const")) {
      if (outputs.size() != 1) Fail(outputs[1].at, "a constant is one value");
      Definition& d = outputs[0];
      if (!d.type.IsTensor()) Fail(d.at, "expected a constant to be a tensor");
      Payload payload = TakePayload(d.type.tensor());
      return Define(d, g->AddConstant(d.name, d.type.tensor(), std::move(payload)));
    }
    Node node = TakeNode(g);
    if (node.name.empty()) node.name = outputs[0].name;
    Types types;
    for (Definition& d : outputs) types.push_back(d.type);
    const NodeId id = g->AddNode(std::move(node), std::move(types));
    for (size_t i = 0; i < outputs.size(); ++i) {
      g->value(g->node(id).outputs[i]).name = outputs[i].name;
      Define(outputs[i], g->node(id).outputs[i]);
    }
  }

  Node TakeNode(Graph* g) {
    Node n;
    const Token at = Peek();
    const std::optional<OpKind> op = at.kind == TokenKind::kWord ? ParseOp(at.text) : std::nullopt;
    if (!op) FailExpected("an operator or 'const'");
    Take();
    n.op = *op;
    Expect("(", "before the operands");
    List(")", "after the operands", [&] { n.inputs.push_back(TakeUse()); });
    if (At("{")) TakeNodeAttrs(&n);
    if (Status s = CompleteAttrs(n.op, RankOfFirst(*g, n), &n.attrs, n.exprs); !s)
      Fail(at, s.errors()[0].message);
    if (Peek().kind == TokenKind::kString) n.name = TakeString("a name");
    if (Accept("plan")) n.plan = std::make_shared<const Plan>(TakePlan());
    while (At("region")) n.regions.push_back(TakeRegionBody(*g));
    return n;
  }

  Choices TakeChoices() {
    Choices choices;
    Expect("{", "before choices");
    List("}", "after choices", [&] {
      const Token at = Peek();
      const std::string name = TakeWord("the name of a choice");
      for (const Choice& c : choices) {
        if (c.name == name) Fail(at, fmt::format("the choice {} is made twice", name));
      }
      Expect(":", "after the name of a choice");
      choices.push_back({name, TakeInt("a number")});
    });
    return choices;
  }

  Plan TakePlan() {
    Plan plan;
    plan.algorithm = TakeString("the name of an algorithm");
    if (Accept("layout")) plan.layout = TakeChoices();
    while (Accept("when")) {
      Expect("[", "before a condition");
      const Expr when = TakeExpr(DType::Bool(), "condition");
      Expect("]", "after a condition");
      Expect("schedule", "before the choices of a schedule");
      plan.variants.push_back({when, TakeChoices()});
    }
    plan.variants.push_back({IntConst::Make(DType::Bool(), 1), {}});
    if (Accept("schedule")) plan.variants.back().schedule = TakeChoices();
    Expect("seconds", "before the time of a plan");
    plan.seconds = TakeFloat();
    return plan;
  }

  std::shared_ptr<const Graph> TakeRegionBody(const Graph& outer) {
    const Token at = Take();
    if (++region_depth_ > Limits::kRegionDepth)
      FailLimit(at, fmt::format("expected regions nested at most {} deep", Limits::kRegionDepth));
    Graph region;
    region.dims = outer.dims;
    Numbers saved;
    std::swap(saved, numbers_);
    TakeParams(&region);
    Expect("{", "before a region's body");
    TakeBody(&region);
    Expect("}", "after a region's body");
    std::swap(saved, numbers_);
    --region_depth_;
    return std::make_shared<const Graph>(std::move(region));
  }

  // ---- attributes, read as their operator's row types them ----

  void TakeNodeAttrs(Node* n) {
    Expect("{", "before attributes");
    List("}", "after attributes", [&] {
      const Token at = Peek();
      if (at.kind != TokenKind::kWord) FailExpected("the name of an attribute");
      Take();
      const std::string name(at.text);
      const AttrSpec* spec = FindAttr(Info(n->op), name);
      if (!spec) Fail(at, fmt::format("{} has no attribute {}", Name(n->op), name));
      if (n->attrs.Has(name) || n->exprs.contains(name))
        Fail(at, fmt::format("the attribute {} is given twice", name));
      Expect(":", "after the name of an attribute");
      if (spec->type == AttrType::kExprs) {
        Expect("[", "before a list");
        n->exprs[name] = TakeExprs("]", "after a list");
      } else {
        n->attrs.Set(name, TakeAttrOf(spec->type));
      }
    });
  }

  AttrValue TakeAttrOf(AttrType type) {
    switch (type) {
      case AttrType::kBool: return TakeBool();
      case AttrType::kInt: return TakeInt("an integer");
      case AttrType::kFloat: return TakeFloat();
      case AttrType::kString: return TakeString("a string");
      case AttrType::kInts: return TakeListOf<int64_t>([&] { return TakeInt("an integer"); });
      case AttrType::kFloats: return TakeListOf<double>([&] { return TakeFloat(); });
      case AttrType::kStrings:
        return TakeListOf<std::string>([&] { return TakeString("a string"); });
      case AttrType::kExprs: break;
    }
    TN_UNREACHABLE();
  }

  template <class T, class F>
  std::vector<T> TakeListOf(F item) {
    std::vector<T> list;
    Expect("[", "before a list");
    List("]", "after a list", [&] { list.push_back(item()); });
    return list;
  }

  bool TakeBool() {
    if (Accept("true")) return true;
    if (!Accept("false")) FailExpected("true or false");
    return false;
  }

  double TakeFloat() {
    const double sign = Accept("-") ? -1 : 1;
    if (Accept("inf")) return sign * std::numeric_limits<double>::infinity();
    if (Accept("nan")) return sign * std::numeric_limits<double>::quiet_NaN();
    const Token at = Peek();
    const NumberParts parts = SplitNumber(at.text);
    double value = 0;
    const char* end = parts.digits.data() + parts.digits.size();
    if (at.kind != TokenKind::kNumber || !parts.type.empty() ||
        std::from_chars(parts.digits.data(), end, value).ec != std::errc()) {
      FailExpected("a number");
    }
    Take();
    return sign * value;
  }

  // ---- constants ----

  Payload TakePayload(const TensorType& type) {
    const Token at = Peek();
    if (Accept("@")) return TakeFilePayload(at, type);
    if (Accept("hex")) return TakeHexPayload(at);
    if (type.dtype.IsFloat()) {
      const std::vector<double> list = TakeListOf<double>([&] { return TakeFloat(); });
      return MakePayload(type.dtype, std::span(list));
    }
    if (!type.dtype.IsInt() && !type.dtype.IsBool())
      Fail(at, "expected a constant of numbers or bools");
    const std::vector<int64_t> list = TakeListOf<int64_t>([&] { return TakeInt("an integer"); });
    return MakePayload(type.dtype, std::span(list));
  }

  Payload TakeFilePayload(const Token& at, const TensorType& type) {
    const std::string path = TakeString("the name of a weight file");
    Expect("+", "before the offset in a weight file");
    const int64_t offset = TakeInt("the offset in a weight file");
    std::optional<std::vector<int64_t>> dims = type.StaticDims();
    if (!dims) Fail(at, "expected a constant of known dims");
    uint64_t size = static_cast<uint64_t>(type.dtype.Bytes());
    for (int64_t d : *dims) {
      if (d < 0 || __builtin_mul_overflow(size, static_cast<uint64_t>(d), &size))
        Fail(at, "expected a constant of sensible dims");
    }
    if (!source_) Fail(at, "no weight files are at hand to read this constant from");
    auto& file = files_[path];
    if (!file) {
      Expected<std::shared_ptr<const WeightFile>> opened = source_(path);
      if (!opened) Fail(at, opened.errors()[0].message);
      file = *opened;
    }
    if (offset < 0 || static_cast<uint64_t>(offset) > file->map.size() ||
        size > file->map.size() - static_cast<uint64_t>(offset)) {
      Fail(at, fmt::format("{} bytes at {} lie beyond the end of the weight file ({} bytes)", size,
                           offset, file->map.size()));
    }
    return Payload::InFile(file, static_cast<uint64_t>(offset), size);
  }

  Payload TakeHexPayload(const Token& at) {
    const std::string text = TakeString("hexadecimal bytes");
    std::vector<std::byte> bytes(text.size() / 2);
    for (size_t i = 0; i < bytes.size(); ++i) {
      unsigned value = 0;
      const char* p = text.data() + 2 * i;
      if (std::from_chars(p, p + 2, value, 16).ptr != p + 2)
        Fail(at, "expected hexadecimal digits");
      bytes[i] = static_cast<std::byte>(value);
    }
    if (text.size() % 2 != 0) Fail(at, "expected two hexadecimal digits per byte");
    return Payload::Owned(std::move(bytes));
  }

  const std::string& file_;
  const WeightSource& source_;
  std::unordered_map<std::string, std::shared_ptr<const WeightFile>> files_;
  Numbers numbers_;
  int region_depth_ = 0;
};

}  // namespace

Expected<Graph> Parse(std::string_view text, const std::string& file, const WeightSource& source) {
  return GraphParser(text, file, source).Run();
}

}  // namespace tenon::graph
