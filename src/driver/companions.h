// Texts that go with a library: how to call it. `info` is what it says of itself.
#pragma once

#include <string>

namespace tenon::driver {

/// A C++ program that loads the library, calls its main on zeros and prints the first elements of
/// the results.
std::string ExampleText(const std::string& info, const std::string& library);

/// A C header that declares the exported function and a function over DLPack tensors, one per input
/// and output.
std::string PackedHeaderText(const std::string& info);

}  // namespace tenon::driver
