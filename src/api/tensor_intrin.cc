// Users' intrinsics: a table for the whole process of what they compute and how.
//
// An intrinsic is two functions of kind device: the description, which tensorize looks for in a
// schedule and puts a call of in its place, and the implementation, which takes the description's
// place in the module that is compiled. Before a row enters the table both are run, where they can
// be, on the same small numbers and have to agree. A description in tensors reads tiles of larger
// ones, so its strides are open, or as the implementation has them; where it has an initial value
// there is a second row that goes on from what is there. Of c[i] = sum(a[i, k] * b[k]) under the
// name "dot4" the table has
//
//   func @dot4<a_stride0>(a: f32[4, 8] strides (a_stride0, 1), b: f32[8], out c: f32[4]) …
//       reads a[vi, vk], b[vk]; writes c[vi]
//       init { c[vi] = 0f32 }
//       c[vi] = c[vi] + a[vi, vk] * b[vk]
//   func @dot4.update<a_stride0>(…) kind device
//       reads a[vi, vk], b[vk], c[vi]; writes c[vi]
//       c[vi] = c[vi] + a[vi, vk] * b[vk]
//
// and tensorize of a reduction tries the first, then the second.
#include <algorithm>
#include <mutex>

#include "api/bridge.h"
#include "api/ir_data.h"

