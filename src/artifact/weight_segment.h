// Headers of a linked image, changed so that its empty weight section has its contents in the file.
#pragma once

#include <cstdint>
#include <string>

#include "support/expected.h"

namespace tenon::artifact {

/// Takes an image that LinkSharedLibrary or LinkRelocatable made with `weights_bytes` of weights,
/// and makes its weight section PROGBITS (a NOBITS one would be zeroed by strip) and its segment
/// backed by the file from the returned offset on: the first one behind the image with
/// WeightAlignment.
Expected<uint64_t> PlaceWeightSegment(std::string& image, uint64_t weights_bytes);

}  // namespace tenon::artifact
