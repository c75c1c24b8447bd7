// Loop IR as text: none crashes; what parses prints to a text that reads back equal; the verifier
// takes it all.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "loop/parse.h"
#include "loop/print.h"
#include "loop/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto module = tenon::ParseModule({reinterpret_cast<const char*>(data), size});
  if (!module) return 0;
  const std::string text = tenon::Print(*module);
  const auto again = tenon::ParseModule(text);
  if (!again || tenon::Print(*again) != text) abort();
  for (const auto& [name, func] : module->funcs) {
    if (!tenon::StructuralEqual(func, again->Find(name))) abort();
  }
  // Equal modules are equally sound.
  const bool sound = static_cast<bool>(tenon::Verify(*module, tenon::Stage::kLowered));
  if (sound != static_cast<bool>(tenon::Verify(*again, tenon::Stage::kLowered))) abort();
  return 0;
}
