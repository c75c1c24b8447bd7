// Symbols of a relocatable object.
#pragma once

#include <string>
#include <vector>

namespace tenon::artifact {

/// Makes every symbol that the object (which our own linker made) defines local, but for those in
/// `exports`.
void LocalizeSymbols(const std::vector<std::string>& exports, std::string* image);

/// Makes global symbols of these names weak: where several objects define one, the first is taken.
void WeakenSymbols(const std::vector<std::string>& names, std::string* image);

}  // namespace tenon::artifact
