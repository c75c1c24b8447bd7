// The options that say how a model is compiled, for every verb that compiles one.
#pragma once

#include <string>
#include <vector>

#include "driver/compile.h"

namespace CLI {
class App;
}

namespace tenon::tools {

class CompileArguments {
 public:
  /// Adds --shape, -O, --precision, --target, --external-data-dir and --jobs to a verb.
  void AddTo(CLI::App* verb);
  /// Reads what the parser left as text. Errors are wrong usage.
  Status Finish();

  driver::CompileOptions options;

 private:
  std::vector<std::string> shapes_;
};

}  // namespace tenon::tools
