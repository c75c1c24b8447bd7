// A plan: how one group of the graph is computed, as data. A node with a plan is a planned group;
// it lowers by itself, and what its operands and results look like in memory stands in their types.
//
// Choices are numbers by name, points of the space that the algorithm declares. Those of layout
// show in an operand or a result, so an artifact has one set of them; those of schedule may differ
// per variant. Each variant is a kernel; the host function branches on its dims.
//
//   … = fused(%0, %1) plan "packed_matmul" layout {nv: 4} when [m <= 4] schedule {tile_rows: 4}
//       schedule {tile_rows: 6} seconds 1.25e-06 region(…) {…}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/expr.h"

namespace tenon::graph {

/// One number that an algorithm leaves open.
struct Choice {
  std::string name;
  int64_t value = 0;
  friend bool operator==(const Choice&, const Choice&) = default;
};
/// In the order of the algorithm's space.
using Choices = std::vector<Choice>;

/// "{nv: 4, tile_rows: 6}".
std::string ChoicesText(const Choices& choices);

/// The value of a choice; it must be there.
int64_t ValueOf(const Choices& choices, std::string_view name);

/// What is chosen where `when` holds, a bool expression over the graph's dims.
struct Variant {
  Expr when;
  Choices schedule;
};

struct Plan {
  std::string algorithm;  // its row of the operator library
  Choices layout;
  std::vector<Variant> variants;  // the first that holds counts; the last one's condition is true
  double seconds = 0;  // predicted, of one launch at typical sizes; to three digits, more are noise

  /// Every choice of the last variant, those of layout first.
  Choices AllChoices() const;
};

}  // namespace tenon::graph
