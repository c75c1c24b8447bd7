// Target strings: none crashes, and what parses round-trips.
#include "target/target.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto target = tenon::Target::Parse(text);
  if (!target) return 0;
  const auto again = tenon::Target::Parse(target->ToString());
  if (!again || !(*again == *target)) abort();
  return 0;
}