namespace tenon::inline v0 {

namespace {

struct Row {
  Func description;
  inner::Module implementation;
};

/// Rows stay where they are: a schedule may be reading one while another thread adds.
struct Table {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const Row>> rows;
};

Table& TheTable() {
  static Table table;
  return table;
}

std::shared_ptr<const Row> Find(const std::string& name) {
  Table& table = TheTable();
  const std::lock_guard lock(table.mutex);
  auto it = table.rows.find(name);
  return it == table.rows.end() ? nullptr : it->second;
}

Func DeviceFunction(const inner::Module& module, const std::string& name, const char* what) {
  Func f = module.Find(name);
  if (!f) ThrowValue(fmt::format("the {} of '{}' has no function of this name", what, name));
  if (f->func_kind != FuncKind::kDevice) {
    ThrowValue(fmt::format("the {} of '{}' must be of kind device", what, name));
  }
  return f;
}

void CheckSameParameters(const PrimFunc& a, const PrimFunc& b) {
  bool same = a.buffers.size() == b.buffers.size() && a.dims.size() == b.dims.size() &&
              a.scalars.size() == b.scalars.size() && a.num_outputs == b.num_outputs;
  for (size_t i = 0; same && i < a.buffers.size(); ++i) {
    const BufferNode &x = *a.buffers[i], &y = *b.buffers[i];
    same = x.dtype == y.dtype && x.shape.size() == y.shape.size() && x.scope == y.scope;
    for (size_t d = 0; same && d < x.shape.size(); ++d) {
      same = AsInt(x.shape[d]) == AsInt(y.shape[d]);
    }
  }
  if (same) return;
  ThrowValue(fmt::format(
      "intrinsic '{}': description and implementation differ in their parameters", a.name));
}

// Small numbers, the same ones for both; what is written starts as one of them, for it may be
// updated.
std::vector<InterpArg> SmallNumbers(const PrimFunc& f) {
  std::vector<InterpArg> args;
  uint64_t state = 1;
  for (const Buffer& b : f.buffers) {
    std::vector<int64_t> shape;
    int64_t count = 1;
    for (const inner::Expr& e : b->shape) {
      shape.push_back(*AsInt(e));
      count *= shape.back();
    }
    std::vector<double> values(static_cast<size_t>(count));
    for (double& v : values) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      auto number = static_cast<double>((state >> 33) % 7);
      v = b->dtype.IsBool()                           ? number > 3
          : b->dtype.IsSigned() || b->dtype.IsFloat() ? number - 3
                                                      : number;
    }
    args.push_back(InterpArg::Tensor(b->dtype, shape, values));
  }
  return args;
}

// Rows lie further apart than they are long.
std::map<std::string, int64_t> SomeStrides(const PrimFunc& f) {
  std::map<std::string, int64_t> out;
  for (const Buffer& b : f.buffers) {
    int64_t dense = 1;
    for (size_t d = b->shape.size(); d-- > 0;) {
      const auto* var = d < b->strides.size() ? As<VarNode>(b->strides[d]) : nullptr;
      if (var) out[var->name] = dense *= 2;
      dense *= *AsInt(b->shape[d]);
    }
  }
  return out;
}

bool CanRun(const PrimFunc& f) {
  return f.scalars.empty() && std::all_of(f.buffers.begin(), f.buffers.end(), [](const Buffer& b) {
           return std::all_of(b->shape.begin(), b->shape.end(),
                              [](const inner::Expr& e) { return AsInt(e).has_value(); });
         });
}

Expected<std::vector<InterpArg>> RunOnSmallNumbers(const inner::Module& module,
                                                   const std::string& name) {
  const PrimFunc& f = *module.Find(name);
  std::vector<InterpArg> args = SmallNumbers(f);
  InterpOptions options;
  options.dims = SomeStrides(f);
  TN_RETURN_IF_ERROR(Interpret(module, name, args, options));
  return args;
}

// An implementation that calls C functions cannot be run here; it is taken at its word.
void CheckComputesTheSame(const inner::Module& description, const inner::Module& implementation,
                          const std::string& name) {
  if (!CanRun(*description.Find(name))) return;
  std::vector<InterpArg> want = Take(RunOnSmallNumbers(description, name));
  Expected<std::vector<InterpArg>> got = RunOnSmallNumbers(implementation, name);
  if (!got) {
    std::string text = inner::Text(got.errors());
    if (text.find("extern") != std::string::npos) return;
    ThrowValue(fmt::format("intrinsic '{}': running its implementation: {}", name, text));
  }
  for (size_t i = 0; i < want.size(); ++i) {
    for (int64_t k = 0; k < want[i].num_elements(); ++k) {
      if (want[i].Get(k) == (*got)[i].Get(k)) continue;
      ThrowValue(fmt::format(
          "intrinsic '{}': the implementation computes something else than the description: "
          "element {} of '{}' is {} but should be {}",
          name, k, description.Find(name)->buffers[i]->name, (*got)[i].Get(k), want[i].Get(k)));
    }
  }
}

// The one block of a description, or null.
const Block* OnlyBlock(const Func& f) {
  const Block* found = nullptr;
  int count = 0;
  PreOrder(f->body, [&](const NodeRef& n) {
    if (const auto* block = As<Block>(n)) found = block, ++count;
    return !IsA<ExprNode>(n);
  });
  return count == 1 ? found : nullptr;
}

// The same without its initial value: what is there is updated. Null where there is none.
Func UpdateForm(const Func& f) {
  const Block* block = OnlyBlock(f);
  if (!block || !block->init) return nullptr;
  PrimFunc fields(*f);
  fields.name = stages::UpdateName(f->name);
  fields.body = PostOrderRewrite(f->body, [](const NodeRef& n) -> NodeRef {
    const auto* b = As<Block>(n);
    if (!b) return n;
    Block update(*b);
    update.init = nullptr;
    for (const Region& r : b->writes) update.reads.push_back(r);
    return Block::Make(std::move(update));
  });
  return PrimFunc::Make(std::move(fields));
}

inner::Module With(inner::Module module, const Func& f) {
  module.Add(f);
  return module;
}

bool SameRow(const Row& a, const Row& b) {
  return StructuralEqual(a.description, b.description) &&
         Print(a.implementation) == Print(b.implementation);
}

void Add(const std::string& name, const inner::Module& description,
         const inner::Module& implementation) {
  Take(Verify(description, inner::kSchedulable));
  Take(Verify(implementation, inner::kSchedulable));
  auto row = std::make_shared<Row>();
  row->description = DeviceFunction(description, name, "description");
  row->implementation = implementation;
  CheckSameParameters(*row->description, *DeviceFunction(implementation, name, "implementation"));
  CheckComputesTheSame(description, implementation, name);
  Table& table = TheTable();
  const std::lock_guard lock(table.mutex);
  const std::shared_ptr<const Row>& known = table.rows[name];
  if (known && !SameRow(*known, *row)) {
    ThrowValue(
        fmt::format("intrinsic '{}' is registered already, with another description or "
                    "implementation; expected a new name",
                    name));
  }
  table.rows[name] = row;
}

inner::Var NewDim(const std::string& name, PrimFunc* f) {
  f->dims.push_back(VarNode::Make(name));
  f->dim_lo.push_back(0);
  f->dim_hi.push_back(-1);
  f->dim_step.push_back(1);
  return f->dims.back();
}

// Tiles of larger tensors lie as the implementation says of its parameters; where there is none,
// all strides but the last are dims of the function.
Func WithStrides(const Func& f, const PrimFunc* implementation) {
  PrimFunc fields(*f);
  BufferMap map;
  VarMap dims;  // of the implementation
  if (implementation && implementation->buffers.size() != fields.buffers.size())
    implementation = nullptr;  // which is said where parameters are compared
  for (size_t i = 0; implementation && i < implementation->dims.size(); ++i) {
    const inner::Var& dim = implementation->dims[i];
    dims[dim.get()] = NewDim(dim->name, &fields);
  }
  for (size_t i = 0; i < fields.buffers.size(); ++i) {
    Buffer& b = fields.buffers[i];
    std::vector<inner::Expr> strides;
    if (implementation) {
      for (const inner::Expr& e : implementation->buffers[i]->strides)
        strides.push_back(Substitute(e, dims));
    } else if (b->shape.size() > 1) {
      for (size_t d = 0; d + 1 < b->shape.size(); ++d)
        strides.push_back(NewDim(fmt::format("{}_stride{}", b->name, d), &fields));
      strides.push_back(IndexConst(1));
    }
    if (strides.empty()) continue;
    Buffer placed =
        BufferNode::Make(b->name, b->dtype, b->shape, b->scope, b->layout, strides, b->align);
    map[b.get()] = placed;
    b = placed;
  }
  fields.body = SubstituteBuffers(f->body, map);
  return PrimFunc::Make(std::move(fields));
}

inner::Module DescribedBy(const std::string& name, const std::vector<te::Tensor>& tensors,
                          const inner::Module* implementation = nullptr) {
  if (tensors.empty()) ThrowValue(fmt::format("intrinsic '{}' is described by no tensors", name));
  std::vector<inner::te::Tensor> inputs;
  for (const te::Tensor& t : tensors) {
    for (const te::Expr& d : t.shape()) {
      if (!AsInt(te::Unwrap(d))) {
        ThrowValue(fmt::format("intrinsic '{}': the size '{}' of '{}' is no number", name, d.str(),
                               t.name()));
      }
    }
    inputs.push_back(te::Unwrap(t));
  }
  std::vector<inner::te::Tensor> outputs = {inputs.back()};
  inputs.pop_back();
  PrimFunc fields(*Take(inner::te::MakeFunc(name, inputs, outputs)));
  fields.func_kind = FuncKind::kDevice;
  inner::Module module;
  const Func as =
      implementation ? DeviceFunction(*implementation, name, "implementation") : nullptr;
  module.Add(WithStrides(PrimFunc::Make(std::move(fields)), as.get()));
  return module;
}

void AddWithUpdate(const std::string& name, const inner::Module& description,
                   const inner::Module& implementation) {
  Add(name, description, implementation);
  Func update = UpdateForm(description.Find(name));
  if (update && implementation.Find(update->name)) {
    Add(update->name, With(description, update), implementation);
  }
}

void AddAlone(const std::string& name, inner::Module description) {
  if (Func update = UpdateForm(DeviceFunction(description, name, "description"))) {
    description.Add(update);
  }
  AddWithUpdate(name, description, description);
}

}  // namespace

