// Control flow of host functions: branches and loops around the launches of their regions.
#include <fmt/format.h>

#include <algorithm>

#include "graph/dims.h"
#include "graph/edit.h"
#include "graph/lower/host_builder.h"
#include "graph/lower/loop_kernels.h"
#include "ops/loop_kernel.h"
#include "plan/region.h"

namespace tenon::graph {

Frame HostBuilder::Enter(const Graph& region) { return {region, fmt::format("r{}_", regions_++)}; }

Status HostBuilder::LowerControl(Frame* frame, const Node& node, const std::string& what) {
  if (node.op == OpKind::kLoop && machine_.warp > 0) {
    std::vector<ValueId> operands;
    const NodeId id = static_cast<NodeId>(&node - frame->g.nodes.data());
    const Graph region = RegionOf(frame->g, id, &operands);
    if (ops::FitsOneKernel(region)) {
      const std::vector<Slot> results = SlotsOf(frame, node.outputs);
      return LowerRegion(frame, region, SlotsOf(frame, operands), results, what, nullptr);
    }
  }
  if (node.op == OpKind::kIf) return LowerIf(frame, node);
  return node.op == OpKind::kWhile ? LowerWhile(frame, node) : LowerLoop(frame, node);
}

Expr HostBuilder::Scalar(Frame* frame, ValueId v) {
  const Value& value = frame->g.value(v);
  if (IsKnownScalar(value) && value.type.tensor().dtype.IsBool())
    return BoolConst(ReadInts(value, 1)->front() != 0);
  // What it is a view of may have axes.
  const Buffer& buffer = SlotOf(frame, v).buffer;
  return Load::Make(buffer, std::vector<Expr>(buffer->shape.size(), IndexConst(0)));
}

Slot HostBuilder::Local(Frame* frame, const std::string& name, DType dtype) {
  Buffer b = ops::Store(frame->prefix + name, TensorType{dtype, {}}).buffer;
  frame->locals.push_back(b);
  return {b, false};
}

Slot HostBuilder::HostLocal(Frame* frame, const std::string& name, DType dtype) {
  if (place_.IsHost()) return Local(frame, name, dtype);
  Buffer b = BufferNode::Make(frame->prefix + name, dtype, {}, Scope::kLocal);
  frame->locals.push_back(b);
  return {b, false};
}

Status HostBuilder::LowerIf(Frame* frame, const Node& node) {
  const Expr condition = Scalar(frame, node.inputs[0]);
  const std::vector<Slot> results = SlotsOf(frame, node.outputs);
  Stmt branches[2];
  for (size_t b = 0; b < 2; ++b) {
    Frame inner = Enter(*node.regions[b]);
    for (size_t i = 0; i < inner.g.inputs.size(); ++i)
      inner.slot(inner.g.inputs[i]) = SlotOf(frame, node.inputs[i + 1]);
    std::vector<size_t> copied;
    for (size_t k = 0; k < results.size(); ++k) {
      const ValueId v = inner.g.outputs[k];
      if (inner.g.value(v).producer == kNoNode || inner.slot(v).buffer) {
        copied.push_back(k);
      } else {
        inner.slot(v) = results[k];
      }
    }
    TN_RETURN_IF_ERROR(LowerNodes(&inner));
    for (size_t k : copied) {
      TN_RETURN_IF_ERROR(LowerCopy(&inner, inner.g.outputs[k], results[k]));
    }
    branches[b] = Close(&inner);
  }
  frame->stmts.push_back(If::Make(condition, branches[0], branches[1]));
  return Ok();
}

Expected<std::vector<Slot>> HostBuilder::BeginCarried(Frame* frame, const Node& node,
                                                      size_t first) {
  const auto carried = static_cast<size_t>(node.attrs.GetInt("carried"));
  std::vector<Slot> state;
  for (size_t k = 0; k < carried; ++k) {
    state.push_back(SlotOf(frame, node.outputs[k]));
    TN_RETURN_IF_ERROR(LowerCopy(frame, node.inputs[first + k], state.back()));
  }
  return state;
}

Status HostBuilder::EndCarried(Frame* inner, const std::vector<Slot>& state, size_t first_output) {
  std::vector<Slot> saved(state.size());
  auto next = [&](size_t k) { return inner->g.outputs[first_output + k]; };
  // By what lies there: a view of a carried value is its memory.
  auto is_state = [&](size_t k) {
    const Buffer& from = inner->slot(next(k)).buffer;
    return from &&
           std::any_of(state.begin(), state.end(), [&](const Slot& s) { return s.buffer == from; });
  };
  auto stays = [&](size_t k) { return inner->slot(next(k)).buffer == state[k].buffer; };
  for (size_t k = 0; k < state.size(); ++k) {
    if (stays(k) || !is_state(k)) continue;
    const TensorType& type = inner->g.type(next(k));
    saved[k].buffer = ops::Store(fmt::format("{}saved{}", inner->prefix, k), type).buffer;
    inner->locals.push_back(saved[k].buffer);
    TN_RETURN_IF_ERROR(LowerCopy(inner, next(k), saved[k]));
  }
  for (size_t k = 0; k < state.size(); ++k) {
    if (stays(k)) continue;
    TN_RETURN_IF_ERROR(saved[k].buffer
                           ? LowerCopy(inner, inner->g.value(next(k)), saved[k], state[k])
                           : LowerCopy(inner, next(k), state[k]));
  }
  return Ok();
}

Status HostBuilder::LowerWhile(Frame* frame, const Node& node) {
  TN_ASSIGN_OR_RETURN(const std::vector<Slot> state, BeginCarried(frame, node, 1));
  const Slot go_on = HostLocal(frame, fmt::format("go{}", regions_), DType::Bool());
  frame->stmts.push_back(Store::Make(go_on.buffer, {}, Scalar(frame, node.inputs[0])));
  Frame inner = Enter(*node.regions[0]);
  for (size_t i = 0; i < inner.g.inputs.size(); ++i)
    inner.slot(inner.g.inputs[i]) = i < state.size() ? state[i] : SlotOf(frame, node.inputs[i + 1]);
  TN_RETURN_IF_ERROR(LowerNodes(&inner));
  inner.stmts.push_back(Store::Make(go_on.buffer, {}, Scalar(&inner, inner.g.outputs[0])));
  TN_RETURN_IF_ERROR(EndCarried(&inner, state, 1));
  frame->stmts.push_back(While::Make(Load::Make(go_on.buffer, {}), Close(&inner)));
  return Ok();
}

bool HostBuilder::SameShape(const BufferNode& a, const BufferNode& b) {
  return std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end(),
                    [](const Expr& x, const Expr& y) { return ProveEqual(x, y); });
}

