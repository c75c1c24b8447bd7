#include "numbers.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

namespace tenon::tools {

CLI::Validator AtLeast(double least) {
  return {[least](const std::string& text) {
            double value = 0;
            const char* end = text.data() + text.size();
            const auto [rest, fault] = std::from_chars(text.data(), end, value);
            const bool fits = fault == std::errc() && rest == end && std::isfinite(value);
            if (fits && value >= least) return std::string();
            return fmt::format("expected a number of at least {:g} but got '{}'", least, text);
          },
          "NUMBER"};
}

}  // namespace tenon::tools
