#include "graph/pass/flush_subnormals.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "graph/pass/constants.h"
#include "graph/pass/pattern.h"
#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

const DType kSingle = DType::Float(32);

// The bits of 2^exponent. Without their sign floats are in the order of their bits.
constexpr uint32_t BitsOfPower(int exponent) { return static_cast<uint32_t>(127 + exponent) << 23; }

// Whether a float is below 2^exponent, but not 0. Block by block, so that the loop inside has no
// branch.
bool HasBelow(int exponent, std::span<const std::byte> bytes) {
  const uint32_t end = BitsOfPower(exponent);
  constexpr size_t kBlock = 4096;
  for (size_t at = 0; at < bytes.size(); at += kBlock) {
    uint32_t words[kBlock / 4] = {};
    std::memcpy(words, bytes.data() + at, std::min(kBlock, bytes.size() - at));
    uint32_t found = 0;
    for (const uint32_t word : words) {
      const uint32_t magnitude = word & 0x7fffffffU;
      found |= static_cast<uint32_t>(magnitude - 1 < end - 1);  // zero wraps around
    }
    if (found != 0) return true;
  }
  return false;
}

constexpr double kLeast = std::numeric_limits<float>::min();

// What Flushed makes.
const Pattern& FlushedPattern() {
  static const Pattern pattern =
      Op(OpKind::kWhere,
         {Op(OpKind::kLess, {Op(OpKind::kAbs, {Any(0)}), Number(kLeast)}), Number(0), Any(0)});
  return pattern;
}

// By value: a constant with a subnormal element, or something that is computed where a tiny one
// takes part, and not flushed. Values of no interest, which depend on inputs, may be either.
std::vector<bool> MayBeSubnormal(const Graph& g) {
  std::vector<bool> tiny(g.values.size());
  for (size_t v = 0; v < g.values.size(); ++v) {
    const Value& value = g.values[v];
    if (value.IsConstant() && g.type(static_cast<ValueId>(v)).dtype == kSingle)
      tiny[v] = HasBelow(-63, value.payload.bytes());
  }
  for (const Node& n : g.nodes) {
    const bool any = std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) {
      return v != kNoValue && tiny[static_cast<size_t>(v)];
    });
    for (const ValueId v : n.outputs)
      tiny[static_cast<size_t>(v)] = any && !FindMatch(g, v, FlushedPattern());
  }
  for (size_t v = 0; v < g.values.size(); ++v) {
    if (tiny[v] && g.values[v].IsConstant()) tiny[v] = HasBelow(-126, g.values[v].payload.bytes());
  }
  return tiny;
}

Expected<ValueId> Flushed(Builder& b, ValueId v) {
  const std::string name = b.graph().values[static_cast<size_t>(v)].name + ".normal";
  TN_ASSIGN_OR_RETURN(const ValueId magnitude, b.Add(OpKind::kAbs, {v}, name));
  const ValueId least = b.Scalar(kSingle, kLeast);
  TN_ASSIGN_OR_RETURN(const ValueId is_small, b.Add(OpKind::kLess, {magnitude, least}, name));
  return b.Add(OpKind::kWhere, {is_small, b.Scalar(kSingle, 0), v}, name);
}

}  // namespace

Graph FlushSubnormals(const Graph& g, const GraphPassContext& context) {
  if (context.machine->warp > 0) return g;
  const std::vector<bool> constant = ConstantValues(g), small = MayBeSubnormal(g);
  const auto is_due = [&](ValueId v) {
    const auto i = static_cast<size_t>(v);
    return i < constant.size() && constant[i] && small[i] && g.type(v).dtype == kSingle;
  };
  return Rewrite(g, [&](Builder& b, NodeId id) -> Expected<ValueId> {
    const Node n = b.graph().node(id);
    if (n.op != OpKind::kConv && n.op != OpKind::kMatMul) return kNoValue;
    std::vector<ValueId> inputs = n.inputs;
    bool any = false;
    for (size_t i = 0; i < 2; ++i) {
      if (!is_due(inputs[i])) continue;
      TN_ASSIGN_OR_RETURN(inputs[i], Flushed(b, inputs[i]));
      any = true;
    }
    if (!any) return kNoValue;
    return b.Add(n.op, inputs, n.name, n.attrs, n.exprs);
  });
}

}  // namespace tenon::graph
