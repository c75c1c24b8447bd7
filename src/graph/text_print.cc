#include <fmt/format.h>

#include "graph/text.h"
#include "ir/print.h"
#include "support/strings.h"

namespace tenon::graph {

std::vector<int64_t> TextNumbers(const Graph& g) {
  std::vector<int64_t> numbers(g.values.size(), -1);
  int64_t next = 0;
  auto give = [&](ValueId v) { numbers[static_cast<size_t>(v)] = next++; };
  for (ValueId v : g.inputs) give(v);
  for (size_t v = 0; v < g.values.size(); ++v) {
    if (g.values[v].IsConstant()) give(static_cast<ValueId>(v));
  }
  for (const Node& n : g.nodes) {
    for (ValueId v : n.outputs) give(v);
  }
  return numbers;
}

namespace {

// Elements of an owned constant that print one by one; longer ones are hexadecimal.
constexpr size_t kMostListed = 256;

// numbers_ has the values of the graph, or region, being printed that are defined so far, by the
// order of their definitions; a region has numbers of its own.
class GraphPrinter : IrPrinter {
 public:
  std::string Print(const Graph& g) {
    out_ += "graph @" + WordText(g.name);
    for (const Dim& d : g.dims) Declare(d.var, d.var->name);
    PrintDims(g);
    numbers_ = TextNumbers(g);
    PrintParams(g);
    out_ += " {\n";
    for (const auto& [key, value] : g.metadata) {
      out_ += fmt::format("  metadata {} {}\n", QuoteJson(key), QuoteJson(value));
    }
    if (!g.constraints.empty()) {
      out_ += "  require [";
      for (size_t i = 0; i < g.constraints.size(); ++i) {
        if (i) out_ += ", ";
        PrintExpr(g.constraints[i].holds);
        PrintAsker(g.constraints[i].asker);
      }
      out_ += "]\n";
    }
    PrintBody(g, "  ");
    out_ += "}\n";
    return Take();
  }

 private:
  void PrintAsker(const std::string& asker) {
    if (!asker.empty()) out_ += " for " + QuoteJson(asker);
  }

  void PrintDims(const Graph& g) {
    if (g.dims.empty()) return;
    out_ += "<";
    for (size_t i = 0; i < g.dims.size(); ++i) {
      const Dim& d = g.dims[i];
      out_ += (i ? ", " : "") + NameOf(d.var, d.var->name);
      const Dim any;
      if (d.min != any.min || d.max != any.max || d.step != 1)
        out_ += fmt::format(": {}..={}", d.min, d.max);
      if (d.step != 1) out_ += fmt::format(" step {}", d.step);
      PrintAsker(d.asker);
    }
    out_ += ">";
  }

  void PrintParams(const Graph& g) {
    out_ += "(";
    for (size_t i = 0; i < g.inputs.size(); ++i) {
      if (i) out_ += ", ";
      PrintDefinition(g, g.inputs[i]);
    }
    out_ += ")";
  }

  // Prints "%3 "name": type".
  void PrintDefinition(const Graph& g, ValueId v) {
    PrintUse(v);
    if (!g.value(v).name.empty()) out_ += " " + QuoteJson(g.value(v).name);
    out_ += ": ";
    PrintType(g.value(v).type);
  }

  void PrintType(const Type& whole) {
    std::string end;
    const Type* t = &whole;
    for (; !t->IsTensor(); t = &t->element(), end += ")")
      out_ += t->kind() == TypeKind::kSequence ? "sequence(" : "optional(";
    PrintTensorType(t->tensor());
    out_ += end;
  }

  void PrintTensorType(const TensorType& type) {
    out_ += type.dtype.ToString() + "[";
    PrintList(type.dims);
    out_ += "]";
    if (type.layout) {
      out_ += " layout ";
      PrintLayout(*type.layout);
    }
    if (!type.place.IsHost()) out_ += " on " + type.place.ToString();
  }

  void PrintUse(ValueId v) {
    if (v == kNoValue) {
      out_ += "_";
      return;
    }
    const int64_t number = numbers_[static_cast<size_t>(v)];
    out_ += number < 0 ? "%?" : fmt::format("%{}", number);
  }

  void PrintUses(const std::vector<ValueId>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) out_ += ", ";
      PrintUse(list[i]);
    }
  }

