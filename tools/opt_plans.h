// tenon-opt --space, --point and --lower: the plans of a graph.
#pragma once

#include <string>

#include "graph/pass/pass.h"
#include "loop/func.h"
#include "support/expected.h"

namespace tenon {

/// The spaces of a group, or of all ("").
Expected<std::string> SpaceText(const graph::Graph& g, const std::string& node,
                                const graph::GraphPassContext& context, bool prices, bool json);
/// The graph with a plan, "NODE: algorithm {knob: value, …}".
Expected<graph::Graph> WithPointText(const graph::Graph& g, const std::string& text,
                                     const graph::GraphPassContext& context);
/// A group's kernel, scheduled and exported.
Expected<Module> LowerText(const graph::Graph& g, const std::string& node, const Machine& machine);

}  // namespace tenon
