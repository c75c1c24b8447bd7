// Symbols of a relocatable object.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon::artifact {

/// What a library says of itself is in a section of its own, so that it can be read without loading
/// the library.
inline constexpr const char* kInfoSection = ".tn_info";

/// Makes every symbol that the object (which our own linker made) defines local, but for those in
/// `exports`.
void LocalizeSymbols(const std::vector<std::string>& exports, std::string* image);

/// Makes global symbols of these names weak: where several objects define one, the first is taken.
void WeakenSymbols(const std::vector<std::string>& names, std::string* image);

/// The bytes of a symbol that a 64-bit relocatable ELF object defines, before relocation; a view
/// into `image`. Empty where there is no such symbol. The file may be anything.
std::string_view SymbolContents(std::string_view image, std::string_view name);

/// What keeps a file from being mapped as a shared library, "" where nothing does: what an ELF
/// file's headers say is checked against the file, which may be anything.
std::string LibraryFault(std::string_view image);

/// The bytes of a section of a 64-bit ELF file; a view into `image`. Empty where there is none. The
/// file may be anything.
std::string_view SectionContents(std::string_view image, std::string_view name);

}  // namespace tenon::artifact
