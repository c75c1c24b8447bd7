// What attention by rows does between its two products, whatever unit computes these: scores are
// scaled and masked, their maxima found, and weights made of them, one row after the other.
#pragma once

#include <string>
#include <vector>

#include "ops/group.h"
#include "ops/scheduling.h"

namespace tenon::ops {

/// An element of an operand whose axes are padded: zero where `row` or `col` is beyond the
/// operand's own, which only those padded need to be asked.
Expr PaddedAt(const Operand& x, const te::Indices& lead, const Expr& row, const Expr& col,
              const Expr& rows, const Expr& cols);

/// A dot product as a score: scaled, and masked where the node has a mask. Of `rows` and `cols`,
/// those beyond the node's own are what fills a block of them.
Expr ScoreOf(const OpContext& op, const te::Indices& i, Expr dot, const Expr& rows,
             const Expr& cols);

/// What the second product of attention multiplies, and by what its sums are multiplied.
struct AttentionWeights {
  te::Tensor weights;  // [rows…, keys], of the type that the second product takes
  te::Tensor factor;   // [rows…]
};
/// Of scores [rows…, keys]; beyond `keys` and up to `whole_keys` weights are 0. Those of fewer bits
/// are rounded before they are added up, so that the weights of a row are what its factor says.
AttentionWeights WeightsOfScores(Group& group, const std::string& name, const te::Tensor& score,
                                 const std::vector<Expr>& rows, const Expr& keys,
                                 const Expr& whole_keys, DType type);

/// The node's result of its second product: each row by its factor.
Operand ResultOf(const OpContext& op, const Operand& weighted, const te::Tensor& factor);

/// Whether what follows the anchor has the result's shape.
bool FollowersHaveItsShape(const Site& site);

/// Makes vectors of what stands under the loop `at`: the first step of a row's reduction (`role`:
/// kLanes), its second (kAcross), or a row (kRow).
void VectorizeRowStep(Schedule& s, const std::string& block, BlockRole role, const std::string& at,
                      int64_t lanes);

/// Puts the blocks of WeightsOfScores under the loop `at` over rows, each for all rows in there.
void ScheduleRowSteps(Schedule& s, const Parts& parts, const std::string& at, int64_t lanes);
/// The same with all steps of a row before those of the next, of several: what one step leaves is
/// in the nearest level for the next one, where the scores of all rows are not.
void ScheduleRowByRow(Schedule& s, const Parts& parts, const std::string& at, int64_t lanes);

/// The innermost loop of a plain block becomes vectors, tails masked.
void VectorizeLast(Schedule& s, const std::string& loop, int64_t lanes);

}  // namespace tenon::ops
