// The files of weights that a text of a graph names: `const @"path"+offset`.
#pragma once

#include <string>
#include <vector>

#include "graph/text.h"

namespace tenon {

/// Finds a file by the name that a text gives it: first among `given` (--weights), files by their
/// last component and folders by what is in them; then beside the text, then from the current
/// folder. One file that is given and no folder also stands for names that are found nowhere.
/// `text_file` is the text's path; "-" and "": it has none. Errors name all places looked at.
graph::WeightSource FindWeights(const std::string& text_file, std::vector<std::string> given);

}  // namespace tenon
