// The options that say what a model is called with, for `run` and `bench`.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "program.h"
#include "tensor.h"

namespace tenon::tools {

class CallArguments {
 public:
  /// Adds -i, --fill, --seed and --device. `fill` is what --fill is by default; "none": an input
  /// that is not given is an error.
  void AddTo(CLI::App* verb, const std::string& fill);

  /// Reads the files of -i.
  Status ReadFiles();
  /// What ReadFiles read; "" is the name of an array that was given without one.
  const NamedTensors& given() const { return given_; }
  /// The inputs of a program in its order: those given, and the others filled as --fill says.
  Expected<NamedTensors> Inputs(const Program& program) const;

 private:
  Expected<Tensor> Fill(const Parameter& parameter, size_t index) const;

  std::vector<std::string> files_;
  std::string fill_, device_ = "cpu";
  uint64_t seed_ = 0;
  NamedTensors given_;
};

/// "name=x.npy", "x.npy" or "x.npz": where an array or all arrays lie.
struct ArrayPath {
  std::string name;  // "": not said
  std::string path;
  bool archive = false;
};
Expected<ArrayPath> ParseArrayPath(const std::string& option, const std::string& text);
/// Takes what ParseArrayPath takes.
CLI::Validator ArrayFile(const std::string& option);

}  // namespace tenon::tools
