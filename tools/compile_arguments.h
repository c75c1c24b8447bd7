// The options that say how a model is compiled, for every verb that compiles one.
#pragma once

#include <string>
#include <vector>

#include "cli.h"
#include "driver/compile.h"

namespace tenon::tools {

class CompileArguments {
 public:
  /// Adds --shape, --shape-weights, -O, --precision, --target, --prices, --log, --profile,
  /// --custom-op, --link,
  /// --external-data-dir and --jobs to a verb.
  void AddTo(CLI::App* verb);
  /// Reads what the parser left as text, and checks what can be without a file. Errors are wrong
  /// usage.
  Status Finish();
  /// The first of these options that was given, as "-O"; "" for none. --shape does not count: it
  /// also says with which sizes a library is called.
  std::string Given() const;

  driver::CompileOptions options;

 private:
  CLI::App* verb_ = nullptr;
  std::vector<std::string> shapes_, weights_, operators_;
};

}  // namespace tenon::tools
