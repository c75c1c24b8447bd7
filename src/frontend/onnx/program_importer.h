// The importer of programs: what import_program.cc (graphs), program_parts.cc (parts) and
// program_steps.cc (steps) share. How it works stands in import_program.cc.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>

#include "frontend/onnx/import_program.h"
#include "frontend/onnx/node_order.h"
#include "frontend/onnx/value_types.h"

namespace tenon::onnx {

using graph::kNoSlot;
using graph::Slot;

/// The attribute of that name, or null.
const AttributeProto* FindAttribute(const NodeProto& n, std::string_view name);
/// Whether a node is a step whatever it is used on.
bool IsAlwaysStep(const NodeProto& n);
/// What a node reads, in graphs of its attributes too.
std::vector<std::string_view> ReadsOf(const NodeProto& n);
/// Whether an attribute, of ai.onnx.ml or a pool of n-grams, is strings that are values, not the
/// name of a choice.
bool HoldsStrings(const AttributeProto& a);
inline constexpr char kMlDomain[] = "ai.onnx.ml";

/// What a name stands for: a value in a slot, or a constant that whoever reads it has for himself.
struct Named {
  ValueType type;
  Slot slot = kNoSlot;
  const TensorProto* constant = nullptr;
  const NodeProto* maker = nullptr;    // of a constant, an operator without inputs
  std::optional<int64_t> number = {};  // what the one element of a tensor in a slot is known to be
};

struct Names {
  const Names* outer = nullptr;
  std::unordered_map<std::string_view, Named> here = {};

  const Named* Find(std::string_view name) const {
    for (const Names* n = this; n; n = n->outer) {
      if (auto it = n->here.find(name); it != n->here.end()) return &it->second;
    }
    return nullptr;
  }
};

/// A node, and attributes of nodes, that stand for others.
NodeProto NodeOf(std::string_view op, std::vector<std::string_view> inputs, std::string_view output,
                 std::vector<AttributeProto> attributes = {});
AttributeProto IntAttr(std::string_view name, int64_t value);
AttributeProto IntsAttr(std::string_view name, std::vector<int64_t> values);

inline ValueType Scalar(int32_t elem_type) { return ValueType::Tensor(elem_type, {}); }
inline ValueType WithoutRank(ValueType t) {
  t.has_rank = false;
  t.dims.clear();
  return t;
}
/// An error where input `i` of a step is of another kind.
Status ExpectKind(const ValueType& type, ValueType::Kind kind, size_t i);

/// One import. Keeps: slots are never used twice; what names_ and texts_ hold lives as long, since
/// protos are views.
class ProgramImporter {
 public:
  ProgramImporter(std::shared_ptr<const graph::WeightFile> file, const ImportOptions& options,
                  const ModelProto& model, bool control)
      : file_(std::move(file)), options_(options), model_(model), control_(control) {
    part_options_ = options;
    part_options_.shapes.clear();
    part_options_.empty_sizes = true;
  }

  Expected<graph::Program> Run();

 private:
  // A graph that is being planned: where its steps go, and what its names are.
  struct Frame {
    std::vector<graph::Step>* steps;
    Names names;
  };
  // One node that is a step.
  struct At {
    const NodeProto& node;
    Frame& frame;
  };

  Diagnostic Error(const NodeProto& node, const std::string& message) const {
    return MakeError(message, {.file = file_->path, .item = DescribeNode(node, 0)});
  }
  std::string_view Keep(std::string text) { return texts_.emplace_back(std::move(text)); }
  int32_t NumberOf(std::string_view text);
  Expected<const TensorProto*> Numbered(const TensorProto& t);
  const TensorProto* OfStrings(std::span<const std::string_view> list, std::vector<int64_t> dims);

  Status AddInputs(Frame* frame);
  Status CheckRanges(Frame* frame);
  Expected<ValueType> InputType(const ValueInfoProto& input) const;
  // What of a graph is still to be planned.
  struct Unplanned {
    const GraphProto& graph;
    std::vector<const NodeProto*> nodes;  // in order
    // What they make: until then no name of it means one around the graph.
    std::set<std::string_view> names;
  };
  Expected<std::vector<Named>> PlanGraph(const GraphProto& g, Frame* frame);
  Expected<std::vector<Named>> PlanNodes(Unplanned rest, Frame* frame);
  // What only the call knows of a value: a step that goes by it, what it may be, and the type that
  // the value then has.
  struct Ways {
    std::string_view name;
    int32_t operation;
    std::vector<int64_t> numbers;
    std::function<ValueType(int64_t number)> type;
  };
  Ways ByRank(std::string_view name, const Names& names) const;
  Ways ByLength(std::string_view name, const Names& names) const;
  Expected<std::vector<Named>> PlanWays(const Ways& ways, const Unplanned& rest, Frame* frame);
  // A tensor that one of the nodes reads, whose rank only the call knows; or "".
  static std::string_view WithoutKnownRank(const std::vector<const NodeProto*>& nodes,
                                           const Names& names);
  // A vector whose length decides the rank of what one of the nodes gives, where only the call
  // knows that length, and the nodes that make it.
  struct Vector {
    std::string_view name;
    std::vector<const NodeProto*> makers;
  };
  std::optional<Vector> WithoutKnownLength(const std::vector<const NodeProto*>& nodes,
                                           const Frame& frame);
  Status PlanMakers(const Vector& vector, Unplanned* all, Frame* frame);
  // Where node `item` of the list failed for sizes that a call finds: plans those before it as a
  // part, whose results then have sizes like any others. Whether it could.
  bool PlanBefore(const std::string& item, const std::vector<const NodeProto*>& nodes,
                  Unplanned* all, Frame* frame);
  // Whether one of the nodes is a Squeeze of all axes of 1, where only the call knows which these
  // are; then nodes that say so by a vector of sizes take its place.
  bool SpellOutSqueeze(const std::vector<const NodeProto*>& nodes, Unplanned* all, Frame* frame);
  Status AddConstants(const GraphProto& g, Frame* frame);

