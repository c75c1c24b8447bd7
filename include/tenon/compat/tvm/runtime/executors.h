// A compiled network in the manners of TVM's executors, header-only and included by module.h:
//
//   Module run = lib.GetFunction("default")(DLDevice{kDLCPU, 0});   // a graph executor
//   run.GetFunction("set_input")("x", x);
//   run.GetFunction("run")();
//   NDArray y = run.GetFunction("get_output")(0);
//
//   Module vm = lib.GetFunction("vm_load_executable")();            // Relax's virtual machine
//   vm.GetFunction("vm_initialization")(int{kDLCPU}, 0, 2);
//   NDArray y = vm.GetFunction("main")(x);
//
// Names that the library itself exports come first. A graph executor holds the inputs and outputs
// of one run: it belongs to one thread at a time, the library to all.
#ifndef TVM_RUNTIME_EXECUTORS_H_
#define TVM_RUNTIME_EXECUTORS_H_

#include <tvm/runtime/module.h>
#include <tvm/runtime/packed_func.h>
#include <tenon/tenon.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tvm::runtime::detail {

/// Keeps: an input is what was set last, or empty; the outputs are those of the last run.
class GraphExecutorNode : public ModuleNode,
                          public std::enable_shared_from_this<GraphExecutorNode> {
 public:
  GraphExecutorNode(const ::tenon::Module& module, Device device)
      : main_(module.GetFunction(module.Name())),
        inputs_(module.Inputs()),
        outputs_(module.Outputs()),
        device_(device),
        feeds_(inputs_.size()) {}

  PackedFunc GetFunction(const std::string& name) const override {
    const auto self = std::const_pointer_cast<GraphExecutorNode>(shared_from_this());
    using Body = void (GraphExecutorNode::*)(const TVMArgs&, TVMRetValue*);
    static const std::pair<const char*, Body> kFunctions[] = {
        {"set_input", &GraphExecutorNode::SetInput},
        {"set_input_zero_copy", &GraphExecutorNode::SetInputZeroCopy},
        {"get_input", &GraphExecutorNode::GetInput},
        {"get_input_index", &GraphExecutorNode::GetInputIndex},
        {"get_num_inputs", &GraphExecutorNode::GetNumInputs},
        {"run", &GraphExecutorNode::Run},
        {"get_output", &GraphExecutorNode::GetOutput},
        {"get_num_outputs", &GraphExecutorNode::GetNumOutputs},
    };
    for (const auto& [known, body] : kFunctions) {
      if (name != known) continue;
      Body call = body;
      return PackedFunc(
          [self, call](TVMArgs args, TVMRetValue* result) { (self.get()->*call)(args, result); });
    }
    return nullptr;
  }

 private:
  using Parameters = std::vector<::tenon::Parameter>;

  // The number of a parameter that is named or numbered; -1 where a name is not there.
  static int64_t Find(const Parameters& parameters, const TVMArgValue& key) {
    if (!key.IsText()) return key;
    const std::string name = key;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].name == name) return static_cast<int64_t>(i);
    }
    return -1;
  }
  static size_t Require(const Parameters& parameters, const TVMArgValue& key, const char* what) {
    const int64_t index = Find(parameters, key);
    if (index >= 0 && index < static_cast<int64_t>(parameters.size()))
      return static_cast<size_t>(index);
    std::string known;
    for (const ::tenon::Parameter& p : parameters) known += " '" + p.name + "'";
    const std::string asked = key.IsText() ? "'" + std::string(key) + "'" : std::to_string(index);
    throw Error("ValueError",
                "there is no " + std::string(what) + " " + asked + "; there are" + known);
  }

  void SetInput(const TVMArgs& args, TVMRetValue*) {
    const size_t index = Require(inputs_, args[0], "input");
    const NDArray value = args[1];
    NDArray& own = feeds_[index];
    const bool fits = own.defined() && !borrowed_[index] && own.Shape() == value.Shape() &&
                      ::tenon::DataType(own.tensor().dtype()) == value.tensor().dtype();
    if (!fits) own = NDArray::Empty(value.Shape(), value.DataType(), device_);
    own.CopyFrom(value);
    borrowed_[index] = false;
  }
  void SetInputZeroCopy(const TVMArgs& args, TVMRetValue*) {
    const size_t index = Require(inputs_, args[0], "input");
    feeds_[index] = args[1];
    borrowed_[index] = true;
  }
  void GetInput(const TVMArgs& args, TVMRetValue* result) {
    NDArray& own = feeds_[Require(inputs_, args[0], "input")];
    const ::tenon::Parameter& parameter = inputs_[Require(inputs_, args[0], "input")];
    bool fixed = true;
    for (const int64_t dim : parameter.shape) fixed = fixed && dim >= 0;
    // TVM's inputs are there from the beginning: what is written into them is what counts.
    if (!own.defined() && fixed)
      own = ::tenon::Tensor::Empty(parameter.shape, parameter.dtype, Place());
    if (!own.defined())
      throw Error("ValueError",
                  "input '" + parameter.name + "' was not set, and its shape is open");
    *result = own;
  }
  void GetInputIndex(const TVMArgs& args, TVMRetValue* result) { *result = Find(inputs_, args[0]); }
  void GetNumInputs(const TVMArgs&, TVMRetValue* result) {
    *result = static_cast<int64_t>(inputs_.size());
  }
  void GetNumOutputs(const TVMArgs&, TVMRetValue* result) {
    *result = static_cast<int64_t>(outputs_.size());
  }
  void Run(const TVMArgs&, TVMRetValue*) {
    std::vector<::tenon::Tensor> args;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!feeds_[i].defined())
        throw Error("ValueError", "input '" + inputs_[i].name + "' was not set");
      args.push_back(feeds_[i].tensor());
    }
    const ::tenon::Result result = main_(args);
    results_.clear();
    for (size_t i = 0; i < outputs_.size(); ++i) results_.push_back(result[i]);
  }
  void GetOutput(const TVMArgs& args, TVMRetValue* result) {
    const size_t index = Require(outputs_, args[0], "output");
    if (results_.empty())
      throw Error("RuntimeError", "there are no outputs yet: 'run' has not been called");
    if (args.size() > 1) {
      NDArray(args[1]).CopyFrom(results_[index]);
    } else {
      *result = results_[index];
    }
  }
  ::tenon::Device Place() const { return {device_.device_type, device_.device_id}; }

  ::tenon::Function main_;
  Parameters inputs_, outputs_;
  Device device_;
  std::vector<NDArray> feeds_, results_;
  std::vector<bool> borrowed_ = std::vector<bool>(feeds_.size());
};