void TensorIntrin::Register(const std::string& name, const IrModule& description,
                            const IrModule& implementation) {
  DeviceFunction(description.data().module, name, "description");
  AddWithUpdate(name, description.data().module, implementation.data().module);
}
void TensorIntrin::Register(const std::string& name, const IrModule& description) {
  AddAlone(name, description.data().module);
}
void TensorIntrin::Register(const std::string& name, const std::vector<te::Tensor>& description) {
  AddAlone(name, DescribedBy(name, description));
}
void TensorIntrin::Register(const std::string& name, const std::vector<te::Tensor>& description,
                            const IrModule& implementation) {
  const inner::Module& own = implementation.data().module;
  AddWithUpdate(name, DescribedBy(name, description, &own), own);
}
IrModule TensorIntrin::Get(const std::string& name) {
  std::shared_ptr<const Row> row = Find(name);
  const TileIntrinsic* builtin = BuiltinTileIntrinsics().Find(name);
  if (!row && !builtin) ThrowValue(fmt::format("no intrinsic '{}' is registered", name));
  inner::Module module;
  module.Add(row ? row->description : Take(MeaningOf(*builtin)));
  return WrapModule(std::move(module));
}

stages::Intrinsics Registered(const std::string& intrinsic) {
  stages::Intrinsics out;
  for (const std::string& name : {intrinsic, stages::UpdateName(intrinsic)}) {
    if (const std::shared_ptr<const Row> row = Find(name)) out[name] = row->description;
  }
  return out;
}

void AddIntrinsicsOf(const inner::Trace& trace, inner::Schedule* schedule) {
  for (const TraceStep& step : trace.steps) {
    if (step.primitive != "tensorize" || step.args.size() != 2) continue;
    const auto* name = std::get_if<std::string>(&step.args[1]);
    std::shared_ptr<const Row> row = name ? Find(*name) : nullptr;
    if (row) AddFunction(schedule, row->description);
  }
}

inner::Module WithImplementations(const inner::Module& module) {
  inner::Module out = module;
  for (const auto& [name, f] : module.funcs) {
    std::shared_ptr<const Row> row = Find(name);
    if (!row || !StructuralEqual(f, row->description)) continue;
    for (const auto& [other, implementation] : row->implementation.funcs) {
      if (implementation->func_kind == FuncKind::kDevice) out.Add(implementation);
    }
  }
  return out;
}

}  // namespace tenon::inline v0
