#include "ops/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "graph/dims.h"
#include "ir/visit.h"

namespace tenon::ops {

using graph::ValueId;
using te::Indices;

static Buffer WithAlign(const Buffer& b, int64_t align) {
  return BufferNode::Make(b->name, b->dtype, b->shape, b->scope, b->layout, b->strides, align);
}

Operand Immediate(const graph::Value& v) {
  if (!v.IsConstant()) return {};
  const graph::TensorType& type = v.type.tensor();
  auto make = [&](Expr e) {
    return Operand{type.dtype, type.dims, [e](const Indices&) { return e; }};
  };
  auto dims = type.StaticDims();
  if (!dims) return {};
  int64_t count = 1;
  for (int64_t d : *dims) count *= d;
  if (count != 1) return {};
  if (auto ints = graph::ReadInts(v, 1)) return make(MakeIntConst(type.dtype, ints->at(0)));
  if (auto floats = graph::ReadFloats(v, 1)) return make(MakeConst(type.dtype, floats->at(0)));
  return {};
}

Group::Group(const KernelRequest& request) : request_(request) {
  const graph::Graph& g = *request.region;
  values_.resize(g.values.size());
  for (size_t k = 0; k < g.outputs.size(); ++k) {
    outputs_.push_back(Store(fmt::format("out{}", k), g.type(g.outputs[k])));
    StoredTensor& out = outputs_.back();
    if (k < request.output_align.size())
      out.buffer = WithAlign(out.buffer, request.output_align[k]);
    for (const Blocking& b : out.desc.blocks) {
      if (out.IsRagged(b.axis)) ragged_.push_back(out.dims[static_cast<size_t>(b.axis)]);
    }
  }
  for (size_t i = 0; i < g.inputs.size(); ++i) {
    inputs_.push_back(Store(fmt::format("in{}", i), g.type(g.inputs[i])));
    StoredTensor& in = inputs_.back();
    if (i < request.input_align.size()) in.buffer = WithAlign(in.buffer, request.input_align[i]);
    params_.push_back(
        te::Placeholder(in.buffer->name, in.buffer->shape, in.buffer->dtype, in.buffer));
    values_[static_cast<size_t>(g.inputs[i])] = ReadInput(i);
  }
  for (size_t v = 0; v < g.values.size(); ++v) {
    if (g.values[v].IsConstant()) values_[v] = Immediate(g.values[v]);
  }
  anchor_ = AnchorOf(g);
}

// Reads a parameter at logical indices. Where the kernel computes padding (ragged), an axis of that
// size that is not padded itself is clamped: to what is stored, since such an axis need not be the
// padded one, and a window may be reading its halo.
Operand Group::ReadInput(size_t i) const {
  te::Tensor param = params_[i];
  StoredTensor t = inputs_[i];
  std::vector<Expr> last(t.dims.size());  // where an axis is clamped
  for (size_t a = 0; a < last.size(); ++a) {
    const int axis = static_cast<int>(a);
    const bool ragged = std::any_of(ragged_.begin(), ragged_.end(), [&](const Expr& size) {
      return graph::ProveEqual(size, t.dims[a]);
    });
    if (ragged && t.desc.BlockOf(axis) == 1)
      last[a] = graph::DimSub(t.buffer->shape[a], IndexConst(t.Halo(axis) + 1));
  }
  return {t.buffer->dtype, t.dims, [param, t, last](const Indices& at) {
            Indices in = at;
            for (size_t a = 0; a < in.size(); ++a) {
              if (last[a]) in[a] = Min(in[a], last[a]);
            }
            return param.At(t.Place(in));
          }};
}

bool Group::CallsFunction() const {
  return anchor_ != graph::kNoNode && graph().node(anchor_).op == graph::OpKind::kCall;
}

bool Group::IsLoop() const {
  return anchor_ != graph::kNoNode && graph().node(anchor_).op == graph::OpKind::kLoop;
}

const StoredTensor* Group::Stored(ValueId v) const {
  const graph::Graph& g = graph();
  for (size_t i = 0; i < g.inputs.size(); ++i) {
    if (g.inputs[i] == v) return &inputs_[i];
  }
  return nullptr;
}

OpContext Group::Context(const graph::Node& node) const {
  OpContext c;
  c.node = &node;
  for (ValueId v : node.inputs) c.in.push_back(v == graph::kNoValue ? Operand{} : value(v));
  c.out = graph().type(node.outputs[0]);
  c.name = fmt::format("t{}", node.outputs[0]);
  return c;
}

void Group::Set(ValueId v, Operand operand) {
  values_[static_cast<size_t>(v)] = Memo(std::move(operand));
}

// Of element operators that an anchor follows alone: the others' results are tensors.
bool Group::IsHeld(const graph::Node& node) const {
  if (request_.machine->warp == 0 || anchor_ == graph::kNoNode || node.outputs.size() != 1)
    return false;
  const graph::Graph& g = graph();
  const ValueId v = node.outputs[0];
  if (g.value(v).producer >= anchor_ ||
      std::find(g.outputs.begin(), g.outputs.end(), v) == g.outputs.end()) {
    return false;
  }
  return std::any_of(g.nodes.begin(), g.nodes.end(), [&](const graph::Node& n) {
    return std::find(n.inputs.begin(), n.inputs.end(), v) != n.inputs.end();
  });
}

// Its terms written out.
static Operand ShortSum(const OpContext& op) {
  const auto axis = static_cast<long>(op.node->attrs.GetInts("axes")[0]);
  const bool kept = op.node->attrs.Get<bool>("keepdims", false);
  const int64_t count = *AsInt(op.in[0].dims[static_cast<size_t>(axis)]);
  return {op.out.dtype, op.out.dims, [x = op.in[0], axis, kept, count](const Indices& i) {
            Indices in = i;
            if (!kept) in.insert(in.begin() + axis, IndexConst(0));
            Expr sum;
            for (int64_t r = 0; r < count; ++r) {
              in[static_cast<size_t>(axis)] = IndexConst(r);
              sum = sum ? sum + x.at(in) : x.at(in);
            }
            return sum;
          }};
}

void Group::DefineNode(const graph::Node& node) {
  const bool written_out =
      request_.machine->warp > 0 && IsShortSum(graph(), node) && &node != &graph().node(anchor_);
  std::vector<Operand> results =
      written_out ? std::vector<Operand>{ShortSum(Context(node))} : DefineAll(Context(node));
  if (IsHeld(node)) {
    const std::string name = fmt::format("t{}_held", node.outputs[0]);
    results[0] = Read(te::Compute(Mark(name, BlockRole::kMove), results[0].dims,
                                  [x = Memo(results[0])](const Indices& i) { return x.at(i); }));
  }
  for (size_t k = 0; k < results.size(); ++k) Set(node.outputs[k], std::move(results[k]));
}

std::string Group::Mark(std::string block, BlockRole role, std::string row) {
  BlockPart& part = parts_[block];
  part.role = role;
  part.row = std::move(row);
  return block;
}

// Which axis lies along memory, and how long its runs are, for schedules.
void Group::MarkStore(const std::string& block, BlockRole role, const StoredTensor& t) {
  BlockPart& part = parts_[Mark(block, role)];
  if (t.dims.empty()) return;
  part.vector_axis = t.InnermostAxis();
  if (!t.desc.blocks.empty()) part.vector_block = t.desc.blocks.back().size;
  part.order = t.desc.order;
}

te::Tensor Group::StoreOutput(size_t k) {
  const StoredTensor& out = outputs_[k];
  const Operand& v = value(graph().outputs[k]);
  std::vector<Expr> domain;
  for (size_t a = 0; a < out.dims.size(); ++a) domain.push_back(out.Padded(static_cast<int>(a)));
  te::Storage storage;
  storage.buffer = out.buffer;
  storage.place = [out](const Indices& i) { return out.Place(i); };
  const std::string name = fmt::format("out{}", k);
  MarkStore(name, BlockRole::kOutput, out);
  return te::Compute(
      name, domain,
      [&](const Indices& i) -> te::Body {
        Expr e = v.at(i);
        for (const Blocking& b : out.desc.blocks) {
          if (b.size != out.desc.BlockOf(b.axis) || !out.IsRagged(b.axis)) continue;
          size_t a = static_cast<size_t>(b.axis);
          e = Select::Make(Lt(i[a], out.dims[a]), e, MakeConst(e->dtype, out.desc.padding));
        }
        return e;
      },
      storage);
}

void Group::FillHalo(size_t k, std::vector<te::Tensor>* tensors) {
  const StoredTensor& out = outputs_[k];
  size_t r = out.dims.size();
  if (out.desc.begin.empty() && out.desc.size.empty()) return;
  auto begin = [&](size_t a) { return out.desc.begin.empty() ? 0 : out.desc.begin[a]; };
  for (size_t a = 0; a < r; ++a) {
    const Expr after = graph::DimAdd(out.Padded(static_cast<int>(a)), IndexConst(begin(a)));
    const Expr from[2] = {IndexConst(0), after};
    const Expr count[2] = {IndexConst(begin(a)), graph::DimSub(out.buffer->shape[a], after)};
    for (int side = 0; side < 2; ++side) {
      if (graph::DimRange(count[side]).max <= 0) continue;
      // The slab: the axes before a in their interior, a at this side, the axes after a whole.
      std::vector<Expr> domain;
      std::vector<Expr> offset(r, IndexConst(0));
      for (size_t b = 0; b < r; ++b) {
        if (b < a) {
          domain.push_back(out.Padded(static_cast<int>(b)));
          offset[b] = IndexConst(begin(b));
        } else {
          domain.push_back(b == a ? count[side] : out.buffer->shape[b]);
          if (b == a) offset[b] = from[side];
        }
      }
      te::Storage storage;
      storage.buffer = out.buffer;
      storage.place = [offset](const Indices& i) {
        Indices at;
        for (size_t b = 0; b < i.size(); ++b) at.push_back(i[b] + offset[b]);
        return at;
      };
      const std::string name = fmt::format("halo{}_{}_{}", k, a, side);
      MarkStore(name, BlockRole::kHalo, out);
      tensors->push_back(te::Compute(
          name, domain,
          [&](const Indices&) { return MakeConst(out.buffer->dtype, out.desc.padding); }, storage));
    }
  }
}

Func WithUsedDims(const Func& func) {
  std::set<const Node*> used;
  auto note = [&](const NodeRef& n) {
    if (IsA<VarNode>(n)) used.insert(n.get());
    return true;
  };
  PreOrder(func->body, note);
  for (const Buffer& b : func->buffers) PreOrder(b, note);
  PrimFunc fields = *func;
  for (size_t i = fields.dims.size(); i-- > 0;) {
    if (used.count(fields.dims[i].get()) != 0) continue;
    const auto at = static_cast<long>(i);
    fields.dims.erase(fields.dims.begin() + at);
    for (std::vector<int64_t>* list : {&fields.dim_lo, &fields.dim_hi, &fields.dim_step})
      list->erase(list->begin() + at);
  }
  return fields.dims.size() == func->dims.size() ? func : PrimFunc::Make(std::move(fields));
}

std::optional<int64_t> Group::KnownSize(const Expr& size) const {
  return AsInt(graph::SimplifyDim(Substitute(size, request_.known)));
}

Expected<Kernel> Group::Finish() {
  std::vector<te::Tensor> outputs;
  for (size_t k = 0; k < outputs_.size(); ++k) outputs.push_back(StoreOutput(k));
  for (size_t k = 0; k < outputs_.size(); ++k) FillHalo(k, &outputs);
  te::FuncOptions options;
  options.target = request_.machine->target;
  for (const graph::Dim& d : graph().dims) {
    options.dims.push_back(d.var);
    options.ranges.push_back({d.min, d.max == graph::Dim::kNoMax ? -1 : d.max, d.step});
  }
  options.contract = std::all_of(graph().nodes.begin(), graph().nodes.end(), [](const auto& n) {
    return n.attrs.template Get<bool>("contract", true);
  });
  Kernel kernel;
  TN_ASSIGN_OR_RETURN(Func whole, te::MakeFunc(request_.name, params_, outputs, options));
  kernel.func = WithUsedDims(whole);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    kernel.operands.push_back(graph().inputs[i]);
    kernel.bytes += TypicalSize(graph(), inputs_[i].Bytes());
  }
  for (const StoredTensor& t : outputs_) kernel.bytes += TypicalSize(graph(), t.Bytes());
  kernel.parts = std::move(parts_);
  return kernel;
}

}  // namespace tenon::ops
