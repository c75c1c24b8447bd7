// Shapes as users write them: "1x3x224x224", "batch[1..16]x128", "batchxseq[32..512 step 32]".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/onnx/import.h"
#include "support/expected.h"

namespace tenon::onnx {

/// One size: a number of at least 0; a name, which stands for any size of at least 1 wherever it is
/// used; a name with the sizes that it stands for, "batch[1..16]" or "seq[32..512 step 32]",
/// "past[0..]". Names
/// are letters, digits and _, and begin with a letter or _.
Expected<DimSpec> ParseSize(std::string_view text);

/// Sizes with an x between them, where names hold no x; or with commas, "1,max_len,80" and
/// "[max_len]", where they may. "" and "[]" are a scalar's shape.
Expected<std::vector<DimSpec>> ParseShape(std::string_view text);

/// What ParseSize reads.
std::string SizeText(const DimSpec& size);

}  // namespace tenon::onnx
