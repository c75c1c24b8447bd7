#include "graph/plan.h"

#include <fmt/format.h>

#include "support/check.h"

namespace tenon::graph {

std::string ChoicesText(const Choices& choices) {
  std::string out;
  for (const Choice& c : choices)
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", c.name, c.value);
  return "{" + out + "}";
}

int64_t ValueOf(const Choices& choices, std::string_view name) {
  for (const Choice& c : choices) {
    if (c.name == name) return c.value;
  }
  TN_CHECK(false, "no choice '{}'", name);
  return 0;
}

Choices Plan::AllChoices() const {
  Choices all = layout;
  if (!variants.empty()) {
    all.insert(all.end(), variants.back().schedule.begin(), variants.back().schedule.end());
  }
  return all;
}

}  // namespace tenon::graph
