#include "artifact/symbols.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <string_view>

#include "support/check.h"

namespace tenon::artifact {
namespace {

constexpr uint32_t kLlvmAddrsig = 0x6fff4c03;  // SHT_LLVM_ADDRSIG

template <class T>
std::span<T> ContentsOf(const Elf64_Shdr& section, std::string* image) {
  TN_CHECK(section.sh_offset + section.sh_size <= image->size());
  return {reinterpret_cast<T*>(image->data() + section.sh_offset), section.sh_size / sizeof(T)};
}

std::span<Elf64_Shdr> SectionsOf(std::string* image) {
  auto* header = reinterpret_cast<Elf64_Ehdr*>(image->data());
  TN_CHECK(header->e_shoff + header->e_shnum * sizeof(Elf64_Shdr) <= image->size());
  return {reinterpret_cast<Elf64_Shdr*>(image->data() + header->e_shoff), header->e_shnum};
}

// Orders symbols as ELF wants them, locals first; returns where each went.
std::vector<uint32_t> SortSymbols(std::span<Elf64_Sym> symbols, uint32_t* num_locals) {
  std::vector<Elf64_Sym> sorted;
  std::vector<uint32_t> place(symbols.size());
  for (bool local : {true, false}) {
    for (size_t i = 0; i < symbols.size(); ++i) {
      if ((ELF64_ST_BIND(symbols[i].st_info) == STB_LOCAL) != local) continue;
      place[i] = static_cast<uint32_t>(sorted.size());
      sorted.push_back(symbols[i]);
    }
    if (local) *num_locals = static_cast<uint32_t>(sorted.size());
  }
  std::copy(sorted.begin(), sorted.end(), symbols.begin());
  return place;
}

// Sections that name symbols by their place in the table.
void RenumberSymbols(std::span<Elf64_Shdr> sections, const std::vector<uint32_t>& place,
                     std::string* image) {
  for (Elf64_Shdr& section : sections) {
    TN_CHECK(section.sh_type != SHT_SYMTAB_SHNDX && section.sh_type != SHT_REL);
    if (section.sh_type == SHT_GROUP) section.sh_info = place[section.sh_info];
    if (section.sh_type == kLlvmAddrsig) section.sh_size = 0;  // a hint, in a form of its own
    if (section.sh_type != SHT_RELA) continue;
    for (Elf64_Rela& relocation : ContentsOf<Elf64_Rela>(section, image)) {
      uint32_t symbol = place[ELF64_R_SYM(relocation.r_info)];
      relocation.r_info = ELF64_R_INFO(uint64_t{symbol}, ELF64_R_TYPE(relocation.r_info));
    }
  }
}

}  // namespace

void LocalizeSymbols(const std::vector<std::string>& exports, std::string* image) {
  std::set<std::string_view> kept(exports.begin(), exports.end());
  std::span<Elf64_Shdr> sections = SectionsOf(image);
  for (Elf64_Shdr& table : sections) {
    if (table.sh_type != SHT_SYMTAB) continue;
    const char* names = image->data() + sections[table.sh_link].sh_offset;
    std::span<Elf64_Sym> symbols = ContentsOf<Elf64_Sym>(table, image);
    for (Elf64_Sym& symbol : symbols) {
      if (symbol.st_shndx == SHN_UNDEF || kept.count(names + symbol.st_name)) continue;
      symbol.st_info = ELF64_ST_INFO(STB_LOCAL, ELF64_ST_TYPE(symbol.st_info));
      symbol.st_other = STV_DEFAULT;
    }
    std::vector<uint32_t> place = SortSymbols(symbols, &table.sh_info);
    RenumberSymbols(sections, place, image);
    return;
  }
}

void WeakenSymbols(const std::vector<std::string>& names, std::string* image) {
  std::span<Elf64_Shdr> sections = SectionsOf(image);
  for (const Elf64_Shdr& table : sections) {
    if (table.sh_type != SHT_SYMTAB) continue;
    const char* texts = image->data() + sections[table.sh_link].sh_offset;
    for (Elf64_Sym& symbol : ContentsOf<Elf64_Sym>(table, image)) {
      bool wanted = std::find(names.begin(), names.end(), texts + symbol.st_name) != names.end();
      if (!wanted || ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL) continue;
      symbol.st_info = ELF64_ST_INFO(STB_WEAK, ELF64_ST_TYPE(symbol.st_info));
    }
  }
}

namespace {

/// Reads structures out of a file that may be cut short or lie about its parts.
class Reader {
 public:
  explicit Reader(std::string_view image) : image_(image) {}

