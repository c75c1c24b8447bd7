#include "artifact/weight_segment.h"

#include <elf.h>
#include <string.h>

#include <span>
#include <string_view>

#include "artifact/link.h"
#include "support/check.h"

namespace tenon::artifact {
namespace {

// The headers of an image of our own linker, in place. std::string's memory is aligned enough for
// them.
struct Headers {
  std::span<Elf64_Phdr> segments;
  std::span<Elf64_Shdr> sections;
  const char* section_names;
  bool relocatable;
  uint64_t page_bytes;
};

Headers HeadersOf(std::string& image) {
  char* base = image.data();
  auto* header = reinterpret_cast<Elf64_Ehdr*>(base);
  TN_CHECK(header->e_phoff + header->e_phnum * sizeof(Elf64_Phdr) <= image.size());
  TN_CHECK(header->e_shoff + header->e_shnum * sizeof(Elf64_Shdr) <= image.size());
  std::span<Elf64_Shdr> sections(reinterpret_cast<Elf64_Shdr*>(base + header->e_shoff),
                                 header->e_shnum);
  return {{reinterpret_cast<Elf64_Phdr*>(base + header->e_phoff), header->e_phnum},
          sections,
          base + sections[header->e_shstrndx].sh_offset,
          header->e_type == ET_REL,
          PageBytes(header->e_machine == EM_AARCH64 ? "aarch64" : "")};
}

}  // namespace

Expected<uint64_t> PlaceWeightSegment(std::string& image, uint64_t weights_bytes) {
  Headers headers = HeadersOf(image);
  uint64_t alignment = WeightAlignment(weights_bytes, headers.page_bytes);
  uint64_t offset = (image.size() + alignment - 1) / alignment * alignment;
  Elf64_Shdr* weights = nullptr;
  for (Elf64_Shdr& section : headers.sections) {
    if (headers.section_names + section.sh_name == std::string_view(".tn_weights"))
      weights = &section;
  }
  TN_CHECK(weights && weights->sh_type == SHT_NOBITS && weights->sh_size == weights_bytes);
  weights->sh_type = SHT_PROGBITS;
  weights->sh_flags = SHF_ALLOC;
  weights->sh_offset = offset;
  weights->sh_addralign = alignment;
  if (headers.relocatable) return offset;  // the program's linker will make the segment
  for (Elf64_Phdr& segment : headers.segments) {
    if (segment.p_type != PT_LOAD || segment.p_vaddr != weights->sh_addr) continue;
    segment.p_offset = offset;
    segment.p_filesz = segment.p_memsz = weights_bytes;
    segment.p_align = alignment;
    segment.p_flags = PF_R;
    return offset;
  }
  TN_CHECK(false, "the linked image has no segment for its weights");
  return offset;
}

}  // namespace tenon::artifact
