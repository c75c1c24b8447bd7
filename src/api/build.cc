// Targets, loop IR and libraries.
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>

#include "api/ir_data.h"
#include "api/schedule_data.h"
#include "artifact/link.h"
#include "frontend/onnx/shape_text.h"
#include "support/atomic_file.h"

namespace tenon::inline v0 {

struct LibraryData {
  explicit LibraryData(inner::Target t) : target(std::move(t)) {}

  inner::Target target;
  std::optional<driver::Built> built;
  stages::UsersNames names;  // of loops, for what is said of them
  std::string image;
  std::mutex loading;
  std::optional<Module> loaded;
};

namespace {

/// Sets the parameters of a lowered schedule: tensors and numbers in the caller's order.
class Parameters {
 public:
  Parameters(const ScheduleData& data, const Func& func) : data_(data), fields_(*func) {}

  Func Set(const te::Arguments& args, const std::string& name) {
    std::vector<Buffer> before = std::move(fields_.buffers);
    fields_.buffers.clear();
    fields_.num_outputs = 0;
    for (const te::Argument& a : args) {
      a.IsTensor() ? AddTensor(a, before) : AddNumber(a.number());
    }
    for (const Buffer& b : before) {
      if (Has(b)) continue;
      ThrowValue(fmt::format("'{}' is {} but is not among the arguments", b->name,
                             b == before.back() ? "computed" : "read"));
    }
    RequireNumbers();
    if (!numbers_.empty()) SetOrder();
    Place();
    fields_.name = name;
    fields_.attrs.Set("exported", true);
    return PrimFunc::Make(fields_);
  }

 private:
  bool Has(const Buffer& b) const {
    return std::find(fields_.buffers.begin(), fields_.buffers.end(), b) != fields_.buffers.end();
  }

  [[noreturn]] static void Refuse(const te::Tensor& t, const Buffer& own) {
    ThrowValue(
        fmt::format("the argument '{}' ({}) is another tensor than the '{}' ({}) of this schedule: "
                    "pass the tensor that the schedule was made of, or make a schedule of this one",
                    t.name(), TypeOf(*te::Unwrap(t).buffer()), own->name, TypeOf(*own)));
  }

  static std::string TypeOf(const BufferNode& b) {
    std::vector<std::string> dims;
    for (const inner::Expr& d : b.shape) dims.push_back(inner::Text(d));
    return fmt::format("{}[{}]", LongName(b.dtype), Join(dims, ", "));
  }

  // A tensor is the schedule's own, whatever it is called; an input that nothing reads may be
  // anybody's.
  void AddTensor(const te::Argument& argument, const std::vector<Buffer>& before) {
    const te::Tensor& t = argument.tensor();
    const bool computed = t.op().node()->computed, known = data_.Knows(t);
    const std::string name = known ? data_.NameOf(t) : t.name();
    Buffer buffer = te::Unwrap(t).buffer();
    bool found = false;
    for (const Buffer& b : before) {
      if (b->name != name) continue;
      if (!known) Refuse(t, b);
      buffer = b;
      found = true;
    }
    if (computed && !found) {
      if (!known) {
        ThrowValue(
            fmt::format("'{}' ({}) is not computed by this schedule, which was made of "
                        "other tensors",
                        name, TypeOf(*buffer)));
      }
      buffer = TakeAlloc(name);
    }
    if (Has(buffer)) ThrowValue(fmt::format("'{}' is twice among the arguments", buffer->name));
    if (!computed && fields_.num_outputs > 0) {
      ThrowValue(fmt::format("the input '{}' comes after an output; inputs come first", t.name()));
    }
    fields_.buffers.push_back(buffer);
    fields_.num_outputs += computed ? 1 : 0;
    order_.push_back(buffer->name);
    for (const te::Expr& d : t.shape()) {
      if (!As<VarNode>(te::Unwrap(d))) continue;
      SetDim(d);
      if (!computed) of_inputs_.insert(te::Unwrap(d).get());
    }
    if (!argument.strides().empty()) AddStrides(argument, buffer);
  }

  void AddStrides(const te::Argument& argument, const Buffer& buffer) {
    if (fields_.num_outputs > 0) {
      ThrowValue(
          fmt::format("'{}' is an output, which has no strides of its own: where none is given it "
                      "is made, compact",
                      buffer->name));
    }
    if (argument.strides().size() != buffer->shape.size()) {
      ThrowValue(fmt::format("'{}': expected {} strides but got {}", buffer->name,
                             buffer->shape.size(), argument.strides().size()));
    }
    auto placed = MakeRef<BufferNode>(*buffer);
    for (const te::Expr& stride : argument.strides()) {
      const inner::Expr& e = te::Unwrap(stride);
      if (!IsA<VarNode>(e) && AsInt(e).value_or(-1) < 0) {
        ThrowValue(fmt::format("'{}': a stride is a number or a variable but one is {}",
                               buffer->name, stride.str()));
      }
      placed->strides.push_back(e);
      if (!IsA<VarNode>(e)) continue;
      SetDim(stride);
      of_inputs_.insert(e.get());
    }
    placed_[buffer.get()] = placed;
  }

