// The table of rules, in families: each file gives its rows.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "fuzz/graph/maker.h"

namespace tenon::fuzz {

std::span<const Rule> ElementwiseRules();
std::span<const Rule> ReductionRules();
std::span<const Rule> ContractionRules();
std::span<const Rule> MovementRules();
std::span<const Rule> IndexRules();
std::span<const Rule> NormalizationRules();
std::span<const Rule> QuantizeRules();
std::span<const Rule> ControlRules();
std::span<const Rule> PatternRules();

/// A rule and one of its element types: what coverage counts.
struct Subject {
  const Rule* rule;
  Elem elem;
};
const std::vector<Subject>& AllSubjects();

/// Operators of the importer's table that no rule makes.
std::vector<std::string> OperatorsWithoutRule();

}  // namespace tenon::fuzz
