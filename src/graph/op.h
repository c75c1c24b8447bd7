// The operator table: ops.def as data. The meaning of each operator stands at the top of ops.def.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/expr.h"
#include "support/expected.h"

namespace tenon::graph {

struct OpView;
struct TensorType;
class Type;

enum class OpKind : uint8_t {
#define TN_OP(Name, ...) k##Name,
#define TN_REGION_OP(Name, ...) k##Name,
#include "graph/ops.def"
#undef TN_REGION_OP
#undef TN_OP
};

/// How an output element depends on input elements; what fusion goes by.
enum class IndexMapClass : uint8_t {
  kElementwise,  // out[i] of x[i]
  kBroadcast,    // out[i] of in[i with some axes dropped or read at 0]
  kInjective,  // each out element is one element of one input (or a constant), at a computed place
  kReduction,  // out[i] of a whole row or block of x
  kContraction,  // sums of products of two operands
  kWindow,       // out[i] of a bounded neighbourhood
  kOpaque,       // none of these
};

enum class AttrType : uint8_t { kBool, kInt, kFloat, kString, kInts, kFloats, kStrings, kExprs };

/// How a list attribute that is left out is filled in: not at all, or with `number` repeated.
enum class AttrFill : uint8_t {
  kRequired,
  kScalar,      // a scalar: `number` or `text`
  kEmpty,       // a list: empty
  kSpatial,     // a list: one per spatial axis of the first input (rank - 2)
  kTwoSpatial,  // a list: two per spatial axis
};

struct AttrSpec {
  const char* name;
  AttrType type;
  AttrFill fill;
  double number;        // default of kBool, kInt, kFloat and filled lists
  const char* text;     // default of kString
  const char* choices;  // kString: "a|b|c", or null for any
};

/// Lists of index expressions, by attribute name. Kept apart from Attrs, which holds plain values.
using ExprAttrs = std::map<std::string, std::vector<Expr>, std::less<>>;

/// The elements of a small integer or bool tensor, row-major, where they are known at compile time:
/// index expressions over the graph's dims (bool tensors: bool expressions).
using Elements = std::vector<Expr>;
Elements ToElements(const std::vector<int64_t>& ints);

/// The types of all results that the operator can have.
using TypeRule = Expected<std::vector<Type>> (*)(const OpView&);
/// The elements of the first result; those of others are never known.
using ValueRule = std::optional<Elements> (*)(const OpView&, const TensorType& out);

struct OpInfo {
  OpKind kind;
  const char* name;
  int min_inputs;
  int max_inputs;   // -1: any number
  int num_outputs;  // at most: a node has the first one or more of them; -1: as many as its regions
                    // say
  int num_regions;
  IndexMapClass map;
  TypeRule type_rule;    // null for operators with regions, whose types are their regions'
  ValueRule value_rule;  // null: never known
  std::span<const AttrSpec> attrs;
};

const OpInfo& Info(OpKind op);
inline const char* Name(OpKind op) { return Info(op).name; }
/// Operators whose regions run or do not: `if`, `loop`, `while`. (A fused group always runs.)
inline bool IsControl(OpKind op) { return Info(op).num_regions > 0 && op != OpKind::kFused; }
/// What the host function does between its launches: control flow, reading the size of a dim, and
/// checks of elements.
inline bool RunsOnHost(OpKind op) {
  return IsControl(op) || op == OpKind::kDim || op == OpKind::kRequire;
}
std::optional<OpKind> ParseOp(std::string_view name);
const char* Name(IndexMapClass map);
/// All operators in table order.
std::span<const OpInfo> AllOps();

/// The row's spec of an attribute, or null.
const AttrSpec* FindAttr(const OpInfo& info, std::string_view name);

/// Fills in defaults and checks that every attribute is one of the row's, has its type, is one of
/// its choices, and that none is missing. `rank` is that of the first input (0 if there is none).
/// Lists filled per spatial axis keep what they have.
Status CompleteAttrs(OpKind op, int rank, Attrs* attrs, const ExprAttrs& exprs);

/// The value that CompleteAttrs would fill in, or null for required ones and lists that follow the
/// rank.
std::optional<AttrValue> DefaultOf(const AttrSpec& spec, int rank);

}  // namespace tenon::graph