Status HostBuilder::LowerNumber(Frame* inner, const Var& i) {
  const Slot number = Local(inner, "number", DType::Int(64));
  inner->slot(inner->g.inputs[0]) = number;
  if (place_.IsHost()) {
    inner->stmts.push_back(Store::Make(number.buffer, {}, CastExpr::Make(DType::Int(64), i)));
    return Ok();
  }
  if (UseCounts(inner->g)[static_cast<size_t>(inner->g.inputs[0])] == 0) return Ok();
  TN_ASSIGN_OR_RETURN(const ops::Kernel kernel, NumberKernel(NextName(), i, machine_));
  LaunchAlone(inner, kernel, {number}, "number of an iteration");
  return Ok();
}

Status HostBuilder::LowerRow(Frame* inner, ValueId v, const Slot& all, const Var& i) {
  if (place_.IsHost()) {
    std::vector<Range> ranges = Whole(all.buffer)->ranges;
    ranges[0] = RangeNode::Make(i, IndexConst(1));
    return LowerCopy(inner, v, all, RegionNode::Make(all.buffer, std::move(ranges)));
  }
  const Value& value = inner->g.value(v);
  Slot row = SlotOf(inner, v);
  // Where a view of it lies, and what is built in, is no such row.
  const Buffer own =
      ops::Store(fmt::format("{}row{}", inner->prefix, v), value.type.tensor()).buffer;
  if (IsKnownScalar(value) || !SameShape(*row.buffer, *own)) {
    inner->locals.push_back(own);
    TN_RETURN_IF_ERROR(LowerCopy(inner, v, {own, false}));
    row = {own, false};
  }
  TN_ASSIGN_OR_RETURN(const ops::Kernel kernel,
                      RowKernel(NextName(), Aligned(row.buffer, AlignOf(row)),
                                Aligned(all.buffer, AlignOf(all)), i, inner->g.dims, machine_));
  LaunchAlone(inner, kernel, {row, all}, "row of a loop's result");
  return Ok();
}

void HostBuilder::LaunchAlone(Frame* frame, const ops::Kernel& kernel,
                              const std::vector<Slot>& slots, const std::string& what) {
  std::vector<Region> args;
  for (const Slot& s : slots) args.push_back(Whole(s.buffer));
  const std::vector<Var>& dims = kernel.func->dims;
  Attrs attrs;
  attrs.Set("node", what);
  frame->stmts.push_back(Launch::Make(kernels_->Intern(kernel, true), args,
                                      {dims.begin(), dims.end()}, place_, std::move(attrs)));
}

Status HostBuilder::LowerLoop(Frame* frame, const Node& node) {
  TN_ASSIGN_OR_RETURN(const std::vector<Slot> state, BeginCarried(frame, node, 0));
  Frame inner = Enter(*node.regions[0]);
  const Var i = VarNode::Make(inner.prefix + "i");
  TN_RETURN_IF_ERROR(LowerNumber(&inner, i));
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    inner.slot(inner.g.inputs[k + 1]) = k < state.size() ? state[k] : SlotOf(frame, node.inputs[k]);
  }
  TN_RETURN_IF_ERROR(LowerNodes(&inner));
  std::vector<std::pair<size_t, Slot>> moved;
  for (size_t k = state.size(); k < node.outputs.size(); ++k) {
    Slot all = SlotOf(frame, node.outputs[k]);
    // Where a view of it lies, rows may be none of that buffer.
    const Buffer own =
        ops::Store(fmt::format("{}rows{}", inner.prefix, k), frame->g.type(node.outputs[k])).buffer;
    if (!SameShape(*all.buffer, *own)) {
      all.buffer = own;
      frame->locals.push_back(own);
      moved.emplace_back(k, all);
    }
    TN_RETURN_IF_ERROR(LowerRow(&inner, inner.g.outputs[k], all, i));
  }
  TN_RETURN_IF_ERROR(EndCarried(&inner, state, 0));
  const Expr count = node.exprs.find("count")->second[0];
  frame->stmts.push_back(For::Make(i, IndexConst(0), count, ForKind::kSerial, Close(&inner)));
  for (const auto& [k, rows] : moved) {
    TN_RETURN_IF_ERROR(
        LowerCopy(frame, frame->g.value(node.outputs[k]), rows, SlotOf(frame, node.outputs[k])));
  }
  return Ok();
}

}  // namespace tenon::graph