  // Inputs with strides in the places of compact ones.
  void Place() {
    if (placed_.empty()) return;
    PreOrder(fields_.body, [&](const NodeRef& n) {
      const auto* call = As<CallFunc>(n);
      for (const auto& [buffer, placed] : placed_) {
        if (!call || !UsesBuffer(n, buffer)) continue;
        ThrowValue(
            fmt::format("'{}' cannot have strides of its own: it is passed to '{}', which is told "
                        "those of a compact one",
                        buffer->name, call->callee));
      }
      return !IsA<ExprNode>(n);
    });
    for (Buffer& b : fields_.buffers) {
      if (auto it = placed_.find(b.get()); it != placed_.end()) b = it->second;
    }
    fields_.body = SubstituteBuffers(fields_.body, placed_);
  }

  void AddNumber(const te::Expr& number) {
    const inner::Expr& e = te::Unwrap(number);
    if (!IsA<VarNode>(e)) ThrowValue(fmt::format("'{}' is no variable", number.str()));
    auto var = Cast<VarNode>(e);
    if (fields_.num_outputs > 0) {
      ThrowValue(fmt::format("'{}' comes after an output; inputs come first", var->name));
    }
    if (!numbers_.insert(var.get()).second) {
      ThrowValue(fmt::format("'{}' is twice among the arguments", var->name));
    }
    order_.push_back(var->name);
    of_inputs_.insert(var.get());
    if (var->dtype.IsIndex()) return SetDim(number);
    std::vector<inner::Var>& scalars = fields_.scalars;
    if (std::find(scalars.begin(), scalars.end(), var) == scalars.end()) scalars.push_back(var);
  }

  // Adds the sizes that the shapes of the first arguments tell, given others: n from 2 * n + 1.
  void TellFromShapes(size_t count, std::set<const Node*>* told) const {
    auto known = [&](const inner::Var& v) { return told->count(v.get()) != 0; };
    for (bool more = true; more;) {
      more = false;
      for (size_t i = 0; i < count; ++i) {
        for (const inner::Expr& size : fields_.buffers[i]->shape) {
          const inner::Var dim = DimToldBy(fields_, size, known);
          more |= dim && told->insert(dim.get()).second;
        }
      }
    }
  }

  // Every variable must get a value. Inputs are checked before outputs are looked at.
  void RequireNumbers() {
    const size_t inputs = fields_.buffers.size() - static_cast<size_t>(fields_.num_outputs);
    TellFromShapes(inputs, &of_inputs_);
    told_.insert(of_inputs_.begin(), of_inputs_.end());
    TellFromShapes(fields_.buffers.size(), &told_);
    for (const inner::Var& dim : fields_.dims) {
      if (told_.count(dim.get()) != 0) continue;
      ThrowValue(
          fmt::format("the size '{0}' follows from the shape of no argument; pass '{0}' itself "
                      "as an argument",
                      dim->name));
    }
    for (size_t i = 0; i < inputs; ++i) {
      for (const inner::Expr& size : fields_.buffers[i]->shape)
        RequireTold(size, *fields_.buffers[i]);
    }
    for (const inner::Var& scalar : fields_.scalars) {
      if (numbers_.count(scalar.get()) != 0) continue;
      ThrowValue(fmt::format("'{}' is read but is not among the arguments", scalar->name));
    }
  }

  void RequireTold(const inner::Expr& size, const BufferNode& input) const {
    PreOrder(size, [&](const NodeRef& n) {
      if (IsA<VarNode>(n) && of_inputs_.count(n.get()) == 0) {
        ThrowValue(fmt::format(
            "the shape of '{}' has '{}' in it, which follows from the shape of no input; "
            "pass it as an argument",
            input.name, As<VarNode>(n)->name));
      }
      return true;
    });
  }

  void SetOrder() {
    std::vector<std::string> names = order_;
    std::sort(names.begin(), names.end());
    auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) {
      ThrowValue(
          fmt::format("two arguments are called '{}'; give them names of their own", *twice));
    }
    fields_.attrs.Set(kArgumentsAttr, order_);
  }

