#include "graph/plan.h"

#include "support/check.h"

namespace tenon::graph {

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
