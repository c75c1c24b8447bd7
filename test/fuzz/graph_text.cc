// The graph IR's parser: nothing crashes, and what parses (and so verifies) reads back from its
// print as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "graph/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto graph = tenon::graph::Parse(text);
  if (!graph) return 0;
  const auto again = tenon::graph::Parse(tenon::graph::Print(*graph));
  if (!again || !tenon::graph::StructuralEqual(*graph, *again)) abort();
  return 0;
}