  // A tensor in between that the caller wants to have, too.
  Buffer TakeAlloc(const std::string& name) {
    Buffer found;
    fields_.body = PostOrderRewrite(fields_.body, [&](const NodeRef& n) -> NodeRef {
      const auto* alloc = As<Alloc>(n);
      if (!alloc || alloc->buffer->name != name) return n;
      found = alloc->buffer;
      return alloc->body;
    });
    if (!found) {
      ThrowValue(fmt::format("'{}' is not computed by this schedule (or is inlined)", name));
    }
    return found;
  }

  // A size whose value an argument tells.
  void SetDim(const te::Expr& size) {
    auto var = Cast<VarNode>(te::Unwrap(size));
    const DimRange range = size.data().range;
    told_.insert(var.get());
    auto known = std::find(fields_.dims.begin(), fields_.dims.end(), var);
    auto at = static_cast<size_t>(known - fields_.dims.begin());
    if (known == fields_.dims.end()) {
      fields_.dims.push_back(var);
      fields_.dim_lo.push_back(0), fields_.dim_hi.push_back(0), fields_.dim_step.push_back(0);
    }
    fields_.dim_lo[at] = range.lo, fields_.dim_hi[at] = range.hi;
    fields_.dim_step[at] = range.step;
  }

  const ScheduleData& data_;
  PrimFunc fields_;
  std::vector<std::string> order_;
  BufferMap placed_;                 // inputs → the same with strides
  std::set<const Node*> numbers_;    // passed by value
  std::set<const Node*> told_;       // dims that an argument tells
  std::set<const Node*> of_inputs_;  // those that an input tells
};

Library MakeLibrary(const inner::Module& module, const stages::UsersNames& names,
                    const Target& target) {
  auto data = std::make_shared<LibraryData>(target.data().target);
  driver::FunctionOptions options;
  options.target = &data->target;
  data->names = names;
  data->built = Take(driver::BuildFunctions(module, options), names);
  return Library(std::move(data));
}

}  // namespace

Target::Target(const std::string& text)
    : data_(std::make_shared<const TargetData>(TargetData{Take(inner::Target::Parse(text))})) {}
std::string Target::str() const { return data_->target.ToString(); }
std::string Target::kind() const { return std::string(data_->target.kind().name); }
std::vector<std::string> Target::features() const { return data_->target.FeatureList(); }

// The function of a schedule's state, with its parameters in the caller's order.
static IrModule Finish(const ScheduleData& data, const inner::Schedule& schedule,
                       const te::Arguments& args, const std::string& name,
                       const stages::UsersNames& names = {}) {
  if (name.empty() || ToIdentifier(name) != name) {
    ThrowValue(fmt::format("the name '{}' is not an identifier of C, which exports need", name));
  }
  inner::Module module = schedule.module();
  const Func& func = schedule.func();
  module.funcs.erase(func->name);
  if (module.Find(name)) {
    ThrowValue(
        fmt::format("the name '{}' of the build is that of a function that it calls (of extern, "
                    "or an intrinsic); choose another name",
                    name));
  }
  module.Add(Parameters(data, func).Set(args, name));
  module = WithImplementations(module);
  Take(Verify(module, inner::kSchedulable), names);
  return WrapScheduled(std::move(module), names);
}

IrModule Lower(const Schedule& schedule, const te::Arguments& args, const std::string& name) {
  const ScheduleData& data = *schedule.data();
  RequireMade(data.schedule.state().base, data.wanted);
  stages::UsersNames names;
  const inner::Schedule carried = Take(data.schedule.CarryOut(&names));
  return Finish(data, carried, args, name, names);
}

IrModule CreateFunc(const te::Arguments& args, const std::string& name) {
  std::vector<te::Tensor> outputs;
  for (const te::Argument& a : args) {
    if (!a.IsTensor()) continue;
    te::Unwrap(a.tensor());
    if (a.tensor().op().node()->computed) outputs.push_back(a.tensor());
  }
  Schedule schedule = CreateSchedule(outputs);
  return Finish(*schedule.data(), schedule.data()->schedule.state().base, args, name);
}

Library Build(const Schedule& schedule, const te::Arguments& args, const Target& target,
              const std::string& name) {
  const IrModule lowered = Lower(schedule, args, name);
  return MakeLibrary(lowered.data().module, lowered.data().names, target);
}
Library Build(const IrModule& module, const Target& target) {
  const stages::UsersNames& names = module.data().names;
  Take(Verify(module.data().module, inner::kSchedulable), names);
  return MakeLibrary(WithRequirements(module.data()), names, target);
}

