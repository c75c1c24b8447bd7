// Tensors computed by functions of loop IR: one opaque block that calls the function, or, where it
// has loops over threads or workers, is its body.
//
// Until the schedule's function is made such a tensor is a compute of zeros with an attribute; then
// its nest becomes the block.
#include <algorithm>

#include "api/ir_data.h"
#include "api/schedule_data.h"

namespace tenon::inline v0 {

namespace {

constexpr const char* kExtern = "extern_function";

Func OnlyDevice(const std::string& name, const inner::Module& module) {
  Func found = module.Find(name);
  for (const auto& [other, f] : module.funcs) {
    if (found || f->func_kind != FuncKind::kDevice) continue;
    if (module.funcs.size() > 1) {
      ThrowValue(fmt::format("extern '{}': of several functions, one must have this name", name));
    }
    found = f;
  }
  if (found && found->func_kind == FuncKind::kDevice) return found;
  ThrowValue(fmt::format("extern '{}': the body has no function of kind device", name));
}

void CheckParameters(const std::string& name, const PrimFunc& f,
                     const std::vector<te::Tensor>& inputs, const std::vector<DType>& outputs,
                     const std::vector<std::vector<te::Expr>>& shapes) {
  bool same = f.buffers.size() == inputs.size() + outputs.size() &&
              f.num_outputs == static_cast<int64_t>(outputs.size()) && f.scalars.empty();
  for (size_t i = 0; same && i < f.buffers.size(); ++i) {
    bool in = i < inputs.size();
    size_t rank = in ? inputs[i].shape().size() : shapes[i - inputs.size()].size();
    DType type = in ? te::Unwrap(inputs[i]).dtype() : outputs[i - inputs.size()];
    same = f.buffers[i]->dtype == type && f.buffers[i]->shape.size() == rank;
  }
  if (same) return;
  ThrowValue(
      fmt::format("extern '{}': the parameters of @{} are not the inputs and then the outputs, "
                  "by number, types and dims",
                  name, f.name));
}

// The sizes that the function's parameters say are those of the tensors.
void CheckSizes(const std::string& name, const PrimFunc& f, const std::vector<te::Tensor>& inputs,
                const std::vector<std::vector<te::Expr>>& shapes) {
  VarMap values;
  auto shape_of = [&](size_t i) {
    return i < inputs.size() ? inputs[i].shape() : shapes[i - inputs.size()];
  };
  auto each_dim = [&](const auto& see) {
    for (size_t i = 0; i < f.buffers.size(); ++i) {
      const std::vector<te::Expr> shape = shape_of(i);
      for (size_t d = 0; d < shape.size(); ++d) see(*f.buffers[i], d, te::AsIndex(shape[d]));
    }
  };
  each_dim([&](const BufferNode& b, size_t d, const inner::Expr& size) {
    if (const auto* var = As<VarNode>(b.shape[d])) values.emplace(var, size);
  });
  each_dim([&](const BufferNode& b, size_t d, const inner::Expr& size) {
    const inner::Expr said = Simplify(Substitute(b.shape[d], values));
    if (StructuralEqual(said, Simplify(size))) return;
    ThrowValue(
        fmt::format("extern '{}': '{}' of @{} has {} elements along dim {} but its tensor {}", name,
                    b.name, f.name, ToString(b.shape[d]), d, ToString(size)));
  });
}

// What the function's dims are: sizes, or strides of compact tensors.
std::vector<inner::Expr> DimsOf(const PrimFunc& f, const std::vector<Buffer>& args) {
  std::unordered_map<const VarNode*, inner::Expr> values;
  auto learn = [&](const inner::Expr& e, const inner::Expr& value) {
    if (const auto* var = As<VarNode>(e)) values.emplace(var, value);
  };
  for (size_t i = 0; i < args.size(); ++i) {
    const BufferNode& param = *f.buffers[i];
    inner::Expr dense = IndexConst(1);
    for (size_t d = param.shape.size(); d-- > 0;) {
      learn(param.shape[d], args[i]->shape[d]);
      if (d < param.strides.size()) learn(param.strides[d], dense);
      dense = Simplify(dense * args[i]->shape[d]);
    }
  }
  std::vector<inner::Expr> out;
  for (const inner::Var& v : f.dims) {
    auto it = values.find(v.get());
    if (it == values.end()) {
      ThrowValue(fmt::format("extern: what '{}' of @{} is does not follow from a tensor's shape",
                             v->name, f.name));
    }
    out.push_back(it->second);
  }
  return out;
}

// Loops that are a launch's or a team's: nothing that one thread could call has them.
bool HasSharedLoops(const PrimFunc& f) {
  bool found = false;
  PreOrder(f.body, [&](const NodeRef& n) {
    const auto* loop = As<For>(n);
    found |= loop && (loop->for_kind == ForKind::kThread || loop->for_kind == ForKind::kParallel);
    return !found;
  });
  return found;
}

// What the function does with the arguments, in the place of a call.
Stmt BodyOf(const PrimFunc& f, const std::vector<Buffer>& args, NameSupply* names) {
  BufferMap buffers;
  for (size_t i = 0; i < args.size(); ++i) buffers.emplace(f.buffers[i].get(), args[i]);
  VarMap dims;
  const std::vector<inner::Expr> values = DimsOf(f, args);
  for (size_t i = 0; i < values.size(); ++i) dims.emplace(f.dims[i].get(), values[i]);
  return SubstituteBuffers(FreshCopy(f.body, std::move(dims), names), buffers);
}

// The nest's block, with the function's work for its body.
Stmt WorkBlock(const Block& nest, const PrimFunc& f, const std::vector<Buffer>& inputs,
               NameSupply* names) {
  Block block;
  block.name = nest.name;
  block.opaque = true;
  std::vector<Buffer> args = inputs;
  for (const Region& w : nest.writes) args.push_back(w->buffer);
  std::vector<Region> regions;
  for (size_t i = 0; i < args.size(); ++i) {
    regions.push_back(Whole(args[i]));
    (i < inputs.size() ? block.reads : block.writes).push_back(regions.back());
  }
  block.body = HasSharedLoops(f) ? BodyOf(f, args, names)
                                 : CallFunc::Make(f.name, std::move(regions), DimsOf(f, args));
  return Block::Make(std::move(block));
}

// What a nest's block has become: the work, or, of a further output, nothing. It is for all
// elements.
bool IsWork(const Stmt& s) {
  const auto* block = As<Block>(s);
  const auto* seq = As<Seq>(s);
  return (block && block->opaque) || (seq && seq->stmts.empty());
}

// The first extern operation whose first output is the buffer.
const te::OperationData* Owner(const std::vector<te::Operation>& order,
                               const inner::te::Program& program, const Buffer& written) {
  for (const te::Operation& op : order) {
    if (!op.node()->extern_body) continue;
    auto it = program.buffers.find(op.node()->outputs[0].buffer().get());
    if (it != program.buffers.end() && it->second == written) return op.node().get();
  }
  return nullptr;
}

}  // namespace

namespace te {

std::vector<Tensor> Extern(const std::vector<std::vector<Expr>>& shapes,
                           const std::vector<Tensor>& inputs, const IrModule& body,
                           const std::vector<DataType>& dtypes, const std::string& name) {
  if (shapes.empty() || shapes.size() != dtypes.size()) {
    ThrowValue(fmt::format("extern '{}': expected a shape and a type for each output", name));
  }
  auto op = std::make_shared<OperationData>();
  op->name = name;
  op->shape = shapes[0];
  op->computed = true;
  op->inputs = inputs;
  op->extern_body = std::make_shared<const IrData>(body.data());
  op->extern_shapes = shapes;
  std::vector<DType> types;
  for (DataType t : dtypes) types.push_back(FromPublic(t));
  Func f = OnlyDevice(name, body.data().module);
  op->extern_name = f->name;
  CheckParameters(name, *f, inputs, types, shapes);
  CheckSizes(name, *f, inputs, shapes);
  inner::te::Storage storage;
  storage.attrs.Set(kExtern, f->name);
  for (const Tensor& t : inputs) storage.inputs.push_back(Unwrap(t).node());
  for (size_t i = 0; i < shapes.size(); ++i) {
    std::vector<inner::Expr> dims;
    for (const Expr& d : shapes[i]) dims.push_back(AsIndex(d));
    // The first output stands for the call; the others are filled by it.
    inner::te::Storage own = storage;
    if (i > 0) own.inputs = {op->outputs[0].node()};
    op->outputs.push_back(inner::te::Compute(
        shapes.size() == 1 ? name : fmt::format("{}.v{}", name, i), dims,
        [&](const inner::te::Indices&) -> inner::te::Body { return MakeConst(types[i], 0); }, own));
  }
  std::vector<Tensor> out;
  for (size_t i = 0; i < shapes.size(); ++i) out.emplace_back(op, static_cast<int>(i));
  return out;
}

}  // namespace te

inner::Module WithExterns(const inner::te::Program& program,
                          const std::vector<te::Operation>& order) {
  inner::Module module;
  const Func& func = program.func;
  PrimFunc fields(*func);
  NameSupply names(*func);
  auto buffer_of = [&](const inner::te::Tensor& t) {
    auto it = program.buffers.find(t.buffer().get());
    return it == program.buffers.end() ? t.buffer() : it->second;
  };
  NodeRef body = PostOrderRewrite(func->body, [&](const NodeRef& n) -> NodeRef {
    if (const auto* loop = As<For>(n)) return IsWork(loop->body) ? NodeRef(loop->body) : n;
    if (const auto* seq = As<Seq>(n)) return Seq::Make(seq->stmts);  // without the empty ones
    const auto* block = As<Block>(n);
    if (!block || !block->attrs.Has(kExtern)) return n;
    const te::OperationData* op = Owner(order, program, block->writes[0]->buffer);
    // The nest of a further output: the call fills it.
    if (!op) return Seq::Make({});
    Block whole(*block);
    whole.writes.clear();
    std::vector<Buffer> inputs;
    for (const te::Tensor& t : op->inputs) inputs.push_back(buffer_of(te::Unwrap(t)));
    for (const inner::te::Tensor& t : op->outputs) whole.writes.push_back(Whole(buffer_of(t)));
    const Func work = op->extern_body->module.Find(op->extern_name);
    for (const auto& [name, f] : op->extern_body->module.funcs) {
      if (f == work && HasSharedLoops(*f)) continue;
      Func known = module.Find(name);
      if (known && !StructuralEqual(known, f)) {
        ThrowValue(fmt::format("extern '{}': there is another function @{}", op->name, name));
      }
      module.Add(f);
    }
    return WorkBlock(whole, *work, inputs, &names);
  });
  fields.body = Cast<StmtNode>(body);
  module.Add(PrimFunc::Make(std::move(fields)));
  return module;
}

}  // namespace tenon::inline v0
