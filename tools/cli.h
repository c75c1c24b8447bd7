// What headers name of CLI11; files that add options include <CLI/CLI.hpp>, which takes seconds to
// compile.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
class Validator;
}  // namespace CLI
