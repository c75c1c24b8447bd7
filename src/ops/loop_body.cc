#include "ops/loop_body.h"

#include <fmt/format.h>

#include <algorithm>

#include "arith/analyzer.h"
#include "graph/dims.h"
#include "ir/visit.h"
#include "ops/group.h"

namespace tenon::ops {

using graph::OpKind;
using graph::ValueId;

static std::vector<Var> AxesOf(const std::vector<Expr>& dims) {
  std::vector<Var> axes;
  for (size_t a = 0; a < dims.size(); ++a)
    axes.push_back(VarNode::Make(fmt::format("a{}", a), DType::Index()));
  return axes;
}

LoopBody::LoopBody(const graph::Graph& body, size_t carried, Var number,
                   std::vector<Operand> captured)
    : body_(body), number_(std::move(number)), captured_(std::move(captured)) {
  for (size_t k = 0; k < carried; ++k) {
    const graph::TensorType& type = body.type(body.inputs[k + 1]);
    states_.push_back(BufferNode::Make(fmt::format("state{}", k), type.dtype, type.dims));
  }
  next_.resize(carried);
}

bool LoopBody::Trace() {
  std::vector<Operand> inputs;
  const DType index = DType::Int(64);
  Expr number = CastExpr::Make(index, number_);
  inputs.push_back({index, {}, [number](const te::Indices&) { return number; }});
  for (const Buffer& state : states_) inputs.push_back(ReadOf(state));
  inputs.insert(inputs.end(), captured_.begin(), captured_.end());
  const std::vector<Operand> results = Evaluate(body_, inputs, "l", true);
  if (!fits_) return false;
  for (size_t k = 0; k < results.size(); ++k) {
    if (k >= states_.size()) {
      const std::vector<Var> axes = AxesOf(results[k].dims);
      rows_.push_back({results[k].dims, axes, ElementAt(results[k], axes)});
    } else if (!next_[k]) {
      next_[k] = AddStep(fmt::format("next{}", k), results[k]);
    }
  }
  return fits_;
}

bool LoopBody::FindAxes(int first) {
  axes_.assign(states_.size(), kUnknownAxis);
  axes_[0] = first;
  for (size_t round = 0; round <= states_.size(); ++round) {
    if (!FindStepAxes()) return false;
    for (size_t k = 0; k < states_.size(); ++k) {
      const int next = AxisOf(next_[k].get());
      if (axes_[k] < 0 && next >= 0) axes_[k] = next;
    }
  }
  for (int& axis : axes_) axis = axis == kUnknownAxis ? kNoAxis : axis;
  return FindStepAxes() && Agree();
}

Expr LoopBody::length() const {
  return axes_[0] < 0 ? IndexConst(1) : states_[0]->shape[static_cast<size_t>(axes_[0])];
}

int LoopBody::AxisOf(const BufferNode* full) const {
  for (size_t k = 0; k < states_.size(); ++k) {
    if (states_[k].get() == full) return axes_[k];
  }
  for (const LoopStep& s : steps_) {
    if (s.full.get() == full) return s.axis;
  }
  return kUnknownAxis;
}

Operand LoopBody::ReadOf(const Buffer& full) {
  return {full->dtype, full->shape, [full](const te::Indices& at) { return Load::Make(full, at); }};
}

Expr LoopBody::ElementAt(const Operand& operand, const std::vector<Var>& axes) {
  const te::Tensor probe =
      te::Compute("probe", operand.dims, [&](const te::Indices& at) -> te::Body {
        VarMap named;
        for (size_t a = 0; a < axes.size(); ++a) named[As<VarNode>(at[a])] = axes[a];
        return Substitute(operand.at(at), named);
      });
  for (const te::TensorRef& input : probe.node()->inputs) Make(input);
  return probe.node()->value;
}

void LoopBody::Make(const te::TensorRef& tensor) {
  if (!tensor->computed || !made_.insert(tensor.get()).second) return;
  if (tensor->place || tensor->tuple || tensor->scan || tensor->steps || tensor->scatter)
    fits_ = false;
  for (const te::TensorRef& input : tensor->inputs) Make(input);
  steps_.push_back({tensor->buffer, tensor->axes, tensor->reduce_axes, tensor->combiner,
                    tensor->value, tensor->init});
}

Buffer LoopBody::AddStep(const std::string& name, const Operand& operand) {
  const Buffer full = BufferNode::Make(name, operand.dtype, operand.dims);
  const std::vector<Var> axes = AxesOf(operand.dims);
  const Expr value = ElementAt(operand, axes);
  steps_.push_back({full, axes, {}, BinaryOp::kAdd, value, nullptr});
  return full;
}

std::vector<Operand> LoopBody::Evaluate(const graph::Graph& g, const std::vector<Operand>& inputs,
                                        const std::string& prefix, bool is_body) {
  std::vector<Operand> values(g.values.size());
  for (size_t i = 0; i < g.inputs.size(); ++i) values[static_cast<size_t>(g.inputs[i])] = inputs[i];
  for (size_t v = 0; v < g.values.size(); ++v) {
    if (!g.values[v].IsConstant() || g.values[v].payload.bytes().empty()) continue;
    values[v] = Immediate(g.values[v]);
  }
  for (size_t n = 0; n < g.nodes.size() && fits_; ++n) {
    const graph::Node& node = g.nodes[n];
    std::vector<Operand> in;
    for (ValueId v : node.inputs) {
      in.push_back(v == graph::kNoValue ? Operand{} : values[static_cast<size_t>(v)]);
      fits_ &= v == graph::kNoValue || in.back().at != nullptr;
    }
    if (!fits_) return {};
    std::vector<Operand> out = EvaluateNode(g, node, in, prefix);
    for (size_t k = 0; k < out.size() && fits_; ++k) {
      const ValueId v = node.outputs[k];
      values[static_cast<size_t>(v)] = out[k];
      if (is_body) values[static_cast<size_t>(v)] = Kept(v, out[k]);
    }
  }
  std::vector<Operand> results;
  for (ValueId v : g.outputs) {
    results.push_back(values[static_cast<size_t>(v)]);
    fits_ &= results.back().at != nullptr;
  }
  return results;
}

Operand LoopBody::Kept(ValueId v, const Operand& operand) {
  const auto begin = body_.outputs.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(states_.size());
  const auto at = std::find(begin, end, v);
  if (at == end) return operand;
  const auto k = static_cast<size_t>(at - begin);
  next_[k] = AddStep(fmt::format("next{}", k), operand);
  return ReadOf(next_[k]);
}

std::vector<Operand> LoopBody::EvaluateNode(const graph::Graph& g, const graph::Node& node,
                                            const std::vector<Operand>& in,
                                            const std::string& prefix) {
  if (node.op == OpKind::kFused)
    return Evaluate(*node.regions[0], in, fmt::format("{}f{}_", prefix, serial_++), false);
  if (node.op == OpKind::kRequire) return {in[0]};
  if (graph::IsControl(node.op) || node.op == OpKind::kCall || node.op == OpKind::kDim ||
      node.op == OpKind::kScatter || node.op == OpKind::kAttention) {
    fits_ = false;
    return {};
  }
  return DefineAll({&node, in, g.type(node.outputs[0]),
                    fmt::format("{}{}_{}", prefix, serial_++, node.outputs[0])});
}

bool LoopBody::FindAxis(const std::vector<const Expr*>& exprs, const std::vector<Var>& axes,
                        int* out) const {
  bool fits = true;
  *out = kNoAxis;
  for (const Expr* e : exprs) {
    if (!*e) continue;
    PreOrder(*e, [&](const NodeRef& n) {
      const auto* load = As<Load>(n);
      const int apart = load ? AxisOf(load->buffer.get()) : kUnknownAxis;
      if (apart < 0) return true;
      const Expr index = tenon::Simplify(load->indices[static_cast<size_t>(apart)]);
      const auto at = std::find_if(axes.begin(), axes.end(),
                                   [&](const Var& axis) { return axis.get() == index.get(); });
      const int place = at == axes.end() ? kUnknownAxis : static_cast<int>(at - axes.begin());
      fits &= place >= 0 && (*out < 0 || *out == place);
      *out = place;
      return true;
    });
  }
  return fits;
}

bool LoopBody::FindStepAxes() {
  for (LoopStep& s : steps_) {
    if (!FindAxis({&s.value, &s.init}, s.axes, &s.axis)) return false;
    // What begins anew is as much apart along any axis.
    for (size_t k = 0; k < next_.size(); ++k) {
      if (s.axis == kNoAxis && next_[k] == s.full && axes_[k] >= 0) s.axis = axes_[k];
    }
  }
  for (CollectedRow& r : rows_) {
    if (!FindAxis({&r.value}, r.axes, &r.axis)) return false;
  }
  return true;
}

bool LoopBody::Agree() const {
  const Expr length = this->length();
  const auto fits = [&](const std::vector<Expr>& shape, int axis) {
    return axis < 0 || graph::ProveEqual(shape[static_cast<size_t>(axis)], length);
  };
  for (size_t k = 0; k < states_.size(); ++k) {
    if (AxisOf(next_[k].get()) != axes_[k] || !fits(states_[k]->shape, axes_[k])) return false;
  }
  return std::all_of(steps_.begin(), steps_.end(),
                     [&](const LoopStep& s) { return fits(s.full->shape, s.axis); });
}

// ---- Lanes ----

const LoopStep* LoopBody::StepOf(const BufferNode* full) const {
  const auto at = std::find_if(steps_.begin(), steps_.end(),
                               [&](const LoopStep& s) { return s.full.get() == full; });
  return at == steps_.end() ? nullptr : &*at;
}

int LoopBody::LaneOf(const BufferNode* full) const {
  for (size_t k = 0; k < states_.size(); ++k) {
    if (states_[k].get() == full) return state_lanes_[k];
  }
  const LoopStep* step = StepOf(full);
  return step ? step->lane : kNoAxis;
}

// What reads one lane's element has that lane's place, or adds all of them up, and nothing else may
// follow from such a sum.
bool LoopBody::FindLane(LoopStep* step) const {
  bool fits = true;
  step->lane = kNoAxis;
  step->meets = nullptr;
  for (const Expr* e : {&step->value, &step->init}) {
    if (!*e) continue;
    PreOrder(*e, [&](const NodeRef& n) {
      const auto* load = As<Load>(n);
      if (!load) return true;
      const LoopStep* read = StepOf(load->buffer.get());
      fits &= !read || !read->meets;
      const int lane = LaneOf(load->buffer.get());
      if (lane < 0) return true;
      const Expr index = tenon::Simplify(load->indices[static_cast<size_t>(lane)]);
      const auto is_index = [&](const Var& axis) { return axis.get() == index.get(); };
      const auto at = std::find_if(step->axes.begin(), step->axes.end(), is_index);
      const int place = static_cast<int>(at - step->axes.begin());
      if (at != step->axes.end()) {
        fits &= step->lane < 0 || step->lane == place;
        step->lane = place;
        return true;
      }
      const auto over = std::find_if(step->reduce.begin(), step->reduce.end(),
                                     [&](const te::Axis& r) { return is_index(r.var); });
      fits &= over != step->reduce.end() && (!step->meets || step->meets == over->var);
      if (fits) step->meets = over->var;
      return true;
    });
  }
  if (step->meets) {
    const auto one = [&](size_t a) {
      return static_cast<int>(a) == step->axis || IsOne(step->full->shape[a]);
    };
    for (size_t a = 0; a < step->axes.size(); ++a) fits &= one(a);
    fits &= step->lane < 0 && step->combiner == BinaryOp::kAdd && AsFloat(step->init) == 0.0 &&
            step->full->dtype == DType::Float(32);
  }
  return fits;
}

// Rows are what lanes have added up, and what can be computed of that and of memory.
bool LoopBody::RowsMeet() const {
  bool fits = !rows_.empty();
  for (const CollectedRow& r : rows_) {
    bool meets = false;
    PreOrder(r.value, [&](const NodeRef& n) {
      const auto* load = As<Load>(n);
      const LoopStep* step = load ? StepOf(load->buffer.get()) : nullptr;
      meets |= step && step->meets;
      const bool is_state =
          load && std::any_of(states_.begin(), states_.end(),
                              [&](const Buffer& s) { return s.get() == load->buffer.get(); });
      fits &= !is_state && (!step || step->meets);
      return true;
    });
    for (size_t a = 0; a < r.shape.size(); ++a)
      fits &= static_cast<int>(a) == r.axis || IsOne(r.shape[a]);
    fits &= meets && r.axis >= 0;
  }
  return fits;
}

bool LoopBody::TryLanes(int first) {
  state_lanes_.assign(states_.size(), kNoAxis);
  state_lanes_[0] = first;
  for (size_t round = 0; round <= states_.size(); ++round) {
    for (LoopStep& s : steps_) {
      if (!FindLane(&s)) return false;
      for (size_t k = 0; k < next_.size(); ++k) {  // what begins anew is as much each lane's
        if (next_[k] == s.full && s.lane < 0 && !s.meets) s.lane = state_lanes_[k];
      }
    }
    for (size_t k = 0; k < states_.size(); ++k) {
      const LoopStep& next = *StepOf(next_[k].get());
      if (next.meets) return false;
      if (state_lanes_[k] < 0) state_lanes_[k] = next.lane;
    }
  }
  const auto has_length = [&](const Buffer& b, int lane) {
    return lane < 0 || AsInt(b->shape[static_cast<size_t>(lane)]) == lanes_;
  };
  for (size_t k = 0; k < states_.size(); ++k) {
    if (StepOf(next_[k].get())->lane != state_lanes_[k] || !has_length(states_[k], state_lanes_[k]))
      return false;
  }
  return std::all_of(steps_.begin(), steps_.end(),
                     [&](const LoopStep& s) {
                       const auto over = std::find_if(
                           s.reduce.begin(), s.reduce.end(),
                           [&](const te::Axis& r) { return s.meets && r.var == s.meets; });
                       return has_length(s.full, s.lane) &&
                              (over == s.reduce.end() || AsInt(over->extent) == lanes_);
                     }) &&
         RowsMeet();
}

bool LoopBody::FindLanes() {
  constexpr int64_t kMostLanes = 64;
  if (axes_[0] < 0) return false;
  for (size_t a = 0; a < states_[0]->shape.size(); ++a) {
    const auto length = AsInt(states_[0]->shape[a]);
    if (static_cast<int>(a) == axes_[0] || !length || *length < 2 || *length > kMostLanes) continue;
    lanes_ = *length;
    if (TryLanes(static_cast<int>(a))) return true;
  }
  lanes_ = 1;
  state_lanes_.assign(states_.size(), kNoAxis);
  for (LoopStep& s : steps_) {
    s.lane = kNoAxis;
    s.meets = nullptr;
  }
  return false;
}

}  // namespace tenon::ops