/// A loaded library.
class LibraryNode : public ModuleNode, public std::enable_shared_from_this<LibraryNode> {
 public:
  explicit LibraryNode(::tenon::Module module) : module_(std::move(module)) {}

  PackedFunc GetFunction(const std::string& name) const override {
    tn_packed_fn function = nullptr;
    if (tn_module_get_function(module_.handle(), name.c_str(), &function) == 0)
      return PackedFunc(module_.GetFunction(name));
    const ::tenon::Module module = module_;
    if (name == "default") {
      return PackedFunc([module](TVMArgs args, TVMRetValue* result) {
        *result = std::make_shared<GraphExecutorNode>(module, args[0]);
      });
    }
    const auto self = shared_from_this();
    if (name == "vm_load_executable") {
      return PackedFunc([self](TVMArgs, TVMRetValue* result) {
        *result = std::static_pointer_cast<const ModuleNode>(self);
      });
    }
    // Devices and allocators, which are the tensors' own here.
    if (name == "vm_initialization") return PackedFunc([](TVMArgs, TVMRetValue*) {});
    // Compiled under another name.
    return name == "main" ? PackedFunc(module_.GetFunction(module_.Name())) : nullptr;
  }

 private:
  ::tenon::Module module_;
};

}  // namespace tvm::runtime::detail

inline tvm::runtime::Module tvm::runtime::Module::LoadFromFile(const std::string& path,
                                                               const std::string& format) {
  static_cast<void>(format);
  return Module(std::make_shared<detail::LibraryNode>(::tenon::Module::LoadFromFile(path)));
}

#endif  // TVM_RUNTIME_EXECUTORS_H_