  std::string_view Bytes(uint64_t offset, uint64_t size) const {
    if (offset > image_.size() || size > image_.size() - offset) return {};
    return image_.substr(offset, size);
  }
  /// All zero where it is not inside the file.
  template <class T>
  T At(uint64_t offset, uint64_t index) const {
    T out{};
    if (index > image_.size() / sizeof(T)) return out;
    std::string_view bytes = Bytes(offset, (index + 1) * sizeof(T));
    if (!bytes.empty()) std::memcpy(&out, bytes.data() + index * sizeof(T), sizeof(T));
    return out;
  }
  std::string_view Text(const Elf64_Shdr& strings, uint64_t at) const {
    std::string_view all = Bytes(strings.sh_offset, strings.sh_size);
    if (at >= all.size()) return {};
    all.remove_prefix(at);
    return all.substr(0, all.find('\0'));
  }
  /// Zero where the file is no 64-bit ELF file.
  Elf64_Ehdr Header() const {
    const auto header = At<Elf64_Ehdr>(0, 0);
    const bool is_elf =
        std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64;
    return is_elf ? header : Elf64_Ehdr{};
  }
  std::string_view Contents(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS) return {};
    return Bytes(section.sh_offset, section.sh_size);
  }

 private:
  const std::string_view image_;
};

}  // namespace

std::string_view SymbolContents(std::string_view image, std::string_view name) {
  const Reader file(image);
  const Elf64_Ehdr header = file.Header();
  for (uint64_t s = 0; header.e_type == ET_REL && s < header.e_shnum; ++s) {
    const auto table = file.At<Elf64_Shdr>(header.e_shoff, s);
    if (table.sh_type != SHT_SYMTAB) continue;
    const auto strings = file.At<Elf64_Shdr>(header.e_shoff, table.sh_link);
    const uint64_t count = file.Bytes(table.sh_offset, table.sh_size).size() / sizeof(Elf64_Sym);
    for (uint64_t i = 0; i < count; ++i) {
      const auto symbol = file.At<Elf64_Sym>(table.sh_offset, i);
      const bool defined = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < header.e_shnum;
      if (!defined || file.Text(strings, symbol.st_name) != name) continue;
      const auto section = file.At<Elf64_Shdr>(header.e_shoff, symbol.st_shndx);
      const std::string_view bytes = file.Contents(section);
      if (symbol.st_value > bytes.size()) return {};
      return bytes.substr(symbol.st_value, symbol.st_size);
    }
  }
  return {};
}

std::string LibraryFault(std::string_view image) {
  const Reader file(image);
  const Elf64_Ehdr header = file.Header();
  if (header.e_type != ET_DYN || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return "expected a 64-bit little-endian shared library";
  const bool has_table =
      header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phnum > 0 &&
      !file.Bytes(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr)).empty();
  if (!has_table) return "the file is truncated";
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = file.At<Elf64_Phdr>(header.e_phoff, i);
    const bool inside =
        segment.p_offset <= image.size() && segment.p_filesz <= image.size() - segment.p_offset;
    if (segment.p_type == PT_LOAD && !inside) return "the file is truncated";
  }
  return "";
}

std::string_view SectionContents(std::string_view image, std::string_view name) {
  const Reader file(image);
  const Elf64_Ehdr header = file.Header();
  const auto names = file.At<Elf64_Shdr>(header.e_shoff, header.e_shstrndx);
  for (uint64_t s = 0; s < header.e_shnum; ++s) {
    const auto section = file.At<Elf64_Shdr>(header.e_shoff, s);
    if (file.Text(names, section.sh_name) == name) return file.Contents(section);
  }
  return {};
}

}  // namespace tenon::artifact
