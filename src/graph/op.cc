#include "graph/op.h"

#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

#include "graph/rules.h"
#include "support/strings.h"

namespace tenon::graph {
namespace {

// What the attribute column of ops.def may say.
#define BOOL_OR(name, value) {name, AttrType::kBool, AttrFill::kScalar, value, nullptr, nullptr},
#define INT(name) {name, AttrType::kInt, AttrFill::kRequired, 0, nullptr, nullptr},
#define INT_OR(name, value) {name, AttrType::kInt, AttrFill::kScalar, value, nullptr, nullptr},
#define FLOAT_OR(name, value) {name, AttrType::kFloat, AttrFill::kScalar, value, nullptr, nullptr},
#define STRING(name) {name, AttrType::kString, AttrFill::kRequired, 0, nullptr, nullptr},
#define STRING_OR(name, value) {name, AttrType::kString, AttrFill::kScalar, 0, value, nullptr},
#define CHOICE(name, value, choices) \
  {name, AttrType::kString, AttrFill::kScalar, 0, value, choices},
#define CHOICE_REQUIRED(name, choices) \
  {name, AttrType::kString, AttrFill::kRequired, 0, nullptr, choices},
#define INTS(name) {name, AttrType::kInts, AttrFill::kRequired, 0, nullptr, nullptr},
#define INTS_SPATIAL(name, value) \
  {name, AttrType::kInts, AttrFill::kSpatial, value, nullptr, nullptr},
#define INTS_SPATIAL2(name, value) \
  {name, AttrType::kInts, AttrFill::kTwoSpatial, value, nullptr, nullptr},
#define FLOATS_OR_EMPTY(name) {name, AttrType::kFloats, AttrFill::kEmpty, 0, nullptr, nullptr},
#define STRINGS(name) {name, AttrType::kStrings, AttrFill::kRequired, 0, nullptr, nullptr},
#define EXPRS(name) {name, AttrType::kExprs, AttrFill::kRequired, 0, nullptr, nullptr},

// One array per row, ended by a nameless entry so that none is empty.
#define TN_OP(Name, text, lo, hi, outs, map, type, value, ...) \
  constexpr AttrSpec kAttrs##Name[] = {__VA_ARGS__{}};
#define TN_REGION_OP(Name, text, lo, hi, regions, ...) \
  constexpr AttrSpec kAttrs##Name[] = {__VA_ARGS__{}};
#include "graph/ops.def"
#undef TN_REGION_OP
#undef TN_OP

template <size_t N>
constexpr std::span<const AttrSpec> Specs(const AttrSpec (&specs)[N]) {
  return {specs, N - 1};
}

// A rule of one result as one of a list of results.
template <auto rule>
Expected<Types> AsTypes(const OpView& v) {
  if constexpr (std::is_same_v<decltype(rule(v)), Expected<Types>>) {
    return rule(v);
  } else {
    TN_ASSIGN_OR_RETURN(TensorType type, rule(v));
    return Types{std::move(type)};
  }
}

const OpInfo kOps[] = {
#define TN_OP(Name, text, lo, hi, outs, map, type, value, ...) \
  {OpKind::k##Name,                                            \
   text,                                                       \
   lo,                                                         \
   hi,                                                         \
   outs,                                                       \
   0,                                                          \
   IndexMapClass::map,                                         \
   AsTypes<rules::Type##type>,                                 \
   rules::Value##value,                                        \
   Specs(kAttrs##Name)},
#define TN_REGION_OP(Name, text, lo, hi, regions, ...)                                      \
  {OpKind::k##Name,    text, lo, hi, -1, regions, IndexMapClass::kOpaque, nullptr, nullptr, \
   Specs(kAttrs##Name)},
#include "graph/ops.def"
#undef TN_REGION_OP
#undef TN_OP
};

const char* Name(AttrType type) {
  switch (type) {
    case AttrType::kBool: return "bool";
    case AttrType::kInt: return "int";
    case AttrType::kFloat: return "float";
    case AttrType::kString: return "string";
    case AttrType::kInts: return "ints";
    case AttrType::kFloats: return "floats";
    case AttrType::kStrings: return "strings";
    case AttrType::kExprs: return "dims";
  }
  return "?";
}

AttrType TypeOf(const AttrValue& value) {
  constexpr AttrType kTypes[] = {AttrType::kBool,   AttrType::kInt,  AttrType::kFloat,
                                 AttrType::kString, AttrType::kInts, AttrType::kFloats,
                                 AttrType::kStrings};
  return kTypes[value.index()];
}

bool IsChoice(std::string_view word, const char* choices) {
  for (const std::string& choice : Split(choices, '|')) {
    if (choice == word) return true;
  }
  return false;
}

Status CheckAttr(OpKind op, const AttrSpec& spec, const Attrs& attrs, const ExprAttrs& exprs) {
  if (spec.type == AttrType::kExprs) {
    if (!exprs.contains(spec.name))
      return MakeError(fmt::format("{} needs the attribute {}", Name(op), spec.name));
    return Ok();
  }
  const AttrValue* value = attrs.Find(spec.name);
  if (!value) return MakeError(fmt::format("{} needs the attribute {}", Name(op), spec.name));
  if (TypeOf(*value) != spec.type) {
    return MakeError(fmt::format("expected attribute {} of {} to be {}, but got {}", spec.name,
                                 Name(op), Name(spec.type), Name(TypeOf(*value))));
  }
  if (spec.choices && !IsChoice(std::get<std::string>(*value), spec.choices)) {
    return MakeError(fmt::format("expected attribute {} of {} to be one of {}, but got '{}'",
                                 spec.name, Name(op), spec.choices, std::get<std::string>(*value)));
  }
  return Ok();
}

}  // namespace

Elements ToElements(const std::vector<int64_t>& ints) {
  Elements out;
  for (int64_t i : ints) out.push_back(IndexConst(i));
  return out;
}

const OpInfo& Info(OpKind op) { return kOps[static_cast<size_t>(op)]; }
std::span<const OpInfo> AllOps() { return kOps; }

std::optional<OpKind> ParseOp(std::string_view name) {
  static const auto* table = [] {
    auto* t = new std::unordered_map<std::string_view, OpKind>();
    for (const OpInfo& info : kOps) t->emplace(info.name, info.kind);
    return t;
  }();
  auto it = table->find(name);
  if (it == table->end()) return std::nullopt;
  return it->second;
}

const char* Name(IndexMapClass map) {
  switch (map) {
    case IndexMapClass::kElementwise: return "elementwise";
    case IndexMapClass::kBroadcast: return "broadcast";
    case IndexMapClass::kInjective: return "injective";
    case IndexMapClass::kReduction: return "reduction";
    case IndexMapClass::kContraction: return "contraction";
    case IndexMapClass::kWindow: return "window";
    case IndexMapClass::kOpaque: return "opaque";
  }
  return "?";
}

const AttrSpec* FindAttr(const OpInfo& info, std::string_view name) {
  for (const AttrSpec& spec : info.attrs) {
    if (name == spec.name) return &spec;
  }
  return nullptr;
}

std::optional<AttrValue> DefaultOf(const AttrSpec& spec, int rank) {
  const size_t spatial = rank > 2 ? static_cast<size_t>(rank - 2) : 0;
  switch (spec.fill) {
    case AttrFill::kRequired: return std::nullopt;
    case AttrFill::kScalar:
      if (spec.type == AttrType::kBool) return AttrValue(spec.number != 0);
      if (spec.type == AttrType::kInt) return AttrValue(static_cast<int64_t>(spec.number));
      if (spec.type == AttrType::kFloat) return AttrValue(spec.number);
      return AttrValue(std::string(spec.text));
    case AttrFill::kEmpty:
      if (spec.type == AttrType::kInts) return AttrValue(std::vector<int64_t>());
      if (spec.type == AttrType::kFloats) return AttrValue(std::vector<double>());
      return AttrValue(std::vector<std::string>());
    case AttrFill::kSpatial:
      return AttrValue(std::vector<int64_t>(spatial, static_cast<int64_t>(spec.number)));
    case AttrFill::kTwoSpatial:
      return AttrValue(std::vector<int64_t>(2 * spatial, static_cast<int64_t>(spec.number)));
  }
  return std::nullopt;
}

Status CompleteAttrs(OpKind op, int rank, Attrs* attrs, const ExprAttrs& exprs) {
  const OpInfo& info = Info(op);
  for (const auto& [name, value] : *attrs) {
    const AttrSpec* spec = FindAttr(info, name);
    if (!spec || spec->type == AttrType::kExprs)
      return MakeError(fmt::format("{} has no attribute {}", info.name, name));
  }
  for (const auto& [name, value] : exprs) {
    const AttrSpec* spec = FindAttr(info, name);
    if (!spec || spec->type != AttrType::kExprs)
      return MakeError(fmt::format("{} has no attribute {}", info.name, name));
  }
  for (const AttrSpec& spec : info.attrs) {
    if (!attrs->Has(spec.name)) {
      if (std::optional<AttrValue> value = DefaultOf(spec, rank))
        attrs->Set(spec.name, std::move(*value));
    }
    TN_RETURN_IF_ERROR(CheckAttr(op, spec, *attrs, exprs));
  }
  return Ok();
}

}  // namespace tenon::graph