  enum class Role { kPart, kStep, kLater };
  Role RoleOf(const NodeProto& n, const Names& names,
              const std::set<std::string_view>& pending) const;
  Status PlanPart(const std::vector<const NodeProto*>& nodes,
                  const std::set<std::string_view>& wanted, Frame* frame);
  Expected<NodeProto> ForPart(const NodeProto& node);
  std::string SizeName(const std::string& expression);
  std::vector<KnownSize> SizesOf(const graph::Graph& g, graph::ValueId v, size_t part);

  // Steps.
  Status PlanStep(const NodeProto& node, Frame* frame);
  Status PlanOperator(const At& at);
  // Whether a step fails whatever the ranks and sizes of its inputs are.
  bool Lasts(const At& at);
  Expected<Named> Value(const At& at, size_t i);
  Expected<Slot> SlotOf(std::string_view name, Frame* frame);
  Expected<int64_t> Int(const At& at, std::string_view name, int64_t fallback) const;
  bool Has(const At& at, size_t i) const {
    return i < at.node.inputs.size() && !at.node.inputs[i].empty();
  }
  // Appends a step on all the node's inputs, whose results have these types.
  Status Emit(const At& at, int32_t operation, std::vector<ValueType> types,
              std::vector<int32_t> numbers = {}, std::vector<graph::StepBody> bodies = {});
  Status PlanIf(const At& at);
  Status PlanBranch(const At& at, bool taken);
  Status PlanFailure(const At& at, const Diagnostics& why, graph::StepBody* body);
  Status PlanLoop(const At& at);
  Status PlanScan(const At& at);
  struct ScanForm;
  Expected<ScanForm> ReadScan(const At& at);
  GraphProto LoopBodyOf(const At& at, const ScanForm& scan, std::string_view count);
  Status PlanCollected(const At& at, std::string_view from, std::string_view to, int64_t axis,
                       bool backwards);
  Status PlanMap(const At& at);
  Status PlanSequenceStep(const At& at);
  Status PlanOptionalStep(const At& at);
  Status PlanStringStep(const At& at);
  Status PlanUnique(const At& at);
  Status PlanZipMap(const At& at);
  Status PlanDictVectorizer(const At& at);
  Status PlanCastMap(const At& at);
  // A constant for a step: a vector of the attribute's integers or strings, or one element.
  std::string_view KeysOf(const At& at, const AttributeProto& list);
  std::string_view VectorOf(const At& at, int64_t number);
  // A name of its own for what a step is made of.
  std::string_view NameFor(const At& at, std::string_view role);
  std::string_view AddConstant(const At& at, std::string_view role, TensorProto tensor);
  // The same where elements are strings; else "", an input that is left out.
  std::string_view AddDefault(const At& at, int32_t elem_type, std::string_view text);
  // A node in place of `at`'s, planned where it stands.
  Status PlanInstead(const At& at, const NodeProto& node);
  Expected<const GraphProto*> Body(const At& at, std::string_view name, size_t inputs) const;
  Expected<std::vector<Named>> PlanBody(const GraphProto& g, const std::vector<ValueType>& types,
                                        Frame* outer, graph::StepBody* body);

  const std::shared_ptr<const graph::WeightFile> file_;
  const ImportOptions& options_;
  const ModelProto& model_;
  const bool control_;
  ImportOptions part_options_;
  graph::Program program_;
  std::map<std::string, int32_t, std::less<>> numbers_;
  std::deque<std::string> texts_;
  std::deque<TensorProto> tensors_;
  std::deque<NodeProto> nodes_;
  std::map<std::string_view, std::vector<int64_t>> lengths_;  // those that a vector may have
  std::map<std::string, std::string> size_names_;  // those of parts' results, what they are
  PartFaults faults_;                              // of all parts that were tried
  int depth_ = 0;
  int ways_ = 0;
};

}  // namespace tenon::onnx
