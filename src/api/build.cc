// Targets, loop IR and libraries.
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "api/ir_data.h"
#include "api/schedule_data.h"
#include "artifact/link.h"
#include "frontend/onnx/shape_text.h"

namespace tenon::inline v0 {

struct LibraryData {
  explicit LibraryData(inner::Target t) : target(std::move(t)) {}

  inner::Target target;
  inner::Module source;
  driver::BuiltCode code;
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
      a.IsTensor() ? AddTensor(a.tensor(), before) : AddNumber(a.number());
    }
    for (const Buffer& b : before) {
      if (Has(b)) continue;
      ThrowValue(fmt::format("'{}' is {} but is not among the arguments", b->name,
                             b == before.back() ? "computed" : "read"));
    }
    RequireNumbers();
    if (!numbers_.empty()) SetOrder();
    fields_.name = name;
    fields_.attrs.Set("exported", true);
    return PrimFunc::Make(fields_);
  }

 private:
  bool Has(const Buffer& b) const {
    return std::find(fields_.buffers.begin(), fields_.buffers.end(), b) != fields_.buffers.end();
  }

  void AddTensor(const te::Tensor& t, const std::vector<Buffer>& before) {
    Buffer wanted = data_.BufferOf(t);
    Buffer buffer = wanted;
    for (const Buffer& b : before) {
      if (b->name == wanted->name) buffer = b;
    }
    bool computed = t.op().node()->computed;
    if (computed && std::find(before.begin(), before.end(), buffer) == before.end()) {
      buffer = TakeAlloc(wanted->name);
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
  std::set<const Node*> numbers_;    // passed by value
  std::set<const Node*> told_;       // dims that an argument tells
  std::set<const Node*> of_inputs_;  // those that an input tells
};

bool EndsWith(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Library MakeLibrary(inner::Module module, const Target& target) {
  auto data = std::make_shared<LibraryData>(target.data().target);
  driver::BuildOptions options;
  options.target = &data->target;
  data->code = Take(driver::BuildModule(module, options));
  data->source = std::move(module);
  return Library(std::move(data));
}

// What the device runs, and what its host does; the source where nothing is said.
std::string EmittedForDevice(const LibraryData& data, const std::string& format) {
  const codegen::DeviceCode& device = data.code.device;
  const std::string& wanted = format == "cuda" ? "cu" : format;
  if (wanted.empty()) return device.source;
  if (auto it = device.files.find(wanted); it != device.files.end()) return it->second;
  codegen::EmitOptions host;
  for (const auto& [name, f] : data.code.lowered.funcs) {
    const bool is_host = f->func_kind == FuncKind::kHost || f->func_kind == FuncKind::kPacked;
    if (is_host) host.functions.push_back(name);
  }
  const inner::Target& cpu = data.target.Cpu();
  if (wanted == "llvm" || wanted == "ll") {
    return Take(codegen::EmitLlvm(data.code.lowered, cpu, host));
  }
  if (wanted == "asm" || wanted == "s") {
    return Take(codegen::EmitAssembly(data.code.lowered, cpu, host));
  }
  if (!device.missing.empty()) ThrowValue(inner::Text(device.missing));
  std::vector<std::string> forms;
  for (const auto& [form, text] : device.files) forms.push_back(form);
  ThrowValue(
      fmt::format("there is no source in the form '{}'; expected {}, or of the host llvm or asm, "
                  "tir or lowered",
                  format, Join(forms, ", ")));
}

std::string Emitted(const LibraryData& data, const std::string& format) {
  if (format == "tir" || format == "loop") return Print(data.source);
  if (format == "lowered") return Print(data.code.lowered);
  if (data.target.IsDevice()) return EmittedForDevice(data, format);
  if (!data.code.source.empty()) {
    if (format == "c" || format.empty()) return data.code.source;
    ThrowValue(
        fmt::format("target c has no source in the form '{}'; expected c, tir or lowered", format));
  }
  if (format.empty()) return Take(codegen::EmitLlvm(data.code.lowered, data.target, {}));
  if (format == "llvm" || format == "ll") {
    return Take(codegen::EmitLlvm(data.code.lowered, data.target, {}));
  }
  if (format == "asm" || format == "s") {
    return Take(codegen::EmitAssembly(data.code.lowered, data.target, {}));
  }
  ThrowValue(fmt::format("there is no source in the form '{}'; expected llvm, asm, tir or lowered",
                         format));
}

}  // namespace

Target::Target(const std::string& text)
    : data_(std::make_shared<const TargetData>(TargetData{Take(inner::Target::Parse(text))})) {}
std::string Target::str() const { return data_->target.ToString(); }
std::string Target::kind() const { return std::string(data_->target.kind().name); }
std::vector<std::string> Target::features() const { return data_->target.FeatureList(); }

// The function of a schedule's state, with its parameters in the caller's order.
static IrModule Finish(const ScheduleData& data, const inner::Schedule& schedule,
                       const te::Arguments& args, const std::string& name) {
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
  Take(Verify(module, inner::kSchedulable));
  return WrapScheduled(std::move(module));
}

IrModule Lower(const Schedule& schedule, const te::Arguments& args, const std::string& name) {
  RequireMade(schedule.data()->base, schedule.data()->wanted);
  return Finish(*schedule.data(), CarryOut(*schedule.data()), args, name);
}

IrModule CreateFunc(const te::Arguments& args, const std::string& name) {
  std::vector<te::Tensor> outputs;
  for (const te::Argument& a : args) {
    if (!a.IsTensor()) continue;
    te::Unwrap(a.tensor());
    if (a.tensor().op().node()->computed) outputs.push_back(a.tensor());
  }
  Schedule schedule = CreateSchedule(outputs);
  return Finish(*schedule.data(), schedule.data()->base, args, name);
}

Library Build(const Schedule& schedule, const te::Arguments& args, const Target& target,
              const std::string& name) {
  return MakeLibrary(Lower(schedule, args, name).data().module, target);
}
Library Build(const IrModule& module, const Target& target) {
  Take(Verify(module.data().module, inner::kSchedulable));
  return MakeLibrary(WithRequirements(module.data()), target);
}

// The shared library's bytes, linked (C source: compiled) at the first question; the caller holds
// `loading`.
static const std::string& Image(LibraryData* data) {
  if (data->image.empty()) data->image = Take(driver::LinkBuilt(data->code, data->target, false));
  return data->image;
}

Module Library::module() const {
  std::lock_guard lock(data_->loading);
  if (!data_->loaded) {
    artifact::MemoryFile file =
        Take(artifact::MemoryFile::Create("tenon-library", Image(data_.get())));
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
std::vector<std::string> Library::functions() const { return data_->code.functions; }
std::vector<std::string> Library::device_forms() const {
  std::vector<std::string> out;
  for (const auto& [form, text] : data_->code.device.files) out.push_back(form);
  return out;
}
std::vector<std::string> Library::remarks() const { return data_->code.remarks; }
Target Library::target() const { return Target(data_->target.ToString()); }

// What is written is the target's; a name that says otherwise is a mistake.
static void CheckSuffix(const std::string& path, const inner::Target& target) {
  const ArchRow* arch = ArchOfTriple(target.Cpu().triple());
  const std::string_view own = arch ? arch->library_suffix : ".so";
  for (const char* foreign : {".dll", ".dylib", ".exe", ".o", ".a", ".lib"}) {
    if (!EndsWith(path, foreign)) continue;
    ThrowValue(fmt::format("'{}' does not end as a library of target '{}' does: expected {}", path,
                           target.ToString(), own));
  }
  if (EndsWith(path, ".wasm") && own != ".wasm") {
    ThrowValue(
        fmt::format("'{}': target '{}' is not wasm; expected {}", path, target.ToString(), own));
  }
}

void Library::ExportLibrary(const std::string& path) const {
  if (EndsWith(path, ".tar")) return Save(path);
  CheckSuffix(path, data_->target);
  std::lock_guard lock(data_->loading);
  Take(WriteFile(path, Image(data_.get())));
}

namespace {

// A tar file of the library and what it was made of, the times of its files zero.
std::string TarOf(const std::string& library, const LibraryData& data) {
  TarWriter tar;
  tar.Add("deploy_lib.so", library);
  tar.Add("module.tir", Print(data.source));
  if (!data.code.source.empty()) tar.Add("module.c", data.code.source);
  for (const auto& [form, text] : data.code.device.files) tar.Add("module." + form, text);
  return tar.Finish();
}

// The module with one function called otherwise.
inner::Module Renamed(const inner::Module& module, const std::string& from, const std::string& to) {
  inner::Module out = module;
  PrimFunc fields(*module.Find(from));
  fields.name = to;
  out.funcs.erase(from);
  if (out.Find(to)) ThrowValue(fmt::format("there is a function '{}' already", to));
  out.Add(PrimFunc::Make(std::move(fields)));
  return out;
}

}  // namespace

void Library::ExportToC(const std::string& path, const std::string& function_name) const {
  inner::Module module = data_->source;
  if (!function_name.empty() && !module.Find(function_name)) {
    if (data_->code.functions.size() != 1) {
      ThrowValue(fmt::format("export_to_c: which of {} is to be called '{}'?",
                             Join(data_->code.functions, ", "), function_name));
    }
    module = Renamed(module, data_->code.functions[0], function_name);
  }
  for (const char* other : {".h", ".so", ".a", ".tar", ".cc", ".cpp"}) {
    if (!EndsWith(path, other)) continue;
    ThrowValue(
        fmt::format("export_to_c: expected a file that ends in .o or .c, beside which the "
                    "header is written, but got '{}'",
                    path));
  }
  const bool is_source = EndsWith(path, ".c");
  inner::Target target = is_source ? Take(inner::Target::Parse("c")) : data_->target;
  driver::BuildOptions options;
  options.target = &target;
  options.plain = true;
  driver::BuiltCode code = Take(driver::BuildModule(module, options));
  std::string stem = path;
  if (is_source || EndsWith(path, ".o")) stem.resize(stem.size() - 2);
  const std::string name = stem.substr(stem.rfind('/') + 1);
  Take(WriteFile(stem + ".h", driver::HeaderOfBuilt(module, code, name)));
  if (is_source) {
    Take(WriteFile(path, code.source));
    return;
  }
  Take(WriteFile(stem + ".o", Take(driver::LinkBuilt(code, target, true))));
}

void Library::Save(const std::string& path) const {
  if (EndsWith(path, ".so") || EndsWith(path, ".wasm")) return ExportLibrary(path);
  if (EndsWith(path, ".o")) {
    Take(WriteFile(path, Take(driver::LinkBuilt(data_->code, data_->target, true))));
    return;
  }
  if (EndsWith(path, ".tar")) {
    std::lock_guard lock(data_->loading);
    Take(WriteFile(path, TarOf(Image(data_.get()), *data_)));
    return;
  }
  for (const char* format : {"c", "ll", "s", "tir", "cu", "ptx", "cubin", "cl"}) {
    if (!EndsWith(path, std::string(".") + format)) continue;
    Take(WriteFile(path, Emitted(*data_, format)));
    return;
  }
  ThrowValue(
      fmt::format("cannot tell the format of '{}'; expected .so, .wasm, .o, .tar, .c, .ll, .s or "
                  ".tir, or for a "
                  "GPU .cu, .ptx, .cubin or .cl",
                  path));
}

std::string Library::GetSource(const std::string& format) const { return Emitted(*data_, format); }

bool DescribeObjects(const std::vector<std::string>& objects, const std::string& path) {
  std::vector<std::string> files;
  for (const std::string& object : objects) files.push_back(Take(ReadFile(object)));
  std::string description = Take(driver::DescribeObjects({files.begin(), files.end()}));
  if (!description.empty()) Take(WriteFile(path, description));
  return !description.empty();
}

void CompileModel(const std::string& model, const std::string& output,
                  const ModelOptions& options) {
  driver::CompileOptions compile;
  compile.model = model;
  compile.output = output;
  compile.name = options.name;
  compile.target = options.target.str();
  compile.precision = options.precision;
  compile.opt_level = options.opt_level;
  compile.jobs = options.jobs;
  for (const auto& [input, dims] : options.shapes) {
    std::vector<onnx::DimSpec>& shape = compile.shapes[input];
    for (const Size& size : dims) shape.push_back(Take(onnx::ParseSize(size.text)));
  }
  Take(driver::Compile(compile));
}

}  // namespace tenon::inline v0
