// The shapes of a model's inputs: what the model says, overruled by what the user says.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/onnx/import.h"
#include "frontend/onnx/proto.h"
#include "graph/graph.h"

namespace tenon::onnx {

/// Bind every input first, then ask for their dims: what a user gives for a dim that the model
/// calls `batch` holds wherever the model says `batch`, also in sums: `past + batch` is the sum of
/// what inputs have as `past` and as `batch`. New symbolic dims are added to the graph.
class InputShapes {
 public:
  using Given = std::map<std::string, std::vector<DimSpec>>;
  /// `may_be_empty`: the model's open sizes may be 0.
  InputShapes(graph::Graph& g, const Given& given, bool may_be_empty)
      : graph_(g), given_(given), open_{.min = may_be_empty ? 0 : 1} {}

  /// Errors: another rank than the model's, a range that makes no sense, one name for two sizes.
  Status Bind(const ValueInfoProto& input);
  Expected<std::vector<Expr>> Dims(const ValueInfoProto& input);
  /// A line for each size that the model fixes and the user changes.
  std::vector<std::string> Overruled(const ValueInfoProto& input) const;

 private:
  const std::vector<DimSpec>* GivenFor(const ValueInfoProto& input) const;
  Expected<Expr> FromUser(const DimSpec& spec);
  Expected<DimSpec> RangeOf(const std::string& symbol) const;
  Expected<Expr> FromModel(const ValueInfoProto& input, size_t axis);
  Expr FromParam(std::string_view name);
  Expr FromFormula(std::string_view text);  // null: it is none
  Expr NewDim(const std::string& wanted, const DimSpec& range);

  graph::Graph& graph_;
  const Given& given_;
  const DimSpec open_;                                 // a size that the model leaves open
  std::unordered_map<std::string_view, Expr> params_;  // by the model's names
  std::set<std::string_view> plain_;                   // what dims of inputs are called
  std::map<std::string, Expr> symbols_;                // by the user's names
};

/// Puts in the one size that an open dim can have by the graph's constraints. Errors, at the node
/// that `askers` has for the text of the constraint and with `notes`: the user gave that dim a
/// name.
Expected<graph::Graph> SettleDims(graph::Graph g, const InputShapes::Given& given,
                                  const std::map<std::string, SourceLoc>& askers,
                                  const std::vector<std::string>& notes);

}  // namespace tenon::onnx
