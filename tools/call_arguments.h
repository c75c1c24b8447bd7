// The options that say what a model is called with, for `run` and `bench`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli.h"
#include "frontend/onnx/import.h"
#include "program.h"
#include "tensor.h"
#include "values.h"

namespace tenon::tools {

struct ArrayPath;

class CallArguments {
 public:
  /// Adds -i, --fill, --seed and --device. `fill` is what --fill is by default; "none": an input
  /// that is not given is an error.
  void AddTo(CLI::App* verb, const std::string& fill);

  /// Reads the files of -i.
  Status ReadFiles();
  /// An error where the file that is to be written is one of those, or the model: it would be lost.
  Status CheckNotRead(const std::string& output, const std::string& model) const;
  /// As --device has it; "": not said.
  const std::string& device() const { return device_; }
  /// What ReadFiles read; "" is the name of an array that was given without one.
  const NamedTensors& given() const { return given_; }
  /// Shapes of inputs by name, as --shape has them.
  using Shapes = std::map<std::string, std::vector<onnx::DimSpec>>;
  /// The inputs of a program in its order: those given, and the others filled as --fill says. A
  /// size that one input fixes, by its array or its shape, is that of the others.
  Expected<std::vector<Value>> Values(const Program& program, const Shapes& shapes) const;
  /// The same of a network whose values are all tensors of numbers.
  Expected<NamedTensors> Inputs(const Program& program, const Shapes& shapes) const;

 private:
  using Sizes = std::map<std::string, int64_t>;  // of symbolic dims
  Expected<Sizes> SizesOf(const Program& program, const Shapes& shapes) const;
  Expected<Tensor> Fill(Parameter parameter, const Sizes& sizes, size_t index) const;
  bool IsGiven(const std::string& name) const;
  Status ReadJsonInputs(const ArrayPath& where);
  const Tensor* GivenFor(const Parameter& parameter, const Program& program) const;

  std::vector<std::string> files_;
  std::string fill_, device_;
  uint64_t seed_ = 0;
  NamedTensors given_;
  Json json_ = Json::object();  // of those that are given as JSON
};

/// "name=x.npy", "x.npy", "x.npz", "name=x.json" or "x.json": where a value or all of them lie.
struct ArrayPath {
  std::string name;  // "": not said
  std::string path;
  bool archive = false;  // of values by name
  bool IsJson() const { return path.ends_with(".json"); }
};
Expected<ArrayPath> ParseArrayPath(const std::string& option, const std::string& text);
/// Takes what ParseArrayPath takes.
CLI::Validator ArrayFile(const std::string& option);

}  // namespace tenon::tools
