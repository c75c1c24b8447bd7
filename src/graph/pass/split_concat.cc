#include "graph/pass/split_concat.h"

#include <fmt/format.h>

#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

constexpr size_t kMostParts = 32;

// Neighbours go together, in as few and as equal groups as there can be.
Expected<std::vector<ValueId>> Grouped(Builder& b, const Node& n, const std::vector<ValueId>& parts,
                                       size_t level) {
  const size_t groups = (parts.size() + kMostParts - 1) / kMostParts;
  std::vector<ValueId> out;
  for (size_t i = 0; i < groups; ++i) {
    const auto at = [&](size_t group) {
      return parts.begin() + static_cast<ptrdiff_t>(parts.size() * group / groups);
    };
    const std::string name = fmt::format("{}.{}.{}", n.name, level, i);
    TN_ASSIGN_OR_RETURN(ValueId joined, b.Add(OpKind::kConcat, {at(i), at(i + 1)}, name, n.attrs));
    out.push_back(joined);
  }
  return out;
}

Expected<ValueId> Split(Builder& b, const Node& n) {
  std::vector<ValueId> parts = n.inputs;
  for (size_t level = 0; parts.size() > kMostParts; ++level) {
    TN_ASSIGN_OR_RETURN(parts, Grouped(b, n, parts, level));
  }
  return b.Add(OpKind::kConcat, parts, n.name, n.attrs);
}

}  // namespace

Graph SplitConcat(const Graph& g, const GraphPassContext& context) {
  return Rewrite(g, [](Builder& b, NodeId id) -> Expected<ValueId> {
    const Node n = b.graph().node(id);
    if (n.op != OpKind::kConcat || n.inputs.size() <= kMostParts) return kNoValue;
    return Split(b, n);
  });
}

}  // namespace tenon::graph