// The shared library's bytes, linked (C source: compiled) at the first question; the caller holds
// `loading`.
static const std::string& Image(LibraryData* data) {
  if (data->image.empty()) data->image = Take(driver::MakeOutput(*data->built, "so"));
  return data->image;
}

Module Library::module() const {
  std::lock_guard lock(data_->loading);
  if (!data_->loaded) {
    const std::string image = driver::CallsOthers(*data_->built)
                                  ? Take(driver::MakeLibraryHere(*data_->built))
                                  : Image(data_.get());
    artifact::MemoryFile file = Take(artifact::MemoryFile::Create("tenon-library", image));
    try {
      data_->loaded = Module::LoadFromFile(file.path());
    } catch (const Error& e) {
      // The file has no name that says anything to anyone.
      std::string message = e.what();
      const std::string name = "'" + file.path() + "'";
      if (const size_t at = message.find(name); at != std::string::npos) {
        message.replace(at, name.size(),
                        fmt::format("what was built for target '{}'", data_->target.ToString()));
      }
      throw Error(e.kind(), message);
    }
  }
  return *data_->loaded;
}
Function Library::GetFunction(const std::string& name) const { return module().GetFunction(name); }
std::vector<std::string> Library::functions() const {
  return driver::ExportedNames(data_->built->source());
}
std::vector<std::string> Library::device_forms() const {
  std::vector<std::string> out;
  for (const auto& [form, text] : data_->built->device.files) out.push_back(form);
  return out;
}
std::vector<std::string> Library::remarks() const {
  std::vector<std::string> out = data_->built->remarks;
  for (std::string& remark : out) remark = stages::InUsersNames(remark, data_->names);
  return out;
}
Target Library::target() const { return Target(data_->target.ToString()); }

void Library::ExportLibrary(const std::string& path) const {
  if (path.ends_with(".tar")) return Save(path);
  Take(driver::WriteOutputs(*data_->built, {{"so", path, ""}}));
}

// The module with one function called otherwise.
static inner::Module Renamed(const inner::Module& module, const std::string& from,
                             const std::string& to) {
  inner::Module out = module;
  PrimFunc fields(*module.Find(from));
  fields.name = to;
  out.funcs.erase(from);
  if (out.Find(to)) ThrowValue(fmt::format("there is a function '{}' already", to));
  out.Add(PrimFunc::Make(std::move(fields)));
  return out;
}

void Library::ExportToC(const std::string& path, const std::string& function_name) const {
  inner::Module module = data_->built->source();
  if (!function_name.empty() && !module.Find(function_name)) {
    if (functions().size() != 1) {
      ThrowValue(fmt::format("export_to_c: which of {} is to be called '{}'?",
                             Join(functions(), ", "), function_name));
    }
    module = Renamed(module, functions()[0], function_name);
  }
  const bool is_source = path.ends_with(".c");
  std::string stem = path;
  if (is_source || path.ends_with(".o")) {
    stem.resize(stem.size() - 2);
  } else if (path.rfind('.') != std::string::npos && path.rfind('.') > path.rfind('/') + 1) {
    ThrowValue(
        fmt::format("export_to_c: expected a file that ends in .o or .c, beside which the "
                    "header is written, but got '{}'",
                    path));
  }
  inner::Target target = is_source ? Take(inner::Target::Parse("c")) : data_->target;
  driver::FunctionOptions options;
  options.target = &target;
  options.plain = true;
  driver::BuildRequest request = Take(driver::RequestOf(module, options));
  request.outputs = {
      {"h", stem + ".h", ""},
      is_source ? driver::Output{"c", path, ""} : driver::Output{"obj", stem + ".o", ""}};
  Take(driver::Build(std::move(request)));
}

void Library::Save(const std::string& path) const {
  const std::string form = Take(driver::FormOfFile(*data_->built, path));
  if (form == "so") return ExportLibrary(path);
  Take(driver::WriteOutputs(*data_->built, {{form, path, ""}}));
}

std::string Library::GetSource(const std::string& format) const {
  // Names of TVM's.
  const std::string& form = format == "loop" ? "tir" : format == "cuda" ? "cu" : format;
  return Take(driver::MakeCode(*data_->built, form));
}

bool DescribeObjects(const std::vector<std::string>& objects, const std::string& path) {
  std::vector<std::string> files;
  for (const std::string& object : objects) files.push_back(Take(ReadFile(object)));
  std::string description = Take(driver::DescribeObjects({files.begin(), files.end()}));
  if (!description.empty()) Take(WriteFile(path, description));
  return !description.empty();
}

}  // namespace tenon::inline v0
