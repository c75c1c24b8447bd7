// Algorithms: ways to compute the anchor of a group, each one file with one row (algorithm/*.cc,
// listed in algorithms.def). A row says when it applies, which choices it leaves open, what it
// wants of its operands' layouts, what it costs at a point of its space, what it computes and in
// which order. Planning (src/plan) asks all rows and keeps the answer as a graph::Plan; lowering
// builds and schedules what the plan says. Nothing else decides the shape of a kernel.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cost/estimate.h"
#include "cost/machine.h"
#include "graph/graph.h"
#include "graph/plan.h"
#include "graph/storage_desc.h"
#include "ops/operand.h"
#include "ops/space.h"
#include "schedule/schedule.h"
#include "support/expected.h"

namespace tenon::ops {

class Group;

using graph::StorageDesc;
using graph::ValueOf;

/// An anchor in its group, on a machine. The region's types need no layouts yet.
struct Site {
  const graph::Graph& region;
  graph::NodeId anchor;
  const Machine& machine;

  const graph::Node& node() const { return region.node(anchor); }
  const graph::TensorType& input(size_t i) const { return region.type(node().inputs[i]); }
  const graph::TensorType& result() const { return region.type(node().outputs[0]); }
  /// Its dims with symbolic ones at their typical sizes: what prices and choices go by.
  std::vector<int64_t> Sizes(const graph::TensorType& type) const;
  /// The same at the smallest sizes.
  std::vector<int64_t> LeastSizes(const graph::TensorType& type) const;
};

/// Whether all dims from this axis on are numbers.
bool AreNumbers(const graph::TensorType& type, size_t first_axis = 0);

/// How an algorithm wants a value of its region to lie: order and blocks exactly, borders of at
/// least so many cells.
struct Want {
  graph::ValueId value;
  StorageDesc desc;          // begin and size: the least that will do
  bool any_rows = false;     // the axes before the last may stand in any order
  bool any_padding = false;  // outside of the value may be anything
  /// True where the value's storage satisfies it. `dims` are the value's.
  bool IsMetBy(const StorageDesc& stored, const std::vector<Expr>& dims) const;
};
/// Wants of a kernel that writes its results by rows: row-major, but for the order of the rows.
void WantPlainResults(const Site& site, std::vector<Want>* wants);

/// What a block of a kernel is there for.
enum class BlockRole : uint8_t {
  kAnchor,      // the anchor's own: what a definition is made of, too
  kOutput,      // stores a result
  kHalo,        // zeros around a result
  kLanes,       // a row reduced to a vector
  kAcross,      // that vector reduced to a number
  kRow,         // a row computed for what follows
  kFactor,      // a number for each row
  kPack,        // an operand written again in another order
  kMove,        // an operand of the anchor brought into tiles, or its result taken out of them
  kQueries,     // its first factor in rows
  kScoreLanes,  // the first product of attention, as sums in lanes of a vector
  kScores,      // the first product of attention
  kMasked,      // and what is done with it before the softmax
  kInputHalf,   // a tile of a convolution's input, transformed along its rows
  kInput,       // and along its columns
  kSums,        // the sums of its products with the weights, put down
  kResultHalf,  // a tile of the result, transformed back along its rows
  kResult,      // and along its columns
  kUpdates,     // changes elements of what there is, in order
  kRowUpdates,  // the same, by rows of memory: its last axis runs along them
  kCounts,      // the same, for each digit of a key: its last axis
  kTileSort,    // a tile's part of a row on its way to being sorted
  kCut,         // where two runs are cut that are merged next (merge_sort.h)
  kMerge,       // and what is merged
};

/// A block as the kernel's builder knows it.
struct BlockPart {
  BlockRole role = BlockRole::kAnchor;
  int vector_axis = -1;      // of what stores: the axis along memory; -1: none
  int64_t vector_block = 0;  // and how long its runs are; 0: the whole axis
  std::vector<int> order;    // of its axes in memory, without blocks; empty: as they are
  std::string row;           // the tile intrinsic that it is made for; "": plain vectors
};
/// By block name; blocks that nobody marked are the anchor's.
using Parts = std::map<std::string, BlockPart>;

struct Algorithm {
  const char* name;
  std::span<const graph::OpKind> ops;  // of the anchor; empty: any, and groups without one
  /// Whether it can compute this anchor on this machine, whatever the layouts.
  bool (*applies)(const Site& site);
  Space (*space)(const Site& site);
  std::vector<Want> (*wants)(const Site& site, const Point& point);
  WorkDescription (*work)(const Site& site, const Point& point);
  /// The anchor's first result, others being set (Group::Set); null: by its definition. The stored
  /// operands and results meet the wants.
  Operand (*build)(Group& group, const graph::Node& node, const Point& point);
  void (*schedule)(Schedule& s, const Parts& parts, const Machine& machine, const Point& point);
  /// Of its schedules: one more whenever a point's trace becomes another, so that what was measured
  /// of it before counts no more (a test compares; test/hashes/traces.json).
  int epoch = 1;
  /// Whether its kernels compute others' sums as well, which the anchor's operands are made of:
  /// blocks that nobody marked.
  bool takes_sums = false;
};

/// All rows, the definition last: it applies always.
std::span<const Algorithm* const> Algorithms();
/// Null where there is none of that name.
const Algorithm* FindAlgorithm(std::string_view name);
/// Whether something beside the anchor is no expression of elements either: sums in front of it, or
/// short ones behind.
bool HasSums(const Site& site);
/// Whether the row is one for this operator, and applies.
bool Applies(const Algorithm& algorithm, const Site& site);

/// What the algorithm wants at a point of values that are stored. Of one that is computed in the
/// region nothing can be wanted but zeros around it, and those only where it is a converted one:
/// then they are wanted around that. Nullopt where a want cannot be met.
std::optional<std::vector<Want>> WantsOf(const Algorithm& algorithm, const Site& site,
                                         const Point& point);

/// Seconds of one launch at a point.
double PriceOf(const Algorithm& algorithm, const Site& site, const Point& point);

/// The cheapest point of the algorithm's space, among those that `allowed` lets pass (null: all);
/// of equal ones the first. Nullopt where there is none.
struct Priced {
  Point point;
  double seconds = 0;
};
std::optional<Priced> CheapestPoint(const Algorithm& algorithm, const Site& site,
                                    const std::function<bool(const Point&)>& allowed = nullptr);

/// A plan of the algorithm at a point, for all sizes.
graph::Plan MakePlan(const Algorithm& algorithm, const Space& space, const Point& point,
                     double seconds);

}  // namespace tenon::ops
