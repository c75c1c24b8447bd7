// A fused group being turned into te tensors: operands by value, parameters, outputs with their
// padding and halo.
#pragma once

#include <string>
#include <vector>

#include "ops/algorithm.h"
#include "ops/define.h"
#include "ops/kernel.h"

namespace tenon::ops {

/// The function without the dims that nothing in it mentions.
Func WithUsedDims(const Func& func);

/// A one-element constant as an immediate, or a null operand.
Operand Immediate(const graph::Value& v);

class Group {
 public:
  explicit Group(const KernelRequest& request);

  const graph::Graph& graph() const { return *request_.region; }
  /// The anchor on its machine; without an anchor, site().anchor is kNoNode.
  Site site() const { return {graph(), anchor_, *request_.machine}; }
  const KernelRequest& request() const { return request_; }
  const StoredTensor& input(size_t i) const { return inputs_[i]; }
  const StoredTensor& output(size_t i) const { return outputs_[i]; }
  /// The stored tensor behind a value, or null when it is computed here or a built-in scalar.
  const StoredTensor* Stored(graph::ValueId v) const;

  OpContext Context(const graph::Node& node) const;
  const Operand& value(graph::ValueId v) const { return values_[static_cast<size_t>(v)]; }
  void Set(graph::ValueId v, Operand operand);
  /// Defines a node's results by its definition. What such a node before the anchor gives out, and
  /// the kernel reads as well, is computed once, where threads run together: its block is marked as
  /// kMove.
  void DefineNode(const graph::Node& node);

  /// The node of the region that is the anchor; kNoNode for a group of element definitions only.
  graph::NodeId anchor() const { return anchor_; }
  /// The number that an expression over the dims is wherever the kernel is launched; nullopt where
  /// it may be several.
  std::optional<int64_t> KnownSize(const Expr& size) const;
  /// True where that is a `call`, whose kernel is the function (called_function.h).
  bool CallsFunction() const;
  /// True where that is a `loop`, which is a kernel of its own kind (loop_kernel.h).
  bool IsLoop() const;

  /// Says what the block of that name is there for, and which tile intrinsic it is made for.
  /// Returns the name.
  std::string Mark(std::string block, BlockRole role, std::string row = "");

  /// Makes the blocks that store the outputs ("out0", …; padding zero) and the zeroes of their
  /// halos, then the function.
  Expected<Kernel> Finish();

 private:
  bool IsHeld(const graph::Node& node) const;
  te::Tensor StoreOutput(size_t k);
  void FillHalo(size_t k, std::vector<te::Tensor>* tensors);
  void MarkStore(const std::string& block, BlockRole role, const StoredTensor& t);
  Operand ReadInput(size_t i) const;

  const KernelRequest& request_;
  std::vector<StoredTensor> inputs_, outputs_;
  std::vector<te::Tensor> params_;
  std::vector<Operand> values_;
  std::vector<Expr> ragged_;  // sizes of blocked axes of outputs that may not be whole blocks
  graph::NodeId anchor_ = graph::kNoNode;
  Parts parts_;
};

}  // namespace tenon::ops
