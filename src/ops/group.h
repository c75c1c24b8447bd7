// A fused group being turned into te tensors: operands by value, parameters, outputs with their
// padding and halo.
#pragma once

#include <string>
#include <vector>

#include "ops/define.h"
#include "ops/kernel.h"

namespace tenon::ops {

class Group {
 public:
  explicit Group(const KernelRequest& request);

  const graph::Graph& graph() const { return *request_.region; }
  const Target& target() const { return *request_.target; }
  const KernelRequest& request() const { return request_; }
  const StoredTensor& input(size_t i) const { return inputs_[i]; }
  const StoredTensor& output(size_t i) const { return outputs_[i]; }
  /// The stored tensor behind a value, or null when it is computed here or a built-in scalar.
  const StoredTensor* Stored(graph::ValueId v) const;

  OpContext Context(const graph::Node& node) const;
  const Operand& value(graph::ValueId v) const { return values_[static_cast<size_t>(v)]; }
  void Set(graph::ValueId v, Operand operand);
  /// Defines a node's results by its definition.
  void DefineNode(const graph::Node& node);

  /// The node's place among the region's; the anchor, or -1 for a group of element definitions
  /// only.
  int anchor() const { return anchor_; }

  /// Makes the blocks that store the outputs ("out0", …; padding zero) and the zeroes of their
  /// halos, then the function.
  Expected<Kernel> Finish(const std::string& rule, Attrs attrs);

 private:
  te::Tensor StoreOutput(size_t k);
  void FillHalo(size_t k, std::vector<te::Tensor>* tensors) const;
  Operand ReadInput(size_t i) const;

  const KernelRequest& request_;
  std::vector<StoredTensor> inputs_, outputs_;
  std::vector<te::Tensor> params_;
  std::vector<Operand> values_;
  std::vector<Expr> ragged_;  // sizes of blocked axes of outputs that may not be whole blocks
  int anchor_ = -1;
};

}  // namespace tenon::ops