  void PrintBody(const Graph& g, const std::string& indent) {
    for (size_t v = 0; v < g.values.size(); ++v) {
      if (!g.values[v].IsConstant()) continue;
      out_ += indent;
      PrintDefinition(g, static_cast<ValueId>(v));
      out_ += " = const ";
      PrintPayload(g.values[v]);
      out_ += "\n";
    }
    for (const Node& n : g.nodes) PrintNodeLine(g, n, indent);
    out_ += indent + "return";
    for (size_t i = 0; i < g.outputs.size(); ++i) {
      out_ += i ? ", " : " ";
      PrintUse(g.outputs[i]);
      if (i < g.output_names.size()) out_ += " " + QuoteJson(g.output_names[i]);
    }
    out_ += "\n";
  }

  void PrintNodeLine(const Graph& g, const Node& n, const std::string& indent) {
    out_ += indent;
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      if (i) out_ += ", ";
      PrintDefinition(g, n.outputs[i]);
    }
    out_ += fmt::format(" = {}(", Name(n.op));
    PrintUses(n.inputs);
    out_ += ")";
    PrintAttrs(g, n);
    if (!n.name.empty() && (n.outputs.empty() || n.name != g.value(n.outputs[0]).name))
      out_ += " " + QuoteJson(n.name);
    if (n.plan) PrintPlan(*n.plan);
    for (const std::shared_ptr<const Graph>& region : n.regions) PrintRegionBody(*region, indent);
    out_ += "\n";
  }

  void PrintAttrs(const Graph& g, const Node& n) {
    const int rank = RankOfFirst(g, n);
    const char* before = " {";
    for (const AttrSpec& spec : Info(n.op).attrs) {
      if (auto it = n.exprs.find(spec.name); it != n.exprs.end()) {
        out_ += fmt::format("{}{}: [", before, spec.name);
        PrintList(it->second);
        out_ += "]";
      } else if (const AttrValue* value = n.attrs.Find(spec.name);
                 value && DefaultOf(spec, rank) != *value) {
        out_ += fmt::format("{}{}: {}", before, spec.name, ToString(*value));
      } else {
        continue;
      }
      before = ", ";
    }
    if (before[0] == ',') out_ += "}";
  }

  void PrintPlan(const Plan& plan) {
    out_ += " plan " + QuoteJson(plan.algorithm);
    if (!plan.layout.empty()) {
      out_ += " layout " + ChoicesText(plan.layout);
    }
    for (size_t i = 0; i < plan.variants.size(); ++i) {
      if (i + 1 < plan.variants.size()) {
        out_ += " when [";
        PrintList({plan.variants[i].when});
        out_ += "]";
      } else if (plan.variants[i].schedule.empty()) {
        break;
      }
      out_ += " schedule " + ChoicesText(plan.variants[i].schedule);
    }
    out_ += fmt::format(" seconds {}", plan.seconds);
  }

  void PrintRegionBody(const Graph& region, const std::string& indent) {
    std::vector<int64_t> outer = TextNumbers(region);
    std::swap(outer, numbers_);
    out_ += " region";
    PrintParams(region);
    out_ += " {\n";
    PrintBody(region, indent + "  ");
    out_ += indent + "}";
    std::swap(outer, numbers_);
  }

  void PrintPayload(const Value& v) {
    if (v.payload.file()) {
      out_ += fmt::format("@{}+{}", QuoteJson(v.payload.file()->path), v.payload.offset());
      return;
    }
    if (const std::string list = ListText(v); !list.empty()) {
      out_ += list;
      return;
    }
    out_ += "hex \"";
    for (std::byte b : v.payload.bytes()) out_ += fmt::format("{:02x}", static_cast<int>(b));
    out_ += "\"";
  }

  // "[1, 2]", or "" where the elements are too many or their text would not give the same bytes
  // back.
  static std::string ListText(const Value& v) {
    std::string out;
    auto join = [&](const auto& list, auto text) {
      for (const auto& x : list) out += (out.empty() ? "[" : ", ") + text(x);
      if (out.empty()) out = "[";
      out += "]";
      const Payload again = MakePayload(v.type.tensor().dtype, std::span(list));
      const std::span<const std::byte> a = again.bytes(), b = v.payload.bytes();
      if (!std::equal(a.begin(), a.end(), b.begin(), b.end())) out.clear();
    };
    if (auto ints = ReadInts(v, kMostListed)) {
      join(*ints, [](int64_t x) { return std::to_string(x); });
    } else if (auto floats = ReadFloats(v, kMostListed)) {
      const bool single = v.type.tensor().dtype.bits == 32;
      join(*floats, [&](double x) {
        return single ? fmt::format("{}", static_cast<float>(x)) : fmt::format("{}", x);
      });
    }
    return out;
  }

  std::vector<int64_t> numbers_;  // of the graph or region being printed
};

}  // namespace

std::string Print(const Graph& g) { return GraphPrinter().Print(g); }

}  // namespace tenon::graph
