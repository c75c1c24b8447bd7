// A loaded artifact and its main function, through the runtime's C API.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/expected.h"
#include "tensor.h"

namespace tenon::tools {

/// An input or output. A symbolic dim is -1 in `shape` and its name in `dims`, where others are "".
struct Parameter {
  std::string name;
  std::string type;  // as the library says it: "float32", "string", "sequence(float32)"
  tn_dl_data_type dtype = {};
  std::vector<int64_t> shape;
  std::vector<std::string> dims;
  bool has_rank = true;

  /// Whether it is no tensor of numbers.
  bool IsValue() const { return type == "string" || type.find('(') != std::string::npos; }
  /// "float32 nx3x224x224".
  std::string ToString() const;
};

/// An error of a library whose information cannot be read.
Diagnostic DamagedDescription();

class Program {
 public:
  static Expected<Program> Load(const std::string& path);

  const std::vector<Parameter>& inputs() const { return inputs_; }
  const std::vector<Parameter>& outputs() const { return outputs_; }
  /// The information text (kernel_abi.h).
  std::string Info() const;

  /// What it was compiled for.
  std::string Target() const;
  /// Whether the sizes of outputs depend on values, so that callers cannot bring them.
  bool MakesOutputs() const;

  /// Whether some inputs or outputs are no tensors of numbers (values.h).
  bool HasValues() const { return has_values_; }

  /// Calls main; the runtime makes the outputs.
  Expected<NamedTensors> Call(const NamedTensors& inputs) const;
  /// The same in the packed convention. The caller releases *result.
  Status CallRaw(const std::vector<tn_ffi_any>& args, tn_ffi_any* result) const;

  /// The result of the library's function `name`, which has no parameters.
  Expected<Tensor> Result(const std::string& name) const;

  /// A call with all its arguments in place, outputs too, that can be made many times.
  class Repeated {
   public:
    /// Allocates nothing but outputs that were not given. False: see ApiError().
    bool Run();

   private:
    friend class Program;
    tn_packed_fn function_ = nullptr;
    NamedTensors tensors_;  // keeps what args_ refers to
    std::vector<tn_ffi_any> args_;
  };
  Repeated Prepare(const NamedTensors& inputs, const NamedTensors& outputs) const;
  /// Of any values, which live as long as the call does.
  Repeated Prepare(std::vector<tn_ffi_any> args) const;

 private:
  Program() = default;
  Status FindMain();
  Status ReadParameters();

  std::shared_ptr<tn_module_t> module_;
  tn_packed_fn main_ = nullptr;
  std::vector<Parameter> inputs_, outputs_;
  bool has_values_ = false;
};

}  // namespace tenon::tools
